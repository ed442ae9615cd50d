-- SPDX-License-Identifier: MIT
--
-- What: takes one sample: a client puts a row's load on a server, while the CPU times of both are
-- read.
-- Place: method.lua takes samples with it for each row without a function run; other rows call
-- bench.load.
--
-- sample  {value, errors = why it is void, seconds, cpu_server, cpu_client, lost = CPUs that other
--          programs took, lost_to = their names, stolen = the part that the host took, rate, p50,
--          p99, connects, server_us = µs of the server's CPU a request, reply_length,
--          megabytes = MB a second, client = command line, curve}

local clients = require "clients"
local clocks = require "clocks"
local others = require "others"
local servers = require "servers"

local load = {}

-- Units that count what a side does in a second of its CPU: the rate that it would have at the limit
-- of its CPU, even if the other side is the limit.
load.CPU_OF = {["replies/CPU s"] = "cpu_server", ["handshakes/CPU s"] = "cpu_server",
               ["requests/CPU s"] = "cpu_client"}

local PATIENCE = 60 -- seconds beyond the measured ones
local WARM_UP = 0.3 -- as a share of the measured seconds

-- The client for a load. limit-client is the client of pipelined loads, because pipelining costs it
-- nothing.
function load.client_of(what)
    local usual = what.tls and "limit-tls-client" or (what.depth or 1) > 1 and "limit-client"
                  or what.fresh and "connect-client" or "sxe-http"
    return clients.find(what.client or usual)
end

-- The second client, whose result is compared with the first one's; or nil.
function load.second_of(what)
    local first = load.client_of(what)
    local name = what.second == nil and (what.fresh and "sxe-http" or "wrk") or what.second
    local second = name and clients.find(name)
    if second and second ~= first and clients.is_installed(second) and second.can(what) then
        return second
    end
    return nil
end

-- Seconds that a client takes for a run of `seconds`, with its warm-up.
function load.seconds_of(client, what, seconds)
    return (client.seconds_of and client.seconds_of(what, seconds) or seconds) + WARM_UP * seconds
end

-- Put load on a server that is not measured: for clients without a warm-up of their own, and for
-- servers that compile code that is used often (warm_up, in seconds).
local function warm_up(house, server, what, seconds)
    local short = setmetatable({warmup = 0, queries = false, workers = false, sources = false},
                               {__index = what})
    short.connections = math.min(what.connections, 64)
    local words = clients.find("sxe-http").command(short, server, seconds, house.files)
    local proc <close> = servers.spawn(words, house.client_cpu)
    proc:output(PATIENCE)
    pcall(proc.wait, proc, PATIENCE)
end

local function value_of(unit, result)
    local cpu = load.CPU_OF[unit]
    if cpu then
        return result[cpu] > 0 and result.rate / result[cpu] or 0
    elseif unit == "s" then
        return result.seconds
    elseif unit == "connects/s" then
        return result.connects
    elseif unit == "MB/s" then
        return result.megabytes
    elseif unit == "µs/request" then
        return result.server_us
    end
    return result.rate
end

-- Add to a client's result the CPU times, and the values that are computed from both.
local function finish(result, times, unit, length)
    for name, value in pairs(times) do
        if name ~= "seconds" then
            result[name] = value
        end
    end
    result.server_us = result.rate > 0 and times.cpu_server / result.rate * 1e6 or 0
    result.megabytes = result.rate * (length or 0) / 1e6
    result.reply_length = length
    result.value = value_of(unit, result)
    return result
end

local function run_client(house, client, server, what, seconds)
    local words = client.command(what, server, seconds, house.files)
    local who_else = others.watch()
    local proc <close> = servers.spawn(words, what.client_cpu or house.client_cpu)
    local status, times_of = clocks.watch(proc, server, seconds + PATIENCE)
    if not status then
        return nil, client.name .. " did not end"
    end
    local lost, lost_to, stolen = who_else()
    local output = proc:output(PATIENCE)
    local result, why = client.read(output, house.files, what)
    if not result or not (client.good or {[0] = true})[status] then
        return nil, ("%s: %s (exit status %s) %s %s"):format(
            client.name, why or "failed", status, output:match("\n(requests[^\n]*)") or "",
            proc:errors())
    end
    result.lost, result.lost_to, result.stolen = lost, lost_to, stolen
    result.client = servers.command_line(words):gsub(house.files, "")
    return result, times_of(result.seconds or seconds)
end

-- Run the client again for longer if a smoke run, which is short, has no result: a busy machine may
-- answer no request in it.
local function run_until_result(house, client, server, what, seconds)
    local result, times = run_client(house, client, server, what, seconds)
    for _ = 1, house.smoke and 5 or 0 do
        if result then
            break
        end
        seconds = seconds * 3
        result, times = run_client(house, client, server, what, seconds)
    end
    return result, times
end

local looked = {} -- by target and peer: lengths of replies that take a second, each looked at once

-- Request one reply before the load, and return its length; nil and why, if the reply is wrong.
local function look(server, what)
    if what.look == false then
        return what.length
    elseif what.look ~= "once" then
        return servers.look(server, what)
    end
    local key, wrong = what.target .. " " .. server.peer, nil
    if not looked[key] then
        looked[key], wrong = servers.look(server, what)
    end
    return looked[key], wrong
end

-- house has client_cpu, seconds, and files, where clients may have theirs; unit is the row's.
function load.run(house, server, what, unit)
    local client = what.by or load.client_of(what)
    local seconds = house.seconds * (what.seconds or 1)
    local length, wrong = look(server, what)
    if wrong then
        return {errors = wrong}
    end
    what = setmetatable({length = length}, {__index = what})
    local compiles = not house.smoke and not server.is_warm and server.warm_up
    if compiles or not client.warms_up then
        warm_up(house, server, what, compiles or seconds * WARM_UP)
        server.is_warm = true
    end
    local result, times = run_until_result(house, client, server, what, seconds)
    if not result then
        return {errors = times}
    end
    return finish(result, times, unit, length)
end

return load
