/* SPDX-License-Identifier: MIT
 *
 * What: runs one of our programs, by its main(), to its end, and fills `ran`: run_program() in a
 * child process, run_here() in this process.
 * Place: used by run-pool.h, run-lua.h, run-httpd.h and run-http.h, one for each program.
 *
 * Limits: 256 KiB of each output. ran.prepare can set faults of fake-os in the child. Faults of
 * fake-os that are set in this process are off when run_here() returns.
 */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captured.h"
#include "fake-os.h"
#include "has.h"

typedef int (*program_main)(int argc, char **argv);

static struct {
    int status;
    char output[256 * 1024];
    size_t output_size;
    char errors[256 * 1024];
    /* how many faults were injected in the child; not known if it called exit() */
    unsigned injected;
    void (*prepare)(void); /* called in the child before the program */
} ran;

static inline int
main_of(program_main program, const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return program(argc, (char **)(uintptr_t)argv);
}

static inline _Noreturn void
be_program(program_main program, const char **argv, FILE *injected)
{
    fake_os_reset();
    if (ran.prepare != NULL)
        ran.prepare();
    const int status = main_of(program, argv);
    const unsigned number = fake_os_injected();
    fake_os_reset();
    fprintf(injected, "%u", number);
    exit(status);
}

static inline void
run_program(program_main program, const char **argv)
{
    FILE *output = tmpfile();
    FILE *errors = tmpfile();
    FILE *injected = tmpfile();
    char number[16];
    int status;

    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(errors), STDERR_FILENO);
        be_program(program, argv, injected);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    fseek(output, 0, SEEK_END);
    ran.output_size = (size_t)ftell(output);
    read_back(output, ran.output, sizeof(ran.output));
    read_back(errors, ran.errors, sizeof(ran.errors));
    read_back(injected, number, sizeof(number));
    ran.injected = (unsigned)strtoul(number, NULL, 10);
}

/* Run with standard output redirected to a file, which stays open. */
static inline void
run_here_into(FILE *output, program_main program, const char **argv)
{
    struct captured out = capture(STDOUT_FILENO, output);
    struct captured errors = capture(STDERR_FILENO, tmpfile());

    ran.status = main_of(program, argv);
    fflush(NULL);
    fake_os_reset();
    captured_text(&errors, ran.errors, sizeof(ran.errors));
    end_capture(&out);
}

static inline void
run_here(program_main program, const char **argv)
{
    FILE *output = tmpfile();

    run_here_into(output, program, argv);
    read_back(output, ran.output, sizeof(ran.output));
}

#endif
