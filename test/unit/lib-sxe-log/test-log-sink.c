/* SPDX-License-Identifier: MIT
 *
 * Tests sinks: what reaches them, and what happens when they take no line.
 */
#undef _FORTIFY_SOURCE /* it would rename syslog */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "test-main.h"

/* ---- A descriptor as sink ---- */

static int fds[2];
static char got[64 * SXE_LOG_LINE_MAX];

static void
log_to_pipe(void)
{
    unsetenv("SXE_LOG_LEVEL");
    ck_assert_int_eq(pipe2(fds, 0), 0);
    ck_assert_int_ge(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    sxe_log_to_fd(fds[1]);
}

static const char *
read_pipe(void)
{
    ssize_t length = read(fds[0], got, sizeof(got) - 1);

    got[length < 0 ? 0 : length] = '\0';
    return got;
}

START_TEST(stderr_is_the_default)
{
    unsetenv("SXE_LOG_LEVEL");
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    SXE_INFO("hello");
    read_pipe();
    ck_assert(has_head(got));
    ck_assert_str_eq(got + strlen(LOG_HEAD), "------ 4 - hello\n");
}
END_TEST

START_TEST(a_line_is_one_write)
{
    log_to_pipe();
    fake_os_reset();
    SXE_INFO("hello");
    ck_assert_uint_eq(fake_os_calls(FAKE_WRITE), 1);
    SXE_LOG_DUMP_AT(SXE_LOG_FATAL, SXE_NO_ID, "0123456789abcdef0", 17);
    ck_assert_uint_eq(fake_os_calls(FAKE_WRITE), 3);
    ck_assert_uint_eq(sxe_log_dropped(), 0);
}
END_TEST

START_TEST(an_interrupted_write_is_tried_again)
{
    log_to_pipe();
    fake_os_fail(FAKE_WRITE, 1, 3, EINTR);
    SXE_INFO("hello");
    ck_assert_str_eq(read_pipe() + strlen(LOG_HEAD), "------ 4 - hello\n");
    ck_assert_uint_eq(sxe_log_dropped(), 0);
}
END_TEST

START_TEST(a_short_write_is_continued)
{
    log_to_pipe();
    fake_os_limit(FAKE_WRITE, 7);
    SXE_INFO("hello");
    ck_assert_str_eq(read_pipe() + strlen(LOG_HEAD), "------ 4 - hello\n");
    ck_assert_uint_eq(sxe_log_dropped(), 0);
}
END_TEST

static const int write_errors[] = {ENOSPC, EIO, EAGAIN, EPIPE, EBADF, EDQUOT, EFBIG};

START_TEST(a_line_that_is_refused_is_counted_and_the_next_is_tried)
{
    log_to_pipe();
    fake_os_fail(FAKE_WRITE, 1, 1, write_errors[_i]);
    SXE_INFO("lost");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
    SXE_INFO("kept");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
    ck_assert_str_eq(read_pipe() + strlen(LOG_HEAD), "------ 4 - kept\n");
}
END_TEST

START_TEST(half_a_line_counts_as_dropped)
{
    log_to_pipe();
    fake_os_limit(FAKE_WRITE, 7);
    fake_os_fail(FAKE_WRITE, 2, 1, ENOSPC);
    SXE_INFO("hello");
    ck_assert_uint_eq(strlen(read_pipe()), 7);
    ck_assert_uint_eq(sxe_log_dropped(), 1);
}
END_TEST

static const struct {
    unsigned bytes;   /* how many bytes of the line each write takes, before it is cut */
    unsigned refused; /* which write of the next line is refused; 0: none */
} cuts[] = {{7, 0}, {7, 1}, {7, 2}};

START_TEST(a_line_after_half_a_line_begins_a_new_line)
{
    log_to_pipe();
    fake_os_limit(FAKE_WRITE, cuts[_i].bytes);
    fake_os_fail(FAKE_WRITE, 2, 1, ENOSPC);
    SXE_INFO("hello");
    ck_assert_uint_eq(strlen(read_pipe()), 7);
    if (cuts[_i].refused > 0) {
        fake_os_limit(FAKE_WRITE, cuts[_i].refused == 2 ? 1 : 7);
        fake_os_fail(FAKE_WRITE, cuts[_i].refused, 1, ENOSPC);
        SXE_INFO("lost");
        ck_assert_str_eq(read_pipe(), cuts[_i].refused == 2 ? "\n" : "");
    }
    fake_os_reset();
    SXE_INFO("kept");
    read_pipe();
    ck_assert_int_eq(got[0] == '\n', cuts[_i].refused < 2);
    ck_assert_str_eq(got + (got[0] == '\n') + strlen(LOG_HEAD), "------ 4 - kept\n");
    SXE_INFO("next");
    ck_assert_str_eq(read_pipe() + strlen(LOG_HEAD), "------ 4 - next\n");
}
END_TEST

START_TEST(a_full_pipe_is_not_waited_for_though_it_blocks)
{
    char page[4096] = "";

    log_to_pipe();
    ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, 4096), 4096);
    ck_assert_int_eq(write(fds[1], page, sizeof(page)), sizeof(page));
    SXE_INFO("lost");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
    read_pipe();
    SXE_INFO("kept");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
    ck_assert_str_eq(read_pipe() + strlen(LOG_HEAD), "------ 4 - kept\n");
}
END_TEST

