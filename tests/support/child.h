/* SPDX-License-Identifier: BSD-3-Clause */
/* Run a function in a child of its own, for what a process does only once
 * (reading SHUNT_LOG) or what may kill it. */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

#include <stddef.h>

/* Returns what fn returned (0..255), or -signal if the child was killed. What
 * it wrote to standard error is in `text`, cut to `room`, with a final 0. */
int test_child(int (*fn)(void *arg), void *arg, char *text, size_t room);

#endif
