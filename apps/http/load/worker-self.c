/* SPDX-License-Identifier: MIT
 *
 * What: measures the client itself (its CPU time, and how late it is), updates figures that are
 * computed on demand, and sends messages to the parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker-private.h"

#define STATES_NS (50 * SXE_NS_PER_MS)

/* ---- CPU ---- */

static uint64_t
ns_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * SXE_NS_PER_SECOND + (uint64_t)time.tv_usec * SXE_NS_PER_US;
}

/* How long this thread has waited for a CPU: the second number of schedstat. 0: the kernel has no
 * schedstat. */
static uint64_t
read_run_queue_ns(void)
{
    char text[128];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    char *second;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    second = strchr(text, ' ');
    return second == NULL ? 0 : strtoull(second, NULL, 10);
}

void
load__start_accounts(struct load__worker *worker)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_THREAD, &usage);
    worker->cpu_user_ns = ns_of(usage.ru_utime);
    worker->cpu_system_ns = ns_of(usage.ru_stime);
    worker->run_queue_ns = read_run_queue_ns();
}

static void
look_at_cpu(struct load__worker *worker)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_THREAD, &usage);
    worker->result->cpu_user_ns = load_later_part(ns_of(usage.ru_utime), worker->cpu_user_ns);
    worker->result->cpu_system_ns = load_later_part(ns_of(usage.ru_stime), worker->cpu_system_ns);
    worker->result->run_queue_ns = load_later_part(read_run_queue_ns(), worker->run_queue_ns);
}

/* ---- The state now ---- */

static void
look_at_states(struct load__worker *worker)
{
    for (unsigned i = 0; i < LOAD_SOCKET_STATES; i++)
        worker->result->in_state[i] = sxe_pool_get_count(worker->sockets, i);
}

static void
look_at_self(struct load__worker *worker, uint64_t now_ns)
{
    look_at_states(worker);
    if (!worker->is_running)
        return;
    load_result_copy_times(worker->result, worker->is_paced);
    load__count_waiting(worker, now_ns);
    worker->result->elapsed_ns =
        load__since_start(worker, now_ns < worker->end_ns ? now_ns : worker->end_ns);
}

void
load__bring_up_to_date(struct load__worker *worker, uint64_t now_ns)
{
    look_at_self(worker, now_ns);
    if (worker->is_running)
        look_at_cpu(worker);
}

/* ---- Turns of the loop ---- */

static void
on_turn_begins(struct ev_loop *loop, ev_check *watcher, int events)
{
    struct load__worker *worker = watcher->data;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    worker->turn_ns = sxe_time_turn_ns();
}

/* Whether the turn did nothing: no byte came, nothing was sent, and the loop did not wait, because
 * a tick is near. The time of such a turn is spare time. */
static bool
was_spun(struct load__worker *worker)
{
    bool is_empty = worker->result->sent == worker->turn_sent &&
                    worker->progress_ns == worker->turn_progress_ns;

    worker->turn_sent = worker->result->sent;
    worker->turn_progress_ns = worker->progress_ns;
    return is_empty && worker->ticker.is_spinning;
}

/* If the turn began much later than expected, record by how much: the process was stopped (and
 * SIGCONT ended its wait before any event came), or it got no CPU. */
static void
count_wait(struct load__worker *worker)
{
    uint64_t due_ns = worker->turn_due_ns, end_ns = worker->turn_end_ns;
    uint64_t still_ns = load_later_part(worker->turn_ns, due_ns > end_ns ? due_ns : end_ns);

    if (still_ns > LOAD__STILL_NS)
        load_histogram_record(&worker->result->loop_lag, still_ns);
}

static void
count_worker_turn(struct load__worker *worker, uint64_t now_ns)
{
    uint64_t lag_ns = load_later_part(now_ns, worker->turn_ns);
    uint64_t spun_ns = load_later_part(now_ns, worker->turn_end_ns);

    count_wait(worker);
    /* Do not record turns that did nothing: they are so many that they would hide the slow ones. */
    if (!was_spun(worker) || lag_ns > LOAD__STILL_NS)
        load_histogram_record(&worker->result->loop_lag, lag_ns);
    else
        worker->result->spun_ns += spun_ns < LOAD__SPUN_MAX ? spun_ns : LOAD__SPUN_MAX;
    worker->turn_end_ns = now_ns;
}

