/* SPDX-License-Identifier: MIT
 *
 * Opening a dict: refusals, what a later process finds, when the table is made again; and memory
 * into which another program wrote causes an error and never a crash.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-dict-private.h"
#include "sxe-pool-sharing-private.h"
#include "sxe-time.h"
#include "test-main.h"

static char path[64];
static char why[SXE_POOL_WHY_SIZE];

static void
setup(void)
{
    snprintf(path, sizeof(path), "/dev/shm/test-dict-open-%d", getpid());
    unlink(path);
}

static void
teardown(void)
{
    unlink(path);
}

static SXE_DICT_SPEC
spec_of(const char *file)
{
    return (SXE_DICT_SPEC){
        .name = "test", .cells = 100, .cell_size = 128, .shards = 2, .file = file};
}

static SXE_DICT *
open_in(const char *file)
{
    const SXE_DICT_SPEC spec = spec_of(file);
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

static void
refused(const SXE_DICT_SPEC *spec, int error, const char *because)
{
    errno = 0;
    ck_assert_ptr_null(sxe_dict_open(spec, why));
    ck_assert_msg(errno == error, "errno %d: %s", errno, why);
    ck_assert_msg(strstr(why, because) != NULL, "%s", why);
}

static void
fill(SXE_DICT *dict)
{
    char value[150];

    for (unsigned i = 0; i < 30; i++) {
        memset(value, (int)i, sizeof(value));
        ck_assert_int_eq(sxe_dict_put(dict, &i, sizeof(i), value, i * 5, i % 2 ? 100 : 0), 0);
    }
}

/* How many of the entries that fill() puts are there unchanged. */
static unsigned
count_whole(SXE_DICT *dict)
{
    char value[150];
    char found[150];
    unsigned whole = 0;

    for (unsigned i = 0; i < 30; i++) {
        const ssize_t size = sxe_dict_peek(dict, &i, sizeof(i), found, sizeof(found));

        memset(value, (int)i, sizeof(value));
        ck_assert(size < 0 || (size == (ssize_t)i * 5 && memcmp(value, found, (size_t)size) == 0));
        whole += size >= 0;
    }
    return whole;
}

static void
check(SXE_DICT *dict)
{
    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    ck_assert_msg(sxe_pool_check(sxe_dict_get_pool(dict), why) == 0, "%s", why);
}

/* ---- Refused ---- */

START_TEST(impossible_numbers_are_refused)
{
    SXE_DICT_SPEC spec = spec_of(NULL);

    spec.cell_size = 100;
    refused(&spec, EINVAL, "cell_size is 100");
    spec.cell_size = 64;
    refused(&spec, EINVAL, "multiple of 64 from 128");
    spec.cell_size = 65536 + 64;
    spec.name = NULL;
    refused(&spec, EINVAL, "without a name");
    spec.cell_size = 0;
    refused(&spec, EINVAL, "name");
    spec.shards = 3;
    refused(&spec, EINVAL, "power of 2");
    spec.name = "test";
    spec.shards = 128;
    refused(&spec, EINVAL, "power of 2");
    spec.shards = 64;
    spec.cells = 63;
    refused(&spec, EINVAL, "at least as many");
    spec.cells = (1u << 31) + 1;
    refused(&spec, EINVAL, "2^31");
    spec.cells = 0;
    refused(&spec, EINVAL, "");
    ck_assert_ptr_null(sxe_dict_open(&spec, NULL));
}
END_TEST

START_TEST(largest_and_smallest_cells_are_possible)
{
    static const unsigned sizes[] = {0, 128, 65536};
    SXE_DICT_SPEC spec = spec_of(NULL);
    SXE_DICT *dict;

    spec.cell_size = sizes[_i];
    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_uint_eq(sxe_pool_get_element_size(sxe_dict_get_pool(dict)),
                      sizes[_i] == 0 ? 256 : sizes[_i]);
    ck_assert_str_eq(sxe_pool_state_to_string(sxe_dict_get_pool(dict), SXE__DICT_OLD), "OLD");
    sxe_dict_close(dict);
    sxe_dict_close(NULL);
}
END_TEST

