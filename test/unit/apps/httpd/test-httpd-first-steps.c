/* SPDX-License-Identifier: MIT
 *
 * sxe-httpd without any option: the folder that it serves, and the ways to go on that it prints. It
 * listens at a socket that the test passes, so no port is fixed.
 */
#include "../../../../apps/httpd/cli/first-steps.h"

#include "run-httpd.h"

#define FIRST_FD 3

static char folder[64];
static char page[80];
static int listener;

static void
make_folder(void)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    snprintf(folder, sizeof(folder), "/tmp/sxe-first-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(page, sizeof(page), "%s/index.html", folder);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&in4, sizeof(in4)), 0);
    ck_assert_int_eq(listen(listener, 5), 0);
}

static void
write_page(void)
{
    int fd = open(page, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    ck_assert_int_eq(write(fd, "first\n", 6), 6);
    close(fd);
}

static void
remove_folder(void)
{
    unlink(page);
    rmdir(page);
    ck_assert_int_eq(rmdir(folder), 0);
    close(listener);
}

/* Runs in the child. */
static void
enter_folder(void)
{
    char text[16];

    dup2(fcntl(listener, F_DUPFD_CLOEXEC, 100), FIRST_FD);
    snprintf(text, sizeof(text), "%d", getpid());
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", text, 1);
    if (chdir(folder) < 0)
        _exit(1);
}

static void
enter_with_option(void)
{
    setenv("SXE_MAX_BODY", "1m", 1);
    enter_folder();
}

static void
start_in_folder(void (*prepare)(void))
{
    static const char *argv[] = {"sxe-httpd", NULL};

    httpd_child.prepare = prepare;
    start_httpd(argv, STDOUT_FILENO);
}

static void
check_body(const char *body)
{
    int fd = dial();
    char reply[1024];
    ssize_t length;

    say(fd, "GET / HTTP/1.0\r\n\r\n");
    length = recv(fd, reply, sizeof(reply) - 1, MSG_WAITALL);
    ck_assert_int_gt(length, 0);
    reply[length] = '\0';
    ck_assert_str_eq(strstr(reply, "\r\n\r\n") + 4, body);
    close(fd);
}

/* Check the next line of the child; NULL: there is no more. */
static void
check_line(const char *begins)
{
    char line[256] = "";
    bool is_there = fgets(line, sizeof(line), httpd_child.says) != NULL;

    ck_assert_int_eq(is_there, begins != NULL);
    if (begins != NULL)
        ck_assert_msg(strncmp(line, begins, strlen(begins)) == 0, "said: %s", line);
}

static void
check_ways(void)
{
    check_line("    sxe-httpd -r DIR ");
    check_line("    sxe-httpd --lua FILE ");
    check_line("    sxe-httpd --help ");
    check_line("stop it with Ctrl-C\n");
}

START_TEST(a_folder_with_an_index_is_served)
{
    make_folder();
    write_page();
    start_in_folder(enter_folder);
    check_line("it serves the files of this folder, which has an index.html; ");
    check_ways();
    check_body("first\n");
    stop_httpd();
    check_line(NULL);
    remove_folder();
}
END_TEST

START_TEST(without_an_index_it_greets_and_says_what_to_do)
{
    make_folder();
    if (_i == 1)
        ck_assert_int_eq(mkdir(page, 0755), 0);
    start_in_folder(enter_folder);
    check_line("it replies \"Hello, World!\", as this folder has no index.html; ");
    check_ways();
    check_body("Hello, World!\n");
    stop_httpd();
    check_line(NULL);
    remove_folder();
}
END_TEST

START_TEST(an_option_turns_it_off_also_one_of_the_environment)
{
    make_folder();
    write_page();
    start_in_folder(enter_with_option);
    check_body("Hello, World!\n");
    stop_httpd();
    check_line(NULL);
    remove_folder();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd-first-steps");
    TCase *folders = tcase_create("folders");

    suite_add_tcase(suite, folders);
    tcase_add_test(folders, a_folder_with_an_index_is_served);
    tcase_add_loop_test(folders, without_an_index_it_greets_and_says_what_to_do, 0, 2);
    tcase_add_test(folders, an_option_turns_it_off_also_one_of_the_environment);
    return sxe_test_main(suite);
}
