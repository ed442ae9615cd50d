/* SPDX-License-Identifier: MIT
 *
 * The samples of the calls of C and Lua. sample() plays the timer; the real one may add samples,
 * too.
 */
#include "profile.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "lua-state.h"
#include "test-main.h"

enum { SIZE = 4 << 20, FDS = 64 };

static char file[SIZE]; /* the file of samples, as tools/flame reads it */

/* Its descriptor, or -1. */
static int
find_file(void)
{
    char path[64];
    char target[64];

    for (int fd = 0; fd < FDS; fd++) {
        ssize_t length;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target) - 1);
        if (length > 0 && strncmp(target, "/memfd:sxe-profile", 18) == 0)
            return fd;
    }
    return -1;
}

static const struct profile_head *
read_file(void)
{
    int fd = find_file();

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, file, SIZE, 0), SIZE);
    return (const struct profile_head *)(const void *)file;
}

static bool
is_running(void)
{
    return find_file() >= 0 && memcmp(read_file()->magic, "sxeprof1", 8) == 0;
}

/* The next record of a kind from `at` on, which is set to the place after it; NULL: none. */
static const struct profile_record *
next_record(size_t *at, enum profile_kind kind)
{
    const struct profile_head *head = (const struct profile_head *)(const void *)file;

    while (*at < head->used) {
        const struct profile_record *record =
            (const struct profile_record *)(const void *)(file + *at);

        ck_assert_uint_eq(record->size % 8, 0);
        ck_assert_uint_ge(record->size, sizeof(*record));
        *at += record->size;
        if (record->kind == (uint32_t)kind)
            return record;
    }
    return NULL;
}

static void
sample(void)
{
    siginfo_t info = {.si_signo = SIGPROF, .si_code = SI_TIMER};

    ck_assert_int_eq(syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGPROF, &info), 0);
}

START_TEST(a_signal_begins_and_another_ends_it)
{
    size_t at = sizeof(struct profile_head);
    const struct profile_record *record;
    unsigned fds = fake_os_open_fds();

    profile_begin();
    profile_begin();
    ck_assert_uint_eq(fake_os_open_fds(), fds);
    for (int round = 0; round < 2; round++) {
        raise(SIGPROF);
        ck_assert(is_running());
        sample();
        ck_assert_uint_eq(read_file()->interval_us, 5000);
        ck_assert_uint_eq(read_file()->lost, 0);
        at = sizeof(struct profile_head);
        record = next_record(&at, PROFILE_C);
        ck_assert_uint_eq(record->stack, 0);
        ck_assert_uint_gt(record->size, sizeof(*record) + 8);
        raise(SIGPROF);
        ck_assert(!is_running());
        sample();
        ck_assert_uint_eq(read_file()->used, 0);
        ck_assert_uint_eq(fake_os_open_fds(), fds + 1);
    }
}
END_TEST

/* The timer counts the CPU time of this thread, so it fires at some time. */
START_TEST(a_busy_process_is_sampled)
{
    profile_begin();
    raise(SIGPROF);
    while (read_file()->used == sizeof(struct profile_head))
        continue;
    raise(SIGPROF);
}
END_TEST

static int
sample_script(lua_State *L)
{
    (void)L;
    sample();
    return 0;
}

static int
sample_and_stop(lua_State *L)
{
    (void)L;
    sample();
    raise(SIGPROF);
    return 0;
}

START_TEST(calls_of_lua_have_the_number_of_the_sample)
{
    size_t at = sizeof(struct profile_head);
    const struct profile_record *record;
    const char *found = NULL;
    uint64_t number = 0;

    state_start();
    add_global("sample", sample_script);
    profile_begin();
    raise(SIGPROF);
    run_script("local function f() sample() end\n"
               "f()\n"
               "f()");
    read_file();
    while ((record = next_record(&at, PROFILE_LUA)) != NULL) {
        const char *calls = (const char *)(record + 1);

        if (strstr(calls, "sample\t[C]\nf\ttest:1\nmain chunk\ttest:1\n") == calls) {
            ck_assert(found == NULL || record->stack > number);
            found = calls;
            number = record->stack;
        }
    }
    ck_assert_ptr_nonnull(found);
    at = sizeof(struct profile_head);
    while ((record = next_record(&at, PROFILE_C)) != NULL && record->stack != number)
        continue;
    ck_assert_ptr_nonnull(record);
    raise(SIGPROF);
    state_stop();
}
END_TEST

START_TEST(calls_that_come_after_the_end_are_left_out)
{
    state_start();
    add_global("sample_and_stop", sample_and_stop);
    profile_begin();
    raise(SIGPROF);
    run_script("sample_and_stop()");
    ck_assert_uint_eq(read_file()->used, 0);
    state_stop();
}
END_TEST

static void *
send_from_thread(void *unused)
{
    pthread_kill(pthread_self(), SIGPROF);
    return unused;
}

START_TEST(any_thread_may_get_the_signal)
{
    pthread_t thread;

    profile_begin();
    ck_assert_int_eq(pthread_create(&thread, NULL, send_from_thread, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert(is_running());
}
END_TEST

START_TEST(samples_without_room_are_counted)
{
    profile_begin();
    raise(SIGPROF);
    while (read_file()->lost == 0) {
        for (int i = 0; i < 1000; i++)
            sample();
    }
    ck_assert_uint_gt(read_file()->used, SIZE - 1024);
    ck_assert_uint_le(read_file()->used, SIZE);
}
END_TEST

START_TEST(without_a_file_nothing_begins)
{
    static const enum fake_call calls[] = {FAKE_MEMFD_CREATE, FAKE_FTRUNCATE, FAKE_MMAP};
    unsigned fds = fake_os_open_fds();

    profile_begin();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        fake_os_reset();
        fake_os_fail(calls[i], 1, 1, ENOMEM);
        raise(SIGPROF);
        ck_assert_uint_eq(fake_os_injected(), 1);
        ck_assert_int_eq(find_file(), -1);
        ck_assert_uint_eq(fake_os_open_fds(), fds);
    }
    raise(SIGPROF);
    ck_assert(is_running());
}
END_TEST

/* The kernel reserves a signal for each timer. */
START_TEST(without_a_timer_the_signal_keeps_its_action)
{
    const struct rlimit none = {0, 0};
    struct sigaction action;

    ck_assert_int_eq(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    profile_begin();
    sigaction(SIGPROF, NULL, &action);
    ck_assert(action.sa_handler == SIG_DFL);
}
END_TEST

START_TEST(a_child_of_fork_ignores_it)
{
    int status;
    pid_t child;

    profile_begin();
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        raise(SIGPROF);
        _exit(find_file() >= 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-profile");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_signal_begins_and_another_ends_it);
    tcase_add_test(all, a_busy_process_is_sampled);
    tcase_add_test(all, calls_of_lua_have_the_number_of_the_sample);
    tcase_add_test(all, calls_that_come_after_the_end_are_left_out);
    tcase_add_test(all, any_thread_may_get_the_signal);
    tcase_add_test(all, samples_without_room_are_counted);
    tcase_add_test(all, without_a_file_nothing_begins);
    tcase_add_test(all, without_a_timer_the_signal_keeps_its_action);
    tcase_add_test(all, a_child_of_fork_ignores_it);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
