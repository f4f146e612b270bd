/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/list.h"

#include "support/unit.h"

typedef struct thing {
    int number;
    shunt_link_t link;
} thing_t;

/* The numbers of a list's elements, as one decimal number; the same backwards,
 * or -1. */
static long digits(const shunt_link_t *head)
{
    const shunt_link_t *link;
    long forth = 0, back = 0, place = 1;

    for (link = head->next; link != head; link = link->next)
        forth = forth * 10 + SHUNT_OF(link, thing_t, link)->number;
    for (link = head->prev; link != head; link = link->prev, place *= 10)
        back += place * SHUNT_OF(link, thing_t, link)->number;
    return forth == back ? forth : -1;
}

static void order_and_removal(void **state)
{
    thing_t things[4];
    shunt_link_t head;
    int i;

    (void)state;
    shunt_list_init(&head);
    assert_true(shunt_list_empty(&head));
    for (i = 0; i < 4; i++) {
        things[i].number = i + 1;
        shunt_list_init(&things[i].link);
        shunt_list_append(&head, &things[i].link);
    }
    assert_int_equal(digits(&head), 1234);
    shunt_list_remove(&things[1].link);
    assert_int_equal(digits(&head), 134);
    shunt_list_remove(&things[1].link); /* in none */
    shunt_list_append(&head, &things[1].link);
    assert_int_equal(digits(&head), 1342);
    for (i = 0; i < 4; i++)
        shunt_list_remove(&things[i].link);
    assert_true(shunt_list_empty(&head));
}

static void splicing(void **state)
{
    thing_t things[4];
    shunt_link_t left, right;
    int i;

    (void)state;
    shunt_list_init(&left);
    shunt_list_init(&right);
    shunt_list_splice(&left, &right);
    assert_true(shunt_list_empty(&left));
    for (i = 0; i < 4; i++) {
        things[i].number = i + 1;
        shunt_list_append(i < 2 ? &left : &right, &things[i].link);
    }
    shunt_list_splice(&left, &right);
    assert_int_equal(digits(&left), 1234);
    assert_true(shunt_list_empty(&right));
    shunt_list_splice(&right, &left);
    assert_int_equal(digits(&right), 1234);
    shunt_list_splice(&right, &left);
    assert_int_equal(digits(&right), 1234);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_removal),
        cmocka_unit_test(splicing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
