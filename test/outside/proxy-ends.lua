-- SPDX-License-Identifier: MIT
--
-- A proxy whose upstreams end connections and processes, and whose clients read slowly, by docs/proxy.md. `make soak
-- PART=proxy` does the same with larger numbers.

package.path = package.path .. ";test/soak/lib/?.lua"

local httpd = require "httpd"
local soak_proxy = require "soak-proxy"

-- promise: docs/proxy.md: No GET fails because an upstream closes idle connections, and no POST is executed twice.
test("an upstream that closes idle connections at random: no GET fails, no POST is executed twice", function()
    local sums = soak_proxy.close_at_random(1000, 1)
    equal(sums.failed, 0, tostring(sums.why))
    equal(sums.upstream.twice, 0)
    equal(sums.other, 0, tostring(sums.why))
    check(sums.upstream.idle > 50 and sums.answered > 50, "connections were closed, and POSTs were answered")
end)

-- promise: docs/proxy.md: If one of several servers is ended by `kill -9`, only POSTs that it was working on fail.
test("one of three upstreams is killed under load: only what was in flight fails", function()
    local sums = soak_proxy.kill_one(1000, 1)
    equal(sums.failed, 0, tostring(sums.why))
    equal(sums.other, 0, tostring(sums.why))
    -- The load has 16 tasks, so there were 16 connections to the server at most, and each fails once.
    check(sums.refused <= 16, sums.refused)
end)

-- promise: docs/proxy.md: 1,000 clients that do not read replies of 10 MB take 64 KiB of memory each at most
test("clients that do not read", function()
    local each = soak_proxy.slow_readers(200)
    check(each <= 65536 * httpd.slack, each)
end)
