/* SPDX-License-Identifier: MIT
 *
 * Random operations on pools that threads or processes share, and on a plain array of states: both
 * must always agree (test-pool-oracle.c does this for pools of one thread).
 */
#include "pool-model.h"

#include <stdio.h>
#include <unistd.h>

#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

static char path[64];

static const struct kind {
    const char *name;
    SXE_POOL_SPEC spec;
    bool in_file;
} kinds[] = {
    {"threads", {.number = 1, .states = 1, .options = SXE_POOL_OPTION_LOCKED, .shards = 1}, false},
    {"threads", {.number = 7, .states = 3, .options = SXE_POOL_OPTION_LOCKED, .shards = 1}, false},
    {"threads", {.number = 64, .states = 5, .options = SXE_POOL_OPTION_LOCKED, .shards = 4}, false},
    {"memory", {.number = 2, .states = 2, .shards = 1}, false},
    {"memory", {.number = 100, .states = 7, .shards = 1}, false},
    {"memory", {.number = 64, .states = 3, .shards = 8}, false},
    {"memory", {.number = 64, .states = 2, .shards = 64}, false},
    {"file", {.number = 7, .states = 3, .shards = 1}, true},
    {"file", {.number = 64, .states = 3, .shards = 2}, true},
};

static void
remove_the_file(void)
{
    unlink(path);
}

static void
name_the_file(void)
{
    snprintf(path, sizeof(path), "/dev/shm/test-differential-%d", (int)getpid());
    unlink(path);
}

/* The generator xorshift64*. */
static uint32_t
random_bits(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (uint32_t)(*seed * UINT64_C(2685821657736338717) >> 32);
}

/* The number of operations: fewer with a sanitizer, which is slow, and for files, which are closed
 * and opened again and again. */
static unsigned
operations(bool in_file)
{
#ifdef __OPTIMIZE__
    const unsigned scale = SXE_HAVE_ASAN ? 1 : 8;
#else
    const unsigned scale = 1;
#endif
    return scale * (in_file ? 2000 : 20000);
}

START_TEST(shared_pool_and_plain_array_agree)
{
    const struct kind *kind = &kinds[_i];
    const uint64_t first_seed = 88172645463325252u + (uint64_t)_i;
    uint64_t seed = first_seed;
    struct pool_model model;
    SXE_POOL_SPEC spec = kind->spec;

    spec.name = kind->name;
    spec.element_size = 1;
    spec.file = kind->in_file ? path : NULL;
    pool_model_open_shared(&model, &spec);
    for (unsigned i = 0; i < operations(kind->in_file); i++) {
        const uint32_t bits = random_bits(&seed);
        uint8_t step[POOL_MODEL_STEP_SIZE];
        char why[SXE_POOL_WHY_SIZE] = "";

        memcpy(step, &bits, sizeof(step));
        const char *wrong = pool_model_step(&model, step);
        if (wrong == NULL && i % 16 == 0 && !pool_model_check(&model))
            wrong = "check";
        if (wrong == NULL && i % 64 == 0 && sxe_pool_check(model.pool, why) != 0)
            wrong = why;
        ck_assert_msg(wrong == NULL,
                      "%s: seed %llu, operation %u, %s: %u elements, %u states, %u "
                      "shards",
                      wrong, (unsigned long long)first_seed, i, kind->name, model.number,
                      model.states, model.shards);
    }
    pool_model_close(&model);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-differential");
    TCase *tcase = tcase_create("differential");

    tcase_add_checked_fixture(tcase, name_the_file, remove_the_file);
    tcase_add_loop_test(tcase, shared_pool_and_plain_array_agree, 0, LENGTH_OF(kinds));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
