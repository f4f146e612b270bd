# SPDX-License-Identifier: BSD-3-Clause
# The engine.
noinst_LTLIBRARIES += libengine.la

libengine_la_SOURCES =
libengine_la_SOURCES += %D%/batch.c
libengine_la_SOURCES += %D%/complete.c
libengine_la_SOURCES += %D%/conf.c
libengine_la_SOURCES += %D%/connect.c
libengine_la_SOURCES += %D%/core.h
libengine_la_SOURCES += %D%/describe.c
libengine_la_SOURCES += %D%/dispatch.c
libengine_la_SOURCES += %D%/engine.c
libengine_la_SOURCES += %D%/grant.c
libengine_la_SOURCES += %D%/handle.c
libengine_la_SOURCES += %D%/mem.c
libengine_la_SOURCES += %D%/mender.c
libengine_la_SOURCES += %D%/notify.c
libengine_la_SOURCES += %D%/parts.h
libengine_la_SOURCES += %D%/peer.c
libengine_la_SOURCES += %D%/progress.c
libengine_la_SOURCES += %D%/rail.c
libengine_la_SOURCES += %D%/remote.c
libengine_la_SOURCES += %D%/route.c
libengine_la_SOURCES += %D%/sched.c
libengine_la_SOURCES += %D%/segment.c
libengine_la_SOURCES += %D%/slice.c
libengine_la_SOURCES += %D%/stats.c
libengine_la_SOURCES += %D%/status.c
libengine_la_SOURCES += %D%/task.c
libengine_la_LIBADD  =
