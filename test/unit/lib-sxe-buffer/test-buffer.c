/* SPDX-License-Identifier: MIT
 *
 * Tests buffers and their chunks: adding, consuming, searching, running out of chunks.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "../../fuzz/check-buffer.h"
#include "capture-log.h"
#include "fake-os.h"
#include "sxe-buffer.h"
#include "test-main.h"

#if SXE_HAVE_ASAN
#    include <sanitizer/asan_interface.h>
#endif

#define NUMBER_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- Calls that must stop the program ---- */

static jmp_buf stopped;

static void
on_stop(void)
{
    longjmp(stopped, 1);
}

/* The statement must fail an assertion; its message must end in text. */
#define CHECK_STOPS(statement, text)                      \
    do {                                                  \
        capture_log();                                    \
        sxe_log_set_fatal_hook(on_stop);                  \
        if (setjmp(stopped) == 0) {                       \
            statement;                                    \
            ck_abort_msg("not stopped: " #statement);     \
        }                                                 \
        sxe_log_set_fatal_hook(NULL);                     \
        ck_assert_ptr_nonnull(strstr(log_line(0), text)); \
    } while (0)

/* ---- Chunks ---- */

static const struct {
    uint32_t number;
    uint32_t size;
} impossible[] = {{0, 1},
                  {1, 0},
                  {0, 0},
                  {UINT32_MAX, 1},
                  {UINT32_MAX - 1, UINT32_MAX},
                  {UINT32_C(1) << 31, UINT32_MAX}};

START_TEST(impossible_numbers_are_refused)
{
    errno = 0;
    ck_assert_uint_eq(sxe_chunks_reserved(impossible[_i].number, impossible[_i].size), 0);
    ck_assert_ptr_null(sxe_chunks_new("none", impossible[_i].number, impossible[_i].size));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(possible_numbers_are_not_refused)
{
    size_t one = sxe_chunks_reserved(1, 1);

    ck_assert_uint_ge(one, 16);
    ck_assert_uint_eq(sxe_chunks_reserved(1, 12), one);
    ck_assert_uint_eq(sxe_chunks_reserved(1, 13), one + 16);
    ck_assert_uint_ge(sxe_chunks_reserved(10000, 4092), 10000 * 4096);
    ck_assert_uint_ge(sxe_chunks_reserved(UINT32_MAX - 1, 1), (size_t)16 * (UINT32_MAX - 1));
    ck_assert_uint_ge(sxe_chunks_reserved(1, UINT32_MAX), UINT32_MAX);
}
END_TEST

START_TEST(new_chunks_are_all_free)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 3, 100);

    ck_assert_ptr_nonnull(chunks);
    ck_assert_uint_eq(sxe_chunks_number(chunks), 3);
    ck_assert_uint_eq(sxe_chunks_size(chunks), 100);
    ck_assert_uint_eq(sxe_chunks_free(chunks), 3);
    sxe_chunks_delete(chunks);
    sxe_chunks_delete(NULL);
}
END_TEST

START_TEST(failed_allocations_are_told_and_leak_nothing)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_MMAP};
    struct sxe_chunks *chunks;
    unsigned failed = 0;

    for (unsigned nth = 1;; nth++) {
        fake_os_reset();
        fake_os_sweep(kinds, NUMBER_OF(kinds), nth, false, EAGAIN);
        errno = 0;
        chunks = sxe_chunks_new("lines", 100, 100);
        if (fake_os_injected() == 0)
            break;
        failed++;
        ck_assert_ptr_null(chunks);
        ck_assert_int_eq(errno, ENOMEM);
    }
    ck_assert_uint_eq(failed, 2);
    ck_assert_ptr_nonnull(chunks);
    sxe_chunks_delete(chunks);
    ck_assert_uint_eq(fake_os_calls(FAKE_MUNMAP), fake_os_calls(FAKE_MMAP));
}
END_TEST

