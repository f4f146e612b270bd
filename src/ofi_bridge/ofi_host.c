/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this process is: a loopback device, or shared memory, reaches no
 * further. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"
#include "ofi_bridge/ofi_bridge.h"

/* First line of a small file. */
static bool first_line(const char *path, char *text, int room)
{
    FILE *file = fopen(path, "re");
    bool ok;

    if (file == NULL)
        return false;
    ok = (fgets(text, room, file) != NULL);
    fclose(file);
    return ok;
}

/* 32 hex digits with dashes between them. */
static bool parse_uuid(const char *text, uint8_t id[16])
{
    unsigned count = 0;

    while (count < 16) {
        unsigned value;
        int used = 0;

        text += strspn(text, "-");
        if ((sscanf(text, "%2x%n", &value, &used) != 1) || (used != 2))
            return false;
        id[count++] = (uint8_t)value;
        text += used;
    }
    return true;
}

shunt_status_t shunt_ofi_host(ofi_wire_address_t *wire)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char text[64];
    struct stat st;

    if (!first_line(path, text, sizeof(text)) ||
        !parse_uuid(text, wire->boot_id))
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "%s does not say which host this is: %m", path);
    if (stat("/proc/self/ns/net", &st) != 0)
        return shunt_error(SHUNT_ERR_CONTEXT, "/proc/self/ns/net: %m");
    wire->netns_dev = st.st_dev;
    wire->netns_ino = st.st_ino;
    return SHUNT_OK;
}

bool shunt_ofi_is_loopback(const char *interface)
{
    static const unsigned long loopback = 0x8; /* IFF_LOOPBACK */
    char path[128], text[32];

    snprintf(path, sizeof(path), "/sys/class/net/%.64s/flags", interface);
    if (!first_line(path, text, sizeof(text)))
        return strcmp(interface, "lo") == 0;
    return (strtoul(text, NULL, 16) & loopback) != 0;
}

shunt_status_t shunt_ofi_random(void *bytes, size_t length)
{
    ssize_t got;

    do {
        got = getrandom(bytes, length, 0);
    } while ((got < 0) && (errno == EINTR));
    if (got != (ssize_t)length)
        return shunt_error(SHUNT_ERR_CONTEXT, "getrandom: %m");
    return SHUNT_OK;
}
