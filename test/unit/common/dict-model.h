/* SPDX-License-Identifier: MIT
 *
 * What: a dict, and beside it the simplest thing that should behave like it: an array of entries,
 * indexed by the number of the key. Each step does the same to both and compares what can be seen;
 * dict_model_check compares all.
 *
 * Place: used by test-dict-oracle.c with random numbers, and by a fuzzer in fuzz-dict.c.
 *
 * Shape: a step has 6 bytes: operation, key, size (2 bytes), and two arguments of the operation.
 * A roomy model has room for all entries, times to live and snapshots. A tight model has neither of
 * these, but knows which entries are evicted and when there is no room; its dict has one shard.
 *
 * Limits: values of up to DICT_MODEL_VALUE_MAX bytes; a snapshot is a copy of the array.
 */
#ifndef DICT_MODEL_H
#define DICT_MODEL_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-dict.h"
#include "sxe-time.h"

#define DICT_MODEL_STEP_SIZE 6
#define DICT_MODEL_KEYS      24u
#define DICT_MODEL_VALUE_MAX 700u
#define DICT_MODEL_CELL      128u /* bytes, 64 of which the cell itself uses */
#define DICT_MODEL_ROOM      64u
#define DICT_MODEL_SNAPSHOTS 3u
#define DICT_MODEL_START_NS  UINT64_C(1000000000)

struct dict_model_entry {
    bool is_there; /* the entry may have expired */
    uint8_t state;
    uint16_t size;
    uint64_t expires_ns; /* 0: never */
    uint64_t used;       /* the number of the last use: the larger, the more recent */
    uint8_t value[DICT_MODEL_VALUE_MAX];
};

struct dict_model_key {
    char bytes[DICT_MODEL_ROOM];
    size_t size;
};

struct dict_model {
    SXE_DICT *dict;
    SXE_DICT_SPEC spec;
    uint64_t now_ns;
    uint64_t uses;
    unsigned free; /* free cells of a tight model */
    bool is_tight;
    struct dict_model_entry entry[DICT_MODEL_KEYS];
    struct {
        SXE_DICT_SNAPSHOT *snapshot;
        uint64_t time_ns;
        struct dict_model_entry entry[DICT_MODEL_KEYS];
    } past[DICT_MODEL_SNAPSHOTS];
};

struct dict_model_step {
    unsigned key;
    unsigned size;
    unsigned a;
    unsigned b;
};

/* ---- Keys and values ---- */

/* Key 0 is empty; key 1 fills a cell; key 2 leaves room for no more than one word in its cell. */
static inline struct dict_model_key
dict_model_key(unsigned number)
{
    static const size_t sizes[] = {0, DICT_MODEL_ROOM, DICT_MODEL_ROOM - 8, DICT_MODEL_ROOM - 7};
    struct dict_model_key key = {.size = number < 4 ? sizes[number] : 1 + number % 17};

    memset(key.bytes, 'a' + (int)number, sizeof(key.bytes));
    return key;
}

static inline void
dict_model_fill(uint8_t value[DICT_MODEL_VALUE_MAX], unsigned size, unsigned seed)
{
    for (unsigned i = 0; i < size; i++)
        value[i] = (uint8_t)(seed + i * 7 + (i >> 5));
}

static inline unsigned
dict_model_cells(unsigned key, unsigned size)
{
    const unsigned first = DICT_MODEL_ROOM - (((unsigned)dict_model_key(key).size + 7) & ~7u);

    return size <= first ? 1 : 1 + (size - first + DICT_MODEL_ROOM - 1) / DICT_MODEL_ROOM;
}

static inline double
dict_model_ttl(unsigned choice)
{
    static const double ttls[] = {0, 0, 0.000001, 0.001, 1, 1000};

    return ttls[choice % (sizeof(ttls) / sizeof(ttls[0]))];
}

static inline uint64_t
dict_model_expiry(const struct dict_model *model, double ttl_s)
{
    if (ttl_s <= 0)
        return 0;
    return sxe_pool_get_now(sxe_dict_get_pool(model->dict)) + (uint64_t)(ttl_s * 1e9) + 1;
}

/* ---- Parts of the model ---- */

/* Remove the key's entry if it has expired, as the calls of a dict do when they find such an entry.
 * Returns whether the key still has an entry. */
static inline bool
dict_model_meet(struct dict_model *model, unsigned key)
{
    struct dict_model_entry *entry = &model->entry[key];

    if (entry->is_there && entry->expires_ns != 0 &&
        entry->expires_ns <= sxe_pool_get_now(sxe_dict_get_pool(model->dict)))
        entry->is_there = false;
    return entry->is_there;
}

