/* SPDX-License-Identifier: BSD-3-Clause */
/* Every behaviour is a row: its switch, its default, what it does, and where
 * it is said that EFA does so. EFASIM_HELP=1 prints the table. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "efa_sim/efasim.h"

typedef enum {
    TEXT,
    NUMBER,
    CHANCE /* 0 to 1 */
} type_t;

typedef struct row {
    const char *name;
    const char *preset;
    type_t type;
    size_t offset;
    uint64_t least; /* TEXT: room */
    uint64_t most;
    const char *what;
    const char *source;
} row_t;

#define AT(_member) offsetof(efasim_conf_t, _member)

/* clang-format off */
static const row_t rows[] = {
    { "EFASIM_CORE", "tcp;ofi_rxm", TEXT, AT(core), 64, 0,
      "provider that carries the packets: tcp;ofi_rxm or udp;ofi_rxd",
      "none: this is the simulation's" },
    { "EFASIM_STATS", "", TEXT, AT(stats), 256, 0,
      "file to which a line of counters is added when a domain is closed",
      "none: this is the simulation's" },
    { "EFASIM_SEED", "1", NUMBER, AT(seed), 0, UINT64_MAX,
      "seed of everything that is decided at random",
      "none: this is the simulation's" },
    { "EFASIM_NICS", "2", NUMBER, AT(nics), 1, EFASIM_NICS_MAX,
      "devices efasim0, efasim1, ..., each with a PCI address and a domain",
      "fi_efa(7): a domain a device; p4d has 4, p5 has 32" },
    { "EFASIM_MTU", "8192", NUMBER, AT(mtu), 1024, EFASIM_MTU_MAX,
      "bytes of a packet: what is longer is cut, and packets take their own "
      "way", "fi_efa(7), FI_EFA_MTU_SIZE and SRD: unordered datagrams" },
    { "EFASIM_MAX_MSG", "65536", NUMBER, AT(max_msg), 1024, UINT64_MAX,
      "ep_attr->max_msg_size; -FI_EMSGSIZE above (sends: also above 64 MTUs)",
      "fi_efa(7), FI_OPT_MAX_RMA_SIZE: the efa-direct fabric has the device's "
      "limits" },
    { "EFASIM_INJECT", "32", NUMBER, AT(inject), 0, EFASIM_INJECT_MAX,
      "tx_attr->inject_size", "fi_efa(7): 32 bytes fit into a descriptor" },
    { "EFASIM_TX_SIZE", "256", NUMBER, AT(tx_size), 1, 65535,
      "operations outstanding, then -FI_EAGAIN",
      "fi_efa(7), FI_EFA_TX_SIZE" },
    { "EFASIM_RX_SIZE", "256", NUMBER, AT(rx_size), 1, 65535,
      "receives posted, then -FI_EAGAIN", "fi_efa(7), FI_EFA_RX_SIZE" },
    { "EFASIM_CQ_SIZE", "0", NUMBER, AT(cq_size), 0, 1 << 20,
      "size of every completion queue whatever is asked; 0: as asked. When it "
      "overflows, completions are lost and fi_cq_read says -FI_EOVERRUN",
      "fi_efa(7), FI_EFA_CQ_SIZE; fi_cq(3), overrun" },
    { "EFASIM_AV_SIZE", "0", NUMBER, AT(av_size), 0, 1 << 20,
      "addresses that fit into an address vector; 0: no limit",
      "fi_av(3): insertion may fail; address handles are limited" },
    { "EFASIM_HOLD", "0.25", CHANCE, AT(hold), 0, 0,
      "share of packets that later ones overtake: data and completions come "
      "in any order", "fi_efa(7): SRD is unordered; FI_ORDER_NONE" },
    { "EFASIM_HOLD_US", "200", NUMBER, AT(hold_us), 1, 1000000,
      "for how long, at most; at least half of it", "none: this is the simulation's" },
    { "EFASIM_EARLY", "0.5", CHANCE, AT(early), 0, 0,
      "share of writes without FI_DELIVERY_COMPLETE that complete before they "
      "are visible; a read after that sees them",
      "fi_cq(3), completion levels: FI_TRANSMIT_COMPLETE is no more" },
    { "EFASIM_SWAP", "0.25", CHANCE, AT(swap), 0, 0,
      "share of completions that change places with the one before",
      "fi_efa(7): comp_order is FI_ORDER_NONE" },
    { "EFASIM_EAGAIN", "0.02", CHANCE, AT(again), 0, 0,
      "share of calls that begin a burst of -FI_EAGAIN",
      "fi_efa(7), FI_EFA_TX_SIZE: queues fill up, peers are backed off from" },
    { "EFASIM_EAGAIN_BURST", "8", NUMBER, AT(burst), 1, 100000,
      "calls in a burst, at most", "none: this is the simulation's" },
    { "EFASIM_RNR", "0", CHANCE, AT(rnr), 0, 0,
      "share of sends that end with FI_ENORX, prov_errno 10, unless "
      "FI_OPT_EFA_RNR_RETRY is 7",
      "fi_efa(7), FI_OPT_EFA_RNR_RETRY; efa_io_comp_status" },
    { "EFASIM_MR_LOCAL", "1", NUMBER, AT(mr_local), 0, 1,
      "FI_MR_LOCAL is demanded; an operation whose desc does not cover its "
      "buffer is refused with -FI_EINVAL",
      "fi_efa(7): the efa-direct fabric requires it" },
    { "EFASIM_MR_VIRT_ADDR", "1", NUMBER, AT(mr_virt_addr), 0, 1,
      "FI_MR_VIRT_ADDR is demanded; without, remote addresses are offsets",
      "none: fi_mr(3), other providers" },
    { "EFASIM_MR_PROV_KEY", "1", NUMBER, AT(mr_prov_key), 0, 1,
      "FI_MR_PROV_KEY is demanded; without, keys are the user's, and one that "
      "is in use is refused with -FI_ENOKEY",
      "none: fi_mr(3), other providers" },
    { "EFASIM_MR_KEY_SIZE", "8", NUMBER, AT(mr_key_size), 1, 8,
      "domain_attr->mr_key_size; a longer key of the user's is refused with "
      "-FI_EKEYREJECTED", "none: fi_domain(3), other providers" },
    { "EFASIM_MR_ENDPOINT", "0", NUMBER, AT(mr_endpoint), 0, 1,
      "FI_MR_ENDPOINT is demanded: memory is bound to an endpoint, and is "
      "nothing to another", "none: fi_cxi(7)" },
    { "EFASIM_MR_RAW", "0", NUMBER, AT(mr_raw), 0, 1,
      "FI_MR_RAW is demanded: keys have 24 bytes and are mapped; a domain with "
      "mapped keys does not close", "none: fi_mr(3), other providers" },
    { "EFASIM_MR_CNT", "65536", NUMBER, AT(mr_cnt), 1, 1 << 24,
      "domain_attr->mr_cnt; -FI_ENOMEM for more",
      "fi_efa(7): regions of a device are limited" },
    { "EFASIM_RNR_OPTION", "1", NUMBER, AT(rnr_option), 0, 1,
      "FI_OPT_EFA_RNR_RETRY can be set",
      "none: other providers do not have it" },
    { "EFASIM_ONE_NAME", "0", NUMBER, AT(one_name), 0, 1,
      "all devices have the domain name of the first",
      "none: fi_getinfo(3) lists a domain once for each of its addresses" },
    { "EFASIM_DELIVERY", "1", NUMBER, AT(delivery), 0, 1,
      "FI_DELIVERY_COMPLETE is offered",
      "fi_efa(7): emulated by the efa fabric, absent from efa-direct" },
    { "EFASIM_DEVICE_READ", "1", NUMBER, AT(device_read), 0, 1,
      "the device reads; without, and without EFASIM_EMULATED_READ, fi_read "
      "says -FI_EOPNOTSUPP",
      "fi_efa(7), FI_EFA_USE_DEVICE_RDMA; efa-direct does not emulate" },
    { "EFASIM_EMULATED_READ", "0", NUMBER, AT(emulated_read), 0, 1,
      "the library reads in the device's place, and "
      "FI_OPT_EFA_EMULATED_READ says so",
      "fi_efa(7), FI_OPT_EFA_EMULATED_READ" },
    { "EFASIM_UNRESP_MS", "500", NUMBER, AT(unresponsive_ms), 1, 600000,
      "how long a peer whose process has ended may be out of reach before its "
      "operations end with FI_EHOSTUNREACH, prov_errno 15; 20 times as long "
      "while it lives, and may be stopped",
      "efa_io_comp_status: unreachable remote" },
};
/* clang-format on */

