-- SPDX-License-Identifier: MIT
--
-- sxe-http --shard and --start-at: the parts of a load, checked by the server's log.

local cli = require "cli"

-- Run all shards one after the other. Returns how often the server was asked for each path.
local function asked(shards, ...)
    local port, log, counts = wire.free_port(), os.tmpname(), {}
    do
        local server <close> = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port),
                                          "--access-log", log}
        server:line(20)
        for i = 1, shards do
            local ran = cli.run("sxe-http", "--shard", i .. "/" .. shards, "--timeout", "120", "-q",
                                ("http://127.0.0.1:%d/{SEQ:4}"):format(port), ...)
            check(ran.status == 0 or ran.status == 4, ran.errors)
        end
        server:signal("TERM")
        server:wait(120)
    end
    for line in io.lines(log) do
        local path = line:match '"GET (/%d+) '
        counts[path] = (counts[path] or 0) + 1
    end
    os.remove(log)
    return counts
end

local function check_each_once(counts, number)
    for i = 0, number - 1 do
        equal(counts[("/%04d"):format(i)], 1, "of " .. i)
    end
    local all = 0
    for _ in pairs(counts) do
        all = all + 1
    end
    equal(all, number)
end

-- promise: docs/load-generator.md: `--shard K/N` makes the K-th of N parts of the load that the other options
-- describe: A shard makes every N-th connection, request of `-n` and `--requests`, `{SEQ}` number, entry of
-- `--replay` and fixed arrival, so that N shards together are exactly the whole
test("shards together send each request once", function()
    check_each_once(asked(3, "-c", "7", "--requests", "100"), 100)
    check_each_once(asked(4, "-c", "9", "--requests", "50", "-t", "2"), 50)
    check_each_once(asked(2, "-c", "4", "--requests", "40", "-R", "1k", "--arrivals", "fixed"), 40)
end)

-- promise: docs/load-generator.md: Options that decide by the replies of one shard alone are refused: `--find`,
-- `--until-ci`, `--warmup auto`. So is `--server-cmd`, because each shard would start a server.
test("options that need all shards are refused", function()
    for _, words in ipairs{{"--find", "p99<1s"}, {"--until-ci", "5%"}, {"--server-cmd", "true"}} do
        cli.check_refused("it cannot be combined with " .. words[1], "sxe-http", "--shard", "1/2", words[1],
                          words[2])
    end
end)

-- promise: docs/load-generator.md: A past time and a time more than a day ahead are refused.
test("a start time in the past, or too far ahead, is refused", function()
    cli.check_refused("that time is past", "sxe-http", "--start-at", tostring(os.time() - 1))
    local later = tostring(os.time() + 90000)
    cli.check_refused("more than a day ahead", "sxe-http", "--start-at", later)
    cli.check_refused("it must be seconds since 1970", "sxe-http", "--start-at", "tomorrow")
end)

-- promise: docs/load-generator.md: `--start-at TIME` begins the first trial at that time of this machine's wall
-- clock: seconds since 1970, with or without a fraction;
test("a run does not begin before --start-at", function()
    local port = wire.free_port()
    local server <close> = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    server:line(20)
    local at = os.time() + 3
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "2", "--requests", "10", "-q",
                        "--timeout", "120", "--start-at", at .. ".5", "--json", "-")
    check(ran.status == 0 or ran.status == 4, ran.errors)
    local began = tonumber(ran.output:match '"began_s": ([%d.]+)')
    check(began >= at + 0.49, began .. " is before " .. at)
    check(server)
end)
