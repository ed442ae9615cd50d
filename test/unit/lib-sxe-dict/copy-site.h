/* SPDX-License-Identifier: MIT
 *
 * What: a new directory for each test, with a dict that the test copies.
 *
 *     tcase_add_checked_fixture(c, make_site, remove_site);
 *     SXE_DICT *dict = open_source();        in source, 400 cells of 128 bytes in 4 shards
 *     fill(dict);                            40 entries of all states, sizes and times to live
 *     expect_full(target);                   checks that target is a valid dict with these entries
 */
#ifndef COPY_SITE_H
#define COPY_SITE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leaks.h"
#include "sxe-dict-private.h"
#include "sxe-pool-sharing-private.h"
#include "sxe-time.h"
#include "test-main.h"

enum { ENTRIES = 40, CELLS = 400, VALUE_ROOM = 300, NEWS = 7 };

static char directory[64];
static char source[96];
static char target[96];
static char why[SXE_POOL_WHY_SIZE];

static inline void
make_site(void)
{
    snprintf(directory, sizeof(directory), "/dev/shm/sxe-copy-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(source, sizeof(source), "%s/source", directory);
    snprintf(target, sizeof(target), "%s/target", directory);
    note_what_is_open();
}

static inline void
remove_site(void)
{
    char command[128];

    sxe_time_set_turn_ns(0);
    fake_os_reset();
    check_that_nothing_is_left();
    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* How many files are in the directory. */
static inline unsigned
count_files(void)
{
    DIR *files = opendir(directory);
    unsigned number = 0;

    for (const struct dirent *file; (file = readdir(files)) != NULL;)
        number += file->d_name[0] != '.';
    closedir(files);
    return number;
}

static inline SXE_DICT_SPEC
spec_of(const char *file)
{
    return (SXE_DICT_SPEC){
        .name = "site", .cells = CELLS, .cell_size = 128, .shards = 4, .file = file};
}

static inline SXE_DICT *
open_with(const SXE_DICT_SPEC *spec)
{
    SXE_DICT *dict = sxe_dict_open(spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

static inline SXE_DICT *
open_source(void)
{
    const SXE_DICT_SPEC spec = spec_of(source);

    return open_with(&spec);
}

static inline SXE_DICT *
open_any(const char *file)
{
    const SXE_DICT_SPEC spec = {.file = file};

    return open_with(&spec);
}

/* Make the value of entry i; returns its size. */
static inline size_t
value_of(unsigned i, char *value)
{
    const size_t size = (size_t)i * NEWS % VALUE_ROOM;

    memset(value, (int)(i + 1), size);
    return size;
}

static inline SXE_DICT_STATE
state_of(unsigned i)
{
    return i % 3 == 0 ? SXE_DICT_LIVE : i % 3 == 1 ? SXE_DICT_PINNED : SXE_DICT_DIRTY;
}

static inline void
fill(SXE_DICT *dict)
{
    char value[VALUE_ROOM];

    for (unsigned i = 0; i < ENTRIES; i++) {
        const size_t size = value_of(i, value);

        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), value, size, i % 2 ? 1000.0 : 0), 0);
        ck_assert_int_eq(sxe_dict_set_state(dict, &i, sizeof(i), state_of(i)), 0);
    }
}

static inline void
check_whole(SXE_DICT *dict)
{
    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    ck_assert_msg(sxe_pool_check(sxe_dict_get_pool(dict), why) == 0, "%s", why);
}

/* Find the states of all entries by a walk. */
static inline void
find_states(SXE_DICT *dict, unsigned states[ENTRIES])
{
    unsigned key = 0;
    SXE_DICT_ENTRY entry = {.key = &key, .key_room = sizeof(key)};
    SXE_DICT_WALKER walker;

    sxe_dict_walker_construct(&walker, dict);
    while (sxe_dict_walker_step(&walker, &entry) == 1)
        if (key < ENTRIES)
            states[key] = entry.state;
}

static inline void
check_full(SXE_DICT *dict)
{
    char expected[VALUE_ROOM];
    char value[VALUE_ROOM];
    unsigned states[ENTRIES] = {0};

    check_whole(dict);
    find_states(dict, states);
    ck_assert_uint_eq(sxe_dict_get_count(dict), ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++) {
        const ssize_t size = (ssize_t)value_of(i, expected);
        const double ttl_s = sxe_dict_get_ttl(dict, &i, sizeof(i));

        ck_assert_int_eq(sxe_dict_peek(dict, &i, sizeof(i), value, sizeof(value)), size);
        ck_assert_int_eq(memcmp(value, expected, (size_t)size), 0);
        ck_assert_uint_eq(states[i], state_of(i));
        ck_assert(i % 2 ? ttl_s > 0 && ttl_s <= 1000 : ttl_s == HUGE_VAL);
    }
}

/* The file must be a dict that was closed properly, with all entries that fill() puts. */
static inline void
expect_full(const char *file)
{
    SXE_DICT *dict = open_any(file);

    ck_assert_int_eq(sxe_pool_get_found(sxe_dict_get_pool(dict)), SXE_POOL_CLOSED);
    check_full(dict);
    sxe_dict_close(dict);
}

static inline ino_t
inode_of(const char *file)
{
    struct stat status;

    ck_assert_int_eq(stat(file, &status), 0);
    return status.st_ino;
}

static inline mode_t
mode_of(const char *file)
{
    struct stat status;

    ck_assert_int_eq(stat(file, &status), 0);
    return status.st_mode & 07777;
}

static inline void
says(int result, int error, const char *words)
{
    ck_assert_msg(result == -error, "%d: %s", result, why);
    ck_assert_msg(strstr(why, words) != NULL, "\"%s\" does not say \"%s\"", why, words);
}

#endif
