/* SPDX-License-Identifier: MIT
 *
 * usage: model [TEXT]    run every schedule of the cases whose names contain TEXT, or of all cases;
 *                        then show that each fault put into the library is noticed. Exit status 1:
 *                        a case failed, or a fault was not noticed.
 */
#include "model-cases.h"

static unsigned wrong;

static void
search_all(const struct model_case *cases, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(cases[i].name, text) != NULL)
            wrong += !model_search(&cases[i], NULL, 0, true);
    }
}

int
main(int argc, char **argv)
{
    const char *text = argc > 1 ? argv[1] : "";

    if (!MODEL_POSSIBLE) {
        printf("skipped: the model needs an x86-64\n");
        return 0;
    }
    sxe_log_set_level(SXE_LOG_FATAL);
    search_all(model_small, MODEL_LENGTH(model_small), text);
    search_all(model_medium, MODEL_LENGTH(model_medium), text);
    search_all(model_large, MODEL_LENGTH(model_large), text);
    for (size_t i = 0; i < MODEL_LENGTH(model_mutants); i++) {
        const struct model_mutant *mutant = &model_mutants[i];

        if (strstr(mutant->name, text) == NULL)
            continue;
        const bool caught = model_catches(mutant);
        printf("fault, %s: %s%s\n", mutant->name, caught ? "noticed: " : "NOT NOTICED",
               caught ? model_world.said : "");
        wrong += !caught;
    }
    return wrong != 0;
}
