/* SPDX-License-Identifier: MIT
 *
 * The supervisor: starts, replaces and ends serving processes.
 */
#include "sxe-workers-private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-process-internal.h"
#include "sxe-workers-balance-private.h"
#include "sxe-workers-changes-private.h"
#include "sxe-workers-children-private.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-notify-internal.h"
#include "sxe-workers-upgrade-internal.h"

#define LONG_LIFE_NS (10 * SXE_NS_PER_SECOND)
#define DELAY_MIN_NS (100 * SXE_NS_PER_MS)
#define DELAY_SAY_NS (400 * SXE_NS_PER_MS)
#define DELAY_MAX_NS (10 * SXE_NS_PER_SECOND)

/* how many messages of a child are handled in one turn; the kernel queues fewer */
#define MESSAGES_MAX 1024

struct sxe__supervisor sxe__supervisor;

static bool
is_loading(void)
{
    return sxe__child_in(STARTING) != NULL || sxe__child_in(READY) != NULL;
}

/* How many places have no child in the role `last` or in a role before it, see is_taken. */
static unsigned
number_missing(enum role last)
{
    unsigned number = 0;

    for (unsigned place = 0; place < sxe__supervisor.workers; place++)
        number += !sxe__child_is_taken(place, last);
    return number;
}

static void
have_leave(struct sxe__child *child, enum sxe__handover_kind how)
{
    sxe__child_leave(
        child, how, OVERTIME_NS + sxe__supervisor.config.stop_timeout_ms * (uint64_t)SXE_NS_PER_MS);
    sxe__balance_clear(child->slot);
}

/* ---- Starting ---- */

static void
be_child(const struct sxe_worker *worker)
{
    sxe__supervisor_leave_loop();
    sxe__workers_begin(worker, sxe__supervisor.config.stop_timeout_ms);
    exit(sxe__supervisor.config.serve(sxe__supervisor.config.user, worker));
}

/* Plan to start a successor of a child that was started at since_ns. If the child lived long, the
 * successor is started at once, otherwise after a delay, which doubles from start to start. */
static void
start_child_later(uint64_t since_ns)
{
    uint64_t now_ns = sxe_time_ns();

    if (now_ns - since_ns >= LONG_LIFE_NS)
        sxe__supervisor.delay_ns = 0;
    else if (sxe__supervisor.delay_ns == 0)
        sxe__supervisor.delay_ns = DELAY_MIN_NS;
    else
        sxe__supervisor.delay_ns = sxe__supervisor.delay_ns < DELAY_MAX_NS / 2
                                       ? 2 * sxe__supervisor.delay_ns
                                       : DELAY_MAX_NS;
    sxe__supervisor.start_ns = now_ns + sxe__supervisor.delay_ns;
    if (sxe__supervisor.delay_ns < DELAY_SAY_NS)
        return;
    if (sxe__children_serve_all())
        SXE_WARN("workers ask to be replaced soon after their start, one after the other: the next "
                 "one is started in %u ms; until then they go on serving",
                 (unsigned)(sxe__supervisor.delay_ns / SXE_NS_PER_MS));
    else
        SXE_WARN("processes end soon after their start, one after the other: the next one is "
                 "started in %u ms; the lines of the log before this say why they end",
                 (unsigned)(sxe__supervisor.delay_ns / SXE_NS_PER_MS));
}

/* If workers are missing, plan to start them, unless a load is in progress or a start is planned
 * already. */
static void
replace_missing(uint64_t since_ns)
{
    if (sxe__supervisor.is_ending || !sxe__supervisor.has_served || is_loading() ||
        sxe__supervisor.start_ns != NEVER || number_missing(SERVING) == 0)
        return;
    start_child_later(since_ns);
}

/* There are too many children, so remember to start others when one has ended. None is killed for
 * that, because its requests would fail. However often a reload was requested, only one load
 * follows. */
static void
wait_for_a_place(void)
{
    if (!sxe__supervisor.is_waiting)
        SXE_WARN("%s is loaded again later: %u earlier processes still answer requests, and one of "
                 "them has to end first; %s limits how long they take",
                 sxe__supervisor.config.name, sxe__children.number - sxe__supervisor.workers,
                 sxe__supervisor.hooks.stop_option);
    sxe__supervisor.is_waiting = true;
}

