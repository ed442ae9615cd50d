/* SPDX-License-Identifier: MIT
 *
 * Samples calls in a signal handler. All work is done in the first thread, with SIGPROF blocked.
 */
#include "profile.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "backtrace.h"
#include "sxe-lua.h"
#include "sxe-util.h"

/* musl has this name of timer_create(2), glibc before 2.39 only the member's. */
#ifndef sigev_notify_thread_id
#    define sigev_notify_thread_id _sigev_un._tid
#endif

enum { SIZE = 4 << 20, CALLS_MAX = 64, INTERVAL_US = 5000 };

static const char magic[8] = {'s', 'x', 'e', 'p', 'r', 'o', 'f', '1'};

static struct {
    pid_t owner; /* the process that made the timer; a child has no timer */
    timer_t timer;
    struct profile_head *head; /* the mapped file; NULL: it was not needed yet */
    uint64_t stack;            /* number of the next record of Lua */
} profile;

/* ---- Records ---- */

static void
add_record(enum profile_kind kind, const void *calls, size_t length)
{
    struct profile_head *head = profile.head;
    const size_t size = (sizeof(struct profile_record) + length + 7) & ~(size_t)7;
    struct profile_record record = {(uint32_t)kind, (uint32_t)size, profile.stack};
    char *end = (char *)head + head->used;

    if (head->used + size > SIZE) {
        head->lost++;
        return;
    }
    memcpy(end, &record, sizeof(record));
    memcpy(end + sizeof(record), calls, length);
    __atomic_store_n(&head->used, head->used + size, __ATOMIC_RELEASE);
}

/* Lua calls this, in this thread but outside of the signal handler. */
static void
take_calls(const char *calls, size_t length)
{
    sigset_t ours;
    sigset_t before;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    if (profile.head->used > 0) { /* not stopped meanwhile */
        add_record(PROFILE_LUA, calls, length);
        profile.stack++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The address at which the signal interrupted the thread. */
static void *
interrupted_at(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void *)context->uc_mcontext.pc;
#else
    return NULL;
#endif
}

/* Calls of the signal handler itself are left out. */
static void
take_sample(const ucontext_t *context)
{
    void *calls[CALLS_MAX];
    const uint64_t stack = profile.stack;
    const int number = backtrace(calls, CALLS_MAX);
    int first = 0;

    for (int i = 0; i < number; i++) {
        if (calls[i] == interrupted_at(context))
            first = i;
    }
    if (!sxe_lua_ask_for_calls(take_calls))
        profile.stack = 0;
    add_record(PROFILE_C, calls + first, (size_t)(number - first) * sizeof(*calls));
    profile.stack = stack;
}

/* ---- Start and stop ---- */

static void
map_file(void)
{
    int fd = memfd_create("sxe-profile", MFD_CLOEXEC);
    void *memory;

    if (fd < 0)
        return;
    if (ftruncate(fd, SIZE) != 0)
        goto fail;
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        goto fail;
    profile.head = memory; /* the descriptor stays open for tools/flame */
    return;

fail:
    close(fd);
}

static void
set_timer(long interval_us)
{
    const struct timespec interval = {.tv_nsec = interval_us * 1000};
    const struct itimerspec times = {interval, interval};

    timer_settime(profile.timer, 0, &times, NULL);
}

static void
start_or_stop(void)
{
    if (profile.head == NULL)
        map_file();
    if (profile.head == NULL)
        return;
    if (profile.head->used > 0) {
        set_timer(0);
        madvise(profile.head, SIZE, MADV_REMOVE); /* from now on it reads as zeros */
        return;
    }
    profile.stack = 1;
    profile.head->interval_us = INTERVAL_US;
    memcpy(profile.head->magic, magic, sizeof(magic));
    __atomic_store_n(&profile.head->used, sizeof(*profile.head), __ATOMIC_RELEASE);
    set_timer(INTERVAL_US);
}

static void
on_profile_signal(int signal_number, siginfo_t *info, void *context)
{
    const int error = errno;
    const pid_t process = getpid();

    if (process != profile.owner) {
        /* a child made by fork(2): it has no timer */
    } else if (info->si_code != SI_TIMER && gettid() != process) {
        syscall(SYS_tgkill, process, process, signal_number);
    } else if (info->si_code != SI_TIMER) {
        start_or_stop();
    } else if (profile.head->used > 0) { /* otherwise the signal is late: the timer was stopped */
        take_sample(context);
    }
    errno = error;
}

void
profile_begin(void)
{
    struct sigaction action = {.sa_sigaction = on_profile_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    void *call;

    if (profile.owner == getpid())
        return;
    /* The first call of backtrace loads a library, which a signal handler must not do. */
    (void)backtrace(&call, 1);
    event.sigev_notify_thread_id = gettid();
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &profile.timer) != 0)
        return; /* without a timer there is no profile: tools/flame says so */
    profile.owner = getpid();
    profile.head = NULL;                  /* of the parent, if this is a child */
    sigaddset(&action.sa_mask, SIGRTMIN); /* the watchdog of scripts sets the hook, too */
    sigaction(SIGPROF, &action, NULL);
}
