/* SPDX-License-Identifier: MIT
 *
 * Whether a file has all pages that its newest root counts. A copy that broke off lacks its last
 * pages, and reading them in the map would end the process with SIGBUS. But a complete file may be
 * shorter than its root says, too: LMDB does not write pages that a transaction took and gave back.
 * All such pages are in LMDB's list of free pages. That list may itself be among the missing pages:
 * while it is read, SIGBUS of the reading thread means that, and does not end the process.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

enum { FREE_TABLE = 0, ROOTS = 2 };

/* where this thread goes on after SIGBUS; NULL: nowhere */
static _Thread_local sigjmp_buf *landing;

/* In a thread whose `landing` is NULL this function crashes, and the process ends, as it would
 * without this handler. */
static _Noreturn void
on_bus_error(int signal)
{
    SXE_UNUSED_PARAMETER(signal);
    siglongjmp(*landing, 1);
}

static size_t
count_pages(const MDB_stat *stat)
{
    return stat->ms_branch_pages + stat->ms_leaf_pages + stat->ms_overflow_pages;
}

/* How many pages of a list are numbered `first` or higher. The list begins with its length. */
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

/* Count the free pages from number `first` on. 0 or an error. */
static int
walk_free(MDB_cursor *cursor, size_t first, size_t *count)
{
    MDB_val key, list;
    int result;

    while ((result = mdb_cursor_get(cursor, &key, &list, MDB_NEXT)) == 0)
        *count += count_listed(&list, first);
    return result == MDB_NOTFOUND ? 0 : result;
}

/* Like walk_free; MDB_CORRUPTED if a page of the list is missing. */
static int
walk_free_pages_that_exist(MDB_cursor *cursor, size_t first, size_t *count)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    const struct sigaction action = {.sa_handler = on_bus_error};
    struct sigaction before;
    sigjmp_buf place;
    sigset_t bus, blocked;
    volatile int result = MDB_CORRUPTED;

    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_mutex_lock(&one_at_a_time);
    /* If SIGBUS is blocked, the kernel ends the process without calling a handler. */
    (void)pthread_sigmask(SIG_UNBLOCK, &bus, &blocked);
    (void)sigaction(SIGBUS, &action, &before);
    if (sigsetjmp(place, 1) == 0) {
        landing = &place;
        result = walk_free(cursor, first, count);
    }
    landing = NULL;
    (void)sigaction(SIGBUS, &before, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

static int
count_free(MDB_txn *txn, size_t first, size_t *count)
{
    MDB_cursor *cursor;
    int result = mdb_cursor_open(txn, FREE_TABLE, &cursor);

    if (result != 0)
        return result;
    result = walk_free_pages_that_exist(cursor, first, count);
    mdb_cursor_close(cursor);
    return result;
}

/* Whether all missing pages, from number `present` on, are free; the root counts `all` pages. */
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
    /* The list of free pages may itself be among the missing pages, so count before reading it. */
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
    /* If another process has just committed, it uses the file, and has checked it before. */
    if (present > info.me_last_pgno || info.me_last_txnid != mdb_txn_id(txn))
        return 0;
    return check_missing(txn, table, present, info.me_last_pgno + 1);
}
