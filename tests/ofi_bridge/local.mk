# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/run.sh

if HAVE_OFI
if HAVE_CMOCKA
ofi_bridge_tests =
ofi_bridge_tests += %D%/test_death
ofi_bridge_tests += %D%/test_move
ofi_bridge_tests += %D%/test_refuse

check_PROGRAMS += $(ofi_bridge_tests) %D%/test_limits %D%/test_settings
TESTS          += %D%/test_limits %D%/test_settings

# One program, once a provider: copies of one script, told apart by name. What
# an engine may choose by itself, and the provider of the tests:
ofi_bridge_runs  = %D%/death_efa_sim.sh %D%/move_efa_sim.sh %D%/refuse_efa_sim.sh
ofi_bridge_runs += %D%/death_net.sh     %D%/move_net.sh     %D%/refuse_net.sh
ofi_bridge_runs += %D%/death_rxm.sh     %D%/move_rxm.sh     %D%/refuse_rxm.sh
ofi_bridge_runs += %D%/death_tcp.sh     %D%/move_tcp.sh     %D%/refuse_tcp.sh

# By hand: make check TESTS=tests/ofi_bridge/move_shm.sh
ofi_bridge_more  = %D%/death_rxd.sh     %D%/move_rxd.sh     %D%/refuse_rxd.sh
ofi_bridge_more += %D%/death_shm.sh     %D%/move_shm.sh     %D%/refuse_shm.sh
ofi_bridge_more += %D%/death_sockets.sh %D%/move_sockets.sh %D%/refuse_sockets.sh

$(ofi_bridge_runs) $(ofi_bridge_more): %D%/run.sh
	$(AM_V_GEN)$(MKDIR_P) $(@D) && rm -f $@ && \
		cp '$(srcdir)/%D%/run.sh' $@ && chmod 555 $@

check_SCRIPTS += $(ofi_bridge_runs) $(ofi_bridge_more)
TESTS         += $(ofi_bridge_runs)
CLEANFILES    += $(ofi_bridge_runs) $(ofi_bridge_more)

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
%C%_test_limits_SOURCES  = %D%/test_limits.c
%C%_test_limits_CPPFLAGS = $(test_cppflags) $(OFI_CFLAGS)
%C%_test_limits_LDADD    = $(ofi_bridge_test_libs) $(OFI_LIBS)
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