static void
on_turn_ends(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    struct load__worker *worker = watcher->data;
    uint64_t now_ns = sxe_time_ns();

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    if (worker->is_running)
        count_worker_turn(worker, now_ns);
    load_ticker_arm(&worker->ticker, now_ns);
    worker->turn_due_ns = worker->ticker.asked_ns;
    if (!worker->is_running)
        return;
    if (now_ns - worker->states_ns < STATES_NS)
        return;
    worker->states_ns = now_ns;
    look_at_self(worker, now_ns);
}

/* Call this before sxe_init. libev calls watchers of equal priority in the reverse order of their
 * start, so turn_ends runs after the watcher of lib-sxe. turn_begins runs after lib-sxe's watcher,
 * too, because of its lower priority. */
void
load__watch_turns(struct load__worker *worker)
{
    ev_prepare_init(&worker->turn_ends, on_turn_ends);
    ev_set_priority(&worker->turn_ends, EV_MINPRI);
    worker->turn_ends.data = worker;
    ev_prepare_start(worker->loop, &worker->turn_ends);
    ev_check_init(&worker->turn_begins, on_turn_begins);
    ev_set_priority(&worker->turn_begins, EV_MAXPRI - 1);
    worker->turn_begins.data = worker;
    ev_check_start(worker->loop, &worker->turn_begins);
}

void
load__unwatch_turns(struct load__worker *worker)
{
    ev_check_stop(worker->loop, &worker->turn_begins);
    ev_prepare_stop(worker->loop, &worker->turn_ends);
}

/* ---- Copies of results ---- */

static void
copy_timeline(struct load_timeline *to, const struct load_timeline *timeline)
{
    uint32_t used = to->used > timeline->used ? to->used : timeline->used;

    memcpy(to->slices, timeline->slices, used * sizeof(to->slices[0]));
    to->used = timeline->used;
    to->width_ns = timeline->width_ns;
}

static void
copy_addresses(struct load_result *to, const struct load_result *result)
{
    to->addresses = result->addresses;
    memcpy(to->by_address, result->by_address, result->addresses * sizeof(to->by_address[0]));
}

static void
copy_kinds(struct load_result *to, const struct load_result *result)
{
    to->kinds = result->kinds;
    to->clients = result->clients;
    for (unsigned i = 0; i < result->kinds; i++) {
        to->by_kind[i].ok = result->by_kind[i].ok;
        to->by_kind[i].errors = result->by_kind[i].errors;
        load_histogram_update(&to->by_kind[i].response, &result->by_kind[i].response);
    }
    memcpy(to->by_client, result->by_client,
           (size_t)result->clients * result->kinds * sizeof(to->by_client[0]));
}

/* Copy only the parts that are used. The struct consists of numbers, four histograms, numbers,
 * three histograms, the time line and tables. */
void
load__copy_result(struct load_result *to, const struct load_result *result)
{
    memcpy(to, result, offsetof(struct load_result, connect));
    load_histogram_update(&to->connect, &result->connect);
    load_histogram_update(&to->first_byte, &result->first_byte);
    load_histogram_update(&to->service, &result->service);
    load_histogram_update(&to->response, &result->response);
    memcpy(&to->cpu_user_ns, &result->cpu_user_ns,
           offsetof(struct load_result, schedule_lag) - offsetof(struct load_result, cpu_user_ns));
    load_histogram_update(&to->schedule_lag, &result->schedule_lag);
    load_histogram_update(&to->timer_error, &result->timer_error);
    load_histogram_update(&to->loop_lag, &result->loop_lag);
    copy_timeline(&to->timeline, &result->timeline);
    copy_kinds(to, result);
    copy_addresses(to, result);
}

/* ---- The parent ---- */

/* If a worker ends while a message to it is unread, recv(2) fails with ECONNRESET once, and then
 * returns what the worker had sent before. */
ssize_t
load_worker_message(int control, struct load_message *message)
{
    ssize_t got = recv(control, message, sizeof(*message), MSG_DONTWAIT);

    if (got < 0 && errno == ECONNRESET)
        got = recv(control, message, sizeof(*message), MSG_DONTWAIT);
    return got;
}

void
load__tell_parent(const struct load__worker *worker, enum load_message_type type, int error)
{
    struct load_message message = {.type = type, .error = error};

    /* Ignore errors: if the parent is gone, the control socket's end of file shows it. */
    (void)send(worker->control.fd, &message, sizeof(message), MSG_NOSIGNAL);
}

void
load__ramp_over(struct load__worker *worker)
{
    load__bring_up_to_date(worker, sxe_time_ns());
    load__tell_parent(worker, LOAD_MESSAGE_READY, 0);
}
