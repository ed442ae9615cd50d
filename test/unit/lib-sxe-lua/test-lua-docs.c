/* SPDX-License-Identifier: MIT
 *
 * The pages about Lua: every example runs, and every name that scripts can use is explained in a
 * page and described in lib-sxe-lua/types/.
 *
 *     ```lua            runs as a script; its output must be the texts after -->; a dict's file,
 *                       { file = "name"..., is not in /dev/shm but this test's own
 *     -- GET /a --> 200 hello      sends the handler a request: its status, and a part of its body
 *     ```lua sandbox    runs in a sandbox, without handlers
 *     ```lua fragment   is compiled only
 */
#include "lua-site.h"

#include <ctype.h>

#include "sxe-crypto.h"
#include "sxe-postgres.h"
#include "sxe-regex.h"
#include "sxe-store.h"
#include "sxe-zlib.h"

enum { BLOCKS_MAX = 200, TEXT_SIZE = 200000, SAID_SIZE = 10000, LINE_SIZE = 500, REAL_TURNS = 5 };

static struct {
    const char *page;
    unsigned line; /* the line of the page where the block begins, from 1 */
    bool is_fragment;
    bool is_sandbox;
    char *text; /* begins with newlines, so that line numbers are those of the page */
} blocks[BLOCKS_MAX];
static unsigned blocks_number;

/* ---- Reading a page ----
 * The pages are read before the tests begin, so that each block is a test. */

static void
begin_block(const char *page, const char *fence, unsigned line)
{
    blocks[blocks_number].page = page;
    blocks[blocks_number].line = line + 1;
    blocks[blocks_number].is_fragment = strstr(fence, "fragment") != NULL;
    blocks[blocks_number].is_sandbox = strstr(fence, "sandbox") != NULL;
    blocks[blocks_number].text = calloc(1, TEXT_SIZE);
    memset(blocks[blocks_number].text, '\n', line);
}

static void
read_page(const char *page)
{
    FILE *file = fopen(page, "r");
    char line[LINE_SIZE];
    bool is_inside = false;

    if (file == NULL)
        return;
    for (unsigned number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
        if (is_inside && strncmp(line, "```", 3) == 0) {
            is_inside = false;
            blocks_number++;
        } else if (is_inside) {
            char *text = blocks[blocks_number].text;

            memcpy(text + strlen(text), line, strlen(line));
        } else if (strncmp(line, "```lua", 6) == 0 && blocks_number < BLOCKS_MAX) {
            begin_block(page, line, number);
            is_inside = true;
        }
    }
    fclose(file);
}

/* ---- Printed and expected text ---- */

static char said[SAID_SIZE];

/* Add words to a text, with a single blank between words. */
static void
add_words(char text[SAID_SIZE], const char *words, size_t length)
{
    size_t used = strlen(text);

    ck_assert_uint_lt(used + length + 2, SAID_SIZE);
    for (size_t i = 0; i < length; i++) {
        if (!isspace((unsigned char)words[i]))
            text[used++] = words[i];
        else if (used > 0 && text[used - 1] != ' ')
            text[used++] = ' ';
    }
    if (used > 0 && text[used - 1] != ' ')
        text[used++] = ' ';
    text[used] = '\0';
}

static int
l_print(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++) {
        size_t length;
        const char *text = luaL_tolstring(L, i, &length);

        add_words(said, text, length);
        lua_pop(L, 1);
    }
    return 0;
}

static const char *
next_line(const char *line)
{
    return line + strcspn(line, "\n") + 1;
}

