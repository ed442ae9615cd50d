-- SPDX-License-Identifier: MIT
--
-- How a run of sxe-http ends: after the last request, when the server is gone, and by an interrupt.

local cli = require "cli"
local httpd = require "httpd"
local load = require "load"

-- promise: docs/load-generator.md: its time ends when the last of its requests was answered or has
--   failed, so an outage at its end lowers its rate.
httpd.test_at_a_pace("an outage at the end of a run with -n lowers its rate", function(pace)
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-n", "4", "--timeout", httpd.seconds(0.3 * pace))
    local first <close> = listener:accept(20)
    for i = 1, 4 do
        first:recv_until("\r\n\r\n")
        if i < 4 then
            first:send(load.reply("hello"))
        end
    end
    client:finish()
    equal(client.ok, 3, client.output)
    equal(client:count("timed out"), 1, client.output)
    local seconds, rate = client:numbers("in flight 0  in ([%d.]+) s  (%d+)/s")
    check(seconds >= 0.3 * pace, client.output)
    check(rate <= 10, client.output)
end)

-- promise: docs/load-generator.md: It sends all of its requests, however many time out.
test("a server that accepts and never answers gets all requests of a run", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    for _, many in ipairs{{"-n", "4"}, {"--requests", "8"}} do
        local client = load.start(listener, "-c", "2", "--timeout", "0.1", table.unpack(many))
        client:finish()
        equal(client.queries, 8, client.output)
        equal(client:count("timed out"), 8, client.output)
        equal(client.skipped, 0, client.output)
        equal(client.status, 1, client.output)
    end
end)

-- promise: docs/load-generator.md: It ends early only when the server is gone, that is, when no connection could be
-- opened and no byte came for two timeouts. Then it says so, the unsent requests are skipped as `server gone`, and
-- the exit status is 1.
httpd.test_at_a_pace("a run with --requests ends when the server is gone, and says so", function(pace)
    local listener = wire.listen("127.0.0.1", 0)
    local port = listener:port()
    local client = load.start(port, "-c", "1", "--requests", "20", "--timeout",
                              httpd.seconds(0.3 * pace), "--threshold", "errors<99%", "--threshold",
                              "skipped<99%")
    local sock = listener:accept(20)
    listener:close()
    for _ = 1, 5 do
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello"))
    end
    sock:close()
    client:finish()
    equal(client.ok, 5, client.output)
    equal(client.status, 1, client.output)
    local gone = client:count("server gone")
    check(gone >= 14, client.output)
    check(client.errors:find("sxe-http: the server is gone: ", 1, true), client.errors)
    check(client.errors:find("so " .. gone .. " of 20 requests were not sent", 1, true),
          client.errors)
end)

local function await(what, ready)
    for _ = 1, 2000 do
        if ready() then
            return
        end
        wire.sleep(0.01)
    end
    error(what)
end

-- promise: docs/load-generator.md: `in flight` is 0 at the end, unless a worker was killed or died; requests that a
-- second interrupt cuts off are unanswered.
test("a second interrupt ends at once, and requests in flight count as unanswered", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "3", "-d", "3600", "-t", "2", "--json", "-")
    local socks = load.accept(listener, 3)
    for _, sock in ipairs(socks) do
        sock:recv_until("\r\n\r\n")
    end
    client.proc:signal("INT")
    -- A second signal of the same kind is lost while the first is pending: wait until the process has taken the first.
    await("the signal is not taken", function()
        local file <close> = io.open(("/proc/%d/status"):format(client.proc:pid()))
        return tonumber(file:read("a"):match("\nShdPnd:%s*(%x+)"), 16) & 2 == 0
    end)
    client.proc:signal("INT")
    local json = client.proc:output()
    equal(client.proc:wait(20), 130)
    check(json:find('"in_flight": ?0[,\n ]'), json)
    check(json:find('"unanswered": ?3[,\n ]'), json)
end)

-- promise: docs/load-generator.md: After an interrupt in the first trial, which belongs to a, the JSON has no trial
-- of b.
test("an interrupt in the first trial of a baseline leaves a JSON", function()
    local port = wire.free_port()
    local server = ("exec %s -p %d"):format(wire.program("sxe-httpd"), port)
    local path = os.tmpname()
    local client <close> = wire.spawn{wire.program("sxe-http"), "-q", "-c", "1", "-d", "3600", "-p",
                                      tostring(port), "--server-cmd", server, "--baseline-cmd",
                                      server, "--json", path}
    await("no load", function() return pcall(wire.connect, "127.0.0.1", port) end)
    client:line(20)
    client:line(20)
    wire.sleep(0.1)
    client:signal("INT")
    client:output()
    equal(client:wait(20), 130)
    local file <close> = io.open(path)
    local json = file:read("a")
    check(json:find('"trials": ?%[%]'), json:sub(1, 3000))
    check(json:find('"baseline": ?{%s*"server_cmd"'), json:sub(1, 3000))
    os.remove(path)
end)

-- promise: docs/load-generator.md: The exit status is 1 if a reply to the probe is not good, a connection of the
-- probe does not open, or more than 1 % of its requests are not sent. A `--threshold` is about the load, and does not
-- change that.
test("a probe that gets no answer makes the exit status 1, whatever the thresholds", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-d", "0.5", "-R", "1000", "--probe", "100",
                              "--drain", "0.1", "--threshold", "errors<=100%",
                              "--threshold", "skipped<=100%")
    client:finish()
    equal(client.status, 1, client.output)
end)

-- promise: docs/load-generator.md: If a process may open only about ten files, a run says "Too many open files" and
-- does not begin.
test("a run with too few descriptors says so and ends", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    for limit = 5, 11 do
        local proc <close> = wire.spawn{"sh", "-c", ('ulimit -n %d; exec "$@"'):format(limit), "sh",
            wire.program("sxe-http"), "-q", "-c", "1", "-n", "1", "--timeout", "0.1",
            ("http://127.0.0.1:%d/"):format(listener:port())}
        proc:output(100)
        local status, errors = proc:wait(100), proc:errors()
        check(status ~= 0, errors)
        check(limit > 10 or errors:find("Too many open files", 1, true), ("with %d: %s"):format(limit, errors))
    end
end)
