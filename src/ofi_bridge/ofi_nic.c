/* SPDX-License-Identifier: BSD-3-Clause */
/* What kinds of hardware want to be told. Compiled against every version of
 * libfabric that has the names; none of it was run on such a device.
 *
 * EFA (fi_efa(7)): delivery is unordered, so nothing here relies on the order
 * of two writes; FI_DELIVERY_COMPLETE is what makes one visible. Whether the
 * device or the library moves the bytes (FI_EFA_USE_DEVICE_RDMA, and
 * FI_OPT_EFA_EMULATED_READ and _WRITE, which say which) makes no difference to
 * the contract, as the bridge makes progress at the target anyway. There is no
 * wait object (the rail is polled by a timer), no inject and no atomics. Fork
 * is safe with FI_EFA_FORK_SAFE=1, which costs huge pages their speed.
 *
 * CXI: regions belong to an endpoint (FI_MR_ENDPOINT: bind and enable), keys
 * are the provider's. The authorization key is left empty: the provider then
 * takes VNI and service id from the launcher's SLINGSHOT_VNIS,
 * SLINGSHOT_SVC_IDS and SLINGSHOT_DEVICES. Two jobs with different VNIs cannot
 * reach each other, which the rail's address says. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_ext.h>

#include "base/conf.h"
#include "ofi_bridge/ofi_bridge.h"

#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), \
                  FI_VERSION(1, 18))
#define OFI_HAVE_EMULATED 1
#else
#define OFI_HAVE_EMULATED 0
#endif

#if OFI_HAVE_EMULATED
static bool emulated(struct fid_ep *ep, int option)
{
    bool value    = false;
    size_t length = sizeof(value);

    return (fi_getopt(&ep->fid, FI_OPT_ENDPOINT, option, &value, &length) ==
            0) &&
           value;
}

static void say_emulated(const ofi_rail_t *rail, struct fid_ep *ep)
{
    shunt_log(
        &shunt_ofi_log, SHUNT_LOG_DEBUG, "%s: reads are %s, writes are %s",
        rail->device.name,
        emulated(ep, FI_OPT_EFA_EMULATED_READ) ? "emulated" : "the device's",
        emulated(ep, FI_OPT_EFA_EMULATED_WRITE) ? "emulated" : "the device's");
}
#else
static void say_emulated(const ofi_rail_t *rail, struct fid_ep *ep)
{
    (void)rail;
    (void)ep;
}
#endif

/* A receiver that has no buffer posted is to be waited for, as the RNR retry
 * of an RDMA connection; 7 is for ever, bounded by the engine's deadline. */
void shunt_ofi_nic_options(const ofi_rail_t *rail, struct fid_ep *ep)
{
#ifdef FI_PROV_SPECIFIC_EFA
    size_t retry = 7;
    int ret;

    if ((rail->quirk->flags & OFI_Q_RNR_RETRY) == 0)
        return;
    ret = fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_EFA_RNR_RETRY, &retry,
                    sizeof(retry));
    if (ret != 0)
        shunt_log(&shunt_ofi_log, SHUNT_LOG_DEBUG,
                  "%s: FI_OPT_EFA_RNR_RETRY %zu is not taken: %s",
                  rail->device.name, retry, fi_strerror(-ret));
    say_emulated(rail, ep);
#else
    (void)rail;
    (void)ep;
    (void)say_emulated;
#endif
}

uint32_t shunt_ofi_nic_vni(const char *provider)
{
    const char *list = shunt_conf_foreign("SLINGSHOT_VNIS");

    if ((strcmp(provider, "cxi") != 0) || (list == NULL))
        return 0;
    return (uint32_t)strtoul(list, NULL, 10); /* the first one is used */
}
