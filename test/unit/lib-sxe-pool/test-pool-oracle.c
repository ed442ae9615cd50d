/* SPDX-License-Identifier: MIT
 *
 * Random operations on a pool and on a plain array of states: both must always agree.
 */
#include "pool-model.h"

#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const unsigned numbers[] = {1, 2, 7, 1000};
static const unsigned states[] = {1, 2, 7};

/* The generator xorshift64*. */
static uint32_t
random_bits(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (uint32_t)(*seed * UINT64_C(2685821657736338717) >> 32);
}

/* The number of operations: fewer with a sanitizer, which is slow. */
static unsigned
operations(unsigned number)
{
#ifdef __OPTIMIZE__
    const unsigned scale = SXE_HAVE_ASAN ? 1 : 8;
#else
    const unsigned scale = 1;
#endif
    return scale * (number > 100 ? 20000 : 50000);
}

START_TEST(pool_and_plain_array_agree)
{
    const uint64_t first_seed = 88172645463325252u + (uint64_t)_i;
    uint64_t seed = first_seed;
    struct pool_model model;

    pool_model_open(&model, numbers[_i / LENGTH_OF(states)], states[_i % LENGTH_OF(states)]);
    for (unsigned i = 0; i < operations(model.number); i++) {
        const uint32_t bits = random_bits(&seed);
        uint8_t step[POOL_MODEL_STEP_SIZE];

        memcpy(step, &bits, sizeof(step));
        const char *wrong = pool_model_step(&model, step);
        if (wrong == NULL && i % model.number == 0 && !pool_model_check(&model))
            wrong = "check";
        ck_assert_msg(wrong == NULL, "%s: seed %llu, operation %u, %u elements, %u states", wrong,
                      (unsigned long long)first_seed, i, model.number, model.states);
    }
    pool_model_close(&model);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-oracle");
    TCase *tcase = tcase_create("oracle");

    tcase_add_loop_test(tcase, pool_and_plain_array_agree, 0,
                        LENGTH_OF(numbers) * LENGTH_OF(states));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
