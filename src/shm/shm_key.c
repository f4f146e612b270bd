/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: a peer's memory made reachable, by mapping it or by process_vm. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "shm/shm.h"

/* ---- mappings, shared by the keys of a memfd -------------------------- */

static shm_map_t *map_find(shm_peer_t *peer, const shm_packed_key_t *packed,
                           bool writable)
{
    shm_map_t *map;

    for (map = peer->maps; map != NULL; map = map->next)
        if ((map->ino == packed->ino) && (map->dev == packed->dev) &&
            (map->writable == writable))
            break;
    return map;
}

/* Map all of the memfd. NULL with errno. */
static shm_map_t *map_create(const shm_peer_t *peer,
                             const shm_packed_key_t *packed, bool writable)
{
    shm_map_t *map = calloc(1, sizeof(*map));
    void *addr;
    int fd, err;

    if (map == NULL)
        return NULL;
    /* A file sealed against writing refuses to be mapped from a descriptor
     * that could write. */
    fd = shunt_shm_open_memfd(peer->pid, packed, writable ? O_RDWR : O_RDONLY,
                              &map->length);
    if (fd < 0) {
        err = errno;
        goto err_free;
    }
    addr =
        mmap(NULL, map->length, writable ? PROT_READ | PROT_WRITE : PROT_READ,
             MAP_SHARED, fd, 0);
    err = errno;
    close(fd); /* the mapping keeps the file */
    if (addr == MAP_FAILED)
        goto err_free;
    map->dev      = packed->dev;
    map->ino      = packed->ino;
    map->writable = writable;
    map->addr     = addr;
    return map;

err_free:
    free(map);
    errno = err;
    return NULL;
}

static shm_map_t *map_get(shm_peer_t *peer, const shm_packed_key_t *packed,
                          bool writable)
{
    shm_map_t *map = NULL;

    pthread_mutex_lock(&peer->rail->rare);
    map = map_find(peer, packed, writable);
    if (map == NULL) {
        map = map_create(peer, packed, writable);
        if (map == NULL)
            goto out;
        map->next  = peer->maps;
        peer->maps = map;
    }
    map->refs++;
out:
    pthread_mutex_unlock(&peer->rail->rare);
    return map;
}

/* Under rail->rare. */
static void map_put(shm_peer_t *peer, shm_map_t *map)
{
    shm_map_t **link = &peer->maps;

    if (--map->refs > 0)
        return;
    while (*link != map)
        link = &(*link)->next;
    *link = map->next;
    munmap(map->addr, map->length);
    free(map);
}

/* ---- checks ----------------------------------------------------------- */

static shunt_status_t check_key(const shm_packed_key_t *packed, uint64_t addr,
                                uint64_t bytes)
{
    if (((packed->kind != SHM_KIND_MEMFD) &&
         (packed->kind != SHM_KIND_OTHER)) ||
        (packed->access > SHUNT_ACCESS_REMOTE_READ) ||
        (packed->slot >= SHM_SLOTS) || ((packed->generation & 1) == 0) ||
        (packed->length == 0) || (packed->addr > UINT64_MAX - packed->length) ||
        ((packed->kind == SHM_KIND_MEMFD) && (packed->fd < 0)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shm key with kind %u, access %u, slot %u, "
                           "generation %u, descriptor %d, %llu bytes",
                           packed->kind, packed->access, packed->slot,
                           packed->generation, packed->fd,
                           (unsigned long long)packed->length);
    if ((addr < packed->addr) || (addr - packed->addr > packed->length) ||
        (bytes > packed->length - (addr - packed->addr)))
        return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                           "shm key of 0x%llx + %llu does not hold 0x%llx + "
                           "%llu",
                           (unsigned long long)packed->addr,
                           (unsigned long long)packed->length,
                           (unsigned long long)addr, (unsigned long long)bytes);
    return SHUNT_OK;
}

/* Is the owner there, and does it still have this region? */
static shunt_status_t check_life(shm_peer_t *peer,
                                 const shm_packed_key_t *packed)
{
    if (shunt_shm_pidfd_dead(peer->pidfd)) {
        shunt_shm_peer_fail(peer, SHUNT_ERR_PEER_FAILED);
        return shunt_error(SHUNT_ERR_PEER_FAILED, "process %d has ended",
                           (int)peer->pid);
    }
    if (atomic_load_explicit(&peer->table->closed, memory_order_acquire) != 0)
        return shunt_error(SHUNT_ERR_ENDPOINT,
                           "the engine of process %d is "
                           "gone",
                           (int)peer->pid);
    if (atomic_load_explicit(&peer->table->slots[packed->slot],
                             memory_order_acquire) != packed->generation)
        return shunt_error(SHUNT_ERR_ADDRESS_NOT_REGISTERED,
                           "process %d has unregistered 0x%llx", (int)peer->pid,
                           (unsigned long long)packed->addr);
    return SHUNT_OK;
}

