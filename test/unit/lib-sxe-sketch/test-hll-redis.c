/* SPDX-License-Identifier: MIT
 *
 * Tests HyperLogLog strings of Redis: the library reads what redis-server 7.0.15 wrote, writes the
 * same bytes, and refuses strings that Redis cannot have written. (With a real redis-server:
 * test/outside.)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-hll-private.h"
#include "test-main.h"
#include "test-sweep.h"

#define HEAD(form) "HYLL" form "\0\0\0\0\0\0\0\0\0\0\x80"

static char why[SXE_POOL_WHY_SIZE];
static SXE_HLL *hll;

static SXE_HLL *
open_of(unsigned precision)
{
    const SXE_HLL_SPEC spec = {
        .name = "test", .precision = precision, .options = SXE_POOL_OPTION_LOCKED};
    SXE_HLL *opened = sxe_hll_open(&spec, why);

    ck_assert_msg(opened != NULL, "%s", why);
    return opened;
}

static void
setup(void)
{
    hll = open_of(14);
}

static void
teardown(void)
{
    sxe_hll_close(hll);
}

/* Import a copy that ends where memory ends, so that a read beyond its end is noticed. */
static int
import_copy(SXE_HLL *into, const char *bytes, size_t size)
{
    char *copy = malloc(size + 1);

    memcpy(copy, bytes, size);
    char *exact = realloc(copy, size > 0 ? size : 1);
    const int result = sxe_hll_import(into, exact, size, why);

    free(exact);
    return result;
}

static void
refused(const char *bytes, size_t size, const char *because)
{
    ck_assert_int_eq(import_copy(hll, bytes, size), -EINVAL);
    ck_assert_msg(strstr(why, because) != NULL, "%s", why);
    ck_assert_int_eq(sxe_hll_import(hll, bytes, size, NULL), -EINVAL);
    ck_assert_double_eq(sxe_hll_count(hll), 0);
}

/* ---- Strings that Redis wrote: one PFADD of each string, and one of all six ---- */

static const struct redis_string {
    const char *thing;
    const char *bytes;
    size_t size;
} redis_strings[] = {
    {"a", HEAD("\1") "\x71\xa6\x84\x4e\x57", 21},
    {"bc", HEAD("\1") "\x64\xbd\x84\x5b\x40", 21},
    {"def", HEAD("\1") "\x48\x2c\x80\x77\xd1", 21},
    {"12345678", HEAD("\1") "\x69\x52\x88\x56\xab", 21},
    {"123456789", HEAD("\1") "\x64\x4c\x84\x5b\xb1", 21},
    {"", HEAD("\1") "\x57\x31\x84\x68\xcc", 21},
};
static const struct redis_string redis_all = {
    NULL,
    HEAD("\1") "\x48\x2c\x80\x4f\x03\x84\x4d\x19\x84\x40\x6f\x84\x44\x93\x88\x48\x52\x84\x4e\x57",
    36};

START_TEST(strings_are_those_that_redis_wrote)
{
    char string[SXE_HLL_REDIS_MAX];
    const struct redis_string *redis = &redis_strings[_i];

    sxe_hll_add(hll, redis->thing, strlen(redis->thing));
    ck_assert_int_eq(sxe_hll_export(hll, string, sizeof(string)), (ssize_t)redis->size);
    ck_assert_mem_eq(string, redis->bytes, redis->size);
    ck_assert_int_eq(sxe_hll_export(hll, string, redis->size - 1), -ENOSPC);
    ck_assert_int_eq(sxe_hll_export(hll, string, redis->size), (ssize_t)redis->size);
}
END_TEST

START_TEST(imports_are_merged)
{
    char string[SXE_HLL_REDIS_MAX];

    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(import_copy(hll, redis_strings[i].bytes, redis_strings[i].size), 0);
    ck_assert_int_eq(sxe_hll_export(hll, string, sizeof(string)), (ssize_t)redis_all.size);
    ck_assert_mem_eq(string, redis_all.bytes, redis_all.size);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(sxe_hll_add(hll, redis_strings[i].thing, strlen(redis_strings[i].thing)),
                         0);
}
END_TEST

