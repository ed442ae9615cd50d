/* SPDX-License-Identifier: MIT
 *
 * The supervisor: starts, replaces and ends serving processes.
 */
#include "supervisor-private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin-metrics.h"
#include "balance.h"
#include "changes.h"
#include "children.h"
#include "handover.h"
#include "notify.h"
#include "reason.h"
#include "upgrade.h"
#include "wait-status.h"

#define LONG_LIFE_NS (10 * SXE_NS_PER_SECOND)
#define DELAY_MIN_NS (100 * SXE_NS_PER_MS)
#define DELAY_SAY_NS (400 * SXE_NS_PER_MS)
#define DELAY_MAX_NS (10 * SXE_NS_PER_SECOND)

/* how many messages of a child are handled in one turn; the kernel queues fewer */
#define MESSAGES_MAX 1024

#define PATIENCE_MAX_NS (3600 * SXE_NS_PER_SECOND)

struct supervisor supervisor;

/* The name of what is loaded, for the log. */
static const char *
name_of_load(void)
{
    return supervisor.config->script != NULL ? supervisor.config->script : "the server";
}

static bool
is_loading(void)
{
    return child_in(STARTING) != NULL || child_in(READY) != NULL;
}

/* How many places have no child in the role `last` or in a role before it, see is_taken. */
static unsigned
number_missing(enum role last)
{
    unsigned number = 0;

    for (unsigned place = 0; place < supervisor.workers; place++)
        number += !is_taken(place, last);
    return number;
}

static void
have_leave(struct child *child, enum handover_kind how)
{
    leave(child, how, OVERTIME_NS + supervisor.config->stop_timeout_ms * (uint64_t)SXE_NS_PER_MS);
    balance_clear(child->slot);
}

/* ---- Starting ---- */

static void
be_child(const struct worker *worker)
{
    supervisor_leave_loop();
    exit(supervisor.config->serve(supervisor.config->user, worker));
}

/* Plan to start a successor of a child that was started at since_ns. If the child lived long, the
 * successor is started at once, otherwise after a delay, which doubles from start to start. */
static void
start_child_later(uint64_t since_ns)
{
    uint64_t now_ns = sxe_time_ns();

    if (now_ns - since_ns >= LONG_LIFE_NS)
        supervisor.delay_ns = 0;
    else if (supervisor.delay_ns == 0)
        supervisor.delay_ns = DELAY_MIN_NS;
    else
        supervisor.delay_ns =
            supervisor.delay_ns < DELAY_MAX_NS / 2 ? 2 * supervisor.delay_ns : DELAY_MAX_NS;
    supervisor.start_ns = now_ns + supervisor.delay_ns;
    if (supervisor.delay_ns >= DELAY_SAY_NS)
        SXE_WARN("processes end soon after their start, one after the other: the next one is "
                 "started in %u ms; the lines of the log before this say why they end",
                 (unsigned)(supervisor.delay_ns / SXE_NS_PER_MS));
}

/* If workers are missing, plan to start them, unless a load is in progress or a start is planned
 * already. */
static void
replace_missing(uint64_t since_ns)
{
    if (supervisor.is_ending || !supervisor.has_served || is_loading() ||
        supervisor.start_ns != NEVER || number_missing(SERVING) == 0)
        return;
    start_child_later(since_ns);
}

/* There are too many children, so remember to start others when one has ended. None is killed for
 * that, because its requests would fail. However often a reload was requested, only one load
 * follows. */
static void
wait_for_a_place(void)
{
    if (!supervisor.is_waiting)
        SXE_WARN("%s is loaded again later: %u earlier processes still answer requests, and one of "
                 "them has to end first; --stop-timeout limits how long they take",
                 name_of_load(), children.number - supervisor.workers);
    supervisor.is_waiting = true;
}

static void
settle_load(bool is_good)
{
    if (supervisor.config->on_settled != NULL)
        supervisor.config->on_settled(supervisor.config->user, is_good);
}

/* A load has failed. Its processes that are ready may have accepted connections, so let them finish
 * these. */
static void
undo_load(void)
{
    handover_settle(false);
    settle_load(false);
    for (unsigned i = 0; supervisor.is_renewing && i < children.number; i++) {
        struct child *child = &children.each[i];

        if (child->role == READY || child->role == STARTING)
            have_leave(child, supervisor.has_served ? HANDOVER_DRAIN : HANDOVER_END);
    }
}

