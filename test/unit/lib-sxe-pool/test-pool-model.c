/* SPDX-License-Identifier: MIT
 *
 * Runs every order of steps, and every death, of small cases of shared pools (test/model); `make
 * model` runs larger cases. Then checks that the model notices faults put into the library.
 */
#include "../../model/model-cases.h"

#include "test-main.h"

static void
search(const struct model_case *model)
{
    ck_assert_msg(model_search(model, NULL, 0, true), "%s: %s", model->name, model_world.said);
}

START_TEST(every_schedule_of_a_small_case_is_right)
{
    search(&model_small[_i]);
}
END_TEST

START_TEST(every_schedule_of_a_medium_case_is_right)
{
    search(&model_medium[_i]);
}
END_TEST

START_TEST(a_fault_in_the_library_is_noticed)
{
    ck_assert_msg(model_catches(&model_mutants[_i]), "%s: not noticed", model_mutants[_i].name);
}
END_TEST

#ifdef __OPTIMIZE__
#    define MEDIUM_TOO (!SXE_HAVE_ASAN)
#else
#    define MEDIUM_TOO 0
#endif

int
main(void)
{
    Suite *suite = suite_create("pool-model");
    TCase *tcase = tcase_create("model");

    if (!MODEL_POSSIBLE)
        puts("skipped: the model needs an x86-64");
    tcase_add_loop_test(tcase, every_schedule_of_a_small_case_is_right, 0,
                        MODEL_POSSIBLE * (int)MODEL_LENGTH(model_small));
    tcase_add_loop_test(tcase, every_schedule_of_a_medium_case_is_right, 0,
                        MODEL_POSSIBLE * MEDIUM_TOO * (int)MODEL_LENGTH(model_medium));
    tcase_add_loop_test(tcase, a_fault_in_the_library_is_noticed, 0,
                        MODEL_POSSIBLE * (int)MODEL_LENGTH(model_mutants));
    sxe_log_set_level(SXE_LOG_FATAL);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
