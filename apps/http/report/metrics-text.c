/* SPDX-License-Identifier: MIT
 *
 * The text format of OpenMetrics 1.0.0: families of metrics one after the other, each of which
 * begins with its type.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "metrics.h"
#include "output.h"
#include "sxe-always-internal.h"
#include "sxe-utf8.h"

struct text {
    char *bytes;
    size_t used;
};

static void add_metrics_text(struct text *text, const char *format, ...) SXE_PRINTF(2, 3);

static void
add_metrics_text(struct text *text, const char *format, ...)
{
    size_t room = LOAD_METRICS_TEXT_MAX - text->used;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->bytes + text->used, room, format, arguments);
    va_end(arguments);
    text->used += SXE_NEVER(length < 0 || (size_t)length >= room) ? 0 : (size_t)length;
}

/* Add the value of a label, which may be any text of at most LOAD_TEXT_MAX bytes. */
static void
add_label_value(struct text *text, const char *string)
{
    const unsigned char *byte = (const unsigned char *)string;

    while (*byte != '\0') {
        uint32_t character;
        size_t length = sxe_utf8_decode(&character, byte, 4);

        if (length == 0)
            add_metrics_text(text, "\xef\xbf\xbd");
        else if (*byte == '\n')
            add_metrics_text(text, "\\n");
        else if (*byte == '"' || *byte == '\\')
            add_metrics_text(text, "\\%c", *byte);
        else
            add_metrics_text(text, "%.*s", (int)length, (const char *)byte);
        byte += length > 0 ? length : 1;
    }
}

static void
begin_metric(struct text *text, const char *type, const char *name, const char *unit,
             const char *help)
{
    add_metrics_text(text, "# TYPE sxe_http_%s %s\n", name, type);
    if (unit != NULL)
        add_metrics_text(text, "# UNIT sxe_http_%s %s\n", name, unit);
    add_metrics_text(text, "# HELP sxe_http_%s %s\n", name, help);
}

static void
add_counter_metric(struct text *text, const char *name, const char *unit, const char *help,
                   uint64_t value)
{
    begin_metric(text, "counter", name, unit, help);
    add_metrics_text(text, "sxe_http_%s_total %llu\n", name, (unsigned long long)value);
}

/* Add a family of counters, with a sample for each value of a label. */
static void
add_labelled(struct text *text, const char *name, const char *label, const char *const *values,
             const uint64_t *counts, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        add_metrics_text(text, "sxe_http_%s_total{%s=\"%s\"} %llu\n", name, label, values[i],
                         (unsigned long long)counts[i]);
}

static void
add_gauge(struct text *text, const char *name, const char *help, double value)
{
    begin_metric(text, "gauge", name, NULL, help);
    add_metrics_text(text, "sxe_http_%s %.15g\n", name, value);
}

static void
add_times_metric(struct text *text, const char *name, const char *help,
                 const struct load_tally_times *times)
{
    uint64_t count = 0;

    begin_metric(text, "histogram", name, "seconds", help);
    for (unsigned i = 0; i < LOAD_TALLY_BOUNDS; i++) {
        count += times->buckets[i];
        add_metrics_text(text, "sxe_http_%s_bucket{le=\"%.6f\"} %llu\n", name,
                         (double)load_tally_bound_us(i) / 1e6, (unsigned long long)count);
    }
    count += times->buckets[LOAD_TALLY_BOUNDS];
    add_metrics_text(text, "sxe_http_%s_bucket{le=\"+Inf\"} %llu\n", name,
                     (unsigned long long)count);
    add_metrics_text(text, "sxe_http_%s_count %llu\n", name, (unsigned long long)count);
    add_metrics_text(text, "sxe_http_%s_sum %.9f\n", name, (double)times->sum_ns / 1e9);
}

#define NAME(enumerator, text, name) name,
static const char *const skip_names[] = {LOAD_EACH_SKIP(NAME)};
static const char *const end_names[] = {LOAD_EACH_END(NAME)};
static const char *const unopened_names[] = {LOAD_EACH_UNOPENED(NAME)};
static const char *const class_names[] = {"1xx", "2xx", "3xx", "4xx", "5xx", "other"};

static void
add_request_metrics(struct text *text, const struct load_tally *sum)
{
    add_counter_metric(text, "requests_offered", NULL, "Requests that were due.", sum->offered);
    add_counter_metric(text, "requests_sent", NULL, "Requests that were sent.", sum->sent);
    begin_metric(text, "counter", "requests_skipped", NULL, "Requests that were due and not sent.");
    add_labelled(text, "requests_skipped", "reason", skip_names, sum->skipped, LOAD_SKIPS);
    begin_metric(text, "counter", "requests_ended", NULL,
                 "Requests that ended: ok, or by the kind of error.");
    add_labelled(text, "requests_ended", "account", end_names, sum->ends, LOAD_ENDS);
    begin_metric(text, "counter", "replies", NULL, "Whole replies, good or not, by status.");
    add_labelled(text, "replies", "class", class_names, sum->classes, LOAD_CLASSES);
    add_counter_metric(text, "sent_bytes", "bytes", "Bytes of requests.", sum->bytes_sent);
    add_counter_metric(text, "received_bytes", "bytes", "Bytes of replies.", sum->bytes_received);
}

static void
add_connection_metrics(struct text *text, const struct load_tally *sum)
{
    add_counter_metric(text, "connections_opened", NULL, "Connections that were opened.",
                       sum->opened);
    begin_metric(text, "counter", "connections_unopened", NULL,
                 "Connections that could not be opened.");
    add_labelled(text, "connections_unopened", "reason", unopened_names, sum->unopened,
                 LOAD_UNOPENEDS);
    add_counter_metric(text, "connections_reopened", NULL,
                       "Connections that the server ended, and that were opened again.",
                       sum->reopened);
    add_counter_metric(text, "connections_not_reopened", NULL, "Tries of that which failed.",
                       sum->not_reopened);
}

size_t
load_metrics_text(char bytes[LOAD_METRICS_TEXT_MAX], const struct load_plan *plan,
                  const struct load_metrics_figures *figures)
{
    const struct load_tally *sum = &figures->sum;
    struct text text = {.bytes = bytes};

    begin_metric(&text, "info", "run", NULL, "What is run.");
    add_metrics_text(&text, "sxe_http_run_info{version=\"%s\",model=\"%s\",what=\"", SXE_VERSION,
                     load_model_names[plan->model]);
    add_label_value(&text, plan->what);
    add_metrics_text(&text, "\"} 1\n");
    add_request_metrics(&text, sum);
    add_connection_metrics(&text, sum);
    add_gauge(&text, "connections_open", "Connections that are open.", (double)sum->connections);
    add_gauge(&text, "requests_in_flight", "Requests whose reply is awaited.",
              (double)sum->in_flight);
    add_gauge(&text, "requests_waiting", "Requests that are due and have no free connection yet.",
              (double)sum->waiting);
    add_gauge(&text, "offered_rate", "Requests a second that were due in the last second.",
              figures->offered_rate);
    add_gauge(&text, "ok_rate", "Good replies a second in the last second.", figures->ok_rate);
    add_gauge(&text, "workers", "Processes that make the load.", plan->workers);
    add_gauge(&text, "trial", "The number of the trial, from 1.", figures->trial);
    add_times_metric(&text, "response_seconds", "From the intended start to the end of the reply.",
                     &sum->response);
    add_times_metric(&text, "service_seconds", "From the request's write to the end of the reply.",
                     &sum->service);
    add_metrics_text(&text, "# EOF\n");
    return text.used;
}
