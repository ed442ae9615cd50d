/* SPDX-License-Identifier: MIT
 *
 * Tests the plan: sxe_init reserves exactly what was registered, completely or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

static SXE *
new_socket(void)
{
    return sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
}

/* ---- sxe_init ---- */

START_TEST(nothing_works_before_init)
{
    capture_log();
    ck_assert_int_eq(sxe_init(), -EINVAL);
    ck_assert(logged("sxe_init: nothing was registered"));
    sxe_register(1, 0);
    errno = 0;
    ck_assert_ptr_null(new_socket());
    ck_assert_int_eq(errno, ENFILE);
    ck_assert(logged("sxe_init was not called"));
    ck_assert_int_eq(sxe_listen(NULL), -EINVAL);
    ck_assert_int_eq(sxe_connect(NULL, "127.0.0.1", 1), -EINVAL);
    ck_assert_int_eq(sxe_run(), -EINVAL);
    ck_assert_int_eq(sxe_fini(), -EINVAL);
    ck_assert_ptr_null(sxe_loop());
    ck_assert_ptr_null(sxe_from_handle(0));
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 0);
    sxe_stop_listening();
    sxe_stop();
}
END_TEST

static void
do_nothing(struct sxe_timer *unused)
{
    SXE_UNUSED_PARAMETER(unused);
}

static void
do_not_look(struct sxe_signal *unused)
{
    SXE_UNUSED_PARAMETER(unused);
}

START_TEST(timers_and_signals_need_a_loop)
{
    struct sxe_timer timer;
    struct sxe_signal watch;

    capture_log();
    sxe_timer_init(&timer, do_nothing, 0, 0);
    sxe_timer_start(&timer);
    ck_assert(logged("sxe_timer_start: sxe_init was not called"));
    sxe_timer_stop(&timer);
    sxe_signal_start(&watch, SIGUSR1, do_not_look);
    ck_assert(logged("sxe_signal_start: sxe_init was not called"));
    sxe_signal_stop(&watch);
    plan_start(1);
    sxe_timer_start(&timer);
    sxe_signal_start(&watch, SIGUSR1, do_not_look);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_timer_stop(&timer);
    sxe_signal_stop(&watch);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    sxe_timer_stop(&timer);
    sxe_signal_stop(&watch);
    plan_stop();
}
END_TEST

START_TEST(a_plan_that_failed_is_forgotten_by_fini)
{
    capture_log();
    sxe_register(UINT32_MAX, 0);
    ck_assert_int_eq(sxe_init(), -EINVAL);
    ck_assert(logged("sxe_init: too much"));
    ck_assert_int_eq(sxe_fini(), -EINVAL);
    sxe_register(5, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

START_TEST(a_second_init_is_refused_and_changes_nothing)
{
    plan_start(1);
    SXE *s = new_socket();

    capture_log();
    ck_assert_int_eq(sxe_init(), -EINVAL);
    ck_assert(logged("sxe_init: already done"));
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_int_eq(sxe_listen(s), 0);
    plan_stop();
}
END_TEST

START_TEST(registering_after_init_stops_the_program)
{
    plan_start(1);
    sxe_register(1, 0);
}
END_TEST

START_TEST(configuring_after_init_stops_the_program)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    plan_start(1);
    sxe_configure(&config);
}
END_TEST

START_TEST(the_configuration_can_be_looked_at_and_amended)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    ck_assert_uint_eq(sxe_get_config()->chunk_size, 0);
    config.chunk_size = 4096;
    sxe_configure(&config);
    config = *sxe_get_config();
    config.timeout_ms[SXE_STATE_IDLE] = 1000;
    sxe_configure(&config);
    sxe_configure(sxe_get_config());
    ck_assert_uint_eq(sxe_get_config()->chunk_size, 4096);
    ck_assert_uint_eq(sxe_get_config()->output_max, 0);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_uint_eq(sxe_get_config()->chunk_size, 4096);
    ck_assert_uint_eq(sxe_get_config()->timeout_ms[SXE_STATE_IDLE], 1000);
    ck_assert_uint_eq(sxe_get_config()->output_max, 1048576);
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_uint_eq(sxe_get_config()->chunk_size, 0);
}
END_TEST

