/* SPDX-License-Identifier: BSD-3-Clause */
/* The rail: one per engine. Its table, its address, its attributes. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/error.h"
#include "shm/shm.h"

const shunt_blob_kind_t shunt_shm_address_kind = { .what = "shm address",
                                                   .magic =
                                                       0x61736873, /* "shsa" */
                                                   .version = SHM_VERSION };

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

extern const shunt_xops_t shunt_shm_xops;

/* clang-format off */
static const shunt_conf_field_t conf_fields[] = {
    { "SHM_CHUNK", "512K",
      "Piece of a queued copy between mappings that one thread makes at a time.",
      offsetof(shm_conf_t, chunk), &shunt_conf_size },
    { "SHM_VM_CHUNK", "4M",
      "Piece of a queued process_vm copy that one thread makes at a time.",
      offsetof(shm_conf_t, vm_chunk), &shunt_conf_size },
    { "SHM_PROCESS_VM", "y",
      "Reach memory that was not allocated by Shunt with process_vm_readv and "
      "process_vm_writev.",
      offsetof(shm_conf_t, process_vm), &shunt_conf_bool },
    { "SHM_PTRACER", "n",
      "Allow every process of this user to reach this one's memory where "
      "kernel.yama.ptrace_scope is 1 (prctl PR_SET_PTRACER).",
      offsetof(shm_conf_t, ptracer), &shunt_conf_bool },
    { .name = NULL }
};
/* clang-format on */

static const shunt_conf_table_t conf_table = { "shm", conf_fields,
                                               sizeof(shm_conf_t) };

/* Measured on a 2-core EPYC, see docs/performance.md. An estimate to begin
 * with: the engine corrects it by what it sees. */
static const uint64_t BANDWIDTH_ESTIMATE = UINT64_C(12000000000);

enum {
    INLINE_DEFAULT = 256 * 1024,
    CHUNK_MIN      = 4096,
    BEST_POST      = 4 * 1024 * 1024, /* several pieces, so that threads help */
    RANK           = 10
};

shunt_log_part_t shunt_shm_log = SHUNT_LOG_PART("shm");

/* ---- devices ---------------------------------------------------------- */

/* One, unless the host lacks what identifies processes. */
static shunt_status_t shm_devices(shunt_xdevice_t *devices, size_t *count_p)
{
    size_t room = *count_p;
    uint64_t ticks;
    int pidfd;

    *count_p = 1;
    if (room == 0)
        return SHUNT_ERR_TRUNCATED;
    memset(&devices[0], 0, sizeof(devices[0]));
    pidfd = shunt_shm_pidfd_open(getpid());
    if (pidfd < 0)
        snprintf(devices[0].reason, sizeof(devices[0].reason),
                 "pidfd_open: %m (Linux 5.3 is needed, and no filter that "
                 "forbids the call)");
    else if (!shunt_shm_proc_is_ours() ||
             (shunt_shm_start_time(getpid(), &ticks) != SHUNT_OK))
        snprintf(devices[0].reason, sizeof(devices[0].reason),
                 "/proc is not mounted, or is that of another pid namespace");
    else
        devices[0].usable = 1;
    if (pidfd >= 0)
        close(pidfd);
    return SHUNT_OK;
}

/* ---- the table -------------------------------------------------------- */

