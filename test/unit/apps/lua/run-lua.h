/* SPDX-License-Identifier: MIT
 *
 * What: RUN_LUA("a.lua", "x") runs sxe-lua by means of run-program.h. Its files are in a temporary
 * directory, which is the working directory.
 */
#ifndef RUN_LUA_H
#define RUN_LUA_H

#include "run-program.h"

#include <fcntl.h>

#include "test-main.h"

int sxe_lua_main(int argc, char **argv);

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
    static char text[8192];
    FILE *file = fopen(name, "re");

    ck_assert_msg(file != NULL, "%s", name);
    read_back(file, text, sizeof(text));
    return text;
}

static inline void
run_lua(const char **argv)
{
    run_program(sxe_lua_main, argv);
}
#define RUN_LUA(...) run_lua((const char *[]){"sxe-lua", __VA_ARGS__, NULL})

/* Remove the watchdog's lines from the errors: on a busy machine any call may take too long. */
static inline void
drop_reports_of_a_blocked_loop(void)
{
    char *report;

    while ((report = strstr(ran.errors, "loop blocked")) != NULL) {
        char *line = report, *end = report + strcspn(report, "\n");

        while (line > ran.errors && line[-1] != '\n')
            line--;
        end += *end == '\n';
        memmove(line, end, strlen(end) + 1);
    }
}

/* Check the last run: its exit status, its exact output, and a text that its errors contain. */
static inline void
ended(int status, const char *output, const char *errors)
{
    drop_reports_of_a_blocked_loop();
    ck_assert_msg(ran.status == status, "status %d, %s%s", ran.status, ran.output, ran.errors);
    ck_assert_str_eq(ran.output, output);
    if (*errors == '\0')
        ck_assert_str_eq(ran.errors, "");
    check_has(ran.errors, errors);
}

#endif
