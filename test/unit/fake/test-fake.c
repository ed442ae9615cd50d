/* SPDX-License-Identifier: MIT
 *
 * Tests the fakes themselves: with a fake that does not do as it says, no other test means
 * anything.
 */
#include "event-queue.h"
#include "fake-os.h"
#include "fake-time.h"
#include "test-main.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- Faults ---- */

/* The errno of dup(-1), which cannot succeed: EBADF when the real function was called. */
static int
dup_error(void)
{
    errno = 0;
    return dup(-1) < 0 ? errno : 0;
}

START_TEST(off_calls_go_straight_through)
{
    char text[8];
    int fds[2];
    struct stat status;

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_ne(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(read(fds[0], text, sizeof(text)), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(write(fds[1], "hello", 5), 5);
    ck_assert_int_eq(read(fds[0], text, sizeof(text)), 5);
    ck_assert_mem_eq(text, "hello", 5);
    ck_assert_int_eq(close(fds[0]), 0);
    ck_assert_int_eq(close(fds[1]), 0);
    ck_assert_int_eq(syscall(SYS_getpid), getpid());

    char path[] = "/tmp/test-fake-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    int fd = open(path, O_CREAT | O_RDWR, 0640);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0640);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(fake_os_injected(), 0);
}
END_TEST

static const struct {
    unsigned nth;
    unsigned times;
    const char
        /* Of calls to dup(-1): x is one that failed with EMFILE, . one that was made: EBADF. */
        *pattern;
} patterns[] = {{0, 0, "......"}, {0, 1, "......"}, {1, 1, "x....."}, {3, 2, "..xx.."},
                {3, 0, "..xxxx"}, {6, 9, ".....x"}, {1, 0, "xxxxxx"}};

START_TEST(chosen_calls_fail_with_the_chosen_error)
{
    unsigned expected = 0;

    fake_os_fail(FAKE_DUP, patterns[_i].nth, patterns[_i].times, EMFILE);
    for (const char *p = patterns[_i].pattern; *p != '\0'; p++) {
        ck_assert_int_eq(dup_error(), *p == 'x' ? EMFILE : EBADF);
        expected += *p == 'x';
    }
    ck_assert_uint_eq(fake_os_injected(), expected);
    ck_assert_uint_eq(fake_os_calls(FAKE_DUP), 6);
    ck_assert_uint_eq(fake_os_calls(FAKE_DUP2), 0);
    fake_os_reset();
    ck_assert_int_eq(dup_error(), EBADF);
    ck_assert_uint_eq(fake_os_injected(), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_DUP), 1);
}
END_TEST

static void *
nothing(void *user)
{
    return user;
}

START_TEST(calls_fail_in_their_own_way)
{
    static const enum fake_call kinds[] = {
        FAKE_MALLOC,         FAKE_CALLOC, FAKE_REALLOC,        FAKE_STRDUP, FAKE_ALIGNED_ALLOC,
        FAKE_POSIX_MEMALIGN, FAKE_MMAP,   FAKE_PTHREAD_CREATE, FAKE_FOPEN,  FAKE_CLOCK_NANOSLEEP,
    };
    void *memory = &memory;
    pthread_t thread;
    char *volatile block = malloc(8);
    struct timespec no_time = {0};

    fake_os_sweep(kinds, sizeof(kinds) / sizeof(*kinds), 1, true, EPERM);
    ck_assert_ptr_null(malloc(8));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(calloc(8, 8));
    ck_assert_ptr_null(realloc(block, 16));
    ck_assert_ptr_null(strdup("text"));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(aligned_alloc(16, 16));
    errno = 0;
    ck_assert_int_eq(posix_memalign(&memory, 64, 64), ENOMEM);
    ck_assert_int_eq(errno, 0);
    ck_assert_ptr_eq(memory, &memory);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), EPERM);
    ck_assert_int_eq(clock_nanosleep(CLOCK_MONOTONIC, 0, &no_time, NULL), EPERM);
    ck_assert_ptr_null(fopen("/dev/null", "r"));
    ck_assert_uint_eq(fake_os_injected(), 10);
    free(block);
}
END_TEST

