/* SPDX-License-Identifier: MIT
 *
 * What: the plan of a thread's loop: registering, configuring, and sxe_init, which allocates all
 * memory at once.
 */
#include "sxe-private.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sxe-sized-internal.h"

#define DEFAULT_CHUNK_SIZE 16384u
/* chunks beside two for each socket, one for unread bytes and one for unsent bytes */
#define SPARE_CHUNKS         64u
#define DEFAULT_OUTPUT_PAUSE 65536u
#define DEFAULT_OUTPUT_MAX   1048576u
#define DEFAULT_BACKLOG      4096u
#define DEFAULT_BATCH        64u
#define DEFAULT_CLOSING_MS   5000u

/* A larger number is a mistake in the program: no system has so many descriptors, and the counts of
 * unread bytes are ints. */
#define SOCKETS_MAX    (1u << 24)
#define CHUNK_SIZE_MAX (1u << 30)

/* libev has one default loop for the whole process: only one thread may use it. */
static _Atomic(struct sxe__context *) default_loop_owner;

/* ---- The plan ---- */

void
sxe_register(unsigned connections, unsigned extra_size)
{
    struct sxe__context *c = CONTEXT;

    SXE_ASSERT(c->sockets == NULL, "sxe_register(%u, %u) must come before sxe_init", connections,
               extra_size);
    c->registered =
        connections > UINT32_MAX - c->registered ? UINT32_MAX : c->registered + connections;
    c->extra = extra_size > c->extra ? extra_size : c->extra;
}

void
sxe_configure_sized(const struct sxe_config *config, size_t size)
{
    struct sxe__context *c = CONTEXT;

    SXE_ASSERT(c->sockets == NULL, "sxe_configure must come before sxe_init%s", "");
    c->is_refused =
        sxe__sized_take(&c->wanted, sizeof(c->wanted), config, size, "sxe_configure") < 0;
}

const struct sxe_config *
sxe_get_config(void)
{
    return CONTEXT->sockets != NULL ? &CONTEXT->tables->config : &CONTEXT->wanted;
}

static uint32_t
default_if_zero(uint32_t wanted, uint32_t value)
{
    return wanted == 0 ? value : wanted;
}

/* The configuration with all its defaults. */
static struct sxe_config
complete_config(const struct sxe__context *c)
{
    struct sxe_config config = c->wanted;
    uint32_t *closing_ms;

    config.chunk_size = default_if_zero(config.chunk_size, DEFAULT_CHUNK_SIZE);
    config.chunks = default_if_zero(config.chunks, 2 * c->registered + SPARE_CHUNKS);
    config.output_pause = default_if_zero(config.output_pause, DEFAULT_OUTPUT_PAUSE);
    config.output_max = default_if_zero(config.output_max, DEFAULT_OUTPUT_MAX);
    config.backlog = default_if_zero(config.backlog, DEFAULT_BACKLOG);
    config.accept_batch = default_if_zero(config.accept_batch, DEFAULT_BATCH);
    closing_ms = &config.timeout_ms[SXE_STATE_CLOSING];
    *closing_ms = default_if_zero(*closing_ms, DEFAULT_CLOSING_MS);
    /* Sockets in these states are not open, so they need no timeout. */
    config.timeout_ms[SXE_STATE_FREE] = config.timeout_ms[SXE_STATE_CLOSED] = 0;
    if (config.chunk_size < SXE__CHUNK_SIZE_MIN)
        config.chunk_size = SXE__CHUNK_SIZE_MIN;
    return config;
}

/* The most bytes that one read takes: a chunk, or a whole datagram. */
static size_t
most_read_at_once(const struct sxe_config *config)
{
    return config->chunk_size > SXE__DATAGRAM_MAX ? config->chunk_size : SXE__DATAGRAM_MAX;
}

/* The distance from one socket to the next in the pool: the socket and its extra bytes. */
static size_t
stride_of_socket(const struct sxe__context *c)
{
    return (sizeof(SXE) + c->extra + 15) & ~(size_t)15;
}

/* Print a line of the plan. The bytes of each element are rounded down: a pool has a few bytes of
 * its own. Returns total. */
