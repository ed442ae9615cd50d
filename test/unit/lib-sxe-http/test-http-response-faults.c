/* SPDX-License-Identifier: MIT
 *
 * Replies while system calls fail or output memory runs out: the client gets a beginning of the
 * reply, each request ends once, and no memory stays in use.
 */
#include "http-site.h"

#include <stdlib.h>

#include "http-content.h"

#define GOOD(call) ck_assert_int_eq(call, 0)

/* ---- Partial writes ---- */

static size_t sent;

static void
write_more(struct sxe_http_response *response)
{
    int result = 0;

    while (result == 0 && sent < content.length) {
        size_t left = content.length - sent;
        size_t piece = left < 50000 ? left : 50000;

        result = sxe_http_write(response, content.bytes + sent, piece);
        sent += result == 0 ? piece : 0;
    }
    if (result == 0)
        GOOD(sxe_http_end(response, NULL, 0));
    else
        GOOD(sxe_http_on_room(response, write_more));
}

static enum sxe_http_verdict
send_parts(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_begin(response, content.length));
    write_more(response);
    return SXE_HTTP_LATER;
}

static enum sxe_http_verdict
send_borrowed(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_end_borrowed(response, content.bytes, content.length));
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
send_file(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_end_file(response, content.file, 0, content.length));
    return SXE_HTTP_DONE;
}

static const sxe_http_handler senders[] = {send_parts, send_borrowed, send_file};

/* The length of the reply, and how many bytes each write takes at most. */
static const struct partial {
    size_t length;
    size_t limit;
} partials[] = {{20000, 1}, {8u * 1024 * 1024, 5003}};

START_TEST(f6_a_kernel_that_takes_little_at_a_time_gets_all)
{
    static const enum fake_call calls[] = {FAKE_SEND, FAKE_SENDMSG, FAKE_SENDFILE};
    const struct partial *partial = &partials[_i / 3];
    char head[100];
    int peer;

    make_content(partial->length);
    serve((struct sxe_http_config){.handler = senders[_i % 3]});
    for (unsigned i = 0; i < 3; i++)
        fake_os_limit(calls[i], partial->limit);
    peer = client();
    say(peer, GET("/"));
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", partial->length);
    EXPECT_REPLY(peer, head);
    expect_content(peer, partial->length);
    PEER_EXPECT_SILENCE(peer);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

/* ---- Each system call fails in turn ---- */

static struct {
    unsigned asked;
    unsigned done;
    int result; /* the result of the last request */
} run;

static void
count_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    (void)request;
    (void)response;
    run.done++;
    run.result = result;
}

static int
send_each_way(const struct sxe_http_request *request, struct sxe_http_response *response)
{
    switch (request->path.base[1]) {
    case 'c': /* copied */
        return sxe_http_end(response, content.bytes, 100000);
    case 'l': /* lent */
        return sxe_http_end_borrowed(response, content.bytes, 100000);
    case 'f':
        return sxe_http_end_file(response, content.file, 0, 100000);
    }
    if (sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN) < 0 ||
        sxe_http_write(response, "12345", 5) < 0 ||
        sxe_http_write_file(response, content.file, 0, 100000) < 0 ||
        sxe_http_write(response, content.bytes, 100000) < 0 ||
        sxe_http_add_trailer(response, "X", "y") < 0)
        return -EIO;
    return sxe_http_end(response, NULL, 0);
}

static enum sxe_http_verdict
reply_each_way(struct sxe_http_request *request, struct sxe_http_response *response)
{
    run.asked++;
    response->on_done = count_done;
    if (send_each_way(request, response) < 0)
        sxe_http_reply_status(response, 500);
    return SXE_HTTP_DONE;
}

static char *
expected_reply(char kind, size_t *length)
{
    static const char head[] = "HTTP/1.1 200 OK\r\n";
    static char text[210000];
    int n;

    if (kind != 'p') {
        n = snprintf(text, sizeof(text), "%sContent-Length: 100000\r\nConnection: close\r\n\r\n",
                     head);
        memcpy(text + n, content.bytes, 100000);
        *length = (size_t)n + 100000;
        return text;
    }
    n = snprintf(text, sizeof(text),
                 "%sTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\n12345\r\n"
                 "186a0\r\n",
                 head);
    memcpy(text + n, content.bytes, 100000);
    n += 100000;
    n += snprintf(text + n, 20, "\r\n186a0\r\n");
    memcpy(text + n, content.bytes, 100000);
    n += 100000;
    n += snprintf(text + n, 20, "\r\n0\r\nX: y\r\n\r\n");
    *length = (size_t)n;
    return text;
}

