/* SPDX-License-Identifier: MIT
 *
 * Calls that compute for long. If lib-sxe-lua runs the script, a thread computes, and the task
 * waits; in a program with another Lua, the call computes at once.
 */
#include "sxe-crypto-private.h"

#include <openssl/crypto.h>
#include <string.h>

static void
run_crypto_job(struct sxe__lua_offload_job *offload)
{
    struct sxe__crypto_job *job = (struct sxe__crypto_job *)offload;

    if (!job->compute(job))
        job->outcome.why = sxe__crypto_take_problem();
}

/* The job has a password: leave no copy of it in the heap. */
static void
discard_crypto_job(struct sxe__lua_offload_job *offload)
{
    OPENSSL_clear_free(offload, offload->size);
}

static int
finish_crypto_job(lua_State *L, struct sxe__lua_offload_job *offload)
{
    const struct sxe__crypto_outcome outcome = ((struct sxe__crypto_job *)offload)->outcome;

    discard_crypto_job(offload);
    if (outcome.why != NULL)
        return luaL_error(L, "%s: OpenSSL failed: %s", outcome.call, outcome.why);
    if (outcome.is_answer)
        lua_pushboolean(L, outcome.answer);
    else
        lua_pushlstring(L, (const char *)outcome.bytes, outcome.length);
    return 1;
}

struct sxe__crypto_job *
sxe__crypto_new_job(const char *call, const char *password, size_t password_length,
                    const char *salt, size_t salt_length)
{
    const size_t size = sizeof(struct sxe__crypto_job) + password_length + salt_length;
    struct sxe__crypto_job *job = OPENSSL_zalloc(size);

    if (job == NULL)
        return NULL;
    job->offload.run = run_crypto_job;
    job->offload.finish = finish_crypto_job;
    job->offload.discard = discard_crypto_job;
    job->offload.size = size;
    job->outcome.call = call;
    job->password = memcpy(job->data, password, password_length);
    job->password_length = password_length;
    job->salt = memcpy(job->data + password_length, salt, salt_length);
    job->salt_length = salt_length;
    return job;
}

int
sxe__crypto_do(lua_State *L, struct sxe__crypto_job *job)
{
    const struct sxe__lua_offload *offload = lua_touserdata(L, lua_upvalueindex(1));

    if (offload != NULL)
        return offload->begin(L, &job->offload);
    run_crypto_job(&job->offload);
    return finish_crypto_job(L, &job->offload);
}

void
sxe__crypto_set_long_functions(lua_State *L, const luaL_Reg *functions)
{
    lua_getfield(L, LUA_REGISTRYINDEX, SXE__LUA_OFFLOAD);
    luaL_setfuncs(L, functions, 1);
}
