/* SPDX-License-Identifier: MIT
 *
 * SipHash-1-3, compared with a second implementation of its definition, and the key that is used.
 */
#include "sxe-dict-private.h"
#include "test-main.h"

/* SipHash by its definition, in another order than the library: bytes in a padded copy, a counter
 * for rounds. It was checked with 2-4 rounds against the vector in the paper: key 00..0f, message
 * 00..0e: a129ca6149be45e5. */
static uint64_t
sip(unsigned c, unsigned d, const uint8_t key[16], const uint8_t *message, size_t size)
{
    static const char constant[] = "somepseudorandomlygeneratedbytes";
    uint64_t v[4];
    uint64_t k[2] = {0, 0};
    uint8_t padded[80] = {0};
    const size_t words = size / 8 + 1;

    memcpy(padded, message, size);
    padded[words * 8 - 1] = (uint8_t)size;
    for (unsigned i = 0; i < 16; i++)
        k[i / 8] += (uint64_t)key[i] << (i % 8 * 8);
    for (unsigned i = 0; i < 4; i++) {
        v[i] = 0;
        for (unsigned j = 0; j < 8; j++)
            v[i] = v[i] << 8 | (uint8_t)constant[i * 8 + j];
        v[i] ^= k[i % 2];
    }
    for (size_t word = 0; word <= words; word++) {
        uint64_t m = 0;

        for (unsigned i = 0; i < 8 && word < words; i++)
            m += (uint64_t)padded[word * 8 + i] << (i * 8);
        v[2] ^= word == words ? 0xff : 0;
        v[3] ^= m;
        for (unsigned i = 0; i < (word == words ? d : c); i++) {
#define ROTATED(x, n) ((x) << (n) | (x) >> (64 - (n)))
            v[0] += v[1];
            v[2] += v[3];
            v[1] = ROTATED(v[1], 13);
            v[3] = ROTATED(v[3], 16);
            v[1] ^= v[0];
            v[3] ^= v[2];
            v[0] = ROTATED(v[0], 32);
            v[2] += v[1];
            v[0] += v[3];
            v[1] = ROTATED(v[1], 17);
            v[3] = ROTATED(v[3], 21);
            v[1] ^= v[2];
            v[3] ^= v[0];
            v[2] = ROTATED(v[2], 32);
#undef ROTATED
        }
        v[0] ^= m;
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

START_TEST(hash_is_siphash_1_3)
{
    uint8_t bytes[64];
    uint64_t key[2];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    memcpy(key, bytes, sizeof(key));
    ck_assert_uint_eq(sip(2, 4, bytes, bytes, 15), UINT64_C(0xa129ca6149be45e5));
    for (size_t size = 0; size < sizeof(bytes); size++)
        ck_assert_uint_eq(sxe__dict_hash(key, bytes, size), sip(1, 3, bytes, bytes, size));
}
END_TEST

START_TEST(key_differs_from_dict_to_dict)
{
    const SXE_DICT_SPEC spec = {.name = "test", .cells = 10};
    SXE_DICT *dict[2] = {sxe_dict_open(&spec, NULL), sxe_dict_open(&spec, NULL)};

    ck_assert(dict[0] != NULL && dict[1] != NULL);
    ck_assert_uint_ne(dict[0]->hash_key[0], dict[1]->hash_key[0]);
    ck_assert_uint_ne(dict[0]->hash_key[1], dict[1]->hash_key[1]);
    sxe_dict_close(dict[0]);
    sxe_dict_close(dict[1]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-hash");
    TCase *tcase = tcase_create("hash");

    tcase_add_test(tcase, hash_is_siphash_1_3);
    tcase_add_test(tcase, key_differs_from_dict_to_dict);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
