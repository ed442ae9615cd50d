/* SPDX-License-Identifier: MIT
 *
 * sxe_pool_watch: an element that comes to a state wakes a process that waits for one, and no
 * process sleeps while there is one.
 */
#include "shared-pool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fake-os.h"
#include "stops.h"
#include "test-main.h"

static bool
is_awake(char *array)
{
    struct pollfd polled = {.fd = sxe_pool_get_watch_fd(array), .events = POLLIN};

    ck_assert_int_ge(polled.fd, 0);
    return poll(&polled, 1, 0) == 1;
}

/* Whether the process was woken. It is ready to sleep again afterwards. */
static bool
wakes(char *array)
{
    const bool awake = is_awake(array);

    sxe_pool_watch_read(array);
    ck_assert(!is_awake(array));
    return awake;
}

static void
put(char *array, unsigned id, unsigned old_state, unsigned new_state)
{
    ck_assert_uint_eq(sxe_pool_move(array, id, old_state, new_state), SXE_POOL_LOCK_TAKEN);
}

static void
watch(char *array, unsigned state)
{
    ck_assert_int_eq(sxe_pool_watch(array, state), 0);
}

/* ---- One process that watches ---- */

START_TEST(an_element_that_comes_wakes_who_watches_its_state_once)
{
    char *array = open_shared(_i, 3, 1, 1);

    watch(array, READY);
    watch(array, READY);
    ck_assert(!is_awake(array));
    put(array, 0, FREE, BUSY);
    ck_assert(!is_awake(array));
    put(array, 1, FREE, READY);
    ck_assert(wakes(array));
    put(array, 2, FREE, READY);
    ck_assert(!is_awake(array));
    sxe_pool_delete(array);
}
END_TEST

static unsigned
move_back_by_try(char *array)
{
    unsigned state = READY;

    return sxe_pool_try_move(array, 0, BUSY, &state);
}

static unsigned
move_back_by_take(char *array)
{
    return sxe_pool_take(array, BUSY, READY);
}

static unsigned
move_back_by_exact_take(char *array)
{
    return sxe_pool_take_exact(array, BUSY, READY);
}

static unsigned (*const moves[])(char *array) = {move_back_by_try, move_back_by_take,
                                                 move_back_by_exact_take};

START_TEST(every_way_into_a_state_wakes)
{
    char *array = open_shared(PROCESSES, 4, 1, 4);

    put(array, 0, FREE, BUSY);
    watch(array, READY);
    ck_assert_uint_eq(moves[_i](array), 0);
    ck_assert(wakes(array));
    sxe_pool_delete(array);
}
END_TEST

START_TEST(what_is_there_already_is_said_at_once)
{
    char *array = open_shared(_i, 8, 1, 8);

    put(array, 5, FREE, READY);
    ck_assert_int_eq(sxe_pool_watch(array, READY), 1);
    ck_assert_uint_eq(sharing_of(array)->head->watching, 0);
    /* The count is wrong, as in the middle of a change: sxe_pool_watch must look at the list. */
    sharing_of(array)->nodes[8 + READY * 8 + 5].count = 0;
    ck_assert_int_eq(sxe_pool_watch(array, READY), 1);
    put(array, 5, READY, BUSY);
    put(array, 5, BUSY, READY);
    ck_assert(!is_awake(array));
    sxe_pool_delete(array);
}
END_TEST

START_TEST(states_are_watched_apart)
{
    char *array = open_shared(PROCESSES, 3, 1, 1);

    watch(array, READY);
    watch(array, BUSY);
    put(array, 0, FREE, BUSY);
    ck_assert(wakes(array));
    put(array, 1, FREE, READY);
    ck_assert(wakes(array));
    put(array, 0, BUSY, READY);
    ck_assert(!is_awake(array));
    sxe_pool_delete(array);
}
END_TEST

