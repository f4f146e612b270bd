/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/hello.h"

#include <string.h>

#include "base/host.h"
#include "control/wire.h"

enum {
    ID            = sizeof(shunt_incarnation_t),
    PROOF_FIXED   = ID + 4 + 2, /* incarnation, stream, length of the name */
    WELCOME_FIXED = ID + 2,
    /* label, side, versions, kind, nonces, and both sides' words */
    TRANSCRIPT_MAX = 16 + 1 + 8 + 2 * SHUNT_HELLO_NONCE + PROOF_FIXED +
                     WELCOME_FIXED + 2 * SHUNT_NAME_MAX
};

_Static_assert(PROOF_FIXED + SHUNT_SECRET_MAC == 54, "least PROOF, frame.c");
_Static_assert(WELCOME_FIXED + SHUNT_SECRET_MAC == 50, "least WELCOME");
_Static_assert(PROOF_FIXED + SHUNT_NAME_MAX + SHUNT_SECRET_MAC <
                   SHUNT_FRAME_HELLO_MAX,
               "longest PROOF");

static const char label[16] = "shunt control 1";

typedef enum side {
    CONNECTOR = 'c',
    ACCEPTOR  = 'a'
} side_t;

/* What an HMAC is made over. */
typedef struct transcript {
    uint8_t bytes[TRANSCRIPT_MAX];
    size_t length;
} transcript_t;

static void add(transcript_t *t, const void *bytes, size_t length)
{
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
}

static void add16(transcript_t *t, uint16_t value)
{
    uint8_t wire[2];

    shunt_wire_put16(wire, value);
    add(t, wire, sizeof(wire));
}

static void add_who(transcript_t *t, const shunt_incarnation_t *id,
                    const char *name)
{
    add(t, id->bytes, ID);
    add16(t, (uint16_t)strlen(name));
    add(t, name, strlen(name));
}

static bool is_connector(const shunt_hello_t *hello)
{
    return (hello->state == SHUNT_HELLO_WAIT_CHALLENGE) ||
           (hello->state == SHUNT_HELLO_WAIT_WELCOME);
}

/* The HMAC that `side` sends. */
static shunt_status_t make_mac(const shunt_hello_t *hello, side_t side,
                               uint8_t mac[SHUNT_SECRET_MAC],
                               shunt_reason_t *reason)
{
    bool own          = is_connector(hello);
    uint8_t side_byte = (uint8_t)side;
    uint8_t stream[4];
    transcript_t t;

    t.length = 0;
    add(&t, label, sizeof(label));
    add(&t, &side_byte, 1);
    add16(&t, hello->offered[0]);
    add16(&t, hello->offered[1]);
    add16(&t, hello->version);
    add16(&t, (uint16_t)hello->proof);
    add(&t, hello->nonce, sizeof(hello->nonce));
    shunt_wire_put32(stream, hello->stream);
    add(&t, stream, sizeof(stream));
    add_who(&t, own ? &hello->self.incarnation : &hello->peer,
            own ? hello->self.name : hello->peer_name);
    if (side == ACCEPTOR)
        add_who(&t, own ? &hello->peer : &hello->self.incarnation,
                own ? hello->peer_name : hello->self.name);
    if (shunt_secret_mac(hello->self.secret, t.bytes, t.length, mac) !=
        SHUNT_OK)
        return shunt_reason_set(reason, SHUNT_ERR_MEMORY,
                                "HMAC-SHA256 failed in libcrypto");
    return SHUNT_OK;
}

static shunt_status_t check_mac(const shunt_hello_t *hello, side_t side,
                                const uint8_t *mac, shunt_reason_t *reason)
{
    uint8_t expected[SHUNT_SECRET_MAC];
    shunt_status_t status = make_mac(hello, side, expected, reason);

    if (status != SHUNT_OK)
        return status;
    if (!shunt_secret_equal(expected, mac))
        return shunt_reason_set(reason, SHUNT_ERR_REJECT_HANDSHAKE,
                                "the proof of the secret is wrong: set the "
                                "same SHUNT_SECRET_FILE or SHUNT_SECRET at "
                                "both ends");
    return SHUNT_OK;
}

