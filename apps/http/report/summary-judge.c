/* SPDX-License-Identifier: MIT
 *
 * Lines of the summary about trials, thresholds, searches and comparisons.
 */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "fanout.h"
#include "output.h"
#include "summary-sheet.h"
#include "trend.h"

#define PLOT_ROWS    5
#define PLOT_COLUMNS 60
#define LABEL_WIDTH  9

/* ---- Sessions ---- */

/* Add the sessions. All completed sessions count for the rate, also those that were completed in
 * the drain. */
void
load_summary_sessions(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *total = run->total;
    double seconds = (double)total->elapsed_ns / 1e9;

    if (total->sessions_completed + total->sessions_failed == 0)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_ERRORS,
                     total->sessions_failed > 0 ? LOAD_PAINT_BAD : LOAD_PAINT_NONE);
    load_sheet_add(sheet, "sessions  %llu completed  %llu failed  %.4g/s",
                   (unsigned long long)total->sessions_completed,
                   (unsigned long long)total->sessions_failed,
                   load_per_second(total->sessions_completed, seconds));
}

/* ---- A hint ---- */

/* If the server is on this machine, add a hint that it may share CPUs with the client. If the
 * client was bound to some of the CPUs (taskset), the hint is not needed. */
static void
add_local_hint(struct load_sheet *sheet, const struct load_plan *plan)
{
    cpu_set_t allowed;
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    if (!load_is_local(plan) || CPU_COUNT(&allowed) < online)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_HINT, LOAD_PAINT_FAINT);
    load_sheet_add(sheet, "hint     ");
    load_sheet_words(sheet,
                     "server and client may share CPUs; keep them apart: taskset -c 0 SERVER, "
                     "taskset -c 1 ...");
}

/* ---- Trials ---- */

#define TIME_FIGURES (LOAD_FIGURE_RESPONSE_P50 - LOAD_FIGURE_SERVICE_P50)

/* The first of the figures of times to show: of service times in a closed loop, where they equal
 * the response times; otherwise of response times. */
static enum load_figure
first_time(const struct load_plan *plan)
{
    return plan->model == LOAD_CLOSED ? LOAD_FIGURE_SERVICE_P50 : LOAD_FIGURE_RESPONSE_P50;
}

static const char *
figure_text(const struct load_run *run, enum load_figure figure, double value)
{
    double from = run->figures_from[figure];

    return figure == LOAD_FIGURE_RATE ? load_number_text(value)
                                      : load_bound_text((uint64_t)value, from > 0 && value >= from);
}

static void
add_interval(struct load_sheet *sheet, const struct load_run *run, const char *name,
             enum load_figure figure)
{
    const struct load_interval *interval = &run->figures[figure];

    if (isnan(interval->middle))
        load_sheet_item(sheet, "%s n/a", name);
    else
        load_sheet_item(sheet, "%s %s [%s, %s]", name, figure_text(run, figure, interval->middle),
                        figure_text(run, figure, interval->low),
                        figure_text(run, figure, interval->high));
}

static void
add_trials_row(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_interval *figures = run->figures;

    if (run->trials_number < 2)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "trials    %u, medians [%s]:", run->trials_number,
                   figures[LOAD_FIGURE_RATE].is_known ? "95 % interval"
                                                      : "extremes; 6 trials make an interval");
    if (load_figure_is_result(run->plan, LOAD_FIGURE_RATE))
        add_interval(sheet, run, "rate/s", LOAD_FIGURE_RATE);
    for (unsigned i = 0; i < TIME_FIGURES; i++) {
        enum load_figure figure = first_time(run->plan) + i;

        add_interval(sheet, run, load_figure_names[figure].text, figure);
    }
}

/* Add a line if --until-ci was not reached. */
static void
add_until_ci(struct load_sheet *sheet, const struct load_run *run)
{
    enum load_figure figure = (enum load_figure)run->plan->until_ci_figure;
    const struct load_interval *interval = &run->figures[figure];
    const char *name = load_figure_names[figure].whole;

    if (!(run->plan->until_ci > 0) || load_until_ci_is_reached(run))
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED, LOAD_PAINT_BAD);
    if (isnan(interval->middle))
        load_sheet_add(sheet, "until-ci  not reached: %s is n/a; it takes %u requests a trial",
                       name, load_figure_needs(figure));
    else if (run->figures_from[figure] > 0)
        load_sheet_add(sheet,
                       "until-ci  not reached: so many requests failed that %s is known by a lower "
                       "bound only",
                       name);
    else if (interval->is_known)
        load_sheet_add(sheet,
                       "until-ci  not reached: after %u trials the interval of %s is %.1f %% wide, "
                       "not under %.3g %%",
                       run->trials_number, name, 100 * load_stats_width(interval),
                       100 * run->plan->until_ci);
    else
        load_sheet_add(sheet, "until-ci  not reached: %u trials are too few for an interval",
                       run->trials_number);
}

