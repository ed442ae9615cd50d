/* SPDX-License-Identifier: MIT
 *
 * A batch can be used again and again, also after a refused commit, and has its own copy of the
 * bytes: by docs/dict.md and sxe-dict.h.
 */
#include "outside.h"

#include <errno.h>
#include <string.h>
#include <sxe-dict.h>

enum { KEYS = 8, ROUNDS = 50 };

static SXE_DICT *
open_of(unsigned cells)
{
    SXE_DICT_SPEC spec = {.name = "outside", .cells = cells};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

static void
put(SXE_DICT_BATCH *batch, unsigned key, unsigned value)
{
    ck_assert_int_eq(sxe_dict_batch_put(batch, &key, sizeof(key), &value, sizeof(value), 0), 0);
}

static void
expect(SXE_DICT *dict, unsigned key, unsigned value)
{
    unsigned found = 0;

    ck_assert_int_eq(sxe_dict_peek(dict, &key, sizeof(key), &found, sizeof(found)), sizeof(found));
    ck_assert_uint_eq(found, value);
}

/* The heap hands out freed memory again soon, so a batch that kept a pointer to freed bytes would
 * change another value, or free it a second time. */
/* promise: docs/dict.md: A batch can be used again after its commit, which empties it; a commit
 * that is refused keeps its changes, and the next commit does them. */
START_TEST(a_batch_is_committed_fifty_times)
{
    SXE_DICT *dict = open_of(100);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    char *mine[KEYS];

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 1 + round % KEYS; i++)
            put(batch, i, round);
        ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
        for (unsigned i = 0; i < KEYS; i++)
            mine[i] = memset(malloc(9), 'm', 9);
        put(batch, 0, round + 1000);
        put(batch, KEYS + round % 3, round);
        ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
        for (unsigned i = 0; i < KEYS; i++) {
            ck_assert_mem_eq(mine[i], "mmmmmmmmm", 9);
            free(mine[i]);
        }
        expect(dict, 0, round + 1000);
        expect(dict, KEYS + round % 3, round);
    }
    ck_assert_uint_eq(sxe_dict_get_count(dict), KEYS + 3);
    put(batch, 1, 1);
    sxe_dict_batch_delete(batch);
    sxe_dict_close(dict);
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: 0, or nothing was done and the batch is as it was, so that the
 * next commit does it */
START_TEST(a_refused_commit_is_made_again)
{
    SXE_DICT *dict = open_of(10);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), &i, sizeof(i), 0), 0);
    for (unsigned i = 10; i < 15; i++)
        put(batch, i, i);
    for (unsigned tries = 0; tries < 3; tries++) {
        ck_assert_int_eq(sxe_dict_batch_commit(batch), -ENOSPC);
        ck_assert_uint_eq(sxe_dict_get_count(dict), 10);
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(sxe_dict_remove(dict, &i, sizeof(i)), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    for (unsigned i = 5; i < 15; i++)
        expect(dict, i, i);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 10);
    sxe_dict_batch_delete(batch);
    sxe_dict_close(dict);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_batch_is_committed_fifty_times, a_refused_commit_is_made_again, NULL};

    return outside_run("dict-batch", cases);
}
