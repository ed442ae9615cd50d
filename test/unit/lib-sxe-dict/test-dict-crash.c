/* SPDX-License-Identifier: MIT
 *
 * A process is killed before each of its stores into shared memory in turn, in every kind of call.
 * Another process then finds the table as it was before the call or as it is after it, and each
 * cell can be used. The library's own lines are compiled here with macros that end the process at a
 * chosen store.
 */
#include "mortal-stores.h"

#include "../../../lib-sxe-dict/sxe-dict-batch.c"
#include "../../../lib-sxe-dict/sxe-dict-cell.c"
#include "../../../lib-sxe-dict/sxe-dict-change.c"
#include "../../../lib-sxe-dict/sxe-dict-room.c"
#include "../../../lib-sxe-dict/sxe-dict-snapshot.c"
#include "../../../lib-sxe-dict/sxe-dict.c"
#include "../../../lib-sxe-pool/sxe-pool-lock.c"
#include "../../../lib-sxe-pool/sxe-pool-shared.c"

#include <stdio.h>
#include <sys/wait.h>

#include "test-main.h"
#include "test-sweep.h"

#define KEYS       12u
#define VALUE_ROOM 400u
#define START_NS   UINT64_C(1000000000000)
/* The most keys that are tried: a hash chooses the shard of each key. */
#define FILL_MAX 100000u

/* Try every fourth store only: a fork is ten times as slow with the sanitizer, which checks these
 * lines in other tests anyhow. Short runs do the same. */
#define EVERY (SXE_HAVE_ASAN || sxe_test_is_thin() ? 4u : 1u)

/* ---- The entries of a dict ---- */

struct contents {
    struct {
        ssize_t size; /* -1: there is no entry */
        unsigned state;
        bool expires;
        char value[VALUE_ROOM];
    } entry[KEYS];
};

static const char *
key_of(unsigned number)
{
    static char keys[KEYS][8];

    snprintf(keys[number], sizeof(keys[number]), "key-%02u", number);
    return keys[number];
}

static void
meet(struct contents *contents, const SXE_DICT_ENTRY *entry)
{
    const unsigned number = (unsigned)strtoul((const char *)entry->key + 4, NULL, 10);

    ck_assert_uint_lt(number, KEYS);
    ck_assert_int_eq(contents->entry[number].size, -1);
    contents->entry[number].size = (ssize_t)entry->value_size;
    contents->entry[number].state = entry->state;
    contents->entry[number].expires = entry->ttl_s < 1e9;
    memcpy(contents->entry[number].value, entry->value, entry->value_size);
}

/* Walk the dict or a snapshot; false: the snapshot has ended. */
static bool
look(SXE_DICT *dict, SXE_DICT_SNAPSHOT *snapshot, struct contents *contents)
{
    char key[8] = "";
    char value[VALUE_ROOM];
    SXE_DICT_ENTRY entry = {.key = key, .key_room = 7, .value = value, .value_room = VALUE_ROOM};
    SXE_DICT_WALKER walker;
    int result;

    memset(contents, 0, sizeof(*contents));
    for (unsigned i = 0; i < KEYS; i++)
        contents->entry[i].size = -1;
    if (snapshot != NULL)
        sxe_dict_snapshot_walk(&walker, snapshot);
    else
        sxe_dict_walker_construct(&walker, dict);
    while ((result = sxe_dict_walker_step(&walker, &entry)) == 1)
        meet(contents, &entry);
    ck_assert_int_eq(result, snapshot != NULL && result == -ESTALE ? -ESTALE : 0);
    return result == 0;
}

static bool
same(const struct contents *a, const struct contents *b, unsigned number)
{
    return memcmp(&a->entry[number], &b->entry[number], sizeof(a->entry[0])) == 0;
}

