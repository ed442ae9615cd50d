-- SPDX-License-Identifier: MIT
-- An idle server, by docs/lua.md.

-- How often the threads of a process and of its children have slept and woken up so far.
local function wakes(pid)
    local sum = 0
    local command = ("cat /proc/%d/task/*/status $(for c in $(cat /proc/%d/task/*/children); do "
        .. "echo /proc/$c/task/*/status; done)"):format(pid, pid)
    local pipe <close> = assert(io.popen(command))
    for line in pipe:lines() do
        sum = sum + (tonumber(line:match("^voluntary_ctxt_switches:%s*(%d+)")) or 0)
    end
    return sum
end

-- A thread that woke up every 10 ms would do so 100 times a second, however busy the machine is.
-- promise: docs/lua.md: That thread sleeps while no script runs, so an idle server hardly wakes up.
test("an idle server hardly wakes up, and a script that computes for ever is ended all the same", function()
    local server <close> = require "script".start([[
        return function(req)
            if req.path == "/loop" then while true do end end
            return "one"
        end]], "--lua-cpu", "50ms")
    equal(server:ask(), "one")
    local least = math.huge
    for _ = 1, 20 do
        local before = wakes(server.pid)
        wire.sleep(1)
        least = math.min(least, wakes(server.pid) - before)
        if least < 30 then break end
    end
    check(least < 30, ("woken %d times a second"):format(least))
    check(server:ask("/loop"):find("error", 1, true))
    equal(server:ask(), "one")
end)
