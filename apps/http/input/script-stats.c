/* SPDX-License-Identifier: MIT
 *
 * The arguments of a script's done(): latency, requests, summary.
 */
#include <math.h>
#include <string.h>

#include "script-private.h"

/* The arguments latency and requests of done() are of this type: sorted values, each with its
 * count. */
static const char type_name[] = "wrk.stats";

struct point {
    lua_Integer value;
    uint64_t count;
};

struct stats {
    lua_Integer min;
    lua_Integer max;
    double mean;
    double deviation;
    uint64_t count; /* the sum of all counts */
    unsigned number;
    struct point points[];
};

static const struct stats *
check_stats(lua_State *L)
{
    return luaL_checkudata(L, 1, type_name);
}

static int
l_percentile(lua_State *L)
{
    const struct stats *stats = check_stats(L);
    double wanted = ceil(luaL_checknumber(L, 2) / 100 * (double)stats->count);
    double seen = 0;
    lua_Integer value = 0;

    for (unsigned i = 0; i < stats->number && (i == 0 || seen < wanted); i++) {
        seen += (double)stats->points[i].count;
        value = stats->points[i].value;
    }
    lua_pushinteger(L, value);
    return 1;
}

/* latency(i) returns the ith value, and how often it occurred. */
static int
point_at(lua_State *L)
{
    const struct stats *stats = check_stats(L);
    lua_Integer i = luaL_checkinteger(L, 2);

    if (i < 1 || i > (lua_Integer)stats->number)
        return 0;
    lua_pushinteger(L, stats->points[i - 1].value);
    lua_pushinteger(L, (lua_Integer)stats->points[i - 1].count);
    return 2;
}

static int
number_of_points(lua_State *L)
{
    lua_pushinteger(L, check_stats(L)->number);
    return 1;
}

static int
get_stats_field(lua_State *L)
{
    const struct stats *stats = check_stats(L);
    const char *name = luaL_checkstring(L, 2);

    if (strcmp(name, "min") == 0)
        lua_pushinteger(L, stats->min);
    else if (strcmp(name, "max") == 0)
        lua_pushinteger(L, stats->max);
    else if (strcmp(name, "mean") == 0)
        lua_pushnumber(L, stats->mean);
    else if (strcmp(name, "stdev") == 0)
        lua_pushnumber(L, stats->deviation);
    else if (strcmp(name, "percentile") == 0)
        lua_pushcfunction(L, l_percentile);
    else
        lua_pushnil(L);
    return 1;
}

static struct stats *
push_stats(lua_State *L, unsigned number)
{
    static const luaL_Reg methods[] = {{"__call", point_at},
                                       {"__index", get_stats_field},
                                       {"__len", number_of_points},
                                       {NULL, NULL}};
    size_t size = sizeof(struct stats) + number * sizeof(struct point);
    struct stats *stats = lua_newuserdatauv(L, size, 0);

    memset(stats, 0, size);
    luaL_newmetatable(L, type_name);
    luaL_setfuncs(L, methods, 0);
    lua_setmetatable(L, -2);
    return stats;
}

/* Push the response times, in us, as wrk does. */
static void
push_latency(lua_State *L, const struct load_histogram *histogram)
{
    struct load_bucket bucket;
    struct stats *stats;
    unsigned number = 0;

    for (unsigned at = 0; load_histogram_next(histogram, &at, &bucket);)
        number++;
    stats = push_stats(L, number);
    stats->min = (lua_Integer)(histogram->min_ns / 1000);
    stats->max = (lua_Integer)(histogram->max_ns / 1000);
    stats->mean = load_histogram_mean_ns(histogram) / 1000;
    stats->deviation = load_histogram_deviation_ns(histogram) / 1000;
    stats->count = histogram->count;
    for (unsigned at = 0; load_histogram_next(histogram, &at, &bucket);) {
        uint64_t ns = bucket.to_ns < histogram->max_ns ? bucket.to_ns : histogram->max_ns;

        stats->points[stats->number++] = (struct point){(lua_Integer)(ns / 1000), bucket.count};
    }
}

static void
insert_point(struct stats *stats, lua_Integer value)
{
    unsigned at = stats->number++;

    for (; at > 0 && stats->points[at - 1].value > value; at--)
        stats->points[at] = stats->points[at - 1];
    stats->points[at] = (struct point){value, 1};
}

/* Push the argument requests: it has the rates of the trials, where wrk has the rates of its
 * threads. */
static void
push_rates(lua_State *L, const struct load_run *run)
{
    struct stats *stats = push_stats(L, run->trials_number);
    double sum = 0, squares = 0;

    for (unsigned i = 0; i < run->trials_number; i++) {
        double rate = run->trials[i].figures[LOAD_FIGURE_RATE];

        insert_point(stats, (lua_Integer)rate);
        sum += rate;
    }
    if (stats->number == 0)
        return;
    stats->count = stats->number;
    stats->min = stats->points[0].value;
    stats->max = stats->points[stats->number - 1].value;
    stats->mean = sum / stats->number;
    for (unsigned i = 0; i < run->trials_number; i++)
        squares += pow(run->trials[i].figures[LOAD_FIGURE_RATE] - stats->mean, 2);
    stats->deviation = sqrt(squares / stats->number);
}

static void
set_stats_number(lua_State *L, const char *name, uint64_t number)
{
    lua_pushinteger(L, (lua_Integer)number);
    lua_setfield(L, -2, name);
}

static void
push_errors(lua_State *L, const struct load_result *total)
{
    const uint64_t *ends = total->ends;
    uint64_t connect = 0;

    for (unsigned i = 0; i < LOAD_UNOPENEDS; i++)
        connect += i == LOAD_UNOPENED_UNTRIED ? 0 : total->unopened[i];
    lua_newtable(L);
    set_stats_number(L, "connect", connect);
    set_stats_number(L, "read",
                     ends[LOAD_END_SHORT_BODY] + ends[LOAD_END_BAD_REPLY] +
                         ends[LOAD_END_CLOSED_EARLY] + ends[LOAD_END_RESET]);
    set_stats_number(L, "write", ends[LOAD_END_OTHER]);
    set_stats_number(L, "status", ends[LOAD_END_BAD_STATUS]);
    set_stats_number(L, "timeout", ends[LOAD_END_TIMED_OUT]);
    set_stats_number(L, "check",
                     ends[LOAD_END_BAD_FIELD] + ends[LOAD_END_BAD_BODY] +
                         ends[LOAD_END_FAILED_CHECK]);
}

/* Push the summary. It counts requests that got a complete reply, good or not. Times are in us. */
static void
push_summary(lua_State *L, const struct load_run *run)
{
    const uint64_t *ends = run->total->ends;
    uint64_t duration_ns = 0;

    for (unsigned i = 0; i < run->trials_number; i++)
        duration_ns += run->trials[i].result->elapsed_ns;
    lua_newtable(L);
    set_stats_number(L, "duration", duration_ns / 1000);
    set_stats_number(L, "requests",
                     ends[LOAD_END_OK] + ends[LOAD_END_BAD_STATUS] + ends[LOAD_END_BAD_FIELD] +
                         ends[LOAD_END_BAD_BODY] + ends[LOAD_END_FAILED_CHECK]);
    set_stats_number(L, "bytes", run->total->bytes_received);
    push_errors(L, run->total);
    lua_setfield(L, -2, "errors");
}

void
load_script_push_stats(lua_State *L, const struct load_run *run)
{
    push_summary(L, run);
    push_latency(L, &run->total->response);
    push_rates(L, run);
}
