/* SPDX-License-Identifier: MIT
 *
 * Parsing and judging conditions such as p99<20ms.
 */
#include "threshold.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command-line.h"
#include "sxe-util.h"
#include "text.h"

enum what { RESPONSE, SERVICE, FIRST_BYTE, CONNECT };
enum figure { PERCENTILE, MEAN, MIN, MAX, RATE, ERRORS, SKIPPED, ACHIEVED };
enum operator_ { LESS, LESS_EQUAL, MORE, MORE_EQUAL };

struct word {
    const char *text;
    unsigned char meaning;
};

static const struct word whats[] = {
    {"response.", RESPONSE},
    {"service.", SERVICE},
    {"first_byte.", FIRST_BYTE},
    {"connect.", CONNECT},
};
static const struct word figures[] = {
    {"mean", MEAN},     {"min", MIN},         {"max", MAX},           {"rate", RATE},
    {"errors", ERRORS}, {"skipped", SKIPPED}, {"achieved", ACHIEVED}, {"p", PERCENTILE},
};
/* Longer operators come first, because take_threshold_word takes the first that matches. */
static const struct word operators[] = {
    {"<=", LESS_EQUAL}, {"<", LESS}, {">=", MORE_EQUAL}, {">", MORE}};

static const struct unit {
    const char *text;
    double factor;
} time_units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}},
  rate_units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}}, part_units[] = {{"", 1}, {"%", 0.01}};

static void
skip_threshold_blanks(const char **text)
{
    *text += strspn(*text, " \t");
}

/* If the text begins with one of the words, move *text past the word and set *meaning. False: it
 * begins with none of them. */
static bool
take_threshold_word(const char **text, const struct word *words, size_t number,
                    unsigned char *meaning)
{
    for (size_t i = 0; i < number; i++)
        if (strncmp(*text, words[i].text, strlen(words[i].text)) == 0) {
            *text += strlen(words[i].text);
            *meaning = words[i].meaning;
            return true;
        }
    return false;
}

static bool
take_threshold_number(const char **text, double *value)
{
    unsigned long digits, scale;
    const char *after = command_line_decimal(*text, &digits, &scale);

    if (after == NULL)
        return false;
    *value = (double)digits / (double)scale;
    *text = after;
    return true;
}

static bool
take_threshold_unit(const char *text, const struct unit *units, size_t number, double *value)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(text, units[i].text) == 0) {
            *value *= units[i].factor;
            return true;
        }
    return false;
}

/* Take "stage2." from the beginning of the text, if it is there. NULL, or what is wrong. */
static const char *
take_stage(struct load_threshold *threshold, const char **text)
{
    unsigned number = 0;

    if (strncmp(*text, "stage", 5) != 0)
        return NULL;
    for (*text += 5; **text >= '0' && **text <= '9' && number <= LOAD_STAGES_MAX; ++*text)
        number = number * 10 + (unsigned)(**text - '0');
    if (number < 1 || number > LOAD_STAGES_MAX || *(*text)++ != '.')
        return "a stage is one of stage1 to stage32: write stage2.p99<20ms";
    threshold->stage = (unsigned char)number;
    return NULL;
}

static const char *
take_threshold_figure(struct load_threshold *threshold, const char **text)
{
    const char *wrong = take_stage(threshold, text);
    bool has_what = take_threshold_word(text, whats, SXE_COUNT(whats), &threshold->what);
    double percent = 50;

    if (wrong != NULL)
        return wrong;
    if (!take_threshold_word(text, figures, SXE_COUNT(figures), &threshold->figure))
        return has_what ? "write p99, mean, min or max after the point"
                        : "the figure is unknown: write a percentile as p99.9, mean, min, max (of "
                          "response, "
                          "or as in service.p99, first_byte.p99, connect.p99), rate, errors, "
                          "skipped or achieved";
    if (has_what && threshold->figure >= RATE)
        return "rate, errors, skipped and achieved stand alone: write rate>50k";
    if (threshold->stage > 0 && (threshold->what != RESPONSE || threshold->figure == RATE))
        return "of a stage, conditions are about response times, errors, skipped and achieved: "
               "write stage2.p99<20ms";
    if (threshold->figure == PERCENTILE && !take_threshold_number(text, &percent))
        return "the percentile is no number: write p99 or p99.9";
    if (percent <= 0 || percent >= 100)
        return "a percentile is more than 0 and less than 100: write p99 or p99.9, or max";
    threshold->fraction = percent / 100;
    return NULL;
}

static const char *
take_threshold_time(const char *text, double *value)
{
    if (*text == '\0')
        return "the unit is missing: write 20ms or 20us";
    if (!take_threshold_unit(text, time_units, SXE_COUNT(time_units), value))
        return "the unit is none of us, ms, s, m and h: write 20ms or 20us";
    *value = rint(*value);
    if (*value > LOAD_HISTOGRAM_MAX_NS)
        return "more than 1h is not measured: write a shorter time";
    return NULL;
}

