/* SPDX-License-Identifier: MIT
 *
 * Malformed files: they are refused with a reason, or opened without harm.
 */
#include "pool-file.h"

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "capture-log.h"
#include "fake-os.h"
#include "leaks.h"
#include "test-main.h"
#include "test-sweep.h"

static const SXE_POOL_SPEC whatever = {.file = file_path};

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
    capture_log();
    sxe_log_set_level(SXE_LOG_WARNING);
}

static void
end(void)
{
    remove_the_file();
    check_that_nothing_is_left();
}

/* ---- Random changes ---- */

static void
check_that_the_file_is_the_image(size_t size)
{
    static uint8_t bytes[sizeof(image)];
    const int fd = open(file_path, O_RDONLY);

    ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), (ssize_t)size);
    ck_assert(memcmp(bytes, image.bytes, size) == 0);
    close(fd);
}

/* Open the image. If it is refused, there is a reason; a file that is not a pool's stays unchanged.
 * Returns whether it was opened. */
static bool
try_image(size_t size)
{
    store_image(size);
    why[0] = '\0';
    char *array = sxe_pool_open(&whatever, why);

    if (array == NULL) {
        const int error = errno;
        ck_assert_msg(error == EMEDIUMTYPE || error == EUCLEAN, "%s (%s)", strerror(error), why);
        ck_assert_str_ne(why, "");
        if (error == EMEDIUMTYPE)
            check_that_the_file_is_the_image(size);
        return false;
    }
    ck_assert_uint_eq(sxe_pool_get_number(array), 64);
    use_all(array);
    sxe_pool_delete(array);
    return true;
}

/* The size of the part of the head that its checksum covers, checksum included. */
#define FIXED_SIZE (offsetof(struct sxe__pool_head, checksum) + sizeof(uint64_t))

/* Builds with sanitizers, and short runs, try only one of five cases. */
#define STRIDE (SXE_CHECKED || sxe_test_is_thin() ? 5 : 1)

START_TEST(each_bit_of_a_file_may_be_wrong)
{
    capture_log();
    sxe_log_set_level(SXE_LOG_NONE);
    make_image();
    for (size_t at = (size_t)_i % STRIDE; at < image_size; at += STRIDE) {
        image.bytes[at] ^= (uint8_t)(1u << _i);
        const bool opened = try_image(image_size);
        ck_assert_msg(!opened || at >= FIXED_SIZE, "bit %d of byte %zu went unnoticed", _i, at);
        image.bytes[at] ^= (uint8_t)(1u << _i);
    }
    ck_assert(try_image(image_size));
}
END_TEST

START_TEST(a_file_may_be_cut_at_each_length)
{
    make_image();
    for (size_t size = 0; size < image_size; size += STRIDE)
        ck_assert_msg(!try_image(size), "cut at %zu", size);
    memset(image.bytes + image_size, 0, 10);
    ck_assert(!try_image(image_size + 1));
    expect_why("bytes, the pool in it");
    ck_assert(try_image(image_size));
}
END_TEST

/* The generator xorshift, which gives the same numbers on each machine. */
static uint32_t
random_below(uint32_t limit)
{
    static uint32_t state = 2463534242;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % limit;
}

START_TEST(words_behind_the_head_may_be_anything)
{
    static const uint32_t likely[] = {0, 1, 2, 63, 64, 65, 69, 70, 71, UINT32_MAX, 1u << 31};
    static uint8_t good[sizeof(image)];

    capture_log();
    sxe_log_set_level(SXE_LOG_NONE);
    make_image();
    memcpy(good, image.bytes, image_size);
    for (unsigned round = 0; round < 3000 / STRIDE; round++) {
        for (unsigned words = random_below(4) + 1; words > 0; words--) {
            const size_t at =
                FIXED_SIZE + 4 * random_below((uint32_t)(image_size - FIXED_SIZE) / 4);
            const uint32_t word =
                random_below(2) ? likely[random_below(11)] : random_below(UINT32_MAX);
            memcpy(image.bytes + at, &word, sizeof(word));
        }
        try_image(image_size);
        memcpy(image.bytes, good, image_size);
    }
}
END_TEST

/* ---- Forged heads whose checksum is right ---- */

static void
zero_number(struct sxe__pool_head *head)
{
    head->number = 0;
}

static void
huge_number(struct sxe__pool_head *head)
{
    head->number = UINT32_MAX;
}

