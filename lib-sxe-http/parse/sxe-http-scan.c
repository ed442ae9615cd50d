/* SPDX-License-Identifier: MIT
 *
 * A set of ASCII bytes is 16 rows, one for each lower half of a byte; a row has a bit for each
 * upper half. So 16 or 32 bytes are looked up at a time, by two shuffles: the row by the lower
 * half, the bit by the upper one. A byte is in the set if its row has its bit. Bytes from 0x80 on
 * have no bit: the shuffle answers 0 for them.
 *
 *     'A' = 0x41     row 1 of VALUE = 0xfc = 1111 1100     bit 4 = 0001 0000     inside
 *     SOH = 0x01     row 1 of VALUE = 0xfc = 1111 1100     bit 0 = 0000 0001     outside
 *
 * Where the length is no multiple of a vector's, the last vector overlaps the one before it.
 */
#include "sxe-http-private.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

#include "sxe-http-list.h"

/* Mark which of up to 64 bytes are outside each of the first `sets` sets; bits from `length` on are
 * 0. */
typedef void mark_function(const char *bytes, size_t length, size_t sets, uint64_t *outside);

enum { LANE = 16 };

/* The sets, for ASCII bytes; see enum sxe__http_set. */
#define IS_ALNUM(c) \
    (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z') || ((c) >= '0' && (c) <= '9'))
#define IS_TOKEN(c)                                                                          \
    (IS_ALNUM(c) || (c) == '!' || ((c) >= '#' && (c) <= '\'') || (c) == '*' || (c) == '+' || \
     (c) == '-' || (c) == '.' || ((c) >= '^' && (c) <= '`') || (c) == '|' || (c) == '~')
#define IS_VALUE(c) ((c) == '\t' || ((c) >= ' ' && (c) <= '~'))
#define IS_TARGET(c)                                                                        \
    (IS_ALNUM(c) || (c) == '!' || (c) == '$' || ((c) >= '&' && (c) <= '/') || (c) == ':' || \
     (c) == ';' || (c) == '=' || (c) == '?' || (c) == '@' || (c) == '[' || (c) == ']' ||    \
     (c) == '_' || (c) == '|' || (c) == '~')

/* The row for the lower half `low` of a byte: bit i says whether the byte with the upper half i is
 * in the set. */
#define ROW(is, low)                                                                     \
    ((is(low)) | (is((low) + 16)) << 1 | (is((low) + 32)) << 2 | (is((low) + 48)) << 3 | \
     (is((low) + 64)) << 4 | (is((low) + 80)) << 5 | (is((low) + 96)) << 6 |             \
     (is((low) + 112)) << 7)
#define ROWS(X)                                                                                 \
    {                                                                                           \
        X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), \
            X(14), X(15)                                                                        \
    }

/* The rows of all three sets for the lower half `low`, side by side in lanes of 16 bits. A lane
 * also has bits for bytes from 0x80 on, because a value may contain them. */
#define LANES(low)                                                                                 \
    ((uint64_t)ROW(IS_TARGET, low) << 2 * LANE | (uint64_t)(0xff00 | ROW(IS_VALUE, low)) << LANE | \
     (uint64_t)ROW(IS_TOKEN, low))

static void
mark_plain(const char *bytes, size_t length, size_t sets, uint64_t *outside)
{
    static const uint64_t rows[16] = ROWS(LANES);
    const uint64_t lowest = UINT64_C(0x000100010001);

    memset(outside, 0, sets * sizeof(*outside));
    for (size_t from = 0; from < length; from += LANE) {
        size_t number = length - from < LANE ? length - from : LANE;
        uint64_t inside = 0;

        for (size_t i = 0; i < number; i++) {
            uint8_t byte = (uint8_t)bytes[from + i];
            inside |= (rows[byte & 15] >> (byte >> 4) & lowest) << i;
        }
        for (size_t set = 0; set < sets; set++) {
            uint64_t lane = ~(inside >> set * LANE) & ((UINT64_C(1) << number) - 1);
            outside[set] |= lane << from;
        }
    }
}

