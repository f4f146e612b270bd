# SPDX-License-Identifier: BSD-3-Clause
if HAVE_OFI
if HAVE_CMOCKA
ofi_bridge_tests =
ofi_bridge_tests += %D%/test_death
ofi_bridge_tests += %D%/test_move
ofi_bridge_tests += %D%/test_refuse
ofi_bridge_tests += %D%/test_settings

check_PROGRAMS += $(ofi_bridge_tests)
TESTS          += $(ofi_bridge_tests)

# Two processes; the bridge is linked in, as a static one would be.
check_LTLIBRARIES += libofipair.la
libofipair_la_SOURCES  = %D%/pair.c %D%/pair.h %D%/target.c
libofipair_la_CPPFLAGS = $(test_cppflags)

ofi_bridge_test_libs = libtestsupport.la libofipair.la libxhost.la \
	libofi_bridge.la libtransport.la libshm.la libbase.la $(CMOCKA_LIBS)

# A measurement, not a test: built with the tests so that it stays alive.
check_PROGRAMS += %D%/plain
%C%_plain_SOURCES  = %D%/plain.c
%C%_plain_CPPFLAGS = $(test_cppflags) $(OFI_CFLAGS)
%C%_plain_LDADD    = $(ofi_bridge_test_libs) $(OFI_LIBS)

%C%_test_death_SOURCES  = %D%/test_death.c
%C%_test_death_CPPFLAGS = $(test_cppflags)
%C%_test_death_LDADD    = $(ofi_bridge_test_libs)
%C%_test_move_SOURCES   = %D%/test_move.c
%C%_test_move_CPPFLAGS  = $(test_cppflags)
%C%_test_move_LDADD     = $(ofi_bridge_test_libs)
%C%_test_refuse_SOURCES  = %D%/test_refuse.c
%C%_test_refuse_CPPFLAGS = $(test_cppflags) $(OFI_CFLAGS)
%C%_test_refuse_LDADD    = $(ofi_bridge_test_libs) $(OFI_LIBS)
%C%_test_settings_SOURCES  = %D%/test_settings.c
%C%_test_settings_CPPFLAGS = $(test_cppflags) $(OFI_CFLAGS)
%C%_test_settings_LDADD    = $(ofi_bridge_test_libs) $(OFI_LIBS)
endif
endif
