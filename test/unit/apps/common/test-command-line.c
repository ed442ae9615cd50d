/* SPDX-License-Identifier: MIT
 *
 * The command line of our programs, with a table of options for this test.
 */
#include "command-line.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "captured.h"
#include "sxe-util.h"
#include "test-main.h"

enum { HEADER = COMMAND_LINE_LONG, PLAIN, LONGEST };

/* ---- A program ---- */

static char taken[1000]; /* the options that take() got, such as "p=80 H=K: V " */

static int
take(void *settings, int val)
{
    size_t length = strlen(taken);
    char name = val == COMMAND_LINE_WORD ? 'W'
                : val == HEADER          ? 'H'
                : val == PLAIN           ? 'P'
                                         : (char)val;

    name = val == LONGEST ? 'L' : name;

    ck_assert_ptr_eq(settings, taken);
    snprintf(taken + length, sizeof(taken) - length, "%c=%s ", name,
             val == PLAIN || val == 'q' ? "" : optarg);
    return val == 'x' ? 7 : COMMAND_LINE_GO_ON;
}

static const struct command_option table[] = {
    {{"early", required_argument, NULL, 'e'}, "E", "before any heading"},
    COMMAND_LINE_GROUP("Where it listens"),
    {{"port", required_argument, NULL, 'p'}, "PORT", "port to listen on"},
    {{"header", required_argument, NULL, HEADER}, "'K: V'", "field to add; may be repeated"},
    COMMAND_LINE_GROUP("What it does"),
    {{"quiet", no_argument, NULL, 'q'}, "", "say nothing"},
    {{"plain", no_argument, NULL, PLAIN}, "", "no colours"},
    {{"exit", required_argument, NULL, 'x'}, "S", "exit with a status"},
    {{"a-name-that-is-longer-than-others", required_argument, NULL, LONGEST}, "X", "the longest"},
    COMMAND_LINE_GROUP("About"),
    COMMAND_LINE_ABOUT("print all options, and exit"),
};

static struct command_line line = {
    .program = "program",
    .summary = "Does what a program does.",
    .examples = {{"-p 80", "on port 80"},
                 {"--header 'A: b' -q", "with a field, and quiet"},
                 {"-q", "quiet"}},
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take,
};

/* ---- Parsing a command line ---- */

static char output[4000];
static char errors[4000];

static int
parse(const char **argv)
{
    struct captured out = capture(STDOUT_FILENO, tmpfile());
    struct captured err = capture(STDERR_FILENO, tmpfile());
    int argc = 0;
    int result;

    while (argv[argc] != NULL)
        argc++;
    taken[0] = '\0';
    result = command_line_parse(&line, taken, argc, (char **)(uintptr_t)argv);
    captured_text(&out, output, sizeof(output));
    captured_text(&err, errors, sizeof(errors));
    return result;
}
#define PARSE(...) parse((const char *[]){"program", __VA_ARGS__, NULL})

/* ---- Options that are accepted ---- */

