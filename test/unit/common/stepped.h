/* SPDX-License-Identifier: MIT
 *
 * What: a child process that executes a call one instruction at a time, under ptrace.
 *
 *     stepped_begin();
 *     pid_t child = stepped_start(get_ready, call);   -1: ptrace is not allowed; a line said so
 *     while (stepped_step(child))
 *         look();                                     at what a death at this moment would leave
 *     stepped_kill(child);
 *     stepped_end();
 */
#ifndef STEPPED_H
#define STEPPED_H

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#    define STEPPED_BREAK() __asm__ volatile("int3")
#else
#    define STEPPED_BREAK() raise(SIGTRAP)
#endif

/* The child's report that the call is over, in memory that both processes share. */
static volatile bool *stepped_is_over;

static inline void
stepped_begin(void)
{
    void *memory = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    stepped_is_over = memory;
}

static inline void
stepped_end(void)
{
    munmap((void *)(uintptr_t)stepped_is_over, 1);
}

/* Start a child, which calls get_ready() and stops before call(). */
static inline pid_t
stepped_start(void (*get_ready)(void), void (*call)(void))
{
    int status;

    *stepped_is_over = false;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        get_ready();
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(errno);
        STEPPED_BREAK();
        call();
        *stepped_is_over = true;
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSTOPPED(status))
        return child;
    printf("skipped: ptrace: %s\n", strerror(WEXITSTATUS(status)));
    return -1;
}

/* Let the child execute one instruction. False: the call is over. */
static inline bool
stepped_step(pid_t child)
{
    int status;

    ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "status %x", status);
    return !*stepped_is_over;
}

static inline void
stepped_kill(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
}

#endif
