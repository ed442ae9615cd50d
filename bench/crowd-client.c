/* SPDX-License-Identifier: MIT
 *
 * What: measures a server's rate with more and more open connections. They are more than one
 * process may have, so several workers share them, each with raw epoll. A run takes these steps:
 *
 *     open connections -> each asks once, until each has had a reply -> each asks again and again,
 *     -d seconds count -> wait for the last replies -> a line, and a pause -> open more connections
 *
 *     crowd-client [-p port] [-u target] [-s 10000,100000] [-t workers] [-d seconds] [-q pause]
 *                  [-a]
 *
 * The line of results is {"connections", "connect_seconds", "requests", "seconds", "errors"}. In
 * the pause of -q seconds after it nothing is under way, so that the server's memory can be
 * measured. Before the seconds that count there is a line {"connections", "begins"}. With -a there
 * is a line {"connections", "counted"} after these seconds, and the load goes on until the reader
 * of the lines sends SIGUSR1, to count once more (because other processes used the CPUs), or
 * SIGUSR2, to go on with the next step. Connections come from 127.0.0.1 to 127.0.0.8, because one
 * address has only 28,000 ports. The first reply of each worker must have the status 200, and all
 * others must have its length. A connection that is refused, reset or closed is an error, and so is
 * a wrong reply.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "latency.h"

enum {
    WORKERS_MAX = 32,
    STEPS_MAX = 16,
    CONNECTIONS_MAX = 1000000,
    ADDRESSES = 8,
    RAMP = 32,
    EVENTS_MAX = 512,
    REPLY_MAX = 65536,
    REQUEST_MAX = 512,
    TICK_MS = 100,
    STALL_MS = 20000
};

enum phase { OPENING, GREETING, STARTING, COUNTING, DRAINING };

struct options {
    uint16_t port;
    const char *target;
    unsigned workers;
    unsigned steps[STEPS_MAX];
    unsigned steps_number;
    double seconds;
    double pause;
    bool asks;
};

/* Memory that the workers and their parent share. */
struct shared {
    _Atomic unsigned turn;    /* how many phases the parent has begun */
    enum phase phase;         /* the phase that was begun last */
    unsigned connections;     /* how many connections the present step has */
    _Atomic unsigned arrived; /* how many workers have ended the phase */
    _Atomic uint64_t replies; /* how many replies came in the last COUNTING */
    _Atomic uint64_t errors;
    _Atomic uint64_t end_ns; /* when COUNTING ends */
};

struct connection {
    int fd; /* the socket; -1: the connection is lost */
    bool connected;
    bool waiting; /* whether it waits for a reply */
    size_t got;
};

struct worker {
    const struct options *options;
    struct shared *shared;
    unsigned number;
    struct connection *connections;
    unsigned opened;
    unsigned connecting;
    unsigned waiting;
    int epoll_fd;
    char request[REQUEST_MAX];
    size_t request_len;
    size_t reply_len; /* the length of a reply; 0: no reply has come */
    bool asking;
    uint64_t now_ns;
    uint64_t progress_ns;
    uint64_t replies; /* how many replies came since counting began */
};

static char reply[REPLY_MAX + 1];

static _Noreturn void
usage(void)
{
    fprintf(stderr, "usage: crowd-client [-p port] [-u target] [-s connections,...] [-t workers]\n"
                    "                    [-d seconds] [-q pause-seconds] [-a]\n");
    exit(2);
}

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "crowd-client: %s: %s\n", what, why);
    exit(1);
}

static double
number(const char *text, char end_of_it, double min, double max)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || (*end != '\0' && *end != end_of_it) || !(value >= min && value <= max))
        usage();
    return value;
}

static void
parse_steps(struct options *options, const char *text)
{
    options->steps_number = 0;
    while (text != NULL && options->steps_number < STEPS_MAX) {
        options->steps[options->steps_number++] =
            (unsigned)number(text, ',', options->workers, CONNECTIONS_MAX);
        text = strchr(text, ',');
        text += text != NULL;
    }
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {
        .port = 8080, .target = "/", .workers = 6, .seconds = 1, .pause = 0.3};
    const char *steps = "10000,100000";
    int letter;

    while ((letter = getopt(argc, argv, "p:u:s:t:d:q:a")) != -1) {
        if (letter == 'p')
            options.port = (uint16_t)number(optarg, '\0', 1, 65535);
        else if (letter == 'u')
            options.target = optarg;
        else if (letter == 's')
            steps = optarg;
        else if (letter == 't')
            options.workers = (unsigned)number(optarg, '\0', 1, WORKERS_MAX);
        else if (letter == 'd')
            options.seconds = number(optarg, '\0', 0, 3600);
        else if (letter == 'q')
            options.pause = number(optarg, '\0', 0, 3600);
        else if (letter == 'a')
            options.asks = true;
        else
            usage();
    }
    if (optind < argc)
        usage();
    parse_steps(&options, steps);
    return options;
}

/* ---- A worker ---- */

static void
watch(struct worker *worker, struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = connection}};

    if (epoll_ctl(worker->epoll_fd, operation, connection->fd, &event) != 0)
        die("epoll_ctl", strerror(errno));
}

