/* SPDX-License-Identifier: MIT
 *
 * Other processes change the file or the lock of a pool at a bad moment, or die
 * in the middle of a change. The library's own lines are compiled here with macros that end the
 * process at a chosen store.
 */
#include "mortal-stores.h"

#include "../../../lib-sxe-pool/sxe-pool-lock.c"
#include "../../../lib-sxe-pool/sxe-pool-shared.c"

#include "pool-file.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include "capture-log.h"
#include "fake-time.h"
#include "leaks.h"
#include "test-main.h"

#define START      (1000 * SXE_NS_PER_SECOND)
#define STORES_MAX 100u

static void
setup(void)
{
    begin_with_no_file();
    sxe_time_set_turn_ns(START);
    note_what_is_open();
}

static void
teardown(void)
{
    fake_os_reset();
    fake_time_stop();
    sxe_time_set_turn_ns(0);
    remove_the_file();
    check_that_nothing_is_left();
}

/* ---- The file ---- */

/* This process has created the file. Before it can lock the file, another process locks it and
 * makes its own pool in it. */
START_TEST(a_pool_that_another_made_in_a_new_file_stays)
{
    const SXE_POOL_SPEC other = file_spec();
    struct sxe__pool_opening opening = {.spec = file_spec(), .why = why, .what = file_path};

    opening.spec.number = 65;
    ck_assert_int_eq(sxe__pool_head_plan(&opening), 0);
    ck_assert_int_eq(sxe__pool_file_open(&opening), 0);
    ck_assert(opening.is_made);
    sxe_pool_delete(open_pool(&other));
    ck_assert_int_eq(sxe__pool_opening_lock(opening.fd), 0);
    ck_assert_int_eq(sxe__pool_head_read(&opening), -EEXIST);
    sxe__pool_file_undo(&opening);
    close(opening.fd);
    ck_assert(file_exists());
    expect_found(&other, SXE_POOL_CLOSED);
}
END_TEST

/* How many seconds an open waits for another open of a file of this size: checking and writing a
 * large pool takes longer. */
static const struct {
    off_t size;
    unsigned seconds;
} waits[] = {{0, 1}, {((off_t)64 << 20) - 1, 1}, {(off_t)64 << 20, 2}, {(off_t)10 << 30, 60}};

START_TEST(who_opens_a_large_pool_waits_longer)
{
    const int holder = open(file_path, O_RDWR | O_CREAT, 0600);
    const int fd = open(file_path, O_RDWR);

    ck_assert_int_eq(ftruncate(fd, waits[_i].size), 0);
    ck_assert_int_eq(sxe__pool_opening_lock(holder), 0);
    fake_time_start(START, START);
    ck_assert_int_eq(sxe__pool_opening_lock(fd), -EAGAIN);
    ck_assert_uint_ge(sxe_time_ns(), START + waits[_i].seconds * SXE_NS_PER_SECOND);
    ck_assert_uint_lt(sxe_time_ns(), START + waits[_i].seconds * SXE_NS_PER_SECOND + START / 1000);
    close(holder);
    ck_assert_int_eq(sxe__pool_opening_lock(fd), 0);
    close(fd);
}
END_TEST

START_TEST(a_file_whose_size_is_not_known_is_waited_for_a_second)
{
    const int holder = open(file_path, O_RDWR | O_CREAT, 0600);
    const int fd = open(file_path, O_RDWR);

    ck_assert_int_eq(sxe__pool_opening_lock(holder), 0);
    fake_time_start(START, START);
    fake_os_fail(FAKE_FSTAT, 1, 0, EIO);
    ck_assert_int_eq(sxe__pool_opening_lock(fd), -EAGAIN);
    ck_assert_uint_lt(sxe_time_ns(), START + 2 * SXE_NS_PER_SECOND);
    close(holder);
    close(fd);
}
END_TEST

