/* SPDX-License-Identifier: MIT
 *
 * The functions that store the values of options of TLS, and what is checked at the end.
 */
#include "options-tls.h"

#include "command-line.h"
#include "options-check.h"
#include "options-table.h"

/* One more file; there is a place for it. */
static bool
add_file(const char *files[], unsigned *number, const char *what)
{
    if (*number == HTTPD_PAIRS_MAX || *optarg == '\0')
        return httpd_wrong(what, "the path of a file in PEM; at most 8 of them");
    files[(*number)++] = optarg;
    return true;
}

bool
httpd_take_tls(struct httpd_options *options, int val)
{
    struct httpd_tls_options *tls = &options->tls;

    if (val == TLS_CERT)
        return add_file(tls->certificate, &tls->certificates, "a certificate (--tls-cert)");
    if (val == TLS_KEY)
        return add_file(tls->key, &tls->keys, "a key (--tls-key)");
    tls->is_dev = true;
    return true;
}

const char *
httpd_tls_missing(const struct httpd_options *options)
{
    const struct httpd_tls_options *tls = &options->tls;

    if (tls->certificates != tls->keys)
        return "each --tls-cert needs its --tls-key: give as many of both, in the same order";
    if (tls->is_dev && tls->certificates > 0)
        return "--tls-dev makes a certificate of its own: leave out --tls-cert and --tls-key";
    if ((tls->is_dev || tls->certificates > 0) && options->http.proxies != NULL)
        return "--proxy-from does not go with TLS: have the proxy speak plain HTTP to sxe-httpd";
    return NULL;
}
