/* SPDX-License-Identifier: MIT
 *
 * The file of a unix socket: only the file that was noted is removed.
 */
#include "sxe-workers-file-internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "test-main.h"

static char directory[64];

static void
enter(void)
{
    snprintf(directory, sizeof(directory), "/tmp/sxe-socket-file-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
}

static void
leave(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static void
make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static bool
exists(const char *path)
{
    struct stat found;

    return lstat(path, &found) == 0;
}

START_TEST(it_is_removed_once)
{
    unsigned open = fake_os_open_fds();
    struct sxe__socket_file file;
    char path[128];

    snprintf(path, sizeof(path), "%s/s", directory);
    make_socket("s");
    sxe__socket_file_note(&file, _i == 0 ? path : "s");
    sxe__socket_file_remove(&file);
    ck_assert(!exists("s"));
    make_socket("s");
    sxe__socket_file_remove(&file);
    ck_assert(exists("s"));
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_not_noted)
{
    struct sxe__socket_file file;

    ck_assert_int_eq(mkdir("d", 0700), 0);
    sxe__socket_file_note(&file, "d");
    ck_assert_str_eq(file.path, "");
    ck_assert_int_eq(symlink("/", "l"), 0);
    sxe__socket_file_note(&file, "l");
    ck_assert_str_eq(file.path, "");
    sxe__socket_file_note(&file, "/");
    ck_assert_str_eq(file.path, "");
}
END_TEST

/* Commands that change the file at the path before it is removed. */
static const char *const changes[] = {
    "rm s",
    "rm s && touch s",
    "rm s && mkdir s",
    "rm s && touch t && ln -s t s",
    "mv s t && ln -s t s",
};

START_TEST(what_took_its_place_stays)
{
    struct sxe__socket_file file;

    make_socket("s");
    sxe__socket_file_note(&file, "s");
    ck_assert_int_eq(system(changes[_i]), 0);
    sxe__socket_file_remove(&file);
    ck_assert(exists("s") == (_i > 0));
}
END_TEST

/* A user who may write to the parent directory replaces the socket's directory by another one. */
START_TEST(a_file_in_another_directory_stays)
{
    struct sxe__socket_file file;

    ck_assert_int_eq(mkdir("d", 0700), 0);
    ck_assert_int_eq(mkdir("other", 0700), 0);
    make_socket("d/s");
    make_socket("other/s");
    sxe__socket_file_note(&file, "d/s");
    ck_assert_int_eq(rename("d", "e"), 0);
    if (_i == 0)
        ck_assert_int_eq(symlink("other", "d"), 0);
    sxe__socket_file_remove(&file);
    ck_assert(exists("other/s"));
    ck_assert(exists("e/s"));
}
END_TEST

START_TEST(a_directory_that_cannot_be_opened_keeps_it)
{
    struct sxe__socket_file file;

    make_socket("s");
    sxe__socket_file_note(&file, "s");
    fake_os_fail(FAKE_OPEN, 1, 1, EMFILE);
    sxe__socket_file_remove(&file);
    ck_assert(exists("s"));
}
END_TEST

static Suite *
socket_file_suite(void)
{
    Suite *suite = suite_create("httpd socket file");
    TCase *t = tcase_create("file");

    tcase_add_checked_fixture(t, enter, leave);
    tcase_add_loop_test(t, it_is_removed_once, 0, 2);
    tcase_add_test(t, a_file_that_is_no_socket_is_not_noted);
    tcase_add_loop_test(t, what_took_its_place_stays, 0, sizeof(changes) / sizeof(changes[0]));
    tcase_add_loop_test(t, a_file_in_another_directory_stays, 0, 2);
    tcase_add_test(t, a_directory_that_cannot_be_opened_keeps_it);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(socket_file_suite());
}
