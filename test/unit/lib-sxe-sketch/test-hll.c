/* SPDX-License-Identifier: MIT
 *
 * Tests HyperLogLog: the calls as sxe-hll.h describes them, and its error, by comparison with sets
 * of known size.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-hll-private.h"
#include "test-main.h"

int example_main(void);

#define main example_main
#include "../../../examples/visitors.c"
#undef main

static char path[64];
static char why[SXE_POOL_WHY_SIZE];

static void
setup(void)
{
    snprintf(path, sizeof(path), "/dev/shm/test-hll-%d", getpid());
    unlink(path);
}

static void
teardown(void)
{
    unlink(path);
}

static SXE_HLL *
open_of(unsigned precision, const char *file)
{
    const SXE_HLL_SPEC spec = {.name = "test",
                               .precision = precision,
                               .options = file == NULL ? SXE_POOL_OPTION_LOCKED : 0,
                               .file = file};
    SXE_HLL *hll = sxe_hll_open(&spec, why);

    ck_assert_msg(hll != NULL, "%s", why);
    return hll;
}

static void
refused(const SXE_HLL_SPEC *spec, int error, const char *because)
{
    errno = 0;
    ck_assert_ptr_null(sxe_hll_open(spec, why));
    ck_assert_msg(errno == error, "errno %d: %s", errno, why);
    ck_assert_msg(strstr(why, because) != NULL, "%s", why);
}

static bool
is_equal(const SXE_HLL *one, const SXE_HLL *other)
{
    return memcmp(one->registers, other->registers, sxe__hll_size(one->precision)) == 0;
}

/* A hash of 64 bits, as good as random (splitmix64), which differs for any two numbers. */
static uint64_t
scatter(uint64_t number)
{
    number *= UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

static void
add_range(SXE_HLL *hll, uint64_t first, uint64_t number)
{
    for (uint64_t i = first; i < first + number; i++) {
        const uint64_t thing = scatter(i);

        sxe_hll_add(hll, &thing, sizeof(thing));
    }
}

/* ---- Opening ---- */

START_TEST(impossible_specs_are_refused)
{
    SXE_HLL_SPEC spec = {.name = "test", .precision = 3};

    refused(&spec, EINVAL, "the precision is 3, but must be from 4 to 18");
    spec.precision = 0; /* as in a file, but there is none */
    refused(&spec, EINVAL, "the precision is 0, but must be from 4 to 18");
    spec = (SXE_HLL_SPEC){.precision = 19};
    refused(&spec, EINVAL, "without a name");
    ck_assert_ptr_null(sxe_hll_open(&spec, NULL));
    spec.precision = 10;
    refused(&spec, EINVAL, "name");
    spec = (SXE_HLL_SPEC){.name = "test", .file = path};
    refused(&spec, ENOENT, "");
}
END_TEST

START_TEST(sketch_stays_in_its_file)
{
    SXE_HLL *hll = open_of(12, path);
    SXE_HLL *other;
    SXE_HLL_SPEC spec = {.name = "test", .precision = 13, .file = path};

    ck_assert_int_eq(sxe_pool_get_found(sxe_hll_get_pool(hll)), SXE_POOL_CREATED);
    add_range(hll, 0, 1000);
    const double count = sxe_hll_count(hll);

    other = open_of(0, path);
    ck_assert_int_eq(sxe_pool_get_found(sxe_hll_get_pool(other)), SXE_POOL_JOINED);
    ck_assert_uint_eq(sxe_hll_get_precision(other), 12);
    ck_assert(is_equal(hll, other));
    add_range(other, 0, 1000);
    ck_assert_double_eq(sxe_hll_count(hll), count);
    sxe_hll_close(other);
    sxe_hll_close(hll);
    refused(&spec, EEXIST, "the file has a sketch HLL_12");
    spec = (SXE_HLL_SPEC){.name = "other", .precision = 12, .file = path};
    refused(&spec, EEXIST, "the file has a sketch with the name test: let the names agree");
    hll = open_of(12, path);
    ck_assert_int_eq(sxe_pool_get_found(sxe_hll_get_pool(hll)), SXE_POOL_CLOSED);
    ck_assert_double_eq(sxe_hll_count(hll), count);
    sxe_hll_close(hll);
    sxe_hll_close(NULL);
}
END_TEST

START_TEST(sketch_opens_by_its_descriptor)
{
    const SXE_HLL_SPEC spec = {.name = "test", .precision = 5};
    SXE_HLL *hll = sxe_hll_open(&spec, why);
    SXE_HLL *other = sxe_hll_open_fd(sxe_pool_get_fd(sxe_hll_get_pool(hll)), NULL, why);
    SXE_HLL *third = sxe_hll_open_fd(sxe_pool_get_fd(sxe_hll_get_pool(hll)), &spec, why);

    ck_assert_msg(other != NULL && third != NULL, "%s", why);
    add_range(hll, 0, 10);
    ck_assert(is_equal(hll, other) && is_equal(hll, third));
    sxe_hll_close(other);
    sxe_hll_close(third);
    sxe_hll_close(hll);
}
END_TEST

START_TEST(pool_of_another_kind_is_refused)
{
    static const SXE_POOL_SPEC pools[] = {
        {.name = "other", .number = 1, .element_size = 32, .states = 1},
        {.name = "other", .number = 1, .element_size = 32, .states = 1, .state_names = "HLL_6"},
        {.name = "other", .number = 1, .element_size = 8, .states = 1, .state_names = "HLL_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 1, .state_names = "HLL_99"},
        {.name = "other", .number = 2, .element_size = 32, .states = 1, .state_names = "HLL_5"},
        {.name = "other", .number = 1, .element_size = 32, .states = 2, .state_names = "HLL_5 B"},
    };
    const SXE_HLL_SPEC spec = {.file = path};
    SXE_POOL_SPEC pool = pools[_i];

    pool.file = path;
    sxe_pool_delete(sxe_pool_open(&pool, why));
    refused(&spec, EMEDIUMTYPE, "pool other is no HyperLogLog");
}
END_TEST

START_TEST(pool_of_another_kind_is_refused_by_an_opening_with_numbers)
{
    static const SXE_POOL_SPEC pools[] = {
        {.name = "other", .number = 1, .element_size = 33, .states = 1, .state_names = "OTHER_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 1},
        {.name = "other", .number = 2, .element_size = 32, .states = 1, .state_names = "HLL_5"},
        {.name = "other", .number = 1, .element_size = 32, .states = 2, .state_names = "HLL_5 B"},
    };
    const SXE_HLL_SPEC spec = {.name = "test", .precision = 12, .file = path};
    SXE_POOL_SPEC pool = pools[_i];

    pool.file = path;
    sxe_pool_delete(sxe_pool_open(&pool, why));
    refused(&spec, EMEDIUMTYPE, "pool other is no HyperLogLog");
}
END_TEST

START_TEST(without_memory_nothing_stays_open)
{
    const SXE_HLL_SPEC spec = {.name = "test", .precision = 4};
    const unsigned fds = fake_os_open_fds();
    unsigned nth = 0;
    SXE_HLL *hll;

    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};

    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        hll = sxe_hll_open(&spec, why);
        ck_assert_msg((hll == NULL) == (fake_os_injected() > 0), "%u: %s", nth, why);
        ck_assert(hll != NULL || errno == ENOMEM);
        sxe_hll_close(hll);
        ck_assert_uint_eq(fake_os_open_fds(), fds);
    } while (fake_os_injected() > 0);
    ck_assert_uint_gt(nth, 1);
}
END_TEST

/* ---- Damage ---- */

START_TEST(impossible_registers_are_damage_until_a_repair)
{
    const SXE_HLL_SPEC repair = {.options = SXE_POOL_OPTION_REPAIR, .file = path};
    char string[SXE_HLL_REDIS_MAX];
    SXE_HLL *hll = open_of(14, path);
    SXE_HLL *into = open_of(14, NULL);

    add_range(hll, 0, 100);
    const double count = sxe_hll_count(hll);
    hll->registers[7] = 51; /* the highest possible rank */
    ck_assert_double_gt(sxe_hll_count(hll), count);
    hll->registers[7] = 52;
    ck_assert_double_eq(sxe_hll_count(hll), -EUCLEAN);
    ck_assert_int_eq(sxe_hll_export(hll, string, sizeof(string)), -EUCLEAN);
    ck_assert_int_eq(sxe_hll_merge(into, hll), -EUCLEAN);
    ck_assert_double_eq(sxe_hll_count(into), 0);
    sxe_hll_close(hll);
    hll = open_of(0, path);
    ck_assert_double_eq(sxe_hll_count(hll), -EUCLEAN);
    sxe_hll_close(hll);
    hll = sxe_hll_open(&repair, why);
    ck_assert_msg(strstr(why, "1 of 16384 registers") != NULL, "%s", why);
    ck_assert_double_eq(sxe_hll_count(hll), count);
    sxe_hll_close(hll);
    sxe_hll_close(sxe_hll_open(&repair, why));
    ck_assert_str_eq(why, "");
    sxe_hll_close(into);
}
END_TEST

/* ---- Counting ---- */

START_TEST(adding_again_changes_nothing)
{
    SXE_HLL *hll = open_of(14, NULL);

    ck_assert_double_eq(sxe_hll_count(hll), 0);
    ck_assert_int_eq(sxe_hll_add(hll, "a", 1), 1);
    ck_assert_int_eq(sxe_hll_add(hll, "a", 1), 0);
    ck_assert_int_eq(sxe_hll_add(hll, "b", 1), 1);
    ck_assert_int_eq(sxe_hll_add(hll, NULL, 0), 1);
    ck_assert_int_eq((int)round(sxe_hll_count(hll)), 3);
    sxe_hll_clear(hll);
    ck_assert_double_eq(sxe_hll_count(hll), 0);
    sxe_hll_close(hll);
}
END_TEST

START_TEST(hash_chooses_register_and_rank)
{
    SXE_HLL *hll = open_of((unsigned)_i, NULL);
    const unsigned full = sxe__hll_rank_max((unsigned)_i);

    ck_assert_int_eq(sxe_hll_add_hash(hll, 3), 1);
    ck_assert_uint_eq(hll->registers[3], full);
    ck_assert_int_eq(sxe_hll_add_hash(hll, 3), 0);
    for (unsigned rank = 1; rank < full; rank++) {
        ck_assert_int_eq(sxe_hll_add_hash(hll, 2 + (UINT64_C(1) << (_i + rank - 1))), 1);
        ck_assert_uint_eq(hll->registers[2], rank);
        ck_assert_int_eq(sxe_hll_add_hash(hll, 2 + (UINT64_C(3) << (_i + rank - 1))), 0);
    }
    sxe_hll_close(hll);
}
END_TEST

START_TEST(count_of_full_registers_is_all_hashes)
{
    SXE_HLL *hll = open_of(4, NULL);

    memset(hll->registers, 61, 16);
    ck_assert_double_eq(sxe_hll_count(hll), 0x1p64);
    hll->registers[0] = 0;
    ck_assert_double_lt(sxe_hll_count(hll), 1000);
    memset(hll->registers, 60, 16);
    ck_assert_double_gt(sxe_hll_count(hll), 0x1p62);
    sxe_hll_close(hll);
}
END_TEST

/* 1,000 sets of 1 to 64 times as many things as there are registers, at most 20,000, each thing
 * added several times: the errors are as theory predicts. The sets are the same in each run. */
START_TEST(errors_of_a_thousand_sets_are_within_theory)
{
    static const unsigned precisions[] = {4, 8, 10, 12, 14};
    const unsigned precision = precisions[_i];
    const double registers = (double)sxe__hll_size(precision);
    const double limit = fmin(64 * registers, 20000);
    const double theory = 1.04 / sqrt(registers);
    SXE_HLL *hll = open_of(precision, NULL);
    double squares = 0, sum = 0;
    unsigned far = 0;

    for (unsigned set = 0; set < 1000; set++) {
        const uint64_t first = (uint64_t)(set + 1) << 32 | (uint64_t)precision << 24;
        const uint64_t size = (uint64_t)pow(limit, (double)scatter(first) / 0x1p64);

        sxe_hll_clear(hll);
        add_range(hll, first, size);
        add_range(hll, first + size / 2, size / 8);
        const double error = (sxe_hll_count(hll) - (double)size) / (double)size;

        squares += error * error;
        sum += error;
        far += fabs(error) > 3 * theory;
    }
    const double found = sqrt(squares / 1000);

    printf("precision %u: standard error %.4f, theory %.4f, mean %.5f, beyond 3 errors: %u\n",
           precision, found, theory, sum / 1000, far);
    fflush(stdout);
    ck_assert_msg(found <= theory * 1.05, "%u: %g, not %g", precision, found, theory);
    ck_assert_msg(far <= 10, "%u: %u sets are beyond three errors", precision, far);
    ck_assert_msg(fabs(sum / 1000) <= theory / (precision < 8 ? 4 : 8), "%u: a mean of %g",
                  precision, sum / 1000);
    sxe_hll_close(hll);
}
END_TEST

/* ---- Merging ---- */

START_TEST(merge_is_as_if_all_was_added_to_one)
{
    SXE_HLL *left = open_of(10, NULL);
    SXE_HLL *right = open_of((unsigned)_i, NULL);
    SXE_HLL *all = open_of(10, NULL);

    add_range(left, 0, 3000);
    add_range(right, 2000, 9000);
    add_range(all, 0, 11000);
    ck_assert_int_eq(sxe_hll_merge(left, right), 0);
    ck_assert(is_equal(left, all));
    ck_assert_int_eq(sxe_hll_merge(left, left), 0);
    ck_assert(is_equal(left, all));
    sxe_hll_close(left);
    sxe_hll_close(right);
    sxe_hll_close(all);
}
END_TEST

START_TEST(fold_of_a_high_rank_is_what_its_hash_gives)
{
    SXE_HLL *fine = open_of(18, NULL);
    SXE_HLL *coarse = open_of(4, NULL);
    SXE_HLL *all = open_of(4, NULL);

    for (unsigned bit = 4; bit < 64; bit++) {
        sxe_hll_add_hash(fine, UINT64_C(1) << bit | bit % 16);
        sxe_hll_add_hash(all, UINT64_C(1) << bit | bit % 16);
    }
    sxe_hll_add_hash(fine, 15);
    sxe_hll_add_hash(all, 15);
    ck_assert_int_eq(sxe_hll_merge(coarse, fine), 0);
    ck_assert(is_equal(coarse, all));
    ck_assert_int_eq(sxe_hll_merge(fine, coarse), -EDOM);
    sxe_hll_close(fine);
    sxe_hll_close(coarse);
    sxe_hll_close(all);
}
END_TEST

/* ---- Many processes ---- */

START_TEST(processes_that_add_at_once_lose_nothing)
{
    enum { PROCESSES = 4, EACH = 20000 };
    SXE_HLL *hll = open_of(9, path);
    SXE_HLL *all = open_of(9, NULL);
    pid_t children[PROCESSES];
    int status;

    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            add_range(hll, i * EACH, EACH);
            _exit(0);
        }
    }
    add_range(all, 0, PROCESSES * EACH);
    for (unsigned i = 0; i < PROCESSES; i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert(is_equal(hll, all));
    sxe_hll_close(hll);
    sxe_hll_close(all);
}
END_TEST

