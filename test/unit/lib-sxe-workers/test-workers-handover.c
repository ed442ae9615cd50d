/* SPDX-License-Identifier: MIT
 *
 * Messages and sockets between the supervisor and its children, and files that change.
 */
#include "sxe-workers-handover-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "sxe-workers-changes-private.h"
#include "test-main.h"

static int ends[2];
static unsigned open_before;
static struct sxe__handover_message got;
static int got_fd;

static void
open_link(void)
{
    open_before = fake_os_open_fds();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    capture_log();
}

static void
close_link(void)
{
    close(ends[0]);
    close(ends[1]);
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
}

static int
receive(void)
{
    return sxe__handover_receive(ends[0], &got, &got_fd);
}

/* ---- Messages ---- */

START_TEST(a_message_arrives_whole)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_FILE, .value = 7};

    snprintf(message.u.path, sizeof(message.u.path), "a.lua");
    ck_assert_int_eq(receive(), 0);
    ck_assert_int_eq(sxe__handover_send(ends[1], &message, -1), 0);
    ck_assert_int_eq(sxe__handover_say(ends[1], SXE__HANDOVER_READY), 0);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, SXE__HANDOVER_FILE);
    ck_assert_uint_eq(got.value, 7);
    ck_assert_str_eq(got.u.path, "a.lua");
    ck_assert_int_eq(got_fd, -1);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, SXE__HANDOVER_READY);
    ck_assert_int_eq(receive(), 0);
}
END_TEST

START_TEST(a_descriptor_goes_with_it)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP};
    int through[2];
    char byte = 0;

    ck_assert_int_eq(pipe2(through, O_CLOEXEC), 0);
    ck_assert_int_eq(sxe__handover_send(ends[1], &message, through[1]), 0);
    ck_assert_int_eq(close(through[1]), 0);
    ck_assert_int_eq(receive(), 1);
    ck_assert_int_ne(fcntl(got_fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(write(got_fd, "x", 1), 1);
    ck_assert_int_eq(read(through[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    close(got_fd);
    close(through[0]);
}
END_TEST

START_TEST(a_send_that_is_interrupted_is_made_again)
{
    fake_os_fail(FAKE_SENDMSG, 1, 3, EINTR);
    ck_assert_int_eq(sxe__handover_say(ends[1], SXE__HANDOVER_READY), 0);
    ck_assert_int_eq(receive(), 1);
}
END_TEST

START_TEST(the_end_of_the_other_is_seen)
{
    close(ends[1]);
    ck_assert_int_eq(receive(), -ECONNRESET);
    ck_assert_int_eq(sxe__handover_say(ends[0], SXE__HANDOVER_END), -EPIPE);
    ends[1] = dup(ends[0]);
}
END_TEST

/* If the other process ends without having read a message, the kernel reports that before the
 * messages that the other process sent. */
START_TEST(what_the_other_sent_before_its_end_arrives)
{
    ck_assert_int_eq(sxe__handover_say(ends[0], SXE__HANDOVER_SAY), 0);
    ck_assert_int_eq(sxe__handover_say(ends[1], SXE__HANDOVER_READY), 0);
    close(ends[1]);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, SXE__HANDOVER_READY);
    ck_assert_int_eq(receive(), -ECONNRESET);
    ends[1] = dup(ends[0]);
}
END_TEST

static const struct {
    int error;
    int result;
} failures[] = {{EINTR, 0}, {EAGAIN, 0}, {ENOMEM, -ENOMEM}};

START_TEST(a_receive_that_fails_is_none_or_the_end)
{
    fake_os_fail(FAKE_RECVMSG, 1, 1, failures[_i].error);
    ck_assert_int_eq(receive(), failures[_i].result);
    ck_assert_int_eq(got_fd, -1);
}
END_TEST

START_TEST(a_packet_of_another_size_says_nothing)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_READY};

    got.kind = SXE__HANDOVER_READY;
    ck_assert_int_eq(send(ends[1], &message, _i == 0 ? 1 : sizeof(message) - 1, 0),
                     _i == 0 ? 1 : sizeof(message) - 1);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, 0);
}
END_TEST

