/* SPDX-License-Identifier: MIT
 *
 * The life of a socket: which callbacks run, how often, in which order, and that it is freed.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "outside.h"
#include "sxe.h"

enum { CONNECTIONS = 64 };

static SXE *listener;
static bool inside;                      /* whether the program is inside a call of the library */
static unsigned closes[2 * CONNECTIONS]; /* how often each id was closed */
static unsigned open_number;             /* sockets whose on_close is still to come */
static unsigned greetings;

static unsigned
count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned number = 0;

    while (readdir(directory) != NULL)
        number++;
    closedir(directory);
    return number;
}

static void
count_close(SXE *this)
{
    ck_assert(!inside);
    ck_assert_uint_eq(closes[SXE_ID(this)]++, 0);
    if (--open_number == 0)
        sxe_stop();
}

static void
begin(unsigned connections, SXE_IN_EVENT_CONNECTED connected, SXE_IN_EVENT_READ read)
{
    sxe_register(connections, sizeof(unsigned));
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, connected, read, count_close);
    ck_assert_ptr_nonnull(listener);
    ck_assert_int_eq(sxe_listen(listener), 0);
}

static SXE *
dial(SXE_IN_EVENT_CONNECTED connected, SXE_IN_EVENT_READ read)
{
    SXE *this = sxe_new_tcp(NULL, "", 0, connected, read, count_close);

    ck_assert_ptr_nonnull(this);
    ck_assert_int_eq(sxe_connect(this, "127.0.0.1", sxe_local_port(listener)), 0);
    return this;
}

/* ---- Callbacks of sockets ---- */

/* Make one call of each kind; a callback that ran inside one of them would see `inside`. */
static void
do_everything(SXE *this)
{
    char *room;

    ck_assert(!inside);
    inside = true;
    sxe_write(this, "hello", 5);
    sxe_send(this, "hello", 5, NULL);
    if ((room = sxe_reserve(this, 5)) != NULL) {
        memcpy(room, "hello", 5);
        sxe_commit(this, 5);
    }
    sxe_pause(this);
    sxe_resume(this, SXE_RESUME_IMMEDIATE);
    if (greetings++ >= 3)
        sxe_close(this);
    inside = false;
}

static void
answer_with_everything(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    ck_assert(!inside);
    SXE_BUF_CLEAR(this);
    do_everything(this);
}

