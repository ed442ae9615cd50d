/* SPDX-License-Identifier: MIT
 *
 * Whether a file has all pages that its newest root counts. The end of a copy that broke off is
 * missing, and a read of the map there would end the process with SIGBUS. But a file may be shorter
 * than the root says and be whole: LMDB does not write pages that one transaction took and gave
 * back. Its list of free pages has all of them.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { FREE_TABLE = 0, ROOTS = 2 };

static size_t
count_pages(const MDB_stat *stat)
{
    return stat->ms_branch_pages + stat->ms_leaf_pages + stat->ms_overflow_pages;
}

/* Add the pages of a list, which begins with their number, from `first` on. */
static size_t
count_listed(const MDB_val *list, size_t first)
{
    size_t count = 0;

    for (size_t at = sizeof(size_t); at < list->mv_size; at += sizeof(size_t)) {
        size_t page;

        memcpy(&page, (const char *)list->mv_data + at, sizeof(page));
        count += page >= first;
    }
    return count;
}

/* Count the free pages from `first` on: 0 or an error. */
static int
count_free(MDB_txn *txn, size_t first, size_t *count)
{
    MDB_cursor *cursor;
    MDB_val key, list;
    int result = mdb_cursor_open(txn, FREE_TABLE, &cursor);

    if (result != 0)
        return result;
    while ((result = mdb_cursor_get(cursor, &key, &list, MDB_NEXT)) == 0)
        *count += count_listed(&list, first);
    mdb_cursor_close(cursor);
    return result == MDB_NOTFOUND ? 0 : result;
}

/* Whether the pages from `present` on are free, where `all` were counted. */
static int
check_missing(MDB_txn *txn, MDB_dbi table, size_t present, size_t all)
{
    MDB_stat used, listing;
    size_t count = 0;
    int result = mdb_stat(txn, table, &used);

    if (result == 0)
        result = mdb_stat(txn, FREE_TABLE, &listing);
    if (result != 0)
        return result;
    /* Count before reading the list: it may be among the missing pages itself. */
    if (ROOTS + count_pages(&used) + count_pages(&listing) > present)
        return MDB_CORRUPTED;
    result = count_free(txn, present, &count);
    if (result != 0)
        return result;
    return count < all - present ? MDB_CORRUPTED : 0;
}

int
sxe__store_check_pages(MDB_env *env, MDB_txn *txn, MDB_dbi table)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat status;
    size_t present;
    int fd, result;

    if ((result = mdb_env_info(env, &info)) != 0 || (result = mdb_stat(txn, table, &stat)) != 0 ||
        (result = mdb_env_get_fd(env, &fd)) != 0)
        return result;
    if (fstat(fd, &status) < 0)
        return errno;
    present = (size_t)status.st_size / stat.ms_psize;
    /* If another process has just committed, the file is in use, and was looked at before. */
    if (present > info.me_last_pgno || info.me_last_txnid != mdb_txn_id(txn))
        return 0;
    return check_missing(txn, table, present, info.me_last_pgno + 1);
}
