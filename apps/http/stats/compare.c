/* SPDX-License-Identifier: MIT
 *
 * Comparing two results, and printing what differs.
 */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contrast.h"
#include "output.h"
#include "result-file.h"
#include "sxe-util.h"
#include "text.h"

/* Facts of the fingerprints whose differences are not printed: steal time always differs, and
 * commands are compared separately. */
static const char *const passing_facts[] = {"steal", "command"};

/* Options that change the report of a run, but not the run. All but the last two have a value. */
static const char *const saying_options[] = {
    "--json",   "--csv",      "--candles",  "--hgrm",    "--hdr",        "--html",  "--threshold",
    "--trials", "--until-ci", "--baseline", "--fanout",  "--min-effect", "--shard", "--start-at",
    "--junit",  "--markdown", "--jsonl",    "--metrics", "--annotate",   "--quiet",
};

struct side {
    const char *name;
    json_t *root; /* the file's JSON; owned */
    struct load_contrast_side figures;
};

/* ---- Reading ---- */

static bool
is_word_listed(const json_t *words, const char *word)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *text = json_string_value(json_array_get(words, i));

        if (text != NULL && strcmp(text, word) == 0)
            return true;
    }
    return false;
}

/* Read a figure of a trial. False: it is no number, or it is below 0. A figure that is a time may
 * be missing or null. */
static bool
take_compared_figure(struct side *side, const json_t *trial, enum load_figure figure)
{
    const char *group = load_figure_names[figure].group;
    const json_t *owner = group != NULL ? json_object_get(trial, group) : trial;
    const json_t *value = json_object_get(owner, load_figure_names[figure].name);

    if (!json_is_object(owner))
        return false;
    if (group != NULL && (value == NULL || json_is_null(value)))
        return true;
    if (!json_is_number(value) || json_number_value(value) < 0)
        return false;
    if (is_word_listed(json_object_get(owner, "at_least"), load_figure_names[figure].name))
        side->figures.is_bound[figure] = true;
    side->figures.values[figure][side->figures.numbers[figure]++] = json_number_value(value);
    return true;
}

/* Get a member that is a count; 0 if it is missing or negative. */
static double
count_of(const json_t *owner, const char *name)
{
    return fmax(json_number_value(json_object_get(owner, name)), 0);
}

static double
sum_of_members(const json_t *owner, const char *name)
{
    json_t *counts = json_object_get(owner, name);
    const char *each;
    json_t *count;
    double sum = 0;

    json_object_foreach(counts, each, count) sum += count_of(counts, each);
    return sum;
}

static void
add_count(struct side *side, enum load_contrast_count count, double part, double whole)
{
    side->figures.counts[count].part += part;
    side->figures.counts[count].whole += whole;
}

static void
take_counts(struct side *side, const json_t *trial)
{
    const json_t *accounts = json_object_get(trial, "accounts");
    const json_t *sockets = json_object_get(trial, "sockets");
    double ok = count_of(json_object_get(accounts, "ends"), "ok");
    double begun = sum_of_members(accounts, "ends") + count_of(accounts, "in_flight");

    add_count(side, LOAD_CONTRAST_FAILED, begun - ok, begun);
    add_count(side, LOAD_CONTRAST_UNSENT, sum_of_members(accounts, "skipped"),
              count_of(accounts, "offered"));
    add_count(side, LOAD_CONTRAST_UNOPENED, sum_of_members(sockets, "unopened"),
              count_of(sockets, "wanted"));
    if (json_is_object(accounts) && ok <= 0)
        side->figures.dead++;
}

/* Read the trials of a side. False: `problem` says why. The caller has set `problem` to a sentence
 * about too few or too many trials. */
static bool
take_trials(struct side *side, const json_t *owner, char *problem, size_t size)
{
    const json_t *trials = json_object_get(owner, "trials");

    if (json_array_size(trials) == 0 || json_array_size(trials) > LOAD_TRIALS_MAX)
        return false;
    side->figures.trials = (unsigned)json_array_size(trials);
    for (unsigned i = 0; i < side->figures.trials; i++) {
        take_counts(side, json_array_get(trials, i));
        for (unsigned figure = 0; figure < LOAD_FIGURES; figure++)
            if (!take_compared_figure(side, json_array_get(trials, i), (enum load_figure)figure)) {
                snprintf(problem, size, "trial %u has no %s that is a number", i + 1,
                         load_figure_names[figure].text);
                return false;
            }
    }
    return true;
}

static double
noise_of(const json_t *noise)
{
    double low = json_number_value(json_object_get(noise, "low"));
    double high = json_number_value(json_object_get(noise, "high"));

    if (!json_is_true(json_object_get(noise, "is_known")) || !(low > 0) || !(high > 0))
        return 0;
    return fmax(fabs(log(low)), fabs(log(high)));
}

