/* SPDX-License-Identifier: MIT
 *
 * Several processes call everything and are killed, by docs/dict.md: the next process finds each
 * entry as it was before a call or after it, and can fill the table completely.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

enum { CELLS = 120, KEYS = 30, BATCH = 6, FIRST = 200, WORKERS = 3, ROUNDS = 24, LONG = 900 };

static SXE_DICT *dict;
static char value[LONG];

static void
open_of(unsigned shards, bool evicts)
{
    const SXE_DICT_SPEC spec = {.name = "kills",
                                .cells = CELLS,
                                .cell_size = 128,
                                .shards = shards,
                                .evicts = evicts,
                                .file = outside_path("kills.dict")};
    char why[SXE_POOL_WHY_SIZE];

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
}

static void
commit(SXE_DICT_BATCH *batch, int number)
{
    for (int key = FIRST; key < FIRST + BATCH; key++)
        (void)!sxe_dict_batch_put(batch, &key, sizeof(key), &number, sizeof(number), 0);
    (void)!sxe_dict_batch_commit(batch);
}

/* Make all calls again and again, until a kill. */
static void
work(unsigned seed)
{
    SXE_DICT_SNAPSHOT *snapshot = NULL;
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    for (unsigned i = seed;; i = i * 1103515245 + 12345) {
        const int key = (int)(i >> 12) % KEYS;
        const size_t size = (i >> 17) % LONG;

        switch ((i >> 8) % 8) {
        case 0:
            (void)!sxe_dict_remove(dict, &key, sizeof(key));
            break;
        case 1:
            (void)!sxe_dict_add(dict, &(int){100}, sizeof(int), 1, 0, NULL);
            break;
        case 2:
            sxe_dict_snapshot_release(snapshot);
            snapshot = (i >> 20) % 2 ? sxe_dict_snapshot_take(dict) : NULL;
            break;
        case 3:
            commit(batch, (int)i);
            break;
        case 4:
            (void)!sxe_dict_expire(dict, &key, sizeof(key), (double)size * 1e-6);
            break;
        case 5:
            (void)!sxe_dict_get(dict, &key, sizeof(key), value, LONG);
            break;
        default:
            (void)!sxe_dict_put(dict, &key, sizeof(key), value, size, 0);
        }
    }
}

static void
expect_whole_batch(void)
{
    int found = 0, number = 0, last = 0;

    for (int key = FIRST; key < FIRST + BATCH; key++) {
        if (sxe_dict_peek(dict, &key, sizeof(key), &number, sizeof(number)) < 0)
            continue;
        ck_assert(found == 0 || number == last);
        last = number;
        found++;
    }
    ck_assert(found == 0 || found == BATCH);
}

static void
expect_all_room(void)
{
    char why[SXE_POOL_WHY_SIZE];

    for (int key = 0; key < FIRST + BATCH; key++)
        (void)!sxe_dict_remove(dict, &key, sizeof(key));
    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    for (int key = 1000; sxe_dict_get_count(dict) < CELLS && key < 1000 * CELLS; key++)
        (void)!sxe_dict_put(dict, &key, sizeof(key), "v", 1, 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), CELLS);
    for (int key = 1000; sxe_dict_get_count(dict) > 0 && key < 1000 * CELLS; key++)
        (void)!sxe_dict_remove(dict, &key, sizeof(key));
    ck_assert_uint_eq(sxe_dict_get_count(dict), 0);
}

static void
kill_some(unsigned round)
{
    pid_t children[WORKERS];

    for (unsigned i = 0; i < WORKERS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            work(round * WORKERS + i);
    }
    usleep(500 + round * 331 % 3000);
    for (unsigned i = 0; i < WORKERS; i++)
        kill(children[i], SIGKILL);
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert_int_eq(waitpid(children[i], NULL, 0), children[i]);
}

/* promise: docs/dict.md: A process may be killed at any instruction of any call: the next process
 * finds the entry as it was before the call, or as it is after the call. */
START_TEST(kills_leave_whole_batches_and_all_room)
{
    char why[SXE_POOL_WHY_SIZE];

    for (unsigned kind = 0; kind < 4; kind++) {
        open_of(kind % 2 == 0 ? 1 : 4, kind >= 2);
        for (unsigned round = 0; round < ROUNDS; round++) {
            kill_some(round);
            if (round % 3 == 0) { /* in the other rounds the dict stays open in this process */
                sxe_dict_close(dict);
                open_of(kind % 2 == 0 ? 1 : 4, kind >= 2);
            }
            ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
            /* in the other kinds of dict an entry of the batch may have been evicted */
            if (kind < 2)
                expect_whole_batch();
            if (round % 4 == 3)
                expect_all_room();
        }
        sxe_dict_close(dict);
        unlink(outside_path("kills.dict"));
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {kills_leave_whole_batches_and_all_room, NULL};

    return outside_run("dict-kills", cases);
}
