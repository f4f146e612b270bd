/* SPDX-License-Identifier: BSD-3-Clause */
/* Read another process's memory. It does not notice.
 *   get "text"      serve the text until end of input: print a name
 *   get -r NAME     read what that one serves, and print it */
#include <shunt/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM = 4096
};

/* Every failed call of Shunt leaves a sentence. */
static void check(shunt_status_t status)
{
    if (status == SHUNT_OK)
        return;
    fprintf(stderr, "get: %s\n", shunt_last_error());
    exit(1);
}

/* Others may read this memory and not write it. */
static int serve(shunt_engine_h engine, char *text)
{
    shunt_mem_opts_t readable = { .size   = sizeof(readable),
                                  .access = SHUNT_ACCESS_REMOTE_READ };
    shunt_engine_attr_t me    = { .size = sizeof(me) };

    check(shunt_mem_register(engine, text, strlen(text) + 1, &readable));
    check(shunt_engine_query(engine, &me));
    printf("%s\n", me.name);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    check(shunt_mem_unregister(engine, text));
    return 0;
}

static int read_from(shunt_engine_h engine, const char *name)
{
    static char memory[ROOM];
    shunt_request_t request  = { .opcode = SHUNT_OP_READ, .local = memory };
    shunt_batch_status_t end = { .size = sizeof(end) };
    shunt_region_t region    = { .addr = 0 };
    size_t regions           = 1;
    shunt_batch_t batch;

    check(shunt_mem_register(engine, memory, ROOM, NULL));
    check(shunt_segment_open(engine, name, &request.segment));
    check(shunt_segment_regions(engine, request.segment, &region, &regions));
    request.remote = region.addr;
    request.length = region.length < ROOM ? region.length : ROOM - 1;
    check(shunt_batch_alloc(engine, 1, NULL, &batch));
    check(shunt_batch_submit(engine, batch, &request, 1));
    check(shunt_batch_wait(engine, batch, -1, &end));
    check(shunt_batch_free(engine, batch));
    printf("%s: %s\n", shunt_state_name(end.state), memory);
    return end.state == SHUNT_STATE_COMPLETED ? 0 : 1;
}

int main(int argc, char **argv)
{
    shunt_engine_h engine;
    int code;

    if (argc < 2) {
        fprintf(stderr, "usage: get TEXT | get -r NAME\n");
        return 2;
    }
    check(shunt_engine_create(NULL, NULL, NULL, &engine));
    code = argc == 3 ? read_from(engine, argv[2]) : serve(engine, argv[1]);
    check(shunt_engine_destroy(engine));
    return code;
}
