/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain libfabric between two processes, each with one endpoint
 * (bench_ofi_end.c). The child makes progress in a loop while it is asked to.
 *
 * The ping-pong polls the last byte of what is written, as such programs do:
 * that is all of it only where bytes come in order (tcp, shm). It counts half
 * of the time there and back.
 */
#include "config.h"
#include "bench.h"
#include "bench_ofi.h"

#include <errno.h>
#include <string.h>

#if HAVE_OFI
#include "bench_ofi_end.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATIENCE_S = 10,
    LOOKS      = 1024 /* polls between two looks at the clock */
};

typedef enum {
    HELLO  = 1, /* open, and tell the name */
    STREAM = 2, /* poll */
    PING   = 3, /* poll, and answer */
    REST   = 4
} command_t;

typedef struct order {
    command_t command;
    size_t size;
} order_t;

static const char preset[] = "tcp;ofi_rxm";

/* Patience with what does not move. */
typedef struct patience {
    unsigned looks;
    uint64_t since;
} patience_t;

static bool lost_patience(patience_t *patience, bool moved)
{
    if (moved)
        patience->since = 0;
    if (moved || (++patience->looks % LOOKS != 0))
        return false;
    if (patience->since == 0)
        patience->since = bench_now();
    return bench_interrupted() ||
           (bench_now() - patience->since > PATIENCE_S * UINT64_C(1000000000));
}

/* ---- the child --------------------------------------------------------- */

