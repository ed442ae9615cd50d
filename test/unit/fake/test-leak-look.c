/* SPDX-License-Identifier: MIT
 *
 * Tests the leak check at a case's end, which test/fake/test-leaks.c makes cheap: leaks are found,
 * memory that a pointer refers to is no leak, and pages that were never touched are not read.
 * Builds without LeakSanitizer run the first case only.
 */
#include "fake-os.h"
#include "sxe-util.h"
#include "test-main.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if SXE_HAVE_ASAN
#    include <sanitizer/lsan_interface.h>
#endif

/* The places are so far apart that the check cannot treat two as one range. */
#define APART  0x10000
#define PLACES 600 /* more than the number of ranges that the check can keep */

static char places[PLACES][APART];
static char *initialized = places[0];
static _Thread_local char *of_thread;

/* The exit status of a process that calls this function and ends. */
static int
status_after(void (*call)(void))
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        fake_os_reset();
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        call();
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
keep_everywhere(void)
{
    for (unsigned i = 0; i < PLACES; i++)
        *(char **)places[i] = malloc(100 + i);
    initialized = malloc(10);
    of_thread = malloc(20);
}

START_TEST(memory_that_static_memory_points_to_is_no_leak)
{
    ck_assert_int_eq(status_after(keep_everywhere), 0);
}
END_TEST

#if SXE_HAVE_ASAN
/* Several blocks: the pointer to a single one might still be in a register or on the stack. */
static void
lose_some(void)
{
    keep_everywhere();
    for (unsigned i = 0; i < PLACES; i += 2)
        *(char **)places[i] = NULL;
}

START_TEST(memory_that_nothing_points_to_is_a_leak)
{
    ck_assert_int_ne(status_after(lose_some), 0);
}
END_TEST

static bool
is_in_memory(void *page)
{
    unsigned char in_memory;

    ck_assert_int_eq(mincore(page, 1, &in_memory), 0);
    return (in_memory & 1) != 0;
}

START_TEST(pages_that_were_not_touched_are_not_read)
{
    char *page = places[PLACES / 2] + (-(uintptr_t)places[PLACES / 2] & 0xFFF);

    ck_assert(!is_in_memory(page));
    initialized = malloc(10); /* with no byte more than before, nothing is looked at */
    ck_assert_int_eq(__lsan_do_recoverable_leak_check(), 0);
    ck_assert(!is_in_memory(page));
    *page = 1;
    ck_assert(is_in_memory(page));
}
END_TEST
#endif

int
main(void)
{
    Suite *suite = suite_create("leak-look");
    TCase *looks = tcase_create("looks");

    tcase_add_test(looks, memory_that_static_memory_points_to_is_no_leak);
#if SXE_HAVE_ASAN
    tcase_add_test(looks, memory_that_nothing_points_to_is_a_leak);
    tcase_add_test(looks, pages_that_were_not_touched_are_not_read);
#endif
    suite_add_tcase(suite, looks);
    return sxe_test_main(suite);
}
