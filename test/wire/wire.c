/* SPDX-License-Identifier: MIT
 *
 * What: the driver of the wire tests, `wire script.lua [arguments]`. A script holds one or both
 * ends of a conversation with a real program over real sockets; nothing of libsxe is in here.
 *
 * Place: tools/run-tests.sh runs it once for each script in test/wire; bench/bench.lua runs on it
 * too. `require` finds what stands in lib/ beside the script, or in ../wire/lib. WIRE_ONLY=words
 * picks tests by name.
 *
 * Shape: what a script finds
 *
 *     test("a sentence", f)        runs f; an error in it is a failure
 *     check(condition, message)    equal(got, expected, message)
 *
 *     wire.connect(ip or path, port [, bytes of receive buffer]) -> sock
 *     wire.listen(ip or path, port)                              -> listener
 *     wire.free_port()                                           -> a port nobody listens at
 *     wire.mailbox(path)                                         -> mailbox
 *     wire.spawn{program, argument..., env = {NAME = value}, cpu = number} -> proc
 *                pass = {listener...}: it inherits them as a service of systemd does (LISTEN_FDS)
 *     wire.program(name)                                         -> path of a program of ours
 *     wire.has(name)                                             -> path of another's, or nil
 *     wire.fds(pid) rss(pid) pss(pid) pss_anon(pid) cpu(pid) pin(pid, cpu)
 *          time() sleep(seconds) steal()
 *
 *     sock      send(s) send_slowly(s, piece [, pause]) send_some(s [, patience]) pump(s)
 *               recv(n) recv_until(text) recv_all() read_reply([method])
 *               ready([seconds]) eof([seconds]) shutdown() reset() close() timeout(seconds) port()
 *     listener  accept([seconds]) port() close()
 *     mailbox   message([seconds]), a datagram; close()
 *     proc      line([seconds]) ready([seconds]) output([seconds]) errors()
 *               signal(name) wait([seconds]) pid()
 *               errors() leaves out the lines that say that a loop was blocked
 *
 * Limits: whatever waits for what must come waits 120 seconds for the next byte, or longer where
 * a script says so, then raises what was expected and what came. ready() and eof(), which may
 * answer no, wait as long as they are told. A spawned process lives no longer than its proc
 * object, nor than the driver.
 *
 * Example:
 *     test("a request is answered", function()
 *         local sock = wire.connect("127.0.0.1", port)
 *         sock:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
 *         equal(sock:read_reply().status, 200)
 *     end)
 */
#include "wire.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *only;
static const char *script;
static const char *driver;
static unsigned passed;
static unsigned failed;

void
wire_add_class(lua_State *L, const char *name, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

static const char *
build_directory(void)
{
    const char *build = getenv("SXE_BUILD");

    return build == NULL ? "build/release" : build;
}

/* The path of one of our programs. */
static int
program_path(lua_State *L)
{
    const char *path = lua_pushfstring(L, "%s/%s", build_directory(), luaL_checkstring(L, 1));

    return access(path, X_OK) == 0 ? 1 : wire_raise(L, path, errno);
}

/* wire.has(name): the path of a program of others, or nil if it is not installed. */
static int
program_has(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const char *directory = lua_pushfstring(L, "%s:/usr/sbin:/sbin", getenv("PATH"));

    while (*directory != '\0') {
        size_t len = strcspn(directory, ":");

        lua_pushlstring(L, directory, len);
        if (access(lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), name), X_OK) == 0) {
            return 1;
        }
        lua_pop(L, 2);
        directory += len + (directory[len] == ':');
    }
    return 0;
}

