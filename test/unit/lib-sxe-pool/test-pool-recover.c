/* SPDX-License-Identifier: MIT
 *
 * Damaged pools, and pools that were in the middle of a change when all their users, or the
 * machine, stopped.
 */
#include "pool-file.h"

#include "capture-log.h"
#include "fake-time.h"
#include "leaks.h"
#include "test-main.h"

static const SXE_POOL_SPEC whatever = {.file = file_path};
static const SXE_POOL_SPEC repaired = {.file = file_path, .options = SXE_POOL_OPTION_REPAIR};

static void
begin(void)
{
    begin_with_no_file();
    note_what_is_open();
    capture_log();
    sxe_log_set_level(SXE_LOG_WARNING);
}

static void
end(void)
{
    remove_the_file();
    check_that_nothing_is_left();
}

/* ---- Damage ---- */

static void
circle(void)
{
    image_node(5)->next = 4;
}

static void
circle_of_one(void)
{
    image_node(5)->next = 5;
    image_node(5)->prev = 5;
}

static void
link_astray(void)
{
    image_node(30)->prev = UINT32_MAX;
}

static void
wrong_count(void)
{
    image_node(64)->count++;
}

static void
impossible_state(void)
{
    image_node(63)->state = STATES;
}

static void
other_shard(void)
{
    image_node(0)->next = 4;
}

static void
impossible_intent(void)
{
    image_shard(1)->intent = (struct sxe__pool_intent){.stamp = UINT64_MAX, .id = 64};
}

static void (*const damages[])(void) = {circle,           circle_of_one,    link_astray,
                                        wrong_count,      impossible_state, other_shard,
                                        impossible_intent};

START_TEST(a_damaged_pool_is_refused_or_repaired)
{
    make_image();
    damages[_i]();
    store_image(image_size);
    expect_refused(&whatever, EUCLEAN, "have it repaired");
    why[0] = '\0';
    char *array = sxe_pool_open(&repaired, why);
    ck_assert_msg(array != NULL, "%s", why);
    expect_why("its lists were rebuilt");
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_REBUILT);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE) + sxe_pool_get_count(array, READY) +
                          sxe_pool_get_count(array, BUSY),
                      64);
    ck_assert_uint_eq(sxe_pool_get_count(array, READY), 10);
    use_all(array);
    sxe_pool_delete(array);
    expect_found(&repaired, SXE_POOL_CLOSED);
}
END_TEST

START_TEST(a_pool_found_damaged_in_use_is_not_joined)
{
    const SXE_POOL_SPEC spec = file_spec();
    char *array = open_pool(&spec);

    ck_assert_uint_eq(sxe__pool_damaged(sxe__pool_header(array)), SXE_POOL_DAMAGED);
    expect_refused(&spec, EUCLEAN, "it is damaged, and in use: close it in every program");
    expect_refused(&repaired, EUCLEAN, "it is damaged, and in use");
    sxe_pool_delete(array);
    expect_found(&spec, SXE_POOL_CLOSED);
    array = open_pool(&spec);
    sxe_pool_delete(open_pool(&spec));
    sxe_pool_delete(array);
}
END_TEST

/* ---- All users were killed ---- */

