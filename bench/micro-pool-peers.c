/* SPDX-License-Identifier: MIT
 *
 * Measures a shared pool and its peers (pool-peers.h), as a free list (allocate, use, free) and as
 * a queue, within one process, and between two processes on two cores.
 *
 *     micro-pool-peers             both
 *     micro-pool-peers PART...     lists, queues
 *
 * Peers that are not installed are left out, with a note. If a process dies in the middle of an
 * operation, the peers are unusable; only the robust mutex is not, but the list that it protects
 * would have to be built again.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "parts.h"
#include "pool-peers.h"

/* ---- Several at a time ---- */

enum { HANDFUL = 32 };

static unsigned
take_many(const struct pool *pool, unsigned old_state, unsigned new_state, unsigned ids[HANDFUL])
{
    unsigned number = 0;

    for (unsigned tries = 0; tries < 1000 && (number == 0 || number > HANDFUL);
         wait_for_other(&tries))
        number = sxe_pool_take_many(pool->array, old_state, new_state, ids, HANDFUL);
    return number > HANDFUL ? 0 : number;
}

static void
move_many(const struct pool *pool, const unsigned *ids, unsigned number, unsigned old_state,
          unsigned new_state)
{
    for (unsigned moved = 0; moved < number;) {
        const unsigned more =
            sxe_pool_move_many(pool->array, ids + moved, number - moved, old_state, new_state);

        moved += more <= number ? more : 0;
    }
}

/* ---- Free lists: allocate an element, use it, free it ---- */

static uint64_t
use_pool(struct board *board, void *subject)
{
    const struct pool *pool = subject;
    uint64_t done = 0;

    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board)) {
        const unsigned id = sxe_pool_take(pool->array, FREE, BUSY);

        if (id >= pool->number)
            continue;
        pool->array[id * MESSAGE_SIZE]++;
        while (sxe_pool_move(pool->array, id, BUSY, FREE) != SXE_POOL_LOCK_TAKEN)
            ;
        done++;
    }
    return done;
}

static uint64_t
use_many(struct board *board, void *subject)
{
    const struct pool *pool = subject;
    unsigned ids[HANDFUL];
    uint64_t done = 0;

    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board)) {
        const unsigned number = take_many(pool, FREE, BUSY, ids);

        for (unsigned i = 0; i < number; i++)
            pool->array[ids[i] * MESSAGE_SIZE]++;
        move_many(pool, ids, number, BUSY, FREE);
        done += number;
    }
    return done;
}

struct list {
    struct free_list *list;
    char *array;
};

static uint64_t
use_free_list(struct board *board, void *subject)
{
    const struct list *list = subject;
    uint64_t done = 0;

    for (; goes_on(board); done++) {
        const uint32_t id = free_list_take(list->list);

        list->array[id * MESSAGE_SIZE]++;
        free_list_give(list->list, id);
    }
    return done;
}

static void
print_list(const char *what, worker work, void *subject)
{
    const worker workers[] = {work, work};
    const double one = run_together(workers, 1, subject);

    printf("  %-34s %8.1f%c    ", what, 1e9 / (one < 0 ? -one : one), one < 0 ? '~' : ' ');
    print_rate(1, run_together(workers, 2, subject));
    printf("\n");
}

static void
print_pool_list(unsigned shards)
{
    struct pool pool = make_pool(PEER_ELEMENTS, SXE_POOL_OPTION_SHARED, shards);
    char what[48];

    snprintf(what, sizeof(what), "pool, %u shard%s", shards, shards == 1 ? "" : "s");
    print_list(what, use_pool, &pool);
    snprintf(what, sizeof(what), "pool, %u shard%s, %d at a time", shards, shards == 1 ? "" : "s",
             HANDFUL);
    print_list(what, use_many, &pool);
    sxe_pool_delete(pool.array);
}

static void
print_free_list(const char *what, int robustness)
{
    struct list list = {make_free_list(robustness), shared_memory(PEER_ELEMENTS * MESSAGE_SIZE)};

    print_list(what, use_free_list, &list);
}

#if HAS_CK_RING
static uint64_t
use_ring(struct board *board, void *subject)
{
    struct rings *rings = subject;
    uint64_t done = 0;

    while (goes_on(board)) {
        const uint32_t id = ring_take(&rings->free);

        if (id == PEER_ELEMENTS)
            continue;
        rings->messages[id][0]++;
        ring_give(&rings->free, id);
        done++;
    }
    return done;
}
#endif

