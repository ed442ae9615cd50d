/* SPDX-License-Identifier: MIT
 *
 * Loading a script, preparing its workers, and collecting their results.
 */
#include "script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "script-private.h"
#include "script-wrk.h"
#include "whole-file.h"

/* ---- Loading ---- */

static size_t
slots_size(const struct load_script *script)
{
    return script->options.workers * sizeof(struct load_script_slot);
}

static int
open_globals(lua_State *L)
{
    load_wrk_open(L);
    load_thread_open(L);
    load_reply_open(L);
    return 0;
}

static struct load_lua *
new_state(struct load_script *script, struct load_lua_chunk *chunk)
{
    struct load_lua *lua = load_lua_new(script->options.path, script->err);

    if (lua != NULL && (!load_lua_call(lua, "preparing it", open_globals, &script->options) ||
                        !load_lua_call(lua, "loading it", load_lua_run_chunk, chunk))) {
        load_lua_free(lua);
        return NULL;
    }
    return lua;
}

/* Read wrk.kinds. If the script has not set it, there is one kind of requests. */
static int
read_script_kinds(lua_State *L)
{
    struct load_script *script = lua_touserdata(L, 1);

    load_wrk_push(L);
    if (lua_getfield(L, -1, "kinds") == LUA_TTABLE)
        for (lua_Integer i = 1; lua_geti(L, 3, i) != LUA_TNIL; i++) {
            const char *name = luaL_tolstring(L, -1, NULL);

            if (load_lua_has_zero(L, -1))
                luaL_error(L, "wrk.kinds[%I] must be a text without zero bytes", i);
            load_script_add_kind(L, script, name);
        }
    if (script->requests.kinds == 0)
        load_script_add_kind(L, script, "request");
    return 0;
}

static int
call_setup(lua_State *L)
{
    struct load_script *script = lua_touserdata(L, 1);

    for (unsigned i = 0; i < script->options.workers; i++) {
        if (lua_getglobal(L, "setup") != LUA_TFUNCTION)
            return 0;
        load_thread_push(L, script, i);
        lua_call(L, 1, 0);
    }
    return 0;
}

static bool
set_up_workers(struct load_script *script, struct load_lua_chunk *chunk)
{
    for (unsigned i = 0; i < script->options.workers; i++) {
        script->lua[i] = new_state(script, chunk);
        if (script->lua[i] == NULL)
            return false;
    }
    load_script_worker_init(script);
    return load_lua_call(script->parent, "wrk.kinds", read_script_kinds, script) &&
           load_lua_call(script->parent, "setup()", call_setup, script);
}

static struct load_script *
new_script(const struct load_script_options *options, FILE *err)
{
    struct load_script *script = calloc(1, sizeof(*script));

    if (script == NULL)
        return NULL;
    script->options = *options;
    script->err = err;
    script->requests.kind_names = script->name_pointers;
    script->requests.free = load_script_free;
    script->lua = calloc(options->workers, sizeof(struct load_lua *));
    script->addresses = calloc(options->workers, sizeof(*script->addresses));
    script->slots = mmap(NULL, slots_size(script), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (script->slots == MAP_FAILED)
        script->slots = NULL;
    if (script->lua == NULL || script->addresses == NULL || script->slots == NULL) {
        load_script_free(&script->requests);
        return NULL;
    }
    return script;
}

static bool
load_states(struct load_script *script, struct load_lua_chunk *chunk)
{
    bool is_loaded;

    load_script_divert_stdout(script);
    load_lua_watch(true);
    script->parent = new_state(script, chunk);
    is_loaded =
        script->parent != NULL &&
        (script->options.is_scenario ? load_scenario_load(script) : set_up_workers(script, chunk));
    load_lua_watch(false);
    load_script_restore_stdout(script);
    return is_loaded;
}

struct load_requests *
load_script_new(const struct load_script_options *options, FILE *err)
{
    struct load_lua_chunk chunk = {.path = options->path};
    char *text = load_whole_file(options->path, &chunk.length);
    struct load_script *script;

    if (text == NULL) {
        fprintf(err, "sxe-http: cannot read the script '%s': %s\n", options->path, strerror(errno));
        return NULL;
    }
    chunk.bytes = text;
    script = new_script(options, err);
    if (script == NULL) {
        fprintf(err, "sxe-http: %s: no memory for %u workers\n", options->path, options->workers);
    } else if (!load_states(script, &chunk)) {
        load_script_free(&script->requests);
        script = NULL;
    }
    free(text);
    return script == NULL ? NULL : &script->requests;
}

/* ---- In the parent, later ---- */

static int
call_done_function(lua_State *L)
{
    const struct load_run *run = lua_touserdata(L, 1);

    if (lua_getglobal(L, "done") != LUA_TFUNCTION)
        return 0;
    load_script_push_stats(L, run);
    lua_call(L, 3, 0);
    return 0;
}

/* Count the workers whose script failed, and print how many checks failed. Returns whether any
 * worker's script failed. */
static bool
say_slots(const struct load_script *script)
{
    const char *reason = NULL;
    uint64_t failed = 0;
    unsigned workers = 0;

    for (unsigned i = 0; i < script->options.workers; i++) {
        const struct load_script_slot *slot = &script->slots[i];

        failed += slot->failed_checks;
        workers += slot->has_failed;
        if (slot->failed_checks > 0 && reason == NULL)
            reason = slot->reason;
    }
    if (reason != NULL)
        fprintf(script->err, "sxe-http: %s: %s: %llu, the first: %s\n", script->options.path,
                script->sessions != NULL ? "sessions that failed" : "replies that failed check()",
                (unsigned long long)failed, reason);
    if (workers > 1)
        fprintf(script->err, "sxe-http: %s: the script failed in %u of %u workers\n",
                script->options.path, workers, script->options.workers);
    return workers > 0;
}

int
load_script_done(struct load_requests *requests, const struct load_run *run)
{
    struct load_script *script = (struct load_script *)requests;
    bool has_failed = say_slots(script);

    load_script_divert_stdout(script);
    load_lua_watch(true);
    if (!load_lua_call(script->parent, "done()", call_done_function, (void *)(uintptr_t)run))
        has_failed = true;
    load_lua_watch(false);
    load_script_restore_stdout(script);
    return has_failed ? LOAD_EXIT_ERRORS : LOAD_EXIT_OK;
}

void *
load_script_left(struct load_requests *requests, unsigned shard, unsigned shards, size_t *size)
{
    const struct load_script *script = (const struct load_script *)requests;

    *size = sizeof(struct load_script_slot);
    return &script->slots[load_script_slot(script, shard, shards)];
}

void
load_script_free(struct load_requests *requests)
{
    struct load_script *script = (struct load_script *)requests;

    if (script == NULL)
        return;
    for (unsigned i = 0; script->lua != NULL && i < script->options.workers; i++)
        load_lua_free(script->lua[i]);
    load_lua_free(script->parent);
    load_scenario_free(script->scenario);
    load_sessions_free(script->sessions);
    if (script->slots != NULL)
        munmap(script->slots, slots_size(script));
    free(script->lua);
    free(script->addresses);
    free(script);
}
