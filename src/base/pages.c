/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

/* Linux 5.1; older C library headers do not have it. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static shunt_log_part_t log_part = SHUNT_LOG_PART("pages");

/* A sentence for an errno that came out of making the memory. */
static shunt_status_t refuse(const char *call, size_t length)
{
    struct rlimit files;

    switch (errno) {
    case EMFILE:
        getrlimit(RLIMIT_NOFILE, &files);
        errno = EMFILE;
        return shunt_error(SHUNT_ERR_LIMIT,
                           "%s: %m: all %lu file descriptors of the process "
                           "are in use, raise `ulimit -n`",
                           call, (unsigned long)files.rlim_cur);
    case ENFILE:
        return shunt_error(SHUNT_ERR_LIMIT,
                           "%s: %m: raise /proc/sys/fs/file-max", call);
    case ENOMEM:
    case ENOSPC:
    case EFBIG:
        return shunt_error(SHUNT_ERR_LIMIT,
                           "%s of %zu bytes: %m: not enough memory or address "
                           "space (`ulimit -v`), or too many mappings "
                           "(/proc/sys/vm/max_map_count)",
                           call, length);
    default:
        return shunt_error(SHUNT_ERR_MEMORY, "%s of %zu bytes: %m", call,
                           length);
    }
}

/* Bytes of a page of the file; for huge pages the file system says it. */
static size_t page_of(int fd, bool huge)
{
    struct stat st;

    if (huge && (fstat(fd, &st) == 0) && (st.st_blksize > 0))
        return (size_t)st.st_blksize;
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* No one changes the length of memory that others have mapped (they would get
 * SIGBUS), nor adds seals of his own. */
static shunt_status_t seal(int fd, shunt_access_t access)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    if (access == SHUNT_ACCESS_REMOTE_READ)
        seals |= F_SEAL_FUTURE_WRITE;
    if (fcntl(fd, F_ADD_SEALS, seals) == 0)
        return SHUNT_OK;
    if ((access == SHUNT_ACCESS_REMOTE_READ) && (errno == EINVAL))
        return shunt_error(SHUNT_ERR_NOT_IMPLEMENTED,
                           "memory that peers may only read needs Linux 5.1 "
                           "(F_SEAL_FUTURE_WRITE): %m; register memory of "
                           "your own instead");
    return shunt_error(SHUNT_ERR_CONTEXT, "sealing a memfd: %m");
}

/* Round up to a page and map. On success *pages is complete. */
static shunt_status_t map_file(int fd, size_t length, bool huge,
                               shunt_pages_t *pages)
{
    size_t page = page_of(fd, huge);
    void *addr;

    if (length > (size_t)PTRDIFF_MAX - page)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "%zu bytes are more than an address space holds",
                           length);
    length = (length + page - 1) / page * page;
    if (ftruncate(fd, (off_t)length) != 0)
        return refuse("memfd", length);
    addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (addr == MAP_FAILED)
        return refuse("mmap", length);

    pages->addr   = addr;
    pages->length = length;
    pages->page   = page;
    pages->fd     = fd;
    return SHUNT_OK;
}

static shunt_status_t pages_try(size_t length, shunt_access_t access, bool huge,
                                shunt_pages_t *pages)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    shunt_pages_t made;
    shunt_status_t status;
    int fd;

    fd = memfd_create("shunt", huge ? flags | MFD_HUGETLB : flags);
    if (fd < 0)
        return refuse("memfd_create", length);

    status = map_file(fd, length, huge, &made);
    if (status != SHUNT_OK)
        goto err_close;

    /* after mapping: the own mapping stays writable */
    status = seal(fd, access);
    if (status != SHUNT_OK)
        goto err_unmap;

    if (access == SHUNT_ACCESS_LOCAL) {
        close(fd);
        made.fd = -1;
    }
    *pages = made;
    return SHUNT_OK;

err_unmap:
    munmap(made.addr, made.length);
err_close:
    close(fd);
    return status;
}

shunt_status_t shunt_pages_alloc(size_t length, shunt_access_t access,
                                 int huge_pages, shunt_pages_t *pages)
{
    static atomic_bool warned;

    if (length == 0)
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "memory of length 0 was asked for");
    if (!huge_pages)
        return pages_try(length, access, false, pages);
    if (pages_try(length, access, true, pages) == SHUNT_OK)
        return SHUNT_OK;

    /* relaxed: only one of the threads gets false */
    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        shunt_log(&log_part, SHUNT_LOG_WARN,
                  "no huge pages for %zu bytes, using ordinary ones: raise "
                  "/proc/sys/vm/nr_hugepages",
                  length);
    return pages_try(length, access, false, pages);
}

void shunt_pages_free(shunt_pages_t *pages)
{
    munmap(pages->addr, pages->length);
    if (pages->fd >= 0)
        close(pages->fd);
    pages->addr = NULL;
    pages->fd   = -1;
}