static int
add_traceback(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

static void
report_failure(lua_State *L, const char *name)
{
    failed++;
    printf("FAILED %s\n%s\nagain: SXE_BUILD=%s WIRE_ONLY=\"%s\" %s %s\n\n", name,
           lua_tostring(L, -1), build_directory(), name, driver, script);
    fflush(stdout);
}

static int
test_test(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    if (only != NULL && strstr(name, only) == NULL) {
        return 0;
    }
    lua_settop(L, 2);
    lua_pushcfunction(L, add_traceback);
    lua_insert(L, 2);
    if (lua_pcall(L, 0, 0, 2) == LUA_OK) {
        passed++;
    } else {
        report_failure(L, name);
    }
    return 0;
}

static int
test_check(lua_State *L)
{
    if (!lua_toboolean(L, 1)) {
        return luaL_error(L, "not true: %s", luaL_optstring(L, 2, "what is checked here"));
    }
    return 0;
}

/* Push a value as a message shows it; of a long string, the part from byte `from`, the first
 * difference. */
static const char *
push_shown(lua_State *L, int index, size_t from)
{
    size_t len;
    const char *text;

    if (lua_type(L, index) != LUA_TSTRING) {
        return luaL_tolstring(L, index, NULL);
    }
    text = lua_tolstring(L, index, &len);
    wire_quote(L, text + from, len - from);
    return from == 0 ? lua_tostring(L, -1)
                     : lua_pushfstring(L, "%s at byte %d of %d", lua_tostring(L, -1), (int)from,
                                       (int)len);
}

static int
test_equal(lua_State *L)
{
    const char *message = luaL_optstring(L, 3, NULL);
    size_t from = 0;
    size_t len[2];

    if (lua_compare(L, 1, 2, LUA_OPEQ)) {
        return 0;
    }
    if (lua_type(L, 1) == LUA_TSTRING && lua_type(L, 2) == LUA_TSTRING) {
        const char *got = lua_tolstring(L, 1, &len[0]);
        const char *expected = lua_tolstring(L, 2, &len[1]);

        while (from < len[0] && from < len[1] && got[from] == expected[from]) {
            from++;
        }
        from = len[0] > WIRE_QUOTED_MAX || len[1] > WIRE_QUOTED_MAX ? from : 0;
    }

    const char *expected = push_shown(L, 2, from);

    return luaL_error(L, "%s%sexpected %s, got %s", message == NULL ? "" : message,
                      message == NULL ? "" : ": ", expected, push_shown(L, 1, from));
}

static const luaL_Reg programs[] = {
    {"has", program_has},
    {"program", program_path},
    {NULL, NULL},
};

static void
register_all(lua_State *L, int argc, char **argv)
{
    const char *slash = strrchr(script, '/');
    int directory_len = slash == NULL ? 0 : (int)(slash - script) + 1;
    char path[4096];

    luaL_openlibs(L);
    luaL_newlib(L, programs);
    wire_add_sockets(L);
    wire_add_processes(L);
    wire_add_network(L);
    lua_setglobal(L, "wire");
    lua_register(L, "test", test_test);
    lua_register(L, "check", test_check);
    lua_register(L, "equal", test_equal);
    lua_newtable(L);
    for (int i = 1; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 1);
    }
    lua_setglobal(L, "arg");
    snprintf(path, sizeof(path), "%.*slib/?.lua;%.*s../wire/lib/?.lua", directory_len, script,
             directory_len, script);
    lua_getglobal(L, "package");
    lua_pushstring(L, path);
    lua_setfield(L, -2, "path");
    lua_pop(L, 1);
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: wire script.lua [arguments]\n");
        return 2;
    }
    driver = argv[0];
    script = argv[1];
    only = getenv("WIRE_ONLY");
    signal(SIGPIPE, SIG_IGN);

    lua_State *L = luaL_newstate();

    register_all(L, argc, argv);
    lua_pushcfunction(L, add_traceback);
    if (luaL_loadfile(L, script) != LUA_OK || lua_pcall(L, 0, 0, 1) != LUA_OK) {
        report_failure(L, "the script itself");
    }
    lua_close(L);
    if (passed + failed > 0) {
        const char *name = strrchr(script, '/') == NULL ? script : strrchr(script, '/') + 1;

        printf("%.*s: %u passed, %u failed\n", (int)strcspn(name, "."), name, passed, failed);
    }
    return failed > 0;
}
