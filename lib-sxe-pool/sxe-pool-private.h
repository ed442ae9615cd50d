/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of lib-sxe-pool share: the records of a thread, and the
 * checks. The structs of a pool's block are in sxe-pool-internal.h.
 * Place: included by lib-sxe-pool/sxe-pool*.c and by tests that look inside.
 *
 *     sxe-pool.c           construction, states, handles    knows only the block
 *     sxe-pool-walker.c    walking a state                  knows only the block
 *     sxe-pool-timeout.c   timeouts                         the block and the thread's records
 *     sxe-pool-lease.c     changes that are checked      the block
 *     sxe-pool-local.c     the thread's records             what is not in the block: pointers
 *
 * Shape: all of a block is reached from the array by offsets:
 *
 *     header    128 bytes, so that it ends where the array begins and both are aligned to 64
 *     array     number * element_size bytes
 *     nodes     at array + nodes_offset, aligned to 32: node[id] belongs to array[id], and
 *               node[number + state] is the list of that state, a node of its own circle:
 *
 *         list BUSY --next--> oldest --next--> youngest --next--> list BUSY
 *
 * so that no list is ever empty of nodes and neither linking nor unlinking has a special case.
 * A list's node holds what an element's does not need: the count in place of the generation, and
 * stamp 0, which is older than any element.
 */
#ifndef SXE_POOL_PRIVATE_H
#define SXE_POOL_PRIVATE_H

#define SXE_LOG_CONTROL sxe__pool_log

#include <stdbool.h>

#include "sxe-log.h"
#include "sxe-pool-internal.h"
#include "sxe-pool.h"

#define SXE__POOL_MAGIC     0x4c4f4f50u /* the bytes "POOL" */
#define SXE__POOL_VERSION   2u
#define SXE__POOL_ALIGNMENT 64u
#define SXE__POOL_BORROWED  UINT32_MAX

_Static_assert(sizeof(struct sxe__pool_header) % SXE__POOL_ALIGNMENT == 0, "arrays are aligned");

/* This thread's data about a pool, outside its block. */
struct sxe__pool_local {
    struct sxe__pool_local *next;
    void *array;
    const char *(*state_to_string)(unsigned);
    SXE_POOL_EVENT_TIMEOUT on_timeout; /* NULL: the record only has state_to_string */
    void *user;
    bool checking;      /* on_timeout may be running */
    uint32_t due;       /* the element for which on_timeout is called */
    uint64_t due_stamp; /* the stamp of `due`; 0: on_timeout is not being called */
    uint64_t again_ns;  /* in a shared pool: no check is due before this time of the turn's clock */
    uint64_t timeout_ns[]; /* indexed by state; 0: no timeout */
};

extern struct sxe_log_control sxe__pool_log;

/* ---- The calls on shared pools (sxe-pool-shared.c) ----
 * All return what the public calls do; ids and states were checked. */

#define SXE__POOL_ANY_STATE UINT32_MAX

/* Move an element from old_state (ANY_STATE: whichever it is in) to the young end of *new_state
 * (ANY_STATE: its own). Returns id, or SXE_POOL_INCORRECT_STATE, _LOCK_NOT_TAKEN or _DAMAGED. */
unsigned sxe__pool_shared_set(const struct sxe__pool_header *pool, uint32_t id, uint32_t old_state,
                              uint32_t *new_state);

/* A change with conditions, and what it writes into the element under the same lock. */
struct sxe__pool_claim {
    uint32_t id;
    uint32_t old_state;   /* the state in which the element must be; ANY_STATE: any */
    uint32_t new_state;   /* ANY_STATE: the element's own state */
    bool stays;           /* the element is written and does not move */
    uint64_t stamp;       /* in: the stamp that the element must have, 0: any; out: this change's */
    const void *contents; /* what to write; NULL: the element keeps its contents */
    size_t offset;        /* where in the element the contents go, and their size */
    size_t size;
};

/* Make the change that a claim describes. LOCK_TAKEN, or why nothing was done: LEASE_LOST if the
 * element has another stamp. */
unsigned sxe__pool_shared_claim(const struct sxe__pool_header *pool, struct sxe__pool_claim *claim);

/* Like sxe__pool_shared_take, but the claim has the states, and gets id and stamp. */
unsigned sxe__pool_shared_lease(const struct sxe__pool_header *pool, struct sxe__pool_claim *claim);
unsigned sxe__pool_shared_lease_exact(const struct sxe__pool_header *pool,
                                      struct sxe__pool_claim *claim);

/* Move or touch an element: SXE_POOL_LOCK_TAKEN, or why it was not moved. */
unsigned sxe__pool_shared_move(const struct sxe__pool_header *pool, uint32_t id, uint32_t old_state,
                               uint32_t new_state);
unsigned sxe__pool_shared_touch(const struct sxe__pool_header *pool, uint32_t id);

unsigned sxe__pool_shared_take(const struct sxe__pool_header *pool, uint32_t old_state,
                               uint32_t new_state);
unsigned sxe__pool_shared_count(const struct sxe__pool_header *pool, uint32_t state);
unsigned sxe__pool_shared_end(const struct sxe__pool_header *pool, uint32_t state, bool youngest);
unsigned sxe__pool_shared_step(const struct sxe__pool_header *pool, SXE_POOL_WALKER *walker);

/* This thread's records, the oldest first. */
extern _Thread_local struct sxe__pool_local *sxe__pool_locals;

struct sxe__pool_local *sxe__pool_local_find(const void *array);

/* Add a new record, all 0, at the young end. NULL with errno ENOMEM. */
struct sxe__pool_local *sxe__pool_local_add(void *array);

/* Remove the record of that array, if there is one. Not allowed while its on_timeout runs. */
void sxe__pool_local_remove(const void *array);

/* ---- Reaching the parts ----
 * Like strchr, these take a const pointer and return one without const: callers with const only
 * read. */

static inline struct sxe__pool_header *
sxe__pool_header(const void *array)
{
    struct sxe__pool_header *pool = sxe__pool_of(array);

    SXE_ASSERT(pool->magic == SXE__POOL_MAGIC, "%p is not the array of a pool", array);
    return pool;
}

static inline struct sxe__pool_node *
sxe__pool_nodes(const struct sxe__pool_header *pool)
{
    return (struct sxe__pool_node *)((uintptr_t)(pool + 1) + pool->nodes_offset);
}

static inline unsigned
sxe__pool_list(const struct sxe__pool_header *pool, unsigned state)
{
    return pool->number + state;
}

/* ---- Checks, in every build ---- */

static inline void
sxe__pool_check_id(const struct sxe__pool_header *pool, unsigned id)
{
    SXE_ASSERT_ID(id, id < pool->number, "pool %s has no element %u, only %u", pool->name, id,
                  pool->number);
}

static inline void
sxe__pool_check_state(const struct sxe__pool_header *pool, unsigned state)
{
    SXE_ASSERT(state < pool->states, "pool %s has no state %u, only %u", pool->name, state,
               pool->states);
}

/* Stop the program: element `id` cannot go to a state that does not exist. Out of line, because the
 * arguments of the message would cost every caller registers. */
void sxe__pool_fail_new_state(const struct sxe__pool_header *pool, unsigned id, unsigned state);

static inline void
sxe__pool_check_new_state(const struct sxe__pool_header *pool, unsigned id, unsigned state)
{
    if (state >= pool->states)
        sxe__pool_fail_new_state(pool, id, state);
}

#endif
