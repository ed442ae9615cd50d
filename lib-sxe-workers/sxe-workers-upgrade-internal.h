/* SPDX-License-Identifier: MIT
 *
 * What: replaces this program by a new one. At SIGUSR2 the supervisor runs its own command line
 * again, with the present content of the program's file. It passes the listening sockets to the new
 * program as systemd would, with LISTEN_FDS. When the workers of the new program are ready, it
 * sends READY, and the workers of this program drain. If the new program ends before that, or takes
 * longer than SXE__UPGRADE_NS, this program goes on.
 *
 * Place: sxe-workers-loop.c calls it; sxe-workers-inherit.c finds the link to the old program.
 *
 * Shape:
 *     old supervisor                               new supervisor
 *     SIGUSR2: fork, exec -----------------------> takes the sockets over, and the link
 *                                                  starts workers
 *     <------------------------------------ READY  all of them accept
 *       its workers drain; it ends with them
 *     or the link closes: the new program failed, and this one goes on
 *
 * Limits: one new program at a time. Process 1 of a container cannot be replaced.
 */
#ifndef SXE_WORKERS_UPGRADE_INTERNAL_H
#define SXE_WORKERS_UPGRADE_INTERNAL_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "sxe-time.h"

#define SXE__UPGRADE_NS   (60 * SXE_NS_PER_SECOND)
#define SXE__UPGRADE_NAME "sxe-upgrade" /* the name of the link in LISTEN_FDNAMES */

/* ---- In the old program ---- */

/* Run this command line, with this signal mask. If that fails, it is logged. */
void sxe__upgrade_start(char **argv, const sigset_t *mask);

/* call sxe__upgrade_hear when this descriptor is readable; -1: no new program is starting */
int sxe__upgrade_fd(void);
pid_t
sxe__upgrade_pid(void); /* the process of the new program while it is starting; 0: there is none */
uint64_t sxe__upgrade_due_ns(void); /* when to call sxe__upgrade_kill_late */

/* Receive the READY of the new program, and return its process id. 0: it is not ready, or it has
 * failed, which is logged. */
pid_t sxe__upgrade_hear(void);
void sxe__upgrade_kill_late(uint64_t now_ns);

/* This program is ending: end the new program, too, and kill it if it has not ended within_ns
 * later. */
void sxe__upgrade_cancel(uint64_t within_ns);

/* ---- In the new program ---- */

void sxe__upgrade_take_link(int fd);
void sxe__upgrade_say_ready(void);

/* Called in a worker: close the links. */
void sxe__upgrade_forget(void);

#endif
