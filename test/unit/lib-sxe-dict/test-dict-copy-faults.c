/* SPDX-License-Identifier: MIT
 *
 * Backup, restore and resize while system calls fail, each in turn, or while the process is killed
 * before or after a call: afterwards there is the old file or the new one, and no other.
 */
#include "copy-site.h"

#include <glob.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "sweep.h"
#include "test-sweep.h"

enum { BACKUP, BACKUP_AGAIN, RESTORE, RESIZE, JOBS };

static unsigned job;

/* Make a dict to be copied, and one to be replaced, both with all entries. */
static void
make_files(void)
{
    SXE_DICT *dict = open_source();

    fill(dict);
    ck_assert_msg(sxe_dict_backup(dict, target, NULL, why) == 0, "%s", why);
    sxe_dict_close(dict);
    if (job == BACKUP)
        unlink(target);
    if (job == RESIZE)
        unlink(source);
}

static int
do_job(SXE_DICT *dict)
{
    if (job == RESIZE)
        return sxe_dict_resize(target, 2 * CELLS, NULL, why);
    return job == RESTORE ? sxe_dict_restore(source, target, NULL, why)
                          : sxe_dict_backup(dict, target, NULL, why);
}

static void
remove_files(void)
{
    char pattern[128];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/*", directory);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
        globfree(&found);
    }
}

/* ---- Calls that fail ---- */

static unsigned failed; /* how many runs returned an error */

static void
expect_whole(const char *file)
{
    SXE_DICT *dict = open_any(file);

    check_full(dict);
    sxe_dict_close(dict);
}

/* Check the files after a call, which may have failed. At most `litter` unfinished files may be
 * left. A new file was closed properly before it was renamed; an old one may be in use. */
static void
expect_old_or_new(int result, ino_t old, bool litter)
{
    ck_assert_msg(result == 0 || why[0] != '\0', "result %d", result);
    const bool is_there = access(target, F_OK) == 0;
    const unsigned files = (job != RESIZE) + is_there;

    ck_assert(is_there || (job == BACKUP && result < 0));
    if (is_there && inode_of(target) != old)
        expect_full(target);
    else if (is_there)
        expect_whole(target);
    if (job != RESIZE)
        expect_whole(source);
    ck_assert(result < 0 || inode_of(target) != old);
    ck_assert_uint_ge(count_files(), files);
    ck_assert_uint_le(count_files(), files + litter);
    failed += result < 0;
}

static bool
run_once(const struct strike *strike)
{
    make_files();
    SXE_DICT *dict = job == BACKUP || job == BACKUP_AGAIN ? open_any(source) : NULL;
    why[0] = '\0';
    const ino_t old = job == BACKUP ? 0 : inode_of(target);
    sweep_arm(strike);
    const int result = do_job(dict);
    const bool touched = sweep_disarm();
    sxe_dict_close(dict);
    expect_old_or_new(result, old, strike->call == FAKE_UNLINK);
    check_that_nothing_is_open();
    remove_files();
    return touched;
}

static const struct fault faults[] = {
    {FAKE_OPEN, {EMFILE, EACCES}},
    {FAKE_FSTAT, {EIO}},
    {FAKE_STAT, {EACCES}},
    {FAKE_FCNTL, {ENOLCK}},
    {FAKE_MKOSTEMP, {EACCES, ENOSPC}},
    {FAKE_MMAP, {ENOMEM}},
    {FAKE_MSYNC, {EIO, ENOSPC}},
    {FAKE_POSIX_FALLOCATE, {ENOSPC, EIO}},
    {FAKE_FTRUNCATE, {EIO}},
    {FAKE_PREAD, {EIO}},
    {FAKE_FSYNC, {EIO}},
    {FAKE_FCHMOD, {EPERM}},
    {FAKE_RENAME, {EACCES, ENOSPC}},
    {FAKE_LINK, {EMLINK, EEXIST}},
    {FAKE_UNLINK, {EACCES}},
    {FAKE_GETRANDOM, {ENOSYS}},
    {FAKE_LSEEK, {EIO}},
    {FAKE_MALLOC, {ENOMEM}},
    {FAKE_CALLOC, {ENOMEM}},
    {FAKE_REALLOC, {ENOMEM}},
};

START_TEST(each_call_may_fail)
{
    failed = 0;
    job = (unsigned)_i;
    for (unsigned i = 0; i < SXE_COUNT(faults); i++)
        sweep(&faults[i], run_once);
    ck_assert_uint_gt(failed, 30);
}
END_TEST

/* The copy reserves all its disk space before it writes anything. */
START_TEST(a_full_file_system_is_told)
{
    job = (unsigned)_i;
    make_files();
    const ino_t old = job == BACKUP ? 0 : inode_of(target);
    SXE_DICT *dict = job == RESIZE ? NULL : open_any(source);
    /* A resize and a restore open a dict first, which reserves memory, too. */
    fake_os_fail(FAKE_POSIX_FALLOCATE, job == RESIZE || job == RESTORE ? 2 : 1, 1, ENOSPC);
    if (job == RESTORE)
        sxe_dict_close(dict);
    says(do_job(dict), ENOSPC, "have room for all of the file: No space left on device");
    fake_os_reset();
    if (job != RESTORE)
        sxe_dict_close(dict);
    expect_old_or_new(-1, old, false);
}
END_TEST

/* The log has the error of msync; the copy on the disk may be incomplete. */
START_TEST(a_disk_that_cannot_be_written_is_told)
{
    job = BACKUP_AGAIN;
    make_files();
    const ino_t inode = inode_of(target);
    SXE_DICT *dict = open_any(source);
    fake_os_fail(FAKE_MSYNC, 3, 0, EIO);
    says(do_job(dict), EIO, "to the disk: the log says why");
    fake_os_reset();
    sxe_dict_close(dict);
    ck_assert_uint_eq(inode_of(target), inode);
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

START_TEST(a_directory_that_is_not_synced_is_told)
{
    job = BACKUP_AGAIN;
    make_files();
    const ino_t inode = inode_of(target);
    SXE_DICT *dict = open_any(source);
    fake_os_fail(FAKE_FSYNC, 2, 1, EIO);
    says(do_job(dict), EIO, "is written, but its directory cannot be synced");
    fake_os_reset();
    sxe_dict_close(dict);
    ck_assert_uint_ne(inode_of(target), inode);
    expect_full(target);
}
END_TEST

/* The path leads to another file each time that this process has got the lock. */
START_TEST(a_file_that_is_replaced_again_and_again_is_left_alone)
{
    job = _i == 0 ? BACKUP_AGAIN : RESIZE;
    make_files();
    const ino_t old = job == BACKUP ? 0 : inode_of(target);
    SXE_DICT *dict = job == RESIZE ? NULL : open_any(source);
    if (job == RESIZE) /* the first stat is that of opening */
        fake_os_fail(FAKE_STAT, 2, 1, ENOENT);
    else
        fake_os_fail(FAKE_STAT, 1, 0, ENOENT);
    says(do_job(dict), EAGAIN, job == RESIZE ? "replaced just now" : "replaced again and again");
    fake_os_reset();
    sxe_dict_close(dict);
    expect_old_or_new(-1, old, false);
}
END_TEST

/* ---- Processes that are killed ---- */

_Noreturn static void
copy_traced(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    raise(SIGSTOP);
    SXE_DICT *dict = job == BACKUP || job == BACKUP_AGAIN ? open_any(source) : NULL;
    const int result = do_job(dict);
    sxe_dict_close(dict);
    _exit(result == 0 ? 0 : 1);
}

/* Let a child go on to its nth stop, before or after a system call, and kill it there. False: the
 * child ended before that stop. */
static bool
kill_at(unsigned nth, bool *possible)
{
    int status;
    const pid_t child = fork();

    if (child == 0)
        copy_traced();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    *possible = WIFSTOPPED(status);
    for (unsigned stop = 0; WIFSTOPPED(status); stop++) {
        if (stop == nth)
            kill(child, SIGKILL);
        else
            ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
    }
    ck_assert(!*possible || WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

START_TEST(a_process_that_is_killed_leaves_the_old_file_or_the_new_one)
{
    bool possible = true;
    bool is_over = false;
    unsigned nth;

    job = (unsigned)_i;
    for (nth = 0; !is_over; nth += sxe_test_is_thin() ? 7 : 1) {
        make_files();
        const ino_t old = job == BACKUP ? 0 : inode_of(target);
        is_over = !kill_at(nth, &possible);
        const bool is_there = access(target, F_OK) == 0;
        ck_assert(is_there || job == BACKUP);
        if (is_there)
            expect_whole(target);
        if (job != RESIZE)
            expect_whole(source);
        /* The files of the dead process do not disturb the next copy. */
        if (!is_there || inode_of(target) == old) {
            SXE_DICT *dict = job == BACKUP || job == BACKUP_AGAIN ? open_any(source) : NULL;
            ck_assert_msg(do_job(dict) == 0, "%s", why);
            sxe_dict_close(dict);
        }
        expect_full(target);
        remove_files();
    }
    ck_assert_uint_ge(nth, possible ? 50 : 0);
    if (!possible)
        printf("skipped: no tracing here\n");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("dict-copy-faults");
    TCase *c = tcase_create("faults");

    tcase_add_checked_fixture(c, make_site, remove_site);
    tcase_add_loop_test(c, each_call_may_fail, 0, JOBS);
    tcase_add_loop_test(c, a_full_file_system_is_told, 0, JOBS);
    tcase_add_test(c, a_disk_that_cannot_be_written_is_told);
    tcase_add_test(c, a_directory_that_is_not_synced_is_told);
    tcase_add_loop_test(c, a_file_that_is_replaced_again_and_again_is_left_alone, 0, 2);
    tcase_add_loop_test(c, a_process_that_is_killed_leaves_the_old_file_or_the_new_one, 0, JOBS);
    suite_add_tcase(s, c);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
