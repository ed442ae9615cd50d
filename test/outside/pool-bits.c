/* SPDX-License-Identifier: MIT
 *
 * Changed bits in files that all users have closed, by docs/pool.md. In the file of a pool, and in
 * that of a dict, one bit of each byte is changed in turn, and each time the open is refused.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sxe-dict.h>
#include <sxe-log.h>
#include <sys/stat.h>

enum { BYTES_MAX = 1 << 18 };

static char why[SXE_POOL_WHY_SIZE];
static char bytes[BYTES_MAX];

static void *
open_pool(const char *path, unsigned options)
{
    const SXE_POOL_SPEC spec = {.name = "bits",
                                .number = 5,
                                .element_size = 16,
                                .states = 2,
                                .options = options,
                                .file = path};

    return sxe_pool_open(&spec, why);
}

static SXE_DICT *
open_dict(const char *path, unsigned options)
{
    const SXE_DICT_SPEC spec = {.name = "bits", .cells = 8, .options = options, .file = path};

    return sxe_dict_open(&spec, why);
}

static void
make_pool(const char *path)
{
    char *array = open_pool(path, 0);

    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_uint_lt(sxe_pool_take(array, 0, 1), 5);
    sxe_pool_write_element(array, 3, "what was put in");
    sxe_pool_delete(array);
}

static void
make_dict(const char *path)
{
    SXE_DICT *dict = open_dict(path, 0);

    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, "value", 5, 0), 0);
    sxe_dict_close(dict);
}

/* Open the file and read its content to `bytes`. Returns the descriptor. */
static int
load(const char *path, size_t *size)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    *size = (size_t)status.st_size;
    ck_assert_uint_le(*size, BYTES_MAX);
    ck_assert_int_eq(pread(fd, bytes, *size, 0), (ssize_t)*size);
    return fd;
}

static void
flip(int fd, size_t at)
{
    const char other = (char)(bytes[at] ^ 1 << at % 8);

    ck_assert_int_eq(pwrite(fd, &other, 1, (off_t)at), 1);
}

static void
put_back(int fd, size_t at)
{
    ck_assert_int_eq(pwrite(fd, bytes + at, 1, (off_t)at), 1);
}

/* Check that an open failed with EUCLEAN. A damaged shape has another error only if the copy of the
 * head is damaged, too; but one changed byte leaves the copy intact. */
static void
expect_refused(bool is_open, size_t at)
{
    ck_assert_msg(!is_open, "bit %zu of byte %zu went unnoticed", at % 8, at);
    ck_assert_msg(errno == EUCLEAN, "bit %zu of byte %zu: %s", at % 8, at, why);
}

/* promise: docs/pool.md: "Any bit" includes the mark that the pool was closed, the slots of its
 * users, and the copy of the head. */
START_TEST(each_byte_of_a_closed_pool_may_not_change)
{
    const char *path = outside_path("bits.pool");
    size_t size;

    make_pool(path);
    const int fd = load(path, &size);
    for (size_t at = 0; at < size; at++) {
        flip(fd, at);
        expect_refused(open_pool(path, 0) != NULL, at);
        put_back(fd, at);
    }
    char *array = open_pool(path, 0);
    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
    ck_assert_str_eq(array + 3 * 16, "what was put in");
    sxe_pool_delete(array);
    close(fd);
    unlink(path);
}
END_TEST

/* promise: docs/dict.md: A file that all users had closed is compared as a whole when it is opened
 * next */
START_TEST(each_byte_of_a_closed_dict_may_not_change)
{
    const char *path = outside_path("bits.dict");
    size_t size;

    make_dict(path);
    const int fd = load(path, &size);
    for (size_t at = 0; at < size; at++) {
        flip(fd, at);
        expect_refused(open_dict(path, 0) != NULL, at);
        put_back(fd, at);
    }
    SXE_DICT *dict = open_dict(path, 0);
    ck_assert_msg(dict != NULL, "%s", why);
    sxe_dict_close(dict);
    close(fd);
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: A repair writes the copy of the head again. */
START_TEST(a_repair_mends_the_copy)
{
    const char *path = outside_path("copy.pool");
    size_t size;

    make_pool(path);
    const int fd = load(path, &size);
    flip(fd, size - 4096 + 40);
    expect_refused(open_pool(path, 0) != NULL, size - 4096 + 40);
    char *array = open_pool(path, SXE_POOL_OPTION_REPAIR);
    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_REBUILT);
    ck_assert_str_eq(array + 3 * 16, "what was put in");
    sxe_pool_delete(array);
    /* This file's copy of the head is intact: a repair takes the head from it. */
    ck_assert_int_eq(pwrite(fd, "", 1, 40), 1);
    flip(fd, 40);
    array = open_pool(path, SXE_POOL_OPTION_REPAIR);
    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_uint_eq(sxe_pool_get_count(array, 1), 1);
    sxe_pool_delete(array);
    close(fd);
    unlink(path);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {each_byte_of_a_closed_pool_may_not_change,
                            each_byte_of_a_closed_dict_may_not_change, a_repair_mends_the_copy,
                            NULL};

    sxe_log_set_level(SXE_LOG_NONE);
    return outside_run("pool-bits", cases);
}
