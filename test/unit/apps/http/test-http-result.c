/* SPDX-License-Identifier: MIT
 *
 * Results: their accounts, their sum, and the difference to an earlier copy.
 */
#include "../../../../apps/http/stats/result.h"

#include <stdlib.h>
#include <string.h>

#include "sxe-util.h"
#include "test-main.h"

#define MS UINT64_C(1000000)

/* Too large for the stack. */
static struct load_result result, other, sum, empty;

/* ---- Accounts ---- */

static const struct {
    const char *title;
    unsigned wanted, opened, refused;
    unsigned offered, sent, shed, unsent, waiting;
    unsigned carried, ok, reset, in_flight;
    const char *problem; /* NULL: the accounts balance */
} accounts[] = {
    {"nothing at all", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
    {"a whole run", 4, 3, 1, 10, 7, 1, 2, 0, 0, 5, 1, 1, NULL},
    {"after a mark", 0, 0, 0, 2, 2, 0, 0, 0, 1, 3, 0, 0, NULL},
    {"still waiting", 0, 0, 0, 2, 1, 0, 0, 1, 0, 1, 0, 0, NULL},
    {"neither sent nor skipped", 0, 0, 0, 3, 1, 0, 1, 0, 0, 1, 0, 0,
     "offered 3 is not sent 1 + skipped 1 + waiting 0"},
    {"more sent than offered", 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0, 0,
     "offered 1 is not sent 2 + skipped 0 + waiting 0"},
    {"no end", 0, 0, 0, 3, 3, 0, 0, 0, 1, 1, 1, 1,
     "sent 3 + carried 1 is not ended 2 + in flight 1"},
    {"a connection that nobody knows of", 5, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
     "connections wanted 5 is not opened 3 + unopened 1"},
};

START_TEST(accounts_close_or_it_is_said_which_does_not)
{
    const char *problem;

    result.sockets_wanted = accounts[_i].wanted;
    result.opened = accounts[_i].opened;
    result.unopened[LOAD_UNOPENED_REFUSED] = accounts[_i].refused;
    result.offered = accounts[_i].offered;
    result.sent = accounts[_i].sent;
    result.skipped[LOAD_SKIP_SHED] = accounts[_i].shed;
    result.skipped[LOAD_SKIP_UNSENT] = accounts[_i].unsent;
    result.waiting = accounts[_i].waiting;
    result.carried = accounts[_i].carried;
    result.ends[LOAD_END_OK] = accounts[_i].ok;
    result.ends[LOAD_END_RESET] = accounts[_i].reset;
    result.in_flight = accounts[_i].in_flight;
    problem = load_result_check(&result);
    if (accounts[_i].problem == NULL)
        ck_assert_msg(problem == NULL, "%s: %s", accounts[_i].title, problem);
    else
        ck_assert_str_eq(problem, accounts[_i].problem);
}
END_TEST

START_TEST(errors_are_all_ends_but_ok_and_skips_are_of_each_kind)
{
    for (unsigned i = 0; i < LOAD_ENDS; i++)
        result.ends[i] = UINT64_C(1) << i;
    for (unsigned i = 0; i < LOAD_SKIPS; i++)
        result.skipped[i] = UINT64_C(1) << i;
    ck_assert_uint_eq(load_result_errors(&result), (1 << LOAD_ENDS) - 2);
    ck_assert_uint_eq(load_result_skipped(&result), (1 << LOAD_SKIPS) - 1);
}
END_TEST

/* ---- A made-up worker ---- */

static void
arrive(struct load_result *worker, uint64_t ns)
{
    SXE_UNUSED_PARAMETER(ns);
    worker->offered++;
    worker->waiting++;
    load_timeline_slice(&worker->timeline, worker->elapsed_ns)->offered++;
}

static void
send_query(struct load_result *worker, uint64_t ns)
{
    if (worker->waiting == 0)
        return;
    worker->waiting--;
    worker->sent++;
    worker->in_flight++;
    worker->late++;
    worker->bytes_sent += 100;
    load_timeline_slice(&worker->timeline, worker->elapsed_ns)->sent++;
    load_histogram_record(&worker->schedule_lag, ns);
    load_histogram_record(&worker->timer_error, ns);
}

static void
skip_query(struct load_result *worker, uint64_t ns)
{
    if (worker->waiting == 0)
        return;
    worker->waiting--;
    worker->skipped[ns % LOAD_SKIPS]++;
}

static void
end_query(struct load_result *worker, uint64_t ns)
{
    unsigned end = random() % LOAD_ENDS;
    struct load_kind_result *kind = &worker->by_kind[random() % worker->kinds];
    struct load_client_result *client =
        &worker->by_client[random() % (worker->kinds * worker->clients)];

    if (worker->in_flight == 0)
        return;
    worker->in_flight--;
    worker->ends[end]++;
    worker->bytes_received += 1000;
    load_histogram_record(&worker->first_byte, ns / 2);
    load_histogram_record(&worker->service, ns);
    load_histogram_record(&worker->response, ns);
    load_slice_ended(load_timeline_slice(&worker->timeline, worker->elapsed_ns), end == LOAD_END_OK,
                     ns);
    kind->ok++;
    kind->errors += 2;
    load_histogram_record(&kind->response, ns);
    client->count++;
    client->sum_ns += ns;
}

static void
open_socket(struct load_result *worker, uint64_t ns)
{
    worker->sockets_wanted++;
    worker->in_state[random() % LOAD_SOCKET_STATES]++;
    if (random() % 2) {
        worker->unopened[random() % LOAD_UNOPENEDS]++;
        return;
    }
    worker->opened++;
    worker->syn_retries++;
    worker->reopened++;
    worker->not_reopened += 2;
    worker->resent += 3;
    worker->retransmits++;
    worker->connect_ns = worker->elapsed_ns;
    load_histogram_record(&worker->connect, ns);
    load_histogram_record(&worker->handshake, ns);
    worker->handshakes_resumed += (uint64_t)random() % 2;
    worker->handshakes_refused += 2;
    worker->handshakes_sessionless += 3;
}

/* A random next event, with the accounts updated as a worker does. */
static void
step(struct load_result *worker)
{
    static void (*const actions[])(struct load_result *, uint64_t) = {
        arrive, send_query, skip_query, end_query, open_socket,
    };
    uint64_t ns = (uint64_t)(random() % 1000) * MS / 10;

    worker->elapsed_ns += (uint64_t)(random() % 3) * MS;
    worker->cpu_user_ns += 1000;
    worker->cpu_system_ns += 100;
    worker->run_queue_ns += 10;
    worker->spun_ns += 20;
    worker->script_ns += 3;
    worker->script_calls++;
    load_histogram_record(&worker->loop_lag, ns);
    actions[random() % 5](worker, ns);
}

static void
run_worker(struct load_result *worker, unsigned steps)
{
    worker->kinds = 3;
    worker->clients = 2;
    worker->started_ns = 5000;
    while (steps-- > 0)
        step(worker);
    ck_assert_ptr_null(load_result_check(worker));
}

/* ---- Sum ---- */

START_TEST(a_sum_has_all_of_its_parts)
{
    srandom((unsigned)_i);
    run_worker(&result, 5000);
    run_worker(&other, 3000);
    load_result_add(&sum, &result);
    load_result_add(&sum, &other);
    ck_assert_ptr_null(load_result_check(&sum));
#define IS_SUM(field) ck_assert_uint_eq(sum.field, result.field + other.field)
    IS_SUM(sockets_wanted);
    IS_SUM(opened);
    IS_SUM(reopened);
    IS_SUM(not_reopened);
    IS_SUM(resent);
    IS_SUM(syn_retries);
    IS_SUM(retransmits);
    IS_SUM(handshake.count);
    IS_SUM(handshakes_resumed);
    IS_SUM(handshakes_refused);
    IS_SUM(handshakes_sessionless);
    ck_assert_uint_eq(load_result_full_handshakes(&sum),
                      sum.handshake.count - sum.handshakes_resumed);
    IS_SUM(offered);
    IS_SUM(sent);
    IS_SUM(in_flight);
    IS_SUM(waiting);
    IS_SUM(late);
    IS_SUM(bytes_sent);
    IS_SUM(bytes_received);
    IS_SUM(cpu_user_ns);
    IS_SUM(cpu_system_ns);
    IS_SUM(spun_ns);
    IS_SUM(run_queue_ns);
    IS_SUM(script_ns);
    IS_SUM(script_calls);
    IS_SUM(connect.count);
    IS_SUM(first_byte.sum_ns);
    IS_SUM(service.count);
    IS_SUM(response.count);
    IS_SUM(schedule_lag.count);
    IS_SUM(timer_error.count);
    IS_SUM(loop_lag.count);
    IS_SUM(clients);
    for (unsigned i = 0; i < LOAD_SOCKET_STATES; i++)
        IS_SUM(in_state[i]);
    for (unsigned i = 0; i < LOAD_UNOPENEDS; i++)
        IS_SUM(unopened[i]);
    for (unsigned i = 0; i < 3; i++) {
        IS_SUM(by_kind[i].ok);
        IS_SUM(by_kind[i].errors);
        IS_SUM(by_kind[i].response.count);
    }
    ck_assert_uint_eq(sum.kinds, 3);
    ck_assert_mem_eq(&sum.by_client[0], result.by_client, 6 * sizeof(sum.by_client[0]));
    ck_assert_mem_eq(&sum.by_client[6], other.by_client, 6 * sizeof(sum.by_client[0]));
}
END_TEST

START_TEST(a_sum_starts_with_the_first_and_ends_with_the_last)
{
    result.started_ns = 70;
    result.elapsed_ns = 10;
    result.connect_ns = 5;
    other.started_ns = 50;
    other.elapsed_ns = 9;
    other.connect_ns = 6;
    load_result_add(&sum, &result);
    ck_assert_uint_eq(sum.started_ns, 70);
    load_result_add(&sum, &other);
    load_result_add(&sum, &empty);
    ck_assert_uint_eq(sum.interrupted, 0);
    other.interrupted = 1;
    load_result_add(&sum, &other);
    ck_assert_uint_eq(sum.started_ns, 50);
    ck_assert_uint_eq(sum.elapsed_ns, 10);
    ck_assert_uint_eq(sum.connect_ns, 6);
    ck_assert_uint_eq(sum.interrupted, 1);
}
END_TEST

START_TEST(a_sum_knows_the_first_error_of_those_that_had_one)
{
    load_result_add(&sum, &empty);
    result.first_bad_status = 404;
    result.first_error = 5;
    result.first_bad_reply.why = 7;
    load_result_add(&sum, &result);
    other.first_bad_status = 500;
    other.first_bad_reply.why = 8;
    other.first_error = 6;
    load_result_add(&sum, &other);
    ck_assert_uint_eq(sum.first_bad_status, 404);
    ck_assert_uint_eq(sum.first_bad_reply.why, 7);
    ck_assert_int_eq(sum.first_error, 5);
}
END_TEST

static const struct {
    const char *title;
    unsigned kinds;
    unsigned clients[3]; /* how many clients each of three workers has */
    unsigned sum;
} clients[] = {
    {"all fit", 2, {64, 63, 1}, 128},
    {"one too many", 2, {64, 64, 1}, 0},
    {"the first has too many", 2, {0, 1, 1}, 0},
    {"the second has too many", 2, {1, 0, 1}, 0},
    {"the last has too many", 2, {1, 1, 0}, 0},
};

START_TEST(clients_follow_one_another_or_none_is_known)
{
    for (unsigned i = 0; i < 3; i++) {
        load_result_add(&sum, &empty);
        result.kinds = clients[_i].kinds;
        result.clients = clients[_i].clients[i];
        load_result_add(&sum, &result);
    }
    ck_assert_uint_eq(sum.kinds, clients[_i].kinds);
    ck_assert_msg(sum.clients == clients[_i].sum, "%s", clients[_i].title);
}
END_TEST

/* ---- Difference ---- */

START_TEST(what_came_since_a_mark_closes_its_accounts)
{
    static struct load_result mark;

    srandom((unsigned)_i);
    run_worker(&result, (unsigned)random() % 3000);
    mark = result;
    run_worker(&result, (unsigned)random() % 3000);
    other = result;
    load_result_subtract(&other, &mark);
    ck_assert_ptr_null(load_result_check(&other));
    ck_assert_uint_eq(other.offered, result.offered - mark.offered + mark.waiting);
    ck_assert_uint_eq(other.sent, result.sent - mark.sent);
    ck_assert_uint_eq(other.carried, mark.in_flight);
    ck_assert_uint_eq(other.started_ns, mark.started_ns + mark.elapsed_ns);
    ck_assert_uint_eq(other.elapsed_ns, result.elapsed_ns - mark.elapsed_ns);
    ck_assert_uint_eq(other.service.count, result.service.count - mark.service.count);
    ck_assert_uint_eq(other.by_kind[1].ok, result.by_kind[1].ok - mark.by_kind[1].ok);
    ck_assert_uint_eq(other.by_client[4].count,
                      result.by_client[4].count - mark.by_client[4].count);
    ck_assert_uint_eq(other.cpu_user_ns, result.cpu_user_ns - mark.cpu_user_ns);
    ck_assert_uint_eq(other.sockets_wanted, result.sockets_wanted);
    ck_assert_mem_eq(other.unopened, result.unopened, sizeof(other.unopened));
    ck_assert_mem_eq(&other.connect, &result.connect, sizeof(other.connect));
}
END_TEST

START_TEST(since_nothing_is_all_of_it)
{
    run_worker(&result, 2000);
    other = result;
    load_result_subtract(&other, &empty);
    ck_assert_mem_eq(&other, &result, sizeof(other));
}
END_TEST

START_TEST(no_reply_since_a_mark_takes_no_time)
{
    result.elapsed_ns = 5;
    other.elapsed_ns = 7;
    load_result_subtract(&result, &other);
    ck_assert_uint_eq(result.elapsed_ns, 0);
}
END_TEST

START_TEST(an_error_before_a_mark_is_no_first_error_behind_it)
{
    static struct load_result mark;

    result.first_bad_status = 404;
    result.first_error = 5;
    result.first_bad_reply.why = 7;
    result.ends[LOAD_END_BAD_STATUS] = 1;
    result.ends[LOAD_END_BAD_REPLY] = 1;
    result.ends[LOAD_END_OTHER] = 1;
    mark = result;
    other = result;
    load_result_subtract(&other, &mark);
    ck_assert_uint_eq(other.first_bad_status, 0);
    ck_assert_uint_eq(other.first_bad_reply.why, 0);
    ck_assert_int_eq(other.first_error, 0);
    other = result;
    other.ends[LOAD_END_BAD_STATUS]++;
    other.ends[LOAD_END_BAD_REPLY]++;
    other.unopened[LOAD_UNOPENED_OTHER]++;
    load_result_subtract(&other, &mark);
    ck_assert_uint_eq(other.first_bad_status, 404);
    ck_assert_uint_eq(other.first_bad_reply.why, 7);
    ck_assert_int_eq(other.first_error, 5);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-result");
    TCase *tcase = tcase_create("result");

    tcase_add_loop_test(tcase, accounts_close_or_it_is_said_which_does_not, 0,
                        (int)(sizeof(accounts) / sizeof(accounts[0])));
    tcase_add_test(tcase, errors_are_all_ends_but_ok_and_skips_are_of_each_kind);
    tcase_add_loop_test(tcase, a_sum_has_all_of_its_parts, 0, 3);
    tcase_add_test(tcase, a_sum_starts_with_the_first_and_ends_with_the_last);
    tcase_add_test(tcase, a_sum_knows_the_first_error_of_those_that_had_one);
    tcase_add_loop_test(tcase, clients_follow_one_another_or_none_is_known, 0,
                        (int)(sizeof(clients) / sizeof(clients[0])));
    tcase_add_loop_test(tcase, what_came_since_a_mark_closes_its_accounts, 0, 5);
    tcase_add_test(tcase, since_nothing_is_all_of_it);
    tcase_add_test(tcase, no_reply_since_a_mark_takes_no_time);
    tcase_add_test(tcase, an_error_before_a_mark_is_no_first_error_behind_it);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
