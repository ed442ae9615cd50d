/* SPDX-License-Identifier: MIT
 *
 * A small HTTP server for --metrics.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "metrics.h"

#include "sxe-always-internal.h"

#define FIELDS_MAX 64

/* ---- Opening and closing ---- */

int
load_metrics_open(struct load_metrics *metrics, const struct load_plan *plan)
{
    struct sockaddr_storage address;
    socklen_t length = 0;
    const char *problem = load_metrics_parse(plan->metrics, &address, &length);
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address;

    metrics->plan = plan;
    metrics->path[0] = '\0';
    metrics->length = 0;
    metrics->events = LOAD_METRICS_EVENTS;
    for (unsigned i = 0; i < LOAD_METRICS_CONNECTIONS; i++)
        metrics->connections[i].fd = -1;
    metrics->fd = SXE_NEVER(problem != NULL) ? -EINVAL : load_metrics_listen(&address, length);
    if (metrics->fd < 0)
        return metrics->fd;
    if (address.ss_family == AF_UNIX)
        memcpy(metrics->path, un->sun_path, sizeof(metrics->path));
    return 0;
}

static void
close_connection(struct load_metrics_connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
}

void
load_metrics_forget(struct load_metrics *metrics)
{
    for (unsigned i = 0; i < LOAD_METRICS_CONNECTIONS; i++)
        if (metrics->connections[i].fd >= 0)
            close_connection(&metrics->connections[i]);
    if (metrics->fd >= 0)
        close(metrics->fd);
    metrics->fd = -1;
}

void
load_metrics_close(struct load_metrics *metrics)
{
    if (metrics->path[0] != '\0')
        unlink(metrics->path);
    load_metrics_forget(metrics);
}

void
load_metrics_name(const struct load_metrics *metrics, char *name, size_t size)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;
    socklen_t length = sizeof(address);
    char ip[INET6_ADDRSTRLEN] = "";

    getsockname(metrics->fd, (struct sockaddr *)&address, &length);
    if (address.ss_family == AF_INET)
        snprintf(name, size, "http://%s:%u/metrics",
                 inet_ntop(AF_INET, &in4->sin_addr, ip, sizeof(ip)), ntohs(in4->sin_port));
    else if (address.ss_family == AF_INET6)
        snprintf(name, size, "http://[%s]:%u/metrics",
                 inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip)), ntohs(in6->sin6_port));
    else
        snprintf(name, size, "%s", metrics->plan->metrics);
}

void
load_metrics_tick(struct load_metrics *metrics, uint64_t now_ns)
{
    metrics->length = 0;
    metrics->events = LOAD_METRICS_EVENTS;
    for (unsigned i = 0; i < LOAD_METRICS_CONNECTIONS; i++) {
        struct load_metrics_connection *connection = &metrics->connections[i];

        if (connection->fd >= 0 && now_ns >= connection->until_ns)
            close_connection(connection);
    }
}

/* ---- One connection ---- */

static void
reply_with_text(struct load_metrics_connection *connection, const char *status, const char *more,
                const char *type, const char *body, bool is_head)
{
    size_t size = sizeof(connection->reply);
    int length = snprintf(connection->reply, size,
                          "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                          "Connection: close\r\n\r\n%s",
                          status, type, strlen(body), more, is_head ? "" : body);

    /* every reply fits into the buffer, so an error cannot happen */
    connection->length = SXE_NEVER(length < 0 || (size_t)length >= size) ? 0 : (size_t)length;
}

static void
refuse_scrape(struct load_metrics_connection *connection, const char *status, const char *more,
              const char *sentence)
{
    reply_with_text(connection, status, more, "text/plain", sentence, false);
}

static const char *
metrics_text_of(struct load_metrics *metrics, const struct load_metrics_figures *figures)
{
    if (metrics->length == 0)
        metrics->length = load_metrics_text(metrics->text, metrics->plan, figures);
    return metrics->text;
}

static bool
is_for_metrics(const struct sxe_http_parser *parser, const char *head)
{
    static const char path[] = "/metrics";
    const char *target = head + parser->target.offset;
    size_t length = sizeof(path) - 1;

    return parser->target.length >= length && memcmp(target, path, length) == 0 &&
           (parser->target.length == length || target[length] == '?');
}

static void
answer_scrape(struct load_metrics *metrics, struct load_metrics_connection *connection,
              const struct sxe_http_parser *parser, const struct load_metrics_figures *figures)
{
    if (!is_for_metrics(parser, connection->head))
        refuse_scrape(connection, "404 Not Found", "", "The figures are at /metrics.\n");
    else if (parser->method != SXE_HTTP_GET && parser->method != SXE_HTTP_HEAD)
        refuse_scrape(connection, "405 Method Not Allowed", "Allow: GET, HEAD\r\n",
                      "The figures can be read only.\n");
    else
        reply_with_text(connection, "200 OK", "", LOAD_METRICS_TYPE,
                        metrics_text_of(metrics, figures), parser->method == SXE_HTTP_HEAD);
}