START_TEST(chunks_are_taken_in_ascending_order_until_none_is_left)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 70, 100);

    for (uint32_t i = 0; i < 70; i++) {
        ck_assert_uint_eq(sxe_chunks_free(chunks), 70 - i);
        ck_assert_uint_eq(sxe_chunks_take(chunks), i);
    }
    ck_assert_uint_eq(sxe_chunks_free(chunks), 0);
    ck_assert_uint_eq(sxe_chunks_take(chunks), SXE_NONE);
    ck_assert_uint_eq(sxe_chunks_take(chunks), SXE_NONE);
    sxe_chunks_give(chunks, 69);
    ck_assert_uint_eq(sxe_chunks_take(chunks), 69);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(last_given_is_first_taken)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 9, 100);

    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(sxe_chunks_take(chunks), i);
    sxe_chunks_give(chunks, 1);
    sxe_chunks_give(chunks, 3);
    sxe_chunks_give(chunks, 0);
    ck_assert_uint_eq(sxe_chunks_take(chunks), 0);
    ck_assert_uint_eq(sxe_chunks_take(chunks), 3);
    ck_assert_uint_eq(sxe_chunks_take(chunks), 1);
    ck_assert_uint_eq(sxe_chunks_take(chunks), 4);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(front_is_zero_whatever_the_last_owner_did)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 2, _i);
    static const char zeros[SXE_CHUNK_FRONT];

    for (unsigned turn = 0; turn < 3; turn++) {
        uint32_t chunk = sxe_chunks_take(chunks);
        char *data = sxe_chunks_data(chunks, chunk);
        ck_assert_mem_eq(data - SXE_CHUNK_FRONT, zeros, SXE_CHUNK_FRONT);
        memset(data - SXE_CHUNK_FRONT, 'x', SXE_CHUNK_FRONT + (size_t)_i);
        sxe_chunks_give(chunks, chunk);
    }
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(chunks_do_not_overlap)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 9, _i);
    char expected[40];

    for (uint32_t i = 0; i < 9; i++)
        memset(sxe_chunks_data(chunks, sxe_chunks_take(chunks)), (int)i, (size_t)_i);
    for (uint32_t i = 0; i < 9; i++) {
        memset(expected, (int)i, sizeof(expected));
        ck_assert_mem_eq(sxe_chunks_data(chunks, i), expected, (size_t)_i);
        memset(expected, 0, sizeof(expected));
        ck_assert_mem_eq(sxe_chunks_data(chunks, i) - SXE_CHUNK_FRONT, expected, SXE_CHUNK_FRONT);
    }
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(links_belong_to_the_owner)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 3, 100);
    uint32_t a = sxe_chunks_take(chunks);
    uint32_t b = sxe_chunks_take(chunks);

    ck_assert_uint_eq(*sxe_chunks_link(chunks, a), SXE_NONE);
    *sxe_chunks_link(chunks, a) = b;
    *sxe_chunks_link(chunks, b) = 77;
    ck_assert_uint_eq(*sxe_chunks_link(chunks, a), b);
    sxe_chunks_give(chunks, b);
    ck_assert_uint_eq(*sxe_chunks_link(chunks, a), b);
    ck_assert_uint_eq(sxe_chunks_take(chunks), b);
    ck_assert_uint_eq(*sxe_chunks_link(chunks, b), SXE_NONE);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(misuse_of_chunks_stops_the_program)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 3, 100);
    uint32_t a = sxe_chunks_take(chunks);
    uint32_t b = sxe_chunks_take(chunks);

    sxe_chunks_give(chunks, a);
    CHECK_STOPS(sxe_chunks_give(chunks, a), "chunks lines: chunk 0 is free");
    CHECK_STOPS(sxe_chunks_give(chunks, 2), "chunks lines: chunk 2 is free");
    CHECK_STOPS(sxe_chunks_give(chunks, 3), "chunks lines: chunk 3 of 3");
    CHECK_STOPS(sxe_chunks_give(chunks, SXE_NONE), "chunks lines: chunk 4294967295 of 3");
    CHECK_STOPS(sxe_chunks_data(chunks, a), "chunks lines: chunk 0 is free");
    CHECK_STOPS(sxe_chunks_data(chunks, 3), "chunks lines: chunk 3 of 3");
    CHECK_STOPS(sxe_chunks_link(chunks, a), "chunks lines: chunk 0 is free");
    CHECK_STOPS(sxe_chunks_link(chunks, 3), "chunks lines: chunk 3 of 3");
    sxe_chunks_give(chunks, b);
    ck_assert_uint_eq(sxe_chunks_free(chunks), 3);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(giving_back_twice_aborts)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 1, 100);
    uint32_t chunk = sxe_chunks_take(chunks);

    sxe_chunks_give(chunks, chunk);
    sxe_chunks_give(chunks, chunk);
}
END_TEST

