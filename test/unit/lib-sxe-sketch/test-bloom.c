/* SPDX-License-Identifier: MIT
 *
 * Tests Bloom filters: the calls as sxe-bloom.h describes them, and how often a filter is wrong, by
 * comparison with known sets.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-bloom.h"
#include "test-main.h"

static char path[64];
static char why[SXE_POOL_WHY_SIZE];

static void
setup(void)
{
    snprintf(path, sizeof(path), "/dev/shm/test-bloom-%d", getpid());
    unlink(path);
}

static void
teardown(void)
{
    unlink(path);
}

static SXE_BLOOM *
open_of(uint64_t capacity, double error, const char *file)
{
    const SXE_BLOOM_SPEC spec = {.name = "test",
                                 .capacity = capacity,
                                 .error = error,
                                 .options = file == NULL ? SXE_POOL_OPTION_LOCKED : 0,
                                 .file = file};
    SXE_BLOOM *bloom = sxe_bloom_open(&spec, why);

    ck_assert_msg(bloom != NULL, "%s", why);
    return bloom;
}

static void
refused(const SXE_BLOOM_SPEC *spec, int error, const char *because)
{
    errno = 0;
    ck_assert_ptr_null(sxe_bloom_open(spec, why));
    ck_assert_msg(errno == error, "errno %d: %s", errno, why);
    ck_assert_msg(strstr(why, because) != NULL, "%s", why);
}

static bool
add_number(SXE_BLOOM *bloom, uint64_t number)
{
    return sxe_bloom_add(bloom, &number, sizeof(number));
}

static bool
has_number(const SXE_BLOOM *bloom, uint64_t number)
{
    return sxe_bloom_has(bloom, &number, sizeof(number));
}

static bool
is_equal(const SXE_BLOOM *one, const SXE_BLOOM *other)
{
    return memcmp(sxe_bloom_get_pool(one), sxe_bloom_get_pool(other),
                  sxe_bloom_get_bits(one) / 8) == 0;
}

/* ---- Opening ---- */

START_TEST(impossible_specs_are_refused)
{
    SXE_BLOOM_SPEC spec = {.name = "test", .capacity = 10, .error = 0.6};

    refused(&spec, EINVAL, "the error is 0.6, but must be from 1e-09 to 0.5");
    spec.error = 1e-10;
    refused(&spec, EINVAL, "the error is 1e-10");
    spec.error = NAN;
    refused(&spec, EINVAL, "the error is");
    spec = (SXE_BLOOM_SPEC){.capacity = SXE_BLOOM_CAPACITY_MAX + 1};
    refused(&spec, EINVAL, "without a name: the capacity is 68719476737");
    ck_assert_ptr_null(sxe_bloom_open(&spec, NULL));
    spec = (SXE_BLOOM_SPEC){.name = "test", .file = path};
    refused(&spec, ENOENT, "");
}
END_TEST

START_TEST(size_is_that_of_theory)
{
    static const struct {
        uint64_t capacity;
        double error;
        uint64_t bits;
        unsigned hashes;
    } cases[] = {
        {1000000, 0, 9593024, 7}, {1, 0.5, 64, 1}, {1000, 1e-9, 43200, 30}, {100, 0.001, 1472, 10}};
    SXE_BLOOM *bloom = open_of(cases[_i].capacity, cases[_i].error, NULL);

    ck_assert_uint_eq(sxe_bloom_get_bits(bloom), cases[_i].bits);
    ck_assert_uint_eq(sxe_bloom_get_hashes(bloom), cases[_i].hashes);
    sxe_bloom_close(bloom);
    sxe_bloom_close(NULL);
}
END_TEST

