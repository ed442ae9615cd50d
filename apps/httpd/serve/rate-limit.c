/* SPDX-License-Identifier: MIT
 *
 * Counts requests of clients in a dict that all workers share.
 */
#include "rate-limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-key.h"
#include "sxe-dict.h"
#include "sxe-time.h"
#include "sxe-util.h"

#define CELL_SIZE 128
#define SHARDS    8
/* how many seconds to wait, at most, for a lock of the dict, whose owner may be stopped */
#define WAIT_S 0.002
/* how many times to try to update a bucket while other processes change it; after that the request
 * passes */
#define TRIES 64

static SXE_DICT *clients;

/* ---- The limit ---- */

bool
rate_limit_parse(struct rate_limit *limit, const char *text)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    const uint64_t seconds = strcmp(end, "/s") == 0   ? 1
                             : strcmp(end, "/m") == 0 ? 60
                             : strcmp(end, "/h") == 0 ? 3600
                                                      : 0;

    if (*text < '0' || *text > '9' || number == 0 || number > RATE_LIMIT_MOST || seconds == 0)
        return false;
    limit->interval_ns = seconds * SXE_NS_PER_SECOND / number;
    limit->burst = (uint32_t)number;
    return true;
}

/* ---- The table ---- */

int
rate_limit_begin(void)
{
    static const SXE_DICT_SPEC spec = {.name = "rates",
                                       .cells = RATE_LIMIT_CLIENTS,
                                       .cell_size = CELL_SIZE,
                                       .shards = SHARDS,
                                       .evicts = true,
                                       .options = SXE_POOL_OPTION_SHARED};
    char why[SXE_POOL_WHY_SIZE];

    clients = sxe_dict_open(&spec, why);
    if (clients == NULL)
        return -errno;
    return sxe_dict_set_wait(clients, WAIT_S);
}

void
rate_limit_join(void)
{
    if (clients != NULL)
        (void)sxe_dict_peek(clients, "", 0, NULL, 0);
}

void
rate_limit_end(void)
{
    sxe_dict_close(clients);
    clients = NULL;
}

/* ---- A request ---- */

struct key {
    uint64_t route;
    struct client_key client;
};

/* The time at which the bucket will be full again after one more request at now_ns. It is at most
 * most_ns, which is the value for an empty bucket. It could be more if the rate was slower before a
 * reload. */
static uint64_t
fill_bucket(const struct rate_limit *limit, uint64_t before_ns, uint64_t now_ns, uint64_t most_ns)
{
    const uint64_t from_ns = before_ns > now_ns ? before_ns : now_ns;

    return from_ns > most_ns ? most_ns : from_ns + limit->interval_ns;
}

/* Take a request from the client's bucket. 0: the request may pass. Otherwise returns after how
 * many nanoseconds one may pass. */
static uint64_t
take_from_bucket(const struct rate_limit *limit, const struct key *key)
{
    const uint64_t now_ns = sxe_time_ns();
    const uint64_t most_ns = now_ns + limit->burst * limit->interval_ns;
    bool is_over = false;
    unsigned tries = 0;
    int result;

    do {
        uint64_t before_ns = 0;
        const ssize_t size =
            sxe_dict_get(clients, key, sizeof(*key), &before_ns, sizeof(before_ns));
        const uint64_t full_ns = fill_bucket(limit, before_ns, now_ns, most_ns);

        if (full_ns > most_ns)
            return full_ns - most_ns;
        is_over = before_ns > most_ns;
        result = sxe_dict_compare_and_put(clients, key, sizeof(*key), size > 0 ? &before_ns : NULL,
                                          sizeof(before_ns), &full_ns, sizeof(full_ns),
                                          (double)(full_ns - now_ns) / (double)SXE_NS_PER_SECOND);
    } while (result == -EEXIST && ++tries < TRIES);
    return is_over ? limit->interval_ns : 0;
}

unsigned
rate_limit_take(const struct rate_limit *limit, const struct sockaddr_storage *address,
                socklen_t length)
{
    const struct key key = {.route = limit->route, .client = client_key_of(address, length)};

    if (clients == NULL || limit->burst == 0)
        return 0;
    return (unsigned)((take_from_bucket(limit, &key) + SXE_NS_PER_SECOND - 1) / SXE_NS_PER_SECOND);
}
