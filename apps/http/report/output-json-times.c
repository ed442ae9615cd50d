/* SPDX-License-Identifier: MIT
 *
 * Writing times to the JSON: a histogram and its figures. result-read.c reads the histogram.
 */
#include "json-writer.h"
#include "output.h"
#include "sxe-util.h"

#define US 1e3

static void
write_percentiles(struct load_json *json, const struct load_histogram *histogram)
{
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++) {
        const char *name = load_percentiles[i].name;
        double fraction = load_percentiles[i].fraction;

        if (load_histogram_can_tell(histogram, fraction))
            load_json_number(json, name, (double)load_histogram_quantile(histogram, fraction) / US);
        else
            load_json_null(json, name);
    }
}

/* List the figures that are only lower bounds, because some queries failed. */
static void
write_censored(struct load_json *json, const struct load_histogram *histogram)
{
    static const char *const extremes[] = {"mean", "max"};
    bool has_some = histogram->censored > 0;

    load_json_count(json, "censored", histogram->censored);
    if (has_some)
        load_json_number(json, "censored_from", (double)histogram->censored_from_ns / US);
    else
        load_json_null(json, "censored_from");
    load_json_open(json, "at_least", '[');
    for (unsigned i = 0; i < SXE_COUNT(extremes) && has_some; i++)
        load_json_text(json, NULL, extremes[i]);
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++) {
        double fraction = load_percentiles[i].fraction;
        uint64_t ns = load_histogram_quantile(histogram, fraction);

        if (load_histogram_can_tell(histogram, fraction) &&
            load_histogram_is_at_least(histogram, ns))
            load_json_text(json, NULL, load_percentiles[i].name);
    }
    load_json_close(json, ']');
}

static void
write_buckets(struct load_json *json, const struct load_histogram *histogram)
{
    struct load_bucket bucket;
    unsigned at = 0;

    load_json_open(json, "histogram", '[');
    while (load_histogram_next(histogram, &at, &bucket)) {
        load_json_open(json, NULL, '[');
        load_json_number(json, NULL, (double)bucket.from_ns / US);
        load_json_number(json, NULL, (double)bucket.to_ns / US);
        load_json_count(json, NULL, bucket.count);
        load_json_close(json, ']');
    }
    load_json_close(json, ']');
}

void
load_output_json_times(struct load_json *json, const char *name,
                       const struct load_histogram *histogram)
{
    load_json_open(json, name, '{');
    load_json_count(json, "count", histogram->count);
    if (histogram->count > 0) {
        write_censored(json, histogram);
        load_json_number(json, "mean", load_histogram_mean_ns(histogram) / US);
        load_json_number(json, "stdev", load_histogram_deviation_ns(histogram) / US);
        load_json_number(json, "min", (double)histogram->min_ns / US);
        load_json_number(json, "max", (double)histogram->max_ns / US);
        write_percentiles(json, histogram);
    }
    write_buckets(json, histogram);
    load_json_close(json, '}');
}
