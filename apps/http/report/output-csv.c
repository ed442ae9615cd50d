/* SPDX-License-Identifier: MIT
 *
 * Writing CSV (RFC 4180): lines end in CR LF, the first line names the columns, and a field with a
 * comma or a quote in it is quoted.
 */
#include "output.h"
#include "sxe-util.h"

#define NS 1e9
#define US 1e3

static void
write_names(FILE *out)
{
    static const char *const times[] = {"connect", "first_byte", "service", "response",
                                        "handshake"};

    fputs("trial,seconds,rate,offered,sent,carried,skipped,waiting,in_flight,drained,late,errors",
          out);
#define NAME(enumerator, text, name) "," name
    fputs(LOAD_EACH_END(NAME), out);
#undef NAME
    fputs(",sockets_wanted,sockets_opened,connect_seconds,syn_retries,bytes_sent,bytes_received",
          out);
    for (unsigned i = 0; i < SXE_COUNT(times); i++) {
        fprintf(out, ",%s_count,%s_censored,%s_censored_from_us,%s_mean_us", times[i], times[i],
                times[i], times[i]);
        for (unsigned k = 0; k < LOAD_PERCENTILES; k++)
            fprintf(out, ",%s_%s_us", times[i], load_percentiles[k].name);
        fprintf(out, ",%s_max_us", times[i]);
    }
    fputs(",handshakes_resumed,handshakes_refused,handshakes_sessionless,cpu,run_queue,suspect\r\n",
          out);
}

static void
write_csv_count(FILE *out, uint64_t count)
{
    fprintf(out, ",%llu", (unsigned long long)count);
}

/* Write the columns of a histogram. A figure that is not known is an empty field. */
static void
write_csv_times(FILE *out, const struct load_histogram *histogram)
{
    write_csv_count(out, histogram->count);
    write_csv_count(out, histogram->censored);
    if (histogram->censored > 0)
        fprintf(out, ",%.3f", (double)histogram->censored_from_ns / US);
    else
        putc(',', out);
    if (histogram->count > 0)
        fprintf(out, ",%.3f", load_histogram_mean_ns(histogram) / US);
    else
        putc(',', out);
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++) {
        double fraction = load_percentiles[i].fraction;

        if (load_histogram_can_tell(histogram, fraction))
            fprintf(out, ",%.3f", (double)load_histogram_quantile(histogram, fraction) / US);
        else
            putc(',', out);
    }
    fprintf(out, ",%.3f", (double)histogram->max_ns / US);
}

static void
write_line(FILE *out, const struct load_result *result, const struct load_verdict *verdict)
{
    fprintf(out, ",%.6f,%.3f", (double)result->elapsed_ns / NS, load_result_rate(result));
    write_csv_count(out, result->offered);
    write_csv_count(out, result->sent);
    write_csv_count(out, result->carried);
    write_csv_count(out, load_result_skipped(result));
    write_csv_count(out, result->waiting);
    write_csv_count(out, result->in_flight);
    write_csv_count(out, result->drained);
    write_csv_count(out, result->late);
    write_csv_count(out, load_result_errors(result));
    for (unsigned i = 0; i < LOAD_ENDS; i++)
        write_csv_count(out, result->ends[i]);
    write_csv_count(out, result->sockets_wanted);
    write_csv_count(out, result->opened);
    fprintf(out, ",%.6f", (double)result->connect_ns / NS);
    write_csv_count(out, result->syn_retries);
    write_csv_count(out, result->bytes_sent);
    write_csv_count(out, result->bytes_received);
    write_csv_times(out, &result->connect);
    write_csv_times(out, &result->first_byte);
    write_csv_times(out, &result->service);
    write_csv_times(out, &result->response);
    write_csv_times(out, &result->handshake);
    write_csv_count(out, result->handshakes_resumed);
    write_csv_count(out, result->handshakes_refused);
    write_csv_count(out, result->handshakes_sessionless);
    fprintf(out, ",%.3f,%.3f,%u\r\n", verdict->cpu, verdict->run_queue, verdict->number);
}

int
load_output_csv(FILE *out, const struct load_run *run)
{
    write_names(out);
    for (unsigned i = 0; i < run->trials_number; i++) {
        fprintf(out, "%u", i + 1);
        write_line(out, run->trials[i].result, &run->trials[i].verdict);
    }
    fputs("total", out);
    write_line(out, run->total, &run->verdict);
    return load_output_finish(out);
}

/* ---- The five columns of a candlestick chart, as the benchmark S8 needs them ---- */

static void
write_csv_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
}

static void
write_candle(FILE *out, const char *kind, const char *client, const double us[3])
{
    putc('"', out);
    write_csv_text(out, kind);
    fprintf(out, " %s\",%.3f,%.3f,%.3f,%.3f\r\n", client, us[0], us[1], us[1] * 1.01, us[2]);
}

static void
write_kind(FILE *out, const char *name, const struct load_histogram *response)
{
    write_candle(out, name, "all",
                 (double[]){(double)response->min_ns / US, load_histogram_mean_ns(response) / US,
                            (double)response->max_ns / US});
}

static void
write_client_row(FILE *out, const char *name, unsigned client,
                 const struct load_client_result *times)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", client + 1);
    write_candle(out, name, number,
                 (double[]){(double)times->min_ns / US,
                            (double)times->sum_ns / (double)times->count / US,
                            (double)times->max_ns / US});
}

int
load_output_candles(FILE *out, const struct load_run *run)
{
    const struct load_result *result = run->total;

    fputs("kind and client,min (us),mean (us),101 % of mean (us),max (us)\r\n", out);
    for (unsigned kind = 0; kind < result->kinds; kind++) {
        const char *name = load_kind_name(run->plan, kind);

        if (result->clients == 0 && result->by_kind[kind].response.count > 0)
            write_kind(out, name, &result->by_kind[kind].response);
        for (unsigned client = 0; client < result->clients; client++) {
            const struct load_client_result *times =
                &result->by_client[client * result->kinds + kind];

            if (times->count > 0)
                write_client_row(out, name, client, times);
        }
    }
    return load_output_finish(out);
}
