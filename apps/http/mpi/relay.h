/* SPDX-License-Identifier: MIT
 *
 * What: carries frames between the channels of a process and the ranks of a job. Place: the process
 * that mpirun started does nothing else; it sleeps most of the time, and its engine (engine.h),
 * which it forked, does the rest. A struct load_link carries messages from rank to rank: MPI in
 * main-mpi.c, anything else in tests.
 *
 * Shape:
 *     rank 0                                        rank r
 *     envoy r --channel--> relay ---- load_link ---> relay --channel--> agent
 *
 * A relay waits for nobody: a message that cannot go on yet is kept, and no other one is taken from
 * where it came. MPI cannot be waited for together with descriptors, so it is asked every
 * LOAD_RELAY_IDLE_MS, and more often for a moment after there was something.
 *
 * Rank 0's answers CLOCK: it measures how far the clock of a rank is ahead by what its relay
 * answers to PING, as NTP does; of some rounds the shortest counts, and half its time is the error.
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

    /* Send so many bytes, which are copied. False: earlier ones to that rank are still on their
     * way. */
    bool (*send)(struct load_link *link, unsigned to, const void *bytes, size_t length);

    /* A message of that rank: its length; 0: there is none. */
    size_t (*receive)(struct load_link *link, unsigned from, void *bytes, size_t size);
};

struct load_relay_end {
    bool is_clean; /* all ranks have ended */
    int status;    /* of the engine, as waitpid(2) has it */
};

/* How long rank 0 waits for the others to end, and for the answer to a PING. */
extern uint64_t load_relay_end_ns;
extern uint64_t load_relay_pong_ns;

/* Carry frames until the engine, which has the other end of the channel, ends. Signals are those of
 * a signalfd(2); at rank 0 they go to the engine, elsewhere nowhere. */
struct load_relay_end load_relay_run(struct load_link *link, int channel, pid_t engine,
                                     int signals);

#endif
