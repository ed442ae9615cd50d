/* SPDX-License-Identifier: MIT
 *
 * Commits and copies, which threads do. A commit does the changes of several jobs, because waiting
 * for the disk takes as long for one job as for many. A job whose conditions do not hold changes
 * nothing; the other jobs of the commit do not depend on it. If the commit itself fails, for
 * instance because the map is full, each job gets a commit of its own.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMMITS_A_CHECK = 100, NAME_SIZE = 32 };

/* ---- Changes ---- */

/* Read the change at a place, with its key and value. Returns the place after it. */
static const char *
next_change(const char *at, struct sxe__store_change *change, MDB_val *key, MDB_val *value)
{
    memcpy(change, at, sizeof(*change));
    at += sizeof(*change);
    *key = (MDB_val){change->key_size, (void *)(uintptr_t)at};
    at += change->key_size;
    *value = (MDB_val){change->size, (void *)(uintptr_t)at};
    return change->size == SXE__STORE_NO_VALUE ? at : at + change->size;
}

/* Check whether a key has the value that a condition names. 0, CONFLICT, or an error. */
static int
check_condition(const struct sxe__store_file *file, MDB_txn *txn,
                const struct sxe__store_change *change, MDB_val *key, const MDB_val *expected)
{
    MDB_val value;
    const int result = mdb_get(txn, file->table, key, &value);
    const bool has_value = change->size != SXE__STORE_NO_VALUE;

    if (result == MDB_NOTFOUND)
        return has_value ? SXE__STORE_CONFLICT : 0;
    if (result != 0)
        return result;
    return has_value && sxe__store_compare(&value, expected) == 0 ? 0 : SXE__STORE_CONFLICT;
}

static int
check_conditions(const struct sxe__store_job *job, MDB_txn *txn)
{
    const bool is_unchanged = job->based_on != 0 && mdb_txn_id(txn) == job->based_on + 1;
    struct sxe__store_change change;
    MDB_val key, value;
    int result = 0;

    if (is_unchanged)
        return 0;
    if (job->is_exact)
        return SXE__STORE_CONFLICT;
    for (const char *at = job->data; result == 0 && at < job->data + job->size;) {
        at = next_change(at, &change, &key, &value);
        if (change.is_condition)
            result = check_condition(job->file, txn, &change, &key, &value);
    }
    return result;
}

/* Make the changes of a job. 0, or an error that makes the transaction useless. */
static int
make_changes(struct sxe__store_job *job, MDB_txn *txn)
{
    struct sxe__store_change change;
    MDB_val key, value;
    int result = 0;

    for (const char *at = job->data; result == 0 && at < job->data + job->size;) {
        at = next_change(at, &change, &key, &value);
        if (change.is_condition)
            continue;
        if (change.size != SXE__STORE_NO_VALUE) {
            result = mdb_put(txn, job->file->table, &key, &value, 0);
            continue;
        }
        result = mdb_del(txn, job->file->table, &key, NULL);
        job->was_there = result == 0;
        result = result == MDB_NOTFOUND ? 0 : result;
    }
    return result;
}

/* Make the changes of jobs, until a job fails. based_on is the number of the transaction from which
 * a job knows the data: if that is the last transaction, nothing has changed since. Changes of
 * earlier jobs of this commit have no number yet, so after such changes a job's based_on becomes 0,
 * which is never the last. */
static int
do_jobs(struct sxe__store_job *first, bool is_alone, MDB_txn *txn)
{
    bool has_changed = false;
    int result = 0;

    for (struct sxe__store_job *job = first; job != NULL && result == 0; job = job->line_next) {
        if (has_changed)
            job->based_on = 0;
        job->result = check_conditions(job, txn);
        if (job->result == 0) {
            result = make_changes(job, txn);
            has_changed = true;
        } else if (job->result != SXE__STORE_CONFLICT) {
            result = job->result;
        }
        if (is_alone)
            break;
    }
    return result;
}

/* Commit the changes of one job, or of this job and all jobs after it. */
static int
commit_jobs(struct sxe__store_file *file, struct sxe__store_job *first, bool is_alone)
{
    MDB_txn *txn;
    int result;

    if (file->commits++ % COMMITS_A_CHECK == 0)
        (void)mdb_reader_check(file->env, NULL);
    result = mdb_txn_begin(file->env, NULL, 0, &txn);
    if (result != 0)
        return result;
    result = do_jobs(first, is_alone, txn);
    if (result == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return result;
}

static void
set_results(struct sxe__store_job *first, int result)
{
    for (struct sxe__store_job *job = first; job != NULL; job = job->line_next)
        job->result = result;
}

void
sxe__store_write(struct sxe__store_file *file)
{
    struct sxe__store_job *first = file->taken;
    int result;

    if (file->is_broken) {
        set_results(first, MDB_PANIC);
        return;
    }
    if (first->kind == SXE__STORE_SYNC) {
        first->result = mdb_env_sync(file->env, 1);
        return;
    }
    result = commit_jobs(file, first, false);
    if (result == 0)
        return;
    if (first->line_next == NULL || result == MDB_MAP_RESIZED) {
        set_results(first, result);
        return;
    }
    for (struct sxe__store_job *job = first; job != NULL; job = job->line_next) {
        result = commit_jobs(file, job, true);
        if (result != 0)
            job->result = result;
    }
}

/* ---- Copies ---- */

/* Write a copy to a new file, and sync it to the disk. 0 or an error. */
static int
write_store_copy(const struct sxe__store_job *job, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, job->file->options.mode);
    int result;

    if (fd < 0)
        return errno;
    result = mdb_env_copyfd2(job->file->env, fd, job->is_compact ? MDB_CP_COMPACT : 0);
    if (result == 0 && fsync(fd) < 0)
        result = errno;
    if (close(fd) < 0 && result == 0)
        result = errno;
    if (result != 0)
        unlink(path);
    return result;
}

int
sxe__store_copy(struct sxe__store_job *job)
{
    char path[PATH_MAX + NAME_SIZE];
    int result;

    if (job->file->is_broken)
        return MDB_PANIC;
    snprintf(path, sizeof(path), "%s.%016llx", job->data, (unsigned long long)job->unique);
    result = write_store_copy(job, path);
    if (result != 0)
        return result;
    result = sxe__store_file_replace(path, job->data);
    if (result != 0)
        unlink(path);
    return result;
}
