/* SPDX-License-Identifier: MIT
 *
 * page.html has one JSON array, MARK, where the runs are put. No "<" is in what is put there, so
 * that no text can end the script element.
 */
#include <string.h>

#include "output.h"
#include "result-file.h"

#define MARK "[\"runs\"]"

/* The compiler runs in the root of the sources. */
__asm__(".section .rodata\n"
        ".global http_page\n"
        ".global http_page_end\n"
        "http_page:\n"
        ".incbin \"apps/http/page.html\"\n"
        "http_page_end:\n"
        ".previous\n");
extern const char http_page[];
extern const char http_page_end[];

/* The page up to the mark, or from there on. */
static void
write_page(FILE *out, bool is_head)
{
    size_t size = (size_t)(http_page_end - http_page);
    const char *mark = memmem(http_page, size, MARK, strlen(MARK));
    const char *behind = mark + strlen(MARK);

    if (is_head)
        fwrite(http_page, 1, (size_t)(mark - http_page), out);
    else
        fwrite(behind, 1, (size_t)(http_page_end - behind), out);
}

int
http_output_html(FILE *out, const struct http_run *run)
{
    write_page(out, true);
    putc('[', out);
    http_output_json(out, run);
    putc(']', out);
    write_page(out, false);
    return http_output_finish(out);
}

/* ---- Several runs ---- */

/* In JSON "<" occurs only inside texts. */
static int
write_escaped(const char *text, size_t length, void *out)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc(text[i], out);
    return ferror((FILE *)out) ? -1 : 0;
}

/* NULL after saying on err which file is none of ours. */
static json_t *
load_runs(int number, char **paths, FILE *err)
{
    json_t *runs = json_array();

    for (int i = 0; i < number; i++) {
        json_t *run = http_result_file_load(paths[i], err);

        if (run == NULL) {
            json_decref(runs);
            return NULL;
        }
        /* The page shows which file a run came from; a path that is no UTF-8 it cannot. */
        json_object_set_new(run, "file", json_string(paths[i]));
        json_array_append_new(runs, run);
    }
    return runs;
}

int
http_output_overlay(int number, char **paths, FILE *out, FILE *err)
{
    json_t *runs = load_runs(number, paths, err);
    int error;

    if (runs == NULL)
        return HTTP_EXIT_USAGE;
    write_page(out, true);
    json_dump_callback(runs, write_escaped, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(runs);
    write_page(out, false);
    error = http_output_finish(out);
    if (error == 0)
        return HTTP_EXIT_OK;
    fprintf(err, "sxe-http: the page could not be written: %s\n", strerror(-error));
    return HTTP_EXIT_ERRORS;
}