static bool
all_same(const struct contents *a, const struct contents *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- Calls ---- */

static void
put(SXE_DICT *dict, unsigned key, unsigned size, int seed)
{
    char value[VALUE_ROOM];

    memset(value, seed, sizeof(value));
    ck_assert_int_eq(sxe_dict_put(dict, key_of(key), 6, value, size, 0), 0);
}

static void
put_some(SXE_DICT *dict)
{
    for (unsigned i = 0; i < 6; i++)
        put(dict, i, 20 * i * i / 2, 'a' + (int)i);
    ck_assert_int_eq(sxe_dict_add(dict, key_of(6), 6, 5, 0, NULL), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, key_of(2), 6, SXE_DICT_DIRTY), 0);
}

static void
put_all(SXE_DICT *dict)
{
    for (unsigned i = 0; i < KEYS; i++)
        put(dict, i, 10, 'a' + (int)i);
}

static void
compare_and_put(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, key_of(1), 6, "bbbbbbbbbb", 10, "new", 3, 100),
                     0);
}

static void
remove_one(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_remove(dict, key_of(1), 6), 0);
}

static void
remove_one_of_several_cells(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_remove(dict, key_of(5), 6), 0);
}

static void
add_new(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_add(dict, key_of(7), 6, 77, 0, NULL), 0);
}

static void
add_more(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_add(dict, key_of(6), 6, 77, 0, NULL), 0);
}

static void
get(SXE_DICT *dict)
{
    char value[8];

    ck_assert_int_eq(sxe_dict_get(dict, key_of(1), 6, value, sizeof(value)), 10);
}

static void
set_state(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_set_state(dict, key_of(1), 6, SXE_DICT_PINNED), 0);
}

static void
give_time(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_expire(dict, key_of(1), 6, 100), 0);
}

/* All entries but one have expired, and no cell is free. */
static void
put_all_that_expire(SXE_DICT *dict)
{
    for (unsigned i = 0; i < KEYS - 1; i++)
        ck_assert_int_eq(sxe_dict_put(dict, key_of(i), 6, "v", 1, i == 3 ? 0 : 1), 0);
    ck_assert_int_eq(sxe_dict_put(dict, key_of(KEYS - 1), 6, "v", 1, 0), 0);
    sxe_time_set_turn_ns(START_NS + 2 * SXE_NS_PER_SECOND);
}

static void
get_expired(SXE_DICT *dict)
{
    ck_assert_int_eq(sxe_dict_get(dict, key_of(0), 6, NULL, 0), -ENOENT);
}

static void
commit_some(SXE_DICT *dict)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    char value[VALUE_ROOM];

    memset(value, 'y', sizeof(value));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(sxe_dict_batch_put(batch, key_of(2 * i), 6, value, 60 * i, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, key_of(9), 6, value, 9, 100), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, key_of(1), 6), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, key_of(5), 6), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, key_of(10), 6), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    sxe_dict_batch_delete(batch);
}

static SXE_DICT_BATCH *
expect_some(SXE_DICT *dict, const char *sixth)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    const int64_t counter = 5;

    ck_assert_int_eq(sxe_dict_batch_expect(batch, key_of(1), 6, "bbbbbbbbbb", 10), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, key_of(6), 6, &counter, sizeof(counter)), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, key_of(11), 6, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, key_of(0), 6, sixth, strlen(sixth)), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, key_of(1), 6, "new", 3, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, key_of(11), 6, "also", 4, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, key_of(5), 6), 0);
    return batch;
}

static void
commit_what_is_expected(SXE_DICT *dict)
{
    SXE_DICT_BATCH *batch = expect_some(dict, "");

    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    sxe_dict_batch_delete(batch);
}

static void
commit_in_vain(SXE_DICT *dict)
{
    SXE_DICT_BATCH *batch = expect_some(dict, "something else");

    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EEXIST);
    sxe_dict_batch_delete(batch);
}

static SXE_DICT_SNAPSHOT *taken; /* taken by a scenario's preparation, in which no process dies */

static void
keep_snapshot(SXE_DICT *dict)
{
    taken = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(taken);
}

/* Release a snapshot that sees old versions, while there is another snapshot. */
static void
release_snapshot(SXE_DICT *dict)
{
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);

    put(dict, 1, 40, 'p');
    put(dict, 5, 140, 'q');
    put(dict, 1, 10, 'b');
    put(dict, 5, 250, 'f');
    sxe_dict_snapshot_release(snapshot);
}

