-- SPDX-License-Identifier: MIT
-- SIGUSR2, which replaces the program, by docs/operations.md.

local httpd = require "httpd"
local load = require "load"
local script = require "script"
local workers = require "workers"

-- The pid in the nth line of the log that has a pid before `text`.
local function named(server, text, nth)
    local pid
    local is_named, why = pcall(httpd.wait_until, function()
        local number = 0
        for found in server.proc:errors():gmatch("process (%d+)" .. text) do
            number = number + 1
            if number == (nth or 1) then pid = tonumber(found) return true end
        end
    end, text)
    check(is_named, tostring(why) .. "\n" .. server.proc:errors())
    return pid
end

local function is_there(pid)
    local file = io.open(("/proc/%d/stat"):format(pid))
    local state = file and file:read("a"):match("%) (%u)")
    if file then file:close() end
    return state ~= nil and state ~= "Z"
end

-- Upgrade the server `times` times, then end the last program. The process of the first program must have exited with
-- 0.
local function upgrade(server, times)
    local pid = server.pid
    for n = 1, times do
        workers.kill(pid, "USR2")
        pid = named(server, " serves in place of this one", n)
        server:check_answers()
    end
    return pid
end

local function finish(server, pid)
    equal(server.proc:wait(20), 0, server.proc:errors())
    workers.kill(pid, "TERM")
    httpd.wait_until(function() return not is_there(pid) end, "the end of the last program")
    check(not server.proc:errors():find("Sanitizer"), server.proc:errors())
end

-- promise: docs/operations.md: When all of them are ready, the old workers drain as after a reload, and the old supervisor ends. No request fails.
test("two upgrades under load, with kept connections and with new ones", function()
    for _, header in ipairs{"A: b", "Connection: close"} do
        local server = httpd.start("-w", "2", "--stop-timeout", "1m")
        local client = load.start(server.port, "-c", "20", "-d", "2", "--timeout", "60", "--header", header)
        client.proc:line(20)
        local pid = upgrade(server, 2)
        client:finish(60):check_report{status = 0, failed = 0, skipped = 0}
        check(client.ok > 0, client.output)
        finish(server, pid)
    end
end)

-- promise: docs/operations.md: The new program also inherits sockets that a script opened.
test("a server of the script's own is still served after an upgrade", function()
    local port = wire.free_port()
    local server = script.start(([[
        require "sxe.http".serve{ip = "127.0.0.1", port = %d, handler = function() return "own" end}
        return function() return "Hello, World!\n", "text/plain" end]]):format(port))
    workers.kill(server.pid, "USR2")
    local pid = named(server, " serves in place of this one")
    local sock <close> = wire.connect("127.0.0.1", port)
    sock:send(httpd.LAST)
    equal(sock:read_reply().body, "own")
    finish(server, pid)
    os.execute("rm -r " .. server.directory)
end)

-- promise: docs/operations.md: If the new program ends or is killed before it is ready, or is not ready after 60
-- seconds, nothing changes: the old program goes on serving.
test("a new program that fails, or is killed, changes nothing", function()
    local server <close> = script.start("return function() return 'old' end", "-w", "2")
    server:write("error 'no'")
    server.proc:signal("USR2")
    named(server, ", ended with exit status 1 before it was ready; its messages say why. This one goes on serving")
    equal(server:ask(), "old")
    server:write("require 'sxe.task'.sleep(3600)")
    server.proc:signal("USR2")
    workers.kill(named(server, " starts, to serve in place of this one", 2))
    named(server, ", ended with signal 9 %(Killed%) before it was ready; its messages say why. This one goes on serving")
    equal(server:ask(), "old")
end)

-- The least limit of descriptors at which the process may open two more.
local function limit_for_two_more(pid)
    local is_open, free, limit = {}, 0, 0
    local list <close> = io.popen(("ls /proc/%d/fd"):format(pid))
    for fd in list:lines() do is_open[tonumber(fd)] = true end
    while free < 2 do
        if not is_open[limit] then free = free + 1 end
        limit = limit + 1
    end
    return limit
end

-- With coverage, the program that ends without free descriptors could not write its counters.
local without_coverage = os.getenv "SXE_BUILD" == "build/coverage" and function() end or test

without_coverage("a new program to which the sockets cannot be passed changes nothing", function()
    local server <close> = script.start("return function() return 'old' end", "-w", "2")
    os.execute(("prlimit --pid %d --nofile=%d:"):format(server.pid, limit_for_two_more(server.pid)))
    server.proc:signal("USR2")
    named(server, ", ended with exit status 1 before it was ready; its messages say why. This one goes on serving")
    check(server.proc:errors():find("cannot run .*: Too many open files"), server.proc:errors())
    os.execute(("prlimit --pid %d --nofile=1024:"):format(server.pid))
    equal(server:ask(), "old")
end)

local function ask_at(path)
    local sock <close> = wire.connect(path)
    sock:send(httpd.LAST)
    return sock:read_reply().body
end

-- promise: docs/operations.md: If the new program ends or is killed before it is ready, or is not ready after 60
-- seconds, nothing changes: the old program goes on serving.
test("a new program that fails leaves the file of a unix socket, and one that serves removes it when it ends", function()
    local path = os.tmpname()
    os.remove(path)
    local server = script.start("return function() return 'old' end", "-w", "2", "--unix", path)
    server:write("error 'no'")
    server.proc:signal("USR2")
    named(server, ", ended with exit status 1 before it was ready; its messages say why. This one goes on serving")
    equal(ask_at(path), "old")
    for number, signal in ipairs{"KILL", "TERM"} do
        server:write("require 'sxe.task'.sleep(3600)")
        server.proc:signal("USR2")
        workers.kill(named(server, " starts, to serve in place of this one", number + 1), signal)
        httpd.wait_until(function()
            return select(2, server.proc:errors():gsub("before it was ready; its messages say why. This one goes on", "")) == number + 1
        end, "the end of the new program by " .. signal)
        equal(ask_at(path), "old", signal)
    end
    server:write("return function() return 'new' end")
    server.proc:signal("USR2")
    local pid = named(server, " serves in place of this one")
    httpd.wait_until(function() return ask_at(path) == "new" end, "the new program at the unix socket")
    finish(server, pid)
    equal(io.open(path), nil)
    os.execute("rm -r " .. server.directory)
end)

-- promise: docs/operations.md: SIGTERM during an upgrade ends both programs.
test("SIGTERM during an upgrade ends the new program, too", function()
    local server = script.start("return function() return 'old' end", "-w", "2")
    server:write("require 'sxe.task'.sleep(3600)")
    server.proc:signal("USR2")
    local pid = named(server, " starts, to serve in place of this one")
    server.proc:signal("TERM")
    equal(server.proc:wait(20), 0, server.proc:errors())
    check(not is_there(pid))
    os.execute("rm -r " .. server.directory)
end)

-- promise: docs/operations.md: Process 1 of a container, a server without a supervisor, and a server with --admin at
-- a [fixed address](observability.md) cannot be upgraded in this way; the log says so.
test("without a supervisor no new program is started", function()
    local server <close> = httpd.start()
    server.proc:signal("USR2")
    httpd.wait_until(function()
        return server.proc:errors():find("SIGUSR2: no new program is started, as no supervisor keeps the sockets", 1, true)
    end, "a message")
    server:check_answers()
end)
