/* SPDX-License-Identifier: MIT
 *
 * What: making and deleting clients, and what a program does with a call.
 */
#include "sxe-http-client-private.h"
#include "sxe-http-private.h"
#include "sxe-sized-internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_CONNECTIONS 16u
#define DEFAULT_CALLS       64u
#define DEFAULT_REQUEST     4096u
#define DEFAULT_BODY        65536u
#define DEFAULT_CONNECT_MS  3000u
#define DEFAULT_WAIT_MS     30000u
#define DEFAULT_IDLE_MS     15000u

#define AT_ONCE_S 1e-6 /* a timeout in seconds that ends in the next turn of the loop */

/* How many sockets to register for spare attempts, at least and at most. A dial may try several
 * addresses of a name at once, and all its attempts but one are spare, see sxe-dial.h. */
#define SPARES_MIN (SXE_RESOLVE_ADDRESSES_MAX - 1u)
#define SPARES_MAX 64u

enum { FIELDS_MAX = 255 };

/* ---- Making and deleting ---- */

static uint32_t
or_default(uint32_t wanted, uint32_t value)
{
    return wanted == 0 ? value : wanted;
}

static bool
copy_text(char *to, size_t size, const char *text)
{
    int length = snprintf(to, size, "%s", text);

    return length > 0 && (size_t)length < size;
}

static bool
is_ip(int family, const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(family, text, address) == 1;
}

/* Set the default Host. With a name, the scheme's own port is left out. */
static bool
set_usual_host(struct sxe_http_client *client, const struct sxe_http_client_config *wanted)
{
    const char *server = wanted->ip != NULL ? wanted->ip : wanted->name;
    const bool is_ipv6 = is_ip(AF_INET6, server);
    int length = snprintf(client->host, sizeof(client->host), is_ipv6 ? "[%s]:%u" : "%s:%u", server,
                          (unsigned)wanted->port);

    if ((size_t)length >= sizeof(client->host))
        return false;
    if (wanted->name != NULL && wanted->port == (wanted->tls != NULL ? 443 : 80))
        *strrchr(client->host, ':') = '\0';
    return true;
}

/* Set the server's address or name, and the default Host. */
static bool
set_server_address(struct sxe_http_client *client, const struct sxe_http_client_config *wanted)
{
    struct sxe_http_client_config *config = &client->config;

    if ((wanted->ip != NULL) + (wanted->name != NULL) + (wanted->path != NULL) != 1)
        return false;
    config->ip = wanted->ip != NULL ? client->ip : NULL;
    config->name = wanted->name != NULL ? client->name : NULL;
    config->path = wanted->path != NULL ? client->path : NULL;
    if (wanted->path != NULL) {
        snprintf(client->host, sizeof(client->host), "localhost");
        return wanted->proxy == NULL && !wanted->public_only &&
               copy_text(client->path, sizeof(client->path), wanted->path);
    }
    if ((wanted->public_only && wanted->proxy != NULL) || !set_usual_host(client, wanted))
        return false;
    if (wanted->ip != NULL)
        return copy_text(client->ip, sizeof(client->ip), wanted->ip) &&
               (is_ip(AF_INET6, wanted->ip) || is_ip(AF_INET, wanted->ip));
    return copy_text(client->name, sizeof(client->name), wanted->name) &&
           (is_ip(AF_INET6, wanted->name) || strchr(wanted->name, ':') == NULL) &&
           sxe__http_host(client->host, strlen(client->host));
}

static bool
set_host(struct sxe_http_client *client, const char *host)
{
    return host == NULL || (copy_text(client->host, sizeof(client->host), host) &&
                            sxe__http_host(client->host, strlen(client->host)));
}

/* Set tls_name: `wanted`, or the name in the client's Host, "name:port" or "[::1]:port". */
static bool
set_tls_name(struct sxe_http_client *client, const char *wanted)
{
    const char *host = client->host;
    size_t length = strcspn(host, ":");

    if (host[0] == '[')
        length = strcspn(++host, "]");
    client->config.tls_name = client->tls_name;
    if (wanted != NULL)
        return copy_text(client->tls_name, sizeof(client->tls_name), wanted);
    memcpy(client->tls_name, host, length);
    return length > 0;
}