static void
settle_load(bool is_good)
{
    if (sxe__supervisor.config.on_settled != NULL)
        sxe__supervisor.config.on_settled(sxe__supervisor.config.user, is_good);
}

/* A load has failed. Its processes that are ready may have accepted connections, so let them finish
 * these. */
static void
undo_load(void)
{
    sxe__handover_settle(false);
    settle_load(false);
    for (unsigned i = 0; sxe__supervisor.is_renewing && i < sxe__children.number; i++) {
        struct sxe__child *child = &sxe__children.each[i];

        if (child->role == READY || child->role == STARTING)
            have_leave(child, sxe__supervisor.has_served ? SXE__HANDOVER_DRAIN : SXE__HANDOVER_END);
    }
}

static void
plan_another_start(int error)
{
    SXE_ERROR("cannot start a process: %s", strerror(error));
    undo_load();
    if (sxe__supervisor.has_served) {
        sxe__supervisor.is_whole |= sxe__supervisor.is_renewing;
        sxe__supervisor.is_fresh_wanted |= sxe__supervisor.is_fresh;
        start_child_later(sxe_time_ns());
    } else {
        sxe__supervisor.status = EXIT_FAILURE;
    }
}

/* Start the missing workers. If all workers are replaced, start only one first: it shows whether
 * the script loads, and it opens the listeners. The others follow when it is ready. */
static void
start_missing(void)
{
    const enum role last = sxe__supervisor.is_renewing ? READY : SERVING;
    const bool is_first = sxe__supervisor.is_renewing && sxe__child_in(READY) == NULL;

    for (unsigned place = 0; place < sxe__supervisor.workers; place++) {
        int result = sxe__child_is_taken(place, last) ? 0 : sxe__children_fork(place, be_child);

        if (result < 0)
            plan_another_start(-result);
        if (result < 0 || is_first)
            return;
    }
}

static void
begin_looks(void)
{
    if (sxe__supervisor.look_ns == NEVER)
        sxe__supervisor.look_ns = sxe_time_ns();
}

void
sxe__supervisor_watch_file(const char *path)
{
    sxe__changes_add(path);
    begin_looks();
}

/* Watch the files before the children read them, so that a change while they read is noticed. */
static void
watch_config_files(void)
{
    sxe__supervisor.is_stale |= sxe__changes_begin_load() || sxe__supervisor.is_changed;
    sxe__supervisor.is_changed = false;
    sxe__supervisor.retry_ns = NEVER;
    if (sxe__supervisor.hooks.is_dev && sxe__supervisor.hooks.script != NULL)
        sxe__supervisor_watch_file(sxe__supervisor.hooks.script);
    if (sxe__supervisor.config.on_load != NULL)
        sxe__supervisor.config.on_load(sxe__supervisor.config.user);
}

static void
begin_config_load(void)
{
    watch_config_files();
    sxe__supervisor.is_fresh_wanted = false;
    if (sxe__supervisor.is_fresh && sxe__supervisor.hooks.on_renew != NULL)
        sxe__supervisor.hooks.on_renew(sxe__supervisor.config.user);
}

void
sxe__supervisor_start_children(void)
{
    const unsigned missing = number_missing(SERVING);
    const bool is_whole = sxe__supervisor.is_whole || missing == sxe__supervisor.workers;

    sxe__supervisor.start_ns = NEVER;
    if (sxe__children.number + (is_whole ? sxe__supervisor.workers : missing) >
        SXE_WORKERS_CHILDREN * sxe__supervisor.workers) {
        wait_for_a_place();
        return;
    }
    sxe__supervisor.is_whole = false;
    sxe__supervisor.is_renewing = is_whole;
    if (sxe__supervisor.hooks.on_attempt != NULL)
        sxe__supervisor.hooks.on_attempt(sxe__supervisor.is_retrying);
    sxe__supervisor.is_retrying = false;
    if (is_whole && sxe__supervisor.has_served)
        sxe__notify_reloading();
    sxe__supervisor.is_fresh = is_whole && sxe__supervisor.is_fresh_wanted;
    if (is_whole)
        begin_config_load();
    start_missing();
}

void
sxe__supervisor_start_all(void)
{
    sxe__supervisor.is_whole = true;
    sxe__supervisor_start_children();
}

