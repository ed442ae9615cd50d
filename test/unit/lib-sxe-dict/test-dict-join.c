/* SPDX-License-Identifier: MIT
 *
 * A dict that another process is checking, repairing or completing: an opener is not refused, and a
 * walk misses nothing. The walker's lines are compiled here, so that another process can act
 * between two of its loads.
 */
#include <stddef.h>

static unsigned looks_to_go; /* loads until others_act; 0: never */
static void (*others_act)(void);

static inline void
look(void)
{
    if (looks_to_go != 0 && --looks_to_go == 0)
        others_act();
}

#define SXE__POOL_STEP()                 ((void)0)
#define SXE__POOL_GET(place)             (look(), __atomic_load_n(&(place), __ATOMIC_RELAXED))
#define SXE__POOL_PUT(place, value)      __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
#define SXE__POOL_PUT_LAST(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

#include "../../../lib-sxe-dict/sxe-dict-walker.c"

#include <unistd.h>

#include "test-main.h"

static SXE_DICT *dict;
static SXE_DICT *other; /* the same dict, opened again as by another process */
static char why[SXE_POOL_WHY_SIZE];

static SXE_DICT *
join(void)
{
    SXE_DICT *joined = sxe_dict_open_fd(sxe_pool_get_fd(sxe_dict_get_pool(dict)), NULL, why);

    ck_assert_msg(joined != NULL, "%s", why);
    return joined;
}

static void
setup(void)
{
    const SXE_DICT_SPEC spec = {.name = "test", .cells = 20, .cell_size = 128};

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    other = join();
}

static void
teardown(void)
{
    sxe_dict_close(other);
    sxe_dict_close(dict);
}

/* A check of a large dict holds the lock for seconds, so opening must not wait for it. */
START_TEST(dict_that_another_checks_is_joined)
{
    ck_assert_int_eq(sxe__dict_lock(other, 0), 0);
    sxe_dict_close(join());
    sxe__dict_unlock(other, 0);
}
END_TEST

/* A rebuild must not free the lock: its holder would later release the lock of the next holder. */
START_TEST(lock_of_who_commits_a_batch_stays_when_the_table_is_made_anew)
{
    uint32_t *lock = &dict->control->batch;

    ck_assert_int_eq(sxe__pool_lock(other->sharing, lock), 0);
    ck_assert_int_eq(sxe__dict_rebuild(dict), 0);
    ck_assert_int_eq(sxe__pool_lock(dict->sharing, lock), -EAGAIN);
    sxe__pool_unlock(lock);
}
END_TEST

/* A key whose entry is in the bucket that a walk visits first: before it comes to other buckets,
 * the walk has completed changes anyhow. */
static uint32_t key;

static void
choose_key(struct sxe__dict_key *place)
{
    for (key = 0; key == 0 || (place->hash & dict->bucket_mask) != 0;) {
        key++;
        ck_assert_int_eq(sxe__dict_set_key(dict, place, &key, sizeof(key)), 0);
    }
}

/* Leave a put that a dead process has committed and not finished. */
static void
leave_a_put(void)
{
    struct sxe__dict_key place;
    struct sxe__dict_put put = {.key = &place, .value = "v", .size = 1, .state = SXE_DICT_LIVE};

    choose_key(&place);
    ck_assert_int_eq(sxe__dict_lock(dict, 0), 0);
    uint32_t cursor = sxe__dict_list(dict, 0, SXE__DICT_FREE)->next;
    const int64_t id = sxe__dict_fill(dict, &put, &cursor);
    ck_assert_int_ge(id, 0);
    dict->records[0].pending = (uint32_t)id + 1;
    sxe__dict_unlock(dict, 0);
}

static void
complete_it(void)
{
    if (sxe__dict_lock(other, 0) == 0)
        sxe__dict_unlock(other, 0);
}

START_TEST(walk_meets_what_another_completes_meanwhile)
{
    bool acted = true;

    others_act = complete_it;
    for (unsigned nth = 1; acted; nth++) {
        SXE_DICT_WALKER walker;
        SXE_DICT_ENTRY entry = {0};
        unsigned met = 0;

        leave_a_put();
        looks_to_go = nth;
        sxe_dict_walker_construct(&walker, dict);
        while (sxe_dict_walker_step(&walker, &entry) == 1)
            met++;
        acted = looks_to_go == 0;
        looks_to_go = 0;
        ck_assert_msg(met == 1, "completed before look %u: met %u times", nth, met);
        ck_assert_int_eq(sxe_dict_remove(dict, &key, sizeof(key)), 0);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-join");
    TCase *tcase = tcase_create("join");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, dict_that_another_checks_is_joined);
    tcase_add_test(tcase, lock_of_who_commits_a_batch_stays_when_the_table_is_made_anew);
    tcase_add_test(tcase, walk_meets_what_another_completes_meanwhile);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
