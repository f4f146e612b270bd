/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that are killed, stopped, continued, restarted; engines that go with
 * work in flight; programs that fork. Over one transport, which the end of the
 * program's name says: test_faults_shm, test_faults_ucx. */
#include "config.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process/target.h"
#include "support/unit.h"

#define assert_status(_call, _status) \
    assert_string_equal(shunt_status_name(_call), shunt_status_name(_status))
#define assert_ok(_call) assert_status(_call, SHUNT_OK)

static const char *transport;

/* An initiator and its target. */
typedef struct scene {
    target_t target;
    shunt_engine_h engine;
    shunt_segment_t segment;
    char *local; /* TARGET_LOAD, mapped here, registered */
} scene_t;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void open_initiator(scene_t *scene, int64_t timeout_us)
{
    shunt_engine_opts_t opts = { .size             = sizeof(opts),
                                 .transports       = transport,
                                 .slice_timeout_us = timeout_us };

    assert_ok(shunt_engine_create(NULL, "p2p:", &opts, &scene->engine));
    scene->local = mmap(NULL, TARGET_LOAD, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(scene->local != MAP_FAILED);
    memset(scene->local, 1, TARGET_BYTES);
    assert_ok(
        shunt_mem_register(scene->engine, scene->local, TARGET_LOAD, NULL));
    assert_ok(
        shunt_segment_open(scene->engine, scene->target.name, &scene->segment));
}

static void open_scene(scene_t *scene, int64_t timeout_us)
{
    memset(scene, 0, sizeof(*scene));
    target_start(&scene->target, NULL, transport);
    open_initiator(scene, timeout_us);
}

static void close_scene(scene_t *scene)
{
    double start = now();

    assert_ok(shunt_engine_destroy(scene->engine));
    assert_true(now() - start < 5.0);
    munmap(scene->local, TARGET_LOAD);
    if (scene->target.pid != 0)
        target_stop(&scene->target);
}

static shunt_batch_t submit(const scene_t *scene, shunt_opcode_t opcode,
                            unsigned count, size_t length)
{
    shunt_request_t requests[64];
    shunt_batch_t batch;
    unsigned i;

    assert_true(count * length <= TARGET_LOAD);
    for (i = 0; i < count; i++)
        requests[i] =
            (shunt_request_t){ .opcode  = opcode,
                               .local   = scene->local + i * length,
                               .segment = scene->segment,
                               .remote  = scene->target.memory + i * length,
                               .length  = length };
    assert_ok(shunt_batch_alloc(scene->engine, count, NULL, &batch));
    assert_ok(shunt_batch_submit(scene->engine, batch, requests, count));
    return batch;
}

static shunt_batch_status_t finish(const scene_t *scene, shunt_batch_t batch,
                                   double limit)
{
    shunt_batch_status_t status = { .size = sizeof(status) };

    assert_ok(shunt_batch_wait(scene->engine, batch, (int64_t)(limit * 1e6),
                               &status));
    assert_int_equal(status.finished, status.tasks);
    assert_ok(shunt_batch_free(scene->engine, batch));
    return status;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* ---- it works --------------------------------------------------------- */

static void good_target(void **state)
{
    scene_t scene;

    (void)state;
    open_scene(&scene, 0);
    assert_int_equal(
        finish(&scene, submit(&scene, SHUNT_OP_WRITE, 8, 1 << 20), 30).state,
        SHUNT_STATE_COMPLETED);
    /* visible when complete: the target has called nothing */
    assert_true(target_sum(&scene.target, scene.target.memory, TARGET_BYTES) ==
                TARGET_BYTES);
    target_fill(&scene.target, scene.target.memory, TARGET_BYTES, 7);
    assert_int_equal(
        finish(&scene, submit(&scene, SHUNT_OP_READ, 64, 1 << 17), 30).state,
        SHUNT_STATE_COMPLETED);
    assert_int_equal(scene.local[0], 7);
    assert_int_equal(scene.local[TARGET_BYTES - 1], 7);
    close_scene(&scene);
}

static void notified_after_bytes(void **state)
{
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_request_t request;
    shunt_batch_t batch;
    scene_t scene;
    int i;

    (void)state;
    open_scene(&scene, 0);
    for (i = 2; i < 12; i++) {
        shunt_notify_t notify = { scene.segment, "done", 4 };

        memset(scene.local, i, TARGET_BYTES);
        request =
            (shunt_request_t){ SHUNT_OP_WRITE,      scene.local,  scene.segment,
                               scene.target.memory, TARGET_BYTES, 0 };
        assert_ok(shunt_batch_alloc(scene.engine, 1, NULL, &batch));
        assert_ok(shunt_batch_submit_notify(scene.engine, batch, &request, 1,
                                            &notify));
        assert_int_equal(target_receive(&scene.target), 4);
        assert_true(target_sum(&scene.target, scene.target.memory,
                               TARGET_BYTES) == (uint64_t)i * TARGET_BYTES);
        assert_ok(shunt_batch_wait(scene.engine, batch, 5000000, &status));
        assert_int_equal(status.notify, SHUNT_NOTIFY_DELIVERED);
        assert_ok(shunt_batch_free(scene.engine, batch));
    }
    close_scene(&scene);
}

/* ---- killed ----------------------------------------------------------- */

/* What a submission to a dead engine says: it is refused, or its tasks fail;
 * within 3 s, whatever the timeout. */
static void assert_dead(const scene_t *scene)
{
    shunt_request_t request = { SHUNT_OP_WRITE, scene->local,
                                scene->segment, scene->target.memory,
                                1 << 20,        0 };
    shunt_batch_t batch;
    shunt_status_t status;
    double start = now();

    do {
        assert_ok(shunt_batch_alloc(scene->engine, 1, NULL, &batch));
        status = shunt_batch_submit(scene->engine, batch, &request, 1);
        if (status == SHUNT_OK)
            assert_ok(shunt_batch_wait(scene->engine, batch, 5000000, NULL));
        assert_ok(shunt_batch_free(scene->engine, batch));
        assert_true(now() - start < 3.0);
        pause_ms(1);
    } while (status == SHUNT_OK);
    assert_status(status, SHUNT_ERR_ENDPOINT);
}

static void killed_before(void **state)
{
    scene_t scene;

    (void)state;
    open_scene(&scene, 0);
    finish(&scene, submit(&scene, SHUNT_OP_WRITE, 1, 8), 10);
    target_kill(&scene.target, SIGKILL);
    assert_dead(&scene);
    assert_status(shunt_peer_probe(scene.engine, scene.target.name, 1000000),
                  SHUNT_ERR_UNREACHABLE);
    assert_status(shunt_segment_refresh(scene.engine, scene.segment),
                  SHUNT_ERR_UNREACHABLE);
    close_scene(&scene);
}

static void killed_during(void **state)
{
    shunt_opcode_t opcode;
    shunt_state_t end;
    shunt_batch_t batch;
    scene_t scene;
    int round;

    (void)state;
    for (round = 0; round < 6; round++) {
        opcode = round % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ;
        open_scene(&scene, 0);
        finish(&scene, submit(&scene, opcode, 1, 8), 10);
        batch = submit(&scene, opcode, 64, TARGET_LOAD / 64);
        pause_ms(round);
        target_kill(&scene.target, SIGKILL);
        /* no deadline is set: the death ends it */
        end = finish(&scene, batch, 10).state;
        assert_true((end == SHUNT_STATE_FAILED) ||
                    (end == SHUNT_STATE_COMPLETED));
        /* local quiet: the memory may go at once */
        assert_int_equal(mprotect(scene.local, TARGET_LOAD, PROT_NONE), 0);
        pause_ms(200);
        assert_int_equal(
            mprotect(scene.local, TARGET_LOAD, PROT_READ | PROT_WRITE), 0);
        assert_dead(&scene);
        close_scene(&scene);
    }
}

static void killed_after(void **state)
{
    shunt_batch_status_t status = { .size = sizeof(status) };
    shunt_batch_t batch;
    scene_t scene;

    (void)state;
    open_scene(&scene, 0);
    batch = submit(&scene, SHUNT_OP_WRITE, 8, 1 << 20);
    assert_ok(shunt_batch_wait(scene.engine, batch, 10000000, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    target_kill(&scene.target, SIGKILL);
    assert_dead(&scene);
    /* an end never changes */
    assert_ok(shunt_batch_status(scene.engine, batch, &status));
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    assert_ok(shunt_batch_free(scene.engine, batch));
    close_scene(&scene);
}

/* The same name, another life: old keys never reach it, open finds it. */
static void restarted(void **state)
{
    shunt_segment_attr_t before = { .size = sizeof(before) };
    shunt_segment_attr_t after  = { .size = sizeof(after) };
    char name[SHUNT_NAME_MAX + 1];
    shunt_segment_t again;
    shunt_batch_t batch;
    shunt_request_t request;
    shunt_status_t status;
    scene_t scene;

    (void)state;
    open_scene(&scene, 0);
    finish(&scene, submit(&scene, SHUNT_OP_WRITE, 1, 8), 10);
    assert_ok(shunt_segment_query(scene.engine, scene.segment, &before));
    memcpy(name, scene.target.name, sizeof(name));
    target_kill(&scene.target, SIGKILL);
    target_start(&scene.target, name, transport);
    assert_dead(&scene);
    assert_true(target_sum(&scene.target, scene.target.memory, TARGET_BYTES) ==
                0);
    /* open gives the number that is there, for the life that is there */
    assert_ok(shunt_segment_open(scene.engine, name, &again));
    assert_true(again == scene.segment);
    assert_ok(shunt_segment_query(scene.engine, again, &after));
    assert_memory_not_equal(&before.incarnation, &after.incarnation,
                            sizeof(before.incarnation));
    request = (shunt_request_t){ SHUNT_OP_WRITE,      scene.local, again,
                                 scene.target.memory, 1000,        0 };
    assert_ok(shunt_batch_alloc(scene.engine, 1, NULL, &batch));
    status = shunt_batch_submit(scene.engine, batch, &request, 1);
    assert_ok(status);
    assert_int_equal(finish(&scene, batch, 10).state, SHUNT_STATE_COMPLETED);
    assert_true(target_sum(&scene.target, scene.target.memory, TARGET_BYTES) ==
                1000);
    close_scene(&scene);
}

/* Not a byte of what was meant for the life before, now or later. */
static void assert_untouched(const target_t *target, double seconds)
{
    double end = now() + seconds;

    do {
        assert_true(target_sum(target, target->memory, TARGET_LOAD) == 0);
        assert_true(target_sum(target, target->heap, TARGET_BYTES) == 0);
        pause_ms(200);
    } while (now() < end);
}

/* Its writes are on their way when the target is killed; the next life is there
 * before they have ended. True: some of them had not arrived. */
static bool restart_in_flight(scene_t *scene, bool stopped)
{
    char name[SHUNT_NAME_MAX + 1];
    shunt_batch_t batch;
    shunt_state_t end;

    memcpy(name, scene->target.name, sizeof(name));
    memset(scene->local, 1, TARGET_LOAD);
    if (stopped)
        target_kill(&scene->target, SIGSTOP);
    batch = submit(scene, SHUNT_OP_WRITE, 64, TARGET_LOAD / 64);
    pause_ms(stopped ? 100 : 2);
    target_kill(&scene->target, SIGKILL);
    target_start(&scene->target, name, transport);
    end = finish(scene, batch, 3).state;
    assert_true((end == SHUNT_STATE_FAILED) || (end == SHUNT_STATE_COMPLETED));
    return end == SHUNT_STATE_FAILED;
}

static void reach_next_life(scene_t *scene, bool open)
{
    shunt_segment_t again = scene->segment;

    if (open)
        assert_ok(
            shunt_segment_open(scene->engine, scene->target.name, &again));
    else
        assert_ok(shunt_segment_refresh(scene->engine, again));
    assert_true(again == scene->segment);
    assert_int_equal(
        finish(scene, submit(scene, SHUNT_OP_WRITE, 1, 1000), 10).state,
        SHUNT_STATE_COMPLETED);
    assert_true(target_sum(&scene->target, scene->target.memory, TARGET_LOAD) ==
                1000);
}

/* The same name, port and often addresses: only the incarnation tells the lives
 * apart. Every other target is stopped first, so that what it was sent waits in
 * the network. */
static void restarted_in_flight(void **state)
{
    int persona = personality(0xffffffff), round, failed = 0, same = 0;
    uint64_t before;
    scene_t scene;

    (void)state;
    personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
    for (round = 0; round < 4; round++) {
        open_scene(&scene, 0);
        before = scene.target.memory;
        finish(&scene, submit(&scene, SHUNT_OP_WRITE, 1, 8), 10);
        failed += restart_in_flight(&scene, round % 2 != 0);
        same += scene.target.memory == before;
        assert_untouched(&scene.target, 0);
        assert_dead(&scene);
        assert_untouched(&scene.target, 2);
        reach_next_life(&scene, round >= 2);
        close_scene(&scene);
    }
    personality((unsigned long)persona);
    print_message("%d of 4 were in flight, %d had the same address\n", failed,
                  same);
    assert_true(failed > 0);
}

/* ---- stopped ---------------------------------------------------------- */

static void stopped_and_continued(void **state)
{
    shunt_batch_status_t status;
    shunt_batch_t batch;
    scene_t scene;

    (void)state;
    open_scene(&scene, 0);
    finish(&scene, submit(&scene, SHUNT_OP_WRITE, 1, 8), 10);
    target_kill(&scene.target, SIGSTOP);
    batch = submit(&scene, SHUNT_OP_WRITE, 16, 1 << 20);
    pause_ms(5000);
    target_kill(&scene.target, SIGCONT);
    status = finish(&scene, batch, 20);
    assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
    assert_true(target_sum(&scene.target, scene.target.memory, TARGET_BYTES) ==
                TARGET_BYTES);
    close_scene(&scene);
}

/* With a deadline, a stopped target ends as TIMEOUT by then + 1 s, unless the
 * transport does not need it; and then the memory is ours. */
static void stopped_with_deadline(void **state)
{
    shunt_batch_status_t status;
    shunt_opcode_t opcode;
    shunt_batch_t batch;
    double start;
    scene_t scene;
    int round;

    (void)state;
    for (round = 0; round < 2; round++) {
        opcode = round == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ;
        open_scene(&scene, 500000);
        finish(&scene, submit(&scene, opcode, 1, 8), 10);
        target_kill(&scene.target, SIGSTOP);
        start  = now();
        batch  = submit(&scene, opcode, 16, 1 << 20);
        status = finish(&scene, batch, 5);
        assert_true(now() - start < 1.5);
        if (strcmp(transport, "shm") == 0)
            assert_int_equal(status.state, SHUNT_STATE_COMPLETED);
        else
            assert_int_equal(status.state, SHUNT_STATE_TIMEOUT);
        assert_int_equal(mprotect(scene.local, TARGET_LOAD, PROT_NONE), 0);
        target_kill(&scene.target, SIGCONT);
        pause_ms(1000);
        assert_int_equal(
            mprotect(scene.local, TARGET_LOAD, PROT_READ | PROT_WRITE), 0);
        /* and it is good for more */
        assert_int_equal(
            finish(&scene, submit(&scene, opcode, 8, 1 << 20), 10).state,
            SHUNT_STATE_COMPLETED);
        close_scene(&scene);
    }
}

static void canceled(void **state)
{
    shunt_batch_status_t status;
    shunt_batch_t batch;
    double start;
    scene_t scene;

    (void)state;
    open_scene(&scene, 0);
    finish(&scene, submit(&scene, SHUNT_OP_READ, 1, 8), 10);
    target_kill(&scene.target, SIGSTOP);
    batch = submit(&scene, SHUNT_OP_READ, 16, 1 << 20);
    start = now();
    assert_ok(shunt_batch_cancel(scene.engine, batch));
    status = finish(&scene, batch, 5);
    assert_true(now() - start < 1.5);
    assert_true((status.state == SHUNT_STATE_CANCELED) ||
                (status.state == SHUNT_STATE_COMPLETED));
    if (strcmp(transport, "shm") != 0)
        assert_int_equal(status.state, SHUNT_STATE_CANCELED);
    assert_int_equal(mprotect(scene.local, TARGET_LOAD, PROT_NONE), 0);
    target_kill(&scene.target, SIGCONT);
    pause_ms(500);
    assert_int_equal(mprotect(scene.local, TARGET_LOAD, PROT_READ | PROT_WRITE),
                     0);
    close_scene(&scene);
}

/* A notification to a stopped engine ends with the deadline, and it does not
 * arrive after it was said not to. */
static void stopped_notification(void **state)
{
    scene_t scene;
    shunt_notify_t notify;
    shunt_status_t status;
    double start;

    (void)state;
    open_scene(&scene, 0);
    notify = (shunt_notify_t){ scene.segment, "late", 4 };
    target_kill(&scene.target, SIGSTOP);
    start  = now();
    status = shunt_notify_send(scene.engine, &notify, 300000);
    assert_true((status == SHUNT_ERR_TIMEOUT) ||
                (status == SHUNT_ERR_CANCELED));
    assert_true(now() - start < 1.5);
    target_kill(&scene.target, SIGCONT);
    pause_ms(200);
    if (status == SHUNT_ERR_CANCELED)
        assert_int_equal(target_poll(&scene.target), -1);
    close_scene(&scene);
}

static void destroyed_in_flight(void **state)
{
    scene_t scene;
    int round;

    (void)state;
    for (round = 0; round < 4; round++) {
        open_scene(&scene, 0);
        finish(&scene, submit(&scene, SHUNT_OP_WRITE, 1, 8), 10);
        if (round >= 2)
            target_kill(&scene.target, SIGSTOP);
        submit(&scene, round % 2 == 0 ? SHUNT_OP_WRITE : SHUNT_OP_READ, 16,
               1 << 20);
        if (round >= 2) {
            double start = now();

            assert_ok(shunt_engine_destroy(scene.engine));
            assert_true(now() - start < 5.0);
            munmap(scene.local, TARGET_LOAD);
            target_kill(&scene.target, SIGCONT);
            target_stop(&scene.target);
        } else {
            close_scene(&scene);
        }
    }
}

/* The child of a fork can do no harm to its parent's engine, and its holding
 * the parent's sockets open does not hide the parent's death. */
static void forked(void **state)
{
    shunt_engine_attr_t attr = { .size = sizeof(attr) };
    shunt_batch_t batch;
    scene_t scene;
    int status;
    pid_t pid;

    (void)state;
    open_scene(&scene, 0);
    finish(&scene, submit(&scene, SHUNT_OP_WRITE, 1, 8), 10);
    batch = submit(&scene, SHUNT_OP_WRITE, 16, 1 << 20);
    pid   = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit((shunt_engine_query(scene.engine, &attr) ==
               SHUNT_ERR_INVALID_ARGUMENT) &&
                      (shunt_batch_wait(scene.engine, batch, -1, NULL) ==
                       SHUNT_ERR_INVALID_ARGUMENT)
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(finish(&scene, batch, 10).state, SHUNT_STATE_COMPLETED);
    close_scene(&scene);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_target),
        cmocka_unit_test(notified_after_bytes),
        cmocka_unit_test(killed_before),
        cmocka_unit_test(killed_during),
        cmocka_unit_test(killed_after),
        cmocka_unit_test(restarted),
        cmocka_unit_test(restarted_in_flight),
        cmocka_unit_test(stopped_and_continued),
        cmocka_unit_test(stopped_with_deadline),
        cmocka_unit_test(canceled),
        cmocka_unit_test(stopped_notification),
        cmocka_unit_test(destroyed_in_flight),
        cmocka_unit_test(forked),
    };
    const char *last         = strrchr(argv[0], '_');
    shunt_engine_opts_t opts = { .size = sizeof(opts) };
    shunt_engine_h engine;

    if ((argc > 1) && (strcmp(argv[1], "target") == 0))
        return target_main(argc, argv);
    transport       = last == NULL ? "shm" : last + 1;
    opts.transports = transport;
    if (shunt_engine_create(NULL, "p2p:", &opts, &engine) != SHUNT_OK) {
        printf("SKIP: no %s here: %s\n", transport, shunt_last_error());
        return 77;
    }
    shunt_engine_destroy(engine);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
