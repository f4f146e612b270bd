/* SPDX-License-Identifier: BSD-3-Clause */
/* The message protocol, the target's side: what comes in is checked against
 * the table of regions, as a network card would check its keys. */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

static void violated(ucx_guest_t *guest, const char *what)
{
    shunt_log(&shunt_ucx_log, SHUNT_LOG_WARN,
              "%s: a peer breaks the protocol (%s) and is sent away",
              guest->rail->device.name, what);
    guest->close = SHUNT_ERR_ENDPOINT;
    shunt_ucx_guest_attend(guest);
}

/* Copy the header of an operation, find whose it is. NULL: of a session that
 * is no more, or not to be served. */
static ucx_guest_t *find(ucx_rail_t *rail, const void *header, size_t length,
                         ucx_wire_op_t *wire)
{
    ucx_guest_t *guest;

    if (length != sizeof(*wire))
        return NULL;
    memcpy(wire, header, sizeof(*wire));
    guest = shunt_ucx_guest_find(rail, wire->session);
    if ((guest == NULL) || guest->gone || (guest->close != SHUNT_OK))
        return NULL;
    if (wire->frame != guest->frame) {
        violated(guest, "frames out of order");
        return NULL;
    }
    guest->frame++;
    return guest;
}

static shunt_status_t check(const ucx_rail_t *rail, const ucx_wire_op_t *wire,
                            shunt_opcode_t opcode, shunt_xmem_t **mem_p)
{
    shunt_xmem_t *mem = shunt_table_get(&rail->regions, wire->slot);
    uint64_t start;

    if ((mem == NULL) || (mem->cookie != wire->cookie))
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    start = (uint64_t)(uintptr_t)mem->addr;
    if ((wire->addr < start) || (wire->length > mem->length) ||
        (wire->addr - start > mem->length - wire->length))
        return SHUNT_ERR_ADDRESS_NOT_REGISTERED;
    if ((mem->access == SHUNT_ACCESS_LOCAL) ||
        ((mem->access == SHUNT_ACCESS_REMOTE_READ) &&
         (opcode == SHUNT_OP_WRITE)))
        return SHUNT_ERR_PERMISSION;
    *mem_p = mem;
    return SHUNT_OK;
}

static void refuse(ucx_guest_t *guest, const ucx_wire_op_t *wire,
                   shunt_opcode_t opcode, shunt_status_t status)
{
    ucx_reply_t *reply = shunt_ucx_guest_owe(guest, &guest->fails);

    if (reply == NULL)
        return;
    reply->number = wire->number;
    reply->opcode = opcode;
    reply->status = status;
}

static void replace(ucx_rail_t *rail, const ucx_wire_hello_t *hello)
{
    ucx_guest_t *guest;
    unsigned i;

    for (i = 0; i < UCX_WIRE_REPLACES; i++) {
        guest = hello->replaces[i] == 0
                    ? NULL
                    : shunt_ucx_guest_find(rail, hello->replaces[i]);
        if (guest == NULL)
            continue;
        guest->gone = true;
        shunt_ucx_guest_attend(guest);
    }
}

static ucs_status_t on_hello(void *arg, const void *header,
                             size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param)
{
    ucx_rail_t *rail = arg;
    ucx_wire_hello_t wire;
    shunt_blob_t blob;
    ucx_guest_t *guest;

    if ((header_length != sizeof(wire)) || (length > SHUNT_XADDR_MAX) ||
        ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) ||
        (shunt_blob_open(data, length, &shunt_ucx_address_kind, &blob,
                         sizeof(blob)) != SHUNT_OK))
        return UCS_OK;
    memcpy(&wire, header, sizeof(wire));
    replace(rail, &wire);
    guest = shunt_ucx_guest_find(rail, wire.session);
    if (guest != NULL) {
        violated(guest, "a second greeting");
        return UCS_OK;
    }
    guest = shunt_ucx_guest_create(rail, &wire, (char *)data + blob.header,
                                   length - blob.header);
    if (guest == NULL)
        return UCS_OK;
    if (wire.version < UCX_WIRE_VERSION)
        guest->close = SHUNT_ERR_VERSION;
    else if (wire.life != rail->life) /* meant for one who had this port */
        guest->close = SHUNT_ERR_ENDPOINT;
    return UCS_OK;
}

