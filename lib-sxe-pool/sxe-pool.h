/* SPDX-License-Identifier: MIT
 *
 * What: an array whose elements have states, in time order. An element is always on exactly one
 * list, the list of its state, oldest first; allocation, queues, timeouts and LRU are all "take the
 * oldest element of that state".
 *
 * Place: used by lib-sxe for connections, by programs for anything that has a life. Uses sxe-log
 * and the turn's clock (sxe-time.h). One thread at a time.
 *
 * Shape: one block without any pointer in it, so that it may be copied or mapped elsewhere:
 *
 *     [ header | T array[number] | node[number] | node[states] ]
 *                ^ the caller's T *             32 bytes each: next prev state generation stamp
 *
 *     state FREE -> 3 <-> 4 <-> 7          the first is the oldest, the last the youngest
 *     state BUSY -> 0 <-> 2                array[2].member is plain C
 *
 * Invariants: every element is on the list of its state; stamps grow strictly along each list (a
 * stamp is the monotonic time in ns of the last move or touch, made unique in the pool by counting
 * on); ids are handed out in ascending order at first. State 0 is where elements start and, by
 * convention, where they are free: entering it from another state begins a new generation, which is
 * how a stale handle is recognised.
 *
 * The caller names the state it believes an element is in; if that is wrong, or an index or state
 * is out of range, the program stops in every build with a message that says pool, id, wanted and
 * actual state.
 *
 * Limits: up to 2^32-2 elements and states together; every operation is O(1) but the walker's
 * re-find (see below) and the timeouts, O(states of the thread's timeout pools + elements due).
 *
 * Example:
 *     enum {FREE, BUSY, STATES};
 *     struct job *jobs =
 *         sxe_pool_new("jobs", 100, sizeof(*jobs), STATES, SXE_POOL_OPTION_UNLOCKED);
 *     unsigned id = sxe_pool_take(jobs, FREE, BUSY);
 *     if (id != SXE_POOL_NO_INDEX) {
 *         jobs[id].count = 1;
 *         sxe_pool_move(jobs, id, BUSY, FREE);
 *     }
 */
#ifndef SXE_POOL_H
#define SXE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t SXE_TIME; /* monotonic nanoseconds, like sxe_time_turn_ns */

#define SXE_POOL_NO_INDEX SXE_NONE /* a result: no element is in that state */
/* sxe_pool_try_move: the element is in another state */
#define SXE_POOL_INCORRECT_STATE (SXE_NONE - 1)
#define SXE_POOL_LOCK_TAKEN      0u /* success of the calls that return a status */
#define SXE_POOL_NAME_MAX        31

/* A pool for one thread; every element is timed (the 2010 option TIMED is always on). */
#define SXE_POOL_OPTION_UNLOCKED 0u
#define SXE_POOL_OPTION_TIMED    2u

/* ---- Construction ---- */

/* Bytes of a pool's block, a multiple of 64; 0 when the numbers are impossible: 0 elements, size or
 * states, or too many. */
SXE_PUBLIC size_t sxe_pool_size(unsigned number, size_t element_size, unsigned states);

/* Make a pool in base, sxe_pool_size() bytes aligned to 64. Element memory is left as it is;
 * elements begin in state 0, id 0 the oldest. The name is cut to 31 bytes. Returns the array,
 * aligned to 64; NULL with errno EINVAL when base is not aligned, or the numbers or options are
 * impossible. The caller owns base. */
SXE_PUBLIC SXE_MUST_USE void *sxe_pool_construct(void *base, const char *name, unsigned number,
                                                 size_t element_size, unsigned states,
                                                 unsigned options);

/* Like sxe_pool_construct, in zeroed memory that this function allocates. NULL with errno EINVAL or
 * ENOMEM. The caller deletes the pool. */
SXE_PUBLIC SXE_MUST_USE void *sxe_pool_new(const char *name, unsigned number, size_t element_size,
                                           unsigned states, unsigned options);

/* This function is called with an element that was in its state for that state's timeout. It must
 * move or touch the element, and may do anything with other elements and pools. */
typedef void (*SXE_POOL_EVENT_TIMEOUT)(void *array, unsigned id, void *user);

/* Make a pool whose states have timeouts in seconds (0: none; the values are copied), see
 * sxe_pool_check_timeouts. It belongs to the thread that makes it. Also EINVAL: a timeout is
 * negative or no number, or there are no timeouts or no on_timeout. */
SXE_PUBLIC SXE_MUST_USE void *
sxe_pool_new_with_timeouts(const char *name, unsigned number, size_t element_size, unsigned states,
                           const double *timeouts, SXE_POOL_EVENT_TIMEOUT on_timeout, void *user);

/* Free a pool made by new (not a copy of one), in the thread that made it, but not from its own
 * on_timeout. NULL is allowed. */
SXE_PUBLIC void sxe_pool_delete(void *array);

/* Get the array of a block; NULL with errno EINVAL: the block holds no pool of this version. */
SXE_PUBLIC SXE_MUST_USE void *sxe_pool_from_base(void *base);
SXE_PUBLIC void *sxe_pool_to_base(void *array); /* get the block of an array */
SXE_PUBLIC const char *sxe_pool_get_name(const void *array);
SXE_PUBLIC unsigned sxe_pool_get_number(const void *array); /* how many elements the pool has */

/* Call `each` for every pool of this thread that has timeouts or names of states, in the order in
 * which these were given: for a program that shows its pools. The function must not make or delete
 * a pool. */
