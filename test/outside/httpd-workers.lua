-- SPDX-License-Identifier: MIT
-- Several workers (-w), by docs/operations.md.

local httpd = require "httpd"
local load = require "load"
local script = require "script"
local workers = require "workers"

local function cpus()
    local file <close> = io.popen("nproc")
    return math.min(file:read("n"), 64)
end

-- promise: docs/operations.md: `-w N` starts N worker processes ("workers"), `-w auto` one for each CPU that the
-- program may use.
test("there are as many workers as -w says, and auto is one for each CPU", function()
    for _, number in ipairs{1, 3, "auto"} do
        local server <close> = httpd.start("-w", tostring(number))
        workers.await(server, number == "auto" and cpus() or number)
        server:check_answers()
    end
end)

-- promise: docs/operations.md: It keeps the listening sockets, starts the workers, watches them, and serves nothing itself.
test("the supervisor holds no connection", function()
    local server <close> = httpd.start("-w", "2")
    local before = wire.fds(server.pid)
    local socks = {}
    for i = 1, 20 do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET)
        equal(socks[i]:read_reply().status, 200)
    end
    equal(wire.fds(server.pid), before)
    for _, sock in ipairs(socks) do sock:close() end
end)

-- promise: docs/operations.md: Files, scripts and the greeting are served as with one process; with `--lua` each
-- worker has its own Lua state.
test("each worker counts for itself in a global", function()
    local server <close> = script.start([[
        local file <close> = io.open("/proc/self/stat")
        local pid, count = file:read("n"), 0
        return function() count = count + 1 return pid .. " " .. count end]], "-w", "2")
    local counts, socks = {}, {}
    for i = 1, 40 do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET)
        local pid, count = socks[i]:read_reply().body:match("(%d+) (%d+)")
        counts[pid] = (counts[pid] or 0) + 1
        equal(tonumber(count), counts[pid])
    end
    for _, sock in ipairs(socks) do sock:close() end
end)

-- promise: docs/operations.md: No connection waits for a worker that is busy or hangs if another worker can take it.
test("while a worker is stopped the other one takes all connections", function()
    local server <close> = script.start(workers.SCRIPT, "-w", "2")
    local pids = workers.await(server, 2)
    workers.kill(pids[1], "STOP")
    local socks = {}
    for i = 1, 30 do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET)
    end
    for i = 1, 30 do
        equal(socks[i]:read_reply().body, tostring(pids[2]))
        socks[i]:close()
    end
    workers.kill(pids[1], "CONT")
end)

-- promise: docs/operations.md: Its requests are lost, those of other workers are not.
test("when a worker is killed, only its own requests in progress are lost", function()
    local server <close> = script.start([[
        local file <close> = io.open("/proc/self/stat")
        local pid = file:read("n")
        return function(req) return req:body() .. pid end]], "-w", "2")
    local socks, of, first = {}, {}, nil
    for i = 1, 20 do
        socks[i] = server:connect()
        socks[i]:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        of[i] = tonumber(socks[i]:read_reply().body)
        first = first or of[i]
        socks[i]:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
    end
    workers.kill(first)
    for i = 1, 20 do
        if of[i] == first then
            check(not pcall(socks[i].read_reply, socks[i]), "no reply of a process that was killed")
        else
            socks[i]:send("b")
            equal(socks[i]:read_reply().body, "ab" .. of[i])
        end
        socks[i]:close()
    end
end)

-- promise: docs/operations.md: A worker that crashes first writes a report to standard error, after its last lines of the log: the version and build id of
test("a crash is reported with a stack trace", function()
    local server <close> = httpd.start("-w", "2")
    local pids = workers.await(server, 2)
    workers.kill(pids[1], "ABRT")
    local wanted = ("process %d crashed with signal 6 (Aborted) at address 0x"):format(pids[1])
    httpd.wait_until(function()
        return server.proc:errors():find(("process %d, which served, ended with signal 6"):format(pids[1]), 1, true)
    end, "the end of a worker")
    local report = server.proc:errors()
    check(report:find(wanted, 1, true), report)
    check(report:find("sxe%-httpd %d+%.%d+%.%d+ %(build id %x*%a*%): process"), report)
    check(report:find("sxe%-httpd[^%[\n]*%[0x%x+%]"), report) -- without "(...)" if the program is not relocated
end)

-- promise: docs/operations.md: With `file = "hits"`, a name without a slash, all workers share a file in `/dev/shm`;
test("a dict in a file counts the requests of all workers, a dict without a file those of one", function()
    local name = "sxe-workers-test-" .. tostring(os.time()) .. "-" .. wire.free_port()
    local server <close> = script.start(([[
        local dict = require "sxe.dict"
        local all = assert(dict.open{ name = "all", cells = 100, file = %q })
        local own = assert(dict.open{ name = "own", cells = 100, shared = true })
        return function() return all:add("n") .. " " .. own:add("n") end]]):format(name), "-w", "2")
    local most, socks = 0, {}
    for i = 1, 40 do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET)
        local all, own = socks[i]:read_reply().body:match("(%d+) (%d+)")
        equal(tonumber(all), i)
        most = math.max(most, tonumber(own))
    end
    check(most < 40, most)
    for _, sock in ipairs(socks) do sock:close() end
    os.remove("/dev/shm/" .. name)