START_TEST(long_names_are_cut)
{
    struct sxe_chunks *chunks = sxe_chunks_new("a name of more than thirty-one bytes", 1, 100);

    CHECK_STOPS(sxe_chunks_give(chunks, 7),
                "chunks a name of more than thirty-one : chunk 7 of 1\n");
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(birth_and_death_are_logged)
{
    capture_log();
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 5, 100);
    ck_assert_uint_eq(sxe_chunks_take(chunks), 0);
    sxe_chunks_delete(chunks);
    ck_assert_str_eq(log_line(0), "------ 5 - chunks lines: 5 of 100 bytes\n");
    ck_assert_str_eq(log_line(1), "------ 5 - chunks lines: deleted, 4 of 5 free\n");
    ck_assert_uint_eq(captured.number, 2);
}
END_TEST

START_TEST(memory_is_touched_only_when_used)
{
    enum { PAGES = 20000 };
    static unsigned char resident[PAGES];
    struct sxe_chunks *chunks = sxe_chunks_new("many", PAGES, 4092);
    unsigned touched = 0;

    for (unsigned i = 0; i < 5000; i++)
        sxe_chunks_give(chunks, sxe_chunks_take(chunks));
    char *region = sxe_chunks_data(chunks, sxe_chunks_take(chunks)) - SXE_CHUNK_FRONT;
    ck_assert_int_eq(mincore(region, (size_t)PAGES * 4096, resident), 0);
    for (unsigned i = 0; i < PAGES; i++)
        touched += resident[i] & 1;
    ck_assert_uint_ge(touched, 1);
    ck_assert_uint_le(touched, 512); /* one page, or one huge page */
    sxe_chunks_delete(chunks);
}
END_TEST

/* The model is a plain stack of free chunks, which tells the chunk that must come next. */
START_TEST(random_takes_and_gives_agree_with_a_plain_stack)
{
    enum { CHUNKS = 100 };
    struct sxe_chunks *chunks = sxe_chunks_new("random", CHUNKS, 5);
    uint32_t stack[CHUNKS];
    uint32_t out[CHUNKS];
    unsigned depth = CHUNKS;
    unsigned number_out = 0;

    srand((unsigned)_i);
    for (uint32_t i = 0; i < CHUNKS; i++)
        stack[i] = CHUNKS - 1 - i;
    for (unsigned turn = 0; turn < 5000; turn++) {
        if (rand() % 400 < 200 + (turn / 500 % 2 ? 40 : -40)) {
            uint32_t chunk = sxe_chunks_take(chunks);
            if (chunk != (depth > 0 ? stack[depth - 1] : SXE_NONE))
                ck_abort_msg("took %u in turn %u", chunk, turn);
            if (depth == 0)
                continue;
            depth--;
            *sxe_chunks_link(chunks, chunk) = turn;
            out[number_out++] = chunk;
        } else if (number_out > 0) {
            unsigned which = (unsigned)rand() % number_out;
            stack[depth++] = out[which];
            sxe_chunks_give(chunks, out[which]);
            out[which] = out[--number_out];
        }
        if (sxe_chunks_free(chunks) != depth)
            ck_abort_msg("%u free in turn %u", sxe_chunks_free(chunks), turn);
    }
    sxe_chunks_delete(chunks);
}
END_TEST

/* ---- Buffers ---- */

static void
check_bytes(const struct sxe_buffer *buffer, const char *text)
{
    ck_assert_uint_eq(sxe_buffer_length(buffer), strlen(text));
    ck_assert_mem_eq(sxe_buffer_data(buffer), text, strlen(text));
}

