/* SPDX-License-Identifier: MIT
 *
 * What: a directory, and functions for scripts that test sxe.file: `at "a"` is the path of the file
 * a, and `fails(errno, call)` checks that a call fails.
 */
#ifndef LUA_FILES_H
#define LUA_FILES_H

#include "lua-net.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "sxe-work.h"

static char root[] = "/tmp/sxe-lua-file-XXXXXX";

#define PRELUDE                                                        \
    "file, task = require 'sxe.file', require 'sxe.task'\n"            \
    "function at(name) return arg[1] .. '/' .. name end\n"             \
    "function fails(wanted, ...) local data, why, code = ...\n"        \
    "    assert(data == nil and code == wanted, why) return why end\n" \
    "log, number = '', 0\n"

static inline void
make_root(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static inline void
remove_root(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* Start without a loop (before sxe_init): calls of sxe.file are made in this thread. */
static inline void
start_at_once(void)
{
    static char name[] = "test";
    static char *argv[] = {name, root, NULL};

    make_root();
    net_open_before = fake_os_open_fds();
    state_start_with(
        &(struct sxe_lua_config){.tasks = 64, .memory_max = 8 << 20, .argc = 2, .argv = argv});
    run_script(PRELUDE);
}

static inline void
stop_at_once(void)
{
    state_stop();
    ck_assert_uint_eq(fake_os_open_fds(), net_open_before);
    remove_root();
}

/* Start with a loop: calls of sxe.file are made by threads. */
static inline void
start_loop(void)
{
    char text[1000];

    make_root();
    snprintf(text, sizeof(text), PRELUDE "arg[1] = '%s'", root);
    net_start(text);
}

static inline void
stop_loop(void)
{
    net_stop();
    remove_root();
}

/* ---- Keeping the threads for files busy ---- */

/* Works that occupy all threads for files until the test writes to the pipe. */
enum { FILES = 1 }; /* the number of sxe.file's group of works, which is required first */

static int pipe_fds[2];
static struct sxe_work keepers[SXE_WORK_THREADS];
static unsigned kept_number; /* how many of these works have ended */

static inline void
keep_thread(struct sxe_work *work)
{
    char byte;

    (void)work;
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
}

static inline void
kept(struct sxe_work *work)
{
    (void)work;
    kept_number++;
}

static inline void
keep_threads(void)
{
    kept_number = 0;
    ck_assert_int_eq(pipe(pipe_fds), 0);
    for (int i = 0; i < SXE_WORK_THREADS; i++) {
        keepers[i] = (struct sxe_work){.run = keep_thread, .done = kept, .group = FILES};
        ck_assert_int_eq(sxe_work_submit(&keepers[i]), 0);
    }
}

static inline void
let_threads_go(void)
{
    ck_assert_int_eq(write(pipe_fds[1], "xxxx", SXE_WORK_THREADS), SXE_WORK_THREADS);
    turn_slowly(5);
    while (kept_number < SXE_WORK_THREADS) /* a work that has not read yet needs the pipe */
        turn_slowly(1);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* Wait, without turning the loop, until a thread has written this file. */
static inline void
wait_for_file(const char *name)
{
    char path[100];
    struct stat status;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    while (stat(path, &status) < 0)
        usleep(100);
}

#endif
