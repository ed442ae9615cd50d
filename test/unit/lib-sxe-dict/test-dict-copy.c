/* SPDX-License-Identifier: MIT
 *
 * Backup, restore and resize: the contents of a copy, refusals, and other processes that use a file
 * while it is replaced. test-dict-copy-faults.c has calls that fail and processes that die.
 */
#include "copy-site.h"

/* ---- The contents of a copy ---- */

START_TEST(a_backup_has_all_entries_and_is_restored)
{
    SXE_DICT *dict = open_source();

    fill(dict);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    ck_assert_str_eq(why, "");
    check_full(dict);
    sxe_dict_close(dict);
    expect_full(target);
    ck_assert_uint_eq(mode_of(target), 0600);
    ck_assert_int_eq(unlink(source), 0);
    ck_assert_int_eq(sxe_dict_restore(target, source, NULL, NULL), 0);
    expect_full(source);
    expect_full(target);
    ck_assert_uint_eq(count_files(), 2);
    sxe_dict_close(open_source()); /* the copy has the shape of the program's spec */
}
END_TEST

START_TEST(an_empty_dict_is_copied_too)
{
    SXE_DICT *dict = open_source();

    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
    ck_assert_int_eq(sxe_dict_resize(target, 10, NULL, why), 0);
    dict = open_any(target);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 0);
    sxe_dict_close(dict);
}
END_TEST

/* A dict in memory, shared by processes or by threads. */
START_TEST(a_dict_without_a_file_is_backed_up)
{
    SXE_DICT_SPEC spec = spec_of(NULL);

    spec.options = _i == 0 ? SXE_POOL_OPTION_SHARED : SXE_POOL_OPTION_LOCKED;
    SXE_DICT *dict = open_with(&spec);
    fill(dict);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
    expect_full(target);
}
END_TEST

/* Each shard is full. */
START_TEST(a_dict_that_is_full_is_copied)
{
    SXE_DICT_SPEC spec = spec_of(source);
    unsigned count = 0;

    spec.evicts = _i == 1;
    SXE_DICT *dict = open_with(&spec);
    for (unsigned i = 0; i < 4 * CELLS; i++)
        (void)sxe_dict_put(dict, &i, sizeof(i), "v", 1, 0);
    count = (unsigned)sxe_dict_get_count(dict);
    ck_assert_uint_eq(count, CELLS);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
    ck_assert_int_eq(sxe_dict_resize(source, CELLS, NULL, why), 0);
    for (unsigned i = 0; i < 2; i++) {
        spec.file = i == 0 ? source : target;
        dict = open_with(&spec);
        check_whole(dict);
        ck_assert_uint_eq(sxe_dict_get_count(dict), count);
        const int put = sxe_dict_put(dict, "more", 4, "v", 1, 0);
        ck_assert_int_eq(put, spec.evicts ? 0 : -ENOSPC);
        sxe_dict_close(dict);
    }
}
END_TEST

START_TEST(values_of_any_size_are_copied)
{
    const SXE_DICT_SPEC spec = {.name = "large", .cells = 3000, .file = source};
    const size_t size = 300000;
    char *value = malloc(size);
    char *found = malloc(size);
    SXE_DICT *dict = open_with(&spec);

    for (size_t i = 0; i < size; i++)
        value[i] = (char)(i * 7 >> 3);
    ck_assert_int_eq(sxe_dict_put(dict, "large", 5, value, size, 0), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "", 0, value, 70000, 0), 0);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
    dict = open_any(target);
    ck_assert_int_eq(sxe_dict_get(dict, "large", 5, found, size), (ssize_t)size);
    ck_assert_int_eq(memcmp(value, found, size), 0);
    ck_assert_int_eq(sxe_dict_get(dict, "", 0, found, size), 70000);
    ck_assert_int_eq(memcmp(value, found, 70000), 0);
    sxe_dict_close(dict);
    free(value);
    free(found);
}
END_TEST