static const char *
take_threshold_value(struct load_threshold *threshold, const char *text)
{
    double *value = &threshold->value;

    if (!take_threshold_number(&text, value))
        return threshold->figure < RATE    ? "the value is no number: write 20ms or 20us"
               : threshold->figure == RATE ? "the value is no number: write 50k"
                                           : "the value is no number: write 0.1%";
    if (threshold->figure < RATE)
        return take_threshold_time(text, value);
    if (threshold->figure == RATE)
        return take_threshold_unit(text, rate_units, SXE_COUNT(rate_units), value)
                   ? NULL
                   : "a rate is a number a second, with k or M: write 50k";
    if (!take_threshold_unit(text, part_units, SXE_COUNT(part_units), value) || *value > 1)
        return "this is a part of all, 0 to 1 or 0% to 100%: write 0.1%";
    return NULL;
}

const char *
load_threshold_parse(struct load_threshold *threshold, const char *text)
{
    const char *wrong;

    *threshold = (struct load_threshold){0};
    skip_threshold_blanks(&text);
    wrong = take_threshold_figure(threshold, &text);
    if (wrong != NULL)
        return wrong;
    skip_threshold_blanks(&text);
    if (!take_threshold_word(&text, operators, SXE_COUNT(operators), &threshold->operator_))
        return "the operator is missing: write <, <=, > or >= after the figure, as in p99<20ms";
    skip_threshold_blanks(&text);
    return take_threshold_value(threshold, text);
}

/* The counts that a threshold judges: those of the whole result, or those of a stage if the
 * threshold names one. */
struct scope {
    uint64_t offered;
    uint64_t begun; /* sent + carried, see result.h */
    uint64_t sent;
    uint64_t ok;
    uint64_t errors;
    uint64_t skipped;
    uint64_t replies;
};

static struct scope
scope_of(const struct load_threshold *threshold, const struct load_result *result)
{
    const struct load_stage_result *stage =
        &result->by_stage[threshold->stage > 0 ? threshold->stage - 1 : 0];

    if (threshold->stage == 0)
        return (struct scope){.offered = result->offered,
                              .begun = result->sent + result->carried,
                              .sent = result->sent,
                              .ok = result->ends[LOAD_END_OK],
                              .errors = load_result_errors(result),
                              .skipped = load_result_skipped(result),
                              .replies = load_result_replies(result)};
    if (threshold->stage > result->stages)
        return (struct scope){0};
    return (struct scope){.offered = stage->offered,
                          .begun = stage->sent,
                          .sent = stage->sent,
                          .ok = stage->ok,
                          .errors = stage->errors,
                          .skipped = load_later_part(stage->offered, stage->sent),
                          .replies = stage->ok};
}

static const struct load_histogram *
histogram_of(const struct load_threshold *threshold, const struct load_result *result)
{
    const struct load_histogram *histograms[] = {
        [RESPONSE] = &result->response,
        [SERVICE] = &result->service,
        [FIRST_BYTE] = &result->first_byte,
        [CONNECT] = &result->connect,
    };

    if (threshold->stage > 0)
        return &result->by_stage[threshold->stage - 1].response;
    return histograms[threshold->what];
}

/* The number by which the threshold's figure is divided: seconds for a rate, requests for a share,
 * the number of samples for a mean or a percentile. 0: nothing was measured, so the figure has no
 * value. */
static double
divisor_of_figure(const struct load_threshold *threshold, const struct load_result *result)
{
    struct scope scope = scope_of(threshold, result);

    switch ((enum figure)threshold->figure) {
    case RATE:
        return (double)result->elapsed_ns / 1e9;
    case ERRORS:
        return (double)scope.begun;
    case SKIPPED:
    case ACHIEVED:
        return (double)scope.offered;
    case PERCENTILE:
    case MEAN:
    case MIN:
    case MAX:
        break;
    }
    return (double)histogram_of(threshold, result)->count;
}

bool
load_threshold_can_be_sought(const struct load_threshold *threshold)
{
    bool is_upper = threshold->operator_ == LESS || threshold->operator_ == LESS_EQUAL;
    bool is_of_rate = threshold->figure == RATE || threshold->figure == ACHIEVED;

    return is_upper != is_of_rate;
}

bool
load_threshold_is_of_errors(const struct load_threshold *threshold)
{
    return threshold->figure == ERRORS && threshold->stage == 0;
}

bool
load_threshold_is_of_delivery(const struct load_threshold *threshold)
{
    return (threshold->figure == SKIPPED || threshold->figure == ACHIEVED) && threshold->stage == 0;
}

unsigned
load_threshold_stage(const struct load_threshold *threshold)
{
    return threshold->stage;
}

