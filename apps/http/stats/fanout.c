/* SPDX-License-Identifier: MIT */
#include "fanout.h"

#include <math.h>

#include "output.h"

#define P99 0.99

void
http_fanout_tell(struct http_fanout *fanout, const struct http_run *run)
{
    bool is_closed = run->plan->model == HTTP_CLOSED;
    const struct http_histogram *times = is_closed ? &run->total->service : &run->total->response;
    double queries = run->plan->fanout;

    fanout->times = is_closed ? "service" : "response";
    fanout->beyond_p99 = 1 - pow(P99, queries);
    for (unsigned i = 0; i < HTTP_FANOUT_LEVELS; i++) {
        struct http_fanout_level *level = &fanout->levels[i];

        level->name = http_percentiles[i].name;
        level->of_one = pow(http_percentiles[i].fraction, 1 / queries);
        level->is_told = http_histogram_can_tell(times, level->of_one);
        level->ns = level->is_told ? http_histogram_quantile(times, level->of_one) : 0;
        level->is_at_least = http_histogram_is_at_least(times, level->ns);
    }
}
