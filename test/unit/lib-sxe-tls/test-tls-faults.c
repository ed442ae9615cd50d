/* SPDX-License-Identifier: MIT
 *
 * Tests connections while system calls and OpenSSL fail: each failing allocation and call costs one
 * connection at most. Also limits of connections: time, memory, work in one turn.
 */
#include "sxe-tls-private.h"

#include <unistd.h>

#include "sweep.h"
#include "sxe-time.h"
#include "tls-site.h"

static struct sxe_tls *tls;
static SXE *listener;
static struct tls_peer peer;

static void
echo(SXE *s, int length)
{
    if (length <= 0)
        return;
    (void)!sxe_write(s, SXE_BUF(s), (unsigned)SXE_BUF_USED(s));
    SXE_BUF_CLEAR(s);
}

static void
start_many(struct sxe_tls_config config, unsigned connections)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with_names(config, (const char *const[]){"a", NULL});
    plan_start(connections);
    listener = serve(tls, echo);
}

static void
start(struct sxe_tls_config config)
{
    start_many(config, 10);
}

static void
drop_events(void)
{
    while (event_count() > 0)
        event_pop();
}

/* ---- Sweeps ---- */

static unsigned struck;

/* Converse with a server while anything may fail. Returns whether the conversation was complete. */
static bool
converse(const char *host)
{
    char answer[5] = "";
    bool is_whole = false;

    peer = peer_on(NULL, peer_connect(sxe_local_port(listener)), host);
    if (shake(&peer) && SSL_write(peer.ssl, "hello", 5) == 5)
        is_whole = tls_receive(&peer, answer, 5) == 5 && memcmp(answer, "hello", 5) == 0;
    SSL_shutdown(peer.ssl);
    peer_free(&peer);
    struck += fake_os_injected();
    fake_os_reset(); /* otherwise our socket would not notice that its peer closed */
    for (unsigned i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_FREE) < 9; i++) {
        library_turns(1);
        __real_poll(NULL, 0, 1);
    }
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 9);
    drop_events();
    return is_whole;
}

START_TEST(each_allocation_of_openssl_may_fail)
{
    struct sxe_tls_counts counts;
    const unsigned stride = sxe_test_is_thin() ? 23 : 3;
    bool touched = true;
    unsigned nth;

    start((struct sxe_tls_config){.protocols = "http/1.1"});
    ck_assert(converse("a.example"));
    for (nth = 1; touched && nth < 2000; nth += stride) {
        heap_arm(nth, _i == 1);
        heap.counts = false; /* library_turns() sets it while the library runs */
        converse("a.example");
        touched = heap_disarm();
        sxe_tls_count(&counts);
        ck_assert_uint_eq(counts.memory, 0);
    }
    ck_assert_uint_gt(nth, 20);
    ck_assert(converse("a.example"));
    tls_stop(NULL, tls);
}
END_TEST

static bool
run_once(const struct strike *strike)
{
    bool touched;

    struck = 0;
    patience = strike->for_ever ? 50 : WAIT_TURNS;
    sweep_arm(strike);
    converse("a.example");
    patience = WAIT_TURNS;
    touched = struck > 0;
    ck_assert(converse("a.example"));
    return touched && strike->nth < 50;
}

START_TEST(each_call_may_fail)
{
    static const struct fault faults[] = {{FAKE_RECV, {EINTR, ECONNRESET, ETIMEDOUT}},
                                          {FAKE_SEND, {EINTR, EPIPE, ENOBUFS}}};

    start((struct sxe_tls_config){0});
    sweep(&faults[_i], run_once);
    tls_stop(NULL, tls);
}
END_TEST

/* A server with everything that is read from files. */
static struct sxe_tls *
make_server(void)
{
    struct sxe_tls_config config = {.protocols = "http/1.1",
                                    .plain_reply = "no",
                                    .verify = SXE_TLS_OPTIONAL,
                                    .authorities = site_path("a", ".pem")};
    struct sxe_tls *made = server_with(config, "a", "b");

    if (made != NULL)
        (void)!sxe_tls_reload(made);
    return made;
}

static struct sxe_tls *
make_client(void)
{
    struct sxe_tls_config config = {.protocols = "http/1.1", .authorities = site_path("a", ".pem")};

    return sxe_tls_new_client(&config);
}

