/* SPDX-License-Identifier: MIT
 *
 * The timeline of a run. Oracle: a plain list of all events.
 */
#include "../../../../apps/http/stats/result.h"

#include <stdlib.h>

#include "test-main.h"

#define WIDTH  LOAD_SLICE_NS
#define US     UINT64_C(1000)
#define EVENTS 3000

static struct load_timeline timeline, other, sum;

/* ---- Slices ---- */

START_TEST(an_event_is_in_the_slice_of_its_time)
{
    load_timeline_slice(&timeline, 0)->offered++;
    load_timeline_slice(&timeline, WIDTH - 1)->sent++;
    load_slice_ended(load_timeline_slice(&timeline, WIDTH), true, 20 * US);
    load_slice_ended(load_timeline_slice(&timeline, WIDTH * 239 + 5), false, 30 * US);
    load_timeline_slice(&timeline, WIDTH * 2)->offered++;
    ck_assert_uint_eq(timeline.width_ns, WIDTH);
    ck_assert_uint_eq(timeline.used, 240);
    ck_assert_uint_eq(timeline.slices[0].offered, 1);
    ck_assert_uint_eq(timeline.slices[0].sent, 1);
    ck_assert_uint_eq(timeline.slices[1].ok, 1);
    ck_assert_uint_eq(timeline.slices[1].errors, 0);
    ck_assert_uint_eq(timeline.slices[1].max_us, 20);
    ck_assert_uint_eq(timeline.slices[2].offered, 1);
    ck_assert_uint_eq(timeline.slices[239].errors, 1);
    ck_assert_uint_eq(timeline.slices[239].max_us, 30);
}
END_TEST

START_TEST(the_first_event_too_late_for_the_slices_doubles_their_width)
{
    load_timeline_slice(&timeline, 0)->offered++;
    load_timeline_slice(&timeline, WIDTH)->offered++;
    load_timeline_slice(&timeline, WIDTH * 2)->offered++;
    load_timeline_slice(&timeline, WIDTH * 240 - 1)->offered++;
    ck_assert_uint_eq(timeline.width_ns, WIDTH);
    load_timeline_slice(&timeline, WIDTH * 240)->offered++;
    ck_assert_uint_eq(timeline.width_ns, WIDTH * 2);
    ck_assert_uint_eq(timeline.used, 121);
    ck_assert_uint_eq(timeline.slices[0].offered, 2);
    ck_assert_uint_eq(timeline.slices[1].offered, 1);
    ck_assert_uint_eq(timeline.slices[119].offered, 1);
    ck_assert_uint_eq(timeline.slices[120].offered, 1);
    for (unsigned i = 121; i < LOAD_SLICES; i++)
        ck_assert_uint_eq(timeline.slices[i].offered, 0);
}
END_TEST

START_TEST(a_week_fits)
{
    load_timeline_slice(&timeline, 1)->offered++;
    load_timeline_slice(&timeline, UINT64_C(7) * 86400 * 1000000000)->offered++;
    ck_assert_uint_le(timeline.used, LOAD_SLICES);
    ck_assert_uint_gt(timeline.used, LOAD_SLICES / 2);
    ck_assert_uint_eq(timeline.slices[0].offered, 1);
    ck_assert_uint_eq(timeline.slices[timeline.used - 1].offered, 1);
}
END_TEST

/* ---- Quantiles of a slice ---- */

START_TEST(a_quantile_is_at_most_an_eighth_and_1_us_too_long)
{
    uint64_t edge = US << _i;

    for (uint64_t ns = edge - edge / 3; ns < edge * 2; ns += edge / 19 + 1) {
        struct load_slice *slice = &timeline.slices[0];
        uint64_t answer;

        *slice = (struct load_slice){0};
        load_slice_ended(load_timeline_slice(&timeline, 0), true, ns);
        load_slice_ended(load_timeline_slice(&timeline, 0), false, UINT64_MAX);
        answer = load_slice_quantile_ns(slice, 0.5);
        ck_assert_uint_ge(answer, ns);
        ck_assert_uint_le(answer - ns, ns / 8 + US);
    }
}
END_TEST

START_TEST(the_longest_time_that_a_slice_can_tell_is_71_minutes)
{
    load_slice_ended(load_timeline_slice(&timeline, 0), true, UINT64_MAX);
    ck_assert_uint_eq(timeline.slices[0].max_us, UINT32_MAX);
    ck_assert_uint_eq(load_slice_quantile_ns(&timeline.slices[0], 1), UINT32_MAX * US);
}
END_TEST

START_TEST(a_quantile_is_of_all_replies_good_or_bad)
{
    struct load_slice *slice = &timeline.slices[0];

    ck_assert_uint_eq(load_slice_quantile_ns(slice, 0.5), 0);
    for (unsigned us = 1; us <= 10; us++)
        load_slice_ended(load_timeline_slice(&timeline, 0), us % 2, us * US);
    ck_assert_uint_eq(load_slice_quantile_ns(slice, 0), 1 * US);
    for (unsigned us = 1; us <= 10; us++)
        ck_assert_uint_eq(load_slice_quantile_ns(slice, us / 10.), us * US);
}
END_TEST

