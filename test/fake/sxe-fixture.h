/* SPDX-License-Identifier: MIT
 *
 * What: both ends of a connection in one test: a plan of lib-sxe with callbacks that push what
 * happens into the event queue, and raw peers that are plain sockets of the same process.
 *
 * Place: any unit test that needs sockets. Its own calls to the system are the real ones: fake-os
 * neither counts them nor makes them fail.
 *
 * Shape: nothing here blocks. A call that waits turns the loop, up to WAIT_TURNS times of 1 ms (of
 * the clock that the loop sees, real or fake), so that the library's end goes on meanwhile.
 * EXPECT... and PEER_EXPECT... fail at the line of the test.
 *
 * Example:
 *     plan_start(10);
 *     SXE *listener = listen_tcp(push_read);
 *     int peer = peer_connect(sxe_local_port(listener));
 *     const void *accepted = EXPECT("connected", NULL, 0)->object;
 *     peer_send(peer, "hi", 2);
 *     EXPECT_READ(accepted, "hi");
 *     close(peer);
 *     EXPECT("close", accepted, 0);
 *     plan_stop();
 */
#ifndef SXE_FIXTURE_H
#define SXE_FIXTURE_H

#include <errno.h>

#include "event-queue.h"
#include "sxe.h"

#define WAIT_TURNS 2000

/* ---- The plan ---- */

/* sxe_register and sxe_init, on the default loop. The log is silent but for fatal lines. */
void plan_start(unsigned connections);
void plan_start_with(unsigned connections, const struct sxe_config *config);

/* Call sxe_fini and destroy the default loop. Fails if an event was not popped, or if a descriptor
 * is open that was not open before plan_start. */
void plan_stop(void);

/* ---- Turning the loop ---- */

void turn(unsigned times); /* turn the loop without waiting */
void pump(void);           /* turn the loop until an event is in the queue, or for WAIT_TURNS */

/* ---- Callbacks ---- */

void push_connected(SXE *s); /* "connected", 0 */
/* pushes "read", length and the unread bytes, and consumes them */
void push_read(SXE *s, int length);
void push_read_keep(SXE *s, int length);  /* like push_read, but leaves the bytes unread */
void push_close(SXE *s);                  /* "close", sxe_error() */
void push_sent(SXE *s, int result);       /* "sent", result */
void push_deferred(SXE *s);               /* "deferred", 0 */
void push_timer(struct sxe_timer *timer); /* "timer", 0; the object is its user */

/* A listener at 127.0.0.1 with these callbacks, on a port of the system's choice. */
SXE *listen_tcp(SXE_IN_EVENT_READ read);

/* Connect a peer to the listener. Returns the listener's end of the connection; "connected" is
 * popped. */
SXE *accept_peer(SXE *listener, int *peer);

/* ---- The next event that is expected ---- Pump; then the oldest event in the queue must be the
 * given one. object NULL: any object will do. */

#define EXPECT(name, object, number) expect__event(__FILE__, __LINE__, name, object, number)
#define EXPECT_READ(object, text)    expect__read(__FILE__, __LINE__, object, text)
#define EXPECT_NOTHING()             expect__nothing(__FILE__, __LINE__) /* none for 20 turns */

const struct event *expect__event(const char *file, int line, const char *name, const void *object,
                                  long number);
void expect__read(const char *file, int line, const void *object, const char *text);
void expect__nothing(const char *file, int line);

/* ---- Raw peers: descriptors, close them with close() ---- */

int peer_listen(unsigned short *port); /* listens at 127.0.0.1, at a free port */
int peer_accept(int listener);
int peer_connect(unsigned short port);

void peer_send(int fd, const void *data, size_t length); /* sends all bytes */
void peer_shutdown(int fd);                              /* half-close */
void peer_reset(int fd);                                 /* closes the descriptor with a reset */

/* Read until there are length bytes, or the end. Returns the number of bytes. */
size_t peer_receive(int fd, void *data, size_t length);

/* Drop all bytes that the kernel has for the peer. Returns 0 if an orderly end follows, else an
 * errno. */
int peer_drain(int fd);

#define PEER_EXPECT(fd, text) peer__expect(__FILE__, __LINE__, fd, text)
#define PEER_EXPECT_END(fd)   peer__expect_end(__FILE__, __LINE__, fd, 0)
#define PEER_EXPECT_RESET(fd) peer__expect_end(__FILE__, __LINE__, fd, ECONNRESET)
#define PEER_EXPECT_SILENCE(fd) \
    peer__expect_end(__FILE__, __LINE__, fd, EAGAIN) /* 20 turns long \
                                                                                  */

void peer__expect(const char *file, int line, int fd, const char *text);
void peer__expect_end(const char *file, int line, int fd, int error);

#endif
