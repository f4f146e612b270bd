# SPDX-License-Identifier: BSD-3-Clause
# Adopting and loading transports; loopback.
noinst_LTLIBRARIES += libtransport.la

libtransport_la_SOURCES =
libtransport_la_SOURCES += %D%/adopt.c
libtransport_la_SOURCES += %D%/fault.c %D%/fault.h
libtransport_la_SOURCES += %D%/fault_post.c
libtransport_la_SOURCES += %D%/fault_spec.c
libtransport_la_SOURCES += %D%/loopback.c
libtransport_la_SOURCES += %D%/registry.c %D%/registry.h
libtransport_la_SOURCES += %D%/select.c
libtransport_la_SOURCES += %D%/trace.c %D%/trace.h
libtransport_la_SOURCES += %D%/trace_read.c
libtransport_la_SOURCES += %D%/trace_ring.c
libtransport_la_LIBADD  =
