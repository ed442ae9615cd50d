/* SPDX-License-Identifier: MIT
 *
 * What: a state with sxe.postgres and a loop, and faults of libpq: each of its calls that may fail
 * for want of memory can fail.
 *
 * Example:
 *     world_start("dofile 'test/unit/lib-sxe-postgres/postgres-queries.lua'");
 *     pq_fault("PQgetCancel");                   the next call fails
 *     ...
 *     until("done");
 *     world_stop();
 */
#ifndef POSTGRES_WORLD_H
#define POSTGRES_WORLD_H

#include "lua-net.h"

#include <libpq-fe.h>

#include "lua-count.h"
#include "sxe-postgres-private.h"
#include "sxe-postgres.h"

static const char *pq_failing; /* the name of the call that fails; NULL: none fails */

static inline bool
pq_strikes(const char *name)
{
    const bool strikes = pq_failing != NULL && strcmp(pq_failing, name) == 0;

    if (strikes)
        pq_failing = NULL;
    return strikes;
}

static inline void
pq_fault(const char *name)
{
    pq_failing = name;
}

#define EACH_PQ(X)                                                                                \
    X(PQconnectStartParams, PGconn *, NULL,                                                       \
      (const char *const *names, const char *const *values, int expand), (names, values, expand)) \
    X(PQsetnonblocking, int, -1, (PGconn * pg, int is_on), (pg, is_on))                           \
    X(PQgetCancel, PGcancel *, NULL, (PGconn * pg), (pg))                                         \
    X(PQsendQueryParams, int, 0,                                                                  \
      (PGconn * pg, const char *sql, int number, const Oid *types, const char *const *values,     \
       const int *lengths, const int *formats, int format),                                       \
      (pg, sql, number, types, values, lengths, formats, format))                                 \
    X(PQsendPrepare, int, 0,                                                                      \
      (PGconn * pg, const char *name, const char *sql, int number, const Oid *types),             \
      (pg, name, sql, number, types))                                                             \
    X(PQenterPipelineMode, int, 0, (PGconn * pg), (pg))                                           \
    X(PQpipelineSync, int, 0, (PGconn * pg), (pg))                                                \
    X(PQunescapeBytea, unsigned char *, NULL, (const unsigned char *text, size_t *length),        \
      (text, length))                                                                             \
    X(PQconninfoParse, PQconninfoOption *, NULL, (const char *text, char **why), (text, why))     \
    X(PQconndefaults, PQconninfoOption *, NULL, (void), ())

#define DEFINE_FAULT(name, type, failure, types, names) \
    type __real_##name types;                           \
    type __wrap_##name types;                           \
    type __wrap_##name types                            \
    {                                                   \
        if (pq_strikes(#name))                          \
            return failure;                             \
        return __real_##name names;                     \
    }
EACH_PQ(DEFINE_FAULT)

static int
l_pq_fault(lua_State *L)
{
    static char name[40];

    snprintf(name, sizeof(name), "%s", luaL_checkstring(L, 1));
    if (strcmp(name, "calloc") == 0)
        fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    else if (strcmp(name, "getpeername") == 0)
        fake_os_fail(FAKE_GETPEERNAME, 1, 1, ENOTCONN);
    else if (strcmp(name, "pthread_create") == 0)
        fake_os_fail(FAKE_PTHREAD_CREATE, 1, 1, EAGAIN);
    else if (strcmp(name, "second pthread_create") == 0)
        fake_os_fail(FAKE_PTHREAD_CREATE, 2, 1, EAGAIN);
    else
        pq_fault(name);
    return 0;
}

static void
give_faults(void)
{
    sxe_register(300, 0);
    lua_pushglobaltable(lua->main);
    lua_pushliteral(lua->main, "pq_fault");
    lua_pushcfunction(lua->main, l_pq_fault);
    lua_rawset(lua->main, -3);
    lua_pop(lua->main, 1);
    count_lines("build/coverage/lua/postgres.info");
}

static unsigned world_open_before; /* descriptors with a loop, but no connection */

static inline void
world_start(const char *script)
{
    net_postgres = sxe_postgres_open;
    net_tasks = 300;
    net_on_state = give_faults;
    net_start(script);
    world_open_before = fake_os_open_fds();
}

static inline void
world_stop(void)
{
    state_stop();
    /* Threads that still cancel queries give their connections back. */
    for (unsigned i = 0; i < WAIT_TURNS && fake_os_open_fds() > world_open_before; i++)
        turn_slowly(1);
    net_end();
}

#endif