START_TEST(metrics_go_on)
{
    SXE_DICT *dict = open_source();
    SXE_DICT_STATS stats;
    char value;

    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(sxe_dict_get(dict, &i, sizeof(i), &value, 1), -ENOENT);
    sxe_dict_close(dict);
    ck_assert_int_eq(sxe_dict_resize(source, 2 * CELLS, NULL, why), 0);
    dict = open_any(source);
    ck_assert_int_eq(sxe_dict_get(dict, "", 0, &value, 1), -ENOENT);
    sxe_dict_get_stats(dict, &stats);
    ck_assert_uint_eq(stats.misses, 6);
    sxe_dict_close(dict);
}
END_TEST

/* ---- Copies while other processes change the dict ---- */

static SXE_DICT *busy;
static unsigned asked;

/* Another writer changes the dict when the first entry is copied. */
static bool
change_all(void)
{
    if (asked++ == 0) {
        for (unsigned i = 0; i < 10; i++)
            ck_assert_int_eq(sxe_dict_put(busy, &i, sizeof(i), "changed", 7, 0), 0);
        for (unsigned i = 10; i < 20; i++)
            ck_assert_int_eq(sxe_dict_remove(busy, &i, sizeof(i)), 0);
        ck_assert_int_eq(sxe_dict_put(busy, "new", 3, "v", 1, 0), 0);
    }
    return false;
}

START_TEST(a_backup_is_of_one_moment)
{
    busy = open_source();
    asked = 0;
    fill(busy);
    ck_assert_int_eq(sxe_dict_backup(busy, target, change_all, why), 0);
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(sxe_dict_get_count(busy), ENTRIES - 10 + 1);
    check_whole(busy);
    sxe_dict_close(busy);
    expect_full(target);
}
END_TEST

/* Advance the time by 2,000 s when the first entry is copied. */
static bool
let_time_go_on(void)
{
    if (asked++ == 0)
        sxe_time_set_turn_ns(sxe_time_turn_ns() + 2000 * SXE_NS_PER_SECOND);
    return false;
}

/* Half of the entries expire during the copy. The first entry is copied before that. */
START_TEST(what_expires_meanwhile_does_not_live_for_ever)
{
    sxe_time_set_turn_ns(sxe_time_ns());
    SXE_DICT *dict = open_source();
    asked = 0;
    fill(dict);
    ck_assert_int_eq(sxe_dict_backup(dict, target, let_time_go_on, why), 0);
    sxe_dict_close(dict);
    dict = open_any(target);
    ck_assert_uint_ge(sxe_dict_get_count(dict), ENTRIES / 2);
    ck_assert_uint_le(sxe_dict_get_count(dict), ENTRIES / 2 + 1);
    for (unsigned i = 0; i < ENTRIES; i++)
        if (sxe_dict_peek(dict, &i, sizeof(i), NULL, 0) >= 0)
            ck_assert(i % 2 == 0);
    sxe_dict_close(dict);
}
END_TEST

START_TEST(what_expired_in_a_backup_is_not_restored)
{
    sxe_time_set_turn_ns(sxe_time_ns());
    SXE_DICT *dict = open_source();
    fill(dict);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
    asked = 0;
    let_time_go_on();
    ck_assert_int_eq(sxe_dict_restore(target, source, NULL, why), 0);
    dict = open_any(source);
    ck_assert_uint_eq(sxe_dict_get_count(dict), ENTRIES / 2);
    sxe_dict_close(dict);
}
END_TEST

static unsigned storms;

/* Another writer needs all cells, which ends the snapshots. */
static bool
need_all_room(void)
{
    char value[VALUE_ROOM] = "";

    if (asked++ < storms)
        for (unsigned i = 0; i < CELLS; i++)
            (void)sxe_dict_put(busy, &i, sizeof(i), value, 60, 0);
    return false;
}

