/* SPDX-License-Identifier: MIT
 *
 * sxe-pool backup, restore and resize. The calls that they use are tested by test-dict-copy.c.
 */
#include "run-pool.h"

#include <errno.h>

static char backup[96];

/* Three entries in a file that is closed. */
static void
make_dict(const char *file)
{
    const SXE_DICT_SPEC spec = {.name = "sessions", .cells = 20, .file = file};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_int_eq(sxe_dict_put(dict, "ann", 3, "1", 1, SXE_DICT_FOREVER), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "bob", 3, "2", 1, SXE_DICT_FOREVER), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "eve", 3, "3", 1, SXE_DICT_FOREVER), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "eve", 3, SXE_DICT_PINNED), 0);
    sxe_dict_close(dict);
    snprintf(backup, sizeof(backup), "%s/sessions.backup", directory);
}

static void
expect_entries(const char *which)
{
    RUN_POOL("dump", which);
    ended(0, "key=\"ann\" LIVE 1 bytes - value=\"1\"\n", "");
    check_has(ran.output, "key=\"bob\" LIVE 1 bytes - value=\"2\"\n");
    check_has(ran.output, "key=\"eve\" PINNED 1 bytes - value=\"3\"\n");
    RUN_POOL("check", which);
    ended(0, "its table is whole, too: 3 entries", "");
}

START_TEST(a_dict_is_backed_up_and_restored)
{
    make_dict(path);
    for (unsigned i = 0; i < 2; i++) {
        RUN_POOL("backup", path, backup);
        ended(0, text_of("dict sessions is backed up in %s\n", backup), "");
    }
    expect_entries(backup);
    for (unsigned i = 0; i < 2; i++) {
        unlink(i == 0 ? path : "");
        RUN_POOL("restore", backup, path);
        ended(0, text_of("dict sessions is restored to %s\n", path), "");
        expect_entries(path);
    }
}
END_TEST

START_TEST(a_dict_in_use_is_backed_up_and_no_more)
{
    const SXE_DICT_SPEC spec = {.file = path};

    make_dict(path);
    SXE_DICT *dict = sxe_dict_open(&spec, why);
    RUN_POOL("backup", path, backup);
    ended(0, "is backed up", "");
    RUN_POOL("backup", PID, backup);
    ended(0, "is backed up", "");
    RUN_POOL("restore", backup, path);
    ended(1, "", "it is in use: close it in every program, and try again\n");
    RUN_POOL("resize", path, "10");
    ended(1, "", "it is in use: close it in every program, and try again\n");
    sxe_dict_close(dict);
    expect_entries(backup);
    expect_entries(path);
}
END_TEST

START_TEST(a_dict_is_not_copied_onto_itself)
{
    make_dict(path);
    RUN_POOL("restore", path, path);
    ended(1, "", "it is the dict that would be copied: give another path\n");
    ck_assert_int_eq(link(path, backup), 0);
    RUN_POOL("backup", path, backup);
    ended(1, "", "it is the dict that would be copied: give another path\n");
    expect_entries(path);
    unlink(backup);
}
END_TEST

START_TEST(a_dict_is_resized)
{
    make_dict(path);
    RUN_POOL("resize", path, "1.5k");
    ended(0, text_of("dict %s has 1500 cells\n", path), "");
    expect_entries(path);
    RUN_POOL("show", path);
    ended(0, "\n1501 elements of 256 bytes", "");
    RUN_POOL("resize", path, "1");
    ended(1, "", "its 3 entries do not fit (cells: 1, shards: 1): give it more");
    expect_entries(path);
    RUN_POOL("show", path);
    ended(0, "\n1501 elements of 256 bytes", "");
}
END_TEST