static bool read_number(const char *text, uint64_t *value_p)
{
    static const char units[] = "kmg";
    char *end;
    const char *unit;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if ((errno != 0) || (end == text) || (*text == '-'))
        return false;
    unit = *end == '\0' ? NULL : strchr(units, *end | 0x20);
    if (unit != NULL) {
        value <<= 10 * (unit - units + 1);
        end++;
    }
    *value_p = value;
    return *end == '\0';
}

static bool read_chance(const char *text, double *value_p)
{
    char *end;

    *value_p = strtod(text, &end);
    return (end != text) && (*end == '\0') && (*value_p >= 0) &&
           (*value_p <= 1);
}

static bool load_row(const row_t *row, efasim_conf_t *conf)
{
    const char *text = getenv(row->name);
    void *place      = (char *)conf + row->offset;
    uint64_t number;

    if (text == NULL)
        text = row->preset;
    if (row->type == TEXT)
        return snprintf(place, row->least, "%s", text) < (int)row->least;
    if (row->type == CHANCE)
        return read_chance(text, place);
    if (!read_number(text, &number) || (number < row->least) ||
        (number > row->most))
        return false;
    *(uint64_t *)place = number;
    return true;
}

static void print_table(void)
{
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        fprintf(stderr, "%s (%s): %s. [%s]\n", rows[i].name, rows[i].preset,
                rows[i].what, rows[i].source);
}

/* Once: libfabric asks several times in one fi_getinfo(). */
static void complain(const row_t *row)
{
    static bool told[sizeof(rows) / sizeof(rows[0])];
    const char *text = getenv(row->name);

    if (__atomic_exchange_n(&told[row - rows], true, __ATOMIC_RELAXED))
        return;
    if (row->type == NUMBER)
        fprintf(stderr,
                "efa_sim: %s=%s: a number from %llu to %llu expected; no "
                "device is offered\n",
                row->name, text, (unsigned long long)row->least,
                (unsigned long long)row->most);
    else
        fprintf(stderr, "efa_sim: %s=%s: %s expected; no device is offered\n",
                row->name, text,
                row->type == CHANCE ? "a number from 0 to 1"
                                    : "a shorter text");
}

bool efasim_conf_load(efasim_conf_t *conf)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t i;

    memset(conf, 0, sizeof(*conf));
    if (getenv("EFASIM_HELP") != NULL)
        pthread_once(&once, print_table);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!load_row(&rows[i], conf)) {
            complain(&rows[i]);
            return false;
        }
    }
    return true;
}
