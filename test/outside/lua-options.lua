-- SPDX-License-Identifier: MIT
-- Options, limits of tasks and counters, and refused bodies, by docs/lua-handlers.md.

local cli = require "cli"
local script = require "script"

local function run(text)
    return cli.run("sxe-lua", "-e", "local task = require 'sxe.task'\n" .. text)
end

local function prints(expected, text)
    local ran = run(text)
    equal(ran.errors, "", text)
    equal(ran.output, expected, text)
    equal(ran.status, 0, text)
end

-- promise: docs/lua-handlers.md: An option that the call does not have, or whose value is of another type, raises an
-- error that names the option.
test("an option of the wrong type, or of another call, is refused by name", function()
    for _, case in ipairs{
        {"half_close", [[require "sxe.http".serve{ port = 0, handler = print, half_close = "no" }]]},
        {"connections", [[require "sxe.http".serve{ port = 0, handler = print, connections = "many" }]]},
        {"limits.body", [[require "sxe.http".serve{ port = 0, handler = print, limits = { body = "big" } }]]},
        {"timeouts.idle", [[require "sxe.http".serve{ port = 0, handler = print, timeouts = { idle = "long" } }]]},
        {"unix", [[require "sxe.http".serve{ unix = true, handler = print }]]},
        {"listing", [[require "sxe.http".static(".", { listing = "no" })]]},
        {"gzip", [[require "sxe.http".static(".", { gzip = 0 })]]},
        {"types", [[require "sxe.http".static(".", { types = "nonsense" })]]},
        {"cache_control", [[require "sxe.http".static(".", { cache_control = "a\nb" })]]},
        {"connections", [[require "sxe.tcp".serve("127.0.0.1", 0, { handler = print, connections = true })]]},
        {"timeout", [[require "sxe.tcp".serve("127.0.0.1", 0, { handler = print, timeout = {} })]]},
        {"from", [[task.sleep(0) require "sxe.tcp".connect("127.0.0.1", 1, { from = true })]]},
        {"from", [[task.sleep(0) require "sxe.tcp".connect("127.0.0.1", 1, { from = "here" })]]},
        {"stdin", [[require "sxe.spawn"{ "true", stdin = "pip" }]]},
        {"cwd", [[require "sxe.spawn"{ "true", cwd = {} }]]},
        {"atomic", [[require "sxe.file".write("/dev/null", "", { atomic = "yes" })]]},
        {"atomic", [[require "sxe.file".read("/dev/null", { atomic = true })]]},
        {"from", [[require "sxe.file".write("/dev/null", "", { from = 3 })]]},
        {"parents", [[require "sxe.file".remove("/dev/null/x", { parents = true })]]},
        {"max", [[require "sxe.file".read("/dev/null", { max = "all" })]]},
        {"shared", [[require "sxe.dict".open{ name = "a", cells = 10, shared = "no" }]]},
        {"evicts", [[require "sxe.dict".open{ name = "a", cells = 10, evicts = 1 }]]},
        {"exact", [[require "sxe.pool".open{ name = "a", count = 1, states = { "a", "b" }, exact = "no" }]]},
        {"port", [[require "sxe.http".serve{ port = "80", handler = print }]]},
        {"connections", [[require "sxe.http".serve{ port = 0, handler = print, connections = "10" }]]},
        {"limits.body", [[require "sxe.http".serve{ port = 0, handler = print, limits = { body = "10" } }]]},
        {"timeouts.idle", [[require "sxe.http".serve{ port = 0, handler = print, timeouts = { idle = "10" } }]]},
        {"timeouts.idle", [[require "sxe.http".serve{ port = 0, handler = print, timeouts = { idle = true } }]]},
        {"ip", [[require "sxe.http".serve{ port = 0, handler = print, ip = 5 }]]},
        {"ranges", [[require "sxe.http".static(".", { ranges = "5" })]]},
        {"index", [[require "sxe.http".static(".", { index = 5 })]]},
        {"connections", [[require "sxe.tcp".serve("127.0.0.1", 0, { handler = print, connections = "10" })]]},
        {"timeout", [[require "sxe.tcp".serve("127.0.0.1", 0, { handler = print, timeout = "10" })]]},
        {"timeout", [[task.sleep(0) require "sxe.tcp".connect("127.0.0.1", 1, { timeout = "10" })]]},
        {"timeout", [[task.sleep(0) require "sxe.tcp".connect("unix:/none", { timeout = "10" })]]},
        {"max", [[require "sxe.file".read("/dev/null", { max = "10" })]]},
        {"from", [[require "sxe.file".read("/dev/null", { from = "10" })]]},
        {"timeout", [[require "sxe.file".read("/dev/null", { timeout = "10" })]]},
        {"mode", [[require "sxe.file".write("/dev/null", "", { mode = "600" })]]},
        {"mode", [[require "sxe.file".open("/dev/null", "r", { mode = "600" })]]},
        {"timeout", [[require "sxe.file".open("/dev/null", "r", { timeout = "10" })]]},
        {"count", [[require "sxe.pool".open{ name = "a", count = "1", states = { "a", "b" } }]]},
        {"shards", [[require "sxe.pool".open{ name = "a", count = 1, shards = "1", states = { "a", "b" } }]]},
        {"timeouts", [[require "sxe.pool".open{ name = "a", count = 1, states = { "a", "b" },
                                                timeouts = { b = "10" } }]]},
        {"file", [[require "sxe.pool".open{ name = "a", count = 1, states = { "a", "b" }, file = 5 }]]},
        {"wait", [[require "sxe.pool".open{ name = "a", count = 1, states = { "a", "b" }, wait = "1" }]]},
        {"name", [[require "sxe.dict".open{ name = 5, cells = 10 }]]},
        {"cells", [[require "sxe.dict".open{ name = "a", cells = "10" }]]},
        {"cell_size", [[require "sxe.dict".open{ name = "a", cells = 10, cell_size = "64" }]]},
        {"cwd", [[require "sxe.spawn"{ "true", cwd = 5 }]]},
        {"stdin", [[require "sxe.spawn"{ "true", stdin = 5 }]]},
        {"limit", [[task.parallel({ print }, "2")]]},
        {"limit", [[task.parallel({ print }, "two")]]},
        {"limit", [[task.parallel({ print }, 0)]]},
        {"limit", [[task.parallel({ print }, 1.5)]]},
        {"limit", [[task.parallel({ print }, 0/0)]]},
    } do
        local ran = run("print(pcall(function() " .. case[2] .. " end)) os.exit(0)")
        check(ran.output:find("^false\t.*" .. case[1]:gsub("%.", "%%.")), case[2] .. ": " .. ran.output .. ran.errors)
    end
end)

