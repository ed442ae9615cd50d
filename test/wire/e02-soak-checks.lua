-- SPDX-License-Identifier: MIT
--
-- The judgements of `make soak` (test/soak/lib/soak-checks.lua): each finds what it is for.

package.path = package.path .. ";test/soak/lib/?.lua"

local checks = require "soak-checks"

local PREFIX <const> = "20300101 171754.521 P00004aeb ------ 4 - "

test("lines that the soak expects, and others", function()
    check(checks.is_expected(PREFIX .. "/tmp/a/app.lua was loaded again, into 2 processes", 0))
    check(checks.is_expected(PREFIX .. "process 19643 serves as worker 1", 0))
    check(checks.is_expected(PREFIX .. "a new program, process 24461, is starting already: " ..
                             "send SIGUSR2 again when it serves", 0))
    for _, line in ipairs{"something else", PREFIX .. "something else", PREFIX .. "xprocess 1 serves as worker 1"} do
        check(not checks.is_expected(line, 9), line)
    end
    local killed = PREFIX .. "process 19181, which served, ended with signal 9 (Killed)"
    check(checks.is_expected(killed, 1))
    check(not checks.is_expected(killed, 0), "nobody was killed")
    check(not checks.is_expected(killed:gsub("9 %(Killed%)", "11 (Segmentation fault)"), 9))
end)

test("whole lines of the access log, and torn ones", function()
    local line = '127.0.0.1 - - [30/Nov/2030:17:17:17 +0000] "GET /a.txt HTTP/1.1" 200 3 "-" "sxe-http/0.1.0"'
    check(checks.is_access_line(line))
    for _, wrong in ipairs{line:sub(1, -2), line:sub(20), line .. line:sub(1, 30), ""} do
        check(not checks.is_access_line(wrong), wrong)
    end
end)

-- `total` of a report: numbers of requests by their ends; others are connections and skipped requests.
local function total(ends, unopened, skipped, not_reopened)
    return {accounts = {ends = ends, skipped = skipped or {}},
            sockets = {unopened = unopened or {}, not_reopened = not_reopened or 0}}
end

local function check_judged(report, kills, expected)
    local requests, failed, unexplained = checks.judge(report, kills, 8)
    equal(("%d %d %d"):format(requests, failed, unexplained), expected)
end

test("failed requests: kills explain so many broken connections, and no other failure", function()
    check_judged(total{ok = 10, reset = 0}, 0, "10 0 0")
    check_judged(total{ok = 10, reset = 1}, 0, "11 1 1")
    check_judged(total{ok = 10, reset = 3, closed_early = 5}, 1, "18 8 0")
    check_judged(total{ok = 10, reset = 3, closed_early = 6}, 1, "19 9 1")
    check_judged(total{ok = 10, timed_out = 1}, 5, "11 1 1")
    check_judged(total{ok = 10, bad_status = 2}, 5, "12 2 2")
    check_judged(total({ok = 10}, {refused = 1}), 5, "11 1 1")
    check_judged(total({ok = 10}, nil, {server_gone = 4, unsent = 7}), 5, "14 4 4")
    check_judged(total({ok = 10}, nil, nil, 1), 0, "11 1 1")
    check_judged(total({ok = 10}, nil, nil, 1), 1, "11 1 0")
end)

test("samples that grow, and samples that only vary", function()
    equal(checks.flat({1, 2, 3}, 0, 0), nil)
    local growing, varying = {}, {}
    for i = 1, 60 do
        growing[i] = 1000 + 10 * i
        varying[i] = i == 60 and 5000 or 1000 + i % 7
    end
    local before, after, is_flat = checks.flat(growing, 0.03, 100)
    equal(("%.0f %.0f %s"):format(before, after, is_flat), "1230 1530 false")
    check(select(3, checks.flat(varying, 0.03, 0)))
    check(select(3, checks.flat({13, 13, 13, 15}, 0, 2)))
    check(not select(3, checks.flat({13, 13, 13, 16}, 0, 2)))
end)

local function judged(more)
    local complaints = {}
    local sums = {numbers = 1000, good = 500, wrong = 0, cut = 20, failed = 30, odd = 0, told = 300, lost = 0, twice = 0}
    for name, value in pairs(more) do sums[name] = value end
    checks.judge_commands(sums, 1000, complaints)
    return table.concat(complaints, "; ")
end

test("what numbered commands of Redis may come to", function()
    equal(judged{}, "")
    equal(judged{wrong = 1}, "1 replies reached another command than their own")
    equal(judged{twice = 2}, "2 commands were executed twice")
    equal(judged{lost = 3}, "3 commands were not executed, but their client was told so")
    equal(judged{odd = 4}, "4 errors that nobody expects")
    equal(judged{numbers = 999}, "only 999 numbers were used")
    equal(judged{good = 40}, "40 calls succeeded, and 50 did not")
    equal(judged{told = 0}, "no command was counted, or none was cancelled")
    equal(judged{cut = 0}, "no command was counted, or none was cancelled")
    local complaints = {}
    checks.judge_commands({}, 1000, complaints)
    equal(complaints[1], "the load has printed no sums")
end)
