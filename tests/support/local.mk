# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/lsan.txt

# What tests of several folders share.
check_LTLIBRARIES += libtestsupport.la

libtestsupport_la_SOURCES  = %D%/child.c %D%/child.h %D%/unit.h
libtestsupport_la_CPPFLAGS = $(test_cppflags)