START_TEST(failing_close_closes)
{
    unsigned before = fake_os_open_fds();
    int fd = dup(STDERR_FILENO);

    ck_assert_uint_eq(fake_os_open_fds(), before + 1);
    fake_os_fail(FAKE_CLOSE, 1, 1, EIO);
    ck_assert_int_eq(close(fd), -1);
    ck_assert_int_eq(errno, EIO);
    ck_assert_uint_eq(fake_os_open_fds(), before);
}
END_TEST

START_TEST(sweep_numbers_several_kinds_together)
{
    static const enum fake_call kinds[] = {FAKE_DUP, FAKE_DUP2};

    for (unsigned nth = 1; nth <= 5; nth++) {
        fake_os_reset();
        fake_os_sweep(kinds, 2, nth, false, EMFILE);
        for (unsigned i = 1; i <= 4; i++) {
            int result = i % 2 ? dup(-1) : dup2(-1, 9);
            ck_assert_int_eq(result, -1);
            ck_assert_int_eq(errno, i == nth ? EMFILE : EBADF);
            ck_assert_int_eq(listen(-1, 1), -1);
            ck_assert_int_eq(errno, EBADF);
        }
        ck_assert_uint_eq(fake_os_injected(), nth <= 4);
    }
    fake_os_sweep(kinds, 2, 2, true, EMFILE);
    ck_assert_int_eq(dup_error(), EBADF);
    dup2(-1, 9);
    ck_assert_int_eq(errno, EMFILE);
    ck_assert_int_eq(dup_error(), EMFILE);
    fake_os_sweep(kinds, 0, 1, true, EMFILE);
    ck_assert_int_eq(dup_error(), EBADF);
}
END_TEST

START_TEST(checking_neither_counts_nor_fails)
{
    fake_os_fail(FAKE_MALLOC, 1, 0, ENOMEM);
    fake_os_fail(FAKE_WRITE, 1, 0, EIO);
    errno = EXDEV;
    for (unsigned i = 0; i < 100; i++)
        ck_assert_msg(i < 100, "%u", i);
    ck_assert_int_eq(errno, EXDEV);
    ck_assert_uint_eq(fake_os_calls(FAKE_MALLOC), 0);
    ck_assert_uint_eq(fake_os_injected(), 0);
}
END_TEST

/* Faults that a case leaves on must not hide how it ended; this case is expected to fail. */
START_TEST(faults_left_on_do_no_harm_at_exit)
{
    fake_os_fail(FAKE_MALLOC, 1, 0, ENOMEM);
    fake_os_fail(FAKE_OPEN, 1, 0, EMFILE);
    fake_os_fail(FAKE_CLOCK_GETTIME, 5, 0, EINVAL);
    exit(7);
}
END_TEST

START_TEST(forbidden_calls_are_made_and_counted)
{
    ck_assert(!fake_os_forbid(FAKE_DUP, true));
    ck_assert_int_eq(dup_error(), EBADF);
    dup_error();
    ck_assert_uint_eq(fake_os_violations(), 2);
    ck_assert(fake_os_forbid(FAKE_DUP, false));
    dup_error();
    ck_assert_uint_eq(fake_os_violations(), 2);
    ck_assert_str_eq(fake_os_name(FAKE_DUP), "dup");
    ck_assert_str_eq(fake_os_name(FAKE_SYSCALL), "syscall");
}
END_TEST

static void *
dup_often(void *user)
{
    for (unsigned i = 0; i < 5000; i++)
        dup_error();
    return user;
}

START_TEST(threads_share_one_count)
{
    pthread_t threads[4];

    fake_os_fail(FAKE_DUP, 101, 700, EMFILE);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, dup_often, NULL), 0);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_DUP), 20000);
    ck_assert_uint_eq(fake_os_injected(), 700);
}
END_TEST

/* ---- Limits ---- */

enum way { READ, RECV, RECVFROM, RECVMSG, READV, RECEIVING };

