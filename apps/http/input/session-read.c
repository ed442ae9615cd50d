/* SPDX-License-Identifier: MIT
 *
 * What: reads the table of a scenario with steps.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command-line.h"
#include "script-query.h"
#include "script-table.h"
#include "script-wrk.h"
#include "session-private.h"
#include "sxe-time.h"

#define PAUSE_MAX_NS (3600 * SXE_NS_PER_SECOND)

static const char *
keep_step_text(lua_State *L)
{
    const char *text = lua_tostring(L, -1);

    luaL_ref(L, LUA_REGISTRYINDEX);
    return text;
}

/* ---- Values to take from a reply ---- */

static const struct load_json_path *
compile_json(lua_State *L, const char *where, const char *text)
{
    struct load_json_path *path = lua_newuserdatauv(L, sizeof(*path), 0);
    const char *wrong = load_json_path_compile(path, text, strlen(text));

    if (wrong != NULL)
        luaL_error(L, "%s.json is '%s': %s", where, text, wrong);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return path;
}

static const struct load_pattern *
compile_pattern(lua_State *L, const char *where, const char *text)
{
    struct load_pattern *pattern = lua_newuserdatauv(L, sizeof(*pattern), 0);
    const char *wrong = load_pattern_compile(pattern, text, strlen(text));

    if (wrong != NULL)
        luaL_error(L, "%s.pattern is '%s': %s", where, text, wrong);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return pattern;
}

/* Find the index of a value's name, or add the name. */
static uint16_t
name_value(lua_State *L, struct load_sessions *sessions, const char *where, const char *name)
{
    size_t length = strlen(name);

    if (!load_rows_is_name(name, length))
        luaL_error(L, "%s: the name of a value has letters, digits and _, and at most %d of them",
                   where, LOAD_COLUMN_NAME_MAX);
    for (unsigned i = 0; i < sessions->names_number; i++) {
        if (sessions->names[i].length != length ||
            memcmp(sessions->names[i].name, name, length) != 0)
            continue;
        if (sessions->names[i].column != LOAD_LITERAL)
            luaL_error(L, "%s: the data has a column of this name", where);
        return (uint16_t)i;
    }
    if (sessions->names_number == LOAD_NAMES_MAX)
        luaL_error(L, "%s: too many values: the most is %d, columns included", where,
                   LOAD_NAMES_MAX);
    sessions->names[sessions->names_number] = (struct load_value_name){name, length, LOAD_LITERAL};
    return (uint16_t)sessions->names_number++;
}

/* Read a value to take, which is the pair at the top of the stack: {name, {json = "$.id"}}. */
static void
read_take(lua_State *L, struct load_sessions *sessions, struct load_user_step *step,
          const char *where)
{
    static const char *const names[] = {"json", "header", "pattern", NULL};
    struct load_take *take = &step->takes[step->takes_number];
    const char *json, *pattern;

    if (step->takes_number++ == LOAD_TAKES_MAX)
        luaL_error(L, "%s has more than %d values", where, LOAD_TAKES_MAX);
    lua_rawgeti(L, -1, 1);
    take->name = keep_step_text(L);
    where = lua_pushfstring(L, "%s.%s", where, take->name);
    if (lua_rawgeti(L, -2, 2) != LUA_TTABLE)
        luaL_error(L,
                   "%s must be a table: {json = \"$.id\"}, {header = \"ETag\"} or {pattern = "
                   "'id=(%%d+)'}",
                   where);
    load_table_refuse_others(L, lua_gettop(L), where, names);
    json = load_table_text(L, lua_gettop(L), where, "json");
    pattern = load_table_text(L, lua_gettop(L), where, "pattern");
    take->header = load_table_text(L, lua_gettop(L), where, "header");
    if ((json != NULL) + (pattern != NULL) + (take->header != NULL) != 1)
        luaL_error(L, "%s has to have one of json, header and pattern", where);
    if (json != NULL)
        take->json = compile_json(L, where, json);
    if (pattern != NULL)
        take->pattern = compile_pattern(L, where, pattern);
    lua_pushfstring(L, "%s '%s'",
                    json != NULL      ? "JSON path"
                    : pattern != NULL ? "pattern"
                                      : "header",
                    json != NULL      ? json
                    : pattern != NULL ? pattern
                                      : take->header);
    take->what = keep_step_text(L);
    take->value = name_value(L, sessions, where, take->name);
    step->wants_head = true;
    step->wants_body |= take->header == NULL;
}