/* Mapped writable before the seal that forbids it to everyone later. */
static shunt_status_t table_create(shm_rail_t *rail,
                                   const shunt_incarnation_t *incarnation)
{
    struct stat st;
    void *addr;
    int fd = memfd_create("shunt-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return shunt_error(SHUNT_ERR_LIMIT, "memfd_create: %m");
    if ((ftruncate(fd, sizeof(shm_table_t)) != 0) || (fstat(fd, &st) != 0))
        goto err_close;
    addr = mmap(NULL, sizeof(shm_table_t), PROT_READ | PROT_WRITE, MAP_SHARED,
                fd, 0);
    if (addr == MAP_FAILED)
        goto err_close;
    if (fcntl(fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE |
                  F_SEAL_SEAL) != 0)
        goto err_unmap;

    rail->table = addr;
    memcpy(rail->table->incarnation, incarnation->bytes,
           sizeof(rail->table->incarnation));
    rail->address.table_fd  = fd;
    rail->address.table_dev = (uint64_t)st.st_dev;
    rail->address.table_ino = (uint64_t)st.st_ino;
    rail->address.token     = (uintptr_t)addr;
    return SHUNT_OK;

err_unmap:
    munmap(addr, sizeof(shm_table_t));
err_close:
    shunt_error(SHUNT_ERR_LIMIT, "the table of %zu bytes in a memfd: %m",
                sizeof(shm_table_t));
    close(fd);
    return SHUNT_ERR_LIMIT;
}

static void table_destroy(shm_rail_t *rail)
{
    /* release: peers that still have it mapped see that we are gone */
    atomic_store_explicit(&rail->table->closed, 1, memory_order_release);
    munmap(rail->table, sizeof(shm_table_t));
    close(rail->address.table_fd);
}

/* ---- open and close --------------------------------------------------- */

static shunt_status_t load_conf(shm_conf_t *conf)
{
    shunt_status_t status = shunt_conf_load(&conf_table, conf);

    if (status != SHUNT_OK)
        return status;
    if ((conf->chunk < CHUNK_MIN) || (conf->vm_chunk < CHUNK_MIN))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "SHUNT_SHM_CHUNK is %zu and SHUNT_SHM_VM_CHUNK is "
                           "%zu: at least %d expected",
                           conf->chunk, conf->vm_chunk, CHUNK_MIN);
    return SHUNT_OK;
}

static shunt_status_t fill_address(shm_address_t *address,
                                   const shunt_incarnation_t *incarnation)
{
    shunt_status_t status;

    status = shunt_host_boot_id(address->boot_id);
    if (status != SHUNT_OK)
        return status;
    status = shunt_shm_start_time(0, &address->start_time);
    if (status != SHUNT_OK)
        return status;
    memcpy(address->incarnation, incarnation->bytes,
           sizeof(address->incarnation));
    address->pid_namespace  = shunt_shm_namespace("pid");
    address->user_namespace = shunt_shm_namespace("user");
    address->pid            = (uint32_t)getpid();
    address->uid            = (uint32_t)geteuid();
    shunt_blob_seal(&address->blob, &shunt_shm_address_kind,
                    sizeof(shm_address_t), sizeof(*address));
    return SHUNT_OK;
}

/* Yama's scope 1 lets only ancestors in, unless the process says otherwise. */
static void allow_peers(const shm_rail_t *rail)
{
    if (rail->conf.ptracer && (shunt_shm_ptrace_scope() == 1) &&
        (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) != 0))
        shunt_log(&shunt_shm_log, SHUNT_LOG_WARN, "prctl PR_SET_PTRACER: %m");
}

static void rail_init(shm_rail_t *rail, const shunt_xopen_t *params)
{
    rail->super.ops = &shunt_shm_xops;
    rail->host      = params->host;
    rail->inline_copy =
        params->inline_copy == 0 ? INLINE_DEFAULT : params->inline_copy;
    shunt_shm_queue_init(&rail->queue);
    pthread_mutex_init(&rail->rare, NULL);
}

static void rail_cleanup(shm_rail_t *rail)
{
    pthread_mutex_destroy(&rail->rare);
    free(rail);
}

