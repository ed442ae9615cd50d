/* SPDX-License-Identifier: MIT
 *
 * The table of sxe-lua's options, and the functions that store their values.
 */
#include "options.h"

#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command-line.h"
#include "sxe-util.h"

#define GIB      (1024ul * 1024 * 1024)
#define NO_LIMIT UINT32_MAX

#define TASKS_MAX   1000000ul
#define SOCKETS_MAX 1000000ul

/* Returned when parsing reaches the script's name; not an exit status. */
#define AT_SCRIPT (-2)

enum { CHECK = COMMAND_LINE_LONG, ROCKS, NEW, COVERAGE, MEMORY, CPU, TASKS, SOCKETS, LOOSE };

static int take_lua_option(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("Scripts"),
    {{"execute", required_argument, NULL, 'e'}, "CODE", "run CODE before the script; repeatable"},
    {{"interactive", no_argument, NULL, 'i'}, "", "open a shell after starting the script"},
    {{"check", no_argument, NULL, CHECK}, "", "only compile the scripts, and print their errors"},
    {{"coverage", required_argument, NULL, COVERAGE},
     "FILE",
     "add the lines that ran to FILE, for lcov"},
    COMMAND_LINE_GROUP("Projects"),
    {{"new", required_argument, NULL, NEW},
     "DIRECTORY",
     "make a project that runs in a new directory, and exit"},
    {{"rocks", no_argument, NULL, ROCKS},
     "",
     "list the modules that SCRIPT requires, or those of ./rocks, and exit"},
    COMMAND_LINE_GROUP("Limits"),
    {{"memory", required_argument, NULL, MEMORY}, "SIZE", "limit the memory of scripts (4g)"},
    {{"cpu", required_argument, NULL, CPU},
     "TIME",
     "limit a task's CPU time between two waits (no limit)"},
    {{"tasks", required_argument, NULL, TASKS}, "N", "limit the tasks that exist at once (16384)"},
    {{"sockets", required_argument, NULL, SOCKETS},
     "N",
     "limit the connections that are open at once (64)"},
    {{"loose", no_argument, NULL, LOOSE}, "", "allow new globals at any time"},
    COMMAND_LINE_GROUP("About"),
    {{"lua-version", no_argument, NULL, 'v'}, "", "print the version, and Lua's, and exit"},
    COMMAND_LINE_ABOUT("print all options, and exit"),
};

static const struct command_line line = {
    .program = "sxe-lua",
    .words = "[SCRIPT [ARGUMENT...]]",
    .summary =
        "Runs a Lua script that may wait, serve and start tasks; ends when nothing is left to do.\n"
        "Without a script, on a terminal, it is a shell.",
    .examples =
        {
            {"server.lua 8000", "run server.lua; arg[1] is \"8000\""},
            {"-i server.lua", "run server.lua, and open a shell into it"},
            {"--new shop", "make the project \"shop\""},
        },
    .closing = "Exit status: 0; 1 after an error; 2 if the command line cannot be understood.\n"
               "SIGINT, SIGTERM: end all tasks and exit; SIGALRM kills what still runs after 5 s.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take_lua_option,
};

static int
refuse_lua_option(const char *why)
{
    fprintf(stderr, "sxe-lua: %s. Try --help.\n", why);
    return COMMAND_LINE_WRONG;
}

static int
add_chunk(struct program_options *options)
{
    if (options->chunks_number == PROGRAM_CHUNKS_MAX)
        return refuse_lua_option("-e may be given 16 times at most");
    options->chunks[options->chunks_number++] = optarg;
    return COMMAND_LINE_GO_ON;
}

static int
take_memory(struct program_options *options)
{
    return command_line_size(&line, "the memory (--memory)", 1024ul * 1024, 1024 * GIB,
                             &options->memory_max)
               ? COMMAND_LINE_GO_ON
               : COMMAND_LINE_WRONG;
}

static int
take_cpu(struct program_options *options)
{
    unsigned long ms = 0;
    bool is_good = command_line_duration(&line, "the time (--cpu)", 10, NO_LIMIT, &ms);

    options->cpu_ms = (uint32_t)ms;
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

static int
take_number_option(const char *what, unsigned long max, uint32_t *number)
{
    unsigned long taken = 0;

    if (!command_line_number(&line, what, 1, max, &taken))
        return COMMAND_LINE_WRONG;
    *number = (uint32_t)taken;
    return COMMAND_LINE_GO_ON;
}

static int
take_lua_option(void *settings, int val)
{
    struct program_options *options = settings;

    switch (val) {
    case COMMAND_LINE_WORD:
        return AT_SCRIPT;
    case 'e':
        return add_chunk(options);
    case 'i':
        options->is_shell = true;
        break;
    case CHECK:
        options->is_check = true;
        break;
    case ROCKS:
        options->is_rocks = true;
        break;
    case NEW:
        options->project = optarg;
        break;
    case COVERAGE:
        options->coverage = optarg;
        break;
    case MEMORY:
        return take_memory(options);
    case CPU:
        return take_cpu(options);
    case TASKS:
        return take_number_option("the number of tasks (--tasks)", TASKS_MAX, &options->tasks);
    case SOCKETS:
        return take_number_option("the number of sockets (--sockets)", SOCKETS_MAX,
                                  &options->sockets);
    case LOOSE:
        options->is_loose = true;
        break;
    default:
        printf("%s %s, %s\n", line.program, SXE_VERSION, LUA_RELEASE);
        return EXIT_SUCCESS;
    }
    return COMMAND_LINE_GO_ON;
}

/* If neither a script nor -e was given: start a shell if standard input is a terminal, otherwise
 * run the text of standard input. */
static void
choose_defaults(struct program_options *options)
{
    if (options->script != NULL || options->chunks_number > 0 || options->is_shell)
        return;
    if (isatty(STDIN_FILENO))
        options->is_shell = true;
    else
        options->script = "-";
}

static bool
runs_scripts(const struct program_options *options)
{
    return options->is_check || options->is_shell || options->chunks_number > 0;
}

int
program_options_parse(struct program_options *options, int argc, char **argv)
{
    int status;
    int script;

    *options = (struct program_options){.memory_max = 4 * GIB, .cpu_ms = NO_LIMIT};
    status = command_line_parse(&line, options, argc, argv);
    if (status != COMMAND_LINE_GO_ON && status != AT_SCRIPT)
        return status;
    script = status == AT_SCRIPT ? optind - 1 : optind;
    options->argc = script < argc ? argc - script : 1;
    options->argv = script < argc ? argv + script : argv;
    options->script = script < argc ? argv[script] : NULL;
    if (options->is_check && options->script == NULL)
        return refuse_lua_option("--check needs a script");
    if (options->project != NULL && options->script != NULL)
        return refuse_lua_option("--new takes one directory");
    if (options->project != NULL && (options->is_rocks || runs_scripts(options)))
        return refuse_lua_option("--new goes without --rocks, --check, -e and -i");
    if (options->is_rocks && runs_scripts(options))
        return refuse_lua_option("--rocks goes without --check, -e and -i");
    if (!options->is_check && !options->is_rocks && options->project == NULL)
        choose_defaults(options);
    if (options->is_shell && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return refuse_lua_option("-i needs a terminal");
    return COMMAND_LINE_GO_ON;
}
