/* SPDX-License-Identifier: MIT
 *
 * sxe-httpd with TLS: its options, its certificates and their replacement, and the tickets that
 * workers share. The clients are OpenSSL on blocking sockets.
 */
#include "run-httpd.h"

#include <openssl/ocsp.h>

#include "redirect.h"
#include "secure.h"
#include "tls-site.h"

static SSL_CTX *context;
static SSL_SESSION *session; /* the session that the next client offers; NULL: none */
static bool keeps_session;
static const char *client_name; /* name of the client's certificate; NULL: no certificate */
static bool wants_staple;
static uid_t start_user;

/* ---- Clients ---- */

struct answer {
    char text[2048];
    char name[64]; /* the name in the server's certificate */
    bool is_resumed;
    bool has_staple;
};

/* Send one request; the answer is everything until the server closes. False: no handshake. */
static bool
ask_tls(struct answer *answer)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    SSL *ssl;
    X509 *certificate;
    const unsigned char *staple;
    size_t length = 0;
    int fd = dial();
    int n;

    *answer = (struct answer){0};
    if (context == NULL)
        context = SSL_CTX_new(TLS_client_method());
    ssl = SSL_new(context);
    if (client_name != NULL) {
        ck_assert_int_eq(
            SSL_use_certificate_file(ssl, site_path(client_name, ".pem"), SSL_FILETYPE_PEM), 1);
        ck_assert_int_eq(
            SSL_use_PrivateKey_file(ssl, site_path(client_name, ".key"), SSL_FILETYPE_PEM), 1);
    }
    if (wants_staple)
        SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
    SSL_set_fd(ssl, fd);
    if (session != NULL)
        SSL_set_session(ssl, session);
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, request, sizeof(request) - 1) > 0) {
        while ((n = SSL_read(ssl, answer->text + length,
                             (int)(sizeof(answer->text) - 1 - length))) > 0)
            length += (size_t)n;
        certificate = SSL_get1_peer_certificate(ssl);
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, answer->name,
                                  sizeof(answer->name));
        X509_free(certificate);
        answer->has_staple = SSL_get_tlsext_status_ocsp_resp(ssl, &staple) > 0;
        answer->is_resumed = SSL_session_reused(ssl);
        if (keeps_session && session == NULL)
            session = SSL_get1_session(ssl);
    }
    SSL_shutdown(ssl); /* otherwise OpenSSL does not resume the session */
    SSL_free(ssl);
    close(fd);
    return length > 0;
}

static void
expect_hello(const char *name)
{
    struct answer answer;

    ck_assert(ask_tls(&answer));
    check_has(answer.text, "HTTP/1.1 200 OK\r\n");
    check_has(answer.text, "\r\n\r\nHello, World!\n");
    ck_assert_str_eq(answer.name, name);
}

static void
replace_file(const char *name, const char *by, const char *suffix)
{
    ck_assert_int_eq(rename(site_path(by, suffix), site_path(name, suffix)), 0);
}

/* Wait until standard error has this text; the limit of time only ends a hang. */
static void
await_errors(const char *text)
{
    for (unsigned i = 0; i < 60000 && strstr(child_errors(), text) == NULL; i++)
        usleep(10000);
    check_has(child_errors(), text);
}

/* ---- Options ---- */

START_TEST(options_that_do_not_go_together_are_refused)
{
    RUN_HTTPD("--tls-cert", "a");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "each --tls-cert needs its --tls-key");
    RUN_HTTPD("--tls-key", "a");
    ck_assert_int_eq(ran.status, 2);
    RUN_HTTPD("--tls-dev", "--tls-cert", "a", "--tls-key", "b");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "--tls-dev makes a certificate of its own");
    RUN_HTTPD("--tls-dev", "--proxy-from", "::1");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "--proxy-from does not go with TLS");
    RUN_HTTPD("--tls-cert", "");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "a certificate (--tls-cert) is ''; it must be the path of a file");
    RUN_HTTPD("--tls-key", "1", "--tls-key", "2", "--tls-key", "3", "--tls-key", "4", "--tls-key",
              "5", "--tls-key", "6", "--tls-key", "7", "--tls-key", "8", "--tls-key", "9");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors,
              "a key (--tls-key) is '9'; it must be the path of a file in PEM; at most");
}
END_TEST

