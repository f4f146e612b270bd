/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of transports: built-in ones, then modules from their folders. All
 * pass through shunt_transport_adopt(). A module is loaded once and stays: its
 * code may be on the stack of any thread. */
#include "config.h"

#include "transport/registry.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <shunt/engine.h>
#include "base/conf.h"
#include "base/error.h"
#include "base/log.h"
#include "transport/fault.h"
#include "transport/trace.h"

/* X(name, is the own-segment transport), in order of preference. */
#define BUILTIN_TRANSPORTS(X) \
    X(shm, false)             \
    X(loopback, true)

#define DECLARE_OPS(_name, _self) \
    extern const shunt_xops_t shunt_##_name##_xops;
BUILTIN_TRANSPORTS(DECLARE_OPS)
#undef DECLARE_OPS

#define PLUGIN_SYMBOL "shunt_transport_plugin"
#define FILE_PREFIX   "libshunt_"
#define FILE_SUFFIX   ".so"

struct transport_conf {
    char *module_path;
};

static const shunt_conf_field_t conf_fields[] = {
    { "MODULE_PATH", "",
      "Folders searched for transport modules before the installed one, "
      "separated by ':'.",
      offsetof(struct transport_conf, module_path), &shunt_conf_string },
    { .name = NULL }
};

static const shunt_conf_table_t conf_table = { "transport", conf_fields,
                                               sizeof(struct transport_conf) };

static shunt_log_part_t log_part = SHUNT_LOG_PART("transport");

static shunt_transport_t transports[SHUNT_TRANSPORTS_MAX];
static size_t transport_count;
static shunt_status_t interposed; /* OK, or why not */
static char interposed_reason[512];
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* ---- the list --------------------------------------------------------- */

static const shunt_transport_t *find(const char *name)
{
    size_t i;

    for (i = 0; i < transport_count; i++)
        if (strcmp(transports[i].name, name) == 0)
            return &transports[i];
    return NULL;
}

/* A new entry, not usable yet; NULL when the list is full. */
static shunt_transport_t *append(const char *name, const char *origin)
{
    shunt_transport_t *entry;

    if (transport_count == SHUNT_TRANSPORTS_MAX) {
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "transport %s from %s left out: there are %d already", name,
                  origin, SHUNT_TRANSPORTS_MAX);
        return NULL;
    }
    entry = &transports[transport_count++];
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    snprintf(entry->origin, sizeof(entry->origin), "%s", origin);
    return entry;
}

static void add_builtin(const shunt_xops_t *ops, bool self)
{
    shunt_transport_t *entry = append(ops->name, "built in");

    if (entry == NULL)
        return;
    entry->self   = self;
    entry->usable = shunt_transport_adopt(ops, &entry->ops) == SHUNT_OK;
    if (!entry->usable)
        snprintf(entry->reason, sizeof(entry->reason), "%s",
                 shunt_last_error());
}

/* ---- modules ---------------------------------------------------------- */

/* Load one file into the entry. On failure last_error says why. */
static shunt_status_t load(const char *path, shunt_transport_t *entry)
{
    shunt_status_t status;
    const shunt_xops_t *ops;
    void *module;

    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT, "%s", dlerror());

    ops = dlsym(module, PLUGIN_SYMBOL);
    if (ops == NULL) {
        status = shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                             "it has no symbol " PLUGIN_SYMBOL);
        goto err_close;
    }
    status = shunt_transport_adopt(ops, &entry->ops);
    if (status != SHUNT_OK)
        goto err_close;
    if (strcmp(entry->ops.name, entry->name) != 0) {
        status = shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                             "its table is named %s, its file %s",
                             entry->ops.name, entry->name);
        goto err_close;
    }
    return SHUNT_OK;

err_close:
    memset(&entry->ops, 0, sizeof(entry->ops)); /* points into the module */
    dlclose(module);
    return status;
}

