/* SPDX-License-Identifier: MIT
 *
 * A virtual clock under libev.
 */
#include "fake-time.h"

#include "fake-os.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int fake_time_patience_ms = 5000;
uint64_t fake_time_poll_ns;
uint64_t (*fake_time_idle)(void);

static const uint64_t ns_per_second = 1000000000;
static const uint64_t ns_per_ms = 1000000;
static const uint64_t idle_max_ns = 100 * 86400 * UINT64_C(1000000000);

static atomic_bool running;
static _Atomic uint64_t monotonic;
static _Atomic uint64_t wall;
static _Atomic uint64_t idle; /* ns since epoll_wait last found an event */

void
fake_time_start(uint64_t monotonic_ns, uint64_t wall_ns)
{
    monotonic = monotonic_ns;
    wall = wall_ns;
    running = true;
}

void
fake_time_advance(uint64_t ns)
{
    monotonic += ns;
    wall += ns;
}

void
fake_time_step_wall(int64_t ns)
{
    wall += (uint64_t)ns;
}

void
fake_time_stop(void)
{
    running = false;
}

/* The virtual clock that stands for a real one, or NULL. */
static _Atomic uint64_t *
clock_of(clockid_t id)
{
    switch (id) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return running ? &monotonic : NULL;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return running ? &wall : NULL;
    default:
        return NULL;
    }
}

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int
__wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    if (fake__strikes(FAKE_CLOCK_GETTIME))
        return -1;
    _Atomic uint64_t *clock = clock_of(id);
    if (clock == NULL)
        return __real_clock_gettime(id, now);
    uint64_t ns = *clock;
    now->tv_sec = (time_t)(ns / ns_per_second);
    now->tv_nsec = (long)(ns % ns_per_second);
    return 0;
}

int __real_gettimeofday(struct timeval *now, void *zone);
int __wrap_gettimeofday(struct timeval *now, void *zone);
int
__wrap_gettimeofday(struct timeval *now, void *zone)
{
    if (fake__strikes(FAKE_GETTIMEOFDAY))
        return -1;
    if (!running)
        return __real_gettimeofday(now, zone);
    uint64_t ns = wall;
    now->tv_sec = (time_t)(ns / ns_per_second);
    now->tv_usec = (suseconds_t)(ns % ns_per_second / 1000);
    return 0;
}

time_t __real_time(time_t *now);
time_t __wrap_time(time_t *now);
time_t
__wrap_time(time_t *now)
{
    if (fake__strikes(FAKE_TIME))
        return -1;
    if (!running)
        return __real_time(now);
    time_t seconds = (time_t)(wall / ns_per_second);
    if (now != NULL)
        *now = seconds;
    return seconds;
}

static uint64_t
timespec_ns(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * ns_per_second + (uint64_t)time->tv_nsec;
}

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    if (fake__strikes(FAKE_NANOSLEEP))
        return -1;
    if (!running)
        return __real_nanosleep(time, left);
    fake_time_advance(timespec_ns(time));
    return 0;
}

int __real_clock_nanosleep(clockid_t id, int flags, const struct timespec *time,
                           struct timespec *left);
int __wrap_clock_nanosleep(clockid_t id, int flags, const struct timespec *time,
                           struct timespec *left);
int
__wrap_clock_nanosleep(clockid_t id, int flags, const struct timespec *time, struct timespec *left)
{
    if (fake__strikes(FAKE_CLOCK_NANOSLEEP))
        return errno;
    _Atomic uint64_t *clock = clock_of(id);
    if (clock == NULL)
        return __real_clock_nanosleep(id, flags, time, left);
    uint64_t ns = timespec_ns(time);
    uint64_t now = flags & TIMER_ABSTIME ? (uint64_t)*clock : 0;
    fake_time_advance(ns > now ? ns - now : 0);
    return 0;
}

/* ---- timerfd ---- */

enum { TIMERS_MAX = 16 };

static struct {
    int fd; /* an eventfd; 0: free */
    uint64_t due_ns;
    uint64_t interval_ns;
} timers[TIMERS_MAX];

