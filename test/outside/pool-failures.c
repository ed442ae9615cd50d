/* SPDX-License-Identifier: MIT
 *
 * Rows of the tables of failures in docs/pool.md and docs/dict.md. Other rows are tested in
 * dict-damage.c, pool-file.c, pool-clock.c and dict-batch.c.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

static char why[SXE_POOL_WHY_SIZE];

static void *
open_pool(const char *path)
{
    const SXE_POOL_SPEC spec = {
        .name = "outside", .number = 8, .element_size = 8, .states = 2, .file = path};
    void *array = sxe_pool_open(&spec, why);

    ck_assert_msg(array != NULL, "%s", why);
    return array;
}

static SXE_DICT *
open_dict(const char *path)
{
    const SXE_DICT_SPEC spec = {.name = "outside", .cells = 50, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

static void
wait_for(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* promise: docs/pool.md: the copy is a correct pool */
START_TEST(a_copy_of_a_closed_file_is_a_pool)
{
    char command[2 * PATH_MAX + 8];
    char path[PATH_MAX];
    void *array = open_pool(outside_path("file.pool"));

    snprintf(path, sizeof(path), "%s", outside_path("file.pool"));
    ck_assert_uint_lt(sxe_pool_take(array, 0, 1), 8);
    sxe_pool_delete(array);
    snprintf(command, sizeof(command), "cp %s %s.copy", path, path);
    ck_assert_int_eq(system(command), 0);
    array = open_pool(outside_path("file.pool.copy"));
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
    ck_assert_uint_eq(sxe_pool_get_count(array, 1), 1);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    sxe_pool_delete(array);
    unlink(path);
    unlink(outside_path("file.pool.copy"));
}
END_TEST

/* promise: docs/pool.md: its users continue together; a program that opens the path makes another
 * pool */
START_TEST(users_of_a_file_that_was_removed_go_on)
{
    void *first = open_pool(outside_path("gone.pool"));
    void *second = open_pool(outside_path("gone.pool"));

    unlink(outside_path("gone.pool"));
    ck_assert_uint_lt(sxe_pool_take(first, 0, 1), 8);
    ck_assert_uint_eq(sxe_pool_get_count(second, 1), 1);

    void *other = open_pool(outside_path("gone.pool"));

    ck_assert_int_eq(sxe_pool_get_found(other), SXE_POOL_CREATED);
    ck_assert_uint_eq(sxe_pool_get_count(other, 1), 0);
    sxe_pool_delete(first);
    sxe_pool_delete(second);
    sxe_pool_delete(other);
    unlink(outside_path("gone.pool"));
}
END_TEST

/* promise: docs/dict.md: the snapshot ends when its room or its slot is needed */
START_TEST(snapshots_of_the_dead_give_back_their_slots_and_their_room)
{
    SXE_DICT *dict = open_dict(outside_path("snapshots.dict"));
    const pid_t pid = fork();

    if (pid == 0) {
        SXE_DICT *mine = open_dict(outside_path("snapshots.dict"));

        for (int i = 0; i < 50; i++)
            sxe_dict_put(mine, &i, sizeof(i), "old", 3, 0);
        for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++) {
            if (sxe_dict_snapshot_take(mine) == NULL)
                _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    wait_for(pid);

    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);

    ck_assert_ptr_nonnull(snapshot);
    sxe_dict_snapshot_release(snapshot);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "new", 3, 0), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 50);
    ck_assert_int_eq(sxe_dict_check(dict, why), 0);
    sxe_dict_close(dict);
    unlink(outside_path("snapshots.dict"));
}
END_TEST

/* promise: docs/dict.md: all changes that returned 0 are there; the table is checked when it is
 * opened next */
START_TEST(after_all_were_killed_each_put_is_there)
{
    char value[4];
    const pid_t pid = fork();

    if (pid == 0) {
        SXE_DICT *mine = open_dict(outside_path("killed.dict"));

        for (int i = 0; i < 50; i++) {
            if (sxe_dict_put(mine, &i, sizeof(i), &i, sizeof(i), 0) != 0)
                _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    wait_for(pid);

    SXE_DICT *dict = open_dict(outside_path("killed.dict"));

    ck_assert_int_eq(sxe_pool_get_found(sxe_dict_get_pool(dict)), SXE_POOL_COMPLETED);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(sxe_dict_get(dict, &i, sizeof(i), value, sizeof(value)), sizeof(i));
        ck_assert_mem_eq(value, &i, sizeof(i));
    }
    sxe_dict_close(dict);
    unlink(outside_path("killed.dict"));
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_copy_of_a_closed_file_is_a_pool,
                            users_of_a_file_that_was_removed_go_on,
                            snapshots_of_the_dead_give_back_their_slots_and_their_room,
                            after_all_were_killed_each_put_is_there, NULL};

    return outside_run("pool-failures", cases);
}
