/* SPDX-License-Identifier: BSD-3-Clause */
/* Write into another process's memory, and tell it.
 *   put               be the target: print a name, wait, print what came
 *   put NAME "text"   write the text into that target's memory */
#include <shunt/engine.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROOM = 4096
};

/* Every failed call of Shunt leaves a sentence. */
static void check(shunt_status_t status)
{
    if (status == SHUNT_OK)
        return;
    fprintf(stderr, "put: %s\n", shunt_last_error());
    exit(1);
}

/* The bytes come without our help; the notification says that they are here. */
static int target(shunt_engine_h engine, const char *memory)
{
    shunt_engine_attr_t me = { .size = sizeof(me) };
    struct pollfd event    = { .events = POLLIN };
    shunt_status_t status;
    char note[16];
    size_t length;

    check(shunt_engine_event_fd(engine, &event.fd));
    check(shunt_engine_query(engine, &me));
    printf("%s\n", me.name);
    fflush(stdout);
    do {
        poll(&event, 1, -1);
        check(shunt_engine_event_clear(engine));
        length = sizeof(note);
        status = shunt_notify_poll(engine, note, &length, NULL);
    } while (status == SHUNT_ERR_EMPTY);
    check(status);
    printf("%s\n", memory);
    return 0;
}

static int initiator(shunt_engine_h engine, char *memory, char **words)
{
    shunt_request_t request  = { .opcode = SHUNT_OP_WRITE, .local = memory };
    shunt_notify_t notify    = { .data = "done", .length = 4 };
    shunt_batch_status_t end = { .size = sizeof(end) };
    shunt_region_t region    = { .addr = 0 };
    size_t regions           = 1;
    shunt_batch_t batch;

    request.length = (size_t)snprintf(memory, ROOM, "%s", words[2]) + 1;
    check(shunt_segment_open(engine, words[1], &request.segment));
    check(shunt_segment_regions(engine, request.segment, &region, &regions));
    request.remote = region.addr;
    notify.segment = request.segment;
    check(shunt_batch_alloc(engine, 1, NULL, &batch));
    check(shunt_batch_submit_notify(engine, batch, &request, 1, &notify));
    check(shunt_batch_wait(engine, batch, -1, &end));
    check(shunt_batch_free(engine, batch));
    printf("%s\n", shunt_state_name(end.state));
    return end.state == SHUNT_STATE_COMPLETED ? 0 : 1;
}

int main(int argc, char **argv)
{
    shunt_engine_h engine;
    void *memory;
    int code;

    check(shunt_engine_create(NULL, NULL, NULL, &engine));
    check(shunt_mem_alloc(engine, ROOM, NULL, &memory)); /* zeroed */
    code = argc == 3 ? initiator(engine, memory, argv) : target(engine, memory);
    check(shunt_engine_destroy(engine));
    return code;
}
