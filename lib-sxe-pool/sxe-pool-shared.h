/* SPDX-License-Identifier: MIT
 *
 * What: pools that threads, or unrelated processes, share; that stay in a file; and that a kill -9
 * at any instruction cannot break. All calls of sxe-pool.h work on them as on a pool of one thread.
 *
 * Place: part of lib-sxe-pool. A program with one thread and no file does not need it.
 *
 * Shape: shared memory holds no pointers. The values that a process trusts are in its own page, in
 * front of the array where sxe-pool.h expects them:
 *
 *     the process's own page          the file, memfd or anonymous memory that is shared
 *     [ where things are | header ]   [ T array[number] | node[...] | extra ]
 *                                     [ head: shape, checksum | slots | shards: lock, intent ]
 *
 * Elements are divided among shards (1 unless asked for): a change locks one shard, and only one,
 * because an element never leaves its shard. Before a process changes links it writes the new
 * values into the shard (the intent). A process that finds the lock held by a dead one takes it
 * over and completes the intent. A lock is one compare-and-swap; only when the spin is over does a
 * process ask whether the owner lives: each process holds a byte of the file locked (fcntl, open
 * file description), and the kernel releases it when the process dies, in whatever namespace.
 *
 * Differences from a pool of one thread:
 *   - No call waits longer for a lock than a bounded spin, some 50 us, unless sxe_pool_set_wait
 *     says how long it may: after that it returns SXE_POOL_LOCK_NOT_TAKEN, and nothing was changed.
 *     Calls that return a negative errno return -EAGAIN instead. Opening and closing wait for
 *     other processes that open or close, and for the disk.
 *   - If shared memory holds values that the library cannot have written, calls return
 *     SXE_POOL_DAMAGED; every index is checked against the pool's size before use.
 *   - With SXE_POOL_OPTION_SHARED a wrong old_state is SXE_POOL_INCORRECT_STATE, not the end of the
 *     program: another process may have been first.
 *   - With several shards the oldest element of a state is that of one shard. A thread takes
 *     SXE_POOL_TAKES elements from its own shard, and then one from the next of the other shards.
 *     So the oldest element of all is taken after at most SXE_POOL_TAKES * shards more takes by any
 *     one thread that finds no shard locked. sxe_pool_take_exact is exact at a higher price.
 *   - Counts and states are read without a lock, and may have changed when the caller gets them.
 *
 * Limits: 128 processes, 64 shards, states and shards multiplied below 2^32 - 4 - number. A file
 * must be local, and /proc mounted. Truncating the file ends its users by SIGBUS, as with any
 * mapped file (memory without a file is sealed). A process that is stopped (SIGSTOP) in a change
 * holds its shard until it goes on. A child made by fork is a process of its own; one made by a
 * bare clone() is not: it must not use the pool, nor outlive its parent without exec. A process
 * that closes descriptors it has not opened (a daemon's closefrom) looks dead to other processes.
 *
 * Example:
 *     char why[SXE_POOL_WHY_SIZE];
 *     SXE_POOL_SPEC spec = {.name = "jobs", .number = 1000, .element_size = sizeof(struct job),
 *                           .states = STATES, .state_names = "FREE READY BUSY",
 *                           .file = "/var/lib/app/jobs.pool"};
 *     struct job *jobs = sxe_pool_open(&spec, why);
 *     if (jobs == NULL)
 *         fprintf(stderr, "%s\n", why);
 */
#ifndef SXE_POOL_SHARED_H
#define SXE_POOL_SHARED_H

#include <stdbool.h>

#include "sxe-pool.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_POOL_OPTION_LOCKED 1u /* the pool is shared by the threads of this process */
#define SXE_POOL_OPTION_SHARED 4u /* the pool is shared by processes; a file implies that */
#define SXE_POOL_OPTION_REPAIR 8u /* rebuild a pool that sxe_pool_open would refuse as damaged */

/* VERIFIED: compare checksums, UNVERIFIED: do not. The checksum of a file is compared when the file
 * is opened after all users had closed it, that of an entry when a dict reads the entry. Without
 * either option files are verified and memory is not. */
