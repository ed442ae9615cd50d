/* SPDX-License-Identifier: MIT
 *
 * Tests TLS clients: whom they trust, what they refuse, client certificates, truncated connections.
 */
#include "tls-site.h"

#include <openssl/ocsp.h>

#include "has.h"
#include "sxe-io.h"

static struct sxe_tls *server;
static struct sxe_tls *client;
static SXE *listener;
static SXE *ours;

static void
start(struct sxe_tls_config config, const char *name)
{
    plan_start(10);
    if (name != NULL) {
        server = server_with((struct sxe_tls_config){0}, name);
        listener = serve(server, push_read);
    }
    client = sxe_tls_new_client(&config);
    ck_assert_ptr_nonnull(client);
    ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
}

static void
go(const char *host)
{
    ck_assert_int_eq(sxe_tls_use(client, ours, host), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    for (unsigned i = 0; i < 2; i++)
        EXPECT("connected", NULL, 0);
}

static void
stop(void)
{
    TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == (server == NULL ? 10 : 9));
    while (event_count() > 0)
        event_pop();
    plan_stop();
    sxe_tls_delete(client);
    sxe_tls_delete(server);
    site_stop();
}

static unsigned ready;

static void
count_ready(SXE *s)
{
    ready += s == ours;
}

START_TEST(a_host_with_a_good_certificate_is_trusted)
{
    static const char *const hosts[] = {"a.example", "127.0.0.1"};
    char text[64];

    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", RSA_KEY, "DNS:a.example,IP:127.0.0.1", "authority");
    start((struct sxe_tls_config){.authorities = site_path("authority", ".pem"),
                                  .protocols = "http/1.1"},
          "a");
    ck_assert_int_eq(sxe_tls_use(client, ours, hosts[_i]), 0);
    sxe_tls_on_ready(ours, count_ready);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    for (unsigned i = 0; i < 2; i++)
        EXPECT("connected", NULL, 0);
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    EXPECT("read", NULL, 5);
    ck_assert_uint_eq(ready, 1);
    ck_assert(sxe_tls_is_secure(ours));
    ck_assert_uint_eq(sxe_tls_peer_subject(ours, text, sizeof(text)), 4);
    ck_assert_str_eq(text, "CN=a");
    ck_assert_str_eq(sxe_tls_name(ours), _i == 0 ? "a.example" : "");
    sxe_close(ours);
    stop();
}
END_TEST

/* The name of each certificate, and the error of a client that wants a.example and gets it. */
static const struct {
    const char *name;
    const char *failure;
} refused[] = {
    {"late", "the certificate of \"late\" has expired: it was valid until 20"},
    {"early", "the certificate of \"early\" is not yet valid: it will be from 20"},
    {"other",
     "the certificate is not for a.example, but for b.example, *.a.example, 127.0.0.1, ::1"},
    {"mail", "the certificate is not for a.example, but for no host at all"},
    {"named", "the certificate is not for a.example, but for no host at all"},
    {"odd", "the certificate is not for a.example, but for a??.example"},
    {"stranger", "self-signed: no trusted authority stands for the certificate of \"stranger\""},
    {"cut", "incomplete chain: the certificate of the issuer \"authority-2\" was not sent, and is "
            "not trusted"},
    /* The message goes on with "unsuitable" or "unsupported", depending on OpenSSL's version. */
    {"purpose", "the certificate is not good: uns"},
    {"a", "incomplete chain: the certificate of the issuer \"authority\" was not sent, and is not "
          "trusted"},
};
#define REFUSED (sizeof(refused) / sizeof(refused[0]))

