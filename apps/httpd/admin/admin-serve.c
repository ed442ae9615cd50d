/* SPDX-License-Identifier: MIT
 *
 * The server of the admin process. The texts of its replies must stay valid until they are sent,
 * because sxe-http.h does not copy them.
 */
#include "admin-serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "admin.h"
#include "options.h"
#include "prometheus.h"
#include "status-page.h"
#include "sxe-http-router.h"
#include "sxe-http.h"
#include "sxe-workers-file-internal.h"

#define HEX 32

static struct {
    const struct admin_service *service;
    struct sxe_http *http;
    struct sxe_http_router *router;
    struct sxe_signal end;
    struct sxe__socket_file file;
    unsigned texts; /* how many replies are being sent */
    char token[HEX + 1];
    struct status_page page; /* the arguments for add_page */
    struct metrics_sum sum;
} serving;

/* ---- Replies ---- */

static void
free_reply_text(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(result);
    free(response->user);
    serving.texts--;
}

static enum sxe_http_verdict
reply_with_page(struct sxe_http_response *response, const char *type,
                void (*write)(struct text *text, const struct metrics_sum *sum))
{
    struct text text = {.size = 0};

    if (serving.texts == ADMIN_TEXTS)
        return sxe_http_reply_text(
            response, 503, "too many other status replies are still being sent; try again\n");
    metrics_add_up(&serving.sum);
    write(&text, &serving.sum);
    if (text.is_cut) {
        text_end(&text);
        return sxe_http_reply_text(response, 500, "there is no memory for the reply\n");
    }
    serving.texts++;
    response->user = text.base;
    response->on_done = free_reply_text;
    sxe_http_add_field(response, "Content-Type", type);
    sxe_http_add_field(response, "Cache-Control", "no-store");
    /* if this fails, it replies 500 itself */
    (void)!sxe_http_end_borrowed(response, text.base, text.used);
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
show_metrics(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return reply_with_page(response, METRICS_TEXT_TYPE, metrics_add_prometheus);
}

static enum sxe_http_verdict
show_status(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return reply_with_page(response, "application/json", metrics_add_json);
}

static enum sxe_http_verdict
say_that_it_lives(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply_text(response, 200, "ok\n");
}

/* Reply to /readyz. If the server is not ready, the status is 404, because HAProxy with
 * disable-on-404 then sends no new sessions to it. */
static enum sxe_http_verdict
say_whether_ready(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    metrics_add_up(&serving.sum);
    if (serving.sum.is_ready)
        return sxe_http_reply_text(response, 200, "ready\n");
    return sxe_http_reply_text(response, 404,
                               serving.sum.is_draining ? "draining\n" : "no worker is ready\n");
}

/* ---- Requests that are refused ---- */

/* Whether the Host field is an address or localhost, or the request came over a unix socket. With
 * DNS rebinding an attacker makes a name of his own resolve to this machine; requests of his page
 * then have this name as Host. */
static bool
is_asked_by_address(const struct sxe_http_request *request)
{
    struct sxe_span host = sxe_http_authority(request);
    size_t length = 0;

    if (serving.service->options->admin_path != NULL)
        return true;
    if (host.length > 0 && host.base[0] == '[') /* only an IPv6 address begins with a bracket */
        return true;
    while (length < host.length && host.base[length] != ':')
        length++;
    if (length == 9 && strncasecmp(host.base, "localhost", length) == 0)
        return true;
    for (size_t i = 0; i < length; i++) {
        if (host.base[i] != '.' && (host.base[i] < '0' || host.base[i] > '9'))
            return false;
    }
    return length > 0;
}

static bool
is_span_text(struct sxe_span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.base, text, span.length) == 0;
}

/* Whether a browser sent the request for a page of another site. Browsers tell that with Origin or
 * Sec-Fetch-Site (W3C Fetch Metadata); other programs send neither field. */
