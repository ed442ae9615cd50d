/* SPDX-License-Identifier: MIT
 *
 * A worker of the load generator, its parent and its server, in one thread and in virtual time: the
 * worker runs its loop; whenever the loop waits, parent and server act; when they have nothing to
 * do either, the time jumps to the next event. So a run of an hour takes no time, and every figure
 * of its result is exact.
 *
 *     static void slow(unsigned client, unsigned query) { answer_in(client, MS(20 * query), OK); }
 *
 *     world.serve = slow;
 *     run_world();
 *     ck_assert_uint_eq(world.result->ends[LOAD_END_OK], 12);
 *
 * The server listens at a unix socket, where bytes arrive at once, or at 127.0.0.1 (world.is_tcp).
 */
#ifndef HTTP_WORLD_H
#define HTTP_WORLD_H

#include "worker-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "test-main.h"

#define MS(n)       ((uint64_t)(n)*1000000)
#define US(n)       ((uint64_t)(n)*1000)
#define SECONDS(n)  MS(1000 * (uint64_t)(n))
#define REQUEST     "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD(n)     "HTTP/1.1 200 OK\r\nContent-Length: " #n "\r\n\r\n"
#define OK          HEAD(2) "ok"
#define CLIENTS_MAX 160
#define ACTS_MAX    4096

/* The real functions that --wrap replaces: calls of parent and server are not counted and do not
 * fail. */
int __real_socket(int family, int type, int protocol);
int __real_socketpair(int family, int type, int protocol, int fds[2]);
int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __real_listen(int fd, int backlog);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __real_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __real_close(int fd);
int __real_shutdown(int fd, int how);
int __real_poll(struct pollfd *fds, nfds_t number, int timeout_ms);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);
void *__real_mmap(void *address, size_t length, int protection, int flags, int fd, off_t at);

enum act_what { ANSWER, HANG_UP, RESET, TELL, PARENT_GOES, LISTEN_ENDS, CALL };

/* A future action of the parent or the server. */
struct act {
    uint64_t at_ns;
    enum act_what what;
    unsigned client;
    const char *text;
    size_t length;
    struct load_message message;
    void (*call)(void);
};

struct client {
    int fd; /* -1: closed */
    size_t unread;
    bool is_unread; /* the server does not read this connection */
    char bytes[65536];
};

static struct world {
    struct load_plan plan;
    struct load_requests requests;
    struct load_expect expect;
    struct load_result *result;
    struct load_result *mark;
    unsigned shard;
    unsigned shards;
    int error; /* what load_worker_run returned */

    /* The source of requests */
    const char *request; /* the request that is sent if there is no next() */
    int (*next)(struct load_requests *, uint64_t sequence, struct load_query *query);
    uint64_t sequences[ACTS_MAX]; /* the sequence numbers for which next() was called */
    unsigned asked;

    /* The parent */
    int control;
    int workers_end;
    bool holds_go;
    uint64_t go_ns; /* the time from READY to GO */
    unsigned ready;
    unsigned marked;
    unsigned done;
    int ready_error;
    uint64_t started_ns; /* the start time in GO */
    uint64_t ended_ns;

    /* The server */
    bool is_tcp;
    int listener;
    char path[128];
    /* Called for each query, counted over all clients. */
    void (*serve)(unsigned client, unsigned query);
    void (*welcome)(unsigned client);
    unsigned accepted;
    unsigned queries;
    uint64_t arrived_ns[ACTS_MAX]; /* when each query arrived, after the start time in GO */
    struct client clients[CLIENTS_MAX];
    struct act acts[ACTS_MAX];
    unsigned acts_number;
    bool is_continued;    /* the worker was stopped while it waited; SIGCONT ends the wait */
    bool has_waited;      /* TCP: waited once for packets on their way */
    unsigned patience_ms; /* real milliseconds to wait for the kernel */
    bool does_not_accept;
    char last_request[512]; /* the last request and bytes before it, as many as fit */
    size_t last_length;
    unsigned ended; /* how often the source's end() was called */
} world;

static uint64_t
now_ns(void)
{
    return sxe_time_ns();
}

/* ---- Actions of servers ---- */

static void
act_at(struct act act)
{
    ck_assert_uint_lt(world.acts_number, ACTS_MAX);
    world.acts[world.acts_number++] = act;
}