/* A client that trusts the authorities of the system. */
static struct sxe_tls *
make_trusting_client(void)
{
    return sxe_tls_new_client(&(struct sxe_tls_config){0});
}

static struct sxe_tls *
make_local(void)
{
    struct sxe_tls_config config = {0};

    return sxe_tls_new_local(&config);
}

static struct sxe_tls *(*const makers[])(void) = {make_server, make_client, make_trusting_client,
                                                  make_local};

/* OpenSSL remembers that it could not decode an authority, and then trusts it no more. */
static void
check_authorities(const struct sxe_tls *made)
{
    const X509_STORE *store = SSL_CTX_get_cert_store(made->store->sites[0].context);
    const STACK_OF(X509_OBJECT) *trusted = X509_STORE_get0_objects(store);

    ck_assert_int_eq(sk_X509_OBJECT_num(trusted), 1);
    ck_assert_uint_eq(
        X509_get_extension_flags(X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, 0))) &
            (EXFLAG_INVALID | EXFLAG_SET),
        EXFLAG_SET);
}

START_TEST(without_memory_there_is_no_configuration)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC, FAKE_STRDUP,
                                           FAKE_MMAP};
    const unsigned stride = _i > 0 ? 1 : sxe_test_is_thin() ? 41 : 7;
    unsigned nth = 0;
    bool touched;

    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:a.example,DNS:b.example", "authority");
    make_pair("b", CURVE, NULL, NULL);
    /* The system has many authorities; use one file in their place. */
    setenv("SSL_CERT_FILE", site_path("a", ".pem"), 1);
    setenv("SSL_CERT_DIR", site_directory, 1);
    sxe_tls_delete(makers[_i]());
    do {
        struct sxe_tls *made;

        fake_os_reset();
        fake_os_sweep(kinds, 5, ++nth, false, ENOMEM);
        made = makers[_i]();
        touched = fake_os_injected() > 0;
        fake_os_reset();
        sxe_tls_delete(made);
    } while (touched);
    ck_assert_uint_gt(nth, 3);
    touched = true;
    for (nth = 1; touched && nth < 3000; nth += stride) {
        struct sxe_tls *made;

        heap_arm(nth, false);
        /* For the client, only allocations of this size may fail, which belong to the lookup of the
         * system's authorities: when the loader of a store cannot be made, OpenSSL 3.0 frees it
         * twice at the end of the process. */
        heap.size = _i == 2 ? 4 * sizeof(void *) : 0;
        made = makers[_i]();
        touched = heap_disarm();
        if (_i == 1 && made != NULL)
            check_authorities(made);
        sxe_tls_delete(made);
    }
    ck_assert_uint_gt(
        nth, _i == 2 ? 4 : 20); /* the number of the first allocation that the call did not make */
    site_stop();
}
END_TEST

START_TEST(without_memory_there_is_no_loop)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_POSIX_MEMALIGN,
                                           FAKE_ALIGNED_ALLOC, FAKE_MMAP};
    unsigned nth = 0;
    int result;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){0}, "a");
    plan_start(10);
    listener = listen_tcp(echo);
    do {
        fake_os_reset();
        fake_os_sweep(kinds, 5, ++nth, false, ENOMEM);
        result = sxe_tls_serve(tls, listener);
    } while (result == -ENOMEM);
    fake_os_reset();
    ck_assert_int_eq(result, 0);
    ck_assert_uint_gt(nth, 3);
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(a_clients_connection_needs_memory)
{
    struct sxe_tls_config config = {.verify = SXE_TLS_OFF};
    SXE *ours;
    unsigned nth = 0;
    int result;

    start((struct sxe_tls_config){0});
    {
        struct sxe_tls *client = sxe_tls_new_client(&config);

        ours = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
        do {
            heap_arm(++nth, false);
            result = sxe_tls_use(client, ours, "a.example");
            heap_disarm();
        } while (result == -ENOMEM);
        ck_assert_int_eq(result, 0);
        sxe_close(ours);
        turn(2);
        sxe_tls_delete(client);
    }
    tls_stop(NULL, tls);
}
END_TEST

/* ---- Limits of time, of memory, and of work in one turn ---- */

