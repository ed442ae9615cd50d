-- SPDX-License-Identifier: MIT
-- Complete runs of sxe-http: workers, trials with --server-cmd, the search of --find, and what can end a run.

local cli = require "cli"
local httpd = require "httpd"
local load = require "load"

local reply = load.reply("hello")

local function server_command(port)
    return ("exec %s -p %d"):format(wire.program("sxe-httpd"), port)
end

-- Run sxe-http with --server-cmd. The run must succeed; status 4 (suspect) is allowed, because the machine may be busy.
local function run_with_server(port, ...)
    local ran = cli.run("sxe-http", "-p", tostring(port), "--server-cmd", server_command(port), ...)
    check(ran.status == 0 or ran.status == 4, ran.output .. ran.errors)
    return ran
end

test("-t workers share the connections of -c", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "5", "-n", "2", "-t", "2")
    local socks = load.accept(listener, 5)
    for _ = 1, 2 do
        for _, sock in ipairs(socks) do
            sock:recv_until("\r\n\r\n")
            sock:send(reply)
        end
    end
    client:finish():check_report{status = 0, opened = 5, queries = 10, ok = 10, failed = 0}
end)

test("no query is sent before all sockets of all workers are open", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "4", "-n", "1", "-t", "2", "--connect-ramp", "4")
    local socks = load.accept(listener, 4)
    check(client.proc:line(20):find("4 connections", 1, true), "the plan")
    local line = client.proc:line(20)
    while line and not line:find("^opened") do -- the printed plan may take two lines
        line = client.proc:line(20)
    end
    check(line:find("^opened    4/4 connections"), line)
    for _, sock in ipairs(socks) do
        sock:recv_until("\r\n\r\n")
        sock:send(reply)
    end
    check(client.proc:output():find("requests  4  ok 4  errors 0", 1, true))
end)

test("--server-cmd starts the server, waits until it listens, and ends it", function()
    local port = wire.free_port()
    local ran = run_with_server(port, "-c", "2", "--requests", "50")
    check(ran.output:find("ok 50  errors 0", 1, true), ran.output)
    check(not pcall(wire.connect, "127.0.0.1", port), "it still listens")
end)

test("each trial has its own server and connections", function()
    local ran = run_with_server(wire.free_port(), "-c", "2", "--requests", "50", "--trials", "3")
    check(ran.output:find("requests  150  ok 150  errors 0", 1, true), ran.output)
    check(ran.output:find("opened    2/2 connections", 1, true), ran.output)
    check(ran.errors:find("trial     3/3  ", 1, true), ran.errors)
end)

test("a server command that fails is reported with its status", function()
    local ran = cli.run("sxe-http", "-p", tostring(wire.free_port()), "--server-cmd", "exit 9")
    equal(ran.status, 1)
    check(ran.errors:find("ended with exit status 9", 1, true), ran.errors)
end)

test("--server-cmd is refused if a server listens already", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local ran = cli.run("sxe-http", "-p", tostring(listener:port()), "--server-cmd", "true")
    equal(ran.status, 1)
    check(ran.errors:find("port " .. listener:port() .. " is in use by ", 1, true), ran.errors)
end)

test("--find finds a rate, and reports each rate that it tried", function()
    local port = wire.free_port()
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-p", tostring(port), "-c", "16",
                                    "--server-cmd", server_command(port), "--find", "p50<1h",
                                    "-R", "50k", "-d", "0.1s"}
    local output = proc:output(60)
    local errors = proc:errors()
    check(errors:find("find      50000/s  ok %d+/s  "), errors)
    check(errors:find(": does not hold\n"), errors)
    -- On a busy machine there may be too few replies to decide, and the output says so; test-http-find checks the rate.
    check(output:find("\nfound     %d+/s is the highest rate that held p50<1h") or
          output:find("\nfound     could not tell which rate holds p50<1h: ", 1, true), output)
end)

test("comparing a command with itself shows the noise", function()
    local ran = run_with_server(wire.free_port(), "-c", "2", "--requests", "50", "--aa")
    check(ran.errors:find("trial     12/12 A  ", 1, true), ran.errors)
    check(ran.output:find("\nnoise     ", 1, true), ran.output)
end)

