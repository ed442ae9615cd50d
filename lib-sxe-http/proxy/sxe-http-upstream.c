/* SPDX-License-Identifier: MIT
 *
 * What: making and deleting upstreams, and the health of their addresses.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-sized-internal.h"

#define DEFAULT_FAILS       3u
#define DEFAULT_FAIL_MS     10000u
#define DEFAULT_CONNECTIONS 256u
#define DEFAULT_IDLE        32u
#define DEFAULT_CONNECT_MS  3000u
#define DEFAULT_WAIT_MS     60000u
#define DEFAULT_IDLE_MS     15000u
#define DEFAULT_UNSAFE_MS   500u
#define DEFAULT_REQUEST     24576u
#define DEFAULT_TUNNELS     256u
#define DEFAULT_TUNNEL_MS   3600000u
#define DEFAULT_CHECK_MS    5000u
#define DEFAULT_RISES       2u
#define DEFAULT_FALLS       3u

/* ---- Making and deleting ---- */

static void
set_default(uint32_t *setting, uint32_t value)
{
    if (*setting == 0)
        *setting = value;
}

static int
configure_upstream(struct sxe_http_upstream *upstream,
                   const struct sxe_http_upstream_config *wanted)
{
    static const struct sxe_http_limits usual = SXE_HTTP_LIMITS;
    struct sxe_http_upstream_config *config = &upstream->config;

    *config = *wanted;
    snprintf(upstream->name, sizeof(upstream->name), "%s",
             wanted->name == NULL ? "upstream" : wanted->name);
    if (config->limits.head_max == 0)
        config->limits = usual;
    set_default(&config->max_fails, DEFAULT_FAILS);
    set_default(&config->fail_timeout_ms, DEFAULT_FAIL_MS);
    set_default(&config->connections_max, DEFAULT_CONNECTIONS);
    set_default(&config->idle_max, DEFAULT_IDLE);
    set_default(&config->connect_timeout_ms, DEFAULT_CONNECT_MS);
    set_default(&config->first_byte_timeout_ms, DEFAULT_WAIT_MS);
    set_default(&config->stall_timeout_ms, DEFAULT_WAIT_MS);
    set_default(&config->idle_timeout_ms, DEFAULT_IDLE_MS);
    set_default(&config->unsafe_idle_ms, DEFAULT_UNSAFE_MS);
    set_default(&config->request_max, DEFAULT_REQUEST);
    set_default(&config->tunnels_max, DEFAULT_TUNNELS);
    set_default(&config->tunnel_timeout_ms, DEFAULT_TUNNEL_MS);
    set_default(&config->check_interval_ms, DEFAULT_CHECK_MS);
    set_default(&config->check_rises, DEFAULT_RISES);
    set_default(&config->check_falls, DEFAULT_FALLS);
    if (config->fastcgi) {
        config->tunnels_max = UINT32_MAX;
        upstream->script = malloc(sizeof(*upstream->script));
        if (upstream->script == NULL)
            return -ENOMEM;
    }
    return sxe__http_upstream_check(wanted);
}

/* Name the address for the log: the upstream's name, then its own, unless both are equal. */
static void
name_address(struct sxe__http_address *address, const char *upstream, const char *name)
{
    const bool is_same = strcmp(upstream, name) == 0;

    snprintf(address->name, sizeof(address->name), "%s", name);
    snprintf(address->label, sizeof(address->label), "%s%s%s", is_same ? "" : upstream,
             is_same ? "" : ": ", name);
}

/* Make the client for an address, and add the address to the upstream. 0 or -errno. */
static int
add_upstream_address(struct sxe_http_upstream *upstream,
                     const struct sxe_http_upstream_address *wanted)
{
    const struct sxe_http_upstream_config *config = &upstream->config;
    struct sxe__http_address *address = &upstream->addresses[upstream->number];
    struct sxe_http_client_config client = {
        .ip = wanted->ip,
        .port = wanted->port,
        .path = wanted->path,
        .connections_max = config->connections_max,
        .idle_max = config->idle_max,
        .calls_max = config->connections_max,
        .request_max = config->request_max,
        .body_max = 1,
        .limits = config->limits,
        .connect_timeout_ms = config->connect_timeout_ms,
        .head_timeout_ms = config->first_byte_timeout_ms,
        .stall_timeout_ms = config->stall_timeout_ms,
        .idle_timeout_ms = config->idle_timeout_ms,
        .unsafe_idle_ms = config->unsafe_idle_ms,
        /* connections to upstreams need not keep the loop running: clients' connections do */
        .unref = true,
        .tls = config->tls,
        .use_tls = config->use_tls,
        .tls_name = wanted->tls_name != NULL ? wanted->tls_name : config->tls_name,
    };

    address->client = sxe_http_client_new(&client);
    if (address->client == NULL)
        return -errno;
    upstream->number++;
    if (config->fastcgi && sxe__http_client_use_fastcgi(address->client, config->fastcgi_keep,
                                                        sxe__http_proxy_log_errors) < 0)
        return -ENOMEM;
    name_address(address, config->name == NULL ? "upstream" : config->name,
                 wanted->path != NULL ? wanted->path : address->client->host);
    address->hash = sxe__http_hash(0, address->name, strlen(address->name));
    address->weight = wanted->weight == 0 ? 1 : wanted->weight;
    return 0;
}

