/* SPDX-License-Identifier: MIT
 *
 * The serving process, from its plan to its end.
 */
#include "service.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin-metrics.h"
#include "admin.h"
#include "config-sites.h"
#include "confine.h"
#include "counters.h"
#include "crash.h"
#include "listening.h"
#include "lua-script.h"
#include "option-routes.h"
#include "profile.h"
#include "program.h"
#include "reason.h"
#include "redirect.h"
#include "secure.h"
#include "serve-as.h"
#include "sxe-http-fastcgi-server.h"
#include "sxe-http-router.h"
#include "sxe-lua-clock.h"
#include "sxe-lua-http.h"
#include "sxe-process-internal.h"
#include "sxe-workers-internal.h"
#include "sxe-workers-notify-internal.h"

enum ending { NOT_ENDING, DRAINING, ENDING };

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
enum { SIGNALS = sizeof(stop_signals) / sizeof(stop_signals[0]) };

/* The state of the process, for callbacks that have no context argument. */
static struct {
    struct httpd_options *options;
    struct sxe_http *http;
    struct sxe_http_files *files;
    struct sxe_http_router *router; /* for --stats and --proxy; NULL: neither was given */
    struct access_log *log;
    struct sxe_signal signals[SIGNALS];
    struct sxe_timer second;
    /* looks whether the script's top level has ended; in the drain, whether connections are left */
    struct sxe_timer progress;
    struct sxe_timer alive; /* sends the messages for the watchdog of a service manager */
    struct sxe_timer grace; /* ends the drain after --stop-timeout */
    int link;               /* the socket to the supervisor; -1: there is none */
    struct sxe_worker worker;
    struct error_pages error_pages;
    enum ending ending;
    bool has_asked;     /* whether this process asked to be replaced, because of little memory */
    unsigned drained_s; /* how many seconds ago this process began to drain */
    bool was_over;      /* whether the last on_progress_of_end found no task or client that waits */
    int result;
} service;

static enum sxe_http_verdict
reply_hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const char text[] = "Hello, World!\n";

    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply(response, 200, "text/plain", text, sizeof(text) - 1);
}

/* ---- Counters, the access log and memory ---- */

/* The function on_reply of the server if --admin is given, but neither --access-log nor --stats. */
static void
count_admin_reply(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    metrics_count(request, summary);
}

static void
on_reply(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    stats_count(summary);
    metrics_count(request, summary);
    if (service.log != NULL)
        access_log_add(service.log, request, summary);
}

/* If the script has little memory left, ask for a reload: a new process begins with free memory. */
static void
look_at_memory(void)
{
    if (script_state() == NULL || service.link < 0 || service.has_asked || !script_is_full())
        return;
    SXE_WARN(
        "%s uses more than nine tenths of its memory (--lua-memory), so it will be loaded again",
        service.options->script);
    service.has_asked = sxe_workers_renew() == 0;
}

static void
on_server_stopped(struct sxe_http *http)
{
    SXE_UNUSED_PARAMETER(http);
    /* if there are tunnels, on_progress_of_end notices the end of the last one */
    if (!upstreams_have_tunnels())
        sxe_stop();
}

/* A reload may have changed the files of passwords, but this process, which drains, still has the
 * old passwords. So its clients get only two ticks for a last request, and not --stop-timeout. Two
 * ticks are enough for a request that is on its way. */
static void
end_earlier_passwords(void)
{
    if (service.ending == DRAINING && config_has_passwords(service.options->config.sites) &&
        ++service.drained_s == 2)
        sxe_http_stop(service.http, script_state() == NULL ? on_server_stopped : NULL);
}

static void
on_second(struct sxe_timer *timer)
{
    SXE_UNUSED_PARAMETER(timer);
    end_earlier_passwords();
    if (service.log != NULL)
        access_log_flush(service.log);
    stats_publish();
    look_at_memory();
    if (service.link < 0 || !become_is_other(&service.options->user))
        /* with --user the supervisor, which is root, looks at the certificates instead */
        secure_look();
}

static void
on_alive(struct sxe_timer *timer)
{
    SXE_UNUSED_PARAMETER(timer);
    sxe__notify_alive();
}

