/* SPDX-License-Identifier: MIT
 *
 * sxe-http over TLS, with a server of lib-sxe-tls in another process: the reports about TLS, and
 * the messages about failures.
 */
#include <stdlib.h>
#include <unistd.h>

#include "http-app-server.h"
#include "sxe-tls.h"
#include "test-main.h"

#define CLOSING "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"

static char directory[64];
static char authority[96]; /* the file of the server's certificate */
static char json[96];
static char url[64];

/* ---- The server ---- */

static bool is_closing;
/* Has its own ticket keys; serves every other connection; may be NULL. */
static struct sxe_tls *other;

/* Reply to a request without a body. */
static void
on_request(SXE *s, int length)
{
    (void)length;
    while (SXE_BUF_USED(s) > 0) {
        const char *end = memmem(SXE_BUF(s), SXE_BUF_USED(s), "\r\n\r\n", 4);
        const char *reply = is_closing ? CLOSING : REPLY;

        if (end == NULL)
            return;
        sxe_consume(s, (unsigned)(end + 4 - SXE_BUF(s)));
        ck_assert_int_eq(sxe_write(s, reply, (unsigned)strlen(reply)), 0);
        if (is_closing) {
            sxe_close(s);
            return;
        }
    }
}

static void
tell_port(SXE *listener, int fd)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof(address);
    uint16_t number;

    ck_assert_int_eq(getsockname(sxe_fd(listener), (struct sockaddr *)&address, &length), 0);
    number = ntohs(address.sin_port);
    ck_assert_int_eq(write(fd, &number, sizeof(number)), sizeof(number));
}

static struct sxe_tls *serving; /* kept until the server ends, because its ticket keys are shared */
static SXE *listener;

/* Give the next connection to the other server. */
static void
on_accepted(SXE *s)
{
    struct sxe_tls *next = other;

    (void)s;
    if (next == NULL)
        return;
    other = serving;
    serving = next;
    ck_assert_int_eq(sxe_tls_serve(serving, listener), 0);
}

static void
serve_tls(struct sxe_tls *tls, int fd)
{
    sxe_register(SOCKETS_MAX, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, on_accepted, on_request, NULL);
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_tls_serve(tls, listener), 0);
    tell_port(listener, fd);
    sxe_run();
    _exit(EXIT_FAILURE);
}

static void
set_url(unsigned number)
{
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/", number);
}

static void
start_tls(bool closes)
{
    struct sxe_tls *tls = sxe_tls_new_local(&(struct sxe_tls_config){0});
    FILE *file = fopen(authority, "w");
    uint16_t number = 0;
    int fds[2];

    ck_assert_ptr_nonnull(tls);
    ck_assert_ptr_nonnull(file);
    fputs(sxe_tls_local_pem(tls), file);
    fclose(file);
    ck_assert_int_eq(pipe(fds), 0);
    serving = tls;
    is_closing = closes;
    if (fork_server())
        serve_tls(tls, fds[1]);
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &number, sizeof(number)), sizeof(number));
    close(fds[0]);
    set_url(number);
}

