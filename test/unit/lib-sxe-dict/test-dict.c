/* SPDX-License-Identifier: MIT
 *
 * The calls on one entry, by sxe-dict.h, and the limits of a dict's size.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sxe-dict-private.h"
#include "sxe-time.h"
#include "test-main.h"

int example_main(int argc, char **argv);

#define main example_main
#include "../../../examples/dict.c"
#undef main

#define START_NS UINT64_C(5000000000)

static SXE_DICT *dict;

static void
open_dict(const SXE_DICT_SPEC *spec)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    sxe_time_set_turn_ns(START_NS);
    dict = sxe_dict_open(spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
}

static void
open_of(unsigned cells, unsigned shards, bool evicts)
{
    const SXE_DICT_SPEC spec = {
        .name = "test", .cells = cells, .cell_size = 128, .shards = shards, .evicts = evicts};

    open_dict(&spec);
}

static void
setup(void)
{
    open_of(100, 1, false);
}

static void
teardown(void)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    ck_assert_msg(sxe_pool_check(sxe_dict_get_pool(dict), why) == 0, "%s", why);
    sxe_dict_close(dict);
    sxe_time_set_turn_ns(0);
}

static void
pass(double seconds)
{
    sxe_time_set_turn_ns(sxe_time_turn_ns() + (uint64_t)(seconds * 1e9));
}

static int
put(const char *key, const char *value)
{
    return sxe_dict_put(dict, key, strlen(key), value, strlen(value), SXE_DICT_FOREVER);
}

/* The value of a key; "": there is no entry. */
static const char *
get(const char *key)
{
    static char value[1000];
    const ssize_t size = sxe_dict_get(dict, key, strlen(key), value, sizeof(value) - 1);

    ck_assert(size >= 0 || size == -ENOENT);
    value[size < 0 ? 0 : size] = '\0';
    return value;
}

static bool
has(const char *key)
{
    return sxe_dict_peek(dict, key, strlen(key), NULL, 0) >= 0;
}

/* ---- One entry ---- */

START_TEST(what_is_put_is_got)
{
    ck_assert_int_eq(put("key", "value"), 0);
    ck_assert_str_eq(get("key"), "value");
    ck_assert_int_eq(put("key", "other"), 0);
    ck_assert_str_eq(get("key"), "other");
    ck_assert_uint_eq(sxe_dict_get_count(dict), 1);
    ck_assert_int_eq(sxe_dict_remove(dict, "key", 3), 0);
    ck_assert_str_eq(get("key"), "");
    ck_assert_uint_eq(sxe_dict_get_count(dict), 0);
}
END_TEST

START_TEST(what_is_not_there_is_enoent_in_every_call)
{
    ck_assert_int_eq(sxe_dict_get(dict, "key", 3, NULL, 0), -ENOENT);
    ck_assert_int_eq(sxe_dict_peek(dict, "key", 3, NULL, 0), -ENOENT);
    ck_assert_int_eq(sxe_dict_remove(dict, "key", 3), -ENOENT);
    ck_assert_int_eq(sxe_dict_touch(dict, "key", 3), -ENOENT);
    ck_assert_int_eq(sxe_dict_expire(dict, "key", 3, 1), -ENOENT);
    ck_assert_int_eq(sxe_dict_set_state(dict, "key", 3, SXE_DICT_DIRTY), -ENOENT);
    ck_assert_double_eq(sxe_dict_get_ttl(dict, "key", 3), -ENOENT);
}
END_TEST

START_TEST(key_that_does_not_fit_is_einval_in_every_call)
{
    char key[65] = "";
    const size_t size = sizeof(key);

    ck_assert_int_eq(sxe_dict_get(dict, key, size, NULL, 0), -EINVAL);
    ck_assert_int_eq(sxe_dict_peek(dict, key, size, NULL, 0), -EINVAL);
    ck_assert_int_eq(sxe_dict_put(dict, key, size, NULL, 0, 0), -EINVAL);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, key, size, NULL, 0, NULL, 0, 0), -EINVAL);
    ck_assert_int_eq(sxe_dict_add(dict, key, size, 1, 0, NULL), -EINVAL);
    ck_assert_int_eq(sxe_dict_remove(dict, key, size), -EINVAL);
    ck_assert_int_eq(sxe_dict_touch(dict, key, size), -EINVAL);
    ck_assert_int_eq(sxe_dict_expire(dict, key, size, 1), -EINVAL);
    ck_assert_int_eq(sxe_dict_set_state(dict, key, size, SXE_DICT_LIVE), -EINVAL);
    ck_assert_double_eq(sxe_dict_get_ttl(dict, key, size), -EINVAL);
    ck_assert_int_eq(sxe_dict_put(dict, key, size - 1, "longest", 7, 0), 0);
    ck_assert_int_eq(sxe_dict_get(dict, key, size - 1, NULL, 0), 7);
}
END_TEST

