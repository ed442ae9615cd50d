/* SPDX-License-Identifier: MIT
 *
 * The attempts of a dial, and the list of dials that wait for the time of their next attempt. All
 * wait equally long, so a dial that is added last is due last.
 */
#include "sxe-private.h"

#include <errno.h>

#include "sxe-dial.h"

#define NEXT_NS (SXE_DIAL_NEXT_MS * SXE_NS_PER_MS)

/* ---- The dials that wait ---- */

static void go_on_dialling(struct sxe_dial *dial);

static void
remove_from_waiting(struct sxe_dial *dial)
{
    if (dial->next_ns == 0)
        return;
    dial->next_ns = 0;
    if (dial->prev == NULL)
        CONTEXT->tables->dials_first = dial->next;
    else
        dial->prev->next = dial->next;
    if (dial->next == NULL)
        CONTEXT->tables->dials_last = dial->prev;
    else
        dial->next->prev = dial->prev;
}

/* Called by the loop when dials wait. A dial that goes on waiting gets a later time, so this loop
 * ends. */
static void
check_dials(void)
{
    while (CONTEXT->tables->dials_first != NULL &&
           CONTEXT->tables->dials_first->next_ns <= sxe_time_turn_ns())
        go_on_dialling(CONTEXT->tables->dials_first);
}

static void
append_to_waiting(struct sxe_dial *dial)
{
    CONTEXT->tables->check_dials = check_dials;
    dial->next_ns = sxe_time_turn_ns() + NEXT_NS;
    dial->next = NULL;
    dial->prev = CONTEXT->tables->dials_last;
    if (dial->prev == NULL)
        CONTEXT->tables->dials_first = dial;
    else
        dial->prev->next = dial;
    CONTEXT->tables->dials_last = dial;
}

/* ---- Attempts ---- */

static void
count_attempt(struct sxe_dial *dial)
{
    if (++dial->under_way > 1)
        CONTEXT->spares_used++;
}

static void
uncount_attempt(struct sxe_dial *dial)
{
    if (dial->under_way-- > 1)
        CONTEXT->spares_used--;
}

/* Detach the socket from its attempt: give it back the user_data and on_close of the program. */
static SXE *
release_attempt(struct sxe__attempt *attempt)
{
    SXE *s = attempt->socket;

    s->user_data = attempt->user_data;
    s->on_close = attempt->on_close;
    s->on_connected = NULL; /* on_connected is never called again: this attempt is over */
    attempt->socket = NULL;
    uncount_attempt(attempt->dial);
    return s;
}

static void
close_attempts(struct sxe_dial *dial)
{
    for (unsigned i = 0; i < SXE_RESOLVE_ADDRESSES_MAX; i++) {
        SXE *s = dial->attempts[i].socket;

        if (s == NULL)
            continue;
        (void)release_attempt(&dial->attempts[i]);
        s->user_data = NULL;
        s->on_close = NULL;
        sxe_close(s);
    }
}

static void
on_attempt_connected(SXE *s)
{
    struct sxe__attempt *attempt = s->user_data;
    struct sxe_dial *dial = attempt->dial;

    dial->socket = release_attempt(attempt);
    close_attempts(dial);
    remove_from_waiting(dial);
    dial->done(dial, 0);
}

static void
on_attempt_closed(SXE *s)
{
    struct sxe__attempt *attempt = s->user_data;
    struct sxe_dial *dial = attempt->dial;

    (void)release_attempt(attempt);
    dial->error = sxe_error(s) > 0 ? -sxe_error(s) : -ECONNABORTED;
    go_on_dialling(dial);
}

/* Begin to connect to the address with this index. 0 or -errno. */
static int
begin_attempt(struct sxe_dial *dial, unsigned index)
{
    struct sxe__attempt *attempt = &dial->attempts[index];
    const char *ip = dial->look_up.result.ip[index];
    SXE *s = dial->open(dial, ip);
    int result;

    if (s == NULL)
        return -errno;
    *attempt = (struct sxe__attempt){dial, s, s->user_data, s->on_close};
    s->user_data = attempt;
    s->on_connected = on_attempt_connected;
    s->on_close = on_attempt_closed;
    count_attempt(dial);
    result = sxe_connect(s, ip, dial->port);
    if (result < 0) {
        /* sxe_close would keep the socket until the end of the event, but the next address needs a
         * socket now. */
        sxe__socket_close(release_attempt(attempt));
        sxe__give(s);
    }
    return result;
}

