/* SPDX-License-Identifier: MIT
 *
 * How often a comparison reports a difference that is none, and how often it finds a real one:
 * simulated servers, in simulated time, with fixed seeds. Replies take lognormal times; each trial
 * is faster or slower as a whole, one of twenty much slower, and the machine drifts slowly.
 */
#include "contrast.h"

#include <math.h>
#include <string.h>

#include "pace.h"
#include "run-private.h"
#include "test-main.h"
#include "test-sweep.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

#define PAIRS   (sxe_test_is_thin() ? 20u : 100u)
#define FOUND   (sxe_test_is_thin() ? 14u : 90u) /* so many of PAIRS at least */
#define QUERIES 3000

struct scene {
    bool is_interleaved; /* trials of both sides in turn, or one side after the other */
    unsigned trials;     /* how many trials each side has */
    double slower;       /* by which factor b's times are longer */
};

static uint64_t chance[2];
static struct load_histogram histogram;
static struct load_contrast_side sides[2];
static struct load_contrast contrast;

static double
normal(void)
{
    double u = 1 - load_random_fraction(chance);

    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * load_random_fraction(chance));
}

/* The result of a trial whose replies take `level` times as long as usual. */
static void
measure(struct load_contrast_side *side, double level)
{
    double seconds = 0;
    const double figures[] = {[LOAD_FIGURE_SERVICE_P50] = 0.5,   [LOAD_FIGURE_SERVICE_P95] = 0.95,
                              [LOAD_FIGURE_SERVICE_P99] = 0.99,  [LOAD_FIGURE_RESPONSE_P50] = 0.5,
                              [LOAD_FIGURE_RESPONSE_P95] = 0.95, [LOAD_FIGURE_RESPONSE_P99] = 0.99};

    memset(&histogram, 0, sizeof(histogram));
    for (unsigned i = 0; i < QUERIES; i++) {
        double s = 0.001 * level * exp(0.25 * normal());

        seconds += s;
        load_histogram_record(&histogram, (uint64_t)(s * 1e9));
    }
    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        side->values[i][side->numbers[i]++] =
            i == LOAD_FIGURE_RATE ? QUERIES / seconds
                                  : (double)load_histogram_quantile(&histogram, figures[i]);
}

/* Trials differ by 1 %; one of twenty takes 5 % longer; over the session the machine drifts by up
 * to 2 % in one direction, and at random by 0.2 % from trial to trial. */
static void
compare_sides(const struct scene *scene, unsigned seed)
{
    const struct load_plan plan = {.aa = true};
    double trend = 0, drift = 0;

    load_random_init(chance, seed);
    memset(sides, 0, sizeof(sides));
    trend = 0.02 * (2 * load_random_fraction(chance) - 1) / (2 * scene->trials);
    for (unsigned i = 0; i < 2 * scene->trials; i++) {
        bool is_b = scene->is_interleaved ? load_trial_is_b(&plan, i) : i >= scene->trials;
        double level = 1 + drift + 0.01 * normal();

        if (load_random_fraction(chance) < 0.05)
            level += 0.05;
        measure(&sides[is_b], level * (is_b ? scene->slower : 1));
        drift += trend + 0.002 * normal();
    }
    load_contrast(&contrast, &sides[0], &sides[1], 0.02);
    /* Rate, p50, p95, p99; the response times equal the service times. */
    ck_assert_uint_eq(contrast.judged, 4);
}

static unsigned
slower_ones(struct scene scene)
{
    unsigned slower = 0;

    for (unsigned pair = 0; pair < PAIRS; pair++) {
        compare_sides(&scene, 1 + pair);
        slower += contrast.is_slower;
    }
    return slower;
}

static const struct {
    bool is_interleaved;
    unsigned trials;
} designs[] = {{true, 10}, {false, 12}};

static struct scene
scene_of(int design, double slower)
{
    return (struct scene){designs[design].is_interleaved, designs[design].trials, slower};
}

START_TEST(the_same_is_hardly_ever_slower_than_itself)
{
    ck_assert_uint_le(slower_ones(scene_of(_i, 1)), 1);
}
END_TEST

START_TEST(a_true_difference_of_five_percent_is_found)
{
    ck_assert_uint_ge(slower_ones(scene_of(_i, 1.05)), FOUND);
}
END_TEST

START_TEST(what_is_faster_is_no_regression)
{
    ck_assert_uint_le(slower_ones(scene_of(_i, 0.95)), 1);
}
END_TEST

/* ---- Words ---- */

/* Ten trials with these ratios of b to a, different by 0.4 % at most. */
static void
make_sides(double rate, double p50, double p99)
{
    const double ratios[] = {rate, p50, p50, p99, p50, p50, p99};

    memset(sides, 0, sizeof(sides));
    for (unsigned figure = 0; figure < LOAD_FIGURES; figure++)
        for (unsigned i = 0; i < 10; i++) {
            double around = 1 + 0.0004 * (i * 7 % 10);

            sides[0].values[figure][i] = 100 * around;
            sides[1].values[figure][i] = 100 * around * ratios[figure];
            sides[0].numbers[figure] = sides[1].numbers[figure] = 10;
        }
}

