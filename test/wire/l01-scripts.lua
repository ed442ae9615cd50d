-- SPDX-License-Identifier: MIT
-- Lua scripts in sxe-httpd (--lua).

local cli = require "cli"
local script = require "script"

test("a handler answers", function()
    local server <close> = script.start("return function(req) return req.method .. req.path end")
    equal(server:ask("/a"), "GET/a")
end)

test("after a reload the new script answers", function()
    local server <close> = script.start("return function() return 'one' end")
    equal(server:ask(), "one")
    server:write("return function() return 'two' end")
    equal(server:ask(), "one")
    server:reload()
    server:await("two")
end)

test("a script that fails to load leaves the earlier one in place", function()
    local server <close> = script.start("return function() return 'one' end")
    server:write("return function( 'two' end")
    server:reload()
    for _ = 1, 20 do
        equal(server:ask(), "one")
    end
    server:write("return function() return 'three' end")
    server:reload()
    server:await("three")
end)

test("--dev: a changed file reloads the script", function()
    local server <close> = script.start("return function() return 'one' end", "--dev")
    equal(server:ask(), "one")
    server:write("return function() return 'two' end")
    server:await("two")
    server:write("return function() error 'boom' end")
    local said
    require "httpd".wait_until(function()
        said = server:ask()
        return said:find("^error: boom\n")
    end, "boom")
    check(said:find("1 | return function() error 'boom' end", 1, true), said)
end)

test("a process that is killed is replaced", function()
    local server <close> = script.start("local file = io.open '/proc/self/stat'\n" ..
                                        "local pid = file:read 'n' file:close()\n" ..
                                        "return function() return tostring(pid) end")
    local pid = server:ask()
    os.execute("kill -9 " .. pid)
    check(server:ask() ~= pid)
end)

for _, case in ipairs{
    {"add --lua FILE", "--dev"},
    {"http.static", "--lua", "app.lua", "-r", "."},
    {"did you mean --lua app.lua?", "app.lua"},
    {"/stats", "--stats", "stats"},
} do
    local words = table.remove(case, 1)
    test(("refused with status 2: %s"):format(table.concat(case, " ")), function()
        cli.check_refused(words, "sxe-httpd", table.unpack(case))
    end)
end

test("the message for a missing script names the file", function()
    local ran = cli.run("sxe-httpd", "-p", "0", "--lua", "/nonexistent.lua")
    equal(ran.status, 1)
    equal(ran.output, "")
    check(ran.errors:find("error: cannot open /nonexistent.lua", 1, true), ran.errors)
end)