static void
add_noise_of(struct load_sheet *sheet, const struct load_run *run, enum load_figure figure)
{
    const struct load_interval *noise = &run->noise[figure];

    if (isnan(noise->middle))
        load_sheet_item(sheet, "%s n/a", load_figure_names[figure].whole);
    else if (load_figure_is_result(run->plan, figure))
        load_sheet_item(sheet, "%s %+.1f %% to %+.1f %%", load_figure_names[figure].whole,
                        (noise->low - 1) * 100, (noise->high - 1) * 100);
}

static void
add_noise(struct load_sheet *sheet, const struct load_run *run)
{
    if (!run->plan->aa)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "noise     the same against itself:");
    add_noise_of(sheet, run, LOAD_FIGURE_RATE);
    for (unsigned i = 0; i < TIME_FIGURES; i++)
        add_noise_of(sheet, run, first_time(run->plan) + i);
    if (run->trials_number < 2 * LOAD_TRIALS_MIN)
        load_sheet_item(sheet, "(extremes of too few trials)");
}

/* ---- Thresholds ---- */

static void
add_thresholds(struct load_sheet *sheet, const struct load_run *run)
{
    const char *const *conditions = run->plan->thresholds;

    if (conditions[0] == NULL)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED,
                     run->thresholds_missed > 0 ? LOAD_PAINT_BAD : LOAD_PAINT_GOOD);
    load_sheet_add(sheet, "threshold");
    for (unsigned i = 0; conditions[i] != NULL; i++) {
        const struct load_judged *judged = &run->judged[i];

        const char *why =
            load_result_replies(run->total) > 0 ? "n/a: too few samples" : "n/a: no reply";

        if (judged->is_told)
            load_sheet_item(sheet, "%s %s (%s%s)", conditions[i], judged->holds ? "held" : "MISSED",
                            judged->is_at_least ? "> " : "",
                            load_threshold_text(&judged->threshold, judged->figure));
        else
            load_sheet_item(sheet, "%s MISSED (%s)", conditions[i], why);
    }
}

/* ---- Pages of several queries ---- */

/* Print a percentile of pages, and which percentile of single queries has the same time. The latter
 * gets so many decimals that its distance to 100 % has two significant digits, such as 99.986. */
static void
add_level(struct load_sheet *sheet, const struct load_fanout_level *level)
{
    double beyond = 100 * (1 - level->of_one);

    load_sheet_item(sheet, "%s %s (one's p%.*f)", level->name,
                    level->is_told ? load_bound_text(level->ns, level->is_at_least) : "n/a",
                    (int)fmax(1 - floor(log10(beyond)), 0), 100 * level->of_one);
}

static void
add_fanout(struct load_sheet *sheet, const struct load_run *run)
{
    struct load_fanout fanout;

    if (run->plan->fanout == 0)
        return;
    load_fanout_tell(&fanout, run);
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "fan-out   %s of %u at once:", fanout.times, run->plan->fanout);
    for (unsigned i = 0; i < LOAD_FANOUT_LEVELS; i++)
        add_level(sheet, &fanout.levels[i]);
    load_sheet_item(sheet, "%.3g %% beyond one's p99", 100 * fanout.beyond_p99);
}

/* ---- The search for a rate ---- */

struct plot {
    double rate_max;
    double low, high; /* the lowest and the highest value of the figure */
    char cells[PLOT_ROWS][PLOT_COLUMNS + 1];
};

static void
find_bounds(struct plot *plot, const struct load_run *run)
{
    plot->low = HUGE_VAL;
    for (unsigned i = 0; i < run->steps_number; i++) {
        plot->rate_max = fmax(plot->rate_max, run->steps[i].rate);
        plot->low = fmin(plot->low, run->steps[i].figure);
        plot->high = fmax(plot->high, run->steps[i].figure);
    }
}

/* The height of a figure in the plot, from 0 (bottom) to 1 (top). The axis is logarithmic, because
 * that shows best where a curve bends up. */
static double
height_of(const struct plot *plot, double figure)
{
    if (!(plot->high > plot->low))
        return 0;
    return plot->low > 0 ? log(figure / plot->low) / log(plot->high / plot->low)
                         : (figure - plot->low) / (plot->high - plot->low);
}

static void
draw_plot(struct plot *plot, const struct load_run *run)
{
    for (unsigned row = 0; row < PLOT_ROWS; row++)
        snprintf(plot->cells[row], sizeof(plot->cells[row]), "%*s", PLOT_COLUMNS, "");
    for (unsigned i = 0; i < run->steps_number; i++) {
        const struct load_step *step = &run->steps[i];
        double x = plot->rate_max > 0 ? step->rate / plot->rate_max : 0;
        unsigned row =
            PLOT_ROWS - 1 - (unsigned)(height_of(plot, step->figure) * (PLOT_ROWS - 1) + 0.5);

        plot->cells[row][(unsigned)(x * (PLOT_COLUMNS - 1))] = !step->is_told ? '?'
                                                               : step->holds  ? 'o'
                                                                              : 'x';
    }
}