/* ---- Export and import ---- */

static void
add_things(SXE_HLL *to, uint64_t number)
{
    for (uint64_t i = 0; i < number; i++)
        sxe_hll_add(to, &i, sizeof(i));
}

START_TEST(export_is_read_again)
{
    static const struct {
        uint64_t things;
        bool is_dense;
    } cases[] = {{0, false}, {1, false}, {700, false}, {2000, true}, {100000, true}};
    char string[SXE_HLL_REDIS_MAX], again[SXE_HLL_REDIS_MAX];
    SXE_HLL *other = open_of(14);

    add_things(hll, cases[_i].things);
    const ssize_t size = sxe_hll_export(hll, string, sizeof(string));

    ck_assert_int_eq(size == SXE_HLL_REDIS_MAX, cases[_i].is_dense);
    ck_assert(cases[_i].is_dense || size <= 3000);
    ck_assert_int_eq(import_copy(other, string, (size_t)size), 0);
    ck_assert_mem_eq(other->registers, hll->registers, 16384);
    ck_assert_int_eq(sxe_hll_export(other, again, sizeof(again)), size);
    ck_assert_mem_eq(again, string, (size_t)size);
    sxe_hll_close(other);
}
END_TEST

START_TEST(each_rank_comes_back_in_its_form)
{
    char string[SXE_HLL_REDIS_MAX];
    SXE_HLL *other = open_of(14);

    memset(hll->registers + 100, _i, 5);
    memset(hll->registers + 200, 32, 4);
    hll->registers[16383] = (uint8_t)_i;
    const ssize_t size = sxe_hll_export(hll, string, sizeof(string));

    ck_assert_int_eq(size == SXE_HLL_REDIS_MAX, _i > 32);
    ck_assert_int_eq(import_copy(other, string, (size_t)size), 0);
    ck_assert_mem_eq(other->registers, hll->registers, 16384);
    sxe_hll_close(other);
}
END_TEST

/* Runs of zeros of each length are written and read back; together they make the longest string. */
START_TEST(runs_of_each_length_come_back)
{
    char string[SXE_HLL_REDIS_MAX];
    SXE_HLL *other = open_of(14);

    for (unsigned length = 1, at = 0; at + length < 16384; at += length + 1, length++)
        hll->registers[at + length] = (uint8_t)(length % 32 + 1);
    const ssize_t size = sxe_hll_export(hll, string, sizeof(string));

    ck_assert_int_lt(size, 3000);
    ck_assert_int_eq(import_copy(other, string, (size_t)size), 0);
    ck_assert_mem_eq(other->registers, hll->registers, 16384);
    sxe_hll_close(other);
}
END_TEST

/* Each register adds a byte. In a thin sweep only strings of nearly the longest size are made. */
START_TEST(longest_sparse_string_has_3000_bytes)
{
    const unsigned first = sxe_test_is_thin() ? 2900 : 0;
    char string[SXE_HLL_REDIS_MAX];
    ssize_t longest = 0;
    ssize_t size = 0;

    for (unsigned i = 0; i < 16384 && size < SXE_HLL_REDIS_MAX; i++) {
        hll->registers[i] = (uint8_t)(i % 2 + 1);
        if (i < first)
            continue;
        size = sxe_hll_export(hll, string, sizeof(string));
        longest = size < SXE_HLL_REDIS_MAX && size > longest ? size : longest;
    }
    ck_assert_int_eq(size, SXE_HLL_REDIS_MAX);
    ck_assert_int_ge(longest, 2997);
    ck_assert_int_le(longest, 3000);
}
END_TEST

