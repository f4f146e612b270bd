# SPDX-License-Identifier: BSD-3-Clause
# The libfabric bridge: the only folder that sees libfabric. A module, and a
# convenience library for its unit tests.
if HAVE_OFI
noinst_LTLIBRARIES += libofi_bridge.la
pkglib_LTLIBRARIES += libshunt_ofi.la

libofi_bridge_la_SOURCES  =
libofi_bridge_la_SOURCES += %D%/ofi_bridge.h
libofi_bridge_la_SOURCES += %D%/ofi_conf.c
libofi_bridge_la_SOURCES += %D%/ofi_device.c
libofi_bridge_la_SOURCES += %D%/ofi_end.c
libofi_bridge_la_SOURCES += %D%/ofi_guest.c
libofi_bridge_la_SOURCES += %D%/ofi_info.c
libofi_bridge_la_SOURCES += %D%/ofi_key.c
libofi_bridge_la_SOURCES += %D%/ofi_mem.c
libofi_bridge_la_SOURCES += %D%/ofi_move.c
libofi_bridge_la_SOURCES += %D%/ofi_nic.c
libofi_bridge_la_SOURCES += %D%/ofi_note.c
libofi_bridge_la_SOURCES += %D%/ofi_open.c
libofi_bridge_la_SOURCES += %D%/ofi_peer.c
libofi_bridge_la_SOURCES += %D%/ofi_post.c
libofi_bridge_la_SOURCES += %D%/ofi_progress.c
libofi_bridge_la_SOURCES += %D%/ofi_quirks.c %D%/ofi_quirks.h
libofi_bridge_la_SOURCES += %D%/ofi_rebuild.c
libofi_bridge_la_SOURCES += %D%/ofi_serve.c
libofi_bridge_la_SOURCES += %D%/ofi_site.c
libofi_bridge_la_SOURCES += %D%/ofi_status.c
libofi_bridge_la_SOURCES += %D%/ofi_wire.h
libofi_bridge_la_SOURCES += %D%/ofi_work.c
libofi_bridge_la_CPPFLAGS = $(AM_CPPFLAGS) $(OFI_CFLAGS)
libofi_bridge_la_LIBADD   = $(OFI_LIBS)

libshunt_ofi_la_SOURCES =
libshunt_ofi_la_LIBADD  = libofi_bridge.la libshunt.la
libshunt_ofi_la_LDFLAGS = $(module_ldflags)
endif