static shunt_status_t make_nonce(uint8_t *nonce, shunt_reason_t *reason)
{
    if (shunt_host_random(nonce, SHUNT_HELLO_NONCE) != SHUNT_OK)
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "getrandom gave no nonce");
    return SHUNT_OK;
}

static void out_init(shunt_hello_out_t *out, shunt_frame_type_t type,
                     uint32_t length)
{
    out->frame.type   = (uint16_t)type;
    out->frame.length = length;
    out->frame.id     = 0;
}

shunt_status_t shunt_hello_connect(shunt_hello_t *hello,
                                   const shunt_hello_self_t *self,
                                   uint32_t stream, shunt_hello_out_t *out,
                                   shunt_reason_t *reason)
{
    memset(hello, 0, sizeof(*hello));
    hello->self       = *self;
    hello->state      = SHUNT_HELLO_WAIT_CHALLENGE;
    hello->stream     = stream;
    hello->offered[0] = self->version_min;
    hello->offered[1] = self->version_max;
    out->frame.type   = 0;
    if (make_nonce(hello->nonce[0], reason) != SHUNT_OK)
        return reason->status;
    out_init(out, SHUNT_FRAME_HELLO, 4 + SHUNT_HELLO_NONCE);
    shunt_wire_put16(out->bytes, self->version_min);
    shunt_wire_put16(out->bytes + 2, self->version_max);
    memcpy(out->bytes + 4, hello->nonce[0], SHUNT_HELLO_NONCE);
    return SHUNT_OK;
}

void shunt_hello_accept(shunt_hello_t *hello, const shunt_hello_self_t *self)
{
    memset(hello, 0, sizeof(*hello));
    hello->self  = *self;
    hello->state = SHUNT_HELLO_WAIT_HELLO;
    hello->proof =
        self->secret->set ? SHUNT_HELLO_SECRET : SHUNT_HELLO_SAME_USER;
}

void shunt_hello_refuse(const shunt_reason_t *reason, shunt_hello_out_t *out)
{
    out_init(out, SHUNT_FRAME_REFUSE, 0);
    out->frame.length =
        shunt_frame_put_reason(reason, out->bytes, sizeof(out->bytes));
}

/* acceptor: HELLO -> CHALLENGE */
static shunt_status_t on_hello(shunt_hello_t *hello, const uint8_t *bytes,
                               shunt_hello_out_t *out, shunt_reason_t *reason)
{
    const shunt_hello_self_t *self = &hello->self;
    uint16_t from                  = shunt_wire_get16(bytes);
    uint16_t to                    = shunt_wire_get16(bytes + 2);

    hello->offered[0] = from;
    hello->offered[1] = to;
    hello->version    = to < self->version_max ? to : self->version_max;
    if ((from > to) || (hello->version < from) ||
        (hello->version < self->version_min))
        return shunt_reason_set(reason, SHUNT_ERR_VERSION,
                                "versions %u to %u of the protocol were "
                                "offered, %u to %u are spoken here: use the "
                                "same major version of Shunt at both ends",
                                from, to, self->version_min, self->version_max);
    if ((hello->proof == SHUNT_HELLO_SAME_USER) &&
        (self->same_user(self->arg, reason) != SHUNT_OK))
        return reason->status;
    memcpy(hello->nonce[0], bytes + 4, SHUNT_HELLO_NONCE);
    if (make_nonce(hello->nonce[1], reason) != SHUNT_OK)
        return reason->status;
    out_init(out, SHUNT_FRAME_CHALLENGE, 4 + SHUNT_HELLO_NONCE);
    shunt_wire_put16(out->bytes, hello->version);
    shunt_wire_put16(out->bytes + 2, (uint16_t)hello->proof);
    memcpy(out->bytes + 4, hello->nonce[1], SHUNT_HELLO_NONCE);
    hello->state = SHUNT_HELLO_WAIT_PROOF;
    return SHUNT_OK;
}

