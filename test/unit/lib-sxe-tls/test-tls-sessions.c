/* SPDX-License-Identifier: MIT
 *
 * Tests the sessions that a client keeps: for which host it offers them, how many it keeps, and
 * when it drops them.
 */
#include "tls-site.h"

static struct sxe_tls *server;
static struct sxe_tls *client;
static SXE *listener;

static void
start(struct sxe_tls_config config)
{
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:a.example,DNS:b.example,IP:127.0.0.1", "authority");
    config.authorities = site_path("authority", ".pem");
    plan_start(10);
    server = server_with((struct sxe_tls_config){0}, "a");
    listener = serve(server, push_read);
    client = sxe_tls_new_client(&config);
    ck_assert_ptr_nonnull(client);
}

static void
drop_events(void)
{
    while (event_count() > 0)
        event_pop();
}

static void
stop(void)
{
    TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
    drop_events();
    plan_stop();
    sxe_tls_delete(client);
    sxe_tls_delete(server);
    site_stop();
}

/* Send bytes and receive the answer, so that the ticket has arrived as well. Returns whether the
 * session was resumed. */
static bool
visit(const char *host)
{
    SXE *ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    SXE *theirs = NULL;
    bool is_resumed;

    ck_assert_int_eq(sxe_tls_use(client, ours, host), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    for (unsigned i = 0; i < 2; i++) {
        const void *object = EXPECT("connected", NULL, 0)->object;

        theirs = object == ours ? theirs : (SXE *)(uintptr_t)object;
    }
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    EXPECT("read", theirs, 5);
    ck_assert_int_eq(sxe_write(theirs, "good day", 8), 0);
    EXPECT("read", ours, 8);
    is_resumed = sxe_tls_is_resumed(ours);
    ck_assert(sxe_tls_has_offered(ours) == is_resumed);
    ck_assert(!sxe_tls_has_offered(theirs));
    sxe_close(ours);
    TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
    drop_events();
    return is_resumed;
}

START_TEST(a_session_is_resumed_with_the_same_host_only)
{
    start((struct sxe_tls_config){0});
    ck_assert(!visit("a.example"));
    ck_assert(visit("a.example"));
    ck_assert(!visit("b.example"));
    ck_assert(!visit("127.0.0.1"));
    ck_assert(visit("127.0.0.1"));
    ck_assert(visit("b.example."));
    ck_assert(visit("a.example"));
    stop();
}
END_TEST

START_TEST(no_session_is_offered_to_a_server_whose_certificate_has_expired)
{
    fake_time_start(SXE_NS_PER_SECOND, (uint64_t)time(NULL) * SXE_NS_PER_SECOND);
    start((struct sxe_tls_config){0});
    ck_assert(!visit("a.example"));
    ck_assert(visit("a.example"));
    fake_time_step_wall((int64_t)(31 * 86400 * SXE_NS_PER_SECOND));
    ck_assert(!visit("a.example"));
    stop();
    fake_time_stop();
}
END_TEST

START_TEST(a_session_that_will_be_offered_says_nothing_about_the_connection)
{
    char text[64];
    SXE *ours;

    start((struct sxe_tls_config){0});
    ck_assert(!visit("a.example"));
    ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert(!sxe_tls_is_secure(ours) && !sxe_tls_has_offered(ours));
    ck_assert_str_eq(sxe_tls_version(ours), "");
    ck_assert_uint_eq(sxe_tls_peer_subject(ours, text, sizeof(text)), 0);
    sxe_close(ours);
    stop();
}
END_TEST

START_TEST(the_parts_cannot_be_exchanged)
{
    SXE *ours;

    start((struct sxe_tls_config){0});
    ck_assert_int_eq(sxe_tls_serve(client, listener), -EINVAL);
    ck_assert_int_eq(sxe_tls_use(client, listener, "a.example"), -EINVAL);
    ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_tls_use(server, ours, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    for (unsigned i = 0; i < 2; i++)
        EXPECT("connected", NULL, 0);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), -EINVAL);
    sxe_close(ours);
    stop();
}
END_TEST

START_TEST(no_session_is_kept_if_none_is_wanted)
{
    start((struct sxe_tls_config){.sessions_max = UINT32_MAX});
    ck_assert(!visit("a.example"));
    ck_assert(!visit("a.example"));
    stop();
}
END_TEST

