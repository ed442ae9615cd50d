/* SPDX-License-Identifier: MIT
 *
 * Holds what all connections of a thread share: their states, the memory that they take, and the
 * counts. The other files call it; it calls none of them.
 */
#include "sxe-tls-private.h"

#include <stdlib.h>

#include "sxe-sized-internal.h"

/* The fewest bytes that a record has in addition to its plain text: RFC 8446, 5.2, and RFC 7905. */
#define OVERHEAD_1_3 22
#define OVERHEAD_1_2 21

struct sxe_log_control sxe__tls_log = SXE_LOG_CONTROL_INIT("sxe-tls");

_Thread_local struct sxe__tls_loop *sxe__tls_loop __attribute__((visibility("hidden")));

static unsigned
in_state(enum sxe__tls_state state)
{
    return sxe_pool_get_count(sxe__tls_loop->connections, state);
}

void
sxe__tls_move(struct sxe__tls_connection *c, enum sxe__tls_state to)
{
    struct sxe__tls_connection *pool = sxe__tls_loop->connections;
    unsigned id = (unsigned)(c - pool);

    sxe_pool_move(pool, id, sxe_pool_get_state(pool, id), to);
}

static size_t
memory_of_tls(void)
{
    return sxe__tls_loop->kept + in_state(SXE__TLS_SHAKING) * (size_t)SXE__TLS_BYTES_SHAKING +
           in_state(SXE__TLS_ACTIVE) * (size_t)SXE__TLS_BYTES_ACTIVE +
           in_state(SXE__TLS_QUIET) * (size_t)SXE__TLS_BYTES_QUIET;
}

/* The connection for which the caller asks is in SHAKING already, so its memory is counted. */
bool
sxe__tls_has_memory(const struct sxe_tls *tls)
{
    return tls->config.memory_max == 0 || memory_of_tls() <= tls->config.memory_max;
}

bool
sxe__tls_may_shake(struct sxe__tls_connection *c)
{
    struct sxe__tls_loop *loop = sxe__tls_loop;

    if (loop->turn != sxe_time_turn_ns()) {
        loop->turn = sxe_time_turn_ns();
        loop->reserved = loop->refused;
        loop->refused = 0;
        loop->steps = 0;
    }
    if (c->was_refused && loop->reserved > 0)
        loop->reserved--;
    c->was_refused = loop->steps + (c->was_refused ? 0 : loop->reserved) >= loop->steps_max;
    if (c->was_refused)
        loop->refused++;
    else
        loop->steps++;
    return !c->was_refused;
}

bool
sxe__tls_rest(struct sxe__tls_connection *c)
{
    SXE *s = sxe_io_socket((unsigned)(c - sxe__tls_loop->connections));

    c->is_quiet = sxe_get_state(s) == SXE_STATE_IDLE && c->header_length == 0 && !c->is_pending &&
                  c->kept == NULL && SSL_free_buffers(c->ssl) == 1;
    if (c->is_quiet)
        sxe__tls_move(c, SXE__TLS_QUIET);
    return c->is_quiet;
}

/* A connection becomes ACTIVE. If there are too many, the one that has been ACTIVE longest
 * rests, if it can. */
static void
activate_connection(struct sxe__tls_connection *c)
{
    struct sxe__tls_connection *pool = sxe__tls_loop->connections;
    unsigned oldest;

    sxe__tls_move(c, SXE__TLS_ACTIVE);
    if (in_state(SXE__TLS_ACTIVE) <= SXE__TLS_ACTIVE_MAX)
        return;
    oldest = sxe_pool_get_oldest(pool, SXE__TLS_ACTIVE);
    if (!sxe__tls_rest(&pool[oldest]))
        sxe_pool_touch(pool, oldest);
}

void
sxe__tls_wake(struct sxe__tls_connection *c)
{
    c->is_used = true;
    if (SXE_UNLIKELY(c->is_quiet)) {
        c->is_quiet = false;
        activate_connection(c);
    }
}

void
sxe__tls_shaken(SXE *s, struct sxe__tls_connection *c)
{
    s->io_shakes = false;
    c->records = 0;
    c->overhead = SSL_version(c->ssl) == TLS1_3_VERSION ? OVERHEAD_1_3 : OVERHEAD_1_2;
    sxe__tls_loop->counts.handshakes++;
    sxe__tls_loop->counts.resumed += SSL_session_reused(c->ssl) == 1;
    activate_connection(c);
    SXE_DEBUG_ID(s->id, "%s with %s%s", SSL_get_version(c->ssl), SSL_get_cipher_name(c->ssl),
                 SSL_session_reused(c->ssl) ? ", resumed" : "");
    sxe_io_write_again(s);
    if (c->on_ready != NULL)
        c->on_ready(s);
}

void
sxe__tls_forget(struct sxe__tls_connection *c)
{
    struct sxe_tls *tls = c->tls;
    unsigned id = (unsigned)(c - sxe__tls_loop->connections);

    if (sxe_pool_get_state(sxe__tls_loop->connections, id) == SXE__TLS_SHAKING)
        sxe__tls_loop->counts.failed++;
    SSL_free(c->ssl);
    free(c->host);
    free(c->failure);
    free(c->names);
    ERR_clear_error();
    *c = (struct sxe__tls_connection){.tls = tls};
    sxe__tls_move(c, SXE__TLS_FREE);
}

void
sxe_tls_count_sized(struct sxe_tls_counts *counts, size_t size)
{
    struct sxe_tls_counts own = {0};

    if (sxe__tls_loop != NULL) {
        own = sxe__tls_loop->counts;
        own.shaking = in_state(SXE__TLS_SHAKING);
        own.active = in_state(SXE__TLS_ACTIVE);
        own.quiet = in_state(SXE__TLS_QUIET);
        own.memory = memory_of_tls();
    }
    sxe__sized_give(counts, size, &own, sizeof(own));
}

bool
sxe__tls_needs_peer_end(const SXE *s, const struct sxe__tls_connection *c)
{
    return c->is_client && c->result == 0 && SSL_is_init_finished(c->ssl) &&
           SSL_version(c->ssl) == TLS1_3_VERSION && (c->end_sent || sxe_io_unacknowledged(s) > 0);
}
