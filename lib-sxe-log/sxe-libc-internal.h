/* SPDX-License-Identifier: MIT
 *
 * Functions of glibc that other C libraries lack: musl, and glibc before 2.32. Each substitute has
 * a name of its own, so that tests compare it with glibc's. Below the substitutes, glibc's names
 * become theirs where the C library has no such function.
 */
#ifndef SXE_LIBC_INTERNAL_H
#define SXE_LIBC_INTERNAL_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* System calls that glibc before 2.32 does not name. New calls have one number on all
 * processors. */
#ifndef SYS_openat2
#    define SYS_openat2 437
#endif

/* strerrordesc_np(3): the text of an error in English; NULL: there is no such error. strerror has a
 * text for these, too: "Unknown error 4711" in glibc, the text of 0 in musl. */
static inline const char *
sxe__libc_error_text(int error)
{
    const char *text = strerror(error);

    if (error == 0)
        return "Success";
    return strncmp(text, "Unknown error", 13) == 0 || strcmp(text, strerror(0)) == 0 ? NULL : text;
}

/* sigabbrev_np(3): the name of a signal without "SIG"; NULL: it has none. */
static inline const char *
sxe__libc_signal_name(int number)
{
    static const char names[][8] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
        [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
        [SIGIO] = "POLL",   [SIGPWR] = "PWR",       [SIGSYS] = "SYS"};
    const size_t count = sizeof(names) / sizeof(names[0]);

    return number < 0 || (size_t)number >= count || !names[number][0] ? NULL : names[number];
}

/* preadv2(2), for machines of 64 bits. */
static inline ssize_t
sxe__libc_preadv2(int fd, const struct iovec *parts, int count, off_t from, int flags)
{
    return syscall(SYS_preadv2, fd, parts, (long)count, (long)from, 0L, (long)flags);
}

#if !defined(__GLIBC__) || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 32)
#    define strerrordesc_np sxe__libc_error_text
#    define sigabbrev_np    sxe__libc_signal_name
#endif
#ifndef RWF_NOWAIT
#    define RWF_NOWAIT 8
#    define preadv2    sxe__libc_preadv2
#endif

/* Let stdout or stderr be another stream. musl does not allow this: then the value is false. */
#ifdef __GLIBC__
#    define SXE__LIBC_SET_STREAM(stream, value) ((stream) = (value), true)
#else
#    define SXE__LIBC_SET_STREAM(stream, value) ((void)(value), false)
#endif

#endif