START_TEST(borrowing_without_chunks_is_an_ordinary_result)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 1, 10);
    struct sxe_buffer first = SXE_BUFFER_EMPTY;
    struct sxe_buffer second = SXE_BUFFER_EMPTY;

    ck_assert_uint_eq(sxe_buffer_room(&first), 0);
    ck_assert_int_eq(sxe_buffer_borrow(&first, chunks), 0);
    ck_assert_uint_eq(sxe_buffer_length(&first), 0);
    ck_assert_uint_eq(sxe_buffer_room(&first), 10);
    ck_assert_int_eq(sxe_buffer_borrow(&second, chunks), -ENOBUFS);
    ck_assert_uint_eq(second.chunk, SXE_NONE);
    ck_assert_uint_eq(second.size, 0);
    sxe_buffer_give_back(&second, chunks);
    sxe_buffer_give_back(&first, chunks);
    ck_assert_uint_eq(first.size, 0);
    ck_assert_uint_eq(sxe_chunks_free(chunks), 1);
    sxe_buffer_give_back(&first, chunks);
    ck_assert_uint_eq(sxe_chunks_free(chunks), 1);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(adding_is_all_or_nothing)
{
    char memory[8] = "........";
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 0, 8);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "abcde", 5), 0);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "fghi", 4), -ENOBUFS);
    check_bytes(&buffer, "abcde");
    ck_assert_mem_eq(memory, "abcde...", 8);
    ck_assert_int_eq(sxe_buffer_add(&buffer, NULL, 0), 0);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "fgh", 3), 0);
    check_bytes(&buffer, "abcdefgh");
    ck_assert_int_eq(sxe_buffer_add(&buffer, "i", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_buffer_add(&buffer, NULL, 0), 0);
}
END_TEST

static const size_t too_long[] = {
    9, UINT32_MAX, (size_t)UINT32_MAX + 1, (size_t)UINT32_MAX + 2, SIZE_MAX - 1, SIZE_MAX};

START_TEST(lengths_do_not_wrap_around)
{
    char memory[8];
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 2, 8);
    ck_assert_int_eq(sxe_buffer_add(&buffer, memory, too_long[_i]), -ENOBUFS);
    ck_assert_uint_eq(sxe_buffer_length(&buffer), 2);
    sxe_buffer_wrap(&buffer, memory, UINT32_MAX, UINT32_MAX);
    ck_assert_uint_eq(sxe_buffer_room(&buffer), 0);
    ck_assert_int_eq(sxe_buffer_add(&buffer, memory, too_long[_i]), -ENOBUFS);
    sxe_buffer_take(&buffer, 4);
    ck_assert_uint_eq(sxe_buffer_room(&buffer), 4);
    ck_assert_int_eq(sxe_buffer_add(&buffer, memory, too_long[_i]), -ENOBUFS);
}
END_TEST

START_TEST(adding_uses_the_room_in_front_too)
{
    char memory[8];
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 0, 8);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "abcdefgh", 8), 0);
    sxe_buffer_take(&buffer, 5);
    check_bytes(&buffer, "fgh");
    ck_assert_uint_eq(sxe_buffer_room(&buffer), 5);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "ABCDEF", 6), -ENOBUFS);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "ABCDE", 5), 0);
    check_bytes(&buffer, "fghABCDE");
}
END_TEST

START_TEST(taken_bytes_stay_readable_until_something_is_added)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 1, 10);
    struct sxe_buffer buffer = SXE_BUFFER_EMPTY;

    ck_assert_int_eq(sxe_buffer_borrow(&buffer, chunks), 0);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "abcdef", 6), 0);
    char *data = sxe_buffer_data(&buffer);
    sxe_buffer_take(&buffer, 2);
    ck_assert_mem_eq(data, "abcdef", 6);
    sxe_buffer_take(&buffer, 4);
    ck_assert_mem_eq(data, "abcdef", 6);
    ck_assert_uint_eq(sxe_buffer_length(&buffer), 0);
    ck_assert_uint_eq(sxe_buffer_room(&buffer), 10);
    sxe_buffer_give_back(&buffer, chunks);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(clearing_consumes_all)
{
    char memory[8] = "abcdefgh";
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 6, 8);
    sxe_buffer_take(&buffer, 1);
    sxe_buffer_clear(&buffer);
    check_bytes(&buffer, "");
    ck_assert_uint_eq(sxe_buffer_room(&buffer), 8);
    sxe_buffer_clear(&buffer);
    sxe_buffer_take(&buffer, 0);
}
END_TEST

