/* SPDX-License-Identifier: MIT
 *
 * A server with worker processes, by docs/processes.md: workers that crash, hang, drain and are
 * loaded again, while clients connect.
 */
#include "outside.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sxe-workers.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { LONG = 1000000 };

struct reply {
    int pid;
    int load;
    int place;
    char text[16];
};

static char name[64]; /* the address: an abstract name of a unix socket */
static char text[16] = "none";
static pid_t parent;

/* ---- The server ---- */

static void
answer(SXE *s, int length)
{
    const struct sxe_worker *worker = s->user_data;
    char line[64];

    (void)length;
    if (*SXE_BUF(s) == 'h') /* hang */
        while (true)
            continue;
    if (*SXE_BUF(s) == 'c') /* crash */
        raise(SIGKILL);
    if (*SXE_BUF(s) == 'r')
        ck_assert_int_eq(sxe_workers_renew(), 0);
    SXE_BUF_CLEAR(s);
    snprintf(line, sizeof(line), "%d %u %u %s\n", getpid(), worker->load, worker->place, text);
    sxe_write(s, line, (unsigned)strlen(line));
}

static int
serve(void *user, const struct sxe_worker *worker)
{
    static struct sxe_worker own;
    SXE *listener;

    (void)user;
    own = *worker;
    if (strcmp(text, "bad") == 0)
        return 3;
    if (strcmp(text, "nothing") == 0)
        return 0;
    while (strcmp(text, "stuck") == 0)
        pause();
    sxe_register(20, 0);
    if (sxe_init() < 0)
        return 4;
    listener = sxe_new_unix(NULL, name, NULL, answer, NULL);
    listener->user_data = &own;
    return sxe_listen(listener) < 0 || sxe_workers_ready() < 0 || sxe_run() < 0 ? 5 : 0;
}

/* Replace the file at once: a load never finds it empty. */
static void
write_text(const char *new)
{
    char whole[4200];
    FILE *file;

    snprintf(whole, sizeof(whole), "%s.new", outside_path("text"));
    file = fopen(whole, "w");
    ck_assert_ptr_nonnull(file);
    fputs(new, file);
    fclose(file);
    ck_assert_int_eq(rename(whole, outside_path("text")), 0);
}

static void
read_text(void *user)
{
    FILE *file = fopen(outside_path("text"), "r");

    (void)user;
    if (file == NULL)
        return;
    (void)!fscanf(file, "%15s", text);
    fclose(file);
    /* Here, not in the worker: a worker may serve before its parent has heard of the file. */
    if (strcmp(text, "watched") == 0)
        sxe_workers_watch_file(outside_path("text"));
}

static void
start(const struct sxe_workers_config *config)
{
    struct sxe_workers_config own = *config;

    own.serve = serve;
    own.on_load = read_text;
    snprintf(name, sizeof(name), "@sxe-workers-life-%d", getpid());
    parent = fork();
    if (parent == 0) {
        sxe_log_set_level(SXE_LOG_FATAL);
        ck_assert_int_eq(sxe_workers_listen_unix(name), 0);
        exit(sxe_workers_run(&own));
    }
}

