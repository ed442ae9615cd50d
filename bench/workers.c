/* SPDX-License-Identifier: MIT
 *
 * What: several processes that serve one port, each with a loop and a queue of its own
 * (SO_REUSEPORT), for rows that want more than one core or more descriptors than one process may
 * have. The parent binds all sockets before the first process accepts, so that the kernel deals
 * connections to all of them from the start.
 *
 *     workers [-w WORKERS] [-c CONNECTIONS] PORT WHAT
 *         hello                  "Hello, World!"
 *         generate DIRECTORY     S5, see below
 *         SCRIPT [ARG...]        the script returns the handler
 *
 * CONNECTIONS is the number for each worker. The program prints where it listens. If one worker
 * ends, all do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-http.h"
#include "sxe-lua-http.h"
#include "sxe-lua.h"
#include "sxe-pool.h"
#include "sxe-time.h"
#include "sxe-work.h"

enum { WORKERS_MAX = 64, BACKLOG = 4096, TASKS = 16384, JOBS = 256, TEXT_LENGTH = 108000 };

struct options {
    unsigned workers;
    unsigned connections;
    unsigned short port;
    int argc;    /* of the script, itself included */
    char **argv; /* argv[0] is "hello", "generate" or the script */
};

static int listening_fd; /* a worker's own */

static _Noreturn void
usage(void)
{
    fprintf(stderr,
            "usage: workers [-w WORKERS] [-c CONNECTIONS] PORT hello|generate|SCRIPT [ARG...]\n");
    exit(2);
}

static unsigned
number(const char *text, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > max)
        usage();
    return (unsigned)value;
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {.workers = 1, .connections = 10000};
    int letter;

    while ((letter = getopt(argc, argv, "+w:c:")) != -1) {
        if (letter == 'w')
            options.workers = number(optarg, WORKERS_MAX);
        else if (letter == 'c')
            options.connections = number(optarg, 1000000);
        else
            usage();
    }
    if (argc - optind < 2)
        usage();
    options.port = (unsigned short)number(argv[optind], 65535);
    options.argc = argc - optind - 1;
    options.argv = argv + optind + 1;
    return options;
}

static int
listen_on(unsigned short port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BACKLOG) != 0) {
        fprintf(stderr, "workers: port %u: %s\n", port, strerror(errno));
        exit(1);
    }
    return fd;
}

/* ---- The socket that a worker was given ---- */

static int
find_listener(const struct sockaddr *address, socklen_t length)
{
    int fd = listening_fd;

    SXE_UNUSED_PARAMETER(address);
    SXE_UNUSED_PARAMETER(length);
    listening_fd = -1;
    return fd;
}

static void
keep_listener(const struct sockaddr *address, socklen_t length, int fd)
{
    SXE_UNUSED_PARAMETER(address);
    SXE_UNUSED_PARAMETER(length);
    SXE_UNUSED_PARAMETER(fd);
}

static enum sxe_http_verdict
hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply_text(response, 200, "Hello, World!\n");
}

/* ---- S5: a text of random letters and digits is written to a file with a fresh name, read back,
 * and sent. All but the sending is done in a thread, because all of it may block. ---- */

enum { FREE, BUSY, STATES };

struct job {
    struct sxe_work work;
    struct sxe_http_response *response; /* NULL: the client is gone */
    uint64_t random;
    int result;
    bool working;
    char text[TEXT_LENGTH];
};

static struct job *jobs; /* a pool */
static const char *directory;

static void
make_text(struct job *job)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    for (size_t i = 0; i < TEXT_LENGTH; i++) {
        job->random ^= job->random << 13; /* xorshift64 */
        job->random ^= job->random >> 7;
        job->random ^= job->random << 17;
        job->text[i] = letters[(job->random >> 32) * (sizeof(letters) - 1) >> 32];
    }
}

