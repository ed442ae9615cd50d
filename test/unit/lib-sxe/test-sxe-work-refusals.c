/* SPDX-License-Identifier: MIT
 *
 * Tests blocking work: what the library and the system refuse, what is cancelled, and the end.
 */
#include "jobs.h"

#include <stdlib.h>
#include <string.h>

#include "capture-log.h"
#include "fake-os.h"
#include "test-main.h"

/* ---- Calls that are refused ---- */

START_TEST(it_needs_registered_threads_and_a_loop)
{
    ck_assert_int_eq(submit(0, look_around), -EINVAL);
    ck_assert_int_eq(sxe_work_cancel(&jobs[0].work), -EALREADY);
    start_threads(0);
    ck_assert_ptr_null(CONTEXT->workers);
    ck_assert_int_eq(submit(0, look_around), -EINVAL);
    ck_assert_int_eq(sxe_work_cancel(&jobs[0].work), -EALREADY);
    plan_stop();
}
END_TEST

START_TEST(what_is_under_way_is_not_submitted_again)
{
    start_threads(1);
    keep_a_thread(0);
    submit_range(1, 2, look_around);
    ck_assert_int_eq(submit(0, wait_at_gate), -EBUSY);
    ck_assert_int_eq(submit(1, look_around), -EBUSY);
    sem_post(&gate);
    wait_until_finished(2);
    ck_assert_int_eq(submit(0, wait_at_gate), -EBUSY);
    ck_assert_int_eq(submit(1, look_around), -EBUSY);
    ck_assert_int_eq(sxe_run(), 0);
    expect_done_in_order(0, 2);
    submit_range(1, 2, look_around);
    EXPECT_DONE(1);
    ck_assert_uint_eq(jobs[1].ran, 2);
    plan_stop();
}
END_TEST

/* Cancel each subset of the jobs 0 to 3, which wait for the thread that runs job 4. */
START_TEST(what_waits_can_be_cancelled)
{
    unsigned cancelled = (unsigned)_i;

    start_threads(1);
    keep_a_thread(4);
    submit_range(0, 4, look_around);
    for (unsigned i = 0; i < 4; i++) {
        if (cancelled & 1u << i)
            ck_assert_int_eq(sxe_work_cancel(&jobs[i].work), 0);
    }
    sem_post(&gate);
    ck_assert_int_eq(sxe_run(), 0);
    EXPECT_DONE(4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(jobs[i].ran, !(cancelled & 1u << i));
        if (jobs[i].ran > 0)
            EXPECT_DONE(i);
        ck_assert_int_eq(sxe_work_cancel(&jobs[i].work), -EALREADY);
    }
    submit_range(0, 4, look_around);
    expect_done_in_order(0, 4);
    plan_stop();
}
END_TEST

START_TEST(what_runs_or_ran_cannot_be_cancelled)
{
    start_threads(1);
    keep_a_thread(0);
    ck_assert_int_eq(sxe_work_cancel(&jobs[0].work), -EBUSY);
    sem_post(&gate);
    wait_until_finished(1);
    ck_assert_int_eq(sxe_work_cancel(&jobs[0].work), -EBUSY);
    EXPECT_DONE(0);
    ck_assert_int_eq(sxe_work_cancel(&jobs[0].work), -EALREADY);
    plan_stop();
}
END_TEST

/* ---- The system refuses threads ---- */

static const uint64_t turn_ns = 1000 * SXE_NS_PER_SECOND;

START_TEST(f11_it_goes_on_with_the_threads_there_are_and_gets_the_others_later)
{
    unsigned started = (unsigned)_i;

    pthread_barrier_init(&meeting, NULL, 4);
    sxe_time_set_turn_ns(turn_ns);
    fake_os_fail(FAKE_PTHREAD_CREATE, started + 1, 1, EAGAIN);
    start_threads(4);
    ck_assert_uint_eq(CONTEXT->workers->threads, started);
    ck_assert_int_eq(submit(0, look_around), started > 0 ? 0 : -EAGAIN);
    sxe_time_set_turn_ns(turn_ns + SXE_NS_PER_SECOND - 1);
    ck_assert_int_eq(submit(1, look_around), started > 0 ? 0 : -EAGAIN);
    ck_assert_uint_eq(CONTEXT->workers->threads, started);
    if (started > 0)
        wait_until_finished(2);
    sxe_time_set_turn_ns(turn_ns + SXE_NS_PER_SECOND);
    submit_range(2, 6, meet);
    ck_assert_uint_eq(CONTEXT->workers->threads, 4);
    wait_until_finished(started > 0 ? 6 : 4);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(event_count(), started > 0 ? 6 : 4);
    event_reset();
    plan_stop();
}
END_TEST

START_TEST(f11_without_any_thread_it_asks_again_once_a_second)
{
    sxe_time_set_turn_ns(turn_ns);
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 0, EAGAIN);
    start_threads(4);
    capture_log();
    for (unsigned second = 1; second < 4; second++) {
        for (unsigned i = 0; i < 10; i++) {
            ck_assert_int_eq(submit(0, look_around), -EAGAIN);
            ck_assert_uint_eq(fake_os_calls(FAKE_PTHREAD_CREATE), second);
        }
        ck_assert_uint_eq(captured.number, second - 1);
        sxe_time_set_turn_ns(turn_ns + second * SXE_NS_PER_SECOND);
    }
    ck_assert(logged("only 0 of 4 threads for work that blocks could be started: "));
    ck_assert_int_eq(sxe_run(), 0);
    plan_stop();
}
END_TEST

