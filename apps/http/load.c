/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "reply.h"
#include "sxe-http-client.h"
#include "sxe.h"

struct load {
    struct http_result *result;
    void (*on_open)(const struct http_result *);
    SXE **sockets; /* by id, which is by order of opening; NULL: not open */
    char request[256];
    unsigned request_length;
    bool ramping;
    uint32_t next;       /* the next socket to connect; later, to begin its queries */
    uint32_t connecting; /* sockets */
    uint32_t busy;       /* open sockets whose queries are not all done */
    uint64_t phase_ns;   /* when this phase began */
    uint64_t progress_ns;
    struct sxe_timer go_on; /* with the ramp, or with the first queries */
    struct sxe_timer patience;
    struct sxe_signal interrupt;
};

/* What a socket carries from one event to the next: its extra bytes. */
struct connection {
    struct http_reply reply;
    uint64_t since_ns; /* when the connect, later the query in flight, began */
    uint32_t left;     /* queries that are not done */
    bool is_connected;
    bool in_flight;
    uint8_t failure; /* enum http_failure: why we ended it; HTTP_FAILURES: we did not */
};

static enum http_failure
failure_of(struct http_result *result, int error)
{
    switch (error) {
    case 0:
        return HTTP_CLOSED_EARLY;
    case ECONNREFUSED:
        return HTTP_REFUSED;
    case ECONNRESET:
    case EPIPE:
        return HTTP_RESET;
    case ETIMEDOUT:
        return HTTP_TIMED_OUT;
    case EMFILE:
    case ENFILE:
        return HTTP_NO_DESCRIPTOR;
    case EADDRNOTAVAIL:
        return HTTP_NO_PORT;
    default:
        if (result->error == 0)
            result->error = error;
        return HTTP_OTHER;
    }
}

static double
seconds_since(uint64_t ns)
{
    return (double)(sxe_time_ns() - ns) / (double)SXE_NS_PER_SECOND;
}

/* ---- Queries ---- */

static void
end_when_done(struct load *load)
{
    if (!load->ramping && load->busy == 0)
        sxe_stop();
}

/* on_close does the counting. */
static void
fail(SXE *this, enum http_failure failure)
{
    struct connection *connection = sxe_extra(this);

    connection->failure = (uint8_t)failure;
    sxe_abort(this);
}

static void
send_query(SXE *this, uint64_t now_ns)
{
    struct load *load = SXE_USER_DATA(this);
    struct connection *connection = sxe_extra(this);

    connection->since_ns = now_ns;
    connection->in_flight = true;
    /* There is no room only if the server answers what it does not read; when it stops, that is a
     * timeout. */
    (void)sxe_write(this, load->request, load->request_length);
}

/* The reply in flight is whole. */
static void
count_reply(struct http_result *result, struct connection *connection, uint64_t now_ns)
{
    unsigned status = connection->reply.status;

    http_histogram_record(&result->service, now_ns - connection->since_ns);
    if (status >= 200 && status < 300)
        result->ok++;
    else if (result->queries[HTTP_BAD_STATUS]++ == 0)
        result->bad_status = status;
    connection->in_flight = false;
    connection->left--;
}

static void
replied(SXE *this)
{
    struct load *load = SXE_USER_DATA(this);
    struct connection *connection = sxe_extra(this);
    bool keep_alive = connection->reply.keep_alive;
    uint64_t now_ns = sxe_time_ns();

    count_reply(load->result, connection, now_ns);
    connection->reply.part = HTTP_REPLY_HEAD;
    if (connection->left == 0) {
        load->busy--;
        end_when_done(load);
    } else if (keep_alive) {
        send_query(this, now_ns);
    } else {
        connection->failure = HTTP_CLOSED_EARLY;
        sxe_close(this);
    }
}

static void
on_read(SXE *this, int length)
{
    struct load *load = SXE_USER_DATA(this);
    struct connection *connection = sxe_extra(this);
    size_t unread = (size_t)SXE_BUF_USED(this);
    ssize_t taken = -1;

    SXE_UNUSED_PARAMETER(length);
    if (connection->left == 0) {
        SXE_BUF_CLEAR(this);
        return;
    }
    load->progress_ns = sxe_time_turn_ns();
    if (connection->in_flight)
        taken = http_reply_scan(&connection->reply, SXE_BUF(this), unread);
    if (taken >= 0)
        sxe_consume(this, (unsigned)taken);
    if (connection->reply.part == HTTP_REPLY_WHOLE && (size_t)taken == unread)
        replied(this);
    else if (taken < 0 || connection->reply.part == HTTP_REPLY_WHOLE)
        fail(this, HTTP_BAD_REPLY);
}

