/* SPDX-License-Identifier: MIT
 *
 * What: the interface among the files of lib-sxe: the context of a thread's loop and the steps of a
 * socket's life.
 * Place: included by lib-sxe/sxe*.c only.
 *
 * Shape: the files in reading order. From sxe-state.c to sxe-loop.c they are one state machine,
 * that of a socket, and call each other; all others call only files above them:
 *
 *     sxe-address.c  converts text to sockaddr and back; no system calls
 *     sxe-cidr.c     lists of networks; no system calls
 *     sxe-proxy.c    headers of the PROXY protocol; no system calls
 *     sxe-context.c  the context of each thread, handles
 *     sxe-socket.c   the few system calls on a socket, as the table of sxe-io.h
 *     sxe-state.c    every change of a socket's state; watching and ending it
 *     sxe-queue.c    the output that the kernel did not take, in chunks
 *     sxe-write.c    sxe_write and the like: stages the output of an event, then flushes it
 *     sxe-read.c     reads, calls on_read, keeps the bytes that on_read leaves
 *     sxe-connect.c  connects, makes pairs, listens
 *     sxe-accept.c   accepts, and rests
 *     sxe-loop.c     waits for epoll and calls the files above; deferred calls, timeouts
 *     sxe-timer.c    timers and signals of the program
 *     sxe-work.c     work that blocks: the only file with threads
 *     sxe-resolve.c  addresses of names, looked up by sxe-work.c
 *     sxe-dial.c     connects to a name: its addresses race
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

#include "sxe-address-internal.h"
#include "sxe-io.h"
#include "sxe-probe-internal.h"
#include "sxe-work.h"
#include "sxe.h"

/* NUL bytes before the read buffer: 16, so that the buffer stays aligned */
#define SXE__READ_FRONT   16
#define SXE__STAGE_SIZE   (64u * 1024u)
#define SXE__STAGE_VECTOR 16
#define SXE__EVENTS_MAX   64 /* how many events one epoll_wait returns at most: a batch */
/* how many events one turn of the loop handles at most, while is_busy is set */
#define SXE__TAKEN_MAX      512
#define SXE__HELD_MAX       16            /* sockets whose output is held, to be sent together */
#define SXE__HELD_SIZE      (16u * 1024u) /* bytes of held output in the output buffer */
#define SXE__HELD_VECTOR    32
#define SXE__WRITES_MAX     16           /* the most writes of a socket in one event */
#define SXE__FILE_SLICE     (256 * 1024) /* bytes of a file that a socket sends in one event */
#define SXE__CHUNK_SIZE_MIN 64
/* how many bytes that are 0 follow a configuration that sxe_get_config returns: a program that was
 * built with a later header copies its longer struct */
#define SXE__CONFIG_LATER 8
#define SXE__DATAGRAM_MAX 65535 /* bytes: no IP datagram is larger */
#define SXE__IP_SIZE      sizeof(struct sockaddr_un)
#define SXE__RETRY_S      0.1            /* seconds between tries to accept after a failure */
#define SXE__LEAVE_S      0.001          /* seconds between looks at connections left to others */
#define SXE__LEAVE_LOOKS  20             /* so many looks others have to accept them */
#define SXE__WORK_STACK   (256u * 1024u) /* bytes of a thread's stack */

extern struct sxe_log_control sxe__log;

enum sxe__kind { SXE__TCP, SXE__UNIX, SXE__UDP };

