-- SPDX-License-Identifier: MIT
-- sxe-httpd -w: several worker processes share connections and limits, and are replaced when they die.

local httpd = require "httpd"
local load = require "load"
local script = require "script"
local workers = require "workers"

-- Open `number` connections, each with one reply. Returns how many each process has, and the sockets.
local function spread(server, number)
    local counts, socks = {}, {}
    for i = 1, number do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET)
        local pid = socks[i]:read_reply().body
        counts[pid] = (counts[pid] or 0) + 1
    end
    return counts, socks
end

for _, number in ipairs{2, 6} do
    httpd.test_soon(("of 64 connections none of %d workers has more than 1.3 times the mean"):format(number), function()
        local server <close> = script.start(workers.SCRIPT, "-w", tostring(number))
        workers.await(server, number)
        local counts, socks = spread(server, 64)
        local most, processes = 0, 0
        for _, count in pairs(counts) do
            most, processes = math.max(most, count), processes + 1
        end
        for _, sock in ipairs(socks) do sock:close() end
        equal(processes, number)
        check(most <= 1.3 * 64 / number, most)
    end)
end

test("a single new connection is accepted, whatever the other workers have", function()
    local server <close> = script.start(workers.SCRIPT, "-w", "3")
    local _, socks = spread(server, 9)
    for i = 1, 9 do
        socks[i]:close()
        check(tonumber(server:ask()), "a reply")
    end
end)

