/* SPDX-License-Identifier: MIT
 *
 * Handlers that end their connection in every callback, in odd places and more than once. The
 * client is another process; the server counts handlers and calls of on_done.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "outside.h"
#include "sxe-http.h"

static const char *const places[] = {
    "/handler", /* in the handler */
    "/twice",   /* twice, with calls of the reply before, between and after them */
    "/later",   /* in the call of a timer, after LATER */
    "/begun",   /* after the beginning of a reply and a part of its body */
    "/ended",   /* after a long reply that the handler had ended */
    "/room",    /* in on_room */
    "/body",    /* in on_body, before the body's end */
    "/last",    /* in on_body, at the body's end */
    "/other",   /* a handler ends the connection of another request, and then its own */
};

enum { PLACES = sizeof(places) / sizeof(places[0]), LONG = 8 * 1024 * 1024 };

static char long_text[LONG];
static struct sxe_http_response *waiting; /* that of /wait */
static struct sxe_http_response *late;    /* that of /later */
static struct sxe_timer timer;
static unsigned begun, done, good; /* requests with a handler, with an on_done, and with result 0 */

/* ---- The server ---- */

static bool
is_at(const struct sxe_http_request *request, const char *place)
{
    return request->path.length == strlen(place) &&
           memcmp(request->path.base, place, request->path.length) == 0;
}

static void
count_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    SXE_UNUSED_PARAMETER(request);
    done++;
    good += result == 0;
    if (response == waiting)
        waiting = NULL;
    if (result != 0)
        sxe_http_abort(response); /* too late to change anything */
    sxe_http_close(response);
}

static void
abort_late(struct sxe_timer *this)
{
    SXE_UNUSED_PARAMETER(this);
    sxe_http_abort(late);
}

static void
abort_in_body(struct sxe_http_request *request, struct sxe_http_response *response,
              struct sxe_span part, bool last)
{
    SXE_UNUSED_PARAMETER(part);
    if (last == is_at(request, "/last"))
        sxe_http_abort(response);
}

static void
abort_twice(struct sxe_http_response *response)
{
    ck_assert_int_eq(sxe_http_begin(response, 100), 0);
    sxe_http_abort(response);
    ck_assert_int_lt(sxe_http_write(response, "x", 1), 0);
    sxe_http_abort(response);
    sxe_http_close(response);
    ck_assert_int_lt(sxe_http_end(response, "x", 1), 0);
    sxe_http_abort(response);
}

static void
begin_long_reply(struct sxe_http_response *response)
{
    ck_assert_int_eq(sxe_http_begin(response, LONG), 0);
    ck_assert_int_eq(sxe_http_write(response, long_text, 100000), 0);
}

static void
act_at_place(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (is_at(request, "/handler")) {
        sxe_http_abort(response);
    } else if (is_at(request, "/twice")) {
        abort_twice(response);
    } else if (is_at(request, "/later")) {
        late = response;
        sxe_timer_init(&timer, abort_late, 0.001, 0);
        sxe_timer_start(&timer);
    } else if (is_at(request, "/begun")) {
        begin_long_reply(response);
        sxe_http_abort(response);
    } else if (is_at(request, "/ended")) {
        ck_assert_int_eq(sxe_http_end_borrowed(response, long_text, LONG), 0);
        sxe_http_abort(response);
    } else if (is_at(request, "/room")) {
        begin_long_reply(response);
        ck_assert_int_eq(sxe_http_on_room(response, sxe_http_abort), 0);
    } else if (is_at(request, "/other")) {
        ck_assert_ptr_nonnull(waiting);
        sxe_http_abort(waiting);
        sxe_http_abort(response);
    } else if (is_at(request, "/wait")) {
        waiting = response;
    } else {
        sxe_http_read(request, abort_in_body);
    }
}

