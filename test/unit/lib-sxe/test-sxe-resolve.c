/* SPDX-License-Identifier: MIT
 *
 * Addresses of names: getaddrinfo is the test's own, which counts, and rests at the gate if it is
 * told to.
 */
#include "jobs.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-resolve.h"
#include "test-main.h"

#define MANY (SXE_RESOLVE_NAMES_MAX + 1)

static struct sxe_resolve look_ups[MANY];
static atomic_bool is_gated;
static atomic_uint asked;
static atomic_uint asking;
static atomic_uint asking_most;

/* "bad" has no address, "three" has three of IPv4, "many" has 20, "both" has 10 of IPv6 and then
 * two of IPv4, "odd" one that cannot be printed and then a good one, others have 127.0.0.1. */
int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    bool is_both = strcmp(name, "both") == 0;
    unsigned number = strcmp(name, "many") == 0    ? 20
                      : is_both                    ? 12
                      : strcmp(name, "three") == 0 ? 3
                                                   : 1;
    unsigned odd = strcmp(name, "odd") == 0;

    SXE_UNUSED_PARAMETER(service);
    SXE_UNUSED_PARAMETER(hints);
    asked++;
    if (++asking > asking_most)
        asking_most = asking;
    if (is_gated) {
        sem_post(&arrived);
        sem_wait(&gate);
    }
    asking--;
    if (strcmp(name, "bad") == 0)
        return EAI_NONAME;
    for (unsigned i = number + odd; i-- > 0;) {
        struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in6));
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)(info + 1);
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)(info + 1);

        in->sin_family = i == 0 && odd ? AF_UNSPEC : AF_INET;
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
        info->ai_addr = (struct sockaddr *)in;
        info->ai_addrlen = sizeof(*in);
        if (is_both && i < 10) {
            *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
            in6->sin6_addr.s6_addr[15] = (uint8_t)(i + 1);
            info->ai_addrlen = sizeof(*in6);
        }
        info->ai_next = *list;
        *list = info;
    }
    return 0;
}

void
freeaddrinfo(struct addrinfo *list)
{
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;

        free(list);
        list = next;
    }
}

static void
push_resolved(struct sxe_resolve *look_up)
{
    event_push("resolved", look_up, look_up->result.error);
}

static void
start_resolver(void)
{
    sem_init(&gate, 0, 0);
    sem_init(&arrived, 0, 0);
    for (unsigned i = 0; i < MANY; i++)
        look_ups[i].done = push_resolved;
    fake_time_start(SXE_NS_PER_SECOND, 0);
    ck_assert_int_eq(sxe_resolve_register(), 0);
    ck_assert_int_eq(sxe_resolve_register(), 0);
    plan_start(SOCKETS);
}

static void
stop_resolver(void)
{
    plan_stop();
    fake_time_stop();
}

static int
look_up(unsigned i, const char *host)
{
    return sxe_resolve(&look_ups[i], host, AF_UNSPEC);
}

/* The clock stands still while threads run, so turns of the loop do not wait for them. */
static void
await_event(void)
{
    while (event_count() == 0) {
        turn(1);
        sched_yield();
    }
}

static void
expect_resolved(unsigned i, int error)
{
    await_event();
    EXPECT("resolved", &look_ups[i], error);
}

static void
open_gate(unsigned number)
{
    is_gated = false;
    while (number-- > 0)
        sem_post(&gate);
}

/* ---- Asking ---- */

START_TEST(a_name_is_asked_for_in_a_thread)
{
    start_resolver();
    ck_assert_int_eq(look_up(0, "three"), 0);
    ck_assert_int_eq(look_up(0, "three"), -EBUSY);
    ck_assert_uint_eq(event_count(), 0);
    expect_resolved(0, 0);
    ck_assert_uint_eq(look_ups[0].result.number, 3);
    ck_assert_str_eq(look_ups[0].result.ip[0], "127.0.0.1");
    ck_assert_str_eq(look_ups[0].result.ip[2], "127.0.0.3");
    ck_assert_int_eq(look_up(1, "many"), 0);
    expect_resolved(1, 0);
    ck_assert_uint_eq(look_ups[1].result.number, SXE_RESOLVE_ADDRESSES_MAX);
    ck_assert_int_eq(look_up(2, "odd"), 0);
    expect_resolved(2, 0);
    ck_assert_uint_eq(look_ups[2].result.number, 1);
    ck_assert_str_eq(look_ups[2].result.ip[0], "127.0.0.2");
    stop_resolver();
}
END_TEST

