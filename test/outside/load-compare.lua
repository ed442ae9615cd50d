-- SPDX-License-Identifier: MIT
--
-- Comparisons of sxe-http: of result files that the tests write, and of servers that run in turn.

local cli = require "cli"
local known = require "known"

-- Write a result with ten trials. Times and rate vary around 1 by half a percent, multiplied by `factors`.
local function write(factors)
    local path, trials = os.tmpname(), {}
    for i = 0, 9 do
        local around = 1 + 0.0005 * (i * 7 % 10)
        local times = ('{"p50": %.4f, "p99": %.4f}'):format(1000 * around * factors.p50,
                                                          5000 * around * factors.p99)
        trials[#trials + 1] = ('{"rate": %.4f, "service": %s, "response": %s}')
                              :format(1000 * around * factors.rate, times, times)
    end
    local file <close> = io.open(path, "w")
    file:write('{"sxe_http": 1, "trials": [', table.concat(trials, ", "), "]}")
    return path
end

local function compare(a, b, ...)
    local first, second = write(a), write(b)
    local ran = cli.run("sxe-http", "compare", first, second, ...)
    os.remove(first)
    os.remove(second)
    return ran
end

-- promise: docs/load-generator.md: `--min-effect P%` is the minimum effect, by default 2 %: a regression is shown
-- only if a time's whole interval is above 1.02, or a rate's is below 0.98.
test("a small difference is no regression", function()
    local usual = {rate = 1, p50 = 1, p99 = 1}
    for _, case in ipairs{
        {rate = 0.987, p50 = 1.013, p99 = 1.01, status = 0},
        {rate = 0.96, p50 = 1, p99 = 1, status = 3},
        {rate = 1, p50 = 1.04, p99 = 1, status = 3},
        {rate = 1, p50 = 1, p99 = 1.04, status = 3},
        {rate = 1.2, p50 = 0.8, p99 = 0.7, status = 0},
        {rate = 0.96, p50 = 1.04, p99 = 1.04, status = 0, "--min-effect", "6%"},
        {rate = 0.987, p50 = 1, p99 = 1, status = 3, "--min-effect", "0.1%"},
    } do
        local ran = compare(usual, case, table.unpack(case))
        equal(ran.status, case.status, ran.output .. ran.errors)
    end
end)

-- promise: docs/load-generator.md: All intervals of a comparison hold together with a confidence of
--   95 %: with N figures that can be judged, each is wrong once in 20 * N (Bonferroni).
test("the confidence level holds for all figures together", function()
    local usual = {rate = 1, p50 = 1, p99 = 1}
    local ran = compare(usual, usual)
    check(ran.output:find("interval: 95 % for all 3 together\n", 1, true), ran.output)
end)

-- promise: docs/load-generator.md: The report and the outputs are about b alone; the JSON has the
--   trials of a in `baseline`.
test("two servers are compared in turn", function()
    local port, log = wire.free_port(), os.tmpname()
    local function server(name)
        return ("echo %s >> %s; exec %s -p %d"):format(name, log, wire.program("sxe-httpd"), port)
    end
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "2", "--requests", "50",
                        "--server-cmd", server("new"), "--baseline-cmd", server("old"),
                        "--trials", "6", "--min-effect", "100%")
    -- On a machine that is busy with other tests, any trial may be slow or suspect.
    check(ran.status == 0 or ran.status >= 3, ran.output .. ran.errors)
    local sides = "compare   a: --baseline-cmd, 6 trials; b: this run, 6 trials\n"
    check(ran.output:find(sides, 1, true), ran.output)
    check(ran.output:find("requests  300  ok 300  errors 0", 1, true), ran.output)
    local file <close> = io.open(log)
    local order = file:read("a"):gsub("%s+", " ")
    equal(order, ("old new new old "):rep(3))
    os.remove(log)
end)

local function measure(law, ...)
    local server <close> = known.start(law)
    local path = os.tmpname()
    known.load(server, "-c", "4", "--timeout", "120", "--json", path, ...)
    return path
end

-- promise: docs/load-generator.md: It is always a regression if b has no good reply at all, or has a trial without one
--   and a has no such trial. One trial is enough for this comparison.
test("a server that is dead or hung passes no comparison", function()
    local good = measure("fixed:1", "-d", "0.3")
    local nobody = os.tmpname()
    cli.run("sxe-http", "-q", "-p", tostring(wire.free_port()), "-c", "4", "-d", "0.2", "--json",
            nobody)
    for name, bad in pairs{dead = nobody, hung = measure("hung", "-d", "0.3", "--drain", "0.3")} do
        for _, a in ipairs{good, bad} do
            local ran = cli.run("sxe-http", "compare", a, bad)
            equal(ran.status, 3, name .. ran.output .. ran.errors)
            check(ran.output:find("no good reply in 1 of 1 trials of b: a regression\n", 1, true),
                  ran.output)
        end
        local ran = cli.run("sxe-http", "compare", bad, good)
        check(ran.status == 0 or ran.status == 4, name .. ran.output .. ran.errors)
        os.remove(bad)
    end
    os.remove(good)
end)

