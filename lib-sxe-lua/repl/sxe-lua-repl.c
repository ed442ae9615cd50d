/* SPDX-License-Identifier: MIT
 *
 * The shell: runs typed chunks as tasks and prints their results.
 */
#include "sxe-lua-repl.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sxe-lua-core-private.h"
#include "sxe-lua-part-internal.h"
#include "sxe-lua-repl-private.h"

enum { SOCKETS = 1000, EXPLAINED_SIZE = 8192, CLASS_SHIFT = 56 };

#define PROMPT      "> "
#define PROMPT_MORE ">> "

SXE__LUA_PART(repl, "lib-sxe-lua/repl/sxe-lua-repl.lua");

/* The functions that sxe-lua-repl.lua returns, in a table in the registry. */
enum function { TAKE = 1, FORGET, SHOW, COMPLETE, FUNCTIONS };
static const char functions_key = 0;

static struct {
    struct sxe_lua *lua; /* NULL: the shell was not started */
    void (*on_end)(void);
    uint64_t task; /* the task that runs the typed code; 0: the user edits a line */
    volatile sig_atomic_t interrupts;
    pthread_t thread;
    struct sigaction interrupt_before;
    struct sxe_signal resized;
    struct sxe_signal continued;
    struct ev_loop *loop;
    ev_io input;
    ev_async interrupted;
} repl;

static void
print_repl_text(const char *text)
{
    sxe__lua_editor_say(STDOUT_FILENO, text, strlen(text));
}

static void
push_function(lua_State *L, enum function function)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions_key);
    lua_rawgeti(L, -1, function);
    lua_remove(L, -2);
}

static void
ask_for_line(const char *prompt)
{
    repl.task = 0;
    repl.interrupts = 0;
    sxe__lua_editor_ask(prompt);
    ev_io_start(repl.loop, &repl.input);
}

/* ---- Results ---- */

/* The first Ctrl-C interrupts the typed code. The second Ctrl-C raises an error in the typed code
 * at every instruction, so that no pcall keeps it alive, and interrupts any other task that
 * runs. */
static void
interrupt_script(lua_State *L, lua_Debug *ar)
{
    const bool is_typed = sxe__lua_user(sxe__lua_running(L)) == &repl;
    const bool is_second = repl.interrupts > 1;

    (void)ar;
    if (!is_typed || !is_second)
        lua_sethook(L, NULL, 0, 0);
    if (is_typed || is_second)
        luaL_error(L, "interrupted");
}