/* ---- Ending ---- */

void
sxe__supervisor_end_all(enum sxe__handover_kind how)
{
    if (!sxe__supervisor.is_ending && how == SXE__HANDOVER_END)
        sxe__notify_stopping();
    sxe__supervisor.is_ending = true;
    if (sxe__supervisor.hooks.on_ending != NULL)
        sxe__supervisor.hooks.on_ending();
    sxe__supervisor.is_waiting = false;
    sxe__supervisor.give_up_ns = NEVER;
    sxe__supervisor.retry_ns = NEVER;
    sxe__supervisor.start_ns = NEVER;
    sxe__handover_remove_files();
    sxe__handover_close_others();
    for (unsigned i = 0; i < sxe__children.number; i++)
        have_leave(&sxe__children.each[i], how);
}

/* A load has ended. If another one was requested meanwhile, start it at once. */
static void
load_again_if_asked(void)
{
    if (sxe__supervisor.give_up_ns == NEVER)
        return;
    sxe__supervisor.give_up_ns = NEVER;
    sxe__supervisor.is_whole = true;
    sxe__supervisor.start_ns = sxe_time_ns();
}

/* A load has failed. If the latest change of a file is not in service, plan another attempt,
 * because the fault may be in a file that is not watched. With --dev this is not done: all files
 * are watched, and each attempt would run the script. */
static void
retry_if_stale(void)
{
    if (!sxe__supervisor.is_stale || sxe__supervisor.hooks.is_dev ||
        sxe__supervisor.start_ns != NEVER)
        return;
    sxe__supervisor.retry_delay_ns = sxe__supervisor.retry_delay_ns == 0 ? RETRY_MIN_NS
                                     : sxe__supervisor.retry_delay_ns < RETRY_MAX_NS / 2
                                         ? 2 * sxe__supervisor.retry_delay_ns
                                         : RETRY_MAX_NS;
    sxe__supervisor.retry_ns = sxe_time_ns() + sxe__supervisor.retry_delay_ns;
}

/* The text that say_failed adds, once for a change: it is not in service, and is tried again. */
static const char *
what_follows(void)
{
    if (sxe__supervisor.retry_ns == NEVER || sxe__supervisor.retry_delay_ns > RETRY_MIN_NS)
        return "";
    return sxe__supervisor.hooks.is_reason_told == NULL
               ? "; a changed file is not in service yet: loading is retried at least once a minute"
               : "; a changed file is not in service yet: loading is retried at least once a "
                 "minute, and each reason is logged once";
}

static void
say_failed(void)
{
    if (sxe__supervisor.hooks.is_reason_told == NULL || !sxe__supervisor.hooks.is_reason_told())
        SXE_ERROR("%s could not be loaded again; the version loaded before goes on serving%s",
                  sxe__supervisor.config.name, what_follows());
}

/* The program ends with the status of the worker that failed. A worker that ended with status 0
 * has failed, too, and probably said nothing. */
static void
fail_first_load(int status)
{
    sxe__supervisor.status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    if (sxe__supervisor.status != 0 || sxe__supervisor.is_ending)
        return;
    SXE_ERROR("%s was not loaded: its worker ended before sxe_workers_ready was called",
              sxe__supervisor.config.name);
    sxe__supervisor.status = EXIT_FAILURE;
}

/* A child has ended before all workers of its load were ready. */
static void
load_failed(int status)
{
    undo_load();
    load_again_if_asked();
    if (sxe__supervisor.is_renewing && sxe__supervisor.has_served)
        retry_if_stale();
    if (!sxe__supervisor.has_served)
        fail_first_load(status);
    else if (sxe__child_in(SERVING) != NULL) {
        say_failed();
        sxe__notify_ready(sxe__supervisor.workers);
    }
}

