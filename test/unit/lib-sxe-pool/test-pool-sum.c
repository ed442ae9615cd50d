/* SPDX-License-Identifier: MIT
 *
 * Files whose bits changed, or whose pages were lost, while no process used them.
 */
#include "pool-file.h"

#include <sys/sysmacros.h>

#include "capture-log.h"
#include "leaks.h"
#include "test-main.h"
#include "test-sweep.h"

static const SXE_POOL_SPEC whatever = {.file = file_path};
static const SXE_POOL_SPEC repaired = {.file = file_path, .options = SXE_POOL_OPTION_REPAIR};
static const SXE_POOL_SPEC trusted = {.file = file_path, .options = SXE_POOL_OPTION_UNVERIFIED};

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
    capture_log();
    sxe_log_set_level(SXE_LOG_NONE);
}

static void
end(void)
{
    remove_the_file();
    check_that_nothing_is_left();
}

static bool
opens(const SXE_POOL_SPEC *spec)
{
    char *array = sxe_pool_open(spec, why);

    if (array != NULL)
        sxe_pool_delete(array);
    return array != NULL;
}

/* ---- Bits of a closed file ---- */

#define STRIDE (SXE_CHECKED || sxe_test_is_thin() ? 13 : 1)

START_TEST(each_bit_of_a_closed_file_is_missed_when_it_changes)
{
    make_image();
    for (size_t at = (size_t)_i % STRIDE; at < image_size; at += STRIDE) {
        image.bytes[at] ^= (uint8_t)(1u << _i);
        store_bytes(image_size);
        ck_assert_msg(!opens(&whatever), "bit %d of byte %zu went unnoticed", _i, at);
        ck_assert_msg(errno == EUCLEAN, "bit %d of byte %zu: %s", _i, at, why);
        image.bytes[at] ^= (uint8_t)(1u << _i);
    }
    store_bytes(image_size);
    ck_assert(opens(&whatever));
}
END_TEST