START_TEST(a_handshake_has_its_time)
{
    int fd;

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    start((struct sxe_tls_config){.handshake_timeout_ms = 500});
    accept_peer(listener, &fd);
    if (_i == 1)
        peer_send(fd, "\x16\x03\x01", 3);
    EXPECT("close", NULL, ETIMEDOUT);
    close(fd);
    tls_stop(NULL, tls);
    fake_time_stop();
}
END_TEST

static void
expect_counts(unsigned active, unsigned quiet)
{
    struct sxe_tls_counts counts;

    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.active, active);
    ck_assert_uint_eq(counts.quiet, quiet);
    ck_assert_uint_eq(counts.memory, active * (size_t)SXE__TLS_BYTES_ACTIVE +
                                         quiet * (size_t)SXE__TLS_BYTES_QUIET);
}

static void
pass_seconds(unsigned seconds)
{
    for (unsigned i = 0; i < 2 * seconds; i++) {
        fake_time_advance(SXE_NS_PER_SECOND / 2);
        turn(2);
    }
}

START_TEST(a_quiet_connection_gives_its_buffers_back)
{
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    start((struct sxe_tls_config){0});
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    expect_counts(1, 0);
    pass_seconds(4);
    expect_counts(0, 1);
    for (unsigned i = 0; i < 3; i++) {
        tls_send(&peer, "hello", 5);
        TLS_EXPECT(&peer, "hello");
        expect_counts(1, 0);
        pass_seconds(4);
        expect_counts(0, 1);
    }
    /* In the middle of a record the connection must keep its buffers. */
    peer_send(peer.fd,
              "\x17\x03\x03\x00\x20"
              "0123",
              9);
    pass_seconds(4);
    expect_counts(1, 0);
    tls_stop(&peer, tls);
    fake_time_stop();
}
END_TEST

START_TEST(of_too_many_active_connections_the_oldest_rests)
{
    enum { MOST = SXE__TLS_ACTIVE_MAX };
    static struct tls_peer peers[MOST + 2];

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    start_many((struct sxe_tls_config){0}, MOST + 10);
    for (unsigned i = 0; i < MOST + 2; i++) {
        peers[i] = peer_tls(listener, NULL);
        ck_assert(shake(&peers[i]));
        expect_counts(i < MOST ? i + 1 : MOST, i < MOST ? 0 : i + 1 - MOST);
    }
    peer_send(peers[2].fd, "\x17\x03\x03\x00\x20", 5);
    TURN_UNTIL(sxe__tls_of(peers[2].ours)->header_length > 0);
    /* 0 and 1 become QUIET. 2 is ACTIVE for longest, and cannot rest in the middle of a record. */
    for (unsigned i = 0; i < 2; i++) {
        tls_send(&peers[i], "hello", 5);
        TLS_EXPECT(&peers[i], "hello");
        expect_counts(MOST + 1, 1);
    }
    for (unsigned i = 1; i < MOST + 2; i++)
        peer_free(&peers[i]);
    tls_stop(&peers[0], tls);
    fake_time_stop();
}
END_TEST

enum { MEASURED = 5 };

START_TEST(connections_take_no_more_memory_than_they_count_for)
{
    struct tls_peer peers[MEASURED];
    size_t before;

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    start((struct sxe_tls_config){.protocols = "http/1.1"});
    ck_assert(converse("a.example")); /* allocate what all connections share */
    before = heap.bytes;
    for (unsigned i = 0; i < MEASURED; i++) {
        peers[i] = peer_tls(listener, "a.example");
        ck_assert(shake(&peers[i]));
        tls_send(&peers[i], "hello", 5);
        TLS_EXPECT(&peers[i], "hello");
    }
    ck_assert_uint_le(heap.bytes - before, MEASURED * (size_t)SXE__TLS_BYTES_ACTIVE);
    for (unsigned i = 0; i < 8; i++) {
        fake_time_advance(SXE_NS_PER_SECOND / 2);
        library_turns(2);
    }
    expect_counts(0, MEASURED);
    ck_assert_uint_le(heap.bytes - before, MEASURED * (size_t)SXE__TLS_BYTES_QUIET);
    for (unsigned i = 1; i < MEASURED; i++)
        peer_free(&peers[i]);
    tls_stop(&peers[0], tls);
    fake_time_stop();
}
END_TEST