START_TEST(a_snapshot_that_ends_is_taken_again)
{
    busy = open_source();
    asked = 0;
    storms = 1;
    fill(busy);
    ck_assert_int_eq(sxe_dict_backup(busy, target, need_all_room, why), 0);
    ck_assert_uint_ge(asked, 2);
    SXE_DICT *dict = open_any(target);
    ck_assert_uint_eq(sxe_dict_get_count(dict), sxe_dict_get_count(busy));
    check_whole(dict);
    sxe_dict_close(dict);
    sxe_dict_close(busy);
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

START_TEST(a_dict_without_room_for_a_past_is_not_backed_up)
{
    busy = open_source();
    asked = 0;
    storms = 1000;
    fill(busy);
    says(sxe_dict_backup(busy, target, need_all_room, why), ESTALE, "give it more cells");
    check_whole(busy);
    sxe_dict_close(busy);
    ck_assert_uint_eq(count_files(), 1);
}
END_TEST

START_TEST(snapshots_that_are_all_in_use_are_told)
{
    SXE_DICT_SNAPSHOT *snapshots[SXE_DICT_SNAPSHOTS];
    SXE_DICT *dict = open_source();

    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        snapshots[i] = sxe_dict_snapshot_take(dict);
    says(sxe_dict_backup(dict, target, NULL, why), EUSERS, "cannot be copied: Too many users");
    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        sxe_dict_snapshot_release(snapshots[i]);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
}
END_TEST

static unsigned patience;

static bool
is_enough(void)
{
    return ++asked > patience;
}

/* The copy asks is_enough() at the 1st, the 257th and the 513th entry, and not again after a
 * yes. */
START_TEST(a_copy_may_be_cancelled)
{
    SXE_DICT_SPEC spec = {.name = "site", .cells = 1000, .file = source};
    SXE_DICT *dict = open_with(&spec);

    for (unsigned i = 0; i < 600; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 0), 0);
    for (patience = 0; patience < 3; patience++) {
        asked = 0;
        says(sxe_dict_backup(dict, target, is_enough, why), ECANCELED, "cancelled");
        ck_assert_uint_eq(asked, patience + 1);
        ck_assert_uint_eq(count_files(), 1);
    }
    asked = 0;
    ck_assert_int_eq(sxe_dict_backup(dict, target, is_enough, why), 0);
    sxe_dict_close(dict);
}
END_TEST

static bool
stop_a_writer(void)
{
    for (unsigned shard = 0; shard < 4 && asked == 0; shard++)
        busy->sharing->shards[shard].lock = busy->sharing->token;
    return ++asked > patience;
}

static void
free_locks(void)
{
    for (unsigned shard = 0; shard < 4; shard++)
        busy->sharing->shards[shard].lock = 0;
}

/* A writer stops with the locks, before the snapshot or during the walk; the copy tries for a
 * second to get a lock, also if each of its tries waits, too. */
START_TEST(a_lock_is_waited_for_but_not_for_ever)
{
    patience = 1000000;
    asked = 0;
    busy = open_source();
    fill(busy);
    if (_i == 2)
        ck_assert_int_eq(sxe_dict_set_wait(busy, 0.3), 0);
    if (_i != 1)
        stop_a_writer();
    says(sxe_dict_backup(busy, target, stop_a_writer, why), EAGAIN, "if it is stopped");
    ck_assert_uint_gt(asked, 1);
    free_locks();
    asked = 0;
    patience = 1;
    if (_i != 1)
        stop_a_writer();
    says(sxe_dict_backup(busy, target, stop_a_writer, why), ECANCELED, "cancelled");
    free_locks();
    ck_assert_uint_eq(count_files(), 1);
    ck_assert_int_eq(sxe_dict_backup(busy, target, NULL, why), 0);
    sxe_dict_close(busy);
    expect_full(target);
}
END_TEST

START_TEST(damage_is_told_and_not_copied)
{
    SXE_DICT *dict = open_source();

    fill(dict);
    for (uint32_t i = 0; i < 4 * (dict->bucket_mask + 1); i++)
        dict->buckets[i] = 100000;
    says(sxe_dict_backup(dict, target, NULL, why), EUCLEAN, "have it repaired");
    sxe_dict_close(dict);
    ck_assert_uint_eq(count_files(), 1);
}
END_TEST

/* ---- Files that are replaced ---- */

static void
back_up(void)
{
    SXE_DICT *dict = open_source();

    fill(dict);
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
}

static void
write_file(const char *bytes, size_t size, off_t at)
{
    const int fd = open(source, O_RDWR | O_CREAT, 0600);

    ck_assert_int_eq(pwrite(fd, bytes, size, at), (ssize_t)size);
    close(fd);
}

