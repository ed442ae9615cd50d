/* SPDX-License-Identifier: MIT
 *
 * The parts of sxe-http-mpi one by one: deltas, frames, ranks; an envoy and an agent whose peer is
 * this test.
 */
#include <poll.h>
#include <sys/prctl.h>

#include "agent.h"
#include "captured.h"
#include "delta.h"
#include "engine.h"
#include "envoy.h"
#include "fake-os.h"
#include "fake-worker.h"
#include "frame.h"
#include "has.h"
#include "leaks.h"
#include "test-main.h"

/* ---- Deltas ---- */

#define MEMORY 1000

static char memory[MEMORY], sent[MEMORY], copy[MEMORY], bytes[4096];

static struct load_delta
whole_delta(void)
{
    return (struct load_delta){
        .now = memory, .sent = sent, .size = MEMORY, .end = MEMORY, .time_at = SIZE_MAX};
}

/* Take the delta in pieces of at most `room` bytes, and apply them to the copy. Returns how
 * many. */
static unsigned
follow(struct load_delta *delta, size_t room)
{
    unsigned times = 0;
    size_t length;

    while ((length = load_delta_take(delta, bytes, room)) > 0) {
        ck_assert_uint_le(length, room);
        ck_assert(load_delta_apply(copy, MEMORY, bytes, length));
        times++;
    }
    return times;
}

static void
clear(void)
{
    memset(memory, 0, sizeof(memory));
    memset(sent, 0, sizeof(sent));
    memset(copy, 0, sizeof(copy));
}

START_TEST(a_copy_follows_what_changes)
{
    struct load_delta delta = whole_delta();

    clear();
    for (unsigned i = 0; i < MEMORY; i++)
        memory[i] = (char)i;
    ck_assert_uint_gt(follow(&delta, 200), 1);
    ck_assert_mem_eq(copy, memory, MEMORY);
    memory[MEMORY - 1] = 'x';
    delta.at = 0;
    ck_assert_uint_eq(follow(&delta, sizeof(bytes)), 1);
    ck_assert_mem_eq(copy, memory, MEMORY);
    delta.at = 0;
    ck_assert_uint_eq(follow(&delta, sizeof(bytes)), 0);
}
END_TEST

START_TEST(only_what_is_asked_for_is_taken)
{
    struct load_delta delta = whole_delta();

    clear();
    memory[0] = memory[500] = 'x';
    delta.at = 7 * LOAD_DELTA_BLOCK;
    ck_assert_uint_eq(follow(&delta, sizeof(bytes)), 1);
    ck_assert_int_eq(copy[0], 0);
    ck_assert_int_eq(copy[500], 'x');
}
END_TEST

START_TEST(a_time_in_it_is_by_the_other_clock)
{
    struct load_delta delta = whole_delta();
    uint64_t time_ns = 5000;

    clear();
    delta.time_at = 136;
    delta.ahead_ns = 2000;
    memory[130] = 'x';
    follow(&delta, sizeof(bytes));
    memcpy(&time_ns, &copy[136], sizeof(time_ns));
    ck_assert_uint_eq(time_ns, 0);
    time_ns = 5000;
    memcpy(&memory[136], &time_ns, sizeof(time_ns));
    delta.at = 0;
    follow(&delta, sizeof(bytes));
    memcpy(&time_ns, &copy[136], sizeof(time_ns));
    ck_assert_uint_eq(time_ns, 3000);
}
END_TEST

START_TEST(what_is_no_delta_is_refused)
{
    uint32_t number = MEMORY / LOAD_DELTA_BLOCK;

    ck_assert(!load_delta_apply(copy, MEMORY, bytes, 4));
    memcpy(bytes, &number, sizeof(number));
    ck_assert(!load_delta_apply(copy, MEMORY, bytes, 6));
    number++;
    memcpy(bytes, &number, sizeof(number));
    ck_assert(!load_delta_apply(copy, MEMORY, bytes, 100));
}
END_TEST

/* ---- Frames ---- */

static int ends[2];