static void
plan_another_start(int error)
{
    SXE_ERROR("cannot start a process: %s", strerror(error));
    undo_load();
    if (supervisor.has_served) {
        supervisor.is_whole |= supervisor.is_renewing;
        supervisor.is_fresh_wanted |= supervisor.is_fresh;
        start_child_later(sxe_time_ns());
    } else {
        supervisor.status = EXIT_FAILURE;
    }
}

/* Start the missing workers. If all workers are replaced, start only one first: it shows whether
 * the script loads, and it opens the listeners. The others follow when it is ready. */
static void
start_missing(void)
{
    const enum role last = supervisor.is_renewing ? READY : SERVING;
    const bool is_first = supervisor.is_renewing && child_in(READY) == NULL;

    for (unsigned place = 0; place < supervisor.workers; place++) {
        int result = is_taken(place, last) ? 0 : children_fork(place, be_child);

        if (result < 0)
            plan_another_start(-result);
        if (result < 0 || is_first)
            return;
    }
}

/* Watch the files. Do that before the children read them, so that a change while they read is
 * noticed. */
static void
watch_config_files(void)
{
    supervisor.is_stale |= changes_begin_load() || supervisor.is_changed;
    supervisor.is_changed = false;
    supervisor.retry_ns = NEVER;
    if (supervisor.config->is_dev && supervisor.config->script != NULL)
        changes_add(supervisor.config->script);
    if (supervisor.config->on_load != NULL)
        supervisor.config->on_load(supervisor.config->user);
}

static void
begin_config_load(void)
{
    watch_config_files();
    supervisor.is_fresh_wanted = false;
    if (supervisor.is_fresh && supervisor.config->on_renew != NULL)
        supervisor.config->on_renew(supervisor.config->user);
}

void
supervisor_start_children(void)
{
    const unsigned missing = number_missing(SERVING);
    const bool is_whole = supervisor.is_whole || missing == supervisor.workers;

    supervisor.start_ns = NEVER;
    if (children.number + (is_whole ? supervisor.workers : missing) >
        SUPERVISOR_CHILDREN * supervisor.workers) {
        wait_for_a_place();
        return;
    }
    supervisor.is_whole = false;
    supervisor.is_renewing = is_whole;
    reason_begin_load(supervisor.is_retrying);
    supervisor.is_retrying = false;
    if (is_whole && supervisor.has_served)
        notify_reloading();
    supervisor.is_fresh = is_whole && supervisor.is_fresh_wanted;
    if (is_whole)
        begin_config_load();
    start_missing();
}

void
supervisor_start_all(void)
{
    supervisor.is_whole = true;
    supervisor_start_children();
}

/* ---- Ending ---- */

void
supervisor_end_all(enum handover_kind how)
{
    if (!supervisor.is_ending && how == HANDOVER_END)
        notify_stopping();
    supervisor.is_ending = true;
    metrics_set_draining();
    supervisor.is_waiting = false;
    supervisor.give_up_ns = NEVER;
    supervisor.retry_ns = NEVER;
    supervisor.start_ns = NEVER;
    handover_remove_files();
    handover_close_others();
    for (unsigned i = 0; i < children.number; i++)
        have_leave(&children.each[i], how);
}

/* A load has ended. If another one was requested meanwhile, start it at once. */
static void
load_again_if_asked(void)
{
    if (supervisor.give_up_ns == NEVER)
        return;
    supervisor.give_up_ns = NEVER;
    supervisor.is_whole = true;
    supervisor.start_ns = sxe_time_ns();
}

/* A load has failed. If the latest change of a file is not in service, plan another attempt,
 * because the fault may be in a file that is not watched. With --dev this is not done: all files
 * are watched, and each attempt would run the script. */
static void
retry_if_stale(void)
{
    if (!supervisor.is_stale || supervisor.config->is_dev || supervisor.start_ns != NEVER)
        return;
    supervisor.retry_delay_ns = supervisor.retry_delay_ns == 0 ? RETRY_MIN_NS
                                : supervisor.retry_delay_ns < RETRY_MAX_NS / 2
                                    ? 2 * supervisor.retry_delay_ns
                                    : RETRY_MAX_NS;
    supervisor.retry_ns = sxe_time_ns() + supervisor.retry_delay_ns;
}

