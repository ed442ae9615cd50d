/* SPDX-License-Identifier: MIT
 *
 * A dict after a power cut, by docs/pool.md: of the pages that were changed after the last sync,
 * some are on the disk and some are not. The test mixes two images of one file, page by page.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sxe-dict.h>

enum {
    KEYS = 40,
    KEPT = 10,
    CELLS = 3600 /* each shard alone has room for all entries */,
    LONG = 1300,
    PAGE = 4096,
    ROUNDS = 40
};

static SXE_DICT *dict;
static char value[LONG], expected[LONG];
static char why[SXE_POOL_WHY_SIZE];

static void
open_of(unsigned round, unsigned options)
{
    const SXE_DICT_SPEC spec = {.name = "pages",
                                .cells = CELLS,
                                .cell_size = round % 2 == 0 ? 128 : 256,
                                .shards = round % 3 == 0 ? 1 : 4,
                                .options = options,
                                .file = outside_path("pages.dict")};

    dict = sxe_dict_open(&spec, why);
}

static size_t
value_of(int key, int version)
{
    memset(expected, version * KEYS + key, sizeof(expected));
    return 1 + (size_t)(key * 131 + version * 57) % (LONG - 1);
}

static void
put(int key, int version)
{
    const size_t size = value_of(key, version);

    ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), expected, size, 0), 0);
}

static size_t
read_file(char **bytes)
{
    const int fd = open(outside_path("pages.dict"), O_RDONLY | O_CLOEXEC);
    const off_t size = lseek(fd, 0, SEEK_END);

    *bytes = malloc((size_t)size);
    ck_assert_int_eq(pread(fd, *bytes, (size_t)size, 0), size);
    close(fd);
    return (size_t)size;
}

/* Write the closed dict's file again as if it had been in use: some pages are older ones, the
 * others newer ones. */
static void
cut_power(const char *older, char *newer, size_t size, unsigned round)
{
    const int fd = open(outside_path("pages.dict"), O_WRONLY | O_CLOEXEC);

    for (size_t at = 0; at < size; at += PAGE) {
        if ((at / PAGE * 2654435761U >> 7) % (2 + round % 3) == round % 2)
            memcpy(newer + at, older + at, size - at < PAGE ? size - at : PAGE);
    }
    ck_assert_int_eq(pwrite(fd, newer, size, 0), (ssize_t)size);
    close(fd);
}

static void
expect_old_or_new(int key)
{
    const ssize_t size = sxe_dict_get(dict, &key, sizeof(key), value, sizeof(value));

    if (size < 0) {
        ck_assert_int_eq(size, -ENOENT);
        ck_assert_int_ge(key, KEPT);
        return;
    }
    for (int version = 0; version < 2; version++) {
        if ((ssize_t)value_of(key, version) == size && memcmp(value, expected, (size_t)size) == 0 &&
            (version == 0 || key >= KEPT))
            return;
    }
    ck_abort_msg("key %d is a mixture", key);
}

/* promise: docs/pool.md: the old value, the new one, or none; never a mixture */
START_TEST(a_repair_finds_what_was_synced_and_no_mixture)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        char *older, *newer;

        open_of(round, 0);
        for (int key = 0; key < KEYS; key++)
            put(key, 0);
        ck_assert_int_eq(sxe_dict_sync(dict), 0);
        const size_t size = read_file(&older);
        for (int i = 0; i < 15; i++) {
            const int key = KEPT + (int)(round * 11 + (unsigned)i * 7) % (KEYS - KEPT);

            if (i % 4 == 3)
                (void)!sxe_dict_remove(dict, &key, sizeof(key));
            else
                put(key, 1);
        }
        ck_assert_uint_eq(read_file(&newer), size);
        sxe_dict_close(dict);
        cut_power(older, newer, size, round);
        open_of(round, SXE_POOL_OPTION_REPAIR);
        ck_assert_msg(dict != NULL, "round %u: %s", round, why);
        ck_assert_msg(sxe_dict_check(dict, why) == 0, "round %u: %s", round, why);
        for (int key = 0; key < KEYS; key++)
            expect_old_or_new(key);
        sxe_dict_close(dict);
        unlink(outside_path("pages.dict"));
        free(older);
        free(newer);
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_repair_finds_what_was_synced_and_no_mixture, NULL};

    return outside_run("dict-pages", cases);
}
