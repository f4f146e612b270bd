/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and texts of statuses and states, from their tables in types.h. */
#include "config.h"

#include <shunt/engine.h>

const char *shunt_version(void)
{
    return PACKAGE_VERSION;
}

/* "ERR_BATCH_BUSY" without its prefix; "OK" has none. */
static const char *bare_name(const char *name)
{
    static const char prefix[] = "ERR_";
    size_t i;

    for (i = 0; i < sizeof(prefix) - 1; i++) {
        if (name[i] != prefix[i])
            return name;
    }
    return name + i;
}

const char *shunt_status_name(shunt_status_t status)
{
    switch (status) {
#define STATUS_NAME(_name, _value, _text) \
    case SHUNT_##_name:                   \
        return bare_name(#_name);
        SHUNT_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    default:
        return "UNKNOWN";
    }
}

const char *shunt_status_text(shunt_status_t status)
{
    switch (status) {
#define STATUS_TEXT(_name, _value, _text) \
    case SHUNT_##_name:                   \
        return _text;
        SHUNT_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    default:
        return "unknown status";
    }
}

const char *shunt_state_name(shunt_state_t state)
{
    switch (state) {
#define STATE_NAME(_name, _value, _text) \
    case SHUNT_STATE_##_name:            \
        return #_name;
        SHUNT_STATE_MAP(STATE_NAME)
#undef STATE_NAME
    default:
        return "UNKNOWN";
    }
}
