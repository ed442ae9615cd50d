/* SPDX-License-Identifier: MIT
 *
 * Cancelling the query of a connection that is given up: a thread asks the server, and closes the
 * connection when the query has ended.
 *
 *     begin --> is the reply complete? --- yes, or the time is over --> closed
 *                  ^         | no
 *                  |         v
 *                  '-- pause <-- ask (PQcancel)          pauses of 10 ms, 20 ms, 40 ms, ...
 *
 * One request is not enough: the server ignores a request that comes before its process has begun
 * the query.
 */
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sxe-postgres-private.h"
#include "sxe-time.h"

enum {
    CANCELS_MAX = 64, /* how many threads may cancel queries of one server */
    SERVERS_MAX = 16, /* of how many servers queries may be cancelled at one time */
    STACK_SIZE = 256 * 1024,
    END_MS = 2000,
    PAUSE_MS = 10,       /* the pause after the first request; each further one is twice as long */
    PAUSE_MS_MAX = 1000, /* until it is so long */
    READS_MAX = 256,
    REASON_SIZE = 256
};

/* A server whose queries threads of this process cancel. */
struct cancel_server {
    struct sockaddr_storage address;
    unsigned cancels; /* how many threads cancel queries of the server; 0: the entry is free */
};

/* A thread's job: to cancel the query of a connection, and then to close the connection. */
struct cancel_job {
    PGcancel *cancel;
    PGconn *pg;
    struct cancel_server *server;
    uint64_t limit_ns; /* how long to ask the server and to wait for the end of the query */
    uint64_t end_ns;   /* when that time is over */
    unsigned syncs;    /* how many syncs of a pipeline are missing */
    unsigned reads;    /* how often bytes of the reply were read */
    bool is_whole;     /* the query was sent completely, so its reply will have an end */
};

/* How much of a reply has come. */
enum reply { REPLY_PART, REPLY_COPY, REPLY_END };

static pthread_mutex_t cancel_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cancel_server cancel_servers[SERVERS_MAX]; /* guarded by cancel_mutex */

/* ---- Servers ---- */

/* The entry of a server, or a free entry; NULL: there is neither. The caller holds the mutex. */
static struct cancel_server *
find_cancel_server(const struct sockaddr_storage *address)
{
    struct cancel_server *found = NULL;

    for (unsigned i = 0; i < SERVERS_MAX; i++) {
        struct cancel_server *server = &cancel_servers[i];

        if (server->cancels == 0)
            found = server;
        else if (memcmp(&server->address, address, sizeof(*address)) == 0)
            return server;
    }
    return found;
}

/* Count a thread that is to cancel a query of the connection's server. The thread may wait for the
 * server, so each server has a limit of threads: the threads of a server that does not answer leave
 * room for others. NULL: there is no room, or the connection has ended. */
static struct cancel_server *
enter_cancel_server(const PGconn *pg)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    struct cancel_server *server;

    if (getpeername(PQsocket(pg), (struct sockaddr *)&address, &length) < 0)
        return NULL;
    pthread_mutex_lock(&cancel_mutex);
    server = find_cancel_server(&address);
    if (server != NULL && server->cancels < CANCELS_MAX) {
        server->address = address;
        server->cancels++;
    } else {
        server = NULL;
    }
    pthread_mutex_unlock(&cancel_mutex);
    return server;
}

static void
leave_cancel_server(struct cancel_server *server)
{
    pthread_mutex_lock(&cancel_mutex);
    server->cancels--;
    pthread_mutex_unlock(&cancel_mutex);
}

static bool
has_cancels(void)
{
    unsigned number = 0;

    pthread_mutex_lock(&cancel_mutex);
    for (unsigned i = 0; i < SERVERS_MAX; i++)
        number += cancel_servers[i].cancels;
    pthread_mutex_unlock(&cancel_mutex);
    return number > 0;
}

/* ---- Requests ---- */

/* Start a thread that gets no signals. 0 or an errno value. */
static int
start_cancel_thread(pthread_t *thread, void *(*fn)(void *), void *argument)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, &attributes, fn, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Ask the server to cancel the query. PQcancel waits for the server without a limit of time, so
 * this thread may be cancelled meanwhile. Give the thread an empty table of descriptors of its own
 * first: the kernel closes the socket of PQcancel when the thread ends. */
static void *
ask_server(void *cancel)
{
    char reason[REASON_SIZE];

    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_UNSHARE) == 0)
        (void)PQcancel(cancel, reason, sizeof(reason));
    return NULL;
}