static void
lists(void)
{
    printf("lists: allocate, use, free           ns, one    millions/s, two (~: disturbed)\n");
    print_pool_list(1);
    print_pool_list(8);
    print_pool_list(64);
    print_free_list("free list, pthread mutex", PTHREAD_MUTEX_STALLED);
    print_free_list("free list, robust pthread mutex", PTHREAD_MUTEX_ROBUST);
#if HAS_CK_RING
    print_list("ck_ring, many to many", use_ring, make_rings());
#else
    printf("  ck_ring: not measured, libck-dev is not installed\n");
#endif
}

/* ---- Queues: 64 bytes from one process to the other ---- */

static char message[MESSAGE_SIZE + 1] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static unsigned
take_and_spin(const struct pool *pool, unsigned old_state, unsigned new_state)
{
    unsigned id = SXE_POOL_NO_INDEX;

    for (unsigned tries = 0; tries < 1000 && id >= pool->number; wait_for_other(&tries))
        id = sxe_pool_take(pool->array, old_state, new_state);
    return id;
}

/* Take an element. If none comes for some 5 us, sleep, but for at most 1 ms, so that the end of the
 * run is noticed. */
static unsigned
take_or_sleep(const struct pool *pool, unsigned old_state, unsigned new_state)
{
    struct pollfd polled = {.events = POLLIN};
    unsigned id = SXE_POOL_NO_INDEX;

    for (unsigned tries = 0; tries < 200 && id >= pool->number; wait_for_other(&tries))
        id = sxe_pool_take(pool->array, old_state, new_state);
    if (id < pool->number || sxe_pool_watch(pool->array, old_state) != 0)
        return id;
    polled.fd = sxe_pool_get_watch_fd(pool->array);
    if (poll(&polled, 1, 1) == 1)
        sxe_pool_watch_read(pool->array);
    return id;
}

typedef unsigned (*taker)(const struct pool *pool, unsigned old_state, unsigned new_state);

static void
move(const struct pool *pool, unsigned id, unsigned old_state, unsigned new_state)
{
    while (sxe_pool_move(pool->array, id, old_state, new_state) != SXE_POOL_LOCK_TAKEN)
        ;
}

static inline bool
put_message(const struct pool *pool, taker take)
{
    const unsigned id = take(pool, FREE, FILLING);

    if (id >= pool->number)
        return false;
    memcpy(pool->array + id * MESSAGE_SIZE, message, MESSAGE_SIZE);
    move(pool, id, FILLING, READY);
    return true;
}

static inline bool
get_message(const struct pool *pool, taker take)
{
    const unsigned id = take(pool, READY, BUSY);

    if (id >= pool->number)
        return false;
    memcpy(message, pool->array + id * MESSAGE_SIZE, MESSAGE_SIZE);
    move(pool, id, BUSY, FREE);
    return true;
}

#define POOL_WORKERS(name, take)                                          \
    static uint64_t send_by_##name(struct board *board, void *subject)    \
    {                                                                     \
        sxe_time_set_turn_ns(sxe_time_ns());                              \
        while (goes_on(board))                                            \
            put_message(subject, take);                                   \
        return 0;                                                         \
    }                                                                     \
    static uint64_t receive_by_##name(struct board *board, void *subject) \
    {                                                                     \
        uint64_t done = 0;                                                \
        sxe_time_set_turn_ns(sxe_time_ns());                              \
        while (goes_on(board))                                            \
            done += get_message(subject, take);                           \
        return done;                                                      \
    }
POOL_WORKERS(pool, take_and_spin)
POOL_WORKERS(sleeping_pool, take_or_sleep)

static uint64_t
both_by_pool(struct board *board, void *subject)
{
    uint64_t done = 0;

    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board))
        done += put_message(subject, take_and_spin) && get_message(subject, take_and_spin);
    return done;
}

static unsigned
put_many(const struct pool *pool)
{
    unsigned ids[HANDFUL];
    const unsigned number = take_many(pool, FREE, FILLING, ids);

    for (unsigned i = 0; i < number; i++)
        memcpy(pool->array + ids[i] * MESSAGE_SIZE, message, MESSAGE_SIZE);
    move_many(pool, ids, number, FILLING, READY);
    return number;
}