static bool
is_request(const char *line)
{
    return strncmp(line, "-- ", 3) == 0 && isupper((unsigned char)line[3]) &&
           line[3 + strspn(line + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == ' ' &&
           strstr(line, "-->") != NULL;
}

static void
expect_said(const char *text)
{
    char expected[SAID_SIZE] = "";
    const char *end = text + strlen(text);

    for (const char *line = text; line < end; line = next_line(line)) {
        const char *arrow = memmem(line, strcspn(line, "\n"), "-->", 3);

        if (arrow != NULL && !is_request(line))
            add_words(expected, arrow + 3, strcspn(arrow + 3, "\n"));
    }
    ck_assert_str_eq(said, expected);
}

/* ---- Asking a handler ---- */

/* Wait until the handler has replied. Threads read files, so that takes real time. */
static void
wait_for_answer(void)
{
    while (connections_in(SXE__HTTP_HANDLING) > 0) {
        for (int i = 0; i < REAL_TURNS && connections_in(SXE__HTTP_HANDLING) > 0; i++) {
            usleep(1000);
            turn(1);
        }
        if (connections_in(SXE__HTTP_HANDLING) > 0)
            ev_run(sxe_loop(), EVRUN_ONCE);
    }
}

/* Run a line "-- POST /a body --> 200 part of the reply". (HTTP/1.0, because it has no chunks.) */
static void
ask_line(const char *from, const char *where)
{
    char line[LINE_SIZE], request[3 * LINE_SIZE], method[16], target[LINE_SIZE];
    const char *reply, *part;
    char *arrow, *body;
    int used = 0;
    int peer = client();

    snprintf(line, sizeof(line), "%.*s", (int)strcspn(from, "\n"), from);
    arrow = strstr(line, "-->");
    part = arrow + 4;
    ck_assert_int_eq(sscanf(line, "-- %15s %499s%n", method, target, &used), 2);
    body = line + used + strspn(line + used, " ");
    while (arrow > body && arrow[-1] == ' ')
        arrow--;
    *(arrow > body ? arrow : body) = '\0';
    snprintf(request, sizeof(request), "%s %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", method,
             target, strlen(body), body);
    say(peer, request);
    wait_for_answer();
    reply = hear(peer);
    close(peer);
    turn(3);
    ck_assert_msg(strncmp(reply + 9, part, 3) == 0 &&
                      strstr(reply, part + 3 + strspn(part + 3, " ")) != NULL,
                  "%s: %s is answered '%s'; log: %s", where, from, reply, log_line(0));
}

/* Send all requests of a block; returns how many there were. */
static unsigned
ask_all(const char *text, const char *where)
{
    unsigned number = 0;

    for (const char *line = text, *end = text + strlen(text); line < end; line = next_line(line)) {
        if (!is_request(line))
            continue;
        ask_line(line, where);
        number++;
    }
    return number;
}

/* ---- Running a block ---- */

/* Serve the block's handler: by a C server if the script returned it, or by the script's own. */
static struct sxe_http *
start_block(void)
{
    struct sxe_http_config config = {
        .handler = sxe_lua_http_handle, .stream = true, .connections = 10};
    struct sxe_http *http = NULL;

    site.http = sxe__lua_http.servers[0].http;
    if (sxe_lua_http_has_handler(lua))
        site.http = http = sxe_http_new(&config);
    sxe_register(8, 0);
    start_site();
    if (http != NULL)
        ck_assert_int_eq(sxe_http_listen(http, "127.0.0.1", 0), 0);
    return http;
}

/* The log must have no error, except in blocks that log, or that show the reply to an error. A busy
 * machine may block the loop. */
static void
expect_silence(const char *text)
{
    if (strstr(text, "log.") != NULL || strstr(text, "SXEL") != NULL ||
        strstr(text, "error(") != NULL || strstr(text, "--> 500") != NULL)
        return;
    for (unsigned i = 0; i < captured.number; i++)
        ck_assert_msg(strstr(log_line(i), "loop blocked") != NULL, "%s", log_line(i));
}

/* Copy a script, and put the file that it names in a place of this process's own. Returns its path,
 * or "" if the script names none. */
static const char *
move_file(const char *text, char *moved)
{
    static char path[60];
    const char *name = strstr(text, "{ file = \"");
    size_t length;

    path[0] = '\0';
    if (name == NULL) {
        memcpy(moved, text, strlen(text) + 1);
        return path;
    }
    name += strlen("{ file = \"");
    length = strcspn(name, "\"");
    snprintf(path, sizeof(path), "/tmp/sxe-docs-%d-%.*s", (int)getpid(), (int)length, name);
    snprintf(moved, TEXT_SIZE, "%.*s%s%s", (int)(name - text), text, path, name + length);
    return path;
}

static void
run_block(const char *page_text, const char *where)
{
    static char text[TEXT_SIZE];
    const char *file = move_file(page_text, text);
    static char name[] = "example";
    static char *argv[] = {name, NULL};
    struct sxe_http *http;

    said[0] = '\0';
    load_site("", &(struct sxe_lua_config){.tasks = 64,
                                           .argc = 1,
                                           .argv = argv,
                                           .crypto = sxe_crypto_open,
                                           .store = sxe_store_open,
                                           .postgres = sxe_postgres_open,
                                           .regex = sxe_regex_open,
                                           .zlib = sxe_zlib_open});
    add_global("print", l_print);
    ck_assert_msg(sxe_lua_load_text(lua, where, text, strlen(text)) == 0, "%s", log_line(0));
    http = start_block();
    if (site.http == NULL)
        sxe_run();
    else
        ck_assert_msg(ask_all(text, where) > 0, "%s: nobody asks the handler", where);
    ck_assert_msg(sxe_lua_loaded(lua) == 0, "%s does not end", where);
    expect_said(text);
    expect_silence(text);
    end_script();
    sxe_http_delete(http);
    unlink(file);
}

static void
run_in_sandbox(const char *text, const char *where)
{
    said[0] = '\0';
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .is_sandbox = true});
    add_global("print", l_print);
    ck_assert_msg(sxe_lua_load_text(lua, where, text, strlen(text)) == 0, "%s", log_line(0));
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    sxe_run();
    ck_assert_msg(sxe_lua_loaded(lua) == 0, "%s does not end", where);
    expect_said(text);
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
}

