/* SPDX-License-Identifier: MIT
 *
 * What: writes the sum of all processes for programs: in the text format 0.0.4 of Prometheus, and
 * as JSON.
 *
 * Place: admin-serve.c answers /metrics and /status.json with them.
 */
#ifndef PROMETHEUS_H
#define PROMETHEUS_H

#include "admin-text.h"
#include "metrics-sum.h"

#define METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

void metrics_add_prometheus(struct text *text, const struct metrics_sum *sum);
void metrics_add_json(struct text *text, const struct metrics_sum *sum);

#endif
