/* SPDX-License-Identifier: MIT
 *
 * The first bytes are the numbers of elements and states. The other bytes are operations, which run
 * on a pool and on a plain array of states: after each operation both must agree in everything.
 */
#include <stdio.h>

#include "../unit/common/pool-model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pool_model model;

    if (size < 2)
        return 0;
    pool_model_open(&model, data[0] % 16u + 1, data[1] % 7u + 1);
    for (size_t i = 2; i + POOL_MODEL_STEP_SIZE <= size; i += POOL_MODEL_STEP_SIZE) {
        const char *wrong = pool_model_step(&model, data + i);

        if (wrong == NULL && !pool_model_check(&model))
            wrong = "check";
        if (wrong != NULL) {
            fprintf(stderr, "%s: at byte %zu, %u elements, %u states\n", wrong, i, model.number,
                    model.states);
            abort();
        }
    }
    pool_model_close(&model);
    return 0;
}
