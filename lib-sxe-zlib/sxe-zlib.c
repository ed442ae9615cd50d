/* SPDX-License-Identifier: MIT
 *
 * The module sxe.zlib: streams, and a step of one. sxe-zlib.lua has the loops over steps. Memory of
 * zlib comes from the state's allocator, so that memory_max counts it; zlib does not say how much
 * it gives back, so each piece begins with its size.
 */
#include "sxe-zlib.h"

#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "sxe-lua-internal.h"
#include "sxe-lua-part-internal.h"

SXE__LUA_PART(zlib, "lib-sxe-zlib/sxe-zlib.lua");

#define CLASS "sxe.zlib.stream"

enum {
    PIECE = 65536,    /* bytes that a step takes and makes at most; some 3 ms */
    ROOM = 3 * PIECE, /* what a step needs, and some: a buffer, its text, the window of inflate */
    COMPRESSOR_KIB = 270,
    DECOMPRESSOR_KIB = 40,
    SIZE_PLACE = 16,
    LEVEL = 6,
    LEVEL_MAX = 9,
    WINDOW_BITS = 15,
    GZIP_BITS = 16, /* more than WINDOW_BITS */
    OUTPUT_MAX = 1 << 24
};

struct stream {
    z_stream z;
    lua_Alloc alloc; /* the state's, which counts memory */
    void *alloc_user;
    lua_Integer made, max; /* bytes of output: until now, and at most */
    int bits;              /* the format, as zlib names it */
    int level;
    size_t piece; /* bytes that a step takes at most */
    bool is_compressor;
    bool is_open;
    bool has_ended; /* decompressing: the last byte was the last of a text */
};

/* ---- Memory ---- */

static voidpf
zlib_malloc(voidpf user, uInt items, uInt size)
{
    const struct stream *stream = user;
    const size_t bytes = (size_t)items * size + SIZE_PLACE;
    char *piece = stream->alloc(stream->alloc_user, NULL, 0, bytes);

    if (piece == NULL)
        return NULL;
    memcpy(piece, &bytes, sizeof(bytes));
    return piece + SIZE_PLACE;
}

static void
zlib_free(voidpf user, voidpf memory)
{
    const struct stream *stream = user;
    char *piece = (char *)memory - SIZE_PLACE;
    size_t bytes;

    memcpy(&bytes, piece, sizeof(bytes));
    (void)stream->alloc(stream->alloc_user, piece, bytes, 0);
}

/* Lua collects garbage when memory is missing, but then it calls no finalizers, and streams that
 * are garbage keep their memory. So collect them before that, if there is not much memory left. */
static void
make_room(lua_State *L)
{
    void *user;
    const lua_Alloc alloc = lua_getallocf(L, &user);
    void *room = alloc(user, NULL, 0, ROOM);

    if (room == NULL)
        (void)lua_gc(L, LUA_GCCOLLECT);
    else
        (void)alloc(user, room, ROOM, 0);
}

/* ---- Streams ---- */

static void
end_zlib(struct stream *stream)
{
    if (!stream->is_open)
        return;
    stream->is_open = false;
    (void)(stream->is_compressor ? deflateEnd(&stream->z) : inflateEnd(&stream->z));
}

/* close(stream), and the finalizer */
static int
close_stream(lua_State *L)
{
    end_zlib(luaL_checkudata(L, 1, CLASS));
    return 0;
}

/* Returns a result of zlib. */
static int
begin_zlib(struct stream *stream)
{
    stream->z = (z_stream){.zalloc = zlib_malloc, .zfree = zlib_free, .opaque = stream};
    if (stream->is_compressor)
        return deflateInit2(&stream->z, stream->level, Z_DEFLATED, stream->bits, 8,
                            Z_DEFAULT_STRATEGY);
    return inflateInit2(&stream->z, stream->bits);
}

/* High levels compare each byte with up to 256, 1024 and 4096 places. */
static size_t
piece_of_level(int level)
{
    static const size_t pieces[] = {PIECE / 2, PIECE / 8, PIECE / 32};

    return level <= LEVEL ? PIECE : pieces[level - LEVEL - 1];
}

/* Lua's collector does not see the memory of zlib. So have it do a step as large as if Lua had
 * allocated that memory; but not if the script has stopped the collector. */
static void
count_stream(lua_State *L, bool is_compressor)
{
    if (lua_gc(L, LUA_GCISRUNNING))
        (void)lua_gc(L, LUA_GCSTEP, is_compressor ? COMPRESSOR_KIB : DECOMPRESSOR_KIB);
}

