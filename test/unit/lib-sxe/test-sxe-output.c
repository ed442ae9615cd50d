/* SPDX-License-Identifier: MIT
 *
 * Tests output: everything that is written arrives, in order, with few system calls, however little
 * the kernel takes at a time.
 */
#include "sxe-private.h"

#include <string.h>

#include "fake-os.h"
#include "pair.h"
#include "test-main.h"

/* ---- Scripts: each operation is a letter and a length, and writes the next bytes of the pattern
 * ----
 *
 * c: sxe_write, which copies; s: sxe_write_static; b: sxe_send, lent memory; f: sxe_sendfile.
 */
static const struct script {
    const char *operations;
    unsigned times;
} scripts[] = {
    {"c1", 1},
    {"c10", 10000},
    {"c1000", 200},
    {"c65536", 1},
    {"c65537", 1},
    {"c8 c65535 c2", 1},
    {"c200000", 1},
    {"c1048576", 1},
    {"s1 s1023 s1024", 1},
    {"s1025", 1},
    {"s100000", 1},
    {"c10 s1100", 1},
    {"c10 s1100", 20},
    {"s1100", 17},
    {"s1100 c1", 40},
    {"s100000", 20},
    {"s1100 s1100 s1100 s1100 s1100 s1100 s1100 s1100 c65536", 2},
    {"s2000000 b1", 1},
    {"b0", 1},
    {"b0 b5 b0 c5 b0", 3},
    {"b1", 1},
    {"b1", 40},
    {"b65536", 1},
    {"b65537", 1},
    {"b1000 b70000 b3 b100000 b1 b1 b2000", 1},
    {"c100 b100 s2000", 10},
    {"b8388608", 1},
    {"f0", 1},
    {"f1", 1},
    {"c300 f100000 c3", 1},
    {"f1000", 20},
    {"c10 b1000 c10 s2000 f5000", 10},
    {"f8388608", 1},
};

static struct {
    const struct script *script;
    int file;
    size_t position;
    unsigned lent;
    unsigned returned;
    bool inside;
} run;

static void
count_return(SXE *s, int result)
{
    ck_assert_ptr_eq(s, ours);
    ck_assert_int_eq(result, 0);
    ck_assert(!run.inside);
    run.returned++;
}

static void
operate(SXE *s, char operation, size_t length)
{
    const char *from = pattern(run.position + length) + run.position;
    int result = -EINVAL;

    run.inside = true;
    if (operation == 'c')
        result = sxe_write(s, from, (unsigned)length);
    else if (operation == 's')
        result = sxe_write_static(s, from, length);
    else if (operation == 'b')
        result = sxe_send(s, from, length, count_return);
    else if (operation == 'f')
        result = sxe_sendfile(s, run.file, (off_t)run.position, length, count_return);
    run.inside = false;
    ck_assert_int_eq(result, 0);
    run.lent += operation == 'b' || operation == 'f';
    run.position += length;
}

static void
play(SXE *s)
{
    for (unsigned i = 0; i < run.script->times; i++) {
        for (const char *at = run.script->operations; at != NULL; at = strchr(at, ' ')) {
            at += *at == ' ';
            operate(s, *at, strtoul(at + 1, NULL, 10));
        }
    }
}

enum treatment { WELL, FULL, PARTIAL, INTERRUPTED, NO_BUFFERS, NO_MEMORY, TREATMENTS };
static const enum fake_call kinds[] = {FAKE_SEND, FAKE_SENDMSG, FAKE_SENDFILE};

static void
treat(enum treatment treatment)
{
    static const int errors[TREATMENTS] = {
        [INTERRUPTED] = EINTR, [NO_BUFFERS] = ENOBUFS, [NO_MEMORY] = ENOMEM};

    if (treatment == FULL)
        shrink_kernel_buffers(sxe_fd(ours), peer);
    for (unsigned i = 0; i < 3; i++) {
        if (treatment == PARTIAL)
            fake_os_limit(kinds[i], 4099);
        else if (errors[treatment] != 0)
            fake_os_fail(kinds[i], 1, 3, errors[treatment]);
    }
}

START_TEST(what_is_written_arrives_in_order)
{
    open_pair(NULL);
    run.script = &scripts[(unsigned)_i / TREATMENTS];
    if (strchr(run.script->operations, 'f') != NULL)
        run.file = pattern_file(PATTERN_MAX);
    treat((enum treatment)((unsigned)_i % TREATMENTS));
    in_event(play);
    expect_pattern(peer, run.position);
    turn(20);
    ck_assert_uint_eq(run.returned, run.lent);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), sxe_chunks_number(CONTEXT->chunks));
    if (run.file != 0)
        close(run.file);
    close_pair();
}
END_TEST

/* The kernel takes one byte at a time, or seven. */
START_TEST(f6_the_shortest_writes_lose_nothing)
{
    static const struct script everything[] = {{"c10 s1100 b2000 c3000 f2000", 8},
                                               {"c1000 s11000 b20000 c30000 f20000", 6}};
    size_t limit = _i == 0 ? 1 : 7;

    open_pair(NULL);
    run.script = &everything[_i];
    run.file = pattern_file(MIB);
    for (unsigned i = 0; i < 3; i++)
        fake_os_limit(kinds[i], limit);
    in_event(play);
    expect_pattern(peer, run.position);
    turn(3);
    ck_assert_uint_eq(run.returned, run.lent);
    close(run.file);
    close_pair();
}
END_TEST