static const struct {
    double rate, p50, p99, min_effect;
    enum load_contrast_word words[3];
    bool is_slower;
} words[] = {
    {1, 1, 1, 0.02, {LOAD_CONTRAST_NONE, LOAD_CONTRAST_NONE, LOAD_CONTRAST_NONE}, false},
    {0.9, 1.1, 1.5, 0.02, {LOAD_CONTRAST_SLOWER, LOAD_CONTRAST_SLOWER, LOAD_CONTRAST_SLOWER}, true},
    {1.1,
     0.9,
     0.5,
     0.02,
     {LOAD_CONTRAST_FASTER, LOAD_CONTRAST_FASTER, LOAD_CONTRAST_FASTER},
     false},
    {0.99,
     1.01,
     1.013,
     0.02,
     {LOAD_CONTRAST_SMALL, LOAD_CONTRAST_SMALL, LOAD_CONTRAST_SMALL},
     false},
    {0.99, 1.01, 0.99, 0, {LOAD_CONTRAST_SLOWER, LOAD_CONTRAST_SLOWER, LOAD_CONTRAST_FASTER}, true},
    {0.9, 1.04, 1.1, 0.05, {LOAD_CONTRAST_SLOWER, LOAD_CONTRAST_SMALL, LOAD_CONTRAST_SLOWER}, true},
};

START_TEST(a_word_is_said_of_what_lies_beyond_the_minimum_effect)
{
    make_sides(words[_i].rate, words[_i].p50, words[_i].p99);
    load_contrast(&contrast, &sides[0], &sides[1], words[_i].min_effect);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_RATE], words[_i].words[0]);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_SERVICE_P50], words[_i].words[1]);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_SERVICE_P99], words[_i].words[2]);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_RESPONSE_P99], LOAD_CONTRAST_REPEATED);
    ck_assert_int_eq(contrast.is_slower, words[_i].is_slower);
    ck_assert_uint_eq(contrast.judged, 4);
}
END_TEST

START_TEST(what_is_not_judged_is_not_of_the_family)
{
    make_sides(0.5, 1, 1);
    sides[1].is_rate_given = true;
    sides[0].numbers[LOAD_FIGURE_SERVICE_P95] = sides[0].numbers[LOAD_FIGURE_RESPONSE_P95] = 5;
    sides[0].numbers[LOAD_FIGURE_SERVICE_P99] = sides[0].numbers[LOAD_FIGURE_RESPONSE_P99] = 5;
    sides[0].noise[LOAD_FIGURE_SERVICE_P50] = 0.3;
    load_contrast(&contrast, &sides[0], &sides[1], 0.02);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_RATE], LOAD_CONTRAST_GIVEN);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_SERVICE_P99], LOAD_CONTRAST_UNKNOWN);
    ck_assert_uint_eq(contrast.judged, 1);
    ck_assert(!contrast.is_slower);
    ck_assert(contrast.noise[LOAD_FIGURE_SERVICE_P50] == 0.3);
}
END_TEST

START_TEST(a_difference_inside_the_noise_is_none)
{
    make_sides(0.9, 1.3, 1);
    sides[0].noise[LOAD_FIGURE_RATE] = 0.01;
    sides[1].noise[LOAD_FIGURE_RATE] = 0.2;
    sides[1].noise[LOAD_FIGURE_SERVICE_P50] = 0.2;
    load_contrast(&contrast, &sides[0], &sides[1], 0.02);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_RATE], LOAD_CONTRAST_NOISE);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_SERVICE_P50], LOAD_CONTRAST_SLOWER);
}
END_TEST

/* If a side's times are only lower bounds, it can only be shown to be slower, not faster. */
START_TEST(a_lower_bound_may_be_any_longer)
{
    static const struct {
        double p99;
        bool is_bound[2];
        enum load_contrast_word word;
    } rows[] = {
        {1.5, {false, true}, LOAD_CONTRAST_SLOWER}, {1.5, {true, false}, LOAD_CONTRAST_BOUND},
        {0.5, {true, false}, LOAD_CONTRAST_FASTER}, {0.5, {false, true}, LOAD_CONTRAST_BOUND},
        {1, {false, true}, LOAD_CONTRAST_BOUND},    {1.5, {true, true}, LOAD_CONTRAST_BOUND},
    };

    make_sides(1, 1, rows[_i].p99);
    sides[0].is_bound[LOAD_FIGURE_SERVICE_P99] = rows[_i].is_bound[0];
    sides[1].is_bound[LOAD_FIGURE_SERVICE_P99] = rows[_i].is_bound[1];
    load_contrast(&contrast, &sides[0], &sides[1], 0.02);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_SERVICE_P99], rows[_i].word);
    ck_assert_int_eq(contrast.is_slower, rows[_i].word == LOAD_CONTRAST_SLOWER);
}
END_TEST

