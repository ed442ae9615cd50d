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

/* What callbacks without a context of their own look at. */
static struct {
    struct sxe_http *http;
    struct access_log *log;
    struct sxe_timer grace; /* for requests that were begun when the end was asked for */
    bool is_ending;
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
on_reopen(struct sxe_signal *watch)
{
    int result = httpd.log == NULL ? 0 : access_log_reopen(httpd.log);

    SXE_UNUSED_PARAMETER(watch);
    if (result < 0)
        SXE_WARN("the access log cannot be opened again, the file that is open goes on: %s",
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
    SXE_UNUSED_PARAMETER(watch);
    if (httpd.is_ending) {
        sxe_stop();
        return;
    }
    httpd.is_ending = true;
    sxe_timer_start(&httpd.grace);
    sxe_http_stop(httpd.http, on_stopped);
}

/* ---- The plan ---- */

#define USUAL_CHUNK 16384 /* of lib-sxe, in bytes: a head has to fit in */

static int
cannot_start(int error)
{
    fprintf(stderr, "sxe-httpd: cannot start: %s%s\n", strerror(error),
            error == ENOMEM ? "; less memory is wanted with a smaller -c or --max-body, see --plan"
                            : "");
    return -error;
}

static int
cannot_serve(const char *root, int error)
{
    fprintf(stderr,
            "sxe-httpd: cannot serve the files of '%s': %s; give -r a directory that there is, and "
            "that you may read\n",
            root, strerror(error));
    return -error;
}

static void
configure_loop(const struct httpd_options *options)
{
    struct sxe_config config = *sxe_get_config();

    config.timeout_ms[SXE_STATE_WRITING] = options->stall_timeout_ms;
    if (options->http.head.head_max > USUAL_CHUNK)
        config.chunk_size = options->http.head.head_max;
    sxe_configure(&config);
}

/* All that will be needed is registered before anything is opened. 0, or -errno with all said. */
static int
make_plan(struct httpd_options *options, struct sxe_http_files **files)
{
    configure_loop(options);
    options->http.handler = hello;
    options->http.on_reply = options->access_log != NULL ? on_reply : NULL;
    if (options->files.root != NULL) {
        *files = sxe_http_files_new(&options->files);
        if (*files == NULL)
            return cannot_serve(options->files.root, errno);
        options->http.handler = sxe_http_files_handle;
        options->http.user = *files;
    }
    httpd.http = sxe_http_new(&options->http);
    return httpd.http == NULL ? cannot_start(errno) : 0;
}

static int
print_plan(const struct sxe_http_files *files)
{
    sxe_plan_print(stdout);
    sxe_http_plan_print(httpd.http, stdout);
    if (files != NULL)
        sxe_http_files_plan_print(files, stdout);
    return 0;
}

/* ---- Listening ---- */

static int
cannot_listen_at_port(const struct httpd_options *options, int error)
{
    char why[PORT_HOLDER_MAX];
    const char *next = "";

    snprintf(why, sizeof(why), "%s", strerror(error));
    if (error == EADDRINUSE) {
        port_holder_of_port("/proc", options->ip, options->port, why, sizeof(why));
        next = "; stop it, or choose another port with -p";
    } else if (error == EADDRNOTAVAIL) {
        next = "; choose an address of this machine with -i";
    } else if (error == EACCES) {
        next = "; choose a port from 1024 on with -p, or give the program CAP_NET_BIND_SERVICE";
    }
    fprintf(stderr, "sxe-httpd: cannot listen on %s port %u: %s%s\n", options->ip, options->port,
            why, next);
    return -error;
}

static int
cannot_listen_at_path(const char *path, int error)
{
    char why[PORT_HOLDER_MAX];

    snprintf(why, sizeof(why), "%s", strerror(error));
    if (error == EADDRINUSE)
        port_holder_of_path("/proc", path, why, sizeof(why));
    fprintf(stderr,
            "sxe-httpd: cannot listen on %s: %s; choose another path with --unix, in a directory "
            "where you may write\n",
            path, why);
    return -error;
}

/* The port, or -errno with all said. */
static int
listen_at(const struct httpd_options *options)
{
    int result = sxe_http_listen(httpd.http, options->ip, options->port);
    int port;

    if (result < 0)
        return cannot_listen_at_port(options, -result);
    port = sxe_http_port(httpd.http);
    if (options->unix_path != NULL)
        result = sxe_http_listen_unix(httpd.http, options->unix_path);
    return result < 0 ? cannot_listen_at_path(options->unix_path, -result) : port;
}

/* The first that is printed; where the log goes to standard output, that is all the log's. */
static void
say_where(const struct httpd_options *options, int port)
{
    bool is_log = options->access_log != NULL && strcmp(options->access_log, "-") == 0;
    bool is_ipv6 = strchr(options->ip, ':') != NULL;
    FILE *out = is_log ? stderr : stdout;

    fprintf(out, "listening on http://%s%s%s:%d/\n", is_ipv6 ? "[" : "", options->ip,
            is_ipv6 ? "]" : "", port);
    if (options->unix_path != NULL)
        fprintf(out, "listening on unix:%s\n", options->unix_path);
    fflush(out);
}

/* ---- From the beginning to the end ---- */

struct watches {
    struct sxe_signal interrupt;
    struct sxe_signal terminate;
    struct sxe_signal hang_up;
    struct sxe_signal user_1; /* what scripts made for nginx send to have a log opened again */
    struct sxe_timer second;
};

static void
start_watching(struct watches *watches, const struct httpd_options *options)
{
    sxe_signal_start(&watches->interrupt, SIGINT, on_end);
    sxe_signal_start(&watches->terminate, SIGTERM, on_end);
    sxe_signal_start(&watches->hang_up, SIGHUP, on_reopen);
    sxe_signal_start(&watches->user_1, SIGUSR1, on_reopen);
    sxe_timer_init(&watches->second, on_second, 1.0, 1.0);
    sxe_timer_init(&httpd.grace, on_grace_over, options->stop_timeout_ms / 1000.0, 0);
    if (httpd.log != NULL)
        sxe_timer_start(&watches->second);
}

static void
stop_watching(struct watches *watches)
{
    sxe_signal_stop(&watches->interrupt);
    sxe_signal_stop(&watches->terminate);
    sxe_signal_stop(&watches->hang_up);
    sxe_signal_stop(&watches->user_1);
    sxe_timer_stop(&watches->second);
    sxe_timer_stop(&httpd.grace);
}

/* 0, or -errno with all said. */
static int
open_log(const struct httpd_options *options)
{
    int error;

    if (options->access_log == NULL)
        return 0;
    httpd.log = access_log_open(options->access_log, options->access_log_format);
    error = errno;
    if (httpd.log != NULL)
        return 0;
    fprintf(stderr,
            "sxe-httpd: cannot open the access log '%s': %s; choose another with --access-log, in "
            "a directory where you may write\n",
            options->access_log, strerror(error));
    return -error;
}

/* Watching comes first: who reads where it listens may send a signal at once. 0 or -errno. */
static int
listen_and_run(const struct httpd_options *options)
{
    struct watches watches;
    int port;

    start_watching(&watches, options);
    port = listen_at(options);
    if (port >= 0) {
        say_where(options, port);
        sxe_run();
    }
    stop_watching(&watches);
    return port < 0 ? port : 0;
}

static int
serve(const struct httpd_options *options)
{
    int result = sxe_init();

    if (result < 0)
        return cannot_start(-result);
    result = open_log(options);
    if (result == 0)
        result = listen_and_run(options);
    sxe_fini();
    access_log_close(httpd.log);
    httpd.log = NULL;
    return result;
}

int
main(int argc, char **argv)
{
    struct httpd_options options;
    struct sxe_http_files *files = NULL;
    int status = httpd_options_parse(&options, argc, argv);
    int result;

    if (status >= 0)
        return status;
    result = make_plan(&options, &files);
    if (result == 0)
        result = options.plan ? print_plan(files) : serve(&options);
    sxe_http_delete(httpd.http);
    sxe_http_files_delete(files);
    httpd.http = NULL;
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
