/* SPDX-License-Identifier: MIT
 *
 * The calls of FAKE_EACH_CALL as the linker's --wrap wants them; those about time are in
 * fake-time.c. A name that `wrapped` lacks, or that lacks a function here, does not link.
 */
#include "fake-os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PROTOTYPES(result, name, parameters) \
    result __real_##name parameters;         \
    result __wrap_##name parameters

/* Call the real function, or return failure if this call must fail. */
#define PLAIN(call, failure, result, name, parameters, arguments)                \
    PROTOTYPES(result, name, parameters);                                        \
    result __wrap_##name parameters                                              \
    {                                                                            \
        return fake__strikes(FAKE_##call) ? (failure) : __real_##name arguments; \
    }

/* Like PLAIN, but with `length` cut to the limit. */
#define MOVING(call, name, parameters, arguments)    \
    PROTOTYPES(ssize_t, name, parameters);           \
    ssize_t __wrap_##name parameters                 \
    {                                                \
        if (fake__strikes(FAKE_##call))              \
            return -1;                               \
        length = fake__limited(FAKE_##call, length); \
        return __real_##name arguments;              \
    }

#define ALLOCATING(call, result, name, parameters, arguments) \
    PLAIN(call, (errno = ENOMEM, (result)NULL), result, name, parameters, arguments)

/* ---- Bytes in and out ---- */

MOVING(READ, read, (int fd, void *data, size_t length), (fd, data, length))
MOVING(PREAD, pread, (int fd, void *data, size_t length, off_t at), (fd, data, length, at))
MOVING(RECV, recv, (int fd, void *data, size_t length, int flags), (fd, data, length, flags))
MOVING(RECVFROM, recvfrom,
       (int fd, void *data, size_t length, int flags, struct sockaddr *from,
        socklen_t *from_length),
       (fd, data, length, flags, from, from_length))
MOVING(WRITE, write, (int fd, const void *data, size_t length), (fd, data, length))
MOVING(PWRITE, pwrite, (int fd, const void *data, size_t length, off_t at), (fd, data, length, at))
MOVING(SEND, send, (int fd, const void *data, size_t length, int flags), (fd, data, length, flags))
MOVING(SENDTO, sendto,
       (int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
        socklen_t to_length),
       (fd, data, length, flags, to, to_length))
MOVING(SENDFILE, sendfile, (int out, int in, off_t *at, size_t length), (out, in, at, length))

enum { VECTORS_MAX = 64 };

/* Copy to `cut` the part of the vectors that lies within the call's limit. Returns the number of
 * vectors copied. */
static int
limit_vectors(enum fake_call call, struct iovec *cut, const struct iovec *vectors, int number)
{
    size_t left = fake__limited(call, SIZE_MAX);
    int i;

    for (i = 0; i < number && i < VECTORS_MAX && left > 0; i++) {
        cut[i] = vectors[i];
        if (cut[i].iov_len > left)
            cut[i].iov_len = left;
        left -= cut[i].iov_len;
    }
    return i;
}

#define MOVING_VECTORS(call, name)                                                       \
    PROTOTYPES(ssize_t, name, (int fd, const struct iovec *vectors, int number));        \
    ssize_t __wrap_##name(int fd, const struct iovec *vectors, int number)               \
    {                                                                                    \
        struct iovec cut[VECTORS_MAX];                                                   \
                                                                                         \
        if (fake__strikes(FAKE_##call))                                                  \
            return -1;                                                                   \
        if (fake__limited(FAKE_##call, SIZE_MAX) == SIZE_MAX)                            \
            return __real_##name(fd, vectors, number);                                   \
        return __real_##name(fd, cut, limit_vectors(FAKE_##call, cut, vectors, number)); \
    }
MOVING_VECTORS(READV, readv)
MOVING_VECTORS(WRITEV, writev)

PROTOTYPES(ssize_t, preadv2,
           (int fd, const struct iovec *vectors, int number, off_t at, int flags));
/* Some file systems, overlayfs among them, do not know RWF_NOWAIT: read there without it. */
static ssize_t
preadv2_anywhere(int fd, const struct iovec *vectors, int number, off_t at, int flags)
{
    ssize_t result = __real_preadv2(fd, vectors, number, at, flags);

    return result < 0 && errno == EOPNOTSUPP
               ? __real_preadv2(fd, vectors, number, at, flags & ~RWF_NOWAIT)
               : result;
}

ssize_t
__wrap_preadv2(int fd, const struct iovec *vectors, int number, off_t at, int flags)
{
    struct iovec cut[VECTORS_MAX];

    if (fake__strikes(FAKE_PREADV2))
        return -1;
    if (fake__limited(FAKE_PREADV2, SIZE_MAX) == SIZE_MAX)
        return preadv2_anywhere(fd, vectors, number, at, flags);
    number = limit_vectors(FAKE_PREADV2, cut, vectors, number);
    return preadv2_anywhere(fd, cut, number, at, flags);
}

PROTOTYPES(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags));
ssize_t
__wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    struct iovec cut[VECTORS_MAX];
    struct iovec *vectors = message->msg_iov;
    size_t number = message->msg_iovlen;

    if (fake__strikes(FAKE_RECVMSG))
        return -1;
    if (fake__limited(FAKE_RECVMSG, SIZE_MAX) == SIZE_MAX)
        return __real_recvmsg(fd, message, flags);
    message->msg_iov = cut;
    message->msg_iovlen = (size_t)limit_vectors(FAKE_RECVMSG, cut, vectors, (int)number);
    ssize_t result = __real_recvmsg(fd, message, flags);
    message->msg_iov = vectors;
    message->msg_iovlen = number;
    return result;
}

PROTOTYPES(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags));
ssize_t
__wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct iovec cut[VECTORS_MAX];
    struct msghdr shorter = *message;

    if (fake__strikes(FAKE_SENDMSG))
        return -1;
    if (fake__limited(FAKE_SENDMSG, SIZE_MAX) == SIZE_MAX)
        return __real_sendmsg(fd, message, flags);
    shorter.msg_iov = cut;
    shorter.msg_iovlen =
        (size_t)limit_vectors(FAKE_SENDMSG, cut, message->msg_iov, (int)message->msg_iovlen);
    return __real_sendmsg(fd, &shorter, flags);
}

PLAIN(RECVMMSG, -1, int, recvmmsg,
      (int fd, struct mmsghdr *messages, unsigned number, int flags, struct timespec *timeout),
      (fd, messages, number, flags, timeout))
PLAIN(SENDMMSG, -1, int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned number, int flags),
      (fd, messages, number, flags))

/* ---- Functions that _FORTIFY_SOURCE calls instead in release builds ---- */

ssize_t __wrap___read_chk(int fd, void *data, size_t length, size_t size);
ssize_t
__wrap___read_chk(int fd, void *data, size_t length, size_t size)
{
    return length > size ? abort(), -1 : __wrap_read(fd, data, length);
}

ssize_t __wrap___recv_chk(int fd, void *data, size_t length, size_t size, int flags);
ssize_t
__wrap___recv_chk(int fd, void *data, size_t length, size_t size, int flags)
{
    return length > size ? abort(), -1 : __wrap_recv(fd, data, length, flags);
}

ssize_t __wrap___recvfrom_chk(int fd, void *data, size_t length, size_t size, int flags,
                              struct sockaddr *from, socklen_t *from_length);
ssize_t
__wrap___recvfrom_chk(int fd, void *data, size_t length, size_t size, int flags,
                      struct sockaddr *from, socklen_t *from_length)
{
    return length > size ? abort(),
           -1            : __wrap_recvfrom(fd, data, length, flags, from, from_length);
}

/* ---- Sockets ---- */

PLAIN(SOCKET, -1, int, socket, (int domain, int type, int protocol), (domain, type, protocol))
PLAIN(SOCKETPAIR, -1, int, socketpair, (int domain, int type, int protocol, int fds[2]),
      (domain, type, protocol, fds))
PLAIN(BIND, -1, int, bind, (int fd, const struct sockaddr *address, socklen_t length),
      (fd, address, length))
PLAIN(LISTEN, -1, int, listen, (int fd, int backlog), (fd, backlog))
PLAIN(ACCEPT, -1, int, accept, (int fd, struct sockaddr *address, socklen_t *length),
      (fd, address, length))
PLAIN(ACCEPT4, -1, int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
      (fd, address, length, flags))
PLAIN(CONNECT, -1, int, connect, (int fd, const struct sockaddr *address, socklen_t length),
      (fd, address, length))
PLAIN(SHUTDOWN, -1, int, shutdown, (int fd, int how), (fd, how))
PLAIN(SETSOCKOPT, -1, int, setsockopt,
      (int fd, int level, int option, const void *value, socklen_t length),
      (fd, level, option, value, length))
PLAIN(GETSOCKOPT, -1, int, getsockopt,
      (int fd, int level, int option, void *value, socklen_t *length),
      (fd, level, option, value, length))
PLAIN(GETSOCKNAME, -1, int, getsockname, (int fd, struct sockaddr *address, socklen_t *length),
      (fd, address, length))
PROTOTYPES(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length));
int
__wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = fake__peer()};

    if (fake__strikes(FAKE_GETPEERNAME))
        return -1;
    if (in.sin_addr.s_addr == 0)
        return __real_getpeername(fd, address, length);
    memcpy(address, &in, sizeof(in));
    *length = sizeof(in);
    return 0;
}

