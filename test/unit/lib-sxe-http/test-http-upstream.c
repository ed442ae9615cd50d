/* SPDX-License-Identifier: MIT
 *
 * The addresses of an upstream: which gets a request, and which is left out after failures.
 */
#include "http-proxy-site.h"

#include <errno.h>
#include <sys/socket.h>

#include "sxe-cidr.h"

static int servers[UPSTREAMS];
static bool is_broken[UPSTREAMS]; /* this upstream closes each connection without a reply */

static void
begin(struct sxe_http_upstream_config config, unsigned number)
{
    for (unsigned i = 0; i < UPSTREAMS; i++)
        servers[i] = -1;
    memset(is_broken, 0, sizeof(is_broken));
    serve_proxy(config, number);
}

static void
end(void)
{
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        if (servers[i] >= 0)
            close(servers[i]);
    }
    end_proxy();
}

/* Let the addresses read and answer. Returns the one that answered, or SXE_NONE. */
static unsigned
turn_servers(void)
{
    char text[2000];

    for (unsigned i = 0; i < proxy_site.number; i++) {
        if (servers[i] < 0 && is_connected_to(i))
            servers[i] = accept_proxy(i);
        if (servers[i] < 0 || recv(servers[i], text, sizeof(text), MSG_DONTWAIT) <= 0)
            continue;
        if (!is_broken[i]) {
            peer_send(servers[i], OK_HEAD(0), strlen(OK_HEAD(0)));
            return i;
        }
        close(servers[i]);
        servers[i] = -1;
    }
    return SXE_NONE;
}

/* Send a request; returns the address that answered it. */
static unsigned
ask(int peer, const char *text)
{
    unsigned answered = SXE_NONE;

    say(peer, text);
    for (unsigned i = 0; i < WAIT_TURNS && answered == SXE_NONE; i++) {
        turn(1);
        answered = turn_servers();
    }
    EXPECT_OK(peer, "");
    return answered;
}

/* Send so many requests, and count which address answered. */
static void
count_answers(int peer, unsigned number, unsigned counts[UPSTREAMS])
{
    memset(counts, 0, UPSTREAMS * sizeof(counts[0]));
    for (unsigned i = 0; i < number; i++)
        counts[ask(peer, GET("/a"))]++;
}

/* ---- Balance ---- */

START_TEST(addresses_take_turns_by_their_weights)
{
    static const struct sxe_http_upstream_address addresses[] = {
        {.weight = 1}, {.weight = 3}, {.weight = 0}};
    unsigned before = SXE_NONE;
    unsigned counts[UPSTREAMS];
    int peer;

    begin((struct sxe_http_upstream_config){.addresses = addresses}, 3);
    peer = client();
    count_answers(peer, 50, counts);
    ck_assert_uint_eq(counts[0], 10);
    ck_assert_uint_eq(counts[1], 30);
    ck_assert_uint_eq(counts[2], 10);
    for (unsigned i = 0; i < 20; i++) { /* no address gets all of its requests in a row */
        unsigned now = ask(peer, GET("/a"));

        ck_assert(now != before || now == 1);
        before = now;
    }
    close(peer);
    end();
}
END_TEST

START_TEST(the_address_with_the_fewest_requests_gets_the_next_one)
{
    static const struct sxe_http_upstream_address addresses[] = {{.weight = 1}, {.weight = 2}};
    const struct sxe_http_upstream_config least = {.balance = SXE_HTTP_BALANCE_LEAST,
                                                   .addresses = addresses};
    int peers[9];

    begin(least, 2);
    for (unsigned i = 0; i < 9; i++) {
        peers[i] = client();
        say(peers[i], GET("/a"));
    }
    ck_assert_uint_eq(state_of(0).under_way, 3);
    ck_assert_uint_eq(state_of(1).under_way, 6);
    for (unsigned i = 0; i < 9; i++)
        close(peers[i]);
    turn(3);
    ck_assert_uint_eq(state_of(0).under_way + state_of(1).under_way, 0);
    end();
}
END_TEST

