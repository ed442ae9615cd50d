/* SPDX-License-Identifier: MIT
 *
 * What: work that blocks, such as opening files and looking up names, done by a few threads beside
 * the loop; when work is done, the loop calls its done().
 *
 * Place: handlers submit it; on top of sxe.h. Only run() is called in those threads.
 *
 * Shape:
 *        the loop's thread                     threads "sxe-work"
 *
 *     sxe_work_submit ----> [ waiting ] -------> run
 *                                                 |
 *     done <--------------- [ finished ] <--------'
 *
 * The program owns each struct sxe_work, mostly as a member of its own struct about the same task,
 * and lends it from submit until done is called: nothing is allocated, nothing copied, any number
 * may wait. Both lines are first in, first out.
 *
 * Rules: 1 done is called once for each submit, in the loop, and may do all that other callbacks
 * may: write, submit again, free the work. It is not called for work that was cancelled, or that
 * was not finished when sxe_fini was called. 2 run calls nothing of lib-sxe but the log: sockets
 * belong to the loop's thread, and what run uses is run's alone until done. 3 when done is called,
 * a socket may be gone, and another socket may have its sxe_extra(): keep the work elsewhere, with
 * the sxe_handle() of the socket. 4 the loop does not end while work is under way. 5 fork before
 * sxe_init: a child has no threads.
 *
 * Limits: 1,024 threads, each with a stack of 256 KiB and all signals blocked, started by sxe_init,
 * or by the first submit if the configuration has lazy_threads. At most as many works run at a time
 * as there are threads: a look-up that takes 5 s occupies a thread for 5 s. A part of the program
 * whose work may hang (looking up names, a file system) registers a group. A group's works run in
 * no more threads than it registered, so the works of other groups always have theirs. A group's
 * line is first in, first out; groups take turns. If the system refuses to start a thread, the
 * other threads do all the work, and once a second a submit tries again to start it. In one turn of
 * the loop done is called for at most 64 works.
 *
 * Example:
 *     struct measure {
 *         struct sxe_work work;
 *         struct stat status;
 *     };
 *     static void run(struct sxe_work *work)
 *     {
 *         stat("/etc/passwd", &((struct measure *)work)->status);
 *     }
 *     static void done(struct sxe_work *work)
 *     {
 *         printf("%lld bytes\n", (long long)((struct measure *)work)->status.st_size);
 *     }
 *     static struct measure measure = {.work = {.run = run, .done = done}};
 *     int main(void)
 *     {
 *         sxe_register(1, 0);
 *         sxe_work_register(SXE_WORK_THREADS);
 *         return sxe_init() < 0 || sxe_work_submit(&measure.work) < 0 || sxe_run() < 0;
 *     }
 */
#ifndef SXE_WORK_H
#define SXE_WORK_H

#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_WORK_THREADS     4 /* enough threads for most programs */
#define SXE_WORK_THREADS_MAX 1024
#define SXE_WORK_GROUPS_MAX  7

/* Set run and done, and all other fields to zero, before the first sxe_work_submit. */
struct sxe_work {
    void (*run)(struct sxe_work *);  /* rw: called in a thread; may block */
    void (*done)(struct sxe_work *); /* rw: called later, in the loop */
    void *user;                      /* rw */
    struct sxe_work *next;           /* private */
    struct sxe_work *prev;           /* private */
    unsigned state;                  /* private */
    unsigned group;                  /* rw: a result of sxe_work_register_group, or 0 */
};

/* Call this before sxe_init, any number of times. `threads` is how many threads this part of the
 * program wants; the largest number counts. If no part calls this, there are no threads. */
SXE_PUBLIC void sxe_work_register(unsigned threads);

/* Call this before sxe_init: it registers threads for works of a new group, in addition to the
 * threads of other groups. Returns the group's number; or 0, the group of all works without one,
 * after SXE_WORK_GROUPS_MAX groups, or when the loop runs already. */
SXE_PUBLIC unsigned sxe_work_register_group(unsigned threads);

/* Have a thread run this work. 0; -EBUSY: it is under way already; -EAGAIN: the system refuses to
 * start even one thread now; -EINVAL: sxe_init was not called, or no thread was registered before
 * it. After an error neither run nor done is called. */
SXE_PUBLIC SXE_RETURN sxe_work_submit(struct sxe_work *work);

/* 0: run had not begun, and neither run nor done will be called. -EBUSY: run began, and done will
 * be called. -EALREADY: this work is not under way. */
SXE_PUBLIC SXE_RETURN sxe_work_cancel(struct sxe_work *work);

#ifdef __cplusplus
}
#endif

#endif