START_TEST(a_pipe_without_reader_does_not_kill)
{
    signal(SIGPIPE, SIG_DFL);
    log_to_pipe();
    close(fds[0]);
    SXE_INFO("lost");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
}
END_TEST

START_TEST(a_socket_whose_peer_is_gone_does_not_kill)
{
    signal(SIGPIPE, SIG_DFL);
    unsetenv("SXE_LOG_LEVEL");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    close(fds[0]);
    sxe_log_to_fd(fds[1]);
    SXE_INFO("lost");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
}
END_TEST

START_TEST(a_closed_descriptor_is_counted)
{
    log_to_pipe();
    close(fds[1]);
    SXE_INFO("lost");
    SXE_INFO("lost");
    ck_assert_uint_eq(sxe_log_dropped(), 2);
}
END_TEST

START_TEST(a_line_is_written_though_poll_fails)
{
    log_to_pipe();
    fake_os_fail(FAKE_POLL, 1, 1, ENOMEM);
    SXE_INFO("kept");
    ck_assert_str_eq(read_pipe() + strlen(LOG_HEAD), "------ 4 - kept\n");
}
END_TEST

START_TEST(a_clock_that_fails_still_gives_a_line)
{
    log_to_pipe();
    fake_os_fail(FAKE_CLOCK_GETTIME, 1, 0, EINVAL);
    SXE_INFO("kept");
    fake_os_reset();
    ck_assert_int_eq(strncmp(read_pipe(), "19700101 000000.000 P", 21), 0);
}
END_TEST

START_TEST(a_full_disk_is_counted)
{
    int full = open("/dev/full", O_WRONLY);

    log_to_pipe();
    sxe_log_to_fd(full);
    SXE_INFO("lost");
    ck_assert_uint_eq(sxe_log_dropped(), 1);
}
END_TEST

enum { THREADS = 4, LINES = 100 };

static void *
log_many(void *letter)
{
    char text[200];

    memset(text, *(char *)letter, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < LINES; i++)
        SXE_INFO("%s", text);
    return NULL;
}