START_TEST(a_page_that_is_as_it_was_before_is_missed)
{
    static uint8_t old[sizeof(image)];

    make_image();
    memcpy(old, image.bytes, image_size);
    char *array = open_pool(&whatever);
    sxe_pool_write_element(array, 63, "changed");
    sxe_pool_delete(array);
    load_image();
    memcpy(image.bytes + image.head.array_offset, old + image.head.array_offset, 4096);
    store_bytes(image_size);
    expect_refused(&whatever, EUCLEAN, "is not what was in it when it was closed");
    array = sxe_pool_open(&repaired, why);
    ck_assert_msg(array != NULL, "%s", why);
    expect_why("bits changed, or pages were lost; its lists were rebuilt");
    sxe_pool_delete(array);
    expect_found(&whatever, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(who_does_not_verify_is_served_what_is_there)
{
    make_image();
    image.bytes[image.head.array_offset + 3] ^= 1;
    store_bytes(image_size);
    expect_refused(&whatever, EUCLEAN, "its sum is another");
    ck_assert(opens(&trusted));
    ck_assert(opens(&whatever)); /* the last close made no sum, so none is compared */
    const SXE_POOL_SPEC both = {.file = file_path,
                                .options = SXE_POOL_OPTION_UNVERIFIED | SXE_POOL_OPTION_VERIFIED};
    expect_refused(&both, EINVAL, "VERIFIED or UNVERIFIED, not both");
}
END_TEST

/* A user died in the middle of a change, and holds the lock. */
START_TEST(what_the_dead_have_begun_is_done_before_the_sum_is_made)
{
    make_image();
    char *array = open_pool(&whatever);
    struct sxe__pool_shard *shard = sxe__pool_header(array)->sharing->shards;
    shard->lock = 127;
    shard->intent.stamp = UINT64_MAX;
    shard->intent.id = UINT32_MAX;
    sxe_pool_delete(array);
    load_image();
    ck_assert_uint_eq(image.head.is_summed, 0);
    expect_refused(&whatever, EUCLEAN, "a lock's owner left what no program can have written");
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_stays_closed)
{
    const SXE_POOL_SPEC spec = {FILE_SPEC};

    make_image();
    for (int failing = 0; failing < 2; failing++) {
        if (failing == 0)
            fake_os_fail(FAKE_MSYNC, 1, 1, EIO);
        else
            fake_os_fail(FAKE_POSIX_FALLOCATE, 1, 1, ENOSPC);
        ck_assert(!opens(&spec));
        expect_found(&spec, SXE_POOL_CLOSED);
    }
}
END_TEST

/* A file that an earlier release of the library closed. */
START_TEST(a_file_of_an_earlier_release_opens)
{
    make_image();
    image.head.closed = SXE__POOL_CLOSED_BEFORE;
    image.head.is_summed = 1;
    image.head.slots[3].generation++;
    store_image(image_size);
    image.head.slots[3].generation++; /* an earlier release did not include the slots in its sum */
    store_bytes(image_size);
    expect_found(&whatever, SXE_POOL_CLOSED);
    load_image();
    ck_assert_uint_eq(image.head.closed, SXE__POOL_CLOSED_MARK);
    ck_assert_uint_eq(image.head.is_summed, SXE__POOL_CLOSED_MARK);
}
END_TEST

/* A failed open leaves the head as it was, so that the sum still fits. */
START_TEST(a_file_whose_user_cannot_be_told_of_stays_closed)
{
    make_image();
    for (unsigned slot = 0; slot < SXE_POOL_SLOTS; slot++)
        ck_assert_uint_eq(image.head.slots[slot].process, 0);
    fake_os_fail(FAKE_MSYNC, 1, 1, EIO);
    ck_assert(!opens(&whatever));
    static uint8_t old[sizeof(image)];
    memcpy(old, image.bytes, image_size);
    load_image();
    ck_assert_mem_eq(image.bytes, old, image_size);
}
END_TEST

/* ---- The head and its copy ---- */

/* After a kill no sum is compared, so a damaged copy is no error. */
START_TEST(a_copy_that_is_damaged_while_in_use_is_written_again)
{
    make_image();
    image.head.closed = SXE__POOL_IN_USE;
    spoil_copy();
    store_bytes(image_size);
    expect_found(&whatever, SXE_POOL_COMPLETED);
    load_image();
    ck_assert_mem_eq(image.bytes + image_size - image.head.page_size, SXE__POOL_FILE_MAGIC, 8);
    expect_found(&whatever, SXE_POOL_CLOSED);
}
END_TEST

static void
zero_head(void)
{
    memset(image.bytes, 0, sizeof(struct sxe__pool_head));
}

static void
other_magic(void)
{
    image.bytes[1] ^= 64;
}

static void
other_number(void)
{
    image.head.number++;
}

static void
other_version(void)
{
    image.head.version ^= 1;
}

static void (*const damages[])(void) = {zero_head, other_magic, other_number, other_version};

START_TEST(a_head_that_is_damaged_is_made_again_of_its_copy)
{
    make_image();
    damages[_i]();
    store_bytes(image_size);
    expect_refused(&whatever, EUCLEAN, "the copy of the head at the end of the file is whole");
    char *array = sxe_pool_open(&repaired, why);
    ck_assert_msg(array != NULL, "%s", why);
    expect_why("its head was damaged, and is that of the copy at the end of the file");
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_REBUILT);
    ck_assert_uint_eq(sxe_pool_get_count(array, READY), 10);
    use_all(array);
    sxe_pool_delete(array);
    expect_found(&whatever, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(a_head_is_not_made_again_while_the_pool_is_in_use)
{
    make_image();
    char *array = open_pool(&whatever);
    struct sxe__pool_head *head = sxe__pool_header(array)->sharing->head;
    head->number++;
    expect_refused(&repaired, EUCLEAN, "its head is damaged, and it is in use");
    head->number--;
    sxe_pool_delete(array);
    expect_found(&whatever, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(a_head_and_a_copy_that_are_damaged_are_no_pool)
{
    make_image();
    other_number();
    spoil_copy();
    store_bytes(image_size);
    expect_refused(&repaired, EMEDIUMTYPE, "its checksum is wrong");
}
END_TEST

START_TEST(a_head_that_cannot_be_written_is_said)
{
    make_image();
    other_number();
    store_bytes(image_size);
    fake_os_fail(FAKE_PWRITE, 1, 0, EIO);
    expect_refused(&repaired, EIO, "cannot write the head");
}
END_TEST

/* ---- Disks ---- */

static char disks[64];

/* Write the number of the disk that holds the file, or of the disk of which that is a partition. */
static void
number_disk(const char *number, bool is_part)
{
    struct stat status;
    char path[160];

    make_image();
    ck_assert_int_eq(stat(file_path, &status), 0);
    snprintf(path, sizeof(path), "%s/%u:%u", disks, major(status.st_dev), minor(status.st_dev));
    mkdir(path, 0700);
    const size_t length = is_part ? strlen(disks) : strlen(path);
    snprintf(path + length, sizeof(path) - length, "/diskseq");
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, number, strlen(number)), (ssize_t)strlen(number));
    close(fd);
}

static void
begin_disks(void)
{
    begin();
    snprintf(disks, sizeof(disks), "/tmp/test-pool-disks-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(disks));
    sxe__pool_disks = disks;
}

static void
end_disks(void)
{
    struct stat status;
    char path[160];

    ck_assert_int_eq(stat(file_path, &status), 0);
    snprintf(path, sizeof(path), "%s/%u:%u/diskseq", disks, major(status.st_dev),
             minor(status.st_dev));
    unlink(path);
    path[strlen(path) - strlen("/diskseq")] = '\0';
    rmdir(path);
    snprintf(path, sizeof(path), "%s/diskseq", disks);
    unlink(path);
    ck_assert_int_eq(rmdir(disks), 0);
    end();
}

static void
leave_in_use(void)
{
    load_image();
    image.head.closed = 0;
    store_bytes(image_size);
}

START_TEST(a_disk_that_was_detached_in_use_may_have_lost_pages)
{
    number_disk("7\n", _i == 1);
    ck_assert(opens(&whatever));
    leave_in_use();
    ck_assert_uint_eq(image.head.disk, 7);
    expect_found(&whatever, SXE_POOL_COMPLETED);
    number_disk("8\n", _i == 1);
    /* the pool was closed before the disk was detached, so no write was lost */
    ck_assert(opens(&whatever));
    leave_in_use();
    image.head.disk = 7;
    store_bytes(image_size);
    expect_refused(&whatever, EUCLEAN, "its disk was detached while it was in use");
    image.head.disk = 0;
    store_bytes(image_size);
    expect_found(&whatever, SXE_POOL_COMPLETED);
}
END_TEST

START_TEST(a_disk_that_the_kernel_does_not_number_is_not_known)
{
    number_disk("", false);
    ck_assert(opens(&whatever));
    load_image();
    ck_assert_uint_eq(image.head.disk, 0);
    const int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    fake_os_fail(FAKE_FSTAT, 1, 1, EIO);
    ck_assert_uint_eq(sxe__pool_disk(fd), 0);
    close(fd);
}
END_TEST

static Suite *
suite(void)
{
    Suite *suite = suite_create("pool-sum");
    TCase *tcase = tcase_create("sums");
    TCase *of_disks = tcase_create("disks");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, each_bit_of_a_closed_file_is_missed_when_it_changes, 0, 8);
    tcase_add_test(tcase, a_page_that_is_as_it_was_before_is_missed);
    tcase_add_test(tcase, who_does_not_verify_is_served_what_is_there);
    tcase_add_test(tcase, what_the_dead_have_begun_is_done_before_the_sum_is_made);
    tcase_add_test(tcase, a_file_that_cannot_be_opened_stays_closed);
    tcase_add_test(tcase, a_file_of_an_earlier_release_opens);
    tcase_add_test(tcase, a_file_whose_user_cannot_be_told_of_stays_closed);
    tcase_add_test(tcase, a_copy_that_is_damaged_while_in_use_is_written_again);
    tcase_add_loop_test(tcase, a_head_that_is_damaged_is_made_again_of_its_copy, 0, 4);
    tcase_add_test(tcase, a_head_is_not_made_again_while_the_pool_is_in_use);
    tcase_add_test(tcase, a_head_and_a_copy_that_are_damaged_are_no_pool);
    tcase_add_test(tcase, a_head_that_cannot_be_written_is_said);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(of_disks, begin_disks, end_disks);
    tcase_add_loop_test(of_disks, a_disk_that_was_detached_in_use_may_have_lost_pages, 0, 2);
    tcase_add_test(of_disks, a_disk_that_the_kernel_does_not_number_is_not_known);
    suite_add_tcase(suite, of_disks);
    return suite;
}

int
main(void)
{
    return sxe_test_main(suite());
}
