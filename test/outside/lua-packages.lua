-- SPDX-License-Identifier: MIT
--
-- Packages of Lua and new projects, by docs/lua.md: rocks in ./rocks, sxe-lua --rocks, sxe-lua --new.

local httpd = require "httpd"
local project = require "project"

local function check_table(got, ...)
    equal(got:gsub(" +", " "), table.concat({...}, "\n"):gsub(" +", " ") .. "\n")
end

-- ---- Modules and their rocks ----

local MANIFEST = [[
commands = {}
modules = { greet = { "greet/1.2-1" }, ["greet.deep"] = { "greet/1.2-1" }, two = { "two/0.3-2", "two/0.1-1" },
            hidden = { "hidden/2-1" }, lost = { "lost/1-1" } }
]]

-- A tree as LuaRocks makes it. No file can be run, so a module that were loaded would fail.
local function add_rocks(work)
    work:write("rocks/lib/luarocks/rocks-5.4/manifest", MANIFEST)
    work:write("rocks/share/lua/5.4/greet.lua", "local two = require('two')\nerror 'run'")
    work:write("rocks/share/lua/5.4/greet/deep.lua", "error 'run'")
    work:write("rocks/share/lua/5.4/hidden/init.lua", "")
    work:write("rocks/lib/lua/5.4/two.so", "no library")
    work:write("hidden.lua", "")
end

-- promise: docs/lua.md: Without a script it lists the modules in `./rocks`.
test("--rocks lists the modules of the tree, and says which of them is not found", function()
    local work <close> = project.start()
    add_rocks(work)
    local status, output, errors = work:lua("--rocks")
    check_table(output, "MODULE ROCK VERSION FILE", "greet greet 1.2-1 ./rocks/share/lua/5.4/greet.lua",
        "greet.deep greet 1.2-1 ./rocks/share/lua/5.4/greet/deep.lua", "hidden - - ./hidden.lua",
        "lost - - not found", "two two 0.3-2 ./rocks/lib/lua/5.4/two.so")
    equal(status, 1)
    equal(errors, "sxe-lua: module lost is not found\n")
end)

-- promise: docs/lua.md: `sxe-lua --rocks app.lua` lists the modules that a script requires, and those that these require
-- in turn, with the rock, the version and the file of each. It reads the files, and runs none.
test("--rocks lists what a script requires, with the rock and the file of each", function()
    local work <close> = project.start()
    add_rocks(work)
    work:write("app.lua", [[
local greet, http = require "greet", require( 'sxe.http' )
-- require "comment"
--[=[ require "comment" ]=]
local good, deep = pcall(require, "greet.deep")
local tried = pcall(require, "none") and require "string"
local again = pcall(require, "greet")
not_require "other"
]])
    local status, output, errors = work:lua("--rocks app.lua")
    check_table(output, "MODULE ROCK VERSION FILE", "greet greet 1.2-1 ./rocks/share/lua/5.4/greet.lua",
        "greet.deep greet 1.2-1 ./rocks/share/lua/5.4/greet/deep.lua", "none - - not found (optional)",
        "string lua - built in", "sxe.http libsxe " .. output:match("libsxe +(%S+)") .. " built in",
        "two two 0.3-2 ./rocks/lib/lua/5.4/two.so")
    equal(errors, "")
    equal(status, 0)
end)

-- promise: docs/lua.md: The exit status is 1 if a module is not found, or is of another version than `luarocks.lock` has.
test("--rocks finds modules that are missing, and versions that are not those of the lock file", function()
    local work <close> = project.start()
    add_rocks(work)
    work:write("app.lua", "pcall(require, 'away') require 'away' require 'greet'")
    work:write("luarocks.lock", "return { dependencies = { greet = '1.3-1', lua = '5.4-1', two = '0.3-2' } }")
    local status, _, errors = work:lua("--rocks app.lua")
    equal(status, 1)
    equal(errors, "sxe-lua: module away is not found\n" ..
                  "sxe-lua: module greet is of greet 1.2-1, but luarocks.lock has 1.3-1\n")
    status, _, errors = work:lua("--rocks nowhere.lua")
    equal(status, 1)
    equal(errors, "sxe-lua: --rocks: cannot read nowhere.lua\n")
end)