START_TEST(filter_stays_in_its_file)
{
    SXE_BLOOM *bloom = open_of(100, 0.01, path);
    SXE_BLOOM *other = open_of(0, 0, path);
    SXE_BLOOM_SPEC spec = {.name = "test", .capacity = 200, .file = path};

    ck_assert(add_number(bloom, 1));
    ck_assert(has_number(other, 1) && !add_number(other, 1));
    ck_assert_uint_eq(sxe_bloom_get_hashes(other), 7);
    sxe_bloom_close(other);
    other = sxe_bloom_open_fd(sxe_pool_get_fd(sxe_bloom_get_pool(bloom)), NULL, why);
    ck_assert(has_number(other, 1));
    sxe_bloom_close(other);
    sxe_bloom_close(bloom);
    refused(&spec, EEXIST, "the file has a sketch BLOOM_7");
    bloom = open_of(100, 0, path);
    ck_assert(has_number(bloom, 1) && !has_number(bloom, 2));
    sxe_bloom_close(bloom);
}
END_TEST

START_TEST(pool_of_another_kind_is_refused)
{
    static const SXE_POOL_SPEC pools[] = {
        {.name = "other", .number = 1, .element_size = 32, .states = 1},
        {.name = "other", .number = 1, .element_size = 32, .states = 1, .state_names = "BLOOM_31"},
        {.name = "other", .number = 1, .element_size = 33, .states = 1, .state_names = "BLOOM_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 1, .state_names = "BLOOM_3_4"},
        {.name = "other", .number = 2, .element_size = 32, .states = 1, .state_names = "BLOOM_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 1, .state_names = "BLOOM3"},
    };
    const SXE_BLOOM_SPEC spec = {.file = path};
    SXE_POOL_SPEC pool = pools[_i];

    pool.file = path;
    sxe_pool_delete(sxe_pool_open(&pool, why));
    refused(&spec, EMEDIUMTYPE, "pool other is no Bloom filter");
}
END_TEST

START_TEST(pool_of_another_kind_is_refused_by_an_opening_with_numbers)
{
    static const SXE_POOL_SPEC pools[] = {
        {.name = "other", .number = 1, .element_size = 33, .states = 1, .state_names = "OTHER_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 1},
        {.name = "other", .number = 2, .element_size = 32, .states = 1, .state_names = "BLOOM_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 2, .state_names = "BLOOM_3 B"},
    };
    const SXE_BLOOM_SPEC spec = {.name = "test", .capacity = 1000, .file = path};
    SXE_POOL_SPEC pool = pools[_i];

    pool.file = path;
    sxe_pool_delete(sxe_pool_open(&pool, why));
    refused(&spec, EMEDIUMTYPE, "pool other is no Bloom filter");
}
END_TEST

START_TEST(without_memory_nothing_stays_open)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};
    const SXE_BLOOM_SPEC spec = {.name = "test", .capacity = 10};
    const unsigned fds = fake_os_open_fds();
    unsigned nth = 0;
    SXE_BLOOM *bloom;

    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        bloom = sxe_bloom_open(&spec, why);
        ck_assert_msg((bloom == NULL) == (fake_os_injected() > 0), "%u: %s", nth, why);
        ck_assert(bloom != NULL || errno == ENOMEM);
        sxe_bloom_close(bloom);
        ck_assert_uint_eq(fake_os_open_fds(), fds);
    } while (fake_os_injected() > 0);
    ck_assert_uint_gt(nth, 1);
}
END_TEST

START_TEST(pool_that_cannot_be_looked_at_again_is_refused_by_the_sentence_of_the_pool)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_MMAP};
    const SXE_POOL_SPEC pool = {
        .name = "other", .number = 3, .element_size = 8, .states = 1, .file = path};
    const SXE_BLOOM_SPEC spec = {.name = "test", .capacity = 10, .file = path};
    unsigned sentences = 0;
    unsigned nth = 0;

    sxe_pool_delete(sxe_pool_open(&pool, why));
    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        ck_assert_ptr_null(sxe_bloom_open(&spec, why));
        ck_assert(errno == EMEDIUMTYPE || fake_os_injected() > 0);
        sentences += errno == EEXIST && strstr(why, "it has 3 elements") != NULL;
    } while (fake_os_injected() > 0);
    ck_assert_uint_gt(sentences, 0);
}
END_TEST

/* ---- Asking ---- */

