-- SPDX-License-Identifier: MIT
-- <close> variables, unix sockets, and the number of sockets of a script, by docs/lua-handlers.md.

local FIRST = "local tcp, task = require 'sxe.tcp', require 'sxe.task'\n"

-- Run a script in sxe-lua with these options; it must print exactly what is expected.
local function runs(expected, script, ...)
    local command = {wire.program("sxe-lua"), "-e", FIRST .. script, ...}
    command.env = {SXE_LOG_LEVEL = "warn"}
    local proc <close> = wire.spawn(command)
    equal(proc:output(60), expected, script)
    equal(proc:errors(), "", script)
    equal(proc:wait(60), 0, script)
end

-- promise: docs/lua-handlers.md: `local conn <close> = assert(tcp.connect(...))` is closed at the end of its scope, after an error too.
test("a connection is closed at the end of its scope, also by an error; a second close does nothing", function()
    runs("2\n", [[
        local ends = 0
        local server <close> = tcp.serve("127.0.0.1", 0, function(conn)
            conn:read("a")
            ends = ends + 1
        end)
        task.sleep(0)
        do local conn <close> = assert(tcp.connect("127.0.0.1", server.port)) conn:close() end
        pcall(function()
            local conn <close> = assert(tcp.connect("127.0.0.1", server.port))
            error "no"
        end)
        while ends < 2 do task.sleep(0.01) end
        print(ends)]])
end)

-- promise: docs/lua-handlers.md: connects to a unix socket; `"unix:@name"` is an abstract one.
test("a client connects to a server at a unix socket, whose path may have a blank", function()
    local path = os.tmpname()
    os.remove(path)
    runs("200\n", ([[
        local http = require "sxe.http"
        http.serve{ unix = %q, handler = function() return "hello" end }
        task.sleep(0)
        local conn <close> = assert(tcp.connect("unix:" .. %q, { timeout = 20 }))
        conn:write("GET / HTTP/1.0\r\n\r\n")
        print(conn:read("l"):match(" (%%d+) "))
        os.exit(0)]]):format(path .. " x", path .. " x"))
    os.remove(path .. " x")
end)

-- promise: docs/lua-handlers.md: `sxe-httpd --lua-sockets N` and `sxe-lua --sockets N` reserve more.
test("as many connections as --sockets says can be open at once", function()
    runs("200\n", [[
        local server = tcp.serve("127.0.0.1", 0, { connections = 400, handler = function(c) c:read("a") end })
        task.sleep(0)
        local open = {}
        for i = 1, 200 do
            local conn, why = tcp.connect("127.0.0.1", server.port)
            if not conn then print(why) break end
            open[i] = conn
        end
        print(#open)
        os.exit(0)]], "--sockets", "200")
end)

-- promise: docs/lua-handlers.md: closes a dict: each later call raises the error "the dict is closed".
test("a dict is closed by a call, by its scope, twice, and by a finalizer in the middle of a call", function()
    runs("true\tfalse\tfalse\n", [[
        local dict = require "sxe.dict"
        local d = dict.open{ name = "d", cells = 16 }
        local ok = d:put("a", ("x"):rep(2000))
        d:close() d:close()
        local e
        do local f <close> = dict.open{ name = "f", cells = 16 } e = f end
        local g = dict.open{ name = "g", cells = 16 }
        g:put("a", ("x"):rep(3000))
        setmetatable({}, { __gc = function() g:close() end })
        while pcall(g.get, g, "a") do end
        print(ok, (pcall(d.get, d, "a")), (pcall(e.get, e, "a")))]])
end)

-- promise: docs/lua-handlers.md: The second and further lines of a text become comments, and a `#` in a name is
-- written `\#`, so no text counts as a result.
test("no text of a test is taken for a result or a directive", function()
    runs("1..2\nnot ok 1 - x \\# skip\n# ok 2\n# a\n# ok 3\nnot ok 2\n#      got: a\0b\n# expected: a\n# \nfalse 0\n1\n", [[
        local tap = require "sxe.tap"
        tap.plan_tests(2)
        tap.fail "x # skip\nok 2"
        tap.diag "a\nok 3"
        tap.is("a\0b", "a\n")
        local bad = setmetatable({}, {__tostring = function() error "no" end})
        print((tostring(pcall(tap.ok, true, bad)) .. " " .. select("#", pcall(tap.plan_tests, -1)) - 2))
        print(tap.exit_status())]])
end)

-- promise: docs/lua-handlers.md: A task's hook ends with the task.
test("a hook that a task set is not called in a later task", function()
    runs("true\n0\n", [[
        local calls = 0
        local function hook() calls = calls + 1 end
        local function has_hook() return debug.gethook() ~= nil end
        task.start(function() debug.sethook(hook, "l") end):join()
        local here = calls
        local later = {}
        for i = 1, 20 do later[i] = task.start(has_hook) end
        local none = true
        for i = 1, 20 do none = none and not later[i]:join() end
        print(none)
        print(calls - here)]])
end)