/* Read the noise of each figure. Older files have the noise of the rate only; then it is used for
 * all figures. */
static void
take_noise(struct side *side)
{
    const json_t *noise = json_object_get(side->root, "noise");
    const json_t *figures = json_object_get(noise, "figures");

    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        side->figures.noise[i] = noise_of(
            figures != NULL ? json_object_get(figures, load_figure_names[i].whole) : noise);
}

static void
take_model(struct side *side)
{
    const json_t *model = json_object_get(json_object_get(side->root, "plan"), "model");

    side->figures.is_rate_given =
        json_is_string(model) && strcmp(json_string_value(model), "closed") != 0;
}

/* Read the side's trials from `owner`, which is the root of a file, or the member "baseline" of the
 * root. */
static int
take_side(struct side *side, const json_t *owner, FILE *err)
{
    char problem[80] = "has no trials, or too many";

    take_noise(side);
    take_model(side);
    if (take_trials(side, owner, problem, sizeof(problem)))
        return 0;
    load_result_file_refuse(side->name, problem, err);
    return -1;
}

static int
read_side(struct side *side, const char *path, FILE *err)
{
    *side = (struct side){.name = path, .root = load_result_file_load(path, err)};
    return side->root != NULL ? take_side(side, side->root, err) : -1;
}

/* Write the run as JSON, and read this again, so that a result is read in only one way. */
static int
take_run(struct side *side, const struct load_run *run, FILE *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    *side = (struct side){.name = "this run"};
    if (stream != NULL) {
        load_output_json(stream, run);
        fclose(stream);
        side->root = json_loadb(text, length, LOAD_RESULT_FILE_FLAGS, NULL);
    }
    free(text);
    return take_side(side, side->root, err);
}

/* ---- Differences and doubts ---- */

static bool
is_passing(const char *fact)
{
    for (unsigned i = 0; i < SXE_COUNT(passing_facts); i++)
        if (strcmp(fact, passing_facts[i]) == 0)
            return true;
    return false;
}

static const char *
fact_of(const struct side *side, const char *name)
{
    const json_t *facts = json_object_get(side->root, "fingerprint");
    const char *value = json_string_value(json_object_get(facts, name));

    return value != NULL ? value : "unknown";
}

static void
warn_difference(FILE *out, const char *name, const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return;
    fprintf(out, "differs   ");
    load_result_file_print(out, name);
    fprintf(out, ": ");
    load_result_file_print(out, a);
    fprintf(out, " | ");
    load_result_file_print(out, b);
    fprintf(out, "\n");
}

static void
warn_facts(FILE *out, const struct side *a, const struct side *b)
{
    json_t *facts_a = json_object_get(a->root, "fingerprint");
    json_t *facts_b = json_object_get(b->root, "fingerprint");
    const char *name;
    json_t *fact;

    json_object_foreach(facts_a, name, fact) if (!is_passing(name))
        warn_difference(out, name, fact_of(a, name), fact_of(b, name));
    json_object_foreach(facts_b, name,
                        fact) if (!is_passing(name) && json_object_get(facts_a, name) == NULL)
        warn_difference(out, name, fact_of(a, name), fact_of(b, name));
}

/* How many words of the command line an option of the report takes, with its value; 0: word is no
 * such option. */
static unsigned
saying_words(const char *word)
{
    size_t length = strcspn(word, "=");

    if (strcmp(word, "-q") == 0)
        return 1;
    for (unsigned i = 0; i < SXE_COUNT(saying_options); i++)
        if (length > 2 && strncmp(word, saying_options[i], length) == 0)
            return word[length] == '=' || i >= SXE_COUNT(saying_options) - 2 ? 1 : 2;
    return 0;
}

/* Copy the words of a command without the name of the program and without options of the report.
 * The caller frees the copy. */
static json_t *
plain_command(const struct side *side)
{
    const json_t *words = json_object_get(side->root, "command");
    json_t *plain = json_array();

    for (size_t i = 1; i < json_array_size(words); i++) {
        json_t *word = json_array_get(words, i);
        unsigned saying = json_is_string(word) ? saying_words(json_string_value(word)) : 1;

        if (saying == 0)
            json_array_append(plain, word);
        else
            i += saying - 1;
    }
    return plain;
}

static void
print_words(FILE *out, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        putc(' ', out);
        load_result_file_print(out, json_string_value(json_array_get(words, i)));
    }
}

