-- SPDX-License-Identifier: MIT
-- Replies that end before they are whole: a client, also one of HTTP/1.0, is told by a reset.

local cli = require "cli"
local httpd = require "httpd"
local script = require "script"
local workers = require "workers"

local TEXT = [[
local http, task, file = require "sxe.http", require "sxe.task", require "sxe.file"
local r = http.router()
local function row(req, res)
  for _ = 1, 1000 do res:write "row\\n" task.sleep(0.001) end
end
r:get("/message", function(_, res) res:write "half" return nil, "no" end)
r:get("/codes", function(_, res) res:write "half" return nil, "no", 5 end)
r:get("/false", function(_, res) res:write "half" return false, "no" end)
r:get("/event", function(_, res) res:sse():send "half" return nil, "no" end)
r:get("/file", function(_, res) res:write "half" return file.read "missing" end)
r:get("/deadline", function(req, res) return task.deadline(0.01, row, req, res) end)
r:get("/join", function(req, res) res:write "half" return task.start(task.sleep, 100):join(0.01) end)
r:get("/wrapped/x", row)
r:use(function(req, _, next) if req.path == "/wrapped/x" then return task.deadline(0.01, next) end end)
r:get("/nil", function(_, res) res:write "whole" return nil end)
r:get("/true", function(_, res) return res:write "whole" end)
r:get("/none", function(_, res) res:write "whole" end)
r:get("/large", function() return ("x"):rep(16000000) end)
r:get("/parts", function(_, res) for _ = 1, 160 do res:write(("x"):rep(100000)) end end)
r:get("/slow", function(_, res) res:write "half" task.sleep(1000) end)
return r
]]

local PATHS = {"/message", "/codes", "/false", "/event", "/file", "/deadline", "/join", "/wrapped/x"}

-- What a client of HTTP/1.0 gets until its connection ends; nil: the connection was reset.
local function read_to_end(sock, path)
    sock:send(("GET %s HTTP/1.0\r\n\r\n"):format(path))
    local is_whole, text = pcall(sock.recv_all, sock)
    return is_whole and text or nil
end

-- promise: docs/lua-handlers.md: If the reply has begun, the server resets the connection, so that no client takes
-- half a reply for a whole one.
test("nil and a message after parts of a reply is an error", function()
    local server <close> = script.start(TEXT)

    for _, path in ipairs(PATHS) do
        local sock <close> = server:connect()
        equal(read_to_end(sock, path), nil, path)
    end
    for _, path in ipairs{"/nil", "/true", "/none"} do
        local sock <close> = server:connect()
        check(read_to_end(sock, path):find("whole$"), path)
    end
    for _, path in ipairs(PATHS) do
        httpd.wait_until(function() return server.proc:errors():find("GET " .. path, 1, true) end, path .. " in the log")
    end
end)

-- promise: docs/operations.md: If a reply is not completely sent by then, its connection is reset, so that no client
-- takes half a reply for the whole.
test("a reply that is incomplete after --stop-timeout is reset", function()
    for _, options in ipairs{{}, {"-w", "1"}} do
        local server <close> = script.start(TEXT, "--stop-timeout", "100ms", table.unpack(options))
        local sock <close> = server:connect()

        sock:send "GET /slow HTTP/1.0\r\n\r\n"
        sock:recv_until "half"
        server.proc:signal "TERM"
        check(not pcall(sock.recv_all, sock), "the client got an orderly end")
    end
end)

-- Ask by HTTP/1.0 for more than the kernel buffers, do not read, and end the server. Returns whether the client sees a
-- reset after the bytes that it got.
local function is_reset_at_end(server, path)
    local sock <close> = server:connect(4096)

    sock:send(("GET %s HTTP/1.0\r\n\r\n"):format(path))
    sock:recv_until "\r\n\r\n"
    server.proc:signal "TERM"
    equal(server.proc:wait(100), 0, server.proc:errors())
    return not pcall(sock.recv_all, sock)
end

-- promise: docs/operations.md: If a reply is not completely sent by then, its connection is reset, so that no client
-- takes half a reply for the whole.
test("a reply that its client has not read after --stop-timeout is reset, although its handler has ended", function()
    for _, path in ipairs{"/large", "/parts"} do
        local server = script.start(TEXT, "--stop-timeout", "100ms")
        check(is_reset_at_end(server, path), path)
        os.execute("rm -r " .. server.directory)
    end
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute(("mkdir %s && truncate -s 16M %s/file"):format(directory, directory)))
    check(is_reset_at_end(httpd.start("-r", directory, "--stop-timeout", "100ms"), "/file"), "a file")
    os.execute("rm -r " .. directory)
end)

