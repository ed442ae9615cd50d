/* SPDX-License-Identifier: MIT
 *
 * What: a script with sockets, and the loop in which it runs, for tests of lib-sxe-lua.
 *
 * Example:
 *     net_start("server = require 'sxe.tcp'.serve('127.0.0.1', 0, function(c) ... end)");
 *     int peer = peer_connect(number("server.port"));
 *     ...
 *     net_stop();
 */
#ifndef LUA_NET_H
#define LUA_NET_H

#include "lua-state.h"

#include <stdio.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"

static unsigned net_open_before;

static const struct sxe_lua_inflate *net_inflate; /* how the state decompresses; NULL: not at all */
static int (*net_store)(lua_State *L);            /* sxe_store_open; NULL: no sxe.store */
static int (*net_postgres)(lua_State *L);         /* sxe_postgres_open; NULL: no sxe.postgres */
static int (*net_crypto)(lua_State *L);           /* sxe_crypto_open; NULL: no sxe.crypto */
static unsigned net_tasks;                        /* the limit of tasks; 0: 64 tasks */
static void (*net_on_state)(void);                /* called before the first script; may be NULL */

/* Load the script, call sxe_init(), then run the tasks that the script started. config may be
 * NULL. */
static inline void
net_start_with(const struct sxe_config *config, const char *text)
{
    static char name[] = "test", port[] = "0";
    static char *argv[] = {name, port, NULL};

    net_open_before = fake_os_open_fds();
    event_reset();
    state_start_with(&(struct sxe_lua_config){.tasks = net_tasks == 0 ? 64 : net_tasks,
                                              .argc = 2,
                                              .argv = argv,
                                              .inflate = net_inflate,
                                              .store = net_store,
                                              .postgres = net_postgres,
                                              .crypto = net_crypto});
    sxe_register(8, 0);
    if (net_on_state != NULL)
        net_on_state();
    run_script(text);
    if (config != NULL)
        sxe_configure(config);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_msg(sxe_lua_init(lua) == 0, "%s", log_line(0));
}

static inline void
net_start(const char *text)
{
    net_start_with(NULL, text);
}

/* Start the script in a file; its first argument, the port, is 0. */
static inline void
net_start_file(const char *path)
{
    static char text[8192];
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "%s", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    net_start(text);
}

/* Check the descriptors and the loop when the state is deleted. */
static inline void
net_end(void)
{
    turn(2);
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), net_open_before);
}

static inline void
net_stop(void)
{
    state_stop();
    net_end();
}

/* The value of an expression; a boolean as 1 or 0. */
static inline long
number(const char *expression)
{
    long value;

    ck_assert_msg(luaL_loadstring(lua->main, lua_pushfstring(lua->main, "return %s", expression)) ==
                          LUA_OK &&
                      lua_pcall(lua->main, 0, 1, 0) == LUA_OK,
                  "%s", lua_tostring(lua->main, -1));
    value = lua_isnumber(lua->main, -1) ? (long)lua_tointeger(lua->main, -1)
                                        : lua_toboolean(lua->main, -1);
    lua_settop(lua->main, 0);
    return value;
}

static inline void
do_not_care(struct ev_loop *loop, ev_timer *tick, int events)
{
    (void)loop;
    (void)tick;
    (void)events;
}

/* Turn the loop; each turn waits for at most 1 ms. */
static inline void
turn_slowly(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        ev_timer tick;

        ev_timer_init(&tick, do_not_care, 0.001, 0);
        ev_timer_start(sxe_loop(), &tick);
        ev_run(sxe_loop(), EVRUN_ONCE);
        ev_timer_stop(sxe_loop(), &tick);
    }
}

/* On a busy machine, instrumented code logs more than there is room for: "loop blocked 129 ms". */
static inline void
turn_unheard(void)
{
    captured.number = 0;
    turn_slowly(1);
}

/* Turn the loop until an expression holds. */
static inline void
until(const char *expression)
{
    for (unsigned i = 0; i < WAIT_TURNS && number(expression) == 0; i++)
        turn_slowly(1);
    for (unsigned i = 0; number(expression) == 0 && i < captured.number; i++)
        fputs(captured.lines[i], stderr);
    ck_assert_msg(number(expression) != 0, "%s never came true", expression);
}

/* Check that a script has set `done` to true; else it has set it to what is wrong. Then end, and
 * close the sockets before the state, because HTTP servers are deleted with it. */
static inline void
net_finish(void)
{
    run_script("assert(done == true, done)");
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), net_open_before);
}

/* Run a whole script, which sets `done` at its end. */
static inline void
net_run(const char *text)
{
    net_start(text);
    for (unsigned i = 0; i < 100000 && number("done") == 0; i++)
        turn_slowly(1);
    net_finish();
}

/* Run a script while its 1st, 2nd, 3rd ... allocation fails, until no allocation fails. After each
 * run, `cleanup` is run to close what is left, and no socket may be in use. */
static inline void
sweep_allocations(const char *text, const char *cleanup)
{
    unsigned unused = sxe_number_in_state(SXE_STATE_FREE);
    bool is_touched = true;

    for (uint64_t after = 0; is_touched; after++) {
        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2; /* Lua collects garbage and tries once more */
        (void)load_text(text);
        turn(3);
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
        captured.number = 0;
        run_script(cleanup);
        for (unsigned i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_FREE) < unused; i++)
            turn_slowly(1);
        ck_assert_msg(sxe_number_in_state(SXE_STATE_FREE) == unused, "allocation %d: %s",
                      (int)after, log_line(0));
    }
}

#endif
