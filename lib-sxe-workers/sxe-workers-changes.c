/* SPDX-License-Identifier: MIT
 *
 * Noticing changed files by comparing what stat(2) returns.
 */
#include "sxe-workers-changes-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sxe-workers-handover-internal.h"

struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    /* the time of the last change of the inode; it shows a change even if the writer sets the
     * file's own time back */
    struct timespec touched;
};

static struct {
    struct {
        char path[SXE__HANDOVER_PATH];
        struct stamp stamp;
        /* whether the load in progress, or, if there is none, the last load added the file */
        bool is_of_load;
    } files[CHANGES_FILES];
    unsigned number;
    bool is_pending;
} changes;

/* Get the stamp of a file, which changes with the file. If there is no such file, all members are
 * 0. */
static struct stamp
stamp_of(const char *path)
{
    struct stamp stamp;
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
}

void
sxe__changes_add(const char *path)
{
    unsigned i = 0;

    while (i < changes.number && strcmp(changes.files[i].path, path) != 0)
        i++;
    if (i == CHANGES_FILES)
        return;
    changes.files[i].is_of_load = true;
    if (i < changes.number)
        return;
    changes.number++;
    snprintf(changes.files[i].path, sizeof(changes.files[i].path), "%s", path);
    changes.files[i].stamp = stamp_of(path);
}

/* Get the present stamps of all files. Returns whether one has changed. */
static bool
take_stamps(void)
{
    bool is_changed = false;

    for (unsigned i = 0; i < changes.number; i++) {
        struct stamp stamp = stamp_of(changes.files[i].path);

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
