/* SPDX-License-Identifier: MIT
 *
 * Locks whose owners are alive, dead, or have become other processes by fork.
 */
#include "pool-file.h"

#include <pthread.h>
#include <sched.h>

#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "leaks.h"
#include "test-main.h"

static char *array;
static struct sxe__pool_sharing *mine;
static uint32_t *lock;

static void
open_again(void)
{
    const SXE_POOL_SPEC spec = file_spec();

    array = open_pool(&spec);
    mine = sharing_of(array);
    lock = &mine->shards[0].lock;
}

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
    open_again();
}

static void
end(void)
{
    fake_os_reset();
    sxe_pool_delete(array);
    remove_the_file();
    check_that_nothing_is_left();
}

/* Pipes between a case and its child. A byte means: go on. */
static int to_child[2];
static int to_parent[2];

static void
make_pipes(void)
{
    ck_assert_int_eq(pipe(to_child), 0);
    ck_assert_int_eq(pipe(to_parent), 0);
}

static void
close_pipes(void)
{
    for (unsigned i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

static void
tell(int ends[2])
{
    ck_assert_int_eq(write(ends[1], "", 1), 1);
}

static void
await(int ends[2])
{
    char byte;

    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
}

/* Wait until all other processes that hold the pipe's other end have ended. */
static void
await_end(int ends[2])
{
    char byte;

    close(ends[1]);
    ends[1] = -1;
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);
}

_Noreturn static void
leave_well(void)
{
    fake_os_reset();
    __gcov_dump();
    _exit(0);
}

/* ---- Owners that are alive, and owners that are dead ---- */

START_TEST(a_lock_is_taken_once)
{
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 0);
    ck_assert_uint_eq(*lock, mine->token);
    ck_assert_int_eq(sxe__pool_lock(mine, lock), -EAGAIN);
    sxe__pool_unlock(lock);
    ck_assert_uint_eq(*lock, 0);
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 0);
    sxe__pool_unlock(lock);
}
END_TEST

START_TEST(calls_do_not_wait_for_a_process_that_stands_still)
{
    char *other = join(array);
    unsigned state = BUSY;

    for (unsigned shard = 0; shard < 2; shard++)
        ck_assert_int_eq(sxe__pool_lock(mine, &mine->shards[shard].lock), 0);
    ck_assert_uint_eq(sxe_pool_take(other, FREE, BUSY), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_move(other, 1, FREE, BUSY), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_try_move(other, 1, FREE, &state), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_touch(other, 1), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_count(other, FREE), 64);
    for (unsigned shard = 0; shard < 2; shard++)
        sxe__pool_unlock(&mine->shards[shard].lock);
    ck_assert_uint_eq(sxe_pool_touch(other, 1), SXE_POOL_LOCK_TAKEN);
    sxe_pool_delete(other);
}
END_TEST

START_TEST(the_lock_of_a_dead_process_is_taken_over)
{
    const pid_t child = fork();

    if (child == 0) {
        ck_assert_int_eq(sxe__pool_lock(mine, lock), 0);
        ck_assert_uint_ne(mine->token, 1u << SXE__POOL_SLOT_BITS);
        die();
    }
    end_child(child, SIGKILL);
    ck_assert_uint_ne(*lock, 0);
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 1);
    ck_assert_uint_eq(*lock, mine->token);
    sxe__pool_unlock(lock);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
}
END_TEST

START_TEST(a_lock_of_a_slot_that_has_another_user_is_taken_over)
{
    char *other = join(array);
    const uint32_t token = sharing_of(other)->token;

    sxe_pool_delete(other);
    *lock = token;
    other = join(array);
    ck_assert_uint_eq((sharing_of(other)->token ^ token) & (SXE_POOL_SLOTS - 1), 0);
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 1);
    sxe__pool_unlock(lock);
    sxe_pool_delete(other);
}
END_TEST

START_TEST(who_gets_the_slot_of_the_dead_watches_nothing_of_theirs)
{
    const pid_t child = fork();

    if (child == 0) {
        char *other = join(array);

        mine->head->slots[sharing_of(other)->token % SXE_POOL_SLOTS].watched = 7;
        ck_assert_uint_eq(sharing_of(other)->token % SXE_POOL_SLOTS, 1);
        die();
    }
    end_child(child, SIGKILL);
    ck_assert_uint_eq(mine->head->slots[1].watched, 7);
    ck_assert_uint_ne(mine->head->slots[1].process, 0);
    char *other = join(array);
    ck_assert_uint_eq(mine->head->slots[1].watched, 0);
    ck_assert_uint_eq(mine->head->slots[1].process, (uint32_t)getpid());
    mine->head->slots[1].watched = 7;
    sxe_pool_delete(other);
    ck_assert_uint_eq(mine->head->slots[1].watched, 0);
    ck_assert_uint_eq(mine->head->slots[1].process, 0);
}
END_TEST

