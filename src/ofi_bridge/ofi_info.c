/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking libfabric what a provider offers, and why not. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "ofi_bridge/ofi_bridge.h"

static const uint64_t needed_caps =
    FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;

/* Without these, the target writes what is to be read. */
static const uint64_t read_caps = FI_READ | FI_REMOTE_READ;

/* Every mode of registration the bridge knows how to obey. FI_MR_HMEM is not
 * among them: memory of a device is not registered. */
static const int known_mr_modes = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
                                  FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_RAW |
                                  FI_MR_ENDPOINT;

/* The library may be older than the headers, or newer. */
static uint32_t api(void)
{
    uint32_t built = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

    return FI_VERSION_LT(fi_version(), built) ? fi_version() : built;
}

static enum fi_progress progress_of(const ofi_conf_t *conf)
{
    if (strcmp(conf->progress, "manual") == 0)
        return FI_PROGRESS_MANUAL;
    return strcmp(conf->progress, "auto") == 0 ? FI_PROGRESS_AUTO
                                               : FI_PROGRESS_UNSPEC;
}

/* FI_THREAD_DOMAIN: the engine calls into a rail, which has a domain of its
 * own, from one thread at a time. */
static struct fi_info *make_hints(const char *provider, const ofi_conf_t *conf,
                                  uint64_t caps)
{
    struct fi_info *hints = fi_allocinfo();

    if (hints == NULL)
        return NULL;
    hints->caps                          = caps;
    hints->mode                          = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type                 = FI_EP_RDM;
    hints->domain_attr->mr_mode          = known_mr_modes;
    hints->domain_attr->threading        = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt    = FI_RM_ENABLED;
    hints->domain_attr->control_progress = progress_of(conf);
    hints->domain_attr->data_progress    = progress_of(conf);
    hints->fabric_attr->prov_name        = strdup(provider);
    if (hints->fabric_attr->prov_name == NULL) {
        fi_freeinfo(hints);
        return NULL;
    }
    return hints;
}

/* libfabric answers a name with layers that it can put above it: keep what
 * was asked for. */
static struct fi_info *keep_exact(struct fi_info *list, const char *provider)
{
    struct fi_info *kept = NULL, **tail = &kept, *next;

    for (; list != NULL; list = next) {
        next       = list->next;
        list->next = NULL;
        if (strcmp(list->fabric_attr->prov_name, provider) == 0) {
            *tail = list;
            tail  = &list->next;
        } else {
            fi_freeinfo(list);
        }
    }
    return kept;
}

static struct fi_info *ask(struct fi_info *hints, const char *provider)
{
    struct fi_info *list = NULL;
    int ret              = hints == NULL ? -FI_ENOMEM
                                         : fi_getinfo(api(), NULL, NULL, 0, hints, &list);

    fi_freeinfo(hints);
    return ret == 0 ? keep_exact(list, provider) : NULL;
}

static struct fi_info *ask_caps(const char *provider, const ofi_conf_t *conf,
                                uint64_t caps)
{
    return ask(make_hints(provider, conf, caps), provider);
}

static struct fi_info *ask_delivery(const char *provider,
                                    const ofi_conf_t *conf, uint64_t caps)
{
    struct fi_info *hints = make_hints(provider, conf, caps);

    if (hints != NULL)
        hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    return ask(hints, provider);
}

/* ---- reasons ----------------------------------------------------------- */

/* Whether the library has one part of "core;utility". */
static bool has_part(const struct fi_info *list, const char *part,
                     size_t length)
{
    for (; list != NULL; list = list->next) {
        const char *name = list->fabric_attr->prov_name;

        if ((strlen(name) == length) && (strncmp(name, part, length) == 0))
            return true;
    }
    return false;
}

bool shunt_ofi_has_provider(const char *provider)
{
    struct fi_info *list = NULL;
    size_t part;
    bool all = true;

    if (fi_getinfo(api(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list) != 0)
        return false;
    for (; *provider != '\0'; provider += part + (provider[part] == ';')) {
        part = strcspn(provider, ";");
        all  = all && has_part(list, provider, part);
    }
    fi_freeinfo(list);
    return all;
}

static bool offers(struct fi_info *list)
{
    bool some = (list != NULL);

    fi_freeinfo(list);
    return some;
}

static const char *lack(const char *provider, const ofi_conf_t *conf)
{
    ofi_conf_t any = *conf;

    any.progress = (char *)"any";
    if (!offers(ask_caps(provider, &any, FI_MSG)))
        return "no reliable endpoint (FI_EP_RDM) on any device that is up";
    if (!offers(ask_caps(provider, &any, needed_caps)))
        return "no remote writes (FI_RMA, FI_WRITE)";
    if ((strcmp(conf->reads, "native") == 0) &&
        !offers(ask_caps(provider, &any, needed_caps | read_caps)))
        return "no remote reads (FI_READ), which SHUNT_OFI_READS=native asks "
               "for";
    if ((strcmp(conf->visibility, "delivery") == 0) &&
        !offers(ask_delivery(provider, &any, needed_caps)))
        return "no FI_DELIVERY_COMPLETE, which SHUNT_OFI_VISIBILITY=delivery "
               "asks for";
    return "not with the progress that SHUNT_OFI_PROGRESS asks for";
}

/* Utility layers are there whatever FI_PROVIDER says: the core decides. */
static bool filtered(const char *provider, const char *filter)
{
    char core[64];

    snprintf(core, sizeof(core), "%.*s", (int)strcspn(provider, ";"), provider);
    return (filter != NULL) && !shunt_ofi_list_takes(filter, core);
}

static void explain(const char *provider, const ofi_conf_t *conf, char *reason,
                    size_t room)
{
    const char *filter = shunt_conf_foreign("FI_PROVIDER");

    if (FI_MAJOR(fi_version()) != FI_MAJOR_VERSION)
        snprintf(reason, room,
                 "libfabric %u.%u is loaded, the bridge was built with %d.%d",
                 FI_MAJOR(fi_version()), FI_MINOR(fi_version()),
                 FI_MAJOR_VERSION, FI_MINOR_VERSION);
    else if (filtered(provider, filter))
        snprintf(reason, room, "left out by FI_PROVIDER=%.100s", filter);
    else if (shunt_ofi_has_provider(provider))
        snprintf(reason, room, "%s: %s", provider, lack(provider, conf));
    else
        snprintf(reason, room, "libfabric %u.%u has no provider %.40s",
                 FI_MAJOR(fi_version()), FI_MINOR(fi_version()), provider);
}

static struct fi_info *find(const char *provider, const ofi_conf_t *conf,
                            uint64_t caps)
{
    uint32_t flags       = shunt_ofi_quirk(provider)->flags;
    bool any             = strcmp(conf->visibility, "auto") == 0;
    bool delivery        = strcmp(conf->visibility, "delivery") == 0;
    struct fi_info *list = NULL;

    if (delivery || (any && ((flags & OFI_Q_NO_DELIVERY) == 0)))
        list = ask_delivery(provider, conf, caps);
    if ((list == NULL) && !delivery)
        list = ask_caps(provider, conf, caps);
    return list;
}

struct fi_info *shunt_ofi_info(const char *provider, const ofi_conf_t *conf,
                               char *reason, size_t room)
{
    struct fi_info *list = NULL;

    if (FI_MAJOR(fi_version()) == FI_MAJOR_VERSION) {
        list = find(provider, conf, needed_caps | read_caps);
        if ((list == NULL) && (strcmp(conf->reads, "native") != 0))
            list = find(provider, conf, needed_caps);
    }
    if (list == NULL)
        explain(provider, conf, reason, room);
    return list;
}
