/* SPDX-License-Identifier: MIT
 *
 * What: what the files of sxe.crypto share.
 *
 *     sxe-crypto.c         the module, random values, comparing; no other file calls it
 *     sxe-crypto-common.c  failures, classes, options, random bytes
 *     sxe-crypto-hash.c    digests and HMAC
 *     sxe-crypto-derive.c  keys derived from others: HKDF, PBKDF2
 *     sxe-crypto-password.c  scrypt, hashes of passwords
 *     sxe-crypto-job.c     calls that compute for long: in threads, if lib-sxe-lua runs the script
 *     sxe-crypto-seal.c    AES-GCM, ChaCha20-Poly1305
 *     sxe-crypto-key.c     pairs of keys from PEM, which sign and verify: RSA, ECDSA, Ed25519
 *     sxe-crypto-jwt.lua   JSON Web Tokens, built on the functions above; sxe-crypto-jwt.c loads it
 *
 * Lua raises by longjmp, so no function calls Lua while it holds an object of OpenSSL that is not
 * in a userdata. An argument that is converted to a string may run a finalizer, which may close an
 * object, so a call asks for its object after its arguments.
 */
#ifndef SXE_CRYPTO_PRIVATE_H
#define SXE_CRYPTO_PRIVATE_H

#include <lauxlib.h>
#include <lua.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-crypto.h"
#include "sxe-lua-offload-internal.h"

enum {
    /* the most random bytes that one call returns, and the most bytes of a password or salt */
    SXE__CRYPTO_OUT_MAX = 1 << 20,
    SXE__CRYPTO_KEY_MAX = 1024 /* the most bytes of a key made of a password */
};

/* The costs of scrypt, or the rounds and the digest of PBKDF2. */
struct sxe__crypto_cost {
    lua_Integer n, r, p;
    int rounds;
    const EVP_MD *md;
};

/* The result of a long call: a string, or whether it is the expected one. */
struct sxe__crypto_outcome {
    const char *call; /* "crypto.scrypt" */
    const char *why;  /* OpenSSL failed; NULL: it did not */
    bool is_answer;   /* the result is `answer`, not the bytes */
    bool answer;
    size_t length;
    uint8_t bytes[SXE__CRYPTO_KEY_MAX];
};

/* A call that computes for long. It has copies of its texts, because it may outlive its task. */
struct sxe__crypto_job {
    struct sxe__lua_offload_job offload;
    /* Set the outcome, in any thread. False: OpenSSL failed. */
    bool (*compute)(struct sxe__crypto_job *job);
    struct sxe__crypto_cost cost;
    struct sxe__crypto_outcome outcome;
    const char *password;
    size_t password_length;
    const char *salt; /* or the expected hash */
    size_t salt_length;
    size_t head; /* bytes of a hash before its salt */
    char data[]; /* password and salt */
};

/* Why OpenSSL failed in this thread. Empties its queue of errors. */
const char *sxe__crypto_take_problem(void);

/* Raise "crypto.digest: OpenSSL failed: malloc failure", and empty OpenSSL's queue of errors. */
int sxe__crypto_raise(lua_State *L, const char *call);

/* Make and push the metatable of a class of userdata, which scripts cannot get. */
void sxe__crypto_new_class(lua_State *L, const char *name, lua_CFunction close,
                           const luaL_Reg *methods);

/* Whether text, which may contain zero bytes, equals name. */
bool sxe__crypto_is(const char *text, size_t length, const char *name);

/* Raise an error unless the argument is nil, or a table of options whose names are all in the
 * list. */
void sxe__crypto_check_options(lua_State *L, int argument, const char *const *names,
                               const char *call);

/* Push an option of this name. A missing text is "" of length 0; an integer option is at least
 * 1. */
const char *sxe__crypto_push_text(lua_State *L, int argument, const char *name, size_t *length);
lua_Integer sxe__crypto_take_integer(lua_State *L, int argument, const char *name,
                                     lua_Integer otherwise, lua_Integer most);
bool sxe__crypto_take_flag(lua_State *L, int argument, const char *name);

/* The digest that is named at an argument. If the name is unknown, raises an error that lists all
 * names. */
const EVP_MD *sxe__crypto_check_digest(lua_State *L, int argument);

/* Tell Lua's collector how many kilobytes of OpenSSL's memory the new object on top of the stack
 * holds, so that it collects dropped objects before they add up. May run finalizers. */
void sxe__crypto_count(lua_State *L, int kilobytes);

/* Fill `bytes` with random bytes of the system. Raises an error if the system has none. */
void sxe__crypto_fill_random(lua_State *L, void *bytes, size_t length);

/* Make a job with copies of a password and a salt; NULL: OpenSSL has no memory. The caller fills it
 * in without a call that may raise an error, and passes it to sxe__crypto_do. */
struct sxe__crypto_job *sxe__crypto_new_job(const char *call, const char *password,
                                            size_t password_length, const char *salt,
                                            size_t salt_length);

/* Do the job, and free it; a task waits meanwhile. Returns the call's results. The running function
 * is one of sxe__crypto_set_long_functions. */
int sxe__crypto_do(lua_State *L, struct sxe__crypto_job *job);

/* Add functions that do jobs to the module on top of the stack. */
void sxe__crypto_set_long_functions(lua_State *L, const luaL_Reg *functions);

/* Each of these adds the functions of its file to the module on top of the stack. */
void sxe__crypto_add_hash(lua_State *L);
void sxe__crypto_add_derive(lua_State *L);
void sxe__crypto_add_password(lua_State *L);
void sxe__crypto_add_seal(lua_State *L);
void sxe__crypto_add_key(lua_State *L);
void sxe__crypto_add_jwt(lua_State *L);

/* key:type() */
int sxe__crypto_push_type(lua_State *L);

#endif
