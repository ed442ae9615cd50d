/* SPDX-License-Identifier: MIT
 *
 * Calls that wait for a lock, by docs/pool.md. The lock is held by a process that was stopped
 * (SIGSTOP) in the middle of a call: it makes calls on the pool without end, and is stopped again
 * and again until it holds the lock when it stops.
 */
#include "outside.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sxe-dict.h>
#include <sys/wait.h>
#include <time.h>

enum { FREE, BUSY, STATES };

static void *jobs;
static pid_t child;

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
open_jobs(unsigned shards)
{
    SXE_POOL_SPEC spec = {
        .name = "jobs", .number = 64, .element_size = 8, .states = STATES, .shards = shards};
    char why[SXE_POOL_WHY_SIZE];

    jobs = sxe_pool_open(&spec, why);
    ck_assert_msg(jobs != NULL, "%s", why);
}

/* Start a child that holds the pool's lock most of the time. */
static void
start_child(void)
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        for (;;)
            (void)!sxe_pool_check(jobs, NULL);
}

/* Stop the child at a moment when it holds the lock: stop it and let it go on until that is so. */
static void
stop_with_lock(void)
{
    int status;

    ck_assert_int_eq(sxe_pool_set_wait(jobs, 0), 0);
    for (;;) {
        ck_assert_int_eq(kill(child, SIGSTOP), 0);
        ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
        if (sxe_pool_touch(jobs, 0) == SXE_POOL_LOCK_NOT_TAKEN)
            return;
        ck_assert_int_eq(kill(child, SIGCONT), 0);
        usleep(100);
    }
}

static void
end_child(void)
{
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* promise: docs/pool.md: When the time is over, it returns `SXE_POOL_LOCK_NOT_TAKEN`, and nothing
 * was changed. */
START_TEST(a_call_waits_as_long_as_it_may)
{
    open_jobs(1);
    start_child();
    stop_with_lock();
    const SXE_TIME stamp = sxe_pool_get_time(jobs, 0);

    ck_assert_int_eq(sxe_pool_set_wait(jobs, 0.2), 0);
    const double began = now_s();
    ck_assert_uint_eq(sxe_pool_move(jobs, 0, FREE, BUSY), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_double_ge(now_s() - began, 0.2);
    ck_assert_uint_eq(sxe_pool_get_state(jobs, 0), FREE);
    ck_assert_uint_eq(sxe_pool_get_time(jobs, 0), stamp);
    end_child();
    ck_assert_uint_eq(sxe_pool_move(jobs, 0, FREE, BUSY), SXE_POOL_LOCK_TAKEN);
    sxe_pool_delete(jobs);
}
END_TEST

/* promise: docs/pool.md: It sleeps meanwhile, at first 50 us and at most 1 ms at a time, and holds
 * no lock while it sleeps. */
START_TEST(a_call_that_waits_takes_no_processor)
{
    struct timespec before, after;

    open_jobs(1);
    start_child();
    stop_with_lock();
    ck_assert_int_eq(sxe_pool_set_wait(jobs, 1.0), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    ck_assert_uint_eq(sxe_pool_touch(jobs, 0), SXE_POOL_LOCK_NOT_TAKEN);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    /* The call spins for some 50 us between sleeps of 1 ms, so it may need a tenth of the second
     * that it waits, but not half of it. */
    ck_assert_double_lt((double)(after.tv_sec - before.tv_sec) +
                            (double)(after.tv_nsec - before.tv_nsec) / 1e9,
                        0.5);
    end_child();
    sxe_pool_delete(jobs);
}
END_TEST

/* promise: docs/pool.md: Then any call that finds a lock taken tries again until that time is
 * over */
START_TEST(a_call_goes_on_when_the_owner_goes_on_or_dies)
{
    open_jobs(1);
    start_child();
    for (unsigned i = 0; i < 2; i++) {
        stop_with_lock();
        ck_assert_int_eq(sxe_pool_set_wait(jobs, SXE_POOL_WAIT_MAX), 0);
        const pid_t helper = fork();
        if (helper == 0) {
            /* so that the call has probably begun; the test holds even if it has not */
            usleep(10000);
            kill(child, i == 0 ? SIGCONT : SIGKILL);
            _exit(0);
        }
        ck_assert_uint_eq(sxe_pool_touch(jobs, 0), SXE_POOL_LOCK_TAKEN);
        ck_assert_int_eq(waitpid(helper, NULL, 0), helper);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    sxe_pool_delete(jobs);
}
END_TEST

/* promise: docs/pool.md: `sxe_pool_set_wait(array, seconds)`, from 0 to 60; 0 is the default. */
START_TEST(each_wait_has_an_end)
{
    static const double wrong[] = {-1, 60.5, INFINITY, NAN};

    open_jobs(1);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(sxe_pool_set_wait(jobs, wrong[i]), -EINVAL);
    ck_assert_int_eq(sxe_pool_set_wait(jobs, 60), 0);
    ck_assert_int_eq(sxe_pool_set_wait(jobs, 0), 0);
    sxe_pool_delete(jobs);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_call_waits_as_long_as_it_may, a_call_that_waits_takes_no_processor,
                            a_call_goes_on_when_the_owner_goes_on_or_dies, each_wait_has_an_end,
                            NULL};

    return outside_run("pool-wait", cases);
}
