/* SPDX-License-Identifier: MIT
 *
 * Reading the kernel's CPU pressure (PSI).
 */
#include "pressure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "sxe-time.h"

struct load_pressure
load_pressure_read(const char *path)
{
    struct load_pressure pressure = {0};
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return pressure;
    if (fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNu64, &pressure.stalled_us) ==
        1)
        pressure.at_ns = sxe_time_ns();
    fclose(file);
    return pressure;
}

bool
load_pressure_between(double *part, const struct load_pressure *from,
                      const struct load_pressure *to)
{
    double stalled_us = (double)(to->stalled_us - from->stalled_us);
    bool is_known = from->at_ns > 0 && to->at_ns > from->at_ns;

    *part = is_known ? fmin(stalled_us * SXE_NS_PER_US / (double)(to->at_ns - from->at_ns), 1) : 0;
    return is_known;
}
