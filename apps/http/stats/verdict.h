/* SPDX-License-Identifier: MIT
 *
 * What: the verdict, which tells whether the client could keep up. If not, the figures may show the
 * limits of the client and not of the server. Place: each trial ends with a verdict; the summary
 * prints it. If the client could not keep up, the exit status is 4.
 *
 * Shape: the verdict has a reason for each limit that was exceeded. It says the figure, the limit,
 * and what the user can do:
 *
 *     client cpu 99.0 % of a core (limit 97 %): this may be the client's rate; use a larger -t
 *     waited 12.0 % of the time for a CPU (limit 5 %) ...
 *     loop lag p99, timer error p99, schedule lag p99, what it did not send, sockets that did not
 *     open, ports, descriptors, the share of a script
 *
 * Limits: a worker that measured for less than 10 ms is not judged, and neither is a p99 of fewer
 * than 1,000 samples. If the server does not keep up, that is no reason; the line "requests" of the
 * summary shows it.
 */
#ifndef LOAD_VERDICT_H
#define LOAD_VERDICT_H

#include "plan.h"
#include "result.h"
#include "sxe-util.h"

#define LOAD_REASONS_MAX 16
#define LOAD_REASON_MAX  200

struct load_verdict {
    unsigned number; /* how many reasons there are; 0: nothing speaks against the result */
    char reasons[LOAD_REASONS_MAX][LOAD_REASON_MAX];
    /* private: for each reason the limit that was exceeded; 0: the reason is no limit */
    unsigned char limits[LOAD_REASONS_MAX];
    double cpu; /* the CPU use of the busiest worker, without spinning; 1 is a core */
    /* the largest part of the time that a worker spun; `cpu` does not include it */
    double spun;
    double run_queue; /* the largest part of the time that a worker waited for a CPU */
    /* The part of the time in which some process of the machine waited for a CPU (pressure.h). It
     * is never a reason: a busy server on the same machine makes it large, even if the client keeps
     * up. */
    double cpu_pressure;
    bool has_cpu_pressure;
};

/* Judge a load. workers: the result of each worker. sum: all these results added up. */
void load_verdict_judge(struct load_verdict *verdict, const struct load_plan *plan,
                        const struct load_result *sum, const struct load_result *const *workers,
                        unsigned number);

/* Judge the limit that only a probe has: how long it waited for a CPU, as a part of the sum of its
 * response times. (A probe mostly sleeps, so as a part of the whole time the wait would be
 * small.) */
void load_verdict_judge_probe(struct load_verdict *verdict, const struct load_result *probe);

/* Add a reason that is not about a limit, if there is room. */
void load_verdict_say(struct load_verdict *verdict, const char *format, ...) SXE_PRINTF(2, 3);

/* Add the reasons of a part of the load (a merged file or a rank), each with the part's name in
 * front. */
void load_verdict_add_part(struct load_verdict *to, const struct load_verdict *part,
                           const char *name);

/* Add the reasons of another verdict that are about a limit for which *to has no reason yet. */
void load_verdict_add(struct load_verdict *to, const struct load_verdict *verdict);

#endif
