/* SPDX-License-Identifier: MIT
 *
 * What: runs a plan made by hand with fake workers, and keeps the output. Place: fixture of the
 * coordinator's tests; set_up_run() and tear_down_run() run around each case.
 */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include <stdio.h>

#include "captured.h"
#include "fake-worker.h"
#include "has.h"
#include "leaks.h"

static struct load_plan plan;
static struct load_run run;
static char output[16384];
static char errors[16384];

static inline int
run_plan(void)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    int status = load_run(&run, &plan, out, err);

    fake_os_reset();
    read_back(out, output, sizeof(output));
    read_back(err, errors, sizeof(errors));
    return status;
}

/* A plan for two workers with 100 queries each. */
static inline void
set_up_run(void)
{
    note_what_is_open();
    plan = (struct load_plan){.ip = "127.0.0.1",
                              .port = 8000,
                              .what = "GET http://127.0.0.1:8000/",
                              .sockets = 4,
                              .workers = 2,
                              .stop = LOAD_STOP_TOTAL,
                              .requests_max = 200,
                              .model = LOAD_PARTLY_OPEN,
                              .rate = 1000,
                              .rate_end = 1000,
                              .depth = 1,
                              .trials = 1,
                              .quiet = true};
    memset(&fake_worker, 0, sizeof(fake_worker));
    fake_worker.queries = 100;
    load_workers_work = fake_worker_run;
}

static inline void
tear_down_run(void)
{
    load_run_free(&run);
    check_that_nothing_is_left();
}

#endif
