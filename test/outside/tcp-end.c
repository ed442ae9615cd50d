/* SPDX-License-Identifier: MIT
 *
 * The peer's end: what came before it is shown, and what was written is sent.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "outside.h"
#include "sxe.h"

enum { LINES = 5000, LONG = 3000000 };

static unsigned shown;
static unsigned ends;
static unsigned closes;
static int error;
static size_t dropped;

/* Take a line, and ask for the next one. */
static void
take_a_line(SXE *this, int length)
{
    const char *end = memchr(SXE_BUF(this), '\n', (size_t)SXE_BUF_USED(this));

    if (length == 0) {
        ends++;
        sxe_close(this);
    }
    if (end == NULL)
        return;
    shown++;
    sxe_consume(this, (unsigned)(end + 1 - SXE_BUF(this)));
    sxe_resume(this, SXE_RESUME_IMMEDIATE);
}

static void
take_nothing(SXE *this, int length)
{
    if (length == 0) {
        ends++;
        sxe_close(this);
    }
    sxe_resume(this, SXE_RESUME_IMMEDIATE);
}

static void
ask_for_nothing(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(this);
    SXE_UNUSED_PARAMETER(length);
}

/* Leave the first line unread, then answer it by many bytes in the next call. */
static void
answer_much(SXE *this, int length)
{
    static char bytes[LONG];

    SXE_UNUSED_PARAMETER(length);
    if (shown++ > 0) {
        SXE_BUF_CLEAR(this);
        ck_assert_int_eq(sxe_write(this, bytes, sizeof(bytes)), 0);
    }
    sxe_resume(this, SXE_RESUME_IMMEDIATE);
}

static void
stop(SXE *this)
{
    closes++;
    error = sxe_error(this);
    dropped = sxe_dropped(this);
    sxe_stop();
}

static void
want_half_close(SXE *this)
{
    sxe_set_half_close(this, true);
}

/* A plain client's connection to a listener with this on_read. */
static int
connect_to(SXE_IN_EVENT_READ read, SXE_IN_EVENT_CONNECTED connected, bool is_unix)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    const char *file = outside_path("listener");
    SXE *listener;
    int fd;

    shown = ends = closes = 0;
    config.output_max = 2 * LONG;
    config.chunks = 1000;
    sxe_configure(&config);
    sxe_register(2, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = is_unix ? sxe_new_unix(NULL, file, connected, read, stop)
                       : sxe_new_tcp(NULL, "127.0.0.1", 0, connected, read, stop);
    ck_assert_int_eq(sxe_listen(listener), 0);
    tcp.sin_port = htons(is_unix ? 0 : sxe_local_port(listener));
    memcpy(path.sun_path, file, strlen(file) + 1);
    fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, is_unix ? (struct sockaddr *)&path : (struct sockaddr *)&tcp,
                             is_unix ? sizeof(path) : sizeof(tcp)),
                     0);
    unlink(file);
    return fd;
}

/* Send this many lines and the end of the output, and run the loop until the server has closed. */
static void
send_lines(int fd, unsigned lines)
{
    static char text[5 * LINES];

    for (unsigned i = 0; i < lines; i++)
        memcpy(text + 5 * i, "line\n", 5);
    ck_assert_int_eq(send(fd, text, 5 * lines, MSG_NOSIGNAL), (ssize_t)(5 * lines));
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    ck_assert_int_eq(sxe_run(), 0);
}

static void
end(int fd)
{
    close(fd);
    ck_assert_int_eq(sxe_fini(), 0);
}

/* promise: docs/sxe.md: If the peer has ended, the unread bytes are shown as long as you ask for
 * them and each call consumes some of them. */
START_TEST(all_lines_before_the_end_are_shown)
{
    for (unsigned i = 0; i < 4; i++) {
        int fd = connect_to(take_a_line, i & 1 ? want_half_close : NULL, i & 2);

        send_lines(fd, LINES);
        ck_assert_uint_eq(shown, LINES);
        ck_assert_uint_eq(ends, i & 1);
        ck_assert_int_eq(error, 0);
        end(fd);
    }
}
END_TEST

/* promise: docs/sxe.md: Then the socket closes, or `on_read` is told of the half-close. */
START_TEST(bytes_that_nobody_takes_keep_no_socket_open)
{
    const SXE_IN_EVENT_READ reads[] = {ask_for_nothing, take_nothing, take_nothing};

    for (unsigned i = 0; i < 3; i++) {
        int fd = connect_to(reads[i], i == 2 ? want_half_close : NULL, false);

        send_lines(fd, 1);
        ck_assert_uint_eq(ends, i == 2);
        ck_assert_int_eq(error, 0);
        end(fd);
    }
}
END_TEST

/* promise: docs/sxe.md: When the peer closes or half-closes, the socket closes as by `sxe_close`,
 * so that the written bytes are sent. */
START_TEST(a_peer_that_half_closed_gets_the_whole_answer)
{
    static char bytes[65536];

    for (unsigned i = 0; i < 2; i++) {
        int fd = connect_to(answer_much, NULL, i == 1);
        size_t got = 0;

        ck_assert_int_eq(send(fd, "line\n", 5, MSG_NOSIGNAL), 5);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        while (got < LONG) {
            ssize_t n;

            ev_run(sxe_loop(), EVRUN_NOWAIT);
            n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
            ck_assert_int_ne(n, 0);
            got += n > 0 ? (size_t)n : 0;
        }
        while (closes == 0)
            ev_run(sxe_loop(), EVRUN_NOWAIT);
        ck_assert_int_eq(recv(fd, bytes, sizeof(bytes), 0), 0);
        ck_assert_int_eq(error, 0);
        ck_assert_uint_eq(dropped, 0);
        end(fd);
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {all_lines_before_the_end_are_shown,
                            bytes_that_nobody_takes_keep_no_socket_open,
                            a_peer_that_half_closed_gets_the_whole_answer, NULL};

    return outside_run("tcp-end", cases);
}
