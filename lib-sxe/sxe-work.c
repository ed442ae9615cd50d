/* SPDX-License-Identifier: MIT
 *
 * What: threads for work that blocks. Each group has a line of works that wait for a thread; one
 * more line has the finished works, which wait for the loop. One lock guards all lines and the
 * state of each work.
 *
 *     IDLE --submit--> WAITING --a thread is free--> RUNNING --run returned--> FINISHED --> IDLE
 *       ^                 |                                                    done is called
 *       '-----cancel------'
 */
#include "sxe-private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DONE_MAX 64 /* how many calls of done one turn of the loop makes at most */

enum work_state { IDLE, WAITING, RUNNING, FINISHED };

/* ---- Queues of work (struct sxe__line) ---- */

static void
append_work(struct sxe__line *line, struct sxe_work *work)
{
    work->next = NULL;
    work->prev = line->last;
    if (line->last == NULL)
        line->first = work;
    else
        line->last->next = work;
    line->last = work;
}

static void
remove_from_line(struct sxe__line *line, struct sxe_work *work)
{
    if (work->prev == NULL)
        line->first = work->next;
    else
        work->prev->next = work->next;
    if (work->next == NULL)
        line->last = work->prev;
    else
        work->next->prev = work->prev;
}

/* Take the first work out of a line, and set its state. NULL: the line is empty. */
static struct sxe_work *
take_first_work(struct sxe__line *line, enum work_state state)
{
    struct sxe_work *work = line->first;

    if (work == NULL)
        return NULL;
    remove_from_line(line, work);
    work->state = state;
    return work;
}

/* ---- In the threads ---- */

/* Take a waiting work whose group may use one more thread. NULL: no such work waits. The caller
 * holds the lock. */
static struct sxe_work *
take_work(struct sxe__workers *w)
{
    for (unsigned i = 0; i <= SXE_WORK_GROUPS_MAX; i++) {
        struct sxe__group *group = &w->group[(w->turn + i) % (1 + SXE_WORK_GROUPS_MAX)];
        struct sxe_work *work;

        if (group->running >= group->max)
            continue;
        work = take_first_work(&group->waiting, RUNNING);
        if (work == NULL)
            continue;
        group->running++;
        w->turn = work->group + 1;
        return work;
    }
    return NULL;
}

/* Wait for the next work; NULL means shut down. The caller holds the lock. */
static struct sxe_work *
wait_for_work(struct sxe__workers *w)
{
    struct sxe_work *work = NULL;

    while (!w->is_stopping && (work = take_work(w)) == NULL)
        pthread_cond_wait(&w->come, &w->lock);
    return work;
}

