/* SPDX-License-Identifier: MIT
 *
 * What: carries frames between the channels of a process and the ranks of a job. Place: this is all
 * that the process started by mpirun does; it mostly sleeps, and its engine (engine.h), which it
 * has forked, does the rest. A struct load_link carries messages from rank to rank: by MPI in
 * main-mpi.c, by other means in tests.
 *
 * Shape:
 *     rank 0                                        rank r
 *     envoy r --channel--> relay ---- load_link ---> relay --channel--> agent
 *
 * A relay never blocks on one peer: a frame that cannot be passed on yet is held, and meanwhile no
 * other frame is read from where it came from. poll(2) cannot wait for MPI, so MPI is polled every
 * LOAD_RELAY_IDLE_MS, and more often for a short time after a frame.
 *
 * Rank 0's relay answers CLOCK: it measures how far a rank's clock is ahead by PING and PONG, as
 * NTP does; the shortest of several rounds counts, and half its time is the error.
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

    /* Send bytes, which are copied. False: too many earlier messages to that rank are still on
     * their way. */
    bool (*send)(struct load_link *link, unsigned to, const void *bytes, size_t length);

    /* Receive a message of that rank; returns its length, 0: there is none. */
    size_t (*receive)(struct load_link *link, unsigned from, void *bytes, size_t size);
};

struct load_relay_end {
    bool is_clean; /* whether all ranks have ended */
    int status;    /* the engine's status, as waitpid(2) returns it */
};

/* How long rank 0 waits for the others to end, and for the answer to a PING. */
extern uint64_t load_relay_end_ns;
extern uint64_t load_relay_pong_ns;

/* Carry frames until the engine, which has the other end of the channel, ends. signals is a
 * signalfd(2): at rank 0 signals are passed to the engine, elsewhere they are ignored. */
struct load_relay_end load_relay_run(struct load_link *link, int channel, pid_t engine,
                                     int signals);

#endif
