# SPDX-License-Identifier: BSD-3-Clause
# Examples: the installed headers and nothing else, as a user's program.
noinst_PROGRAMS += examples/put examples/get

examples_put_SOURCES  = %D%/put.c
examples_put_CPPFLAGS = -I$(top_srcdir)/include
examples_put_LDADD    = libshunt.la

examples_get_SOURCES  = %D%/get.c
examples_get_CPPFLAGS = -I$(top_srcdir)/include
examples_get_LDADD    = libshunt.la
