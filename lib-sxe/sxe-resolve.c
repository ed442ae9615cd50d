/* SPDX-License-Identifier: MIT
 *
 * The table of names, the look-ups that wait for each, and the threads' part: getaddrinfo.
 */
#include "sxe-private.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "sxe-resolve.h"

enum name_state { FREE, ASKING, KNOWN, STATES };

/* A name of the table. While its state is ASKING, `found` belongs to the thread that looks the name
 * up. */
struct sxe__name {
    struct sxe_work work;
    struct sxe_resolve *first; /* the first of the look-ups that wait for this name */
    SXE_TIME until_ns;         /* `found` is valid until this time; 0: no answer has come yet */
    int family;
    char host[SXE_RESOLVE_HOST_MAX + 1];
    struct sxe_resolved found;
};

/* ---- In the threads ---- */

/* The next address from `a` on that is of this family (is_same), or of another family (not
 * is_same). */
static const struct addrinfo *
skip_to_family(const struct addrinfo *a, int family, bool is_same)
{
    while (a != NULL && (a->ai_addr->sa_family == family) != is_same)
        a = a->ai_next;
    return a;
}

static void
keep_address(struct sxe_resolved *found, const struct addrinfo *a)
{
    if (found->number < SXE_RESOLVE_ADDRESSES_MAX &&
        getnameinfo(a->ai_addr, a->ai_addrlen, found->ip[found->number], SXE_RESOLVE_IP_SIZE, NULL,
                    0, NI_NUMERICHOST) == 0)
        found->number++;
}

/* Families take turns (RFC 8305, 4): if one family does not work, the second address may work. */
static void
alternate_families(struct sxe_resolved *found, const struct addrinfo *list)
{
    int family = list->ai_addr->sa_family;
    /* the next address of `family`, and the next one of another family */
    const struct addrinfo *next[2] = {list, list};

    for (unsigned turn = 0; next[0] != NULL || next[1] != NULL; turn = 1 - turn) {
        next[turn] = skip_to_family(next[turn], family, turn == 0);
        if (next[turn] != NULL) {
            keep_address(found, next[turn]);
            next[turn] = next[turn]->ai_next;
        }
    }
}

static void
ask_system(struct sxe_work *work)
{
    struct sxe__name *name = (struct sxe__name *)(void *)work;
    const struct addrinfo hints = {.ai_family = name->family, .ai_socktype = SOCK_STREAM};
    struct sxe_resolved *found = &name->found;
    struct addrinfo *list = NULL;

    found->number = 0;
    found->error = getaddrinfo(name->host, NULL, &hints, &list);
    if (list == NULL)
        return;
    alternate_families(found, list);
    freeaddrinfo(list);
}

/* ---- In the loop's thread ---- */

static void
move_name(const struct sxe__name *name, enum name_state from, enum name_state to)
{
    sxe_pool_move(CONTEXT->names, (unsigned)(name - CONTEXT->names), from, to);
}

static enum name_state
state_of_name(const struct sxe__name *name)
{
    return (enum name_state)sxe_pool_get_state(CONTEXT->names, (unsigned)(name - CONTEXT->names));
}

static void
append_look_up(struct sxe__name *name, struct sxe_resolve *look_up)
{
    struct sxe_resolve **end = &name->first;

    look_up->prev = NULL;
    while (*end != NULL) {
        look_up->prev = *end;
        end = &(*end)->next;
    }
    *end = look_up;
    look_up->next = NULL;
    look_up->name = name;
}

static void
remove_look_up(struct sxe_resolve *look_up)
{
    if (look_up->prev == NULL)
        look_up->name->first = look_up->next;
    else
        look_up->prev->next = look_up->next;
    if (look_up->next != NULL)
        look_up->next->prev = look_up->prev;
    look_up->name = NULL;
}

/* The name stays ASKING while the look-ups' done is called: done may look up other names, and to
 * make room for them the table may drop a KNOWN name. */
static void
on_name_asked(struct sxe_work *work)
{
    struct sxe__name *name = (struct sxe__name *)(void *)work;
    uint64_t seconds = name->found.error == 0 ? SXE_RESOLVE_KNOWN_S : SXE_RESOLVE_FAILED_S;

    name->until_ns = sxe_time_turn_ns() + seconds * SXE_NS_PER_SECOND;
    while (name->first != NULL) {
        struct sxe_resolve *look_up = name->first;

        remove_look_up(look_up);
        look_up->result = name->found;
        look_up->done(look_up);
    }
    move_name(name, ASKING, KNOWN);
}