START_TEST(idle_addresses_take_turns)
{
    unsigned counts[UPSTREAMS];
    int peer;

    begin((struct sxe_http_upstream_config){.balance = SXE_HTTP_BALANCE_LEAST}, 3);
    peer = client();
    count_answers(peer, 30, counts);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(counts[i], 10);
    close(peer);
    end();
}
END_TEST

/* Each path, or value of the field, always leads to the same address, and each address gets about
 * its share of them. */
START_TEST(a_key_always_leads_to_the_same_address)
{
    const struct sxe_http_upstream_config hash = {.balance = _i == 0 ? SXE_HTTP_BALANCE_PATH
                                                                     : SXE_HTTP_BALANCE_FIELD,
                                                  .hash_field = "X-Key",
                                                  .max_fails = 1,
                                                  .fail_timeout_ms = 1000000000};
    static unsigned first[200];
    unsigned counts[UPSTREAMS] = {0};
    char text[200];
    int peer;

    begin(hash, 4);
    peer = client();
    for (unsigned round = 0; round < 3; round++) {
        is_broken[1] = round == 2;
        for (unsigned key = 0; key < 200; key++) {
            unsigned answered;

            snprintf(text, sizeof(text), "GET /%u?%u HTTP/1.1\r\nHost: h\r\nX-Key: %u\r\n\r\n",
                     _i == 0 ? key : 1, round, key);
            answered = ask(peer, text);
            if (round == 0) {
                first[key] = answered;
                counts[answered]++;
            } else if (round == 1 || first[key] != 1) {
                ck_assert_uint_eq(answered, first[key]);
            } else { /* the keys of this address go to all others */
                ck_assert_uint_ne(answered, 1);
                counts[answered] += 1000;
            }
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_gt(counts[i] % 1000, 25);
        ck_assert(i == 1 || counts[i] > 5000);
    }
    close(peer);
    end();
}
END_TEST

START_TEST(requests_without_the_field_have_one_key)
{
    const struct sxe_http_upstream_config hash = {.balance = SXE_HTTP_BALANCE_FIELD,
                                                  .hash_field = "X-Key"};
    unsigned first;
    int peer;

    begin(hash, 4);
    peer = client();
    first = ask(peer, GET("/a"));
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(ask(peer, GET("/b")), first);
    close(peer);
    end();
}
END_TEST

/* The clients are those of a trusted proxy, so that there are many. */
START_TEST(a_client_always_leads_to_the_same_address)
{
    static const char *const networks[] = {"192.0.2.", "2001:db8::"};
    struct sxe_cidr_list list = {0};
    unsigned counts[UPSTREAMS] = {0};
    char text[200];
    char ip[64];
    int peer;

    for (unsigned i = 0; i < UPSTREAMS; i++)
        servers[i] = -1;
    ck_assert_int_eq(sxe_cidr_add(&list, "127.0.0.1", NULL), 0);
    serve_proxy_with((struct sxe_http_upstream_config){.balance = SXE_HTTP_BALANCE_CLIENT}, 4,
                     (struct sxe_http_config){.stream = true,
                                              .trusted = &list,
                                              .forwarding = SXE_HTTP_FORWARDING_X_FORWARDED},
                     NULL);
    peer = client();
    for (unsigned i = 1; i < 200; i++) {
        unsigned first;

        snprintf(ip, sizeof(ip), "%s%u", networks[_i], i);
        snprintf(text, sizeof(text), "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: %s\r\n\r\n",
                 ip);
        first = ask(peer, text);
        ck_assert_uint_eq(ask(peer, text), first);
        counts[first]++;
    }
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_gt(counts[i], 25);
    close(peer);
    end();
}
END_TEST

START_TEST(clients_at_a_unix_socket_have_one_key)
{
    static const char path[] = "@sxe-test-http-upstream";
    unsigned first = SXE_NONE;

    begin((struct sxe_http_upstream_config){.balance = SXE_HTTP_BALANCE_CLIENT}, 4);
    ck_assert_int_eq(sxe_http_listen_unix(site.http, path), 0);
    for (unsigned i = 0; i < 8; i++) {
        SXE *s = sxe_new_unix(NULL, path, push_connected, push_read, push_close);
        unsigned answered = SXE_NONE;

        ck_assert_int_eq(sxe_connect_unix(s), 0);
        EXPECT("connected", s, 0);
        ck_assert_int_eq(SXE_WRITE_LITERAL(s, GET("/a")), 0);
        for (unsigned turns = 0; turns < WAIT_TURNS && answered == SXE_NONE; turns++) {
            turn(1);
            answered = turn_servers();
        }
        ck_assert_str_eq(EXPECT("read", s, 75)->name, "read");
        ck_assert(i == 0 || answered == first);
        first = answered;
        sxe_abort(s);
        EXPECT("close", s, ECONNABORTED);
    }
    end();
}
END_TEST

/* ---- Health ---- */

START_TEST(an_address_that_fails_is_left_out_for_some_time)
{
    unsigned counts[UPSTREAMS];
    int peer;

    begin((struct sxe_http_upstream_config){.max_fails = 2, .fail_timeout_ms = 5000}, 2);
    peer = client();
    is_broken[1] = true;
    count_answers(peer, 20, counts);
    ck_assert_uint_eq(counts[0], 20);
    ck_assert_uint_eq(state_of(1).failures, 2);
    ck_assert(state_of(1).is_down);
    ck_assert(!state_of(0).is_down);
    wait_ms(5100);
    is_broken[1] = false;
    count_answers(peer, 20, counts);
    ck_assert_uint_eq(counts[0], 10);
    ck_assert(!state_of(1).is_down);
    close(peer);
    end();
}
END_TEST

START_TEST(failures_that_are_far_apart_do_not_count)
{
    unsigned counts[UPSTREAMS];
    int peer;

    begin((struct sxe_http_upstream_config){.max_fails = 2, .fail_timeout_ms = 5000}, 2);
    peer = client();
    for (unsigned i = 0; i < 4; i++) {
        is_broken[1] = true;
        count_answers(peer, 2, counts);
        is_broken[1] = false;
        wait_ms(5100);
        ck_assert_uint_eq(state_of(1).failures, i + 1);
        ck_assert(!state_of(1).is_down);
    }
    close(peer);
    end();
}
END_TEST

START_TEST(an_address_that_comes_back_gets_its_share_slowly)
{
    unsigned counts[UPSTREAMS];
    int peer;

    begin((struct sxe_http_upstream_config){.max_fails = 1,
                                            .fail_timeout_ms = 1000,
                                            .slow_start_ms = 100000,
                                            .idle_timeout_ms = UINT32_MAX},
          2);
    peer = client();
    is_broken[1] = true;
    count_answers(peer, 4, counts);
    ck_assert(state_of(1).is_down);
    is_broken[1] = false;
    wait_ms(1100);
    count_answers(peer, 100, counts);
    ck_assert_uint_lt(counts[1], 5);
    wait_ms(50000);
    count_answers(peer, 90, counts);
    ck_assert_uint_ge(counts[1], 28);
    ck_assert_uint_le(counts[1], 33);
    wait_ms(50000);
    count_answers(peer, 90, counts);
    ck_assert_uint_eq(counts[1], 45);
    close(peer);
    end();
}
END_TEST

/* ---- Checks ---- */

#define CHECK "GET /health HTTP/1.1\r\nHost: 127.0.0.1:"

/* Let both addresses answer the checks of one period, the second one with this status. */
static void
answer_checks(const char *second)
{
    const char *const replies[2] = {OK_HEAD(0), second};

    wait_ms(1000);
    for (unsigned i = 0; i < 2; i++) {
        char text[200] = "";
        int server = accept_proxy(i);

        turn(3);
        ck_assert_int_gt(recv(server, text, sizeof(text) - 1, MSG_DONTWAIT), 0);
        ck_assert_msg(strncmp(text, CHECK, strlen(CHECK)) == 0, "%s", text);
        say(server, replies[i]);
        turn(3);
        close(server);
        turn(3);
    }
}

static const struct sxe_http_upstream_config checked = {
    .check_path = "/health", .check_interval_ms = 1000, .max_fails = UINT32_MAX};

START_TEST(an_address_that_fails_its_checks_is_left_out_until_it_passes_some)
{
    static const char *const bad[] = {"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nno",
                                      "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n",
                                      "nonsense\r\n\r\n", ""};
    unsigned counts[UPSTREAMS];
    int peer;

    begin(checked, 2);
    answer_checks(bad[_i]);
    answer_checks(bad[_i]);
    ck_assert(!state_of(1).is_down);
    answer_checks(OK_HEAD(0)); /* the failures are not in a row */
    for (unsigned i = 0; i < 3; i++)
        answer_checks(bad[_i]);
    ck_assert(state_of(1).is_down);
    ck_assert(!state_of(0).is_down);
    peer = client();
    count_answers(peer, 10, counts);
    ck_assert_uint_eq(counts[0], 10);
    answer_checks(OK_HEAD(0));
    answer_checks(bad[_i]);
    answer_checks(OK_HEAD(0));
    ck_assert(state_of(1).is_down);
    answer_checks("HTTP/1.1 302 X\r\nContent-Length: 2\r\n\r\nok");
    ck_assert(!state_of(1).is_down);
    count_answers(peer, 10, counts);
    ck_assert_uint_eq(counts[0], 5);
    ck_assert_uint_eq(state_of(1).failures, 0);
    close(peer);
    end();
}
END_TEST

START_TEST(a_check_that_is_not_answered_in_its_period_has_failed)
{
    begin(checked, 2);
    wait_ms(1000);
    close(accept_proxy(0));
    for (unsigned i = 0; i < 30 && !state_of(1).is_down; i++)
        wait_ms(500);
    ck_assert(state_of(1).is_down);
    end();
}
END_TEST

START_TEST(a_check_that_cannot_be_sent_has_failed)
{
    begin(checked, 2);
    for (unsigned i = 0; i < 30 && !state_of(1).is_down; i++) {
        fake_os_fail(FAKE_SOCKET, 1, 1000, EMFILE);
        wait_ms(500);
    }
    fake_os_reset();
    ck_assert(state_of(0).is_down && state_of(1).is_down);
    end();
}
END_TEST

START_TEST(if_all_addresses_fail_all_are_asked)
{
    unsigned counts[UPSTREAMS];
    int peer;

    begin((struct sxe_http_upstream_config){.max_fails = 1}, 2);
    peer = client();
    is_broken[0] = is_broken[1] = true;
    say(peer, GET("/a"));
    for (unsigned i = 0; i < 20; i++) {
        turn(1);
        turn_servers();
    }
    EXPECT_REPLY(peer, bad_gateway);
    ck_assert(state_of(0).is_down && state_of(1).is_down);
    is_broken[0] = is_broken[1] = false;
    count_answers(peer, 10, counts);
    ck_assert_uint_eq(counts[0], 5);
    close(peer);
    end();
}
END_TEST

START_TEST(a_single_address_is_never_left_out)
{
    int peer;

    begin((struct sxe_http_upstream_config){.max_fails = 1}, 1);
    peer = client();
    is_broken[0] = true;
    say(peer, GET("/a"));
    for (unsigned i = 0; i < 20; i++) {
        turn(1);
        turn_servers();
    }
    EXPECT_REPLY(peer, bad_gateway);
    ck_assert(!state_of(0).is_down);
    is_broken[0] = false;
    ck_assert_uint_eq(ask(peer, GET("/a")), 0);
    close(peer);
    end();
}
END_TEST

/* ---- Making and deleting ---- */

#define ONE .addresses = &good, .addresses_number = 1

START_TEST(a_configuration_that_cannot_be_is_refused)
{
    static const struct sxe_http_upstream_address good = {.ip = "127.0.0.1", .port = 1};
    static const struct sxe_http_upstream_address bad[2] = {{.ip = "127.0.0.1", .port = 1},
                                                            {.ip = "localhost", .port = 1}};
    static const struct sxe_http_upstream_address no_port = {.ip = "127.0.0.1"};
    static const struct sxe_http_upstream_address both = {.ip = "::1", .port = 1, .path = "/a"};
    static struct sxe_http_upstream_address many[SXE_HTTP_UPSTREAM_ADDRESSES + 1];
    const struct sxe_http_upstream_config configs[] = {
        {.addresses = &good},
        {.addresses = bad, .addresses_number = 2},
        {.addresses = many, .addresses_number = SXE_COUNT(many)},
        {.addresses = &good, .addresses_number = 1, .balance = SXE_HTTP_BALANCE_FIELD},
        {.addresses_number = 1},
        {.addresses = &no_port, .addresses_number = 1},
        {.addresses = &both, .addresses_number = 1},
        {ONE, .balance = (enum sxe_http_balance)9},
        {ONE, .balance = SXE_HTTP_BALANCE_FIELD, .hash_field = ""},
        {ONE, .balance = SXE_HTTP_BALANCE_FIELD, .hash_field = "X Key"},
        {ONE, .balance = SXE_HTTP_BALANCE_FIELD, .hash_field = "X-Key:"},
        {ONE, .limits = {.head_max = 100, .line_max = 0, .fields_max = 10}},
        {ONE, .limits = {.head_max = 100, .line_max = 101, .fields_max = 10}},
        {ONE, .limits = {.head_max = 100, .line_max = 100, .fields_max = 0}},
        {ONE, .limits = {.head_max = 100, .line_max = 100, .fields_max = 256}},
        {ONE, .connections_max = 65537},
        {ONE, .tunnels_max = 65537},
        {ONE, .check_path = "health"},
        {ONE, .check_path = "/health?x"},
        {ONE, .tls = (struct sxe_tls *)&many},
    };

    for (unsigned i = 0; i < SXE_COUNT(many); i++)
        many[i] = good;
    for (unsigned i = 0; i < SXE_COUNT(configs); i++) {
        errno = 0;
        ck_assert_msg(sxe_http_upstream_new(&configs[i]) == NULL, "%u", i);
        ck_assert_int_eq(errno, EINVAL);
    }
    sxe_http_upstream_delete(NULL);
}
END_TEST

START_TEST(the_bounds_of_a_configuration_are_accepted)
{
    static const struct sxe_http_upstream_address good = {.ip = "127.0.0.1", .port = 65535};
    const struct sxe_http_upstream_config configs[] = {
        {ONE, .balance = SXE_HTTP_BALANCE_FIELD, .hash_field = "X-Key"},
        {ONE, .balance = SXE_HTTP_BALANCE_PATH, .hash_field = "not used"},
        {ONE, .limits = {.head_max = 100, .line_max = 100, .fields_max = 255}},
        {ONE, .limits = {.head_max = 100, .line_max = 1, .fields_max = 1}},
        {ONE, .tunnels_max = 65536, .tunnel_timeout_ms = UINT32_MAX},
        {ONE, .limits = {.fields_max = 256}}, /* head_max 0: the usual limits */
    };

    for (unsigned i = 0; i < SXE_COUNT(configs); i++) {
        struct sxe_http_upstream *upstream = sxe_http_upstream_new(&configs[i]);

        ck_assert_msg(upstream != NULL, "%u", i);
        sxe_http_upstream_delete(upstream);
    }
}
END_TEST

START_TEST(an_address_may_be_a_unix_socket)
{
    static const struct sxe_http_upstream_address address = {.path = "/run/app.sock"};
    const struct sxe_http_upstream_config config = {.addresses = &address, .addresses_number = 1};
    struct sxe_http_upstream *upstream = sxe_http_upstream_new(&config);
    struct sxe_http_upstream_state state;

    ck_assert_ptr_nonnull(upstream);
    ck_assert_int_eq(sxe_http_upstream_look(upstream, 0, &state), 0);
    ck_assert_str_eq(state.name, "/run/app.sock");
    ck_assert_int_eq(sxe_http_upstream_look(upstream, 1, &state), -EINVAL);
    sxe_http_upstream_delete(upstream);
}
END_TEST

START_TEST(the_plan_has_two_heads_for_each_connection)
{
    static const struct sxe_http_upstream_address addresses[2] = {{.ip = "::1", .port = 1},
                                                                  {.ip = "::1", .port = 2}};
    const struct sxe_http_upstream_config config = {
        .name = "app", .addresses = addresses, .addresses_number = 2, .connections_max = 10};
    struct sxe_http_upstream *upstream = sxe_http_upstream_new(&config);
    size_t bytes = sxe_http_upstream_plan_print(upstream, NULL);
    char text[200] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");

    ck_assert_uint_gt(bytes, 20 * (24576 + 16384));
    ck_assert_uint_lt(bytes, 20 * (24576 + 16384 + 4096));
    ck_assert_uint_eq(sxe_http_upstream_plan_print(upstream, out), bytes);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, "http upstream            20 x "));
    ck_assert_ptr_nonnull(strstr(text, " bytes of address space, memory as app needs it\n"));
    sxe_http_upstream_delete(upstream);
}
END_TEST

