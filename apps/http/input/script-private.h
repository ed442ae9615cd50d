/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the files which implement script.h share.
 *
 * Shape: script.c         loads it, setup() and done(), what workers leave for the parent
 *        script-common.c  what all kinds of scripts need in a worker
 *        script-worker.c  a script of wrk in a worker: begin, next, replied, end
 *        scenario.c       the same for a scenario, and how one is read
 *        session.c        the same for a scenario with steps: see session-private.h
 *        script-thread.c  the objects that setup() gets, and wrk.thread
 *        script-reply.c   response() and check(), what they get and return
 *        script-stats.c   what done() gets
 *        script-wrk.c     wrk.format ...   script-address.c  wrk.lookup, wrk.connect
 *        script-compat.c  what LuaJIT had  script-query.c    where a request ends
 *        script-lua.c     a state that cannot hurt        script-values.c  values as bytes
 *
 * A script has a Lua state for the parent and one for each worker. All are made before the workers
 * are forked, so that thread:set can write into them. A scenario has only one state; fork gives
 * each worker a copy of it.
 */
#ifndef LOAD_SCRIPT_PRIVATE_H
#define LOAD_SCRIPT_PRIVATE_H

#include "result.h"
#include "script-address.h"
#include "script-lua.h"
#include "script.h"

#define LOAD_SCRIPT_GLOBALS_MAX (1u << 20)
#define LOAD_SCRIPT_NAME_MAX    64

/* A worker's results for the parent, in shared memory. */
struct load_script_slot {
    uint64_t failed_checks;
    char reason[200]; /* the reason of the first failed check */
    bool has_failed;  /* whether a function of the script raised an error */
    /* the hash of an error that a worker has printed; 0: none; see is_news in script-common.c */
    _Atomic uint64_t said;
    bool is_over; /* whether the worker has ended, so that `globals` has the values at its end */
    size_t globals_length;
    /* the worker's globals, in the format of script-values.h; before the run the globals that
     * thread:set sent to the worker */
    char globals[LOAD_SCRIPT_GLOBALS_MAX];
};

struct load_scenario;
struct load_sessions;

struct load_script {
    /* must be the first member, because a pointer to it is converted to a pointer to the script */
    struct load_requests requests;
    struct load_script_options options;
    FILE *err;
    /* a descriptor of the original stdout while stdout leads to stderr; -1: stdout leads where it
     * should */
    int diverted;
    /* the state in which setup() and done() run, or, in a scenario, its only state */
    struct load_lua *parent;
    struct load_lua **lua;          /* an array of options.workers states; NULL in a scenario */
    struct load_script_slot *slots; /* an array of options.workers slots */
    struct load_address *addresses; /* an array of options.workers addresses: thread.addr */
    struct load_scenario *scenario; /* NULL: the script is one of wrk */
    struct load_sessions *sessions; /* NULL: the script is no scenario, or one with kinds */
    char names[LOAD_KINDS_MAX][LOAD_SCRIPT_NAME_MAX];
    const char *name_pointers[LOAD_KINDS_MAX];

    /* Members for the worker process */
    struct load_lua *own; /* the worker's state; NULL in the parent */
    unsigned shard;       /* the number of this worker among the workers of this process, from 0 */
    /* the number of this worker among the workers of all processes that share the load */
    unsigned nth;
    bool is_stopped; /* whether thread:stop() was called, or an error was raised */
    char ip[64];     /* the text that requests.ip points to */
    struct load_lua_cost requesting;
    struct load_lua_cost replying;
    /* a key of the registry whose value is the string that has `bytes`, so that Lua does not free
     * it */
    int anchor;
    const char *bytes; /* the bytes that request() returned: one request or several */
    size_t length;
    size_t at;         /* how many of `bytes` were sent already */
    const char *fixed; /* the bytes that wrk.format() made after init() */
    size_t fixed_length;
    /* the query that consists of the bytes `fixed`, if the script never sends another one */
    struct load_query query;
    uint64_t delay_ns;
    uint16_t kind;
    bool calls_lua; /* whether Lua is called for each query */
    /* whether a message about bytes that request() returned was printed; a worker prints only
     * one */
    bool has_noted;
};

