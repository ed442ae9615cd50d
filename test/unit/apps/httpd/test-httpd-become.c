/* SPDX-License-Identifier: MIT
 *
 * Becoming the user of --user: its name, and the change. Most cases become the user that they have
 * already, so that they can write their coverage; only a child becomes another user.
 */
#include "run-httpd.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../../../apps/httpd/process/become.h"

static const char file_path[] = "become-log";

/* ---- Names ---- */

static const struct {
    const char *text;
    const char *name;
    uid_t user;
    gid_t group;
} known[] = {
    {"root", "root", 0, 0},
    {"root:root", "root", 0, 0},
    {"0", "root", 0, 0},
    {"0:7", "root", 0, 7},
    {"root:4294967294", "root", 0, 4294967294u},
    {"4000000000:4000000001", "", 4000000000u, 4000000001u},
};

START_TEST(users_and_groups_have_names_or_numbers)
{
    struct become become = {0};

    ck_assert(become_parse(&become, known[_i].text));
    ck_assert(become.is_given);
    ck_assert_str_eq(become.name, known[_i].name);
    ck_assert_uint_eq(become.user, known[_i].user);
    ck_assert_uint_eq(become.group, known[_i].group);
}
END_TEST

static const char *const unknown[] = {"",
                                      ":",
                                      "no-such-user",
                                      "root:",
                                      "root:no-such-group",
                                      "root:4294967295",
                                      "4294967295:0",
                                      "4000000000",
                                      "-1:0",
                                      "0x0:0"};

START_TEST(unknown_ones_are_refused)
{
    RUN_HTTPD("--user", unknown[_i]);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: the user that serves (--user) is '");
    check_has(ran.errors, "'; it must be a user of this machine, or USER:GROUP; a numeric user");
}
END_TEST

START_TEST(a_name_that_is_too_long_for_any_user_is_refused)
{
    struct become become = {0};
    char text[BECOME_NAME + 1];

    memset(text, 'a', BECOME_NAME);
    text[BECOME_NAME] = '\0';
    ck_assert(!become_parse(&become, text));
}
END_TEST

/* ---- Rights to change the user ---- */

START_TEST(only_root_may_become_another_user)
{
    fake_os_fail(FAKE_GETEUID, 1, 0, EPERM);
    RUN_HTTPD("-p", "0", "--user", "root");
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.errors,
                     "sxe-httpd: cannot become user 0 (--user): only root can; start it as root, "
                     "or leave out --user and start it as the user that serves\n");
    fake_os_fail(FAKE_GETEUID, 1, 0, EPERM);
    RUN_HTTPD("--check", "--user", "root");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.errors,
              "sxe-httpd: files are checked as user 4294967295, not as user 0 (--user)");
}
END_TEST

START_TEST(root_that_is_meant_is_not_warned)
{
    fake_os_fail(FAKE_GETEUID, 1, 0, 0);
    RUN_HTTPD("-p", "0", "--user", "root", "--unix", "/nonexistent/socket");
    ck_assert_int_eq(ran.status, 1);
    ck_assert_ptr_null(strstr(ran.errors, "started as root"));
}
END_TEST

/* ---- --chroot ---- */

#define OTHER "4000000000:4000000001"

START_TEST(only_root_may_enter_a_directory)
{
    const struct become become = {.is_given = true, .user = (uid_t)-1, .root = "/"};

    fake_os_fail(FAKE_GETEUID, 1, 1, EPERM);
    ck_assert_int_eq(become_begin(&become), -EPERM);
    fake_os_fail(FAKE_GETEUID, 1, 1, EPERM);
    RUN_HTTPD("-p", "0", "--chroot", "/", "--user", OTHER);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "cannot become user 4000000000 (--user)");
}
END_TEST

/* Root "becomes" another user, but the calls that would do it are not made, so that the case can
 * write its coverage. */
static void
pretend_to_be_root(void)
{
    static const enum fake_call kind = FAKE_SETUID;

    fake_os_fail(FAKE_GETEUID, 1, 0, 0);
    fake_os_fail(FAKE_PRCTL, 1, 0, 0);
    fake_os_fail(FAKE_CHROOT, 1, 1, 0);
    fake_os_fail(FAKE_SETGROUPS, 1, 1, 0);
    fake_os_fail(FAKE_SETGID, 1, 1, 0);
    fake_os_fail(FAKE_SETUID, 1, 1, 0);
    fake_os_sweep(&kind, 1, 1, true, EPERM);
}