static int
end_status(void)
{
    int status;

    ck_assert_int_eq(waitpid(parent, &status, 0), parent);
    unlink(outside_path("text"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- Clients ---- */

/* -1: nobody listens. */
static int
try_to_connect(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const size_t length = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(un.sun_path + 1, name + 1, length - 1);
    if (connect(fd, (struct sockaddr *)&un,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
        return fd;
    ck_assert_int_eq(errno, ECONNREFUSED);
    close(fd);
    return -1;
}

/* Wait until the server listens for the first time; from then on no connection is refused. */
static int
open_client(void)
{
    static bool has_listened;
    int fd;

    while ((fd = try_to_connect()) < 0) {
        ck_assert(!has_listened);
        poll(NULL, 0, 1);
    }
    has_listened = true;
    return fd;
}

/* Send a command. pid 0: the connection ended without a reply. */
static struct reply
ask_on(int fd, const char *command)
{
    struct reply reply = {.pid = 0};
    char line[64] = "";
    size_t length = 0;

    if (send(fd, command, 1, MSG_NOSIGNAL) < 0)
        return reply;
    while (length < sizeof(line) - 1 && strchr(line, '\n') == NULL) {
        ssize_t got = recv(fd, line + length, sizeof(line) - 1 - length, 0);

        if (got <= 0)
            return reply;
        length += (size_t)got;
    }
    ck_assert_int_eq(
        sscanf(line, "%d %d %d %15s", &reply.pid, &reply.load, &reply.place, reply.text), 4);
    return reply;
}

static struct reply
ask(const char *command)
{
    int fd = open_client();
    struct reply reply = ask_on(fd, command);

    close(fd);
    return reply;
}

static void
await_death_of(pid_t pid)
{
    while (kill(pid, 0) == 0)
        poll(NULL, 0, 1);
}

/* ---- Cases ---- */

/* promise: docs/processes.md: A client that connects meanwhile waits and is served by the next
 * worker. */
START_TEST(a_worker_that_crashes_is_replaced_and_no_connection_is_refused)
{
    const struct sxe_workers_config config = {.workers = 1};
    struct reply first;

    start(&config);
    first = ask("a");
    for (int i = 1; i <= 3; i++) {
        struct reply next;

        ck_assert_int_eq(ask("c").pid, 0);
        next = ask("a");
        ck_assert_int_ne(next.pid, first.pid);
        ck_assert_int_eq(next.load, i);
        ck_assert_int_eq(next.place, 0);
    }
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: A worker whose loop does not turn for `hang_timeout_ms` is killed and
 * replaced. */
START_TEST(a_worker_that_hangs_is_replaced)
{
    const struct sxe_workers_config config = {.workers = 1, .hang_timeout_ms = 1000};

    start(&config);
    ck_assert_int_eq(ask("h").pid, 0);
    while (ask("a").load == 0)
        continue;
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: If no worker serves, those that start have `load_timeout_ms`. */
START_TEST(a_load_that_is_stuck_is_tried_again_if_nobody_serves)
{
    const struct sxe_workers_config config = {.workers = 1, .load_timeout_ms = 1000};

    write_text("one");
    start(&config);
    ck_assert_str_eq(ask("a").text, "one");
    write_text("stuck");
    kill(parent, SIGHUP);
    ck_assert_int_eq(ask("c").pid, 0);
    write_text("two");
    while (strcmp(ask("a").text, "two") != 0)
        continue;
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: The first worker that fails in the first load ends the program with
 * its exit status, or with EXIT_FAILURE if that is 0. */
START_TEST(a_program_that_cannot_start_ends_with_the_status_of_its_worker)
{
    const struct sxe_workers_config config = {.workers = 2};

    write_text("bad");
    start(&config);
    ck_assert_int_eq(end_status(), 3);
    write_text("nothing");
    start(&config);
    ck_assert_int_eq(end_status(), EXIT_FAILURE);
}
END_TEST

static volatile unsigned *turns; /* memory that the parent of the workers shares with the test */

static uint32_t
count_turn(void *user)
{
    (void)user;
    ++*turns;
    return 1;
}

/* promise: docs/processes.md: `on_turn` is called in the parent from time to time */
START_TEST(the_parent_calls_on_turn_again_and_again)
{
    const struct sxe_workers_config config = {.workers = 1, .on_turn = count_turn};

    turns = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)(uintptr_t)turns, MAP_FAILED);
    start(&config);
    while (*turns < 2)
        poll(NULL, 0, 1);
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: If one of them fails, those that serve go on. */
START_TEST(a_reload_replaces_all_workers_or_none)
{
    const struct sxe_workers_config config = {.workers = 2};
    int old;

    write_text("one");
    start(&config);
    ck_assert_str_eq(ask("a").text, "one");
    write_text("bad");
    kill(parent, SIGHUP);
    for (int i = 0; i < 20; i++)
        ck_assert_str_eq(ask("a").text, "one");
    old = open_client();
    ck_assert_str_eq(ask_on(old, "a").text, "one");
    write_text("two");
    kill(parent, SIGHUP);
    while (strcmp(ask("a").text, "two") != 0)
        continue;
    /* the old worker finishes what it has */
    ck_assert_str_eq(ask_on(old, "a").text, "one");
    close(old);
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: A change of a file that `sxe_workers_watch_file` named acts like
 * SIGHUP. */
START_TEST(a_change_of_a_watched_file_loads_again)
{
    const struct sxe_workers_config config = {.workers = 1};

    write_text("watched");
    start(&config);
    ck_assert_str_eq(ask("a").text, "watched");
    write_text("changed-now");
    while (strcmp(ask("a").text, "changed-now") != 0)
        poll(NULL, 0, 1);
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: A worker that calls `sxe_workers_renew` is replaced by a new one. */
START_TEST(a_worker_may_ask_to_be_replaced)
{
    const struct sxe_workers_config config = {.workers = 1};
    struct reply first;

    start(&config);
    first = ask("r");
    while (ask("a").pid == first.pid)
        continue;
    await_death_of(first.pid);
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
}
END_TEST

/* promise: docs/processes.md: At SIGTERM the workers finish their connections, for
 * `stop_timeout_ms` at most; at a second signal they end at once. */
START_TEST(the_first_signal_drains_and_the_second_ends)
{
    const struct sxe_workers_config config = {.workers = 1, .stop_timeout_ms = LONG};
    struct pollfd wait = {.events = POLLIN};

    start(&config);
    wait.fd = open_client();
    ck_assert_int_ne(ask_on(wait.fd, "a").pid, 0);
    kill(parent, SIGTERM);
    for (int fd; (fd = try_to_connect()) >= 0; close(fd))
        poll(NULL, 0, 1);
    ck_assert_int_ne(ask_on(wait.fd, "a").pid, 0);
    kill(parent, SIGTERM);
    ck_assert_int_eq(end_status(), 0);
    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    ck_assert_int_eq(recv(wait.fd, &wait, 1, 0), 0);
}
END_TEST

/* promise: docs/processes.md: Workers end when the parent dies. */
START_TEST(workers_do_not_outlive_their_parent)
{
    const struct sxe_workers_config config = {.workers = 1};
    struct reply first;

    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    start(&config);
    first = ask("a");
    kill(parent, SIGKILL);
    ck_assert_int_eq(end_status(), -SIGKILL);
    ck_assert_int_eq(waitpid(first.pid, NULL, 0), first.pid);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_worker_that_crashes_is_replaced_and_no_connection_is_refused,
                            a_worker_that_hangs_is_replaced,
                            a_load_that_is_stuck_is_tried_again_if_nobody_serves,
                            a_program_that_cannot_start_ends_with_the_status_of_its_worker,
                            the_parent_calls_on_turn_again_and_again,
                            a_reload_replaces_all_workers_or_none,
                            a_change_of_a_watched_file_loads_again,
                            a_worker_may_ask_to_be_replaced,
                            the_first_signal_drains_and_the_second_ends,
                            workers_do_not_outlive_their_parent,
                            NULL};

    return outside_run("workers-life", cases);
}
