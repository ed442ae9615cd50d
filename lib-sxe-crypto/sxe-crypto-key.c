/* SPDX-License-Identifier: MIT
 *
 * Pairs of keys, read from PEM, which sign and verify: RSA, ECDSA with P-256 or P-384, Ed25519.
 *
 * The kind of the key decides how signatures are made and checked; a signature cannot change that.
 * Ed25519 has no options, a curve has its digest, and RSA is PSS, with a salt as long as the
 * digest, unless pkcs1 is asked for.
 *
 *     ECDSA, DER (the default)    SEQUENCE { INTEGER r, INTEGER s }, 8 to 104 bytes
 *     ECDSA, raw, as in JWT       [ r | s ], 64 bytes for P-256, 96 for P-384
 */
#include "sxe-crypto-private.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

#define CLASS "sxe.crypto.key"

enum {
    PEM_MAX = 65536,
    KEY_KILOBYTES = 5,
    RSA_BITS_MIN = 2048,
    RSA_BITS_MAX = 8192,
    SIGNATURE_MAX = RSA_BITS_MAX / 8
};

static const struct kind {
    const char *name; /* the name that key:type() returns */
    /* OpenSSL's names of the key's type and curve; group is NULL if the kind has no curve */
    const char *type, *group;
    const EVP_MD *(*get)(void); /* the digest of an ECDSA signature */
    int number_size;            /* bytes of each of ECDSA's two numbers; 0: not ECDSA */
} kinds[] = {
    {"rsa", "RSA", "", NULL, 0},
    {"p-256", "EC", "prime256v1", EVP_sha256, 32},
    {"p-384", "EC", "secp384r1", EVP_sha384, 48},
    {"ed25519", "ED25519", "", NULL, 0},
};

struct key {
    EVP_PKEY *pkey; /* NULL: the key was closed */
    const struct kind *kind;
    bool is_private;
};

static struct key *
check_key(lua_State *L)
{
    struct key *key = luaL_checkudata(L, 1, CLASS);

    if (key->pkey == NULL)
        luaL_error(L, "the key is closed");
    return key;
}

static int
close_key(lua_State *L)
{
    struct key *key = luaL_checkudata(L, 1, CLASS);

    EVP_PKEY_free(key->pkey);
    key->pkey = NULL;
    return 0;
}

/* ---- Reading ---- */

struct password {
    const char *text; /* NULL: no password was given */
    size_t length;
};

/* Without this function OpenSSL would ask for a password at the terminal. */
static int
give_password(char *room, int size, int is_writing, void *user)
{
    const struct password *password = user;

    SXE_UNUSED_PARAMETER(is_writing);
    if (password->text == NULL || password->length > (size_t)size)
        return -1;
    memcpy(room, password->text, password->length);
    return (int)password->length;
}

static EVP_PKEY *
read_pem(const char *pem, size_t length, bool is_private, struct password *password)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)length);
    EVP_PKEY *pkey = NULL;

    if (bio != NULL)
        pkey = is_private ? PEM_read_bio_PrivateKey(bio, NULL, give_password, password)
                          : PEM_read_bio_PUBKEY(bio, NULL, give_password, password);
    BIO_free(bio);
    ERR_clear_error();
    return pkey;
}

