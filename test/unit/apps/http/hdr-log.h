/* SPDX-License-Identifier: MIT
 *
 * What: a reader of logs of HdrHistogram, with histograms in its V2 encoding. Place: fixture. It
 * shares no code with the writer; it computes the bounds of a bucket as HdrHistogram's
 * documentation does, from the number of digits and the lowest value in the encoding.
 *
 *     struct hdr_line line;
 *     const char *rest = hdr_line_read(&line, text);       the first line after the head
 */
#ifndef HDR_LOG_H
#define HDR_LOG_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define HDR_BUCKETS_MAX 32768
#define HDR_BYTES_MAX   (1 << 20)

struct hdr_bucket {
    uint64_t from; /* both from and to are inclusive */
    uint64_t to;
    uint64_t count;
};

struct hdr_line {
    char tag[32]; /* "": no tag */
    double start;
    double length;
    double max;
    uint64_t digits, lowest, highest;
    uint64_t count;
    size_t packed_size;
    unsigned number;
    struct hdr_bucket buckets[HDR_BUCKETS_MAX]; /* the buckets that are not empty */
};

/* The position of the next byte, and the end. */
struct hdr_bytes {
    const uint8_t *at;
    const uint8_t *end;
};

static inline uint64_t
hdr_number(struct hdr_bytes *bytes, unsigned size)
{
    uint64_t number = 0;

    ck_assert_int_ge(bytes->end - bytes->at, size);
    while (size-- > 0)
        number = number * 256 + *bytes->at++;
    return number;
}

/* Read a number in ZigZag LEB128 of at most nine bytes. */
static inline int64_t
hdr_count(struct hdr_bytes *bytes)
{
    uint64_t bits = 0;
    uint8_t byte;
    unsigned i = 0;

    do {
        byte = (uint8_t)hdr_number(bytes, 1);
        bits |= (uint64_t)(i < 8 ? byte & 127 : byte) << 7 * i;
    } while (++i < 9 && byte >= 128);
    return bits % 2 == 0 ? (int64_t)(bits / 2) : -(int64_t)(bits / 2) - 1;
}

/* Decode base64 (RFC 4648) up to a comma or the end of the line. */
static inline size_t
hdr_unbase64(uint8_t *to, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strcspn(text, ",\n");
    size_t size = length / 4 * 3;
    unsigned bits = 0;

    ck_assert_uint_eq(length % 4, 0);
    for (size_t i = 0; i < length; i++) {
        const char *digit = text[i] != '=' ? strchr(digits, text[i]) : digits;

        ck_assert_ptr_nonnull(digit);
        bits = bits << 6 | (unsigned)(digit - digits);
        for (unsigned k = 0; i % 4 == 3 && k < 3; k++)
            *to++ = (uint8_t)(bits >> (16 - 8 * k));
    }
    return size - (text[length - 1] == '=') - (text[length - 2] == '=');
}

/* The array of counts: `half` buckets for each power of two, twice as many for the first. */
struct hdr_layout {
    unsigned half; /* a power of two: at least 10^digits */
    unsigned unit; /* log2 of the lowest value that has a bucket of its own */
    unsigned length;
};

static inline struct hdr_layout
hdr_layout(const struct hdr_line *line)
{
    struct hdr_layout layout = {.half = 1};
    uint64_t ten = 1, above;

    for (unsigned i = 0; i < line->digits; i++)
        ten *= 10;
    while (layout.half < ten)
        layout.half *= 2;
    while (line->lowest >> (layout.unit + 1) > 0)
        layout.unit++;
    layout.length = 2 * layout.half;
    for (above = (uint64_t)layout.length << layout.unit; above <= line->highest; above *= 2)
        layout.length += layout.half;
    return layout;
}

static inline uint64_t
hdr_value(const struct hdr_layout *layout, unsigned index)
{
    if (index < 2 * layout->half)
        return (uint64_t)index << layout->unit;
    return (uint64_t)(index % layout->half + layout->half)
           << (index / layout->half - 1 + layout->unit);
}

static inline void
hdr_take_counts(struct hdr_line *line, struct hdr_bytes *bytes)
{
    struct hdr_layout layout = hdr_layout(line);
    unsigned index = 0;

    line->count = line->number = 0;
    while (bytes->at < bytes->end) {
        int64_t count = hdr_count(bytes);

        if (count > 0) {
            line->buckets[line->number++] = (struct hdr_bucket){
                hdr_value(&layout, index), hdr_value(&layout, index + 1) - 1, (uint64_t)count};
            line->count += (uint64_t)count;
        }
        index += count < 0 ? (unsigned)-count : 1;
        ck_assert_uint_le(index, layout.length);
    }
}

static inline void
hdr_decode(struct hdr_line *line, const char *text)
{
    static uint8_t packed[HDR_BYTES_MAX], plain[HDR_BYTES_MAX];
    struct hdr_bytes bytes = {packed, packed + hdr_unbase64(packed, text)};
    unsigned long size = sizeof(plain);

    line->packed_size = (size_t)(bytes.end - packed);
    ck_assert_uint_eq(hdr_number(&bytes, 4), 0x1c849304 | 0x10);
    ck_assert_uint_eq(hdr_number(&bytes, 4), (size_t)(bytes.end - bytes.at));
    ck_assert_int_eq(uncompress(plain, &size, bytes.at, (unsigned long)(bytes.end - bytes.at)),
                     Z_OK);
    bytes = (struct hdr_bytes){plain, plain + size};
    ck_assert_uint_eq(hdr_number(&bytes, 4), 0x1c849303 | 0x10);
    ck_assert_uint_eq(hdr_number(&bytes, 4), size - 40);
    ck_assert_uint_eq(hdr_number(&bytes, 4), 0);
    line->digits = hdr_number(&bytes, 4);
    line->lowest = hdr_number(&bytes, 8);
    line->highest = hdr_number(&bytes, 8);
    ck_assert_uint_eq(hdr_number(&bytes, 8), 0x3ff0000000000000); /* 1.0 */
    hdr_take_counts(line, &bytes);
}

/* Read a line after the head; returns the text after it. */
static inline const char *
hdr_line_read(struct hdr_line *line, const char *text)
{
    char *end;

    line->tag[0] = '\0';
    if (strncmp(text, "Tag=", 4) == 0) {
        snprintf(line->tag, sizeof(line->tag), "%.*s", (int)strcspn(text + 4, ","), text + 4);
        text = strchr(text, ',') + 1;
    }
    line->start = strtod(text, &end);
    ck_assert_int_eq(*end, ',');
    line->length = strtod(end + 1, &end);
    ck_assert_int_eq(*end, ',');
    line->max = strtod(end + 1, &end);
    ck_assert_int_eq(*end, ',');
    hdr_decode(line, end + 1);
    ck_assert_ptr_nonnull(strchr(end, '\n'));
    return strchr(end, '\n') + 1;
}

/* The longest value in the bucket that contains this rank; ranks begin at 1. */
static inline uint64_t
hdr_at_rank(const struct hdr_line *line, uint64_t rank)
{
    unsigned i = 0;

    for (uint64_t seen = line->buckets[0].count; seen < rank; seen += line->buckets[i].count)
        i++;
    return line->buckets[i].to;
}

#endif
