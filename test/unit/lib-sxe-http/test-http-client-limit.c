/* SPDX-License-Identifier: MIT
 *
 * The limit of connections for each client address: whose connection it is, and the counts.
 */
#include "sxe-http-server-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "test-main.h"

/* ---- Keys ---- */

static uint64_t
key_of(const char *text)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;

    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        return sxe__http_client_key(&address, sizeof(*in));
    }
    ck_assert_int_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    in6->sin6_family = AF_INET6;
    return sxe__http_client_key(&address, sizeof(*in6));
}

static const struct pair {
    const char *one;
    const char *other;
    bool is_same;
} pairs[] = {
    {"192.0.2.1", "192.0.2.1", true},
    {"192.0.2.1", "192.0.2.2", false},
    {"192.0.2.1", "1.2.0.192", false},
    {"192.0.2.1", "::ffff:192.0.2.1", true},
    {"0.0.0.0", "::", false},
    {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
    {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
    {"2001:db8::1", "2101:db8::1", false},
    {"2001:db8:ffff::1", "32.1.13.184", false},
    {"2001:db8:ffff::1", "184.13.1.32", false},
    {"fe80::1", "fe80::2", true},
};
#define PAIRS (sizeof(pairs) / sizeof(pairs[0]))

START_TEST(an_address_is_one_of_ipv4_or_a_network_of_ipv6)
{
    const struct pair *pair = &pairs[_i];

    ck_assert_uint_ne(key_of(pair->one), 0);
    ck_assert_uint_ne(key_of(pair->other), 0);
    ck_assert(pair->is_same == (key_of(pair->one) == key_of(pair->other)));
}
END_TEST

START_TEST(loopback_is_not_counted)
{
    static const char *const texts[] = {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"};

    ck_assert_uint_eq(key_of(texts[_i]), 0);
}
END_TEST

START_TEST(what_is_no_ip_address_is_not_counted)
{
    struct sockaddr_storage address = {.ss_family = AF_UNIX};

    ck_assert_uint_eq(sxe__http_client_key(&address, sizeof(struct sockaddr_un)), 0);
    address.ss_family = AF_INET;
    ck_assert_uint_eq(sxe__http_client_key(&address, 0), 0);
    ck_assert_uint_eq(sxe__http_client_key(&address, sizeof(struct sockaddr_in) - 1), 0);
    address.ss_family = AF_INET6;
    ck_assert_uint_eq(sxe__http_client_key(&address, sizeof(struct sockaddr_in6) - 1), 0);
}
END_TEST

/* ---- The table ---- */

#define CONNECTIONS 100
#define KEYS        150
#define STEPS       50000

/* Compare the table with a plain array, sometimes with as many entries as there may be. */
START_TEST(counts_are_those_of_a_plain_array)
{
    struct sxe_http http = {.config.connections = CONNECTIONS};
    uint32_t counts[KEYS] = {0};
    uint64_t keys[CONNECTIONS]; /* the key of each connection */
    uint32_t number = 0;
    uint32_t seed = 1 + (uint32_t)_i;

    ck_assert_int_eq(sxe__http_clients_new(&http), 0);
    for (unsigned step = 0; step < STEPS; step++) {
        bool is_full = number == CONNECTIONS;
        uint32_t at;

        seed = seed * 1664525 + 1013904223;
        at = seed >> 8;
        /* For a thousand steps the table fills, for the next thousand it becomes empty. */
        if (!is_full && (number == 0 || (at >> 12 & 7) < (step / 1000 % 2 == 0 ? 6 : 2))) {
            uint64_t key = at % KEYS + 1;

            keys[number++] = key;
            ck_assert_uint_eq(sxe__http_clients_add(http.clients, key), ++counts[key - 1]);
        } else {
            uint32_t gone = at % number;
            uint64_t key = keys[gone];

            keys[gone] = keys[--number];
            sxe__http_clients_remove(http.clients, key);
            counts[key - 1]--;
        }
    }
    while (number > 0)
        sxe__http_clients_remove(http.clients, keys[--number]);
    for (unsigned i = 0; i < KEYS; i++)
        ck_assert_uint_eq(sxe__http_clients_add(http.clients, i + 1), 1);
    free(http.clients);
}
END_TEST

/* ---- Several processes ---- */

static struct sxe_http
with_share(struct sxe_http_shares *shares, unsigned share)
{
    struct sxe_http http = {
        .config.connections = CONNECTIONS, .config.shares = shares, .config.share = share};

    ck_assert_int_eq(sxe__http_clients_new(&http), 0);
    return http;
}

START_TEST(a_connection_counts_in_all_shares)
{
    struct sxe_http_shares *shares = sxe_http_shares_new(3, CONNECTIONS);
    struct sxe_http https[3];

    for (unsigned i = 0; i < 3; i++)
        https[i] = with_share(shares, i);
    for (uint64_t key = 1; key <= CONNECTIONS; key++) {
        for (unsigned i = 0; i < 3; i++)
            ck_assert_uint_eq(sxe__http_clients_add(https[i].clients, key), i + 1);
    }
    ck_assert_uint_eq(sxe__http_clients_add(https[0].clients, 7), 4);
    sxe__http_clients_remove(https[0].clients, 7);
    for (uint64_t key = 1; key <= CONNECTIONS; key += 2)
        sxe__http_clients_remove(https[1].clients, key);
    ck_assert_uint_eq(sxe__http_clients_add(https[2].clients, 1), 3);
    ck_assert_uint_eq(sxe__http_clients_add(https[2].clients, 2), 4);
    for (unsigned i = 0; i < 3; i++)
        sxe__http_clients_delete(&https[i]);
    sxe_http_shares_delete(shares);
}
END_TEST

/* The process died in the middle of a removal, so its table stays inconsistent: others must not
 * wait for it. */
START_TEST(what_a_process_had_that_died_is_given_back)
{
    struct sxe_http_shares *shares = sxe_http_shares_new(2, CONNECTIONS);
    struct sxe_http http = with_share(shares, 0);
    pid_t pid = fork();

    if (pid == 0) {
        struct sxe_http own = with_share(shares, 1);

        for (unsigned i = 0; i < 50; i++)
            sxe__http_clients_add(own.clients, 5);
        ((uint32_t *)(void *)own.clients)[3] = 1; /* odd: the table is being changed */
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_uint_eq(sxe__http_clients_add(http.clients, 5), 51);
    sxe_http_shares_clear(shares, 1);
    ck_assert_uint_eq(sxe__http_clients_add(http.clients, 5), 2);
    sxe_http_shares_delete(shares);
}
END_TEST

/* An attacker who took over a process may write anything to the shared memory. */
START_TEST(what_a_process_writes_over_its_table_clears_no_more_than_that)
{
    struct sxe_http_shares *shares = sxe_http_shares_new(2, CONNECTIONS);
    struct sxe_http first = with_share(shares, 0);
    struct sxe_http last = with_share(shares, 1);

    ck_assert_uint_eq(sxe__http_clients_add(last.clients, 5), 1);
    memset(first.clients, 0xff, 64);
    sxe_http_shares_clear(shares, 0);
    ck_assert_uint_eq(((uint32_t *)(void *)first.clients)[3], 0);
    sxe_http_shares_delete(shares);
}
END_TEST

START_TEST(a_share_that_is_not_there_or_too_small_is_an_error)
{
    struct sxe_http_shares *shares = sxe_http_shares_new(2, CONNECTIONS);
    struct sxe_http_config config = {.shares = shares, .share = 2, .connections = CONNECTIONS};

    ck_assert_ptr_null(sxe_http_new(&config));
    ck_assert_int_eq(errno, EINVAL);
    config.share = 1;
    config.connections = 100 * CONNECTIONS;
    ck_assert_ptr_null(sxe_http_new(&config));
    ck_assert_int_eq(errno, EINVAL);
    sxe_http_shares_delete(shares);
    sxe_http_shares_delete(NULL);
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    ck_assert_ptr_null(sxe_http_shares_new(2, CONNECTIONS));
    ck_assert_int_eq(errno, ENOMEM);
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(sxe_http_shares_new(2, CONNECTIONS));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

/* Two processes add and remove all the time: neither may ever see an impossible sum. */
START_TEST(a_table_that_changes_is_read_whole)
{
    struct sxe_http_shares *shares = sxe_http_shares_new(2, CONNECTIONS);
    struct sxe_http http = with_share(shares, 0);
    pid_t pid;
    struct sxe_http own = with_share(shares, 1);

    for (uint64_t key = 1; key <= 40; key++)
        sxe__http_clients_add(own.clients, key);
    pid = fork();
    if (pid == 0) {
        for (uint64_t key = 41;; key = key == 90 ? 41 : key + 1) {
            sxe__http_clients_add(own.clients, key);
            sxe__http_clients_remove(own.clients, key);
        }
    }
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t key = i % 40 + 1;

        ck_assert_uint_eq(sxe__http_clients_add(http.clients, key), 2);
        sxe__http_clients_remove(http.clients, key);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    sxe_http_shares_delete(shares);
}
END_TEST

static Suite *
address_suite(void)
{
    Suite *suite = suite_create("http address");
    TCase *keys = tcase_create("keys");
    TCase *table = tcase_create("table");
    TCase *shares = tcase_create("shares");

    tcase_add_loop_test(keys, an_address_is_one_of_ipv4_or_a_network_of_ipv6, 0, PAIRS);
    tcase_add_loop_test(keys, loopback_is_not_counted, 0, 4);
    tcase_add_test(keys, what_is_no_ip_address_is_not_counted);
    suite_add_tcase(suite, keys);
    tcase_add_loop_test(table, counts_are_those_of_a_plain_array, 0, 10);
    suite_add_tcase(suite, table);
    tcase_add_test(shares, a_connection_counts_in_all_shares);
    tcase_add_test(shares, what_a_process_had_that_died_is_given_back);
    tcase_add_test(shares, what_a_process_writes_over_its_table_clears_no_more_than_that);
    tcase_add_test(shares, a_share_that_is_not_there_or_too_small_is_an_error);
    tcase_add_test(shares, a_table_that_changes_is_read_whole);
    suite_add_tcase(suite, shares);
    return suite;
}

int
main(void)
{
    return sxe_test_main(address_suite());
}
