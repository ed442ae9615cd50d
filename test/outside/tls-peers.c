/* SPDX-License-Identifier: MIT
 *
 * Servers and clients of docs/tls.md, with peers that use OpenSSL directly, each in its own
 * process: versions, tickets, staples, floods, ends of connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "outside.h"
#include "sxe-tls.h"

static char certificate[2][PATH_MAX];
static char key[2][PATH_MAX];
static struct sxe_tls_pair pairs[2];
static SXE *listeners[3];
static struct sxe_tls *servers[3];
static unsigned closes;  /* how many closes the server still waits for */
static int error;        /* the error in the last on_close */
static char failure[64]; /* and its sxe_tls_failure */
static bool was_ended;   /* whether the client of the last on_close had sent close_notify */
static SSL_CTX *context;

/* ---- Certificates ---- */

static void
write_pair(unsigned which, EVP_PKEY *made)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    FILE *file;

    snprintf(certificate[which], PATH_MAX, "%s", outside_path(which == 0 ? "0.pem" : "1.pem"));
    snprintf(key[which], PATH_MAX, "%s", outside_path(which == 0 ? "0.key" : "1.key"));
    pairs[which] = (struct sxe_tls_pair){.certificate = certificate[which], .key = key[which]};
    X509_set_version(x, X509_VERSION_3);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"a", -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_gmtime_adj(X509_getm_notBefore(x), -86400);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, made);
    ck_assert_int_gt(X509_sign(x, made, EVP_sha256()), 0);
    file = fopen(certificate[which], "w");
    PEM_write_X509(file, x);
    fclose(file);
    file = fopen(key[which], "w");
    PEM_write_PrivateKey(file, made, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    X509_free(x);
    EVP_PKEY_free(made);
}

static void
remove_pair(unsigned which)
{
    unlink(certificate[which]);
    unlink(key[which]);
}

/* ---- Our servers ---- */

static void
greet(SXE *this)
{
    sxe_write(this, "hello", 5);
    sxe_close(this);
}

static void
clear(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(this);
}

static void
count_close(SXE *this)
{
    error = sxe_error(this);
    snprintf(failure, sizeof(failure), "%s", sxe_tls_failure(this));
    was_ended = sxe_tls_has_ended(this);
    if (--closes == 0)
        sxe_stop();
}

static void
begin(void)
{
    signal(SIGPIPE, SIG_IGN);
    sxe_register(12, 0);
    ck_assert_int_eq(sxe_init(), 0);
}

static void
serve(unsigned which, struct sxe_tls_config config, SXE_IN_EVENT_CONNECTED connected)
{
    config.pairs = pairs;
    config.pair_count = config.pair_count == 0 ? 1 : config.pair_count;
    servers[which] = sxe_tls_new_server(&config);
    ck_assert_msg(servers[which] != NULL, "%s", sxe_tls_problem());
    listeners[which] = sxe_new_tcp(NULL, "127.0.0.1", 0, connected, clear, count_close);
    ck_assert_int_eq(sxe_listen(listeners[which]), 0);
    ck_assert_int_eq(sxe_tls_serve(servers[which], listeners[which]), 0);
}

static void
finish(void)
{
    ck_assert_int_eq(sxe_fini(), 0);
    for (unsigned i = 0; i < 3; i++)
        sxe_tls_delete(servers[i]);
    remove_pair(0);
}

/* Run peer() in a child until `connections` connections of our server have closed. Returns its
 * result, which comes through a pipe, because the loop reaps the child. */
static int
run_with(int (*peer)(void), unsigned connections)
{
    int ends[2];
    pid_t child;
    unsigned char result;
    ssize_t n;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        result = (unsigned char)peer();
        _exit(write(ends[1], &result, 1) != 1);
    }
    close(ends[1]);
    closes = connections;
    ck_assert_int_eq(sxe_run(), 0);
    while ((n = read(ends[0], &result, 1)) < 0)
        ck_assert_int_eq(errno, EINTR);
    ck_assert_int_eq(n, 1);
    close(ends[0]);
    return result;
}

/* ---- The peers: blocking calls of OpenSSL ---- */

static int
dial(unsigned which)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(sxe_local_port(listeners[which])),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* Connect; the handshake is still to come. */
static SSL *
new_ssl(unsigned which)
{
    SSL *ssl;

    if (context == NULL)
        context = SSL_CTX_new(TLS_client_method());
    ssl = SSL_new(context);
    SSL_set_fd(ssl, dial(which));
    return ssl;
}

