/* SPDX-License-Identifier: MIT
 *
 * Opening and closing while system calls fail, each in turn, once or from then on (sweep.h). After
 * each run there is no new file, descriptor or memory, and a pool that was there is unchanged.
 */
#include "pool-file.h"

#include <sys/mman.h>

#include "capture-log.h"
#include "fake-time.h"
#include "leaks.h"
#include "sweep.h"
#include "test-main.h"

static const struct fault faults[] = {
    {FAKE_OPEN, {EMFILE, EACCES}},
    {FAKE_READ, {EIO}},
    {FAKE_PREAD, {EIO}},
    {FAKE_LSEEK, {EIO}},
    {FAKE_FSTAT, {EIO}},
    {FAKE_STAT, {EACCES}},
    {FAKE_FCNTL, {ENOLCK}},
    {FAKE_FTRUNCATE, {EFBIG, EPERM}},
    {FAKE_POSIX_FALLOCATE, {ENOSPC, EFBIG}},
    {FAKE_MMAP, {ENOMEM}},
    {FAKE_MSYNC, {EIO}},
    {FAKE_GETRANDOM, {ENOSYS}},
    {FAKE_MEMFD_CREATE, {EMFILE}},
    {FAKE_CLOSE, {EIO}},
    {FAKE_UNLINK, {EACCES}},
    {FAKE_GETEUID, {EPERM}},
    {FAKE_MALLOC, {ENOMEM}},
    {FAKE_CALLOC, {ENOMEM}},
};

static SXE_POOL_SPEC spec;

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
    capture_log();
    spec = file_spec();
}

static void
end(void)
{
    remove_the_file();
    check_that_nothing_is_left();
}

/* How many bytes of address space this process has mapped. */
static unsigned long
mapped(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * 4096;
}

/* Open a pool while a call fails, which must give a reason. Returns whether the call was made. */
static bool
open_struck(const struct strike *strike, char *(*open_it)(void), char **array)
{
    const unsigned fds = fake_os_open_fds();
    const unsigned long bytes = mapped();

    snprintf(why, sizeof(why), "untouched");
    sweep_arm(strike);
    errno = 0;
    *array = open_it();
    const int error = errno;
    const bool touched = sweep_disarm();
    captured.number = 0;
    if (*array != NULL)
        return touched;
    ck_assert(touched);
    ck_assert_int_ne(error, 0);
    ck_assert_msg(strncmp(why, "pool ", 5) == 0, "%s: %s", fake_os_name(strike->call), why);
    ck_assert_uint_eq(fake_os_open_fds(), fds);
    ck_assert_msg(mapped() <= bytes + (1 << 20), "%s left memory", fake_os_name(strike->call));
    return true;
}

/* ---- Making a pool ---- */

static char *
open_file(void)
{
    return sxe_pool_open(&spec, why);
}

static bool
make_once(const struct strike *strike)
{
    char *array;
    const bool touched = open_struck(strike, open_file, &array);

    if (array == NULL)
        ck_assert_msg(!file_exists() || strike->call == FAKE_UNLINK, "%s, %u. of its kind",
                      fake_os_name(strike->call), strike->nth);
    else {
        ck_assert_int_eq(sxe_pool_check(array, why), 0);
        sxe_pool_delete(array);
    }
    unlink(file_path);
    return touched;
}

START_TEST(nothing_is_left_of_a_file_that_cannot_be_made)
{
    sxe_pool_delete(open_pool(&spec)); /* allocate what a process needs only once */
    unlink(file_path);
    sweep(&faults[_i], make_once);
}
END_TEST

static char *
open_memory(void)
{
    SXE_POOL_SPEC memory = spec;

    memory.file = NULL;
    return sxe_pool_open(&memory, why);
}

static bool
make_memory_once(const struct strike *strike)
{
    char *array;
    const bool touched = open_struck(strike, open_memory, &array);

    sxe_pool_delete(array);
    return touched;
}

START_TEST(nothing_is_left_of_memory_that_cannot_be_made)
{
    sweep(&faults[_i], make_memory_once);
}
END_TEST

static char *
open_for_threads(void)
{
    SXE_POOL_SPEC memory = spec;

    memory.file = NULL;
    memory.options = SXE_POOL_OPTION_LOCKED;
    return sxe_pool_open(&memory, why);
}

static bool
make_for_threads_once(const struct strike *strike)
{
    char *array;
    const bool touched = open_struck(strike, open_for_threads, &array);

    sxe_pool_delete(array);
    return touched;
}

START_TEST(nothing_is_left_of_a_pool_of_threads_that_cannot_be_made)
{
    sweep(&faults[_i], make_for_threads_once);
}
END_TEST

/* An empty file that existed before stays, and stays empty. */
static bool
fill_once(const struct strike *strike)
{
    struct stat status;
    char *array;

    store_image(0);
    const bool touched = open_struck(strike, open_file, &array);
    ck_assert_int_eq(stat(file_path, &status), 0);
    if (array == NULL && strike->call != FAKE_FTRUNCATE)
        ck_assert_int_eq(status.st_size, 0);
    sxe_pool_delete(array);
    return touched;
}

START_TEST(an_empty_file_that_cannot_be_made_a_pool_stays_empty)
{
    sweep(&faults[_i], fill_once);
}
END_TEST

/* ---- Opening an existing pool ---- */

static bool
open_there_once(const struct strike *strike)
{
    char *array;
    const bool touched = open_struck(strike, open_file, &array);

    if (array != NULL) {
        ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
        sxe_pool_delete(array);
    }
    array = open_pool(&spec);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
    ck_assert_uint_eq(sxe_pool_get_count(array, READY), 10);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    sxe_pool_delete(array);
    return touched;
}

