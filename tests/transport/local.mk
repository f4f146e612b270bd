# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
# A host in place of the engine, for the tests of every transport.
check_LTLIBRARIES += libxhost.la

libxhost_la_SOURCES  = %D%/xhost.c %D%/xhost.h
libxhost_la_CPPFLAGS = $(test_cppflags)

transport_tests =
transport_tests += %D%/test_adopt
transport_tests += %D%/test_fault
transport_tests += %D%/test_loopback
transport_tests += %D%/test_registry
transport_tests += %D%/test_select
transport_tests += %D%/test_trace

check_PROGRAMS += $(transport_tests)
TESTS          += $(transport_tests)

# libtransport lists the built-in transports, so their folders come with it.
transport_test_libs = libtestsupport.la libxhost.la libtransport.la libshm.la \
	libbase.la $(CMOCKA_LIBS)

%C%_test_adopt_SOURCES     = %D%/test_adopt.c
%C%_test_adopt_CPPFLAGS    = $(test_cppflags)
%C%_test_adopt_LDADD       = $(transport_test_libs)
%C%_test_fault_SOURCES     = %D%/test_fault.c %D%/test_fault_later.c \
	%D%/test_fault_later.h
%C%_test_fault_CPPFLAGS    = $(test_cppflags)
%C%_test_fault_LDADD       = $(transport_test_libs)
%C%_test_loopback_SOURCES  = %D%/test_loopback.c
%C%_test_loopback_CPPFLAGS = $(test_cppflags)
%C%_test_loopback_LDADD    = $(transport_test_libs)
%C%_test_registry_SOURCES  = %D%/test_registry.c %D%/folders.c %D%/folders.h
%C%_test_registry_CPPFLAGS = $(test_cppflags)
%C%_test_registry_LDADD    = $(transport_test_libs)
%C%_test_select_SOURCES    = %D%/test_select.c %D%/folders.c %D%/folders.h
%C%_test_select_CPPFLAGS   = $(test_cppflags)
%C%_test_select_LDADD      = $(transport_test_libs)
%C%_test_trace_SOURCES     = %D%/test_trace.c
%C%_test_trace_CPPFLAGS    = $(test_cppflags)
%C%_test_trace_LDADD       = $(transport_test_libs)

# Modules for the loader: one source, one thing wrong each. -rpath makes
# libtool build a shared object for something that is not installed.
test_modules =
test_modules += %D%/mod_good.la
test_modules += %D%/mod_old.la
test_modules += %D%/mod_abi.la
test_modules += %D%/mod_name.la
test_modules += %D%/mod_slot.la
test_modules += %D%/mod_symbol.la
test_modules += %D%/mod_unresolved.la

check_LTLIBRARIES += $(test_modules)
test_module_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath /nowhere

%C%_mod_good_la_SOURCES        = %D%/module.c
%C%_mod_good_la_LDFLAGS        = $(test_module_ldflags)
%C%_mod_good_la_CPPFLAGS       = $(test_cppflags)
%C%_mod_old_la_SOURCES         = %D%/module.c
%C%_mod_old_la_LDFLAGS         = $(test_module_ldflags)
%C%_mod_old_la_CPPFLAGS        = $(test_cppflags) -DMODULE_NAME='"old"' \
	-DMODULE_SIZE='offsetof(shunt_xops_t, event_fd)'
%C%_mod_abi_la_SOURCES         = %D%/module.c
%C%_mod_abi_la_LDFLAGS         = $(test_module_ldflags)
%C%_mod_abi_la_CPPFLAGS        = $(test_cppflags) -DMODULE_NAME='"abi"' \
	-DMODULE_ABI=99
%C%_mod_name_la_SOURCES        = %D%/module.c
%C%_mod_name_la_LDFLAGS        = $(test_module_ldflags)
%C%_mod_name_la_CPPFLAGS       = $(test_cppflags) -DMODULE_NAME='"other"'
%C%_mod_slot_la_SOURCES        = %D%/module.c
%C%_mod_slot_la_LDFLAGS        = $(test_module_ldflags)
%C%_mod_slot_la_CPPFLAGS       = $(test_cppflags) -DMODULE_NAME='"slot"' \
	-DMODULE_NO_POST
%C%_mod_symbol_la_SOURCES      = %D%/module.c
%C%_mod_symbol_la_LDFLAGS      = $(test_module_ldflags)
%C%_mod_symbol_la_CPPFLAGS     = $(test_cppflags) -DMODULE_NAME='"symbol"' \
	-DMODULE_NO_SYMBOL
%C%_mod_unresolved_la_SOURCES  = %D%/module.c
%C%_mod_unresolved_la_LDFLAGS  = $(test_module_ldflags)
%C%_mod_unresolved_la_CPPFLAGS = $(test_cppflags) \
	-DMODULE_NAME='"unresolved"' -DMODULE_UNRESOLVED
endif
