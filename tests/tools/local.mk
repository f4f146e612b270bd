# SPDX-License-Identifier: BSD-3-Clause
# The tools and the examples, as real processes.
EXTRA_DIST += %D%/lib.sh %D%/wrong_byte.c

tools_tests  =
tools_tests += %D%/bench_args.sh
tools_tests += %D%/bench_output.sh
tools_tests += %D%/bench_self.sh
tools_tests += %D%/bench_target.sh
tools_tests += %D%/bench_ucx.sh
tools_tests += %D%/bench_wrong.sh
tools_tests += %D%/examples.sh
tools_tests += %D%/info.sh

dist_check_SCRIPTS += $(tools_tests)
TESTS              += $(tools_tests)

if HAVE_CMOCKA
check_PROGRAMS += %D%/test_bench
TESTS          += %D%/test_bench

# all of shunt_bench but its main()
tests_tools_test_bench_SOURCES  = %D%/test_bench.c
tests_tools_test_bench_SOURCES += tools/bench_opts.c
tests_tools_test_bench_SOURCES += tools/bench_plan.c
tests_tools_test_bench_SOURCES += tools/bench_report.c
tests_tools_test_bench_SOURCES += tools/bench_stats.c
tests_tools_test_bench_SOURCES += tools/bench_verify.c
tests_tools_test_bench_SOURCES += tools/text.c
tests_tools_test_bench_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools \
	$(CMOCKA_CFLAGS)
tests_tools_test_bench_LDADD    = libshunt.la $(CMOCKA_LIBS)
endif
