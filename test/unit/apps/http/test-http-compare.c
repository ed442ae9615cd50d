/* SPDX-License-Identifier: MIT
 *
 * Comparisons of two results, which the test writes as JSON. By default a result has six trials, a
 * rate of 1,000 +- 1 %, service p50 2 ms and p99 9 ms +- 1 %.
 */
#include "../../../../apps/http/stats/compare.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../../apps/http/report/output.h"
#include "has.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

struct recipe {
    double rate, p50, p99; /* factors of the default figures; p99 0: there is no p99 */
    unsigned trials;
    const char *more; /* further members of the JSON */
};

static const struct recipe usual = {1, 1, 1, 6, ""};

static char paths[2][64];
static char *said, *complained;
static size_t said_length, complained_length;
static FILE *out, *err;

static void
prepare(void)
{
    const char *directory = getenv("TMPDIR");

    for (unsigned i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%.40s/compare-XXXXXX",
                 directory != NULL ? directory : "/tmp");
        ck_assert_int_eq(close(mkstemp(paths[i])), 0);
    }
    out = open_memstream(&said, &said_length);
    err = open_memstream(&complained, &complained_length);
}

static void
clean_up(void)
{
    unlink(paths[0]);
    unlink(paths[1]);
    fclose(out);
    fclose(err);
    free(said);
    free(complained);
}

