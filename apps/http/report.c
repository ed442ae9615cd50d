/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define INTERRUPTED 130

static const char *const failures[HTTP_FAILURES] = {
#define TEXT(failure, text) text,
    HTTP_EACH_FAILURE(TEXT)
#undef TEXT
};

static uint64_t
asked_for(const struct http_result *result)
{
    return (uint64_t)result->options->sockets * result->options->queries;
}

static uint64_t
sum(const uint64_t *counts)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < HTTP_FAILURES; i++)
        all += counts[i];
    return all;
}

static double
per_second(uint64_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

static void
print_count(FILE *out, const char *what, uint64_t count)
{
    if (count > 0)
        fprintf(out, "  %s %llu", what, (unsigned long long)count);
}

/* Those that occurred, each with what is known about the first of them. */
static void
print_failures(FILE *out, const uint64_t *counts, const struct http_result *result)
{
    for (unsigned i = 0; i < HTTP_FAILURES; i++) {
        print_count(out, failures[i], counts[i]);
        if (i == HTTP_BAD_STATUS && counts[i] > 0)
            fprintf(out, " (first: %u)", result->bad_status);
        if (i == HTTP_OTHER && counts[i] > 0)
            fprintf(out, " (first: %s)", strerror(result->error));
    }
}

static double
quantile_ms(const struct http_histogram *histogram, double fraction)
{
    return (double)http_histogram_quantile(histogram, fraction) / 1e6;
}

static void
print_times(FILE *out, const char *what, const struct http_histogram *histogram)
{
    if (histogram->count > 0)
        fprintf(out, "%s p50 %.3f p99 %.3f max %.3f ms", what, quantile_ms(histogram, 0.5),
                quantile_ms(histogram, 0.99), quantile_ms(histogram, 1));
}

void
http_report_plan(FILE *out, const struct http_options *options)
{
    fprintf(out,
            "%u sockets * %u queries/socket = %llu queries, GET http://%s/ (HTTP/1.1, closed "
            "loop)\n",
            options->sockets, options->queries,
            (unsigned long long)options->sockets * options->queries, options->authority);
}

void
http_report_sockets(FILE *out, const struct http_result *result)
{
    fprintf(out, "sockets   %u/%u open in %.3f s  %.0f/s", result->opened, result->options->sockets,
            result->connect_s, per_second(result->opened, result->connect_s));
    print_times(out, "  connect", &result->connect);
    print_failures(out, result->sockets, result);
    print_count(out, "not tried", result->untried);
    fprintf(out, "\n");
}

static double
seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

void
http_report_queries(FILE *out, const struct http_result *result)
{
    double all_s = result->connect_s + result->query_s;
    struct rusage usage = {0};

    if (result->interrupted)
        fprintf(out, "interrupted: this is what was done so far\n");
    fprintf(out, "queries   %llu  ok %llu  errors %llu", (unsigned long long)asked_for(result),
            (unsigned long long)result->ok, (unsigned long long)sum(result->queries));
    print_failures(out, result->queries, result);
    print_count(out, "in flight", result->in_flight);
    print_count(out, "not sent", result->unsent);
    fprintf(out, "  in %.3f s  %.0f/s\n", result->query_s, per_second(result->ok, result->query_s));
    print_times(out, "service  ", &result->service);
    fputs(result->service.count > 0 ? "\n" : "", out);
    getrusage(RUSAGE_SELF, &usage);
    fprintf(out, "client    cpu %.3f s user %.3f s system\n", seconds(usage.ru_utime),
            seconds(usage.ru_stime));
    fprintf(out, "time for all connections: %f seconds or %f per second\n", result->connect_s,
            per_second(result->opened, result->connect_s));
    fprintf(out, "time for all queries    : %f seconds or %f per second\n", result->query_s,
            per_second(result->ok, result->query_s));
    fprintf(out, "time for all            : %f seconds or %f per second\n", all_s,
            per_second(result->ok, all_s));
}

int
http_report_status(const struct http_result *result)
{
    if (result->interrupted)
        return INTERRUPTED;
    return result->ok == asked_for(result) ? EXIT_SUCCESS : EXIT_FAILURE;
}
