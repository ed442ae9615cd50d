/* SPDX-License-Identifier: MIT
 *
 * What: finds the process that listens at a port, or at the path of a unix socket. A server calls
 * it if the port or path could not be bound because it is in use.
 *
 * Place: sxe-httpd calls it after EADDRINUSE, so that its message names the process; sxe-http calls
 * it to say which server it measured. It reads Linux's /proc: the tables of sockets, then the open
 * files of each process.
 *
 * Shape:
 *     net/tcp, net/tcp6   listens on that port, at an address that overlaps  -> inode, user
 *     net/unix            listens on that path                               -> inode
 *     PID/fd/N            is "socket:[inode]"                                -> PID
 *     PID/comm            "nginx"
 *
 * If several processes share a socket, the one with the lowest PID is named, mostly the parent.
 *
 * Limits: only root can see the open files of other users' processes. Others learn only the user
 * that listens at a port, and nothing about a path. A path is found as it was given to bind(2), not
 * in another spelling.
 *
 * Example:
 *     char holder[PORT_HOLDER_MAX];
 *
 *     port_holder_of_port("/proc", options->ip, options->port, holder, sizeof(holder));
 *     fprintf(stderr, "sxe-httpd: %s; stop it or choose another port with -p\n", holder);
 */
#ifndef PORT_HOLDER_H
#define PORT_HOLDER_H

#include <stddef.h>

#define PORT_HOLDER_MAX 256 /* bytes that are enough for each of the texts */

/* Write "port 8000 is in use by nginx (pid 123)", or "... by a process of user 33 whose name is
 * hidden from us", or "... by a process that /proc does not show", cut to size. proc: the path of
 * /proc. ip: the address that could not be bound; NULL, or a text that is no IP address, stands for
 * any address. */
void port_holder_of_port(const char *proc, const char *ip, unsigned short port, char *text,
                         size_t size);

/* Write "/run/web.sock is in use by nginx (pid 123)"; "@name" is an abstract name. */
void port_holder_of_path(const char *proc, const char *path, char *text, size_t size);

/* The PID of the process that listens at the port of this address; 0: no process does, or it is
 * hidden from us. */
long port_holder_pid_of_port(const char *proc, const char *ip, unsigned short port);
long port_holder_pid_of_path(const char *proc, const char *path);

#endif
