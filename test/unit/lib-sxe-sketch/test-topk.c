/* SPDX-License-Identifier: MIT
 *
 * Tests top-k sketches: the calls as sxe-topk.h describes them, and their guarantee, by comparison
 * with exact counts.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-topk-private.h"
#include "test-main.h"
#include "test-sweep.h"

static char path[64];
static char why[SXE_POOL_WHY_SIZE];
static SXE_TOPK_ENTRY entries[SXE_TOPK_NUMBER_MAX];

static void
setup(void)
{
    snprintf(path, sizeof(path), "/dev/shm/test-topk-%d", getpid());
    unlink(path);
}

static void
teardown(void)
{
    unlink(path);
}

static SXE_TOPK *
open_of(unsigned number, double error, const char *file)
{
    const SXE_TOPK_SPEC spec = {.name = "test",
                                .number = number,
                                .error = error,
                                .options = file == NULL ? SXE_POOL_OPTION_LOCKED : 0,
                                .file = file};
    SXE_TOPK *topk = sxe_topk_open(&spec, why);

    ck_assert_msg(topk != NULL, "%s", why);
    return topk;
}

static void
refused(const SXE_TOPK_SPEC *spec, int error, const char *because)
{
    errno = 0;
    ck_assert_ptr_null(sxe_topk_open(spec, why));
    ck_assert_msg(errno == error, "errno %d: %s", errno, why);
    ck_assert_msg(strstr(why, because) != NULL, "%s", why);
}

static void
add_text(SXE_TOPK *topk, const char *key, uint64_t times)
{
    ck_assert_int_eq(sxe_topk_add(topk, key, strlen(key), times), 0);
}

/* The listed keys and their counts as text, such as "b 5, a 3". */
static const char *
list_text(const SXE_TOPK *topk, unsigned max)
{
    static char text[1000];
    size_t used = 0;
    const unsigned number = sxe_topk_list(topk, entries, max);

    text[0] = '\0';
    for (unsigned i = 0; i < number; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s %llu",
                                 i == 0 ? "" : ", ", (int)entries[i].size, entries[i].key,
                                 (unsigned long long)entries[i].count);
    return text;
}

/* ---- Opening ---- */

START_TEST(impossible_specs_are_refused)
{
    SXE_TOPK_SPEC spec = {.name = "test", .number = 1001};

    refused(&spec, EINVAL, "lists of 1001 keys, but at most 1000");
    spec = (SXE_TOPK_SPEC){.number = 10, .error = 0.2};
    refused(&spec, EINVAL, "without a name: the error is 0.2, but must be from 1e-06 to 0.1");
    spec.error = 1e-7;
    refused(&spec, EINVAL, "the error is");
    spec.error = NAN;
    refused(&spec, EINVAL, "the error is");
    spec = (SXE_TOPK_SPEC){.name = "test", .number = 10, .key_size = 9};
    refused(&spec, EINVAL, "key_size is 9, but must be a multiple of 8 up to 256");
    spec.key_size = 264;
    refused(&spec, EINVAL, "key_size is 264");
    spec.key_size = UINT32_MAX - 7;
    refused(&spec, EINVAL, "key_size is 4294967288");
    spec = (SXE_TOPK_SPEC){.name = "test", .number = UINT32_MAX};
    refused(&spec, EINVAL, "lists of 4294967295 keys");
    spec = (SXE_TOPK_SPEC){.name = "test", .file = path};
    refused(&spec, ENOENT, "");
}
END_TEST

START_TEST(sketch_stays_in_its_file)
{
    SXE_TOPK *topk = open_of(3, 0, path);
    SXE_TOPK *other = open_of(0, 0, path);
    SXE_TOPK_SPEC spec = {.name = "test", .number = 4, .file = path};

    add_text(topk, "a", 5);
    add_text(other, "a", 1);
    ck_assert_str_eq(list_text(topk, 10), "a 6");
    ck_assert_uint_eq(sxe_topk_get_number(other), 3);
    ck_assert_uint_eq(sxe_topk_get_key_size(other), 64);
    sxe_topk_close(other);
    other = sxe_topk_open_fd(sxe_pool_get_fd(sxe_topk_get_pool(topk)), NULL, why);
    ck_assert_uint_eq(sxe_topk_count(other, "a", 1), 6);
    sxe_topk_close(other);
    sxe_topk_close(topk);
    refused(&spec, EEXIST, "the file has a sketch ");
    topk = open_of(3, 0, path);
    ck_assert_str_eq(list_text(topk, 10), "a 6");
    ck_assert_uint_eq(sxe_topk_get_total(topk), 6);
    sxe_topk_close(topk);
    sxe_topk_close(NULL);
}
END_TEST