test("--rocks takes files of LuaRocks that are damaged for empty ones, and runs nothing of them for long", function()
    local work <close> = project.start()
    for _, text in ipairs{"modules = {", "error {}", "print 'run'", "\27Lua"} do
        work:write("rocks/lib/luarocks/rocks-5.4/manifest", text)
        work:write("luarocks.lock", text)
        local status, output = work:lua("--rocks")
        equal(output, "MODULE  ROCK  VERSION  FILE\n", text)
        equal(status, 0)
    end
    local status, output = work:lua("--rocks .") -- a directory
    equal(output, "")
    equal(status, 1)
end)

-- ---- New projects ----

-- promise: docs/lua-httpd.md: `sxe-lua --new shop` makes a project that runs, in a new directory.
test("a new project passes its tests, and serves", function()
    local work <close> = project.start()
    local status, output, errors = work:lua("--new shop-2/")
    equal(errors, "")
    equal(output, "made shop-2: type  cd shop-2 && make test run\n")
    equal(status, 0)

    status, output, errors = work:sh("make -s -C shop-2 test SXE_LUA=$SXE_LUA")
    equal(status, 0, output .. errors)
    check(output:find("^1%.%.6\nok 1 ") and output:find("\nok 6 ") and not output:find("not ok", 1, true), output)
    status, output, errors = work:sh("make -s -C shop-2 rocks-list")
    equal(status, 0, errors)
    check(output:find("\nsxe.http +libsxe +%S+ +built in\n"), output)
    status, output = work:sh("make -s -C shop-2")
    equal(status, 0)
    check(output:find("\nrocks%-update\tinstall"), output)

    local server <close> = httpd.spawn{"sh", "-c", ("cd %s/shop-2 && exec %s -p 0 --lua app.lua"):format(work.directory,
                                                    project.program "sxe-httpd")}
    local client <close> = server:connect()
    client:send("GET /?name=%3CAnn%3E HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    local reply = client:read_reply()
    equal(reply.status, 200)
    check(reply.body:find("<h1>Hello, &lt;Ann&gt;!</h1>", 1, true), reply.body)
end)

test("the unit and the rockspec of a new project are valid", function()
    local work <close> = project.start()
    work:lua("--new shop")
    local verify = wire.has "systemd-analyze" and work:read("shop/shop.service")
    if not verify then
        print "skipped: the unit of a new project, because systemd-analyze is not installed"
    else
        work:write("shop.service", (verify:gsub("ExecStart=sxe%-httpd", "ExecStart=" .. project.program "sxe-httpd")))
        local status, output, errors = work:sh("systemd-analyze verify --man=no ./shop.service")
        equal(status, 0, output .. errors)
    end
    local values = {}
    load(work:read("shop/shop-dev-1.rockspec"), "rockspec", "t", values)()
    equal(values.package .. " " .. values.version, "shop dev-1")
end)

-- promise: docs/lua-httpd.md: It changes nothing that exists
test("a project is not made where something exists, or under a name that others refuse", function()
    local work <close> = project.start()
    work:write("shop/app.lua", "mine")
    local status, output, errors = work:lua("--new shop")
    equal(status, 1)
    equal(output, "")
    equal(errors, "sxe-lua: --new: shop: File exists\n")
    equal(work:read("shop/app.lua"), "mine")
    equal(work:read("shop/Makefile"), nil)
    for _, name in ipairs{"Shop", "2shop", ".", "..", "'a b'", "''", "none/shop"} do
        status, output, errors = work:lua("--new " .. name)
        equal(status, 1, name)
        equal(output, "")
        check(errors:find("^sxe%-lua: %-%-new: "), errors)
    end
    status, _, errors = work:lua("--new shop2 other")
    equal(status, 2)
    check(errors:find("--new takes one directory", 1, true), errors)
end)

-- ---- LuaRocks itself ----

local luarocks = wire.has "luarocks"
local missing = not luarocks and "luarocks is not installed"
    or not os.execute("echo '#include <lua.h>' | cc -I/usr/include/lua5.4 -E - >/dev/null 2>&1") and "lua.h is not installed"
    or nil

-- A folder that serves rocks: greet, in Lua, needs twice, in C, which has two versions.
local function add_server(work)
    work:write("src/greet.lua", "return function(name) return 'hello, ' .. name, require 'twice'(21) end")
    work:write("src/twice.c", [[
#include <lauxlib.h>
static int twice(lua_State *L) { lua_pushinteger(L, 2 * luaL_checkinteger(L, 1)); return 1; }
int luaopen_twice(lua_State *L) { lua_pushcfunction(L, twice); return 1; }
]])
    local function add(name, version, source, module)
        work:write(("server/%s-%s.rockspec"):format(name, version), ([[
package, version, rockspec_format = "%s", "%s", "3.0"
source = { url = "file://%s/src/%s" }
dependencies = { "lua ~> 5.4"%s }
build = { type = "builtin", modules = { %s = %s } }
]]):format(name, version, work.directory, source, name == "greet" and ', "twice"' or "", name, module))
    end
    add("greet", "1.2-1", "greet.lua", '"greet.lua"')
    add("twice", "0.3-1", "twice.c", '{ "twice.c" }')
    add("twice", "0.4-1", "twice.c", '{ "twice.c" }')
end

-- promise: docs/lua.md: `luarocks --lua-version 5.4 --tree rocks install NAME` in a project's folder installs a package
-- where `require` finds it, with its modules in C.
test("LuaRocks installs modules in Lua and in C, and keeps the versions of the lock file", function()
    if missing then
        print("skipped: packages of LuaRocks, because " .. missing)
        return
    end
    local work <close> = project.start()
    add_server(work)
    local env = {HOME = work.directory}
    local function sh(command)
        local status, output, errors = work:sh(command, env)
        equal(status, 0, command .. ": " .. output .. errors)
        return output
    end
    sh "luarocks-admin --lua-version 5.4 make-manifest server"
    local rocks = ("luarocks --lua-version 5.4 --only-server=%s/server --tree rocks "):format(work.directory)
    sh(rocks .. "install greet")
    equal(sh [[$SXE_LUA -e 'print(require "greet" "Ann")']], "hello, Ann\t42\n")
    check_table(sh "$SXE_LUA --rocks", "MODULE ROCK VERSION FILE", "greet greet 1.2-1 ./rocks/share/lua/5.4/greet.lua",
        "twice twice 0.4-1 ./rocks/lib/lua/5.4/twice.so")

    -- promise: docs/lua-httpd.md: `make rocks` installs exactly these versions.
    work:lua("--new shop")
    local spec = work:read("shop/shop-dev-1.rockspec")
    local function make(target)
        return sh(("make -s -C shop %s LUAROCKS='luarocks --only-server=%s/server'"):format(target, work.directory))
    end
    work:write("shop/shop-dev-1.rockspec", (spec:gsub('"lua ~> 5.4"', '%0, "twice < 0.4", "greet"')))
    make "rocks-update"
    check(work:read("shop/luarocks.lock"):find('twice = "0.3-1"', 1, true))
    work:write("shop/shop-dev-1.rockspec", (spec:gsub('"lua ~> 5.4"', '%0, "greet"')))
    sh "rm -r shop/rocks"
    make "rocks"
    check(sh("cd shop && $SXE_LUA --rocks"):find("\ntwice +twice +0.3%-1 "))
    make "rocks-update"
    check(work:read("shop/luarocks.lock"):find('twice = "0.4-1"', 1, true))
    check(sh("cd shop && $SXE_LUA --rocks"):find("\ntwice +twice +0.4%-1 "))
end)