static void
make_directory(void)
{
    snprintf(directory, sizeof(directory), "/tmp/sxe-http-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(authority, sizeof(authority), "%s/ca.pem", directory);
    snprintf(json, sizeof(json), "%s/a.json", directory);
}

static void
remove_directory(void)
{
    stop_server();
    sxe_tls_delete(serving);
    serving = NULL;
    unlink(authority);
    unlink(json);
    rmdir(directory);
}

#define RUN_TLS(sockets, queries, ...) \
    RUN_HTTP("-q", "-c", sockets, "-n", queries, "--timeout", "60", __VA_ARGS__, url)

/* ---- Connections that succeed ---- */

START_TEST(a_server_that_is_verified_is_loaded)
{
    start_tls(false);
    RUN_TLS("20", "5", "--tls-ca", authority);
    CHECK(0, "GET https://127.0.0.1:", "opened    20/20 connections",
          "requests  100  ok 100  errors 0  in flight 0");
    ck_assert_ptr_null(strstr(ran.output, "INSECURE"));
    check_has(ran.output, "\nTLS       handshakes: 20 full, 0 resumed (0 %)\n");
    check_has(ran.output, "\nhandshake ");
}
END_TEST

START_TEST(a_server_that_is_not_verified_is_loaded_and_the_report_says_so)
{
    start_tls(false);
    RUN_TLS("2", "5", "--insecure");
    CHECK(0, "INSECURE: the server's certificate is not verified",
          "requests  10  ok 10  errors 0  in flight 0");
    check_has(ran.errors, "sxe-http: warning: --insecure: the server's certificate is not");
}
END_TEST

START_TEST(connections_that_the_server_ends_are_opened_again)
{
    start_tls(true);
    RUN_TLS("2", "4", "--tls-ca", authority);
    CHECK(0, "requests  8  ok 8  errors 0  in flight 0", "connections reopened 6");
}
END_TEST

/* ---- Resuming sessions ---- */

START_TEST(so_many_connections_resume_a_session)
{
    start_tls(true);
    RUN_TLS("1", "8", "--tls-ca", authority, "--tls-resume", "50", "--json", json);
    CHECK(0, "requests  8  ok 8  errors 0  in flight 0",
          "TLS       handshakes: 5 full, 3 resumed (37.5 %)  no session to resume for 1\n");
    RUN_HTTP("merge", "--csv", "-", json);
    check_has(ran.output, "handshakes_resumed,handshakes_refused,handshakes_sessionless,");
    check_has(ran.output, ",3,0,1,");
    RUN_HTTP("merge", "--markdown", "-", json);
    check_has(ran.output, "| handshake |");
    check_has(ran.output, "\n| TLS handshakes | 8, 37.5 % of them resumed |\n");
}
END_TEST

START_TEST(all_connections_resume_a_session_once_there_is_one)
{
    start_tls(true);
    RUN_TLS("1", "5", "--insecure", "--tls-resume", "100");
    CHECK(0, "handshakes: 1 full, 4 resumed (80 %)  no session to resume for 1\n");
}
END_TEST

START_TEST(sessions_that_the_server_refuses_are_told)
{
    other = sxe_tls_new_local(&(struct sxe_tls_config){0});
    ck_assert_ptr_nonnull(other);
    start_tls(true);
    RUN_TLS("1", "4", "--insecure", "--tls-resume", "100");
    CHECK(0, "handshakes: 4 full, 0 resumed (0 %)  the server refused to resume 3",
          "no session to resume for 1\n");
    sxe_tls_delete(other);
    other = NULL;
}
END_TEST

/* ---- Connections that fail ---- */

START_TEST(a_certificate_for_another_name_is_named_in_report_and_json)
{
    start_tls(false);
    RUN_TLS("2", "1", "--tls-ca", authority, "--tls-name", "other.example", "--json", json);
    CHECK(LOAD_EXIT_ERRORS, "opened    0/2 connections", "TLS failed 2",
          "(first: the certificate is not for other.example, but for localhost, 127.0.0.1, ::1)");
    check_has(ran.errors, "could be opened (TLS: the certificate is not for other.example");
    RUN_HTTP("merge", "--markdown", "/dev/null", json);
    check_has(ran.output, "(first: the certificate is not for other.example");
}
END_TEST

START_TEST(a_self_signed_certificate_is_refused)
{
    start_tls(false);
    RUN_TLS("1", "1", "-H", "A: b");
    CHECK(LOAD_EXIT_ERRORS, "TLS failed 1", "(first: self-signed: no trusted authority");
}
END_TEST

START_TEST(a_server_without_tls_fails_the_handshake)
{
    start_greeting_server("HTTP/1.1 400 Bad Request\r\n\r\n", hello);
    set_url((unsigned)atoi(port));
    RUN_TLS("1", "1", "--insecure");
    CHECK(LOAD_EXIT_ERRORS, "opened    0/1 connections", "TLS failed 1");
}
END_TEST

START_TEST(a_server_that_says_nothing_times_out)
{
    start_server(hello);
    set_url((unsigned)atoi(port));
    RUN_HTTP("-q", "-c", "1", "-n", "1", "--timeout", "100ms", "--insecure", url);
    CHECK(LOAD_EXIT_ERRORS, "opened    0/1 connections", "timed out 1");
}
END_TEST

START_TEST(files_that_cannot_be_read_are_found_before_the_run)
{
    set_url(1);
    RUN_TLS("1", "1", "--tls-ca", "/none");
    ck_assert_int_eq(ran.status, LOAD_EXIT_USAGE);
    check_has(ran.errors, "sxe-http: cannot use TLS: ");
    check_has(ran.errors, "/none");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-tls");
    TCase *works = tcase_create("works");
    TCase *fails = tcase_create("fails");

    tcase_add_checked_fixture(works, make_directory, remove_directory);
    tcase_add_test(works, a_server_that_is_verified_is_loaded);
    tcase_add_test(works, a_server_that_is_not_verified_is_loaded_and_the_report_says_so);
    tcase_add_test(works, connections_that_the_server_ends_are_opened_again);
    tcase_add_test(works, so_many_connections_resume_a_session);
    tcase_add_test(works, all_connections_resume_a_session_once_there_is_one);
    tcase_add_test(works, sessions_that_the_server_refuses_are_told);
    suite_add_tcase(suite, works);
    tcase_add_checked_fixture(fails, make_directory, remove_directory);
    tcase_add_test(fails, a_certificate_for_another_name_is_named_in_report_and_json);
    tcase_add_test(fails, a_self_signed_certificate_is_refused);
    tcase_add_test(fails, a_server_without_tls_fails_the_handshake);
    tcase_add_test(fails, a_server_that_says_nothing_times_out);
    tcase_add_test(fails, files_that_cannot_be_read_are_found_before_the_run);
    suite_add_tcase(suite, fails);
    return sxe_test_main(suite);
}