static unsigned
get_many(const struct pool *pool)
{
    unsigned ids[HANDFUL];
    const unsigned number = take_many(pool, READY, BUSY, ids);

    for (unsigned i = 0; i < number; i++)
        memcpy(message, pool->array + ids[i] * MESSAGE_SIZE, MESSAGE_SIZE);
    move_many(pool, ids, number, BUSY, FREE);
    return number;
}

static uint64_t
send_many(struct board *board, void *subject)
{
    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board))
        put_many(subject);
    return 0;
}

static uint64_t
receive_many(struct board *board, void *subject)
{
    uint64_t done = 0;

    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board))
        done += get_many(subject);
    return done;
}

static uint64_t
both_many(struct board *board, void *subject)
{
    uint64_t done = 0;

    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board))
        if (put_many(subject) != 0)
            done += get_many(subject);
    return done;
}

#if HAS_CK_RING
static inline bool
put_into_ring(struct rings *rings)
{
    const uint32_t id = ring_take(&rings->free);

    if (id == PEER_ELEMENTS)
        return false;
    memcpy(rings->messages[id], message, MESSAGE_SIZE);
    ring_give(&rings->ready, id);
    return true;
}

static inline bool
get_from_ring(struct rings *rings)
{
    const uint32_t id = ring_take(&rings->ready);

    if (id == PEER_ELEMENTS)
        return false;
    memcpy(message, rings->messages[id], MESSAGE_SIZE);
    ring_give(&rings->free, id);
    return true;
}

static uint64_t
send_by_ring(struct board *board, void *subject)
{
    unsigned tries = 0;

    while (goes_on(board))
        if (!put_into_ring(subject))
            wait_for_other(&tries);
    return 0;
}

static uint64_t
receive_by_ring(struct board *board, void *subject)
{
    unsigned tries = 0;
    uint64_t done = 0;

    while (goes_on(board)) {
        const bool got = get_from_ring(subject);

        done += got;
        if (!got)
            wait_for_other(&tries);
    }
    return done;
}

static uint64_t
both_by_ring(struct board *board, void *subject)
{
    uint64_t done = 0;

    while (goes_on(board))
        done += put_into_ring(subject) && get_from_ring(subject);
    return done;
}
#endif

/* The time at which the run is over: until then both sides may sleep. */
static struct timespec
end_of_run(void)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += (long)TWO_RUN_NS;
    end.tv_sec += end.tv_nsec / (long)SXE_NS_PER_SECOND;
    end.tv_nsec %= (long)SXE_NS_PER_SECOND;
    return end;
}

static uint64_t
send_by_mqueue(struct board *board, void *subject)
{
    const mqd_t queue = *(const mqd_t *)subject;
    const struct timespec end = end_of_run();

    while (goes_on_slowly(board))
        mq_timedsend(queue, message, MESSAGE_SIZE, 0, &end);
    return 0;
}

static uint64_t
receive_by_mqueue(struct board *board, void *subject)
{
    const mqd_t queue = *(const mqd_t *)subject;
    const struct timespec end = end_of_run();
    uint64_t done = 0;

    while (goes_on_slowly(board))
        done += mq_timedreceive(queue, message, MESSAGE_SIZE, NULL, &end) == MESSAGE_SIZE;
    return done;
}

static uint64_t
both_by_mqueue(struct board *board, void *subject)
{
    const mqd_t queue = *(const mqd_t *)subject;
    const struct timespec end = end_of_run();
    uint64_t done = 0;

    while (goes_on_slowly(board))
        done += mq_timedsend(queue, message, MESSAGE_SIZE, 0, &end) == 0 &&
                mq_timedreceive(queue, message, MESSAGE_SIZE, NULL, &end) == MESSAGE_SIZE;
    return done;
}

/* a text of the message's length and an end of line follow */
#define RPUSH "*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$64\r\n"
#define LPOP  "*2\r\n$4\r\nLPOP\r\n$1\r\nq\r\n"

static size_t
write_rpush(char command[128])
{
    return (size_t)snprintf(command, 128, RPUSH "%.64s\r\n", message);
}

