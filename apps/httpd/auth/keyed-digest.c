/* SPDX-License-Identifier: MIT
 *
 * SipHash-2-4-128.
 */
#include "keyed-digest.h"

static uint64_t
rotate_left(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

static void
mix_state(uint64_t v[4], unsigned rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[3];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[2] = rotate_left(v[2], 32);
    }
}

static void
absorb_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix_state(v, 2);
    v[0] ^= word;
}

struct keyed_digest
keyed_digest(const uint64_t key[2], const void *bytes, size_t length)
{
    uint64_t v[4] = {UINT64_C(0x736f6d6570736575) ^ key[0],
                     UINT64_C(0x646f72616e646f6d) ^ key[1] ^ 0xee,
                     UINT64_C(0x6c7967656e657261) ^ key[0], UINT64_C(0x7465646279746573) ^ key[1]};
    const unsigned char *byte = bytes;
    struct keyed_digest digest;
    uint64_t word = 0;

    for (size_t i = 0; i < length; i++) {
        word |= (uint64_t)byte[i] << (i % 8 * 8);
        if (i % 8 == 7) {
            absorb_word(v, word);
            word = 0;
        }
    }
    absorb_word(v, word | (uint64_t)length << 56);
    v[2] ^= 0xee;
    mix_state(v, 4);
    digest.half[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    mix_state(v, 4);
    digest.half[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
    return digest;
}