START_TEST(after_a_failed_init_all_is_as_before)
{
    unsigned open;
    unsigned failed = 0;

    ck_assert_ptr_nonnull(ev_default_loop(EVFLAG_AUTO));
    open = fake_os_open_fds();
    sxe_log_set_level(SXE_LOG_FATAL);
    sxe_register(1, 0);
    sxe_work_register(2);
    /* The first two are those of the loop. */
    for (unsigned nth = 1; nth <= 3; nth++) {
        fake_os_reset();
        fake_os_fail(FAKE_EVENTFD, nth, 1, EMFILE);
        ck_assert_int_eq(sxe_init(), -EMFILE);
        ck_assert_ptr_null(CONTEXT->workers);
        ck_assert_uint_eq(fake_os_open_fds(), open);
    }
    do {
        fake_os_reset();
        fake_os_fail(FAKE_CALLOC, ++failed, 1, ENOMEM);
        ck_assert_int_eq(sxe_init(), fake_os_injected() > 0 ? -ENOMEM : 0);
    } while (fake_os_injected() > 0);
    ck_assert_uint_gt(failed, 2);
    submit_range(0, 1, look_around);
    ck_assert_int_eq(sxe_run(), 0);
    EXPECT_DONE(0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- The end ---- */

static void
run_until_the_end_begins(struct sxe_work *work)
{
    struct sxe__workers *w = work->user;
    bool stopping = false;

    sem_post(&arrived);
    while (!stopping) {
        sched_yield();
        pthread_mutex_lock(&w->lock);
        stopping = w->is_stopping;
        pthread_mutex_unlock(&w->lock);
    }
    ((struct job *)work)->ran++;
}

START_TEST(fini_waits_for_what_runs_and_drops_what_waits)
{
    start_threads(1);
    jobs[0].work.user = CONTEXT->workers;
    submit_range(0, 1, run_until_the_end_begins);
    sem_wait(&arrived);
    submit_range(1, 5, look_around);
    plan_stop();
    ck_assert_uint_eq(jobs[0].ran, 1);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(jobs[i].ran, i == 0);
        ck_assert_uint_eq(jobs[i].done, 0);
    }
    start_threads(1);
    submit_range(0, 5, look_around);
    expect_done_in_order(0, 5);
    plan_stop();
}
END_TEST

START_TEST(fini_drops_what_is_finished_and_the_same_loop_may_begin_anew)
{
    start_threads(2);
    submit_range(0, 3, look_around);
    wait_until_finished(3);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_register(1, 0);
    sxe_work_register(1);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_run(), 0);
    submit_range(0, 1, look_around);
    EXPECT_DONE(0);
    ck_assert_uint_eq(jobs[1].done, 0);
    plan_stop();
}
END_TEST

/* ---- The plan ---- */

START_TEST(the_largest_wish_counts_once)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    sxe_work_register(2);
    sxe_work_register(3);
    start_threads(1);
    ck_assert_uint_eq(CONTEXT->workers->threads, 3);
    sxe_plan_print(out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "threads                   3 x   262144 =       786432\n"));
    free(text);
    plan_stop();
    plan_start(1);
    ck_assert_ptr_null(CONTEXT->workers);
    plan_stop();
}
END_TEST

START_TEST(absurd_numbers_of_threads_are_refused)
{
    capture_log();
    sxe_register(1, 0);
    if (_i < 2)
        sxe_work_register(_i == 0 ? 1025 : UINT32_MAX);
    else
        ck_assert_uint_eq(sxe_work_register_group(UINT32_MAX), 1);
    ck_assert_int_eq(sxe_init(), -EINVAL);
    ck_assert(logged("and 1024 threads"));
}
END_TEST

START_TEST(registering_after_init_stops_the_program)
{
    plan_start(1);
    sxe_work_register(1);
}
END_TEST

static Suite *
refusals_suite(void)
{
    Suite *suite = suite_create("sxe-work-refusals");
    TCase *refusals = tcase_create("refusals");
    TCase *end = tcase_create("end");
    TCase *plan = tcase_create("plan");

    tcase_add_test(refusals, it_needs_registered_threads_and_a_loop);
    tcase_add_test(refusals, what_is_under_way_is_not_submitted_again);
    tcase_add_loop_test(refusals, what_waits_can_be_cancelled, 0, 16);
    tcase_add_test(refusals, what_runs_or_ran_cannot_be_cancelled);
    tcase_add_loop_test(refusals,
                        f11_it_goes_on_with_the_threads_there_are_and_gets_the_others_later, 0, 4);
    tcase_add_test(refusals, f11_without_any_thread_it_asks_again_once_a_second);
    tcase_add_test(refusals, after_a_failed_init_all_is_as_before);
    suite_add_tcase(suite, refusals);
    tcase_add_test(end, fini_waits_for_what_runs_and_drops_what_waits);
    tcase_add_test(end, fini_drops_what_is_finished_and_the_same_loop_may_begin_anew);
    suite_add_tcase(suite, end);
    tcase_add_test(plan, the_largest_wish_counts_once);
    tcase_add_loop_test(plan, absurd_numbers_of_threads_are_refused, 0, 3);
    tcase_add_test_raise_signal(plan, registering_after_init_stops_the_program, SIGABRT);
    suite_add_tcase(suite, plan);
    return suite;
}

int
main(void)
{
    return sxe_test_main(refusals_suite());
}
