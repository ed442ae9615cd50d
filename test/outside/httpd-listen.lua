-- SPDX-License-Identifier: MIT
--
-- Several listeners, by docs/operations.md.

local cli = require "cli"
local httpd = require "httpd"
local workers = require "workers"

local PLACE <const> = os.tmpname() .. ".sock"

-- Start sxe-httpd with these options, and read as many lines of where it listens. Returns the server, and what
-- follows "listening on " in each line.
local function start(number, ...)
    local proc = wire.spawn{wire.program "sxe-httpd", ...}
    local places = {}
    for i = 1, number do
        local line = proc:line(60)
        places[i] = line and line:match "^listening on (.+)$" or error(("%q and %q"):format(line, proc:errors()))
    end
    return setmetatable({proc = proc, pid = proc:pid()}, httpd), places
end

-- Check that a connection to this place gets a reply.
local function check_serves(place)
    local path, port = place:match "^unix:(.*)", place:match ":(%d+)/$"
    local sock <close> = path and wire.connect(path)
        or wire.connect(place:find("[::1]", 1, true) and "::1" or "127.0.0.1", tonumber(port))
    sock:send(httpd.LAST)
    equal(httpd.undated(sock:recv_all()), httpd.hello "close", place)
end

-- promise: docs/operations.md: `--listen` is given once for each listener, up to six times
test("all places are served, by one process and by workers", function()
    for _, count in ipairs{"1", "2"} do
        local server <close>, places = start(4, "-w", count, "--listen", "0", "--listen", "[::1]:0,plain", "--listen", PLACE,
                                             "--listen", "@" .. PLACE)
        check(places[1]:find "^http://127%.0%.0%.1:%d+/$", places[1])
        check(places[2]:find "^http://%[::1%]:%d+/$", places[2])
        equal(places[3], "unix:" .. PLACE)
        for i = 1, 3 do check_serves(places[i]) end
        equal(places[4], "unix:@" .. PLACE)
    end
    check(not io.open(PLACE), "the socket's file was left")
end)

-- promise: docs/operations.md: Without `-p`, `-i` and `--unix` no other listener is opened.
test("the default port is one of several only if it is asked for", function()
    local server <close>, places = start(2, "--listen", PLACE, "-p", "0")
    check(places[1]:find "^http://127%.0%.0%.1:%d+/$", places[1])
    equal(places[2], "unix:" .. PLACE)
end)