static const struct {
    struct load_share a[LOAD_CONTRAST_COUNTS], b[LOAD_CONTRAST_COUNTS];
    unsigned dead[2]; /* trials without a good reply, of ten */
    enum load_contrast_word words[LOAD_CONTRAST_COUNTS];
    bool is_dead, is_failing;
} failures[] = {
    {{{0, 4000}, {0, 4000}, {0, 8}}, {{0, 4000}, {0, 4000}, {0, 8}}, {0, 0}, {0}, false, false},
    {{{0, 4000}}, {{2000, 4000}}, {0, 0}, {LOAD_CONTRAST_MORE}, false, true},
    {{{2000, 4000}}, {{0, 4000}}, {0, 0}, {LOAD_CONTRAST_FEWER}, false, false},
    {{{0, 4000}}, {{4000, 4000}}, {0, 10}, {LOAD_CONTRAST_MORE}, true, true},
    {{{0, 0}}, {{0, 0}}, {0, 10}, {0}, true, true},      /* no socket opened */
    {{{40, 40}}, {{40, 40}}, {10, 10}, {0}, true, true}, /* however many failed in a */
    {{{0, 4}}, {{2, 4}}, {0, 2}, {0}, true, true},       /* too few requests for a verdict */
    {{{2, 4}}, {{2, 4}}, {2, 2}, {0}, false, false},
    {{{2, 4}}, {{0, 4}}, {2, 0}, {0}, false, false},
    {{{0, 9}, {0, 4000}}, {{0, 9}, {400, 4000}}, {0, 0}, {0, LOAD_CONTRAST_MORE}, false, true},
    /* A difference of 1.75 percentage points. */
    {{{0, 9}, {2000, 4000}}, {{0, 9}, {2070, 4000}}, {0, 0}, {0}, false, false},
    {{{0, 9}, {0, 4000}, {0, 64}},
     {{0, 9}, {0, 4000}, {64, 64}},
     {0, 0},
     {0, 0, LOAD_CONTRAST_MORE},
     false,
     true},
};

START_TEST(what_failed_is_compared_for_itself)
{
    make_sides(1, 1, 1);
    for (unsigned i = 0; i < 2; i++) {
        sides[i].trials = 10;
        sides[i].dead = failures[_i].dead[i];
        memcpy(sides[i].counts, i == 0 ? failures[_i].a : failures[_i].b, sizeof(sides[i].counts));
    }
    load_contrast(&contrast, &sides[0], &sides[1], 0.02);
    for (unsigned i = 0; i < LOAD_CONTRAST_COUNTS; i++)
        ck_assert_int_eq(contrast.counts[i],
                         failures[_i].words[i] == 0 ? LOAD_CONTRAST_NONE : failures[_i].words[i]);
    ck_assert_int_eq(contrast.is_dead, failures[_i].is_dead);
    ck_assert_int_eq(contrast.is_failing, failures[_i].is_failing);
    ck_assert(!contrast.is_slower);
}
END_TEST

START_TEST(what_a_trial_cannot_tell_is_not_told_by_the_others)
{
    for (unsigned i = 0; i < 2; i++) {
        make_sides(1, 1, 2);
        sides[0].trials = sides[0].numbers[LOAD_FIGURE_SERVICE_P99] + (i == 0);
        sides[1].trials = sides[1].numbers[LOAD_FIGURE_SERVICE_P99] + (i == 1);
        load_contrast(&contrast, &sides[0], &sides[1], 0.02);
        ck_assert_int_eq(contrast.words[LOAD_FIGURE_SERVICE_P99], LOAD_CONTRAST_UNTOLD);
        ck_assert_uint_eq(contrast.judged, 0);
        ck_assert(!contrast.is_slower);
    }
}
END_TEST

START_TEST(where_nothing_can_be_judged_nothing_is)
{
    memset(sides, 0, sizeof(sides));
    load_contrast(&contrast, &sides[0], &sides[1], 0.02);
    ck_assert_uint_eq(contrast.judged, 0);
    ck_assert(!contrast.is_slower);
    ck_assert_int_eq(contrast.words[LOAD_FIGURE_RATE], LOAD_CONTRAST_UNKNOWN);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-contrast");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 0);
    tcase_add_loop_test(all, the_same_is_hardly_ever_slower_than_itself, 0, 2);
    tcase_add_loop_test(all, a_true_difference_of_five_percent_is_found, 0, 2);
    tcase_add_loop_test(all, what_is_faster_is_no_regression, 0, 2);
    tcase_add_loop_test(all, a_word_is_said_of_what_lies_beyond_the_minimum_effect, 0, 6);
    tcase_add_test(all, what_is_not_judged_is_not_of_the_family);
    tcase_add_loop_test(all, a_lower_bound_may_be_any_longer, 0, 6);
    tcase_add_test(all, a_difference_inside_the_noise_is_none);
    tcase_add_loop_test(all, what_failed_is_compared_for_itself, 0, COUNT(failures));
    tcase_add_test(all, what_a_trial_cannot_tell_is_not_told_by_the_others);
    tcase_add_test(all, where_nothing_can_be_judged_nothing_is);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
