-- SPDX-License-Identifier: MIT
--
-- What: S8's load: ten reads a write over 30 files, by n clients, each of which has one connection
-- to one of m servers; and how long each kind of request took, as candles.
-- Place: rows-seed.lua. The client is sxe-http with examples/read-write.lua, a process a server.

local cjson = require "cjson"

local clocks = require "clocks"

local sort = {}

local FILES, PARTS = 30, 100
local WARM_UP = 0.2 -- as a share of the measured time

-- Write the same files before each run, because the run's writes make them longer.
local function write_files(root)
    for i = 1, FILES do
        local parts = {}
        for j = 1, PARTS do
            parts[j] = (j * 7919 + i * 104729) % 1000 .. ", "
        end
        local file <close> = assert(io.open(("%s/%d"):format(root, i), "w"))
        file:write(table.concat(parts))
    end
end

-- Start wanted.servers servers, each on its own port; the workers of a cluster share one port.
local function start(bench, peer, wanted)
    local list = setmetatable({}, {__close = function(list)
        for _, server in ipairs(list) do
            server.stop()
        end
    end})
    local is_cluster = peer.name == "node-cluster"
    for i = 1, is_cluster and 1 or wanted.servers do
        list[i] = bench.start(peer, {cpu = wanted.cpu, connections = 64,
                                     workers = is_cluster and wanted.servers or 1})
    end
    return list
end

-- Start a client process for each server, and divide wanted.clients connections evenly among them.
local function start_clients(bench, servers, wanted)
    local list = {}
    for i, server in ipairs(servers) do
        local number = wanted.clients // #servers + (i <= wanted.clients % #servers and 1 or 0)
        local json = ("%s/sort-%d.json"):format(bench.scratch, i)
        if number > 0 then
            local is_cold = server.warm_up and not server.is_warm and not bench.smoke
            local warm_up = is_cold and server.warm_up or bench.seconds * WARM_UP
            server.is_warm = true
            local proc = bench.spawn({
                wire.program("sxe-http"), "-q", "--abort", "-c", number,
                "-d", ("%.3f"):format(bench.seconds), "--warmup", ("%.3f"):format(warm_up),
                "--scenario", "examples/read-write.lua", "--json", json,
                ("http://127.0.0.1:%d/"):format(server.port)}, {cpu = wanted.cpu})
            list[#list + 1] = {proc = proc, json = json}
        end
    end
    return list
end

-- A client's result, or nil and why there is none. Exit status 4 is allowed: it warns that servers
-- used the client's CPU, too.
local function read(client)
    local output = client.proc:output(60)
    local status = client.proc:wait(60)
    if status ~= 0 and status ~= 4 then
        return nil, output .. client.proc:errors()
    end
    local file <close> = assert(io.open(client.json))
    return cjson.decode(file:read("a")).total
end

-- Add a result to the candles: one for each kind of request, of all clients together.
local function add_kinds(candles, total, wanted)
    for _, kind in ipairs(total.kinds) do
        local candle = candles[kind.name]
        if not candle then
            candle = {servers = wanted.servers, clients = wanted.clients, kind = kind.name,
                      min = math.huge, max = 0, sum = 0, count = 0}
            candles[kind.name], candles[#candles + 1] = candle, candle
        end
        for _, client in ipairs(kind.clients) do
            local count, min, mean, max = table.unpack(client)
            if count > 0 then
                candle.min, candle.max = math.min(candle.min, min), math.max(candle.max, max)
                candle.sum, candle.count = candle.sum + count * mean, candle.count + count
            end
        end
    end
end

local function finish(candles)
    local list = {}
    for _, candle in ipairs(candles) do
        if candle.count > 0 then
            candle.mean = candle.sum / candle.count
            candle.p = candle.mean * 1.01
            list[#list + 1] = candle
        end
    end
    return list
end

local function pids_of(servers)
    local pids = {}
    for _, server in ipairs(servers) do
        local own = server.pids()
        table.move(own, 1, #own, #pids + 1, pids)
    end
    return pids
end

-- A sample: requests a second of all clients together. wanted: servers, clients, cpu.
local function sample(bench, servers, wanted)
    write_files(bench.root)
    local stop = clocks.start{pids = function() return pids_of(servers) end}
    local clients, candles, rate = start_clients(bench, servers, wanted), {}, 0
    for _, client in ipairs(clients) do
        local total, why = read(client)
        if not total then
            return {errors = why}
        end
        rate = rate + total.rate
        add_kinds(candles, total, wanted)
    end
    local times = stop()
    return {value = rate, candles = finish(candles), cpu_server = times.cpu_server,
            cpu_client = times.cpu_client}
end

-- Take one sample; its servers may stay for the next one. wanted: servers, clients, cpu.
function sort.run(bench, peer, wanted)
    return bench.with(peer, function() return start(bench, peer, wanted) end, function(servers)
        return sample(bench, servers, wanted)
    end)
end

-- Take a sample for each number of servers up to most.servers with each number of clients up to
-- most.clients. Returns the last sample with the candles of all samples, or the first sample that
-- failed.
function sort.sweep(bench, peer, most, cpu)
    local candles, last = {}, nil
    for number = 1, most.servers do
        local servers <close> = start(bench, peer, {servers = number, cpu = cpu})
        for clients = 1, most.clients do
            last = sample(bench, servers, {servers = number, clients = clients, cpu = cpu})
            if last.errors then
                return last
            end
            table.move(last.candles, 1, #last.candles, #candles + 1, candles)
        end
    end
    last.candles = candles
    return last
end

return sort