-- promise: docs/http.md: if it *shrinks*, the connection is reset, and nothing is sent in place of the missing bytes
-- (but the kernel may replace bytes that it has accepted and not yet sent by zeros);
test("a file that becomes shorter while it is sent ends with a reset", function()
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute(("mkdir %s && truncate -s 16M %s/file"):format(directory, directory)))
    local server <close> = httpd.start("-r", directory)
    local sock <close> = server:connect(4096)
    sock:send "GET /file HTTP/1.0\r\n\r\n"
    sock:recv_until "\r\n\r\n"
    assert(os.execute(("truncate -s 1M %s/file"):format(directory)))
    check(not pcall(sock.recv_all, sock), "the client got an orderly end")
    os.execute("rm -r " .. directory)
end)

test("a reply that is incomplete at a second SIGTERM is reset", function()
    local server <close> = script.start(TEXT, "--stop-timeout", "1000s")
    local sock <close> = server:connect()
    local other <close> = server:connect()

    sock:send "GET /slow HTTP/1.0\r\n\r\n"
    sock:recv_until "half"
    server.proc:signal "TERM"
    check(other:eof(100), "the server does not end")
    server.proc:signal "TERM"
    check(not pcall(sock.recv_all, sock), "the client got an orderly end")
end)

-- promise: docs/operations.md: Connections that wait in the backlog at the first signal are accepted, and a request
-- that came with such a connection is answered.
test("clients whose connections wait to be accepted at SIGTERM are answered", function()
    for _, options in ipairs{{}, {"-w", "1"}, {"-w", "2"}, {"--lua"}} do
        local server = options[1] == "--lua" and script.start(TEXT) or httpd.start(table.unpack(options))
        local serving = options[1] == "-w" and workers.await(server, tonumber(options[2])) or {server.pid}
        local socks = {}

        for _, pid in ipairs(serving) do workers.kill(pid, "STOP") end
        for i = 1, 100 do
            socks[i] = server:connect()
            socks[i]:send "GET /nil HTTP/1.1\r\nHost: a\r\n\r\n"
        end
        server.proc:signal "TERM"
        for _, pid in ipairs(serving) do workers.kill(pid, "CONT") end
        for _, sock in ipairs(socks) do
            local said = sock:recv_all()
            check(said:find("^HTTP/1.1 200 OK\r\n"), said)
        end
        equal(server.proc:wait(100), 0, server.proc:errors())
        if server.directory then os.execute("rm -r " .. server.directory) end
    end
end)

-- promise: docs/lua-handlers.md: A handler that stops its own server must not wait for the stop, because its own
-- reply is not sent yet. It starts a task, `task.start(server.stop, server, 5)`, and returns.
test("a handler that stops its server still replies", function()
    for _, stop in ipairs{"task.start(server.stop, server, 5)", "server:stop(0.001)"} do
        for _, reply in ipairs{'return "bye"', 'res:write "b" return "ye"', 'task.sleep(0.01) return "bye"'} do
            local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
                local http, task = require "sxe.http", require "sxe.task"
                local server
                server = http.serve{ port = 0, handler = function(_, res) %s %s end }
                task.start(function() print(server.port) io.stdout:flush() end)]]):format(stop, reply)}
            local sock <close> = wire.connect("127.0.0.1", tonumber(proc:line(20)))

            equal(read_to_end(sock, "/"):match "\r\n\r\n(.*)", "bye", stop .. reply)
            sock:close() -- the server waits for it
            equal(proc:wait(20), 0, proc:errors())
        end
    end
end)

-- promise: docs/lua-handlers.md: When a task ends for any reason, its locks are released, and the log has a warning.
test("the locks of a task are released when it ends", function()
    local ran = cli.run("sxe-lua", "-e", [[
        local task = require "sxe.task"
        local lock, other = task.lock(), task.lock()
        local function hold() lock:acquire() other:acquire() end
        local ends = {
            hold, function() hold() error "no" end, function() hold() task.sleep(1000) task.sleep(1000) end,
            function() hold() while true do end end, function() hold() lock:release() end,
            function() hold() other:release() lock:release() end,
            function() hold() do local lost = task.lock() lost:acquire() end collectgarbage() end,
        }
        for i, fn in ipairs(ends) do
            local t = task.start(fn)
            local waiting = task.start(function() local _ <close> = lock:acquire() return i end)
            task.sleep(0.01)
            t:cancel()
            print(waiting:join(100))
            other:acquire()
            other:release()
        end
        local permits = task.semaphore(1)
        task.start(permits.acquire, permits):join()
        print((select(2, permits:acquire(0.001))))
        permits:release()
        print(permits:acquire() == permits)
        task.start(function() debug.setmetatable(task.lock():acquire(), nil) collectgarbage() end):join()
        collectgarbage()]])

    equal(ran.output, [[
1
2
3
4
5
6
7
timeout
true
]], ran.errors)
    check(ran.errors:find("a task ended and had not released its lock", 1, true), ran.errors)
end)