static void
make_refused(void)
{
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("authority-2", CURVE, NULL, "authority");
    make_pair("a", CURVE, "DNS:a.example", "authority");
    make_pair_from("late", CURVE, "DNS:a.example", "authority", -10, 5);
    make_pair_from("early", CURVE, "DNS:a.example", "authority", 5, 10);
    make_pair("other", CURVE, "DNS:b.example,DNS:*.a.example,IP:127.0.0.1,IP:::1,URI:sip:a",
              "authority");
    make_pair("mail", CURVE, "email:a@a.example", "authority");
    make_pair("named", CURVE, NULL, "authority");
    make_pair("odd", CURVE, "DNS:a\x1b\x07.example", "authority");
    make_pair("stranger", CURVE, "DNS:a.example", NULL);
    make_pair("purpose", CURVE, "DNS:a.example", "authority");
    make_pair("cut", CURVE, "DNS:a.example", "authority-2");
}

static char failure[SXE_TLS_PROBLEM_SIZE];

static void
note_close(SXE *s)
{
    snprintf(failure, sizeof(failure), "%s", sxe_tls_failure(s));
    push_close(s);
}

START_TEST(a_host_that_cannot_be_trusted_is_refused_and_the_reason_is_told)
{
    site_start();
    make_refused();
    start((struct sxe_tls_config){.authorities = _i < (int)REFUSED - 1
                                                     ? site_path("authority", ".pem")
                                                     : site_path("stranger", ".pem")},
          refused[_i].name);
    ours->on_close = note_close;
    ck_assert_str_eq(sxe_tls_failure(ours), "");
    go("a.example.");
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    if (_i % 2 == 1) /* the close waits for the end of the handshake */
        ck_assert_int_eq(sxe_close(ours), 0);
    EXPECT("close", ours, EPROTO);
    ck_assert_msg(strncmp(failure, refused[_i].failure, strlen(refused[_i].failure)) == 0, "%s",
                  failure);
    stop();
}
END_TEST

/* ---- Staples ---- */

/* Write the staple of "a": a reply of the signer about a certificate that "authority" made. */
static void
make_reply(const char *of, const char *signer, int status, const EVP_MD *digest)
{
    EVP_PKEY *key = read_private_key(signer);
    X509 *certificate = read_certificate(of);
    X509 *issuer = read_certificate("authority");
    X509 *by = read_certificate(signer);
    ASN1_TIME *now = X509_gmtime_adj(NULL, -86400);
    ASN1_TIME *next = X509_gmtime_adj(NULL, 86400);
    OCSP_BASICRESP *reply = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(digest, certificate, issuer);
    OCSP_RESPONSE *response;
    BIO *out;

    OCSP_basic_add1_status(reply, id, status, 0, now, now, next);
    OCSP_CERTID_free(id);
    ck_assert_int_eq(OCSP_basic_sign(reply, by, key, EVP_sha256(), NULL, 0), 1);
    response =
        OCSP_response_create(status == V_OCSP_CERTSTATUS_UNKNOWN ? OCSP_RESPONSE_STATUS_TRYLATER
                                                                 : OCSP_RESPONSE_STATUS_SUCCESSFUL,
                             status == V_OCSP_CERTSTATUS_UNKNOWN ? NULL : reply);
    out = BIO_new_file(site_path("a", ".ocsp"), "w");
    i2d_OCSP_RESPONSE_bio(out, response);
    BIO_free(out);
    OCSP_RESPONSE_free(response);
    OCSP_BASICRESP_free(reply);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    X509_free(certificate);
    X509_free(issuer);
    X509_free(by);
    EVP_PKEY_free(key);
}

/* Start a server whose certificate "a" has a staple, and a client that trusts the authority. */
static void
start_with_staple(const char *authority, enum sxe_tls_verify verify)
{
    struct sxe_tls_pair pair = {site_path("a", ".pem"), site_path("a", ".key"),
                                site_path("a", ".ocsp")};

    start((struct sxe_tls_config){.authorities = site_path(authority, ".pem"), .verify = verify},
          NULL);
    server = sxe_tls_new_server(&(struct sxe_tls_config){.pairs = &pair, .pair_count = 1});
    listener = serve(server, push_read);
    ours->on_close = note_close;
    go("a.example");
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
}