START_TEST(filter_has_what_was_added)
{
    SXE_BLOOM *bloom = open_of(100, 0.01, NULL);

    ck_assert(!sxe_bloom_has(bloom, "a", 1));
    ck_assert(sxe_bloom_add(bloom, "a", 1));
    ck_assert(sxe_bloom_has(bloom, "a", 1));
    ck_assert(!sxe_bloom_add(bloom, "a", 1));
    ck_assert(!sxe_bloom_has(bloom, "b", 1));
    ck_assert(sxe_bloom_add(bloom, NULL, 0) && sxe_bloom_has(bloom, "", 0));
    ck_assert(sxe_bloom_add_hash(bloom, 1) && sxe_bloom_has_hash(bloom, 1));
    ck_assert_int_eq((int)lround(sxe_bloom_count(bloom)), 3);
    ck_assert(sxe_bloom_add(bloom, "a\0b", 3) && !sxe_bloom_has(bloom, "a\0c", 3));
    sxe_bloom_clear(bloom);
    ck_assert(!sxe_bloom_has(bloom, "a", 1));
    ck_assert_double_le(fabs(sxe_bloom_count(bloom)), 0);
    ck_assert_double_le(sxe_bloom_get_error(bloom), 0);
    sxe_bloom_close(bloom);
}
END_TEST

START_TEST(full_filter_has_all)
{
    SXE_BLOOM *bloom = open_of(10, 0.1, NULL);

    memset(sxe_bloom_get_pool(bloom), 0xff, sxe_bloom_get_bits(bloom) / 8);
    ck_assert(has_number(bloom, 7) && !add_number(bloom, 8));
    ck_assert_double_ge(sxe_bloom_get_error(bloom), 1);
    ck_assert(isfinite(sxe_bloom_count(bloom)) && sxe_bloom_count(bloom) > 10);
    sxe_bloom_close(bloom);
}
END_TEST

/* In filters of few things the number of set bits varies most. A filter with the fraction f of its
 * bits set is wrong with probability f^hashes; the mean of many is the expected error. */
START_TEST(small_filters_are_no_worse)
{
    enum { SETS = 1000 };
    static const unsigned capacities[] = {1, 3, 10, 17, 46, 200};
    static const double errors[] = {0.5, 0.35, 0.1, 0.01, 1e-4, 1e-9};
    const double error = errors[_i];

    for (unsigned i = 0; i < 6; i++) {
        SXE_BLOOM *bloom = open_of(capacities[i], error, NULL);
        double mean = 0, squares = 0;

        for (uint64_t set = 1; set <= SETS; set++) {
            sxe_bloom_clear(bloom);
            for (uint64_t j = 0; j < capacities[i]; j++)
                add_number(bloom, set << 32 | j);
            const double now = sxe_bloom_get_error(bloom);

            mean += now / SETS;
            squares += now * now / SETS;
        }
        const double deviation = sqrt(fmax(squares - mean * mean, 0) / SETS);

        ck_assert_msg(mean < error + 3 * deviation, "%u: %g, not %g", capacities[i], mean, error);
        sxe_bloom_close(bloom);
    }
}
END_TEST

/* 1,000 sets of as many things as the capacity: all things are found, of other things as many as
 * theory predicts, and the count is right. The sets are the same in each run. */
START_TEST(errors_of_a_thousand_sets_are_within_theory)
{
    enum { SETS = 1000, CAPACITY = 500, OTHERS = 1000 };
    static const double errors[] = {0.1, 0.01, 0.001, 0.36, 0.5};
    const double error = errors[_i];
    SXE_BLOOM *bloom = open_of(CAPACITY, error, NULL);
    unsigned there = 0;
    double wrong = 0, said = 0, counted = 0;

    for (uint64_t set = 1; set <= SETS; set++) {
        const uint64_t first = set << 32 | (uint64_t)_i << 60;

        sxe_bloom_clear(bloom);
        for (uint64_t i = 0; i < CAPACITY; i++)
            add_number(bloom, first + i);
        for (uint64_t i = 0; i < CAPACITY; i++)
            there += has_number(bloom, first + i);
        for (uint64_t i = 0; i < OTHERS; i++)
            wrong += has_number(bloom, first + CAPACITY + i);
        said += sxe_bloom_get_error(bloom) / SETS;
        counted += sxe_bloom_count(bloom) / SETS;
    }
    ck_assert_uint_eq(there, SETS * CAPACITY);
    const double rate = wrong / SETS / OTHERS;
    const double deviation = sqrt(error / SETS / OTHERS);

    printf("error %g: found %g, get_error %g, count %g of %d\n", error, rate, said, counted,
           CAPACITY);
    fflush(stdout);
    ck_assert_msg(rate < error + 3 * deviation, "%g, not %g", rate, error);
    ck_assert_msg(fabs(said - rate) < rate * 0.05 + 3 * deviation, "%g, not %g", said, rate);
    ck_assert_msg(fabs(counted - CAPACITY) < 2, "%g", counted);
    sxe_bloom_close(bloom);
}
END_TEST

