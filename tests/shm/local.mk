# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
# The other process, and the way to it.
check_LTLIBRARIES += libshmtest.la

libshmtest_la_SOURCES  = %D%/duo.c %D%/duo.h %D%/owner.c %D%/owner.h
libshmtest_la_CPPFLAGS = $(test_cppflags)

shm_tests =
shm_tests += %D%/test_blobs
shm_tests += %D%/test_copies
shm_tests += %D%/test_deaths
shm_tests += %D%/test_places
shm_tests += %D%/test_refusals
shm_tests += %D%/test_threads

check_PROGRAMS += $(shm_tests)
TESTS          += $(shm_tests)

shm_test_libs = libshmtest.la libtestsupport.la libxhost.la libtransport.la \
	libshm.la libbase.la $(CMOCKA_LIBS)

%C%_test_blobs_SOURCES     = %D%/test_blobs.c
%C%_test_blobs_CPPFLAGS    = $(test_cppflags)
%C%_test_blobs_LDADD       = $(shm_test_libs)
%C%_test_copies_SOURCES    = %D%/test_copies.c
%C%_test_copies_CPPFLAGS   = $(test_cppflags)
%C%_test_copies_LDADD      = $(shm_test_libs)
%C%_test_deaths_SOURCES    = %D%/test_deaths.c
%C%_test_deaths_CPPFLAGS   = $(test_cppflags)
%C%_test_deaths_LDADD      = $(shm_test_libs)
%C%_test_places_SOURCES    = %D%/test_places.c
%C%_test_places_CPPFLAGS   = $(test_cppflags)
%C%_test_places_LDADD      = $(shm_test_libs)
%C%_test_refusals_SOURCES  = %D%/test_refusals.c
%C%_test_refusals_CPPFLAGS = $(test_cppflags)
%C%_test_refusals_LDADD    = $(shm_test_libs)
%C%_test_threads_SOURCES   = %D%/test_threads.c
%C%_test_threads_CPPFLAGS  = $(test_cppflags)
%C%_test_threads_LDADD     = $(shm_test_libs)
endif