static const struct {
    const char *of;
    const char *signer;
    int status;
    bool is_refused;
} staples[] = {
    {"a", "authority", V_OCSP_CERTSTATUS_REVOKED, true},
    {"a", "authority", V_OCSP_CERTSTATUS_REVOKED, true}, /* named by SHA-256 */
    {"a", "authority", V_OCSP_CERTSTATUS_GOOD, false},
    {"b", "authority", V_OCSP_CERTSTATUS_REVOKED, false},
    {"a", "authority-2", V_OCSP_CERTSTATUS_REVOKED, false},
    {"a", "authority", V_OCSP_CERTSTATUS_UNKNOWN, false}, /* the reply is "try later" */
};

static void
make_stapled(void)
{
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("authority-2", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:a.example", "authority");
    make_pair("b", CURVE, "DNS:b.example", "authority");
}

START_TEST(a_host_whose_staple_says_that_it_was_revoked_is_refused)
{
    make_stapled();
    make_reply(staples[_i].of, staples[_i].signer, staples[_i].status,
               _i == 1 ? EVP_sha256() : EVP_sha1());
    start_with_staple("authority", SXE_TLS_DEFAULT);
    if (staples[_i].is_refused) {
        EXPECT("close", ours, EPROTO);
        check_has(failure, "the certificate of \"a\" was revoked on 20");
    } else
        EXPECT("read", NULL, 5);
    sxe_close(ours);
    stop();
}
END_TEST

/* A client that trusts the certificate itself, and one that trusts everybody, do not ask who made
 * it. */
START_TEST(a_staple_is_for_clients_that_know_the_authority)
{
    make_stapled();
    make_reply("a", "authority", V_OCSP_CERTSTATUS_REVOKED, EVP_sha1());
    start_with_staple("a", _i == 0 ? SXE_TLS_DEFAULT : SXE_TLS_OFF);
    EXPECT("read", NULL, 5);
    sxe_close(ours);
    stop();
}
END_TEST

/* ---- Addresses, and memory ---- */

START_TEST(an_address_is_checked_as_an_address)
{
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:127.0.0.1,IP:127.0.0.2", "authority");
    start((struct sxe_tls_config){.authorities = site_path("authority", ".pem")}, "a");
    ours->on_close = note_close;
    go("127.0.0.1");
    EXPECT("close", ours, EPROTO);
    ck_assert_str_eq(failure, "the certificate is not for 127.0.0.1, but for 127.0.0.1, 127.0.0.2");
    stop();
}
END_TEST

/* Each allocation for the text of the reason fails in turn; the handshake must fail all the
 * same. */
START_TEST(without_memory_for_the_reason_a_host_is_refused_all_the_same)
{
    site_start();
    make_refused();
    start((struct sxe_tls_config){.authorities = site_path("authority", ".pem")}, "other");
    for (unsigned nth = 1; nth < 4; nth++) {
        ours->on_close = note_close;
        ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
        ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
        fake_os_fail(FAKE_STRDUP, 1, nth, ENOMEM);
        TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
        fake_os_reset();
        ck_assert(failure[0] == '\0' || strcmp(failure, "certificate verify failed") == 0);
        ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    }
    sxe_close(ours);
    stop();
}
END_TEST

START_TEST(verification_can_be_switched_off)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a");
    go("b.example");
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    EXPECT("read", NULL, 5);
    sxe_close(ours);
    stop();
}
END_TEST

START_TEST(a_client_without_a_host_or_with_a_servers_configuration_is_refused)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a");
    ck_assert_int_eq(sxe_tls_use(client, ours, NULL), -EINVAL);
    ck_assert_int_eq(sxe_tls_use(client, ours, ""), -EINVAL);
    ck_assert_int_eq(sxe_tls_use(server, ours, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_tls_use(client, ours, "b.example"), 0);
    fake_os_fail(FAKE_CONNECT, 1, 1, ENETUNREACH);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", 1), -ENETUNREACH);
    fake_os_reset();
    /* The failed attempt must not leave the host set. */
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    TURN_UNTIL(sxe_get_state(ours) == SXE_STATE_FREE);
    stop();
}
END_TEST

