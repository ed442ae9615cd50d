/* SPDX-License-Identifier: MIT
 *
 * What: tcp, udp and unix sockets on a libev loop, for programs with tens of thousands of them.
 * Everything is reserved before the loop starts; later calls allocate nothing, and running out is
 * an ordinary result.
 *
 * Place: programs call it; it calls them back. It uses sxe-buffer, sxe-pool, sxe-log, libev. Each
 * thread has its own context with all state; a socket belongs to the thread that made it.
 *
 * Shape: a socket is an element of a pool, and passes through these states:
 *
 *     FREE -> NEW -> LISTENING -----------------------.
 *              \--> CONNECTING -> IDLE <-> READING     \
 *                       |          ^  \  /    ^         \
 *      accept ----------'          |  WRITING |          > CLOSED -> FREE
 *                                  HANDLING <-'         /    on_close ran
 *                       any of them -> CLOSING --------'
 *
 *     IDLE      no bytes are unread or unsent       READING  unread bytes are kept in a chunk
 *     HANDLING  the program paused it               WRITING  unsent output is kept in chunks
 *     STARVED   no chunk is free for unread bytes   CLOSING  the program closed it, output drains
 *     CLOSED    waits for the end of this event
 *
 * One event: epoll -> one recv(2) into the loop's buffer -> on_read(), which looks at SXE_BUF() and
 * calls sxe_write(), which only appends -> one send(2) at the end of the event, or of a few events
 * that came together. Bytes that on_read leaves unread are kept in a borrowed chunk; output that
 * the kernel does not take is kept in other chunks.
 *
 * Rules: 1 no callback runs inside a call that the program makes. 2 on_close runs exactly once for
 * each socket that was connecting or connected, whoever closed it, and is the socket's last
 * callback; in it sxe_error() tells the reason. 3 closing twice, or in any callback, is harmless; a
 * socket and its buffer stay valid until its event ends. 4 new sockets get the ids 0, 1, 2 ...;
 * when all ids were used, a new socket gets the id that has been free longest. 5 a handle may be
 * kept longer than its socket lives.
 *
 * Limits: a stream is read in pieces of a chunk (16 KiB by default); while its chunk is full of
 * unread bytes, it is not read further. Output above output_pause stops reading; above output_max
 * sxe_write refuses. Listeners stop accepting while no socket or no file descriptor is free.
 *
 * Example:
 *     static void hello(SXE *this, int length)
 *     {
 *         SXE_UNUSED_PARAMETER(length);
 *         SXE_BUF_CLEAR(this);
 *         SXE_WRITE_LITERAL(this, "hello\n");
 *     }
 *     int main(void)
 *     {
 *         SXE *listener;
 *
 *         sxe_register(1000, 0);
 *         if (sxe_init() < 0)
 *             return 1;
 *         listener = sxe_new_tcp(NULL, "127.0.0.1", 9090, NULL, hello, NULL);
 *         return sxe_listen(listener) < 0 || sxe_run() < 0;
 *     }
 */
#ifndef SXE_H
#define SXE_H

#include <ev.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "sxe-buffer.h"
#include "sxe-log.h"
#include "sxe-pool.h"
#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sxe SXE;
typedef int SXE_RETURN; /* 0, or -errno */
#define SXE_RETURN_OK 0

typedef void (*SXE_IN_EVENT_CONNECTED)(SXE *);
/* length: how many bytes arrived since the last call. If the call only shows unread bytes again, it
 * is the number of unread bytes. 0: see sxe_set_half_close; -1: see sxe_watch_end. */
typedef void (*SXE_IN_EVENT_READ)(SXE *, int length);
typedef void (*SXE_IN_EVENT_CLOSE)(SXE *);
/* result: 0: the kernel has taken all bytes; -errno: the socket closed first. */
typedef void (*SXE_OUT_EVENT_SENT)(SXE *, int result);

enum sxe_state {
    SXE_STATE_FREE = 0,
    SXE_STATE_NEW,
    SXE_STATE_LISTENING,
    SXE_STATE_CONNECTING,
    SXE_STATE_IDLE,
    SXE_STATE_READING,
    SXE_STATE_HANDLING,
    SXE_STATE_WRITING,
    SXE_STATE_STARVED,
    SXE_STATE_CLOSING,
    SXE_STATE_CLOSED,
    SXE_STATES
};

/* ---- The plan ---- */

