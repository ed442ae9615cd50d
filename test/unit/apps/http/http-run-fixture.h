/* SPDX-License-Identifier: MIT
 *
 * What: a run made by hand, for tests of reports: no sockets, no clocks, always the same figures.
 *
 *     struct made made;
 *     make_run(&made, 2);                 two trials of 20,000 queries each, all ok
 *     made.plan.model = LOAD_PARTLY_OPEN;
 *     ... made.run ...
 *     free_run(&made);
 */
#ifndef HTTP_RUN_FIXTURE_H
#define HTTP_RUN_FIXTURE_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"
#include "run.h"

#define MADE_QUERIES 20000u
#define MADE_NS      UINT64_C(4000000000)

static char made_words[][24] = {"sxe-http", "-R", "5k", "http://127.0.0.1:8000/"};
static char *made_argv[] = {made_words[0], made_words[1], made_words[2], made_words[3], NULL};
static const char *const made_kinds[] = {"GET /", "POST, \"all\"</script>"};

struct made {
    struct load_plan plan;
    struct load_requests requests;
    struct load_run run;
};

/* A random fraction between 0 and 1, the same sequence in each program. */
static inline double
made_fraction(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

/* A random time: most are near 200 us, a few are much longer. */
static inline uint64_t
made_ns(uint64_t *state)
{
    double x = made_fraction(state);

    return (uint64_t)(1000 * (150 + 60 / pow(1 - x, 0.45)));
}

static inline void
made_query(struct load_result *result, uint64_t *state, unsigned i)
{
    uint64_t at_ns = MADE_NS / MADE_QUERIES * i;
    uint64_t service_ns = made_ns(state);
    /* Requests in the second second wait for 2 ms. */
    uint64_t response_ns = service_ns + (at_ns / 1000000000 == 1 ? 2000000 : 3000);
    unsigned client = i / 2 % 4 * result->kinds + i % 2;

    load_histogram_record(&result->service, service_ns);
    load_histogram_record(&result->response, response_ns);
    load_histogram_record(&result->first_byte, service_ns - 20000);
    load_histogram_record(&result->by_kind[i % 2].response, response_ns);
    load_histogram_record(&result->loop_lag, 20000 + i % 7 * 1000);
    result->by_kind[i % 2].ok++;
    result->by_client[client].count++;
    result->by_client[client].sum_ns += response_ns;
    if (result->by_client[client].min_ns == 0 || response_ns < result->by_client[client].min_ns)
        result->by_client[client].min_ns = response_ns;
    if (response_ns > result->by_client[client].max_ns)
        result->by_client[client].max_ns = response_ns;
    load_timeline_slice(&result->timeline, at_ns)->offered++;
    load_timeline_slice(&result->timeline, at_ns)->sent++;
    load_slice_ended(load_timeline_slice(&result->timeline, at_ns), true, response_ns);
}

static inline void
make_result(struct load_result *result, uint64_t seed)
{
    uint64_t state = seed;

    result->sockets_wanted = result->opened = 64;
    result->connect_ns = 8000000;
    result->offered = result->sent = result->ends[LOAD_END_OK] = MADE_QUERIES;
    result->started_ns = 1000000000;
    result->elapsed_ns = MADE_NS;
    result->bytes_sent = MADE_QUERIES * 100;
    result->bytes_received = MADE_QUERIES * 200;
    result->cpu_user_ns = MADE_NS / 4;
    result->cpu_system_ns = MADE_NS / 4;
    result->run_queue_ns = MADE_NS / 100;
    result->kinds = 2;
    result->clients = 4;
    for (unsigned i = 0; i < 64; i++)
        load_histogram_record(&result->connect, 100000 + i * 1000);
    for (unsigned i = 0; i < MADE_QUERIES; i++)
        made_query(result, &state, i);
}

static inline void
make_plan(struct load_plan *plan)
{
    *plan = (struct load_plan){
        .ip = "192.0.2.1",
        .port = 8000,
        .what = "GET http://192.0.2.1:8000/",
        .authority = "192.0.2.1:8000",
        .sockets = 64,
        .workers = 1,
        .stop = LOAD_STOP_TIME,
        .duration_ns = MADE_NS,
        .rate = 5000,
        .rate_end = 5000,
        .depth = 1,
        .ramp = 16,
        .timeout_ns = UINT64_C(10000000000),
        .seed = 1,
        .trials = 1,
        .argc = 4,
        .argv = made_argv,
    };
}

static inline void
make_run(struct made *made, unsigned trials)
{
    struct load_run *run = &made->run;

    memset(made, 0, sizeof(*made));
    make_plan(&made->plan);
    made->requests = (struct load_requests){.kinds = 2, .kind_names = made_kinds};
    made->plan.requests = &made->requests;
    made->plan.trials = trials;
    run->plan = &made->plan;
    run->fingerprint.number = 2;
    run->fingerprint.facts[0] = (struct load_fact){"kernel", "6.1.0"};
    run->fingerprint.facts[1] = (struct load_fact){"cpu model", "a \"fast\" one"};
    snprintf(run->started_at, sizeof(run->started_at), "2026-11-21T10:00:00Z");
    run->total = calloc(1, sizeof(*run->total));
    ck_assert_ptr_nonnull(run->total);
    run->trials_number = trials;
    for (unsigned i = 0; i < trials; i++) {
        run->trials[i].result = calloc(1, sizeof(struct load_result));
        ck_assert_ptr_nonnull(run->trials[i].result);
        make_result(run->trials[i].result, i + 1);
        run->trials[i].verdict.cpu = 0.5;
        load_result_add(run->total, run->trials[i].result);
    }
    run->total->elapsed_ns *= trials;
    run->total->connect_ns *= trials;
    run->verdict.cpu = 0.5;
    run->verdict.run_queue = 0.01;
    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        double middle = i == LOAD_FIGURE_RATE ? 5000 : 250000 * ((i - 1) % 3 + 1);

        run->figures[i] =
            (struct load_interval){middle * 0.95, middle, middle * 1.04, trials >= LOAD_TRIALS_MIN};
    }
}

