/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target: gives each initiator the memory it asks for, fills and checks it
 * on request. Everything else, the transfers themselves, it does not notice.
 */
#include "config.h"
#include "bench.h"

#include <string.h>
#include <unistd.h>

enum {
    CLIENTS_MAX     = 64,
    ANSWER_LIMIT_US = 10 * 1000 * 1000,
    PROBE_LIMIT_US  = 500 * 1000
};

typedef struct client {
    char name[SHUNT_NAME_MAX + 1]; /* "": free */
    shunt_incarnation_t incarnation;
    shunt_segment_t segment;
    bench_area_t area;
} client_t;

typedef struct target {
    shunt_engine_h engine;
    client_t clients[CLIENTS_MAX];
} target_t;

static void client_drop(target_t *target, client_t *client)
{
    bench_area_put(target->engine, &client->area);
    (void)shunt_segment_close(target->engine, client->segment);
    client->name[0] = '\0';
}

static client_t *client_find(target_t *target, const shunt_notify_from_t *from)
{
    unsigned i;

    for (i = 0; i < CLIENTS_MAX; i++) {
        if ((strcmp(target->clients[i].name, from->name) == 0) &&
            (memcmp(&target->clients[i].incarnation, &from->incarnation,
                    sizeof(from->incarnation)) == 0))
            return &target->clients[i];
    }
    return NULL;
}

/* Those who died without a word still hold memory: who does not answer, and
 * who had the newcomer's name in an earlier life. */
static void clients_sweep(target_t *target, const char *newcomer)
{
    client_t *client;
    unsigned i;

    for (i = 0; i < CLIENTS_MAX; i++) {
        client = &target->clients[i];
        if (client->name[0] == '\0')
            continue;
        if ((strcmp(client->name, newcomer) == 0) ||
            (shunt_peer_probe(target->engine, client->name, PROBE_LIMIT_US) !=
             SHUNT_OK))
            client_drop(target, client);
    }
}

static client_t *client_add(target_t *target, const shunt_notify_from_t *from)
{
    client_t *client = NULL;
    unsigned i;

    clients_sweep(target, from->name);
    for (i = 0; (client == NULL) && (i < CLIENTS_MAX); i++) {
        if (target->clients[i].name[0] == '\0')
            client = &target->clients[i];
    }
    if ((client == NULL) || (shunt_segment_open(target->engine, from->name,
                                                &client->segment) != SHUNT_OK))
        return NULL;
    memset(&client->area, 0, sizeof(client->area));
    memcpy(client->name, from->name, sizeof(client->name));
    client->incarnation = from->incarnation;
    return client;
}

static void refuse(wire_answer_t *answer, const char *why)
{
    answer->ok = 0;
    snprintf(answer->text, sizeof(answer->text), "%.*s", WIRE_TEXT - 1, why);
}

static void serve_setup(target_t *target, client_t *client,
                        const wire_request_t *request, wire_answer_t *answer)
{
    char text[BENCH_TEXT];

    bench_area_put(target->engine, &client->area);
    if ((request->mem > BENCH_MALLOC) ||
        !bench_area_get(target->engine, (bench_mem_t)request->mem,
                        request->range.length, &client->area, text)) {
        refuse(answer, (request->mem > BENCH_MALLOC) ? "no such memory" : text);
        return;
    }
    answer->value[0] = (uint64_t)(uintptr_t)client->area.addr;
}

/* Is the range inside the client's memory? Careful with overflows: the
 * numbers came over the network. */
static bool range_fits(const bench_area_t *area, const bench_range_t *range)
{
    uint64_t room;

    if ((area->addr == NULL) || (range->count == 0) || (range->length == 0) ||
        (range->offset > area->length) ||
        (range->length > area->length - range->offset))
        return false;
    room = area->length - range->offset - range->length;
    return (range->stride == 0) || (range->count - 1 <= room / range->stride);
}

static void serve_check(const client_t *client, const wire_request_t *request,
                        wire_answer_t *answer)
{
    bench_bad_t bad;

    if (bench_check(client->area.addr, request->sequence, &request->range,
                    &bad))
        return;
    answer->ok       = 0;
    answer->value[0] = bad.offset;
    answer->value[1] = bad.expected;
    answer->value[2] = bad.found;
    answer->value[3] = bad.sequence;
    snprintf(answer->text, sizeof(answer->text), "wrong byte");
}

