/* SPDX-License-Identifier: MIT
 *
 * Remembering a socket's file by device and inode, and removing it.
 */
#include "socket-file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool
is_socket(const char *path, struct stat *found)
{
    return *path != '\0' && lstat(path, found) == 0 && S_ISSOCK(found->st_mode);
}

void
socket_file_note(struct socket_file *file, const char *path)
{
    struct stat found;

    *file = (struct socket_file){.path = ""};
    if (*path == '@' || !is_socket(path, &found))
        return;
    snprintf(file->path, sizeof(file->path), "%s", path);
    file->device = found.st_dev;
    file->inode = found.st_ino;
}

void
socket_file_note_address(struct socket_file *file, const struct sockaddr *address, socklen_t length)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)address;
    const size_t before = offsetof(struct sockaddr_un, sun_path);
    char path[sizeof(file->path)] = "";

    if (address->sa_family == AF_UNIX && length > before && length <= sizeof(*un))
        memcpy(path, un->sun_path, length - before);
    socket_file_note(file, path);
}

void
socket_file_remove(struct socket_file *file)
{
    struct stat found;

    if (is_socket(file->path, &found) && found.st_dev == file->device &&
        found.st_ino == file->inode)
        unlink(file->path);
    file->path[0] = '\0';
}