/* Answer every turn until there is an order, or the parent has gone. */
static void child_pong(ofi_end_t *end, int fd, size_t size)
{
    char *in           = end->ping + OFI_PING_MAX + size - 1;
    unsigned char turn = 1;
    ofi_piece_t piece  = { .put    = true,
                           .here   = end->ping,
                           .desc   = fi_mr_desc(end->ping_mr),
                           .length = size,
                           .there  = end->there.ping_base + OFI_PING_MAX,
                           .key    = end->there.ping_key };
    unsigned looks     = 0;
    bool due           = false;
    char peeked;

    for (;;) {
        /* acquire: the byte is read before the answer is written */
        if (!due &&
            ((unsigned char)__atomic_load_n(in, __ATOMIC_ACQUIRE) == turn)) {
            end->ping[size - 1] = (char)turn;
            turn                = turn == 255 ? 1 : (unsigned char)(turn + 1);
            due                 = true;
        }
        if (due && (bench_ofi_post(end, &piece) == 0))
            due = false;
        bench_ofi_reap(end);
        if ((++looks % LOOKS == 0) &&
            ((recv(fd, &peeked, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) ||
             (errno != EAGAIN)))
            return;
    }
}

static void child_poll(ofi_end_t *end, int fd)
{
    unsigned looks = 0;
    char peeked;

    do {
        bench_ofi_reap(end);
    } while ((++looks % LOOKS != 0) ||
             ((recv(fd, &peeked, 1, MSG_PEEK | MSG_DONTWAIT) < 0) &&
              (errno == EAGAIN)));
}

static bool take(int fd, void *bytes, size_t length)
{
    return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

static bool give(int fd, const void *bytes, size_t length)
{
    return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static ofi_end_t *child_hello(const bench_ofi_t *ofi, int fd)
{
    ofi_hello_t hello = { .length = 0 };
    char *memory      = mmap(NULL, ofi->area, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ofi_end_t *end    = NULL;

    if (memory == MAP_FAILED) {
        snprintf(hello.why, sizeof(hello.why), "memory: %s", strerror(errno));
    } else {
        bench_touch(memory, ofi->area);
        end = bench_ofi_end_open(ofi->provider, memory, ofi->area, hello.why);
    }
    if (end != NULL)
        bench_ofi_introduce(end, memory, &hello);
    if (!give(fd, &hello, sizeof(hello)) || (end == NULL) ||
        !take(fd, &hello, sizeof(hello)) ||
        !bench_ofi_meet(end, &hello, hello.why))
        _exit(1);
    return end;
}

static void child_main(const bench_ofi_t *ofi, int fd, pid_t parent)
{
    ofi_end_t *end = NULL;
    order_t order;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    while (take(fd, &order, sizeof(order))) {
        if (order.command == HELLO)
            end = child_hello(ofi, fd);
        if (end == NULL)
            _exit(1);
        if (order.command == PING) /* so that no turn is there yet */
            end->ping[OFI_PING_MAX + order.size - 1] = 0;
        if (!give(fd, &order, sizeof(order)))
            _exit(1);
        if (order.command == PING)
            child_pong(end, fd, order.size);
        else if (order.command == STREAM)
            child_poll(end, fd);
    }
    _exit(0);
}

/* ---- the parent -------------------------------------------------------- */

void bench_ofi_open(bench_ofi_t *ofi, const char *provider, char *memory,
                    size_t area)
{
    struct timeval patience = { .tv_sec = PATIENCE_S };
    pid_t parent            = getpid();
    int ends[2];

    memset(ofi, 0, sizeof(*ofi));
    ofi->provider = provider == NULL ? preset : provider;
    ofi->memory   = memory;
    ofi->area     = area;
    ofi->fd       = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(ofi->why, sizeof(ofi->why), "socketpair: %s", strerror(errno));
        return;
    }
    ofi->child = fork();
    if (ofi->child == 0) {
        close(ends[0]);
        child_main(ofi, ends[1], parent);
    }
    close(ends[1]);
    ofi->fd = ends[0];
    (void)setsockopt(ofi->fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
                     sizeof(patience));
    if (ofi->child < 0)
        snprintf(ofi->why, sizeof(ofi->why), "fork: %s", strerror(errno));
}

static void end_child(bench_ofi_t *ofi)
{
    if (ofi->fd >= 0)
        close(ofi->fd);
    if (ofi->child > 0) {
        kill(ofi->child, SIGKILL);
        waitpid(ofi->child, NULL, 0);
    }
    ofi->fd    = -1;
    ofi->child = 0;
}

void bench_ofi_close(bench_ofi_t *ofi)
{
    /* while the other side is there, and with nothing outstanding: some
     * providers do not survive anything else */
    if ((ofi->end != NULL) && (ofi->why[0] == '\0'))
        bench_ofi_end_close(ofi->end);
    ofi->end = NULL;
    end_child(ofi);
}

static int give_up(bench_ofi_t *ofi, int error, const char *what)
{
    if (ofi->why[0] == '\0')
        snprintf(ofi->why, sizeof(ofi->why), "%s: %s", ofi->provider, what);
    end_child(ofi);
    return error;
}

static bool command(bench_ofi_t *ofi, command_t what, size_t size)
{
    order_t order = { what, size }, answer = { REST, 0 };

    ofi->awake = (what == STREAM) || (what == PING);
    ofi->ping  = what == PING ? size : 0;
    ofi->turn  = 0;
    return give(ofi->fd, &order, sizeof(order)) &&
           take(ofi->fd, &answer, sizeof(answer)) && (answer.command == what);
}

static bool greet(bench_ofi_t *ofi)
{
    order_t order = { HELLO, 0 };
    ofi_hello_t there, here = { .length = 0 };

    if (!give(ofi->fd, &order, sizeof(order)) ||
        !take(ofi->fd, &there, sizeof(there)))
        return false;
    if (there.why[0] != '\0') {
        memcpy(ofi->why, there.why, sizeof(ofi->why));
        return false;
    }
    ofi->end =
        bench_ofi_end_open(ofi->provider, ofi->memory, ofi->area, ofi->why);
    if (ofi->end == NULL)
        return false;
    bench_ofi_introduce(ofi->end, ofi->memory, &here);
    return give(ofi->fd, &here, sizeof(here)) &&
           bench_ofi_meet(ofi->end, &there, ofi->why) &&
           take(ofi->fd, &order, sizeof(order));
}

void bench_ofi_rest(bench_ofi_t *ofi)
{
    if (ofi->awake && (ofi->why[0] == '\0') && !command(ofi, REST, 0))
        give_up(ofi, ETIMEDOUT, "the other process does not answer");
}

/* ---- what is measured -------------------------------------------------- */

typedef struct walk {
    size_t rest;   /* of the current request */
    size_t offset; /* of its next piece */
    uint64_t turn;
} walk_t;

/* The next piece of the next request: no longer than the provider takes. */
static void next_piece(bench_ofi_t *ofi, const bench_ofi_job_t *job,
                       walk_t *walk, ofi_piece_t *piece)
{
    size_t limit = ofi->end->info->ep_attr->max_msg_size;

    if (walk->rest == 0) {
        if (job->hot || (ofi->at + job->size > ofi->area))
            ofi->at = 0;
        walk->rest   = job->size;
        walk->offset = ofi->at;
        piece->put   = job->way == BENCH_OFI_MIX ? walk->turn % 2 == 0
                                                 : job->way == BENCH_OFI_WRITE;
        walk->turn++;
        ofi->at += (job->size + 7) & ~(size_t)7;
    }
    piece->length = walk->rest < limit ? walk->rest : limit;
    piece->here   = ofi->memory + walk->offset;
    piece->there  = ofi->end->there.base + walk->offset;
    walk->rest -= piece->length;
    walk->offset += piece->length;
}

static int stream(bench_ofi_t *ofi, const bench_ofi_job_t *job)
{
    ofi_end_t *end  = ofi->end;
    size_t limit    = end->info->ep_attr->max_msg_size;
    uint64_t pieces = (job->size - 1) / limit + 1;
    uint64_t total = pieces * job->n, posted = 0, done = 0;
    uint64_t window   = pieces * job->window;
    ofi_piece_t piece = { .desc = fi_mr_desc(end->mr), .key = end->there.key };
    walk_t walk       = { .rest = 0 };
    patience_t patience = { .looks = 0 };
    bool ready          = false;
    int ret             = 0;

    while (done < total) {
        if (!ready && (posted < total)) {
            next_piece(ofi, job, &walk, &piece);
            ready = true;
        }
        ret = -FI_EAGAIN;
        if (ready && (posted - done < window))
            ret = bench_ofi_post(end, &piece);
        if (ret == 0) {
            posted++;
            ready = false;
            if (posted - done < window)
                continue; /* fill the window first */
        } else if (ret != -FI_EAGAIN) {
            return give_up(ofi, EIO, fi_strerror(-ret));
        }
        ret = bench_ofi_reap(end);
        if (ret < 0)
            return give_up(ofi, EIO, fi_strerror(-ret));
        done += (uint64_t)ret;
        if (lost_patience(&patience, ret > 0))
            return give_up(ofi, ETIMEDOUT, "nothing ends any more");
    }
    return 0;
}

static int ping_once(bench_ofi_t *ofi, const ofi_piece_t *piece,
                     patience_t *patience)
{
    ofi_end_t *end = ofi->end;
    char *in       = end->ping + OFI_PING_MAX + piece->length - 1;
    bool is_posted = false;
    int ret;

    ofi->turn = ofi->turn == 255 ? 1 : (unsigned char)(ofi->turn + 1);
    end->ping[piece->length - 1] = (char)ofi->turn;
    /* acquire: the answer is there before the next turn begins */
    while (!is_posted || ((unsigned char)__atomic_load_n(
                              in, __ATOMIC_ACQUIRE) != ofi->turn)) {
        ret = is_posted ? 0 : bench_ofi_post(end, piece);
        if ((ret != 0) && (ret != -FI_EAGAIN))
            return give_up(ofi, EIO, fi_strerror(-ret));
        is_posted = is_posted || (ret == 0);
        ret       = bench_ofi_reap(end);
        if (ret < 0)
            return give_up(ofi, EIO, fi_strerror(-ret));
        if (lost_patience(patience, ret > 0))
            return give_up(ofi, ETIMEDOUT, "no answer to a ping");
    }
    return 0;
}

/* What is still to be completed: nothing may be when the endpoint closes. */
static int ping_drain(bench_ofi_t *ofi)
{
    patience_t patience = { .looks = 0 };
    int ret;

    while (ofi->end->idle_count < ofi->end->window) {
        ret = bench_ofi_reap(ofi->end);
        if ((ret < 0) || lost_patience(&patience, ret > 0))
            return give_up(ofi, EIO, "a ping does not complete");
    }
    return 0;
}

static int ping(bench_ofi_t *ofi, const bench_ofi_job_t *job)
{
    ofi_end_t *end      = ofi->end;
    ofi_piece_t piece   = { .put    = true,
                            .here   = end->ping,
                            .desc   = fi_mr_desc(end->ping_mr),
                            .length = job->size,
                            .there  = end->there.ping_base + OFI_PING_MAX,
                            .key    = end->there.ping_key };
    patience_t patience = { .looks = 0 };
    unsigned n          = (job->n + 1) / 2;
    int error           = 0;

    if (ofi->turn == 0)
        end->ping[OFI_PING_MAX + job->size - 1] = 0;
    for (; (n > 0) && (error == 0); n--)
        error = ping_once(ofi, &piece, &patience);
    return error == 0 ? ping_drain(ofi) : error;
}

void bench_ofi_ready(bench_ofi_t *ofi)
{
    /* the first write connects */
    const bench_ofi_job_t job = { BENCH_OFI_WRITE, 1, 1, 1, true };

    if (ofi->tried || (ofi->why[0] != '\0'))
        return;
    ofi->tried = true;
    if (!greet(ofi))
        give_up(ofi, EOPNOTSUPP, "the other process did not start");
    else if (!command(ofi, STREAM, 0))
        give_up(ofi, ETIMEDOUT, "the other process does not answer");
    else
        (void)stream(ofi, &job);
}

int bench_ofi_run(bench_ofi_t *ofi, const bench_ofi_job_t *job)
{
    bool pinging = job->way == BENCH_OFI_PING;

    bench_ofi_ready(ofi);
    if (ofi->why[0] != '\0')
        return EOPNOTSUPP;
    if (pinging && ((job->size > OFI_PING_MAX) ||
                    (job->size > ofi->end->info->ep_attr->max_msg_size)))
        return EMSGSIZE;
    if ((!ofi->awake || (ofi->ping != (pinging ? job->size : 0))) &&
        !command(ofi, pinging ? PING : STREAM, job->size))
        return give_up(ofi, ETIMEDOUT, "the other process does not answer");
    return pinging ? ping(ofi, job) : stream(ofi, job);
}

#else /* HAVE_OFI */

void bench_ofi_open(bench_ofi_t *ofi, const char *provider, char *memory,
                    size_t area)
{
    memset(ofi, 0, sizeof(*ofi));
    ofi->provider = provider;
    ofi->memory   = memory;
    ofi->area     = area;
    snprintf(ofi->why, sizeof(ofi->why), "built without libfabric");
}

void bench_ofi_close(bench_ofi_t *ofi)
{
    (void)ofi;
}

void bench_ofi_ready(bench_ofi_t *ofi)
{
    (void)ofi;
}

int bench_ofi_run(bench_ofi_t *ofi, const bench_ofi_job_t *job)
{
    (void)ofi;
    (void)job;
    return EOPNOTSUPP;
}

void bench_ofi_rest(bench_ofi_t *ofi)
{
    (void)ofi;
}

#endif /* HAVE_OFI */