START_TEST(a_lock_of_nobody_that_ever_was_is_taken_over)
{
    *lock = 0xdeadbeef;
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 1);
    sxe__pool_unlock(lock);
}
END_TEST

START_TEST(who_cannot_be_asked_about_lives)
{
    char *other = join(array);

    ck_assert_int_eq(sxe__pool_lock(sharing_of(other), lock), 0);
    fake_os_fail(FAKE_FCNTL, 1, 0, EBADF);
    ck_assert(sxe__pool_is_owner_alive(mine, sharing_of(other)->token));
    ck_assert_int_eq(sxe__pool_lock(mine, lock), -EAGAIN);
    fake_os_reset();
    ck_assert_int_eq(sxe__pool_lock(mine, lock), -EAGAIN);
    sxe_pool_delete(other);
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 1);
    sxe__pool_unlock(lock);
}
END_TEST

START_TEST(among_threads_all_owners_live)
{
    char *pool = open_shared(THREADS, 10, 8, 1);
    struct sxe__pool_sharing *sharing = sharing_of(pool);

    ck_assert(sxe__pool_is_owner_alive(sharing, 12345));
    ck_assert_int_eq(sxe__pool_lock(sharing, &sharing->shards[0].lock), 0);
    ck_assert_int_eq(sxe__pool_lock(sharing, &sharing->shards[0].lock), -EAGAIN);
    sxe_pool_delete(pool);
}
END_TEST

static void *
take_1000_times(void *pool)
{
    unsigned taken = 0;

    while (taken < 1000) {
        const unsigned id = sxe_pool_take(pool, FREE, BUSY);

        if (id == SXE_POOL_LOCK_NOT_TAKEN)
            continue;
        ck_assert_uint_lt(id, 10);
        while (sxe_pool_move(pool, id, BUSY, FREE) != SXE_POOL_LOCK_TAKEN)
            continue;
        taken++;
    }
    return NULL;
}

START_TEST(a_lock_that_is_let_go_while_another_spins_is_taken)
{
    char *pool = open_shared(_i, 10, 8, 1);
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, take_1000_times, pool), 0);
    take_1000_times(pool);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(sxe_pool_get_count(pool, FREE), 10);
    ck_assert_int_eq(sxe_pool_check(pool, why), 0);
    sxe_pool_delete(pool);
}
END_TEST

/* ---- Children of fork ---- */

START_TEST(a_child_of_fork_becomes_a_user_with_its_first_lock)
{
    const uint32_t token = mine->token;

    const pid_t child = fork();
    if (child == 0) {
        ck_assert_uint_eq(mine->token, 0);
        ck_assert_uint_eq(sxe_pool_get_state(array, 5), FREE);
        ck_assert_int_eq(sxe_pool_get_user(array, 1), 0);
        ck_assert_uint_eq(sxe_pool_move(array, 5, FREE, BUSY), SXE_POOL_LOCK_TAKEN);
        ck_assert_uint_ne(mine->token, token);
        ck_assert_int_eq(sxe_pool_get_user(array, 0), getppid());
        ck_assert_int_eq(sxe_pool_get_user(array, 1), getpid());
        ck_assert(sxe__pool_attach_again(mine));
        sxe_pool_delete(array);
        leave_well();
    }
    end_child(child, 0);
    ck_assert_uint_eq(mine->token, token);
    ck_assert_uint_eq(sxe_pool_get_state(array, 5), BUSY);
    ck_assert_int_eq(sxe_pool_get_user(array, 1), 0);
    ck_assert(sxe__pool_is_owner_alive(mine, token));
}
END_TEST

enum { FORKED_THREADS = 4 };

static unsigned started;

static void *
touch_with_the_others(void *user)
{
    const unsigned id = *(const unsigned *)user;

    __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&started, __ATOMIC_RELAXED) < FORKED_THREADS)
        sched_yield();
    while (sxe_pool_touch(array, id) != SXE_POOL_LOCK_TAKEN)
        continue;
    return NULL;
}

START_TEST(all_threads_of_a_child_are_one_user)
{
    static unsigned ids[FORKED_THREADS] = {0, 1, 2, 3};
    pthread_t threads[FORKED_THREADS];

    for (unsigned round = 0; round < 10; round++) {
        const pid_t child = fork();
        if (child == 0) {
            for (unsigned i = 0; i < FORKED_THREADS; i++)
                pthread_create(&threads[i], NULL, touch_with_the_others, &ids[i]);
            for (unsigned i = 0; i < FORKED_THREADS; i++)
                pthread_join(threads[i], NULL);
            ck_assert_int_eq(sxe_pool_get_user(array, 1), getpid());
            ck_assert_int_eq(sxe_pool_get_user(array, 2), 0);
            ck_assert_int_eq(sxe_pool_check(array, why), 0);
            leave_well();
        }
        end_child(child, 0);
    }
}
END_TEST

