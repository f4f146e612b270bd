# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_LTLIBRARIES += libenginetest.la
libenginetest_la_SOURCES  = %D%/pair.c %D%/pair.h
libenginetest_la_CPPFLAGS = $(test_cppflags)

engine_tests =
engine_tests += %D%/test_batches
engine_tests += %D%/test_budget
engine_tests += %D%/test_connect
engine_tests += %D%/test_refusals
engine_tests += %D%/test_slices

check_PROGRAMS += $(engine_tests)
TESTS          += $(engine_tests)

# the public interface, as users link it
engine_test_libs = libenginetest.la libtestsupport.la libshunt.la \
	$(CMOCKA_LIBS)

%C%_test_batches_SOURCES  = %D%/test_batches.c
%C%_test_batches_CPPFLAGS = $(test_cppflags)
%C%_test_batches_LDADD    = $(engine_test_libs)
%C%_test_budget_SOURCES  = %D%/test_budget.c
%C%_test_budget_CPPFLAGS = $(test_cppflags)
%C%_test_budget_LDADD    = $(engine_test_libs)
%C%_test_connect_SOURCES  = %D%/test_connect.c
%C%_test_connect_CPPFLAGS = $(test_cppflags)
%C%_test_connect_LDADD    = $(engine_test_libs)
%C%_test_refusals_SOURCES  = %D%/test_refusals.c
%C%_test_refusals_CPPFLAGS = $(test_cppflags)
%C%_test_refusals_LDADD    = $(engine_test_libs)
# inside: cutting
%C%_test_slices_SOURCES  = %D%/test_slices.c
%C%_test_slices_CPPFLAGS = $(test_cppflags)
%C%_test_slices_LDADD    = libtestsupport.la libengine.la libbase.la \
	$(CMOCKA_LIBS)
endif
