/* SPDX-License-Identifier: MIT
 *
 * Waiting for --warmup auto to end.
 */
#include "run-private.h"

#include "sxe-time.h"
#include "text.h"
#include "warmup.h"

uint64_t load_warmup_window_ns = 100 * SXE_NS_PER_MS;

/* If the window has enough replies, end it; otherwise return false, and the window goes on.
 * `before` has the workers' counts at the start of the window; callers pass the trial's result,
 * which is not used yet. */
static bool
end_window(const struct load_parent *parent, struct load_result *before, struct load_warmup *warmup,
           uint64_t ns)
{
    struct load_result *now = parent->sum;
    uint64_t ok = 0;
    bool is_added;

    load_results_clear(now, 1);
    for (unsigned i = 0; i < parent->load; i++) {
        ok += parent->processes[i].result->ends[LOAD_END_OK];
        load_histogram_add(&now->response, &parent->processes[i].result->response);
    }
    load_histogram_subtract(&now->response, &before->response);
    is_added = load_warmup_add(warmup, ns, ok - before->ends[LOAD_END_OK], &now->response);
    if (is_added) {
        before->ends[LOAD_END_OK] = ok;
        load_histogram_add(&before->response, &now->response);
    }
    return is_added;
}

/* Wait until the server is warm, or plan->warmup_ns have passed. False: the workers ended before
 * that. */
static bool
await_stationary(struct load_parent *parent, struct load_trial *trial, uint64_t start_ns)
{
    struct load_warmup warmup = {0};
    uint64_t end_ns = start_ns + parent->plan->warmup_ns;
    uint64_t began_ns = start_ns;
    uint64_t now_ns = start_ns;
    const char *problem;

    do {
        uint64_t look_ns = now_ns + load_warmup_window_ns;

        if (load_workers_await(parent, LOAD_MESSAGE_DONE, look_ns < end_ns ? look_ns : end_ns))
            return false;
        now_ns = sxe_time_ns();
        if (end_window(parent, trial->result, &warmup, now_ns - began_ns))
            began_ns = now_ns;
        problem = load_warmup_problem(&warmup);
    } while (problem != NULL && now_ns < end_ns);
    trial->left_out.problem = problem;
    return true;
}

void
load_warmup_wait(struct load_parent *parent, struct load_trial *trial, uint64_t start_ns)
{
    const struct load_plan *plan = parent->plan;
    struct load_message mark = {.type = LOAD_MESSAGE_MARK};
    bool is_over = false;

    if (plan->is_warmup_auto) {
        is_over = await_stationary(parent, trial, start_ns);
        mark.u.end_ns = sxe_time_ns() + plan->duration_ns;
    } else if (plan->warmup_ns > 0) {
        is_over = !load_workers_await(parent, LOAD_MESSAGE_DONE, start_ns + plan->warmup_ns);
    }
    if (!is_over)
        return;
    load_workers_tell(parent, mark);
    if (plan->is_warmup_auto)
        parent->end_ns = mark.u.end_ns;
    parent->pressure = load_pressure_read(LOAD_PRESSURE_FILE);
}

/* Make the trial suspect if the server was not warm: even if the client kept up, the user did not
 * want the result of a cold server. */
void
load_warmup_judge(const struct load_plan *plan, struct load_trial *trial)
{
    struct load_verdict cold = {.number = 1};

    if (trial->left_out.ns == 0 || trial->left_out.problem == NULL)
        return;
    snprintf(cold.reasons[0], LOAD_REASON_MAX,
             "warm-up auto: not stationary after %s: %s; use a longer -d, or say how long it takes "
             "(--warmup TIME)",
             load_duration_text(plan->warmup_ns), trial->left_out.problem);
    load_verdict_add(&trial->verdict, &cold);
    if (trial->probe != NULL)
        load_verdict_add(&trial->probe_verdict, &cold);
}
