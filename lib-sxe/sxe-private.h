/* SPDX-License-Identifier: MIT
 *
 * What: the interface among the files of lib-sxe: the context of a thread's loop and the steps of a
 * socket's life.
 * Place: included by lib-sxe/sxe*.c only.
 *
 * Shape, in reading order; the steps of a life call each other, up and down this list:
 *
 *     sxe-address.c  text <-> sockaddr                  pure
 *     sxe-cidr.c     lists of networks                  pure
 *     sxe-proxy.c    headers of the PROXY protocol      pure
 *     sxe-socket.c   the few system calls on a socket   the table of sxe-io.h
 *     sxe-state.c    states, watching, ending, finish   every change of state stands here
 *     sxe-queue.c    unsent output kept in chunks       records: bytes, borrowed memory, files, end
 *     sxe-write.c    sxe_write and its like             what is staged in an event, and flushing it
 *     sxe-read.c     readable: read, show, keep the rest
 *     sxe-connect.c  connect, listen, accept
 *     sxe-loop.c     epoll -> the above                 deferred calls, timeouts, timers, signals
 *     sxe-work.c     work that blocks                   the only file with threads
 *     sxe-plan.c     register, configure, init, fini
 *     sxe.c          making, closing, looking at sockets
 */
#ifndef SXE_PRIVATE_H
#define SXE_PRIVATE_H

#define SXE_LOG_CONTROL sxe__log

#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "sxe-io.h"
#include "sxe-work.h"
#include "sxe.h"

#define SXE__READ_FRONT     16 /* zero bytes in front of the read buffer; keeps it aligned */
#define SXE__STAGE_SIZE     (64u * 1024u)
#define SXE__STAGE_VECTOR   16
#define SXE__EVENTS_MAX     64            /* taken by one epoll_wait: a batch */
#define SXE__TAKEN_MAX      512           /* in one turn of the loop, while busy */
#define SXE__HELD_MAX       16            /* sockets whose output waits for each other's */
#define SXE__HELD_SIZE      (16u * 1024u) /* bytes of theirs in the output buffer */
#define SXE__HELD_VECTOR    32
#define SXE__WRITES_MAX     16           /* of one socket in one event */
#define SXE__FILE_SLICE     (256 * 1024) /* bytes of a file, of one socket in one event */
#define SXE__CHUNK_SIZE_MIN 64
#define SXE__DATAGRAM_MAX   65535 /* bytes: more than any that IP carries */
#define SXE__IP_SIZE        sizeof(struct sockaddr_un)
#define SXE__RETRY_S        0.1            /* when descriptors ran out elsewhere */
#define SXE__LEAVE_S        0.005          /* for another process to accept what waits */
#define SXE__WORK_STACK     (256u * 1024u) /* of a thread */

extern struct sxe_log_control sxe__log;

enum sxe__kind { SXE__TCP, SXE__UNIX, SXE__UDP };

enum sxe__flag {
    SXE__ADDRESS = 1 << 0,     /* NEW: u.address is set; otherwise u.path */
    SXE__PEER = 1 << 1,        /* was connecting or connected: on_close is due */
    SXE__HALF_CLOSE = 1 << 2,  /* the reader sees the peer's half-close */
    SXE__ONESHOT = 1 << 3,     /* LISTENING for one connection */
    SXE__READABLE = 1 << 4,    /* the kernel may have bytes for us: it reports only changes */
    SXE__END_NEAR = 1 << 5,    /* the peer's end or an error follows: read until it shows */
    SXE__END_SEEN = 1 << 6,    /* the reader saw the peer's half-close */
    SXE__PAUSED = 1 << 7,      /* by the program */
    SXE__FULL = 1 << 8,        /* output above output_pause: not read */
    SXE__STARVED = 1 << 9,     /* unread bytes wait in the kernel for a free chunk;
                                  CLOSING: the peer still sends */
    SXE__DEFERRED = 1 << 10,   /* is on the list of deferred calls */
    SXE__READ_AGAIN = 1 << 11, /* deferred: show the unread bytes again */
    SXE__WRITE_MORE = 1 << 12, /* deferred: the kernel may take more output */
    SXE__LINGER = 1 << 13,     /* CLOSING: wait for the peer's end */
    SXE__END_SENT = 1 << 14,   /* our half-close is under way or done */
    SXE__HELD = 1 << 15,       /* its output waits for the end of the batch of events */
};

