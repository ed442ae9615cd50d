/* SPDX-License-Identifier: MIT
 *
 * Readers without a lock, on a processor such as arm64 that reorders memory accesses more than x86.
 *
 * The library's own lines are compiled here with other macros for memory accesses. A change is made
 * once; each of its stores is recorded as a message: the value, and the messages that a reader of
 * this value must see as well (its view). Then a reader runs again and again, until each of its
 * loads has returned each message that the rules of C11 allow:
 *
 *   - a load never returns an older message of a word than one that its process has seen;
 *   - a release store carries all that its process has seen; any other store what it had seen at
 *     the last FENCE_STORES;
 *   - an acquire load takes over the view of the message; FENCE_LOADS does that for all loads
 *     before it.
 *
 * The reader stores nothing, so it does not matter when the writer's stores are made. Taking the
 * lock is an acquire load and an ordinary store. Each ordering can be left out: then the test must
 * find the error that it prevents.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WORDS = 64, MESSAGES = 128, LOADS = 64 };

enum weakness { SOUND, NO_FENCE_STORES, NO_FENCE_LOADS, NO_GET_FIRST, NO_PUT_LAST };

/* For each word, the number of the oldest message that a load may still return. */
struct view {
    uint8_t from[WORDS];
};

struct message {
    const void *place; /* a word of 4 bytes */
    uint32_t value;
    struct view view;
};

static struct {
    enum weakness weakness;
    bool writes; /* true: the change runs; false: a reader, if `reads` */
    bool reads;
    const void *words[WORDS];
    unsigned number_of_words;
    struct message messages[MESSAGES];
    /* of all messages. In each word they count from 1; 0 is its value before the change */
    unsigned number;
    struct view seen;
    /* what was seen at the last FENCE_STORES, or what the next FENCE_LOADS takes over */
    struct view fenced;
    unsigned choices[LOADS];
    unsigned limits[LOADS];
    unsigned loads;
} weak;

static unsigned
word_of(const void *place)
{
    unsigned word = 0;

    while (word < weak.number_of_words && weak.words[word] != place)
        word++;
    if (word == weak.number_of_words)
        weak.words[weak.number_of_words++] = place;
    return word;
}

static void
join(struct view *view, const struct view *other)
{
    for (unsigned i = 0; i < WORDS; i++)
        view->from[i] = view->from[i] > other->from[i] ? view->from[i] : other->from[i];
}

static void
store(const void *place, uint32_t value, bool releases)
{
    const unsigned word = word_of(place);
    struct message *message = &weak.messages[weak.number++];

    weak.seen.from[word]++;
    *message = (struct message){place, value, releases ? weak.seen : weak.fenced};
    message->view.from[word] = weak.seen.from[word];
}

static void
put(void *place, size_t size, uint64_t value, bool releases)
{
    const uint32_t halves[] = {(uint32_t)value, (uint32_t)(value >> 32)};

    memcpy(place, halves, size);
    if (!weak.writes)
        return;
    store(place, halves[0], releases && weak.weakness != NO_PUT_LAST);
    if (size == 8)
        store((char *)place + 4, halves[1], releases && weak.weakness != NO_PUT_LAST);
}

/* Load a word: `choices` says which of the messages that the load may return it does return. */
static uint32_t
load(const void *place, const uint32_t *first, bool acquires)
{
    const unsigned word = word_of(place);
    unsigned sent = 0;

    for (unsigned i = 0; i < weak.number; i++)
        sent += weak.messages[i].place == place;
    const unsigned load_number = weak.loads++;
    weak.limits[load_number] = sent - weak.seen.from[word];
    const unsigned chosen = weak.seen.from[word] + weak.choices[load_number];
    weak.seen.from[word] = (uint8_t)chosen;
    if (chosen == 0)
        return *first;
    unsigned nth = 0;
    const struct message *message = weak.messages;
    while (message->place != place || ++nth != chosen)
        message++;
    join(acquires ? &weak.seen : &weak.fenced, &message->view);
    return message->value;
}

static uint64_t get(const void *place, size_t size, bool acquires);

static void
fence_stores(void)
{
    if (weak.writes && weak.weakness != NO_FENCE_STORES)
        weak.fenced = weak.seen;
}

static void
fence_loads(void)
{
    if (weak.reads && weak.weakness != NO_FENCE_LOADS)
        join(&weak.seen, &weak.fenced);
}

#define VALUE(place, first)              ((TYPE(place))get(&(place), sizeof(place), first))
#define TYPE(place)                      __typeof__(0 + (place))
#define SXE__POOL_STEP()                 ((void)0)
#define SXE__POOL_GET(place)             VALUE(place, false)
#define SXE__POOL_GET_FIRST(place)       VALUE(place, true)
#define SXE__POOL_OWN(place)             SXE__POOL_GET(place)
#define SXE__POOL_PUT(place, value)      put(&(place), sizeof(place), (value), false)
#define SXE__POOL_PUT_LAST(place, value) put(&(place), sizeof(place), (value), true)
#define SXE__POOL_FENCE_LOADS()          fence_loads()
#define SXE__POOL_FENCE_STORES()         fence_stores()
#define __atomic_compare_exchange_n(place, expected, value, is_weak, success, failure) \
    swap_word(place, expected, value)

static bool
swap_word(uint32_t *place, uint32_t *expected, uint32_t value)
{
    if (*place != *expected) {
        *expected = *place;
        return false;
    }
    put(place, sizeof(*place), value, false);
    return true;
}