/* Is the kind of proof the one we want, and the version one of ours? */
static shunt_status_t check_challenge(const shunt_hello_t *hello,
                                      uint16_t proof, shunt_reason_t *reason)
{
    const shunt_hello_self_t *self = &hello->self;

    if ((hello->version < self->version_min) ||
        (hello->version > self->version_max))
        return shunt_reason_set(reason, SHUNT_ERR_VERSION,
                                "version %u of the protocol was chosen, %u to "
                                "%u were offered",
                                hello->version, self->version_min,
                                self->version_max);
    if ((proof == SHUNT_HELLO_SECRET) && !self->secret->set)
        return shunt_reason_set(reason, SHUNT_ERR_REJECT_HANDSHAKE,
                                "the peer wants proof of a secret and none is "
                                "set here: set SHUNT_SECRET_FILE or "
                                "SHUNT_SECRET");
    if ((proof != SHUNT_HELLO_SECRET) && self->secret->set)
        return shunt_reason_set(reason, SHUNT_ERR_REJECT_HANDSHAKE,
                                "a secret is set here and the peer has none: "
                                "set the same SHUNT_SECRET_FILE or "
                                "SHUNT_SECRET at both ends");
    if ((proof != SHUNT_HELLO_SECRET) && (proof != SHUNT_HELLO_SAME_USER))
        return shunt_reason_set(reason, SHUNT_ERR_VERSION,
                                "the peer wants a proof of unknown kind %u",
                                proof);
    return SHUNT_OK;
}

/* connector: CHALLENGE -> PROOF */
static shunt_status_t on_challenge(shunt_hello_t *hello, const uint8_t *bytes,
                                   shunt_hello_out_t *out,
                                   shunt_reason_t *reason)
{
    const shunt_hello_self_t *self = &hello->self;
    uint16_t proof                 = shunt_wire_get16(bytes + 2);
    uint16_t name_length           = (uint16_t)strlen(self->name);

    hello->version = shunt_wire_get16(bytes);
    if (check_challenge(hello, proof, reason) != SHUNT_OK)
        return reason->status;
    hello->proof = (shunt_hello_proof_t)proof;
    memcpy(hello->nonce[1], bytes + 4, SHUNT_HELLO_NONCE);
    /* only now is the other end's socket a process's: it has answered */
    if ((hello->proof == SHUNT_HELLO_SAME_USER) &&
        (self->same_user(self->arg, reason) != SHUNT_OK))
        return reason->status;
    memcpy(out->bytes, self->incarnation.bytes, ID);
    shunt_wire_put32(out->bytes + ID, hello->stream);
    shunt_wire_put16(out->bytes + ID + 4, name_length);
    memcpy(out->bytes + PROOF_FIXED, self->name, name_length);
    if (make_mac(hello, CONNECTOR, out->bytes + PROOF_FIXED + name_length,
                 reason) != SHUNT_OK)
        return reason->status;
    out_init(out, SHUNT_FRAME_PROOF,
             PROOF_FIXED + (uint32_t)name_length + SHUNT_SECRET_MAC);
    hello->state = SHUNT_HELLO_WAIT_WELCOME;
    return SHUNT_OK;
}

/* Take incarnation and name of a PROOF or WELCOME; *mac_p: where it starts. */
static shunt_status_t take_who(shunt_hello_t *hello, const shunt_frame_t *frame,
                               const uint8_t *bytes, uint32_t fixed,
                               const uint8_t **mac_p, shunt_reason_t *reason)
{
    uint16_t length = shunt_wire_get16(bytes + fixed - 2);
    uint16_t i;

    if ((length > SHUNT_NAME_MAX) ||
        (frame->length < fixed + length + SHUNT_SECRET_MAC))
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "a hello has a name of %u bytes in a frame of "
                                "%u",
                                length, frame->length);
    for (i = 0; i < length; i++) {
        if ((bytes[fixed + i] < 0x20) || (bytes[fixed + i] == 0x7f))
            return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                    "a hello has a control character in its "
                                    "name");
    }
    memcpy(hello->peer.bytes, bytes, ID);
    memcpy(hello->peer_name, bytes + fixed, length);
    hello->peer_name[length] = '\0';
    *mac_p                   = bytes + fixed + length;
    return SHUNT_OK;
}