/* A child has closed its link, so it is ending: reap it, and plan its successor. */
static void
bury_child(unsigned index)
{
    static const char *const doings[] = {"was starting", "was starting", "served", "was leaving"};
    struct sxe__child child;
    int status = sxe__children_bury(index, &child);
    char how[SXE__WAIT_STATUS_MAX];

    sxe__balance_clear(child.slot);
    if (sxe__supervisor.config.on_end != NULL)
        sxe__supervisor.config.on_end(sxe__supervisor.config.user, child.slot);
    if ((WIFSIGNALED(status) || child.role == SERVING) && !child.is_killed)
        SXE_ERROR("process %d, which %s, %s", child.pid, doings[child.role],
                  sxe__wait_status_text(status, how));
    if (child.role == STARTING || child.role == READY)
        load_failed(status);
    if (child.role != LEAVING)
        replace_missing(child.since_ns);
    if (sxe__supervisor.is_waiting && sxe__supervisor.start_ns == NEVER)
        sxe__supervisor.start_ns = sxe_time_ns();
    sxe__supervisor.is_waiting = false;
}

/* ---- Messages of children ---- */

static void
be_loaded(const struct sxe__child *last)
{
    if (sxe__supervisor.has_served && sxe__supervisor.workers == 1)
        SXE_INFO("%s was loaded again, into process %d", sxe__supervisor.config.name, last->pid);
    else if (sxe__supervisor.has_served)
        SXE_INFO("%s was loaded again, into %u processes", sxe__supervisor.config.name,
                 sxe__supervisor.workers);
    sxe__supervisor.has_served = true;
    sxe__supervisor.is_stale = false;
    sxe__supervisor.retry_delay_ns = 0;
    sxe__supervisor.status = EXIT_SUCCESS;
    sxe__notify_ready(sxe__supervisor.workers);
    sxe__upgrade_say_ready();
    sxe__supervisor.patience_ns = sxe__supervisor.hooks.is_dev ? PATIENCE_DEV_NS : PATIENCE_NS;
    load_again_if_asked();
}

/* All workers of a load are ready: they serve from now on, and the workers of the load before them
 * leave. */
static void
take_over_service(const struct sxe__child *last)
{
    sxe__handover_own_files();
    sxe__handover_settle(true);
    sxe__changes_end_load();
    settle_load(true);
    for (unsigned i = 0; i < sxe__children.number; i++) {
        struct sxe__child *child = &sxe__children.each[i];

        if (child->role == SERVING)
            have_leave(child, SXE__HANDOVER_DRAIN);
        else if (child->role == READY)
            child->role = SERVING;
    }
    if (sxe__supervisor.workers > 1 && !sxe__supervisor.has_served)
        (void)sxe__handover_say(sxe__child_in(SERVING)->link, SXE__HANDOVER_SAY);
    be_loaded(last);
    replace_missing(last->since_ns);
}

/* A child that was started alone is ready. It takes an empty place, or the place of a child that
 * asked to be replaced. */
static void
join_child(struct sxe__child *child)
{
    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (sxe__children.each[i].role == SERVING && sxe__children.each[i].place == child->place)
            have_leave(&sxe__children.each[i], SXE__HANDOVER_DRAIN);
    }
    child->role = SERVING;
    sxe__handover_join();
    SXE_INFO("process %d serves as worker %u", child->pid, child->place);
    if (!is_loading())
        load_again_if_asked();
    replace_missing(child->since_ns);
}

static void
be_ready(struct sxe__child *child)
{
    if (!sxe__supervisor.is_renewing) {
        join_child(child);
        return;
    }
    child->role = READY;
    sxe__supervisor.alone_ns = NEVER; /* each start has the whole time */
    start_missing();
    if (sxe__supervisor.give_up_ns != NEVER)
        sxe__supervisor.give_up_ns = sxe_time_ns() + sxe__supervisor.patience_ns;
    if (child->role == READY && sxe__child_in(STARTING) == NULL)
        take_over_service(child);
}

/* A child asks to be replaced. Its successor is started at once, or after the load in progress. */
static void
renew_child(struct sxe__child *child)
{
    if (child->role == LEAVING || child->is_worn)
        return;
    child->is_worn = true;
    replace_missing(child->since_ns);
}

/* Watch a file that a child names. The process that sent the path is not trusted, so check that it
 * ends with a NUL. */
static void
note_watched_file(const struct sxe__handover_message *message)
{
    if ((!sxe__supervisor.hooks.is_dev && !sxe__supervisor.hooks.watches_files) ||
        memchr(message->u.path, '\0', sizeof(message->u.path)) == NULL)
        return;
    sxe__changes_add_seen(message->u.path, &message->u.stamp, &message->u.seen);
    begin_looks();
}

