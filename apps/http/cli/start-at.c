/* SPDX-License-Identifier: MIT
 *
 * Parsing --start-at and --shard.
 */
#include "start-at.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_S 86400.0

/* Parse digits with or without a fraction, and nothing else. */
static bool
parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return *text >= '0' && *text <= '9' && *end == '\0' &&
           text[strspn(text, "0123456789.")] == '\0';
}

/* Parse HH:MM:SS[.fraction] of today, local time, into seconds since 1970. */
static bool
parse_clock(const char *text, uint64_t now_ns, double *seconds)
{
    time_t now = (time_t)(now_ns / 1000000000);
    struct tm local;
    int length = 0;
    double fraction = 0;
    bool is_good;

    localtime_r(&now, &local);
    is_good =
        sscanf(text, "%2d:%2d:%2d%n", &local.tm_hour, &local.tm_min, &local.tm_sec, &length) == 3 &&
        local.tm_hour >= 0 && local.tm_hour < 24 && local.tm_min >= 0 && local.tm_min < 60 &&
        local.tm_sec >= 0 && local.tm_sec <= 60;
    if (is_good && text[length] == '.')
        is_good = parse_seconds(text + length + 1, &fraction) &&
                  sscanf(text + length, "%lf", &fraction) == 1;
    else
        is_good = is_good && text[length] == '\0';
    local.tm_isdst = -1;
    *seconds = (double)mktime(&local) + fraction;
    return is_good;
}

const char *
load_start_at_parse(const char *text, uint64_t now_ns, uint64_t *at_ns)
{
    double now_s = (double)now_ns / 1e9;
    double at_s = 0;
    bool is_good;

    if (*text == '+') {
        is_good = parse_seconds(text + 1, &at_s);
        at_s += now_s;
    } else {
        is_good = strchr(text, ':') != NULL ? parse_clock(text, now_ns, &at_s)
                                            : parse_seconds(text, &at_s);
    }
    if (!is_good)
        return "it must be seconds since 1970, HH:MM:SS of today, or +SECONDS from now";
    if (at_s <= now_s)
        return "that time is past; give a later one";
    if (at_s > now_s + DAY_S)
        return "that is more than a day ahead; give seconds, not milliseconds";
    *at_ns = (uint64_t)(at_s * 1e9);
    return NULL;
}

const char *
load_shard_parse(const char *text, struct load_plan *plan)
{
    unsigned nth = 0, of = 0;
    int length = 0;

    if (sscanf(text, "%4u/%4u%n", &nth, &of, &length) != 2 || text[length] != '\0' || nth < 1 ||
        nth > of || of > LOAD_SHARDS_MAX)
        return "it must be K/N, the K-th of N parts, such as 2/4, with up to 256 parts";
    plan->shard = nth - 1;
    plan->shards = of > 1 ? of : 0;
    memset(plan->has_shard, 0, sizeof(plan->has_shard));
    plan->has_shard[plan->shard] = true;
    return NULL;
}