static void
warn_commands(FILE *out, const struct side *a, const struct side *b)
{
    json_t *words_a = plain_command(a), *words_b = plain_command(b);

    if (!json_equal(words_a, words_b)) {
        fprintf(out, "differs   command:");
        print_words(out, words_a);
        fprintf(out, " |");
        print_words(out, words_b);
        putc('\n', out);
    }
    json_decref(words_a);
    json_decref(words_b);
}

static void
warn_doubts(FILE *out, const struct side *side)
{
    const json_t *reasons = json_object_get(json_object_get(side->root, "verdict"), "reasons");

    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *reason = json_string_value(json_array_get(reasons, i));

        fprintf(out, "suspect   %s: ", side->name);
        load_result_file_print(out, reason != NULL ? reason : "no reason is given");
        fprintf(out, "\n");
    }
    if (json_number_value(json_object_get(side->root, "status")) == LOAD_EXIT_ERRORS)
        fprintf(out, "warning   %s had errors\n", side->name);
    if (json_is_true(json_object_get(side->root, "is_interrupted")))
        fprintf(out, "warning   %s was interrupted\n", side->name);
}

/* ---- Comparing ---- */

static const char *
value_text(enum load_figure figure, const struct side *side)
{
    const struct load_contrast_side *figures = &side->figures;
    double median = load_stats_median(figures->values[figure], figures->numbers[figure]);

    if (figures->numbers[figure] < figures->trials)
        return "n/a";
    return figure == LOAD_FIGURE_RATE
               ? load_number_text(median)
               : load_bound_text((uint64_t)(fmin(median, 1e15) * 1e3), figures->is_bound[figure]);
}

const char *
load_comparison_text(enum load_contrast_word word, double min_effect)
{
    static _Thread_local char text[48];
    static const char *const texts[] = {
        [LOAD_CONTRAST_NONE] = "no difference shown",
        [LOAD_CONTRAST_SMALL] = "no difference shown beyond",
        [LOAD_CONTRAST_NOISE] = "no difference shown: inside the noise",
        [LOAD_CONTRAST_SLOWER] = "slower",
        [LOAD_CONTRAST_FASTER] = "faster",
    };

    if (word != LOAD_CONTRAST_SMALL)
        return texts[word];
    snprintf(text, sizeof(text), "%s %.3g %%", texts[word], min_effect * 100);
    return text;
}

static void
print_ratio(FILE *out, const struct load_contrast *contrast, unsigned figure, double min_effect)
{
    const struct load_interval *ratio = &contrast->ratios[figure];

    fprintf(out, "%.3f  %.3f to %.3f  %s", ratio->middle, ratio->low, ratio->high,
            load_comparison_text(contrast->words[figure], min_effect));
    if (contrast->noise[figure] > 0)
        fprintf(out, " (noise of --aa: %.1f %%)", expm1(contrast->noise[figure]) * 100);
    putc('\n', out);
}

/* How many trials could not tell the figure. */
static unsigned
count_untold(const struct side *side, enum load_figure figure)
{
    return side->figures.trials - side->figures.numbers[figure];
}

static void
print_figure(FILE *out, enum load_figure figure, const struct load_contrast *contrast,
             const struct side *a, const struct side *b, double min_effect)
{
    enum load_contrast_word word = contrast->words[figure];

    if (word == LOAD_CONTRAST_REPEATED)
        return;
    fprintf(out, "%-13s %-9s %-9s ", load_figure_names[figure].text, value_text(figure, a),
            value_text(figure, b));
    if (word == LOAD_CONTRAST_GIVEN)
        fprintf(out, "given (-R, --replay), so no result\n");
    else if (word == LOAD_CONTRAST_UNTOLD)
        fprintf(out, "cannot tell: n/a in %u of %u trials\n",
                count_untold(a, figure) + count_untold(b, figure),
                a->figures.trials + b->figures.trials);
    else if (word == LOAD_CONTRAST_UNKNOWN)
        fprintf(out, "cannot tell: fewer than %d trials that have it\n", LOAD_TRIALS_MIN);
    else if (word == LOAD_CONTRAST_BOUND)
        fprintf(out, "cannot tell: failed requests leave only a lower bound\n");
    else
        print_ratio(out, contrast, figure, min_effect);
}

static void
print_share(FILE *out, const struct load_share *share)
{
    char text[16] = "n/a";

    if (share->whole > 0)
        snprintf(text, sizeof(text), "%.3g %%", 100 * load_share_of(share));
    fprintf(out, "%-9s ", text);
}

