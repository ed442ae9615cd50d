/* SPDX-License-Identifier: MIT
 *
 * GitHub shows lines of standard output that begin with "::error" or "::warning" beside the commit.
 * https://docs.github.com/actions/reference/workflow-commands-for-github-actions
 */
#include "checks.h"
#include "output.h"

/* Print a text. Escape bytes that would end the line, and %, which begins an escape. */
static void
write_escaped_line(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '%' || *text == '\r' || *text == '\n')
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
        else
            putc(*text, out);
    }
}

static void
annotate_check(void *user, const struct load_check *check)
{
    FILE *out = user;

    if (check->outcome == LOAD_CHECK_PASSED || check->outcome == LOAD_CHECK_SKIPPED)
        return;
    /* The titles need no escape: they are constants of checks.c. */
    fprintf(out, "::%s title=sxe-http%%3A %s::", check->is_doubt ? "warning" : "error",
            check->title);
    if (check->is_asked) {
        write_escaped_line(out, check->name);
        fputs(": ", out);
    }
    write_escaped_line(out, check->text);
    putc('\n', out);
}

int
load_output_annotations(FILE *out, const struct load_run *run)
{
    load_checks_each(run, annotate_check, out);
    return load_output_finish(out);
}
