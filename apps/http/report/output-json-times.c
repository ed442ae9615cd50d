/* SPDX-License-Identifier: MIT
 *
 * Times in the JSON: a histogram, with the figures that it tells; result-read.c takes it out again.
 */
#include "json-writer.h"
#include "output.h"
#include "sxe-util.h"

#define US 1e3

static void
write_percentiles(struct http_json *json, const struct http_histogram *histogram)
{
    for (unsigned i = 0; i < HTTP_PERCENTILES; i++) {
        const char *name = http_percentiles[i].name;
        double fraction = http_percentiles[i].fraction;

        if (http_histogram_can_tell(histogram, fraction))
            http_json_number(json, name, (double)http_histogram_quantile(histogram, fraction) / US);
        else
            http_json_null(json, name);
    }
}

/* What of the figures is only a lower bound, since some queries failed. */
static void
write_censored(struct http_json *json, const struct http_histogram *histogram)
{
    static const char *const extremes[] = {"mean", "max"};
    bool has_some = histogram->censored > 0;

    http_json_count(json, "censored", histogram->censored);
    if (has_some)
        http_json_number(json, "censored_from", (double)histogram->censored_from_ns / US);
    else
        http_json_null(json, "censored_from");
    http_json_open(json, "at_least", '[');
    for (unsigned i = 0; i < SXE_COUNT(extremes) && has_some; i++)
        http_json_text(json, NULL, extremes[i]);
    for (unsigned i = 0; i < HTTP_PERCENTILES; i++) {
        double fraction = http_percentiles[i].fraction;
        uint64_t ns = http_histogram_quantile(histogram, fraction);

        if (http_histogram_can_tell(histogram, fraction) &&
            http_histogram_is_at_least(histogram, ns))
            http_json_text(json, NULL, http_percentiles[i].name);
    }
    http_json_close(json, ']');
}

static void
write_buckets(struct http_json *json, const struct http_histogram *histogram)
{
    struct http_bucket bucket;
    unsigned at = 0;

    http_json_open(json, "histogram", '[');
    while (http_histogram_next(histogram, &at, &bucket)) {
        http_json_open(json, NULL, '[');
        http_json_number(json, NULL, (double)bucket.from_ns / US);
        http_json_number(json, NULL, (double)bucket.to_ns / US);
        http_json_count(json, NULL, bucket.count);
        http_json_close(json, ']');
    }
    http_json_close(json, ']');
}

void
http_output_json_times(struct http_json *json, const char *name,
                       const struct http_histogram *histogram)
{
    http_json_open(json, name, '{');
    http_json_count(json, "count", histogram->count);
    if (histogram->count > 0) {
        write_censored(json, histogram);
        http_json_number(json, "mean", http_histogram_mean_ns(histogram) / US);
        http_json_number(json, "stdev", http_histogram_deviation_ns(histogram) / US);
        http_json_number(json, "min", (double)histogram->min_ns / US);
        http_json_number(json, "max", (double)histogram->max_ns / US);
        write_percentiles(json, histogram);
    }
    write_buckets(json, histogram);
    http_json_close(json, '}');
}