START_TEST(lines_of_threads_do_not_mix)
{
    char letters[THREADS] = {'a', 'b', 'c', 'd'};
    pthread_t threads[THREADS];
    FILE *file = tmpfile();
    char line[SXE_LOG_LINE_MAX + 1];
    int lines = 0;

    unsetenv("SXE_LOG_LEVEL");
    ck_assert_ptr_nonnull(file);
    fcntl(fileno(file), F_SETFL, O_APPEND);
    sxe_log_to_fd(fileno(file));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, &letters[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    rewind(file);
    for (; fgets(line, sizeof(line), file) != NULL; lines++) {
        const char *text = line + strlen(LOG_HEAD "------ 4 - ");

        ck_assert(has_head(line));
        ck_assert_uint_eq(strspn(text, (char[]){*text, '\0'}), 199);
        ck_assert_str_eq(text + 199, "\n");
    }
    ck_assert_int_eq(lines, THREADS * LINES);
    ck_assert_uint_eq(sxe_log_dropped(), 0);
    fclose(file);
}
END_TEST

/* ---- A function as sink ---- */

static int sink_levels[8];
static unsigned sink_calls;

static void
note_level(void *user, int level, const char *line, size_t length)
{
    ck_assert_ptr_eq(user, sink_levels);
    ck_assert_int_eq(line[length - 1], '\n');
    sink_levels[sink_calls++] = level;
}

START_TEST(a_function_gets_user_level_and_line)
{
    unsetenv("SXE_LOG_LEVEL");
    sxe_log_to_function(note_level, sink_levels);
    SXE_ERROR("a");
    SXE_INFO("b");
    ck_assert_uint_eq(sink_calls, 2);
    ck_assert_int_eq(sink_levels[0], SXE_LOG_ERROR);
    ck_assert_int_eq(sink_levels[1], SXE_LOG_INFORMATION);
    ck_assert_uint_eq(sxe_log_dropped(), 0);
}
END_TEST

/* ---- syslog as sink: these functions replace those of libc ---- */

static const char *opened_ident;
static int opened_options;
static int opened_facility;
static int syslog_priority;
static char syslog_line[SXE_LOG_LINE_MAX + 1];

void
openlog(const char *ident, int options, int facility)
{
    opened_ident = ident;
    opened_options = options;
    opened_facility = facility;
}

void
syslog(int priority, const char *format, ...)
{
    va_list arguments;

    syslog_priority = priority;
    va_start(arguments, format);
    vsnprintf(syslog_line, sizeof(syslog_line), format, arguments);
    va_end(arguments);
}

void __syslog_chk(int priority, int flag, const char *format, ...);
void
__syslog_chk(int priority, int flag, const char *format, ...)
{
    va_list arguments;

    (void)flag;
    syslog_priority = priority;
    va_start(arguments, format);
    vsnprintf(syslog_line, sizeof(syslog_line), format, arguments);
    va_end(arguments);
}

static char also_got[2 * SXE_LOG_LINE_MAX];

static void
keep_also(void *user, int level, const char *line, size_t length)
{
    ck_assert_ptr_eq(user, also_got);
    ck_assert_int_eq(level, SXE_LOG_WARNING);
    strncat(also_got, line, length);
}

START_TEST(a_line_is_also_shown_to_a_function)
{
    log_to_pipe();
    also_got[0] = '\0';
    sxe_log_also_to_function(keep_also, also_got);
    SXE_WARN("seen twice");
    ck_assert_str_eq(read_pipe(), also_got);
    ck_assert_ptr_nonnull(strstr(also_got, "seen twice\n"));
    sxe_log_also_to_function(NULL, NULL);
    SXE_INFO("seen once");
    ck_assert_ptr_nonnull(strstr(read_pipe(), "seen once\n"));
    ck_assert_ptr_null(strstr(also_got, "seen once"));
}
END_TEST

START_TEST(syslog_is_opened_with_pid)
{
    sxe_log_to_syslog("me", LOG_LOCAL3);
    ck_assert_str_eq(opened_ident, "me");
    ck_assert_int_eq(opened_facility, LOG_LOCAL3);
    ck_assert_int_eq(opened_options, LOG_PID);
}
END_TEST

#define LOG_AT(level)                                 \
    case level:                                       \
        SXE_LOG_LINE(level, 12, "100%% of %s", "it"); \
        break

START_TEST(syslog_gets_the_priority_and_the_line_without_date_and_pid)
{
    static const int priorities[] = {0,        LOG_CRIT,  LOG_ERR,   LOG_WARNING,
                                     LOG_INFO, LOG_DEBUG, LOG_DEBUG, LOG_DEBUG};
    char expected[] = "    12 0 - 100% of it";

    expected[7] = (char)('0' + _i);
    capture_log();
    sxe_log_set_level(SXE_LOG_DUMP);
    sxe_log_to_syslog("me", LOG_DAEMON);
#undef SXE_CHECKED
#define SXE_CHECKED 1
    switch (_i) {
        LOG_AT(1);
        LOG_AT(2);
        LOG_AT(3);
        LOG_AT(4);
        LOG_AT(5);
        LOG_AT(6);
        LOG_AT(7);
    }
    ck_assert_int_eq(syslog_priority, priorities[_i]);
    ck_assert_str_eq(syslog_line, expected);
}
END_TEST

START_TEST(syslog_gets_json_whole)
{
    capture_log();
    sxe_log_set_format(SXE_LOG_JSON);
    sxe_log_to_syslog("me", LOG_DAEMON);
    SXE_INFO("hello");
    ck_assert_int_eq(strncmp(syslog_line, "{\"ts\":\"", 7), 0);
    ck_assert_int_eq(syslog_line[strlen(syslog_line) - 1], '}');
}
END_TEST

START_TEST(a_line_that_begins_as_a_format_is_text_to_syslog)
{
    capture_log();
    sxe_log_to_syslog("me", LOG_DAEMON);
    SXE_INFO("%s", "%s%n");
    ck_assert_str_eq(syslog_line, "------ 4 - %s%n");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log-sink");
    TCase *descriptor = tcase_create("descriptor");
    TCase *others = tcase_create("others");

    tcase_add_test(descriptor, stderr_is_the_default);
    tcase_add_test(descriptor, a_line_is_one_write);
    tcase_add_test(descriptor, an_interrupted_write_is_tried_again);
    tcase_add_test(descriptor, a_short_write_is_continued);
    tcase_add_loop_test(descriptor, a_line_that_is_refused_is_counted_and_the_next_is_tried, 0,
                        (int)(sizeof(write_errors) / sizeof(write_errors[0])));
    tcase_add_test(descriptor, half_a_line_counts_as_dropped);
    tcase_add_loop_test(descriptor, a_line_after_half_a_line_begins_a_new_line, 0,
                        (int)(sizeof(cuts) / sizeof(cuts[0])));
    tcase_add_test(descriptor, a_full_pipe_is_not_waited_for_though_it_blocks);
    tcase_add_test(descriptor, a_pipe_without_reader_does_not_kill);
    tcase_add_test(descriptor, a_socket_whose_peer_is_gone_does_not_kill);
    tcase_add_test(descriptor, a_closed_descriptor_is_counted);
    tcase_add_test(descriptor, a_line_is_written_though_poll_fails);
    tcase_add_test(descriptor, a_clock_that_fails_still_gives_a_line);
    tcase_add_test(descriptor, a_full_disk_is_counted);
    tcase_add_test(descriptor, lines_of_threads_do_not_mix);
    suite_add_tcase(suite, descriptor);

    tcase_add_test(others, a_function_gets_user_level_and_line);
    tcase_add_test(others, a_line_is_also_shown_to_a_function);
    tcase_add_test(others, syslog_is_opened_with_pid);
    tcase_add_loop_test(others, syslog_gets_the_priority_and_the_line_without_date_and_pid, 1, 8);
    tcase_add_test(others, syslog_gets_json_whole);
    tcase_add_test(others, a_line_that_begins_as_a_format_is_text_to_syslog);
    suite_add_tcase(suite, others);
    return sxe_test_main(suite);
}