START_TEST(families_take_turns)
{
    static const char *const expected[SXE_RESOLVE_ADDRESSES_MAX] = {
        "::1", "127.0.0.11", "::2", "127.0.0.12", "::3", "::4", "::5", "::6"};

    start_resolver();
    ck_assert_int_eq(look_up(0, "both"), 0);
    expect_resolved(0, 0);
    ck_assert_uint_eq(look_ups[0].result.number, SXE_RESOLVE_ADDRESSES_MAX);
    for (unsigned i = 0; i < SXE_RESOLVE_ADDRESSES_MAX; i++)
        ck_assert_str_eq(look_ups[0].result.ip[i], expected[i]);
    stop_resolver();
}
END_TEST

START_TEST(an_address_is_known_and_nobody_is_asked)
{
    static const char *const addresses[] = {"127.0.0.9", "::1", "2001:db8::1"};

    start_resolver();
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(look_up(i, addresses[i]), 1);
        ck_assert_int_eq(look_ups[i].result.error, 0);
        ck_assert_uint_eq(look_ups[i].result.number, 1);
        ck_assert_str_eq(look_ups[i].result.ip[0], addresses[i]);
    }
    ck_assert_int_eq(sxe_resolve(&look_ups[0], "::1", AF_INET6), 1);
    ck_assert_uint_eq(asked, 0);
    ck_assert_int_eq(sxe_resolve(&look_ups[0], "::1", AF_INET), 0);
    expect_resolved(0, 0);
    ck_assert_int_eq(look_up(0, SXE_IP_ADDR_ANY), 0);
    ck_assert_int_eq(look_up(1, ""), 0);
    await_event();
    event_pop();
    await_event();
    event_pop();
    ck_assert_uint_eq(asked, 3);
    stop_resolver();
}
END_TEST

START_TEST(equal_look_ups_are_one)
{
    start_resolver();
    is_gated = true;
    ck_assert_int_eq(look_up(0, "a.example"), 0);
    sem_wait(&arrived);
    for (unsigned i = 1; i < 100; i++)
        ck_assert_int_eq(look_up(i, i % 2 == 0 ? "a.example" : "A.Example"), 0);
    ck_assert_int_eq(sxe_resolve(&look_ups[100], "a.example", AF_INET), 0);
    sem_wait(&arrived);
    open_gate(2);
    for (unsigned i = 0; i < 101; i++) {
        await_event();
        ck_assert_str_eq(event_pop()->name, "resolved");
    }
    for (unsigned i = 0; i < 101; i++)
        ck_assert_str_eq(look_ups[i].result.ip[0], "127.0.0.1");
    ck_assert_uint_eq(asked, 2);
    stop_resolver();
}
END_TEST

/* ---- Knowing ---- */

START_TEST(answers_are_known_for_five_seconds_and_errors_for_one)
{
    const char *host = _i == 0 ? "a.example" : "bad";
    int error = _i == 0 ? 0 : EAI_NONAME;
    uint64_t known_ns = (_i == 0 ? SXE_RESOLVE_KNOWN_S : SXE_RESOLVE_FAILED_S) * SXE_NS_PER_SECOND;

    start_resolver();
    ck_assert_int_eq(look_up(0, host), 0);
    expect_resolved(0, error);
    fake_time_advance(known_ns / 2);
    turn(1);
    ck_assert_int_eq(look_up(1, host), 1);
    ck_assert_int_eq(look_ups[1].result.error, error);
    ck_assert_uint_eq(asked, 1);
    fake_time_advance(known_ns);
    turn(1);
    ck_assert_int_eq(look_up(1, host), 0);
    expect_resolved(1, error);
    ck_assert_uint_eq(asked, 2);
    stop_resolver();
}
END_TEST

static void
look_up_again(struct sxe_resolve *look_up)
{
    push_resolved(look_up);
    ck_assert_int_eq(sxe_resolve(&look_ups[8], "a.example", AF_UNSPEC), 1);
    ck_assert_int_eq(sxe_resolve(&look_ups[9], "b.example", AF_UNSPEC), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[1]), 0);
}

START_TEST(done_may_look_up_and_cancel)
{
    start_resolver();
    is_gated = true;
    look_ups[0].done = look_up_again;
    ck_assert_int_eq(look_up(0, "a.example"), 0);
    ck_assert_int_eq(look_up(1, "a.example"), 0);
    sem_wait(&arrived);
    open_gate(1);
    expect_resolved(0, 0);
    expect_resolved(9, 0);
    EXPECT_NOTHING();
    stop_resolver();
}
END_TEST

