/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, the inbox, the memory of senders, descriptors of a child. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shunt/engine.h>

#include "base/ident.h"
#include "control/addr.h"
#include "control/control.h"
#include "control/fds.h"
#include "control/inbox.h"
#include "control/sameuser.h"
#include "control/senders.h"
#include "support/unit.h"

/* ---- addresses -------------------------------------------------------- */

static void good_addresses(void **state)
{
    static const struct {
        const char *address, *host;
        uint16_t port;
    } rows[] = { { "127.0.0.1:80", "127.0.0.1", 80 },
                 { "localhost:0", "localhost", 0 },
                 { "[::1]:65535", "::1", 65535 },
                 { "[fe80::1%lo]:1", "fe80::1%lo", 1 },
                 { "a-b.c:00007", "a-b.c", 7 } };
    char host[64];
    uint16_t port;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        assert_int_equal(
            shunt_control_parse(rows[i].address, host, sizeof(host), &port),
            SHUNT_OK);
        assert_string_equal(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
}

static void bad_addresses(void **state)
{
    /* clang-format off */
    static const char *const rows[] = {
        "", "host", ":80", "[]:80", "[::1]80", "[::1", "::1:80", "host:",
        "host:x", "host:-1", "host:65536", "host:99999999999", "host: 1",
        "host:1 ", "host:0x10"
    };
    /* clang-format on */
    char host[16], huge[400];
    uint16_t port;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        if (shunt_control_parse(rows[i], host, sizeof(host), &port) !=
            SHUNT_ERR_INVALID_ARGUMENT)
            fail_msg("'%s' was taken", rows[i]);
        assert_non_null(strstr(shunt_last_error(), "host:port"));
    }
    memset(huge, 'h', sizeof(huge));
    memcpy(huge + sizeof(huge) - 3, ":1", 3);
    assert_int_equal(shunt_control_parse(huge, host, sizeof(host), &port),
                     SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        shunt_control_parse("longer-than-sixteen:1", host, sizeof(host), &port),
        SHUNT_ERR_INVALID_ARGUMENT);
    assert_int_equal(shunt_control_parse(NULL, host, sizeof(host), &port),
                     SHUNT_ERR_INVALID_ARGUMENT);
}

static void kinds_of_addresses(void **state)
{
    static const struct {
        const char *host;
        bool loopback, wildcard;
    } rows[] = { { "127.0.0.1", true, false },
                 { "127.9.9.9", true, false },
                 { "::1", true, false },
                 { "0.0.0.0", false, true },
                 { "::", false, true },
                 { "10.0.0.1", false, false },
                 { "fd00::1", false, false },
                 { "128.0.0.1", false, false },
                 { "::ffff:127.0.0.1", true, false } };
    shunt_ctl_addrs_t addrs;
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(rows); i++) {
        assert_int_equal(shunt_ctl_resolve(rows[i].host, 5, true, &addrs),
                         SHUNT_OK);
        assert_int_equal(addrs.count, 1);
        assert_true(addrs.numeric);
        assert_int_equal(shunt_ctl_is_loopback(&addrs.list[0]),
                         rows[i].loopback);
        assert_int_equal(shunt_ctl_is_wildcard(&addrs.list[0]),
                         rows[i].wildcard);
    }
    assert_int_equal(shunt_ctl_resolve("localhost", 5, true, &addrs),
                     SHUNT_ERR_DNS);
    assert_int_equal(shunt_ctl_resolve("localhost", 5, false, &addrs),
                     SHUNT_OK);
    assert_false(addrs.numeric);
    assert_int_equal(
        shunt_ctl_resolve("no.such.host.invalid", 5, false, &addrs),
        SHUNT_ERR_DNS);
    assert_non_null(strstr(shunt_last_error(), "no.such.host.invalid"));
}

/* ---- inbox ------------------------------------------------------------ */

static bool put(shunt_ctl_inbox_t *inbox, const char *text, size_t length)
{
    shunt_incarnation_t from = { { 1 } };
    shunt_ctl_item_t *item =
        shunt_ctl_item_new(&from, "me", (const uint8_t *)text, length);

    assert_non_null(item);
    if (shunt_ctl_inbox_put(inbox, item))
        return true;
    free(item);
    return false;
}

static shunt_status_t take(shunt_ctl_inbox_t *inbox, char *data,
                           size_t *length_p, bool *space_p)
{
    shunt_ctl_item_t *item;
    shunt_status_t status;

    status = shunt_ctl_inbox_take(inbox, data, length_p, &item, space_p);
    if (status == SHUNT_OK) {
        assert_string_equal(item->name, "me");
        free(item);
    }
    return status;
}

static void inbox_is_bounded_both_ways(void **state)
{
    shunt_ctl_inbox_t inbox;
    char data[16];
    size_t length = sizeof(data);
    bool space;

    (void)state;
    shunt_ctl_inbox_init(&inbox, 3, 10);
    assert_int_equal(take(&inbox, data, &length, &space), SHUNT_ERR_EMPTY);
    assert_true(put(&inbox, "abcd", 4));
    assert_true(put(&inbox, "efgh", 4));
    assert_false(put(&inbox, "ijk", 3)); /* bytes */
    assert_true(put(&inbox, "i", 1));
    assert_false(put(&inbox, "j", 1)); /* entries */
    length = 3;
    assert_int_equal(take(&inbox, data, &length, &space), SHUNT_ERR_TRUNCATED);
    assert_int_equal(length, 4);
    assert_false(space);
    assert_int_equal(take(&inbox, data, &length, &space), SHUNT_OK);
    assert_memory_equal(data, "abcd", 4);
    assert_true(space); /* somebody waited */
    length = sizeof(data);
    assert_int_equal(take(&inbox, data, &length, &space), SHUNT_OK);
    assert_false(space);
    shunt_ctl_inbox_cleanup(&inbox); /* with one inside */
}