/* ---- Descriptors ---- */

PROTOTYPES(int, close, (int fd));
int
__wrap_close(int fd)
{
    fake__forget_timer(fd);
    if (!fake__strikes(FAKE_CLOSE))
        return __real_close(fd);
    int error = errno;
    __real_close(fd);
    errno = error;
    return -1;
}

/* One word after the command is enough for every command of fcntl and ioctl on the machines we run
 * on. */
#define WITH_WORD(call, name, command_type)                                        \
    int __real_##name(int fd, command_type command, ...);                          \
    int __wrap_##name(int fd, command_type command, ...);                          \
    int __wrap_##name(int fd, command_type command, ...)                           \
    {                                                                              \
        va_list arguments;                                                         \
                                                                                   \
        va_start(arguments, command);                                              \
        void *word = va_arg(arguments, void *);                                    \
        va_end(arguments);                                                         \
        return fake__strikes(FAKE_##call) ? -1 : answer_##name(fd, command, word); \
    }

#define answer_fcntl __real_fcntl
WITH_WORD(FCNTL, fcntl, int)

static int answer_ioctl(int fd, unsigned long command, void *word);

WITH_WORD(IOCTL, ioctl, unsigned long)

static int
answer_ioctl(int fd, unsigned long command, void *word)
{
    if (command != SIOCOUTQ || fake__unacked() < 0)
        return __real_ioctl(fd, command, word);
    *(int *)word = fake__unacked();
    return 0;
}

PLAIN(DUP, -1, int, dup, (int fd), (fd))
PLAIN(DUP2, -1, int, dup2, (int fd, int to), (fd, to))
PLAIN(DUP3, -1, int, dup3, (int fd, int to, int flags), (fd, to, flags))
PLAIN(PIPE, -1, int, pipe, (int fds[2]), (fds))
PLAIN(PIPE2, -1, int, pipe2, (int fds[2], int flags), (fds, flags))
PLAIN(POLL, -1, int, poll, (struct pollfd * fds, nfds_t number, int timeout_ms),
      (fds, number, timeout_ms))
PLAIN(EPOLL_CREATE, -1, int, epoll_create, (int size), (size))
PLAIN(EPOLL_CREATE1, -1, int, epoll_create1, (int flags), (flags))
PLAIN(EPOLL_CTL, -1, int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event),
      (epoll, operation, fd, event))
