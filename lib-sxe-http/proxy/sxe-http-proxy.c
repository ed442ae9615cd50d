/* SPDX-License-Identifier: MIT
 *
 * What: a request's way to an address of the upstream, and the way back of its reply. Calls of the
 * client fail here, and become calls to other addresses, or errors for the server's client.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* If the client has not taken this many bytes of output, the upstream must wait. These bytes and a
 * part of a body fill two chunks, which each connection may count on. */
#define UNSENT_MAX 8192u

#define FASTCGI_PART 8192u /* bytes of a whole body that FastCGI gets at a time */

/* ---- Passages ---- */

static struct sxe__http_address *
address_of_passage(const struct sxe__http_passage *passage)
{
    return &passage->proxy->upstream->addresses[passage->address];
}

/* Forget the call to the upstream, because it has ended. */
static void
end_call(struct sxe__http_passage *passage)
{
    passage->is_calling = false;
    address_of_passage(passage)->under_way--;
}

static void
cancel_call(struct sxe__http_passage *passage)
{
    if (!passage->is_calling)
        return;
    end_call(passage);
    (void)sxe_http_client_cancel(address_of_passage(passage)->client, passage->call);
}

static void
free_passage(struct sxe__http_passage *passage)
{
    struct sxe__http_passage *passages = passage->proxy->upstream->passages;

    sxe_pool_move(passages, (unsigned)(passage - passages), SXE__HTTP_PASSAGE_BUSY,
                  SXE__HTTP_PASSAGE_FREE);
}

/* Detach the request from the upstream. The caller ends its reply next, or has ended it. */
static struct sxe_http_response *
leave_passage(struct sxe__http_passage *passage)
{
    struct sxe_http_response *response = passage->response;

    if (passage->proxy->upstream->error_line.passage == passage)
        sxe__http_proxy_flush_errors(passage->proxy->upstream);
    cancel_call(passage);
    response->user = NULL;
    response->on_done = NULL;
    free_passage(passage);
    return response;
}

/* The request ends before its reply does: the client has gone, or the server itself answered the
 * request. */
static void
on_request_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(result);
    (void)leave_passage(response->user);
}

/* ---- Failures ---- */

/* Why TLS failed, for instance because of the server's certificate; "": TLS did not fail. */
static const char *
failure_of_tls(const struct sxe__http_passage *passage, const struct sxe_http_exchange *exchange)
{
    const struct sxe_http_upstream_config *config = &passage->proxy->upstream->config;

    return config->tls_failure == NULL || exchange->closed == NULL
               ? ""
               : config->tls_failure(exchange->closed);
}

static const char *
reason_of_failure(const struct sxe__http_passage *passage, const struct sxe_http_exchange *exchange,
                  int result)
{
    const char *of_tls = failure_of_tls(passage, exchange);
    static const char *const timeouts[] = {
        [SXE_HTTP_STAGE_WAITING] = "no connection is free",
        [SXE_HTTP_STAGE_CONNECTING] = "time-out of connecting",
        [SXE_HTTP_STAGE_SENDING] = "time-out: it does not read the request's body",
        [SXE_HTTP_STAGE_HEAD] = "time-out: no reply",
        [SXE_HTTP_STAGE_BODY] = "time-out: the reply's body stalls",
    };

    if (*of_tls != '\0')
        return of_tls;
    if (exchange->failure != NULL)
        return exchange->failure;
    if (result == -ETIMEDOUT)
        return timeouts[exchange->stage];
    if (result == -EPROTO && exchange->refusal != SXE_HTTP_NOT_REFUSED)
        return sxe_http_refusal_text(exchange->refusal);
    if (result == -EPROTO && exchange->stage != SXE_HTTP_STAGE_CONNECTING)
        return "it switches protocols without being asked";
    if (result == -ECONNRESET && exchange->stage >= SXE_HTTP_STAGE_HEAD)
        return "it closed the connection before the reply was whole";
    return strerror(-result);
}

static void
log_passage_failure(const struct sxe__http_passage *passage, const char *reason,
                    const char *outcome)
{
    const struct sxe_span method = sxe_http_method_text(passage->request);
    const struct sxe_span path = passage->request->path;
    const char *outer = sxe__http_name_lines(SXE__HTTP_SLOT_OF_REQUEST(passage->request));

    SXE_WARN("%s: %s: %.*s %.*s %s", address_of_passage(passage)->label, reason, (int)method.length,
             method.base, (int)path.length, path.base, outcome);
    sxe__http_unname_lines(passage->request->http, outer);
}

