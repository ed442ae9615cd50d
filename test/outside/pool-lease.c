/* SPDX-License-Identifier: MIT
 *
 * Leases, by docs/pool.md: a worker that was too slow cannot change the job of the next worker.
 */
#include "outside.h"

#include <string.h>
#include <sxe-pool-shared.h>

enum { FREE, READY, BUSY, STATES };

struct job {
    uint64_t tries;
    char word[24];
};

static const char *path;

/* Open the pool once more, as if by another program. */
static struct job *
open_jobs(unsigned shards)
{
    SXE_POOL_SPEC spec = {.name = "jobs",
                          .number = 8,
                          .element_size = sizeof(struct job),
                          .states = STATES,
                          .shards = shards,
                          .state_names = "FREE READY BUSY",
                          .file = path};
    char why[SXE_POOL_WHY_SIZE];
    struct job *jobs = sxe_pool_open(&spec, why);

    ck_assert_msg(jobs != NULL, "%s", why);
    return jobs;
}

static void
check_and_close(struct job *jobs)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_msg(sxe_pool_check(jobs, why) == 0, "%s", why);
    sxe_pool_delete(jobs);
}

/* promise: docs/pool.md: if they differ, the call returns `SXE_POOL_LEASE_LOST` and changes
 * nothing. */
START_TEST(a_late_worker_changes_nothing)
{
    const struct job job = {7, "wash up"};
    SXE_POOL_LEASE late, swift, copy;
    struct job found;

    path = outside_path("late");
    struct job *one = open_jobs(1);
    struct job *two = open_jobs(1);

    ck_assert_uint_eq(sxe_pool_lease_oldest(one, FREE, BUSY, &job, &late), 0);
    ck_assert_uint_eq(sxe_pool_move(two, 0, BUSY, READY), 0);
    ck_assert_uint_eq(sxe_pool_lease_oldest(two, READY, BUSY, NULL, &swift), 0);
    const SXE_TIME stamp = sxe_pool_get_time(two, 0);
    /* twice, because a lost lease stays lost */
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        ck_assert(!sxe_pool_lease_is_held(one, &late));
        ck_assert_uint_eq(sxe_pool_lease_move(one, &late, FREE, NULL), SXE_POOL_LEASE_LOST);
        ck_assert_uint_eq(sxe_pool_lease_move(one, &late, BUSY, &(struct job){0, "late"}),
                          SXE_POOL_LEASE_LOST);
        ck_assert_uint_eq(sxe_pool_lease_renew(one, &late), SXE_POOL_LEASE_LOST);
        ck_assert_uint_eq(sxe_pool_lease_write(one, &late, 8, 4, "late"), SXE_POOL_LEASE_LOST);
    }
    ck_assert_uint_eq(sxe_pool_get_state(two, 0), BUSY);
    ck_assert_uint_eq(sxe_pool_get_time(two, 0), stamp);
    ck_assert_int_eq(sxe_pool_read_element(two, 0, &found), 0);
    ck_assert_mem_eq(&found, &job, sizeof(job));
    copy = swift;
    ck_assert_uint_eq(sxe_pool_lease_move(two, &swift, FREE, NULL), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_lease_move(two, &copy, BUSY, NULL), SXE_POOL_LEASE_LOST);
    check_and_close(two);
    check_and_close(one);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: Each change of an element, by any process, gives the element another
 * stamp, and no stamp comes twice. */
