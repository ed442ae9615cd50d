/* SPDX-License-Identifier: MIT
 *
 * Tests blocking work: it runs in threads, and its done() is called in the loop.
 */
#include "jobs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "test-main.h"

/* ---- Running ---- */

START_TEST(it_runs_in_a_thread_and_is_done_in_the_loop)
{
    start_threads(1);
    submit_range(0, 1, look_around);
    ck_assert_uint_eq(event_count(), 0);
    EXPECT_DONE(0);
    ck_assert_uint_eq(jobs[0].ran, 1);
    ck_assert(!pthread_equal(jobs[0].thread, pthread_self()));
    ck_assert_str_eq(jobs[0].name, "sxe-work");
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

/* Count the threads of this process. */
static unsigned
count_threads(void)
{
    char line[200];
    unsigned number = 0;
    FILE *file = fopen("/proc/self/status", "r");

    ck_assert_ptr_nonnull(file);
    while (number == 0 && fgets(line, sizeof(line), file) != NULL)
        (void)sscanf(line, "Threads: %u", &number);
    fclose(file);
    return number;
}

START_TEST(lazy_threads_start_with_the_first_work)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    unsigned before = count_threads();

    config.lazy_threads = true;
    sxe_configure(&config);
    start_threads(3);
    ck_assert_uint_eq(count_threads(), before);
    submit_range(0, 1, look_around);
    ck_assert_uint_eq(count_threads(), before + 3);
    EXPECT_DONE(0);
    plan_stop();
}
END_TEST

START_TEST(its_threads_get_no_signal)
{
    start_threads(1);
    submit_range(0, 1, look_around);
    EXPECT_DONE(0);
    for (int number = 1; number < SIGSYS; number++)
        ck_assert_int_eq(sigismember(&jobs[0].blocked, number),
                         number != SIGKILL && number != SIGSTOP);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &jobs[0].blocked), 0);
    ck_assert_int_eq(sigismember(&jobs[0].blocked, SIGTERM), 0);
    plan_stop();
}
END_TEST

START_TEST(one_thread_does_one_after_the_other)
{
    start_threads(1);
    submit_range(0, 200, look_around);
    expect_done_in_order(0, 200);
    plan_stop();
}
END_TEST

START_TEST(as_many_run_at_once_as_there_are_threads)
{
    unsigned threads = 1u << _i;

    pthread_barrier_init(&meeting, NULL, threads);
    start_threads(threads);
    submit_range(0, 4 * threads, meet);
    for (unsigned i = 0; i < 4 * threads; i++) {
        pump();
        ck_assert_str_eq(event_pop()->name, "done");
    }
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

/* ---- Groups ---- */

static void
submit_in(unsigned group, unsigned number, void (*run)(struct sxe_work *))
{
    jobs[number].work.group = group;
    ck_assert_int_eq(submit(number, run), 0);
}

/* Expect that `number` jobs are done, in any order. */
static void
expect_done(unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        pump();
        ck_assert_str_eq(event_pop()->name, "done");
    }
}

START_TEST(a_group_that_hangs_leaves_others_their_threads)
{
    unsigned names = sxe_work_register_group(2);
    unsigned files = sxe_work_register_group(1);

    start_threads(1);
    for (unsigned i = 0; i < 5; i++)
        submit_in(names, i, wait_at_gate);
    sem_wait(&arrived);
    sem_wait(&arrived);
    for (unsigned i = 5; i < 9; i++)
        submit_in(i % 2 == 0 ? files : 0, i, look_around);
    expect_done(4);
    ck_assert_uint_eq(jobs[5].done + jobs[6].done + jobs[7].done + jobs[8].done, 4);
    ck_assert_uint_eq(jobs[0].ran + jobs[1].ran, 2);
    ck_assert_uint_eq(jobs[2].ran + jobs[3].ran + jobs[4].ran, 0);
    ck_assert_int_eq(sxe_work_cancel(&jobs[4].work), 0);
    for (unsigned i = 0; i < 4; i++)
        sem_post(&gate);
    expect_done(4);
    ck_assert_uint_eq(jobs[4].ran, 0);
    plan_stop();
}
END_TEST

