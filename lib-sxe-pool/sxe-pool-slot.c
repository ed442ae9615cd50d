/* SPDX-License-Identifier: MIT
 *
 * Each user of a pool holds one byte of the pool's file locked, by a lock of an open file
 * description (F_OFD_SETLK). The kernel releases the lock when the last descriptor of that
 * description is closed, so at the latest when the process ends, however it ends and whatever its
 * process id is in other namespaces. That is why each opening has a description of its own, and why
 * a child of fork must not keep its parent's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-opening-private.h"

#define SLOT_MASK        (SXE_POOL_SLOTS - 1)
#define GENERATION_LIMIT (1u << (32 - SXE__POOL_SLOT_BITS))
/* bytes that a check, or a slow disk, handles in a second */
#define SIZE_PER_SECOND ((off_t)64 << 20)
#define SECONDS_MAX     60u

/* This process's shared pools, for its fork handler. */
static struct sxe__pool_sharing *sharings;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- Locks on bytes of the file ---- */

static int
lock_byte(int fd, off_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

static bool
is_lock_refused(int result)
{
    return result == -EAGAIN || result == -EACCES;
}

/* 1: another open file description has locked one of `number` bytes from `byte` on; 0: none; or
 * -errno. */
static int
is_range_locked(int fd, off_t byte, off_t number)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = number};

    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return -errno;
    return lock.l_type != F_UNLCK;
}

/* How long to wait for the opening lock: its holder may check the whole file (the first to open),
 * or write all of it to the disk (the last to close). */
static unsigned
seconds_for(int fd)
{
    struct stat status;

    if (fstat(fd, &status) != 0 || status.st_size < SIZE_PER_SECOND)
        return 1;
    return status.st_size / SIZE_PER_SECOND < SECONDS_MAX
               ? 1 + (unsigned)(status.st_size / SIZE_PER_SECOND)
               : SECONDS_MAX;
}

int
sxe__pool_opening_lock(int fd)
{
    const struct timespec pause = {.tv_nsec = (long)SXE_NS_PER_MS};
    int result = lock_byte(fd, SXE__POOL_OPEN_BYTE, F_WRLCK);

    for (unsigned tries = 0;
         is_lock_refused(result) && tries < SXE__POOL_OPEN_TRIES * seconds_for(fd); tries++) {
        nanosleep(&pause, NULL);
        result = lock_byte(fd, SXE__POOL_OPEN_BYTE, F_WRLCK);
    }
    return is_lock_refused(result) ? -EAGAIN : result;
}

void
sxe__pool_opening_unlock(int fd)
{
    lock_byte(fd, SXE__POOL_OPEN_BYTE, F_UNLCK);
}

int
sxe__pool_others(int fd)
{
    return is_range_locked(fd, SXE__POOL_SLOT_BYTE, SXE_POOL_SLOTS);
}

/* ---- Slots ---- */

static void
enter_slot(struct sxe__pool_sharing *sharing, uint32_t slot_index)
{
    struct sxe__pool_slot *slot = &sharing->head->slots[slot_index];
    const uint32_t next = (SXE__POOL_GET(slot->generation) + 1) & (GENERATION_LIMIT - 1);
    const uint32_t generation = next == 0 ? 1 : next;

    /* Mark the pool in use first: the checksum of a closed pool covers the slots. */
    if (SXE__POOL_GET(sharing->head->closed) != SXE__POOL_IN_USE) {
        SXE__POOL_PUT(sharing->head->closed, SXE__POOL_IN_USE);
        msync(sharing->head, sharing->head_size, MS_SYNC);
    }
    SXE__POOL_PUT(slot->watched, 0);
    SXE__POOL_PUT(slot->process, (uint32_t)getpid());
    SXE__POOL_PUT_LAST(slot->generation, generation);
    SXE__POOL_PUT_LAST(sharing->token, generation << SXE__POOL_SLOT_BITS | slot_index);
}

int
sxe__pool_slot_claim(struct sxe__pool_sharing *sharing)
{
    for (uint32_t slot_index = 0; slot_index < SXE_POOL_SLOTS; slot_index++) {
        const int result = lock_byte(sharing->fd, SXE__POOL_SLOT_BYTE + slot_index, F_WRLCK);

        if (result == 0)
            enter_slot(sharing, slot_index);
        if (!is_lock_refused(result))
            return result;
    }
    return -EUSERS;
}

