/* SPDX-License-Identifier: MIT
 *
 * Tests the cost of a connection: no allocation after sxe_init, one read and one write for each
 * request, and that everything is given back.
 */
#include "sxe-private.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define PEERS     100
#define NODE_SIZE 32 /* bytes that the header of a pool gives for each element */
#define REQUEST   "GET / HTTP/1.1\r\n\r\n"
#define REPLY     "HTTP/1.1 204 No Content\r\n\r\n"

/* The real function, which fake-os does not count. */
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);

static SXE *listener;
static int peers[PEERS];
static unsigned accepted;
static unsigned closed;
static unsigned answered;

static void
count_accepted(SXE *s)
{
    (void)s;
    accepted++;
}

static void
count_closed(SXE *s)
{
    (void)s;
    closed++;
}

static void
answer(SXE *s, int length)
{
    (void)length;
    while (SXE_BUF_USED(s) >= (int)SXE_LITERAL_LENGTH(REQUEST)) {
        sxe_consume(s, SXE_LITERAL_LENGTH(REQUEST));
        ck_assert_int_eq(SXE_WRITE_LITERAL(s, REPLY), 0);
        answered++;
    }
}

static void
start(const struct sxe_config *config)
{
    plan_start_with(PEERS + 1, config);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, count_accepted, answer, count_closed);
    ck_assert_int_eq(sxe_listen(listener), 0);
}

static void
connect_peers(void)
{
    int one = 1;

    for (unsigned i = 0; i < PEERS; i++) {
        peers[i] = peer_connect(sxe_local_port(listener));
        __real_setsockopt(peers[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        turn(1);
    }
    turn(5);
}

/* All peers send the same bytes; then the loop turns once. */
static void
all_send(const char *text)
{
    for (unsigned i = 0; i < PEERS; i++)
        peer_send(peers[i], text, strlen(text));
    turn(1);
}

static void
all_receive(void)
{
    for (unsigned i = 0; i < PEERS; i++)
        PEER_EXPECT(peers[i], REPLY);
}

static void
close_peers(void)
{
    for (unsigned i = 0; i < PEERS; i++)
        close(peers[i]);
    turn(5);
}

static void
expect_rest(void)
{
    ck_assert_uint_eq(accepted, closed);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), PEERS);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 1);
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), sxe_chunks_number(CONTEXT->chunks));
    ck_assert_uint_eq(CONTEXT->deferred_count, 0);
}

START_TEST(ten_thousand_requests_connects_and_closes_allocate_nothing)
{
    static const enum fake_call allocations[] = {FAKE_MALLOC,         FAKE_CALLOC, FAKE_REALLOC,
                                                 FAKE_POSIX_MEMALIGN, FAKE_MMAP,   FAKE_STRDUP,
                                                 FAKE_ALIGNED_ALLOC};
    struct sxe_config config = {.timeout_ms[SXE_STATE_IDLE] = 60000};

    start(&config);
    for (unsigned i = 0; i < 7; i++)
        fake_os_forbid(allocations[i], true);
    for (unsigned i = 0; i < 20; i++) {
        connect_peers();
        for (unsigned j = 0; j < 5; j++) {
            all_send("GET / HT");
            all_send("TP/1.1\r\n\r\n");
            all_receive();
        }
        close_peers();
        expect_rest();
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    ck_assert_uint_eq(answered, 10000);
    plan_stop();
}
END_TEST

START_TEST(a_request_costs_one_read_and_one_write)
{
    start(NULL);
    connect_peers();
    for (unsigned i = 0; i < 40; i++) {
        all_send(REQUEST);
        all_receive();
    }
    fake_os_reset();
    for (unsigned i = 0; i < 10; i++) {
        all_send(REQUEST);
        all_receive();
    }
    ck_assert_uint_eq(fake_os_calls(FAKE_RECV), 10 * PEERS);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 10 * PEERS);
    ck_assert_uint_eq(fake_os_calls(FAKE_EPOLL_CTL), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_GETSOCKOPT), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SETSOCKOPT), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_FCNTL), 0);
    close_peers();
    plan_stop();
}
END_TEST

