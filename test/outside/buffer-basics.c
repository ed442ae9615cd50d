/* SPDX-License-Identifier: MIT
 *
 * Buffers and chunks, compared with a plain array that holds the same bytes.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "outside.h"
#include "sxe-buffer.h"

enum { SIZE = 64, CHUNKS = 8 };

static uint32_t
next_random(void)
{
    static uint32_t state = 2463534242;

    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

/* promise: lib-sxe-buffer/sxe-buffer.h: Append a copy of all length bytes. 0; -ENOBUFS: the room is
 * too small, and nothing is added. */
START_TEST(a_buffer_holds_what_an_array_holds)
{
    struct sxe_chunks *chunks = sxe_chunks_new("outside", CHUNKS, SIZE);
    struct sxe_buffer buffer = SXE_BUFFER_EMPTY;
    char model[SIZE], bytes[2 * SIZE];
    uint32_t length = 0;

    ck_assert_int_eq(sxe_buffer_borrow(&buffer, chunks), 0);
    for (unsigned round = 0; round < 100000; round++) {
        uint32_t number = next_random() % (SIZE / 2);
        uint32_t room;
        char *place;
        int result;

        for (uint32_t i = 0; i < number; i++)
            bytes[i] = (char)('a' + next_random() % 26);
        bytes[number] = '\0';
        switch (next_random() % 5) {
        case 0:
        case 1:
            result = next_random() % 2 ? sxe_buffer_add(&buffer, bytes, number)
                                       : sxe_buffer_printf(&buffer, "%s", bytes);
            if (length + number > SIZE) {
                ck_assert_int_eq(result, -ENOBUFS);
            } else {
                ck_assert_int_ge(result, 0);
                memcpy(model + length, bytes, number);
                length += number;
            }
            break;
        case 2:
            number = number < length ? number : length;
            sxe_buffer_take(&buffer, number);
            memmove(model, model + number, length -= number);
            break;
        case 3:
            place = sxe_buffer_reserve(&buffer, &room);
            ck_assert_uint_eq(room, SIZE - length);
            ck_assert_int_eq(place == NULL, room == 0);
            number = number < room ? number : room;
            if (place != NULL) {
                memcpy(place, bytes, number);
                sxe_buffer_commit(&buffer, number);
                memcpy(model + length, bytes, number);
                length += number;
            }
            break;
        default:
            if (next_random() % 20 == 0) {
                sxe_buffer_clear(&buffer);
                length = 0;
            }
        }
        ck_assert_uint_eq(sxe_buffer_length(&buffer), length);
        ck_assert_uint_eq(sxe_buffer_room(&buffer), SIZE - length);
        ck_assert_int_eq(memcmp(sxe_buffer_data(&buffer), model, length), 0);
    }
    sxe_buffer_give_back(&buffer, chunks);
    ck_assert_uint_eq(sxe_chunks_free(chunks), CHUNKS);
    sxe_buffer_give_back(&buffer, chunks);
    ck_assert_uint_eq(sxe_chunks_free(chunks), CHUNKS);
    sxe_chunks_delete(chunks);
}
END_TEST

/* promise: lib-sxe-buffer/sxe-buffer.h: The chunk's first byte; the 4 before it are zero. */
START_TEST(chunks_do_not_touch_each_other)
{
    static const char zeros[SXE_CHUNK_FRONT];
    struct sxe_chunks *chunks = sxe_chunks_new("outside", CHUNKS, SIZE);
    uint32_t taken[CHUNKS];

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < CHUNKS; i++) {
            taken[i] = sxe_chunks_take(chunks);
            ck_assert_uint_ne(taken[i], SXE_NONE);
            ck_assert_uint_eq(*sxe_chunks_link(chunks, taken[i]), SXE_NONE);
            *sxe_chunks_link(chunks, taken[i]) = i;
            memset(sxe_chunks_data(chunks, taken[i]), 'a' + (int)i, SIZE);
        }
        ck_assert_uint_eq(sxe_chunks_take(chunks), SXE_NONE);
        ck_assert_uint_eq(sxe_chunks_free(chunks), 0);
        for (unsigned i = 0; i < CHUNKS; i++) {
            const char *data = sxe_chunks_data(chunks, taken[i]);

            ck_assert_int_eq(memcmp(data - SXE_CHUNK_FRONT, zeros, SXE_CHUNK_FRONT), 0);
            for (unsigned byte = 0; byte < SIZE; byte++)
                ck_assert_int_eq(data[byte], 'a' + (int)i);
        }
        for (unsigned i = 0; i < CHUNKS; i++)
            sxe_chunks_give(chunks, taken[(i + round) % CHUNKS]);
        ck_assert_uint_eq(sxe_chunks_free(chunks), CHUNKS);
    }
    sxe_chunks_delete(chunks);
    sxe_chunks_delete(NULL);
}
END_TEST

/* promise: lib-sxe-buffer/sxe-buffer.h: Find needle in the unread bytes: a pointer to the first
 * match, or NULL. */
START_TEST(a_search_finds_the_first_match)
{
    for (unsigned round = 0; round < 100000; round++) {
        char hay[100];
        char needle[5];
        const size_t length = next_random() % sizeof(hay);
        const size_t needle_length = next_random() % sizeof(needle);
        const char *first = NULL, *first_nocase = NULL;

        for (size_t i = 0; i < length; i++)
            hay[i] = "aAbB\0\xe1\xc1@`"[next_random() % 9];
        for (size_t i = 0; i < needle_length; i++)
            needle[i] = "aAbB\0\xe1\xc1@`"[next_random() % 9];
        for (size_t i = 0; i + needle_length <= length; i++) {
            bool is_like = true;

            for (size_t k = 0; k < needle_length; k++) {
                const char a = hay[i + k], b = needle[k];

                is_like = is_like &&
                          (a == b || ((a | 32) == (b | 32) && (a | 32) >= 'a' && (a | 32) <= 'z'));
            }
            if (first == NULL && memcmp(hay + i, needle, needle_length) == 0)
                first = hay + i;
            if (first_nocase == NULL && is_like)
                first_nocase = hay + i;
        }
        ck_assert_ptr_eq(sxe_find(hay, length, needle, needle_length), first);
        ck_assert_ptr_eq(sxe_find_nocase(hay, length, needle, needle_length), first_nocase);
    }
}
END_TEST

/* promise: lib-sxe-buffer/sxe-buffer.h: NULL with errno EINVAL (a 0, a number above 2^32-2, or more
 * bytes than can be addressed) or ENOMEM. */
START_TEST(impossible_sizes_of_chunks_are_refused)
{
    static const struct {
        uint32_t number, size;
        int error;
    } cases[] = {{0, 1, EINVAL},
                 {1, 0, EINVAL},
                 {0, 0, EINVAL},
                 {UINT32_MAX, 1, EINVAL},
                 {UINT32_MAX - 1, UINT32_MAX, EINVAL}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        errno = 0;
        ck_assert_ptr_null(sxe_chunks_new("outside", cases[i].number, cases[i].size));
        ck_assert_int_eq(errno, cases[i].error);
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_buffer_holds_what_an_array_holds, chunks_do_not_touch_each_other,
                            a_search_finds_the_first_match, impossible_sizes_of_chunks_are_refused,
                            NULL};

    return outside_run("buffer-basics", cases);
}