/* Without a limit, the kernel would pass as many descriptors as the buffer has room for. */
START_TEST(of_several_descriptors_one_arrives)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control = {.room = {0}};
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    const int fds[] = {ends[0], ends[0], ends[0]};
    unsigned open = fake_os_open_fds();

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
    packet.msg_controllen = control.header.cmsg_len;
    ck_assert_int_ge(sendmsg(ends[1], &packet, 0), 0);
    ck_assert_int_eq(receive(), 1);
    ck_assert_int_ge(got_fd, 0);
    close(got_fd);
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

/* ---- Sockets ---- */

/* Note a socket as a KEEP message brings it. */
static void
note(unsigned short port, bool is_next)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP, .length = sizeof(address)};

    memcpy(&message.u.address, &address, sizeof(address));
    sxe__handover_note(&message, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), is_next);
}

static void
use(unsigned number, bool is_next)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_USE, .value = number};

    sxe__handover_note(&message, -1, is_next);
}

static int
find(unsigned short port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    return sxe__handover_listeners.find((struct sockaddr *)&address, sizeof(address));
}

/* Wrong messages, as a faulty child would send them, with or without a descriptor. */
static const struct {
    struct sxe__handover_message message;
    bool has_fd;
} senseless[] = {
    {{.kind = SXE__HANDOVER_USE, .value = 1}, false},
    {{.kind = SXE__HANDOVER_USE, .value = SXE__HANDOVER_SOCKETS}, false},
    {{.kind = SXE__HANDOVER_USE, .value = UINT32_MAX}, false},
    {{.kind = SXE__HANDOVER_USE, .value = 0}, true},
    {{.kind = SXE__HANDOVER_KEEP, .length = sizeof(struct sockaddr_in)}, false},
    {{.kind = SXE__HANDOVER_KEEP, .length = 0}, true},
    {{.kind = SXE__HANDOVER_KEEP, .length = sizeof(struct sockaddr_storage) + 1}, true},
    {{.kind = SXE__HANDOVER_KEEP, .length = UINT32_MAX}, true},
};

START_TEST(a_message_that_makes_no_sense_is_ignored)
{
    unsigned open;
    int found;

    sxe__handover_begin(ends[1]);
    note(1, false);
    open = fake_os_open_fds();
    sxe__handover_note(&senseless[_i].message, senseless[_i].has_fd ? dup(0) : -1, false);
    ck_assert_ptr_nonnull(strstr(log_line(0), "ignored an invalid message"));
    ck_assert_uint_eq(fake_os_open_fds(), open);
    found = find(1);
    ck_assert_int_ge(found, 0);
    close(found);
    sxe__handover_close_others();
}
END_TEST

/* The next child would use the descriptor in place of a listener at this address. */
START_TEST(a_descriptor_that_is_no_such_socket_is_not_kept)
{
    const struct {
        int family;
        int type;
    } others[] = {{AF_UNIX, SOCK_STREAM}, {AF_INET, SOCK_DGRAM}, {AF_INET6, SOCK_STREAM}};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(1)};
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP, .length = sizeof(address)};
    unsigned open_first = fake_os_open_fds();

    memcpy(&message.u.address, &address, sizeof(address));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        sxe__handover_note(&message, socket(others[i].family, others[i].type, 0), false);
    sxe__handover_note(&message, open("/dev/null", O_RDONLY | O_CLOEXEC), false);
    ck_assert_uint_eq(captured.number, 4);
    ck_assert_uint_eq(fake_os_open_fds(), open_first);
    sxe__handover_begin(ends[1]);
    ck_assert_int_eq(find(1), -1);
}
END_TEST

