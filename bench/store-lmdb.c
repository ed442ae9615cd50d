/* SPDX-License-Identifier: MIT
 *
 * What: gets and puts by LMDB: the peer of bench/lua/store.lua in the rows store-get and store-put,
 * which makes the same transactions with sxe.store.
 *
 *     store-lmdb get | get-alone | put | put-none COUNT FILE
 *
 *     get          keys in random order, all in one transaction that reads; values are copied
 *     get-alone    each in a transaction of its own
 *     put          random keys, BATCH in each transaction, which waits for the disk
 *     put-none     the same without waiting for the disk (MDB_NOSYNC)
 *
 * The file gets ENTRIES entries first. Before and after the COUNT operations it prints a line; the
 * second one has the CPU seconds in between.
 */
#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENTRIES = 100000, BATCH = 1000, KEY_SIZE = 16, VALUE_SIZE = 100 };

/* Each key is a string of its own in memory, as keys of programs are, and as those of Lua are. A
 * look-up has to fetch it from there. */
static const char *in_order[ENTRIES];
static const char *order[ENTRIES]; /* as many random keys */
static char value[VALUE_SIZE];
static char found[VALUE_SIZE];
static MDB_env *env;
static MDB_dbi table;

static void
check(int result)
{
    if (result == 0)
        return;
    fprintf(stderr, "store-lmdb: %s\n", mdb_strerror(result));
    exit(EXIT_FAILURE);
}

static void
say(const char *what, double seconds)
{
    printf("%s %.6f\n", what, seconds);
    fflush(stdout);
}

static const char *
make_key(unsigned i)
{
    char *key = malloc(KEY_SIZE + 1);

    if (key == NULL)
        exit(EXIT_FAILURE);
    snprintf(key, KEY_SIZE + 1, "session-%08x", i * 2654435761u);
    return key;
}

static void
make_keys(void)
{
    uint32_t seed = 1;

    for (unsigned i = 0; i < ENTRIES; i++)
        in_order[i] = make_key(i);
    for (unsigned i = 0; i < ENTRIES; i++) {
        seed = seed * 1103515245u + 12345u;
        order[i] = in_order[(seed >> 8) % ENTRIES];
    }
}

static void
put_some(MDB_txn *txn, const char **list)
{
    for (unsigned i = 0; i < BATCH; i++) {
        MDB_val key = {KEY_SIZE, (void *)(uintptr_t)list[i]};
        MDB_val data = {VALUE_SIZE, value};

        check(mdb_put(txn, table, &key, &data, 0));
    }
}

static void
put_batches(const char **list, long count)
{
    for (long i = 0; i < count; i += BATCH) {
        MDB_txn *txn;

        check(mdb_txn_begin(env, NULL, 0, &txn));
        put_some(txn, list + i % ENTRIES);
        check(mdb_txn_commit(txn));
    }
}

static void
get_all(long count, bool is_alone)
{
    MDB_txn *txn;

    check(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    for (long i = 0; i < count; i++) {
        MDB_val key = {KEY_SIZE, (void *)(uintptr_t)order[i % ENTRIES]};
        MDB_val data;

        if (is_alone) {
            mdb_txn_reset(txn);
            check(mdb_txn_renew(txn));
        }
        check(mdb_get(txn, table, &key, &data));
        memcpy(found, data.mv_data, VALUE_SIZE);
    }
    mdb_txn_abort(txn);
}

static void
open_store(const char *file, unsigned flags)
{
    MDB_txn *txn;

    check(mdb_env_create(&env));
    check(mdb_env_set_mapsize(env, (size_t)1 << 30));
    check(mdb_env_open(env, file, MDB_NOSUBDIR | flags, 0600));
    check(mdb_txn_begin(env, NULL, 0, &txn));
    check(mdb_dbi_open(txn, NULL, 0, &table));
    check(mdb_txn_commit(txn));
}

int
main(int argc, char **argv)
{
    const char *what = argc == 4 ? argv[1] : "";
    const long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    clock_t start;

    if (argc != 4) {
        fprintf(stderr, "usage: store-lmdb get|get-alone|put|put-none COUNT FILE\n");
        return EXIT_FAILURE;
    }
    memset(value, 'v', sizeof(value));
    make_keys();
    open_store(argv[3], strcmp(what, "put") == 0 ? 0 : MDB_NOSYNC);
    put_batches(in_order, ENTRIES);
    start = clock();
    say("begin", 0);
    if (strncmp(what, "put", 3) == 0)
        put_batches(order, count);
    else
        get_all(count, strcmp(what, "get-alone") == 0);
    say("end", (double)(clock() - start) / CLOCKS_PER_SEC);
    mdb_env_close(env);
    return EXIT_SUCCESS;
}