/* The first queries, in order; a batch at a time, so that replies are read between them and do not
 * wait for us. */
static void
begin_queries(struct load *load)
{
    uint32_t sockets = load->result->options->sockets;

    for (unsigned batch = HTTP_LOAD_BATCH; batch > 0 && load->next < sockets; load->next++) {
        if (load->sockets[load->next] == NULL)
            continue;
        send_query(load->sockets[load->next], sxe_time_ns());
        batch--;
    }
    if (load->next < sockets)
        sxe_timer_start(&load->go_on);
}

/* ---- The ramp ---- */

static void on_connected(SXE *this);
static void on_close(SXE *this);

static void
count_unopened(struct load *load, enum http_failure failure, uint32_t sockets)
{
    load->result->sockets[failure] += sockets;
    load->result->queries[HTTP_NOT_OPENED] += (uint64_t)sockets * load->result->options->queries;
}

/* What is not tried yet never will be. */
static void
cut_ramp(struct load *load, enum http_failure failure)
{
    count_unopened(load, failure, load->result->options->sockets - load->next);
    load->next = load->result->options->sockets;
}

static void
open_next(struct load *load)
{
    const struct http_options *options = load->result->options;
    SXE *this = sxe_new_tcp(NULL, "", 0, on_connected, on_read, on_close);
    struct connection *connection = sxe_extra(this);
    enum http_failure failure;
    int error;

    SXE_USER_DATA(this) = load;
    connection->since_ns = sxe_time_ns();
    connection->left = options->queries;
    connection->failure = HTTP_FAILURES;
    load->next++;
    error = -sxe_connect(this, options->ip, options->port);
    if (error == 0) {
        load->sockets[SXE_ID(this)] = this;
        load->connecting++;
        return;
    }
    sxe_close(this);
    failure = failure_of(load->result, error);
    count_unopened(load, failure, 1);
    /* The next one would not get a descriptor, or a port, either. */
    if (failure == HTTP_NO_DESCRIPTOR || failure == HTTP_NO_PORT)
        cut_ramp(load, failure);
}

static void
end_ramp(struct load *load)
{
    load->ramping = false;
    load->next = 0;
    load->result->connect_s = seconds_since(load->phase_ns);
    load->on_open(load->result);
    load->phase_ns = load->progress_ns = sxe_time_ns();
    sxe_timer_start(&load->go_on);
    end_when_done(load);
}

static void
ramp_on(struct load *load)
{
    while (load->connecting < HTTP_LOAD_RAMP && load->next < load->result->options->sockets)
        open_next(load);
    if (load->connecting == 0)
        end_ramp(load);
}

static void
on_connected(SXE *this)
{
    struct load *load = SXE_USER_DATA(this);
    struct connection *connection = sxe_extra(this);
    uint64_t now_ns = sxe_time_ns();

    http_histogram_record(&load->result->connect, now_ns - connection->since_ns);
    connection->is_connected = true;
    load->progress_ns = now_ns;
    load->result->opened++;
    load->busy++;
    load->connecting--;
    ramp_on(load);
}

/* ---- Ends ---- */

static void
not_connected(struct load *load, enum http_failure failure)
{
    count_unopened(load, failure, 1);
    load->connecting--;
    if (failure != HTTP_TIMED_OUT)
        load->progress_ns = sxe_time_turn_ns();
    ramp_on(load);
}

static void
on_close(SXE *this)
{
    struct load *load = SXE_USER_DATA(this);
    struct http_result *result = load->result;
    struct connection *connection = sxe_extra(this);
    enum http_failure failure = (enum http_failure)connection->failure;

    load->sockets[SXE_ID(this)] = NULL;
    if (failure == HTTP_FAILURES)
        failure = failure_of(result, sxe_error(this));
    if (!connection->is_connected) {
        not_connected(load, failure);
        return;
    }
    if (connection->left == 0)
        return;
    if (failure == HTTP_CLOSED_EARLY && connection->reply.part == HTTP_REPLY_UNTIL_CLOSE)
        count_reply(result, connection, sxe_time_ns());
    result->queries[failure] += connection->left;
    load->busy--;
    end_when_done(load);
}

static void
give_up(struct load *load)
{
    for (uint32_t i = 0; i < load->result->options->sockets; i++) {
        SXE *this = load->sockets[i];
        const struct connection *connection = this == NULL ? NULL : sxe_extra(this);

        if (connection != NULL && connection->left > 0 && connection->is_connected != load->ramping)
            fail(this, HTTP_TIMED_OUT);
    }
    if (load->ramping)
        cut_ramp(load, HTTP_TIMED_OUT);
}