-- promise: docs/operations.md: A listener that is given twice is refused, by `--check`, too.
test("a place is given once", function()
    for _, places in ipairs{{"8080", "8080"}, {"127.0.0.1:8080", "127.0.0.1:8080,plain"}, {"[::1]:80", "0", "[::1]:80"},
                            {PLACE, PLACE}} do
        local options = {}
        for _, place in ipairs(places) do
            options[#options + 1], options[#options + 2] = "--listen", place
        end
        cli.check_refused(("a place to listen at (--listen) is '%s'; it must be another one"):format(places[#places]),
                          "sxe-httpd", "--check", table.unpack(options))
    end
    local ran = cli.run("sxe-httpd", "--check", "--listen", "0", "--listen", "0", "--listen", "127.0.0.1:8080", "--listen",
                        "[::1]:8080", "--listen", "/tmp/8080")
    equal(ran.status, 0, ran.errors)
end)

-- Check that these options are refused, as two places that `why`.
local function check_clash(first, second, why, ...)
    cli.check_refused(("%s and %s %s: leave out one."):format(first, second, why), "sxe-httpd", "--check", ...)
end

-- promise: docs/operations.md: The message names both options. Two spellings are one listener (`28000` and `127.0.0.1:28000`),
--   also if they are given by two of `-p`, `--unix`, `--listen`, `--http-redirect` and `--admin`.
test("a place is one place, however it is written", function()
    local same = "are the same place"
    local place = "127.0.0.1:8080"
    check_clash("--listen " .. place, "--listen " .. place, same, "--listen", "8080", "--listen", place)
    check_clash("-p " .. place, "--listen " .. place, same, "--listen", "8080", "-p", "8080")
    check_clash("-p " .. place, "--admin " .. place, same, "-p", "8080", "--admin", "8080")
    check_clash("-p 127.0.0.1:8000", "--admin 127.0.0.1:8000", same, "--admin", "8000")
    check_clash("--listen [::]:8080", "--listen [::0]:8080", same, "--listen", "[::]:8080", "--listen", "[::0]:8080")
    check_clash("--unix /tmp/a", "--listen /tmp/a", same, "--unix", "/tmp/a", "--listen", "/tmp/a")
    check_clash("--listen /tmp/a", "--admin /tmp/../tmp/a", same, "--listen", "/tmp/a", "--admin", "/tmp/../tmp/a")
    check_clash("--unix ./a", "--listen .//a", same, "--unix", "./a", "--listen", ".//a")
    if cli.run("sxe-httpd", "--tls-dev", "--check").status == 0 then
        check_clash("-p " .. place, "--http-redirect " .. place, same, "--tls-dev", "-p", "8080", "--http-redirect", "8080")
    end
    local ran = cli.run("sxe-httpd", "--check", "-p", "8080", "--unix", "/tmp/a", "--listen", "/tmp/b", "--listen", "@a",
                        "--admin", "/nowhere/a", "--listen", "127.0.0.2:8080", "--listen", "[::1]:8080")
    equal(ran.status, 0, ran.errors)
end)

-- promise: docs/operations.md: So `sxe-httpd` refuses `0.0.0.0:80` together with `127.0.0.1:80`, and `[::]:80` together
-- with either
test("an address beside all addresses", function()
    local why = "cannot both be open, as one of them is that port of all addresses"
    check_clash("-p 0.0.0.0:8080", "--listen 127.0.0.1:8080", why, "-i", "0.0.0.0", "-p", "8080", "--listen", "127.0.0.1:8080")
    check_clash("--listen 127.0.0.1:8080", "--listen 0.0.0.0:8080", why, "--listen", "127.0.0.1:8080", "--listen",
                "0.0.0.0:8080")
    check_clash("--listen [::1]:8080", "--listen [::]:8080", why, "--listen", "[::1]:8080", "--listen", "[::]:8080")
    local file <close> = io.open "/proc/sys/net/ipv6/bindv6only"
    if file and file:read("n") == 0 then
        check_clash("--listen [::]:8080", "--listen 0.0.0.0:8080", why, "--listen", "[::]:8080", "--listen", "0.0.0.0:8080")
    end
    local ran = cli.run("sxe-httpd", "--check", "--listen", "[::1]:8080", "--listen", "0.0.0.0:8080")
    equal(ran.status, 0, ran.errors)
end)

-- promise: docs/operations.md: With TLS, `PORT,plain` is a port of plain HTTP
test("ports with and without TLS", function()
    if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then return end
    local server <close>, places = start(4, "--tls-dev", "--listen", "0", "--listen", "127.0.0.1:0,plain", "--listen", PLACE,
                                         "--http-redirect", "0")
    check(places[1]:find "^https://", places[1])
    check(places[2]:find "^http://", places[2])
    check_serves(places[2])
    check_serves(places[3])
    local sock <close> = wire.connect("127.0.0.1", tonumber(places[1]:match ":(%d+)/"))
    sock:send(httpd.LAST)
    check(sock:recv_all():find "^HTTP/1.1 400 ", "the port of TLS takes plain HTTP")
    local other <close> = wire.connect("127.0.0.1", tonumber(places[4]:match ":(%d+)/"))
    other:send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    equal(other:read_reply().headers.location, ("https://localhost:%s/x"):format(places[1]:match ":(%d+)/"))
end)

-- promise: docs/operations.md: SIGHUP opens new listeners, and closes removed ones.
test("a new configuration has other places", function()
    local path = os.tmpname()
    local function write(text)
        local file <close> = assert(io.open(path, "w"))
        file:write("return { listen = { ", text, " } }")
    end
    write(('"0", "%s"'):format(PLACE))
    local server <close>, places = start(2, "-w", "2", "--config", path)
    local sock <close> = wire.connect("127.0.0.1", tonumber(places[1]:match ":(%d+)/"))
    local before = workers.await(server, 2)
    write(('"0", "%s.new"'):format(PLACE))
    server.proc:signal("HUP")
    workers.await(server, 2, before)
    httpd.wait_until(function() return not pcall(wire.connect, PLACE) end, "the old place is closed")
    check_serves(places[1])
    check_serves("unix:" .. PLACE .. ".new")
    os.remove(path)
end)

-- promise: docs/operations.md: A listener that is named before and after a reload or an upgrade stays open all the
-- time.
test("an upgrade hands all places over", function()
    local server, places = start(3, "-w", "1", "--listen", "0", "--listen", "[::1]:0", "--listen", PLACE)
    workers.kill(server.pid, "USR2")
    local pid
    httpd.wait_until(function()
        pid = server.proc:errors():match "process (%d+) serves in place of this one"
        for _, place in ipairs(places) do check_serves(place) end
        return pid
    end, "the new program serves")
    equal(server.proc:wait(60), 0, server.proc:errors())
    for _, place in ipairs(places) do check_serves(place) end
    workers.kill(tonumber(pid), "TERM")
    httpd.wait_until(function() return not pcall(wire.connect, PLACE) end, "the end of the new program")
end)

os.remove(PLACE:match "(.*)%.sock$")