#define TOKEN_ROW(low)  ROW(IS_TOKEN, low)
#define VALUE_ROW(low)  ROW(IS_VALUE, low)
#define TARGET_ROW(low) ROW(IS_TARGET, low)

static const uint8_t set_rows[SXE__HTTP_SETS][16] = {
    [SXE__HTTP_TOKEN] = ROWS(TOKEN_ROW),
    [SXE__HTTP_VALUE] = ROWS(VALUE_ROW),
    [SXE__HTTP_TARGET] = ROWS(TARGET_ROW),
};

/* Names are short, so reading byte by byte is faster than marking 64 bytes. */
bool
sxe_http_is_token(struct sxe_span text)
{
    const uint8_t *rows = set_rows[SXE__HTTP_TOKEN];
    unsigned all = 1;

    for (size_t i = 0; i < text.length; i++) {
        uint8_t byte = (uint8_t)text.base[i];

        all &= (unsigned)rows[byte & 15] >> (byte >> 4);
    }
    return text.length > 0 && all != 0;
}

/* Most values are short, so reading byte by byte is faster than marking 64 bytes. */
bool
sxe_http_is_field_value(struct sxe_span text)
{
    bool is_bad = false;

    for (size_t i = 0; i < text.length; i++) {
        uint8_t byte = (uint8_t)text.base[i];

        is_bad |= (byte < ' ' && byte != '\t') || byte == 0x7F;
    }
    return !is_bad;
}

#if defined(__x86_64__)

static const uint8_t upper_bits[16] = {1, 2, 4, 8, 16, 32, 64, 128};

/* 16 bytes, and for each of them a byte with the bit that the upper half selects in a row. */
struct half {
    __m128i bytes;
    __m128i bits;
};

__attribute__((target("sse4.2"))) static inline struct half
half_at(const char *bytes)
{
    __m128i all = _mm_loadu_si128((const void *)bytes);
    __m128i upper = _mm_and_si128(_mm_srli_epi16(all, 4), _mm_set1_epi8(15));
    __m128i bits = _mm_loadu_si128((const void *)upper_bits);

    return (struct half){all, _mm_shuffle_epi8(bits, upper)};
}

__attribute__((target("sse4.2"))) static inline uint64_t
half_outside(enum sxe__http_set set, struct half half)
{
    __m128i row = _mm_loadu_si128((const void *)set_rows[set]);
    __m128i common = _mm_and_si128(_mm_shuffle_epi8(row, half.bytes), half.bits);

    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(common, _mm_setzero_si128()));
}

__attribute__((target("sse4.2"))) static void
mark_sse42(const char *bytes, size_t length, size_t sets, uint64_t *outside)
{
    uint64_t token = 0;
    uint64_t target = 0;
    uint64_t value = 0;

    if (length < sizeof(__m128i)) {
        mark_plain(bytes, length, sets, outside);
        return;
    }
    for (size_t from = 0; from < length; from += sizeof(__m128i)) {
        size_t at = from + sizeof(__m128i) <= length ? from : length - sizeof(__m128i);
        struct half half = half_at(bytes + at);
        uint64_t high = (uint32_t)_mm_movemask_epi8(half.bytes);

        token |= half_outside(SXE__HTTP_TOKEN, half) << at;
        value |= (half_outside(SXE__HTTP_VALUE, half) & ~high) << at;
        if (sets > SXE__HTTP_TARGET)
            target |= half_outside(SXE__HTTP_TARGET, half) << at;
    }
    outside[SXE__HTTP_TOKEN] = token;
    outside[SXE__HTTP_VALUE] = value;
    outside[SXE__HTTP_TARGET] = target;
}

/* Like struct half, for 32 bytes. */
struct whole {
    __m256i bytes;
    __m256i bits;
};

__attribute__((target("avx2"))) static inline struct whole
whole_at(const char *bytes)
{
    __m256i all = _mm256_loadu_si256((const void *)bytes);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(all, 4), _mm256_set1_epi8(15));
    __m128i bits = _mm_loadu_si128((const void *)upper_bits);

    return (struct whole){all, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bits), upper)};
}

