/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "base/error.h"

#include "support/child.h"
#include "support/unit.h"

/* Each case is a child: a process reads SHUNT_LOG once. */
struct env {
    const char *log;
    const char *file;
};

static void env_set(const struct env *env)
{
    unsetenv("SHUNT_LOG");
    unsetenv("SHUNT_LOG_FILE");
    if (env->log != NULL)
        setenv("SHUNT_LOG", env->log, 1);
    if (env->file != NULL)
        setenv("SHUNT_LOG_FILE", env->file, 1);
}

static int say_all(void *arg)
{
    shunt_log_part_t alpha = SHUNT_LOG_PART("alpha");
    shunt_log_part_t beta  = SHUNT_LOG_PART("beta");

    env_set(arg);
    shunt_log(&alpha, SHUNT_LOG_ERROR, "e");
    shunt_log(&alpha, SHUNT_LOG_WARN, "w");
    shunt_log(&alpha, SHUNT_LOG_INFO, "i");
    shunt_log(&alpha, SHUNT_LOG_DEBUG, "d");
    shunt_log(&beta, SHUNT_LOG_WARN, "w");
    shunt_log(&beta, SHUNT_LOG_DEBUG, "d");
    return 0;
}

static void said(struct env env, const char *expected)
{
    char text[2048], lines[2048] = "";
    char *line, *rest            = text;
    size_t used = 0;

    assert_int_equal(test_child(say_all, &env, text, sizeof(text)), 0);
    /* "shunt[pid] warn alpha: w" without its first word */
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line == '\0')
            continue;
        assert_int_equal(strncmp(line, "shunt[", 6), 0);
        line = strchr(line, ' ');
        assert_non_null(line);
        used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s;",
                                 line + 1);
    }
    assert_string_equal(lines, expected);
}

static void the_default_is_warn(void **state)
{
    (void)state;
    said((struct env){ NULL, NULL },
         "error alpha: e;warn alpha: w;warn beta: w;");
}

static void a_level_for_all(void **state)
{
    (void)state;
    said((struct env){ "info", NULL },
         "error alpha: e;warn alpha: w;info alpha: i;warn beta: w;");
    said((struct env){ "ERROR", NULL }, "error alpha: e;");
    said((struct env){ "off", NULL }, "");
}

static void a_level_for_one_part(void **state)
{
    (void)state;
    said((struct env){ "error,beta:debug", NULL },
         "error alpha: e;warn beta: w;debug beta: d;");
    said((struct env){ "alpha:off", NULL }, "warn beta: w;");
}

static void a_bad_text_warns_once_and_is_the_default(void **state)
{
    static const char *const bad[] = { "loud",        "",
                                       "warn,",       "alpha:",
                                       ":debug",      "alpha:loud",
                                       "warn,,error", "warn beta:debug" };
    char expected[512];
    size_t i;

    (void)state;
    for (i = 0; i < TEST_COUNT(bad); i++) {
        snprintf(expected, sizeof(expected),
                 "warn log: SHUNT_LOG=\"%s\": expected LEVEL[,PART:LEVEL...] "
                 "with levels off, error, warn, info, debug, data; using "
                 "\"warn\";error alpha: e;warn alpha: w;warn beta: w;",
                 bad[i]);
        said((struct env){ bad[i], NULL }, expected);
    }
}

static void a_file_gets_the_lines(void **state)
{
    char path[] = "test_log.XXXXXX";
    char text[256];
    int fd = mkstemp(path);
    ssize_t got;

    (void)state;
    assert_true(fd >= 0);
    said((struct env){ "error", path }, "");
    said((struct env){ "error", path }, ""); /* appended */
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    unlink(path);
    assert_true(got > 0);
    text[got] = '\0';
    assert_non_null(strstr(text, "error alpha: e\n"));
    assert_non_null(strstr(strstr(text, "alpha: e\n") + 5, "alpha: e\n"));
}

static void a_file_that_cannot_be_opened_is_said(void **state)
{
    char expected[256];

    (void)state;
    snprintf(expected, sizeof(expected),
             "warn log: SHUNT_LOG_FILE=\"/nowhere/at/all\" cannot be opened, "
             "logging to standard error: %s;error alpha: e;",
             strerror(ENOENT));
    said((struct env){ "error", "/nowhere/at/all" }, expected);
}

static int say_long_and_odd(void *arg)
{
    shunt_log_part_t part = SHUNT_LOG_PART("part");
    char big[4096];

    env_set(arg);
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    shunt_error(SHUNT_ERR_DNS, "a sentence");
    errno = ENOENT;
    shunt_log(&part, SHUNT_LOG_WARN, "two\nlines\x1b[1m and %m");
    shunt_log(&part, SHUNT_LOG_WARN, "%s", big);
    if (strcmp(shunt_last_error(), "a sentence") != 0)
        return 1;
    return errno != ENOENT;
}

static void a_line_is_one_printable_line(void **state)
{
    struct env env = { NULL, NULL };
    char text[4096], expected[128];
    char *second;

    (void)state;
    assert_int_equal(test_child(say_long_and_odd, &env, text, sizeof(text)), 0);
    snprintf(expected, sizeof(expected), "part: two?lines?[1m and %s\n",
             strerror(ENOENT));
    assert_non_null(strstr(text, expected));
    second = strchr(text, '\n') + 1;
    assert_int_equal(strlen(second), 1023);
    assert_string_equal(second + 1019, "...\n");
}

enum {
    THREADS = 4,
    LINES   = 200
};

static void *say_many(void *arg)
{
    static shunt_log_part_t shared = SHUNT_LOG_PART("shared");
    unsigned i;

    for (i = 0; i < LINES; i++)
        shunt_log(&shared, SHUNT_LOG_WARN, "thread %d says its line",
                  *(int *)arg);
    return NULL;
}

static int say_in_threads(void *arg)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], i;

    env_set(arg);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, say_many, &numbers[i]) != 0)
            return 1;
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void lines_of_threads_do_not_mix(void **state)
{
    static char text[THREADS * LINES * 64];
    struct env env = { NULL, NULL };
    unsigned count = 0;
    char *line, *rest = text;
    int thread, end;

    (void)state;
    assert_int_equal(test_child(say_in_threads, &env, text, sizeof(text)), 0);
    while (((line = strsep(&rest, "\n")) != NULL) && (*line != '\0')) {
        end = 0;
        sscanf(line, "shunt[%*d] warn shared: thread %d says its line%n",
               &thread, &end);
        assert_int_equal(end, strlen(line));
        count++;
    }
    assert_int_equal(count, THREADS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_warn),
        cmocka_unit_test(a_level_for_all),
        cmocka_unit_test(a_level_for_one_part),
        cmocka_unit_test(a_bad_text_warns_once_and_is_the_default),
        cmocka_unit_test(a_file_gets_the_lines),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_said),
        cmocka_unit_test(a_line_is_one_printable_line),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
