/* SPDX-License-Identifier: MIT
 *
 * Opens and closes a dict: a pool of cells, whose extra bytes contain the table.
 */
#include "sxe-dict-private.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "sxe-pool-file-internal.h"
#include "sxe-sized-internal.h"

#define CELL_SIZE_DEFAULT 256u
#define CELL_SIZE_MIN     128u
#define CELL_SIZE_MAX     65536u
#define CELL_ROUND        64u
#define CELLS_MAX         (1u << 31)
#define LOCK_TRIES        1000u

int
sxe__dict_refuse(char *why, int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (why != NULL)
        vsnprintf(why, SXE_POOL_WHY_SIZE, format, arguments);
    va_end(arguments);
    return -error;
}

/* ---- The pool ---- */

/* The buckets of a shard: a power of 2, at least as many as the shard has entries. */
static uint64_t
buckets_for(uint64_t cells, uint64_t shards)
{
    uint64_t buckets = 1;

    while (buckets * shards < cells)
        buckets *= 2;
    return buckets;
}

static size_t
extra_size(uint64_t shards, uint64_t buckets)
{
    return sizeof(struct sxe__dict_control) +
           (size_t)shards * (sizeof(struct sxe__dict_record) + sizeof(struct sxe__dict_counts) +
                             (size_t)buckets * sizeof(uint32_t));
}

/* The fields of a cell, for tools. A pool whose cells have other fields is no dict. */
static void
write_fields(char *fields, size_t size, size_t cell_size)
{
    snprintf(fields, size,
             "u64 hash, u64 expires_ns, u64 born, u64 died, u32 chain, u32 more, u32 replaces, "
             "u32 next, u32 value_size, u16 key_size, u8 entry_state, u8 reserved, "
             "u32 value_sum, u32 reserved_2, char[%zu] data",
             cell_size - SXE__DICT_HEAD_SIZE);
}

/* Fill in the spec of the dict's pool. 0 or -EINVAL. */
static int
plan_pool(const SXE_DICT_SPEC *spec, SXE_POOL_SPEC *pool, char *fields, size_t size, char *why)
{
    const unsigned cell_size = spec->cell_size == 0 ? CELL_SIZE_DEFAULT : spec->cell_size;
    const unsigned shards = spec->shards == 0 ? 1 : spec->shards;

    *pool = (SXE_POOL_SPEC){.name = spec->name, .options = spec->options, .file = spec->file};
    if (spec->cells == 0)
        return 0;
    if (cell_size < CELL_SIZE_MIN || cell_size > CELL_SIZE_MAX || cell_size % CELL_ROUND != 0)
        return sxe__dict_refuse(
            why, EINVAL, "dict %s: cell_size is %u, but must be a multiple of 64 from 128 to 65536",
            spec->name == NULL ? "without a name" : spec->name, cell_size);
    if (spec->cells > CELLS_MAX || shards > SXE_POOL_SHARDS_MAX || (shards & (shards - 1)) != 0 ||
        spec->cells < shards)
        return sxe__dict_refuse(
            why, EINVAL,
            "dict %s: %u cells in %u shards: shards must be a power of 2 up to %u, "
            "and cells at least as many and at most 2^31",
            spec->name == NULL ? "without a name" : spec->name, spec->cells, shards,
            SXE_POOL_SHARDS_MAX);
    write_fields(fields, size, cell_size);
    /* Give each shard one more cell, so that the entries of a full table can be replaced. */
    pool->number = spec->cells + shards;
    pool->element_size = cell_size;
    pool->states = SXE__DICT_STATES;
    pool->shards = shards;
    pool->state_names = SXE__DICT_STATE_NAMES;
    pool->fields = fields;
    pool->extra_size = extra_size(shards, buckets_for(spec->cells, shards));
    return 0;
}

/* ---- The table ---- */

/* Whether the pool's states and fields have a dict's names: the pool of another program may have as
 * many states and elements of the same size. */