START_TEST(without_memory_no_upstream_is_made)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_MALLOC, FAKE_POSIX_MEMALIGN,
                                           FAKE_ALIGNED_ALLOC};
    static const struct sxe_http_upstream_address addresses[2] = {{.ip = "127.0.0.1", .port = 1},
                                                                  {.ip = "::1", .port = 2}};
    const struct sxe_http_upstream_config config = {
        .name = "name", .addresses = addresses, .addresses_number = 2, .check_path = "/a"};
    struct sxe_http_upstream *upstream = NULL;

    for (unsigned nth = 1; upstream == NULL; nth++) {
        fake_os_reset();
        fake_os_sweep(kinds, SXE_COUNT(kinds), nth, false, ENOMEM);
        upstream = sxe_http_upstream_new(&config);
        ck_assert(upstream != NULL || errno == ENOMEM);
        ck_assert_uint_lt(nth, 100);
    }
    ck_assert_uint_eq(fake_os_injected(), 0);
    fake_os_reset();
    sxe_http_upstream_delete(upstream);
}
END_TEST

static Suite *
upstream_suite(void)
{
    Suite *suite = suite_create("http upstream");
    TCase *balance = tcase_create("balance");
    TCase *health = tcase_create("health");
    TCase *life = tcase_create("life");

    tcase_add_test(balance, addresses_take_turns_by_their_weights);
    tcase_add_test(balance, the_address_with_the_fewest_requests_gets_the_next_one);
    tcase_add_test(balance, idle_addresses_take_turns);
    tcase_add_loop_test(balance, a_key_always_leads_to_the_same_address, 0, 2);
    tcase_add_test(balance, requests_without_the_field_have_one_key);
    tcase_add_loop_test(balance, a_client_always_leads_to_the_same_address, 0, 2);
    tcase_add_test(balance, clients_at_a_unix_socket_have_one_key);
    tcase_add_test(health, an_address_that_fails_is_left_out_for_some_time);
    tcase_add_test(health, failures_that_are_far_apart_do_not_count);
    tcase_add_test(health, an_address_that_comes_back_gets_its_share_slowly);
    tcase_add_loop_test(health, an_address_that_fails_its_checks_is_left_out_until_it_passes_some,
                        0, 4);
    tcase_add_test(health, a_check_that_is_not_answered_in_its_period_has_failed);
    tcase_add_test(health, a_check_that_cannot_be_sent_has_failed);
    tcase_add_test(health, if_all_addresses_fail_all_are_asked);
    tcase_add_test(health, a_single_address_is_never_left_out);
    tcase_add_test(life, a_configuration_that_cannot_be_is_refused);
    tcase_add_test(life, the_bounds_of_a_configuration_are_accepted);
    tcase_add_test(life, an_address_may_be_a_unix_socket);
    tcase_add_test(life, the_plan_has_two_heads_for_each_connection);
    tcase_add_test(life, without_memory_no_upstream_is_made);
    suite_add_tcase(suite, balance);
    suite_add_tcase(suite, health);
    suite_add_tcase(suite, life);
    return suite;
}

int
main(void)
{
    return sxe_test_main(upstream_suite());
}
