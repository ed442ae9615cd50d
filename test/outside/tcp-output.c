/* SPDX-License-Identifier: MIT
 *
 * Output: bytes that were written arrive, all and in order, or the writer gets an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "outside.h"
#include "sxe.h"

enum { CHUNK = 4096, OUTPUT_MAX = 100000 };

static SXE *listener;
static SXE *client;
static SXE *server;
static size_t got;
static unsigned closes;
static unsigned sent[16];
static unsigned sent_number;
static int sent_result;
static int client_error;
static uint32_t writing_ms;

static void
stop_when_both_closed(SXE *this)
{
    if (this == client)
        client_error = sxe_error(this);
    if (++closes == 2)
        sxe_stop();
}

static void
remember_server(SXE *this)
{
    server = this;
    sxe_stop();
}

static void
ignore(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(this);
}

/* Connect a client, which does not read yet, and a server, which may write to it. */
static void
connect_both(SXE_IN_EVENT_READ client_reads)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.chunk_size = CHUNK;
    config.chunks = 256;
    config.output_max = OUTPUT_MAX;
    config.timeout_ms[SXE_STATE_WRITING] = writing_ms;
    sxe_configure(&config);
    sxe_register(3, 0);
    ck_assert_int_eq(sxe_init(), 0);
    listener = sxe_new_tcp(NULL, "127.0.0.1", 0, remember_server, ignore, stop_when_both_closed);
    ck_assert_int_eq(sxe_listen(listener), 0);
    client = sxe_new_tcp(NULL, "", 0, sxe_pause, client_reads, stop_when_both_closed);
    ck_assert_int_eq(sxe_connect(client, "127.0.0.1", sxe_local_port(listener)), 0);
    ck_assert_int_eq(sxe_run(), 0);
}

/* The right byte at index i of a stream. */
static char
byte_at(size_t i)
{
    return (char)(i * 7 + (i >> 8));
}

static void
check_bytes(SXE *this, int length)
{
    unsigned wrong = 0;

    SXE_UNUSED_PARAMETER(length);
    for (int i = 0; i < SXE_BUF_USED(this); i++)
        wrong += SXE_BUF(this)[i] != byte_at(got++);
    /* one check for all bytes, because each ck_assert writes to a file */
    ck_assert_uint_eq(wrong, 0);
    SXE_BUF_CLEAR(this);
}

static void
note_sent(SXE *this, int result)
{
    SXE_UNUSED_PARAMETER(this);
    sent[sent_number] = sent_number;
    sent_number++;
    sent_result = result;
}

/* ---- Refusals ---- */

/* promise: lib-sxe/sxe.h: -ENOBUFS: output_max reached or no chunk free. After an error no byte was
 * accepted. */