static int
write_and_read(struct job *job, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool good;

    if (fd < 0)
        return -errno;
    good = write(fd, job->text, TEXT_LENGTH) == TEXT_LENGTH;
    close(fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    good = fd >= 0 && read(fd, job->text, TEXT_LENGTH) == TEXT_LENGTH && good;
    if (fd >= 0)
        close(fd);
    return unlink(path) == 0 && good ? 0 : -EIO;
}

static void
generate_in_thread(struct sxe_work *work)
{
    struct job *job = (struct job *)work;
    char path[PATH_MAX];

    make_text(job);
    snprintf(path, sizeof(path), "%s/%d-%016llx", directory, getpid(),
             (unsigned long long)job->random);
    job->result = write_and_read(job, path);
}

static void
free_unless_needed(struct job *job)
{
    if (job->response == NULL && !job->working)
        sxe_pool_move(jobs, (unsigned)(job - jobs), BUSY, FREE);
}

static void
send_text(struct sxe_work *work)
{
    struct job *job = (struct job *)work;

    job->working = false;
    if (job->response != NULL && job->result == 0) {
        sxe_http_add_field(job->response, "Content-Type", "text/plain; charset=utf-8");
        sxe_http_end_borrowed(job->response, job->text, TEXT_LENGTH);
    } else if (job->response != NULL) {
        sxe_http_reply_status(job->response, 500);
    }
    free_unless_needed(job);
}

static void
sent(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    struct job *job = response->user;

    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(result);
    job->response = NULL;
    free_unless_needed(job);
}

static enum sxe_http_verdict
generate(struct sxe_http_request *request, struct sxe_http_response *response)
{
    unsigned id = sxe_pool_take(jobs, FREE, BUSY);
    struct job *job;

    SXE_UNUSED_PARAMETER(request);
    if (id == SXE_POOL_NO_INDEX)
        return sxe_http_reply_status(response, 503);
    job = &jobs[id];
    job->work.run = generate_in_thread;
    job->work.done = send_text;
    job->response = response;
    job->random += sxe_time_ns() | 1;
    job->working = true;
    response->user = job;
    response->on_done = sent;
    sxe_work_submit(&job->work);
    return SXE_HTTP_LATER;
}

static void
prepare_to_generate(const char *wanted)
{
    directory = wanted;
    jobs = sxe_pool_new("jobs", JOBS, sizeof(*jobs), STATES, SXE_POOL_OPTION_UNLOCKED);
    if (jobs == NULL) {
        perror("workers: sxe_pool_new");
        exit(1);
    }
    sxe_work_register(SXE_WORK_THREADS);
}

/* ---- A worker ---- */

static struct sxe_lua *
load_script(const struct options *options)
{
    struct sxe_lua_config config = {.tasks = TASKS, .argc = options->argc, .argv = options->argv};
    struct sxe_lua *lua = sxe_lua_new(&config);

    if (lua == NULL || sxe_lua_http_open(lua) < 0 || sxe_lua_load(lua, options->argv[0]) < 0)
        exit(1);
    return lua;
}

static int
serve(const struct options *options)
{
    static const struct sxe_listeners listeners = {.find = find_listener, .keep = keep_listener};
    struct sxe_config config = *sxe_get_config();
    struct sxe_http_config http_config = {.connections = options->connections,
                                          .requests_max = UINT32_MAX,
                                          .idle_timeout_ms = UINT32_MAX,
                                          .handler = hello};
    struct sxe_lua *lua = NULL;
    struct sxe_http *http;

    config.listeners = &listeners;
    sxe_configure(&config);
    if (strcmp(options->argv[0], "generate") == 0) {
        prepare_to_generate(options->argc > 1 ? options->argv[1] : "/tmp");
        http_config.handler = generate;
    } else if (strcmp(options->argv[0], "hello") != 0) {
        lua = load_script(options);
        http_config.handler = sxe_lua_http_handle;
        http_config.stream = true;
    }
    http = sxe_http_new(&http_config);
    if (http == NULL || sxe_init() < 0 || (lua != NULL && sxe_lua_init(lua) < 0) ||
        sxe_http_listen(http, "127.0.0.1", options->port) < 0)
        return 1;
    return sxe_run() < 0;
}

static void
start_worker(const struct options *options, const int *fds, unsigned me)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0) {
        perror("workers: fork");
        exit(1);
    }
    if (pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        exit(1);
    for (unsigned i = 0; i < options->workers; i++) {
        if (i != me)
            close(fds[i]);
    }
    listening_fd = fds[me];
    exit(serve(options));
}

int
main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    int fds[WORKERS_MAX];

    for (unsigned i = 0; i < options.workers; i++)
        fds[i] = listen_on(options.port);
    for (unsigned i = 0; i < options.workers; i++)
        start_worker(&options, fds, i);
    for (unsigned i = 0; i < options.workers; i++)
        close(fds[i]);
    printf("http://127.0.0.1:%u/\n", options.port);
    fflush(stdout);
    wait(NULL);
    fprintf(stderr, "workers: one of them has ended\n");
    return 1;
}