START_TEST(file_of_another_shape_is_refused)
{
    SXE_DICT_SPEC spec = spec_of(path);

    sxe_dict_close(open_in(path));
    spec.cells = 101;
    refused(&spec, EEXIST, path);
    spec = spec_of(path);
    spec.evicts = true;
    refused(&spec, EEXIST, "it does not evict, the program says that it evicts");
    unlink(path);
    sxe_dict_close(sxe_dict_open(&spec, why));
    spec.evicts = false;
    refused(&spec, EEXIST, "it evicts, the program says that it does not");
}
END_TEST

START_TEST(pool_that_is_no_dict_is_refused)
{
    const SXE_POOL_SPEC plain[] = {
        {.name = "test", .number = 10, .element_size = 128, .states = 2, .file = path},
        {.name = "test", .number = 10, .element_size = 128, .states = 6, .file = path},
        {.name = "test",
         .number = 1,
         .element_size = 128,
         .states = 6,
         .file = path,
         .extra_size = 10000},
        {.name = "test",
         .number = 10,
         .element_size = 64,
         .states = 6,
         .file = path,
         .extra_size = 10000},
        {.name = "test",
         .number = 10,
         .element_size = 129,
         .states = 6,
         .file = path,
         .extra_size = 10000},
    };
    const SXE_DICT_SPEC spec = {.name = "test", .file = path};

    sxe_pool_delete(sxe_pool_open(&plain[_i], why));
    refused(&spec, EMEDIUMTYPE, "is no dict");
}
END_TEST

/* A pool with the shape of a dict of 9 cells. */
#define DICT_EXTRA                                                        \
    (sizeof(struct sxe__dict_control) + sizeof(struct sxe__dict_record) + \
     sizeof(struct sxe__dict_counts) + 16 * sizeof(uint32_t))
#define DICT_SHAPE                                                                \
    .name = "test", .number = 10, .element_size = 128, .states = 6, .file = path, \
    .extra_size = DICT_EXTRA
#define DICT_FIELDS                                                                        \
    "u64 hash, u64 expires_ns, u64 born, u64 died, u32 chain, u32 more, u32 replaces, "    \
    "u32 next, u32 value_size, u16 key_size, u8 entry_state, u8 reserved, u32 value_sum, " \
    "u32 reserved_2, char[64] data"

/* A pool of another program is refused, even if all its numbers are those of a dict and its extra
 * bytes are zero. */
START_TEST(pool_of_the_shape_of_a_dict_is_refused)
{
    const SXE_POOL_SPEC foreign[] = {
        {DICT_SHAPE},
        {DICT_SHAPE, .state_names = "A B C D E F", .fields = DICT_FIELDS},
        {DICT_SHAPE, .state_names = SXE__DICT_STATE_NAMES},
        {DICT_SHAPE, .state_names = SXE__DICT_STATE_NAMES, .fields = "char[128] letters"},
    };
    const SXE_DICT_SPEC spec = {.name = "test", .file = path};
    char *array = sxe_pool_open(&foreign[_i], why);
    char extra[DICT_EXTRA] = "";
    size_t size;

    ck_assert_msg(array != NULL, "%s", why);
    sxe_pool_delete(array);
    refused(&spec, EMEDIUMTYPE, "is no dict");
    array = sxe_pool_open(&foreign[_i], why);
    ck_assert_int_eq(memcmp(sxe_pool_get_extra(array, &size), extra, sizeof(extra)), 0);
    sxe_pool_delete(array);
}
END_TEST

/* The pool looks like that of a maker that died before it made the table; but then no cell could be
 * in use. */
