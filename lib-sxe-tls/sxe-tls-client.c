/* SPDX-License-Identifier: MIT
 *
 * Holds what only a client has: the host that it expects, and sessions to be resumed.
 *
 * A session was verified when it was made, and a resumed handshake shows no certificate. So a
 * session is offered only to the host and under the configuration with which it was made.
 */
#include "sxe-tls-private.h"

#include <errno.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sessions ---- */

static void
remove_session(struct sxe_tls *tls, uint32_t at)
{
    struct sxe__tls_session *first = tls->sessions + at;

    SSL_SESSION_free(first->session);
    free(first->host);
    memmove(first, first + 1, (--tls->session_count - at) * sizeof(*first));
}

void
sxe__tls_drop_sessions(struct sxe_tls *tls)
{
    while (tls->session_count > 0)
        remove_session(tls, tls->session_count - 1);
}

/* OpenSSL calls this function when a server has sent a ticket. 1: we keep the session, and free
 * it. */
static int
on_session(SSL *ssl, SSL_SESSION *session)
{
    const struct sxe__tls_connection *c = sxe__tls_loop->current;
    struct sxe_tls *tls = c->tls;
    char *host;

    /* Keep no session of a connection that was made before the files were last read. */
    if (SSL_get_SSL_CTX(ssl) != tls->store->sites[0].context)
        return 0;
    host = strdup(c->host);
    if (host == NULL)
        return 0;
    if (tls->session_count == tls->config.sessions_max)
        remove_session(tls, 0);
    tls->sessions[tls->session_count++] = (struct sxe__tls_session){host, session};
    return 1;
}

void
sxe__tls_keep_sessions(SSL_CTX *context)
{
    SSL_CTX_set_session_cache_mode(context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(context, on_session);
}

/* Offer the youngest session of this host, unless the server's certificate has expired since the
 * session began. A ticket of TLS 1.3 is used once (RFC 8446, C.4). False: no memory. */
static bool
offer_session(struct sxe_tls *tls, SSL *ssl, const char *host, bool *has_offered)
{
    for (uint32_t at = tls->session_count; at-- > 0;) {
        SSL_SESSION *session = tls->sessions[at].session;
        bool is_set;

        if (strcmp(tls->sessions[at].host, host) != 0)
            continue;
        if (sxe__tls_session_is_stale(session)) {
            remove_session(tls, at);
            continue;
        }
        is_set = SSL_set_session(ssl, session) == 1;
        if (SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION)
            remove_session(tls, at);
        *has_offered = is_set;
        return is_set;
    }
    return true;
}

/* ---- Hosts ---- */

/* Demand that the server's certificate has this name or address. A name is also sent, so that the
 * server can choose its certificate (RFC 6066, 3); an address is not. The certificate's subject
 * does not count as a name (RFC 9525, 6.3). */
static bool
expect_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* Copy a host name without a final dot. NULL: no memory. */
static char *
copy_host(const char *host)
{
    size_t length = strlen(host);
    char *copy = strdup(host);

    if (copy != NULL && length > 1 && copy[length - 1] == '.')
        copy[length - 1] = '\0';
    return copy;
}

/* Prepare a socket to speak TLS with a host: 0, -EINVAL or -ENOMEM. */
static int
begin_client(struct sxe_tls *tls, SXE *s, const char *host)
{
    struct sxe__tls_connection *c;
    bool has_offered = false;
    char *name;
    SSL *ssl;

    if (host == NULL || *host == '\0' || !tls->is_client)
        return -EINVAL;
    name = copy_host(host);
    ssl = name == NULL ? NULL : sxe__tls_ssl(tls);
    if (ssl == NULL || !expect_host(ssl, name) || !offer_session(tls, ssl, name, &has_offered)) {
        SSL_free(ssl);
        free(name);
        ERR_clear_error();
        return -ENOMEM;
    }
    c = sxe__tls_of(s);
    SSL_free(c->ssl);
    free(c->host);
    *c = (struct sxe__tls_connection){.tls = tls, .ssl = ssl, .host = name, .is_client = true};
    c->has_offered = has_offered;
    sxe_io_set(s, &sxe__tls_io);
    return 0;
}

SXE_RETURN
sxe_tls_use(struct sxe_tls *tls, SXE *this, const char *host)
{
    int result = sxe__tls_open(tls);

    if (result == 0 && sxe_get_state(this) != SXE_STATE_NEW)
        result = -EINVAL;
    return result < 0 ? result : begin_client(tls, this, host);
}

/* Bytes that the peer sent before the handshake must not be taken for bytes that came over TLS. */
SXE_RETURN
sxe_tls_start(struct sxe_tls *tls, SXE *this, const char *host)
{
    const enum sxe_state state = sxe_get_state(this);
    int result = sxe__tls_open(tls);

    if (result == 0 &&
        (state < SXE_STATE_IDLE || state >= SXE_STATE_CLOSING || this->io != sxe_io_of_sockets()))
        result = -EINVAL;
    if (result == 0 && (SXE_BUF_USED(this) > 0 || sxe_io_has_output(this)))
        result = -EBUSY;
    if (result == 0)
        result = begin_client(tls, this, host);
    if (result == 0)
        result = this->io->start(this, NULL);
    if (result == 0)
        sxe_io_write_again(this);
    return result;
}

void
sxe_tls_on_ready(SXE *this, void (*on_ready)(SXE *socket))
{
    sxe__tls_of(this)->on_ready = on_ready;
}
