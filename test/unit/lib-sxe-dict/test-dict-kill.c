/* SPDX-License-Identifier: MIT
 *
 * A process may be killed after any instruction of a call on a dict: the next process finds the
 * entry as it was before the call or as it is after it, and a valid table. A child makes the call
 * step by step. A death after a step would leave the memory as it is then. So after each
 * step that changes the memory, a copy of it is opened, of which all users are dead.
 * (test-dict-crash.c kills processes at each store of many more kinds of calls.)
 */
#include "stepped.h"

#include "sxe-dict-private.h"
#include "sxe-time.h"
#include "test-main.h"

#define STEPS_MAX  1000000u
#define CELLS      30u
#define LONG       200u /* bytes, which take several cells */
#define IMAGE_SIZE (1u << 16)

static SXE_DICT *dict;

/* ---- Values ---- */

struct value {
    const char *bytes; /* NULL: there is no entry */
    size_t size;
};

static char long_old[LONG];
static char long_new[LONG];
static const char five[8] = {5};
static const char six[8] = {6};

static void
check_done(int result)
{
    ck_assert_msg(result == 0, "%s", strerror(-result));
}

static void
set_value(const char *key, const struct value *value)
{
    if (value->bytes == NULL)
        (void)sxe_dict_remove(dict, key, 1);
    else
        check_done(sxe_dict_put(dict, key, 1, value->bytes, value->size, SXE_DICT_FOREVER));
}

static bool
is_value(SXE_DICT *in, const char *key, const struct value *value)
{
    char found[LONG];
    const ssize_t size = sxe_dict_peek(in, key, 1, found, sizeof(found));

    if (value->bytes == NULL)
        return size == -ENOENT;
    return size == (ssize_t)value->size && memcmp(found, value->bytes, value->size) == 0;
}

/* ---- Calls ---- */

static void
put_long(void)
{
    (void)!sxe_dict_put(dict, "a", 1, long_new, sizeof(long_new), SXE_DICT_FOREVER);
}

static void
remove_it(void)
{
    (void)!sxe_dict_remove(dict, "a", 1);
}

static void
add_one(void)
{
    (void)!sxe_dict_add(dict, "a", 1, 1, SXE_DICT_FOREVER, NULL);
}

static SXE_DICT_BATCH *batch;

static void
commit(void)
{
    (void)!sxe_dict_batch_commit(batch);
}

/* A snapshot of the child, taken before its steps begin. */
static SXE_DICT_SNAPSHOT *own;

static void
release_own(void)
{
    sxe_dict_snapshot_release(own);
}

static const struct call {
    const char *name;
    void (*make)(void);
    struct value before[2]; /* the values of the keys "a" and "b" */
    struct value after[2];
    bool is_seen; /* a snapshot sees the old value */
} calls[] = {
    {"put", put_long, {{NULL, 0}}, {{long_new, LONG}}, false},
    {"put over", put_long, {{long_old, LONG}}, {{long_new, LONG}}, false},
    {"put over what is seen", put_long, {{long_old, LONG}}, {{long_new, LONG}}, true},
    {"remove", remove_it, {{long_old, LONG}}, {{NULL, 0}}, false},
    {"remove what is seen", remove_it, {{long_old, LONG}}, {{NULL, 0}}, true},
    {"add", add_one, {{five, 8}}, {{six, 8}}, false},
    {"add to what is seen", add_one, {{five, 8}}, {{six, 8}}, true},
    {"batch", commit, {{NULL, 0}, {long_old, LONG}}, {{long_new, LONG}, {NULL, 0}}, false},
    {"release", release_own, {{long_old, LONG}}, {{long_new, LONG}}, false},
};

/* ---- Checking a copy ---- */

static const uint8_t *shared; /* the dict's memory */
static uint8_t image[IMAGE_SIZE];
static size_t image_size;
static int copy_fd;

/* Make a first call: it makes the child a user of the dict. */
static void
get_ready(void)
{
    while (sxe_dict_touch(dict, "c", 1) != 0) {
    }
}

/* Like get_ready, and take the only snapshot that sees the replaced values. */
static void
get_ready_to_release(void)
{
    get_ready();
    own = sxe_dict_snapshot_take(dict);
    for (char key = 'd'; key < 'h'; key++)
        check_done(sxe_dict_put(dict, &key, 1, "new", 3, SXE_DICT_FOREVER));
    put_long();
}

