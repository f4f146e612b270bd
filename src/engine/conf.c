/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's variables. */
#include "config.h"

#include <stddef.h>

#include "base/conf.h"
#include "engine/core.h"

/* clang-format off */
static const shunt_conf_field_t fields[] = {
    { "TRANSPORTS", "", "Transports to use, best first: a,b or ^a (all but "
      "that); empty: all.",
      offsetof(engine_conf_t, transports), &shunt_conf_string },
    { "SLICE_SIZE", "64K", "Unit of dispatch, accounting and retry, in bytes.",
      offsetof(engine_conf_t, slice_size), &shunt_conf_size },
    { "FRAGMENT_LIMIT", "16K", "A last piece up to this joins the slice before "
      "it.",
      offsetof(engine_conf_t, fragment_limit), &shunt_conf_size },
    { "RETRY_LIMIT", "9", "Retries of one slice, 1 to 127.",
      offsetof(engine_conf_t, retry_limit), &shunt_conf_uint },
    { "SLICE_TIMEOUT", "off", "Time that a task may take from its submission.",
      offsetof(engine_conf_t, slice_timeout_us), &shunt_conf_time },
    { "INLINE_COPY", "256K", "Longest copy made inside submit on the same "
      "host.",
      offsetof(engine_conf_t, inline_copy), &shunt_conf_size },
    { "WAIT_SPIN", "200us", "How long a waiting thread polls without an event "
      "before it sleeps.",
      offsetof(engine_conf_t, wait_spin_us), &shunt_conf_time },
    { "PROGRESS_SPIN", "20us", "How long the progress thread polls without an "
      "event before it sleeps.",
      offsetof(engine_conf_t, progress_spin_us), &shunt_conf_time },
    { "FETCH_TIMEOUT", "5s", "Time to fetch a peer's descriptor.",
      offsetof(engine_conf_t, fetch_timeout_us), &shunt_conf_time },
    { "WATCHDOG", "1s", "Posts outstanding on a path, and nothing that ends or "
      "comes back for so long: its session is ended, its slices go elsewhere.",
      offsetof(engine_conf_t, watchdog_us), &shunt_conf_time },
    { "PATH_PAUSE", "1s", "First pause of a path that failed; each further one "
      "is twice as long.",
      offsetof(engine_conf_t, pause_us), &shunt_conf_time },
    { "PATH_PAUSE_MAX", "300s", "Longest pause of a path that fails again and "
      "again.",
      offsetof(engine_conf_t, pause_max_us), &shunt_conf_time },
    { .name = NULL }
};
/* clang-format on */

const shunt_conf_table_t shunt_engine_conf_table = { "engine", fields,
                                                     sizeof(engine_conf_t) };