static void
large_number(struct sxe__pool_head *head)
{
    head->number = UINT32_MAX - 100;
}

static void
huge_size(struct sxe__pool_head *head)
{
    head->element_size = UINT64_MAX;
}

static void
overflowing_size(struct sxe__pool_head *head)
{
    head->element_size = UINT64_C(1) << 58;
}

static void
huge_states(struct sxe__pool_head *head)
{
    head->states = UINT32_MAX;
    head->state_names[0] = '\0';
}

static void
zero_shards(struct sxe__pool_head *head)
{
    head->shards = 0;
}

static void
huge_shards(struct sxe__pool_head *head)
{
    head->shards = 1u << 31;
}

static void
huge_extra(struct sxe__pool_head *head)
{
    head->extra_size = UINT64_MAX - 4096;
}

static void
other_array_offset(struct sxe__pool_head *head)
{
    head->array_offset = 0;
}

static void
other_nodes_offset(struct sxe__pool_head *head)
{
    head->nodes_offset += 64;
}

static void
other_file_size(struct sxe__pool_head *head)
{
    head->file_size += 4096;
}

static void
endless_name(struct sxe__pool_head *head)
{
    memset(head->name, 'x', sizeof(head->name));
}

static void
endless_state_names(struct sxe__pool_head *head)
{
    memset(head->state_names, 'x', sizeof(head->state_names));
}

static void
endless_fields(struct sxe__pool_head *head)
{
    memset(head->fields, 'x', sizeof(head->fields));
}

static void
more_names(struct sxe__pool_head *head)
{
    snprintf(head->state_names, sizeof(head->state_names), "FREE READY BUSY DONE");
}

static void
delete_in_fields(struct sxe__pool_head *head)
{
    snprintf(head->fields, sizeof(head->fields), "u64 hits\177");
}

static void
other_version(struct sxe__pool_head *head)
{
    head->version = 1;
}

static void
other_fixed_size(struct sxe__pool_head *head)
{
    head->fixed_size += 8;
}

static void
no_page_size(struct sxe__pool_head *head)
{
    head->page_size = 0;
}

static void
small_page_size(struct sxe__pool_head *head)
{
    head->page_size = 1024;
}

static void
huge_page_size(struct sxe__pool_head *head)
{
    head->page_size = 1u << 31;
}

static void
other_byte_order(struct sxe__pool_head *head)
{
    head->byte_order = __builtin_bswap32(head->byte_order);
}

static void
other_magic(struct sxe__pool_head *head)
{
    memcpy(head->magic, "\177ELF", 4);
}

static const struct {
    void (*forge)(struct sxe__pool_head *head);
    const char *words;
} forged[] = {
    {zero_number, "none of these may be 0"},
    {huge_number, "too much for one pool"},
    {large_number, "not where its numbers put them"},
    {huge_size, "too much for one pool"},
    {overflowing_size, "too much for one pool"},
    {huge_states, "too much for one pool"},
    {zero_shards, "0 shards: must be a power of 2"},
    {huge_shards, "2147483648 shards: must be a power of 2"},
    {huge_extra, "too much for one pool"},
    {other_array_offset, "not where its numbers put them"},
    {other_nodes_offset, "not where its numbers put them"},
    {other_file_size, "not where its numbers put them"},
    {endless_name, "a name has no end"},
    {endless_state_names, "a name has no end"},
    {endless_fields, "a name has no end"},
    {more_names, "must be as many words as states"},
    {delete_in_fields, "a control character"},
    {other_version, "the pool is of version 1, this library makes version 3 and reads no other"},
    {other_fixed_size, "the pool is of version 3, this library makes version 3"},
    {no_page_size, "with pages of 0 bytes, and this machine has pages of"},
    {small_page_size, "with pages of 1024 bytes, and this machine has pages of"},
    {huge_page_size, "with pages of 2147483648 bytes, and this machine has pages of"},
    {other_byte_order, "another byte order"},
    {other_magic, "the file is not that of a pool"},
};

START_TEST(a_forged_head_is_refused_and_why_is_said)
{
    make_image();
    spoil_copy();
    forged[_i].forge(&image.head);
    sxe__pool_head_seal(&image.head);
    store_image(image_size);
    expect_refused(&whatever, EMEDIUMTYPE, forged[_i].words);
}
END_TEST