static struct sxe__name *
find_looked_up_name(const char *host, int family)
{
    for (unsigned i = 0; i < SXE_RESOLVE_NAMES_MAX; i++) {
        struct sxe__name *name = &CONTEXT->names[i];

        if (sxe_pool_get_state(CONTEXT->names, i) != FREE && name->family == family &&
            strcasecmp(name->host, host) == 0)
            return name;
    }
    return NULL;
}

/* Take a free name or, if none is free, the name whose answer is oldest. NULL: all names are being
 * asked for. */
static struct sxe__name *
take_name_slot(const char *host, int family)
{
    unsigned index = sxe_pool_take(CONTEXT->names, FREE, ASKING);
    struct sxe__name *name;

    if (index == SXE_POOL_NO_INDEX)
        index = sxe_pool_take(CONTEXT->names, KNOWN, ASKING);
    if (index == SXE_POOL_NO_INDEX)
        return NULL;
    name = &CONTEXT->names[index];
    memset(name, 0, sizeof(*name));
    name->work.run = ask_system;
    name->work.done = on_name_asked;
    name->work.group = CONTEXT->names_group;
    name->family = family;
    memcpy(name->host, host, strlen(host));
    return name;
}

/* Have a thread look up this host. `name` is its slot in the table; NULL: take another slot. */
static int
ask_for(struct sxe__name *name, const char *host, int family, struct sxe_resolve *look_up)
{
    int result;

    if (name == NULL)
        name = take_name_slot(host, family);
    else
        move_name(name, KNOWN, ASKING);
    if (name == NULL)
        return -EAGAIN;
    name->until_ns = 0;
    result = sxe_work_submit(&name->work);
    if (result < 0)
        move_name(name, ASKING, FREE);
    else
        append_look_up(name, look_up);
    return result;
}

static bool
is_address_of_family(const char *host, int family)
{
    struct sockaddr_storage address;

    return *host != '\0' && strcmp(host, SXE_IP_ADDR_ANY) != 0 &&
           sxe__address_parse(&address, host, 0) == 0 &&
           (family == AF_UNSPEC || family == address.ss_family);
}

SXE_RETURN
sxe_resolve(struct sxe_resolve *look_up, const char *host, int family)
{
    struct sxe__name *name;

    if (CONTEXT->names == NULL)
        return -EINVAL;
    if (look_up->name != NULL)
        return -EBUSY;
    if (strlen(host) > SXE_RESOLVE_HOST_MAX)
        return -ENAMETOOLONG;
    if (is_address_of_family(host, family)) {
        look_up->result.error = 0;
        look_up->result.number = 1;
        snprintf(look_up->result.ip[0], SXE_RESOLVE_IP_SIZE, "%s", host);
        return 1;
    }
    name = find_looked_up_name(host, family);
    if (name == NULL || (state_of_name(name) == KNOWN && name->until_ns <= sxe_time_turn_ns()))
        return ask_for(name, host, family, look_up);
    if (name->until_ns == 0) {
        append_look_up(name, look_up);
        return 0;
    }
    look_up->result = name->found;
    return 1;
}

SXE_RETURN
sxe_resolve_cancel(struct sxe_resolve *look_up)
{
    struct sxe__name *name = look_up->name;

    if (name == NULL)
        return -EALREADY;
    remove_look_up(look_up);
    if (name->first == NULL && sxe_work_cancel(&name->work) == 0)
        move_name(name, ASKING, FREE);
    return 0;
}

/* ---- Beginning and end ---- */

SXE_RETURN
sxe_resolve_register(void)
{
    struct sxe__context *c = CONTEXT;

    if (c->names != NULL)
        return 0;
    c->names = sxe_pool_new("names", SXE_RESOLVE_NAMES_MAX, sizeof(struct sxe__name), STATES,
                            SXE_POOL_OPTION_UNLOCKED);
    if (c->names == NULL)
        return -ENOMEM;
    c->names_group = sxe_work_register_group(SXE_RESOLVE_THREADS);
    return 0;
}

void
sxe__resolve_close(void)
{
    struct sxe__name *names = CONTEXT->names;

    if (names == NULL)
        return;
    /* Forget the look-ups that wait for a name: their done will not be called. */
    for (unsigned i = 0; i < SXE_RESOLVE_NAMES_MAX; i++)
        while (state_of_name(&names[i]) == ASKING && names[i].first != NULL)
            remove_look_up(names[i].first);
    sxe_pool_delete(names);
    CONTEXT->names = NULL;
}