/* A new listening socket. */
static int
listening(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

/* Note a listening unix socket, as a child reports it. */
static void
note_path(const char *path)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP,
                                            .length = sizeof(struct sockaddr_un)};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    memcpy(&message.u.address, &address, sizeof(address));
    sxe__handover_note(&message, fd, false);
}

START_TEST(files_of_unix_sockets_go_when_nobody_uses_them)
{
    char paths[3][64];

    sxe__handover_begin(ends[1]);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/tmp/sxe-handover-%d-%u", getpid(), i);
        note_path(paths[i]);
    }
    use(1, true);
    use(2, true);
    sxe__handover_settle(true);
    ck_assert_int_eq(access(paths[0], F_OK), -1);
    ck_assert_int_eq(access(paths[1], F_OK), 0);
    ck_assert_int_eq(unlink(paths[2]), 0);
    note_path(paths[2]); /* the path is now the file of another socket */
    sxe__handover_remove_files();
    ck_assert_int_eq(access(paths[1], F_OK), -1);
    ck_assert_int_eq(access(paths[2], F_OK), -1);
    sxe__handover_close_others();
}
END_TEST

/* A process in another root directory has a socket with this path, which is another file here. */
START_TEST(files_that_others_name_stay_and_those_that_are_named_here_go)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[256] = "sxe-";
    char path[64];

    snprintf(path, sizeof(path), "/tmp/sxe-handover-%d", getpid());
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    for (size_t i = 0; i < sizeof(sa_family_t) + strlen(path); i++)
        snprintf(name + strlen(name), 3, "%02x", ((const unsigned char *)&address)[i]);
    sxe__handover_leave_files();
    note_path(path);
    sxe__handover_remove_files();
    ck_assert_int_eq(access(path, F_OK), 0);
    sxe__handover_close_others();
    ck_assert_int_eq(sxe__handover_adopt(listening(), name, strlen(name)), 0);
    sxe__handover_remove_files();
    ck_assert_int_eq(access(path, F_OK), 0);
    if (_i == 0)
        ck_assert_int_eq(sxe__handover_open((struct sockaddr *)&address,
                                            (socklen_t)(sizeof(sa_family_t) + strlen(path))),
                         0);
    /* The program that passed the socket on may still serve at it. */
    sxe__handover_remove_files();
    ck_assert_int_eq(access(path, F_OK), 0);
    sxe__handover_own_files();
    sxe__handover_remove_files();
    ck_assert_int_eq(access(path, F_OK), _i == 0 ? -1 : 0);
    sxe__handover_close_others();
    unlink(path);
}
END_TEST

START_TEST(what_is_kept_is_found_once_by_its_address)
{
    int fd;

    sxe__handover_begin(ends[1]);
    note(1, false);
    note(2, false);
    note(2, false);
    ck_assert_int_eq(find(3), -1);
    fd = find(2);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, SXE__HANDOVER_USE);
    ck_assert_uint_eq(got.value, 1);
    fd = find(2);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.value, 2);
    ck_assert_int_eq(find(2), -1);
    sxe__handover_close_others();
    ck_assert_int_eq(find(1), -1);
    ck_assert_int_eq(receive(), 0);
}
END_TEST

START_TEST(an_address_of_another_length_is_another)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};

    note(1, false);
    ck_assert_int_eq(sxe__handover_listeners.find((struct sockaddr *)&address, sizeof(address)),
                     -1);
    sxe__handover_close_others();
}
END_TEST

START_TEST(a_socket_that_was_opened_is_told)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sxe__handover_begin(ends[1]);
    sxe__handover_listeners.keep((struct sockaddr *)&address, sizeof(address), fd);
    close(fd);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, SXE__HANDOVER_KEEP);
    ck_assert_uint_eq(got.length, sizeof(address));
    ck_assert_int_eq(memcmp(&got.u.address, &address, sizeof(address)), 0);
    ck_assert_int_ge(got_fd, 0);
    close(got_fd);
}
END_TEST