/* A server made with OpenSSL itself, as the peer of our client. */
static int highest_version; /* of TLS, for the server of server_context; 0: any */

static SSL_CTX *
server_context(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    SSL_CTX_use_certificate_file(context, site_path("a", ".pem"), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context, site_path("a", ".key"), SSL_FILETYPE_PEM);
    SSL_CTX_set_max_proto_version(context, highest_version);
    return context;
}

/* Connect `ours` to a server that is OpenSSL itself, up to the end of the handshake. */
static struct tls_peer
connect_to_openssl(void)
{
    unsigned short port;
    int raw = peer_listen(&port);
    struct tls_peer peer;

    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", port), 0);
    peer_context = server_context;
    EXPECT("connected", ours, 0);
    peer = peer_on(ours, peer_accept(raw), NULL);
    SSL_set_accept_state(peer.ssl);
    ck_assert(shake(&peer));
    close(raw);
    return peer;
}

START_TEST(a_reply_that_is_cut_is_an_error)
{
    struct tls_peer peer;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a");
    ours->on_close = note_close;
    peer = connect_to_openssl();
    tls_send(&peer, "half", 4);
    EXPECT_READ(ours, "half");
    if (_i == 0)
        SSL_shutdown(peer.ssl);
    peer_free(&peer);
    EXPECT("close", ours, _i == 0 ? 0 : ECONNRESET);
    ck_assert_str_eq(failure, _i == 0 ? ""
                                      : "the server ended without close_notify: bytes may be "
                                        "missing");
    stop();
}
END_TEST

/* The tickets of a server of TLS 1.3 would make a close at once a reset, by which the server loses
 * output that it has not read. With TLS 1.2 no tickets follow the handshake. */
START_TEST(a_close_with_output_waits_for_a_server_that_may_send_tickets)
{
    struct tls_peer peer;

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF,
                                  .profile = _i < 3 ? SXE_TLS_MODERN : SXE_TLS_DEFAULT},
          "a");
    if (_i == 3)
        highest_version = TLS1_2_VERSION;
    peer = connect_to_openssl();
    ck_assert_int_eq(sxe_write(ours, "bye", 3), 0);
    if (_i == 2)
        ck_assert_int_eq(sxe_shutdown(ours), 0);
    ck_assert_int_eq(sxe_close(ours), 0);
    TLS_EXPECT(&peer, "bye");
    ck_assert_int_eq(tls_end(&peer), SSL_ERROR_ZERO_RETURN);
    if (_i < 3) {
        turn(5);
        ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
    }
    if (_i == 1) { /* the server has all bytes, and does not close */
        TURN_UNTIL(sxe_io_unacknowledged(ours) == 0);
        fake_time_advance(6 * SXE_NS_PER_SECOND);
        EXPECT("close", ours, 0);
    }
    peer_free(&peer);
    if (_i != 1)
        EXPECT("close", ours, 0);
    fake_time_stop();
    stop();
}
END_TEST

START_TEST(an_idle_client_closes_at_once)
{
    struct tls_peer peer;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a");
    peer = connect_to_openssl();
    TURN_UNTIL(sxe_io_unacknowledged(ours) == 0);
    ck_assert_int_eq(sxe_close(ours), 0);
    EXPECT("close", ours, 0);
    peer_free(&peer);
    stop();
}
END_TEST

START_TEST(a_clients_first_bytes_may_have_to_wait)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a");
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    fake_os_fail(FAKE_SEND, 1, 1, _i == 0 ? EAGAIN : EPIPE);
    EXPECT("connected", NULL, 0);
    if (_i == 0) {
        TURN_UNTIL(fake_os_injected() > 0);
        sxe_write(ours, "hello", 5);
        EXPECT("connected", NULL, 0);
        EXPECT("read", NULL, 5);
        ck_assert_int_eq(sxe_tls_serve(server, ours), -EINVAL); /* it is a connection */
        sxe_close(ours);
    } else {
        TURN_UNTIL(sxe_number_in_state(SXE_STATE_FREE) == 9);
    }
    stop();
}
END_TEST