/* Release two snapshots, each of which sees versions that the other does not. */
static void
release_two(SXE_DICT *dict)
{
    SXE_DICT_SNAPSHOT *first = sxe_dict_snapshot_take(dict);
    SXE_DICT_SNAPSHOT *second;

    put(dict, 1, 40, 'p');
    put(dict, 5, 140, 'q');
    second = sxe_dict_snapshot_take(dict);
    put(dict, 1, 10, 'b');
    put(dict, 5, 250, 'f');
    sxe_dict_snapshot_release(first);
    sxe_dict_snapshot_release(second);
}

/* How much of a call may be found done: all or nothing, or this for each of its entries. */
enum outcome { BEFORE_OR_AFTER, EACH_BEFORE_OR_AFTER };

static const struct scenario {
    const char *name;
    void (*prepare)(SXE_DICT *);
    void (*call)(SXE_DICT *); /* NULL: put a value of `size` at `key` */
    unsigned key;
    unsigned size;
    unsigned cells;
    unsigned shards; /* 0: one shard */
    bool evicts;
    bool with_snapshot; /* a snapshot is taken after prepare(), in the surviving process */
    enum outcome outcome;
} scenarios[] = {
    {"put", put_some, .key = 8, .size = 30, .cells = 60},
    {"put, several cells", put_some, .key = 8, .size = 300, .cells = 60},
    {"put over", put_some, .key = 2, .size = 25, .cells = 240, .shards = 4},
    {"put over several cells", put_some, .key = 5, .size = 350, .cells = 60},
    {"put one cell over several", put_some, .key = 5, .size = 1, .cells = 60},
    {"put, old version seen", put_some, .key = 5, .size = 350, .cells = 60, .with_snapshot = true},
    {"compare and put", put_some, compare_and_put, .cells = 60},
    {"remove", put_some, remove_one, .cells = 60},
    {"remove, several cells", put_some, remove_one_of_several_cells, .cells = 60},
    {"remove, old version seen", put_some, remove_one_of_several_cells, .cells = 60,
     .with_snapshot = true},
    {"add, new", put_some, add_new, .cells = 60},
    {"add in place", put_some, add_more, .cells = 60},
    {"add, old version seen", put_some, add_more, .cells = 60, .with_snapshot = true},
    {"get", put_some, get, .cells = 60},
    {"set state", put_some, set_state, .cells = 60},
    {"expire", put_some, give_time, .cells = 60},
    {"get what has expired", put_all_that_expire, get_expired, .cells = KEYS},
    {"put into the room of what has expired", put_all_that_expire, .key = 3, .size = 150,
     .cells = KEYS},
    {"put that evicts", put_all, .key = 8, .size = 300, .cells = KEYS, .evicts = true,
     .outcome = EACH_BEFORE_OR_AFTER},
    {"put that evicts what is seen", put_all, .key = 2, .size = 25, .cells = KEYS, .evicts = true,
     .with_snapshot = true, .outcome = EACH_BEFORE_OR_AFTER},
    {"put that ends a snapshot", put_all, .key = 2, .size = 25, .cells = KEYS + 1,
     .with_snapshot = true},
    {"batch", put_some, commit_some, .cells = 60},
    {"batch, several shards", put_some, commit_some, .cells = 240, .shards = 4},
    {"batch, several shards, old versions seen", put_some, commit_some, .cells = 240, .shards = 4,
     .with_snapshot = true},
    {"batch with conditions", put_some, commit_what_is_expected, .cells = 60},
    {"batch with conditions, several shards", put_some, commit_what_is_expected, .cells = 240,
     .shards = 4, .with_snapshot = true},
    {"batch with a condition that does not hold", put_some, commit_in_vain, .cells = 240,
     .shards = 4},
    {"take a snapshot", put_some, keep_snapshot, .cells = 120, .shards = 2},
    {"release a snapshot", put_some, release_snapshot, .cells = 60, .with_snapshot = true,
     .outcome = EACH_BEFORE_OR_AFTER},
    {"release the only snapshot", put_some, release_snapshot, .cells = 60,
     .outcome = EACH_BEFORE_OR_AFTER},
    {"release the only snapshot, several shards", put_some, release_snapshot, .cells = 240,
     .shards = 4, .outcome = EACH_BEFORE_OR_AFTER},
    {"release two snapshots, one after the other", put_some, release_two, .cells = 60,
     .outcome = EACH_BEFORE_OR_AFTER},
};