enum sxe__flag {
    /* the socket is NEW and has u.address; without this flag it has u.path */
    SXE__ADDRESS = 1 << 0,
    SXE__PEER = 1 << 1,       /* the socket was connecting or connected: on_close will be called */
    SXE__HALF_CLOSE = 1 << 2, /* the program wants to be told of the peer's half-close */
    SXE__ONESHOT = 1 << 3,    /* the socket is LISTENING for a single connection */
    SXE__READABLE = 1 << 4,   /* the kernel may have bytes for us; epoll reports only changes */
    SXE__END_NEAR =
        1 << 5, /* epoll reported the peer's end or an error: read until a read returns that */
    SXE__END_SEEN = 1 << 6, /* the program was told of the peer's half-close */
    SXE__PAUSED = 1 << 7,   /* the program has called sxe_pause */
    SXE__FULL = 1 << 8,     /* unsent output is above output_pause: do not read */
    /* no chunk is free for the unread bytes, which wait in the kernel; in CLOSING: the peer still
     * sends */
    SXE__STARVED = 1 << 9,
    SXE__DEFERRED = 1 << 10,   /* the socket is on the list of deferred calls */
    SXE__READ_AGAIN = 1 << 11, /* a deferred call of on_read is due for the unread bytes */
    SXE__WRITE_MORE = 1 << 12, /* a deferred write is due: the kernel may take more output */
    SXE__LINGER = 1 << 13,     /* the socket is CLOSING, and waits for the peer's end */
    SXE__END_SENT = 1 << 14,   /* our half-close is under way or done */
    /* output of the socket waits until the other events of the batch are handled */
    SXE__HELD = 1 << 15,
};

/* The kinds of events that epoll reports for a socket. */
enum sxe__watched {
    SXE__NOTHING,
    /* every change: readable, writable, ended; a connection is registered only once */
    SXE__CONNECTION,
    SXE__LISTENER, /* the socket is readable; reported again and again as long as that is true */
    SXE__RESTING,  /* nothing is reported: the listener does not accept for now */
};

struct sxe__line {
    struct sxe_work *first;
    struct sxe_work *last;
};

/* A group of works that share threads. */
struct sxe__group {
    struct sxe__line waiting;
    unsigned running;
    unsigned max; /* the most threads that run works of this group at a time */
};

/* The threads for work that blocks, see sxe-work.c. */
struct sxe__workers {
    struct ev_loop *loop;
    ev_async wake;
    unsigned under_way; /* how many works were submitted and are not done: their done() is due */
    unsigned threads;   /* how many threads were started */
    unsigned wanted;
    SXE_TIME next_try; /* when to try again to start the threads that could not be started */

    /* Guards all members below except thread[], and the state and links of every work. */
    pthread_mutex_t lock;
    pthread_cond_t come; /* wakes waiting threads: there is work, or the threads must end */
    struct sxe__group group[1 + SXE_WORK_GROUPS_MAX];
    unsigned turn; /* the group that is asked first for the next work; groups take turns */
    struct sxe__line finished;
    bool is_stopping;
    pthread_t thread[];
};

/* The output of one socket whose event was handled. It is held until the other events of the batch
 * were handled, too, so that all replies of a batch are sent together. */
struct sxe__held {
    SXE *socket; /* NULL: the socket was closed after its output was held */
    struct iovec *vector;
    unsigned vector_used; /* 0: the output is in the socket's queue, not in `vector` */
    uint32_t copied;      /* how many bytes of the output are in `stages` */
    size_t bytes;
};

/* The larger part of a context, allocated by sxe_init: a library that dlopen loads gets little
 * thread-local memory. tools/lint.sh checks the size of the thread-local part. */
struct sxe__tables {
    struct sxe_config config; /* the configuration, with the defaults that sxe_init filled in */
    char config_later[SXE__CONFIG_LATER];
    struct sxe__held held[SXE__HELD_MAX];
    /* the first elements belong to held output; the last SXE__STAGE_VECTOR are vector[], of the
     * stage */
    struct iovec vectors[SXE__HELD_VECTOR + SXE__STAGE_VECTOR];
    struct epoll_event events[SXE__EVENTS_MAX];

    ev_io epoll_ready;
    ev_check begin_turn;
    ev_prepare before_wait;
    ev_idle no_wait; /* active: deferred calls are due, so the loop must not wait */
    ev_timer timeouts;
    SXE_TIME timeouts_due;
    ev_timer accept_again;
    ev_timer accept_left; /* accept connections that were left to others and still wait */