START_TEST(a_dict_that_the_dead_have_left_is_resized)
{
    make_dict(path);
    const pid_t pid = fork();

    if (pid == 0) {
        const SXE_DICT_SPEC spec = {.file = path};
        SXE_DICT *dict = sxe_dict_open(&spec, why);

        kill(dict == NULL ? 0 : getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    RUN_POOL("resize", path, "10");
    ended(0, "has 10 cells\n", "");
    expect_entries(path);
}
END_TEST

START_TEST(a_pool_is_copied_by_other_means)
{
    make_dict(path);
    unlink(path);
    open_jobs(path);
    RUN_POOL("backup", path, backup);
    ended(1, "",
          "pool jobs is no dict, and only dicts have snapshots: close it in every program, "
          "then copy its file with cp\n");
    RUN_POOL("resize", path, "10");
    ended(1, "", "pool jobs is no dict");
    RUN_POOL("restore", path, backup);
    ended(1, "", "pool jobs is no dict");
    ck_assert_int_ne(access(backup, F_OK), 0);
}
END_TEST

START_TEST(paths_that_lead_nowhere_are_told)
{
    make_dict(path);
    RUN_POOL("backup", backup, path);
    ended(1, "", "No such file or directory");
    RUN_POOL("restore", backup, path);
    ended(1, "", "No such file or directory");
    RUN_POOL("resize", backup, "10");
    ended(1, "", "No such file or directory");
    RUN_POOL("restore", path, PID);
    ended(1, "", text_of("%s is a process, and a file is needed", PID));
    RUN_POOL("resize", DESCRIPTOR(3), "10");
    ended(1, "", "is a process, and a file is needed: give its path, or its name in /dev/shm");
    expect_entries(path);
}
END_TEST

/* A POOL without a slash is in /dev/shm; a FILE without a slash is in the working directory. */
START_TEST(a_file_without_a_slash_is_in_this_directory)
{
    char name[64];

    make_dict(path);
    snprintf(name, sizeof(name), "sxe-test-%d", (int)getpid());
    ck_assert_int_eq(chdir(directory), 0);
    RUN_POOL("backup", path, "bare");
    ended(0, "backed up in ./bare\n", "");
    expect_entries("./bare");
    RUN_POOL("restore", "bare", name);
    ended(0, text_of("restored to /dev/shm/%s\n", name), "");
    expect_entries(name);
    RUN_POOL("resize", name, "9");
    ended(0, text_of("dict /dev/shm/%s has 9 cells\n", name), "");
    ck_assert_int_eq(unlink(text_of("/dev/shm/%s", name)), 0);
    RUN_POOL("resize", "bare", "9");
    ended(1, "", "for the file in this directory write ./bare");
    RUN_POOL("restore", path, "bare");
    ended(1, "", "for the file in this directory write ./bare");
}
END_TEST

START_TEST(a_signal_ends_a_copy_and_leaves_the_old_file)
{
    make_dict(path);
    RUN_POOL("backup", path, backup);
    ran.prepare = interrupted;
    RUN_POOL("backup", path, backup);
    ended(128 + SIGINT, "", "the copy was cancelled, nothing was replaced\n");
    RUN_POOL("restore", backup, path);
    ended(128 + SIGINT, "", "cancelled");
    RUN_POOL("resize", path, "100");
    ended(128 + SIGINT, "", "cancelled");
    ran.prepare = NULL;
    expect_entries(path);
    expect_entries(backup);
    ck_assert_int_eq(system(text_of("test $(ls %s | wc -l) = 2", directory)), 0);
}
END_TEST

START_TEST(a_full_file_system_is_told)
{
    make_dict(path);
    fails_there(FAKE_MKOSTEMP, ENOSPC);
    RUN_POOL("backup", path, backup);
    ended(1, "", "cannot make a file beside ");
    check_has(ran.errors, "No space left on device");
    RUN_POOL("resize", path, "100");
    ended(1, "", "No space left on device");
    ran.prepare = NULL;
    expect_entries(path);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-app-copy");
    TCase *tcase = add_case(suite, "copy");

    tcase_add_test(tcase, a_dict_is_backed_up_and_restored);
    tcase_add_test(tcase, a_dict_in_use_is_backed_up_and_no_more);
    tcase_add_test(tcase, a_dict_is_not_copied_onto_itself);
    tcase_add_test(tcase, a_dict_is_resized);
    tcase_add_test(tcase, a_dict_that_the_dead_have_left_is_resized);
    tcase_add_test(tcase, a_pool_is_copied_by_other_means);
    tcase_add_test(tcase, paths_that_lead_nowhere_are_told);
    tcase_add_test(tcase, a_file_without_a_slash_is_in_this_directory);
    tcase_add_test(tcase, a_signal_ends_a_copy_and_leaves_the_old_file);
    tcase_add_test(tcase, a_full_file_system_is_told);
    return sxe_test_main(suite);
}