static void
reopen_access_log(void)
{
    int result = service.log == NULL ? 0 : access_log_reopen(service.log);

    if (result < 0)
        SXE_WARN("cannot open the access log again: %s; writing continues to the file that is open",
                 strerror(-result));
}

/* ---- The end ---- */

/* End now, although replies are in progress. Their clients see a reset. */
static void
stop_service_at_once(void)
{
    sxe_http_break_off(service.http);
    if (script_state() != NULL)
        sxe_lua_http_break_off(script_state());
    sxe_stop();
}

static void
on_grace_over(struct sxe_timer *timer)
{
    SXE_UNUSED_PARAMETER(timer);
    stop_service_at_once();
}

/* Stop when no task of the script waits, and no client waits for the rest of a reply. Both must be
 * so at two looks, because a task that was just woken does not count as waiting at the first look.
 * A client that has its whole reply may keep its connection open. */
static void
on_progress_of_end(struct sxe_timer *timer)
{
    bool is_over = sxe_lua_waiting() == 0;

    SXE_UNUSED_PARAMETER(timer);
    for (unsigned state = SXE_STATE_CONNECTING; state <= SXE_STATE_CLOSING; state++)
        is_over = is_over && sxe_number_waited_for((enum sxe_state)state) == 0;
    if (is_over && service.was_over)
        sxe_stop();
    service.was_over = is_over;
}

static void
watch_progress_of_end(void)
{
    sxe_timer_stop(&service.progress);
    sxe_timer_init(&service.progress, on_progress_of_end, 0.01, 0.01);
    sxe_timer_start(&service.progress);
}

static void
drain_clients(void)
{
    redirect_stop();
    sxe_http_drain(service.http, script_state() == NULL ? on_server_stopped : NULL);
    if (script_state() != NULL)
        sxe_lua_http_drain(script_state());
    sxe_stop_listening();
}

static void
stop_service(void)
{
    redirect_stop();
    if (script_state() == NULL) {
        sxe_http_stop(service.http, on_server_stopped);
        return;
    }
    sxe_http_stop(service.http, NULL);
    sxe_lua_http_stop(script_state());
    sxe_stop_listening();
}

/* The first call begins to drain or to end. A second call with ENDING stops at once. */
static void
end_service(enum ending how)
{
    if (service.ending >= how) {
        if (how == ENDING)
            stop_service_at_once();
        return;
    }
    service.ending = how;
    metrics_set_state(METRICS_LEAVING);
    if (service.link < 0)
        sxe__notify_stopping();
    sxe_timer_start(&service.grace);
    if (how == DRAINING)
        drain_clients();
    else
        stop_service();
    watch_progress_of_end();
}

/* Print the addresses. When several workers serve, the supervisor asks only the first to do so. */
static void
say_where(void)
{
    listening_say(service.options);
    admin_say(service.options);
}

/* ---- Signals, or, under a supervisor, messages ---- */

static void
on_stop_signal(struct sxe_signal *watch)
{
    switch (watch->ev.signum) {
    case SIGHUP:
        secure_reload();
        reopen_access_log();
        break;
    case SIGUSR1:
        reopen_access_log();
        break;
    case SIGQUIT:
        stats_log();
        break;
    case SIGUSR2:
        SXE_WARN("SIGUSR2: no new program is started, as no supervisor keeps the sockets: start "
                 "this one with -w 1");
        break;
    default:
        end_service(ENDING);
        break;
    }
}

static void
on_worker_event(void *user, enum sxe_workers_event event)
{
    SXE_UNUSED_PARAMETER(user);
    switch (event) {
    case SXE_WORKERS_REOPEN:
        reopen_access_log();
        break;
    case SXE_WORKERS_STATS:
        stats_log();
        break;
    case SXE_WORKERS_FIRST:
        say_where();
        break;
    case SXE_WORKERS_DRAIN:
        end_service(DRAINING);
        break;
    case SXE_WORKERS_END:
        end_service(ENDING);
        break;
    }
}