#define SXE_POOL_OPTION_VERIFIED   16u
#define SXE_POOL_OPTION_UNVERIFIED 32u

/* another thread or process holds the lock: try again later */
#define SXE_POOL_LOCK_NOT_TAKEN (SXE_NONE - 2)
#define SXE_POOL_DAMAGED        (SXE_NONE - 3) /* shared memory holds impossible values */

/* the element was changed since the lease began: see Leases */
#define SXE_POOL_LEASE_LOST (SXE_NONE - 4)

#define SXE_POOL_SHARDS_MAX 64u
#define SXE_POOL_SLOTS      128u /* how many processes may use a pool at a time */
#define SXE_POOL_TAKES      64u
#define SXE_POOL_WAIT_MAX   60.0 /* how many seconds a call may wait at most */
#define SXE_POOL_WHY_SIZE   512u
#define SXE_POOL_FIELDS_MAX 511u
#define SXE_POOL_NAMES_MAX  255u

/* ---- Opening ---- */

/* The pool to open or make. With a number of 0 it must exist: its file says what it is, and here
 * only name (for messages), options and file count. */
typedef struct sxe_pool_spec {
    const char *name;        /* 1 to 31 bytes */
    unsigned number;         /* how many elements the pool has; 0: as many as its file says */
    size_t element_size;     /* bytes of an element */
    unsigned states;         /* how many states; elements begin in state 0 */
    unsigned options;        /* SXE_POOL_OPTION_LOCKED or _SHARED (0 is _SHARED), _REPAIR */
    unsigned shards;         /* how many shards: a power of 2, at most number; 0: 1 */
    const char *file;        /* a path, or a name without '/' in /dev/shm; NULL: memory */
    const char *state_names; /* "FREE READY BUSY", all different; NULL: numbers */
    const char *fields;      /* "u64 hits, char[24] name": for tools and Lua; NULL: bytes */
    size_t extra_size;       /* bytes after the nodes for the program's own use, zeroed */
} SXE_POOL_SPEC;

/* How sxe_pool_open found the pool. */
typedef enum sxe_pool_found {
    SXE_POOL_CREATED,   /* the pool did not exist, and the call made it */
    SXE_POOL_JOINED,    /* other processes or threads are using the pool */
    SXE_POOL_CLOSED,    /* all users had closed the pool */
    SXE_POOL_COMPLETED, /* all users were killed; the changes that they began are complete */
    SXE_POOL_REBUILT    /* the pool was damaged; SXE_POOL_OPTION_REPAIR rebuilt the lists */
} SXE_POOL_FOUND;

/* Open a shared pool, or make it if there is none. The file must be this user's; it is made with
 * mode 0600 less the umask (a user who may read it can hold its locks, too); symbolic links are not
 * followed. With LOCKED there is no file, and no process but this one. Returns the array, aligned
 * to a page; NULL with errno and a sentence in why, which may be NULL: what is wrong, where, and
 * what to do. After success why is "", or says which damage was repaired.
 *   EINVAL   the numbers, names, fields or options are impossible
 *   EMEDIUMTYPE  no pool, or one of another version or byte order; truncated; checksum wrong
 *   EEXIST   a pool of another shape: why says which part differs
 *   EUCLEAN  damaged, or in use when the machine stopped: see SXE_POOL_OPTION_REPAIR
 *   EPERM    the file is another user's, or others may write to it
 *   EAGAIN   another process has been opening or closing it for a second, and one more for each 64
 *            MB that the file has, up to a minute
 *   EUSERS   128 processes use it
 *   EFBIG    its file would be larger than this process may write (RLIMIT_FSIZE)
 *   ENOMEM   it has no file, and takes more memory than the machine has
 *   ENOSPC   its file would be larger than what its file system has left
 *   ENOENT   number is 0 and there is no file
 *   and the errors of open, fstat, posix_fallocate, mmap and fcntl.
 * The caller ends the use with sxe_pool_delete, which leaves the file where it is. */
SXE_PUBLIC SXE_MUST_USE void *sxe_pool_open_sized(const SXE_POOL_SPEC *spec, size_t size,
                                                  char *why);
