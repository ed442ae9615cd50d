/* SPDX-License-Identifier: MIT
 *
 * Makes and deletes a thread's connections, handles their timeouts, and answers what programs ask
 * about them.
 */
#include "sxe-tls-private.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_HANDSHAKE_MS 10000u
#define DEFAULT_HANDSHAKES   16u
#define QUIET_AFTER_S        1.0

/* ---- Timeouts ---- */

static void
on_timeout(void *array, unsigned id, void *user)
{
    struct sxe__tls_connection *c = (struct sxe__tls_connection *)array + id;

    SXE_UNUSED_PARAMETER(user);
    if (sxe_pool_get_state(array, id) == SXE__TLS_SHAKING) {
        SXE_DEBUG_ID(id, "closing: %s takes too long", "its handshake");
        sxe_pool_touch(array, id);
        sxe_io_fail(sxe_io_socket(id), ETIMEDOUT);
        return;
    }
    if (c->is_used || !sxe__tls_rest(c))
        sxe_pool_touch(array, id);
    c->is_used = false;
}

/* ---- The loop ---- */

static void
give_back(struct sxe__tls_loop *loop)
{
    sxe_pool_delete(loop->connections);
    BIO_free(loop->bio);
    free(loop->in);
    free(loop->out);
    free(loop->plain);
    free(loop);
}

static struct sxe__tls_loop *
loop_new(unsigned number, double handshake_s)
{
    double timeouts[SXE__TLS_STATES] = {
        [SXE__TLS_SHAKING] = handshake_s, [SXE__TLS_ACTIVE] = QUIET_AFTER_S};
    struct sxe__tls_loop *loop = calloc(1, sizeof(*loop));

    if (loop == NULL)
        return NULL;
    loop->number = number;
    loop->in = malloc(SXE__TLS_IN_SIZE);
    loop->out = malloc(SXE__TLS_OUT_SIZE);
    loop->plain = malloc(SXE__TLS_BATCH);
    loop->bio = sxe__tls_bio_new();
    loop->connections =
        sxe_pool_new_with_timeouts("sxe-tls", number, sizeof(struct sxe__tls_connection),
                                   SXE__TLS_STATES, timeouts, on_timeout, NULL);
    if (loop->in != NULL && loop->out != NULL && loop->plain != NULL && loop->bio != NULL &&
        loop->connections != NULL)
        return loop;
    give_back(loop);
    return NULL;
}

int
sxe__tls_open(struct sxe_tls *tls)
{
    uint32_t ms = tls->config.handshake_timeout_ms;
    uint32_t steps = tls->config.handshakes_max;
    double handshake_s = (ms == 0 ? DEFAULT_HANDSHAKE_MS : ms) / 1000.0;
    struct sxe__tls_loop *old = sxe__tls_loop;

    if (sxe_io_sockets() == 0)
        return -EINVAL;
    if (old == NULL || old->number != sxe_io_sockets()) { /* sxe_fini was called in between */
        sxe__tls_loop = loop_new(sxe_io_sockets(), handshake_s);
        if (sxe__tls_loop == NULL) {
            sxe__tls_loop = old;
            return -ENOMEM;
        }
        sxe__tls_loop->users = old == NULL ? 0 : old->users;
        if (old != NULL)
            give_back(old);
    }
    sxe__tls_loop->steps_max = steps == 0 ? DEFAULT_HANDSHAKES : steps;
    sxe_pool_set_state_timeout(sxe__tls_loop->connections, SXE__TLS_SHAKING, handshake_s);
    sxe__tls_loop->users += !tls->is_user;
    tls->is_user = true;
    return 0;
}

/* The loop gives a closed socket back at the end of its turn, when tls does not exist any more: end
 * its TLS now. */
