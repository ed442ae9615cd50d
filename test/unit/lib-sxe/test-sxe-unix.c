/* SPDX-License-Identifier: MIT
 *
 * Tests Unix sockets: with a path in the file system, and abstract.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

static char directory[40];
static char path[60];

/* Make a directory for the case; it is removed after it. */
static void
set_up(void)
{
    snprintf(directory, sizeof(directory), "/tmp/test-sxe-unix-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    plan_start(6);
}

static void
tear_down(void)
{
    plan_stop();
    unlink(path);
    ck_assert_int_eq(rmdir(directory), 0);
}

/* An abstract name that nobody else uses: our own path with @ in place of its first byte. */
static const char *
abstract_name(void)
{
    static char name[60];

    snprintf(name, sizeof(name), "@%s", directory);
    return name;
}

static SXE *
new_unix(const char *at)
{
    SXE *s = sxe_new_unix(NULL, at, push_connected, push_read, push_close);

    ck_assert_ptr_nonnull(s);
    return s;
}

/* Connect two sockets by this name: ends[0] connected, ends[1] was accepted. */
static void
connect_both(SXE *listener, const char *at, SXE *ends[2])
{
    ends[0] = new_unix(at);
    ck_assert_int_eq(sxe_connect_unix(ends[0]), 0);
    ck_assert_int_eq(sxe_get_state(ends[0]), SXE_STATE_CONNECTING);
    ck_assert_uint_eq(event_count(), 0);
    ends[1] = NULL;
    for (unsigned i = 0; i < 2; i++) {
        const void *object = EXPECT("connected", NULL, 0)->object;
        if (object != ends[0])
            ends[1] = (SXE *)(uintptr_t)object;
    }
    ck_assert_ptr_nonnull(ends[1]);
    ck_assert_ptr_ne(ends[1], listener);
}

static void
talk(SXE *ends[2])
{
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(sxe_write(ends[i], "hello", 5), 0);
        EXPECT_READ(ends[1 - i], "hello");
    }
}

START_TEST(unix_sockets_connect_talk_and_close)
{
    const char *at = _i == 0 ? path : abstract_name();
    SXE *listener = new_unix(at);
    struct sockaddr_storage address;
    SXE *ends[2];

    SXE_USER_DATA(listener) = directory;
    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_str_eq(sxe_local_ip(listener), at);
    ck_assert_uint_eq(sxe_local_port(listener), 0);
    ck_assert_int_eq(access(path, F_OK), _i == 0 ? 0 : -1);
    connect_both(listener, at, ends);
    ck_assert_ptr_eq(SXE_USER_DATA(ends[1]), directory);
    ck_assert_ptr_null(SXE_USER_DATA(ends[0]));
    ck_assert_str_eq(sxe_peer_ip(ends[0]), at);
    ck_assert_str_eq(sxe_local_ip(ends[1]), at);
    ck_assert_str_eq(sxe_peer_ip(ends[1]), "");
    ck_assert_uint_eq(sxe_get_peer(ends[1], &address), sizeof(address.ss_family));
    ck_assert_int_eq(address.ss_family, AF_UNIX);
    ck_assert_uint_eq(sxe_peer_port(ends[0]), 0);
    talk(ends);
    ck_assert_int_eq(sxe_close(ends[_i]), 0);
    EXPECT("close", ends[_i], 0);
    EXPECT("close", ends[1 - _i], 0);
}
END_TEST

START_TEST(a_half_close_passes_and_an_abort_ends_both)
{
    SXE *listener = new_unix(path);
    SXE *ends[2];

    sxe_set_half_close(listener, true);
    ck_assert_int_eq(sxe_listen(listener), 0);
    connect_both(listener, path, ends);
    ck_assert_int_eq(sxe_shutdown(ends[0]), 0);
    EXPECT("read", ends[1], 0);
    ck_assert_int_eq(sxe_write(ends[1], "still", 5), 0);
    EXPECT_READ(ends[0], "still");
    ck_assert_int_eq(sxe_abort(ends[1]), 0);
    EXPECT("close", ends[1], ECONNABORTED);
    EXPECT("close", ends[0], 0);
}
END_TEST

START_TEST(a_oneshot_listener_becomes_the_connection)
{
    SXE *s = new_unix(abstract_name());
    SXE *client = new_unix(abstract_name());
    SXE *ends[2] = {s, client};

    ck_assert_int_eq(sxe_listen_oneshot(s), 0);
    ck_assert_int_eq(sxe_connect_unix(client), 0);
    EXPECT("connected", NULL, 0);
    EXPECT("connected", NULL, 0);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_IDLE);
    talk(ends);
    SXE *late = new_unix(abstract_name());
    ck_assert_int_eq(sxe_connect_unix(late), -ECONNREFUSED);
}
END_TEST

/* ---- Files that already exist at the path ---- */

static void
leave_a_dead_socket(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    memcpy(at.sun_path, path, strlen(path));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    close(fd);
}

START_TEST(a_dead_socket_file_is_replaced)
{
    SXE *ends[2];

    leave_a_dead_socket();
    SXE *listener = new_unix(path);
    ck_assert_int_eq(sxe_listen(listener), 0);
    connect_both(listener, path, ends);
    talk(ends);
}
END_TEST

