/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <shunt/engine.h>
#include "base/conf.h"
#include "base/error.h"

enum {
    LOG_LINE_MAX  = 1024,
    LOG_PARTS_MAX = 16,
    LOG_NAME_MAX  = 24
};

/* SHUNT_LOG, parsed. */
struct log_levels {
    int level; /* of parts that are not named */
    unsigned count;
    struct {
        char name[LOG_NAME_MAX];
        int level;
    } parts[LOG_PARTS_MAX];
};

struct log_conf {
    struct log_levels levels;
    char *file;
};

static const char *const level_names[] = { "off",  "error", "warn",
                                           "info", "debug", "data" };

/* A level by its first `length` characters; -1: there is none. */
static int level_parse(const char *text, size_t length)
{
    int i;

    for (i = 0; i <= SHUNT_LOG_DATA; i++) {
        if ((strlen(level_names[i]) == length) &&
            (strncasecmp(level_names[i], text, length) == 0))
            return i;
    }
    return -1;
}

/* Characters of a part's name: what cannot be one is a mistake, not a part
 * that never logs. */
static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

/* One item of the list: LEVEL or PART:LEVEL. */
static bool item_parse(const char *item, size_t length,
                       struct log_levels *levels)
{
    const char *colon = memchr(item, ':', length);
    size_t name_len;
    int level;

    if (colon == NULL) {
        levels->level = level_parse(item, length);
        return levels->level >= 0;
    }
    name_len = (size_t)(colon - item);
    level    = level_parse(colon + 1, length - name_len - 1);
    if ((level < 0) || (name_len == 0) || (name_len >= LOG_NAME_MAX) ||
        (strspn(item, name_chars) != name_len) ||
        (levels->count == LOG_PARTS_MAX))
        return false;
    memcpy(levels->parts[levels->count].name, item, name_len);
    levels->parts[levels->count].name[name_len] = '\0';
    levels->parts[levels->count++].level        = level;
    return true;
}

static bool levels_parse(const char *text, void *value)
{
    struct log_levels levels = { .level = SHUNT_LOG_WARN };
    size_t length;

    for (;;) {
        length = strcspn(text, ",");
        if (!item_parse(text, length, &levels))
            return false;
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    memcpy(value, &levels, sizeof(levels));
    return true;
}

static const shunt_conf_type_t conf_levels = {
    .expects = "LEVEL[,PART:LEVEL...] with levels off, error, warn, info, "
               "debug, data",
    .parse   = levels_parse
};

static const shunt_conf_field_t log_fields[] = {
    { "LOG", "warn",
      "What is logged: a level, and other levels for single parts, "
      "LEVEL[,PART:LEVEL...].",
      offsetof(struct log_conf, levels), &conf_levels },
    { "LOG_FILE", "",
      "File that log lines are appended to; empty: standard error.",
      offsetof(struct log_conf, file), &shunt_conf_string },
    { .name = NULL }
};

static const shunt_conf_table_t log_table = { "log", log_fields,
                                              sizeof(struct log_conf) };

enum log_state {
    LOG_UNUSED,
    LOG_OPENING,
    LOG_OPEN
};

/* Written under the configuration's lock, until log_state is LOG_OPEN; never
 * after. */
static struct log_conf log_conf = { .levels = { .level = SHUNT_LOG_WARN } };
static int log_fd               = STDERR_FILENO;
static atomic_int log_state     = LOG_UNUSED;

static shunt_log_part_t log_part = SHUNT_LOG_PART("log");

static void open_file(const char *path)
{
    int fd;

    if ((path == NULL) || (path[0] == '\0'))
        return;
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        shunt_log_write(&log_part, SHUNT_LOG_WARN,
                        "SHUNT_LOG_FILE=\"%s\" cannot be opened, logging to "
                        "standard error: %m",
                        path);
        return;
    }
    log_fd = fd;
}

/* Logging is not a call that fails: the sentence of the call that logs stays
 * as it is. */
static void load_conf(void)
{
    char sentence[LOG_LINE_MAX];
    struct log_conf loaded;

    snprintf(sentence, sizeof(sentence), "%s", shunt_last_error());
    if (shunt_conf_load(&log_table, &loaded) == SHUNT_OK)
        log_conf = loaded;
    else
        shunt_log_write(&log_part, SHUNT_LOG_WARN, "%s; using \"warn\"",
                        shunt_last_error());
    shunt_error(SHUNT_OK, "%s", sentence);
}

static void log_open(void)
{
    shunt_conf_lock();
    if (atomic_load_explicit(&log_state, memory_order_relaxed) == LOG_UNUSED) {
        atomic_store_explicit(&log_state, LOG_OPENING, memory_order_relaxed);
        load_conf();
        open_file(log_conf.file);
        /* release: the configuration is there; pairs with the acquire in
         * level_lookup() */
        atomic_store_explicit(&log_state, LOG_OPEN, memory_order_release);
    }
    shunt_conf_unlock();
}

static int level_of(const char *name)
{
    unsigned i;

    for (i = 0; i < log_conf.levels.count; i++) {
        if (strcmp(log_conf.levels.parts[i].name, name) == 0)
            return log_conf.levels.parts[i].level;
    }
    return log_conf.levels.level;
}

/* First use of a part. */
static int level_lookup(shunt_log_part_t *part)
{
    int level;

    log_open();
    /* still opening: this is a line from inside log_open() */
    if (atomic_load_explicit(&log_state, memory_order_acquire) != LOG_OPEN)
        return SHUNT_LOG_WARN;

    level = level_of(part->name);
    if (level == 0)
        level = -1; /* "off"; 0 would be looked up each time */
    atomic_store_explicit(&part->level, level, memory_order_relaxed);
    return level;
}

int shunt_log_level(shunt_log_part_t *part)
{
    int level = atomic_load_explicit(&part->level, memory_order_relaxed);
    int saved = errno;

    if (level == 0) {
        level = level_lookup(part);
        errno = saved;
    }
    return level;
}

/* Names and texts come from other hosts too: a line stays one line. */
static void make_printable(char *text, size_t length)
{
    size_t i;

    for (i = 0; i < length; i++) {
        if (((unsigned char)text[i] < ' ') || (text[i] == 0x7f))
            text[i] = '?';
    }
}

static void write_line(const char *line, size_t length)
{
    ssize_t done;

    /* One call, so that lines of several threads and processes do not mix.
     * What cannot be logged is lost: there is no one left to tell. */
    do {
        done = write(log_fd, line, length);
    } while ((done < 0) && (errno == EINTR));
}

void shunt_log_write(shunt_log_part_t *part, int level, const char *fmt, ...)
{
    char line[LOG_LINE_MAX];
    int saved = errno;
    size_t used, room;
    va_list args;
    int length;

    used = (size_t)snprintf(line, sizeof(line),
                            "shunt[%d] %s %.32s: ", (int)getpid(),
                            level_names[level], part->name);
    room = sizeof(line) - used - 1; /* and the line feed */

    errno = saved; /* for "%m" */
    va_start(args, fmt);
    length = vsnprintf(line + used, room, fmt, args);
    va_end(args);
    if (length < 0)
        length = 0;
    if ((size_t)length >= room) {
        memcpy(line + used + room - 4, "...", 3);
        length = (int)room - 1;
    }
    make_printable(line + used, (size_t)length);
    used += (size_t)length;
    line[used++] = '\n';

    write_line(line, used);
    errno = saved;
}
