/* SPDX-License-Identifier: BSD-3-Clause */
/* What a harness gives to driver.c, or to libFuzzer. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const char fuzz_name[]; /* its folder below seeds/ */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