/* The command line must be refused with this message. */
#define REFUSED(message, ...)            \
    do {                                 \
        RUN_HTTPD(__VA_ARGS__);          \
        ck_assert_int_eq(ran.status, 2); \
        check_has(ran.errors, message);  \
    } while (0)

START_TEST(values_and_companions_of_the_other_options_are_checked)
{
    char field[4000] = "A: ";

    REFUSED("a certificate: add --tls-cert and --tls-key, or --tls-dev", "--hsts", "1");
    REFUSED("need a certificate", "--tls-client-ca", "a");
    REFUSED("need a certificate", "--tls-client", "optional");
    REFUSED("need a certificate", "--tls-profile", "intermediate");
    REFUSED("need a certificate", "--tls-memory", "1m");
    REFUSED("give at most as many", "--tls-dev", "--tls-staple", "a");
    REFUSED("add --tls-client-ca FILE", "--tls-dev", "--tls-client", "required");
    REFUSED("tls and client of --listen need a certificate", "--listen", "/tmp/s,tls");
    REFUSED("tls and client of --listen need a certificate", "--listen", "1,client=off");
    REFUSED("client of --listen needs the authorities", "--tls-dev", "--listen", "1,client=off");
    REFUSED("client of --listen does not go with --tls-dev", "--tls-dev", "--tls-client-ca", "a",
            "--listen", "1,client=optional");
    REFUSED("or ,client=off, =optional or =required", "--tls-dev", "--listen", "1,tls,plain");
    REFUSED("or ,client=off, =optional or =required", "--listen", "1,client=off,plain");
    REFUSED("or ,client=off, =optional or =required", "--listen", "1,client=perhaps");
    REFUSED("it must be optional or required", "--tls-dev", "--tls-client", "perhaps");
    REFUSED("it must be intermediate or modern", "--tls-dev", "--tls-profile", "old");
    REFUSED("the memory for TLS (--tls-memory)", "--tls-dev", "--tls-memory", "1k");
    REFUSED("need a certificate", "--http-redirect", "0");
    REFUSED("the port of plain HTTP (--http-redirect)", "--tls-dev", "--http-redirect", "65536");
    REFUSED("it must be a port, or IP:PORT", "--tls-dev", "--http-redirect", "a.example:80");
    REFUSED("the time of HTTPS only (--hsts)", "--tls-dev", "--hsts", "long");
    REFUSED("at most 8 of them", "--tls-staple", "", "--tls-staple", "", "--tls-staple", "",
            "--tls-staple", "", "--tls-staple", "", "--tls-staple", "", "--tls-staple", "",
            "--tls-staple", "", "--tls-staple", "");
    memset(field + 3, 'a', sizeof(field) - 4);
    field[sizeof(field) - 1] = '\0';
    REFUSED("no room for the field of --hsts", "--tls-dev", "--hsts", "365d", "--header", field,
            "--header", "B: 0123456789012345678901234567890123456789012345678901234567890");
}
END_TEST

START_TEST(files_that_are_wrong_are_named)
{
    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, "DNS:a.example", NULL);
    RUN_HTTPD("-p", "0", "--tls-cert", "/nonexistent", "--tls-key", site_path("a", ".key"));
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.output, "");
    check_has(ran.errors, "sxe-httpd: cannot serve TLS: cannot read /nonexistent: No such file or "
                          "directory; --tls-cert and --tls-key need a certificate and its key");
    RUN_HTTPD("--check", "--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("b", ".key"));
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, " is not the key of ");
    RUN_HTTPD("--check", "--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"));
    ck_assert_int_eq(ran.status, 0);
    site_stop();
}
END_TEST

START_TEST(without_memory_for_keys_nothing_is_served)
{
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    RUN_HTTPD("-p", "0", "--tls-dev");
    fake_os_reset();
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot make keys for TLS: Cannot allocate memory");
}
END_TEST

