/* SPDX-License-Identifier: MIT
 *
 * Backup, restore and resize. One routine copies what a snapshot sees into a new dict in a file
 * beside the target, and one rename puts that file in the target's place:
 *
 *     dict --snapshot--> FILE.XXXXXX, made, filled, closed, on the disk --rename--> FILE
 *
 * So a death at any moment leaves the old file or the new one. The target's opening lock is held
 * from the beginning to the rename: no process can begin to use the file that is replaced. A
 * process that waits for that lock then finds that the file was replaced, and opens the new one.
 *
 * The copy has the hash key and the number of shards of its source, so each entry stays in its
 * shard, and a copy with as many cells always has room.
 */
#include "sxe-dict-private.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-file-internal.h"
#include "sxe-time.h"

#define LOCK_NS     SXE_NS_PER_SECOND
#define SNAPSHOTS   3u   /* attempts to copy: a snapshot may end before everything is copied */
#define ASK_EACH    256u /* entries between two calls of is_over */
#define VALUE_FIRST 256u /* bytes of the buffer at first; the buffer grows for a larger value */

struct copying {
    SXE_DICT *from;
    SXE_DICT *to;
    char *why;
    bool (*is_over)(void);
    bool is_cancelled; /* is_over returned true, and is not called again */
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry;
    /* the path and the open file of the target; fd -1: there is no file */
    struct sxe__pool_opening file;
    mode_t mode;
    char temporary[PATH_MAX + sizeof(".XXXXXX")];
};

/* ---- Waiting ---- */

static bool
is_cancelled(struct copying *copying)
{
    if (!copying->is_cancelled && copying->is_over != NULL)
        copying->is_cancelled = copying->is_over();
    return copying->is_cancelled;
}

/* Sleep after -EAGAIN. False: a second has passed since since_ns, or is_over returned true. The
 * time is limited, and not the number of tries, because each try waits for as long as
 * sxe_dict_set_wait says. */