START_TEST(time_to_live_that_is_none_is_einval_in_every_call)
{
    static const double ttls[] = {-1, NAN, -HUGE_VAL};
    const double ttl_s = ttls[_i];

    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, NULL, 0, ttl_s), -EINVAL);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "key", 3, NULL, 0, NULL, 0, ttl_s), -EINVAL);
    ck_assert_int_eq(sxe_dict_add(dict, "key", 3, 1, ttl_s, NULL), -EINVAL);
    ck_assert_int_eq(sxe_dict_expire(dict, "key", 3, ttl_s), -EINVAL);
}
END_TEST

START_TEST(empty_key_and_empty_value_are_as_good_as_any)
{
    ck_assert_int_eq(sxe_dict_put(dict, NULL, 0, NULL, 0, 0), 0);
    ck_assert_int_eq(sxe_dict_get(dict, "", 0, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, NULL, 0, "", 0, "v", 1, 0), 0);
    ck_assert_int_eq(sxe_dict_get(dict, NULL, 0, NULL, 0), 1);
}
END_TEST

START_TEST(value_is_cut_to_the_room_and_its_size_told)
{
    char value[4] = "----";

    ck_assert_int_eq(put("key", "value"), 0);
    ck_assert_int_eq(sxe_dict_get(dict, "key", 3, value, 3), 5);
    ck_assert_int_eq(memcmp(value, "val-", 4), 0);
}
END_TEST

START_TEST(long_value_goes_on_in_other_cells)
{
    static char value[5000];
    static char found[5000];

    for (size_t size = 0; size < 3200; size += 61) {
        memset(value, (int)(size % 255), size);
        ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, size, 0), 0);
        ck_assert_int_eq(sxe_dict_get(dict, "key", 3, found, sizeof(found)), (ssize_t)size);
        ck_assert_int_eq(memcmp(value, found, size), 0);
    }
}
END_TEST

START_TEST(value_of_several_cells_is_replaced_if_there_are_as_many_more)
{
    static const char value[5000];

    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 56 + 64 * 49, 0), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 56 + 64 * 51, 0), -ENOSPC);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 56 + 64 * 50, 0), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 56 + 64 * 50, 0), -ENOSPC);
    ck_assert_int_eq(sxe_dict_remove(dict, "key", 3), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 56 + 64 * 51, 0), 0);
}
END_TEST

START_TEST(value_that_no_shard_has_room_for_is_efbig)
{
    static char value[100 * 64];

    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, sizeof(value), 0), -EFBIG);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 56 + 99 * 64, 0), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, 57 + 99 * 64, 0), -EFBIG);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, value, (size_t)1 << 40, 0), -EFBIG);
}
END_TEST

START_TEST(compare_and_put_wants_what_is_there)
{
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, "a", 1, "b", 1, 0), -EEXIST);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, NULL, 0, "a", 1, 0), 0);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, NULL, 0, "b", 1, 0), -EEXIST);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, "x", 1, "b", 1, 0), -EEXIST);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, "ab", 2, "b", 1, 0), -EEXIST);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, "a", 1, "b", 1, 0), 0);
    ck_assert_str_eq(get("k"), "b");
}
END_TEST

START_TEST(counter_adds_and_never_wraps)
{
    SXE_DICT_SNAPSHOT *snapshot;
    int64_t sum;

    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 5, 0, &sum), 0);
    ck_assert_int_eq(sum, 5);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, -7, 0, &sum), 0);
    ck_assert_int_eq(sum, -2);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, INT64_MIN, 0, NULL), -EOVERFLOW);
    ck_assert_int_eq(sxe_dict_get(dict, "n", 1, &sum, sizeof(sum)), sizeof(sum));
    ck_assert_int_eq(sum, -2);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, INT64_MIN + 2, 0, &sum), 0);
    ck_assert_int_eq(sum, INT64_MIN);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, -1, 0, NULL), -EOVERFLOW);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(snapshot);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, -1, 0, NULL), -EOVERFLOW);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, INT64_MAX, 0, &sum), 0);
    ck_assert_int_eq(sum, -1);
    sxe_dict_snapshot_release(snapshot);
    ck_assert_int_eq(sxe_dict_add(dict, "most", 4, INT64_MAX, 0, NULL), 0);
    ck_assert_int_eq(sxe_dict_add(dict, "most", 4, 1, 0, &sum), -EOVERFLOW);
    ck_assert_int_eq(put("text", "seven b"), 0);
    ck_assert_int_eq(sxe_dict_add(dict, "text", 4, 1, 0, &sum), -EDOM);
}
END_TEST