START_TEST(consuming_all_makes_the_room_contiguous_again)
{
    char memory[8] = "abcdefgh";
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 6, 8);
    sxe_buffer_take(&buffer, 6);
    ck_assert_ptr_eq(sxe_buffer_data(&buffer), memory);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "ABCD", 4), 0);
    ck_assert_mem_eq(memory, "ABCDefgh", 8);
}
END_TEST

START_TEST(reserving_gives_all_the_room_in_one_piece)
{
    char memory[8] = "abcdefgh";
    struct sxe_buffer buffer;
    uint32_t room = 77;

    sxe_buffer_wrap(&buffer, memory, 6, 8);
    sxe_buffer_take(&buffer, 4);
    char *into = sxe_buffer_reserve(&buffer, &room);
    ck_assert_uint_eq(room, 6);
    ck_assert_ptr_eq(into, memory + 2);
    memcpy(into, "ABCDEF", 6);
    check_bytes(&buffer, "ef");
    sxe_buffer_commit(&buffer, 0);
    check_bytes(&buffer, "ef");
    sxe_buffer_commit(&buffer, 2);
    check_bytes(&buffer, "efAB");
    sxe_buffer_commit(&buffer, 4);
    check_bytes(&buffer, "efABCDEF");
    ck_assert_ptr_null(sxe_buffer_reserve(&buffer, &room));
    ck_assert_uint_eq(room, 0);
}
END_TEST

START_TEST(empty_handed_buffers_hold_and_find_nothing)
{
    struct sxe_buffer buffer = SXE_BUFFER_EMPTY;
    uint32_t room = 77;

    ck_assert_int_eq(sxe_buffer_add(&buffer, "a", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_buffer_add(&buffer, "a", 0), 0);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%d", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%s", ""), 0);
    ck_assert_ptr_null(sxe_buffer_reserve(&buffer, &room));
    ck_assert_uint_eq(room, 0);
    sxe_buffer_take(&buffer, 0);
    sxe_buffer_clear(&buffer);
    ck_assert_ptr_null(sxe_buffer_find(&buffer, "a", 1));
    ck_assert_ptr_null(sxe_buffer_find_nocase(&buffer, "a", 1));
}
END_TEST

START_TEST(misuse_of_buffers_stops_the_program)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 2, 10);
    char memory[8] = "abcdefgh";
    struct sxe_buffer buffer;
    struct sxe_buffer borrowed = SXE_BUFFER_EMPTY;

    CHECK_STOPS(sxe_buffer_wrap(&buffer, memory, 9, 8), "buffer: 9 bytes used of 8");
    sxe_buffer_wrap(&buffer, memory, 6, 8);
    sxe_buffer_take(&buffer, 1);
    CHECK_STOPS(sxe_buffer_take(&buffer, 6), "buffer: 6 bytes taken of 5");
    CHECK_STOPS(sxe_buffer_take(&buffer, UINT32_MAX), "buffer: 4294967295 bytes taken of 5");
    CHECK_STOPS(sxe_buffer_commit(&buffer, 3), "buffer: 3 bytes committed into 2 of room");
    CHECK_STOPS(sxe_buffer_commit(&buffer, UINT32_MAX), "committed into 2 of room");
    CHECK_STOPS((void)!sxe_buffer_borrow(&buffer, chunks), "lines: the buffer has 8 bytes already");
    check_bytes(&buffer, "bcdef");
    ck_assert_int_eq(sxe_buffer_borrow(&borrowed, chunks), 0);
    CHECK_STOPS((void)!sxe_buffer_borrow(&borrowed, chunks), "the buffer has 10 bytes already");
    ck_assert_uint_eq(sxe_chunks_free(chunks), 1);
    sxe_chunks_delete(chunks);
}
END_TEST

START_TEST(printing_is_all_or_nothing)
{
    char memory[8];
    struct sxe_buffer buffer;

    memset(memory, '.', sizeof(memory));
    sxe_buffer_wrap(&buffer, memory, 0, 7);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%d", 12345678), -ENOBUFS);
    ck_assert_mem_eq(memory, "........", 8);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%d", 1234567), 7);
    ck_assert_mem_eq(memory, "1234567.", 8);
    sxe_buffer_take(&buffer, 3);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%s!", "abc"), -ENOBUFS);
    check_bytes(&buffer, "4567");
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%s", "abc"), 3);
    check_bytes(&buffer, "4567abc");
}
END_TEST

