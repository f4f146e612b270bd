/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint of the libfabric baseline: what is asked for, opening, posting.
 * A write has ended when it is visible at the other side
 * (FI_DELIVERY_COMPLETE), where the provider offers that and does not pay for
 * it with its one-sidedness (shm). */
#include "config.h"
#include "bench.h"

#include <string.h>

#if HAVE_OFI
#include "bench_ofi_end.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- asking ------------------------------------------------------------ */

static struct fi_info *make_hints(const char *provider, bool delivery)
{
    struct fi_info *hints = fi_allocinfo();
    size_t length         = strcspn(provider, "/");

    if (hints == NULL)
        return NULL;
    hints->caps          = FI_RMA | FI_MSG;
    hints->mode          = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strndup(provider, length);
    if (provider[length] == '/')
        hints->domain_attr->name = strdup(provider + length + 1);
    if (delivery)
        hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    return hints;
}

/* On the loopback where there is one; what another layer would be put above
 * is not what was asked for. */
static struct fi_info *ask(const char *provider, bool delivery)
{
    struct fi_info *hints = make_hints(provider, delivery), *list = NULL;
    struct fi_info *info, *found                                  = NULL;
    /* of one address shm makes one name, for both sides */
    bool anywhere =
        (strchr(provider, '/') != NULL) || (strncmp(provider, "shm", 3) == 0);
    uint32_t api = FI_VERSION(1, 14);

    if (hints == NULL)
        return NULL;
    if (anywhere ||
        (fi_getinfo(api, "127.0.0.1", NULL, FI_SOURCE, hints, &list) != 0))
        (void)fi_getinfo(api, NULL, NULL, 0, hints, &list);
    for (info = list; (info != NULL) && (found == NULL); info = info->next) {
        if (strcmp(info->fabric_attr->prov_name,
                   hints->fabric_attr->prov_name) == 0)
            found = fi_dupinfo(info);
    }
    fi_freeinfo(list);
    fi_freeinfo(hints);
    return found;
}

static struct fi_info *find(const char *provider)
{
    struct fi_info *info = NULL;

    if (strncmp(provider, "shm", 3) != 0)
        info = ask(provider, true);
    return info == NULL ? ask(provider, false) : info;
}

/* ---- opening ----------------------------------------------------------- */

static bool is_fine(int ret, const char *what, char why[128])
{
    if (ret != 0)
        snprintf(why, 128, "%s: %s", what, fi_strerror(-ret));
    return ret == 0;
}

static bool open_endpoint(ofi_end_t *end, char why[128])
{
    struct fi_cq_attr cq_attr = { .size     = 2 * OFI_WINDOW_MAX,
                                  .format   = FI_CQ_FORMAT_CONTEXT,
                                  .wait_obj = FI_WAIT_NONE };
    struct fi_av_attr av_attr = { .type = end->info->domain_attr->av_type };

    return is_fine(fi_fabric(end->info->fabric_attr, &end->fabric, NULL),
                   "fi_fabric", why) &&
           is_fine(fi_domain(end->fabric, end->info, &end->domain, NULL),
                   "fi_domain", why) &&
           is_fine(fi_av_open(end->domain, &av_attr, &end->av, NULL),
                   "fi_av_open", why) &&
           is_fine(fi_cq_open(end->domain, &cq_attr, &end->cq, NULL),
                   "fi_cq_open", why) &&
           is_fine(fi_endpoint(end->domain, end->info, &end->ep, NULL),
                   "fi_endpoint", why) &&
           is_fine(fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind", why) &&
           is_fine(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV),
                   "fi_ep_bind", why) &&
           is_fine(fi_enable(end->ep), "fi_enable", why);
}

