/* SPDX-License-Identifier: MIT
 *
 * sxe-httpd and upstreams with TLS: its options and keys, whom it trusts, and what the log says of
 * a server that it does not. The servers are OpenSSL on blocking sockets.
 */
#include "run-httpd.h"

#include "config-sites.h"
#include "secure.h"
#include "tls-site.h"

static int listener;
static unsigned short listener_port;
static char url[64];

static void
listen_as_upstream(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);

    listener = patient_socket(AF_INET);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(listen(listener, 10), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    listener_port = ntohs(at.sin_port);
    snprintf(url, sizeof(url), "/a=https://127.0.0.1:%u", listener_port);
}

static void
set_up(void)
{
    site_start();
    make_pair("app", CURVE, "DNS:app.internal,IP:127.0.0.1", NULL);
    make_pair("other", CURVE, "DNS:other.internal", NULL);
    make_pair("client", CURVE, "DNS:proxy.internal", NULL);
    listen_as_upstream();
}

static void
tear_down(void)
{
    close(listener);
    site_stop();
}

enum way { SPEAKS_TLS, SPEAKS_PLAIN, CLOSES, ASKS };

/* Accept a connection, and if its handshake succeeds, answer one request. */
static void
answer_as_upstream(enum way way, const char *certificate)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    SSL *ssl;
    char text[2048] = "";
    int fd = accept(listener, NULL, NULL);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        SSL_CTX_use_certificate_file(context, site_path(certificate, ".pem"), SSL_FILETYPE_PEM), 1);
    ck_assert_int_eq(
        SSL_CTX_use_PrivateKey_file(context, site_path(certificate, ".key"), SSL_FILETYPE_PEM), 1);
    if (way == ASKS) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        ck_assert_int_eq(SSL_CTX_load_verify_locations(context, site_path("client", ".pem"), NULL),
                         1);
    }
    ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    if (way == SPEAKS_PLAIN)
        say(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    if ((way == SPEAKS_TLS || way == ASKS) && SSL_accept(ssl) == 1 &&
        SSL_read(ssl, text, sizeof(text) - 1) > 0) {
        check_has(text, "GET /a/b HTTP/1.1\r\nHost: h\r\n");
        SSL_write(ssl, reply, sizeof(reply) - 1);
    }
    if (way == SPEAKS_PLAIN)
        (void)!read(fd, text, sizeof(text));
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
}

static void
ask_for(const char *line, enum way way, const char *certificate)
{
    int client = dial();

    say(client, "GET /a/b HTTP/1.1\r\nHost: h\r\n\r\n");
    answer_as_upstream(way, certificate);
    expect(client, line);
    close(client);
}

/* ---- Options and keys ---- */

START_TEST(options_of_tls_are_for_https)
{
    static const char *const options[][2] = {
        {"--proxy-tls-ca", "a"}, {"--proxy-tls-name", "a"}, {"--proxy-tls-insecure", NULL}};
    static const char *const halves[] = {"--proxy-tls-cert", "--proxy-tls-key"};

    for (unsigned i = 0; i < SXE_COUNT(options); i++) {
        RUN_HTTPD("--proxy", "/a=http://127.0.0.1:1", options[i][0], options[i][1]);
        ck_assert_int_eq(ran.status, 2);
        check_has(ran.errors, "--proxy-tls-key are for upstreams with TLS: add --proxy PATH=");
    }
    RUN_HTTPD("--proxy", "/a=http://127.0.0.1:1", "--proxy-tls-cert", "a", "--proxy-tls-key", "b");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "--proxy-tls-key are for upstreams with TLS: add --proxy PATH=");
    for (unsigned i = 0; i < SXE_COUNT(halves); i++) {
        RUN_HTTPD("--proxy", "/a=https://127.0.0.1:1", halves[i], "a");
        ck_assert_int_eq(ran.status, 2);
        check_has(ran.errors, "--proxy-tls-cert and --proxy-tls-key need each other");
    }
    RUN_HTTPD("--proxy", "/a=https://127.0.0.1:1", "--proxy-tls-name", "a b");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "(--proxy-tls-name) is 'a b'; it must be a name or an address");
    RUN_HTTPD("--proxy", "/a=https://127.0.0.1:1", "--proxy-tls-name", "");
    ck_assert_int_eq(ran.status, 2);
}
END_TEST

static void
write_site(const char *text)
{
    FILE *file = fopen(site_path("site", ".lua"), "w");

    fprintf(file, "return { %s }", text);
    fclose(file);
}

