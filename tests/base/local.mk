# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
base_tests =
base_tests += %D%/test_clock
base_tests += %D%/test_conf
base_tests += %D%/test_conf_types
base_tests += %D%/test_error
base_tests += %D%/test_ident
base_tests += %D%/test_lock
base_tests += %D%/test_log
base_tests += %D%/test_pages
base_tests += %D%/test_pool
base_tests += %D%/test_srcu
base_tests += %D%/test_status

check_PROGRAMS += $(base_tests)
TESTS          += $(base_tests)

base_test_libs = libtestsupport.la libbase.la $(CMOCKA_LIBS)

%C%_test_clock_SOURCES  = %D%/test_clock.c
%C%_test_clock_CPPFLAGS = $(test_cppflags)
%C%_test_clock_LDADD    = $(base_test_libs)
%C%_test_conf_SOURCES  = %D%/test_conf.c
%C%_test_conf_CPPFLAGS = $(test_cppflags)
%C%_test_conf_LDADD    = $(base_test_libs)
%C%_test_conf_types_SOURCES  = %D%/test_conf_types.c
%C%_test_conf_types_CPPFLAGS = $(test_cppflags)
%C%_test_conf_types_LDADD    = $(base_test_libs)
%C%_test_error_SOURCES  = %D%/test_error.c
%C%_test_error_CPPFLAGS = $(test_cppflags)
%C%_test_error_LDADD    = $(base_test_libs)
%C%_test_ident_SOURCES  = %D%/test_ident.c
%C%_test_ident_CPPFLAGS = $(test_cppflags)
%C%_test_ident_LDADD    = $(base_test_libs)
%C%_test_lock_SOURCES  = %D%/test_lock.c
%C%_test_lock_CPPFLAGS = $(test_cppflags)
%C%_test_lock_LDADD    = $(base_test_libs)
%C%_test_log_SOURCES  = %D%/test_log.c
%C%_test_log_CPPFLAGS = $(test_cppflags)
%C%_test_log_LDADD    = $(base_test_libs)
%C%_test_pages_SOURCES  = %D%/test_pages.c
%C%_test_pages_CPPFLAGS = $(test_cppflags)
%C%_test_pages_LDADD    = $(base_test_libs)
%C%_test_pool_SOURCES  = %D%/test_pool.c
%C%_test_pool_CPPFLAGS = $(test_cppflags)
%C%_test_pool_LDADD    = $(base_test_libs)
%C%_test_srcu_SOURCES  = %D%/test_srcu.c
%C%_test_srcu_CPPFLAGS = $(test_cppflags)
%C%_test_srcu_LDADD    = $(base_test_libs)
%C%_test_status_SOURCES  = %D%/test_status.c
%C%_test_status_CPPFLAGS = $(test_cppflags)
%C%_test_status_LDADD    = $(base_test_libs)
endif
