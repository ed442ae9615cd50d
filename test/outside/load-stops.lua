-- SPDX-License-Identifier: MIT
--
-- Processes of sxe-http that are stopped (SIGSTOP), or die, while they measure.

local httpd = require "httpd"
local load = require "load"

local function children(pid)
    local file <close> = io.open(("/proc/%d/task/%d/children"):format(pid, pid))
    local pids = {}
    for child in file:read("a"):gmatch("%d+") do
        pids[#pids + 1] = tonumber(child)
    end
    return pids
end

local function send(signal, pid)
    check(os.execute(("kill -%s %d"):format(signal, pid)), signal)
end

-- Start a run with 100 requests a second; return when its sockets are open and its load has begun. It has so many
-- sockets that no request is skipped at the end, even if a busy machine is late.
local function start(server, seconds, ...)
    local client = load.start(server.port, "-c", "512", "-R", "100", "--arrivals", "fixed", "-d",
                              tostring(seconds), ...)
    client.proc:line(20)
    client.proc:line(20)
    wire.sleep(0.2)
    return client
end

-- Wait for the end of a run whose first lines of output were read already.
local function finish(client)
    client.output = client.proc:output()
    client.status = client.proc:wait(20)
    client.errors = client.proc:errors()
    return client
end

local function stop_for(pid, seconds)
    send("STOP", pid)
    wire.sleep(seconds)
    send("CONT", pid)
end

-- promise: docs/load-generator.md: the client stood still for more than 1 % of the time, stops of over
--   100 ms together
test("a client that is stopped again and again is suspect", function()
    local server <close> = httpd.start()
    local client = start(server, 7, "-t", "1")
    local worker = children(client.proc:pid())[1]
    for _ = 1, 3 do
        stop_for(worker, 0.4)
        wire.sleep(0.2)
    end
    finish(client)
    equal(client.status, 4, client.output)
    check(client.output:find("RESULT SUSPECT: the client stood still for"), client.output)
end)

-- promise: docs/load-generator.md: Each worker measures its own stops, and the worker that stood still longest
-- decides.
test("one of several workers that is stopped makes the result suspect", function()
    local server <close> = httpd.start()
    local client = start(server, 7, "-t", "4")
    stop_for(children(client.proc:pid())[3], 1)
    finish(client)
    equal(client.status, 4, client.output)
    local part = client:numbers("the client stood still for ([%d.]+) %%")
    check(part >= 12 and part <= 100, client.output)
end)

-- promise: docs/load-generator.md: The parent process only watches: while it alone is stopped, the load continues and
-- nothing is lost.
test("a stopped parent process loses no request", function()
    local server <close> = httpd.start()
    local client = start(server, 6, "-t", "2")
    stop_for(client.proc:pid(), 5)
    finish(client)
    local queries, ok = client:numbers("requests%s+(%d+)%s+ok%s+(%d+)")
    equal(queries, 600, client.output)
    equal(ok, 600, client.output)
    -- A busy machine may stop the worker as well, but not for five of six seconds.
    local part = tonumber(client.output:match("the client stood still for ([%d.]+) %%") or 0)
    check(part < 80, client.output)
end)

-- promise: docs/load-generator.md: a worker or the probe died | its part of the load is missing
test("a worker that was killed makes the result suspect, and an error", function()
    local server <close> = httpd.start()
    local client = start(server, 60, "-t", "2")
    send("KILL", children(client.proc:pid())[2])
    finish(client)
    equal(client.status, 1, client.output)
    check(client.output:find("RESULT SUSPECT: [^\n]*worker 2 of 2 died after "), client.output)
    check(client.errors:find("worker 2 of 2 (process ", 1, true), client.errors)
end)