START_TEST(without_arguments_nothing_is_taken)
{
    ck_assert_int_eq(parse((const char *[]){"program", NULL}), COMMAND_LINE_GO_ON);
    ck_assert_str_eq(taken, "");
    ck_assert_str_eq(output, "");
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(options_are_taken_in_their_order_by_either_name)
{
    ck_assert_int_eq(PARSE("-p80", "--plain", "-qe", "1", "--early=", "--port", "-1"), -1);
    ck_assert_str_eq(taken, "p=80 P= q= e=1 e= p=-1 ");
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(a_repeated_option_is_taken_each_time)
{
    ck_assert_int_eq(PARSE("--header", "A: b", "-q", "--header=C: d", "--head", "A: b"), -1);
    ck_assert_str_eq(taken, "H=A: b q= H=C: d H=A: b ");
}
END_TEST

START_TEST(the_exit_status_of_an_option_ends_it)
{
    ck_assert_int_eq(PARSE("-q", "-x", "1", "-q"), 7);
    ck_assert_str_eq(taken, "q= x=1 ");
}
END_TEST

START_TEST(a_command_line_begins_anew)
{
    ck_assert_int_eq(PARSE("-qZq"), 2);
    ck_assert_int_eq(PARSE("-q"), -1);
    ck_assert_str_eq(taken, "q= ");
    ck_assert_int_eq(PARSE("--help", "-q"), 0);
    ck_assert_int_eq(PARSE("-p", "1"), -1);
    ck_assert_str_eq(taken, "p=1 ");
}
END_TEST

START_TEST(as_many_rows_as_are_allowed_are_all_taken)
{
    static struct command_option rows[COMMAND_OPTIONS_MAX];
    static char names[COMMAND_OPTIONS_MAX][16];

    for (int i = 0; i < COMMAND_OPTIONS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        rows[i] =
            (struct command_option){{names[i], required_argument, NULL, 'a' + i % 26}, "", ""};
    }
    line.options = rows;
    line.number = COMMAND_OPTIONS_MAX;
    ck_assert_int_eq(PARSE("-b", "1", "--n95=2"), -1);
    ck_assert_str_eq(taken, "b=1 r=2 ");
}
END_TEST

/* ---- Command lines that cannot be understood ---- */

static const struct {
    const char *argv[3];
    const char *says;
} refused[] = {
    {{"--prot"}, "unknown option --prot; did you mean --port? Try --help."},
    {{"--prot=80"}, "unknown option --prot; did you mean --port? Try --help."},
    {{"--prt"}, "unknown option --prt; did you mean --port? Try --help."},
    {{"--portt", "80"}, "unknown option --portt; did you mean --port? Try --help."},
    {{"--Port"}, "unknown option --Port; did you mean --port? Try --help."},
    {{"--opt"}, "unknown option --opt. Try --help."},
    {{"--xit"}, "unknown option --xit; did you mean --exit? Try --help."},
    {{"--hedaers"}, "unknown option --hedaers; did you mean --header? Try --help."},
    {{"--versoin"}, "unknown option --versoin; did you mean --version? Try --help."},
    {{"--helpp"}, "unknown option --helpp; did you mean --help? Try --help."},
    {{"--p"}, "unknown option --p; did you mean --port? Try --help."},
    {{"--p="}, "unknown option --p; did you mean --port? Try --help."},
    {{"--=x"}, "unknown option --. Try --help."},
    {{"--z"}, "unknown option --z. Try --help."},
    {{"--nonsense"}, "unknown option --nonsense. Try --help."},
    {{"--a-name-that-is-longer-than-other"}, "option --a-name-that-is-longer-than-others requires"},
    {{"--a-name-that-is-longer-then-other"}, "longer-then-other. Try --help."},
    {{"--a-name-that-is-longer-than-any-option"}, "-any-option. Try --help."},
    {{"-Z"}, "unknown option -Z. Try --help."},
    {{"-qZ"}, "unknown option -Z. Try --help."},
    {{"-?"}, "unknown option -?. Try --help."},
    {{"-:"}, "unknown option -:. Try --help."},
    {{"-V"}, "unknown option -V. Try --help."},
    {{"--plain=yes"}, "option --plain takes no argument. Try --help."},
    {{"--help=me"}, "option --help takes no argument. Try --help."},
    {{"-p"}, "option -p requires an argument: -p PORT. Try --help."},
    {{"-qp"}, "option -p requires an argument: -p PORT. Try --help."},
    {{"--port"}, "option --port requires an argument: --port PORT. Try --help."},
    {{"--head"}, "option --header requires an argument: --header 'K: V'. Try --help."},
    {{"more"}, "'more' is not an option. Try --help."},
    {{"more", "-q"}, "'more' is not an option. Try --help."},
    {{"--", "-q"}, "'-q' is not an option. Try --help."},
    {{"-"}, "'-' is not an option. Try --help."},
    {{""}, "'' is not an option. Try --help."},
};

START_TEST(what_is_no_option_is_named)
{
    ck_assert_int_eq(PARSE(refused[_i].argv[0], refused[_i].argv[1]), COMMAND_LINE_WRONG);
    ck_assert_str_eq(output, "");
    ck_assert_msg(strncmp(errors, "program: ", 9) == 0, "%s", errors);
    ck_assert_msg(strstr(errors, refused[_i].says) != NULL, "%s", errors);
    ck_assert_ptr_eq(strchr(errors, '\n'), errors + strlen(errors) - 1);
}
END_TEST

/* ---- Help ---- */

static const char help[] =
    "usage: program [options]\n"
    "\n"
    "Does what a program does.\n"
    "\n"
    "Examples:\n"
    "  program -p 80               on port 80\n"
    "  program --header 'A: b' -q  with a field, and quiet\n"
    "  program -q                  quiet\n"
    "  -e, --early      E       before any heading\n"
    "\n"
    "Where it listens:\n"
    "  -p, --port       PORT    port to listen on\n"
    "      --header     'K: V'  field to add; may be repeated\n"
    "\n"
    "What it does:\n"
    "  -q, --quiet              say nothing\n"
    "      --plain              no colours\n"
    "  -x, --exit       S       exit with a status\n"
    "\n"
    "About:\n"
    "      --completion SHELL   print completions for bash, zsh or fish, and exit\n"
    "  -h, --help               print all options, and exit\n"
    "      --version            print the version, and exit\n";

/* Hide the longest option, which would make the lines above too long. */
static void
without_the_longest(void)
{
    static struct command_option rows[sizeof(table) / sizeof(table[0]) - 1];
    unsigned number = 0;

    for (unsigned i = 0; i < line.number; i++) {
        if (table[i].option.val != LONGEST)
            rows[number++] = table[i];
    }
    line.options = rows;
    line.number = number;
}

START_TEST(help_has_three_examples_and_then_the_options_in_groups)
{
    without_the_longest();
    ck_assert_int_eq(_i == 0 ? PARSE("--help") : PARSE("-h", "--nonsense"), EXIT_SUCCESS);
    ck_assert_str_eq(output, help);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(help_ends_with_a_closing_line_if_there_is_one)
{
    without_the_longest();
    line.closing = "That is all.";
    ck_assert_int_eq(PARSE("-h"), EXIT_SUCCESS);
    ck_assert_mem_eq(output, help, sizeof(help) - 1);
    ck_assert_str_eq(output + sizeof(help) - 1, "\nThat is all.\n");
}
END_TEST

static const char *const common[] = {"port", "plain", "help", NULL};

START_TEST(a_letter_asks_for_the_common_options_only)
{
    line.common = common;
    line.words = "[FILE...]";
    line.closing = "Not now.";
    ck_assert_int_eq(PARSE("-h"), EXIT_SUCCESS);
    ck_assert_str_eq(output, "usage: program [options] [FILE...]\n"
                             "\n"
                             "Does what a program does.\n"
                             "\n"
                             "Examples:\n"
                             "  program -p 80               on port 80\n"
                             "  program --header 'A: b' -q  with a field, and quiet\n"
                             "  program -q                  quiet\n"
                             "\n"
                             "Where it listens:\n"
                             "  -p, --port  PORT  port to listen on\n"
                             "\n"
                             "What it does:\n"
                             "      --plain       no colours\n"
                             "\n"
                             "About:\n"
                             "  -h, --help        print all options, and exit\n"
                             "\n"
                             "These are the common ones; program --help has all.\n");
    ck_assert_int_eq(PARSE("--help"), EXIT_SUCCESS);
    ck_assert_ptr_ne(strstr(output, "--a-name-that-is-longer-than-others"), NULL);
    ck_assert_ptr_ne(strstr(output, "\nNot now.\n"), NULL);
}
END_TEST

/* ---- Tables with unusual options ---- */

static const struct command_option odd[] = {
    COMMAND_LINE_GROUP("Empty"),
    COMMAND_LINE_GROUP("Odd ones"),
    {{"log", required_argument, NULL, 'L'}, "FILE", ".it's [a] \\ log: yes"},
    {{"root", required_argument, NULL, HEADER}, "DIR", "files"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "a port"},
    {{"quiet", no_argument, NULL, 'q'}, "", "say nothing"},
    {{"secret", no_argument, NULL, PLAIN}, "", NULL},
};

static void
with_odd_options(void)
{
    line.program = "odd-program";
    line.options = odd;
    line.number = sizeof(odd) / sizeof(odd[0]);
}

/* The output of one of the functions. */
static void
print(void (*print_line)(const struct command_line *))
{
    struct captured out = capture(STDOUT_FILENO, tmpfile());

    print_line(&line);
    captured_text(&out, output, sizeof(output));
}

START_TEST(a_man_page_lists_the_options_in_mdoc)
{
    with_odd_options();
    print(command_line_print_man);
    ck_assert_str_eq(output, ".Ss Empty\n"
                             ".Ss Odd ones\n"
                             ".Bl -tag -width Ds\n"
                             ".It Fl L , Fl -log Ar FILE\n"
                             "\\&.it's [a] \\e log: yes\n"
                             ".It Fl -root Ar DIR\n"
                             "files\n"
                             ".It Fl p , Fl -port Ar PORT\n"
                             "a port\n"
                             ".It Fl q , Fl -quiet\n"
                             "say nothing\n"
                             ".El\n");
    line.number = 1;
    print(command_line_print_man);
    ck_assert_str_eq(output, ".Ss Empty\n");
}
END_TEST

START_TEST(the_man_option_prints_the_lists)
{
    ck_assert_int_eq(PARSE("--man"), EXIT_SUCCESS);
    ck_assert_ptr_ne(strstr(output, ".Ss What it does\n.Bl -tag -width Ds\n.It Fl q , Fl -quiet\n"),
                     NULL);
    ck_assert_ptr_eq(strstr(output, "-man"), NULL);
    ck_assert_ptr_eq(strstr(output, "(null)"), NULL);
}
END_TEST

static void
print_shell(const char *shell)
{
    struct captured out = capture(STDOUT_FILENO, tmpfile());

    ck_assert(command_line_print_completion(&line, shell));
    captured_text(&out, output, sizeof(output));
}

START_TEST(bash_completes_options_and_files)
{
    with_odd_options();
    print_shell("bash");
    ck_assert_str_eq(
        output, "# bash: source this, or put it in "
                "~/.local/share/bash-completion/completions/odd-program\n"
                "_odd_program()\n"
                "{\n"
                "    local word=${COMP_WORDS[COMP_CWORD]}\n"
                "    COMPREPLY=()\n"
                "    case ${COMP_WORDS[COMP_CWORD-1]} in\n"
                "    --port|-p) return ;;\n"
                "    esac\n"
                "    case $word in\n"
                "    -*) COMPREPLY=($(compgen -W '--log --root --port --quiet ' -- \"$word\")) ;;\n"
                "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
                "    esac\n"
                "}\n"
                "complete -F _odd_program odd-program\n");
}
END_TEST

START_TEST(zsh_shows_what_options_mean)
{
    with_odd_options();
    print_shell("zsh");
    ck_assert_str_eq(output, "#compdef odd-program\n"
                             "_arguments \\\n"
                             "    '*--log[.it'\\''s \\[a\\] \\\\ log\\: yes]:FILE:_files' \\\n"
                             "    '*-L[.it'\\''s \\[a\\] \\\\ log\\: yes]:FILE:_files' \\\n"
                             "    '*--root[files]:DIR:_files' \\\n"
                             "    '*--port[a port]:PORT:' \\\n"
                             "    '*-p[a port]:PORT:' \\\n"
                             "    '*--quiet[say nothing]' \\\n"
                             "    '*-q[say nothing]'\n");
    line.words = "[FILE]";
    print_shell("zsh");
    ck_assert_ptr_ne(strstr(output, " \\\n    '*::word:_files'\n"), NULL);
}
END_TEST

START_TEST(fish_has_a_line_an_option)
{
    with_odd_options();
    print_shell("fish");
    ck_assert_str_eq(output,
                     "complete -c odd-program -l log -s L -r -d '.it'\\''s [a] \\\\ log: yes'\n"
                     "complete -c odd-program -l root -r -d 'files'\n"
                     "complete -c odd-program -l port -s p -x -d 'a port'\n"
                     "complete -c odd-program -l quiet -s q -d 'say nothing'\n");
}
END_TEST

START_TEST(the_completion_option_knows_three_shells)
{
    ck_assert_int_eq(PARSE("--completion", "fish"), EXIT_SUCCESS);
    ck_assert_ptr_ne(strstr(output, "complete -c program -l quiet -s q -d 'say nothing'\n"), NULL);
    ck_assert_int_eq(PARSE("--completion", "tcsh"), COMMAND_LINE_WRONG);
    ck_assert_str_eq(
        errors, "program: the shell (--completion) is 'tcsh'; it must be bash, zsh or fish.\n");
}
END_TEST

/* ---- Options whose value is a word ---- */

START_TEST(words_are_taken_in_their_order_among_the_options)
{
    line.words = "[WORD...]";
    ck_assert_int_eq(PARSE("one", "-q", "two", "-p", "80", "-"), COMMAND_LINE_GO_ON);
    ck_assert_str_eq(taken, "W=one q= W=two p=80 W=- ");
}
END_TEST

START_TEST(what_stands_behind_two_dashes_is_left_to_the_program)
{
    line.words = "[WORD...]";
    ck_assert_int_eq(PARSE("one", "--", "-q", "two"), COMMAND_LINE_GO_ON);
    ck_assert_str_eq(taken, "W=one ");
    ck_assert_int_eq(optind, 3);
}
END_TEST

START_TEST(version_is_the_librarys)
{
    ck_assert_int_eq(PARSE("--version"), EXIT_SUCCESS);
    ck_assert_str_eq(output, "program " SXE_VERSION "\n");
    ck_assert_str_eq(errors, "");
}
END_TEST

/* ---- Values ---- */

static unsigned long value;

/* Parse text as a value; if it is refused, the message is in errors. */
static bool
value_of(bool (*as)(const struct command_line *, const char *, unsigned long, unsigned long,
                    unsigned long *),
         const char *text, unsigned long min, unsigned long max)
{
    struct captured err = capture(STDERR_FILENO, tmpfile());
    bool good;

    optarg = (char *)(uintptr_t)text;
    good = as(&line, "the thing (-t)", min, max, &value);
    captured_text(&err, errors, sizeof(errors));
    return good;
}

static const struct {
    const char *text;
    unsigned long value;
} good_durations[] = {
    {"0", 0},
    {"10", 10000},
    {"0.5", 500},
    {".5", 500},
    {"5.", 5000},
    {"0.25", 250},
    {"1.001", 1001},
    {"4.35", 4350},
    {"0.0019", 1},
    {"0.0009", 0},
    {"010", 10000},
    {"500ms", 500},
    {"1.9ms", 1},
    {"1ms", 1},
    {"30s", 30000},
    {"1.5s", 1500},
    {"2m", 120000},
    {"0.5m", 30000},
    {"1.5h", 5400000},
    {"1d", 86400000},
    {"0.1d", 8640000},
    {"0.61538461538462", 615},
    {"0.6153846153846153846153846", 615},
};

START_TEST(a_duration_is_seconds_or_has_a_unit)
{
    ck_assert_msg(value_of(command_line_duration, good_durations[_i].text, 0, 86400000), "%s",
                  errors);
    ck_assert_uint_eq(value, good_durations[_i].value);
    ck_assert_str_eq(errors, "");
}
END_TEST

static const char *const bad_durations[] = {
    "",
    ".",
    "-1",
    "+1",
    " 1",
    "1 ",
    "1 s",
    "1.2.3",
    "1e3",
    "0x10",
    "nan",
    "inf",
    "ms",
    "s",
    "1S",
    "1M",
    "1ms2",
    "1min",
    "1sec",
    "1h30m",
    "1,5",
    "2d",
    "86400.001",
    "9ms",
    "0",
    "0.001",
    "18446744073709551616",
    "18446744073709551615",
    "99999999999999999999d",
    "18446744073709551615d",
    "0.00000000000000000000001",
};

START_TEST(a_bad_duration_is_named_with_what_is_allowed)
{
    char says[300];

    ck_assert(!value_of(command_line_duration, bad_durations[_i], 10, 86400000));
    snprintf(says, sizeof(says),
             "program: the thing (-t) is '%s'; it must be from 0.01 to 86400 seconds, "
             "such as 10, 0.5, 500ms or 2m. Try --help.\n",
             bad_durations[_i]);
    ck_assert_str_eq(errors, says);
}
END_TEST

static const struct {
    const char *text;
    unsigned long value;
} good_sizes[] = {
    {"0", 0},        {"1", 1},           {"65536", 65536},          {"100B", 100},
    {"64k", 65536},  {"64K", 65536},     {"16KiB", 16384},          {"1m", 1048576},
    {"1M", 1048576}, {"1MiB", 1048576},  {"1.5m", 1572864},         {"0.5k", 512},
    {".5k", 512},    {"1g", 1073741824}, {"1G", 1073741824},        {"1GiB", 1ul << 30},
    {"0.3", 0},      {"010", 10},        {"1073741824", 1ul << 30},
};

START_TEST(a_size_is_bytes_or_has_a_unit)
{
    ck_assert_msg(value_of(command_line_size, good_sizes[_i].text, 0, 1ul << 30), "%s", errors);
    ck_assert_uint_eq(value, good_sizes[_i].value);
    ck_assert_str_eq(errors, "");
}
END_TEST

static const char *const bad_sizes[] = {
    "",
    ".",
    "-1",
    "+1",
    " 1",
    "1 ",
    "1 k",
    "k",
    "1kb",
    "1KB",
    "1kib",
    "1t",
    "1kk",
    "0x10",
    "1e3",
    "63k",
    "1.1g",
    "2g",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "17179869184g",
};

START_TEST(a_bad_size_is_named_with_what_is_allowed)
{
    char says[300];

    ck_assert(!value_of(command_line_size, bad_sizes[_i], 64 * 1024, 1ul << 30));
    snprintf(says, sizeof(says),
             "program: the thing (-t) is '%s'; it must be from 64k to 1g bytes: "
             "1m is 1MiB or 1024k or 1048576. Try --help.\n",
             bad_sizes[_i]);
    ck_assert_str_eq(errors, says);
}
END_TEST

static const struct {
    const char *text;
    unsigned long value;
} good_times[] = {
    {"0", 0},
    {"1", 1000000000},
    {"500ms", 500000000},
    {"20us", 20000},
    {"1.5us", 1500},
    {"7ns", 7},
    {"0.5ns", 0},
    {"2m", 120000000000},
    {"1h", 3600000000000},
    {"0.61538461538462", 615384615},
    {"3599.1234567891", 3599123456789},
};

START_TEST(a_time_is_seconds_or_has_a_unit_down_to_the_nanosecond)
{
    ck_assert_msg(value_of(command_line_time, good_times[_i].text, 0, 3600000000000), "%s", errors);
    ck_assert_uint_eq(value, good_times[_i].value);
}
END_TEST

START_TEST(a_bad_time_is_named_with_what_is_allowed)
{
    ck_assert(!value_of(command_line_time, "10usec", 1000, 60000000000));
    ck_assert_str_eq(errors, "program: the thing (-t) is '10usec'; it must be from 1e-06 to 60 "
                             "seconds, such as 10, 500ms, 20us or 2m. Try --help.\n");
    ck_assert(!value_of(command_line_time, "999ns", 1000, 60000000000));
    ck_assert(!value_of(command_line_time, "61", 1000, 60000000000));
}
END_TEST

static const struct {
    const char *text;
    unsigned long value;
} good_counts[] = {
    {"1", 1}, {"10k", 10000}, {"10K", 10000}, {"1.5M", 1500000}, {"2G", 2000000000}, {"0.5k", 500},
};

START_TEST(a_count_may_be_in_thousands)
{
    ck_assert_msg(value_of(command_line_count, good_counts[_i].text, 1, ULONG_MAX), "%s", errors);
    ck_assert_uint_eq(value, good_counts[_i].value);
}
END_TEST

START_TEST(a_part_of_one_is_no_count)
{
    static const char *const parts[] = {"1.5", "0.0005k", "1.0000005M", "0.5"};

    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char says[200];

        ck_assert(!value_of(command_line_count, parts[i], 0, 1000));
        snprintf(says, sizeof(says),
                 "program: the thing (-t) is '%s'; it must be a whole number from 0 to 1000. "
                 "Try --help.\n",
                 parts[i]);
        ck_assert_str_eq(errors, says);
    }
    ck_assert(value_of(command_line_count, "1.0", 0, 1000));
}
END_TEST

START_TEST(a_bad_count_is_named_with_what_is_allowed)
{
    ck_assert(!value_of(command_line_count, "10x", 1, 1000));
    ck_assert_str_eq(errors,
                     "program: the thing (-t) is '10x'; it must be a number from 1 to 1000. "
                     "Try --help.\n");
    ck_assert(!value_of(command_line_count, "0", 1, 1000));
    ck_assert(!value_of(command_line_count, "2k", 1, 1000));
}
END_TEST

static const struct {
    unsigned long min;
    unsigned long max;
    const char *says;
} ranges[] = {
    {1, 1000, "from 1 to 1000 bytes"},
    {0, 1024, "from 0 to 1k bytes"},
    {1, 1536, "from 1 to 1536 bytes"},
    {1024, 1024 * 1024, "from 1k to 1m bytes"},
    {1, 1ul << 30, "from 1 to 1g bytes"},
    {1, 3 * (1ul << 30), "from 1 to 3g bytes"},
    {1, 1024 * (1ul << 30), "from 1 to 1024g bytes"},
};

START_TEST(a_range_of_sizes_is_said_in_the_largest_unit)
{
    ck_assert(!value_of(command_line_size, "x", ranges[_i].min, ranges[_i].max));
    ck_assert_msg(strstr(errors, ranges[_i].says) != NULL, "%s", errors);
}
END_TEST

START_TEST(both_ends_of_a_range_are_in_it)
{
    ck_assert(value_of(command_line_number, "5", 5, 7));
    ck_assert(value_of(command_line_number, "7", 5, 7));
    ck_assert(!value_of(command_line_number, "4", 5, 7));
    ck_assert(!value_of(command_line_number, "8", 5, 7));
    ck_assert(value_of(command_line_duration, "5", 5000, 7000));
    ck_assert(value_of(command_line_duration, "7", 5000, 7000));
    ck_assert(!value_of(command_line_duration, "4.999", 5000, 7000));
    ck_assert(!value_of(command_line_duration, "7.001", 5000, 7000));
    ck_assert(value_of(command_line_size, "5", 5, 7));
    ck_assert(value_of(command_line_size, "7", 5, 7));
    ck_assert(!value_of(command_line_size, "4", 5, 7));
    ck_assert(!value_of(command_line_size, "8", 5, 7));
    ck_assert(value_of(command_line_size, "18446744073709551615", 0, ULONG_MAX));
    ck_assert_uint_eq(value, ULONG_MAX);
}
END_TEST

START_TEST(a_bad_number_is_named_with_what_is_allowed)
{
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "1k", "1.5", "0x1", "0", "11", "99999999999999999999"};

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char says[200];

        ck_assert(!value_of(command_line_number, bad[i], 1, 10));
        snprintf(says, sizeof(says),
                 "program: the thing (-t) is '%s'; it must be a number from 1 to 10. Try --help.\n",
                 bad[i]);
        ck_assert_str_eq(errors, says);
    }
}
END_TEST

