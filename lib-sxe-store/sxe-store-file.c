/* SPDX-License-Identifier: MIT
 *
 * Files that this process has open. LMDB forbids a process to open a file twice, because closing
 * one of the two gives up the locks of both. So there is a list of all open files, and opening one
 * of them again only adds a user to it.
 *
 * A child of fork(2) must not touch its parent's files: closing one would end the parent's readers.
 * So the child forgets the list, and the objects that it inherited refuse each call.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sxe-lua-internal.h"

/* LMDB's numbers: how many bytes of the lock file a reader takes, and how many places of that size
 * the file has besides the places of readers */
#define LOCK_SIZE    64
#define LOCKS_BESIDE 2

#define LOCKS_ROUNDING 4096 /* LMDB maps whole pages of the lock file */
#define LOCKS_NAME     (PATH_MAX + 8)

#define MAGIC    0xBEEFC0DEu /* the magic number of LMDB's data files */
#define MAGIC_AT 16

static struct {
    pthread_mutex_t lock;
    struct sxe__store_file *first;
    unsigned forks;
    bool is_watching;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The files of this thread that a work thread is to close, and whether its state is ending. When
 * the state ends, files are closed at once, because later there may be no loop to free them. */
static _Thread_local struct {
    struct sxe__store_file *first;
    bool is_ending;
} closings;

static void
forget_store_files(void)
{
    pthread_mutex_init(&files.lock, NULL);
    files.first = NULL;
    files.forks++;
}

bool
sxe__store_file_watch_forks(void)
{
    bool is_watching;

    pthread_mutex_lock(&files.lock);
    if (!files.is_watching)
        files.is_watching = pthread_atfork(NULL, NULL, forget_store_files) == 0;
    is_watching = files.is_watching;
    pthread_mutex_unlock(&files.lock);
    return is_watching;
}

bool
sxe__store_file_is_parents(const struct sxe__store_file *file)
{
    return file->forks != files.forks;
}

/* ---- Closing: the caller holds the lock ---- */

static void
close_file(struct sxe__store_file *file)
{
    struct sxe__store_file **link = &files.first;

    if (file->env == NULL)
        return;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    mdb_env_close(file->env);
    file->env = NULL;
}

static void
run_close(struct sxe_work *work)
{
    struct sxe__store_file *file = work->user;

    pthread_mutex_lock(&files.lock);
    close_file(file);
    pthread_mutex_unlock(&files.lock);
}

static void
on_closed(struct sxe_work *work)
{
    struct sxe__store_file **link = &closings.first;

    while (*link != work->user)
        link = &(*link)->next_closing;
    *link = (*link)->next_closing;
    free(work->user);
}

void
sxe__store_file_set_ending(bool is_ending)
{
    struct sxe__store_file *next;

    closings.is_ending = is_ending;
    for (struct sxe__store_file *file = closings.first; file != NULL; file = next) {
        next = file->next_closing;
        if (sxe_work_cancel(&file->closing) != -EBUSY) {
            run_close(&file->closing);
            on_closed(&file->closing);
        }
    }
}

struct sxe__store_file *
sxe__store_file_use(struct sxe__store_file *file)
{
    file->users++;
    return file;
}

void
sxe__store_file_leave(struct sxe__store_file *file)
{
    if (sxe__store_file_is_parents(file))
        return;
    /* Decrement the users first: a work thread that is opening the file closes the file if it has
     * no user. */
    if (file->users == 1)
        sxe__store_snapshot_close_all(file);
    if (--file->users > 0)
        return;
    file->next_closing = closings.first;
    closings.first = file;
    if (!closings.is_ending && sxe_work_submit(&file->closing) == 0)
        return;
    run_close(&file->closing);
    on_closed(&file->closing);
}

/* ---- Opening: in a work thread that holds the lock ---- */

static void
name_locks(char name[LOCKS_NAME], const char *path)
{
    snprintf(name, LOCKS_NAME, "%s-lock", path);
}

/* Have the file system reserve blocks for a file, whose size stays as it is. If the file system
 * cannot, the file is used all the same. */
static int
give_blocks(int fd, off_t size)
{
    int result;

    do
        result = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size);
    while (result < 0 && errno == EINTR);
    return result < 0 && errno != EOPNOTSUPP && errno != ENOSYS ? errno : 0;
}

