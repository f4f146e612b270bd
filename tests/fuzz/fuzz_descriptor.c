/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor's decoder. What it takes, the encoder writes and the decoder
 * takes again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "meta/descriptor.h"

const char fuzz_name[] = "descriptor";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    shunt_desc_t *desc, *again;
    char *json;
    size_t json_length;

    if (shunt_desc_decode((const char *)bytes, length, NULL, &desc) != SHUNT_OK)
        return 0;
    if ((shunt_desc_encode(desc, &json, &json_length) != SHUNT_OK) ||
        (shunt_desc_decode(json, json_length, desc->name, &again) != SHUNT_OK))
        abort();
    if ((again->region_count != desc->region_count) ||
        (again->rail_count != desc->rail_count) ||
        (strcmp(again->topology, desc->topology) != 0))
        abort();
    shunt_desc_free(again);
    shunt_desc_free(desc);
    free(json);
    return 0;
}
