# SPDX-License-Identifier: BSD-3-Clause
# Control channel: the only folder that sees sockets and libevent.
noinst_LTLIBRARIES += libcontrol.la

libcontrol_la_SOURCES =
libcontrol_la_SOURCES += %D%/addr.c %D%/addr.h
libcontrol_la_SOURCES += %D%/call.c %D%/call.h
libcontrol_la_SOURCES += %D%/conf.c %D%/conf.h
libcontrol_la_SOURCES += %D%/conn.c %D%/conn.h
libcontrol_la_SOURCES += %D%/control.c %D%/control.h
libcontrol_la_SOURCES += %D%/fds.c %D%/fds.h
libcontrol_la_SOURCES += %D%/frame.c %D%/frame.h
libcontrol_la_SOURCES += %D%/hello.c %D%/hello.h
libcontrol_la_SOURCES += %D%/inbox.c %D%/inbox.h
libcontrol_la_SOURCES += %D%/listen.c %D%/listen.h
libcontrol_la_SOURCES += %D%/loop.c %D%/loop.h
libcontrol_la_SOURCES += %D%/notify.c %D%/notify.h
libcontrol_la_SOURCES += %D%/peer.c %D%/peer.h
libcontrol_la_SOURCES += %D%/peers.c
libcontrol_la_SOURCES += %D%/reason.c %D%/reason.h
libcontrol_la_SOURCES += %D%/receive.c
libcontrol_la_SOURCES += %D%/sameuser.c %D%/sameuser.h
libcontrol_la_SOURCES += %D%/secret.c %D%/secret.h
libcontrol_la_SOURCES += %D%/senders.c %D%/senders.h
libcontrol_la_SOURCES += %D%/serve.c %D%/serve.h
libcontrol_la_SOURCES += %D%/state.h
libcontrol_la_SOURCES += %D%/wire.h
libcontrol_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBEVENT_CFLAGS) $(CRYPTO_CFLAGS)
libcontrol_la_LIBADD   = $(LIBEVENT_LIBS) $(CRYPTO_LIBS)
