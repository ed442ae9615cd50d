-- SPDX-License-Identifier: MIT
--
-- What: who used the CPUs while something was measured: the server, the client, others.
-- Place: load.lua watches a client with it; rows that measure by themselves start and stop it.
--
-- Others are known well where server and client have one thread each: by how long these were ready
-- to run and did not, but for what the driver and the kernel's threads for packets ran, whose work
-- is ours. Else (is_estimate) they are what the whole machine did beyond us, which the kernel counts
-- in ticks: a number that is some hundredths of a CPU too high as often as too low, and so may be
-- negative. method.lua takes the mean of several.

local machine = require "machine"

local clocks = {}

local SHORTEST = 0.5 -- seconds of which ticks can say something

local function now(server, client)
    local pids, all = client and machine.tree(client) or {}, server and server.pids() or {}
    local cpu_server, cpu_client = machine.busy(all), machine.busy(pids)
    local is_exact = #all <= 1 and machine.is_single(all) and machine.is_single(pids)
    local beside = server and server.beside and machine.busy(server.beside.pids()) or 0
    table.move(pids, 1, #pids, #all + 1, all)
    return {time = wire.time(), server = cpu_server, client = cpu_client, beside = beside,
            is_exact = is_exact and beside == 0,
            waited = machine.waited(all), softirqs = machine.softirqs(),
            here = machine.busy_here(), all = machine.busy_all()}
end

-- CPUs that were busy from one time to the other: the server's, the client's, others'.
local function between(first, last)
    local seconds = last.time - first.time
    local function share(field)
        return seconds > 0 and math.max(0, (last[field] - first[field]) / seconds) or 0
    end
    local is_exact = first.is_exact and last.is_exact
    local lost = math.max(0, share("waited") - share("softirqs") - share("here"))
    if not is_exact then
        lost = share("all") - share("here") - share("server") - share("beside")
               - (last.client > 0 and share("client") or 0)
    end
    return {seconds = seconds, cpu_server = share("server"), cpu_client = share("client"),
            lost = lost, is_estimate = not is_exact}
end

-- Both sides, from now until what is returned is called. The client is the driver with what it
-- started and saw ending.
function clocks.start(server)
    local first = now(server)
    return function()
        local last = now(server)
        local result = between(first, last)
        result.cpu_client = (last.here - first.here) / result.seconds
        return result
    end
end

-- Of the samples, the first and the last within so many seconds before the end, but for the edges.
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

-- CPUs that others took while something ran of which all has ended, and of which the driver's
-- children or house.unseen have the time. What is returned gives {lost, is_estimate}, or nil where
-- that was too short to say.
function clocks.around(house)
    local time, here, all = wire.time(), machine.busy_here(), machine.busy_all()
    house.unseen = 0
    return function()
        local seconds = wire.time() - time
        local lost = machine.busy_all() - all - (machine.busy_here() - here) - house.unseen
        return seconds >= SHORTEST and {lost = lost / seconds, is_estimate = true} or nil
    end
end

-- Waits for the client's end, which comes as soon as it has measured. Returns its exit status, nil
-- when it did not end in time, and a function that says what happened in the last seconds before.
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