static void
open_ends(void)
{
    note_what_is_open();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void
close_ends(void)
{
    fake_os_reset();
    close(ends[0]);
    close(ends[1]);
    check_that_nothing_is_left();
}

START_TEST(a_text_goes_as_far_as_there_is_room)
{
    static char text[LOAD_FRAME_BYTES + 100];
    static struct load_frame frame;
    int length;

    memset(text, 'x', sizeof(text) - 1);
    ck_assert(load_frame_send_text(ends[0], LOAD_FRAME_GONE, text));
    length = load_frame_receive(ends[1], &frame);
    ck_assert_int_eq(length, LOAD_FRAME_BYTES - 1);
    ck_assert_uint_eq(strlen(load_frame_text(&frame, length)), LOAD_FRAME_BYTES - 1);
    ck_assert_uint_eq(strlen(load_frame_text(&frame, LOAD_FRAME_BYTES)), LOAD_FRAME_BYTES - 1);
    ck_assert_int_eq(load_frame_receive(ends[1], &frame), -1);
    ck_assert_int_eq(send(ends[0], "x", 1, 0), 1);
    ck_assert_int_eq(load_frame_receive(ends[1], &frame), -2);
}
END_TEST

START_TEST(a_descriptor_goes_to_the_other_end)
{
    int other;

    ck_assert(load_frame_send_descriptor(ends[0], ends[0]));
    other = load_frame_receive_descriptor(ends[1]);
    ck_assert_int_ge(other, 0);
    close(other);
    ck_assert_int_eq(send(ends[0], "x", 1, 0), 1);
    ck_assert_int_eq(load_frame_receive_descriptor(ends[1]), -1);
}
END_TEST

/* ---- Ranks ---- */

START_TEST(a_table_of_ranks_needs_memory)
{
    struct load_ranks *ranks;

    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    ck_assert_ptr_null(load_ranks_new(2));
    fake_os_reset();
    ranks = load_ranks_new(2);
    ck_assert_str_eq(load_rank_name(ranks, 1), "rank 1");
    snprintf(ranks->ranks[1].host, sizeof(ranks->ranks[1].host), "node2");
    ck_assert_str_eq(load_rank_name(ranks, 1), "rank 1 on node2");
    load_ranks_free(ranks);
}
END_TEST

static struct load_parent parent;
static struct load_run run;
static struct load_plan plan;
static struct load_result results[2], whole;

static void
make_parent(void)
{
    plan = (struct load_plan){.workers = 2, .stop = LOAD_STOP_TIME, .duration_ns = 1000000000};
    run = (struct load_run){.plan = &plan, .trials[0].result = &whole};
    parent = (struct load_parent){.plan = &plan, .run = &run};
    memset(results, 0, sizeof(results));
    for (unsigned i = 0; i < 2; i++) {
        results[i].opened = results[i].sockets_wanted = 1;
        results[i].elapsed_ns = 1000000000;
        results[i].ends[LOAD_END_OK] = 10 * (i + 1);
    }
}

static void
judge_parts(struct load_trial *trial)
{
    const struct load_result *workers[] = {&results[0], &results[1]};

    load_trial_parts(&parent, trial, workers);
}

START_TEST(what_speaks_against_a_rank_has_its_name)
{
    struct load_ranks *ranks = load_ranks_new(2);

    make_parent();
    load_ranks_judge(ranks);
    results[1].run_queue_ns = 200000000;
    judge_parts(&run.trials[0]);
    ck_assert_uint_eq(run.trials[0].verdict.number, 1);
    check_has(run.trials[0].verdict.reasons[0], "rank 1: waited 20.0 % of the time for a CPU");
    judge_parts(&run.trials[1]);
    ck_assert_uint_eq(run.parts_number, 2);
    ck_assert_uint_eq(run.parts[1].ok, 40);
    ck_assert_double_eq(run.parts[1].rate, 20);
    ck_assert_uint_eq(run.parts[0].verdict.number, 0);
    ck_assert_uint_eq(run.parts[1].verdict.number, 1);
    /* In a search the last step counts; a trial of the baseline does not count. */
    plan.find = "p99<1s";
    judge_parts(&run.trials[0]);
    ck_assert_uint_eq(run.parts[1].ok, 20);
    judge_parts(&run.baseline[0]);
    ck_assert_uint_eq(run.parts[1].ok, 20);
    free(run.parts);
    load_ranks_free(ranks);
    ck_assert(load_trial_parts == NULL);
}
END_TEST

START_TEST(what_shows_in_the_sum_alone_stays)
{
    struct load_ranks *ranks = load_ranks_new(2);

    make_parent();
    load_ranks_judge(ranks);
    load_verdict_say(&run.trials[0].verdict, "together they are too slow");
    results[1].opened = 0;
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    judge_parts(&run.trials[0]);
    fake_os_reset();
    ck_assert_ptr_null(run.parts);
    ck_assert_uint_eq(run.trials[0].verdict.number, 1);
    ck_assert_str_eq(run.trials[0].verdict.reasons[0], "together they are too slow");
    load_ranks_free(ranks);
}
END_TEST

/* ---- An envoy ---- */

static int controls[2];
static struct load_ranks *ranks;
static char errors[1024];

static void
open_envoy(void)
{
    open_ends();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, controls), 0);
    ranks = load_ranks_new(2);
    ranks->ranks[1].channel = ends[0];
    load_envoy_use(ranks);
    load_envoy_first_ns = load_envoy_silent_ns = 100 * SXE_NS_PER_MS;
    make_parent();
}

