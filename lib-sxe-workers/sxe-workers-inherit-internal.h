/* SPDX-License-Identifier: MIT
 *
 * What: takes over listening sockets that the program inherits from the program that started it.
 * This is systemd's socket activation, as with sd_listen_fds(3), but without its library.
 *
 * Place: sxe_workers_run and sxe-httpd call it before anything is opened;
 * sxe-workers-handover.c keeps the sockets.
 *
 * Shape: if the variable LISTEN_PID is the id of this process, LISTEN_FDS is the number of the
 * sockets, which are the descriptors from 3 on. LISTEN_FDNAMES has their names, with colons between
 * them. The variables are removed from the environment, so that programs which a script runs do not
 * use them.
 *
 * Limits: SXE__HANDOVER_SOCKETS sockets; TCP and unix streams that listen.
 */
#ifndef SXE_WORKERS_INHERIT_INTERNAL_H
#define SXE_WORKERS_INHERIT_INTERNAL_H

/* Put the sockets into the table of sxe-workers-handover.c. A second call does nothing, because it
 * finds no variables. 0, also if there are none; -errno after a message on standard error. */
int sxe__inherit_sockets(const char *program);

#endif