    struct sockaddr_storage sender; /* the sender of the last datagram */
    socklen_t sender_length;
    uint64_t receiver;                   /* the handle of the socket that received that datagram */
    struct sockaddr_storage newest_peer; /* the peer of the last connection that was accepted */
    socklen_t newest_peer_length;
    uint64_t newest;       /* the handle of that connection */
    char ip[SXE__IP_SIZE]; /* the last result of sxe_peer_ip or sxe_local_ip */
    size_t dropped;        /* how many unsent bytes `released` had */

    /* the list of dials that wait for their next attempt; this dial's attempt is due first */
    struct sxe_dial *dials_first;
    struct sxe_dial *dials_last;
    struct sxe_timer *timers; /* the program's timers and signals that run */
    struct sxe_signal *signals;
    /* begins the attempts that are due; sxe-dial.c sets it before a dial waits, so that the loop
     * does not depend on that file */
    void (*check_dials)(void);
};

/* All state of one thread's loop. */
struct sxe__context {
    struct ev_loop *loop;
    struct sxe__tables *tables; /* NULL before sxe_init */
    char *sockets;              /* the pool's array; NULL before sxe_init */
    size_t stride;
    struct sxe_chunks *chunks;
    uint32_t output_chunks; /* how many chunks have unsent output */
    uint32_t output_chunks_max;
    int epoll;
    SXE *reader;   /* the socket whose on_read is running, or NULL */
    SXE *released; /* the socket whose on_close is running, or NULL */

    SXE *staged; /* the socket whose output is in vector[], then in stage[] from stage_open on */
    struct iovec *vector;
    unsigned vector_used;
    uint32_t
        stage_open; /* where the last piece of stage[] begins; only this piece may still grow */
    uint32_t stage_used; /* bytes of stage[] */
    /* while stage_used stays below this limit, sxe_reserve for `staged` may skip its checks; 0: it
     * must check */
    uint32_t stage_limit;
    uint32_t reserved; /* how many bytes after stage_used the last sxe_reserve has promised */
    size_t lent_bytes; /* how many bytes of vector[] are in the program's memory, not in stage[] */
    char *stage;       /* SXE__STAGE_SIZE bytes */
    unsigned held_first; /* the first of held[] that was not sent yet */
    unsigned held_end;   /* the end of the used part of held[] */
    unsigned
        held_max; /* when held[] has this many entries, all are sent; below 2: nothing is held */
    char *stages; /* SXE__HELD_SIZE + SXE__STAGE_SIZE bytes: held output, then stage[] */
    /* room for a chunk's bytes, or a datagram's, after SXE__READ_FRONT NUL bytes */
    char *read_buffer;
    char *read_memory;

    uint32_t deferred_head;
    uint32_t deferred_tail;
    unsigned deferred_count;
    /* keep IDLE sockets in the order of time, because there is a timeout for IDLE, or reap_idle */
    bool orders_idle;
    bool is_busy;           /* libev does not watch our epoll set: poll it in each turn */
    unsigned load_rounds;   /* how many turns in a row found many events */
    unsigned empty_rounds;  /* while busy: how many turns in a row found no event */
    bool is_accept_stopped; /* listeners are not watched: no socket or descriptor was free, or other
                                processes should accept */
    unsigned accept_unasked; /* how many connections to accept even if may_accept returns false */
    unsigned accept_trust;   /* the value that the next sxe__accept_left gives accept_unasked */
    /* how many looks in a row found that a connection left to others still waits */
    unsigned accept_looks;
    /* the last error of accept4 since a connection was accepted; 0: there was none */
    int accept_error;
    unsigned accept_fails; /* how often accept4 failed in a row */