static void
close_envoy(void)
{
    load_ranks_free(ranks);
    close(controls[0]);
    close(controls[1]);
    close_ends();
}

static int
envoy_status(void)
{
    struct captured err = capture(STDERR_FILENO, tmpfile());
    struct load_worker worker = {.plan = &plan,
                                 .shard = 1,
                                 .shards = 2,
                                 .result = &results[0],
                                 .mark = &results[1],
                                 .control = controls[0]};
    int status = load_envoy_work(&worker);

    captured_text(&err, errors, sizeof(errors));
    return status;
}

static void
send_frame(enum load_frame_type type, size_t length)
{
    static struct load_frame frame;

    frame = (struct load_frame){.type = type, .bytes = "xyz"};
    ck_assert(load_frame_send(ends[1], &frame, length));
}

START_TEST(a_rank_that_never_speaks_is_lost)
{
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    ck_assert_str_eq(errors, "sxe-http: rank 1 has said nothing for too long: it is dead, stopped "
                             "or cut off\n");
}
END_TEST

START_TEST(a_rank_of_another_version_is_refused)
{
    send_frame(LOAD_FRAME_NAME, 3);
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    ck_assert_str_eq(errors, "sxe-http: rank 1 on xyz is of another version of sxe-http-mpi; "
                             "install the same everywhere\n");
}
END_TEST

START_TEST(what_is_no_result_ends_it)
{
    static const enum load_frame_type types[] = {LOAD_FRAME_RESULT, LOAD_FRAME_MARK,
                                                 LOAD_FRAME_SCRIPT};

    send_frame(types[_i], 3);
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    ck_assert_str_eq(errors, "sxe-http: rank 1 sent what is no part of a result\n");
}
END_TEST

START_TEST(a_channel_that_is_closed_ends_it)
{
    struct load_frame frame;

    close(ends[1]);
    ends[1] = -1;
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    check_has(errors, "sxe-http: rank 1 cannot be reached\n");
    ck_assert_int_eq(load_frame_receive(ends[0], &frame), -2);
}
END_TEST

static void
close_after_the_start(void)
{
    struct pollfd fd = {ends[1], POLLIN, 0};

    poll(&fd, 1, -1);
    _exit(0);
}