START_TEST(a_listener_that_closed_leaves_a_dead_file_that_is_replaced)
{
    for (unsigned i = 0; i < 3; i++) {
        SXE *listener = new_unix(path);

        ck_assert_int_eq(sxe_listen(listener), 0);
        ck_assert_int_eq(sxe_close(listener), 0);
        turn(1);
    }
}
END_TEST

START_TEST(a_living_socket_is_left_alone)
{
    const char *at = _i == 0 ? path : abstract_name();
    SXE *first = new_unix(at);
    SXE *second = new_unix(at);
    SXE *ends[2];
    unsigned open;

    ck_assert_int_eq(sxe_listen(first), 0);
    open = fake_os_open_fds();
    ck_assert_int_eq(sxe_listen(second), -EADDRINUSE);
    ck_assert_int_eq(sxe_get_state(second), SXE_STATE_NEW);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    turn(5);
    EXPECT_NOTHING();
    connect_both(first, at, ends);
    talk(ends);
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone)
{
    struct stat before;
    struct stat after;
    SXE *s = new_unix(path);
    int fd;

    if (_i == 0) {
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        ck_assert_int_eq(write(fd, "precious", 8), 8);
        close(fd);
    } else if (_i == 1) {
        ck_assert_int_eq(symlink("/nowhere", path), 0);
    } else {
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    }
    ck_assert_int_eq(lstat(path, &before), 0);
    ck_assert_int_eq(sxe_listen(s), -EADDRINUSE);
    ck_assert_int_eq(lstat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(before.st_size, after.st_size);
    unlink(path);
    ck_assert_int_eq(sxe_listen(s), 0);
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
    int result;
} faults[] = {
    {FAKE_SOCKET, 1, EMFILE, -EMFILE},      {FAKE_SOCKET, 2, EMFILE, -EMFILE},
    {FAKE_UNLINK, 1, EPERM, -EADDRINUSE},   {FAKE_BIND, 2, EROFS, -EROFS},
    {FAKE_CONNECT, 1, EAGAIN, -EADDRINUSE}, {FAKE_LISTEN, 1, EIO, -EIO},
};

START_TEST(replacing_a_dead_file_may_fail_and_leaks_nothing)
{
    SXE *s = new_unix(path);
    unsigned open = fake_os_open_fds();

    leave_a_dead_socket();
    fake_os_fail(faults[_i].call, faults[_i].nth, 1, faults[_i].error);
    ck_assert_int_eq(sxe_listen(s), faults[_i].result);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    ck_assert_int_eq(sxe_listen(s), 0);
}
END_TEST

START_TEST(connecting_to_nobody_fails_at_once)
{
    const int errors[] = {ENOENT, ECONNREFUSED, ECONNREFUSED, ENOTDIR};
    char below[80];
    SXE *s;

    snprintf(below, sizeof(below), "%s/below", path);
    if (_i == 1)
        leave_a_dead_socket();
    if (_i == 3)
        close(open(path, O_CREAT | O_WRONLY, 0600));
    s = new_unix(_i == 3 ? below : _i == 2 ? abstract_name() : path);
    unsigned open = fake_os_open_fds();
    ck_assert_int_eq(sxe_connect_unix(s), -errors[_i]);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    EXPECT_NOTHING();
    if (_i > 2)
        return;
    ck_assert_int_eq(sxe_listen(s), 0); /* the socket still has its path */
}
END_TEST

START_TEST(only_a_new_unix_socket_connects)
{
    SXE *tcp = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
    SXE *listener = new_unix(abstract_name());

    ck_assert_int_eq(sxe_listen(listener), 0);
    ck_assert_int_eq(sxe_connect_unix(NULL), -EINVAL);
    ck_assert_int_eq(sxe_connect_unix(tcp), -EINVAL);
    ck_assert_int_eq(sxe_connect_unix(listener), -EINVAL);
    ck_assert_int_eq(sxe_get_state(tcp), SXE_STATE_NEW);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-unix");
    TCase *names = tcase_create("unix");

    tcase_add_checked_fixture(names, set_up, tear_down);
    tcase_add_loop_test(names, unix_sockets_connect_talk_and_close, 0, 2);
    tcase_add_test(names, a_half_close_passes_and_an_abort_ends_both);
    tcase_add_test(names, a_oneshot_listener_becomes_the_connection);
    tcase_add_test(names, a_dead_socket_file_is_replaced);
    tcase_add_test(names, a_listener_that_closed_leaves_a_dead_file_that_is_replaced);
    tcase_add_loop_test(names, a_living_socket_is_left_alone, 0, 2);
    tcase_add_loop_test(names, what_is_no_socket_is_left_alone, 0, 3);
    tcase_add_loop_test(names, replacing_a_dead_file_may_fail_and_leaks_nothing, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_loop_test(names, connecting_to_nobody_fails_at_once, 0, 4);
    tcase_add_test(names, only_a_new_unix_socket_connects);
    suite_add_tcase(suite, names);
    return sxe_test_main(suite);
}
