/* SPDX-License-Identifier: MIT */
#include "run-private.h"

#include "sxe-time.h"
#include "text.h"
#include "warmup.h"

uint64_t http_warmup_window_ns = 100 * SXE_NS_PER_MS;

/* A window ends now, if there is enough in it. The trial's result, which is empty until the workers
 * are added up, keeps what they had counted when it began. */
static bool
end_window(const struct http_parent *parent, struct http_result *before, struct http_warmup *warmup,
           uint64_t ns)
{
    struct http_result *now = parent->sum;
    uint64_t ok = 0;
    bool is_added;

    http_results_clear(now, 1);
    for (unsigned i = 0; i < parent->load; i++) {
        ok += parent->processes[i].result->ends[HTTP_END_OK];
        http_histogram_add(&now->response, &parent->processes[i].result->response);
    }
    http_histogram_subtract(&now->response, &before->response);
    is_added = http_warmup_add(warmup, ns, ok - before->ends[HTTP_END_OK], &now->response);
    if (is_added) {
        before->ends[HTTP_END_OK] = ok;
        http_histogram_add(&before->response, &now->response);
    }
    return is_added;
}

/* False: the workers end instead. */
static bool
await_stationary(struct http_parent *parent, struct http_trial *trial, uint64_t start_ns)
{
    struct http_warmup warmup = {0};
    uint64_t end_ns = start_ns + parent->plan->warmup_ns;
    uint64_t began_ns = start_ns;
    uint64_t now_ns = start_ns;
    const char *problem;

    do {
        uint64_t look_ns = now_ns + http_warmup_window_ns;

        if (http_workers_await(parent, HTTP_MESSAGE_DONE, look_ns < end_ns ? look_ns : end_ns))
            return false;
        now_ns = sxe_time_ns();
        if (end_window(parent, trial->result, &warmup, now_ns - began_ns))
            began_ns = now_ns;
        problem = http_warmup_problem(&warmup);
    } while (problem != NULL && now_ns < end_ns);
    trial->left_out.problem = problem;
    return true;
}

void
http_warmup_wait(struct http_parent *parent, struct http_trial *trial, uint64_t start_ns)
{
    const struct http_plan *plan = parent->plan;
    struct http_message mark = {.type = HTTP_MESSAGE_MARK};
    bool is_over = false;

    if (plan->is_warmup_auto) {
        is_over = await_stationary(parent, trial, start_ns);
        mark.u.end_ns = sxe_time_ns() + plan->duration_ns;
    } else if (plan->warmup_ns > 0) {
        is_over = !http_workers_await(parent, HTTP_MESSAGE_DONE, start_ns + plan->warmup_ns);
    }
    if (!is_over)
        return;
    http_workers_tell(parent, mark);
    if (plan->is_warmup_auto)
        parent->end_ns = mark.u.end_ns;
    parent->pressure = http_pressure_read(HTTP_PRESSURE_FILE);
}

/* The client may have kept up well, and yet this is not the result that was asked for. */
void
http_warmup_judge(const struct http_plan *plan, struct http_trial *trial)
{
    struct http_verdict cold = {.number = 1};

    if (trial->left_out.ns == 0 || trial->left_out.problem == NULL)
        return;
    snprintf(cold.reasons[0], HTTP_REASON_MAX,
             "warm-up auto: not stationary after %s: %s; use a longer -d, or say how long it takes "
             "(--warmup TIME)",
             http_duration_text(plan->warmup_ns), trial->left_out.problem);
    http_verdict_add(&trial->verdict, &cold);
    if (trial->probe != NULL)
        http_verdict_add(&trial->probe_verdict, &cold);
}
