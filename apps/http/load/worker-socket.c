/* SPDX-License-Identifier: MIT
 *
 * What: opens all sockets (the ramp), and handles the opening and the end of a socket's connection.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "handshake.h"
#include "local-addresses.h"
#include "sxe-proxy.h"
#include "worker-private.h"

static void on_socket_connected(SXE *sxe);
static void on_socket_close(SXE *sxe);

/* ---- Errors and TCP_INFO ---- */

static enum load_unopened
unopened_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return LOAD_UNOPENED_REFUSED;
    case 0:
    case ECONNRESET:
    case EPIPE:
        return LOAD_UNOPENED_RESET;
    case ETIMEDOUT:
        return LOAD_UNOPENED_TIMED_OUT;
    case EMFILE:
    case ENFILE:
        return LOAD_UNOPENED_NO_DESCRIPTOR;
    case EADDRNOTAVAIL:
        return LOAD_UNOPENED_NO_PORT;
    case EPROTO:
        return LOAD_UNOPENED_TLS;
    default:
        return LOAD_UNOPENED_OTHER;
    }
}

static enum load_end
end_of(struct load__worker *worker, int error)
{
    switch (error) {
    case 0:
        return LOAD_END_CLOSED_EARLY;
    case ECONNRESET:
    case EPIPE:
        return LOAD_END_RESET;
    case ETIMEDOUT:
        return LOAD_END_TIMED_OUT;
    default:
        load__note_error(worker, error);
        return LOAD_END_OTHER;
    }
}

/* How many segments of the connection were sent again so far. Just after the connect these are
 * SYNs. */
static unsigned
segments_sent_again(const struct load__socket *socket)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);

    if (socket->worker->plan->unix_path != NULL)
        return 0;
    (void)getsockopt(sxe_fd(socket->sxe), IPPROTO_TCP, TCP_INFO, &info, &length);
    return info.tcpi_total_retrans;
}

static void
count_retransmits(const struct load__socket *socket)
{
    unsigned segments = segments_sent_again(socket);

    socket->worker->result->retransmits +=
        segments > socket->syn_retries ? segments - socket->syn_retries : 0;
}

/* ---- Connecting ---- */

static SXE *
new_sxe(const struct load__worker *worker, uint32_t id)
{
    const struct load_plan *plan = worker->plan;
    char local[64] = "";

    if (plan->unix_path != NULL)
        return sxe_new_unix(NULL, plan->unix_path, on_socket_connected, load__on_read,
                            on_socket_close);
    if (plan->local_addresses != NULL)
        load_local_addresses_text(plan->local_addresses,
                                  worker->shard + (uint64_t)id * worker->shards, local,
                                  sizeof(local));
    return sxe_new_tcp(NULL, local, 0, on_socket_connected, load__on_read, on_socket_close);
}

static int
connect_to_server(struct load__socket *socket, SXE *sxe)
{
    const struct load_plan *plan = socket->worker->plan;
    const struct load_requests *requests = socket->worker->requests;
    int result;

    if (plan->unix_path != NULL)
        return sxe_connect_unix(sxe);
    if (requests->ip != NULL)
        return sxe_connect(sxe, requests->ip, requests->port);
    result = sxe_connect(sxe, load__take_address(socket), plan->port);
    if (result < 0)
        load__address_failed(socket, -result);
    return result;
}

/* Begin to connect. 0 or an errno. */
static int
connect_load_socket(struct load__socket *socket)
{
    const struct load_plan *plan = socket->worker->plan;
    SXE *sxe = new_sxe(socket->worker, load__id(socket));
    int error = 0;

    if (sxe == NULL)
        return errno;
    SXE_USER_DATA(sxe) = socket;
    socket->is_connected = socket->has_replied = socket->is_ending = false;
    socket->failure = LOAD_ENDS;
    socket->connect_ns = sxe_time_ns();
    if (plan->tls.is_used)
        error = -load__shake_begin(socket, sxe);
    if (error == 0)
        error = -connect_to_server(socket, sxe);
    if (error == 0)
        socket->sxe = sxe;
    else
        sxe_close(sxe);
    return error;
}