static const struct {
    const char *text;
    const char *says;
} mistakes[] = {
    {"upstreams = { app = { servers = { 'https://a:1', 'b:1' } } }",
     "servers: it is b:1; it must be like the first one: all have https://, or none"},
    {"upstreams = { app = { servers = { '/a', 'https://b:1' } } }",
     "servers: it is https://b:1; it must be like the first one"},
    {"upstreams = { app = { servers = 'https:///a' } }",
     "servers: it is https:///a; it must be an"},
    {"upstreams = { app = { servers = 'https://a' } }", "servers: it is https://a; it must be an"},
    {"upstreams = { app = { servers = 'a:1', tls_ca = 'a' } }", "need servers with https://"},
    {"upstreams = { app = { servers = 'a:1', tls_name = 'a' } }", "need servers with https://"},
    {"upstreams = { app = { servers = 'a:1', tls_insecure = true } }", "need servers with https"},
    {"upstreams = { app = { servers = 'a:1', tls_cert = 'a', tls_key = 'b' } }",
     "need servers with https://"},
    {"upstreams = { app = { servers = 'https://a:1', tls_cert = 'a' } }", "need each other"},
    {"upstreams = { app = { servers = 'https://a:1', tls_key = 'a' } }", "need each other"},
    {"upstreams = { app = { servers = 'https://a:1', tls_cert = 1 } }", "tls_cert: it is number"},
    {"upstreams = { app = { servers = 'https://a:1', tls_key = 1 } }", "tls_key: it is number"},
    {"upstreams = { app = { servers = 'https://a:1', tls_cert = '/none', tls_key = '/none' } }, "
     "routes = { ['/'] = { proxy = 'app' } }",
     "site.lua:1: cannot speak TLS with an upstream: "},
    {"upstreams = { app = { servers = 'https://a:1', tls_name = 'a/b' } }", "it must be a name or"},
    {"upstreams = { app = { servers = 'https://a:1', tls_name = 1 } }", "tls_name: it is number"},
    {"upstreams = { app = { servers = 'https://a:1', tls_ca = 1 } }", "tls_ca: it is number"},
    {"upstreams = { app = { servers = 'https://a:1', tls_insecure = 1 } }", "tls_insecure: it is"},
    {"upstreams = { app = { servers = 'https://a:1', tls_ca = '/none' } }, "
     "routes = { ['/'] = { proxy = 'app' } }",
     "site.lua:1: cannot speak TLS with an upstream: "},
    {"routes = { ['/a'] = { proxy = 'https://a:1' } }, proxy_tls_ca = '/none'",
     "site.lua:1: cannot speak TLS with an upstream: "},
};

