/* SPDX-License-Identifier: MIT
 *
 * Reading a plan from the JSON of a result.
 */
#include "plan-read.h"

#include <stdio.h>
#include <string.h>

#include "output.h"

#define NS 1e9

static uint64_t
read_seconds(struct load_reader *reader, const json_t *json, const char *name)
{
    return load_reader_count(reader, json, name, NS);
}

/* Find the text of the member in `names`. Returns its index. If the text is not there, keep a
 * problem, and return 0. */
static unsigned
read_choice(struct load_reader *reader, const json_t *json, const char *name,
            const char *const *names, unsigned number)
{
    const char *text = load_reader_text(reader, json, name);

    for (unsigned i = 0; i < number; i++)
        if (text != NULL && strcmp(text, names[i]) == 0)
            return i;
    load_reader_refuse(reader, name, "is none of the words that it may be");
    return 0;
}

static void
read_plan_text(struct load_reader *reader, const json_t *json, const char *name, char *to,
               size_t size)
{
    const char *text = load_reader_text(reader, json, name);

    snprintf(to, size, "%s", text != NULL ? text : "");
}

static void
read_plan_hosts(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    const json_t *hosts = load_reader_array(reader, json, "hosts");

    if (json_array_size(hosts) > LOAD_HOSTS_MAX) {
        load_reader_refuse(reader, "hosts", "are too many");
        return;
    }
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *one = json_array_get(hosts, i);
        struct load_host *host = &plan->hosts[plan->hosts_number++];

        read_plan_text(reader, one, "authority", host->authority, sizeof(host->authority));
        read_plan_text(reader, one, "ip", host->ip, sizeof(host->ip));
        host->port = (uint16_t)load_reader_count(reader, one, "port", 1);
        read_plan_text(reader, one, "unix_path", host->path, sizeof(host->path));
    }
}

static void
read_where(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    read_plan_text(reader, json, "what", plan->what, sizeof(plan->what));
    read_plan_text(reader, json, "authority", plan->authority, sizeof(plan->authority));
    read_plan_text(reader, json, "ip", plan->ip, sizeof(plan->ip));
    plan->port = (uint16_t)load_reader_count(reader, json, "port", 1);
    plan->unix_path = load_reader_text(reader, json, "unix_path");
    plan->proxy = (unsigned)load_reader_count(reader, json, "proxy", 1);
    plan->tls.is_used = load_reader_bool(reader, json, "is_tls");
    plan->tls.is_insecure = load_reader_bool(reader, json, "is_insecure");
    plan->tls.resume = (unsigned)load_reader_count(reader, json, "tls_resume", 1);
    read_plan_hosts(reader, json, plan);
}

static void
read_plan_stages(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    const json_t *stages = load_reader_array(reader, json, "stages");
    uint64_t end_ns = 0;

    if (json_array_size(stages) > LOAD_STAGES_MAX) {
        load_reader_refuse(reader, "stages", "are too many");
        return;
    }
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *stage = json_array_get(stages, i);

        end_ns += read_seconds(reader, stage, "seconds");
        plan->stages[i].end_ns = end_ns;
        plan->stages[i].rate = load_reader_number(reader, stage, "rate");
        plan->stages_number++;
    }
}

static void
read_when(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    const char *arrivals = load_reader_text(reader, json, "arrivals");
    bool is_fixed = arrivals != NULL && strcmp(arrivals, "fixed") == 0;

    plan->model =
        (enum load_model)read_choice(reader, json, "model", load_model_names, LOAD_MODELS);
    plan->arrivals = is_fixed ? LOAD_FIXED : LOAD_POISSON;
    plan->rate = load_reader_number(reader, json, "rate");
    plan->rate_end = load_reader_number(reader, json, "rate_end");
    read_plan_stages(reader, json, plan);
    plan->replay_speed = load_reader_number(reader, json, "replay_speed");
    plan->think_ns = read_seconds(reader, json, "think_s");
    plan->deadline_ns = read_seconds(reader, json, "deadline_s");
    plan->depth = (unsigned)load_reader_count(reader, json, "depth", 1);
    plan->ramp = (unsigned)load_reader_count(reader, json, "ramp", 1);
    plan->ramp_rate = load_reader_number(reader, json, "ramp_rate");
    plan->timeout_ns = read_seconds(reader, json, "timeout_s");
    plan->seed = load_reader_count(reader, json, "seed", 1);
    plan->probe_rate = load_reader_number(reader, json, "probe_rate");
}

static void
read_how_much(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    plan->stop = (enum load_stop)read_choice(reader, json, "stop", load_stop_names, LOAD_STOPS);
    plan->sockets = (uint32_t)load_reader_count(reader, json, "sockets", 1);
    plan->workers = (unsigned)load_reader_count(reader, json, "workers", 1);
    plan->queries = load_reader_count(reader, json, "queries", 1);
    plan->requests_max = load_reader_count(reader, json, "requests_max", 1);
    plan->duration_ns = read_seconds(reader, json, "duration_s");
    plan->warmup_ns = read_seconds(reader, json, "warmup_s");
    plan->is_warmup_auto = load_reader_bool(reader, json, "is_warmup_auto");
    plan->drain_ns = read_seconds(reader, json, "drain_s");
    plan->start_at_ns = read_seconds(reader, json, "start_at_s");
}

static void
read_shards(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    const json_t *shards = load_reader_object(reader, json, "shards");
    const json_t *parts = load_reader_array(reader, shards, "parts");
    uint64_t of = load_reader_count(reader, shards, "of", 1);

    plan->shards = of <= LOAD_SHARDS_MAX ? (unsigned)of : 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        uint64_t part = load_reader_element(reader, parts, i, "parts", 1);

        if (part < 1 || part > plan->shards)
            load_reader_refuse(reader, "shards", "has a part that there cannot be");
        else
            plan->has_shard[part - 1] = true;
    }
}

void
load_plan_read(struct load_reader *reader, const json_t *json, struct load_plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    read_where(reader, json, plan);
    read_when(reader, json, plan);
    read_how_much(reader, json, plan);
    read_shards(reader, json, plan);
    plan->trials = (unsigned)load_reader_count(reader, json, "trials", 1);
    plan->server_cmd = load_reader_text(reader, json, "server_cmd");
    plan->aa = load_reader_bool(reader, json, "aa");
}
