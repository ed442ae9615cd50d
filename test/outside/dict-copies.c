/* SPDX-License-Identifier: MIT
 *
 * Backup, restore and resize, by docs/dict.md and sxe-dict.h.
 */
#include "outside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ENTRIES = 600 };

static char why[SXE_POOL_WHY_SIZE];
static char file[PATH_MAX];
static char other[PATH_MAX];

static void
name_files(void)
{
    snprintf(file, sizeof(file), "%s", outside_path("copied.dict"));
    snprintf(other, sizeof(other), "%s", outside_path("backup.dict"));
}

static SXE_DICT *
open_dict(const char *path, unsigned cells, unsigned shards)
{
    const SXE_DICT_SPEC spec = {.name = "outside", .cells = cells, .shards = shards, .file = path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

/* Make a dict of 600 entries. Key and value are the entry's number, each state has a third of them,
 * and every second one lives for an hour. */
static SXE_DICT *
make(void)
{
    SXE_DICT *dict;

    name_files();
    dict = open_dict(file, 2000, 2);
    for (unsigned i = 0; i < ENTRIES; i++) {
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), &i, sizeof(i), i % 2 ? 3600 : 0), 0);
        ck_assert_int_eq(
            sxe_dict_set_state(dict, &i, sizeof(i), (SXE_DICT_STATE)(SXE_DICT_LIVE + i % 3)), 0);
    }
    return dict;
}

static void
expect_all(SXE_DICT *dict)
{
    unsigned counts[SXE_DICT_DIRTY + 1] = {0};
    unsigned key;
    SXE_DICT_ENTRY entry = {.key = &key, .key_room = sizeof(key)};
    SXE_DICT_WALKER walker;

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    for (unsigned i = 0; i < ENTRIES; i++) {
        unsigned value = ENTRIES;
        const double ttl_s = sxe_dict_get_ttl(dict, &i, sizeof(i));

        ck_assert_int_eq(sxe_dict_peek(dict, &i, sizeof(i), &value, sizeof(value)), sizeof(value));
        ck_assert_uint_eq(value, i);
        ck_assert(i % 2 ? ttl_s > 0 && ttl_s <= 3600 : ttl_s == HUGE_VAL);
    }
    sxe_dict_walker_construct(&walker, dict);
    while (sxe_dict_walker_step(&walker, &entry) == 1) {
        ck_assert_uint_eq(entry.state, SXE_DICT_LIVE + key % 3);
        counts[entry.state]++;
    }
    for (unsigned state = SXE_DICT_LIVE; state <= SXE_DICT_DIRTY; state++)
        ck_assert_uint_eq(counts[state], ENTRIES / 3);
}

static void
expect_all_in(const char *path)
{
    SXE_DICT *dict = open_dict(path, 0, 0);

    expect_all(dict);
    sxe_dict_close(dict);
}

/* Remove all files in the directory of the two files. Returns how many there were. */
static unsigned
remove_all(void)
{
    char path[PATH_MAX + 300];
    char directory[PATH_MAX];
    unsigned number = 0;

    snprintf(directory, sizeof(directory), "%s", file);
    *strrchr(directory, '/') = '\0';
    DIR *files = opendir(directory);
    for (const struct dirent *found; (found = readdir(files)) != NULL;) {
        if (found->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, found->d_name);
        number += unlink(path) == 0;
    }
    closedir(files);
    return number;
}

static ino_t
inode_of(const char *path)
{
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_ino;
}

static SXE_DICT *busy;
static unsigned asked, patience;

static bool
write_meanwhile(void)
{
    if (asked++ == 0) {
        for (unsigned i = 0; i < 100; i++)
            ck_assert_int_eq(sxe_dict_put(busy, &i, sizeof(i), "new", 3, 0), 0);
        for (unsigned i = 100; i < 200; i++)
            ck_assert_int_eq(sxe_dict_remove(busy, &i, sizeof(i)), 0);
    }
    return false;
}

static bool
make_meanwhile(void)
{
    if (asked++ == 0)
        fclose(fopen(other, "w"));
    return false;
}

/* promise: docs/dict.md: If another program makes the target while the copy runs, that file stays,
 *   and the copy ends with `-EEXIST`. */