static void *
run_worker_thread(void *workers)
{
    struct sxe__workers *w = workers;
    struct sxe_work *work;

    pthread_setname_np(pthread_self(), "sxe-work");
    pthread_mutex_lock(&w->lock);
    while ((work = wait_for_work(w)) != NULL) {
        pthread_mutex_unlock(&w->lock);
        work->run(work);
        pthread_mutex_lock(&w->lock);
        /* If the line of finished works is not empty, its first work has woken the loop already. */
        if (w->finished.first == NULL)
            ev_async_send(w->loop, &w->wake);
        w->group[work->group].running--;
        work->state = FINISHED;
        append_work(&w->finished, work);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- In the loop's thread ---- */

static void
hold_loop(struct sxe__workers *w)
{
    if (w->under_way++ == 0)
        ev_ref(w->loop);
}

static void
release_loop(struct sxe__workers *w)
{
    if (--w->under_way == 0)
        ev_unref(w->loop);
}

static void
on_finished(struct ev_loop *loop, ev_async *wake, int events)
{
    struct sxe__workers *w = CONTEXT->workers;

    SXE_UNUSED_PARAMETER(events);
    for (unsigned i = 0; i < DONE_MAX; i++) {
        struct sxe_work *work;

        pthread_mutex_lock(&w->lock);
        work = take_first_work(&w->finished, IDLE);
        pthread_mutex_unlock(&w->lock);
        if (work == NULL)
            return;
        release_loop(w);
        work->done(work);
        sxe__finish();
    }
    /* Leave the other finished works to the next turn, so that sockets get their time. */
    ev_async_send(loop, wake);
}

/* Start as many of the wanted threads as the system allows, with all signals blocked. */
static void
start_threads(struct sxe__workers *w)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int error = 0;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SXE__WORK_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (error == 0 && w->threads < w->wanted) {
        error = pthread_create(&w->thread[w->threads], &attributes, run_worker_thread, w);
        w->threads += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        SXE_WARN("only %u of %u threads for work that blocks could be started: %s", w->threads,
                 w->wanted, strerror(error));
}

static void
start_missing_threads(struct sxe__workers *w)
{
    SXE_TIME now;

    if (SXE_LIKELY(w->threads == w->wanted))
        return;
    now = sxe_time_turn_ns();
    if (now < w->next_try)
        return;
    w->next_try = now + SXE_NS_PER_SECOND;
    start_threads(w);
}

SXE_RETURN
sxe_work_submit(struct sxe_work *work)
{
    struct sxe__workers *w = CONTEXT->workers;
    bool is_idle;

    if (w == NULL)
        return -EINVAL;
    start_missing_threads(w);
    if (w->threads == 0)
        return -EAGAIN;
    pthread_mutex_lock(&w->lock);
    is_idle = work->state == IDLE;
    if (is_idle) {
        if (work->group > SXE_WORK_GROUPS_MAX || w->group[work->group].max == 0)
            work->group = 0;
        work->state = WAITING;
        append_work(&w->group[work->group].waiting, work);
        pthread_cond_signal(&w->come);
    }
    pthread_mutex_unlock(&w->lock);
    if (!is_idle)
        return -EBUSY;
    hold_loop(w);
    return 0;
}

SXE_RETURN
sxe_work_cancel(struct sxe_work *work)
{
    struct sxe__workers *w = CONTEXT->workers;
    unsigned state;

    if (w == NULL)
        return -EALREADY;
    pthread_mutex_lock(&w->lock);
    state = work->state;
    if (state == WAITING) {
        remove_from_line(&w->group[work->group].waiting, work);
        work->state = IDLE;
    }
    pthread_mutex_unlock(&w->lock);
    if (state != WAITING)
        return state == IDLE ? -EALREADY : -EBUSY;
    release_loop(w);
    return 0;
}

/* ---- Beginning and end ---- */

void
sxe_work_register(unsigned threads)
{
    struct sxe__context *c = CONTEXT;

    SXE_ASSERT(c->sockets == NULL, "sxe_work_register(%u) must come before sxe_init", threads);
    c->threads = threads > c->threads ? threads : c->threads;
}

unsigned
sxe_work_register_group(unsigned threads)
{
    struct sxe__context *c = CONTEXT;

    if (c->sockets != NULL)
        return 0;
    if (c->groups == SXE_WORK_GROUPS_MAX) {
        sxe_work_register(threads);
        return 0;
    }
    /* Keep a number that is too large as the limit + 1: sxe_init then refuses it. */
    c->group_threads[c->groups] =
        (uint16_t)(threads > SXE_WORK_THREADS_MAX ? SXE_WORK_THREADS_MAX + 1 : threads);
    return ++c->groups;
}

size_t
sxe__work_threads(const struct sxe__context *c)
{
    size_t threads = c->threads;

    for (unsigned i = 0; i < c->groups; i++)
        threads += c->group_threads[i];
    return threads;
}

/* If no threads are registered for works without a group, these use as many as the first group. */
static void
set_groups(struct sxe__workers *w, const struct sxe__context *c)
{
    w->group[0].max = c->threads > 0 ? c->threads : c->group_threads[0];
    for (unsigned i = 0; i < c->groups; i++)
        w->group[1 + i].max = c->group_threads[i];
}

/* libev makes an eventfd by which threads wake the loop, and would retry for ever without one. */
static int
check_that_a_descriptor_is_free(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

int
sxe__work_open(void)
{
    struct sxe__context *c = CONTEXT;
    struct sxe__workers *w;
    size_t threads = sxe__work_threads(c);
    int result;

    if (threads == 0)
        return 0;
    result = check_that_a_descriptor_is_free();
    if (result < 0)
        return result;
    w = calloc(1, sizeof(*w) + threads * sizeof(w->thread[0]));
    if (w == NULL)
        return -ENOMEM;
    w->loop = c->loop;
    w->wanted = (unsigned)threads;
    set_groups(w, c);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->come, NULL);
    ev_async_init(&w->wake, on_finished);
    ev_async_start(w->loop, &w->wake);
    /* This watcher must not keep the loop running: works under way do, see hold_loop. */
    ev_unref(w->loop);
    c->workers = w;
    if (!c->wanted.lazy_threads)
        start_missing_threads(w);
    return 0;
}

static void
forget_line(struct sxe__line *line)
{
    while (take_first_work(line, IDLE) != NULL)
        continue;
}

void
sxe__work_close(void)
{
    struct sxe__workers *w = CONTEXT->workers;

    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    pthread_cond_broadcast(&w->come);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->threads; i++)
        pthread_join(w->thread[i], NULL);
    for (unsigned i = 0; i <= SXE_WORK_GROUPS_MAX; i++)
        forget_line(&w->group[i].waiting);
    forget_line(&w->finished);
    ev_ref(w->loop);
    ev_async_stop(w->loop, &w->wake);
    if (w->under_way > 0)
        ev_unref(w->loop);
    pthread_cond_destroy(&w->come);
    pthread_mutex_destroy(&w->lock);
    free(w);
    CONTEXT->workers = NULL;
}
