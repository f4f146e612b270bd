# SPDX-License-Identifier: BSD-3-Clause
# Tools: shunt_bench sees the installed headers only; shunt_info also reads
# its own build's registry and configuration tables.
bin_PROGRAMS += shunt_bench shunt_info

shunt_bench_SOURCES  =
shunt_bench_SOURCES += %D%/bench.h
shunt_bench_SOURCES += %D%/bench_baseline.c
shunt_bench_SOURCES += %D%/bench_link.c
shunt_bench_SOURCES += %D%/bench_main.c
shunt_bench_SOURCES += %D%/bench_memory.c
shunt_bench_SOURCES += %D%/bench_ofi.c %D%/bench_ofi.h
shunt_bench_SOURCES += %D%/bench_ofi_end.c %D%/bench_ofi_end.h
shunt_bench_SOURCES += %D%/bench_opts.c
shunt_bench_SOURCES += %D%/bench_plan.c
shunt_bench_SOURCES += %D%/bench_report.c
shunt_bench_SOURCES += %D%/bench_run.c
shunt_bench_SOURCES += %D%/bench_stats.c
shunt_bench_SOURCES += %D%/bench_target.c
shunt_bench_SOURCES += %D%/bench_tcp.c
shunt_bench_SOURCES += %D%/bench_threads.c
shunt_bench_SOURCES += %D%/bench_verify.c
shunt_bench_SOURCES += %D%/bench_worker.c
shunt_bench_SOURCES += %D%/text.c %D%/text.h
shunt_bench_CPPFLAGS = -I$(top_srcdir)/include $(OFI_CFLAGS)
shunt_bench_LDADD    = libshunt.la $(OFI_LIBS)

shunt_info_SOURCES  =
shunt_info_SOURCES += %D%/info.h
shunt_info_SOURCES += %D%/info_build.c
shunt_info_SOURCES += %D%/info_check.c
shunt_info_SOURCES += %D%/info_conf.c
shunt_info_SOURCES += %D%/info_main.c
shunt_info_SOURCES += %D%/info_probe.c
shunt_info_SOURCES += %D%/info_trace.c
shunt_info_SOURCES += %D%/info_transports.c
shunt_info_SOURCES += %D%/text.c %D%/text.h
shunt_info_LDADD    = libshunt.la

dist_man_MANS += docs/man/shunt_bench.1 docs/man/shunt_info.1
