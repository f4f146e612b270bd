# SPDX-License-Identifier: BSD-3-Clause
# The UCX bridge: the only folder that sees UCX. A module, and a convenience
# library for its unit tests.
if HAVE_UCX
noinst_LTLIBRARIES += libucx_bridge.la
pkglib_LTLIBRARIES += libshunt_ucx.la

libucx_bridge_la_SOURCES  =
libucx_bridge_la_SOURCES += %D%/ucx_answer.c
libucx_bridge_la_SOURCES += %D%/ucx_bridge.h
libucx_bridge_la_SOURCES += %D%/ucx_conf.c
libucx_bridge_la_SOURCES += %D%/ucx_device.c
libucx_bridge_la_SOURCES += %D%/ucx_environ.c
libucx_bridge_la_SOURCES += %D%/ucx_flush.c
libucx_bridge_la_SOURCES += %D%/ucx_guest.c
libucx_bridge_la_SOURCES += %D%/ucx_key.c
libucx_bridge_la_SOURCES += %D%/ucx_mem.c
libucx_bridge_la_SOURCES += %D%/ucx_message.c
libucx_bridge_la_SOURCES += %D%/ucx_noise.c
libucx_bridge_la_SOURCES += %D%/ucx_open.c
libucx_bridge_la_SOURCES += %D%/ucx_peer.c
libucx_bridge_la_SOURCES += %D%/ucx_post.c
libucx_bridge_la_SOURCES += %D%/ucx_probe.c
libucx_bridge_la_SOURCES += %D%/ucx_progress.c
libucx_bridge_la_SOURCES += %D%/ucx_rma.c
libucx_bridge_la_SOURCES += %D%/ucx_serve.c
libucx_bridge_la_SOURCES += %D%/ucx_status.c
libucx_bridge_la_SOURCES += %D%/ucx_wire.h
libucx_bridge_la_SOURCES += %D%/ucx_worker.c
libucx_bridge_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
libucx_bridge_la_LIBADD   = $(UCX_LIBS)

libshunt_ucx_la_SOURCES =
libshunt_ucx_la_LIBADD  = libucx_bridge.la libshunt.la
libshunt_ucx_la_LDFLAGS = $(module_ldflags)
endif