START_TEST(a_file_that_is_made_while_a_copy_runs_stays)
{
    busy = make();
    asked = 0;
    unlink(other);
    ck_assert_int_eq(sxe_dict_backup(busy, other, make_meanwhile, why), -EEXIST);
    ck_assert_ptr_nonnull(strstr(why, "was made by another program meanwhile"));
    ck_assert_int_eq(access(other, F_OK), 0);
    sxe_dict_close(busy);
}
END_TEST

/* promise: docs/dict.md: A backup shows one moment: it reads a snapshot. */
START_TEST(a_backup_has_what_was_there_when_it_began)
{
    busy = make();
    ck_assert_int_eq(sxe_dict_backup(busy, other, write_meanwhile, why), 0);
    ck_assert_uint_eq(sxe_dict_get_count(busy), ENTRIES - 100);
    sxe_dict_close(busy);
    expect_all_in(other);
    ck_assert_uint_eq(remove_all(), 2);
}
END_TEST

/* promise: docs/dict.md: A backup is a dict like any other: `sxe-pool dump` shows it, and its file
 * can be copied while no process uses it. */
START_TEST(a_backup_is_opened_changed_and_backed_up_itself)
{
    SXE_DICT *dict = make();

    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(sxe_dict_backup(dict, other, NULL, why), 0);
    sxe_dict_close(dict);
    dict = open_dict(other, 2000, 2);
    ck_assert_int_eq(sxe_dict_put(dict, "new", 3, "", 0, 0), 0);
    ck_assert_int_eq(sxe_dict_remove(dict, "new", 3), 0);
    expect_all(dict);
    ck_assert_int_eq(sxe_dict_backup(dict, file, NULL, why), 0);
    sxe_dict_close(dict);
    expect_all_in(file);
    ck_assert_uint_eq(remove_all(), 2);
}
END_TEST

/* promise: docs/dict.md: A file that is in use is not replaced. */
START_TEST(a_file_in_use_is_not_replaced)
{
    SXE_DICT *dict = make();

    ck_assert_int_eq(sxe_dict_backup(dict, other, NULL, why), 0);
    const ino_t inode = inode_of(file);
    ck_assert_int_eq(sxe_dict_restore(other, file, NULL, why), -EBUSY);
    ck_assert_int_eq(sxe_dict_resize(file, 3000, NULL, why), -EBUSY);
    ck_assert_int_eq(sxe_dict_backup(dict, file, NULL, why), -EBUSY);
    ck_assert_uint_eq(inode_of(file), inode);
    expect_all(dict);
    sxe_dict_close(dict);
    ck_assert_int_eq(sxe_dict_restore(other, file, NULL, why), 0);
    ck_assert_int_eq(sxe_dict_resize(file, 3000, NULL, why), 0);
    expect_all_in(file);
    ck_assert_uint_eq(remove_all(), 2);
}
END_TEST

/* promise: docs/dict.md: **Only a dict, even a damaged one, or an empty file is replaced.** */
START_TEST(other_files_stay_as_they_are)
{
    const SXE_POOL_SPEC pool = {
        .name = "jobs", .number = 4, .element_size = 8, .states = 2, .file = other};
    char bytes[20];
    int fd;

    sxe_dict_close(make());
    sxe_pool_delete(sxe_pool_open(&pool, why));
    ck_assert_int_lt(sxe_dict_restore(file, other, NULL, why), 0);
    sxe_pool_delete(sxe_pool_open(&pool, why));
    ck_assert_str_eq(why, "");
    unlink(other);
    fd = open(other, O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "I am no dict at all", 19), 19);
    ck_assert_int_lt(sxe_dict_restore(file, other, NULL, why), 0);
    ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), 0), 19);
    ck_assert_int_eq(memcmp(bytes, "I am no dict at all", 19), 0);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    close(fd);
    ck_assert_int_eq(sxe_dict_restore(file, other, NULL, why), 0);
    expect_all_in(other);
    fd = open(other, O_RDWR);
    ck_assert_int_eq(pwrite(fd, "damaged!", 8, 100000), 8);
    close(fd);
    ck_assert_int_eq(sxe_dict_restore(file, other, NULL, why), 0);
    expect_all_in(other);
    ck_assert_uint_eq(remove_all(), 2);
}
END_TEST