static size_t
plan_line(FILE *out, const char *what, size_t number, size_t total)
{
    if (out != NULL)
        fprintf(out, "%-16s %10zu x %8zu = %12zu\n", what, number, number > 0 ? total / number : 0,
                total);
    return total;
}

size_t
sxe_plan_print(FILE *out)
{
    struct sxe__context *c = CONTEXT;
    struct sxe_config config = c->sockets != NULL ? c->tables->config : complete_config(c);
    size_t number = c->sockets != NULL ? c->number : c->registered;
    size_t each = stride_of_socket(c);
    size_t pool = sxe_pool_size((unsigned)number, each, SXE_STATES);
    size_t chunks = sxe_chunks_reserved(config.chunks, config.chunk_size);
    size_t total = 0;

    if (out != NULL)
        fprintf(out, "%-16s %10s x %8s = %12s\n", "pool", "number", "bytes", "total");
    total += plan_line(out, "sockets", number, number * each);
    total += plan_line(out, "states", number, pool > 0 ? pool - number * each : 0);
    total += plan_line(out, "chunks", config.chunks, chunks);
    total += plan_line(out, "read buffer", 1, most_read_at_once(&config) + SXE__READ_FRONT);
    total += plan_line(out, "output buffer", 1, SXE__HELD_SIZE + SXE__STAGE_SIZE);
    total += plan_line(out, "loop", 1, sizeof(*c) + sizeof(*c->tables));
    total += plan_line(out, "threads", sxe__work_threads(c),
                       sxe__work_threads(c) * (size_t)SXE__WORK_STACK);
    if (out != NULL)
        fprintf(out, "%-16s %36zu bytes reserved; memory is touched only as it is used\n", "total",
                total);
    return total;
}

/* Raise the limit of descriptors to the hard limit. The program runs even if that fails. */
static void
raise_descriptor_limit(unsigned wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        SXE_WARN("cannot raise the limit of open files to %llu: %s",
                 (unsigned long long)limit.rlim_max, strerror(errno));
    if (limit.rlim_max < wanted)
        SXE_WARN(
            "%u sockets were registered, but the hard limit of open files is %llu (ulimit -Hn)",
            wanted, (unsigned long long)limit.rlim_max);
}

