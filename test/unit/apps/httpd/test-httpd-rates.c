/* SPDX-License-Identifier: MIT
 *
 * Limits of rates: their values, and which clients may pass when. The clock stands still unless a
 * case advances it.
 */
#include "../../../../apps/httpd/serve/rate-limit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "test-main.h"

#define SECOND UINT64_C(1000000000)

/* ---- Texts ---- */

static const struct {
    const char *text;
    uint64_t interval_ns;
    uint32_t burst;
} good[] = {{"1/s", SECOND, 1},
            {"10/s", SECOND / 10, 10},
            {"100/m", SECOND * 6 / 10, 100},
            {"1000/h", SECOND * 36 / 10, 1000},
            {"1000000/s", 1000, 1000000}};

START_TEST(a_rate_is_a_number_and_a_time)
{
    struct rate_limit limit = {.route = 7};

    ck_assert(rate_limit_parse(&limit, good[_i].text));
    ck_assert_uint_eq(limit.interval_ns, good[_i].interval_ns);
    ck_assert_uint_eq(limit.burst, good[_i].burst);
    ck_assert_uint_eq(limit.route, 7);
}
END_TEST

static const char *const bad[] = {"",     "5",     "/s",   "0/s",       "5/d",
                                  "5/",   "-5/s",  "+5/s", "1000001/s", " 5/s",
                                  "5/s ", "0x5/s", "5 /s", "5/S",       "99999999999999999999/s"};

START_TEST(others_are_refused)
{
    struct rate_limit limit = {.route = 7};

    ck_assert(!rate_limit_parse(&limit, bad[_i]));
    ck_assert_uint_eq(limit.burst, 0);
}
END_TEST

/* ---- Clients ---- */

static struct rate_limit limit;
static unsigned open_before;

static void
set_up(void)
{
    open_before = fake_os_open_fds();
    fake_time_start(1000 * SECOND, 1000 * SECOND);
    limit = (struct rate_limit){.route = 1, .interval_ns = 2 * SECOND, .burst = 3};
    ck_assert_int_eq(rate_limit_begin(), 0);
}

static void
tear_down(void)
{
    rate_limit_end();
    fake_time_stop();
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
}

static unsigned
take_ipv4(uint32_t ip)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};

    memcpy(&storage, &address, sizeof(address));
    return rate_limit_take(&limit, &storage, sizeof(address));
}

static unsigned
take_ipv6(unsigned char first, unsigned char eighth, unsigned char last)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};

    address.sin6_addr.s6_addr[0] = first;
    address.sin6_addr.s6_addr[7] = eighth;
    address.sin6_addr.s6_addr[15] = last;
    memcpy(&storage, &address, sizeof(address));
    return rate_limit_take(&limit, &storage, sizeof(address));
}

static unsigned
take_mapped(uint32_t ip)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};

    memset(address.sin6_addr.s6_addr + 10, 0xff, 2);
    ip = htonl(ip);
    memcpy(address.sin6_addr.s6_addr + 12, &ip, sizeof(ip));
    memcpy(&storage, &address, sizeof(address));
    return rate_limit_take(&limit, &storage, sizeof(address));
}

START_TEST(a_burst_passes_then_one_each_interval)
{
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(take_ipv4(1), 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(take_ipv4(1), 2);
    fake_time_advance(SECOND / 2);
    ck_assert_uint_eq(take_ipv4(1), 2);
    fake_time_advance(SECOND / 2);
    ck_assert_uint_eq(take_ipv4(1), 1);
    fake_time_advance(SECOND);
    ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_ipv4(1), 2);
    fake_time_advance(100 * SECOND);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_ipv4(1), 2);
}
END_TEST

