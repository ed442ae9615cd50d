/* SPDX-License-Identifier: MIT
 *
 * What: the file of a unix socket, which this program removes at its end, unless another program
 * has replaced it.
 *
 * Place: listening.c uses it in a process without a supervisor, handover.c in a supervisor.
 */
#ifndef HTTPD_SOCKET_FILE_H
#define HTTPD_SOCKET_FILE_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct socket_file {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* "": no file */
    dev_t device;
    ino_t inode;
};

/* Note the socket at path. If there is none, or the name is abstract, nothing will be removed. */
void socket_file_note(struct socket_file *file, const char *path);

/* Like socket_file_note, with a socket's address. If it is no path of a unix socket, nothing will
 * be removed. */
void socket_file_note_address(struct socket_file *file, const struct sockaddr *address,
                              socklen_t length);

/* Remove the noted file, once. A file that another process put at that path stays. */
void socket_file_remove(struct socket_file *file);

#endif