static bool
is_of_another_site(const struct sxe_http_request *request)
{
    struct sxe_span origin = sxe_http_field_value(request, "Origin");
    struct sxe_span relation = sxe_http_field_value(request, "Sec-Fetch-Site");
    struct sxe_span host = sxe_http_authority(request);
    const size_t scheme = sizeof("http://") - 1;

    if (relation.base != NULL && !is_span_text(relation, "same-origin") &&
        !is_span_text(relation, "none"))
        return true;
    if (origin.base == NULL)
        return false;
    return origin.length != scheme + host.length || memcmp(origin.base, "http://", scheme) != 0 ||
           memcmp(origin.base + scheme, host.base, host.length) != 0;
}

static bool
is_admin_token(const char *text, size_t length)
{
    unsigned char differs = 0;

    if (length != HEX)
        return false;
    for (size_t i = 0; i < HEX; i++)
        differs |= (unsigned char)(text[i] ^ serving.token[i]);
    return differs == 0;
}

static bool
may_have_token(const struct sxe_http_request *request)
{
    return is_asked_by_address(request) && !is_of_another_site(request);
}

/* Get the token of a request for an action. A form of the status page has the token in its body. */
static bool
is_form_with_token(const struct sxe_http_request *request)
{
    char given[HEX + 1];
    ssize_t length = sxe_http_query_find(request->body, "token", given, sizeof(given));

    return length >= 0 && is_admin_token(given, (size_t)length);
}

static bool
is_allowed_action(const struct sxe_http_request *request)
{
    struct sxe_span given = sxe_http_field_value(request, "X-Sxe-Token");

    return may_have_token(request) &&
           ((given.base != NULL && is_admin_token(given.base, given.length)) ||
            is_form_with_token(request));
}

/* ---- The page ---- */

