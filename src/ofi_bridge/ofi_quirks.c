/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of libfabric's providers: one row for each that needs care,
 * with the reason and where it comes from. No other file names a provider,
 * but ofi_nic.c, which sets options that only one kind of hardware has. */
#include "config.h"

#include <string.h>

#include "ofi_bridge/ofi_bridge.h"

/* Ranks: smaller is better. Hardware before processors; what is there for
 * tests only comes last. */
enum {
    RANK_DEVICE = 20,
    RANK_TCP    = 26,
    RANK_OTHER  = 30,
    RANK_TEST   = 40
};

static const char double_flush[] =
    "a read whose answer is coming in is in two lists of its endpoint; when "
    "the connection ends, both are flushed, and its completion and its memory "
    "are given back twice";

/* clang-format off */
static const ofi_quirk_t quirks[] = {
    { "efa",
      OFI_Q_TICK | OFI_Q_NO_WAIT_FD | OFI_Q_NO_INJECT | OFI_Q_RNR_RETRY,
      RANK_DEVICE, 4 << 20,
      "no wait objects, no inject, unordered delivery; progress also for what "
      "the library emulates",
      "fi_efa(7), not run on hardware", NULL },
    { "efa_sim",
      OFI_Q_TICK | OFI_Q_NO_WAIT_FD | OFI_Q_NO_INJECT | OFI_Q_RNR_RETRY,
      RANK_TEST, 0,
      "a provider of the tests that behaves as efa may",
      "tests/efa_sim/README.md", NULL },
    { "cxi", OFI_Q_TICK, RANK_DEVICE, 4 << 20,
      "regions are bound to an endpoint; the launcher's VNI decides who "
      "reaches whom",
      "fi_cxi(7), not run on hardware", NULL },
    { "opx", OFI_Q_TICK | OFI_Q_NO_WAIT_FD, RANK_DEVICE, 1 << 20,
      "progress by polling", "fi_opx(7), not run on hardware", NULL },
    { "psm3", OFI_Q_TICK | OFI_Q_NO_WAIT_FD, RANK_DEVICE, 1 << 20,
      "progress by polling; remote writes are messages to the library",
      "fi_psm3(7), not run on hardware", NULL },
    { "psm2", OFI_Q_TICK | OFI_Q_NO_WAIT_FD, RANK_DEVICE, 1 << 20,
      "progress by polling; remote writes are messages to the library",
      "fi_psm2(7), not run on hardware", NULL },
    { "verbs;ofi_rxm", 0, RANK_DEVICE, 4 << 20,
      "completion is the adapter's acknowledgement: a read after it is what "
      "proves the bytes to be in memory",
      "fi_rxm(7), fi_verbs(7)", NULL },
    { "tcp;ofi_rxm", OFI_Q_READ_BY_PUSH | OFI_Q_ONE_HOST_IP, RANK_TCP, 0,
      double_flush,
      "libfabric 1.17, tcpx_ep_flush_all_queues(); closing an endpoint or "
      "losing the target with reads outstanding crashes", NULL },
    { "tcp", OFI_Q_READ_BY_PUSH | OFI_Q_ONE_HOST_IP, RANK_TCP, 0,
      double_flush,
      "libfabric 1.18 to 2.6, xnet_ep_flush_all_queues()", NULL },
    { "net", OFI_Q_READ_BY_PUSH | OFI_Q_ONE_HOST_IP, RANK_TCP, 0,
      double_flush, "libfabric 1.17, xnet_ep_flush_all_queues()", NULL },
    { "udp;ofi_rxd", OFI_Q_TICK | OFI_Q_ONE_HOST_IP, RANK_TEST, 256 << 10,
      "sends again by timers that run in progress only",
      "fi_rxd(7)",
      "what the target refuses is never answered, and who died is reported "
      "after a minute" },
    { "sockets", OFI_Q_ONE_HOST_IP, RANK_TEST, 0,
      "deprecated by libfabric; a thread of its own makes progress",
      "fi_sockets(7)", NULL },
    { "shm", OFI_Q_NO_DELIVERY | OFI_Q_DONE_IS_SEEN | OFI_Q_TICK |
             OFI_Q_NO_CONTEXT | OFI_Q_LOCAL | OFI_Q_NO_WAIT_FD |
             OFI_Q_NO_INJECT,
      RANK_TEST, 0,
      "with FI_DELIVERY_COMPLETE the target's process copies from and to the "
      "initiator's memory, also after the initiator gave up; without, the "
      "initiator copies within the call. Its errors come without a context",
      "libfabric 1.17, smr_generic_rma(), smr_rma_fast()",
      "keys are not checked, and who is killed inside a call leaves a lock "
      "for which others spin" },
};

static const ofi_quirk_t unknown = {
    "", OFI_Q_TICK, RANK_OTHER, 0, "not known to the bridge", "", NULL
};
/* clang-format on */

const ofi_quirk_t *shunt_ofi_quirk_at(size_t index)
{
    return index < sizeof(quirks) / sizeof(quirks[0]) ? &quirks[index] : NULL;
}

const ofi_quirk_t *shunt_ofi_quirk(const char *provider)
{
    const ofi_quirk_t *quirk;
    size_t i;

    for (i = 0; (quirk = shunt_ofi_quirk_at(i)) != NULL; i++) {
        if (strcmp(quirk->provider, provider) == 0)
            return quirk;
    }
    return &unknown;
}