START_TEST(what_the_dead_had_begun_is_complete)
{
    make_image();
    image.head.closed = 0;
    image.head.timeouts = 128;
    image.head.slots[3] = (struct sxe__pool_slot){.generation = 7, .process = 1, .watched = 7};
    struct sxe__pool_shard *shard = image_shard(0);
    /* The dead process moved element 1 to BUSY, and has changed the first of its links. */
    const unsigned id = 1;
    const struct sxe__pool_node node = *image_node(id);
    const unsigned from = 64 + node.state * 2;
    const unsigned to = 64 + BUSY * 2;
    shard->lock = 3u << SXE__POOL_SLOT_BITS | 5;
    shard->intent = (struct sxe__pool_intent){
        .id = id,
        .prev = node.prev,
        .next = node.next,
        .tail = image_node(to)->prev,
        .old_state = node.state,
        .new_state = BUSY,
        .from_count = image_node(from)->count - 1,
        .to_count = image_node(to)->count + 1,
        .generation = node.generation,
        .stamp = shard->last_stamp + 1,
    };
    image_node(node.prev)->next = node.next;
    store_image(image_size);
    char *array = open_pool(&whatever);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_COMPLETED);
    ck_assert_uint_eq(sxe_pool_get_state(array, id), BUSY);
    ck_assert_uint_eq(sxe_pool_get_count(array, BUSY), 11);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    ck_assert_int_eq(sxe_pool_get_user(array, 3), 0);
    ck_assert_uint_eq(sharing_of(array)->head->timeouts, 0);
    ck_assert_uint_eq(sharing_of(array)->head->slots[3].watched, 0);
    use_all(array);
    sxe_pool_delete(array);
}
END_TEST

/* ---- The machine was restarted ---- */

#define HOUR_NS (3600 * SXE_NS_PER_SECOND)
#define WALL_NS (UINT64_C(1790000000) * SXE_NS_PER_SECOND)

/* Make a pool whose element 0 came to READY at hour 100 of the monotonic clock; close it an hour
 * later. Then the machine restarts: the monotonic clock is at one hour, and the wall clock has gone
 * on by `passed_ns`. */
static void
restart_after(int64_t passed_ns)
{
    const SXE_POOL_SPEC spec = file_spec();

    fake_time_start(100 * HOUR_NS, WALL_NS);
    char *array = open_pool(&spec);
    ck_assert_uint_eq(sxe_pool_move(array, 0, FREE, READY), SXE_POOL_LOCK_TAKEN);
    fake_time_advance(HOUR_NS);
    sxe_pool_delete(array);
    load_image();
    image.head.boot[0] ^= 1;
    store_image(image_size);
    fake_time_start(HOUR_NS, WALL_NS + HOUR_NS + (uint64_t)passed_ns);
}

static uint64_t
age_of_0(const char *array)
{
    return sxe_pool_get_now(array) - sxe_pool_get_time(array, 0);
}

/* The age of element 0 is `ns`, less a few ns by which its stamp was made unique. */
#define CHECK_AGE(array, ns)                          \
    do {                                              \
        ck_assert_uint_ge(age_of_0(array) + 100, ns); \
        ck_assert_uint_le(age_of_0(array), ns);       \
    } while (0)

START_TEST(time_goes_on_over_a_restart_as_the_wall_clock_did)
{
    restart_after(2 * (int64_t)HOUR_NS);
    char *array = open_pool(&whatever);
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_CLOSED);
    CHECK_AGE(array, 3 * HOUR_NS);
    fake_time_advance(HOUR_NS);
    CHECK_AGE(array, 4 * HOUR_NS);
    ck_assert_uint_eq(sxe_pool_move(array, 1, FREE, READY), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_time(array, 1), sxe_pool_get_now(array));
    char *other = join(array);
    CHECK_AGE(other, 4 * HOUR_NS);
    sxe_pool_delete(other);
    sxe_pool_delete(array);
    array = open_pool(&whatever);
    CHECK_AGE(array, 4 * HOUR_NS);
    sxe_pool_delete(array);
    fake_time_stop();
}
END_TEST

START_TEST(a_clock_that_was_ahead_holds_up_time_outs_no_longer_than_its_users)
{
    const SXE_POOL_SPEC spec = file_spec();
    uint64_t now;

    fake_time_start(HOUR_NS, WALL_NS);
    char *array = open_pool(&spec);
    sxe_time_set_turn_ns(UINT64_MAX);
    for (unsigned id = 0; id < 3; id++)
        ck_assert_uint_eq(sxe_pool_move(array, id, FREE, READY), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_time(array, 0), SXE_TIME_TURN_MAX);
    sxe_time_set_turn_ns(0);
    ck_assert_int_eq(sxe_pool_check(array, NULL), 0);
    sxe_pool_delete(array);
    array = open_pool(&whatever);
    now = sxe_pool_get_now(array);
    ck_assert_uint_ge(now, SXE_TIME_TURN_MAX);
    ck_assert_uint_le(age_of_0(array), 100);
    fake_time_advance(HOUR_NS);
    CHECK_AGE(array, HOUR_NS + 3);
    ck_assert_int_eq(sxe_pool_check(array, NULL), 0);
    sxe_pool_delete(array);
    fake_time_stop();
}
END_TEST

