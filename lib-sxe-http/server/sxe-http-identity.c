/* SPDX-License-Identifier: MIT
 *
 * What: the id of a request, which its reply, the logs and handlers show. It is made when it is
 * first asked for; or it is that of config.request_id, if a trusted peer sent that field.
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

/* Take the id that a trusted peer sent. False: there is none, or more than one, or a bad one. */
static bool
take_sent_id(struct sxe__http_slot *slot)
{
    const struct sxe_http_request *request = &slot->request;
    const char *name = request->http->config.request_id;
    const struct sxe_http_field *field = NULL;
    struct sxe_span id;

    if (name != NULL && slot->connection->is_trusted && request->data != NULL &&
        request->head.refusal == SXE_HTTP_NOT_REFUSED)
        field = sxe_http_field(&request->head, request->data, name);
    if (field == NULL || sxe_http_field_next(&request->head, request->data, field) != NULL)
        return false;
    id = (struct sxe_span){request->data + field->value, field->value_length};
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
