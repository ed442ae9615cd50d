/* SPDX-License-Identifier: MIT
 *
 * Decompression for scripts: input in pieces of any size, each byte damaged, cut at each byte, and
 * with each allocation failing.
 */
#include "script-inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fake-os.h"
#include "test-main.h"

enum { PLAIN_SIZE = 40000, ROOM_SIZE = 50000, GZIP = 15 + 16, ZLIB = 15, RAW = -15 };

static char plain[PLAIN_SIZE];
static char room[ROOM_SIZE];

/* Half of the data repeats itself, half does not. */
static void
make_plain(void)
{
    unsigned seed = 1;

    for (unsigned i = 0; i < PLAIN_SIZE; i++) {
        seed = seed * 1103515245 + 12345;
        plain[i] = i < PLAIN_SIZE / 2 ? (char)(i % 7) : (char)(seed >> 16);
    }
}

static size_t
compress_plain(int window, char *packed, size_t size)
{
    z_stream stream = {.next_in = (unsigned char *)plain,
                       .avail_in = PLAIN_SIZE,
                       .next_out = (unsigned char *)packed,
                       .avail_out = (unsigned)size};

    ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

/* Decode everything in pieces. Returns the number of bytes in room, or -errno. */
static ssize_t
decode_all(void *stream, const char *bytes, size_t length, size_t piece, size_t room_piece)
{
    size_t at = 0, done = 0;
    ssize_t n = 0;

    while (at < length || n == (ssize_t)room_piece) {
        const size_t given = length - at < piece ? length - at : piece;
        size_t used;

        ck_assert_uint_le(done + room_piece, ROOM_SIZE);
        n = script_inflate()->decode(stream, bytes + at, given, &used, room + done, room_piece);
        if (n < 0)
            return n;
        at += used;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static const struct {
    int window;
    bool is_gzip;
} kinds[] = {{GZIP, true}, {ZLIB, false}, {RAW, false}};

START_TEST(pieces_of_any_size_are_decoded)
{
    static const size_t pieces[] = {1, 2, 17, 1000, ROOM_SIZE};
    char packed[ROOM_SIZE];

    make_plain();
    const size_t length = compress_plain(kinds[_i].window, packed, sizeof(packed));
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned k = 1; k < 4; k++) {
            void *stream = script_inflate()->create(kinds[_i].is_gzip);

            ck_assert(script_inflate()->is_whole(stream));
            ck_assert_int_eq(decode_all(stream, packed, length, pieces[i], pieces[k]), PLAIN_SIZE);
            ck_assert(script_inflate()->is_whole(stream));
            ck_assert_mem_eq(room, plain, PLAIN_SIZE);
            script_inflate()->destroy(stream);
        }
    }
}
END_TEST

START_TEST(a_stream_that_is_cut_is_never_whole)
{
    char packed[ROOM_SIZE];

    make_plain();
    const size_t length = compress_plain(kinds[_i].window, packed, sizeof(packed));
    for (size_t cut = 1; cut < length; cut += cut < 200 || cut > length - 20 ? 1 : 97) {
        void *stream = script_inflate()->create(kinds[_i].is_gzip);

        ck_assert_int_ge(decode_all(stream, packed, cut, ROOM_SIZE, 8192), 0);
        ck_assert(!script_inflate()->is_whole(stream));
        script_inflate()->destroy(stream);
    }
}
END_TEST

/* Both formats have a checksum, so a changed byte is refused, or had no meaning. */
START_TEST(a_damaged_stream_is_refused_or_says_the_same)
{
    char packed[ROOM_SIZE];
    unsigned refused = 0;

    make_plain();
    const size_t length = compress_plain(kinds[_i].window, packed, sizeof(packed));
    for (size_t at = 0; at < length; at += at < 200 || at > length - 20 ? 1 : 97) {
        void *stream = script_inflate()->create(kinds[_i].is_gzip);
        ssize_t n;

        packed[at] = (char)(packed[at] ^ 1 << at % 8);
        n = decode_all(stream, packed, length, ROOM_SIZE, 8192);
        refused += n == -EBADMSG;
        if (n >= 0 && script_inflate()->is_whole(stream)) {
            ck_assert_int_eq(n, PLAIN_SIZE);
            ck_assert_mem_eq(room, plain, PLAIN_SIZE);
        }
        packed[at] = (char)(packed[at] ^ 1 << at % 8);
        script_inflate()->destroy(stream);
    }
    ck_assert_uint_gt(refused, 100);
}
END_TEST

/* The first allocation fails in one run, the second in the next, and so on. */
START_TEST(without_memory_a_stream_is_not_decoded)
{
    static const enum fake_call calls[] = {FAKE_CALLOC};
    char packed[ROOM_SIZE];
    unsigned nth = 0, failed_create = 0, failed_decode = 0;
    bool is_touched;

    make_plain();
    const size_t length = compress_plain(GZIP, packed, sizeof(packed));
    do {
        void *stream;

        fake_os_reset();
        fake_os_sweep(calls, 1, ++nth, false, ENOMEM);
        stream = script_inflate()->create(true);
        failed_create += stream == NULL;
        if (stream != NULL) {
            ssize_t n = decode_all(stream, packed, length, ROOM_SIZE, 8192);

            failed_decode += n == -ENOMEM;
            ck_assert(n == -ENOMEM || n == PLAIN_SIZE);
            script_inflate()->destroy(stream);
        }
        is_touched = fake_os_injected() != 0;
    } while (is_touched);
    fake_os_reset();
    ck_assert_uint_eq(failed_create, 2);
    ck_assert_uint_eq(failed_decode, 1);
}
END_TEST

static Suite *
inflate_suite(void)
{
    Suite *suite = suite_create("script-inflate");
    TCase *tcase = tcase_create("inflate");

    tcase_add_loop_test(tcase, pieces_of_any_size_are_decoded, 0, 3);
    tcase_add_loop_test(tcase, a_stream_that_is_cut_is_never_whole, 0, 3);
    tcase_add_loop_test(tcase, a_damaged_stream_is_refused_or_says_the_same, 0, 2);
    tcase_add_test(tcase, without_memory_a_stream_is_not_decoded);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(inflate_suite());
}