/* Text of 1 KiB or more is formatted in the buffer's room itself, its final zero included. */
START_TEST(long_text_is_printed_too)
{
    enum { BEFORE = 50 };
    static char memory[5000];
    static char expected[5000];
    uint32_t length = (uint32_t)_i;
    struct sxe_buffer buffer;

    for (uint32_t spare = 0; spare <= 2; spare++) {
        memset(expected, 'x', sizeof(expected));
        memset(memory, '.', sizeof(memory));
        sxe_buffer_wrap(&buffer, memory, 2 * BEFORE, BEFORE + length + spare);
        sxe_buffer_take(&buffer, BEFORE);
        memset(expected, '.', BEFORE);
        int result = sxe_buffer_printf(&buffer, "%.*s", _i, expected + BEFORE);
        if (spare == 0 && length >= 1024) {
            ck_assert_int_eq(result, -ENOBUFS);
            ck_assert_uint_eq(sxe_buffer_length(&buffer), BEFORE);
            continue;
        }
        ck_assert_int_eq(result, _i);
        ck_assert_uint_eq(sxe_buffer_length(&buffer), BEFORE + length);
        ck_assert_mem_eq(sxe_buffer_data(&buffer), expected, BEFORE + length);
        ck_assert_int_eq(memory[BEFORE + length + spare], '.');
    }
    sxe_buffer_wrap(&buffer, memory, 0, length - 1);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%.*s", _i, expected + BEFORE), -ENOBUFS);
}
END_TEST

START_TEST(failing_formats_add_nothing)
{
    char memory[8];
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 0, 8);
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%lc", (wint_t)0x7fffffff), -EINVAL);
    ck_assert_uint_eq(sxe_buffer_length(&buffer), 0);
}
END_TEST

START_TEST(random_operations_agree_with_plain_arrays)
{
    uint8_t program[4000];

    srand((unsigned)_i);
    for (size_t i = 0; i < sizeof(program); i++) {
        int random = rand() >> 8;
        program[i] = (uint8_t)(random % 3 ? random % 12 : random % 256);
    }
    const char *wrong = check_buffers(program, sizeof(program));
    ck_assert_msg(wrong == NULL, "%s differs", wrong);
}
END_TEST

#if SXE_HAVE_ASAN
static bool
readable(const char *byte)
{
    return !__asan_address_is_poisoned(byte);
}

START_TEST(free_chunks_and_room_are_poisoned)
{
    struct sxe_chunks *chunks = sxe_chunks_new("lines", 2, 21);
    struct sxe_buffer buffer = SXE_BUFFER_EMPTY;
    uint32_t room;

    ck_assert_int_eq(sxe_buffer_borrow(&buffer, chunks), 0);
    char *data = sxe_buffer_data(&buffer);
    ck_assert(readable(data - SXE_CHUNK_FRONT));
    ck_assert(readable(data - 1));
    ck_assert(!readable(data));
    ck_assert_msg(!readable(data + 28), "the next chunk, which was never taken");
    ck_assert_int_eq(sxe_buffer_add(&buffer, "abc", 3), 0);
    ck_assert(readable(data + 2));
    ck_assert(!readable(data + 3));
    ck_assert_ptr_eq(sxe_buffer_reserve(&buffer, &room), data + 3);
    ck_assert(readable(data + 20));
    ck_assert(!readable(data + 21));
    sxe_buffer_commit(&buffer, 5);
    ck_assert(readable(data + 7));
    ck_assert(!readable(data + 8));
    ck_assert_int_eq(sxe_buffer_printf(&buffer, "%1000d", 1), -ENOBUFS);
    ck_assert(!readable(data + 8));
    sxe_buffer_give_back(&buffer, chunks);
    ck_assert(!readable(data - SXE_CHUNK_FRONT));
    ck_assert(!readable(data));
    ck_assert_uint_eq(sxe_chunks_take(chunks), 0);
    ck_assert(readable(data - SXE_CHUNK_FRONT));
    ck_assert(readable(data + 20));
    ck_assert(!readable(data + 21));
    sxe_chunks_delete(chunks);
}
END_TEST
#endif

/* ---- Searching ---- */

/* A page that may be touched between two that may not. */
static uint8_t *
lonely_page(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
    return pages + page;
}

