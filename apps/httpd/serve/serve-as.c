/* SPDX-License-Identifier: MIT
 *
 * How a serving process becomes the user of --user.
 */
#include "serve-as.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "secure.h"
#include "sxe-log.h"
#include "sxe-workers-handover-internal.h"

int
serve_as_open_log(const struct httpd_options *options, const struct sxe_worker *worker,
                  struct access_log **log)
{
    int error;

    if (options->access_log == NULL || *log != NULL)
        return 0;
    become_make_file(&options->user, options->access_log);
    *log = access_log_open(options->access_log, &options->access_log_format,
                           options->http.request_id != NULL);
    error = errno;
    stats_watch_log(*log);
    if (worker != NULL)
        access_log_set_worker(*log, worker->place);
    if (*log != NULL && options->is_sample_given)
        access_log_sample(*log, options->access_log_rate, options->access_log_slow_ms);
    if (*log != NULL)
        return 0;
    fprintf(stderr,
            "sxe-httpd: cannot open the access log '%s': %s; choose another with --access-log, in "
            "a directory where you may write\n",
            options->access_log, strerror(error));
    return -error;
}

int
serve_as_begin(const struct httpd_options *options, const struct sxe_worker *worker,
               struct access_log **log)
{
    const struct become *user = &options->user;
    int result;

    if (!user->is_given)
        return 0;
    result = secure_open(options);
    if (result == 0)
        result = serve_as_open_log(options, worker, log);
    if (result == 0)
        result = become_now(user);
    if (result == 0 && (worker == NULL || worker->place == 0))
        SXE_INFO("process %d serves as user %s (%u), group %u", getpid(), user->name, user->user,
                 user->group);
    return result;
}