-- promise: docs/lua-handlers.md: A number is needed wherever seconds are
test("the text of a number is refused where seconds are", function()
    prints("", [[
        local dict, file, pool = require "sxe.dict", require "sxe.file", require "sxe.pool"
        local spawn, tcp, timer, udp = require "sxe.spawn", require "sxe.tcp", require "sxe.timer", require "sxe.udp"
        task.sleep(0)
        local server = tcp.serve("127.0.0.1", 0, { connections = 2, handler = function(conn) conn:read(1) end })
        local conn, socket, child = tcp.connect("127.0.0.1", server.port), udp.open("127.0.0.1", 0), spawn{ "sleep", "60" }
        local d, elements = dict.open{ name = "d", cells = 9 }, pool.open{ name = "p", count = 1, states = { "a", "b" } }
        local t, lock, event, queue = task.start(task.sleep, 60), task.lock(), task.event(), task.queue(1)
        for name, call in pairs{
            sleep = function() task.sleep "1" end, deadline = function() task.deadline("1", print) end,
            join = function() t:join "1" end, lock = function() lock:acquire "1" end, event = function() event:wait "1" end,
            put = function() queue:put(1, "1") end, get = function() queue:get "1" end,
            after = function() timer.after("1", print) end, every = function() timer.every("1", print) end,
            read = function() conn:read(1, "1") end, property = function() conn.timeout = "1" end,
            recvfrom = function() socket:recvfrom "1" end, wait = function() child:wait "1" end,
            dict = function() d:put("k", "v", "1") end, add = function() d:add("n", 1, "1") end,
            take = function() elements:take("a", "b", "1") end,
            file = function() file.read("/dev/null", { timeout = "1" }) end,
        } do
            local ok, why = pcall(call)
            if ok or not why:find "seconds" then print(name, ok, why) end
        end
        child:kill()
        os.exit(0)
    ]])
end)

-- promise: docs/lua-handlers.md: The call raises an error for an unknown option, for a limit or `connections` of 0,
test("a limit of 0 raises", function()
    for _, option in ipairs{"limits = { body = 0 }", "limits = { bodies = 0 }", "limits = { line = 0 }", "limits = { head = 0 }",
                            "limits = { fields = 0 }", "limits = { requests = 0 }", "limits = { address = 0 }",
                            "connections = 0"} do
        local ran = run(([[
            print(pcall(require "sxe.http".serve, { port = 0, handler = print, %s })) os.exit(0)]]):format(option))
        check(ran.output:find("^false\t.*" .. option:match "(%a+) = 0" .. " must be a number from 1 "), option .. ": " .. ran.output)
    end
end)