static void
make_call(const struct scenario *scenario, SXE_DICT *dict)
{
    if (scenario->call != NULL)
        scenario->call(dict);
    else
        put(dict, scenario->key, scenario->size, 'x');
}

/* ---- Deaths ---- */

struct world {
    SXE_DICT *dict;
    SXE_DICT_SNAPSHOT *snapshot;
};

static void
world_open(struct world *world, const struct scenario *scenario)
{
    const SXE_DICT_SPEC spec = {.name = "crash",
                                .cells = scenario->cells,
                                .cell_size = 128,
                                .shards = scenario->shards,
                                .evicts = scenario->evicts};

    sxe_time_set_turn_ns(START_NS);
    world->dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(world->dict);
    scenario->prepare(world->dict);
    world->snapshot = scenario->with_snapshot ? sxe_dict_snapshot_take(world->dict) : NULL;
}

static void
world_close(struct world *world)
{
    sxe_dict_snapshot_release(world->snapshot);
    sxe_dict_snapshot_release(taken);
    taken = NULL;
    sxe_dict_close(world->dict);
}

/* Make the call in a child that dies before the given store. False: the call ended before it. */
static bool
call_and_die(const struct scenario *scenario, SXE_DICT *dict, uint64_t store)
{
    int status;
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sxe__pool_attach_again(dict->sharing);
        stores_to_live = store;
        make_call(scenario, dict);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL,
                  "status %x", status);
    return WIFSIGNALED(status);
}

static void
check(SXE_DICT *dict, const char *what, uint64_t store)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    const int checked = sxe_dict_check(dict, why);

    ck_assert_msg(checked == 0 && sxe_pool_check(sxe_dict_get_pool(dict), why) == 0,
                  "%s: killed at store %u: %s", what, (unsigned)store, why);
}

static void
compare(const struct scenario *scenario, uint64_t store, const struct contents *found,
        const struct contents *before, const struct contents *after)
{
    bool good = all_same(found, before) || all_same(found, after);

    if (!good && scenario->outcome == EACH_BEFORE_OR_AFTER) {
        good = true;
        for (unsigned i = 0; i < KEYS; i++)
            good =
                good && (same(found, before, i) || same(found, after, i) ||
                         ((scenario->call == release_snapshot || scenario->call == release_two) &&
                          (i == 1 || i == 5)));
    }
    ck_assert_msg(good, "%s: killed at store %u: neither as before nor as after", scenario->name,
                  (unsigned)store);
}

/* Fill the table completely, which shows that no cell is lost. */
static void
fill_up(const struct scenario *scenario, SXE_DICT *dict, uint64_t store)
{
    for (unsigned i = 0; i < KEYS; i++) {
        const int removed = sxe_dict_remove(dict, key_of(i), 6);
        ck_assert(removed == 0 || removed == -ENOENT);
    }
    /* Hashes fill one shard before the other; a full shard refuses further entries. */
    for (unsigned i = 0; sxe_dict_get_count(dict) < scenario->cells; i++) {
        char key[16];
        const int length = snprintf(key, sizeof(key), "fill-%u", i);
        const int result = sxe_dict_put(dict, key, (size_t)length, "v", 1, 0);

        ck_assert_msg(result == 0 || (result == -ENOSPC && dict->shards > 1 && i < FILL_MAX),
                      "%s: killed at store %u: no room for more than %zu of %u", scenario->name,
                      (unsigned)store, sxe_dict_get_count(dict), scenario->cells);
    }
}

static void
before_and_after(const struct scenario *scenario, struct contents *before, struct contents *after)
{
    struct world world;

    world_open(&world, scenario);
    look(world.dict, NULL, before);
    make_call(scenario, world.dict);
    look(world.dict, NULL, after);
    world_close(&world);
}

