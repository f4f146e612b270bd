/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"

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

/* 90497bca-e66f-44ec-a3da-1bd531b77468: hex digits, dashes skipped. */
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

shunt_status_t shunt_host_boot_id(uint8_t id[16])
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char text[64];

    if (!read_line(path, text, sizeof(text)))
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "%s does not say which host this is: %m (is /proc "
                           "mounted?)",
                           path);
    if (!parse_uuid(text, id))
        return shunt_error(SHUNT_ERR_CONTEXT,
                           "%s says \"%s\": 32 hex digits expected", path,
                           text);
    return SHUNT_OK;
}

shunt_status_t shunt_host_netns(uint64_t *dev_p, uint64_t *ino_p)
{
    struct stat st;

    if (stat("/proc/self/ns/net", &st) != 0)
        return shunt_error(SHUNT_ERR_CONTEXT, "/proc/self/ns/net: %m");
    *dev_p = st.st_dev;
    *ino_p = st.st_ino;
    return SHUNT_OK;
}

bool shunt_host_is_loopback(const char *interface)
{
    static const unsigned long loopback = 0x8; /* IFF_LOOPBACK */
    char path[128], text[32];

    snprintf(path, sizeof(path), "/sys/class/net/%.64s/flags", interface);
    if (!read_line(path, text, sizeof(text)))
        return strcmp(interface, "lo") == 0;
    return (strtoul(text, NULL, 16) & loopback) != 0;
}

shunt_status_t shunt_host_random(void *bytes, size_t length)
{
    size_t have = 0;
    ssize_t got;

    while (have < length) {
        got = getrandom((char *)bytes + have, length - have, 0);
        if ((got < 0) && (errno == EINTR))
            continue;
        if (got < 0)
            return shunt_error(SHUNT_ERR_CONTEXT, "getrandom: %m");
        have += (size_t)got;
    }
    return SHUNT_OK;
}
