/* SPDX-License-Identifier: MIT
 *
 * Self-tests that run a load: accounts, merge, stall, delay.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "run.h"
#include "selftest-private.h"
#include "sxe-time.h"
#include "template.h"
#include "text.h"

/* The load of a check: a server, a plan, and everything that the plan points to. */
struct load {
    struct load_selftest_server server;
    struct load_plan plan;
    struct load_expect expect;
    struct load_template_options options;
    char authority[32];
    struct load_run run;
};

/* Make the plan of a closed loop. Each check changes some of its members. */
static void
make_selftest_plan(struct load *load)
{
    load->plan = (struct load_plan){
        .ip = "127.0.0.1",
        .port = load->server.port,
        .sockets = 8,
        .workers = 1,
        .stop = LOAD_STOP_TOTAL,
        .drain_ns = SXE_NS_PER_SECOND,
        .arrivals = LOAD_FIXED,
        .depth = 1,
        .ramp = 16,
        .timeout_ns = 5 * SXE_NS_PER_SECOND,
        .seed = 1,
        .requests = load->plan.requests,
        .expect = &load->expect,
        .trials = 1,
        .quiet = true,
    };
    snprintf(load->plan.what, sizeof(load->plan.what), "GET http://%s/", load->authority);
    snprintf(load->plan.authority, sizeof(load->plan.authority), "%s", load->authority);
}

static void
end_load(struct load *load)
{
    if (load == NULL)
        return;
    if (load->server.counts != NULL)
        load_selftest_stop(&load->server);
    load_selftest_free(&load->server);
    load_run_free(&load->run);
    load_templates_free(load->plan.requests);
    free(load);
}

/* Start a server and make a plan. NULL: it failed, and text says why. */
static struct load *
begin_selftest_load(enum load_selftest_kind kind, char *text, size_t size)
{
    struct load *load = calloc(1, sizeof(*load));
    int error = load == NULL ? -ENOMEM : load_selftest_serve(&load->server, kind);

    if (error == 0) {
        snprintf(load->authority, sizeof(load->authority), "127.0.0.1:%u", load->server.port);
        load_expect_add_status(&load->expect, LOAD_EXPECT_DEFAULT_STATUS);
        load->options.method = "GET";
        load->plan.requests = load_templates_new(&load->options);
        if (load->plan.requests == NULL ||
            load_templates_add(load->plan.requests, load->authority, "/", "GET /") != NULL)
            error = -ENOMEM;
    }
    if (error == 0) {
        make_selftest_plan(load);
        return load;
    }
    snprintf(text, size, "cannot be tried: %s", strerror(-error));
    end_load(load);
    return NULL;
}

static bool is_interrupted;

bool
load_selftest_is_interrupted(void)
{
    return is_interrupted;
}

/* Run the load. False: it could not run, it was interrupted, or its counts do not add up; text says
 * which. */
static bool
run_selftest_load(struct load *load, char *text, size_t size)
{
    int status = load_run(&load->run, &load->plan, NULL, stderr);
    const char *wrong = status == 0 ? load_result_check(load->run.total) : NULL;

    is_interrupted = load->run.is_interrupted;
    if (status != 0)
        snprintf(text, size, "the load did not run, status %d", status);
    else if (is_interrupted)
        snprintf(text, size, "interrupted");
    else if (wrong != NULL)
        snprintf(text, size, "the accounts do not close: %s", wrong);
    return status == 0 && !is_interrupted && wrong == NULL;
}

/* Add to the text that other load on the machine may be the reason why the check failed. */
static void
add_suspicion(const struct load *load, char *text, size_t size)
{
    const struct load_verdict *verdict = &load->run.verdict;
    size_t length = strlen(text);

    if (verdict->number > 0)
        snprintf(text + length, size - length, "; not judged: %s", verdict->reasons[0]);
}

/* ---- Accounts: each count equals the server's ---- */

#define ACCOUNTS 500

