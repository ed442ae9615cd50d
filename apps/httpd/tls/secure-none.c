/* SPDX-License-Identifier: MIT
 *
 * Stands in for secure.c if sxe-httpd was built without OpenSSL.
 */
#include "secure.h"

#include <errno.h>

bool
secure_is_wanted(const struct httpd_options *options)
{
    return options->tls.is_dev || options->tls.certificates > 0;
}

int
secure_begin(const struct httpd_options *options)
{
    return secure_open(options);
}

void
secure_end(void)
{
}

int
secure_open(const struct httpd_options *options)
{
    if (!secure_is_wanted(options))
        return 0;
    fprintf(stderr, "sxe-httpd: cannot serve TLS: this sxe-httpd was built without OpenSSL 3; "
                    "install libssl-dev and build it again\n");
    return -ENOTSUP;
}

bool
secure_is_open(void)
{
    return false;
}

void
secure_close(void)
{
}

int
secure_serve(SXE *listener, enum httpd_clients clients)
{
    SXE_UNUSED_PARAMETER(listener);
    SXE_UNUSED_PARAMETER(clients);
    return 0;
}

void
secure_reload(void)
{
}

void
secure_look(void)
{
}

bool
secure_has_name(const char *name)
{
    SXE_UNUSED_PARAMETER(name);
    return false;
}

const char *
secure_first_name(void)
{
    return NULL;
}

const char *
secure_version(const SXE *socket)
{
    SXE_UNUSED_PARAMETER(socket);
    return "";
}

void
secure_say(FILE *out)
{
    SXE_UNUSED_PARAMETER(out);
}

struct sxe_tls *
secure_open_upstream(const char *where, const struct upstream_tls *settings,
                     struct sxe_http_upstream_config *config)
{
    SXE_UNUSED_PARAMETER(settings);
    SXE_UNUSED_PARAMETER(config);
    fprintf(stderr,
            "sxe-httpd: %scannot speak TLS with an upstream: this sxe-httpd was built without "
            "OpenSSL 3; install libssl-dev and build it again\n",
            where);
    return NULL;
}

void
secure_close_upstream(struct sxe_tls *tls)
{
    SXE_UNUSED_PARAMETER(tls);
}

uint32_t
secure_turn(void *user)
{
    SXE_UNUSED_PARAMETER(user);
    return 1;
}