static const struct {
    unsigned connections[2];
    unsigned extra;
    struct sxe_config config;
} absurd[] = {
    {.connections = {UINT32_MAX, 0}},
    {.connections = {UINT32_MAX, UINT32_MAX}},
    {.connections = {3000000000, 3000000000}},
    {.connections = {UINT32_MAX - 5, 0}, .extra = UINT32_MAX},
    {.connections = {1 << 24, 1}},
    {.connections = {1, 0}, .config = {.chunk_size = UINT32_MAX}},
    {.connections = {1, 0}, .config = {.chunk_size = 0x80000000}},
};

START_TEST(absurd_numbers_are_refused)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    unsigned open = fake_os_open_fds();

    capture_log();
    sxe_register(absurd[_i].connections[0], absurd[_i].extra);
    sxe_register(absurd[_i].connections[1], 0);
    sxe_configure(&absurd[_i].config);
    ck_assert_int_eq(sxe_init(), -EINVAL);
    ck_assert(logged("too much"));
    ck_assert_ptr_null(sxe_loop());
    ck_assert_uint_eq(fake_os_open_fds(), open);
    if (absurd[_i].connections[0] > 1)
        return;
    sxe_configure(&config);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
} refusals[] = {
    {FAKE_EPOLL_CREATE1, EMFILE},
    {FAKE_EPOLL_CREATE1, ENFILE},
    {FAKE_MALLOC, ENOMEM},
    {FAKE_CALLOC, ENOMEM},
};

START_TEST(after_a_failed_init_all_is_as_before)
{
    unsigned open;

    sxe_register(2, 0);
    ck_assert_ptr_nonnull(ev_default_loop(EVFLAG_AUTO));
    open = fake_os_open_fds();
    capture_log();
    fake_os_fail(refusals[_i].call, 1, 1, refusals[_i].error);
    ck_assert_int_eq(sxe_init(), -refusals[_i].error);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert(logged("sxe_init: "));
    ck_assert(logged(strerror(refusals[_i].error)));
    ck_assert_ptr_null(sxe_loop());
    ck_assert_ptr_null(new_socket());
    ck_assert_uint_eq(fake_os_open_fds(), open);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_ptr_nonnull(new_socket());
    ck_assert_ptr_nonnull(new_socket());
    ck_assert_ptr_null(new_socket());
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

START_TEST(the_loop_is_the_default_one_or_the_configured_one)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    struct ev_loop *own = ev_loop_new(EVFLAG_AUTO);

    plan_start(1);
    ck_assert_ptr_eq(sxe_loop(), ev_default_loop(EVFLAG_AUTO));
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_ptr_null(sxe_loop());
    config.loop = own;
    sxe_configure(&config);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_ptr_eq(sxe_loop(), own);
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(own);
}
END_TEST

/* ---- Effects of sxe_init on the process ---- */

START_TEST(the_soft_limit_of_descriptors_becomes_the_hard_one)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    plan_start(1);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
    plan_stop();
}
END_TEST

/* Without a free descriptor libev would abort. */
START_TEST(without_descriptors_there_is_no_loop)
{
    const struct rlimit limit = {64, 64};
    int last = -1;
    int fd;

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    capture_log();
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        last = fd;
    for (int i = 0; i < _i; i++)
        close(last - i);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), -EMFILE);
    ck_assert(logged("Too many open files"));
    for (int i = 3; i <= last - _i; i++)
        close(i);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

