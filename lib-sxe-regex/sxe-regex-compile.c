/* SPDX-License-Identifier: MIT
 *
 * From a pattern to an object, and the memory of PCRE2, which comes from the state's allocator, so
 * that memory_max counts it. PCRE2 does not say how much it gives back, so each piece begins with
 * its size.
 */
#include "sxe-regex-private.h"

#include <stdint.h>
#include <string.h>

#include "sxe-lua-internal.h"

#define CLASS "sxe.regex"

enum {
    PATTERN_MAX = 16384,
    STEPS_MAX = 1 << 23,             /* of machine code: 15 ms at one place, 0.1 s in all */
    INTERPRETED_STEPS_MAX = 1 << 20, /* 20 ms at one place, 0.2 s in all */
    JIT_PATTERN_MAX = 32768,         /* bytes of a compiled pattern; a larger one is interpreted */
    MACHINE_CODE_MAX = 1 << 24,      /* bytes of a state; then further patterns are interpreted */
    CASELESS_RANGES_MAX = 24,        /* of UTF: 80 ms of CPU */
    CALLS_TIMES_BYTES_MAX = 65536,   /* 60 ms of CPU */
    CLASS_TIMES_TEXT_LOG = 32,       /* log2 of bytes times bytes: 0.2 s of CPU */
    INTERPRETED_CLASS_LOG = 29,
    STACK_FIRST = 32768,
    STACK_MAX = 1 << 20,
    HEAP_MAX_KIB = 16384,
    SIZE_PLACE = 16,      /* keeps the piece aligned */
    REALM_RESERVE = 8192, /* bytes that a realm needs for more than the pattern */
    MESSAGE_MAX = 256
};

/* ---- Memory ---- */

static void *
regex_malloc(size_t size, void *user)
{
    struct sxe__regex_engine *engine = user;
    char *piece = engine->alloc(engine->alloc_user, NULL, 0, size + SIZE_PLACE);

    if (piece == NULL)
        return NULL;
    if (size > engine->largest)
        engine->largest = size;
    memcpy(piece, &size, sizeof(size));
    return piece + SIZE_PLACE;
}

static void
regex_free(void *memory, void *user)
{
    const struct sxe__regex_engine *engine = user;
    char *piece = memory;
    size_t size;

    if (memory == NULL)
        return;
    piece -= SIZE_PLACE;
    memcpy(&size, piece, sizeof(size));
    (void)engine->alloc(engine->alloc_user, piece, size + SIZE_PLACE, 0);
}

int
sxe__regex_raise_memory(lua_State *L)
{
    lua_pushliteral(L, "not enough memory"); /* lua_error() knows this very text */
    return lua_error(L);
}

/* ---- The engine, which all patterns share ---- */

static int
free_engine(lua_State *L)
{
    struct sxe__regex_engine *engine = lua_touserdata(L, 1);

    pcre2_match_data_free(engine->data);
    pcre2_jit_stack_free(engine->stack);
    pcre2_match_context_free(engine->match);
    pcre2_compile_context_free(engine->compile);
    pcre2_general_context_free(engine->general);
    return 0;
}

/* Make the contexts; and the stack of machine code, which realms do not have. Returns whether there
 * is memory for them. */
static bool
fill_engine(struct sxe__regex_engine *engine, bool has_stack)
{
    engine->general = pcre2_general_context_create(regex_malloc, regex_free, engine);
    if (engine->general == NULL)
        return false;
    engine->compile = pcre2_compile_context_create(engine->general);
    engine->match = pcre2_match_context_create(engine->general);
    if (has_stack)
        engine->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MAX, engine->general);
    if (engine->compile == NULL || engine->match == NULL || (has_stack && engine->stack == NULL))
        return false;
    (void)pcre2_set_newline(engine->compile, PCRE2_NEWLINE_LF);
    (void)pcre2_set_heap_limit(engine->match, HEAP_MAX_KIB);
    pcre2_jit_stack_assign(engine->match, NULL, engine->stack);
    return true;
}

void
sxe__regex_push_engine(lua_State *L)
{
    struct sxe__regex_engine *engine;

    sxe__lua_refuse_at_end(L);
    engine = lua_newuserdatauv(L, sizeof(*engine), 1);
    *engine = (struct sxe__regex_engine){.general = NULL};
    engine->alloc = lua_getallocf(L, &engine->alloc_user);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_engine);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    if (!fill_engine(engine, !sxe__lua_is_realm(L)))
        sxe__regex_raise_memory(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, engine); /* until the state ends */
}

/* ---- The class ---- */

