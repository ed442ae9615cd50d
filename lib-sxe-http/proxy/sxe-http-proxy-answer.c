/* SPDX-License-Identifier: MIT
 *
 * What: requests that the proxy answers itself, because they must not or cannot be sent on; and the
 * lines that scripts of FastCGI write to the log.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <string.h>

#define ERROR_LINES_MAX 32u /* how many lines of a script's STDERR are logged */

/* ---- Requests ---- */

enum sxe_http_verdict
sxe__http_proxy_answer_error(struct sxe_http_response *response, unsigned status)
{
    sxe__http_proxy_remove_body_fields(response);
    return sxe_http_reply_status(response, status);
}

/* Whether an upstream may read the path in another way than the router did. Some upstreams decode
 * escaped slashes. Servlets take ";..." off each segment before they resolve dots, as in
 * /a/..;/admin. */
static bool
has_two_readings(struct sxe_http_request *request)
{
    const struct sxe_span path = sxe_http_decoded_path(request);
    const char *end = path.base + path.length;

    if (path.base == NULL)
        return true;
    for (const char *at = path.base; at != NULL; at = memchr(at, '/', (size_t)(end - at))) {
        at += *at == '/';
        const size_t left = (size_t)(end - at);
        const size_t dots = left > 1 && at[0] == '.' ? 1 + (at[1] == '.') : 0;

        if (dots > 0 && dots < left && at[dots] == ';')
            return true;
    }
    return false;
}

/* Answer a request that FastCGI cannot get: no script answers it, or the length of its body, which
 * RFC 3875 wants, is not known. False: FastCGI can get it. */
static bool
answer_for_script(const struct sxe_http_proxy *proxy, struct sxe_http_request *request,
                  struct sxe_http_response *response, enum sxe_http_verdict *verdict)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);
    struct sxe__http_script *script = proxy->upstream->script;
    const enum sxe_http_method method = sxe_http_method(request);
    int result = 0;

    if (proxy->scripts != NULL)
        result = sxe__http_script_find(proxy->scripts, request, script);
    if (result == -EINVAL) {
        *verdict = sxe__http_proxy_answer_error(response, 400);
    } else if (result < 0 && proxy->without_script != NULL && !script->has_suffix &&
               (method == SXE_HTTP_GET || method == SXE_HTTP_HEAD)) {
        *verdict = proxy->without_script(request, response);
    } else if (result < 0 && !sxe__http_script_fall_back(proxy->scripts, script)) {
        *verdict = sxe__http_proxy_answer_error(response, 404);
    } else if (slot->is_body_streamed && request->head.body == SXE_HTTP_BODY_CHUNKED) {
        *verdict = sxe__http_proxy_answer_error(response, 411);
    } else {
        return false;
    }
    return true;
}

/* The status that refuses the request; 0: it can be sent on. */
static unsigned
status_of_refusal(const struct sxe_http_proxy *proxy, struct sxe_http_request *request)
{
    if (sxe_http_method(request) == SXE_HTTP_TRACE)
        return 501;
    if (sxe_http_proxy_check(proxy) < 0) {
        SXE_WARN(
            "%s: the route's path, host, via, fields or request_header cannot be sent: the request "
            "is answered 500",
            proxy->upstream->name);
        return 500;
    }
    if (!proxy->encoded_slash && has_two_readings(request))
        return 400;
    if (sxe__http_is_websocket(request) && proxy->upstream->tunnels != NULL &&
        !sxe__http_has_tunnel(proxy->upstream)) {
        SXE_WARN("%s: there are %u WebSockets, the limit of the upstream (websockets, in C "
                 "tunnels_max): the request is answered 503",
                 proxy->upstream->name, proxy->upstream->config.tunnels_max);
        return 503;
    }
    return 0;
}

bool
sxe__http_proxy_answers(const struct sxe_http_proxy *proxy, struct sxe_http_request *request,
                        struct sxe_http_response *response, enum sxe_http_verdict *verdict)
{
    const unsigned status = status_of_refusal(proxy, request);

    if (status == 0)
        return proxy->upstream->script != NULL &&
               answer_for_script(proxy, request, response, verdict);
    *verdict = sxe__http_proxy_answer_error(response, status);
    return true;
}

/* ---- STDERR of scripts ---- */

/* Log a line of STDERR, without control bytes. */
static void
log_error_line(const struct sxe__http_passage *passage, char *text, size_t length)
{
    const struct sxe_span path = passage->request->path;
    const char *outer = sxe__http_name_lines(SXE__HTTP_SLOT_OF_REQUEST(passage->request));

    for (size_t i = 0; i < length; i++)
        text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
    SXE_WARN("%s: STDERR of %.*s: %.*s",
             passage->proxy->upstream->addresses[passage->address].label, (int)path.length,
             path.base, (int)length, text);
    sxe__http_unname_lines(passage->request->http, outer);
}

void
sxe__http_proxy_flush_errors(struct sxe_http_upstream *upstream)
{
    static const char last[] = "further lines are not logged";
    struct sxe__http_error_line *line = &upstream->error_line;

    if (line->used > 0) {
        if (++line->passage->error_lines == ERROR_LINES_MAX) {
            memcpy(line->text, last, sizeof(last) - 1);
            line->used = sizeof(last) - 1;
        }
        log_error_line(line->passage, line->text, line->used);
    }
    line->used = 0;
    line->passage = NULL;
}

void
sxe__http_proxy_log_errors(const struct sxe_http_exchange *exchange, struct sxe_span text)
{
    struct sxe__http_passage *passage = exchange->user;
    struct sxe_http_upstream *upstream = passage->proxy->upstream;
    struct sxe__http_error_line *line = &upstream->error_line;
    const char *const end = text.base + text.length;

    if (line->passage != passage)
        sxe__http_proxy_flush_errors(upstream);
    for (const char *at = text.base; at < end && passage->error_lines < ERROR_LINES_MAX;) {
        const char *found = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((found != NULL ? found : end) - at);
        const size_t room = sizeof(line->text) - line->used;
        const size_t taken = length < room ? length : room;

        line->passage = passage;
        memcpy(line->text + line->used, at, taken);
        line->used += taken;
        at += length + 1;
        if (found != NULL)
            sxe__http_proxy_flush_errors(upstream);
    }
}
