/* SPDX-License-Identifier: MIT
 *
 * What: sxe-lua, which runs a script with the loop, or is a shell. Place: read it after sxe-lua.h.
 * It is also an example of a program that embeds a Lua state.
 */
#include "coverage.h"
#include "options.h"

#include <errno.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command-line.h"
#include "crash.h"
#include "profile.h"
#include "program.h"
#include "script-crypto.h"
#include "script-inflate.h"
#include "script-memory.h"
#include "script-postgres.h"
#include "script-regex.h"
#include "script-store.h"
#include "script-tls.h"
#include "script-zlib.h"
#include "sxe-lua-http.h"
#include "sxe-lua-part-internal.h"
#include "sxe-lua-repl.h"
#include "sxe-lua.h"
#include "sxe-process-internal.h"
#include "sxe.h"

SXE__LUA_PART(project, "apps/lua/project.lua");
SXE__LUA_PART(rocks, "apps/lua/rocks.lua");

enum {
    SOCKETS = 64,
    TOLD_SIZE = 8192,
    PIECE = 65536,
    STDIN_MAX = 64 << 20,
    SIGNAL_STATUS = 128,
    END_SECONDS = 5
};

/* The state of the process, for callbacks that have no context argument. */
static struct {
    struct program_options options;
    struct sxe_lua *lua;
    char **argv;
    bool has_failed; /* whether to exit with EXIT_FAILURE */
    /* whether stop_script stopped the loop; if not, the loop ended because nothing was left to
     * do */
    bool is_stopped;
    bool is_over; /* whether the state is being closed: then errors come from finalizers */
    int signal;   /* the signal that ended the program; 0: none */
} program;

/* ---- Errors ---- */

static void
tell_user(const char *text)
{
    char told[TOLD_SIZE];

    sxe_lua_explain(text, told, sizeof(told));
    fputs(told, stderr);
}

static void
stop_script(void)
{
    program.is_stopped = true;
    sxe_stop();
}

/* The function on_error of the state. An error of the main script ends the program, but while a
 * shell runs an error only goes to the log. */
static bool
on_error(const char *where, const char *text)
{
    SXE_UNUSED_PARAMETER(where);
    program.has_failed |= program.is_over;
    if (program.options.is_shell && sxe_loop() != NULL)
        return false;
    tell_user(text);
    if (program.lua != NULL && sxe_loop() != NULL && sxe_lua_loaded(program.lua) == -EINVAL)
        stop_script();
    return true;
}

static int
refuse_to_start(const char *what, int error)
{
    fprintf(stderr, "sxe-lua: cannot start%s: %s\n", what, strerror(error));
    return EXIT_FAILURE;
}

/* ---- The script to run ---- */

/* Set arg[-1] and below to the program's arguments, like Lua's own interpreter. If --coverage was
 * given, begin to count lines. */
static int
begin_script(lua_State *L)
{
    int before = (int)(program.options.argv - program.argv);

    lua_getglobal(L, "arg");
    for (int i = 1; i <= before; i++) {
        lua_pushstring(L, program.options.argv[-i]);
        lua_rawseti(L, -2, -i);
    }
    if (program.options.coverage != NULL)
        coverage_begin(L, program.options.coverage, "sxe-lua", "--coverage");
    return 0;
}

static int
load_program_text(const char *name, const char *text, size_t length)
{
    return sxe_lua_load_text(program.lua, name, text, length);
}

/* --rocks, --new: call a text of ours with a table of what it needs, in place of a script. */
static int
call_part(lua_State *L)
{
    const struct program_options *options = &program.options;

    sxe__lua_push_part(L, options->project != NULL ? &project_part : &rocks_part);
    lua_createtable(L, 0, 2);
    lua_pushliteral(L, SXE_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, options->project);
    lua_setfield(L, -2, "project");
    lua_call(L, 1, 0);
    return 0;
}