START_TEST(cells_in_use_without_a_table_are_refused)
{
    const SXE_POOL_SPEC foreign = {DICT_SHAPE, .state_names = SXE__DICT_STATE_NAMES,
                                   .fields = DICT_FIELDS};
    SXE_DICT_SPEC spec = {.name = "test", .file = path};
    char *array = sxe_pool_open(&foreign, why);

    ck_assert_msg(array != NULL, "%s", why);
    ck_assert_uint_eq(sxe_pool_take(array, 0, SXE_DICT_LIVE), 0);
    sxe_pool_delete(array);
    refused(&spec, EMEDIUMTYPE, "no table of this version");
    spec.options = SXE_POOL_OPTION_REPAIR;
    refused(&spec, EMEDIUMTYPE, "no table of this version");
    array = sxe_pool_open(&foreign, why);
    sxe_pool_move(array, 0, SXE_DICT_LIVE, 0);
    sxe_pool_delete(array);
    SXE_DICT *dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    sxe_dict_close(dict);
}
END_TEST

START_TEST(table_of_another_version_is_refused)
{
    const SXE_DICT_SPEC spec = spec_of(path);
    SXE_DICT *dict = open_in(path);

    dict->control->magic++;
    sxe_dict_close(dict);
    refused(&spec, EMEDIUMTYPE, "no table of this version");
}
END_TEST

START_TEST(dict_whose_table_another_makes_for_long_is_refused)
{
    const SXE_DICT_SPEC spec = spec_of(path);
    SXE_DICT *dict = open_in(path);

    ck_assert_int_eq(sxe__dict_lock(dict, 0), 0);
    dict->control->magic = 0;
    refused(&spec, EAGAIN, "locked by another");
    sxe__dict_unlock(dict, 0);
    sxe_dict_close(dict);
}
END_TEST

START_TEST(what_the_system_refuses_is_told)
{
    const SXE_DICT_SPEC spec = spec_of(NULL);
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_MALLOC, FAKE_GETRANDOM,   FAKE_MMAP,
                                           FAKE_OPEN,   FAKE_FCNTL,  FAKE_MEMFD_CREATE};
    const unsigned fds = fake_os_open_fds();
    unsigned nth = 0;

    for (;;) {
        fake_os_reset();
        fake_os_sweep(kinds, SXE_COUNT(kinds), ++nth, false, ENOMEM);
        why[0] = '\0';
        SXE_DICT *dict = sxe_dict_open(&spec, why);
        const unsigned injected = fake_os_injected();

        fake_os_reset();
        ck_assert(dict != NULL || why[0] != '\0');
        sxe_dict_close(dict);
        ck_assert_uint_eq(fake_os_open_fds(), fds);
        if (injected == 0)
            break;
    }
    ck_assert_uint_gt(nth, 3);
}
END_TEST

/* ---- Entries that the next process finds ---- */

START_TEST(file_keeps_everything)
{
    const SXE_DICT_SPEC any = {.name = "test", .file = path};
    SXE_DICT *dict = open_in(path);

    fill(dict);
    sxe_dict_close(dict);
    dict = sxe_dict_open(&any, why);
    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_uint_eq(sxe_pool_get_found(sxe_dict_get_pool(dict)), SXE_POOL_CLOSED);
    ck_assert_uint_eq(count_whole(dict), 30);
    check(dict);
    sxe_dict_close(dict);
}
END_TEST

START_TEST(descriptor_is_as_good_as_a_file)
{
    const SXE_DICT_SPEC spec = spec_of(NULL);
    SXE_DICT_SPEC other = spec;
    SXE_DICT *dict = open_in(NULL);
    SXE_DICT *again = sxe_dict_open_fd(sxe_pool_get_fd(sxe_dict_get_pool(dict)), NULL, why);

    ck_assert_msg(again != NULL, "%s", why);
    fill(dict);
    ck_assert_uint_eq(count_whole(again), 30);
    sxe_dict_close(again);
    again = sxe_dict_open_fd(sxe_pool_get_fd(sxe_dict_get_pool(dict)), &spec, why);
    ck_assert_msg(again != NULL, "%s", why);
    sxe_dict_close(again);
    other.cell_size = 1;
    ck_assert_ptr_null(sxe_dict_open_fd(sxe_pool_get_fd(sxe_dict_get_pool(dict)), &other, why));
    ck_assert_int_eq(errno, EINVAL);
    sxe_dict_close(dict);
}
END_TEST