/* new(is_compressor, bits, level or max, is_kept): a stream. is_kept: it may become garbage before
 * it is closed */
static int
new_stream(lua_State *L)
{
    struct stream *stream;
    int result;

    sxe__lua_refuse_at_end(L);
    stream = lua_newuserdatauv(L, sizeof(*stream), 0);
    *stream = (struct stream){.is_compressor = lua_toboolean(L, 1),
                              .bits = (int)lua_tointeger(L, 2),
                              .level = (int)lua_tointeger(L, 3),
                              .max = lua_tointeger(L, 3),
                              .piece = PIECE};
    if (stream->is_compressor)
        stream->piece = piece_of_level(stream->level);
    stream->alloc = lua_getallocf(L, &stream->alloc_user);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setmetatable(L, -2);
    result = begin_zlib(stream);
    if (result != Z_OK) { /* dropped streams may have the memory */
        (void)lua_gc(L, LUA_GCCOLLECT);
        result = begin_zlib(stream);
    }
    if (result != Z_OK)
        return luaL_error(L, "not enough memory");
    stream->is_open = true;
    if (lua_toboolean(L, 4))
        count_stream(L, stream->is_compressor);
    make_room(L);
    return 1;
}

/* Push nil and why, and end the stream. */
static int
fail_stream(lua_State *L, struct stream *stream, const char *why)
{
    lua_pushnil(L);
    lua_pushfstring(L, "zlib: %s", why);
    end_zlib(stream);
    return 2;
}

/* ---- A step ---- */

/* Why decompressing failed; NULL: it did not. */
static const char *
find_inflate_fault(const struct stream *stream, int result, bool is_last)
{
    if (result == Z_NEED_DICT)
        return "the data needs a dictionary";
    if (result == Z_DATA_ERROR)
        return stream->z.msg;
    if (is_last && !stream->has_ended && stream->z.avail_out > 0)
        return "the data ends too early";
    return NULL;
}

/* Decompress. Returns why that failed, or NULL. is_last: no more input comes. */
static const char *
run_inflate(lua_State *L, struct stream *stream, bool is_last)
{
    int result;

    if (stream->has_ended && stream->z.avail_in > 0) {
        if (stream->bits < GZIP_BITS)
            return "bytes follow the end of the data";
        (void)inflateReset(&stream->z); /* gzip may have several texts, one after the other */
        stream->has_ended = false;
    }
    result = inflate(&stream->z, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR)
        luaL_error(L, "not enough memory");
    stream->has_ended = stream->has_ended || result == Z_STREAM_END;
    return find_inflate_fault(stream, result, is_last && stream->z.avail_in == 0);
}

/* step(stream, text, at, flush): compress or decompress a piece of the text from the byte `at`,
 * which counts from 0: output, the byte where the next piece begins, whether there may be more
 * output; or nil, why */
static int
l_zlib_step(lua_State *L)
{
    struct stream *stream = luaL_checkudata(L, 1, CLASS);
    size_t length, at, part;
    const int flush = (int)lua_tointeger(L, 4);
    const char *text, *why = NULL;
    luaL_Buffer output;
    char *room;
    bool is_last;

    text = lua_tolstring(L, 2, &length);
    make_room(L);
    room = luaL_buffinitsize(L, &output, PIECE);
    if (!stream->is_open) /* asked now: a finalizer that ran in here may have closed it */
        return luaL_error(L, "zlib: the stream is closed");
    at = (size_t)lua_tointeger(L, 3);
    is_last = length - at <= stream->piece;
    part = is_last ? length - at : stream->piece;
    stream->z.next_in = (Bytef *)(uintptr_t)(text + at);
    stream->z.avail_in = (uInt)part;
    stream->z.next_out = (Bytef *)room;
    stream->z.avail_out = PIECE;
    if (stream->is_compressor)
        (void)deflate(&stream->z, is_last ? flush : Z_NO_FLUSH);
    else
        why = run_inflate(L, stream, is_last && flush == Z_FINISH);
    at += part - stream->z.avail_in;
    stream->made += PIECE - (lua_Integer)stream->z.avail_out;
    if (why == NULL && !stream->is_compressor && stream->made > stream->max)
        why = "the text is longer than max";
    if (why != NULL)
        return fail_stream(L, stream, why);
    const size_t made = PIECE - stream->z.avail_out;

    luaL_pushresultsize(&output, made);
    lua_pushinteger(L, (lua_Integer)at);
    lua_pushboolean(L, made == PIECE);
    return 3;
}

