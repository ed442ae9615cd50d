-- SPDX-License-Identifier: MIT
--
-- The worker processes of a sxe-httpd: list them, wait for them, kill them.

local httpd = require "httpd"
local workers = {}

-- A script whose handler replies with the pid of its process.
workers.SCRIPT = [[
    local file <close> = io.open("/proc/self/stat")
    local pid = file:read("n")
    return function() return tostring(pid) end]]

-- The pids of a server's children, in the order in which they were forked.
function workers.of(server)
    local pids = {}
    local file <close> = assert(io.open(("/proc/%d/task/%d/children"):format(server.pid, server.pid)))
    for pid in file:read("a"):gmatch("%d+") do
        pids[#pids + 1] = tonumber(pid)
    end
    return pids
end

-- Wait until there are `number` workers, none of them listed in `but`; return their pids.
function workers.await(server, number, but)
    local pids
    httpd.wait_until(function()
        pids = workers.of(server)
        for _, pid in ipairs(pids) do
            for _, old in ipairs(but or {}) do
                if pid == old then return false end
            end
        end
        return #pids == number
    end, number .. " workers")
    return pids
end

function workers.kill(pid, signal)
    return os.execute(("kill -%s %d 2>/dev/null"):format(signal or "KILL", pid))
end

return workers
