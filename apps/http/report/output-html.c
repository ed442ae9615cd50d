/* SPDX-License-Identifier: MIT
 *
 * page.html has two marks: RUNS, a JSON array, is replaced by the runs, and PLOT, a comment, by
 * plot.js. The runs have no "<", so that no text in them can end the script element.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "output.h"
#include "result-file.h"
#include "sxe-util.h"

#define RUNS "[\"runs\"]"
#define PLOT "/* plot.js */"

#define MIN_EFFECT 0.02 /* the default of --min-effect */

/* Include two files in the program. Their paths are relative to the root of the sources, where the
 * compiler runs. */
__asm__(".section .rodata\n"
        ".global load_page, load_page_end, load_plot, load_plot_end\n"
        "load_page:\n"
        ".incbin \"apps/http/report/page.html\"\n"
        "load_page_end:\n"
        "load_plot:\n"
        ".incbin \"apps/http/report/plot.js\"\n"
        "load_plot_end:\n"
        ".previous\n");
extern const char load_page[];
extern const char load_page_end[];
extern const char load_plot[];
extern const char load_plot_end[];

/* Write the page from `from` up to a mark. Returns the part of the page after the mark. */
static const char *
write_page_up_to(FILE *out, const char *from, const char *mark)
{
    const char *at = memmem(from, (size_t)(load_page_end - from), mark, strlen(mark));

    fwrite(from, 1, (size_t)(at - from), out);
    return at + strlen(mark);
}

/* Write the part of the page after the runs. */
static void
write_rest(FILE *out, const char *from)
{
    const char *rest = write_page_up_to(out, from, PLOT);

    fwrite(load_plot, 1, (size_t)(load_plot_end - load_plot), out);
    fwrite(rest, 1, (size_t)(load_page_end - rest), out);
}

int
load_output_html(FILE *out, const struct load_run *run)
{
    const char *rest = write_page_up_to(out, load_page, RUNS);

    putc('[', out);
    load_output_json(out, run);
    putc(']', out);
    write_rest(out, rest);
    return load_output_finish(out);
}

/* ---- Several runs ---- */

/* Write JSON, with each "<" as \u003c, which is correct because "<" occurs only inside strings of
 * JSON. */
static int
write_html_json(const char *text, size_t length, void *out)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc(text[i], out);
    return ferror((FILE *)out) ? -1 : 0;
}

/* Add the text of a comparison of the files a and b. If there is no memory, the page does not have
 * this text. */
static void
add_comparison(json_t *run, const char *a, const char *b)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (out != NULL) {
        load_compare_files(a, b, MIN_EFFECT, out, out);
        fclose(out);
        json_object_set_new(run, "comparison", json_string(text));
        free(text);
    }
}

/* Check that the file has every member that the page reads. */
static bool
has_all_members(const char *path, const json_t *run, FILE *err)
{
    static const char *const names[] = {"plan",    "trials",      "total",  "figures",
                                        "verdict", "fingerprint", "command"};
    char problem[40];

    for (unsigned i = 0; i < SXE_COUNT(names); i++)
        if (json_object_get(run, names[i]) == NULL) {
            snprintf(problem, sizeof(problem), "has no '%s'", names[i]);
            load_result_file_refuse(path, problem, err);
            return false;
        }
    return true;
}

/* Load the files. Returns the runs; NULL: a file is no result, and a message on err says so. */
static json_t *
load_runs(int number, char **paths, FILE *err)
{
    json_t *runs = json_array();

    for (int i = 0; i < number; i++) {
        json_t *run = load_result_file_load(paths[i], err);

        if (run == NULL || !has_all_members(paths[i], run, err)) {
            json_decref(run);
            json_decref(runs);
            return NULL;
        }
        /* The page shows the path of each run's file. If a path is not UTF-8, json_string returns
         * NULL, and the path is not shown. */
        json_object_set_new(run, "file", json_string(paths[i]));
        if (i > 0)
            add_comparison(run, paths[0], paths[i]);
        json_array_append_new(runs, run);
    }
    return runs;
}

int
load_output_overlay(int number, char **paths, FILE *out, FILE *err)
{
    json_t *runs = load_runs(number, paths, err);
    const char *rest;
    int error;

    if (runs == NULL)
        return LOAD_EXIT_USAGE;
    rest = write_page_up_to(out, load_page, RUNS);
    json_dump_callback(runs, write_html_json, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(runs);
    write_rest(out, rest);
    error = load_output_finish(out);
    if (error == 0)
        return LOAD_EXIT_OK;
    fprintf(err, "sxe-http: the page could not be written: %s\n", strerror(-error));
    return LOAD_EXIT_ERRORS;
}
