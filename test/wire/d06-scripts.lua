-- SPDX-License-Identifier: MIT
-- sxe-http with scripts: the tasks of wrk's example scripts, written for our interface; checks; scenarios.

local httpd = require "httpd"
local load = require "load"

-- Start sxe-http with `text` in a new file as the value of `option`, such as -s or --scenario.
local function start(target, option, text, ...)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local client = load.start(target, option, path, "-q", ...)
    client.path = path
    return client
end

-- Wait for the end of the run and return its output. Status 4 (suspect) is allowed, because the machine may be busy.
local function finish(client)
    client:finish()
    os.remove(client.path)
    check(client.status == 0 or client.status == 4,
          ("exit status %d: %s%s"):format(client.status, client.output, client.errors))
    equal(client.errors, "")
    return client
end

-- Run a script against one connection; serve() gets each request and returns the reply.
local function converse(requests, script, serve, ...)
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = start(listener, "-s", script, "-c", "1", "-n", tostring(requests), ...)
    local sock <close> = listener:accept(20)
    for i = 1, requests do
        sock:send(serve(sock:recv_until("\r\n\r\n"), i, sock) or load.reply("hello"))
    end
    return client
end

test("counter: the script makes each request", function()
    local client = converse(3, [[
        local n = 0
        function request()
            n = n + 1
            wrk.headers["X-Counter"] = n
            return wrk.format(nil, "/" .. n)
        end
    ]], function(request, i)
        equal(request:match("^GET /(%d) HTTP/1.1\r\nHost: 127.0.0.1:%d+\r\n"), tostring(i))
        equal(request:match("X%-Counter: (%d)\r\n"), tostring(i))
    end)
    equal(finish(client).ok, 3)
end)

test("auth: the token of the first reply is sent with the requests after it", function()
    local client = converse(4, [[
        local token
        function request() return wrk.format(nil, token and "/in" or "/login") end
        function response(status, headers, body)
            token = headers["x-token"]
            wrk.headers["X-Token"] = token
            if body ~= "hello" then error("the body is " .. body) end
        end
    ]], function(request, i)
        equal(request:match("^GET (%S+)"), i == 1 and "/login" or "/in")
        equal(request:match("X%-Token: (%w+)"), i > 1 and "abc" or nil)
        return "HTTP/1.1 200 OK\r\nX-Token: abc\r\nContent-Length: 5\r\n\r\nhello"
    end)
    equal(finish(client).ok, 4)
end)

test("post: method, body and a header", function()
    local client = converse(2, [[
        wrk.method = "POST"
        wrk.body = "a=1&b=2"
        wrk.headers["Content-Type"] = "x/y"
    ]], function(request, _, sock)
        check(request:find("^POST / HTTP/1.1\r\n"), request)
        check(request:find("\r\nContent-Type: x/y\r\n", 1, true), request)
        check(request:find("\r\nContent-Length: 7\r\n", 1, true), request)
        equal(sock:recv(7), "a=1&b=2")
    end)
    equal(finish(client).ok, 2)
end)

test("delay: a request waits as long as delay() says", function()
    local replied
    local client = converse(3, "function delay() return 40 end", function()
        check(not replied or wire.time() - replied >= 0.040, "too early")
        replied = wire.time()
    end)
    equal(finish(client).ok, 3)
end)

test("pipeline: several requests are sent before their replies come", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = start(listener, "-s", [[
        function init() all = wrk.format(nil, "/a") .. wrk.format(nil, "/b") end
        function request() return all end
    ]], "-c", "1", "-n", "4", "--pipeline", "2")
    local sock <close> = listener:accept(20)
    for _ = 1, 2 do
        check(sock:recv_until("\r\n\r\n"):find("^GET /a "))
        check(sock:recv_until("\r\n\r\n"):find("^GET /b "))
        sock:send(load.reply("1") .. load.reply("2"))
    end
    client:finish()
    os.remove(client.path)
    equal(client.ok, 4)
    check(client.errors:find("several requests; they are sent one by one", 1, true), client.errors)
end)

test("stop: the script ends the run early", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = start(listener, "-s", [[
        local n = 0
        function response()
            n = n + 1
            if n == 3 then wrk.thread:stop() end
        end
    ]], "-c", "1", "-d", "60")
    local sock <close> = listener:accept(20)
    for _ = 1, 3 do
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello"))
    end
    equal(finish(client).ok, 3)
end)

