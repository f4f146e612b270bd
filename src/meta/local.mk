# SPDX-License-Identifier: BSD-3-Clause
# Where engines are found by name, and what is told of them.
noinst_LTLIBRARIES += libmeta.la

libmeta_la_SOURCES =
libmeta_la_SOURCES += %D%/base64.c %D%/base64.h
libmeta_la_SOURCES += %D%/descriptor.c %D%/descriptor.h
libmeta_la_SOURCES += %D%/descriptor_decode.c
libmeta_la_SOURCES += %D%/matrix.c %D%/matrix.h
libmeta_la_SOURCES += %D%/meta.h
libmeta_la_SOURCES += %D%/p2p.c
libmeta_la_SOURCES += %D%/store.c
libmeta_la_SOURCES += %D%/stores.h
libmeta_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
libmeta_la_LIBADD   = $(JANSSON_LIBS) $(CRYPTO_LIBS)
