/* SPDX-License-Identifier: MIT
 *
 * A process that opens or closes a pool holds the opening lock, and so knows whether it is the only
 * user: then all locks belong to dead processes, and it checks the lists before it uses the pool.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-change-private.h"
#include "sxe-pool-opening-private.h"
#include "sxe-sized-internal.h"

/* ---- Making ---- */

static void
make_shared_lists(const struct sxe__pool_header *pool, uint64_t stamp)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    struct sxe__pool_node *nodes = sharing->nodes;

    for (uint32_t list = pool->number; list < sharing->end; list++)
        nodes[list] = (struct sxe__pool_node){
            .next = list,
            .prev = list,
            .state = (list - pool->number) / (sharing->shard_mask + 1),
        };
    for (uint32_t id = 0; id < pool->number; id++) {
        const uint32_t shard = sxe__pool_shard_of(sharing, id);
        const uint32_t list = sxe__pool_shard_list(pool, sharing, 0, shard);
        const uint32_t youngest = nodes[list].prev;

        nodes[id] = (struct sxe__pool_node){
            .next = list, .prev = youngest, .generation = 1, .stamp = stamp + id};
        nodes[youngest].next = id;
        nodes[list].prev = id;
        nodes[list].count++;
        sharing->shards[shard].last_stamp = stamp + id;
    }
}

/* Overcommitted memory would get some process killed later, when it is touched: refuse it now. */
static int
check_memory(const struct sxe__pool_opening *opening)
{
    struct sysinfo info = {0};
    const bool is_known = sysinfo(&info) == 0;
    const uint64_t size = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;

    if (!is_known || opening->head.file_size <= size)
        return 0;
    return sxe__pool_refuse(opening, ENOMEM,
                            "it takes %llu bytes of memory, and this machine has %llu",
                            (unsigned long long)opening->head.file_size, (unsigned long long)size);
}

/* Make a pool in memory, or in a file that holds none. */
static int
make_pool(struct sxe__pool_opening *opening)
{
    int result = opening->spec.file == NULL ? check_memory(opening) : 0;

    if (result < 0)
        return result;
    if (getrandom(opening->head.identity, sizeof(opening->head.identity), 0) < 0)
        return sxe__pool_refuse_errno(opening, "get random bytes");
    sxe__pool_head_seal(&opening->head);
    if (opening->fd != -1)
        result = sxe__pool_file_fill(opening);
    if (result == 0)
        result = sxe__pool_map(opening);
    if (result == 0)
        result = sxe__pool_file_mark(opening);
    if (result == 0) {
        sxe__pool_head_write(opening);
        make_shared_lists(opening->pool, sxe_time_turn_ns() - opening->namespace_ns);
    }
    return result;
}

/* ---- The boot ---- */

static int
read_boot(const struct sxe__pool_opening *opening, uint8_t boot[16])
{
    char text[36] = "";
    unsigned digits = 0;
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd == -1 ? -1 : read(fd, text, sizeof(text));

    if (length < 0)
        sxe__pool_refuse_errno(opening, "read /proc/sys/kernel/random/boot_id");
    const int error = errno;
    if (fd != -1)
        close(fd);
    memset(boot, 0, 16);
    for (ssize_t i = 0; i < length && digits < 32; i++) {
        if (text[i] == '-')
            continue;
        const int digit = text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10;
        boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | (digit & 15));
        digits++;
    }
    return length < 0 ? -error : 0;
}

/* ---- The first user: check what earlier users left ---- */

/* Complete the changes of dead processes. False: the pool is damaged, because an intent is
 * impossible; that intent stays. */
static bool
complete_all_shards(const struct sxe__pool_header *pool)
{
    for (uint32_t shard = 0; shard <= pool->sharing->shard_mask; shard++)
        if (!sxe__pool_complete(pool, pool->sharing, shard))
            return false;
    return true;
}

/* Free the locks and slots of dead processes. */
static void
bury_dead(const struct sxe__pool_sharing *sharing)
{
    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        sharing->shards[shard].intent.stamp = 0;
        sharing->shards[shard].lock = 0;
    }
    sharing->head->timeouts = 0;
    sharing->head->watching = 0;
    for (uint32_t slot = 0; slot < SXE_POOL_SLOTS; slot++) {
        sharing->head->slots[slot].process = 0;
        sharing->head->slots[slot].watched = 0;
    }
}

