/* SPDX-License-Identifier: MIT */
#include "test-main.h"

#include "fake-os.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef SXE_COVERAGE
void __gcov_dump(void);
#endif

static pid_t runner_pid;

/* Cases read it when they are created, before sxe_test_main runs. */
__attribute__((constructor)) static void
set_timeout(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "1200", 0);
}

/* abort() goes on to kill the process when this returns. */
static void
keep_counters(int number)
{
    (void)number;
    fake_os_reset();
#ifdef SXE_COVERAGE
    __gcov_dump();
#endif
}

/* Cases start with nothing of what libcheck called to get there. What they fork themselves keeps
 * all. */
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
    pthread_atfork(NULL, NULL, begin_case);
    sigaction(SIGABRT, &action, NULL);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
