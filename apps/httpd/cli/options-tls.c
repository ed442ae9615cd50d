/* SPDX-License-Identifier: MIT
 *
 * Stores the values of options of TLS, and checks them together at the end.
 */
#include "options-tls.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command-line.h"
#include "config-origin.h"
#include "config-sites.h"
#include "options-check.h"
#include "options-table.h"

#define MEMORY_LEAST (1024ul * 1024)
#define HSTS_MOST_MS (3650ul * 24 * 60 * 60 * 1000)

/* Add optarg to the list of files. False after a message: optarg is empty, or there are 8 files
 * already. */
static bool
add_tls_file(const char *files[], unsigned *number, const char *what)
{
    if (*number == HTTPD_PAIRS_MAX || *optarg == '\0')
        return httpd_wrong(what, "the path of a file in PEM; at most 8 of them");
    files[(*number)++] = optarg;
    return true;
}

/* Add optarg to the OCSP replies. The nth such option belongs to the nth certificate. If optarg is
 * empty, this certificate has none. */
static bool
add_staple(struct httpd_tls_options *tls)
{
    if (tls->staples == HTTPD_PAIRS_MAX)
        return httpd_wrong("an OCSP reply (--tls-staple)",
                           "the path of a file in DER, or empty for none; at most 8 of them");
    tls->staple[tls->staples++] = *optarg == '\0' ? NULL : optarg;
    return true;
}

static bool
set_client_option(struct httpd_tls_options *tls)
{
    tls->is_client_given = true;
    tls->is_optional = strcmp(optarg, "optional") == 0;
    return tls->is_optional || strcmp(optarg, "required") == 0 ||
           httpd_wrong("the certificates of clients (--tls-client)", "optional or required");
}

static bool
set_proxy_tls_name(struct upstream_tls *tls)
{
    tls->name = optarg;
    return upstream_is_tls_name(optarg) ||
           httpd_wrong("the name of https upstreams (--proxy-tls-name)", "a name or an address");
}

static bool
set_profile(struct httpd_tls_options *tls)
{
    tls->is_profile_given = true;
    tls->is_modern = strcmp(optarg, "modern") == 0;
    return tls->is_modern || strcmp(optarg, "intermediate") == 0 ||
           httpd_wrong("the profile (--tls-profile)", "intermediate or modern");
}

static bool
set_redirect(struct httpd_tls_options *tls)
{
    static char ip[INET6_ADDRSTRLEN];

    tls->is_redirecting = true;
    tls->redirect_ip = ip;
    return httpd_read_place(optarg, ip, &tls->redirect_port) ||
           httpd_wrong("the port of plain HTTP (--http-redirect)", "a port, or IP:PORT");
}

bool
httpd_take_tls(struct httpd_options *options, int val)
{
    struct httpd_tls_options *tls = &options->tls;

    switch (val) {
    case TLS_CERT:
        return add_tls_file(tls->certificate, &tls->certificates, "a certificate (--tls-cert)");
    case TLS_KEY:
        return add_tls_file(tls->key, &tls->keys, "a key (--tls-key)");
    case TLS_STAPLE:
        return add_staple(tls);
    case TLS_CLIENT_CA:
        tls->client_ca = optarg;
        return true;
    case TLS_CLIENT:
        return set_client_option(tls);
    case TLS_PROFILE:
        return set_profile(tls);
    case PROXY_TLS_CA:
        options->proxy_tls.ca = optarg;
        return true;
    case PROXY_TLS_NAME:
        return set_proxy_tls_name(&options->proxy_tls);
    case PROXY_TLS_INSECURE:
        options->proxy_tls.is_insecure = true;
        return true;
    case PROXY_TLS_CERT:
        options->proxy_tls.certificate = optarg;
        return true;
    case PROXY_TLS_KEY:
        options->proxy_tls.key = optarg;
        return true;
    case TLS_MEMORY:
        return command_line_size(&httpd_line, "the memory for TLS (--tls-memory)", MEMORY_LEAST,
                                 (unsigned long)SIZE_MAX / 2, &tls->memory_max);
    case HTTP_REDIRECT:
        return set_redirect(tls);
    case HSTS:
        tls->is_hsts_given = true;
        return command_line_duration(&httpd_line, "the time of HTTPS only (--hsts)", 0,
                                     HSTS_MOST_MS, &tls->hsts_ms);
    default:
        tls->is_dev = true;
        return true;
    }
}

void
httpd_settle_redirect(struct httpd_options *options)
{
    if (options->tls.is_redirecting && *options->tls.redirect_ip == '\0')
        options->tls.redirect_ip = options->ip;
}

