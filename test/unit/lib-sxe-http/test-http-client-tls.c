/* SPDX-License-Identifier: MIT
 *
 * The client passes its connections to TLS, with the server's name, before they connect. (Tests
 * with real TLS are in test/outside/tls-http-client.c.)
 */
#include "http-client-peer.h"

#include <errno.h>

/* The client only passes this pointer on, so any address will do. */
static struct sxe_tls *const tls = (struct sxe_tls *)(uintptr_t)&client;

static int answer_of_tls;
static bool shakes; /* whether a connection says that its handshake is not done */
static unsigned uses;
static char name_of_tls[64];

static int
use(struct sxe_tls *given, SXE *s, const char *name)
{
    ck_assert_ptr_eq(given, tls);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    snprintf(name_of_tls, sizeof(name_of_tls), "%s", name);
    uses++;
    s->io_shakes = shakes;
    return answer_of_tls;
}

static const struct {
    const char *ip;
    const char *host;
    const char *tls_name;
    const char *expected;
} names[] = {
    {"127.0.0.1", NULL, NULL, "127.0.0.1"},
    {"::1", NULL, NULL, "::1"},
    {"127.0.0.1", "a.example", NULL, "a.example"},
    {"127.0.0.1", "a.example:8443", NULL, "a.example"},
    {"127.0.0.1", "[::2]:8443", NULL, "::2"},
    {"127.0.0.1", "a.example", "b.example", "b.example"},
};

START_TEST(the_name_for_tls_is_that_of_the_host)
{
    struct sxe_http_client_config config = {.ip = names[_i].ip,
                                            .port = 443,
                                            .host = names[_i].host,
                                            .tls = tls,
                                            .use_tls = use,
                                            .tls_name = names[_i].tls_name};

    client = sxe_http_client_new(&config);
    ck_assert_ptr_nonnull(client);
    ck_assert_str_eq(client->config.tls_name, names[_i].expected);
    sxe_http_client_delete(client);
}
END_TEST

START_TEST(tls_that_cannot_be_used_is_refused)
{
    char longer[300];
    const struct sxe_http_client_config configs[] = {
        {.ip = "::1", .tls = tls},
        {.ip = "::1", .tls = tls, .use_tls = use, .tls_name = ""},
        {.ip = "::1", .tls = tls, .use_tls = use, .tls_name = longer},
        {.ip = "::1", .tls = tls, .use_tls = use, .host = ""},
    };

    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    for (unsigned i = 0; i < 4; i++) {
        errno = 0;
        ck_assert_ptr_null(sxe_http_client_new(&configs[i]));
        ck_assert_int_eq(errno, EINVAL);
    }
}
END_TEST

START_TEST(each_connection_is_handed_to_tls_once)
{
    struct sxe_http_client_config config = {.tls = tls, .use_tls = use};
    int peer;

    serve(&config, NULL);
    get(a);
    peer = take(a);
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    get(b);
    expect_request(peer, "GET", b);
    answer(peer, "ok");
    EXPECT_DONE(b, 0, "ok");
    ck_assert_uint_eq(uses, 1);
    ck_assert_str_eq(name_of_tls, "h");
    close(peer);
    turn(3);
    answer_of_tls = -ENOMEM;
    {
        struct sxe_http_call call = call_of(c);

        ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), -ENOMEM);
    }
    stop();
}
END_TEST

START_TEST(a_connection_connects_until_its_handshake_is_done)
{
    struct sxe_http_client_config config = {.tls = tls, .use_tls = use};
    int peer;

    shakes = true;
    serve(&config, NULL);
    get(a);
    ck_assert_uint_eq(sxe_pool_get_count(client->links, SXE__HTTP_LINK_CONNECTING), 1);
    peer = take(a);
    ck_assert_uint_eq(sxe_pool_get_count(client->links, SXE__HTTP_LINK_CONNECTING), 0);
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    close(peer);
    stop();
    shakes = false;
}
END_TEST

static const SXE *closed;

static void
note_closed(const struct sxe_http_exchange *e, int result)
{
    closed = e->closed;
    push_done(e, result);
}

START_TEST(a_call_that_lost_its_connection_sees_which)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_done = note_closed;
    serve(NULL, NULL);
    must_send(&call);
    peer = take(a);
    close(peer);
    EXPECT_DONE(a, -ECONNRESET, "");
    ck_assert_ptr_nonnull(closed);
    must_send(&call);
    peer = take(a);
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    ck_assert_ptr_null(closed);
    close(peer);
    stop();
}
END_TEST

static Suite *
tls_suite(void)
{
    Suite *suite = suite_create("http client tls");
    TCase *tcase = tcase_create("tls");

    tcase_add_loop_test(tcase, the_name_for_tls_is_that_of_the_host, 0, 6);
    tcase_add_test(tcase, tls_that_cannot_be_used_is_refused);
    tcase_add_test(tcase, each_connection_is_handed_to_tls_once);
    tcase_add_test(tcase, a_connection_connects_until_its_handshake_is_done);
    tcase_add_test(tcase, a_call_that_lost_its_connection_sees_which);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(tls_suite());
}