START_TEST(pool_of_another_kind_is_refused)
{
    static const struct {
        const char *state;
        size_t size;
    } pools[] = {
        {NULL, 512},        {"TOPK_1_8", 512},   {"TOPK_1_8_8_1", 512}, {"TOPK_1_8_8", 512},
        {"TOPK_1_7_8", 64}, {"TOPK_1_8_9", 64},  {"TOPK_1_8_512", 64},  {"TOPK_2000_8_8", 64},
        {"TOPK", 512},      {"TOPK_1_x_8", 512}, {"TOPK_0_8_8", 320},   {"TOPK_1_0_8", 112},
    };
    const SXE_TOPK_SPEC spec = {.file = path};
    const SXE_POOL_SPEC pool = {.name = "other",
                                .number = 1,
                                .element_size = pools[_i].size,
                                .states = 1,
                                .state_names = pools[_i].state,
                                .file = path};

    sxe_pool_delete(sxe_pool_open(&pool, why));
    refused(&spec, EMEDIUMTYPE, "pool other is no top-k sketch");
}
END_TEST

START_TEST(pool_of_another_kind_is_refused_by_an_opening_with_numbers)
{
    static const SXE_POOL_SPEC pools[] = {
        {.name = "other", .number = 1, .element_size = 33, .states = 1, .state_names = "OTHER_3"},
        {.name = "other", .number = 1, .element_size = 32, .states = 1},
        {.name = "other",
         .number = 2,
         .element_size = 32,
         .states = 1,
         .state_names = "TOPK_1_8_8"},
        {.name = "other",
         .number = 1,
         .element_size = 32,
         .states = 2,
         .state_names = "TOPK_1_8_8 B"},
    };
    const SXE_TOPK_SPEC spec = {.name = "test", .number = 10, .file = path};
    SXE_POOL_SPEC pool = pools[_i];

    pool.file = path;
    sxe_pool_delete(sxe_pool_open(&pool, why));
    refused(&spec, EMEDIUMTYPE, "pool other is no top-k sketch");
}
END_TEST

START_TEST(without_memory_nothing_stays_open)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};
    const SXE_TOPK_SPEC spec = {.name = "test", .number = 10};
    const unsigned fds = fake_os_open_fds();
    unsigned nth = 0;
    SXE_TOPK *topk;

    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        topk = sxe_topk_open(&spec, why);
        ck_assert_msg((topk == NULL) == (fake_os_injected() > 0), "%u: %s", nth, why);
        ck_assert(topk != NULL || errno == ENOMEM);
        sxe_topk_close(topk);
        ck_assert_uint_eq(fake_os_open_fds(), fds);
    } while (fake_os_injected() > 0);
    ck_assert_uint_gt(nth, 1);
}
END_TEST

/* ---- Counting ---- */

START_TEST(keys_are_listed_by_their_counts)
{
    char key[65] = "";
    SXE_TOPK *topk = open_of(3, 0, NULL);

    ck_assert_str_eq(list_text(topk, 10), "");
    add_text(topk, "a", 3);
    add_text(topk, "b", 5);
    add_text(topk, "a", 1);
    ck_assert_str_eq(list_text(topk, 10), "b 5, a 4");
    add_text(topk, "", 7);
    add_text(topk, "d", 6);
    ck_assert_str_eq(list_text(topk, 10), " 7, d 6, b 5");
    ck_assert_str_eq(list_text(topk, 1), " 7");
    ck_assert_uint_eq(sxe_topk_list(topk, NULL, 0), 0);
    ck_assert_uint_eq(sxe_topk_count(topk, "a", 1), 4);
    ck_assert_uint_eq(sxe_topk_count(topk, "none", 4), 0);
    ck_assert_uint_eq(sxe_topk_get_total(topk), 22);
    memset(key, 'k', sizeof(key));
    ck_assert_int_eq(sxe_topk_add(topk, key, 65, 1), -EINVAL);
    ck_assert_int_eq(sxe_topk_add(topk, key, 64, 9), 0);
    ck_assert_uint_eq(sxe_topk_list(topk, entries, 1), 1);
    ck_assert_uint_eq(entries[0].size, 64);
    ck_assert_mem_eq(entries[0].key, key, 64);
    sxe_topk_clear(topk);
    ck_assert_str_eq(list_text(topk, 10), "");
    ck_assert_uint_eq(sxe_topk_get_total(topk), 0);
    add_text(topk, "a", 1);
    ck_assert_str_eq(list_text(topk, 10), "a 1");
    sxe_topk_close(topk);
}
END_TEST