/* acceptor: PROOF -> WELCOME */
static shunt_status_t on_proof(shunt_hello_t *hello, const shunt_frame_t *frame,
                               const uint8_t *bytes, shunt_hello_out_t *out,
                               shunt_reason_t *reason)
{
    const shunt_hello_self_t *self = &hello->self;
    uint16_t name_length           = (uint16_t)strlen(self->name);
    const uint8_t *mac;

    hello->stream = shunt_wire_get32(bytes + ID);
    if (take_who(hello, frame, bytes, PROOF_FIXED, &mac, reason) != SHUNT_OK)
        return reason->status;
    if (check_mac(hello, CONNECTOR, mac, reason) != SHUNT_OK)
        return reason->status;
    memcpy(out->bytes, self->incarnation.bytes, ID);
    shunt_wire_put16(out->bytes + ID, name_length);
    memcpy(out->bytes + WELCOME_FIXED, self->name, name_length);
    if (make_mac(hello, ACCEPTOR, out->bytes + WELCOME_FIXED + name_length,
                 reason) != SHUNT_OK)
        return reason->status;
    out_init(out, SHUNT_FRAME_WELCOME,
             WELCOME_FIXED + (uint32_t)name_length + SHUNT_SECRET_MAC);
    hello->state = SHUNT_HELLO_DONE;
    return SHUNT_OK;
}

/* connector: WELCOME */
static shunt_status_t on_welcome(shunt_hello_t *hello,
                                 const shunt_frame_t *frame,
                                 const uint8_t *bytes, shunt_reason_t *reason)
{
    const uint8_t *mac;

    if (take_who(hello, frame, bytes, WELCOME_FIXED, &mac, reason) != SHUNT_OK)
        return reason->status;
    if (check_mac(hello, ACCEPTOR, mac, reason) != SHUNT_OK)
        return reason->status;
    hello->state = SHUNT_HELLO_DONE;
    return SHUNT_OK;
}

static shunt_status_t on_refuse(const shunt_frame_t *frame,
                                const uint8_t *bytes, shunt_reason_t *reason)
{
    shunt_reason_t told;

    shunt_frame_get_reason(bytes, frame->length, &told);
    /* a stranger may tell refusals only */
    if ((told.status != SHUNT_ERR_VERSION) &&
        (told.status != SHUNT_ERR_LIMIT) && (told.status != SHUNT_ERR_TIMEOUT))
        told.status = SHUNT_ERR_REJECT_HANDSHAKE;
    return shunt_reason_set(reason, told.status, "the peer refused: %.280s",
                            told.text);
}

static shunt_status_t step(shunt_hello_t *hello, const shunt_frame_t *frame,
                           const uint8_t *bytes, shunt_hello_out_t *out,
                           shunt_reason_t *reason)
{
    if (frame->type == SHUNT_FRAME_REFUSE)
        return on_refuse(frame, bytes, reason);
    if ((hello->state == SHUNT_HELLO_WAIT_HELLO) &&
        (frame->type == SHUNT_FRAME_HELLO))
        return on_hello(hello, bytes, out, reason);
    if ((hello->state == SHUNT_HELLO_WAIT_CHALLENGE) &&
        (frame->type == SHUNT_FRAME_CHALLENGE))
        return on_challenge(hello, bytes, out, reason);
    if ((hello->state == SHUNT_HELLO_WAIT_PROOF) &&
        (frame->type == SHUNT_FRAME_PROOF))
        return on_proof(hello, frame, bytes, out, reason);
    if ((hello->state == SHUNT_HELLO_WAIT_WELCOME) &&
        (frame->type == SHUNT_FRAME_WELCOME))
        return on_welcome(hello, frame, bytes, reason);
    return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                            "a frame of type %u came out of turn in hello",
                            frame->type);
}

shunt_status_t shunt_hello_step(shunt_hello_t *hello,
                                const shunt_frame_t *frame,
                                const uint8_t *bytes, shunt_hello_out_t *out,
                                shunt_reason_t *reason)
{
    shunt_status_t status;

    out->frame.type = 0;
    status          = step(hello, frame, bytes, out, reason);
    if (status == SHUNT_OK)
        return SHUNT_OK;
    hello->state    = SHUNT_HELLO_FAILED;
    out->frame.type = 0;
    if (frame->type != SHUNT_FRAME_REFUSE)
        shunt_hello_refuse(reason, out);
    return status;
}