static void put(unsigned side, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
put(unsigned side, const char *format, ...)
{
    FILE *file = fopen(paths[side], "w");
    va_list arguments;

    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
}

/* A factor near 1, different from trial to trial by 1 % at most. */
static double
around(unsigned trial)
{
    return 0.99 + 0.02 * (double)(trial * 7 % 11) / 10;
}

static void
put_times(FILE *file, const char *name, const struct recipe *recipe, double factor)
{
    fprintf(file, ", \"%s\": {\"p50\": %.6f, \"p99\": ", name, recipe->p50 * 2000 * factor);
    if (recipe->p99 > 0)
        fprintf(file, "%.6f}", recipe->p99 * 9000 * factor);
    else
        fprintf(file, "null}");
}

static void
put_result(unsigned side, const struct recipe *recipe)
{
    FILE *file = fopen(paths[side], "w");

    fprintf(file, "{\"sxe_http\": 1, %s \"trials\": [", recipe->more);
    for (unsigned i = 0; i < recipe->trials; i++) {
        fprintf(file, "%s{\"rate\": %.6f", i > 0 ? ", " : "", recipe->rate * 1000 * around(i));
        put_times(file, "service", recipe, around(i + 3));
        put_times(file, "response", recipe, around(i + 3));
        fprintf(file, "}");
    }
    fprintf(file, "]}");
    fclose(file);
}

static int
compare(void)
{
    int status = load_compare_files(paths[0], paths[1], 0.02, out, err);

    fflush(out);
    fflush(err);
    return status;
}

static void
is_said(const char *text)
{
    check_has(said, text);
}

static void
is_not_said(const char *text)
{
    check_has_not(said, text);
}

/* The line that begins with `line` must contain the text. */
static void
line_says(const char *line, const char *text)
{
    const char *begin = strstr(said, line);
    const char *found;

    ck_assert_msg(begin != NULL, "no line '%s' in:\n%s", line, said);
    found = strstr(begin, text);
    ck_assert_msg(found != NULL && found < begin + strcspn(begin, "\n"), "%s: no '%s' in:\n%s",
                  line, text, said);
}

/* ---- Figures ---- */

static const struct {
    const char *title;
    struct recipe a, b;
    int status;
    const char *rate, *p50, *p99;
} comparisons[] = {
    {"the same",
     {1, 1, 1, 6, ""},
     {1, 1, 1, 6, ""},
     LOAD_EXIT_OK,
     "no difference shown",
     "no difference shown",
     "no difference shown"},
    {"a higher rate",
     {1, 1, 1, 6, ""},
     {1.1, 1, 1, 6, ""},
     LOAD_EXIT_OK,
     "faster",
     "no difference shown",
     "no difference shown"},
    {"a lower rate",
     {1, 1, 1, 6, ""},
     {0.9, 1, 1, 6, ""},
     LOAD_EXIT_THRESHOLD,
     "slower",
     "no difference shown",
     "no difference shown"},
    {"longer times",
     {1, 1, 1, 6, ""},
     {1, 1.2, 1.1, 6, ""},
     LOAD_EXIT_THRESHOLD,
     "no difference shown",
     "slower",
     "slower"},
    {"shorter times",
     {1, 1, 1, 6, ""},
     {1, 0.8, 0.9, 6, ""},
     LOAD_EXIT_OK,
     "no difference shown",
     "faster",
     "faster"},
    {"better and worse",
     {1, 1, 1, 6, ""},
     {1.2, 0.8, 1.1, 9, ""},
     LOAD_EXIT_THRESHOLD,
     "faster",
     "faster",
     "slower"},
    {"too little to see",
     {1, 1, 1, 6, ""},
     {0.999, 1.001, 1.001, 6, ""},
     LOAD_EXIT_OK,
     "no difference shown",
     "no difference shown",
     "no difference shown"},
    {"too few trials",
     {1, 1, 1, 5, ""},
     {0.5, 2, 2, 6, ""},
     LOAD_EXIT_OK,
     "cannot tell",
     "cannot tell",
     "cannot tell"},
    {"one trial each",
     {1, 1, 1, 1, ""},
     {0.5, 2, 2, 1, ""},
     LOAD_EXIT_OK,
     "cannot tell",
     "cannot tell",
     "cannot tell"},
    {"no p99",
     {1, 1, 0, 6, ""},
     {1, 2, 0, 6, ""},
     LOAD_EXIT_THRESHOLD,
     "no difference shown",
     "slower",
     "n/a       n/a       cannot tell"},
    {"a p99 of one",
     {1, 1, 0, 6, ""},
     {1, 1, 1, 6, ""},
     LOAD_EXIT_OK,
     "no difference shown",
     "no difference shown",
     "cannot tell"},
    {"nothing was answered",
     {1, 1, 1, 6, ""},
     {0, 0, 0, 6, ""},
     LOAD_EXIT_OK,
     "cannot tell",
     "cannot tell",
     "cannot tell"},
};

START_TEST(a_difference_is_said_only_if_it_is_shown)
{
    put_result(0, &comparisons[_i].a);
    put_result(1, &comparisons[_i].b);
    ck_assert_msg(compare() == comparisons[_i].status, "%s:\n%s", comparisons[_i].title, said);
    line_says("rate", comparisons[_i].rate);
    line_says("service p50", comparisons[_i].p50);
    line_says("service p99", comparisons[_i].p99);
    is_not_said("response p50");
    ck_assert_str_eq(complained, "");
}
END_TEST

static struct recipe
with_small_noise(double rate)
{
    return (struct recipe){rate, 1, 1, 10, ""};
}

START_TEST(a_difference_must_be_beyond_the_minimum)
{
    static const struct {
        double rate, min_effect;
        const char *word;
    } effects[] = {{0.96, 0.02, "  slower\n"},
                   {0.96, 0.05, "  no difference shown beyond 5 %\n"},
                   {0.96, 0, "  slower\n"},
                   {1.06, 0.02, "  faster\n"},
                   {1.06, 0.08, "  no difference shown beyond 8 %\n"}};
    struct recipe a = with_small_noise(1), b = with_small_noise(effects[_i].rate);
    bool is_slower = strstr(effects[_i].word, "slower") != NULL;

    put_result(0, &a);
    put_result(1, &b);
    ck_assert_int_eq(load_compare_files(paths[0], paths[1], effects[_i].min_effect, out, err),
                     is_slower ? LOAD_EXIT_THRESHOLD : LOAD_EXIT_OK);
    fflush(out);
    is_said("b/a    interval: 95 % for all 3 together\n");
    is_said(effects[_i].word);
}
END_TEST

START_TEST(both_medians_and_the_interval_are_shown)
{
    put_result(0, &usual);
    put_result(1, &(struct recipe){2, 1, 1, 6, ""});
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    is_said("6 trials; b: ");
    is_said("rate a second 999       2.00k     2.0");
    is_said("service p50   2.00 ms   2.00 ms   1.00");
    line_says("rate a second", " to 2.0");
}
END_TEST

START_TEST(response_times_of_their_own_are_compared_too)
{
    put_result(0, &usual);
    put(1, "{\"sxe_http\": 1, \"trials\": [{\"rate\": 5, \"service\": {\"p50\": 3, \"p99\": null},"
           " \"response\": {\"p50\": 4, \"p99\": 5}}]}");
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    line_says("response p50", "4.00 us");
    line_says("response p99", "5.00 us");
}
END_TEST

START_TEST(times_as_long_as_a_number_can_be_do_no_harm)
{
    put(0, "{\"sxe_http\": 1, \"trials\": [{\"rate\": 1e308, \"service\": {\"p50\": 1e308},"
           " \"response\": {}}]}");
    put_result(1, &usual);
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    line_says("rate", "cannot tell");
}
END_TEST

/* ---- Noise ---- */

#define NOISE "\"noise\": {\"low\": 0.95, \"middle\": 1, \"high\": 1.02, \"is_known\": true}, "
#define LOUD  "\"noise\": {\"low\": 0.9, \"middle\": 1, \"high\": 1.25, \"is_known\": true}, "

static const struct {
    const char *a, *b;
    double rate;
    const char *word;
} noises[] = {
    {"", "", 0.96, "slower"},
    {NOISE, "", 0.96, "no difference shown: inside the noise"},
    {"", NOISE, 1.04, "no difference shown: inside the noise"},
    {NOISE, "", 0.9, "slower"},
    {NOISE, LOUD, 0.9, "inside the noise"},
    {NOISE, LOUD, 0.7, "slower"},
    {"\"noise\": null, ", "", 0.96, "slower"},
    {"\"noise\": {\"low\": 0.5, \"high\": 2, \"is_known\": false}, ", "", 0.96, "slower"},
    {"\"noise\": {\"low\": 0, \"high\": 2, \"is_known\": true}, ", "", 0.96, "slower"},
    {"\"noise\": {\"low\": \"0.5\", \"high\": 2, \"is_known\": true}, ", "", 0.96, "slower"},
    {"\"noise\": [1, 2], ", "", 0.96, "slower"},
};

START_TEST(a_difference_inside_the_noise_is_none)
{
    struct recipe a = usual, b = usual;

    a.more = noises[_i].a;
    b.more = noises[_i].b;
    b.rate = noises[_i].rate;
    put_result(0, &a);
    put_result(1, &b);
    ck_assert_int_eq(compare(),
                     strcmp(noises[_i].word, "slower") == 0 ? LOAD_EXIT_THRESHOLD : LOAD_EXIT_OK);
    line_says("rate", noises[_i].word);
}
END_TEST

START_TEST(the_noise_stands_behind_what_it_is_of)
{
    put_result(0, &(struct recipe){1, 1, 1, 6, LOUD});
    put_result(1, &usual);
    compare();
    line_says("rate", "  no difference shown (noise of --aa: 25.0 %)");
    line_says("service p50", "  no difference shown (noise of --aa: 25.0 %)");
}
END_TEST

/* A p99 varies more than a rate, so its interval is wider. */
START_TEST(each_figure_has_a_noise_of_its_own)
{
    put_result(0, &(struct recipe){1, 1, 1, 6,
                                   "\"noise\": {\"low\": 0.99, \"high\": 1.01, \"is_known\": true, "
                                   "\"figures\": {\"service.p99\": {\"low\": 0.8, \"high\": 1.3, "
                                   "\"is_known\": true}}}, "});
    put_result(1, &(struct recipe){0.9, 1, 1.2, 6, ""});
    ck_assert_int_eq(compare(), LOAD_EXIT_THRESHOLD);
    line_says("rate", "  slower");
    line_says("service p99", "  no difference shown: inside the noise (noise of --aa: 30.0 %)");
}
END_TEST

static const struct {
    const char *a, *b;
    bool is_given;
} models[] = {
    {"\"plan\": {\"model\": \"closed\"}, ", "\"plan\": {\"model\": \"closed\"}, ", false},
    {"\"plan\": {\"model\": \"open\"}, ", "", true},
    {"", "\"plan\": {\"model\": \"partly_open\"}, ", true},
    {"\"plan\": {\"model\": 5}, ", "\"plan\": [], ", false},
};

START_TEST(a_rate_that_is_given_is_no_result)
{
    put_result(0, &(struct recipe){1, 1, 1, 6, models[_i].a});
    put_result(1, &(struct recipe){0.5, 1, 1, 6, models[_i].b});
    ck_assert_int_eq(compare(), models[_i].is_given ? LOAD_EXIT_OK : LOAD_EXIT_THRESHOLD);
    line_says("rate", models[_i].is_given ? "given (-R, --replay), so no result" : "slower");
    line_says("service p50", "no difference shown");
}
END_TEST

/* ---- Differences and doubts ---- */

static const struct {
    const char *a, *b; /* further members of the JSON */
    const char *said;  /* NULL: no difference is reported */
} differences[] = {
    {"\"fingerprint\": {\"kernel\": \"6.1\"}, ", "\"fingerprint\": {\"kernel\": \"6.2\"}, ",
     "differs   kernel: 6.1 | 6.2\n"},
    {"\"fingerprint\": {\"kernel\": \"6.1\"}, ", "\"fingerprint\": {\"kernel\": \"6.1\"}, ", NULL},
    {"\"fingerprint\": {\"kernel\": \"6.1\"}, ", "", "differs   kernel: 6.1 | unknown\n"},
    {"", "\"fingerprint\": {\"kernel\": \"6.1\"}, ", "differs   kernel: unknown | 6.1\n"},
    {"\"fingerprint\": {\"kernel\": 6}, ", "\"fingerprint\": {\"kernel\": \"6.1\"}, ",
     "differs   kernel: unknown | 6.1\n"},
    {"\"fingerprint\": {\"steal\": \"0 %\"}, ", "\"fingerprint\": {\"steal\": \"1 %\"}, ", NULL},
    {"\"fingerprint\": {\"command\": \"a\"}, ", "\"fingerprint\": {\"command\": \"b\"}, ", NULL},
    {"", "\"fingerprint\": {\"steal\": \"1 %\"}, ", NULL},
    {"\"fingerprint\": [], ", "\"fingerprint\": \"x\", ", NULL},
    {"\"fingerprint\": {\"k\\u001b[2J\": \"\\u001b\\n\"}, ", "", "differs   k?[2J: ?? | unknown\n"},
    {"\"command\": [\"http\", \"-c\", \"10\"], ", "\"command\": [\"./http\", \"-c\", \"10\"], ",
     NULL},
    {"\"command\": [\"http\", \"-c\", \"10\"], ", "\"command\": [\"http\", \"-c\", \"20\"], ",
     "differs   command: -c 10 | -c 20\n"},
    {"\"command\": [\"http\", \"--json\", \"a\", \"-q\", \"-c\", \"10\"], ",
     "\"command\": [\"http\", \"--json=b\", \"-c\", \"10\", \"--quiet\", \"--baseline\", \"a\"], ",
     NULL},
    {"\"command\": [\"http\", \"--fanout\", \"9\", \"--hdr\", \"a\", \"x\"], ",
     "\"command\": [\"http\", \"x\"], ", NULL},
    {"\"command\": [\"http\", \"--js\", \"a\", \"--tri=9\", \"x\"], ",
     "\"command\": [\"http\", \"x\"], ", NULL},
    {"\"command\": [\"http\", \"--\", \"-\", \"x\"], ", "\"command\": [\"http\", \"x\"], ",
     "differs   command: -- - x | x\n"},
    {"\"command\": [\"http\", \"-c\", \"10\"], ",
     "\"command\": [\"http\", \"-c\", \"10\", \"--probe\", \"9\"], ",
     "differs   command: -c 10 | -c 10 --probe 9\n"},
    {"\"command\": [\"http\", 5, null, \"x\"], ", "\"command\": [\"http\", \"x\"], ", NULL},
    {"\"command\": [\"http\", \"a b\"], ", "\"command\": [\"http\", \"a\", \"b\"], ",
     "differs   command: a b | a b\n"},
    {"\"command\": [\"http\", \"\\u001b[2J\"], ", "", "differs   command: ?[2J |\n"},
    {"\"command\": [\"http\", \"--json\"], ", "\"command\": \"http\", ", NULL},
};

START_TEST(what_differs_is_said_first)
{
    put_result(0, &(struct recipe){1, 1, 1, 6, differences[_i].a});
    put_result(1, &(struct recipe){1, 1, 1, 6, differences[_i].b});
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    if (differences[_i].said == NULL) {
        is_not_said("differs");
        return;
    }
    is_said(differences[_i].said);
    ck_assert(strstr(said, "differs") < strstr(said, "rate"));
}
END_TEST

START_TEST(a_command_of_any_length_is_compared_to_its_end)
{
    char command[2][800];

    for (unsigned i = 0; i < 2; i++) {
        FILE *text = fmemopen(command[i], sizeof(command[i]), "w");

        fprintf(text, "\"command\": [\"http\"");
        for (unsigned word = 0; word < 50; word++)
            fprintf(text, ", \"abcdefghij\"");
        fprintf(text, ", \"%u\"], ", i);
        fclose(text);
        put_result(i, &(struct recipe){1, 1, 1, 6, command[i]});
    }
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    line_says("differs   command: abcdefghij abcdefghij ", " abcdefghij 0 | abcdefghij ");
    line_says("differs   command:", " abcdefghij 1");
}
END_TEST

START_TEST(a_result_in_doubt_is_said_to_be)
{
    put_result(0,
               &(struct recipe){1, 1, 1, 6,
                                "\"status\": 1, \"is_interrupted\": true,"
                                "\"verdict\": {\"reasons\": [\"client cpu\\u0007 99 %\", 7]}, "});
    put_result(1, &usual);
    ck_assert_int_eq(compare(), LOAD_EXIT_SUSPECT);
    is_said(": client cpu? 99 %");
    is_said(": no reason is given\n");
    is_said(" had errors\n");
    is_said(" was interrupted\n");
    ck_assert(strstr(said, "suspect") < strstr(said, "rate"));
}
END_TEST

/* ---- Failed runs ---- */

#define SUSPECT "\"verdict\": {\"reasons\": [\"late\"]}, "

/* A result with trials of 1,000 requests, of which `failed` failed; 4 sockets, and default
 * times. */
static void
put_failing(unsigned side, const char *more, unsigned trials, unsigned failed, unsigned unsent,
            unsigned unopened)
{
    FILE *file = fopen(paths[side], "w");

    fprintf(file, "{\"sxe_http\": 1, %s \"trials\": [", more);
    for (unsigned i = 0; i < trials; i++) {
        fprintf(file,
                "%s{\"rate\": %.6f, \"accounts\": {\"offered\": %u, \"sent\": 1000, "
                "\"skipped\": {\"no_socket\": %u}, \"in_flight\": %u, \"ends\": {\"ok\": %u, "
                "\"reset\": %u}}, \"sockets\": {\"wanted\": 4, \"opened\": %u, "
                "\"unopened\": {\"refused\": %u}}",
                i > 0 ? ", " : "", 1000 * around(i), 1000 + unsent, unsent, failed / 2,
                1000 - failed, failed - failed / 2, 4 - unopened, unopened);
        put_times(file, "service", &usual, around(i + 3));
        put_times(file, "response", &usual, around(i + 3));
        fprintf(file, "}");
    }
    fprintf(file, "]}");
    fclose(file);
}

static const struct {
    const char *more;
    unsigned trials, failed[2], unsent[2], unopened[2];
    int status;
    const char *line, *says;
} failures[] = {
    {"",
     6,
     {0, 0},
     {0, 0},
     {0, 0},
     LOAD_EXIT_OK,
     "failed",
     "        0 %       0 %       no difference shown"},
    {"",
     6,
     {0, 500},
     {0, 0},
     {0, 0},
     LOAD_EXIT_THRESHOLD,
     "failed",
     "        0 %       50 %      more: a regression"},
    {"",
     1,
     {0, 500},
     {0, 0},
     {0, 0},
     LOAD_EXIT_THRESHOLD,
     "failed",
     "        0 %       50 %      more: a regression"},
    {"", 6, {500, 0}, {0, 0}, {0, 0}, LOAD_EXIT_OK, "failed", "        50 %      0 %       fewer"},
    {"",
     1,
     {0, 1000},
     {0, 0},
     {0, 0},
     LOAD_EXIT_THRESHOLD,
     "failed",
     "100 %     no good reply in 1 of 1 trials of b: a regression"},
    {"",
     6,
     {1000, 1000},
     {0, 0},
     {0, 0},
     LOAD_EXIT_THRESHOLD,
     "failed",
     "        100 %     100 %     no good reply in 6 of 6 trials of b: a regression"},
    {SUSPECT, 6, {0, 1000}, {0, 0}, {0, 0}, LOAD_EXIT_THRESHOLD, "failed", "no good reply"},
    {SUSPECT,
     6,
     {1, 0},
     {0, 0},
     {0, 0},
     LOAD_EXIT_SUSPECT,
     "failed",
     "0.1 %     0 %       no difference shown"},
    {"",
     1,
     {0, 0},
     {0, 9000},
     {0, 0},
     LOAD_EXIT_THRESHOLD,
     "not sent",
     "      0 %       90 %      more: a regression"},
    {"", 1, {0, 0}, {9000, 9000}, {0, 0}, LOAD_EXIT_OK, "not sent", "no difference shown"},
    {"",
     6,
     {0, 0},
     {0, 0},
     {0, 4},
     LOAD_EXIT_THRESHOLD,
     "not opened",
     "    0 %       100 %     more: a regression"},
};

START_TEST(what_failed_is_judged_too)
{
    for (unsigned side = 0; side < 2; side++)
        put_failing(side, failures[_i].more, failures[_i].trials, failures[_i].failed[side],
                    failures[_i].unsent[side], failures[_i].unopened[side]);
    ck_assert_msg(compare() == failures[_i].status, "%s", said);
    line_says(failures[_i].line, failures[_i].says);
    ck_assert(strstr(said, "failed ") < strstr(said, "rate"));
    if (failures[_i].unsent[1] == 0)
        is_not_said("not sent");
    if (failures[_i].unopened[1] == 0)
        is_not_said("not opened");
}
END_TEST

START_TEST(of_what_a_file_does_not_say_nothing_is_known)
{
    put_result(0, &usual);
    put_failing(1, "", 6, 500, 0, 0);
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    line_says("failed", "        n/a       50 %      cannot tell");
}
END_TEST

/* ---- Files that are refused ---- */

#define TRIAL "{\"rate\": 1, \"service\": {}, \"response\": {}}"

static const struct {
    const char *text;
    const char *problem;
} refused[] = {
    {"", "'[' or '{' expected"},
    {"no JSON", "'[' or '{' expected"},
    {"\x1b[2J", "'[' or '{' expected"},
    {"[", "']' expected"},
    {"{\"sxe_http\": 1, \"trials\": [" TRIAL, "']' expected"},
    {"{\"sxe_http\": 1, \"sxe_http\": 1}", "duplicate object key"},
    {"{\"sxe_http\": 1e999}", "real number overflow"},
    {"{\"sxe_http\": \"\\ud800\"}", "\\uD800"},
    {"[]", "is no result of sxe-http"},
    {"[{\"sxe_http\": 1}]", "is no result of sxe-http"},
    {"{}", "is no result of sxe-http"},
    {"{\"sxe_http\": \"1\"}", "is no result of sxe-http"},
    {"{\"sxe_http\": 2}", "version 2 of the schema, which is 1 here"},
    {"{\"sxe_http\": 99999999999999999999}", "version 1e+20 of the schema"},
    {"{\"sxe_http\": 1}", "has no trials"},
    {"{\"sxe_http\": 1, \"trials\": {}}", "has no trials"},
    {"{\"sxe_http\": 1, \"trials\": []}", "has no trials"},
    {"{\"sxe_http\": 1, \"trials\": [1]}", "trial 1 has no rate"},
    {"{\"sxe_http\": 1, \"trials\": [null]}", "trial 1 has no rate"},
    {"{\"sxe_http\": 1, \"trials\": [{}]}", "trial 1 has no rate"},
    {"{\"sxe_http\": 1, \"trials\": [" TRIAL ", {\"rate\": \"5\"}]}", "trial 2 has no rate"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": null}]}", "trial 1 has no rate"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": -1}]}", "'rate' is not a number from 0 on"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": 1}]}", "trial 1 has no service p50"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": 1, \"service\": 5}]}",
     "'service' is not an object"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": 1, \"service\": {\"p50\": \"1\"}}]}",
     "no service p50"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": 1, \"service\": {\"p99\": -3}}]}",
     "'p99' is not a number from 0 on"},
    {"{\"sxe_http\": 1, \"trials\": [{\"rate\": 1, \"service\": {}, \"response\": []}]}",
     "'response' is not an object"},
};

START_TEST(a_file_that_is_no_result_is_refused_with_its_name)
{
    for (unsigned side = 0; side < 2; side++) {
        const char *answer = complained;

        put_result(1 - side, &usual);
        put(side, "%s", refused[_i].text);
        ck_assert_int_eq(compare(), LOAD_EXIT_USAGE);
        answer = complained + (side == 0 ? 0 : strcspn(complained, "\n"));
        ck_assert_msg(strstr(answer, refused[_i].problem) != NULL, "%s", answer);
        ck_assert_ptr_nonnull(strstr(answer, paths[side]));
        ck_assert_ptr_nonnull(strstr(answer, "give a file that sxe-http --json has written"));
        ck_assert_ptr_null(strchr(answer, '\x1b'));
        ck_assert_str_eq(said, "");
    }
}
END_TEST

START_TEST(a_baseline_is_looked_at_before_the_run)
{
    put_result(0, &usual);
    ck_assert_int_eq(load_compare_check(paths[0], err), LOAD_EXIT_OK);
    ck_assert_int_eq(load_compare_check("/nowhere/a.json", err), LOAD_EXIT_USAGE);
    fflush(err);
    ck_assert_str_eq(complained,
                     "sxe-http: /nowhere/a.json: No such "
                     "file or directory; give a file that sxe-http --json has written\n");
}
END_TEST

START_TEST(a_file_that_is_not_there_is_refused)
{
    ck_assert_int_eq(load_compare_files("/nowhere/a.json", paths[1], 0.02, out, err),
                     LOAD_EXIT_USAGE);
    fflush(err);
    ck_assert_str_eq(complained, "sxe-http: /nowhere/a.json: No such file or directory; give a "
                                 "file that sxe-http --json has written\n");
}
END_TEST

START_TEST(a_directory_is_refused_as_one)
{
    ck_assert_int_eq(load_compare_files("/tmp", paths[1], 0.02, out, err), LOAD_EXIT_USAGE);
    fflush(err);
    ck_assert_str_eq(complained, "sxe-http: /tmp: Is a directory; give a file that sxe-http --json "
                                 "has written\n");
}
END_TEST

START_TEST(one_trial_is_one)
{
    put_result(0, &(struct recipe){1, 1, 1, 1, ""});
    put_result(1, &usual);
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
    is_said(", 1 trial; b: ");
    is_said(", 6 trials\n");
}
END_TEST

START_TEST(more_trials_than_there_can_be_are_refused)
{
    put_result(0, &(struct recipe){1, 1, 1, LOAD_TRIALS_MAX + 1, ""});
    put_result(1, &usual);
    ck_assert_int_eq(compare(), LOAD_EXIT_USAGE);
    put_result(0, &(struct recipe){1, 1, 1, LOAD_TRIALS_MAX, ""});
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
}
END_TEST

/* A valid result, cut off after each of its bytes. */
START_TEST(a_file_that_was_cut_off_is_refused)
{
    char text[4096];
    FILE *file;
    size_t length;

    put_result(0, &usual);
    put_result(1, &usual);
    file = fopen(paths[0], "r");
    length = fread(text, 1, sizeof(text), file);
    fclose(file);
    for (size_t cut = 0; cut < length; cut++) {
        put(0, "%.*s", (int)cut, text);
        ck_assert_int_eq(compare(), LOAD_EXIT_USAGE);
    }
    put(0, "%.*s", (int)length, text);
    ck_assert_int_eq(compare(), LOAD_EXIT_OK);
}
END_TEST

/* ---- Baseline ---- */

static struct load_run run;
static struct load_result results[7];

/* A run of six trials of four seconds, with `rate` times the default rate; each reply took
 * service_ns. */
static void
make_run(double rate, uint64_t service_ns)
{
    static const struct load_plan plan = {.min_effect = 0.02};

    run = (struct load_run){.plan = &plan, .total = &results[6], .trials_number = 6};
    for (unsigned i = 0; i < 6; i++) {
        run.trials[i].result = &results[i];
        results[i].elapsed_ns = UINT64_C(4000000000);
        results[i].ends[LOAD_END_OK] = (uint64_t)(rate * 4000 * around(i));
        results[i].offered = results[i].sent = results[i].ends[LOAD_END_OK];
        for (unsigned j = 0; j < results[i].sent; j++) {
            load_histogram_record(&results[i].first_byte, service_ns + 1000 * i);
            load_histogram_record(&results[i].service, service_ns + 1000 * i);
            load_histogram_record(&results[i].response, service_ns + 1000 * i);
        }
        load_result_add(run.total, &results[i]);
    }
    run.total->elapsed_ns = 6 * results[0].elapsed_ns;
}

static struct load_comparison comparison;

START_TEST(a_run_is_compared_with_its_baseline)
{
    put_result(0, &usual);
    make_run(_i ? 0.5 : 2, 1800000);
    run.comparison = &comparison;
    ck_assert_int_eq(load_compare_baseline(paths[0], &run, out, err),
                     _i ? LOAD_EXIT_THRESHOLD : LOAD_EXIT_OK);
    fflush(out);
    is_said("b: this run, 6 trials\n");
    line_says("rate", _i ? "slower" : "faster");
    line_says("service p50", "faster");
    line_says("service p99", "faster");
    is_not_said("response");
    ck_assert(comparison.is_made);
    ck_assert_str_eq(comparison.with, paths[0]);
    ck_assert_int_eq(comparison.contrast.words[LOAD_FIGURE_RATE],
                     _i ? LOAD_CONTRAST_SLOWER : LOAD_CONTRAST_FASTER);
}
END_TEST

START_TEST(a_run_is_the_same_as_what_is_written_of_it)
{
    FILE *file = fopen(paths[0], "w");

    make_run(1, 3000000);
    ck_assert_int_eq(load_output_json(file, &run), 0);
    fclose(file);
    ck_assert_int_eq(load_compare_baseline(paths[0], &run, out, err), LOAD_EXIT_OK);
    fflush(out);
    line_says("rate", "1.000  ");
    line_says("service p50", "1.000  ");
    is_not_said("differs");
}
END_TEST

/* The probe has longer times, which are not compared. */
START_TEST(a_probe_on_one_side_changes_no_figure)
{
    static struct load_result probe;
    FILE *file = fopen(paths[0], "w");

    make_run(1, 3000000);
    ck_assert_int_eq(load_output_json(file, &run), 0);
    fclose(file);
    load_histogram_record(&probe.response, 9000000);
    run.probe = &probe;
    for (unsigned i = 0; i < 6; i++)
        run.trials[i].probe = &probe;
    ck_assert_int_eq(load_compare_baseline(paths[0], &run, out, err), LOAD_EXIT_OK);
    fflush(out);
    fflush(err);
    line_says("rate", "1.000  ");
    line_says("service p99", "1.000  ");
    ck_assert_str_eq(complained, "");
}
END_TEST

/* With --baseline-cmd the run itself has the trials of both sides. */
START_TEST(a_run_is_compared_with_the_server_in_turn)
{
    static const struct load_plan with_baseline = {.baseline_cmd = "./old", .min_effect = 0.02};
    static struct load_result others[6];

    make_run(0.5, 1800000);
    run.plan = &with_baseline;
    run.baseline_number = 6;
    for (unsigned i = 0; i < 6; i++) {
        others[i] = results[i];
        others[i].ends[LOAD_END_OK] *= 2;
        run.baseline[i].result = &others[i];
    }
    ck_assert_int_eq(load_compare_baseline(NULL, &run, out, err), LOAD_EXIT_THRESHOLD);
    fflush(out);
    is_said("compare   a: --baseline-cmd, 6 trials; b: this run, 6 trials\n");
    line_says("rate", "slower");
    line_says("service p50", "no difference shown");
    is_not_said("differs");
    run.baseline_number = 0;
    ck_assert_int_eq(load_compare_baseline(NULL, &run, out, err), LOAD_EXIT_USAGE);
}
END_TEST

START_TEST(a_baseline_that_is_no_result_is_refused)
{
    put(0, "{}");
    make_run(1, 3000000);
    ck_assert_int_eq(load_compare_baseline(paths[0], &run, out, err), LOAD_EXIT_USAGE);
    run.trials_number = 0;
    put_result(0, &usual);
    ck_assert_int_eq(load_compare_baseline(paths[0], &run, out, err), LOAD_EXIT_USAGE);
    fflush(err);
    ck_assert_ptr_nonnull(strstr(complained, "this run: has no trials"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-compare");
    TCase *tcase = tcase_create("compare");

    tcase_add_checked_fixture(tcase, prepare, clean_up);
    tcase_add_loop_test(tcase, a_difference_is_said_only_if_it_is_shown, 0, COUNT(comparisons));
    tcase_add_loop_test(tcase, a_difference_must_be_beyond_the_minimum, 0, 5);
    tcase_add_test(tcase, both_medians_and_the_interval_are_shown);
    tcase_add_test(tcase, response_times_of_their_own_are_compared_too);
    tcase_add_test(tcase, times_as_long_as_a_number_can_be_do_no_harm);
    tcase_add_loop_test(tcase, a_difference_inside_the_noise_is_none, 0, COUNT(noises));
    tcase_add_test(tcase, the_noise_stands_behind_what_it_is_of);
    tcase_add_test(tcase, each_figure_has_a_noise_of_its_own);
    tcase_add_loop_test(tcase, a_rate_that_is_given_is_no_result, 0, COUNT(models));
    tcase_add_loop_test(tcase, what_differs_is_said_first, 0, COUNT(differences));
    tcase_add_test(tcase, a_command_of_any_length_is_compared_to_its_end);
    tcase_add_test(tcase, a_result_in_doubt_is_said_to_be);
    tcase_add_loop_test(tcase, what_failed_is_judged_too, 0, COUNT(failures));
    tcase_add_test(tcase, of_what_a_file_does_not_say_nothing_is_known);
    tcase_add_loop_test(tcase, a_file_that_is_no_result_is_refused_with_its_name, 0,
                        COUNT(refused));
    tcase_add_test(tcase, a_baseline_is_looked_at_before_the_run);
    tcase_add_test(tcase, a_file_that_is_not_there_is_refused);
    tcase_add_test(tcase, a_directory_is_refused_as_one);
    tcase_add_test(tcase, one_trial_is_one);
    tcase_add_test(tcase, more_trials_than_there_can_be_are_refused);
    tcase_add_test(tcase, a_file_that_was_cut_off_is_refused);
    tcase_add_loop_test(tcase, a_run_is_compared_with_its_baseline, 0, 2);
    tcase_add_test(tcase, a_run_is_the_same_as_what_is_written_of_it);
    tcase_add_test(tcase, a_probe_on_one_side_changes_no_figure);
    tcase_add_test(tcase, a_run_is_compared_with_the_server_in_turn);
    tcase_add_test(tcase, a_baseline_that_is_no_result_is_refused);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