/* Answer the client with an error, or reset its connection if the reply has begun. */
static void
fail_passage(struct sxe__http_passage *passage, const char *reason)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(passage->response);
    const unsigned status = passage->status;
    char outcome[32];

    if (slot->progress != SXE__HTTP_UNANSWERED) {
        log_passage_failure(passage, reason, "is cut");
        sxe_http_abort(leave_passage(passage));
        return;
    }
    snprintf(outcome, sizeof(outcome), "is answered %u", status);
    log_passage_failure(passage, reason, outcome);
    (void)sxe__http_proxy_answer_error(leave_passage(passage), status);
}

/* ---- The request's body ---- */

/* A part of the client's body came: send it on. The next part is read when the upstream's kernel
 * has taken this one. */
static void
pass_part(struct sxe_http_request *request, struct sxe_http_response *response,
          struct sxe_span part, bool last)
{
    struct sxe__http_passage *passage = response->user;
    int result = sxe_http_client_write(address_of_passage(passage)->client, passage->call,
                                       part.base, part.length, last);

    if (result < 0) {
        passage->status = 502;
        fail_passage(passage, strerror(-result));
    } else if (!last) {
        sxe_http_pause(request);
    }
}

/* FastCGI takes the next part of a body that is whole: it can be sent again to another address. */
static void
on_fastcgi_room(const struct sxe_http_exchange *exchange)
{
    struct sxe__http_passage *passage = exchange->user;
    const struct sxe_span body = passage->request->body;
    const size_t left = body.length - passage->body_sent;
    const size_t length = left < FASTCGI_PART ? left : FASTCGI_PART;
    const int result = sxe_http_client_write(
        exchange->client, exchange->handle, body.base + passage->body_sent, length, length == left);

    passage->body_sent += length;
    if (result < 0) {
        passage->status = 502;
        fail_passage(passage, strerror(-result));
    }
}

static void
on_upstream_room(const struct sxe_http_exchange *exchange)
{
    struct sxe__http_passage *passage = exchange->user;

    if (passage->is_in_parts)
        sxe_http_resume(passage->request);
    else
        sxe_http_read(passage->request, pass_part);
    passage->is_in_parts = true;
}

/* ---- The reply ---- */

static void
fail_reply_head(struct sxe__http_passage *passage, const char *reason)
{
    sxe__http_address_failed(passage->proxy->upstream, address_of_passage(passage));
    passage->status = 502;
    fail_passage(passage, reason);
}

static void
on_reply_head(const struct sxe_http_exchange *exchange)
{
    struct sxe__http_passage *passage = exchange->user;
    struct sxe_http_response *response = passage->response;
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    const uint64_t length = sxe__http_proxy_length(exchange->response, exchange->head);
    const uint32_t fields_used = slot->fields_used;
    int result;

    /* on_upstream_upgrade is called next, or the library's client refuses the upgrade */
    if (exchange->response->upgrade)
        return;
    if (sxe_http_set_status(response, exchange->response->status) < 0) {
        fail_reply_head(passage, "its reply has a status above 599");
        return;
    }
    result = sxe__http_proxy_add_fields(response, exchange->response, exchange->head,
                                        &passage->proxy->upstream->made);
    /* The body of the request is read no further when its reply ends. */
    sxe__http_decide_close(slot);
    if (result == 0)
        result = sxe_http_begin(response, length);
    /* drop the reply's fields, because an error is sent in its place */
    if (slot->progress == SXE__HTTP_UNANSWERED)
        slot->fields_used = fields_used;
    if (result < 0)
        fail_reply_head(passage, result == -EINVAL ? "its field Connection names too many fields"
                                                   : "no room for the head of its reply");
}

static void
on_client_room(struct sxe_http_response *response)
{
    const struct sxe__http_passage *passage = response->user;

    if (passage != NULL)
        (void)sxe_http_client_resume(address_of_passage(passage)->client, passage->call);
}

static void
on_reply_part(const struct sxe_http_exchange *exchange, struct sxe_span part)
{
    struct sxe__http_passage *passage = exchange->user;
    int result = sxe_http_write(passage->response, part.base, part.length);

    if (result == 0 && sxe_unsent(sxe_http_socket(passage->request)) > UNSENT_MAX) {
        result = sxe_http_on_room(passage->response, on_client_room);
        if (result == 0)
            (void)sxe_http_client_pause(exchange->client, exchange->handle);
    }
    if (result < 0)
        fail_passage(passage, "no room for its reply");
}

