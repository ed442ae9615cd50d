/* SPDX-License-Identifier: MIT
 *
 * Finding the executable lines of a script in the bytecode that string.dump writes.
 */
#include "lines.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>

/* The bytes before the first function: the signature, version, format and check data; the sizes of
 * an instruction, an integer and a number; an integer and a number as examples; the count of
 * upvalues. */
enum { HEADER_SIZE = 4 + 1 + 1 + 6 + 3 + 8 + 8 + 1 };

enum { INSTRUCTION_SIZE = 4, NUMBER_SIZE = 8, UPVALUE_SIZE = 3, ELSEWHERE = -128 };

/* The types of constants that have a value. */
enum { INTEGER = 0x03, SHORT_STRING = 0x04, FLOAT = 0x13, LONG_STRING = 0x14 };

struct reader {
    const unsigned char *at;
    void (*take)(void *user, unsigned line);
    void *user;
};

/* Read a size: 7 bits in each byte; the top bit marks the last byte. */
static size_t
read_packed_size(struct reader *reader)
{
    size_t size = 0;
    unsigned char byte;

    do {
        byte = *reader->at++;
        size = size << 7 | (byte & 0x7f);
    } while ((byte & 0x80) == 0);
    return size;
}

static void
skip_bytecode_string(struct reader *reader)
{
    size_t size = read_packed_size(reader);

    reader->at += size > 0 ? size - 1 : 0;
}

static void
skip_constants(struct reader *reader)
{
    for (size_t left = read_packed_size(reader); left > 0; left--) {
        unsigned char type = *reader->at++;

        if (type == SHORT_STRING || type == LONG_STRING)
            skip_bytecode_string(reader);
        else if (type == INTEGER || type == FLOAT)
            reader->at += NUMBER_SIZE;
    }
}

/* A list has a byte for each instruction: how many lines the instruction is below the one before
 * it. The byte ELSEWHERE means that the line number is in a second list. The first instruction of a
 * vararg function belongs to no line of the script. */
static void
read_line_table(struct reader *reader, unsigned line, bool is_vararg)
{
    size_t number = read_packed_size(reader);
    const signed char *steps = (const signed char *)reader->at;

    reader->at += number;
    read_packed_size(reader);
    for (size_t i = 0; i < number; i++) {
        if (steps[i] == ELSEWHERE) {
            read_packed_size(reader);
            line = (unsigned)read_packed_size(reader);
        } else {
            line += (unsigned)steps[i];
        }
        if (i > 0 || !is_vararg)
            reader->take(reader->user, line);
    }
}

static void
skip_names(struct reader *reader)
{
    for (size_t left = read_packed_size(reader); left > 0; left--) {
        skip_bytecode_string(reader);
        read_packed_size(reader);
        read_packed_size(reader);
    }
    for (size_t left = read_packed_size(reader); left > 0; left--)
        skip_bytecode_string(reader);
}

/* Read a function, and by recursion the functions inside it. Lua's compiler limits their depth. */
static void
read_bytecode_function(struct reader *reader)
{
    unsigned line;
    bool is_vararg;

    skip_bytecode_string(reader);
    line = (unsigned)read_packed_size(reader);
    read_packed_size(reader);
    is_vararg = reader->at[1] != 0;
    reader->at += 3;
    reader->at += read_packed_size(reader) * INSTRUCTION_SIZE;
    skip_constants(reader);
    reader->at += read_packed_size(reader) * UPVALUE_SIZE;
    for (size_t left = read_packed_size(reader); left > 0; left--)
        read_bytecode_function(reader);
    read_line_table(reader, line, is_vararg);
    skip_names(reader);
}

static int
write_piece(lua_State *L, const void *piece, size_t size, void *out)
{
    (void)L;
    return fwrite(piece, 1, size, out) < size;
}

static bool
dump_lines(const char *path, FILE *out)
{
    lua_State *L = luaL_newstate();
    bool is_good = L != NULL && luaL_loadfilex(L, path, "t") == LUA_OK &&
                   lua_dump(L, write_piece, out, 0) == 0;

    if (L != NULL)
        lua_close(L);
    return is_good;
}

/* Compile the file. Returns its bytecode, which the caller frees. NULL: the file cannot be
 * compiled, or there is no memory. */
static char *
compile_list(const char *path)
{
    char *code = NULL;
    size_t size;
    FILE *out = open_memstream(&code, &size);
    bool is_good;

    if (out == NULL)
        return NULL;
    is_good = dump_lines(path, out);
    if (fclose(out) == 0 && is_good)
        return code;
    free(code);
    return NULL;
}

bool
lines_of_file(const char *path, void (*take)(void *user, unsigned line), void *user)
{
    char *code = compile_list(path);
    struct reader reader = {.take = take, .user = user};

    if (code == NULL)
        return false;
    reader.at = (const unsigned char *)code + HEADER_SIZE;
    read_bytecode_function(&reader);
    free(code);
    return true;
}
