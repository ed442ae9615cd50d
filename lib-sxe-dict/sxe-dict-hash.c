/* SPDX-License-Identifier: MIT
 *
 * SipHash-1-3: the construction of J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input
 * PRF" (2012), with one round a word and three at the end.
 */
#include "sxe-dict-private.h"

static inline uint64_t
rotate_word(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_word(v[1], 13) ^ v[0];
    v[0] = rotate_word(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_word(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_word(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_word(v[1], 17) ^ v[2];
    v[2] = rotate_word(v[2], 32);
}

static inline void
mix_lanes(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

/* The words are little-endian, like everything in a pool's file. */
uint64_t
sxe__dict_hash(const uint64_t key[2], const void *bytes, size_t size)
{
    const char *at = bytes;
    uint64_t last = (uint64_t)size << 56;
    uint64_t v[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575),
        key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261),
        key[1] ^ UINT64_C(0x7465646279746573),
    };

    for (size_t left = size / 8; left > 0; left--, at += 8) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        mix_lanes(v, word);
    }
    for (unsigned i = 0; i < size % 8; i++)
        last |= (uint64_t)(unsigned char)at[i] << (8 * i);
    mix_lanes(v, last);
    v[2] ^= 0xff;
    for (unsigned i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
