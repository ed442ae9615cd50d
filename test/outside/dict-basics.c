/* SPDX-License-Identifier: MIT
 *
 * The size that a look-up returns, and a dict that is made twice, by docs/dict.md.
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

int
main(void)
{
    const TTest *cases[] = {a_look_up_returns_the_whole_size, NULL};

    return outside_run("dict-basics", cases);
}