static void
map_file(void)
{
    const int fd = sxe_pool_get_fd(sxe_dict_get_pool(dict));

    image_size = (size_t)lseek(fd, 0, SEEK_END);
    ck_assert_uint_le(image_size, sizeof(image));
    shared = mmap(NULL, image_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    copy_fd = memfd_create("copy", MFD_CLOEXEC);
    ck_assert_int_ne(copy_fd, -1);
}

static SXE_DICT *
open_copy(void)
{
    char why[SXE_POOL_WHY_SIZE];

    memcpy(image, shared, image_size);
    ck_assert_int_eq(pwrite(copy_fd, image, image_size, 0), (ssize_t)image_size);
    SXE_DICT *copy = sxe_dict_open_fd(copy_fd, NULL, why);
    ck_assert_msg(copy != NULL, "%s", why);
    return copy;
}

static void
expect_past(const struct call *call, unsigned steps, const struct sxe_dict_snapshot *snapshot)
{
    char found[LONG];
    const ssize_t size = sxe_dict_snapshot_get(snapshot, "a", 1, found, sizeof(found));

    ck_assert_msg(size == (ssize_t)call->before[0].size &&
                      memcmp(found, call->before[0].bytes, (size_t)size) == 0,
                  "%s, %u steps: another past", call->name, steps);
}

/* No snapshot sees old versions, so all cells can be used again. */
static void
expect_room(const struct call *call, unsigned steps, SXE_DICT *copy)
{
    char why[SXE_POOL_WHY_SIZE];
    unsigned number = 0;

    for (char key = 'a'; key < 'h'; key++)
        (void)!sxe_dict_remove(copy, &key, 1);
    for (unsigned i = 0; number < CELLS && i < 100 * CELLS; i++)
        number += sxe_dict_put(copy, &i, sizeof(i), "fill", 4, SXE_DICT_FOREVER) == 0;
    ck_assert_msg(number == CELLS && sxe_dict_get_count(copy) == CELLS,
                  "%s, %u steps: room for %u of %u", call->name, steps, number, CELLS);
    ck_assert_msg(sxe_dict_check(copy, why) == 0, "%s, %u steps: %s", call->name, steps, why);
}

/* Check a copy of the memory. Returns whether it has the state after the call. */
static bool
expect_whole(const struct call *call, unsigned steps, const struct sxe_dict_snapshot *snapshot)
{
    SXE_DICT *copy = open_copy();
    char why[SXE_POOL_WHY_SIZE];
    const bool is_before =
        is_value(copy, "a", &call->before[0]) && is_value(copy, "b", &call->before[1]);
    const bool is_after =
        is_value(copy, "a", &call->after[0]) && is_value(copy, "b", &call->after[1]);

    ck_assert_msg(is_after || is_before, "%s, %u steps: neither", call->name, steps);
    if (snapshot != NULL) {
        struct sxe_dict_snapshot past = *snapshot;

        past.dict = copy;
        expect_past(call, steps, &past);
    }
    ck_assert_msg(sxe_dict_check(copy, why) == 0, "%s, %u steps: %s", call->name, steps, why);
    expect_room(call, steps, copy);
    sxe_dict_close(copy);
    return is_after;
}

static void
setup(void)
{
    const SXE_DICT_SPEC spec = {.name = "kill", .cells = CELLS, .cell_size = 128, .shards = 2};

    /* The time stands still, so that each run of a call takes the same steps. */
    sxe_time_set_turn_ns(sxe_time_ns());
    dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(dict);
    for (char key = 'c'; key < 'h'; key++)
        check_done(sxe_dict_put(dict, &key, 1, "c", 1, SXE_DICT_FOREVER));
    memset(long_old, 'o', sizeof(long_old));
    memset(long_new, 'n', sizeof(long_new));
    batch = sxe_dict_batch_new(dict);
    check_done(sxe_dict_batch_put(batch, "a", 1, long_new, LONG, SXE_DICT_FOREVER));
    check_done(sxe_dict_batch_remove(batch, "b", 1));
    map_file();
    stepped_begin();
}

static void
teardown(void)
{
    stepped_end();
    close(copy_fd);
    munmap((void *)(uintptr_t)shared, image_size);
    sxe_dict_batch_delete(batch);
    sxe_dict_close(dict);
    sxe_time_set_turn_ns(0);
}

/* The copies have the old value up to some step, and the new value from then on. */
static void
step_and_look(const struct call *call, pid_t child, const struct sxe_dict_snapshot *snapshot)
{
    unsigned steps = 0;
    unsigned looks = 0;
    bool was_after = false;
    bool is_going_on = true;

    for (; is_going_on; steps++) {
        is_going_on = stepped_step(child);
        if (is_going_on && memcmp(shared, image, image_size) == 0)
            continue;
        const bool is_after = expect_whole(call, steps, snapshot);
        ck_assert_msg(is_after || !was_after, "%s, %u steps: undone", call->name, steps);
        was_after = is_after;
        looks++;
        ck_assert_uint_lt(steps, STEPS_MAX);
    }
    ck_assert(was_after);
    printf("%s: %u steps, after which memory was different %u times\n", call->name, steps, looks);
}

START_TEST(death_after_any_instruction_leaves_the_dict_whole)
{
    const struct call *call = &calls[_i];

    set_value("a", &call->before[0]);
    set_value("b", &call->before[1]);
    SXE_DICT_SNAPSHOT *snapshot = call->is_seen ? sxe_dict_snapshot_take(dict) : NULL;
    const pid_t child =
        stepped_start(call->make == release_own ? get_ready_to_release : get_ready, call->make);
    if (child != -1) {
        step_and_look(call, child, snapshot);
        stepped_kill(child);
    }
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-kill");
    TCase *tcase = tcase_create("kill");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, death_after_any_instruction_leaves_the_dict_whole, 0,
                        (int)SXE_COUNT(calls));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
