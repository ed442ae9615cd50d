/* SPDX-License-Identifier: MIT
 *
 * TLS of listeners and upstreams, with lib-sxe-tls.
 */
#include "secure.h"

#include <errno.h>
#include <string.h>

#include "config-origin.h"
#include "sxe-tls.h"

static struct {
    const struct httpd_options *options;
    struct sxe_tls_tickets *tickets;
    /* The TLS context for each demand on clients (enum httpd_clients). AS_GIVEN always has one; the
     * others have one if a place of --listen needs it. */
    struct sxe_tls *tls[HTTPD_CLIENTS_NUMBER];
    unsigned failures; /* how many times in a row reading the files again has failed */
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
    /* Make the certificate of --tls-dev here, so that all workers have the same one. */
    return options->tls.is_dev ? secure_open(options) : 0;
}

void
secure_end(void)
{
    secure_close();
    sxe_tls_tickets_delete(secure.tickets);
    secure.tickets = NULL;
}

static enum sxe_tls_verify
verify_of_options(const struct httpd_tls_options *tls, enum httpd_clients clients)
{
    static const enum sxe_tls_verify verifies[HTTPD_CLIENTS_NUMBER] = {
        [HTTPD_CLIENTS_OFF] = SXE_TLS_OFF,
        [HTTPD_CLIENTS_OPTIONAL] = SXE_TLS_OPTIONAL,
        [HTTPD_CLIENTS_REQUIRED] = SXE_TLS_REQUIRED};

    if (clients != HTTPD_CLIENTS_AS_GIVEN)
        return verifies[clients];
    if (tls->client_ca == NULL)
        return SXE_TLS_OFF;
    return tls->is_optional ? SXE_TLS_OPTIONAL : SXE_TLS_REQUIRED;
}

/* Read the files, and make the TLS context for listeners with this demand on clients. 0, or -EINVAL
 * after a message. */
static int
open_for_clients(const struct httpd_options *options, enum httpd_clients clients)
{
    struct sxe_tls_pair pairs[HTTPD_PAIRS_MAX] = {{0}};
    const enum sxe_tls_verify verify = verify_of_options(&options->tls, clients);
    struct sxe_tls_config config = {
        .pairs = pairs,
        .pair_count = options->tls.certificates,
        .protocols = "http/1.1,http/1.0",
        .profile = options->tls.is_modern ? SXE_TLS_MODERN : SXE_TLS_INTERMEDIATE,
        .authorities = verify == SXE_TLS_OFF ? NULL : options->tls.client_ca,
        .verify = verify,
        .memory_max = options->tls.memory_max,
        .tickets = secure.tickets,
        .plain_reply = plain_reply};

    if (secure.tls[clients] != NULL)
        return 0;
    for (unsigned i = 0; i < options->tls.certificates; i++) {
        pairs[i].certificate = options->tls.certificate[i];
        pairs[i].key = options->tls.key[i];
        pairs[i].staple = options->tls.staple[i];
    }
    secure.tls[clients] =
        options->tls.is_dev ? sxe_tls_new_local(&config) : sxe_tls_new_server(&config);
    if (secure.tls[clients] != NULL)
        return 0;
    fprintf(
        stderr,
        "sxe-httpd: %scannot serve TLS: %s; --tls-cert and --tls-key need a certificate and its "
        "key, in PEM\n",
        config_place_of("tls-cert"), sxe_tls_problem());
    return -EINVAL;
}

int
secure_open(const struct httpd_options *options)
{
    int result;

    if (!secure_is_wanted(options))
        return 0;
    secure.options = options;
    result = open_for_clients(options, HTTPD_CLIENTS_AS_GIVEN);
    for (unsigned i = 0; result == 0 && i < options->places_number; i++)
        result = open_for_clients(options, options->places[i].clients);
    return result;
}

bool
secure_is_open(void)
{
    return secure.tls[HTTPD_CLIENTS_AS_GIVEN] != NULL;
}

void
secure_close(void)
{
    for (unsigned i = 0; i < HTTPD_CLIENTS_NUMBER; i++) {
        sxe_tls_delete(secure.tls[i]);
        secure.tls[i] = NULL;
    }
}

int
secure_serve(SXE *listener, enum httpd_clients clients)
{
    int result = secure.tls[clients] == NULL ? 0 : sxe_tls_serve(secure.tls[clients], listener);

    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot serve TLS: %s\n", strerror(-result));
    return result;
}

static void
read_files_again(bool is_quiet)
{
    int result = 0;

    for (unsigned i = 0; result == 0 && i < HTTPD_CLIENTS_NUMBER; i++)
        result = secure.tls[i] == NULL ? 0 : sxe_tls_reload(secure.tls[i]);
    if (result == 0)
        SXE_INFO("the certificates were loaded again");
    else if (!is_quiet)
        SXE_WARN("cannot load the certificates again: %s; the earlier ones stay",
                 sxe_tls_problem());
    secure.failures = result == 0 ? 0 : secure.failures + 1;
}

void
secure_reload(void)
{
    if (secure_is_open())
        read_files_again(false);
}

void
secure_look(void)
{
    bool is_changed = false;

    for (unsigned i = 0; !is_changed && i < HTTPD_CLIENTS_NUMBER; i++)
        is_changed = secure.tls[i] != NULL && sxe_tls_is_changed(secure.tls[i]);
    if (is_changed)
        read_files_again(secure.failures != 1);
}

bool
secure_has_name(const char *name)
{
    return sxe_tls_has_name(secure.tls[HTTPD_CLIENTS_AS_GIVEN], name);
}

const char *
secure_first_name(void)
{
    return sxe_tls_first_name(secure.tls[HTTPD_CLIENTS_AS_GIVEN]);
}

const char *
secure_version(const SXE *socket)
{
    return sxe_tls_version(socket);
}

void
secure_say(FILE *out)
{
    char text[SXE_TLS_FINGERPRINT_SIZE];

    if (secure_is_open() && secure.options->tls.is_dev &&
        sxe_tls_local_fingerprint(secure.tls[HTTPD_CLIENTS_AS_GIVEN], text) > 0)
        fprintf(out, "certificate of localhost, SHA-256 %s\n", text);
}

struct sxe_tls *
secure_open_upstream(const char *where, const struct upstream_tls *settings,
                     struct sxe_http_upstream_config *config)
{
    const struct sxe_tls_pair pair = {.certificate = settings->certificate, .key = settings->key};
    const struct sxe_tls_config client = {.pairs = &pair,
                                          .pair_count = settings->certificate != NULL,
                                          .protocols = "http/1.1",
                                          .authorities = settings->ca,
                                          .verify = settings->is_insecure ? SXE_TLS_OFF
                                                                          : SXE_TLS_REQUIRED};

    config->tls = sxe_tls_new_client(&client);
    config->use_tls = sxe_tls_use;
    config->tls_failure = sxe_tls_failure;
    if (config->tls == NULL)
        fprintf(stderr, "sxe-httpd: %scannot speak TLS with an upstream: %s\n", where,
                sxe_tls_problem());
    return config->tls;
}

void
secure_close_upstream(struct sxe_tls *tls)
{
    sxe_tls_delete(tls);
}

uint32_t
secure_turn(void *user)
{
    SXE_UNUSED_PARAMETER(user);
    return sxe_tls_tickets_turn(secure.tickets);
}