/* Show the results. Arguments: the values that the typed code returned. */
static int
show_values(lua_State *L)
{
    luaL_checkstack(L, 2, NULL);
    push_function(L, SHOW);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

/* Show an error. Argument: the error. */
static int
show_error(lua_State *L)
{
    char text[EXPLAINED_SIZE];

    if (!lua_isstring(L, 1)) {
        print_repl_text("error: ");
        return show_values(L);
    }
    sxe_lua_explain(lua_tostring(L, 1), text, sizeof(text));
    print_repl_text(text);
    return 0;
}

static void
show_results(lua_State *L, int status, int values)
{
    lua_State *main = repl.lua->main;

    if (status == LUA_YIELD) {
        print_repl_text("cancelled\n");
        return;
    }
    if (!lua_checkstack(main, values + 2)) {
        print_repl_text("not enough memory to show what it returned\n");
        return;
    }
    lua_pushcfunction(main, status == LUA_OK ? show_values : show_error);
    lua_xmove(L, main, values);
    sxe__lua_pcall(main, values, 0, "shell");
}

static void
on_task_end(lua_State *L, int status, int values, void *user)
{
    (void)user;
    sxe__lua_current()->loading--;
    if (lua_gethook(L) == interrupt_script)
        lua_sethook(L, NULL, 0, 0);
    if (repl.lua == NULL)
        return;
    show_results(L, status, values);
    ask_for_line(PROMPT);
}

/* ---- A line ---- */

/* Add the argument, a line, to the lines typed before. Returns the chunk if it is complete;
 * otherwise true or nil. */
static int
add_input_line(lua_State *L)
{
    const struct sxe_span *line = lua_touserdata(L, 1);

    push_function(L, TAKE);
    lua_pushlstring(L, line->base, line->length);
    lua_call(L, 1, 1);
    return 1;
}

/* Run the chunk on the main stack. While the chunk runs, new globals may be made, as by a script
 * that is loaded. */
static void
run_shell(void)
{
    uint64_t task;

    repl.lua->loading++;
    repl.task = UINT64_MAX;
    task = sxe__lua_start(repl.lua->main, 0, true, on_task_end, &repl);
    if (repl.task == 0)
        return;
    repl.task = task;
    if (task != 0)
        return;
    repl.lua->loading--;
    print_repl_text("no task is free, or there is no memory for one\n");
    ask_for_line(PROMPT);
}

static void
accept_line(struct sxe_span line)
{
    lua_State *main = repl.lua->main;
    bool is_more;

    if (sxe__lua_prepare(repl.lua, add_input_line, &line, "shell") < 0) {
        ask_for_line(PROMPT);
        return;
    }
    if (lua_isfunction(main, -1)) {
        run_shell();
        return;
    }
    is_more = lua_toboolean(main, -1);
    lua_pop(main, 1);
    ask_for_line(is_more ? PROMPT_MORE : PROMPT);
}

static void
on_input(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct sxe_span line;

    (void)events;
    switch (sxe__lua_editor_read(&line)) {
    case SXE__LUA_TYPING:
        return;
    case SXE__LUA_TYPED_LINE:
        ev_io_stop(loop, watcher);
        accept_line(line);
        return;
    case SXE__LUA_TYPED_END:
        ev_io_stop(loop, watcher);
        sxe__lua_editor_rest();
        print_repl_text("\n");
        repl.on_end();
        return;
    }
}

/* ---- Ctrl-C ---- */

static void
on_interrupt(int signal_number)
{
    lua_State *running = repl.lua->watch.running;

    (void)signal_number;
    repl.interrupts++;
    if (running != NULL)
        lua_sethook(running, interrupt_script, LUA_MASKCOUNT | LUA_MASKRET, 1);
    ev_async_send(repl.loop, &repl.interrupted);
}

/* Forget the lines of an incomplete chunk. Argument: NULL. */
static int
forget_lines(lua_State *L)
{
    push_function(L, FORGET);
    lua_call(L, 0, 0);
    return 0;
}

static void
on_interrupted(struct ev_loop *loop, ev_async *watcher, int events)
{
    (void)loop;
    (void)watcher;
    (void)events;
    if (repl.task != 0) {
        sxe__lua_cancel(repl.task);
        return;
    }
    if (repl.interrupts == 0) /* the Ctrl-C was for code that has ended */
        return;
    sxe__lua_protect(repl.lua, forget_lines, NULL, "shell");
    sxe__lua_editor_rest();
    print_repl_text("\n");
    ask_for_line(PROMPT);
}

/* ---- Output of scripts and of the log ---- */

/* A sxe_log_sink. The watchdog's thread calls it, too. */
static void
on_log(void *user, int level, const char *line, size_t length)
{
    (void)user;
    (void)level;
    if (pthread_equal(pthread_self(), repl.thread))
        sxe__lua_editor_say(STDERR_FILENO, line, length);
    else
        (void)!write(STDERR_FILENO, line, length);
}

static int
l_say(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);

    sxe__lua_editor_say(STDOUT_FILENO, text, length);
    return 0;
}

/* ---- Names ---- */

static int
l_methods_of(lua_State *L)
{
    uintptr_t bits = (uintptr_t)sxe__lua_handle_at(L, 1);

    if (bits == 0)
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &sxe__lua_methods_key);
    lua_rawgeti(L, -1, (lua_Integer)(bits >> CLASS_SHIFT));
    return 1;
}

struct question {
    struct sxe_span text;
    struct sxe__lua_completion *completion;
};

