/* SPDX-License-Identifier: MIT
 *
 * Writing the member "plan" of the JSON, which plan-read.c reads, and "sessions" of a result.
 */
#include "hosts.h"
#include "json-writer.h"
#include "output.h"

#define NS 1e9

const char *const load_model_names[LOAD_MODELS] = {"closed", "partly_open", "open"};
const char *const load_stop_names[LOAD_STOPS] = {"per_socket", "total", "time", "replay"};

static void
write_plan_seconds(struct load_json *json, const char *name, uint64_t ns)
{
    load_json_number(json, name, (double)ns / NS);
}

static void
write_how_much(struct load_json *json, const struct load_plan *plan)
{
    load_json_text(json, "stop", load_stop_names[plan->stop]);
    load_json_count(json, "sockets", plan->sockets);
    load_json_count(json, "workers", plan->workers);
    load_json_count(json, "queries", plan->queries);
    load_json_count(json, "requests_max", plan->requests_max);
    write_plan_seconds(json, "duration_s", plan->duration_ns);
    write_plan_seconds(json, "warmup_s", plan->warmup_ns);
    load_json_bool(json, "is_warmup_auto", plan->is_warmup_auto);
    write_plan_seconds(json, "drain_s", plan->drain_ns);
}

/* Write the length of each stage, and the rate at its end. */
static void
write_stages(struct load_json *json, const struct load_plan *plan)
{
    load_json_open(json, "stages", '[');
    for (unsigned i = 0; i < plan->stages_number; i++) {
        load_json_open(json, NULL, '{');
        write_plan_seconds(json, "seconds", plan->stages[i].end_ns - load_plan_stage_ns(plan, i));
        load_json_number(json, "rate", plan->stages[i].rate);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}

static void
write_when(struct load_json *json, const struct load_plan *plan)
{
    load_json_text(json, "model", load_model_names[plan->model]);
    load_json_text(json, "arrivals", plan->arrivals == LOAD_FIXED ? "fixed" : "poisson");
    load_json_number(json, "rate", plan->rate);
    load_json_number(json, "rate_end", plan->rate_end);
    write_stages(json, plan);
    load_json_number(json, "replay_speed", plan->replay_speed);
    write_plan_seconds(json, "think_s", plan->think_ns);
    write_plan_seconds(json, "deadline_s", plan->deadline_ns);
    load_json_count(json, "depth", plan->depth);
    load_json_count(json, "ramp", plan->ramp);
    load_json_number(json, "ramp_rate", plan->ramp_rate);
    write_plan_seconds(json, "timeout_s", plan->timeout_ns);
    load_json_count(json, "seed", plan->seed);
    load_json_number(json, "probe_rate", plan->probe_rate);
}

/* Write which of the shards this run made, if there are shards. */
static void
write_shards(struct load_json *json, const struct load_plan *plan)
{
    if (plan->shards == 0) {
        load_json_null(json, "shards");
        return;
    }
    load_json_open(json, "shards", '{');
    load_json_count(json, "of", plan->shards);
    load_json_open(json, "parts", '[');
    for (unsigned i = 0; i < plan->shards; i++)
        if (plan->has_shard[i])
            load_json_count(json, NULL, i + 1);
    load_json_close(json, ']');
    load_json_close(json, '}');
}

void
load_output_json_plan(struct load_json *json, const struct load_plan *plan)
{
    load_json_open(json, "plan", '{');
    load_json_text(json, "what", plan->what);
    load_json_text(json, "authority", plan->authority);
    load_json_text(json, "ip", plan->ip);
    load_json_count(json, "port", plan->port);
    load_json_text(json, "unix_path", plan->unix_path);
    load_json_count(json, "proxy", plan->proxy);
    load_json_bool(json, "is_tls", plan->tls.is_used);
    load_json_bool(json, "is_insecure", plan->tls.is_insecure);
    load_json_count(json, "tls_resume", plan->tls.resume);
    load_output_json_plan_hosts(json, plan);
    write_when(json, plan);
    write_how_much(json, plan);
    write_shards(json, plan);
    load_json_count(json, "trials", plan->trials);
    load_json_text(json, "server_cmd", plan->server_cmd);
    if (plan->start_at_ns > 0)
        write_plan_seconds(json, "start_at_s", plan->start_at_ns);
    else
        load_json_null(json, "start_at_s");
    load_json_bool(json, "aa", plan->aa);
    load_json_close(json, '}');
}

void
load_output_json_sessions(struct load_json *json, const struct load_result *result)
{
    load_json_open(json, "sessions", '{');
    load_json_count(json, "completed", result->sessions_completed);
    load_json_count(json, "failed", result->sessions_failed);
    load_json_close(json, '}');
}

void
load_output_json_tls(struct load_json *json, const struct load_result *result)
{
    load_json_open(json, "tls", '{');
    load_json_count(json, "full", load_result_full_handshakes(result));
    load_json_count(json, "resumed", result->handshakes_resumed);
    load_json_count(json, "refused", result->handshakes_refused);
    load_json_count(json, "sessionless", result->handshakes_sessionless);
    load_json_close(json, '}');
}
