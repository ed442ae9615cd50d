/* SPDX-License-Identifier: MIT
 *
 * scrypt (RFC 7914), and hashes of passwords as text, which has all that it takes to check one:
 *
 *     $scrypt$ln=15,r=8,p=3$ salt $ hash       in base64 without padding; ln is the logarithm of n
 */
#include "sxe-crypto-private.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

enum {
    /* what OWASP recommends, with 32 MiB of memory */
    N = 32768,
    R = 8,
    P = 3,
    N_MAX = 1 << 20,
    BLOCKS_MAX = 1 << 20, /* n * r, blocks of 128 bytes: 128 MiB */
    LANES_MAX = 1 << 16,  /* p * r, which OpenSSL has twice, and r twice more: 32 MiB together */
    WORK_MAX = 1 << 22,   /* n * r * p */
    MEMORY_MAX = 160 << 20,
    SALT_SIZE = 16,
    HASH_SIZE = 32,
    SALT_TEXT = 22, /* digits of base64 */
    HASH_TEXT = 43,
    HEAD_MAX = 64,
    TEXT_MAX = HEAD_MAX + SALT_TEXT + 1 + HASH_TEXT + 1
};

/* Why these numbers are refused; NULL: they are not. */
static const char *
find_cost_fault(const struct sxe__crypto_cost *cost)
{
    if (cost->n < 2 || cost->n > N_MAX || (cost->n & (cost->n - 1)) != 0)
        return "n: a power of 2 from 2 to 1048576 expected";
    if (cost->r < 1 || cost->n * cost->r > BLOCKS_MAX)
        return "n * r: at most 1048576 expected";
    if (cost->r == 1 && cost->n >= 1 << 16) /* RFC 7914, 2: less than 2^(16 r) */
        return "n: at most 32768 expected if r is 1";
    if (cost->p < 1 || cost->n * cost->r * cost->p > WORK_MAX)
        return "n * r * p: at most 4194304 expected";
    if (cost->p * cost->r > LANES_MAX)
        return "p * r: at most 65536 expected";
    return NULL;
}

static struct sxe__crypto_cost
take_cost(lua_State *L, int argument)
{
    const struct sxe__crypto_cost cost = {
        .n = sxe__crypto_take_integer(L, argument, "n", N, N_MAX),
        .r = sxe__crypto_take_integer(L, argument, "r", R, BLOCKS_MAX),
        .p = sxe__crypto_take_integer(L, argument, "p", P, WORK_MAX)};
    const char *fault = find_cost_fault(&cost);

    if (fault != NULL)
        luaL_error(L, "%s", fault);
    return cost;
}

/* Make a key of the job's password and a salt. */
static bool
run_scrypt(const struct sxe__crypto_job *job, const uint8_t *salt, size_t salt_length, uint8_t *key,
           size_t length)
{
    const struct sxe__crypto_cost *cost = &job->cost;

    return EVP_PBE_scrypt(job->password, job->password_length, salt, salt_length, (uint64_t)cost->n,
                          (uint64_t)cost->r, (uint64_t)cost->p, MEMORY_MAX, key, length) == 1;
}

static const char *
check_password(lua_State *L, size_t *length)
{
    const char *password = luaL_checklstring(L, 1, length);

    luaL_argcheck(L, *length <= SXE__CRYPTO_OUT_MAX, 1, "at most 1048576 bytes expected");
    return password;
}

static bool
compute_scrypt(struct sxe__crypto_job *job)
{
    return run_scrypt(job, (const uint8_t *)job->salt, job->salt_length, job->outcome.bytes,
                      job->outcome.length);
}

/* crypto.scrypt(password, salt [, {n =, r =, p =, length =}]) */
static int
get_scrypt(lua_State *L)
{
    static const char *const names[] = {"n", "r", "p", "length", NULL};
    size_t password_length, salt_length, length;
    const char *password = check_password(L, &password_length);
    const char *salt = luaL_checklstring(L, 2, &salt_length);
    struct sxe__crypto_cost cost;
    struct sxe__crypto_job *job;

    luaL_argcheck(L, salt_length <= SXE__CRYPTO_OUT_MAX, 2, "at most 1048576 bytes expected");
    sxe__crypto_check_options(L, 3, names, "crypto.scrypt");
    cost = take_cost(L, 3);
    length = (size_t)sxe__crypto_take_integer(L, 3, "length", HASH_SIZE, SXE__CRYPTO_KEY_MAX);
    job = sxe__crypto_new_job("crypto.scrypt", password, password_length, salt, salt_length);
    if (job == NULL)
        return sxe__crypto_raise(L, "crypto.scrypt");
    job->compute = compute_scrypt;
    job->cost = cost;
    job->outcome.length = length;
    return sxe__crypto_do(L, job);
}

/* ---- Hashes as text ---- */

/* Write the text up to the salt. Returns its length. */
static size_t
put_head(char *to, const struct sxe__crypto_cost *cost)
{
    int log = 0;

    while ((lua_Integer)1 << log < cost->n)
        log++;
    return (size_t)snprintf(to, HEAD_MAX, "$scrypt$ln=%d,r=%d,p=%d$", log, (int)cost->r,
                            (int)cost->p);
}

