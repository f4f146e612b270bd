/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loaded before libshunt by bench_wrong.sh: makes one bit of the last byte of
 * a request wrong, in the third batch. WRONG_BYTE says in which direction.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

enum {
    BATCH = 3
};

static shunt_request_t last;
static int calls;

/* The real function of this name, behind this library. */
static void *behind(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static int wanted(shunt_opcode_t opcode)
{
    const char *which = getenv("WRONG_BYTE");

    return (calls == BATCH) && (which != NULL) && (last.opcode == opcode) &&
           (strcmp(which, (opcode == SHUNT_OP_READ) ? "read" : "write") == 0);
}

static void spoil(void)
{
    ((char *)last.local)[last.length - 1] ^= 0x40;
}

shunt_status_t shunt_batch_submit(shunt_engine_h engine, shunt_batch_t batch,
                                  const shunt_request_t *requests, size_t count)
{
    shunt_status_t (*submit)(shunt_engine_h, shunt_batch_t,
                             const shunt_request_t *, size_t);
    void *found = behind("shunt_batch_submit");

    memcpy(&submit, &found, sizeof(submit));
    last = requests[count - 1];
    calls++;
    if (wanted(SHUNT_OP_WRITE))
        spoil();
    return submit(engine, batch, requests, count);
}

shunt_status_t shunt_batch_wait(shunt_engine_h engine, shunt_batch_t batch,
                                int64_t timeout_us,
                                shunt_batch_status_t *status)
{
    shunt_status_t (*wait)(shunt_engine_h, shunt_batch_t, int64_t,
                           shunt_batch_status_t *);
    void *found = behind("shunt_batch_wait");
    shunt_status_t result;

    memcpy(&wait, &found, sizeof(wait));
    result = wait(engine, batch, timeout_us, status);
    if (wanted(SHUNT_OP_READ))
        spoil();
    return result;
}