/* Functions for listening sockets that outlive this process: a parent process holds them, and hands
 * them to the next child, so that no connection is refused in between. Not for UDP: all UDP sockets
 * that one user's processes with such a table bind to a port share that port, and all datagrams of
 * one sender go to the same socket. Each function may be NULL. */
struct sxe_listeners {
    /* Returns a socket that is bound to this address, listens, does not block and is close-on-exec;
     * sxe_listen then owns it. -1: there is none, and sxe_listen opens one. */
    int (*find)(const struct sockaddr *address, socklen_t length);
    /* Called when sxe_listen opened fd itself; fd is borrowed. address is the one that the program
     * asked for, so its port may be 0. */
    void (*keep)(const struct sockaddr *address, socklen_t length, int fd);
    /* Called before each connection is accepted; NULL: accept all. False: leave the connection to
     * another process that accepts from these sockets. The listeners then rest. Each millisecond
     * may_accept is called again. If no process has accepted the connection after 20 ms, it is
     * accepted without asking; after one ms more 2 are, then 4, and so on, until may_accept returns
     * true or another process accepts. */
    bool (*may_accept)(void);
};

/* Open a socket that is bound to this address (AF_INET, AF_INET6, or AF_UNIX, where a stale socket
 * file is removed), for a parent that holds listening sockets. The socket does not listen until
 * sxe_listen. Needs no sxe_init. Returns the descriptor, which is non-blocking, close-on-exec and
 * owned by the caller; or -errno. */
SXE_PUBLIC int sxe_bind_listener(const struct sockaddr *address, socklen_t length);

/* The configuration of one loop. Start from SXE_CONFIG_DEFAULT; 0 means the default in each field.
 */
struct sxe_config {
    struct ev_loop *loop; /* default: ev_default_loop(EVFLAG_AUTO) */
    /* bytes of a chunk, also the most that one read of a stream takes; 16384 */
    uint32_t chunk_size;
    /* default: two for each socket, plus 64; a chunk that is never used costs no memory */
    uint32_t chunks;
    uint32_t output_pause; /* a socket with more unsent bytes than this is not read; 65536 */
    uint32_t output_max; /* sxe_write refuses to go above this many unsent copied bytes; 1048576 */
    uint32_t backlog;    /* the backlog for listen(2); 4096 */
    uint32_t accept_batch; /* how many connections one event accepts at most; 64 */
    /* The longest time in each state; 0: no limit, except for CLOSING: 5000. After that time the
     * socket closes with ETIMEDOUT, by a reset if output is unsent. The time of IDLE, WRITING and
     * CLOSING begins again with progress, that is, when the peer's kernel acknowledges output. The
     * time of READING begins again only when the program consumes bytes: so a sender that sends a
     * byte now and then is closed. The time counts from the start of the loop's turn in which the
     * state began. */
    uint32_t timeout_ms[SXE_STATES];
    /* if no socket is free, close the one that has been IDLE longest, to accept a connection */
    bool reap_idle;
    bool lazy_threads; /* the first sxe_work_submit starts the threads, instead of sxe_init */
    const struct sxe_listeners *listeners; /* borrowed; NULL: none */
};
#define SXE_CONFIG_DEFAULT                              \
    {                                                   \
        NULL, 0, 0, 0, 0, 0, 0, {0}, false, false, NULL \
    }

/* Register what a part of the program needs; call this before sxe_init, any number of times.
 * connections: how many sockets, listeners included; the numbers of all calls are added up.
 * extra_size: how many bytes sxe_extra gives each socket; the largest number counts. */
SXE_PUBLIC void sxe_register(unsigned connections, unsigned extra_size);

/* Replace the configuration of this thread's loop; call this before sxe_init. *config is copied. If
 * the program was built for a newer libsxe, and sets members that this one lacks, the log says so,
 * the configuration becomes the default one, and sxe_init returns -E2BIG. */
SXE_PUBLIC void sxe_configure_sized(const struct sxe_config *config, size_t size);
static inline void
sxe_configure(const struct sxe_config *config_)
{
    sxe_configure_sized(config_, sizeof(*config_));
}

/* The present configuration, for a part of the program that wants to change only some fields of it.
 * Before sxe_init it is as sxe_configure got it; after sxe_init it is the one in force, with the
 * defaults filled in. Never NULL; valid in this thread until the next sxe_configure, sxe_init or
 * sxe_fini. */
SXE_PUBLIC const struct sxe_config *sxe_get_config(void);

/* Allocate everything registered, and raise the soft limit of file descriptors to the hard one.
 * -EINVAL: nothing or too much is registered, or sxe_init was called already; -ENOMEM; -E2BIG: see
 * sxe_configure; -errno of epoll_create1(2) or eventfd(2). The log names the cause; a failure
 * changes nothing. */
