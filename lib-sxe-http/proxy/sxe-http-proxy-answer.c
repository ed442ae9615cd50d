/* SPDX-License-Identifier: MIT
 *
 * What: requests that the proxy answers itself, because they must not or cannot be sent on; and the
 * lines that scripts of FastCGI write to the log.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <string.h>

#define ERROR_LINES_MAX 32u  /* how many lines of a script's STDERR are logged */
#define ERROR_LINE_MAX  512u /* how many bytes of such a line */

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
        SXE_WARN("%s: there are tunnels_max WebSockets: the request is answered 503",
                 proxy->upstream->name);
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
log_error_line(const struct sxe__http_passage *passage, const char *line, size_t length)
{
    const struct sxe_span path = passage->request->path;
    const char *outer = sxe__http_name_lines(SXE__HTTP_SLOT_OF_REQUEST(passage->request));
    char text[ERROR_LINE_MAX];

    length = length < sizeof(text) ? length : sizeof(text);
    for (size_t i = 0; i < length; i++)
        text[i] = (unsigned char)line[i] < ' ' || line[i] == 0x7f ? ' ' : line[i];
    SXE_WARN("%s: STDERR of %.*s: %.*s",
             passage->proxy->upstream->addresses[passage->address].label, (int)path.length,
             path.base, (int)length, text);
    sxe__http_unname_lines(passage->request->http, outer);
}

void
sxe__http_proxy_log_errors(const struct sxe_http_exchange *exchange, struct sxe_span text)
{
    static const char last[] = "further lines are not logged";
    struct sxe__http_passage *passage = exchange->user;
    const char *const end = text.base + text.length;
    const char *line = text.base;

    while (line < end && passage->error_lines < ERROR_LINES_MAX) {
        const char *found = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = found != NULL ? found : end;

        if (line_end > line) {
            passage->error_lines++;
            if (passage->error_lines == ERROR_LINES_MAX)
                log_error_line(passage, last, sizeof(last) - 1);
            else
                log_error_line(passage, line, (size_t)(line_end - line));
        }
        line = line_end + 1;
    }
}