static void
fail(struct worker *worker, struct connection *connection, const char *why)
{
    if (atomic_fetch_add(&worker->shared->errors, 1) == 0)
        fprintf(stderr, "crowd-client: first error: %s\n", why);
    if (!connection->connected)
        worker->connecting--;
    worker->waiting -= connection->waiting;
    close(connection->fd);
    connection->fd = -1;
    connection->waiting = false;
}

static void
start_connect(struct worker *worker, struct connection *connection)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    const uint32_t mine = INADDR_LOOPBACK + (worker->opened + worker->number) % ADDRESSES;
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(mine)};
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(worker->options->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    worker->opened++;
    worker->connecting++;
    connection->connected = false;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Close with a reset, which leaves no TIME_WAIT. Let connect choose the port, because it knows
     * both addresses. */
    if (connection->fd < 0 ||
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0 ||
        setsockopt(connection->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) != 0 ||
        bind(connection->fd, (const struct sockaddr *)&from, sizeof(from)) != 0)
        die("socket", strerror(errno));
    if (connect(connection->fd, (const struct sockaddr *)&to, sizeof(to)) != 0 &&
        errno != EINPROGRESS)
        fail(worker, connection, strerror(errno));
    else
        watch(worker, connection, EPOLL_CTL_ADD, EPOLLOUT);
}

static void
finish_connect(struct worker *worker, struct connection *connection, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP)) {
        fail(worker, connection, "a connection was refused or reset");
        return;
    }
    watch(worker, connection, EPOLL_CTL_MOD, EPOLLIN);
    connection->connected = true;
    worker->connecting--;
}

static void
ask(struct worker *worker, struct connection *connection)
{
    if (write(connection->fd, worker->request, worker->request_len) !=
        (ssize_t)worker->request_len) {
        fail(worker, connection, "a request was not taken");
        return;
    }
    worker->waiting += !connection->waiting;
    connection->waiting = true;
    connection->got = 0;
}

static size_t
length_of_first_reply(size_t got)
{
    const char *end;
    const char *field;

    reply[got] = '\0';
    end = strstr(reply, "\r\n\r\n");
    field = strcasestr(reply, "\r\nContent-Length:");
    if (strncmp(reply + 8, " 200", 4) != 0 || end == NULL || field == NULL || field > end)
        die("the first reply", "no status 200, or no Content-Length");
    return (size_t)(end - reply) + 4 + strtoul(field + sizeof("\r\nContent-Length:") - 1, NULL, 10);
}

static void
take(struct worker *worker, struct connection *connection)
{
    ssize_t got = read(connection->fd, reply, REPLY_MAX);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || !connection->waiting) {
        fail(worker, connection, got == 0 ? "closed by the server" : "reset, or not asked for");
        return;
    }
    if (worker->reply_len == 0)
        worker->reply_len = length_of_first_reply((size_t)got);
    connection->got += (size_t)got;
    if (connection->got > worker->reply_len)
        fail(worker, connection, "a reply is longer than the first one");
    if (connection->got != worker->reply_len)
        return;
    worker->replies++;
    if (worker->asking) {
        ask(worker, connection);
    } else {
        connection->waiting = false;
        worker->waiting--;
    }
}

/* Wait for events, for at most wait_ms, and handle them. */
static void
turn(struct worker *worker, int wait_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, wait_ms);

    if (count < 0 && errno != EINTR)
        die("epoll_wait", strerror(errno));
    worker->now_ns = latency_clock_ns();
    if (count > 0)
        worker->progress_ns = worker->now_ns;
    if (worker->waiting + worker->connecting == 0)
        worker->progress_ns = worker->now_ns;
    if (worker->now_ns - worker->progress_ns > STALL_MS * UINT64_C(1000000))
        die("stopped", "20 seconds without progress");
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;

        if (connection->connected)
            take(worker, connection);
        else
            finish_connect(worker, connection, events[i].events);
    }
}

/* The part of a step's connections that this worker has. */
static unsigned
share_of(const struct worker *worker, unsigned connections)
{
    unsigned workers = worker->options->workers;

    return connections / workers + (worker->number < connections % workers);
}

static void
open_connections(struct worker *worker, unsigned wanted)
{
    while (worker->opened < wanted || worker->connecting > 0) {
        while (worker->connecting < RAMP && worker->opened < wanted)
            start_connect(worker, &worker->connections[worker->opened]);
        turn(worker, TICK_MS);
    }
}

static void
ask_all(struct worker *worker)
{
    for (unsigned i = 0; i < worker->opened; i++) {
        if (worker->connections[i].fd >= 0 && !worker->connections[i].waiting)
            ask(worker, &worker->connections[i]);
        if (i % EVENTS_MAX == 0) /* read the first replies before all requests are sent */
            turn(worker, 0);
    }
}

static void
wait_for_all(struct worker *worker)
{
    while (worker->waiting > 0)
        turn(worker, TICK_MS);
}

