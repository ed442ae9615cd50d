/* SPDX-License-Identifier: MIT
 *
 * What: the server as a whole: its plan, its listeners, its end.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sxe-sized-internal.h"

/* how many bytes a head has beside fields: the first line, Date, framing, a protocol */
#define HEAD_ROOM 512

#define DEFAULT(field, value) (config->field = config->field == 0 ? (value) : config->field)

static void
fill_in_server_config(struct sxe_http_config *config)
{
    static const struct sxe_http_limits usual = SXE_HTTP_LIMITS;

    DEFAULT(connections, 10000);
    DEFAULT(requests_max, 1000000);
    DEFAULT(address_max, 1000);
    DEFAULT(head.line_max, usual.line_max);
    DEFAULT(head.head_max, usual.head_max);
    DEFAULT(head.fields_max, usual.fields_max);
    DEFAULT(body_max, 1024 * 1024);
    DEFAULT(body_memory_max, (size_t)256 * 1024 * 1024);
    DEFAULT(fields_max, 8192);
    DEFAULT(head_timeout_ms, 10000);
    DEFAULT(body_timeout_ms, 10000);
    DEFAULT(body_rate_min, 500);
    DEFAULT(idle_timeout_ms, 60000);
    DEFAULT(handler_timeout_ms, UINT32_MAX);
    if (config->fields == NULL)
        config->fields = "";
}

static bool
are_lines(const char *at)
{
    enum sxe_http_field_id id;

    while (*at != '\0') {
        size_t name = strcspn(at, ":\r");
        const char *end = strstr(at, "\r\n");

        if (end == NULL || at[name] != ':' ||
            !sxe__http_is_line((struct sxe_span){at, name},
                               (struct sxe_span){at + name + 1, (size_t)(end - at) - name - 1},
                               &id))
            return false;
        at = end + 2;
    }
    return true;
}

static bool
is_addable(const char *name)
{
    enum sxe_http_field_id id;

    return sxe__http_is_line((struct sxe_span){name, strlen(name)}, (struct sxe_span){"", 0}, &id);
}

/* Check a configuration. NULL, or what is wrong. */
static const char *
check_server_config(const struct sxe_http_config *config)
{
    uint32_t chunk_size = sxe_get_config()->chunk_size;

    if (config->connections > 10000000)
        return "connections must be at most 10,000,000";
    if (config->head.fields_max > 255)
        return "head.fields_max must be at most 255";
    if (config->head.line_max > config->head.head_max)
        return "head.line_max must be at most head.head_max";
    if (config->head.head_max > (chunk_size == 0 ? 16384 : chunk_size))
        return "head.head_max must be at most the chunk_size of sxe_configure";
    if (config->body_max > 1u << 30 || config->fields_max > 1u << 20)
        return "body_max must be at most 1 GiB, and fields_max at most 1 MiB";
    if (!are_lines(config->fields))
        return "fields must be lines that sxe_http_add_field could add, each with CR LF";
    if (config->request_id != NULL && !is_addable(config->request_id))
        return "request_id must be the name of a field that sxe_http_add_field could add";
    return NULL;
}

static double
timeout_seconds(uint32_t ms)
{
    return ms == UINT32_MAX ? 0.0 : ms / 1000.0;
}

static const char *
name_of_connection_state(unsigned state)
{
    static const char *const names[] = {"FREE",     "FRESH",   "IDLE",    "HEAD",    "BODY",
                                        "HANDLING", "SENDING", "CLOSING", "REFUSED", "UPGRADED"};

    return names[state];
}

static int
allocate_slots(struct sxe_http *http)
{
    const struct sxe_http_config *config = &http->config;
    const double timeouts[SXE__HTTP_STATES] = {
        [SXE__HTTP_FRESH] = timeout_seconds(config->head_timeout_ms),
        [SXE__HTTP_IDLE] = timeout_seconds(config->idle_timeout_ms),
        [SXE__HTTP_HEAD] = timeout_seconds(config->head_timeout_ms),
        [SXE__HTTP_BODY] = timeout_seconds(config->body_timeout_ms),
        [SXE__HTTP_HANDLING] = timeout_seconds(config->handler_timeout_ms),
    };
    int result;

    /* `common` follows the date, so it starts with the end of that line. */
    http->common_length = (uint32_t)strlen(config->fields) + 2;
    http->common = malloc(http->common_length + 1);
    if (http->common == NULL)
        return -ENOMEM;
    snprintf(http->common, http->common_length + 1, "\r\n%s", config->fields);
    http->head_size = HEAD_ROOM + http->common_length + config->fields_max;
    if (config->request_id != NULL)
        http->head_size += strlen(config->request_id) + SXE_HTTP_ID_MAX + 4;
    http->head = malloc(http->head_size);
    http->connections = sxe_pool_new_with_timeouts("http-connections", config->connections,
                                                   sizeof(*http->connections), SXE__HTTP_STATES,
                                                   timeouts, sxe__http_on_timeout, NULL);
    if (http->head == NULL || http->connections == NULL ||
        sxe_pool_set_state_to_string(http->connections, name_of_connection_state) < 0)
        return -ENOMEM;
    result = config->address_max == UINT32_MAX ? 0 : sxe__http_clients_new(http);
    return result < 0 ? result : sxe__http_slots_new(http);
}

