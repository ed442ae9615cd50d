/* SPDX-License-Identifier: MIT
 *
 * Verdicts on parts of a load, such as a merged file or a rank.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "verdict.h"

void
load_verdict_say(struct load_verdict *verdict, const char *format, ...)
{
    va_list arguments;

    if (verdict->number == LOAD_REASONS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(verdict->reasons[verdict->number], LOAD_REASON_MAX, format, arguments);
    va_end(arguments);
    verdict->limits[verdict->number++] = 0;
}

void
load_verdict_add_part(struct load_verdict *to, const struct load_verdict *part, const char *name)
{
    for (unsigned i = 0; i < part->number; i++)
        load_verdict_say(to, "%.60s: %s", name, part->reasons[i]);
    to->cpu = fmax(to->cpu, part->cpu);
    to->spun = fmax(to->spun, part->spun);
    to->run_queue = fmax(to->run_queue, part->run_queue);
    to->cpu_pressure = fmax(to->cpu_pressure, part->cpu_pressure);
    to->has_cpu_pressure |= part->has_cpu_pressure;
}