    unsigned number; /* how many sockets sxe_init made */
    unsigned unref;  /* how many sockets the loop does not wait for, see sxe_unref */
    /* how many sockets sxe_register asked for; the members below are for the next sxe_init, too */
    unsigned registered;
    unsigned extra;
    unsigned threads;
    unsigned groups;
    uint16_t group_threads[SXE_WORK_GROUPS_MAX];
    bool is_refused;          /* sxe_configure has refused its argument */
    struct sxe_config wanted; /* the argument of sxe_configure */
    char wanted_later[SXE__CONFIG_LATER];
    struct sxe__workers *workers; /* NULL: no threads are registered */
    struct sxe__name *names;      /* the pool of sxe-resolve.c; NULL: not registered */
    unsigned names_group;         /* the group of works for look-ups */
    unsigned spares;              /* how many attempts of sxe-dial.c may be spare */
    unsigned spares_used;
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

/* more of them: sxe-address-internal.h */
/* Write an IP address or a path to text, "" for no address. Returns text. */
const char *sxe__address_ip(char text[SXE__IP_SIZE], const struct sockaddr_storage *address,
                            socklen_t length);
unsigned short sxe__address_port(const struct sockaddr_storage *address);

/* ---- sxe-socket.c ---- */

extern const struct sxe_io_table sxe__io_socket;

/* Open a non-blocking, close-on-exec socket of s's kind and this family as s->fd. 0 or -errno. */
SXE_MUST_USE int sxe__socket_open(SXE *s, int family);
void sxe__socket_close(SXE *s);
/* the pending error (SO_ERROR) as an errno; 0: there is none */
int sxe__socket_error(const SXE *s);

/* ---- sxe-state.c ---- */

/* Set what epoll reports of s. 0 or -errno. */
SXE_MUST_USE int sxe__watch(SXE *s, enum sxe__watched what);
void sxe__watch_or_end(SXE *s, enum sxe__watched what);

void sxe__move(SXE *s, enum sxe_state to);
SXE *sxe__take(uint8_t kind); /* FREE -> NEW, all fields set; NULL: no socket is free */
void sxe__give(SXE *s);       /* a NEW or CLOSED socket becomes FREE */
/* the socket closes: if the program called sxe_unref, the loop waits for it again */
void sxe__ref(SXE *s);
void sxe__open(SXE *s);           /* s is NEW: set the fields of an open socket */
void sxe__end(SXE *s, int error); /* any state -> CLOSED; error: the reason, or 0 */

/* s is closed, or else this call has no effect: these bytes count for sxe_dropped, beside those of
 * the queue. */
void sxe__note_lost(SXE *s, size_t bytes);

/* Close s after its output is sent. flag: 0 or SXE__LINGER. 0 or -EALREADY. */
SXE_MUST_USE SXE_RETURN sxe__close(SXE *s, unsigned flag);

/* Like sxe__end, but send a reset, for a socket that still has output: the peer must not take a
 * part of the output for the whole, and the kernel must not keep megabytes for a peer that does not
 * read. */
void sxe__reset(SXE *s, int error);

/* A write failed. Reset the connection, unless sxe_io_read_rest asked for what the peer sent before
 * it closed. Then nothing more is written, the socket is read to the peer's end, and on_close
 * reports this error. */
void sxe__fail_writing(SXE *s, int error);

void sxe__drained(SXE *s); /* in CLOSING, when no output is left: the next step */
/* Send our half-close. 0: it is sent; -EAGAIN: call again later; or another -errno. */
SXE_MUST_USE int sxe__io_end(SXE *s);

/* Whether the socket must not be read now: because of sxe_pause, back-pressure, the peer's end, or
 * lack of room for unread bytes. */
bool sxe__is_reading_held(const SXE *s);

/* Call after every change of an open socket: sets its state by its unread and unsent bytes. */
void sxe__settle(SXE *s);

/* The last step of every event: send staged output, call on_close of CLOSED sockets, free them. */
void sxe__finish(void);

/* stop: all listeners stop accepting; start: they accept again. */
void sxe__accept_stop(void);
void sxe__accept_start(void);

/* ---- sxe-queue.c: unsent output in chunks ---- */

bool sxe__queue_is_empty(const SXE *s);
size_t sxe__queue_room(const SXE *s); /* how many bytes the queue can certainly take now */
SXE_MUST_USE int sxe__queue_bytes(SXE *s, const void *data, size_t length); /* 0 or -ENOBUFS */
SXE_MUST_USE int sxe__queue_borrowed(SXE *s, const void *data, size_t length,
                                     SXE_OUT_EVENT_SENT on_sent);
SXE_MUST_USE int sxe__queue_file(SXE *s, int fd, off_t offset, size_t length,
                                 SXE_OUT_EVENT_SENT on_sent);
SXE_MUST_USE int sxe__queue_end(SXE *s); /* add a half-close to the queue */

/* Write as much as the kernel takes, and call on_sent. 0: nothing is left, or the kernel is full,
 * and epoll will report when it is not; 1: the kernel may take more at once; or -errno. */
SXE_MUST_USE int sxe__queue_write(SXE *s);

/* Whether the peer has acknowledged bytes since the last call. If so, the timeout of writing starts
 * again: the kernel takes more output only when a third of its buffer is free, which takes long
 * with a slow reader, although the reader makes progress. The queue must not be empty. */
bool sxe__queue_has_peer_read(SXE *s);
bool
/* Like sxe__queue_has_peer_read, for a CLOSING socket whose output the kernel has taken. */
sxe__queue_is_rest_read(SXE *s);

/* Drop the whole queue, and call each on_sent with `result`. Returns the number of dropped bytes.
 */
size_t sxe__queue_drop(SXE *s, int result);

/* ---- sxe-write.c ---- */

/* Classify the -errno of a write. 0: epoll will report when the write can go on; 1: try again soon;
 * or the same -errno: the connection has failed. */
int sxe__write_failed(int error);
void sxe__write_more(SXE *s);   /* try to write in a deferred call */
void sxe__flush_staged(SXE *s); /* at the end of an event: write what is staged, by one call */
void sxe__unstage(SXE *s);      /* forget the staged output */
/* at the end of an event: hold what is staged, until sxe__send_held */
void sxe__hold_staged(void);
void sxe__send_held(void); /* at the end of a batch of events: one write for each socket */
/* Drop the output of s that is staged or held. Returns the number of its bytes. */
size_t sxe__drop_written(SXE *s);
void sxe__writable(SXE *s);
void sxe__wrote(SXE *s); /* call when the output of s changed: settle s, or go on closing it */

/* ---- sxe-read.c ---- */

void sxe__readable(SXE *s);
void sxe__read_again(SXE *s); /* deliver the unread bytes once more */
void sxe__drop_unread(SXE *s);
void sxe__feed_starved(void); /* give free chunks to STARVED sockets */

/* ---- sxe-connect.c ---- */

void sxe__connected(SXE *s); /* connect(2) has succeeded or failed */
/* The connection is established. listener: it accepted the connection; NULL: we connected. */
void sxe__report_connected(SXE *s, const SXE *listener);

/* ---- sxe-accept.c ---- */

void sxe__acceptable(SXE *listener);
void sxe__accept_left(void); /* look at the connections that were left to other processes */

/* ---- sxe-timer.c ---- */

void sxe__timers_close(void);

/* ---- sxe-loop.c ---- */

SXE_MUST_USE int sxe__loop_open(void);
void sxe__loop_close(void);

/* Call when a socket was made, or when sxe_unref's effect ends: the loop must not end while it
 * waits for a socket. sxe__loop_release does the opposite. */
void sxe__loop_hold(void);
void sxe__loop_release(void);
void sxe__defer(SXE *s);
void sxe__undefer(SXE *s);
void sxe__on_timeout(void *array, unsigned id, void *user);

/* ---- sxe-work.c ---- */

SXE_MUST_USE int sxe__work_open(void); /* call it after sxe__loop_open. 0 or -errno */
void sxe__work_close(void);            /* waits until the running works have ended */
void sxe__resolve_close(void);         /* call it after sxe__work_close */
/* how many threads all groups together registered */
size_t sxe__work_threads(const struct sxe__context *c);

/* ---- sxe-dial.c ---- */

void sxe__dial_close(void); /* forget all dials; call it before the sockets are given back */

#endif