static ucs_status_t on_write(void *arg, const void *header,
                             size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *param)
{
    ucx_rail_t *rail = arg;
    ucx_wire_op_t wire;
    ucx_guest_t *guest = find(rail, header, header_length, &wire);
    shunt_xmem_t *mem;
    shunt_status_t status;

    if (guest == NULL)
        return UCS_OK;
    if ((wire.length != length) ||
        ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)) {
        violated(guest, "a length that is not true");
        return UCS_OK;
    }
    if (wire.number != guest->refused) {
        status = check(rail, &wire, SHUNT_OP_WRITE, &mem);
        if (status == SHUNT_OK) {
            memcpy(mem->addr + (wire.addr - (uint64_t)(uintptr_t)mem->addr),
                   data, length);
        } else {
            guest->refused = wire.number;
            refuse(guest, &wire, SHUNT_OP_WRITE, status);
        }
    }
    if ((wire.flags & UCX_WIRE_LAST) != 0) {
        guest->written = wire.number;
        shunt_ucx_guest_attend(guest);
    }
    return UCS_OK;
}

static ucs_status_t on_read(void *arg, const void *header, size_t header_length,
                            void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ucx_rail_t *rail = arg;
    ucx_wire_op_t wire;
    ucx_guest_t *guest = find(rail, header, header_length, &wire);
    shunt_xmem_t *mem;
    shunt_status_t status;
    ucx_reply_t *reply;

    (void)data;
    (void)length;
    (void)param;
    if (guest == NULL)
        return UCS_OK;
    status = wire.length == 0 ? SHUNT_ERR_INVALID_ARGUMENT
                              : check(rail, &wire, SHUNT_OP_READ, &mem);
    if (status != SHUNT_OK) {
        refuse(guest, &wire, SHUNT_OP_READ, status);
        return UCS_OK;
    }
    reply = shunt_ucx_guest_owe(guest, &guest->reads);
    if (reply == NULL)
        return UCS_OK;
    reply->region = mem;
    reply->from   = mem->addr + (wire.addr - (uint64_t)(uintptr_t)mem->addr);
    reply->length = wire.length;
    reply->number = wire.number;
    reply->opcode = SHUNT_OP_READ;
    return UCS_OK;
}

static ucs_status_t on_bye(void *arg, const void *header, size_t header_length,
                           void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    ucx_wire_op_t wire;
    ucx_guest_t *guest = find(arg, header, header_length, &wire);

    (void)data;
    (void)length;
    (void)param;
    if (guest != NULL) {
        guest->gone = true;
        shunt_ucx_guest_attend(guest);
    }
    return UCS_OK;
}

shunt_status_t shunt_ucx_serve_init(ucx_rail_t *rail)
{
    static const struct {
        unsigned id;
        ucp_am_recv_callback_t fn;
    } handlers[]          = { { UCX_FRAME_HELLO, on_hello },
                              { UCX_FRAME_WRITE, on_write },
                              { UCX_FRAME_READ, on_read },
                              { UCX_FRAME_BYE, on_bye } };
    shunt_status_t status = SHUNT_OK;
    unsigned i;

    for (i = 0;
         (i < sizeof(handlers) / sizeof(handlers[0])) && (status == SHUNT_OK);
         i++)
        status =
            shunt_ucx_handle(rail->serve, handlers[i].id, handlers[i].fn, rail);
    return status;
}

unsigned shunt_ucx_serve_run(ucx_rail_t *rail)
{
    shunt_link_t work;
    ucx_guest_t *guest;
    unsigned count = 0;

    shunt_list_init(&work);
    shunt_list_splice(&work, &rail->guest_work);
    while (!shunt_list_empty(&work)) {
        guest = SHUNT_OF(work.next, ucx_guest_t, work);
        shunt_list_remove(&guest->work);
        count += shunt_ucx_guest_run(guest);
    }
    return count;
}

void shunt_ucx_serve_forget(ucx_rail_t *rail, const shunt_xmem_t *region)
{
    shunt_link_t *at, *link, *next;
    ucx_guest_t *guest;
    ucx_reply_t *reply;

    for (at = rail->guests.next; at != &rail->guests; at = at->next) {
        guest = SHUNT_OF(at, ucx_guest_t, link);
        for (link = guest->reads.next; link != &guest->reads; link = next) {
            next  = link->next;
            reply = SHUNT_OF(link, ucx_reply_t, link);
            if (reply->region != region)
                continue;
            reply->status = SHUNT_ERR_ADDRESS_NOT_REGISTERED;
            shunt_list_remove(link);
            shunt_list_append(&guest->fails, link);
        }
    }
}

void shunt_ucx_serve_cleanup(ucx_rail_t *rail)
{
    while (!shunt_list_empty(&rail->guests))
        shunt_ucx_guest_destroy(SHUNT_OF(rail->guests.next, ucx_guest_t, link));
}