static void
watch_events(void)
{
    const double seconds = (double)sxe__notify_period_ns() / (double)SXE_NS_PER_SECOND;

    if (service.link >= 0) {
        (void)sxe_workers_attend(on_worker_event, NULL);
    } else {
        for (unsigned i = 0; i < SIGNALS; i++)
            sxe_signal_start(&service.signals[i], stop_signals[i], on_stop_signal);
        sxe_timer_init(&service.alive, on_alive, 0, seconds);
        if (seconds > 0)
            sxe_timer_start(&service.alive);
    }
    sxe_timer_init(&service.second, on_second, 1.0, 1.0);
    sxe_timer_init(&service.grace, on_grace_over, service.options->stop_timeout_ms / 1000.0, 0);
    if (service.log != NULL || service.link >= 0 || metrics_are_on() || secure_is_open())
        sxe_timer_start(&service.second);
}

static void
on_shell_end(void)
{
    end_service(ENDING);
}

/* From here on the process ends in any case. If a signal comes late, it must not change the exit
 * status, so it is ignored, and the default action, which would kill, is never in force. */
static void
ignore_late_signals(void)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    for (unsigned i = 0; i < SIGNALS; i++) {
        sxe_signal_stop(&service.signals[i]);
        sxe__signal_disarm(stop_signals[i]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void
stop_watching(void)
{
    script_stop_shell();
    sxe__workers_ignore();
    ignore_late_signals();
    sxe_timer_stop(&service.second);
    sxe_timer_stop(&service.alive);
    sxe_timer_stop(&service.progress);
    sxe_timer_stop(&service.grace);
}

/* ---- The plan ---- */

static int
report_failed_start(int error)
{
    fprintf(stderr, "sxe-httpd: cannot start: %s%s\n", strerror(error),
            error == ENOMEM ? "; try a smaller -c or --max-body; --plan prints what they need"
                            : "");
    return -error;
}

static int
cannot_serve(const char *root, int error)
{
    fprintf(stderr,
            "sxe-httpd: cannot serve the files of '%s': %s; -r needs an existing, readable "
            "directory\n",
            root, strerror(error));
    return -error;
}

/* Choose the handler: the script, files or the greeting. 0, or -errno after a message. */
static int
choose_handler(struct sxe_http_config *http)
{
    const struct httpd_options *options = service.options;
    int result = 0;

    http->handler = reply_hello;
    if (options->script != NULL) {
        http->handler = sxe_lua_http_handle;
        http->stream = true;
        http->random = sxe_lua_get_clock()->random;
        result = script_load(options, service.link);
        if (result == 0 && sxe_lua_http_has_proxies(script_state()))
            upstreams_make_room(http);
    }
    if (result == 0 && options->config.sites != NULL) {
        http->handler = config_routes_handle;
        http->user = options->config.sites;
        return config_routes_open(options->config.sites, &options->files, &options->proxy_tls,
                                  http);
    }
    if (result < 0 || options->files.root == NULL)
        return result;
    service.files = sxe_http_files_new(&options->files);
    if (service.files == NULL)
        return cannot_serve(options->files.root, errno);
    http->handler = sxe_http_files_handle;
    http->user = service.files;
    return 0;
}

/* Create all parts of the server, so that sxe_init can reserve their memory, but open no socket. 0,
 * or -errno after a message. */
static int
make_server_plan(void)
{
    struct sxe_http_config http = service.options->http;
    int result;

    http.share = service.worker.slot;
    listening_configure_loop(service.options);
    service.error_pages = service.options->error_pages;
    result = error_pages_read(&service.error_pages);
    if (result < 0)
        return result;
    http.pages = service.error_pages.pages;
    http.pages_number = service.error_pages.number;
    result = choose_handler(&http);
    if (result < 0)
        return result;
    result = passes_open(service.options->passes, service.options->passes_number,
                         &service.options->proxy_tls, &http);
    if (result < 0)
        return result;
    result = option_routes_make(service.options, &service.router);
    if (result < 0)
        return result;
    http.router = service.router;
    if (service.options->access_log != NULL || service.options->stats_path != NULL)
        http.on_reply = on_reply;
    else if (metrics_are_on())
        http.on_reply = count_admin_reply;
    service.http = sxe_http_new(&http);
    result = service.http == NULL ? -errno : redirect_plan(service.options, http.on_reply);
    if (result == 0 && service.options->fastcgi_is_on)
        result = sxe_http_fastcgi_new(service.http, 0);
    return result < 0 ? report_failed_start(-result) : 0;
}

static void
drop_plan(void)
{
    script_end();
    sxe_http_delete(service.http);
    redirect_delete();
    sxe_http_router_delete(service.router);
    sxe_http_files_delete(service.files);
    error_pages_free(&service.error_pages);
    passes_close(service.options->passes, service.options->passes_number);
    if (service.options->config.sites != NULL)
        config_routes_close(service.options->config.sites);
}

static void
begin_service(struct httpd_options *options, const struct sxe_worker *worker)
{
    memset(&service, 0, sizeof(service));
    service.options = options;
    service.link = worker == NULL ? -1 : worker->link;
    if (worker != NULL)
        service.worker = *worker;
}

int
service_plan(struct httpd_options *options)
{
    int result;

    begin_service(options, NULL);
    result = become_enter(&options->user);
    if (result == 0)
        result = make_server_plan();
    if (result == 0) {
        sxe_plan_print(stdout);
        sxe_http_plan_print(service.http, stdout);
        if (service.files != NULL)
            sxe_http_files_plan_print(service.files, stdout);
        passes_plan_print(options->passes, options->passes_number);
        config_routes_plan_print(options->config.sites);
        if (options->script != NULL)
            printf("%-16s %10s %33zu bytes at most\n", "Lua", "", options->lua.memory_max);
    }
    drop_plan();
    return result;
}

/* ---- Start, run, end ---- */

/* Tell the supervisor that this process is ready. Do that before the address is printed, because a
 * program that reads the address may send a signal at once. 0 or -errno. */
static int
say_ready(void)
{
    reason_end();
    if (service.options->script != NULL)
        script_is_ready();
    metrics_set_state(METRICS_READY);
    stats_publish();
    return sxe_workers_ready();
}

/* Accept connections from now on. 0, or -errno after a message. */
static int
start_accepting(void)
{
    const struct httpd_options *options = service.options;
    int result = 0;

    if (options->script != NULL && script_check() < 0)
        return -EINVAL;
    if (options->script == NULL || options->is_place_given ||
        sxe_lua_http_has_handler(script_state()))
        result = listening_begin(service.http, options);
    result = result < 0 ? result : say_ready();
    if (result < 0)
        return result;
    if (service.worker.workers < 2 && service.worker.load == 0)
        say_where();
    if (service.link < 0)
        sxe__notify_ready(1);
    return options->is_repl ? script_start_shell(on_shell_end) : 0;
}

/* Wait until the script's top level has ended, and then accept connections. */
static void
on_progress(struct sxe_timer *timer)
{
    int result = script_progress();

    if (result == -EINPROGRESS)
        return;
    sxe_timer_stop(timer);
    service.result = result < 0 ? result : start_accepting();
    if (service.result < 0)
        sxe_stop();
}

/* Watch signals. Do that before the address is printed, because a program that reads the address
 * may send a signal at once. 0, or -errno after a message. */
static int
listen_and_run(void)
{
    watch_events();
    sxe_timer_init(&service.progress, on_progress, 0.01, 0.01);
    service.result = service.options->script == NULL ? 0 : script_begin();
    if (service.result == 0 && service.options->script != NULL && script_progress() == -EINPROGRESS)
        sxe_timer_start(&service.progress);
    else if (service.result == 0)
        service.result = start_accepting();
    if (service.result == 0)
        sxe_run();
    stats_publish(); /* the counts since the last second */
    stop_watching();
    return service.result;
}

int
service_run(struct httpd_options *options, const struct sxe_worker *worker)
{
    int result;

    begin_service(options, worker);
    crash_begin("sxe-httpd");
    profile_begin();
    stats_begin(options, service.worker.load);
    result = config_passwords_open(options->config.sites, service.link);
    if (result == 0)
        result = serve_as_begin(options, worker, &service.log);
    if (result == 0)
        result = make_server_plan();
    if (result == 0)
        result = secure_open(options);
    if (result == 0)
        result = serve_as_open_log(options, worker, &service.log);
    /* Confine the process before sxe_init starts threads, because Landlock confines only this
     * thread and those that it starts later. */
    if (result == 0)
        result = confine_begin(options);
    if (result == 0) {
        result = sxe_init();
        if (result < 0)
            (void)report_failed_start(-result);
    }
    if (result == 0) {
        result = listen_and_run();
        sxe_fini();
    }
    secure_close();
    access_log_close(service.log);
    drop_plan();
    return result;
}