/* Send the PROXY header. The client's address in it is the connection's own local address. */
static void
write_proxy(struct load__socket *socket)
{
    struct sxe_proxy proxy = {.version = socket->worker->plan->proxy, .command = SXE_PROXY_PROXY};
    socklen_t length = sizeof(proxy.source);
    char header[SXE_PROXY_WRITE_MAX];
    ssize_t n;

    (void)getsockname(sxe_fd(socket->sxe), (struct sockaddr *)&proxy.source, &length);
    (void)sxe_get_peer(socket->sxe, &proxy.destination);
    n = sxe_proxy_write(&proxy, header, sizeof(header));
    if (n < 0) {
        /* the addresses are not known: send a header without addresses */
        proxy = (struct sxe_proxy){.version = proxy.version, .command = SXE_PROXY_LOCAL};
        n = sxe_proxy_write(&proxy, header, sizeof(header));
    }
    (void)sxe_write(socket->sxe, header, (unsigned)n);
    socket->worker->result->bytes_sent += (uint64_t)n;
}

static void
count_syn(struct load__socket *socket)
{
    struct load_result *result = socket->worker->result;
    unsigned segments = segments_sent_again(socket);

    socket->syn_retries = segments < UINT8_MAX ? (uint8_t)segments : UINT8_MAX;
    result->syn_retries += segments > 0;
}

/* Use a connection that is open, and whose TLS handshake, if any, is done: send the queries that
 * wait for it. */
static void
use_connection(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    bool is_first = !socket->was_opened;

    load__address_opened(socket);
    load_histogram_record(&worker->result->connect, now_ns - socket->connect_ns);
    socket->is_connected = socket->was_opened = true;
    if (worker->plan->proxy != 0)
        write_proxy(socket);
    load__settle(socket);
    if (is_first) {
        worker->result->opened++;
        worker->progress_ns = now_ns;
        worker->connecting--;
        load__ramp_on(worker, now_ns);
        return;
    }
    worker->result->reopened++;
    worker->progress_ns = now_ns;
    if (!worker->is_running)
        return;
    load__send_again(socket, now_ns);
    if (socket->is_held_due && !socket->is_ending)
        load__send_held(socket);
    load__send_ready(socket, now_ns);
    load__arrive(worker, now_ns);
}

static void
on_socket_connected(SXE *sxe)
{
    struct load__socket *socket = SXE_USER_DATA(sxe);

    count_syn(socket);
    if (socket->worker->plan->tls.is_used)
        load__shake(socket);
    else
        use_connection(socket, sxe_time_ns());
}

/* Use the connections whose handshakes are done. A connection that failed meanwhile has sxe NULL;
 * it connects again in a later turn. Handshakes that begin here are looked at in the next turn. */
void
load__look_at_shaking(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    struct load__worker *worker = watcher->data;
    uint32_t at = worker->shaking_number;
    struct load__socket *socket;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    while ((socket = load__next_shaken(worker, &at)) != NULL)
        use_connection(socket, sxe_time_ns());
}

/* ---- The ramp ---- */

/* End the ramp: count the sockets that it has not tried to open as untried. */
static void
cut_ramp(struct load__worker *worker)
{
    worker->result->unopened[LOAD_UNOPENED_UNTRIED] += worker->number - worker->next;
    worker->next = worker->number;
}

static void
count_unopened(struct load__worker *worker, int error)
{
    const struct load_local_addresses *local = worker->plan->local_addresses;
    enum load_unopened kind = unopened_of(error);

    worker->result->unopened[kind]++;
    if (kind == LOAD_UNOPENED_OTHER)
        load__note_error(worker, error);
    /* End the ramp, because the next socket would fail, too, for lack of a descriptor, or of a port
     * at the only local address. */
    if (kind == LOAD_UNOPENED_NO_DESCRIPTOR ||
        (kind == LOAD_UNOPENED_NO_PORT && (local == NULL || local->number == 1)))
        cut_ramp(worker);
}