START_TEST(counter_behind_the_longest_key_is_in_the_next_cell)
{
    char key[64] = "long";
    int64_t sum;

    for (int i = 1; i < 10; i++) {
        ck_assert_int_eq(sxe_dict_add(dict, key, sizeof(key), 2, 0, &sum), 0);
        ck_assert_int_eq(sum, 2 * i);
    }
}
END_TEST

START_TEST(states_stay_when_values_change)
{
    ck_assert_int_eq(put("k", "v"), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "k", 1, SXE_DICT_PINNED), 0);
    ck_assert_int_eq(put("k", "w"), 0);
    ck_assert_uint_eq(sxe_pool_get_count(sxe_dict_get_pool(dict), SXE_DICT_PINNED), 1);
    ck_assert_int_eq(sxe_dict_set_state(dict, "k", 1, (SXE_DICT_STATE)0), -EINVAL);
    ck_assert_int_eq(sxe_dict_set_state(dict, "k", 1, (SXE_DICT_STATE)4), -EINVAL);
}
END_TEST

/* ---- Time ---- */

START_TEST(entry_lives_as_long_as_it_was_given)
{
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", 1, 2.0), 0);
    ck_assert_int_eq(put("for ever", "v"), 0);
    ck_assert_double_eq_tol(sxe_dict_get_ttl(dict, "k", 1), 2.0, 1e-6);
    ck_assert_double_eq(sxe_dict_get_ttl(dict, "for ever", 8), HUGE_VAL);
    pass(1.5);
    ck_assert_double_eq_tol(sxe_dict_get_ttl(dict, "k", 1), 0.5, 1e-6);
    ck_assert_str_eq(get("k"), "v");
    pass(0.6);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 2);
    ck_assert_int_eq(sxe_dict_peek(dict, "k", 1, NULL, 0), -ENOENT);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 1);
}
END_TEST

START_TEST(expire_gives_another_time)
{
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", 1, 2.0), 0);
    ck_assert_int_eq(sxe_dict_expire(dict, "k", 1, 10), 0);
    pass(9);
    ck_assert(has("k"));
    ck_assert_int_eq(sxe_dict_expire(dict, "k", 1, SXE_DICT_FOREVER), 0);
    pass(9e9);
    ck_assert(has("k"));
    ck_assert_int_eq(sxe_dict_expire(dict, "k", 1, 1e30), 0);
    ck_assert_double_eq(sxe_dict_get_ttl(dict, "k", 1), HUGE_VAL);
}
END_TEST

START_TEST(what_expired_is_new_when_it_is_put_again)
{
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", 1, 2.0), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "k", 1, SXE_DICT_DIRTY), 0);
    pass(3);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, "v", 1, "w", 1, 0), -EEXIST);
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", 1, 2.0), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "k", 1, SXE_DICT_DIRTY), 0);
    pass(3);
    ck_assert_int_eq(put("k", "x"), 0);
    ck_assert_uint_eq(sxe_pool_get_count(sxe_dict_get_pool(dict), SXE_DICT_LIVE), 1);
}
END_TEST

/* ---- Room ---- */

static void
fill(unsigned number, double ttl_s)
{
    for (unsigned i = 0; i < number; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, ttl_s), 0);
}

START_TEST(full_dict_says_so_but_takes_other_values)
{
    fill(100, 0);
    ck_assert_int_eq(put("more", "v"), -ENOSPC);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "w", 1, 0), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 100);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, NULL), -ENOSPC);
}
END_TEST

START_TEST(what_expired_makes_room)
{
    fill(60, 0);
    for (unsigned i = 60; i < 100; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 1 + i), 0);
    ck_assert_int_eq(put("more", "v"), -ENOSPC);
    pass(62.5);
    ck_assert_int_eq(put("more", "v"), 0);
    ck_assert_int_eq(put("more yet", "v"), 0);
    ck_assert_int_eq(put("too much", "v"), -ENOSPC);
    pass(100);
    for (unsigned i = 200; i < 238; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 1), 0);
    ck_assert_int_eq(put("too much", "v"), -ENOSPC);
    pass(100);
    ck_assert_int_eq(put("not too much", "v"), 0);
}
END_TEST