/* ---- WebSockets ---- */

static void
on_upstream_upgrade(const struct sxe_http_exchange *exchange, SXE *server)
{
    struct sxe__http_passage *passage = exchange->user;
    struct sxe_http_upstream *upstream = passage->proxy->upstream;
    struct sxe_http_response *response = passage->response;
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    const uint32_t fields_used = slot->fields_used;

    passage->is_tunnel =
        sxe__http_proxy_add_fields(response, exchange->response, exchange->head, &upstream->made) ==
            0 &&
        sxe__http_tunnel_open(upstream, address_of_passage(passage), response, server);
    if (passage->is_tunnel)
        return;
    /* an error follows, which must have none of the added fields */
    slot->fields_used = fields_used;
    sxe_abort(server);
}

/* ---- One address after the other ---- */

static void try_addresses(struct sxe__http_passage *passage, const char *reason);

/* Whether the request may be sent to another address: always if nothing of it was sent; otherwise
 * once, if its method is idempotent. */
static bool
may_call_another(struct sxe__http_passage *passage, const struct sxe_http_exchange *exchange,
                 int result)
{
    if (exchange->stage <= SXE_HTTP_STAGE_CONNECTING)
        return true;
    if (result == -ETIMEDOUT || (exchange->is_answered && result != -EBUSY) ||
        exchange->response != NULL || passage->is_in_parts || passage->is_resent ||
        !sxe__http_is_idempotent(sxe_http_method(passage->request)))
        return false;
    passage->is_resent = true;
    return true;
}

static void
on_call_done(const struct sxe_http_exchange *exchange, int result)
{
    struct sxe__http_passage *passage = exchange->user;
    const char *reason;

    end_call(passage);
    if (passage->is_tunnel) {
        free_passage(passage);
        return;
    }
    if (result == 0 && exchange->response->upgrade) {
        passage->status = 503;
        fail_passage(passage, "no room for a WebSocket");
        return;
    }
    if (result == 0) {
        struct sxe_http_response *response = leave_passage(passage);

        if (sxe_http_end(response, NULL, 0) < 0)
            sxe_http_abort(response);
        return;
    }
    reason = reason_of_failure(passage, exchange, result);
    passage->status = result == -ETIMEDOUT ? 504 : result == -EBUSY ? 503 : 502;
    sxe__http_address_failed(passage->proxy->upstream, address_of_passage(passage));
    if (may_call_another(passage, exchange, result))
        try_addresses(passage, reason);
    else
        fail_passage(passage, reason);
}

/* Make the parameters of FastCGI. Results are those of sxe__http_proxy_make_head. */
static int
make_params(const struct sxe_http_proxy *proxy, const struct sxe_http_request *request,
            struct sxe__http_proxy_head *made)
{
    struct sxe__http_script *script = proxy->scripts == NULL ? NULL : proxy->upstream->script;

    /* Before a request goes to another address, other requests may have used *script. */
    if (script != NULL && script->request != request &&
        sxe__http_script_find(proxy->scripts, request, script) < 0 &&
        !sxe__http_script_fall_back(proxy->scripts, script))
        return -EINVAL;
    return sxe__http_proxy_make_params(proxy, request, script, made);
}

/* Send the request to the address. 0 or -errno. */
static int
call_address(struct sxe__http_passage *passage)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(passage->request);
    struct sxe_http_request *request = passage->request;
    struct sxe_http_call call = {.user = passage,
                                 .body = request->body.base,
                                 .on_response = on_reply_head,
                                 .on_body = on_reply_part,
                                 .on_done = on_call_done};
    struct sxe__http_proxy_head *made = &passage->proxy->upstream->made;
    const struct sxe_http_upstream *upstream = passage->proxy->upstream;
    const bool is_tunnel = sxe__http_is_websocket(request) && sxe__http_has_tunnel(upstream);
    int result = upstream->script == NULL
                     ? sxe__http_proxy_make_head(passage->proxy, request, is_tunnel, made)
                     : make_params(passage->proxy, request, made);

    passage->body_sent = 0;
    if (result < 0)
        return result;
    if (is_tunnel)
        call.on_upgrade = on_upstream_upgrade;
    call.request = made->head;
    call.request.body_length = request->body.length;
    if (slot->is_body_streamed && !slot->is_body_whole) {
        call.request.body_length =
            request->head.body == SXE_HTTP_BODY_CHUNKED ? SXE_HTTP_CHUNKED : request->head.length;
        call.on_room = on_upstream_room;
    } else if (upstream->script != NULL) {
        call.on_room = on_fastcgi_room;
    }
    return sxe_http_client_send(address_of_passage(passage)->client, &call, &passage->call);
}

