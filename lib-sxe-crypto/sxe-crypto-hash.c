/* SPDX-License-Identifier: MIT
 *
 * Digests and HMAC, of a string at once, and in parts by an object.
 */
#include "sxe-crypto-private.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <string.h>

#include "sxe-always-internal.h"

#define CLASS "sxe.crypto.hash"

enum { HASH_KILOBYTES = 1 };

/* Both members are NULL after the hash was finished or closed. */
struct hash {
    EVP_MD_CTX *digest;
    EVP_MAC_CTX *mac;
};

const EVP_MD *
sxe__crypto_check_digest(lua_State *L, int argument)
{
    static const struct {
        const char *name;
        const EVP_MD *(*get)(void);
    } digests[] = {
        {"md5", EVP_md5},
        {"sha1", EVP_sha1},
        {"sha256", EVP_sha256},
        {"sha384", EVP_sha384},
        {"sha512", EVP_sha512},
        {"sha3-256", EVP_sha3_256},
        {"sha3-384", EVP_sha3_384},
        {"sha3-512", EVP_sha3_512},
        {"blake2b", EVP_blake2b512},
        {"blake2s", EVP_blake2s256},
    };
    enum { DIGESTS = sizeof(digests) / sizeof(digests[0]) };
    size_t length, i = 0;
    const char *name = luaL_checklstring(L, argument, &length);

    while (i < DIGESTS && !sxe__crypto_is(name, length, digests[i].name))
        i++;
    if (i == DIGESTS)
        luaL_argerror(L, argument,
                      lua_pushfstring(L,
                                      "no digest '%s'; there are md5, sha1, sha256, sha384, "
                                      "sha512, sha3-256, sha3-384, sha3-512, blake2b and blake2s",
                                      name));
    return digests[i].get();
}

/* ---- At once ---- */

static int
get_digest(lua_State *L)
{
    const EVP_MD *md = sxe__crypto_check_digest(L, 1);
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned number;
    size_t length;
    const char *text = luaL_checklstring(L, 2, &length);

    if (EVP_Digest(text, length, bytes, &number, md, NULL) != 1)
        return sxe__crypto_raise(L, "crypto.digest");
    lua_pushlstring(L, (const char *)bytes, number);
    return 1;
}

static int
get_hmac(lua_State *L)
{
    const EVP_MD *md = sxe__crypto_check_digest(L, 1);
    uint8_t bytes[EVP_MAX_MD_SIZE];
    size_t key_length, length, number;
    const char *key = luaL_checklstring(L, 2, &key_length);
    const char *text = luaL_checklstring(L, 3, &length);

    if (EVP_Q_mac(NULL, "HMAC", NULL, EVP_MD_get0_name(md), NULL, key, key_length,
                  (const uint8_t *)text, length, bytes, sizeof(bytes), &number) == NULL)
        return sxe__crypto_raise(L, "crypto.hmac");
    lua_pushlstring(L, (const char *)bytes, number);
    return 1;
}

/* ---- In parts ---- */

static struct hash *
check_hash(lua_State *L)
{
    struct hash *hash = luaL_checkudata(L, 1, CLASS);

    if (hash->digest == NULL && hash->mac == NULL)
        luaL_error(L, "the digest is finished or closed");
    return hash;
}

static void
free_hash(struct hash *hash)
{
    EVP_MD_CTX_free(hash->digest);
    EVP_MAC_CTX_free(hash->mac);
    *hash = (struct hash){NULL, NULL};
}

static int
close_hash(lua_State *L)
{
    free_hash(luaL_checkudata(L, 1, CLASS));
    return 0;
}

static struct hash *
push_hash(lua_State *L)
{
    struct hash *hash = lua_newuserdatauv(L, sizeof(*hash), 0);

    *hash = (struct hash){NULL, NULL};
    luaL_setmetatable(L, CLASS);
    return hash;
}

static int
new_digest(lua_State *L)
{
    const EVP_MD *md = sxe__crypto_check_digest(L, 1);
    struct hash *hash = push_hash(L);

    hash->digest = EVP_MD_CTX_new();
    if (hash->digest == NULL || EVP_DigestInit_ex(hash->digest, md, NULL) != 1)
        return sxe__crypto_raise(L, "crypto.new_digest");
    sxe__crypto_count(L, HASH_KILOBYTES);
    return 1;
}

static int
new_hmac(lua_State *L)
{
    const EVP_MD *md = sxe__crypto_check_digest(L, 1);
    const OSSL_PARAM params[] = {
        OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)EVP_MD_get0_name(md), 0),
        OSSL_PARAM_END};
    size_t length;
    const char *key = luaL_checklstring(L, 2, &length);
    struct hash *hash = push_hash(L);
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

    hash->mac = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac); /* the context holds a reference to mac */
    if (hash->mac == NULL || EVP_MAC_init(hash->mac, (const uint8_t *)key, length, params) != 1)
        return sxe__crypto_raise(L, "crypto.new_hmac");
    sxe__crypto_count(L, HASH_KILOBYTES);
    return 1;
}

/* hash:add(text) returns the object, so that calls can be chained. */
static int
hash_add(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 2, &length);
    const struct hash *hash = check_hash(L);
    const int result = hash->digest != NULL
                           ? EVP_DigestUpdate(hash->digest, text, length)
                           : EVP_MAC_update(hash->mac, (const uint8_t *)text, length);

    if (SXE_NEVER(result != 1)) /* the call allocates nothing, so it cannot fail */
        return sxe__crypto_raise(L, "hash:add");
    lua_settop(L, 1);
    return 1;
}

static int
finish_hash(lua_State *L)
{
    struct hash *hash = check_hash(L);
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned number = 0;
    size_t length = 0;
    const int result = hash->digest != NULL
                           ? EVP_DigestFinal_ex(hash->digest, bytes, &number)
                           : EVP_MAC_final(hash->mac, bytes, &length, sizeof(bytes));

    free_hash(hash);
    if (result != 1)
        return sxe__crypto_raise(L, "hash:finish");
    lua_pushlstring(L, (const char *)bytes, number + length);
    return 1;
}

void
sxe__crypto_add_hash(lua_State *L)
{
    static const luaL_Reg functions[] = {{"digest", get_digest},
                                         {"hmac", get_hmac},
                                         {"new_digest", new_digest},
                                         {"new_hmac", new_hmac},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"add", hash_add}, {"finish", finish_hash}, {"close", close_hash}, {NULL, NULL}};

    sxe__crypto_new_class(L, CLASS, close_hash, methods);
    luaL_setfuncs(L, functions, 0);
}