/* Compute FNV-1a over all that precedes the checksum, and store it there. */
static void
make_the_checksum_right(void)
{
    image.head.checksum = UINT64_C(0xcbf29ce484222325);
    for (size_t at = 0; at < offsetof(struct sxe__pool_head, checksum); at++)
        image.head.checksum = (image.head.checksum ^ image.bytes[at]) * UINT64_C(0x100000001b3);
}

START_TEST(a_layout_that_is_not_that_of_the_numbers_is_refused)
{
    make_image();
    spoil_copy();
    const struct sxe__pool_head good = image.head;
    make_the_checksum_right();
    ck_assert_uint_eq(image.head.checksum, good.checksum);
    image.head.extra_offset += 64;
    make_the_checksum_right();
    store_image(image_size);
    expect_refused(&whatever, EMEDIUMTYPE, "not where its numbers put them");
    image.head = good;
    image.head.layout++;
    make_the_checksum_right();
    store_image(image_size);
    expect_refused(&whatever, EMEDIUMTYPE, "not where its numbers put them");
    image.head = good;
    image.head.checksum++;
    store_image(image_size);
    expect_refused(&whatever, EMEDIUMTYPE, "its checksum is wrong");
}
END_TEST

/* ---- Files that are not a pool ---- */

START_TEST(an_empty_file_becomes_a_pool)
{
    const SXE_POOL_SPEC spec = file_spec();

    store_image(0);
    expect_refused(&whatever, EMEDIUMTYPE, "no pool is in the file");
    expect_found(&spec, SXE_POOL_CREATED);
}
END_TEST

START_TEST(what_a_dead_maker_left_is_made_anew)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    memset(image.bytes, 0, sizeof(image));
    store_image(image_size);
    expect_refused(&whatever, EMEDIUMTYPE, "no pool is in the file");
    struct stat status;
    ck_assert_int_eq(stat(file_path, &status), 0);
    /* The size stays: the file may be another program's. */
    ck_assert_int_eq(status.st_size, (off_t)image_size);
    expect_found(&spec, SXE_POOL_CREATED);
    expect_found(&spec, SXE_POOL_CLOSED);
    load_image();
    memset(image.bytes + 8, 'x', sizeof(image) - 8);
    memcpy(image.head.magic, SXE__POOL_FILE_UNFINISHED, sizeof(image.head.magic));
    store_image(image_size);
    expect_refused(&whatever, EMEDIUMTYPE, "no pool is in the file");
    char *array = open_pool(&spec);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CREATED);
    for (unsigned at = 0; at < 64 * 8; at++)
        ck_assert_int_eq(array[at], 0);
    sxe_pool_delete(array);
}
END_TEST

/* Another program's data, for example the image of a disk, whose first block is often zero. */
START_TEST(a_file_that_begins_with_zeros_is_left_alone)
{
    static const size_t places[] = {1024, 4096, 20000, sizeof(image) - 1};
    const SXE_POOL_SPEC spec = file_spec();

    for (unsigned i = 0; i < SXE_COUNT(places); i++) {
        memset(image.bytes, 0, sizeof(image));
        image.bytes[places[i]] = 1;
        store_image(sizeof(image));
        expect_refused(&spec, EMEDIUMTYPE, "the file begins with zeros, and other data follow");
        expect_refused(&whatever, EMEDIUMTYPE, "the file begins with zeros");
        load_image();
        ck_assert_uint_eq(image_size, sizeof(image));
        ck_assert_uint_eq(image.bytes[places[i]], 1);
    }
}
END_TEST

