# SPDX-License-Identifier: BSD-3-Clause
# `make check`; README.md says how to run them for longer, or with libFuzzer.
fuzz_tests =
fuzz_tests += %D%/fuzz_descriptor
fuzz_tests += %D%/fuzz_frames
fuzz_tests += %D%/fuzz_guest

check_PROGRAMS += $(fuzz_tests)
TESTS          += $(fuzz_tests)
CLEANFILES     += fuzz_descriptor.crash fuzz_frames.crash fuzz_guest.crash

fuzz_driver = %D%/driver.c %D%/fuzz.h

%C%_fuzz_descriptor_SOURCES  = %D%/fuzz_descriptor.c $(fuzz_driver)
%C%_fuzz_descriptor_CPPFLAGS = $(test_cppflags)
%C%_fuzz_descriptor_LDADD    = libmeta.la libbase.la $(JANSSON_LIBS) \
	$(CRYPTO_LIBS)
%C%_fuzz_frames_SOURCES  = %D%/fuzz_frames.c $(fuzz_driver)
%C%_fuzz_frames_CPPFLAGS = $(test_cppflags) $(LIBEVENT_CFLAGS)
%C%_fuzz_frames_LDADD    = libcontrol.la libbase.la $(LIBEVENT_LIBS) \
	$(CRYPTO_LIBS)
%C%_fuzz_guest_SOURCES  = %D%/fuzz_guest.c $(fuzz_driver)
%C%_fuzz_guest_CPPFLAGS = $(test_cppflags) $(LIBEVENT_CFLAGS)
%C%_fuzz_guest_LDADD    = libcontrol.la libbase.la $(LIBEVENT_LIBS) \
	$(CRYPTO_LIBS)

EXTRA_DIST += %D%/README.md
EXTRA_DIST += %D%/seeds/descriptor/cut
EXTRA_DIST += %D%/seeds/descriptor/deep
EXTRA_DIST += %D%/seeds/descriptor/escape
EXTRA_DIST += %D%/seeds/descriptor/full
EXTRA_DIST += %D%/seeds/descriptor/matrix
EXTRA_DIST += %D%/seeds/descriptor/overflow
EXTRA_DIST += %D%/seeds/descriptor/overlap
EXTRA_DIST += %D%/seeds/descriptor/small
EXTRA_DIST += %D%/seeds/descriptor/toobig
EXTRA_DIST += %D%/seeds/descriptor/version
EXTRA_DIST += %D%/seeds/frames/acceptor
EXTRA_DIST += %D%/seeds/frames/acceptor_secret
EXTRA_DIST += %D%/seeds/frames/connector
EXTRA_DIST += %D%/seeds/frames/connector_secret
EXTRA_DIST += %D%/seeds/frames/cut
EXTRA_DIST += %D%/seeds/frames/empty
EXTRA_DIST += %D%/seeds/frames/huge
EXTRA_DIST += %D%/seeds/frames/layout
EXTRA_DIST += %D%/seeds/frames/longname
EXTRA_DIST += %D%/seeds/frames/refused
EXTRA_DIST += %D%/seeds/frames/version
EXTRA_DIST += %D%/seeds/guest/again
EXTRA_DIST += %D%/seeds/guest/big
EXTRA_DIST += %D%/seeds/guest/cut
EXTRA_DIST += %D%/seeds/guest/fetch
EXTRA_DIST += %D%/seeds/guest/fetches
EXTRA_DIST += %D%/seeds/guest/full
EXTRA_DIST += %D%/seeds/guest/mix
EXTRA_DIST += %D%/seeds/guest/notify
EXTRA_DIST += %D%/seeds/guest/probe
EXTRA_DIST += %D%/seeds/guest/revoke
EXTRA_DIST += %D%/seeds/guest/wrong
