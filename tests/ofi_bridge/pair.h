/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes and a rail of one provider in each: the test drives one, the
 * other is a target that makes progress and does what it is told. */
#ifndef TESTS_OFI_BRIDGE_PAIR_H
#define TESTS_OFI_BRIDGE_PAIR_H

#include <stdint.h>
#include <sys/types.h>

#include "support/unit.h"
#include "transport/xhost.h"

enum {
    PAIR_MEMORY = 80 * 1024 * 1024
};

extern const shunt_xops_t shunt_transport_plugin;

typedef enum {
    TARGET_INFO = 1, /* address, key, base */
    TARGET_CHECK,    /* a: offset, b: length, c: seed; answer: first wrong
                        byte's offset, or -1 */
    TARGET_FILL,     /* a: offset, b: length, c: seed */
    TARGET_REGISTER, /* a: access; the answer has a key */
    TARGET_FORGET,   /* unregister what REGISTER made */
    TARGET_FDS,      /* open descriptors */
    TARGET_REACH,    /* a: address of ours; blobs follow: write back to it */
    TARGET_QUIT
} target_command_t;

typedef struct target_request {
    uint32_t command;
    uint32_t address_length; /* REACH */
    uint32_t key_length;
    uint32_t reserved;
    uint64_t a, b, c;
    char address[4096];
    char key[1024];
} target_request_t;

typedef struct target_answer {
    int64_t result;
    uint64_t base;
    size_t address_length;
    size_t key_length;
    char address[4096];
    char key[1024];
} target_answer_t;

/* One end of the test. */
typedef struct pair {
    xhost_t host;
    shunt_xmem_t *mem;
    char *memory; /* PAIR_MEMORY bytes */
    pid_t target;
    int fd;
    target_answer_t info;
    shunt_xpeer_t *peer;
    shunt_xkey_t *key;
} pair_t;

/* Everything open and connected; aborts the program when that fails. */
void pair_open(pair_t *pair);

/* Close, and end the target: it must leave with 0 if it is still there. */
void pair_close(pair_t *pair);

/* cmocka set-up and tear-down with these two. */
int pair_setup(void **state);
int pair_teardown(void **state);
#define PAIRED(_test) \
    cmocka_unit_test_setup_teardown(_test, pair_setup, pair_teardown)

/* The pieces. */
void pair_open_rail(pair_t *pair);
void pair_close_rail(pair_t *pair);
void pair_start_target(pair_t *pair);
int pair_end_target(pair_t *pair); /* wait status */
void pair_connect(pair_t *pair);
void pair_disconnect(pair_t *pair, shunt_xclose_t how);

int64_t pair_ask(pair_t *pair, uint32_t command, uint64_t a, uint64_t b,
                 uint64_t c);
void pair_tell(pair_t *pair, const target_request_t *request,
               target_answer_t *answer);

/* A post of `length` bytes between the two memories at the same offset. */
void pair_prepare(pair_t *pair, xpost_t *post, shunt_opcode_t opcode,
                  size_t offset, size_t length);

/* Progress for a while. */
void pair_progress(pair_t *pair, double seconds);

/* Progress until all of them have ended; false: not in time. */
bool pair_wait_all(pair_t *pair, xpost_t *posts, unsigned count,
                   double seconds);

/* A pattern that differs by offset and seed. */
void pattern_fill(char *memory, size_t offset, size_t length, uint64_t seed);
int64_t pattern_check(const char *memory, size_t offset, size_t length,
                      uint64_t seed);

int count_fds(pid_t pid);

/* The provider that is to be tested: OFI_TEST_PROVIDER. */
const char *pair_provider(void);

/* Use it, from here on and in targets. false: it is not there, and SKIP was
 * printed with the reason. */
bool pair_use(const char *provider);

/* What a provider cannot do, for a reason of its own. */
typedef struct pair_lack {
    const char *provider;
    const char *test;
    const char *reason;
} pair_lack_t;

/* Run the tests with pair_provider(), without those that it is known to fail:
 * each is printed as SKIP with its reason, and runs with OFI_TEST_ALL=1. 77:
 * the provider is not there. */
int pair_run(const struct CMUnitTest *tests, size_t count,
             const pair_lack_t *lacks);

/* "tcp;ofi_rxm/lo" */
const char *pair_device(void);

/* First thing in main(): a target's life happens in here. */
void pair_main(int argc, char **argv);

#endif