static const struct fault {
    enum fake_call call;
    int error;
} faults[] = {
    {FAKE_SEND, EPIPE},     {FAKE_SEND, EINTR},     {FAKE_SEND, ENOBUFS},
    {FAKE_SENDMSG, EPIPE},  {FAKE_SENDMSG, EINTR},  {FAKE_SENDMSG, ENOMEM},
    {FAKE_SENDFILE, EPIPE}, {FAKE_SENDFILE, EINTR}, {FAKE_SENDFILE, EIO},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static const char kinds[] = {'c', 'l', 'f', 'p'};

/* Make one request; returns whether a call failed. */
static bool
run_once(const struct fault *fault, char kind, unsigned nth, bool for_ever)
{
    static char got[210000];
    char request[] = "GET /? HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    const char *expected;
    size_t length;
    size_t wanted;
    bool touched;
    int peer;

    run.done = run.asked = 0;
    *strchr(request, '?') = kind;
    peer = client();
    fake_os_sweep(&fault->call, 1, nth, for_ever, fault->error);
    say(peer, request);
    for (unsigned i = 0; i < 1000 && run.done == 0 && for_ever; i++)
        wait_ms(100); /* until the stall timeout at the latest */
    length = peer_receive(peer, got, sizeof(got) - 1);
    touched = fake_os_injected() > 0;
    fake_os_reset();
    expected = expected_reply(kind, &wanted);
    if (length >= SXE_LITERAL_LENGTH("HTTP/1.1 200 OK\r\n") + DATE_LINE)
        length = take_dates_out(got, length);
    ck_assert_uint_le(length, wanted);
    ck_assert_mem_eq(got, expected, length);
    ck_assert(touched || length == wanted);
    close(peer);
    turn(10);
    ck_assert_uint_eq(run.done, 1);
    ck_assert_uint_eq(run.asked, 1);
    ck_assert(length == wanted || run.result < 0 || kind == 'c');
    return touched;
}

START_TEST(f3_every_failing_write_is_survived)
{
    const struct fault *fault = &faults[(unsigned)_i / sizeof(kinds)];
    char kind = kinds[(unsigned)_i % sizeof(kinds)];

    make_content(100000);
    serve((struct sxe_http_config){.handler = reply_each_way});
    for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
        unsigned nth = 1;

        while (run_once(fault, kind, nth, for_ever != 0))
            nth++;
        expect_rest();
    }
    end_site();
    drop_content();
}
END_TEST

/* ---- No free chunk for output ---- */

#define CHUNK 1024

static const struct sxe_config few_chunks = {
    .chunk_size = CHUNK, .chunks = 8, .output_max = 1 << 30, .output_pause = 1 << 30};

static const struct sxe_http_limits small_heads = {512, CHUNK, 20};

static const char zeros[200000];

static SXE *
socket_of(struct sxe_http_response *response)
{
    return SXE__HTTP_SLOT_OF_RESPONSE(response)->connection->sxe;
}

/* Take all chunks for output of another connection, whose writes the kernel refuses. */
static void
hog(SXE *s)
{
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    fake_os_fail(FAKE_SENDMSG, 1, 0, EAGAIN);
    GOOD(sxe_send(s, zeros, 1, NULL)); /* from now on all output is queued */
    for (unsigned length = 2048; length > 0; length /= 2) {
        while (sxe_write(s, zeros, length) == 0)
            continue;
    }
}

/* Fill the loop's own output buffer until `length` bytes are left. */
static void
leave_room(SXE *s, unsigned length)
{
    unsigned low = 0;
    unsigned high = 1 << 20;

    while (high - low > 1) { /* low bytes fit, high bytes do not */
        unsigned middle = (low + high) / 2;

        if (sxe_reserve(s, middle) == NULL)
            high = middle;
        else
            low = middle;
    }
    GOOD(sxe_write(s, zeros, low - length));
}

static int
end_short(struct sxe_http_response *response)
{
    return sxe_http_end(response, "x", 1);
}

static int
end_long(struct sxe_http_response *response)
{
    return sxe_http_end(response, zeros, 1000);
}

static int
end_lent(struct sxe_http_response *response)
{
    return sxe_http_end_borrowed(response, zeros, sizeof(zeros));
}

