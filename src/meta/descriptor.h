/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment descriptor and its JSON, as told to peers and to stores. */
#ifndef SHUNT_META_DESCRIPTOR_H
#define SHUNT_META_DESCRIPTOR_H

#include <shunt/types.h>

enum {
    SHUNT_DESC_VERSION = 1
};

typedef struct shunt_desc_rail {
    char rail[64];   /* "ucx:mlx5_0:1", "shm" */
    char device[48]; /* "mlx5_0" */
    const uint8_t *address;
    size_t address_length;
} shunt_desc_rail_t;

typedef struct shunt_desc_key {
    uint32_t rail; /* index into rails */
    uint32_t length;
    const uint8_t *bytes;
} shunt_desc_key_t;

typedef struct shunt_desc_region {
    uint64_t addr;
    uint64_t length;
    shunt_access_t access; /* LOCAL regions are not told */
    char location[32];
    shunt_desc_key_t *keys;
    uint32_t key_count;
} shunt_desc_region_t;

/* Made by shunt_desc_decode() in one allocation tree; or filled by hand for
 * encoding, then everything is the caller's. */
typedef struct shunt_desc {
    char name[SHUNT_NAME_MAX + 1];
    shunt_incarnation_t incarnation;
    uint64_t revision; /* of the regions */
    char **control;    /* addresses, best first */
    uint32_t control_count;
    shunt_desc_rail_t *rails;
    uint32_t rail_count;
    shunt_desc_region_t *regions; /* in address order */
    uint32_t region_count;
    char *topology; /* the priority matrix, JSON text */
} shunt_desc_t;

/* JSON text, malloc'ed. */
shunt_status_t shunt_desc_encode(const shunt_desc_t *desc, char **json_p,
                                 size_t *length_p);

/*
 * Decode and check: refuses an empty name, one other than `name` (NULL: any),
 * a version above ours (VERSION), address 0, length 0, overflow, overlapping
 * regions, keys of rails that are not there, bad base64, too long addresses
 * or keys, a bad priority matrix. MALFORMED_JSON with a sentence that names
 * the field. Unknown fields are skipped.
 */
shunt_status_t shunt_desc_decode(const char *json, size_t length,
                                 const char *name, shunt_desc_t **desc_p);

void shunt_desc_free(shunt_desc_t *desc);

#endif
