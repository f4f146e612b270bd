/* SPDX-License-Identifier: BSD-3-Clause */
/* The conformance suite: one program that holds a transport to the contract of
 * <shunt/transport.h>, on one device, with a real second process.
 *
 *   conformance.c  command line, what there is
 *   side.c         one rail of this process, and who may call it
 *   target.c       the second process
 *   link.c         the way to it, and its end of the memory
 *   test_*.c       the tests, a group each
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/unit.h"
#include "transport/registry.h"
#include "transport/xhost.h"

enum {
    KIB      = 1 << 10,
    MIB      = 1 << 20,
    ARENA    = 257 * MIB, /* of each side's memory; touched as needed */
    STREAMED = 255 * MIB, /* from here on of ours, the target's stream goes */
    PATIENCE = 20,        /* seconds, for what has to come */
    BLOB_KEY = SHUNT_XKEY_MAX
};

/* What is tested. Set once. */
extern const shunt_transport_t *conf_transport;
extern const char *conf_device;
extern bool conf_full; /* also what takes long */

/* Say why, and skip the test. */
#define CONF_SKIP(...)           \
    do {                         \
        conf_say_skip(__func__); \
        printf(__VA_ARGS__);     \
        putchar('\n');           \
        skip();                  \
    } while (0)
void conf_say_skip(const char *test);

/* Run those tests of a group that were asked for; how many have failed. */
int conf_run(const char *group, const struct CMUnitTest *tests, size_t count);

/* True: built to find errors, not to be fast. */
bool conf_sanitized(void);

/* ---- side.c ----------------------------------------------------------- */

/* A rail, called as an engine calls it: one thread at a time unless it says
 * MT, by a progress thread that sleeps when there is nothing to do. */
typedef struct side {
    xhost_t host; /* first */
    pthread_mutex_t lock;
    bool mt;
    int wake_fd;
    pthread_t thread;
    atomic_bool running;
} side_t;

shunt_status_t side_open(side_t *side);
void side_close(side_t *side);

void side_start_progress(side_t *side);
void side_stop_progress(side_t *side);

/* Around every call but post and progress, and around those unless MT. */
void side_enter(side_t *side);
void side_leave(side_t *side);
unsigned side_progress(side_t *side);

/* Post; AGAIN is progressed and tried again for `seconds`. The first answer
 * but AGAIN, or AGAIN. */
shunt_status_t side_post(side_t *side, shunt_xpeer_t *peer, xpost_t *post,
                         double seconds);
shunt_status_t side_wait(side_t *side, xpost_t *post, double seconds);
shunt_status_t side_run(side_t *side, shunt_xpeer_t *peer, xpost_t *post,
                        double seconds);

/* Progress for a while; until all have ended: how many have not. */
void side_idle(side_t *side, double seconds);
unsigned side_wait_all(side_t *side, xpost_t *posts, unsigned count,
                       double seconds);

/* ---- patterns --------------------------------------------------------- */

/* The bytes that belong at an offset of the arena. Offset of the first wrong
 * one, or -1. */
void pattern_fill(void *at, size_t offset, size_t length, uint64_t seed);
int64_t pattern_check(const void *at, size_t offset, size_t length,
                      uint64_t seed);

/* Open descriptors are in /proc/self/fd, threads in /proc/self/task. */
int count_entries(const char *folder);
size_t count_heap(void); /* bytes in use */

/* ---- target.c --------------------------------------------------------- */

typedef enum {
    T_HELLO = 1,  /* address, base */
    T_REGISTER,   /* a: offset, b: length, c: access, d: give the descriptor */
    T_UNREGISTER, /* a: region */
    T_CHECK,      /* a: offset, b: length, c: seed; by its processor */
    T_FILL,       /* a: offset, b: length, c: seed */
    T_FDS,
    T_HEAP,
    T_REOPEN,       /* close the rail and all regions, open another */
    T_STREAM_START, /* address, key; a: base, b: posts (0: until the end), c:
                       bytes, d: seed: write to us in a thread */
    T_STREAM_END,   /* result: posts that ended well */
    T_QUIT
} target_command_t;