end)

-- promise: docs/operations.md: with kill -USR1 the present workers do so, without a reload.
test("all workers write whole lines to one access log, and open it again", function()
    local path = os.tmpname()
    local server <close> = httpd.start("-w", "3", "--access-log", path)
    local function lines(of)
        local number = 0
        local file = io.open(of)
        for line in file and file:lines() or function() end do
            check(line:find('^127%.0%.0%.1 %- %- %[.*%] "GET / HTTP/1%.1" 200 14 "%-" ".*"$'), line)
            number = number + 1
        end
        return number
    end
    local function check_lines(of)
        local client = load.start(server.port, "-c", "12", "-n", "200", "--timeout", "60"):finish(120)
        equal(client.ok, 2400)
        httpd.wait_until(function() return lines(of) >= 2400 end, "2400 lines")
        equal(lines(of), 2400)
    end
    check_lines(path)
    os.rename(path, path .. ".old")
    server.proc:signal("USR1")
    httpd.wait_until(function() return io.open(path) end, "a new file")
    for _, pid in ipairs(workers.of(server)) do
        httpd.wait_until(function()
            local file <close> = io.popen(("ls -l /proc/%d/fd 2>/dev/null"):format(pid))
            return not file:read("a"):find(path .. ".old", 1, true)
        end, "that all have it")
    end
    check_lines(path)
    os.remove(path)
    os.remove(path .. ".old")
end)

-- promise: docs/operations.md: A second signal ends them at once.
test("a second SIGTERM ends all workers, whatever is in progress", function()
    local server = script.start("return function(req) return req:body() end", "-w", "2", "--stop-timeout", "1h")
    local socks = {}
    for i = 1, 8 do
        socks[i] = server:connect()
        socks[i]:send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        check(socks[i]:recv_until("\r\n\r\n"):find("100"), "it goes on")
    end
    server.proc:signal("TERM")
    httpd.wait_until(function() return not pcall(server.connect, server) end, "that nobody listens")
    server.proc:signal("TERM")
    equal(server.proc:wait(60), 0)
    for _, sock in ipairs(socks) do sock:close() end
    os.execute("rm -r " .. server.directory)
end)

-- promise: docs/operations.md: A worker that cannot end, because it hangs in a C function or is stopped, is killed a
-- second after that.
test("a second signal ends workers that hang in a function of C, or are stopped", function()
    local server = script.start([[
        local text, pattern = ("a"):rep(60), ("a*"):rep(40) .. "b"
        return function()
            io.stderr:write("it hangs\n")
            return tostring(text:find(pattern))
        end]],
        "-w", "2", "--stop-timeout", "1h", "--hang-timeout", "0")
    local pids = workers.await(server, 2)
    workers.kill(pids[1], "STOP")
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    httpd.wait_until(function() return server.proc:errors():find("it hangs", 1, true) end, "that one hangs")
    server.proc:signal("TERM")
    server.proc:signal("INT")
    equal(server.proc:wait(60), 0)
    local log = server.proc:errors()
    check(log:find(("process %d did not end at a second signal: it is killed"):format(pids[1]), 1, true), log)
    for _, pid in ipairs(pids) do check(not io.open("/proc/" .. pid .. "/stat"), "no worker is left") end
    os.execute("rm -r " .. server.directory)
end)

-- promise: docs/operations.md: If the supervisor is killed, its workers end too, after the requests in progress.
test("workers finish their requests and end when the supervisor is killed", function()
    local server = script.start("return function(req) return req:body() end", "-w", "2", "--stop-timeout", "60")
    local pids = workers.await(server, 2)
    local sock <close> = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    sock:recv_until("\r\n\r\n")
    server.proc:signal("KILL")
    server.proc:wait(60)
    wire.sleep(2.5) -- longer than a process that hangs is allowed
    sock:send("ab")
    equal(sock:read_reply().body, "ab")
    for _, pid in ipairs(pids) do
        httpd.wait_until(function() return not io.open("/proc/" .. pid .. "/stat") end, "the end of the workers")
    end
    os.execute("rm -r " .. server.directory)
end)

-- promise: docs/operations.md: The server drops lines that a full disk, or a limit of the size of files (ulimit -f,
-- SIGXFSZ), does not take, and continues to answer.
test("a log at the limit of the size of files ends no process", function()
    local log = os.tmpname()
    local file = assert(io.open(log, "w"))
    file:seek("set", 64 << 20)
    file:write("end\n")
    local size = file:seek()
    file:close()
    local server <close> = httpd.spawn{"sh", "-c", 'ulimit -f 20480; exec "$@"', "sh", wire.program("sxe-httpd"), "-p", "0",
                                       "--access-log", log}
    for _ = 1, 3 do server:check_answers() end
    server.proc:signal("TERM")
    equal(server.proc:wait(60), 0)
    local read <close> = assert(io.open(log))
    equal(read:seek("end"), size)
    os.remove(log)
end)
