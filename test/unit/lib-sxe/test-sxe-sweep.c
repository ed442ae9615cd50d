/* SPDX-License-Identifier: MIT
 *
 * Tests sockets while system calls fail (see sweep.h): after each run everything is given back,
 * each connection has ended at most once, and a scenario that did not complete got an error, an
 * on_close or a log line.
 */
#include "sxe-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-time.h"
#include "sweep.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define TURNS 250 /* each of up to a millisecond; all together longer than a listener rests */

/* The outcome of a scenario. */
static struct {
    void (*scenario)(void);
    bool done;
    bool told;     /* the program got an error, by a result or by on_close */
    unsigned open; /* sockets that were connecting or connected, and are not closed */
    int file;
} run;

static struct {
    unsigned number;
    char last[SXE_LOG_LINE_MAX + 1];
} logged;

static void
keep_last(void *user, int level, const char *line, size_t length)
{
    (void)user;
    (void)level;
    logged.number++;
    memcpy(logged.last, line, length);
    logged.last[length] = '\0';
}

static void
log_warnings(void)
{
    unsetenv("SXE_LOG_LEVEL");
    sxe_log_set_level(SXE_LOG_WARNING);
    sxe_log_to_function(keep_last, NULL);
}

static bool
is_good(int result)
{
    run.told |= result < 0;
    return result >= 0;
}

/* ---- Callbacks ---- */

static void
on_accepted(SXE *s)
{
    (void)s;
    run.open++;
}

static void
on_close(SXE *s)
{
    run.told |= sxe_error(s) != 0;
    ck_assert_uint_gt(run.open, 0);
    run.open--;
}

static void
echo(SXE *s, int length)
{
    is_good(sxe_write(s, SXE_BUF(s), (unsigned)SXE_BUF_USED(s)));
    if (length > 0)
        SXE_BUF_CLEAR(s);
}

static void
ask(SXE *s)
{
    is_good(SXE_WRITE_LITERAL(s, "ping"));
}

static void
take_answer(SXE *s, int length)
{
    if (length > 0 && SXE_BUF_USED(s) == 4) {
        run.done = true;
        sxe_close(s);
    }
}

static void
count_sent(SXE *s, int result)
{
    run.done = is_good(result);
    sxe_close_lingering(s);
}

static void
send_both(SXE *s)
{
    is_good(sxe_write(s, "head", 4));
    is_good(sxe_sendfile(s, run.file, 0, 5, NULL));
    is_good(sxe_send(s, "tail", 4, count_sent));
}

/* ---- Scenarios ---- */

static void
turn_until_done(void)
{
    for (unsigned i = 0; i < TURNS && (!run.done || i < 20); i++)
        turn(1);
}

static void
connect_client(SXE *client, unsigned short port)
{
    if (client != NULL && is_good(sxe_connect(client, "127.0.0.1", port)))
        run.open++;
}

static void
tcp_scenario(void)
{
    SXE *server = sxe_new_tcp(NULL, "127.0.0.1", 0, on_accepted, echo, on_close);

    if (is_good(sxe_listen(server)))
        connect_client(sxe_new_tcp(NULL, "127.0.0.1", 0, ask, take_answer, on_close),
                       sxe_local_port(server));
    turn_until_done();
}

static void
oneshot_scenario(void)
{
    SXE *server = sxe_new_tcp(NULL, "127.0.0.1", 0, on_accepted, echo, on_close);

    if (is_good(sxe_listen_oneshot(server)))
        connect_client(sxe_new_tcp(NULL, "127.0.0.1", 0, ask, take_answer, on_close),
                       sxe_local_port(server));
    turn_until_done();
}

/* The path stays the same, so that each run finds a dead socket to replace. */
static const char *
socket_path(void)
{
    static char path[64];

    snprintf(path, sizeof(path), "/tmp/sxe-sweep-%d", (int)getpid());
    return path;
}

static void
unix_scenario(void)
{
    const char *path = socket_path();
    SXE *server;
    SXE *client;

    server = sxe_new_unix(NULL, path, on_accepted, echo, on_close);
    client = sxe_new_unix(NULL, path, ask, take_answer, on_close);
    if (is_good(sxe_listen(server)) && is_good(sxe_connect_unix(client)))
        run.open++;
    turn_until_done();
}