START_TEST(a_channel_that_is_closed_later_ends_it)
{
    pid_t pid = fork();

    if (pid == 0) {
        close(ends[0]);
        close_after_the_start();
    }
    close(ends[1]);
    ends[1] = -1;
    load_envoy_first_ns = 60 * SXE_NS_PER_SECOND;
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    check_has(errors, "sxe-http: rank 1 has lost its connection\n");
    waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(without_the_coordinator_it_ends)
{
    close(controls[1]);
    controls[1] = -1;
    ck_assert_int_eq(envoy_status(), -EPIPE);
}
END_TEST

/* The envoy sends ALIVE each second; an error of a send is reported. */
START_TEST(it_says_that_rank_0_is_there)
{
    static struct load_frame frame;

    load_envoy_first_ns = 1500 * SXE_NS_PER_MS;
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    ck_assert_int_ge(load_frame_receive(ends[1], &frame), 0);
    ck_assert_uint_eq(frame.type, LOAD_FRAME_START);
    ck_assert_int_ge(load_frame_receive(ends[1], &frame), 0);
    ck_assert_uint_eq(frame.type, LOAD_FRAME_ALIVE);
}
END_TEST

START_TEST(what_cannot_be_told_ends_it)
{
    struct load_message message = {.type = LOAD_MESSAGE_STOP};

    ck_assert_int_eq(send(controls[1], &message, sizeof(message), 0), sizeof(message));
    fake_os_fail(FAKE_SEND, 2, 1, EPIPE);
    ck_assert_int_eq(envoy_status(), -ECONNABORTED);
    check_has(errors, "sxe-http: rank 1 cannot be reached any more\n");
}
END_TEST

/* ---- An agent ---- */

static struct load_frame got;

static bool
await_frame(enum load_frame_type type)
{
    struct pollfd fd = {ends[1], POLLIN, 0};
    int length;

    do {
        poll(&fd, 1, 60000);
        length = load_frame_receive(ends[1], &got);
        if (length >= 0 && length < LOAD_FRAME_BYTES)
            got.bytes[length] = '\0';
    } while (length >= 0 && got.type != (uint32_t)type);
    return length >= 0;
}

/* Start an agent in another process; this test plays its rank 0. */
static pid_t
start_agent(enum fake_call call, unsigned nth)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct load_agent agent = {.channel = ends[0], .plan = &plan};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        if (nth > 0)
            fake_os_fail(call, nth, 1, ENOMEM);
        load_agent_run(&agent);
        exit(0);
    }
    send_frame(LOAD_FRAME_ALIVE, 0);
    got = (struct load_frame){.type = LOAD_FRAME_START, .u.start = {.rate = 1000, .shards = 1}};
    ck_assert(load_frame_send(ends[1], &got, 0));
    return pid;
}

