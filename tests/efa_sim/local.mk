# SPDX-License-Identifier: BSD-3-Clause
# A provider for libfabric that behaves as EFA may, and what drives it.
EXTRA_DIST += %D%/README.md %D%/env.sh %D%/find.h

if HAVE_OFI
check_LTLIBRARIES += %D%/libefasim-fi.la

# -rpath makes libtool build a shared object for what is not installed.
%C%_libefasim_fi_la_SOURCES  =
%C%_libefasim_fi_la_SOURCES += %D%/efasim.h %D%/efasim_public.h
%C%_libefasim_fi_la_SOURCES += %D%/efasim_arrive.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_av.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_conf.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_cq.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_domain.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_ep.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_fabric.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_info.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_mr.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_post.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_progress.c
%C%_libefasim_fi_la_SOURCES += %D%/efasim_send.c
%C%_libefasim_fi_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(OFI_CFLAGS)
%C%_libefasim_fi_la_LDFLAGS  = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath /nowhere
%C%_libefasim_fi_la_LIBADD   = $(OFI_LIBS)

if HAVE_CMOCKA
efa_sim_tests  =
efa_sim_tests += %D%/test_provider
efa_sim_tests += %D%/test_refusals

check_PROGRAMS += $(efa_sim_tests)
TESTS          += $(efa_sim_tests)

%C%_test_provider_SOURCES  = %D%/test_provider.c %D%/side.c %D%/side.h
%C%_test_provider_CPPFLAGS = $(test_cppflags) $(OFI_CFLAGS)
%C%_test_provider_LDADD    = $(CMOCKA_LIBS) $(OFI_LIBS)
%C%_test_refusals_SOURCES  = %D%/test_refusals.c %D%/side.c %D%/side.h
%C%_test_refusals_CPPFLAGS = $(test_cppflags) $(OFI_CFLAGS)
%C%_test_refusals_LDADD    = $(CMOCKA_LIBS) $(OFI_LIBS)
endif
endif