static ssize_t
receive(enum way way, int fd, char *data, size_t length)
{
    struct iovec parts[2] = {{data, 2}, {data + 2, length - 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    switch (way) {
    case READ:
        return read(fd, data, length);
    case RECV:
        return recv(fd, data, length, 0);
    case RECVFROM:
        return recvfrom(fd, data, length, 0, NULL, NULL);
    case RECVMSG:
        return recvmsg(fd, &message, 0);
    case READV:
    case RECEIVING:
        return readv(fd, parts, 2);
    }
    return -1;
}

static ssize_t
transmit(enum way way, int fd, char *data, size_t length)
{
    struct iovec parts[3] = {{data, 2}, {data + 2, 0}, {data + 2, length - 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};

    switch (way) {
    case READ:
        return write(fd, data, length);
    case RECV:
        return send(fd, data, length, 0);
    case RECVFROM:
        return sendto(fd, data, length, 0, NULL, 0);
    case RECVMSG:
        return sendmsg(fd, &message, 0);
    case READV:
    case RECEIVING:
        return writev(fd, parts, 3);
    }
    return -1;
}

static const enum fake_call receiving[] = {FAKE_READ, FAKE_RECV, FAKE_RECVFROM, FAKE_RECVMSG,
                                           FAKE_READV};
static const enum fake_call transmitting[] = {FAKE_WRITE, FAKE_SEND, FAKE_SENDTO, FAKE_SENDMSG,
                                              FAKE_WRITEV};

START_TEST(limited_calls_move_that_many_bytes)
{
    char text[] = "0123456789";
    char got[16] = "";
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (size_t limit = 0; limit <= 10; limit++) {
        ssize_t expected = limit == 0 ? 10 : (ssize_t)limit;

        fake_os_limit(transmitting[_i], limit);
        ck_assert_int_eq(transmit(_i, fds[0], text, 10), expected);
        memset(got, '-', sizeof(got));
        ck_assert_int_eq(receive(_i, fds[1], got, 10), expected);
        ck_assert_mem_eq(got, text, (size_t)expected);
        ck_assert_int_eq(got[expected], '-');

        fake_os_limit(transmitting[_i], 0);
        ck_assert_int_eq(transmit(_i, fds[0], text, 10), 10);
        fake_os_limit(receiving[_i], limit);
        ck_assert_int_eq(receive(_i, fds[1], got, 10), expected);
        fake_os_limit(receiving[_i], 0);
        if (expected < 10)
            ck_assert_int_eq(receive(_i, fds[1], got, 10), 10 - expected);
    }
    fake_os_fail(transmitting[_i], 1, 1, EPIPE);
    fake_os_fail(receiving[_i], 1, 1, ECONNRESET);
    ck_assert_int_eq(transmit(_i, fds[0], text, 10), -1);
    ck_assert_int_eq(errno, EPIPE);
    ck_assert_int_eq(receive(_i, fds[1], got, 10), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* ---- Clocks ---- */

static const uint64_t day_ns = UINT64_C(86400000000000);
static const uint64_t second_ns = UINT64_C(1000000000);

static uint64_t
clock_ns(clockid_t id)
{
    struct timespec now;

    ck_assert_int_eq(clock_gettime(id, &now), 0);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

START_TEST(virtual_clocks_move_only_when_told)
{
    struct timeval now;
    struct timespec pause = {2, 5};

    fake_time_start(7, 3 * second_ns + 1999);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), 7);
    ck_assert_uint_eq(clock_ns(CLOCK_BOOTTIME), 7);
    ck_assert_uint_eq(clock_ns(CLOCK_REALTIME), 3 * second_ns + 1999);
    ck_assert_int_eq(gettimeofday(&now, NULL), 0);
    ck_assert_int_eq(now.tv_sec, 3);
    ck_assert_int_eq(now.tv_usec, 1);
    ck_assert_int_eq(time(NULL), 3);

    fake_time_advance(second_ns);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC_COARSE), 7 + second_ns);
    ck_assert_int_eq(time(NULL), 4);
    fake_time_step_wall(-2 * (int64_t)second_ns);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), 7 + second_ns);
    ck_assert_int_eq(time(NULL), 2);

    ck_assert_int_eq(nanosleep(&pause, NULL), 0);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), 3 * second_ns + 12);
    ck_assert_int_eq(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &pause, NULL), 0);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), 3 * second_ns + 12);
    pause.tv_sec = 10;
    ck_assert_int_eq(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &pause, NULL), 0);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), 10 * second_ns + 5);

    fake_os_fail(FAKE_CLOCK_GETTIME, 1, 1, EINVAL);
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &pause), -1);
    fake_time_stop();
    ck_assert_int_gt(time(NULL), 1000000);
    ck_assert_uint_ne(clock_ns(CLOCK_MONOTONIC), 10 * second_ns + 5);
}
END_TEST