static bool
has_dict_names(const SXE_DICT *dict)
{
    char fields[SXE_POOL_FIELDS_MAX + 1];
    char names[SXE_POOL_NAMES_MAX + 1] = "";
    size_t used = 0;

    for (unsigned state = 0; state < SXE__DICT_STATES; state++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", state == 0 ? "" : " ",
                                 sxe_pool_state_to_string(dict->array, state));
    write_fields(fields, sizeof(fields), dict->cell_size);
    return strcmp(names, SXE__DICT_STATE_NAMES) == 0 &&
           strcmp(fields, sxe_pool_get_fields(dict->array)) == 0;
}

/* Find the parts of the dict in its pool; false: the pool holds no dict. */
static bool
attach_dict(SXE_DICT *dict)
{
    const struct sxe__pool_header *pool = dict->pool;
    size_t size;
    char *extra = sxe_pool_get_extra(dict->array, &size);

    dict->sharing = pool->sharing;
    dict->verifies = dict->sharing->verifies;
    dict->number = pool->number;
    dict->cell_size = (uint32_t)pool->element_size;
    dict->room = dict->cell_size - SXE__DICT_HEAD_SIZE;
    dict->shards = dict->sharing->shard_mask + 1;
    dict->shard_bits = (uint32_t)__builtin_ctz(dict->shards);
    const uint64_t buckets = buckets_for((uint64_t)dict->number - dict->shards, dict->shards);
    dict->bucket_mask = (uint32_t)buckets - 1;
    dict->control = (struct sxe__dict_control *)(void *)extra;
    dict->records = (struct sxe__dict_record *)(dict->control + 1);
    dict->counts = (struct sxe__dict_counts *)(void *)(dict->records + dict->shards);
    dict->buckets = (uint32_t *)(void *)(dict->counts + dict->shards);
    return pool->states == SXE__DICT_STATES && dict->number > dict->shards &&
           dict->number - dict->shards <= CELLS_MAX && pool->element_size >= CELL_SIZE_MIN &&
           pool->element_size <= CELL_SIZE_MAX && pool->element_size % CELL_ROUND == 0 &&
           extra != NULL && size == extra_size(dict->shards, buckets) && has_dict_names(dict);
}

/* Take a shard's lock, but do not complete a change of the dict that a dead process began. Other
 * processes that open the dict hold the lock briefly, so try again and again. */
static int
lock_shard(const SXE_DICT *dict, uint32_t shard)
{
    unsigned locked = SXE_POOL_LOCK_NOT_TAKEN;

    for (unsigned tries = 0; tries < LOCK_TRIES && locked == SXE_POOL_LOCK_NOT_TAKEN; tries++) {
        locked = sxe__pool_lock_shard(dict->pool, shard);
        if (locked == SXE_POOL_LOCK_NOT_TAKEN)
            sched_yield();
    }
    if (locked == SXE_POOL_LOCK_TAKEN)
        return 0;
    return locked == SXE_POOL_LOCK_NOT_TAKEN ? -EAGAIN : -EUCLEAN;
}

/* The caller holds the lock of the first shard. The magic is written last, so a process that dies
 * in here leaves no table. */
static int
make_table(const SXE_DICT *dict, bool evicts)
{
    struct sxe__dict_control *control = dict->control;

    if (getrandom(control->hash_key, sizeof(control->hash_key), 0) < 0)
        return -errno;
    SXE__POOL_PUT(control->evicts, evicts);
    SXE__POOL_PUT(control->epoch, 1);
    SXE__POOL_PUT_LAST(control->magic, SXE__DICT_MAGIC);
    return 0;
}

