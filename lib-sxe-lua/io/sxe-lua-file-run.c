/* SPDX-License-Identifier: MIT
 *
 * What: the work of a thread on a file, which the loop's thread does if it need not wait for a
 * disk. No Lua state is touched here.
 */
#include "sxe-lua-file-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sxe-libc-internal.h"

#define OPEN  (O_NONBLOCK | O_NOCTTY | O_CLOEXEC) /* opening a fifo does not block the thread */
#define LEAST 4096u                               /* bytes of the first allocation */
#define SHORT 65536u /* copying up to this many bytes takes less time than waiting for a thread */

#ifndef RESOLVE_CACHED /* Linux 5.12 has this flag; an older kernel refuses the flag */
#    define RESOLVE_CACHED 0x20
#endif

/* ---- Memory ---- */

int
sxe__lua_file_reserve(struct sxe__lua_file_job *job, size_t size)
{
    size_t more = size > job->size ? size - job->size : 0;
    char *data = job->data;

    if (more == 0)
        return 0;
    if (__atomic_add_fetch(job->held, more, __ATOMIC_RELAXED) <= job->held_max)
        data = realloc(data, size);
    else
        data = NULL;
    if (data == NULL) {
        __atomic_sub_fetch(job->held, more, __ATOMIC_RELAXED);
        return -ENOMEM;
    }
    job->data = data;
    job->size = size;
    return 0;
}

void
sxe__lua_file_release(struct sxe__lua_file_job *job)
{
    __atomic_sub_fetch(job->held, job->size, __ATOMIC_RELAXED);
    free(job->data);
    job->data = NULL;
    job->size = 0;
    job->length = 0;
}

/* Enlarge the memory: to at most one byte more than the file may have, because one byte more shows
 * that a file is too long. */
static int
grow_file_room(struct sxe__lua_file_job *job, size_t needed)
{
    size_t size = 2 * job->size < LEAST ? LEAST : 2 * job->size;

    if (size > job->wish.max + 1)
        size = job->wish.max + 1;
    return sxe__lua_file_reserve(job, size < needed ? needed : size);
}

/* ---- Reading ---- */

/* Make room for the whole file at once, if its size is known: 0, -EFBIG, -ENOMEM. */
static int
make_file_room(struct sxe__lua_file_job *job, int fd)
{
    uint64_t left;

    if (fstat(fd, &job->status) < 0 || !S_ISREG(job->status.st_mode) ||
        (uint64_t)job->status.st_size <= job->wish.from)
        return 0;
    left = (uint64_t)job->status.st_size - job->wish.from;
    if (left > job->wish.length)
        left = job->wish.length;
    return left > job->wish.max ? -EFBIG : sxe__lua_file_reserve(job, left + 1);
}

static int
read_rest(struct sxe__lua_file_job *job, int fd)
{
    int result = make_file_room(job, fd);

    while (result == 0) {
        uint64_t wanted = job->wish.length - job->length;
        ssize_t n;

        if (job->length == job->size && (result = grow_file_room(job, 0)) < 0)
            break;
        n = read(fd, job->data + job->length,
                 wanted < job->size - job->length ? wanted : job->size - job->length);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        job->length += (size_t)n;
        if (job->length > job->wish.max)
            result = -EFBIG;
    }
    return result;
}

int
sxe__lua_file_read(struct sxe__lua_file_job *job)
{
    int result;

    if (job->fd < 0 && (result = sxe__lua_file_open(job)) < 0)
        return result;
    if (job->wish.from > 0 && lseek(job->fd, (off_t)job->wish.from, SEEK_SET) < 0)
        /* EINVAL: the offset is larger than any file can be, so it is after the file's end. */
        result = errno == EINVAL ? 0 : -errno;
    else
        result = read_rest(job, job->fd);
    (void)sxe__lua_file_close(job);
    return result;
}

/* ---- Reading without waiting ---- */

/* Read the whole file from the kernel's caches; false: some bytes are not there. The size of a
 * regular file says how many bytes must come, but a file of size 0 may have bytes, too, as in
 * /proc. */
