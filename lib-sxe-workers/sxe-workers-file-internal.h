/* SPDX-License-Identifier: MIT
 *
 * What: the file of a unix socket, which this program removes at its end, unless another program
 * has replaced it.
 *
 * Place: sxe-httpd uses it in a process without a supervisor, sxe-workers-handover.c in a
 * supervisor.
 */
#ifndef SXE_WORKERS_FILE_INTERNAL_H
#define SXE_WORKERS_FILE_INTERNAL_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct sxe__socket_file {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* "": there is no file */
    dev_t device;
    ino_t inode;
};

/* Remember the file of the socket at path. If there is no such file, or if the name is abstract,
 * nothing will be removed. */
void sxe__socket_file_note(struct sxe__socket_file *file, const char *path);

/* Like sxe__socket_file_note, but with the address of a socket. If it is not the path of a unix
 * socket, nothing will be removed. */
void sxe__socket_file_note_address(struct sxe__socket_file *file, const struct sockaddr *address,
                                   socklen_t length);

/* Remove the file that was remembered, once. If another process has put another file at the path,
 * it stays. */
void sxe__socket_file_remove(struct sxe__socket_file *file);

#endif
