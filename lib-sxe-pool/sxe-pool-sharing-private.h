/* SPDX-License-Identifier: MIT
 *
 * What: the parts of a shared pool, and the lock of a shard.
 * Place: included by the sources of shared pools and by lib-sxe-dict; not installed.
 *
 *     -change-private.h   a change under the lock, and its intent   what the model checker runs
 *     -shared.c           the calls of sxe-pool.h                   lock, change, unlock
 *     -batch.c            many elements under one lock              the same
 *     -lock.c             a lock that is not free at once           spin, ask, take over
 *     -slot.c             this process among the users              fcntl, fork
 *     -head.c             a file's head: made, read, refused        knows only bytes
 *     -sum.c              the sum of a file that is closed          knows only bytes
 *     -map.c              the memory of it all                      mmap, files
 *     -open.c             opening and closing                       all of the above, in order
 *     -check.c            every invariant; rebuilding the lists     under the locks
 *     -layout.c           the text of the fields, laid out as in C  knows only text
 *     -payload.c          elements without torn values              sequence numbers
 *     -watch.c            waking other processes                    datagrams
 *
 * Shape: the file, in bytes, all of it little-endian:
 *
 *     0               head       shape and checksum, written once; then what changes; slots
 *     shards_offset   shard[]    128 bytes each, two lines of cache that no other shard touches
 *     array_offset    array      a multiple of the page size; nodes and extra follow
 *     the last page   copy       of the head's fixed part: should the head be damaged
 *
 * Trust: another process may write anything anywhere. So what was checked when the pool was opened
 * is kept in this process's own page, and what is read from shared memory after that is copied
 * first, checked against that, and only then used as an index.
 */
#ifndef SXE_POOL_SHARING_H
#define SXE_POOL_SHARING_H

#include <stddef.h>

#include "sxe-pool-private.h"
#include "sxe-pool-shared.h"
#include "sxe-time-private.h"

/* Two words that stand together, as they are stored at once. */
typedef uint64_t __attribute__((may_alias)) sxe__pool_pair;

static inline sxe__pool_pair
sxe__pool_make_pair(uint32_t first, uint32_t second)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? first | (uint64_t)second << 32
                                                     : second | (uint64_t)first << 32;
}

static inline sxe__pool_pair *
sxe__pool_pair_at(uint32_t *first)
{
    return (sxe__pool_pair *)(void *)first;
}

#define SXE__POOL_IS_PAIR(type, first, second)                              \
    _Static_assert(offsetof(type, first) % 8 == 0 &&                        \
                       offsetof(type, second) == offsetof(type, first) + 4, \
                   "they are stored at once")

/* Every access to what is shared is one of these, so that the model checker (test/model) may put
 * its own in their place, which change processes there or end one. STEP stands right before a
 * locked instruction. */
#ifndef SXE__POOL_GET
#    define SXE__POOL_STEP()            ((void)0)
#    define SXE__POOL_GET(place)        __atomic_load_n(&(place), __ATOMIC_RELAXED)
#    define SXE__POOL_PUT(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)
/* The same, after everything before it. */
#    define SXE__POOL_PUT_LAST(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#endif

/* A load that comes before every access after it. */
#ifndef SXE__POOL_GET_FIRST
#    define SXE__POOL_GET_FIRST(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#endif

/* Loads before it come before all accesses after it; all accesses before it come before stores
 * after it. Neither is an instruction on x86. */
#ifndef SXE__POOL_FENCE_LOADS
#    define SXE__POOL_FENCE_LOADS()  __atomic_thread_fence(__ATOMIC_ACQUIRE)
#    define SXE__POOL_FENCE_STORES() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif

/* For values that no other process writes: the intent of a shard whose lock is held. */
#ifndef SXE__POOL_OWN
#    define SXE__POOL_OWN(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#endif

