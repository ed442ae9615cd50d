-- SPDX-License-Identifier: MIT
--
-- Trials of sxe-http: their arrivals, and which figures are results. The seed alone decides how many queries arrive in
-- a given time, so each run of this test has the same numbers.

local cli = require "cli"

local function serve()
    local port = wire.free_port()
    local proc = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    proc:line(20)
    return proc, port
end

-- How many queries arrived in each trial, and in all of them.
local function offered(port, ...)
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "64", "-R", "400", "-d", "0.25",
                        "--timeout", "120", "--drain", "60", "--json", "-", ...)
    local numbers = {}
    check(ran.status == 0 or ran.status == 4, ran.errors)
    for number in ran.output:gmatch '"offered": ?(%d+)' do
        numbers[#numbers + 1] = tonumber(number)
    end
    return numbers
end

local function are_all_equal(numbers, first, last)
    for i = first + 1, last do
        if numbers[i] ~= numbers[first] then
            return false
        end
    end
    return true
end

-- promise: docs/load-generator.md: Each trial has its own arrivals and random values: the seed of trial N, from 0 on,
-- is `--seed` + N * 2^48.
test("trials have different arrivals, and each run has the same ones", function()
    local server <close>, port = serve()
    local numbers = offered(port, "--trials", "6")
    check(not are_all_equal(numbers, 1, 6), table.concat(numbers, " "))
    equal(table.concat(offered(port, "--trials", "6"), " "), table.concat(numbers, " "))
    local third = offered(port, "--seed", ("%d"):format(1 + 2 * 2 ^ 48))
    equal(third[1], numbers[3])
    check(server)
end)

-- promise: docs/load-generator.md: The two sides of a comparison use the same list of seeds: those
--   of `--aa` pair by pair, and two runs with the same `--seed`.
test("the sides of a pair have the same arrivals", function()
    local server <close>, port = serve()
    local numbers = offered(port, "--aa")
    for i = 1, 12, 2 do
        equal(numbers[i], numbers[i + 1], "pair " .. (i + 1) // 2)
    end
    check(not are_all_equal(numbers, 1, 12), table.concat(numbers, " "))
    check(server)
end)

-- promise: docs/load-generator.md: With a rate (`-R`) or a log (`--replay`), the rate is an input and no result: the
-- report has no interval for it, `compare` does not judge it, and `--until-ci` needs another figure.
test("a rate set by -R is not a result", function()
    local server <close>, port = serve()
    local a, b = os.tmpname(), os.tmpname()
    for path, rate in pairs{[a] = "1000", [b] = "100"} do
        local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "8", "-R", rate, "-d", "0.1",
                            "--trials", "6", "--json", path)
        check(not ran.output:find("rate/s", 1, true), ran.output)
        check(ran.output:find("trials    6, ", 1, true), ran.output)
    end
    local compared = cli.run("sxe-http", "compare", a, b)
    check(compared.output:find("\nrate a second [^\n]*given %(%-R, %-%-replay%), so no result\n"),
          compared.output)
    os.remove(a)
    os.remove(b)
    cli.check_refused("name another figure", "sxe-http", "-R", "100", "--until-ci", "2%")
    check(server)
end)

-- promise: docs/load-generator.md: If one trial has too few requests for a percentile, that percentile gets no
-- interval: it is n/a, as in that trial. Leaving the trial out would bias the result, because it is no chance which
-- trials have enough requests.
test("a figure has an interval only if every trial has it", function()
    local server <close>, port = serve()
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "4", "--requests", "300",
                        "--trials", "6", "--json", "-")
    local figures = ran.output:match '"figures": ?(%b{})'
    for name, is_known in pairs{p50 = true, p95 = true, p99 = false} do
        local interval = figures:match('"service%.' .. name .. '": ?(%b{})')
        equal(interval:find '"is_known": ?true' ~= nil, is_known, interval)
        equal(interval:find '"middle": ?null' ~= nil, not is_known, interval)
    end
    ran = cli.run("sxe-http", "-p", tostring(port), "-c", "4", "--requests", "300", "--trials", "6")
    check(ran.output:find("service p99 n/a\n", 1, true), ran.output)
    check(server)
end)

-- promise: docs/load-generator.md: With `--until-ci` of such a figure the run ends after the first trial with too few
-- requests. It says how many requests a trial needs (p50 20, p95 200, p99 1,000). The exit status is 5, as always
-- when the interval was not reached.
test("--until-ci ends when its interval cannot be reached", function()
    local server <close>, port = serve()
    for name, needs in pairs{p50 = 20, p95 = 200, p99 = 1000} do
        local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "2", "--requests",
                            tostring(needs - 1), "--trials", "50", "--until-ci", name .. ":5%")
        -- If the client had to wait for a CPU, the result is suspect (4), which takes precedence over 5.
        check(ran.status == 5 or ran.status == 4, ran.output .. ran.errors)
        check(ran.errors:find(("response.%s takes %d requests a trial, and trial 1 had %d;")
                              :format(name, needs, needs - 1), 1, true), ran.errors)
        check(not ran.errors:find("\ntrial     2/", 1, true), ran.errors)
    end
    check(server)
end)