static shunt_status_t shm_open_rail(const shunt_xopen_t *params,
                                    shunt_xport_t **xport_p)
{
    shm_rail_t *rail = aligned_alloc(64, sizeof(*rail));
    shunt_status_t status;

    if (rail == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a rail");
    memset(rail, 0, sizeof(*rail));
    rail_init(rail, params);
    status = load_conf(&rail->conf);
    if (status != SHUNT_OK)
        goto err_rail;
    status = table_create(rail, &params->incarnation);
    if (status != SHUNT_OK)
        goto err_rail;
    status = fill_address(&rail->address, &params->incarnation);
    if (status != SHUNT_OK)
        goto err_table;
    rail->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    if (rail->watch_fd < 0) {
        status = shunt_error(SHUNT_ERR_LIMIT, "epoll_create1: %m");
        goto err_table;
    }
    allow_peers(rail);
    *xport_p = &rail->super;
    return SHUNT_OK;

err_table:
    table_destroy(rail);
err_rail:
    rail_cleanup(rail);
    return status;
}

/* What is left in the queue was flushed by peer_close(): it ends at once. */
static void shm_close(shunt_xport_t *xport)
{
    shm_rail_t *rail = (shm_rail_t *)xport;

    while (shunt_shm_queue_progress(rail) > 0) {
    }
    close(rail->watch_fd);
    table_destroy(rail);
    rail_cleanup(rail);
}

/* ---- what it is ------------------------------------------------------- */

static void shm_attr(shunt_xport_t *xport, shunt_xattr_t *attr)
{
    shm_rail_t *rail = (shm_rail_t *)xport;

    attr->flags        = SHUNT_XPORT_MT;
    attr->inline_max   = rail->inline_copy;
    attr->max_post     = SIZE_MAX;
    attr->best_post    = BEST_POST;
    attr->window       = UINT32_MAX; /* a queued post costs nothing more */
    attr->window_bytes = SIZE_MAX;
    attr->rank         = RANK;
    attr->bandwidth    = BANDWIDTH_ESTIMATE;
    attr->visibility   = "copied into the target's memory by a local thread";
}

static shunt_status_t shm_address(shunt_xport_t *xport, void *address,
                                  size_t *length_p)
{
    shm_rail_t *rail = (shm_rail_t *)xport;
    size_t room      = *length_p;

    *length_p = sizeof(rail->address);
    if (room < sizeof(rail->address))
        return shunt_error(SHUNT_ERR_TRUNCATED, "an address needs %zu bytes",
                           sizeof(rail->address));
    memcpy(address, &rail->address, sizeof(rail->address));
    return SHUNT_OK;
}

/* ---- progress --------------------------------------------------------- */

/* Deaths are looked for when the caller is about to sleep, and now and then
 * while it spins: asking the kernel costs more than a small copy. */
enum {
    DEATH_INTERVAL = 4096
};

static bool death_due(shm_rail_t *rail)
{
    uint32_t idle;

    if (atomic_load_explicit(&rail->armed, memory_order_relaxed) ||
        atomic_load_explicit(&rail->reports, memory_order_relaxed)) {
        atomic_store_explicit(&rail->armed, false, memory_order_relaxed);
        return true;
    }
    /* Not exact when threads meet here, and need not be. */
    idle = atomic_load_explicit(&rail->idle, memory_order_relaxed) + 1;
    atomic_store_explicit(&rail->idle, idle, memory_order_relaxed);
    return idle % DEATH_INTERVAL == 0;
}

static unsigned shm_progress(shunt_xport_t *xport)
{
    shm_rail_t *rail = (shm_rail_t *)xport;
    unsigned events  = shunt_shm_queue_progress(rail);

    if (death_due(rail))
        events += shunt_shm_watch_progress(rail);
    return events;
}

/* Readable when a peer has died. Queued copies are announced by host->wake()
 * and arm(). */
static int shm_event_fd(shunt_xport_t *xport)
{
    return ((shm_rail_t *)xport)->watch_fd;
}

static shunt_status_t shm_arm(shunt_xport_t *xport)
{
    shm_rail_t *rail = (shm_rail_t *)xport;

    atomic_store_explicit(&rail->armed, true, memory_order_relaxed);
    if ((atomic_load_explicit(&rail->queue.count, memory_order_relaxed) > 0) ||
        atomic_load_explicit(&rail->reports, memory_order_relaxed))
        return SHUNT_ERR_AGAIN;
    return SHUNT_OK;
}

const shunt_xops_t shunt_shm_xops = { .abi        = SHUNT_TRANSPORT_ABI,
                                      .size       = sizeof(shunt_xops_t),
                                      .name       = "shm",
                                      .devices    = shm_devices,
                                      .open       = shm_open_rail,
                                      .close      = shm_close,
                                      .attr       = shm_attr,
                                      .address    = shm_address,
                                      .mem_reg    = shunt_shm_mem_reg,
                                      .mem_dereg  = shunt_shm_mem_dereg,
                                      .mem_pack   = shunt_shm_mem_pack,
                                      .peer_open  = shunt_shm_peer_open,
                                      .peer_close = shunt_shm_peer_close,
                                      .key_open   = shunt_shm_key_open,
                                      .key_close  = shunt_shm_key_close,
                                      .post       = shunt_shm_post,
                                      .progress   = shm_progress,
                                      .event_fd   = shm_event_fd,
                                      .arm        = shm_arm };
