/* SPDX-License-Identifier: MIT
 *
 * What: whether the client could keep up, so that the figures are the server's, not the client's.
 * Place: run.c asks at the end of each trial; the summary prints it, and it makes exit status 4.
 *
 * Shape: each limit that was passed is a reason, with the figure, the limit, and what to do:
 *
 *     client cpu 99.0 % of a core (limit 97 %): this may be the client's rate; use a larger -t
 *     waited 12.0 % of the time for a CPU (limit 5 %) ...
 *     loop lag p99, timer error p99, schedule lag p99, what it did not send, sockets that did not
 *     open, ports, descriptors, the share of a script
 *
 * Limits: a worker that measured for less than 10 ms, or a p99 of fewer than 1,000 samples, is not
 * judged. A server that does not keep up is no reason; the summary's "requests" line shows it.
 */
#ifndef LOAD_VERDICT_H
#define LOAD_VERDICT_H

#include "plan.h"
#include "result.h"
#include "sxe-util.h"

#define LOAD_REASONS_MAX 16
#define LOAD_REASON_MAX  200

struct load_verdict {
    unsigned number; /* how many reasons; 0: nothing speaks against the result */
    char reasons[LOAD_REASONS_MAX][LOAD_REASON_MAX];
    unsigned char limits[LOAD_REASONS_MAX]; /* private: the limit that was passed; 0: no limit */
    double cpu;       /* the CPU use of the busiest worker, without spinning; 1 is a core */
    double spun;      /* the largest part of the time that a worker spun, not included in cpu */
    double run_queue; /* the largest part of the time that a worker waited for a CPU */
    /* Part of the time in which some process of the machine waited for a CPU: pressure.h. It is no
     * reason: a busy server on the same machine makes it high, even if the client keeps up. */
    double cpu_pressure;
    bool has_cpu_pressure;
};

/* Judge a load. workers: the result of each worker; sum: all of them added up. */
void load_verdict_judge(struct load_verdict *verdict, const struct load_plan *plan,
                        const struct load_result *sum, const struct load_result *const *workers,
                        unsigned number);

/* Add the limit that holds for a probe only: how long it waited for a CPU, as a part of the sum of
 * its response times. A probe mostly sleeps, so the wait is a small part of the whole time. */
void load_verdict_judge_probe(struct load_verdict *verdict, const struct load_result *probe);

/* Add a reason that is no limit, if there is room. */
void load_verdict_say(struct load_verdict *verdict, const char *format, ...) SXE_PRINTF(2, 3);

/* Add the reasons of one of several processes, each with that process's name in front. */
void load_verdict_add_part(struct load_verdict *to, const struct load_verdict *part,
                           const char *name);

/* Add those reasons of another trial whose limit *to does not have yet. */
void load_verdict_add(struct load_verdict *to, const struct load_verdict *verdict);

#endif
