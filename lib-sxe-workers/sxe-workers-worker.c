/* SPDX-License-Identifier: MIT
 *
 * The calls for workers, and those with which the parent opens sockets and watches files.
 */
#include <errno.h>
#include <string.h>

#include "sxe-address-internal.h"
#include "sxe-workers-balance-private.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-heartbeat-private.h"
#include "sxe-workers-inherit-internal.h"
#include "sxe-workers-private.h"

/* This worker. */
static struct {
    bool is_worker; /* whether this process is one; the members below are for workers */
    struct sxe_worker numbers;
    uint32_t stop_timeout_ms;
    void (*on_event)(void *user,
                     enum sxe_workers_event event); /* NULL: sxe_workers_attend was not called */
    void *user;
    ev_io parent;
    struct sxe_timer grace; /* ends the drain, if the program has no function for events */
    unsigned ends;
    bool is_leaving;
} self;

/* ---- In the parent ---- */

int
sxe_workers_listen_tcp(const char *ip, unsigned short port)
{
    struct sockaddr_storage address;
    int result = sxe__inherit_sockets(program_invocation_short_name);

    if (result == 0)
        result = sxe__address_parse(&address, ip, port);
    if (result < 0)
        return result;
    return sxe__handover_open((const struct sockaddr *)&address, sxe__address_length(&address));
}

int
sxe_workers_listen_unix(const char *path)
{
    struct sockaddr_storage address;
    socklen_t length;
    int result = sxe__inherit_sockets(program_invocation_short_name);

    if (result == 0)
        result = sxe__address_parse_path(&address, &length, path);
    return result < 0 ? result : sxe__handover_open((const struct sockaddr *)&address, length);
}

void
sxe_workers_watch_file(const char *path)
{
    if (self.is_worker)
        sxe__handover_name_file(self.numbers.link, path);
    else
        sxe__supervisor_watch_file(path);
}

/* ---- In a worker ---- */

void
sxe__workers_begin(const struct sxe_worker *worker, uint32_t stop_timeout_ms)
{
    struct sxe_config config = *sxe_get_config();

    memset(&self, 0, sizeof(self));
    self.is_worker = true;
    self.numbers = *worker;
    self.stop_timeout_ms = stop_timeout_ms;
    config.listeners = &sxe__handover_listeners;
    sxe_configure(&config);
}

/* When a timer ends, libev has one watcher less to wait for. But on_event_alone has counted this
 * timer off already, so count it again. */
static void
stop_late(struct sxe_timer *timer)
{
    SXE_UNUSED_PARAMETER(timer);
    ev_ref(sxe_loop());
    sxe_stop();
}

/* The on_event of programs that have none. The loop does not go on only because of the timer. */
static void
on_event_alone(void *user, enum sxe_workers_event event)
{
    SXE_UNUSED_PARAMETER(user);
    self.ends += event == SXE_WORKERS_END;
    if (self.ends > 1)
        sxe_stop();
    if (self.is_leaving || (event != SXE_WORKERS_DRAIN && event != SXE_WORKERS_END))
        return;
    self.is_leaving = true;
    sxe_stop_listening();
    sxe_timer_init(&self.grace, stop_late, self.stop_timeout_ms / 1000.0, 0);
    sxe_timer_start(&self.grace);
    ev_unref(sxe_loop());
}

static enum sxe_workers_event
event_of(uint32_t kind)
{
    switch (kind) {
    case SXE__HANDOVER_DRAIN:
        return SXE_WORKERS_DRAIN;
    case SXE__HANDOVER_REOPEN:
        return SXE_WORKERS_REOPEN;
    case SXE__HANDOVER_STATS:
        return SXE_WORKERS_STATS;
    case SXE__HANDOVER_SAY:
        return SXE_WORKERS_FIRST;
    default:
        return SXE_WORKERS_END;
    }
}

/* Handle messages of the parent. If it has died, set an alarm, which ends this process if its loop
 * hangs. */
static void
hear_parent(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct sxe__handover_message message;
    int result;
    int fd;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    while ((result = sxe__handover_receive(self.numbers.link, &message, &fd)) > 0)
        self.on_event(self.user, event_of(message.kind));
    if (result == 0)
        return;
    sxe__workers_ignore();
    sxe__heartbeat_end_within(self.stop_timeout_ms);
    self.on_event(self.user, SXE_WORKERS_END);
}

void
sxe__workers_ignore(void)
{
    if (!ev_is_active(&self.parent))
        return;
    ev_ref(sxe_loop());
    ev_io_stop(sxe_loop(), &self.parent);
}

int
sxe_workers_attend(void (*on_event)(void *user, enum sxe_workers_event event), void *user)
{
    struct ev_loop *loop = sxe_loop();

    if (!self.is_worker)
        return 0;
    if (loop == NULL || self.on_event != NULL)
        return -EINVAL;
    self.on_event = on_event != NULL ? on_event : on_event_alone;
    self.user = user;
    ev_io_init(&self.parent, hear_parent, self.numbers.link, EV_READ);
    ev_io_start(loop, &self.parent);
    ev_unref(loop);
    sxe__heartbeat_watch(loop);
    return 0;
}

int
sxe_workers_ready(void)
{
    int result = 0;

    if (self.is_worker && self.on_event == NULL)
        result = sxe_workers_attend(NULL, NULL);
    if (!self.is_worker || result < 0)
        return result;
    sxe__handover_close_others();
    sxe__balance_join(self.numbers.slot);
    return sxe__handover_say(self.numbers.link, SXE__HANDOVER_READY);
}

int
sxe_workers_renew(void)
{
    return self.is_worker ? sxe__handover_say(self.numbers.link, SXE__HANDOVER_RENEW) : -EINVAL;
}
