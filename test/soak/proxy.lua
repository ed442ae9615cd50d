-- SPDX-License-Identifier: MIT
--
-- usage: wire proxy.lua [COUNT [SEED]]    send COUNT (100000) GETs, and a quarter as many POSTs, through a proxy whose
--                                         upstream closes idle connections at random; the same with three upstreams, one
--                                         of which is killed; then 1,000 clients do not read 10 MB. Print what was
--                                         counted, and a verdict. Exit status 1: a GET failed, a POST was executed
--                                         twice, more failed than was in flight, or memory grew too much.

package.path = package.path .. ";test/wire/lib/?.lua;test/soak/lib/?.lua"

local soak_proxy = require "soak-proxy"

local COUNT <const> = tonumber(arg[1]) or 100000
local SEED <const> = tonumber(arg[2]) or os.time()

io.stdout:setvbuf "line"

local function judge(is_good, verdict)
    print(("verdict: %s, seed %d"):format(verdict, SEED))
    check(is_good, verdict)
end

test("an upstream that closes idle connections at random", function()
    local start = wire.time()
    local sums = soak_proxy.close_at_random(COUNT, SEED)
    local up = sums.upstream
    print(("%d GETs in %.0f s: %d failed; %d POSTs: %d executed, %d answered, %d answered 502; the upstream closed %d of %d " ..
           "connections when they were idle, and %d after a POST without a reply"):format(sums.gets, wire.time() - start,
           sums.failed, sums.posts, up.posts, sums.answered, sums.refused, up.idle, up.connections, up.silent))
    judge(sums.failed == 0 and up.twice == 0 and sums.other == 0,
          ("%d GETs failed (%s), %d POSTs were executed twice, %d ended in another way"):format(sums.failed,
          sums.why or "-", up.twice, sums.other))
end)

test("one of three upstreams is killed", function()
    local sums = soak_proxy.kill_one(COUNT // 10, SEED)
    judge(sums.failed == 0 and sums.refused <= 16 and sums.other == 0,
          ("%d of %d GETs failed, %d of %d POSTs failed, 16 were in flight at most"):format(sums.failed, sums.gets,
          sums.refused + sums.other, sums.posts))
end)

test("clients that do not read", function()
    local each = soak_proxy.slow_readers(1000)
    judge(each <= 65536, ("1000 clients that do not read 10 MB: %.1f KiB each"):format(each / 1024))
end)
