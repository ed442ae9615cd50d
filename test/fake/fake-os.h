/* SPDX-License-Identifier: MIT
 *
 * What: makes chosen calls to the system fail, move fewer bytes, or count, while a test runs. Off,
 * every call goes straight through.
 *
 * Place: the linker sends the functions named in test/fake/wrapped to fake-calls.c and fake-time.c
 * (--wrap), whoever calls them: our code, libev, libcheck. Calls inside libc are not seen.
 *
 * Shape: a call asks, in this order: is it forbidden (count a violation), does its own fault
 * strike, does the sweep strike? A struck call is not made; errno is set and its failure value
 * returned (-1, NULL, MAP_FAILED; posix_memalign, posix_fallocate, clock_nanosleep and those of
 * pthreads return the error itself). Allocations fail with ENOMEM, whatever error was asked for. A
 * struck close() does close the descriptor, as on Linux.
 *
 *     fail(FAKE_READ, 3, 2, EINTR):   read read READ READ read read ...    capitals fail
 *     fail(FAKE_READ, 3, 0, EINTR):   read read READ READ READ READ ...
 *
 * Limits: one fault a call and one sweep at a time, a new one replaces the old. Set them while no
 * other thread runs; calls may come from any thread. ck_assert...() neither counts nor fails.
 * libcheck forks for every case, so a case begins with all off; cases run with CK_FORK=no must
 * reset first.
 *
 * Example, a sweep:
 *     static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};
 *     unsigned nth = 0;
 *     do {
 *         fake_os_reset();
 *         fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
 *         scenario();        must end well or with an error, and free all
 *     } while (fake_os_injected() != 0);
 */
#ifndef FAKE_OS_H
#define FAKE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(ENUMERATOR, function); a call that is missing here is added here, in `wrapped` and in
 * fake-calls.c. */
#define FAKE_EACH_CALL(X)                   \
    X(READ, read)                           \
    X(PREAD, pread)                         \
    X(READV, readv)                         \
    X(PREADV2, preadv2)                     \
    X(RECV, recv)                           \
    X(RECVFROM, recvfrom)                   \
    X(RECVMSG, recvmsg)                     \
    X(RECVMMSG, recvmmsg)                   \
    X(WRITE, write)                         \
    X(PWRITE, pwrite)                       \
    X(WRITEV, writev)                       \
    X(SEND, send)                           \
    X(SENDTO, sendto)                       \
    X(SENDMSG, sendmsg)                     \
    X(SENDMMSG, sendmmsg)                   \
    X(SENDFILE, sendfile)                   \
    X(SOCKET, socket)                       \
    X(SOCKETPAIR, socketpair)               \
    X(BIND, bind)                           \
    X(LISTEN, listen)                       \
    X(ACCEPT, accept)                       \
    X(ACCEPT4, accept4)                     \
    X(CONNECT, connect)                     \
    X(SHUTDOWN, shutdown)                   \
    X(SETSOCKOPT, setsockopt)               \
    X(GETSOCKOPT, getsockopt)               \
    X(GETSOCKNAME, getsockname)             \
    X(GETPEERNAME, getpeername)             \
    X(CLOSE, close)                         \
    X(FCNTL, fcntl)                         \
    X(IOCTL, ioctl)                         \
    X(DUP, dup)                             \
    X(DUP2, dup2)                           \
    X(DUP3, dup3)                           \
    X(PIPE, pipe)                           \
    X(PIPE2, pipe2)                         \
    X(POLL, poll)                           \
    X(EPOLL_CREATE, epoll_create)           \
    X(EPOLL_CREATE1, epoll_create1)         \
    X(EPOLL_CTL, epoll_ctl)                 \
    X(EPOLL_WAIT, epoll_wait)               \
    X(EVENTFD, eventfd)                     \
    X(SIGNALFD, signalfd)                   \
    X(TIMERFD_CREATE, timerfd_create)       \
    X(TIMERFD_SETTIME, timerfd_settime)     \
    X(CLOCK_GETTIME, clock_gettime)         \
    X(GETTIMEOFDAY, gettimeofday)           \
    X(TIME, time)                           \
    X(NANOSLEEP, nanosleep)                 \
    X(CLOCK_NANOSLEEP, clock_nanosleep)     \
    X(OPEN, open)                           \
    X(OPENAT, openat)                       \
    X(FOPEN, fopen)                         \
    X(OPENDIR, opendir)                     \
    X(GETDENTS64, getdents64)               \
    X(MEMFD_CREATE, memfd_create)           \
    X(STAT, stat)                           \
    X(FSTAT, fstat)                         \
    X(FSTATAT, fstatat)                     \
    X(LSEEK, lseek)                         \
    X(FTRUNCATE, ftruncate)                 \
    X(POSIX_FALLOCATE, posix_fallocate)     \
    X(FALLOCATE, fallocate)                 \
    X(FSYNC, fsync)                         \
    X(UNLINK, unlink)                       \
    X(LINK, link)                           \
    X(MKOSTEMP, mkostemp)                   \
    X(FCHMOD, fchmod)                       \
    X(RENAME, rename)                       \
    X(CHDIR, chdir)                         \
    X(MMAP, mmap)                           \
    X(MUNMAP, munmap)                       \
    X(MADVISE, madvise)                     \
    X(MPROTECT, mprotect)                   \
    X(MSYNC, msync)                         \
    X(SHM_OPEN, shm_open)                   \
    X(MALLOC, malloc)                       \
    X(CALLOC, calloc)                       \
    X(REALLOC, realloc)                     \
    X(POSIX_MEMALIGN, posix_memalign)       \
    X(ALIGNED_ALLOC, aligned_alloc)         \
    X(STRDUP, strdup)                       \
    X(GETRLIMIT, getrlimit)                 \
    X(SETRLIMIT, setrlimit)                 \
    X(FORK, fork)                           \
    X(WAITPID, waitpid)                     \
    X(KILL, kill)                           \
    X(PTHREAD_CREATE, pthread_create)       \
    X(PTHREAD_ATFORK, pthread_atfork)       \
    X(SCHED_SETAFFINITY, sched_setaffinity) \
    X(GETRANDOM, getrandom)                 \
    X(PRCTL, prctl)                         \
    X(GETEUID, geteuid)                     \
    X(SETUID, setuid)                       \
    X(SETGID, setgid)                       \
    X(SETGROUPS, setgroups)                 \
    X(CHROOT, chroot)                       \
    X(SYSCALL, syscall)

