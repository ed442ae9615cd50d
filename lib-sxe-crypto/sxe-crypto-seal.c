/* SPDX-License-Identifier: MIT
 *
 * Sealing: text that nobody can read or change without the key, by AES-GCM or ChaCha20-Poly1305.
 *
 *     crypto.seal             [ nonce, 12 bytes, made here | ciphertext | tag, 16 bytes ]
 *     crypto.seal_with_nonce                               [ ciphertext | tag ]
 *
 * If the tag of a sealed text is wrong, the plaintext is wiped, and the script never sees it.
 */
#include "sxe-crypto-private.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <string.h>

enum { NONCE_SIZE = 12, TAG_SIZE = 16, TEXT_MAX = 1 << 30 };

enum outcome { DONE, FORGED, FAILED };

static const struct algorithm {
    const char *name;
    size_t key_size;
    const EVP_CIPHER *(*get)(void);
} algorithms[] = {
    {"aes-256-gcm", 32, EVP_aes_256_gcm}, /* the default algorithm */
    {"aes-128-gcm", 16, EVP_aes_128_gcm},
    {"chacha20-poly1305", 32, EVP_chacha20_poly1305},
};

struct sealing {
    const struct algorithm *algorithm;
    const uint8_t *key;
    const uint8_t *nonce;
    const char *aad;
    size_t aad_length;
};

/* ---- Arguments ---- */

/* Take the algorithm and the additional data of the options at an argument, and the key at 1. */
static struct sealing
take_sealing(lua_State *L, int options, const char *call)
{
    static const char *const names[] = {"aad", "algorithm", NULL};
    struct sealing sealing = {.algorithm = algorithms};
    const char *name;
    size_t length, name_length;

    sealing.key = (const uint8_t *)luaL_checklstring(L, 1, &length);
    sxe__crypto_check_options(L, options, names, call);
    sealing.aad = sxe__crypto_push_text(L, options, "aad", &sealing.aad_length);
    name = sxe__crypto_push_text(L, options, "algorithm", &name_length);
    for (size_t i = 1; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        if (sxe__crypto_is(name, name_length, algorithms[i].name))
            sealing.algorithm = &algorithms[i];
    }
    if (name_length > 0 && !sxe__crypto_is(name, name_length, sealing.algorithm->name))
        luaL_error(L,
                   "%s: no algorithm '%s'; there are aes-256-gcm, aes-128-gcm and "
                   "chacha20-poly1305",
                   call, name);
    if (length != sealing.algorithm->key_size)
        luaL_error(L, "%s: %s has a key of %d bytes, not of %I", call, sealing.algorithm->name,
                   (int)sealing.algorithm->key_size, (LUAI_UACINT)length);
    luaL_argcheck(L, sealing.aad_length <= TEXT_MAX, options, "at most 2^30 bytes of aad expected");
    return sealing;
}

static const uint8_t *
check_text(lua_State *L, int argument, size_t *length)
{
    const char *text = luaL_checklstring(L, argument, length);

    luaL_argcheck(L, *length <= TEXT_MAX, argument, "at most 2^30 bytes expected");
    return (const uint8_t *)text;
}

static const uint8_t *
check_nonce(lua_State *L)
{
    size_t length;
    const char *nonce = luaL_checklstring(L, 2, &length);

    luaL_argcheck(L, length == NONCE_SIZE, 2, "a nonce of 12 bytes expected");
    return (const uint8_t *)nonce;
}

/* ---- The work: these functions call nothing of Lua ---- */

/* Start sealing or opening with the key, the nonce and the additional data. Returns whether that
 * worked. */
static bool
start_cipher(EVP_CIPHER_CTX *context, const struct sealing *sealing, bool is_seal)
{
    int n;

    return EVP_CipherInit_ex(context, sealing->algorithm->get(), NULL, sealing->key, sealing->nonce,
                             is_seal) == 1 &&
           (sealing->aad_length == 0 ||
            EVP_CipherUpdate(context, NULL, &n, (const uint8_t *)sealing->aad,
                             (int)sealing->aad_length) == 1);
}

/* Write the ciphertext and the tag. */
static enum outcome
write_sealed(EVP_CIPHER_CTX *context, const struct sealing *sealing, const uint8_t *text,
             size_t length, uint8_t *to)
{
    int n;

    if (!start_cipher(context, sealing, true) ||
        EVP_CipherUpdate(context, to, &n, text, (int)length) != 1 ||
        EVP_CipherFinal_ex(context, to + n, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, to + length) != 1)
        return FAILED;
    return DONE;
}

