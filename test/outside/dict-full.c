/* SPDX-License-Identifier: MIT
 *
 * A dict that is full while snapshots can see its values, by docs/dict.md.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

enum { KEYS = 10 };

static SXE_DICT *
full_dict(bool evicts)
{
    SXE_DICT_SPEC spec = {
        .name = "full", .cells = KEYS, .evicts = evicts, .options = SXE_POOL_OPTION_SHARED};
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    for (int key = 0; key < KEYS; key++) {
        ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "a", 1, SXE_DICT_FOREVER), 0);
        ck_assert_int_eq(sxe_dict_set_state(dict, &key, sizeof(key), SXE_DICT_DIRTY), 0);
    }
    return dict;
}

static void
replace_all(SXE_DICT *dict)
{
    for (int round = 0; round < 3; round++)
        for (int key = 0; key < KEYS; key++)
            ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "b", 1, SXE_DICT_FOREVER), 0);
}

/* promise: docs/dict.md: If they are not, the oldest snapshot ends, so that n are enough. */
START_TEST(a_snapshot_does_not_keep_values_of_a_full_dict_from_being_replaced)
{
    int key = 3;
    char value;

    for (int evicts = 0; evicts < 2; evicts++) {
        SXE_DICT *dict = full_dict(evicts != 0);
        SXE_DICT_SNAPSHOT *first = sxe_dict_snapshot_take(dict);
        SXE_DICT_SNAPSHOT *second = sxe_dict_snapshot_take(dict);

        ck_assert(first != NULL && second != NULL);
        replace_all(dict);
        ck_assert_int_eq(sxe_dict_snapshot_get(first, &key, sizeof(key), &value, 1), -ESTALE);
        sxe_dict_snapshot_release(first);
        sxe_dict_snapshot_release(second);
        replace_all(dict);
        ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
        sxe_dict_close(dict);
    }
}
END_TEST

/* promise: docs/dict.md: If they are not, the oldest snapshot ends, so that n are enough. */
START_TEST(a_snapshot_of_a_dead_process_blocks_nobody)
{
    SXE_DICT *dict = full_dict(false);
    int status;
    pid_t child = fork();

    if (child == 0) {
        if (sxe_dict_snapshot_take(dict) == NULL)
            _exit(1);
        raise(SIGKILL);
    }
    waitpid(child, &status, 0);
    ck_assert(WIFSIGNALED(status));
    replace_all(dict);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
    sxe_dict_close(dict);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_snapshot_does_not_keep_values_of_a_full_dict_from_being_replaced,
                            a_snapshot_of_a_dead_process_blocks_nobody, NULL};

    return outside_run("dict-full", cases);
}
