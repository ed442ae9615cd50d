/* SPDX-License-Identifier: MIT
 *
 * What: takes over listening sockets that the program inherits from the program that started it.
 * This is systemd's socket activation, as with sd_listen_fds(3), but without its library.
 *
 * Place: httpd.c calls it before anything is opened; handover.c keeps the sockets; listening.c
 * serves at them.
 *
 * Shape: if the variable LISTEN_PID is the id of this process, LISTEN_FDS is the number of the
 * sockets, which are the descriptors from 3 on. LISTEN_FDNAMES has their names, with colons between
 * them. The variables are removed from the environment, so that programs which a script runs do not
 * use them.
 *
 * Limits: HANDOVER_SOCKETS sockets; TCP and unix streams that listen.
 */
#ifndef INHERIT_H
#define INHERIT_H

/* Put the sockets into handover.c's table. 0, also if there are none; -errno after a message on
 * standard error. */
int inherit_sockets(void);

#endif