static bool
wait_a_little(struct copying *copying, uint64_t since_ns)
{
    const struct timespec pause = {.tv_nsec = (long)SXE_NS_PER_MS};

    if (is_cancelled(copying) || sxe_time_ns() - since_ns >= LOCK_NS)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

/* ---- Entries ---- */

static int
grow_value(SXE_DICT_ENTRY *entry, size_t size)
{
    void *value = realloc(entry->value, size);

    if (value == NULL)
        return -ENOMEM;
    entry->value = value;
    entry->value_room = size;
    return 0;
}

/* Read the walk's next entry with its whole value. Returns 1; 0: the end; or -errno. */
static int
read_next_entry(struct copying *copying)
{
    SXE_DICT_ENTRY *entry = &copying->entry;
    const uint64_t since_ns = sxe_time_ns();

    for (;;) {
        const SXE_DICT_WALKER here = copying->walker;
        const int result = sxe_dict_walker_step(&copying->walker, entry);

        if (result == -EAGAIN && wait_a_little(copying, since_ns))
            continue;
        if (result != 1 || entry->value_size <= entry->value_room)
            return result;
        if (grow_value(entry, entry->value_size) < 0)
            return -ENOMEM;
        copying->walker = here;
    }
}

static int
put_entry(struct copying *copying)
{
    const SXE_DICT_ENTRY *entry = &copying->entry;
    const double ttl_s = entry->ttl_s < HUGE_VAL ? entry->ttl_s : SXE_DICT_FOREVER;
    const uint64_t since_ns = sxe_time_ns();
    int result;

    /* Leave out an entry that expired after the snapshot was taken: a ttl_s of 0 would be for
     * ever. */
    if (entry->ttl_s <= 0)
        return 0;
    do {
        result = sxe_dict_put(copying->to, entry->key, entry->key_size, entry->value,
                              entry->value_size, ttl_s);
        if (result == 0 && entry->state != SXE_DICT_LIVE)
            result = sxe_dict_set_state(copying->to, entry->key, entry->key_size, entry->state);
    } while (result == -EAGAIN && wait_a_little(copying, since_ns));
    return result == -ENOENT ? 0 : result; /* the entry has expired since the snapshot was taken */
}

static int
copy_entries(struct copying *copying)
{
    int result;

    for (unsigned copied = 0; (result = read_next_entry(copying)) == 1; copied++) {
        result = put_entry(copying);
        if (result == 0 && copied % ASK_EACH == 0 && is_cancelled(copying))
            result = -ECANCELED;
        if (result < 0)
            break;
    }
    return copying->is_cancelled ? -ECANCELED : result;
}

static int
copy_snapshot(struct copying *copying)
{
    SXE_DICT_ENTRY *entry = &copying->entry;
    SXE_DICT_SNAPSHOT *snapshot;
    const uint64_t since_ns = sxe_time_ns();

    do
        snapshot = sxe_dict_snapshot_take(copying->from);
    while (snapshot == NULL && errno == EAGAIN && wait_a_little(copying, since_ns));
    if (snapshot == NULL)
        return copying->is_cancelled ? -ECANCELED : -errno;
    sxe_dict_snapshot_walk(&copying->walker, snapshot);
    *entry = (SXE_DICT_ENTRY){.key = malloc(SXE__DICT_KEY_MAX), .key_room = SXE__DICT_KEY_MAX};
    int result = entry->key == NULL ? -ENOMEM : grow_value(entry, VALUE_FIRST);
    if (result == 0)
        result = copy_entries(copying);
    free(entry->key);
    free(entry->value);
    sxe_dict_snapshot_release(snapshot);
    return result;
}

/* ---- The new file ---- */

static int
explain_failure(const struct copying *copying, int result)
{
    const SXE_DICT *to = copying->to;
    const char *name = to->pool->name;
    char *why = copying->why;

    switch (-result) {
    case ECANCELED:
        return sxe__dict_refuse(why, ECANCELED,
                                "dict %s: the copy was cancelled, nothing was replaced", name);
    case ESTALE:
        return sxe__dict_refuse(why, ESTALE,
                                "dict %s: %u snapshots ended before all was copied, because "
                                "writers needed the room: give it more cells, or copy it while "
                                "less is written",
                                name, SNAPSHOTS);
    case ENOSPC:
    case EFBIG:
        return sxe__dict_refuse(why, -result,
                                "dict %s: its %zu entries do not fit (cells: %u, shards: %u): give "
                                "it more cells; the old file stays as it was",
                                name, sxe_dict_get_count(copying->from), to->number - to->shards,
                                to->shards);
    case EUCLEAN:
        return sxe__dict_refuse(why, EUCLEAN,
                                "dict %s is damaged: close it in every program, then have it "
                                "repaired (SXE_POOL_OPTION_REPAIR; sxe-pool repair)",
                                name);
    case EAGAIN:
        return sxe__dict_refuse(why, EAGAIN,
                                "dict %s: a live process has held a lock for a second: try again, "
                                "or continue it (SIGCONT) if it is stopped",
                                name);
    default:
        return sxe__dict_refuse(why, -result, "dict %s: cannot be copied: %s", name,
                                strerror(-result));
    }
}

/* Make the dict that becomes the copy. While it is filled it evicts nothing: an entry that does not
 * fit is an error. */
static int
open_copy(struct copying *copying, unsigned cells)
{
    const SXE_DICT *from = copying->from;
    const SXE_DICT_SPEC spec = {
        .name = from->pool->name,
        .cells = cells,
        .cell_size = from->cell_size,
        .shards = from->shards,
        .evicts = from->evicts,
        .file = copying->temporary,
    };
    SXE_DICT *to = sxe_dict_open(&spec, copying->why);

    if (to == NULL)
        return -errno;
    memcpy(to->control->hash_key, from->hash_key, sizeof(from->hash_key));
    memcpy(to->hash_key, from->hash_key, sizeof(from->hash_key));
    to->evicts = false;
    copying->to = to;
    return 0;
}

/* Copy the source's metrics, with which those of the copy begin. */
static void
copy_counts(const struct copying *copying)
{
    struct sxe__dict_counts *counts = &copying->to->counts[0];
    SXE_DICT_STATS stats;

    sxe_dict_get_stats(copying->from, &stats);
    counts->hits = stats.hits;
    counts->misses = stats.misses;
    counts->evictions = stats.evictions;
    counts->expirations = stats.expirations;
}

/* Check that the whole copy is on the disk: sxe_dict_close reports no error, but a pool that it
 * cannot write to the disk is not marked as closed. */
static int
check_closed(const struct copying *copying, int fd)
{
    struct sxe__pool_head head = {0};
    const char *path = copying->temporary;

    if (pread(fd, &head, sizeof(head), 0) < 0 || fchmod(fd, copying->mode) != 0 || fsync(fd) != 0)
        return sxe__dict_refuse(copying->why, errno, "cannot write %.300s to the disk: %s", path,
                                strerror(errno));
    return sxe__pool_is_closed(&head)
               ? 0
               : sxe__dict_refuse(copying->why, EIO,
                                  "cannot write %.300s to the disk: the log says why", path);
}

/* Fill the temporary file and close the dict in it; `fd` is another descriptor of that file. */
static int
fill_copy(struct copying *copying, unsigned cells, int fd)
{
    int result = open_copy(copying, cells);

    if (result < 0)
        return result;
    result = copy_snapshot(copying);
    if (result < 0)
        explain_failure(copying, result);
    copy_counts(copying);
    sxe_dict_close(copying->to);
    return result < 0 ? result : check_closed(copying, fd);
}

/* Write the copy beside the target. After an error nothing is left of it. */
static int
write_dict_copy(struct copying *copying, unsigned cells)
{
    char *path = copying->temporary;

    snprintf(path, sizeof(copying->temporary), "%s.XXXXXX", copying->file.path);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd == -1)
        return sxe__dict_refuse(copying->why, errno, "cannot make a file beside %.300s: %s",
                                copying->file.path, strerror(errno));
    const int result = fill_copy(copying, cells, fd);
    close(fd);
    if (result < 0)
        unlink(path);
    return result;
}

