/* SPDX-License-Identifier: MIT
 *
 * Tests log levels: which setting wins, and that every control follows a change, whoever makes it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "capture-log.h"
#include "test-main.h"

static struct sxe_log_control pool_control = SXE_LOG_CONTROL_INIT("sxe-pool");
static struct sxe_log_control other_control = SXE_LOG_CONTROL_INIT("other.lib2");

/* The highest level whose lines a control shows. */
static int
shown(struct sxe_log_control *control)
{
    int level = 0;

    while (level < 9 && sxe_log_shown(control, level + 1))
        level++;
    return level;
}

static void
clean_environment(void)
{
    unsetenv("SXE_LOG_LEVEL");
    unsetenv("SXE_LOG_LEVEL_SXE_POOL");
    unsetenv("SXE_LOG_LEVEL_OTHER_LIB2");
    sxe_log_to_function(keep_line, NULL);
}

static const struct {
    const char *text;
    int level;
} texts[] = {
    {"0", 0},           {"1", 1},
    {"2", 2},           {"3", 3},
    {"4", 4},           {"5", 5},
    {"6", 6},           {"7", 7},
    {"8", 7},           {"9", 7},
    {"none", 0},        {"fatal", 1},
    {"error", 2},       {"warning", 3},
    {"information", 4}, {"debug", 5},
    {"trace", 6},       {"dump", 7},
    {"Warning", 3},     {"DUMP", 7},
    {"", -EINVAL},      {"10", -EINVAL},
    {"-1", -EINVAL},    {"warn", 3},
    {"INFO", 4},        {"warnings", -EINVAL},
    {" 3", -EINVAL},    {"3 ", -EINVAL},
    {"x", -EINVAL},     {NULL, -EINVAL},
};

START_TEST(a_level_is_a_digit_or_a_name)
{
    ck_assert_int_eq(sxe_log_level_from_text(texts[_i].text), texts[_i].level);
}
END_TEST

START_TEST(information_is_the_default)
{
    ck_assert_int_eq(sxe_log_get_level(), SXE_LOG_INFORMATION);
    ck_assert_int_eq(shown(&sxe_log_program), SXE_LOG_INFORMATION);
    ck_assert_int_eq(shown(&pool_control), SXE_LOG_INFORMATION);
}
END_TEST

/* Each combination of settings that are made or not, from the least specific to the most. */
START_TEST(the_most_specific_setting_wins)
{
    int expected_program = 4;
    int expected_pool;

    if (_i & 1) {
        setenv("SXE_LOG_LEVEL", "3", 1);
        expected_program = 3;
    }
    if (_i & 2)
        expected_program = 6;
    expected_pool = expected_program;
    if (_i & 4) {
        setenv("SXE_LOG_LEVEL_SXE_POOL", "debug", 1);
        expected_pool = 5;
    }
    if (_i & 8)
        expected_pool = 7;
    if (_i & 16)
        ck_assert_int_eq(shown(&pool_control), _i & 4 ? 5 : _i & 1 ? 3 : 4);
    if (_i & 2)
        sxe_log_set_level(6);
    if (_i & 8)
        ck_assert_int_eq(sxe_log_set_library_level("sxe-pool", 7), 0);
    ck_assert_int_eq(shown(&pool_control), expected_pool);
    ck_assert_int_eq(shown(&sxe_log_program), expected_program);
    ck_assert_int_eq(shown(&other_control), expected_program);
    ck_assert_int_eq(sxe_log_get_level(), expected_program);
}
END_TEST

START_TEST(a_setting_can_be_given_up)
{
    setenv("SXE_LOG_LEVEL", "2", 1);
    setenv("SXE_LOG_LEVEL_SXE_POOL", "6", 1);
    sxe_log_set_level(5);
    sxe_log_set_library_level("sxe-pool", 1);
    ck_assert_int_eq(shown(&pool_control), 1);
    sxe_log_set_library_level("sxe-pool", SXE_LOG_UNSET);
    ck_assert_int_eq(shown(&pool_control), 6);
    ck_assert_int_eq(shown(&other_control), 5);
    ck_assert_int_eq(sxe_log_set_level(SXE_LOG_UNSET), 5);
    ck_assert_int_eq(shown(&other_control), 2);
}
END_TEST

