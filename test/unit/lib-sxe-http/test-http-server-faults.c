/* SPDX-License-Identifier: MIT
 *
 * The server while system calls fail (sweep.h): each request ends exactly once, a client gets
 * complete replies or a closed connection, and nothing is left over. And only sxe_http_new
 * allocates.
 */
#include "http-site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sweep.h"
#include "sxe-cidr.h"

#define CLIENTS  5
#define REQUESTS 11 /* requests that are not malformed */
#define TURNS    60

int __real_close(int fd);
int __real_socket(int family, int type, int protocol);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);

/* ---- Handlers that reply in different ways ---- */

static char lent[100000];
static int file;
static struct sxe_cidr_list proxies;

static struct {
    unsigned begun;
    unsigned done;
    unsigned good;     /* requests that ended with result 0 */
    unsigned answered; /* complete replies that clients received */
} run;

static void
count_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    (void)request;
    (void)response;
    run.done++;
    run.good += result == 0;
}

static void
reply_when_read(struct sxe_http_request *request, struct sxe_http_response *response,
                struct sxe_span part, bool last)
{
    (void)request;
    (void)part;
    if (last)
        sxe_http_reply_text(response, 200, "read");
}

static enum sxe_http_verdict
answer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char what = sxe_http_target(request).base[1];

    response->on_done = count_done;
    run.begun++;
    switch (what) {
    case 'l':
        if (sxe_http_end_borrowed(response, lent, sizeof(lent)) < 0)
            sxe_http_abort(response);
        break;
    case 'f':
        if (sxe_http_end_file(response, file, 0, 50000) < 0)
            sxe_http_abort(response);
        break;
    case 'r':
        sxe_http_read(request, reply_when_read);
        break;
    default:
        sxe_http_reply_text(response, 200, "ok");
    }
    return SXE_HTTP_LATER;
}

/* ---- Clients whose own calls do not fail ---- */

#define STREAMED(fields, body) "POST /r HTTP/1.1\r\nHost: h\r\n" fields "\r\n" body

static const char *const texts[CLIENTS][3] = {
    {"PROXY UNKNOWN\r\n" GET("/a") GET("/b"), GET("/c"), NULL},
    {"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" GET("/l") GET("/a"), GET("/f"), NULL},
    {"PROXY UNKNOWN\r\n" STREAMED("Content-Length: 4\r\nExpect: 100-continue\r\n", ""), "body",
     GET("/a")},
    {"PROXY UNKNOWN\r\n" STREAMED("Transfer-Encoding: chunked\r\n", "2\r\nab\r\n"),
     "0\r\n\r\n" GET("/f"), NULL},
    {"PROXY UNKNOWN\r\n" GET("/a"), "GET / HTTP/9.9\r\n\r\n", NULL},
};

static int peers[CLIENTS];

static void
connect_one(unsigned i)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(sxe_http_port(site.http)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    peers[i] = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)!__real_connect(peers[i], (struct sockaddr *)&to, sizeof(to));
}

/* Count the replies by their "HTTP/1.1 200". One that is cut in two by recv is missed, which is
 * rare. */
static void
receive_all(void)
{
    static char got[65536];

    for (unsigned i = 0; i < CLIENTS; i++) {
        ssize_t n = __real_recv(peers[i], got, sizeof(got) - 1, MSG_DONTWAIT);

        if (n <= 0)
            continue;
        for (const char *at = got; (at = memmem(at, (size_t)(got + n - at), "HTTP/1.1 200", 12));
             at++)
            run.answered++;
    }
}

static void
turn_both(unsigned times)
{
    while (times-- > 0) {
        turn(1);
        receive_all();
    }
}

static void
scenario(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        connect_one(i);
    turn_both(5);
    for (unsigned step = 0; step < 3; step++) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            const char *text = texts[i][step];

            if (text != NULL)
                __real_send(peers[i], text, strlen(text), MSG_NOSIGNAL);
        }
        turn_both(TURNS / 3);
    }
    turn_both(TURNS);
}

/* ---- Runs ---- */