/* Open the next socket of the ramp. False: it has to be tried again later. */
static bool
open_next_socket(struct load__worker *worker, uint64_t now_ns)
{
    struct load__socket *socket = &worker->sockets[worker->next];
    int error = connect_load_socket(socket);

    /* for a unix socket EAGAIN means that the listener's backlog is full */
    if (error == EAGAIN && worker->plan->unix_path != NULL &&
        now_ns - worker->progress_ns < worker->plan->timeout_ns) {
        if (!worker->is_ramp_due)
            load__push(worker, now_ns + LOAD__OPEN_AGAIN, LOAD__RAMP, 0);
        worker->is_ramp_due = true;
        return false;
    }
    worker->next++;
    if (error == 0) {
        worker->connecting++;
        load__settle(socket);
        return true;
    }
    count_unopened(worker, error);
    return true;
}

static uint64_t
ramp_due_ns(const struct load__worker *worker)
{
    return worker->ramp_ns +
           (uint64_t)((double)worker->next / worker->ramp_rate * (double)SXE_NS_PER_SECOND);
}

static void
open_some(struct load__worker *worker, uint64_t now_ns)
{
    while (worker->connecting < worker->ramp && worker->next < worker->number) {
        if (!open_next_socket(worker, now_ns))
            return;
    }
}

/* Open the sockets that are due according to ramp_rate. Called only for a RAMP event, of which it
 * adds the next. */
static void
open_at_rate(struct load__worker *worker, uint64_t now_ns)
{
    while (worker->next < worker->number && ramp_due_ns(worker) <= now_ns) {
        if (!open_next_socket(worker, now_ns))
            return;
    }
    if (worker->next < worker->number)
        load__push(worker, ramp_due_ns(worker), LOAD__RAMP, 0);
    worker->is_ramp_due = worker->next < worker->number;
}

static void
end_ramp(struct load__worker *worker)
{
    worker->is_ramping = false;
    worker->next = 0;
    worker->result->connect_ns = sxe_time_ns() - worker->ramp_ns;
    load__ramp_over(worker);
}

void
load__ramp_on(struct load__worker *worker, uint64_t now_ns)
{
    if (worker->ramp_rate <= 0)
        open_some(worker, now_ns);
    if (worker->is_ramping && worker->connecting == 0 && worker->next == worker->number)
        end_ramp(worker);
}

void
load__ramp_tick(struct load__worker *worker, uint64_t now_ns)
{
    worker->is_ramp_due = false;
    if (worker->ramp_rate > 0)
        open_at_rate(worker, now_ns);
    load__ramp_on(worker, now_ns);
}

void
load__ramp(struct load__worker *worker)
{
    worker->is_ramping = worker->is_ramp_due = true;
    worker->ramp_ns = worker->progress_ns = sxe_time_ns();
    load__push(worker, worker->ramp_ns, LOAD__RAMP, 0);
}

/* ---- Ends ---- */

static void
ramp_failed(struct load__socket *socket, int error)
{
    struct load__worker *worker = socket->worker;
    uint64_t now_ns = sxe_time_ns();

    worker->connecting--;
    load__settle(socket);
    count_unopened(worker, error);
    if (error != ETIMEDOUT)
        worker->progress_ns = now_ns;
    else if (now_ns - worker->progress_ns >= worker->plan->timeout_ns)
        cut_ramp(worker);
    load__ramp_on(worker, now_ns);
}

static bool
may_reopen(const struct load__socket *socket)
{
    const struct load__worker *worker = socket->worker;

    return socket->state == LOAD_SOCKET_LOST && worker->is_offering &&
           (worker->left + worker->waiting + socket->again > 0 || socket->is_held);
}

static void
connect_again_later(struct load__socket *socket)
{
    load__settle(socket);
    if (may_reopen(socket))
        load__push(socket->worker, sxe_time_ns() + LOAD__REOPEN_NS, LOAD__REOPEN, load__id(socket));
}