/* Fill in script->requests; in script-worker.c and scenario.c. */
void load_script_worker_init(struct load_script *script);
bool load_scenario_load(struct load_script *script); /* load a scenario; false: err says why not */
void load_scenario_free(struct load_scenario *scenario);

/* Load a scenario with steps, inside load_lua_call; its table is at index 2. In session.c. */
void load_sessions_load(lua_State *L, struct load_script *script);
void load_sessions_free(struct load_sessions *sessions);

/* script-common.c: if stdout is for data, send the output of scripts, and of programs that they
 * start, to stderr while scripts run. */
void load_script_divert_stdout(struct load_script *script);
void load_script_restore_stdout(struct load_script *script);

/* script-common.c, called in a worker: store its shard, the number of shards, and its Lua state. */
void load_script_begin(struct load_script *script, unsigned shard, unsigned shards,
                       struct load_lua *own);

/* The number that a worker has in this process, if it is worker `shard` of all `shards` workers. */
static inline unsigned
load_script_slot(const struct load_script *script, unsigned shard, unsigned shards)
{
    return (unsigned)((uint64_t)shard * script->options.workers / shards);
}
void load_script_fail(struct load_script *script); /* end the run, after an error was printed */
void load_script_end(struct load_requests *requests, uint64_t *calls, uint64_t *ns);
/* seed math.random for this shard */
bool load_script_seed(struct load_script *script, uint64_t seed);

/* script-worker.c: get the script's next query. body is a lua_CFunction that calls the script and
 * then load_script_keep_request. If the script's last call returned several requests, pass NULL to
 * get the next of them. 0, or -1: the run ends. */
int load_script_ask(struct load_script *script, lua_CFunction body, struct load_query *query);

/* script-worker.c: pass a reply to the script. body is a lua_CFunction that calls the script; it
 * gets a struct load_script_reply. `what` names the script's function in messages. Returns whether
 * the reply passed the script's check. */
struct load_script_reply {
    struct load_script *script;
    const struct load_exchange *exchange;
    bool is_passed; /* whether the reply passed; false until the body sets it */
};
bool load_script_tell(struct load_script *script, const char *what, lua_CFunction body,
                      const struct load_exchange *exchange);

/* ---- Inside load_lua_call ---- */

/* script-worker.c: load_script_new_anchor adds an entry to the registry, once in each state.
 * load_script_keep_request pops the result of request(), keeps it in this entry, so that Lua does
 * not free it, and sets script->bytes to it. */
int load_script_new_anchor(lua_State *L);
void load_script_keep_request(lua_State *L, struct load_script *script);

/* script-common.c: add a kind of query with this name. Raises if there are too many kinds, or if
 * the name is too long. */
void load_script_add_kind(lua_State *L, struct load_script *script, const char *name);

/* script-thread.c: load_thread_open makes the methods of thread objects, once in each state;
 * load_thread_push pushes the thread object of a worker. */
void load_thread_open(lua_State *L);
void load_thread_push(lua_State *L, struct load_script *script, unsigned worker);

/* script-reply.c: load_reply_respond and load_reply_check pop the function at the top of the stack,
 * and call it with a reply. load_reply_check returns whether the check passed, and counts a check
 * that failed. */
void load_reply_open(lua_State *L);
void load_reply_respond(lua_State *L, struct load_script *script,
                        const struct load_exchange *exchange);
bool load_reply_check(lua_State *L, struct load_script *script,
                      const struct load_exchange *exchange);

/* script-stats.c: push summary, latency and requests. */
void load_script_push_stats(lua_State *L, const struct load_run *run);

#endif