static inline void
answer_bytes_in(unsigned client, uint64_t ns, const char *text, size_t length)
{
    act_at((struct act){
        .at_ns = now_ns() + ns, .what = ANSWER, .client = client, .text = text, .length = length});
}

static inline void
answer_in(unsigned client, uint64_t ns, const char *text)
{
    answer_bytes_in(client, ns, text, strlen(text));
}

static inline void
answer(unsigned client, const char *text)
{
    answer_in(client, 0, text);
}

static inline void
hang_up_in(unsigned client, uint64_t ns)
{
    act_at((struct act){.at_ns = now_ns() + ns, .what = HANG_UP, .client = client});
}

static inline void
reset_in(unsigned client, uint64_t ns)
{
    act_at((struct act){.at_ns = now_ns() + ns, .what = RESET, .client = client});
}

/* Let the parent send a message at this time after the start in GO. */
static inline void
tell_at(uint64_t ns, enum load_message_type type)
{
    act_at((struct act){.at_ns = world.started_ns + ns, .what = TELL, .message = {.type = type}});
}

static inline void
call_at(uint64_t ns, void (*call)(void))
{
    act_at((struct act){.at_ns = world.started_ns + ns, .what = CALL, .call = call});
}

static void
close_client(unsigned client)
{
    if (world.clients[client].fd >= 0)
        __real_close(world.clients[client].fd);
    world.clients[client].fd = -1;
}

/* Reset a unix socket: closing it with unread bytes is a reset for the peer. */
static void
reset_client(unsigned client)
{
    struct linger at_once = {.l_onoff = 1};

    if (world.is_tcp)
        __real_setsockopt(world.clients[client].fd, SOL_SOCKET, SO_LINGER, &at_once,
                          sizeof(at_once));
    close_client(client);
}

/* Send; bytes that do not fit now are sent a little later. */
static void
send_some(int fd, const struct act *act)
{
    ssize_t n = fd < 0 ? 0 : __real_send(fd, act->text, act->length, MSG_NOSIGNAL | MSG_DONTWAIT);
    struct act rest = *act;

    if (n < 0 && errno == EAGAIN)
        n = 0;
    if (fd < 0 || n < 0 || (size_t)n == act->length)
        return;
    rest.at_ns = now_ns() + US(1);
    rest.text += n;
    rest.length -= (size_t)n;
    act_at(rest);
}

static void
perform(const struct act *act)
{
    int fd = world.clients[act->client].fd;

    switch (act->what) {
    case ANSWER:
        send_some(fd, act);
        break;
    case HANG_UP:
        close_client(act->client);
        break;
    case RESET:
        reset_client(act->client);
        break;
    case TELL:
        (void)__real_send(world.control, &act->message, sizeof(act->message), MSG_NOSIGNAL);
        break;
    case PARENT_GOES:
        __real_close(world.control);
        world.control = -1;
        break;
    case LISTEN_ENDS:
        __real_close(world.listener);
        world.listener = -1;
        break;
    case CALL:
        act->call();
        break;
    }
}

/* Run the actions that are due, in the order in which they were added. */
static bool
perform_due(uint64_t *next_ns)
{
    for (unsigned i = 0; i < world.acts_number; i++) {
        struct act act = world.acts[i];

        if (act.at_ns <= now_ns()) {
            memmove(&world.acts[i], &world.acts[i + 1],
                    (--world.acts_number - i) * sizeof(world.acts[0]));
            perform(&act);
            return true;
        }
        if (act.at_ns < *next_ns)
            *next_ns = act.at_ns;
    }
    return false;
}

/* ---- The parent ---- */

static inline void
go(void)
{
    struct load_message message = {.type = LOAD_MESSAGE_GO};

    world.started_ns = message.u.start_ns = now_ns() + world.go_ns;
    (void)__real_send(world.control, &message, sizeof(message), MSG_NOSIGNAL);
}

static void (*on_go)(void);

static bool
hear(void)
{
    struct load_message message;

    if (world.control < 0 ||
        __real_recv(world.control, &message, sizeof(message), MSG_DONTWAIT) <= 0)
        return false;
    world.marked += message.type == LOAD_MESSAGE_MARKED;
    world.done += message.type == LOAD_MESSAGE_DONE;
    if (message.type == LOAD_MESSAGE_READY) {
        world.ready++;
        world.ready_error = message.error;
        if (!world.holds_go && message.error == 0)
            go();
        if (on_go != NULL)
            on_go();
    }
    return true;
}

