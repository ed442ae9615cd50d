/* SPDX-License-Identifier: MIT
 *
 * Clients of a server, or of a proxy, that has a name: each new connection dials it.
 */
#include "http-client-peer.h"

#include <errno.h>

#include "named-hosts.h"
#include "sweep.h"
#include "virtual-turns.h"

static char failure[1024];

static void
push_done_and_failure(const struct sxe_http_exchange *e, int result)
{
    snprintf(failure, sizeof(failure), "%s", e->failure == NULL ? "" : e->failure);
    ck_assert_ptr_null(e->closed);
    push_done(e, result);
}

static struct sxe_http_call
told_call_of(const char *target)
{
    struct sxe_http_call call = call_of(target);

    call.on_done = push_done_and_failure;
    return call;
}

static uint64_t
get_told(const char *target)
{
    struct sxe_http_call call = told_call_of(target);

    return must_send(&call);
}

/* Make a client of a name, see named-hosts.h. The clock is virtual. */
static void
serve_name(const char *name, struct sxe_http_client_config config)
{
    hosts_open(name, &port);
    config.name = name;
    config.port = port;
    config.host = "h";
    fake_time_start(SXE_NS_PER_SECOND, 0);
    client = sxe_http_client_new(&config);
    ck_assert_ptr_nonnull(client);
    plan_start_with(0, NULL);
}

static void
stop_name(void)
{
    sxe_http_client_delete(client);
    client = NULL;
    plan_stop();
    fake_time_stop();
    hosts_close();
}

static void
await(enum sxe_state state, unsigned number)
{
    while (sxe_number_in_state(state) != number && event_count() == 0)
        turn_in_no_time();
}

static void
wait_delay(void)
{
    fake_time_advance((SXE_DIAL_NEXT_MS + 1) * SXE_NS_PER_MS);
    turn(2);
}

static int
accept_at(unsigned index)
{
    listener = hosts[index].listener;
    return accept_client();
}

static int
take_at(unsigned index, const char *target)
{
    int peer = accept_at(index);

    expect_request(peer, "GET", target);
    return peer;
}

static bool
somebody_connects_to(unsigned index)
{
    listener = hosts[index].listener;
    return somebody_connects();
}

/* ---- Connections ---- */

START_TEST(calls_of_a_name_share_connections)
{
    int peer;

    serve_name("o", (struct sxe_http_client_config){0});
    get(a);
    await(SXE_STATE_IDLE, 1);
    peer = take_at(0, a);
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    get(b);
    expect_request(peer, "GET", b);
    close(peer); /* the call is sent again, on a new connection, to the address that is known */
    peer = take_at(0, b);
    answer(peer, "2");
    EXPECT_DONE(b, 0, "2");
    ck_assert_uint_eq(hosts_asked, 1);
    close(peer);
    turn(2);
    stop_name();
}
END_TEST

START_TEST(an_address_that_leads_nowhere_holds_up_no_call)
{
    int peer;

    serve_name("rdo", (struct sxe_http_client_config){0});
    get(a);
    await(SXE_STATE_CONNECTING, 1);
    EXPECT_NOTHING();
    wait_delay();
    peer = take_at(2, a);
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
    close(peer);
    stop_name();
}
END_TEST

START_TEST(an_address_as_a_name_is_not_looked_up)
{
    struct sxe_http_client_config config = {.name = "127.0.0.1", .port = 1};

    client = sxe_http_client_new(&config);
    ck_assert_ptr_null(client->dials);
    sxe_http_client_delete(client);
    listener = peer_listen(&port);
    config.port = port;
    client = sxe_http_client_new(&config);
    plan_start_with(0, NULL);
    get(a);
    EXPECT_NOTHING();
    stop();
}
END_TEST

START_TEST(a_proxy_may_have_a_name)
{
    struct sxe_http_client_config config = {.ip = "192.0.2.1", .port = 80};
    char url[64];
    int peer;

    hosts_open("o", &port);
    snprintf(url, sizeof(url), "o.example:%u", (unsigned)port);
    config.proxy = url;
    fake_time_start(SXE_NS_PER_SECOND, 0);
    client = sxe_http_client_new(&config);
    plan_start_with(0, NULL);
    get(a);
    await(SXE_STATE_IDLE, 1);
    peer = accept_at(0);
    PEER_EXPECT(peer, "GET http://192.0.2.1:80/a HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n");
    answer(peer, "1");
    EXPECT_DONE(a, 0, "1");
    close(peer);
    stop_name();
}
END_TEST

