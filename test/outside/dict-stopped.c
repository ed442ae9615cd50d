/* SPDX-License-Identifier: MIT
 *
 * A stopped process that holds a lock, by docs/dict.md and docs/pool.md: each call ends without a
 * change, and after the death of that process all calls work and all cells are usable.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/wait.h>

enum { CELLS = 400, KEYS = 40, SHARDS = 4, SIZE = 3000 };

static SXE_DICT *dict;
static char value[SIZE];

static void
open_full_of(const char *text)
{
    const SXE_DICT_SPEC spec = {.name = "stopped", .cells = CELLS, .shards = SHARDS};
    char why[SXE_POOL_WHY_SIZE];

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    for (int key = 0; key < KEYS; key++)
        ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), text, strlen(text), 0), 0);
}

static bool
is_locked(int key)
{
    return sxe_dict_peek(dict, &key, sizeof(key), value, sizeof(value)) == -EAGAIN;
}

/* Start a process and stop it (SIGSTOP) while it holds the lock of the key's shard. */
static pid_t
stop_with_lock_of(int key)
{
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    while (child == 0)
        (void)!sxe_dict_put(dict, &key, sizeof(key), value, sizeof(value), 0);
    for (;;) {
        ck_assert_int_eq(kill(child, SIGSTOP), 0);
        ck_assert_int_eq(waitpid(child, NULL, WUNTRACED), child);
        if (is_locked(key))
            return child;
        ck_assert_int_eq(kill(child, SIGCONT), 0);
        usleep(100);
    }
}

static void
end(pid_t child)
{
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

static int
free_key(void)
{
    int key = 1;

    while (key < KEYS && is_locked(key))
        key++;
    ck_assert_int_lt(key, KEYS);
    return key;
}

static void
fill_to_the_brim(void)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    for (int key = 0; key < KEYS; key++)
        (void)!sxe_dict_remove(dict, &key, sizeof(key));
    for (int key = KEYS; sxe_dict_get_count(dict) < CELLS && key < 100 * CELLS; key++)
        (void)!sxe_dict_put(dict, &key, sizeof(key), "v", 1, 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), CELLS);
}

/* promise: docs/pool.md: Then any call that finds a lock taken tries again until that time is over,
 * however many locks it needs. */
START_TEST(every_call_ends_while_the_owner_is_stopped)
{
    const int key = 0;
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};
    int result;

    open_full_of("one");
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    const pid_t child = stop_with_lock_of(key);

    ck_assert_int_eq(sxe_dict_set_wait(dict, 0.002), 0);
    ck_assert_int_eq(sxe_dict_get(dict, &key, sizeof(key), value, SIZE), -EAGAIN);
    ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "2", 1, 0), -EAGAIN);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, &key, sizeof(key), NULL, 0, "2", 1, 0),
                     -EAGAIN);
    ck_assert_int_eq(sxe_dict_add(dict, &key, sizeof(key), 1, 0, NULL), -EAGAIN);
    ck_assert_int_eq(sxe_dict_remove(dict, &key, sizeof(key)), -EAGAIN);
    ck_assert_int_eq(sxe_dict_touch(dict, &key, sizeof(key)), -EAGAIN);
    ck_assert_int_eq(sxe_dict_expire(dict, &key, sizeof(key), 1), -EAGAIN);
    ck_assert_int_eq(sxe_dict_set_state(dict, &key, sizeof(key), SXE_DICT_DIRTY), -EAGAIN);
    ck_assert_double_eq(sxe_dict_get_ttl(dict, &key, sizeof(key)), -EAGAIN);
    ck_assert_int_eq(sxe_dict_snapshot_get(snapshot, &key, sizeof(key), value, SIZE), -EAGAIN);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), -EAGAIN);
    ck_assert_ptr_null(sxe_dict_snapshot_take(dict));
    ck_assert_int_eq(errno, EAGAIN);
    sxe_dict_walker_construct(&walker, dict);
    while ((result = sxe_dict_walker_step(&walker, &entry)) == 1)
        continue;
    ck_assert_int_eq(result, -EAGAIN);
    sxe_dict_snapshot_release(snapshot);
    end(child);
    fill_to_the_brim();
    sxe_dict_close(dict);
}
END_TEST

/* promise: docs/dict.md: A batch of changes appears at once or not at all */
START_TEST(a_batch_that_meets_two_stopped_processes_does_nothing_and_goes_on)
{
    const int key = 0;

    open_full_of("one");
    pid_t children[2] = {stop_with_lock_of(key)};
    const int other = free_key();
    int third = other + 1;

    children[1] = stop_with_lock_of(other);
    while (third < KEYS && is_locked(third))
        third++;
    ck_assert_int_lt(third, KEYS);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    const int keys[] = {key, other, third};
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(sxe_dict_batch_put(batch, &keys[i], sizeof(int), "two!", 4, 0), 0);
    ck_assert_int_eq(sxe_dict_set_wait(dict, 0.002), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(sxe_dict_batch_commit(batch), -EAGAIN);
        ck_assert_int_eq(sxe_dict_peek(dict, &third, sizeof(third), value, SIZE), 3);
        end(children[i]);
    }
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(sxe_dict_peek(dict, &keys[i], sizeof(int), value, SIZE), 4);
    sxe_dict_batch_delete(batch);
    fill_to_the_brim();
    sxe_dict_close(dict);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {every_call_ends_while_the_owner_is_stopped,
                            a_batch_that_meets_two_stopped_processes_does_nothing_and_goes_on,
                            NULL};

    return outside_run("dict-stopped", cases);
}