static inline SXE_MUST_USE void *
sxe_pool_open(const SXE_POOL_SPEC *spec_, char *why_)
{
    return sxe_pool_open_sized(spec_, sizeof(*spec_), why_);
}

/* Like sxe_pool_open, for an open file: inherited, or received over a unix socket. The caller keeps
 * the descriptor, and may close it at once. spec->file is ignored; the spec may be NULL. */
SXE_PUBLIC SXE_MUST_USE void *sxe_pool_open_fd_sized(int fd, const SXE_POOL_SPEC *spec, size_t size,
                                                     char *why);
static inline SXE_MUST_USE void *
sxe_pool_open_fd(int fd_, const SXE_POOL_SPEC *spec_, char *why_)
{
    return sxe_pool_open_fd_sized(fd_, spec_, sizeof(*spec_), why_);
}

/* A descriptor of the pool, to be passed to another process. The pool owns it. -1: the pool is
 * LOCKED, or of one thread. */
SXE_PUBLIC int sxe_pool_get_fd(const void *array);
/* Whether opening made the pool, or found it, and in which condition. */
SXE_PUBLIC SXE_POOL_FOUND sxe_pool_get_found(const void *array);
SXE_PUBLIC unsigned sxe_pool_get_states(const void *array);
SXE_PUBLIC size_t sxe_pool_get_element_size(const void *array);
SXE_PUBLIC unsigned sxe_pool_get_shards(const void *array);
/* the fields of the spec; "": none were given */
SXE_PUBLIC const char *sxe_pool_get_fields(const void *array);
/* the extra bytes; NULL: there are none */
SXE_PUBLIC void *sxe_pool_get_extra(const void *array, size_t *size);

/* The pool's time now, in the unit of sxe_pool_get_time: monotonic nanoseconds, which for a file
 * go on over a reboot as the wall clock did. */
SXE_PUBLIC SXE_TIME sxe_pool_get_now(const void *array);

/* How long each call of this process on this pool may wait for a lock, in seconds from 0 to
 * SXE_POOL_WAIT_MAX. A waiting call sleeps, at most 1 ms at a time, holds no lock, and returns
 * SXE_POOL_LOCK_NOT_TAKEN only when that time is over. With 0, the default, a call only spins for
 * some 50 us, which suits a program with a loop. Set it before other threads use the pool. No
 * effect on a pool of one thread. 0; -EINVAL: the time is out of range. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_set_wait(void *array, double seconds);

/* Write all that processes changed before this call to the disk (msync), and wait for the disk; no
 * lock is held, and others go on. The pool stays in use: after a power cut it is refused until a
 * repair, which recovers the parts that did not change after the last sync. 0; -EINVAL: the pool
 * has no file; -EIO and other errors of msync: nothing is promised. In /dev/shm it returns 0, but
 * the file ends with the machine. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_sync(void *array);

/* ---- States ---- */

/* Like sxe_pool_take, but it takes the oldest element of all shards, by their stamps. */
SXE_PUBLIC unsigned sxe_pool_take_exact(void *array, unsigned old_state, unsigned new_state);

/* The next two calls move many elements under one lock, which costs less for each element. They
 * work on pools of one thread, too. A call moves at most SXE_POOL_MANY elements.
 *
 * Move the oldest elements of a state to another state, up to max of them, and write their ids to
 * ids, the oldest first. The two states must differ: a call could otherwise return an element
 * twice. Returns how many; 0: there are none; SXE_POOL_LOCK_NOT_TAKEN or SXE_POOL_DAMAGED: none was
 * moved. With several shards, all elements of a call are of one shard. */
#define SXE_POOL_MANY 64u
SXE_PUBLIC unsigned sxe_pool_take_many(void *array, unsigned old_state, unsigned new_state,
                                       unsigned *ids, unsigned max);

/* Move the elements of ids, in that order, from old_state to new_state; consecutive ids of one
 * shard are moved under one lock. Stops at the first element that cannot be moved. Returns how many
 * were moved; if the first one failed: SXE_POOL_LOCK_NOT_TAKEN, SXE_POOL_INCORRECT_STATE or
 * SXE_POOL_DAMAGED. */
