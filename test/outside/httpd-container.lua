-- SPDX-License-Identifier: MIT
--
-- sxe-httpd as process 1 of a container, by docs/operations.md: a server in its own namespaces.

local httpd = require "httpd"
local workers = require "workers"

-- LeakSanitizer cannot trace process 1.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}
local UNSHARE = {"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}

local can_unshare = os.execute(table.concat(UNSHARE, " ") .. " true 2>/dev/null")
    and os.execute("command -v nsenter >/dev/null")

local function test_in_container(name, run)
    test(name, function()
        if can_unshare then
            run()
        else
            print("skipped: " .. name .. ", because namespaces of processes and mounts cannot be made here")
        end
    end)
end

local container = setmetatable({}, {__index = httpd})
container.__index = container

-- Start a server as process 1. `before`: a command that runs the program, or no words.
local function start(before, ...)
    local command = {env = ENV, table.unpack(UNSHARE)}
    for _, word in ipairs(before) do command[#command + 1] = word end
    for _, word in ipairs{wire.program("sxe-httpd"), "-p", "0", ...} do command[#command + 1] = word end
    local server = setmetatable(httpd.spawn(command), container)
    server.pid = workers.of(server)[1]
    return server
end

-- Send SIGTERM; the server must exit with 0.
function container:stop()
    workers.kill(self.pid, "TERM")
    equal(self.proc:wait(60), 0, self.proc:errors())
end

-- promise: docs/operations.md: Signals work as elsewhere, except SIGUSR2: SIGTERM ends the server with exit status 0,
-- SIGHUP reloads.
test_in_container("signals work as process 1", function()
    local alone = start{}
    alone:check_answers()
    alone:stop()
    local server = start({}, "-w", "2")
    local before = workers.await(server, 2)
    workers.kill(server.pid, "HUP")
    workers.await(server, 2, before)
    server:check_answers()
    server:stop()
end)

-- promise: docs/operations.md: It reaps them when they end, so that none stays as a zombie.
test_in_container("a process whose parent ended is waited for", function()
    for own, options in pairs{[0] = {}, {"-w", "1"}} do
        local server = start({}, table.unpack(options))
        local before = workers.await(server, own)
        assert(os.execute(("nsenter -t %d -p -m sh -c '(exec sleep 1000 >/dev/null 2>&1 &)'"):format(server.pid)))
        local orphan
        for _, pid in ipairs(workers.await(server, own + 1)) do
            if pid ~= before[1] then orphan = pid end
        end
        workers.kill(orphan)
        equal(workers.await(server, own)[1], before[1])
        server:check_answers()
        server:stop()
    end
end)

-- promise: docs/operations.md: The server runs on a read-only root file system, because it writes only the files that
-- options and scripts name.
test_in_container("a root file system that is read-only is enough", function()
    local path = os.tmpname()
    local read_only = 'mount -o remount,bind,ro / && ! touch "$0" 2>/dev/null && exec "$@"'
    local root <close> = io.popen("stat -c %d / " .. path)
    if root:read("l") ~= root:read("l") then
        print("skipped: a root file system that is read-only, because /tmp is another one")
    else
        for _, options in ipairs{{}, {"-w", "2"}} do
            local server = start({"sh", "-c", read_only, path}, table.unpack(options))
            server:check_answers()
            server:stop()
        end
    end
    os.remove(path)
end)
