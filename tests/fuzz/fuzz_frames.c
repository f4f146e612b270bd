/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and hello: the first byte says which side we are (bit 0) and whether
 * there is a secret (bit 1); the rest is what comes from the other one. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "control/hello.h"
#include "fuzz/fuzz.h"

const char fuzz_name[] = "frames";

static shunt_status_t same_user(void *arg, shunt_reason_t *reason)
{
    (void)arg;
    (void)reason;
    return SHUNT_OK;
}

static void self_fill(shunt_hello_self_t *self, shunt_secret_t *secret,
                      bool with_secret)
{
    memset(self, 0, sizeof(*self));
    if (shunt_secret_load("", with_secret ? "s" : "", secret) != SHUNT_OK)
        abort();
    self->name        = "fuzz:1";
    self->version_min = SHUNT_PROTO_MIN;
    self->version_max = SHUNT_PROTO_MAX;
    self->secret      = secret;
    self->same_user   = same_user;
}

/* What is said has to be a frame of ours, from the right side. */
static void check_out(const shunt_hello_out_t *out, bool connector)
{
    uint8_t head[SHUNT_FRAME_HEAD];
    shunt_reason_t reason;
    shunt_frame_t frame;

    if (out->frame.type == 0)
        return;
    shunt_frame_encode(&out->frame, head);
    if (shunt_frame_decode(head,
                           connector ? SHUNT_FRAME_CONNECTOR_HELLO
                                     : SHUNT_FRAME_ACCEPTOR_HELLO,
                           &frame, &reason) != SHUNT_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static shunt_secret_t secret;
    bool connector = (length > 0) && (bytes[0] & 1);
    unsigned from =
        connector ? SHUNT_FRAME_ACCEPTOR_HELLO : SHUNT_FRAME_CONNECTOR_HELLO;
    shunt_hello_self_t self;
    shunt_hello_out_t out;
    shunt_reason_t reason;
    shunt_hello_t hello;
    shunt_frame_t frame;
    size_t at = 1;

    if (length == 0)
        return 0;
    self_fill(&self, &secret, bytes[0] & 2);
    if (!connector)
        shunt_hello_accept(&hello, &self);
    else if (shunt_hello_connect(&hello, &self, 1, &out, &reason) != SHUNT_OK)
        abort();
    while ((hello.state != SHUNT_HELLO_DONE) &&
           (length - at >= SHUNT_FRAME_HEAD)) {
        if (shunt_frame_decode(bytes + at, from, &frame, &reason) != SHUNT_OK)
            break;
        at += SHUNT_FRAME_HEAD;
        if (length - at < frame.length)
            break;
        if (shunt_hello_step(&hello, &frame, bytes + at, &out, &reason) !=
            SHUNT_OK)
            break;
        check_out(&out, connector);
        at += frame.length;
    }
    /* nobody who does not know the secret gets through */
    if (self.secret->set && (hello.state == SHUNT_HELLO_DONE))
        abort();
    return 0;
}