static bool
is_greeted(SSL *ssl)
{
    char text[16];

    return SSL_connect(ssl) == 1 && SSL_read(ssl, text, sizeof(text)) == 5 &&
           memcmp(text, "hello", 5) == 0;
}

static void
end(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);

    SSL_free(ssl);
    close(fd);
}

/* Send close_notify and read until the server closes: unread bytes would turn the close into a
 * reset. */
static void
end_gently(SSL *ssl)
{
    char text[64];

    shutdown(SSL_get_fd(ssl), SHUT_WR);
    while (recv(SSL_get_fd(ssl), text, sizeof(text), 0) > 0)
        continue;
    end(ssl);
}

/* Try each version: 1.0, 1.1, 1.2, 1.3. Returns a bit for each that the server accepts. */
static int
try_versions(void)
{
    static const int versions[] = {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};
    int spoken = 0;

    for (unsigned i = 0; i < 4; i++) {
        SSL *ssl = new_ssl(0);

        SSL_set_security_level(ssl, 0);
        SSL_set_min_proto_version(ssl, versions[i]);
        SSL_set_max_proto_version(ssl, versions[i]);
        spoken |= is_greeted(ssl) << i;
        end(ssl);
    }
    return spoken;
}

/* promise: docs/tls.md: By default servers speak TLS 1.2 and 1.3. */
START_TEST(a_server_speaks_1_2_and_1_3)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){0}, greet);
    ck_assert_int_eq(run_with(try_versions, 4), 4 + 8);
    finish();
}
END_TEST

/* promise: docs/tls.md: `SXE_TLS_MODERN` is TLS 1.3 only. */
START_TEST(a_modern_server_speaks_1_3_only)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){.profile = SXE_TLS_MODERN}, greet);
    ck_assert_int_eq(run_with(try_versions, 4), 8);
    finish();
}
END_TEST

/* Connect as clients that prefer other ciphers than the server, or ChaCha20. Returns a bit for each
 * whose cipher is the expected one. */
static int
look_at_ciphers(void)
{
    static const struct {
        const char *offered;
        const char *expected;
    } clients[] = {
        {"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-"
         "POLY1305",
         "ECDHE-ECDSA-AES128-GCM-SHA256"},
        {"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256",
         "ECDHE-ECDSA-CHACHA20-POLY1305"},
        {"TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
         "TLS_AES_128_GCM_SHA256"},
        {"TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"},
    };
    int expected = 0;

    for (unsigned i = 0; i < 4; i++) {
        SSL *ssl = new_ssl(0);

        if (i < 2) {
            SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
            SSL_set_cipher_list(ssl, clients[i].offered);
        } else
            SSL_set_ciphersuites(ssl, clients[i].offered);
        expected |= (is_greeted(ssl) && strcmp(SSL_get_cipher_name(ssl), clients[i].expected) == 0)
                    << i;
        end(ssl);
    }
    return expected;
}

/* promise: docs/tls.md: A server takes the first of its ciphers that the client has, and ChaCha20
 * if that is the client's first. */
START_TEST(the_servers_order_of_ciphers_counts)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){0}, greet);
    ck_assert_int_eq(run_with(look_at_ciphers, 4), 1 + 2 + 4 + 8);
    finish();
}
END_TEST

/* Connect as a client that prefers elliptic-curve certificates, and as one that knows RSA only.
 * Returns a bit for each that got an RSA certificate. */
static int
look_at_keys(void)
{
    int rsa = 0;

    for (int i = 0; i < 2; i++) {
        SSL *ssl = new_ssl(0);
        X509 *shown;

        if (i == 1)
            SSL_set1_sigalgs_list(ssl, "RSA-PSS+SHA256:RSA+SHA256");
        if (!is_greeted(ssl))
            return 99;
        shown = SSL_get1_peer_certificate(ssl);
        rsa |= (EVP_PKEY_get_base_id(X509_get0_pubkey(shown)) == EVP_PKEY_RSA) << i;
        X509_free(shown);
        end(ssl);
    }
    return rsa;
}

/* promise: docs/tls.md: for example one with an elliptic curve and one with RSA for the same names:
 * the client's algorithms decide. */
START_TEST(the_clients_algorithms_decide)
{
    write_pair(0, EVP_EC_gen("P-256"));
    write_pair(1, EVP_RSA_gen(2048));
    begin();
    serve(0, (struct sxe_tls_config){.pair_count = 2}, greet);
    ck_assert_int_eq(run_with(look_at_keys, 2), 2);
    remove_pair(1);
    finish();
}
END_TEST

