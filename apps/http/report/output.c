/* SPDX-License-Identifier: MIT
 *
 * Writing all output files that were asked for.
 */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Whether the path is GitHub's summary file. All commands of a step share this file, so an output
 * must be appended to it. */
static bool
is_appended(const char *path)
{
    const char *summary = getenv("GITHUB_STEP_SUMMARY");

    return summary != NULL && strcmp(path, summary) == 0;
}

static int
write_output_file(const char *path, int (*write)(FILE *, const struct load_run *),
                  const struct load_run *run)
{
    FILE *file = is_stdout(path) ? stdout : fopen(path, is_appended(path) ? "a" : "w");
    int error;

    if (file == NULL)
        return -errno;
    error = write(file, run);
    if (file == stdout)
        return error;
    return fclose(file) != 0 && error == 0 ? -errno : error;
}

#define FILES 8

struct file {
    const char *option;
    const char *path;
    int (*write)(FILE *, const struct load_run *);
};

static void
list_files(struct file files[FILES], const struct load_plan *plan)
{
    files[0] = (struct file){"--json", plan->json, load_output_json};
    files[1] = (struct file){"--csv", plan->csv, load_output_csv};
    files[2] = (struct file){"--candles", plan->candles, load_output_candles};
    files[3] = (struct file){"--hgrm", plan->hgrm, load_output_hgrm};
    files[4] = (struct file){"--hdr", plan->hdr, load_output_hdr};
    files[5] = (struct file){"--html", plan->html, load_output_html};
    files[6] = (struct file){"--junit", plan->junit, load_output_junit};
    files[7] = (struct file){"--markdown", plan->markdown, load_output_markdown};
}

bool
load_output_uses_stdout(const struct load_plan *plan)
{
    struct file files[FILES];
    bool uses = false;

    list_files(files, plan);
    for (unsigned i = 0; i < FILES; i++)
        uses |= files[i].path != NULL && is_stdout(files[i].path);
    return uses || (plan->jsonl != NULL && is_stdout(plan->jsonl));
}

/* Check that the file can be written: open it for appending, which changes nothing. Do not open a
 * pipe, because its reader would take the close for the end. */
static int
check_file(const char *path)
{
    struct stat file_stat;
    FILE *file;

    if (stat(path, &file_stat) == 0 && S_ISFIFO(file_stat.st_mode))
        return access(path, W_OK) < 0 ? -errno : 0;
    file = fopen(path, "ae");
    if (file == NULL)
        return -errno;
    fclose(file);
    return 0;
}

int
load_output_check(const struct load_plan *plan, FILE *err)
{
    struct file files[FILES];

    list_files(files, plan);
    for (unsigned i = 0; i < FILES; i++) {
        int error;

        if (files[i].path == NULL || is_stdout(files[i].path))
            continue;
        error = check_file(files[i].path);
        if (error < 0) {
            fprintf(err, "sxe-http: %s %s cannot be written: %s; nothing was run\n",
                    files[i].option, files[i].path, strerror(-error));
            return LOAD_EXIT_USAGE;
        }
    }
    return LOAD_EXIT_OK;
}

int
load_output_all(const struct load_run *run, FILE *err)
{
    struct file files[FILES];
    int status = LOAD_EXIT_OK;

    list_files(files, run->plan);
    for (unsigned i = 0; i < FILES; i++) {
        int error =
            files[i].path != NULL ? write_output_file(files[i].path, files[i].write, run) : 0;

        if (error < 0) {
            fprintf(err, "sxe-http: %s %s could not be written: %s\n", files[i].option,
                    files[i].path, strerror(-error));
            status = LOAD_EXIT_ERRORS;
        }
    }
    return status;
}
