/* SPDX-License-Identifier: MIT
 *
 * The time line of result.h. The width of slices is LOAD_SLICE_NS times a power of two. So finding
 * a slice takes a multiplication and a shift, and a slice of one time line never overlaps two
 * slices of another with larger width.
 */
#include <string.h>

#include "result.h"

#define EIGHT 8u /* how many buckets each power of two has */

/* How often the width has doubled. */
static unsigned
count_doublings(const struct load_timeline *timeline)
{
    return (unsigned)(__builtin_ctzll(timeline->width_ns) - __builtin_ctzll(LOAD_SLICE_NS));
}

static bool
is_empty_slice(const struct load_slice *slice)
{
    return (slice->offered | slice->sent | slice->ok | slice->errors) == 0;
}

static void
merge_slice(struct load_slice *to, const struct load_slice *slice)
{
    to->offered += slice->offered;
    to->sent += slice->sent;
    to->ok += slice->ok;
    to->errors += slice->errors;
    if (slice->max_us > to->max_us)
        to->max_us = slice->max_us;
    for (unsigned i = 0; i < LOAD_SLICE_BUCKETS; i++)
        to->buckets[i] += slice->buckets[i];
}

static void
double_width(struct load_timeline *timeline)
{
    for (unsigned i = 1; i < timeline->used; i++)
        if (!is_empty_slice(&timeline->slices[i])) {
            merge_slice(&timeline->slices[i / 2], &timeline->slices[i]);
            memset(&timeline->slices[i], 0, sizeof(timeline->slices[i]));
        }
    timeline->used = (timeline->used + 1) / 2;
    timeline->width_ns *= 2;
}

struct load_slice *
load_timeline_slice(struct load_timeline *timeline, uint64_t at_ns)
{
    uint64_t narrow = at_ns / LOAD_SLICE_NS;
    uint64_t index;

    if (timeline->width_ns == 0)
        timeline->width_ns = LOAD_SLICE_NS;
    while ((index = narrow >> count_doublings(timeline)) >= LOAD_SLICES)
        double_width(timeline);
    if (index >= timeline->used)
        timeline->used = (uint32_t)index + 1;
    return &timeline->slices[index];
}

static uint64_t
last_us(unsigned bucket)
{
    unsigned shift = bucket < 2 * EIGHT ? 0 : bucket / EIGHT - 1;

    return ((uint64_t)(bucket - shift * EIGHT + 1) << shift) - 1;
}

void
load_timeline_add(struct load_timeline *to, const struct load_timeline *timeline)
{
    if (timeline->width_ns == 0)
        return;
    if (to->width_ns == 0)
        to->width_ns = timeline->width_ns;
    while (to->width_ns < timeline->width_ns)
        double_width(to);
    if (timeline->offset_ns > to->offset_ns)
        to->offset_ns = timeline->offset_ns;
    for (unsigned i = 0; i < timeline->used; i++) {
        unsigned index = i >> (count_doublings(to) - count_doublings(timeline));

        if (is_empty_slice(&timeline->slices[i]))
            continue;
        merge_slice(&to->slices[index], &timeline->slices[i]);
        if (index >= to->used)
            to->used = index + 1;
    }
}

void
load_timeline_delay(struct load_timeline *timeline, uint64_t by_ns)
{
    struct load_slice *slices = timeline->slices;
    uint64_t shift;

    if (timeline->used == 0)
        return;
    while ((shift = (by_ns + timeline->width_ns / 2) / timeline->width_ns) + timeline->used >
           LOAD_SLICES)
        double_width(timeline);
    memmove(slices + shift, slices, timeline->used * sizeof(slices[0]));
    memset(slices, 0, shift * sizeof(slices[0]));
    timeline->used += (uint32_t)shift;
}

static void
subtract_slice(struct load_slice *from, const struct load_slice *slice)
{
    from->offered -= slice->offered;
    from->sent -= slice->sent;
    from->ok -= slice->ok;
    from->errors -= slice->errors;
    for (unsigned i = 0; i < LOAD_SLICE_BUCKETS; i++)
        from->buckets[i] -= slice->buckets[i];
}

/* Remove the first `number` slices, and move the others to the front. */
static void
drop_slices(struct load_timeline *timeline, uint32_t number)
{
    struct load_slice *slices = timeline->slices;
    uint32_t left = timeline->used - number;

    if (number == 0)
        return;
    memmove(slices, slices + number, left * sizeof(slices[0]));
    memset(slices + left, 0, number * sizeof(slices[0]));
    timeline->used = left;
}

void
load_timeline_subtract(struct load_timeline *timeline, const struct load_timeline *earlier,
                       uint64_t earlier_ns)
{
    uint64_t passed;

    if (timeline->width_ns == 0)
        return;
    if (earlier->width_ns > 0)
        for (unsigned i = 0; i < earlier->used; i++)
            if (!is_empty_slice(&earlier->slices[i]))
                subtract_slice(
                    &timeline->slices[i >> (count_doublings(timeline) - count_doublings(earlier))],
                    &earlier->slices[i]);
    passed = earlier_ns / timeline->width_ns;
    timeline->offset_ns = earlier_ns % timeline->width_ns;
    drop_slices(timeline, passed < timeline->used ? (uint32_t)passed : timeline->used);
}

unsigned
load_timeline_length(const struct load_timeline *timeline, uint64_t elapsed_ns)
{
    uint64_t all_ns = timeline->offset_ns + elapsed_ns;
    uint64_t number =
        timeline->width_ns > 0 ? (all_ns + timeline->width_ns - 1) / timeline->width_ns : 0;

    number = number < LOAD_SLICES ? number : LOAD_SLICES;
    return number > timeline->used ? (unsigned)number : timeline->used;
}

uint64_t
load_slice_quantile_ns(const struct load_slice *slice, double fraction)
{
    uint64_t rank = load_rank((uint64_t)slice->ok + slice->errors, fraction);
    uint64_t seen = 0;
    unsigned bucket = 0;

    if (rank == 0)
        return 0;
    while (bucket < LOAD_SLICE_BUCKETS - 1 && seen + slice->buckets[bucket] < rank)
        seen += slice->buckets[bucket++];
    return (last_us(bucket) < slice->max_us ? last_us(bucket) : slice->max_us) * 1000;
}
