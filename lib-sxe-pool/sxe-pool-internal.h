/* SPDX-License-Identifier: MIT
 *
 * What: the parts of a shared pool that lib-sxe-dict needs: a dict is a pool whose elements have
 * their own links, which change under the pool's locks and by its rules.
 * Place: the friend interface of lib-sxe-pool, for its own sources and for lib-sxe-dict; not
 * installed. sxe-pool-file-internal.h is its other half: the file of a pool. The -private headers
 * have what no other library uses.
 *
 * Shape: the header in front of the array, the nodes after it, and what a process keeps for itself:
 *
 *     struct sxe__pool_header    128 bytes in front of the array: numbers, sizes, name
 *       .sharing                 of this process: where the parts are, its token, its descriptors
 *         .nodes[id]             state, stamp and neighbours of an element
 *         .nodes[list]           of each state and shard: the two ends and the count
 *
 * Rules: every access to shared memory is one of SXE__POOL_GET, _PUT and their kind. Links change
 * only under the lock of their shard. A process may die at any of these accesses, and another
 * process may write anything, so a value that was read is checked against `sharing` before it is
 * used as an index.
 */
#ifndef SXE_POOL_INTERNAL_H
#define SXE_POOL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe-pool-shared.h"

/* Every access to shared memory is one of these macros. The model checker (test/model) replaces
 * them to switch processes, or to end one, at each access. STEP stands right before a locked
 * instruction. */
#ifndef SXE__POOL_GET
#    define SXE__POOL_STEP()            ((void)0)
#    define SXE__POOL_GET(place)        __atomic_load_n(&(place), __ATOMIC_RELAXED)
#    define SXE__POOL_PUT(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
/* Store a value that others see only after all earlier stores. */
#    define SXE__POOL_PUT_LAST(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#endif

/* Load a value, before all accesses that follow. */
#ifndef SXE__POOL_GET_FIRST
#    define SXE__POOL_GET_FIRST(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#endif

/* FENCE_LOADS: all earlier loads come before all later accesses. FENCE_STORES: all earlier accesses
 * come before all later stores. Neither is an instruction on x86. */
#ifndef SXE__POOL_FENCE_LOADS
#    define SXE__POOL_FENCE_LOADS()  __atomic_thread_fence(__ATOMIC_ACQUIRE)
#    define SXE__POOL_FENCE_STORES() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif

/* Processes share these words. The locks of libatomic belong to one process, and would guard
 * nothing. */