/* Call what() in a child, which is then killed. */
static void
do_and_die(void (*what)(SXE_DICT *))
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        what(open_in(path));
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(dict_of_the_dead_that_cannot_be_checked_is_refused)
{
    const SXE_DICT_SPEC spec = spec_of(path);

    do_and_die(fill);
    fake_os_fail(FAKE_CALLOC, 2, 1, ENOMEM);
    refused(&spec, ENOMEM, "cannot be checked");
    fake_os_reset();
}
END_TEST

START_TEST(dict_of_the_dead_is_checked_and_used)
{
    SXE_DICT *dict;

    do_and_die(fill);
    dict = open_in(path);
    ck_assert_uint_eq(sxe_pool_get_found(sxe_dict_get_pool(dict)), SXE_POOL_COMPLETED);
    ck_assert_uint_eq(count_whole(dict), 30);
    check(dict);
    sxe_dict_close(dict);
}
END_TEST

static void
die_before_the_table_is_made(SXE_DICT *dict)
{
    memset(dict->control, 0, sizeof(*dict->control));
}

START_TEST(table_whose_maker_died_is_made)
{
    SXE_DICT *dict;

    do_and_die(die_before_the_table_is_made);
    dict = open_in(path);
    fill(dict);
    ck_assert_uint_eq(count_whole(dict), 30);
    sxe_dict_close(dict);
}
END_TEST

/* ---- Damage ---- */

static uint32_t
first_of_bucket(SXE_DICT *dict, unsigned key)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;

    ck_assert_int_eq(sxe__dict_set_key(dict, &place, &key, sizeof(key)), 0);
    ck_assert_int_eq(sxe__dict_find(dict, &place, 0, &view), 1);
    return view.id;
}

static struct sxe__dict_cell *
cell_of(SXE_DICT *dict, unsigned key)
{
    return sxe__dict_cell(dict, first_of_bucket(dict, key));
}

static uint32_t *
bucket_of(SXE_DICT *dict, unsigned key)
{
    const uint64_t hash = cell_of(dict, key)->hash;

    return sxe__dict_bucket(dict, sxe__dict_shard(dict, hash), hash);
}

static void
damage_link(SXE_DICT *dict)
{
    *bucket_of(dict, 5) = 1000;
}

static void
damage_by_a_circle(SXE_DICT *dict)
{
    cell_of(dict, 5)->chain = first_of_bucket(dict, 5) + 1;
    cell_of(dict, 5)->hash ^= 1;
}

static void
damage_by_a_circle_of_hashes(SXE_DICT *dict)
{
    cell_of(dict, 5)->chain = first_of_bucket(dict, 5) + 1;
}

static void
damage_hash(SXE_DICT *dict)
{
    cell_of(dict, 5)->hash ^= UINT64_C(1) << 40;
}

static void
damage_key_size(SXE_DICT *dict)
{
    cell_of(dict, 5)->key_size = 65;
}

static void
damage_value_size(SXE_DICT *dict)
{
    cell_of(dict, 5)->value_size = UINT32_MAX;
}

static void
damage_value_size_a_little(SXE_DICT *dict)
{
    cell_of(dict, 29)->value_size = 100000;
}

static void
damage_more(SXE_DICT *dict)
{
    cell_of(dict, 29)->more = 1000;
}

static void
damage_more_of_two(SXE_DICT *dict)
{
    for (unsigned i = 0; i < 30; i++) {
        if (i != 29 && cell_of(dict, i)->more != 0 &&
            sxe__dict_has(dict, sxe__dict_shard(dict, cell_of(dict, i)->hash),
                          cell_of(dict, 29)->more - 1))
            cell_of(dict, i)->more = cell_of(dict, 29)->more;
    }
}

