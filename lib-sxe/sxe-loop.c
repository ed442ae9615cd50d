/* SPDX-License-Identifier: MIT
 *
 * What: the event loop. For each event that libev's loop finds, this file calls one of the files
 * listed before it in sxe-private.h, and then sxe__finish.
 *
 *     one turn:  begin_turn    the clock is read, once
 *                on_epoll      our sockets' events
 *                              timers, signals, the program's own watchers
 *                before_wait   deferred calls; the timer of all timeouts is set
 *
 * Our sockets are in an epoll set of our own, and libev watches that set as one descriptor: libev
 * needs no memory, list or allocation for a connection.
 */
#include "sxe-private.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sxe-dial.h"

/* Sustained load is LOAD_EVENTS events at once, LOAD_ROUNDS times in a row. It ends when there was
 * no event EMPTY_ROUNDS times. */
#define LOAD_EVENTS  8
#define LOAD_ROUNDS  64
#define EMPTY_ROUNDS 4

/* Output is held at most about this long, to be sent with the output of other events. */
#define HELD_NS (100 * SXE_NS_PER_US)

/* ---- Deferred calls: a list of sockets, each on it at most once ---- */

void
sxe__defer(SXE *s)
{
    if (s->flags & SXE__DEFERRED)
        return;
    s->flags |= SXE__DEFERRED;
    s->u.open.deferred_next = SXE_NONE;
    s->u.open.deferred_prev = CONTEXT->deferred_tail;
    if (CONTEXT->deferred_tail == SXE_NONE)
        CONTEXT->deferred_head = s->id;
    else
        sxe__socket(CONTEXT->deferred_tail)->u.open.deferred_next = s->id;
    CONTEXT->deferred_tail = s->id;
    CONTEXT->deferred_count++;
}

void
sxe__undefer(SXE *s)
{
    uint32_t next = s->u.open.deferred_next;
    uint32_t prev = s->u.open.deferred_prev;

    if (!(s->flags & SXE__DEFERRED))
        return;
    s->flags &= (uint16_t)~SXE__DEFERRED;
    if (prev == SXE_NONE)
        CONTEXT->deferred_head = next;
    else
        sxe__socket(prev)->u.open.deferred_next = next;
    if (next == SXE_NONE)
        CONTEXT->deferred_tail = prev;
    else
        sxe__socket(next)->u.open.deferred_prev = prev;
    CONTEXT->deferred_count--;
}

static void
run_deferred(SXE *s)
{
    void (*fn)(SXE *) = s->u.open.deferred;
    unsigned flags = s->flags;

    sxe__undefer(s);
    s->u.open.deferred = NULL;
    s->flags &= (uint16_t) ~(SXE__WRITE_MORE | SXE__READ_AGAIN);
    if ((flags & SXE__WRITE_MORE) && (!sxe__queue_is_empty(s) || s->io_owes))
        sxe__writable(s);
    if ((flags & SXE__READ_AGAIN) && sxe__state(s) < SXE_STATE_CLOSING)
        sxe__read_again(s);
    if ((s->flags & SXE__READABLE) && sxe__state(s) != SXE_STATE_CLOSED)
        sxe__readable(s);
    if (fn != NULL && sxe__state(s) < SXE_STATE_CLOSING)
        fn(s);
    sxe__finish();
}

/* Calls that are deferred meanwhile wait for the next turn. */
static void
call_deferred(void)
{
    for (unsigned due = CONTEXT->deferred_count; due > 0 && CONTEXT->deferred_head != SXE_NONE;
         due--)
        run_deferred(sxe__socket(CONTEXT->deferred_head));
}

SXE_RETURN
sxe_defer(SXE *this, void (*fn)(SXE *))
{
    enum sxe_state state = sxe__state(this);

    if (state < SXE_STATE_LISTENING || state >= SXE_STATE_CLOSING)
        return -ENOTCONN;
    if (this->u.open.deferred != NULL)
        return -EBUSY;
    this->u.open.deferred = fn;
    sxe__defer(this);
    return 0;
}

/* ---- Sockets ---- */

/* The peer has ended a connection that is not being read, so no read would notice that. End the
 * socket if there is an error, or if the program has seen the peer's end and no bytes are unread.
 * Otherwise do nothing: bytes are unread in the kernel, or the program still uses its unread bytes,
 * and closes afterwards. A CLOSING socket is ended by discard(). */
static void
end_unread(SXE *s)
{
    int error = sxe__socket_error(s);

    if (error != 0 || ((s->flags & SXE__END_SEEN) && sxe_buffer_length(&s->in) == 0 &&
                       sxe__state(s) != SXE_STATE_CLOSING))
        sxe__end(s, error);
}

