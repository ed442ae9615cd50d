/* SPDX-License-Identifier: MIT
 *
 * A server that answers FastCGI while system calls fail (sweep.h): requests are answered or their
 * connection ends, nothing is left over, and serving allocates nothing.
 */
#include "fastcgi-site.h"

#include <errno.h>

#include "sweep.h"

#define CLIENTS 3

int __real_close(int fd);
int __real_socket(int family, int type, int protocol);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);

static struct {
    int peers[CLIENTS];
    size_t bytes;
} run;

static struct records requests[CLIENTS];

static void
compose_requests(void)
{
    static char part[30000];

    memset(part, 'x', sizeof(part));
    for (unsigned i = 0; i < CLIENTS; i++)
        requests[i].length = 0;
    add_request(&requests[0], 1, true, GET_PARAMS("/a"));
    add_record(&requests[0], SXE_HTTP_FASTCGI_STDIN, 1, "", 0);
    add_record(&requests[0], SXE_HTTP_FASTCGI_GET_VALUES, 0, "\16\0FCGI_MAX_CONNS", 16);
    add_record(&requests[0], 99, 0, "", 0);
    add_request(&requests[1], 1, true, POST_PARAMS("60000"));
    add_request(&requests[1], 2, true, GET_PARAMS("/b") "|HTTP_X=\r");
    add_record(&requests[1], SXE_HTTP_FASTCGI_STDIN, 1, part, sizeof(part));
    add_record(&requests[1], SXE_HTTP_FASTCGI_STDIN, 1, part, sizeof(part));
    add_request(&requests[2], 3, true, PARAMS("PUT", "/c"));
    add_record(&requests[2], SXE_HTTP_FASTCGI_STDIN, 3, part, sizeof(part));
    add_record(&requests[2], SXE_HTTP_FASTCGI_STDIN, 3, "", 0);
    add_request(&requests[2], 4, true, POST_PARAMS("5"));
    add_record(&requests[2], SXE_HTTP_FASTCGI_STDIN, 4, "123456", 6);
    add_request(&requests[2], 5, false, GET_PARAMS("/d"));
    add_record(&requests[2], SXE_HTTP_FASTCGI_ABORT_REQUEST, 5, "", 0);
}

static void
connect_peer(unsigned i)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(sxe_http_fastcgi_port(site.http)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;

    run.peers[i] = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    __real_setsockopt(run.peers[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)!__real_connect(run.peers[i], (struct sockaddr *)&to, sizeof(to));
}

static void
scenario(void)
{
    static char got[65536];

    for (unsigned i = 0; i < CLIENTS; i++) {
        connect_peer(i);
        (void)!__real_send(run.peers[i], requests[i].bytes, requests[i].length,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    for (unsigned turns = 0; turns < 40; turns++) {
        turn(1);
        for (unsigned i = 0; i < CLIENTS; i++) {
            ssize_t n = __real_recv(run.peers[i], got, sizeof(got), MSG_DONTWAIT);

            run.bytes += n > 0 ? (size_t)n : 0;
        }
    }
}

static void
start_site(void)
{
    static const struct sxe_http_config config = {.handler = echo, .connections = 8};

    memset(&run, 0, sizeof(run));
    site.http = sxe_http_new(&config);
    ck_assert_ptr_nonnull(site.http);
    ck_assert_int_eq(sxe_http_fastcgi_new(site.http, 0), 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_fastcgi_listen(site.http, "127.0.0.1", 0), 0);
    turn(1);
}

static bool
is_all_free(void)
{
    return fastcgi_in(SXE__FASTCGI_FREE) == 8 && requests_in(SXE__FASTCGI_REQUEST_FREE) == 8 &&
           is_at_rest();
}

static void
stop_site(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        __real_close(run.peers[i]);
    for (unsigned i = 0; i < WAIT_TURNS && !is_all_free(); i++)
        turn(1);
    ck_assert(is_all_free());
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(site.http);
}

static bool
run_once(const struct strike *strike)
{
    const unsigned before = fake_os_open_fds();
    bool touched;

    start_site();
    sweep_arm(strike);
    scenario();
    touched = sweep_disarm();
    stop_site();
    ck_assert_uint_eq(fake_os_open_fds(), before);
    return touched;
}

static const struct fault faults[] = {
    {FAKE_SOCKETPAIR, {EMFILE}},      {FAKE_RECV, {EINTR, ECONNRESET}}, {FAKE_SEND, {EINTR, EPIPE}},
    {FAKE_SENDMSG, {ENOBUFS}},        {FAKE_EPOLL_CTL, {ENOMEM}},       {FAKE_CLOSE, {EIO}},
    {FAKE_ACCEPT4, {EMFILE, EAGAIN}},
};

static void
begin_time(void)
{
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    sxe_log_set_level(SXE_LOG_FATAL);
    compose_requests();
}

START_TEST(every_failing_call_is_survived)
{
    begin_time();
    sweep(&faults[_i], run_once);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

START_TEST(serving_allocates_nothing)
{
    begin_time();
    start_site();
    fake_os_reset();
    forbid_allocations();
    scenario();
    ck_assert_uint_eq(fake_os_violations(), 0);
    ck_assert_uint_gt(run.bytes, 60000);
    fake_os_reset();
    stop_site();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fastcgi-faults");
    TCase *cases = tcase_create("faults");

    tcase_add_loop_test(cases, every_failing_call_is_survived, 0, SXE_COUNT(faults));
    tcase_add_test(cases, serving_allocates_nothing);
    suite_add_tcase(suite, cases);
    return sxe_test_main(suite);
}
