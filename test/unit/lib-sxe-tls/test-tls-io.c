/* SPDX-License-Identifier: MIT
 *
 * Tests the bytes of a TLS connection: how many calls a request costs, records that arrive in
 * parts, peers that do not read, and how both sides close.
 */
#include "tls-site.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "pattern.h"
#include "sxe-http.h"
#include "sxe-io.h"

static struct sxe_tls *tls;
static SXE *listener;
static struct tls_peer peer;

static void
start_with(struct sxe_tls_config config, const struct sxe_config *plan, SXE_IN_EVENT_READ read)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with_names(config, (const char *const[]){"a", NULL});
    plan_start_with(10, plan);
    listener = serve(tls, read);
}

static void
start(SXE_IN_EVENT_READ read)
{
    start_with((struct sxe_tls_config){0}, NULL, read);
    peer = peer_tls(listener, "a.example");
    ck_assert(shake(&peer));
}

static void
stop(void)
{
    tls_stop(&peer, tls);
}

static void
echo(SXE *s, int length)
{
    ck_assert_int_ge(length, 0);
    ck_assert_int_eq(sxe_write(s, SXE_BUF(s), (unsigned)SXE_BUF_USED(s)), 0);
    SXE_BUF_CLEAR(s);
}

START_TEST(a_request_costs_one_read_and_one_write)
{
    start(echo);
    for (unsigned i = 0; i < 20; i++) {
        unsigned calls[2];

        tls_send(&peer, "hello", 5);
        calls[0] = fake_os_calls(FAKE_RECV);
        calls[1] = fake_os_calls(FAKE_SEND);
        turn(1);
        ck_assert_uint_eq(fake_os_calls(FAKE_RECV), calls[0] + 1);
        ck_assert_uint_eq(fake_os_calls(FAKE_SEND), calls[1] + 1);
        ck_assert_uint_eq(fake_os_calls(FAKE_SENDMSG), 0);
        TLS_EXPECT(&peer, "hello");
    }
    stop();
}
END_TEST

/* Wait until our kernel has all bytes that the peer sent. */
static void
wait_for_delivery(void)
{
    int left = 1;

    for (unsigned i = 0; i < WAIT_TURNS && left > 0; i++) {
        ck_assert_int_eq(ioctl(peer.fd, SIOCOUTQ, &left), 0);
        __real_poll(NULL, 0, left > 0);
    }
}

/* Begin a connection whose handshake is complete for the peer, but not for us. */
static void
start_before_the_end(SXE_IN_EVENT_READ read)
{
    start_with((struct sxe_tls_config){0}, NULL, read);
    peer = peer_tls(listener, "a.example");
    while (SSL_do_handshake(peer.ssl) != 1)
        peer_turns(&peer);
}

START_TEST(the_end_of_a_handshake_leaves_with_the_first_reply)
{
    unsigned sends;

    start_before_the_end(echo);
    tls_send(&peer, "hello", 5);
    wait_for_delivery();
    sends = fake_os_calls(FAKE_SEND);
    turn(1);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), sends + 1);
    TLS_EXPECT(&peer, "hello");
    stop();
}
END_TEST

START_TEST(without_a_reply_the_end_of_a_handshake_leaves_before_the_loop_waits)
{
    unsigned sends;

    start_before_the_end(push_read);
    wait_for_delivery();
    sends = fake_os_calls(FAKE_SEND);
    turn(1);
    ck_assert(sxe_io_has_output(peer.ours));
    turn(1); /* this turn begins by sending the held records */
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), sends + 1);
    ck_assert(!sxe_io_has_output(peer.ours));
    stop();
}
END_TEST

START_TEST(errors_that_others_left_in_openssl_harm_nothing)
{
    start(echo);
    tls_send(&peer, "hello", 5);
    wait_for_delivery();
    ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
    turn(1);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    TLS_EXPECT(&peer, "hello");
    stop();
}
END_TEST

static SSL_CTX *
only_1_2(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    return context;
}

START_TEST(both_versions_are_spoken_and_told)
{
    const char *protocol;

    peer_context = _i == 0 ? NULL : only_1_2;
    start(echo);
    ck_assert_str_eq(sxe_tls_version(peer.ours), _i == 0 ? "TLSv1.3" : "TLSv1.2");
    ck_assert_str_eq(sxe_tls_cipher(peer.ours), SSL_get_cipher_name(peer.ssl));
    ck_assert_str_eq(sxe_tls_name(peer.ours), "a.example");
    ck_assert(sxe_tls_is_secure(peer.ours));
    ck_assert(!sxe_tls_is_resumed(peer.ours));
    ck_assert_uint_eq(sxe_tls_protocol(peer.ours, &protocol), 0);
    tls_send(&peer, "hello", 5);
    TLS_EXPECT(&peer, "hello");
    stop();
}
END_TEST