/* ---- Failures ---- */

START_TEST(a_name_that_cannot_be_connected_to_fails_calls)
{
    static const struct {
        const char *name;
        int result;
        const char *failure;
    } names[] = {
        {"none", -EADDRNOTAVAIL, "none: Name or service not known"},
        {"rr", -ECONNREFUSED, ""},
        {"xx", -ENETUNREACH, ""},
    };
    struct sxe_http_call call = told_call_of(b);

    serve_name(names[_i].name, (struct sxe_http_client_config){0});
    get_told(a);
    await_event();
    EXPECT_DONE(a, names[_i].result, "");
    ck_assert_str_eq(failure, names[_i].failure);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    if (_i != 1) { /* the failure is known now */
        ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), names[_i].result);
    }
    turn(1);
    stop_name();
}
END_TEST

/* All addresses of the tests are private. */
START_TEST(a_private_address_is_refused_if_only_public_ones_are_wanted)
{
    struct sxe_http_client_config config = {.ip = "8.8.8.8", .port = 80, .public_only = true};
    struct sxe_http_call call = told_call_of(a);

    serve_name("oo", (struct sxe_http_client_config){.public_only = true});
    get_told(a);
    await_event();
    EXPECT_DONE(a, -EACCES, "");
    ck_assert_str_eq(failure, "oo: the address is not public");
    ck_assert(!somebody_connects_to(0) && !somebody_connects_to(1));
    stop_name();
    config.proxy = "p.example";
    ck_assert_ptr_null(sxe_http_client_new(&config));
    config = (struct sxe_http_client_config){.path = "/run/x", .public_only = true};
    ck_assert_ptr_null(sxe_http_client_new(&config));
    config = (struct sxe_http_client_config){.ip = "127.0.0.1", .port = 1, .public_only = true};
    client = sxe_http_client_new(&config);
    plan_start_with(0, NULL);
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -EACCES);
    sxe_http_client_delete(client);
    plan_stop();
}
END_TEST

/* The second call waits for the first, and then the failure is known. */
START_TEST(a_call_that_waited_is_told_why_it_fails)
{
    serve_name("none", (struct sxe_http_client_config){.connections_max = 1});
    get_told(a);
    get_told(b);
    await_event();
    EXPECT_DONE(a, -EADDRNOTAVAIL, "");
    EXPECT_DONE(b, -EADDRNOTAVAIL, "");
    ck_assert_str_eq(failure, "none: Name or service not known");
    stop_name();
}
END_TEST

START_TEST(a_proxy_without_an_address_is_named)
{
    struct sxe_http_client_config config = {.name = "s.example", .port = 80, .proxy = "none:3128"};

    hosts_number = 0;
    fake_time_start(SXE_NS_PER_SECOND, 0);
    client = sxe_http_client_new(&config);
    plan_start_with(0, NULL);
    get_told(a);
    await_event();
    EXPECT_DONE(a, -EADDRNOTAVAIL, "");
    ck_assert_str_eq(failure, "the proxy none:3128: Name or service not known");
    stop_name();
}
END_TEST

START_TEST(connect_timeout_bounds_look_up_and_race)
{
    serve_name("dd", (struct sxe_http_client_config){.connect_timeout_ms = 60000});
    get_told(a);
    await(SXE_STATE_CONNECTING, 1);
    wait_delay();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 2);
    fake_time_advance(59 * SXE_NS_PER_SECOND);
    EXPECT_NOTHING();
    fake_time_advance(2 * SXE_NS_PER_SECOND);
    EXPECT_DONE(a, -ETIMEDOUT, "");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
    EXPECT_NOTHING();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    stop_name();
}
END_TEST

static struct sxe_tls *const tls = (struct sxe_tls *)(uintptr_t)&client;

static int
use(struct sxe_tls *given, SXE *s, const char *name)
{
    ck_assert_ptr_eq(given, tls);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_str_eq(name, "h");
    return -ENOMEM;
}

START_TEST(tls_that_cannot_be_prepared_fails_the_call)
{
    serve_name("oo", (struct sxe_http_client_config){.tls = tls, .use_tls = use});
    get_told(a);
    await_event();
    EXPECT_DONE(a, -ENOMEM, "");
    stop_name();
}
END_TEST

/* ---- Calls that end early ---- */

