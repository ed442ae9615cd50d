/* SPDX-License-Identifier: MIT
 *
 * A client that sends its body only after 100 (Continue). The handler of docs/http.md that shouts
 * the body back asks for the body, and begins its reply in the same call.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "outside.h"
#include "sxe-http.h"

#define ASK       "HTTP/1.1 100 Continue\r\n\r\n"
#define HEAD(one) "POST / HTTP/1." one "\r\nHost: a\r\nExpect: 100-continue\r\n"

static pid_t server;

/* ---- The server, in another process ---- */

static void
shout(struct sxe_http_request *request, struct sxe_http_response *response, struct sxe_span part,
      bool last)
{
    char text[16384];

    SXE_UNUSED_PARAMETER(request);
    for (size_t i = 0; i < part.length; i++)
        text[i] = (char)toupper((unsigned char)part.base[i]);
    if (sxe_http_write(response, text, part.length) < 0)
        sxe_http_abort(response);
    else if (last)
        (void)!sxe_http_end(response, NULL, 0);
}

static enum sxe_http_verdict
shout_back(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, shout);
    if (sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN) < 0)
        return sxe_http_reply_status(response, 500);
    return SXE_HTTP_LATER;
}

static void
serve(int tell)
{
    struct sxe_http_config config = {.handler = shout_back, .stream = true};
    struct sxe_http *http = sxe_http_new(&config);
    unsigned short port;

    if (http == NULL || sxe_init() < 0 || sxe_http_listen(http, "127.0.0.1", 0) < 0)
        _exit(EXIT_FAILURE);
    port = sxe_http_port(http);
    _exit(write(tell, &port, sizeof(port)) == sizeof(port) && sxe_run() == 0 ? EXIT_SUCCESS
                                                                             : EXIT_FAILURE);
}

/* Start a server and connect to it. */
static int
begin(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    unsigned short port;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    server = fork();
    ck_assert_int_ge(server, 0);
    if (server == 0)
        serve(ends[1]);
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &port, sizeof(port)), sizeof(port));
    close(ends[0]);
    address.sin_port = htons(port);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    return peer;
}

static void
end(int peer)
{
    close(peer);
    ck_assert_int_eq(kill(server, SIGKILL), 0);
    ck_assert_int_eq(waitpid(server, NULL, 0), server);
}

/* ---- The client ---- */

static void
say(int peer, const char *text)
{
    ck_assert_int_eq(send(peer, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Receive until the text ends with `last`, or the server closes the connection. */
static const char *
hear(int peer, const char *last)
{
    static char text[4096];
    size_t used = 0;
    ssize_t n;

    text[0] = '\0';
    while ((used < strlen(last) || strcmp(text + used - strlen(last), last) != 0) &&
           (n = recv(peer, text + used, 1, 0)) > 0) {
        used += (size_t)n;
        ck_assert_uint_lt(used, sizeof(text));
        text[used] = '\0';
    }
    return text;
}

/* promise: docs/http.md: The library sends `100 (Continue)` when you ask for the body, and never
 * after the head of a reply. */
START_TEST(a_client_that_waits_is_asked_before_the_reply_begins)
{
    int peer = begin();

    say(peer, HEAD("1") "Content-Length: 3\r\n\r\n");
    ck_assert_str_eq(hear(peer, "\r\n\r\n"), ASK);
    ck_assert_ptr_eq(strstr(hear(peer, "\r\n\r\n"), ASK), NULL);
    say(peer, "abc");
    ck_assert_str_eq(hear(peer, "0\r\n\r\n"), "3\r\nABC\r\n0\r\n\r\n");
    end(peer);
}
END_TEST

/* promise: docs/http.md: Both calls may be in one call of the handler, and the connection is
 * kept. */
START_TEST(a_client_that_waits_may_ask_again_on_its_connection)
{
    int peer = begin();

    for (int i = 0; i < 3; i++) {
        const char *head;

        say(peer, HEAD("1") "Transfer-Encoding: chunked\r\n\r\n");
        ck_assert_str_eq(hear(peer, "\r\n\r\n"), ASK);
        head = hear(peer, "\r\n\r\n");
        ck_assert_int_eq(strncmp(head, "HTTP/1.1 200 OK\r\n", 17), 0);
        ck_assert_ptr_eq(strstr(head, "close"), NULL);
        say(peer, "3\r\nabc\r\n0\r\n\r\n");
        ck_assert_str_eq(hear(peer, "\r\n0\r\n\r\n"), "3\r\nABC\r\n0\r\n\r\n");
    }
    end(peer);
}
END_TEST

/* promise: docs/http.md: The library sends no `100` to a client that sent bytes of the body with
 * the head, or speaks HTTP/1.0. */
START_TEST(a_client_that_does_not_wait_is_not_asked)
{
    static const char *const texts[] = {HEAD("1") "Content-Length: 3\r\n\r\nabc",
                                        HEAD("0") "Content-Length: 3\r\n\r\nabc"};

    for (int i = 0; i < 2; i++) {
        int peer = begin();

        say(peer, texts[i]);
        ck_assert_int_eq(strncmp(hear(peer, "\r\n\r\n"), "HTTP/1.1 200 OK\r\n", 17), 0);
        ck_assert_str_eq(hear(peer, i == 0 ? "0\r\n\r\n" : "ABC"),
                         i == 0 ? "3\r\nABC\r\n0\r\n\r\n" : "ABC");
        end(peer);
    }
}
END_TEST

int
main(void)
{
    const TTest *const cases[] = {a_client_that_waits_is_asked_before_the_reply_begins,
                                  a_client_that_waits_may_ask_again_on_its_connection,
                                  a_client_that_does_not_wait_is_not_asked, NULL};

    return outside_run("http-continue", cases);
}