/* Copy the configuration and fill in its defaults. 0 or -EINVAL. */
static int
configure(struct sxe_http_client *client, const struct sxe_http_client_config *wanted)
{
    static const struct sxe_http_limits usual = SXE_HTTP_LIMITS;
    struct sxe_http_client_config *config = &client->config;

    *config = *wanted;
    config->connections_max = or_default(wanted->connections_max, DEFAULT_CONNECTIONS);
    config->idle_max = or_default(wanted->idle_max, config->connections_max);
    config->calls_max = or_default(wanted->calls_max, DEFAULT_CALLS);
    config->request_max = or_default(wanted->request_max, DEFAULT_REQUEST);
    config->body_max = or_default(wanted->body_max, DEFAULT_BODY);
    if (wanted->limits.head_max == 0)
        config->limits = usual;
    if (config->limits.fields_max > FIELDS_MAX)
        config->limits.fields_max = FIELDS_MAX;
    config->connect_timeout_ms = or_default(wanted->connect_timeout_ms, DEFAULT_CONNECT_MS);
    config->head_timeout_ms = or_default(wanted->head_timeout_ms, DEFAULT_WAIT_MS);
    config->stall_timeout_ms = or_default(wanted->stall_timeout_ms, DEFAULT_WAIT_MS);
    config->idle_timeout_ms = or_default(wanted->idle_timeout_ms, DEFAULT_IDLE_MS);
    if (!set_server_address(client, wanted) || !set_host(client, wanted->host) ||
        (wanted->tls != NULL &&
         (wanted->use_tls == NULL || !set_tls_name(client, wanted->tls_name))))
        return -EINVAL;
    return wanted->proxy == NULL ? 0 : sxe__http_forward_new(client, wanted->proxy);
}

static double
seconds_of_ms(uint32_t timeout_ms)
{
    return timeout_ms == UINT32_MAX ? 0 : timeout_ms / 1000.0;
}

/* Called when a call has taken longer than total_timeout_ms. */
static void
on_total_timeout(void *array, unsigned id, void *user)
{
    SXE_UNUSED_PARAMETER(array);
    sxe__http_job_fail(user, id, -ETIMEDOUT);
}

static void
make_pools(struct sxe_http_client *client)
{
    const struct sxe_http_client_config *config = &client->config;
    double link_timeouts[SXE__HTTP_LINK_STATES] = {
        [SXE__HTTP_LINK_CONNECTING] = seconds_of_ms(config->connect_timeout_ms),
        [SXE__HTTP_LINK_SENDING] = seconds_of_ms(config->stall_timeout_ms),
        [SXE__HTTP_LINK_HEAD] = seconds_of_ms(config->head_timeout_ms),
        [SXE__HTTP_LINK_BODY] = seconds_of_ms(config->stall_timeout_ms),
        [SXE__HTTP_LINK_LATE] = seconds_of_ms(config->stall_timeout_ms),
        [SXE__HTTP_LINK_IDLE] = seconds_of_ms(config->idle_timeout_ms),
        [SXE__HTTP_LINK_DROPPED] = AT_ONCE_S,
    };
    double job_timeouts[SXE__HTTP_JOB_STATES] = {
        [SXE__HTTP_JOB_LIVE] = seconds_of_ms(config->total_timeout_ms),
    };

    client->links = sxe_pool_new_with_timeouts("http links", config->connections_max,
                                               sizeof(*client->links), SXE__HTTP_LINK_STATES,
                                               link_timeouts, sxe__http_link_on_timeout, NULL);
    client->jobs =
        sxe_pool_new_with_timeouts("http jobs", config->calls_max, sizeof(*client->jobs),
                                   SXE__HTTP_JOB_STATES, job_timeouts, on_total_timeout, client);
    client->queue = sxe_pool_new("http queue", config->calls_max, sizeof(*client->queue),
                                 SXE__HTTP_QUEUE_STATES, SXE_POOL_OPTION_UNLOCKED);
}

