/* SPDX-License-Identifier: MIT
 *
 * What: the work of a thread for one name: it opens the name beneath the root, finds out what it is
 * and whether it has changed, reads it if it is small, and looks for its siblings.
 */
#include "sxe-http-file-private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sxe-libc-internal.h"

#define TRIES 8 /* how often to repeat a call that the changes of other processes may disturb */
#define OPEN  (O_RDONLY | O_NONBLOCK | O_NOCTTY)
/* after how many seconds a change is settled; some file systems store times in seconds */
#define SETTLE_S 2

const struct sxe__http_coding sxe__http_codings[SXE__HTTP_CODINGS] = {
    {"br", ".br"},
    {"zstd", ".zst"},
    {"gzip", ".gz"},
};

/* ---- Beneath the root ---- */

static int
open_in_one_step(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;

    /* EAGAIN: something was renamed while a ".." of a link was resolved. */
    for (int i = 0; i < TRIES; i++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd < 0 ? -errno : (int)fd;
}

static int
open_step(int directory, const char *name, size_t length, int flags)
{
    char step[NAME_MAX + 1];
    int fd;

    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(step, name, length);
    step[length] = '\0';
    fd = openat(directory, step, flags | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Without openat2: open segment after segment, and follow no link. The path's last slash is not
 * passed on: with it the call would follow a link. */
static int
open_step_by_step(int root, const char *path, int flags)
{
    int at = root;

    for (;;) {
        size_t length = strcspn(path, "/");
        bool has_slash = path[length] == '/';
        const char *rest = path + length + has_slash;
        bool is_last = *rest == '\0';
        int fd =
            open_step(at, path, length, (is_last ? flags : O_PATH) | (has_slash ? O_DIRECTORY : 0));

        if (at != root)
            close(at);
        if (fd < 0 || is_last)
            return fd;
        at = fd;
        path = rest;
    }
}

int
sxe__http_open_beneath(int root, bool has_openat2, const char *path, int flags)
{
    return has_openat2 ? open_in_one_step(root, path, flags) : open_step_by_step(root, path, flags);
}

/* Kernels have openat2 since 5.6; seccomp filters that do not know openat2 return EPERM. */
int
sxe__http_probe_root(int root, bool *has_openat2)
{
    int fd = open_in_one_step(root, ".", O_PATH | O_DIRECTORY);

    *has_openat2 = fd != -ENOSYS && fd != -EPERM;
    if (!*has_openat2)
        return 0;
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

/* Open a path and fill in *found. Returns a descriptor, or -errno. */
static int
open_and_stat(const struct sxe_http_files *files, const char *path, int flags, struct stat *found)
{
    int fd = sxe__http_open_beneath(files->root, files->has_openat2, path, flags);
    int error;

    if (fd < 0 || fstat(fd, found) == 0)
        return fd;
    error = errno;
    close(fd);
    return -error;
}

/* ---- Refusals ---- */

/* A file that does not exist, is outside the root, or cannot be read as a file, is 404. */
static unsigned
status_of_error(int error)
{
    switch (error) {
    case EINVAL:
    case EILSEQ:
    case ELOOP:
    case ENAMETOOLONG:
    case ENODEV:
    case ENOENT:
    case ENOTDIR:
    case ENXIO:
    case EXDEV:
        return 404;
    case EACCES:
    case EPERM:
        return 403;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return 503;
    default:
        return 500;
    }
}

static void
refuse_open_file(struct sxe__http_file *file, unsigned status)
{
    file->status = (uint16_t)status;
}

static void
fail_file(struct sxe__http_file *file, int error)
{
    file->error = error;
    refuse_open_file(file, status_of_error(error));
}

/* ---- Contents ---- */

static bool
is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

/* Whether the last change of the file is so old that a later change will give it another time. A
 * file may change twice in one tick of the clock that its times are from. */
static bool
is_change_settled(const struct stat *found)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - found->st_ctim.tv_sec >= SETTLE_S;
}

/* Read `size` bytes. 0; -ENODATA: the file has fewer; or -errno. */
static int
read_whole_content(int fd, char *to, size_t size)
{
    size_t used = 0;

    while (used < size) {
        ssize_t n = pread(fd, to + used, size - used, (off_t)used);

        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        used += (size_t)n;
    }
    return 0;
}

/* Read a small file into the region, unless it keeps changing. 0, or -errno: it cannot be read. */
static int
keep_content(struct sxe__http_file *file, int fd, struct stat *found)
{
    size_t small_max = file->may_keep ? file->files->config.small_max : 0;
    char *to = file->name + file->name_length + 1;

    for (int i = 0; i < TRIES && (uint64_t)found->st_size <= small_max; i++) {
        struct stat before = *found;
        size_t size = (size_t)before.st_size;
        int result = read_whole_content(fd, to, size);

        file->touched = file->name_length + 1 + size;
        if (result < 0 && result != -ENODATA)
            return result;
        if (fstat(fd, found) < 0)
            return -errno;
        if (result == 0 && is_same_file(&before, found)) {
            file->content = to;
            return 0;
        }
    }
    return 0;
}

/* ---- The kind of a file ---- */

/* Whether the file has a sibling, with this suffix, that is as new as the file. `path` has memory
 * for the suffix after its first `length` bytes. */
static bool
has_sibling(const struct sxe__http_file *file, char *path, size_t length, const char *suffix)
{
    struct stat found;
    int fd;

    snprintf(path + length, SXE__HTTP_PATH_SIZE - length, "%s", suffix);
    fd = open_and_stat(file->files, path, O_PATH, &found);
    path[length] = '\0';
    if (fd < 0)
        return false;
    close(fd);
    return S_ISREG(found.st_mode) && sxe__http_is_as_new(&found, &file->found);
}

static uint8_t
siblings_of(const struct sxe__http_file *file, char *path)
{
    size_t length = strlen(path);
    unsigned siblings = 0;

    if (file->files->config.no_siblings)
        return 0;
    for (unsigned i = 0; i < SXE__HTTP_CODINGS; i++) {
        if (has_sibling(file, path, length, sxe__http_codings[i].suffix))
            siblings |= 1u << i;
    }
    return (uint8_t)siblings;
}

/* Mix a value into a hash of 64 bits, with the finalizer of MurmurHash3. */
static uint64_t
mix_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

static uint64_t
mix_time(uint64_t hash, const struct timespec *time)
{
    return mix_hash(mix_hash(hash, (uint64_t)time->tv_sec), (uint64_t)time->tv_nsec);
}

/* Make a strong tag (RFC 9110, 8.8.1) from the file's times: whatever writes or replaces a file
 * changes one of them. The tag tells a client nothing about the file system. */
static void
make_tag(struct sxe__http_file *file)
{
    const struct stat *found = &file->found;
    uint64_t hash = mix_hash(0, (uint64_t)found->st_size);

    hash = mix_time(mix_time(hash, &found->st_mtim), &found->st_ctim);
    snprintf(file->etag, sizeof(file->etag), "\"%016" PRIx64 "\"", hash);
}

static void
describe_file(struct sxe__http_file *file, const char *path)
{
    const struct stat *found = &file->found;

    file->size = (uint64_t)found->st_size;
    file->type = sxe__http_type_of(&file->files->types, path);
    file->is_settled = is_change_settled(found);
    make_tag(file);
    sxe_http_date_format(found->st_mtim.tv_sec, file->modified);
}

static bool
is_as_known(const struct sxe__http_file *file, const struct stat *found)
{
    const struct sxe__http_file *known = file->known;

    return known != NULL && !known->is_listing && known->is_settled &&
           known->index == file->index && is_same_file(&known->found, found);
}

/* Store in the entry what was found. This function owns fd: it closes fd, or keeps it in the
 * entry. */
static void
take_file(struct sxe__http_file *file, char *path, int fd)
{
    int result = 0;

    file->is_same = is_as_known(file, &file->found);
    if (!file->is_same)
        result = keep_content(file, fd, &file->found);
    if (file->is_same || result < 0 || file->content != NULL)
        close(fd);
    else
        file->fd = fd;
    if (result < 0) {
        fail_file(file, -result);
        return;
    }
    describe_file(file, path);
    file->siblings = siblings_of(file, path);
}

/* ---- Names ---- */

static void
open_served_file(struct sxe__http_file *file, char *path)
{
    int fd;

    snprintf(path, SXE__HTTP_PATH_SIZE, "%s", file->name);
    fd = open_and_stat(file->files, path, OPEN, &file->found);
    if (fd < 0) {
        fail_file(file, -fd);
    } else if (S_ISREG(file->found.st_mode)) {
        take_file(file, path, fd);
    } else {
        close(fd);
        refuse_open_file(file, S_ISDIR(file->found.st_mode) ? 301 : 404);
    }
}

/* Open the first index that the directory has. True: the entry has the index; or the error, if
 * opening it failed for another reason than ENOENT. False: there is no index. */
static bool
open_index(struct sxe__http_file *file, char *path)
{
    for (const char *const *index = file->files->config.index; *index != NULL; index++) {
        int fd;

        snprintf(path, SXE__HTTP_PATH_SIZE, "%s%s", strcmp(file->name, ".") == 0 ? "" : file->name,
                 *index);
        fd = open_and_stat(file->files, path, OPEN, &file->found);
        if (fd >= 0 && S_ISREG(file->found.st_mode)) {
            file->index = *index;
            take_file(file, path, fd);
            return true;
        }
        if (fd >= 0) {
            close(fd);
        } else if (fd != -ENOENT) {
            fail_file(file, -fd);
            return true;
        }
    }
    return false;
}

static void
open_served_directory(struct sxe__http_file *file)
{
    int fd = sxe__http_open_beneath(file->files->root, file->files->has_openat2, file->name,
                                    OPEN | O_DIRECTORY);
    int result = fd;

    if (fd >= 0 && file->files->listing != NULL) {
        result = sxe__http_list(file, fd);
    } else if (fd >= 0) {
        close(fd);
        refuse_open_file(file, 403);
    }
    if (result < 0)
        fail_file(file, -result);
}

void
sxe__http_file_open(struct sxe__http_file *file)
{
    char path[SXE__HTTP_PATH_SIZE];

    file->is_same = false;
    file->is_listing = false;
    file->is_settled = false;
    file->siblings = 0;
    file->lines_length = 0;
    file->status = 0;
    file->error = 0;
    file->content = NULL;
    file->index = "";
    if (!sxe__http_is_directory_path(file->name, file->name_length))
        open_served_file(file, path);
    else if (!open_index(file, path))
        open_served_directory(file);
}