#include "../../../lib-sxe-pool/sxe-pool-shared.c"

#include "test-main.h"
#undef __atomic_compare_exchange_n

enum { FREE, BUSY, STATES, ELEMENTS = 4 };

static struct sxe__pool_node was_nodes[ELEMENTS + STATES];
static struct sxe__pool_shard was_shard;
static char *array;
static const struct sxe__pool_header *pool;

/* The value that a word had before the change. */
static const uint32_t *
first_of(const void *place)
{
    const char *nodes = (const char *)pool->sharing->nodes;
    const char *shard = (const char *)pool->sharing->shards;
    const char *at = place;

    if (at >= nodes && at < nodes + sizeof(was_nodes))
        return (const uint32_t *)(const void *)((const char *)was_nodes + (at - nodes));
    ck_assert(at >= shard && at < shard + sizeof(was_shard));
    return (const uint32_t *)(const void *)((const char *)&was_shard + (at - shard));
}

static uint64_t
get(const void *place, size_t size, bool acquires)
{
    uint32_t halves[2] = {0, 0};
    uint64_t value = 0;

    acquires = acquires && weak.weakness != NO_GET_FIRST;
    if (!weak.reads) {
        memcpy(&value, place, size);
        return value;
    }
    for (size_t i = 0; i < size / 4; i++) {
        const void *half = (const char *)place + 4 * i;
        halves[i] = load(half, first_of(half), acquires);
    }
    return halves[0] | (uint64_t)halves[1] << 32;
}

/* ---- A change, and its readers ---- */

static bool
finds_nothing(void)
{
    return look_at_shard(pool, FREE, 0) == EMPTY && look_at_shard(pool, BUSY, 0) == EMPTY;
}

/* The only element is BUSY, with the stamp that it had while it was FREE: a state that never
 * was. */
static bool
takes_half_a_change_for_settled(void)
{
    struct end end;

    if (!read_settled_end(pool, BUSY, 0, &end))
        return false;
    return end.id == 0 && end.stamp == was_nodes[0].stamp;
}

/* Timeouts read the state, then the stamp. An element that looks too old would time out early. */
static bool
meets_the_state_before_the_stamp(void)
{
    const struct sxe__pool_node *node = &pool->sharing->nodes[0];

    return SXE__POOL_GET_FIRST(node->state) == BUSY &&
           SXE__POOL_GET(node->stamp) == was_nodes[0].stamp;
}

/* Go to the next combination of choices; false: all have been tried. */
static bool
choose_again(void)
{
    while (weak.loads > 0 && weak.choices[weak.loads - 1] == weak.limits[weak.loads - 1])
        weak.choices[--weak.loads] = 0;
    if (weak.loads == 0)
        return false;
    weak.choices[weak.loads - 1]++;
    return true;
}

/* Whether some order of memory accesses shows a reader something wrong. */
static bool
can_be(bool (*is_deceived)(void), enum weakness weakness)
{
    const SXE_POOL_SPEC spec = {.name = "weak",
                                .number = 1,
                                .element_size = 8,
                                .states = STATES,
                                .options = SXE_POOL_OPTION_LOCKED};
    bool deceived = false;

    memset(&weak, 0, sizeof(weak));
    array = sxe_pool_open(&spec, NULL);
    ck_assert_ptr_nonnull(array);
    pool = sxe__pool_header(array);
    memcpy(was_nodes, pool->sharing->nodes, (1 + STATES) * sizeof(was_nodes[0]));
    was_shard = pool->sharing->shards[0];
    weak.weakness = weakness;
    weak.writes = true;
    uint32_t state = BUSY;
    ck_assert_uint_eq(change(pool, 0, FREE, &state), SXE_POOL_LOCK_TAKEN);
    weak.writes = false;
    weak.reads = true;
    do {
        memset(&weak.seen, 0, sizeof(weak.seen));
        memset(&weak.fenced, 0, sizeof(weak.fenced));
        weak.loads = 0;
        deceived = is_deceived();
    } while (!deceived && choose_again());
    weak.reads = false;
    sxe_pool_delete(array);
    return deceived;
}

static bool (*const readers[])(void) = {finds_nothing, takes_half_a_change_for_settled,
                                        meets_the_state_before_the_stamp};

START_TEST(no_order_of_memory_deceives_a_reader)
{
    ck_assert(!can_be(readers[_i], SOUND));
}
END_TEST

/* The orderings that each reader needs. */
static const struct {
    unsigned reader;
    enum weakness weakness;
} needed[] = {
    {0, NO_FENCE_STORES}, {0, NO_FENCE_LOADS}, {0, NO_GET_FIRST}, {0, NO_PUT_LAST},
    {1, NO_FENCE_STORES}, {1, NO_FENCE_LOADS}, {1, NO_GET_FIRST}, {1, NO_PUT_LAST},
    {2, NO_GET_FIRST},    {2, NO_PUT_LAST},
};

START_TEST(without_an_ordering_a_reader_is_deceived)
{
    ck_assert(can_be(readers[needed[_i].reader], needed[_i].weakness));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-weak");
    TCase *c = tcase_create("orders");

    tcase_add_loop_test(c, no_order_of_memory_deceives_a_reader, 0, SXE_COUNT(readers));
    tcase_add_loop_test(c, without_an_ordering_a_reader_is_deceived, 0, SXE_COUNT(needed));
    suite_add_tcase(s, c);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
