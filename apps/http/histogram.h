/* SPDX-License-Identifier: MIT
 *
 * What: how often which duration occurred, in constant memory. Place: load.c records, report.c
 * asks.
 *
 * Shape: log-linear, one array. Below 128 ns a bucket is one ns wide; above, each power of two is
 * cut into 64 buckets, so that a bucket is at most 1/64 of its value wide, whatever the value. Two
 * histograms are added by adding their buckets.
 *
 *     ns      0 1 2 .. 127 | 128-129 .. 254-255 | 256-259 .. 508-511 | ...
 *     bucket  0 1 2 .. 127 | 128     .. 191     | 192     .. 255     | ...
 */
#ifndef HTTP_HISTOGRAM_H
#define HTTP_HISTOGRAM_H

#include <stdint.h>

#define HTTP_HISTOGRAM_BUCKETS (59 * 64)

/* All zero is empty. */
struct http_histogram {
    uint64_t count;                           /* ro */
    uint64_t max_ns;                          /* ro: exact */
    uint64_t buckets[HTTP_HISTOGRAM_BUCKETS]; /* private */
};

void http_histogram_record(struct http_histogram *histogram, uint64_t ns);

/* The duration that a fraction (0 to 1) of all did not exceed, at most 1/64 too long; 0 when there
 * is none. */
uint64_t http_histogram_quantile(const struct http_histogram *histogram, double fraction);

#endif