void
sxe__pool_slot_release(struct sxe__pool_sharing *sharing)
{
    struct sxe__pool_slot *slot = &sharing->head->slots[sharing->token & SLOT_MASK];

    SXE__POOL_PUT(slot->watched, 0);
    SXE__POOL_PUT(slot->process, 0);
    lock_byte(sharing->fd, SXE__POOL_SLOT_BYTE + (sharing->token & SLOT_MASK), F_UNLCK);
    sharing->token = 0;
}

/* Compare with this process's own token first: F_OFD_GETLK does not report a lock of the caller's
 * own description, so the caller's byte looks free. */
bool
sxe__pool_is_owner_alive(const struct sxe__pool_sharing *sharing, uint32_t token)
{
    const uint32_t slot_index = token & SLOT_MASK;

    if (!sharing->survives || token == sharing->token)
        return true;
    if (SXE__POOL_GET(sharing->head->slots[slot_index].generation) != token >> SXE__POOL_SLOT_BITS)
        return false;
    return is_range_locked(sharing->fd, SXE__POOL_SLOT_BYTE + slot_index, 1) != 0;
}

int
sxe_pool_get_user(const void *array, unsigned slot)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    if (sharing == NULL || slot >= SXE_POOL_SLOTS)
        return 0;
    if (!sharing->survives)
        return slot == SXE__POOL_THREADS ? getpid() : 0;
    const struct sxe__pool_slot *user = &sharing->head->slots[slot];
    const uint32_t token = SXE__POOL_GET(user->generation) << SXE__POOL_SLOT_BITS | slot;
    return sxe__pool_is_owner_alive(sharing, token) ? (int)SXE__POOL_GET(user->process) : 0;
}

/* ---- Forks ---- */

/* Takes the opening lock: without it a process that opens the pool meanwhile could see no user, and
 * believe that it is alone. Waits neither for that lock nor for a thread that opens a pool. A
 * failure is logged once: this may be tried thousands of times a second. */
bool
sxe__pool_attach_again(struct sxe__pool_sharing *sharing)
{
    static bool is_said;

    if (pthread_mutex_trylock(&mutex) != 0)
        return false;
    bool is_user = sharing->token != 0;
    if (!is_user && sharing->fd != -1 &&
        lock_byte(sharing->fd, SXE__POOL_OPEN_BYTE, F_WRLCK) == 0) {
        const int result = sxe__pool_slot_claim(sharing);

        if (result < 0 && !is_said)
            SXE_WARN("a child of fork cannot be a user of the pool: %s", strerror(-result));
        is_said = result < 0;
        is_user = result == 0;
        sxe__pool_opening_unlock(sharing->fd);
    }
    pthread_mutex_unlock(&mutex);
    return is_user;
}

/* Runs in the child of fork. If it cannot get a description of its own it loses the pool: with the
 * parent's description it would keep the parent's locks, and a dead parent would look alive. */
static void
leave_parent(struct sxe__pool_sharing *sharing)
{
    const int fd = sxe__pool_open_anew(sharing->fd);

    if (fd == -1 || dup3(fd, sharing->fd, O_CLOEXEC) == -1) {
        close(sharing->fd);
        sharing->fd = -1;
    }
    if (fd != -1)
        close(fd);
    if (sharing->watch_fd != -1)
        close(sharing->watch_fd);
    sharing->watch_fd = -1;
    sharing->watch_token = 0;
    sharing->token = 0;
}

static void
before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void
after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void
after_fork_in_child(void)
{
    const int error = errno;

    for (struct sxe__pool_sharing *sharing = sharings; sharing != NULL; sharing = sharing->next)
        if (sharing->fd != -1)
            leave_parent(sharing);
    after_fork();
    errno = error;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error;

static void
ask_to_be_told(void)
{
    once_error = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void
sxe__pool_fork_hold(void)
{
    pthread_once(&once, ask_to_be_told);
    pthread_mutex_lock(&mutex);
}

void
sxe__pool_fork_allow(void)
{
    pthread_mutex_unlock(&mutex);
}

int
sxe__pool_slot_remember(struct sxe__pool_sharing *sharing)
{
    if (once_error == 0) {
        sharing->next = sharings;
        sharings = sharing;
    }
    return -once_error;
}

void
sxe__pool_slot_forget(struct sxe__pool_sharing *sharing)
{
    struct sxe__pool_sharing **link = &sharings;

    while (*link != sharing)
        link = &(*link)->next;
    *link = sharing->next;
}
