-- SPDX-License-Identifier: MIT
--
-- sxe-http against servers whose response times follow a known law. No test depends on the machine's speed: a slow
-- machine only makes slow replies slower.

local cli = require "cli"
local known = require "known"

-- promise: docs/load-generator.md: A failed request has no response time, because no good reply came. So it counts as
--   at least the `--timeout`
test("timeouts count in the percentiles", function()
    local server <close> = known.start "bimodal:0.05,1,3000"
    local ran = known.load(server, "-c", "64", "--requests", "1000", "--timeout", "0.5",
                           "--threshold", "p99<400ms", "--threshold", "errors<50%")
    check(ran.status == 3 or ran.status == 4, ran.output .. ran.errors)
    check(ran.output:find("p99<400ms MISSED (> ", 1, true), ran.output)
    check(ran.total.timed_out >= 40, ran.output)
    equal(ran.total.response_censored, ran.total.errors)
    equal(ran.total.response_count, 1000)
    check(ran.total["service_p99_us"] >= 499000, ran.output)
    check(ran.total.service_censored_from_us >= 500000, ran.output)
end)

-- promise: docs/load-generator.md: Quick refusals therefore improve no percentile
test("quick refusals do not improve p50", function()
    for _, law in ipairs{"storm:0.6,20", "resets:0.6,20", "lying:0.6,20"} do
        local server <close> = known.start(law)
        local ran = known.load(server, "-c", "8", "--requests", "200", "--timeout", "5")
        check(ran.status == 1, law .. ran.output .. ran.errors)
        equal(ran.total.ok + ran.total.errors, 200)
        check(ran.total.errors > 110, ran.output)
        check(ran.total.service_p50_us >= 4995000, law .. ran.output)
        check(ran.total.first_byte_p50_us >= 4995000, law .. ran.output)
        check(ran.output:find "\nservice     > 5.00 s  > 5.00 s", ran.output)
    end
end)

-- promise: docs/load-generator.md: Without any reply no threshold holds.
test("a server that never replies meets no threshold", function()
    local server <close> = known.start "hung"
    for _, condition in ipairs{"errors<1%", "errors<=100%", "skipped<50%", "achieved>=0",
                               "connect.max<1h", "rate>=0"} do
        local ran = known.load(server, "-c", "4", "-d", "0.2", "--drain", "0.1", "--threshold",
                               condition)
        check(ran.status ~= 0, condition .. " held: " .. ran.output)
        check(ran.output:find(condition .. " MISSED (n/a: no reply)", 1, true), ran.output)
        equal(ran.total.unanswered, 4)
        equal(ran.total.in_flight, 0)
    end
end)

-- promise: docs/load-generator.md: A request that is still in flight when the drain is over has failed: it is
-- `unanswered`.
test("a run whose last replies do not come fails", function()
    local server <close> = known.start "stalled:300,60000"
    local ran = known.load(server, "-c", "4", "-d", "1", "--drain", "0.1")
    check(ran.status == 1 or ran.status == 4, ran.output .. ran.errors)
    check(ran.total.ok > 0 and ran.total.unanswered == 4, ran.output)
    equal(ran.total.sent, ran.total.ok + ran.total.errors)
end)

-- promise: docs/load-generator.md: The rate is the count of good replies within the run's time, divided by that time.
test("replies that come in the drain are reported apart", function()
    local server <close> = known.start "fixed:400"
    local ran = known.load(server, "-c", "10", "-d", "1")
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    equal(ran.total.seconds, 1)
    check(ran.total.drained >= 10, ran.output)
    equal(ran.total.rate, ran.total.ok - ran.total.drained)
    check(ran.output:find(" more in the drain of ", 1, true), ran.output)
end)

-- promise: docs/load-generator.md: If more than 1 % of the load was not sent, the exit status is 1, unless a
-- `--threshold` on `skipped` or `achieved` says how much must be sent.
test("an overload fails in each model", function()
    local server <close> = known.start "capped:50"
    for _, words in ipairs{{}, {"--open"}, {"--deadline", "20ms"}} do
        local ran = known.load(server, "-c", "4", "-R", "2000", "-d", "0.5", table.unpack(words))
        check(ran.status == 1 or ran.status == 4, ran.output .. ran.errors)
        check(ran.total.skipped > ran.total.offered / 2, ran.output)
        ran = known.load(server, "-c", "4", "-R", "2000", "-d", "0.5", "--threshold",
                         "skipped<100%", table.unpack(words))
        check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
        ran = known.load(server, "-c", "4", "-R", "2000", "-d", "0.5", "--threshold",
                         "achieved>50%", table.unpack(words))
        check(ran.status == 3 or ran.status == 4, ran.output .. ran.errors)
    end
end)

-- promise: docs/load-generator.md: A condition is about `pN` (`p50`, `p95`, `p99.9`), `mean`, `min`
--   or `max` of the response time, or of `service.`, `first_byte.` or `connect.`; or about `rate`,
--   `errors`, `skipped` or `achieved`.
test("every condition of the page is understood, and in the help", function()
    local help = cli.run("sxe-http", "--help").output
    local server <close> = known.start "fixed:0"
    for _, condition in ipairs{"p50<1h", "p95<1h", "mean<1h", "min<1h", "max<1h", "service.p95<1h",
                               "first_byte.p50<1h", "connect.max<1h", "rate>0", "errors<1%",
                               "skipped<1%", "achieved>99%"} do
        local ran = known.load(server, "-c", "2", "--requests", "2000", "--threshold", condition)
        check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
        check(ran.output:find(condition .. " held", 1, true), ran.output)
        check(help:find(condition:gsub("^.*%.", ""):match "^%a+", 1, true), condition)
    end
end)
