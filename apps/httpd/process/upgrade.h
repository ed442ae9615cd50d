/* SPDX-License-Identifier: MIT
 *
 * What: a new program in place of this one. At SIGUSR2 the supervisor runs its own command line
 * again, from the program file that is there now, and passes it the listening sockets as systemd
 * would, in LISTEN_FDS. When its workers are ready, the new program sends READY, and the workers of
 * this one drain. A new program that ends before, or takes longer than UPGRADE_NS, changes nothing.
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
#define UPGRADE_NAME "sxe-upgrade" /* the name of the link in LISTEN_FDNAMES */

/* ---- In the old program ---- */

/* Run this command line, with this signal mask. A failure is logged. */
void upgrade_start(char **argv, const sigset_t *mask);

/* when this descriptor is readable, call upgrade_hear; -1: no new program is starting */
int upgrade_fd(void);
pid_t upgrade_pid(void); /* the process of the new program that is starting; 0: there is none */
uint64_t upgrade_due_ns(void); /* when to call upgrade_kill_late */

/* Receive the new program's READY: its process id. 0: it is not ready, or it has failed, which is
 * logged. */
pid_t upgrade_hear(void);
void upgrade_kill_late(uint64_t now_ns);

/* This program is ending: end the new program too, and kill it after within_ns. */
void upgrade_cancel(uint64_t within_ns);

/* ---- In the new program ---- */

void upgrade_take_link(int fd);
void upgrade_say_ready(void);

/* In a worker: close the links. */
void upgrade_forget(void);

#endif