test("setup, init and done: values go to the workers and come back", function()
    local server <close> = httpd.start()
    local client = start(server.port, "-s", [[
        local threads = {}
        function setup(thread)
            table.insert(threads, thread)
            thread:set("id", #threads)
        end
        function init(args)
            sent, got, first = 0, 0, args[1]
        end
        function request() sent = sent + 1 return wrk.request() end
        function response() got = got + 1 end
        function done(summary, latency, requests)
            for _, thread in ipairs(threads) do
                print(("thread %d: %d %d %s"):format(thread:get("id"), thread:get("sent"),
                                                     thread:get("got"), thread:get("first")))
            end
            print(("%d in all"):format(summary.requests))
        end
    ]], "-t", "2", "-c", "4", "--requests", "1000", "--", "word")
    finish(client)
    local sum = 0
    for id = 1, 2 do
        local sent, got = client.output:match(("thread %d: (%%d+) (%%d+) word\n"):format(id))
        check(sent, client.output)
        equal(sent, got)
        sum = sum + sent
    end
    equal(sum, 1000)
    check(client.output:find("\n1000 in all\n", 1, true), client.output)
end)

test("report: percentiles, on standard output", function()
    local server <close> = httpd.start()
    local client = start(server.port, "-s", [[
        function done(summary, latency, requests)
            io.write("---\n")
            for _, p in ipairs{50, 90, 99, 99.999} do
                io.write(("%g%%,%d\n"):format(p, latency:percentile(p)))
            end
            io.write(("%d %d %d\n"):format(latency.min, latency.mean, latency.max))
        end
    ]], "-c", "2", "--requests", "500")
    finish(client)
    local last = -1
    for value in client.output:match("%-%-%-\n.*$"):gmatch("%%,(%d+)\n") do
        check(tonumber(value) >= last, client.output)
        last = tonumber(value)
    end
    local min, mean, max = client.output:match("\n(%d+) (%d+) (%d+)\n$")
    check(tonumber(min) <= tonumber(mean) and tonumber(mean) <= tonumber(max), client.output)
    equal(tonumber(max), last)
end)

test("addr: each worker connects to the address that setup chose", function()
    local listeners = {}
    for i = 1, 2 do
        listeners[i] = wire.listen("127.0.0.1", 0)
    end
    local client = start(listeners[1], "-s", ([[
        local ports = {%d, %d}
        function setup(thread)
            thread.addr = wrk.lookup("127.0.0.1", table.remove(ports))[1]
        end
    ]]):format(listeners[1]:port(), listeners[2]:port()), "-t", "2", "-c", "2", "-n", "1")
    for i = 1, 2 do
        local sock <close> = listeners[i]:accept(20)
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello"))
    end
    equal(finish(client).ok, 2)
    for i = 1, 2 do
        listeners[i]:close()
    end
end)

test("check: a reply that fails the check is an error, and the reason is printed", function()
    local client = converse(4, [[
        function check(status, headers, body)
            return body == "good", "the body is " .. body
        end
    ]], function(_, i)
        return load.reply(i % 2 == 0 and "good" or "bad" .. i)
    end)
    client:finish():check_report{status = 1, ok = 2, failed = 2}
    os.remove(client.path)
    check(client.output:find("failed check", 1, true), client.output)
    check(client.errors:find("failed check(): 2, the first: the body is bad1\n", 1, true),
          client.errors)
end)

test("an error in a function ends the run, with a report", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = start(listener, "-s", [[
        local n = 0
        function request()
            n = n + 1
            if n == 3 then error("my reason") end
            return wrk.request()
        end
    ]], "-c", "1", "-n", "10")
    local sock <close> = listener:accept(20)
    for _ = 1, 2 do
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello"))
    end
    client:finish():check_report{status = 1, ok = 2, failed = 0}
    os.remove(client.path)
    check(client.errors:find("request() failed: ", 1, true), client.errors)
    check(client.errors:find(":4: my reason\nstack traceback:", 1, true), client.errors)
end)

test("an error of all workers is printed once, with the number of workers", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = start(listener, "-s", [[
        function request() error("my reason") end
    ]], "-c", "2", "-n", "1", "-t", "2")
    local socks = load.accept(listener, 2)
    client:finish():check_report{status = 1, ok = 0}
    os.remove(client.path)
    equal(select(2, client.errors:gsub("my reason", "")), 1, client.errors)
    check(client.errors:find(": the script failed in 2 of 2 workers\n", 1, true), client.errors)
    socks[1]:close()
    socks[2]:close()
end)

for name, text in pairs{
    ["that is none"] = "x = = 1",
    ["whose setup fails"] = "function setup() error('x') end",
} do
    test("a script " .. name .. " is refused before any query is sent", function()
        local listener <close> = wire.listen("127.0.0.1", 0)
        local client = start(listener, "-s", text, "-c", "1")
        equal(client.proc:output(), "")
        equal(client.proc:wait(20), 2)
        check(client.proc:errors():find("failed: ", 1, true))
        os.remove(client.path)
        check(not listener:ready(0), "a connection")
    end)
end

test("each trial begins with the state that setup left", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = start(listener, "-s", [[
        function setup(thread) thread:set("n", 10) end
        function request() n = n + 1 return wrk.format(nil, "/" .. n) end
    ]], "-c", "1", "-n", "2", "--trials", "2")
    for _ = 1, 2 do
        local sock <close> = listener:accept(20)
        for n = 11, 12 do
            equal(sock:recv_until("\r\n\r\n"):match("^GET /(%d+) "), tostring(n))
            sock:send(load.reply("hello"))
        end
    end
    equal(finish(client).ok, 4)
end)

-- ---- Scenarios ----

-- Start examples/read-write.c in a new folder; <close> removes the folder.
local function start_read_write()
    local port = wire.free_port()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local proc = wire.spawn{"sh", "-c", 'p=$(realpath "$0") && cd "$1" && exec "$p" "$2"',
                            wire.program("examples/read-write"), folder, tostring(port)}
    for _ = 1, 200 do
        local good, sock = pcall(wire.connect, "127.0.0.1", port)
        if good then
            sock:close()
            break
        end
        wire.sleep(0.05)
    end
    return setmetatable({port = port, folder = folder, proc = proc}, {__close = function()
        proc:signal("TERM")
        proc:wait(20)
        os.execute("rm -r " .. folder)
    end})
end

test("the example reads and writes 30 files, with ten reads for each write", function()
    local server <close> = start_read_write()
    local client = load.start(server.port, "--scenario", "examples/read-write.lua", "-q", "-t", "2",
                              "-c", "4", "--requests", "3300", "--candles", server.folder .. "/csv")
    client.path = server.folder .. "/none"
    equal(finish(client).ok, 3300)
    local kinds = {}
    for line in io.lines(server.folder .. "/csv") do
        local kind = line:match("GET") or line:match("POST")
        kinds[kind or "other"] = (kinds[kind or "other"] or 0) + 1
    end
    equal(kinds.GET, 4)
    equal(kinds.POST, 4)
    local parts = 0
    for n = 1, 30 do
        local file <close> = assert(io.open(server.folder .. "/" .. n))
        parts = parts + select(2, file:read("a"):gsub("%d+, ", ""))
    end
    equal(parts, 300)
end)

test("the example detects a server that does not sort", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "--scenario", "examples/read-write.lua", "-q", "-c", "1",
                              "-n", "2")
    local sock <close> = listener:accept(20)
    check(sock:recv_until("\r\n\r\n"):find("^GET /1 "))
    sock:send(load.reply("1, 2, "))
    check(sock:recv_until("\r\n\r\n"):find("^GET /2 "))
    sock:send(load.reply("2, 1, "))
    client:finish():check_report{status = 1, ok = 1, failed = 1}
    check(client.errors:find("failed check(): 1, the first: 2 stands before 1\n", 1, true),
          client.errors)
end)

test("a scenario with an unknown name is refused", function()
    local client = start(1, "--scenario", "return {kinds = {{paht = '/'}}}", "-c", "1")
    equal(client.proc:output(), "")
    equal(client.proc:wait(20), 2)
    check(client.proc:errors():find("kinds[1] has an unknown field 'paht'", 1, true))
    os.remove(client.path)
end)