SXE_PUBLIC void sxe_pool_each(void (*each)(void *user, const void *array), void *user);

/* Name the states in messages: fn(state) returns a text that stays valid. If the function is NULL,
 * messages have numbers again. Only for this process and thread. 0 or -ENOMEM. */
SXE_PUBLIC int sxe_pool_set_state_to_string(void *array, const char *(*state_to_string)(unsigned));

/* The name of a state, "BUSY", or its number, "2", if it has no name. The text is valid until the
 * fourth call from now in this thread. */
SXE_PUBLIC const char *sxe_pool_state_to_string(const void *array, unsigned state);

/* ---- States ---- */

/* How many elements are in a state; and the state of an element. */
SXE_PUBLIC unsigned sxe_pool_get_count(const void *array, unsigned state);
SXE_PUBLIC unsigned sxe_pool_get_state(const void *array, unsigned id);

/* Move an element from old_state to the young end of new_state (which may be old_state). Stops the
 * program if the element is not in old_state. Returns SXE_POOL_LOCK_TAKEN. */
SXE_PUBLIC unsigned sxe_pool_move(void *array, unsigned id, unsigned old_state, unsigned new_state);

/* Like sxe_pool_move, but if the element is not in old_state nothing happens, *new_state becomes
 * the state it is in, and SXE_POOL_INCORRECT_STATE is returned. Otherwise id. */
SXE_PUBLIC SXE_MUST_USE unsigned sxe_pool_try_move(void *array, unsigned id, unsigned old_state,
                                                   unsigned *new_state);

/* Move the oldest element of old_state. Returns its id, or SXE_POOL_NO_INDEX. */
SXE_PUBLIC unsigned sxe_pool_take(void *array, unsigned old_state, unsigned new_state);

/* Make an element the youngest of its state. Returns SXE_POOL_LOCK_TAKEN. */
SXE_PUBLIC unsigned sxe_pool_touch(void *array, unsigned id);

/* The two ends of a state: an id, or SXE_POOL_NO_INDEX. The youngest is the element that was used
 * last. */
SXE_PUBLIC unsigned sxe_pool_get_oldest(const void *array, unsigned state);
SXE_PUBLIC unsigned sxe_pool_get_youngest(const void *array, unsigned state);

/* When the oldest element of a state came into it or was touched there; 0: the state has no
 * element. */
SXE_PUBLIC SXE_TIME sxe_pool_get_oldest_time(const void *array, unsigned state);
SXE_PUBLIC SXE_TIME sxe_pool_get_time(const void *array, unsigned id);

/* ---- Handles: ids that become invalid when their element returns to state 0 ---- */

/* The handle of an element: generation << 32 | id. Never 0. */
SXE_PUBLIC uint64_t sxe_pool_get_handle(const void *array, unsigned id);

/* The id of a handle's element. SXE_POOL_NO_INDEX: the element has come back to state 0 since
 * then, or never existed. (The number of such returns is counted up to 2^32 - 2, and then begins
 * again.) */
SXE_PUBLIC unsigned sxe_pool_handle_to_index(const void *array, uint64_t handle);

/* ---- Timeouts ----
 * Stamps and timeouts both use the time of the turn (sxe_time_turn_ns), so setting the wall clock
 * changes nothing. */

/* Call on_timeout for every element of this thread's timeout pools that is due: pool by pool as
 * they were made, state by state, oldest first. An element that came or was touched since the check
 * began waits for the next check. lib-sxe calls this from one timer of the loop; without it, call
 * it now and then, but not from on_timeout. */
SXE_PUBLIC void sxe_pool_check_timeouts(void);

/* When the next element of this thread's timeout pools is due (the time may be over already); 0:
 * none is. */
SXE_PUBLIC SXE_TIME sxe_pool_get_next_timeout(void);

/* Change the timeout of one state, also for the elements that are in it; 0 means none. The pool
 * must have been given timeouts in this thread. */
SXE_PUBLIC void sxe_pool_set_state_timeout(void *array, unsigned state, double timeout_seconds);

/* ---- Walking one state, oldest first ---- Elements may be moved, touched, added and removed
 * between steps: the walk meets each element at most once, meets every element that stayed, and
 * none that came after the walk began. If both the element last met and its successor moved, the
 * next step searches the list from its old end. A pool of several shards is walked shard by shard:
 * in each shard the walk begins when it comes there. */

typedef struct sxe_pool_walker {
    void *array;    /* private, all members */
    uint64_t limit; /* the youngest stamp when the walk began */
    uint64_t stamp; /* the stamp of the element last met */
    uint64_t next_stamp;
    unsigned state;
    unsigned id;    /* the element last met; at first the node of the list itself */
    unsigned next;  /* the successor of element `id` when the walk met that element */
    unsigned shard; /* in a shared pool: the shard that is being walked */
} SXE_POOL_WALKER;

/* Begin a walk at the state's oldest element. The walker has nothing to free: it may be left at any
 * step, or constructed again. */
SXE_PUBLIC void sxe_pool_walker_construct(SXE_POOL_WALKER *walker, void *array, unsigned state);

/* Go to the next element. Returns its id, or SXE_POOL_NO_INDEX at the end (and again after it); in
 * a shared pool also SXE_POOL_LOCK_NOT_TAKEN: step again later. */
SXE_PUBLIC unsigned sxe_pool_walker_step(SXE_POOL_WALKER *walker);

#ifdef __cplusplus
}
#endif

#ifndef SXE_POOL_NO_2010
#    include "sxe-pool-2010.h"
#endif

#endif
