/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd, a web server on lib-sxe-http and lib-sxe-lua. It serves the files of a
 * directory, the replies of a Lua script, or a greeting.
 *
 * Place: read it after sxe-http.h, as an example of a server on that library.
 *
 * Its files in reading order:
 *
 *     cli/      options.c: the command line; options-table.c: the table of its options
 *               options-tls.c: the options of TLS
 *               options-check.c: checks single values; options-complete.c: checks combinations
 *               first-steps.c: the server without options
 *     config/   config.c: options from the environment and a file; config-file.c: runs the file
 *               config-origin.c: the origin of each value; config-rows.c: its key and variable
 *               config-text.c: the text of the file, which workers share
 *               config-check.c: the option --check
 *     auth/     basic-auth.c: checks users and passwords; passwords.c: reads their files
 *               keyed-digest.c: the hash by which users who were right are remembered
 *     serve/    service.c: the serving process, which plans, listens, runs and drains
 *               serve-as.c: opens files as root, and becomes the user of --user
 *               listening.c: opens the listeners; lua-script.c: the script of --lua
 *               redirect.c: the plain port of --http-redirect; upstreams.c: upstreams of --proxy
 *               option-routes.c: the routes of --proxy and --stats
 *               rate-limit.c: how many requests a client may send in a time
 *               client-key.c: which addresses count as the same client
 *               access-log.c: the access log; counters.c: --stats; error-pages.c: --error-page
 *     tls/      secure.c: TLS of listeners and upstreams; secure-none.c: for builds without OpenSSL
 *     process/  reason.c: tells once why loads fail
 *               become.c: --user and --chroot, the user that serves and its root directory
 *               confine.c and confine-filter.c: --confine, the files and system calls that a
 *               process may use
 *     admin/    admin-metrics.c: the counters of all processes; admin.c: the process that shows
 *               them
 *
 * The parent that starts and replaces serving processes is lib-sxe-workers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin-metrics.h"
#include "admin.h"
#include "command-line.h"
#include "config-check.h"
#include "config-origin.h"
#include "config-sites.h"
#include "config-text.h"
#include "listening.h"
#include "options-table.h"
#include "options.h"
#include "program.h"
#include "rate-limit.h"
#include "reason.h"
#include "secure.h"
#include "service.h"
#include "sxe-lua.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-inherit-internal.h"
#include "sxe-workers-internal.h"

static struct {
    struct httpd_options options;
    /* with -w: counts the connections of each address at all workers together */
    struct sxe_http_shares *shares;
    int argc;
    char **argv;
} httpd;

/* Load the configuration, and serve. A process that is started for a reload parses the options
 * again, because the text of the configuration may have changed. If the new text is wrong, the
 * process ends, and the process that ran before it goes on serving. */