static void
say_failed(void)
{
    if (!reason_is_told())
        SXE_ERROR("%s could not be loaded again; the version loaded before goes on serving%s",
                  name_of_load(),
                  supervisor.retry_ns == NEVER
                      ? ""
                      : "; a changed file is not in service yet: loading is retried at least once "
                        "a minute, and each reason is logged once");
}

/* A child has ended before all workers of its load were ready. */
static void
load_failed(int status)
{
    undo_load();
    load_again_if_asked();
    if (supervisor.is_renewing && supervisor.has_served)
        retry_if_stale();
    if (!supervisor.has_served)
        supervisor.status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    else if (child_in(SERVING) != NULL) {
        say_failed();
        notify_ready(supervisor.workers);
    }
}

/* A child has closed its link, so it is ending: reap it, and plan its successor. */
static void
bury_child(unsigned index)
{
    static const char *const doings[] = {"was starting", "was starting", "served", "was leaving"};
    struct child child;
    int status = children_bury(index, &child);
    char how[WAIT_STATUS_MAX];

    balance_clear(child.slot);
    if (supervisor.config->on_end != NULL)
        supervisor.config->on_end(supervisor.config->user, child.slot);
    if ((WIFSIGNALED(status) || child.role == SERVING) && !child.is_killed)
        SXE_ERROR("process %d, which %s, %s", child.pid, doings[child.role],
                  wait_status_text(status, how));
    if (child.role == STARTING || child.role == READY)
        load_failed(status);
    if (child.role != LEAVING)
        replace_missing(child.since_ns);
    if (supervisor.is_waiting && supervisor.start_ns == NEVER)
        supervisor.start_ns = sxe_time_ns();
    supervisor.is_waiting = false;
}

/* ---- Messages of children ---- */

static void
be_loaded(const struct child *last)
{
    if (supervisor.has_served && supervisor.workers == 1)
        SXE_INFO("%s was loaded again, into process %d", name_of_load(), last->pid);
    else if (supervisor.has_served)
        SXE_INFO("%s was loaded again, into %u processes", name_of_load(), supervisor.workers);
    supervisor.has_served = true;
    supervisor.is_stale = false;
    supervisor.retry_delay_ns = 0;
    supervisor.status = EXIT_SUCCESS;
    notify_ready(supervisor.workers);
    upgrade_say_ready();
    supervisor.patience_ns = supervisor.config->is_dev ? PATIENCE_DEV_NS : PATIENCE_NS;
    load_again_if_asked();
}

/* All workers of a load are ready: they serve from now on, and the workers of the load before them
 * leave. */
static void
take_over_service(const struct child *last)
{
    handover_own_files();
    handover_settle(true);
    changes_end_load();
    settle_load(true);
    for (unsigned i = 0; i < children.number; i++) {
        struct child *child = &children.each[i];

        if (child->role == SERVING)
            have_leave(child, HANDOVER_DRAIN);
        else if (child->role == READY)
            child->role = SERVING;
    }
    if (supervisor.workers > 1 && !supervisor.has_served)
        (void)handover_say(child_in(SERVING)->link, HANDOVER_SAY);
    be_loaded(last);
    replace_missing(last->since_ns);
}

/* A child that was started alone is ready. It takes an empty place, or the place of a child that
 * asked to be replaced. */
static void
join_child(struct child *child)
{
    for (unsigned i = 0; i < children.number; i++) {
        if (children.each[i].role == SERVING && children.each[i].place == child->place)
            have_leave(&children.each[i], HANDOVER_DRAIN);
    }
    child->role = SERVING;
    handover_join();
    SXE_INFO("process %d serves as worker %u", child->pid, child->place);
    if (!is_loading())
        load_again_if_asked();
    replace_missing(child->since_ns);
}

static void
be_ready(struct child *child)
{
    if (!supervisor.is_renewing) {
        join_child(child);
        return;
    }
    child->role = READY;
    start_missing();
    if (supervisor.give_up_ns != NEVER)
        supervisor.give_up_ns = sxe_time_ns() + supervisor.patience_ns;
    if (child->role == READY && child_in(STARTING) == NULL)
        take_over_service(child);
}

/* A child asks to be replaced. Its successor is started at once, or after the load in progress. */
static void
renew_child(struct child *child)
{
    if (child->role == LEAVING || child->is_worn)
        return;
    child->is_worn = true;
    replace_missing(child->since_ns);
}

/* Watch a file that a child names. The process that sent the path is not trusted, so check that it
 * ends with a NUL. */