static void
skip_one_socket(struct load__socket *socket)
{
    struct load__worker *worker = socket->worker;

    worker->ended_ns = sxe_time_ns();
    if (socket->again > 0) {
        socket->again--;
        worker->again_number--;
        worker->result->waiting--;
    } else {
        socket->left--;
        worker->left--;
        load__count_offered(worker, worker->ended_ns);
    }
    worker->result->skipped[LOAD_SKIP_NOT_OPENED]++;
}

/* A socket could not connect again. If each socket has its own number of queries (-n), that costs
 * the socket a query, otherwise only time. */
static void
reopen_failed(struct load__socket *socket, int error)
{
    struct load__worker *worker = socket->worker;

    if (unopened_of(error) == LOAD_UNOPENED_OTHER)
        load__note_error(worker, error);
    worker->result->not_reopened++;
    if (worker->is_running && worker->is_offering && worker->plan->stop == LOAD_STOP_PER_SOCKET &&
        socket->left + socket->again > 0 && !socket->is_held)
        skip_one_socket(socket);
    connect_again_later(socket);
    load__end_when_done(worker);
}

void
load__reopen(struct load__socket *socket)
{
    int error;

    if (!may_reopen(socket))
        return;
    error = connect_load_socket(socket);
    if (error == 0)
        load__settle(socket);
    else
        reopen_failed(socket, error);
}

/* How the queries after the oldest one end: no byte of their replies has come, so these replies
 * cannot be bad or short. */
static enum load_end
end_of_others(enum load_end end)
{
    return end == LOAD_END_SHORT_BODY || end == LOAD_END_BAD_REPLY || end == LOAD_END_BAD_BODY
               ? LOAD_END_CLOSED_EARLY
               : end;
}

static void
end_all_in_flight(struct load__socket *socket, int error)
{
    struct load__worker *worker = socket->worker;
    enum load_end end = (enum load_end)socket->failure;
    uint64_t now_ns = sxe_time_ns();

    if (socket->in_flight == 0)
        return;
    if (end == LOAD_ENDS)
        end = end_of(worker, error);
    if (end == LOAD_END_CLOSED_EARLY && socket->reply.part == LOAD_REPLY_UNTIL_CLOSE) {
        load__end_with_reply(socket, now_ns);
    } else {
        if (end == LOAD_END_CLOSED_EARLY && socket->reply.part != LOAD_REPLY_HEAD)
            end = LOAD_END_SHORT_BODY;
        load__end_without_reply(socket, end, now_ns);
    }
    while (socket->in_flight > 0)
        load__end_without_reply(socket, end_of_others(end), now_ns);
}

static void
lose_socket(struct load__socket *socket, int error)
{
    end_all_in_flight(socket, error);
    socket->sxe = NULL;
    socket->is_connected = false;
    load__settle(socket);
    if (socket->has_replied)
        load__reopen(socket);
    else
        connect_again_later(socket);
    load__end_when_done(socket->worker);
}

static void
on_socket_close(SXE *sxe)
{
    struct load__socket *socket = SXE_USER_DATA(sxe);
    int error = sxe_error(sxe);

    load__note_failure(socket, sxe);
    if (socket->is_connected) {
        count_retransmits(socket);
        lose_socket(socket, error);
        return;
    }
    socket->sxe = NULL;
    load__address_failed(socket, error);
    if (socket->was_opened)
        reopen_failed(socket, error);
    else
        ramp_failed(socket, error);
}

/* When the loop ends, connections get a FIN. But connections with queries in flight get a reset: it
 * tells the server that nobody waits for the replies, and leaves no port in TIME_WAIT. */
void
load__prepare_close(struct load__worker *worker)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    for (uint32_t id = 0; id < worker->number; id++) {
        const struct load__socket *socket = &worker->sockets[id];

        if (socket->sxe == NULL || !socket->is_connected)
            continue;
        count_retransmits(socket);
        if (socket->in_flight == 0 && !worker->plan->is_aborting)
            continue;
        (void)setsockopt(sxe_fd(socket->sxe), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
}