START_TEST(a_rate_that_a_reload_raised_holds_for_earlier_clients_too)
{
    limit = (struct rate_limit){.route = 1, .interval_ns = 1800 * SECOND, .burst = 50};
    for (unsigned i = 0; i < 50; i++)
        ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_ipv4(1), 1800);
    limit.interval_ns = SECOND;
    ck_assert_uint_eq(take_ipv4(1), 1);
    ck_assert_uint_eq(take_ipv4(1), 1);
    fake_time_advance(SECOND);
    ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_ipv4(1), 1);
    fake_time_advance(50 * SECOND);
    for (unsigned i = 0; i < 50; i++)
        ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_ipv4(1), 1);
}
END_TEST

START_TEST(each_client_of_each_route_has_its_own)
{
    limit.burst = 1;
    ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_mapped(1), 2);
    ck_assert_uint_eq(take_ipv4(2), 0);
    ck_assert_uint_eq(take_ipv6(0x20, 1, 1), 0);
    ck_assert_uint_eq(take_ipv6(0x20, 1, 2), 2);
    ck_assert_uint_eq(take_ipv6(0x20, 2, 1), 0);
    ck_assert_uint_eq(take_ipv6(0, 0, 1), 0);
    ck_assert_uint_eq(rate_limit_take(&limit, NULL, 0), 0);
    ck_assert_uint_eq(rate_limit_take(&limit, NULL, 0), 2);
    limit.route = 2;
    ck_assert_uint_eq(take_ipv4(1), 0);
    ck_assert_uint_eq(take_ipv4(1), 2);
}
END_TEST

START_TEST(processes_count_together)
{
    int status;
    pid_t child;

    ck_assert_uint_eq(take_ipv4(1), 0);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        rate_limit_join();
        ck_assert_uint_eq(take_ipv4(1), 0);
        ck_assert_uint_eq(take_ipv4(1), 0);
        ck_assert_uint_eq(take_ipv4(1), 2);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(take_ipv4(1), 2);
}
END_TEST

START_TEST(more_clients_than_there_is_room_for_displace_others)
{
    limit.burst = 1;
    for (uint32_t i = 0; i < 2 * RATE_LIMIT_CLIENTS; i++)
        ck_assert_uint_eq(take_ipv4(i), 0);
    ck_assert_uint_eq(take_ipv4(2 * RATE_LIMIT_CLIENTS - 1), 2);
    ck_assert_uint_eq(take_ipv4(0), 0);
}
END_TEST

START_TEST(without_a_limit_or_a_table_all_pass)
{
    const struct rate_limit none = {.route = 1};

    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(rate_limit_take(&none, NULL, 0), 0);
    rate_limit_end();
    rate_limit_join();
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(take_ipv4(1), 0);
}
END_TEST

START_TEST(a_table_that_cannot_be_had_is_told)
{
    rate_limit_end();
    fake_os_fail(FAKE_MEMFD_CREATE, 1, 1, EMFILE);
    ck_assert_int_eq(rate_limit_begin(), -EMFILE);
}
END_TEST

static Suite *
rates_suite(void)
{
    Suite *suite = suite_create("httpd rates");
    TCase *texts = tcase_create("texts");
    TCase *taken = tcase_create("clients");

    tcase_add_loop_test(texts, a_rate_is_a_number_and_a_time, 0, sizeof(good) / sizeof(good[0]));
    tcase_add_loop_test(texts, others_are_refused, 0, sizeof(bad) / sizeof(bad[0]));
    suite_add_tcase(suite, texts);
    tcase_add_checked_fixture(taken, set_up, tear_down);
    tcase_add_test(taken, a_burst_passes_then_one_each_interval);
    tcase_add_test(taken, a_rate_that_a_reload_raised_holds_for_earlier_clients_too);
    tcase_add_test(taken, each_client_of_each_route_has_its_own);
    tcase_add_test(taken, processes_count_together);
    tcase_add_test(taken, more_clients_than_there_is_room_for_displace_others);
    tcase_add_test(taken, without_a_limit_or_a_table_all_pass);
    tcase_add_test(taken, a_table_that_cannot_be_had_is_told);
    suite_add_tcase(suite, taken);
    return suite;
}

int
main(void)
{
    return sxe_test_main(rates_suite());
}
