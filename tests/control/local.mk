# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CMOCKA
check_LTLIBRARIES += libtestctl.la
libtestctl_la_SOURCES  = %D%/ctl.c %D%/ctl.h %D%/proc.c %D%/proxy.c %D%/raw.c
libtestctl_la_CPPFLAGS = $(test_cppflags)

# The channel in a process of its own.
check_PROGRAMS += %D%/proc_main
control_test_libs = libtestctl.la libcontrol.la libbase.la $(CMOCKA_LIBS) \
	$(LIBEVENT_LIBS) $(CRYPTO_LIBS)
%C%_proc_main_SOURCES  = %D%/proc_main.c
%C%_proc_main_CPPFLAGS = $(test_cppflags)
%C%_proc_main_LDADD    = $(control_test_libs)

control_tests =
control_tests += %D%/test_connect
control_tests += %D%/test_fence
control_tests += %D%/test_frame
control_tests += %D%/test_hello
control_tests += %D%/test_hostile
control_tests += %D%/test_idle
control_tests += %D%/test_life
control_tests += %D%/test_notify
control_tests += %D%/test_parts
control_tests += %D%/test_secret

check_PROGRAMS += $(control_tests)
TESTS          += $(control_tests)

%C%_test_connect_SOURCES  = %D%/test_connect.c
%C%_test_connect_CPPFLAGS = $(test_cppflags) $(LIBEVENT_CFLAGS) $(CRYPTO_CFLAGS)
%C%_test_connect_LDADD    = $(control_test_libs)
%C%_test_fence_SOURCES  = %D%/test_fence.c
%C%_test_fence_CPPFLAGS = $(test_cppflags)
%C%_test_fence_LDADD    = $(control_test_libs)
%C%_test_frame_SOURCES  = %D%/test_frame.c
%C%_test_frame_CPPFLAGS = $(test_cppflags)
%C%_test_frame_LDADD    = $(control_test_libs)
%C%_test_hello_SOURCES  = %D%/test_hello.c
%C%_test_hello_CPPFLAGS = $(test_cppflags)
%C%_test_hello_LDADD    = $(control_test_libs)
%C%_test_hostile_SOURCES  = %D%/test_hostile.c
%C%_test_hostile_CPPFLAGS = $(test_cppflags)
%C%_test_hostile_LDADD    = $(control_test_libs)
%C%_test_idle_SOURCES  = %D%/test_idle.c
%C%_test_idle_CPPFLAGS = $(test_cppflags)
%C%_test_idle_LDADD    = $(control_test_libs)
%C%_test_life_SOURCES  = %D%/test_life.c
%C%_test_life_CPPFLAGS = $(test_cppflags)
%C%_test_life_LDADD    = $(control_test_libs)
%C%_test_notify_SOURCES  = %D%/test_notify.c
%C%_test_notify_CPPFLAGS = $(test_cppflags)
%C%_test_notify_LDADD    = $(control_test_libs)
%C%_test_parts_SOURCES  = %D%/test_parts.c
%C%_test_parts_CPPFLAGS = $(test_cppflags)
%C%_test_parts_LDADD    = $(control_test_libs)
%C%_test_secret_SOURCES  = %D%/test_secret.c
%C%_test_secret_CPPFLAGS = $(test_cppflags)
%C%_test_secret_LDADD    = $(control_test_libs)
endif