static void
compile_block(const char *text, const char *where)
{
    state_start();
    ck_assert_msg(luaL_loadbuffer(lua->main, text, strlen(text), where) == LUA_OK, "%s",
                  lua_tostring(lua->main, -1));
    state_stop();
}

START_TEST(example_does_what_the_page_says)
{
    char where[100];

    snprintf(where, sizeof(where), "@%s", blocks[_i].page);
    if (blocks[_i].is_fragment)
        compile_block(blocks[_i].text, where);
    else if (blocks[_i].is_sandbox)
        run_in_sandbox(blocks[_i].text, where);
    else
        run_block(blocks[_i].text, where);
}
END_TEST

START_TEST(pages_were_read)
{
    ck_assert_uint_gt(blocks_number, 40);
    ck_assert_uint_lt(blocks_number, BLOCKS_MAX);
}
END_TEST

/* ---- Names ---- */

static void
add_name(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawseti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1);
}

/* The list of all classes of objects: of handles, and of userdata. */
static int
l_classes(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0; i < SXE__LUA_CLASSES; i++) {
        if (lua->classes[i] != NULL)
            add_name(L, lua->classes[i]->name);
    }
    for (lua_pushnil(L); lua_next(L, LUA_REGISTRYINDEX) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING && strncmp(lua_tostring(L, -2), "sxe", 3) == 0)
            add_name(L, lua_tostring(L, -2));
    }
    return 1;
}

START_TEST(names_are_described_and_explained)
{
    static const luaL_Reg functions[] = {{"classes", l_classes}, {NULL, NULL}};
    struct sxe_http *http;
    int events;

    load_site("", &(struct sxe_lua_config){.tasks = 64,
                                           .crypto = sxe_crypto_open,
                                           .store = sxe_store_open,
                                           .postgres = sxe_postgres_open,
                                           .regex = sxe_regex_open,
                                           .zlib = sxe_zlib_open});
    ck_assert_int_eq(sxe_lua_module(lua, "names", functions), 0);
    ck_assert_msg(sxe_lua_load(lua, "test/unit/lib-sxe-lua/lua-docs.lua") == 0, "%s", log_line(0));
    http = start_block();
    events = client();
    say(events, GET("/events"));
    EXPECT_TEXT("/", "");
    close(events);
    turn(5);
    end_script();
    sxe_http_delete(http);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-docs");
    TCase *t = tcase_create("docs");

    read_page("README.md");
    read_page("docs/recipes.md");
    read_page("docs/crypto.md");
    read_page("docs/sessions.md");
    read_page("docs/realms.md");
    read_page("docs/regex.md");
    read_page("docs/store.md");
    read_page("docs/templates.md");
    read_page("docs/workers.md");
    read_page("docs/zlib.md");
    read_page("docs/from-node.md");
    read_page("docs/from-openresty.md");
    read_page("docs/lua.md");
    read_page("docs/lua-handlers.md");
    read_page("docs/lua-httpd.md");
    tcase_add_test(t, pages_were_read);
    tcase_add_loop_test(t, example_does_what_the_page_says, 0, (int)blocks_number);
    tcase_add_test(t, names_are_described_and_explained);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