/* Make the value of the field Strict-Transport-Security (RFC 6797, 6.1), and add the field. */
bool
httpd_add_hsts(struct httpd_options *options)
{
    size_t used = strlen(options->fields);
    size_t room = sizeof(options->fields) - used;
    int n;

    if (!options->tls.is_hsts_given)
        return true;
    n = snprintf(options->fields + used, room, "Strict-Transport-Security: max-age=%lu\r\n",
                 options->tls.hsts_ms / 1000);
    if ((size_t)n >= room) {
        fprintf(stderr,
                "sxe-httpd: %sno room for the field of --hsts: all --header together have 4 KiB. "
                "Try --help.\n",
                config_place_in("--hsts --header"));
        return false;
    }
    options->http.fields = options->fields;
    return true;
}

/* Whether an option was given that needs a certificate. */
static bool
has_lone_option(const struct httpd_tls_options *tls)
{
    return tls->client_ca != NULL || tls->is_client_given || tls->is_profile_given ||
           tls->memory_max > 0 || tls->is_hsts_given || tls->staples > 0 || tls->is_redirecting;
}

/* Whether TLS was explicitly asked for at a place of --listen. */
static bool
has_place_with_tls(const struct httpd_options *options)
{
    unsigned i = 0;

    while (i < options->places_number && !options->places[i].wants_tls)
        i++;
    return i < options->places_number;
}

/* Whether a place of --listen says whether its clients are asked for certificates. */
static bool
has_place_with_clients(const struct httpd_options *options)
{
    unsigned i = 0;

    while (i < options->places_number && options->places[i].clients == HTTPD_CLIENTS_AS_GIVEN)
        i++;
    return i < options->places_number;
}

static bool
has_https_upstream(const struct httpd_options *options)
{
    const struct upstream *upstream =
        options->config.sites == NULL ? NULL : options->config.sites->upstreams;

    for (unsigned i = 0; i < options->passes_number; i++) {
        if (options->passes[i].upstream.is_tls)
            return true;
    }
    while (upstream != NULL && !upstream->is_tls)
        upstream = upstream->next;
    return upstream != NULL;
}

const char *
httpd_tls_missing(const struct httpd_options *options)
{
    const struct httpd_tls_options *tls = &options->tls;
    const struct upstream_tls *proxy_tls = &options->proxy_tls;

    if (tls->certificates != tls->keys)
        return "each --tls-cert needs its --tls-key: give as many of both, in the same order";
    if (tls->is_dev && tls->certificates > 0)
        return "--tls-dev makes a certificate of its own: leave out --tls-cert and --tls-key";
    if (tls->staples > tls->certificates)
        return "each --tls-staple belongs to a --tls-cert: give at most as many, in the same order";
    if (!tls->is_dev && tls->certificates == 0 && has_lone_option(tls))
        return "--hsts, --http-redirect, --tls-client, --tls-client-ca, --tls-memory, "
               "--tls-profile "
               "and --tls-staple need a certificate: add --tls-cert and --tls-key, or --tls-dev";
    if ((proxy_tls->certificate == NULL) != (proxy_tls->key == NULL))
        return "--proxy-tls-cert and --proxy-tls-key need each other: give a certificate and its "
               "key";
    if ((proxy_tls->ca != NULL || proxy_tls->name != NULL || proxy_tls->is_insecure ||
         proxy_tls->key != NULL) &&
        !has_https_upstream(options))
        return "--proxy-tls-ca, --proxy-tls-name, --proxy-tls-insecure, --proxy-tls-cert and "
               "--proxy-tls-key are for upstreams with TLS: add --proxy PATH=https://HOST";
    if (!tls->is_dev && tls->certificates == 0 && has_place_with_tls(options))
        return "tls and client of --listen need a certificate: add --tls-cert and --tls-key, or "
               "--tls-dev";
    if (tls->client_ca == NULL && has_place_with_clients(options))
        return "client of --listen needs the authorities of clients: add --tls-client-ca FILE";
    if (tls->is_dev && has_place_with_clients(options))
        return "client of --listen does not go with --tls-dev: give --tls-cert and --tls-key";
    if (tls->is_client_given && tls->client_ca == NULL)
        return "--tls-client needs the authorities of clients: add --tls-client-ca FILE";
    if ((tls->is_dev || tls->certificates > 0) && options->http.proxies != NULL)
        return "--proxy-from does not go with TLS: have the proxy speak plain HTTP to sxe-httpd";
    return NULL;
}