/* The file is empty; or it was closed, and then changed, extended, or given another head. */
START_TEST(what_is_damaged_or_empty_is_replaced_and_keeps_its_mode)
{
    back_up();
    if (_i == 0)
        ck_assert_int_eq(truncate(source, 0), 0);
    else
        write_file("12345678", 8, _i == 1 ? 16384 : _i == 2 ? 1 << 20 : 16);
    ck_assert_int_eq(chmod(source, 0640), 0);
    ck_assert_int_eq(sxe_dict_restore(target, source, NULL, why), 0);
    ck_assert_uint_eq(mode_of(source), 0640);
    expect_full(source);
}
END_TEST

START_TEST(what_is_no_dict_is_not_replaced)
{
    const SXE_POOL_SPEC pool = {
        .name = "jobs", .number = 4, .element_size = 8, .states = 2, .file = source};

    back_up();
    unlink(source);
    sxe_pool_delete(sxe_pool_open(&pool, why));
    const ino_t inode = inode_of(source);
    says(sxe_dict_restore(target, source, NULL, why), EMEDIUMTYPE, "a pool, but no dict");
    ck_assert_int_eq(truncate(source, 0), 0);
    write_file("A letter to my landlord", 23, 0);
    says(sxe_dict_restore(target, source, NULL, why), EMEDIUMTYPE, "pool");
    ck_assert_uint_eq(inode_of(source), inode);
    unlink(source);
    ck_assert_int_eq(symlink(target, source), 0);
    says(sxe_dict_restore(target, source, NULL, why), ELOOP, "symbolic link");
    unlink(source);
    ck_assert_int_eq(mkdir(source, 0700), 0);
    says(sxe_dict_restore(target, source, NULL, why), EISDIR, "Is a directory");
    ck_assert_uint_eq(count_files(), 2);
    expect_full(target);
}
END_TEST