START_TEST(a_connection_costs_one_accept_one_epoll_ctl_and_its_end_as_much)
{
    start(NULL);
    turn(5);
    fake_os_reset();
    connect_peers();
    ck_assert_uint_le(fake_os_calls(FAKE_ACCEPT4), 2 * PEERS);
    ck_assert_uint_eq(fake_os_calls(FAKE_EPOLL_CTL), PEERS);
    ck_assert_uint_eq(fake_os_calls(FAKE_SETSOCKOPT), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_FCNTL), 0);
    fake_os_reset();
    for (unsigned i = 0; i < PEERS; i++)
        peer_shutdown(peers[i]);
    turn(5);
    ck_assert_uint_eq(fake_os_calls(FAKE_RECV), PEERS);
    ck_assert_uint_le(fake_os_calls(FAKE_EPOLL_CTL), PEERS);
    ck_assert_uint_eq(fake_os_calls(FAKE_CLOSE), PEERS);
    close_peers();
    expect_rest();
    plan_stop();
}
END_TEST

START_TEST(an_idle_connection_takes_no_more_than_256_bytes)
{
    size_t node = (sxe_pool_size(100001, sizeof(SXE), SXE_STATES) -
                   sxe_pool_size(1, sizeof(SXE), SXE_STATES)) /
                      100000 -
                  sizeof(SXE);

    ck_assert_uint_eq(node, NODE_SIZE);
    ck_assert_uint_le(sizeof(SXE) + node, 256);
    start(NULL);
    connect_peers();
    all_send(REQUEST);
    all_receive();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_IDLE), PEERS);
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), sxe_chunks_number(CONTEXT->chunks));
    close_peers();
    plan_stop();
}
END_TEST

/* ---- An hour of traffic ---- */

#ifdef __SANITIZE_ADDRESS__
#    define PAGES 65536 /* AddressSanitizer keeps the memory that Check frees */
#else
#    define PAGES 8
#endif

static long
resident_pages(void)
{
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY);

    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    close(fd);
    return strtol(strchr(text, ' '), NULL, 10);
}

static void
do_nothing(struct sxe_timer *timer)
{
    (void)timer;
}

static void
wait_seconds(double seconds)
{
    struct sxe_timer timer;

    sxe_timer_init(&timer, do_nothing, seconds, 0);
    sxe_timer_start(&timer);
    while (ev_is_active(&timer.ev))
        ev_run(sxe_loop(), EVRUN_ONCE);
}

/* Peers that behave, peers that stop in the middle, and peers that stay until their timeout. */
static void
live_a_minute(void)
{
    connect_peers();
    for (unsigned i = 0; i < 3; i++) {
        all_send(REQUEST);
        all_receive();
        wait_seconds(5);
    }
    for (unsigned i = 0; i < PEERS; i += 3)
        peer_send(peers[i], "GET", 3);
    for (unsigned i = 1; i < PEERS; i += 3) {
        peer_reset(peers[i]);
        peers[i] = dup(STDIN_FILENO);
    }
    wait_seconds(45);
    ck_assert_uint_eq(accepted, closed);
    close_peers();
}

START_TEST(an_hour_with_traffic_leaves_nothing_behind)
{
    struct sxe_config config = {.timeout_ms[SXE_STATE_IDLE] = 30000,
                                .timeout_ms[SXE_STATE_READING] = 10000};
    long before;

    fake_time_start(UINT64_C(1000000000000), 0);
    start(&config);
    resident_pages();
    live_a_minute();
    live_a_minute();
    before = resident_pages();
    for (unsigned minute = 0; minute < 60; minute++)
        live_a_minute();
    ck_assert_int_le(resident_pages() - before, PAGES);
    ck_assert_uint_ge(sxe_time_ns(), UINT64_C(1000000000000) + 3600 * SXE_NS_PER_SECOND);
    expect_rest();
    plan_stop();
}
END_TEST

static Suite *
memory_suite(void)
{
    Suite *suite = suite_create("sxe memory");
    TCase *costs = tcase_create("costs");

    tcase_add_test(costs, ten_thousand_requests_connects_and_closes_allocate_nothing);
    tcase_add_test(costs, a_request_costs_one_read_and_one_write);
    tcase_add_test(costs, a_connection_costs_one_accept_one_epoll_ctl_and_its_end_as_much);
    tcase_add_test(costs, an_idle_connection_takes_no_more_than_256_bytes);
    tcase_add_test(costs, an_hour_with_traffic_leaves_nothing_behind);
    suite_add_tcase(suite, costs);
    return suite;
}

int
main(void)
{
    return sxe_test_main(memory_suite());
}
