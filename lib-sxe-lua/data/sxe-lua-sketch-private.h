/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of require "sxe.sketch" share.
 *
 *     sxe-lua-sketch.c        the module, and what all kinds have: opening, properties, closing
 *     sxe-lua-sketch-hll.c    sketch.hll: HyperLogLog
 *     sxe-lua-sketch-bloom.c  sketch.bloom: Bloom filters
 *     sxe-lua-sketch-topk.c   sketch.topk: the most frequent keys
 *
 * No call waits: each update is one atomic step. Converting an argument to a string may run a
 * finalizer, which may close the sketch, so a call checks the sketch after its other arguments.
 */
#ifndef SXE_LUA_SKETCH_PRIVATE_H
#define SXE_LUA_SKETCH_PRIVATE_H

#include "sxe-lua-pool-private.h"

/* The options that all kinds have. */
struct sxe__lua_sketch_opening {
    const char *name; /* NULL: the file has name and size */
    const char *file;
    unsigned options;
};

struct sxe__lua_sketch_kind {
    const char *class;        /* such as "sxe.sketch.hll" */
    const char *call;         /* such as "sketch.hll" */
    const char *const *names; /* names of all options of the kind */
    const char *const *own;   /* names of the options of a new sketch */
    /* the kind's own methods; sync and close, which all kinds have, are not here */
    const luaL_Reg *methods;
    /* names of the kind's own properties; name and found, which all kinds have, are not here */
    const char *const *properties;

    /* Open a sketch with the kind's own options in the table at 1. This function may be called
     * twice for one sketch. */
    void *(*open)(lua_State *L, const struct sxe__lua_sketch_opening *opening, char *why);
    void (*close)(void *sketch);
    void *(*get_pool)(const void *sketch);
    void (*push_property)(lua_State *L, const void *sketch, unsigned property);
};

extern const struct sxe__lua_sketch_kind sxe__lua_sketch_hll;
extern const struct sxe__lua_sketch_kind sxe__lua_sketch_bloom;
extern const struct sxe__lua_sketch_kind sxe__lua_sketch_topk;

/* The sketch at an argument. Raises an error unless it is an open sketch of the kind. */
void *sxe__lua_sketch_check(lua_State *L, int argument, const struct sxe__lua_sketch_kind *kind);

/* Push the results of a call that returned 0 or -errno: true, or nil, why, code. Returns their
 * number. -EUCLEAN has its own text in place of `why`. */
int sxe__lua_sketch_push_result(lua_State *L, int result, const char *why);

/* Read a number option, which must be above 0, from the table at 1. Returns 0 if the option is
 * missing. */
lua_Number sxe__lua_sketch_take_number(lua_State *L, const char *name);

#endif
