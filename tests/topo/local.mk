# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
endif