START_TEST(a_limit_that_cannot_be_raised_is_told_and_no_failure)
{
    sxe_register(1, 0);
    capture_log();
    fake_os_fail(_i == 0 ? FAKE_SETRLIMIT : FAKE_GETRLIMIT, 1, 1, EPERM);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(logged("cannot raise the limit"), _i == 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

START_TEST(more_sockets_than_descriptors_are_told)
{
    struct rlimit limit = {100, 100};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    capture_log();
    sxe_register(101, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert(logged("101 sockets were registered, but the hard limit of "
                     "open files is 100"));
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

static void
ignore_signal(int number)
{
    (void)number;
}

START_TEST(sigpipe_is_ignored_only_if_it_was_default)
{
    const sighandler_t handlers[] = {SIG_DFL, SIG_IGN, ignore_signal};
    const sighandler_t wanted[] = {SIG_IGN, SIG_IGN, ignore_signal};
    struct sigaction now;

    signal(SIGPIPE, handlers[_i]);
    plan_start(1);
    ck_assert_int_eq(sigaction(SIGPIPE, NULL, &now), 0);
    ck_assert(now.sa_handler == wanted[_i]);
    plan_stop();
}
END_TEST

/* ---- The printed plan ---- */

/* Add up the totals of the lines of a printed plan; *total is the total that the plan itself
 * says. */
static size_t
add_up(const char *text, size_t *total)
{
    size_t sum = 0;
    char line[200];
    size_t value;

    for (; sscanf(text, "%199[^\n]", line) == 1; text += strlen(line) + 1) {
        const char *equals = strrchr(line, '=');

        if (equals != NULL && sscanf(equals, "= %zu", &value) == 1)
            sum += value;
        else if (sscanf(line, "total %zu bytes", &value) == 1)
            *total = value;
        if (text[strlen(line)] == '\0')
            break;
    }
    return sum;
}

static const struct {
    unsigned connections;
    unsigned extra;
    struct sxe_config config;
} plans[] = {
    {1, 0, SXE_CONFIG_DEFAULT},
    {10000, 0, SXE_CONFIG_DEFAULT},
    {100000, 500, SXE_CONFIG_DEFAULT},
    {7, 1, {.chunk_size = 1, .chunks = 3}},
    {1000, 0, {.chunk_size = 65536, .chunks = 1000}},
};

START_TEST(the_printed_plan_adds_up_and_is_the_same_before_and_after)
{
    char *before;
    char *after;
    size_t size;
    size_t total = 0;
    FILE *out = open_memstream(&before, &size);

    sxe_register(plans[_i].connections, plans[_i].extra);
    sxe_configure(&plans[_i].config);
    size_t promised = sxe_plan_print(out);
    fclose(out);
    ck_assert_uint_eq(sxe_plan_print(NULL), promised);
    ck_assert_uint_eq(add_up(before, &total), promised);
    ck_assert_uint_eq(total, promised);
    ck_assert_int_eq(sxe_init(), 0);
    out = open_memstream(&after, &size);
    ck_assert_uint_eq(sxe_plan_print(out), promised);
    fclose(out);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(sxe_fini(), 0);
    free(before);
    free(after);
}
END_TEST

START_TEST(a_plan_for_nothing_is_printed_too)
{
    char *text;
    size_t size;
    size_t total = 0;
    FILE *out = open_memstream(&text, &size);
    size_t promised = sxe_plan_print(out);

    fclose(out);
    ck_assert_uint_eq(add_up(text, &total), promised);
    ck_assert_uint_eq(total, promised);
    free(text);
}
END_TEST

static size_t
address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    ck_assert_int_eq(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Not with AddressSanitizer, whose allocator reserves memory in another way. */
START_TEST(what_is_reserved_is_what_the_plan_says)
{
    const size_t tolerated = 1024 * 1024;
    size_t before;
    size_t taken;
    size_t promised;

    if (SXE_HAVE_ASAN)
        return;
    ck_assert_ptr_nonnull(ev_default_loop(EVFLAG_AUTO));
    sxe_register(100000, 100);
    promised = sxe_plan_print(NULL);
    before = address_space();
    ck_assert_int_eq(sxe_init(), 0);
    taken = address_space() - before;
    ck_assert_uint_ge(taken + tolerated, promised);
    ck_assert_uint_le(taken, promised + tolerated);
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_uint_le(address_space(), before + tolerated);
}
END_TEST

/* Except for libev's list of timers that fire at once, which is allocated for the first timer. */
START_TEST(a_loop_in_use_allocates_nothing)
{
    struct sxe_timer timer = {.user = &timer};
    int peers[20];
    char byte;

    plan_start(30);
    SXE *listener = listen_tcp(push_read);
    sxe_timer_init(&timer, push_timer, 0, 0);
    sxe_timer_start(&timer);
    EXPECT("timer", NULL, 0);
    for (enum fake_call call = FAKE_MALLOC; call <= FAKE_STRDUP; call++)
        fake_os_forbid(call, true);
    for (unsigned i = 0; i < 20; i++) {
        SXE *s = accept_peer(listener, &peers[i]);
        peer_send(peers[i], "?", 1);
        EXPECT_READ(s, "?");
        ck_assert_int_eq(sxe_write(s, "!", 1), 0);
        ck_assert_uint_eq(peer_receive(peers[i], &byte, 1), 1);
    }
    for (unsigned i = 0; i < 20; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    plan_stop();
}
END_TEST

/* ---- The sockets of a plan ---- */

START_TEST(ids_are_0_1_2_in_order_of_creation)
{
    sxe_register(5, 0);
    sxe_register(0, 0);
    sxe_register(5, 0);
    ck_assert_int_eq(sxe_init(), 0);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(SXE_ID(new_socket()), i);
    errno = 0;
    sxe_log_set_level(SXE_LOG_FATAL);
    ck_assert_ptr_null(new_socket());
    ck_assert_int_eq(errno, ENFILE);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

START_TEST(no_kind_of_socket_is_made_when_none_is_free)
{
    plan_start(1);
    new_socket();
    errno = 0;
    if (_i == 0)
        ck_assert_ptr_null(sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL));
    else if (_i == 1)
        ck_assert_ptr_null(sxe_new_udp(NULL, "", 0, NULL));
    else
        ck_assert_ptr_null(sxe_new_unix(NULL, "@nobody", NULL, NULL, NULL));
    ck_assert_int_eq(errno, ENFILE);
    plan_stop();
}
END_TEST

START_TEST(log_lines_are_about_the_socket_that_wants_another)
{
    plan_start(1);
    SXE *from = new_socket();

    capture_log();
    ck_assert_ptr_null(sxe_new_tcp(from, "", 0, NULL, NULL, NULL));
    ck_assert_ptr_null(sxe_new_tcp(from, "nonsense", 0, NULL, NULL, NULL));
    ck_assert_ptr_null(sxe_new_unix(from, "", NULL, NULL, NULL));
    ck_assert_int_eq(sxe_connect(from, "nonsense", 0), -EINVAL);
    ck_assert_int_eq(sxe_write(from, "x", 1), -ENOTCONN);
    ck_assert_uint_eq(captured.number, 5);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_le(captured.levels[i], SXE_LOG_WARNING);
        ck_assert_int_eq(strncmp(log_line(i), "     0 3 - cannot ", 18), 0);
    }
    plan_stop();
}
END_TEST

START_TEST(the_next_id_is_the_longest_free_one)
{
    SXE *sockets[4];

    plan_start(4);
    for (unsigned i = 0; i < 4; i++)
        sockets[i] = new_socket();
    const unsigned order[] = {2, 0, 3, 1};
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(sxe_close(sockets[order[i]]), 0);
        turn(1);
    }
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(SXE_ID(new_socket()), order[i]);
    plan_stop();
}
END_TEST

START_TEST(extras_do_not_overlap_and_start_as_zeros)
{
    const unsigned extra = (unsigned)_i;
    char zeros[200] = "";

    sxe_register(1, 1);
    sxe_register(9, extra);
    sxe_register(0, extra / 2);
    ck_assert_int_eq(sxe_init(), 0);
    for (unsigned life = 1; life < 4; life++) {
        SXE *sockets[10];

        for (unsigned i = 0; i < 10; i++) {
            sockets[i] = new_socket();
            ck_assert_mem_eq(sxe_extra(sockets[i]), zeros, extra);
            memset(sxe_extra(sockets[i]), (int)(life * 10 + i), extra);
        }
        for (unsigned i = 0; i < 10; i++) {
            const unsigned char *bytes = sxe_extra(sockets[i]);
            for (unsigned j = 0; j < extra; j++)
                ck_assert_uint_eq(bytes[j], life * 10 + i);
            ck_assert_uint_eq(SXE_ID(sockets[i]), i);
            ck_assert_int_eq(sxe_close(sockets[i]), 0);
        }
        turn(1);
    }
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

START_TEST(a_new_socket_knows_nothing_of_the_one_before)
{
    plan_start(1);
    SXE *s = new_socket();

    ck_assert_ptr_null(SXE_USER_DATA(s));
    SXE_USER_DATA(s) = &errno;
    sxe_set_half_close(s, true);
    sxe_pause(s);
    ck_assert_int_eq(sxe_abort(s), 0);
    turn(1);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_FREE);
    ck_assert_ptr_eq(new_socket(), s);
    ck_assert_ptr_null(SXE_USER_DATA(s));
    ck_assert_int_eq(sxe_error(s), 0);
    ck_assert_int_eq(sxe_fd(s), -1);
    ck_assert_uint_eq(s->flags & ~1u, 0);
    plan_stop();
}
END_TEST

START_TEST(user_data_holds_an_int_of_either_sign)
{
    plan_start(1);
    SXE *s = new_socket();

    SXE_USER_DATA(s) = (void *)(intptr_t)-7;
    ck_assert_int_eq(SXE_USER_DATA_AS_INT(s), -7);
    plan_stop();
}
END_TEST

START_TEST(a_handle_outlives_its_socket)
{
    uint64_t handles[100];

    plan_start(3);
    SXE *other = new_socket();
    for (unsigned i = 0; i < 100; i++) {
        SXE *s = new_socket();

        handles[i] = sxe_handle(s);
        ck_assert_uint_ne(handles[i], 0);
        ck_assert_ptr_eq(sxe_from_handle(handles[i]), s);
        for (unsigned j = 0; j < i; j++)
            ck_assert_ptr_null(sxe_from_handle(handles[j]));
        ck_assert_int_eq(sxe_close(s), 0);
        ck_assert_ptr_eq(sxe_from_handle(handles[i]), s);
        turn(1);
        ck_assert_ptr_null(sxe_from_handle(handles[i]));
    }
    ck_assert_ptr_eq(sxe_from_handle(sxe_handle(other)), other);
    ck_assert_ptr_null(sxe_from_handle(0));
    ck_assert_ptr_null(sxe_from_handle(UINT64_MAX));
    plan_stop();
}
END_TEST

/* Make `number` sockets and keep their handles. */
static void
keep_handles(uint64_t *handles, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        handles[i] = sxe_handle(new_socket());
}

START_TEST(a_handle_means_nothing_after_fini)
{
    uint64_t handles[3][4];

    for (unsigned round = 0; round < 3; round++) {
        plan_start(4);
        keep_handles(handles[round], 4);
        for (unsigned i = 0; i < 4 * round; i++)
            ck_assert_ptr_null(sxe_from_handle(handles[i / 4][i % 4]));
        plan_stop();
        ck_assert_ptr_null(sxe_from_handle(handles[round][0]));
    }
}
END_TEST

static void *
look_for_handles(void *user)
{
    const uint64_t *handles = user;
    struct sxe_config config = *sxe_get_config();
    uintptr_t found = 0;
    uint64_t own[4];

    config.loop = ev_loop_new(0);
    sxe_configure(&config);
    sxe_register(4, 0);
    if (sxe_init() < 0)
        return (void *)(uintptr_t)99;
    keep_handles(own, 4);
    for (unsigned i = 0; i < 4; i++)
        found += sxe_from_handle(handles[i]) != NULL;
    (void)!sxe_fini();
    ev_loop_destroy(config.loop);
    return (void *)found;
}

START_TEST(a_handle_means_nothing_in_another_thread)
{
    uint64_t handles[4];
    pthread_t thread;
    void *found;

    plan_start(4);
    keep_handles(handles, 4);
    ck_assert_int_eq(pthread_create(&thread, NULL, look_for_handles, handles), 0);
    ck_assert_int_eq(pthread_join(thread, &found), 0);
    ck_assert_ptr_null(found);
    plan_stop();
}
END_TEST

START_TEST(every_state_has_a_name)
{
    for (unsigned i = 0; i < SXE_STATES; i++) {
        ck_assert_int_gt(strlen(sxe_state_to_string(i)), 2);
        for (unsigned j = 0; j < i; j++)
            ck_assert_str_ne(sxe_state_to_string(i), sxe_state_to_string(j));
    }
    ck_assert_str_eq(sxe_state_to_string(SXE_STATE_IDLE), "IDLE");
    ck_assert_str_eq(sxe_state_to_string(SXE_STATES), "?");
    ck_assert_str_eq(sxe_state_to_string(UINT32_MAX), "?");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-plan");
    TCase *init = tcase_create("init");
    TCase *plan = tcase_create("plan");
    TCase *sockets = tcase_create("sockets");

    tcase_add_test(init, nothing_works_before_init);
    tcase_add_test(init, timers_and_signals_need_a_loop);
    tcase_add_test(init, a_plan_that_failed_is_forgotten_by_fini);
    tcase_add_test(init, a_second_init_is_refused_and_changes_nothing);
    tcase_add_test_raise_signal(init, registering_after_init_stops_the_program, SIGABRT);
    tcase_add_test_raise_signal(init, configuring_after_init_stops_the_program, SIGABRT);
    tcase_add_test(init, the_configuration_can_be_looked_at_and_amended);
    tcase_add_loop_test(init, absurd_numbers_are_refused, 0, sizeof(absurd) / sizeof(absurd[0]));
    tcase_add_loop_test(init, after_a_failed_init_all_is_as_before, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(init, the_loop_is_the_default_one_or_the_configured_one);
    tcase_add_test(init, the_soft_limit_of_descriptors_becomes_the_hard_one);
    tcase_add_loop_test(init, without_descriptors_there_is_no_loop, 0, 3);
    tcase_add_loop_test(init, a_limit_that_cannot_be_raised_is_told_and_no_failure, 0, 2);
    tcase_add_test(init, more_sockets_than_descriptors_are_told);
    tcase_add_loop_test(init, sigpipe_is_ignored_only_if_it_was_default, 0, 3);
    suite_add_tcase(suite, init);
    tcase_add_loop_test(plan, the_printed_plan_adds_up_and_is_the_same_before_and_after, 0,
                        sizeof(plans) / sizeof(plans[0]));
    tcase_add_test(plan, a_plan_for_nothing_is_printed_too);
    tcase_add_test(plan, what_is_reserved_is_what_the_plan_says);
    tcase_add_test(plan, a_loop_in_use_allocates_nothing);
    suite_add_tcase(suite, plan);
    tcase_add_test(sockets, ids_are_0_1_2_in_order_of_creation);
    tcase_add_loop_test(sockets, no_kind_of_socket_is_made_when_none_is_free, 0, 3);
    tcase_add_test(sockets, log_lines_are_about_the_socket_that_wants_another);
    tcase_add_test(sockets, the_next_id_is_the_longest_free_one);
    tcase_add_loop_test(sockets, extras_do_not_overlap_and_start_as_zeros, 1, 40);
    tcase_add_test(sockets, a_new_socket_knows_nothing_of_the_one_before);
    tcase_add_test(sockets, user_data_holds_an_int_of_either_sign);
    tcase_add_test(sockets, a_handle_outlives_its_socket);
    tcase_add_test(sockets, a_handle_means_nothing_after_fini);
    tcase_add_test(sockets, a_handle_means_nothing_in_another_thread);
    tcase_add_test(sockets, every_state_has_a_name);
    suite_add_tcase(suite, sockets);
    return sxe_test_main(suite);
}