_Static_assert(__GCC_ATOMIC_INT_LOCK_FREE == 2, "32-bit atomics must need no lock");
_Static_assert(__GCC_ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must need no lock");

/* ---- The parts of a pool ---- */

struct sxe__pool_header {
    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint32_t number;
    uint32_t states;
    uint64_t element_size;
    uint64_t nodes_offset; /* distance from the array to node[0] */
    uint64_t last_stamp;   /* the youngest stamp in the pool; the next stamp is greater */
    uint32_t slack;        /* how many bytes of calloc's memory precede the block; or BORROWED */
    char name[SXE_POOL_NAME_MAX + 1];
    uint32_t reserved;
    /* NULL in a pool of one thread, because its block must not have pointers */
    struct sxe__pool_sharing *sharing;
    char filler[40];
};
_Static_assert(sizeof(struct sxe__pool_header) == 128, "the layout is that of version 2");

struct sxe__pool_node {
    uint32_t next; /* the next node towards the young end */
    uint32_t prev;
    uint32_t state;
    union {
        uint32_t generation; /* in the node of an element: begins at 1, and is never 0 */
        uint32_t count;      /* in the node of a list: how many elements it has */
    };
    uint64_t stamp;
    /* in the node of an element in shared memory: odd while the element is written */
    uint32_t sequence;
    uint32_t reserved; /* pads to 32 bytes, so that no node spans two cache lines */
};
_Static_assert(sizeof(struct sxe__pool_node) == 32, "the layout is that of version 2");

/* A process's own data about a shared pool, in private pages right before the array. */
struct sxe__pool_sharing {
    struct sxe__pool_head *head;
    struct sxe__pool_shard *shards;
    struct sxe__pool_node *nodes;
    void *extra;
    uint64_t extra_size;
    uint64_t time_offset_ns;
    uint64_t identity[2];
    size_t head_size; /* how many bytes are mapped at head */
    size_t size;      /* how many bytes are mapped, from this process's own page on */
    size_t copy_size; /* how many bytes the head's copy has, the last part of `size` */
    uint32_t end;     /* number + states * shards: every index is below it */
    uint32_t shard_mask;
    uint32_t shard_shift; /* element id is in shard (id >> shift) & mask */
    /* the token of this process in locks; 0: a child of fork that is not a user yet */
    uint32_t token;
    uint64_t wait_ns; /* for how long a call may wait for a lock; 0: only spin */
    bool survives;    /* the pool is shared by processes, so the owner of a lock may be dead */
    bool is_file;     /* the pool has a name, so its file may outlive all users */
    bool is_summed;   /* closing the file writes its checksum */
    bool verifies;    /* a dict in this pool compares the checksums of values that it reads */
    SXE_POOL_FOUND found;
    /* the descriptor with the file's locks; its open file description belongs to this process
     * alone */
    int fd;
    int lent_fd;  /* another descriptor, without locks: mapped, and returned by sxe_pool_get_fd */
    int watch_fd; /* the socket that wakes and is woken; -1: it does not exist yet */
    /* the token in watch_fd's address; 0: the socket has no address, and only sends */
    uint32_t watch_token;
    uint32_t woken;    /* the slot that was woken last: the next wake begins after it */
    char *state_names; /* the names of the states, each with a final 0; NULL: no names were given */
    struct sxe__pool_sharing *next; /* the next shared pool of this process, for its fork handler */
};

/* ---- Where things are ---- */

/* The header of an array that is known to be a pool's. Like strchr, this function takes a const
 * pointer and returns a pointer without const. */
static inline struct sxe__pool_header *
sxe__pool_of(const void *array)
{
    return (struct sxe__pool_header *)((uintptr_t)array - sizeof(struct sxe__pool_header));
}

static inline uint32_t
sxe__pool_shard_of(const struct sxe__pool_sharing *sharing, uint32_t id)
{
    return (id >> sharing->shard_shift) & sharing->shard_mask;
}

static inline uint32_t
sxe__pool_shard_list(const struct sxe__pool_header *pool, const struct sxe__pool_sharing *sharing,
                     uint32_t state, uint32_t shard)
{
    return pool->number + state * (sharing->shard_mask + 1) + shard;
}

/* ---- Locks ----
 * A section is what is done under a lock. Readers without the lock look at the lock word to learn
 * whether what they read was settled, so the order of these accesses matters on processors that
 * keep less of it than x86 (arm64):
 *
 *     section:  take the lock, FENCE_STORES | stores of the section | release the lock, PUT_LAST
 *     reader:   read words, FENCE_LOADS | GET_FIRST the lock: free | read other words
 *
 * Taking a lock acquires, which orders its load, not its store. FENCE_STORES orders the store: a
 * reader that read any store of the section finds the lock taken, or already released. If it finds
 * it released, GET_FIRST and PUT_LAST let it see the whole section in all that it reads later. */

/* Call this when the first attempt failed: it spins, and takes the lock over if its owner is dead.
 * 0; 1: taken over; -EAGAIN. */
int sxe__pool_lock_slowly(struct sxe__pool_sharing *sharing, uint32_t *lock);

/* Whether the process of a token is alive; true if that cannot be found out. */
bool sxe__pool_is_owner_alive(const struct sxe__pool_sharing *sharing, uint32_t token);

/* Take the lock if it is free. */
static inline bool
sxe__pool_lock_at_once(const struct sxe__pool_sharing *sharing, uint32_t *lock)
{
    const uint32_t token = __atomic_load_n(&sharing->token, __ATOMIC_RELAXED);
    uint32_t free_lock = 0;

    if (token == 0)
        return false;
    SXE__POOL_STEP();
    if (!__atomic_compare_exchange_n(lock, &free_lock, token, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    SXE__POOL_FENCE_STORES();
    return true;
}

/* Take a lock. 0; 1: taken over from a dead owner, whose change may be half done; -EAGAIN. */
static inline int
sxe__pool_lock(struct sxe__pool_sharing *sharing, uint32_t *lock)
{
    return sxe__pool_lock_at_once(sharing, lock) ? 0 : sxe__pool_lock_slowly(sharing, lock);
}

static inline void
sxe__pool_unlock(uint32_t *lock)
{
    SXE__POOL_PUT_LAST(*lock, 0);
}

/* ---- Waiting: what a call does that may wait, see sxe_pool_set_wait ----
 * Taking a lock never takes longer than its spin. A call that did not get a lock releases all its
 * locks, asks whether it may try again, and sleeps before it does:
 *
 *     struct sxe__pool_patience patience = {0};
 *     do
 *         result = attempt();
 *     while (result == SXE_POOL_LOCK_NOT_TAKEN && sxe__pool_wait(sharing, &patience)); */

struct sxe__pool_patience {
    uint64_t deadline_ns; /* when the call must end; 0: the call has not waited yet */
    uint64_t pause_ns;    /* how long the next sleep is */
};

/* Sleep, and return true; return false if the time is over. */
bool sxe__pool_wait(const struct sxe__pool_sharing *sharing, struct sxe__pool_patience *patience);

/* Like sxe__pool_wait, but does not sleep: for a try that failed but made progress. */
bool sxe__pool_may_go_on(const struct sxe__pool_sharing *sharing,
                         struct sxe__pool_patience *patience);

/* Sleep for 100 us. Between two slices a long call leaves the shard's lock free for up to
 * SXE__POOL_NAPS naps, so that a process that sleeps between its tries can take it. */
#define SXE__POOL_NAPS 12u
void sxe__pool_nap(void);

/* ---- A shard as a whole: what changes under its lock ---- */

/* Lock a shard, and complete the change that a dead owner had begun. LOCK_TAKEN; LOCK_NOT_TAKEN;
 * DAMAGED. sxe__pool_lock_shard_patiently may sleep for all the time that `patience` has left: do
 * not call it while another lock is held. */
unsigned sxe__pool_lock_shard(const struct sxe__pool_header *pool, uint32_t shard_index);
unsigned sxe__pool_lock_shard_patiently(const struct sxe__pool_header *pool, uint32_t shard_index,
                                        struct sxe__pool_patience *patience);
void sxe__pool_unlock_shard(const struct sxe__pool_header *pool, uint32_t shard_index);

/* Move an element, whatever its state, of a shard that the caller has locked. False: damaged, and
 * nothing was changed. */
bool sxe__pool_move_locked(const struct sxe__pool_header *pool, uint32_t id, uint32_t new_state);

/* Mark the pool as damaged, and log that the first time. Returns SXE_POOL_DAMAGED. */
unsigned sxe__pool_damaged(const struct sxe__pool_header *pool);

#endif
