# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_LTLIBRARIES += libprocesstest.la
libprocesstest_la_SOURCES  = %D%/target.c %D%/target.h
libprocesstest_la_CPPFLAGS = $(test_cppflags)

process_test_libs = libprocesstest.la libtestsupport.la libshunt.la \
	$(CMOCKA_LIBS)

# one program, once a transport
check_PROGRAMS += %D%/test_faults_shm %D%/test_faults_ucx
TESTS          += %D%/test_faults_shm %D%/test_faults_ucx

%C%_test_faults_shm_SOURCES  = %D%/test_faults.c
%C%_test_faults_shm_CPPFLAGS = $(test_cppflags)
%C%_test_faults_shm_LDADD    = $(process_test_libs)
%C%_test_faults_ucx_SOURCES  = %D%/test_faults.c
%C%_test_faults_ucx_CPPFLAGS = $(test_cppflags)
%C%_test_faults_ucx_LDADD    = $(process_test_libs)
check_PROGRAMS += %D%/test_cost
TESTS          += %D%/test_cost

%C%_test_cost_SOURCES  = %D%/test_cost.c
%C%_test_cost_CPPFLAGS = $(test_cppflags)
%C%_test_cost_LDADD    = $(process_test_libs)
endif