/* ---- senders ---------------------------------------------------------- */

static void senders_are_remembered(void **state)
{
    struct shunt_ctl_incoming *connection = (void *)state; /* any address */
    shunt_ctl_senders_t senders;
    shunt_ctl_sender_t *one, *other;
    shunt_incarnation_t id = { { 9 } };
    uint32_t i;

    shunt_ctl_senders_init(&senders);
    one = shunt_ctl_senders_get(&senders, &id, 1);
    shunt_ctl_senders_attach(&senders, one, connection);
    one->last = 5;
    other     = shunt_ctl_senders_get(&senders, &id, 2); /* another stream */
    assert_ptr_not_equal(one, other);
    assert_int_equal(other->last, 0);
    shunt_ctl_senders_attach(&senders, other, connection);
    shunt_ctl_senders_detach(&senders, one);
    assert_int_equal(shunt_ctl_senders_get(&senders, &id, 1)->last, 5);
    shunt_ctl_senders_detach(&senders, other); /* had nothing to remember */
    assert_int_equal(senders.lost_count, 1);
    for (i = 10; i < 10 + SHUNT_SENDERS_LOST; i++) {
        one = shunt_ctl_senders_get(&senders, &id, i);
        shunt_ctl_senders_attach(&senders, one, connection);
        one->last = i;
        shunt_ctl_senders_detach(&senders, one);
    }
    assert_int_equal(senders.lost_count, SHUNT_SENDERS_LOST);
    assert_int_equal(shunt_ctl_senders_get(&senders, &id, 1)->last, 0);
    assert_int_equal(shunt_ctl_senders_get(&senders, &id, 11)->last, 11);
    shunt_ctl_senders_cleanup(&senders);
}

/* ---- descriptors of a child ------------------------------------------- */

static void a_child_closes_what_is_ours(void **state)
{
    int ours[2], theirs, status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ours), 0);
    theirs = dup(ours[0]);
    shunt_ctl_fd_add(ours[0]);
    shunt_ctl_fd_add(ours[1]);
    shunt_ctl_fd_close(ours[1]); /* forgotten again */
    pid = fork();
    if (pid == 0) {
        shunt_control_atfork_child();
        _exit((fcntl(ours[0], F_GETFD) == -1) && (fcntl(theirs, F_GETFD) != -1)
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_not_equal(fcntl(ours[0], F_GETFD), -1);
    shunt_ctl_fd_close(ours[0]);
    assert_int_equal(fcntl(ours[0], F_GETFD), -1);
    close(theirs);
}

/* ---- users ------------------------------------------------------------ */

typedef int (*uid_fn)(const shunt_ctl_sockaddr_t *,
                      const shunt_ctl_sockaddr_t *, uid_t *);

static void find_user(int family, uid_fn by)
{
    shunt_ctl_sockaddr_t at, own, other;
    socklen_t length = sizeof(at);
    shunt_reason_t reason;
    int listener, out, in;
    uid_t uid = 12345;

    memset(&at, 0, sizeof(at));
    at.sa.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        at.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        at.in6.sin6_addr = in6addr_loopback;
    listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if ((listener < 0) ||
        (bind(listener, &at.sa, shunt_ctl_sockaddr_length(&at)) != 0)) {
        print_message("SKIP: no address family %d here\n", family);
        skip();
    }
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, &at.sa, &length), 0);
    out = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(out, &at.sa, length), 0);
    length = sizeof(own);
    assert_int_equal(getsockname(out, &own.sa, &length), 0);
    length = sizeof(other);
    assert_int_equal(getpeername(out, &other.sa, &length), 0);
    in = accept(listener, NULL, NULL);
    assert_true(in >= 0);
    assert_int_equal(by(&other, &own, &uid), 0);
    assert_int_equal(uid, geteuid());
    assert_int_equal(by(&own, &other, &uid), 0);
    assert_int_equal(shunt_ctl_same_user(in, &reason), SHUNT_OK);
    assert_int_equal(shunt_ctl_same_user(out, &reason), SHUNT_OK);
    close(in);
    /* nobody owns what is not there; the listener is not taken for it */
    assert_int_not_equal(by(&other, &own, &uid), 0);
    assert_int_equal(shunt_ctl_same_user(out, &reason),
                     SHUNT_ERR_REJECT_HANDSHAKE);
    close(out);
    close(listener);
}

static void netlink_knows_the_user(void **state)
{
    (void)state;
    find_user(AF_INET, shunt_ctl_uid_by_netlink);
}

static void netlink_knows_the_user_v6(void **state)
{
    (void)state;
    find_user(AF_INET6, shunt_ctl_uid_by_netlink);
}

static void proc_knows_the_user(void **state)
{
    (void)state;
    find_user(AF_INET, shunt_ctl_uid_by_proc);
}

static void proc_knows_the_user_v6(void **state)
{
    (void)state;
    find_user(AF_INET6, shunt_ctl_uid_by_proc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(bad_addresses),
        cmocka_unit_test(kinds_of_addresses),
        cmocka_unit_test(inbox_is_bounded_both_ways),
        cmocka_unit_test(senders_are_remembered),
        cmocka_unit_test(a_child_closes_what_is_ours),
        cmocka_unit_test(netlink_knows_the_user),
        cmocka_unit_test(netlink_knows_the_user_v6),
        cmocka_unit_test(proc_knows_the_user),
        cmocka_unit_test(proc_knows_the_user_v6)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