static enum sxe_http_verdict
act(struct sxe_http_request *request, struct sxe_http_response *response)
{
    begun++;
    response->on_done = count_done;
    if (is_at(request, "/good"))
        return sxe_http_reply_text(response, 200, "good");
    if (is_at(request, "/end")) {
        sxe_stop();
        return sxe_http_reply_text(response, 200, "end");
    }
    act_at_place(request, response);
    return SXE_HTTP_LATER;
}

/* ---- The client, in another process ---- */

static unsigned short port;

static int
dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_port = htons(port);
    return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* Send a request with half of its body, or all of it. */
static void
send_request(int fd, const char *place)
{
    const bool has_body = strcmp(place, "/body") == 0 || strcmp(place, "/last") == 0;
    char text[200];
    int length = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n%s",
                          has_body ? "POST" : "GET", place, has_body ? "Content-Length: 8\r\n" : "",
                          !has_body                     ? ""
                          : strcmp(place, "/body") == 0 ? "half"
                                                        : "all text");

    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
        _exit(100);
}

/* Whether the server resets the connection; the bytes before the reset are added to *bytes. */
static bool
is_reset(int fd, size_t *bytes)
{
    static char text[65536];
    ssize_t n;

    while ((n = recv(fd, text, sizeof(text), 0)) > 0)
        *bytes += (size_t)n;
    return n < 0 && errno == ECONNRESET;
}

static bool
is_served(const char *place, const char *end)
{
    char text[1000] = "";
    size_t used = 0;
    ssize_t n = 1;
    int fd = dial();

    send_request(fd, place);
    while (strstr(text, end) == NULL && n > 0 && used < sizeof(text) - 1) {
        n = recv(fd, text + used, sizeof(text) - 1 - used, 0);
        used += n > 0 ? (size_t)n : 0;
        text[used] = '\0';
    }
    close(fd);
    return strstr(text, "\r\n\r\n") != NULL && strstr(text, end) != NULL;
}

/* Whether the client gets a reset and no whole reply, and the next client is served. */
static bool
is_ended_well(const char *place)
{
    const bool has_other = strcmp(place, "/other") == 0;
    int other = has_other ? dial() : -1;
    int fd = dial();
    size_t bytes = 0;
    bool is_good;

    if (has_other)
        send_request(other, "/wait");
    is_good = is_served("/good", "good"); /* now the server has the request /wait */
    send_request(fd, place);
    is_good &= is_reset(fd, &bytes) && bytes < LONG && (!has_other || is_reset(other, &bytes));
    close(fd);
    close(other);
    return is_good;
}

/* Tell the number of the first place at which something went wrong, or 0. */
static void
visit_places(int tell)
{
    unsigned char wrong = 0;

    for (unsigned char i = 0; i < PLACES && wrong == 0; i++)
        wrong = is_ended_well(places[i]) ? 0 : i + 1;
    _exit(is_served("/end", "end") && write(tell, &wrong, 1) == 1 ? 0 : 1);
}

/* promise: docs/http.md: `sxe_http_close` closes the connection after the reply; `sxe_http_abort`
 * resets it, and sends no reply. */
START_TEST(a_connection_is_ended_in_every_callback)
{
    struct sxe_http_config config = {.handler = act, .stream = true};
    struct sxe_http *http = sxe_http_new(&config);
    unsigned char wrong = 255;
    int ends[2];

    ck_assert_ptr_nonnull(http);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen(http, "127.0.0.1", 0), 0);
    port = sxe_http_port(http);
    ck_assert_int_eq(pipe(ends), 0);
    if (fork() == 0)
        visit_places(ends[1]);
    close(ends[1]);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(read(ends[0], &wrong, 1), 1);
    close(ends[0]);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(begun, 2 * PLACES + 2); /* /good before each place, /wait and /end */
    ck_assert_uint_eq(good, PLACES + 1);
    ck_assert_uint_eq(done, begun);
    ck_assert_ptr_null(waiting);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(http);
}
END_TEST

int
main(void)
{
    const TTest *const cases[] = {a_connection_is_ended_in_every_callback, NULL};

    return outside_run("http-abort", cases);
}