/* promise: lib-sxe/sxe.h: no callback runs inside a call that the program makes. */
START_TEST(a_callback_comes_after_the_call_that_causes_it)
{
    begin(8, do_everything, answer_with_everything);
    open_number = 2;
    inside = true;
    dial(do_everything, answer_with_everything);
    inside = false;
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_ge(greetings, 4);
    inside = true;
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- Ends of connections ---- */

static unsigned way; /* which way of closing close_some_way chooses */

static void
close_some_way(SXE *this)
{
    static int (*const ways[])(SXE *) = {sxe_close, sxe_abort, sxe_close_lingering};

    for (unsigned i = 0; i < 3; i++)
        ways[(way + i) % 3](this);
    sxe_write(this, "late", 4);
}

static void
write_hello(SXE *this)
{
    sxe_write(this, "hello", 5);
}

static void
close_when_read(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    ck_assert_uint_eq(closes[SXE_ID(this)], 0);
    close_some_way(this);
}

static void
ignore_read(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    ck_assert_uint_eq(closes[SXE_ID(this)], 0);
    SXE_BUF_CLEAR(this);
}

/* promise: lib-sxe/sxe.h: on_close runs exactly once for each socket that was connecting or
 * connected, whoever closed it, and is the socket's last callback */
START_TEST(each_socket_is_closed_once_however_often_and_by_whomever)
{
    begin(2 * CONNECTIONS, close_some_way, close_when_read);
    for (way = 0; way < 3; way++) {
        const unsigned before = count_descriptors();

        memset(closes, 0, sizeof(closes));
        listener->on_connected = way == 0 ? close_some_way : write_hello;
        open_number = 20;
        for (unsigned i = 0; i < 10; i++)
            dial(i % 3 == 0 ? close_some_way : write_hello,
                 i % 3 == 1 ? close_when_read : ignore_read);
        ck_assert_int_eq(sxe_run(), 0);
        ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CLOSING), 0);
        ck_assert_uint_eq(count_descriptors(), before);
    }
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: lib-sxe/sxe.h: if connecting fails later, on_close is called. */
START_TEST(a_refused_connection_is_closed_with_its_reason)
{
    SXE *this;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    /* a socket that is bound to a port, but does not listen */
    int nobody = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(nobody, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(getsockname(nobody, (struct sockaddr *)&address, &length), 0);
    begin(4, NULL, ignore_read);
    open_number = 1;
    this = sxe_new_tcp(NULL, "", 0, NULL, ignore_read, count_close);
    ck_assert_int_eq(sxe_connect(this, "127.0.0.1", ntohs(address.sin_port)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(sxe_error(this), ECONNREFUSED);
    ck_assert_int_eq(sxe_fini(), 0);
    close(nobody);
}
END_TEST

/* promise: lib-sxe/sxe.h: 0; -errno: the socket is still NEW. */
START_TEST(a_connect_that_cannot_begin_may_be_tried_again)
{
    unsigned in_loop;
    SXE *this;

    begin(4, NULL, ignore_read);
    in_loop = count_descriptors();
    this = sxe_new_tcp(NULL, "", 0, close_some_way, ignore_read, count_close);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_lt(sxe_connect(this, "not an address", 80), 0);
    ck_assert_uint_eq(sxe_get_state(this), SXE_STATE_NEW);
    ck_assert_uint_eq(count_descriptors(), in_loop);
    open_number = 2;
    ck_assert_int_eq(sxe_connect(this, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(count_descriptors(), in_loop);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: lib-sxe/sxe.h: Close everything without callbacks and free it; sxe_register may
 * follow. */
START_TEST(the_library_ends_and_begins_again)
{
    unsigned before = 0;

    for (unsigned round = 0; round < 5; round++) {
        if (round == 1) /* libev's default loop keeps its descriptors */
            before = count_descriptors();
        begin(16 + round, close_some_way, ignore_read);
        for (unsigned i = 0; i < 7; i++)
            dial(NULL, ignore_read);
        open_number = 1000;
        ck_assert_int_ge(ev_run(sxe_loop(), EVRUN_ONCE), 0);
        memset(closes, 1, sizeof(closes)); /* so that a further on_close fails the test */
        ck_assert_int_eq(sxe_fini(), 0);
        memset(closes, 0, sizeof(closes));
        ck_assert(round == 0 || count_descriptors() == before);
        ck_assert_ptr_null(sxe_loop());
    }
}
END_TEST

static SXE *accepted;
static unsigned ends;

static void
pause_at_once(SXE *this)
{
    accepted = this;
    sxe_pause(this);
}

static void
count_ends(SXE *this, int length)
{
    ck_assert_ptr_eq(this, accepted);
    ck_assert_int_eq(length, -1);
    ck_assert(!inside);
    ends++;
}

/* promise: docs/sxe.md: After `sxe_watch_end(s, true)` you learn it at once: `on_read` is called
 * with length -1. */
START_TEST(a_paused_socket_is_told_of_an_end_that_came_before_it_was_asked_for)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int peer = socket(AF_INET, SOCK_STREAM, 0);

    begin(4, pause_at_once, count_ends);
    address.sin_port = htons(sxe_local_port(listener));
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    while (accepted == NULL)
        ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert_int_eq(write(peer, "unread", 6), 6);
    ck_assert_int_eq(shutdown(peer, SHUT_WR), 0);
    for (unsigned i = 0; i < 10; i++)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    ck_assert_uint_eq(ends, 0);
    inside = true;
    sxe_watch_end(accepted, true);
    inside = false;
    for (unsigned i = 0; i < 10; i++)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    ck_assert_uint_ge(ends, 1);
    ck_assert_int_eq(sxe_fini(), 0);
    close(peer);
}
END_TEST

static unsigned guests;

static void
count_guests(SXE *this)
{
    SXE_UNUSED_PARAMETER(this);
    guests++;
}

/* promise: lib-sxe/sxe.h: A unix socket file that no process has open any more is replaced;
 * otherwise the result is -EADDRINUSE. */
START_TEST(a_listener_that_is_refused_does_not_connect_to_the_owner_of_the_file)
{
    char path[PATH_MAX];
    SXE *owner;
    SXE *other;

    snprintf(path, sizeof(path), "%s", outside_path("socket"));
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    owner = sxe_new_unix(NULL, path, count_guests, ignore_read, NULL);
    other = sxe_new_unix(NULL, path, count_guests, ignore_read, NULL);
    ck_assert_int_eq(sxe_listen(owner), 0);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(sxe_listen(other), -EADDRINUSE);
        ck_assert_int_ge(ev_run(sxe_loop(), EVRUN_NOWAIT), 0);
    }
    ck_assert_uint_eq(guests, 0);
    ck_assert_int_eq(sxe_close(owner), 0);
    ck_assert_int_ge(ev_run(sxe_loop(), EVRUN_NOWAIT), 0);
    ck_assert_int_eq(sxe_listen(other), 0);
    ck_assert_int_eq(sxe_fini(), 0);
    unlink(path);
}
END_TEST

/* ---- Ids and handles of sockets ---- */

/* promise: lib-sxe/sxe.h: new sockets get the ids 0, 1, 2 ...; when all ids were used, a new socket
 * gets the id that has been free longest. */
START_TEST(ids_count_up_and_then_come_back_in_the_order_of_their_ends)
{
    static const unsigned order[] = {5, 2, 7};
    SXE *sockets[8];

    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    for (unsigned i = 0; i < 8; i++) {
        sockets[i] = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
        ck_assert_uint_eq(SXE_ID(sockets[i]), i);
    }
    ck_assert_ptr_null(sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL));
    ck_assert_int_eq(errno, ENFILE);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_close(sockets[order[i]]), 0);
        ck_assert_int_ge(ev_run(sxe_loop(), EVRUN_NOWAIT), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(SXE_ID(sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL)), order[i]);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: lib-sxe/sxe.h: A number for this socket that no other socket ever gets. sxe_from_handle
 * returns its socket, or NULL if that has been freed (after its on_close). */
START_TEST(a_handle_finds_its_socket_or_nothing)
{
    enum { ROUNDS = 10000 };
    static uint64_t handles[ROUNDS];

    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        SXE *this = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);

        handles[round] = sxe_handle(this);
        ck_assert_ptr_eq(sxe_from_handle(handles[round]), this);
        for (unsigned i = round > 3 ? round - 3 : 0; i < round; i++)
            ck_assert_ptr_null(sxe_from_handle(handles[i]));
        sxe_close(this);
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    }
    for (unsigned i = 0; i < ROUNDS; i++)
        ck_assert_ptr_null(sxe_from_handle(handles[i]));
    ck_assert_ptr_null(sxe_from_handle(0x123456789abcdef0));
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

static void
never(struct sxe_timer *timer)
{
    ck_abort_msg("a timer without a loop fired: %p", (void *)timer);
}

/* promise: lib-sxe/sxe.h: before sxe_init and after sxe_fini they are not started: a line of the
 * log says so. */
START_TEST(calls_without_a_loop_are_harmless)
{
    struct sxe_timer timer;
    uint64_t handle = 0;

    sxe_timer_init(&timer, never, 0, 0);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert_ptr_null(sxe_from_handle(handle));
        ck_assert_ptr_null(sxe_from_handle(UINT64_MAX));
        ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
        sxe_stop_listening();
        sxe_timer_start(&timer);
        sxe_timer_stop(&timer);
        begin(2, NULL, ignore_read);
        handle = sxe_handle(listener);
        ck_assert_int_ge(ev_run(sxe_loop(), EVRUN_NOWAIT), 0);
        ck_assert_int_eq(sxe_fini(), 0);
    }
}
END_TEST

static void
look_at_extra(SXE *this)
{
    unsigned *extra = sxe_extra(this);

    ck_assert_uint_eq(*extra, 0);
    *extra = 0xdeadbeef;
    ck_assert_ptr_null(this->user_data);
    sxe_close(this);
}

/* promise: lib-sxe/sxe.h: extra_size bytes, zero for each new socket */
START_TEST(the_extra_bytes_of_a_new_socket_are_zeros)
{
    begin(3, look_at_extra, ignore_read);
    for (unsigned round = 0; round < 10; round++) {
        memset(closes, 0, sizeof(closes));
        open_number = 2;
        dial(look_at_extra, ignore_read);
        ck_assert_int_eq(sxe_run(), 0);
    }
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- Room ---- */

static unsigned served;

static void
serve(SXE *this)
{
    served++;
    sxe_close(this);
}

/* promise: lib-sxe/sxe.h: Listeners stop accepting while no socket or no file descriptor is free */
START_TEST(more_connections_than_sockets_are_served_one_after_the_other)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int peers[30];

    begin(3, serve, ignore_read); /* room for the listener and two connections */
    address.sin_port = htons(sxe_local_port(listener));
    for (unsigned i = 0; i < 30; i++) {
        peers[i] = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(peers[i], (struct sockaddr *)&address, sizeof(address)), 0);
    }
    for (open_number = 1000; served < 30; memset(closes, 0, sizeof(closes)))
        ev_run(sxe_loop(), EVRUN_ONCE);
    for (unsigned i = 0; i < 30; i++) {
        char byte;

        ck_assert_int_eq(read(peers[i], &byte, 1), 0);
        close(peers[i]);
    }
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- Sockets that the loop waits for ---- */

static void
unref(SXE *this)
{
    sxe_unref(this);
    sxe_unref(listener);
}

/* promise: docs/sxe.md: After `sxe_unref(s)` the loop does not wait for that socket any more. */
START_TEST(a_loop_whose_sockets_are_unref_returns)
{
    begin(4, unref, ignore_read);
    open_number = 1000;
    dial(unref, ignore_read);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

static void
unref_write_and_close(SXE *this)
{
    static const char piece[100000];

    sxe_unref(this);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(sxe_write(this, piece, sizeof(piece)), 0);
    ck_assert_int_eq(sxe_close(this), 0);
    ck_assert_int_eq(sxe_close(listener), 0);
}

/* Read until the end, in a child. Returns the child's exit status: 0 if a million bytes came. */
static int
read_a_million(in_port_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    unsigned long sum = 0;
    char piece[65536];
    ssize_t length;

    address.sin_port = htons(port);
    if (connect(peer, (struct sockaddr *)&address, sizeof(address)) < 0)
        return 1;
    while ((length = read(peer, piece, sizeof(piece))) > 0)
        sum += (unsigned long)length;
    return length == 0 && sum == 1000000 ? 0 : 1;
}

/* promise: docs/sxe.md: Once the socket is closed, the loop waits until its written output is
 * sent. */
START_TEST(the_loop_sends_what_was_written_to_an_unref_socket_that_is_closed)
{
    int status = 1;
    pid_t pid;

    begin(4, unref_write_and_close, ignore_read);
    open_number = 1000;
    pid = fork();
    if (pid == 0)
        _exit(read_a_million(sxe_local_port(listener)));
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_callback_comes_after_the_call_that_causes_it,
                            each_socket_is_closed_once_however_often_and_by_whomever,
                            a_refused_connection_is_closed_with_its_reason,
                            a_connect_that_cannot_begin_may_be_tried_again,
                            the_library_ends_and_begins_again,
                            a_paused_socket_is_told_of_an_end_that_came_before_it_was_asked_for,
                            a_listener_that_is_refused_does_not_connect_to_the_owner_of_the_file,
                            ids_count_up_and_then_come_back_in_the_order_of_their_ends,
                            a_handle_finds_its_socket_or_nothing,
                            calls_without_a_loop_are_harmless,
                            the_extra_bytes_of_a_new_socket_are_zeros,
                            more_connections_than_sockets_are_served_one_after_the_other,
                            a_loop_whose_sockets_are_unref_returns,
                            the_loop_sends_what_was_written_to_an_unref_socket_that_is_closed,
                            NULL};

    return outside_run("tcp-life", cases);
}