static void
answer_datagram(SXE *s, int length)
{
    socklen_t size;
    const struct sockaddr *to = sxe_peer_address(s, &size);

    is_good(sxe_write_to(s, SXE_BUF(s), (unsigned)length, to, size));
}

static void
udp_scenario(void)
{
    SXE *server = sxe_new_udp(NULL, "127.0.0.1", 0, answer_datagram);
    SXE *client = sxe_new_udp(NULL, "127.0.0.1", 0, take_answer);
    struct sockaddr_storage to;

    if (is_good(sxe_listen(server)) && is_good(sxe_listen(client)) &&
        is_good(sxe__address_parse(&to, "127.0.0.1", sxe_local_port(server))))
        is_good(sxe_write_to(client, "ping", 4, (struct sockaddr *)&to, sxe__address_length(&to)));
    turn_until_done();
}

/* The peer is a plain socket, whose calls do not fail. */
static void
send_scenario(void)
{
    unsigned short port;
    int listener = peer_listen(&port);

    connect_client(sxe_new_tcp(NULL, "", 0, send_both, NULL, on_close), port);
    turn_until_done();
    if (run.open > 0 || run.done) {
        int peer = peer_accept(listener);
        char got[14] = "";
        ssize_t length =
            run.done ? (ssize_t)peer_receive(peer, got, 13) : recv(peer, got, 13, MSG_DONTWAIT);

        ck_assert_int_eq(strncmp(got, "headfile!tail", strlen(got)), 0);
        ck_assert(!run.done || length == 13);
        close(peer);
        turn(5);
    }
    close(listener);
}

static void (*const scenarios[])(void) = {tcp_scenario, oneshot_scenario, unix_scenario,
                                          udp_scenario, send_scenario};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* ---- Faults ---- */

