/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX does to a process merely by being loaded, undone: it takes over
 * SIGSEGV and its like, and it prints. A variable of the user's that asks for
 * either is obeyed. */
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include "base/conf.h"
#include "ucx_bridge/ucx_bridge.h"

static _Thread_local int quiet;
static bool pushed;

static ucs_log_func_rc_t __attribute__((format(printf, 6, 0)))
on_line(const char *file, unsigned line, const char *function,
        ucs_log_level_t level, const ucs_log_component_config_t *part,
        const char *format, va_list ap)
{
    char text[512];

    (void)function;
    (void)part;
    if ((quiet == 0) || (level == UCS_LOG_LEVEL_FATAL) ||
        (level > UCS_LOG_LEVEL_WARN))
        return UCS_LOG_FUNC_RC_CONTINUE;
    vsnprintf(text, sizeof(text), format, ap);
    shunt_log(&shunt_ucx_log, SHUNT_LOG_DEBUG, "UCX, %s:%u: %s", file, line,
              text);
    return UCS_LOG_FUNC_RC_STOP;
}

void shunt_ucx_quiet(void)
{
    quiet++;
}

void shunt_ucx_loud(void)
{
    quiet--;
}

/* Whether a signal is handled by UCX at present. */
static bool taken(int signum)
{
    struct sigaction action;
    Dl_info info;

    if (sigaction(signum, NULL, &action) != 0)
        return false;
    if (((action.sa_flags & SA_SIGINFO) == 0) &&
        ((action.sa_handler == SIG_DFL) || (action.sa_handler == SIG_IGN)))
        return false;
    return (dladdr((void *)action.sa_sigaction, &info) != 0) &&
           (info.dli_fname != NULL) &&
           (strstr(info.dli_fname, "libucs.") != NULL);
}

static void give_signals_back(void)
{
    static const int signals[] = { SIGILL, SIGSEGV, SIGBUS, SIGFPE };
    unsigned i;

    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (taken(signals[i]))
            ucs_debug_disable_signal(signals[i]);
    }
}

/* When the module is loaded: UCX, on which it depends, was just before. */
static void __attribute__((constructor)) noise_load(void)
{
    if ((shunt_conf_foreign("UCX_ERROR_SIGNALS") == NULL) &&
        (shunt_conf_foreign("UCX_HANDLE_ERRORS") == NULL))
        give_signals_back();
    if (shunt_conf_foreign("UCX_LOG_LEVEL") == NULL) {
        ucs_log_push_handler(on_line);
        pushed = true;
    }
}

static void __attribute__((destructor)) noise_unload(void)
{
    if (pushed)
        ucs_log_pop_handler();
}