/* Another process counts while this one reads. */
START_TEST(a_count_that_is_ahead_of_its_buckets_does_no_harm)
{
    load_slice_ended(load_timeline_slice(&timeline, 0), true, 5 * US);
    timeline.slices[0].ok += 3;
    ck_assert_uint_eq(load_slice_quantile_ns(&timeline.slices[0], 1), 5 * US);
}
END_TEST

/* ---- Against a list ---- */

struct event {
    uint64_t at_ns;
    uint64_t response_ns;
    enum { OFFERED, SENT, OK, ERROR, EVENT_KINDS } kind;
};

static struct event events[EVENTS];

static void
happen(struct load_timeline *to, const struct event *event)
{
    switch ((int)event->kind) {
    case OFFERED:
        load_timeline_slice(to, event->at_ns)->offered++;
        break;
    case SENT:
        load_timeline_slice(to, event->at_ns)->sent++;
        break;
    default:
        load_slice_ended(load_timeline_slice(to, event->at_ns), event->kind == OK,
                         event->response_ns);
    }
}

/* Random events: each up to step_ns after the last one, sometimes a little before it, because
 * another clock was read first. */
static void
make_events(unsigned seed, uint64_t step_ns)
{
    uint64_t now = 0;

    srandom(seed);
    for (unsigned i = 0; i < EVENTS; i++) {
        now += (uint64_t)random() % step_ns;
        events[i].at_ns = random() % 10 ? now : now - now / 1000;
        events[i].response_ns = (uint64_t)random() >> (random() % 20);
        events[i].kind = random() % EVENT_KINDS;
    }
}

/* The timeline must have these events, without those in the first `gone` slices. */
static void
check_events(const struct load_timeline *line, unsigned first, unsigned number, uint64_t gone)
{
    static struct load_slice expected[LOAD_SLICES];
    unsigned used = 0;

    for (unsigned i = first; i < first + number; i++) {
        uint64_t index = events[i].at_ns / line->width_ns - gone;
        unsigned counts[EVENT_KINDS] = {0};

        ck_assert_uint_lt(index, LOAD_SLICES);
        counts[events[i].kind] = 1;
        expected[index].offered += counts[OFFERED];
        expected[index].sent += counts[SENT];
        expected[index].ok += counts[OK];
        expected[index].errors += counts[ERROR];
        if (index >= used)
            used = (unsigned)index + 1;
    }
    ck_assert_uint_eq(line->used, used);
    for (unsigned i = 0; i < LOAD_SLICES; i++) {
        const struct load_slice *slice = &line->slices[i];
        uint64_t in_buckets = 0;

        for (unsigned j = 0; j < LOAD_SLICE_BUCKETS; j++)
            in_buckets += slice->buckets[j];
        ck_assert_uint_eq(slice->offered, expected[i].offered);
        ck_assert_uint_eq(slice->sent, expected[i].sent);
        ck_assert_uint_eq(slice->ok, expected[i].ok);
        ck_assert_uint_eq(slice->errors, expected[i].errors);
        ck_assert_uint_eq(in_buckets, slice->ok + slice->errors);
    }
}

static const uint64_t steps_ns[] = {WIDTH / 20, WIDTH / 3, WIDTH * 7, WIDTH * 100000};
#define STEPS ((int)(sizeof(steps_ns) / sizeof(steps_ns[0])))

START_TEST(slices_have_what_a_list_has)
{
    make_events((unsigned)_i, steps_ns[_i]);
    for (unsigned i = 0; i < EVENTS; i++)
        happen(&timeline, &events[i]);
    check_events(&timeline, 0, EVENTS, 0);
}
END_TEST

/* The second timeline has only the first events, so its slices are narrower. */
START_TEST(a_sum_has_the_width_of_the_wider_and_the_events_of_both)
{
    make_events((unsigned)_i, steps_ns[_i]);
    for (unsigned i = 0; i < EVENTS; i++)
        happen(i < EVENTS / 4 ? &other : &timeline, &events[i]);
    load_timeline_add(&sum, &timeline);
    load_timeline_add(&sum, &other);
    ck_assert_uint_eq(sum.width_ns, timeline.width_ns);
    check_events(&sum, 0, EVENTS, 0);
    load_timeline_add(&other, &timeline);
    load_timeline_add(&other, &(struct load_timeline){0});
    ck_assert_mem_eq(&other, &sum, sizeof(sum));
}
END_TEST

START_TEST(a_sum_keeps_the_last_slice_when_it_becomes_wider)
{
    load_timeline_slice(&timeline, WIDTH * 2)->sent++;
    other.width_ns = WIDTH * 2;
    other.used = 1;
    other.slices[0].sent = 1;
    load_timeline_add(&timeline, &other);
    ck_assert_uint_eq(timeline.used, 2);
    ck_assert_uint_eq(timeline.slices[0].sent, 1);
    ck_assert_uint_eq(timeline.slices[1].sent, 1);
}
END_TEST

