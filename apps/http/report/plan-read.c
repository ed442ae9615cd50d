/* SPDX-License-Identifier: MIT */
#include "plan-read.h"

#include <stdio.h>
#include <string.h>

#include "output.h"

#define NS 1e9

static uint64_t
read_seconds(struct http_reader *reader, const json_t *json, const char *name)
{
    return http_reader_count(reader, json, name, NS);
}

/* Which of those names the member has; 0 after saying that it is none of them. */
static unsigned
read_choice(struct http_reader *reader, const json_t *json, const char *name,
            const char *const *names, unsigned number)
{
    const char *text = http_reader_text(reader, json, name);

    for (unsigned i = 0; i < number; i++)
        if (text != NULL && strcmp(text, names[i]) == 0)
            return i;
    http_reader_refuse(reader, name, "is none of the words that it may be");
    return 0;
}

static void
read_text(struct http_reader *reader, const json_t *json, const char *name, char *to, size_t size)
{
    const char *text = http_reader_text(reader, json, name);

    snprintf(to, size, "%s", text != NULL ? text : "");
}

static void
read_hosts(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    const json_t *hosts = http_reader_array(reader, json, "hosts");

    if (json_array_size(hosts) > HTTP_HOSTS_MAX) {
        http_reader_refuse(reader, "hosts", "are too many");
        return;
    }
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *one = json_array_get(hosts, i);
        struct http_host *host = &plan->hosts[plan->hosts_number++];

        read_text(reader, one, "authority", host->authority, sizeof(host->authority));
        read_text(reader, one, "ip", host->ip, sizeof(host->ip));
        host->port = (uint16_t)http_reader_count(reader, one, "port", 1);
        read_text(reader, one, "unix_path", host->path, sizeof(host->path));
    }
}

static void
read_where(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    read_text(reader, json, "what", plan->what, sizeof(plan->what));
    read_text(reader, json, "authority", plan->authority, sizeof(plan->authority));
    read_text(reader, json, "ip", plan->ip, sizeof(plan->ip));
    plan->port = (uint16_t)http_reader_count(reader, json, "port", 1);
    plan->unix_path = http_reader_text(reader, json, "unix_path");
    plan->proxy = (unsigned)http_reader_count(reader, json, "proxy", 1);
    read_hosts(reader, json, plan);
}

static void
read_stages(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    const json_t *stages = http_reader_array(reader, json, "stages");
    uint64_t end_ns = 0;

    if (json_array_size(stages) > HTTP_STAGES_MAX) {
        http_reader_refuse(reader, "stages", "are too many");
        return;
    }
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *stage = json_array_get(stages, i);

        end_ns += read_seconds(reader, stage, "seconds");
        plan->stages[i].end_ns = end_ns;
        plan->stages[i].rate = http_reader_number(reader, stage, "rate");
        plan->stages_number++;
    }
}

static void
read_when(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    const char *arrivals = http_reader_text(reader, json, "arrivals");
    bool is_fixed = arrivals != NULL && strcmp(arrivals, "fixed") == 0;

    plan->model =
        (enum http_model)read_choice(reader, json, "model", http_model_names, HTTP_MODELS);
    plan->arrivals = is_fixed ? HTTP_FIXED : HTTP_POISSON;
    plan->rate = http_reader_number(reader, json, "rate");
    plan->rate_end = http_reader_number(reader, json, "rate_end");
    read_stages(reader, json, plan);
    plan->replay_speed = http_reader_number(reader, json, "replay_speed");
    plan->think_ns = read_seconds(reader, json, "think_s");
    plan->deadline_ns = read_seconds(reader, json, "deadline_s");
    plan->depth = (unsigned)http_reader_count(reader, json, "depth", 1);
    plan->ramp = (unsigned)http_reader_count(reader, json, "ramp", 1);
    plan->ramp_rate = http_reader_number(reader, json, "ramp_rate");
    plan->timeout_ns = read_seconds(reader, json, "timeout_s");
    plan->seed = http_reader_count(reader, json, "seed", 1);
    plan->probe_rate = http_reader_number(reader, json, "probe_rate");
}

static void
read_how_much(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    plan->stop = (enum http_stop)read_choice(reader, json, "stop", http_stop_names, HTTP_STOPS);
    plan->sockets = (uint32_t)http_reader_count(reader, json, "sockets", 1);
    plan->workers = (unsigned)http_reader_count(reader, json, "workers", 1);
    plan->queries = http_reader_count(reader, json, "queries", 1);
    plan->requests_max = http_reader_count(reader, json, "requests_max", 1);
    plan->duration_ns = read_seconds(reader, json, "duration_s");
    plan->warmup_ns = read_seconds(reader, json, "warmup_s");
    plan->is_warmup_auto = http_reader_bool(reader, json, "is_warmup_auto");
    plan->drain_ns = read_seconds(reader, json, "drain_s");
    plan->start_at_ns = read_seconds(reader, json, "start_at_s");
}

static void
read_shards(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    const json_t *shards = http_reader_object(reader, json, "shards");
    const json_t *parts = http_reader_array(reader, shards, "parts");
    uint64_t of = http_reader_count(reader, shards, "of", 1);

    plan->shards = of <= HTTP_SHARDS_MAX ? (unsigned)of : 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        uint64_t part = http_reader_element(reader, parts, i, "parts", 1);

        if (part < 1 || part > plan->shards)
            http_reader_refuse(reader, "shards", "has a part that there cannot be");
        else
            plan->has_shard[part - 1] = true;
    }
}

void
http_plan_read(struct http_reader *reader, const json_t *json, struct http_plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    read_where(reader, json, plan);
    read_when(reader, json, plan);
    read_how_much(reader, json, plan);
    read_shards(reader, json, plan);
    plan->trials = (unsigned)http_reader_count(reader, json, "trials", 1);
    plan->server_cmd = http_reader_text(reader, json, "server_cmd");
    plan->aa = http_reader_bool(reader, json, "aa");
}