static struct sockaddr_in
own_address(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int
open_own(void)
{
    struct sockaddr_in address = own_address();

    return sxe__handover_open((struct sockaddr *)&address, sizeof(address));
}

static int
find_own(void)
{
    struct sockaddr_in address = own_address();

    return sxe__handover_listeners.find((struct sockaddr *)&address, sizeof(address));
}

START_TEST(a_socket_that_is_opened_first_outlives_a_load_that_fails)
{
    int fd;

    ck_assert_int_eq(open_own(), 0);
    ck_assert_int_eq(open_own(), 0);
    sxe__handover_settle(false);
    fd = find_own();
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(find_own(), -1);
    ck_assert_int_eq(receive(), 0);
    sxe__handover_close_others();
}
END_TEST

START_TEST(a_socket_that_a_worker_opens_first_is_told_when_it_is_used)
{
    int fd;

    sxe__handover_begin(ends[1]);
    ck_assert_int_eq(open_own(), 0);
    ck_assert_int_eq(receive(), 0);
    fd = find_own();
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(receive(), 1);
    ck_assert_uint_eq(got.kind, SXE__HANDOVER_KEEP);
    ck_assert_int_ge(got_fd, 0);
    close(got_fd);
    sxe__handover_close_others();
}
END_TEST

START_TEST(an_inherited_socket_is_found_at_its_own_address)
{
    struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];
    int fd = listening();

    ck_assert_int_eq(sxe__handover_adopt(fd, NULL, 0), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_uint_eq(sxe__handover_inherited(addresses), 1);
    ck_assert_int_eq(
        sxe__handover_listeners.find((struct sockaddr *)&addresses[0], sizeof(struct sockaddr_in)),
        fd);
    ck_assert_uint_eq(sxe__handover_inherited(addresses), 0);
    ck_assert_int_eq(receive(), 0);
    close(fd);
    sxe__handover_close_others();
}
END_TEST

/* The first name is /tmp in hexadecimal, after the number of AF_UNIX; the others are wrong. */
static const char *const names[] = {"sxe-01002f746d70", "sxe-", "sxe-010", "sxe-0g", "web", NULL};

START_TEST(a_name_of_ours_says_the_address_that_was_asked_for)
{
    struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp"};
    int fd = listening();
    int found;

    ck_assert_int_eq(sxe__handover_adopt(fd, names[_i], names[_i] == NULL ? 0 : strlen(names[_i])),
                     0);
    ck_assert_uint_eq(sxe__handover_inherited(addresses), _i > 0);
    found = sxe__handover_listeners.find((struct sockaddr *)&address, sizeof(sa_family_t) + 4);
    ck_assert_int_eq(found, _i > 0 ? -1 : fd);
    close(fd);
    sxe__handover_close_others();
}
END_TEST

static int
stream(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int
packets(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

static const struct {
    int (*open)(void);
    enum fake_call call;
    unsigned nth; /* which call fails; 0: none */
    int result;
} no_listeners[] = {
    {stream, FAKE_FCNTL, 0, -ENOTSOCK},          {packets, FAKE_FCNTL, 0, -ENOTSOCK},
    {listening, FAKE_GETSOCKOPT, 1, -ENOTSOCK},  {listening, FAKE_GETSOCKOPT, 2, -ENOTSOCK},
    {listening, FAKE_GETSOCKNAME, 1, -ENOTSOCK}, {listening, FAKE_FCNTL, 1, -EBADF},
    {listening, FAKE_FCNTL, 2, -EBADF}};

START_TEST(what_is_no_listener_is_refused)
{
    struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS];
    int fd = no_listeners[_i].open();

    if (no_listeners[_i].nth > 0)
        fake_os_fail(no_listeners[_i].call, no_listeners[_i].nth, 1, EBADF);
    ck_assert_int_eq(sxe__handover_adopt(fd, NULL, 0), no_listeners[_i].result);
    fake_os_reset();
    ck_assert_uint_eq(sxe__handover_inherited(addresses), 0);
    close(fd);
}
END_TEST

START_TEST(a_socket_that_cannot_be_opened_is_an_error)
{
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    ck_assert_int_eq(open_own(), -EMFILE);
    for (unsigned i = 0; i < SXE__HANDOVER_SOCKETS; i++)
        note(1, true);
    ck_assert_int_eq(open_own(), -ENFILE);
    ck_assert_int_eq(sxe__handover_adopt(listening(), NULL, 0), -ENFILE);
    sxe__handover_settle(false);
}
END_TEST

START_TEST(what_the_next_one_does_not_use_is_closed)
{
    unsigned open;

    note(1, true);
    note(2, true);
    sxe__handover_settle(true);
    open = fake_os_open_fds();
    use(1, true);
    note(3, true);
    sxe__handover_settle(true);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    ck_assert_int_eq(find(1), -1);
    close(find(2));
    close(find(3));
    sxe__handover_close_others();
}
END_TEST

START_TEST(what_one_that_joins_uses_is_used_beside_what_was)
{
    note(1, false);
    note(2, true);
    use(0, true);
    sxe__handover_join();
    note(3, true);
    sxe__handover_settle(false);
    close(find(1));
    close(find(2));
    ck_assert_int_eq(find(3), -1);
    sxe__handover_close_others();
}
END_TEST

START_TEST(what_one_that_failed_had_alone_is_closed)
{
    unsigned open;

    note(1, true);
    sxe__handover_settle(true);
    note(2, false);
    open = fake_os_open_fds();
    use(0, true);
    note(3, true);
    sxe__handover_settle(false);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    ck_assert_int_eq(find(3), -1);
    close(find(1));
    close(find(2));
    sxe__handover_close_others();
}
END_TEST

START_TEST(there_is_room_for_so_many)
{
    for (unsigned i = 0; i < SXE__HANDOVER_SOCKETS; i++)
        note(1, true);
    ck_assert_uint_eq(captured.number, 0);
    note(1, true);
    ck_assert(logged("a listening socket will not survive a reload: 128 sockets are kept already"));
    sxe__handover_settle(false);
}
END_TEST

/* ---- Files that change ---- */

static char directory[] = "/tmp/sxe-changes-XXXXXX";

static void
enter_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    sxe__changes_clear();
}

static void
leave_directory(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");

    fputs(text, file);
    fclose(file);
}

START_TEST(a_change_is_seen_when_it_is_over)
{
    write_file("a", "1");
    write_file("b", "1");
    sxe__changes_add("a");
    sxe__changes_add("b");
    sxe__changes_add("a");
    ck_assert(!sxe__changes_look());
    write_file("a", "12");
    ck_assert(!sxe__changes_look());
    write_file("b", "123");
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
    ck_assert(!sxe__changes_look());
}
END_TEST

START_TEST(one_that_is_replaced_or_gone_or_there_again_has_changed)
{
    write_file("a", "1");
    sxe__changes_add("a");
    sxe__changes_add("none");
    write_file("new", "1");
    ck_assert_int_eq(rename("new", "a"), 0);
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
    ck_assert_int_eq(unlink("a"), 0);
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
    write_file("none", "1");
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
}
END_TEST

/* The file is written as rsync --inplace --times does it. */
START_TEST(one_that_is_written_with_its_time_set_back_has_changed)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

    write_file("a", "1");
    ck_assert_int_eq(utimensat(AT_FDCWD, "a", times, 0), 0);
    sxe__changes_add("a");
    do {
        write_file("a", "2");
        ck_assert_int_eq(utimensat(AT_FDCWD, "a", times, 0), 0);
    } while (sxe__changes_look() ||
             !sxe__changes_look()); /* until the kernel's clock has moved on */
}
END_TEST

