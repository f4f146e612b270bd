/* SPDX-License-Identifier: BSD-3-Clause */
/* What the provider offers, and what it refuses. */
#include "config.h"

#include "efa_sim/find.h"
#include "efa_sim/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices ----------------------------------------------------------- */

static void devices_are_listed(void **state)
{
    struct fi_info *list, *info;
    unsigned count = 0, last_bus = 0;
    char name[32];

    (void)state;
    side_settings("EFASIM_NICS", "5", NULL);
    list = side_info(side_hints());
    for (info = list; info != NULL; info = info->next, count++) {
        snprintf(name, sizeof(name), "efasim%u-rdm", count);
        assert_string_equal(info->domain_attr->name, name);
        assert_string_equal(info->fabric_attr->prov_name, "efa_sim");
        assert_int_equal(info->addr_format, FI_ADDR_EFA);
        assert_non_null(info->nic);
        snprintf(name, sizeof(name), "efasim%u", count);
        assert_string_equal(info->nic->device_attr->name, name);
        assert_int_equal(info->nic->bus_attr->bus_type, FI_BUS_PCI);
        assert_true(info->nic->bus_attr->attr.pci.bus_id > last_bus);
        last_bus = info->nic->bus_attr->attr.pci.bus_id;
        assert_int_equal(info->nic->link_attr->speed, 100000000000);
    }
    assert_int_equal(count, 5);
    fi_freeinfo(list);
}

static void limits_are_told(void **state)
{
    struct fi_info *info;
    int needed =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

    (void)state;
    side_settings("EFASIM_MAX_MSG", "64k", "EFASIM_INJECT", "32", NULL);
    info = side_info(side_hints());
    assert_non_null(info);
    assert_int_equal(info->ep_attr->max_msg_size, 65536);
    assert_int_equal(info->tx_attr->inject_size, 32);
    assert_int_equal(info->tx_attr->msg_order, FI_ORDER_NONE);
    assert_int_equal(info->tx_attr->comp_order, FI_ORDER_NONE);
    assert_int_equal(info->ep_attr->max_order_raw_size, 0);
    assert_int_equal(info->ep_attr->max_order_war_size, 0);
    assert_int_equal(info->ep_attr->max_order_waw_size, 0);
    assert_int_equal(info->domain_attr->mr_mode, needed);
    assert_int_equal(info->caps & (FI_ATOMIC | FI_TAGGED), 0);
    fi_freeinfo(info);
}

/* Nothing is offered for these hints, and something without the change. */
static void assert_refused(struct fi_info *hints)
{
    struct fi_info *info = side_info(hints);

    assert_null(info);
    info = side_info(side_hints());
    assert_non_null(info);
    fi_freeinfo(info);
}

static void hints_are_refused(void **state)
{
    struct fi_info *hints;

    (void)state;
    side_settings("EFASIM_DELIVERY", "0", NULL);
    hints = side_hints();
    hints->caps |= FI_ATOMIC;
    assert_refused(hints);
    hints = side_hints();
    hints->domain_attr->mr_mode &= ~FI_MR_LOCAL;
    assert_refused(hints);
    hints                       = side_hints();
    hints->domain_attr->mr_mode = FI_MR_SCALABLE;
    assert_refused(hints);
    hints                     = side_hints();
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    assert_refused(hints);
    hints                    = side_hints();
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    assert_refused(hints);
    hints                       = side_hints();
    hints->tx_attr->inject_size = 33;
    assert_refused(hints);
    hints                        = side_hints();
    hints->ep_attr->max_msg_size = 65537;
    assert_refused(hints);
    hints                = side_hints();
    hints->ep_attr->type = FI_EP_MSG;
    assert_refused(hints);
}

