/* SPDX-License-Identifier: MIT
 *
 * System calls that fail on demand.
 */
#include "fake-os.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct fault {
    unsigned nth; /* the first call to fail, counted from 1; 0: no fault is set */
    unsigned times;
    atomic_uint seen; /* calls since the fault was set */
    int error;
};

static struct {
    struct fault fault;
    bool swept;
    bool forbidden;
    size_t limit;
    atomic_uint count;
} calls[FAKE_CALLS];

static struct fault sweep;
static atomic_int unacked = -1;
static atomic_uint peer;
static atomic_uint injected;
static atomic_uint violations;
static _Thread_local unsigned paused;

static void
set_fault(struct fault *fault, unsigned nth, unsigned times, int error)
{
    fault->nth = nth;
    fault->times = times;
    fault->error = error;
    fault->seen = 0;
}

void
fake_os_reset(void)
{
    for (unsigned i = 0; i < FAKE_CALLS; i++) {
        set_fault(&calls[i].fault, 0, 0, 0);
        calls[i].swept = false;
        calls[i].forbidden = false;
        calls[i].limit = 0;
        calls[i].count = 0;
    }
    set_fault(&sweep, 0, 0, 0);
    unacked = -1;
    peer = 0;
    injected = 0;
    violations = 0;
}

void
fake_os_fail(enum fake_call call, unsigned nth, unsigned times, int error)
{
    set_fault(&calls[call].fault, nth, times, error);
}

void
fake_os_sweep(const enum fake_call *kinds, unsigned kinds_number, unsigned nth, bool forever,
              int error)
{
    for (unsigned i = 0; i < FAKE_CALLS; i++)
        calls[i].swept = false;
    for (unsigned i = 0; i < kinds_number; i++)
        calls[kinds[i]].swept = true;
    set_fault(&sweep, nth, forever ? 0 : 1, error);
}

void
fake_os_limit(enum fake_call call, size_t bytes)
{
    calls[call].limit = bytes;
}

void
fake_os_say_unacked(int bytes)
{
    unacked = bytes;
}

void
fake_os_say_peer(const char *ip)
{
    peer = ip == NULL ? 0 : inet_addr(ip);
}

bool
fake_os_forbid(enum fake_call call, bool forbidden)
{
    bool before = calls[call].forbidden;

    calls[call].forbidden = forbidden;
    return before;
}

unsigned
fake_os_calls(enum fake_call call)
{
    return calls[call].count;
}

unsigned
fake_os_injected(void)
{
    return injected;
}

unsigned
fake_os_violations(void)
{
    return violations;
}

const char *
fake_os_name(enum fake_call call)
{
#define FAKE_NAME(enumerator, function) #function,
    static const char *const names[] = {FAKE_EACH_CALL(FAKE_NAME)};
#undef FAKE_NAME

    return names[call];
}

unsigned
fake_os_open_fds(void)
{
    unsigned number = 0;

    paused++;
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) {
        perror("fake_os_open_fds: /proc/self/fd");
        abort();
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        number += entry->d_name[0] != '.';
    closedir(directory);
    paused--;
    return number - 1; /* do not count the directory itself */
}

static bool
due(struct fault *fault)
{
    unsigned nth = fault->nth;

    if (nth == 0)
        return false;
    unsigned seen = atomic_fetch_add(&fault->seen, 1) + 1;
    return seen >= nth && (fault->times == 0 || seen - nth < fault->times);
}

bool
fake__strikes(enum fake_call call)
{
    if (paused > 0)
        return false;
    calls[call].count++;
    violations += calls[call].forbidden;

    struct fault *own = &calls[call].fault;
    struct fault *fault = due(own) ? own : calls[call].swept && due(&sweep) ? &sweep : NULL;
    if (fault == NULL)
        return false;
    injected++;
    errno = fault->error;
    return true;
}

size_t
fake__limited(enum fake_call call, size_t length)
{
    size_t limit = paused > 0 ? 0 : calls[call].limit;

    return limit != 0 && length > limit ? limit : length;
}

int
fake__unacked(void)
{
    return paused > 0 ? -1 : unacked;
}

uint32_t
fake__peer(void)
{
    return peer;
}

/* ---- libcheck allocates before and after a case, and when one fails: its calls pass ---- */

/* libcheck would write the place of each ck_assert that passes to a file, half the time of all
 * tests. Only the last place of a case that dies is of interest, so keep that in memory. */
static _Thread_local struct {
    const char *file;
    int line;
} passed;

void __wrap__mark_point(const char *file, int line);
void
__wrap__mark_point(const char *file, int line)
{
    passed.file = file;
    passed.line = line;
}

void
fake_os_say_passed(void)
{
    if (passed.file != NULL)
        dprintf(2, "%s:%d: the last ck_assert that passed\n", passed.file, passed.line);
}

#define PASSING(name, parameters, arguments) \
    void __real_##name parameters;           \
    void __wrap_##name parameters;           \
    void __wrap_##name parameters            \
    {                                        \
        int error = errno;                   \
                                             \
        paused++;                            \
        __real_##name arguments;             \
        paused--;                            \
        errno = error;                       \
    }

PASSING(send_ctx_info, (int context), (context))
PASSING(tcase_fn_start, (const char *name, const char *file, int line), (name, file, line))

/* The duration of a case; it may come from a virtual clock, and libcheck gives up when it is
 * negative. */
PASSING(send_duration_info, (int duration_us), (duration_us < 0 ? 0 : duration_us))

_Noreturn void __real__ck_assert_failed(const char *file, int line, const char *expression,
                                        const char *format, ...);
_Noreturn void __wrap__ck_assert_failed(const char *file, int line, const char *expression,
                                        const char *format, ...);
_Noreturn void
__wrap__ck_assert_failed(const char *file, int line, const char *expression, const char *format,
                         ...)
{
    char text[4096];

    paused++;
    if (format == NULL)
        __real__ck_assert_failed(file, line, expression, NULL);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    __real__ck_assert_failed(file, line, expression, "%s", text);
}

/* Switch all faults off at exit, so that a fault that a case left set does not keep its coverage
 * counters from being written. */
static void
reset_at_exit(void)
{
    fake_os_reset();
}

__attribute__((constructor)) static void
arm_exit(void)
{
    atexit(reset_at_exit);
}
