/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this process is: a loopback device reaches no further. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"
#include "ucx_bridge/ucx_bridge.h"

/* First line of a small file. */
static bool read_line(const char *path, char *text, int room)
{
    FILE *file = fopen(path, "re");
    bool ok;

    if (file == NULL)
        return false;
    ok = (fgets(text, room, file) != NULL);
    fclose(file);
    return ok;
}

static bool boot_id(uint8_t id[16])
{
    char text[64];
    unsigned nibbles = 0, value;
    const char *c;

    if (!read_line("/proc/sys/kernel/random/boot_id", text, sizeof(text)))
        return false;
    for (c = text; (*c != '\0') && (nibbles < 32); c++) {
        char digit[2] = { *c, '\0' };

        if (sscanf(digit, "%1x", &value) != 1)
            continue;
        id[nibbles / 2] = (uint8_t)((id[nibbles / 2] << 4) | value);
        nibbles++;
    }
    return nibbles == 32;
}

shunt_status_t shunt_ucx_host(ucx_wire_address_t *wire)
{
    struct stat st;

    if (!boot_id(wire->boot_id))
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "/proc/sys/kernel/random/boot_id"
                           " does not say which host this is: %m");
    if (stat("/proc/self/ns/net", &st) != 0)
        return shunt_error(SHUNT_ERR_CONTEXT, "/proc/self/ns/net: %m");
    wire->netns_dev = st.st_dev;
    wire->netns_ino = st.st_ino;
    return SHUNT_OK;
}

bool shunt_ucx_is_loopback(const char *device)
{
    static const unsigned long loopback = 0x8; /* IFF_LOOPBACK */
    char path[128], text[32];

    snprintf(path, sizeof(path), "/sys/class/net/%s/flags", device);
    if (!read_line(path, text, sizeof(text)))
        return strcmp(device, "lo") == 0;
    return (strtoul(text, NULL, 16) & loopback) != 0;
}

shunt_status_t shunt_ucx_random(void *bytes, size_t length)
{
    ssize_t got;

    do {
        got = getrandom(bytes, length, 0);
    } while ((got < 0) && (errno == EINTR));
    if (got != (ssize_t)length)
        return shunt_error(SHUNT_ERR_CONTEXT, "getrandom: %m");
    return SHUNT_OK;
}
