/* SPDX-License-Identifier: MIT
 *
 * The rule by which workers share connections, and the table of counts that it uses.
 */
#include "sxe-workers-balance-private.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

/* For each connection, the workers are asked in turn whether they may take it. Returns the largest
 * count of a worker. */
static unsigned
largest_of(unsigned workers, unsigned connections)
{
    unsigned counts[64] = {0};
    unsigned most = 0;

    for (unsigned sum = 0; sum < connections; sum++) {
        unsigned i = 0;

        /* The first worker is always the quickest. */
        while (!sxe__balance_allows(counts[i], sum, workers))
            ck_assert_uint_lt(++i, workers);
        counts[i]++;
        most = counts[i] > most ? counts[i] : most;
    }
    return most;
}

static const unsigned sizes[] = {1, 2, 3, 4, 6, 8, 16, 64};

START_TEST(there_is_always_one_that_may_accept_and_none_has_much_more_than_the_mean)
{
    unsigned workers = sizes[_i];

    for (unsigned each = 1; each < 100; each++)
        ck_assert_uint_le(largest_of(workers, each * workers), each + each / 8 + 2);
}
END_TEST

START_TEST(of_64_connections_none_has_more_than_1_3_times_the_mean)
{
    for (unsigned workers = 1; workers <= 6; workers++)
        ck_assert_double_le(largest_of(workers, 64), 1.3 * 64 / workers);
}
END_TEST

/* Play the worker of this slot, with this many connections. */
static void
be_worker(unsigned slot, unsigned connections)
{
    pid_t pid = fork();

    if (pid == 0) {
        sxe__balance_join(slot);
        sxe__balance_note(connections);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

START_TEST(a_worker_knows_what_the_others_have)
{
    plan_start(2);
    ck_assert_int_eq(sxe__balance_begin(4), 0);
    ck_assert(sxe__balance_may_accept()); /* this process is not a worker */
    sxe__balance_note(1);
    be_worker(1, 10);
    sxe__balance_join(0);
    ck_assert(sxe__balance_may_accept());
    int peers[2];
    SXE *listener = listen_tcp(push_read);
    accept_peer(listener, &peers[0]);
    ck_assert(sxe__balance_may_accept());
    sxe__balance_clear(1);
    be_worker(2, 0);
    be_worker(3, 0);
    /* 1 * 3 <= 1 + 3: this worker may have another connection. */
    ck_assert(sxe__balance_may_accept());
    sxe__balance_clear(0);
    sxe__balance_clear(2);
    sxe__balance_clear(3);
    ck_assert(
        sxe__balance_may_accept()); /* this worker is leaving, so others need not wait for it */
    close(peers[0]);
    EXPECT("close", NULL, 0);
    sxe__balance_end();
    plan_stop();
}
END_TEST

START_TEST(a_worker_with_more_than_the_others_leaves_the_next_to_them)
{
    int peers[6];

    plan_start(8);
    ck_assert_int_eq(sxe__balance_begin(2), 0);
    sxe__balance_join(0);
    be_worker(1, 0);
    SXE *listener = listen_tcp(push_read);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(sxe__balance_may_accept());
        accept_peer(listener, &peers[i]);
    }
    accept_peer(listener, &peers[2]);
    ck_assert(!sxe__balance_may_accept());
    be_worker(1, 4);
    ck_assert(sxe__balance_may_accept());
    for (unsigned i = 0; i < 3; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    sxe__balance_end();
    plan_stop();
}
END_TEST

/* A worker with three connections asks when `begin` can be read. Its process is a copy of this one,
 * and so are its connections; it closes its copies of their other ends. Exits with 1 if it may
 * accept. */
static pid_t
be_worker_that_asks(unsigned slot, int begin, const int peers[3])
{
    pid_t pid = fork();
    char byte;

    if (pid != 0)
        return pid;
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    sxe__balance_join(slot);
    _exit(read(begin, &byte, 1) == 1 && sxe__balance_may_accept());
}

START_TEST(connections_that_have_closed_do_not_count)
{
    int peers[3];
    int ends[2];
    int status = 0;

    plan_start(8);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(sxe__balance_begin(2), 0);
    sxe__balance_look(); /* this process is not a worker yet */
    sxe__balance_join(0);
    SXE *listener = listen_tcp(push_read);
    for (unsigned i = 0; i < 3; i++)
        accept_peer(listener, &peers[i]);
    ck_assert(sxe__balance_may_accept());
    pid_t pid = be_worker_that_asks(1, ends[0], peers);
    for (unsigned i = 0; i < 3; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    if (_i == 0)
        sxe__balance_look();
    ck_assert_int_eq(write(ends[1], "", 1), 1);
    waitpid(pid, &status, 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), _i); /* 3 * 2 > 3 + 0 + 2 */
    close(ends[0]);
    close(ends[1]);
    sxe__balance_end();
    plan_stop();
}
END_TEST

START_TEST(without_a_table_everybody_may_accept)
{
    sxe__balance_join(0);
    sxe__balance_note(5);
    sxe__balance_clear(0);
    ck_assert(sxe__balance_may_accept());
    sxe__balance_end();
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe__balance_begin(2), -ENOMEM);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd balance");
    TCase *t = tcase_create("balance");

    tcase_add_loop_test(t, there_is_always_one_that_may_accept_and_none_has_much_more_than_the_mean,
                        0, (int)(sizeof(sizes) / sizeof(sizes[0])));
    tcase_add_test(t, of_64_connections_none_has_more_than_1_3_times_the_mean);
    tcase_add_test(t, a_worker_knows_what_the_others_have);
    tcase_add_test(t, a_worker_with_more_than_the_others_leaves_the_next_to_them);
    tcase_add_loop_test(t, connections_that_have_closed_do_not_count, 0, 2);
    tcase_add_test(t, without_a_table_everybody_may_accept);
    suite_add_tcase(suite, t);
    return sxe_test_main(suite);
}
