/* SPDX-License-Identifier: MIT
 *
 * What: the file of a unix socket, which is removed at the end if it is still the one that was
 * made.
 * Place: service.c removes that of a process on its own, handover.c those of a supervisor.
 */
#ifndef HTTPD_SOCKET_FILE_H
#define HTTPD_SOCKET_FILE_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct socket_file {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* "": none */
    dev_t device;
    ino_t inode;
};

/* Note what stands at the path now. Not a socket, or an abstract name: nothing will be removed. */
void socket_file_note(struct socket_file *file, const char *path);

/* The same, for the address of any socket. */
void socket_file_note_address(struct socket_file *file, const struct sockaddr *address,
                              socklen_t length);

/* Once. Another process's file at that path stays. */
void socket_file_remove(struct socket_file *file);

#endif