static void
count_replies(struct worker *worker)
{
    uint64_t end_ns = atomic_load(&worker->shared->end_ns);

    worker->replies = 0;
    while (latency_clock_ns() < end_ns)
        turn(worker, 10);
    atomic_fetch_add(&worker->shared->replies, worker->replies);
}

/* Do what the phase demands. In GREETING a connection that has its reply waits until all
 * connections have theirs, because some servers answer known connections a dozen times before they
 * answer a new one. */
static void
do_phase(struct worker *worker, enum phase phase, unsigned connections)
{
    worker->progress_ns = latency_clock_ns();
    worker->asking = phase == STARTING || phase == COUNTING;
    switch (phase) {
    case OPENING:
        open_connections(worker, share_of(worker, connections));
        break;
    case GREETING:
        ask_all(worker);
        wait_for_all(worker);
        break;
    case STARTING:
        ask_all(worker);
        break;
    case COUNTING:
        count_replies(worker);
        break;
    case DRAINING:
        wait_for_all(worker);
        break;
    }
}

static _Noreturn void
work(const struct options *options, struct shared *shared, unsigned me)
{
    static struct worker worker;
    unsigned last = options->steps[options->steps_number - 1];

    worker = (struct worker){.options = options, .shared = shared, .number = me};
    worker.request_len = (size_t)snprintf(worker.request, sizeof(worker.request),
                                          "GET %.400s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                                          options->target, options->port);
    worker.connections = calloc(share_of(&worker, last) + 1, sizeof(*worker.connections));
    worker.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (worker.connections == NULL || worker.epoll_fd < 0)
        die("start", strerror(errno));
    for (unsigned done = 0;; done++) { /* until the parent ends it */
        while (atomic_load(&shared->turn) == done)
            turn(&worker, 1);
        do_phase(&worker, shared->phase, shared->connections);
        atomic_fetch_add(&shared->arrived, 1);
    }
}

/* ---- Their parent ---- */

static pid_t
start_worker(const struct options *options, struct shared *shared, unsigned me)
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork", strerror(errno));
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(options, shared, me);
}

/* The signals that tell how to go on. The program waits for them, and handles them in no other
 * way. */
static sigset_t
the_answers(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    return set;
}

/* Wait for the worker, so that a process that waits for us sees the CPU time that workers used. */
static void
end_worker(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Have all workers do a phase. Returns the seconds that it took. */
static double
run_phase(const struct options *options, struct shared *shared, enum phase phase)
{
    uint64_t start_ns = latency_clock_ns();

    shared->phase = phase;
    atomic_store(&shared->arrived, 0);
    atomic_fetch_add(&shared->turn, 1);
    while (atomic_load(&shared->arrived) < options->workers) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            die("stopped", "a worker has ended");
        usleep(1000);
    }
    return (double)(latency_clock_ns() - start_ns) / 1e9;
}

static void
count(const struct options *options, struct shared *shared)
{
    printf("{\"connections\":%u,\"begins\":true}\n", shared->connections);
    fflush(stdout);
    atomic_store(&shared->replies, 0);
    atomic_store(&shared->end_ns, latency_clock_ns() + (uint64_t)(options->seconds * 1e9));
    run_phase(options, shared, COUNTING);
}

/* Whether the reader of the lines wants it counted again: a signal says so; without one the run
 * ends. */
static bool
counts_again(const struct options *options, const struct shared *shared)
{
    static const struct timespec patience = {.tv_sec = STALL_MS / 1000};
    sigset_t answers = the_answers();
    int answer;

    if (!options->asks)
        return false;
    printf("{\"connections\":%u,\"counted\":true}\n", shared->connections);
    fflush(stdout);
    answer = sigtimedwait(&answers, NULL, &patience);
    if (answer < 0)
        die("stopped", "20 seconds without SIGUSR1 or SIGUSR2");
    return answer == SIGUSR1;
}

static void
run_step(const struct options *options, struct shared *shared, unsigned connections)
{
    double connect_seconds;

    shared->connections = connections;
    connect_seconds = run_phase(options, shared, OPENING);
    run_phase(options, shared, GREETING);
    run_phase(options, shared, STARTING);
    do
        count(options, shared);
    while (counts_again(options, shared));
    run_phase(options, shared, DRAINING);
    printf("{\"connections\":%u,\"connect_seconds\":%.6f,\"requests\":%llu,\"seconds\":%.6f,"
           "\"errors\":%llu}\n",
           connections, connect_seconds, (unsigned long long)atomic_load(&shared->replies),
           options->seconds, (unsigned long long)atomic_load(&shared->errors));
    fflush(stdout);
    usleep((useconds_t)(options->pause * 1e6));
}

int
main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    pid_t workers[WORKERS_MAX];
    struct rlimit limit;
    sigset_t answers = the_answers();
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        die("start", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &answers, NULL);
    for (unsigned i = 0; i < options.workers; i++)
        workers[i] = start_worker(&options, shared, i);
    for (unsigned i = 0; i < options.steps_number; i++)
        run_step(&options, shared, options.steps[i]);
    for (unsigned i = 0; i < options.workers; i++)
        end_worker(workers[i]);
    return atomic_load(&shared->errors) == 0 ? 0 : 1;
}