/* Without this refusal the kernel would send SIGXFSZ, which ends the program. */
START_TEST(a_file_larger_than_the_process_may_write_is_refused)
{
    SXE_POOL_SPEC spec = file_spec();
    struct rlimit all;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    const struct rlimit few = {.rlim_cur = 4096, .rlim_max = all.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &few), 0);
    expect_refused(&spec, EFBIG, "this process may only write 4096");
    ck_assert(!file_exists());
    spec.file = NULL;
    expect_refused(&spec, EFBIG, "this process may only write 4096");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
    expect_found(&spec, SXE_POOL_CREATED);
}
END_TEST

/* Touching a page that was cut off raises SIGBUS, as in any mapped file (docs/pool.md). */
START_TEST(a_file_that_is_cut_short_in_use_ends_its_users_and_is_refused_then)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *array = open_pool(&spec);
    const pid_t child = fork();

    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_TAKEN);
        ck_assert_int_eq(truncate(file_path, (off_t)sharing_of(array)->head_size), 0);
        sxe_pool_touch(array, 1);
        _exit(0);
    }
    end_child(child, SIGBUS);
    expect_refused(&spec, EMEDIUMTYPE, "bytes, the pool in it");
    ck_assert_int_eq(
        truncate(file_path, (off_t)(sharing_of(array)->head_size + sharing_of(array)->size)), 0);
    sxe_pool_delete(array);
}
END_TEST

/* The memory of a shared pool is sealed (F_SEAL_SHRINK), so nobody can truncate it. */
START_TEST(memory_that_is_shared_cannot_be_cut_short)
{
    char *array = open_shared(PROCESSES, 10, 8, 1);

    ck_assert_int_eq(ftruncate(sxe_pool_get_fd(array), 0), -1);
    ck_assert_int_eq(errno, EPERM);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Locks ---- */

START_TEST(a_shard_whose_change_cannot_be_completed_stays_damaged)
{
    char *array = open_shared(PROCESSES, 4, 1, 2);
    struct sxe__pool_shard *shard = sharing_of(array)->shards;
    struct sxe__pool_intent left;

    memset(&shard->intent, 0xff, sizeof(shard->intent));
    left = shard->intent;
    shard->lock = dead_token(array);
    sxe_log_set_level(SXE_LOG_FATAL);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(sxe_pool_move(array, 0, FREE, BUSY), SXE_POOL_DAMAGED);
        ck_assert_int_eq(memcmp(&shard->intent, &left, sizeof(left)), 0);
    }
    ck_assert_uint_eq(sxe_pool_get_state(array, 0), FREE);
    ck_assert_int_eq(sxe_pool_check(array, why), -EUCLEAN);
    ck_assert_uint_eq(sxe_pool_move(array, 1, FREE, BUSY), SXE_POOL_LOCK_TAKEN);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_child_of_fork_does_not_wait_for_a_thread_that_opens)
{
    char *array = open_shared(PROCESSES, 4, 1, 1);
    const pid_t child = fork();

    if (child == 0) {
        sxe__pool_fork_hold();
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_NOT_TAKEN);
        sxe__pool_fork_allow();
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_TAKEN);
        __gcov_dump();
        _exit(0);
    }
    end_child(child, 0);
    sxe_pool_delete(array);
}
END_TEST

