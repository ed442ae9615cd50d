-- SPDX-License-Identifier: MIT
--
-- What: shows where a row's time goes: a flame graph of the server, by perf, and its system calls a
-- request, by strace. Place: make bench-profile ROW=...; the SVG is build/bench/<row>.svg.
--
-- Neither measures speed: perf takes some per cent, strace makes a server many times slower. Each
-- of the two has a run of its own.

local flame = require "flame"
local method = require "method"
local servers = require "servers"

local profile = {}

local OUTPUT = "build/bench"
local SECONDS = 3
local PATIENCE = 30
local READY_SECONDS = 5 -- the longest wait until perf or strace watches
local HERTZ = 999
local SHOWN = 12

local function wait_until(condition)
    local give_up = wire.time() + READY_SECONDS
    while not condition() and wire.time() < give_up do
        wire.sleep(0.01)
    end
end

local function has_bytes(path)
    local file <close> = io.open(path)
    return file ~= nil and file:seek("end") > 0
end

-- Take one sample of this row while the watcher, the process command(pids), watches the server.
-- Returns the sample and the watcher, which has ended; nil: the row starts no server that can be
-- watched.
local function watched(house, row, peer, command, is_ready)
    local watcher
    house.on_start = function(pids)
        if not watcher then
            watcher = wire.spawn(command(table.concat(pids, ",")))
            wait_until(function() return is_ready(watcher) or pcall(watcher.wait, watcher, 0) end)
        end
    end
    local sample = method.sample(house, row, peer)
    house.on_start = nil
    if watcher then
        pcall(watcher.signal, watcher, "INT")
        pcall(watcher.wait, watcher, PATIENCE)
    end
    return sample, watcher
end

-- Print why there is no result. Returns true (no failure) if there was no server to watch, or no
-- permission.
local function say_nothing(what, sample, watcher)
    local complaint = watcher and watcher:errors():match("[^\n]+")
    print(("  no %s: %s"):format(what, sample.errors or complaint
          or watcher and "nothing was seen" or "the row starts no program"))
    return not sample.errors and (complaint ~= nil or watcher == nil)
end

-- ---- perf ----

local function read_stacks(data)
    local command = ("perf script -i %s -F comm,ip,sym,dso 2>/dev/null"):format(data)
    local script <close> = io.popen(command)
    return flame.parse(script:lines())
end

local function record(house, row, peer)
    local data = house.files .. "perf.data"
    local sample, watcher = watched(house, row, peer, function(pids)
        return {"perf", "record", "-q", "-e", "cpu-clock", "-F", tostring(HERTZ), "-g", "-o", data,
                "-p", pids, cpu = house.client_cpu}
    end, function() return has_bytes(data) end)
    local root = has_bytes(data) and read_stacks(data)
    os.remove(data)
    return root and root.count > 0 and not sample.errors and root or nil, sample, watcher
end

local function draw(house, row, peer)
    if not wire.has("perf") then
        print("  no flame graph: perf is not installed (package linux-perf)")
        return true
    end
    local root, sample, watcher = record(house, row, peer)
    if not root then
        return say_nothing("flame graph", sample, watcher)
    end
    local kinds, leaves = flame.leaves(root, SHOWN)
    local subtitle = ("%s, %d samples: kernel %.0f %%, libc %.0f %%, ours %.0f %%"):format(
        peer.title or peer.name, root.count, 100 * (kinds.kernel or 0), 100 * (kinds.libc or 0),
        100 * (kinds.ours or 0))
    os.execute("mkdir -p " .. OUTPUT)
    local path = ("%s/%s.svg"):format(OUTPUT, row.name)
    local file <close> = assert(io.open(path, "w"))
    file:write(flame.svg(root, row.name .. ": " .. row.title, subtitle))
    print("  " .. subtitle)
    for _, leaf in ipairs(leaves) do
        print(("  %5.1f %%  %s"):format(100 * leaf.share, leaf.name))
    end
    print("  " .. path .. " shows it")
    return true
end

-- ---- strace ----

local function calls_of(path)
    local calls, total = {}, 0
    for line in io.lines(path) do
        local count, rest = line:match("^%s*[%d.]+%s+[%d.]+%s+%d+%s+(%d+)%s+(.*)$")
        if count and not rest:find("total$") then
            calls[#calls + 1] = {name = rest:match("(%S+)$"), count = tonumber(count)}
            total = total + tonumber(count)
        end
    end
    table.sort(calls, function(a, b) return a.count > b.count end)
    return calls, total
end

local function count_calls(house, row, peer)
    if not wire.has("strace") then
        print("  no system calls: strace is not installed (package strace)")
        return true
    end
    local trace = house.files .. "strace"
    local sample, watcher = watched(house, row, peer, function(pids)
        return {"strace", "-c", "-f", "-o", trace, "-p", pids}
    end, function(strace) return strace:errors():find("attached") end)
    if sample.errors or not has_bytes(trace) then
        return say_nothing("system calls", sample, watcher)
    end
    local calls, total = calls_of(trace)
    local requests = sample.rate and sample.seconds and sample.rate * sample.seconds
    os.remove(trace)
    print(("  %d system calls%s"):format(total, requests
          and (", %.0f requests were measured of all that were made"):format(requests) or ""))
    local base = requests and calls[1] and calls[1].count
    for _, call in ipairs(calls) do
        if call.count >= total * 0.002 then
            print(("  %9d  %s%s"):format(call.count, call.name, base
                  and ("  %.3f for each %s"):format(call.count / base, calls[1].name) or ""))
        end
    end
    return total > 0
end

-- present(row) gives the peers of a row that are installed.
function profile.run(house, list, present)
    local good = true
    house.seconds = house.options.seconds or SECONDS
    servers.allow_descriptors()
    for _, row in ipairs(list) do
        local peers = present(row)
        local peer = peers[1]
        for _, each in ipairs(peers) do
            peer = each.name == (row.ours or "sxe-httpd") and each or peer
        end
        print(("\n%s  %s"):format(row.name, row.title))
        if not peer then
            print("  none of its peers is installed")
        else
            method.write_files(house, row)
            good = draw(house, row, peer) and good
            good = count_calls(house, row, peer) and good
        end
    end
    return good
end

return profile
