/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor's JSON: both ways, and every refusal. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/engine.h>

#include "base/clock.h"
#include "base/ident.h"
#include "meta/descriptor.h"
#include "support/unit.h"

static const char topology[] = "{\"cpu:0\":[[\"lo\"],[\"eth0\"]]}";

/* A descriptor to encode. */
typedef struct sample {
    char *control[2];
    shunt_desc_rail_t rails[2];
    shunt_desc_key_t keys[3];
    shunt_desc_region_t regions[3];
    char matrix[sizeof(topology)];
    shunt_desc_t desc;
} sample_t;

static void put(char *text, size_t room, const char *value)
{
    snprintf(text, room, "%s", value);
}

static void sample_init(sample_t *s)
{
    memset(s, 0, sizeof(*s));
    s->control[0] = (char *)"10.0.0.3:15001";
    s->control[1] = (char *)"[fd00::3]:15001";
    put(s->rails[0].rail, sizeof(s->rails[0].rail), "ucx:lo");
    put(s->rails[0].device, sizeof(s->rails[0].device), "lo");
    s->rails[0].address        = (const uint8_t *)"\x00\x01\xff";
    s->rails[0].address_length = 3;
    put(s->rails[1].rail, sizeof(s->rails[1].rail), "shm");
    put(s->rails[1].device, sizeof(s->rails[1].device), "shm");
    s->keys[0]    = (shunt_desc_key_t){ 0, 2, (const uint8_t *)"k0" };
    s->keys[1]    = (shunt_desc_key_t){ 1, 1, (const uint8_t *)"k" };
    s->keys[2]    = (shunt_desc_key_t){ 1, 4, (const uint8_t *)"\0\0\0\0" };
    s->regions[0] = (shunt_desc_region_t){
        0x1000, 0x1000, SHUNT_ACCESS_REMOTE_READ_WRITE, "cpu:0", &s->keys[0], 2
    };
    s->regions[1] =
        (shunt_desc_region_t){ 0x2000, 1,           SHUNT_ACCESS_REMOTE_READ,
                               "*",    &s->keys[2], 1 };
    s->regions[2] =
        (shunt_desc_region_t){ 0x9000, 1, SHUNT_ACCESS_LOCAL, "*", NULL, 0 };
    put(s->matrix, sizeof(s->matrix), topology);
    put(s->desc.name, sizeof(s->desc.name), "10.0.0.3:15001");
    memset(&s->desc.incarnation, 0x5a, sizeof(s->desc.incarnation));
    s->desc.revision      = 42;
    s->desc.control       = s->control;
    s->desc.control_count = 2;
    s->desc.rails         = s->rails;
    s->desc.rail_count    = 2;
    s->desc.regions       = s->regions;
    s->desc.region_count  = 3;
    s->desc.topology      = s->matrix;
}

static void same_rails(const shunt_desc_t *a, const shunt_desc_t *b)
{
    uint32_t i;

    assert_int_equal(a->rail_count, b->rail_count);
    for (i = 0; i < a->rail_count; i++) {
        assert_string_equal(a->rails[i].rail, b->rails[i].rail);
        assert_string_equal(a->rails[i].device, b->rails[i].device);
        assert_int_equal(a->rails[i].address_length,
                         b->rails[i].address_length);
        assert_memory_equal(a->rails[i].address, b->rails[i].address,
                            a->rails[i].address_length);
    }
}

/* Keys are a set: JSON has no order for them. */
static void same_keys(const shunt_desc_region_t *a,
                      const shunt_desc_region_t *b)
{
    uint32_t i, j;

    assert_int_equal(a->key_count, b->key_count);
    for (i = 0; i < a->key_count; i++) {
        for (j = 0; a->keys[i].rail != b->keys[j].rail; j++)
            assert_true(j + 1 < b->key_count);
        assert_int_equal(a->keys[i].length, b->keys[j].length);
        assert_memory_equal(a->keys[i].bytes, b->keys[j].bytes,
                            a->keys[i].length);
    }
}

