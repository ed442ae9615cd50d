/* SPDX-License-Identifier: MIT
 *
 * What: sxe-pool, which looks at pools that processes share, and repairs and copies them.
 * Place: read pool-tool.h next.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command-line.h"
#include "pool-tool.h"
#include "program.h"
#include "sxe-time.h"

static const struct {
    const char *name;
    int (*run)(const struct pool_options *options);
    /* the fewest words that the command needs on the command line, with its own name */
    unsigned words_min;
    unsigned words_max;
    const char *words;
    const char *options; /* letters of the options that the command takes */
} commands[] = {
    {"list", pool_list, 1, POOL_WORDS_MAX, "list [DIR...]", "j"},
    {"show", pool_show, 2, 2, "show POOL", "j"},
    {"check", pool_check, 2, 2, "check POOL", ""},
    {"repair", pool_repair, 2, 2, "repair POOL", ""},
    {"dump", pool_dump, 2, 2, "dump POOL", "js"},
    {"watch", pool_watch, 2, 2, "watch POOL", "in"},
    {"backup", pool_backup, 3, 3, "backup POOL FILE", ""},
    {"restore", pool_restore, 3, 3, "restore FILE POOL", ""},
    {"resize", pool_resize, 3, 3, "resize POOL CELLS", ""},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int take_pool_option(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("Output"),
    {{"json", no_argument, NULL, 'j'}, "", "list, show, dump: as JSON, one value a line"},
    {{"state", required_argument, NULL, 's'},
     "STATE",
     "dump: only elements in this state, the oldest first"},
    COMMAND_LINE_GROUP("watch"),
    {{"interval", required_argument, NULL, 'i'}, "TIME", "time between two lines (1s)"},
    {{"number", required_argument, NULL, 'n'},
     "NUMBER",
     "how many lines to print (until a signal)"},
    COMMAND_LINE_GROUP("About"),
    COMMAND_LINE_ABOUT("print all options, and exit"),
};

static const struct command_line line = {
    .program = "sxe-pool",
    .words = "COMMAND [POOL]",
    .first = "list show check repair dump watch backup restore resize",
    .summary =
        "Inspects, repairs and copies pools that processes share, also while they are in use.\n\n"
        "Commands:\n"
        "  list [DIR...]      print the pools in /dev/shm, in directories, and open in processes\n"
        "  show POOL          print its states with their ages, and the processes that use it\n"
        "  check POOL         check that it is whole\n"
        "  repair POOL        rebuild its lists from the state and time of each element\n"
        "  dump POOL          print its elements with their fields, or the entries of a dict\n"
        "  watch POOL         print how many elements are in each state, and come into it\n"
        "  backup POOL FILE   write a dict, as it is at one moment, to a file\n"
        "  restore FILE POOL  make a dict from a backup, or replace one that is not in use\n"
        "  resize POOL CELLS  change the number of cells of a dict that is not in use\n\n"
        "POOL is a path, a name in /dev/shm, a process (12), or a descriptor of one (12:5). "
        "FILE is a path.",
    .examples =
        {
            {"list /var/lib/app", "which pools are in this directory?"},
            {"dump jobs --state READY --json", "what waits in /dev/shm/jobs, the oldest first?"},
            {"watch 1234", "what happens in the pool of process 1234?"},
        },
    .closing = "Exit status: 0; 1 if a pool cannot be used or is not whole; 2 if the command line "
               "cannot be understood; 128 plus the signal's number if a signal ended it.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take_pool_option,
};

static int
refuse_usage(const char *why, const char *what)
{
    fprintf(stderr, "sxe-pool: %s%s. Try --help.\n", why, what);
    return COMMAND_LINE_WRONG;
}

static int
take_pool_option(void *settings, int val)
{
    struct pool_options *options = settings;
    bool is_good = true;

    if (val != COMMAND_LINE_WORD)
        options->given |= 1u << (val - 'a');
    switch (val) {
    case COMMAND_LINE_WORD:
        if (options->words_number == POOL_WORDS_MAX)
            return refuse_usage("too many arguments: ", optarg);
        options->words[options->words_number++] = optarg;
        break;
    case 'j':
        options->is_json = true;
        break;
    case 's':
        options->state = optarg;
        break;
    case 'i':
        is_good = command_line_time(&line, "the time between two lines (-i)", SXE_NS_PER_MS,
                                    86400 * SXE_NS_PER_SECOND, &options->interval_ns);
        break;
    default:
        is_good =
            command_line_count(&line, "the number of lines (-n)", 1, 1000000000, &options->looks);
    }
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

/* Find an option on the command line that the command does not take. Returns its letter; 0: there
 * is none. */
static int
find_foreign_option(const struct pool_options *options, const char *taken)
{
    for (int letter = 'a'; letter <= 'z'; letter++) {
        if ((options->given & 1u << (letter - 'a')) != 0 && strchr(taken, letter) == NULL)
            return letter;
    }
    return 0;
}

static bool
refuse_foreign_option(const struct pool_options *options, unsigned command)
{
    const int letter = find_foreign_option(options, commands[command].options);

    if (letter != 0)
        fprintf(stderr, "sxe-pool: %s does not take the option -%c. Try --help.\n",
                commands[command].name, letter);
    return letter != 0;
}

/* Find the index of the command. COMMANDS after a message. */
static unsigned
find_command(const struct pool_options *options)
{
    const char *name = options->words_number == 0 ? NULL : options->words[0];
    unsigned i = 0;

    while (i < COMMANDS && name != NULL && strcmp(name, commands[i].name) != 0)
        i++;
    if (name == NULL)
        refuse_usage(
            "a command is missing: list, show, check, repair, dump, watch, backup, restore or "
            "resize",
            "");
    else if (i == COMMANDS)
        refuse_usage("the commands are list, show, check, repair, dump, watch, backup, restore and "
                     "resize, not ",
                     name);
    else if (options->words_number < commands[i].words_min)
        refuse_usage("an argument is missing: ", commands[i].words);
    else if (options->words_number > commands[i].words_max)
        refuse_usage("one argument too many: ", options->words[commands[i].words_max]);
    else
        return i;
    return COMMANDS;
}

/* Parse the second argument of resize, the number of cells. False after a message. */
static bool
take_cells(struct pool_options *options)
{
    optarg = (char *)(uintptr_t)options->words[2];
    return command_line_count(&line, "the number of cells", 1, 1ul << 31, &options->cells);
}

int
main(int argc, char **argv)
{
    struct pool_options options = {.interval_ns = SXE_NS_PER_SECOND};
    const sigset_t held = pool_ending_signals();
    int status;

    program_begin(&held);
    status = command_line_parse(&line, &options, argc, argv);
    if (status != COMMAND_LINE_GO_ON)
        return status;
    while (optind < argc && options.words_number < POOL_WORDS_MAX)
        options.words[options.words_number++] = argv[optind++];
    const unsigned command = find_command(&options);
    if (command == COMMANDS || refuse_foreign_option(&options, command) ||
        (commands[command].run == pool_resize && !take_cells(&options)))
        return COMMAND_LINE_WRONG;
    signal(SIGPIPE, SIG_IGN);
    pool_output_begin();
    status = commands[command].run(&options);
    const bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    if (pool_ended_by() != 0)
        status = 128 + pool_ended_by();
    else if (!is_written)
        status = pool_fail("cannot write to standard output: %s", strerror(errno));
    return status;
}
