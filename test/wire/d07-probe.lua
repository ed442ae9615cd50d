-- SPDX-License-Identifier: MIT
-- sxe-http --probe: a second process that sends a few queries beside the load, to measure how long others wait.

local cli = require "cli"
local httpd = require "httpd"
local json = require "json-text"
local load = require "load"

local reply = load.reply("hello")

-- Numbers of the probe, from the JSON: on a busy machine the report has so many doubts that other lines are left out.
local function probe_of(path)
    local file <close> = assert(io.open(path))
    local probe = json.decode(file:read("a")).total.probe
    local accounts = probe.accounts
    local found = {queries = accounts.offered, ok = accounts.ends.ok, errors = -accounts.ends.ok, skipped = 0,
                   opened = probe.sockets.opened, wanted = probe.sockets.wanted}
    for _, number in pairs(accounts.ends) do found.errors = found.errors + number end
    for _, number in pairs(accounts.skipped) do found.skipped = found.skipped + number end
    os.remove(path)
    return found
end

-- Check the exit status: on a busy machine a probe may send less than 99 % of its requests, an error (1), or be
-- suspect (4).
local function check_probed(ran)
    check(ran.status == 0 or ran.status == 1 or ran.status == 4, ran.output .. ran.errors)
    equal(ran.errors:match "sxe%-http: [^\n]*", nil)
end

test("a load and its probe use the same server, and are otherwise independent", function()
    local server <close> = httpd.start()
    local path = os.tmpname()
    local ran = cli.run("sxe-http", "-c", "3", "-t", "2", "--requests", "3000", "--probe", "2k", "--json", path,
                        server.url)
    check_probed(ran)
    check(ran.output:find("\nopened    3/3 connections", 1, true), ran.output)
    check(ran.output:find("\nrequests  3000  ok 3000  errors 0", 1, true), ran.output)
    local probe = probe_of(path)
    equal(probe.errors, 0)
    -- A query of the probe may have become due just when the load was over.
    equal(probe.ok + probe.skipped, probe.queries)
    equal(probe.opened, 16)
    equal(probe.wanted, 16)
end)

test("the probe sends queries while the load waits, on its own connections", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local path = os.tmpname()
    local client = load.start(listener, "-c", "1", "-n", "1", "--probe", "500", "--drain", "0", "--json", path)
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
    local probe = probe_of(path)
    check(probe.ok <= 16 and probe.queries >= 16, client.output)
    -- Without a drain, queries of the probe that are in flight when the load ends count as errors.
    equal(probe.ok + probe.errors + probe.skipped, probe.queries)
end)

test("Ctrl-C reports the probe, too", function()
    local server <close> = httpd.start()
    local before = wire.fds(server.pid)
    local path = os.tmpname()
    local client = load.start(server.port, "-c", "4", "-R", "500", "-d", "60", "--probe", "200", "--json", path)
    httpd.wait_until(function() return wire.fds(server.pid) >= before + 20 end, "20 connections")
    client.proc:signal("INT")
    local output = client.proc:output()
    equal(client.proc:wait(20), 130)
    local probe = probe_of(path)
    check(probe.queries >= probe.ok and probe.opened == 16, output)
    equal(probe.errors, 0, output)
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