static inline void
dict_model_drop(struct dict_model *model, unsigned key)
{
    if (model->entry[key].is_there)
        model->free += dict_model_cells(key, model->entry[key].size);
    model->entry[key].is_there = false;
}

/* Make room as a tight dict does: evict LIVE entries, the least recently used first. Returns 0,
 * -EFBIG or -ENOSPC. */
static inline int
dict_model_make_room(struct dict_model *model, unsigned key, unsigned size)
{
    const unsigned cells = dict_model_cells(key, size);

    if (cells > model->spec.cells)
        return -EFBIG;
    while (model->free < cells + !model->entry[key].is_there) {
        unsigned oldest = DICT_MODEL_KEYS;

        for (unsigned i = 0; i < DICT_MODEL_KEYS && model->spec.evicts; i++) {
            const struct dict_model_entry *entry = &model->entry[i];

            if (entry->is_there && entry->state == SXE_DICT_LIVE && i != key &&
                (oldest == DICT_MODEL_KEYS || entry->used < model->entry[oldest].used))
                oldest = i;
        }
        if (oldest == DICT_MODEL_KEYS)
            return -ENOSPC;
        dict_model_drop(model, oldest);
    }
    return 0;
}

static inline int
dict_model_store(struct dict_model *model, unsigned key, const void *value, unsigned size,
                 uint64_t expires_ns)
{
    struct dict_model_entry *entry = &model->entry[key];
    const bool was_there = dict_model_meet(model, key);
    const int result = model->is_tight ? dict_model_make_room(model, key, size) : 0;

    if (result < 0)
        return result;
    dict_model_drop(model, key);
    model->free -= dict_model_cells(key, size);
    entry->state = was_there ? entry->state : SXE_DICT_LIVE;
    entry->is_there = true;
    entry->size = (uint16_t)size;
    entry->expires_ns = expires_ns;
    entry->used = ++model->uses;
    memcpy(entry->value, value, size);
    return 0;
}

static inline bool
dict_model_is(const struct dict_model_entry *entry, const void *value, ssize_t size)
{
    return size == entry->size && memcmp(value, entry->value, entry->size) == 0;
}

/* ---- Operations: each returns whether dict and model agree ---- */

static inline bool
dict_model_put(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const double ttl_s = model->is_tight ? 0 : dict_model_ttl(step->b);
    uint8_t value[DICT_MODEL_VALUE_MAX];

    dict_model_fill(value, step->size, step->a);
    const int result =
        dict_model_store(model, step->key, value, step->size, dict_model_expiry(model, ttl_s));
    return sxe_dict_put(model->dict, key.bytes, key.size, value, step->size, ttl_s) == result;
}

static inline bool
dict_model_get(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const bool touches = step->a % 2 == 0;
    uint8_t value[DICT_MODEL_VALUE_MAX];
    const ssize_t size = (touches ? sxe_dict_get : sxe_dict_peek)(
        model->dict, key.bytes, key.size, value, step->b % 4 == 0 ? step->size : sizeof(value));

    if (!dict_model_meet(model, step->key))
        return size == -ENOENT;
    struct dict_model_entry *entry = &model->entry[step->key];
    entry->used = touches ? ++model->uses : entry->used;
    return size == entry->size &&
           memcmp(value, entry->value,
                  step->b % 4 == 0 && step->size < entry->size ? step->size : entry->size) == 0;
}

static inline bool
dict_model_add(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const int64_t addend = (int64_t)step->size - 300;
    struct dict_model_entry *entry = &model->entry[step->key];
    int64_t sum = -1;
    int64_t expected = addend;
    const bool is_there = dict_model_meet(model, step->key);
    const uint64_t expires_ns =
        is_there ? entry->expires_ns : dict_model_expiry(model, model->is_tight ? 0 : 1);
    const int result = sxe_dict_add(model->dict, key.bytes, key.size, addend,
                                    model->is_tight ? 0 : 1, step->a % 2 ? &sum : NULL);

    if (is_there && entry->size != sizeof(int64_t))
        return result == -EDOM;
    if (is_there) {
        int64_t old;

        memcpy(&old, entry->value, sizeof(old));
        expected = (int64_t)((uint64_t)old + (uint64_t)addend);
        memcpy(entry->value, &expected, sizeof(expected));
        entry->used = ++model->uses;
        return result == 0 && (step->a % 2 == 0 || sum == expected);
    }
    return result == dict_model_store(model, step->key, &expected, sizeof(expected), expires_ns) &&
           (result < 0 || step->a % 2 == 0 || sum == expected);
}

