/* SPDX-License-Identifier: MIT
 *
 * The time of a shared pool, by docs/pool.md, in processes whose clocks differ.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sxe-pool-shared.h>
#include <sxe-time.h>
#include <sys/wait.h>

enum { FREE, READY, STATES };

#define HOURS_100_S 360000

static void *
open_pool(const char *path)
{
    SXE_POOL_SPEC spec = {.name = "jobs",
                          .number = 8,
                          .element_size = 8,
                          .states = STATES,
                          .state_names = "FREE READY",
                          .options = SXE_POOL_OPTION_SHARED,
                          .file = path};
    char why[SXE_POOL_WHY_SIZE];
    void *pool = sxe_pool_open(&spec, why);

    ck_assert_msg(pool != NULL, "%s", why);
    return pool;
}

static double
age_s(const void *pool, unsigned id)
{
    return (double)(sxe_pool_get_now(pool) - sxe_pool_get_time(pool, id)) / 1e9;
}

static void
take(void *pool, unsigned id)
{
    ck_assert_uint_eq(sxe_pool_move(pool, id, FREE, READY), SXE_POOL_LOCK_TAKEN);
}

/* Run act in a process whose monotonic clock is 100 hours ahead: a child makes a time namespace for
 * its own children. Returns the exit status; 77: namespaces are not allowed here. */
static int
run_ahead(void (*act)(const char *), const char *path)
{
    char offset[64];
    int fd;
    int status = 77 << 8;

    if (unshare(CLONE_NEWTIME) != 0)
        return 77;
    fd = open("/proc/self/timens_offsets", O_WRONLY);
    snprintf(offset, sizeof(offset), "monotonic %d 0\n", HOURS_100_S);
    if (fd < 0 || write(fd, offset, strlen(offset)) < 0)
        return 77;
    close(fd);

    pid_t child = fork();

    if (child == 0) {
        act(path);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool
did_ahead(void (*act)(const char *), const char *path)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(run_ahead(act, path));
    waitpid(child, &status, 0);
    ck_assert_int_eq(WIFEXITED(status), 1);
    ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    return WEXITSTATUS(status) == 0;
}

static void
take_0(const char *path)
{
    void *pool = open_pool(path);

    take(pool, 0);
    sxe_pool_delete(pool);
}

/* promise: docs/pool.md: A process in a time namespace sees the same time of the pool as all
 * others. */
START_TEST(a_time_namespace_does_not_hold_up_others)
{
    const char *path = outside_path("jobs.pool");
    void *pool = open_pool(path);

    if (did_ahead(take_0, path)) {
        ck_assert_int_eq(sxe_pool_get_state(pool, 0), READY);
        take(pool, 1);
        ck_assert(age_s(pool, 0) >= 0 && age_s(pool, 0) < HOURS_100_S / 2);
        ck_assert(age_s(pool, 1) >= 0 && age_s(pool, 1) < HOURS_100_S / 2);
        ck_assert_uint_lt(sxe_pool_get_now(pool),
                          sxe_time_ns() + HOURS_100_S / 2 * UINT64_C(1000000000));
    }
    ck_assert_int_eq(sxe_pool_check(pool, NULL), 0);
    sxe_pool_delete(pool);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: A process in a time namespace sees the same time of the pool as all
 * others. */
START_TEST(a_pool_that_is_made_in_a_time_namespace_has_the_machines_time)
{
    const char *path = outside_path("made.pool");

    if (did_ahead(take_0, path)) {
        void *pool = open_pool(path);

        ck_assert_int_eq(sxe_pool_get_state(pool, 0), READY);
        ck_assert(age_s(pool, 0) >= 0 && age_s(pool, 0) < HOURS_100_S / 2);
        ck_assert(age_s(pool, 7) >= 0 && age_s(pool, 7) < HOURS_100_S / 2);
        ck_assert_int_eq(sxe_pool_check(pool, NULL), 0);
        sxe_pool_delete(pool);
    }
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: Stamps never overflow: a turn's time is at most 2^62 ns. */
START_TEST(a_turn_at_the_end_of_time_leaves_the_pool_whole)
{
    const char *path = outside_path("end.pool");
    void *pool = open_pool(path);

    sxe_time_set_turn_ns(UINT64_MAX);
    for (unsigned id = 0; id < 4; id++)
        take(pool, id);
    sxe_time_set_turn_ns(0);
    take(pool, 4);
    ck_assert_int_eq(sxe_pool_check(pool, NULL), 0);
    sxe_pool_delete(pool);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: This lasts until all users have closed the pool once: the process that
 * opens it next continues from the youngest stamp. */
START_TEST(the_next_user_goes_on_from_the_youngest_stamp)
{
    const char *path = outside_path("next.pool");
    void *pool = open_pool(path);

    sxe_time_set_turn_ns(UINT64_MAX / 8);
    take(pool, 0);
    sxe_time_set_turn_ns(0);
    sxe_pool_delete(pool);
    pool = open_pool(path);
    ck_assert(age_s(pool, 0) >= 0);
    take(pool, 1);
    ck_assert_uint_ge(sxe_pool_get_now(pool), sxe_pool_get_time(pool, 1) - 1);
    sxe_pool_delete(pool);
    unlink(path);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_time_namespace_does_not_hold_up_others,
                            a_pool_that_is_made_in_a_time_namespace_has_the_machines_time,
                            a_turn_at_the_end_of_time_leaves_the_pool_whole,
                            the_next_user_goes_on_from_the_youngest_stamp, NULL};

    return outside_run("pool-clock", cases);
}