START_TEST(nothing_is_told_of_a_plain_connection)
{
    const char *protocol;
    char text[SXE_TLS_FINGERPRINT_SIZE] = "?";
    struct sxe_tls_counts counts;
    int64_t not_before = 1;
    int64_t not_after = 1;
    int fd;
    SXE *ours;

    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.memory, 0);
    plan_start(3);
    ours = accept_peer(listen_tcp(push_read), &fd);
    ck_assert(!sxe_tls_is_secure(ours));
    ck_assert(!sxe_tls_is_resumed(ours));
    ck_assert(!sxe_tls_has_ended(ours));
    ck_assert_str_eq(sxe_tls_version(ours), "");
    ck_assert_str_eq(sxe_tls_cipher(ours), "");
    ck_assert_str_eq(sxe_tls_name(ours), "");
    ck_assert_uint_eq(sxe_tls_protocol(ours, &protocol), 0);
    ck_assert_uint_eq(sxe_tls_peer_subject(ours, text, sizeof(text)), 0);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(sxe_tls_peer_issuer(ours, text, sizeof(text)), 0);
    ck_assert_uint_eq(sxe_tls_peer_names(ours, text, sizeof(text)), 0);
    ck_assert_uint_eq(sxe_tls_peer_fingerprint(ours, text), 0);
    ck_assert(!sxe_tls_peer_validity(ours, &not_before, &not_after));
    ck_assert_int_eq(not_before + not_after, 0);
    close(fd);
    turn(5);
    event_pop();
    plan_stop();
}
END_TEST

/* ---- Reading ---- */

/* Connect a plain socket, and get the bytes of a ClientHello. */
static size_t
client_hello(char *hello, size_t size)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *out = BIO_new(BIO_s_mem());
    int n;

    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    n = BIO_read(out, hello, (int)size);
    SSL_free(ssl);
    SSL_CTX_free(context);
    return (size_t)n;
}

START_TEST(a_hello_may_come_byte_by_byte)
{
    char hello[2048];
    size_t length;
    char answer[3];
    int fd;

    start_with((struct sxe_tls_config){0}, NULL, echo);
    length = client_hello(hello, sizeof(hello));
    accept_peer(listener, &fd);
    for (size_t i = 0; i < length; i++) {
        peer_send(fd, hello + i, 1);
        turn(1);
    }
    TURN_UNTIL(sxe_number_in_state(SXE_STATE_IDLE) == 1);
    ck_assert_uint_eq(peer_receive(fd, answer, 3), 3);
    ck_assert_int_eq(answer[0], SSL3_RT_HANDSHAKE);
    close(fd);
    expect_failure();
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(a_hello_may_be_split_anywhere)
{
    char hello[2048];
    size_t length;

    start_with((struct sxe_tls_config){0}, NULL, echo);
    length = client_hello(hello, sizeof(hello));
    for (size_t at = 1; at < length; at++) {
        char answer[3];
        int fd;

        accept_peer(listener, &fd);
        peer_send(fd, hello, at);
        turn(1);
        peer_send(fd, hello + at, length - at);
        turn(1);
        ck_assert_uint_eq(peer_receive(fd, answer, 3), 3);
        ck_assert_int_eq(answer[0], SSL3_RT_HANDSHAKE);
        close(fd);
        expect_failure();
    }
    tls_stop(NULL, tls);
}
END_TEST

static size_t bytes_read;

static void
take_pattern(SXE *s, int length)
{
    (void)length;
    ck_assert_int_eq(memcmp(SXE_BUF(s), pattern(bytes_read + SXE_BUF_USED(s)) + bytes_read,
                            (size_t)SXE_BUF_USED(s)),
                     0);
    bytes_read += (size_t)SXE_BUF_USED(s);
    SXE_BUF_CLEAR(s);
}

START_TEST(records_of_all_sizes_arrive_in_chunks_of_all_sizes)
{
    static const uint32_t sizes[] = {64, 100, 1000, 16384, 40000};
    struct sxe_config config = {.chunk_size = sizes[_i]};
    size_t sent = 0;

    start_with((struct sxe_tls_config){0}, &config, take_pattern);
    peer = peer_tls(listener, "a.example");
    ck_assert(shake(&peer));
    bytes_read = 0;
    for (size_t length = 1; length < 60000; length = length * 3 + 1) {
        tls_send(&peer, pattern(sent + length) + sent, length);
        sent += length;
        TURN_UNTIL(bytes_read == sent);
        ck_assert_uint_eq(bytes_read, sent);
    }
    stop();
}
END_TEST

START_TEST(many_short_records_take_several_turns)
{
    struct sxe_config config = {.chunk_size = 64};

    start_with((struct sxe_tls_config){0}, &config, take_pattern);
    peer = peer_tls(listener, "a.example");
    ck_assert(shake(&peer));
    bytes_read = 0;
    for (size_t at = 0; at < 60; at++)
        ck_assert_int_eq(SSL_write(peer.ssl, pattern(60) + at, 1), 1);
    TURN_UNTIL(bytes_read == 60);
    ck_assert_uint_eq(bytes_read, 60);
    stop();
}
END_TEST

static void
take_half(SXE *s, int length)
{
    static unsigned calls;

    (void)length;
    if (++calls % 2 == 0 || SXE_BUF_USED(s) == 64)
        take_pattern(s, length);
}

START_TEST(without_a_free_chunk_bytes_wait_encrypted_in_the_kernel)
{
    struct sxe_config config = {.chunk_size = 64, .chunks = 1};
    struct tls_peer second;

    start_with((struct sxe_tls_config){0}, &config, push_read_keep);
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    second = peer_tls(listener, NULL);
    ck_assert(shake(&second));
    tls_send(&peer, "half", 4);
    EXPECT_READ(peer.ours, "half");
    tls_send(&second, "whole", 5);
    turn(5);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_get_state(second.ours), SXE_STATE_STARVED);
    sxe_consume(peer.ours, 4);
    EXPECT_READ(second.ours, "whole");
    sxe_consume(second.ours, 5);
    peer_free(&second);
    stop();
}
END_TEST