/* Print the counts. Failures are always printed, other counts only if one of the sides has any. */
static void
print_count(FILE *out, enum load_contrast_count count, const struct load_contrast *contrast,
            const struct side *a, const struct side *b)
{
    static const char *const names[] = {
        [LOAD_CONTRAST_FAILED] = "failed",
        [LOAD_CONTRAST_UNSENT] = "not sent",
        [LOAD_CONTRAST_UNOPENED] = "not opened",
    };
    const struct load_share *share_a = &a->figures.counts[count];
    const struct load_share *share_b = &b->figures.counts[count];
    enum load_contrast_word word = contrast->counts[count];

    if (count != LOAD_CONTRAST_FAILED && !(share_a->part + share_b->part > 0))
        return;
    fprintf(out, "%-13s ", names[count]);
    print_share(out, share_a);
    print_share(out, share_b);
    if (count == LOAD_CONTRAST_FAILED && contrast->is_dead)
        fprintf(out, "no good reply in %u of %u trials of b: a regression\n", b->figures.dead,
                b->figures.trials);
    else
        fprintf(out, "%s\n",
                word == LOAD_CONTRAST_MORE                 ? "more: a regression"
                : word == LOAD_CONTRAST_FEWER              ? "fewer"
                : share_a->whole > 0 && share_b->whole > 0 ? "no difference shown"
                                                           : "cannot tell");
}

static bool
is_suspect(const struct side *side)
{
    return json_array_size(json_object_get(json_object_get(side->root, "verdict"), "reasons")) > 0;
}

/* The exit status of a comparison. Failures decide first. Then a suspect side decides, because it
 * makes times and rates doubtful, but not failures. */
static int
exit_status_of(const struct load_contrast *contrast, const struct side *a, const struct side *b)
{
    if (contrast->is_failing)
        return LOAD_EXIT_THRESHOLD;
    if (is_suspect(a) || is_suspect(b))
        return LOAD_EXIT_SUSPECT;
    return contrast->is_slower ? LOAD_EXIT_THRESHOLD : LOAD_EXIT_OK;
}

static void
print_head(FILE *out, const struct side *a, const struct side *b)
{
    unsigned trials_a = a->figures.trials, trials_b = b->figures.trials;

    fprintf(out, "compare   a: %s, %u trial%s; b: %s, %u trial%s\n", a->name, trials_a,
            trials_a == 1 ? "" : "s", b->name, trials_b, trials_b == 1 ? "" : "s");
    if (a->root != b->root) {
        warn_facts(out, a, b);
        warn_commands(out, a, b);
        warn_doubts(out, a);
    }
    warn_doubts(out, b);
}

static int
compare_sides(const struct side *a, const struct side *b, double min_effect,
              struct load_comparison *kept, FILE *out)
{
    struct load_contrast contrast;

    print_head(out, a, b);
    load_contrast(&contrast, &a->figures, &b->figures, min_effect);
    fprintf(out, "              a         b         b/a    interval: 95 %% for all %u together\n",
            contrast.judged);
    for (unsigned i = 0; i < LOAD_CONTRAST_COUNTS; i++)
        print_count(out, (enum load_contrast_count)i, &contrast, a, b);
    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        print_figure(out, (enum load_figure)i, &contrast, a, b, min_effect);
    if (kept != NULL)
        *kept = (struct load_comparison){true, a->name, min_effect, contrast};
    return exit_status_of(&contrast, a, b);
}

int
load_compare_files(const char *a, const char *b, double min_effect, FILE *out, FILE *err)
{
    struct side side_a, side_b = {0};
    int status = LOAD_EXIT_USAGE;

    if (read_side(&side_a, a, err) == 0 && read_side(&side_b, b, err) == 0)
        status = compare_sides(&side_a, &side_b, min_effect, NULL, out);
    json_decref(side_a.root);
    json_decref(side_b.root);
    return status;
}

int
load_compare_check(const char *a, FILE *err)
{
    struct side side;
    int status = read_side(&side, a, err) == 0 ? LOAD_EXIT_OK : LOAD_EXIT_USAGE;

    json_decref(side.root);
    return status;
}

/* Compare a run with its own trials of --baseline-cmd, which the run's JSON contains. */
static int
take_baseline(struct side *side, const struct side *of, FILE *err)
{
    *side = (struct side){.name = "--baseline-cmd", .root = json_incref(of->root)};
    return take_side(side, json_object_get(of->root, "baseline"), err);
}

int
load_compare_baseline(const char *a, const struct load_run *b, FILE *out, FILE *err)
{
    struct side side_a = {0}, side_b;
    int status = LOAD_EXIT_USAGE;

    if (take_run(&side_b, b, err) == 0 &&
        (a != NULL ? read_side(&side_a, a, err) : take_baseline(&side_a, &side_b, err)) == 0)
        status = compare_sides(&side_a, &side_b, b->plan->min_effect, b->comparison, out);
    json_decref(side_a.root);
    json_decref(side_b.root);
    return status;
}