/* ---- The race ---- */

static bool
is_address_left(const struct sxe_dial *dial)
{
    return dial->tried < dial->look_up.result.number;
}

static bool
may_begin_spare(void)
{
    return CONTEXT->spares_used < CONTEXT->spares && sxe_number_in_state(SXE_STATE_FREE) > 0;
}

/* Whether an attempt failed because sockets or memory are used up. The address is not at fault, and
 * others may free them soon. */
static bool
is_lack(int result)
{
    return result == -ENFILE || result == -EMFILE || result == -ENOBUFS || result == -ENOMEM;
}

/* Try the next addresses until an attempt is begun. */
static void
begin_next_attempt(struct sxe_dial *dial)
{
    int result = -1;

    remove_from_waiting(dial);
    while (result < 0 && is_address_left(dial)) {
        if (dial->under_way > 0 && !may_begin_spare())
            break;
        result = begin_attempt(dial, dial->tried);
        if (result < 0)
            dial->error = result;
        if (is_lack(result))
            break;
        dial->tried++;
    }
    if (dial->under_way > 0 && is_address_left(dial))
        append_to_waiting(dial);
}

/* An attempt has failed, or takes long: try the next addresses. If no attempt is under way then,
 * the dial has failed. */
static void
go_on_dialling(struct sxe_dial *dial)
{
    begin_next_attempt(dial);
    if (dial->under_way == 0)
        dial->done(dial, dial->error);
}

/* The addresses are known, or there is an error: begin the race. 0; -errno: no attempt is under
 * way. */
static int
begin_dialling(struct sxe_dial *dial)
{
    dial->look_up_error = dial->look_up.result.error;
    dial->error = -EADDRNOTAVAIL;
    dial->tried = 0;
    if (dial->look_up_error == 0)
        begin_next_attempt(dial);
    return dial->under_way > 0 ? 0 : dial->error;
}

static void
on_dial_resolved(struct sxe_resolve *look_up)
{
    struct sxe_dial *dial = look_up->user;
    int result = begin_dialling(dial);

    if (result < 0)
        dial->done(dial, result);
}

/* ---- For programs ---- */

SXE_RETURN
sxe_dial_register(unsigned spares)
{
    int result = sxe_resolve_register();

    if (result < 0)
        return result;
    /* One socket more: when an attempt has failed, the next one begins while the socket of the
     * failed one is still closing. */
    sxe_register(spares + 1, 0);
    CONTEXT->spares += spares;
    return 0;
}

SXE_RETURN
sxe_dial(struct sxe_dial *dial, const char *host, unsigned short port)
{
    int result;

    if (dial->under_way > 0)
        return -EBUSY;
    dial->look_up.done = on_dial_resolved;
    dial->look_up.user = dial;
    result = sxe_resolve(&dial->look_up, host, AF_UNSPEC);
    if (result == -EBUSY)
        return result;
    dial->port = port;
    dial->socket = NULL;
    dial->look_up_error = 0;
    return result == 1 ? begin_dialling(dial) : result;
}

SXE_RETURN
sxe_dial_cancel(struct sxe_dial *dial)
{
    if (sxe_resolve_cancel(&dial->look_up) == 0)
        return 0;
    if (dial->under_way == 0)
        return -EALREADY;
    remove_from_waiting(dial);
    close_attempts(dial);
    return 0;
}

/* ---- For sxe-plan.c ---- */

void
sxe__dial_close(void)
{
    for (unsigned id = 0; id < CONTEXT->number; id++) {
        SXE *s = sxe__socket(id);

        if (s->on_connected != on_attempt_connected)
            continue;
        remove_from_waiting(((struct sxe__attempt *)s->user_data)->dial);
        (void)release_attempt(s->user_data);
    }
}
