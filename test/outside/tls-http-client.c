/* SPDX-License-Identifier: MIT
 *
 * The HTTP client of docs/http.md with an HTTPS server in the same loop.
 */
#include <errno.h>
#include <string.h>

#include "outside.h"
#include "sxe-http-client.h"
#include "sxe-http.h"
#include "sxe-tls.h"

static struct sxe_tls *server_tls;
static struct sxe_tls *client_tls;
static struct sxe_http *server;
static char path[PATH_MAX];
static char failure[SXE_TLS_PROBLEM_SIZE];
static char body[32];
static unsigned left; /* how many calls are in progress */
static int last;

static enum sxe_http_verdict
hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply_text(response, 200, "hello");
}

static void
on_done(const struct sxe_http_exchange *exchange, int result)
{
    last = result;
    failure[0] = body[0] = '\0';
    if (exchange->closed != NULL)
        snprintf(failure, sizeof(failure), "%s", sxe_tls_failure(exchange->closed));
    if (result == 0)
        snprintf(body, sizeof(body), "%.*s", (int)exchange->body.length, exchange->body.base);
    if (--left == 0)
        sxe_stop();
}

static void
call_times(struct sxe_http_client *client, unsigned times)
{
    struct sxe_http_call call = {.request.target = sxe_http_span("/"), .on_done = on_done};

    left = times;
    for (unsigned i = 0; i < times; i++)
        ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), 0);
    ck_assert_int_eq(sxe_run(), 0);
}

/* promise: docs/http.md: With `tls` and `use_tls` the client's connections speak TLS, with a
 * handshake for each connection. Connection reuse, timeouts and retries are the same. */
START_TEST(calls_over_tls_share_connections_and_strangers_are_refused)
{
    struct sxe_http_config serving = {.handler = hello};
    struct sxe_http_client_config dialling = {
        .connections_max = 2, .host = "localhost:8443", .use_tls = sxe_tls_use};
    struct sxe_http_client *known;
    struct sxe_http_client *stranger;
    struct sxe_tls_counts counts;
    char file[PATH_MAX];
    FILE *pem;

    snprintf(path, sizeof(path), "%s", outside_path("socket"));
    snprintf(file, sizeof(file), "%s", outside_path("local.pem"));
    server_tls = sxe_tls_new_local(&(struct sxe_tls_config){0});
    pem = fopen(file, "w");
    fputs(sxe_tls_local_pem(server_tls), pem);
    fclose(pem);
    client_tls = sxe_tls_new_client(&(struct sxe_tls_config){.authorities = file});
    server = sxe_http_new(&serving);
    dialling.path = path;
    dialling.tls = client_tls;
    known = sxe_http_client_new(&dialling);
    dialling.tls_name = "other.example";
    stranger = sxe_http_client_new(&dialling);
    ck_assert(server != NULL && known != NULL && stranger != NULL && client_tls != NULL);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen_unix(server, path), 0);
    ck_assert_int_eq(sxe_tls_serve(server_tls, sxe_http_listener(server)), 0);
    call_times(known, 20);
    ck_assert_int_eq(last, 0);
    ck_assert_str_eq(body, "hello");
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.handshakes, 4); /* two connections; each is counted at both ends */
    call_times(stranger, 1);
    ck_assert_int_eq(last, -EPROTO);
    ck_assert_str_eq(failure, "the certificate is not for other.example, but for localhost, "
                              "127.0.0.1, ::1");
    call_times(known, 1);
    ck_assert_int_eq(last, 0);
    sxe_http_client_delete(known);
    sxe_http_client_delete(stranger);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(server);
    sxe_tls_delete(client_tls);
    sxe_tls_delete(server_tls);
    unlink(file);
    unlink(path);
}
END_TEST

static void
accept_in_silence(SXE *s)
{
    SXE_UNUSED_PARAMETER(s);
}

static void
read_nothing(SXE *s, int length)
{
    SXE_UNUSED_PARAMETER(length);
    sxe_consume(s, (unsigned)SXE_BUF_USED(s));
}

/* promise: docs/limits.md: connecting, with the handshake of TLS */
START_TEST(a_server_that_says_nothing_does_not_keep_a_call_waiting)
{
    struct sxe_http_client_config dialling = {
        .host = "localhost", .use_tls = sxe_tls_use, .connect_timeout_ms = 50};
    struct sxe_http_client *impatient;
    SXE *listener;

    sxe_register(8, 0);
    snprintf(path, sizeof(path), "%s", outside_path("socket"));
    client_tls = sxe_tls_new_client(&(struct sxe_tls_config){.handshake_timeout_ms = 3600000});
    dialling.path = path;
    dialling.tls = client_tls;
    impatient = sxe_http_client_new(&dialling);
    ck_assert(impatient != NULL && client_tls != NULL);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_unix(NULL, path, accept_in_silence, read_nothing, NULL);
    ck_assert_ptr_nonnull(listener);
    ck_assert_int_eq(sxe_listen(listener), 0);
    call_times(impatient, 3);
    ck_assert_int_eq(last, -ETIMEDOUT);
    sxe_http_client_delete(impatient);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_tls_delete(client_tls);
    unlink(path);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {calls_over_tls_share_connections_and_strangers_are_refused,
                            a_server_that_says_nothing_does_not_keep_a_call_waiting, NULL};

    return outside_run("tls-http-client", cases);
}