static void
check_finds(const uint8_t *hay, size_t hay_length, const uint8_t *needle, size_t length)
{
    if (sxe_find(hay, hay_length, needle, length) !=
        naive_find(hay, hay_length, needle, length, false))
        ck_abort_msg("find %zu in %zu", length, hay_length);
    if (sxe_find_nocase(hay, hay_length, needle, length) !=
        naive_find(hay, hay_length, needle, length, true))
        ck_abort_msg("find_nocase %zu in %zu", length, hay_length);
}

/* Letters, and bytes that differ from letters only in the bit that tells upper from lower case. */
static const struct {
    const char *bytes;
    int number;
} alphabets[] = {{"ab", 2},
                 {"aAbB", 4},
                 {"aA\0 ", 4},
                 {"@`[{", 4},
                 {"zZ\x5a\x7a\xda", 5},
                 {"k\xe1\x81\xc1\x01"
                  "A",
                  6},
                 {"\r\n\x2a-\x0d", 5}};

START_TEST(finds_agree_with_a_naive_oracle_at_a_pages_edge)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *hays = lonely_page();
    uint8_t *needles = lonely_page();

    srand((unsigned)_i);
    for (unsigned turn = 0; turn < 20000; turn++) {
        size_t hay_length = (size_t)rand() % 65;
        size_t length = (size_t)rand() % (rand() % 4 ? 6 : 65);
        uint8_t *hay = rand() % 2 ? hays : hays + page - hay_length;
        uint8_t *needle = rand() % 2 ? needles : needles + page - length;

        for (size_t i = 0; i < hay_length; i++)
            hay[i] = (uint8_t)alphabets[_i].bytes[rand() % alphabets[_i].number];
        for (size_t i = 0; i < length; i++)
            needle[i] = (uint8_t)alphabets[_i].bytes[rand() % alphabets[_i].number];
        if (length <= hay_length && rand() % 2)
            memcpy(needle, hay + (size_t)rand() % (hay_length - length + 1), length);
        check_finds(hay, hay_length, needle, length);
    }
}
END_TEST

START_TEST(only_ascii_letters_have_two_cases)
{
    uint8_t hay[20] = "....................";

    for (unsigned in_hay = 0; in_hay < 256; in_hay++) {
        for (unsigned wanted = 0; wanted < 256; wanted++) {
            uint8_t needle[2] = {(uint8_t)wanted, '!'};
            hay[0] = (uint8_t)in_hay;
            check_finds(hay, 1, needle, 1);
            hay[0] = '.';
            hay[5] = (uint8_t)in_hay;
            hay[6] = '!';
            check_finds(hay, 20, needle, 1);
            check_finds(hay, 20, needle, 2);
        }
    }
}
END_TEST

START_TEST(first_match_of_many_is_found)
{
    char text[] = "Connection: close\r\nconnection: keep-alive\r\nCONTENT-length: 5";
    size_t length = strlen(text);

    ck_assert_ptr_eq(sxe_find_nocase(text, length, "CONNECTION:", 11), text);
    ck_assert_ptr_eq(sxe_find(text, length, "connection:", 11), text + 19);
    ck_assert_ptr_eq(sxe_find_nocase(text, length, "content-LENGTH: 5", 17), text + length - 17);
    ck_assert_ptr_null(sxe_find_nocase(text, length - 1, "content-LENGTH: 5", 17));
    ck_assert_ptr_eq(sxe_find(text, length, "", 0), text);
    ck_assert_ptr_eq(sxe_find_nocase(text, length, "", 0), text);
    ck_assert_ptr_eq(sxe_find_nocase(text, 0, NULL, 0), text);
    ck_assert_ptr_null(sxe_find(NULL, 0, "a", 1));
    ck_assert_ptr_null(sxe_find_nocase(NULL, 0, "a", 1));
    ck_assert_ptr_null(sxe_find(text, 3, text, SIZE_MAX));
    ck_assert_ptr_null(sxe_find_nocase(text, 3, text, SIZE_MAX));
}
END_TEST

