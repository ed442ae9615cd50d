/* SPDX-License-Identifier: MIT
 *
 * The heap of times: their order, equal times, growth.
 */
#include "heap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "fake-os.h"
#include "sxe-log.h"
#include "test-main.h"

#define NUMBER 2000

static int
compare(const void *a, const void *b)
{
    const struct load_due *x = a;
    const struct load_due *y = b;

    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Compare with a sorted array: with few different times, and with many. */
START_TEST(what_is_due_comes_out_in_order_of_time)
{
    struct load_due dues[NUMBER];
    struct load_heap heap;

    ck_assert_int_eq(load_heap_init(&heap, NUMBER), 0);
    srandom(42);
    for (uint32_t i = 0; i < NUMBER; i++) {
        dues[i] =
            (struct load_due){.ns = (uint64_t)random() % (uint64_t)_i, .id = i, .what = i % 7};
        load_heap_push(&heap, dues[i]);
    }
    qsort(dues, NUMBER, sizeof(dues[0]), compare);
    for (unsigned i = 0; i < NUMBER; i++) {
        uint64_t top_ns = load_heap_top(&heap)->ns;
        struct load_due due = load_heap_pop(&heap);

        ck_assert_uint_eq(top_ns, dues[i].ns);
        ck_assert_uint_eq(due.ns, dues[i].ns);
        ck_assert_uint_eq(due.id % 7, due.what);
    }
    ck_assert_ptr_null(load_heap_top(&heap));
    load_heap_free(&heap);
}
END_TEST

START_TEST(taking_and_adding_may_take_turns)
{
    struct load_heap heap;
    uint64_t last_ns = 0;

    ck_assert_int_eq(load_heap_init(&heap, 8), 0);
    for (unsigned i = 0; i < 8; i++)
        load_heap_push(&heap, (struct load_due){.ns = 100 + (i * 5) % 8});
    for (unsigned i = 0; i < NUMBER; i++) {
        struct load_due due = load_heap_pop(&heap);

        ck_assert_uint_ge(due.ns, last_ns);
        last_ns = due.ns;
        load_heap_push(&heap, (struct load_due){.ns = due.ns + (i * 7919) % 13});
        ck_assert_uint_eq(heap.used, 8);
    }
    load_heap_free(&heap);
}
END_TEST

START_TEST(without_memory_there_is_no_heap)
{
    struct load_heap heap;

    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(load_heap_init(&heap, 8), -ENOMEM);
    load_heap_free(&heap);
}
END_TEST

START_TEST(more_than_its_room_stops_the_program)
{
    struct load_heap heap;

    sxe_log_set_level(SXE_LOG_NONE);
    ck_assert_int_eq(load_heap_init(&heap, 1), 0);
    load_heap_push(&heap, (struct load_due){.ns = 1});
    load_heap_push(&heap, (struct load_due){.ns = 1});
}
END_TEST

START_TEST(nothing_cannot_be_taken)
{
    struct load_heap heap;

    sxe_log_set_level(SXE_LOG_NONE);
    ck_assert_int_eq(load_heap_init(&heap, 1), 0);
    load_heap_pop(&heap);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-heap");
    TCase *t = tcase_create("heap");

    tcase_add_loop_test(t, what_is_due_comes_out_in_order_of_time, 1, 20);
    tcase_add_loop_test(t, what_is_due_comes_out_in_order_of_time, 1000000, 1000010);
    tcase_add_test(t, taking_and_adding_may_take_turns);
    tcase_add_test(t, without_memory_there_is_no_heap);
    tcase_add_test_raise_signal(t, more_than_its_room_stops_the_program, SIGABRT);
    tcase_add_test_raise_signal(t, nothing_cannot_be_taken, SIGABRT);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
