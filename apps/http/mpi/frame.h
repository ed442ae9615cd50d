/* SPDX-License-Identifier: MIT
 *
 * What: the datagrams between a rank's agent and its envoy at rank 0. Place: envoy.c and agent.c
 * write and read them, relay.c carries them.
 *
 * Shape: a type, members of that type, and bytes, of which a datagram has only as many as it needs.
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
 * Limits: both ends must be the same program on the same kind of machine, because structures are
 * sent as they are in memory; NAME has a number that differs if they do.
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

/* The parts of the plan that differ between trials, or between ranks. */
struct load_start {
    double rate;
    double rate_end;
    uint64_t duration_ns;
    uint64_t seed;
    uint32_t shard;
    uint32_t shards;
};

/* How far the clock of a rank is ahead of that of rank 0, to within error_ns. */
struct load_clock {
    int64_t ahead_ns;
    uint64_t error_ns;
};

struct load_frame {
    uint32_t type;           /* enum load_frame_type */
    uint32_t value;          /* PING, PONG: the number of the round; NAME: load_frame_build() */
    struct load_clock clock; /* in TELL and CLOCK */
    union {
        struct load_start start;
        struct load_message message; /* in TELL and SAID */
        uint64_t time_ns;            /* PONG: the time by its sender's clock */
    } u;
    /* NAME, GONE: a text; RESULT, MARK, SCRIPT: blocks as delta.h packs them */
    char bytes[LOAD_FRAME_BYTES];
};

/* The length of a frame without bytes. */
#define LOAD_FRAME_HEAD offsetof(struct load_frame, bytes)

/* A number that differs between builds whose structures differ. */
uint32_t load_frame_build(void);

/* Send the frame with that many of its bytes. False, and errno. */
bool load_frame_send(int channel, const struct load_frame *frame, size_t bytes);

/* Receive a frame without waiting; returns the number of its bytes. -1: there is none now; -2: the
 * channel is closed, or something came that is no frame. */
int load_frame_receive(int channel, struct load_frame *frame);

/* Send a text as the bytes of a frame, and get it from a received one. It has at most
 * LOAD_FRAME_BYTES - 1 bytes. */
bool load_frame_send_text(int channel, enum load_frame_type type, const char *text);
const char *load_frame_text(struct load_frame *frame, int bytes);

/* Send a descriptor to the process at the other end; and receive one, -1: there is none. */
bool load_frame_send_descriptor(int channel, int descriptor);
int load_frame_receive_descriptor(int channel);

#endif