/* Make the pools, and register a socket for each tunnel: the client does not count the sockets of
 * tunnels, the server does. 0 or -errno. */
static int
reserve_passages(struct sxe_http_upstream *upstream)
{
    const struct sxe_http_upstream_config *config = &upstream->config;
    const double timeouts[SXE__HTTP_TUNNEL_STATES] = {
        [SXE__HTTP_TUNNEL_OPEN] =
            config->tunnel_timeout_ms == UINT32_MAX ? 0 : config->tunnel_timeout_ms / 1000.0};

    upstream->passages = sxe_pool_new("http passages", upstream->number * config->connections_max,
                                      sizeof(*upstream->passages), SXE__HTTP_PASSAGE_STATES,
                                      SXE_POOL_OPTION_UNLOCKED);
    if (upstream->passages == NULL)
        return -errno;
    if (config->tunnels_max == UINT32_MAX)
        return 0;
    upstream->tunnels = sxe_pool_new_with_timeouts(
        "http tunnels", config->tunnels_max, sizeof(*upstream->tunnels), SXE__HTTP_TUNNEL_STATES,
        timeouts, sxe__http_tunnel_on_timeout, NULL);
    if (upstream->tunnels == NULL)
        return -errno;
    sxe_register(config->tunnels_max, 0);
    return 0;
}

struct sxe_http_upstream *
sxe_http_upstream_new_sized(const struct sxe_http_upstream_config *given, size_t size)
{
    struct sxe_http_upstream *upstream = calloc(1, sizeof(*upstream));
    struct sxe_http_upstream_config config;
    int result = sxe__sized_take(&config, sizeof(config), given, size, "sxe_http_upstream_new");

    if (result == 0)
        result = upstream == NULL ? -ENOMEM : configure_upstream(upstream, &config);
    for (unsigned i = 0; result == 0 && i < config.addresses_number; i++)
        result = add_upstream_address(upstream, &config.addresses[i]);
    if (result == 0)
        result = reserve_passages(upstream);
    if (result == 0)
        result = sxe__http_checks_new(upstream);
    if (result < 0) {
        sxe_http_upstream_delete(upstream);
        errno = -result;
        return NULL;
    }
    return upstream;
}

void
sxe_http_upstream_delete(struct sxe_http_upstream *upstream)
{
    if (upstream == NULL)
        return;
    for (unsigned i = 0; i < upstream->number; i++)
        sxe_http_client_delete(upstream->addresses[i].client);
    free(upstream->script);
    sxe__http_checks_delete(upstream);
    sxe_pool_delete(upstream->passages);
    sxe_pool_delete(upstream->tunnels);
    free(upstream);
}

size_t
sxe_http_upstream_plan_print(const struct sxe_http_upstream *upstream, FILE *out)
{
    const struct sxe_http_client_config *client = &upstream->addresses[0].client->config;
    const unsigned number = upstream->number * client->connections_max;
    const size_t each = sizeof(*upstream->passages) + sizeof(struct sxe__http_link) +
                        sizeof(struct sxe__http_job) + client->request_max +
                        client->limits.head_max + client->body_max +
                        client->limits.fields_max * sizeof(struct sxe_http_field);

    if (out != NULL)
        fprintf(out, "%-16s %10u x %7zu = %13zu bytes of address space, memory as %s needs it\n",
                "http upstream", number, each, number * each, upstream->name);
    return number * each;
}

/* ---- Health ---- */

void
sxe__http_address_failed(struct sxe_http_upstream *upstream, struct sxe__http_address *address)
{
    const struct sxe_http_upstream_config *config = &upstream->config;
    const SXE_TIME period = config->fail_timeout_ms * (SXE_TIME)SXE_NS_PER_MS;
    const SXE_TIME now = sxe_time_turn_ns();

    address->failures++;
    if (now - address->fails_since > period) {
        address->fails_since = now;
        address->fails = 0;
    }
    address->fails++;
    if (upstream->number == 1 || address->fails < config->max_fails || address->down_until > now)
        return;
    address->down_until = now + period;
    SXE_WARN("%s failed %u times, and is left out for %u ms", address->label, address->fails,
             config->fail_timeout_ms);
}

int
sxe_http_upstream_look_sized(const struct sxe_http_upstream *upstream, unsigned index,
                             struct sxe_http_upstream_state *state, size_t size)
{
    const struct sxe__http_address *address = &upstream->addresses[index];
    const struct sxe_http_client *client = address->client;
    struct sxe_http_upstream_state own;

    if (index >= upstream->number)
        return -EINVAL;
    memset(&own, 0, sizeof(own)); /* the padding, too: the program gets all bytes */
    own.name = address->name;
    own.requests = address->requests + client->retries;
    own.failures = address->failures;
    own.retries = address->retries + client->retries;
    own.under_way = address->under_way;
    own.connections = address->tunnels + client->config.connections_max -
                      sxe_pool_get_count(client->links, SXE__HTTP_LINK_FREE);
    own.is_down = address->is_sick || address->down_until > sxe_time_turn_ns();
    own.tunnels = address->tunnels;
    sxe__sized_give(state, size, &own, sizeof(own));
    return 0;
}