/* Without this, writing to a connection that was reset would end the process. */
static void
ignore_sigpipe(void)
{
    struct sigaction now;

    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

/* Check that two descriptors are free: libev makes an epoll and an eventfd for the default loop,
 * and aborts if it gets only the first. 0 or -errno. */
static int
check_descriptors_of_libev(void)
{
    int first = eventfd(0, EFD_CLOEXEC);
    int second = first < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
    int result = second < 0 ? -errno : 0;

    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
    return result;
}

static int
choose_loop(struct sxe__context *c)
{
    int result;

    struct sxe__context *nobody = NULL;

    c->loop = c->wanted.loop;
    if (c->loop != NULL)
        return 0;
    if (!atomic_compare_exchange_strong(&default_loop_owner, &nobody, c))
        return -EBUSY;
    result = check_descriptors_of_libev();
    if (result < 0)
        return result;
    c->loop = ev_default_loop(EVFLAG_AUTO);
    return c->loop != NULL ? 0 : -ENOMEM;
}

/* How many chunks may hold unsent output: all but one for each socket's unread bytes, or half of
 * them if there are too few chunks for that. */
static uint32_t
output_chunks_max(const struct sxe__context *c)
{
    uint32_t half = c->tables->config.chunks / 2;

    return c->tables->config.chunks - (c->number < half ? c->number : half);
}

/* The first part of sxe_init: allocate all memory. 0 or -errno. */
static int
reserve_memory(struct sxe__context *c)
{
    const struct sxe_config *config;
    double timeouts[SXE_STATES];

    c->tables = calloc(1, sizeof(*c->tables));
    if (c->tables == NULL)
        return -ENOMEM;
    c->tables->config = complete_config(c);
    config = &c->tables->config;
    for (unsigned i = 0; i < SXE_STATES; i++)
        timeouts[i] = config->timeout_ms[i] / 1000.0;
    c->orders_idle = config->timeout_ms[SXE_STATE_IDLE] > 0 || config->reap_idle;
    c->stride = stride_of_socket(c);
    c->read_memory = calloc(1, SXE__READ_FRONT + most_read_at_once(config));
    c->stages = malloc(SXE__HELD_SIZE + SXE__STAGE_SIZE);
    c->output_chunks = 0;
    c->output_chunks_max = output_chunks_max(c);
    c->chunks = sxe_chunks_new("sxe chunks", config->chunks, config->chunk_size);
    c->sockets = sxe_pool_new_with_timeouts("sxe", c->number, c->stride, SXE_STATES, timeouts,
                                            sxe__on_timeout, NULL);
    if (c->read_memory == NULL || c->stages == NULL || c->chunks == NULL || c->sockets == NULL)
        return -ENOMEM;
    c->read_buffer = c->read_memory + SXE__READ_FRONT;
    c->stage = c->stages;
    c->vector = c->tables->vectors;
    c->held_max = SXE__HELD_MAX;
    return sxe_pool_set_state_to_string(c->sockets, sxe_state_to_string);
}

/* The second part of sxe_init: open descriptors and start threads. 0 or -errno. */
static int
open_loop(void)
{
    int result = sxe__loop_open();

    if (result < 0)
        return result;
    result = sxe__work_open();
    if (result < 0)
        sxe__loop_close();
    return result;
}

static void
give_all_memory_back(struct sxe__context *c)
{
    struct sxe__context *self = c;

    sxe_pool_delete(c->sockets);
    sxe_chunks_delete(c->chunks);
    free(c->stages);
    free(c->read_memory);
    free(c->tables);
    c->tables = NULL;
    c->sockets = NULL;
    c->chunks = NULL;
    c->stages = NULL;
    c->read_memory = NULL;
    c->loop = NULL;
    atomic_compare_exchange_strong(&default_loop_owner, &self, NULL);
}

/* The reason why sxe_init must fail, or NULL. */
static const char *
find_objection(const struct sxe__context *c)
{
    if (c->sockets != NULL)
        return "already done: sxe_fini comes first";
    if (c->is_refused)
        return "sxe_configure has refused its argument";
    if (c->registered == 0)
        return "nothing was registered: call sxe_register first";
    if (c->registered > SOCKETS_MAX || c->wanted.chunk_size > CHUNK_SIZE_MAX ||
        sxe__work_threads(c) > SXE_WORK_THREADS_MAX)
        return "too much: the limits are 16777216 sockets, chunks of 1073741824 bytes and 1024 "
               "threads";
    return NULL;
}

SXE_RETURN
sxe_init(void)
{
    struct sxe__context *c = CONTEXT;
    const char *why_not = find_objection(c);
    int result;

    if (why_not != NULL) {
        SXE_ERROR("sxe_init: %s", why_not);
        return c->is_refused ? -E2BIG : -EINVAL;
    }
    sxe_hold_standard_descriptors();
    c->number = c->registered;
    result = choose_loop(c);
    if (result == 0)
        result = reserve_memory(c);
    if (result == 0)
        result = open_loop();
    if (result < 0) {
        SXE_ERROR("sxe_init: cannot open a loop for %u sockets (%zu bytes): %s", c->number,
                  sxe_plan_print(NULL),
                  result == -EBUSY ? "another thread has the default loop; set sxe_config.loop"
                                   : strerror(-result));
        give_all_memory_back(c);
        return result;
    }
    raise_descriptor_limit(c->number);
    ignore_sigpipe();
    return 0;
}

SXE_RETURN
sxe_fini(void)
{
    struct sxe__context *c = CONTEXT;

    if (c->sockets == NULL) {
        sxe__resolve_close();
        memset(c, 0, sizeof(*c));
        return -EINVAL;
    }
    sxe__dial_close();
    sxe__timers_close();
    for (unsigned id = 0; id < c->number; id++) {
        SXE *s = sxe__socket(id);

        if (sxe__state(s) == SXE_STATE_FREE)
            continue;
        sxe__socket_close(s);
        sxe__give(s);
    }
    sxe__work_close();
    sxe__resolve_close();
    sxe__loop_close();
    give_all_memory_back(c);
    memset(c, 0, sizeof(*c));
    return 0;
}

struct ev_loop *
sxe_loop(void)
{
    return CONTEXT->loop;
}