static inline void
free_run(struct made *made)
{
    for (unsigned i = 0; i < made->run.trials_number; i++) {
        free(made->run.trials[i].result);
        free(made->run.trials[i].probe);
    }
    free(made->run.total);
    free(made->run.probe);
}

#define MADE_PROBED 400u

/* Add a probe to each trial; its queries took 1.5 ms, 0.5 ms of which they waited to be sent. */
static inline void
make_probe(struct made *made)
{
    struct load_run *run = &made->run;

    made->plan.probe_rate = 100;
    run->probe = calloc(1, sizeof(*run->probe));
    ck_assert_ptr_nonnull(run->probe);
    for (unsigned i = 0; i < run->trials_number; i++) {
        struct load_result *probe = calloc(1, sizeof(*probe));

        ck_assert_ptr_nonnull(probe);
        probe->sockets_wanted = probe->opened = LOAD_PROBE_SOCKETS;
        probe->offered = probe->sent = probe->ends[LOAD_END_OK] = MADE_PROBED;
        probe->elapsed_ns = MADE_NS;
        for (unsigned k = 0; k < MADE_PROBED; k++) {
            load_histogram_record(&probe->first_byte, 900000);
            load_histogram_record(&probe->service, 1000000);
            load_histogram_record(&probe->response, 1500000);
        }
        run->trials[i].probe = probe;
        load_result_add(run->probe, probe);
    }
    run->probe_verdict.cpu = 0.02;
}

/* Add a search: the rate doubles at each step, and latency rises steeply at 8,000/s. */
static inline void
make_find(struct made *made)
{
    struct load_run *run = &made->run;

    made->plan.find = "p99<10ms";
    for (unsigned i = 0; i < 8; i++) {
        double rate = 1000 + i * 1500;
        double ms = 0.4 + 0.3 / fmax(1 - rate / 9000, 0.002);

        run->steps[run->steps_number++] = (struct load_step){
            .rate = rate,
            .achieved = fmin(rate, 9000),
            .p50_ns = (uint64_t)(ms * 3e5),
            .p90_ns = (uint64_t)(ms * 6e5),
            .p99_ns = (uint64_t)(ms * 1e6),
            .p999_ns = (uint64_t)(ms * 1.5e6),
            .figure = ms * 1e6,
            .is_told = true,
            .holds = ms < 10,
        };
    }
    run->found_rate = 8500;
}

/* Write a run by this function to a file; returns its text, which the caller frees. */
static inline char *
text_of(FILE *file, size_t *length)
{
    long size;
    char *text;

    fflush(file);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    if (length != NULL)
        *length = (size_t)size;
    return text;
}

#endif
