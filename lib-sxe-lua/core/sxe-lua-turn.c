/* SPDX-License-Identifier: MIT
 *
 * What: when tasks run. Before the loop waits, tasks whose deadline has come are woken, and each
 * ready task runs once. The number of tasks and their time are limited, since sockets wait
 * meanwhile. Then tasks that yielded run for another time slice, at least one of them. Data that
 * tasks write is sent in the same turn, since lib-sxe's own watcher comes later.
 */
#include "sxe-lua-clock.h"
#include "sxe-lua-task-private.h"

static unsigned
number_ready(void)
{
    return sxe_pool_get_count(SCHEDULER->tasks, SXE__LUA_READY);
}

static unsigned
number_later(void)
{
    return sxe_pool_get_count(SCHEDULER->tasks, SXE__LUA_LATER);
}

static bool
is_due(uint64_t now_ns)
{
    return SCHEDULER->heap_used > 0 && SCHEDULER->tasks[SCHEDULER->heap[0]].deadline_ns <= now_ns;
}

/* Wake tasks whose deadline has come: as many as can run in a turn; tasks that will become LATER do
 * not count. */
static void
wake_due(uint64_t now_ns)
{
    for (uint32_t woken = 0; woken < SCHEDULER->ready_max && is_due(now_ns);) {
        const uint32_t index = SCHEDULER->heap[0];

        woken += !sxe__lua_group_owes(index, now_ns);
        sxe__lua_wake_index(index, SXE__LUA_TIMEOUT);
    }
}

/* Run a task, and charge its group for the time since since_ns. Returns the time afterwards. */
static uint64_t
run_task_in_turn(uint32_t index, uint64_t since_ns)
{
    const uint32_t group = sxe__lua_task_at(index)->group;
    uint64_t now_ns;

    sxe__lua_resume(index, NULL);
    now_ns = sxe_time_ns();
    sxe__lua_group_charge(group, now_ns - since_ns, now_ns);
    return now_ns;
}

/* Run READY tasks one after the other, until ready_max have run, or a time slice is over. Returns
 * the time afterwards. */
static uint64_t
run_ready(uint64_t now_ns)
{
    const uint64_t end_ns = now_ns + SCHEDULER->slice_ns;
    unsigned runs = 0;

    for (unsigned count = number_ready(); count > 0; count--) {
        uint32_t index = sxe_pool_take(SCHEDULER->tasks, SXE__LUA_READY, SXE__LUA_RUNNING);

        /* A task that ran may have cancelled another task that had not begun, so fewer tasks are
         * left than were counted. */
        if (index == SXE_NONE)
            break;
        if (sxe__lua_group_owes(index, now_ns)) {
            sxe__lua_stand_back(index, SXE__LUA_RUNNING);
            continue;
        }
        now_ns = run_task_in_turn(index, now_ns);
        if (++runs >= SCHEDULER->ready_max || now_ns >= end_ns)
            break;
    }
    return now_ns;
}

/* Run LATER tasks, one after the other, as long as the slice lasts. */
static void
run_task_later(uint64_t now_ns)
{
    const uint64_t end_ns = now_ns + SCHEDULER->slice_ns;

    for (unsigned count = number_later(); count > 0 && now_ns < end_ns; count--) {
        uint32_t index = sxe__lua_take_later();

        if (index == SXE_NONE)
            return;
        now_ns = run_task_in_turn(index, now_ns);
    }
}

static void
run_all_tasks(void)
{
    if (number_ready() + number_later() > 0)
        run_task_later(run_ready(sxe_time_ns()));
}

/* Set libev's timer, which ends the loop's wait in time. The timer is moved only for an earlier
 * deadline; a timer that fires too early does no harm. */
static void
arm_alarm(struct ev_loop *loop, uint64_t now_ns)
{
    uint64_t due_ns = SCHEDULER->tasks[SCHEDULER->heap[0]].deadline_ns;

    if (ev_is_active(&SCHEDULER->alarm) && SCHEDULER->alarm_ns <= due_ns)
        return;
    ev_timer_stop(loop, &SCHEDULER->alarm);
    ev_timer_set(&SCHEDULER->alarm, (double)(due_ns - now_ns) / (double)SXE_NS_PER_SECOND, 0);
    ev_timer_start(loop, &SCHEDULER->alarm);
    SCHEDULER->alarm_ns = due_ns;
}

static void
run_before_wait(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    uint64_t now_ns = sxe_lua_get_clock()->now_ns();

    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    wake_due(now_ns);
    run_all_tasks();
    sxe__lua_relieve();
    if (number_ready() + number_later() > 0 || is_due(now_ns)) {
        sxe__lua_turn_soon();
        return;
    }
    ev_idle_stop(loop, &SCHEDULER->no_wait);
    if (SCHEDULER->heap_used > 0)
        arm_alarm(loop, now_ns);
    else
        ev_timer_stop(loop, &SCHEDULER->alarm);
}

static void
do_nothing_more(struct ev_loop *loop, ev_idle *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
}

static void
on_alarm(struct ev_loop *loop, ev_timer *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    sxe__lua_turn_soon();
}

void
sxe__lua_tasks_start(struct ev_loop *loop)
{
    SCHEDULER->loop = loop;
    ev_prepare_init(&SCHEDULER->before_wait, run_before_wait);
    ev_idle_init(&SCHEDULER->no_wait, do_nothing_more);
    ev_timer_init(&SCHEDULER->alarm, on_alarm, 0, 0);
    ev_prepare_start(loop, &SCHEDULER->before_wait);
    /* The watcher of run_before_wait must not keep the loop running: ready tasks and deadlines have
     * watchers of their own, which do. If tasks wait for outside events already, this watcher's
     * reference keeps the loop running for them. */
    if (SCHEDULER->outside == 0)
        ev_unref(loop);
    /* Start these two watchers now, so that libev's arrays grow now, not later. */
    ev_idle_start(loop, &SCHEDULER->no_wait);
    ev_timer_start(loop, &SCHEDULER->alarm);
    ev_timer_stop(loop, &SCHEDULER->alarm);
}

bool
sxe__lua_tasks_have_begun(void)
{
    return SCHEDULER->loop != NULL;
}

void
sxe__lua_tasks_stop(void)
{
    struct ev_loop *loop = SCHEDULER->loop;

    if (loop == NULL)
        return;
    if (SCHEDULER->outside > 0)
        ev_unref(loop);
    ev_ref(loop);
    ev_prepare_stop(loop, &SCHEDULER->before_wait);
    ev_idle_stop(loop, &SCHEDULER->no_wait);
    ev_timer_stop(loop, &SCHEDULER->alarm);
    SCHEDULER->loop = NULL;
}