/* Call begin_script in a task of the state, before any script runs. 0 or -errno. */
static int
prepare_loop(void)
{
    static const luaL_Reg functions[] = {
        {"begin", begin_script}, {"part", call_part}, {NULL, NULL}};
    static const char text[] = "require 'sxe-lua'.begin()";
    int result = sxe_lua_module(program.lua, "sxe-lua", functions);

    return result < 0 ? result : load_program_text("=sxe-lua", text, sizeof(text) - 1);
}

/* Read all of standard input; the caller frees it. NULL after a message. */
static char *
read_input(size_t *length)
{
    char *text = NULL;
    size_t got = 1;

    for (*length = 0; got > 0; *length += got) {
        char *more = *length < STDIN_MAX ? realloc(text, *length + PIECE) : NULL;

        if (more == NULL) {
            fprintf(stderr, "sxe-lua: standard input is too long for a script\n");
            free(text);
            return NULL;
        }
        text = more;
        got = fread(text + *length, 1, PIECE, stdin);
    }
    if (!ferror(stdin))
        return text;
    fprintf(stderr, "sxe-lua: cannot read standard input: %s\n", strerror(errno));
    free(text);
    return NULL;
}

static int
load_input(void)
{
    size_t length;
    char *text = read_input(&length);
    const char *from = text;
    int result;

    if (text == NULL)
        return -EIO;
    /* A first line like "#!/usr/bin/sxe-lua" is not Lua: skip it, but keep its newline, because
     * lines are counted. */
    if (length > 0 && *text == '#')
        from = memchr(text, '\n', length);
    result = from == NULL ? 0 : load_program_text("=stdin", from, length - (size_t)(from - text));
    free(text);
    return result;
}

/* Load the texts of -e and the script. 0, or -errno after a message. */
static int
load_all_files(void)
{
    const struct program_options *options = &program.options;
    static const char part[] = "require 'sxe-lua'.part()";
    int result = 0;

    if (options->is_rocks || options->project != NULL)
        return load_program_text("=sxe-lua", part, sizeof(part) - 1);
    for (unsigned i = 0; i < options->chunks_number && result == 0; i++)
        result =
            load_program_text("=(command line)", options->chunks[i], strlen(options->chunks[i]));
    if (result < 0 || options->script == NULL)
        return result;
    if (strcmp(options->script, "-") == 0)
        return load_input();
    return sxe_lua_load(program.lua, options->script);
}

/* ---- The loop ---- */

static void
on_end_signal(struct sxe_signal *watch)
{
    program.signal = (int)(intptr_t)watch->user;
    stop_script();
}

/* The loop's own handler of SIGINT, SIGTERM or SIGHUP. The loop acts on a signal in its next turn,
 * but a script that computes for ever prevents that. So an alarm ends the process END_SECONDS after
 * the first signal, or one second after another. */
static void (*loop_handler)(int);

static void
on_end_number(int signal_number)
{
    static volatile sig_atomic_t times;

    alarm(times++ == 0 ? END_SECONDS : 1);
    loop_handler(signal_number);
}

struct watches {
    struct sxe_signal interrupt;
    struct sxe_signal terminate;
    struct sxe_signal hang_up;
};

static void
watch_signal(struct sxe_signal *watch, int signal_number)
{
    struct sigaction action;

    watch->user = (void *)(intptr_t)signal_number;
    sxe_signal_start(watch, signal_number, on_end_signal);
    sigaction(signal_number, NULL, &action);
    loop_handler = action.sa_handler;
    action.sa_handler = on_end_number;
    sigaction(signal_number, &action, NULL);
}

/* Start the loop, the script and the shell. 0, or -errno after a message. */
static int
start_script(void)
{
    int result = sxe_init();

    if (result == 0)
        result = sxe_lua_init(program.lua);
    if (result < 0)
        return result;
    if (!program.options.is_shell)
        return 0;
    printf("sxe-lua %s, %s\nTab completes, Ctrl-C interrupts, Ctrl-D ends.\n", SXE_VERSION,
           LUA_RELEASE);
    result = sxe_lua_repl_start(program.lua, NULL, stop_script);
    if (result < 0)
        refuse_to_start(" the shell", -result);
    return result;
}

/* The program ends because nothing is left to do. If the user may expect more, explain why it
 * ends. */
