/* SPDX-License-Identifier: MIT
 *
 * Whether one of two sides has a larger share, of errors for example. Oracles: powers of two,
 * Pascal's triangle, and simulation with fixed seeds.
 */
#include "share.h"

#include <math.h>
#include <stdlib.h>

#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static const struct {
    struct load_share than, share;
    double effect;
    bool is_more;
} rows[] = {
    {{0, 0}, {0, 0}, 0, false},
    {{0, 0}, {5, 5}, 0, false}, /* one side has no requests */
    {{5, 5}, {0, 0}, 0, false},
    {{0, 100}, {0, 100}, 0, false},
    {{0, 4000}, {7, 4000}, 0, false}, /* a probability of 1/128 */
    {{0, 4000}, {8, 4000}, 0, true},  /* 1/256 */
    {{8, 4000}, {0, 4000}, 0, false},
    {{0, 4000}, {4, 1000}, 0, true},  /* 1/625 */
    {{0, 4000}, {3, 1000}, 0, false}, /* 1/125 */
    {{0, 1000}, {19, 9000}, 0, false},
    {{1, 4000}, {11, 4000}, 0, true}, /* (1 + 12) / 4096 */
    {{1, 4000}, {9, 4000}, 0, false}, /* (1 + 10) / 1024 */
    {{0, 1}, {1, 1}, 0, false},       /* one request on each side shows nothing */
    {{0, 64}, {64, 64}, 0.02, true},  /* the server hung */
    {{100, 200}, {100, 200}, 0, false},
    {{100, 4000}, {2000, 4000}, 0.02, true},
    {{1e9, 1e12}, {1.001e9, 1e12}, 0, true},
    {{1e9, 1e12}, {1.001e9, 1e12}, 0.02, false}, /* certain, but small */
    {{1e9, 1e12}, {1.03e9, 1e12}, 0.02, true},
    {{1e9, 1e12}, {1e9, 1e12}, 0, false},
    {{5, 5}, {1e15, 1e15}, 0, false},
};

START_TEST(more_is_what_chance_hardly_does)
{
    ck_assert_int_eq(load_share_is_more(&rows[_i].than, &rows[_i].share, rows[_i].effect),
                     rows[_i].is_more);
}
END_TEST

START_TEST(a_share_is_a_part_of_one)
{
    ck_assert(load_share_of(&(struct load_share){1, 4}) == 0.25);
    ck_assert(load_share_of(&(struct load_share){0, 4}) == 0);
    ck_assert(load_share_of(&(struct load_share){0, 0}) == 0);
}
END_TEST

/* Two equal sides: how often one seems to have a larger share. */
START_TEST(it_is_as_seldom_wrong_as_it_says)
{
    static const double chances[] = {0.002, 0.02, 0.2, 0.7};
    unsigned wrong = 0;

    srandom(1);
    for (unsigned i = 0; i < 2000; i++) {
        struct load_share sides[2] = {{0, 1000}, {0, 1000}};

        for (unsigned k = 0; k < 2000; k++)
            sides[k % 2].part += (double)random() / RAND_MAX < chances[_i];
        wrong += load_share_is_more(&sides[0], &sides[1], 0);
    }
    ck_assert_uint_le(wrong, 17); /* 10 are expected; two deviations above */
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-share");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 0);
    tcase_add_loop_test(all, more_is_what_chance_hardly_does, 0, COUNT(rows));
    tcase_add_test(all, a_share_is_a_part_of_one);
    tcase_add_loop_test(all, it_is_as_seldom_wrong_as_it_says, 0, 4);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