/* Hash the job's password with a salt, of which `text` has the head and the digits, and append the
 * hash. Returns the length of the text; 0: that failed. */
static size_t
put_hash(const struct sxe__crypto_job *job, char *text)
{
    const size_t head = job->head;
    uint8_t salt[SALT_SIZE + 2], key[HASH_SIZE];
    char digits[SALT_TEXT + 3], encoded[HASH_TEXT + 2];

    memcpy(digits, text + head, SALT_TEXT);
    memcpy(digits + SALT_TEXT, "==", 3);
    (void)EVP_DecodeBlock(salt, (const uint8_t *)digits, SALT_TEXT + 2);
    if (!run_scrypt(job, salt, SALT_SIZE, key, sizeof(key)))
        return 0;
    (void)EVP_EncodeBlock((uint8_t *)encoded, key, sizeof(key));
    OPENSSL_cleanse(key, sizeof(key));
    text[head + SALT_TEXT] = '$';
    memcpy(text + head + SALT_TEXT + 1, encoded, HASH_TEXT);
    return head + SALT_TEXT + 1 + HASH_TEXT;
}

static bool
compute_hash(struct sxe__crypto_job *job)
{
    char *text = (char *)job->outcome.bytes;

    memcpy(text, job->salt, job->salt_length);
    job->outcome.length = put_hash(job, text);
    return job->outcome.length > 0;
}

/* crypto.hash_password(password [, {n =, r =, p =}]) */
static int
hash_password(lua_State *L)
{
    static const char *const names[] = {"n", "r", "p", NULL};
    size_t length, head;
    const char *password = check_password(L, &length);
    uint8_t salt[SALT_SIZE];
    char text[TEXT_MAX], digits[SALT_TEXT + 3];
    struct sxe__crypto_cost cost;
    struct sxe__crypto_job *job;

    sxe__crypto_check_options(L, 2, names, "crypto.hash_password");
    cost = take_cost(L, 2);
    sxe__crypto_fill_random(L, salt, sizeof(salt));
    (void)EVP_EncodeBlock((uint8_t *)digits, salt, sizeof(salt));
    head = put_head(text, &cost);
    memcpy(text + head, digits, SALT_TEXT);
    job = sxe__crypto_new_job("crypto.hash_password", password, length, text, head + SALT_TEXT);
    if (job == NULL)
        return sxe__crypto_raise(L, "crypto.hash_password");
    job->compute = compute_hash;
    job->cost = cost;
    job->head = head;
    return sxe__crypto_do(L, job);
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Read the head of a hash. Returns its length; 0: this is no hash that hash_password writes. */
static size_t
read_hash_head(const char *hash, size_t length, struct sxe__crypto_cost *cost)
{
    char text[TEXT_MAX];
    unsigned log, r, p;
    size_t head;

    if (length >= TEXT_MAX || sscanf(hash, "$scrypt$ln=%2u,r=%7u,p=%7u$", &log, &r, &p) != 3)
        return 0;
    if (log > 62)
        return 0;
    *cost = (struct sxe__crypto_cost){.n = (lua_Integer)1 << log, .r = r, .p = p};
    if (find_cost_fault(cost) != NULL)
        return 0;
    head = put_head(text, cost);
    if (length != head + SALT_TEXT + 1 + HASH_TEXT || memcmp(text, hash, head) != 0 ||
        strspn(hash + head, base64_digits) != SALT_TEXT || hash[head + SALT_TEXT] != '$' ||
        strspn(hash + head + SALT_TEXT + 1, base64_digits) != HASH_TEXT)
        return 0;
    return head;
}

static bool
compute_answer(struct sxe__crypto_job *job)
{
    char text[TEXT_MAX];
    size_t made;

    memcpy(text, job->salt, job->head + SALT_TEXT);
    made = put_hash(job, text);
    job->outcome.answer = made > 0 && CRYPTO_memcmp(text, job->salt, made) == 0;
    return made > 0;
}

/* crypto.verify_password(password, hash) */
static int
verify_password(lua_State *L)
{
    size_t password_length, length, head;
    const char *password = check_password(L, &password_length);
    const char *hash = luaL_checklstring(L, 2, &length);
    struct sxe__crypto_cost cost;
    struct sxe__crypto_job *job;

    head = read_hash_head(hash, length, &cost);
    if (head == 0) {
        lua_pushnil(L);
        lua_pushliteral(L, "the hash is none of crypto.hash_password, or costs too much");
        return 2;
    }
    job = sxe__crypto_new_job("crypto.verify_password", password, password_length, hash, length);
    if (job == NULL)
        return sxe__crypto_raise(L, "crypto.verify_password");
    job->compute = compute_answer;
    job->cost = cost;
    job->head = head;
    job->outcome.is_answer = true;
    return sxe__crypto_do(L, job);
}

void
sxe__crypto_add_password(lua_State *L)
{
    static const luaL_Reg functions[] = {{"scrypt", get_scrypt},
                                         {"hash_password", hash_password},
                                         {"verify_password", verify_password},
                                         {NULL, NULL}};

    sxe__crypto_set_long_functions(L, functions);
}