static int
check_all_shards(const struct sxe__pool_header *pool, char *why)
{
    int result = 0;

    for (uint32_t shard = 0; shard <= pool->sharing->shard_mask && result == 0; shard++)
        result = sxe__pool_check_shard(pool, shard, why);
    return result;
}

/* Say why parts of the file may be older than other parts, so that the lists may be wrong. NULL:
 * there is no such reason. */
static const char *
why_stale(const struct sxe__pool_opening *opening, bool same_boot, uint64_t disk)
{
    const struct sxe__pool_head *head = opening->pool->sharing->head;

    if (opening->is_restored)
        return "its head was damaged, and is that of the copy at the end of the file";
    if (head->closed != SXE__POOL_IN_USE)
        return NULL;
    if (!same_boot)
        return "the machine stopped while it was in use, so parts of it may be older than others";
    if (disk != 0 && head->disk != 0 && disk != head->disk)
        return "its disk was detached while it was in use, so parts of it may be older than others";
    return NULL;
}

/* Complete the changes of dead processes, then check all lists. If the file changed while it was
 * closed, nothing is completed, and the check only makes `why` more exact. Returns whether the pool
 * is whole. */
static bool
complete_and_check(const struct sxe__pool_header *pool, char why[SXE_POOL_WHY_SIZE])
{
    const char *changed = sxe__pool_what_changed(pool);

    if (changed == NULL && !complete_all_shards(pool)) {
        snprintf(why, SXE_POOL_WHY_SIZE, "a lock's owner left what no program can have written");
        return false;
    }
    if (check_all_shards(pool, why) != 0)
        return false;
    if (changed != NULL)
        snprintf(why, SXE_POOL_WHY_SIZE, "%s", changed);
    return changed == NULL;
}

/* Rebuild the lists, as the spec asks for repair; `why` says what is damaged. */
static void
repair_pool(struct sxe__pool_opening *opening, bool same_boot, const char *why)
{
    struct sxe__pool_sharing *sharing = opening->pool->sharing;

    sharing->head->closed = SXE__POOL_IN_USE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bury_dead(sharing);
    if (!same_boot || opening->is_restored)
        sharing->time_offset_ns = sxe__pool_carry_time_over(sharing, 0);
    const uint32_t freed = sxe__pool_rebuild(opening->pool);
    sharing->found = SXE_POOL_REBUILT;
    sxe__pool_refuse(opening, 0, "%.300s; its lists were rebuilt, %u %s", why, freed,
                     freed == 1 ? "element lost its state" : "elements lost their state");
}

/* Check the whole pool before it is used. A damaged pool is rebuilt if the spec asks for repair,
 * otherwise refused. */
static int
inspect_pool(struct sxe__pool_opening *opening, bool same_boot, uint64_t disk)
{
    struct sxe__pool_header *pool = opening->pool;
    struct sxe__pool_sharing *sharing = pool->sharing;
    const char *stale = why_stale(opening, same_boot, disk);
    char why[SXE_POOL_WHY_SIZE];

    sharing->found =
        sharing->head->closed != SXE__POOL_IN_USE ? SXE_POOL_CLOSED : SXE_POOL_COMPLETED;
    if (stale == NULL && complete_and_check(pool, why)) {
        bury_dead(sharing);
        sharing->time_offset_ns =
            same_boot ? sxe__pool_catch_up(sharing, sxe__pool_last_stamp(sharing))
                      : sxe__pool_carry_time_over(sharing, sxe__pool_last_stamp(sharing));
        return 0;
    }
    if (stale != NULL)
        snprintf(why, sizeof(why), "%s", stale);
    if ((opening->spec.options & SXE_POOL_OPTION_REPAIR) == 0)
        return sxe__pool_refuse(opening, EUCLEAN,
                                "%.300s: remove the file, or have it repaired "
                                "(SXE_POOL_OPTION_REPAIR; sxe-pool repair)",
                                why);
    repair_pool(opening, same_boot, why);
    return 0;
}

/* ---- Entering ---- */

/* Enter as the first user: note the kernel's boot, the disk and the times, and that the pool is in
 * use. */