START_TEST(a_mistake_is_named)
{
    write_site(mistakes[_i].text);
    RUN_HTTPD("--config", site_path("site", ".lua"), "--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, mistakes[_i].says);
}
END_TEST

START_TEST(a_file_of_authorities_that_cannot_be_read_is_named)
{
    static const char *const ways[] = {"--check", "--plan"};

    RUN_HTTPD("--proxy", url, "--proxy-tls-ca", "/none", ways[_i]);
    ck_assert_int_eq(ran.status, _i == 0 ? 2 : 1);
    check_has(ran.errors, "sxe-httpd: cannot speak TLS with an upstream: ");
    check_has(ran.errors, "/none");
}
END_TEST

START_TEST(what_the_page_says_is_accepted)
{
    write_site("upstreams = { app = { servers = { 'https://127.0.0.1:1', 'https://[::1]:2 weight=2'"
               " }, tls_insecure = true, tls_name = '::1' } }, proxy_tls_name = 'a.b',\n"
               "routes = { ['/a'] = { proxy = 'app' }, ['/b'] = { proxy = 'https://127.0.0.1' } }");
    RUN_HTTPD("--config", site_path("site", ".lua"), "--check");
    ck_assert_str_eq(ran.errors, "");
    ck_assert_int_eq(ran.status, 0);
    RUN_HTTPD("--config", site_path("site", ".lua"), "--plan");
    ck_assert_int_eq(ran.status, 0);
    write_site("upstreams = { app = { servers = '127.0.0.1:1' } }, proxy_tls_name = 'a.b',\n"
               "routes = { ['/a'] = { proxy = 'app' } }");
    RUN_HTTPD("--config", site_path("site", ".lua"), "--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "are for upstreams with TLS");
    RUN_HTTPD("--proxy", "/a=https://127.0.0.1/b", "--proxy-tls-insecure", "--check");
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

/* ---- Whom it trusts ---- */

static const char *const trusting[][4] = {
    {"--proxy-tls-ca", "app.pem"},
    {"--proxy-tls-ca", "app.pem", "--proxy-tls-name", "app.internal"},
    {"--proxy-tls-insecure"},
    {"--proxy-tls-insecure", "--proxy-tls-name", "other.internal"},
};

START_TEST(a_server_with_a_good_certificate_gets_the_request)
{
    const char *const *options = trusting[_i];

    START_HTTPD("--proxy", url, options[0], _i < 2 ? site_path("app", ".pem") : options[1],
                options[2], options[3]);
    ask_for("HTTP/1.1 200 OK\r\n", SPEAKS_TLS, "app");
    stop_httpd();
}
END_TEST

START_TEST(routes_and_upstreams_of_a_file_speak_tls)
{
    char text[1000];

    snprintf(text, sizeof(text),
             _i == 0 ? "upstreams = { app = { servers = 'https://localhost:%u', tls_ca = '%s',"
                       " tls_name = 'app.internal' } },"
                       " routes = { ['/a/{r...}'] = { proxy = 'app' } }"
             : _i == 1
                 ? "routes = { ['/a/{r...}'] = { proxy = 'https://127.0.0.1:%u' } },"
                   " proxy_tls_ca = '%s'"
                 : "upstreams = { app = { servers = 'https://127.0.0.1:%u', tls_ca = '%s' } },"
                   " proxy_tls_name = 'app.internal',"
                   " routes = { ['/a/{r...}'] = { proxy = 'app' } }",
             listener_port, site_path("app", ".pem"));
    write_site(text);
    START_HTTPD("--config", site_path("site", ".lua"));
    ask_for("HTTP/1.1 200 OK\r\n", SPEAKS_TLS, "app");
    stop_httpd();
}
END_TEST

static const struct {
    const char *name; /* the value of --proxy-tls-name */
    const char *certificate;
    bool has_authority;
    enum way way;
    const char *says;
} failures[] = {
    {"app.internal", "app", false, SPEAKS_TLS, "self-signed"},
    {"other.internal", "app", true, SPEAKS_TLS, "not for other.internal, but for app.internal"},
    {"127.0.0.1", "other", true, SPEAKS_TLS, "self-signed"},
    {"app.internal", "app", true, SPEAKS_PLAIN, ": GET /a/b is answered 502"},
    {"app.internal", "app", true, CLOSES, ": GET /a/b is answered 502"},
};

START_TEST(a_server_that_is_not_trusted_gets_nothing_and_the_log_says_why)
{
    char place[64];

    START_HTTPD("--proxy", url, "--proxy-tls-name", failures[_i].name,
                failures[_i].has_authority ? "--proxy-tls-ca" : NULL, site_path("app", ".pem"));
    ask_for("HTTP/1.1 502 Bad Gateway\r\n", failures[_i].way, failures[_i].certificate);
    stop_httpd();
    snprintf(place, sizeof(place), " - 127.0.0.1:%u: ", listener_port);
    check_has(child_errors(), place);
    check_has(child_errors(), failures[_i].says);
    check_has(child_errors(), ": GET /a/b is answered 502");
}
END_TEST

START_TEST(a_server_that_asks_for_a_certificate_gets_it)
{
    const char *certificate = _i == 2 ? NULL : _i == 1 ? "other" : "client";
    char file[256];
    char key[256];

    snprintf(file, sizeof(file), "%s", site_path(certificate == NULL ? "" : certificate, ".pem"));
    snprintf(key, sizeof(key), "%s", site_path(certificate == NULL ? "" : certificate, ".key"));
    START_HTTPD("--proxy", url, "--proxy-tls-insecure",
                certificate == NULL ? NULL : "--proxy-tls-cert", file, "--proxy-tls-key", key);
    ask_for(_i == 0 ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 502 Bad Gateway\r\n", ASKS, "app");
    stop_httpd();
    if (_i == 0)
        ck_assert_ptr_eq(strstr(child_errors(), "alert"), NULL);
    else
        check_has(child_errors(), _i == 1 ? ": tlsv1 alert unknown ca: GET /a/b is answered 502"
                                          : ": tlsv13 alert certificate required: GET /a/b is "
                                            "answered 502");
}
END_TEST

static Suite *
upstreams_tls_suite(void)
{
    Suite *suite = suite_create("httpd-upstreams-tls");
    TCase *tcase = tcase_create("tls");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, options_of_tls_are_for_https);
    tcase_add_loop_test(tcase, a_mistake_is_named, 0, SXE_COUNT(mistakes));
    tcase_add_loop_test(tcase, a_file_of_authorities_that_cannot_be_read_is_named, 0, 2);
    tcase_add_test(tcase, what_the_page_says_is_accepted);
    tcase_add_loop_test(tcase, a_server_with_a_good_certificate_gets_the_request, 0,
                        SXE_COUNT(trusting));
    tcase_add_loop_test(tcase, routes_and_upstreams_of_a_file_speak_tls, 0, 3);
    tcase_add_loop_test(tcase, a_server_that_asks_for_a_certificate_gets_it, 0, 3);
    tcase_add_loop_test(tcase, a_server_that_is_not_trusted_gets_nothing_and_the_log_says_why, 0,
                        SXE_COUNT(failures));
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(upstreams_tls_suite());
}