/* Read the table, or make it if there is none. */
static int
open_dict_table(SXE_DICT *dict, const SXE_DICT_SPEC *spec, char *why)
{
    const struct sxe__dict_control *control = dict->control;
    const char *name = dict->pool->name;
    const bool any = spec == NULL || spec->cells == 0;
    int result = 0;

    /* There is no table, and no cell was ever taken: this process makes the dict, or the process
     * that began to make it died. */
    if (SXE__POOL_GET(control->magic) == 0 &&
        sxe_pool_get_count(dict->array, SXE__DICT_FREE) == dict->number)
        result = make_table(dict, !any && spec->evicts);
    if (result < 0)
        return sxe__dict_refuse(why, -result, "dict %s: cannot get random bytes: %s", name,
                                strerror(-result));
    if (SXE__POOL_GET(control->magic) != SXE__DICT_MAGIC)
        return sxe__dict_refuse(
            why, EMEDIUMTYPE,
            "pool %s looks like a dict, but has no table of this version: remove it, or "
            "open it with the program that made it",
            name);
    dict->hash_key[0] = SXE__POOL_GET(control->hash_key[0]);
    dict->hash_key[1] = SXE__POOL_GET(control->hash_key[1]);
    dict->evicts = SXE__POOL_GET(control->evicts) != 0;
    if (any || spec->evicts == dict->evicts)
        return 0;
    return sxe__dict_refuse(why, EEXIST, "dict %s: it %s, the program says that it %s", name,
                            dict->evicts ? "evicts" : "does not evict",
                            spec->evicts ? "evicts" : "does not");
}

/* Take a lock only to make the table: another process may hold it for as long as a check takes. */
static int
open_table(SXE_DICT *dict, const SXE_DICT_SPEC *spec, char *why)
{
    int result = 0;

    if (__atomic_load_n(&dict->control->magic, __ATOMIC_ACQUIRE) != 0)
        return open_dict_table(dict, spec, why);
    result = lock_shard(dict, 0);
    if (result == 0) {
        result = open_dict_table(dict, spec, why);
        sxe__dict_unlock(dict, 0);
        return result;
    }
    return sxe__dict_refuse(why, -result, "dict %s: %s", dict->pool->name,
                            result == -EAGAIN
                                ? "it is locked by another process: try again"
                                : "it is damaged: close it in every program, then have it "
                                  "repaired (SXE_POOL_OPTION_REPAIR)");
}

/* ---- Dicts that may be damaged ---- */

/* Add the number of dropped entries to the sentence that says what was damaged. */
static void
tell_dropped(char *why, size_t before, size_t after)
{
    const size_t dropped = before > after ? before - after : 0;
    const size_t used = why == NULL ? SXE_POOL_WHY_SIZE : strlen(why);

    if (dropped > 0 && used < SXE_POOL_WHY_SIZE)
        snprintf(why + used, SXE_POOL_WHY_SIZE - used, "; %zu damaged %s dropped", dropped,
                 dropped == 1 ? "entry was" : "entries were");
}

static int
rebuild_dict(SXE_DICT *dict, char *why)
{
    const size_t entries = sxe_dict_get_count(dict);
    int result = 0;
    uint32_t locked = 0;

    while (locked < dict->shards && result == 0) {
        result = lock_shard(dict, locked);
        locked += result == 0;
    }
    if (result == 0)
        result = sxe__dict_rebuild(dict);
    if (result == 0)
        SXE__POOL_PUT(dict->sharing->head->damaged, 0);
    while (locked > 0)
        sxe__dict_unlock(dict, --locked);
    if (result == 0)
        tell_dropped(why, entries, sxe_dict_get_count(dict));
    return result == 0 ? 0
                       : sxe__dict_refuse(why, -result, "dict %s: cannot be rebuilt: %s",
                                          dict->pool->name, strerror(-result));
}

static int
check_table(SXE_DICT *dict, char *why)
{
    int result = -EAGAIN;

    for (unsigned tries = 0; tries < LOCK_TRIES && result == -EAGAIN; tries++)
        result = sxe_dict_check(dict, why);
    if (result == 0 || result == -EUCLEAN)
        return result;
    return sxe__dict_refuse(why, -result, "dict %s: cannot be checked: %s", dict->pool->name,
                            strerror(-result));
}