/* A full socket fails with EAGAIN first and reports room later. Here only the call fails, so any
 * later event must lead to another try. */
START_TEST(f6_after_eagain_output_goes_on_with_the_next_event)
{
    open_pair(NULL);
    turn(3);
    fake_os_fail(FAKE_SEND, 1, 1, EAGAIN);
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    PEER_EXPECT_SILENCE(peer);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_WRITING);
    peer_send(peer, "x", 1);
    EXPECT_READ(ours, "x");
    PEER_EXPECT(peer, "hello");
    close_pair();
}
END_TEST

/* ---- Few calls ---- */

static unsigned
write_calls(void)
{
    return fake_os_calls(FAKE_SEND) + fake_os_calls(FAKE_SENDMSG) + fake_os_calls(FAKE_SENDFILE);
}

static void
answer_each_line(SXE *s, int length)
{
    (void)length;
    for (int i = 0; i < SXE_BUF_USED(s); i += 5)
        ck_assert_int_eq(sxe_write(s, "hello\n", 6), 0);
    SXE_BUF_CLEAR(s);
}

START_TEST(a_thousand_pipelined_requests_are_one_read_and_one_write)
{
    char requests[5000];
    char replies[6001] = "";

    for (unsigned i = 0; i < 1000; i++) {
        memcpy(requests + 5 * i, "GET \n", 5);
        memcpy(replies + 6 * i, "hello\n", 7);
    }
    open_pair(NULL);
    ours->on_read = answer_each_line;
    turn(5);
    fake_os_reset();
    peer_send(peer, requests, sizeof(requests));
    turn(5);
    ck_assert_uint_eq(fake_os_calls(FAKE_RECV), 1);
    ck_assert_uint_eq(write_calls(), 1);
    ck_assert_uint_eq(fake_os_calls(FAKE_EPOLL_CTL), 0);
    expect_bytes(peer, replies, 6000);
    close_pair();
}
END_TEST

START_TEST(copies_and_static_pieces_are_one_write)
{
    static const struct script script = {"c10 s1100 c5 s2000 c3", 3};

    open_pair(NULL);
    run.script = &script;
    fake_os_reset();
    in_event(play);
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDMSG), 1);
    ck_assert_uint_eq(write_calls(), 1);
    expect_pattern(peer, run.position);
    close_pair();
}
END_TEST

/* This works by MSG_MORE, a flag that only sendmsg(2) has. */
START_TEST(what_stands_in_front_of_a_file_goes_into_its_segments)
{
    static const struct script script = {"c10 s1100 f100 c5", 1};

    open_pair(NULL);
    run.script = &script;
    run.file = pattern_file(PATTERN_MAX);
    fake_os_reset();
    in_event(play);
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDMSG), 1);
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDFILE), 1);
    /* The bytes before the file, the file, and the bytes after it. */
    ck_assert_uint_eq(write_calls(), 3);
    expect_pattern(peer, run.position);
    close(run.file);
    close_pair();
}
END_TEST

START_TEST(writes_outside_of_any_event_go_out_together_before_the_loop_waits)
{
    open_pair(NULL);
    fake_os_reset();
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
    ck_assert_uint_eq(write_calls(), 0);
    ck_assert_uint_eq(sxe_unsent(ours), 100);
    turn(1);
    ck_assert_uint_eq(write_calls(), 1);
    ck_assert_uint_eq(sxe_unsent(ours), 0);
    close_pair();
}
END_TEST

START_TEST(nothing_to_write_is_no_call)
{
    open_pair(NULL);
    fake_os_reset();
    ck_assert_int_eq(sxe_write(ours, "", 0), 0);
    ck_assert_int_eq(sxe_write_static(ours, "", 0), 0);
    turn(5);
    ck_assert_uint_eq(write_calls(), 0);
    close_pair();
}
END_TEST

static Suite *
output_suite(void)
{
    Suite *suite = suite_create("sxe output");
    TCase *order = tcase_create("order");
    TCase *calls = tcase_create("calls");
    int runs = (int)(sizeof(scripts) / sizeof(scripts[0])) * TREATMENTS;

    tcase_add_loop_test(order, what_is_written_arrives_in_order, 0, runs);
    tcase_add_loop_test(order, f6_the_shortest_writes_lose_nothing, 0, 2);
    tcase_add_test(order, f6_after_eagain_output_goes_on_with_the_next_event);
    tcase_add_test(calls, a_thousand_pipelined_requests_are_one_read_and_one_write);
    tcase_add_test(calls, copies_and_static_pieces_are_one_write);
    tcase_add_test(calls, what_stands_in_front_of_a_file_goes_into_its_segments);
    tcase_add_test(calls, writes_outside_of_any_event_go_out_together_before_the_loop_waits);
    tcase_add_test(calls, nothing_to_write_is_no_call);
    suite_add_tcase(suite, order);
    suite_add_tcase(suite, calls);
    return suite;
}

int
main(void)
{
    return sxe_test_main(output_suite());
}