/* Find the kind of an OpenSSL key. NULL: sxe.crypto does not use keys of this kind. */
static const struct kind *
kind_of_key(const EVP_PKEY *pkey)
{
    char group[32] = "";
    const int bits = EVP_PKEY_get_bits(pkey);

    if (EVP_PKEY_is_a(pkey, "RSA") && (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX))
        return NULL;
    /* an RSA key has no group: the text then stays empty */
    (void)EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL);
    ERR_clear_error();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (EVP_PKEY_is_a(pkey, kinds[i].type) && strcmp(group, kinds[i].group) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* Push the key that is in the PEM text at argument 1; or nil and a sentence that says why not. */
static int
push_key_of_pem(lua_State *L, bool is_private, struct password *password)
{
    size_t length;
    const char *pem = luaL_checklstring(L, 1, &length);
    struct key *key;

    if (length > PEM_MAX) {
        lua_pushnil(L);
        lua_pushliteral(L, "the text is longer than 65536 bytes, so it is no PEM of a key");
        return 2;
    }
    key = lua_newuserdatauv(L, sizeof(*key), 0);
    *key = (struct key){.is_private = is_private};
    luaL_setmetatable(L, CLASS);
    key->pkey = read_pem(pem, length, is_private, password);
    key->kind = key->pkey == NULL ? NULL : kind_of_key(key->pkey);
    if (key->kind != NULL) {
        sxe__crypto_count(L, KEY_KILOBYTES);
        return 1;
    }
    lua_pushnil(L);
    if (key->pkey != NULL)
        lua_pushliteral(L, "the PEM has another kind of key; there are RSA with 2048 to 8192 bits, "
                           "P-256, P-384 and Ed25519");
    else if (is_private)
        lua_pushliteral(L, "the PEM has no private key, or the key needs another password");
    else
        lua_pushliteral(L, "the PEM has no public key");
    return 2;
}

/* crypto.private_key(pem [, password]) */
static int
private_key(lua_State *L)
{
    struct password password = {NULL, 0};

    password.text = luaL_optlstring(L, 2, NULL, &password.length);
    return push_key_of_pem(L, true, &password);
}

/* crypto.public_key(pem) */
static int
public_key(lua_State *L)
{
    return push_key_of_pem(L, false, &(struct password){NULL, 0});
}

int
sxe__crypto_push_type(lua_State *L)
{
    lua_pushstring(L, check_key(L)->kind->name);
    return 1;
}

/* key:public() returns the public key in PEM, also when key is a private key. */
static int
push_public(lua_State *L)
{
    const struct key *key = check_key(L);
    char pem[PEM_MAX / 16];
    BIO *bio = BIO_new(BIO_s_mem());
    int length = -1;

    if (bio != NULL && PEM_write_bio_PUBKEY(bio, key->pkey) == 1)
        length = BIO_read(bio, pem, sizeof(pem));
    BIO_free(bio);
    if (length < 0)
        return sxe__crypto_raise(L, "key:public");
    lua_pushlstring(L, pem, (size_t)length);
    return 1;
}

/* ---- Signing and verifying ---- */

struct manner {
    const EVP_MD *md; /* NULL for Ed25519, which has no choice of digest */
    bool is_pss;
    /* bytes of each number of a raw ECDSA signature; 0: the signature has the form of OpenSSL */
    int number_size;
};

static const EVP_MD *
take_digest(lua_State *L, int argument, const char *call)
{
    size_t length;
    const char *name = sxe__crypto_push_text(L, argument, "digest", &length);

    if (length == 0 || sxe__crypto_is(name, length, "sha256"))
        return EVP_sha256();
    if (sxe__crypto_is(name, length, "sha384"))
        return EVP_sha384();
    if (!sxe__crypto_is(name, length, "sha512"))
        luaL_error(L, "%s: no digest '%s'; signatures have sha256, sha384 and sha512", call, name);
    return EVP_sha512();
}

/* Take the options at an argument. The key at argument 1 decides which options there are. */
static struct manner
take_manner(lua_State *L, int argument, const char *call)
{
    static const char *const for_rsa[] = {"digest", "pkcs1", NULL};
    static const char *const for_ecdsa[] = {"raw", NULL}, *const for_others[] = {NULL};
    const struct kind *kind = check_key(L)->kind;
    const bool is_rsa = kind == kinds;
    struct manner manner = {NULL, false, 0};

    sxe__crypto_check_options(L, argument,
                              is_rsa                  ? for_rsa
                              : kind->number_size > 0 ? for_ecdsa
                                                      : for_others,
                              call);
    if (is_rsa) {
        manner.is_pss = !sxe__crypto_take_flag(L, argument, "pkcs1");
        manner.md = take_digest(L, argument, call);
    } else if (kind->number_size > 0) {
        manner.md = kind->get();
        if (sxe__crypto_take_flag(L, argument, "raw"))
            manner.number_size = kind->number_size;
    }
    return manner;
}

/* Make a context for signing or verifying, which the caller frees. NULL: OpenSSL failed. */
static EVP_MD_CTX *
new_signing(EVP_PKEY *pkey, const struct manner *manner, bool is_sign)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *options = NULL; /* owned by the context */
    bool is_good = context != NULL &&
                   (is_sign ? EVP_DigestSignInit(context, &options, manner->md, NULL, pkey)
                            : EVP_DigestVerifyInit(context, &options, manner->md, NULL, pkey)) == 1;

    if (is_good && manner->is_pss)
        is_good = EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
                  EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1;
    if (is_good)
        return context;
    EVP_MD_CTX_free(context);
    return NULL;
}

