/* SPDX-License-Identifier: MIT
 *
 * The member "plan" of the JSON; plan-read.c takes it out again. And "sessions" of a result.
 */
#include "hosts.h"
#include "json-writer.h"
#include "output.h"

#define NS 1e9

const char *const http_model_names[HTTP_MODELS] = {"closed", "partly_open", "open"};
const char *const http_stop_names[HTTP_STOPS] = {"per_socket", "total", "time", "replay"};

static void
write_seconds(struct http_json *json, const char *name, uint64_t ns)
{
    http_json_number(json, name, (double)ns / NS);
}

static void
write_how_much(struct http_json *json, const struct http_plan *plan)
{
    http_json_text(json, "stop", http_stop_names[plan->stop]);
    http_json_count(json, "sockets", plan->sockets);
    http_json_count(json, "workers", plan->workers);
    http_json_count(json, "queries", plan->queries);
    http_json_count(json, "requests_max", plan->requests_max);
    write_seconds(json, "duration_s", plan->duration_ns);
    write_seconds(json, "warmup_s", plan->warmup_ns);
    http_json_bool(json, "is_warmup_auto", plan->is_warmup_auto);
    write_seconds(json, "drain_s", plan->drain_ns);
}

/* How long each takes, and the rate at its end. */
static void
write_stages(struct http_json *json, const struct http_plan *plan)
{
    http_json_open(json, "stages", '[');
    for (unsigned i = 0; i < plan->stages_number; i++) {
        http_json_open(json, NULL, '{');
        write_seconds(json, "seconds", plan->stages[i].end_ns - http_plan_stage_ns(plan, i));
        http_json_number(json, "rate", plan->stages[i].rate);
        http_json_close(json, '}');
    }
    http_json_close(json, ']');
}

static void
write_when(struct http_json *json, const struct http_plan *plan)
{
    http_json_text(json, "model", http_model_names[plan->model]);
    http_json_text(json, "arrivals", plan->arrivals == HTTP_FIXED ? "fixed" : "poisson");
    http_json_number(json, "rate", plan->rate);
    http_json_number(json, "rate_end", plan->rate_end);
    write_stages(json, plan);
    http_json_number(json, "replay_speed", plan->replay_speed);
    write_seconds(json, "think_s", plan->think_ns);
    write_seconds(json, "deadline_s", plan->deadline_ns);
    http_json_count(json, "depth", plan->depth);
    http_json_count(json, "ramp", plan->ramp);
    http_json_number(json, "ramp_rate", plan->ramp_rate);
    write_seconds(json, "timeout_s", plan->timeout_ns);
    http_json_count(json, "seed", plan->seed);
    http_json_number(json, "probe_rate", plan->probe_rate);
}

/* Which parts of a load this run has, if other processes made others. */
static void
write_shards(struct http_json *json, const struct http_plan *plan)
{
    if (plan->shards == 0) {
        http_json_null(json, "shards");
        return;
    }
    http_json_open(json, "shards", '{');
    http_json_count(json, "of", plan->shards);
    http_json_open(json, "parts", '[');
    for (unsigned i = 0; i < plan->shards; i++)
        if (plan->has_shard[i])
            http_json_count(json, NULL, i + 1);
    http_json_close(json, ']');
    http_json_close(json, '}');
}

void
http_output_json_plan(struct http_json *json, const struct http_plan *plan)
{
    http_json_open(json, "plan", '{');
    http_json_text(json, "what", plan->what);
    http_json_text(json, "authority", plan->authority);
    http_json_text(json, "ip", plan->ip);
    http_json_count(json, "port", plan->port);
    http_json_text(json, "unix_path", plan->unix_path);
    http_json_count(json, "proxy", plan->proxy);
    http_output_json_plan_hosts(json, plan);
    write_when(json, plan);
    write_how_much(json, plan);
    write_shards(json, plan);
    http_json_count(json, "trials", plan->trials);
    http_json_text(json, "server_cmd", plan->server_cmd);
    if (plan->start_at_ns > 0)
        write_seconds(json, "start_at_s", plan->start_at_ns);
    else
        http_json_null(json, "start_at_s");
    http_json_bool(json, "aa", plan->aa);
    http_json_close(json, '}');
}

void
http_output_json_sessions(struct http_json *json, const struct http_result *result)
{
    http_json_open(json, "sessions", '{');
    http_json_count(json, "completed", result->sessions_completed);
    http_json_count(json, "failed", result->sessions_failed);
    http_json_close(json, '}');
}
