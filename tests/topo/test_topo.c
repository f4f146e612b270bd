/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of this host, and of hosts that hwloc is told of by HWLOC_*
 * variables. It is loaded once per process, so those are read in children:
 * they print what they see, a line each. */
#include "config.h"

#include "topo/topo.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "support/child.h"
#include "support/unit.h"

enum {
    TEXT_ROOM = 65536
};

static char text[TEXT_ROOM];

/* ---- this host -------------------------------------------------------- */

static void locations_are_checked(void **state)
{
    static const char *const good[] = { "*", "cpu:0", "cpu:12", "cuda:1",
                                        "rocm:99999" };
    static const char *const bad[]  = {
         "",       "cpu",    "cpu:",  "cpu:x", "cpu:1x", "cpu:-1",
         "cpu: 1", "cpu:01", "CPU:0", "gpu:0", "**",     "cpu:1000000"
    };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(good); i++)
        assert_true(shunt_topo_location_valid(good[i]));
    for (i = 0; i < TEST_COUNT(bad); i++)
        if (shunt_topo_location_valid(bad[i]))
            fail_msg("\"%s\" was taken for a location", bad[i]);
    assert_false(shunt_topo_location_valid(NULL));
}

static void this_host_is_described(void **state)
{
    shunt_topo_t *topo;

    (void)state;
    assert_int_equal(shunt_topo_get(&topo), SHUNT_OK);
    assert_true(shunt_topo_nodes(topo) >= 1);
    assert_non_null(strstr(shunt_topo_describe(topo), "NUMA node"));
    print_message("%s\n", shunt_topo_describe(topo));
    shunt_topo_put(topo);
}

static void memory_is_located(void **state)
{
    char location[32];
    shunt_topo_t *topo;
    char *memory = malloc(1 << 20);

    (void)state;
    assert_non_null(memory);
    memset(memory, 1, 1 << 20);
    assert_int_equal(shunt_topo_get(&topo), SHUNT_OK);
    shunt_topo_locate(topo, memory + 3, (1 << 20) - 5, location,
                      sizeof(location));
    assert_true(shunt_topo_location_valid(location));
    assert_int_equal(strncmp(location, "cpu:", 4), 0);
    shunt_topo_put(topo);
    free(memory);
}

