/* SPDX-License-Identifier: MIT
 *
 * Code that scripts of wrk, scenarios and sessions share: the begin and the end of a worker, and
 * kinds of requests.
 */
#include <fcntl.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script-private.h"
#include "text.h"

/* ---- Standard output ---- */

void
load_script_divert_stdout(struct load_script *script)
{
    fflush(stdout);
    script->diverted = -1;
    if (script->options.is_stdout_data)
        script->diverted = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (script->diverted >= 0)
        dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* Let stdout lead again where it led originally. Flush it first, before the fork: otherwise each
 * worker would write the buffered text once more. */
void
load_script_restore_stdout(struct load_script *script)
{
    fflush(stdout);
    if (script->diverted < 0)
        return;
    dup2(script->diverted, STDOUT_FILENO);
    close(script->diverted);
    script->diverted = -1;
}

/* ---- In a worker ---- */

/* If setup() has set thread.addr, let the worker connect to that address. */
static void
set_thread_address(struct load_script *script)
{
    const struct load_address *address = &script->addresses[script->shard];
    char port[NI_MAXSERV];

    script->requests.ip = NULL;
    if (getnameinfo((const struct sockaddr *)&address->storage, address->length, script->ip,
                    sizeof(script->ip), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        script->requests.ip = script->ip;
        script->requests.port = (uint16_t)strtoul(port, NULL, 10);
    }
}

/* Whether no other worker has printed this text yet. The hash of a text is stored in the first free
 * slot. If two workers have the same text at the same time, both try to store it in the same slot;
 * one of them fails, and finds the hash there. */
static bool
is_news(void *user, const char *what, const char *text)
{
    struct load_script *script = user;
    uint64_t hash = (load_text_hash(what, strlen(what)) ^ load_text_hash(text, strlen(text))) | 1;

    for (unsigned i = 0; i < script->options.workers; i++) {
        uint64_t there = 0;

        if (atomic_compare_exchange_strong(&script->slots[i].said, &there, hash))
            return true;
        if (there == hash)
            return false;
    }
    return true;
}

void
load_script_begin(struct load_script *script, unsigned shard, unsigned shards, struct load_lua *own)
{
    load_script_divert_stdout(script);
    script->nth = shard;
    shard = load_script_slot(script, shard, shards);
    script->slots[shard].is_over = false;
    script->own = own;
    own->is_news = is_news;
    own->user = script;
    script->shard = shard;
    script->is_stopped = false;
    script->at = script->length = 0;
    set_thread_address(script);
    script->requesting = script->replying = (struct load_lua_cost){0};
    load_lua_watch(true);
}

void
load_script_fail(struct load_script *script)
{
    script->slots[script->shard].has_failed = true;
    script->is_stopped = true;
}

struct seeding {
    const struct load_script *script;
    uint64_t seed;
};

static int
seed_random(lua_State *L)
{
    const struct seeding *seeding = lua_touserdata(L, 1);

    lua_getglobal(L, "math");
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, (lua_Integer)seeding->seed);
    lua_pushinteger(L, seeding->script->nth);
    lua_call(L, 2, 0);
    return 0;
}

bool
load_script_seed(struct load_script *script, uint64_t seed)
{
    struct seeding seeding = {script, seed};

    return load_lua_call(script->own, "math.randomseed()", seed_random, &seeding);
}

/* End a worker. Flush the script's output, because the buffered part would be lost when the process
 * ends. */
void
load_script_end(struct load_requests *requests, uint64_t *calls, uint64_t *ns)
{
    struct load_script *script = (struct load_script *)requests;

    *calls = script->requesting.calls + script->replying.calls;
    *ns = script->requesting.ns + script->replying.ns;
    script->own->is_news = NULL;
    script->own = NULL;
    load_lua_watch(false);
    fflush(NULL);
    load_script_restore_stdout(script);
}

/* ---- Kinds ---- */

void
load_script_add_kind(lua_State *L, struct load_script *script, const char *name)
{
    unsigned kind = script->requests.kinds;

    if (kind == LOAD_KINDS_MAX)
        luaL_error(L, "there may be %d kinds at most, and '%s' is one more", LOAD_KINDS_MAX, name);
    if (strlen(name) >= LOAD_SCRIPT_NAME_MAX)
        luaL_error(L, "the name of a kind may have %d bytes, and '%s' has more",
                   LOAD_SCRIPT_NAME_MAX - 1, name);
    memcpy(script->names[kind], name, strlen(name) + 1);
    script->name_pointers[kind] = script->names[kind];
    script->requests.kinds++;
}
