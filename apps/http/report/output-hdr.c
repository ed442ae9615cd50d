/* SPDX-License-Identifier: MIT
 *
 * A log of histograms that HdrHistogram's HistogramLogReader can read (format 1.3). It has a line
 * for each trial and each kind of time, which the line's tag names; times are in us. The times of
 * connect are left out, because most of them were taken before the interval that a line names.
 *
 *     Tag=service,StartTimestamp,Interval_Length,Interval_Max,base64 of:
 *         cookie, length, and by zlib
 *             cookie, length, offset, digits, lowest, highest, ratio     big endian, 40 bytes
 *             counts, each ZigZag LEB128 (a run of n empty ones is -n)
 *
 * With three digits, and a largest value of 1 h in us, HdrHistogram has the same buckets as
 * histogram.h. So the counts are copied one by one, and nothing is lost.
 */
#define ZLIB_CONST
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "output.h"
#include "sxe-util.h"

#define NS 1e9
#define US 1e3

/* the cookie of format V2, in which a count has a variable length */
#define COOKIE_COUNTS     0x1c849313u
#define COOKIE_COMPRESSED 0x1c849314u
#define DIGITS            3
#define LOWEST_US         1
/* the floating-point number 1.0: values are not scaled */
#define RATIO_BITS    0x3ff0000000000000u
#define HEADER_SIZE   40u
#define HEADER_PACKED 8u
/* the bytes of the longest count; a run of empty buckets takes fewer */
#define COUNT_SIZE  9u
#define BITS_A_BYTE 7u
#define GOES_ON     0x80u

/* There are 1,024 buckets for each of the 21 powers of two from 2,048 us to 1 h, and 2,048 buckets
 * below. */
_Static_assert(LOAD_HISTOGRAM_BUCKETS == 23 * 1024, "as many counts as HdrHistogram has");

/* ---- Encoding ---- */

static uint8_t *
put_big_endian(uint8_t *to, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0)
        *to++ = (uint8_t)(value >> 8 * bytes);
    return to;
}

/* Write a number in LEB128: seven bits in each byte, the lowest first. If there is a ninth byte, it
 * has the eight bits that are left. */
static uint8_t *
put_bits(uint8_t *to, uint64_t bits)
{
    for (unsigned i = 1; i < COUNT_SIZE && bits >= GOES_ON; i++) {
        *to++ = (uint8_t)(bits | GOES_ON);
        bits >>= BITS_A_BYTE;
    }
    *to++ = (uint8_t)bits;
    return to;
}

/* Write a number in ZigZag: n becomes 2n, and -n becomes 2n - 1. */
static uint8_t *
put_counts(uint8_t *to, const struct load_histogram *histogram)
{
    struct load_bucket bucket;
    unsigned next = 0, before = 0;

    while (load_histogram_next(histogram, &next, &bucket)) {
        unsigned empty = next - 1 - before;

        if (empty > 0)
            to = put_bits(to, 2 * empty - 1);
        to = put_bits(to, 2 * bucket.count);
        before = next;
    }
    return to;
}

/* Write the header and the counts. Returns how many bytes were written. */
static size_t
encode_counts(uint8_t *bytes, const struct load_histogram *histogram)
{
    uint8_t *end = put_counts(bytes + HEADER_SIZE, histogram);
    uint8_t *to = put_big_endian(bytes, COOKIE_COUNTS, 4);

    to = put_big_endian(to, (uint64_t)(end - bytes) - HEADER_SIZE, 4);
    to = put_big_endian(to, 0, 4);
    to = put_big_endian(to, DIGITS, 4);
    to = put_big_endian(to, LOWEST_US, 8);
    to = put_big_endian(to, LOAD_HISTOGRAM_MAX_NS / 1000, 8);
    put_big_endian(to, RATIO_BITS, 8);
    return (size_t)(end - bytes);
}

/* ---- Compression ---- */

static void *
allocate_for_zlib(void *nothing, unsigned number, unsigned size)
{
    SXE_UNUSED_PARAMETER(nothing);
    return calloc(number, size);
}

static void
release_for_zlib(void *nothing, void *memory)
{
    SXE_UNUSED_PARAMETER(nothing);
    free(memory);
}