SXE_PUBLIC unsigned sxe_pool_move_many(void *array, const unsigned *ids, unsigned number,
                                       unsigned old_state, unsigned new_state);

/* ---- Leases: changes that are made only while nobody else has changed the element ---- Worker A
 * takes a job and stalls, and a timeout gives the job to worker B. When A goes on, it would end B's
 * job: A's id and handle are still valid. A lease prevents this. It holds the stamp of the change
 * by which it began; each later change by any process gives the element another stamp, which is
 * never used again. The calls below compare stamps under the lock of the change, and do nothing if
 * the lease is lost. That costs one load more than the calls without a lease. A lease is plain data
 * of its owner: copy it, or forget it. It is lost when any call without the lease moves or touches
 * the element. Pools of one thread have leases, too. */

typedef struct sxe_pool_lease {
    unsigned id;
    SXE_TIME stamp; /* the stamp of the change by which the lease began; 0: the lease is lost */
} SXE_POOL_LEASE;

/* Like sxe_pool_take and sxe_pool_take_exact, and fill in the lease. Returns an id; or
 * SXE_POOL_NO_INDEX, SXE_POOL_LOCK_NOT_TAKEN or SXE_POOL_DAMAGED: then the lease counts as lost.
 * contents (NULL: none) is a whole element, which is written under the same lock: a process that
 * sees the new state sees the contents. If this process is killed in between, the element stays in
 * old_state, and is torn. */
SXE_PUBLIC unsigned sxe_pool_lease_oldest(void *array, unsigned old_state, unsigned new_state,
                                          const void *contents, SXE_POOL_LEASE *lease);
SXE_PUBLIC unsigned sxe_pool_lease_exact_oldest(void *array, unsigned old_state, unsigned new_state,
                                                const void *contents, SXE_POOL_LEASE *lease);

/* Like sxe_pool_lease_oldest, for the element lease->id, which the caller sets. Returns
 * SXE_POOL_LOCK_TAKEN; SXE_POOL_INCORRECT_STATE: the element is not in old_state;
 * SXE_POOL_LOCK_NOT_TAKEN; or SXE_POOL_DAMAGED. */
SXE_PUBLIC unsigned sxe_pool_lease_indexed(void *array, unsigned old_state, unsigned new_state,
                                           const void *contents, SXE_POOL_LEASE *lease);

/* Move the element to new_state, and write contents (NULL: none). Like the next two calls, it
 * returns SXE_POOL_LOCK_TAKEN, and the lease stays valid; or nothing was done: SXE_POOL_LEASE_LOST;
 * SXE_POOL_LOCK_NOT_TAKEN, try again later; SXE_POOL_DAMAGED. */
SXE_PUBLIC unsigned sxe_pool_lease_move(void *array, SXE_POOL_LEASE *lease, unsigned new_state,
                                        const void *contents);
/* Touch the element: a timeout counts from now. */
SXE_PUBLIC unsigned sxe_pool_lease_renew(void *array, SXE_POOL_LEASE *lease);
/* Like sxe_pool_write_part, under the lock of the element's shard. */
SXE_PUBLIC unsigned sxe_pool_lease_write(void *array, const SXE_POOL_LEASE *lease, size_t offset,
                                         size_t size, const void *value);

/* Whether the lease is held now. By the time the caller has the answer, the lease may be lost. */
SXE_PUBLIC bool sxe_pool_lease_is_held(const void *array, const SXE_POOL_LEASE *lease);

/* In on_timeout: a lease of the due element, with which a change fails if another process has taken
 * the element since. Anywhere else: a lost lease. */
SXE_PUBLIC void sxe_pool_lease_due(const void *array, unsigned id, SXE_POOL_LEASE *lease);

/* ---- Contents: no reader sees half of what is being written ----
 * There must be one writer, which the element's state ensures; readers may be many and lock
 * nothing. A writer that is killed in between leaves the element torn: reads return -EBUSY until it
 * is written again. Then write the whole element: a write of only a part makes the rest readable as
 * it is, too. */

