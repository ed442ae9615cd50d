/* SPDX-License-Identifier: MIT
 *
 * Files that changed, or whose shape is not the one that the program expects, by docs/pool.md: they
 * are refused with a reason, and left unchanged. Then pages that reverted to an older version.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sxe-pool-shared.h>
#include <sys/stat.h>

enum { FREE, BUSY, STATES, NUMBER = 200, PAGE = 4096, SIZE_MAX_OF_FILE = 40 * PAGE };

static char why[SXE_POOL_WHY_SIZE];
static char first[SIZE_MAX_OF_FILE], second[SIZE_MAX_OF_FILE], found[2 * SIZE_MAX_OF_FILE];

static SXE_POOL_SPEC
spec_of(void)
{
    return (SXE_POOL_SPEC){.name = "shape",
                           .number = NUMBER,
                           .element_size = 64,
                           .states = STATES,
                           .state_names = "FREE BUSY",
                           .fields = "u64 tries, char[56] what",
                           .extra_size = 100,
                           .file = outside_path("shape.pool")};
}

static void
use_and_close(unsigned number)
{
    const SXE_POOL_SPEC spec = spec_of();
    void *pool = sxe_pool_open(&spec, why);

    ck_assert_msg(pool != NULL, "%s", why);
    for (unsigned i = 0; i < number; i++)
        ck_assert_uint_lt(sxe_pool_take(pool, FREE, BUSY), NUMBER);
    for (unsigned id = 0; id < NUMBER; id++)
        (void)!sxe_pool_add_u64(pool, id, 8, UINT64_C(0x0101010101010101));
    ck_assert_int_eq(sxe_pool_check(pool, why), 0);
    sxe_pool_delete(pool);
}

static size_t
read_to(char *bytes, size_t room)
{
    const int fd = open(outside_path("shape.pool"), O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, bytes, room);

    ck_assert_int_gt(size, 0);
    ck_assert_int_lt(size, (ssize_t)room);
    close(fd);
    return (size_t)size;
}

static void
write_of(const char *bytes, size_t size)
{
    const int fd = open(outside_path("shape.pool"), O_WRONLY | O_TRUNC | O_CLOEXEC);

    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

static void
expect_refused(const SXE_POOL_SPEC *spec, int error)
{
    why[0] = '\0';
    ck_assert_ptr_null(sxe_pool_open(spec, why));
    ck_assert_int_eq(errno, error);
    ck_assert_str_ne(why, "");
}

/* promise: docs/pool.md: A truncated file is refused when it is opened next. */
START_TEST(a_file_of_another_size_is_refused_and_stays)
{
    SXE_POOL_SPEC spec = spec_of();
    SXE_POOL_SPEC repair = spec;

    repair.options = SXE_POOL_OPTION_REPAIR;
    use_and_close(7);
    const size_t size = read_to(first, sizeof(first));
    const size_t sizes[] = {1,        8,        511,      PAGE - 1,    PAGE,        PAGE + 1,
                            size / 2, size - 1, size + 1, size - PAGE, size + PAGE, size * 2 - 1};
    memcpy(found, first, size);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(found + size, 0, sizeof(found) - size);
        memcpy(found, first, size);
        write_of(found, sizes[i]);
        expect_refused(&spec, EMEDIUMTYPE);
        expect_refused(&repair, EMEDIUMTYPE);
        ck_assert_uint_eq(read_to(found, sizeof(found)), sizes[i]);
        ck_assert_mem_eq(found, first, sizes[i] < size ? sizes[i] : size);
    }
    write_of(first, size);
    use_and_close(7);
    unlink(spec.file);
}
END_TEST

/* promise: docs/pool.md: A file is refused, with a sentence that names the reason, if it is
 * truncated, of another version or byte order, has a wrong checksum, or has another shape (count,
 * element size, states, fields) than the program gives. */
START_TEST(a_pool_of_another_shape_is_refused_and_stays)
{
    SXE_POOL_SPEC wrong[7];

    use_and_close(3);
    for (unsigned i = 0; i < 7; i++)
        wrong[i] = spec_of();
    wrong[0].name = "other";
    wrong[1].number++;
    wrong[2].element_size += 8;
    wrong[3].states = 3, wrong[3].state_names = "FREE BUSY DONE";
    wrong[4].state_names = "FREE BUSI";
    wrong[5].shards = 2;
    wrong[6].extra_size++;
    const size_t size = read_to(first, sizeof(first));
    for (unsigned i = 0; i < 7; i++) {
        expect_refused(&wrong[i], EEXIST);
        wrong[i].options = SXE_POOL_OPTION_REPAIR;
        expect_refused(&wrong[i], EEXIST);
    }
    write_of(first, size);
    use_and_close(3);
    unlink(wrong[0].file);
}
END_TEST

/* promise: docs/pool.md: all closed it, then any bit of it changed, or any page except the first
 * reverted to an older version | refused: `EUCLEAN` */
START_TEST(a_page_that_became_an_older_one_is_found)
{
    const SXE_POOL_SPEC spec = spec_of();
    unsigned older = 0;

    use_and_close(3);
    const size_t size = read_to(first, sizeof(first));
    use_and_close(5);
    ck_assert_uint_eq(read_to(second, sizeof(second)), size);
    for (size_t at = 0; at + PAGE <= size; at += PAGE) {
        if (memcmp(first + at, second + at, PAGE) == 0)
            continue;
        memcpy(found, second, size);
        memcpy(found + at, first + at, PAGE);
        write_of(found, size);
        expect_refused(&spec, EUCLEAN);
        older++;
    }
    ck_assert_uint_ge(older, 4);
    write_of(second, size);
    use_and_close(1);
    unlink(spec.file);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_file_of_another_size_is_refused_and_stays,
                            a_pool_of_another_shape_is_refused_and_stays,
                            a_page_that_became_an_older_one_is_found, NULL};

    return outside_run("pool-shape", cases);
}
