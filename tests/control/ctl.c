/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/ident.h"

enum {
    PATIENCE_S = 30,
    NOT_YET    = 0x7fffffff
};

void ctl_pause(unsigned ms)
{
    struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };

    nanosleep(&pause, NULL);
}

void ctl_wait(bool (*is_so)(void *arg), void *arg, const char *what)
{
    uint64_t until = shunt_clock_ns() + PATIENCE_S * UINT64_C(1000000000);

    while (!is_so(arg)) {
        if (shunt_clock_ns() > until)
            fail_msg("waited in vain for: %s", what);
        ctl_pause(1);
    }
}

uint64_t ctl_in(int64_t ms)
{
    return shunt_clock_deadline(ms < 0 ? -1 : ms * 1000);
}

/* ---- a channel -------------------------------------------------------- */

static char pattern(size_t i)
{
    return i == 0 ? '{' : (char)('a' + i % 23);
}

bool ctl_descriptor_good(const char *json, size_t length)
{
    size_t i;

    for (i = 0; i < length; i++) {
        if (json[i] != pattern(i))
            return false;
    }
    return json[length] == '\0';
}

static shunt_status_t describe(void *arg, char **json_p, size_t *length_p)
{
    ctl_t *ctl = arg;
    char *json;
    size_t i;

    atomic_fetch_add_explicit(&ctl->described, 1, memory_order_relaxed);
    if (ctl->describe_bytes == 0)
        return SHUNT_ERR_METADATA;
    json = malloc(ctl->describe_bytes);
    if (json == NULL)
        return SHUNT_ERR_MEMORY;
    for (i = 0; i < ctl->describe_bytes; i++)
        json[i] = pattern(i);
    *json_p   = json;
    *length_p = ctl->describe_bytes;
    return SHUNT_OK;
}

/* The first byte says what is answered, the second how often not yet. */
static shunt_status_t fence(void *arg, const void *data, size_t length)
{
    ctl_t *ctl           = arg;
    const uint8_t *bytes = data;
    unsigned asked       = atomic_fetch_add(&ctl->fences, 1) + 1;

    if ((length > 1) && (asked <= bytes[1]))
        return SHUNT_ERR_AGAIN;
    return bytes[0] == 0 ? SHUNT_OK : SHUNT_ERR_INVALID_ARGUMENT;
}

static void notified(void *arg)
{
    ctl_t *ctl = arg;

    atomic_fetch_add_explicit(&ctl->notified, 1, memory_order_relaxed);
}

static void peer_gone(void *arg, const char *address,
                      const shunt_incarnation_t *life, bool certain)
{
    ctl_t *ctl = arg;

    pthread_mutex_lock(&ctl->lock);
    ctl->gone_count++;
    ctl->gone_life    = *life;
    ctl->gone_certain = certain;
    snprintf(ctl->gone_address, sizeof(ctl->gone_address), "%s", address);
    pthread_mutex_unlock(&ctl->lock);
}

unsigned ctl_gone(ctl_t *ctl, shunt_incarnation_t *life)
{
    unsigned count;

    pthread_mutex_lock(&ctl->lock);
    count = ctl->gone_count;
    if (life != NULL)
        *life = ctl->gone_life;
    pthread_mutex_unlock(&ctl->lock);
    return count;
}

shunt_status_t ctl_try_open(ctl_t *ctl, const char *host, uint16_t port)
{
    shunt_control_opts_t opts = { .host = host, .port = port };
    shunt_status_t status;

    memset(ctl, 0, sizeof(*ctl));
    pthread_mutex_init(&ctl->lock, NULL);
    ctl->describe_bytes = 100;
    assert_int_equal(shunt_ident_make(&ctl->incarnation), SHUNT_OK);
    opts.incarnation  = ctl->incarnation;
    opts.up.arg       = ctl;
    opts.up.describe  = describe;
    opts.up.fence     = fence;
    opts.up.notified  = notified;
    opts.up.peer_gone = peer_gone;
    status            = shunt_control_open(&opts, &ctl->control);
    if (status != SHUNT_OK)
        return status;
    snprintf(ctl->address, sizeof(ctl->address), "%s",
             shunt_control_address(ctl->control));
    shunt_control_serve(ctl->control, ctl->address);
    return SHUNT_OK;
}

void ctl_open(ctl_t *ctl)
{
    if (ctl_try_open(ctl, "127.0.0.1", 0) != SHUNT_OK)
        fail_msg("no control channel: %s", shunt_last_error());
}

void ctl_close(ctl_t *ctl)
{
    shunt_control_close(ctl->control);
    pthread_mutex_destroy(&ctl->lock);
}

shunt_status_t ctl_fetch(ctl_t *ctl, const char *address, int64_t ms)
{
    shunt_incarnation_t life;
    shunt_status_t status;
    char *json;
    size_t length;

    status = shunt_control_fetch(ctl->control, address, ctl_in(ms), &json,
                                 &length, &life);
    if (status == SHUNT_OK) {
        assert_true(ctl_descriptor_good(json, length));
        free(json);
    }
    return status;
}

shunt_status_t ctl_probe(ctl_t *ctl, const char *address, int64_t ms)
{
    return shunt_control_probe(ctl->control, address, ctl_in(ms));
}

/* ---- notifications ---------------------------------------------------- */

static void note_ended(void *arg, shunt_status_t status)
{
    note_t *note = arg;

    /* release: pairs with the acquire in ended() */
    atomic_store_explicit(&note->status, (int)status, memory_order_relaxed);
    atomic_fetch_add_explicit(&note->ended, 1, memory_order_release);
}

shunt_status_t note_send(ctl_t *from, to_t to, const void *data, size_t length,
                         int64_t ms, note_t *note)
{
    atomic_store(&note->ended, 0);
    atomic_store(&note->status, NOT_YET);
    return shunt_control_notify(from->control, to.address, to.life, data,
                                length, ctl_in(ms), note_ended, note,
                                &note->ticket);
}

static bool ended(void *arg)
{
    note_t *note = arg;

    return atomic_load_explicit(&note->ended, memory_order_acquire) > 0;
}

shunt_status_t note_wait(note_t *note)
{
    ctl_wait(ended, note, "the end of a notification");
    assert_int_equal(atomic_load(&note->ended), 1);
    return (shunt_status_t)atomic_load(&note->status);
}

const char *ctl_poll(ctl_t *ctl, char text[256])
{
    size_t length = 255;
    shunt_status_t status;

    status =
        shunt_control_notify_poll(ctl->control, text, &length, NULL, 0, NULL);
    if (status == SHUNT_ERR_EMPTY)
        length = 0;
    else
        assert_int_equal(status, SHUNT_OK);
    text[length] = '\0';
    return text;
}

unsigned number_of(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if ((end == text) || (*end != '\0') || (value > UINT32_MAX))
        fail_msg("'%s' is no number", text);
    return (unsigned)value;
}

uint16_t port_of(const char *address)
{
    return (uint16_t)number_of(strrchr(address, ':') + 1);
}
