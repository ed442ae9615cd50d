/* SPDX-License-Identifier: MIT
 *
 * The memory of a pool is one piece, from this process's own page to the last extra byte. It is
 * reserved as a whole; then the file is mapped over all of it except that page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "sxe-pool-opening-private.h"

#define PART_SIZE ((off_t)64 << 20)

/* ---- Files ---- */

static int
open_pool_memory(struct sxe__pool_opening *opening)
{
    char name[sizeof("sxe-pool-") + SXE_POOL_NAME_MAX];

    snprintf(name, sizeof(name), "sxe-pool-%s", opening->head.name);
    opening->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return opening->fd == -1 ? sxe__pool_refuse_errno(opening, "make memory to share") : 0;
}

/* Open the file, or make it if spec.number is not 0. Returns 0 or an errno. */
static int
open_or_make(struct sxe__pool_opening *opening)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

    opening->is_made = false;
    opening->fd = open(opening->path, flags);
    if (opening->fd != -1)
        return 0;
    if (errno != ENOENT || opening->spec.number == 0)
        return errno;
    opening->fd = open(opening->path, flags | O_CREAT | O_EXCL, 0600);
    opening->is_made = opening->fd != -1;
    return opening->is_made ? 0 : errno;
}

int
sxe__pool_file_path(struct sxe__pool_opening *opening)
{
    const char *directory = strchr(opening->spec.file, '/') == NULL ? "/dev/shm/" : "";
    const int length =
        snprintf(opening->path, sizeof(opening->path), "%s%s", directory, opening->spec.file);

    if (opening->spec.file[0] == '\0')
        return sxe__pool_refuse(opening, EINVAL, "its file's name is empty: give a path, or none");
    if ((size_t)length >= sizeof(opening->path))
        return sxe__pool_refuse(opening, ENAMETOOLONG, "its path is longer than %zu bytes",
                                sizeof(opening->path) - 1);
    opening->what = opening->path;
    return 0;
}

int
sxe__pool_file_open(struct sxe__pool_opening *opening)
{
    if (opening->spec.file == NULL)
        return open_pool_memory(opening);
    const int named = sxe__pool_file_path(opening);
    if (named < 0)
        return named;
    /* Between the two open calls another process may make the file (EEXIST), or remove it (ENOENT):
     * try again. */
    int error = open_or_make(opening);
    const bool may_make = opening->spec.number != 0;
    for (unsigned tries = 0; may_make && (error == EEXIST || error == ENOENT) && tries < 100;
         tries++)
        error = open_or_make(opening);
    if (error == ELOOP)
        return sxe__pool_refuse(opening, error,
                                "it is a symbolic link, which is not followed: give the file's own "
                                "path");
    errno = error;
    return error == 0 ? 0 : sxe__pool_refuse_errno(opening, "open the file");
}

int
sxe__pool_open_anew(int fd)
{
    char path[sizeof("/proc/self/fd/-2147483648")];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int
sxe__pool_file_check(struct sxe__pool_opening *opening)
{
    struct stat status;

    if (fstat(opening->fd, &status) != 0)
        return sxe__pool_refuse_errno(opening, "look at the file");
    if (!S_ISREG(status.st_mode))
        return sxe__pool_refuse(opening, EMEDIUMTYPE, "it is not a regular file: give another");
    if (status.st_uid != geteuid())
        return sxe__pool_refuse(opening, EPERM,
                                "the file is user %u's, this process is user %u's: a pool is for "
                                "the processes of one user",
                                status.st_uid, geteuid());
    opening->is_file = status.st_nlink != 0;
    /* Memory without a name can only be opened by processes that were given its descriptor,
     * whatever its mode. */
    if (opening->is_file && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return sxe__pool_refuse(opening, EPERM,
                                "others may write to the file (mode %04o): chmod 0600, if what is "
                                "in it can be trusted",
                                status.st_mode & 07777);
    return 0;
}

int
sxe__pool_file_is_gone(const struct sxe__pool_opening *opening)
{
    struct stat here;
    struct stat there;

    if (opening->path[0] == '\0')
        return 0;
    if (fstat(opening->fd, &here) != 0)
        return sxe__pool_refuse_errno(opening, "look at the file");
    if (stat(opening->path, &there) != 0)
        return errno == ENOENT ? 1 : sxe__pool_refuse_errno(opening, "look at its path");
    return here.st_ino != there.st_ino || here.st_dev != there.st_dev;
}

/* Allocate in parts: a signal undoes the whole posix_fallocate call that it interrupts. */
int
sxe__pool_file_allocate(const struct sxe__pool_opening *opening)
{
    const off_t size = (off_t)opening->head.file_size;
    int error = 0;

    for (off_t from = 0; from < size && error == 0; from += PART_SIZE) {
        const off_t length = size - from < PART_SIZE ? size - from : PART_SIZE;

        do
            error = posix_fallocate(opening->fd, from, length);
        while (error == EINTR);
    }
    errno = error;
    return error == 0 ? 0 : sxe__pool_refuse_errno(opening, "have room for all of the file");
}

/* Refuse a file beyond RLIMIT_FSIZE: to allocate it would raise SIGXFSZ. */
static int
check_file_limit(const struct sxe__pool_opening *opening)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || opening->head.file_size <= limit.rlim_cur)
        return 0;
    return sxe__pool_refuse(opening, EFBIG,
                            "it takes %llu bytes, and this process may only write %llu to a file "
                            "(ulimit -f)",
                            (unsigned long long)opening->head.file_size,
                            (unsigned long long)limit.rlim_cur);
}