START_TEST(entry_that_comes_while_a_round_goes_on_is_not_forgotten)
{
    fill(98, 1);
    ck_assert_int_eq(put("for ever", "v"), 0);
    ck_assert_int_eq(put("and ever", "v"), 0);
    pass(2);
    ck_assert_int_eq(sxe_dict_put(dict, "late", 4, "v", 1, 1), 0);
    pass(2);
    for (unsigned i = 200; i < 298; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 0), 0);
    ck_assert(!has("late"));
    ck_assert_int_eq(put("too much", "v"), -ENOSPC);
}
END_TEST

START_TEST(long_search_for_room_goes_on_with_the_next_call)
{
    unsigned tries = 0;
    int result;

    sxe_dict_close(dict);
    open_of(5000, 1, false);
    fill(4999, 0);
    ck_assert_int_eq(sxe_dict_put(dict, "last", 4, "v", 1, 1), 0);
    pass(2);
    while ((result = put("more", "v")) == -EAGAIN)
        tries++;
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(tries, 4);
    ck_assert_int_eq(put("too much", "v"), -ENOSPC);
}
END_TEST

START_TEST(oldest_is_evicted_but_not_what_is_pinned_or_dirty)
{
    sxe_dict_close(dict);
    open_of(5, 1, true);
    ck_assert_int_eq(put("pinned", "v"), 0);
    ck_assert_int_eq(put("dirty", "v"), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "pinned", 6, SXE_DICT_PINNED), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "dirty", 5, SXE_DICT_DIRTY), 0);
    ck_assert_int_eq(put("a", "v"), 0);
    ck_assert_int_eq(put("b", "v"), 0);
    ck_assert_int_eq(put("c", "v"), 0);
    ck_assert_str_eq(get("a"), "v");
    ck_assert_int_eq(sxe_dict_touch(dict, "b", 1), 0);
    ck_assert_int_eq(put("d", "v"), 0);
    ck_assert(!has("c") && has("a") && has("b") && has("pinned") && has("dirty"));
    ck_assert_int_eq(put("e", "v"), 0);
    ck_assert(!has("a") && has("b"));
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 0), 0);
    ck_assert(has("pinned") && has("dirty"));
    ck_assert_uint_eq(sxe_dict_get_count(dict), 5);
}
END_TEST

START_TEST(what_expired_goes_before_what_is_alive)
{
    sxe_dict_close(dict);
    open_of(5, 1, true);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, i == 3 ? 1 : 0), 0);
    pass(2);
    ck_assert_int_eq(put("new", "v"), 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(sxe_dict_peek(dict, &i, sizeof(i), NULL, 0), i == 3 ? -ENOENT : 1);
}
END_TEST

START_TEST(dict_that_evicts_and_is_pinned_full_says_so)
{
    sxe_dict_close(dict);
    open_of(5, 1, true);
    fill(5, 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(sxe_dict_set_state(dict, &i, sizeof(i), SXE_DICT_PINNED), 0);
    ck_assert_int_eq(put("more", "v"), -ENOSPC);
}
END_TEST

START_TEST(entry_is_not_evicted_for_its_own_new_value)
{
    static const char value[200];
    const unsigned last = 4;

    sxe_dict_close(dict);
    open_of(5, 1, true);
    fill(5, 0);
    ck_assert_int_eq(sxe_dict_put(dict, &(unsigned){0}, sizeof(unsigned), value, 200, 0), 0);
    ck_assert_int_eq(sxe_dict_peek(dict, &(unsigned){0}, sizeof(unsigned), NULL, 0), 200);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 2);
    ck_assert_int_eq(sxe_dict_peek(dict, &last, sizeof(last), NULL, 0), 1);
    ck_assert_int_eq(sxe_dict_put(dict, &(unsigned){0}, sizeof(unsigned), value, 190, 0), -ENOSPC);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 1);
}
END_TEST

/* ---- Shards ---- */

START_TEST(shards_share_the_cells)
{
    uint32_t sum = 0;
    uint8_t met[1000] = {0};

    sxe_dict_close(dict);
    open_of(1000 - 8, 8, false);
    for (uint32_t shard = 0; shard < 8; shard++) {
        const uint32_t capacity = sxe__dict_capacity(dict, shard);

        ck_assert_uint_eq(capacity, sxe__dict_free_cells(dict, shard));
        for (uint32_t nth = 0; nth < capacity; nth++) {
            const uint32_t id = sxe__dict_nth(dict, shard, nth);
            ck_assert(sxe__dict_has(dict, shard, id) && !met[id]);
            met[id] = 1;
        }
        sum += capacity;
    }
    ck_assert_uint_eq(sum, 1000);
    fill(500, 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 500);
}
END_TEST