/* Two words by one store: half the way to memory, which the next lock waits for. */
#ifndef SXE__POOL_PUT_PAIR
#    define SXE__POOL_PUT_PAIR(first, second, value, next) \
        SXE__POOL_PUT(*sxe__pool_pair_at(&(first)), sxe__pool_make_pair((value), (next)))
#endif

/* The same, after everything before it. */
#ifndef SXE__POOL_PUT_PAIR_LAST
#    define SXE__POOL_PUT_PAIR_LAST(first, second, value, next) \
        SXE__POOL_PUT_LAST(*sxe__pool_pair_at(&(first)), sxe__pool_make_pair((value), (next)))
#endif

/* Processes share these words: an access that takes a lock of the C library, which each process has
 * for itself, would guard nothing. */
_Static_assert(__GCC_ATOMIC_INT_LOCK_FREE == 2, "32-bit atomics must need no lock");
_Static_assert(__GCC_ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must need no lock");

#define SXE__POOL_FILE_VERSION 3u
#define SXE__POOL_BYTE_ORDER   0x01020304u

/* The values of `closed`. No bit that flips makes one of these another. */
#define SXE__POOL_IN_USE        0u
#define SXE__POOL_CLOSED_BEFORE 1u          /* by an earlier release, whose sum covers less */
#define SXE__POOL_CLOSED_MARK   0x9d5ac3e6u /* an older library takes it for in use */

/* The change that a process is about to make to the links of a shard. All values are final, so
 * storing them twice, or from any point on, has the same result. */
struct sxe__pool_intent {
    uint32_t id;
    uint32_t prev; /* the neighbours that it leaves */
    uint32_t next;
    uint32_t tail; /* the youngest of the list that it goes to, without it */
    uint32_t old_state;
    uint32_t new_state;  /* if it is the old one, the next three mean nothing */
    uint32_t from_count; /* of the old state's list afterwards */
    uint32_t to_count;
    uint32_t generation;
    uint32_t reserved;
    uint64_t stamp; /* written last; it is begun and not done while this is above last_stamp */
};

SXE__POOL_IS_PAIR(struct sxe__pool_intent, id, prev);
SXE__POOL_IS_PAIR(struct sxe__pool_intent, next, tail);
SXE__POOL_IS_PAIR(struct sxe__pool_intent, old_state, new_state);
SXE__POOL_IS_PAIR(struct sxe__pool_intent, from_count, to_count);
SXE__POOL_IS_PAIR(struct sxe__pool_node, next, prev);
SXE__POOL_IS_PAIR(struct sxe__pool_node, state, generation);

/* All that a change writes here is in one line of cache. */
struct sxe__pool_shard {
    uint32_t lock; /* the owner's token; 0: free */
    uint32_t reserved;
    uint64_t last_stamp;
    struct sxe__pool_intent intent;
    uint8_t filler[64];
};
_Static_assert(sizeof(struct sxe__pool_shard) == 128, "the layout is that of file version 3");

/* A process that uses the pool. It holds byte SXE__POOL_SLOT_BYTE + its index of the file
 * locked. */
struct sxe__pool_slot {
    uint32_t generation; /* of the users of this slot: never 0 once used */
    uint32_t process;    /* for people; 0: closed */
    uint64_t watched;    /* a bit a state; the last one stands for all from 63 on */
};

#define SXE__POOL_SLOT_BYTE ((off_t)1 << 60)
#define SXE__POOL_OPEN_BYTE (SXE__POOL_SLOT_BYTE - 1) /* locked by who opens or closes */

struct sxe__pool_head {
    /* Written once, when the file is made, the magic last. */
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint32_t fixed_size; /* bytes that the checksum covers: up to `checksum` */
    uint32_t number;
    uint32_t states;
    uint32_t shards;
    uint64_t element_size;
    uint64_t shards_offset;
    uint64_t array_offset;
    uint64_t nodes_offset; /* from the array, as all below */
    uint64_t extra_offset;
    uint64_t extra_size;
    uint64_t file_size;
    uint64_t layout;    /* a hash of what a program must agree with: numbers, names, fields */
    uint32_t page_size; /* of the machine that made it: offsets in the file are its multiples */
    uint32_t reserved;
    uint8_t identity[16];
    char name[SXE_POOL_NAME_MAX + 1];
    char state_names[SXE_POOL_NAMES_MAX + 1];
    char fields[SXE_POOL_FIELDS_MAX + 1];
    uint64_t checksum;
    /* Fields that change; written under the lock of SXE__POOL_OPEN_BYTE except the last three. */
    uint8_t boot[16];        /* of the kernel under which it was opened last */
    uint64_t disk;           /* the kernel's number of the disk then; 0: not known */
    uint64_t time_offset_ns; /* the pool's time - the monotonic clock, wrapping */
    uint64_t wall_offset_ns; /* the wall clock - the pool's time, when it was opened last */
    uint64_t sum;            /* of all that sxe__pool_sum covers, when it was closed */
    uint32_t closed;         /* not SXE__POOL_IN_USE: by all, and written to the disk */
    uint32_t is_summed;      /* as `closed`: `sum` was written when it was closed; 0: it was not */
    uint32_t damaged;        /* 1: found so by a change */
    uint32_t timeouts;       /* the lock of who runs them */
    uint64_t watching;       /* a bit a state that may be watched, as in the slots */
    struct sxe__pool_slot slots[SXE_POOL_SLOTS];
};

/* A process's own data about the pool, in its page in front of the array's header; a pool of
 * threads has only this and the parts. */
struct sxe__pool_sharing {
    struct sxe__pool_head *head;
    struct sxe__pool_shard *shards;
    struct sxe__pool_node *nodes;
    void *extra;
    uint64_t extra_size;
    uint64_t time_offset_ns;
    uint64_t identity[2];
    size_t head_size; /* bytes mapped at head */
    size_t size;      /* bytes mapped from the own page on */
    size_t copy_size; /* of these, at the end: what the copy of the head takes */
    uint32_t end;     /* number + states * shards: no index is as large */
    uint32_t shard_mask;
    uint32_t shard_shift; /* element id is in shard (id >> shift) & mask */
    uint32_t token;       /* of this process in the locks; 0: a child of fork not yet there */
    uint64_t wait_ns;     /* how long a call may wait for a lock; 0: it only spins */
    bool survives;        /* between processes: owners may be dead */
    bool is_file;         /* it has a name, and may outlive the machine's memory */
    bool is_summed;       /* a file that gets a sum when it is closed */
    bool verifies;        /* a dict in it compares the sum of what it reads */
    SXE_POOL_FOUND found;
    int fd;                         /* with the locks: of this process alone */
    int lent_fd;                    /* without: what is mapped, and may be handed on */
    int watch_fd;                   /* -1: none yet */
    uint32_t watch_token;           /* that watch_fd is bound for; 0: it only sends */
    uint32_t woken;                 /* the slot that was woken last, to be fair */
    char *state_names;              /* each state's name in turn; NULL: none were given */
    struct sxe__pool_sharing *next; /* of this process, for fork */
};

/* ---- Where things are ---- */

static inline bool
sxe__pool_is_closed(const struct sxe__pool_head *head)
{
    return head->closed == SXE__POOL_CLOSED_MARK || head->closed == SXE__POOL_CLOSED_BEFORE;
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

/* The youngest stamp of all shards. */
static inline uint64_t
sxe__pool_last_stamp(const struct sxe__pool_sharing *sharing)
{
    uint64_t youngest = 0;

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        const uint64_t stamp = SXE__POOL_GET(sharing->shards[shard].last_stamp);
        youngest = stamp > youngest ? stamp : youngest;
    }
    return youngest;
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

/* Pause between two looks of a spin: some 20 to 40 ns for the other thread of this core. */
static inline void
sxe__pool_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" : : : "memory");
#endif
}

/* ---- Waiting: what a call does that may wait, see sxe_pool_set_wait ----
 * Locks themselves never wait longer than their spin. A call that failed has let go of all its
 * locks, asks whether it may try again, and sleeps before it does:
 *
 *     struct sxe__pool_patience patience = {0};
 *     do
 *         result = attempt();
 *     while (result == SXE_POOL_LOCK_NOT_TAKEN && sxe__pool_wait(sharing, &patience)); */

struct sxe__pool_patience {
    uint64_t deadline_ns; /* of the call; 0: it has not waited yet */
    uint64_t pause_ns;    /* the next sleep */
};

/* Sleep, and return true; false: the time is over. */
bool sxe__pool_wait(const struct sxe__pool_sharing *sharing, struct sxe__pool_patience *patience);

/* Like the function above, but without a sleep: the failed try made progress. */
bool sxe__pool_may_go_on(const struct sxe__pool_sharing *sharing,
                         struct sxe__pool_patience *patience);

/* When the first attempt failed: spin, then take the lock over from an owner that is dead. 0, 1
 * when taken over, -EAGAIN. */
int sxe__pool_lock_slowly(struct sxe__pool_sharing *sharing, uint32_t *lock);

/* Whether the process of a token is alive; true where that cannot be found out. */
bool sxe__pool_owner_lives(const struct sxe__pool_sharing *sharing, uint32_t token);

/* Become a user of the pool again: a child of fork is another process. False: not possible now. */
bool sxe__pool_attach_again(struct sxe__pool_sharing *sharing);

/* The first attempt. */
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

/* 0, 1 when taken over from the dead (what it guards may be half done), -EAGAIN. */
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

/* Whether a change of a shard was begun and is not done: a stamp is above all before it. */
static inline bool
sxe__pool_is_begun(const struct sxe__pool_shard *shard)
{
    return SXE__POOL_GET(shard->intent.stamp) > SXE__POOL_GET(shard->last_stamp);
}

/* ---- A shard as a whole: for sxe-pool-shared.c, sxe-pool-check.c and lib-sxe-dict ---- */

/* LOCK_TAKEN, and what a dead owner had begun is complete; LOCK_NOT_TAKEN; DAMAGED. The second one
 * waits, with all the patience of its call: not while another lock is held. */
unsigned sxe__pool_lock_shard(const struct sxe__pool_header *pool, uint32_t number);
unsigned sxe__pool_lock_shard_patiently(const struct sxe__pool_header *pool, uint32_t number,
                                        struct sxe__pool_patience *patience);

/* The same for a call that needs no other lock. */
unsigned sxe__pool_lock_shard_for_long(const struct sxe__pool_header *pool, uint32_t number);
void sxe__pool_unlock_shard(const struct sxe__pool_header *pool, uint32_t number);

/* Move an element of a shard whose lock is held, wherever it is. False: damaged, nothing done. */
bool sxe__pool_move_locked(const struct sxe__pool_header *pool, uint32_t id, uint32_t new_state);

/* Note that impossible values were found, log it the first time; SXE_POOL_DAMAGED. */
unsigned sxe__pool_damaged(const struct sxe__pool_header *pool);

/* sxe_pool_check for one shard, whose lock is held (sxe-pool-check.c). 0, or -EUCLEAN and why,
 * which may be NULL. */
int sxe__pool_check_shard(const struct sxe__pool_header *pool, uint32_t shard, char *why);

/* Make new lists of what each element says of its state and stamp, while no other process uses the
 * pool; those whose state is impossible go to state 0, and stamps are at most the pool's time now,
 * so time_offset_ns must be right before. Returns how many went to state 0. A death in it leaves
 * what sxe__pool_check_shard refuses, and what can be rebuilt. */
uint32_t sxe__pool_rebuild(const struct sxe__pool_header *pool);

/* Let go of a pool, and free this process's page (sxe-pool-open.c). */
void sxe__pool_close(struct sxe__pool_header *pool);

/* Wake one process that watches a state; called while some may (sxe-pool-watch.c). */
void sxe__pool_wake(const struct sxe__pool_header *pool, uint32_t state);

#endif
