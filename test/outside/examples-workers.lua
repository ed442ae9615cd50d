-- SPDX-License-Identifier: MIT
--
-- examples/workers.c: workers that are killed or loaded again, and a new program.

local httpd = require "httpd"
local workers = require "workers"

local function connect(port)
    return wire.connect("127.0.0.1", port) -- an error if it is refused
end

-- The process that answers.
local function ask(sock)
    sock:send("hi\n")
    return tonumber(sock:recv_until("\n"):match("^hello from process (%d+)\n"))
end

-- Start the program, and wait until all its workers serve. Returns it, its port, and its workers.
local function start()
    local port, path = wire.free_port(), os.tmpname()
    os.remove(path)
    local mailbox <close> = wire.mailbox(path)
    local proc = wire.spawn{wire.program("examples/workers"), tostring(port), env = {NOTIFY_SOCKET = path}}
    local number = tonumber(mailbox:message():match("^READY=1\nSTATUS=Serving with (%d+) process"))
    os.remove(path)
    return proc, port, workers.await({pid = proc:pid()}, number)
end

-- promise: docs/processes.md: With `NOTIFY_SOCKET` it tells systemd when the workers are ready
test("the program says when all workers serve, one for each CPU", function()
    local proc <close>, _, pids = start()
    local cores <close> = assert(io.popen("nproc"))
    equal(#pids, math.min(cores:read("n"), 64))
    proc:signal("TERM")
    equal(proc:wait(60), 0, proc:errors())
end)

-- promise: examples/workers.c: kill that process, and another one takes its place.
test("a worker that is killed is replaced", function()
    local proc <close>, port, pids = start()
    local sock <close> = connect(port)
    local pid = ask(sock)
    workers.kill(pid, "KILL")
    workers.await({pid = proc:pid()}, #pids, {pid})
    local again <close> = connect(port)
    check(ask(again) ~= pid)
    again:close()
    proc:signal("TERM")
    equal(proc:wait(60), 0, proc:errors())
end)

-- promise: docs/processes.md: start new workers, all of them or none; those before them drain
test("at SIGHUP all workers are new, and an old connection is still served", function()
    local proc <close>, port, pids = start()
    local sock <close> = connect(port)
    local pid = ask(sock)
    proc:signal("HUP")
    local old = {}
    for _, each in ipairs(pids) do
        old[#old + 1] = each ~= pid and each or nil
    end
    workers.await({pid = proc:pid()}, #pids + 1, old)
    equal(ask(sock), pid)
    sock:close()
    workers.await({pid = proc:pid()}, #pids, pids)
    proc:signal("TERM")
    equal(proc:wait(60), 0, proc:errors())
end)

-- promise: docs/processes.md: with `argv`: run the program again, with the sockets; drain when the new one is ready
test("at SIGUSR2 a new program serves, and no connection is refused", function()
    local proc <close>, port, pids = start()
    proc:signal("USR2")
    local pid
    httpd.wait_until(function()
        local sock <close> = connect(port)
        pid = ask(sock)
        for _, old in ipairs(pids) do
            if pid == old then return false end
        end
        return true
    end, "the new program")
    equal(proc:wait(60), 0, proc:errors())
    local file <close> = assert(io.open(("/proc/%d/stat"):format(pid)))
    local parent = tonumber(file:read("a"):match("%) %u (%d+)"))
    workers.kill(parent, "TERM")
    httpd.wait_until(function() return not os.execute(("kill -0 %d 2>/dev/null"):format(pid)) end, "the end of the new program")
end)