START_TEST(a_pool_that_cannot_be_opened_is_unharmed)
{
    make_image();
    sweep(&faults[_i], open_there_once);
}
END_TEST

static char *used;

static bool
join_once(const struct strike *strike)
{
    char *array;
    const bool touched = open_struck(strike, open_file, &array);

    ck_assert_uint_eq(sxe_pool_touch(used, 1), SXE_POOL_LOCK_TAKEN);
    if (array != NULL) {
        ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_JOINED);
        sxe_pool_delete(array);
    }
    ck_assert_int_eq(sxe_pool_check(used, why), 0);
    return touched;
}

START_TEST(a_pool_in_use_that_cannot_be_joined_goes_on)
{
    used = open_pool(&spec);
    sweep(&faults[_i], join_once);
    sxe_pool_delete(used);
}
END_TEST

static char *
open_descriptor(void)
{
    return sxe_pool_open_fd(sxe_pool_get_fd(used), NULL, why);
}

static bool
open_descriptor_once(const struct strike *strike)
{
    char *array;
    const bool touched = open_struck(strike, open_descriptor, &array);

    sxe_pool_delete(array);
    return touched;
}

START_TEST(a_descriptor_that_cannot_be_joined_stays_open)
{
    used = open_pool(&spec);
    sweep(&faults[_i], open_descriptor_once);
    sxe_pool_delete(used);
}
END_TEST

/* ---- Closing ---- */

static bool
close_once(const struct strike *strike)
{
    char *array = open_pool(&spec);

    sweep_arm(strike);
    sxe_pool_delete(array);
    const bool touched = sweep_disarm();
    captured.number = 0;
    array = open_pool(&spec);
    const SXE_POOL_FOUND found = sxe_pool_get_found(array);
    ck_assert(found == SXE_POOL_CLOSED || (touched && found == SXE_POOL_COMPLETED));
    sxe_pool_delete(array);
    return touched;
}

START_TEST(a_pool_that_cannot_be_written_is_not_called_closed)
{
    make_image();
    sweep(&faults[_i], close_once);
}
END_TEST

START_TEST(what_cannot_be_written_at_closing_is_logged)
{
    char *array = open_pool(&spec);

    fake_os_fail(FAKE_MSYNC, (unsigned)_i, 1, EIO);
    sxe_pool_delete(array);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert(logged("pool pond: cannot write its file to the disk: Input/output error"));
    expect_found(&spec, SXE_POOL_COMPLETED);
}
END_TEST

/* ---- Single failures ---- */

START_TEST(a_process_that_cannot_be_told_of_forks_opens_no_pool)
{
    fake_os_fail(FAKE_PTHREAD_ATFORK, 1, 1, ENOMEM);
    expect_refused(&spec, ENOMEM, "cannot become a user of it: Cannot allocate memory");
    ck_assert(!file_exists());
}
END_TEST

START_TEST(signals_do_not_keep_a_file_from_its_room)
{
    fake_os_fail(FAKE_POSIX_FALLOCATE, 1, 3, EINTR);
    expect_found(&spec, SXE_POOL_CREATED);
    ck_assert_uint_eq(fake_os_injected(), 3);
}
END_TEST

START_TEST(a_file_that_cannot_be_emptied_again_is_logged)
{
    store_image(0);
    fake_os_fail(FAKE_FTRUNCATE, 1, 0, EPERM);
    expect_refused(&spec, EPERM, "cannot give the file its size");
    ck_assert(logged("cannot empty the file again"));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-open-faults");
    TCase *made = tcase_create("made");
    TCase *there = tcase_create("there");
    TCase *once = tcase_create("once");

    tcase_add_checked_fixture(made, begin, end);
    tcase_add_loop_test(made, nothing_is_left_of_a_file_that_cannot_be_made, 0, LENGTH_OF(faults));
    tcase_add_loop_test(made, nothing_is_left_of_memory_that_cannot_be_made, 0, LENGTH_OF(faults));
    tcase_add_loop_test(made, nothing_is_left_of_a_pool_of_threads_that_cannot_be_made, 0,
                        LENGTH_OF(faults));
    tcase_add_loop_test(made, an_empty_file_that_cannot_be_made_a_pool_stays_empty, 0,
                        LENGTH_OF(faults));
    suite_add_tcase(s, made);

    tcase_add_checked_fixture(there, begin, end);
    tcase_add_loop_test(there, a_pool_that_cannot_be_opened_is_unharmed, 0, LENGTH_OF(faults));
    tcase_add_loop_test(there, a_pool_in_use_that_cannot_be_joined_goes_on, 0, LENGTH_OF(faults));
    tcase_add_loop_test(there, a_descriptor_that_cannot_be_joined_stays_open, 0, LENGTH_OF(faults));
    tcase_add_loop_test(there, a_pool_that_cannot_be_written_is_not_called_closed, 0,
                        LENGTH_OF(faults));
    suite_add_tcase(s, there);

    tcase_add_checked_fixture(once, begin, end);
    tcase_add_loop_test(once, what_cannot_be_written_at_closing_is_logged, 1, 4);
    tcase_add_test(once, a_process_that_cannot_be_told_of_forks_opens_no_pool);
    tcase_add_test(once, signals_do_not_keep_a_file_from_its_room);
    tcase_add_test(once, a_file_that_cannot_be_emptied_again_is_logged);
    suite_add_tcase(s, once);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