static bool open_memory(ofi_end_t *end, char *memory, size_t area,
                        char why[128])
{
    uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

    end->ping = mmap(NULL, 2 * OFI_PING_MAX, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (end->ping == MAP_FAILED)
        return is_fine(-FI_ENOMEM, "memory for the ping-pong", why);
    bench_touch(end->ping, 2 * OFI_PING_MAX);
    return is_fine(fi_mr_reg(end->domain, memory, area, access, 0, 1, 0,
                             &end->mr, NULL),
                   "fi_mr_reg", why) &&
           is_fine(fi_mr_reg(end->domain, end->ping, 2 * OFI_PING_MAX, access,
                             0, 2, 0, &end->ping_mr, NULL),
                   "fi_mr_reg", why);
}

ofi_end_t *bench_ofi_end_open(const char *provider, char *memory, size_t area,
                              char why[128])
{
    ofi_end_t *end = calloc(1, sizeof(*end));
    unsigned i;

    if (end == NULL) {
        is_fine(-FI_ENOMEM, "an endpoint", why);
        return NULL;
    }
    end->info = find(provider);
    if (end->info == NULL) {
        snprintf(why, 128,
                 "libfabric offers no %s with FI_RMA here (fi_info -l lists "
                 "what there is)",
                 provider);
        free(end);
        return NULL;
    }
    end->window = OFI_WINDOW_MAX;
    if (end->info->tx_attr->size < end->window)
        end->window = (unsigned)end->info->tx_attr->size;
    for (i = 0; i < end->window; i++)
        end->idle[end->idle_count++] = &end->contexts[i];
    /* half open is left to the process's end: it is not used again */
    return open_endpoint(end, why) && open_memory(end, memory, area, why)
               ? end
               : NULL;
}

void bench_ofi_end_close(ofi_end_t *end)
{
    fi_close(&end->ep->fid);
    fi_close(&end->mr->fid);
    fi_close(&end->ping_mr->fid);
    fi_close(&end->cq->fid);
    fi_close(&end->av->fid);
    fi_close(&end->domain->fid);
    fi_close(&end->fabric->fid);
    fi_freeinfo(end->info);
    munmap(end->ping, 2 * OFI_PING_MAX);
    free(end);
}

void bench_ofi_introduce(const ofi_end_t *end, const char *memory,
                         ofi_hello_t *hello)
{
    bool by_address = (end->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;

    hello->length = sizeof(hello->name);
    is_fine(fi_getname(&end->ep->fid, hello->name, &hello->length),
            "fi_getname", hello->why);
    hello->base      = by_address ? (uint64_t)(uintptr_t)memory : 0;
    hello->ping_base = by_address ? (uint64_t)(uintptr_t)end->ping : 0;
    hello->key       = fi_mr_key(end->mr);
    hello->ping_key  = fi_mr_key(end->ping_mr);
}

bool bench_ofi_meet(ofi_end_t *end, const ofi_hello_t *hello, char why[128])
{
    end->there = *hello;
    if (fi_av_insert(end->av, hello->name, 1, &end->peer, 0, NULL) == 1)
        return true;
    return is_fine(-FI_EADDRNOTAVAIL, "fi_av_insert", why);
}

/* ---- operations -------------------------------------------------------- */

int bench_ofi_reap(ofi_end_t *end)
{
    struct fi_cq_err_entry error = { 0 };
    struct fi_cq_entry entries[16];
    ssize_t got = fi_cq_read(end->cq, entries, 16), i;

    for (i = 0; i < got; i++)
        end->idle[end->idle_count++] = entries[i].op_context;
    if (got == -FI_EAVAIL)
        return fi_cq_readerr(end->cq, &error, 0) == 1 ? -error.err : -FI_EIO;
    return got == -FI_EAGAIN ? 0 : (int)got;
}

int bench_ofi_post(ofi_end_t *end, const ofi_piece_t *piece)
{
    struct fi_context2 *context;
    ssize_t ret;

    if (end->idle_count == 0)
        return -FI_EAGAIN;
    context = end->idle[end->idle_count - 1];
    if (piece->put)
        ret = fi_write(end->ep, piece->here, piece->length, piece->desc,
                       end->peer, piece->there, piece->key, context);
    else
        ret = fi_read(end->ep, piece->here, piece->length, piece->desc,
                      end->peer, piece->there, piece->key, context);
    if (ret == 0)
        end->idle_count--;
    return (int)ret;
}

#endif