static int
free_regex(lua_State *L)
{
    struct sxe__regex *regex = lua_touserdata(L, 1);

    pcre2_code_free(regex->code);
    regex->engine->machine_code -= regex->machine_code;
    regex->machine_code = 0;
    regex->code = NULL;
    return 0;
}

void
sxe__regex_push_class(lua_State *L)
{
    luaL_newmetatable(L, CLASS);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pushcfunction(L, free_regex);
    lua_setfield(L, -2, "__gc");
}

struct sxe__regex *
sxe__regex_check(lua_State *L, int argument)
{
    struct sxe__regex *regex = luaL_checkudata(L, argument, CLASS);

    luaL_argcheck(L, regex->code != NULL, argument, "the pattern was collected as garbage");
    return regex;
}

/* ---- Compiling ---- */

static uint32_t
check_flags(lua_State *L, int argument)
{
    static const struct {
        char flag;
        uint32_t option;
    } flags[] = {{'i', PCRE2_CASELESS},
                 {'m', PCRE2_MULTILINE},
                 {'s', PCRE2_DOTALL},
                 {'x', PCRE2_EXTENDED},
                 {'u', PCRE2_UTF | PCRE2_UCP},
                 {'U', PCRE2_UNGREEDY},
                 {'a', PCRE2_ANCHORED},
                 {'D', PCRE2_DOLLAR_ENDONLY},
                 {'J', PCRE2_DUPNAMES},
                 {'n', PCRE2_NO_AUTO_CAPTURE},
                 {'j', 0},
                 {'o', 0}};
    enum { FLAGS = sizeof(flags) / sizeof(flags[0]) };
    uint32_t options = PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;

    for (const char *flag = luaL_optstring(L, argument, ""); *flag != '\0'; flag++) {
        size_t i = 0;

        while (i < FLAGS && flags[i].flag != *flag)
            i++;
        if (i == FLAGS)
            luaL_error(L, "regex: no flag '%c'", *flag);
        options |= flags[i].option;
    }
    return options;
}

/* Push nil, why and the byte, which counts from 1; `at` counts from 0. */
static int
refuse_pattern(lua_State *L, const char *why, size_t at)
{
    lua_pushnil(L);
    lua_pushfstring(L, "regex: %s, at byte %I", why, (LUAI_UACINT)(at + 1));
    lua_pushinteger(L, (lua_Integer)(at + 1));
    return 3;
}

/* The byte before the \E that ends a quotation, which begins with \Q at `at`; or the length. */
static size_t
skip_quotation(const char *pattern, size_t length, size_t at)
{
    const char *end = memmem(pattern + at, length - at, "\\E", 2);

    return end != NULL ? (size_t)(end - pattern) - 1 : length;
}

/* Find \G and verbs such as (*SKIP), whose meaning depends on a search in one piece; and \X, which
 * looks at all regional indicators before each one, so that a text of them takes minutes in one
 * step. The length is returned if there are none. "(*S" is refused in a class, too, which does no
 * harm. */
static size_t
find_refused(const char *pattern, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (pattern[i] == '\\' && pattern[i + 1] == 'Q') {
            i = skip_quotation(pattern, length, i + 2);
        } else if (pattern[i] == '\\') {
            if (pattern[i + 1] == 'G' || pattern[i + 1] == 'X')
                return i;
            i++;
        } else if (i + 2 < length && pattern[i] == '(' && pattern[i + 1] == '*' &&
                   (pattern[i + 2] == ':' || (pattern[i + 2] >= 'A' && pattern[i + 2] <= 'Z'))) {
            return i;
        }
    }
    return length;
}

/* Whether a pattern may ignore case: by the flag, or by an option such as (?i) or (?xi:. */
static bool
may_ignore_case(const struct sxe_span *pattern, uint32_t options)
{
    const char *end = pattern->base + pattern->length;

    if (options & PCRE2_CASELESS)
        return true;
    for (const char *p = pattern->base; p + 2 < end; p++) {
        if (p[0] != '(' || p[1] != '?')
            continue;
        for (p += 2; p < end && strchr("^imnsxJU", *p) != NULL && *p != '\0'; p++) {
            if (*p == 'i')
                return true;
        }
        p--;
    }
    return false;
}

/* Where it ignores case, PCRE2 looks up each character of a range: 3 ms for the largest range of
 * UTF. So the ranges of such a pattern are limited. Returns where the first one too many is, or the
 * length. */