/* The kinds of events that epoll reports of a socket. */
enum sxe__watched {
    SXE__NOTHING,
    SXE__CONNECTION, /* every change to readable, writable, ended; registered once for its whole
                        life */
    SXE__LISTENER,   /* that it is readable, as long as it is */
    SXE__RESTING,    /* a listener, nothing for now */
};

struct sxe__line {
    struct sxe_work *first;
    struct sxe_work *last;
};

/* Works that share threads. */
struct sxe__group {
    struct sxe__line waiting;
    unsigned running;
    unsigned max; /* threads */
};

/* The threads for work that blocks, see sxe-work.c. */
struct sxe__workers {
    struct ev_loop *loop;
    ev_async wake;
    unsigned under_way; /* works submitted whose done was not called yet */
    unsigned threads;   /* started */
    unsigned wanted;
    SXE_TIME next_try; /* to start those that are missing */

    pthread_mutex_t lock; /* of all below but the threads, and of every work's state and links */
    pthread_cond_t come;  /* there is work, or the end */
    struct sxe__group group[1 + SXE_WORK_GROUPS_MAX];
    unsigned turn; /* the group to look at first */
    struct sxe__line finished;
    bool is_stopping;
    pthread_t thread[];
};

/* The output of an event that is over: as it was staged, or in the queue. */
struct sxe__held {
    SXE *socket; /* NULL: it was closed meanwhile */
    struct iovec *vector;
    unsigned vector_used; /* 0: it is in the queue */
    uint32_t copied;      /* bytes of it in the output buffer */
    size_t bytes;
};

/* The larger part of a context, allocated by sxe_init: a library that dlopen loads gets little
 * thread-local memory. tools/lint.sh checks its size. */
struct sxe__tables {
    struct sxe_config config; /* as sxe_init completed it */
    struct sxe__held held[SXE__HELD_MAX];
    struct iovec vectors[SXE__HELD_VECTOR + SXE__STAGE_VECTOR]; /* those held, then vector[] */
    struct epoll_event events[SXE__EVENTS_MAX];

    ev_io epoll_ready;
    ev_check begin_turn;
    ev_prepare before_wait;
    ev_idle no_wait; /* active: deferred calls are due, the loop must not wait */
    ev_timer timeouts;
    SXE_TIME timeouts_due;
    ev_timer accept_again;
    ev_timer accept_left; /* was it accepted, what was left to other processes? */

    struct sockaddr_storage sender; /* of the last datagram */
    char ip[SXE__IP_SIZE];          /* the last one asked for */
};

/* All state of one thread's loop. */
struct sxe__context {
    struct ev_loop *loop;
    struct sxe__tables *tables; /* NULL before sxe_init */
    char *sockets;              /* the pool's array; NULL before sxe_init */
    size_t stride;
    struct sxe_chunks *chunks;
    uint32_t output_chunks; /* of them have unsent output */
    uint32_t output_chunks_max;
    int epoll;
    SXE *reader;      /* its unread bytes are in read_buffer now */
    SXE *released;    /* its on_close is called now */
    size_t dropped;   /* bytes that were in its queue */
    bool orders_idle; /* somebody asks which socket has been IDLE for the longest time */

    SXE *staged; /* its output is in vector[], and then in stage[] from stage_open on */
    struct iovec *vector;
    unsigned vector_used;
    uint32_t stage_open;  /* where the piece of stage[] begins that still grows */
    uint32_t stage_used;  /* bytes of stage[] */
    uint32_t stage_limit; /* how far its output may fill stage[] without another look; 0: look */
    uint32_t reserved;    /* bytes of stage[] after stage_used that sxe_commit may add */
    size_t lent_bytes;    /* bytes of vector[] that are not in stage[] */
    char *stage;          /* SXE__STAGE_SIZE bytes */
    unsigned held_first;  /* those from here to held_end wait */
    unsigned held_end;
    unsigned held_max; /* then all go out; below 2: nothing is held */
    char *stages;      /* SXE__HELD_SIZE + SXE__STAGE_SIZE bytes: those held, then stage[] */
    char *read_buffer; /* a chunk's bytes, or a datagram's; zero bytes in front */
    char *read_memory;

