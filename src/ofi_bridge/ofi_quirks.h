/* SPDX-License-Identifier: BSD-3-Clause */
/* Providers that need care, as data: ofi_quirks.c has the rows. */
#ifndef SHUNT_OFI_QUIRKS_H
#define SHUNT_OFI_QUIRKS_H

#include <stddef.h>
#include <stdint.h>

enum {
    OFI_Q_READ_BY_PUSH = 1u << 0, /* fi_read is not to be used */
    OFI_Q_NO_DELIVERY  = 1u << 1, /* FI_DELIVERY_COMPLETE is not to be used */
    OFI_Q_DONE_IS_SEEN = 1u << 2, /* complete is visible without it */
    OFI_Q_TICK         = 1u << 3, /* has timers of its own: needs progress */
    OFI_Q_NO_CONTEXT   = 1u << 4, /* errors may come without their context */
    OFI_Q_LOCAL        = 1u << 5, /* this host only */
    OFI_Q_NO_WAIT_FD   = 1u << 6, /* a wait object is not to be asked for */
    OFI_Q_ONE_HOST_IP  = 1u << 7, /* on `lo` it reaches this host only */
    OFI_Q_NO_INJECT    = 1u << 8,
    OFI_Q_RNR_RETRY    = 1u << 9 /* FI_OPT_EFA_RNR_RETRY is to be set */
};

typedef struct ofi_quirk {
    const char *provider;
    uint32_t flags;
    uint32_t rank;
    size_t best_post; /* 0: the setting's */
    const char *reason;
    const char *source;
    const char *broken; /* a promise of the bridge's that it cannot keep: used
                           only when a setting names it; NULL: none */
} ofi_quirk_t;

#endif
