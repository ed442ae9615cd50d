-- SPDX-License-Identifier: MIT
--
-- Each timeout with each kind of handler, over TCP and over a unix socket; and the memory of incomplete bodies.

local httpd = require "httpd"
local script = require "script"
local site = require "site"

local APP = [[
return function(req)
    if req.path == "/large" then return ("x"):rep(20000000) end
    if req.path == "/memory" then return tostring(collectgarbage "count" * 1024 // 1) end
    local size = 0
    if req.path == "/parts" then
        for part in req:chunks() do size = size + #part end
    else
        size = #req:body()
    end
    return tostring(size)
end
]]

-- Name, a function that starts a server, a path that takes a body, a path with a large reply.
local KINDS = {
    {"C", function(...) return httpd.start(...) end, "/"},
    {"files", function(...)
        local server = site.start(...)
        server:write("large", ("x"):rep(20000000))
        return server
    end, "/", "/large"},
    {"Lua, whole", function(...) return script.start(APP, ...) end, "/whole", "/large"},
    {"Lua, in parts", function(...) return script.start(APP, ...) end, "/parts", "/large"},
    {"sandbox, whole", function(...) return script.start(APP, "--lua-sandbox", ...) end, "/whole"},
    {"sandbox, in parts", function(...) return script.start(APP, "--lua-sandbox", ...) end, "/parts"},
}

local function each_kind(fn, ...)
    for _, kind in ipairs(KINDS) do
        local path = os.tmpname()
        os.remove(path)
        local server <close> = kind[2]("--unix", path, ...)
        for _, transport in ipairs{"TCP", "unix"} do
            local sock <close> = transport == "TCP" and server:connect(4096) or wire.connect(path)
            sock:timeout(100)
            fn(sock, kind, kind[1] .. " over " .. transport)
        end
    end
end

local function post(path, length, body)
    return ("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"):format(path, length, body)
end

-- A server may reply to such a request as soon as it has the head (405); then it does not wait for the body.
local function check_408(said, what)
    check(said:find "^HTTP/1%.1 408 " or said:find "^HTTP/1%.1 405 ", what .. ": " .. said)
end

-- promise: docs/http.md: `head_timeout_ms` from accept to the first byte; from that byte to a complete head | 10 s |
-- closed; 408 |
httpd.test_at_a_pace("half a head gets 408", function(pace)
    each_kind(function(sock, _, what)
        sock:send "GET / HTTP/1.1\r\nHost: a\r\n"
        local said = sock:recv_all()
        check(said:find "^HTTP/1%.1 408 ", what .. ": " .. said)
    end, "--header-timeout", httpd.seconds(0.2 * pace))
end)

-- promise: docs/http.md: `body_timeout_ms`, in which `body_rate_min` (500) bytes a second must come; pauses are left out | 10 s | 408 |
test("half a body gets 408", function()
    each_kind(function(sock, kind, what)
        sock:send(post(kind[3], 100000, "half"))
        check_408(sock:recv_all(), what)
    end, "--body-timeout", "0.2")
end)

-- promise: docs/lua-handlers.md: All waits for the client's bytes are added up: a client that is too slow gets `408`,
-- whether it pauses once or often.
test("a body that is too slow gets 408", function()
    each_kind(function(sock, kind, what)
        sock:send(post(kind[3], 100000, "x"))
        for _ = 1, 10000 do
            if sock:ready(0.05) or not pcall(sock.send, sock, "x") then break end
        end
        local read, said = pcall(sock.recv_all, sock)
        if read then check_408(said, what) end -- otherwise the last byte met a closed connection: a reset
    end, "--body-timeout", "0.3", "--body-rate", "1k")
end)

-- promise: docs/http.md: `idle_timeout_ms` between requests | 60 s | closed |
test("an idle connection is closed", function()
    each_kind(function(sock, kind, what)
        sock:send(post(kind[3], 4, "body"))
        sock:read_reply()
        check(sock:eof(), what)
    end, "--idle-timeout", "0.2")
end)

-- promise: docs/http.md: write stall: `timeout_ms[SXE_STATE_WRITING]` of `sxe_configure`, in which the peer must read some | 30 s | reset |
httpd.test_at_a_pace("a client that does not read its reply is reset", function(pace)
    each_kind(function(sock, kind, what)
        if not kind[4] then return end
        sock:send("GET " .. kind[4] .. " HTTP/1.1\r\nHost: a\r\n\r\n")
        sock:recv(15)
        wire.sleep(pace)
        local read, said = pcall(sock.recv_all, sock)
        check(not read or #said < 20000000, what)
    end, "--stall-timeout", httpd.seconds(0.2 * pace))
end)

-- The server's sockets that are connected, or closed but with bytes in the kernel.
local function sockets_at(port)
    local here, count = (":%04X "):format(port), 0
    for line in io.lines "/proc/net/tcp" do
        local address, state = line:match "^ *%d+: (%x+:%x+ )%x+:%x+ (%x+) "
        if address and address:sub(-#here) == here and state ~= "0A" then count = count + 1 end
    end
    return count
end

-- promise: docs/sxe.md: the kernel does not keep megabytes for a peer that does not read.
test("a reply that the kernel took as a whole does not stay there for a client that reads nothing", function()
    local server <close> = site.start("--stall-timeout", "0.5", "--idle-timeout", "0.5")
    server:write("large", ("x"):rep(300000))
    for _, last in ipairs{ "keep-alive", "close", "half-close" } do
        local sock <close> = server:connect(4096)
        sock:send("GET /large HTTP/1.1\r\nHost: a\r\nConnection: " .. last .. "\r\n\r\n")
        if last == "half-close" then
            sock:recv(1) -- the reply has ended when the client half-closes
            wire.sleep(0.1)
            pcall(sock.shutdown, sock) -- on a busy machine the reset comes first
        end
        httpd.wait_until(function() return sockets_at(server.port) == 0 end, "no socket: " .. last)
        local read, said = pcall(sock.recv_all, sock)
        check(not read or #said < 300000, last)
    end
end)

-- promise: docs/sxe.md: For the timeout of WRITING a peer reads if its kernel acknowledges bytes
httpd.test_at_a_pace("a client that reads slowly gets all of a reply that the kernel took as a whole", function(pace)
    local server <close> = site.start("--stall-timeout", httpd.seconds(0.5 * pace),
                                      "--idle-timeout", httpd.seconds(0.2 * pace))
    server:write("large", ("x"):rep(1500000))
    for _, last in ipairs{ "keep-alive", "close" } do
        local sock <close> = server:connect(100000)
        sock:send("GET /large HTTP/1.1\r\nHost: a\r\nConnection: " .. last .. "\r\n\r\n")
        for _ = 1, 13 do
            equal(#sock:recv(100000), 100000, last)
            wire.sleep(0.2 * pace)
        end
        check(#sock:recv_all() > 200000, last)
    end
end)

-- The client reads so little that the kernel does not accept more of the reply meanwhile: its reading alone must count.
-- promise: docs/limits.md: `--stall-timeout` | 30 | seconds in which the client reads none of its reply |
httpd.test_at_a_pace("a client that reads slowly is not reset", function(pace)
    each_kind(function(sock, kind, what)
        if not kind[4] then return end
        sock:send("GET " .. kind[4] .. " HTTP/1.1\r\nHost: a\r\n\r\n")
        local size = what:find "unix" and 50000 or 4000
        for _ = 1, 20 do
            equal(#sock:recv(size), size, what)
            wire.sleep(0.1 * pace)
        end
    end, "--stall-timeout", httpd.seconds(0.5 * pace))
end)

-- promise: docs/http.md: `handler_timeout_ms` from LATER to the reply's first byte, less the waits for a body | none | 503, and `on_done(-ETIMEDOUT)` |
test("a handler that does not reply in time gets 503, with a request body or without", function()
    local path = os.tmpname()
    os.remove(path)
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
        local http, task = require "sxe.http", require "sxe.task"
        http.serve{ unix = %q, timeouts = { handler = 0.2 }, handler = function(req)
            if req.path == "/parts" then for _ in req:chunks() do task.sleep(0.15) end
            elseif req.path == "/whole" then req:body() end
            task.sleep(1000)
        end }
        task.sleep(0) print "ready" io.stdout:flush()]]):format(path)}
    proc:line(60)
    for _, kind in ipairs{"/none", "/whole", "/parts"} do
        local sock <close> = wire.connect(path)
        sock:timeout(100)
        sock:send(post(kind, 4, "body"))
        check(sock:recv_all():find "^HTTP/1%.1 503 ", kind)
    end
    proc:signal "KILL"
end)

-- promise: docs/limits.md: from the handler's `SXE_HTTP_LATER` to the reply's first byte
test("a reply whose first byte came in time may take longer than the handler's time", function()
    local path = os.tmpname()
    os.remove(path)
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
        local http, task = require "sxe.http", require "sxe.task"
        http.serve{ unix = %q, timeouts = { handler = 0.5 }, handler = function(req, res)
            task.sleep(0.001)
            for i = 1, 8 do res:write(tostring(i)) task.sleep(0.1) end
        end }
        task.sleep(0) print "ready" io.stdout:flush()]]):format(path)}
    proc:line(60)
    local sock <close> = wire.connect(path)
    sock:timeout(100)
    sock:send "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    local reply = sock:recv_all()
    for i = 1, 8 do check(reply:find("\r\n1\r\n" .. i .. "\r\n", 1, true), reply) end
    check(reply:find "\r\n0\r\n\r\n$", reply)
    proc:signal "KILL"