    uint32_t deferred_head;
    uint32_t deferred_tail;
    unsigned deferred_count;
    bool is_busy;            /* libev does not watch our epoll set, we poll it every turn */
    unsigned load_rounds;    /* in a row that found many events */
    unsigned empty_rounds;   /* in a row, while busy, that found none */
    bool is_accept_stopped;  /* no socket or no descriptor was free, or others are to accept */
    unsigned accept_unasked; /* so many more, though others are to accept them */
    unsigned accept_trust;   /* so many at the next look: the others did not accept */
    int accept_error;        /* that accept4 failed with since the last connection; 0: none */
    unsigned accept_fails;   /* in a row */

    unsigned number;     /* of sockets, once open */
    unsigned unref;      /* of them are not waited for, see sxe_unref */
    unsigned registered; /* wishes for the next sxe_init */
    unsigned extra;
    unsigned threads;
    unsigned groups;
    uint16_t group_threads[SXE_WORK_GROUPS_MAX];
    struct sxe_config wanted;     /* as sxe_configure got it */
    struct sxe__workers *workers; /* NULL: none are registered */

    socklen_t sender_length;
    uint64_t receiver; /* handle of the socket that it came to */
};

extern _Thread_local struct sxe__context sxe__context
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define CONTEXT (&sxe__context)

static inline SXE *
sxe__socket(uint32_t id)
{
    return (SXE *)(void *)(CONTEXT->sockets + id * CONTEXT->stride);
}

static inline enum sxe_state
sxe__state(const SXE *s)
{
    return (enum sxe_state)s->state;
}

/* ---- sxe-address.c ---- */

/* Text and port to a sockaddr; 0 or -EINVAL. "", "INADDR_ANY" and NULL are any IPv4 address. */
SXE_MUST_USE int sxe__address_parse(struct sockaddr_storage *address, const char *ip,
                                    unsigned short port);

/* A path to a sockaddr_un; 0 or -ENAMETOOLONG. "@name" is abstract. */
SXE_MUST_USE int sxe__address_parse_path(struct sockaddr_storage *address, socklen_t *length,
                                         const char *path);

socklen_t sxe__address_length(const struct sockaddr_storage *address); /* IPv4 and IPv6 */
/* Writes an IP address or a path as text, "" for no address, and returns text. */
const char *sxe__address_ip(char text[SXE__IP_SIZE], const struct sockaddr_storage *address,
                            socklen_t length);
unsigned short sxe__address_port(const struct sockaddr_storage *address);

/* ---- sxe-socket.c ---- */

extern const struct sxe_io_table sxe__io_socket;

/* A non-blocking, close-on-exec socket of s's kind and that family into s->fd. 0 or -errno. */
SXE_MUST_USE int sxe__socket_open(SXE *s, int family);
void sxe__socket_close(SXE *s);
int sxe__socket_error(const SXE *s); /* what the kernel holds against it; 0: nothing */

/* ---- sxe-state.c ---- */

/* Set what epoll reports of s. 0 or -errno. */
SXE_MUST_USE int sxe__watch(SXE *s, enum sxe__watched what);
void sxe__watch_or_end(SXE *s, enum sxe__watched what);

void sxe__move(SXE *s, enum sxe_state to);
SXE *sxe__take(uint8_t kind);     /* FREE -> NEW, all fields set; NULL: none free */
void sxe__give(SXE *s);           /* NEW or CLOSED -> FREE */
void sxe__ref(SXE *s);            /* it closes: sxe_unref is undone */
void sxe__open(SXE *s);           /* NEW -> fields of an open socket */
void sxe__end(SXE *s, int error); /* any -> CLOSED, with the reason; once */

/* Like sxe__end, where the peer lacks a part of the output: it must not take a part for the whole,
 * nor the kernel keep megabytes for a peer that does not read. */