static int
enter_as_first_user(struct sxe__pool_opening *opening)
{
    struct sxe__pool_sharing *sharing = opening->pool->sharing;
    struct sxe__pool_head *head = sharing->head;
    const uint64_t disk = opening->is_file ? sxe__pool_disk(opening->fd) : 0;
    uint8_t boot[sizeof(head->boot)];
    int result = read_boot(opening, boot);

    if (result == 0 && !opening->is_empty)
        result = inspect_pool(opening, memcmp(head->boot, boot, sizeof(boot)) == 0, disk);
    /* Allocate the blocks again: the file may be a copy with holes. */
    if (result == 0)
        result = sxe__pool_file_allocate(opening);
    if (result < 0)
        return result;
    /* Mark the pool in use first: the checksum of a closed pool covers the fields below. */
    SXE__POOL_PUT_LAST(head->closed, SXE__POOL_IN_USE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(head->boot, boot, sizeof(boot));
    head->disk = disk;
    head->time_offset_ns = sharing->time_offset_ns + opening->namespace_ns;
    head->wall_offset_ns = sxe__pool_wall_ns() - (sxe_time_ns() + sharing->time_offset_ns);
    head->damaged = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(head->magic, SXE__POOL_FILE_MAGIC, sizeof(head->magic));
    if (!sxe__pool_copy_is_whole(sharing))
        sxe__pool_copy_write(sharing);
    return msync(head, sharing->head_size, MS_SYNC) == 0
               ? 0
               : sxe__pool_refuse_errno(opening, "write to the file");
}

/* Restore the head after a failed open, so that a closed pool stays closed: its checksum covers the
 * times and the slots. */
static void
leave_as_it_was(struct sxe__pool_head *head, const struct sxe__pool_head *was)
{
    const size_t first = offsetof(struct sxe__pool_head, boot);
    const size_t closed = offsetof(struct sxe__pool_head, closed);
    const size_t next = offsetof(struct sxe__pool_head, is_summed);

    memcpy((char *)head + first, (const char *)was + first, closed - first);
    memcpy((char *)head + next, (const char *)was + next, sizeof(*head) - next);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    head->closed = was->closed;
}

static int
join_pool(struct sxe__pool_opening *opening)
{
    struct sxe__pool_sharing *sharing = opening->pool->sharing;

    sharing->found = SXE_POOL_JOINED;
    if (sharing->head->damaged == 0)
        return 0;
    return sxe__pool_refuse(opening, EUCLEAN,
                            "it is damaged, and in use: close it in every program, then have it "
                            "repaired (SXE_POOL_OPTION_REPAIR; sxe-pool repair)");
}

static int
become_user(const struct sxe__pool_opening *opening)
{
    struct sxe__pool_sharing *sharing = opening->pool->sharing;
    int result = sxe__pool_slot_claim(sharing);

    if (result == -EUSERS)
        return sxe__pool_refuse(opening, EUSERS,
                                "%u processes use it, which is all that can: close it in one",
                                SXE_POOL_SLOTS);
    if (result == 0)
        result = sxe__pool_slot_remember(sharing);
    errno = -result;
    return result == 0 ? 0 : sxe__pool_refuse_errno(opening, "become a user of it");
}

/* Open or make the pool in a file whose opening lock is held. 0 or -errno. */
static int
open_locked(struct sxe__pool_opening *opening)
{
    const int others = sxe__pool_others(opening->fd);

    if (others < 0) {
        errno = -others;
        return sxe__pool_refuse_errno(opening, "see who uses it");
    }
    opening->has_others = others > 0;
    opening->namespace_ns = sxe__pool_namespace_ns();
    int result = sxe__pool_head_read(opening);
    if (result == 0 && opening->is_empty && (opening->spec.number == 0 || others > 0))
        return sxe__pool_refuse(opening, EMEDIUMTYPE,
                                "no pool is in the file: open it with the numbers of one, when "
                                "nobody uses it");
    if (result == 0)
        result = opening->is_empty ? make_pool(opening) : sxe__pool_map(opening);
    if (result < 0)
        return result;
    struct sxe__pool_head *head = opening->pool->sharing->head;
    const struct sxe__pool_head was = *head;
    opening->pool->sharing->time_offset_ns = head->time_offset_ns - opening->namespace_ns;
    result = others > 0 ? join_pool(opening) : enter_as_first_user(opening);
    if (result == 0)
        result = become_user(opening);
    if (result < 0 && others == 0 && opening->pool->sharing->found != SXE_POOL_REBUILT)
        leave_as_it_was(head, &was);
    return result;
}

static int
lock_file(struct sxe__pool_opening *opening)
{
    const int result = sxe__pool_opening_lock(opening->fd);

    if (result == -EAGAIN) {
        /* Another process holds the lock and uses the file: do not remove it, even if this call
         * made it. */
        opening->is_made = false;
        return sxe__pool_refuse(opening, EAGAIN,
                                "another process has been opening or closing it for a second: try "
                                "again");
    }
    errno = -result;
    return result == 0 ? 0 : sxe__pool_refuse_errno(opening, "lock the file");
}

/* Use the open file opening->fd. 0; -errno; 1: the file was removed or replaced meanwhile. */
static int
open_existing_pool(struct sxe__pool_opening *opening)
{
    int result = sxe__pool_file_check(opening);

    if (result == 0)
        result = lock_file(opening);
    if (result == 0)
        result = sxe__pool_file_is_gone(opening);
    if (result == 0)
        result = open_locked(opening);
    if (result == 0) {
        sxe__pool_opening_unlock(opening->fd);
        return 0;
    }
    if (opening->pool != NULL)
        sxe__pool_unmap(opening->pool);
    if (result < 0)
        sxe__pool_file_undo(opening);
    close(opening->fd);
    return result;
}

static int
open_pool_file(struct sxe__pool_opening *opening)
{
    int result = 1;

    sxe_hold_standard_descriptors();
    for (unsigned tries = 0; result > 0 && tries < SXE__POOL_OPEN_TRIES; tries++) {
        result = sxe__pool_file_open(opening);
        if (result == 0)
            result = open_existing_pool(opening);
    }
    return result <= 0 ? result
                       : sxe__pool_refuse(opening, EAGAIN,
                                          "the file is removed as often as it is made: see who "
                                          "does that");
}

static void *
array_of(const struct sxe__pool_opening *opening, int result)
{
    if (result == 0) {
        if (opening->why != NULL && opening->pool->sharing->found != SXE_POOL_REBUILT)
            opening->why[0] = '\0';
        return opening->pool + 1;
    }
    errno = -result;
    return NULL;
}

/* Copy the program's spec, and plan the head. `what` is set for a pool of a descriptor, which has
 * no other file. 0 or -errno. */
static int
take_spec(struct sxe__pool_opening *opening, const SXE_POOL_SPEC *given, size_t size)
{
    SXE_POOL_SPEC *spec = &opening->spec;
    const int result = sxe__sized_take(spec, sizeof(*spec), given, size, "sxe_pool_open");

    if (opening->what == NULL)
        opening->what = spec->name == NULL ? "without a name" : spec->name;
    else
        spec->file = opening->what;
    return result < 0 ? sxe__pool_refuse(opening, E2BIG, "%s", SXE__SIZED_NEWER)
                      : sxe__pool_head_plan(opening);
}

void *
sxe_pool_open_sized(const SXE_POOL_SPEC *given, size_t size, char *why)
{
    struct sxe__pool_opening opening = {.why = why, .fd = -1};
    const SXE_POOL_SPEC *spec = &opening.spec;
    int result = take_spec(&opening, given, size);

    if (result == 0 && spec->number == 0 && spec->file == NULL)
        result = sxe__pool_refuse(&opening, EINVAL, "it has no elements, and there is no file");
    /* No fork until the fork handler knows the descriptor: a child would inherit it unnoticed. */
    sxe__pool_fork_hold();
    if (result == 0)
        result = (spec->options & SXE_POOL_OPTION_LOCKED) != 0 ? make_pool(&opening)
                                                               : open_pool_file(&opening);
    sxe__pool_fork_allow();
    return array_of(&opening, result);
}

void *
sxe_pool_open_fd_sized(int fd, const SXE_POOL_SPEC *given, size_t size, char *why)
{
    char what[sizeof("in descriptor -2147483648")];
    struct sxe__pool_opening opening = {.why = why, .what = what};

    snprintf(what, sizeof(what), "in descriptor %d", fd);
    int result = take_spec(&opening, given, size);
    if (result < 0)
        return array_of(&opening, result);
    sxe_hold_standard_descriptors();
    /* Locks belong to an open file description: take one that no other process shares. */
    sxe__pool_fork_hold();
    opening.fd = sxe__pool_open_anew(fd);
    result = opening.fd == -1 ? sxe__pool_refuse_errno(&opening, "open it again by /proc")
                              : open_existing_pool(&opening);
    sxe__pool_fork_allow();
    return array_of(&opening, result);
}

/* ---- Closing ---- */

/* The last user closes: write the whole pool to the disk, then the mark that it is closed. */
static void
close_last_user(struct sxe__pool_header *pool)
{
    struct sxe__pool_sharing *sharing = pool->sharing;
    struct sxe__pool_head *head = sharing->head;
    const size_t own_size = (size_t)((uintptr_t)(pool + 1) - (uintptr_t)sharing);

    head->wall_offset_ns = sxe__pool_wall_ns() - (sxe_time_ns() + sharing->time_offset_ns);
    /* Complete the changes of dead processes first: the checksum would not cover them if they were
     * made later. */
    head->is_summed = sharing->is_summed && complete_all_shards(pool) ? SXE__POOL_CLOSED_MARK : 0;
    if (head->is_summed != 0) {
        bury_dead(sharing);
        head->sum = sxe__pool_sum_of(pool);
    }
    if (msync((char *)sharing + own_size, sharing->size - own_size, MS_SYNC) == 0 &&
        msync(head, sharing->head_size, MS_SYNC) == 0) {
        head->closed = SXE__POOL_CLOSED_MARK;
        if (msync(head, sharing->head_size, MS_SYNC) == 0)
            return;
        head->closed = SXE__POOL_IN_USE;
    }
    SXE_WARN("pool %s: cannot write its file to the disk: %s", pool->name, strerror(errno));
}

/* A process that cannot take the opening lock leaves as if it were killed, which does no harm. */
static void
leave_pool(struct sxe__pool_header *pool)
{
    struct sxe__pool_sharing *sharing = pool->sharing;

    sxe__pool_slot_forget(sharing);
    if (sharing->token == 0 || sxe__pool_opening_lock(sharing->fd) != 0)
        return;
    sxe__pool_slot_release(sharing);
    if (sxe__pool_others(sharing->fd) == 0)
        close_last_user(pool);
}

void
sxe__pool_close(struct sxe__pool_header *pool)
{
    struct sxe__pool_sharing *sharing = pool->sharing;
    const int fd = sharing->fd;

    sxe__pool_local_remove(pool + 1);
    if (sharing->watch_fd != -1)
        close(sharing->watch_fd);
    sxe__pool_fork_hold();
    if (sharing->survives)
        leave_pool(pool);
    sxe__pool_unmap(pool);
    if (fd != -1)
        close(fd);
    sxe__pool_fork_allow();
}

/* ---- Properties of a pool ---- */

/* Do not give out the descriptor with the locks: a process that received it would keep the locks
 * after the death of this process. */
int
sxe_pool_get_fd(const void *array)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    return sharing == NULL ? -1 : sharing->lent_fd;
}

SXE_POOL_FOUND
sxe_pool_get_found(const void *array)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    return sharing == NULL ? SXE_POOL_CREATED : sharing->found;
}

unsigned
sxe_pool_get_states(const void *array)
{
    return sxe__pool_header(array)->states;
}

size_t
sxe_pool_get_element_size(const void *array)
{
    return sxe__pool_header(array)->element_size;
}

unsigned
sxe_pool_get_shards(const void *array)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    return sharing == NULL ? 1 : sharing->shard_mask + 1;
}

const char *
sxe_pool_get_fields(const void *array)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    return sharing == NULL ? "" : ((const struct sxe__pool_own *)sharing)->fields;
}

void *
sxe_pool_get_extra(const void *array, size_t *size)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    *size = sharing == NULL ? 0 : sharing->extra_size;
    return sharing == NULL ? NULL : sharing->extra;
}

SXE_TIME
sxe_pool_get_now(const void *array)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    return sxe_time_turn_ns() + (sharing == NULL ? 0 : sharing->time_offset_ns);
}