/* Parse all bytes that were received so far, again from their beginning. That is cheap, because
 * heads are short, and mostly come in one piece. */
static void
parse_request_bytes(struct load_metrics *metrics, struct load_metrics_connection *connection,
                    const struct load_metrics_figures *figures)
{
    static const struct sxe_http_limits limits = {LOAD_METRICS_HEAD_MAX - 1,
                                                  LOAD_METRICS_HEAD_MAX - 1, FIELDS_MAX};
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_http_parser parser;
    int result;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS_MAX, &limits);
    result = sxe_http_parse(&parser, connection->head, connection->got);
    if (result > 0)
        answer_scrape(metrics, connection, &parser, figures);
    else if (result < 0 && sxe_http_refusal_status(parser.refusal) == 431)
        refuse_scrape(connection, "431 Request Header Fields Too Large", "",
                      "The head is too large.\n");
    else if (result < 0)
        refuse_scrape(connection, "400 Bad Request", "", "This is no request of HTTP/1.1.\n");
}

/* Whether a send or recv that failed can be tried again later. */
static bool
is_later(ssize_t result)
{
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

static void
write_reply(struct load_metrics_connection *connection)
{
    ssize_t sent = send(connection->fd, connection->reply + connection->sent,
                        connection->length - connection->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (is_later(sent))
        return;
    if (sent < 0) {
        close_connection(connection);
        return;
    }
    connection->sent += (size_t)sent;
    if (connection->sent < connection->length)
        return;
    /* Do not close yet: if there are unread bytes, a close sends a reset, and the peer may lose the
     * reply. Read until the peer closes. */
    connection->is_ending = true;
    shutdown(connection->fd, SHUT_WR);
}

/* Read the bytes of a connection. If the connection is ending, discard them. */
static void
read_more_bytes(struct load_metrics *metrics, struct load_metrics_connection *connection,
                const struct load_metrics_figures *figures)
{
    size_t at = connection->is_ending ? 0 : connection->got;
    ssize_t got =
        recv(connection->fd, connection->head + at, sizeof(connection->head) - at, MSG_DONTWAIT);

    if (is_later(got))
        return;
    if (got <= 0) {
        close_connection(connection);
        return;
    }
    if (connection->is_ending)
        return;
    connection->got += (size_t)got;
    parse_request_bytes(metrics, connection, figures);
    if (connection->length > 0)
        write_reply(connection);
}

/* ---- All connections ---- */

static bool
is_writing(const struct load_metrics_connection *connection)
{
    return connection->length > 0 && !connection->is_ending;
}

/* Find a free connection. There is one, because load_metrics_poll polls the listener only if there
 * is one. */
static struct load_metrics_connection *
free_connection(struct load_metrics *metrics)
{
    struct load_metrics_connection *connection = metrics->connections;

    while (connection->fd >= 0)
        connection++;
    return connection;
}

static void
take_connection(struct load_metrics *metrics, uint64_t now_ns)
{
    struct load_metrics_connection *connection = free_connection(metrics);
    int fd = accept4(metrics->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return;
    connection->fd = fd;
    connection->is_ending = false;
    connection->got = connection->length = connection->sent = 0;
    connection->until_ns = now_ns + LOAD_METRICS_PATIENCE_NS;
}

/* Fill in the descriptors to poll. If all events of this second were used, none is polled. If no
 * connection is free, the listener is not polled. */
void
load_metrics_poll(const struct load_metrics *metrics, struct pollfd *fds)
{
    bool has_free = false;

    for (unsigned i = 0; i < LOAD_METRICS_CONNECTIONS; i++) {
        const struct load_metrics_connection *connection = &metrics->connections[i];

        has_free |= connection->fd < 0;
        fds[1 + i] = (struct pollfd){metrics->events > 0 ? connection->fd : -1,
                                     is_writing(connection) ? POLLOUT : POLLIN, 0};
    }
    fds[0] = (struct pollfd){has_free && metrics->events > 0 ? metrics->fd : -1, POLLIN, 0};
}

void
load_metrics_serve(struct load_metrics *metrics, const struct pollfd *fds, uint64_t now_ns,
                   const struct load_metrics_figures *figures)
{
    for (unsigned i = 0; i < LOAD_METRICS_CONNECTIONS; i++) {
        struct load_metrics_connection *connection = &metrics->connections[i];

        if (fds[1 + i].revents == 0)
            continue;
        metrics->events -= metrics->events > 0;
        if (is_writing(connection))
            write_reply(connection);
        else
            read_more_bytes(metrics, connection, figures);
    }
    if (fds[0].revents == 0)
        return;
    metrics->events -= metrics->events > 0;
    take_connection(metrics, now_ns);
}