START_TEST(what_is_in_use_is_not_replaced)
{
    back_up();
    SXE_DICT *dict = open_any(source);
    SXE_DICT *backup = open_any(target);
    says(sxe_dict_restore(target, source, NULL, why), EBUSY, "in use: close it in every program");
    says(sxe_dict_backup(dict, target, NULL, why), EBUSY, "in use");
    says(sxe_dict_backup(dict, source, NULL, why), EBUSY, "the dict that would be copied");
    says(sxe_dict_resize(source, CELLS, NULL, why), EBUSY, "in use");
    check_full(dict);
    check_full(backup);
    sxe_dict_close(dict);
    sxe_dict_close(backup);
    ck_assert_int_eq(sxe_dict_restore(target, source, NULL, why), 0);
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

START_TEST(paths_that_lead_nowhere_are_told)
{
    static char longer[PATH_MAX + 2];
    SXE_DICT *dict = open_source();

    memset(longer, 'a', PATH_MAX + 1);
    says(sxe_dict_backup(dict, longer, NULL, why), ENAMETOOLONG, "longer than");
    says(sxe_dict_backup(dict, "", NULL, why), EINVAL, "name is empty");
    says(sxe_dict_backup(dict, NULL, NULL, why), EINVAL, "name is empty");
    says(sxe_dict_backup(dict, "/no/such/directory", NULL, why), ENOENT, "cannot make a file");
    ck_assert_int_eq(sxe_dict_backup(dict, NULL, NULL, NULL), -EINVAL);
    sxe_dict_close(dict);
    says(sxe_dict_restore(target, source, NULL, why), ENOENT, "No such file");
    says(sxe_dict_restore(NULL, source, NULL, why), EINVAL, "");
    says(sxe_dict_resize(target, 10, NULL, why), ENOENT, "No such file");
    says(sxe_dict_resize(NULL, 10, NULL, why), EINVAL, "");
    ck_assert_uint_eq(count_files(), 1);
}
END_TEST

/* A path without a slash is a file in /dev/shm, as for sxe_dict_open. */
START_TEST(a_bare_name_is_one_in_dev_shm)
{
    const char *name = strrchr(directory, '/') + 1;
    char copy[96];
    SXE_DICT *dict = open_source();

    fill(dict);
    snprintf(copy, sizeof(copy), "%s.copy", name);
    ck_assert_int_eq(sxe_dict_backup(dict, copy, NULL, why), 0);
    sxe_dict_close(dict);
    ck_assert_int_eq(sxe_dict_resize(copy, 2 * CELLS, NULL, why), 0);
    expect_full(copy);
    snprintf(copy, sizeof(copy), "/dev/shm/%s.copy", name);
    ck_assert_int_eq(unlink(copy), 0);
}
END_TEST

/* ---- Resizing ---- */

static void
make_source(void)
{
    SXE_DICT *dict = open_source();

    fill(dict);
    sxe_dict_close(dict);
}

START_TEST(a_dict_gets_another_number_of_cells)
{
    static const unsigned cells[] = {10000, 350, CELLS};
    SXE_DICT_SPEC spec = spec_of(source);

    make_source();
    for (unsigned i = 0; i < SXE_COUNT(cells); i++) {
        const ino_t inode = inode_of(source);

        ck_assert_int_eq(sxe_dict_resize(source, cells[i], NULL, why), 0);
        ck_assert_uint_ne(inode_of(source), inode);
        expect_full(source);
        spec.cells = cells[i];
        sxe_dict_close(open_with(&spec));
    }
    ck_assert_uint_eq(count_files(), 1);
}
END_TEST

START_TEST(cells_that_are_too_few_are_told_and_nothing_is_lost)
{
    const ino_t inode = (make_source(), inode_of(source));
    static const struct {
        unsigned cells;
        int error;
        const char *words;
    } wrong[] = {
        {0, EINVAL, "give a number"},
        {3, EINVAL, "cells at least as many"},
        {1u << 31 | 1, EINVAL, "2^31"},
        {60, ENOSPC, "its 40 entries do not fit (cells: 60, shards: 4): give it more"},
    };

    for (unsigned i = 0; i < SXE_COUNT(wrong); i++) {
        says(sxe_dict_resize(source, wrong[i].cells, NULL, why), wrong[i].error, wrong[i].words);
        ck_assert_uint_eq(inode_of(source), inode);
        ck_assert_uint_eq(count_files(), 1);
        expect_full(source);
    }
}
END_TEST

START_TEST(a_value_that_no_shard_has_room_for_is_told)
{
    const SXE_DICT_SPEC spec = {.name = "large", .cells = 10, .cell_size = 128, .file = source};
    SXE_DICT *dict = open_with(&spec);
    char value[VALUE_ROOM] = "";

    ck_assert_int_eq(sxe_dict_put(dict, "", 0, value, sizeof(value), 0), 0);
    sxe_dict_close(dict);
    says(sxe_dict_resize(source, 2, NULL, why), EFBIG, "do not fit (cells: 2, shards: 1)");
    ck_assert_int_eq(sxe_dict_resize(source, 6, NULL, why), 0);
}
END_TEST

START_TEST(resizing_evicts_nothing)
{
    SXE_DICT_SPEC spec = {.name = "cache", .cells = 50, .evicts = true, .file = source};
    SXE_DICT *dict = open_with(&spec);

    for (unsigned i = 0; i < 80; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 0), 0);
    sxe_dict_close(dict);
    says(sxe_dict_resize(source, 49, NULL, why), ENOSPC,
         "do not fit (cells: 49, shards: 1): give it more");
    ck_assert_int_eq(sxe_dict_resize(source, 60, NULL, why), 0);
    spec.cells = 60;
    dict = open_with(&spec);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 50);
    for (unsigned i = 100; i < 180; i++)
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), "v", 1, 0), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 60);
    sxe_dict_close(dict);
}
END_TEST

START_TEST(a_pool_is_not_resized)
{
    const SXE_POOL_SPEC pool = {
        .name = "jobs", .number = 4, .element_size = 8, .states = 2, .file = source};

    sxe_pool_delete(sxe_pool_open(&pool, why));
    says(sxe_dict_resize(source, 10, NULL, why), EMEDIUMTYPE, "is no dict");
    says(sxe_dict_restore(source, target, NULL, why), EMEDIUMTYPE, "is no dict");
}
END_TEST

/* ---- Processes that open the dict during a copy ---- */

static pid_t opener;

/* Another process opens the file that is being replaced. It waits, and then uses the new file. */
static bool
open_elsewhere(void)
{
    if (asked++ > 0)
        return false;
    opener = fork();
    if (opener == 0) {
        const SXE_DICT_SPEC spec = {.file = source};
        SXE_DICT *dict = sxe_dict_open(&spec, why);

        for (unsigned tries = 0; dict == NULL && errno == EAGAIN && tries < 100; tries++)
            dict = sxe_dict_open(&spec, why);
        if (dict == NULL || sxe_dict_put(dict, "opener", 6, "was here", 8, 0) != 0)
            _exit(1);
        sxe_dict_close(dict);
        _exit(0);
    }
    return false;
}