static void what_is_encoded_is_decoded(void **state)
{
    shunt_desc_t *desc;
    sample_t s;
    char *json;
    size_t length;
    uint32_t i;

    (void)state;
    sample_init(&s);
    s.rails[1].address = (const uint8_t *)"";
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length), SHUNT_OK);
    assert_int_equal(strlen(json), length);
    assert_null(strchr(json, '\n'));
    assert_int_equal(shunt_desc_decode(json, length, s.desc.name, &desc),
                     SHUNT_OK);
    assert_string_equal(desc->name, s.desc.name);
    assert_true(shunt_ident_equal(&desc->incarnation, &s.desc.incarnation));
    assert_int_equal(desc->revision, 42);
    assert_int_equal(desc->control_count, 2);
    assert_string_equal(desc->control[1], "[fd00::3]:15001");
    same_rails(desc, &s.desc);
    assert_int_equal(desc->region_count, 2); /* the local one is not told */
    for (i = 0; i < 2; i++) {
        assert_int_equal(desc->regions[i].addr, s.regions[i].addr);
        assert_int_equal(desc->regions[i].length, s.regions[i].length);
        assert_int_equal(desc->regions[i].access, s.regions[i].access);
        assert_string_equal(desc->regions[i].location, s.regions[i].location);
        same_keys(&desc->regions[i], &s.regions[i]);
    }
    assert_string_equal(desc->topology, topology);
    shunt_desc_free(desc);
    shunt_desc_free(NULL);
    free(json);
}

static void encoding_refuses_what_cannot_be_decoded(void **state)
{
    sample_t s;
    char *json;
    size_t length;

    (void)state;
    sample_init(&s);
    s.keys[1].rail = 2;
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length),
                     SHUNT_ERR_INVALID_ARGUMENT);
    sample_init(&s);
    s.regions[0].addr = 0;
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length),
                     SHUNT_ERR_INVALID_ARGUMENT);
    sample_init(&s);
    s.regions[0].length = UINT64_MAX - 10;
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length),
                     SHUNT_ERR_INVALID_ARGUMENT);
    sample_init(&s);
    s.desc.topology = (char *)"[1]";
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length),
                     SHUNT_ERR_MALFORMED_JSON);
    sample_init(&s);
    put(s.desc.name, sizeof(s.desc.name), "\xff\xfe"); /* no UTF-8 */
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length),
                     SHUNT_ERR_MEMORY);
    sample_init(&s);
    s.desc.topology = NULL; /* none is an empty one */
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length), SHUNT_OK);
    free(json);
}

/* ---- refusals --------------------------------------------------------- */

