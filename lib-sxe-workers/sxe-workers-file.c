/* SPDX-License-Identifier: MIT
 *
 * Remembering a socket's file by device and inode, and removing it.
 */
#include "sxe-workers-file-internal.h"

#include <fcntl.h>
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
sxe__socket_file_note(struct sxe__socket_file *file, const char *path)
{
    struct stat found;

    *file = (struct sxe__socket_file){.path = ""};
    if (*path == '@' || !is_socket(path, &found))
        return;
    snprintf(file->path, sizeof(file->path), "%s", path);
    file->device = found.st_dev;
    file->inode = found.st_ino;
}

void
sxe__socket_file_note_address(struct sxe__socket_file *file, const struct sockaddr *address,
                              socklen_t length)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)address;
    const size_t before = offsetof(struct sockaddr_un, sun_path);
    char path[sizeof(file->path)] = "";

    if (address->sa_family == AF_UNIX && length > before && length <= sizeof(*un))
        memcpy(path, un->sun_path, length - before);
    sxe__socket_file_note(file, path);
}

/* Open the directory of a path. The path is cut after the directory; *name becomes the last part.
 * -1: the directory cannot be opened. */
static int
open_socket_directory(char *path, const char **name)
{
    char *slash = strrchr(path, '/');
    const char *directory = slash == NULL ? "." : slash == path ? "/" : path;

    *name = slash == NULL ? path : slash + 1;
    if (slash != NULL)
        *slash = '\0';
    return open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Remove the file. fstatat and unlinkat use the same open directory. So if another process replaces
 * the directory by a link in between, no file in another directory is removed. */
void
sxe__socket_file_remove(struct sxe__socket_file *file)
{
    const char *name;
    struct stat found;
    int directory;

    if (file->path[0] == '\0')
        return;
    directory = open_socket_directory(file->path, &name);
    if (directory >= 0 && fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISSOCK(found.st_mode) && found.st_dev == file->device && found.st_ino == file->inode)
        (void)unlinkat(directory, name, 0);
    if (directory >= 0)
        close(directory);
    file->path[0] = '\0';
}
