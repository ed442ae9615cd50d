/* SPDX-License-Identifier: MIT
 *
 * What: calls of a module that compute for long, done in the threads of sxe-work, while their tasks
 * wait. The module finds the functions in the registry, and needs no symbol of lib-sxe-lua: so it
 * also works in a program with another Lua, where its calls compute at once.
 *
 * Place: sxe-lua-offload.c puts the table into the registry, before it opens the module;
 * lib-sxe-crypto uses it. It is not installed.
 *
 * Shape:
 *     call: allocates a job, copies its arguments into it
 *       |   begin ---------------------> thread: run
 *       |                                  |
 *     finish: frees the job, pushes <------'        the task was cancelled: discard
 *
 * Rules: 1 run is called once, in any thread: it uses the job alone, and nothing of Lua. 2 then
 * finish is called in the task, or discard in the loop's thread if no task waits for the job any
 * more. If run has not begun by then, it is not called. Both free the job.
 */
#ifndef SXE_LUA_OFFLOAD_INTERNAL_H
#define SXE_LUA_OFFLOAD_INTERNAL_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-work.h"

/* The key of the light userdata in the registry; it does not begin like the name of a class. */
#define SXE__LUA_OFFLOAD "offload of libsxe"

/* The first member of a job. Set run, finish, discard and size, and all other members to zero. */
struct sxe__lua_offload_job {
    struct sxe_work work; /* private */
    void (*run)(struct sxe__lua_offload_job *job);
    int (*finish)(lua_State *L, struct sxe__lua_offload_job *job); /* returns how many results */
    void (*discard)(struct sxe__lua_offload_job *job);
    size_t size;                       /* bytes of the job, which count for memory_max */
    uint64_t task;                     /* private; 0: no task waits for the job */
    struct sxe__lua_offload_job *next; /* private */
    struct sxe__lua_offload_job *prev; /* private */
};

struct sxe__lua_offload {
    /* Do the job, and return the results of finish, or nil, "cancelled". Where the task cannot
     * wait, outside of tasks, and without a thread, the job is done at once. Raises an error if the
     * jobs of this thread have more than memory_max bytes. */
    int (*begin)(lua_State *L, struct sxe__lua_offload_job *job);
};

#endif
