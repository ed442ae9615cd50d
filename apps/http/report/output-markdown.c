/* SPDX-License-Identifier: MIT
 *
 * Writes a summary for people, in the Markdown that GitHub and GitLab show: tables of the load, the
 * times and the checks.
 */
#include <string.h>

#include "checks.h"
#include "output.h"
#include "sxe-utf8.h"
#include "text.h"

/* Write a text. Escape everything that would be markup or HTML, or would end the table's cell or
 * line. */
static void
write_markdown_text(FILE *out, const char *string)
{
    const unsigned char *text = (const unsigned char *)string;

    while (*text != '\0') {
        uint32_t character;
        size_t length = sxe_utf8_decode(&character, text, 4);

        if (length == 0)
            fputs("\xef\xbf\xbd", out);
        else if (*text == '\n')
            fputs("<br>", out);
        else if (*text < ' ' || *text == 0x7f)
            putc(' ', out);
        else if (strchr("<>&", *text) != NULL)
            fprintf(out, "&#%u;", *text);
        else if (strchr("\\`*_[]|~$", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            fwrite(text, 1, length, out);
        text += length > 0 ? length : 1;
    }
}

static void
write_markdown_times(FILE *out, const char *name, const struct load_histogram *histogram)
{
    if (histogram->count == 0)
        return;
    fprintf(out, "| %s |", name);
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++) {
        putc(' ', out);
        write_markdown_text(out, load_percentile_text(histogram, load_percentiles[i].fraction));
        fputs(" |", out);
    }
    putc(' ', out);
    write_markdown_text(out, load_max_text(histogram));
    fputs(" |\n", out);
}

static void
write_all_times(FILE *out, const struct load_run *run)
{
    const struct load_result *total = run->total;

    fputs("\n| time |", out);
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++)
        fprintf(out, " %s |", load_percentiles[i].name);
    fputs(" max |\n|---|", out);
    for (unsigned i = 0; i <= LOAD_PERCENTILES; i++)
        fputs("---:|", out);
    putc('\n', out);
    write_markdown_times(out, "connect", &total->connect);
    write_markdown_times(out, "handshake", &total->handshake);
    write_markdown_times(out, "first byte", &total->first_byte);
    write_markdown_times(out, "service", &total->service);
    write_markdown_times(out, "response", &total->response);
    if (run->probe != NULL)
        write_markdown_times(out, "response of the probe", &run->probe->response);
}

static void
write_count_row(FILE *out, const char *name, uint64_t count)
{
    fprintf(out, "| %s | %llu |\n", name, (unsigned long long)count);
}

static void
write_figure_rows(FILE *out, const struct load_run *run)
{
    const struct load_result *total = run->total;

    fputs("\n| figure | value |\n|---|---:|\n", out);
    fprintf(out, "| rate | %s/s |\n", load_number_text(load_result_rate(total)));
    write_count_row(out, "offered", total->offered);
    write_count_row(out, "ok", total->ends[LOAD_END_OK]);
    write_count_row(out, "errors", load_result_errors(total));
    write_count_row(out, "skipped", load_result_skipped(total));
    fprintf(out, "| connections open | %llu of %llu |\n", (unsigned long long)total->opened,
            (unsigned long long)total->sockets_wanted);
    if (total->handshake.count > 0)
        fprintf(out, "| TLS handshakes | %llu, %.4g %% of them resumed |\n",
                (unsigned long long)total->handshake.count,
                100 * (double)total->handshakes_resumed / (double)total->handshake.count);
    fprintf(out, "| trials | %u of %s |\n", run->trials_number,
            load_time_text(total->elapsed_ns / (run->trials_number > 0 ? run->trials_number : 1)));
}

static void
write_check(void *user, const struct load_check *check)
{
    static const char *const outcomes[] = {
        [LOAD_CHECK_PASSED] = "good",
        [LOAD_CHECK_MISSED] = "**missed**",
        [LOAD_CHECK_WRONG] = "**wrong**",
        [LOAD_CHECK_SKIPPED] = "not judged",
    };
    FILE *out = user;

    fprintf(out, "| %s: ", check->group);
    write_markdown_text(out, check->name);
    fprintf(out, " | %s | ",
            check->is_doubt && check->outcome == LOAD_CHECK_MISSED ? "**suspect**"
                                                                   : outcomes[check->outcome]);
    write_markdown_text(out, check->text);
    fputs(" |\n", out);
}

static const char *
status_text(enum load_exit status)
{
    switch (status) {
    case LOAD_EXIT_OK:
        return "all is well";
    case LOAD_EXIT_ERRORS:
        return "errors";
    case LOAD_EXIT_USAGE:
        return "a file could not be read";
    case LOAD_EXIT_THRESHOLD:
        return "a threshold was missed, no rate was found, or a regression shown";
    case LOAD_EXIT_SUSPECT:
        return "the result is suspect";
    case LOAD_EXIT_UNTOLD:
        return "it could not be told which rate holds";
    case LOAD_EXIT_INTERRUPTED:
        break;
    }
    return "interrupted";
}

int
load_output_markdown(FILE *out, const struct load_run *run)
{
    fputs("## sxe-http: ", out);
    write_markdown_text(out, run->plan->what);
    fprintf(out, "\n\n**Exit status %d: %s.** %s, %s\n", (int)run->status, status_text(run->status),
            load_model_text(run->plan->model), run->started_at);
    fputs("\n| what was judged | outcome | why |\n|---|---|---|\n", out);
    load_checks_each(run, write_check, out);
    write_figure_rows(out, run);
    write_all_times(out, run);
    putc('\n', out);
    return load_output_finish(out);
}
