/* SPDX-License-Identifier: MIT
 *
 * Keys that are derived: HKDF from a secret (RFC 5869), PBKDF2 from a password (RFC 8018).
 */
#include "sxe-crypto-private.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

enum {
    ROUNDS = 600000, /* what OWASP recommends for sha256 */
    ROUNDS_MAX = 10000000,
    HKDF_BLOCKS = 255,
    /* OpenSSL's limit; without this check, OpenSSL would report a longer info as a lack of
     * memory */
    HKDF_INFO_MAX = 32768
};

static OSSL_PARAM
octets_of(const char *name, const char *bytes, size_t length)
{
    return OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)bytes, length);
}

/* Fill in the key. Returns whether that worked. */
static bool
derive_hkdf(const OSSL_PARAM *params, uint8_t *key, size_t length)
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    const bool is_done = context != NULL && EVP_KDF_derive(context, key, length, params) == 1;

    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return is_done;
}

/* crypto.hkdf(digest, secret [, {salt =, info =, length =}]) */
static int
get_hkdf(lua_State *L)
{
    static const char *const names[] = {"salt", "info", "length", NULL};
    const EVP_MD *md = sxe__crypto_check_digest(L, 1);
    size_t secret_length, salt_length, info_length, length;
    const char *secret = luaL_checklstring(L, 2, &secret_length);
    const char *salt, *info;
    luaL_Buffer key;
    uint8_t *room;

    sxe__crypto_check_options(L, 3, names, "crypto.hkdf");
    length = (size_t)sxe__crypto_take_integer(L, 3, "length", EVP_MD_get_size(md),
                                              (lua_Integer)HKDF_BLOCKS * EVP_MD_get_size(md));
    salt = sxe__crypto_push_text(L, 3, "salt", &salt_length);
    info = sxe__crypto_push_text(L, 3, "info", &info_length);
    if (info_length > HKDF_INFO_MAX)
        return luaL_error(L, "info: at most 32768 bytes expected");
    room = (uint8_t *)luaL_buffinitsize(L, &key, length);
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
                                         (char *)(uintptr_t)EVP_MD_get0_name(md), 0),
        octets_of(OSSL_KDF_PARAM_KEY, secret, secret_length),
        octets_of(OSSL_KDF_PARAM_SALT, salt, salt_length),
        octets_of(OSSL_KDF_PARAM_INFO, info, info_length), OSSL_PARAM_construct_end()};

    if (!derive_hkdf(params, room, length))
        return sxe__crypto_raise(L, "crypto.hkdf");
    luaL_pushresultsize(&key, length);
    return 1;
}

static bool
compute_pbkdf2(struct sxe__crypto_job *job)
{
    return PKCS5_PBKDF2_HMAC(job->password, (int)job->password_length, (const uint8_t *)job->salt,
                             (int)job->salt_length, job->cost.rounds, job->cost.md,
                             (int)job->outcome.length, job->outcome.bytes) == 1;
}

/* crypto.pbkdf2(digest, password, salt [, {rounds =, length =}]) */
static int
get_pbkdf2(lua_State *L)
{
    static const char *const names[] = {"rounds", "length", NULL};
    const EVP_MD *md = sxe__crypto_check_digest(L, 1);
    size_t password_length, salt_length, length;
    const char *password = luaL_checklstring(L, 2, &password_length);
    const char *salt = luaL_checklstring(L, 3, &salt_length);
    struct sxe__crypto_job *job;
    int rounds;

    luaL_argcheck(L, password_length <= SXE__CRYPTO_OUT_MAX, 2, "at most 1048576 bytes expected");
    luaL_argcheck(L, salt_length <= SXE__CRYPTO_OUT_MAX, 3, "at most 1048576 bytes expected");
    sxe__crypto_check_options(L, 4, names, "crypto.pbkdf2");
    rounds = (int)sxe__crypto_take_integer(L, 4, "rounds", ROUNDS, ROUNDS_MAX);
    length =
        (size_t)sxe__crypto_take_integer(L, 4, "length", EVP_MD_get_size(md), SXE__CRYPTO_KEY_MAX);
    job = sxe__crypto_new_job("crypto.pbkdf2", password, password_length, salt, salt_length);
    if (job == NULL)
        return sxe__crypto_raise(L, "crypto.pbkdf2");
    job->compute = compute_pbkdf2;
    job->cost.md = md;
    job->cost.rounds = rounds;
    job->outcome.length = length;
    return sxe__crypto_do(L, job);
}

void
sxe__crypto_add_derive(lua_State *L)
{
    static const luaL_Reg functions[] = {{"hkdf", get_hkdf}, {NULL, NULL}};
    static const luaL_Reg long_functions[] = {{"pbkdf2", get_pbkdf2}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
    sxe__crypto_set_long_functions(L, long_functions);
}