/* Make the pools and allocate the buffers. 0 or -errno. */
static int
reserve_links(struct sxe_http_client *client)
{
    const struct sxe_http_client_config *config = &client->config;
    uint16_t fields_max = config->limits.fields_max;

    make_pools(client);
    if (client->links == NULL || client->jobs == NULL || client->queue == NULL)
        return -errno;
    client->requests = calloc(config->calls_max, config->request_max);
    client->responses =
        calloc(config->connections_max, (size_t)config->limits.head_max + config->body_max);
    client->fields = calloc((size_t)config->connections_max * fields_max, sizeof(*client->fields));
    if (client->requests == NULL || client->responses == NULL || client->fields == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < config->connections_max; i++) {
        client->links[i].client = client;
        client->links[i].job = SXE_NONE;
        sxe_http_parser_init(&client->links[i].parser, SXE_HTTP_RESPONSE,
                             &client->fields[i * fields_max], fields_max, &config->limits);
    }
    return sxe_pool_set_state_to_string(client->links, sxe__http_link_state_to_string);
}

/* If the client connects to a name, make the dials of its links. 0 or -ENOMEM. */
static int
reserve_dials(struct sxe_http_client *client)
{
    const uint32_t connections = client->config.connections_max;
    const uint32_t spares = connections < SPARES_MIN ? SPARES_MIN : connections;
    const char *name = client->forward != NULL ? client->forward->host : client->config.name;

    if (name == NULL || is_ip(AF_INET, name) || is_ip(AF_INET6, name))
        return 0;
    client->dials = calloc(connections, sizeof(*client->dials));
    return client->dials == NULL ? -ENOMEM
                                 : sxe_dial_register(spares < SPARES_MAX ? spares : SPARES_MAX);
}

struct sxe_http_client *
sxe_http_client_new_sized(const struct sxe_http_client_config *config, size_t size)
{
    struct sxe_http_client *client = calloc(1, sizeof(*client));
    struct sxe_http_client_config own;
    int result = sxe__sized_take(&own, sizeof(own), config, size, "sxe_http_client_new");

    if (result == 0)
        result = client == NULL ? -ENOMEM : configure(client, &own);
    if (result == 0)
        result = reserve_links(client);
    if (result == 0)
        result = reserve_dials(client);
    if (result < 0) {
        sxe_http_client_delete(client);
        errno = -result;
        return NULL;
    }
    /* One socket more than links: a link whose socket is still closing may already open its next
     * one. */
    sxe_register(client->config.connections_max + 1, 0);
    return client;
}

int
sxe__http_client_use_fastcgi(struct sxe_http_client *client, bool keep,
                             void (*on_error_text)(const struct sxe_http_exchange *exchange,
                                                   struct sxe_span text))
{
    client->records = calloc(client->config.connections_max, sizeof(*client->records));
    client->keeps = keep;
    client->on_error_text = on_error_text;
    return client->records == NULL ? -ENOMEM : 0;
}

void
sxe_http_client_delete(struct sxe_http_client *client)
{
    if (client == NULL)
        return;
    for (unsigned i = 0; client->links != NULL && i < client->config.connections_max; i++) {
        SXE *s = client->links[i].socket;

        if (sxe_loop() == NULL)
            break;
        if (client->links[i].is_dialling)
            (void)sxe_dial_cancel(&client->dials[i]);
        if (s == NULL)
            continue;
        sxe__http_link_forget(&client->links[i]);
        sxe_abort(s);
    }
    free(client->records);
    free(client->forward);
    free(client->dials);
    sxe_pool_delete(client->links);
    sxe_pool_delete(client->jobs);
    sxe_pool_delete(client->queue);
    free(client->requests);
    free(client->responses);
    free(client->fields);
    free(client);
}

/* ---- Calls ---- */

/* how many calls were made; the clients of all threads share it, see sxe__http_job_handle */
static _Atomic(uint32_t) calls;