enum fake_call {
#define FAKE_ENUMERATOR(call, function) FAKE_##call,
    FAKE_EACH_CALL(FAKE_ENUMERATOR)
#undef FAKE_ENUMERATOR
        FAKE_CALLS
};

/* Remove all faults, limits and prohibitions, and set all counters to zero. */
void fake_os_reset(void);

/* Print where this thread's last ck_assert passed: for a case that dies by a signal. */
void fake_os_say_passed(void);

/* Let nth - 1 calls pass (nth 1: the very next fails; 0: none does), then fail `times` calls with
 * errno = error; times 0: all that follow. */
void fake_os_fail(enum fake_call call, unsigned nth, unsigned times, int error);

/* From now on number the calls of all these kinds together; fail the nth, or it and all after
 * it. */
void fake_os_sweep(const enum fake_call *kinds, unsigned kinds_number, unsigned nth, bool forever,
                   int error);

/* Reads and writes of this kind move at most this many bytes; 0: no limit. */
void fake_os_limit(enum fake_call call, size_t bytes);

/* Make ioctl(SIOCOUTQ) report this many bytes for each socket; negative, as after a reset: report
 * the kernel's number. */
void fake_os_say_unacked(int bytes);

/* Make getpeername report this IPv4 address for each socket; NULL: the kernel's. */
void fake_os_say_peer(const char *ip);

/* Count calls of this kind as violations; they are made all the same. Returns whether the kind was
 * forbidden before. */
bool fake_os_forbid(enum fake_call call, bool forbidden);

unsigned fake_os_calls(enum fake_call call); /* made or failed since reset */
unsigned fake_os_injected(void);             /* failures since reset */
unsigned fake_os_violations(void);           /* since reset */

const char *fake_os_name(enum fake_call call); /* "epoll_wait" */

unsigned fake_os_open_fds(void); /* the number of descriptors that this process has open now */

/* ---- For the fakes themselves ---- */

/* Count a call and say whether it must fail; errno is then set. */
bool fake__strikes(enum fake_call call);

/* The bytes that a call asking for length may move. */
size_t fake__limited(enum fake_call call, size_t length);

/* The number set by fake_os_say_unacked. */
int fake__unacked(void);

/* The address set by fake_os_say_peer, in the order of the network; 0: none. */
uint32_t fake__peer(void);

/* If this descriptor was a virtual timerfd, forget that: it was closed. */
void fake__forget_timer(int fd);

#endif