/* The expected value is: no entry (if b % 3 is 0), the present value (1), another value (2). */
static inline bool
dict_model_compare_and_put(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const bool is_there = dict_model_meet(model, step->key);
    const bool wants_it = step->b % 3 != 0;
    uint8_t value[DICT_MODEL_VALUE_MAX];
    struct dict_model_entry expected = model->entry[step->key];
    int result = -EEXIST;

    if (step->b % 3 == 2) {
        expected.size += expected.size < DICT_MODEL_VALUE_MAX;
        expected.value[step->a % expected.size] ^= step->a % 2 ? 1 : 0;
    }
    const bool is_it = wants_it ? is_there && dict_model_is(&model->entry[step->key],
                                                            expected.value, expected.size)
                                : !is_there;
    dict_model_fill(value, step->size, step->a);
    if (is_it)
        result = dict_model_store(model, step->key, value, step->size, 0);
    return sxe_dict_compare_and_put(model->dict, key.bytes, key.size,
                                    wants_it ? expected.value : NULL, expected.size, value,
                                    step->size, 0) == result;
}

static inline bool
dict_model_remove(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const int result = dict_model_meet(model, step->key) ? 0 : -ENOENT;

    dict_model_drop(model, step->key);
    return sxe_dict_remove(model->dict, key.bytes, key.size) == result;
}

static inline bool
dict_model_touch(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const int result = dict_model_meet(model, step->key) ? 0 : -ENOENT;

    model->entry[step->key].used = ++model->uses;
    return sxe_dict_touch(model->dict, key.bytes, key.size) == result;
}

static inline bool
dict_model_set_state(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const unsigned state = step->a % 8 < 5 ? SXE_DICT_LIVE : step->a % 8 - 4;
    struct dict_model_entry *entry = &model->entry[step->key];
    const int result = dict_model_meet(model, step->key) ? 0 : -ENOENT;

    entry->used = ++model->uses;
    entry->state = (uint8_t)state;
    return sxe_dict_set_state(model->dict, key.bytes, key.size, (SXE_DICT_STATE)state) == result;
}

static inline bool
dict_model_expire(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const double ttl_s = model->is_tight ? 0 : dict_model_ttl(step->b);
    const int result = dict_model_meet(model, step->key) ? 0 : -ENOENT;

    model->entry[step->key].expires_ns = dict_model_expiry(model, ttl_s);
    return sxe_dict_expire(model->dict, key.bytes, key.size, ttl_s) == result;
}

static inline bool
dict_model_look_at_ttl(struct dict_model *model, const struct dict_model_step *step)
{
    const struct dict_model_key key = dict_model_key(step->key);
    const double ttl_s = sxe_dict_get_ttl(model->dict, key.bytes, key.size);
    const uint64_t expires_ns = model->entry[step->key].expires_ns;

    if (!dict_model_meet(model, step->key))
        return ttl_s == -ENOENT;
    if (expires_ns == 0)
        return ttl_s == HUGE_VAL;
    return ttl_s == (double)(expires_ns - sxe_pool_get_now(sxe_dict_get_pool(model->dict))) / 1e9;
}

static inline bool
dict_model_turn(struct dict_model *model, const struct dict_model_step *step)
{
    static const uint64_t times[] = {1, 1000, 1000000, 2000000000};

    model->now_ns += times[step->a % 4];
    sxe_time_set_turn_ns(model->now_ns);
    return true;
}

/* ---- Batches of size % 9 keys: step->key, and from there every a-th key ---- */

static inline bool
dict_model_batch(struct dict_model *model, const struct dict_model_step *step)
{
    static struct dict_model_entry before[DICT_MODEL_KEYS];
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(model->dict);
    bool agree = batch != NULL;
    uint8_t value[DICT_MODEL_VALUE_MAX];

    memcpy(before, model->entry, sizeof(before));

    for (unsigned i = 0; i < step->size % 9 && agree && !model->is_tight; i++) {
        const unsigned number = (step->key + i * step->a) % DICT_MODEL_KEYS;
        const struct dict_model_key key = dict_model_key(number);

        /* The last change of a key replaces its earlier ones in the batch. */
        model->entry[number] = before[number];
        dict_model_fill(value, step->size, i);
        if ((step->b >> (i % 8) & 1) != 0) {
            agree = sxe_dict_batch_remove(batch, key.bytes, key.size) == 0;
            dict_model_drop(model, number);
        } else {
            agree = sxe_dict_batch_put(batch, key.bytes, key.size, value, step->size, 0) == 0 &&
                    dict_model_store(model, number, value, step->size, 0) == 0;
        }
    }
    agree = agree && sxe_dict_batch_commit(batch) == 0;
    sxe_dict_batch_delete(batch);
    return agree;
}

