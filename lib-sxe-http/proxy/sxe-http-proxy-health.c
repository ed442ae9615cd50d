/* SPDX-License-Identifier: MIT
 *
 * What: checks of addresses: each is asked for a path once in a period, by a connection of its own.
 * An address that fails check_falls checks in a row gets no requests until it passes check_rises in
 * a row.
 *
 *     WAITING -- check_interval_ms --> CALLING -- the reply, or a failure --> WAITING
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <stdio.h>

enum { CHECK_REQUEST_MAX = 2048 };

static void
note_good_check(struct sxe_http_upstream *upstream, struct sxe__http_address *address)
{
    const struct sxe_http_upstream_config *config = &upstream->config;

    address->checks_failed = 0;
    if (!address->is_sick || ++address->checks_passed < config->check_rises)
        return;
    address->is_sick = false;
    address->current = 0;
    address->slow_until = sxe_time_turn_ns() + config->slow_start_ms * (SXE_TIME)SXE_NS_PER_MS;
    SXE_WARN("%s passed %u checks, and is used again", address->label, config->check_rises);
}

static void
note_bad_check(struct sxe_http_upstream *upstream, struct sxe__http_address *address,
               const char *reason)
{
    address->checks_passed = 0;
    if (address->is_sick || ++address->checks_failed < upstream->config.check_falls)
        return;
    address->is_sick = true;
    SXE_WARN("%s: %s: it failed %u checks, and is left out until it passes %u", address->label,
             reason, upstream->config.check_falls, upstream->config.check_rises);
}

static void
note_check(struct sxe_http_upstream *upstream, unsigned id, unsigned status, int result)
{
    struct sxe__http_address *address = &upstream->addresses[id];
    char reason[64];

    if (result == 0 && status >= 200 && status < 400) {
        note_good_check(upstream, address);
        return;
    }
    if (result == 0)
        snprintf(reason, sizeof(reason), "its check is answered %u", status);
    else
        snprintf(reason, sizeof(reason), "%s",
                 result == -ETIMEDOUT ? "time-out of its check" : strerror(-result));
    note_bad_check(upstream, address, reason);
}

/* The body of the reply to a check does not matter. */
static void
drop_check_part(const struct sxe_http_exchange *exchange, struct sxe_span part)
{
    SXE_UNUSED_PARAMETER(exchange);
    SXE_UNUSED_PARAMETER(part);
}

static void
on_check_done(const struct sxe_http_exchange *exchange, int result)
{
    struct sxe__http_check *check = exchange->user;
    struct sxe_http_upstream *upstream = check->upstream;
    const unsigned id = (unsigned)(check - upstream->checks);

    note_check(upstream, id, exchange->response == NULL ? 0 : exchange->response->status, result);
    sxe_pool_move(upstream->checks, id, SXE__HTTP_CHECK_CALLING, SXE__HTTP_CHECK_WAITING);
}

/* The pool calls this when it is time for a check of this address. */
static void
begin_check(void *array, unsigned id, void *user)
{
    struct sxe_http_upstream *upstream = user;
    struct sxe__http_check *check = (struct sxe__http_check *)array + id;
    const struct sxe_http_call call = {.request.target = sxe_http_span(upstream->check_path),
                                       .user = check,
                                       .on_body = drop_check_part,
                                       .on_done = on_check_done};
    int result;

    sxe_pool_move(array, id, SXE__HTTP_CHECK_WAITING, SXE__HTTP_CHECK_CALLING);
    result = sxe_http_client_send(check->client, &call, NULL);
    if (result == 0)
        return;
    note_check(upstream, id, 0, result);
    sxe_pool_move(array, id, SXE__HTTP_CHECK_CALLING, SXE__HTTP_CHECK_WAITING);
}

int
sxe__http_checks_new(struct sxe_http_upstream *upstream)
{
    const struct sxe_http_upstream_config *config = &upstream->config;
    const double timeouts[SXE__HTTP_CHECK_STATES] = {[SXE__HTTP_CHECK_WAITING] =
                                                         config->check_interval_ms / 1000.0};

    if (config->check_path == NULL)
        return 0;
    snprintf(upstream->check_path, sizeof(upstream->check_path), "%s", config->check_path);
    upstream->checks =
        sxe_pool_new_with_timeouts("http checks", upstream->number, sizeof(*upstream->checks),
                                   SXE__HTTP_CHECK_STATES, timeouts, begin_check, upstream);
    if (upstream->checks == NULL)
        return -errno;
    for (unsigned i = 0; i < upstream->number; i++) {
        struct sxe_http_client_config client = upstream->addresses[i].client->config;

        client.host = upstream->addresses[i].client->host;
        client.connections_max = client.idle_max = client.calls_max = 1;
        client.request_max = CHECK_REQUEST_MAX;
        client.total_timeout_ms = config->check_interval_ms;
        upstream->checks[i].upstream = upstream;
        upstream->checks[i].client = sxe_http_client_new(&client);
        if (upstream->checks[i].client == NULL)
            return -errno;
    }
    return 0;
}

void
sxe__http_checks_delete(struct sxe_http_upstream *upstream)
{
    for (unsigned i = 0; upstream->checks != NULL && i < upstream->number; i++)
        sxe_http_client_delete(upstream->checks[i].client);
    sxe_pool_delete(upstream->checks);
}
