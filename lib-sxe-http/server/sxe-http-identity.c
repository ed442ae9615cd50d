/* SPDX-License-Identifier: MIT
 *
 * What: the id of a request, which its reply, the logs and handlers show. The id is made when a
 * caller first asks for it; if a trusted peer sent the field config.request_id, its value is the
 * id. Also the trace that the request is part of.
 */
#include "sxe-http-server-private.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* One system call fetches bits for many ids. If it fails, the time is random enough: nothing secret
 * depends on these bits. */
static uint64_t
random_bits(struct sxe_http *http)
{
    if (http->config.random != NULL)
        return http->config.random();
    if (http->random_left == 0) {
        http->random_left = sizeof(http->random) / sizeof(http->random[0]);
        if (getrandom(http->random, sizeof(http->random), GRND_NONBLOCK) !=
            (ssize_t)sizeof(http->random)) {
            http->random[0] = sxe_time_ns() * GOLDEN;
            http->random_left = 1;
        }
    }
    return http->random[--http->random_left];
}

/* Whether the id can stand in a log, in JSON and in a page as it is. */
static bool
is_harmless(struct sxe_span id)
{
    for (size_t i = 0; i < id.length; i++) {
        if (id.base[i] <= ' ' || id.base[i] > '~' || strchr("\"'\\<>&", id.base[i]) != NULL)
            return false;
    }
    return id.length > 0 && id.length <= SXE_HTTP_ID_MAX;
}

/* The value of a field, if a trusted peer sent it exactly once; otherwise base is NULL. */
static struct sxe_span
sent_value(const struct sxe__http_slot *slot, const char *name)
{
    const struct sxe_http_request *request = &slot->request;
    const struct sxe_http_field *field = NULL;

    if (name != NULL && slot->connection->is_trusted && request->data != NULL &&
        request->head.refusal == SXE_HTTP_NOT_REFUSED)
        field = sxe_http_field(&request->head, request->data, name);
    if (field == NULL || sxe_http_field_next(&request->head, request->data, field) != NULL)
        return (struct sxe_span){NULL, 0};
    return (struct sxe_span){request->data + field->value, field->value_length};
}

/* Take the id that a trusted peer sent. False: there is none, or more than one, or a bad one. */
static bool
take_sent_id(struct sxe__http_slot *slot)
{
    struct sxe_span id = sent_value(slot, slot->request.http->config.request_id);

    if (!is_harmless(id))
        return false;
    memcpy(slot->id, id.base, id.length);
    slot->id[id.length] = '\0';
    return true;
}

const char *
sxe_http_request_id(const struct sxe_http_request *request)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);

    if (!slot->has_id && !take_sent_id(slot))
        snprintf(slot->id, sizeof(slot->id), "%016" PRIx64, random_bits(request->http));
    slot->has_id = true;
    return slot->id;
}

char *
sxe__http_put_id(const struct sxe__http_slot *slot, char *to)
{
    const char *name = slot->request.http->config.request_id;
    const char *id;

    if (name == NULL || sxe_http_added_field(&slot->response, name).base != NULL)
        return to;
    id = sxe_http_request_id(&slot->request);
    to = mempcpy(to, name, strlen(name));
    to = mempcpy(to, ": ", 2);
    to = mempcpy(to, id, strlen(id));
    return mempcpy(to, "\r\n", 2);
}

/* ---- Traces ---- */

/* Write 16 random hexadecimal digits that are not all 0. */
static void
put_hex_digits(struct sxe_http *http, char *to)
{
    uint64_t bits = random_bits(http);

    snprintf(to, 17, "%016" PRIx64, bits == 0 ? 1 : bits);
}

/* Join the values of tracestate by commas, because the field may come more than once (RFC 9110,
 * 5.3). */
static void
take_state(struct sxe__http_slot *slot)
{
    const struct sxe_http_request *request = &slot->request;
    const struct sxe_http_field *field =
        sxe_http_field(&request->head, request->data, "tracestate");
    uint32_t used = 0;

    for (; field != NULL; field = sxe_http_field_next(&request->head, request->data, field)) {
        if (used + (used > 0) + field->value_length > sizeof(slot->trace_state))
            return;
        if (used > 0)
            slot->trace_state[used++] = ',';
        memcpy(slot->trace_state + used, request->data + field->value, field->value_length);
        used += field->value_length;
    }
    slot->trace_state_length = used;
}

const struct sxe_http_trace *
sxe_http_trace(const struct sxe_http_request *request)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);

    if (!request->is_traced)
        return NULL;
    if (slot->has_trace)
        return &slot->trace;
    slot->has_trace = true;
    slot->trace_state_length = 0;
    if (sxe_http_trace_parse(sent_value(slot, "traceparent"), &slot->trace) == 0) {
        take_state(slot);
    } else {
        slot->trace =
            (struct sxe_http_trace){.flags = SXE_HTTP_TRACE_SAMPLED | SXE_HTTP_TRACE_RANDOM};
        put_hex_digits(request->http, slot->trace.trace_id);
        put_hex_digits(request->http, slot->trace.trace_id + 16);
    }
    put_hex_digits(request->http, slot->trace.span_id);
    return &slot->trace;
}

struct sxe_span
sxe_http_trace_state(const struct sxe_http_request *request)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_CONST(request);

    if (sxe_http_trace(request) == NULL || slot->trace_state_length == 0)
        return (struct sxe_span){NULL, 0};
    return (struct sxe_span){slot->trace_state, slot->trace_state_length};
}