START_TEST(the_oldest_session_makes_room)
{
    start((struct sxe_tls_config){.sessions_max = 1});
    ck_assert(!visit("a.example"));
    ck_assert(!visit("b.example"));
    ck_assert(!visit("a.example"));
    ck_assert(visit("a.example"));
    stop();
}
END_TEST

START_TEST(files_that_are_read_again_drop_the_sessions)
{
    SXE *ours;

    start((struct sxe_tls_config){0});
    ck_assert(!visit("a.example"));
    ck_assert_int_eq(sxe_tls_reload(client), 0);
    ck_assert(!visit("a.example"));
    /* A ticket of a connection that began before the reload is not kept. */
    ck_assert_int_eq(sxe_tls_reload(client), 0);
    ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_tls_reload(client), 0);
    sxe_write(ours, "hello", 5);
    TURN_UNTIL(event_count() == 3); /* both sides have connected, and one has read */
    library_turns(5);
    sxe_close(ours);
    TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
    drop_events();
    ck_assert(!visit("a.example"));
    stop();
}
END_TEST

START_TEST(without_memory_for_its_host_a_session_is_not_kept)
{
    SXE *ours;

    start((struct sxe_tls_config){0});
    ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    fake_os_fail(FAKE_STRDUP, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), -ENOMEM);
    fake_os_reset();
    fake_os_fail(FAKE_STRDUP, 2, 1, ENOMEM);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    TURN_UNTIL(fake_os_injected() > 0);
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_reset();
    sxe_close(ours);
    TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
    drop_events();
    ck_assert(!visit("a.example"));
    ck_assert(visit("a.example"));
    stop();
}
END_TEST

/* A server made with OpenSSL that speaks TLS 1.2, whose sessions may be resumed many times. */
static SSL_CTX *old_context;

static SSL_CTX *
use_old_context(void)
{
    SSL_CTX_up_ref(old_context);
    return old_context;
}

START_TEST(a_session_of_1_2_is_offered_more_than_once)
{
    unsigned short port;
    int raw;

    start((struct sxe_tls_config){0});
    raw = peer_listen(&port);
    old_context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate_file(old_context, site_path("a", ".pem"), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(old_context, site_path("a", ".key"), SSL_FILETYPE_PEM);
    SSL_CTX_set_max_proto_version(old_context, TLS1_2_VERSION);
    SSL_CTX_set_session_id_context(old_context, (const unsigned char *)"a", 1);
    peer_context = use_old_context;
    for (unsigned i = 0; i < 3; i++) {
        SXE *ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
        struct tls_peer peer;

        ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
        ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", port), 0);
        EXPECT("connected", ours, 0);
        peer = peer_on(ours, peer_accept(raw), NULL);
        SSL_set_accept_state(peer.ssl);
        ck_assert(shake(&peer));
        tls_send(&peer, "hello", 5);
        EXPECT_READ(ours, "hello");
        ck_assert_str_eq(sxe_tls_version(ours), "TLSv1.2");
        ck_assert_int_eq(sxe_tls_is_resumed(ours), i > 0);
        sxe_close(ours);
        TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
        drop_events();
        peer_free(&peer);
    }
    SSL_CTX_free(old_context);
    close(raw);
    stop();
}
END_TEST

static Suite *
sessions_suite(void)
{
    Suite *suite = suite_create("tls-sessions");
    TCase *tcase = tcase_create("sessions");

    tcase_add_test(tcase, a_session_is_resumed_with_the_same_host_only);
    tcase_add_test(tcase, no_session_is_offered_to_a_server_whose_certificate_has_expired);
    tcase_add_test(tcase, a_session_that_will_be_offered_says_nothing_about_the_connection);
    tcase_add_test(tcase, the_parts_cannot_be_exchanged);
    tcase_add_test(tcase, no_session_is_kept_if_none_is_wanted);
    tcase_add_test(tcase, the_oldest_session_makes_room);
    tcase_add_test(tcase, files_that_are_read_again_drop_the_sessions);
    tcase_add_test(tcase, without_memory_for_its_host_a_session_is_not_kept);
    tcase_add_test(tcase, a_session_of_1_2_is_offered_more_than_once);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return heap_begin() == 1 ? sxe_test_main(sessions_suite()) : EXIT_FAILURE;
}