/* ---- open and close --------------------------------------------------- */

/* Find the way to the memory: key->map, or process_vm. */
static shunt_status_t reach(shm_key_t *key, const shm_packed_key_t *packed)
{
    shm_peer_t *peer = key->peer;
    int err          = 0;

    if (packed->kind == SHM_KIND_MEMFD) {
        key->map = map_get(peer, packed, key->writable);
        if (key->map == NULL) {
            err = errno;
        } else if ((packed->offset > key->map->length) ||
                   (packed->length > key->map->length - packed->offset)) {
            return shunt_error(SHUNT_ERR_INVALID_ARGUMENT,
                               "shm key of %llu bytes at %llu of a memfd of "
                               "%zu",
                               (unsigned long long)packed->length,
                               (unsigned long long)packed->offset,
                               key->map->length);
        } else {
            key->base = key->map->addr + packed->offset;
            return SHUNT_OK;
        }
        shunt_log(&shunt_shm_log, SHUNT_LOG_DEBUG,
                  "process %d: memory 0x%llx not mapped: %s", (int)peer->pid,
                  (unsigned long long)packed->addr, strerror(err));
    }
    if (!peer->vm)
        return shunt_error(SHUNT_ERR_UNREACHABLE,
                           "memory 0x%llx of process %d: %s%sno process_vm: %s",
                           (unsigned long long)packed->addr, (int)peer->pid,
                           err != 0 ? strerror(err) : "", err != 0 ? "; " : "",
                           peer->vm_reason);
    return SHUNT_OK;
}

static void insert(shm_key_t *key)
{
    shm_peer_t *peer = key->peer;

    atomic_fetch_add_explicit(&peer->refs, 1, memory_order_relaxed);
    key->next   = peer->keys;
    key->prev_p = &peer->keys;
    if (key->next != NULL)
        key->next->prev_p = &key->next;
    peer->keys = key;
}

static void put_map_of(shm_key_t *key)
{
    if (key->map == NULL)
        return;
    pthread_mutex_lock(&key->peer->rail->rare);
    map_put(key->peer, key->map);
    pthread_mutex_unlock(&key->peer->rail->rare);
}

/* The parameters are the table's. */
shunt_status_t shunt_shm_key_open(shunt_xport_t *xport, shunt_xpeer_t *xpeer,
                                  const void *bytes, size_t length,
                                  uint64_t addr, uint64_t count,
                                  shunt_xkey_t **key_p)
{
    shm_peer_t *peer = (shm_peer_t *)xpeer;
    shm_packed_key_t packed;
    shunt_status_t status;
    shm_key_t *key;

    (void)xport;
    status = shunt_blob_open(bytes, length, &shunt_shm_key_kind, &packed,
                             sizeof(packed));
    if (status != SHUNT_OK)
        return status;
    status = check_key(&packed, addr, count);
    if (status != SHUNT_OK)
        return status;
    status = check_life(peer, &packed);
    if (status != SHUNT_OK)
        return status;
    key = calloc(1, sizeof(*key));
    if (key == NULL)
        return shunt_error(SHUNT_ERR_MEMORY, "no memory for a key");
    key->slot       = &peer->table->slots[packed.slot];
    key->generation = packed.generation;
    key->writable   = packed.access == SHUNT_ACCESS_REMOTE_READ_WRITE;
    key->addr       = packed.addr;
    key->length     = packed.length;
    key->peer       = peer;
    atomic_init(&key->refs, 1);
    status = reach(key, &packed);
    if (status != SHUNT_OK) {
        put_map_of(key);
        free(key);
        return status;
    }
    insert(key);
    *key_p = (shunt_xkey_t *)key;
    return SHUNT_OK;
}

void shunt_shm_key_put(shm_key_t *key)
{
    shm_peer_t *peer = key->peer;

    /* acq_rel: the mapping goes after the last copy through it */
    if (atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) != 1)
        return;
    put_map_of(key);
    free(key);
    shunt_shm_peer_put(peer);
}

/* Copies in the queue keep the key. */
void shunt_shm_key_close(shunt_xport_t *xport, shunt_xpeer_t *xpeer,
                         shunt_xkey_t *xkey)
{
    shm_key_t *key = (shm_key_t *)xkey;

    (void)xport;
    (void)xpeer;
    *key->prev_p = key->next;
    if (key->next != NULL)
        key->next->prev_p = key->prev_p;
    shunt_shm_key_put(key);
}
