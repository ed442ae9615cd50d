/* SPDX-License-Identifier: MIT
 *
 * A server that is told to end more than once.
 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "outside.h"
#include "sxe-http.h"

static char called[16];

static void
note(char name)
{
    called[strlen(called)] = name;
    if (strlen(called) == 2)
        sxe_stop();
}

static void
on_drained(struct sxe_http *http)
{
    SXE_UNUSED_PARAMETER(http);
    note('d');
}

static void
on_stopped(struct sxe_http *http)
{
    SXE_UNUSED_PARAMETER(http);
    note('s');
}

static enum sxe_http_verdict
end_server(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_drain(request->http, on_drained);
    sxe_http_stop(request->http, on_stopped);
    sxe_http_stop(request->http, on_drained);
    sxe_http_stop(request->http, NULL);
    ck_assert_str_eq(called, "");
    return sxe_http_reply_text(response, 200, "bye");
}

/* promise: docs/http.md: Then the library also calls each done of earlier calls of sxe_http_drain
 * and sxe_http_stop once, in the order of those calls. */
START_TEST(each_done_is_called_once)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct sxe_http_config config = {.handler = end_server};
    struct sxe_http *http = sxe_http_new(&config);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int peer = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_ptr_nonnull(http);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen(http, "127.0.0.1", 0), 0);
    address.sin_port = htons(sxe_http_port(http));
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(send(peer, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    ck_assert_int_eq(shutdown(peer, SHUT_WR), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_str_eq(called, "ds");
    close(peer);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(http);
}
END_TEST

int
main(void)
{
    const TTest *const cases[] = {each_done_is_called_once, NULL};

    return outside_run("http-stop", cases);
}