START_TEST(shard_that_is_locked_is_eagain_in_every_call)
{
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};

    ck_assert_int_eq(put("k", "v"), 0);
    ck_assert_int_eq(sxe__dict_lock(dict, 0), 0);
    ck_assert_int_eq(put("k", "v"), -EAGAIN);
    ck_assert_int_eq(sxe_dict_get(dict, "k", 1, NULL, 0), -EAGAIN);
    ck_assert_int_eq(sxe_dict_add(dict, "k", 1, 1, 0, NULL), -EAGAIN);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, "k", 1, NULL, 0, NULL, 0, 0), -EAGAIN);
    ck_assert_double_eq(sxe_dict_get_ttl(dict, "k", 1), -EAGAIN);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), -EAGAIN);
    sxe_dict_walker_construct(&walker, dict);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), -EAGAIN);
    sxe__dict_unlock(dict, 0);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), 1);
}
END_TEST

/* ---- The example ---- */

/* The example's output for these words. */
static const char *
run_example(char **words, int number)
{
    static char said[200];
    FILE *out = tmpfile();
    const int before = dup(STDOUT_FILENO);

    fflush(stdout);
    ck_assert_int_ge(dup2(fileno(out), STDOUT_FILENO), 0);
    ck_assert_int_eq(example_main(number, words), 0);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(out);
    said[fread(said, 1, sizeof(said) - 1, out)] = '\0';
    fclose(out);
    return said;
}

START_TEST(example_counts_over_all_its_runs)
{
    static char word[][5] = {"dict", "ann", "bob", "ann"};
    char *words[] = {word[0], word[1], word[2], word[3]};

    sxe_time_set_turn_ns(0);
    unlink("/dev/shm/sxe-example-limits");
    ck_assert_str_eq(run_example(words, 4), "ann: allowed\nbob: allowed\nann: allowed\n");
    ck_assert_str_eq(run_example(words, 4), "ann: allowed\nbob: allowed\nann: too many\n");
    unlink("/dev/shm/sxe-example-limits");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict");
    TCase *tcase = tcase_create("dict");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_is_put_is_got);
    tcase_add_test(tcase, what_is_not_there_is_enoent_in_every_call);
    tcase_add_test(tcase, key_that_does_not_fit_is_einval_in_every_call);
    tcase_add_loop_test(tcase, time_to_live_that_is_none_is_einval_in_every_call, 0, 3);
    tcase_add_test(tcase, empty_key_and_empty_value_are_as_good_as_any);
    tcase_add_test(tcase, value_is_cut_to_the_room_and_its_size_told);
    tcase_add_test(tcase, long_value_goes_on_in_other_cells);
    tcase_add_test(tcase, value_of_several_cells_is_replaced_if_there_are_as_many_more);
    tcase_add_test(tcase, value_that_no_shard_has_room_for_is_efbig);
    tcase_add_test(tcase, compare_and_put_wants_what_is_there);
    tcase_add_test(tcase, counter_adds_and_never_wraps);
    tcase_add_test(tcase, counter_behind_the_longest_key_is_in_the_next_cell);
    tcase_add_test(tcase, states_stay_when_values_change);
    tcase_add_test(tcase, entry_lives_as_long_as_it_was_given);
    tcase_add_test(tcase, expire_gives_another_time);
    tcase_add_test(tcase, what_expired_is_new_when_it_is_put_again);
    tcase_add_test(tcase, full_dict_says_so_but_takes_other_values);
    tcase_add_test(tcase, what_expired_makes_room);
    tcase_add_test(tcase, entry_that_comes_while_a_round_goes_on_is_not_forgotten);
    tcase_add_test(tcase, long_search_for_room_goes_on_with_the_next_call);
    tcase_add_test(tcase, oldest_is_evicted_but_not_what_is_pinned_or_dirty);
    tcase_add_test(tcase, what_expired_goes_before_what_is_alive);
    tcase_add_test(tcase, dict_that_evicts_and_is_pinned_full_says_so);
    tcase_add_test(tcase, entry_is_not_evicted_for_its_own_new_value);
    tcase_add_test(tcase, shards_share_the_cells);
    tcase_add_test(tcase, shard_that_is_locked_is_eagain_in_every_call);
    tcase_add_test(tcase, example_counts_over_all_its_runs);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