START_TEST(works_without_threads_of_their_own_use_those_of_a_group)
{
    unsigned group = sxe_work_register_group(2);

    start_threads(0);
    submit_in(0, 0, look_around);
    submit_in(group, 1, look_around);
    submit_in(SXE_WORK_GROUPS_MAX, 2, look_around); /* no group with this number is registered */
    submit_in(UINT32_MAX, 3, look_around);
    expect_done(4);
    ck_assert_uint_eq(sxe_work_register_group(1), 0); /* after sxe_init it is too late */
    ck_assert_uint_eq(CONTEXT->workers->threads, 2);
    plan_stop();
}
END_TEST

START_TEST(more_groups_than_there_may_be_share_the_threads_of_no_group)
{
    for (unsigned i = 1; i <= SXE_WORK_GROUPS_MAX; i++)
        ck_assert_uint_eq(sxe_work_register_group(1), i);
    ck_assert_uint_eq(sxe_work_register_group(3), 0);
    start_threads(0);
    ck_assert_uint_eq(CONTEXT->workers->threads, SXE_WORK_GROUPS_MAX + 3);
    plan_stop();
}
END_TEST

static void
count_done(struct sxe_work *work)
{
    ((struct job *)work)->done++;
}

START_TEST(ten_thousand_are_each_run_and_done_once_and_allocate_nothing)
{
    start_threads(SXE_WORK_THREADS);
    for (enum fake_call call = FAKE_MALLOC; call <= FAKE_STRDUP; call++)
        fake_os_forbid(call, true);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i].work.run = look_around;
        jobs[i].work.done = count_done;
        ck_assert_int_eq(sxe_work_submit(&jobs[i].work), 0);
    }
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(fake_os_violations(), 0);
    for (unsigned i = 0; i < JOBS; i++) {
        ck_assert_uint_eq(jobs[i].ran, 1);
        ck_assert_uint_eq(jobs[i].done, 1);
    }
    plan_stop();
}
END_TEST

/* ---- Done ---- */

static void
submit_again(struct sxe_work *work)
{
    struct job *job = (struct job *)work;

    if (++job->done < 500)
        ck_assert_int_eq(sxe_work_submit(work), 0);
}

START_TEST(done_may_submit_again_and_the_loop_goes_on_until_the_last)
{
    start_threads(2);
    for (unsigned i = 0; i < 2; i++) {
        jobs[i].work.run = look_around;
        jobs[i].work.done = submit_again;
        ck_assert_int_eq(sxe_work_submit(&jobs[i].work), 0);
    }
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(jobs[0].ran, 500);
    ck_assert_uint_eq(jobs[1].done, 500);
    plan_stop();
}
END_TEST

static void
push_and_free(struct sxe_work *work)
{
    event_push("freed", NULL, 0);
    free(work);
}

START_TEST(done_may_free_it)
{
    start_threads(1);
    for (unsigned i = 0; i < 3; i++) {
        struct job *job = calloc(1, sizeof(*job));

        job->work.run = look_around;
        job->work.done = push_and_free;
        ck_assert_int_eq(sxe_work_submit(&job->work), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        EXPECT("freed", NULL, 0);
    plan_stop();
}
END_TEST

static void
write_result(struct sxe_work *work)
{
    ck_assert_int_eq(sxe_write(sxe_from_handle(*(uint64_t *)work->user), "result", 6), 0);
}

START_TEST(what_done_writes_goes_out_at_its_end)
{
    uint64_t handle;
    SXE *s;
    int peer;

    start_threads(1);
    s = accept_peer(listen_tcp(push_read), &peer);
    handle = sxe_handle(s);
    for (unsigned i = 0; i < 2; i++) {
        jobs[i].work = (struct sxe_work){look_around, write_result, &handle, NULL, NULL, 0, 0};
        ck_assert_int_eq(sxe_work_submit(&jobs[i].work), 0);
    }
    wait_until_finished(2);
    fake_os_reset();
    turn(1);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 2);
    PEER_EXPECT(peer, "resultresult");
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_turn_does_64_and_sockets_have_theirs)
{
    SXE *s;
    int peer;

    start_threads(2);
    s = accept_peer(listen_tcp(push_read), &peer);
    submit_range(0, 150, look_around);
    wait_until_finished(150);
    peer_send(peer, "me too", 6);
    for (unsigned i = 0; i < 3; i++) {
        unsigned reads = 0;
        unsigned done = 0;

        turn(1);
        while (event_count() > 0) {
            bool is_read = strcmp(event_pop()->name, "read") == 0;

            reads += is_read;
            done += !is_read;
        }
        ck_assert_uint_eq(reads, i == 0);
        ck_assert_uint_eq(done, i < 2 ? 64 : 150 - 2 * 64);
    }
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

/* ---- The loop ---- */

START_TEST(only_work_under_way_keeps_the_loop_running)
{
    start_threads(1);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_run(), 0);
        submit_range(0, 5, look_around);
        ck_assert_int_eq(sxe_run(), 0);
        ck_assert_uint_eq(event_count(), 5);
        expect_done_in_order(0, 5);
    }
    plan_stop();
}
END_TEST