static int
load_and_serve(const struct sxe_worker *worker)
{
    if (worker != NULL && worker->load > 0 && httpd.options.config.file != NULL) {
        int status = httpd_options_parse(&httpd.options, httpd.argc, httpd.argv);

        if (status >= 0)
            return status;
    }
    httpd.options.http.shares = httpd.shares;
    if (listening_open(&httpd.options) < 0)
        return EXIT_FAILURE;
    return service_run(&httpd.options, worker) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int
serve_as_worker(void *user, const struct sxe_worker *worker)
{
    int status;

    SXE_UNUSED_PARAMETER(user);
    rate_limit_join();
    if (worker == NULL)
        return load_and_serve(worker);
    metrics_begin_worker(worker->place, worker->slot);
    if (worker->load > 0)
        reason_watch();
    status = load_and_serve(worker);
    reason_fail(worker->link);
    return status;
}

/* Serve without a supervisor. At the end close the sockets, because no other process needs them. */
static int
serve_alone(void)
{
    int status = serve_as_worker(NULL, NULL);

    sxe__handover_remove_files();
    sxe__handover_close_others();
    return status;
}

/* A worker has ended: do not count its connections any longer, and do not show it in the status. */
static void
forget_worker(void *user, unsigned slot)
{
    SXE_UNUSED_PARAMETER(user);
    if (httpd.shares != NULL)
        sxe_http_shares_clear(httpd.shares, slot);
    metrics_worker_ended(slot);
}

/* Make the table with which workers count the connections of an address together. 0 or -errno. */
static int
share_limits(void)
{
    const struct httpd_options *options = &httpd.options;
    uint32_t connections = options->http.connections == 0 ? 10000 : options->http.connections;

    if (options->workers == 0)
        return 0;
    httpd.shares = sxe_http_shares_new(SXE_WORKERS_CHILDREN * options->workers, connections);
    return httpd.shares == NULL ? -errno : 0;
}

/* Create the access log before workers open it, because they may not be allowed to create it. */
static void
make_log(void *user)
{
    SXE_UNUSED_PARAMETER(user);
    if (httpd.options.access_log != NULL)
        become_make_file(&httpd.options.user, httpd.options.access_log);
}

static bool
are_certificates_watched(const struct httpd_options *options)
{
    return become_is_other(&options->user) && options->tls.certificates > 0;
}

/* Watch the files of certificates, so that workers that are started later read them again. Running
 * workers cannot, because they became a user that may not read the files. */
static void
watch_certificates(void)
{
    const struct httpd_tls_options *tls = &httpd.options.tls;

    for (unsigned i = 0; i < tls->certificates; i++) {
        sxe_workers_watch_file(tls->certificate[i]);
        sxe_workers_watch_file(tls->key[i]);
        if (tls->staple[i] != NULL)
            sxe_workers_watch_file(tls->staple[i]);
    }
    if (tls->client_ca != NULL)
        sxe_workers_watch_file(tls->client_ca);
}

/* Watch the files that the options at the start name. Workers tell the names of the files of a
 * later configuration. */
static void
watch_option_files(void *user)
{
    SXE_UNUSED_PARAMETER(user);
    if (are_certificates_watched(&httpd.options))
        watch_certificates();
    config_passwords_watch(httpd.options.config.sites);
}

static void
renew_configuration(void *user)
{
    SXE_UNUSED_PARAMETER(user);
    if (httpd.options.config.file != NULL)
        config_text_renew(httpd.options.config.file);
}

static void
settle_configuration(void *user, bool is_good)
{
    SXE_UNUSED_PARAMETER(user);
    config_text_settle(is_good);
}

static bool
are_files_watched(const struct httpd_options *options)
{
    return are_certificates_watched(options) || config_has_passwords(options->config.sites);
}

static int
serve_under_supervisor(const char *script)
{
    const struct httpd_options *options = &httpd.options;
    const struct sxe__workers_hooks hooks = {.on_renew = renew_configuration,
                                             .on_ending = metrics_set_draining,
                                             .on_attempt = reason_begin_load,
                                             .on_reason = reason_note,
                                             .is_reason_told = reason_is_told,
                                             .look_at_helper = admin_look,
                                             .helper = admin_pid,
                                             .script = script,
                                             .stop_option = "--stop-timeout",
                                             .hang_option = "--hang-timeout",
                                             .reopens_by_load = options->user.root != NULL,
                                             .is_dev = options->lua.is_dev,
                                             .watches_files = options->config.file != NULL};
    const struct sxe_workers_config config = {
        .serve = serve_as_worker,
        .workers = options->workers == 0 ? 1 : options->workers,
        .stop_timeout_ms = options->stop_timeout_ms,
        .hang_timeout_ms =
            options->hang_timeout_ms == 0 ? SXE_WORKERS_NO_LIMIT : options->hang_timeout_ms,
        .name = script,
        .argv = httpd.argv,
        .on_load = are_files_watched(options) ? watch_option_files : NULL,
        .on_settled = settle_configuration,
        .on_end = forget_worker,
        .on_reopen = make_log,
        .on_turn = secure_is_wanted(options) ? secure_turn : NULL,
        .describe = sxe_lua_describe_running,
        .hooks = &hooks};
    int result = share_limits();
    int status = EXIT_FAILURE;

    if (result < 0) {
        fprintf(stderr,
                "sxe-httpd: cannot start: %s; give fewer workers (-w) or connections (-c)\n",
                strerror(-result));
        return EXIT_FAILURE;
    }
    config_hold_text();
    metrics_begin_supervisor();
    if (listening_open(&httpd.options) == 0)
        status = sxe_workers_run(&config);
    sxe__handover_remove_files();
    sxe__handover_close_others();
    sxe_http_shares_delete(httpd.shares);
    return status;
}

/* If there is a configuration file, make the table of rates, even if the file has no rate: a reload
 * may bring the first one. */
static int
begin_rates(void)
{
    const int result = httpd.options.config.file == NULL ? 0 : rate_limit_begin();

    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot start: cannot make the table of rate limits: %s%s\n",
                strerror(-result), result == -ENOENT ? "; is /proc mounted?" : "");
    return result;
}

static int
begin_and_serve(const char *script)
{
    const struct httpd_options *options = &httpd.options;
    const unsigned workers = options->workers > 0 ? options->workers : 1;
    int status;

    if (begin_rates() < 0 || admin_begin(options, SXE_WORKERS_CHILDREN * workers) < 0) {
        rate_limit_end();
        return EXIT_FAILURE;
    }
    if (options->is_repl || (options->workers == 0 && script == NULL && !options->admin_is_on &&
                             options->user.root == NULL))
        status = serve_alone();
    else
        status = serve_under_supervisor(script);
    admin_end();
    rate_limit_end();
    return status;
}

/* Run with options that were parsed and checked. Returns the exit status. */
static int
run_program(void)
{
    const struct httpd_options *options = &httpd.options;
    const char *script = options->script != NULL ? options->script : options->config.file;

    if (options->config.print) {
        config_print();
        return command_line_end_output(&httpd_line, EXIT_SUCCESS);
    }
    if (options->config.check)
        return config_check(options);
    if (options->plan)
        return service_plan(&httpd.options) < 0
                   ? EXIT_FAILURE
                   : command_line_end_output(&httpd_line, EXIT_SUCCESS);
    /* A reload of the configuration may change --user. */
    if (become_is_other(&options->user) || (options->config.file != NULL && geteuid() == 0))
        sxe__handover_leave_files();
    if (sxe__inherit_sockets("sxe-httpd") < 0 || become_begin(&options->user) < 0 ||
        secure_begin(options) < 0)
        return EXIT_FAILURE;
    return begin_and_serve(script);
}

int
main(int argc, char **argv)
{
    /* Parsing changes the order of the words, and options point to them. So parse a copy of the
     * list, which stays valid until the end. A reload parses argv itself. */
    char **copy = calloc((size_t)argc + 1, sizeof(*copy));
    int status = EXIT_FAILURE;

    program_begin(NULL);
    httpd.argc = argc;
    httpd.argv = argv;
    if (copy == NULL) {
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(errno));
    } else {
        memcpy(copy, argv, (size_t)argc * sizeof(*copy));
        status = httpd_options_parse(&httpd.options, argc, copy);
    }
    if (status == COMMAND_LINE_GO_ON)
        status = run_program();
    secure_end();
    config_end();
    free(copy);
    return status;
}
