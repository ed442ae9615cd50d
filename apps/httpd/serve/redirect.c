/* SPDX-License-Identifier: MIT
 *
 * Redirects each request at the plain HTTP port to the same path at the HTTPS port.
 */
#include "redirect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "secure.h"

#define CONNECTIONS_MOST 1000u
#define NAME_SIZE        256u
#define PREFIX_ROOM      320u /* room for "https://", a name and a port */
/* the longest target: a target is no longer than a head, see HEAD_MOST in options.c */
#define TARGET_MOST 61440u

static struct {
    struct sxe_http *http; /* the second server; NULL: --http-redirect was not given */
    unsigned short https_port;
} redirect;

/* Copy the host of the authority, without its port, to name. False: it has bytes that are not
 * allowed in a host. "a/b.example", for instance, would match a certificate for "*.example", but a
 * Location with it would lead to the host "a". */
static bool
copy_name(struct sxe_span authority, char name[NAME_SIZE])
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t length;

    if (authority.base == NULL || authority.length >= NAME_SIZE)
        return false;
    memcpy(name, authority.base, authority.length);
    name[authority.length] = '\0';
    length = strspn(name, allowed);
    if (length == 0 || (name[length] != '\0' && name[length] != ':'))
        return false;
    name[length] = '\0';
    return true;
}

/* The host that the client asked for, if a certificate has this name; otherwise the first name of
 * the first certificate. NULL: the certificates have no name. */
static const char *
host_of_request(const struct sxe_http_request *request, char name[NAME_SIZE])
{
    return copy_name(sxe_http_authority(request), name) && secure_has_name(name)
               ? name
               : secure_first_name();
}

static enum sxe_http_verdict
redirect_request(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static char location[TARGET_MOST + PREFIX_ROOM];
    char name[NAME_SIZE];
    char port[8] = "";
    const char *host = host_of_request(request, name);
    bool has_path = request->path.length > 0 && *request->path.base == '/';
    bool has_query = request->query.base != NULL;

    sxe_http_close(response);
    if (host == NULL)
        return sxe_http_reply_status(response, 400);
    if (redirect.https_port != 443)
        snprintf(port, sizeof(port), ":%u", redirect.https_port);
    snprintf(location, sizeof(location), "https://%s%s%.*s%s%.*s", host, port,
             has_path ? (int)request->path.length : 1, has_path ? request->path.base : "/",
             has_query ? "?" : "", has_query ? (int)request->query.length : 0,
             has_query ? request->query.base : "");
    (void)sxe_http_add_field(response, "Location", location);
    return sxe_http_reply_status(response, 308);
}

int
redirect_plan(const struct httpd_options *options,
              void (*on_reply)(struct sxe_http_request *request,
                               const struct sxe_http_summary *summary))
{
    struct sxe_http_config config = {.handler = redirect_request,
                                     .stream = true,
                                     .connections = options->http.connections,
                                     .address_max = options->http.address_max,
                                     .head = options->http.head,
                                     .fields_max = TARGET_MOST + 1024,
                                     .head_timeout_ms = options->http.head_timeout_ms,
                                     .idle_timeout_ms = options->http.idle_timeout_ms,
                                     .trusted = options->http.trusted,
                                     .request_id = options->http.request_id,
                                     .trace = options->http.trace,
                                     .on_reply = on_reply};

    redirect.http = NULL;
    if (!options->tls.is_redirecting)
        return 0;
    if (config.connections == 0 || config.connections > CONNECTIONS_MOST)
        config.connections = CONNECTIONS_MOST;
    redirect.http = sxe_http_new(&config);
    return redirect.http == NULL ? -errno : 0;
}

void
redirect_delete(void)
{
    sxe_http_delete(redirect.http);
    redirect.http = NULL;
}

int
redirect_begin(const struct httpd_options *options, const char *ip, unsigned short https_port)
{
    int result;

    if (redirect.http == NULL)
        return 0;
    redirect.https_port = https_port;
    result = sxe_http_listen(redirect.http, ip, options->tls.redirect_port);
    return result < 0 ? result : sxe_http_port(redirect.http);
}

void
redirect_stop(void)
{
    if (redirect.http != NULL)
        sxe_http_stop(redirect.http, NULL);
}