static int
make_random_token(char hex[HEX + 1])
{
    unsigned char bytes[HEX / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return -EIO;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static void
add_page(struct text *text, const struct metrics_sum *sum)
{
    status_page_add(text, sum, &serving.page);
}

/* Send the status page. Its policy lets it load only /status.json and /token, and lets no other
 * page show it in a frame. */
static enum sxe_http_verdict
show_page(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char nonce[HEX + 1];
    char policy[256];

    if (make_random_token(nonce) < 0)
        return sxe_http_reply_status(response, 500);
    snprintf(policy, sizeof(policy),
             "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; connect-src 'self'; "
             "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
             nonce, nonce);
    sxe_http_add_field(response, "Content-Security-Policy", policy);
    sxe_http_add_field(response, "X-Content-Type-Options", "nosniff");
    serving.page.nonce = nonce;
    serving.page.token = may_have_token(request) ? serving.token : NULL;
    return reply_with_page(response, "text/html; charset=utf-8", add_page);
}

/* ---- Actions ---- */

/* Reply to an action: with a redirect to the status page if a form of this page sent the request,
 * otherwise with text. */
static enum sxe_http_verdict
reply_to_action(struct sxe_http_request *request, struct sxe_http_response *response,
                const char *text)
{
    if (!is_form_with_token(request))
        return sxe_http_reply_text(response, 202, text);
    sxe_http_add_field(response, "Location", "/");
    return sxe_http_reply_text(response, 303, text);
}

static enum sxe_http_verdict
signal_parent(struct sxe_http_request *request, struct sxe_http_response *response,
              int signal_number, const char *text)
{
    if (!is_allowed_action(request))
        return sxe_http_reply_status(response, 403);
    if (kill(serving.service->parent, signal_number) < 0)
        return sxe_http_reply_status(response, 500);
    return reply_to_action(request, response, text);
}

static enum sxe_http_verdict
drain_server(struct sxe_http_request *request, struct sxe_http_response *response)
{
    return signal_parent(request, response, SIGTERM, "draining\n");
}

static enum sxe_http_verdict
reload_server(struct sxe_http_request *request, struct sxe_http_response *response)
{
    return signal_parent(request, response, SIGHUP, "reloading\n");
}

static enum sxe_http_verdict
set_admin_log_level(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char text[16];
    ssize_t length;
    int level;

    if (!is_allowed_action(request))
        return sxe_http_reply_status(response, 403);
    length = sxe_http_query_find(request->body, "level", text, sizeof(text) - 1);
    text[length < 0 ? 0 : length] = '\0';
    level = sxe_log_level_from_text(text);
    if (level <= 0)
        return sxe_http_reply_text(response, 400,
                                   "level: one of fatal error warning information debug\n");
    metrics_ask_for_level((unsigned)level);
    return reply_to_action(request, response, "all workers log at this level within a second\n");
}

static enum sxe_http_verdict
tell_token(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (!may_have_token(request))
        return sxe_http_reply_status(response, 403);
    sxe_http_add_field(response, "Cache-Control", "no-store");
    return sxe_http_reply_text(response, 200, serving.token);
}

/* ---- From the beginning to the end ---- */

static int
add_admin_routes(void)
{
    static const struct {
        const char *method;
        const char *path;
        sxe_http_handler handler;
    } routes[] = {
        {"GET", "/", show_page},
        {"GET", "/metrics", show_metrics},
        {"GET", "/status.json", show_status},
        {"GET", "/livez", say_that_it_lives},
        {"GET", "/readyz", say_whether_ready},
        {"GET", "/token", tell_token},
        {"POST", "/drain", drain_server},
        {"POST", "/reload", reload_server},
        {"POST", "/log-level", set_admin_log_level},
    };
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof(routes) / sizeof(routes[0]); i++)
        result = sxe_http_router_add(serving.router, routes[i].method, routes[i].path,
                                     routes[i].handler, NULL);
    return result;
}

/* Add the routes. 0 or -errno. */
static int
make_server(void)
{
    struct sxe_http_config config = {.connections = ADMIN_CONNECTIONS,
                                     .body_gives_way = true,
                                     .address_max = UINT32_MAX,
                                     .head_timeout_ms = ADMIN_WAIT_MS,
                                     .body_timeout_ms = ADMIN_WAIT_MS,
                                     .body_rate_min = ADMIN_BODY_MAX,
                                     .body_max = ADMIN_BODY_MAX,
                                     .fields_max = 1024};
    int result = make_random_token(serving.token);

    serving.router = sxe_http_router_new();
    if (result < 0)
        return result;
    if (serving.router == NULL)
        return -ENOMEM;
    config.router = serving.router;
    result = add_admin_routes();
    if (result < 0)
        return result;
    serving.http = sxe_http_new(&config);
    return serving.http == NULL ? -errno : sxe_init();
}

/* Listen. Returns the port, 0 for a path, or -errno. */
static int
begin_listening(void)
{
    const struct httpd_options *options = serving.service->options;
    int result;

    if (options->admin_path == NULL) {
        result = sxe_http_listen(serving.http, options->admin_ip, serving.service->port);
        return result < 0 ? result : sxe_http_port(serving.http);
    }
    result = sxe_http_listen_unix(serving.http, options->admin_path);
    if (result == 0)
        sxe__socket_file_note(&serving.file, options->admin_path);
    return result;
}

static void
stop_serving(struct sxe_signal *watch)
{
    SXE_UNUSED_PARAMETER(watch);
    sxe_stop();
}

int
admin_serve(const struct admin_service *service)
{
    int result;

    memset(&serving, 0, sizeof(serving));
    serving.service = service;
    result = make_server();
    if (result == 0)
        result = begin_listening();
    if (result >= 0 && become_admin(&service->options->user) < 0)
        result = -EPERM;
    if (result >= 0)
        sxe_signal_start(&serving.end, service->end_signal, stop_serving);
    service->report(service->user, result < 0 ? result : 0, result);
    if (result >= 0) {
        sxe_run();
        sxe_signal_stop(&serving.end);
    }
    sxe__socket_file_remove(&serving.file);
    sxe_fini();
    sxe_http_delete(serving.http);
    sxe_http_router_delete(serving.router);
    return result;
}
