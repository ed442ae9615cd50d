/* SPDX-License-Identifier: MIT
 *
 * A histogram of durations with logarithmic buckets.
 */
#include "histogram.h"

#define HALF 1024u /* how many buckets each power of two has */
#define RARE 10u   /* a percentile can be told only if so many samples lie beyond it */

static uint64_t
saturated_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The shortest duration of a bucket; last_ns returns the longest. */
static uint64_t
first_ns(unsigned bucket)
{
    unsigned shift = bucket < 2 * HALF ? 0 : bucket / HALF - 1;

    uint64_t us = (uint64_t)(bucket - shift * HALF) << shift;

    return us == 0 ? 0 : (us - 1) * 1000 + 1;
}

static uint64_t
last_ns(unsigned bucket)
{
    return bucket < load__histogram_bucket(LOAD_HISTOGRAM_MAX_NS) ? first_ns(bucket + 1) - 1
                                                                  : UINT64_MAX;
}

/* Count `number` more durations as censored. from_ns is the smallest of their lower bounds. */
static void
add_censored(struct load_histogram *histogram, uint64_t number, uint64_t from_ns)
{
    if (number == 0)
        return;
    if (histogram->censored == 0 || from_ns < histogram->censored_from_ns)
        histogram->censored_from_ns = from_ns;
    histogram->censored += number;
}

void
load_histogram_record_at_least(struct load_histogram *histogram, uint64_t ns)
{
    add_censored(histogram, 1, ns);
    load_histogram_record(histogram, ns);
}

/* Find the first bucket from `bucket` on that is not empty; LOAD_HISTOGRAM_BUCKETS: there is
 * none. */
static unsigned
used_from(const struct load_histogram *histogram, unsigned bucket)
{
    while (bucket < LOAD_HISTOGRAM_BUCKETS && histogram->buckets[bucket] == 0)
        bucket++;
    return bucket;
}

/* Only the buckets from the shortest to the longest duration can have changed. */
void
load_histogram_update(struct load_histogram *copy, const struct load_histogram *histogram)
{
    unsigned last = load__histogram_bucket(histogram->max_ns);

    if (copy->count == histogram->count)
        return;
    for (unsigned i = load__histogram_bucket(histogram->min_ns); i <= last; i++) {
        if (copy->buckets[i] != histogram->buckets[i])
            copy->buckets[i] = histogram->buckets[i];
    }
    copy->count = histogram->count;
    copy->sum_ns = histogram->sum_ns;
    copy->min_ns = histogram->min_ns;
    copy->max_ns = histogram->max_ns;
    copy->censored = histogram->censored;
    copy->censored_from_ns = histogram->censored_from_ns;
}

void
load_histogram_add(struct load_histogram *to, const struct load_histogram *histogram)
{
    if (histogram->count == 0)
        return;
    if (to->count == 0 || histogram->min_ns < to->min_ns)
        to->min_ns = histogram->min_ns;
    if (histogram->max_ns > to->max_ns)
        to->max_ns = histogram->max_ns;
    add_censored(to, histogram->censored, histogram->censored_from_ns);
    to->count += histogram->count;
    to->sum_ns = saturated_sum(to->sum_ns, histogram->sum_ns);
    for (unsigned i = used_from(histogram, 0); i < LOAD_HISTOGRAM_BUCKETS;
         i = used_from(histogram, i + 1))
        to->buckets[i] += histogram->buckets[i];
}

/* After a subtraction, compute the shortest and the longest duration from the buckets. They may not
 * go beyond the values from before the subtraction. */
static void
find_extremes(struct load_histogram *histogram)
{
    struct load_bucket found = {0};
    uint64_t max_ns = 0;
    unsigned bucket = 0;
    bool is_first = true;

    while (load_histogram_next(histogram, &bucket, &found)) {
        if (is_first && found.from_ns > histogram->min_ns)
            histogram->min_ns = found.from_ns;
        is_first = false;
        max_ns = found.to_ns;
    }
    histogram->max_ns = max_ns;
    if (histogram->count == 0)
        histogram->min_ns = 0;
}

void
load_histogram_subtract(struct load_histogram *histogram, const struct load_histogram *earlier)
{
    if (earlier->count == 0)
        return;
    histogram->count -= earlier->count;
    histogram->censored -= earlier->censored;
    if (histogram->censored == 0)
        histogram->censored_from_ns = 0;
    if (histogram->sum_ns != UINT64_MAX)
        histogram->sum_ns -= earlier->sum_ns;
    for (unsigned i = used_from(earlier, 0); i < LOAD_HISTOGRAM_BUCKETS;
         i = used_from(earlier, i + 1))
        histogram->buckets[i] -= earlier->buckets[i];
    find_extremes(histogram);
}

uint64_t
load_histogram_quantile(const struct load_histogram *histogram, double fraction)
{
    uint64_t rank = load_rank(histogram->count, fraction);
    uint64_t seen = 0;
    unsigned bucket = 0;
    struct load_bucket found = {0};

    while (seen < rank && load_histogram_next(histogram, &bucket, &found))
        seen += found.count;
    if (!load_histogram_is_at_least(histogram, found.to_ns))
        return found.to_ns;
    return found.from_ns > histogram->censored_from_ns ? found.from_ns
                                                       : histogram->censored_from_ns;
}

bool
load_can_tell(uint64_t count, double fraction)
{
    return count - load_rank(count, fraction) >= RARE;
}

bool
load_histogram_can_tell(const struct load_histogram *histogram, double fraction)
{
    return load_can_tell(histogram->count, fraction);
}

static double
bucket_middle_ns(const struct load_bucket *bucket)
{
    return ((double)bucket->from_ns + fmin((double)bucket->to_ns, (double)LOAD_HISTOGRAM_MAX_NS)) /
           2;
}

static double
mean_of_middles(const struct load_histogram *histogram)
{
    struct load_bucket found;
    unsigned bucket = 0;
    double sum = 0;

    while (load_histogram_next(histogram, &bucket, &found))
        sum += bucket_middle_ns(&found) * (double)found.count;
    return sum / (double)histogram->count;
}

double
load_histogram_mean_ns(const struct load_histogram *histogram)
{
    if (histogram->count == 0)
        return 0;
    return histogram->sum_ns < UINT64_MAX ? (double)histogram->sum_ns / (double)histogram->count
                                          : mean_of_middles(histogram);
}

/* The standard deviation. Each sample counts as the middle of its bucket. The mean is computed in
 * this way, too, because with the exact mean the deviations would be wrong. */
double
load_histogram_deviation_ns(const struct load_histogram *histogram)
{
    double mean = mean_of_middles(histogram);
    struct load_bucket found;
    unsigned bucket = 0;
    double squares = 0;

    while (load_histogram_next(histogram, &bucket, &found))
        squares += (bucket_middle_ns(&found) - mean) * (bucket_middle_ns(&found) - mean) *
                   (double)found.count;
    return histogram->count > 0 ? sqrt(squares / (double)histogram->count) : 0;
}

bool
load_histogram_next(const struct load_histogram *histogram, unsigned *bucket,
                    struct load_bucket *found)
{
    unsigned used = used_from(histogram, *bucket);

    *bucket = used + 1;
    if (used == LOAD_HISTOGRAM_BUCKETS) {
        *bucket = used;
        return false;
    }
    found->count = histogram->buckets[used];
    found->from_ns = first_ns(used);
    found->to_ns = last_ns(used) < histogram->max_ns ? last_ns(used) : histogram->max_ns;
    return true;
}