START_TEST(no_stamp_comes_twice)
{
    SXE_POOL_LEASE lease;

    path = outside_path("twice");
    struct job *jobs = open_jobs(2);
    SXE_TIME last = 0;

    lease.id = 3;
    for (unsigned i = 0; i < 1000; i++) {
        const unsigned from = i % STATES;

        ck_assert_uint_eq(sxe_pool_lease_indexed(jobs, from, (from + 1) % STATES, NULL, &lease), 0);
        ck_assert_uint_gt(lease.stamp, last);
        last = lease.stamp;
        if (i % 7 == 0) { /* now and then the pool's only user closes and opens it */
            sxe_pool_delete(jobs);
            jobs = open_jobs(2);
        }
    }
    check_and_close(jobs);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: So a lease is lost when a call moves or touches the element without the
 * lease. */
START_TEST(a_change_without_the_lease_loses_it)
{
    SXE_POOL_LEASE lease;
    unsigned ids[1] = {0};

    path = outside_path("lost");
    struct job *jobs = open_jobs(1);

    for (unsigned way = 0; way < 4; way++) {
        lease.id = 0;
        ck_assert_uint_eq(
            sxe_pool_lease_indexed(jobs, sxe_pool_get_state(jobs, 0), BUSY, NULL, &lease), 0);
        ck_assert(sxe_pool_lease_is_held(jobs, &lease));
        if (way == 0)
            sxe_pool_touch(jobs, 0);
        else if (way == 1)
            sxe_pool_take(jobs, BUSY, BUSY);
        else if (way == 2)
            ck_assert_uint_eq(sxe_pool_move_many(jobs, ids, 1, BUSY, READY), 1);
        else
            ck_assert_uint_eq(sxe_pool_take_exact(jobs, BUSY, READY), 0);
        ck_assert_uint_eq(sxe_pool_lease_renew(jobs, &lease), SXE_POOL_LEASE_LOST);
    }
    check_and_close(jobs);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: are written under the same lock. A process that sees the new state sees
 * the contents, too, so no state WRITING is necessary in between. */
START_TEST(a_ready_element_has_its_contents)
{
    SXE_POOL_LEASE lease;

    path = outside_path("written");
    struct job *jobs = open_jobs(1);
    struct job *other = open_jobs(1);

    for (unsigned i = 0; i < 100; i++) {
        const struct job job = {i, "job"};
        struct job found;

        ck_assert_uint_lt(sxe_pool_lease_oldest(jobs, FREE, READY, &job, &lease), 8);
        ck_assert_uint_eq(sxe_pool_take(other, READY, BUSY), lease.id);
        ck_assert_int_eq(sxe_pool_read_element(other, lease.id, &found), 0);
        ck_assert_mem_eq(&found, &job, sizeof(job));
        ck_assert_uint_eq(sxe_pool_move(other, lease.id, BUSY, FREE), 0);
    }
    check_and_close(other);
    check_and_close(jobs);
    unlink(path);
}
END_TEST

static unsigned outcomes[3];

/* Before the timeout acts, another program ends the job and begins the next one in its place. */
static void
be_too_late(void *jobs, unsigned id, void *user)
{
    SXE_POOL_LEASE due;

    (void)user;
    if (id == 0) {
        sxe_pool_move(jobs, id, BUSY, FREE);
        sxe_pool_move(jobs, id, FREE, BUSY);
    }
    sxe_pool_lease_due(jobs, id, &due);
    outcomes[id] = sxe_pool_lease_move(jobs, &due, READY, NULL);
}

/* promise: docs/pool.md: `lease_due` is for `on_timeout`. Without it, a job that was ended and
 * taken again between the timeout's check and its move would be taken from its new worker. */
START_TEST(a_timeout_takes_back_only_a_due_job)
{
    static const double timeouts[STATES] = {[BUSY] = 0.001};

    path = outside_path("due");
    struct job *jobs = open_jobs(1);

    ck_assert_int_eq(sxe_pool_set_timeouts(jobs, timeouts, be_too_late, NULL), 0);
    for (unsigned id = 0; id < 2; id++)
        sxe_pool_move(jobs, id, FREE, BUSY);
    usleep(5000); /* longer than the timeout, which is 1 ms */
    outcomes[0] = outcomes[1] = 4711;
    sxe_pool_check_timeouts();
    ck_assert_uint_eq(outcomes[0], SXE_POOL_LEASE_LOST);
    ck_assert_uint_eq(outcomes[1], SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_state(jobs, 0), BUSY);
    ck_assert_uint_eq(sxe_pool_get_state(jobs, 1), READY);
    check_and_close(jobs);
    unlink(path);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_late_worker_changes_nothing,       no_stamp_comes_twice,
                            a_change_without_the_lease_loses_it, a_ready_element_has_its_contents,
                            a_timeout_takes_back_only_a_due_job, NULL};

    return outside_run("pool-lease", cases);
}