static void
end_closed(const struct sxe_tls *tls)
{
    const unsigned number = sxe_io_sockets() == sxe__tls_loop->number ? sxe__tls_loop->number : 0;

    for (unsigned id = 0; id < number; id++) {
        SXE *s = sxe_io_socket(id);

        if (s->io == &sxe__tls_io && sxe__tls_of(s)->tls == tls &&
            sxe_get_state(s) == SXE_STATE_CLOSED) {
            s->io->close(s);
            sxe_io_set(s, sxe_io_of_sockets());
        }
    }
}

void
sxe__tls_close(struct sxe_tls *tls)
{
    if (!tls->is_user)
        return;
    end_closed(tls);
    if (--sxe__tls_loop->users > 0)
        return;
    give_back(sxe__tls_loop);
    sxe__tls_loop = NULL;
}

SXE_RETURN
sxe_tls_serve(struct sxe_tls *tls, SXE *listener)
{
    int result = tls->is_client ? -EINVAL : sxe__tls_open(tls);

    if (result == 0 && sxe_get_state(listener) > SXE_STATE_LISTENING)
        result = -EINVAL;
    if (result < 0)
        return result;
    sxe__tls_of(listener)->tls = tls;
    sxe_io_set(listener, &sxe__tls_io);
    return 0;
}

/* ---- Questions ---- */

/* The connection's SSL. NULL: it is not TLS, or its handshake is not done. Before that, an SSL that
 * offers a session already reports the facts of that session. */
static SSL *
ssl_when_secure(const SXE *s)
{
    return s->io == &sxe__tls_io &&
                   sxe_pool_get_state(sxe__tls_loop->connections, s->id) >= SXE__TLS_ACTIVE
               ? sxe__tls_of(s)->ssl
               : NULL;
}

bool
sxe_tls_is_secure(const SXE *this)
{
    return ssl_when_secure(this) != NULL;
}

const char *
sxe_tls_version(const SXE *this)
{
    return ssl_when_secure(this) == NULL ? "" : SSL_get_version(ssl_when_secure(this));
}

const char *
sxe_tls_cipher(const SXE *this)
{
    return ssl_when_secure(this) == NULL ? "" : SSL_get_cipher_name(ssl_when_secure(this));
}

const char *
sxe_tls_name(const SXE *this)
{
    SSL *ssl = ssl_when_secure(this);
    const char *name = ssl == NULL ? NULL : SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    return name == NULL ? "" : name;
}

bool
sxe_tls_is_resumed(const SXE *this)
{
    return ssl_when_secure(this) != NULL && SSL_session_reused(ssl_when_secure(this)) == 1;
}

bool
sxe_tls_has_offered(const SXE *this)
{
    return ssl_when_secure(this) != NULL && sxe__tls_of(this)->has_offered;
}

unsigned
sxe_tls_protocol(const SXE *this, const char **protocol)
{
    SSL *ssl = ssl_when_secure(this);
    const unsigned char *chosen = NULL;
    unsigned length = 0;

    if (ssl != NULL)
        SSL_get0_alpn_selected(ssl, &chosen, &length);
    *protocol = (const char *)chosen;
    return length;
}

/* Why a handshake ended without a reason that OpenSSL knows. */
static const char *
end_of_handshake(int error)
{
    return error == ECONNRESET  ? "the peer reset the connection during the handshake"
           : error == ETIMEDOUT ? "the handshake took too long"
                                : "";
}

const char *
sxe_tls_failure(const SXE *this)
{
    if (this->io != &sxe__tls_io)
        return "";
    if (sxe__tls_of(this)->failure != NULL)
        return sxe__tls_of(this)->failure;
    return this->io_shakes ? end_of_handshake(sxe_error(this)) : "";
}

bool
sxe_tls_has_ended(const SXE *this)
{
    return ssl_when_secure(this) != NULL && !sxe__tls_of(this)->is_cut &&
           (SSL_get_shutdown(ssl_when_secure(this)) & SSL_RECEIVED_SHUTDOWN) != 0;
}