static bool
read_cached(struct sxe__lua_file_job *job)
{
    uint64_t from = job->wish.from;
    uint64_t left;

    if (fstat(job->fd, &job->status) < 0 || !S_ISREG(job->status.st_mode) ||
        job->status.st_size == 0)
        return false;
    left = (uint64_t)job->status.st_size;
    left = from < left ? left - from : 0;
    if (left > job->wish.length)
        left = job->wish.length;
    if (left > SHORT || left > job->wish.max || sxe__lua_file_reserve(job, left) < 0)
        return false;
    while (job->length < left) {
        struct iovec rest = {.iov_base = job->data + job->length, .iov_len = left - job->length};
        ssize_t n = preadv2(job->fd, &rest, 1, (off_t)(from + job->length), RWF_NOWAIT);

        if (n <= 0)
            return false;
        job->length += (size_t)n;
    }
    return true;
}

bool
sxe__lua_file_read_cached(struct sxe__lua_file_job *job)
{
    struct open_how how = {.flags = O_RDONLY | OPEN, .resolve = RESOLVE_CACHED};

    job->fd = (int)syscall(SYS_openat2, AT_FDCWD, job->path, &how, sizeof(how));
    if (job->fd < 0)
        return false;
    if (read_cached(job)) {
        (void)sxe__lua_file_close(job);
        return true;
    }
    sxe__lua_file_release(job);
    return false;
}

/* ---- Writing ---- */

static int
write_file_bytes(const struct sxe__lua_file_job *job, int fd)
{
    size_t written = 0;

    while (written < job->length) {
        ssize_t n = write(fd, job->data + written, job->length - written);

        if (n < 0)
            return -errno;
        written += (size_t)n;
    }
    return 0;
}

static int
put_file(const struct sxe__lua_file_job *job, const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | OPEN | flags, (mode_t)job->wish.mode);
    int result;

    if (fd < 0)
        return -errno;
    result = write_file_bytes(job, fd);
    if (result == 0 && job->wish.keeps_mode && fchmod(fd, (mode_t)job->wish.mode) < 0)
        result = -errno;
    if (result == 0 && job->wish.is_synced && fsync(fd) < 0)
        result = -errno;
    if (close(fd) < 0 && result == 0)
        result = -errno;
    return result;
}

/* The status of the file to be replaced. Returns 1; 0: there is no such file; or -errno. A device,
 * a socket or a fifo is refused: a rename would replace it with a plain file, but another program
 * needs it. */