/* When the dial is cancelled: during the look-up, or the race. */
START_TEST(a_call_that_waits_gets_the_place_of_a_cancelled_one)
{
    struct sxe_http_client_config config = {.connections_max = 1};
    uint64_t call;

    serve_name("d", config);
    call = get(a);
    get_told(b);
    if (_i == 1)
        await(SXE_STATE_CONNECTING, 1);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_CONNECTING), 1);
    ck_assert_int_eq(sxe_http_client_cancel(client, call), 0);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_DROPPED), 1);
    ck_assert_str_eq(sxe__http_link_state_to_string(SXE__HTTP_LINK_DROPPED), "DROPPED");
    await(SXE_STATE_CONNECTING, 1);
    turn(2);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_CONNECTING), 1);
    fake_time_advance(4 * SXE_NS_PER_SECOND);
    turn(2);
    EXPECT_DONE(b, -ETIMEDOUT, "");
    EXPECT_NOTHING();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 1);
    stop_name();
}
END_TEST

/* A client may be deleted during the look-up or the race, before sxe_fini or after it. */
START_TEST(a_client_that_dials_may_be_deleted)
{
    serve_name("dd", (struct sxe_http_client_config){.unref = true});
    get(a);
    if (_i & 1)
        await(SXE_STATE_CONNECTING, 1);
    if (_i & 2) {
        plan_stop();
        sxe_http_client_delete(client);
        fake_time_stop();
        hosts_close();
        return;
    }
    sxe_http_client_delete(client);
    client = NULL;
    turn(2);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
    stop_name();
}
END_TEST

/* ---- Failing calls ---- */

static const struct fault faults[] = {
    {FAKE_SOCKET, {EMFILE, EAFNOSUPPORT}}, {FAKE_CONNECT, {ECONNREFUSED, ENETUNREACH}},
    {FAKE_GETSOCKOPT, {ENOBUFS}},          {FAKE_SETSOCKOPT, {ENOBUFS}},
    {FAKE_SEND, {EPIPE, ENOBUFS}},         {FAKE_EPOLL_CTL, {ENOMEM}},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* The server takes each connection, answers nothing, and closes it. */
static void
turn_and_close(int server)
{
    struct pollfd fd = {.fd = server, .events = POLLIN};

    turn(1);
    sched_yield();
    if (poll(&fd, 1, 0) > 0)
        close(peer_accept(server));
}

static bool
call_once(const struct strike *strike)
{
    struct sxe_http_call calls[] = {told_call_of(a), told_call_of(b)};
    unsigned sent = 0;
    bool touched;

    serve_name("rxo", (struct sxe_http_client_config){.connections_max = 1});
    for (unsigned i = 0; i < 2; i++)
        calls[i].on_done = push_done;
    turn(1);
    sweep_arm(strike);
    for (unsigned i = 0; i < 2; i++)
        sent += sxe_http_client_send(client, &calls[i], NULL) == 0;
    while (event_count() < sent)
        turn_and_close(hosts[2].listener);
    for (unsigned i = 0; i < sent; i++)
        ck_assert_str_eq(event_pop()->name, "done");
    touched = sweep_disarm();
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 1);
    ck_assert_uint_eq(event_count(), 0);
    stop_name();
    return touched;
}

START_TEST(every_failing_call_is_survived)
{
    sweep(&faults[_i], call_once);
}
END_TEST

static Suite *
dial_suite(void)
{
    Suite *suite = suite_create("http client dial");
    TCase *calls = tcase_create("calls");

    tcase_add_test(calls, calls_of_a_name_share_connections);
    tcase_add_test(calls, an_address_that_leads_nowhere_holds_up_no_call);
    tcase_add_test(calls, an_address_as_a_name_is_not_looked_up);
    tcase_add_test(calls, a_proxy_may_have_a_name);
    tcase_add_loop_test(calls, a_name_that_cannot_be_connected_to_fails_calls, 0, 3);
    tcase_add_test(calls, a_call_that_waited_is_told_why_it_fails);
    tcase_add_test(calls, a_proxy_without_an_address_is_named);
    tcase_add_test(calls, a_private_address_is_refused_if_only_public_ones_are_wanted);
    tcase_add_test(calls, connect_timeout_bounds_look_up_and_race);
    tcase_add_test(calls, tls_that_cannot_be_prepared_fails_the_call);
    tcase_add_loop_test(calls, a_call_that_waits_gets_the_place_of_a_cancelled_one, 0, 2);
    tcase_add_loop_test(calls, a_client_that_dials_may_be_deleted, 0, 4);
    tcase_add_loop_test(calls, every_failing_call_is_survived, 0, FAULTS);
    suite_add_tcase(suite, calls);
    return suite;
}

int
main(void)
{
    return sxe_test_main(dial_suite());
}
