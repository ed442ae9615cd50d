/* SPDX-License-Identifier: MIT
 *
 * What: RUN_POOL("show", path) runs sxe-pool by means of run-program.h. And pools for it: open in
 * this process (jobs), closed, or left by a child that was killed.
 *
 * Limits: fails_there() makes calls of the child fail; ran.prepare is called in it.
 */
#ifndef RUN_POOL_H
#define RUN_POOL_H

#include "run-program.h"

#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "sxe-dict-private.h"
#include "sxe-pool-sharing-private.h"
#include "test-main.h"

int sxe_pool_main(int argc, char **argv);

enum { FREE, READY, STATES };

struct job {
    uint64_t hits;
    char name[6];
    bool on;
};

static char directory[64];
static char path[96];
static char why[SXE_POOL_WHY_SIZE];
static struct job *jobs; /* the pool that this process has open */

/* ---- The program ---- */

static inline void
run_pool(const char **argv)
{
    run_program(sxe_pool_main, argv);
}
#define RUN_POOL(...) run_pool((const char *[]){"sxe-pool", __VA_ARGS__, NULL})

static struct {
    enum fake_call call;
    int error;
} fault;

static inline void
fail_all(void)
{
    fake_os_fail(fault.call, 1, 0, fault.error);
}

/* Let all calls of this kind fail in the programs that are run from now on. */
static inline void
fails_there(enum fake_call call, int error)
{
    fault.call = call;
    fault.error = error;
    ran.prepare = fail_all;
}

/* Check the last run: its exit status, and texts that output and errors contain; "": no text at
 * all. */
static inline void
ended(int status, const char *output, const char *errors)
{
    ck_assert_msg(ran.status == status, "status %d, %s%s", ran.status, ran.output, ran.errors);
    if (*output == '\0')
        ck_assert_str_eq(ran.output, "");
    if (*errors == '\0')
        ck_assert_str_eq(ran.errors, "");
    check_has(ran.output, output);
    check_has(ran.errors, errors);
}

/* ---- Pools ---- */

static inline void
set_up(void)
{
    unsetenv("SXE_LOG_LEVEL");
    snprintf(directory, sizeof(directory), "/tmp/sxe-pool-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/jobs.pool", directory);
    ran.prepare = NULL;
    jobs = NULL;
}

static inline void
tear_down(void)
{
    char command[128];

    sxe_pool_delete(jobs);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* A test case of the suite, whose tests each have a new directory. */
static inline TCase *
add_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static inline SXE_POOL_SPEC
spec_of(const char *file)
{
    return (SXE_POOL_SPEC){
        .name = "jobs",
        .number = 4,
        .element_size = sizeof(struct job),
        .states = STATES,
        .state_names = "FREE READY",
        .fields = "u64 hits, char[6] name, bool on",
        .file = file,
    };
}

static inline void
open_as(const SXE_POOL_SPEC *spec)
{
    jobs = sxe_pool_open(spec, why);
    ck_assert_msg(jobs != NULL, "%s", why);
}

/* A pool of four elements, of which first 0, then 1 became READY. */
static inline void
open_jobs(const char *file)
{
    const SXE_POOL_SPEC spec = spec_of(file);

    open_as(&spec);
    for (unsigned id = 0; id < 2; id++) {
        const struct job job = {.hits = id + 5, .name = {'a', '"', 0, 'x'}, .on = id == 1};

        ck_assert_uint_eq(sxe_pool_take(jobs, FREE, READY), id);
        sxe_pool_write_element(jobs, id, &job);
    }
}

static inline void
close_jobs(void)
{
    sxe_pool_delete(jobs);
    jobs = NULL;
}

static inline struct sxe__pool_sharing *
sharing(void)
{
    return sxe__pool_header(jobs)->sharing;
}

static inline void
kill_child(pid_t child)
{
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* A file that a child had open when it was killed; `finally` is its last act. */
static inline void
leave_jobs(void (*finally)(void))
{
    const pid_t pid = fork();

    if (pid == 0) {
        open_jobs(path);
        if (finally != NULL)
            finally();
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static inline void
break_list(void)
{
    sharing()->nodes[1].next = 77;
}

static inline const char *SXE_PRINTF(1, 2) text_of(const char *format, ...)
{
    static char text[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return text;
}
#define PID            text_of("%d", (int)getpid())
#define DESCRIPTOR(fd) text_of("%d:%d", (int)getpid(), fd)

static inline void
block_sigint(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGINT, SIG_DFL); /* libcheck's handler would end the test */
}

/* For ran.prepare: SIGINT is pending when the program starts. */
static inline void
interrupted(void)
{
    block_sigint();
    raise(SIGINT);
}

/* For ran.prepare: SIGINT comes 20 ms later, while the program runs. */
static inline void
interrupted_in_20_ms(void)
{
    const struct itimerspec time = {.it_value.tv_nsec = 20 * 1000 * 1000};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGINT};
    timer_t timer;

    block_sigint();
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &time, NULL);
}

#endif
