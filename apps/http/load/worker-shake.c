/* SPDX-License-Identifier: MIT
 *
 * What: the TLS handshakes of a worker. This file chooses the connections that are to resume a
 * session, and lists the handshakes that are under way. When a handshake is done,
 * on_handshake_ready is called; it must not write, so it only stores the time. At the end of the
 * turn worker-socket.c asks load__next_shaken for the sockets whose handshakes are done, and begins
 * to use their connections.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handshake.h"
#include "worker-private.h"

#define SESSIONS_MAX 4096u

void
load_handshake_name(const struct load_plan *plan, char name[LOAD_AUTHORITY_SIZE])
{
    const char *host = plan->authority;
    size_t length = strcspn(host, ":");

    if (plan->tls.name != NULL) {
        host = plan->tls.name;
        length = strlen(host);
    } else if (*host == '[') {
        host++;
        length = strcspn(host, "]");
    }
    memcpy(name, host, length);
    name[length] = '\0';
}

/* ---- Which connections resume a session ---- */

/* Whether this connection is to resume a session: true for plan->tls.resume of 100 connections,
 * evenly spread. */
static bool
wants_to_resume(struct load__worker *worker)
{
    worker->resume_owed += worker->plan->tls.resume;
    if (worker->resume_owed < 100)
        return false;
    worker->resume_owed -= 100;
    return true;
}

static void
on_handshake_ready(SXE *sxe)
{
    struct load__socket *socket = SXE_USER_DATA(sxe);

    socket->ready_ns = sxe_time_ns();
}

int
load__shake_begin(struct load__socket *socket, SXE *sxe)
{
    struct load__worker *worker = socket->worker;

    socket->is_resuming = wants_to_resume(worker);
    return load_handshake_begin(socket->is_resuming ? worker->tls_resuming : worker->tls, sxe,
                                worker->tls_name, on_handshake_ready);
}

static void
count_handshake(const struct load__socket *socket)
{
    struct load_result *result = socket->worker->result;
    bool is_resumed = load_handshake_is_resumed(socket->sxe);

    load_histogram_record(&result->handshake, socket->ready_ns - socket->shake_ns);
    result->handshakes_resumed += is_resumed;
    if (!socket->is_resuming || is_resumed)
        return;
    if (load_handshake_has_offered(socket->sxe))
        result->handshakes_refused++;
    else
        result->handshakes_sessionless++;
}

/* ---- Handshakes under way ---- */

/* Remove an entry from worker->shaking, and move the last entry to its place. */
static void
remove_shaking(struct load__worker *worker, uint32_t at)
{
    worker->shaking[at] = worker->shaking[--worker->shaking_number];
    if (worker->shaking_number == 0)
        ev_prepare_stop(worker->loop, &worker->look_at_shaking);
}

struct load__socket *
load__next_shaken(struct load__worker *worker, uint32_t *at)
{
    while ((*at)-- > 0) {
        struct load__socket *socket = &worker->sockets[worker->shaking[*at]];
        bool is_done = socket->sxe != NULL && load_handshake_is_done(socket->sxe);

        if (is_done || socket->sxe == NULL)
            remove_shaking(worker, *at);
        if (!is_done)
            continue;
        count_handshake(socket);
        return socket;
    }
    return NULL;
}

void
load__shake(struct load__socket *socket)
{
    struct load__worker *worker = socket->worker;

    socket->shake_ns = sxe_time_ns();
    if (worker->shaking_number == 0)
        ev_prepare_start(worker->loop, &worker->look_at_shaking);
    worker->shaking[worker->shaking_number++] = load__id(socket);
}

/* The watcher has the default priority. So it runs before lib-sxe's watcher, which sends what this
 * turn wrote. */
int
load__shake_init(struct load__worker *worker, load__on_turn *look)
{
    uint32_t number = worker->number > 0 ? worker->number : 1;
    uint32_t sessions = number < SESSIONS_MAX / 2 ? 2 * number : SESSIONS_MAX;
    bool is_complete;

    if (!worker->plan->tls.is_used)
        return 0;
    ev_prepare_init(&worker->look_at_shaking, look);
    worker->look_at_shaking.data = worker;
    load_handshake_name(worker->plan, worker->tls_name);
    worker->tls = load_handshake_open(worker->plan, 0);
    if (worker->plan->tls.resume > 0)
        worker->tls_resuming = load_handshake_open(worker->plan, sessions);
    worker->shaking = calloc(number, sizeof(*worker->shaking));
    is_complete = worker->tls_resuming != NULL || worker->plan->tls.resume == 0;
    return worker->tls == NULL || worker->shaking == NULL || !is_complete ? -ENOMEM : 0;
}

void
load__shake_free(struct load__worker *worker)
{
    if (worker->tls != NULL)
        ev_prepare_stop(worker->loop, &worker->look_at_shaking);
    load_handshake_close(worker->tls);
    load_handshake_close(worker->tls_resuming);
    free(worker->shaking);
}

void
load__note_failure(const struct load__socket *socket, const SXE *sxe)
{
    struct load_result *result = socket->worker->result;

    if (socket->worker->plan->tls.is_used && *result->first_failure == '\0')
        snprintf(result->first_failure, sizeof(result->first_failure), "%s",
                 load_handshake_failure(sxe));
}