static const char *const looks[] = {"--check", "--plan"};

START_TEST(what_is_looked_at_is_in_the_directory)
{
    pretend_to_be_root();
    RUN_HTTPD(looks[_i], "--chroot", "/", "--user", OTHER, "-r", "tmp");
    ck_assert_int_eq(ran.status, 0);
    fake_os_fail(FAKE_CHROOT, 1, 1, ENOENT);
    RUN_HTTPD(looks[_i], "--chroot", "/", "--user", OTHER);
    ck_assert_int_ne(ran.status, 0);
    check_has(
        ran.errors,
        "sxe-httpd: cannot make '/' the root directory (--chroot): No such file or directory; "
        "root can, with an existing directory, and a container needs CAP_SYS_CHROOT for that");
}
END_TEST

START_TEST(files_are_looked_at_as_the_user_who_serves)
{
    pretend_to_be_root();
    RUN_HTTPD("--check", "--user", OTHER, "-r", "/nonexistent");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: files were opened as user 4000000000, group 4000000001");
    pretend_to_be_root();
    RUN_HTTPD("--check", "--user", "root", "-r", "/nonexistent");
    ck_assert_int_eq(ran.status, 2);
    ck_assert_ptr_null(strstr(ran.errors, "were opened as user"));
    pretend_to_be_root();
    fake_os_fail(FAKE_SETGID, 1, 1, EPERM);
    RUN_HTTPD("--check", "--user", OTHER);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: cannot become user 4000000000, group 4000000001 (--user)");
}
END_TEST

/* ---- The owner of the log's file ---- */

START_TEST(only_a_file_that_is_missing_is_made_and_only_by_root)
{
    struct become become = {.user = geteuid(), .group = getegid()};
    char directory[] = "/tmp/test-become-XXXXXX";
    struct stat status;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    become_make_file(&become, file_path);
    ck_assert_int_lt(access(file_path, F_OK), 0);
    become.is_given = true;
    fake_os_fail(FAKE_GETEUID, 1, 1, EPERM);
    become_make_file(&become, file_path);
    ck_assert_int_lt(access(file_path, F_OK), 0);
    fake_os_fail(FAKE_GETEUID, 1, 0, 0);
    become_make_file(&become, "-");
    ck_assert_int_lt(access("-", F_OK), 0);
    ck_assert_int_eq(symlink("become-other", file_path), 0);
    become_make_file(&become, file_path);
    ck_assert_int_lt(access("become-other", F_OK), 0);
    ck_assert_int_eq(unlink(file_path), 0);
    become_make_file(&become, file_path);
    ck_assert_int_eq(stat(file_path, &status), 0);
    ck_assert_uint_eq(status.st_uid, become.user);
    ck_assert_uint_eq(status.st_size, 0);
    ck_assert_int_eq(unlink(file_path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* ---- The change of the user ---- */

static struct become
own_user(void)
{
    struct become become = {.is_given = true, .user = geteuid(), .group = getegid()};

    return become;
}

START_TEST(without_the_option_nothing_changes)
{
    const struct become none = {.is_given = false};

    ck_assert_int_eq(become_now(&none), 0);
    ck_assert_int_eq(become_admin(&none), 0);
    ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}
END_TEST

START_TEST(nothing_that_it_runs_gets_more_rights_and_the_end_of_its_parent_is_heard)
{
    struct become become = own_user();
    int death = 0;

    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    snprintf(become.name, sizeof(become.name), "%s", _i == 0 ? "root" : "");
    ck_assert_int_eq(become_now(&become), 0);
    ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    prctl(PR_GET_PDEATHSIG, &death);
    ck_assert_int_eq(death, SIGUSR1);
}
END_TEST

START_TEST(a_process_that_is_the_user_already_keeps_its_groups)
{
    const struct become become = own_user();
    int groups = getgroups(0, NULL);

    fake_os_fail(FAKE_GETEUID, 1, 1, EPERM); /* this process is not root */
    ck_assert_int_eq(become_now(&become), 0);
    ck_assert_int_eq(getgroups(0, NULL), groups);
}
END_TEST

START_TEST(the_admin_process_keeps_at_most_one_capability)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    const struct become become = own_user();

    ck_assert_int_eq(become_admin(&become), 0);
    ck_assert_int_eq((int)syscall(SYS_capget, &head, sets), 0);
    ck_assert_uint_eq(sets[0].effective & ~(1u << CAP_KILL), 0);
    ck_assert_uint_eq(sets[0].permitted & ~(1u << CAP_KILL), 0);
    ck_assert_uint_eq(sets[1].effective | sets[1].permitted, 0);
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
} steps[] = {{FAKE_PRCTL, 2}, {FAKE_SETGROUPS, 1}, {FAKE_SETGID, 1}, {FAKE_SETUID, 1}};

START_TEST(the_directory_comes_before_the_user)
{
    static const enum fake_call calls[] = {FAKE_CHROOT, FAKE_CHDIR};
    struct become become = own_user();

    become.root = "/";
    fake_os_fail(FAKE_CHROOT, 1, 1, 0);
    if (_i > 0)
        fake_os_fail(calls[_i - 1], 1, 1, ENOENT);
    ck_assert_int_eq(become_now(&become), _i > 0 ? -ENOENT : 0);
    ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), _i == 0);
}
END_TEST