bool
load_selftest_accounts(char *text, size_t size)
{
    struct load *load = begin_selftest_load(LOAD_SELFTEST_BADLY, text, size);
    bool holds = false;

    if (load == NULL)
        return false;
    load->plan.requests_max = ACCOUNTS;
    if (run_selftest_load(load, text, size)) {
        const struct load_selftest_counts *counts = load->server.counts;
        const struct load_result *total = load->run.total;

        holds = total->offered == ACCOUNTS && total->sent == ACCOUNTS &&
                counts->requests == ACCOUNTS && total->ends[LOAD_END_OK] == counts->ok &&
                total->ends[LOAD_END_BAD_STATUS] == counts->bad_status &&
                total->ends[LOAD_END_RESET] == counts->resets &&
                total->ends[LOAD_END_CLOSED_EARLY] == counts->closes &&
                total->ends[LOAD_END_SHORT_BODY] == counts->short_bodies;
        snprintf(text, size,
                 "of %" PRIu64 " sent, counted/done by the server: ok %" PRIu64 "/%" PRIu64
                 " bad status %" PRIu64 "/%" PRIu64 " reset %" PRIu64 "/%" PRIu64 " closed %" PRIu64
                 "/%" PRIu64 " short %" PRIu64 "/%" PRIu64,
                 total->sent, total->ends[LOAD_END_OK], counts->ok,
                 total->ends[LOAD_END_BAD_STATUS], counts->bad_status, total->ends[LOAD_END_RESET],
                 counts->resets, total->ends[LOAD_END_CLOSED_EARLY], counts->closes,
                 total->ends[LOAD_END_SHORT_BODY], counts->short_bodies);
    }
    end_load(load);
    return holds;
}

/* ---- Merging: two workers are one load ---- */

#define MERGED 2001 /* an odd number, so that the two workers send different numbers */

bool
load_selftest_merge(char *text, size_t size)
{
    struct load *load = begin_selftest_load(LOAD_SELFTEST_WELL, text, size);
    bool holds = false;

    if (load == NULL)
        return false;
    load->plan.requests_max = MERGED;
    load->plan.workers = 2;
    if (run_selftest_load(load, text, size)) {
        const struct load_result *total = load->run.total;

        holds = load->server.counts->requests == MERGED && total->ends[LOAD_END_OK] == MERGED &&
                total->service.count == MERGED && total->first_byte.count == MERGED;
        snprintf(text, size,
                 "two workers had %" PRIu64 " replies to %" PRIu64 " requests, and timed %" PRIu64,
                 total->ends[LOAD_END_OK], load->server.counts->requests, total->service.count);
    }
    end_load(load);
    return holds;
}

/* ---- The stall: a server that is stopped for half of the run ---- */

#define STALL_RUN_NS    (2 * SXE_NS_PER_SECOND)
#define STALL_BEGIN_NS  (STALL_RUN_NS / 4)
#define STALL_END_NS    (3 * STALL_RUN_NS / 4)
#define STALL_RATE      1000
#define STALL_TOLERANCE 0.05

static void
sleep_until(uint64_t then_ns)
{
    uint64_t now_ns = sxe_time_ns();

    if (then_ns > now_ns)
        usleep((useconds_t)((then_ns - now_ns) / SXE_NS_PER_US));
}

/* Stop the server for half of the run, and store for how long it really was stopped: on a busy
 * machine this process may wake late. */
static _Noreturn void
be_stopper(const struct load_selftest_server *server)
{
    struct load_selftest_counts *counts = server->counts;
    uint64_t begin_ns;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (counts->first_ns == 0)
        usleep(500);
    sleep_until(counts->first_ns + STALL_BEGIN_NS);
    kill(server->pid, SIGSTOP);
    begin_ns = sxe_time_ns();
    sleep_until(counts->first_ns + STALL_END_NS);
    counts->stalled_ns = sxe_time_ns() - begin_ns;
    kill(server->pid, SIGCONT);
    exit(EXIT_SUCCESS);
}

