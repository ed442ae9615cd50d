/* SPDX-License-Identifier: MIT
 *
 * The first byte chooses the kind of dict. The other bytes are operations, which run on the dict
 * and on a plain array of entries: each operation must have the same result in both, and now and
 * then all entries are compared.
 */
#include "../unit/common/dict-model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned roomy = DICT_MODEL_KEYS * (DICT_MODEL_SNAPSHOTS + 2) * 12;
    struct dict_model model;

    if (size == 0)
        return 0;
    const bool is_tight = (data[0] & 1) != 0;
    const SXE_DICT_SPEC spec = {
        .name = "fuzz",
        .cells = is_tight ? data[0] / 4 + 1u : roomy * 2,
        .shards = is_tight ? 1 : 2,
        .evicts = is_tight && (data[0] & 2) != 0,
        .options = SXE_POOL_OPTION_LOCKED,
    };

    dict_model_open(&model, &spec, is_tight);
    for (size_t i = 1; i + DICT_MODEL_STEP_SIZE <= size; i += DICT_MODEL_STEP_SIZE) {
        const char *wrong = dict_model_step(&model, data + i);

        /* dict_model_check reads every cell: run it at every 16th step only. */
        if (wrong == NULL && i / DICT_MODEL_STEP_SIZE % 16 == 15 && !dict_model_check(&model))
            wrong = "check";
        if (wrong != NULL) {
            fprintf(stderr, "%s: at byte %zu\n", wrong, i);
            abort();
        }
    }
    if (!dict_model_check(&model))
        abort();
    dict_model_close(&model);
    return 0;
}
