# SPDX-License-Identifier: BSD-3-Clause
if HAVE_UCX
if HAVE_CMOCKA
ucx_bridge_tests =
ucx_bridge_tests += %D%/test_death
ucx_bridge_tests += %D%/test_move
ucx_bridge_tests += %D%/test_refuse
ucx_bridge_tests += %D%/test_settings

check_PROGRAMS += $(ucx_bridge_tests)
TESTS          += $(ucx_bridge_tests)

# Two processes; the bridge is linked in, as a static one would be.
check_LTLIBRARIES += libucxpair.la
libucxpair_la_SOURCES  = %D%/pair.c %D%/pair.h %D%/target.c
libucxpair_la_CPPFLAGS = $(test_cppflags)

ucx_bridge_test_libs = libtestsupport.la libucxpair.la libxhost.la \
	libucx_bridge.la libtransport.la libshm.la libbase.la $(CMOCKA_LIBS)

%C%_test_death_SOURCES  = %D%/test_death.c
%C%_test_death_CPPFLAGS = $(test_cppflags)
%C%_test_death_LDADD    = $(ucx_bridge_test_libs)
%C%_test_move_SOURCES   = %D%/test_move.c
%C%_test_move_CPPFLAGS  = $(test_cppflags)
%C%_test_move_LDADD     = $(ucx_bridge_test_libs)
%C%_test_refuse_SOURCES  = %D%/test_refuse.c
%C%_test_refuse_CPPFLAGS = $(test_cppflags) $(UCX_CFLAGS)
%C%_test_refuse_LDADD    = $(ucx_bridge_test_libs) $(UCX_LIBS)
%C%_test_settings_SOURCES  = %D%/test_settings.c
%C%_test_settings_CPPFLAGS = $(test_cppflags) $(UCX_CFLAGS)
%C%_test_settings_LDADD    = $(ucx_bridge_test_libs) $(UCX_LIBS)
endif
endif