static size_t
find_costly_range(const struct sxe_span *pattern, uint32_t options)
{
    unsigned ranges = 0;

    if (!(options & PCRE2_UTF) || !may_ignore_case(pattern, options))
        return pattern->length;
    for (size_t i = 0; i < pattern->length; i++) {
        ranges += pattern->base[i] == '-';
        if (ranges > CASELESS_RANGES_MAX)
            return i;
    }
    return pattern->length;
}

/* Whether a call of a group begins at this byte: (?R), (?1), (?+1), (?-1), (?&name), (?P>name),
 * \g<name>, \g'name'. The pattern ends with a zero byte. */
static bool
is_group_call(const char *p)
{
    if (p[0] == '\\')
        return p[1] == 'g' && (p[2] == '<' || p[2] == '\'');
    if (p[0] != '(' || p[1] != '?')
        return false;
    p += p[2] == '+' || p[2] == '-' ? 3 : 2;
    return *p == 'R' || *p == '&' || (*p >= '0' && *p <= '9') || (*p == 'P' && p[1] == '>');
}

/* For each call of a group, PCRE2 looks at much of the pattern, at groups in groups many times. So
 * the calls times the bytes of a pattern are limited. Returns where the first call too many is, or
 * the length. */
static size_t
find_costly_call(const struct sxe_span *pattern)
{
    size_t calls = 0;

    for (size_t i = 0; i < pattern->length; i++) {
        calls += is_group_call(pattern->base + i);
        if (calls * pattern->length > CALLS_TIMES_BYTES_MAX)
            return i;
    }
    return pattern->length;
}

/* With UTF, each character is compared with the items of a class one by one, and a step such as
 * [...]++ reads the rest of the text. So the bytes of all classes times those of a text are
 * limited. Returns the largest text; `log` is the limit. All between the first bracket and the last
 * one counts as a class. */
static size_t
largest_text(const struct sxe_span *pattern, int log)
{
    const char *first = memchr(pattern->base, '[', pattern->length);
    const char *last = first == NULL ? NULL : memrchr(pattern->base, ']', pattern->length);

    if (last == NULL || last < first)
        return SIZE_MAX;
    return ((size_t)1 << log) / (size_t)(last - first);
}

/* The pattern could not be compiled. */
static int
refuse_compiled(lua_State *L, int error, size_t at)
{
    char message[MESSAGE_MAX];

    if (error == PCRE2_ERROR_HEAP_FAILED)
        return sxe__regex_raise_memory(L);
    (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof(message));
    return refuse_pattern(L, message, at);
}

/* Make the user value: the numbers and names of the groups. */
static void
set_group_names(lua_State *L, const struct sxe__regex *regex)
{
    uint32_t count = 0, size = 0;
    const uint8_t *entry = NULL;

    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &count);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &entry);
    lua_createtable(L, (int)(2 * count), 0);
    for (lua_Integer i = 1; i <= count; i++, entry += size) {
        lua_pushinteger(L, entry[0] << 8 | entry[1]);
        lua_rawseti(L, -2, 2 * i - 1);
        lua_pushstring(L, (const char *)entry + 2);
        lua_rawseti(L, -2, 2 * i);
    }
    lua_setiuservalue(L, -2, 1);
}

/* Make machine code, which is up to ten times as large as the compiled pattern, and which the
 * state's allocator does not count. False: there is none, since the pattern is large, the state has
 * its machine code, a confined process may make none, or there may be thousands of such states,
 * since it is a realm. Then the pattern is interpreted. */
static bool
make_machine_code(lua_State *L, struct sxe__regex *regex, size_t size)
{
    if (sxe__lua_is_realm(L) || size > JIT_PATTERN_MAX ||
        regex->engine->machine_code >= MACHINE_CODE_MAX ||
        pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) != 0)
        return false;
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_JITSIZE, &regex->machine_code);
    regex->engine->machine_code += regex->machine_code;
    return true;
}

/* The pattern of the object on top was compiled: make the rest of the object. */
static int
finish_regex(lua_State *L, struct sxe__regex *regex, const struct sxe_span *pattern)
{
    uint32_t options = 0;
    size_t size = 0;
    bool is_fast;

    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->groups);
    if (regex->groups > SXE__REGEX_GROUPS_MAX)
        return refuse_pattern(L, "more than 200 groups", 0);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_ALLOPTIONS, &options);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &size);
    regex->is_utf = options & PCRE2_UTF;
    regex->is_anchored = options & PCRE2_ANCHORED;
    is_fast = make_machine_code(L, regex, size);
    regex->steps_max = is_fast ? STEPS_MAX : INTERPRETED_STEPS_MAX;
    regex->text_max = SIZE_MAX;
    if (regex->is_utf)
        regex->text_max =
            largest_text(pattern, is_fast ? CLASS_TIMES_TEXT_LOG : INTERPRETED_CLASS_LOG);
    set_group_names(L, regex);
    if (lua_gc(L, LUA_GCISRUNNING))
        (void)lua_gc(L, LUA_GCSTEP, (int)(size / 1024) + 1);
    return 1;
}

