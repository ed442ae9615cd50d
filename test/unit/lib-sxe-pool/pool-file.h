/* SPDX-License-Identifier: MIT
 *
 * What: a pool in a file, which a test opens, changes byte by byte, and opens again.
 *
 *     tcase_add_checked_fixture(c, begin_with_no_file, remove_the_file);
 *     SXE_POOL_SPEC spec = file_spec();
 *     sxe_pool_delete(open_pool(&spec));
 *     load_image();
 *     image.head.closed = 0;
 *     store_image(image_size);
 *     expect_refused(&spec, EUCLEAN, "remove the file");
 */
#ifndef POOL_FILE_H
#define POOL_FILE_H

#include "sxe-pool-opening-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fake-os.h"
#include "shared-pool.h"

#ifdef SXE_COVERAGE
void __gcov_dump(void);
#else
#    define __gcov_dump() ((void)0)
#endif

static char file_path[64];
static char why[SXE_POOL_WHY_SIZE];

/* The bytes of the file, as load_image() reads and store_image() writes them. */
static union {
    struct sxe__pool_head head;
    uint8_t bytes[1 << 16];
} image;
static size_t image_size;

static inline void
begin_with_no_file(void)
{
    snprintf(file_path, sizeof(file_path), "/dev/shm/test-pool-%d", (int)getpid());
    unlink(file_path);
}

static inline void
remove_the_file(void)
{
    unlink(file_path);
}

/* The default members of a spec; members after it in the initializer replace them. */
#define FILE_SPEC                                                                   \
    .name = "pond", .number = 64, .element_size = 8, .states = STATES, .shards = 2, \
    .file = file_path, .state_names = "FREE READY BUSY", .fields = "u64 hits", .extra_size = 40

static inline SXE_POOL_SPEC
file_spec(void)
{
    return (SXE_POOL_SPEC){FILE_SPEC};
}

static inline void
load_image(void)
{
    const int fd = open(file_path, O_RDONLY);
    const ssize_t length = read(fd, image.bytes, sizeof(image));

    ck_assert_int_gt(length, 0);
    close(fd);
    image_size = (size_t)length;
}

/* Write the first `size` bytes of the image to the file. */
static inline void
store_bytes(size_t size)
{
    const int fd = open(file_path, O_RDWR | O_CREAT, 0600);

    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, image.bytes, size, 0), (ssize_t)size);
    close(fd);
}

/* Like store_bytes, but make the sum of the contents right first, as if a program had closed the
 * file with these contents. */
static inline void
store_image(size_t size)
{
    struct sxe__pool_head *head = &image.head;

    if (image_size == head->file_size && head->array_offset < image_size &&
        head->array_offset > sizeof(*head) && head->page_size < image_size - head->array_offset)
        head->sum = sxe__pool_sum(head, head->array_offset, image.bytes + head->array_offset,
                                  image_size - head->array_offset - head->page_size);
    store_bytes(size);
}

/* Damage the copy of the head, so that a damaged head cannot be restored. */
static inline void
spoil_copy(void)
{
    memset(image.bytes + image_size - image.head.page_size, 0, 8);
}

static inline struct sxe__pool_shard *
image_shard(unsigned shard)
{
    return (struct sxe__pool_shard *)(image.bytes + image.head.shards_offset) + shard;
}

static inline struct sxe__pool_node *
image_node(unsigned index)
{
    return (struct sxe__pool_node *)(image.bytes + image.head.array_offset +
                                     image.head.nodes_offset) +
           index;
}

/* Make a valid pool that all users have closed, and load its file to the image. */
static inline void
make_image(void)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *array = open_pool(&spec);

    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_lt(sxe_pool_take(array, FREE, i % 2 ? READY : BUSY), 64);
    sxe_pool_delete(array);
    load_image();
}

/* Open the pool. If many processes open it on a busy machine, one may get EAGAIN: try again. */
static inline char *
open_patiently(const SXE_POOL_SPEC *spec)
{
    char *array = sxe_pool_open(spec, why);

    for (unsigned tries = 0; array == NULL && errno == EAGAIN && tries < 1000; tries++)
        array = sxe_pool_open(spec, why);
    ck_assert_msg(array != NULL, "%s", why);
    return array;
}

static inline void
expect_why(const char *words)
{
    ck_assert_msg(strstr(why, words) != NULL, "\"%s\" does not say \"%s\"", why, words);
}

static inline void
expect_refused(const SXE_POOL_SPEC *spec, int error, const char *words)
{
    why[0] = '\0';
    char *array = sxe_pool_open(spec, why);

    ck_assert_msg(array == NULL, "it was opened");
    ck_assert_msg(errno == error, "%s (%s)", strerror(errno), why);
    expect_why(words);
    ck_assert_ptr_null(sxe_pool_open(spec, NULL));
    ck_assert_int_eq(errno, error);
}

static inline void
expect_found(const SXE_POOL_SPEC *spec, SXE_POOL_FOUND found)
{
    char *array = open_pool(spec);

    ck_assert_int_eq(sxe_pool_get_found(array), found);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    sxe_pool_delete(array);
}

static inline void
walk_all(char *array, unsigned state)
{
    SXE_POOL_WALKER walker;
    unsigned steps = 0;

    sxe_pool_walker_construct(&walker, array, state);
    while (sxe_pool_walker_step(&walker) < 64)
        ck_assert_uint_le(++steps, 64);
}

/* Make each kind of call. The pool may contain anything, but each call must return. */
static inline void
use_all(char *array)
{
    size_t size;

    for (unsigned id = 0; id < 64; id++)
        sxe_pool_touch(array, id);
    for (unsigned state = 0; state < STATES; state++) {
        walk_all(array, state);
        for (unsigned i = 0; i < 10; i++)
            sxe_pool_take(array, state, (state + 1) % STATES);
        sxe_pool_get_count(array, state);
        sxe_pool_get_youngest(array, state);
    }
    memset(array, 1, 64 * 8);
    memset(sxe_pool_get_extra(array, &size), 1, 40);
    (void)!sxe_pool_check(array, why);
}

static inline bool
file_exists(void)
{
    return access(file_path, F_OK) == 0;
}

/* Kill this child. Write its coverage counters first, which a kill would lose. */
_Noreturn static inline void
die(void)
{
    fake_os_reset();
    __gcov_dump();
    raise(SIGKILL);
    abort();
}

#endif