START_TEST(a_listener_before_sxe_init_is_refused)
{
    struct httpd_options options = {.tls = {.is_dev = true}};

    ck_assert_int_eq(secure_begin(&options), 0);
    ck_assert_int_eq(secure_serve(NULL, HTTPD_CLIENTS_AS_GIVEN), -EINVAL);
    secure_end();
    secure_reload(); /* nothing to reload */
    ck_assert_int_eq(secure_serve(NULL, HTTPD_CLIENTS_AS_GIVEN), 0);
}
END_TEST

/* ---- Serving ---- */

START_TEST(a_certificate_has_the_server_speak_https)
{
    char text[256] = "";
    int fd;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"));
    ck_assert(httpd_child.is_https);
    expect_hello("a");
    fd = dial();
    say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_gt(recv(fd, text, sizeof(text) - 1, MSG_WAITALL), 0);
    check_has(text, "HTTP/1.1 400 Bad Request\r\n");
    check_has(text, "\r\n\r\nThis port speaks HTTPS.\n");
    close(fd);
    stop_httpd();
    site_stop();
}
END_TEST

START_TEST(sighup_takes_new_certificates_and_leaves_good_ones_for_bad_ones)
{
    struct answer answer = {0};

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, "DNS:a.example", NULL);
    if (_i == 0)
        START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"));
    else
        START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"), "-w",
                    "2");
    expect_hello("a");
    replace_file("a", "b", ".pem");
    kill(httpd_child.pid, SIGHUP);
    await_errors(_i == 0 ? "cannot load the certificates again: " : "could not be loaded again");
    check_has(child_errors(), "is not the key of");
    expect_hello("a");
    replace_file("a", "b", ".key");
    kill(httpd_child.pid, SIGHUP);
    await_errors(_i == 0 ? "the certificates were loaded again"
                         : "the server was loaded again, into 2 processes");
    /* With several workers, those with the old certificate may accept until they are told to
     * drain. */
    for (unsigned i = 0; i < 60000 && strcmp(answer.name, "b") != 0; i++)
        ask_tls(&answer);
    ck_assert_str_eq(answer.name, "b");
    stop_httpd();
    site_stop();
}
END_TEST

START_TEST(workers_have_one_certificate_and_open_the_tickets_of_each_other)
{
    struct answer answer;

    START_HTTPD("--tls-dev", "-w", "2");
    keeps_session = true;
    expect_hello("localhost");
    for (unsigned i = 0; i < 12; i++) {
        ck_assert(ask_tls(&answer));
        ck_assert(answer.is_resumed);
    }
    stop_httpd();
}
END_TEST

START_TEST(a_changed_file_is_read_again_without_a_signal)
{
    struct answer answer = {0};

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, "DNS:a.example", NULL);
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"));
    replace_file("a", "b", ".pem");
    await_errors("cannot load the certificates again: ");
    expect_hello("a");
    replace_file("a", "b", ".key");
    for (unsigned i = 0; i < 60000 && strcmp(answer.name, "b") != 0; i++)
        ask_tls(&answer);
    ck_assert_str_eq(answer.name, "b");
    stop_httpd();
    site_stop();
}
END_TEST

static void
make_staple(const char *name)
{
    OCSP_RESPONSE *reply = OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, NULL);
    unsigned char *bytes = NULL;
    FILE *file = fopen(site_path(name, ".der"), "w");
    int length = i2d_OCSP_RESPONSE(reply, &bytes);

    ck_assert_uint_eq(fwrite(bytes, 1, (size_t)length, file), (size_t)length);
    OPENSSL_free(bytes);
    fclose(file);
    OCSP_RESPONSE_free(reply);
}