typedef struct target_request {
    uint32_t command;
    uint32_t address_length;
    uint32_t key_length;
    uint64_t a, b, c, d;
} target_request_t;

typedef struct target_answer {
    int64_t result; /* REGISTER: region */
    uint64_t base;
    uint32_t address_length;
    uint32_t key_length;
} target_answer_t;

/* Both are followed by the two blobs. */
typedef struct target_blobs {
    uint8_t address[SHUNT_XADDR_MAX];
    uint8_t key[BLOB_KEY];
} target_blobs_t;

enum {
    TARGET_REGIONS = 8
};

typedef struct target {
    side_t *side;
    char *arena;
    int arena_fd;
    shunt_xmem_t *regions[TARGET_REGIONS];
    bool used[TARGET_REGIONS];
    pthread_t stream;
    atomic_bool stream_stop;
    target_request_t stream_request;
    target_blobs_t stream_blobs;
    int64_t stream_result;
} target_t;

void target_obey(target_t *target, const target_request_t *request,
                 target_blobs_t *blobs, target_answer_t *answer);

/* The lives of other processes. */
int target_main(int fd, int arena_fd);
int victim_main(int fd);

bool transfer(int fd, void *bytes, size_t length, bool out);

/* ---- link.c ----------------------------------------------------------- */

/* A region of the target, and our key to it. */
typedef struct remote {
    int64_t id;
    uint64_t base; /* of the region, there */
    size_t offset; /* in the arena */
    size_t length;
    size_t packed_length;
    uint8_t packed[BLOB_KEY];
    shunt_xkey_t *key;
} remote_t;

typedef struct link {
    side_t side;
    bool self; /* the target is this process: no second one is reached */
    pid_t pid;
    int fd;
    int arena_fd;
    char *arena; /* the target's memory as this process sees it */
    uint64_t arena_base;
    char *local; /* ARENA bytes of our own */
    shunt_xmem_t *mem;
    size_t address_length;
    uint8_t address[SHUNT_XADDR_MAX];
    shunt_xpeer_t *peer;
    remote_t all;   /* the whole arena, to be read and written */
    target_t inner; /* with self */
} link_t;

/* Rail, target, session and key. Fails the test when that cannot be. */
void link_open(link_t *link);
void link_close(link_t *link);

/* The pieces. */
bool link_is_self_only(void);
void link_open_rail(link_t *link);
void link_close_rail(link_t *link);
void link_start_target(link_t *link);
void link_stop_target(link_t *link);
void link_connect(link_t *link);
void link_disconnect(link_t *link, shunt_xclose_t how);

int64_t link_ask(link_t *link, uint32_t command, uint64_t a, uint64_t b,
                 uint64_t c, uint64_t d);
/* Register there, unpack the key here (key_open's status). */
void remote_register(link_t *link, remote_t *remote, size_t offset,
                     size_t length, shunt_access_t access, bool with_fd);
shunt_status_t remote_open(link_t *link, remote_t *remote);
void remote_unregister(link_t *link, remote_t *remote);

/* Have the target write to our memory at STREAMED, in a thread of its own. */
void link_stream(link_t *link, uint64_t posts, size_t bytes, uint64_t seed);

void link_kill(link_t *link);
void link_suspend(link_t *link);
void link_resume(link_t *link);

/* A post between offset `offset` of a region and the same place of ours. */
void aim(link_t *link, xpost_t *post, shunt_opcode_t opcode, remote_t *remote,
         size_t offset, size_t length);

/* Aim at the whole arena, run, check that it ended once. */
shunt_status_t move(link_t *link, shunt_opcode_t opcode, size_t offset,
                    void *local, size_t length);

/* ---- groups ----------------------------------------------------------- */

int run_open_tests(void);
int run_move_tests(void);
int run_queue_tests(void);
int run_access_tests(void);
int run_cancel_tests(void);
int run_death_tests(void);
int run_thread_tests(void);

#endif
