-- SPDX-License-Identifier: MIT
-- sxe-http --probe: a second process that sends a few queries beside the load, to measure how long others wait.

local cli = require "cli"
local httpd = require "httpd"
local load = require "load"

local reply = load.reply("hello")

-- The probe's line of the report: queries, replies, errors, open connections and wanted connections.
local function probe_of(output)
    local line = {output:match("\nprobe%s+(%d+)%s+ok (%d+)%s+errors (%d+)%s+in flight %d+"
                               .. ".-on (%d+)/(%d+) connections")}
    check(line[1], output)
    for i, number in ipairs(line) do
        line[i] = tonumber(number)
    end
    return table.unpack(line)
end

-- Check the exit status: on a busy machine a probe may send less than 99 % of its requests, an error (1), or be
-- suspect (4).
local function check_probed(ran)
    check(ran.status == 0 or ran.status == 1 or ran.status == 4, ran.output .. ran.errors)
    equal(ran.errors:match "sxe%-http: [^\n]*", nil)
end

test("a load and its probe use the same server, and are otherwise independent", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-c", "3", "-t", "2", "--requests", "3000", "--probe", "2k",
                        server.url)
    check_probed(ran)
    check(ran.output:find("\nopened    3/3 connections", 1, true), ran.output)
    check(ran.output:find("\nrequests  3000  ok 3000  errors 0", 1, true), ran.output)
    local queries, ok, errors, opened, wanted = probe_of(ran.output)
    equal(errors, 0)
    -- A query of the probe may have become due just when the load was over.
    equal(ok + tonumber(ran.output:match("not sent (%d+)") or 0), queries)
    equal(opened, 16)
    equal(wanted, 16)
end)

test("the probe sends queries while the load waits, on its own connections", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-n", "1", "--probe", "500", "--drain", "0")
    local socks = load.accept(listener, 17)
    -- One of these requests is the load's only query, the others are the probe's; no reply was sent yet.
    for _, sock in ipairs(socks) do
        check(sock:recv_until("\r\n\r\n"):find("^GET / HTTP/1.1\r\n"))
    end
    -- As soon as the load has its reply, the probe may end, before it has received all of its replies.
    for _, sock in ipairs(socks) do
        pcall(sock.send, sock, reply)
    end
    client:finish()
    equal(client.queries, 1, client.output)
    equal(client.ok, 1, client.output)
    equal(client.opened, 1, client.output)
    local queries, ok, errors = probe_of(client.output)
    check(ok <= 16 and queries >= 16, client.output)
    -- Without a drain, queries of the probe that are in flight when the load ends count as errors.
    equal(ok + errors + tonumber(client.output:match("not sent (%d+)") or 0), queries)
end)

test("Ctrl-C reports the probe, too", function()
    local server <close> = httpd.start()
    local before = wire.fds(server.pid)
    local client = load.start(server.port, "-c", "4", "-R", "500", "-d", "60", "--probe", "200")
    httpd.wait_until(function() return wire.fds(server.pid) >= before + 20 end, "20 connections")
    client.proc:signal("INT")
    local output = client.proc:output()
    equal(client.proc:wait(20), 130)
    local queries, ok, errors, opened = probe_of(output)
    check(queries >= ok and opened == 16, output)
    equal(errors, 0, output)
end)

test("--json has the probe's histograms of all trials together, beside the load's", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-c", "1", "-d", "0.2", "--warmup", "0.1", "--trials", "2",
                        "--probe", "500", "--json", "-", server.url)
    check_probed(ran)
    local trials, total = 0, nil
    for probe in ran.output:gmatch('"probe": (%b{})') do
        local count = tonumber(probe:match('"response": {%s*"count": (%d+)'))
        local sum = 0
        for bucket in probe:match('"response": (%b{})'):match('"histogram": (%b[])')
                           :gmatch("%[[^%[%]]+,%s*(%d+)%s*%]") do
            sum = sum + tonumber(bucket)
        end
        equal(sum, count, probe)
        total = count
        trials = trials + count
    end
    check(total and total > 0, ran.output)
    equal(trials, 2 * total, "the trials and their sum")
end)

test("--probe is refused, with the reason, where it makes no sense", function()
    local others = {["--find"] = "p99<1ms", ["--replay"] = "a.log", ["-s"] = "a.lua",
                    ["--scenario"] = "a.lua"}
    for option, value in pairs(others) do
        cli.check_refused("cannot be combined with --probe", "sxe-http", "--probe", "10", option, value)
    end
    cli.check_refused("the probe's rate (--probe) is 'x'", "sxe-http", "--probe", "x")
end)
