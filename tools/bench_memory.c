/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that is moved, the same kind at both ends. */
#include "config.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum {
    AREA_ALIGN = 4096
};

static bool refuse(char text[BENCH_TEXT], const char *what, size_t length,
                   const char *why)
{
    snprintf(text, BENCH_TEXT, "cannot %s %zu bytes: %s", what, length, why);
    return false;
}

void bench_touch(char *addr, size_t length)
{
    size_t at;

    for (at = 0; at < length; at += AREA_ALIGN)
        addr[at] = 1;
}

static bool engine_area(shunt_engine_h engine, bench_area_t *area,
                        char text[BENCH_TEXT])
{
    void *addr;

    if (shunt_mem_alloc(engine, area->length, NULL, &addr) != SHUNT_OK)
        return refuse(text, "allocate", area->length, shunt_last_error());
    bench_touch(addr, area->length);
    area->addr = addr;
    return true;
}

static bool malloc_area(shunt_engine_h engine, bench_area_t *area,
                        char text[BENCH_TEXT])
{
    void *addr;

    if (posix_memalign(&addr, AREA_ALIGN, area->length) != 0)
        return refuse(text, "allocate", area->length, "out of memory");
    /* before it is registered, so that its node is known by then */
    bench_touch(addr, area->length);
    if (shunt_mem_register(engine, addr, area->length, NULL) != SHUNT_OK) {
        refuse(text, "register", area->length, shunt_last_error());
        free(addr);
        return false;
    }
    area->addr = addr;
    return true;
}

bool bench_area_get(shunt_engine_h engine, bench_mem_t mem, size_t length,
                    bench_area_t *area, char text[BENCH_TEXT])
{
    if ((length == 0) || (length > SIZE_MAX - AREA_ALIGN))
        return refuse(text, "allocate", length, "not a size");
    area->mem    = mem;
    area->length = (length + AREA_ALIGN - 1) & ~(size_t)(AREA_ALIGN - 1);
    return (mem == BENCH_ENGINE) ? engine_area(engine, area, text)
                                 : malloc_area(engine, area, text);
}

void bench_area_put(shunt_engine_h engine, bench_area_t *area)
{
    shunt_status_t status;

    if (area->addr == NULL)
        return;
    if (area->mem == BENCH_ENGINE) {
        status = shunt_mem_free(engine, area->addr);
    } else {
        status = shunt_mem_unregister(engine, area->addr);
        /* still in use by the engine: leaking it is the only safe way */
        if (status == SHUNT_OK)
            free(area->addr);
    }
    if (status != SHUNT_OK)
        fprintf(stderr, "shunt_bench: freeing memory: %s\n",
                shunt_last_error());
    area->addr = NULL;
}