START_TEST(files_that_only_root_may_read_are_loaded_again_by_new_processes)
{
    struct answer answer = {0};
    char user[32];
    unsigned id = start_user == 0 ? 65534 : start_user;

    snprintf(user, sizeof(user), "%u:%u", id, id == 65534 ? 65534 : getegid());
    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("b", CURVE, "DNS:a.example", NULL);
    make_staple("a");
    httpd_child.prepare = fake_os_reset; /* sxe-httpd may see that it is root */
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                "--tls-staple", site_path("a", ".der"), "--tls-client-ca",
                site_path("authority", ".pem"), "--tls-client", "optional", "--user", user, "-w",
                "1");
    expect_hello("a");
    replace_file("a", "b", ".pem");
    await_errors("could not be loaded again");
    replace_file("a", "b", ".key");
    await_errors("the server was loaded again");
    for (unsigned i = 0; i < 60000 && strcmp(answer.name, "b") != 0; i++)
        ask_tls(&answer);
    ck_assert_str_eq(answer.name, "b");
    stop_httpd();
    site_stop();
}
END_TEST

/* The demand on clients of the options, or of one listener's. */
static const struct {
    const char *option;
    const char *value;
    const char *place;
    bool admits_none;  /* a client without a certificate */
    bool admits_wrong; /* a client whose certificate the authority has not signed */
} demands[] = {
    {"--tls-client", "required", "0", false, false},
    {"--tls-client", "optional", "0", true, false},
    {"--tls-client", "optional", "0,client=required", false, false},
    {"--tls-client", "required", "0,client=optional", true, false},
    {"--tls-client", "required", "0,client=off", true, true},
};

START_TEST(clients_are_asked_for_certificates)
{
    struct answer answer;

    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("good", CURVE, "DNS:c.example", "authority");
    start_httpd((const char *[]){"sxe-httpd", "--listen", demands[_i].place, "--tls-cert",
                                 site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                                 "--tls-client-ca", site_path("authority", ".pem"),
                                 demands[_i].option, demands[_i].value, NULL},
                STDOUT_FILENO);
    client_name = "good";
    expect_hello("a");
    client_name = "a";
    ck_assert_int_eq(ask_tls(&answer), demands[_i].admits_wrong);
    client_name = NULL;
    ck_assert_int_eq(ask_tls(&answer), demands[_i].admits_none);
    stop_httpd();
    site_stop();
}
END_TEST

START_TEST(scripts_are_told_of_the_connection)
{
    static const char text[] =
        "return function(req) local t = req.tls if not t then return 'plain' end local c = "
        "t.client "
        "if c then c = { c.subject, c.issuer, #c.names, c.names[1], c.names[2], #c.fingerprint, "
        "c.not_after - c.not_before } end "
        "return table.concat({ t.version, #t.cipher > 0 and 'cipher', t.sni or '-', t.alpn or '-', "
        "tostring(t.resumed), c and table.concat(c, ' ') or 'nobody' }, ' ') end";
    struct answer answer;
    FILE *file;

    site_start();
    make_pair("authority", CURVE, NULL, NULL);
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_pair("good", CURVE, "DNS:c.example,IP:192.0.2.1", "authority");
    file = fopen(site_path("told", ".lua"), "w");
    fputs(text, file);
    fclose(file);
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                "--tls-client-ca", site_path("authority", ".pem"), "--tls-client", "optional",
                "--lua", site_path("told", ".lua"));
    ck_assert(ask_tls(&answer));
    check_has(answer.text, "\r\n\r\nTLSv1.3 cipher - - false nobody");
    client_name = "good";
    keeps_session = true;
    ck_assert(ask_tls(&answer));
    check_has(answer.text, "\r\n\r\nTLSv1.3 cipher - - false CN=good CN=authority 2 "
                           "DNS:c.example IP:192.0.2.1 64 2592000");
    ck_assert(ask_tls(&answer));
    check_has(answer.text, "\r\n\r\nTLSv1.3 cipher - - true CN=good CN=authority 2 "
                           "DNS:c.example IP:192.0.2.1 64 2592000");
    stop_httpd();
    START_HTTPD("--lua", site_path("told", ".lua"));
    ask_and_expect(GET, "HTTP/1.1 200 OK\r\nDate: @\r\nContent-Type: text/plain; charset=utf-8\r\n"
                        "Content-Length: 5\r\n\r\nplain");
    stop_httpd();
    site_stop();
}
END_TEST

