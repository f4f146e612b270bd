# SPDX-License-Identifier: BSD-3-Clause
# Topology: the only folder that sees hwloc.
noinst_LTLIBRARIES += libtopo.la

libtopo_la_SOURCES  =
libtopo_la_SOURCES += %D%/matrix.c
libtopo_la_SOURCES += %D%/topo.c %D%/topo.h %D%/topo_impl.h
libtopo_la_SOURCES += %D%/topo_distance.c
libtopo_la_SOURCES += %D%/topo_hwloc.c %D%/topo_hwloc.h
libtopo_la_SOURCES += %D%/topo_plain.c
libtopo_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(JANSSON_CFLAGS)
libtopo_la_LIBADD   = $(HWLOC_LIBS) $(JANSSON_LIBS)