/* Have lib-sxe close connections whose peer does not read, unless the program has configured
 * lib-sxe's timeout itself. */
static void
configure_stall(uint32_t ms)
{
    struct sxe_config config = *sxe_get_config();

    if (config.timeout_ms[SXE_STATE_WRITING] != 0)
        return;
    config.timeout_ms[SXE_STATE_WRITING] = ms;
    sxe_configure(&config);
}

/* Fill the defaults in. 0 or -EINVAL. */
static int
configure_server(struct sxe_http_config *config)
{
    const char *wrong;

    fill_in_server_config(config);
    wrong = check_server_config(config);
    if (wrong != NULL)
        SXE_ERROR("cannot make an HTTP server: %s", wrong);
    return wrong == NULL ? 0 : -EINVAL;
}

struct sxe_http *
sxe_http_new_sized(const struct sxe_http_config *config, size_t size)
{
    struct sxe_http *http = calloc(1, sizeof(*http));
    int result;

    if (http == NULL)
        return NULL;
    result = sxe__sized_take(&http->config, sizeof(http->config), config, size, "sxe_http_new");
    if (result == 0)
        result = configure_server(&http->config);
    if (result == 0)
        result = allocate_slots(http);
    if (result < 0) {
        sxe_http_delete(http);
        errno = -result;
        return NULL;
    }
    http->resume = sxe__http_resume;
    configure_stall(30000);
    sxe_register(http->config.connections + SXE__HTTP_LISTENERS + SXE__HTTP_SPARE, 0);
    return http;
}

/* The sockets of the program's connections may outlive the server. */
static void
leave_upgraded(struct sxe_http *http)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, http->connections, SXE__HTTP_UPGRADED);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        SXE *s = sxe_from_handle(http->connections[id].handle);

        if (s != NULL)
            sxe_io_follow(s, NULL);
    }
}

void
sxe_http_delete(struct sxe_http *http)
{
    if (http == NULL)
        return;
    if (http->connections != NULL)
        leave_upgraded(http);
    if (http->fastcgi != NULL)
        http->fastcgi_delete(http);
    sxe_pool_delete(http->connections);
    sxe__http_slots_delete(http);
    sxe__http_clients_delete(http);
    free(http->common);
    free(http->head);
    free(http);
}

/* A client whose machine is gone sends nothing, and with config.half_close a client that closed
 * looks like one that waits for its reply. Sending would tell, but a handler may have nothing to
 * send for long. So the kernel probes the client, and learns from a reset, or from silence, that
 * the client is gone. Idle connections are closed by default before the first probe, so they cost
 * no probes. Accepted sockets inherit these options. */
static void
ask_for_silent(const SXE *listener)
{
    static const struct {
        int level;
        int name;
        int value; /* a time in seconds, or a number of probes */
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 75},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        (void)!setsockopt(sxe_fd(listener), options[i].level, options[i].name, &options[i].value,
                          sizeof(options[i].value));
}

static SXE_RETURN
listen_with_config(struct sxe_http *http, SXE *listener)
{
    int result = -ENFILE;

    if (listener == NULL)
        return -errno;
    SXE_USER_DATA(listener) = http;
    sxe_set_half_close(listener, true);
    sxe_watch_end(listener, true);
    if (http->listener_count < SXE__HTTP_LISTENERS)
        result = sxe_listen(listener);
    if (result < 0) {
        sxe_close(listener);
        return result;
    }
    ask_for_silent(listener);
    http->listeners[http->listener_count++] = listener;
    /* The other half of output_pause is for the reply to the waiting request. */
    http->unsent_max = sxe_get_config()->output_pause / 2;
    return 0;
}

SXE_RETURN
sxe_http_listen(struct sxe_http *http, const char *ip, unsigned short port)
{
    return listen_with_config(http, sxe_new_tcp(NULL, ip, port, sxe__http_on_connected,
                                                sxe__http_on_read, sxe__http_on_close));
}

