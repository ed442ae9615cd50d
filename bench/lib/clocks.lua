-- SPDX-License-Identifier: MIT
--
-- What: measures how much of a CPU server and client used during a sample.
-- Place: load.lua watches a client with it; rows that measure by themselves start and stop it.

local machine = require "machine"

local clocks = {}

local function now(server, client)
    return {time = wire.time(), server = machine.busy(server.pids()),
            client = client and machine.busy(machine.tree(client)) or machine.busy_here()}
end

local function between(first, last)
    local seconds = last.time - first.time
    local function share(side)
        return seconds > 0 and math.max(0, (last[side] - first[side]) / seconds) or 0
    end
    return {seconds = seconds, cpu_server = share("server"), cpu_client = share("client")}
end

-- Measure both sides from now until the returned function is called. client: a pid, counted with
-- its children; nil: count the driver and those of its children that have ended.
function clocks.start(server, client)
    local first = now(server, client)
    return function() return between(first, now(server, client)) end
end

-- The first and the last sample within `seconds` before the end, without the edges.
local function pick(samples, finish, seconds)
    local margin = math.min(0.04, seconds / 10)
    local first, last = nil, samples[1]
    for _, sample in ipairs(samples) do
        if sample.time <= finish - margin then
            last = sample
            if sample.time >= finish - seconds + margin then
                first = first or sample
            end
        end
    end
    if not first or first.time >= last.time then
        return samples[1], samples[#samples]
    end
    return first, last
end

-- Wait for the client, which ends as soon as it has measured. Returns its exit status (nil: it did
-- not end in time), and a function that gives the CPU times of the last seconds before its end.
function clocks.watch(client, server, patience)
    local samples, give_up = {now(server, client:pid())}, wire.time() + patience
    local good, status
    repeat
        good, status = pcall(client.wait, client, 0.02)
        if not good then
            samples[#samples + 1] = now(server, client:pid())
        end
    until good or wire.time() > give_up
    local finish = wire.time()
    return good and status or nil, function(seconds)
        return between(pick(samples, finish, seconds))
    end
end

return clocks