START_TEST(a_step_that_fails_is_told)
{
    const struct become become = own_user();

    if (steps[_i].call == FAKE_SETGROUPS && geteuid() != 0)
        return; /* only root makes this call */
    fake_os_fail(steps[_i].call, steps[_i].nth, 1, ENOSYS);
    ck_assert_int_eq(become_now(&become), -ENOSYS);
}
END_TEST

START_TEST(capabilities_that_cannot_be_given_up_are_told)
{
    const struct become become = own_user();

    fake_os_fail(FAKE_SYSCALL, 2, 1, ENOSYS);
    ck_assert_int_eq(become_admin(&become), -ENOSYS);
}
END_TEST

/* ---- Another user, in a child ---- */

static const struct become another = {.is_given = true, .user = 4000000000u, .group = 4000000001u};

static void
be_another(void)
{
    struct become back = {.is_given = true};
    gid_t group = 0;

    ck_assert_int_eq(become_now(&another), 0);
    ck_assert_uint_eq(getuid(), another.user);
    ck_assert_uint_eq(geteuid(), another.user);
    ck_assert_uint_eq(getgid(), another.group);
    ck_assert_int_eq(getgroups(1, &group), 1);
    ck_assert_uint_eq(group, another.group);
    ck_assert_int_lt(become_now(&back), 0);
    ck_assert_int_lt(setgid(0), 0);
}

/* If the change leaves all capabilities, the process could become root again, so it must fail. */
static void
be_one_that_can_come_back(void)
{
    ck_assert_int_eq(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP), 0);
    ck_assert_int_eq(become_now(&another), -EPERM);
}

START_TEST(another_user_has_no_way_back)
{
    int status;
    pid_t child;

    if (geteuid() != 0) {
        printf("skipped: becoming another user, because the test is not root\n");
        return;
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        if (_i == 0)
            be_another();
        else
            be_one_that_can_come_back();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *
become_suite(void)
{
    Suite *suite = suite_create("httpd become");
    TCase *t = tcase_create("become");

    tcase_add_loop_test(t, users_and_groups_have_names_or_numbers, 0,
                        sizeof(known) / sizeof(known[0]));
    tcase_add_loop_test(t, unknown_ones_are_refused, 0, sizeof(unknown) / sizeof(unknown[0]));
    tcase_add_test(t, a_name_that_is_too_long_for_any_user_is_refused);
    tcase_add_test(t, only_root_may_become_another_user);
    tcase_add_test(t, root_that_is_meant_is_not_warned);
    tcase_add_test(t, only_root_may_enter_a_directory);
    tcase_add_loop_test(t, what_is_looked_at_is_in_the_directory, 0,
                        sizeof(looks) / sizeof(looks[0]));
    tcase_add_test(t, files_are_looked_at_as_the_user_who_serves);
    tcase_add_test(t, only_a_file_that_is_missing_is_made_and_only_by_root);
    tcase_add_test(t, without_the_option_nothing_changes);
    tcase_add_loop_test(t, nothing_that_it_runs_gets_more_rights_and_the_end_of_its_parent_is_heard,
                        0, 2);
    tcase_add_test(t, a_process_that_is_the_user_already_keeps_its_groups);
    tcase_add_test(t, the_admin_process_keeps_at_most_one_capability);
    tcase_add_loop_test(t, the_directory_comes_before_the_user, 0, 3);
    tcase_add_loop_test(t, a_step_that_fails_is_told, 0, sizeof(steps) / sizeof(steps[0]));
    tcase_add_test(t, capabilities_that_cannot_be_given_up_are_told);
    tcase_add_loop_test(t, another_user_has_no_way_back, 0, 2);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(become_suite());
}