SXE_PUBLIC SXE_RETURN sxe_init(void);

/* Close everything without callbacks and free it; sxe_register may follow. Not inside a callback.
 * -EINVAL: sxe_init was not called, or failed; what was registered and configured is forgotten even
 * then. */
SXE_PUBLIC SXE_RETURN sxe_fini(void);

/* Print what sxe_init reserves (or reserved): a line with the bytes of each pool, and the total,
 * which is returned. The system provides memory only when it is used. If out is NULL, nothing is
 * printed. */
SXE_PUBLIC size_t sxe_plan_print(FILE *out);

/* Run the loop until sxe_stop or nothing is left to wait for: 0, or -EINVAL before sxe_init. The
 * loop waits for each socket until it is closed, except after sxe_unref. Programs may also run
 * libev's loop themselves. */
SXE_PUBLIC SXE_RETURN sxe_run(void);
SXE_PUBLIC void sxe_stop(void);
SXE_PUBLIC struct ev_loop *sxe_loop(void); /* this thread's loop; NULL before sxe_init */

/* ---- Making and connecting sockets ---- `from` is the socket that log lines are about, or NULL.
 * An ip is IPv4 or IPv6 text, "" or "INADDR_ANY" for any. A result of NULL sets errno: ENFILE: no
 * socket is free; EINVAL: ip is no address, or the path is empty; ENAMETOOLONG: the path has more
 * than 107 bytes. user_data starts as NULL. */
SXE_PUBLIC SXE *sxe_new_tcp(SXE *from, const char *ip, unsigned short port,
                            SXE_IN_EVENT_CONNECTED connected, SXE_IN_EVENT_READ read,
                            SXE_IN_EVENT_CLOSE close);

/* The path is borrowed until sxe_listen or sxe_connect_unix has returned. "@name" is an abstract
 * name.
 */
SXE_PUBLIC SXE *sxe_new_unix(SXE *from, const char *path, SXE_IN_EVENT_CONNECTED connected,
                             SXE_IN_EVENT_READ read, SXE_IN_EVENT_CLOSE close);

/* Make a socket for datagrams. Each on_read gets one whole datagram, even one larger than
 * chunk_size; the datagram is gone when on_read returns. sxe_listen opens the socket at once. */
SXE_PUBLIC SXE *sxe_new_udp(SXE *from, const char *ip, unsigned short port, SXE_IN_EVENT_READ read);

/* Accept connections (or datagrams). Accepted sockets inherit callbacks, user data and options. A
 * unix socket file that no process has open any more is replaced; otherwise the result is
 * -EADDRINUSE. Returns 0, or -errno: then the socket is still NEW. */
SXE_PUBLIC SXE_RETURN sxe_listen(SXE *this_);

/* Close this loop's listeners, but not its UDP sockets, so that only other loops and processes
 * accept. HTTP servers own their listeners: for them call sxe_http_stop or sxe_http_drain first. */
SXE_PUBLIC void sxe_stop_listening(void);

/* Accept one connection and become that connection: connected is called with the same SXE. */
SXE_PUBLIC SXE_RETURN sxe_listen_oneshot(SXE *this_);

/* Begin to connect to this ip and port, from the address given at creation. connected is called
 * later, never inside this call; if connecting fails later, on_close is called. 0; -errno: the
 * socket is still NEW. */
SXE_PUBLIC SXE_RETURN sxe_connect(SXE *this_, const char *ip, unsigned short port);
SXE_PUBLIC SXE_RETURN sxe_connect_unix(SXE *this_);

/* From now on sxe_run does not wait for this socket, except while it closes. Its callbacks are
 * called as before while something else keeps the loop running. NULL or a closed socket: no effect.
 */
SXE_PUBLIC void sxe_unref(SXE *this_);

/* Close after the written bytes are sent. 0, or -EALREADY. */
SXE_PUBLIC SXE_RETURN sxe_close(SXE *this_);

/* Like sxe_close, but wait (for timeout_ms[CLOSING] at most) until the peer closed too, and drop
 * the bytes that the peer still sends: closing at once while unread bytes arrive would make the
 * kernel reset the connection, and the peer would lose the reply. While more than 64 KiB are
 * unacknowledged the time is longer, see docs/sxe.md, "Closing". */
SXE_PUBLIC SXE_RETURN sxe_close_lingering(SXE *this_);

