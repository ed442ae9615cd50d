/* SPDX-License-Identifier: MIT
 *
 * Values on the command line: numbers, sizes, times, and the messages that refuse them.
 */
#include "command-line.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCALE_MAX 1000000000ul /* up to nine digits after the decimal point */

__extension__ typedef unsigned __int128 wide;

struct unit {
    const char *name;
    unsigned long factor;
};

static const struct unit durations[] = {
    {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};

static const struct unit times[] = {
    {"", 1000000000},  {"ns", 1},          {"us", 1000},         {"ms", 1000000},
    {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}, {"d", 86400000000000},
    {NULL, 0},
};

static const struct unit counts[] = {
    {"", 1}, {"k", 1000}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0},
};

static const struct unit sizes[] = {
    {"", 1ul},          {"B", 1ul},       {"k", 1ul << 10},   {"K", 1ul << 10},
    {"KiB", 1ul << 10}, {"m", 1ul << 20}, {"M", 1ul << 20},   {"MiB", 1ul << 20},
    {"g", 1ul << 30},   {"G", 1ul << 30}, {"GiB", 1ul << 30}, {NULL, 0},
};

const char *
command_line_decimal(const char *text, unsigned long *digits, unsigned long *scale)
{
    bool is_fraction = false;
    bool is_number = false;

    *digits = 0;
    *scale = 1;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !is_fraction); text++) {
        if (*text == '.') {
            is_fraction = true;
            continue;
        }
        is_number = true;
        if (is_fraction && *scale == SCALE_MAX)
            continue;
        if (is_fraction)
            *scale *= 10;
        if (__builtin_mul_overflow(*digits, 10, digits) ||
            __builtin_add_overflow(*digits, (unsigned long)(*text - '0'), digits))
            return NULL;
    }
    return is_number ? text : NULL;
}

/* Parse a text like "1.5m" into a whole number. *is_cut: a fraction was cut off. False: the text is
 * no number, has an unknown unit, or is too large. */
static bool
parse_and_cut(const char *text, const struct unit *unit, unsigned long *value, bool *is_cut)
{
    unsigned long digits;
    unsigned long scale;
    const char *rest = command_line_decimal(text, &digits, &scale);
    wide exact;

    *is_cut = false;
    if (rest == NULL)
        return false;
    while (unit->name != NULL && strcmp(unit->name, rest) != 0)
        unit++;
    exact = (wide)digits * unit->factor;
    *is_cut = exact % scale > 0;
    exact /= scale;
    *value = (unsigned long)exact;
    return unit->name != NULL && exact <= ULONG_MAX;
}

static bool
parse_with_unit(const char *text, const struct unit *unit, unsigned long *value)
{
    bool is_cut;

    return parse_and_cut(text, unit, value, &is_cut);
}

bool
command_line_number(const struct command_line *line, const char *what, unsigned long min,
                    unsigned long max, unsigned long *value)
{
    bool is_digits = *optarg != '\0' && optarg[strspn(optarg, "0123456789")] == '\0';

    errno = 0;
    *value = strtoul(optarg, NULL, 10);
    if (is_digits && errno == 0 && *value >= min && *value <= max)
        return true;
    fprintf(stderr, "%s: %s%s is '%s'; it must be a number from %lu to %lu. Try --help.\n",
            line->program, command_line_place, what, optarg, min, max);
    return false;
}

bool
command_line_duration(const struct command_line *line, const char *what, unsigned long min_ms,
                      unsigned long max_ms, unsigned long *value_ms)
{
    if (parse_with_unit(optarg, durations, value_ms) && *value_ms >= min_ms && *value_ms <= max_ms)
        return true;
    fprintf(
        stderr,
        "%s: %s%s is '%s'; it must be from %.12g to %.12g seconds, such as 10, 0.5, 500ms or 2m. "
        "Try --help.\n",
        line->program, command_line_place, what, optarg, (double)min_ms / 1000,
        (double)max_ms / 1000);
    return false;
}

bool
command_line_time(const struct command_line *line, const char *what, unsigned long min_ns,
                  unsigned long max_ns, unsigned long *value_ns)
{
    if (parse_with_unit(optarg, times, value_ns) && *value_ns >= min_ns && *value_ns <= max_ns)
        return true;
    fprintf(
        stderr,
        "%s: %s%s is '%s'; it must be from %.12g to %.12g seconds, such as 10, 500ms, 20us or 2m. "
        "Try --help.\n",
        line->program, command_line_place, what, optarg, (double)min_ns / 1e9,
        (double)max_ns / 1e9);
    return false;
}

bool
command_line_count(const struct command_line *line, const char *what, unsigned long min,
                   unsigned long max, unsigned long *value)
{
    bool is_cut;

    if (parse_and_cut(optarg, counts, value, &is_cut) && !is_cut && *value >= min && *value <= max)
        return true;
    fprintf(stderr, "%s: %s%s is '%s'; it must be a %snumber from %lu to %lu%s. Try --help.\n",
            line->program, command_line_place, what, optarg, is_cut ? "whole " : "", min, max,
            max >= 1500000 ? ", such as 500, 10k or 1.5M" : "");
    return false;
}

/* Write a size with the largest unit that divides it: 1536 is "1536", 65536 is "64k". */
static void
format_size(unsigned long size, char *text, size_t room)
{
    static const char letters[][2] = {"", "k", "m", "g"};
    unsigned i = 0;

    while (i < 3 && size != 0 && size % 1024 == 0) {
        size /= 1024;
        i++;
    }
    snprintf(text, room, "%lu%s", size, letters[i]);
}

bool
command_line_size(const struct command_line *line, const char *what, unsigned long min,
                  unsigned long max, unsigned long *value)
{
    char least[32];
    char most[32];

    if (parse_with_unit(optarg, sizes, value) && *value >= min && *value <= max)
        return true;
    format_size(min, least, sizeof(least));
    format_size(max, most, sizeof(most));
    fprintf(stderr,
            "%s: %s%s is '%s'; it must be from %s to %s bytes: 1m is 1MiB or 1024k or 1048576. "
            "Try --help.\n",
            line->program, command_line_place, what, optarg, least, most);
    return false;
}