end)

-- promise: docs/lua-handlers.md: Bodies that are not complete do not count as the script's memory.
test("incomplete bodies do not count as the script's memory, and end with their clients", function()
    local server <close> = script.start(APP, "--lua-memory", "16m", "--max-body", "2m")
    local socks = {}
    for i = 1, 40 do
        socks[i] = server:connect()
        socks[i]:pump(post("/whole", 2000000, ("x"):rep(1000000)))
    end
    check(tonumber(server:ask "/memory") < 8000000, "they are")
    local rest = ("x"):rep(1000000)
    for i = 1, 10 do
        socks[i]:pump(rest)
        equal(socks[i]:read_reply().body, "2000000")
    end
    for _, sock in ipairs(socks) do sock:close() end
    check(tonumber(server:ask "/memory") < 8000000, "those that ended are")
end)

-- promise: docs/lua-handlers.md: Together they may have `limits.bodies` bytes (`--body-memory` of `sxe-httpd`);
-- beyond that the reply is `503`.
test("if the memory of all bodies is used up, requests get 503 until some is free", function()
    local server <close> = script.start(APP, "--body-memory", "1m")
    for _ = 1, 3 do
        local one <close> = server:connect()
        local other <close> = server:connect()
        for _, sock in ipairs{one, other} do
            sock:timeout(100)
            sock:pump(post("/whole", 700000, ("x"):rep(600000)))
        end
        httpd.wait_until(function() return one:ready(0.01) or other:ready(0.01) end, "a reply")
        local refused, kept = one, other
        if other:ready(0) then refused, kept = other, one end
        equal(refused:read_reply().status, 503)
        kept:pump(("x"):rep(100000))
        equal(kept:read_reply().body, "700000")
    end
end)