START_TEST(setting_the_level_returns_the_one_in_force)
{
    ck_assert_int_eq(sxe_log_set_level(2), 4);
    ck_assert_int_eq(sxe_log_set_level(99), 2);
    ck_assert_int_eq(sxe_log_set_level(-3), 7);
    ck_assert_int_eq(sxe_log_get_level(), 0);
}
END_TEST

START_TEST(level_0_hides_all)
{
    sxe_log_set_level(SXE_LOG_NONE);
    SXE_LOG_LINE(SXE_LOG_FATAL, SXE_NO_ID, "hidden");
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

START_TEST(names_become_capitals_and_underscores)
{
    setenv("SXE_LOG_LEVEL_OTHER_LIB2", "2", 1);
    ck_assert_int_eq(shown(&other_control), 2);
    ck_assert_int_eq(shown(&pool_control), 4);
}
END_TEST

START_TEST(the_program_has_no_variable_of_its_own_but_a_setting)
{
    setenv("SXE_LOG_LEVEL_", "2", 1);
    ck_assert_int_eq(shown(&sxe_log_program), 4);
    ck_assert_int_eq(sxe_log_set_library_level("", 1), 0);
    ck_assert_int_eq(shown(&sxe_log_program), 1);
    ck_assert_int_eq(shown(&pool_control), 4);
}
END_TEST

START_TEST(an_empty_variable_says_nothing)
{
    setenv("SXE_LOG_LEVEL", "", 1);
    setenv("SXE_LOG_LEVEL_SXE_POOL", "", 1);
    ck_assert_int_eq(shown(&pool_control), 4);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

START_TEST(a_bad_general_variable_is_reported_once)
{
    setenv("SXE_LOG_LEVEL", "loud\n", 1);
    SXE_INFO("first");
    SXE_INFO("second");
    ck_assert_int_eq(shown(&pool_control), 4);
    ck_assert_str_eq(
        log_line(0),
        "------ 3 - SXE_LOG_LEVEL=loud\\n is ignored: a level is one of 0-7, none, fatal, "
        "error, warning (warn), information (info), debug, trace, dump\n");
    ck_assert_str_eq(log_line(1), "------ 4 - first\n");
    ck_assert_str_eq(log_line(2), "------ 4 - second\n");
    ck_assert_uint_eq(captured.number, 3);
}
END_TEST

START_TEST(a_bad_library_variable_is_reported_once)
{
    setenv("SXE_LOG_LEVEL", "3", 1);
    setenv("SXE_LOG_LEVEL_SXE_POOL", "99", 1);
    ck_assert_int_eq(shown(&pool_control), 3);
    sxe_log_set_level(5);
    ck_assert_int_eq(shown(&pool_control), 5);
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_int_eq(captured.levels[0], SXE_LOG_WARNING);
    ck_assert_ptr_nonnull(strstr(log_line(0), "SXE_LOG_LEVEL_SXE_POOL=99 is ignored"));
}
END_TEST

START_TEST(the_variable_of_the_log_itself_may_be_bad)
{
    setenv("SXE_LOG_LEVEL_SXE_LOG", "x", 1);
    setenv("SXE_LOG_LEVEL", "y", 1);
    SXE_INFO("z");
    ck_assert_uint_eq(captured.number, 3);
    ck_assert_ptr_nonnull(strstr(log_line(0), "SXE_LOG_LEVEL_SXE_LOG=x is ignored"));
    ck_assert_ptr_nonnull(strstr(log_line(1), "SXE_LOG_LEVEL=y is ignored"));
}
END_TEST

START_TEST(a_report_is_hidden_where_warnings_are)
{
    setenv("SXE_LOG_LEVEL", "2", 1);
    setenv("SXE_LOG_LEVEL_SXE_POOL", "99", 1);
    ck_assert_int_eq(shown(&pool_control), 2);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

START_TEST(a_bad_name_or_level_is_refused)
{
    ck_assert_int_eq(sxe_log_set_library_level(NULL, 3), -EINVAL);
    ck_assert_int_eq(sxe_log_set_library_level("a name of 32 bytes, one too many", 3), -EINVAL);
    ck_assert_int_eq(sxe_log_set_library_level("a name of 31 bytes, just enough", 3), 0);
    ck_assert_int_eq(sxe_log_set_library_level("sxe-pool", -1), -EINVAL);
    ck_assert_int_eq(sxe_log_set_library_level("sxe-pool", 8), -EINVAL);
    ck_assert_int_eq(shown(&pool_control), 4);
}
END_TEST

START_TEST(there_is_room_for_16_names)
{
    char name[] = "a";

    for (; name[0] < 'a' + 16; name[0]++)
        ck_assert_int_eq(sxe_log_set_library_level(name, 3), 0);
    ck_assert_int_eq(sxe_log_set_library_level(name, 3), -ENOSPC);
    ck_assert_int_eq(sxe_log_set_library_level("b", 2), 0);
}
END_TEST

START_TEST(a_library_may_be_loaded_after_its_level_was_set)
{
    struct sxe_log_control late = SXE_LOG_CONTROL_INIT("late");

    sxe_log_set_library_level("late", 2);
    ck_assert_int_eq(shown(&late), 2);
}
END_TEST

/* ---- Threads ---- */

enum { ROUNDS = 200, CONTROLS = 200 };

static struct sxe_log_control many[CONTROLS];
static atomic_bool is_over;

static void *
change_levels(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        sxe_log_set_level(i % 8);
        sxe_log_set_library_level("sxe-pool", i % 8);
    }
    return NULL;
}

static void *
use_levels(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        for (int i = 0; i < CONTROLS; i++)
            ck_assert_int_le(shown(&many[i]), 7);
    }
    return NULL;
}

START_TEST(levels_may_be_changed_while_others_log)
{
    pthread_t changers[2];
    pthread_t users[2];

    for (int i = 0; i < CONTROLS; i++)
        many[i] = (struct sxe_log_control)SXE_LOG_CONTROL_INIT(i % 2 ? "sxe-pool" : "many");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&users[i], NULL, use_levels, NULL), 0);
        ck_assert_int_eq(pthread_create(&changers[i], NULL, change_levels, NULL), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(changers[i], NULL);
    sxe_log_set_level(3);
    sxe_log_set_library_level("sxe-pool", 5);
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(users[i], NULL);
    for (int i = 0; i < CONTROLS; i++)
        ck_assert_int_eq(shown(&many[i]), i % 2 ? 5 : 3);
}
END_TEST

