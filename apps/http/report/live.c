/* SPDX-License-Identifier: MIT
 *
 * The live view on a terminal, and the progress lines elsewhere.
 */
#include "live.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "sxe-util.h"
#include "text.h"

#define NS          1000000000u
#define REDRAW_NS   (NS / 10)
#define SECONDS_MAX 60u /* most values in the sparkline */
#define WIDTH       80u /* how many columns to use if the terminal's width is not known */
#define WIDTH_MIN   20u
#define WIDTH_MAX   200u
#define LINE_SIZE   (WIDTH_MAX * LOAD_SPARK_BYTES + 1)
#define LINES       4u
#define NOISE_S     0.01 /* by how many seconds a wake-up may be late or early */
#define BAR_COLUMNS 20u

/* The counts at one moment. */
struct look {
    uint64_t at_ns;
    uint64_t ok;
    uint64_t errors;
};

struct load_live {
    const struct load_plan *plan;
    FILE *err;
    bool is_terminal;
    bool is_colored;
    unsigned width;
    unsigned drawn;     /* how many lines are on the terminal now */
    struct look second; /* the counts when the last full second ended */
    double rate;        /* good replies a second, in the last full second */
    double error_rate;
    unsigned seconds;             /* how many elements of `rates` are used */
    double rates[SECONDS_MAX];    /* the rate in each full second, the oldest first */
    struct load_histogram last;   /* response times in the last full second */
    struct load_histogram before; /* all response times until the last full second ended */
};

/* How many columns a line may fill: one less than the terminal has, because a full line may move
 * the cursor to the next line. */
static unsigned
terminal_width(FILE *err)
{
    unsigned width = load_terminal_columns(err);

    if (width == 0)
        width = WIDTH;
    width = width < WIDTH_MIN ? WIDTH_MIN : width;
    return width < WIDTH_MAX ? width - 1 : WIDTH_MAX;
}

struct load_live *
load_live_new(const struct load_plan *plan, FILE *err, bool is_terminal)
{
    struct load_live *live = plan->quiet ? NULL : calloc(1, sizeof(*live));

    if (live == NULL)
        return NULL;
    live->plan = plan;
    live->err = err;
    live->is_terminal = is_terminal && load_can_move_cursor();
    live->is_colored = live->is_terminal && load_wants_colour();
    return live;
}

uint64_t
load_live_period_ns(const struct load_live *live)
{
    return live != NULL && live->is_terminal ? REDRAW_NS : NS;
}

/* ---- Figures of each second ---- */

static void
keep_second(struct load_live *live, const struct load_result *sum, uint64_t now_ns)
{
    live->second = (struct look){
        .at_ns = now_ns,
        .ok = sum->ends[LOAD_END_OK],
        .errors = load_result_errors(sum),
    };
    live->before = sum->response;
}

static void
keep_rate(struct load_live *live)
{
    if (live->seconds == SECONDS_MAX) {
        memmove(live->rates, live->rates + 1, (SECONDS_MAX - 1) * sizeof(live->rates[0]));
        live->seconds--;
    }
    live->rates[live->seconds++] = live->rate;
}

/* Compute the figures of the time from the end of the last full second until now. */
static void
compute_last_second(struct load_live *live, const struct load_result *sum, uint64_t now_ns)
{
    double seconds = (double)(now_ns - live->second.at_ns) / NS;

    live->rate = load_per_second(sum->ends[LOAD_END_OK] - live->second.ok, seconds);
    live->error_rate = load_per_second(load_result_errors(sum) - live->second.errors, seconds);
    live->last = sum->response;
    load_histogram_subtract(&live->last, &live->before);
}

/* If a second has passed since the end of the last full second, compute its figures. Returns
 * whether it has. */
static bool
take_second(struct load_live *live, const struct load_result *sum, uint64_t now_ns)
{
    if (live->second.at_ns == 0) {
        keep_second(live, sum, now_ns);
        return false;
    }
    /* The wake-up at the end of a second may come a little early. */
    if (now_ns - live->second.at_ns < NS - REDRAW_NS / 2) {
        /* Until the first second has passed, show the figures so far. */
        if (live->seconds == 0)
            compute_last_second(live, sum, now_ns);
        return false;
    }
    compute_last_second(live, sum, now_ns);
    keep_rate(live);
    keep_second(live, sum, now_ns);
    return true;
}

/* Which part of the run is done, from 0 to 1; below 0: it is not known, as in a search. */
static double
part_done(const struct load_plan *plan, const struct load_result *sum, uint64_t now_ns)
{
    double done = -1;

    if (sum->started_ns == 0 || sum->started_ns > now_ns)
        return done;
    if (plan->stop == LOAD_STOP_TIME && plan->find == NULL)
        done = (double)(now_ns - sum->started_ns) / (double)plan->duration_ns;
    else if (plan->stop == LOAD_STOP_TOTAL)
        done = (double)(sum->sent + load_result_skipped(sum)) /
               (double)load_plan_share(plan, plan->requests_max);
    else if (plan->stop == LOAD_STOP_PER_SOCKET)
        done = (double)(sum->sent + load_result_skipped(sum)) /
               ((double)plan->queries * (double)load_plan_share(plan, plan->sockets));
    return done > 1 ? 1 : done;
}

/* ---- Words ---- */

static void add_live_text(char *line, const char *format, ...) SXE_PRINTF(2, 3);

static void
add_live_text(char *line, const char *format, ...)
{
    size_t used = strlen(line);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line + used, LINE_SIZE - used, format, arguments);
    va_end(arguments);
}