/* Whether one step may read much of the text: back references, assertions, conditions. */
static bool
has_long_steps(const pcre2_code *code, const struct sxe_span *pattern)
{
    const char *end = pattern->base + pattern->length;
    uint32_t references = 0;

    for (const char *p = pattern->base; p + 3 < end; p++) {
        if (p[0] != '(')
            continue;
        if (p[1] == '*' || (p[1] == '?' && (p[2] == '=' || p[2] == '!' || p[2] == '(')) ||
            (p[1] == '?' && p[2] == '<' && (p[3] == '=' || p[3] == '!')))
            return true;
    }
    (void)pcre2_pattern_info(code, PCRE2_INFO_BACKREFMAX, &references);
    return references > 0;
}

/* Compile the pattern. Returns 0 or an error of PCRE2. A pattern whose steps may be long calls us
 * in each step, and sxe-regex-search.c limits its time. */
static int
compile_code(struct sxe__regex *regex, const struct sxe_span *pattern, uint32_t options, size_t *at)
{
    pcre2_compile_context *context = regex->engine->compile;
    int error = 0;

    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern->base, pattern->length, options, &error, at, context);
    if (regex->code != NULL && !regex->has_callouts && has_long_steps(regex->code, pattern)) {
        pcre2_code_free(regex->code);
        regex->has_callouts = true;
        regex->code = pcre2_compile((PCRE2_SPTR)pattern->base, pattern->length,
                                    options | PCRE2_AUTO_CALLOUT, &error, at, context);
    }
    if (regex->code == NULL) {
        regex->has_callouts = false;
        return error;
    }
    return 0;
}

void
sxe__regex_free_garbage(lua_State *L, const struct sxe__regex_engine *engine)
{
    (void)lua_rawgetp(L, LUA_REGISTRYINDEX, engine);
    (void)lua_getiuservalue(L, -1, 1);
    for (lua_Integer generation = 1; generation <= 2; generation++) {
        lua_pushnil(L);
        lua_rawseti(L, -2, generation);
    }
    lua_pop(L, 2);
    (void)lua_gc(L, LUA_GCCOLLECT);
}

/* Leave the realm some memory. The cache is emptied only here and when PCRE2 lacks memory: if the
 * cache took all of it, each allocation of Lua would fail, now and in later calls. */
static void
keep_reserve(lua_State *L, struct sxe__regex_engine *engine)
{
    void *reserve = regex_malloc(REALM_RESERVE, engine);

    regex_free(reserve, engine);
    if (reserve == NULL)
        sxe__regex_free_garbage(L, engine);
}

int
sxe__regex_l_compile(lua_State *L)
{
    struct sxe_span pattern;
    uint32_t options;
    struct sxe__regex_engine *engine = lua_touserdata(L, lua_upvalueindex(1));
    struct sxe__regex *regex;
    size_t at;
    int error;

    pattern.base = luaL_checklstring(L, 1, &pattern.length);
    options = check_flags(L, 2);
    sxe__lua_refuse_at_end(L);
    if (pattern.length > PATTERN_MAX)
        return refuse_pattern(L, "the pattern is longer than 16384 bytes", PATTERN_MAX);
    at = find_refused(pattern.base, pattern.length);
    if (at < pattern.length)
        return refuse_pattern(L, "\\G, \\X and verbs such as (*SKIP) are not supported", at);
    at = find_costly_range(&pattern, options);
    if (at < pattern.length)
        return refuse_pattern(L, "more than 24 ranges of UTF characters that ignore case", at);
    at = find_costly_call(&pattern);
    if (at < pattern.length)
        return refuse_pattern(L, "too many calls of groups for a pattern of its length", at);
    if (sxe__lua_is_realm(L))
        keep_reserve(L, engine);
    regex = lua_newuserdatauv(L, sizeof(*regex), 1);
    *regex = (struct sxe__regex){.engine = engine};
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_setmetatable(L, -2);
    error = compile_code(regex, &pattern, options, &at);
    if (error == PCRE2_ERROR_HEAP_FAILED) {
        sxe__regex_free_garbage(L, engine);
        error = compile_code(regex, &pattern, options, &at);
    }
    return error == 0 ? finish_regex(L, regex, &pattern) : refuse_compiled(L, error, at);
}
