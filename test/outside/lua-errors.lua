-- SPDX-License-Identifier: MIT
-- Errors in the log, by docs/lua-handlers.md.

local cli = require "cli"

-- promise: docs/lua-handlers.md: The log shows the fields of a table without `status`, and the traceback of the place
--   that raised it.
test("an uncaught table shows its fields and where it was raised", function()
    local ran = cli.run("sxe-lua", "-e", "local function f()\n error{ code = 5 } end\nf()")
    equal(ran.status, 1)
    check(ran.errors:find("{code = 5}", 1, true), ran.errors)
    check(ran.errors:find(":2: in", 1, true), ran.errors)
end)

-- promise: docs/lua-handlers.md: The log shows the fields of a table without `status`, and the traceback of the place
--   that raised it.
test("an error whose __tostring fails is logged as such", function()
    local ran = cli.run("sxe-lua", "-e", [[
        local bad = setmetatable({}, { __tostring = function(self) error(self) end })
        error(bad)]])
    equal(ran.status, 1)
    check(ran.errors:find("__tostring failed", 1, true), ran.errors)
end)

-- promise: docs/lua-handlers.md: A zero byte is shown as `\\0`, like a backslash and `0` in the text
test("a zero byte is in the line of the log", function()
    local ran = cli.run("sxe-lua", "-e", [[require "sxe.log".info("a\0b\1")]])
    equal(ran.status, 0)
    check(ran.errors:find([[ - a\\0b\x01]], 1, true), ran.errors)
end)

-- promise: docs/lua-httpd.md: A browser gets this text as an HTML page, with the request and the local variables of
-- the function that failed.
test("--dev: a browser gets an error page in which all text of request and script is escaped", function()
    local server <close> = require "script".start([[
        return function(req)
            local secret = "<script>alert(1)</script>"
            error("<b>" .. req.query.q)
        end]], "--dev")
    local sock <close> = server:connect()
    sock:send("GET /?q=%3Ci%3E HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nX-A: <u>\r\nConnection: close\r\n\r\n")
    local reply = sock:read_reply()
    equal(reply.status, 500)
    check(reply.headers["content-type"]:find("text/html", 1, true))
    check(reply.body:find("secret = ", 1, true), reply.body)
    check(reply.body:find("GET /?q=%3Ci%3E", 1, true), reply.body)
    for _, markup in ipairs{"<script>", "<b>", "<i>", "<u>"} do
        check(not reply.body:find(markup, 1, true), markup)
    end
    equal(server:ask("/"):sub(1, 7), "error: ")
end)

-- promise: docs/lua-handlers.md: Options are checked.
test("each table of options refuses an unknown name", function()
    for _, call in ipairs{
        [[require "sxe.tcp".serve("127.0.0.1", 0, { handler = print, timout = 0.1, conections = 1 })]],
        [[require "sxe.tcp".connect("127.0.0.1", 1, { timout = 1 })]],
        [[require "sxe.http".serve{ port = 0, handler = print, timout = 1 }]],
        [[require "sxe.http".static(".", { indx = "a" })]],
        [[require "sxe.file".read("/", { timout = 1 })]],
        [[require "sxe.file".write("/", "", { atomc = true })]],
        [[require "sxe.file".open("/", "r", { timout = 1 })]],
        [[require "sxe.spawn"{ "true", stdot = "pipe" }]],
        [[require "sxe.pool".open{ states = { "a" }, elements = 1, nam = "x" }]],
        [[require "sxe.dict".open{ name = "x", cells = 10, shard = 2 }]],
        [[require "sxe.stats"{ "a", nam = "x" }]],
        [[require "sxe.task".queue():get{ timout = 1 }]],
        [[require "sxe.task".start(print):join{ timout = 1 }]],
    } do
        local ran = cli.run("sxe-lua", "-e", "print(pcall(function() " .. call .. " end)) os.exit(0)")
        check(ran.output:find("^false") and ran.output:find("no option", 1, true), call .. ": " .. ran.output .. ran.errors)
    end
end)