static void a_setting_that_is_wrong_offers_nothing(void **state)
{
    static const char *const wrong[][2] = {
        { "EFASIM_HOLD", "2" },   { "EFASIM_HOLD", "often" },
        { "EFASIM_NICS", "0" },   { "EFASIM_NICS", "33" },
        { "EFASIM_MTU", "-1" },   { "EFASIM_MTU", "9x" },
        { "EFASIM_CORE", "none" }
    };
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(wrong); i++) {
        side_settings(wrong[i][0], wrong[i][1], NULL);
        assert_null(side_info(side_hints()));
    }
}

/* ---- reads ------------------------------------------------------------- */

static bool is_emulated(const side_t *side)
{
    bool value    = false;
    size_t length = sizeof(value);

    assert_int_equal(fi_getopt(&side->ep->fid, FI_OPT_ENDPOINT,
                               -(0xefa << 16) + 1, &value, &length),
                     0);
    return value;
}

static void reads_may_not_be_there(void **state)
{
    struct fi_info *hints;
    side_t a, b;

    (void)state;
    side_settings("EFASIM_DEVICE_READ", "0", NULL);
    hints = side_hints();
    hints->caps |= FI_READ;
    assert_null(side_info(hints));
    side_open_pair(&a, &b, 0);
    assert_int_equal(a.info->caps & (FI_READ | FI_REMOTE_READ), 0);
    assert_int_equal(side_read(&a, &b, 0, 8, 0), -FI_EOPNOTSUPP);
    assert_int_equal(side_write(&a, &b, 0, 8, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_false(is_emulated(&a));
    side_close_pair(&a, &b);
}

static void reads_may_be_emulated(void **state)
{
    side_t a, b;

    (void)state;
    side_settings("EFASIM_DEVICE_READ", "0", "EFASIM_EMULATED_READ", "1", NULL);
    side_open_pair(&a, &b, 0);
    assert_true((a.info->caps & FI_READ) != 0);
    assert_true(is_emulated(&a));
    side_fill(b.memory, 64, 5);
    assert_int_equal(side_read(&a, &b, 0, 64, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_true(side_is(a.memory, 64, 5));
    side_close_pair(&a, &b);
}

/* ---- lengths ----------------------------------------------------------- */

static void lengths_are_limited(void **state)
{
    uint64_t end = side_now_ms() + 5000;
    side_t a, b;
    void *desc;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, FI_DELIVERY_COMPLETE);
    desc = fi_mr_desc(a.mr);
    assert_int_equal(side_write(&a, &b, 0, 65537, 0), -FI_EMSGSIZE);
    assert_int_equal(side_read(&a, &b, 0, 65537, 0), -FI_EMSGSIZE);
    assert_int_equal(side_send(&a, &b, 0, 65537, 0), -FI_EMSGSIZE);
    assert_int_equal(
        fi_inject_write(a.ep, a.memory, 33, a.peer, a.there, a.key),
        -FI_EMSGSIZE);
    assert_int_equal(fi_inject(a.ep, a.memory, 33, a.peer), -FI_EMSGSIZE);
    assert_int_equal(a.counters->too_long, 5);
    side_fill(a.memory, 65536, 9);
    assert_int_equal(side_write(&a, &b, 0, 65536, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_true(side_is(b.memory, 65536, 9));
    /* injected: no completion, and the buffer is free at once */
    side_fill(a.memory, 32, 10);
    assert_int_equal(
        fi_inject_write(a.ep, a.memory, 32, a.peer, a.there, a.key), 0);
    memset(a.memory, 0, 32);
    while (!side_is(b.memory, 32, 10) && (side_now_ms() < end)) {
        side_progress(&a);
        side_progress(&b);
    }
    assert_true(side_is(b.memory, 32, 10));
    assert_int_equal(a.count, 1);
    assert_non_null(desc);
    side_close_pair(&a, &b);
}

static void a_receive_may_be_too_short(void **state)
{
    side_t a, b;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(side_receive(&b, &a, 0, 10, 0), 0);
    assert_int_equal(side_send(&a, &b, 0, 11, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_true(side_wait(&b, &a, 1));
    assert_int_equal(a.ends[0].error, FI_EMSGSIZE);
    assert_int_equal(b.ends[0].error, FI_ETRUNC);
    side_close_pair(&a, &b);
}

/* ---- registration ------------------------------------------------------ */

static ssize_t write_with(side_t *side, size_t at, size_t length, void *desc)
{
    return fi_write(side->ep, side->memory + at, length, desc, side->peer,
                    side->there, side->key, side_context(0));
}

static void buffers_have_to_be_registered(void **state)
{
    struct fid_mr *part, *closed;
    side_t a, b;
    void *desc;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(fi_mr_reg(a.domain, a.memory + 4096, 4096, FI_WRITE, 0, 0,
                               0, &part, NULL),
                     0);
    assert_int_equal(
        fi_mr_reg(a.domain, a.memory, 4096, FI_WRITE, 0, 0, 0, &closed, NULL),
        0);
    desc = fi_mr_desc(closed);
    assert_int_equal(fi_close(&closed->fid), 0);
    assert_int_equal(write_with(&a, 0, 8, NULL), -FI_EINVAL);
    assert_int_equal(write_with(&a, 0, 8, desc), -FI_EINVAL);
    desc = fi_mr_desc(part);
    assert_int_equal(write_with(&a, 4095, 8, desc), -FI_EINVAL);
    assert_int_equal(write_with(&a, 8185, 8, desc), -FI_EINVAL);
    assert_int_equal(
        fi_read(a.ep, a.memory + 4096, 8, desc, a.peer, a.there, a.key, NULL),
        -FI_EINVAL); /* registered for writes only */
    assert_int_equal(fi_send(a.ep, a.memory + 4096, 8, desc, a.peer, NULL),
                     -FI_EINVAL);
    assert_int_equal(fi_recv(a.ep, a.memory, 8, NULL, FI_ADDR_UNSPEC, NULL),
                     -FI_EINVAL);
    assert_int_equal(a.counters->desc_refused, 7);
    assert_int_equal(a.count, 0);
    assert_int_equal(write_with(&a, 8184, 8, desc), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_int_equal(a.ends[0].error, 0);
    assert_int_equal(fi_close(&part->fid), 0);
    side_close_pair(&a, &b);
}

static void registration_may_not_be_needed(void **state)
{
    side_t a, b;

    (void)state;
    side_settings("EFASIM_MR_LOCAL", "0", NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(a.info->domain_attr->mr_mode & FI_MR_LOCAL, 0);
    assert_int_equal(write_with(&a, 0, 8, NULL), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_int_equal(a.ends[0].error, 0);
    side_close_pair(&a, &b);
}

typedef struct range {
    uint64_t addr;
    size_t length;
    uint64_t key;
} range_t;

/* Written by nobody: the error comes, and the memory stays. */
static void assert_not_written(side_t *a, side_t *b, const range_t *range,
                               unsigned number)
{
    side_fill(a->memory, range->length, 1);
    assert_int_equal(fi_write(a->ep, a->memory, range->length,
                              fi_mr_desc(a->mr), a->peer, range->addr,
                              range->key, side_context(number)),
                     0);
    assert_true(side_wait(a, b, number + 1));
    assert_int_equal(a->ends[number].error, FI_EINVAL);
    assert_int_equal(a->ends[number].prov_errno, 7);
    assert_int_equal(b->memory[0], 0);
    assert_int_equal(b->memory[SIDE_ROOM - 1], 0);
}

static void keys_are_checked_at_the_target(void **state)
{
    struct fid_mr *other;
    range_t range;
    side_t a, b;

    (void)state;
    side_settings("EFASIM_EARLY", "1", NULL);
    side_open_pair(&a, &b, 0);
    range = (range_t){ a.there, 8, a.key + 1 };
    assert_not_written(&a, &b, &range, 0);
    range = (range_t){ a.there - 1, 8, a.key };
    assert_not_written(&a, &b, &range, 1);
    range = (range_t){ a.there + SIDE_ROOM - 7, 8, a.key };
    assert_not_written(&a, &b, &range, 2);
    assert_int_equal(fi_mr_reg(b.domain, b.memory, SIDE_ROOM, FI_REMOTE_READ, 0,
                               0, 0, &other, NULL),
                     0);
    range = (range_t){ a.there, 8, fi_mr_key(other) };
    assert_not_written(&a, &b, &range, 3);
    assert_int_equal(fi_close(&other->fid), 0);
    assert_not_written(&a, &b, &range, 4);
    assert_int_equal(fi_read(a.ep, a.memory, 8, fi_mr_desc(a.mr), a.peer,
                             range.addr, range.key, side_context(5)),
                     0);
    assert_true(side_wait(&a, &b, 6));
    assert_int_equal(a.ends[5].prov_errno, 7);
    assert_true(b.counters->key_refused >= 6);
    side_close_pair(&a, &b);
}

/* ---- addresses, lifetimes ---------------------------------------------- */

static void addresses_are_checked(void **state)
{
    char name[64] = { 0 };
    fi_addr_t addr;
    size_t length = sizeof(name);
    side_t a, b;

    (void)state;
    side_settings("EFASIM_AV_SIZE", "2", NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(fi_av_insert(a.av, name, 1, &addr, 0, NULL), 0);
    assert_int_equal(addr, FI_ADDR_NOTAVAIL);
    assert_int_equal(fi_getname(&a.ep->fid, name, &length), 0);
    assert_int_equal(fi_av_insert(a.av, name, 1, &addr, 0, NULL), 1);
    name[4] ^= 1; /* another host's */
    assert_int_equal(fi_av_insert(a.av, name, 1, &addr, 0, NULL), 0);
    addr = a.peer;
    assert_int_equal(fi_av_remove(a.av, &addr, 1, 0), 0);
    assert_int_equal(side_write(&a, &b, 0, 8, 0), -FI_EINVAL);
    side_close_pair(&a, &b);
}

static void another_endpoint_is_not_the_old_one(void **state)
{
    char name[64];
    size_t length = sizeof(name);
    fi_addr_t old;
    side_t a, b;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(fi_getname(&b.ep->fid, name, &length), 0);
    name[16] ^= 1; /* the number behind the carrier's address */
    assert_int_equal(fi_av_insert(a.av, name, 1, &old, 0, NULL), 1);
    a.peer = old;
    assert_int_equal(side_write(&a, &b, 0, 8, 0), 0);
    assert_true(side_wait(&a, &b, 1));
    assert_int_equal(a.ends[0].error, FI_ENOTCONN);
    assert_int_equal(a.ends[0].prov_errno, 9);
    side_close_pair(&a, &b);
}

static void parents_outlive_children(void **state)
{
    side_t a, b;

    (void)state;
    side_settings(NULL, NULL);
    side_open_pair(&a, &b, 0);
    assert_int_equal(fi_close(&a.av->fid), -FI_EBUSY);
    assert_int_equal(fi_close(&a.cq->fid), -FI_EBUSY);
    assert_int_equal(fi_close(&a.domain->fid), -FI_EBUSY);
    assert_int_equal(fi_close(&a.fabric->fid), -FI_EBUSY);
    side_close_pair(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(limits_are_told),
        cmocka_unit_test(hints_are_refused),
        cmocka_unit_test(a_setting_that_is_wrong_offers_nothing),
        cmocka_unit_test(reads_may_not_be_there),
        cmocka_unit_test(reads_may_be_emulated),
        cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(a_receive_may_be_too_short),
        cmocka_unit_test(buffers_have_to_be_registered),
        cmocka_unit_test(registration_may_not_be_needed),
        cmocka_unit_test(keys_are_checked_at_the_target),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(another_endpoint_is_not_the_old_one),
        cmocka_unit_test(parents_outlive_children),
    };

    efasim_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
