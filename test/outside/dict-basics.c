/* SPDX-License-Identifier: MIT
 *
 * The size that a look-up returns, and what a program is told that gives another count of cells.
 */
#include "outside.h"

#include <errno.h>
#include <string.h>
#include <sxe-dict.h>

/* promise: docs/dict.md: copies the value and makes the entry the youngest; returns the value's
 * whole size, or `-ENOENT` */
START_TEST(a_look_up_returns_the_whole_size)
{
    SXE_DICT_SPEC spec = {.name = "outside", .cells = 100};
    char why[SXE_POOL_WHY_SIZE];
    char value[2] = "";
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_int_eq(sxe_dict_get(dict, "k", 1, value, sizeof(value)), -ENOENT);
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "long value", 10, 60.0), 0);
    ck_assert_int_eq(sxe_dict_get(dict, "k", 1, value, sizeof(value)), 10);
    ck_assert_mem_eq(value, "lo", 2);
    sxe_dict_close(dict);
}
END_TEST

/* promise: docs/dict.md: The sentence that refuses another count names elements of the pool: the
 * cells, and one more for each shard. */
START_TEST(a_refusal_counts_elements)
{
    char file[PATH_MAX];
    SXE_DICT_SPEC spec = {.name = "outside", .file = file};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict;

    snprintf(file, sizeof(file), "%s", outside_path("dict"));
    for (unsigned shards = 1; shards < 8; shards *= 2) {
        char expected[100];

        spec.shards = shards;
        spec.cells = 600;
        dict = sxe_dict_open(&spec, why);
        ck_assert_msg(dict != NULL, "%s", why);
        sxe_dict_close(dict);
        spec.cells = 100;
        ck_assert_ptr_null(sxe_dict_open(&spec, why));
        ck_assert_int_eq(errno, EEXIST);
        snprintf(expected, sizeof(expected), "it has %u elements, the program says %u",
                 600 + shards, 100 + shards);
        ck_assert_msg(strstr(why, expected) != NULL, "%s", why);
        ck_assert_int_eq(unlink(file), 0);
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_look_up_returns_the_whole_size, a_refusal_counts_elements, NULL};

    return outside_run("dict-basics", cases);
}