static void
ask_with_limit(const struct cancel_job *job)
{
    const struct timespec end = {.tv_sec = (time_t)(job->end_ns / SXE_NS_PER_SECOND),
                                 .tv_nsec = (long)(job->end_ns % SXE_NS_PER_SECOND)};
    pthread_t asker;

    if (start_cancel_thread(&asker, ask_server, job->cancel) != 0)
        return;
    if (pthread_clockjoin_np(asker, NULL, CLOCK_MONOTONIC, &end) != 0) {
        pthread_cancel(asker);
        pthread_join(asker, NULL);
    }
}

/* Read what has come of the reply, and drop it. A connection that has ended has no more of it. Nor
 * is all of a very long reply read: a server that sends is going to find that the connection is
 * closed, and ends the query then. */
static enum reply
drop_reply(struct cancel_job *job)
{
    unsigned nulls = 0; /* in a row: one ends the results of a query, two all results */

    if (++job->reads > READS_MAX || !PQconsumeInput(job->pg))
        return REPLY_END;
    while (!PQisBusy(job->pg)) {
        PGresult *result = PQgetResult(job->pg);
        const ExecStatusType status = PQresultStatus(result);

        PQclear(result);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
            return REPLY_COPY;
        nulls = result == NULL ? nulls + 1 : 0;
        if (status == PGRES_PIPELINE_SYNC && --job->syncs == 0)
            return REPLY_END;
        if (nulls == 2 || (nulls == 1 && job->syncs == 0))
            return REPLY_END;
    }
    return REPLY_PART;
}

/* Read the reply until it ends, or pause_ms are over. */
static enum reply
await_reply(struct cancel_job *job, uint64_t pause_ms)
{
    const uint64_t pause_end_ns = sxe_time_ns() + pause_ms * SXE_NS_PER_MS;
    const uint64_t end_ns = pause_end_ns < job->end_ns ? pause_end_ns : job->end_ns;
    struct pollfd ready = {.fd = PQsocket(job->pg), .events = POLLIN};
    enum reply reply = drop_reply(job);
    uint64_t now_ns;

    while (reply == REPLY_PART && (now_ns = sxe_time_ns()) < end_ns) {
        (void)poll(&ready, 1, (int)((end_ns - now_ns) / SXE_NS_PER_MS) + 1);
        reply = drop_reply(job);
    }
    return reply;
}

/* A query that was not sent completely is asked for once: when the connection is closed, the server
 * finds the end while it reads the rest. Nor does a COPY end by itself; but it has begun, so the
 * next request is heard. */
static void
cancel_query(struct cancel_job *job)
{
    enum reply reply = job->is_whole ? drop_reply(job) : REPLY_COPY;
    uint64_t pause_ms = PAUSE_MS;

    job->end_ns = sxe_time_ns() + job->limit_ns;
    while (reply == REPLY_PART && sxe_time_ns() < job->end_ns) {
        ask_with_limit(job);
        reply = await_reply(job, pause_ms);
        pause_ms = pause_ms < PAUSE_MS_MAX ? 2 * pause_ms : pause_ms;
    }
    if (reply == REPLY_COPY)
        ask_with_limit(job);
}

/* Each cancel has a thread of its own: neither other cancels nor the end of the process wait for
 * it. If the server cannot be asked, it ends the query when it finds that the connection is
 * closed. */
static void *
run_cancel(void *argument)
{
    struct cancel_job *job = argument;
    struct cancel_server *server = job->server;

    pthread_detach(pthread_self());
    cancel_query(job);
    PQfreeCancel(job->cancel);
    PQfinish(job->pg);
    free(job);
    leave_cancel_server(server);
    return NULL;
}

static bool
start_cancel(const struct sxe__postgres_conn *conn, PGconn *pg, struct cancel_server *server)
{
    struct cancel_job *job = calloc(1, sizeof(*job));
    pthread_t thread;

    if (job == NULL)
        return false;
    job->pg = pg;
    job->server = server;
    job->limit_ns = conn->cancel_limit_ns;
    job->syncs = conn->syncs;
    job->is_whole = !conn->is_queueing && PQflush(pg) == 0;
    job->cancel = PQgetCancel(pg);
    if (job->cancel != NULL && start_cancel_thread(&thread, run_cancel, job) == 0)
        return true;
    PQfreeCancel(job->cancel);
    free(job);
    return false;
}

bool
sxe__postgres_cancel(const struct sxe__postgres_conn *conn, PGconn *pg)
{
    struct cancel_server *server = enter_cancel_server(pg);

    if (server == NULL)
        return false;
    if (start_cancel(conn, pg, server))
        return true;
    leave_cancel_server(server);
    return false;
}

void
sxe__postgres_await_cancels(void)
{
    for (int i = 0; i < END_MS && has_cancels(); i++)
        (void)poll(NULL, 0, 1);
}
