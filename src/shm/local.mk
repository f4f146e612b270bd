# SPDX-License-Identifier: BSD-3-Clause
# Same-host memory.
noinst_LTLIBRARIES += libshm.la

libshm_la_SOURCES =
libshm_la_SOURCES += %D%/shm.h
libshm_la_SOURCES += %D%/shm_key.c
libshm_la_SOURCES += %D%/shm_mem.c
libshm_la_SOURCES += %D%/shm_open.c
libshm_la_SOURCES += %D%/shm_peer.c
libshm_la_SOURCES += %D%/shm_post.c
libshm_la_SOURCES += %D%/shm_proc.c
libshm_la_SOURCES += %D%/shm_queue.c
libshm_la_SOURCES += %D%/shm_vm.c
libshm_la_SOURCES += %D%/shm_watch.c
libshm_la_LIBADD  =
