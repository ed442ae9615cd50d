/* SPDX-License-Identifier: MIT
 *
 * Random operations on a dict and on a plain array of entries: both must always agree.
 */
#include "dict-model.h"

#include <unistd.h>

#include "test-main.h"

/* So many cells that all keys with all their versions fit, at the longest. */
#define ROOMY (DICT_MODEL_KEYS * (DICT_MODEL_SNAPSHOTS + 2) * 12)

static char path[64];

static const struct {
    const char *name;
    bool in_file;
    bool is_tight;
    SXE_DICT_SPEC spec;
} footings[] = {
    {"threads", false, false, {.cells = ROOMY, .options = SXE_POOL_OPTION_LOCKED}},
    {"processes", false, false, {.cells = ROOMY, .options = SXE_POOL_OPTION_SHARED}},
    {"shards", false, false, {.cells = ROOMY * 8, .shards = 8}},
    {"file", true, false, {.cells = ROOMY * 2, .shards = 2}},
    {"tight", false, true, {.cells = 40}},
    {"tight, evicts", false, true, {.cells = 40, .evicts = true}},
    {"tight file, evicts", true, true, {.cells = 20, .evicts = true}},
};

/* The generator xorshift64*. */
static uint32_t
random_bits(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (uint32_t)(*seed * UINT64_C(2685821657736338717) >> 32);
}

/* The number of operations: fewer with a sanitizer or counters of lines,
 * which are slow. */
static unsigned
operations(void)
{
#ifdef __OPTIMIZE__
    return SXE_HAVE_ASAN ? 30000 : 200000;
#else
    return 10000;
#endif
}

START_TEST(dict_and_plain_array_agree)
{
    const uint64_t first_seed = 88172645463325252u + (uint64_t)_i;
    uint64_t seed = first_seed;
    SXE_DICT_SPEC spec = footings[_i].spec;
    struct dict_model model;

    snprintf(path, sizeof(path), "/dev/shm/test-dict-oracle-%d-%d", getpid(), _i);
    spec.name = "model";
    spec.file = footings[_i].in_file ? path : NULL;
    dict_model_open(&model, &spec, footings[_i].is_tight);
    unlink(path);
    for (unsigned i = 0; i < operations(); i++) {
        uint8_t step[DICT_MODEL_STEP_SIZE];
        const uint32_t bits[2] = {random_bits(&seed), random_bits(&seed)};

        memcpy(step, bits, sizeof(step));
        step[0] = (uint8_t)(step[0] % 255);
        const char *wrong = dict_model_step(&model, step);
        if (wrong == NULL && i % 64 == 0 && !dict_model_check(&model))
            wrong = "check";
        ck_assert_msg(wrong == NULL, "%s: %s: seed %llu, operation %u", footings[_i].name, wrong,
                      (unsigned long long)first_seed, i);
    }
    dict_model_close(&model);
}
END_TEST

START_TEST(dict_in_a_file_is_the_same_when_it_is_opened_again)
{
    uint64_t seed = 4711;
    SXE_DICT_SPEC spec = {.name = "model", .cells = ROOMY * 4, .shards = 4, .file = path};
    struct dict_model model;

    snprintf(path, sizeof(path), "/dev/shm/test-dict-oracle-%d-again", getpid());
    dict_model_open(&model, &spec, false);
    for (unsigned i = 0; i < 4000; i++) {
        uint8_t step[DICT_MODEL_STEP_SIZE];
        const uint32_t bits[2] = {random_bits(&seed), random_bits(&seed)};

        memcpy(step, bits, sizeof(step));
        step[0] = i % 100 == 99 ? 255 : (uint8_t)(step[0] % 255);
        const char *wrong = dict_model_step(&model, step);
        if (wrong == NULL && i % 100 == 99 && !dict_model_check(&model))
            wrong = "check";
        ck_assert_msg(wrong == NULL, "%s: operation %u", wrong, i);
    }
    dict_model_close(&model);
    unlink(path);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-oracle");
    TCase *tcase = tcase_create("oracle");

    tcase_add_loop_test(tcase, dict_and_plain_array_agree, 0,
                        (int)(sizeof(footings) / sizeof(footings[0])));
    tcase_add_test(tcase, dict_in_a_file_is_the_same_when_it_is_opened_again);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
