/* SPDX-License-Identifier: MIT
 *
 * Every list is in time order and one timeout holds for all of a state, so who is due stands at the
 * old end: no timer per element, no heap, nothing to cancel.
 */
#include <errno.h>

#include "sxe-pool-private.h"

/* NaN is none. */
static bool
is_timeout(double seconds)
{
    return seconds >= 0.0;
}

/* Rounded up, so that nothing is early. What is longer than the clock can count never comes. */
static uint64_t
to_ns(double seconds)
{
    const double ns = seconds * (double)SXE_NS_PER_SECOND;

    if (ns >= (double)INT64_MAX)
        return 0;
    const uint64_t whole_ns = (uint64_t)ns;
    return (double)whole_ns < ns ? whole_ns + 1 : whole_ns;
}

void *
sxe_pool_new_with_timeouts(const char *name, unsigned number, size_t element_size, unsigned states,
                           const double *timeouts, SXE_POOL_EVENT_TIMEOUT on_timeout, void *user)
{
    bool possible = timeouts != NULL && on_timeout != NULL;

    for (unsigned state = 0; possible && state < states; state++)
        possible = is_timeout(timeouts[state]);
    if (!possible) {
        errno = EINVAL;
        return NULL;
    }
    void *array = sxe_pool_new(name, number, element_size, states, SXE_POOL_OPTION_UNLOCKED);
    if (array == NULL)
        return NULL;
    struct sxe__pool_local *local = sxe__pool_local_add(array, states);
    if (local == NULL) {
        sxe_pool_delete(array);
        errno = ENOMEM;
        return NULL;
    }
    local->on_timeout = on_timeout;
    local->user = user;
    for (unsigned state = 0; state < states; state++)
        local->timeout_ns[state] = to_ns(timeouts[state]);
    return array;
}

void
sxe_pool_set_state_timeout(void *array, unsigned state, double timeout_seconds)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    struct sxe__pool_local *local = sxe__pool_local_find(array);

    sxe__pool_check_state(pool, state);
    SXE_ASSERT(is_timeout(timeout_seconds), "pool %s: the timeout of state %s cannot be %f s",
               pool->name, sxe_pool_state_to_string(array, state), timeout_seconds);
    SXE_ASSERT(local != NULL && local->on_timeout != NULL,
               "pool %s was not made with timeouts in this thread", pool->name);
    local->timeout_ns[state] = to_ns(timeout_seconds);
}

/* When the oldest element of a state is due; 0 if there is none or no timeout. */
static uint64_t
due_ns(const struct sxe__pool_local *local, unsigned state)
{
    const uint64_t timeout_ns = local->timeout_ns[state];

    if (timeout_ns == 0)
        return 0;
    const uint64_t stamp = sxe_pool_get_oldest_element_time(local->array, state);
    return stamp == 0 ? 0 : stamp + timeout_ns;
}

/* Ends because an element that is moved or touched gets a stamp of now or later, and so is not due,
 * in whatever timed state it lands. */
static void
check_state(const struct sxe__pool_local *local, unsigned state, uint64_t now_ns)
{
    void *array = local->array;

    for (uint64_t due = due_ns(local, state); due != 0 && due <= now_ns;
         due = due_ns(local, state)) {
        const unsigned id = sxe_pool_get_oldest_element_index(array, state);
        const uint64_t stamp = sxe_pool_get_element_time_by_index(array, id);

        local->on_timeout(array, id, local->user);
        SXE_ASSERT_ID(id, sxe_pool_get_element_time_by_index(array, id) != stamp,
                      "pool %s: on_timeout neither moved nor touched element %u in state %s",
                      sxe_pool_get_name(array), id, sxe_pool_state_to_string(array, state));
    }
}

void
sxe_pool_check_timeouts(void)
{
    const uint64_t now_ns = sxe_time_turn_ns();

    for (struct sxe__pool_local *local = sxe__pool_locals; local != NULL; local = local->next) {
        if (local->on_timeout == NULL)
            continue;
        const struct sxe__pool_header *pool = sxe__pool_header(local->array);

        SXE_ASSERT(!local->checking, "timeouts checked from the on_timeout of pool %s", pool->name);
        local->checking = true;
        for (unsigned state = 0; state < pool->states; state++)
            check_state(local, state, now_ns);
        local->checking = false;
    }
}

SXE_TIME
sxe_pool_get_next_timeout(void)
{
    SXE_TIME first = 0;

    for (const struct sxe__pool_local *local = sxe__pool_locals; local != NULL;
         local = local->next) {
        const unsigned states =
            local->on_timeout == NULL ? 0 : sxe__pool_header(local->array)->states;

        for (unsigned state = 0; state < states; state++) {
            const uint64_t due = due_ns(local, state);

            if (due != 0 && (first == 0 || due < first))
                first = due;
        }
    }
    return first;
}