static void
dispatch_open(SXE *s, unsigned events)
{
    if (SXE_LIKELY(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        s->flags |= SXE__READABLE;
    if (SXE_UNLIKELY(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        s->flags |= SXE__END_NEAR;
    if (SXE_UNLIKELY(!sxe__queue_is_empty(s) || s->io_owes) &&
        (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)))
        sxe__writable(s);
    if (SXE_LIKELY((s->flags & SXE__READABLE) && sxe__state(s) != SXE_STATE_CLOSED))
        sxe__readable(s);
    if (SXE_UNLIKELY(events & (EPOLLHUP | EPOLLERR)) && sxe__is_reading_held(s))
        end_unread(s);
}

static void
dispatch_events(SXE *s, unsigned events)
{
    switch (sxe__state(s)) {
    case SXE_STATE_LISTENING:
        if (s->kind == SXE__UDP)
            sxe__readable(s);
        else
            sxe__acceptable(s);
        return;
    case SXE_STATE_CONNECTING:
        sxe__connected(s);
        /* The peer's first bytes may have come together with the end of connect(2). */
        if (sxe__state(s) < SXE_STATE_CLOSED)
            dispatch_open(s, events);
        return;
    case SXE_STATE_IDLE:
    case SXE_STATE_READING:
    case SXE_STATE_HANDLING:
    case SXE_STATE_WRITING:
    case SXE_STATE_STARVED:
    case SXE_STATE_CLOSING:
        dispatch_open(s, events);
        return;
    case SXE_STATE_FREE:
    case SXE_STATE_NEW:
    case SXE_STATE_CLOSED:
    case SXE_STATES:
        return;
    }
}

/* Set for how many events output may be held: so many that, if the next events take as long as the
 * last ones did, no output waits for much longer than HELD_NS. */
static void
limit_held(int events)
{
    SXE_TIME ns = sxe_time_ns() - sxe_time_turn_ns();
    SXE_TIME fit = HELD_NS * (SXE_TIME)events / (ns > 0 ? ns : 1);

    CONTEXT->held_max = fit < SXE__HELD_MAX ? (unsigned)fit : SXE__HELD_MAX;
}

static int
take_events(void)
{
    int count = epoll_wait(CONTEXT->epoll, CONTEXT->tables->events, SXE__EVENTS_MAX, 0);

    for (int i = 0; i < count; i++) {
        /* An earlier event of this batch may have closed the socket, and another socket may have
         * its id. */
        SXE *s = sxe_from_handle(CONTEXT->tables->events[i].data.u64);

        if (s == NULL)
            continue;
        dispatch_events(s, CONTEXT->tables->events[i].events);
        if (count > 1)
            sxe__hold_staged();
        sxe__finish();
    }
    if (count > 1) {
        sxe__send_held();
        limit_held(count);
    }
    return count;
}

/* Our epoll set is inside libev's, so that each event costs the kernel a second wake-up. Under
 * sustained load take our set out, and poll it in each turn, without waiting, until no events come.
 */
static void
become_busy(void)
{
    CONTEXT->is_busy = true;
    CONTEXT->empty_rounds = 0;
    ev_ref(CONTEXT->loop);
    ev_io_stop(CONTEXT->loop, &CONTEXT->tables->epoll_ready);
    ev_idle_start(CONTEXT->loop, &CONTEXT->tables->no_wait);
}

static void
become_calm(void)
{
    CONTEXT->is_busy = false;
    CONTEXT->load_rounds = 0;
    ev_io_start(CONTEXT->loop, &CONTEXT->tables->epoll_ready);
    ev_unref(CONTEXT->loop);
}

static void
on_epoll(struct ev_loop *loop, ev_io *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    CONTEXT->load_rounds = take_events() < LOAD_EVENTS ? 0 : CONTEXT->load_rounds + 1;
    if (CONTEXT->load_rounds >= LOAD_ROUNDS)
        become_busy();
}

static void
poll_while_busy(void)
{
    int taken = 0;
    int count;

    do {
        sxe_time_set_turn_ns(sxe_time_ns());
        count = take_events();
        taken += count;
        call_deferred();
    } while (count > 0 && taken < SXE__TAKEN_MAX);
    CONTEXT->empty_rounds = taken > 0 ? 0 : CONTEXT->empty_rounds + 1;
    if (CONTEXT->empty_rounds >= EMPTY_ROUNDS)
        become_calm();
}

/* ---- Timeouts: one timer for all states of all pools, and for dials ---- */

void
sxe__on_timeout(void *array, unsigned id, void *user)
{
    SXE *s = sxe__socket(id);
    enum sxe_state state = sxe__state(s);
    bool is_queued = state >= SXE_STATE_IDLE && !sxe__queue_is_empty(s);
    bool is_unread = state == SXE_STATE_CLOSING && !is_queued && sxe_io_is_unread(s);

    SXE_UNUSED_PARAMETER(user);
    if (s->is_paired) {
        sxe_pool_touch(array, id);
        return;
    }
    if (is_queued && state != SXE_STATE_STARVED && sxe__queue_has_peer_read(s))
        return;
    if (is_unread && sxe__queue_is_rest_read(s))
        return;
    SXE_PROBE_TIMEOUT(id, sxe_state_to_string(state));
    SXE_DEBUG_ID(id, "closing: %s for too long", sxe_state_to_string(state));
    if (is_unread || sxe_io_has_output(s))
        sxe__reset(s, ETIMEDOUT);
    else
        sxe__end(s, s->io_lingers && sxe_io_unacknowledged(s) == 0 ? 0 : ETIMEDOUT);
}

static void
on_timeouts(struct ev_loop *loop, ev_timer *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    sxe_pool_check_timeouts();
    if (CONTEXT->tables->dials_first != NULL)
        CONTEXT->tables->check_dials();
    sxe__finish();
}

/* The earlier of two times. 0 means never. */
static SXE_TIME
earlier_time(SXE_TIME a, SXE_TIME b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Set the timer earlier if a timeout is due before it. Never set it later: a timer that fires too
 * early does no harm. */
static void
arm_timeouts(void)
{
    SXE_TIME dial_due =
        CONTEXT->tables->dials_first == NULL ? 0 : CONTEXT->tables->dials_first->next_ns;
    SXE_TIME due = earlier_time(sxe_pool_get_next_timeout(), dial_due);
    SXE_TIME now = sxe_time_turn_ns();

    if (due == 0) {
        ev_timer_stop(CONTEXT->loop, &CONTEXT->tables->timeouts);
        return;
    }
    if (ev_is_active(&CONTEXT->tables->timeouts) && CONTEXT->tables->timeouts_due <= due)
        return;
    ev_timer_stop(CONTEXT->loop, &CONTEXT->tables->timeouts);
    ev_timer_set(&CONTEXT->tables->timeouts,
                 due > now ? (double)(due - now) / (double)SXE_NS_PER_SECOND : 0, 0);
    ev_timer_start(CONTEXT->loop, &CONTEXT->tables->timeouts);
    CONTEXT->tables->timeouts_due = due;
}

/* ---- The turn ---- */

static void
begin_turn(struct ev_loop *loop, ev_check *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    sxe_time_set_turn_ns(sxe_time_ns());
}

static void
before_wait(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    call_deferred();
    sxe__finish();
    if (CONTEXT->is_busy)
        poll_while_busy();
    arm_timeouts();
    /* Deferred calls are due, or the loop polls our epoll set itself: an active idle watcher keeps
     * libev from waiting for events in the next turn. */
    if (CONTEXT->deferred_head != SXE_NONE || CONTEXT->is_busy)
        ev_idle_start(loop, &CONTEXT->tables->no_wait);
    else
        ev_idle_stop(loop, &CONTEXT->tables->no_wait);
}

static void
do_nothing_idle(struct ev_loop *loop, ev_idle *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
}

static void
on_accept_again(struct ev_loop *loop, ev_timer *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    sxe__accept_start();
    sxe__finish();
}

static void
on_accept_left(struct ev_loop *loop, ev_timer *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    sxe__accept_left();
    sxe__finish();
}

/* By default libev aborts if a system call fails unexpectedly. A server should go on as soon as the
 * call works again; the pause keeps it from spinning and from filling the log. */
static void
on_system_error(const char *what)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};

    SXE_ERROR("%s: %s", what, strerror(errno));
    nanosleep(&pause, NULL);
}

/* libev's arrays grow when they are first used. Use each of them now, so that nothing is allocated
 * later. */
static void
warm_up_loop(struct ev_loop *loop)
{
    static const int priorities[] = {EV_MINPRI, 0, EV_MAXPRI};
    ev_prepare dummies[24];

    for (unsigned i = 0; i < 24; i++) {
        ev_init(&dummies[i], NULL);
        ev_set_priority(&dummies[i], priorities[i % 3]);
        ev_feed_event(loop, &dummies[i], EV_CUSTOM);
    }
    for (unsigned i = 0; i < 24; i++)
        ev_clear_pending(loop, &dummies[i]);
    ev_idle_start(loop, &CONTEXT->tables->no_wait);
    ev_idle_stop(loop, &CONTEXT->tables->no_wait);
    ev_timer_start(loop, &CONTEXT->tables->timeouts);
    ev_timer_start(loop, &CONTEXT->tables->accept_again);
    ev_timer_start(loop, &CONTEXT->tables->accept_left);
    ev_timer_stop(loop, &CONTEXT->tables->accept_left);
    ev_timer_stop(loop, &CONTEXT->tables->accept_again);
    ev_timer_stop(loop, &CONTEXT->tables->timeouts);
}

int
sxe__loop_open(void)
{
    struct ev_loop *loop = CONTEXT->loop;

    CONTEXT->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (CONTEXT->epoll < 0)
        return -errno;
    ev_set_syserr_cb(on_system_error);
    CONTEXT->deferred_head = CONTEXT->deferred_tail = SXE_NONE;
    ev_io_init(&CONTEXT->tables->epoll_ready, on_epoll, CONTEXT->epoll, EV_READ);
    ev_prepare_init(&CONTEXT->tables->before_wait, before_wait);
    /* Run after the program's own prepare watchers, which may write too. */
    ev_set_priority(&CONTEXT->tables->before_wait, EV_MINPRI);
    ev_check_init(&CONTEXT->tables->begin_turn, begin_turn);
    ev_set_priority(&CONTEXT->tables->begin_turn, EV_MAXPRI);
    ev_idle_init(&CONTEXT->tables->no_wait, do_nothing_idle);
    ev_timer_init(&CONTEXT->tables->timeouts, on_timeouts, 0, 0);
    /* Timeouts run after the events: an event that came in time may have waited because a turn took
     * long. */
    ev_set_priority(&CONTEXT->tables->timeouts, EV_MINPRI);
    ev_timer_init(&CONTEXT->tables->accept_again, on_accept_again, SXE__RETRY_S, SXE__RETRY_S);
    ev_timer_init(&CONTEXT->tables->accept_left, on_accept_left, SXE__LEAVE_S, SXE__LEAVE_S);
    CONTEXT->accept_trust = 1;
    warm_up_loop(loop);
    ev_io_start(loop, &CONTEXT->tables->epoll_ready);
    ev_prepare_start(loop, &CONTEXT->tables->before_wait);
    ev_check_start(loop, &CONTEXT->tables->begin_turn);
    /* These three watchers do not keep the loop running: sockets do, see sxe__loop_hold. */
    ev_unref(loop);
    ev_unref(loop);
    ev_unref(loop);
    return 0;
}

void
sxe__loop_close(void)
{
    struct ev_loop *loop = CONTEXT->loop;

    if (CONTEXT->is_busy)
        become_calm();
    ev_ref(loop);
    ev_ref(loop);
    ev_ref(loop);
    ev_io_stop(loop, &CONTEXT->tables->epoll_ready);
    ev_prepare_stop(loop, &CONTEXT->tables->before_wait);
    ev_check_stop(loop, &CONTEXT->tables->begin_turn);
    ev_idle_stop(loop, &CONTEXT->tables->no_wait);
    ev_timer_stop(loop, &CONTEXT->tables->timeouts);
    ev_timer_stop(loop, &CONTEXT->tables->accept_again);
    ev_timer_stop(loop, &CONTEXT->tables->accept_left);
    close(CONTEXT->epoll);
    sxe_time_set_turn_ns(0);
}

/* The number of sockets for which the loop waits: all open ones but those with sxe_unref. */
static unsigned
number_waited_for(void)
{
    return CONTEXT->number - sxe_number_in_state(SXE_STATE_FREE) - CONTEXT->unref;
}

void
sxe__loop_hold(void)
{
    if (number_waited_for() == 1)
        ev_ref(CONTEXT->loop);
}

void
sxe__loop_release(void)
{
    if (number_waited_for() == 0)
        ev_unref(CONTEXT->loop);
}

SXE_RETURN
sxe_run(void)
{
    if (CONTEXT->sockets == NULL)
        return -EINVAL;
    ev_run(CONTEXT->loop, 0);
    sxe_time_set_turn_ns(0);
    return 0;
}

void
sxe_stop(void)
{
    if (CONTEXT->sockets != NULL)
        ev_break(CONTEXT->loop, EVBREAK_ALL);
}