START_TEST(other_precisions_are_folded)
{
    char string[SXE_HLL_REDIS_MAX], expected[SXE_HLL_REDIS_MAX];
    SXE_HLL *fine = open_of(16);
    SXE_HLL *coarse = open_of(10);
    SXE_HLL *all = open_of(10);

    add_things(fine, 5000);
    add_things(hll, 5000);
    add_things(all, 5000);
    const ssize_t size = sxe_hll_export(hll, expected, sizeof(expected));

    ck_assert_int_eq(sxe_hll_export(fine, string, sizeof(string)), size);
    ck_assert_mem_eq(string, expected, (size_t)size);
    ck_assert_int_eq(sxe_hll_import(coarse, string, (size_t)size, why), 0);
    ck_assert_mem_eq(coarse->registers, all->registers, 1024);
    ck_assert_int_eq(sxe_hll_export(coarse, string, sizeof(string)), -EDOM);
    ck_assert_int_eq(sxe_hll_import(fine, string, (size_t)size, why), -EDOM);
    ck_assert_msg(strstr(why, "has precision 16, and Redis 14") != NULL, "%s", why);
    sxe_hll_close(fine);
    sxe_hll_close(coarse);
    sxe_hll_close(all);
}
END_TEST

/* ---- Refused ---- */

START_TEST(other_strings_are_refused)
{
    refused("", 0, "0 bytes are no HyperLogLog of Redis");
    refused("HYLL\1\0\0\0\0\0\0\0\0\0\0", 15, "15 bytes are no");
    refused("HYLX\1\0\0\0\0\0\0\0\0\0\0\0\x7f\xff", 18, "begin with HYLL");
    refused(HEAD("\2") "\x7f\xff", 18, "form 2");
    refused(HEAD("\xff") "\x7f\xff", 18, "form 255");
}
END_TEST

START_TEST(sparse_strings_that_do_not_fit_are_refused)
{
    refused(HEAD("\1"), 16, "ends after register 0 of 16384");
    refused(HEAD("\1") "\x7f\xfe", 18, "ends after register 16383");
    refused(HEAD("\1") "\x7f", 17, "byte 16 of a sparse HyperLogLog of Redis has no second byte");
    refused(HEAD("\1") "\x7f\xff\0", 19, "byte 18 of a sparse HyperLogLog of Redis goes on");
    refused(HEAD("\1") "\x7f\xfe\x81", 19, "goes on after the last register");
    ck_assert_int_eq(import_copy(hll, HEAD("\1") "\x7f\xfe\x80", 19), 0);
    ck_assert_uint_eq(hll->registers[16383], 1);
}
END_TEST

START_TEST(dense_strings_that_do_not_fit_are_refused)
{
    static char string[SXE_HLL_REDIS_MAX + 1] = HEAD("\0");

    refused(string, SXE_HLL_REDIS_MAX - 1, "has 12304 bytes, but this has 12303");
    refused(string, SXE_HLL_REDIS_MAX + 1, "but this has 12305");
    string[SXE_HLL_REDIS_MAX - 1] = (char)(52 << 2);
    refused(string, SXE_HLL_REDIS_MAX, "register 16383 of a HyperLogLog of Redis has rank 52");
    string[SXE_HLL_REDIS_MAX - 1] = (char)(51 << 2);
    ck_assert_int_eq(import_copy(hll, string, SXE_HLL_REDIS_MAX), 0);
    ck_assert_uint_eq(hll->registers[16383], 51);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("hll-redis");
    TCase *tcase = tcase_create("hll-redis");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, strings_are_those_that_redis_wrote, 0, 6);
    tcase_add_test(tcase, imports_are_merged);
    tcase_add_loop_test(tcase, export_is_read_again, 0, 5);
    tcase_add_loop_test(tcase, each_rank_comes_back_in_its_form, 1, 52);
    tcase_add_test(tcase, runs_of_each_length_come_back);
    tcase_add_test(tcase, longest_sparse_string_has_3000_bytes);
    tcase_add_test(tcase, other_precisions_are_folded);
    tcase_add_test(tcase, other_strings_are_refused);
    tcase_add_test(tcase, sparse_strings_that_do_not_fit_are_refused);
    tcase_add_test(tcase, dense_strings_that_do_not_fit_are_refused);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