START_TEST(a_client_that_asks_gets_the_staple_and_all_get_the_field_of_hsts)
{
    struct answer answer;

    site_start();
    make_pair("a", CURVE, "DNS:a.example", NULL);
    make_staple("a");
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                "--tls-staple", site_path("a", ".der"), "--hsts", "365d");
    ck_assert(ask_tls(&answer));
    ck_assert(!answer.has_staple);
    check_has(answer.text, "\r\nStrict-Transport-Security: max-age=31536000\r\n");
    wants_staple = true;
    ck_assert(ask_tls(&answer));
    ck_assert(answer.has_staple);
    stop_httpd();
    site_stop();
}
END_TEST

/* ---- The plain port ---- */

/* Send this to the plain port; returns the reply, up to its end. */
static const char *
ask_plain(unsigned short port, const char *request)
{
    static char text[2048];
    unsigned short https_port = httpd_child.port;
    int fd;

    httpd_child.port = port;
    fd = dial();
    httpd_child.port = https_port;
    memset(text, 0, sizeof(text));
    say(fd, request);
    ck_assert_int_gt(recv(fd, text, sizeof(text) - 1, MSG_WAITALL), 0);
    close(fd);
    return text;
}

static void
expect_location(const char *reply, const char *host, const char *target)
{
    char field[256];

    check_has(reply, "HTTP/1.1 308 Permanent Redirect\r\n");
    snprintf(field, sizeof(field), "\r\nLocation: https://%s:%u%s\r\n", host, httpd_child.port,
             target);
    check_has(reply, field);
}

/* The port in the second line of output. */
static unsigned short
redirect_port(void)
{
    char line[256] = "";

    ck_assert_ptr_nonnull(fgets(line, sizeof(line), httpd_child.says));
    ck_assert_int_eq(strncmp(line, "listening on http://", 20), 0);
    ck_assert_ptr_nonnull(strstr(line, "/, to redirect to HTTPS\n"));
    return (unsigned short)strtoul(strrchr(line, ':') + 1, NULL, 10);
}

START_TEST(the_plain_port_leads_to_the_same_at_a_name_of_a_certificate)
{
    unsigned short port;

    site_start();
    make_pair("a", CURVE, "DNS:*.w.example,DNS:a.example,DNS:b.example", NULL);
    if (_i == 0)
        START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                    "--http-redirect", "0");
    else
        START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                    "--http-redirect", "127.0.0.1:0", "-w", "2", "-c", "100");
    port = redirect_port();
    expect_location(ask_plain(port, "GET /x?y=z HTTP/1.1\r\nHost: b.example\r\n\r\n"), "b.example",
                    "/x?y=z");
    expect_location(ask_plain(port, "GET / HTTP/1.1\r\nHost: C.w.example:80\r\n\r\n"),
                    "C.w.example", "/");
    expect_location(ask_plain(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "a.example",
                    "/");
    expect_location(ask_plain(port, "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n"), "a.example", "/");
    expect_location(ask_plain(port, "GET //evil.example/ HTTP/1.0\r\n\r\n"), "a.example",
                    "/evil.example/");
    expect_location(ask_plain(port, "POST http://b.example/q? HTTP/1.1\r\nHost: b.example\r\n"
                                    "Content-Length: 1000\r\n\r\n"),
                    "b.example", "/q?");
    expect_location(ask_plain(port, "OPTIONS * HTTP/1.1\r\nHost: b.example\r\n\r\n"), "b.example",
                    "/");
    expect_hello("a");
    stop_httpd();
    site_stop();
}
END_TEST

START_TEST(without_a_name_in_the_certificate_the_plain_port_refuses)
{
    unsigned short port;

    site_start();
    make_pair("a", CURVE, "IP:127.0.0.1", NULL);
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                "--http-redirect", "[::1]:0", "--stats", "/stats");
    port = redirect_port();
    ck_assert_uint_ne(port, 0);
    stop_httpd();
    START_HTTPD("--tls-cert", site_path("a", ".pem"), "--tls-key", site_path("a", ".key"),
                "--http-redirect", "0");
    port = redirect_port();
    check_has(ask_plain(port, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "HTTP/1.1 400 ");
    stop_httpd();
    site_stop();
}
END_TEST