static void load_module(const char *folder, const char *file, const char *name)
{
    const shunt_transport_t *first = find(name);
    shunt_transport_t *entry;
    char path[sizeof(entry->origin)];
    int length;

    length = snprintf(path, sizeof(path), "%s/%s", folder, file);
    if ((length < 0) || ((size_t)length >= sizeof(path))) {
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "module %s in %s left out: its path is longer than %zu", file,
                  folder, sizeof(path) - 1);
        return;
    }
    if (first != NULL) {
        shunt_log(&log_part, SHUNT_LOG_DEBUG,
                  "module %s passed over: %s is %s already", path, name,
                  first->origin);
        return;
    }
    entry = append(name, path);
    if (entry == NULL)
        return;
    entry->usable = load(path, entry) == SHUNT_OK;
    if (entry->usable) {
        shunt_log(&log_part, SHUNT_LOG_DEBUG, "module %s loaded", path);
        return;
    }
    snprintf(entry->reason, sizeof(entry->reason), "%s", shunt_last_error());
    shunt_log(&log_part, SHUNT_LOG_WARN, "module %s left out: %s", path,
              entry->reason);
}

/* The <name> of libshunt_<name>.so; false: the file is none of ours. */
static bool module_name(const char *file,
                        char name[SHUNT_TRANSPORT_NAME_MAX + 1])
{
    size_t length = strlen(file);
    size_t prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX);

    if ((length <= prefix + suffix) ||
        (strncmp(file, FILE_PREFIX, prefix) != 0) ||
        (strcmp(file + length - suffix, FILE_SUFFIX) != 0))
        return false;
    length -= prefix + suffix;
    if (!shunt_transport_name_valid(file + prefix, length))
        return false;
    memcpy(name, file + prefix, length);
    name[length] = '\0';
    return true;
}

static int is_module(const struct dirent *entry)
{
    char name[SHUNT_TRANSPORT_NAME_MAX + 1];

    return module_name(entry->d_name, name);
}

/* In alphabetical order: the same list whatever the file system says. */
static void load_folder(const char *folder, int missing_level)
{
    char name[SHUNT_TRANSPORT_NAME_MAX + 1];
    struct dirent **files;
    int count, i;

    count = scandir(folder, &files, is_module, alphasort);
    if (count < 0) {
        shunt_log(&log_part, missing_level, "module folder %s: %s", folder,
                  strerror(errno));
        return;
    }
    for (i = 0; i < count; i++) {
        if (module_name(files[i]->d_name, name))
            load_module(folder, files[i]->d_name, name);
        free(files[i]);
    }
    free(files);
}

static void load_path(char *path)
{
    char *rest = path, *folder;

    while ((folder = strsep(&rest, ":")) != NULL)
        if (folder[0] != '\0')
            load_folder(folder, SHUNT_LOG_WARN);
}

/* Faults below, so that the trace shows what the engine saw. */
static void interpose(void)
{
    interposed = shunt_fault_install(transports, transport_count);
    if (interposed == SHUNT_OK)
        interposed = shunt_trace_install(transports, transport_count);
    if (interposed != SHUNT_OK)
        snprintf(interposed_reason, sizeof(interposed_reason), "%s",
                 shunt_last_error());
}

static void load_all(void)
{
    struct transport_conf conf;

#define ADD_BUILTIN(_name, _self) add_builtin(&shunt_##_name##_xops, (_self));
    BUILTIN_TRANSPORTS(ADD_BUILTIN)
#undef ADD_BUILTIN

    if (shunt_conf_load(&conf_table, &conf) == SHUNT_OK) {
        /* A set-user-id program loads no code that its caller names. */
        if (getauxval(AT_SECURE) == 0)
            load_path(conf.module_path);
        shunt_conf_release(&conf_table, &conf);
    }
    load_folder(SHUNT_MODULE_DIR, SHUNT_LOG_DEBUG);
    interpose();
}

size_t shunt_transport_list(const shunt_transport_t **list_p)
{
    pthread_once(&load_once, load_all);
    *list_p = transports;
    return transport_count;
}

shunt_status_t shunt_transport_ready(void)
{
    pthread_once(&load_once, load_all);
    if (interposed == SHUNT_OK)
        return SHUNT_OK;
    return shunt_error(interposed, "%s", interposed_reason);
}