static void
expect_opener(void)
{
    char value[8];
    int status;

    ck_assert_int_eq(waitpid(opener, &status, 0), opener);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    SXE_DICT *dict = open_any(source);
    ck_assert_int_eq(sxe_dict_get(dict, "opener", 6, value, sizeof(value)), 8);
    ck_assert_int_eq(sxe_dict_remove(dict, "opener", 6), 0);
    check_full(dict);
    sxe_dict_close(dict);
}

START_TEST(a_process_that_opens_it_meanwhile_has_the_new_file)
{
    back_up();
    asked = 0;
    ck_assert_int_eq(_i == 0 ? sxe_dict_resize(source, 2 * CELLS, open_elsewhere, why)
                             : sxe_dict_restore(target, source, open_elsewhere, why),
                     0);
    expect_opener();
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

static bool
make_the_target(void)
{
    const SXE_DICT_SPEC spec = spec_of(target);

    if (asked++ == 0)
        sxe_dict_close(open_with(&spec));
    return false;
}

START_TEST(a_file_that_another_makes_meanwhile_is_not_replaced)
{
    SXE_DICT *dict = open_source();

    asked = 0;
    fill(dict);
    says(sxe_dict_backup(dict, target, make_the_target, why), EEXIST,
         "was made by another program meanwhile");
    ck_assert_uint_eq(count_files(), 2);
    asked = 0;
    ck_assert_int_eq(sxe_dict_backup(dict, target, NULL, why), 0);
    sxe_dict_close(dict);
    expect_full(target);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("dict-copy");
    TCase *c = tcase_create("copies");
    TCase *r = tcase_create("replaced");

    tcase_add_checked_fixture(c, make_site, remove_site);
    tcase_add_test(c, a_backup_has_all_entries_and_is_restored);
    tcase_add_test(c, an_empty_dict_is_copied_too);
    tcase_add_loop_test(c, a_dict_without_a_file_is_backed_up, 0, 2);
    tcase_add_loop_test(c, a_dict_that_is_full_is_copied, 0, 2);
    tcase_add_test(c, values_of_any_size_are_copied);
    tcase_add_test(c, metrics_go_on);
    tcase_add_test(c, a_backup_is_of_one_moment);
    tcase_add_test(c, what_expires_meanwhile_does_not_live_for_ever);
    tcase_add_test(c, what_expired_in_a_backup_is_not_restored);
    tcase_add_test(c, a_snapshot_that_ends_is_taken_again);
    tcase_add_test(c, a_dict_without_room_for_a_past_is_not_backed_up);
    tcase_add_test(c, snapshots_that_are_all_in_use_are_told);
    tcase_add_test(c, a_copy_may_be_cancelled);
    tcase_add_loop_test(c, a_lock_is_waited_for_but_not_for_ever, 0, 3);
    tcase_add_test(c, damage_is_told_and_not_copied);
    suite_add_tcase(s, c);

    tcase_add_checked_fixture(r, make_site, remove_site);
    tcase_add_loop_test(r, what_is_damaged_or_empty_is_replaced_and_keeps_its_mode, 0, 4);
    tcase_add_test(r, what_is_no_dict_is_not_replaced);
    tcase_add_test(r, what_is_in_use_is_not_replaced);
    tcase_add_test(r, paths_that_lead_nowhere_are_told);
    tcase_add_test(r, a_bare_name_is_one_in_dev_shm);
    tcase_add_test(r, a_dict_gets_another_number_of_cells);
    tcase_add_test(r, cells_that_are_too_few_are_told_and_nothing_is_lost);
    tcase_add_test(r, a_value_that_no_shard_has_room_for_is_told);
    tcase_add_test(r, resizing_evicts_nothing);
    tcase_add_test(r, a_pool_is_not_resized);
    tcase_add_loop_test(r, a_process_that_opens_it_meanwhile_has_the_new_file, 0, 2);
    tcase_add_test(r, a_file_that_another_makes_meanwhile_is_not_replaced);
    suite_add_tcase(s, r);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
