/* SPDX-License-Identifier: MIT
 *
 * TLS of the listener, by lib-sxe-tls.
 */
#include "secure.h"

#include <errno.h>
#include <string.h>

#include "sxe-tls.h"

static struct {
    const struct httpd_options *options;
    struct sxe_tls_tickets *tickets;
    struct sxe_tls *tls;
} secure;

static const char plain_reply[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 24\r\n"
    "Connection: close\r\n\r\nThis port speaks HTTPS.\n";

bool
secure_is_wanted(const struct httpd_options *options)
{
    return options->tls.is_dev || options->tls.certificates > 0;
}

int
secure_begin(const struct httpd_options *options)
{
    if (!secure_is_wanted(options))
        return 0;
    secure.tickets = sxe_tls_tickets_new(0);
    if (secure.tickets == NULL) {
        int error = errno;

        fprintf(stderr, "sxe-httpd: cannot make keys for TLS: %s\n", strerror(error));
        return -error;
    }
    /* All workers have the same certificate. */
    return options->tls.is_dev ? secure_open(options) : 0;
}

void
secure_end(void)
{
    secure_close();
    sxe_tls_tickets_delete(secure.tickets);
    secure.tickets = NULL;
}

int
secure_open(const struct httpd_options *options)
{
    struct sxe_tls_pair pairs[HTTPD_PAIRS_MAX] = {{0}};
    struct sxe_tls_config config = {.pairs = pairs,
                                    .pair_count = options->tls.certificates,
                                    .protocols = "http/1.1",
                                    .tickets = secure.tickets,
                                    .plain_reply = plain_reply};

    if (!secure_is_wanted(options) || secure.tls != NULL)
        return 0;
    for (unsigned i = 0; i < options->tls.certificates; i++) {
        pairs[i].certificate = options->tls.certificate[i];
        pairs[i].key = options->tls.key[i];
    }
    secure.options = options;
    secure.tls = options->tls.is_dev ? sxe_tls_new_local(&config) : sxe_tls_new_server(&config);
    if (secure.tls != NULL)
        return 0;
    fprintf(stderr,
            "sxe-httpd: cannot serve TLS: %s; --tls-cert and --tls-key need a certificate and its "
            "key, in PEM\n",
            sxe_tls_problem());
    return -EINVAL;
}

bool
secure_is_open(void)
{
    return secure.tls != NULL;
}

void
secure_close(void)
{
    sxe_tls_delete(secure.tls);
    secure.tls = NULL;
}

int
secure_serve(SXE *listener)
{
    int result = secure.tls == NULL ? 0 : sxe_tls_serve(secure.tls, listener);

    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot serve TLS: %s\n", strerror(-result));
    return result;
}

void
secure_reload(void)
{
    if (secure.tls == NULL)
        return;
    if (sxe_tls_reload(secure.tls) < 0)
        SXE_WARN("cannot load the certificates again: %s; the earlier ones stay",
                 sxe_tls_problem());
    else
        SXE_INFO("the certificates were loaded again");
}

void
secure_say(FILE *out)
{
    char text[SXE_TLS_FINGERPRINT_SIZE];

    if (secure.tls != NULL && secure.options->tls.is_dev &&
        sxe_tls_local_fingerprint(secure.tls, text) > 0)
        fprintf(out, "certificate of localhost, SHA-256 %s\n", text);
}

uint32_t
secure_turn(void *user)
{
    SXE_UNUSED_PARAMETER(user);
    return sxe_tls_tickets_turn(secure.tickets);
}