/* The sample with one thing changed: JSON pieces in ' for ". */
static json_t *good(void)
{
    static const char text[] =
        "{'name':'h:1','protocol':'shunt','version':1,"
        "'incarnation':'00112233445566778899aabbccddeeff','revision':3,"
        "'timestamp':'2026-11-29T12:00:00Z','control':['h:1'],"
        "'devices':[{'name':'lo','rail':'ucx:lo','address':'AAEC'}],"
        "'buffers':[{'name':'cpu:0','addr':4096,'length':4096,'access':'rw',"
        "'keys':{'ucx:lo':'AAEC'}}],"
        "'priority_matrix':{'cpu:0':[['lo'],[]]},'later':{'un':['known']}}";
    char json[sizeof(text)];
    size_t i;

    for (i = 0; i < sizeof(text); i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    return json_loads(json, 0, NULL);
}

static json_t *piece(const char *text)
{
    char json[512];
    size_t i;

    for (i = 0; text[i] != '\0'; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    json[i] = '\0';
    return json_loads(json, JSON_DECODE_ANY, NULL);
}

static shunt_status_t decode_root(json_t *root, const char *name)
{
    char *text         = json_dumps(root, JSON_COMPACT);
    shunt_desc_t *desc = NULL;
    shunt_status_t status;

    status = shunt_desc_decode(text, strlen(text), name, &desc);
    if (status == SHUNT_OK)
        shunt_desc_free(desc);
    else
        assert_null(desc);
    free(text);
    json_decref(root);
    return status;
}

typedef struct row {
    const char *field; /* of the root, or "buffers.f", "devices.f" */
    const char *value; /* NULL: the field is left out */
    shunt_status_t expected;
    const char *says;
} row_t;

#define BAD SHUNT_ERR_MALFORMED_JSON

/* clang-format off */
static const row_t rows[] = {
    { "later", NULL, SHUNT_OK, NULL },
    { "timestamp", NULL, SHUNT_OK, NULL },
    { "name", NULL, BAD, "name" },
    { "name", "''", BAD, "name" },
    { "name", "7", BAD, "name" },
    { "name", "'a\\u000ab'", BAD, "control character" },
    { "protocol", NULL, BAD, "protocol" },
    { "protocol", "'other'", BAD, "other" },
    { "version", NULL, BAD, "version" },
    { "version", "'1'", BAD, "version" },
    { "version", "0", SHUNT_ERR_VERSION, "version 0" },
    { "version", "2", SHUNT_ERR_VERSION, "version 2" },
    { "incarnation", NULL, BAD, "incarnation" },
    { "incarnation", "'0011'", BAD, "incarnation" },
    { "incarnation", "'0011223344556677889zaabbccddeeff'", BAD, "hex" },
    { "incarnation", "'00112233445566778899aabbccddeeff0'", BAD, "expected" },
    { "revision", NULL, BAD, "revision" },
    { "revision", "-1", BAD, "revision" },
    { "control", NULL, BAD, "control" },
    { "control", "[]", BAD, "control" },
    { "control", "[7]", BAD, "control" },
    { "control", "['']", BAD, "control" },
    { "control", "'h:1'", BAD, "control" },
    { "devices", NULL, BAD, "devices" },
    { "devices", "{}", BAD, "devices" },
    { "devices", "[7]", BAD, "rail" },
    { "devices", "[]", BAD, "no rail" }, /* the key's rail is not there */
    { "devices.rail", NULL, BAD, "rail" },
    { "devices.rail", "''", BAD, "rail" },
    { "devices.name", NULL, BAD, "name" },
    { "devices.address", NULL, BAD, "address" },
    { "devices.address", "'A'", BAD, "base64" },
    { "devices.address", "'AA AA'", BAD, "base64" },
    { "buffers", NULL, BAD, "buffers" },
    { "buffers", "[]", SHUNT_OK, NULL },
    { "buffers", "[[]]", BAD, "name" },
    { "buffers.name", "''", BAD, "name" },
    { "buffers.name", "'a-location-longer-than-31-characters'", BAD, "name" },
    { "buffers.addr", "0", BAD, "address 0" },
    { "buffers.addr", "-4096", BAD, "addr" },
    { "buffers.addr", "'4096'", BAD, "addr" },
    { "buffers.addr", "1e3", BAD, "addr" },
    { "buffers.length", "0", BAD, "length 0" },
    { "buffers.length", NULL, BAD, "length" },
    { "buffers.length", "9223372036854775807", SHUNT_OK, NULL },
    { "buffers.access", NULL, BAD, "access" },
    { "buffers.access", "'w'", BAD, "access" },
    { "buffers.access", "'r'", SHUNT_OK, NULL },
    { "buffers.keys", NULL, BAD, "keys" },
    { "buffers.keys", "[]", BAD, "keys" },
    { "buffers.keys", "{}", SHUNT_OK, NULL },
    { "buffers.keys", "{'shm':'AAEC'}", BAD, "shm" },
    { "buffers.keys", "{'ucx:lo':'?'}", BAD, "base64" },
    { "buffers.keys", "{'ucx:lo':7}", BAD, "keys" },
    { "priority_matrix", NULL, BAD, "priority_matrix" },
    { "priority_matrix", "[]", BAD, "priority_matrix" },
    { "priority_matrix", "{}", SHUNT_OK, NULL },
    { "priority_matrix", "{'cpu:0':['lo']}", BAD, "cpu:0" },
    { "priority_matrix", "{'cpu:0':[['lo']]}", BAD, "cpu:0" },
    { "priority_matrix", "{'cpu:0':[['lo'],[],[]]}", BAD, "cpu:0" },
    { "priority_matrix", "{'cpu:0':[['lo'],'lo']}", BAD, "cpu:0" },
    { "priority_matrix", "{'cpu:0':[[7],[]]}", BAD, "cpu:0" },
    { "priority_matrix", "{'cpu:0':{'lo':1}}", BAD, "cpu:0" },
    { "priority_matrix", "{'cpu:1':[['lo'],['']]}", BAD, "cpu:1" }
};
/* clang-format on */

static void every_field_is_checked(void **state)
{
    const char *field;
    json_t *root, *object;
    shunt_status_t got;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        root   = good();
        object = root;
        field  = rows[i].field;
        if (strchr(field, '.') != NULL) {
            object = json_array_get(
                json_object_get(root, field[0] == 'b' ? "buffers" : "devices"),
                0);
            field = strchr(field, '.') + 1;
        }
        assert_non_null(object);
        if (rows[i].value == NULL)
            json_object_del(object, field);
        else
            json_object_set_new(object, field, piece(rows[i].value));
        got = decode_root(root, NULL);
        if (got != rows[i].expected)
            fail_msg("%s = %s: %s", rows[i].field,
                     rows[i].value == NULL ? "none" : rows[i].value,
                     shunt_status_name(got));
        if ((got != SHUNT_OK) &&
            (strstr(shunt_last_error(), rows[i].says) == NULL))
            fail_msg("'%s' does not say '%s'", shunt_last_error(),
                     rows[i].says);
    }
}

static void the_name_has_to_be_the_one_asked_for(void **state)
{
    (void)state;
    assert_int_equal(decode_root(good(), "h:1"), SHUNT_OK);
    assert_int_equal(decode_root(good(), "h:2"), BAD);
    assert_non_null(strstr(shunt_last_error(), "h:2"));
}

static void add_buffer(json_t *root, json_int_t addr, json_int_t length)
{
    json_array_append_new(json_object_get(root, "buffers"),
                          json_pack("{s:s,s:I,s:I,s:s,s:{}}", "name", "*",
                                    "addr", addr, "length", length, "access",
                                    "rw", "keys"));
}

static void buffers_may_touch_and_not_overlap(void **state)
{
    shunt_desc_t *desc;
    json_t *root = good();
    char *text;

    (void)state;
    add_buffer(root, 8192, 4096);
    add_buffer(root, 1, 4095); /* sorted by the decoder */
    text = json_dumps(root, 0);
    assert_int_equal(shunt_desc_decode(text, strlen(text), NULL, &desc),
                     SHUNT_OK);
    assert_int_equal(desc->region_count, 3);
    assert_int_equal(desc->regions[0].addr, 1);
    assert_int_equal(desc->regions[2].addr, 8192);
    shunt_desc_free(desc);
    free(text);
    add_buffer(root, 8191, 1); /* the last byte of the first */
    assert_int_equal(decode_root(root, NULL), BAD);
    assert_non_null(strstr(shunt_last_error(), "overlap"));
    root = good();
    add_buffer(root, 4096, 4096); /* twice */
    assert_int_equal(decode_root(root, NULL), BAD);
}

static void rails_are_there_once(void **state)
{
    json_t *root = good();
    json_t *list = json_object_get(root, "devices");

    (void)state;
    json_array_append(list, json_array_get(list, 0));
    assert_int_equal(decode_root(root, NULL), BAD);
    assert_non_null(strstr(shunt_last_error(), "twice"));
}

static void addresses_and_keys_have_bounds(void **state)
{
    static char text[17 * 1024 / 3 * 4 + 8];
    json_t *root   = good();
    json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    json_t *buffer = json_array_get(json_object_get(root, "buffers"), 0);

    (void)state;
    memset(text, 'A', sizeof(text));
    text[16 * 1024 / 3 * 4 + 4] = '\0'; /* 16 KiB and a little */
    json_object_set_new(device, "address", json_string(text));
    assert_int_equal(decode_root(root, NULL), BAD);
    root   = good();
    buffer = json_array_get(json_object_get(root, "buffers"), 0);
    text[4 * 1024 / 3 * 4 + 4] = '\0';
    json_object_set_new(json_object_get(buffer, "keys"), "ucx:lo",
                        json_string(text));
    assert_int_equal(decode_root(root, NULL), BAD);
    text[4 * 1024 / 3 * 4] = '\0';
    root                   = good();
    buffer = json_array_get(json_object_get(root, "buffers"), 0);
    json_object_set_new(json_object_get(buffer, "keys"), "ucx:lo",
                        json_string(text));
    assert_int_equal(decode_root(root, NULL), SHUNT_OK);
}

static void what_is_no_json(void **state)
{
    static const char *const bad[] = { "",
                                       "{",
                                       "[]",
                                       "null",
                                       "7",
                                       "\"x\"",
                                       "{\"name\":1,\"name\":2}",
                                       "{} x",
                                       "{\"name\":\"\xff\"}" };
    json_t *root                   = good();
    shunt_desc_t *desc;
    char *text;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(bad); i++)
        assert_int_equal(shunt_desc_decode(bad[i], strlen(bad[i]), NULL, &desc),
                         BAD);
    text = json_dumps(root, 0);
    json_decref(root);
    for (i = 0; i < strlen(text); i++) /* cut anywhere */
        assert_int_equal(shunt_desc_decode(text, i, NULL, &desc), BAD);
    free(text);
}