/* Another process saw a file, and named it, but this process hears of it only after a change. */
START_TEST(a_change_since_another_process_saw_it_is_seen)
{
    struct timespec now;
    struct timespec later;
    struct timespec never = {0};

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    later = (struct timespec){.tv_sec = now.tv_sec + 3600};
    write_file("a", "1");
    write_file("b", "12");
    write_file("c", "1");
    const struct sxe__stamp stamp = sxe__stamp_of("a");
    const struct sxe__stamp same = sxe__stamp_of("c");
    sxe__changes_add_seen("b", &stamp, &later); /* another file, in another root directory */
    sxe__changes_add_seen("b", &stamp, &now);   /* it is watched already */
    sxe__changes_add_seen("c", &same, &now);
    sxe__changes_add_seen("none", &stamp, &now);
    ck_assert(!sxe__changes_look());
    ck_assert(!sxe__changes_look());
    write_file("a", "12");
    sxe__changes_add_seen("a", &stamp, &now);
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
    sxe__changes_clear();
    sxe__changes_add_seen("a", &stamp, &never);
    ck_assert(!sxe__changes_look());
    ck_assert(!sxe__changes_look());
}
END_TEST

START_TEST(a_file_is_named_with_its_stamp)
{
    struct sxe__handover_message message;
    struct sxe__stamp stamp;
    int pair[2];
    int fd;

    write_file("a", "1");
    stamp = sxe__stamp_of("a");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    sxe__handover_name_file(pair[0], "a");
    ck_assert_int_eq(sxe__handover_receive(pair[1], &message, &fd), 1);
    ck_assert_str_eq(message.u.path, "a");
    ck_assert_int_eq(memcmp(&message.u.stamp, &stamp, sizeof(stamp)), 0);
    ck_assert_int_ne(message.u.seen.tv_sec, 0);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

START_TEST(so_many_are_looked_at)
{
    char name[16];

    capture_log();
    for (unsigned i = 0; i <= CHANGES_FILES; i++) {
        snprintf(name, sizeof(name), "%u", i);
        sxe__changes_add(name);
    }
    ck_assert(logged("a change of 256, and of further files, will not be noticed"));
    write_file(name, "1");
    ck_assert(!sxe__changes_look());
    ck_assert(!sxe__changes_look());
    write_file("255", "1");
    ck_assert(!sxe__changes_look());
    sxe__changes_clear();
    ck_assert(!sxe__changes_look());
    write_file("255", "12");
    ck_assert(!sxe__changes_look());
    ck_assert(!sxe__changes_look());
}
END_TEST

/* A load that fails may not name all files: those of the load before count, too. */
START_TEST(files_of_a_failed_load_and_of_the_one_before_are_watched)
{
    write_file("old", "1");
    write_file("new", "1");
    sxe__changes_add("old");
    ck_assert(!sxe__changes_begin_load());
    sxe__changes_add("new");
    ck_assert(!sxe__changes_begin_load()); /* this load failed; the next one fails, too */
    write_file("old", "12");
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
    write_file("new", "12");
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
    ck_assert(!sxe__changes_begin_load());
    sxe__changes_add("new");
    sxe__changes_end_load();
    write_file("old", "123");
    ck_assert(!sxe__changes_look());
    ck_assert(!sxe__changes_look());
    write_file("new", "123");
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_look());
}
END_TEST