static bool
run_stalled(struct load *load, char *text, size_t size)
{
    pid_t stopper = fork();
    bool has_run;

    if (stopper == 0)
        be_stopper(&load->server);
    if (stopper < 0) {
        snprintf(text, size, "cannot be tried: %s", strerror(errno));
        return false;
    }
    has_run = run_selftest_load(load, text, size);
    if (!has_run)
        kill(stopper, SIGKILL);
    waitpid(stopper, NULL, 0);
    kill(load->server.pid, SIGCONT);
    return has_run;
}

/* The response times must show a stall of the server. The load has a rate, and a request that
 * arrives in the stall waits until its end. A tenth of all requests arrive in the first 0.2 s of
 * the stall, so the p90 must be the length of the stall less 0.2 s. */
bool
load_selftest_stall(char *text, size_t size)
{
    struct load *load = begin_selftest_load(LOAD_SELFTEST_WELL, text, size);
    bool holds = false;

    if (load == NULL)
        return false;
    load->plan.model = LOAD_PARTLY_OPEN;
    load->plan.stop = LOAD_STOP_TIME;
    load->plan.duration_ns = STALL_RUN_NS;
    load->plan.rate = STALL_RATE;
    load->plan.rate_end = STALL_RATE;
    if (run_stalled(load, text, size)) {
        const struct load_result *total = load->run.total;
        double stall = (double)load->server.counts->stalled_ns;
        double expected = stall - 0.1 * (double)STALL_RUN_NS;
        double response = (double)load_histogram_quantile(&total->response, 0.9);
        double service = (double)load_histogram_quantile(&total->service, 0.9);

        holds = fabs(response - expected) <= STALL_TOLERANCE * stall && service < 0.1 * stall;
        snprintf(
            text, size,
            "the server stood still for %.3f s: response p90 %.1f %% of that (80 %% is right), "
            "service p90 %.1f %%",
            stall / 1e9, 100 * response / stall, 100 * service / stall);
        if (!holds)
            add_suspicion(load, text, size);
    }
    end_load(load);
    return holds;
}

/* ---- The delay: measured times must equal the server's known delay ---- */

#define DELAY_RUN_NS   SXE_NS_PER_SECOND
#define DELAY_RATE     20000
#define DELAY_TRIES    3
#define DELAY_SOCKETS  64
#define DELAY_ERROR_NS 50000.0

static bool
time_late_replies(struct load *load, char *text, size_t size)
{
    const struct load_histogram *held = &load->server.counts->held;
    const struct load_histogram *service;
    double error;

    if (!run_selftest_load(load, text, size))
        return false;
    service = &load->run.total->service;
    error =
        (double)load_histogram_quantile(service, 0.5) - (double)load_histogram_quantile(held, 0.5);
    snprintf(text, size, "replies held for 1 ms at %.0f/s are timed with an error of %.1f us",
             load->run.figures[LOAD_FIGURE_RATE].middle, error / 1e3);
    add_suspicion(load, text, size);
    return load->run.verdict.number == 0 && service->count > 0 && fabs(error) < DELAY_ERROR_NS;
}

/* Other load on the machine can only make replies late and results suspect. So it is enough if one
 * of several tries is good. */
bool
load_selftest_delay(char *text, size_t size)
{
    struct load *load = begin_selftest_load(LOAD_SELFTEST_LATE, text, size);
    bool holds = false;

    if (load == NULL)
        return false;
    load->plan.model = LOAD_PARTLY_OPEN;
    load->plan.stop = LOAD_STOP_TIME;
    load->plan.duration_ns = DELAY_RUN_NS;
    load->plan.rate = DELAY_RATE;
    load->plan.rate_end = DELAY_RATE;
    load->plan.sockets = DELAY_SOCKETS;
    for (unsigned i = 0; i < DELAY_TRIES && !holds && !is_interrupted; i++) {
        memset(&load->server.counts->held, 0, sizeof(load->server.counts->held));
        holds = time_late_replies(load, text, size);
        load_run_free(&load->run);
    }
    end_load(load);
    return holds;
}