static void
start(void)
{
    static const struct sxe_config small = {.chunk_size = 512, .chunks = 300};
    struct sxe_http_config config = {.handler = answer,
                                     .stream = true,
                                     .connections = 20,
                                     .head = {.line_max = 256, .head_max = 512},
                                     .proxies = &proxies,
                                     .head_timeout_ms = 1000,
                                     .idle_timeout_ms = 1000,
                                     .body_timeout_ms = 1000};

    memset(&run, 0, sizeof(run));
    sxe_configure(&small);
    site.http = sxe_http_new(&config);
    ck_assert_ptr_nonnull(site.http);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    turn(1);
}

static void
expect_all_at_rest(void)
{
    expect_rest();
    ck_assert_uint_eq(run.done, run.begun);
    for (uint64_t key = 1; key < 1000; key++)
        ck_assert_uint_eq(sxe__http_clients_add(site.http->clients, 1), key);
    ck_assert_uint_eq(sxe__http_clients_add(site.http->clients, UINT64_C(0xffffc0000201)), 1);
}

static void
finish(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        __real_close(peers[i]);
    turn(3);
    expect_all_at_rest();
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(site.http);
}

static void
prepare(void)
{
    struct sxe_span wrong;

    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    sxe_log_set_level(SXE_LOG_FATAL);
    proxies = (struct sxe_cidr_list){0};
    ck_assert_int_eq(sxe_cidr_add(&proxies, "127.0.0.1", &wrong), 0);
    file = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(file, 50000), 0);
}

static const struct fault faults[] = {
    {FAKE_ACCEPT4, {EMFILE, ENOBUFS, ECONNABORTED, EINTR}},
    {FAKE_RECV, {EINTR, ECONNRESET, ETIMEDOUT}},
    {FAKE_SEND, {EINTR, EAGAIN, ENOBUFS, EPIPE, ECONNRESET}},
    {FAKE_SENDMSG, {EINTR, ENOBUFS, EPIPE, ECONNRESET}},
    {FAKE_SENDFILE, {EINTR, ENOMEM, EIO}},
    {FAKE_SHUTDOWN, {ENOTCONN}},
    {FAKE_SETSOCKOPT, {ENOBUFS}},
    {FAKE_GETPEERNAME, {ENOTCONN}},
    {FAKE_CLOSE, {EINTR, EIO}},
    {FAKE_EPOLL_CTL, {ENOMEM, ENOSPC}},
    {FAKE_EPOLL_WAIT, {EINTR}},
    {FAKE_MADVISE, {EINVAL}},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static bool
run_once(const struct strike *strike)
{
    unsigned before = fake_os_open_fds();
    bool touched;

    start();
    sweep_arm(strike);
    scenario();
    touched = sweep_disarm();
    if (!touched) {
        ck_assert_uint_eq(run.good, REQUESTS);
        ck_assert_uint_eq(run.answered, REQUESTS);
    }
    finish();
    ck_assert_uint_eq(fake_os_open_fds(), before);
    return touched;
}

START_TEST(every_failing_call_is_survived)
{
    prepare();
    sweep(&faults[_i], run_once);
    close(file);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- Memory ---- */

START_TEST(requests_allocate_nothing)
{
    prepare();
    start();
    forbid_allocations();
    for (unsigned i = 0; i < 20; i++) {
        memset(&run, 0, sizeof(run));
        scenario();
        ck_assert_uint_eq(run.good, REQUESTS);
        for (unsigned j = 0; j < CLIENTS; j++) {
            __real_close(peers[j]);
            peers[j] = -1;
        }
        turn(5);
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    fake_os_reset();
    finish();
    close(file);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

static Suite *
faults_suite(void)
{
    Suite *suite = suite_create("http server faults");
    TCase *faulty = tcase_create("faults");

    tcase_add_loop_test(faulty, every_failing_call_is_survived, 0, FAULTS);
    tcase_add_test(faulty, requests_allocate_nothing);
    suite_add_tcase(suite, faulty);
    return suite;
}

int
main(void)
{
    return sxe_test_main(faults_suite());
}
