/* SPDX-License-Identifier: MIT
 *
 * What: a web server that says hello, over lib-sxe and the smallest honest HTTP/1.x.
 * Place: read it after sxe.h; it is what a server on lib-sxe looks like: options, plan, listen,
 * on_read.
 */
#include "options.h"
#include "reply.h"
#include "request.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sxe.h"

#define IDLE_TIMEOUT_MS  75000u /* between requests */
#define HEAD_TIMEOUT_MS  20000u /* from a request's first byte to its last */
#define STALL_TIMEOUT_MS 60000u /* a peer that does not read */

/* What a connection carries from one event to the next. */
struct connection {
    uint32_t body; /* bytes of the current request's body still to come */
};

static void
refuse(SXE *this, unsigned status)
{
    struct httpd_reply reply = httpd_reply_refusal(status, sxe_time_turn_ns());

    /* A reply that cannot be queued is for a peer that does not read: closing is all that is left.
     */
    (void)!sxe_write(this, reply.base, reply.length);
    sxe_close_lingering(this);
}

/* Answer the request at the front of what is unread; the bytes it took, or 0 when there is no whole
 * one. */
static unsigned
answer(SXE *this, const char *data, unsigned length)
{
    struct connection *connection = sxe_extra(this);
    struct httpd_request request;
    struct httpd_reply reply;
    int head = httpd_request_parse(data, length, &request);

    if (head == 0)
        return 0;
    if (head < 0) {
        refuse(this, request.status);
        return length;
    }
    reply = httpd_reply_hello(&request, sxe_time_turn_ns());
    connection->body = request.body;
    if (sxe_write(this, reply.base, reply.length) < 0) {
        sxe_close(this);
        return length;
    }
    if (!request.keep_alive)
        sxe_close_lingering(this);
    return (unsigned)head;
}

static void
on_read(SXE *this, int length)
{
    struct connection *connection = sxe_extra(this);
    unsigned unread = (unsigned)SXE_BUF_USED(this);
    const char *data = SXE_BUF(this);
    unsigned taken = 0;

    /* The peer's half-close: it still gets its replies. */
    if (length == 0) {
        sxe_close(this);
        return;
    }
    while (taken < unread && sxe_get_state(this) < SXE_STATE_CLOSING) {
        unsigned part = unread - taken;

        if (connection->body > 0) {
            part = part < connection->body ? part : connection->body;
            connection->body -= part;
        } else {
            part = answer(this, data + taken, part);
        }
        if (part == 0)
            break;
        taken += part;
    }
    sxe_consume(this, taken);
}

static void
on_signal(struct sxe_signal *watch)
{
    SXE_UNUSED_PARAMETER(watch);
    sxe_stop();
}

/* Registered before anything is opened; the listener is one more socket. */
static void
make_plan(const struct httpd_options *options)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.timeout_ms[SXE_STATE_IDLE] = IDLE_TIMEOUT_MS;
    config.timeout_ms[SXE_STATE_READING] = HEAD_TIMEOUT_MS;
    config.timeout_ms[SXE_STATE_STARVED] = HEAD_TIMEOUT_MS;
    config.timeout_ms[SXE_STATE_WRITING] = STALL_TIMEOUT_MS;
    sxe_configure(&config);
    sxe_register(options->connections + 1, sizeof(struct connection));
}

static int
listen_at(const struct httpd_options *options)
{
    SXE *listener = sxe_new_tcp(NULL, options->ip, options->port, NULL, on_read, NULL);
    bool is_ipv6 = strchr(options->ip, ':') != NULL;
    int result = sxe_listen(listener);

    if (result < 0)
        return result;
    sxe_set_half_close(listener, true);
    printf("listening on http://%s%s%s:%u/\n", is_ipv6 ? "[" : "", options->ip, is_ipv6 ? "]" : "",
           sxe_local_port(listener));
    fflush(stdout);
    return 0;
}

static int
serve(const struct httpd_options *options)
{
    struct sxe_signal stop[2];
    int result = sxe_init();

    if (result < 0) {
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(-result));
        return EXIT_FAILURE;
    }
    sxe_signal_start(&stop[0], SIGINT, on_signal);
    sxe_signal_start(&stop[1], SIGTERM, on_signal);
    result = listen_at(options);
    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot listen on %s port %u: %s\n", options->ip, options->port,
                strerror(-result));
    else
        sxe_run();
    sxe_signal_stop(&stop[0]);
    sxe_signal_stop(&stop[1]);
    sxe_fini();
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    struct httpd_options options;
    int result = httpd_options_parse(&options, argc, argv);

    if (result >= 0)
        return result;
    make_plan(&options);
    if (!options.plan)
        return serve(&options);
    sxe_plan_print(stdout);
    return EXIT_SUCCESS;
}