/* Get a session from the first server, and offer it to the other two. Returns a bit for each that
 * resumes it; 4: the strict server accepted the connection. */
static int
resume_elsewhere(void)
{
    SSL *ssl = new_ssl(0);
    SSL_SESSION *session;
    int resumed = 0;

    if (!is_greeted(ssl))
        return 99;
    session = SSL_get1_session(ssl);
    SSL_shutdown(ssl); /* without this call OpenSSL does not resume the session */
    end(ssl);
    for (unsigned i = 1; i < 3; i++) {
        bool is_in;

        ssl = new_ssl(i);
        SSL_set_session(ssl, session);
        is_in = is_greeted(ssl);
        resumed |= (is_in && SSL_session_reused(ssl)) << (i - 1);
        resumed |= is_in && i == 2 ? 4 : 0;
        end(ssl);
    }
    return resumed;
}

/* promise: docs/tls.md: A session is resumed only by a server with the same `verify` and
 * `authorities` */
START_TEST(servers_that_share_keys_resume_sessions_unless_they_ask_for_more)
{
    struct sxe_tls_tickets *tickets = sxe_tls_tickets_new(0);

    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){.tickets = tickets}, greet);
    serve(1, (struct sxe_tls_config){.tickets = tickets}, greet);
    serve(2,
          (struct sxe_tls_config){
              .tickets = tickets, .verify = SXE_TLS_REQUIRED, .authorities = certificate[0]},
          greet);
    ck_assert_int_eq(run_with(resume_elsewhere, 3), 1);
    finish();
    sxe_tls_tickets_delete(tickets);
}
END_TEST

/* Get a session of each version, offer it at once to a server with other keys, and to its own one
 * when the lifetime of its key is over. Returns a bit for each offer that is accepted. */
static int
resume_late(void)
{
    int resumed = 0;

    for (int i = 0; i < 2; i++) {
        SSL *ssl = new_ssl(0);
        SSL_SESSION *session;

        if (i == 0)
            SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
        if (!is_greeted(ssl))
            return 99;
        session = SSL_get1_session(ssl);
        SSL_shutdown(ssl);
        end(ssl);
        for (int which = 1; which >= 0; which--) {
            if (which == 0)
                sleep(3);
            ssl = new_ssl((unsigned)which);
            SSL_set_session(ssl, session);
            if (!is_greeted(ssl))
                return 99;
            resumed |= SSL_session_reused(ssl) << (2 * i + which);
            end(ssl);
        }
    }
    return resumed;
}

/* promise: docs/tls.md: A session ends one lifetime of a key after its full handshake, however
 * often it was resumed */
START_TEST(a_ticket_is_refused_by_other_keys_and_after_its_lifetime)
{
    struct sxe_tls_tickets *tickets = sxe_tls_tickets_new(1);

    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){.tickets = tickets}, greet);
    serve(1, (struct sxe_tls_config){0}, greet);
    ck_assert_int_eq(run_with(resume_late, 6), 0);
    finish();
    sxe_tls_tickets_delete(tickets);
}
END_TEST

static int
ask_staple(void)
{
    SSL *ssl = new_ssl(0);
    const unsigned char *staple;
    long length;
    bool is_good;

    SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
    if (!is_greeted(ssl))
        return 99;
    length = SSL_get_tlsext_status_ocsp_resp(ssl, &staple);
    is_good = length == 5 && memcmp(staple, "\x30\x03\x0a\x01\x03", 5) == 0;
    end(ssl);
    return is_good;
}

/* promise: docs/tls.md: A *staple* is an OCSP reply for the certificate; it comes from a file that
 * another program renews. */
START_TEST(a_client_that_asks_gets_the_staple)
{
    char staple[PATH_MAX];
    FILE *file;

    write_pair(0, EVP_EC_gen("P-256"));
    snprintf(staple, sizeof(staple), "%s", outside_path("staple"));
    file = fopen(staple, "w");
    fwrite("\x30\x03\x0a\x01\x03", 5, 1, file); /* the OCSP reply "try again later" */
    fclose(file);
    pairs[0].staple = staple;
    begin();
    serve(0, (struct sxe_tls_config){0}, greet);
    ck_assert_int_eq(run_with(ask_staple, 1), 1);
    unlink(staple);
    finish();
}
END_TEST

static int
flood(void)
{
    SSL *ssl = new_ssl(0);
    char byte;
    bool is_good = SSL_connect(ssl) == 1;

    for (unsigned i = 0; i < 1000; i++) {
        SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        if (SSL_do_handshake(ssl) != 1)
            break;
    }
    is_good = is_good && SSL_read(ssl, &byte, 1) <= 0;
    end(ssl);
    return is_good;
}