/* Reserve blocks for the whole lock file. LMDB maps it, so a reader whose place has no block on a
 * full disk would end its process with SIGBUS. Other processes may have the file open, so leave its
 * size to LMDB. */
static int
reserve_locks(const char *path, const struct sxe__store_options *options)
{
    const off_t places = (off_t)options->readers + LOCKS_BESIDE;
    off_t size = places * LOCK_SIZE + LOCKS_ROUNDING;
    char name[LOCKS_NAME];
    struct stat status;
    int fd, result;

    if ((options->flags & MDB_RDONLY) != 0 && stat(path, &status) < 0)
        return errno;
    name_locks(name, path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, options->mode);
    if (fd < 0)
        return 0; /* LMDB works without a lock file, or reports the error itself */
    if (fstat(fd, &status) == 0 && status.st_size > size)
        size = status.st_size;
    result = give_blocks(fd, size);
    close(fd);
    return result;
}

/* Note which file was opened, and have its descriptor closed in programs that this process starts.
 * With the descriptor they could read and write the store, even if the file's mode forbids it. LMDB
 * does that for its other descriptors, but not for this one. (A thread that starts a program while
 * LMDB opens the file still passes the descriptor on.) */
static int
identify_file(struct sxe__store_file *file, const char *path)
{
    char name[LOCKS_NAME];
    struct stat status;
    int fd;
    const int result = mdb_env_get_fd(file->env, &fd);

    if (result != 0)
        return result;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (fstat(fd, &status) < 0)
        return errno;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    name_locks(name, path);
    if (stat(name, &status) == 0)
        file->locks_inode = status.st_ino;
    return 0;
}

/* Prepare LMDB's environment. 0 or an error. */
static int
open_env(struct sxe__store_file *file, const char *path)
{
    const struct sxe__store_options *options = &file->options;
    MDB_txn *txn;
    int result;

    if ((result = mdb_env_set_mapsize(file->env, options->map_size)) != 0 ||
        (result = mdb_env_set_maxreaders(file->env, options->readers)) != 0 ||
        (result = reserve_locks(path, options)) != 0 ||
        (result = mdb_env_open(file->env, path, MDB_NOSUBDIR | MDB_NOTLS | options->flags,
                               options->mode)) != 0 ||
        (result = identify_file(file, path)) != 0 ||
        (result = mdb_reader_check(file->env, NULL)) != 0 ||
        (result = mdb_txn_begin(file->env, NULL, MDB_RDONLY, &txn)) != 0)
        return result;
    result = mdb_dbi_open(txn, NULL, 0, &file->table);
    if (result == 0)
        result = sxe__store_check_pages(file->env, txn, file->table);
    mdb_txn_abort(txn);
    return result;
}

static int
open_new(struct sxe__store_job *job)
{
    struct sxe__store_file *file = calloc(1, sizeof(*file));
    int result;

    if (file == NULL)
        return ENOMEM;
    file->options = job->options;
    file->forks = files.forks;
    file->users = 1;
    file->closing = (struct sxe_work){
        .run = run_close, .done = on_closed, .user = file, .group = job->work.group};
    result = mdb_env_create(&file->env);
    if (result == 0 && (result = open_env(file, job->data)) != 0)
        mdb_env_close(file->env);
    if (result != 0) {
        free(file);
        return result;
    }
    file->owner = job->work.user;
    file->next = files.first;
    files.first = file;
    job->file = file;
    return 0;
}

/* Find the open file of a path; NULL: the file is not open. If a file of this thread has no user
 * any more and waits to be closed, close that file now. */
