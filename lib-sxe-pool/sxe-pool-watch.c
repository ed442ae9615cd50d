/* SPDX-License-Identifier: MIT
 *
 * Waking another process. Each watcher has a datagram socket with an abstract name, made of the
 * pool's identity and the watcher's token, so that any user of the pool can address it.
 *
 * No wake is lost, and a change pays for that with one load and no fence, because the lock of the
 * element's shard orders the two sides:
 *
 *     watcher:  sets its bits -> locks each shard -> is anything in the state? -> unlocks
 *     changer:                   locks the shard  -> links the element -> unlocks -> any bits?
 *
 * One of the two has the shard's lock first. If it is the watcher, its bits were set before that
 * unlock, so the changer reads them after it. If it is the changer, the element is on its list when
 * the watcher looks.
 *
 * A watcher sets its bit in its slot, then in head->watching. A changer that finds no slot with the
 * bit clears it in head->watching. Then it looks at the slots again and wakes all that have the bit
 * now, because another changer that met the cleared bit woke nobody.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sxe-pool-sharing-private.h"

#define STATES_APART 63u /* states from this one on share one bit */
/* how many datagrams to read in one turn, because other programs may flood the socket */
#define DATAGRAMS_AT_ONCE 256u

static uint64_t
bit_of(uint32_t state)
{
    return UINT64_C(1) << (state < STATES_APART ? state : STATES_APART);
}

static struct sxe__pool_slot *
own_slot(const struct sxe__pool_sharing *sharing)
{
    return &sharing->head->slots[sharing->token % SXE_POOL_SLOTS];
}

/* ---- Sockets ---- */

/* Make the abstract address of a user: its path begins with a 0. Returns the address's length. */
static socklen_t
name_user(const struct sxe__pool_sharing *sharing, uint32_t token, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                                "sxe-pool-%016" PRIx64 "%016" PRIx64 "-%" PRIx32,
                                sharing->identity[0], sharing->identity[1], token);

    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Get the one socket of this process for the pool, which sends and receives; or -errno. */
static int
get_socket(struct sxe__pool_sharing *sharing)
{
    int fd = __atomic_load_n(&sharing->watch_fd, __ATOMIC_ACQUIRE);

    if (fd >= 0)
        return fd;
    const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -errno;
    return __atomic_compare_exchange_n(&sharing->watch_fd, &fd, made, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE)
               ? made
               : (close(made), fd); /* another thread has made the socket meanwhile */
}

int
sxe_pool_get_watch_fd(void *array)
{
    struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;
    struct sockaddr_un address;

    if (sharing == NULL)
        return -EINVAL;
    if (sharing->token == 0 && !sxe__pool_attach_again(sharing))
        return -EAGAIN;
    const int fd = get_socket(sharing);
    if (fd < 0 || SXE__POOL_GET(sharing->watch_token) == sharing->token)
        return fd;
    const socklen_t length = name_user(sharing, sharing->token, &address);
    /* EINVAL: another thread has just bound the socket. */
    if (bind(fd, (const struct sockaddr *)&address, length) != 0 && errno != EINVAL)
        return -errno;
    SXE__POOL_PUT(sharing->watch_token, sharing->token);
    return fd;
}

void
sxe_pool_watch_read(void *array)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;
    char byte;

    for (unsigned i = 0; sharing != NULL && i < DATAGRAMS_AT_ONCE; i++) {
        if (recv(sharing->watch_fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0)
            return;
    }
}

/* ---- Waking ---- */

/* Send from a new socket, whose own queue is empty. If that fails with EAGAIN, the receiver's queue
 * is full: it is awake. */
static bool
wake_by_another(const struct sockaddr_un *address, socklen_t length)
{
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool is_awake = sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                                 (const struct sockaddr *)address, length) >= 0 ||
                          errno == EAGAIN;

    if (fd >= 0)
        close(fd);
    return is_awake;
}

/* Whether the user of a slot is awake now, or will be. */
static bool
wake_user(const struct sxe__pool_sharing *sharing, int fd, uint32_t slot)
{
    const uint32_t generation = SXE__POOL_GET(sharing->head->slots[slot].generation);
    struct sockaddr_un address;
    const socklen_t length = name_user(sharing, generation * SXE_POOL_SLOTS + slot, &address);

    if (sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&address, length) >=
        0)
        return true;
    /* EAGAIN: the receiver's queue is full, or our socket's queue, with datagrams that others have
     * not read. After any other error the receiver is dead, or will look at the pool by itself when
     * its timeout is over. */
    return errno == EAGAIN && wake_by_another(&address, length);
}