SXE_RETURN
sxe_http_listen_unix(struct sxe_http *http, const char *path)
{
    return listen_with_config(http, sxe_new_unix(NULL, path, sxe__http_on_connected,
                                                 sxe__http_on_read, sxe__http_on_close));
}

SXE *
sxe_http_listener(const struct sxe_http *http)
{
    return http->listener_count == 0 ? NULL : http->listeners[http->listener_count - 1];
}

unsigned short
sxe_http_port(const struct sxe_http *http)
{
    return http->listener_count == 0 ? 0 : sxe_local_port(sxe_http_listener(http));
}

static void
add_done(struct sxe_http *http, void (*done)(struct sxe_http *))
{
    for (unsigned i = 0; i < http->dones_number; i++) {
        if (http->dones[i] == done)
            return;
    }
    if (done != NULL && http->dones_number < SXE_HTTP_DONES_MAX)
        http->dones[http->dones_number++] = done;
}

/* Whether all connections in that state only wait for their clients to close. */
static bool
all_linger(const struct sxe_http *http, enum sxe__http_state state)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, http->connections, state);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (http->connections[id].slot != NULL || !sxe_is_lingering(http->connections[id].sxe))
            return false;
    }
    return true;
}

bool
sxe_http_all_is_sent(const struct sxe_http *http)
{
    unsigned number = sxe_pool_get_count(http->connections, SXE__HTTP_FREE) +
                      sxe_pool_get_count(http->connections, SXE__HTTP_UPGRADED) +
                      sxe_pool_get_count(http->connections, SXE__HTTP_CLOSING) +
                      sxe_pool_get_count(http->connections, SXE__HTTP_REFUSED);

    return number == http->config.connections && http->fastcgi_connections == 0 &&
           all_linger(http, SXE__HTTP_CLOSING) && all_linger(http, SXE__HTTP_REFUSED);
}

/* Whether the client has sent bytes that were not read yet: closing would reset its connection. */
static bool
has_unread(const SXE *s)
{
    int bytes = 0;

    return ioctl(sxe_fd(s), FIONREAD, &bytes) == 0 && bytes > 0;
}

/* A connection whose handler calls sxe_http_stop is still in the state of its last event: let it
 * send its reply, which is its last one. */
static void
dismiss_connections(struct sxe_http *http, enum sxe__http_state state)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, http->connections, state);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (!http->connections[id].is_inside && !has_unread(http->connections[id].sxe))
            sxe__http_dismiss(&http->connections[id]);
    }
}

void
sxe_http_drain(struct sxe_http *http, void (*done)(struct sxe_http *))
{
    http->is_draining = true;
    add_done(http, done);
    while (http->listener_count > 0) {
        SXE *listener = http->listeners[--http->listener_count];

        sxe_io_accept_rest(listener);
        sxe_close(listener);
    }
    if (http->fastcgi != NULL)
        http->fastcgi_end(http);
    sxe__http_check_stopped(http);
}

void
sxe_http_stop(struct sxe_http *http, void (*done)(struct sxe_http *))
{
    http->is_stopping = true;
    sxe_http_drain(http, NULL);
    add_done(http, done);
    dismiss_connections(http, SXE__HTTP_FRESH);
    dismiss_connections(http, SXE__HTTP_IDLE);
    dismiss_connections(http, SXE__HTTP_HEAD);
    sxe__http_check_stopped(http);
}

static bool
owes_bytes(const struct sxe__http_connection *connection)
{
    return (connection->slot != NULL && connection->slot->progress == SXE__HTTP_BEGUN) ||
           sxe_io_has_output(connection->sxe);
}

void
sxe_http_break_off(struct sxe_http *http)
{
    for (unsigned state = SXE__HTTP_FRESH; state < SXE__HTTP_UPGRADED; state++) {
        SXE_POOL_WALKER walker;
        unsigned id;

        sxe_pool_walker_construct(&walker, http->connections, state);
        while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
            if (owes_bytes(&http->connections[id]))
                sxe_abort(http->connections[id].sxe);
        }
    }
}

size_t
sxe_http_plan_print(const struct sxe_http *http, FILE *out)
{
    const struct sxe_http_config *config = &http->config;
    size_t connections =
        sxe_pool_size(config->connections, sizeof(*http->connections), SXE__HTTP_STATES);
    size_t slots = config->connections * http->slot_size;

    if (out == NULL)
        return connections + slots;
    fprintf(out, "%-16s %10u x %7zu = %13zu bytes\n", "http connections", config->connections,
            sizeof(*http->connections), connections);
    fprintf(out, "%-16s %10u x %7zu = %13zu bytes of address space, memory as requests need it\n",
            "http requests", config->connections, http->slot_size, slots);
    return connections + slots;
}