/* Compress bytes. NULL: no memory. The caller frees the result. */
static uint8_t *
pack_bytes(const uint8_t *bytes, size_t size, size_t *packed_size)
{
    z_stream stream = {.zalloc = allocate_for_zlib,
                       .zfree = release_for_zlib,
                       .next_in = bytes,
                       .avail_in = (unsigned)size};
    unsigned long bound;
    uint8_t *packed;

    if (deflateInit(&stream, Z_BEST_COMPRESSION) != Z_OK)
        return NULL;
    bound = deflateBound(&stream, size);
    packed = malloc(HEADER_PACKED + bound);
    if (packed != NULL) {
        stream.next_out = packed + HEADER_PACKED;
        stream.avail_out = (unsigned)bound;
        /* this cannot fail, because there is room for the whole output */
        deflate(&stream, Z_FINISH);
        put_big_endian(put_big_endian(packed, COOKIE_COMPRESSED, 4), stream.total_out, 4);
        *packed_size = HEADER_PACKED + stream.total_out;
    }
    deflateEnd(&stream);
    return packed;
}

/* Make the payload of a line, which the caller frees. NULL: no memory. */
static uint8_t *
pack_histogram(const struct load_histogram *histogram, size_t *size)
{
    uint8_t *bytes = malloc(HEADER_SIZE + LOAD_HISTOGRAM_BUCKETS * COUNT_SIZE);
    uint8_t *packed = NULL;

    if (bytes != NULL)
        packed = pack_bytes(bytes, encode_counts(bytes, histogram), size);
    free(bytes);
    return packed;
}

/* ---- Lines ---- */

/* Write bytes in base64 (RFC 4648, 4). */
static void
write_base64(FILE *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned three = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);

        putc(digits[three >> 18], out);
        putc(digits[three >> 12 & 63], out);
        putc(left > 1 ? digits[three >> 6 & 63] : '=', out);
        putc(left > 2 ? digits[three & 63] : '=', out);
    }
}

static int
write_hdr_times(FILE *out, const char *tag, const struct load_run *run,
                const struct load_result *result, const struct load_histogram *histogram)
{
    uint8_t *packed;
    size_t size = 0;

    if (histogram->count == 0)
        return 0;
    packed = pack_histogram(histogram, &size);
    if (packed == NULL)
        return -ENOMEM;
    fprintf(out, "Tag=%s,%.3f,%.3f,%.3f,", tag,
            (double)load_later_part(result->started_ns, run->started_ns) / NS,
            (double)result->elapsed_ns / NS, (double)histogram->max_ns / US);
    write_base64(out, packed, size);
    putc('\n', out);
    free(packed);
    return 0;
}

static int
write_trial(FILE *out, const struct load_run *run, const struct load_result *result)
{
    const struct {
        const char *tag;
        const struct load_histogram *histogram;
    } times[] = {
        {"first_byte", &result->first_byte},
        {"service", &result->service},
        {"response", &result->response},
    };
    int error = 0;

    for (unsigned i = 0; i < SXE_COUNT(times) && error == 0; i++)
        error = write_hdr_times(out, times[i].tag, run, result, times[i].histogram);
    return error;
}

/* Write the log. The lines of its head must have less than 128 characters, because readers written
 * in C have no room for more. */
int
load_output_hdr(FILE *out, const struct load_run *run)
{
    int error = 0;

    fprintf(out, "#[Logged by sxe-http " SXE_VERSION ", times in us]\n");
    fprintf(out, "#[Histogram log format version 1.3]\n");
    fprintf(out, "#[StartTime: %.3f (seconds since epoch), %s]\n", (double)run->started_s,
            run->started_at);
    if (run->total->response.censored > 0)
        fprintf(out, "#[Failed: %llu requests, counted as what they waited at least]\n",
                (unsigned long long)run->total->response.censored);
    fprintf(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
                 "\"Interval_Compressed_Histogram\"\n");
    for (unsigned i = 0; i < run->trials_number && error == 0; i++)
        error = write_trial(out, run, run->trials[i].result);
    return error < 0 ? error : load_output_finish(out);
}
