/* SPDX-License-Identifier: MIT
 *
 * Searching without regard to case tries eight places at a time. Where the needle matches, its
 * first byte stands at the place, and its last byte `length - 1` bytes further on. So the search
 * compares two words of the hay with those two bytes, each repeated eight times, and compares the
 * bytes between only where both match:
 *
 *     hay        G E T   / i n d e x   H T T P / 1 . 1      needle "http", length 4
 *     first      . . . . . . . . . . . ^ . .                h or H
 *     last             . . . . . . . . . . . ^ . .          p or P, read 3 bytes further on
 *
 * A letter's two cases differ in bit 5 alone, so that bit is set before comparing with a letter,
 * and left alone when comparing with anything else.
 */
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "sxe-buffer.h"

#define EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (uint8_t)(x))

enum { WORD = sizeof(uint64_t), CASE_BIT = 'a' ^ 'A' };

/* One byte of the needle, eight times. */
struct pattern {
    /* if the byte is a letter: the bit that differs between its two cases, eight times; otherwise
     * 0 */
    uint64_t fold;
    uint64_t bytes;
};

static bool
is_ascii_letter(uint8_t byte)
{
    return (uint8_t)((byte | CASE_BIT) - 'a') < 26;
}

static uint8_t
lower_byte(uint8_t byte)
{
    return is_ascii_letter(byte) ? byte | CASE_BIT : byte;
}

static struct pattern
pattern_of(uint8_t byte)
{
    return (struct pattern){is_ascii_letter(byte) ? EACH_BYTE(CASE_BIT) : 0,
                            EACH_BYTE(lower_byte(byte))};
}

/* Compare the eight bytes at `bytes` with the pattern: each byte of the result is 0 if it matches.
 */
static uint64_t
compare_eight_bytes(const uint8_t *bytes, const struct pattern *pattern)
{
    uint64_t word;

    memcpy(&word, bytes, WORD);
    return (word | pattern->fold) ^ pattern->bytes;
}

/* Sets the highest bit of each byte that is zero, and perhaps of bytes above a zero byte. */
static uint64_t
mark_zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE(0x01)) & ~word & EACH_BYTE(0x80);
}

static bool
is_same_text(const uint8_t *hay, const uint8_t *needle, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (lower_byte(hay[i]) != lower_byte(needle[i]))
            return false;
    }
    return true;
}

/* The offset of the first match among places [from, places), or `places`. */
static size_t
find_slowly(const uint8_t *hay, size_t from, size_t places, const uint8_t *needle, size_t length)
{
    while (from < places && !is_same_text(hay + from, needle, length))
        from++;
    return from;
}

static size_t
find_in_words(const uint8_t *hay, size_t places, const uint8_t *needle, size_t length)
{
    struct pattern first = pattern_of(needle[0]);
    struct pattern last = pattern_of(needle[length - 1]);
    size_t at;

    for (at = 0; places - at >= WORD; at += WORD) {
        uint64_t wrong = compare_eight_bytes(hay + at, &first) |
                         compare_eight_bytes(hay + at + length - 1, &last);
        for (uint64_t hits = htole64(mark_zero_bytes(wrong)); hits != 0; hits &= hits - 1) {
            size_t hit = at + (size_t)__builtin_ctzll(hits) / 8;
            if (is_same_text(hay + hit, needle, length))
                return hit;
        }
    }
    return find_slowly(hay, at, places, needle, length);
}

/* Make a pointer into the hay (which may be NULL) without its const, as memmem(3) returns it. */
static void *
place_at(const void *hay, size_t at)
{
    return (void *)((uintptr_t)hay + at);
}

void *
sxe_find(const void *hay, size_t hay_length, const void *needle, size_t length)
{
    if (length == 0)
        return place_at(hay, 0);
    return hay_length < length ? NULL : memmem(hay, hay_length, needle, length);
}

void *
sxe_find_nocase(const void *hay, size_t hay_length, const void *needle, size_t length)
{
    if (length == 0)
        return place_at(hay, 0);
    if (hay_length < length)
        return NULL;
    size_t places = hay_length - length + 1;
    size_t at = find_in_words(hay, places, needle, length);
    return at == places ? NULL : place_at(hay, at);
}
