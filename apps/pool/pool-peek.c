/* SPDX-License-Identifier: MIT
 *
 * Reads the heads of pool files without opening the pools: for the command list, and to find the
 * pool that the argument POOL names.
 */
#include "pool-peek.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sxe-dict-internal.h"
#include "sxe-pool-file-internal.h"

#define SHM             "/dev/shm"
#define SIZE_PER_SECOND ((off_t)64 << 20)
#define SECONDS_MAX     60

/* ---- A head ---- */

static bool
is_byte_locked(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static unsigned
count_users(int fd)
{
    unsigned users = 0;

    for (unsigned slot = 0; slot < SXE_POOL_SLOTS; slot++)
        users += is_byte_locked(fd, SXE__POOL_SLOT_BYTE + slot);
    return users;
}

/* Read the head of a pool file. False: the file holds no pool. */
static bool
read_pool_head(int fd, struct pool_peek *peek)
{
    struct sxe__pool_head head = {0};
    struct sxe__pool_opening opening = {.why = peek->why, .what = peek->which, .fd = fd};

    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.magic, SXE__POOL_FILE_MAGIC, sizeof(head.magic)) != 0)
        return false;
    if (sxe__pool_head_read(&opening) != 0)
        return true;
    memcpy(peek->name, opening.head.name, sizeof(peek->name));
    memcpy(peek->state_names, opening.head.state_names, sizeof(peek->state_names));
    peek->number = opening.head.number;
    peek->states = opening.head.states;
    peek->shards = opening.head.shards;
    peek->element_size = opening.head.element_size;
    peek->users = count_users(fd);
    peek->is_closed = sxe__pool_is_closed(&head);
    return true;
}

/* Open a file only if it is regular, because opening another, such as a device, may have an effect.
 * Returns a descriptor, or -1. */
static int
open_pool_at(int directory, const char *name, int flags)
{
    struct stat status;

    if (fstatat(directory, name, &status, flags == O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) != 0 ||
        !S_ISREG(status.st_mode))
        return -1;
    return openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
}

static bool
peek_at_file(int directory, const char *name, int flags, struct pool_peek *peek)
{
    const int fd = open_pool_at(directory, name, flags);
    struct stat status;

    if (fd == -1)
        return false;
    const bool is_pool = fstat(fd, &status) == 0 && read_pool_head(fd, peek);
    close(fd);
    peek->device = status.st_dev;
    peek->inode = status.st_ino;
    return is_pool;
}

/* Read the states' names from the copy of the head at the end of the file. False: the copy is not
 * whole. */
static bool
peek_at_copy(const char *path, struct pool_peek *peek)
{
    const int fd = open_pool_at(AT_FDCWD, path, 0);
    struct sxe__pool_head copy;

    if (fd == -1)
        return false;
    const bool is_whole = sxe__pool_head_read_copy(fd, &copy);
    close(fd);
    if (is_whole)
        snprintf(peek->state_names, sizeof(peek->state_names), "%.*s",
                 (int)sizeof(peek->state_names) - 1, copy.state_names);
    return is_whole;
}

bool
pool_peek_file(const char *path, struct pool_peek *peek)
{
    *peek = (struct pool_peek){0};
    const bool is_pool = peek_at_file(AT_FDCWD, path, 0, peek);
    return is_pool && peek->why[0] == '\0' ? true : peek_at_copy(path, peek) || is_pool;
}

unsigned
pool_peek_busy_ms(const char *path)
{
    const int fd = open_pool_at(AT_FDCWD, path, 0);
    struct stat status;
    off_t seconds = 0;

    if (fd == -1)
        return 0;
    if (is_byte_locked(fd, SXE__POOL_OPEN_BYTE) && fstat(fd, &status) == 0)
        seconds = 1 + status.st_size / SIZE_PER_SECOND;
    close(fd);
    return 1000 * (unsigned)(seconds < SECONDS_MAX ? seconds : SECONDS_MAX);
}

bool
pool_peek_is_dict(const struct pool_peek *peek)
{
    return strcmp(peek->state_names, SXE__DICT_STATE_NAMES) == 0;
}

bool
pool_peek_is_new(const struct pool_peek *peek, struct pool_seen *seen)
{
    for (unsigned i = 0; i < seen->number; i++) {
        if (seen->file[i].inode == peek->inode && seen->file[i].device == peek->device)
            return false;
    }
    if (seen->number < POOL_SEEN_MAX) {
        seen->file[seen->number].device = peek->device;
        seen->file[seen->number].inode = peek->inode;
        seen->number++;
    }
    return true;
}

/* ---- Directories ---- */

int
pool_peek_directory(const char *directory, POOL_PEEK_FOUND found, void *user)
{
    const bool is_shm = strcmp(directory, SHM) == 0;
    DIR *entries = opendir(directory);
    const struct dirent *entry;

    if (entries == NULL)
        return errno;
    while ((entry = readdir(entries)) != NULL) {
        struct pool_peek peek = {0};

        snprintf(peek.which, sizeof(peek.which), "%s%s%s", is_shm ? "" : directory,
                 is_shm ? "" : "/", entry->d_name);
        if (peek_at_file(dirfd(entries), entry->d_name, O_NOFOLLOW, &peek))
            found(user, &peek);
    }
    closedir(entries);
    return 0;
}

/* ---- Processes ---- */

/* Set which to the path of an open file, if the path still leads to this file. */
static void
name_open_file(int directory, const char *descriptor, struct pool_peek *peek)
{
    char path[PATH_MAX];
    struct stat status;
    const ssize_t length = readlinkat(directory, descriptor, path, sizeof(path) - 1);

    path[length < 0 ? 0 : length] = '\0';
    if (stat(path, &status) == 0 && status.st_dev == peek->device && status.st_ino == peek->inode)
        snprintf(peek->which, sizeof(peek->which), "%s", path);
}

int
pool_peek_process(int process, POOL_PEEK_FOUND found, void *user)
{
    char path[32];
    const struct dirent *entry;

    snprintf(path, sizeof(path), "/proc/%d/fd", process);
    DIR *entries = opendir(path);
    if (entries == NULL)
        return errno;
    while ((entry = readdir(entries)) != NULL) {
        struct pool_peek peek = {
            .process = process,
            .descriptor = (int)strtol(entry->d_name, NULL, 10),
        };

        snprintf(peek.which, sizeof(peek.which), "%d:%d", process, peek.descriptor);
        if (!peek_at_file(dirfd(entries), entry->d_name, 0, &peek))
            continue;
        name_open_file(dirfd(entries), entry->d_name, &peek);
        found(user, &peek);
    }
    closedir(entries);
    return 0;
}
