/* SPDX-License-Identifier: MIT
 *
 * What: a Lua state for tests of lib-sxe-lua, and functions that run scripts in it.
 *
 * Limits: time slices are so long that no task is interrupted by chance.
 *
 * Example:
 *     state_start();
 *     run_script("assert(1 + 1 == 2)");
 *     fails_with("error 'boom'", "boom");
 *     state_stop();
 */
#ifndef LUA_STATE_H
#define LUA_STATE_H

#include "sxe-lua-core-private.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "capture-log.h"

static struct sxe_lua *lua;

static inline void
state_start_with(const struct sxe_lua_config *config)
{
    struct sxe_lua_config patient = *config;

    if (patient.slice_ms == 0)
        patient.slice_ms = 1000000;
    if (patient.cpu_ms == 0)
        patient.cpu_ms = 1000000;
    capture_log();
    lua = sxe_lua_new(&patient);
    ck_assert_msg(lua != NULL, "%s", captured.lines[0]);
}

static inline void
state_start(void)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 64});
}

static inline void
state_stop(void)
{
    sxe_lua_delete(lua);
    lua = NULL;
}

static inline void
add_global(const char *name, lua_CFunction function)
{
    lua_pushglobaltable(lua->main);
    lua_pushstring(lua->main, name);
    lua_pushcfunction(lua->main, function);
    lua_rawset(lua->main, -3);
    lua_pop(lua->main, 1);
}

/* Load a chunk called "test". Returns the result of loading. */
static inline int
load_text(const char *text)
{
    return sxe_lua_load_text(lua, "=test", text, strlen(text));
}

static inline void
run_script(const char *text)
{
    ck_assert_msg(load_text(text) == 0, "%s", log_line(0));
}

/* Load and run text with `after` allocations that succeed, two that fail, and all later ones that
 * succeed. Returns whether any failed. */
static inline bool
runs_out_of_memory(const char *text, uint64_t after)
{
    lua->heap.fail_after = after;
    lua->heap.fail_times = 2;
    (void)load_text(text);
    const bool is_touched = lua->heap.fail_times != 2;
    lua->heap.fail_times = 0;
    return is_touched;
}

/* Run text again and again, each time with the next allocation failing, until none fails. */
static inline void
run_without_memory(const char *text)
{
    for (uint64_t after = 0; runs_out_of_memory(text, after); after++)
        captured.number = 0;
}

/* The number of threads of this process. */
static inline unsigned
number_of_threads(void)
{
    DIR *directory = opendir("/proc/self/task");
    unsigned number = 0;

    while (readdir(directory) != NULL)
        number++;
    closedir(directory);
    return number - 2; /* do not count "." and ".." */
}

/* Wait until the watchdog thread has looked once more, found no state, and ended. */
static inline void
until_unwatched(void)
{
    while (number_of_threads() > 1)
        poll(NULL, 0, 1);
}

/* Turn the loop once, so that tasks that are ready run. */
static inline void
turn_tasks(void)
{
    static bool is_started;

    if (!is_started)
        sxe__lua_tasks_start(ev_default_loop(EVFLAG_AUTO));
    is_started = true;
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
}

/* Expect that the script fails and that the message is in the log. */
static inline void
fails_with(const char *text, const char *message)
{
    captured.number = 0;
    ck_assert_int_eq(load_text(text), -EINVAL);
    ck_assert_msg(logged(message), "not \"%s\" but %s", message, log_line(0));
}

#endif