static void memory_is_bound_or_refused(void **state)
{
    char location[32];
    shunt_topo_t *topo;
    size_t length = 1 << 20;
    char *memory  = mmap(NULL, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(shunt_topo_get(&topo), SHUNT_OK);
    assert_int_equal(shunt_topo_bind(topo, memory, length, "*"), SHUNT_OK);
    assert_int_equal(shunt_topo_bind(topo, memory, length, "cpu:9999"),
                     SHUNT_ERR_NUMA);
    assert_non_null(strstr(shunt_last_error(), "9999"));
    assert_int_equal(shunt_topo_bind(topo, memory, length, "cuda:0"),
                     SHUNT_ERR_NUMA);

    memory[0] = 1;
    shunt_topo_locate(topo, memory, length, location, sizeof(location));
    assert_int_equal(shunt_topo_bind(topo, memory, length, location), SHUNT_OK);
    shunt_topo_put(topo);
    munmap(memory, length);
}

static void an_unknown_device_is_preferred_everywhere(void **state)
{
    static const char *const devices[] = { "lo", "no \"such\" device:1" };
    shunt_topo_t *topo;
    const char *place;
    json_t *matrix, *row;
    char *json;

    (void)state;
    assert_int_equal(shunt_topo_get(&topo), SHUNT_OK);
    assert_int_equal(shunt_topo_matrix(topo, devices, 2, &json), SHUNT_OK);
    matrix = json_loads(json, 0, NULL);
    assert_non_null(matrix);
    assert_non_null(json_object_get(matrix, "*"));
    json_object_foreach(matrix, place, row)
    {
        assert_true(shunt_topo_location_valid(place));
        assert_int_equal(json_array_size(row), 2);
        assert_int_equal(json_array_size(json_array_get(row, 0)), 2);
        assert_int_equal(json_array_size(json_array_get(row, 1)), 0);
    }
    json_decref(matrix);
    free(json);

    assert_int_equal(shunt_topo_matrix(topo, NULL, 0, &json), SHUNT_OK);
    assert_non_null(strstr(json, "\"*\": [[], []]"));
    free(json);
    shunt_topo_put(topo);
}

static void a_name_that_json_cannot_hold_is_an_error(void **state)
{
    static const char *const devices[] = { "bad \xff name" };
    shunt_topo_t *topo;
    char *json;

    (void)state;
    assert_int_equal(shunt_topo_get(&topo), SHUNT_OK);
    assert_int_equal(shunt_topo_matrix(topo, devices, 1, &json),
                     SHUNT_ERR_MEMORY);
    shunt_topo_put(topo);
}

/* ---- many users ------------------------------------------------------- */

static void *use(void *arg)
{
    static const char *const devices[] = { "lo", "eth0" };
    shunt_topo_t *topo;
    char *json;
    int i, bad = 0;

    for (i = 0; i < 64; i++) {
        if (shunt_topo_get(&topo) != SHUNT_OK)
            return arg;
        bad |= shunt_topo_matrix(topo, devices, 2, &json) != SHUNT_OK;
        free(json);
        shunt_topo_put(topo);
    }
    return bad ? arg : NULL;
}

static void sixty_four_engines_share_one(void **state)
{
    shunt_topo_t *topo[64];
    int i;

    (void)state;
    for (i = 0; i < 64; i++) {
        assert_int_equal(shunt_topo_get(&topo[i]), SHUNT_OK);
        assert_ptr_equal(topo[i], topo[0]);
    }
    for (i = 0; i < 64; i++)
        shunt_topo_put(topo[i]);
}

static void threads_share_one(void **state)
{
    shunt_topo_t *topo;
    pthread_t threads[8];
    void *result;
    int i;

    (void)state;
    assert_int_equal(shunt_topo_get(&topo), SHUNT_OK);
    for (i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, threads), 0);
    for (i = 0; i < 8; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    shunt_topo_put(topo);
}

/* ---- other hosts ------------------------------------------------------ */

struct other {
    const char *variable;
    const char *value;
    const char *devices[8];
};

static void print_matrix(shunt_topo_t *topo, const struct other *other)
{
    json_t *matrix, *row;
    const char *place;
    size_t count = 0;
    char *json, *line;

    while (other->devices[count] != NULL)
        count++;
    if (shunt_topo_matrix(topo, other->devices, count, &json) != SHUNT_OK) {
        fprintf(stderr, "error %s\n", shunt_last_error());
        return;
    }
    matrix = json_loads(json, 0, NULL);
    json_object_foreach(matrix, place, row)
    {
        line = json_dumps(row, JSON_COMPACT);
        fprintf(stderr, "%s %s\n", place, line);
        free(line);
    }
    json_decref(matrix);
    free(json);
}

static int look_at_other(void *arg)
{
    const struct other *other = arg;
    char location[32];
    shunt_topo_t *topo;
    uint64_t start;

    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_SYNTHETIC");
    setenv(other->variable, other->value, 1);
    start = shunt_clock_ns();
    if (shunt_topo_get(&topo) != SHUNT_OK) {
        fprintf(stderr, "error %s\n", shunt_last_error());
        return 0;
    }
    fprintf(stderr, "loaded in %.1f ms\n",
            (double)(shunt_clock_ns() - start) / 1e6);
    fprintf(stderr, "%u nodes: %s\n", shunt_topo_nodes(topo),
            shunt_topo_describe(topo));
    shunt_topo_locate(topo, &location, sizeof(location), location,
                      sizeof(location));
    fprintf(stderr, "here is %s\n", location);
    print_matrix(topo, other);
    shunt_topo_put(topo);
    return 0;
}

static void look(struct other other)
{
#if HAVE_HWLOC
    assert_int_equal(test_child(look_at_other, &other, text, sizeof(text)), 0);
#else
    (void)other;
    (void)look_at_other;
    print_message("SKIP: this build has no hwloc\n");
    skip();
#endif
}

static void expect(const char *line)
{
    if (strstr(text, line) == NULL)
        fail_msg("no \"%s\" in:\n%s", line, text);
}

static void a_synthetic_host_has_its_nodes(void **state)
{
    (void)state;
    look((struct other){
        "HWLOC_SYNTHETIC", "package:2 group:2 [numa] pu:4", { "eth0" } });
    expect("4 nodes: ");
    expect("not of this host");
    expect("here is *\n"); /* pages are asked about on this host only */
    expect("cpu:3 [[\"eth0\"],[]]\n");
}

/* two_nodes.xml: nodes 0 and 2. Node 0: GPU and mlx5_0 below one switch, eth0
 * apart. Node 2: GPU and mlx5_1 below one root. (No comment in the file:
 * hwloc's own parser of XML knows none.) */
static void devices_are_ordered_by_distance(void **state)
{
    const char *folder = getenv("TEST_SRCDIR");
    char path[4096];

    (void)state;
    snprintf(path, sizeof(path), "%s/tests/topo/two_nodes.xml",
             folder == NULL ? "." : folder);
    look((struct other){
        "HWLOC_XMLFILE", path, { "eth0", "mlx5_1:1", "mlx5_0:1", "lo" } });
    expect("2 nodes: ");
    expect("2 GPUs");
    expect("cpu:0 [[\"eth0\",\"mlx5_0:1\",\"lo\"],[\"mlx5_1:1\"]]\n");
    expect("cpu:2 [[\"mlx5_1:1\",\"lo\"],[\"eth0\",\"mlx5_0:1\"]]\n");
    /* below one switch, then at the same node, then elsewhere */
    expect("cuda:0 [[\"mlx5_0:1\",\"lo\"],[\"eth0\",\"mlx5_1:1\"]]\n");
    /* below one root */
    expect("cuda:1 [[\"mlx5_1:1\",\"lo\"],[\"eth0\",\"mlx5_0:1\"]]\n");
    expect("* [[\"eth0\",\"mlx5_1:1\",\"mlx5_0:1\",\"lo\"],[]]\n");
}

/* hwloc itself falls back to the host when a file is no topology. */
static void a_broken_topology_is_not_fatal(void **state)
{
    (void)state;
    look((struct other){ "HWLOC_XMLFILE", "/nowhere/at/all.xml", { NULL } });
    expect(" nodes: ");
    look((struct other){ "HWLOC_SYNTHETIC", "no such thing", { NULL } });
    expect(" nodes: ");
}

/* Recorded machines: <folder>/2s-8numa-6xmlx5-4xGPU.xml and others. */
static void recorded_machines(void **state)
{
    const char *folder = getenv("TEST_HWLOC_DATA");
    char path[4096];

    (void)state;
    if (folder == NULL) {
        print_message("SKIP: TEST_HWLOC_DATA names no folder of "
                      "recorded topologies\n");
        skip();
    }
    snprintf(path, sizeof(path), "%s/2s-8numa-6xmlx5-4xGPU.xml", folder);
    look((struct other){ "HWLOC_XMLFILE",
                         path,
                         { "mlx5_0:1", "mlx5_1:1", "mlx5_2:1", "mlx5_3:1",
                           "mlx5_4:1", "mlx5_5:1" } });
    print_message("%s", text);
    expect("8 nodes: ");
    expect("4 GPUs");
    snprintf(path, sizeof(path), "%s/power9-summit-4xmlx5-6xGPU.xml", folder);
    look((struct other){ "HWLOC_XMLFILE", path, { "mlx5_0", "mlx5_3" } });
    print_message("%s", text);
    expect("cpu:0 [[\"mlx5_0\"],[\"mlx5_3\"]]\n");
    expect("cpu:8 [[\"mlx5_3\"],[\"mlx5_0\"]]\n");
    expect("cuda:5 [[\"mlx5_3\"],[\"mlx5_0\"]]\n");
    snprintf(path, sizeof(path), "%s/aws-p4d-4xEFA-8xGPU.xml", folder);
    look((struct other){
        "HWLOC_XMLFILE",
        path,
        { "rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27" } });
    print_message("%s", text);
    expect("8 GPUs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locations_are_checked),
        cmocka_unit_test(this_host_is_described),
        cmocka_unit_test(memory_is_located),
        cmocka_unit_test(memory_is_bound_or_refused),
        cmocka_unit_test(an_unknown_device_is_preferred_everywhere),
        cmocka_unit_test(a_name_that_json_cannot_hold_is_an_error),
        cmocka_unit_test(sixty_four_engines_share_one),
        cmocka_unit_test(threads_share_one),
        cmocka_unit_test(a_synthetic_host_has_its_nodes),
        cmocka_unit_test(devices_are_ordered_by_distance),
        cmocka_unit_test(a_broken_topology_is_not_fatal),
        cmocka_unit_test(recorded_machines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