void sxe__reset(SXE *s, int error);

/* The program, back-pressure or want of room keeps it from being read. */
bool sxe__is_reading_held(const SXE *s);

/* After anything happened to an open socket: set its state and what is watched to what it holds
 * now. */
void sxe__settle(SXE *s);

/* The last step of every event: send what is staged, finish what is CLOSED. */
void sxe__finish(void);

/* No socket or descriptor is free: listeners rest; and go on. */
void sxe__accept_stop(void);
void sxe__accept_start(void);

/* ---- sxe-queue.c: unsent output in chunks ---- */

bool sxe__queue_is_empty(const SXE *s);
size_t sxe__queue_room(const SXE *s); /* bytes that could be queued now, at least */
SXE_MUST_USE int sxe__queue_bytes(SXE *s, const void *data, size_t length); /* 0 or -ENOBUFS */
SXE_MUST_USE int sxe__queue_borrowed(SXE *s, const void *data, size_t length,
                                     SXE_OUT_EVENT_SENT on_sent);
SXE_MUST_USE int sxe__queue_file(SXE *s, int fd, off_t offset, size_t length,
                                 SXE_OUT_EVENT_SENT on_sent);
SXE_MUST_USE int sxe__queue_end(SXE *s); /* a half-close */

/* Write what the kernel takes; calls on_sent. 0: it takes no more now, and will say when it does,
 * or nothing is left; 1: it may take more at once; -errno. */
SXE_MUST_USE int sxe__queue_write(SXE *s);

/* Whether the peer has acknowledged bytes since the kernel was last asked; then the timeout of
 * writing starts again. The kernel takes more only when a third of its buffer is free, and a peer
 * that reads slowly takes long for that. s's queue is not empty. */
bool sxe__queue_has_peer_read(SXE *s);

/* Drop it all; every on_sent is called with result. So many bytes. */
size_t sxe__queue_drop(SXE *s, int result);

/* ---- sxe-write.c ---- */

/* After a write failed: 0 epoll will report when it can go on, 1 try again soon, else the -errno.
 */
int sxe__write_failed(int error);
void sxe__write_more(SXE *s);   /* deferred */
void sxe__flush_staged(SXE *s); /* at the end of an event: one write */
void sxe__unstage(SXE *s);      /* forget what is staged */
void sxe__hold_staged(void);    /* at the end of an event: with those of the next events */
void sxe__send_held(void);      /* at the end of a batch of events: one write each */
void sxe__drop_held(SXE *s);
void sxe__writable(SXE *s);
void sxe__wrote(SXE *s);              /* its unsent output changed: settle it, or go on closing */
void sxe__drained(SXE *s);            /* CLOSING and nothing unsent */
SXE_MUST_USE int sxe__io_end(SXE *s); /* our half-close: 0, -EAGAIN: not yet, -errno */

/* ---- sxe-read.c ---- */

void sxe__readable(SXE *s);
void sxe__read_again(SXE *s); /* deliver the unread bytes once more */
void sxe__drop_unread(SXE *s);
void sxe__feed_starved(void); /* chunks may be free again */

/* ---- sxe-connect.c ---- */

void sxe__acceptable(SXE *listener);
void sxe__accept_left(void); /* others had the time to accept; take what still waits */
void sxe__connected(SXE *s); /* or not: the kernel decided */

/* ---- sxe-loop.c ---- */

SXE_MUST_USE int sxe__loop_open(void);
void sxe__loop_close(void);

/* A socket was made, or is not unref any more: the loop has something to wait for. */
void sxe__loop_hold(void);
void sxe__loop_release(void);
void sxe__defer(SXE *s);
void sxe__undefer(SXE *s);
void sxe__on_timeout(void *array, unsigned id, void *user);

/* ---- sxe-work.c ---- */

SXE_MUST_USE int sxe__work_open(void);                  /* once the loop is; 0 or -errno */
void sxe__work_close(void);                             /* waits for what runs */
size_t sxe__work_threads(const struct sxe__context *c); /* of all groups, as registered */

#endif
