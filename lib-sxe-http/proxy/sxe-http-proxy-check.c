/* SPDX-License-Identifier: MIT
 *
 * What: checks what a program hands in: how a route changes requests, and the numbers of an
 * upstream. It uses no sockets.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-http-uri.h"
#include "sxe-sized-internal.h"

enum { CONNECTIONS_MOST = 65536, FIELDS_MOST = 255, NAME_MOST = 255 };

/* ---- Routes ---- */

static bool
is_proxy_path(const char *path)
{
    static const char bytes[] = "-._~%!$&'()*+,;=:@/0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const size_t length = strlen(path);
    char room[SXE_HTTP_PROXY_PATH_MAX];
    struct sxe_span normal;

    return length <= sizeof(room) && strspn(path, bytes) == length &&
           sxe_http_normalise_path((struct sxe_span){path, length}, room, sizeof(room), &normal) ==
               0 &&
           normal.length == length && memcmp(normal.base, path, length) == 0;
}

static bool
is_length_of_name(struct sxe_span text)
{
    return text.length > 0 && text.length <= NAME_MOST;
}

static bool
are_rules(const struct sxe_http_proxy *proxy)
{
    struct sxe__http_rule rule;
    bool is_good = true;

    for (unsigned i = 0; i < proxy->request_header_number; i++)
        is_good &= sxe__http_rule_read(proxy->request_header[i], &rule);
    return is_good;
}

int
sxe_http_proxy_check(const struct sxe_http_proxy *proxy)
{
    const struct sxe_span host = sxe_http_span(proxy->host == NULL ? "h" : proxy->host);
    const struct sxe_span via = sxe_http_span(proxy->via == NULL ? "sxe" : proxy->via);
    struct sxe_http_proxy own;

    if (sxe__sized_take(&own, offsetof(struct sxe_http_proxy, reserved), proxy, sizeof(*proxy),
                        "sxe_http_proxy_check") < 0)
        return -E2BIG;
    if ((proxy->path != NULL && !is_proxy_path(proxy->path)) || !is_length_of_name(host) ||
        !sxe__http_host(host.base, host.length) || !is_length_of_name(via) ||
        (!sxe_http_is_token(via) && !sxe__http_host(via.base, via.length)) ||
        proxy->fields > SXE_HTTP_PROXY_NO_FIELDS || !are_rules(proxy))
        return -EINVAL;
    return 0;
}

/* ---- Upstreams ---- */

/* Whether the limits are 0, which means the defaults, or allow at least one valid head. */
static bool
are_limits(const struct sxe_http_limits *limits)
{
    return limits->head_max == 0 || (limits->line_max > 0 && limits->line_max <= limits->head_max &&
                                     limits->fields_max > 0 && limits->fields_max <= FIELDS_MOST);
}

static bool
is_balance(const struct sxe_http_upstream_config *config)
{
    if (config->balance == SXE_HTTP_BALANCE_FIELD)
        return config->hash_field != NULL && sxe_http_is_token(sxe_http_span(config->hash_field));
    return config->balance < SXE_HTTP_BALANCE_FIELD;
}

int
sxe__http_upstream_check(const struct sxe_http_upstream_config *config)
{
    if (config->addresses == NULL || config->addresses_number == 0 ||
        config->addresses_number > SXE_HTTP_UPSTREAM_ADDRESSES || !is_balance(config) ||
        !are_limits(&config->limits) || config->connections_max > CONNECTIONS_MOST ||
        (config->tunnels_max > CONNECTIONS_MOST && config->tunnels_max != UINT32_MAX) ||
        (config->check_path != NULL && !is_proxy_path(config->check_path)) ||
        (config->fastcgi && (config->check_path != NULL || config->tls != NULL)))
        return -EINVAL;
    /* the address's client checks its texts */
    for (unsigned i = 0; i < config->addresses_number; i++) {
        if (config->addresses[i].ip != NULL && config->addresses[i].port == 0)
            return -EINVAL;
    }
    return 0;
}
