/* SPDX-License-Identifier: MIT
 *
 * What: numbers as people read them, what a terminal takes, and a hash of texts. Place: the
 * summary and the live view; replays and scripts. A text belongs to this thread, and is good until
 * the sixteenth call from now.
 */
#ifndef LOAD_TEXT_H
#define LOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"

#define LOAD_SPARK_BYTES 3 /* a value of a sparkline */

/* A time with three digits and its unit: "41.0 us", "3.10 ms", "1.50 s". */
const char *load_time_text(uint64_t ns);

/* load_time_text, with "> " before it if the time is a lower bound only. */
const char *load_bound_text(uint64_t ns, bool is_at_least);

/* A percentile, and the longest time, of a histogram: "n/a" if fewer than ten samples are beyond
 * the percentile; with "> " if it is a lower bound. */
const char *load_percentile_text(const struct load_histogram *histogram, double fraction);
const char *load_max_text(const struct load_histogram *histogram);

/* A count or a rate with three digits, from a thousand on with k, M or G: "7", "59.2k". */
const char *load_number_text(double number);

/* A time that somebody chose, as short as it can be said: "10 s", "1.5 ms". */
const char *load_duration_text(uint64_t ns);

/* Block characters whose heights are the values between 0 and the highest; size is more than number
 * * LOAD_SPARK_BYTES. */
void load_sparkline(char *text, size_t size, const double *values, unsigned number);

/* Columns on a terminal: characters of UTF-8. */
unsigned load_columns(const char *text);

/* Fowler, Noll, Vo: fast, and not for texts that somebody chose to harm a table with. */
uint64_t load_text_hash(const char *text, size_t length);

/* Cut the text so that it takes at most that many columns, 3 or more; what was cut off is "...". */
void load_clip(char *text, unsigned columns);

/* As wide as the terminal is; 0: it is none, or does not say. */
unsigned load_terminal_columns(FILE *file);

/* Read from the environment whether the terminal can redraw lines (TERM), and whether the user also
 * wants colours (NO_COLOR: https://no-color.org). */
bool load_can_move_cursor(void);
bool load_wants_colour(void);

#endif