START_TEST(a_plain_port_that_is_taken_is_said)
{
    char port[8];
    struct httpd_options options = {
        .ip = "127.0.0.1",
        .tls = {.is_redirecting = true, .redirect_ip = "127.0.0.1"},
    };

    START_HTTPD("--tls-dev");
    snprintf(port, sizeof(port), "%u", httpd_child.port);
    RUN_HTTPD("-p", "0", "--tls-dev", "--http-redirect", port);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot listen on 127.0.0.1 port ");
    check_has(ran.errors, "Address already in use; choose another address or port with "
                          "--http-redirect");
    stop_httpd();
    ck_assert_int_eq(redirect_plan(&options, NULL), 0);
    ck_assert_int_lt(redirect_begin(&options, "nowhere", 443), 0); /* also before sxe_init() */
    redirect_delete();
}
END_TEST

START_TEST(the_modern_profile_refuses_tls_1_2)
{
    struct answer answer;

    START_HTTPD("--tls-dev", "--tls-profile", "modern");
    expect_hello("localhost");
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    ck_assert(!ask_tls(&answer));
    stop_httpd();
}
END_TEST

/* On a slow machine a connection that waits may be closed after 10 seconds. */
START_TEST(above_its_memory_it_closes_new_connections)
{
    struct answer answer;
    bool is_served = true;

    START_HTTPD("--tls-dev", "--tls-memory", "1m");
    for (unsigned i = 0; i < 1000 && is_served; i++) {
        int waiting[17];

        for (unsigned k = 0; k < 17; k++)
            waiting[k] = dial();
        is_served = ask_tls(&answer);
        for (unsigned k = 0; k < 17; k++)
            close(waiting[k]);
    }
    ck_assert(!is_served);
    for (unsigned i = 0; i < 60000 && !is_served; i++)
        is_served = ask_tls(&answer);
    ck_assert(is_served);
    stop_httpd();
}
END_TEST

static Suite *
tls_suite(void)
{
    Suite *suite = suite_create("httpd-tls");
    TCase *tcase = tcase_create("tls");

    tcase_add_test(tcase, options_that_do_not_go_together_are_refused);
    tcase_add_test(tcase, values_and_companions_of_the_other_options_are_checked);
    tcase_add_test(tcase, files_that_are_wrong_are_named);
    tcase_add_test(tcase, without_memory_for_keys_nothing_is_served);
    tcase_add_test(tcase, a_listener_before_sxe_init_is_refused);
    tcase_add_test(tcase, a_certificate_has_the_server_speak_https);
    tcase_add_loop_test(tcase, sighup_takes_new_certificates_and_leaves_good_ones_for_bad_ones, 0,
                        2);
    tcase_add_test(tcase, workers_have_one_certificate_and_open_the_tickets_of_each_other);
    tcase_add_test(tcase, a_changed_file_is_read_again_without_a_signal);
    tcase_add_test(tcase, files_that_only_root_may_read_are_loaded_again_by_new_processes);
    tcase_add_loop_test(tcase, clients_are_asked_for_certificates, 0,
                        sizeof(demands) / sizeof(demands[0]));
    tcase_add_test(tcase, scripts_are_told_of_the_connection);
    tcase_add_test(tcase, a_client_that_asks_gets_the_staple_and_all_get_the_field_of_hsts);
    tcase_add_loop_test(tcase, the_plain_port_leads_to_the_same_at_a_name_of_a_certificate, 0, 2);
    tcase_add_test(tcase, without_a_name_in_the_certificate_the_plain_port_refuses);
    tcase_add_test(tcase, a_plain_port_that_is_taken_is_said);
    tcase_add_test(tcase, the_modern_profile_refuses_tls_1_2);
    tcase_add_test(tcase, above_its_memory_it_closes_new_connections);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    start_user = geteuid();
    return sxe_test_main(tls_suite());
}