/* kind(value): "compressor", "decompressor"; false for a closed stream; nil for other values */
static int
l_zlib_kind(lua_State *L)
{
    const struct stream *stream = luaL_testudata(L, 1, CLASS);

    if (stream == NULL)
        lua_pushnil(L);
    else if (!stream->is_open)
        lua_pushboolean(L, false);
    else
        lua_pushstring(L, stream->is_compressor ? "compressor" : "decompressor");
    return 1;
}

/* ---- Options, sums ---- */

/* The bits of the format on top, which may be nil. */
static int
bits_of_format(lua_State *L, const char *call)
{
    static const struct {
        const char *format;
        int bits;
    } formats[] = {{"gzip", WINDOW_BITS + GZIP_BITS}, {"zlib", WINDOW_BITS}, {"raw", -WINDOW_BITS}};
    const char *format = lua_isnil(L, -1) ? "gzip" : lua_tostring(L, -1);

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (format != NULL && strcmp(format, formats[i].format) == 0)
            return formats[i].bits;
    }
    return luaL_error(L, "%s: format: \"gzip\", \"zlib\" or \"raw\" expected", call);
}

/* settings(options, is_compressor, call): bits, level or max */
static int
l_zlib_settings(lua_State *L)
{
    static const char *const names[2][3] = {{"format", "max", NULL}, {"format", "level", NULL}};
    const bool is_compressor = lua_toboolean(L, 2);
    const char *call = lua_tostring(L, 3);
    lua_Integer number = is_compressor ? LEVEL : OUTPUT_MAX;
    int is_integer = 1;

    if (lua_isnoneornil(L, 1)) {
        lua_pushinteger(L, WINDOW_BITS + GZIP_BITS);
        lua_pushinteger(L, number);
        return 2;
    }
    sxe__lua_option_names(L, 1, names[is_compressor], call);
    lua_getfield(L, 1, "format");
    lua_pushinteger(L, bits_of_format(L, call));
    if (lua_getfield(L, 1, names[is_compressor][1]) != LUA_TNIL)
        number = sxe__lua_option_integer(L, &is_integer);
    if (!is_integer || number < 0 || (is_compressor && number > LEVEL_MAX))
        return luaL_error(L, "%s: %s: an integer from 0%s expected", call, names[is_compressor][1],
                          is_compressor ? " to 9" : "");
    lua_pop(L, 1);
    lua_pushinteger(L, number);
    return 2;
}

static int
push_checksum(lua_State *L, uLong (*sum)(uLong, const Bytef *, uInt), lua_Integer first)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    const lua_Integer before = luaL_optinteger(L, 2, first);

    luaL_argcheck(L, length <= UINT_MAX, 1, "less than 4 GiB expected");
    luaL_argcheck(L, before >= 0 && before <= UINT32_MAX, 2,
                  "a checksum expected: an integer from 0 to 4294967295");
    lua_pushinteger(L, (lua_Integer)sum((uLong)before, (const Bytef *)text, (uInt)length));
    return 1;
}

/* zlib.crc32(text [, crc]) */
static int
l_crc32(lua_State *L)
{
    return push_checksum(L, crc32, 0);
}

/* zlib.adler32(text [, sum]) */
static int
l_adler32(lua_State *L)
{
    return push_checksum(L, adler32, 1);
}

/* ---- The module ---- */

/* Make and push the metatable of streams, and leave the table of its methods below it. */
static void
push_stream_class(lua_State *L)
{
    lua_newtable(L);
    sxe__lua_new_class(L, CLASS);
    lua_pushcfunction(L, close_stream);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, close_stream);
    lua_setfield(L, -2, "__close");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
}

int
sxe_zlib_open(lua_State *L)
{
    static const luaL_Reg native[] = {{"step", l_zlib_step},
                                      {"kind", l_zlib_kind},
                                      {"close", close_stream},
                                      {"settings", l_zlib_settings},
                                      {"crc32", l_crc32},
                                      {"adler32", l_adler32},
                                      {NULL, NULL}};

    sxe__lua_push_part(L, &zlib_part);
    luaL_newlib(L, native);
    push_stream_class(L);
    lua_pushcclosure(L, new_stream, 1);
    lua_setfield(L, -3, "new");
    lua_call(L, 2, 1);
    return 1;
}