START_TEST(buffers_are_searched_in_their_unread_bytes_only)
{
    char memory[] = "needle one Needle two NEEDLE";
    struct sxe_buffer buffer;

    sxe_buffer_wrap(&buffer, memory, 21, sizeof(memory));
    ck_assert_ptr_eq(sxe_buffer_find(&buffer, "needle", 6), memory);
    sxe_buffer_take(&buffer, 1);
    ck_assert_ptr_null(sxe_buffer_find(&buffer, "needle", 6));
    ck_assert_ptr_eq(sxe_buffer_find_nocase(&buffer, "needle", 6), memory + 11);
    ck_assert_ptr_eq(sxe_buffer_find(&buffer, "", 0), memory + 1);
    sxe_buffer_take(&buffer, 11);
    ck_assert_ptr_null(sxe_buffer_find_nocase(&buffer, "needle", 6));
}
END_TEST

static void
add_chunk_tests(TCase *chunks)
{
    tcase_add_loop_test(chunks, impossible_numbers_are_refused, 0, NUMBER_OF(impossible));
    tcase_add_test(chunks, possible_numbers_are_not_refused);
    tcase_add_test(chunks, new_chunks_are_all_free);
    tcase_add_test(chunks, failed_allocations_are_told_and_leak_nothing);
    tcase_add_test(chunks, chunks_are_taken_in_ascending_order_until_none_is_left);
    tcase_add_test(chunks, last_given_is_first_taken);
    tcase_add_loop_test(chunks, front_is_zero_whatever_the_last_owner_did, 1, 18);
    tcase_add_loop_test(chunks, chunks_do_not_overlap, 1, 34);
    tcase_add_test(chunks, links_belong_to_the_owner);
    tcase_add_test(chunks, misuse_of_chunks_stops_the_program);
    tcase_add_test_raise_signal(chunks, giving_back_twice_aborts, SIGABRT);
    tcase_add_test(chunks, long_names_are_cut);
    tcase_add_test(chunks, birth_and_death_are_logged);
    tcase_add_test(chunks, memory_is_touched_only_when_used);
    tcase_add_loop_test(chunks, random_takes_and_gives_agree_with_a_plain_stack, 0, 10);
}

static void
add_buffer_tests(TCase *buffers)
{
    tcase_add_test(buffers, borrowing_without_chunks_is_an_ordinary_result);
    tcase_add_test(buffers, adding_is_all_or_nothing);
    tcase_add_loop_test(buffers, lengths_do_not_wrap_around, 0, NUMBER_OF(too_long));
    tcase_add_test(buffers, adding_uses_the_room_in_front_too);
    tcase_add_test(buffers, taken_bytes_stay_readable_until_something_is_added);
    tcase_add_test(buffers, clearing_consumes_all);
    tcase_add_test(buffers, consuming_all_makes_the_room_contiguous_again);
    tcase_add_test(buffers, reserving_gives_all_the_room_in_one_piece);
    tcase_add_test(buffers, empty_handed_buffers_hold_and_find_nothing);
    tcase_add_test(buffers, misuse_of_buffers_stops_the_program);
    tcase_add_test(buffers, printing_is_all_or_nothing);
    tcase_add_loop_test(buffers, long_text_is_printed_too, 1020, 1030);
    tcase_add_loop_test(buffers, long_text_is_printed_too, 4000, 4002);
    tcase_add_test(buffers, failing_formats_add_nothing);
    tcase_add_loop_test(buffers, random_operations_agree_with_plain_arrays, 0, 100);
#if SXE_HAVE_ASAN
    tcase_add_test(buffers, free_chunks_and_room_are_poisoned);
#endif
}

int
main(void)
{
    Suite *suite = suite_create("buffer");
    TCase *chunks = tcase_create("chunks");
    TCase *buffers = tcase_create("buffers");
    TCase *searching = tcase_create("searching");

    add_chunk_tests(chunks);
    add_buffer_tests(buffers);
    tcase_add_loop_test(searching, finds_agree_with_a_naive_oracle_at_a_pages_edge, 0,
                        NUMBER_OF(alphabets));
    tcase_add_test(searching, only_ascii_letters_have_two_cases);
    tcase_add_test(searching, first_match_of_many_is_found);
    tcase_add_test(searching, buffers_are_searched_in_their_unread_bytes_only);
    suite_add_tcase(suite, chunks);
    suite_add_tcase(suite, buffers);
    suite_add_tcase(suite, searching);
    return sxe_test_main(suite);
}