static uint64_t
send_by_redis(struct board *board, void *subject)
{
    const int fd = connect_to_redis(subject);
    char command[128];
    const size_t size = write_rpush(command);
    uint64_t sent = 0;

    while (goes_on_slowly(board) && ask_redis(fd, command, size, REDIS_DEPTH, &sent))
        ;
    close(fd);
    return 0;
}

static uint64_t
receive_by_redis(struct board *board, void *subject)
{
    const int fd = connect_to_redis(subject);
    uint64_t received = 0;

    while (goes_on_slowly(board) && ask_redis(fd, LPOP, sizeof(LPOP) - 1, REDIS_DEPTH, &received))
        ;
    close(fd);
    return received;
}

static uint64_t
both_by_redis(struct board *board, void *subject)
{
    const int fd = connect_to_redis(subject);
    char command[128];
    const size_t size = write_rpush(command);
    uint64_t sent = 0;
    uint64_t received = 0;

    while (goes_on_slowly(board) && ask_redis(fd, command, size, REDIS_DEPTH, &sent) &&
           ask_redis(fd, LPOP, sizeof(LPOP) - 1, REDIS_DEPTH, &received))
        ;
    close(fd);
    return received;
}

static void
print_queue(const char *what, worker both, const worker two[2], void *subject)
{
    printf("  %-36s", what);
    if (both == NULL)
        printf(" %10s ", "-");
    else
        print_rate(3, run_together(&both, 1, subject));
    print_rate(3, run_together(two, 2, subject));
    printf("\n");
}

static void
print_pool_queues(unsigned shards)
{
    static const worker spinning[] = {send_by_pool, receive_by_pool};
    static const worker sleeping[] = {send_by_sleeping_pool, receive_by_sleeping_pool};
    struct pool pool = make_pool(PEER_ELEMENTS, SXE_POOL_OPTION_SHARED, shards);
    char what[48];

    snprintf(what, sizeof(what), "pool, %u shard%s", shards, shards == 1 ? "" : "s");
    print_queue(what, both_by_pool, spinning, &pool);
    sxe_pool_delete(pool.array);
    pool = make_pool(PEER_ELEMENTS, SXE_POOL_OPTION_SHARED, shards);
    snprintf(what, sizeof(what), "pool, %u shard%s, asleep when empty", shards,
             shards == 1 ? "" : "s");
    print_queue(what, NULL, sleeping, &pool);
    sxe_pool_delete(pool.array);
    pool = make_pool(PEER_ELEMENTS, SXE_POOL_OPTION_SHARED, shards);
    snprintf(what, sizeof(what), "pool, %u shard%s, %d at a time", shards, shards == 1 ? "" : "s",
             HANDFUL);
    print_queue(what, both_many, (const worker[]){send_many, receive_many}, &pool);
    sxe_pool_delete(pool.array);
}

static void
print_mqueue(void)
{
    static const worker workers[] = {send_by_mqueue, receive_by_mqueue};
    mqd_t queue = open_queue();

    if (queue == (mqd_t)-1) {
        printf("  POSIX mqueue: not measured: %s\n", strerror(errno));
        return;
    }
    print_queue("POSIX mqueue", both_by_mqueue, workers, &queue);
    mq_close(queue);
}

static void
print_redis(void)
{
    static const worker workers[] = {send_by_redis, receive_by_redis};
    struct redis redis;

    if (!start_redis(&redis)) {
        printf("  Redis: not measured, redis-server is not installed or does not start\n");
        return;
    }
    print_queue("Redis list, 64 commands at once", both_by_redis, workers, &redis);
    stop_redis(&redis);
}

static void
queues(void)
{
    printf("queues: millions of 64-byte messages/s within one  to another (~: disturbed)\n");
    print_pool_queues(1);
    print_pool_queues(8);
#if HAS_CK_RING
    static const worker ring_workers[] = {send_by_ring, receive_by_ring};

    print_queue("two ck_rings, many to many", both_by_ring, ring_workers, make_rings());
#else
    printf("  ck_ring: not measured, libck-dev is not installed\n");
#endif
    print_mqueue();
    print_redis();
}

static const struct part parts[] = {
    {"lists", lists},
    {"queues", queues},
};

int
main(int argc, char **argv)
{
    setlinebuf(stdout);
    run_parts(parts, SXE_COUNT(parts), argc, argv);
    return EXIT_SUCCESS;
}
