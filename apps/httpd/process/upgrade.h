/* SPDX-License-Identifier: MIT
 *
 * What: a new program in place of this one. SIGUSR2 has the supervisor run its own command line
 * again, from the file that is there now, with the sockets that listen inherited as by a service
 * that systemd activates. When the new program's workers are ready it says so, and the workers of
 * this one drain. A new program that ends first, or takes longer than UPGRADE_NS, changes nothing.
 *
 * Place: supervisor-loop.c calls it; inherit.c finds the link to the old program.
 *
 * Shape:
 *     old supervisor                               new supervisor
 *     SIGUSR2: fork, exec -----------------------> inherit.c: sockets to handover.c, and the link
 *                                                  starts workers
 *     <------------------------------------ READY  all of them accept
 *       its workers drain; it ends with them
 *     or the link closes: the new program failed, and this one goes on
 *
 * Limits: one new program at a time. Process 1 of a container cannot be replaced.
 */
#ifndef UPGRADE_H
#define UPGRADE_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "sxe-time.h"

#define UPGRADE_NS   (60 * SXE_NS_PER_SECOND)
#define UPGRADE_NAME "sxe-upgrade" /* of the link, in LISTEN_FDNAMES */

/* ---- In the old program ---- */

/* Run this command line, with that signal mask. A failure is logged. */
void upgrade_start(char **argv, const sigset_t *mask);

int upgrade_fd(void);          /* readable: call upgrade_hear; -1: no new program is starting */
pid_t upgrade_pid(void);       /* of the new program that is starting; 0: there is none */
uint64_t upgrade_due_ns(void); /* when to call upgrade_kill_late */

/* The id of the new program, which is ready. 0: go on; if it has ended, that is logged. */
pid_t upgrade_hear(void);
void upgrade_kill_late(uint64_t now_ns);

/* This program ends: have the new one end, too, within that time. */
void upgrade_cancel(uint64_t within_ns);

/* ---- In the new program ---- */

void upgrade_take_link(int fd);
void upgrade_say_ready(void);

/* In a worker: close the links. */
void upgrade_forget(void);

#endif