START_TEST(without_memory_for_its_handshake_a_connection_fails)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, "a");
    ck_assert_int_eq(sxe_tls_use(client, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    heap_arm(1, true);
    TURN_UNTIL(heap.struck > 0);
    ck_assert(heap_disarm());
    TURN_UNTIL(sxe_get_state(ours) == SXE_STATE_FREE);
    ck_assert_int_eq(sxe_error(ours), EPROTO);
    stop();
}
END_TEST

/* ---- A connection that begins in plain text ---- */

/* Start a server with a certificate for a.example, and connect to it in plain text. */
static void
start_plain(void)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    start((struct sxe_tls_config){.authorities = site_path("a", ".pem")}, "a");
    ours->on_close = note_close;
    ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    for (unsigned i = 0; i < 2; i++)
        EXPECT("connected", NULL, 0);
}

START_TEST(a_plain_connection_can_go_on_with_tls)
{
    start_plain();
    ck_assert_int_eq(sxe_tls_start(client, ours, NULL), -EINVAL);
    ck_assert_int_eq(sxe_tls_start(server, ours, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_tls_start(client, ours, _i == 0 ? "a.example" : "b.example"), 0);
    sxe_tls_on_ready(ours, count_ready);
    ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    if (_i == 0) {
        EXPECT("read", NULL, 5);
        ck_assert_uint_eq(ready, 1);
        ck_assert(sxe_tls_is_secure(ours));
        sxe_close(ours);
    } else {
        EXPECT("close", ours, EPROTO);
        ck_assert_str_eq(failure, "the certificate is not for b.example, but for a.example");
    }
    stop();
}
END_TEST

/* Bytes that came in plain text must not be read as if they had come by TLS. */
START_TEST(bytes_that_came_before_tls_are_refused)
{
    unsigned short port;
    int raw;
    int peer;

    site_start();
    start((struct sxe_tls_config){.verify = SXE_TLS_OFF}, NULL);
    raw = peer_listen(&port);
    ours->on_close = note_close;
    ours->on_read = push_read_keep;
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", port), 0);
    EXPECT("connected", ours, 0);
    peer = peer_accept(raw);
    ck_assert_int_eq(send(peer, "220 hello", 9, 0), 9);
    EXPECT("read", ours, 9);
    ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), -EBUSY);
    SXE_BUF_CLEAR(ours);
    ck_assert_int_eq(sxe_write(ours, "STARTTLS", 8), 0);
    ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), -EBUSY);
    library_turns(1);
    ck_assert_int_eq(send(peer, "220 go", 6, 0), 6); /* our socket has not read these bytes yet */
    ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), 0);
    EXPECT("close", ours, EPROTO);
    close(peer);
    close(raw);
    stop();
}
END_TEST

START_TEST(without_memory_or_a_peer_tls_does_not_start)
{
    start_plain();
    fake_os_fail(FAKE_STRDUP, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), -ENOMEM);
    fake_os_reset();
    if (_i == 0) {
        heap_arm(30, true);
        ck_assert_int_lt(sxe_tls_start(client, ours, "a.example"), 0);
        ck_assert(heap_disarm());
    } else {
        fake_os_fail(FAKE_SEND, 1, 1, _i == 1 ? EPIPE : EAGAIN);
        ck_assert_int_eq(sxe_tls_start(client, ours, "a.example"), _i == 1 ? -EPIPE : 0);
        fake_os_reset();
    }
    if (_i == 2) {
        ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
        EXPECT("read", NULL, 5);
    }
    sxe_close(ours);
    stop();
}
END_TEST

/* ---- Questions about the peer's certificate ---- */

/* Connect to a server with a certificate of these alternative names. */
static void
start_with_names(const char *names)
{
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, names, "authority");
    start((struct sxe_tls_config){.authorities = site_path("authority", ".pem")}, "a");
    go("a.example");
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    EXPECT("read", NULL, 5);
}