/* Complete a text. The completion's strings are kept in the table of functions. */
static int
ask_for_completion(lua_State *L)
{
    struct question *question = lua_touserdata(L, 1);

    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions_key);
    lua_rawgeti(L, 2, COMPLETE);
    lua_pushlstring(L, question->text.base, question->text.length);
    lua_call(L, 1, 2);
    lua_pushvalue(L, -2);
    lua_rawseti(L, 2, FUNCTIONS);
    lua_pushvalue(L, -1);
    lua_rawseti(L, 2, FUNCTIONS + 1);
    question->completion->insert = lua_tostring(L, -2);
    question->completion->list = lua_tostring(L, -1);
    return 0;
}

static void
complete_line(struct sxe_span text, struct sxe__lua_completion *completion)
{
    struct question question = {text, completion};

    sxe__lua_protect(repl.lua, ask_for_completion, &question, "completion");
}

/* ---- Starting and stopping ---- */

static int
plan_shell(lua_State *L)
{
    lua_createtable(L, FUNCTIONS + 1, 0);
    sxe__lua_push_part(L, &repl_part);
    lua_pushcfunction(L, l_say);
    lua_pushcfunction(L, l_methods_of);
    lua_newtable(L);
    for (const struct sxe__lua_module *module = sxe__lua_modules(); module->open != NULL;
         module++) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, module->name);
    }
    lua_call(L, 3, FUNCTIONS - 1);
    for (int function = FUNCTIONS - 1; function > 0; function--)
        lua_rawseti(L, 2, function);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &functions_key);
    return 0;
}

int
sxe_lua_repl_plan(struct sxe_lua *lua)
{
    int result = sxe__lua_protect(lua, plan_shell, NULL, "shell");

    if (result < 0)
        return result;
    sxe_register(SOCKETS, 0);
    return 0;
}

static bool
is_planned(struct sxe_lua *lua)
{
    bool is = lua_rawgetp(lua->main, LUA_REGISTRYINDEX, &functions_key) == LUA_TTABLE;

    lua_pop(lua->main, 1);
    return is;
}

static void
on_resized(struct sxe_signal *watch)
{
    (void)watch;
    sxe__lua_editor_resized();
}

static void
on_continued(struct sxe_signal *watch)
{
    (void)watch;
    sxe__lua_editor_again();
}

static void
watch_terminal(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};

    ev_io_init(&repl.input, on_input, STDIN_FILENO, EV_READ);
    ev_async_init(&repl.interrupted, on_interrupted);
    ev_async_start(repl.loop, &repl.interrupted);
    sigaction(SIGINT, &action, &repl.interrupt_before);
    sxe_signal_start(&repl.resized, SIGWINCH, on_resized);
    sxe_signal_start(&repl.continued, SIGCONT, on_continued);
}

int
sxe_lua_repl_start(struct sxe_lua *lua, const char *path, void (*on_end)(void))
{
    static bool is_at_exit;
    char usual[PATH_MAX];
    const char *home = getenv("HOME");
    int result;

    if (!is_planned(lua) || sxe_loop() == NULL)
        return -EINVAL;
    usual[0] = '\0';
    if (home != NULL &&
        (size_t)snprintf(usual, sizeof(usual), "%s/.sxe_lua_history", home) >= sizeof(usual))
        usual[0] = '\0';
    result = sxe__lua_editor_open(path != NULL ? path : usual, complete_line);
    if (result < 0)
        return result;
    if (!is_at_exit)
        atexit(sxe_lua_repl_stop);
    is_at_exit = true;
    repl.lua = lua;
    repl.on_end = on_end;
    repl.thread = pthread_self();
    repl.loop = sxe_loop();
    watch_terminal();
    sxe_log_to_function(on_log, NULL);
    ask_for_line(PROMPT);
    return 0;
}

void
sxe_lua_repl_stop(void)
{
    if (repl.lua == NULL)
        return;
    repl.lua = NULL;
    sigaction(SIGINT, &repl.interrupt_before, NULL);
    ev_io_stop(repl.loop, &repl.input);
    ev_async_stop(repl.loop, &repl.interrupted);
    sxe_signal_stop(&repl.resized);
    sxe_signal_stop(&repl.continued);
    sxe_log_to_fd(STDERR_FILENO);
    sxe__lua_editor_close();
}