static void
end_agent(pid_t pid)
{
    close(ends[1]);
    ends[1] = -1;
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void
open_agent(void)
{
    open_ends();
    make_parent();
    memset(&fake_worker, 0, sizeof(fake_worker));
    load_agent_worker = fake_worker_run;
}

START_TEST(what_an_agent_lacks_is_said)
{
    static const enum fake_call calls[] = {FAKE_MMAP, FAKE_CALLOC, FAKE_SOCKETPAIR, FAKE_FORK};
    pid_t pid = start_agent(calls[_i], 1);

    ck_assert(await_frame(LOAD_FRAME_GONE));
    ck_assert_str_eq(got.bytes, "cannot start: it lacks memory");
    end_agent(pid);
}
END_TEST

START_TEST(without_rank_0_the_worker_is_killed)
{
    pid_t pid;

    load_agent_silent_ns = 100 * SXE_NS_PER_MS;
    pid = start_agent(FAKE_MMAP, 0);
    ck_assert(await_frame(LOAD_FRAME_SAID));
    ck_assert_uint_eq(got.u.message.type, LOAD_MESSAGE_READY);
    /* The agent can be started again. */
    while (await_frame(LOAD_FRAME_RESULT) && sxe_time_ns() == 0)
        ;
    poll(NULL, 0, 300);
    got = (struct load_frame){.type = LOAD_FRAME_START, .u.start = {.rate = 1000, .shards = 1}};
    ck_assert(load_frame_send(ends[1], &got, 0));
    ck_assert(await_frame(LOAD_FRAME_NAME));
    ck_assert(await_frame(LOAD_FRAME_SAID));
    end_agent(pid);
}
END_TEST

START_TEST(times_are_told_by_the_clock_of_the_agent)
{
    pid_t pid = start_agent(FAKE_MMAP, 0);
    struct load_frame frame = {.type = LOAD_FRAME_TELL, .clock.ahead_ns = -1000000000};

    ck_assert(await_frame(LOAD_FRAME_SAID));
    frame.u.message.type = LOAD_MESSAGE_GO;
    frame.u.message.u.start_ns = sxe_time_ns() + 1000000000;
    ck_assert(load_frame_send(ends[1], &frame, 0));
    frame.u.message.type = LOAD_MESSAGE_MARK;
    frame.u.message.u.end_ns = sxe_time_ns() + 1000000000;
    ck_assert(load_frame_send(ends[1], &frame, 0));
    ck_assert(await_frame(LOAD_FRAME_SAID));
    ck_assert_uint_eq(got.u.message.type, LOAD_MESSAGE_MARKED);
    ck_assert(await_frame(LOAD_FRAME_SAID));
    ck_assert_uint_eq(got.u.message.type, LOAD_MESSAGE_DONE);
    end_agent(pid);
}
END_TEST

/* ---- An engine ---- */

START_TEST(an_engine_without_mpi_ends)
{
    close(ends[1]);
    ends[1] = -1;
    ck_assert_int_eq(load_engine_run(ends[0], 0, NULL), LOAD_EXIT_ERRORS);
}
END_TEST

/* The memory for the ranks, the channel or the agent cannot be had. */
START_TEST(an_engine_that_lacks_something_says_so)
{
    static const enum fake_call calls[] = {FAKE_MMAP, FAKE_SOCKETPAIR, FAKE_FORK, FAKE_SENDMSG};
    static char words[][40] = {"sxe-http-mpi", "http://127.0.0.1:1/"};
    char *argv[] = {words[0], words[1], NULL};
    struct captured err = capture(STDERR_FILENO, tmpfile());
    int status;

    ck_assert(load_engine_tell(ends[1], 0, 2));
    fake_os_fail(calls[_i], 1, 1, ENOMEM);
    status = load_engine_run(ends[0], 2, argv);
    fake_os_reset();
    captured_text(&err, errors, sizeof(errors));
    ck_assert_int_eq(status, LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: cannot start 2 ranks: see what is limited");
}
END_TEST

static void
add_small(Suite *suite)
{
    TCase *plain = tcase_create("plain");
    TCase *frames = tcase_create("frames");

    tcase_add_test(plain, a_copy_follows_what_changes);
    tcase_add_test(plain, only_what_is_asked_for_is_taken);
    tcase_add_test(plain, a_time_in_it_is_by_the_other_clock);
    tcase_add_test(plain, what_is_no_delta_is_refused);
    tcase_add_test(plain, a_table_of_ranks_needs_memory);
    tcase_add_test(plain, what_speaks_against_a_rank_has_its_name);
    tcase_add_test(plain, what_shows_in_the_sum_alone_stays);
    suite_add_tcase(suite, plain);
    tcase_add_checked_fixture(frames, open_ends, close_ends);
    tcase_add_test(frames, a_text_goes_as_far_as_there_is_room);
    tcase_add_test(frames, a_descriptor_goes_to_the_other_end);
    tcase_add_test(frames, an_engine_without_mpi_ends);
    tcase_add_loop_test(frames, an_engine_that_lacks_something_says_so, 0, 4);
    suite_add_tcase(suite, frames);
}

int
main(void)
{
    Suite *suite = suite_create("parts of ranks");
    TCase *envoys = tcase_create("envoys");
    TCase *agents = tcase_create("agents");

    add_small(suite);
    tcase_add_checked_fixture(envoys, open_envoy, close_envoy);
    tcase_add_test(envoys, a_rank_that_never_speaks_is_lost);
    tcase_add_test(envoys, a_rank_of_another_version_is_refused);
    tcase_add_loop_test(envoys, what_is_no_result_ends_it, 0, 3);
    tcase_add_test(envoys, a_channel_that_is_closed_ends_it);
    tcase_add_test(envoys, a_channel_that_is_closed_later_ends_it);
    tcase_add_test(envoys, without_the_coordinator_it_ends);
    tcase_add_test(envoys, it_says_that_rank_0_is_there);
    tcase_add_test(envoys, what_cannot_be_told_ends_it);
    suite_add_tcase(suite, envoys);
    tcase_add_checked_fixture(agents, open_agent, close_ends);
    tcase_add_loop_test(agents, what_an_agent_lacks_is_said, 0, 4);
    tcase_add_test(agents, without_rank_0_the_worker_is_killed);
    tcase_add_test(agents, times_are_told_by_the_clock_of_the_agent);
    suite_add_tcase(suite, agents);
    return sxe_test_main(suite);
}
