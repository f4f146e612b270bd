# SPDX-License-Identifier: BSD-3-Clause
# One program against every transport; a script a group.
if HAVE_CMOCKA
check_PROGRAMS += %D%/conformance

%C%_conformance_SOURCES  =
%C%_conformance_SOURCES += %D%/conformance.c %D%/conformance.h
%C%_conformance_SOURCES += %D%/link.c
%C%_conformance_SOURCES += %D%/side.c
%C%_conformance_SOURCES += %D%/target.c
%C%_conformance_SOURCES += %D%/test_access.c
%C%_conformance_SOURCES += %D%/test_cancel.c
%C%_conformance_SOURCES += %D%/test_death.c
%C%_conformance_SOURCES += %D%/test_move.c
%C%_conformance_SOURCES += %D%/test_open.c
%C%_conformance_SOURCES += %D%/test_queue.c
%C%_conformance_SOURCES += %D%/test_threads.c
%C%_conformance_CPPFLAGS = $(test_cppflags)
# modules see the library that the program sees
%C%_conformance_LDADD    = libxhost.la libshunt.la $(CMOCKA_LIBS)
endif

EXTRA_DIST += %D%/lib.sh

conformance_tests =
conformance_tests += %D%/access.sh
conformance_tests += %D%/cancel.sh
conformance_tests += %D%/death.sh
conformance_tests += %D%/faults.sh
conformance_tests += %D%/move.sh
conformance_tests += %D%/open.sh
conformance_tests += %D%/queue.sh
conformance_tests += %D%/threads.sh

# Over libfabric by hand, while some groups fail there (docs/providers.md):
# make check TESTS=tests/conformance/move.sh CONFORMANCE_ONLY=ofi:net
dist_check_SCRIPTS += $(conformance_tests)
TESTS              += $(conformance_tests)