/* Data after a hole of a terabyte, which must not be read; then a file that is only the hole. */
START_TEST(a_file_that_is_all_hole_but_its_end_is_left_alone)
{
    const SXE_POOL_SPEC spec = file_spec();
    const off_t size = (off_t)1 << 40;
    const int fd = open(file_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char byte = 0;

    ck_assert_int_eq(pwrite(fd, "x", 1, size), 1);
    expect_refused(&spec, EMEDIUMTYPE, "the file begins with zeros");
    ck_assert_int_eq(pread(fd, &byte, 1, size), 1);
    ck_assert_int_eq(byte, 'x');
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(ftruncate(fd, size), 0);
    expect_found(&spec, SXE_POOL_CREATED);
    close(fd);
}
END_TEST

START_TEST(a_file_whose_zeros_cannot_be_read_is_left_alone)
{
    const SXE_POOL_SPEC spec = file_spec();

    memset(image.bytes, 0, sizeof(image));
    store_image(sizeof(image));
    /* The sixth read: after the head, and after the four places where its copy might be. */
    fake_os_fail(FAKE_PREAD, 6, 1, EIO);
    ck_assert_ptr_null(sxe_pool_open(&spec, why));
    expect_why("cannot read the file: Input/output error");
    fake_os_reset();
    fake_os_fail(FAKE_LSEEK, 2, 1, EINVAL);
    ck_assert_ptr_null(sxe_pool_open(&spec, why));
    expect_why("cannot read the file: Invalid argument");
    fake_os_reset();
    load_image();
    ck_assert_uint_eq(image_size, sizeof(image));
}
END_TEST

START_TEST(a_file_that_was_emptied_in_use_is_left_alone)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    const int fd = open(file_path, O_RDWR | O_CLOEXEC);
    struct flock user = {.l_type = F_WRLCK, .l_start = SXE__POOL_SLOT_BYTE, .l_len = 1};
    ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &user), 0);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    expect_refused(&spec, EMEDIUMTYPE, "when nobody uses it");
    close(fd);
    expect_found(&spec, SXE_POOL_CREATED);
}
END_TEST

START_TEST(a_short_text_is_no_pool)
{
    const SXE_POOL_SPEC spec = file_spec();

    memcpy(image.bytes, "Dear diary,", 11);
    store_image(11);
    expect_refused(&spec, EMEDIUMTYPE, "the file is too short for a pool");
    load_image();
    ck_assert_mem_eq(image.bytes, "Dear diary,", 11);
}
END_TEST

START_TEST(a_symbolic_link_is_not_followed)
{
    const SXE_POOL_SPEC spec = file_spec();
    char path[80];

    make_image();
    snprintf(path, sizeof(path), "%s-there", file_path);
    ck_assert_int_eq(rename(file_path, path), 0);
    ck_assert_int_eq(symlink(path, file_path), 0);
    expect_refused(&spec, ELOOP, "it is a symbolic link");
    unlink(path);
    expect_refused(&spec, ELOOP, "it is a symbolic link");
}
END_TEST

START_TEST(a_directory_is_refused)
{
    const SXE_POOL_SPEC spec = file_spec();

    ck_assert_int_eq(mkdir(file_path, 0700), 0);
    expect_refused(&spec, EISDIR, "cannot open the file: Is a directory");
    ck_assert_int_eq(rmdir(file_path), 0);
}
END_TEST

START_TEST(a_fifo_is_refused_at_once)
{
    const SXE_POOL_SPEC spec = file_spec();

    ck_assert_int_eq(mkfifo(file_path, 0600), 0);
    expect_refused(&spec, EMEDIUMTYPE, "it is not a regular file");
}
END_TEST

START_TEST(a_socket_is_refused)
{
    const SXE_POOL_SPEC spec = file_spec();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", file_path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    expect_refused(&spec, ENXIO, "cannot open the file");
    close(fd);
}
END_TEST

START_TEST(a_directory_that_is_not_there_is_said)
{
    SXE_POOL_SPEC spec = file_spec();

    spec.file = "/dev/shm/there-is-no/such-directory";
    expect_refused(&spec, ENOENT, "cannot open the file: No such file or directory");
}
END_TEST

START_TEST(a_file_of_another_user_is_refused)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    fake_os_fail(FAKE_GETEUID, 1, 0, EPERM);
    expect_refused(&spec, EPERM, "this process is user 4294967295's");
    fake_os_reset();
    expect_found(&spec, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(a_file_that_others_may_write_is_refused)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    ck_assert_int_eq(chmod(file_path, 0666), 0);
    expect_refused(&spec, EPERM, "others may write to the file (mode 0666)");
    ck_assert_int_eq(chmod(file_path, 0620), 0);
    expect_refused(&spec, EPERM, "(mode 0620)");
    ck_assert_int_eq(chmod(file_path, 0644), 0);
    expect_found(&spec, SXE_POOL_CLOSED);
}
END_TEST

/* Root may write any file, so the child becomes an ordinary user first. */
START_TEST(a_file_that_may_only_be_read_is_refused)
{
    const SXE_POOL_SPEC spec = file_spec();

    make_image();
    ck_assert_int_eq(chmod(file_path, 0444), 0);
    const pid_t child = fork();
    if (child == 0) {
        ck_assert(geteuid() != 0 || setuid(65534) == 0);
        expect_refused(&spec, EACCES, "cannot open the file: Permission denied");
        _exit(0);
    }
    end_child(child, 0);
}
END_TEST