static void
damage_more_by_an_entry(SXE_DICT *dict)
{
    for (unsigned i = 0; i < 29; i++) {
        if (sxe__dict_has(dict, sxe__dict_shard(dict, cell_of(dict, 29)->hash),
                          first_of_bucket(dict, i)))
            cell_of(dict, 29)->more = first_of_bucket(dict, i) + 1;
    }
}

static void
damage_value(SXE_DICT *dict)
{
    cell_of(dict, 5)->data[8 + 3] ^= 1;
}

static void
damage_state(SXE_DICT *dict)
{
    cell_of(dict, 5)->died = 1;
}

static void
damage_by_a_lost_entry(SXE_DICT *dict)
{
    *bucket_of(dict, 5) = cell_of(dict, 5)->chain;
}

static void
damage_place(SXE_DICT *dict)
{
    uint32_t *bucket = bucket_of(dict, 5);
    const uint32_t link = *bucket;

    *bucket = 0;
    for (uint32_t i = 0; i <= dict->bucket_mask; i++) {
        uint32_t *other =
            sxe__dict_bucket(dict, sxe__dict_shard(dict, sxe__dict_cell(dict, link - 1)->hash), i);
        if (*other == 0 && other != bucket) {
            *other = link;
            return;
        }
    }
}

static const struct {
    void (*damage)(SXE_DICT *);
    const char *sentence;
} damages[] = {
    {damage_link, "it is not possible"},
    {damage_by_a_circle, "hash"},
    {damage_by_a_circle_of_hashes, "it is met twice"},
    {damage_hash, "its hash is not its key's"},
    {damage_key_size, "it is not possible"},
    {damage_value_size, "it is not possible"},
    {damage_value_size_a_little, "cell"},
    {damage_more, "in no cell of the shard"},
    {damage_more_of_two, "its value"},
    {damage_more_by_an_entry, "not MORE"},
    {damage_value, "not what was written"},
    {damage_state, "in a state that it cannot be in"},
    {damage_by_a_lost_entry, "in chains"},
    {damage_place, "another bucket"},
};

/* Make each kind of call. The dict may contain anything: no call may crash or loop for ever. */
static void
call_everything(SXE_DICT *dict)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    char value[200];
    char key[64];
    SXE_DICT_ENTRY entry = {
        .key = key, .key_room = sizeof(key), .value = value, .value_room = sizeof(value)};
    SXE_DICT_WALKER walker;

    for (unsigned i = 0; i < 30; i++) {
        sxe_dict_get(dict, &i, sizeof(i), value, sizeof(value));
        sxe_dict_compare_and_put(dict, &i, sizeof(i), value, 5 * i, value, i, 0);
        sxe_dict_add(dict, &i, sizeof(i), 5, 0, NULL);
        sxe_dict_touch(dict, &i, sizeof(i));
        sxe_dict_batch_put(batch, &i, sizeof(i), value, i, 0);
        if (i % 3 == 0)
            sxe_dict_batch_remove(batch, &i, sizeof(i));
        if (snapshot != NULL)
            sxe_dict_snapshot_get(snapshot, &i, sizeof(i), value, sizeof(value));
    }
    sxe_dict_walker_construct(&walker, dict);
    for (unsigned i = 0; i < 1000 && sxe_dict_walker_step(&walker, &entry) == 1; i++)
        continue;
    sxe_dict_batch_commit(batch);
    sxe_dict_batch_delete(batch);
    sxe_dict_snapshot_release(snapshot);
    for (unsigned i = 0; i < 300; i++)
        sxe_dict_put(dict, &i, sizeof(i), value, i / 2, i % 4);
    for (unsigned i = 0; i < 300; i++)
        sxe_dict_remove(dict, &i, sizeof(i));
}

START_TEST(damage_is_found_and_no_call_crashes_on_it)
{
    SXE_DICT *dict = open_in(NULL);

    fill(dict);
    check(dict);
    damages[_i].damage(dict);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), -EUCLEAN);
    ck_assert_int_eq(sxe_dict_check(dict, why), -EUCLEAN);
    ck_assert_msg(strstr(why, damages[_i].sentence) != NULL, "%s", why);
    call_everything(dict);
    sxe_dict_close(dict);
}
END_TEST