static void
tell_why_it_ends(void)
{
    if (sxe_lua_loaded(program.lua) == -EINPROGRESS) {
        program.has_failed = true;
        fprintf(stderr, "error: the script waits, but nothing is left that could wake it\n");
    } else if (sxe_lua_http_has_handler(program.lua)) {
        fprintf(stderr, "hint: the script returned a handler; sxe-httpd --lua SCRIPT answers "
                        "requests with it\n");
    }
}

static void
end_program(void)
{
    tell_why_it_ends();
    sxe_lua_finish(program.lua);
    sxe_run();
}

static void
run_loop(void)
{
    struct watches watches = {.interrupt = {.user = NULL}};

    if (!program.options.is_shell)
        watch_signal(&watches.interrupt, SIGINT);
    watch_signal(&watches.terminate, SIGTERM);
    if (!sxe__signal_is_ignored(SIGHUP))
        watch_signal(&watches.hang_up, SIGHUP);
    sxe_run();
    if (!program.is_stopped)
        end_program();
    sxe_signal_stop(&watches.interrupt);
    sxe_signal_stop(&watches.terminate);
    sxe_signal_stop(&watches.hang_up);
}

/* ---- The program ---- */

/* Lua's print does not look for errors of standard output; the stream has remembered them. */
static void
check_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    fprintf(stderr, "sxe-lua: standard output did not take all that was printed\n");
    program.has_failed = true;
}

static int
run_script(void)
{
    const struct program_options *options = &program.options;
    struct sxe_lua_config config = {.memory_max = options->memory_max,
                                    .cpu_ms = options->cpu_ms,
                                    .tasks = options->tasks,
                                    .sockets = options->sockets,
                                    .is_loose = options->is_loose,
                                    .argc = options->argc,
                                    .argv = options->argv,
                                    .tls = script_tls(),
                                    .inflate = script_inflate(),
                                    .crypto = script_crypto(),
                                    .store = script_store(),
                                    .postgres = script_postgres(),
                                    .regex = script_regex(),
                                    .zlib = script_zlib(),
                                    .on_error = on_error};
    int result;

    script_keep_memory();
    program.lua = sxe_lua_new(&config);
    if (program.lua == NULL)
        return refuse_to_start("", errno);
    sxe_register(options->sockets > SOCKETS ? options->sockets : SOCKETS, 0);
    result = prepare_loop();
    if (result == 0 && options->is_shell)
        result = sxe_lua_repl_plan(program.lua);
    if (result == 0)
        result = load_all_files();
    if (result < 0 && !options->is_shell)
        program.has_failed = true;
    else if (start_script() < 0)
        program.has_failed = true;
    else
        run_loop();
    sxe_lua_repl_stop();
    sxe_fini();
    if (sxe_lua_errors(program.lua) > 0 || sxe_lua_loaded(program.lua) == -EINVAL)
        program.has_failed = true;
    program.is_over = true;
    sxe_lua_delete(program.lua);
    if (coverage_end() < 0)
        program.has_failed = true;
    check_output();
    if (program.signal != 0)
        return SIGNAL_STATUS + program.signal;
    return program.has_failed && !options->is_shell ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --check: compile the scripts, but do not run them. Returns the exit status. */
static int
check_script(void)
{
    int status = EXIT_SUCCESS;

    for (int i = 0; i < program.options.argc; i++) {
        lua_State *L = luaL_newstate();

        if (L == NULL)
            return refuse_to_start("", ENOMEM);
        if (luaL_loadfilex(L, program.options.argv[i], "t") != LUA_OK) {
            tell_user(lua_tostring(L, -1));
            status = EXIT_FAILURE;
        }
        lua_close(L);
    }
    return status;
}

int
main(int argc, char **argv)
{
    int status;

    program_begin(NULL);
    crash_begin("sxe-lua");
    profile_begin();
    memset(&program, 0, sizeof(program));
    program.argv = argv;
    status = program_options_parse(&program.options, argc, argv);
    if (status != COMMAND_LINE_GO_ON)
        return status;
    return program.options.is_check ? check_script() : run_script();
}