/* ---- The example ---- */

/* The output of the example program for these lines of input. */
static const char *
run_example(const char *lines)
{
    static char said[100];
    FILE *in = tmpfile();
    FILE *out = tmpfile();

    fputs(lines, in);
    rewind(in);
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);

    dup2(fileno(in), STDIN_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    ck_assert_int_eq(example_main(), 0);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(out);
    said[fread(said, 1, sizeof(said) - 1, out)] = '\0';
    fclose(in);
    fclose(out);
    return said;
}

START_TEST(example_counts_different_lines)
{
    unlink("/dev/shm/sxe-example-visitors");
    ck_assert_str_eq(run_example("ann\nbob\nann\neve"), "about 3 different ones\n");
    unlink("/dev/shm/sxe-example-visitors");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("hll");
    TCase *tcase = tcase_create("hll");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, impossible_specs_are_refused);
    tcase_add_test(tcase, sketch_stays_in_its_file);
    tcase_add_test(tcase, sketch_opens_by_its_descriptor);
    tcase_add_loop_test(tcase, pool_of_another_kind_is_refused, 0, 6);
    tcase_add_loop_test(tcase, pool_of_another_kind_is_refused_by_an_opening_with_numbers, 0, 4);
    tcase_add_test(tcase, without_memory_nothing_stays_open);
    tcase_add_test(tcase, impossible_registers_are_damage_until_a_repair);
    tcase_add_test(tcase, adding_again_changes_nothing);
    tcase_add_loop_test(tcase, hash_chooses_register_and_rank, 4, 19);
    tcase_add_test(tcase, count_of_full_registers_is_all_hashes);
    tcase_add_loop_test(tcase, errors_of_a_thousand_sets_are_within_theory, 0, 5);
    tcase_add_loop_test(tcase, merge_is_as_if_all_was_added_to_one, 10, 19);
    tcase_add_test(tcase, fold_of_a_high_rank_is_what_its_hash_gives);
    tcase_add_test(tcase, example_counts_different_lines);
    tcase_add_test(tcase, processes_that_add_at_once_lose_nothing);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