/* ---- Disk space ---- */

START_TEST(a_file_that_has_no_room_is_removed_again)
{
    SXE_POOL_SPEC spec = file_spec();
    char directory[] = "/tmp/test-pool-XXXXXX";
    char path[64];
    bool full;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    full = mount("none", directory, "tmpfs", 0, "size=1m") == 0;
    snprintf(path, sizeof(path), "%s/pool", directory);
    spec.file = path;
    if (!full)
        fake_os_fail(FAKE_POSIX_FALLOCATE, 2, 0, ENOSPC);
    char *array = open_pool(&spec);
    spec.file = file_path;
    snprintf(file_path, sizeof(file_path), "%s/other", directory);
    spec.number = 1000000;
    expect_refused(&spec, ENOSPC, "cannot have room for all of the file: ");
    ck_assert(!file_exists());
    use_all(array);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    sxe_pool_delete(array);
    unlink(path);
    if (full)
        umount(directory);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(a_copy_with_holes_gets_room)
{
    SXE_POOL_SPEC spec = file_spec();
    struct stat status;

    spec.extra_size = 20000;
    sxe_pool_delete(open_pool(&spec));
    load_image();
    const int fd = open(file_path, O_RDWR | O_TRUNC | O_CLOEXEC);
    const size_t used = image_size - 16384;
    ck_assert_int_eq(pwrite(fd, image.bytes, used, 0), (ssize_t)used);
    /* The copy of the head is written, it is not a hole. */
    const size_t page = image.head.page_size;
    ck_assert_int_eq(pwrite(fd, image.bytes + image_size - page, page, (off_t)(image_size - page)),
                     (ssize_t)page);
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_int_lt(status.st_blocks * 512, status.st_size);
    char *array = open_pool(&spec);
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_int_ge(status.st_blocks * 512, status.st_size);
    sxe_pool_delete(array);
    close(fd);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-file");
    TCase *rubbish = tcase_create("rubbish");
    TCase *heads = tcase_create("heads");
    TCase *others = tcase_create("others");

    tcase_add_checked_fixture(rubbish, begin, end);
    tcase_add_loop_test(rubbish, each_bit_of_a_file_may_be_wrong, 0, 8);
    tcase_add_test(rubbish, a_file_may_be_cut_at_each_length);
    tcase_add_test(rubbish, words_behind_the_head_may_be_anything);
    suite_add_tcase(s, rubbish);

    tcase_add_checked_fixture(heads, begin, end);
    tcase_add_loop_test(heads, a_forged_head_is_refused_and_why_is_said, 0, LENGTH_OF(forged));
    tcase_add_test(heads, a_layout_that_is_not_that_of_the_numbers_is_refused);
    suite_add_tcase(s, heads);

    tcase_add_checked_fixture(others, begin, end);
    tcase_add_test(others, an_empty_file_becomes_a_pool);
    tcase_add_test(others, what_a_dead_maker_left_is_made_anew);
    tcase_add_test(others, a_file_that_begins_with_zeros_is_left_alone);
    tcase_add_test(others, a_file_that_is_all_hole_but_its_end_is_left_alone);
    tcase_add_test(others, a_file_whose_zeros_cannot_be_read_is_left_alone);
    tcase_add_test(others, a_file_that_was_emptied_in_use_is_left_alone);
    tcase_add_test(others, a_short_text_is_no_pool);
    tcase_add_test(others, a_symbolic_link_is_not_followed);
    tcase_add_test(others, a_directory_is_refused);
    tcase_add_test(others, a_fifo_is_refused_at_once);
    tcase_add_test(others, a_socket_is_refused);
    tcase_add_test(others, a_directory_that_is_not_there_is_said);
    tcase_add_test(others, a_file_of_another_user_is_refused);
    tcase_add_test(others, a_file_that_others_may_write_is_refused);
    tcase_add_test(others, a_file_that_may_only_be_read_is_refused);
    tcase_add_test(others, a_file_that_has_no_room_is_removed_again);
    tcase_add_test(others, a_copy_with_holes_gets_room);
    suite_add_tcase(s, others);

    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