static void
on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    event_push("timer", timer, (long)(ev_now(loop) - *(double *)timer->data));
}

static void
on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    char text[16];

    (void)loop;
    (void)events;
    ssize_t length = read(io->fd, text, sizeof(text));
    event_push_data("readable", io, length, text, (size_t)length);
}

static uint64_t
real_ns(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

START_TEST(hour_long_timers_fire_in_order_and_at_once)
{
    static const double after[] = {7200, 0.5, 3600, 86400 * 30.0};
    ev_timer timers[4];
    uint64_t began = real_ns();

    fake_time_start(day_ns, 20000 * day_ns);
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    ck_assert_ptr_nonnull(loop);
    double start = ev_now(loop);
    ck_assert_double_eq_tol(start, 20000 * 86400.0, 1);
    for (unsigned i = 0; i < 4; i++) {
        ev_timer_init(&timers[i], on_timer, after[i], 0);
        timers[i].data = &start;
        ev_timer_start(loop, &timers[i]);
    }
    ev_run(loop, 0);
    ck_assert_uint_eq(event_count(), 4);
    ck_assert_int_eq(event_pop()->number, 0);
    ck_assert_int_eq(event_pop()->number, 3600);
    ck_assert_int_eq(event_pop()->number, 7200);
    ck_assert_ptr_eq(event_pop()->object, &timers[3]);
    ck_assert_str_eq(event_pop()->name, "nothing");
    ev_loop_destroy(loop);
    ck_assert_uint_lt(real_ns() - began, 30 * second_ns);
}
END_TEST

START_TEST(polling_turns_reach_a_timer_too)
{
    ev_timer timer;
    unsigned turns = 0;

    fake_time_start(day_ns, 20000 * day_ns);
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    double start = ev_now(loop);
    ev_timer_init(&timer, on_timer, 0.1, 0);
    timer.data = &start;
    ev_timer_start(loop, &timer);
    while (event_count() == 0) {
        ev_run(loop, EVRUN_NOWAIT);
        turns++;
    }
    ck_assert_uint_ge(turns, 100);
    ck_assert_uint_le(turns, 102);
    ev_loop_destroy(loop);
}
END_TEST

START_TEST(no_time_passes_while_events_are_ready)
{
    ev_io io;
    ev_timer timer;
    int fds[2];

    fake_time_start(day_ns, 20000 * day_ns);
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    double start = ev_now(loop);
    ck_assert_int_eq(pipe(fds), 0);
    ev_io_init(&io, on_readable, fds[0], EV_READ);
    ev_io_start(loop, &io);
    ev_timer_init(&timer, on_timer, 1, 0);
    timer.data = &start;
    ev_timer_start(loop, &timer);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(write(fds[1], "tick", 5), 5);
        ev_run(loop, EVRUN_ONCE);
        ck_assert_uint_eq(event_count(), 1);
        const struct event *event = event_pop();
        ck_assert_str_eq(event->name, "readable");
        ck_assert_str_eq(event->data, "tick");
        ck_assert_int_eq(event->number, 5);
    }
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), day_ns);
    ev_loop_destroy(loop);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(waiting_for_what_never_happens_aborts)
{
    ev_io io;
    int fds[2];

    fake_time_patience_ms = 20;
    fake_time_start(day_ns, 20000 * day_ns);
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    ck_assert_int_eq(pipe(fds), 0);
    ev_io_init(&io, on_readable, fds[0], EV_READ);
    ev_io_start(loop, &io);
    ev_run(loop, 0);
}
END_TEST