-- promise: docs/load-generator.md: b's share is `more: a regression` if two conditions hold: between equal programs
-- chance gives so large a difference in fewer than one of 200 comparisons; and b's share exceeds a's share by more
-- than the minimum effect
test("a server that fails half of the time passes no comparison and no gate", function()
    local good = measure("fixed:1", "--requests", "200")
    for _, law in ipairs{"storm:0.5,1", "resets:0.5,1", "lying:0.5,1"} do
        local bad = measure(law, "--requests", "200")
        local ran = cli.run("sxe-http", "compare", good, bad)
        equal(ran.status, 3, law .. ran.output .. ran.errors)
        check(ran.output:find "\nfailed        0 %%       [%d.]+ %% +more: a regression\n",
              ran.output)
        equal(cli.run("sxe-http", "compare", bad, bad).status % 4, 0, "the same against itself")
        os.remove(bad)

        -- The threshold accepts so many errors, but the comparison must still report more of them.
        local server <close> = known.start(law)
        ran = known.load(server, "-c", "4", "--requests", "200", "--baseline", good, "--threshold",
                         "errors<90%")
        check(ran.status == 3 or ran.status == 4, law .. ran.output .. ran.errors)
        check(ran.output:find("more: a regression\n", 1, true), ran.output)
    end
    os.remove(good)
end)

-- promise: docs/load-generator.md: `not sent` is the part of the offered requests that was not sent
test("a server that takes half of the load passes no comparison", function()
    local good = measure("fixed:1", "-R", "400", "--open", "-d", "0.5", "-c", "64")
    local bad = measure("capped:50", "-R", "400", "--open", "-d", "0.5")
    local ran = cli.run("sxe-http", "compare", good, bad)
    equal(ran.status, 3, ran.output .. ran.errors)
    check(ran.output:find "\nnot sent      [%d.]+ %% +[%d.]+ %% +more: a regression\n", ran.output)
    os.remove(good)
    os.remove(bad)
end)

-- promise: docs/load-generator.md: a or b is suspect: then the comparison of times and rates
--   proves nothing
test("a comparison with a suspect result is suspect", function()
    local function write_doubtful(factors)
        local path = write(factors)
        local file <close> = io.open(path)
        local text = file:read("a"):gsub("^{", '{"verdict": {"reasons": ["late"]}, ')
        local again <close> = io.open(path, "w")
        again:write(text)
        return path
    end
    local usual, slower = {rate = 1, p50 = 1, p99 = 1}, {rate = 0.9, p50 = 1.2, p99 = 1.2}
    for _, pair in ipairs{{write(usual), write_doubtful(slower)},
                          {write_doubtful(usual), write(slower)},
                          {write_doubtful(usual), write(usual)}} do
        equal(cli.run("sxe-http", "compare", pair[1], pair[2]).status, 4)
        os.remove(pair[1])
        os.remove(pair[2])
    end
end)

-- promise: docs/load-generator.md: A program that reads such a file (`merge`, `compare`, `--baseline`, `html`)
-- refuses an inconsistent one, with exit status 2 and the name of the wrong value
test("every command refuses a file whose numbers contradict each other", function()
    local good = measure("storm:0.1,1", "--requests", "300")
    local file <close> = io.open(good)
    local text, bad = file:read("a"), os.tmpname()
    for name, change in pairs{
        accounts = {'"offered": 300', '"offered": 301'},
        histogram = {'"count": 300', '"count": 299'},
        p50 = {'("service": ?{.-"p50": ?)[%d.]+', "%11"},
        rate = {'("trials": ?%[.-"rate": ?)[%d.]+', "%1999999999"},
        drain_seconds = {'"drain_seconds": ?[%d.]+', '"drain_seconds": -1'},
        total = {'("total".-"ok": ?)%d+', "%11"},
    } do
        local changed, times = text:gsub(change[1], change[2], 1)
        equal(times, 1, name)
        do
            local out <close> = io.open(bad, "w")
            out:write(changed)
        end
        for _, words in ipairs{{"merge", bad}, {"compare", good, bad}, {"html", bad},
                               {"--baseline", bad, "http://127.0.0.1:1/"}} do
            local ran = cli.run("sxe-http", table.unpack(words))
            equal(ran.status, 2, name .. " " .. words[1] .. ran.output .. ran.errors)
            check(ran.errors:find(bad .. ": '", 1, true), ran.errors)
        end
    end
    equal(cli.run("sxe-http", "html", good).status, 0)
    os.remove(good)
    os.remove(bad)
end)
