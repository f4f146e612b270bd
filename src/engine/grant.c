/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer asks of this engine as a target: to end a session for good, so
 * that nothing of it lands here any more. In the control thread, which may not
 * block: who finds the rail busy is told to ask again. */
#include "config.h"

#include <string.h>

#include "engine/core.h"

static shunt_log_part_t log_part = SHUNT_LOG_PART("grant");

static rail_t *rail_named(shunt_engine_t *engine, const uint8_t *name,
                          size_t length)
{
    uint32_t i;

    for (i = 0; i < engine->rail_count; i++)
        if ((strlen(engine->rails[i]->name) == length) &&
            (memcmp(engine->rails[i]->name, name, length) == 0))
            return engine->rails[i];
    return NULL;
}

/* `data`: the length of the rail's name, its name, the session's ticket
 * (shunt_fence_message()). */
shunt_status_t shunt_engine_grant(void *arg, const void *data, size_t length)
{
    shunt_engine_t *engine = arg;
    const uint8_t *bytes   = data;
    shunt_status_t status  = SHUNT_ERR_AGAIN;
    size_t name            = bytes[0];
    rail_t *rail;

    if ((length < 1 + name) || (length - 1 - name > SHUNT_XTICKET_MAX))
        return SHUNT_ERR_INVALID_ARGUMENT;
    rail = rail_named(engine, bytes + 1, name);
    if (rail == NULL)
        return SHUNT_ERR_INVALID_ARGUMENT;
    if (!shunt_rail_try(rail))
        return SHUNT_ERR_AGAIN;
    status = rail->transport->ops.fence(rail->xport, bytes + 1 + name,
                                        length - 1 - name);
    shunt_rail_release(rail);
    shunt_engine_wake(engine);
    if (status == SHUNT_ERR_AGAIN)
        return status;
    /* a transport may have rebuilt itself to get rid of the session */
    shunt_rail_refresh_address(rail);
    shunt_count(&engine->counts.refused, 1);
    shunt_log(&log_part, SHUNT_LOG_DEBUG, "%s: fence: %s", rail->name,
              shunt_status_text(status));
    return status;
}