START_TEST(keys_are_bytes)
{
    static const char keys[][4] = {"\0\0\0", "a\0b", "a\0c"};
    SXE_TOPK *topk = open_of(6, 0, NULL);

    ck_assert_int_eq(sxe_topk_add(topk, NULL, 0, 1), 0);
    ck_assert_int_eq(sxe_topk_add(topk, keys[0], 0, 1), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(sxe_topk_add(topk, keys[i], 3, 3 + i), 0);
    ck_assert_int_eq(sxe_topk_add(topk, keys[1], 1, 9), 0);
    ck_assert_int_eq(sxe_topk_add(topk, "other", 5, 0), 0);
    ck_assert_uint_eq(sxe_topk_list(topk, entries, 10), 5);
    ck_assert(entries[0].size == 1 && entries[0].key[0] == 'a' && entries[0].count == 9);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(entries[1 + i].size == 3 && entries[1 + i].count == 5 - i);
        ck_assert_mem_eq(entries[1 + i].key, keys[2 - i], 3);
    }
    ck_assert(entries[4].size == 0 && entries[4].count == 2);
    sxe_topk_close(topk);
}
END_TEST

START_TEST(rare_keys_make_room_for_frequent_ones)
{
    SXE_TOPK *topk = open_of(1, 0, NULL);

    add_text(topk, "a", 2);
    add_text(topk, "b", 3);
    add_text(topk, "c", 1); /* not above 2, the lower count: "c" gets no slot */
    ck_assert_uint_eq(topk->head->floor, 2);
    add_text(topk, "d", 2);
    ck_assert_str_eq(list_text(topk, 1), "b 3");
    add_text(topk, "c", 3);
    ck_assert_str_eq(list_text(topk, 1), "c 4");
    add_text(topk, "e", UINT64_C(1) << 50);
    add_text(topk, "f", UINT64_C(1) << 51);
    add_text(topk, "g", UINT64_C(1) << 49); /* larger than head->floor can store */
    ck_assert_uint_le(topk->head->floor, 4);
    ck_assert_uint_eq(sxe_topk_list(topk, entries, 1), 1);
    ck_assert_int_eq(entries[0].key[0], 'f');
    sxe_topk_clear(topk);
    ck_assert_uint_eq(topk->head->floor, UINT64_C(2) << SXE__TOPK_FLOOR_BITS);
    sxe_topk_close(topk);
}
END_TEST

/* ---- Slots that are half written, or damaged ---- */

static struct sxe__topk_slot *
first_slot(const SXE_TOPK *topk)
{
    return (struct sxe__topk_slot *)(void *)topk->slots;
}

START_TEST(key_that_was_left_half_is_written_by_the_next_add)
{
    SXE_TOPK *topk = open_of(2, 0, NULL);
    struct sxe__topk_slot *slot = first_slot(topk);

    add_text(topk, "a key of two words", 3);
    add_text(topk, "b", 2);
    slot->key[1] ^= 1;
    ck_assert_str_eq(list_text(topk, 10), "b 2");
    slot->key[1] ^= 1;
    slot->size--;
    ck_assert_str_eq(list_text(topk, 10), "b 2");
    slot->size = 65;
    ck_assert_str_eq(list_text(topk, 10), "b 2");
    add_text(topk, "a key of two words", 1);
    ck_assert_str_eq(list_text(topk, 10), "a key of two words 4, b 2");
    sxe_topk_close(topk);
}
END_TEST

START_TEST(key_with_two_slots_is_listed_once)
{
    SXE_TOPK *topk = open_of(2, 0, NULL);

    add_text(topk, "a", 3);
    memcpy(topk->slots + 3 * sxe__topk_slot_size(64), topk->slots, sxe__topk_slot_size(64));
    add_text(topk, "b", 2);
    ck_assert_str_eq(list_text(topk, 10), "a 3, b 2");
    sxe_topk_close(topk);
}
END_TEST

START_TEST(second_slot_of_a_key_is_given_up)
{
    SXE_TOPK *topk = open_of(2, 0, NULL);
    const size_t slot_size = sxe__topk_slot_size(64);

    add_text(topk, "a", 3);
    memcpy(topk->slots + slot_size, topk->slots, slot_size);
    memcpy(topk->slots + 3 * slot_size, topk->slots, slot_size);
    sxe__topk_drop_doubles(topk, first_slot(topk)->hash);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t hash;

        memcpy(&hash, topk->slots + i * slot_size, sizeof(hash));
        ck_assert((hash != 0) == (i == 0));
    }
    add_text(topk, "b", 2);
    add_text(topk, "c", 4);
    ck_assert_str_eq(list_text(topk, 10), "c 4, a 3");
    sxe_topk_close(topk);
}
END_TEST

