/* SPDX-License-Identifier: MIT
 *
 * What: the datagrams between a worker of another rank and the process that stands for it at
 * rank 0. Place: envoy.c and agent.c write and read them, relay.c carries them.
 *
 * Shape: a type, what belongs to it, and bytes; a datagram has no more of them than it needs.
 *
 *     rank 0                                             rank r
 *       START  --------------------------------------->    fork a worker of that plan
 *              <---------------------------------------  NAME    of its machine
 *              <---------------------------------------  RESULT  what it has counted since the last
 *                                                                one; several times a second, so
 *                                                                its lack says that none is there
 *              <---------------------------------------  SAID    READY, MARKED, DONE: worker.h
 *       CLOCK  --> relay PING <------------> PONG relay
 *              <-- relay                                         how far its clock is ahead
 *       TELL   --------------------------------------->    GO, MARK, RATE, STOP
 *       ALIVE  --------------------------------------->    once a second
 *              <---------------------------------------  MARK, SCRIPT   as RESULT, before SAID
 *              <---------------------------------------  GONE    it did not end well, and how
 *       END    relay ---------------------------------> relay    the run is over
 *              relay <--------------------------------- BYE
 *
 * Limits: both ends are the same program on the same kind of machine: structures are sent as they
 * are, and NAME says if they differ.
 */
#ifndef HTTP_FRAME_H
#define HTTP_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "worker.h"

enum http_frame_type {
    HTTP_FRAME_START = 1,
    HTTP_FRAME_TELL,
    HTTP_FRAME_ALIVE,
    HTTP_FRAME_NAME,
    HTTP_FRAME_SAID,
    HTTP_FRAME_RESULT,
    HTTP_FRAME_MARK,
    HTTP_FRAME_SCRIPT,
    HTTP_FRAME_GONE,
    HTTP_FRAME_CLOCK,
    HTTP_FRAME_PING,
    HTTP_FRAME_PONG,
    HTTP_FRAME_END,
    HTTP_FRAME_BYE
};

#define HTTP_FRAME_BYTES 16384

/* What of a trial's plan is not on the command line. */
struct http_start {
    double rate;
    double rate_end;
    uint64_t duration_ns;
    uint64_t seed;
    uint32_t shard;
    uint32_t shards;
};

/* How far the clock of a rank is ahead of that of rank 0; the error is at most that. */
struct http_clock {
    int64_t ahead_ns;
    uint64_t error_ns;
};

struct http_frame {
    uint32_t type;           /* enum http_frame_type */
    uint32_t number;         /* PING, PONG: which; NAME: of the build, http_frame_build() */
    struct http_clock clock; /* TELL, CLOCK */
    union {
        struct http_start start;
        struct http_message message; /* TELL, SAID */
        uint64_t time_ns;            /* PONG: its clock */
    } u;
    char bytes[HTTP_FRAME_BYTES]; /* NAME, GONE: a text; RESULT, MARK, SCRIPT: delta.h */
};

/* A frame of that type, and nothing in it, is so long; with bytes so much more. */
#define HTTP_FRAME_HEAD offsetof(struct http_frame, bytes)

/* Differs where structures do. */
uint32_t http_frame_build(void);

/* Write the frame with so many of its bytes: true, or errno says why not. */
bool http_frame_send(int channel, const struct http_frame *frame, size_t bytes);

/* Read one, without waiting: the number of its bytes. -1: there is none now; -2: there will be none
 * any more, or what came is no frame. */
int http_frame_receive(int channel, struct http_frame *frame);

/* A text of at most HTTP_FRAME_BYTES - 1 bytes. */
bool http_frame_send_text(int channel, enum http_frame_type type, const char *text);
const char *http_frame_text(struct http_frame *frame, int bytes);

/* Send a descriptor of this process to another; and receive one: -1: there is none. */
bool http_frame_send_descriptor(int channel, int descriptor);
int http_frame_receive_descriptor(int channel);

#endif