/* Copy the whole element out, or write it. sxe_pool_read_element returns 0, or -EBUSY if a writer
 * was at the element for as long as the call tried. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_read_element(const void *array, unsigned id, void *copy);
SXE_PUBLIC void sxe_pool_write_element(void *array, unsigned id, const void *value);

/* Like sxe_pool_read_element and sxe_pool_write_element, for a part: offset and size in bytes. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_read_part(const void *array, unsigned id, size_t offset,
                                               size_t size, void *copy);
SXE_PUBLIC void sxe_pool_write_part(void *array, unsigned id, size_t offset, size_t size,
                                    const void *value);

/* Add to a u64 of the element at that offset, a multiple of 8: one atomic addition, which needs no
 * state and does not wait for writers; a write over it at the same time undoes it. Returns the sum.
 */
SXE_PUBLIC uint64_t sxe_pool_add_u64(void *array, unsigned id, size_t offset, uint64_t addend);

/* Whether the element's last writer was killed during the write. Only the process that may write
 * the element can tell: for others a write may be in progress. */
SXE_PUBLIC bool sxe_pool_is_torn(const void *array, unsigned id);

/* ---- Notification ----
 * A process that waits for elements in a state has a descriptor to put into its loop. It becomes
 * readable when an element came into a state that is watched; of the processes that watch, one is
 * woken for each element. A wake-up ends the watch.
 *
 * A process that is killed after it was woken and before it took the element, or between putting an
 * element there and waking another, wakes nobody. So also check once a second, or as often as such
 * an element may have to wait. Processes wake each other within one network namespace. From state
 * 63 on, states are watched together. */

/* Get a descriptor, the same one for all states; or -errno: EINVAL for a pool of one thread,
 * EAGAIN, and errors of socket and bind. The pool owns the descriptor. In a child of fork it is
 * closed: the child must stop its watcher before ev_loop_fork, or in an ev_fork, and get another
 * one; otherwise libev aborts. */
SXE_PUBLIC int sxe_pool_get_watch_fd(void *array);

/* Watch a state. 1: an element is in it now, and the state is not watched; 0: it is watched; or
 * -errno, and the state is not watched: EAGAIN (a lock is taken: try again later), EUCLEAN
 * (damaged), or as above. */
SXE_PUBLIC int sxe_pool_watch(void *array, unsigned state);

/* Stop watching a state; if this process was woken for it, another is woken instead. */
SXE_PUBLIC void sxe_pool_unwatch(void *array, unsigned state);

/* Clear the descriptor: call this when it is readable, then look for elements, then watch again. */
SXE_PUBLIC void sxe_pool_watch_read(void *array);

/* ---- Timeouts ---- */

/* Set timeouts for an open pool (see sxe_pool_new_with_timeouts), in this thread. One process at a
 * time runs on_timeout for the pool: the one that calls sxe_pool_check_timeouts first. Each process
 * may have its own timeouts. Another process may move the element that timed out first, or hold its
 * lock: then on_timeout changes nothing, if it uses sxe_pool_lease_due, and a check 1 ms later
 * tries the element again. Because other processes may put elements into the states,
 * sxe_pool_get_next_timeout is at most a second ahead: so an element of a dead process may time out
 * up to a second late. 0, -EINVAL or -ENOMEM. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_set_timeouts(void *array, const double *timeouts,
                                                  SXE_POOL_EVENT_TIMEOUT on_timeout, void *user);

/* ---- Looking in ---- */

/* Check that every element is on exactly the list of its state, in time order, that the counts are
 * right, and that no dead process holds a lock. Locks one shard after the other. 0; -EUCLEAN with a
 * sentence in why; -EAGAIN. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_check(void *array, char *why);

/* Like sxe_pool_check, but calls is_over before each shard, and every 65,536 of its elements. When
 * is_over returns true, the check ends with -ECANCELED, and holds no lock. */
SXE_PUBLIC SXE_MUST_USE int sxe_pool_check_until(void *array, char *why, bool (*is_over)(void));

/* The process id of the user in a slot, in that process's own namespace. 0: the slot is not in
 * use. */
SXE_PUBLIC int sxe_pool_get_user(const void *array, unsigned slot);

#ifdef __cplusplus
}
#endif

#endif