START_TEST(help_that_cannot_be_written_is_a_failure)
{
    char *words[] = {(char[]){"program"}, (char[]){"--help"}, NULL};
    struct captured full = capture(STDOUT_FILENO, fopen("/dev/full", "w"));
    struct captured said = capture(STDERR_FILENO, tmpfile());
    char text[200];

    ck_assert_int_eq(command_line_parse(&line, taken, 2, words), EXIT_FAILURE);
    end_capture(&said);
    read_back(said.file, text, sizeof(text));
    ck_assert_str_eq(text, "program: cannot write to standard output: No space left on device\n");
    clearerr(stdout);
    end_capture(&full);
    fclose(full.file);
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof(table[0]))

int
main(void)
{
    Suite *suite = suite_create("command-line");
    TCase *taking = tcase_create("taking");
    TCase *values = tcase_create("values");

    tcase_add_test(taking, without_arguments_nothing_is_taken);
    tcase_add_test(taking, options_are_taken_in_their_order_by_either_name);
    tcase_add_test(taking, a_repeated_option_is_taken_each_time);
    tcase_add_test(taking, the_exit_status_of_an_option_ends_it);
    tcase_add_test(taking, a_command_line_begins_anew);
    tcase_add_test(taking, as_many_rows_as_are_allowed_are_all_taken);
    tcase_add_loop_test(taking, what_is_no_option_is_named, 0, COUNT(refused));
    tcase_add_loop_test(taking, help_has_three_examples_and_then_the_options_in_groups, 0, 2);
    tcase_add_test(taking, a_letter_asks_for_the_common_options_only);
    tcase_add_test(taking, a_man_page_lists_the_options_in_mdoc);
    tcase_add_test(taking, the_man_option_prints_the_lists);
    tcase_add_test(taking, bash_completes_options_and_files);
    tcase_add_test(taking, zsh_shows_what_options_mean);
    tcase_add_test(taking, fish_has_a_line_an_option);
    tcase_add_test(taking, the_completion_option_knows_three_shells);
    tcase_add_test(taking, words_are_taken_in_their_order_among_the_options);
    tcase_add_test(taking, what_stands_behind_two_dashes_is_left_to_the_program);
    tcase_add_test(taking, help_ends_with_a_closing_line_if_there_is_one);
    tcase_add_test(taking, version_is_the_librarys);
    tcase_add_test(taking, help_that_cannot_be_written_is_a_failure);
    suite_add_tcase(suite, taking);
    tcase_add_loop_test(values, a_duration_is_seconds_or_has_a_unit, 0, COUNT(good_durations));
    tcase_add_loop_test(values, a_bad_duration_is_named_with_what_is_allowed, 0,
                        COUNT(bad_durations));
    tcase_add_loop_test(values, a_size_is_bytes_or_has_a_unit, 0, COUNT(good_sizes));
    tcase_add_loop_test(values, a_bad_size_is_named_with_what_is_allowed, 0, COUNT(bad_sizes));
    tcase_add_loop_test(values, a_time_is_seconds_or_has_a_unit_down_to_the_nanosecond, 0,
                        COUNT(good_times));
    tcase_add_test(values, a_bad_time_is_named_with_what_is_allowed);
    tcase_add_loop_test(values, a_count_may_be_in_thousands, 0, COUNT(good_counts));
    tcase_add_test(values, a_part_of_one_is_no_count);
    tcase_add_test(values, a_bad_count_is_named_with_what_is_allowed);
    tcase_add_loop_test(values, a_range_of_sizes_is_said_in_the_largest_unit, 0, COUNT(ranges));
    tcase_add_test(values, both_ends_of_a_range_are_in_it);
    tcase_add_test(values, a_bad_number_is_named_with_what_is_allowed);
    suite_add_tcase(suite, values);
    return sxe_test_main(suite);
}