static void
expect_names(const char *names, size_t size)
{
    char text[512];

    memset(text, '?', sizeof(text));
    ck_assert_uint_eq(sxe_tls_peer_names(ours, text, size), strlen(names));
    ck_assert_str_eq(text, names);
    ck_assert_int_eq(text[size], '?');
}

START_TEST(a_peers_certificate_is_described)
{
    static const char all[] = "DNS:a.example URI:spiffe://b/c email:d@e.example IP:192.0.2.1 "
                              "IP:2001:db8::1";
    char text[64];
    int64_t now = time(NULL);
    int64_t not_before;
    int64_t not_after;

    start_with_names("DNS:a.example,RID:1.2.3.4,URI:spiffe://b/c,DNS:a\x1b.example,DNS:b DNS:c,"
                     "email:d@e.example,IP:192.0.2.1,IP:2001:db8:0:0:0:0:0:1");
    ck_assert_uint_eq(sxe_tls_peer_issuer(ours, text, sizeof(text)), 12);
    ck_assert_str_eq(text, "CN=authority");
    ck_assert_uint_eq(sxe_tls_peer_issuer(ours, text, 13), 12);
    ck_assert_uint_eq(sxe_tls_peer_issuer(ours, text, 12), 0);
    ck_assert_str_eq(text, "");
    expect_names(all, sizeof(all) + 1);
    expect_names("DNS:a.example URI:spiffe://b/c email:d@e.example IP:192.0.2.1", sizeof(all));
    expect_names("DNS:a.example", 15);
    expect_names("", 14);
    expect_names("", 1);
    heap_arm(1, true);
    /* no allocation: the names were decoded by the first call */
    expect_names(all, sizeof(all) + 1);
    ck_assert(!heap_disarm());
    ck_assert(sxe_tls_peer_validity(ours, &not_before, &not_after));
    ck_assert_int_eq(not_after - not_before, 30 * 86400);
    ck_assert(not_before > now - 2 * 86400 && not_before < now);
    sxe_close(ours);
    stop();
}
END_TEST

START_TEST(without_room_for_its_names_a_peer_has_none_yet)
{
    start_with_names("DNS:a.example");
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    expect_names("", 64);
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_reset();
    expect_names("DNS:a.example", 64);
    sxe_close(ours);
    stop();
}
END_TEST

START_TEST(an_authority_that_another_one_has_signed_is_trusted)
{
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("authority-2", CURVE, NULL, "authority");
    make_pair("a", CURVE, "DNS:a.example", "authority-2");
    start((struct sxe_tls_config){.authorities = site_path("authority-2", ".pem")}, "a");
    go("a.example");
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    EXPECT("read", NULL, 5);
    sxe_close(ours);
    stop();
}
END_TEST

static unsigned
write_subject(char *text)
{
    return sxe_tls_peer_subject(ours, text, SXE_TLS_FINGERPRINT_SIZE);
}

static unsigned
write_issuer(char *text)
{
    return sxe_tls_peer_issuer(ours, text, SXE_TLS_FINGERPRINT_SIZE);
}

static unsigned
write_names(char *text)
{
    return sxe_tls_peer_names(ours, text, SXE_TLS_FINGERPRINT_SIZE);
}

static unsigned
write_fingerprint(char *text)
{
    return sxe_tls_peer_fingerprint(ours, text);
}

START_TEST(without_memory_a_peer_has_no_texts)
{
    static const struct {
        unsigned (*write)(char *text);
        unsigned length;
    } texts[] = {
        {write_subject, 4}, {write_issuer, 12}, {write_names, 13}, {write_fingerprint, 64}};
    char text[SXE_TLS_FINGERPRINT_SIZE];
    unsigned nth = 0;
    bool touched;

    start_with_names("DNS:a.example");
    do {
        unsigned length;

        heap_arm(++nth, false);
        length = texts[_i].write(text);
        touched = heap_disarm();
        ck_assert(length == texts[_i].length || (touched && length < texts[_i].length));
        ck_assert_uint_eq(strlen(text), length);
    } while (touched);
    ck_assert_uint_gt(nth, 1);
    sxe_close(ours);
    stop();
}
END_TEST

