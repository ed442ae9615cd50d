/* SPDX-License-Identifier: MIT
 *
 * What: jobs, which are works that count how often they ran and were done, and a gate, at which
 * jobs wait until the test lets them go, so that the test decides what runs at the same time.
 * Place: tests of sxe-work.h; based on sxe-fixture.h.
 *
 *     start_threads(1);
 *     submit_range(0, 3, look_around);
 *     expect_done_in_order(0, 3);
 *     plan_stop();
 */
#ifndef JOBS_H
#define JOBS_H

#include "sxe-private.h"

#include <check.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#include "sxe-fixture.h"

enum { JOBS = 10000, SOCKETS = 13 };

struct job {
    struct sxe_work work;
    unsigned ran;
    unsigned done;
    pthread_t thread;
    char name[16];
    sigset_t blocked;
};

static struct job jobs[JOBS];
static sem_t gate;    /* a post lets one job pass the gate */
static sem_t arrived; /* each job posts when it has come to the gate */
static pthread_barrier_t meeting;

/* ---- Functions that jobs run ---- */

static inline void
look_around(struct sxe_work *work)
{
    struct job *job = (struct job *)work;

    job->ran++;
    job->thread = pthread_self();
    pthread_getname_np(job->thread, job->name, sizeof(job->name));
    pthread_sigmask(SIG_BLOCK, NULL, &job->blocked);
}

static inline void
wait_at_gate(struct sxe_work *work)
{
    ((struct job *)work)->ran++;
    sem_post(&arrived);
    sem_wait(&gate);
}

static inline void
meet(struct sxe_work *work)
{
    ((struct job *)work)->ran++;
    pthread_barrier_wait(&meeting);
}

static inline void
push_done(struct sxe_work *work)
{
    struct job *job = (struct job *)work;

    job->done++;
    event_push("done", job, job - jobs);
}

/* ---- Submitting jobs ---- */

static inline void
start_threads(unsigned threads)
{
    sem_init(&gate, 0, 0);
    sem_init(&arrived, 0, 0);
    sxe_work_register(threads);
    plan_start(SOCKETS);
}

static inline int
submit(unsigned number, void (*run)(struct sxe_work *))
{
    jobs[number].work.run = run;
    jobs[number].work.done = push_done;
    return sxe_work_submit(&jobs[number].work);
}

static inline void
submit_range(unsigned from, unsigned to, void (*run)(struct sxe_work *))
{
    for (unsigned i = from; i < to; i++)
        ck_assert_int_eq(submit(i, run), 0);
}

/* Let one thread run a job that waits at the gate. */
static inline void
keep_a_thread(unsigned number)
{
    submit_range(number, number + 1, wait_at_gate);
    sem_wait(&arrived);
}

#define EXPECT_DONE(number) EXPECT("done", &jobs[number], number)

static inline void
expect_done_in_order(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        EXPECT_DONE(i);
}

/* Wait, without a turn of the loop, until `wanted` jobs have run; their done() is called later. */
static inline void
wait_until_finished(unsigned wanted)
{
    struct sxe__workers *w = CONTEXT->workers;
    unsigned finished = 0;

    while (finished < wanted) {
        sched_yield();
        finished = 0;
        pthread_mutex_lock(&w->lock);
        for (struct sxe_work *work = w->finished.first; work != NULL; work = work->next)
            finished++;
        pthread_mutex_unlock(&w->lock);
    }
}

#endif
