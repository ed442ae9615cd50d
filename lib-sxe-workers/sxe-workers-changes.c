/* SPDX-License-Identifier: MIT
 *
 * Noticing changed files by comparing what stat(2) returns.
 */
#include "sxe-workers-changes-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sxe-log.h"

static struct {
    struct {
        char path[SXE__HANDOVER_PATH];
        struct sxe__stamp stamp;
        /* whether the load in progress, or, if there is none, the last load added the file */
        bool is_of_load;
    } files[CHANGES_FILES];
    unsigned number;
    bool is_pending;
    bool is_full_told; /* whether the log says that the table is full */
} changes;

struct sxe__stamp
sxe__stamp_of(const char *path)
{
    struct sxe__stamp stamp;
    struct stat status;

    memset(&stamp, 0, sizeof(stamp));
    if (stat(path, &status) == 0) {
        stamp.device = status.st_dev;
        stamp.inode = status.st_ino;
        stamp.size = status.st_size;
        stamp.changed = status.st_mtim;
        stamp.touched = status.st_ctim;
    }
    return stamp;
}

void
sxe__changes_clear(void)
{
    changes.number = 0;
    changes.is_pending = false;
    changes.is_full_told = false;
}

static void
tell_full(const char *path)
{
    if (!changes.is_full_told)
        SXE_WARN("a change of %s, and of further files, will not be noticed: %u files are watched "
                 "already",
                 path, CHANGES_FILES);
    changes.is_full_told = true;
}

void
sxe__changes_add(const char *path)
{
    unsigned i = 0;

    while (i < changes.number && strcmp(changes.files[i].path, path) != 0)
        i++;
    if (i == CHANGES_FILES) {
        tell_full(path);
        return;
    }
    changes.files[i].is_of_load = true;
    if (i < changes.number)
        return;
    changes.number++;
    snprintf(changes.files[i].path, sizeof(changes.files[i].path), "%s", path);
    changes.files[i].stamp = sxe__stamp_of(path);
}

static bool
is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

void
sxe__changes_add_seen(const char *path, const struct sxe__stamp *stamp, const struct timespec *seen)
{
    const unsigned added = changes.number;

    sxe__changes_add(path);
    if (changes.number > added && seen->tv_sec != 0 &&
        !is_before(&changes.files[added].stamp.touched, seen))
        changes.files[added].stamp = *stamp;
}

/* Get the present stamps of all files. Returns whether one has changed. */
static bool
take_stamps(void)
{
    bool is_changed = false;

    for (unsigned i = 0; i < changes.number; i++) {
        struct sxe__stamp stamp = sxe__stamp_of(changes.files[i].path);

        if (memcmp(&stamp, &changes.files[i].stamp, sizeof(stamp)) == 0)
            continue;
        changes.files[i].stamp = stamp;
        is_changed = true;
    }
    return is_changed;
}

bool
sxe__changes_look(void)
{
    bool is_over = changes.is_pending;

    changes.is_pending = take_stamps();
    return is_over && !changes.is_pending;
}

bool
sxe__changes_begin_load(void)
{
    const bool is_changed = take_stamps() || changes.is_pending;

    changes.is_pending = false;
    for (unsigned i = 0; i < changes.number; i++)
        changes.files[i].is_of_load = false;
    return is_changed;
}

void
sxe__changes_end_load(void)
{
    unsigned number = 0;

    for (unsigned i = 0; i < changes.number; i++) {
        if (changes.files[i].is_of_load)
            changes.files[number++] = changes.files[i];
    }
    changes.number = number;
}
