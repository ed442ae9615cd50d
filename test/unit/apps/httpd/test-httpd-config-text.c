/* SPDX-License-Identifier: MIT
 *
 * The text of the configuration that processes have which are started later.
 */
#include "../../../../apps/httpd/config/config-text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake-os.h"
#include "test-main.h"

static char path[64];

static void
write_text(const char *text)
{
    FILE *file = fopen(path, "we");

    fputs(text, file);
    fclose(file);
}

static void
make_file(void)
{
    snprintf(path, sizeof(path), "/tmp/sxe-config-text-%d", getpid());
    write_text("file");
}

static void
remove_file(void)
{
    config_text_end();
    unlink(path);
}

static void
expect_text(const char *expected)
{
    size_t length;
    char *text = config_text_copy(path, &length);

    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_int_eq(memcmp(text, expected, length), 0);
    free(text);
}

static void
expect_error(int error)
{
    size_t length;

    errno = 0;
    ck_assert_ptr_null(config_text_copy(path, &length));
    ck_assert_int_eq(errno, error);
}

START_TEST(without_a_text_the_file_is_read)
{
    expect_text("file");
    write_text("other");
    expect_text("other");
    unlink(path);
    expect_error(ENOENT);
}
END_TEST

START_TEST(the_text_of_the_start_counts_until_a_load_with_another_succeeds)
{
    config_text_hold(strdup("start"), 5);
    expect_text("start");
    config_text_settle(true);
    expect_text("start");
    config_text_renew(path);
    expect_text("file");
    config_text_settle(false);
    expect_text("start");
    config_text_renew(path);
    config_text_settle(true);
    write_text("other");
    expect_text("file");
    config_text_renew(path);
    write_text("newer");
    config_text_renew(path);
    expect_text("newer");
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_an_error_of_that_load)
{
    config_text_hold(strdup("start"), 5);
    unlink(path);
    config_text_renew(path);
    expect_error(ENOENT);
    write_text("late");
    expect_error(ENOENT);
    config_text_settle(false);
    expect_text("start");
    fake_os_fail(FAKE_READ, 1, 1, EIO);
    config_text_renew(path);
    fake_os_reset();
    expect_error(EIO);
}
END_TEST

START_TEST(a_read_that_is_interrupted_goes_on)
{
    fake_os_fail(FAKE_READ, 1, 2, EINTR);
    config_text_renew(path);
    fake_os_reset();
    expect_text("file");
}
END_TEST

START_TEST(a_text_has_a_mebibyte_at_most)
{
    static char text[CONFIG_FILE_MAX + 2];

    memset(text, ' ', CONFIG_FILE_MAX);
    write_text(text);
    expect_text(text);
    text[CONFIG_FILE_MAX] = ' ';
    write_text(text);
    expect_error(EFBIG);
    config_text_renew(path);
    expect_error(EFBIG);
}
END_TEST

/* The supervisor renews the text, and must not wait. */
START_TEST(a_fifo_is_not_waited_for)
{
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    config_text_renew(path);
    expect_text("");
}
END_TEST

START_TEST(without_memory_there_is_no_text)
{
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    expect_error(ENOMEM);
    config_text_hold(strdup("start"), 5);
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    expect_error(ENOMEM);
    expect_text("start");
}
END_TEST

static Suite *
config_text_suite(void)
{
    Suite *suite = suite_create("httpd config-text");
    TCase *t = tcase_create("config-text");

    tcase_add_checked_fixture(t, make_file, remove_file);
    tcase_add_test(t, without_a_text_the_file_is_read);
    tcase_add_test(t, the_text_of_the_start_counts_until_a_load_with_another_succeeds);
    tcase_add_test(t, a_file_that_cannot_be_read_is_an_error_of_that_load);
    tcase_add_test(t, a_read_that_is_interrupted_goes_on);
    tcase_add_test(t, a_text_has_a_mebibyte_at_most);
    tcase_add_test(t, a_fifo_is_not_waited_for);
    tcase_add_test(t, without_memory_there_is_no_text);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(config_text_suite());
}
