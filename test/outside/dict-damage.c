/* SPDX-License-Identifier: MIT
 *
 * Files of dicts in which bits changed, or pages were lost, by docs/dict.md and docs/pool.md.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sxe-dict.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ENTRIES 20

static char why[SXE_POOL_WHY_SIZE];

static SXE_DICT *
open_dict(unsigned options)
{
    const SXE_DICT_SPEC spec = {
        .name = "outside", .cells = 50, .options = options, .file = outside_path("damage.dict")};

    return sxe_dict_open(&spec, why);
}

/* The size of an entry's value: by its number, entries are in turn a counter, a short value and a
 * long one. */
static size_t
size_of(int number)
{
    static const size_t sizes[] = {8, 30, 400};

    return sizes[number % 3];
}

static void
fill(SXE_DICT *dict)
{
    char value[400];

    ck_assert_msg(dict != NULL, "%s", why);
    for (int i = 0; i < ENTRIES; i++) {
        memset(value, 'a' + i, sizeof(value));
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), value, size_of(i), 1e6), 0);
    }
}

/* Count the entries; each must have the value that was put. */
static int
count_good(SXE_DICT *dict)
{
    char value[400];
    char found[400];
    int good = 0;

    for (int i = 0; i < ENTRIES; i++) {
        const ssize_t size = sxe_dict_get(dict, &i, sizeof(i), found, sizeof(found));

        if (size < 0)
            continue;
        memset(value, 'a' + i, sizeof(value));
        ck_assert_int_eq(size, (ssize_t)size_of(i));
        ck_assert_mem_eq(found, value, (size_t)size);
        good++;
    }
    return good;
}

static size_t
read_file(char **bytes)
{
    struct stat status;
    const int fd = open(outside_path("damage.dict"), O_RDONLY);

    ck_assert_int_eq(fstat(fd, &status), 0);
    *bytes = malloc((size_t)status.st_size);
    ck_assert_int_eq(read(fd, *bytes, (size_t)status.st_size), status.st_size);
    close(fd);
    return (size_t)status.st_size;
}

static void
write_at(const char *bytes, size_t at, size_t size)
{
    const int fd = open(outside_path("damage.dict"), O_WRONLY);

    ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)at), (ssize_t)size);
    close(fd);
}

/* promise: docs/pool.md: all closed it, then any bit of it changed, or any page except the first
 * reverted to an older version | refused: `EUCLEAN` */
START_TEST(a_closed_file_in_which_a_bit_changed_is_refused_or_is_what_it_was)
{
    SXE_DICT *dict = open_dict(0);
    char *bytes;

    fill(dict);
    sxe_dict_close(dict);
    const size_t size = read_file(&bytes);
    for (size_t at = 5; at < size; at += 61) {
        char byte = (char)(bytes[at] ^ 1 << at % 8);

        write_at(&byte, at, 1);
        dict = open_dict(0);
        /* If the dict was opened, the changed bit was one that only says how the file was left, or
         * one in the copy of the head. */
        if (dict != NULL)
            ck_assert_int_eq(count_good(dict), ENTRIES);
        else
            ck_assert_int_eq(errno, EUCLEAN);
        sxe_dict_close(dict);
        write_at(bytes, 0, size);
    }
    dict = open_dict(0);
    ck_assert_int_eq(count_good(dict), ENTRIES);
    sxe_dict_close(dict);
    free(bytes);
    unlink(outside_path("damage.dict"));
}
END_TEST

/* promise: docs/pool.md: the head is damaged | refused: `EUCLEAN`; a repair takes the copy of the
 * head at the end of the file */
START_TEST(a_head_that_is_lost_is_repaired)
{
    static const char zeros[4096];
    SXE_DICT *dict = open_dict(0);

    fill(dict);
    sxe_dict_close(dict);
    write_at(zeros, 0, 600);
    ck_assert_ptr_null(open_dict(0));
    ck_assert_int_eq(errno, EUCLEAN);
    dict = open_dict(SXE_POOL_OPTION_REPAIR);
    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_int_eq(count_good(dict), ENTRIES);
    sxe_dict_close(dict);
    dict = open_dict(0);
    ck_assert_int_eq(count_good(dict), ENTRIES);
    sxe_dict_close(dict);
    unlink(outside_path("damage.dict"));
}
END_TEST

/* promise: docs/dict.md: A damaged value is never returned; the call returns `-EUCLEAN`. */
START_TEST(bits_that_change_while_it_is_open_are_not_served)
{
    char *bytes;

    SXE_DICT *dict = open_dict(0);
    fill(dict);
    const size_t size = read_file(&bytes);
    int missed = 0;
    /* Change the values in the file. They appear in the open dict, because it maps the file. */
    for (size_t at = 0; at < size; at++) {
        if (at + 8 > size || memcmp(bytes + at, bytes + at + 1, 7) != 0 || bytes[at] < 'a' ||
            bytes[at] >= 'a' + ENTRIES)
            continue;
        char byte = (char)(bytes[at] ^ 1);

        write_at(&byte, at, 1);
        missed += count_good(dict) < ENTRIES;
        write_at(bytes + at, at, 1);
    }
    ck_assert_int_ge(missed, ENTRIES * 8);
    ck_assert_int_eq(count_good(dict), ENTRIES);
    sxe_dict_close(dict);
    free(bytes);
    unlink(outside_path("damage.dict"));
}
END_TEST

/* promise: docs/dict.md: So a kill leaves no wrong checksum. */
START_TEST(a_counter_survives_kills)
{
    SXE_DICT *dict = open_dict(0);
    int64_t sum = 0;

    fill(dict);
    sxe_dict_close(dict);
    for (int round = 0; round < 50; round++) {
        int pipes[2];
        char byte;
        ck_assert_int_eq(pipe(pipes), 0);
        const pid_t child = fork();

        if (child == 0) {
            dict = open_dict(0);
            if (dict == NULL || write(pipes[1], "", 1) != 1)
                _exit(1);
            for (int i = 0;; i++) {
                sxe_dict_add(dict, "n", 1, 1, 0, NULL);
                sxe_dict_expire(dict, "n", 1, i % 100);
                sxe_dict_expire(dict, "n", 1, 0);
            }
        }
        ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
        usleep((useconds_t)(round * 37));
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        close(pipes[0]);
        close(pipes[1]);
        dict = open_dict(0);
        ck_assert_msg(dict != NULL, "%s", why);
        ck_assert_int_eq(sxe_dict_check(dict, why), 0);
        ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, &sum), 0);
        ck_assert_int_eq(count_good(dict), ENTRIES);
        sxe_dict_close(dict);
    }
    unlink(outside_path("damage.dict"));
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_closed_file_in_which_a_bit_changed_is_refused_or_is_what_it_was,
                            a_head_that_is_lost_is_repaired,
                            bits_that_change_while_it_is_open_are_not_served,
                            a_counter_survives_kills, NULL};

    return outside_run("dict-damage", cases);
}