PLAIN(EVENTFD, -1, int, eventfd, (unsigned value, int flags), (value, flags))
PLAIN(SIGNALFD, -1, int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))

/* ---- Files ---- */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int
__wrap_open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    mode_t mode = __OPEN_NEEDS_MODE(flags) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fake__strikes(FAKE_OPEN) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);
int
__wrap_openat(int directory, const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    mode_t mode = __OPEN_NEEDS_MODE(flags) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fake__strikes(FAKE_OPENAT) ? -1 : __real_openat(directory, path, flags, mode);
}

/* Functions that _FORTIFY_SOURCE calls when flags are not constant. */
int __wrap___open_2(const char *path, int flags);
int
__wrap___open_2(const char *path, int flags)
{
    return __wrap_open(path, flags);
}

int __wrap___openat_2(int directory, const char *path, int flags);
int
__wrap___openat_2(int directory, const char *path, int flags)
{
    return __wrap_openat(directory, path, flags);
}

PLAIN(FOPEN, NULL, FILE *, fopen, (const char *path, const char *mode), (path, mode))
PLAIN(OPENDIR, NULL, DIR *, opendir, (const char *path), (path))
PLAIN(GETDENTS64, -1, ssize_t, getdents64, (int fd, void *entries, size_t length),
      (fd, entries, length))
PLAIN(MEMFD_CREATE, -1, int, memfd_create, (const char *name, unsigned flags), (name, flags))
PLAIN(STAT, -1, int, stat, (const char *path, struct stat *status), (path, status))
PLAIN(FSTAT, -1, int, fstat, (int fd, struct stat *status), (fd, status))
PLAIN(FSTATAT, -1, int, fstatat, (int fd, const char *path, struct stat *status, int flags),
      (fd, path, status, flags))
PLAIN(LSEEK, -1, off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence))
PLAIN(FTRUNCATE, -1, int, ftruncate, (int fd, off_t length), (fd, length))
PLAIN(POSIX_FALLOCATE, errno, int, posix_fallocate, (int fd, off_t at, off_t length),
      (fd, at, length))
PLAIN(FALLOCATE, -1, int, fallocate, (int fd, int mode, off_t at, off_t length),
      (fd, mode, at, length))