-- promise: docs/lua-handlers.md: Names are UTF-8. The names of groups (by default `"script"`) must differ, and so
-- must the names of the counters in a group.
test("counters whose names would not be keys of JSON are refused", function()
    local ran = cli.run("sxe-lua", "-e", [[
        local stats = require "sxe.stats"
        assert(not pcall(stats, { "a\xff" }) and not pcall(stats, { "a", name = "\xff" }))
        assert(not pcall(stats, { "a", "b", "a" }))
        assert(stats{ "a", "\u{e9}", name = "\u{e9}" } and stats{ "a" })
        assert(not pcall(stats, { "b" }) and not pcall(stats, { "b", name = "\u{e9}" }))
        os.exit(0)]])
    equal(ran.status, 0, ran.errors)
end)

-- promise: docs/lua-handlers.md: In `sxe.file` a path with a zero byte returns `nil, "path: Invalid argument", 22`,
-- because no file can have such a name.
test("a path with a zero byte is refused", function()
    local ran = cli.run("sxe-lua", "-e", [[
        local file = require "sxe.file"
        for _, call in ipairs{ file.read, file.list, file.stat, file.open, file.remove } do
          local value, why, code = call "/etc/passwd\0.png"
          assert(value == nil and why == "path: Invalid argument" and code == 22)
        end
        os.exit(0)]])
    equal(ran.status, 0, ran.errors)
end)

-- promise: docs/lua-handlers.md: A sum that does not fit into 64 bits returns `nil, message, 75`, and the counter
-- stays as it is.
test("no counter of a dict wraps around, in memory or in a file", function()
    local name = os.tmpname()
    os.remove(name)
    local ran = cli.run("sxe-lua", "-e", ([[
        for _, path in ipairs{ false, "%s" } do
          local d = assert(require "sxe.dict".open{ name = "x", cells = 100, file = path or nil })
          assert(d:add("a", math.maxinteger) == math.maxinteger and d:add("b", math.mininteger) == math.mininteger)
          local sum, why, code = d:add "a"
          assert(sum == nil and why and code == 75 and d:counter "a" == math.maxinteger)
          assert(select(3, d:add("b", -1)) == 75 and d:counter "b" == math.mininteger)
          assert(d:add("a", math.mininteger) == -1 and d:check())
        end
        os.exit(0)]]):format(name))
    os.remove(name)
    equal(ran.status, 0, ran.errors)
end)

-- promise: docs/lua-handlers.md: A method in small letters raises an error. An unknown method, such as `PURGE`, is
-- allowed.
test("router:route takes methods in capitals only", function()
    local function routes(methods)
        return cli.run("sxe-lua", "-e", ("require 'sxe.http'.router():route(%q, '/a', print)"):format(methods))
    end
    for _, methods in ipairs{"get", "GET,put", "Get"} do
        local ran = routes(methods)
        equal(ran.status, 1, methods)
        check(ran.errors:find("methods are written in capitals", 1, true), ran.errors)
    end
    equal(routes("GET, PURGE").status, 0)
    equal(routes("*").status, 0)
end)

-- promise: docs/lua.1: or standard output did not take all that was printed
test("output that standard output does not take is an error", function()
    local sxe_lua = wire.program "sxe-lua"

    local function print_into(file, text)
        local proc <close> = wire.spawn{"sh", "-c", 'exec "$0" -e "$1" > ' .. file, sxe_lua, text}
        local status = proc:wait(20)

        return status, proc:errors()
    end
    for _, text in ipairs{
        "print 'lost'", "io.write 'lost'", "require 'sxe.task'.start(print, 'lost')", "print 'lost' error 'else'",
    } do
        local status, errors = print_into("/dev/full", text)

        equal(status, 1, text)
        check(errors:find("sxe-lua: standard output did not take all that was printed", 1, true), errors)
    end
    equal(print_into("/dev/null", "print 'kept'"), 0)
end)