/* ---- The server ---- */

static void
ok_at_once(unsigned client, unsigned query)
{
    (void)query;
    answer(client, OK);
}

static bool
accept_one(void)
{
    int fd = world.listener < 0 || world.does_not_accept
                 ? -1
                 : __real_accept4(world.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return false;
    ck_assert_uint_lt(world.accepted, CLIENTS_MAX);
    world.clients[world.accepted].fd = fd;
    if (world.welcome != NULL)
        world.welcome(world.accepted);
    world.accepted++;
    return true;
}

/* The end of a request's head. A PROXY header of version 2 contains an empty line, too. */
static char *
end_of_request(const struct client *client)
{
    char *version = memmem(client->bytes, client->unread, "HTTP/1.", 7);

    return version == NULL
               ? NULL
               : memmem(version, client->unread - (size_t)(version - client->bytes), "\r\n\r\n", 4);
}

static void
take_requests(unsigned i)
{
    struct client *client = &world.clients[i];
    char *end;

    while (client->fd >= 0 && (end = end_of_request(client)) != NULL) {
        size_t length = (size_t)(end + 4 - client->bytes);

        world.last_length =
            length < sizeof(world.last_request) ? length : sizeof(world.last_request);
        memcpy(world.last_request, client->bytes, world.last_length);
        client->unread -= length;
        memmove(client->bytes, end + 4, client->unread);
        if (world.queries < ACTS_MAX)
            world.arrived_ns[world.queries] = now_ns() - world.started_ns;
        world.serve(i, world.queries++);
    }
}

static bool
read_one(unsigned i)
{
    struct client *client = &world.clients[i];
    ssize_t n;

    if (client->fd < 0 || client->is_unread)
        return false;
    n = __real_recv(client->fd, client->bytes + client->unread,
                    sizeof(client->bytes) - client->unread, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        close_client(i);
        return true;
    }
    client->unread += (size_t)n;
    take_requests(i);
    return true;
}

static bool
be_server(void)
{
    bool did = accept_one();

    for (unsigned i = 0; i < world.accepted; i++)
        did = read_one(i) || did;
    return did;
}

static inline void
in_20_ms(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(20), OK);
}

static inline void
never(unsigned client, unsigned query)
{
    (void)client;
    (void)query;
}

/* ---- Running the world ---- */

/* Wait a moment: packets between two TCP sockets of one machine may need it. */
static bool
wait_for_packets(void)
{
    if (!world.is_tcp)
        return false;
    if (world.patience_ms > 0) {
        unsigned ms = world.patience_ms < 5 ? world.patience_ms : 5;

        __real_poll(NULL, 0, (int)ms);
        world.patience_ms -= ms;
        return true;
    }
    world.has_waited = !world.has_waited;
    __real_poll(NULL, 0, world.has_waited ? 2 : 0);
    return world.has_waited;
}

static uint64_t
turn_world(void)
{
    uint64_t next_ns = FAKE_TIME_NEVER;

    if (world.is_continued) {
        world.is_continued = false;
        return FAKE_TIME_SIGNAL;
    }
    if (hear() || be_server() || perform_due(&next_ns)) {
        world.has_waited = false;
        return FAKE_TIME_LOOK_AGAIN;
    }
    if (wait_for_packets())
        return FAKE_TIME_LOOK_AGAIN;
    world.has_waited = false;
    return next_ns;
}

static inline void
listen_at(const struct sockaddr *address, socklen_t length, int backlog)
{
    world.listener =
        __real_socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(__real_bind(world.listener, address, length), 0);
    ck_assert_int_eq(__real_listen(world.listener, backlog), 0);
}

static inline void
listen_tcp_with(int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);

    __real_close(world.listener);
    listen_at((struct sockaddr *)&address, length, backlog);
    ck_assert_int_eq(__real_getsockname(world.listener, (struct sockaddr *)&address, &length), 0);
    world.is_tcp = true;
    world.plan.unix_path = NULL;
    world.plan.port = ntohs(address.sin_port);
}

static inline void
listen_tcp(void)
{
    listen_tcp_with(128);
}