PLAIN(FSYNC, -1, int, fsync, (int fd), (fd))
PLAIN(UNLINK, -1, int, unlink, (const char *path), (path))
PLAIN(LINK, -1, int, link, (const char *from, const char *to), (from, to))
PLAIN(MKOSTEMP, -1, int, mkostemp, (char *pattern, int flags), (pattern, flags))
PLAIN(FCHMOD, -1, int, fchmod, (int fd, mode_t mode), (fd, mode))
PLAIN(RENAME, -1, int, rename, (const char *from, const char *to), (from, to))
PLAIN(CHDIR, -1, int, chdir, (const char *path), (path))

/* ---- Memory ---- */

PLAIN(MMAP, MAP_FAILED, void *, mmap,
      (void *address, size_t length, int protection, int flags, int fd, off_t at),
      (address, length, protection, flags, fd, at))
PLAIN(MUNMAP, -1, int, munmap, (void *address, size_t length), (address, length))
PLAIN(MADVISE, -1, int, madvise, (void *address, size_t length, int advice),
      (address, length, advice))
PLAIN(MPROTECT, -1, int, mprotect, (void *address, size_t length, int protection),
      (address, length, protection))
PLAIN(MSYNC, -1, int, msync, (void *address, size_t length, int flags), (address, length, flags))
PLAIN(SHM_OPEN, -1, int, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
ALLOCATING(MALLOC, void *, malloc, (size_t size), (size))
ALLOCATING(CALLOC, void *, calloc, (size_t number, size_t size), (number, size))
ALLOCATING(REALLOC, void *, realloc, (void *old, size_t size), (old, size))
ALLOCATING(ALIGNED_ALLOC, void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALLOCATING(STRDUP, char *, strdup, (const char *text), (text))

PROTOTYPES(int, posix_memalign, (void **memory, size_t alignment, size_t size));
int
__wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    int error = errno;

    if (!fake__strikes(FAKE_POSIX_MEMALIGN))
        return __real_posix_memalign(memory, alignment, size);
    errno = error;
    return ENOMEM;
}

/* ---- Processes ---- */

PLAIN(GETRLIMIT, -1, int, getrlimit, (int resource, struct rlimit *limit), (resource, limit))
PLAIN(SETRLIMIT, -1, int, setrlimit, (int resource, const struct rlimit *limit), (resource, limit))
PLAIN(FORK, -1, pid_t, fork, (void), ())
PLAIN(WAITPID, -1, pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
PLAIN(KILL, -1, int, kill, (pid_t pid, int signal), (pid, signal))
PLAIN(PTHREAD_CREATE, errno, int, pthread_create,
      (pthread_t * thread, const pthread_attr_t *attributes, void *(*function)(void *), void *user),
      (thread, attributes, function, user))
PLAIN(PTHREAD_ATFORK, errno, int, pthread_atfork,
      (void (*prepare)(void), void (*parent)(void), void (*child)(void)), (prepare, parent, child))
PLAIN(SCHED_SETAFFINITY, -1, int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set),
      (pid, size, set))
PLAIN(GETRANDOM, -1, ssize_t, getrandom, (void *data, size_t length, unsigned flags),
      (data, length, flags))
/* geteuid cannot fail. A call that a fault hits returns 0 (root) for error 0, and for any other
 * error a uid that nobody has. */
PLAIN(GETEUID, errno == 0 ? 0 : (uid_t)-1, uid_t, geteuid, (void), ())
/* A call of these four that a fault hits returns 0 if the error is 0. */
PLAIN(SETUID, errno == 0 ? 0 : -1, int, setuid, (uid_t uid), (uid))
PLAIN(SETGID, errno == 0 ? 0 : -1, int, setgid, (gid_t gid), (gid))
PLAIN(CHROOT, errno == 0 ? 0 : -1, int, chroot, (const char *path), (path))
PLAIN(SETGROUPS, errno == 0 ? 0 : -1, int, setgroups, (size_t number, const gid_t *groups),
      (number, groups))

/* Words that the caller did not pass are garbage here (hence the attribute), and the kernel ignores
 * them. A call that a fault hits returns 0 if the error is 0. */
#define WITH_WORDS(call, result, name, first_type)                                             \
    result __real_##name(first_type first, ...);                                               \
    result __wrap_##name(first_type first, ...);                                               \
    __attribute__((no_sanitize("address"))) result __wrap_##name(first_type first, ...)        \
    {                                                                                          \
        va_list arguments;                                                                     \
        long words[6];                                                                         \
                                                                                               \
        va_start(arguments, first);                                                            \
        for (unsigned i = 0; i < 6; i++)                                                       \
            words[i] = va_arg(arguments, long);                                                \
        va_end(arguments);                                                                     \
        return fake__strikes(FAKE_##call) ? -(errno != 0)                                      \
                                          : __real_##name(first, words[0], words[1], words[2], \
                                                          words[3], words[4], words[5]);       \
    }
WITH_WORDS(PRCTL, int, prctl, int)
WITH_WORDS(SYSCALL, long, syscall, long)