/* Replace a DER signature by the bytes of its two numbers. Returns the number of bytes; 0: the
 * signature cannot be converted. */
static size_t
to_raw(uint8_t *bytes, size_t length, int size)
{
    const uint8_t *der = bytes;
    ECDSA_SIG *numbers = d2i_ECDSA_SIG(NULL, &der, (long)length);

    if (numbers == NULL)
        return 0;
    (void)BN_bn2binpad(ECDSA_SIG_get0_r(numbers), bytes, size);
    (void)BN_bn2binpad(ECDSA_SIG_get0_s(numbers), bytes + size, size);
    ECDSA_SIG_free(numbers);
    return 2 * (size_t)size;
}

/* Make the DER of two numbers, each of number_size bytes. The caller frees the result with
 * OPENSSL_free. NULL: no memory. */
static uint8_t *
from_raw(const uint8_t *bytes, int size, size_t *length)
{
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, size, NULL), *s = BN_bin2bn(bytes + size, size, NULL);
    uint8_t *der = NULL;

    if (numbers != NULL && ECDSA_SIG_set0(numbers, r, s) == 1) {
        const int written = i2d_ECDSA_SIG(numbers, &der);

        *length = written > 0 ? (size_t)written : 0;
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(numbers);
    return der;
}

/* key:sign(text [, options]) */
static int
sign_text(lua_State *L)
{
    size_t length, size = SIGNATURE_MAX;
    const uint8_t *text = (const uint8_t *)luaL_checklstring(L, 2, &length);
    const struct manner manner = take_manner(L, 3, "key:sign");
    const struct key *key = check_key(L);
    uint8_t signature[SIGNATURE_MAX];
    EVP_MD_CTX *context;

    if (!key->is_private)
        return luaL_error(L, "a private key expected");
    context = new_signing(key->pkey, &manner, true);
    if (context == NULL || EVP_DigestSign(context, signature, &size, text, length) != 1 ||
        /* when OpenSSL 3.0 lacks memory, ECDSA returns success and a size of -1 */
        size > SIGNATURE_MAX)
        size = 0;
    EVP_MD_CTX_free(context);
    if (manner.number_size > 0 && size > 0)
        size = to_raw(signature, size, manner.number_size);
    if (size == 0)
        return sxe__crypto_raise(L, "key:sign");
    lua_pushlstring(L, (const char *)signature, size);
    return 1;
}

/* 1: the signature is good; 0: the signature is bad, or there was no memory to check it; -1:
 * OpenSSL failed before it checked the signature. */
static int
verify_signature(EVP_PKEY *pkey, const struct manner *manner, const uint8_t *text, size_t length,
                 const uint8_t *signature, size_t size)
{
    EVP_MD_CTX *context = new_signing(pkey, manner, false);
    int result = -1;

    if (context != NULL)
        result = EVP_DigestVerify(context, signature, size, text, length) == 1;
    EVP_MD_CTX_free(context);
    return result;
}

/* key:verify(text, signature [, options]) */
static int
verify_text(lua_State *L)
{
    size_t length, size;
    const uint8_t *text = (const uint8_t *)luaL_checklstring(L, 2, &length);
    const uint8_t *signature = (const uint8_t *)luaL_checklstring(L, 3, &size);
    const struct manner manner = take_manner(L, 4, "key:verify");
    const struct key *key = check_key(L);
    const size_t raw_size = 2 * (size_t)manner.number_size;
    uint8_t *der = NULL;
    int result = 0;

    if (raw_size > 0 && size == raw_size)
        der = from_raw(signature, manner.number_size, &size);
    if (raw_size == 0 || der != NULL)
        result =
            verify_signature(key->pkey, &manner, text, length, der != NULL ? der : signature, size);
    OPENSSL_free(der);
    if (result < 0)
        return sxe__crypto_raise(L, "key:verify");
    ERR_clear_error();
    lua_pushboolean(L, result);
    return 1;
}

void
sxe__crypto_add_key(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"private_key", private_key}, {"public_key", public_key}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"type", sxe__crypto_push_type}, {"public", push_public}, {"sign", sign_text},
        {"verify", verify_text},         {"close", close_key},    {NULL, NULL}};

    sxe__crypto_new_class(L, CLASS, close_key, methods);
    luaL_setfuncs(L, functions, 0);
}