static const struct fault faults[] = {
    {FAKE_SOCKET, {EMFILE, ENFILE, ENOBUFS, ENOMEM}},
    {FAKE_SETSOCKOPT, {ENOBUFS, ENOMEM}},
    {FAKE_BIND, {EADDRINUSE, EACCES}},
    {FAKE_LISTEN, {EADDRINUSE}},
    {FAKE_ACCEPT4, {EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EINTR, EPROTO, EPERM}},
    {FAKE_CONNECT, {ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH, EAGAIN}},
    {FAKE_GETSOCKOPT, {ENOBUFS}},
    {FAKE_GETSOCKNAME, {ENOBUFS}},
    {FAKE_RECV, {EINTR, ECONNRESET, ETIMEDOUT}},
    {FAKE_SEND, {EINTR, ENOBUFS, ENOMEM, EPIPE, ECONNRESET}},
    {FAKE_SENDFILE, {EINTR, ENOMEM, EIO}},
    {FAKE_SHUTDOWN, {ENOTCONN}},
    {FAKE_RECVFROM, {EINTR, EAGAIN, ECONNREFUSED}},
    {FAKE_SENDTO, {EAGAIN, EPERM}},
    {FAKE_CLOSE, {EINTR, EIO}},
    {FAKE_EPOLL_CTL, {ENOMEM, ENOSPC, EEXIST}},
    {FAKE_EPOLL_WAIT, {EINTR, EBADF}},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* Whether a scenario that did not complete must hear of the failure. It need not if each call fails
 * with an error after which the library repeats it, or with an earlier datagram's error. */
static bool
tells(const struct strike *strike)
{
    int error = strike->error;
    bool again = error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM ||
                 strike->call == FAKE_RECVFROM || error == ENOBUFS || error == ENOMEM;

    return !again || !strike->for_ever;
}

/* Whether the scenario must complete: a single failure of a call that is repeated does no harm. */
static bool
must_be_done(const struct strike *strike)
{
    enum fake_call call = strike->call;

    if (call == FAKE_CLOSE || fake_os_injected() == 0)
        return true;
    if (strike->for_ever)
        return false;
    return strike->error == EINTR || call == FAKE_ACCEPT4 || call == FAKE_EPOLL_WAIT ||
           call == FAKE_RECVFROM;
}

static bool
run_once(const struct strike *strike)
{
    static const struct sxe_config small = {.chunk_size = 256, .chunks = 16};
    unsigned before = fake_os_open_fds();
    bool touched;

    run.done = run.told = false;
    run.open = 0;
    sxe_register(6, 0);
    sxe_configure(&small);
    ck_assert_int_eq(sxe_init(), 0);
    turn(1);
    logged.number = 0;
    sweep_arm(strike);
    run.scenario();
    if (must_be_done(strike))
        ck_assert(run.done);
    if (tells(strike))
        ck_assert(run.done || run.told || logged.number > 0);
    touched = sweep_disarm();
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_uint_eq(fake_os_open_fds(), before);
    return touched;
}

START_TEST(every_failing_call_is_survived)
{
    fake_time_start(UINT64_C(1000000000000), 0);
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    log_warnings();
    run.file = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_eq(pwrite(run.file, "file!", 5, 0), 5);
    run.scenario = scenarios[(unsigned)_i % SCENARIOS];
    sweep(&faults[(unsigned)_i / SCENARIOS], run_once);
    close(run.file);
    (void)!remove(socket_path()); /* only one scenario makes this file */
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- Only initialization allocates ---- */

static const enum fake_call start_up[] = {FAKE_MALLOC,        FAKE_CALLOC, FAKE_POSIX_MEMALIGN,
                                          FAKE_ALIGNED_ALLOC, FAKE_MMAP,   FAKE_STRDUP,
                                          FAKE_EPOLL_CREATE1};

START_TEST(f1_start_up_without_memory_fails_and_can_be_repeated)
{
    unsigned before;
    unsigned nth = 0;
    int result;

    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    log_warnings();
    before = fake_os_open_fds();
    sxe_register(6, 100);
    do {
        logged.number = 0;
        fake_os_reset();
        fake_os_sweep(start_up, 7, ++nth, _i == 1, ENOMEM);
        result = sxe_init();
        ck_assert_int_eq(result, fake_os_injected() == 0 ? 0 : -ENOMEM);
        ck_assert((logged.number > 0) == (result < 0));
        if (result < 0)
            ck_assert_ptr_nonnull(strstr(logged.last, "Cannot allocate memory"));
        ck_assert_ptr_eq(sxe_loop(), result < 0 ? NULL : ev_default_loop(EVFLAG_AUTO));
        ck_assert_uint_eq(fake_os_open_fds(), before + (result == 0));
    } while (result < 0);
    ck_assert_uint_gt(nth, 5);
    fake_os_reset();
    run.file = -1;
    tcp_scenario();
    ck_assert(run.done);
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

START_TEST(f1_without_an_epoll_set_of_its_own_libev_polls)
{
    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 1, EMFILE);
    fake_os_fail(FAKE_EPOLL_CREATE, 1, 1, EMFILE);
    sxe_register(6, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_uint_ne(ev_backend(sxe_loop()), EVBACKEND_EPOLL);
    tcp_scenario();
    ck_assert(run.done);
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

START_TEST(f20_more_memory_than_there_is_is_refused)
{
    struct sxe_config config = {.chunk_size = 1u << 30, .chunks = 1u << 20}; /* 2^50 bytes */

    log_warnings();
    sxe_register(1, 0);
    sxe_configure(&config);
    ck_assert_int_eq(sxe_init(), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(logged.last, "Cannot allocate memory"));
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

static Suite *
sweep_suite(void)
{
    Suite *suite = suite_create("sxe sweep");
    TCase *sweeps = tcase_create("sweeps");

    tcase_add_loop_test(sweeps, every_failing_call_is_survived, 0, (int)(FAULTS * SCENARIOS));
    tcase_add_loop_test(sweeps, f1_start_up_without_memory_fails_and_can_be_repeated, 0, 2);
    tcase_add_test(sweeps, f1_without_an_epoll_set_of_its_own_libev_polls);
    tcase_add_test(sweeps, f20_more_memory_than_there_is_is_refused);
    suite_add_tcase(suite, sweeps);
    return suite;
}

int
main(void)
{
    return sxe_test_main(sweep_suite());
}
