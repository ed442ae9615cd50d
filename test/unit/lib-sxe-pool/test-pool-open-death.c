/* SPDX-License-Identifier: MIT
 *
 * Processes that open one pool at the same time; some are killed while they do.
 */
#include "pool-file.h"

#include <sys/ptrace.h>

#include "leaks.h"
#include "test-main.h"

static SXE_POOL_SPEC spec;

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
    spec = file_spec();
}

static void
end(void)
{
    remove_the_file();
    check_that_nothing_is_left();
}

/* ---- Processes that open a pool at the same time ---- */

enum { PROCESSES_MAX = 8, ROUNDS = 50 };

_Noreturn static void
open_and_say_how(int fd)
{
    char *array = open_patiently(&spec);
    const unsigned char found = (unsigned char)sxe_pool_get_found(array);

    while (sxe_pool_take(array, FREE, BUSY) >= 64)
        continue;
    if (write(fd, &found, 1) != 1)
        abort();
    sxe_pool_delete(array);
    __gcov_dump();
    _exit(0);
}

START_TEST(of_many_that_open_a_pool_at_once_one_makes_it)
{
    unsigned char found[PROCESSES_MAX];
    pid_t children[PROCESSES_MAX];
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned created = 0;

        unlink(file_path);
        for (unsigned i = 0; i < PROCESSES_MAX; i++) {
            children[i] = fork();
            if (children[i] == 0)
                open_and_say_how(ends[1]);
        }
        for (unsigned i = 0; i < PROCESSES_MAX; i++)
            end_child(children[i], 0);
        ck_assert_int_eq(read(ends[0], found, sizeof(found)), sizeof(found));
        for (unsigned i = 0; i < PROCESSES_MAX; i++) {
            created += found[i] == SXE_POOL_CREATED;
            ck_assert(found[i] == SXE_POOL_CREATED || found[i] == SXE_POOL_JOINED ||
                      found[i] == SXE_POOL_CLOSED);
        }
        ck_assert_uint_eq(created, 1);
        char *array = open_pool(&spec);
        ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
        ck_assert_uint_eq(sxe_pool_get_count(array, BUSY), PROCESSES_MAX);
        sxe_pool_delete(array);
    }
    close(ends[0]);
    close(ends[1]);
}
END_TEST

_Noreturn static void
open_and_remove(unsigned seed)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *array = open_patiently(&spec);

        if ((seed + i) % 3 == 0)
            unlink(file_path);
        sxe_pool_delete(array);
    }
    __gcov_dump();
    _exit(0);
}

START_TEST(a_pool_may_be_removed_while_others_open_it)
{
    pid_t children[PROCESSES_MAX];

    for (unsigned i = 0; i < PROCESSES_MAX; i++) {
        children[i] = fork();
        if (children[i] == 0)
            open_and_remove(i);
    }
    for (unsigned i = 0; i < PROCESSES_MAX; i++)
        end_child(children[i], 0);
}
END_TEST

/* ---- Processes that are killed at each system call ---- */

_Noreturn static void
open_use_and_close(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    raise(SIGSTOP);
    char *array = sxe_pool_open(&spec, NULL);
    if (array == NULL || sxe_pool_take(array, FREE, READY) >= 64)
        _exit(1);
    sxe_pool_delete(array);
    _exit(0);
}

/* Let a child go on to its nth stop, before or after a system call, and kill it there. False: the
 * child ended before that stop. */
static bool
kill_at(unsigned nth, bool *possible)
{
    int status;
    const pid_t child = fork();

    if (child == 0)
        open_use_and_close();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    *possible = WIFSTOPPED(status);
    for (unsigned stop = 0; WIFSTOPPED(status); stop++) {
        if (stop == nth)
            kill(child, SIGKILL);
        else
            ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
    }
    ck_assert(!*possible || WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* Open and check the pool. Returns how many elements are not free. */
static unsigned
look(bool *created)
{
    char *array = open_pool(&spec);
    const unsigned used = 64 - sxe_pool_get_count(array, FREE);

    *created = sxe_pool_get_found(array) == SXE_POOL_CREATED;
    ck_assert_int_ne(sxe_pool_get_found(array), SXE_POOL_REBUILT);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    sxe_pool_delete(array);
    return used;
}

START_TEST(who_is_killed_while_making_leaves_all_or_nothing)
{
    bool possible = true;
    bool created;
    unsigned nth;

    for (nth = 0; kill_at(nth, &possible); nth++) {
        const unsigned used = look(&created);
        ck_assert_uint_le(used, created ? 0 : 1);
        unlink(file_path);
    }
    ck_assert_uint_ge(nth, possible ? 50 : 0);
    if (!possible)
        printf("skipped: no tracing here\n");
}
END_TEST

START_TEST(who_is_killed_while_opening_or_closing_leaves_what_was_there)
{
    unsigned used = 1;
    bool possible;
    bool created;

    make_image();
    for (unsigned nth = 0; store_image(image_size), kill_at(nth, &possible); nth++) {
        used = look(&created);
        ck_assert(!created);
        ck_assert(used == 20 || used == 21);
    }
}
END_TEST

/* The test has the pool open all the time. */
START_TEST(who_is_killed_while_joining_or_leaving_does_not_disturb_the_others)
{
    bool possible;
    char *array = open_pool(&spec);

    for (unsigned nth = 0; kill_at(nth, &possible); nth++) {
        ck_assert_uint_eq(sxe_pool_touch(array, nth % 64), SXE_POOL_LOCK_TAKEN);
        ck_assert_int_eq(sxe_pool_check(array, why), 0);
        ck_assert_int_eq(sxe_pool_get_user(array, 1), 0);
        for (unsigned id = 0; id < 64; id++) {
            unsigned state = FREE;
            (void)!sxe_pool_try_move(array, id, READY, &state);
        }
    }
    sxe_pool_delete(array);
    expect_found(&spec, SXE_POOL_CLOSED);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-open-death");
    TCase *together = tcase_create("together");
    TCase *killed = tcase_create("killed");

    tcase_add_checked_fixture(together, begin, end);
    tcase_add_test(together, of_many_that_open_a_pool_at_once_one_makes_it);
    tcase_add_test(together, a_pool_may_be_removed_while_others_open_it);
    suite_add_tcase(s, together);

    tcase_add_checked_fixture(killed, begin, end);
    tcase_add_test(killed, who_is_killed_while_making_leaves_all_or_nothing);
    tcase_add_test(killed, who_is_killed_while_opening_or_closing_leaves_what_was_there);
    tcase_add_test(killed, who_is_killed_while_joining_or_leaving_does_not_disturb_the_others);
    suite_add_tcase(s, killed);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
