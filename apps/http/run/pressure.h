/* SPDX-License-Identifier: MIT
 *
 * What: the part of a period in which some process of this machine waited for a CPU: the kernel's
 * pressure stall information (PSI). Place: the parent reads it when the measuring begins and when
 * it ends; the verdict has the part.
 *
 * Shape: the first line of the file counts since boot, in us:
 *
 *     some avg10=1.53 avg60=0.87 avg300=0.65 total=58761459
 *
 * Limits: it is not known where the kernel has no PSI, or has it switched off.
 */
#ifndef LOAD_PRESSURE_H
#define LOAD_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_PRESSURE_FILE "/proc/pressure/cpu"

struct load_pressure {
    uint64_t at_ns;      /* when it was read (CLOCK_MONOTONIC); 0: not known */
    uint64_t stalled_us; /* how long some process has waited, since boot */
};

struct load_pressure load_pressure_read(const char *path);

/* Set *part to the part of the time between the two readings, at most 1. False: not known, and
 * *part is 0. */
bool load_pressure_between(double *part, const struct load_pressure *from,
                           const struct load_pressure *to);

#endif