/* Close at once with a reset; unsent output is dropped. */
SXE_PUBLIC SXE_RETURN sxe_abort(SXE *this_);

/* ---- Reading ---- */

/* Bytes that on_read has seen and not consumed stay unread, see SXE_BUF below. This call consumes
 * the first `length` of them; on_read sees the others again with the next event. */
SXE_PUBLIC void sxe_consume(SXE *this_, unsigned length);

/* Stop reading this socket: on_read is not called until sxe_resume. A reset by the peer still ends
 * the socket. The peer's close or half-close is reported only after sxe_resume, because the peer
 * may still want its reply. It is reported at once if sxe_watch_end asked for that, or if the peer
 * answers our output with a reset. */
SXE_PUBLIC void sxe_pause(SXE *this_);

/* Report the peer's close or half-close also while this socket is paused: on_read with length -1,
 * once or several times in each pause, never inside sxe_pause. Bytes before that end may still be
 * unread; this call of on_read cannot consume them. Accepted sockets inherit the listener's
 * setting. */
SXE_PUBLIC void sxe_watch_end(SXE *this_, bool wanted);

enum sxe_resume {
    SXE_RESUME_WHEN_MORE = 0, /* call on_read when more bytes arrive */
    /* like WHEN_MORE; also call on_read in this turn of the loop if bytes are unread. If the peer
     * has ended, such calls go on as long as each consumes some bytes and asks for the next one. */
    SXE_RESUME_IMMEDIATE = 1
};
/* Read this socket again after sxe_pause. No effect on a closed socket. On a socket that is not
 * paused, SXE_RESUME_IMMEDIATE has on_read called for unread bytes, and SXE_RESUME_WHEN_MORE has no
 * effect. */
SXE_PUBLIC void sxe_resume(SXE *this_, enum sxe_resume how);

/* Report the peer's half-close by a call of on_read with length 0, instead of closing the socket.
 * Writing stays possible; the program closes the socket. Not wanted, as by default: the socket then
 * closes as by sxe_close, so that the written bytes are sent. */
SXE_PUBLIC void sxe_set_half_close(SXE *this_, bool wanted);

/* ---- Writing ----
 * These calls append to the loop's 64 KiB output buffer, and call the kernel only if it is full.
 * One send(2) follows at the end of the event, or of up to 16 events that came together, if they
 * are quick enough that none waits for much longer than 100 us. -ENOTCONN: not connected; -ENOBUFS:
 * output_max reached or no chunk free. After an error no byte was accepted. */
SXE_PUBLIC SXE_RETURN sxe_write(SXE *this_, const void *data, unsigned length); /* copies data */
SXE_PUBLIC SXE_RETURN sxe_write_static(SXE *this_, const void *data,
                                       size_t length); /* borrows data for ever */

/* Reserve length bytes of the loop's output buffer, so that the program composes its output there,
 * and sxe_write need not copy it. Fill them before any other call that writes. NULL: the socket
 * takes no output, earlier output waits, or the buffer or output_max has too little room. Then call
 * sxe_write, which finds room or returns the error. */
SXE_PUBLIC void *sxe_reserve(SXE *this_, unsigned length);

/* Write the first `length` of the reserved bytes; the rest is no longer reserved. Call it once for
 * each reserve, or not at all. A length above the reserved one is a programming error. */
SXE_PUBLIC void sxe_commit(SXE *this_, unsigned length);

/* Borrows data until on_sent is called: once, later, when the kernel has taken all of data or the
 * socket has closed. Any length; any number of sends may be in progress. Length 0 is a mark:
 * on_sent comes when the kernel has all bytes written before it, at the earliest at the end of this
 * event. */
SXE_PUBLIC SXE_RETURN sxe_send(SXE *this_, const void *data, size_t length,
                               SXE_OUT_EVENT_SENT on_sent);

/* Send `length` bytes of a file from `offset` on, by sendfile(2). fd is borrowed until on_sent
 * (which may be NULL). A file that ends early closes the socket: on_sent gets -ENODATA. -EBADF: fd
 * is negative. */
SXE_PUBLIC SXE_RETURN sxe_sendfile(SXE *this_, int fd, off_t offset, size_t length,
                                   SXE_OUT_EVENT_SENT on_sent);

/* Half-close: send the end of our output after the written bytes. */
SXE_PUBLIC SXE_RETURN sxe_shutdown(SXE *this_);

/* Send one datagram from a udp socket. 0 or -errno; -EAGAIN: the kernel's buffer is full, and the
 * datagram was not sent. */
