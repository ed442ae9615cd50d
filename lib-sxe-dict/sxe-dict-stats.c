/* SPDX-License-Identifier: MIT
 *
 * Metrics: adds up the counts of all shards, and measures the lengths of chains when it is called
 * for them.
 */
#include "sxe-dict-private.h"

#include "sxe-sized-internal.h"

#define BUCKETS_EACH 1024u /* how many buckets are read under one lock */

void
sxe_dict_get_stats_sized(const SXE_DICT *dict, SXE_DICT_STATS *stats, size_t size)
{
    SXE_DICT_STATS sum = {0};

    for (uint32_t shard = 0; shard < dict->shards; shard++) {
        const struct sxe__dict_counts *counts = &dict->counts[shard];

        sum.hits += __atomic_load_n(&counts->hits, __ATOMIC_RELAXED);
        sum.misses += __atomic_load_n(&counts->misses, __ATOMIC_RELAXED);
        sum.evictions += __atomic_load_n(&counts->evictions, __ATOMIC_RELAXED);
        sum.expirations += __atomic_load_n(&counts->expirations, __ATOMIC_RELAXED);
    }
    sxe__sized_give(stats, size, &sum, sizeof(sum));
}

/* ---- Chains ---- */

static int
add_chain(const SXE_DICT *dict, uint32_t shard, uint32_t bucket, SXE_DICT_CHAINS *chains)
{
    uint32_t link = SXE__POOL_GET(*sxe__dict_bucket(dict, shard, bucket));
    size_t length = 0;

    while (link != 0) {
        if (length > dict->number || !sxe__dict_has(dict, shard, link - 1))
            return sxe__dict_damaged(dict);
        length++;
        link = SXE__POOL_GET(sxe__dict_cell(dict, link - 1)->chain);
    }
    chains->buckets_used += length != 0;
    chains->versions += length;
    chains->longest = length > chains->longest ? length : chains->longest;
    return 0;
}

/* Add up to BUCKETS_EACH buckets of a shard, from `bucket` on, under one lock. */
static int
add_some(const SXE_DICT *dict, uint32_t shard, uint32_t bucket, SXE_DICT_CHAINS *chains)
{
    struct sxe__pool_patience patience = {0};
    int result = bucket == 0 ? -EAGAIN : sxe__dict_lock_next_slice(dict, shard);

    if (result == -EAGAIN)
        result = sxe__dict_lock_patiently(dict, shard, &patience);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < BUCKETS_EACH && bucket + i <= dict->bucket_mask && result == 0; i++)
        result = add_chain(dict, shard, bucket + i, chains);
    sxe__dict_unlock(dict, shard);
    return result;
}

int
sxe_dict_get_chains_sized(SXE_DICT *dict, SXE_DICT_CHAINS *chains, size_t size)
{
    SXE_DICT_CHAINS sum = {.buckets = (size_t)dict->shards * ((size_t)dict->bucket_mask + 1)};

    for (uint32_t shard = 0; shard < dict->shards; shard++) {
        for (uint64_t at = 0; at <= dict->bucket_mask; at += BUCKETS_EACH) {
            const int result = add_some(dict, shard, (uint32_t)at, &sum);

            if (result < 0)
                return result;
        }
    }
    sxe__sized_give(chains, size, &sum, sizeof(sum));
    return 0;
}