/* Copy the call into its job, and write its request. 0, -EINVAL or -EMSGSIZE. */
static int
prepare_job(struct sxe_http_client *client, unsigned id, const struct sxe_http_call *call)
{
    struct sxe__http_job *job = &client->jobs[id];
    struct sxe_http_request_head request = call->request;
    size_t size = client->config.request_max;
    char *room = client->requests + id * size;
    ssize_t head;

    if (call->on_done == NULL || ((request.body_length == SXE_HTTP_CHUNKED ||
                                   (client->records != NULL && request.body_length > 0)) &&
                                  call->on_room == NULL))
        return -EINVAL;
    *job = (struct sxe__http_job){
        .wanted = *call, .link = SXE_NONE, .number = atomic_fetch_add(&calls, 1) + 1};
    if (request.host.length == 0)
        request.host = sxe_http_span(client->host);
    head = client->records != NULL
               ? sxe__http_records_write(&request, client->keeps, room, size, &job->asked)
               : sxe__http_request_write(&request, client->forward, room, size, &job->asked);
    if (head < 0)
        return (int)head;
    if (job->asked.upgrade && call->on_upgrade == NULL)
        return -EINVAL;
    job->length = (uint32_t)head;
    if (!call->copy_body || call->on_room != NULL || request.body_length == 0)
        return 0;
    if (request.body_length > size - (size_t)head)
        return -EMSGSIZE;
    memcpy(room + head, call->body, (size_t)request.body_length);
    job->length += (uint32_t)request.body_length;
    return 0;
}

/* Start the job, or queue it after the waiting jobs. 0 or -errno. */
static int
begin_job(struct sxe_http_client *client, unsigned id)
{
    int result = 1;

    if (sxe_pool_get_count(client->queue, SXE__HTTP_QUEUE_WAITING) == 0 ||
        sxe__http_client_is_at_rest(client))
        result = sxe__http_job_start(client, id);
    if (result <= 0)
        return result;
    sxe_pool_move(client->queue, id, SXE__HTTP_QUEUE_OUT, SXE__HTTP_QUEUE_WAITING);
    return 0;
}

int
sxe_http_client_send_sized(struct sxe_http_client *client, const struct sxe_http_call *given,
                           size_t size, uint64_t *handle)
{
    struct sxe_http_call call;
    int result = sxe__sized_take(&call, sizeof(call), given, size, "sxe_http_client_send");
    unsigned id;

    if (result < 0)
        return result;
    id = sxe_pool_take(client->jobs, SXE__HTTP_JOB_FREE, SXE__HTTP_JOB_LIVE);
    if (id == SXE_POOL_NO_INDEX)
        return -ENOBUFS;
    result = prepare_job(client, id, &call);
    if (result == 0)
        result = begin_job(client, id);
    if (result < 0)
        sxe_pool_move(client->jobs, id, SXE__HTTP_JOB_LIVE, SXE__HTTP_JOB_FREE);
    else if (handle != NULL)
        *handle = sxe__http_job_handle(client, id);
    return result;
}

int
sxe_http_client_cancel(struct sxe_http_client *client, uint64_t handle)
{
    unsigned id = sxe__http_job_find(client, handle);

    if (id == SXE_POOL_NO_INDEX)
        return -ENOENT;
    if (client->jobs[id].link != SXE_NONE)
        sxe__http_link_end(&client->links[client->jobs[id].link], SXE__HTTP_END_AT_ONCE);
    sxe__http_job_release(client, id);
    return 0;
}

static int
set_paused(struct sxe_http_client *client, uint64_t handle, bool paused)
{
    unsigned id = sxe__http_job_find(client, handle);
    struct sxe__http_link *link;

    if (id == SXE_POOL_NO_INDEX)
        return -ENOENT;
    client->jobs[id].is_paused = paused;
    if (client->jobs[id].link == SXE_NONE)
        return 0;
    link = &client->links[client->jobs[id].link];
    if (sxe__http_link_state(link) != (paused ? SXE__HTTP_LINK_BODY : SXE__HTTP_LINK_PAUSED))
        return 0;
    sxe__http_link_move(link, paused ? SXE__HTTP_LINK_PAUSED : SXE__HTTP_LINK_BODY);
    if (paused)
        sxe_pause(link->socket);
    else
        sxe_resume(link->socket, SXE_RESUME_IMMEDIATE);
    return 0;
}

int
sxe_http_client_pause(struct sxe_http_client *client, uint64_t handle)
{
    return set_paused(client, handle, true);
}

int
sxe_http_client_resume(struct sxe_http_client *client, uint64_t handle)
{
    return set_paused(client, handle, false);
}