START_TEST(a_lock_that_the_parent_holds_is_the_parents)
{
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 0);
    const pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(sxe__pool_lock(mine, lock), -EAGAIN);
        ck_assert_int_eq(sxe__pool_lock(mine, &mine->shards[1].lock), 0);
        leave_well();
    }
    end_child(child, 0);
    ck_assert_int_eq(sxe__pool_lock(mine, &mine->shards[1].lock), 1);
    sxe__pool_unlock(lock);
    sxe__pool_unlock(&mine->shards[1].lock);
}
END_TEST

/* The parent is itself a child of the test: it forks, takes the lock and is killed, while its own
 * child lives on. */
START_TEST(a_child_that_does_nothing_does_not_keep_its_parents_lock)
{
    make_pipes();
    const pid_t parent = fork();
    if (parent == 0) {
        open_again();
        if (fork() == 0) {
            tell(to_parent);
            await(to_child);
            _exit(0);
        }
        ck_assert_int_eq(sxe__pool_lock(mine, lock), 0);
        await(to_parent);
        die();
    }
    end_child(parent, SIGKILL);
    ck_assert_int_eq(sxe__pool_lock(mine, lock), 1);
    sxe__pool_unlock(lock);
    tell(to_child);
    close_pipes();
}
END_TEST

START_TEST(a_child_that_cannot_open_the_file_has_no_way_to_it)
{
    static const enum fake_call calls[] = {FAKE_OPEN, FAKE_DUP3};

    make_pipes();
    const pid_t parent = fork();
    if (parent == 0) {
        open_again();
        fake_os_fail(calls[_i], 1, 0, EMFILE);
        if (fork() == 0) {
            ck_assert_int_eq(mine->fd, -1);
            ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_NOT_TAKEN);
            ck_assert_uint_eq(sxe_pool_get_state(array, 1), FREE);
            tell(to_parent);
            await(to_child);
            sxe_pool_delete(array);
            leave_well();
        }
        await(to_parent);
        die();
    }
    end_child(parent, SIGKILL);
    ck_assert_int_eq(sxe_pool_get_user(array, 1), 0);
    tell(to_child);
    await_end(to_parent);
    close_pipes();
}
END_TEST

START_TEST(a_child_becomes_no_user_while_another_opens)
{
    const int fd = open(file_path, O_RDWR | O_CLOEXEC);

    const pid_t child = fork();
    if (child == 0) {
        const int own = open(file_path, O_RDWR | O_CLOEXEC);

        ck_assert_int_eq(sxe__pool_opening_lock(own), 0);
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_NOT_TAKEN);
        sxe__pool_opening_unlock(own);
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_TAKEN);
        leave_well();
    }
    end_child(child, 0);
    close(fd);
}
END_TEST

START_TEST(a_child_becomes_no_user_where_there_are_128)
{
    static char *arrays[SXE_POOL_SLOTS];

    for (unsigned i = 1; i < SXE_POOL_SLOTS; i++)
        arrays[i] = join(array);
    const pid_t child = fork();
    if (child == 0) {
        capture_log();
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_NOT_TAKEN);
        ck_assert(logged("a child of fork cannot be a user of the pool: Too many users"));
        leave_well();
    }
    end_child(child, 0);
    for (unsigned i = 1; i < SXE_POOL_SLOTS; i++)
        sxe_pool_delete(arrays[i]);
}
END_TEST

/* Each record lock (fcntl) that the child asks for fails in turn. */
START_TEST(a_child_that_cannot_become_a_user_tries_again_later)
{
    const pid_t child = fork();

    if (child == 0) {
        sxe_log_set_level(SXE_LOG_NONE);
        fake_os_fail(FAKE_FCNTL, (unsigned)_i, 1, ENOLCK);
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_NOT_TAKEN);
        ck_assert_uint_eq(fake_os_injected(), 1);
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_TAKEN);
        leave_well();
    }
    end_child(child, 0);
}
END_TEST

START_TEST(a_child_that_closes_it_leaves_its_parent_a_user)
{
    const pid_t child = fork();

    if (child == 0) {
        sxe_pool_delete(array);
        leave_well();
    }
    end_child(child, 0);
    ck_assert_int_eq(sxe_pool_get_user(array, 0), getpid());
    const SXE_POOL_SPEC spec = file_spec();
    expect_found(&spec, SXE_POOL_JOINED);
}
END_TEST

/* The parent closes the pool, so that it is on the disk as closed. Then the child uses it, which is
 * not among the pool's users yet. */
