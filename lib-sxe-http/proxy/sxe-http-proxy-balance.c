/* SPDX-License-Identifier: MIT
 *
 * What: chooses the address of an upstream that gets a request.
 *
 * Round robin is the smooth round robin of nginx: each address has a number, to which its weight is
 * added; the address with the largest number is chosen, and the sum of all weights is subtracted
 * from its number. The hashes are rendezvous hashes: a key goes to the address for which key and
 * name together have the largest hash. So when an address is left out, only its own keys move,
 * evenly to all others.
 */
#include "sxe-http-proxy-private.h"

#include <netinet/in.h>

#define WHOLE_SHARE 256 /* a weight has this many parts in slow start */

uint64_t
sxe__http_hash(uint64_t hash, const void *data, size_t length)
{
    const unsigned char *bytes = data;

    hash ^= UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* ---- Which addresses may be chosen ---- */

/* An address that was left out may be chosen again. At first it gets a small part of its share. */
static void
bring_back(const struct sxe_http_upstream *upstream, struct sxe__http_address *address,
           SXE_TIME now)
{
    if (address->down_until == 0 || address->down_until > now)
        return;
    address->slow_until = now + upstream->config.slow_start_ms * (SXE_TIME)SXE_NS_PER_MS;
    address->down_until = 0;
    address->fails = 0;
    address->current = 0;
}

/* The addresses that may be chosen, one bit each: those that are up, or all if none is up.
 * Addresses of the set `tried` are left out. */
static uint32_t
find_candidates(struct sxe_http_upstream *upstream, uint32_t tried)
{
    const SXE_TIME now = sxe_time_turn_ns();
    uint32_t all = 0;
    uint32_t up = 0;

    for (unsigned i = 0; i < upstream->number; i++) {
        bring_back(upstream, &upstream->addresses[i], now);
        all |= UINT32_C(1) << i;
        if (upstream->addresses[i].down_until == 0 && !upstream->addresses[i].is_sick)
            up |= UINT32_C(1) << i;
    }
    return (up & ~tried) != 0 ? up & ~tried : all & ~tried;
}

static bool
is_candidate(uint32_t candidates, unsigned index)
{
    return (candidates >> index & 1) != 0;
}

/* The address's share at present: its weight, or in slow start a part of it. */
static int64_t
share_of(const struct sxe_http_upstream *upstream, const struct sxe__http_address *address)
{
    const SXE_TIME all = upstream->config.slow_start_ms * (SXE_TIME)SXE_NS_PER_MS;
    const SXE_TIME now = sxe_time_turn_ns();
    int64_t share = (int64_t)address->weight * WHOLE_SHARE;

    if (address->slow_until > now)
        share =
            (int64_t)((double)share * (double)(all - (address->slow_until - now)) / (double)all);
    return share > 0 ? share : 1;
}

/* ---- The choice ---- */

static unsigned
choose_in_turn(struct sxe_http_upstream *upstream, uint32_t candidates)
{
    unsigned best = SXE_NONE;
    int64_t sum = 0;

    for (unsigned i = 0; i < upstream->number; i++) {
        struct sxe__http_address *address = &upstream->addresses[i];
        const int64_t share = share_of(upstream, address);

        if (!is_candidate(candidates, i))
            continue;
        sum += share;
        address->current += share;
        if (best == SXE_NONE || address->current > upstream->addresses[best].current)
            best = i;
    }
    upstream->addresses[best].current -= sum;
    return best;
}

/* Whether address a has fewer requests under way than b, in proportion to their shares. The new
 * request is counted for both. */
static bool
is_less_busy(const struct sxe_http_upstream *upstream, const struct sxe__http_address *a,
             const struct sxe__http_address *b)
{
    return (a->under_way + INT64_C(1)) * share_of(upstream, b) <
           (b->under_way + INT64_C(1)) * share_of(upstream, a);
}

static unsigned
choose_least(struct sxe_http_upstream *upstream, uint32_t candidates)
{
    unsigned best = SXE_NONE;

    upstream->turn++;
    for (unsigned i = 0; i < upstream->number; i++) {
        const unsigned at = (upstream->turn + i) % upstream->number;

        if (is_candidate(candidates, at) &&
            (best == SXE_NONE ||
             is_less_busy(upstream, &upstream->addresses[at], &upstream->addresses[best])))
            best = at;
    }
    return best;
}

static unsigned
choose_by_hash(const struct sxe_http_upstream *upstream, uint32_t candidates, const void *key,
               size_t length)
{
    unsigned best = SXE_NONE;
    uint64_t most = 0;

    for (unsigned i = 0; i < upstream->number; i++) {
        const uint64_t hash = sxe__http_hash(upstream->addresses[i].hash, key, length);

        if (is_candidate(candidates, i) && (best == SXE_NONE || hash > most)) {
            best = i;
            most = hash;
        }
    }
    return best;
}

static unsigned
choose_by_client(const struct sxe_http_upstream *upstream, uint32_t candidates,
                 const struct sxe_http_request *request)
{
    struct sockaddr_storage peer;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&peer;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&peer;

    if (sxe_http_peer(request, &peer) == 0)
        return choose_by_hash(upstream, candidates, "", 0);
    if (peer.ss_family == AF_INET)
        return choose_by_hash(upstream, candidates, &in->sin_addr, sizeof(in->sin_addr));
    return choose_by_hash(upstream, candidates, &in6->sin6_addr, sizeof(in6->sin6_addr));
}

unsigned
sxe__http_choose_address(struct sxe_http_upstream *upstream, const struct sxe_http_request *request,
                         uint32_t tried)
{
    const uint32_t candidates = find_candidates(upstream, tried);
    struct sxe_span key = request->path;

    if (candidates == 0)
        return SXE_NONE;
    switch (upstream->config.balance) {
    case SXE_HTTP_BALANCE_ROUND_ROBIN:
        return choose_in_turn(upstream, candidates);
    case SXE_HTTP_BALANCE_LEAST:
        return choose_least(upstream, candidates);
    case SXE_HTTP_BALANCE_CLIENT:
        return choose_by_client(upstream, candidates, request);
    case SXE_HTTP_BALANCE_FIELD:
        key = sxe_http_field_value(request, upstream->config.hash_field);
        break;
    case SXE_HTTP_BALANCE_PATH:
        break;
    }
    return choose_by_hash(upstream, candidates, key.base, key.length);
}
