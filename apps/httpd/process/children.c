/* SPDX-License-Identifier: MIT
 *
 * The table of a supervisor's children.
 */
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-log.h"

struct children children;

void
children_begin(unsigned workers)
{
    memset(&children, 0, sizeof(children));
    children.workers = workers;
}

/* ---- Starting ---- */

static unsigned
free_slot(void)
{
    unsigned slot = 0;

    for (unsigned i = 0; i < children.number; i++) {
        if (children.each[i].slot == slot) {
            slot++;
            i = UINT32_MAX; /* start the search again with the first child */
        }
    }
    return slot;
}

void
children_close_links(void)
{
    for (unsigned i = 0; i < children.number; i++)
        close(children.each[i].link);
}

/* Begin as a child. heartbeat_begin is called early, because from then on the child ends if the
 * supervisor dies. */
static void
begin_httpd_child(const struct worker *worker, struct heartbeat *heartbeat, pid_t parent)
{
    children_close_links();
    heartbeat_begin(heartbeat, parent);
    handover_begin(worker->link);
}

/* Fork a child. The supervisor keeps ends[0], and the child keeps ends[1]. 0 or -errno. */
static int
fork_with_link(int ends[2], struct heartbeat *heartbeat, unsigned place,
               void (*be)(const struct worker *worker))
{
    const struct worker worker = {.link = ends[1],
                                  .workers = children.workers,
                                  .place = place,
                                  .slot = free_slot(),
                                  .load = children.loads[place]};
    const pid_t parent = getpid();
    int error;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    error = -errno;
    if (pid == 0) {
        close(ends[0]);
        begin_httpd_child(&worker, heartbeat, parent);
        be(&worker);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error;
    }
    children.each[children.number++] = (struct child){.pid = pid,
                                                      .link = ends[0],
                                                      .place = place,
                                                      .slot = worker.slot,
                                                      .since_ns = sxe_time_ns(),
                                                      .kill_ns = NEVER,
                                                      .heartbeat = heartbeat};
    children.loads[place]++;
    return 0;
}

int
children_fork(unsigned place, void (*be)(const struct worker *worker))
{
    struct heartbeat *heartbeat = heartbeat_new();
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
        heartbeat_delete(heartbeat);
    return result;
}

/* ---- Ending ---- */

int
children_bury(unsigned index, struct child *buried)
{
    int status = 0;

    *buried = children.each[index];
    /* Kill the child, in case it only closed its link and goes on: waitpid would wait for it for
     * ever. A child that has ended does not get the signal. */
    (void)kill(buried->pid, SIGKILL);
    waitpid(buried->pid, &status, 0);
    close(buried->link);
    heartbeat_delete(buried->heartbeat);
    children.number--;
    memmove(&children.each[index], &children.each[index + 1],
            (children.number - index) * sizeof(*buried));
    return status;
}

void
kill_child(struct child *child)
{
    child->is_killed = true;
    kill(child->pid, SIGKILL);
}

void
kill_late(uint64_t now_ns, uint32_t stop_timeout_ms)
{
    for (unsigned i = 0; i < children.number; i++) {
        struct child *child = &children.each[i];

        if (child->kill_ns > now_ns)
            continue;
        child->kill_ns = NEVER;
        if (child->is_hurried)
            SXE_WARN("process %d did not end at a second signal: it is killed", child->pid);
        else
            SXE_WARN("process %d did not end within %u ms (--stop-timeout) and 5 s more: it is "
                     "killed",
                     child->pid, stop_timeout_ms);
        kill_child(child);
    }
}

void
leave(struct child *child, enum handover_kind how, uint64_t within_ns)
{
    if (child->role != LEAVING)
        child->kill_ns = sxe_time_ns() + within_ns;
    child->role = LEAVING;
    (void)handover_say(child->link, how);
}

void
hurry_all(uint64_t within_ns)
{
    const uint64_t due_ns = sxe_time_ns() + within_ns;

    for (unsigned i = 0; i < children.number; i++) {
        struct child *child = &children.each[i];

        if (child->is_killed || child->is_hurried)
            continue;
        child->is_hurried = true;
        child->kill_ns = due_ns;
    }
}

/* ---- Finding children ---- */

struct child *
child_in(enum role role)
{
    for (unsigned i = 0; i < children.number; i++) {
        if (children.each[i].role == role)
            return &children.each[i];
    }
    return NULL;
}

bool
is_taken(unsigned place, enum role last)
{
    for (unsigned i = 0; i < children.number; i++) {
        const struct child *child = &children.each[i];

        if (child->place == place && child->role <= last &&
            !(child->role == SERVING && child->is_worn))
            return true;
    }
    return false;
}

void
say_to_all(enum handover_kind kind)
{
    for (unsigned i = 0; i < children.number; i++)
        (void)handover_say(children.each[i].link, kind);
}
