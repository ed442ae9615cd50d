/* SPDX-License-Identifier: MIT
 *
 * What: tells in which part of a period some process of this machine waited for a CPU, from the
 * kernel's pressure stall information (PSI). Place: the parent reads the file at the start and at
 * the end of the measurement; the part is a figure of the verdict.
 *
 * Shape: `total` in the first line of the file is the time since boot, in us:
 *
 *     some avg10=1.53 avg60=0.87 avg300=0.65 total=58761459
 *
 * Limits: nothing is known if the kernel has no PSI, or if PSI is switched off.
 */
#ifndef LOAD_PRESSURE_H
#define LOAD_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_PRESSURE_FILE "/proc/pressure/cpu"

struct load_pressure {
    uint64_t at_ns;      /* when the file was read (CLOCK_MONOTONIC); 0: it could not be read */
    uint64_t stalled_us; /* for how long some process has waited for a CPU, since boot */
};

struct load_pressure load_pressure_read(const char *path);

/* Set *part to the part of the time between the two readings in which some process waited, at most
 * 1. False: it is not known, and *part is 0. */
bool load_pressure_between(double *part, const struct load_pressure *from,
                           const struct load_pressure *to);

#endif