double
load_threshold_figure(const struct load_threshold *threshold, const struct load_result *result)
{
    const struct load_histogram *histogram = histogram_of(threshold, result);
    struct scope scope = scope_of(threshold, result);
    double base = divisor_of_figure(threshold, result);

    if (base <= 0)
        return 0;
    switch ((enum figure)threshold->figure) {
    case RATE:
        return load_result_rate(result);
    case ERRORS:
        return (double)scope.errors / base;
    case SKIPPED:
        return (double)scope.skipped / base;
    case ACHIEVED:
        return (double)scope.sent / base;
    case MEAN:
        return load_histogram_mean_ns(histogram);
    case MIN:
        return (double)histogram->min_ns;
    case MAX:
        return (double)histogram->max_ns;
    case PERCENTILE:
        break;
    }
    return (double)load_histogram_quantile(histogram, threshold->fraction);
}

bool
load_threshold_is_at_least(const struct load_threshold *threshold, const struct load_result *result)
{
    const struct load_histogram *histogram = histogram_of(threshold, result);

    if (threshold->figure >= RATE)
        return false;
    if (threshold->figure == MEAN || threshold->figure == MAX)
        return histogram->censored > 0;
    return load_histogram_is_at_least(histogram,
                                      (uint64_t)load_threshold_figure(threshold, result));
}

bool
load_threshold_holds(const struct load_threshold *threshold, const struct load_result *result,
                     bool *is_told)
{
    double figure = load_threshold_figure(threshold, result);
    bool is_at_least = load_threshold_is_at_least(threshold, result);

    *is_told = divisor_of_figure(threshold, result) > 0 && scope_of(threshold, result).replies > 0;
    if (threshold->figure == PERCENTILE)
        *is_told &= load_histogram_can_tell(histogram_of(threshold, result), threshold->fraction);
    if (!*is_told)
        return false;
    switch ((enum operator_)threshold->operator_) {
    case LESS:
        return !is_at_least && figure < threshold->value;
    case LESS_EQUAL:
        return !is_at_least && figure <= threshold->value;
    case MORE:
        return figure > threshold->value;
    case MORE_EQUAL:
        break;
    }
    return figure >= threshold->value;
}

/* How many samples exceed an upper limit. With the operator "<" these are the times at or above the
 * value, with "<=" the times above it. */
static double
beyond_of(const struct load_threshold *threshold, const struct load_histogram *histogram)
{
    struct load_bucket bucket;
    unsigned next = 0;
    double beyond = 0;

    while (load_histogram_next(histogram, &next, &bucket)) {
        double ns = (double)(bucket.to_ns < histogram->max_ns ? bucket.to_ns : histogram->max_ns);

        if (threshold->operator_ == LESS ? ns >= threshold->value : ns > threshold->value)
            beyond += (double)bucket.count;
    }
    return beyond;
}

/* Fewer samples beyond the value may be chance. So a percentile needs at least ten samples beyond
 * it. */
#define BEYOND_LEAST 10.0
/* the fewest samples for a share; so many show that the server answers */
#define SAMPLES_MIN  200.0
#define SAMPLES_MEAN 1000.0 /* the fewest samples for any other figure */

void
load_threshold_evidence(const struct load_threshold *threshold, const struct load_result *result,
                        struct load_evidence *evidence)
{
    struct scope scope = scope_of(threshold, result);

    *evidence = (struct load_evidence){.needed = SAMPLES_MEAN,
                                       .samples = divisor_of_figure(threshold, result)};
    switch ((enum figure)threshold->figure) {
    case PERCENTILE:
        evidence->beyond = beyond_of(threshold, histogram_of(threshold, result));
        evidence->allowed = 1 - threshold->fraction;
        break;
    case ERRORS:
        evidence->beyond = (double)scope.errors;
        evidence->allowed = threshold->value;
        break;
    case SKIPPED:
        evidence->beyond = (double)scope.skipped;
        evidence->allowed = threshold->value;
        break;
    case ACHIEVED:
        evidence->beyond = (double)(scope.offered - scope.sent);
        evidence->allowed = 1 - threshold->value;
        break;
    case RATE:
        evidence->samples = (double)scope.ok;
        break;
    case MEAN:
    case MIN:
    case MAX:
        break;
    }
    if (evidence->allowed > 0)
        evidence->needed = fmax(BEYOND_LEAST / evidence->allowed * (1 - 1e-9), SAMPLES_MIN);
}

const char *
load_threshold_text(const struct load_threshold *threshold, double figure)
{
    static _Thread_local char text[32];

    if (threshold->figure < RATE)
        return load_time_text((uint64_t)figure);
    if (threshold->figure == RATE)
        snprintf(text, sizeof(text), "%s/s", load_number_text(figure));
    else
        snprintf(text, sizeof(text), "%.3g %%", figure * 100);
    return text;
}
