/* SPDX-License-Identifier: MIT
 *
 * What: carries frames between the local channels of a rank and the other ranks. Place: the process
 * that mpirun starts forks the engine (engine.h), which does all other work, and then is only a
 * relay, which mostly sleeps. A struct load_link carries messages from rank to rank: by MPI in
 * main-mpi.c, by other means in tests.
 *
 * Shape:
 *     rank 0                                        rank r
 *     envoy r --channel--> relay ---- load_link ---> relay --channel--> agent
 *
 * A relay never waits for one peer. If it cannot pass a frame on yet, it holds the frame, and
 * meanwhile reads no other frame from the same source. poll(2) cannot wait for MPI. So the relay
 * asks MPI for messages every LOAD_RELAY_IDLE_MS, and more often for a short time after a frame.
 *
 * Rank 0's relay answers CLOCK: with PING and PONG it measures how far a rank's clock is ahead, as
 * NTP does. Of several rounds the shortest counts; the error is at most half of its time.
 */
#ifndef LOAD_RELAY_H
#define LOAD_RELAY_H

#include <sys/types.h>

#include "frame.h"
#include "ranks.h"

#define LOAD_RELAY_IDLE_MS 5

struct load_link {
    unsigned rank;
    unsigned ranks;

    /* Send bytes, of which the link makes a copy. False: too many earlier messages to this rank
     * have not been delivered yet. */
    bool (*send)(struct load_link *link, unsigned to, const void *bytes, size_t length);

    /* Receive a message from this rank. Returns its length; 0: no message has come. */
    size_t (*receive)(struct load_link *link, unsigned from, void *bytes, size_t size);
};

struct load_relay_end {
    bool is_clean; /* whether all ranks have ended in good order */
    int status;    /* the engine's status, as from waitpid(2) */
};

/* How long rank 0 waits for the other ranks to end, and for the answer to a PING. */
extern uint64_t load_relay_end_ns;
extern uint64_t load_relay_pong_ns;

/* Carry frames until the engine ends, which has the other end of the channel. signals is a
 * signalfd(2). At rank 0 its signals are passed on to the engine; at other ranks they are
 * ignored. */
struct load_relay_end load_relay_run(struct load_link *link, int channel, pid_t engine,
                                     int signals);

#endif