START_TEST(refused_output_is_not_sent_and_accepted_output_is)
{
    static char block[1000];
    size_t taken = 0;
    unsigned refused = 0;

    connect_both(check_bytes);
    while (refused < 100) {
        for (unsigned i = 0; i < sizeof(block); i++)
            block[i] = byte_at(taken + i);
        if (sxe_write(server, block, sizeof(block)) == 0) {
            taken += sizeof(block);
        } else {
            ck_assert_int_eq(sxe_write(server, block, sizeof(block)), -ENOBUFS);
            refused++;
        }
        ck_assert_uint_le(sxe_unsent(server), OUTPUT_MAX);
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    }
    ck_assert_uint_gt(taken, OUTPUT_MAX);
    sxe_resume(client, SXE_RESUME_IMMEDIATE);
    sxe_close(server);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(got, taken);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: lib-sxe/sxe.h: Reserve length bytes of the loop's output buffer, so that the program
 * composes its output there, and sxe_write need not copy it. */
START_TEST(every_way_of_writing_keeps_the_order)
{
    static char all[300000];
    char path[PATH_MAX];
    size_t at = 0;
    int fd;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = byte_at(i);
    snprintf(path, sizeof(path), "%s", outside_path("bytes"));
    fd = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    ck_assert_int_eq(write(fd, all, sizeof(all)), sizeof(all));
    connect_both(check_bytes);
    for (unsigned round = 0; at < sizeof(all); round++) {
        const unsigned want = 1 + round * 1237 % 9000;
        const unsigned length = want < sizeof(all) - at ? want : (unsigned)(sizeof(all) - at);
        char *room;
        int result = -1;

        switch (round % 5) {
        case 0:
            result = sxe_write(server, all + at, length);
            break;
        case 1:
            result = sxe_write_static(server, all + at, length);
            break;
        case 2:
            result = sxe_send(server, all + at, length, NULL);
            break;
        case 3:
            result = sxe_sendfile(server, fd, (off_t)at, length, NULL);
            break;
        default:
            room = sxe_reserve(server, length + 10);
            if (room == NULL)
                continue;
            memcpy(room, all + at, length);
            sxe_commit(server, length);
            result = 0;
        }
        if (result == 0)
            at += length;
        if (round == 20)
            sxe_resume(client, SXE_RESUME_IMMEDIATE);
        if (result < 0 || round % 3 == 0)
            ev_run(sxe_loop(), EVRUN_NOWAIT);
    }
    sxe_close(server);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(got, sizeof(all));
    close(fd);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- on_sent ---- */

/* promise: lib-sxe/sxe.h: Borrows data until on_sent is called: once, later, when the kernel has
 * taken all of data or the socket has closed. */
START_TEST(each_loan_comes_back_once_and_not_inside_the_call)
{
    static char lent[10][1000000];

    connect_both(ignore);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(sxe_send(server, lent[i], sizeof(lent[i]), note_sent), 0);
        ck_assert_uint_eq(sent_number, 0);
    }
    for (unsigned i = 0; i < 20; i++)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    ck_assert_uint_lt(sent_number, 10); /* the client has not read that much yet */
    sxe_abort(server);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(sent_number, 10);
    ck_assert_int_lt(sent_result, 0);
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_uint_eq(sent_number, 10);
}
END_TEST

/* promise: lib-sxe/sxe.h: A file that ends early closes the socket: on_sent gets -ENODATA. */
START_TEST(a_file_that_is_cut_while_it_is_sent_resets_the_connection)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s", outside_path("cut"));
    fd = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    ck_assert_int_eq(ftruncate(fd, 100000), 0);
    connect_both(ignore);
    ck_assert_int_eq(sxe_sendfile(server, fd, 0, 200000, note_sent), 0);
    sxe_resume(client, SXE_RESUME_IMMEDIATE);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(sent_number, 1);
    ck_assert_int_eq(sent_result, -ENODATA);
    ck_assert_int_eq(client_error, ECONNRESET);
    close(fd);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- Half-close ---- */

static void
answer_after_the_end(SXE *this, int length)
{
    if (length == 0) {
        ck_assert_int_eq(SXE_BUF_USED(this), 5);
        SXE_BUF_CLEAR(this);
        ck_assert_int_eq(sxe_write(this, "answer", 6), 0);
        sxe_close(this);
    }
}

static void
count_bytes(SXE *this, int length)
{
    SXE_UNUSED_PARAMETER(length);
    got += (size_t)SXE_BUF_USED(this);
    SXE_BUF_CLEAR(this);
}

/* promise: lib-sxe/sxe.h: Report the peer's half-close by a call of on_read with length 0, instead
 * of closing the socket. Writing stays possible; the program closes the socket. */
START_TEST(after_the_peers_end_its_bytes_are_still_there_and_it_gets_an_answer)
{
    connect_both(count_bytes);
    sxe_set_half_close(server, true);
    server->on_read = answer_after_the_end;
    sxe_resume(client, SXE_RESUME_IMMEDIATE);
    ck_assert_int_eq(sxe_write(client, "hello", 5), 0);
    ck_assert_int_eq(sxe_shutdown(client), 0);
    ck_assert_int_ne(sxe_write(client, "late", 4), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(got, 6);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: lib-sxe/sxe.h: -EBADF: fd is negative. */
START_TEST(no_file_is_refused_and_the_connection_goes_on)
{
    connect_both(check_bytes);
    ck_assert_int_eq(sxe_sendfile(server, -1, 0, 10, note_sent), -EBADF);
    ck_assert_uint_eq(sent_number, 0);
    ck_assert_int_eq(sxe_write(server, (char[]){byte_at(0), byte_at(1)}, 2), 0);
    ck_assert_int_eq(sxe_sendfile(server, -EBADF, 0, 10, note_sent), -EBADF);
    ck_assert_int_eq(sxe_close(server), 0);
    sxe_resume(client, SXE_RESUME_IMMEDIATE);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(got, 2);
    ck_assert_uint_eq(sent_number, 0);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* promise: docs/sxe.md: A peer that reads nothing is reset after the timeout of WRITING or CLOSING,
 * at most after twice that time */
START_TEST(a_peer_that_never_reads_is_reset)
{
    static char content[64 << 20];

    writing_ms = 200;
    connect_both(ignore);
    ck_assert_int_eq(sxe_send(server, content, sizeof(content), note_sent), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(sent_number, 1);
    ck_assert_int_eq(sent_result, -ETIMEDOUT);
    ck_assert_uint_eq(closes, 2);
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {refused_output_is_not_sent_and_accepted_output_is,
                            every_way_of_writing_keeps_the_order,
                            each_loan_comes_back_once_and_not_inside_the_call,
                            a_file_that_is_cut_while_it_is_sent_resets_the_connection,
                            after_the_peers_end_its_bytes_are_still_there_and_it_gets_an_answer,
                            no_file_is_refused_and_the_connection_goes_on,
                            a_peer_that_never_reads_is_reset,
                            NULL};

    return outside_run("tcp-output", cases);
}