static void
add_plot(struct load_sheet *sheet, const struct load_run *run)
{
    struct plot plot = {0};
    struct load_threshold condition;

    load_threshold_parse(&condition, run->plan->find);
    find_bounds(&plot, run);
    draw_plot(&plot, run);
    for (unsigned row = 0; row < PLOT_ROWS; row++) {
        const char *label = "";

        if (row == 0)
            label = load_threshold_text(&condition, plot.high);
        else if (row == PLOT_ROWS - 1)
            label = load_threshold_text(&condition, plot.low);
        load_sheet_begin(sheet, LOAD_WEIGHT_PLOT, LOAD_PAINT_NONE);
        load_sheet_add(sheet, "%*s |%s", LABEL_WIDTH, label, plot.cells[row]);
    }
    load_sheet_begin(sheet, LOAD_WEIGHT_PLOT, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "%*s 0%*s/s   o holds  x does not", LABEL_WIDTH, "", PLOT_COLUMNS - 2,
                   load_number_text(plot.rate_max));
}

static void
add_find(struct load_sheet *sheet, const struct load_run *run)
{
    if (run->plan->find == NULL)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED,
                     run->found_rate > 0 ? LOAD_PAINT_GOOD : LOAD_PAINT_BAD);
    if (run->found_rate > 0)
        load_sheet_add(sheet, "found     %.*f/s is the highest rate that held %s, of %u tried",
                       run->found_rate < 10, run->found_rate, run->plan->find, run->steps_number);
    else if (run->is_untold)
        load_sheet_add(
            sheet,
            "found     could not tell which rate holds %s: too few replies at low rates; "
            "use a longer -d",
            run->plan->find);
    else
        load_sheet_add(sheet, "found     no rate held %s, of %u tried", run->plan->find,
                       run->steps_number);
    if (!isinf(run->missed_rate) && run->missed_rate > 0 && (run->found_rate > 0 || run->is_untold))
        load_sheet_item(sheet, "%.*f/s did not", run->missed_rate < 10, run->missed_rate);
    if (run->steps_number > 1)
        add_plot(sheet, run);
}

/* Add a line about the parts that made the load together. The banner at the top names those that
 * did not keep up. */
static void
add_parts(struct load_sheet *sheet, const struct load_run *run)
{
    unsigned kept_up = 0;
    double lowest = HUGE_VAL, highest = 0;
    uint64_t clock_ns = 0;

    if (run->parts == NULL)
        return;
    for (unsigned i = 0; i < run->parts_number; i++) {
        const struct load_part *part = &run->parts[i];

        kept_up += part->verdict.number == 0;
        lowest = fmin(lowest, part->rate);
        highest = fmax(highest, part->rate);
        clock_ns = part->clock_ns > clock_ns ? part->clock_ns : clock_ns;
    }
    load_sheet_begin(sheet, LOAD_WEIGHT_CLIENT, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "parts     %u of %u kept up", kept_up, run->parts_number);
    load_sheet_item(sheet, "%s/s", load_number_text(lowest));
    load_sheet_add(sheet, " to %s/s each", load_number_text(highest));
    if (clock_ns > 0)
        load_sheet_item(sheet, "clocks within %s", load_time_text(clock_ns));
}

static void
add_trend(struct load_sheet *sheet, const struct load_run *run)
{
    struct load_trend trend;

    load_trend_tell(&trend, run->plan, run->total);
    if (trend.figure == NULL)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED, LOAD_PAINT_BAD);
    if (strcmp(trend.figure, "rate") == 0)
        load_sheet_add(
            sheet, "trend     %s went from %.0f/s to %.0f/s while it was measured:", trend.figure,
            trend.first / run->trials_number, trend.last / run->trials_number);
    else
        load_sheet_add(sheet,
                       "trend     %s went from %s to %s while it was measured:", trend.figure,
                       load_time_text((uint64_t)trend.first), load_time_text((uint64_t)trend.last));
    load_sheet_words(sheet, "leave out a warm-up (--warmup auto), or see what grows");
}

void
load_summary_judge(struct load_sheet *sheet, const struct load_run *run)
{
    add_local_hint(sheet, run->plan);
    add_trend(sheet, run);
    add_parts(sheet, run);
    add_trials_row(sheet, run);
    add_until_ci(sheet, run);
    add_noise(sheet, run);
    add_thresholds(sheet, run);
    add_fanout(sheet, run);
    add_find(sheet, run);
}
