# SPDX-License-Identifier: BSD-3-Clause
# Base: what every layer stands on.
noinst_LTLIBRARIES += libbase.la

libbase_la_SOURCES =
libbase_la_SOURCES += %D%/blob.c %D%/blob.h
libbase_la_SOURCES += %D%/clock.c %D%/clock.h
libbase_la_SOURCES += %D%/conf.c %D%/conf.h
libbase_la_SOURCES += %D%/conf_types.c
libbase_la_SOURCES += %D%/error.c %D%/error.h
libbase_la_SOURCES += %D%/export.h
libbase_la_SOURCES += %D%/hash.h
libbase_la_SOURCES += %D%/host.c %D%/host.h
libbase_la_SOURCES += %D%/ident.c %D%/ident.h
libbase_la_SOURCES += %D%/list.h
libbase_la_SOURCES += %D%/lock.c %D%/lock.h
libbase_la_SOURCES += %D%/log.c %D%/log.h
libbase_la_SOURCES += %D%/pages.c %D%/pages.h
libbase_la_SOURCES += %D%/pool.c %D%/pool.h
libbase_la_SOURCES += %D%/srcu.c %D%/srcu.h
libbase_la_SOURCES += %D%/status.c
libbase_la_SOURCES += %D%/table.c %D%/table.h
