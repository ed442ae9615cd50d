-- SPDX-License-Identifier: MIT
--
-- usage: wire redis.lua [COUNT [SEED [PART]]]    send COUNT (1000000) numbered commands with sxe.redis to a real
--                                                server, and then to a cluster of six, while connections, servers
--                                                and slots suffer; print what was counted, then a verdict. PART:
--                                                alone or cluster. Exit status 1: a reply reached another task than
--                                                its own, a command was executed twice, or anything happened that
--                                                nothing explains.
--
-- SOAK_FAULT=twice repeats a command, SOAK_FAULT=wrong changes a reply, to see that the soak fails then.

package.path = package.path .. ";test/wire/lib/?.lua;test/soak/lib/?.lua"

local checks = require "soak-checks"
local soak_redis = require "soak-redis"

local COUNT <const> = tonumber(arg[1]) or 1000000
local SEED <const> = tonumber(arg[2]) or os.time()
local DISTURBANCES <const> = {alone = 400, cluster = 200}

io.stdout:setvbuf "line"

local function show(name, sums, what, seconds)
    local words = {}
    for kind, number in pairs(what) do words[#words + 1] = ("%d %s"):format(number, kind) end
    table.sort(words)
    print(("%s: %d numbers in %.0f s: %d good, %d wrong, %d cancelled, %d failed; of what must not be repeated, " ..
           "%d told, %d untold, %d lost, %d twice; %d clients closed; %s"):format(name, sums.numbers, seconds, sums.good,
           sums.wrong, sums.cut, sums.failed, sums.told, sums.untold, sums.lost, sums.twice, sums.closed,
           table.concat(words, ", ")))
end

local function soak(name, directory)
    local server = soak_redis[name](directory)
    local start = wire.time()
    local is_done, sums, complaints, what = pcall(soak_redis.run, server, COUNT, DISTURBANCES[name], SEED,
                                                  os.getenv "SOAK_FAULT")
    server:close()
    if not is_done then error(sums, 0) end
    if sums.numbers then show(name, sums, what, wire.time() - start) end
    checks.judge_commands(sums, COUNT, complaints)
    for _, text in ipairs(complaints) do print("UNEXPLAINED: " .. text) end
    return #complaints
end

if not wire.has "redis-server" or not wire.has "redis-cli" then
    print "skipped: a million commands to Redis, because redis-server or redis-cli is not installed"
    return
end

for _, name in ipairs{"alone", "cluster"} do
    if arg[3] == nil or arg[3] == name then
        test(("numbered commands to Redis, %s, that is disturbed"):format(name), function()
            local directory = os.tmpname()
            os.remove(directory)
            assert(os.execute("mkdir " .. directory))
            local unexplained = soak(name, directory)
            print(("verdict: %s, seed %d"):format(
                unexplained == 0 and "each reply reached its own task, and nothing was done twice" or
                ("%d unexplained; the logs are in %s"):format(unexplained, directory), SEED))
            equal(unexplained, 0, "unexplained")
            os.execute("rm -r " .. directory)
        end)
    end
end
