/* SPDX-License-Identifier: MIT
 *
 * Writing a pool to the disk (sxe_pool_sync), by docs/pool.md and sxe-pool-shared.h.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

/* promise: docs/pool.md: The call holds no lock, and other processes continue; it takes as long as
 * the disk takes to write the changes. */
START_TEST(a_dict_is_synced_while_another_writes)
{
    const SXE_DICT_SPEC spec = {.name = "outside", .cells = 500, .file = outside_path("d.dict")};
    char path[PATH_MAX];
    char why[SXE_POOL_WHY_SIZE];
    int value;
    int status;

    snprintf(path, sizeof(path), "%s", spec.file);
    SXE_DICT *dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    const pid_t pid = fork();

    if (pid == 0) {
        int failed = 0;

        for (int i = 0; i < 20000; i++)
            failed += sxe_dict_put(dict, &(int){i % 400}, sizeof(int), &i, sizeof(i), 0) != 0;
        _exit(failed != 0);
    }
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(sxe_dict_sync(dict), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(sxe_dict_get(dict, &(int){399}, sizeof(int), &value, sizeof(value)),
                     sizeof(value));
    ck_assert_int_eq(value, 19999);
    ck_assert_int_eq(sxe_dict_check(dict, why), 0);
    sxe_dict_close(dict);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: After a sync the pool stays in use. */
START_TEST(a_pool_that_was_synced_and_killed_was_not_closed)
{
    const SXE_POOL_SPEC spec = {.name = "outside",
                                .number = 8,
                                .element_size = 8,
                                .states = 2,
                                .file = outside_path("p.pool")};
    char why[SXE_POOL_WHY_SIZE];
    const pid_t pid = fork();

    if (pid == 0) {
        void *array = sxe_pool_open(&spec, why);

        if (array == NULL || sxe_pool_take(array, 0, 1) > 7 || sxe_pool_sync(array) != 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    void *array = sxe_pool_open(&spec, why);

    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_COMPLETED);
    ck_assert_uint_eq(sxe_pool_get_count(array, 1), 1);
    sxe_pool_delete(array);
    unlink(spec.file);
}
END_TEST

/* promise: lib-sxe-pool/sxe-pool-shared.h: 0; -EINVAL: the pool has no file */
START_TEST(memory_is_not_synced)
{
    const SXE_POOL_SPEC spec = {.name = "outside", .number = 8, .element_size = 8, .states = 2};
    char why[SXE_POOL_WHY_SIZE];
    void *array = sxe_pool_open(&spec, why);

    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_int_eq(sxe_pool_sync(array), -EINVAL);
    sxe_pool_delete(array);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_dict_is_synced_while_another_writes,
                            a_pool_that_was_synced_and_killed_was_not_closed, memory_is_not_synced,
                            NULL};

    return outside_run("pool-sync", cases);
}
