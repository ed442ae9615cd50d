/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <string.h>

#include "requests.h"

int
http_output_finish(FILE *out)
{
    if (fflush(out) == 0 && !ferror(out))
        return 0;
    /* It may have been an earlier call that failed; none that succeeds clears its errno. */
    return errno != 0 ? -errno : -EIO;
}

double
http_per_second(uint64_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

const char *
http_kind_name(const struct http_plan *plan, unsigned kind)
{
    const struct http_requests *requests = plan->requests;

    return requests != NULL && kind < requests->kinds && requests->kind_names != NULL
               ? requests->kind_names[kind]
               : "request";
}

const char *
http_model_text(enum http_model model)
{
    static const char *const names[] = {"closed loop", "partly open", "open"};

    return names[model];
}

static int
write_file(const char *path, int (*write)(FILE *, const struct http_run *),
           const struct http_run *run)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    int error;

    if (file == NULL)
        return -errno;
    error = write(file, run);
    if (file == stdout)
        return error;
    return fclose(file) != 0 && error == 0 ? -errno : error;
}

int
http_output_all(const struct http_run *run, FILE *err)
{
    const struct {
        const char *option;
        const char *path;
        int (*write)(FILE *, const struct http_run *);
    } files[] = {
        {"--json", run->plan->json, http_output_json},
        {"--csv", run->plan->csv, http_output_csv},
        {"--candles", run->plan->candles, http_output_candles},
        {"--hgrm", run->plan->hgrm, http_output_hgrm},
        {"--html", run->plan->html, http_output_html},
    };
    int status = HTTP_EXIT_OK;

    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int error = files[i].path != NULL ? write_file(files[i].path, files[i].write, run) : 0;

        if (error < 0) {
            fprintf(err, "sxe-http: %s %s could not be written: %s\n", files[i].option,
                    files[i].path, strerror(-error));
            status = HTTP_EXIT_ERRORS;
        }
    }
    return status;
}
