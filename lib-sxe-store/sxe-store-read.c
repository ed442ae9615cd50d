/* SPDX-License-Identifier: MIT
 *
 * Reading in the loop's thread. A read of one value has a transaction for that moment only, and
 * afterwards no old page is kept for it; a snapshot keeps its transaction. Transactions and the
 * places in the table of readers that they hold are kept for the next use.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-lua-clock.h"
#include "sxe-lua-internal.h"

/* Begin a transaction, or renew a transaction that was kept. If the table of readers is full, free
 * the places of readers that were killed, and try again. */
static int
begin_reading(struct sxe__store_file *file, MDB_txn **txn)
{
    int result;

    if (file->is_broken)
        return MDB_PANIC;
    if (*txn != NULL)
        return mdb_txn_renew(*txn);
    result = mdb_txn_begin(file->env, NULL, MDB_RDONLY, txn);
    if (result == MDB_READERS_FULL && mdb_reader_check(file->env, NULL) == 0)
        result = mdb_txn_begin(file->env, NULL, MDB_RDONLY, txn);
    if (result != 0)
        *txn = NULL;
    return result;
}

/* ---- One value ---- */

void
sxe__store_read_end(struct sxe__store_file *file)
{
    if (file->is_reading)
        mdb_txn_reset(file->reader);
    file->is_reading = false;
}

int
sxe__store_read(struct sxe__store_file *file, MDB_val *key, MDB_val *value)
{
    int result;

    /* the last read was not ended, because Lua had no memory for its value */
    sxe__store_read_end(file);
    result = begin_reading(file, &file->reader);
    if (result != 0)
        return result;
    file->is_reading = true;
    result = mdb_get(file->reader, file->table, key, value);
    if (result != 0)
        sxe__store_read_end(file);
    return result;
}

/* ---- Snapshots ---- */

static uint64_t
max_ns(const struct sxe__store_file *file)
{
    return (uint64_t)(file->options.snapshot_max_s * 1e9);
}

/* The timer runs while a snapshot is open. The timer does not keep the loop running:
 * start_renew_timer gave up a reference of the loop, and this function takes it back. */
static void
stop_timer(struct sxe__store_file *file)
{
    if (!ev_is_active(&file->ends_old))
        return;
    ev_ref(file->loop);
    ev_timer_stop(file->loop, &file->ends_old);
}

static void
on_old(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct sxe__store_file *file = timer->data;
    const uint64_t now_ns = sxe_lua_get_clock()->now_ns();

    (void)loop;
    (void)events;
    for (unsigned i = 0; i < SXE__STORE_SNAPSHOTS; i++) {
        if (file->snapshot[i].is_open && now_ns - file->snapshot[i].begun_ns >= max_ns(file))
            sxe__store_snapshot_close(file, i);
    }
}

static void
start_renew_timer(struct sxe__store_file *file)
{
    const double check_s = file->options.snapshot_max_s / 4;

    if (sxe_loop() == NULL || ev_is_active(&file->ends_old))
        return;
    file->loop = sxe_loop();
    ev_timer_init(&file->ends_old, on_old, check_s, check_s);
    file->ends_old.data = file;
    ev_timer_start(file->loop, &file->ends_old);
    ev_unref(file->loop);
}

int
sxe__store_snapshot_open(struct sxe__store_file *file, unsigned *index)
{
    struct sxe__store_snapshot *snapshot;
    unsigned i = 0;
    int result;

    while (i < SXE__STORE_SNAPSHOTS && file->snapshot[i].is_open)
        i++;
    if (i == SXE__STORE_SNAPSHOTS)
        return EMFILE;
    snapshot = &file->snapshot[i];
    result = begin_reading(file, &snapshot->txn);
    if (result != 0)
        return result;
    snapshot->is_open = true;
    snapshot->begun_ns = sxe_lua_get_clock()->now_ns();
    file->snapshots++;
    start_renew_timer(file);
    *index = i;
    return 0;
}

/* All processes share the places in the table of readers, so keep only a few. */
static void
give_up_place(struct sxe__store_snapshot *snapshot)
{
    mdb_txn_abort(snapshot->txn);
    snapshot->txn = NULL;
}

