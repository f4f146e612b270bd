/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "control/frame.h"

#include <stddef.h>
#include <string.h>

#include "control/wire.h"

/* The header as it is on the wire, to hold the offsets fast. */
typedef struct wire_head {
    uint8_t magic[4];
    uint8_t version[2];
    uint8_t type[2];
    uint8_t length[4];
    uint8_t reserved[4];
    uint8_t id[8];
} wire_head_t;

_Static_assert(sizeof(wire_head_t) == SHUNT_FRAME_HEAD, "frame header");
_Static_assert(offsetof(wire_head_t, length) == 8, "frame header");
_Static_assert(offsetof(wire_head_t, id) == 16, "frame header");

static const uint8_t magic[4] = { 'S', 'H', 'N', 'T' };

typedef struct kind {
    uint16_t type;
    unsigned from;
    uint32_t min; /* bytes */
    uint32_t max;
    const char *name;
} kind_t;

/* clang-format off */
static const kind_t kinds[] = {
    { SHUNT_FRAME_HELLO, SHUNT_FRAME_CONNECTOR_HELLO, 36,
      SHUNT_FRAME_HELLO_MAX, "hello" },
    { SHUNT_FRAME_CHALLENGE, SHUNT_FRAME_ACCEPTOR_HELLO, 36,
      SHUNT_FRAME_HELLO_MAX, "challenge" },
    { SHUNT_FRAME_PROOF, SHUNT_FRAME_CONNECTOR_HELLO, 54,
      SHUNT_FRAME_HELLO_MAX, "proof" },
    { SHUNT_FRAME_WELCOME, SHUNT_FRAME_ACCEPTOR_HELLO, 50,
      SHUNT_FRAME_HELLO_MAX, "welcome" },
    { SHUNT_FRAME_REFUSE, SHUNT_FRAME_CONNECTOR_HELLO |
      SHUNT_FRAME_ACCEPTOR_HELLO, 4, SHUNT_FRAME_HELLO_MAX, "refuse" },
    { SHUNT_FRAME_FETCH, SHUNT_FRAME_CONNECTOR, 0, 0, "fetch" },
    { SHUNT_FRAME_DESCRIPTOR, SHUNT_FRAME_ACCEPTOR, 1, SHUNT_FRAME_DESC_MAX,
      "descriptor" },
    { SHUNT_FRAME_ERROR, SHUNT_FRAME_ACCEPTOR, 4, SHUNT_FRAME_HELLO_MAX,
      "error" },
    { SHUNT_FRAME_PROBE, SHUNT_FRAME_CONNECTOR, 0, 0, "probe" },
    { SHUNT_FRAME_ALIVE, SHUNT_FRAME_ACCEPTOR, 0, 0, "alive" },
    { SHUNT_FRAME_FENCE, SHUNT_FRAME_CONNECTOR, 17, SHUNT_FRAME_FENCE_MAX,
      "fence" },
    { SHUNT_FRAME_FENCED, SHUNT_FRAME_ACCEPTOR, 0, 0, "fenced" },
    { SHUNT_FRAME_NOTIFY, SHUNT_FRAME_CONNECTOR, 1, SHUNT_NOTIFY_MAX,
      "notify" },
    { SHUNT_FRAME_ACK, SHUNT_FRAME_ACCEPTOR, 0, 0, "ack" },
    { SHUNT_FRAME_REVOKE, SHUNT_FRAME_CONNECTOR, 0, 0, "revoke" },
    { SHUNT_FRAME_REVOKED, SHUNT_FRAME_ACCEPTOR, 4, 4, "revoked" }
};
/* clang-format on */

static const kind_t *kind_of(uint16_t type)
{
    size_t i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].type == type)
            return &kinds[i];
    }
    return NULL;
}

void shunt_frame_encode(const shunt_frame_t *frame,
                        uint8_t head[SHUNT_FRAME_HEAD])
{
    memset(head, 0, SHUNT_FRAME_HEAD);
    memcpy(head, magic, sizeof(magic));
    shunt_wire_put16(head + offsetof(wire_head_t, version),
                     SHUNT_FRAME_VERSION);
    shunt_wire_put16(head + offsetof(wire_head_t, type), frame->type);
    shunt_wire_put32(head + offsetof(wire_head_t, length), frame->length);
    shunt_wire_put64(head + offsetof(wire_head_t, id), frame->id);
}

static shunt_status_t check_kind(const shunt_frame_t *frame, unsigned from,
                                 shunt_reason_t *reason)
{
    const kind_t *kind = kind_of(frame->type);

    if (kind == NULL)
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "a frame of unknown type %u came",
                                (unsigned)frame->type);
    if ((kind->from & from) == 0)
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "a frame of type %s came where none is due",
                                kind->name);
    if ((frame->length < kind->min) || (frame->length > kind->max))
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "a frame of type %s has %u bytes, allowed are "
                                "%u to %u",
                                kind->name, frame->length, kind->min,
                                kind->max);
    return SHUNT_OK;
}

shunt_status_t shunt_frame_decode(const uint8_t head[SHUNT_FRAME_HEAD],
                                  unsigned from, shunt_frame_t *frame,
                                  shunt_reason_t *reason)
{
    uint16_t version = shunt_wire_get16(head + offsetof(wire_head_t, version));

    if (memcmp(head, magic, sizeof(magic)) != 0)
        return shunt_reason_set(reason, SHUNT_ERR_SOCKET,
                                "what came is not a frame of Shunt");
    if (version != SHUNT_FRAME_VERSION)
        return shunt_reason_set(reason, SHUNT_ERR_VERSION,
                                "frames of version %u came, version %u is "
                                "spoken here: use the same major version of "
                                "Shunt at both ends",
                                (unsigned)version,
                                (unsigned)SHUNT_FRAME_VERSION);
    frame->type   = shunt_wire_get16(head + offsetof(wire_head_t, type));
    frame->length = shunt_wire_get32(head + offsetof(wire_head_t, length));
    frame->id     = shunt_wire_get64(head + offsetof(wire_head_t, id));
    return check_kind(frame, from, reason);
}

uint32_t shunt_frame_put_reason(const shunt_reason_t *reason, uint8_t *at,
                                uint32_t room)
{
    uint32_t length = (uint32_t)strnlen(reason->text, room - 4);

    shunt_wire_put32(at, (uint32_t)reason->status);
    memcpy(at + 4, reason->text, length);
    return 4 + length;
}

/* A status of this table; one that is not becomes SOCKET. */
static shunt_status_t known_status(uint32_t value)
{
    /* clang-format off */
    switch ((int32_t)value) {
#define KNOWN(name, number, text) case SHUNT_##name:
    SHUNT_STATUS_MAP(KNOWN)
#undef KNOWN
        return (shunt_status_t)(int32_t)value;
    default:
        return SHUNT_ERR_SOCKET;
    }
    /* clang-format on */
}

void shunt_frame_get_reason(const uint8_t *at, uint32_t length,
                            shunt_reason_t *reason)
{
    uint32_t i;

    reason->status = known_status(shunt_wire_get32(at));
    /* the text goes to a terminal: printable ASCII only */
    for (i = 0; (i + 4 < length) && (i + 1 < SHUNT_REASON_TEXT); i++)
        reason->text[i] =
            (at[i + 4] >= 0x20) && (at[i + 4] < 0x7f) ? (char)at[i + 4] : '?';
    reason->text[i] = '\0';
}