/* promise: docs/dict.md: A resize keeps the shards, and evicts nothing: with too few cells it
 * fails. */
START_TEST(nothing_is_lost_by_a_resize)
{
    sxe_dict_close(make());
    const ino_t inode = inode_of(file);
    ck_assert_int_eq(sxe_dict_resize(file, ENTRIES - 1, NULL, why), -ENOSPC);
    ck_assert_int_eq(sxe_dict_resize(file, 2, NULL, why), -ENOSPC);
    ck_assert_int_eq(sxe_dict_resize(file, 1, NULL, why), -EINVAL);
    ck_assert_int_eq(sxe_dict_resize(file, 0, NULL, why), -EINVAL);
    ck_assert_uint_eq(inode_of(file), inode);
    expect_all_in(file);
    ck_assert_int_eq(sxe_dict_resize(file, 5000, NULL, why), 0);
    SXE_DICT *dict = open_dict(file, 5000, 2);
    expect_all(dict);
    sxe_dict_close(dict);
    ck_assert_uint_eq(remove_all(), 1);
}
END_TEST

static bool
is_enough(void)
{
    return ++asked > patience;
}

/* promise: lib-sxe-dict/sxe-dict.h: is_over, unless NULL, is asked at least every 256 entries: once
 * it says true, the call returns -ECANCELED. */
START_TEST(a_copy_is_cancelled_at_any_question)
{
    SXE_DICT *dict = make();

    ck_assert_int_eq(sxe_dict_backup(dict, other, NULL, why), 0);
    const ino_t inode = inode_of(other);
    for (patience = 0; patience < ENTRIES / 256; patience++) {
        asked = 0;
        ck_assert_int_eq(sxe_dict_backup(dict, other, is_enough, why), -ECANCELED);
        ck_assert_uint_eq(inode_of(other), inode);
        expect_all_in(other);
    }
    sxe_dict_close(dict);
    ck_assert_uint_eq(remove_all(), 2);
}
END_TEST

static bool
die(void)
{
    if (++asked > patience)
        kill(getpid(), SIGKILL);
    return false;
}

/* promise: docs/dict.md: If the process is killed at any moment, the old file or the new one is
 * there; a `FILE.XXXXXX` that stays can be removed. */
START_TEST(a_killed_process_leaves_a_whole_dict)
{
    for (patience = 0; patience < 5; patience++) {
        sxe_dict_close(make());
        const pid_t pid = fork();

        if (pid == 0) {
            asked = 0;
            _exit(sxe_dict_resize(file, 3000, die, why) == 0 ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        expect_all_in(file);
        ck_assert_int_eq(sxe_dict_resize(file, 4000, NULL, why), 0);
        expect_all_in(file);
        ck_assert_uint_le(remove_all(), 2);
    }
}
END_TEST

/* promise: docs/dict.md: If a call fails (the disk is full, the copy does not fit, a signal ended
 * `sxe-pool`), the old file is as it was. */
START_TEST(a_copy_beyond_the_limit_of_file_sizes_leaves_the_old_file)
{
    struct rlimit limit;
    SXE_DICT *dict = make();

    ck_assert_int_eq(sxe_dict_backup(dict, other, NULL, why), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 100000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(sxe_dict_backup(dict, other, NULL, why), -EFBIG);
    sxe_dict_close(dict);
    limit.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_all_in(other);
    expect_all_in(file);
    ck_assert_uint_eq(remove_all(), 2);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {
        a_backup_has_what_was_there_when_it_began,
        a_file_that_is_made_while_a_copy_runs_stays,
        a_backup_is_opened_changed_and_backed_up_itself,
        a_file_in_use_is_not_replaced,
        other_files_stay_as_they_are,
        nothing_is_lost_by_a_resize,
        a_copy_is_cancelled_at_any_question,
        a_killed_process_leaves_a_whole_dict,
        a_copy_beyond_the_limit_of_file_sizes_leaves_the_old_file,
        NULL,
    };

    return outside_run("dict-copies", cases);
}