/* A call was not sent: note the status that answers the request if no address takes it. */
static void
note_refused_call(struct sxe__http_passage *passage, int result)
{
    /* all connections of the address are in use, which does not count as a failure */
    if (result == -ENOBUFS) {
        passage->status = 503;
        return;
    }
    passage->status = 502;
    sxe__http_address_failed(passage->proxy->upstream, address_of_passage(passage));
}

/* The head of the request cannot be sent to any address. */
static void
fail_unsendable(struct sxe__http_passage *passage, int result)
{
    char text[120] = "the request cannot be sent on";

    if (result == -EMSGSIZE)
        snprintf(text, sizeof(text),
                 "the head to send on has more than %u bytes, or more than %zu fields",
                 passage->proxy->upstream->config.request_max,
                 SXE_COUNT(passage->proxy->upstream->made.fields));
    passage->status = result == -EMSGSIZE ? 431 : 400;
    fail_passage(passage, text);
}

/* Send the request to the next address; if there is no other address, answer the request. reason:
 * why the last address failed; NULL: no address was tried yet. */
static void
try_addresses(struct sxe__http_passage *passage, const char *reason)
{
    struct sxe_http_upstream *upstream = passage->proxy->upstream;
    unsigned next;

    while ((next = sxe__http_choose_address(upstream, passage->request, passage->tried)) !=
           SXE_NONE) {
        int result;

        if (reason != NULL) {
            log_passage_failure(passage, reason, "is sent to another address");
            address_of_passage(passage)->retries++;
        }
        passage->address = next;
        passage->tried |= UINT32_C(1) << next;
        result = call_address(passage);
        if (result == 0) {
            passage->is_calling = true;
            address_of_passage(passage)->under_way++;
            address_of_passage(passage)->requests++;
            return;
        }
        if (result == -EINVAL || result == -EMSGSIZE) {
            fail_unsendable(passage, result);
            return;
        }
        note_refused_call(passage, result);
        reason = result == -ENOBUFS ? "all connections are in use" : strerror(-result);
    }
    fail_passage(passage, reason);
}

/* ---- The handler ---- */

static void
log_refused_request(const struct sxe_http_proxy *proxy, const struct sxe_http_request *request)
{
    const struct sxe_span method = sxe_http_method_text(request);
    const char *outer = sxe__http_name_lines(SXE__HTTP_SLOT_OF_REQUEST(request));

    SXE_WARN("%s: all connections of all addresses are in use: %.*s %.*s is answered 503",
             proxy->upstream->name, (int)method.length, method.base, (int)request->path.length,
             request->path.base);
    sxe__http_unname_lines(request->http, outer);
}

enum sxe_http_verdict
sxe_http_proxy_send(const struct sxe_http_proxy *proxy, struct sxe_http_request *request,
                    struct sxe_http_response *response)
{
    struct sxe__http_passage *passages = proxy->upstream->passages;
    const unsigned id = sxe_pool_get_oldest(passages, SXE__HTTP_PASSAGE_FREE);
    struct sxe__http_passage *passage = &passages[id];
    enum sxe_http_verdict verdict;

    if (sxe__http_proxy_answers(proxy, request, response, &verdict))
        return verdict;
    if (id == SXE_POOL_NO_INDEX) {
        log_refused_request(proxy, request);
        return sxe__http_proxy_answer_error(response, 503);
    }
    sxe_pool_move(passages, id, SXE__HTTP_PASSAGE_FREE, SXE__HTTP_PASSAGE_BUSY);
    *passage = (struct sxe__http_passage){.proxy = proxy, .request = request, .response = response};
    response->user = passage;
    response->on_done = on_request_done;
    try_addresses(passage, NULL);
    return SXE_HTTP_LATER;
}

enum sxe_http_verdict
sxe_http_proxy_handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    return sxe_http_proxy_send(request->user, request, response);
}
