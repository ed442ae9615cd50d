/* SPDX-License-Identifier: MIT
 *
 * Timers and signals of the program. A list of this thread has all that run, so that sxe_fini can
 * stop them: libev's loop outlives sxe_fini, and would call them after the next sxe_init.
 */
#include "sxe-private.h"

#include <signal.h>

/* The action of each signal before the first of its watches was started. */
static struct sigaction actions_before[NSIG];

static bool
has_loop(const char *call)
{
    if (CONTEXT->loop == NULL)
        SXE_WARN("%s: sxe_init was not called", call);
    return CONTEXT->loop != NULL;
}

/* ---- Timers ---- */

static void
unlink_timer(struct sxe_timer *timer)
{
    *timer->at = timer->next;
    if (timer->next != NULL)
        timer->next->at = timer->at;
    timer->at = NULL;
}

static void
on_loop_timer(struct ev_loop *loop, ev_timer *watcher, int events)
{
    struct sxe_timer *timer = (struct sxe_timer *)(void *)watcher;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    if (timer->at != NULL && !ev_is_active(&timer->ev)) /* not so if ev_invoke calls it */
        unlink_timer(timer);
    timer->on_timer(timer);
    sxe__finish();
}

void
sxe_timer_init(struct sxe_timer *timer, void (*callback)(struct sxe_timer *), double after,
               double repeat)
{
    /* A NaN as a time would never be due, and the loop would never end. NaN is not above 0, so this
     * line makes it 0. */
    timer->after = after > 0 ? after : 0;
    ev_timer_init(&timer->ev, on_loop_timer, timer->after, repeat > 0 ? repeat : 0);
    timer->on_timer = callback;
    timer->at = NULL;
}

void
sxe_timer_start(struct sxe_timer *timer)
{
    struct sxe_timer **first;

    /* A timer that is due in this turn runs until its callback, although libev has stopped it. */
    if (timer->at != NULL || !has_loop("sxe_timer_start"))
        return;
    first = &CONTEXT->tables->timers;
    timer->next = *first;
    timer->at = first;
    if (timer->next != NULL)
        timer->next->at = &timer->next;
    *first = timer;
    /* libev counts from the start of the turn, which may be long ago, and starts a timer that was
     * stopped with the time that was left: both would fire the timer early. */
    ev_now_update(CONTEXT->loop);
    ev_timer_set(&timer->ev, timer->after, timer->ev.repeat);
    ev_timer_start(CONTEXT->loop, &timer->ev);
}

void
sxe_timer_stop(struct sxe_timer *timer)
{
    if (timer->at == NULL)
        return;
    unlink_timer(timer);
    ev_timer_stop(CONTEXT->loop, &timer->ev);
}

/* ---- Signals ---- */

static void
on_loop_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct sxe_signal *watch = (struct sxe_signal *)(void *)watcher;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    watch->on_signal(watch);
    sxe__finish();
}

static bool
is_signal_watched(int number)
{
    const struct sxe_signal *watch = CONTEXT->tables->signals;

    while (watch != NULL && watch->ev.signum != number)
        watch = watch->next;
    return watch != NULL;
}

/* Stop libev's watcher, which sets the default action with the last watcher of the signal, and
 * restore the action before instead. The signal is blocked meanwhile: the default would end the
 * process. */
static void
stop_signal(struct sxe_signal *watch)
{
    const int number = watch->ev.signum;
    sigset_t one, mask_before;

    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_BLOCK, &one, &mask_before);
    ev_signal_stop(CONTEXT->loop, &watch->ev);
    if (!is_signal_watched(number))
        sigaction(number, &actions_before[number], NULL);
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

void
sxe_signal_start(struct sxe_signal *watch, int signal_number, void (*callback)(struct sxe_signal *))
{
    struct sxe_signal **first;

    ev_signal_init(&watch->ev, on_loop_signal, signal_number);
    watch->on_signal = callback;
    if (!has_loop("sxe_signal_start"))
        return;
    if (!is_signal_watched(signal_number))
        sigaction(signal_number, NULL, &actions_before[signal_number]);
    first = &CONTEXT->tables->signals;
    watch->next = *first;
    watch->at = first;
    if (watch->next != NULL)
        watch->next->at = &watch->next;
    *first = watch;
    ev_signal_start(CONTEXT->loop, &watch->ev);
    ev_unref(CONTEXT->loop);
}

void
sxe_signal_stop(struct sxe_signal *watch)
{
    if (!ev_is_active(&watch->ev))
        return;
    *watch->at = watch->next;
    if (watch->next != NULL)
        watch->next->at = watch->at;
    ev_ref(CONTEXT->loop);
    stop_signal(watch);
}

void
sxe__timers_close(void)
{
    while (CONTEXT->tables->timers != NULL)
        sxe_timer_stop(CONTEXT->tables->timers);
    while (CONTEXT->tables->signals != NULL)
        sxe_signal_stop(CONTEXT->tables->signals);
}