/* ---- The target ---- */

/* Sync the target's directory: only then is the rename on the disk. */
static int
sync_directory(const struct copying *copying)
{
    char directory[PATH_MAX];

    snprintf(directory, sizeof(directory), "%s", copying->file.path);
    strrchr(directory, '/')[1] = '\0';
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = fd == -1 || fsync(fd) != 0 ? errno : 0;
    if (fd != -1)
        close(fd);
    return error == 0 ? 0
                      : sxe__dict_refuse(copying->why, error,
                                         "%.200s is written, but its directory cannot be synced, "
                                         "so a power cut may bring back what was there: %s",
                                         copying->file.path, strerror(error));
}

/* If there was no file, use link(): unlike rename(), it does not replace a file that was made
 * meanwhile. */
static int
put_in_place(const struct copying *copying)
{
    const char *path = copying->file.path;
    const bool is_there = copying->file.fd != -1;
    const int result = is_there ? rename(copying->temporary, path) : link(copying->temporary, path);
    const int error = errno;

    if (!is_there || result != 0)
        unlink(copying->temporary);
    if (error == EEXIST && result != 0)
        return sxe__dict_refuse(copying->why, error,
                                "%.300s was made by another program meanwhile, perhaps by a copy "
                                "that ran at the same time: look at it, and try again",
                                path);
    return result == 0 ? sync_directory(copying)
                       : sxe__dict_refuse(copying->why, error,
                                          "cannot put the new file in the place of %.300s: %s",
                                          path, strerror(error));
}

static int
copy_cells(struct copying *copying, unsigned cells)
{
    int result = -ESTALE;

    for (unsigned i = 0; i < SNAPSHOTS && result == -ESTALE; i++)
        result = write_dict_copy(copying, cells);
    return result == 0 ? put_in_place(copying) : result;
}

/* The caller holds the target's opening lock. 0: the target may be replaced; 1: another process
 * just replaced it; -errno. */
static int
check_target(struct copying *copying)
{
    struct sxe__pool_opening *file = &copying->file;
    struct stat status;
    const int gone = sxe__pool_file_is_gone(file);

    if (gone != 0)
        return gone;
    if (fstat(file->fd, &status) != 0)
        return sxe__pool_refuse_errno(file, "look at the file");
    copying->mode = status.st_mode & 0777;
    const int others = sxe__pool_others(file->fd);
    errno = -others;
    if (others < 0)
        return sxe__pool_refuse_errno(file, "see who uses it");
    return others == 0 ? 0
                       : sxe__pool_refuse(file, EBUSY,
                                          "it is in use: close it in every program, and try again");
}

/* Whether a file that cannot be opened has the head of a dict: it was cut, or has another version.
 */
static bool
was_dict(const struct sxe__pool_opening *file)
{
    struct sxe__pool_head head = {0};

    return pread(file->fd, &head, sizeof(head), 0) > 0 &&
           memcmp(head.magic, SXE__POOL_FILE_MAGIC, sizeof(head.magic)) == 0 &&
           memcmp(head.state_names, SXE__DICT_STATE_NAMES, sizeof(SXE__DICT_STATE_NAMES)) == 0;
}