/* promise: docs/tls.md: A connection that sends more than 64 records in a row without data is
 * closed, and so is one that sends more than 32 empty records of data, by OpenSSL. */
START_TEST(a_flood_of_empty_records_ends_a_connection)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){0}, NULL);
    ck_assert_int_eq(run_with(flood, 1), 1);
    ck_assert_int_eq(error, EPROTO);
    finish();
}
END_TEST

static int
say_nothing(void)
{
    char byte;
    int fd = dial(0);

    return recv(fd, &byte, 1, 0) <= 0; /* the connection has ended */
}

/* Send the beginning of a record, and reset the connection. */
static int
reset_handshake(void)
{
    static const unsigned char begin_of_record[] = {22, 3, 1, 1, 0};
    const struct linger now = {.l_onoff = 1};
    int fd = dial(0);

    if (write(fd, begin_of_record, sizeof(begin_of_record)) != sizeof(begin_of_record) ||
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) < 0)
        return 0;
    close(fd);
    return 1;
}

/* promise: docs/tls.md: A handshake has 10 seconds (`handshake_timeout_ms`). */
START_TEST(a_client_that_says_nothing_is_closed)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){.handshake_timeout_ms = 1}, NULL);
    ck_assert_int_eq(run_with(say_nothing, 1), 1);
    ck_assert_int_eq(error, ETIMEDOUT);
    ck_assert_str_eq(failure, "the handshake took too long");
    finish();
}
END_TEST

/* promise: docs/tls.md: A handshake that the peer ended by a reset is ECONNRESET, and one that took
 * too long is ETIMEDOUT; `sxe_tls_failure` says so, too. */
START_TEST(a_handshake_that_is_reset_says_so)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){0}, NULL);
    ck_assert_int_eq(run_with(reset_handshake, 1), 1);
    ck_assert_int_eq(error, ECONNRESET);
    ck_assert_str_eq(failure, "the peer reset the connection during the handshake");
    finish();
}
END_TEST

/* End one connection without close_notify, and one with it. */
static int
end_silently(void)
{
    SSL *ssl = new_ssl(0);
    bool is_good = SSL_connect(ssl) == 1;

    SSL_write(ssl, "x", 1);
    end_gently(ssl);
    return is_good;
}

static int
end_loudly(void)
{
    SSL *ssl = new_ssl(0);
    bool is_good = SSL_connect(ssl) == 1;

    SSL_write(ssl, "x", 1);
    SSL_shutdown(ssl);
    end_gently(ssl);
    return is_good;
}

/* promise: docs/tls.md: If a client closes without close_notify, the server treats that as an
 * ordinary end; `sxe_tls_has_ended` tells the two ends apart. */
START_TEST(a_server_knows_whether_a_client_said_that_it_ended)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){0}, NULL);
    ck_assert_int_eq(run_with(end_loudly, 1), 1);
    ck_assert(was_ended);
    ck_assert_int_eq(run_with(end_silently, 1), 1);
    ck_assert(!was_ended);
    finish();
}
END_TEST

/* A server of OpenSSL, on a socket that was made before the fork. */
static int raw;
static bool cuts;