START_TEST(a_load_reads_a_change_that_was_not_over)
{
    write_file("a", "1");
    sxe__changes_add("a");
    write_file("a", "12");
    ck_assert(sxe__changes_begin_load());
    ck_assert(!sxe__changes_look());
    write_file("a", "123");
    ck_assert(!sxe__changes_look());
    ck_assert(sxe__changes_begin_load());
    ck_assert(!sxe__changes_look());
}
END_TEST

START_TEST(sockets_are_not_passed_above_the_limit_of_descriptors)
{
    char socket_names[SXE__HANDOVER_NAMES];
    struct rlimit before;
    struct rlimit low;
    int result;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){.rlim_cur = 4, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    result = sxe__handover_export(3, STDERR_FILENO, "link", socket_names);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(result, -EMFILE);
}
END_TEST

static Suite *
handover_suite(void)
{
    Suite *suite = suite_create("httpd handover");
    TCase *link = tcase_create("link");
    TCase *changes = tcase_create("changes");

    tcase_add_checked_fixture(link, open_link, close_link);
    tcase_add_test(link, a_message_arrives_whole);
    tcase_add_test(link, a_descriptor_goes_with_it);
    tcase_add_test(link, a_send_that_is_interrupted_is_made_again);
    tcase_add_test(link, the_end_of_the_other_is_seen);
    tcase_add_test(link, what_the_other_sent_before_its_end_arrives);
    tcase_add_loop_test(link, a_receive_that_fails_is_none_or_the_end, 0,
                        (int)(sizeof(failures) / sizeof(failures[0])));
    tcase_add_loop_test(link, a_message_that_makes_no_sense_is_ignored, 0,
                        sizeof(senseless) / sizeof(senseless[0]));
    tcase_add_loop_test(link, a_packet_of_another_size_says_nothing, 0, 2);
    tcase_add_test(link, of_several_descriptors_one_arrives);
    tcase_add_test(link, a_descriptor_that_is_no_such_socket_is_not_kept);
    tcase_add_test(link, files_of_unix_sockets_go_when_nobody_uses_them);
    tcase_add_loop_test(link, files_that_others_name_stay_and_those_that_are_named_here_go, 0, 2);
    tcase_add_test(link, what_is_kept_is_found_once_by_its_address);
    tcase_add_test(link, an_address_of_another_length_is_another);
    tcase_add_test(link, a_socket_that_was_opened_is_told);
    tcase_add_test(link, a_socket_that_is_opened_first_outlives_a_load_that_fails);
    tcase_add_test(link, a_socket_that_a_worker_opens_first_is_told_when_it_is_used);
    tcase_add_test(link, an_inherited_socket_is_found_at_its_own_address);
    tcase_add_loop_test(link, a_name_of_ours_says_the_address_that_was_asked_for, 0,
                        (int)(sizeof(names) / sizeof(names[0])));
    tcase_add_loop_test(link, what_is_no_listener_is_refused, 0,
                        sizeof(no_listeners) / sizeof(no_listeners[0]));
    tcase_add_test(link, a_socket_that_cannot_be_opened_is_an_error);
    tcase_add_test(link, what_the_next_one_does_not_use_is_closed);
    tcase_add_test(link, what_one_that_failed_had_alone_is_closed);
    tcase_add_test(link, what_one_that_joins_uses_is_used_beside_what_was);
    tcase_add_test(link, there_is_room_for_so_many);
    tcase_add_test(link, sockets_are_not_passed_above_the_limit_of_descriptors);
    suite_add_tcase(suite, link);
    tcase_add_checked_fixture(changes, enter_directory, leave_directory);
    tcase_add_test(changes, a_change_is_seen_when_it_is_over);
    tcase_add_test(changes, one_that_is_replaced_or_gone_or_there_again_has_changed);
    tcase_add_test(changes, one_that_is_written_with_its_time_set_back_has_changed);
    tcase_add_test(changes, a_change_since_another_process_saw_it_is_seen);
    tcase_add_test(changes, a_file_is_named_with_its_stamp);
    tcase_add_test(changes, so_many_are_looked_at);
    tcase_add_test(changes, files_of_a_failed_load_and_of_the_one_before_are_watched);
    tcase_add_test(changes, a_load_reads_a_change_that_was_not_over);
    suite_add_tcase(suite, changes);
    return suite;
}

int
main(void)
{
    return sxe_test_main(handover_suite());
}