/* Write the plaintext of `length` bytes of ciphertext, which are followed by the tag. */
static enum outcome
write_opened(EVP_CIPHER_CTX *context, const struct sealing *sealing, const uint8_t *text,
             size_t length, uint8_t *to)
{
    uint8_t tag[TAG_SIZE];
    int n;

    memcpy(tag, text + length, TAG_SIZE);
    if (!start_cipher(context, sealing, false) ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_SIZE, tag) != 1 ||
        EVP_CipherUpdate(context, to, &n, text, (int)length) != 1)
        return FAILED;
    if (EVP_CipherFinal_ex(context, to + n, &n) == 1)
        return DONE;
    OPENSSL_cleanse(to, length);
    return FORGED;
}

static enum outcome
run_cipher(enum outcome (*write)(EVP_CIPHER_CTX *, const struct sealing *, const uint8_t *, size_t,
                                 uint8_t *),
           const struct sealing *sealing, const uint8_t *text, size_t length, char *to)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    const enum outcome outcome =
        context == NULL ? FAILED : write(context, sealing, text, length, (uint8_t *)to);

    EVP_CIPHER_CTX_free(context);
    return outcome;
}

/* ---- Calls ---- */

/* crypto.seal(key, text [, options]) */
static int
seal_text(lua_State *L)
{
    size_t length;
    const uint8_t *text = check_text(L, 2, &length);
    struct sealing sealing = take_sealing(L, 3, "crypto.seal");
    luaL_Buffer sealed;
    char *room = luaL_buffinitsize(L, &sealed, NONCE_SIZE + length + TAG_SIZE);

    sxe__crypto_fill_random(L, room, NONCE_SIZE);
    sealing.nonce = (const uint8_t *)room;
    if (run_cipher(write_sealed, &sealing, text, length, room + NONCE_SIZE) != DONE)
        return sxe__crypto_raise(L, "crypto.seal");
    luaL_pushresultsize(&sealed, NONCE_SIZE + length + TAG_SIZE);
    return 1;
}

/* crypto.seal_with_nonce(key, nonce, text [, options]) */
static int
seal_with_nonce(lua_State *L)
{
    size_t length;
    const uint8_t *nonce = check_nonce(L);
    const uint8_t *text = check_text(L, 3, &length);
    struct sealing sealing = take_sealing(L, 4, "crypto.seal_with_nonce");
    luaL_Buffer sealed;
    char *room = luaL_buffinitsize(L, &sealed, length + TAG_SIZE);

    sealing.nonce = nonce;
    if (run_cipher(write_sealed, &sealing, text, length, room) != DONE)
        return sxe__crypto_raise(L, "crypto.seal_with_nonce");
    luaL_pushresultsize(&sealed, length + TAG_SIZE);
    return 1;
}

static int
refuse_forged(lua_State *L)
{
    ERR_clear_error();
    lua_pushnil(L);
    lua_pushliteral(L, "forged, or sealed with another key, nonce or aad");
    return 2;
}

/* Open a ciphertext with its tag: push the plaintext, or nil and a sentence that says why not. */
static int
push_opened(lua_State *L, const struct sealing *sealing, const uint8_t *text, size_t length,
            const char *call)
{
    luaL_Buffer opened;
    char *room = luaL_buffinitsize(L, &opened, length);

    switch (run_cipher(write_opened, sealing, text, length, room)) {
    case FORGED:
        return refuse_forged(L);
    case FAILED:
        return sxe__crypto_raise(L, call);
    case DONE:
        break;
    }
    luaL_pushresultsize(&opened, length);
    return 1;
}

/* crypto.open(key, sealed [, options]) */
static int
open_text(lua_State *L)
{
    size_t length;
    const uint8_t *text = check_text(L, 2, &length);
    struct sealing sealing = take_sealing(L, 3, "crypto.open");

    if (length < NONCE_SIZE + TAG_SIZE)
        return refuse_forged(L);
    sealing.nonce = text;
    return push_opened(L, &sealing, text + NONCE_SIZE, length - NONCE_SIZE - TAG_SIZE,
                       "crypto.open");
}

/* crypto.open_with_nonce(key, nonce, sealed [, options]) */
static int
open_with_nonce(lua_State *L)
{
    size_t length;
    const uint8_t *nonce = check_nonce(L);
    const uint8_t *text = check_text(L, 3, &length);
    struct sealing sealing = take_sealing(L, 4, "crypto.open_with_nonce");

    if (length < TAG_SIZE)
        return refuse_forged(L);
    sealing.nonce = nonce;
    return push_opened(L, &sealing, text, length - TAG_SIZE, "crypto.open_with_nonce");
}

void
sxe__crypto_add_seal(lua_State *L)
{
    static const luaL_Reg functions[] = {{"seal", seal_text},
                                         {"seal_with_nonce", seal_with_nonce},
                                         {"open", open_text},
                                         {"open_with_nonce", open_with_nonce},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
