/* SPDX-License-Identifier: MIT
 *
 * sxe-http-mpi without MPI: several ranks with fake workers, and the run when a rank is late, dead
 * or stopped.
 */
#include "fake-job.h"
#include "leaks.h"
#include "test-main.h"

#define SHORT_NS (300 * SXE_NS_PER_MS)

static void
set_up(void)
{
    note_what_is_open();
    memset(&fake_worker, 0, sizeof(fake_worker));
    memset(&job, 0, sizeof(job));
    fake_worker.queries = 100;
    fake_worker.bad_shard = 2;
    load_agent_worker = fake_worker_run;
    load_relay_end_ns = 20 * SXE_NS_PER_SECOND;
    load_agent_period_ns = 10 * SXE_NS_PER_MS;
}

static void
tear_down(void)
{
    check_that_nothing_is_left();
}

static double
number_behind(const char *words)
{
    const char *at = strstr(ran.output, words);

    ck_assert_msg(at != NULL, "no %s in %s%s", words, ran.output, ran.errors);
    return strtod(at + strlen(words), NULL);
}

/* ---- Ranks without faults ---- */

START_TEST(ranks_are_added_up_and_judged_each)
{
    RUN_JOB(3, "--requests", "300", "-R", "1k", "-q", "-c", "30");
    check_has(ran.output, "30/30 connections");
    check_has(ran.output, "requests  300  ok 300  errors 0");
    check_has(ran.output, "parts     3 of 3 kept up");
    check_has(ran.output, "clocks within");
    ck_assert_str_eq(ran.errors, "");
    ck_assert_int_eq(ran.status, LOAD_EXIT_OK);
    ck_assert(job.was_clean);
}
END_TEST

START_TEST(one_rank_is_a_job_too)
{
    RUN_JOB(1, "--requests", "100", "-R", "1k", "-q", "-c", "10");
    check_has(ran.output, "parts     1 of 1 kept up");
    ck_assert_int_eq(ran.status, LOAD_EXIT_OK);
}
END_TEST

START_TEST(the_figures_of_each_rank_are_in_the_json)
{
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "4", "--trials", "2", "--json", "-");
    check_has(ran.output, "\"name\": \"rank 0 on ");
    check_has(ran.output, "\"name\": \"rank 1 on ");
    ck_assert_double_eq(number_behind("\"ok\": "), 200);
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

START_TEST(a_search_goes_over_all_ranks)
{
    fake_worker.queries = 0;
    fake_worker.capacity = 2000;
    load_find_speed = FAKE_FASTER;
    RUN_JOB(2, "--find", "p99<20ms", "-R", "500", "-d", "20ms", "-q", "-c", "4");
    ck_assert_double_gt(number_behind("\nfound     "), 0);
    ck_assert(job.was_clean);
}
END_TEST

START_TEST(a_warm_up_is_left_out_of_all_ranks)
{
    fake_worker.queries = 0;
    RUN_JOB(2, "-d", "100ms", "--warmup", "auto", "-R", "1k", "-q", "-c", "4", "--json", "-");
    ck_assert_double_gt(number_behind("\"left_out\": {\n      \"seconds\": "), 0);
}
END_TEST

START_TEST(the_probe_is_rank_0s)
{
    load_agent_worker = load_worker_run;
    RUN_JOB(2, "--requests", "20", "-q", "-c", "4", "--probe", "10", "-p", "1");
    check_has(ran.errors, "no connection could be opened (refused)");
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
}
END_TEST

/* ---- Results that scripts leave ---- */

static char script_path[] = "/tmp/test-http-mpi-XXXXXX";

static void
write_script(void)
{
    static const char text[] = "check = function() return true end\n"
                               "function done() print('done is called') end\n";
    FILE *file = fdopen(mkstemp(script_path), "w");

    fwrite(text, 1, sizeof(text) - 1, file);
    fclose(file);
}

