-- SPDX-License-Identifier: MIT
--
-- sxe-http --stages: the load, checked by the server's log, and the report of each stage.

local cli = require "cli"
local httpd = require "httpd"

-- Run sxe-http against a server with an access log. Returns how many requests came, and the run. There is a connection
-- for each request, so none is skipped at the end, even if a busy machine is late.
local function asked(...)
    local port, log, number = wire.free_port(), os.tmpname(), 0
    local ran
    do
        local server <close> = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port),
                                          "--access-log", log}
        server:line(20)
        ran = cli.run("sxe-http", "--timeout", "120", "-q", "--json", "-",
                      ("http://127.0.0.1:%d/"):format(port), ...)
        check(ran.status == 0 or ran.status == 4, ran.errors)
        server:signal("TERM")
        server:wait(120)
    end
    for _ in io.lines(log) do
        number = number + 1
    end
    os.remove(log)
    return number, ran
end

-- A number of the nth stage in the JSON's "total".
local function stage(ran, nth, name)
    local stages = ran.output:match('\n  "total": (%b{})'):match('"stages": (%b[])')
    local i = 0
    for one in stages:sub(2, -2):gmatch("%b{}") do
        i = i + 1
        if i == nth then
            return tonumber(one:match('"' .. name .. '": ([%d.e+-]+)'))
        end
    end
end

-- promise: docs/load-generator.md: With `--arrivals fixed`, the count from the start of the run to the end of any
-- stage is the area up to there, rounded up.
test("the number of fixed arrivals is the area under the stages' rates", function()
    local number, ran = asked("--arrivals", "fixed", "-c", "96", "--stages",
                              "0:100ms,200:200ms,200:0.29s,0:0,0:0.1,50:0,50:100ms,0:100ms")
    -- The areas: 0 + 20 + 58 + 0 + 5 + 2.5 requests.
    equal(number, 86)
    for nth, offered in ipairs{0, 20, 58, 0, 0, 0, 5, 3} do
        equal(stage(ran, nth, "offered"), offered, "stage " .. nth)
        equal(stage(ran, nth, "sent"), offered, "stage " .. nth)
        equal(stage(ran, nth, "ok"), offered, "stage " .. nth)
    end
end)

-- promise: docs/load-generator.md: `-t` and `--shard` divide each stage as they divide a rate.
test("workers and shards divide each stage", function()
    local words = {"--arrivals", "fixed", "-c", "120", "--stages", "100:0,100:200ms,300:0,300:200ms"}
    local first, a = asked("--shard", "1/3", "-t", "2", table.unpack(words))
    local second, b = asked("--shard", "2/3", "-t", "2", table.unpack(words))
    local third, c = asked("--shard", "3/3", "-t", "2", table.unpack(words))
    equal(first + second + third, 80)
    equal(stage(a, 2, "offered") + stage(b, 2, "offered") + stage(c, 2, "offered"), 20)
    equal(stage(a, 4, "offered") + stage(b, 4, "offered") + stage(c, 4, "offered"), 60)
end)

-- promise: docs/load-generator.md: `-R 1k:0` lowers it until nothing arrives any more.
test("a rate can fall to 0", function()
    local number = asked("--arrivals", "fixed", "-c", "64", "-R", "200:0", "-d", "0.5")
    equal(number, 50)
end)

-- promise: docs/load-generator.md: A stage with the same RATE as the one before keeps it; a stage whose TIME is 0 is
-- a step.
test("a level stage has a row in the report, a step has none", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-q", "-c", "4", "--stages", "50:0,50:200ms", server.url)
    check(ran.output:find("\nstage 2 +50/s +200 ms"), ran.output)
    check(not ran.output:find "\nstage 1", ran.output)
end)

-- promise: docs/load-generator.md: A condition on a stage begins with the stage's number: `--threshold
-- 'stage2.p99<10ms'`.
test("a condition may be about a stage", function()
    local server <close> = httpd.start()
    local function run(condition)
        return cli.run("sxe-http", "-q", "-c", "64", "--threshold", condition, "--stages",
                       "100:0,100:300ms,0:0,0:100ms", server.url)
    end
    local ran = run "stage2.p50<100s"
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    check(ran.output:find("stage2.p50<100s held", 1, true), ran.output)
    ran = run "stage2.p50<1us"
    check(ran.status == 3 or ran.status == 4, ran.output .. ran.errors)
    check(ran.output:find("stage2.p50<1us MISSED", 1, true), ran.output)
    cli.check_refused("is about stage 5, but there are 4", "sxe-http", "--stages",
                      "1:1,1:1,1:1,1:1", "--threshold", "stage5.p99<1s")
end)

-- promise: docs/load-generator.md: A threshold on a stage does not hold if no request that arrived in the stage got a
-- good reply.
test("no threshold holds for a stage without replies", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-q", "-c", "64", "--threshold", "stage4.errors<50%",
                        "--stages", "100:0,100:100ms,0:0,0:100ms", server.url)
    check(ran.status == 3 or ran.status == 4, ran.output .. ran.errors)
    check(ran.output:find("stage4.errors<50% MISSED", 1, true), ran.output)
end)

-- promise: docs/load-generator.md: The stages set the rate from the beginning to the end, so they cannot be combined
-- with `-R`, `-d`, `-n`, `--requests`, `--replay` or `--find`
test("options for a rate or an end are refused with --stages", function()
    for _, words in ipairs{{"-R", "5"}, {"-d", "1"}, {"-n", "1"}, {"--requests", "1"},
                           {"--replay", "a.log"}, {"--find", "p99<1s"}} do
        cli.check_refused("it cannot be combined with " .. words[1], "sxe-http", "--stages", "5:1s", words[1],
                          words[2])
    end
    cli.check_refused("--stages cannot be combined with --warmup", "sxe-http", "--stages", "5:1s", "--warmup",
                      "1")
end)

-- promise: docs/load-generator.md: There are at most 32 stages, which together last at most a day.
test("too many stages, and too long ones, are refused", function()
    cli.check_refused("more than 32 stages", "sxe-http", "--stages", ("1:1,"):rep(32) .. "1:1")
    cli.check_refused("more than a day", "sxe-http", "--stages", "1:1d,1:1s")
end)