SXE_PUBLIC SXE_RETURN sxe_write_to(SXE *this_, const void *data, unsigned length,
                                   const struct sockaddr *to, socklen_t to_length);

/* How many copied bytes the kernel has not accepted yet. */
SXE_PUBLIC unsigned sxe_unsent(const SXE *this_);

/* Call it in on_close: how many bytes were unsent when the socket ended, whether copied, borrowed
 * or of files. */
SXE_PUBLIC size_t sxe_dropped(const SXE *this_);

/* ---- Looking at a socket ---- */
/* The state that the socket is in; and the name of a state. */
SXE_PUBLIC enum sxe_state sxe_get_state(const SXE *this_);
SXE_PUBLIC const char *sxe_state_to_string(unsigned state);
/* the errno that closed the socket; 0: an orderly close */
SXE_PUBLIC int sxe_error(const SXE *this_);
SXE_PUBLIC int sxe_fd(const SXE *this_); /* the file descriptor, borrowed; -1: there is none */
SXE_PUBLIC void *sxe_extra(SXE *this_);  /* extra_size bytes, zero for each new socket */

/* An IPv4 or IPv6 address as text, or a path; "" when there is none. Asks the system; the text is
 * valid until the next of these calls in this thread. The peer of a udp socket is the sender of the
 * last datagram that came in this thread, if it came to this socket. The peer of a connection that
 * was reset is known only in the connected callback. */
SXE_PUBLIC const char *sxe_peer_ip(const SXE *this_);
SXE_PUBLIC unsigned short sxe_peer_port(const SXE *this_);
SXE_PUBLIC const char *sxe_local_ip(const SXE *this_);
SXE_PUBLIC unsigned short sxe_local_port(const SXE *this_);

/* The peer's address as bytes: copies it, and returns its length; 0: there is none. A program that
 * needs it often asks once, in connected. */
SXE_PUBLIC socklen_t sxe_get_peer(const SXE *this_, struct sockaddr_storage *address);

/* The sender's address of the last datagram, for sxe_write_to. NULL: the last datagram that came in
 * this thread was another socket's, or none came. */
SXE_PUBLIC const struct sockaddr *sxe_peer_address(const SXE *this_, socklen_t *length);

/* A number for this socket that no other socket ever gets. sxe_from_handle returns its socket, or
 * NULL if that has been freed (after its on_close). After sxe_fini no handle has a socket. */
SXE_PUBLIC uint64_t sxe_handle(const SXE *this_);
SXE_PUBLIC SXE *sxe_from_handle(uint64_t handle);

/* How many sockets of this thread are in a state; 0 before sxe_init. */
SXE_PUBLIC unsigned sxe_number_in_state(enum sxe_state state);

/* Whether sxe_close_lingering closed this socket and it waits only for the peer's close: the peer's
 * kernel acknowledged all output, and no bytes of the peer are unread. */
SXE_PUBLIC bool sxe_is_lingering(const SXE *this_);

/* How many sockets in this state the loop waits for (see sxe_unref), without those for which
 * sxe_is_lingering is true. Looks at each socket once. */
SXE_PUBLIC unsigned sxe_number_waited_for(enum sxe_state state);

/* ---- Later: deferred calls, timers, signals, all in the loop ---- */

/* Call fn once, before the loop waits again, unless the socket closes first. -EBUSY: a call for
 * this socket is pending. */
SXE_PUBLIC SXE_RETURN sxe_defer(SXE *this_, void (*fn)(SXE *));

struct sxe_timer {
    ev_timer ev;                          /* private */
    struct sxe_timer *next;               /* private: the timers that run */
    struct sxe_timer **at;                /* private */
    double after;                         /* ro */
    void (*on_timer)(struct sxe_timer *); /* ro */
    void *user;                           /* rw */
};
/* after and repeat are seconds; repeat 0: fire once; below 0 or NaN counts as 0. A timer never
 * fires early. sxe_timer_start gives a stopped timer its whole time, and does nothing if the timer
 * runs. sxe_fini stops timers and signals; before sxe_init and after sxe_fini they are not started:
 * a line of the log says so. */
SXE_PUBLIC void sxe_timer_init(struct sxe_timer *timer, void (*on_timer)(struct sxe_timer *),
                               double after, double repeat);
SXE_PUBLIC void sxe_timer_start(struct sxe_timer *timer);
SXE_PUBLIC void sxe_timer_stop(struct sxe_timer *timer);

