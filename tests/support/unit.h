/* SPDX-License-Identifier: BSD-3-Clause */
/* cmocka and what it needs before it. */
#ifndef TESTS_SUPPORT_UNIT_H
#define TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define TEST_COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

#endif