START_TEST(half_a_message_stays_until_the_rest_comes)
{
    struct sxe_config config = {.chunk_size = 64};

    start_with((struct sxe_tls_config){0}, &config, take_half);
    peer = peer_tls(listener, "a.example");
    ck_assert(shake(&peer));
    bytes_read = 0;
    for (size_t sent = 0; sent < 4000; sent += 40) {
        tls_send(&peer, pattern(sent + 40) + sent, 40);
        turn(4);
    }
    tls_send(&peer, pattern(4064) + 4000, 64);
    TURN_UNTIL(bytes_read >= 4000);
    ck_assert_uint_ge(bytes_read, 4000);
    stop();
}
END_TEST

START_TEST(a_paused_connection_is_read_when_it_is_resumed)
{
    start(push_read);
    sxe_pause(peer.ours);
    tls_send(&peer, "hello", 5);
    EXPECT_NOTHING();
    sxe_resume(peer.ours, SXE_RESUME_WHEN_MORE);
    EXPECT_READ(peer.ours, "hello");
    stop();
}
END_TEST

START_TEST(a_client_that_does_not_speak_tls_is_told_so)
{
    int fd;

    start_with(
        (struct sxe_tls_config){.plain_reply = _i == 0 ? "HTTP/1.1 400 Bad Request\r\n\r\n" : NULL},
        NULL, echo);
    accept_peer(listener, &fd);
    peer_send(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    if (_i == 0)
        PEER_EXPECT(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
    EXPECT("close", NULL, 0);
    close(fd);
    accept_peer(listener, &fd);
    peer_send(fd, "\0\0\0", 3);
    EXPECT("close", NULL, 0);
    close(fd);
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(garbage_ends_the_connection)
{
    static const char *const garbage[] = {"\x16garbage garbage", "\x16\x03\x01\xff\xff",
                                          "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"};
    int fd;

    start_with((struct sxe_tls_config){0}, NULL, echo);
    accept_peer(listener, &fd);
    peer_send(fd, garbage[_i], _i == 0 ? 16 : _i == 1 ? 5 : 10);
    turn(5);
    close(fd);
    EXPECT("close", NULL, EPROTO);
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(a_record_that_was_changed_ends_the_connection)
{
    start(push_read);
    peer_send(peer.fd,
              "\x17\x03\x03\x00\x20"
              "01234567890123456789012345678901",
              37);
    EXPECT("close", peer.ours, EPROTO);
    stop();
}
END_TEST

START_TEST(bytes_before_a_bad_record_are_shown)
{
    start(push_read);
    tls_send(&peer, "good", 4);
    peer_send(peer.fd,
              "\x17\x03\x03\x00\x20"
              "01234567890123456789012345678901",
              37);
    EXPECT_READ(peer.ours, "good");
    EXPECT("close", peer.ours, EPROTO);
    stop();
}
END_TEST

START_TEST(what_answers_bytes_before_a_bad_record_is_not_sent)
{
    char byte;

    start(echo);
    tls_send(&peer, "good", 4);
    peer_send(peer.fd,
              "\x17\x03\x03\x00\x20"
              "01234567890123456789012345678901",
              37);
    EXPECT("close", peer.ours, EPROTO);
    ck_assert_int_le(SSL_read(peer.ssl, &byte, 1), 0);
    stop();
}
END_TEST

static void
expect_flood(SXE *s)
{
    ck_assert_str_eq(sxe_tls_failure(s), "too many records in a row without data");
    push_close(s);
}

START_TEST(a_flood_of_empty_records_ends_the_connection)
{
    start(push_read);
    peer.ours->on_close = expect_flood;
    for (unsigned i = 0; i < 100; i++) {
        SSL_key_update(peer.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        SSL_do_handshake(peer.ssl);
    }
    EXPECT("close", peer.ours, EPROTO);
    stop();
}
END_TEST

/* OpenSSL's queue of errors belongs to the thread: what another user of it left there must not be
 * taken for a failure of the connection. */
START_TEST(errors_that_others_left_end_no_connection)
{
    start(push_read);
    SSL_key_update(peer.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    SSL_do_handshake(peer.ssl);
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    turn(5);
    tls_send(&peer, "hello", 5);
    EXPECT_READ(peer.ours, "hello");
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    ck_assert_int_eq(sxe_write(peer.ours, "hello", 5), 0);
    ERR_clear_error();
    TLS_EXPECT(&peer, "hello");
    stop();
}
END_TEST

START_TEST(keys_may_be_changed_now_and_then)
{
    start(echo);
    for (unsigned i = 0; i < 200; i++) {
        SSL_key_update(peer.ssl, SSL_KEY_UPDATE_REQUESTED);
        tls_send(&peer, "hello", 5);
        TLS_EXPECT(&peer, "hello");
    }
    stop();
}
END_TEST

START_TEST(renegotiation_is_refused)
{
    char byte;

    peer_context = only_1_2;
    start(push_read);
    SSL_renegotiate(peer.ssl);
    SSL_do_handshake(peer.ssl);
    turn(5);
    ck_assert_int_le(SSL_read(peer.ssl, &byte, 1), 0);
    ck_assert_int_eq(SSL_do_handshake(peer.ssl) == 1, 0);
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_NO_RENEGOTIATION ||
                         SSL_get_error(peer.ssl, -1) != SSL_ERROR_NONE,
                     1);
    stop();
}
END_TEST

/* ---- Writing ---- */

static void
small_buffers(struct tls_peer *p)
{
    int size = 8192;

    setsockopt(sxe_fd(p->ours), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static void
expect_bytes_of_pattern(size_t from, size_t length)
{
    char *got = malloc(length);

    ck_assert_uint_eq(tls_receive(&peer, got, length), length);
    ck_assert_int_eq(memcmp(got, pattern(from + length) + from, length), 0);
    free(got);
}

#define MUCH ((size_t)900000)

START_TEST(a_peer_that_reads_slowly_gets_all_of_it)
{
    static const uint32_t sizes[] = {16384, 64};
    struct sxe_config config = {.chunk_size = sizes[_i], .chunks = 200000};
    size_t written = 0;

    start_with((struct sxe_tls_config){0}, &config, push_read);
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    small_buffers(&peer);
    while (written < MUCH) {
        unsigned piece = 30000;

        ck_assert_int_eq(sxe_write(peer.ours, pattern(written + piece) + written, piece), 0);
        written += piece;
    }
    turn(3);
    ck_assert_uint_gt(sxe_unsent(peer.ours), 0);
    expect_bytes_of_pattern(0, written);
    turn(5);
    ck_assert_uint_eq(sxe_unsent(peer.ours), 0);
    ck_assert_int_eq(sxe_get_state(peer.ours), SXE_STATE_IDLE);
    stop();
}
END_TEST

START_TEST(many_pieces_and_lent_memory_become_few_records)
{
    size_t at = 0;

    start(push_read);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(sxe_write(peer.ours, pattern(at + 100) + at, 100), 0);
        at += 100;
        ck_assert_int_eq(sxe_write_static(peer.ours, pattern(at + 3000) + at, 3000), 0);
        at += 3000;
        ck_assert_int_eq(sxe_write_static(peer.ours, pattern(at + 40000) + at, 40000), 0);
        at += 40000;
    }
    expect_bytes_of_pattern(0, at);
    stop();
}
END_TEST

START_TEST(a_file_is_encrypted_piece_by_piece)
{
    int fd;

    start(push_read);
    fd = memfd_create("file", MFD_CLOEXEC);
    if (_i == 1)
        small_buffers(&peer);
    ck_assert_int_eq(write(fd, pattern(MUCH), MUCH), (ssize_t)MUCH);
    ck_assert_int_eq(sxe_write(peer.ours, pattern(MUCH), 10), 0);
    ck_assert_int_eq(sxe_sendfile(peer.ours, fd, 10, MUCH - 10, push_sent), 0);
    expect_bytes_of_pattern(0, MUCH);
    EXPECT("sent", peer.ours, 0);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_file_ends_with_a_connection_that_breaks_in_the_middle)
{
    char bytes[4096];
    int fd;

    start(push_read);
    fd = memfd_create("file", MFD_CLOEXEC);
    small_buffers(&peer);
    ck_assert_int_eq(write(fd, pattern(MUCH), MUCH), (ssize_t)MUCH);
    ck_assert_int_eq(sxe_sendfile(peer.ours, fd, 0, MUCH, push_sent), 0);
    turn(5); /* the kernel has taken all that it takes, and records are kept */
    fake_os_fail(FAKE_SEND, 1, 0, EPIPE);
    while (event_count() == 0) {
        (void)!recv(peer.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        turn(1);
    }
    fake_os_reset();
    EXPECT("sent", peer.ours, -EPIPE);
    EXPECT("close", peer.ours, EPIPE);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_file_that_ends_early_or_cannot_be_read_ends_the_connection)
{
    int fd;

    start(push_read);
    fd = _i == 0 ? memfd_create("file", MFD_CLOEXEC) : open("/tmp", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(sxe_sendfile(peer.ours, fd, 0, 100, push_sent), 0);
    EXPECT("sent", peer.ours, _i == 0 ? -ENODATA : -EISDIR);
    EXPECT("close", peer.ours, _i == 0 ? ENODATA : EISDIR);
    close(fd);
    stop();
}
END_TEST

START_TEST(without_memory_for_what_a_peer_does_not_read_it_is_closed)
{
    start(push_read);
    small_buffers(&peer);
    fake_os_fail(FAKE_MALLOC, 1, 0, ENOMEM);
    for (unsigned i = 0; i < 12; i++) /* more bytes than the kernel's buffers can hold */
        (void)!sxe_write(peer.ours, pattern(MUCH), 60000);
    turn(5);
    ck_assert_uint_gt(fake_os_injected(), 0);
    fake_os_reset();
    EXPECT("close", peer.ours, ECONNABORTED);
    stop();
}
END_TEST

static void
greet(SXE *s)
{
    ck_assert_int_eq(SXE_WRITE_LITERAL(s, "welcome"), 0);
    push_connected(s);
}

static void
greet_and_close(SXE *s)
{
    greet(s);
    ck_assert_int_eq(sxe_close(s), 0);
}

START_TEST(what_is_written_at_once_waits_for_the_handshake)
{
    start_with((struct sxe_tls_config){0}, NULL, push_read);
    listener->on_connected = _i == 0 ? greet : greet_and_close;
    peer = peer_tls(listener, NULL);
    ck_assert(shake(&peer));
    TLS_EXPECT(&peer, "welcome");
    if (_i == 1) {
        ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
        EXPECT("close", peer.ours, 0);
    }
    stop();
}
END_TEST

enum { TOO_MUCH = 70000 }; /* more than output_pause */

static void
greet_with_much(SXE *s)
{
    static const char much[TOO_MUCH];

    ck_assert_int_eq(sxe_write(s, much, TOO_MUCH), 0);
    push_connected(s);
}

static void
greet_and_pause(SXE *s)
{
    greet(s);
    sxe_pause(s);
}

/* The last record of the peer's handshake and its first bytes arrive together. */
static void
shake_and_send(const char *bytes)
{
    while (SSL_do_handshake(peer.ssl) != 1)
        peer_turns(&peer);
    ck_assert_int_eq(SSL_write(peer.ssl, bytes, (int)strlen(bytes)), (int)strlen(bytes));
    library_turns(3);
}

START_TEST(much_output_does_not_stop_the_handshake)
{
    char bytes[4096];
    int left = TOO_MUCH;

    start_with((struct sxe_tls_config){0}, NULL, push_read);
    listener->on_connected = greet_with_much;
    peer = peer_tls(listener, NULL);
    shake_and_send("early");
    while (left > 0) {
        int n = SSL_read(peer.ssl, bytes, sizeof(bytes));

        left -= n > 0 ? n : 0;
        peer_turns(&peer);
    }
    ck_assert_int_eq(left, 0);
    EXPECT_READ(peer.ours, "early");
    stop();
}
END_TEST

START_TEST(a_paused_connection_shakes_hands_and_shows_early_bytes_later)
{
    static const enum sxe_resume how[] = {SXE_RESUME_IMMEDIATE, SXE_RESUME_WHEN_MORE};

    start_with((struct sxe_tls_config){0}, NULL, push_read);
    listener->on_connected = greet_and_pause;
    peer = peer_tls(listener, NULL);
    shake_and_send("early");
    TLS_EXPECT(&peer, "welcome");
    tls_send(&peer, "late", 4);
    library_turns(3);
    ck_assert_uint_eq(event_count(), 0);
    sxe_resume(peer.ours, how[_i]);
    EXPECT("read", peer.ours, 5);
    EXPECT("read", peer.ours, 4);
    stop();
}
END_TEST

/* The program wants to go on after the peer's half-close, but without a handshake it cannot. */
START_TEST(an_end_before_the_handshake_closes_at_once)
{
    int fd;
    SXE *ours;

    start_with((struct sxe_tls_config){0}, NULL, push_read);
    ours = accept_peer(listener, &fd);
    sxe_set_half_close(ours, true);
    sxe_pause(ours);
    shutdown(fd, SHUT_WR);
    EXPECT("close", ours, 0);
    close(fd);
    tls_stop(NULL, tls);
}
END_TEST

/* Neither a mark nor a file of 0 bytes is output that waits for the handshake. */
START_TEST(a_close_without_output_does_not_wait_for_the_handshake)
{
    int fd;
    SXE *ours;

    start_with((struct sxe_tls_config){0}, NULL, push_read);
    ours = accept_peer(listener, &fd);
    if (_i >= 2)
        ck_assert_int_eq(sxe_send(ours, "", 0, NULL), 0);
    ck_assert_int_eq(_i % 2 == 0 ? sxe_close(ours) : sxe_close_lingering(ours), 0);
    EXPECT("close", ours, 0);
    close(fd);
    tls_stop(NULL, tls);
}
END_TEST

/* From now on the kernel takes nothing, and "first" is kept as output. */
static void
keep_first(void)
{
    start(push_read);
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    ck_assert_int_eq(sxe_write(peer.ours, "first", 5), 0);
    turn(2);
    ck_assert_uint_gt(fake_os_injected(), 0);
    ck_assert(peer.ours->io_owes);
}

static size_t
memory(void)
{
    struct sxe_tls_counts counts;

    sxe_tls_count(&counts);
    return counts.memory;
}

START_TEST(an_alert_is_kept_after_what_is_kept_already)
{
    size_t before;
    char byte;

    peer_context = only_1_2;
    keep_first();
    before = memory();
    SSL_renegotiate(peer.ssl);
    SSL_do_handshake(peer.ssl);
    TURN_UNTIL(memory() > before);
    ck_assert_uint_gt(memory(), before);
    fake_os_reset();
    peer_send(peer.fd, "\x17", 1); /* then epoll reports the socket as writable as well */
    TLS_EXPECT(&peer, "first");
    while (SSL_read(peer.ssl, &byte, 1) <= 0 && ERR_peek_last_error() == 0)
        peer_turns(&peer);
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
    stop();
}
END_TEST

START_TEST(what_is_kept_goes_with_its_connection)
{
    keep_first();
    ck_assert_int_eq(sxe_abort(peer.ours), 0);
    EXPECT("close", peer.ours, ECONNABORTED);
    ck_assert_uint_eq(memory(), 0);
    fake_os_reset();
    stop();
}
END_TEST

/* ---- Closing ---- */

START_TEST(a_close_says_so)
{
    unsigned sends;

    start(push_read);
    wait_for_delivery();
    turn(2);
    sends = fake_os_calls(FAKE_SEND);
    ck_assert_int_eq(sxe_write(peer.ours, "bye", 3), 0);
    ck_assert_int_eq(_i == 0 ? sxe_close(peer.ours) : sxe_close_lingering(peer.ours), 0);
    turn(1);
    /* one call sends both the bytes and close_notify */
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), sends + 1);
    TLS_EXPECT(&peer, "bye");
    ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    if (_i == 1) {
        SSL_write(peer.ssl, "still here", 10);
        turn(3);
        ck_assert_int_eq(sxe_get_state(peer.ours), SXE_STATE_CLOSING);
        peer_shutdown(peer.fd);
    }
    EXPECT("close", peer.ours, 0);
    stop();
}
END_TEST

/* The queue writes 16 pieces at a time; pieces without bytes, of memory and of a file, are between
 * them. */
START_TEST(a_close_says_so_after_all_pieces)
{
    size_t at = 0;
    int fd;

    start(push_read);
    fd = memfd_create("empty", MFD_CLOEXEC);
    for (unsigned i = 0; i < 40; i++) {
        if (i % 16 == 0)
            ck_assert_int_eq(sxe_send(peer.ours, "", 0, NULL), 0);
        if (i % 16 == 8)
            ck_assert_int_eq(sxe_sendfile(peer.ours, fd, 0, 0, NULL), 0);
        ck_assert_int_eq(sxe_send(peer.ours, pattern(at + 100) + at, 100, NULL), 0);
        at += 100;
    }
    ck_assert_int_eq(_i == 0 ? sxe_close(peer.ours) : sxe_close_lingering(peer.ours), 0);
    expect_bytes_of_pattern(0, at);
    ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    peer_shutdown(peer.fd);
    EXPECT("close", peer.ours, 0);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_close_says_so_also_to_a_slow_reader)
{
    start(push_read);
    small_buffers(&peer);
    ck_assert_int_eq(sxe_write(peer.ours, pattern(MUCH), 500000), 0);
    turn(1);
    ck_assert_int_eq(_i == 0 ? sxe_close(peer.ours) : sxe_close_lingering(peer.ours), 0);
    expect_bytes_of_pattern(0, 500000);
    ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    peer_shutdown(peer.fd);
    EXPECT("close", peer.ours, 0);
    stop();
}
END_TEST

START_TEST(the_end_that_the_kernel_does_not_take_at_once_is_sent_later)
{
    start(push_read);
    sxe_set_half_close(peer.ours, true);
    fake_os_fail(FAKE_SEND, 1, 2, EAGAIN);
    if (_i == 0)
        ck_assert_int_eq(sxe_shutdown(peer.ours), 0);
    else
        ck_assert_int_eq(sxe_close_lingering(peer.ours), 0);
    turn(2);
    ck_assert_uint_gt(fake_os_injected(), 0);
    fake_os_reset();
    /* The peer sends a byte; with it epoll reports the socket as writable as well. */
    tls_send(&peer, "x", 1);
    turn(3);
    ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    stop();
}
END_TEST

START_TEST(a_half_close_leaves_the_other_direction_open)
{
    start(push_read);
    ck_assert_int_eq(sxe_shutdown(peer.ours), 0);
    turn(2);
    ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    tls_send(&peer, "still", 5);
    EXPECT_READ(peer.ours, "still");
    stop();
}
END_TEST

START_TEST(the_peers_end_is_seen)
{
    start(push_read);
    sxe_set_half_close(peer.ours, true);
    tls_send(&peer, "last", 4);
    if (_i == 0)
        SSL_shutdown(peer.ssl);
    else
        peer_shutdown(peer.fd);
    EXPECT_READ(peer.ours, "last");
    EXPECT("read", peer.ours, 0);
    ck_assert(sxe_tls_has_ended(peer.ours) == (_i == 0));
    ck_assert_int_eq(sxe_write(peer.ours, "reply", 5), 0);
    if (_i == 0)
        TLS_EXPECT(&peer, "reply");
    stop();
}
END_TEST

/* The half record and the end come before the loop looks, so epoll reports them together. */
START_TEST(the_end_after_half_a_record_is_seen)
{
    const char record[] = {_i == 0 ? SSL3_RT_HANDSHAKE : SSL3_RT_APPLICATION_DATA, 3, 3, 0, 100, 1};

    start_with((struct sxe_tls_config){0}, NULL, push_read);
    if (_i == 0) {
        peer.ours = accept_peer(listener, &peer.fd);
    } else {
        peer = peer_tls(listener, "a.example");
        ck_assert(shake(&peer));
    }
    peer_send(peer.fd, record, sizeof(record));
    peer_shutdown(peer.fd);
    EXPECT("close", peer.ours, _i == 0 ? EPROTO : 0);
    if (_i == 0)
        close(peer.fd);
    tls_stop(_i == 0 ? NULL : &peer, tls);
}
END_TEST

START_TEST(a_reset_is_an_error)
{
    start(push_read);
    peer_reset(peer.fd);
    EXPECT("close", peer.ours, ECONNRESET);
    peer.fd = -1;
    stop();
}
END_TEST

START_TEST(an_abort_sends_no_end)
{
    start(push_read);
    ck_assert_int_eq(sxe_abort(peer.ours), 0);
    EXPECT("close", peer.ours, ECONNABORTED);
    ck_assert_int_ne(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    stop();
}
END_TEST

START_TEST(a_client_that_connects_and_goes_costs_nothing)
{
    struct sxe_tls_counts counts;
    int fd;

    start_with((struct sxe_tls_config){0}, NULL, push_read);
    accept_peer(listener, &fd);
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.shaking, 1);
    close(fd);
    EXPECT("close", NULL, 0);
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.shaking, 0);
    ck_assert_uint_eq(counts.failed, 1);
    ck_assert_uint_eq(counts.memory, 0);
    tls_stop(NULL, tls);
}
END_TEST

START_TEST(a_listener_of_one_connection_becomes_it)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){0}, "a");
    plan_start(3);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_listen_oneshot(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(tls, listener), 0);
    peer = peer_on(listener, peer_connect(sxe_local_port(listener)), NULL);
    EXPECT("connected", listener, 0);
    ck_assert(shake(&peer));
    tls_send(&peer, "hello", 5);
    EXPECT_READ(listener, "hello");
    stop();
}
END_TEST

static enum sxe_http_verdict
tell_version(struct sxe_http_request *request, struct sxe_http_response *response)
{
    return sxe_http_reply_text(response, 200, sxe_tls_version(sxe_http_socket(request)));
}

START_TEST(an_http_server_speaks_tls)
{
    struct sxe_http_config config = {.handler = tell_version, .connections = 5};
    struct sxe_http *http = sxe_http_new(&config);
    char reply[512] = "";
    size_t length = 0;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    tls = server_with((struct sxe_tls_config){.protocols = "http/1.1"}, "a");
    plan_start(10);
    ck_assert_ptr_null(sxe_http_listener(http));
    ck_assert_int_eq(sxe_http_listen(http, "127.0.0.1", 0), 0);
    ck_assert_int_eq(sxe_tls_serve(tls, sxe_http_listener(http)), 0);
    peer = peer_on(NULL, peer_connect(sxe_http_port(http)), "a.example");
    ck_assert(shake(&peer));
    tls_send(&peer, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    while (strstr(reply, "TLSv1.3") == NULL && tls_receive(&peer, reply + length, 1) == 1)
        length++;
    ck_assert_int_eq(strncmp(reply, "HTTP/1.1 200 OK\r\n", 17), 0);
    stop();
    sxe_http_delete(http);
}
END_TEST

static Suite *
io_suite(void)
{
    Suite *suite = suite_create("tls-io");
    TCase *tcase = tcase_create("io");

    tcase_add_test(tcase, a_request_costs_one_read_and_one_write);
    tcase_add_test(tcase, the_end_of_a_handshake_leaves_with_the_first_reply);
    tcase_add_test(tcase, without_a_reply_the_end_of_a_handshake_leaves_before_the_loop_waits);
    tcase_add_test(tcase, errors_that_others_left_in_openssl_harm_nothing);
    tcase_add_loop_test(tcase, both_versions_are_spoken_and_told, 0, 2);
    tcase_add_test(tcase, nothing_is_told_of_a_plain_connection);
    tcase_add_test(tcase, a_hello_may_come_byte_by_byte);
    tcase_add_test(tcase, a_hello_may_be_split_anywhere);
    tcase_add_loop_test(tcase, records_of_all_sizes_arrive_in_chunks_of_all_sizes, 0, 5);
    tcase_add_test(tcase, without_a_free_chunk_bytes_wait_encrypted_in_the_kernel);
    tcase_add_test(tcase, many_short_records_take_several_turns);
    tcase_add_test(tcase, half_a_message_stays_until_the_rest_comes);
    tcase_add_test(tcase, a_paused_connection_is_read_when_it_is_resumed);
    tcase_add_loop_test(tcase, a_client_that_does_not_speak_tls_is_told_so, 0, 2);
    tcase_add_loop_test(tcase, garbage_ends_the_connection, 0, 3);
    tcase_add_test(tcase, a_record_that_was_changed_ends_the_connection);
    tcase_add_test(tcase, bytes_before_a_bad_record_are_shown);
    tcase_add_test(tcase, what_answers_bytes_before_a_bad_record_is_not_sent);
    tcase_add_test(tcase, a_flood_of_empty_records_ends_the_connection);
    tcase_add_test(tcase, errors_that_others_left_end_no_connection);
    tcase_add_test(tcase, keys_may_be_changed_now_and_then);
    tcase_add_test(tcase, renegotiation_is_refused);
    tcase_add_loop_test(tcase, a_peer_that_reads_slowly_gets_all_of_it, 0, 2);
    tcase_add_test(tcase, many_pieces_and_lent_memory_become_few_records);
    tcase_add_loop_test(tcase, a_file_is_encrypted_piece_by_piece, 0, 2);
    tcase_add_test(tcase, a_file_ends_with_a_connection_that_breaks_in_the_middle);
    tcase_add_loop_test(tcase, a_file_that_ends_early_or_cannot_be_read_ends_the_connection, 0, 2);
    tcase_add_test(tcase, without_memory_for_what_a_peer_does_not_read_it_is_closed);
    tcase_add_loop_test(tcase, what_is_written_at_once_waits_for_the_handshake, 0, 2);
    tcase_add_test(tcase, much_output_does_not_stop_the_handshake);
    tcase_add_loop_test(tcase, a_paused_connection_shakes_hands_and_shows_early_bytes_later, 0, 2);
    tcase_add_test(tcase, an_end_before_the_handshake_closes_at_once);
    tcase_add_loop_test(tcase, a_close_without_output_does_not_wait_for_the_handshake, 0, 4);
    tcase_add_test(tcase, an_alert_is_kept_after_what_is_kept_already);
    tcase_add_test(tcase, what_is_kept_goes_with_its_connection);
    tcase_add_loop_test(tcase, a_close_says_so, 0, 2);
    tcase_add_loop_test(tcase, a_close_says_so_after_all_pieces, 0, 2);
    tcase_add_loop_test(tcase, a_close_says_so_also_to_a_slow_reader, 0, 2);
    tcase_add_loop_test(tcase, the_end_that_the_kernel_does_not_take_at_once_is_sent_later, 0, 2);
    tcase_add_test(tcase, a_half_close_leaves_the_other_direction_open);
    tcase_add_loop_test(tcase, the_peers_end_is_seen, 0, 2);
    tcase_add_loop_test(tcase, the_end_after_half_a_record_is_seen, 0, 2);
    tcase_add_test(tcase, a_reset_is_an_error);
    tcase_add_test(tcase, an_abort_sends_no_end);
    tcase_add_test(tcase, a_client_that_connects_and_goes_costs_nothing);
    tcase_add_test(tcase, a_listener_of_one_connection_becomes_it);
    tcase_add_test(tcase, an_http_server_speaks_tls);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return heap_begin() == 1 ? sxe_test_main(io_suite()) : EXIT_FAILURE;
}