static unsigned damage_number;

static void
fill_and_damage(SXE_DICT *dict)
{
    fill(dict);
    damages[damage_number].damage(dict);
}

START_TEST(damage_is_repaired_when_that_is_asked_for)
{
    SXE_DICT_SPEC spec = spec_of(path);
    SXE_DICT *dict;

    damage_number = (unsigned)_i;
    do_and_die(fill_and_damage);
    refused(&spec, EUCLEAN, damages[_i].sentence);
    refused(&spec, EUCLEAN, damages[_i].sentence);
    spec.options = SXE_POOL_OPTION_REPAIR;
    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    check(dict);
    ck_assert_uint_ge(count_whole(dict), 10);
    fill(dict);
    ck_assert_uint_eq(count_whole(dict), 30);
    check(dict);
    sxe_dict_close(open_in(path));
    sxe_dict_close(dict);
}
END_TEST

START_TEST(a_repair_without_memory_may_be_tried_again)
{
    SXE_DICT_SPEC spec = spec_of(path);
    SXE_DICT *dict;

    damage_number = 0;
    do_and_die(fill_and_damage);
    spec.options = SXE_POOL_OPTION_REPAIR;
    fake_os_fail(FAKE_CALLOC, 3, 1, ENOMEM);
    refused(&spec, ENOMEM, "cannot be rebuilt");
    fake_os_reset();
    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    check(dict);
    sxe_dict_close(dict);
}
END_TEST

/* ---- Checking ---- */

static unsigned asked, patience;

static bool
is_enough(void)
{
    return ++asked > patience;
}

/* The check asks five times: before the shard, and four times about its 262,144 places. */
START_TEST(a_check_may_be_ended_and_leaves_no_lock)
{
    const SXE_DICT_SPEC spec = {.name = "large", .cells = 140000};
    SXE_DICT *large = sxe_dict_open(&spec, why);

    for (patience = 0; patience < 5; patience++) {
        asked = 0;
        ck_assert_int_eq(sxe_dict_check_until(large, why, is_enough), -ECANCELED);
        ck_assert_uint_eq(large->sharing->shards[0].lock, 0);
    }
    asked = 0;
    ck_assert_int_eq(sxe_dict_check_until(large, why, is_enough), 0);
    sxe_dict_close(large);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-open");
    TCase *tcase = tcase_create("open");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, impossible_numbers_are_refused);
    tcase_add_loop_test(tcase, largest_and_smallest_cells_are_possible, 0, 3);
    tcase_add_test(tcase, file_of_another_shape_is_refused);
    tcase_add_loop_test(tcase, pool_that_is_no_dict_is_refused, 0, 5);
    tcase_add_loop_test(tcase, pool_of_the_shape_of_a_dict_is_refused, 0, 4);
    tcase_add_test(tcase, cells_in_use_without_a_table_are_refused);
    tcase_add_test(tcase, table_of_another_version_is_refused);
    tcase_add_test(tcase, dict_whose_table_another_makes_for_long_is_refused);
    tcase_add_test(tcase, what_the_system_refuses_is_told);
    tcase_add_test(tcase, file_keeps_everything);
    tcase_add_test(tcase, descriptor_is_as_good_as_a_file);
    tcase_add_test(tcase, dict_of_the_dead_that_cannot_be_checked_is_refused);
    tcase_add_test(tcase, dict_of_the_dead_is_checked_and_used);
    tcase_add_test(tcase, table_whose_maker_died_is_made);
    tcase_add_loop_test(tcase, damage_is_found_and_no_call_crashes_on_it, 0,
                        (int)SXE_COUNT(damages));
    tcase_add_test(tcase, a_repair_without_memory_may_be_tried_again);
    tcase_add_loop_test(tcase, damage_is_repaired_when_that_is_asked_for, 0,
                        (int)SXE_COUNT(damages));
    tcase_add_test(tcase, a_check_may_be_ended_and_leaves_no_lock);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
