/* SPDX-License-Identifier: MIT
 *
 * Estimating the time of a page that needs several requests at once.
 */
#include "fanout.h"

#include <math.h>

#include "output.h"

#define P99 0.99

void
load_fanout_tell(struct load_fanout *fanout, const struct load_run *run)
{
    bool is_closed = run->plan->model == LOAD_CLOSED;
    const struct load_histogram *times = is_closed ? &run->total->service : &run->total->response;
    double queries = run->plan->fanout;

    fanout->times = is_closed ? "service" : "response";
    fanout->beyond_p99 = 1 - pow(P99, queries);
    for (unsigned i = 0; i < LOAD_FANOUT_LEVELS; i++) {
        struct load_fanout_level *level = &fanout->levels[i];

        level->name = load_percentiles[i].name;
        level->of_one = pow(load_percentiles[i].fraction, 1 / queries);
        level->is_told = load_histogram_can_tell(times, level->of_one);
        level->ns = level->is_told ? load_histogram_quantile(times, level->of_one) : 0;
        level->is_at_least = load_histogram_is_at_least(times, level->ns);
    }
}