/* Refuse a file that has no room: an allocation that fails in the end would use up the file system
 * (in /dev/shm, the memory) meanwhile. */
static int
check_file_room(const struct sxe__pool_opening *opening)
{
    struct statvfs status;

    if (fstatvfs(opening->fd, &status) != 0 || status.f_blocks == 0)
        return 0;
    const uint64_t room = (uint64_t)status.f_bfree * status.f_frsize;
    if (opening->head.file_size <= room)
        return 0;
    return sxe__pool_refuse(opening, ENOSPC,
                            "cannot have room for all of the file: it takes %llu bytes, and its "
                            "file system has %llu",
                            (unsigned long long)opening->head.file_size, (unsigned long long)room);
}

int
sxe__pool_file_fill(struct sxe__pool_opening *opening)
{
    int result = check_file_limit(opening);

    if (result == 0)
        result = check_file_room(opening);
    if (result < 0)
        return result;
    opening->has_begun = true;
    /* Truncate to 0 first: a maker that died may have left bytes in the file. */
    if (ftruncate(opening->fd, 0) != 0 ||
        ftruncate(opening->fd, (off_t)opening->head.file_size) != 0)
        return sxe__pool_refuse_errno(opening, "give the file its size");
    if (opening->spec.file == NULL &&
        fcntl(opening->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return sxe__pool_refuse_errno(opening, "seal the memory's size");
    return sxe__pool_file_allocate(opening);
}

void
sxe__pool_file_undo(const struct sxe__pool_opening *opening)
{
    /* Remove the file that this call made only if no other process can have made its pool in it. */
    if (opening->is_made && (opening->has_begun || lseek(opening->fd, 0, SEEK_END) == 0))
        unlink(opening->path);
    else if (!opening->is_made && opening->has_begun && opening->spec.file != NULL &&
             ftruncate(opening->fd, 0) != 0)
        SXE_WARN("pool %s: cannot empty the file again", opening->what);
}

/* ---- Memory ---- */

static void *
map_pages(size_t size, int fd, uint64_t from, void *at)
{
    const int kind = fd == -1 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    const int place = at == NULL ? 0 : MAP_FIXED;

    return mmap(at, size, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE | place, fd, (off_t)from);
}

/* Copy the checked values into this process's own page. */
static struct sxe__pool_header *
keep_mapping(const struct sxe__pool_opening *opening, void *memory, size_t own_size, void *head)
{
    const struct sxe__pool_head *fixed = &opening->head;
    const uintptr_t array = (uintptr_t)memory + own_size;
    struct sxe__pool_own *own = memory;
    const bool verified = (opening->spec.options & SXE_POOL_OPTION_VERIFIED) != 0;
    const bool unverified = (opening->spec.options & SXE_POOL_OPTION_UNVERIFIED) != 0;
    struct sxe__pool_header *pool = (struct sxe__pool_header *)array - 1;

    *pool = (struct sxe__pool_header){
        .magic = SXE__POOL_MAGIC,
        .version = SXE__POOL_VERSION,
        .header_size = sizeof(*pool),
        .number = fixed->number,
        .states = fixed->states,
        .element_size = fixed->element_size,
        .nodes_offset = fixed->nodes_offset,
        .slack = SXE__POOL_BORROWED,
        .sharing = &own->sharing,
    };
    memcpy(pool->name, fixed->name, sizeof(pool->name));
    memcpy(own->fields, fixed->fields, sizeof(own->fields));
    memcpy(own->state_names, fixed->state_names, sizeof(own->state_names));
    for (char *byte = own->state_names; *byte != '\0'; byte++)
        *byte = *byte == ' ' ? '\0' : *byte;
    own->sharing = (struct sxe__pool_sharing){
        .head = head,
        .shards = (struct sxe__pool_shard *)((uintptr_t)head + fixed->shards_offset),
        .nodes = (struct sxe__pool_node *)(array + fixed->nodes_offset),
        .extra = fixed->extra_size == 0 ? NULL : (void *)(array + fixed->extra_offset),
        .extra_size = fixed->extra_size,
        .head_size = fixed->array_offset,
        .size = own_size + fixed->file_size - fixed->array_offset,
        .copy_size = fixed->page_size,
        .end = fixed->number + fixed->states * fixed->shards,
        .shard_mask = fixed->shards - 1,
        .shard_shift = sxe__pool_shard_shift(fixed->number, fixed->shards),
        .token = opening->fd == -1 ? SXE__POOL_THREADS : 0,
        .survives = opening->fd != -1,
        .is_file = opening->is_file,
        .is_summed = opening->is_file && !unverified,
        .verifies = (opening->is_file && !unverified) || verified,
        .fd = opening->fd,
        .watch_fd = -1,
        .state_names = fixed->state_names[0] == '\0' ? NULL : own->state_names,
    };
    memcpy(own->sharing.identity, fixed->identity, sizeof(own->sharing.identity));
    return pool;
}

static int
map_parts(struct sxe__pool_opening *opening, int fd)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t needed = sizeof(struct sxe__pool_own) + sizeof(struct sxe__pool_header);
    const size_t own_size = (needed + page - 1) / page * page;
    const size_t head_size = opening->head.array_offset;
    const size_t size = opening->head.file_size - head_size;

    void *head = map_pages(head_size, fd, 0, NULL);
    if (head == MAP_FAILED)
        return -1;
    char *memory = map_pages(own_size + size, -1, 0, NULL);
    if (memory == MAP_FAILED)
        goto no_memory;
    if (fd != -1 && map_pages(size, fd, head_size, memory + own_size) == MAP_FAILED)
        goto no_array;
    opening->pool = keep_mapping(opening, memory, own_size, head);
    opening->pool->sharing->lent_fd = fd;
    return 0;
no_array:
    munmap(memory, own_size + size);
no_memory:
    munmap(head, head_size);
    return -1;
}

/* Do not map through the open file description that holds the locks, but through another one. A
 * child of fork inherits the mapping, which keeps its description open: the locks of that
 * description would outlive this process. */
int
sxe__pool_map(struct sxe__pool_opening *opening)
{
    const int fd = opening->fd == -1 ? -1 : sxe__pool_open_anew(opening->fd);

    if (fd == -1 && opening->fd != -1)
        return sxe__pool_refuse_errno(opening, "open it again by /proc");
    if (map_parts(opening, fd) == 0)
        return 0;
    const int result = sxe__pool_refuse_errno(opening, "map it");
    if (fd != -1)
        close(fd);
    return result;
}

int
sxe__pool_file_mark(const struct sxe__pool_opening *opening)
{
    struct sxe__pool_head *head = opening->pool->sharing->head;

    if (opening->fd == -1)
        return 0;
    memcpy(head->magic, SXE__POOL_FILE_UNFINISHED, sizeof(head->magic));
    return msync(head, opening->head.array_offset, MS_SYNC) == 0
               ? 0
               : sxe__pool_refuse_errno(opening, "write to the file");
}

void
sxe__pool_unmap(struct sxe__pool_header *pool)
{
    struct sxe__pool_sharing *sharing = pool->sharing;
    const size_t size = sharing->size;
    const int fd = sharing->lent_fd;

    munmap(sharing->head, sharing->head_size);
    munmap(sharing, size);
    if (fd != -1)
        close(fd);
}