void
sxe__store_snapshot_close(struct sxe__store_file *file, unsigned index)
{
    struct sxe__store_snapshot *snapshot = &file->snapshot[index];

    if (snapshot->cursor != NULL)
        mdb_cursor_close(snapshot->cursor);
    snapshot->cursor = NULL;
    snapshot->at.mv_data = NULL;
    snapshot->generation++;
    snapshot->is_open = false;
    mdb_txn_reset(snapshot->txn);
    if (index >= SXE__STORE_SNAPSHOTS_KEPT)
        give_up_place(snapshot);
    if (--file->snapshots == 0)
        stop_timer(file);
}

void
sxe__store_snapshot_close_all(struct sxe__store_file *file)
{
    for (unsigned i = 0; i < SXE__STORE_SNAPSHOTS; i++) {
        if (file->snapshot[i].txn != NULL)
            give_up_place(&file->snapshot[i]);
    }
    if (file->reader != NULL)
        mdb_txn_abort(file->reader);
    file->reader = NULL;
    file->is_reading = false;
}

/* ---- Walks ---- */

int
sxe__store_compare(const MDB_val *a, const MDB_val *b)
{
    const size_t size = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
    const int result = size == 0 ? 0 : memcmp(a->mv_data, b->mv_data, size);

    return result != 0 ? result : (a->mv_size > b->mv_size) - (a->mv_size < b->mv_size);
}

/* Go to the last entry whose key is smaller than a bound. */
static int
go_below(MDB_cursor *cursor, const MDB_val *bound, MDB_val *key, MDB_val *value)
{
    int result;

    if (bound->mv_data == NULL)
        return mdb_cursor_get(cursor, key, value, MDB_LAST);
    if (bound->mv_size == 0)
        return MDB_NOTFOUND;
    *key = *bound;
    result = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    if (result == MDB_NOTFOUND)
        return mdb_cursor_get(cursor, key, value, MDB_LAST);
    return result == 0 ? mdb_cursor_get(cursor, key, value, MDB_PREV) : result;
}

/* Go to the first entry whose key is larger than `before`; before NULL: to the first entry whose
 * key is at least the bound. */
static int
go_above(MDB_cursor *cursor, const MDB_val *bound, const MDB_val *before, MDB_val *key,
         MDB_val *value)
{
    const MDB_val *from = before != NULL ? before : bound;
    int result;

    if (from->mv_size == 0)
        return mdb_cursor_get(cursor, key, value, MDB_FIRST);
    *key = *from;
    result = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    if (result == 0 && before != NULL && sxe__store_compare(key, before) == 0)
        result = mdb_cursor_get(cursor, key, value, MDB_NEXT);
    return result;
}

int
sxe__store_walk_step(struct sxe__store_file *file, unsigned index,
                     const struct sxe__store_walk *walk, const MDB_val *before, MDB_val *key,
                     MDB_val *value)
{
    struct sxe__store_snapshot *snapshot = &file->snapshot[index];
    const bool is_there = before != NULL && snapshot->at.mv_data != NULL &&
                          sxe__store_compare(&snapshot->at, before) == 0;
    int result = 0;

    if (snapshot->cursor == NULL)
        result = mdb_cursor_open(snapshot->txn, file->table, &snapshot->cursor);
    if (result != 0)
        return result;
    snapshot->at.mv_data = NULL;
    if (is_there)
        result =
            mdb_cursor_get(snapshot->cursor, key, value, walk->is_reverse ? MDB_PREV : MDB_NEXT);
    else if (walk->is_reverse)
        result = go_below(snapshot->cursor, before != NULL ? before : &walk->high, key, value);
    else
        result = go_above(snapshot->cursor, &walk->low, before, key, value);
    if (result != 0)
        return result;
    snapshot->at = *key;
    if (walk->is_reverse)
        return sxe__store_compare(key, &walk->low) < 0 ? MDB_NOTFOUND : 0;
    return walk->high.mv_data != NULL && sxe__store_compare(key, &walk->high) >= 0 ? MDB_NOTFOUND
                                                                                   : 0;
}