START_TEST(what_scripts_leave_comes_to_rank_0)
{
    write_script();
    load_agent_worker = load_worker_run;
    RUN_JOB(2, "-s", script_path, "--requests", "4", "-q", "-c", "2", "-p", "1");
    check_has(ran.output, "done is called");
    unlink(script_path);
}
END_TEST

/* ---- Command lines ---- */

START_TEST(workers_are_as_many_as_ranks)
{
    RUN_JOB(2, "-t", "3");
    check_has(ran.errors, "each rank is one worker, and there are 2: leave out -t");
    ck_assert_int_eq(ran.status, LOAD_EXIT_USAGE);
    ck_assert(job.was_clean);
}
END_TEST

START_TEST(what_is_no_run_needs_no_rank)
{
    RUN_JOB(2, "--help");
    check_has(ran.output, "usage: ");
    ck_assert_int_eq(ran.status, LOAD_EXIT_OK);
    RUN_JOB(2, "merge", "/nonexistent.json");
    ck_assert_int_eq(ran.status, LOAD_EXIT_USAGE);
}
END_TEST

START_TEST(a_file_that_one_machine_lacks_is_named_with_its_rank)
{
    job.more[1] = "@nonsense:/";
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "4");
    check_has(ran.errors, "sxe-http: rank 1 on ");
    check_has(ran.errors, " refuses the command: sxe-http: ");
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
}
END_TEST

/* ---- Ranks with faults ---- */

static void
die(const struct load_worker *worker)
{
    (void)worker;
    _exit(7);
}

START_TEST(a_rank_whose_worker_dies_is_named_and_what_was_measured_is_reported)
{
    fake_worker.do_before_done = die;
    RUN_JOB(3, "--requests", "300", "-R", "1k", "-q", "-c", "3");
    check_has(ran.errors, "sxe-http: rank 1 on ");
    check_has(ran.errors, " ended with exit status 7\n");
    check_has(ran.output, "requests  300  ok 300");
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
    ck_assert(job.was_clean);
}
END_TEST

static void
stop(const struct load_worker *worker)
{
    (void)worker;
    raise(SIGSTOP);
}

START_TEST(a_worker_that_is_stopped_for_long_is_ended)
{
    load_agent_stopped_ns = SHORT_NS;
    fake_worker.do_before_done = stop;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    check_has(ran.errors, "was stopped for too long, and is ended\n");
    check_has(ran.output, "requests  200  ok 200");
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
}
END_TEST

/* Wait until rank 0 has asked, and do not read that. */
static void
be_asked(const struct load_worker *worker)
{
    struct pollfd control = {worker->control, POLLIN, 0};

    fake_worker_say(worker, LOAD_MESSAGE_ALIVE, 0);
    poll(&control, 1, -1);
}

START_TEST(a_worker_that_ends_as_it_is_asked_is_well)
{
    fake_worker.do_before_done = be_asked;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    ck_assert_str_eq(ran.errors, "");
    check_has(ran.output, "requests  200  ok 200");
}
END_TEST

static bool
is_stopped(pid_t pid)
{
    char path[32], state = '\0';
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    (void)!fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return state == 'T';
}

/* Stop this process; another process continues it later. */
static void
stop_for_a_while(const struct load_worker *worker)
{
    pid_t self = getpid();

    (void)worker;
    if (fork() == 0) {
        while (!is_stopped(self))
            usleep(1000);
        usleep(100000);
        kill(self, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

START_TEST(a_worker_that_goes_on_again_is_well)
{
    fake_worker.do_before_done = stop_for_a_while;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    ck_assert_str_eq(ran.errors, "");
    check_has(ran.output, "requests  200  ok 200");
}
END_TEST

static void
kill_agent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGKILL);
    pause();
}

START_TEST(an_agent_that_dies_is_named_by_its_relay)
{
    fake_worker.do_before_done = kill_agent;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    check_has(ran.errors, "has lost its agent");
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
    ck_assert(job.was_clean);
}
END_TEST

static void
stop_agent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGSTOP);
    pause();
}

