/* SPDX-License-Identifier: MIT
 *
 * The main function of each check program.
 */
#include "test-main.h"

#include "fake-os.h"
#include "sxe-util.h"
#include "test-sweep.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SXE_COVERAGE
void __gcov_dump(void);
#endif

static pid_t runner_pid;
int sxe_test_at = -1;

bool
sxe_test_is_thin(void)
{
    const char *sweep = getenv("SXE_SWEEP");

    return sweep != NULL && strcmp(sweep, "thin") == 0;
}

/* libcheck names the group that failed, but not the case in it. */
static void
say_case(void)
{
    if (getpid() != runner_pid && sxe_test_at >= 0)
        fprintf(stderr, "it was case %d\n", sxe_test_at);
}

/* Cases read this variable when they are created, before sxe_test_main runs: set it earlier. */
__attribute__((constructor)) static void
set_timeout(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "400", 0);
}

#if !SXE_HAVE_ASAN /* ASan says more when a case dies */
/* The fault happens again when this function returns, and kills the process. */
static void
say_passed(int number)
{
    (void)number;
    fake_os_say_passed();
}
#endif

/* abort() goes on to kill the process when this function returns. */
static void
keep_counters(int number)
{
    (void)number;
    fake_os_reset();
    fake_os_say_passed();
#ifdef SXE_COVERAGE
    __gcov_dump();
#endif
}

/* Forget the counts of calls that libcheck made before the case. Processes that a case forks keep
 * theirs. */
static void
begin_case(void)
{
    if (getppid() == runner_pid)
        fake_os_reset();
}

int
sxe_test_main(Suite *suite)
{
    struct sigaction action = {.sa_handler = keep_counters};

    runner_pid = getpid();
    atexit(say_case);
    pthread_atfork(NULL, NULL, begin_case);
    sigaction(SIGABRT, &action, NULL);
#if !SXE_HAVE_ASAN
    struct sigaction crash = {.sa_handler = say_passed, .sa_flags = (int)SA_RESETHAND};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        sigaction(crashes[i], &crash, NULL);
#endif
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
