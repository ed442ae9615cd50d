/* SPDX-License-Identifier: MIT
 *
 * What: the datagrams between a rank's agent and its envoy at rank 0. Place: envoy.c and agent.c
 * write and read these frames; relay.c carries them.
 *
 * Shape: a frame has a type, members that this type uses, and bytes. A datagram contains only as
 * many of the bytes as are used.
 *
 *     rank 0                                             rank r
 *       START  --------------------------------------->    fork a worker of that plan
 *              <---------------------------------------  NAME    of its machine
 *              <---------------------------------------  RESULT  changes of its counts since the
 *                                                                last RESULT; several times a
 *                                                                second, so silence means lost
 *              <---------------------------------------  SAID    READY, MARKED, DONE: worker.h
 *       CLOCK  --> relay PING <------------> PONG relay
 *              <-- relay                                         how far its clock is ahead
 *       TELL   --------------------------------------->    GO, MARK, RATE, STOP
 *       ALIVE  --------------------------------------->    once a second
 *              <---------------------------------------  MARK, SCRIPT   as RESULT, before SAID
 *              <---------------------------------------  GONE    the worker failed, and how
 *       END    relay ---------------------------------> relay    the run is over
 *              relay <--------------------------------- BYE
 *
 * Limits: structures are sent as they are in memory, so both ends must be the same program on the
 * same kind of machine. NAME has a number by which rank 0 sees whether they are.
 */
#ifndef LOAD_FRAME_H
#define LOAD_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "worker.h"

enum load_frame_type {
    LOAD_FRAME_START = 1,
    LOAD_FRAME_TELL,
    LOAD_FRAME_ALIVE,
    LOAD_FRAME_NAME,
    LOAD_FRAME_SAID,
    LOAD_FRAME_RESULT,
    LOAD_FRAME_MARK,
    LOAD_FRAME_SCRIPT,
    LOAD_FRAME_GONE,
    LOAD_FRAME_CLOCK,
    LOAD_FRAME_PING,
    LOAD_FRAME_PONG,
    LOAD_FRAME_END,
    LOAD_FRAME_BYE
};

#define LOAD_FRAME_BYTES 16384

/* The members of the plan that differ between trials, or between ranks. */
struct load_start {
    double rate;
    double rate_end;
    uint64_t duration_ns;
    uint64_t seed;
    uint32_t shard;
    uint32_t shards;
};

/* How far a rank's clock is ahead of rank 0's clock. The error of this is at most error_ns. */
struct load_clock {
    int64_t ahead_ns;
    uint64_t error_ns;
};

struct load_frame {
    uint32_t type;           /* enum load_frame_type */
    uint32_t value;          /* PING, PONG: the number of the round; NAME: load_frame_build() */
    struct load_clock clock; /* only in TELL and CLOCK */
    union {
        struct load_start start;
        struct load_message message; /* only in TELL and SAID */
        uint64_t time_ns;            /* in PONG: the time by the clock of its sender */
    } u;
    /* in NAME and GONE: a text; in RESULT, MARK and SCRIPT: changed blocks, as load_delta_take
     * writes them */
    char bytes[LOAD_FRAME_BYTES];
};

/* The length of a frame without bytes. */
#define LOAD_FRAME_HEAD offsetof(struct load_frame, bytes)

/* A number that differs between two builds if their structures differ. */
uint32_t load_frame_build(void);

/* Send a frame with `bytes` of its bytes. False: errno says why it was not sent. */
bool load_frame_send(int channel, const struct load_frame *frame, size_t bytes);

/* Receive a frame, without waiting. Returns how many bytes it has. -1: no frame has come; -2: the
 * channel is closed, or a datagram came that is no frame. */
int load_frame_receive(int channel, struct load_frame *frame);

/* load_frame_send_text sends a text of at most LOAD_FRAME_BYTES - 1 bytes as the bytes of a frame;
 * load_frame_text returns the text of a received frame. */
bool load_frame_send_text(int channel, enum load_frame_type type, const char *text);
const char *load_frame_text(struct load_frame *frame, int bytes);

/* Send a descriptor to the process at the other end of the channel, or receive one; -1: none
 * came. */
bool load_frame_send_descriptor(int channel, int descriptor);
int load_frame_receive_descriptor(int channel);

#endif