/* Wake the next process that has the bit, or all that have it; a woken process must watch again. */
static bool
wake_users(struct sxe__pool_sharing *sharing, int fd, uint64_t bit, bool all)
{
    const uint32_t first = SXE__POOL_GET(sharing->woken) + 1;
    bool woken = false;

    for (uint32_t i = 0; i < SXE_POOL_SLOTS; i++) {
        const uint32_t slot_index = (first + i) % SXE_POOL_SLOTS;
        uint64_t *watched = &sharing->head->slots[slot_index].watched;

        if ((SXE__POOL_GET(*watched) & bit) == 0 ||
            (__atomic_fetch_and(watched, ~bit, __ATOMIC_ACQ_REL) & bit) == 0 ||
            !wake_user(sharing, fd, slot_index))
            continue;
        SXE__POOL_PUT(sharing->woken, slot_index);
        woken = true;
        if (!all)
            break;
    }
    return woken;
}

/* For states that share a bit, wake all processes that have it: the bit does not say which of them
 * waits for this state. */
void
sxe__pool_wake(const struct sxe__pool_header *pool, uint32_t state)
{
    struct sxe__pool_sharing *sharing = pool->sharing;
    const uint64_t bit = bit_of(state);

    if ((SXE__POOL_GET(sharing->head->watching) & bit) == 0)
        return;
    const int fd = get_socket(sharing);
    if (fd < 0 || wake_users(sharing, fd, bit, state >= STATES_APART))
        return;
    __atomic_fetch_and(&sharing->head->watching, ~bit, __ATOMIC_ACQ_REL);
    wake_users(sharing, fd, bit, true);
}

/* ---- Watching ---- */

/* Whether a state has an element now: 1, 0; -EAGAIN, -EUCLEAN. */
static int
look_at_state(const struct sxe__pool_header *pool, uint32_t state)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    struct sxe__pool_patience patience = {0};

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        const uint32_t list = sxe__pool_shard_list(pool, sharing, state, shard);
        const unsigned locked = sxe__pool_lock_shard_patiently(pool, shard, &patience);

        if (locked != SXE_POOL_LOCK_TAKEN)
            return locked == SXE_POOL_DAMAGED ? -EUCLEAN : -EAGAIN;
        const bool is_there = SXE__POOL_GET(sharing->nodes[list].next) != list;
        sxe__pool_unlock_shard(pool, shard);
        if (is_there)
            return 1;
    }
    return 0;
}

int
sxe_pool_watch(void *array, unsigned state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const int fd = sxe_pool_get_watch_fd(array);

    sxe__pool_check_state(pool, state);
    if (fd < 0)
        return fd;
    if (sxe__pool_shared_count(pool, state) != 0)
        return 1;
    __atomic_fetch_or(&own_slot(pool->sharing)->watched, bit_of(state), __ATOMIC_RELEASE);
    __atomic_fetch_or(&pool->sharing->head->watching, bit_of(state), __ATOMIC_ACQ_REL);
    const int found = look_at_state(pool, state);
    if (found != 0)
        __atomic_fetch_and(&own_slot(pool->sharing)->watched, ~bit_of(state), __ATOMIC_RELEASE);
    return found;
}

void
sxe_pool_unwatch(void *array, unsigned state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_state(pool, state);
    if (pool->sharing == NULL || pool->sharing->token == 0)
        return;
    uint64_t *watched = &own_slot(pool->sharing)->watched;
    /* The last bit stays for the other states; being woken for nothing does no harm. */
    const uint64_t cleared = state < STATES_APART ? bit_of(state) : 0;
    const uint64_t before = __atomic_fetch_and(watched, ~cleared, __ATOMIC_ACQ_REL);
    /* This process was woken for an element that it will not take: wake another. */
    if ((before & bit_of(state)) == 0 && sxe__pool_shared_count(pool, state) != 0)
        sxe__pool_wake(pool, state);
}
