/* SPDX-License-Identifier: MIT
 *
 * What: peers of shared pools, which other programs use in their place: a free list under a mutex,
 * rings of libck, a message queue of POSIX, lists in a Redis on a unix socket. Each is used in the
 * way that is fastest for it, as far as that lets messages be counted. A peer that is not installed
 * is left out: see HAS_CK_RING and start_redis.
 */
#ifndef POOL_PEERS_H
#define POOL_PEERS_H

#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "pool-two.h"

#define PEER_ELEMENTS 256u /* the number of elements of lists and rings, a power of 2 */

/* ---- A free list under a mutex ---- */

struct free_list {
    pthread_mutex_t mutex;
    uint32_t first;
    uint32_t next[PEER_ELEMENTS];
};

static inline struct free_list *
make_free_list(int robustness)
{
    struct free_list *list = shared_memory(sizeof(*list));
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, robustness);
    pthread_mutex_init(&list->mutex, &attributes);
    for (uint32_t i = 0; i < PEER_ELEMENTS; i++)
        list->next[i] = i + 1;
    return list;
}

static inline uint32_t
free_list_take(struct free_list *list)
{
    pthread_mutex_lock(&list->mutex);
    const uint32_t id = list->first;
    if (id < PEER_ELEMENTS)
        list->first = list->next[id];
    pthread_mutex_unlock(&list->mutex);
    return id;
}

static inline void
free_list_give(struct free_list *list, uint32_t id)
{
    pthread_mutex_lock(&list->mutex);
    list->next[id] = list->first;
    list->first = id;
    pthread_mutex_unlock(&list->mutex);
}

/* ---- Rings of ids, for many producers and many consumers ---- */

#if __has_include(<ck_ring.h>)
#    define HAS_CK_RING 1
#    include <ck_ring.h>

struct ring {
    ck_ring_t ring;
    ck_ring_buffer_t buffer[2 * PEER_ELEMENTS];
};

static inline void
ring_give(struct ring *ring, uint32_t id)
{
    while (!ck_ring_enqueue_mpmc(&ring->ring, ring->buffer, (void *)(uintptr_t)(id + 1)))
        ck_pr_stall();
}

/* Take an id. PEER_ELEMENTS: the ring has none. */
static inline uint32_t
ring_take(struct ring *ring)
{
    void *value;

    return ck_ring_dequeue_mpmc(&ring->ring, ring->buffer, &value) ? (uint32_t)(uintptr_t)value - 1
                                                                   : PEER_ELEMENTS;
}

/* Two rings: `free`, which has all ids at the beginning, and `ready`, which has none. */
struct rings {
    struct ring free;
    struct ring ready;
    char messages[PEER_ELEMENTS][MESSAGE_SIZE];
};

static inline struct rings *
make_rings(void)
{
    struct rings *rings = shared_memory(sizeof(*rings));

    ck_ring_init(&rings->free.ring, 2 * PEER_ELEMENTS);
    ck_ring_init(&rings->ready.ring, 2 * PEER_ELEMENTS);
    for (uint32_t i = 0; i < PEER_ELEMENTS; i++)
        ring_give(&rings->free, i);
    return rings;
}
#else
#    define HAS_CK_RING 0
#endif

/* ---- A message queue of POSIX ---- */

static inline mqd_t
open_queue(void)
{
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = MESSAGE_SIZE};
    char name[32];

    snprintf(name, sizeof(name), "/sxe-bench-%d", (int)getpid());
    const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    mq_unlink(name);
    return queue;
}

/* ---- Redis: its protocol RESP, of which many commands are sent at once ---- */

struct redis {
    pid_t server;
    char directory[32];
    struct sockaddr_un address;
};

static inline int
connect_to_redis(const struct redis *redis)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *)&redis->address, sizeof(redis->address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline void
stop_redis(const struct redis *redis)
{
    kill(redis->server, SIGTERM);
    waitpid(redis->server, NULL, 0);
    unlink(redis->address.sun_path);
    rmdir(redis->directory);
}

/* Start a Redis. False: it is not installed, or it does not answer within 5 s. */
static inline bool
start_redis(struct redis *redis)
{
    const struct timespec pause = {.tv_nsec = 10 * SXE_NS_PER_MS};

    *redis = (struct redis){.directory = "/tmp/sxe-bench-XXXXXX", .address.sun_family = AF_UNIX};
    if (mkdtemp(redis->directory) == NULL)
        return false;
    snprintf(redis->address.sun_path, sizeof(redis->address.sun_path), "%s/redis",
             redis->directory);
    redis->server = fork();
    if (redis->server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
               redis->address.sun_path, "--save", "", "--appendonly", "no", "--dir",
               redis->directory, (char *)NULL);
        _exit(127);
    }
    for (unsigned i = 0; i < 500; i++) {
        const int fd = connect_to_redis(redis);

        if (fd != -1) {
            close(fd);
            return true;
        }
        if (waitpid(redis->server, NULL, WNOHANG) != 0)
            break;
        nanosleep(&pause, NULL);
    }
    kill(redis->server, SIGKILL);
    waitpid(redis->server, NULL, 0);
    rmdir(redis->directory);
    return false;
}

#define REDIS_DEPTH 64u /* how many commands are sent before the first answer is read */

/* Send a command `depth` times, and read the answers. *matter counts the answers that are a number
 * or a text; nil ("$-1") does not count. False: an error. */
static inline bool
ask_redis(int fd, const char *command, size_t size, unsigned depth, uint64_t *matter)
{
    static char requests[REDIS_DEPTH * 256];
    static char answers[REDIS_DEPTH * 256];
    unsigned answered = 0;
    bool in_message = false;

    for (unsigned i = 0; i < depth; i++)
        memcpy(requests + i * size, command, size);
    if (send(fd, requests, depth * size, MSG_NOSIGNAL) != (ssize_t)(depth * size))
        return false;
    for (char first = '\0'; answered < depth;) {
        const ssize_t length = recv(fd, answers, sizeof(answers), 0);

        if (length <= 0)
            return false;
        for (ssize_t i = 0; i < length; i++) {
            const char byte = answers[i];

            if (first == '\0')
                first = byte;
            else if (first == '$' && !in_message && byte == '-')
                first = '_'; /* the answer is nil */
            else if (byte == '\n' && first == '$' && !in_message)
                in_message = true;
            else if (byte == '\n') {
                *matter += first == '$' || first == ':';
                answered++;
                in_message = false;
                first = '\0';
            }
        }
    }
    return true;
}

#endif
