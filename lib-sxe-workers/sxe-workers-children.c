/* SPDX-License-Identifier: MIT
 *
 * The table of a supervisor's children.
 */
#include "sxe-workers-children-private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-log.h"

struct sxe__children sxe__children;

void
sxe__children_begin(unsigned workers, size_t (*describe)(char *text, size_t size))
{
    memset(&sxe__children, 0, sizeof(sxe__children));
    sxe__children.workers = workers;
    sxe__children.describe = describe;
}

/* ---- Starting ---- */

static unsigned
free_slot(void)
{
    unsigned slot = 0;

    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (sxe__children.each[i].slot == slot) {
            slot++;
            i = UINT32_MAX; /* start the search again with the first child */
        }
    }
    return slot;
}

void
sxe__children_close_links(void)
{
    for (unsigned i = 0; i < sxe__children.number; i++)
        close(sxe__children.each[i].link);
}

/* Begin as a child. sxe__heartbeat_begin is called early, because from then on the child ends if
 * the supervisor dies. */
static void
begin_worker_process(const struct sxe_worker *worker, struct sxe__heartbeat *heartbeat,
                     pid_t parent)
{
    sxe__children_close_links();
    sxe__heartbeat_begin(heartbeat, parent, sxe__children.describe);
    sxe__handover_begin(worker->link);
}

/* Fork a child. The supervisor keeps ends[0], and the child keeps ends[1]. 0 or -errno. */
static int
fork_with_link(int ends[2], struct sxe__heartbeat *heartbeat, unsigned place,
               void (*be)(const struct sxe_worker *worker))
{
    const struct sxe_worker worker = {.link = ends[1],
                                      .workers = sxe__children.workers,
                                      .place = place,
                                      .slot = free_slot(),
                                      .load = sxe__children.loads[place]};
    const pid_t parent = getpid();
    int error;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    error = -errno;
    if (pid == 0) {
        close(ends[0]);
        begin_worker_process(&worker, heartbeat, parent);
        be(&worker);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error;
    }
    sxe__children.each[sxe__children.number++] = (struct sxe__child){.pid = pid,
                                                                     .link = ends[0],
                                                                     .place = place,
                                                                     .slot = worker.slot,
                                                                     .since_ns = sxe_time_ns(),
                                                                     .kill_ns = NEVER,
                                                                     .heartbeat = heartbeat};
    sxe__children.loads[place]++;
    return 0;
}

int
sxe__children_fork(unsigned place, void (*be)(const struct sxe_worker *worker))
{
    struct sxe__heartbeat *heartbeat = sxe__heartbeat_new();
    int ends[2];
    int result;

    if (heartbeat == NULL)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        result = -errno;
    } else {
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        result = fork_with_link(ends, heartbeat, place, be);
    }
    if (result < 0)
        sxe__heartbeat_delete(heartbeat);
    return result;
}

/* ---- Ending ---- */

int
sxe__children_bury(unsigned index, struct sxe__child *buried)
{
    int status = 0;

    *buried = sxe__children.each[index];
    /* Kill the child, in case it only closed its link and goes on: waitpid would wait for it for
     * ever. A child that has ended does not get the signal. */
    (void)kill(buried->pid, SIGKILL);
    waitpid(buried->pid, &status, 0);
    close(buried->link);
    sxe__heartbeat_delete(buried->heartbeat);
    sxe__children.number--;
    memmove(&sxe__children.each[index], &sxe__children.each[index + 1],
            (sxe__children.number - index) * sizeof(*buried));
    return status;
}

void
sxe__child_kill(struct sxe__child *child)
{
    child->is_killed = true;
    kill(child->pid, SIGKILL);
}

void
sxe__children_kill_late(uint64_t now_ns, uint32_t stop_timeout_ms, const char *stop_option)
{
    for (unsigned i = 0; i < sxe__children.number; i++) {
        struct sxe__child *child = &sxe__children.each[i];

        if (child->kill_ns > now_ns)
            continue;
        child->kill_ns = NEVER;
        if (child->is_hurried)
            SXE_WARN("process %d did not end at a second signal: it is killed", child->pid);
        else
            SXE_WARN("process %d did not end within %u ms (%s) and 5 s more: it is killed",
                     child->pid, stop_timeout_ms, stop_option);
        sxe__child_kill(child);
    }
}

void
sxe__child_leave(struct sxe__child *child, enum sxe__handover_kind how, uint64_t within_ns)
{
    if (child->role != LEAVING)
        child->kill_ns = sxe_time_ns() + within_ns;
    child->role = LEAVING;
    (void)sxe__handover_say(child->link, how);
}

void
sxe__children_hurry(uint64_t within_ns)
{
    const uint64_t due_ns = sxe_time_ns() + within_ns;

    for (unsigned i = 0; i < sxe__children.number; i++) {
        struct sxe__child *child = &sxe__children.each[i];

        if (child->is_killed || child->is_hurried)
            continue;
        child->is_hurried = true;
        child->kill_ns = due_ns;
    }
}

/* ---- Finding children ---- */

struct sxe__child *
sxe__child_in(enum role role)
{
    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (sxe__children.each[i].role == role)
            return &sxe__children.each[i];
    }
    return NULL;
}

bool
sxe__child_is_taken(unsigned place, enum role last)
{
    for (unsigned i = 0; i < sxe__children.number; i++) {
        const struct sxe__child *child = &sxe__children.each[i];

        if (child->place == place && child->role <= last &&
            !(child->role == SERVING && child->is_worn))
            return true;
    }
    return false;
}

static bool
is_place_served(unsigned place)
{
    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (sxe__children.each[i].place == place && sxe__children.each[i].role == SERVING)
            return true;
    }
    return false;
}

bool
sxe__children_serve_all(void)
{
    for (unsigned place = 0; place < sxe__children.workers; place++) {
        if (!is_place_served(place))
            return false;
    }
    return true;
}

void
sxe__children_say(enum sxe__handover_kind kind)
{
    for (unsigned i = 0; i < sxe__children.number; i++)
        (void)sxe__handover_say(sxe__children.each[i].link, kind);
}