/* ---- Virtual timerfds ---- */

static void
on_timerfd(struct ev_loop *loop, ev_io *io, int events)
{
    uint64_t expired = 0;

    (void)loop;
    (void)events;
    ck_assert_int_eq(read(io->fd, &expired, sizeof(expired)), sizeof(expired));
    event_push("timerfd", io, (long)(clock_ns(CLOCK_MONOTONIC) - day_ns));
}

static void
set_timerfd(int fd, int flags, uint64_t ns, uint64_t interval_ns)
{
    struct itimerspec time = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
        .it_interval.tv_nsec = (long)interval_ns};

    ck_assert_int_eq(timerfd_settime(fd, flags, &time, NULL), 0);
}

static void
expect_timerfd(struct ev_loop *loop, const ev_io *io, long ns)
{
    const struct event *event;

    while (event_count() == 0)
        ev_run(loop, EVRUN_ONCE);
    event = event_pop();
    ck_assert_ptr_eq(event->object, io);
    ck_assert_int_eq(event->number, ns);
}

START_TEST(timerfds_expire_to_the_nanosecond_and_in_order)
{
    struct ev_loop *loop;
    ev_io io[2];

    fake_time_start(day_ns, 20000 * day_ns);
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    for (int i = 0; i < 2; i++) {
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ev_io_init(&io[i], on_timerfd, fd, EV_READ);
        ev_io_start(loop, &io[i]);
    }
    set_timerfd(io[0].fd, 0, 3600000000017, 0);
    set_timerfd(io[1].fd, TFD_TIMER_ABSTIME, day_ns + 1000, 5000);
    expect_timerfd(loop, &io[1], 1000);
    expect_timerfd(loop, &io[1], 6000);
    set_timerfd(io[1].fd, TFD_TIMER_ABSTIME, 0, 0);
    expect_timerfd(loop, &io[0], 3600000000017);
    ev_loop_destroy(loop);
    close(io[0].fd);
    close(io[1].fd);
}
END_TEST

START_TEST(without_virtual_time_timerfds_are_real)
{
    struct itimerspec at_once = {.it_value.tv_nsec = 1};
    uint64_t expired = 0;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    ck_assert_int_eq(timerfd_settime(fd, 0, &at_once, NULL), 0);
    ck_assert_int_eq(read(fd, &expired, sizeof(expired)), sizeof(expired));
    ck_assert_uint_eq(expired, 1);
    close(fd);
    fake_time_start(day_ns, day_ns);
    fake_os_fail(FAKE_TIMERFD_CREATE, 1, 1, EMFILE);
    ck_assert_int_eq(timerfd_create(CLOCK_MONOTONIC, 0), -1);
    fd = timerfd_create(CLOCK_MONOTONIC, 0);
    fake_os_fail(FAKE_TIMERFD_SETTIME, 1, 1, EINVAL);
    ck_assert_int_eq(timerfd_settime(fd, 0, &at_once, NULL), -1);
    close(fd);
}
END_TEST

static unsigned asked;
static int idle_pipe[2];

/* Asked first, it names a time; asked again, it makes a pipe readable; after that it wants
 * nothing. */
static uint64_t
be_asked(void)
{
    if (asked++ == 1)
        ck_assert_int_eq(write(idle_pipe[1], "tick", 5), 5);
    return asked == 1 ? day_ns + 77 : asked == 2 ? FAKE_TIME_LOOK_AGAIN : FAKE_TIME_NEVER;
}

START_TEST(who_is_idle_is_asked_before_time_jumps)
{
    struct ev_loop *loop;
    ev_io io;

    fake_time_start(day_ns, day_ns);
    fake_time_idle = be_asked;
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    ck_assert_int_eq(pipe(idle_pipe), 0);
    ev_io_init(&io, on_readable, idle_pipe[0], EV_READ);
    ev_io_start(loop, &io);
    ev_run(loop, EVRUN_ONCE);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), day_ns + 77);
    ck_assert_uint_eq(event_count(), 0);
    ev_run(loop, EVRUN_ONCE);
    ck_assert_uint_eq(clock_ns(CLOCK_MONOTONIC), day_ns + 77);
    ck_assert_str_eq(event_pop()->data, "tick");
    ev_loop_destroy(loop);
    close(idle_pipe[0]);
    close(idle_pipe[1]);
}
END_TEST

