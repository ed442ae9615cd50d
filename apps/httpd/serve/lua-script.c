/* SPDX-License-Identifier: MIT
 *
 * Loading, checking and ending the script of --lua.
 */
#include "lua-script.h"

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "coverage.h"
#include "script-crypto.h"
#include "script-inflate.h"
#include "script-memory.h"
#include "script-postgres.h"
#include "script-regex.h"
#include "script-store.h"
#include "script-tls.h"
#include "script-zlib.h"
#include "sxe-lua-http.h"
#include "sxe-lua-repl.h"
#include "sxe-workers-handover-internal.h"
#include "sxe.h"

#define TEXT_SIZE 16384 /* the most bytes of an error with its traceback */

static struct {
    struct sxe_lua *lua;
    const char *path;
    const char *coverage;
    size_t memory_max;
    int link;
    bool is_ready;
} script;

static bool
tell_line(const char *where, const char *text)
{
    static char told[TEXT_SIZE];

    SXE_UNUSED_PARAMETER(where);
    if (script.is_ready)
        return false;
    sxe_lua_explain(text, told, sizeof(told));
    fputs(told, stderr);
    return true;
}

/* ---- --dev: tell the supervisor the files of the script ---- */

static int
note_script_file(lua_State *L)
{
    sxe__handover_name_file(script.link, luaL_checkstring(L, 1));
    return 0;
}

/* Add a searcher to package.searchers. It finds no module, but remembers the file of each module,
 * so that a module which fails to load is watched, too. */
static int
watch_modules(void)
{
    static const luaL_Reg functions[] = {{"note", note_script_file}, {NULL, NULL}};
    static const char text[] =
        "local note, search = require('sxe.files').note, package.searchpath\n"
        "table.insert(package.searchers, 2, function(name)\n"
        "    local path = search(name, package.path)\n"
        "    if path then note(path) end\n"
        "end)\n";
    int result = sxe_lua_module(script.lua, "sxe.files", functions);

    return result < 0 ? result : sxe_lua_load_text(script.lua, "=files", text, sizeof(text) - 1);
}

/* ---- --lua-coverage ---- */

static int
begin_coverage(lua_State *L)
{
    coverage_begin(L, script.coverage, "sxe-httpd", "--lua-coverage");
    return 0;
}

static int
count_script_lines(void)
{
    static const luaL_Reg functions[] = {{"begin", begin_coverage}, {NULL, NULL}};
    static const char text[] = "require('sxe.coverage').begin()";
    int result = sxe_lua_module(script.lua, "sxe.coverage", functions);

    return result < 0 ? result : sxe_lua_load_text(script.lua, "=cover", text, sizeof(text) - 1);
}

/* ---- --confine ---- */

/* Remove popen and execute. The kernel refuses the calls that they make, but then libc's popen
 * reports a lack of memory, and its system an exit of the program, which would mislead the user. */
static int
refuse_programs(void)
{
    static const char text[] =
        "if not package then return end\n" /* in a sandbox none of these functions exists */
        "local function refuse(command)\n"
        "    if type(command) == 'table' then command = command[1] end\n"
        "    local why = ': Operation not permitted: --confine lets no program run'\n"
        "    return nil, tostring(command) .. why, 1\n"
        "end\n"
        "io.popen, os.execute, package.loaded['sxe.spawn'] = refuse, refuse, refuse\n";

    return sxe_lua_load_text(script.lua, "=confine", text, sizeof(text) - 1);
}

/* ---- A script's life ---- */

int
script_load(const struct httpd_options *options, int link)
{
    struct sxe_lua_config config = options->lua;
    int result;

    config.on_error = tell_line;
    config.tls = script_tls();
    config.inflate = script_inflate();
    config.crypto = script_crypto();
    config.store = script_store();
    config.postgres = script_postgres();
    config.regex = script_regex();
    config.zlib = script_zlib();
    script.path = options->script;
    script.coverage = options->lua_coverage;
    script.link = link;
    script.is_ready = false;
    script.memory_max = config.memory_max;
    script_keep_memory();
    script.lua = sxe_lua_new(&config);
    if (script.lua == NULL) {
        result = -errno;
        fprintf(stderr, "sxe-httpd: cannot start Lua: %s; see --lua-memory\n", strerror(errno));
        return result;
    }
    result = sxe_lua_http_open(script.lua);
    if (options->http.body_max > 0)
        sxe_lua_http_set_body_max(script.lua, options->http.body_max);
    if (result == 0 && options->is_confined)
        result = refuse_programs();
    if (result == 0 && script.coverage != NULL)
        result = count_script_lines();
    if (result == 0 && config.is_dev && link >= 0)
        result = watch_modules();
    if (result == 0 && options->is_repl)
        result = sxe_lua_repl_plan(script.lua);
    return result == 0 ? sxe_lua_load(script.lua, options->script) : result;
}

int
script_begin(void)
{
    return sxe_lua_init(script.lua);
}

int
script_progress(void)
{
    return sxe_lua_loaded(script.lua);
}

int
script_check(void)
{
    if (sxe_lua_http_has_handler(script.lua) || sxe_number_in_state(SXE_STATE_LISTENING) > 0)
        return 0;
    fprintf(stderr,
            "error: %s returned no handler and does not listen itself\n"
            "hint: end it with `return function(req, res) return \"Hello\\n\" end`\n",
            script.path);
    return -EINVAL;
}

void
script_is_ready(void)
{
    script.is_ready = true;
}

int
script_start_shell(void (*on_end)(void))
{
    int result = sxe_lua_repl_start(script.lua, NULL, on_end);

    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot start a shell: %s; --repl needs a terminal\n",
                strerror(-result));
    return result;
}

void
script_stop_shell(void)
{
    sxe_lua_repl_stop();
}

bool
script_is_full(void)
{
    size_t most = script.memory_max / 10 * 9;

    if (script.lua == NULL || sxe_lua_memory(script.lua, NULL) <= most)
        return false;
    (void)sxe_lua_call(script.lua, "collectgarbage", "");
    return sxe_lua_memory(script.lua, NULL) > most;
}

struct sxe_lua *
script_state(void)
{
    return script.lua;
}

void
script_end(void)
{
    sxe_lua_delete(script.lua);
    script.lua = NULL;
    coverage_end();
}