static void many_regions(void **state)
{
    enum {
        N = 10000
    };
    static shunt_desc_region_t regions[N];
    static const uint8_t key[80];
    shunt_desc_key_t keys[2] = { { 0, 80, key }, { 1, 24, key } };
    shunt_desc_t *desc;
    uint64_t start, encoded, decoded;
    sample_t s;
    char *json;
    size_t length;
    uint32_t i;

    (void)state;
    sample_init(&s);
    for (i = 0; i < N; i++)
        regions[i] = (shunt_desc_region_t){ (i + 1) * UINT64_C(0x10000),
                                            0x10000,
                                            SHUNT_ACCESS_REMOTE_READ_WRITE,
                                            "cpu:0",
                                            keys,
                                            2 };
    s.desc.regions      = regions;
    s.desc.region_count = N;
    start               = shunt_clock_ns();
    assert_int_equal(shunt_desc_encode(&s.desc, &json, &length), SHUNT_OK);
    encoded = shunt_clock_ns();
    assert_int_equal(shunt_desc_decode(json, length, NULL, &desc), SHUNT_OK);
    decoded = shunt_clock_ns();
    assert_int_equal(desc->region_count, N);
    print_message("%d regions: %zu bytes, encode %.1f ms, decode %.1f ms\n", N,
                  length, (double)(encoded - start) / 1e6,
                  (double)(decoded - encoded) / 1e6);
    shunt_desc_free(desc);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(encoding_refuses_what_cannot_be_decoded),
        cmocka_unit_test(every_field_is_checked),
        cmocka_unit_test(the_name_has_to_be_the_one_asked_for),
        cmocka_unit_test(buffers_may_touch_and_not_overlap),
        cmocka_unit_test(rails_are_there_once),
        cmocka_unit_test(addresses_and_keys_have_bounds),
        cmocka_unit_test(what_is_no_json),
        cmocka_unit_test(many_regions)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
