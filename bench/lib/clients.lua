-- SPDX-License-Identifier: MIT
--
-- What: load generators, ours and others, each as one that puts closed-loop load with keep-alive on
-- a server. Place: bench.lua's client row. Those that are not installed are named, not measured.
--
-- run(server, row, seconds, cpu) gives {rate = replies a second} or {failed = why}. row.last_rate is
-- about what to expect, for those that want a number of requests instead of a time.

local clients = {}

local queries_rate = "time for all queries%s*: [%d.]+ seconds or ([%d.]+)" -- of sxe-http

-- The rate that one line of its output names; every reply must have been a good one. other_status is
-- as good as 0.
local function run(command, pattern, is_good, other_status)
    local client <close> = wire.spawn(command)
    local output = client:output(60)
    local rate = tonumber((output:match(pattern)))
    local status = client:wait(60)
    if (status ~= 0 and status ~= other_status) or not rate or (is_good and not is_good(output)) then
        return {failed = client:errors() .. output}
    end
    return {rate = rate}
end

local function url_of(server)
    return ("http://127.0.0.1:%d/"):format(server.port)
end

local function requests_of(row, seconds)
    return tostring(math.max(row.connections, math.ceil(row.last_rate * seconds)))
end

-- Status 4 is its warning that it may be the client that is measured; here it should be.
local function run_sxe_http(server, row, seconds, cpu)
    return run({wire.program("sxe-http"), "-q", "-c", tostring(row.connections), "-d",
                tostring(seconds), url_of(server), cpu = cpu},
               queries_rate, nil, 4)
end

local function run_wrk(server, row, seconds, cpu)
    return run({wire.has("wrk"), "-t", "1", "-c", tostring(row.connections), "-d",
                ("%ds"):format(math.max(1, math.floor(seconds + 0.5))), url_of(server), cpu = cpu},
               "Requests/sec:%s+([%d.]+)", function(output)
        return not output:find("Non-2xx", 1, true) and not output:find("Socket errors", 1, true)
    end)
end

local function run_ab(server, row, seconds, cpu)
    return run({wire.has("ab"), "-q", "-k", "-c", tostring(row.connections), "-n",
                requests_of(row, seconds), url_of(server), cpu = cpu},
               "Requests per second:%s+([%d.]+)", function(output)
        return output:find("Failed requests:%s+0%f[^%d]") ~= nil
    end)
end

local function run_h2load(server, row, seconds, cpu)
    return run({wire.has("h2load"), "--h1", "-t", "1", "-c", tostring(row.connections), "-n",
                requests_of(row, seconds), url_of(server), cpu = cpu},
               "finished in [%d.]+m?s, ([%d.]+) req/s", function(output)
        return output:find(" 0 failed, 0 errored, 0 timeout", 1, true)
    end)
end

local function run_weighttp(server, row, seconds, cpu)
    return run({wire.has("weighttp"), "-k", "-t", "1", "-c", tostring(row.connections), "-n",
                requests_of(row, seconds), url_of(server), cpu = cpu},
               '"reqs_per_sec": ([%d.]+)', function(output)
        return output:find('"fail": 0,', 1, true) and output:find('"errs": 0', 1, true)
    end)
end

local others = {
    {name = "wrk", run = run_wrk},
    {name = "weighttp", run = run_weighttp},
    {name = "ab", run = run_ab},
    {name = "h2load", run = run_h2load},
}

function clients.present()
    local list = {{name = "sxe-http", run = run_sxe_http}}
    for _, client in ipairs(others) do
        if wire.has(client.name) then
            list[#list + 1] = client
        end
    end
    return list
end

-- Names of those that are not there.
function clients.missing()
    local list = {}
    for _, client in ipairs(others) do
        if not wire.has(client.name) then
            list[#list + 1] = client.name
        end
    end
    return list
end

local function children(pid)
    local file <close> = io.open(("/proc/%d/task/%d/children"):format(pid, pid))
    local list = {}
    for child in (file and file:read("a") or ""):gmatch("%d+") do
        list[#list + 1] = tonumber(child)
    end
    return list
end

-- sxe-http with many sockets, {sockets, workers, queries, sources}, against as many servers on one
-- port as it has workers. pss is that of its workers together, without their parent, which has no
-- sockets; it is looked at while all of theirs are open.
function clients.many(server_path, port, case)
    local sockets, workers, queries, sources = table.unpack(case)
    local servers <close> = setmetatable({}, {__close = function(list)
        for _, server in ipairs(list) do
            server:signal("TERM")
            server:wait(20)
        end
    end})
    for i = 1, workers do
        servers[i] = wire.spawn{server_path, "-s", "-p", tostring(port), "-l", "13"}
        servers[i]:line(20)
    end
    local client <close> = wire.spawn{wire.program("sxe-http"), "-q", "-p", tostring(port), "-c",
                                      tostring(sockets), "-n", tostring(queries), "-t",
                                      tostring(workers), "--source", sources}
    local line
    repeat
        line = client:line(300)
    until not line or line:find("^sockets")
    line = line or ""
    local pss = 0
    for _, pid in ipairs(children(client:pid())) do
        pss = pss + wire.pss(pid)
    end
    local output = client:output(300)
    local status = client:wait(60)
    local result = {
        pss = pss, open = tonumber(line:match("(%d+)/%d+ open")) or 0,
        connects = tonumber(output:match("time for all connections: [%d.]+ seconds or ([%d.]+)")) or 0,
        rate = tonumber(output:match(queries_rate)) or 0}
    if status ~= 0 and status ~= 4 then
        result.failed = client:errors() .. line .. output
    end
    return result
end

return clients