START_TEST(without_memory_for_its_buffers_a_quiet_connection_is_closed)
{
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    start((struct sxe_tls_config){0});
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    pass_seconds(4);
    expect_counts(0, 1);
    heap_arm(1, true);
    heap.counts = false;
    ck_assert_int_eq(sxe_write(peer.ours, "hello", 5), 0);
    library_turns(1);
    ck_assert(heap_disarm());
    EXPECT("close", peer.ours, EPROTO);
    tls_stop(&peer, tls);
    fake_time_stop();
}
END_TEST

START_TEST(above_memory_max_no_handshake_begins)
{
    struct tls_peer second;

    start((struct sxe_tls_config){.memory_max = 100000});
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    second = peer_tls(listener, NULL);
    ck_assert(!shake(&second));
    EXPECT("close", second.ours, ECONNABORTED);
    peer_free(&second);
    tls_send(&peer, "hello", 5);
    TLS_EXPECT(&peer, "hello");
    tls_stop(&peer, tls);
}
END_TEST

START_TEST(handshakes_of_a_turn_are_bounded)
{
    struct tls_peer peers[5];

    start((struct sxe_tls_config){.handshakes_max = 1});
    for (unsigned i = 0; i < 5; i++) {
        peers[i] = peer_tls(listener, NULL);
        SSL_do_handshake(peers[i].ssl);
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert(shake(&peers[i]));
    for (unsigned i = 0; i < 4; i++)
        peer_free(&peers[i]);
    tls_stop(&peers[4], tls);
}
END_TEST

/* In each turn a new client asks for the one step of the turn. */
START_TEST(the_oldest_handshakes_come_first)
{
    struct tls_peer peers[8];
    char byte;

    start((struct sxe_tls_config){.handshakes_max = 1});
    for (unsigned i = 0; i < 8; i++)
        peers[i] = peer_tls(listener, NULL);
    for (unsigned i = 0; i < 8; i++) {
        SSL_do_handshake(peers[i].ssl);
        if (i > 2)
            library_turns(1);
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_msg(recv(SSL_get_fd(peers[i].ssl), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1,
                      "client %u waits, though later ones were served", i);
    for (unsigned i = 0; i < 8; i++)
        ck_assert(shake(&peers[i]));
    for (unsigned i = 0; i < 7; i++)
        peer_free(&peers[i]);
    tls_stop(&peers[7], tls);
}
END_TEST

START_TEST(a_new_plan_gets_a_new_loop)
{
    start((struct sxe_tls_config){0});
    plan_stop();
    for (unsigned i = 5; i < 7; i++) {
        plan_start(i);
        listener = serve(tls, echo);
        peer = peer_tls(listener, NULL);
        ck_assert(shake(&peer));
        peer_free(&peer);
        pump();
        drop_events();
        plan_stop();
    }
    plan_start(3);
    tls_stop(NULL, tls);
}
END_TEST

static Suite *
faults_suite(void)
{
    Suite *suite = suite_create("tls-faults");
    TCase *tcase = tcase_create("faults");

    tcase_add_loop_test(tcase, each_allocation_of_openssl_may_fail, 0, 2);
    tcase_add_loop_test(tcase, each_call_may_fail, 0, 2);
    tcase_add_loop_test(tcase, without_memory_there_is_no_configuration, 0, 4);
    tcase_add_test(tcase, without_memory_there_is_no_loop);
    tcase_add_test(tcase, a_clients_connection_needs_memory);
    tcase_add_loop_test(tcase, a_handshake_has_its_time, 0, 2);
    tcase_add_test(tcase, a_quiet_connection_gives_its_buffers_back);
    tcase_add_test(tcase, of_too_many_active_connections_the_oldest_rests);
    tcase_add_test(tcase, connections_take_no_more_memory_than_they_count_for);
    tcase_add_test(tcase, without_memory_for_its_buffers_a_quiet_connection_is_closed);
    tcase_add_test(tcase, above_memory_max_no_handshake_begins);
    tcase_add_test(tcase, handshakes_of_a_turn_are_bounded);
    tcase_add_test(tcase, the_oldest_handshakes_come_first);
    tcase_add_test(tcase, a_new_plan_gets_a_new_loop);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return heap_begin() == 1 ? sxe_test_main(faults_suite()) : EXIT_FAILURE;
}
