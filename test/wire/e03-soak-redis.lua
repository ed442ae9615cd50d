-- SPDX-License-Identifier: MIT
--
-- `make soak PART=redis` in short: ten thousand numbered commands to a real server that is killed and stopped
-- meanwhile. The load of the soak must find nothing here, and must find each fault that it is told to make.

package.path = package.path .. ";test/soak/lib/?.lua"

local checks = require "soak-checks"
local soak_redis = require "soak-redis"

if not wire.has "redis-server" then
    print "skipped: numbered commands to Redis, because redis-server is not installed"
    return
end

-- Run the load, and return what the verdict complains about.
local function complaints_of(count, times, fault)
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local server <close> = soak_redis.alone(directory)
    local sums, complaints = soak_redis.run(server, count, times, 1, fault)
    checks.judge_commands(sums, count, complaints)
    os.execute("rm -r " .. directory)
    return table.concat(complaints, "; ")
end

test("each of ten thousand commands gets its own reply, and is executed once at most", function()
    equal(complaints_of(10000, 24), "")
end)

test("a reply that reaches another command is found", function()
    equal(complaints_of(2000, 1, "wrong"), "1 replies reached another command than their own")
end)

test("a command that is executed twice is found", function()
    equal(complaints_of(2000, 1, "twice"), "1 commands were executed twice")
end)
