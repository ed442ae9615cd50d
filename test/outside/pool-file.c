/* SPDX-License-Identifier: MIT
 *
 * Files in which a pool may be made, by docs/pool.md: other data are never overwritten.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sxe-dict.h>

enum { BLOCK = 8192 };

static char block[BLOCK];
static char found[BLOCK];

static const char *
write_file(size_t size)
{
    const char *path = outside_path("file");
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, block, size), (ssize_t)size);
    close(fd);
    return path;
}

static void
expect_unchanged(const char *path, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), (off_t)size);
    ck_assert_int_eq(pread(fd, found, size, 0), (ssize_t)size);
    ck_assert_mem_eq(found, block, size);
    close(fd);
}

/* Try each way to open the file. The file must stay unchanged. */
static void
expect_left_alone(const char *path, size_t size)
{
    const SXE_POOL_SPEC pool = {
        .name = "p", .number = 10, .element_size = 8, .states = 2, .file = path};
    SXE_POOL_SPEC repair = pool;
    const SXE_DICT_SPEC dict = {.name = "d", .cells = 10, .file = path};
    char why[SXE_POOL_WHY_SIZE] = "";
    const int fd = open(path, O_RDWR | O_CLOEXEC);

    repair.options = SXE_POOL_OPTION_REPAIR;
    ck_assert_ptr_null(sxe_pool_open(&pool, why));
    ck_assert_int_eq(errno, EMEDIUMTYPE);
    ck_assert_str_ne(why, "");
    ck_assert_ptr_null(sxe_pool_open(&repair, NULL));
    ck_assert_ptr_null(sxe_pool_open_fd(fd, &pool, NULL));
    ck_assert_ptr_null(sxe_dict_open(&dict, NULL));
    ck_assert_ptr_null(sxe_dict_open_fd(fd, &dict, NULL));
    close(fd);
    expect_unchanged(path, size);
}

/* promise: docs/pool.md: A file that begins with zeros and holds data after them, as disk images
 * do, is refused and stays as it is. */
START_TEST(a_file_that_only_begins_with_zeros_stays)
{
    static const size_t zeros[] = {1, 8, 512, 912, 1024, 4096, BLOCK - 1};
    const char *path = NULL;

    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++) {
        memset(block, 'd', sizeof(block));
        memset(block, 0, zeros[i]);
        path = write_file(BLOCK);
        expect_left_alone(path, BLOCK);
        path = write_file(zeros[i] + 1);
        expect_left_alone(path, zeros[i] + 1);
    }
    unlink(path);
}
END_TEST

/* promise: docs/pool.md: A pool is made only in an empty file: a file of size 0, a file of zeros
 * and holes from its beginning to its end, or a file that a process marked as incomplete and died
 * before the pool was made. */
START_TEST(a_pool_is_made_in_a_file_of_zeros)
{
    static const size_t sizes[] = {0, 1, 912, BLOCK};
    const char *path = NULL;

    memset(block, 0, sizeof(block));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        path = write_file(sizes[i]);
        const SXE_POOL_SPEC pool = {
            .name = "p", .number = 10, .element_size = 8, .states = 2, .file = path};
        void *array = sxe_pool_open(&pool, NULL);

        ck_assert_ptr_nonnull(array);
        ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CREATED);
        sxe_pool_delete(array);
    }
    unlink(path);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_file_that_only_begins_with_zeros_stays,
                            a_pool_is_made_in_a_file_of_zeros, NULL};

    return outside_run("pool-file", cases);
}