struct sxe_signal {
    ev_signal ev;                           /* private */
    struct sxe_signal *next;                /* private: the watches that run */
    struct sxe_signal **at;                 /* private */
    void (*on_signal)(struct sxe_signal *); /* ro */
    void *user;                             /* rw */
};
/* Call on_signal in the loop after each signal of this number. The watch must not run: stop it
 * before you start it again. It does not keep the loop alive. When the last watch of a signal
 * stops, the signal's action is that from before the first. */
SXE_PUBLIC void sxe_signal_start(struct sxe_signal *watch, int signal_number,
                                 void (*on_signal)(struct sxe_signal *));
SXE_PUBLIC void sxe_signal_stop(struct sxe_signal *watch);

/* ---- The socket ---- */

struct sxe_io_table;    /* the functions by which bytes get in and out, see sxe-io.h */
struct sxe_io_follower; /* learns of the socket's end, see sxe-io.h */

struct sxe {
    uint32_t id;                         /* ro: index in the pool */
    int fd;                              /* private */
    uint8_t kind;                        /* private */
    uint8_t watched;                     /* private: which events epoll reports */
    uint8_t state;                       /* private: a copy of the socket's state in the pool */
    bool corked : 1;                     /* private: more of a file follows, so the cork is set */
    bool watches_end : 1;                /* private: see sxe_watch_end */
    bool has_unshown : 1;                /* private: unread bytes that on_read has not seen */
    bool is_unref : 1;                   /* private: see sxe_unref */
    bool io_more : 1;                    /* private: see sxe-io.h */
    bool io_owes : 1;                    /* private: see sxe-io.h */
    bool io_shakes : 1;                  /* private: see sxe-io.h */
    bool reads_rest : 1;                 /* private: see sxe_io_read_rest */
    bool io_lingers : 1;                 /* private: see sxe-io.h */
    bool is_paired : 1;                  /* private: see sxe_io_pair */
    uint16_t flags;                      /* private */
    int16_t error;                       /* private */
    void *user_data;                     /* rw */
    SXE_IN_EVENT_CONNECTED on_connected; /* ro */
    SXE_IN_EVENT_READ on_read;           /* rw */
    SXE_IN_EVENT_CLOSE on_close;         /* rw */
    const struct sxe_io_table *io;       /* private */
    struct sxe_io_follower *follower;    /* private: NULL if there is none */
    struct sxe_buffer in;                /* ro: holds the unread bytes */
    union {                              /* private, all members */
        struct {
            union {
                void (*deferred)(SXE *);
                size_t lost; /* CLOSED: how many unsent bytes were not in the output queue */
            };
            uint32_t deferred_next;
            uint32_t deferred_prev;
            /* how many copied bytes are in the output queue, see sxe-queue.c */
            uint32_t out_copied;
            uint32_t out_head;
            uint32_t out_tail;
            uint32_t out_offset;
        } open;
        unsigned char address[28]; /* NEW: the address to bind to */
        const char *path;          /* NEW: the path to listen at or connect to */
    } u;
};
/* The names of 2010 for a socket's buffer, id, data and addresses. */
#define SXE_BUF(this)               sxe_buffer_data(&(this)->in)
#define SXE_BUF_USED(this)          ((int)sxe_buffer_length(&(this)->in)) /* signed, as in 2010 */
#define SXE_BUF_ROOM(this)          sxe_buffer_room(&(this)->in)
#define SXE_BUF_CLEAR(this)         sxe_consume((this), (unsigned)SXE_BUF_USED(this))
#define SXE_BUF_STRNSTR(this, text) sxe_buffer_find(&(this)->in, (text), __builtin_strlen(text))
#define SXE_BUF_STRNCASESTR(this, text) \
    sxe_buffer_find_nocase(&(this)->in, (text), __builtin_strlen(text))
#define SXE_ID(this)                  ((this)->id)
#define SXE_USER_DATA(this)           ((this)->user_data)
#define SXE_USER_DATA_AS_INT(this)    ((int)(intptr_t)(this)->user_data)
#define SXE_PEER_ADDR(this)           sxe_peer_ip(this)
#define SXE_PEER_PORT(this)           sxe_peer_port(this)
#define SXE_LOCAL_ADDR(this)          sxe_local_ip(this)
#define SXE_LOCAL_PORT(this)          sxe_local_port(this)
#define SXE_WRITE_LITERAL(this, text) sxe_write((this), (text), SXE_LITERAL_LENGTH(text))
#define SXE_IP_ADDR_ANY               "INADDR_ANY"

#ifdef __cplusplus
}
#endif

#endif
