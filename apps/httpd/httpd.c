/* SPDX-License-Identifier: MIT
 *
 * What: a web server: the files of a directory, or a greeting, over lib-sxe-http.
 * Place: read it after sxe-http.h; it is what a server on that library looks like: options, plan,
 * listen, run, and an end in good order.
 */
#include "access-log.h"
#include "options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port-holder.h"
#include "sxe-http-file.h"
#include "sxe-http.h"

#define GRACE_S 5.0 /* for requests that were begun when the end was asked for */

/* What callbacks without a context of their own look at. */
static struct {
    struct sxe_http *http;
    struct access_log *log;
    struct sxe_timer grace;
} httpd;

static enum sxe_http_verdict
hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const char text[] = "Hello, World!\n";

    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply(response, 200, "text/plain", text, sizeof(text) - 1);
}

/* ---- The access log ---- */

static void
on_reply(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    access_log_add(httpd.log, request, summary);
}

static void
on_second(struct sxe_timer *timer)
{
    SXE_UNUSED_PARAMETER(timer);
    access_log_flush(httpd.log);
}

static void
on_hang_up(struct sxe_signal *watch)
{
    int result = httpd.log == NULL ? 0 : access_log_reopen(httpd.log);

    SXE_UNUSED_PARAMETER(watch);
    if (result < 0)
        SXE_WARN("the access log cannot be opened again, the old one goes on: %s",
                 strerror(-result));
}

/* ---- The end ---- */

static void
on_stopped(struct sxe_http *http)
{
    SXE_UNUSED_PARAMETER(http);
    sxe_stop();
}

static void
on_grace_over(struct sxe_timer *timer)
{
    SXE_UNUSED_PARAMETER(timer);
    sxe_stop();
}

/* Once: in good order. Twice: now. */
static void
on_end(struct sxe_signal *watch)
{
    if (watch->user != NULL) {
        sxe_stop();
        return;
    }
    watch->user = watch;
    sxe_timer_init(&httpd.grace, on_grace_over, GRACE_S, 0);
    sxe_timer_start(&httpd.grace);
    sxe_http_stop(httpd.http, on_stopped);
}

/* ---- The beginning ---- */

/* Registered before anything is opened. 0, or -errno with all said. */
static int
make_plan(struct httpd_options *options, struct sxe_http_files **files)
{
    struct sxe_config config = *sxe_get_config();

    config.timeout_ms[SXE_STATE_WRITING] = options->stall_timeout_ms;
    sxe_configure(&config);
    options->http.handler = hello;
    options->http.on_reply = options->access_log != NULL ? on_reply : NULL;
    if (options->files.root != NULL) {
        *files = sxe_http_files_new(&options->files);
        if (*files == NULL) {
            fprintf(stderr, "sxe-httpd: cannot serve %s: %s\n", options->files.root,
                    strerror(errno));
            return -errno;
        }
        options->http.handler = sxe_http_files_handle;
        options->http.user = *files;
    }
    httpd.http = sxe_http_new(&options->http);
    if (httpd.http == NULL) {
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(errno));
        return -errno;
    }
    return 0;
}

/* What could not be bound, and by whom it is held. */
static int
cannot_listen(const struct httpd_options *options, const char *path, int error)
{
    char where[PORT_HOLDER_MAX];

    if (path == NULL)
        snprintf(where, sizeof(where), "%s port %u", options->ip, options->port);
    else
        snprintf(where, sizeof(where), "%s", path);
    fprintf(stderr, "sxe-httpd: cannot listen on %s: %s\n", where, strerror(error));
    if (error != EADDRINUSE)
        return -error;
    if (path == NULL)
        port_holder_of_port("/proc", options->ip, options->port, where, sizeof(where));
    else
        port_holder_of_path("/proc", path, where, sizeof(where));
    fprintf(stderr, "sxe-httpd: %s; stop it, or choose another with %s\n", where,
            path == NULL ? "-p" : "--unix");
    return -error;
}

static int
listen_at(const struct httpd_options *options)
{
    bool is_ipv6 = strchr(options->ip, ':') != NULL;
    int result = sxe_http_listen(httpd.http, options->ip, options->port);

    if (result < 0)
        return cannot_listen(options, NULL, -result);
    printf("listening on http://%s%s%s:%u/\n", is_ipv6 ? "[" : "", options->ip, is_ipv6 ? "]" : "",
           sxe_http_port(httpd.http));
    if (options->unix_path != NULL) {
        result = sxe_http_listen_unix(httpd.http, options->unix_path);
        if (result < 0)
            return cannot_listen(options, options->unix_path, -result);
        printf("listening on unix:%s\n", options->unix_path);
    }
    fflush(stdout);
    return 0;
}

static int
open_log(const struct httpd_options *options)
{
    if (options->access_log == NULL)
        return 0;
    httpd.log = access_log_open(options->access_log, options->access_log_format);
    if (httpd.log != NULL)
        return 0;
    fprintf(stderr, "sxe-httpd: cannot open the access log %s: %s\n", options->access_log,
            strerror(errno));
    return -errno;
}

static void
run(void)
{
    struct sxe_signal end[2] = {{.user = NULL}, {.user = NULL}};
    struct sxe_signal hang_up;
    struct sxe_timer second;

    sxe_signal_start(&end[0], SIGINT, on_end);
    sxe_signal_start(&end[1], SIGTERM, on_end);
    sxe_signal_start(&hang_up, SIGHUP, on_hang_up);
    sxe_timer_init(&second, on_second, 1.0, 1.0);
    if (httpd.log != NULL)
        sxe_timer_start(&second);
    sxe_run();
    sxe_timer_stop(&second);
    sxe_timer_stop(&httpd.grace);
    sxe_signal_stop(&end[0]);
    sxe_signal_stop(&end[1]);
    sxe_signal_stop(&hang_up);
}

static int
serve(const struct httpd_options *options)
{
    int result = sxe_init();

    if (result < 0) {
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(-result));
        return EXIT_FAILURE;
    }
    result = open_log(options);
    if (result == 0)
        result = listen_at(options);
    if (result == 0)
        run();
    sxe_fini();
    access_log_close(httpd.log);
    httpd.log = NULL;
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int
print_plan(const struct sxe_http_files *files)
{
    sxe_plan_print(stdout);
    sxe_http_plan_print(httpd.http, stdout);
    if (files != NULL)
        sxe_http_files_plan_print(files, stdout);
    return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    struct httpd_options options;
    struct sxe_http_files *files = NULL;
    int status = httpd_options_parse(&options, argc, argv);

    if (status >= 0)
        return status;
    if (make_plan(&options, &files) < 0)
        status = EXIT_FAILURE;
    else
        status = options.plan ? print_plan(files) : serve(&options);
    sxe_http_delete(httpd.http);
    sxe_http_files_delete(files);
    httpd.http = NULL;
    return status;
}
