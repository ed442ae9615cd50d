/* SPDX-License-Identifier: MIT
 *
 * What: the addresses of a name, looked up by getaddrinfo(3) in threads while the loop goes on. The
 * rules of /etc/hosts and /etc/nsswitch.conf hold.
 *
 * Place: programs and lib-sxe-lua look names up before they connect; on top of sxe-work.h.
 *
 * Shape: a table of names that all look-ups of the thread share.
 *
 *     sxe_resolve --- number, or known? --> 1: result
 *          |
 *          '--> [ asking ] --> a thread: getaddrinfo --> done of each look-up --> [ known ]
 *
 *     known: for 5 s after an answer, 1 s after an error; then the next look-up asks again
 *
 * Rules: 1 the program owns each struct sxe_resolve, and lends it from sxe_resolve until done is
 * called or sxe_resolve_cancel returns. 2 done is called once, in the loop, and may do all that
 * other callbacks may: look up again, connect, free its struct. It is not called after a cancel, or
 * after sxe_fini. 3 look-ups of one host (in upper or lower case) and family that are under way at
 * the same time share one call of getaddrinfo. 4 there is no time limit: a program that wants one
 * starts a timer that calls sxe_resolve_cancel. getaddrinfo then goes on in its thread, and its
 * answer is kept for the next look-up.
 *
 * Limits: 256 names; a new look-up drops the name whose answer is oldest, or returns -EAGAIN if all
 * names are being asked for. 8 addresses of a name. 4 threads in a group of their own (sxe-work.h),
 * so that a name server that does not reply delays no work on files. Memory: 210 KiB a thread, made
 * by sxe_resolve_register, freed by sxe_fini.
 *
 * Example:
 *     static void done(struct sxe_resolve *look_up)
 *     {
 *         if (look_up->result.error != 0)
 *             puts(gai_strerror(look_up->result.error));
 *         else
 *             puts(look_up->result.ip[0]);
 *     }
 *     static struct sxe_resolve look_up = {.done = done};
 *     int main(void)
 *     {
 *         sxe_register(1, 0);
 *         return sxe_resolve_register() < 0 || sxe_init() < 0 ||
 *                sxe_resolve(&look_up, "localhost", AF_UNSPEC) < 0 || sxe_run() < 0;
 *     }
 */
#ifndef SXE_RESOLVE_H
#define SXE_RESOLVE_H

#include <netdb.h>

#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_RESOLVE_NAMES_MAX     256
#define SXE_RESOLVE_ADDRESSES_MAX 8
#define SXE_RESOLVE_HOST_MAX      255 /* the most bytes of a host's name */
#define SXE_RESOLVE_IP_SIZE       64
#define SXE_RESOLVE_THREADS       4
#define SXE_RESOLVE_KNOWN_S       5 /* how many seconds an answer is kept */
#define SXE_RESOLVE_FAILED_S      1 /* how many seconds an error is kept */

struct sxe_resolved {
    int error; /* getaddrinfo's error, for gai_strerror; 0: an address was found */
    /* how many addresses; IPv4 and IPv6 alternate, beginning with getaddrinfo's first one */
    unsigned number;
    /* each address as text, for sxe_connect */
    char ip[SXE_RESOLVE_ADDRESSES_MAX][SXE_RESOLVE_IP_SIZE];
};

/* Set done, and all other fields to zero, before the first sxe_resolve. */
struct sxe_resolve {
    void (*done)(struct sxe_resolve *); /* rw: called later, in the loop */
    void *user;                         /* rw */
    struct sxe_resolved result;         /* ro: in done, or after sxe_resolve returned 1 */
    struct sxe_resolve *next;           /* private */
    struct sxe_resolve *prev;           /* private */
    struct sxe__name *name;             /* private */
};

/* Before sxe_init, any number of times: make the table, and register its threads. 0 or -ENOMEM.
 * After sxe_init it can still be called: the look-ups then run in the threads that exist already.
 * If no threads exist, only addresses as text are known. */
SXE_PUBLIC SXE_RETURN sxe_resolve_register(void);

/* Look up the addresses of a host, of a family: AF_INET, AF_INET6 or AF_UNSPEC for both. 1: they
 * are known, or the host is an address already: result is set, and done will not be called. 0: done
 * will be called. -EAGAIN: too many names are being asked for, or the system gives no thread;
 * -EBUSY: this look-up is under way; -EINVAL: sxe_resolve_register or sxe_init was not called, or
 * the program has no threads; -ENAMETOOLONG. */
SXE_PUBLIC SXE_RETURN sxe_resolve(struct sxe_resolve *look_up, const char *host, int family);

/* 0: done will not be called. -EALREADY: this look-up is not under way. */
SXE_PUBLIC SXE_RETURN sxe_resolve_cancel(struct sxe_resolve *look_up);

#ifdef __cplusplus
}
#endif

#endif