START_TEST(a_rank_that_says_nothing_is_lost)
{
    load_envoy_silent_ns = 2 * SXE_NS_PER_SECOND;
    load_relay_end_ns = SHORT_NS;
    fake_worker.do_before_done = stop_agent;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    check_has(ran.errors, "has said nothing for too long: it is dead, stopped or cut off\n");
    check_has(ran.output, "ok ");
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
    ck_assert(!job.was_clean);
}
END_TEST

START_TEST(a_clock_is_measured_again_until_there_is_an_answer)
{
    job.lost = 3;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    check_has(ran.output, "clocks within");
    ck_assert(job.was_clean);
}
END_TEST

START_TEST(what_finds_no_room_goes_on_later)
{
    job.full = 3;
    job.busy = 1;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    check_has(ran.output, "requests  200  ok 200");
    ck_assert_str_eq(ran.errors, "");
    ck_assert(job.was_clean);
}
END_TEST

START_TEST(a_rank_that_does_not_end_is_not_waited_for)
{
    job.silent = 1;
    load_relay_end_ns = SHORT_NS;
    RUN_JOB(2, "--requests", "200", "-R", "1k", "-q", "-c", "2");
    ck_assert_int_eq(ran.status, LOAD_EXIT_OK);
    ck_assert(!job.was_clean);
}
END_TEST

static void
signal_relay(const struct load_worker *worker)
{
    (void)worker;
    /* Rank 0's agent is a child of its engine, which is a child of its relay. */
    kill(job.relay, SIGTERM);
}

START_TEST(a_signal_of_mpirun_interrupts_the_run)
{
    fake_worker.bad_shard = 1;
    fake_worker.queries = 0;
    fake_worker.do_at_mark = signal_relay;
    RUN_JOB(2, "-d", "10", "--warmup", "10ms", "-R", "1k", "-q", "-c", "2");
    ck_assert_int_eq(ran.status, LOAD_EXIT_INTERRUPTED);
    check_has(ran.output, "interrupted");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("ranks");
    TCase *well = tcase_create("well");
    TCase *ill = tcase_create("ill");

    tcase_add_checked_fixture(well, set_up, tear_down);
    tcase_add_test(well, ranks_are_added_up_and_judged_each);
    tcase_add_test(well, one_rank_is_a_job_too);
    tcase_add_test(well, the_figures_of_each_rank_are_in_the_json);
    tcase_add_test(well, a_search_goes_over_all_ranks);
    tcase_add_test(well, a_warm_up_is_left_out_of_all_ranks);
    tcase_add_test(well, the_probe_is_rank_0s);
    tcase_add_test(well, what_scripts_leave_comes_to_rank_0);
    tcase_add_test(well, workers_are_as_many_as_ranks);
    tcase_add_test(well, what_is_no_run_needs_no_rank);
    suite_add_tcase(suite, well);
    tcase_add_checked_fixture(ill, set_up, tear_down);
    tcase_add_test(ill, a_file_that_one_machine_lacks_is_named_with_its_rank);
    tcase_add_test(ill, a_rank_whose_worker_dies_is_named_and_what_was_measured_is_reported);
    tcase_add_test(ill, a_worker_that_is_stopped_for_long_is_ended);
    tcase_add_test(ill, a_worker_that_ends_as_it_is_asked_is_well);
    tcase_add_test(ill, a_worker_that_goes_on_again_is_well);
    tcase_add_test(ill, an_agent_that_dies_is_named_by_its_relay);
    tcase_add_test(ill, a_rank_that_says_nothing_is_lost);
    tcase_add_test(ill, a_clock_is_measured_again_until_there_is_an_answer);
    tcase_add_test(ill, what_finds_no_room_goes_on_later);
    tcase_add_test(ill, a_rank_that_does_not_end_is_not_waited_for);
    tcase_add_test(ill, a_signal_of_mpirun_interrupts_the_run);
    suite_add_tcase(suite, ill);
    return sxe_test_main(suite);
}