static struct sxe__store_file *
find_store_file(const char *path, const void *owner)
{
    struct sxe__store_file *file = files.first;
    struct stat status;

    if (stat(path, &status) < 0)
        return NULL;
    while (file != NULL && (file->device != status.st_dev || file->inode != status.st_ino))
        file = file->next;
    if (file == NULL || file->users > 0 || file->owner != owner)
        return file;
    close_file(file);
    return NULL;
}

int
sxe__store_file_open(struct sxe__store_job *job)
{
    struct sxe__store_file *file;
    int result = 0;

    pthread_mutex_lock(&files.lock);
    file = find_store_file(job->data, job->work.user);
    if (file == NULL)
        result = open_new(job);
    else if (file->owner != job->work.user || file->options.flags != job->options.flags)
        result = EBUSY;
    else
        job->file = sxe__store_file_use(file);
    pthread_mutex_unlock(&files.lock);
    return result;
}

/* ---- Replacing: in a work thread ---- */

/* Whether this process has the file open, as a store or as a lock file. The caller holds the
 * lock. Such a file must not be opened again: closing the second descriptor would give up LMDB's
 * locks. */
static bool
is_open_here(const struct stat *status)
{
    const struct sxe__store_file *file = files.first;

    while (file != NULL && (file->device != status->st_dev ||
                            (file->inode != status->st_ino && file->locks_inode != status->st_ino)))
        file = file->next;
    return file != NULL;
}

/* Check that the file may be replaced: it must be a store or empty. 0 or an error. */
static int
check_store_kind(const char *path, const struct stat *status)
{
    uint32_t magic = 0;
    int fd, error = 0;

    if (S_ISDIR(status->st_mode))
        return EISDIR;
    if (!S_ISREG(status->st_mode))
        return EMEDIUMTYPE;
    if (status->st_size == 0)
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (pread(fd, &magic, sizeof(magic), MAGIC_AT) < 0)
        error = errno;
    else if (magic != MAGIC)
        error = EMEDIUMTYPE;
    close(fd);
    return error;
}

/* Keep other processes from opening the store, as LMDB itself does, by a lock of the first byte of
 * the lock file. *fd is the lock file, which the caller closes; -1: there is no lock file, so no
 * process has the store open. */
static int
lock_out(const char *path, int *fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    char name[LOCKS_NAME];

    name_locks(name, path);
    *fd = open(name, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        return errno == ENOENT ? 0 : errno;
    if (fcntl(*fd, F_SETLK, &lock) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? SXE__STORE_TARGET_IN_USE : errno;
}

/* Check whether the file at the path, if there is one, may be replaced. 0 or an error. */
static int
check_copy_target(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return errno == ENOENT ? 0 : errno;
    return is_open_here(&status) ? SXE__STORE_TARGET_IN_USE : check_store_kind(path, &status);
}

static int
replace_store(const char *copy, const char *path)
{
    int locks = -1;
    int result = check_copy_target(path);

    if (result == 0)
        result = lock_out(path, &locks);
    if (result == 0 && rename(copy, path) < 0)
        result = errno;
    if (locks >= 0)
        close(locks);
    return result;
}

int
sxe__store_file_replace(const char *copy, const char *path)
{
    int result;

    pthread_mutex_lock(&files.lock);
    result = replace_store(copy, path);
    pthread_mutex_unlock(&files.lock);
    return result;
}

/* ---- The map ---- */

int
sxe__store_file_resize(struct sxe__store_file *file, size_t map_size)
{
    int result;

    if (file->is_broken)
        return MDB_PANIC;
    if (file->snapshots > 0 || file->copies > 0)
        return EBUSY;
    sxe__store_read_end(file);
    result = mdb_env_set_mapsize(file->env, map_size);
    /* LMDB gave up the old map before it asked the system for another one. */
    file->is_broken = result != 0 && result != EINVAL;
    return result;
}