/* Refuse to replace anything but a dict, whole or damaged, or an empty file. */
static int
check_copied_kind(struct sxe__pool_opening *file)
{
    const int result = sxe__pool_head_read(file);

    if (result == -EUCLEAN || (result == 0 && file->is_empty) || was_dict(file))
        return 0;
    return result < 0
               ? result
               : sxe__pool_refuse(file, EMEDIUMTYPE,
                                  "it is a pool, but no dict: remove it, or give another path");
}

static int
lock_target(struct copying *copying)
{
    struct sxe__pool_opening *file = &copying->file;
    const int result = sxe__pool_opening_lock(file->fd);

    errno = -result;
    return result == 0 ? check_target(copying) : sxe__pool_refuse_errno(file, "lock the file");
}

/* Whether the target is the file of the dict that is copied, perhaps under another name. */
static bool
is_own_target(const struct copying *copying)
{
    const struct sxe__pool_sharing *sharing = copying->from->sharing;
    struct stat own;
    struct stat other;

    return sharing != NULL && fstat(sharing->fd, &own) == 0 &&
           fstat(copying->file.fd, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

/* Open and lock the file at the target's path. Returns 0, also if there is no file, or -errno. */
static int
take_target(struct copying *copying)
{
    struct sxe__pool_opening *file = &copying->file;
    int result = 1;

    copying->mode = S_IRUSR | S_IWUSR;
    for (unsigned tries = 0; result == 1 && tries < SXE__POOL_OPEN_TRIES; tries++) {
        result = sxe__pool_file_open(file);
        if (result == -ENOENT)
            return 0;
        if (result == 0)
            result = sxe__pool_file_check(file);
        if (result == 0 && is_own_target(copying))
            result = sxe__pool_refuse(file, EBUSY,
                                      "it is the dict that would be copied: give another path");
        if (result == 0)
            result = lock_target(copying);
        if (result == 0)
            result = check_copied_kind(file);
        if (result != 0 && file->fd != -1)
            close(file->fd);
    }
    return result == 1 ? sxe__pool_refuse(file, EAGAIN,
                                          "the file is replaced again and again: "
                                          "see who does that")
                       : result;
}

/* ---- The calls ---- */

static struct copying
plan_copy(SXE_DICT *from, const char *file, bool (*is_over)(void), char *why)
{
    return (struct copying){
        .from = from,
        .why = why,
        .is_over = is_over,
        .file = {.spec.file = file == NULL ? "" : file, .why = why, .what = "", .fd = -1},
    };
}

int
sxe_dict_backup(SXE_DICT *dict, const char *file, bool (*is_over)(void), char *why)
{
    struct copying copying = plan_copy(dict, file, is_over, why);
    int result = take_target(&copying);

    if (result < 0)
        return result;
    result = copy_cells(&copying, dict->number - dict->shards);
    if (copying.file.fd != -1) {
        /* Unlock the target: a child that was forked meanwhile may have the descriptor, and with it
         * the lock. */
        sxe__pool_opening_unlock(copying.file.fd);
        close(copying.file.fd);
    }
    return result;
}

int
sxe_dict_restore(const char *backup, const char *file, bool (*is_over)(void), char *why)
{
    const SXE_DICT_SPEC spec = {.file = backup};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    if (dict == NULL)
        return -errno;
    const int result = sxe_dict_backup(dict, file, is_over, why);
    sxe_dict_close(dict);
    return result;
}

int
sxe_dict_resize(const char *file, unsigned cells, bool (*is_over)(void), char *why)
{
    const SXE_DICT_SPEC spec = {.file = file};
    SXE_DICT *dict = cells == 0 ? NULL : sxe_dict_open(&spec, why);

    if (cells == 0)
        return sxe__dict_refuse(why, EINVAL, "a dict of no cells holds nothing: give a number");
    if (dict == NULL)
        return -errno;
    struct copying copying = plan_copy(dict, file, is_over, why);
    int result = sxe__pool_file_path(&copying.file);

    copying.file.fd = dict->sharing->fd;
    if (result == 0)
        result = lock_target(&copying);
    if (result == 0)
        result = copy_cells(&copying, cells);
    else if (result == 1)
        result =
            sxe__pool_refuse(&copying.file, EAGAIN, "the file was replaced just now: try again");
    sxe_dict_close(dict);
    return result;
}
