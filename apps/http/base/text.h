/* SPDX-License-Identifier: MIT
 *
 * What: numbers as people read them, widths on a terminal, and a hash of texts. Place: the
 * summary and the live view; replays and scripts. A returned text belongs to this thread, and stays
 * valid until the sixteenth call after it.
 */
#ifndef LOAD_TEXT_H
#define LOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"

#define LOAD_SPARK_BYTES 3 /* bytes that each value of a sparkline takes */

/* A time with three digits and its unit: "41.0 us", "3.10 ms", "1.50 s". */
const char *load_time_text(uint64_t ns);

/* Like load_time_text, but with "> " before the time if it is only a lower bound. */
const char *load_bound_text(uint64_t ns, bool is_at_least);

/* A percentile, and the longest time, of a histogram: "n/a" if fewer than ten samples are beyond
 * the percentile; with "> " if it is a lower bound. */
const char *load_percentile_text(const struct load_histogram *histogram, double fraction);
const char *load_max_text(const struct load_histogram *histogram);

/* A count or a rate with three digits, from a thousand on with k, M or G: "7", "59.2k". */
const char *load_number_text(double value);

/* A time that a user chose, exact and as short as possible: "10 s", "1.5 ms". */
const char *load_duration_text(uint64_t ns);

/* Write a block character for each value. The block's height shows how large the value is, compared
 * with the largest. size must be more than number * LOAD_SPARK_BYTES. */
void load_sparkline(char *text, size_t size, const double *values, unsigned number);

/* The columns that the text takes on a terminal: one for each UTF-8 character. */
unsigned load_columns(const char *text);

/* The hash FNV (Fowler, Noll, Vo) of a text. It is fast, but an attacker can find texts that have
 * equal hashes. */
uint64_t load_text_hash(const char *text, size_t length);

/* Cut the text to at most `columns` columns, 3 or more; a cut text ends with "...". */
void load_clip(char *text, unsigned columns);

/* The terminal's width; 0: the file is no terminal, or its width is not known. */
unsigned load_terminal_columns(FILE *file);

/* Read from the environment whether the terminal can redraw lines (TERM), and whether the user also
 * wants colours (NO_COLOR: https://no-color.org). */
bool load_can_move_cursor(void);
bool load_wants_colour(void);

#endif