/* ---- Snapshots ---- */

static inline bool
dict_model_take_snapshot(struct dict_model *model, const struct dict_model_step *step)
{
    const unsigned which = step->a % DICT_MODEL_SNAPSHOTS;

    if (model->is_tight)
        return true;
    sxe_dict_snapshot_release(model->past[which].snapshot);
    model->past[which].snapshot = sxe_dict_snapshot_take(model->dict);
    model->past[which].time_ns = sxe_pool_get_now(sxe_dict_get_pool(model->dict));
    memcpy(model->past[which].entry, model->entry, sizeof(model->entry));
    return model->past[which].snapshot != NULL;
}

static inline bool
dict_model_release_snapshot(struct dict_model *model, const struct dict_model_step *step)
{
    const unsigned which = step->a % DICT_MODEL_SNAPSHOTS;

    sxe_dict_snapshot_release(model->past[which].snapshot);
    model->past[which].snapshot = NULL;
    return true;
}

static inline bool
dict_model_was_there(const struct dict_model *model, unsigned which, unsigned key)
{
    const struct dict_model_entry *entry = &model->past[which].entry[key];

    return entry->is_there &&
           (entry->expires_ns == 0 || entry->expires_ns > model->past[which].time_ns);
}

static inline bool
dict_model_get_past(struct dict_model *model, const struct dict_model_step *step)
{
    const unsigned which = step->a % DICT_MODEL_SNAPSHOTS;
    const struct dict_model_key key = dict_model_key(step->key);
    uint8_t value[DICT_MODEL_VALUE_MAX];

    if (model->past[which].snapshot == NULL)
        return true;
    const ssize_t size = sxe_dict_snapshot_get(model->past[which].snapshot, key.bytes, key.size,
                                               value, sizeof(value));
    if (!dict_model_was_there(model, which, step->key))
        return size == -ENOENT;
    return dict_model_is(&model->past[which].entry[step->key], value, size);
}

/* ---- Comparing all entries ---- */

/* The number of a key that a walk met; DICT_MODEL_KEYS: the model has no such key. */
static inline unsigned
dict_model_number(const void *bytes, size_t size)
{
    for (unsigned i = 0; i < DICT_MODEL_KEYS; i++) {
        const struct dict_model_key key = dict_model_key(i);

        if (key.size == size && memcmp(key.bytes, bytes, size) == 0)
            return i;
    }
    return DICT_MODEL_KEYS;
}

/* Walk the dict or a snapshot: it must meet every entry of `wanted` once, and nothing else. */
static inline bool
dict_model_walk(SXE_DICT_WALKER *walker, const struct dict_model_entry *wanted, uint64_t now_ns,
                bool compare_state)
{
    char key[DICT_MODEL_ROOM];
    uint8_t value[DICT_MODEL_VALUE_MAX];
    bool met[DICT_MODEL_KEYS + 1] = {false};
    SXE_DICT_ENTRY entry = {
        .key = key, .key_room = sizeof(key), .value = value, .value_room = sizeof(value)};
    int result;

    while ((result = sxe_dict_walker_step(walker, &entry)) == 1) {
        const unsigned number = dict_model_number(key, entry.key_size);

        if (met[number] || number == DICT_MODEL_KEYS || !wanted[number].is_there ||
            !dict_model_is(&wanted[number], value, (ssize_t)entry.value_size) ||
            (compare_state && entry.state != wanted[number].state))
            return false;
        met[number] = true;
    }
    for (unsigned i = 0; i < DICT_MODEL_KEYS; i++) {
        const bool is_there =
            wanted[i].is_there && (wanted[i].expires_ns == 0 || wanted[i].expires_ns > now_ns);
        if (met[i] != is_there)
            return false;
    }
    return result == 0;
}