START_TEST(libev_meets_faults)
{
    struct ev_loop *loop;

    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 1, EMFILE);
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    ck_assert_ptr_null(loop);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_uint_eq(fake_os_calls(FAKE_EPOLL_CREATE1), 1);
}
END_TEST

/* ---- Events ---- */

START_TEST(events_come_out_in_order)
{
    char long_text[400];

    memset(long_text, 'x', sizeof(long_text));
    ck_assert_str_eq(event_pop()->name, "nothing");
    event_push("one", &long_text, -1);
    event_push_data("two", NULL, 2, "a\0b", 3);
    event_push_data("a name of more than thirty-one bytes", NULL, 3, long_text, sizeof(long_text));
    ck_assert_uint_eq(event_count(), 3);

    const struct event *event = event_pop();
    ck_assert_str_eq(event->name, "one");
    ck_assert_ptr_eq(event->object, &long_text);
    ck_assert_int_eq(event->number, -1);
    ck_assert_str_eq(event->data, "");
    event = event_pop();
    ck_assert_uint_eq(event->length, 3);
    ck_assert_mem_eq(event->data, "a\0b", 4);
    event = event_pop();
    ck_assert_str_eq(event->name, "a name of more than thirty-one ");
    ck_assert_uint_eq(event->length, 400);
    ck_assert_uint_eq(strlen(event->data), 255);

    event_push("four", NULL, 4);
    event_reset();
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_str_eq(event_pop()->name, "nothing");
}
END_TEST

START_TEST(one_event_too_many_aborts)
{
    for (unsigned i = 0; i < 257; i++) {
        ck_assert_uint_eq(event_count(), i);
        event_push("flood", NULL, (long)i);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("fake");
    TCase *faults = tcase_create("faults");
    TCase *limits = tcase_create("limits");
    TCase *clocks = tcase_create("clocks");
    TCase *events = tcase_create("events");

    tcase_add_test(faults, off_calls_go_straight_through);
    tcase_add_loop_test(faults, chosen_calls_fail_with_the_chosen_error, 0,
                        sizeof(patterns) / sizeof(*patterns));
    tcase_add_test(faults, calls_fail_in_their_own_way);
    tcase_add_test(faults, failing_close_closes);
    tcase_add_test(faults, sweep_numbers_several_kinds_together);
    tcase_add_test(faults, checking_neither_counts_nor_fails);
    tcase_add_exit_test(faults, faults_left_on_do_no_harm_at_exit, 7);
    tcase_add_test(faults, forbidden_calls_are_made_and_counted);
    tcase_add_test(faults, threads_share_one_count);
    tcase_add_loop_test(limits, limited_calls_move_that_many_bytes, 0, RECEIVING);
    tcase_add_test(clocks, virtual_clocks_move_only_when_told);
    tcase_add_test(clocks, hour_long_timers_fire_in_order_and_at_once);
    tcase_add_test(clocks, polling_turns_reach_a_timer_too);
    tcase_add_test(clocks, no_time_passes_while_events_are_ready);
    tcase_add_test_raise_signal(clocks, waiting_for_what_never_happens_aborts, SIGABRT);
    tcase_add_test(clocks, timerfds_expire_to_the_nanosecond_and_in_order);
    tcase_add_test(clocks, without_virtual_time_timerfds_are_real);
    tcase_add_test(clocks, who_is_idle_is_asked_before_time_jumps);
    tcase_add_test(clocks, libev_meets_faults);
    tcase_add_test(events, events_come_out_in_order);
    tcase_add_test_raise_signal(events, one_event_too_many_aborts, SIGABRT);
    suite_add_tcase(suite, faults);
    suite_add_tcase(suite, limits);
    suite_add_tcase(suite, clocks);
    suite_add_tcase(suite, events);
    return sxe_test_main(suite);
}
