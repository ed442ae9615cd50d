/* SPDX-License-Identifier: MIT
 *
 * What: what the files of require "sxe.sketch" share.
 *
 *     sxe-lua-sketch.c        the module, and what all kinds have: opening, properties, closing
 *     sxe-lua-sketch-hll.c    sketch.hll: HyperLogLog
 *     sxe-lua-sketch-bloom.c  sketch.bloom: Bloom filters
 *     sxe-lua-sketch-topk.c   sketch.topk: the most frequent keys
 *
 * No call waits: each update is one atomic step. An argument that is converted to a string may run
 * a finalizer, which may close the sketch, so a call asks for the sketch after its arguments.
 */
#ifndef SXE_LUA_SKETCH_PRIVATE_H
#define SXE_LUA_SKETCH_PRIVATE_H

#include "sxe-lua-pool-private.h"

/* The options that all kinds have. */
struct sxe__lua_sketch_opening {
    const char *name; /* NULL: the file says all */
    const char *file;
    unsigned options;
};

struct sxe__lua_sketch_kind {
    const char *class;             /* "sxe.sketch.hll" */
    const char *call;              /* "sketch.hll" */
    const char *const *names;      /* of all options that the kind has */
    const char *const *own;        /* of the options that only a new sketch has */
    const luaL_Reg *methods;       /* without sync and close, which all kinds have */
    const char *const *properties; /* without name and found, which all kinds have */

    /* Open a sketch; own options are those of the table at 1. It may be called twice. */
    void *(*open)(lua_State *L, const struct sxe__lua_sketch_opening *opening, char *why);
    void (*close)(void *sketch);
    void *(*get_pool)(const void *sketch);
    void (*push_property)(lua_State *L, const void *sketch, unsigned property);
};

extern const struct sxe__lua_sketch_kind sxe__lua_sketch_hll;
extern const struct sxe__lua_sketch_kind sxe__lua_sketch_bloom;
extern const struct sxe__lua_sketch_kind sxe__lua_sketch_topk;

/* The sketch at an argument; raises unless one of that kind is there, and open. */
void *sxe__lua_sketch_check(lua_State *L, int argument, const struct sxe__lua_sketch_kind *kind);

/* Push the results of a call that returned 0 or -errno: true, or nil, why, code. Returns their
 * number. why is not for -EUCLEAN, which has a text of its own. */
int sxe__lua_sketch_push_result(lua_State *L, int result, const char *why);

/* Take the number of an option of the table at 1, which must be above 0; 0: it is missing. */
lua_Number sxe__lua_sketch_take_number(lua_State *L, const char *name);

#endif
