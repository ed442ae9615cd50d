/* SPDX-License-Identifier: MIT
 *
 * This thread's records of its pools: the pointers that belong to a pool, such as its callback.
 * They cannot be in the block, because they mean nothing to another process that maps it. The list
 * of records is searched when a pool is made or deleted, and for messages, never by a state change.
 * Names of pools and states, and the level of log lines, stand here, because all other files need
 * them and this one calls none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-pool-sharing-private.h"

struct sxe_log_control sxe__pool_log = SXE_LOG_CONTROL_INIT("sxe-pool");

_Thread_local struct sxe__pool_local *sxe__pool_locals;

const char *
sxe_pool_get_name(const void *array)
{
    return sxe__pool_header(array)->name;
}

/* The pointer in the list that points to a pool's record; or the list's last pointer, which is
 * NULL. */
static struct sxe__pool_local **
find_link(const void *array)
{
    struct sxe__pool_local **link = &sxe__pool_locals;

    while (*link != NULL && (*link)->array != array)
        link = &(*link)->next;
    return link;
}

struct sxe__pool_local *
sxe__pool_local_find(const void *array)
{
    return *find_link(array);
}

struct sxe__pool_local *
sxe__pool_local_add(void *array)
{
    struct sxe__pool_local *local =
        calloc(1, sizeof(*local) + sxe__pool_header(array)->states * sizeof(local->timeout_ns[0]));

    if (local != NULL) {
        local->array = array;
        *find_link(array) = local;
    }
    return local;
}

void
sxe__pool_local_remove(const void *array)
{
    struct sxe__pool_local **link = find_link(array);
    struct sxe__pool_local *local = *link;

    if (local == NULL)
        return;
    SXE_ASSERT(!local->checking, "pool %s deleted from its own on_timeout",
               sxe_pool_get_name(array));
    *link = local->next;
    free(local);
}

void
sxe_pool_each(void (*each)(void *user, const void *array), void *user)
{
    for (const struct sxe__pool_local *local = sxe__pool_locals; local != NULL; local = local->next)
        each(user, local->array);
}

int
sxe_pool_set_state_to_string(void *array, const char *(*state_to_string)(unsigned))
{
    struct sxe__pool_local *local = sxe__pool_local_find(sxe__pool_header(array) + 1);

    if (local == NULL && state_to_string == NULL)
        return 0;
    if (local == NULL && (local = sxe__pool_local_add(array)) == NULL)
        return -ENOMEM;
    local->state_to_string = state_to_string;
    if (state_to_string == NULL && local->on_timeout == NULL)
        sxe__pool_local_remove(array);
    return 0;
}

/* Find a state's name among the names of a shared pool's states, each of which ends with a 0. */
static const char *
find_state_name(const char *names, unsigned state)
{
    for (; state > 0; state--)
        names += strlen(names) + 1;
    return names;
}

const char *
sxe_pool_state_to_string(const void *array, unsigned state)
{
    static _Thread_local char texts[4][sizeof("4294967295")];
    static _Thread_local unsigned turn;
    const struct sxe__pool_local *local = sxe__pool_local_find(array);
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    if (local != NULL && local->state_to_string != NULL && state < pool->states)
        return local->state_to_string(state);
    if (pool->sharing != NULL && pool->sharing->state_names != NULL && state < pool->states)
        return find_state_name(pool->sharing->state_names, state);
    char *text = texts[turn++ % 4];
    snprintf(text, sizeof(texts[0]), "%u", state);
    return text;
}