static void
note_reason(uint32_t digest)
{
    if (sxe__supervisor.hooks.on_reason != NULL)
        sxe__supervisor.hooks.on_reason(digest);
}

/* Handle a message of a child. A message that makes no sense is ignored, and its descriptor is
 * closed. */
static void
take_child_message(struct sxe__child *child, const struct sxe__handover_message *message, int fd)
{
    const bool is_socket =
        message->kind == SXE__HANDOVER_KEEP || message->kind == SXE__HANDOVER_USE;

    if (is_socket && child->role != LEAVING) {
        sxe__handover_note(message, fd, child->role < SERVING);
        return;
    }
    if (fd >= 0)
        close(fd);
    if (message->kind == SXE__HANDOVER_FILE && child->role != LEAVING)
        note_watched_file(message);
    else if (message->kind == SXE__HANDOVER_READY && child->role == STARTING)
        be_ready(child);
    else if (message->kind == SXE__HANDOVER_RENEW)
        renew_child(child);
    else if (message->kind == SXE__HANDOVER_REASON && child->role != LEAVING)
        note_reason(message->value);
}

/* Handle the messages in a child's queue, but at most MESSAGES_MAX of them, because a child may
 * send without end. Returns a negative number if the child has closed its link. */
static int
hear_child(struct sxe__child *child)
{
    struct sxe__handover_message message;
    int result = 1;
    int fd;

    for (unsigned i = 0; i < MESSAGES_MAX && result > 0; i++) {
        result = sxe__handover_receive(child->link, &message, &fd);
        if (result > 0)
            take_child_message(child, &message, fd);
    }
    return result;
}

void
sxe__supervisor_listen_to(unsigned index)
{
    if (hear_child(&sxe__children.each[index]) < 0)
        bury_child(index);
}

/* ---- Loading again ---- */

/* Kill a child that is still loading. But if its READY has come meanwhile, it may have accepted a
 * connection, and is not killed. It is stopped (SIGSTOP) first, so that it cannot send READY
 * between the look and the kill. True: it was killed. */
static bool
is_given_up(struct sxe__child *child)
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
             sxe__supervisor.config.name,
             (unsigned)(sxe__supervisor.patience_ns / SXE_NS_PER_SECOND), child->pid);
    sxe__child_kill(child);
    child->role = LEAVING;
    return true;
}

/* Kill the children that are still loading. The next load gets twice the time, so that a script
 * that loads slowly can be loaded in the end, however often a reload is requested. */
void
sxe__supervisor_give_up(void)
{
    /* a copy, because children that are started in the loop must not be looked at */
    unsigned number = sxe__children.number;
    bool is_any = false;

    for (unsigned i = 0; i < number; i++) {
        if (sxe__children.each[i].role == STARTING)
            is_any |= is_given_up(&sxe__children.each[i]);
    }
    if (!is_any)
        return;
    undo_load();
    sxe__supervisor.is_fresh_wanted |= sxe__supervisor.is_fresh;
    if (sxe__supervisor.patience_ns < PATIENCE_MAX_NS)
        sxe__supervisor.patience_ns *= 2;
    load_again_if_asked();
}

/* Load again. If a load is in progress, its children may have read the script before the last
 * change, so load once more after it. However often a reload is requested meanwhile, only one load
 * follows. */
void
sxe__supervisor_reload(bool is_fresh)
{
    if (sxe__supervisor.is_ending)
        return;
    sxe__supervisor.is_fresh_wanted |= is_fresh;
    sxe__supervisor.retry_delay_ns = 0;
    sxe__supervisor.is_retrying = false;
    if (!is_loading())
        sxe__supervisor_start_all();
    else if (sxe__supervisor.give_up_ns == NEVER)
        sxe__supervisor.give_up_ns = sxe_time_ns() + sxe__supervisor.patience_ns;
}

void
sxe__supervisor_note_change(void)
{
    sxe__supervisor.is_changed = true;
    sxe__supervisor_reload(sxe__supervisor.hooks.is_dev);
}

void
sxe__supervisor_retry(void)
{
    if (is_loading()) { /* a single worker is being replaced: try again later */
        sxe__supervisor.retry_ns = sxe_time_ns() + RETRY_MIN_NS;
        return;
    }
    sxe__supervisor.is_retrying = true;
    sxe__supervisor_start_all();
}