/* ---- Cancelling ---- */

START_TEST(a_look_up_can_be_cancelled_wherever_it_is)
{
    start_resolver();
    is_gated = true;
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[0]), -EALREADY);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(look_up(i, "a.example"), 0);
    sem_wait(&arrived);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[1]), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[1]), -EALREADY);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[3]), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[0]), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[2]), 0);
    open_gate(1);
    EXPECT_NOTHING();
    /* The answer that the thread found is kept, although its look-up was cancelled. */
    while (look_up(0, "a.example") == 0) {
        ck_assert_int_eq(sxe_resolve_cancel(&look_ups[0]), 0);
        turn(1);
    }
    ck_assert_uint_eq(asked, 1);
    stop_resolver();
}
END_TEST

START_TEST(a_name_that_no_thread_asks_yet_is_free_when_it_is_cancelled)
{
    char host[16];

    start_resolver();
    is_gated = true;
    for (unsigned i = 0; i < SXE_RESOLVE_THREADS; i++) {
        snprintf(host, sizeof(host), "%u.example", i);
        ck_assert_int_eq(look_up(i, host), 0);
        sem_wait(&arrived);
    }
    ck_assert_int_eq(look_up(100, "waits.example"), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[100]), 0);
    open_gate(SXE_RESOLVE_THREADS);
    for (unsigned i = 0; i < SXE_RESOLVE_THREADS; i++) {
        await_event();
        event_pop();
    }
    EXPECT_NOTHING();
    ck_assert_uint_eq(asked, SXE_RESOLVE_THREADS);
    stop_resolver();
}
END_TEST

/* ---- Limits ---- */

START_TEST(names_have_threads_of_their_own)
{
    sxe_work_register(1);
    start_resolver();
    is_gated = true;
    for (unsigned i = 0; i < 100; i++) {
        char host[16];

        snprintf(host, sizeof(host), "%u.example", i);
        ck_assert_int_eq(look_up(i, host), 0);
    }
    for (unsigned i = 0; i < SXE_RESOLVE_THREADS; i++)
        sem_wait(&arrived);
    submit_range(0, 50, look_around);
    for (unsigned i = 0; i < 50; i++) {
        await_event();
        EXPECT_DONE(i);
    }
    ck_assert_uint_eq(asking_most, SXE_RESOLVE_THREADS);
    open_gate(100);
    for (unsigned i = 0; i < 100; i++) {
        await_event();
        ck_assert_str_eq(event_pop()->name, "resolved");
    }
    stop_resolver();
}
END_TEST

static void
name_of(char host[16], unsigned i)
{
    snprintf(host, 16, "%u.example", i);
}

START_TEST(the_table_has_room_for_a_number_of_names)
{
    char host[16];

    start_resolver();
    is_gated = true;
    for (unsigned i = 0; i < SXE_RESOLVE_NAMES_MAX; i++) {
        name_of(host, i);
        ck_assert_int_eq(look_up(i, host), 0);
    }
    ck_assert_int_eq(look_up(SXE_RESOLVE_NAMES_MAX, "other.example"), -EAGAIN);
    ck_assert_int_eq(look_up(SXE_RESOLVE_NAMES_MAX, "0.example"), 0);
    open_gate(SXE_RESOLVE_NAMES_MAX);
    for (unsigned i = 0; i < SXE_RESOLVE_NAMES_MAX + 1; i++) {
        await_event();
        event_pop();
    }
    /* The table drops a name that is known, to make room for this one. */
    ck_assert_int_eq(look_up(0, "other.example"), 0);
    expect_resolved(0, 0);
    ck_assert_int_eq(look_up(0, "other.example"), 1);
    stop_resolver();
}
END_TEST

START_TEST(some_look_ups_are_refused)
{
    char host[SXE_RESOLVE_HOST_MAX + 2];

    ck_assert_int_eq(look_up(0, "::1"), -EINVAL);
    ck_assert_int_eq(sxe_resolve_register(), 0);
    ck_assert_int_eq(look_up(0, "before.example"), -EINVAL);
    ck_assert_int_eq(sxe_fini(), -EINVAL);
    ck_assert_int_eq(sxe_fini(), -EINVAL);
    ck_assert_int_eq(look_up(0, "::1"), -EINVAL);
    start_resolver();
    memset(host, 'a', sizeof(host));
    host[SXE_RESOLVE_HOST_MAX + 1] = '\0';
    ck_assert_int_eq(look_up(0, host), -ENAMETOOLONG);
    host[SXE_RESOLVE_HOST_MAX] = '\0';
    ck_assert_int_eq(look_up(0, host), 0);
    expect_resolved(0, 0);
    stop_resolver();
}
END_TEST

