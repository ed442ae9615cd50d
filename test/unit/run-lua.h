/* SPDX-License-Identifier: MIT
 *
 * What: runs sxe-lua: RUN_LUA("a.lua", "x") in a child, to its end, and fills `ran`. Its files are
 * in a directory of their own, which is the working one.
 *
 * Limits: 8 KiB of each output. What is to go wrong in the child is set by ran.prepare.
 */
#ifndef RUN_LUA_H
#define RUN_LUA_H

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captured.h"
#include "fake-os.h"
#include "test-main.h"

int sxe_lua_main(int argc, char **argv);

static struct {
    int status;
    char output[8192];
    char errors[8192];
    char file[8192];       /* what read_file() read */
    unsigned injected;     /* failures in the child */
    void (*prepare)(void); /* called in the child before the program */
} ran;

static char directory[64];

static inline void
make_directory(void)
{
    unsetenv("SXE_LOG_LEVEL");
    snprintf(directory, sizeof(directory), "/tmp/sxe-lua-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    ran.prepare = NULL;
}

static inline void
remove_directory(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static inline void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static inline const char *
read_file(const char *name)
{
    FILE *file = fopen(name, "re");

    ck_assert_msg(file != NULL, "%s", name);
    read_back(file, ran.file, sizeof(ran.file));
    return ran.file;
}

static inline int
main_of(const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return sxe_lua_main(argc, (char **)(uintptr_t)argv);
}

/* Ends with how many calls failed in a file, since its status is the program's. */
static inline void
be_lua(const char **argv, FILE *output, FILE *errors)
{
    FILE *injected;
    int status;

    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(errors), STDERR_FILENO);
    fake_os_reset();
    if (ran.prepare != NULL)
        ran.prepare();
    status = main_of(argv);
    ran.injected = fake_os_injected();
    fake_os_reset();
    injected = fopen("injected", "we");
    fprintf(injected, "%u", ran.injected);
    fclose(injected);
    exit(status);
}

static inline void
run_lua(const char **argv)
{
    FILE *output = tmpfile();
    FILE *errors = tmpfile();
    int status;
    pid_t pid;

    fflush(NULL);
    write_file("injected", "0");
    pid = fork();
    if (pid == 0)
        be_lua(argv, output, errors);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    read_back(output, ran.output, sizeof(ran.output));
    read_back(errors, ran.errors, sizeof(ran.errors));
    ran.injected = (unsigned)strtoul(read_file("injected"), NULL, 10);
}
#define RUN_LUA(...) run_lua((const char *[]){"sxe-lua", __VA_ARGS__, NULL})

static inline void
check_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in \"%s\"", part, text);
}

/* How the last run ended; what it wrote must be just this, and errors have that. */
static inline void
ended(int status, const char *output, const char *errors)
{
    ck_assert_msg(ran.status == status, "status %d, %s%s", ran.status, ran.output, ran.errors);
    ck_assert_str_eq(ran.output, output);
    if (*errors == '\0')
        ck_assert_str_eq(ran.errors, "");
    check_has(ran.errors, errors);
}

#endif
