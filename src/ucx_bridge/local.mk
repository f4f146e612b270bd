# SPDX-License-Identifier: BSD-3-Clause
# The UCX bridge: the only folder that sees UCX. A module, and a convenience
# library for its unit tests.
if HAVE_UCX
noinst_LTLIBRARIES += libucx_bridge.la
pkglib_LTLIBRARIES += libshunt_ucx.la

libucx_bridge_la_SOURCES  =
libucx_bridge_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
libucx_bridge_la_LIBADD   = $(UCX_LIBS)

libshunt_ucx_la_SOURCES =
libshunt_ucx_la_LIBADD  = libucx_bridge.la libshunt.la
libshunt_ucx_la_LDFLAGS = $(module_ldflags)
endif