/* Read the table `take` of the step. It is sorted by name, so that messages are the same in each
 * run. */
static void
read_takes(lua_State *L, struct load_sessions *sessions, struct load_user_step *step, int table)
{
    int top = lua_gettop(L);
    const char *where;

    if (load_table_field(L, table, step->where, "take", LUA_TTABLE)) {
        where = lua_pushfstring(L, "%s.take", step->where);
        lua_insert(L, -2);
        load_session_push_pairs(L, where);
        for (lua_Integer i = 1; lua_rawgeti(L, top + 2, i) != LUA_TNIL; i++) {
            read_take(L, sessions, step, where);
            lua_settop(L, top + 2);
        }
    }
    lua_settop(L, top);
}

/* ---- Headers ---- */

static bool
is_named_field(struct sxe_span name, const char *text)
{
    return name.length == strlen(text) && strncasecmp(name.base, text, name.length) == 0;
}

/* Whether the text is a token (RFC 9110, 5.6.2). */
static bool
is_method_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (const char *at = text; *at != '\0'; at++)
        if (!((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z') && !(*at >= '0' && *at <= '9') &&
            strchr(others, *at) == NULL)
            return false;
    return *text != '\0';
}

/* Raise an error if the name is no name of a field, or if this program writes the field itself, so
 * that it would be sent twice. */
static void
check_header_field(lua_State *L, const struct load_sessions *sessions,
                   const struct load_user_step *step, struct sxe_span name)
{
    if (!is_method_token(name.base))
        luaL_error(L, "%s.headers: '%s' is not a header name", step->where, name.base);
    if (is_named_field(name, "Content-Length") || is_named_field(name, "Transfer-Encoding"))
        luaL_error(L, "%s.headers.%s: sxe-http says itself how long a body is", step->where,
                   name.base);
    if (sessions->has_cookies && is_named_field(name, "Cookie"))
        luaL_error(L, "%s.headers.%s: with cookies = true the user's own are sent", step->where,
                   name.base);
    if (step->content == LOAD_CONTENT_PARTS && is_named_field(name, "Content-Type"))
        luaL_error(L, "%s.headers.%s: that of multipart has a boundary, and is written by sxe-http",
                   step->where, name.base);
}

static void
add_header_line(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
                const char *where, struct sxe_span name, struct sxe_span value, bool has_places)
{
    if (memchr(value.base, '\n', value.length) != NULL ||
        memchr(value.base, '\r', value.length) != NULL)
        luaL_error(L, "%s.headers.%s has a line end", where, name.base);
    load_session_add_literal(L, sessions, to, name.base, name.length);
    load_session_add_literal(L, sessions, to, ": ", 2);
    if (has_places)
        load_session_add_text(L, sessions, to, where, value, LOAD_ESCAPE_FIELD);
    else
        load_session_add_literal(L, sessions, to, value.base, value.length);
    load_session_add_literal(L, sessions, to, "\r\n", 2);
}

/* How headers are added to a step's pieces. Content-Type is stored apart from the others, because
 * it is left out after a redirect that changed the request to a GET. */
struct adding {
    bool has_places;
    bool is_type; /* true: add only Content-Type; false: add only the other headers */
};

/* Add the header that is the pair at the top of the stack. */
static void
add_step_header(lua_State *L, struct load_sessions *sessions, struct load_user_step *step,
                struct adding adding)
{
    struct sxe_span name, value;
    struct load_pieces *to = adding.is_type ? &step->own_type : &step->fields;

    lua_rawgeti(L, -1, 1);
    name.base = lua_tolstring(L, -1, &name.length);
    luaL_ref(L, LUA_REGISTRYINDEX);
    if (is_named_field(name, "Content-Type") != adding.is_type)
        return;
    if (lua_rawgeti(L, -1, 2) != LUA_TSTRING && !lua_isnumber(L, -1))
        luaL_error(L, "%s.headers.%s must be a string", step->where, name.base);
    value.base = lua_tolstring(L, -1, &value.length);
    luaL_ref(L, LUA_REGISTRYINDEX);
    check_header_field(L, sessions, step, name);
    step->has_own_type |= adding.is_type;
    add_header_line(L, sessions, to, step->where, name, value, adding.has_places);
}

/* Whether the list at the index has a header with this name. */
static bool
has_listed_name(lua_State *L, int list, const char *text)
{
    bool is_there = false;

    for (lua_Integer i = 1; !is_there && lua_rawgeti(L, list, i) == LUA_TTABLE; i++) {
        struct sxe_span name;

        lua_rawgeti(L, -1, 1);
        name.base = lua_tolstring(L, -1, &name.length);
        is_there = is_named_field(name, text);
        lua_pop(L, 2);
    }
    if (!is_there)
        lua_pop(L, 1);
    return is_there;
}

/* Add the header of -H that is the pair at the top of the stack. If its name was given several
 * times, the pair's value is a list. */
static void
add_common_headers(lua_State *L, struct load_sessions *sessions, struct load_user_step *step,
                   struct adding adding)
{
    lua_rawgeti(L, -1, 2);
    if (lua_type(L, -1) != LUA_TTABLE) {
        lua_pop(L, 1);
        add_step_header(L, sessions, step, adding);
        return;
    }
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        lua_createtable(L, 2, 0);
        lua_rawgeti(L, -4, 1);
        lua_rawseti(L, -2, 1);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 2);
        add_step_header(L, sessions, step, adding);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

static void
add_host_header(lua_State *L, struct load_sessions *sessions, struct load_user_step *step)
{
    const char *authority = sessions->authority;

    load_session_add_literal(L, sessions, &step->fields, "Host: ", 6);
    load_session_add_literal(L, sessions, &step->fields, authority, strlen(authority));
    load_session_add_literal(L, sessions, &step->fields, "\r\n", 2);
}

/* Add the step's headers, and the headers of the command line whose names the step does not use. */
static void
add_step_headers(lua_State *L, struct load_sessions *sessions, struct load_user_step *step, int own,
                 bool is_type)
{
    int common = own + 1;

    for (lua_Integer i = 1; lua_rawgeti(L, common, i) != LUA_TNIL; i++) {
        lua_rawgeti(L, -1, 1);
        if (!has_listed_name(L, own, lua_tostring(L, -1))) {
            lua_pop(L, 1);
            add_common_headers(L, sessions, step, (struct adding){false, is_type});
        }
        lua_settop(L, common);
    }
    lua_settop(L, common);
    for (lua_Integer i = 1; lua_rawgeti(L, own, i) != LUA_TNIL; i++) {
        add_step_header(L, sessions, step, (struct adding){true, is_type});
        lua_settop(L, common);
    }
    lua_settop(L, common);
}

static void
read_headers(lua_State *L, struct load_sessions *sessions, struct load_user_step *step, int table)
{
    int top = lua_gettop(L), own = top + 1, common = top + 2;
    const char *where = step->where;

    if (!load_table_field(L, table, where, "headers", LUA_TTABLE)) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    load_session_push_pairs(L, where);
    load_wrk_push(L);
    lua_getfield(L, -1, "headers");
    lua_remove(L, -2);
    load_session_push_pairs(L, where);
    if (!has_listed_name(L, own, "Host") && !has_listed_name(L, common, "Host"))
        add_host_header(L, sessions, step);
    add_step_headers(L, sessions, step, own, false);
    add_step_headers(L, sessions, step, own, true);
    lua_settop(L, top);
}

/* ---- A step ---- */

/* Read a time such as "1.5s". Returns the text after it; NULL: the text begins with no time. */
static const char *
read_time(const char *text, uint64_t *ns)
{
    unsigned long digits, scale;
    const char *after = command_line_decimal(text, &digits, &scale);
    uint64_t unit = SXE_NS_PER_SECOND;

    if (after == NULL)
        return NULL;
    if (strncmp(after, "ms", 2) == 0) {
        unit = SXE_NS_PER_MS;
        after += 2;
    } else {
        after += *after == 's';
    }
    *ns = digits / scale > PAUSE_MAX_NS / unit
              ? PAUSE_MAX_NS + 1
              : (uint64_t)((double)digits * (double)unit / (double)scale);
    return after;
}

static void
read_pause(lua_State *L, struct load_user_step *step, int table)
{
    const char *text = load_table_text(L, table, step->where, "pause");
    const char *after;

    if (text == NULL)
        return;
    after = read_time(text, &step->pause_min_ns);
    step->pause_max_ns = step->pause_min_ns;
    if (after != NULL && *after == ':')
        after = read_time(after + 1, &step->pause_max_ns);
    if (after == NULL || *after != '\0' || step->pause_max_ns > PAUSE_MAX_NS ||
        step->pause_max_ns < step->pause_min_ns)
        luaL_error(L,
                   "%s.pause is '%s'; it must be a time up to an hour, or two, such as \"1s\" or "
                   "\"500ms:3s\"",
                   step->where, text);
}

static void
read_step_expect(lua_State *L, struct load_user_step *step, int table)
{
    const char *status = load_table_text(L, table, step->where, "expect_status");
    const char *body = load_table_text(L, table, step->where, "expect_body");
    const char *wrong;

    step->has_expect = status != NULL || body != NULL;
    wrong =
        load_expect_add_status(&step->expect, status == NULL ? LOAD_EXPECT_DEFAULT_STATUS : status);
    if (wrong != NULL)
        luaL_error(L, "%s.expect_status: %s", step->where, wrong);
    wrong = body == NULL ? NULL : load_expect_set_body(&step->expect, body);
    if (wrong != NULL)
        luaL_error(L, "%s.expect_body: %s", step->where, wrong);
}

static void
read_follow(lua_State *L, struct load_user_step *step, int table)
{
    if (load_table_field(L, table, step->where, "follow", LUA_TNUMBER))
        step->follow =
            (unsigned)load_table_number(L, table, step->where, "follow", LOAD_FOLLOW_MAX);
    lua_pop(L, 1);
    step->wants_head |= step->follow > 0;
}

static void
read_step_body(lua_State *L, struct load_script *script, struct load_user_step *step, int table)
{
    struct load_sessions *sessions = script->sessions;
    struct sxe_span body = {NULL, 0};

    if (load_table_field(L, table, step->where, "body", LUA_TSTRING)) {
        body.base = lua_tolstring(L, -1, &body.length);
        luaL_ref(L, LUA_REGISTRYINDEX);
        step->content = LOAD_CONTENT_BODY;
        load_session_add_text(L, sessions, &step->body, lua_pushfstring(L, "%s.body", step->where),
                              body, LOAD_ESCAPE_NONE);
    }
    lua_pop(L, 1);
    if (lua_getfield(L, table, "form") != LUA_TNIL && body.base != NULL)
        luaL_error(L, "%s has a body and a form; one of them is enough", step->where);
    if (lua_getfield(L, table, "multipart") != LUA_TNIL && (body.base != NULL || !lua_isnil(L, -2)))
        luaL_error(L, "%s has a multipart and a %s; one of them is enough", step->where,
                   body.base != NULL ? "body" : "form");
    lua_pop(L, 2);
    load_session_read_form(L, sessions, step, table);
    load_session_read_parts(L, script, step, table);
}

/* Set the kind of the step, which has a row in the report. Steps with equal names share a kind. */
static void
name_kind(lua_State *L, struct load_script *script, struct load_user_step *step, const char *name)
{
    unsigned kind = 0;

    while (kind < script->requests.kinds && strcmp(script->names[kind], name) != 0)
        kind++;
    if (kind == LOAD_KINDS_MAX)
        luaL_error(L,
                   "%s: there may be %d rows in the report, and '%s' is one more; give several "
                   "steps the same name",
                   step->where, LOAD_KINDS_MAX, name);
    if (kind == script->requests.kinds)
        load_script_add_kind(L, script, name);
    step->kind = (uint16_t)kind;
}

static void
read_step_request(lua_State *L, struct load_script *script, struct load_user_step *step, int table)
{
    struct load_sessions *sessions = script->sessions;
    const char *method = load_table_text(L, table, step->where, "method");
    const char *path = load_table_text(L, table, step->where, "path");
    const char *name = load_table_text(L, table, step->where, "name");
    char short_name[LOAD_SCRIPT_NAME_MAX];

    read_step_body(L, script, step, table);
    step->method = method != NULL ? method : step->content == LOAD_CONTENT_NONE ? "GET" : "POST";
    step->is_head = strcmp(step->method, "HEAD") == 0;
    if (!is_method_token(step->method))
        luaL_error(L, "%s.method is '%s', which is no method", step->where, step->method);
    if (path == NULL || (*path != '/' && strncmp(path, "{raw:", 5) != 0))
        luaL_error(L, "%s.path must begin with a / (or with {raw:name})", step->where);
    for (const char *at = path; *at != '\0'; at++)
        if (*at <= ' ' || *at == '\177' || *at == '#')
            luaL_error(L, "%s.path is '%s'; blanks, # and bytes beyond ASCII are written as %%XX",
                       step->where, path);
    load_session_add_text(L, sessions, &step->target, lua_pushfstring(L, "%s.path", step->where),
                          (struct sxe_span){path, strlen(path)}, LOAD_ESCAPE_URL);
    lua_pop(L, 1);
    snprintf(short_name, sizeof(short_name), "%s %s", step->method, path);
    name_kind(L, script, step, name != NULL ? name : short_name);
    read_headers(L, sessions, step, table);
}

static void
read_step(lua_State *L, struct load_script *script, lua_Integer nth)
{
    static const char *const names[] = {
        "name", "method",        "path",        "headers", "body",  "form", "multipart",
        "take", "expect_status", "expect_body", "follow",  "pause", NULL};
    struct load_sessions *sessions = script->sessions;
    struct load_user_step *step = &sessions->steps[sessions->number];
    int table = lua_gettop(L);

    if (sessions->number == LOAD_STEPS_MAX)
        luaL_error(L, "too many steps: the most is %d", LOAD_STEPS_MAX);
    lua_pushfstring(L, "steps[%I]", nth);
    step->where = keep_step_text(L);
    if (lua_type(L, table) != LUA_TTABLE)
        luaL_error(L, "%s must be a table", step->where);
    load_table_refuse_others(L, table, step->where, names);
    read_step_request(L, script, step, table);
    read_step_expect(L, step, table);
    read_follow(L, step, table);
    read_pause(L, step, table);
    read_takes(L, sessions, step, table);
    step->wants_head |= sessions->has_cookies;
    sessions->number++;
}

/* ---- The whole session ---- */

/* Check that the step makes a valid request if all values are empty. If this request is valid,
 * others are valid, too, because values are escaped. */
static void
check_step_request(lua_State *L, struct load_sessions *sessions, unsigned step)
{
    struct load_user *user = lua_newuserdatauv(L, sizeof(*user), 0);
    const char *why = "it is not whole";
    struct load_query query = {0};

    memset(user, 0, sizeof(*user));
    user->step = (uint16_t)step;
    sessions->request = lua_newuserdatauv(L, 2 * sessions->request_room, 0);
    load_session_compose(sessions, user, &query);
    sessions->request = NULL;
    if (load_script_query(query.bytes, query.length, &query, &why) != (ssize_t)query.length)
        luaL_error(L, "%s makes no request: %s", sessions->steps[step].where, why);
    sessions->steps[step].is_last = query.is_last;
    lua_pop(L, 2);
}

/* Check the request of each step. If a part contains the boundary, the boundary changes, and all
 * steps are checked again. */
static void
check_requests(lua_State *L, struct load_sessions *sessions)
{
    char boundary[sizeof(sessions->boundary)];

    load_session_new_boundary(sessions);
    do {
        memcpy(boundary, sessions->boundary, sizeof(boundary));
        for (unsigned i = 0; i < sessions->number; i++)
            check_step_request(L, sessions, i);
    } while (strcmp(boundary, sessions->boundary) != 0);
    sessions->is_boundary_new = false;
}

static void
set_session_host(struct load_sessions *sessions, const char *authority)
{
    const char *end = strrchr(authority, ':');

    sessions->authority = authority;
    sessions->host = (struct sxe_span){authority, strlen(authority)};
    if (*authority == '[') {
        sessions->host = (struct sxe_span){authority + 1, strcspn(authority + 1, "]")};
    } else if (end != NULL) {
        sessions->host.length = (size_t)(end - authority);
    }
}

void
load_sessions_read(lua_State *L, struct load_script *script)
{
    static const char *const names[] = {"cookies", "data", "steps", NULL};
    struct load_sessions *sessions = script->sessions;

    set_session_host(sessions, script->options.authority);
    sessions->version = script->options.request->is_http_1_0 ? "1.0" : "1.1";
    load_table_refuse_others(L, 2, "a scenario with steps", names);
    load_table_field(L, 2, "the scenario", "cookies", LUA_TBOOLEAN);
    sessions->has_cookies = lua_toboolean(L, -1);
    lua_pop(L, 1);
    load_session_read_data(L, script);
    load_table_field(L, 2, "the scenario", "steps", LUA_TTABLE);
    load_table_check_list(L, 3, "steps");
    for (lua_Integer i = 1; lua_geti(L, 3, i) != LUA_TNIL; i++) {
        read_step(L, script, i);
        lua_settop(L, 3);
    }
    if (sessions->number == 0)
        luaL_error(L, "the scenario has no steps: steps = {{path = \"/\"}}");
    load_session_measure(sessions);
    check_requests(L, sessions);
}
