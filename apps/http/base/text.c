/* SPDX-License-Identifier: MIT
 *
 * Numbers and times as text, widths on a terminal, sparklines, and a hash.
 */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define TEXTS     16
#define TEXT_SIZE 24

static char *
next_text_room(void)
{
    static _Thread_local char texts[TEXTS][TEXT_SIZE];
    static _Thread_local unsigned at;

    return texts[at++ % TEXTS];
}

/* Write a number with three digits. The limits are not 10 and 100, because 9.995 would be rounded
 * to "10.00", which has four digits. */
static const char *
three_digits(double value, const char *unit)
{
    char *text = next_text_room();
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

    snprintf(text, TEXT_SIZE, "%.*f%s", decimals, value, unit);
    return text;
}

const char *
load_time_text(uint64_t ns)
{
    double us = (double)ns / 1e3;

    if (us < 999.5)
        return three_digits(us, " us");
    return us < 999.5e3 ? three_digits(us / 1e3, " ms") : three_digits(us / 1e6, " s");
}

const char *
load_bound_text(uint64_t ns, bool is_at_least)
{
    const char *time = load_time_text(ns);
    char *text;

    if (!is_at_least)
        return time;
    text = next_text_room();
    snprintf(text, TEXT_SIZE, "> %.*s", TEXT_SIZE - 3, time);
    return text;
}

const char *
load_percentile_text(const struct load_histogram *histogram, double fraction)
{
    uint64_t ns = load_histogram_quantile(histogram, fraction);

    return load_histogram_can_tell(histogram, fraction)
               ? load_bound_text(ns, load_histogram_is_at_least(histogram, ns))
               : "n/a";
}

const char *
load_max_text(const struct load_histogram *histogram)
{
    return load_bound_text(histogram->max_ns, histogram->censored > 0);
}

const char *
load_number_text(double value)
{
    char *text;

    if (value >= 999.5)
        return value < 999.5e3   ? three_digits(value / 1e3, "k")
               : value < 999.5e6 ? three_digits(value / 1e6, "M")
                                 : three_digits(value / 1e9, "G");
    if (value != floor(value))
        return three_digits(value, "");
    text = next_text_room();
    snprintf(text, TEXT_SIZE, "%.0f", value);
    return text;
}

const char *
load_duration_text(uint64_t ns)
{
    char *text = next_text_room();

    if (ns >= 1000000000)
        snprintf(text, TEXT_SIZE, "%.10g s", (double)ns / 1e9);
    else if (ns >= 1000000)
        snprintf(text, TEXT_SIZE, "%.10g ms", (double)ns / 1e6);
    else
        snprintf(text, TEXT_SIZE, "%.10g us", (double)ns / 1e3);
    return text;
}

void
load_sparkline(char *text, size_t size, const double *values, unsigned number)
{
    /* The bars of a sparkline. A value above 0 gets at least the lowest bar. */
    static const char blocks[][LOAD_SPARK_BYTES + 1] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                        "\u2585", "\u2586", "\u2587", "\u2588"};
    double highest = 0;
    size_t used = 0;

    for (unsigned i = 0; i < number; i++)
        highest = fmax(highest, values[i]);
    text[0] = '\0';
    for (unsigned i = 0; i < number; i++) {
        int block = values[i] > 0 ? (int)(values[i] / highest * 7.999) : -1;

        used += (size_t)snprintf(text + used, size - used, "%s", block < 0 ? " " : blocks[block]);
    }
}

static bool
is_first_byte(char byte)
{
    return (byte & 0xc0) != 0x80;
}

unsigned
load_columns(const char *text)
{
    unsigned columns = 0;

    for (; *text != '\0'; text++)
        columns += is_first_byte(*text);
    return columns;
}

void
load_clip(char *text, unsigned columns)
{
    unsigned seen = 0;
    char *dots = text;

    for (; *text != '\0'; text++)
        if (is_first_byte(*text) && ++seen == columns - 2)
            dots = text;
    if (seen > columns)
        memcpy(dots, "...", sizeof("..."));
}

unsigned
load_terminal_columns(FILE *file)
{
    struct winsize size = {0};

    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool
load_can_move_cursor(void)
{
    const char *terminal = getenv("TERM");

    return terminal != NULL && strcmp(terminal, "dumb") != 0;
}

bool
load_wants_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");

    return load_can_move_cursor() && (no_colour == NULL || *no_colour == '\0');
}

uint64_t
load_text_hash(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}