START_TEST(a_program_that_was_started_without_threads_knows_addresses_alone)
{
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_resolve_register(), 0);
    ck_assert_int_eq(look_up(0, "::1"), 1);
    ck_assert_int_eq(look_up(0, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

START_TEST(without_memory_there_is_no_table)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};

    fake_os_sweep(kinds, 2, 1, true, ENOMEM);
    ck_assert_int_eq(sxe_resolve_register(), -ENOMEM);
    fake_os_reset();
    start_resolver();
    stop_resolver();
}
END_TEST

START_TEST(the_end_forgets_look_ups)
{
    start_resolver();
    is_gated = true;
    ck_assert_int_eq(look_up(0, "a.example"), 0);
    ck_assert_int_eq(look_up(1, "a.example"), 0);
    sem_wait(&arrived);
    open_gate(1);
    stop_resolver();
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[0]), -EALREADY);
    start_resolver();
    ck_assert_int_eq(look_up(1, "a.example"), 0);
    expect_resolved(1, 0);
    stop_resolver();
}
END_TEST

/* The look-up of this thread is in progress when the thread calls sxe_fini. */
static void *
end_in_a_context_of_its_own(void *done)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.loop = ev_loop_new(EVFLAG_AUTO);
    sxe_configure(&config);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_resolve_register(), 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(look_up(1, "a.example"), 0);
    sem_wait(&arrived);
    open_gate(2);
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_int_eq(sxe_resolve_cancel(&look_ups[1]), -EALREADY);
    ck_assert_int_eq(look_up(1, "a.example"), -EINVAL);
    ck_assert_int_eq(sxe_fini(), -EINVAL);
    ev_loop_destroy(config.loop);
    return done;
}

START_TEST(each_thread_has_a_table_of_its_own)
{
    pthread_t other;
    void *result;

    start_resolver();
    is_gated = true;
    ck_assert_int_eq(look_up(0, "a.example"), 0);
    sem_wait(&arrived);
    ck_assert_int_eq(pthread_create(&other, NULL, end_in_a_context_of_its_own, look_ups), 0);
    ck_assert_int_eq(pthread_join(other, &result), 0);
    ck_assert_ptr_eq(result, look_ups);
    expect_resolved(0, 0);
    ck_assert_uint_eq(asked, 2);
    ck_assert_int_eq(look_up(1, "a.example"), 1);
    stop_resolver();
}
END_TEST

START_TEST(a_program_may_exit_while_a_look_up_is_in_flight)
{
    start_resolver();
    is_gated = true;
    ck_assert_int_eq(look_up(0, "a.example"), 0);
    sem_wait(&arrived);
    exit(0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-resolve");
    TCase *tcase = tcase_create("resolve");

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_name_is_asked_for_in_a_thread);
    tcase_add_test(tcase, families_take_turns);
    tcase_add_test(tcase, an_address_is_known_and_nobody_is_asked);
    tcase_add_test(tcase, equal_look_ups_are_one);
    tcase_add_loop_test(tcase, answers_are_known_for_five_seconds_and_errors_for_one, 0, 2);
    tcase_add_test(tcase, done_may_look_up_and_cancel);
    tcase_add_test(tcase, a_look_up_can_be_cancelled_wherever_it_is);
    tcase_add_test(tcase, a_name_that_no_thread_asks_yet_is_free_when_it_is_cancelled);
    tcase_add_test(tcase, names_have_threads_of_their_own);
    tcase_add_test(tcase, the_table_has_room_for_a_number_of_names);
    tcase_add_test(tcase, some_look_ups_are_refused);
    tcase_add_test(tcase, a_program_that_was_started_without_threads_knows_addresses_alone);
    tcase_add_test(tcase, without_memory_there_is_no_table);
    tcase_add_test(tcase, the_end_forgets_look_ups);
    tcase_add_test(tcase, each_thread_has_a_table_of_its_own);
    tcase_add_exit_test(tcase, a_program_may_exit_while_a_look_up_is_in_flight, 0);
    return sxe_test_main(suite);
}