enum { CROWD = SOCKETS - 1 };

static int peers[CROWD];
static SXE *crowd[CROWD];

static void
everybody_sends(void)
{
    for (unsigned i = 0; i < CROWD; i++)
        peer_send(peers[i], "x", 1);
    turn(1);
}

static void
ignore_read(SXE *s, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(s);
}

START_TEST(it_is_done_in_a_loop_under_sustained_load_too)
{
    SXE *listener;

    start_threads(1);
    listener = listen_tcp(ignore_read);
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = accept_peer(listener, &peers[i]);
    for (unsigned i = 0; i < 1000 && !CONTEXT->is_busy; i++)
        everybody_sends();
    ck_assert(CONTEXT->is_busy);
    submit_range(0, 20, look_around);
    wait_until_finished(20);
    for (unsigned i = 0; i < 2; i++)
        everybody_sends();
    ck_assert(CONTEXT->is_busy);
    ck_assert_uint_eq(event_count(), 20);
    expect_done_in_order(0, 20);
    for (unsigned i = 0; i < CROWD; i++) {
        close(peers[i]);
        EXPECT("close", crowd[i], 0);
    }
    plan_stop();
}
END_TEST

static void *
live_in_another_thread(void *user)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    struct job *job = user;

    config.loop = ev_loop_new(EVFLAG_AUTO);
    sxe_configure(&config);
    sxe_register(1, 0);
    sxe_work_register(1);
    job->work.run = look_around;
    job->work.done = count_done;
    if (sxe_init() < 0 || sxe_work_submit(&job->work) < 0 || sxe_run() < 0 || sxe_fini() < 0)
        return NULL;
    ev_loop_destroy(config.loop);
    return job;
}

START_TEST(each_loop_has_threads_of_its_own)
{
    pthread_t other;
    void *result;

    start_threads(1);
    keep_a_thread(0);
    ck_assert_int_eq(pthread_create(&other, NULL, live_in_another_thread, &jobs[1]), 0);
    ck_assert_int_eq(pthread_join(other, &result), 0);
    ck_assert_ptr_eq(result, &jobs[1]);
    ck_assert_uint_eq(jobs[1].done, 1);
    sem_post(&gate);
    EXPECT_DONE(0);
    plan_stop();
}
END_TEST

static Suite *
work_suite(void)
{
    Suite *suite = suite_create("sxe-work");
    TCase *running = tcase_create("running");
    TCase *done = tcase_create("done");
    TCase *loop = tcase_create("loop");

    tcase_add_test(running, it_runs_in_a_thread_and_is_done_in_the_loop);
    tcase_add_test(running, its_threads_get_no_signal);
    tcase_add_test(running, one_thread_does_one_after_the_other);
    tcase_add_test(running, a_group_that_hangs_leaves_others_their_threads);
    tcase_add_test(running, works_without_threads_of_their_own_use_those_of_a_group);
    tcase_add_test(running, more_groups_than_there_may_be_share_the_threads_of_no_group);
    tcase_add_loop_test(running, as_many_run_at_once_as_there_are_threads, 0, 5);
    tcase_add_test(running, ten_thousand_are_each_run_and_done_once_and_allocate_nothing);
    suite_add_tcase(suite, running);
    tcase_add_test(done, done_may_submit_again_and_the_loop_goes_on_until_the_last);
    tcase_add_test(done, done_may_free_it);
    tcase_add_test(done, what_done_writes_goes_out_at_its_end);
    tcase_add_test(done, a_turn_does_64_and_sockets_have_theirs);
    suite_add_tcase(suite, done);
    tcase_add_test(loop, only_work_under_way_keeps_the_loop_running);
    tcase_add_test(loop, it_is_done_in_a_loop_under_sustained_load_too);
    tcase_add_test(loop, each_loop_has_threads_of_its_own);
    tcase_add_test(loop, lazy_threads_start_with_the_first_work);
    suite_add_tcase(suite, loop);
    return suite;
}

int
main(void)
{
    return sxe_test_main(work_suite());
}