/* Check a dict that some user did not close, or that was found damaged. A repair has two parts, the
 * pool's lists and the table: a process may have been killed between them. */
static int
make_sure(SXE_DICT *dict, const SXE_DICT_SPEC *spec, char *why)
{
    const SXE_POOL_FOUND found = sxe_pool_get_found(dict->array);
    const bool repair = spec != NULL && (spec->options & SXE_POOL_OPTION_REPAIR) != 0;
    int result;

    if (found == SXE_POOL_COMPLETED || found == SXE_POOL_REBUILT)
        SXE__POOL_PUT(dict->control->doubtful, 1);
    if (found == SXE_POOL_JOINED || SXE__POOL_GET(dict->control->doubtful) == 0)
        return 0;
    result = found == SXE_POOL_REBUILT ? -EUCLEAN : check_table(dict, why);
    if (result == -EUCLEAN && (repair || found == SXE_POOL_REBUILT))
        result = rebuild_dict(dict, why);
    if (result == 0)
        SXE__POOL_PUT(dict->control->doubtful, 0);
    return result;
}

/* ---- Opening ---- */

static int
enter_dict(SXE_DICT *dict, const SXE_DICT_SPEC *spec, char *why)
{
    int result;

    if (!attach_dict(dict))
        return sxe__dict_refuse(
            why, EMEDIUMTYPE, "pool %s is no dict: its cells have another shape", dict->pool->name);
    result = open_table(dict, spec, why);
    return result == 0 ? make_sure(dict, spec, why) : result;
}

/* Open the dict in an open pool, and close the pool if it holds none. */
static SXE_DICT *
open_dict_in(void *array, const SXE_DICT_SPEC *spec, char *why)
{
    SXE_DICT *dict;
    int result;

    if (array == NULL)
        return NULL;
    dict = calloc(1, sizeof(*dict));
    if (dict == NULL) {
        result = sxe__dict_refuse(why, ENOMEM, "no memory for a dict");
    } else {
        dict->array = array;
        dict->pool = sxe__pool_of(array);
        result = enter_dict(dict, spec, why);
    }
    if (result == 0)
        return dict;
    sxe_pool_delete(array);
    free(dict);
    errno = -result;
    return NULL;
}

/* Open the dict: from a descriptor, from its file, or in memory. */
static SXE_DICT *
open_dict_of(const int *fd, const SXE_DICT_SPEC *given, size_t size, char *why)
{
    char fields[SXE_POOL_FIELDS_MAX + 1];
    SXE_DICT_SPEC spec;
    SXE_POOL_SPEC pool;
    int result = sxe__sized_take(&spec, sizeof(spec), given, size, "sxe_dict_open");

    result = result < 0 ? sxe__dict_refuse(why, E2BIG, "%s", SXE__SIZED_NEWER)
                        : plan_pool(&spec, &pool, fields, sizeof(fields), why);
    errno = -result;
    if (result < 0)
        return NULL;
    return open_dict_in(fd == NULL ? sxe_pool_open(&pool, why) : sxe_pool_open_fd(*fd, &pool, why),
                        &spec, why);
}

SXE_DICT *
sxe_dict_open_sized(const SXE_DICT_SPEC *spec, size_t size, char *why)
{
    return open_dict_of(NULL, spec, size, why);
}

SXE_DICT *
sxe_dict_open_fd_sized(int fd, const SXE_DICT_SPEC *spec, size_t size, char *why)
{
    return open_dict_of(&fd, spec, size, why);
}

void
sxe_dict_close(SXE_DICT *dict)
{
    if (dict == NULL)
        return;
    sxe_pool_delete(dict->array);
    free(dict);
}

int
sxe_dict_sync(SXE_DICT *dict)
{
    return sxe_pool_sync(dict->array);
}

void *
sxe_dict_get_pool(const SXE_DICT *dict)
{
    return dict->array;
}
