-- SPDX-License-Identifier: MIT
--
-- The cost of pacing (spinning until an arrival is due), as the report shows it.

local cli = require "cli"
local httpd = require "httpd"

-- Run sxe-http with one worker; returns a function that finds a number in the JSON by its name. On a busy machine less
-- than 99 % of the requests may be sent, which the threshold allows.
local function run(...)
    local ran = cli.run("sxe-http", "-q", "-t", "1", "-c", "16", "--json", "-", "--threshold",
                        "skipped<=100%", ...)
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    return function(name)
        return tonumber(ran.output:match('"' .. name .. '": ?([%d.e+-]+)')) or error(ran.output)
    end
end

-- promise: docs/load-generator.md: at a low rate it sleeps. Spun time is not counted in the `cpu` of the report.
test("a client with a low rate does not spin", function()
    local server <close> = httpd.start()
    local number = run("-R", "20", "--arrivals", "fixed", "-d", "0.5", server.url)
    equal(number "offered", 10)
    -- Ten arrivals and a few timers, each preceded by at most 50 us of spinning and one turn of the loop.
    check(number "spun_s" < 0.01, number "spun_s")
    check(number "spun" < 0.02, number "spun")
end)

-- promise: docs/load-generator.md: at a low rate it sleeps. Spun time is not counted in the `cpu` of the report.
test("spun time is not part of the report's cpu", function()
    local server <close> = httpd.start()
    local number = run("-R", "20k", "-d", "0.3", server.url)
    local spent = number "cpu_user_s" + number "cpu_system_s"
    -- The run took 0.3 s, or longer if the last reply was late: then this share is smaller.
    check(number "cpu" <= math.max(spent - number "spun_s", 0) / 0.3 + 1e-6, number "cpu")
end)