static void *
set_names(void *first)
{
    for (int i = 0; i < 16; i++) {
        char name[] = "a";

        name[0] = (char)('a' + (*(int *)first + i) % 16);
        ck_assert_int_eq(sxe_log_set_library_level(name, 2), 0);
    }
    return NULL;
}

START_TEST(threads_that_name_the_same_libraries_share_their_settings)
{
    pthread_t threads[4];
    int firsts[4] = {0, 5, 10, 0};

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, set_names, &firsts[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(sxe_log_set_library_level("one more", 2), -ENOSPC);
}
END_TEST

#define ADD(test) tcase_add_test(tcase, test)

int
main(void)
{
    Suite *suite = suite_create("log-level");
    TCase *tcase = tcase_create("levels");

    tcase_add_checked_fixture(tcase, clean_environment, NULL);
    tcase_add_loop_test(tcase, a_level_is_a_digit_or_a_name, 0,
                        (int)(sizeof(texts) / sizeof(texts[0])));
    ADD(information_is_the_default);
    tcase_add_loop_test(tcase, the_most_specific_setting_wins, 0, 32);
    ADD(a_setting_can_be_given_up);
    ADD(setting_the_level_returns_the_one_in_force);
    ADD(level_0_hides_all);
    ADD(names_become_capitals_and_underscores);
    ADD(the_program_has_no_variable_of_its_own_but_a_setting);
    ADD(an_empty_variable_says_nothing);
    ADD(a_bad_general_variable_is_reported_once);
    ADD(a_bad_library_variable_is_reported_once);
    ADD(the_variable_of_the_log_itself_may_be_bad);
    ADD(a_report_is_hidden_where_warnings_are);
    ADD(a_bad_name_or_level_is_refused);
    ADD(there_is_room_for_16_names);
    ADD(a_library_may_be_loaded_after_its_level_was_set);
    ADD(levels_may_be_changed_while_others_log);
    ADD(threads_that_name_the_same_libraries_share_their_settings);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
