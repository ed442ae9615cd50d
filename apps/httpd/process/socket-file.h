/* SPDX-License-Identifier: MIT
 *
 * What: the file of a unix socket, which this program removes at its end, unless another program
 * has replaced it.
 *
 * Place: handover.c uses it for the sockets of the server, and admin-serve.c for that of the admin
 * process.
 */
#ifndef HTTPD_SOCKET_FILE_H
#define HTTPD_SOCKET_FILE_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct socket_file {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* "": there is no file */
    dev_t device;
    ino_t inode;
};

/* Remember the file of the socket at path. If there is no such file, or if the name is abstract,
 * nothing will be removed. */
void socket_file_note(struct socket_file *file, const char *path);

/* Like socket_file_note, but with the address of a socket. If it is not the path of a unix socket,
 * nothing will be removed. */
void socket_file_note_address(struct socket_file *file, const struct sockaddr *address,
                              socklen_t length);

/* Remove the file that was remembered, once. If another process has put another file at the path,
 * it stays. */
void socket_file_remove(struct socket_file *file);

#endif