/* A clear resets the slots first, then the counters. If it is killed in between, other processes
 * may already have filled slots again, with counts that are then set to 0. */
START_TEST(clear_that_was_killed_hides_no_key)
{
    SXE_TOPK *topk = open_of(1, 0, NULL);

    topk->head->floor |= SXE__TOPK_CLEARING;
    add_text(topk, "a", 100);
    add_text(topk, "b", 100);
    add_text(topk, "c", 1);
    memset(topk->counters, 0, (size_t)topk->width * SXE__TOPK_ROWS * sizeof(*topk->counters));
    ck_assert_uint_eq(topk->head->floor, SXE__TOPK_CLEARING);
    add_text(topk, "c", 2);
    ck_assert_str_eq(list_text(topk, 1), "c 2");
    sxe_topk_clear(topk);
    ck_assert_uint_eq(topk->head->floor, 2 * SXE__TOPK_CLEARING);
    add_text(topk, "a", 5);
    add_text(topk, "b", 6);
    add_text(topk, "c", 1);
    ck_assert_uint_eq(topk->head->floor, 2 * SXE__TOPK_CLEARING + 5);
    sxe_topk_close(topk);
}
END_TEST

START_TEST(damaged_memory_gives_odd_counts_and_no_crash)
{
    SXE_TOPK *topk = open_of(4, 0.1, NULL);
    const size_t size = sxe_pool_get_element_size(sxe_topk_get_pool(topk));

    for (int byte = 0; byte < 256; byte++) {
        memset(sxe_topk_get_pool(topk), byte, size);
        add_text(topk, "a", 1);
        ck_assert_uint_le(sxe_topk_list(topk, entries, 4), 4);
        (void)sxe_topk_count(topk, "a", 1);
    }
    sxe_topk_clear(topk);
    add_text(topk, "a", 1);
    ck_assert_str_eq(list_text(topk, 4), "a 1");
    sxe_topk_close(topk);
}
END_TEST

/* ---- The guarantee ---- */

enum { KEYS = 1000, ADDS = 3000, LISTED = 10 };

/* The sets only compute, which sanitizers hardly check: a twentieth is enough then. */
#define SETS (sxe_test_is_thin() ? 50u : 1000u)

static uint64_t exact[KEYS];
static uint64_t seed;

/* Draw a key: the key n is n times as rare as the key 1. */
static unsigned
draw_key(void)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)pow(KEYS, (double)sxe__sketch_scatter(seed) / 0x1p64) % KEYS;
}

static uint64_t
key_of(unsigned number, uint64_t set)
{
    return set << 32 | number;
}

/* Check a list: no count is too low, and no key that is missing was more frequent than the last
 * that is listed. Returns how many counts are too high by more than the error. */
static unsigned
check_list(const SXE_TOPK *topk, uint64_t set, double error)
{
    bool is_listed[KEYS] = {false};
    const unsigned number = sxe_topk_list(topk, entries, LISTED);
    unsigned far = 0;

    ck_assert_uint_eq(number, LISTED);
    for (unsigned i = 0; i < number; i++) {
        uint64_t key;

        memcpy(&key, entries[i].key, sizeof(key));
        ck_assert_uint_eq(entries[i].size, sizeof(key));
        ck_assert_uint_eq(key >> 32, set);
        is_listed[key & 0xffffffff] = true;
        ck_assert_uint_ge(entries[i].count, exact[key & 0xffffffff]);
        far += (double)(entries[i].count - exact[key & 0xffffffff]) > error * ADDS;
        ck_assert(i == 0 || entries[i].count <= entries[i - 1].count);
    }
    for (unsigned i = 0; i < KEYS; i++)
        if (!is_listed[i] && exact[i] > entries[number - 1].count)
            ck_abort_msg("key %u of set %u is missing", i, (unsigned)set);
    return far;
}