START_TEST(a_child_that_goes_on_alone_is_in_it)
{
    make_pipes();
    const pid_t child = fork();
    if (child == 0) {
        await(to_child);
        ck_assert_uint_eq(mine->head->closed, SXE__POOL_CLOSED_MARK);
        ck_assert_uint_eq(sxe_pool_touch(array, 1), SXE_POOL_LOCK_TAKEN);
        ck_assert_uint_eq(mine->head->closed, 0);
        die();
    }
    sxe_pool_delete(array);
    tell(to_child);
    end_child(child, SIGKILL);
    close_pipes();
    open_again();
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_COMPLETED);
}
END_TEST

START_TEST(a_child_does_not_take_over_what_is_sent_to_its_parent)
{
    const int fd = sxe_pool_get_watch_fd(array);

    ck_assert_int_ge(fd, 0);
    const pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(mine->watch_fd, -1);
        ck_assert_int_eq(close(fd), -1);
        leave_well();
    }
    end_child(child, 0);
    ck_assert_int_eq(sxe_pool_get_watch_fd(array), fd);
}
END_TEST

static void *
open_and_close(void *user)
{
    const SXE_POOL_SPEC spec = file_spec();

    (void)user;
    for (unsigned i = 0; i < 200; i++)
        sxe_pool_delete(open_patiently(&spec));
    return NULL;
}

/* A child must not inherit a descriptor that a thread of its parent opens during the fork: with it
 * the parent's user would look alive for ever. */
START_TEST(a_child_has_nothing_of_what_is_opened_meanwhile)
{
    enum { CHILDREN = 20 };
    pid_t children[CHILDREN];
    pthread_t thread;
    char byte;

    make_pipes();
    ck_assert_int_eq(pthread_create(&thread, NULL, open_and_close, NULL), 0);
    for (unsigned i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) /* no call of libcheck, whose lock the other thread may have held */
            _exit(read(to_child[0], &byte, 1) == 1 ? 0 : 1);
    }
    pthread_join(thread, NULL);
    for (unsigned slot = 1; slot < SXE_POOL_SLOTS; slot++)
        ck_assert(!sxe__pool_is_owner_alive(
            mine, mine->head->slots[slot].generation << SXE__POOL_SLOT_BITS | slot));
    ck_assert_int_eq(sxe__pool_others(mine->fd), 0);
    for (unsigned i = 0; i < CHILDREN; i++)
        tell(to_child);
    for (unsigned i = 0; i < CHILDREN; i++)
        end_child(children[i], 0);
    close_pipes();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-lock");
    TCase *owners = tcase_create("owners");
    TCase *children = tcase_create("children");

    tcase_add_checked_fixture(owners, begin, end);
    tcase_add_test(owners, a_lock_is_taken_once);
    tcase_add_test(owners, calls_do_not_wait_for_a_process_that_stands_still);
    tcase_add_test(owners, the_lock_of_a_dead_process_is_taken_over);
    tcase_add_test(owners, a_lock_of_a_slot_that_has_another_user_is_taken_over);
    tcase_add_test(owners, who_gets_the_slot_of_the_dead_watches_nothing_of_theirs);
    tcase_add_test(owners, a_lock_of_nobody_that_ever_was_is_taken_over);
    tcase_add_test(owners, who_cannot_be_asked_about_lives);
    tcase_add_test(owners, among_threads_all_owners_live);
    tcase_add_loop_test(owners, a_lock_that_is_let_go_while_another_spins_is_taken, THREADS,
                        PROCESSES + 1);
    suite_add_tcase(s, owners);

    tcase_add_checked_fixture(children, begin, end);
    tcase_add_test(children, a_child_of_fork_becomes_a_user_with_its_first_lock);
    tcase_add_test(children, all_threads_of_a_child_are_one_user);
    tcase_add_test(children, a_lock_that_the_parent_holds_is_the_parents);
    tcase_add_test(children, a_child_that_does_nothing_does_not_keep_its_parents_lock);
    tcase_add_loop_test(children, a_child_that_cannot_open_the_file_has_no_way_to_it, 0, 2);
    tcase_add_test(children, a_child_becomes_no_user_while_another_opens);
    tcase_add_test(children, a_child_becomes_no_user_where_there_are_128);
    tcase_add_loop_test(children, a_child_that_cannot_become_a_user_tries_again_later, 1, 3);
    tcase_add_test(children, a_child_that_closes_it_leaves_its_parent_a_user);
    tcase_add_test(children, a_child_that_goes_on_alone_is_in_it);
    tcase_add_test(children, a_child_does_not_take_over_what_is_sent_to_its_parent);
    tcase_add_test(children, a_child_has_nothing_of_what_is_opened_meanwhile);
    suite_add_tcase(s, children);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
