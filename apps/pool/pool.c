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
    unsigned words_min; /* with the command itself */
    unsigned words_max;
    const char *words; /* where POOL is not all */
} commands[] = {
    {"list", pool_list, 1, POOL_WORDS_MAX, NULL},
    {"show", pool_show, 2, 2, NULL},
    {"check", pool_check, 2, 2, NULL},
    {"repair", pool_repair, 2, 2, NULL},
    {"dump", pool_dump, 2, 2, NULL},
    {"watch", pool_watch, 2, 2, NULL},
    {"backup", pool_backup, 3, 3, "backup POOL FILE"},
    {"restore", pool_restore, 3, 3, "restore FILE POOL"},
    {"resize", pool_resize, 3, 3, "resize POOL CELLS"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int take(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("What is printed"),
    {{"json", no_argument, NULL, 'j'}, "", "list, show, dump: as JSON, one value a line"},
    {{"state", required_argument, NULL, 's'},
     "STATE",
     "dump: only what is in this state; elements the oldest first"},
    COMMAND_LINE_GROUP("watch"),
    {{"interval", required_argument, NULL, 'i'}, "TIME", "between two looks (1s)"},
    {{"number", required_argument, NULL, 'n'}, "NUMBER", "of looks (until a signal)"},
    COMMAND_LINE_GROUP("About"),
    COMMAND_LINE_ABOUT("print all options, and exit"),
};

static const struct command_line line = {
    .program = "sxe-pool",
    .words = "COMMAND [POOL]",
    .first = "list show check repair dump watch backup restore resize",
    .summary =
        "Looks at pools that processes share, while they are used; repairs and copies them.\n\n"
        "Commands:\n"
        "  list [DIR...]      pools in /dev/shm and the directories, and those of processes\n"
        "  show POOL          its states with their ages, and who uses it\n"
        "  check POOL         whether it is whole\n"
        "  repair POOL        make new lists of what each element says of itself\n"
        "  dump POOL          its elements with their fields, or the entries of a dict\n"
        "  watch POOL         how many are in each state, and come to it, again and again\n"
        "  backup POOL FILE   write all that a dict has at one moment to a file\n"
        "  restore FILE POOL  make a dict of a backup, or replace one that is not in use\n"
        "  resize POOL CELLS  give a dict that is not in use another number of cells\n\n"
        "POOL is a path, a name in /dev/shm, a process (12), or what one has open (12:5). "
        "FILE is a path.",
    .examples =
        {
            {"list /var/lib/app", "which pools are there?"},
            {"dump jobs --state READY --json", "what waits in /dev/shm/jobs, the oldest first?"},
            {"watch 1234", "how does the pool of process 1234 do?"},
        },
    .closing = "Exit status: 0; 1 if a pool cannot be used or is not whole; 2 for what cannot be "
               "understood; 128 and the signal's number for what a signal cut short.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take,
};

static int
wrong(const char *why, const char *what)
{
    fprintf(stderr, "sxe-pool: %s%s. Try --help.\n", why, what);
    return COMMAND_LINE_WRONG;
}

static int
take(void *settings, int val)
{
    struct pool_options *options = settings;
    bool is_good = true;

    switch (val) {
    case COMMAND_LINE_WORD:
        if (options->words_number == POOL_WORDS_MAX)
            return wrong("too many words: ", optarg);
        options->words[options->words_number++] = optarg;
        break;
    case 'j':
        options->is_json = true;
        break;
    case 's':
        options->state = optarg;
        break;
    case 'i':
        is_good = command_line_time(&line, "the time between looks (-i)", SXE_NS_PER_MS,
                                    86400 * SXE_NS_PER_SECOND, &options->interval_ns);
        break;
    default:
        is_good =
            command_line_count(&line, "the number of looks (-n)", 1, 1000000000, &options->looks);
    }
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

/* Which command: its number, or COMMANDS after saying what is wrong. */
static unsigned
find_command(const struct pool_options *options)
{
    const char *name = options->words_number == 0 ? NULL : options->words[0];
    unsigned i = 0;

    while (i < COMMANDS && name != NULL && strcmp(name, commands[i].name) != 0)
        i++;
    if (name == NULL)
        wrong("a command is missing: list, show, check, repair, dump, watch, backup, restore or "
              "resize",
              "");
    else if (i == COMMANDS)
        wrong("the commands are list, show, check, repair, dump, watch, backup, restore and "
              "resize, not ",
              name);
    else if (options->words_number < commands[i].words_min)
        wrong(commands[i].words == NULL ? "the pool is missing behind " : "a word is missing: ",
              commands[i].words == NULL ? name : commands[i].words);
    else if (options->words_number > commands[i].words_max)
        wrong(commands[i].words == NULL ? "one pool at a time, so not " : "one word too many: ",
              options->words[commands[i].words_max]);
    else
        return i;
    return COMMANDS;
}

/* The second argument of resize. */
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
    if (command == COMMANDS || (commands[command].run == pool_resize && !take_cells(&options)))
        return COMMAND_LINE_WRONG;
    signal(SIGPIPE, SIG_IGN);
    status = commands[command].run(&options);
    if (pool_ended_by() != 0 && commands[command].run != pool_watch)
        status = 128 + pool_ended_by();
    if (fflush(stdout) != 0 || ferror(stdout))
        status = pool_fail("cannot write to standard output: %s", strerror(errno));
    return status;
}
