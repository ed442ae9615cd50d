/* SPDX-License-Identifier: MIT
 *
 * require "sxe.client": calls to servers in the same process (lua-client.lua), and the C functions
 * that it uses.
 */
#include "lua-net.h"

#include "lua-count.h"
#include "script-inflate.h"
#include "test-main.h"

static void
count(void)
{
    count_lines("build/coverage/lua/client.info");
}

static void
count_without_memory(void)
{
    count_lines("build/coverage/lua/client-memory.info");
}

START_TEST(calls_get_their_answers_or_the_reason)
{
    net_on_state = count;
    net_inflate = script_inflate();
    net_start("dofile 'test/unit/lib-sxe-lua/lua-client.lua'");
    /* Host names are looked up by a thread, which may have to wait for a CPU. */
    for (unsigned i = 0; i < 20 * WAIT_TURNS && number("done") == 0; i++)
        turn_unheard();
    captured.number = 0;
    net_finish();
}
END_TEST

/* The function is_public decides by the address of a connection. */
static const struct {
    const char *address;
    bool is_public;
} addresses[] = {
    {"8.8.8.8", true},
    {"10.1.2.3", false},
    {"2001:4860::1", true},
    {"no address", false},
};
#define ADDRESSES (sizeof(addresses) / sizeof(addresses[0]))

START_TEST(addresses_of_the_internet_are_public)
{
    char text[512];

    net_start("local f = require 'sxe.client'.get\n"
              "local function find(f, name)\n"
              "  for i = 1, 100 do\n"
              "    local n, v = debug.getupvalue(f, i)\n"
              "    if not n then return end\n"
              "    if n == 'c' then return v end\n"
              "    if type(v) == 'table' and v.request then v = v.request end\n"
              "    local found = type(v) == 'function' and not seen[v] and find(seen(v), name)\n"
              "    if found then return found end\n"
              "  end\n"
              "end\n"
              "seen = setmetatable({}, {__call = function(t, v) t[v] = true return v end})\n"
              "c = assert(find(f))\n"
              "assert(not c.new_inflate)"
              "assert(c.parse_head('HTTP/1.1 200 OK\\r\\n', 'GET') == nil)");
    snprintf(text, sizeof(text), "assert(c.is_public('%s') == %s)", addresses[_i].address,
             addresses[_i].is_public ? "true" : "false");
    run_script(text);
    net_stop();
}
END_TEST

/* The module is loaded while every 97th allocation in turn fails. */
START_TEST(without_memory_the_module_is_not_opened)
{
    bool is_touched = true;

    net_start("require 'sxe.tcp' require 'sxe.json' require 'sxe.task'");
    for (uint64_t after = 0; is_touched; after += 97) {
        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("package.loaded['sxe.client'] = nil require 'sxe.client'");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
    }
    run_script("assert(require 'sxe.client'.get)");
    net_stop();
}
END_TEST

static void *
create_none(bool is_gzip)
{
    (void)is_gzip;
    return NULL;
}

/* If there is no memory to decode a reply, the call returns an error. */
START_TEST(without_memory_a_reply_is_not_decoded)
{
    static const struct sxe_lua_inflate none = {.create = create_none};

    net_inflate = &none;
    net_on_state = count_without_memory;
    net_start(
        "server = require 'sxe.tcp'.serve('127.0.0.1', 0, function(conn) conn:read() conn:write("
        "'HTTP/1.1 200 OK\\r\\nContent-Encoding: gzip\\r\\nContent-Length: 2\\r\\n\\r\\nxx')"
        "end)\n"
        "require 'sxe.task'.start(function()\n"
        "  require 'sxe.task'.sleep(0)\n"
        "  ok, why, code = require 'sxe.client'.get('http://127.0.0.1:' .. server.port)\n"
        "  done = true\n"
        "end) done = false ok, why, code = nil");
    until("done");
    run_script("assert(not ok and why:find('cannot decompress', 1, true) and code == 12, why)");
    net_stop();
}
END_TEST

static Suite *
client_suite(void)
{
    Suite *suite = suite_create("lua-client");
    TCase *tcase = tcase_create("client");

    tcase_add_test(tcase, calls_get_their_answers_or_the_reason);
    tcase_add_loop_test(tcase, addresses_of_the_internet_are_public, 0, ADDRESSES);
    tcase_add_test(tcase, without_memory_the_module_is_not_opened);
    tcase_add_test(tcase, without_memory_a_reply_is_not_decoded);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(client_suite());
}
