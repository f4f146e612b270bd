# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/two_nodes.xml

if HAVE_CMOCKA
topo_tests =
topo_tests += %D%/test_topo

check_PROGRAMS += $(topo_tests)
TESTS          += $(topo_tests)

%C%_test_topo_SOURCES  = %D%/test_topo.c
%C%_test_topo_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
%C%_test_topo_LDADD    = libtestsupport.la libtopo.la libbase.la \
	$(JANSSON_LIBS) $(CMOCKA_LIBS)
endif