__attribute__((target("avx2"))) static inline uint64_t
whole_outside(enum sxe__http_set set, struct whole whole)
{
    __m128i row = _mm_loadu_si128((const void *)set_rows[set]);
    __m256i found = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), whole.bytes);
    __m256i common = _mm256_and_si256(found, whole.bits);

    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(common, _mm256_setzero_si256()));
}

__attribute__((target("avx2"))) static void
mark_avx2(const char *bytes, size_t length, size_t sets, uint64_t *outside)
{
    struct whole first;
    struct whole last;
    uint64_t high;
    size_t at;

    if (length < sizeof(__m256i)) {
        mark_sse42(bytes, length, sets, outside);
        return;
    }
    at = length - sizeof(__m256i);
    first = whole_at(bytes);
    last = whole_at(bytes + at);
    high = (uint64_t)(uint32_t)_mm256_movemask_epi8(last.bytes) << at |
           (uint32_t)_mm256_movemask_epi8(first.bytes);
    outside[SXE__HTTP_TOKEN] =
        whole_outside(SXE__HTTP_TOKEN, last) << at | whole_outside(SXE__HTTP_TOKEN, first);
    outside[SXE__HTTP_VALUE] =
        (whole_outside(SXE__HTTP_VALUE, last) << at | whole_outside(SXE__HTTP_VALUE, first)) &
        ~high;
    if (sets > SXE__HTTP_TARGET)
        outside[SXE__HTTP_TARGET] =
            whole_outside(SXE__HTTP_TARGET, last) << at | whole_outside(SXE__HTTP_TARGET, first);
}

#endif

/* The functions that mark bytes, the fastest one first; the last one needs no feature of the
 * processor. */
static const struct way {
    const char *name;
    unsigned needs;
    mark_function *mark;
} ways[] = {
#if defined(__x86_64__)
    {"AVX2", SXE__HTTP_AVX2, mark_avx2},
    {"SSE4.2", SXE__HTTP_SSE42, mark_sse42},
#endif
    {"plain", 0, mark_plain},
};

static void mark_first_byte(const char *bytes, size_t length, size_t sets, uint64_t *outside);

static _Atomic(mark_function *) mark = mark_first_byte;

unsigned
sxe__http_scan_features(void)
{
    unsigned features = 0;

#if defined(__x86_64__)
    features |= __builtin_cpu_supports("sse4.2") ? SXE__HTTP_SSE42 : 0;
    features |= __builtin_cpu_supports("avx2") ? SXE__HTTP_AVX2 : 0;
#endif
    return features;
}

const char *
sxe__http_scan_choose(unsigned features)
{
    const struct way *way = ways;

    while ((way->needs & ~features) != 0)
        way++;
    atomic_store_explicit(&mark, way->mark, memory_order_relaxed);
    return way->name;
}

/* Two threads may call this at the same time; both choose the same function. */
static void
mark_first_byte(const char *bytes, size_t length, size_t sets, uint64_t *outside)
{
    sxe__http_scan_choose(sxe__http_scan_features());
    atomic_load_explicit(&mark, memory_order_relaxed)(bytes, length, sets, outside);
}

void
sxe__http_input_load(struct sxe__http_input *in, size_t at)
{
    mark_function *function = atomic_load_explicit(&mark, memory_order_relaxed);
    size_t left = in->end - at;

    in->base = at;
    if (left >= SXE__HTTP_BLOCK || in->end < SXE__HTTP_BLOCK) {
        function(in->data + at, left < SXE__HTTP_BLOCK ? left : SXE__HTTP_BLOCK, in->sets,
                 in->outside);
        return;
    }
    /* Load the last 64 bytes, though some are before `at`: loading only the bytes that are left
     * would be slower. */
    function(in->data + in->end - SXE__HTTP_BLOCK, SXE__HTTP_BLOCK, in->sets, in->outside);
    for (size_t set = 0; set < SXE__HTTP_SETS; set++)
        in->outside[set] >>= SXE__HTTP_BLOCK - left;
}