static int
reply_half(void)
{
    SSL_CTX *serving = SSL_CTX_new(TLS_server_method());
    int fd = accept(raw, NULL, NULL);
    bool is_good;
    SSL *ssl;

    SSL_CTX_use_certificate_file(serving, certificate[0], SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(serving, key[0], SSL_FILETYPE_PEM);
    ssl = SSL_new(serving);
    SSL_set_fd(ssl, fd);
    is_good = SSL_accept(ssl) == 1 && SSL_write(ssl, "half", 4) == 4;
    if (!cuts)
        SSL_shutdown(ssl);
    end(ssl);
    return is_good;
}

/* Listen with a socket of this test. Returns its port. */
static unsigned short
listen_raw(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);

    raw = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(raw, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(raw, 5), 0);
    ck_assert_int_eq(getsockname(raw, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

/* promise: docs/tls.md: In our client a close without close_notify is an error, ECONNRESET: the
 * reply may have been cut. */
START_TEST(a_reply_that_is_cut_is_an_error)
{
    struct sxe_tls *client;
    unsigned short port;

    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    port = listen_raw();
    client = sxe_tls_new_client(&(struct sxe_tls_config){.verify = SXE_TLS_OFF});
    for (unsigned i = 0; i < 2; i++) {
        SXE *dialer = sxe_new_tcp(NULL, "", 0, NULL, clear, count_close);

        cuts = i == 0;
        ck_assert_int_eq(sxe_tls_use(client, dialer, "a"), 0);
        ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", port), 0);
        ck_assert_int_eq(run_with(reply_half, 1), 1);
        ck_assert_int_eq(error, cuts ? ECONNRESET : 0);
    }
    close(raw);
    finish();
    sxe_tls_delete(client);
}
END_TEST

/* ---- Output before a close ---- */

static void
send_and_close(SXE *this)
{
    static char part[100];

    for (unsigned i = 0; i < 40; i++)
        ck_assert_int_eq(sxe_send(this, part, sizeof(part), NULL), 0);
    ck_assert_int_eq(sxe_close(this), 0);
}

/* Returns whether all bytes came before close_notify. */
static int
count_parts(void)
{
    SSL *ssl = new_ssl(0);
    char text[512];
    int n = SSL_connect(ssl);
    int sum = 0;
    bool is_good;

    while (n > 0 && (n = SSL_read(ssl, text, sizeof(text))) > 0)
        sum += n;
    is_good = sum == 4000 && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN;
    end(ssl);
    return is_good;
}

/* promise: docs/tls.md: A close sends close_notify, after all output. */
START_TEST(close_notify_follows_all_output)
{
    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    serve(0, (struct sxe_tls_config){0}, send_and_close);
    ck_assert_int_eq(run_with(count_parts, 1), 1);
    finish();
}
END_TEST

enum { LARGE = 1000000 };

/* Read slowly: the kernel has bytes for which our client no longer waits. Returns whether all of
 * them came, and then close_notify. */
static int
count_slowly(void)
{
    SSL_CTX *serving = SSL_CTX_new(TLS_server_method());
    SSL *ssl;
    char text[16384];
    int n;
    int sum = 0;
    bool is_good;

    SSL_CTX_use_certificate_file(serving, certificate[0], SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(serving, key[0], SSL_FILETYPE_PEM);
    ssl = SSL_new(serving);
    SSL_set_fd(ssl, accept(raw, NULL, NULL));
    n = SSL_accept(ssl);
    while (n > 0 && (n = SSL_read(ssl, text, sizeof(text))) > 0) {
        sum += n;
        usleep(1000);
    }
    is_good = sum == LARGE && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN;
    end(ssl);
    return is_good;
}

static void
send_much_and_close(SXE *this)
{
    static char much[LARGE];

    ck_assert_int_eq(sxe_send(this, much, sizeof(much), NULL), 0);
    ck_assert_int_eq(sxe_close(this), 0);
}

/* promise: docs/tls.md: So if output of a client is unacknowledged, `sxe_close` also waits until
 * the server closes */
START_TEST(a_server_that_reads_slowly_gets_all_that_a_client_wrote_before_its_close)
{
    struct sxe_tls *client;
    SXE *dialer;

    write_pair(0, EVP_EC_gen("P-256"));
    begin();
    client = sxe_tls_new_client(&(struct sxe_tls_config){.verify = SXE_TLS_OFF});
    dialer = sxe_new_tcp(NULL, "", 0, send_much_and_close, clear, count_close);
    ck_assert_int_eq(sxe_tls_use(client, dialer, "a"), 0);
    ck_assert_int_eq(sxe_connect(dialer, "127.0.0.1", listen_raw()), 0);
    ck_assert_int_eq(run_with(count_slowly, 1), 1);
    ck_assert_int_eq(error, 0);
    close(raw);
    finish();
    sxe_tls_delete(client);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {
        a_server_speaks_1_2_and_1_3,
        a_modern_server_speaks_1_3_only,
        the_clients_algorithms_decide,
        the_servers_order_of_ciphers_counts,
        servers_that_share_keys_resume_sessions_unless_they_ask_for_more,
        a_ticket_is_refused_by_other_keys_and_after_its_lifetime,
        a_client_that_asks_gets_the_staple,
        a_flood_of_empty_records_ends_a_connection,
        a_client_that_says_nothing_is_closed,
        a_handshake_that_is_reset_says_so,
        a_server_knows_whether_a_client_said_that_it_ended,
        a_reply_that_is_cut_is_an_error,
        close_notify_follows_all_output,
        a_server_that_reads_slowly_gets_all_that_a_client_wrote_before_its_close,
        NULL};

    return outside_run("tls-peers", cases);
}