static void
add_progress(char *line, const struct load_live *live, const struct load_result *sum,
             uint64_t now_ns)
{
    double done = part_done(live->plan, sum, now_ns);
    double elapsed_s = sum->started_ns < now_ns ? (double)(now_ns - sum->started_ns) / NS : 0;

    if (sum->started_ns == 0) {
        add_live_text(line, "connecting: %llu of %llu connections", (unsigned long long)sum->opened,
                      (unsigned long long)load_plan_share(live->plan, live->plan->sockets));
        return;
    }
    add_live_text(line, "%.0f s", floor(elapsed_s + NOISE_S));
    if (done > 0)
        add_live_text(line, ", %.0f %% done, %.0f s left", done * 100,
                      ceil(fmax(elapsed_s / done - elapsed_s - NOISE_S, 0)));
}

static void
add_percentiles(char *line, const struct load_live *live)
{
    if (live->last.count > 0)
        add_live_text(line, "p50 %s  p95 %s  p99 %s  max %s",
                      load_percentile_text(&live->last, 0.5),
                      load_percentile_text(&live->last, 0.95),
                      load_percentile_text(&live->last, 0.99), load_max_text(&live->last));
    else
        add_live_text(line, "no reply");
}

static void
add_states(char *line, const struct load_result *sum)
{
    static const char *const names[] = {
#define TEXT(enumerator, text) text,
        LOAD_EACH_SOCKET_STATE(TEXT)
#undef TEXT
    };

    for (unsigned state = 0; state < LOAD_SOCKET_STATES; state++)
        if (sum->in_state[state] > 0)
            add_live_text(line, "  %s %llu", names[state],
                          (unsigned long long)sum->in_state[state]);
    if (sum->waiting > 0)
        add_live_text(line, "  requests waiting %llu", (unsigned long long)sum->waiting);
}

/* ---- One line a second ---- */

static void
print_second(const struct load_live *live, const struct load_result *sum, uint64_t now_ns)
{
    char line[LINE_SIZE] = "";

    add_progress(line, live, sum, now_ns);
    if (sum->started_ns != 0) {
        add_live_text(line, ": %s/s  ", load_number_text(live->rate));
        add_percentiles(line, live);
        add_live_text(line, "  errors %llu", (unsigned long long)load_result_errors(sum));
        if (load_result_skipped(sum) > 0)
            add_live_text(line, "  skipped %llu", (unsigned long long)load_result_skipped(sum));
    }
    fprintf(live->err, "%s\n", line);
    fflush(live->err);
}

/* ---- On a terminal ---- */

static void
add_bar(char *line, double done)
{
    if (done < 0)
        return;
    add_live_text(line, "  [");
    for (unsigned i = 0; i < BAR_COLUMNS; i++)
        add_live_text(line, "%s", i < done * BAR_COLUMNS ? "#" : ".");
    add_live_text(line, "]");
}

/* Add the rates of the latest seconds, as many as the line has room for. */
static void
add_sparkline(char *line, const struct load_live *live)
{
    char spark[SECONDS_MAX * LOAD_SPARK_BYTES + 1];
    unsigned taken = load_columns(line);
    unsigned room = live->width > taken ? live->width - taken : 0;
    unsigned number = live->seconds < room ? live->seconds : room;

    load_sparkline(spark, sizeof(spark), live->rates + live->seconds - number, number);
    add_live_text(line, "%s", spark);
}

static void
print_live_line(struct load_live *live, char *line, bool is_bad)
{
    bool is_red = is_bad && live->is_colored;

    load_clip(line, live->width);
    fprintf(live->err, "%s%s%s\033[K\n", is_red ? "\033[31m" : "", line, is_red ? "\033[0m" : "");
    live->drawn++;
}

static void
redraw_view(struct load_live *live, const struct load_result *sum, uint64_t now_ns)
{
    char lines[LINES][LINE_SIZE] = {""};
    uint64_t errors = load_result_errors(sum);

    live->width = terminal_width(live->err);
    if (live->drawn > 0)
        fprintf(live->err, "\r\033[%uA", live->drawn);
    live->drawn = 0;
    add_live_text(lines[0], "%s  ", load_model_text(live->plan->model));
    add_progress(lines[0], live, sum, now_ns);
    add_bar(lines[0], part_done(live->plan, sum, now_ns));
    add_live_text(lines[1], "rate     %s/s  ", load_number_text(live->rate));
    add_sparkline(lines[1], live);
    add_live_text(lines[2], "response ");
    add_percentiles(lines[2], live);
    add_live_text(lines[2], "  errors %llu", (unsigned long long)errors);
    if (live->error_rate > 0)
        add_live_text(lines[2], " (%s/s)", load_number_text(live->error_rate));
    add_live_text(lines[2], "  skipped %llu", (unsigned long long)load_result_skipped(sum));
    add_live_text(lines[3], "connections");
    add_states(lines[3], sum);
    for (unsigned i = 0; i < LINES; i++)
        print_live_line(live, lines[i], i == 2 && errors > 0);
    fflush(live->err);
}

void
load_live_show(struct load_live *live, const struct load_result *sum, uint64_t now_ns)
{
    bool is_full;

    if (live == NULL)
        return;
    is_full = take_second(live, sum, now_ns);
    if (live->is_terminal)
        redraw_view(live, sum, now_ns);
    else if (is_full)
        print_second(live, sum, now_ns);
}

void
load_live_delete(struct load_live *live)
{
    if (live == NULL)
        return;
    if (live->drawn > 0)
        fprintf(live->err, "\r\033[%uA\033[J", live->drawn);
    fflush(live->err);
    free(live);
}