static int
begin(struct sxe_http_response *response)
{
    return sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN);
}

static int
write_five(struct sxe_http_response *response)
{
    return sxe_http_write(response, "12345", 5);
}

static int
end_five(struct sxe_http_response *response)
{
    return sxe_http_end(response, "12345", 5);
}

static const struct starved {
    enum { UNANSWERED, KNOWN, CHUNKED } before;
    unsigned room;
    int (*call)(struct sxe_http_response *response);
    int result;
} starved[] = {
    {UNANSWERED, 0, end_short, -ENOBUFS},
    {UNANSWERED, 0, begin, -ENOBUFS},
    {UNANSWERED, 200, end_long, -ENOTCONN}, /* the buffer is large enough for the head */
    {UNANSWERED, 200, end_lent, -ENOTCONN},
    {KNOWN, 4, write_five, -ENOBUFS},
    {KNOWN, 5, write_five, 0},
    {KNOWN, 0, wait_for_room, -ENOBUFS},
    {CHUNKED, 2, write_five, -ENOBUFS},
    {CHUNKED, 3, write_five, -ENOTCONN},
    {CHUNKED, 8, write_five, -ENOTCONN},
    {CHUNKED, 10, write_five, 0},
    {CHUNKED, 14, end_five, -ENOTCONN},
    {CHUNKED, 15, end_five, 0},
    {CHUNKED, 4, end_empty, -ENOTCONN},
};

START_TEST(f7_without_a_chunk_a_reply_waits_or_ends_but_is_not_garbled)
{
    const struct starved *test = &starved[_i];
    struct sxe_http_response *other;
    int peers[2];

    serve_with((struct sxe_http_config){.handler = push_later, .head = small_heads}, &few_chunks);
    for (unsigned i = 0; i < 2; i++) {
        peers[i] = client();
        say(peers[i], GET("/"));
        EXPECT("later", NULL, 0);
        other = i == 0 ? site.response : other;
    }
    hog(socket_of(other));
    if (test->before != UNANSWERED)
        GOOD(sxe_http_begin(site.response, test->before == KNOWN ? 5 : SXE_HTTP_LENGTH_UNKNOWN));
    leave_room(socket_of(site.response), test->room);
    ck_assert_int_eq(test->call(site.response), test->result);
    if (test->result == -ENOBUFS) /* the call took nothing */
        ck_assert_ptr_nonnull(sxe_reserve(socket_of(site.response), test->room));
    if (test->result == -ENOTCONN)
        EXPECT("done", NULL, -ECONNABORTED);
    for (unsigned i = 0; i < 2; i++)
        peer_reset(peers[i]);
    turn(20);
    event_reset();
    fake_os_reset();
    end_site();
}
END_TEST

START_TEST(f7_without_a_chunk_for_its_end_a_lent_reply_ends)
{
    SXE *s;
    int peer;

    make_content(10);
    serve_with((struct sxe_http_config){.handler = push_later, .head = small_heads}, &few_chunks);
    peer = client();
    say(peer, GET("/"));
    EXPECT("later", NULL, 0);
    s = socket_of(site.response);
    GOOD(sxe_http_begin(site.response, 10));
    GOOD(sxe_http_write_file(site.response, content.file, 0, 10));
    hog(s);
    ck_assert_int_eq(sxe_http_end(site.response, NULL, 0), -ENOTCONN);
    EXPECT("done", NULL, -ECONNABORTED);
    fake_os_reset();
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static Suite *
faults_suite(void)
{
    Suite *suite = suite_create("http response faults");
    TCase *kernel = tcase_create("the kernel fails");
    TCase *memory = tcase_create("chunks run out");

    tcase_add_loop_test(kernel, f6_a_kernel_that_takes_little_at_a_time_gets_all, 0, 6);
    tcase_add_loop_test(kernel, f3_every_failing_write_is_survived, 0,
                        (int)(FAULTS * sizeof(kinds)));
    suite_add_tcase(suite, kernel);
    tcase_add_loop_test(memory, f7_without_a_chunk_a_reply_waits_or_ends_but_is_not_garbled, 0,
                        (int)(sizeof(starved) / sizeof(starved[0])));
    tcase_add_test(memory, f7_without_a_chunk_for_its_end_a_lent_reply_ends);
    suite_add_tcase(suite, memory);
    return suite;
}

int
main(void)
{
    return sxe_test_main(faults_suite());
}