static void
on_patience(struct sxe_timer *timer)
{
    struct load *load = timer->user;
    uint64_t timeout_ns = load->result->options->timeout_ms * SXE_NS_PER_MS;
    uint64_t idle_ns = sxe_time_ns() - load->progress_ns;

    if (idle_ns >= timeout_ns) {
        give_up(load);
        idle_ns = 0;
    }
    sxe_timer_init(timer, on_patience, (double)(timeout_ns - idle_ns) / (double)SXE_NS_PER_SECOND,
                   0);
    sxe_timer_start(timer);
}

static void
on_go_on(struct sxe_timer *timer)
{
    struct load *load = timer->user;

    if (load->ramping)
        ramp_on(load);
    else
        begin_queries(load);
}

static void
on_interrupt(struct sxe_signal *watch)
{
    struct load *load = watch->user;

    load->result->interrupted = true;
    sxe_stop();
}

/* ---- The run ---- */

/* What an interrupted run leaves open, and the proof that nothing was lost or counted twice. */
static void
close_accounts(struct load *load)
{
    struct http_result *result = load->result;
    const struct http_options *options = result->options;
    uint64_t sockets = result->opened;
    uint64_t queries = result->ok;

    for (uint32_t i = 0; i < options->sockets; i++) {
        const struct connection *connection;

        if (load->sockets[i] == NULL)
            continue;
        connection = sxe_extra(load->sockets[i]);
        result->untried += !connection->is_connected;
        result->in_flight += connection->in_flight;
        result->unsent += connection->left - connection->in_flight;
    }
    if (load->ramping) {
        result->untried += options->sockets - load->next;
        result->unsent += (uint64_t)(options->sockets - load->next) * options->queries;
    }
    for (unsigned i = 0; i < HTTP_FAILURES; i++) {
        sockets += result->sockets[i];
        queries += result->queries[i];
    }
    sockets += result->untried;
    queries += result->in_flight + result->unsent;
    SXE_ASSERT(sockets == options->sockets, "%llu of %u sockets are accounted for",
               (unsigned long long)sockets, options->sockets);
    SXE_ASSERT(queries == (uint64_t)options->sockets * options->queries,
               "%llu of %u * %u queries are accounted for", (unsigned long long)queries,
               options->sockets, options->queries);
}

static void
write_request(struct load *load, const struct http_options *options)
{
    const struct sxe_http_pair fields[] = {
        {sxe_http_span("User-Agent"), sxe_http_span("sxe-http/" SXE_VERSION)},
        {sxe_http_span("Accept"), sxe_http_span("*/*")},
    };
    const struct sxe_http_request_head request = {
        .target = sxe_http_span("/"),
        .host = sxe_http_span(options->authority),
        .fields = fields,
        .fields_number = 2,
    };
    ssize_t length = sxe_http_request_write(&request, load->request, sizeof(load->request));

    SXE_ASSERT(length > 0, "an address is a host: %s", options->authority);
    load->request_length = (unsigned)length;
}

static int
prepare(struct load *load, const struct http_options *options)
{
    static const struct sxe_http_limits limits = SXE_HTTP_LIMITS;
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    write_request(load, options);
    load->sockets = calloc(options->sockets, sizeof(SXE *));
    if (load->sockets == NULL)
        return -ENOMEM;
    config.chunk_size = limits.head_max;
    config.timeout_ms[SXE_STATE_CONNECTING] = options->timeout_ms;
    sxe_configure(&config);
    sxe_register(options->sockets, sizeof(struct connection));
    return sxe_init();
}

static void
run(struct load *load)
{
    load->ramping = true;
    load->phase_ns = load->progress_ns = sxe_time_ns();
    load->go_on.user = load->patience.user = load->interrupt.user = load;
    sxe_timer_init(&load->go_on, on_go_on, 0, 0);
    sxe_timer_start(&load->go_on);
    sxe_timer_init(&load->patience, on_patience, load->result->options->timeout_ms / 1000.0, 0);
    sxe_timer_start(&load->patience);
    sxe_signal_start(&load->interrupt, SIGINT, on_interrupt);
    sxe_run();
    sxe_signal_stop(&load->interrupt);
    sxe_timer_stop(&load->patience);
    sxe_timer_stop(&load->go_on);
}

int
http_load_run(struct http_result *result, const struct http_options *options,
              void (*on_open)(const struct http_result *result))
{
    struct load load = {.result = result, .on_open = on_open};
    int error;

    *result = (struct http_result){.options = options};
    error = prepare(&load, options);
    if (error == 0) {
        run(&load);
        *(load.ramping ? &result->connect_s : &result->query_s) = seconds_since(load.phase_ns);
        close_accounts(&load);
        if (load.ramping)
            on_open(result);
        sxe_fini();
    }
    free(load.sockets);
    return error;
}