START_TEST(a_sum_has_the_longest_of_all)
{
    load_slice_ended(load_timeline_slice(&timeline, 0), true, 5 * US);
    load_slice_ended(load_timeline_slice(&other, 0), true, 8 * US);
    load_timeline_add(&sum, &other);
    load_timeline_add(&sum, &timeline);
    ck_assert_uint_eq(sum.slices[0].max_us, 8);
    load_timeline_add(&timeline, &other);
    ck_assert_uint_eq(timeline.slices[0].max_us, 8);
}
END_TEST

START_TEST(a_sum_begins_as_late_as_the_latest)
{
    load_timeline_slice(&timeline, WIDTH * 3)->sent++;
    timeline.offset_ns = 5;
    load_timeline_add(&other, &timeline);
    timeline.offset_ns = 3;
    load_timeline_add(&other, &timeline);
    ck_assert_uint_eq(other.offset_ns, 5);
}
END_TEST

START_TEST(its_length_is_that_of_the_run)
{
    ck_assert_uint_eq(load_timeline_length(&timeline, 100 * WIDTH), 0);
    load_timeline_slice(&timeline, WIDTH * 3)->sent++;
    ck_assert_uint_eq(load_timeline_length(&timeline, WIDTH), 4);
    ck_assert_uint_eq(load_timeline_length(&timeline, 10 * WIDTH), 10);
    timeline.offset_ns = 1;
    ck_assert_uint_eq(load_timeline_length(&timeline, 10 * WIDTH), 11);
    ck_assert_uint_eq(load_timeline_length(&timeline, 1000 * WIDTH), LOAD_SLICES);
}
END_TEST

START_TEST(behind_a_mark_whole_slices_before_it_are_gone)
{
    unsigned marked = EVENTS / 3;
    uint64_t mark_ns = 0;

    make_events((unsigned)_i, steps_ns[_i]);
    for (unsigned i = 0; i < EVENTS; i++) {
        if (i == marked) {
            other = timeline;
            mark_ns = events[i].at_ns - events[i].at_ns / 500;
        }
        happen(&timeline, &events[i]);
    }
    load_timeline_subtract(&timeline, &other, mark_ns);
    check_events(&timeline, marked, EVENTS - marked, mark_ns / timeline.width_ns);
    ck_assert_uint_eq(timeline.offset_ns, mark_ns % timeline.width_ns);
}
END_TEST

START_TEST(behind_a_mark_nothing_may_have_happened)
{
    load_timeline_subtract(&timeline, &other, WIDTH);
    ck_assert_uint_eq(timeline.width_ns, 0);
    load_slice_ended(load_timeline_slice(&timeline, WIDTH * 5), true, 7 * US);
    other = timeline;
    load_timeline_subtract(&timeline, &other, WIDTH * 50);
    ck_assert_uint_eq(timeline.used, 0);
    for (unsigned i = 0; i < LOAD_SLICES; i++)
        ck_assert_uint_eq(timeline.slices[i].ok, 0);
}
END_TEST

START_TEST(before_a_mark_nothing_may_have_happened)
{
    load_timeline_slice(&timeline, WIDTH * 5)->sent++;
    load_timeline_subtract(&timeline, &other, WIDTH - 1);
    ck_assert_uint_eq(timeline.used, 6);
    load_timeline_subtract(&timeline, &other, WIDTH * 3);
    ck_assert_uint_eq(timeline.used, 3);
    ck_assert_uint_eq(timeline.slices[2].sent, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-timeline");
    TCase *tcase = tcase_create("timeline");

    tcase_add_test(tcase, an_event_is_in_the_slice_of_its_time);
    tcase_add_test(tcase, the_first_event_too_late_for_the_slices_doubles_their_width);
    tcase_add_test(tcase, a_week_fits);
    tcase_add_loop_test(tcase, a_quantile_is_at_most_an_eighth_and_1_us_too_long, 0, 31);
    tcase_add_test(tcase, the_longest_time_that_a_slice_can_tell_is_71_minutes);
    tcase_add_test(tcase, a_quantile_is_of_all_replies_good_or_bad);
    tcase_add_test(tcase, a_count_that_is_ahead_of_its_buckets_does_no_harm);
    tcase_add_loop_test(tcase, slices_have_what_a_list_has, 0, STEPS);
    tcase_add_loop_test(tcase, a_sum_has_the_width_of_the_wider_and_the_events_of_both, 0, STEPS);
    tcase_add_test(tcase, a_sum_keeps_the_last_slice_when_it_becomes_wider);
    tcase_add_test(tcase, a_sum_has_the_longest_of_all);
    tcase_add_test(tcase, a_sum_begins_as_late_as_the_latest);
    tcase_add_test(tcase, its_length_is_that_of_the_run);
    tcase_add_loop_test(tcase, behind_a_mark_whole_slices_before_it_are_gone, 0, STEPS);
    tcase_add_test(tcase, behind_a_mark_nothing_may_have_happened);
    tcase_add_test(tcase, before_a_mark_nothing_may_have_happened);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