test("files and the greeting are served by workers, too", function()
    for _, option in ipairs{"hello", "files"} do
        local server <close> = option == "hello" and httpd.start("-w", "2") or httpd.start("-w", "2", "-r", "test/wire")
        local pids = workers.await(server, 2)
        equal(#pids, 2)
        for _ = 1, 10 do
            local sock <close> = server:connect()
            sock:send("GET /l04-workers.lua HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            equal(sock:read_reply().status, 200)
        end
        server.proc:signal("HUP")
        workers.await(server, 2, pids)
        check(server.proc:errors():find("the server was loaded again, into 2 processes", 1, true), server.proc:errors())
    end
end)

for _, case in ipairs{{"kept connections"}, {"new connections", "--header", "Connection: close"}} do
    local name = table.remove(case, 1)
    test("ten reloads of two workers under load, " .. name .. ": no request fails", function()
        local server <close> = script.start(workers.SCRIPT, "-w", "2")
        local pids = workers.await(server, 2)
        local client = load.start(server.port, "-c", "20", "-d", "2", "--timeout", "60", table.unpack(case))
        client.proc:line(20)
        for _ = 1, 10 do
            server:reload()
            pids = workers.await(server, 2, pids)
        end
        client:finish(60):check_report{status = 0, failed = 0, skipped = 0}
        check(client.ok > 0, client.output)
    end)
end

-- Each connection has at most one request in flight.
test("workers that are killed under load lose the requests in flight, and no others", function()
    local server <close> = httpd.start("-w", "2")
    local pids = workers.await(server, 2)
    local client = load.start(server.port, "-c", "16", "-d", "3", "--timeout", "60")
    client.proc:line(20)
    for i = 1, 5 do
        workers.kill(pids[i % 2 + 1])
        httpd.wait_until(function()
            return select(2, server.proc:errors():gsub(" serves as worker ", "")) == i
        end, "another worker")
        pids = workers.await(server, 2)
    end
    client:finish(60)
    check(client.failed <= 5 * 16, client.output)
    check(client.ok > client.failed, client.output)
end)

test("a worker that hangs is replaced, and the other worker answers meanwhile", function()
    local mark = os.tmpname()
    os.remove(mark)
    local server <close> = script.start(([[
        local file <close> = io.open("/proc/self/stat")
        local pid = file:read("n")
        return function(req)
            if req.path == "/hang" then
                local mark = io.open("MARK.new", "w")
                mark:write(pid)
                mark:close()
                os.rename("MARK.new", "MARK")
                local text = ("a"):rep(60)
                text:find(("a-"):rep(30) .. "b")
            end
            return tostring(pid)
        end]]):gsub("MARK", mark), "-w", "2", "--hang-timeout", "500ms", "--stop-timeout", "1")
    local pids = workers.await(server, 2)
    local sock <close> = server:connect()
    sock:send("GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
    httpd.wait_until(function() return io.open(mark) end, "a worker that hangs")
    local file <close> = io.open(mark)
    local hung = file:read("a")
    os.remove(mark)
    for _ = 1, 20 do
        local pid = server:ask()
        check(tonumber(pid) and pid ~= hung, pid)
    end
    httpd.wait_until(function()
        return server.proc:errors():find("has blocked its loop for more than 500 ms", 1, true)
    end, "a line in the log")
    check(sock:eof(20))
    httpd.wait_until(function() return server.proc:errors():find(" serves as worker ", 1, true) end, "another worker")
    local kept = 0
    for _, pid in ipairs(workers.await(server, 2)) do
        kept = kept + ((pid == pids[1] or pid == pids[2]) and 1 or 0)
    end
    equal(kept, 1)
end)

test("workers that end soon after their start are restarted after growing delays, and the log says so", function()
    local path = os.tmpname()
    os.remove(path)
    local server <close> = script.start(([[
        local task = require "sxe.task"
        task.start(function()
            while not io.open(%q) do task.sleep(0.01) end
            os.exit(3)
        end)
        return function() return "hello" end]]):format(path), "-w", "2")
    io.open(path, "w"):close()
    httpd.wait_until(function()
        return server.proc:errors():find("processes end soon after their start, one after the other: the next one is "
            .. "started in 400 ms", 1, true)
    end, "a longer delay")
    check(server.proc:errors():find("which served, ended with exit status 3", 1, true), server.proc:errors())
    os.remove(path)
end)

test("after a script that fails to load the workers go on, and the log says so", function()
    local server <close> = script.start(workers.SCRIPT, "-w", "2")
    local pids = workers.await(server, 2)
    server:write("return 1 +")
    server:reload()
    httpd.wait_until(function()
        return server.proc:errors():find("could not be loaded again; the version loaded before goes on serving", 1, true)
    end, "a reason")
    local same = workers.await(server, 2)
    check(same[1] == pids[1] and same[2] == pids[2], "the same workers")
    check(tonumber(server:ask()), "a reply")
end)

-- Connect as a client at `address`, sent in a PROXY header; return the socket, and the status and body of the reply.
local function client_of(server, address)
    local sock = server:connect()
    sock:send(("PROXY TCP4 %s 10.0.0.1 1000 80\r\n"):format(address) .. httpd.GET)
    local reply = sock:read_reply()
    return sock, reply.status, reply.body
end

-- Tries until the limit of connections is open: of two that come at the same time, both may be refused.
test("an address's connections are limited in all workers together, and those of a dead one are given back", function()
    local server <close> = script.start(workers.SCRIPT, "-w", "3", "--connections-per-address", "10", "--proxy-from",
                                        "127.0.0.0/8")
    workers.await(server, 3)
    local open, of = {}, {}
    for _ = 1, 30 do
        local sock, status, pid = client_of(server, "192.0.2.7")
        if status == 200 then
            open[#open + 1] = sock
            of[#open] = tonumber(pid)
        else
            sock:close()
        end
    end
    equal(#open, 10)
    local processes = {}
    for _, pid in ipairs(of) do processes[pid] = true end
    check(next(processes, next(processes)), "more than one worker has some")
    local _, status = client_of(server, "192.0.2.8")
    equal(status, 200)
    workers.kill(of[1])
    httpd.wait_until(function() return server.proc:errors():find(" serves as worker ", 1, true) end, "another worker")
    local left = 0
    for _, pid in ipairs(of) do left = left + (pid == of[1] and 0 or 1) end
    local function one_more()
        local sock, again = client_of(server, "192.0.2.7")
        if again == 200 then
            left, open[#open + 1] = left + 1, sock
        else
            sock:close()
        end
        return again == 200
    end
    httpd.wait_until(function() return one_more() and left == 10 end, "10 connections")
    for _ = 1, 20 do check(not one_more(), "one that is too many is refused") end
end)

test("locks in a dict that workers share are taken over when their owner was killed", function()
    local path = os.tmpname()
    os.remove(path)
    local server <close> = script.start(([[
        local hits = assert(require "sxe.dict".open{ name = "hits", cells = 1000, file = %q })
        return function(req)
            for i = 1, 100 do hits:add(req.path) end
            return tostring(hits:add(req.path))
        end]]):format(path), "-w", "2")
    workers.await(server, 2)
    local client = load.start(server.port, "-c", "8", "-d", "2", "--timeout", "60")
    client.proc:line(20)
    for i = 1, 4 do
        workers.kill(workers.await(server, 2)[i % 2 + 1])
        httpd.wait_until(function()
            return select(2, server.proc:errors():gsub(" serves as worker ", "")) == i
        end, "another worker")
    end
    client:finish(60)
    check(client.ok > 0, client.output)
    check(tonumber(server:ask("/")) >= 101 * client.ok, "each request has counted")
    os.remove(path)
end)
