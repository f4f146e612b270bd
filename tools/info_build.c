/* SPDX-License-Identifier: BSD-3-Clause */
/* Version and build options. */
#include "config.h"
#include "info.h"
#include "text.h"

#include <stdio.h>

typedef struct option {
    const char *name;
    const char *value;
} option_t;

static const option_t options[] = {
    { "version of this tool", PACKAGE_VERSION },
    { "UCX bridge", SHUNT_BUILD_UCX },
    { "libfabric bridge", SHUNT_BUILD_OFI },
    { "hwloc", SHUNT_BUILD_HWLOC },
    { "sanitizer", SHUNT_BUILD_SANITIZER },
    { "module folder", SHUNT_MODULE_DIR },
    { "compiler", __VERSION__ },
};

void info_build(const info_t *info)
{
    size_t i;

    if (info->json) {
        fputs("{\"version\": ", stdout);
        text_json(stdout, shunt_version());
    } else {
        printf("shunt %s\n", shunt_version());
    }
    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (info->json) {
            fputs(", ", stdout);
            text_json(stdout, options[i].name);
            fputs(": ", stdout);
            text_json(stdout, options[i].value);
        } else {
            printf("  %-20s  %s\n", options[i].name, options[i].value);
        }
    }
    if (info->json)
        putchar('}');
}
