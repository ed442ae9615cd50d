-- SPDX-License-Identifier: MIT
--
-- What: measures how much CPU other programs took on this machine during a sample, and which
-- programs.
-- Place: load.lua watches a client's run with it; method.lua watches a whole sample of a row that
-- has its own function run.
--
-- All processes are listed before and after the sample, with their CPU time: exact to a nanosecond
-- if the kernel has it for each thread, otherwise to 10 ms. Our processes are the driver, the
-- processes that it started, and the kernel's threads for packets, whose work is part of the load;
-- in a row that writes to the disk also the kernel's threads for that. All other processes are
-- counted. A process that is too short for either list appears in its parent's time of ended
-- children. That time is not counted for the driver's own ancestors, because
-- they inherit orphans of our servers. Steal, the time that the host gave to other guests, is
-- added.

local machine = require "machine"

local others = {}

local SHORTEST = 0.2 -- seconds; in less, one millisecond of another program is a large share
local SHOWN = 3 -- how many programs to name
local SOFTIRQ = "^ksoftirqd/"
local KTHREADD = 2 -- the parent of the kernel's threads
-- Threads that write files to the disk. A worker has the name of its last work after its number;
-- one of high priority (H), which has no work now, has written to a disk.
local WRITERS = {"^kworker/%d+:%d+H", "^kworker/.*kblockd", "^kworker/.*writeback", "^jbd2/",
                 "^kworker/.*ext4", "^kworker/.*xfs", "^xfsaild/", "^kworker/.*dio"}

-- Set of our pids that ended or soon will: if a parent is gone, is_ours cannot trace them to us.
local ours = {}

-- Treat these servers, which are about to end, as ours.
function others.leave_out(pids)
    for _, pid in ipairs(pids) do
        ours[pid] = true
    end
end

-- The set of the driver's ancestors.
local function ancestors_of(list, pid)
    local set = {}
    while list[pid] and not set[list[pid].parent] do
        pid = list[pid].parent
        set[pid] = true
    end
    return set
end

local function is_ours(list, pid, driver)
    local process = list[pid]
    if ours[pid] or process.name:find(SOFTIRQ) then
        return true
    end
    while process do
        if pid == driver or ours[pid] then
            return true
        end
        pid, process = process.parent, list[process.parent]
    end
    return false
end

-- Add to a set the kernel's threads of a list that write to the disk. A worker that has another
-- name in the other list is the same thread.
local function add_writers(set, list)
    for pid, process in pairs(list) do
        for _, pattern in ipairs(process.parent == KTHREADD and WRITERS or {}) do
            set[pid] = set[pid] or process.name:find(pattern) ~= nil
        end
    end
end

-- left_out: a set of processes that do not count
local function only_others(list, driver, left_out)
    local ancestors, result = ancestors_of(list, driver), {}
    for pid, process in pairs(list) do
        if not left_out[pid] and not is_ours(list, pid, driver) then
            result[pid] = {name = process.name, parent = process.parent, own = process.own,
                           ended = ancestors[pid] and 0 or process.ended}
        end
    end
    return result
end

-- By pid of a living process: the seconds of its descendants that ended since `first`, as `first`
-- has them. The field `ended` of that process in `last` contains them too.
local function inherited(first, last)
    local seconds = {}
    for pid, process in pairs(first) do
        local heir = pid
        while first[heir] and not last[heir] do
            heir = first[heir].parent
        end
        if heir ~= pid then
            seconds[heir] = (seconds[heir] or 0) + process.own + process.ended
        end
    end
    return seconds
end

-- The CPU seconds of other programs between two lists: the sum, and a table by name. writes: whether
-- our programs write to the disk, so that the kernel's threads which do that are ours.
function others.between(first, last, driver, writes)
    local writers = {}
    if writes then
        add_writers(writers, first)
        add_writers(writers, last)
    end
    first, last = only_others(first, driver, writers), only_others(last, driver, writers)
    local old, ran, sum = inherited(first, last), {}, 0
    local function add(name, seconds)
        if seconds > 0 then
            ran[name], sum = (ran[name] or 0) + seconds, sum + seconds
        end
    end
    for pid, process in pairs(last) do
        local before = first[pid] or {own = 0, ended = 0}
        add(process.name, process.own - before.own)
        add("below " .. process.name, process.ended - before.ended - (old[pid] or 0))
    end
    return sum, ran
end

-- The programs that took most CPU, with their shares, as a text; nil: none took a hundredth of a
-- CPU.
local function names_of(ran, seconds)
    local names, texts = {}, {}
    for name, time in pairs(ran) do
        if time / seconds >= 0.01 then
            names[#names + 1] = name
        end
    end
    table.sort(names, function(a, b) return ran[a] > ran[b] end)
    for i = 1, math.min(#names, SHOWN) do
        texts[i] = ("%s %.2f"):format(names[i], ran[names[i]] / seconds)
    end
    return #texts > 0 and table.concat(texts, ", ") or nil
end

-- Watch from now until the returned function is called. That function returns the CPUs that others
-- took, the names of these programs, and the part that was steal; nil: the time was too short to
-- tell. writes: as in others.between.
function others.watch(writes)
    local driver = machine.self()
    local first, steal, start = machine.processes(), wire.steal(), wire.time()
    for pid in pairs(ours) do
        ours[pid] = first[pid] and true -- forget a pid that is gone: others may get it
    end
    return function()
        local seconds, stolen = wire.time() - start, wire.steal() - steal
        if seconds < SHORTEST then
            return nil
        end
        local sum, ran = others.between(first, machine.processes(), driver, writes)
        ran.steal = stolen
        return (sum + stolen) / seconds, names_of(ran, seconds), stolen / seconds
    end
end

return others