static void
note_watched_file(const struct handover_message *message)
{
    if ((!supervisor.config->is_dev && !supervisor.config->watches_files) ||
        memchr(message->u.path, '\0', sizeof(message->u.path)) == NULL)
        return;
    changes_add(message->u.path);
    if (supervisor.look_ns == NEVER)
        supervisor.look_ns = sxe_time_ns();
}

/* Handle a message of a child. A message that makes no sense is ignored, and its descriptor is
 * closed. */
static void
take_child_message(struct child *child, const struct handover_message *message, int fd)
{
    const bool is_socket = message->kind == HANDOVER_KEEP || message->kind == HANDOVER_USE;

    if (is_socket && child->role != LEAVING) {
        handover_note(message, fd, child->role < SERVING);
        return;
    }
    if (fd >= 0)
        close(fd);
    if (message->kind == HANDOVER_FILE && child->role != LEAVING)
        note_watched_file(message);
    else if (message->kind == HANDOVER_READY && child->role == STARTING)
        be_ready(child);
    else if (message->kind == HANDOVER_RENEW)
        renew_child(child);
    else if (message->kind == HANDOVER_REASON && child->role != LEAVING)
        reason_note(message->value);
}

/* Handle the messages in a child's queue, but at most MESSAGES_MAX of them, because a child may
 * send without end. Returns a negative number if the child has closed its link. */
static int
hear_child(struct child *child)
{
    struct handover_message message;
    int result = 1;
    int fd;

    for (unsigned i = 0; i < MESSAGES_MAX && result > 0; i++) {
        result = handover_receive(child->link, &message, &fd);
        if (result > 0)
            take_child_message(child, &message, fd);
    }
    return result;
}

void
supervisor_listen_to(unsigned index)
{
    if (hear_child(&children.each[index]) < 0)
        bury_child(index);
}

/* ---- Loading again ---- */

/* Kill a child that is still loading. But if its READY has come meanwhile, it may have accepted a
 * connection, and is not killed. It is stopped (SIGSTOP) first, so that it cannot send READY
 * between the look and the kill. True: it was killed. */
static bool
is_given_up(struct child *child)
{
    siginfo_t info;

    kill(child->pid, SIGSTOP);
    (void)waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WEXITED | WNOWAIT);
    (void)hear_child(child);
    if (child->role != STARTING) {
        kill(child->pid, SIGCONT);
        return false;
    }
    SXE_WARN("%s is still not loaded, %u s after another load was requested: process %d, which "
             "loads it, is killed and replaced",
             name_of_load(), (unsigned)(supervisor.patience_ns / SXE_NS_PER_SECOND), child->pid);
    kill_child(child);
    child->role = LEAVING;
    return true;
}

/* Kill the children that are still loading. The next load gets twice the time, so that a script
 * that loads slowly can be loaded in the end, however often a reload is requested. */
void
supervisor_give_up(void)
{
    /* a copy, because children that are started in the loop must not be looked at */
    unsigned number = children.number;
    bool is_any = false;

    for (unsigned i = 0; i < number; i++) {
        if (children.each[i].role == STARTING)
            is_any |= is_given_up(&children.each[i]);
    }
    if (!is_any)
        return;
    undo_load();
    supervisor.is_fresh_wanted |= supervisor.is_fresh;
    if (supervisor.patience_ns < PATIENCE_MAX_NS)
        supervisor.patience_ns *= 2;
    load_again_if_asked();
}

/* Load again. If a load is in progress, its children may have read the script before the last
 * change, so load once more after it. However often a reload is requested meanwhile, only one load
 * follows. */
void
supervisor_reload(bool is_fresh)
{
    if (supervisor.is_ending)
        return;
    supervisor.is_fresh_wanted |= is_fresh;
    supervisor.retry_delay_ns = 0;
    supervisor.is_retrying = false;
    if (!is_loading())
        supervisor_start_all();
    else if (supervisor.give_up_ns == NEVER)
        supervisor.give_up_ns = sxe_time_ns() + supervisor.patience_ns;
}

void
supervisor_note_change(void)
{
    supervisor.is_changed = true;
    supervisor_reload(supervisor.config->is_dev);
}

void
supervisor_retry(void)
{
    if (is_loading()) { /* a single worker is being replaced: try again later */
        supervisor.retry_ns = sxe_time_ns() + RETRY_MIN_NS;
        return;
    }
    supervisor.is_retrying = true;
    supervisor_start_all();
}