/* Wakes that a process does not read fill the send buffer of the process that sends them. */
START_TEST(who_does_not_read_its_wakes_keeps_nobody_asleep)
{
    char *array = open_shared(PROCESSES, 4, 1, 1);
    char *careless = join(array);
    char *waiting = join(array);
    const int least = 1;
    char byte;

    ck_assert_int_ge(sxe_pool_get_watch_fd(array), 0);
    ck_assert_int_eq(
        setsockopt(sxe_pool_get_watch_fd(array), SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_eq(sxe_pool_watch(careless, BUSY), 0);
        sxe_pool_move(array, 0, FREE, BUSY);
        sxe_pool_move(array, 0, BUSY, FREE);
    }
    ck_assert_int_eq(sxe_pool_watch(waiting, READY), 0);
    sxe_pool_move(array, 0, FREE, READY);
    ck_assert_int_eq(recv(sxe_pool_get_watch_fd(waiting), &byte, 1, MSG_DONTWAIT), 1);
    sxe_pool_delete(waiting);
    sxe_pool_delete(careless);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Lists ---- */

START_TEST(a_walk_that_is_led_back_ends)
{
    char *array = open_shared(PROCESSES, 4, 1, 1);
    SXE_POOL_WALKER walker;

    sxe_log_set_level(SXE_LOG_FATAL);
    node_of(array, 2)->next = 1;
    sxe_pool_walker_construct(&walker, array, FREE);
    for (unsigned id = 0; id < 3; id++)
        ck_assert_uint_eq(sxe_pool_walker_step(&walker), id);
    ck_assert_uint_eq(sxe_pool_walker_step(&walker), SXE_POOL_DAMAGED);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Timeouts ---- */

static void
free_it(void *array, unsigned id, void *user)
{
    SXE_UNUSED_PARAMETER(user);
    ck_assert_uint_eq(sxe_pool_move(array, id, READY, FREE), SXE_POOL_LOCK_TAKEN);
}

/* A child moves element 1 to READY and dies before a store. Either the element is still FREE, or it
 * is READY and has a timeout. Returns whether the child died. */
static bool
move_and_die(char *array, unsigned store)
{
    int status;
    const pid_t child = fork();

    if (child == 0) {
        sxe__pool_attach_again(sharing_of(array));
        stores_to_live = store;
        sxe_pool_move(array, 1, FREE, READY);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

START_TEST(an_element_whose_mover_was_killed_has_its_timeout)
{
    static const double timeouts[STATES] = {[READY] = 1.0};
    char *array = open_shared(PROCESSES, 4, 1, 2);
    unsigned store = 1;
    bool died = true;

    ck_assert_int_eq(sxe_pool_set_timeouts(array, timeouts, free_it, NULL), 0);
    for (; died; store++) {
        sxe_time_set_turn_ns(START + 10 * store * SXE_NS_PER_SECOND);
        died = move_and_die(array, store);
        sxe_time_set_turn_ns(sxe_time_turn_ns() + 5 * SXE_NS_PER_SECOND);
        sxe_pool_check_timeouts();
        ck_assert_msg(sxe_pool_get_state(array, 1) == FREE, "killed at store %u: state %u", store,
                      sxe_pool_get_state(array, 1));
        ck_assert_msg(sxe_pool_get_count(array, FREE) == 4, "killed at store %u", store);
        ck_assert_msg(sxe_pool_check(array, why) == 0, "killed at store %u: %s", store, why);
        ck_assert_uint_lt(store, STORES_MAX);
    }
    ck_assert_uint_gt(store, 10);
    sxe_pool_delete(array);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-accident");
    TCase *tcase = tcase_create("accident");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_pool_that_another_made_in_a_new_file_stays);
    tcase_add_loop_test(tcase, who_opens_a_large_pool_waits_longer, 0, LENGTH_OF(waits));
    tcase_add_test(tcase, a_file_whose_size_is_not_known_is_waited_for_a_second);
    tcase_add_test(tcase, a_file_larger_than_the_process_may_write_is_refused);
    tcase_add_test(tcase, a_file_that_is_cut_short_in_use_ends_its_users_and_is_refused_then);
    tcase_add_test(tcase, memory_that_is_shared_cannot_be_cut_short);
    tcase_add_test(tcase, a_shard_whose_change_cannot_be_completed_stays_damaged);
    tcase_add_test(tcase, a_child_of_fork_does_not_wait_for_a_thread_that_opens);
    tcase_add_test(tcase, who_does_not_read_its_wakes_keeps_nobody_asleep);
    tcase_add_test(tcase, a_walk_that_is_led_back_ends);
    tcase_add_test(tcase, an_element_whose_mover_was_killed_has_its_timeout);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