START_TEST(guarantee_holds_for_a_thousand_sets)
{
    static const double errors[] = {0.1, 0.01, 0.001};
    const double error = errors[_i];
    SXE_TOPK *topk = open_of(LISTED, error, NULL);
    unsigned far = 0;

    for (uint64_t set = 1; set <= SETS; set++) {
        memset(exact, 0, sizeof(exact));
        sxe_topk_clear(topk);
        for (unsigned i = 0; i < ADDS; i++) {
            const unsigned number = draw_key();
            const uint64_t key = key_of(number, set);

            exact[number]++;
            sxe_topk_add(topk, &key, sizeof(key), 1);
        }
        far += check_list(topk, set, error);
    }
    printf("error %g: %u of %u counts were too high by more\n", error, far, SETS * LISTED);
    fflush(stdout);
    ck_assert_uint_le(far, SETS * LISTED * 18 / 1000); /* theory says e^-4 */
    sxe_topk_close(topk);
}
END_TEST

/* ---- Merging, and many processes ---- */

START_TEST(merge_adds_counts_and_keys)
{
    SXE_TOPK *left = open_of(2, 0, NULL);
    SXE_TOPK *right = open_of(3, 0, NULL);
    SXE_TOPK *wider = open_of(2, 0.0001, NULL);
    const SXE_TOPK_SPEC spec = {
        .name = "test", .number = 2, .key_size = 72, .options = SXE_POOL_OPTION_LOCKED};
    SXE_TOPK *longer = sxe_topk_open(&spec, why);

    add_text(left, "a", 5);
    add_text(left, "b", 4);
    add_text(right, "b", 3);
    add_text(right, "c", 6);
    ck_assert_int_eq(sxe_topk_merge(left, right), 0);
    ck_assert_str_eq(list_text(left, 10), "b 7, c 6");
    ck_assert_uint_eq(sxe_topk_get_total(left), 18);
    ck_assert_str_eq(list_text(right, 10), "c 6, b 3");
    ck_assert_int_eq(sxe_topk_merge(left, wider), -EDOM);
    ck_assert_int_eq(sxe_topk_merge(left, longer), -EDOM);
    sxe_topk_close(left);
    sxe_topk_close(right);
    sxe_topk_close(wider);
    sxe_topk_close(longer);
}
END_TEST

/* All processes add the frequent keys; the last additions come after all other processes ended. */
START_TEST(processes_that_add_at_once_lose_no_count)
{
    enum { PROCESSES = 4, EACH = 5000, FREQUENT = 5 };
    SXE_TOPK *topk = open_of(FREQUENT, 0.0001, path);
    pid_t children[PROCESSES];
    int status;

    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (uint64_t j = 0; j < EACH; j++) {
                const uint64_t key = j % 2 == 0 ? j / 2 % FREQUENT : j * PROCESSES + i;

                sxe_topk_add(topk, &key, sizeof(key), 1);
            }
            _exit(0);
        }
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(sxe_topk_get_total(topk), PROCESSES * EACH);
    for (uint64_t key = 0; key < FREQUENT; key++)
        sxe_topk_add(topk, &key, sizeof(key), 1);
    ck_assert_uint_eq(sxe_topk_list(topk, entries, FREQUENT), FREQUENT);
    for (unsigned i = 0; i < FREQUENT; i++) {
        uint64_t key;

        memcpy(&key, entries[i].key, sizeof(key));
        ck_assert_uint_lt(key, FREQUENT);
        ck_assert_uint_ge(entries[i].count, PROCESSES * EACH / 2 / FREQUENT + 1);
    }
    sxe_topk_close(topk);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("topk");
    TCase *tcase = tcase_create("topk");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, impossible_specs_are_refused);
    tcase_add_test(tcase, sketch_stays_in_its_file);
    tcase_add_loop_test(tcase, pool_of_another_kind_is_refused, 0, 12);
    tcase_add_loop_test(tcase, pool_of_another_kind_is_refused_by_an_opening_with_numbers, 0, 4);
    tcase_add_test(tcase, without_memory_nothing_stays_open);
    tcase_add_test(tcase, keys_are_listed_by_their_counts);
    tcase_add_test(tcase, keys_are_bytes);
    tcase_add_test(tcase, rare_keys_make_room_for_frequent_ones);
    tcase_add_test(tcase, key_that_was_left_half_is_written_by_the_next_add);
    tcase_add_test(tcase, key_with_two_slots_is_listed_once);
    tcase_add_test(tcase, second_slot_of_a_key_is_given_up);
    tcase_add_test(tcase, clear_that_was_killed_hides_no_key);
    tcase_add_test(tcase, damaged_memory_gives_odd_counts_and_no_crash);
    tcase_add_loop_test(tcase, guarantee_holds_for_a_thousand_sets, 0, 3);
    tcase_add_test(tcase, merge_adds_counts_and_keys);
    tcase_add_test(tcase, processes_that_add_at_once_lose_no_count);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