static void serve(target_t *target, client_t *client,
                  const wire_request_t *request, wire_answer_t *answer)
{
    answer->ok = 1;
    switch (request->kind) {
    case WIRE_SETUP:
        serve_setup(target, client, request, answer);
        break;
    case WIRE_USAGE:
        answer->value[0] = bench_cpu_us();
        answer->value[1] = bench_now() / 1000;
        break;
    case WIRE_FILL:
    case WIRE_CHECK:
        if (!range_fits(&client->area, &request->range))
            refuse(answer, "a range outside the memory that was set up");
        else if (request->kind == WIRE_CHECK)
            serve_check(client, request, answer);
        else
            bench_fill(client->area.addr, request->sequence, &request->range);
        break;
    default:
        refuse(answer, "a request that this version does not know");
        break;
    }
}

static void answer_send(target_t *target, client_t *client,
                        const wire_answer_t *answer)
{
    shunt_notify_t notify = { client->segment, answer, sizeof(*answer) };

    if (shunt_notify_send(target->engine, &notify, ANSWER_LIMIT_US) == SHUNT_OK)
        return;
    fprintf(stderr, "shunt_bench: initiator %s is gone: %s\n", client->name,
            shunt_last_error());
    client_drop(target, client);
}

static void handle(target_t *target, const wire_request_t *request,
                   const shunt_notify_from_t *from)
{
    wire_answer_t answer = { .magic   = WIRE_MAGIC,
                             .version = WIRE_VERSION,
                             .kind    = request->kind,
                             .tag     = request->tag };
    client_t *client     = client_find(target, from);

    if (request->kind == WIRE_BYE) {
        if (client != NULL)
            client_drop(target, client);
        return;
    }
    if (client == NULL)
        client = client_add(target, from);
    if (client == NULL) {
        fprintf(stderr, "shunt_bench: cannot serve %s: %s\n", from->name,
                shunt_last_error());
        return;
    }
    serve(target, client, request, &answer);
    answer_send(target, client, &answer);
}

/* False: nothing there. */
static bool handle_one(target_t *target)
{
    static char buffer[SHUNT_NOTIFY_MAX];
    shunt_notify_from_t from = { .size = sizeof(from) };
    wire_request_t request;
    size_t length = sizeof(buffer);

    if (shunt_notify_poll(target->engine, buffer, &length, &from) != SHUNT_OK)
        return false;
    memcpy(&request, buffer, sizeof(request));
    if ((length != sizeof(request)) || (request.magic != WIRE_MAGIC) ||
        (request.version != WIRE_VERSION))
        fprintf(stderr,
                "shunt_bench: %s sent %zu bytes that are no request of this "
                "version\n",
                from.name, length);
    else
        handle(target, &request, &from);
    return true;
}

static bool announce(target_t *target, int name_fd)
{
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    char line[SHUNT_NAME_MAX + 2];
    int length;

    if (shunt_engine_query(target->engine, &attr) != SHUNT_OK)
        return false;
    length = snprintf(line, sizeof(line), "%s\n", attr.name);
    if (write((name_fd < 0) ? STDOUT_FILENO : name_fd, line, (size_t)length) !=
        length)
        return false;
    if (name_fd < 0 && isatty(STDERR_FILENO))
        fprintf(stderr, "serving; in another shell: shunt_bench --target %s\n",
                attr.name);
    return true;
}

static void serve_loop(target_t *target, int event_fd)
{
    while (!bench_interrupted()) {
        bench_pause(3600, event_fd);
        /* clear first: what comes after it makes the descriptor readable */
        (void)shunt_engine_event_clear(target->engine);
        while (!bench_interrupted() && handle_one(target))
            ;
    }
}

int bench_target_serve(const bench_opts_t *opts, int name_fd)
{
    static target_t target;
    char text[BENCH_TEXT];
    int event_fd, code = BENCH_FAIL;
    unsigned i;

    if (!bench_engine_open(opts, &target.engine, text)) {
        fprintf(stderr, "shunt_bench: %s\n", text);
        return BENCH_FAIL;
    }
    if ((shunt_engine_event_fd(target.engine, &event_fd) == SHUNT_OK) &&
        announce(&target, name_fd)) {
        serve_loop(&target, event_fd);
        code = BENCH_OK;
    } else {
        fprintf(stderr, "shunt_bench: cannot serve: %s\n", shunt_last_error());
    }
    for (i = 0; i < CLIENTS_MAX; i++) {
        if (target.clients[i].name[0] != '\0')
            client_drop(&target, &target.clients[i]);
    }
    shunt_engine_destroy(target.engine);
    return code;
}