static struct sxe_tls *own;
static int (*close_ours)(SXE *s);

static void
close_and_delete(struct sxe_timer *timer)
{
    ck_assert_int_eq(close_ours(timer->user), 0);
    ck_assert_int_eq(sxe_get_state(timer->user), SXE_STATE_CLOSED);
    sxe_tls_delete(own);
    own = NULL;
}

/* No other TLS configuration exists. The server does not speak TLS. */
START_TEST(the_last_configuration_may_be_deleted_once_its_sockets_are_closed)
{
    struct sxe_tls_config config = {.verify = SXE_TLS_OFF};
    struct sxe_timer timer;

    plan_start(10);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_listen(listener), 0);
    close_ours = _i == 0 ? sxe_close : sxe_abort;
    own = sxe_tls_new_client(&config);
    ours = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_tls_use(own, ours, "a.example"), 0);
    ck_assert_int_eq(sxe_connect(ours, "127.0.0.1", sxe_local_port(listener)), 0);
    sxe_timer_init(&timer, close_and_delete, 0, 0);
    timer.user = ours;
    sxe_timer_start(&timer);
    TURN_UNTIL(own == NULL && sxe_number_in_state(SXE_STATE_FREE) == 9);
    while (event_count() > 0)
        event_pop();
    plan_stop();
}
END_TEST

static Suite *
client_suite(void)
{
    Suite *suite = suite_create("tls-client");
    TCase *tcase = tcase_create("client");

    tcase_add_loop_test(tcase, a_host_with_a_good_certificate_is_trusted, 0, 2);
    tcase_add_loop_test(tcase, a_host_that_cannot_be_trusted_is_refused_and_the_reason_is_told, 0,
                        REFUSED);
    tcase_add_loop_test(tcase, a_host_whose_staple_says_that_it_was_revoked_is_refused, 0,
                        sizeof(staples) / sizeof(staples[0]));
    tcase_add_loop_test(tcase, a_staple_is_for_clients_that_know_the_authority, 0, 2);
    tcase_add_test(tcase, an_authority_that_another_one_has_signed_is_trusted);
    tcase_add_test(tcase, an_address_is_checked_as_an_address);
    tcase_add_test(tcase, without_memory_for_the_reason_a_host_is_refused_all_the_same);
    tcase_add_test(tcase, verification_can_be_switched_off);
    tcase_add_test(tcase, a_client_without_a_host_or_with_a_servers_configuration_is_refused);
    tcase_add_loop_test(tcase, a_reply_that_is_cut_is_an_error, 0, 2);
    tcase_add_loop_test(tcase, a_close_with_output_waits_for_a_server_that_may_send_tickets, 0, 4);
    tcase_add_test(tcase, an_idle_client_closes_at_once);
    tcase_add_loop_test(tcase, a_clients_first_bytes_may_have_to_wait, 0, 2);
    tcase_add_test(tcase, without_memory_for_its_handshake_a_connection_fails);
    tcase_add_loop_test(tcase, a_plain_connection_can_go_on_with_tls, 0, 2);
    tcase_add_test(tcase, bytes_that_came_before_tls_are_refused);
    tcase_add_loop_test(tcase, without_memory_or_a_peer_tls_does_not_start, 0, 3);
    tcase_add_test(tcase, a_peers_certificate_is_described);
    tcase_add_test(tcase, without_room_for_its_names_a_peer_has_none_yet);
    tcase_add_loop_test(tcase, without_memory_a_peer_has_no_texts, 0, 4);
    tcase_add_loop_test(tcase, the_last_configuration_may_be_deleted_once_its_sockets_are_closed, 0,
                        2);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return heap_begin() == 1 ? sxe_test_main(client_suite()) : EXIT_FAILURE;
}