test("Ctrl-C ends a run with -R, and reports what was done", function()
    local port = wire.free_port()
    local server <close> = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    server:line(20)
    local client = load.start(port, "-c", "4", "-R", "500", "-d", "60", "-t", "2")
    client.proc:line(20)
    client.proc:line(20)
    wire.sleep(0.1)
    client.proc:signal("INT")
    local output = client.proc:output()
    equal(client.proc:wait(20), 130)
    check(output:find("interrupted: ", 1, true), output)
    check(output:find("  errors 0  ", 1, true), output)
end)

test("Ctrl-C between two trials ends the run, and its server", function()
    local port = wire.free_port()
    local proc <close> = wire.spawn{wire.program("sxe-http"), "-p", tostring(port), "-c", "1",
                                    "--requests", "10", "--trials", "100",
                                    "--server-cmd", server_command(port)}
    proc:line(20)
    proc:line(20)
    proc:signal("INT")
    proc:output()
    equal(proc:wait(20), 130)
    check(not pcall(wire.connect, "127.0.0.1", port), "it still listens")
end)

test("--fanout reports the slowest query of a page", function()
    local ran = run_with_server(wire.free_port(), "-c", "2", "--requests", "200", "--fanout", "2")
    check(ran.output:find("\nfan%-out   service of 2 at once:  p50 %d[%d.]+ %a+ %(one's p71%)"),
          ran.output)
end)

test("--json - prints nothing but JSON", function()
    local ran = run_with_server(wire.free_port(), "-c", "1", "--requests", "10", "--json", "-")
    check(ran.output:find("^{\n.*\n}\n$"), ran.output)
end)

test("--hdr prints a histogram for each kind of time", function()
    local ran = run_with_server(wire.free_port(), "-c", "1", "--requests", "10", "--hdr", "-")
    local head, lines = ran.output:match('^(.-\n"StartTimestamp"[^\n]+\n)(.*)$')
    check(head and head:find("\n#[Histogram log format version 1.3]\n", 1, true), ran.output)
    local tags = {}
    for line in lines:gmatch("[^\n]+") do
        tags[#tags + 1] =
            line:match("^Tag=([%a_]+),%d+%.%d%d%d,%d+%.%d%d%d,%d+%.%d%d%d,HISTFAAA[%w+/]+=*$")
    end
    equal(table.concat(tags, " "), "first_byte service response", ran.output)
end)

test("without a listener there is no run, and the message asks whether a server listens", function()
    local port = wire.free_port()
    local ran = cli.run("sxe-http", "-p", tostring(port), "-c", "4", "-d", "60")
    equal(ran.status, 1)
    check(ran.output:find("opened    0/4 connections", 1, true), ran.output)
    check(not ran.output:find("SUSPECT"), ran.output)
    equal(ran.errors, "sxe-http: no connection could be opened (refused): does a server listen on "
                      .. "127.0.0.1:" .. port .. "?\n")
end)

test("a threshold without any reply is missed", function()
    local ran = cli.run("sxe-http", "-p", tostring(wire.free_port()), "-c", "1", "--threshold",
                        "p99<1s")
    equal(ran.status, 1, "an error is more")
    check(ran.errors:find("threshold p99<1s is missed: there was no reply\n", 1, true), ran.errors)
end)

test("a threshold with too few samples is missed", function()
    local server <close> = httpd.start()
    local ran = cli.run("sxe-http", "-c", "1", "-n", "3", "--threshold", "p99<1s", server.url)
    check(ran.status == 3 or ran.status == 4, ran.output .. ran.errors)
    check(ran.errors:find("threshold p99<1s is missed: there are too few samples to tell\n", 1,
                          true), ran.errors)
end)

test("--selftest passes, or names the check that failed", function()
    local proc <close> = wire.spawn{wire.program("sxe-http"), "--selftest"}
    local output = proc:output(60)
    for _, name in ipairs{"clocks", "timer", "histogram", "accounts", "merge"} do
        check(output:find("%f[^\n\0]ok      " .. name .. " "), output)
    end
    -- These two checks depend on what else runs on this machine.
    for _, name in ipairs{"stall", "delay"} do
        local line = output:match("\n(%w+ +" .. name .. " [^\n]*)")
        check(line:find "^ok " or line:find(" not judged: ", 1, true), output)
    end
    equal(proc:wait(20), output:find("\nFAILED") and 1 or 0, output)
end)