static int
find_replaced(struct sxe__lua_file_job *job)
{
    if (fstatat(AT_FDCWD, job->path, &job->status, 0) < 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISREG(job->status.st_mode) ? 1 : S_ISDIR(job->status.st_mode) ? -EISDIR : -EINVAL;
}

/* Write a new file and rename it. Another program that reads the file sees the old or the new
 * contents, even after a crash. The new file gets the permissions of the old file, so that a secret
 * stays secret. */
static int
replace_file(struct sxe__lua_file_job *job)
{
    int length = snprintf(job->to, sizeof(job->to), "%s.%016" PRIx64, job->path, job->unique);
    int found = find_replaced(job);
    int result;

    if (found < 0 || length >= (int)sizeof(job->to))
        return found < 0 ? found : -ENAMETOOLONG;
    job->wish.keeps_mode = found > 0 && !job->wish.has_mode;
    if (job->wish.keeps_mode)
        job->wish.mode = job->status.st_mode & 07777;
    job->wish.is_synced = true;
    result = put_file(job, job->to, O_EXCL);
    if (result == -EEXIST)
        return result;
    if (result == 0 && rename(job->to, job->path) < 0)
        result = -errno;
    if (result < 0)
        unlink(job->to);
    return result;
}

int
sxe__lua_file_write(struct sxe__lua_file_job *job)
{
    return job->wish.is_atomic ? replace_file(job) : put_file(job, job->path, O_TRUNC);
}

int
sxe__lua_file_append(struct sxe__lua_file_job *job)
{
    return put_file(job, job->path, O_APPEND);
}

/* ---- Files that stay open ---- */

int
sxe__lua_file_open(struct sxe__lua_file_job *job)
{
    job->fd = open(job->path, job->wish.flags | OPEN, (mode_t)job->wish.mode);
    return job->fd < 0 ? -errno : 0;
}

int
sxe__lua_file_get(struct sxe__lua_file_job *job)
{
    while (job->length < job->wish.length) {
        ssize_t n = read(job->fd, job->data + job->length, job->wish.length - job->length);

        if (n <= 0)
            return n < 0 ? -errno : 0;
        job->length += (size_t)n;
    }
    return 0;
}

int
sxe__lua_file_put(struct sxe__lua_file_job *job)
{
    return write_file_bytes(job, job->fd);
}

int
sxe__lua_file_close(struct sxe__lua_file_job *job)
{
    int fd = job->fd;

    job->fd = -1;
    return close(fd) < 0 ? -errno : 0;
}

/* ---- Names ---- */

static int
compare_file_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sort the names. */
static int
sort_names(struct sxe__lua_file_job *job, size_t number)
{
    char **names = malloc(number * sizeof(*names) + job->length + 1);
    char *from = job->data;
    char *copy;

    if (names == NULL)
        return -ENOMEM;
    copy = (char *)(names + number);
    for (size_t i = 0; i < number; i++) {
        names[i] = from;
        from += strlen(from) + 1;
    }
    qsort(names, number, sizeof(*names), compare_file_names);
    for (size_t i = 0; i < number; i++) {
        size_t length = strlen(names[i]) + 1;

        memcpy(copy, names[i], length);
        copy += length;
    }
    if (job->length > 0)
        memcpy(job->data, names + number, job->length);
    free(names);
    return 0;
}

static int
add_directory_entry(struct sxe__lua_file_job *job, const char *name)
{
    size_t length = strlen(name) + 1;
    int result = 0;

    if (job->length + length > job->wish.max)
        return -EFBIG;
    if (job->length + length > job->size)
        result = grow_file_room(job, job->length + length);
    if (result < 0)
        return result;
    memcpy(job->data + job->length, name, length);
    job->length += length;
    return 0;
}

int
sxe__lua_file_list(struct sxe__lua_file_job *job)
{
    DIR *directory = opendir(job->path);
    const struct dirent *entry;
    size_t number = 0;
    int result = 0;

    if (directory == NULL)
        return -errno;
    while (result == 0 && (errno = 0, entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        result = add_directory_entry(job, entry->d_name);
        number++;
    }
    if (result == 0)
        result = -errno;
    closedir(directory);
    return result < 0 ? result : sort_names(job, number);
}

int
sxe__lua_file_stat(struct sxe__lua_file_job *job)
{
    int flags = job->wish.is_link ? AT_SYMLINK_NOFOLLOW : 0;

    return fstatat(AT_FDCWD, job->path, &job->status, flags) < 0 ? -errno : 0;
}

int
sxe__lua_file_remove(struct sxe__lua_file_job *job)
{
    return remove(job->path) < 0 ? -errno : 0;
}

int
sxe__lua_file_rename(struct sxe__lua_file_job *job)
{
    return rename(job->path, job->to) < 0 ? -errno : 0;
}

/* Ignore errors of parent directories; only the last mkdir's result counts. */
static void
make_parents(struct sxe__lua_file_job *job)
{
    for (char *slash = strchr(job->path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(job->path, (mode_t)job->wish.mode);
        *slash = '/';
    }
}

int
sxe__lua_file_mkdir(struct sxe__lua_file_job *job)
{
    int error;

    if (job->wish.with_parents && *job->path != '\0')
        make_parents(job);
    if (mkdir(job->path, (mode_t)job->wish.mode) == 0)
        return 0;
    error = errno;
    if (error == EEXIST && job->wish.with_parents && stat(job->path, &job->status) == 0 &&
        S_ISDIR(job->status.st_mode))
        return 0;
    return -error;
}