static inline bool
dict_model_check(struct dict_model *model)
{
    SXE_DICT_WALKER walker;
    char why[SXE_POOL_WHY_SIZE];
    size_t count = 0;
    bool good = sxe_dict_check(model->dict, why) == 0 &&
                sxe_pool_check(sxe_dict_get_pool(model->dict), why) == 0;

    if (!good)
        fprintf(stderr, "%s\n", why);
    for (unsigned i = 0; i < DICT_MODEL_KEYS; i++)
        count += model->entry[i].is_there;
    sxe_dict_walker_construct(&walker, model->dict);
    good = good && sxe_dict_get_count(model->dict) == count &&
           dict_model_walk(&walker, model->entry, sxe_pool_get_now(sxe_dict_get_pool(model->dict)),
                           true);
    for (unsigned i = 0; i < DICT_MODEL_SNAPSHOTS && good; i++) {
        if (model->past[i].snapshot == NULL)
            continue;
        sxe_dict_snapshot_walk(&walker, model->past[i].snapshot);
        good = dict_model_walk(&walker, model->past[i].entry, model->past[i].time_ns, false);
    }
    return good;
}

static inline void
dict_model_release_all(struct dict_model *model)
{
    for (unsigned i = 0; i < DICT_MODEL_SNAPSHOTS; i++)
        dict_model_release_snapshot(model, &(struct dict_model_step){.a = i});
}

static inline void
dict_model_open(struct dict_model *model, const SXE_DICT_SPEC *spec, bool is_tight)
{
    char why[SXE_POOL_WHY_SIZE];

    *model = (struct dict_model){.spec = *spec, .is_tight = is_tight, .free = spec->cells + 1};
    model->now_ns = DICT_MODEL_START_NS;
    sxe_time_set_turn_ns(model->now_ns);
    model->spec.cell_size = DICT_MODEL_CELL;
    model->dict = sxe_dict_open(&model->spec, why);
    if (model->dict == NULL) {
        fprintf(stderr, "%s\n", why);
        abort();
    }
}

static inline void
dict_model_close(struct dict_model *model)
{
    dict_model_release_all(model);
    sxe_dict_close(model->dict);
    sxe_time_set_turn_ns(0);
}

/* Close a dict that is in a file, and open it again. */
static inline bool
dict_model_open_again(struct dict_model *model, const struct dict_model_step *step)
{
    (void)step;
    if (model->spec.file == NULL)
        return true;
    dict_model_release_all(model);
    sxe_dict_close(model->dict);
    model->dict = sxe_dict_open(&model->spec, NULL);
    return model->dict != NULL &&
           sxe_pool_get_found(sxe_dict_get_pool(model->dict)) == SXE_POOL_CLOSED;
}

/* Do one step. NULL, or the name of the operation whose result differs between dict and model. */
static inline const char *
dict_model_step(struct dict_model *model, const uint8_t bytes[DICT_MODEL_STEP_SIZE])
{
    static const struct {
        const char *name;
        bool (*run)(struct dict_model *, const struct dict_model_step *);
    } operations[] = {
        {"put", dict_model_put},
        {"put", dict_model_put},
        {"put", dict_model_put},
        {"put", dict_model_put},
        {"put", dict_model_put},
        {"get", dict_model_get},
        {"get", dict_model_get},
        {"get", dict_model_get},
        {"add", dict_model_add},
        {"add", dict_model_add},
        {"compare and put", dict_model_compare_and_put},
        {"compare and put", dict_model_compare_and_put},
        {"remove", dict_model_remove},
        {"remove", dict_model_remove},
        {"touch", dict_model_touch},
        {"set state", dict_model_set_state},
        {"expire", dict_model_expire},
        {"ttl", dict_model_look_at_ttl},
        {"turn", dict_model_turn},
        {"batch", dict_model_batch},
        {"batch", dict_model_batch},
        {"take a snapshot", dict_model_take_snapshot},
        {"release a snapshot", dict_model_release_snapshot},
        {"get of a snapshot", dict_model_get_past},
        {"get of a snapshot", dict_model_get_past},
        {"get of a snapshot", dict_model_get_past},
    };
    const size_t number = sizeof(operations) / sizeof(operations[0]);
    const struct dict_model_step step = {
        .key = bytes[1] % DICT_MODEL_KEYS,
        .size = (unsigned)(bytes[2] | bytes[3] << 8) % DICT_MODEL_VALUE_MAX,
        .a = bytes[4],
        .b = bytes[5],
    };

    if (bytes[0] == 255)
        return dict_model_open_again(model, &step) ? NULL : "open again";
    return operations[bytes[0] % number].run(model, &step) ? NULL
                                                           : operations[bytes[0] % number].name;
}

#endif