-- promise: docs/lua-handlers.md: If the task of an item is cancelled, the others are cancelled, too, and
-- task.parallel returns nil, "cancelled".
test("one item that is cancelled ends the call and the other items", function()
    prints("nil\tcancelled\n", [[
        print(task.parallel({ 1, 2, 3 }, function(i)
            if i == 2 then task.self():cancel() end
            task.sleep(1000)
            task.sleep(1000)
        end))]])
    prints("3\t2\t3\n", "local r = task.parallel({ 1, 2 }, function(i) return i + 1 end, 1) print(r.n + 1, r[1], r[2])")
end)

-- promise: docs/lua-handlers.md: fn() runs as a task when t is cancelled, before t continues. Several functions run
-- in the order in which they were set.
test("each function of on_cancel runs once", function()
    prints("one two three\n", [[
        local said = {}
        local t = task.start(function() task.sleep(1000) end)
        for _, word in ipairs{ "one", "two", "three" } do
            t:on_cancel(function() said[#said + 1] = word end)
        end
        task.sleep(0)
        t:cancel()
        t:cancel()
        t:join()
        task.sleep(0)
        print(table.concat(said, " "))]])
end)

-- promise: docs/lua-handlers.md: return the new value, which stops at the largest and the smallest integer.
test("a counter does not wrap around", function()
    prints("true\ttrue\ttrue\ttrue\ttrue\n", [[
        local c = require "sxe.stats"{ "a", "b" }
        c.a, c.b = math.maxinteger, math.mininteger
        print(c:inc("a") == math.maxinteger, c:dec("b") == math.mininteger, c:dec("b", 5) == math.mininteger,
              c:dec("a", math.mininteger) == math.maxinteger, c:inc("b", math.mininteger) == math.mininteger)]])
end)

-- promise: docs/lua-handlers.md: At least 64 KiB of datagrams that the script has not taken are kept, and each
-- datagram counts with 36 more bytes for its sender;
test("64 KiB of datagrams are kept, of any size", function()
    for _, size in ipairs{0, 1, 30, 500, 5000, 60000} do
        local number = 65536 // (size + 36)
        prints(number .. "\n", ([[
            local udp = require "sxe.udp"
            local to, from = assert(udp.open("127.0.0.1", 0)), assert(udp.open("127.0.0.1", 0))
            for i = 1, %d do
                assert(from:sendto(("x"):rep(%d), "127.0.0.1", to.local_port))
                task.sleep(0)
            end
            local n = 0
            while to:recvfrom(0.05) do n = n + 1 end
            print(n)]]):format(number, size))
    end
end)

-- promise: docs/lua-handlers.md: If the error was a refused body (`413`), reading the body in `fn` raises the same
-- error again.
test("a refused body is refused again, in on_error and after a pcall", function()
    local server <close> = script.start([[
        local http = require "sxe.http"
        local r = http.router()
        r:post("/plain", function(req) return req:body(10) end)
        r:post("/again", function(req)
            local _, first = pcall(req.body, req, 10)
            local _, second = pcall(req.body, req, 1000)
            return 200, { first.message, second.message }
        end)
        r:on_error(function(req, res, err)
            local ok, again = pcall(req.body, req)
            return 200, { err.status, ok, ok and again or again.status, err.message }
        end)
        return r]])
    for _, framing in ipairs{"Content-Length: 20\r\n\r\n" .. ("x"):rep(20),
                             "Transfer-Encoding: chunked\r\n\r\n14\r\n" .. ("x"):rep(20) .. "\r\n0\r\n\r\n"} do
        for path, expected in pairs{
            ["/plain"] = '[413,false,413,"the body has more than 10 bytes"]',
            ["/again"] = '["the body has more than 10 bytes","the body has more than 10 bytes"]',
        } do
            local sock <close> = server:connect()
            sock:send("POST " .. path .. " HTTP/1.1\r\nHost: a\r\n" .. framing)
            equal(sock:read_reply().body, expected)
        end
    end
end)

-- promise: docs/lua-handlers.md: a list to send a field several times (reading returns the first value)
test("a list of header lines is sent completely, and its first line is read back", function()
    local server <close> = script.start([[
        return function(_, res)
            res.headers["Set-Cookie"] = { "a=1", "b=2" }
            return res.headers["set-cookie"]
        end]])
    local sock <close> = server:connect()
    sock:send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    local reply = sock:recv_all()
    check(reply:find("Set-Cookie: a=1\r\n", 1, true) and reply:find("Set-Cookie: b=2\r\n", 1, true), reply)
    check(reply:find("\r\n\r\na=1$"), reply)
end)
