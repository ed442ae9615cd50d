/* SPDX-License-Identifier: MIT
 *
 * The response times in ms, in the text format that HdrHistogram's outputPercentileDistribution
 * writes. As in wrk2, there are five lines for each halving of the distance to 100 %.
 */
#include <math.h>

#include "output.h"

#define MS               1e6
#define LINES_A_HALF     5
#define SUB_BUCKETS      2048
#define HISTOGRAM_HALVES 22

/* The percentile of the next line, in percent. The steps become half as long whenever the distance
 * to 100 % has halved. */
static double
next_level(double level)
{
    double halves = floor(log2(100 / (100 - level))) + 1;

    return level + 100 / (LINES_A_HALF * exp2(halves));
}

static void
write_level(FILE *out, const struct load_bucket *bucket, double level, uint64_t seen)
{
    fprintf(out, "%12.3f %2.12f %10llu", (double)bucket->to_ns / MS, level / 100,
            (unsigned long long)seen);
    if (level < 100)
        fprintf(out, " %14.2f", 1 / (1 - level / 100));
    putc('\n', out);
}

static void
write_levels(FILE *out, const struct load_histogram *histogram)
{
    struct load_bucket bucket;
    unsigned at = 0;
    uint64_t seen = 0;
    double level = 0;

    while (load_histogram_next(histogram, &at, &bucket)) {
        seen += bucket.count;
        if (seen == histogram->count) {
            write_level(out, &bucket, level, seen);
            write_level(out, &bucket, 100, seen);
        } else {
            for (; 100 * (double)seen / (double)histogram->count >= level;
                 level = next_level(level))
                write_level(out, &bucket, level, seen);
        }
    }
}

int
load_output_hgrm(FILE *out, const struct load_run *run)
{
    const struct load_histogram *histogram = &run->total->response;

    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    write_levels(out, histogram);
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
            load_histogram_mean_ns(histogram) / MS, load_histogram_deviation_ns(histogram) / MS);
    fprintf(out, "#[Max     = %12.3f, Total count    = %12llu]\n", (double)histogram->max_ns / MS,
            (unsigned long long)histogram->count);
    if (histogram->censored > 0)
        fprintf(out, "#[Failed  = %12llu, counted as   >= %12.3f]\n",
                (unsigned long long)histogram->censored, (double)histogram->censored_from_ns / MS);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HISTOGRAM_HALVES, SUB_BUCKETS);
    return load_output_finish(out);
}