static inline void
listen_unix(int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "http-world-%d",
                          (int)getpid());

    snprintf(world.path, sizeof(world.path), "@%s", address.sun_path + 1);
    listen_at((struct sockaddr *)&address,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length), backlog);
    world.plan.unix_path = world.path;
}

static int
begin_nothing(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    (void)requests;
    (void)shard;
    (void)shards;
    (void)seed;
    return 0;
}

static int
give_request(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    if (world.asked < ACTS_MAX)
        world.sequences[world.asked++] = sequence;
    query->bytes = world.request;
    query->length = (unsigned)strlen(world.request);
    return world.next == NULL ? 0 : world.next(requests, sequence, query);
}

/* For world.next: three requests, then no more. */
static inline int
three_only(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)query;
    return sequence < 3 ? 0 : -1;
}

static inline int
second_in_100_ms(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    query->delay_ns = sequence == 1 ? MS(100) : 0;
    return 0;
}

static void
end_nothing(struct load_requests *requests, uint64_t *calls, uint64_t *ns)
{
    (void)requests;
    world.ended++;
    *calls = 7;
    *ns = 700;
}

static unsigned fds_before;

/* The default: one socket, one query, closed loop; the server answers at once; GO comes 1 ms after
 * READY. */
static void
make_world(void)
{
    static const char *const names[] = {"GET /", "POST /"};
    size_t size = 2 * sizeof(struct load_result);

    fds_before = fake_os_open_fds();
    fake_time_start(SECONDS(1000), SECONDS(1000000));
    fake_time_idle = turn_world;
    on_go = NULL;
    memset(&world, 0, sizeof(world));
    world.plan = (struct load_plan){.ip = "127.0.0.1",
                                    .sockets = 1,
                                    .workers = 1,
                                    .stop = LOAD_STOP_PER_SOCKET,
                                    .queries = 1,
                                    .drain_ns = SECONDS(1),
                                    .arrivals = LOAD_FIXED,
                                    .depth = 1,
                                    .ramp = 16,
                                    .timeout_ns = SECONDS(5),
                                    .requests = &world.requests,
                                    .expect = &world.expect};
    world.requests = (struct load_requests){.kinds = 2,
                                            .kind_names = names,
                                            .begin = begin_nothing,
                                            .next = give_request,
                                            .end = end_nothing};
    world.shards = 1;
    world.request = REQUEST;
    world.go_ns = MS(1);
    world.serve = ok_at_once;
    ck_assert_ptr_null(load_expect_add_status(&world.expect, "2xx"));
    world.result = __real_mmap(NULL, size, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    world.mark = world.result + 1;
    listen_unix(128);
    sxe_log_set_level(SXE_LOG_FATAL);
}

static inline struct load_worker
world_worker(void)
{
    int ends[2];

    ck_assert_int_eq(__real_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    world.control = ends[0];
    return (struct load_worker){.plan = &world.plan,
                                .shard = world.shard,
                                .shards = world.shards,
                                .result = world.result,
                                .mark = world.mark,
                                .control = ends[1]};
}

static void
end_world(void)
{
    for (unsigned i = 0; i < world.accepted; i++)
        close_client(i);
    if (world.listener >= 0)
        __real_close(world.listener);
    if (world.control >= 0)
        __real_close(world.control);
    ck_assert_uint_eq(fake_os_open_fds(), fds_before);
    world.ended_ns = now_ns();
    fake_time_stop();
}

/* Run the world to its end. The accounts must balance, and nothing may be left open. */
static void
run_world(void)
{
    struct load_worker worker = world_worker();

    world.error = load_worker_run(&worker);
    while (hear())
        continue;
    ck_assert_ptr_null(sxe_loop());
    ck_assert_msg(load_result_check(world.result) == NULL, "%s",
                  load_result_check(world.result) == NULL ? "" : load_result_check(world.result));
    end_world();
}

/* `ok` queries must have ended well, and `number` in this other way. */
static inline void
expect_ends(uint64_t ok, enum load_end end, uint64_t number)
{
    ck_assert_uint_eq(world.result->ends[LOAD_END_OK], ok);
    ck_assert_uint_eq(world.result->ends[end], number);
    ck_assert_uint_eq(load_result_errors(world.result), number);
}

static inline void
expect_all_ok(uint64_t number)
{
    ck_assert_uint_eq(world.result->ends[LOAD_END_OK], number);
    ck_assert_uint_eq(load_result_errors(world.result), 0);
}

#endif