/* ---- Merging, and many processes ---- */

START_TEST(merge_is_as_if_all_was_added_to_one)
{
    SXE_BLOOM *left = open_of(1000, 0.01, NULL);
    SXE_BLOOM *right = open_of(1000, 0.01, NULL);
    SXE_BLOOM *all = open_of(1000, 0.01, NULL);
    SXE_BLOOM *larger = open_of(2000, 0.01, NULL);
    SXE_BLOOM *finer = open_of(1000, 0.0099, NULL);

    for (uint64_t i = 0; i < 1000; i++) {
        add_number(i < 600 ? left : right, i);
        add_number(all, i);
    }
    ck_assert_int_eq(sxe_bloom_merge(left, right), 0);
    ck_assert_int_eq(sxe_bloom_merge(left, left), 0);
    ck_assert(is_equal(left, all));
    ck_assert_int_eq(sxe_bloom_merge(left, larger), -EDOM);
    ck_assert_int_eq(sxe_bloom_merge(finer, left), -EDOM);
    sxe_bloom_close(left);
    sxe_bloom_close(right);
    sxe_bloom_close(all);
    sxe_bloom_close(larger);
    sxe_bloom_close(finer);
}
END_TEST

START_TEST(processes_that_add_at_once_lose_nothing)
{
    enum { PROCESSES = 4, EACH = 5000 };
    SXE_BLOOM *bloom = open_of(PROCESSES * EACH / 10, 0.01, path);
    SXE_BLOOM *all = open_of(PROCESSES * EACH / 10, 0.01, NULL);
    pid_t children[PROCESSES];
    int status;

    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (uint64_t j = i; j < PROCESSES * EACH; j += PROCESSES)
                add_number(bloom, j);
            _exit(0);
        }
    }
    for (uint64_t j = 0; j < PROCESSES * EACH; j++)
        add_number(all, j);
    for (unsigned i = 0; i < PROCESSES; i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert(is_equal(bloom, all));
    sxe_bloom_close(bloom);
    sxe_bloom_close(all);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("bloom");
    TCase *tcase = tcase_create("bloom");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, impossible_specs_are_refused);
    tcase_add_loop_test(tcase, size_is_that_of_theory, 0, 4);
    tcase_add_test(tcase, filter_stays_in_its_file);
    tcase_add_loop_test(tcase, pool_of_another_kind_is_refused, 0, 6);
    tcase_add_loop_test(tcase, pool_of_another_kind_is_refused_by_an_opening_with_numbers, 0, 4);
    tcase_add_test(tcase, without_memory_nothing_stays_open);
    tcase_add_test(tcase,
                   pool_that_cannot_be_looked_at_again_is_refused_by_the_sentence_of_the_pool);
    tcase_add_test(tcase, filter_has_what_was_added);
    tcase_add_test(tcase, full_filter_has_all);
    tcase_add_loop_test(tcase, small_filters_are_no_worse, 0, 6);
    tcase_add_loop_test(tcase, errors_of_a_thousand_sets_are_within_theory, 0, 5);
    tcase_add_test(tcase, merge_is_as_if_all_was_added_to_one);
    tcase_add_test(tcase, processes_that_add_at_once_lose_nothing);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