START_TEST(many_states_are_watched_with_the_last_bit_together)
{
    const SXE_POOL_SPEC spec = {.name = "pond", .number = 3, .element_size = 1, .states = 100};
    char *array = open_pool(&spec);
    char *other = join(array);

    watch(array, 62);
    watch(array, 70);
    watch(other, 99);
    put(array, 0, 0, 63);
    ck_assert(wakes(array) && wakes(other));
    watch(other, 99);
    sxe_pool_unwatch(other, 70);
    put(array, 0, 63, 62);
    ck_assert(wakes(array) && !wakes(other));
    put(array, 0, 62, 99);
    ck_assert(wakes(other) && !wakes(array));
    sxe_pool_delete(other);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(the_descriptor_stays_the_same_and_does_not_block)
{
    char *array = open_shared(PROCESSES, 1, 1, 1);
    const int fd = sxe_pool_get_watch_fd(array);

    ck_assert_int_eq(sxe_pool_get_watch_fd(array), fd);
    watch(array, READY);
    ck_assert_int_eq(sxe_pool_get_watch_fd(array), fd);
    sxe_pool_watch_read(array);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    sxe_pool_delete(array);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
}
END_TEST

START_TEST(a_pool_of_one_thread_has_nobody_to_tell)
{
    char *array = open_footing(ONE_THREAD, 1, 1);

    ck_assert_int_eq(sxe_pool_get_watch_fd(array), -EINVAL);
    ck_assert_int_eq(sxe_pool_watch(array, READY), -EINVAL);
    sxe_pool_watch_read(array);
    sxe_pool_unwatch(array, READY);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Two users of a pool of three elements ---- */

static char *mine;
static char *theirs;

static void
open_two(void)
{
    mine = open_shared(PROCESSES, 3, 1, 1);
    theirs = join(mine);
}

static void
close_two(void)
{
    sxe_pool_delete(theirs);
    sxe_pool_delete(mine);
}

START_TEST(two_elements_wake_two)
{
    watch(mine, READY);
    watch(theirs, READY);
    put(mine, 0, FREE, READY);
    put(mine, 1, FREE, READY);
    put(mine, 2, FREE, READY);
    ck_assert(wakes(mine) && wakes(theirs));
}
END_TEST

START_TEST(who_does_not_wait_any_more_passes_its_wake_on)
{
    watch(mine, READY);
    put(theirs, 0, FREE, READY);
    watch(mine, BUSY);
    put(theirs, 0, READY, FREE);
    watch(theirs, READY);
    put(mine, 0, FREE, READY);
    watch(theirs, BUSY);
    sxe_pool_unwatch(theirs, READY);
    sxe_pool_unwatch(mine, READY);
    ck_assert(wakes(mine) && wakes(theirs));
    put(mine, 0, READY, FREE);
    watch(mine, READY);
    watch(theirs, READY);
    put(mine, 0, FREE, READY);
    const bool first = is_awake(mine);
    sxe_pool_unwatch(first ? mine : theirs, READY);
    ck_assert(wakes(mine) && wakes(theirs));
}
END_TEST

START_TEST(an_overfull_socket_belongs_to_someone_awake)
{
    watch(mine, READY);
    watch(theirs, READY);
    fake_os_fail(FAKE_SENDTO, 1, 2, EAGAIN); /* both the pool's socket and a new one fail */
    put(mine, 0, FREE, READY);
    ck_assert(!is_awake(mine) && !is_awake(theirs));
    fake_os_fail(FAKE_SENDTO, 1, 1, ENOBUFS);
    watch(mine, BUSY);
    watch(theirs, BUSY);
    put(mine, 1, FREE, BUSY);
    ck_assert(wakes(mine) != wakes(theirs));
}
END_TEST

START_TEST(without_a_socket_nobody_is_told_and_nothing_else_is_wrong)
{
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    ck_assert_int_eq(sxe_pool_watch(theirs, READY), -EMFILE);
    watch(theirs, READY);
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    put(mine, 0, FREE, READY);
    ck_assert_uint_eq(fake_os_injected(), 2);
    ck_assert(!is_awake(theirs));
    put(mine, 1, FREE, READY);
    ck_assert(wakes(theirs));
}
END_TEST

/* ---- Several processes that watch ---- */

START_TEST(one_of_those_who_watch_is_woken_for_each_element_in_turn)
{
    char *array = open_shared(PROCESSES, 6, 1, 1);
    char *others[] = {join(array), join(array), join(array)};
    unsigned woken[3] = {0};

    for (unsigned i = 0; i < 6; i++) {
        for (unsigned j = 0; j < 3; j++)
            watch(others[j], READY);
        put(array, 0, FREE, READY);
        put(array, 0, READY, FREE);
        unsigned at_once = 0;
        for (unsigned j = 0; j < 3; j++) {
            const bool awake = wakes(others[j]);
            at_once += awake;
            woken[j] += awake;
        }
        ck_assert_uint_eq(at_once, 1);
    }
    for (unsigned j = 0; j < 3; j++) {
        ck_assert_uint_eq(woken[j], 2);
        sxe_pool_delete(others[j]);
    }
    sxe_pool_delete(array);
}
END_TEST

START_TEST(who_does_not_wait_is_not_woken)
{
    char *array = open_shared(PROCESSES, 3, 1, 1);

    watch(array, READY);
    sxe_pool_unwatch(array, READY);
    put(array, 0, FREE, READY);
    ck_assert(!is_awake(array));
    ck_assert_uint_eq(sharing_of(array)->head->watching, 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(the_dead_are_passed_by)
{
    char *array = open_shared(PROCESSES, 3, 1, 1);
    const pid_t child = fork();

    if (child == 0) {
        watch(join(array), READY);
        raise(SIGKILL);
    }
    end_child(child, SIGKILL);
    watch(array, READY);
    /* The wake may go first to this process, or to the dead one. */
    for (unsigned i = 0; i < 2; i++) {
        put(array, i, FREE, READY);
        ck_assert(i > 0 || wakes(array));
    }
    ck_assert_uint_eq(sharing_of(array)->head->watching, 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_child_of_fork_watches_for_itself)
{
    char *array = open_shared(PROCESSES, 3, 1, 1);

    watch(array, BUSY);
    const pid_t child = fork();
    if (child == 0) {
        sxe_pool_unwatch(array, BUSY);
        if (sxe_pool_watch(array, READY) != 0)
            _exit(1);
        put(array, 0, FREE, READY);
        _exit(wakes(array) ? 0 : 2);
    }
    end_child(child, 0);
    ck_assert(!is_awake(array));
    put(array, 1, FREE, BUSY);
    ck_assert(wakes(array));
    sxe_pool_delete(array);
}
END_TEST

enum { ROUNDS = 100000 };

/* Wait for an element and take it. A wake that is lost shows as a timeout of poll. */
static void
take_when_told(char *array, unsigned old_state, unsigned new_state)
{
    struct pollfd polled = {.fd = sxe_pool_get_watch_fd(array), .events = POLLIN};

    for (;;) {
        const unsigned id = sxe_pool_take(array, old_state, new_state);

        if (id < sxe_pool_get_number(array))
            return;
        const int watched = sxe_pool_watch(array, old_state);
        if (watched == 0 && poll(&polled, 1, 600000) != 1)
            _exit(3);
        if (watched == 0)
            sxe_pool_watch_read(array);
    }
}

START_TEST(of_a_hundred_thousand_wakes_there_and_back_none_is_lost)
{
    char *array = open_shared(PROCESSES, 2, 1, _i == 0 ? 1 : 2);
    const pid_t child = fork();

    if (child == 0) {
        char *other = join(array);
        for (unsigned i = 0; i < ROUNDS; i++)
            take_when_told(other, READY, BUSY);
        _exit(0);
    }
    put(array, 0, FREE, READY);
    for (unsigned i = 1; i < ROUNDS; i++)
        take_when_told(array, BUSY, READY);
    end_child(child, 0);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Failures ---- */

START_TEST(a_name_that_is_taken_is_refused_and_nothing_is_watched)
{
    char *array = open_shared(PROCESSES, 3, 1, 1);

    fake_os_fail(FAKE_BIND, 1, 1, EADDRINUSE);
    ck_assert_int_eq(sxe_pool_watch(array, READY), -EADDRINUSE);
    ck_assert_uint_eq(sharing_of(array)->head->watching, 0);
    fake_os_fail(FAKE_BIND, 1, 1, EINVAL); /* another thread seems to have bound the name first */
    watch(array, READY);
    sxe_pool_delete(array);
}
END_TEST

/* A child of fork that found no free slot is no user of the pool. */
START_TEST(who_is_no_user_cannot_watch)
{
    char *array = open_shared(PROCESSES, 3, 1, 1);
    const uint32_t token = sharing_of(array)->token;

    sharing_of(array)->token = 0;
    fake_os_fail(FAKE_FCNTL, 1, 1, EAGAIN);
    ck_assert_int_eq(sxe_pool_watch(array, READY), -EAGAIN);
    sxe_pool_unwatch(array, READY);
    sharing_of(array)->token = token;
    watch(array, READY);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_lock_that_is_taken_says_try_again)
{
    char *array = open_shared(PROCESSES, 4, 1, 4);
    char *other = join(array);

    sharing_of(array)->shards[2].lock = sharing_of(other)->token;
    ck_assert_int_eq(sxe_pool_watch(array, READY), -EAGAIN);
    sharing_of(array)->shards[2].lock = 0;
    put(array, 0, FREE, READY);
    ck_assert(!is_awake(array));
    sxe_pool_delete(other);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_damaged_pool_says_so)
{
    char *array = open_shared(PROCESSES, 4, 1, 1);
    struct sxe__pool_shard *shard = sharing_of(array)->shards;

    shard->lock = dead_token(array);
    shard->intent.id = 4;
    shard->intent.stamp = UINT64_MAX;
    capture_log();
    ck_assert_int_eq(sxe_pool_watch(array, READY), -EUCLEAN);
    check_has(log_line(0), "pool pond is damaged");
    sxe_pool_delete(array);
}
END_TEST

/* A process that is not a user reads the socket's name in /proc/net/unix and sends to it. */
START_TEST(strangers_wake_us_in_vain_and_hold_nothing_up)
{
    char *array = open_shared(PROCESSES, 4, 1, 1);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;
    socklen_t length = sizeof(address);

    ck_assert_int_eq(
        getsockname(sxe_pool_get_watch_fd(array), (struct sockaddr *)&address, &length), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_ge(sendto(fd, "much too long", i * 6, 0, (struct sockaddr *)&address, length),
                         0);
    ck_assert(wakes(array));
    watch(array, READY);
    put(array, 0, FREE, READY);
    ck_assert(wakes(array));
    close(fd);
    sxe_pool_delete(array);
}
END_TEST

static void
watch_no_state(void *array)
{
    sxe_pool_watch(array, STATES);
}

static void
unwatch_no_state(void *array)
{
    sxe_pool_unwatch(array, STATES);
}

START_TEST(a_state_that_is_not_there_stops_with_a_message)
{
    char *array = open_shared(PROCESSES, 1, 1, 1);

    check_has(message_of(_i == 0 ? watch_no_state : unwatch_no_state, array),
              "pool pond has no state 3, only 3\n");
    sxe_pool_delete(array);
}
END_TEST

static TCase *
one(void)
{
    TCase *tcase = tcase_create("one");

    tcase_add_loop_test(tcase, an_element_that_comes_wakes_who_watches_its_state_once, THREADS,
                        FOOTINGS);
    tcase_add_loop_test(tcase, every_way_into_a_state_wakes, 0, LENGTH_OF(moves));
    tcase_add_loop_test(tcase, what_is_there_already_is_said_at_once, THREADS, FOOTINGS);
    tcase_add_test(tcase, states_are_watched_apart);
    tcase_add_test(tcase, many_states_are_watched_with_the_last_bit_together);
    tcase_add_test(tcase, the_descriptor_stays_the_same_and_does_not_block);
    tcase_add_test(tcase, a_pool_of_one_thread_has_nobody_to_tell);
    return tcase;
}

static TCase *
two(void)
{
    TCase *tcase = tcase_create("two");

    tcase_add_checked_fixture(tcase, open_two, close_two);
    tcase_add_test(tcase, two_elements_wake_two);
    tcase_add_test(tcase, who_does_not_wait_any_more_passes_its_wake_on);
    tcase_add_test(tcase, an_overfull_socket_belongs_to_someone_awake);
    tcase_add_test(tcase, without_a_socket_nobody_is_told_and_nothing_else_is_wrong);
    return tcase;
}

static TCase *
several(void)
{
    TCase *tcase = tcase_create("several");

    tcase_add_test(tcase, one_of_those_who_watch_is_woken_for_each_element_in_turn);
    tcase_add_test(tcase, who_does_not_wait_is_not_woken);
    tcase_add_test(tcase, the_dead_are_passed_by);
    tcase_add_test(tcase, a_child_of_fork_watches_for_itself);
    tcase_add_loop_test(tcase, of_a_hundred_thousand_wakes_there_and_back_none_is_lost, 0, 2);
    return tcase;
}

static TCase *
faults(void)
{
    TCase *tcase = tcase_create("faults");

    tcase_add_test(tcase, a_name_that_is_taken_is_refused_and_nothing_is_watched);
    tcase_add_test(tcase, who_is_no_user_cannot_watch);
    tcase_add_test(tcase, a_lock_that_is_taken_says_try_again);
    tcase_add_test(tcase, a_damaged_pool_says_so);
    tcase_add_test(tcase, strangers_wake_us_in_vain_and_hold_nothing_up);
    tcase_add_loop_test(tcase, a_state_that_is_not_there_stops_with_a_message, 0, 2);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("pool-watch");

    suite_add_tcase(suite, one());
    suite_add_tcase(suite, two());
    suite_add_tcase(suite, several());
    suite_add_tcase(suite, faults());
    return sxe_test_main(suite);
}