START_TEST(the_clock_of_a_time_namespace_is_taken_off)
{
    ck_assert_uint_eq(sxe__pool_parse_namespace("monotonic           0         0\n"), 0);
    ck_assert_uint_eq(sxe__pool_parse_namespace("monotonic    86400  12\nboottime 1 2\n"),
                      86400 * SXE_NS_PER_SECOND + 12);
    ck_assert_uint_eq(sxe__pool_parse_namespace("monotonic -1 999999999\n") + 1, 0);
    ck_assert_uint_eq(sxe__pool_parse_namespace(""), 0);
    fake_os_fail(FAKE_READ, 1, 1, EIO);
    ck_assert_uint_eq(sxe__pool_namespace_ns(), 0);
    fake_os_reset();
}
END_TEST

START_TEST(time_does_not_go_back_with_the_wall_clock)
{
    restart_after(-30 * (int64_t)HOUR_NS);
    char *array = open_pool(&whatever);
    ck_assert_uint_le(age_of_0(array), 100);
    fake_time_advance(HOUR_NS);
    ck_assert_uint_ge(age_of_0(array), HOUR_NS);
    sxe_pool_delete(array);
    fake_time_stop();
}
END_TEST

START_TEST(a_wall_clock_that_is_decades_on_is_not_believed)
{
    restart_after(60 * 365 * 24 * (int64_t)HOUR_NS);
    char *array = open_pool(&whatever);
    ck_assert_uint_lt(age_of_0(array), HOUR_NS);
    sxe_pool_delete(array);
    fake_time_stop();
}
END_TEST

START_TEST(a_pool_in_use_when_the_machine_stopped_is_refused_or_rebuilt)
{
    restart_after((int64_t)HOUR_NS);
    image.head.closed = 0;
    store_image(image_size);
    expect_refused(&whatever, EUCLEAN, "the machine stopped while it was in use");
    load_image();
    ck_assert_uint_eq(image.head.closed, 0);
    char *array = sxe_pool_open(&repaired, why);
    expect_why("the machine stopped while it was in use");
    expect_why("0 elements lost their state");
    ck_assert_int_eq(sxe_pool_get_found(array), SXE_POOL_REBUILT);
    CHECK_AGE(array, 2 * HOUR_NS);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    ck_assert_uint_eq(sxe_pool_get_state(array, 0), READY);
    sxe_pool_delete(array);
    fake_time_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-recover");
    TCase *left = tcase_create("left");

    tcase_add_checked_fixture(left, begin, end);
    tcase_add_loop_test(left, a_damaged_pool_is_refused_or_repaired, 0, LENGTH_OF(damages));
    tcase_add_test(left, a_pool_found_damaged_in_use_is_not_joined);
    tcase_add_test(left, what_the_dead_had_begun_is_complete);
    tcase_add_test(left, time_goes_on_over_a_restart_as_the_wall_clock_did);
    tcase_add_test(left, a_clock_that_was_ahead_holds_up_time_outs_no_longer_than_its_users);
    tcase_add_test(left, the_clock_of_a_time_namespace_is_taken_off);
    tcase_add_test(left, time_does_not_go_back_with_the_wall_clock);
    tcase_add_test(left, a_wall_clock_that_is_decades_on_is_not_believed);
    tcase_add_test(left, a_pool_in_use_when_the_machine_stopped_is_refused_or_rebuilt);
    suite_add_tcase(s, left);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