static int
timer_of(int fd)
{
    int i = 0;

    while (i < TIMERS_MAX && timers[i].fd != fd)
        i++;
    return i;
}

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int
__wrap_timerfd_create(int clock, int flags)
{
    int free_one = timer_of(0);

    if (fake__strikes(FAKE_TIMERFD_CREATE))
        return -1;
    if (clock_of(clock) != &monotonic || free_one == TIMERS_MAX)
        return __real_timerfd_create(clock, flags);
    timers[free_one].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    timers[free_one].due_ns = FAKE_TIME_NEVER;
    return timers[free_one].fd;
}

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *time,
                           struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time,
                           struct itimerspec *old);
int
__wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old)
{
    int i = timer_of(fd);
    eventfd_t expired;

    if (fake__strikes(FAKE_TIMERFD_SETTIME))
        return -1;
    if (i == TIMERS_MAX)
        return __real_timerfd_settime(fd, flags, time, old);
    eventfd_read(fd, &expired);
    timers[i].due_ns = timespec_ns(&time->it_value);
    timers[i].interval_ns = timespec_ns(&time->it_interval);
    if (timers[i].due_ns == 0)
        timers[i].due_ns = FAKE_TIME_NEVER;
    else if (!(flags & TFD_TIMER_ABSTIME))
        timers[i].due_ns += monotonic;
    return 0;
}

void
fake__forget_timer(int fd)
{
    int i = timer_of(fd);

    if (fd > 0 && i < TIMERS_MAX)
        timers[i].fd = 0;
}

static void
expire_timers(void)
{
    for (int i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].fd == 0 || timers[i].due_ns > monotonic)
            continue;
        timers[i].due_ns =
            timers[i].interval_ns > 0 ? timers[i].due_ns + timers[i].interval_ns : FAKE_TIME_NEVER;
        eventfd_write(timers[i].fd, 1);
    }
}

static uint64_t
next_timer_ns(void)
{
    uint64_t next_ns = FAKE_TIME_NEVER;

    for (int i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].fd != 0 && timers[i].due_ns < next_ns)
            next_ns = timers[i].due_ns;
    }
    return next_ns;
}

/* ---- epoll ---- */

/* Nothing is ready: move the clocks to the next time at which something is due. False: nothing will
 * ever be due. */
static bool
jump(int timeout_ms, uint64_t asked_ns)
{
    uint64_t to_ns = next_timer_ns();
    uint64_t ns;

    if (asked_ns < to_ns)
        to_ns = asked_ns;
    if (timeout_ms < 0 && to_ns == FAKE_TIME_NEVER)
        return false;
    ns = timeout_ms < 0 ? FAKE_TIME_NEVER : (timeout_ms > 0 ? (uint64_t)timeout_ms : 1) * ns_per_ms;
    if (timeout_ms == 0 && fake_time_poll_ns > 0)
        ns = fake_time_poll_ns;
    if (to_ns < monotonic)
        to_ns = monotonic;
    if (to_ns - monotonic < ns)
        ns = to_ns - monotonic;
    idle += ns;
    fake_time_advance(ns);
    return true;
}

int __real_epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms);
int
__wrap_epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms)
{
    uint64_t asked_ns = FAKE_TIME_LOOK_AGAIN;
    int number = 0;

    if (fake__strikes(FAKE_EPOLL_WAIT))
        return -1;
    if (!running)
        return __real_epoll_wait(epoll, events, events_max, timeout_ms);

    while (number == 0 && asked_ns == FAKE_TIME_LOOK_AGAIN) {
        expire_timers();
        number = __real_epoll_wait(epoll, events, events_max, 0);
        if (number == 0)
            asked_ns = fake_time_idle == NULL ? FAKE_TIME_NEVER : fake_time_idle();
    }
    if (number == 0 && asked_ns == FAKE_TIME_SIGNAL) {
        errno = EINTR;
        return -1;
    }
    if (number == 0 && idle <= idle_max_ns && jump(timeout_ms, asked_ns)) {
        expire_timers();
        return __real_epoll_wait(epoll, events, events_max, 0);
    }
    idle = 0;
    if (number == 0)
        number = __real_epoll_wait(epoll, events, events_max, fake_time_patience_ms);
    if (number == 0) {
        fprintf(stderr, "fake epoll_wait: no timer and no event: nothing will ever happen\n");
        abort();
    }
    return number;
}