/* The surviving process must find this state after one death or two. */
static void
find_whole(const struct scenario *scenario, struct world *world, uint64_t store,
           const struct contents *before, const struct contents *after)
{
    struct contents found;

    look(world->dict, NULL, &found);
    compare(scenario, store, &found, before, after);
    if (world->snapshot != NULL && look(world->dict, world->snapshot, &found))
        ck_assert_msg(all_same(&found, before), "%s: killed at store %u: another past",
                      scenario->name, (unsigned)store);
    check(world->dict, scenario->name, store);
    fill_up(scenario, world->dict, store);
    check(world->dict, scenario->name, store);
}

START_TEST(death_at_any_store_leaves_all_or_nothing)
{
    const struct scenario *scenario = &scenarios[_i];
    struct contents before;
    struct contents after;
    struct world world;
    bool died = true;

    before_and_after(scenario, &before, &after);
    for (uint64_t store = 1 + (unsigned)_i % EVERY; died; store += EVERY) {
        world_open(&world, scenario);
        died = call_and_die(scenario, world.dict, store);
        find_whole(scenario, &world, store, &before, &after);
        world_close(&world);
    }
}
END_TEST

static void
take_all_locks(SXE_DICT *dict)
{
    for (uint32_t shard = 0; shard < dict->shards; shard++) {
        ck_assert_int_eq(sxe__dict_lock(dict, shard), 0);
        sxe__dict_unlock(dict, shard);
    }
}

static const struct scenario take_locks = {"take all locks", .call = take_all_locks};

START_TEST(death_of_who_completes_it_leaves_all_or_nothing)
{
    const struct scenario *scenario = &scenarios[_i];
    struct contents before;
    struct contents after;
    struct world world;
    uint64_t second = 1;
    bool died = true;

    before_and_after(scenario, &before, &after);
    for (uint64_t store = 1; died; store += 3 * EVERY) {
        world_open(&world, scenario);
        died = call_and_die(scenario, world.dict, store);
        /* The store at which the second process dies varies from round to round. */
        second = call_and_die(&take_locks, world.dict, second) ? second + 5 : second % 5 + 1;
        find_whole(scenario, &world, store, &before, &after);
        world_close(&world);
    }
}
END_TEST

/* A batch that follows one of a dead process: all changes of the dead one appear, or none. */
START_TEST(next_batch_decides_what_a_dead_one_has_left)
{
    const struct scenario *scenario = &scenarios[_i];
    struct contents before;
    struct contents after;
    struct contents found;
    bool died = true;

    if (scenario->call != commit_some && scenario->call != commit_what_is_expected &&
        scenario->call != commit_in_vain)
        return;
    before_and_after(scenario, &before, &after);
    for (uint64_t store = 1; died; store += EVERY) {
        struct world world;
        SXE_DICT_BATCH *batch;

        world_open(&world, scenario);
        died = call_and_die(scenario, world.dict, store);
        batch = sxe_dict_batch_new(world.dict);
        ck_assert_int_eq(sxe_dict_batch_put(batch, key_of(11), 6, "next", 4, 0), 0);
        ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
        sxe_dict_batch_delete(batch);
        look(world.dict, NULL, &found);
        ck_assert_int_eq(found.entry[11].size, 4);
        memcpy(&found.entry[11], &before.entry[11], sizeof(found.entry[11]));
        memcpy(&after.entry[11], &before.entry[11], sizeof(after.entry[11]));
        compare(scenario, store, &found, &before, &after);
        check(world.dict, scenario->name, store);
        world_close(&world);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-crash");
    TCase *tcase = tcase_create("crash");

    tcase_add_loop_test(tcase, death_at_any_store_leaves_all_or_nothing, 0,
                        (int)SXE_COUNT(scenarios));
    tcase_add_loop_test(tcase, death_of_who_completes_it_leaves_all_or_nothing, 0,
                        (int)SXE_COUNT(scenarios));
    tcase_add_loop_test(tcase, next_batch_decides_what_a_dead_one_has_left, 0,
                        (int)SXE_COUNT(scenarios));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
