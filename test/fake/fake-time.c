/* SPDX-License-Identifier: MIT */
#include "fake-time.h"

#include "fake-os.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

int fake_time_patience_ms = 5000;

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

int __real_epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms);
int
__wrap_epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms)
{
    if (fake__strikes(FAKE_EPOLL_WAIT))
        return -1;
    if (!running)
        return __real_epoll_wait(epoll, events, events_max, timeout_ms);

    bool for_ever = timeout_ms < 0 || idle > idle_max_ns;
    int number = __real_epoll_wait(epoll, events, events_max, for_ever ? fake_time_patience_ms : 0);
    if (number != 0) {
        idle = 0;
        return number;
    }
    if (for_ever) {
        fprintf(stderr, "fake epoll_wait: no timer and no event: nothing will ever happen\n");
        abort();
    }
    uint64_t ns = (timeout_ms > 0 ? (uint64_t)timeout_ms : 1) * ns_per_ms;
    idle += ns;
    fake_time_advance(ns);
    return 0;
}
