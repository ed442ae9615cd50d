-- SPDX-License-Identifier: MIT
--
-- What pacing costs the client, as its own report says.

local cli = require "cli"
local httpd = require "httpd"

-- One worker's run; a function that finds a number of its JSON by the name before it. A server that
-- the machine keeps waiting may get less than 99 % of it.
local function run(...)
    local ran = cli.run("sxe-http", "-q", "-t", "1", "-c", "16", "--json", "-", "--threshold",
                        "skipped<=100%", ...)
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    return function(name)
        return tonumber(ran.output:match('"' .. name .. '": ?([%d.e+-]+)')) or error(ran.output)
    end
end

-- promise: docs/load-generator.md: Spun time is not counted in the `cpu` of the report, and a client
--   with a low rate sleeps.
test("a client with a low rate does not spin", function()
    local server <close> = httpd.start()
    local number = run("-R", "20", "--arrivals", "fixed", "-d", "0.5", server.url)
    equal(number "offered", 10)
    -- Ten arrivals and few other times, each at most 50 us and the turn that finds it over.
    check(number "spun_s" < 0.01, number "spun_s")
    check(number "spun" < 0.02, number "spun")
end)

-- promise: docs/load-generator.md: Spun time is not counted in the `cpu` of the report, and a client
--   with a low rate sleeps.
test("what is spun is not in the cpu of the verdict", function()
    local server <close> = httpd.start()
    local number = run("-R", "20k", "-d", "0.3", server.url)
    local spent = number "cpu_user_s" + number "cpu_system_s"
    -- It took 0.3 s, or longer if the last reply was late: then the part is smaller.
    check(number "cpu" <= math.max(spent - number "spun_s", 0) / 0.3 + 1e-6, number "cpu")
end)
