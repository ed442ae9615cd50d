-- SPDX-License-Identifier: MIT
-- Options for limits and timeouts, measured in real time, and clients that try to keep all others out. The timeouts are
-- short, and the checks allow for a busy machine.

local http = require "http"
local httpd = require "httpd"
local site = require "site"

local SOON = 0.1 * httpd.slack -- seconds within which a good client gets its reply
local SLACK = 1.5              -- seconds by which a timeout may be late

-- Check that the connection ends between `from` and `to` seconds after `began`; return what was received.
local function check_ends(sock, began, from, to)
    local said = sock:recv_all()
    local took = wire.time() - began
    check(took >= from - 0.05 and took <= to, ("ended after %.2f s"):format(took))
    return said
end

local function check_408(said)
    check(said:find("^HTTP/1%.1 408 Request Timeout\r\n"), said)
    check(said:find("\r\nConnection: close\r\n", 1, true), said)
end

-- Send `byte` up to `count` times, with pauses, until the peer closes or answers. Returns how many were sent.
local function trickle(sock, byte, count, pause)
    for i = 1, count do
        if not pcall(sock.send, sock, byte) or sock:ready(pause) then
            return i
        end
    end
    return count
end

local HEAD_OF_POST = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"

-- ---- Timeouts, written as seconds, as fractions, and with units ----

for _, time in ipairs{"0.3", "300ms", ".3s", "0.005m"} do
    httpd.test_soon("--header-timeout " .. time .. ": a client that sends nothing is closed without a reply",
                    function()
        local server <close> = httpd.start("--header-timeout", time)
        local began = wire.time()
        local sock <close> = server:connect()
        equal(check_ends(sock, began, 0.3, 0.3 + SLACK), "")
    end)
end

httpd.test_at_a_pace("--header-timeout: half a head gets 408", function(pace)
    local server <close> = httpd.start("--header-timeout", httpd.seconds(0.3 * pace))
    local began = wire.time()
    local sock <close> = server:connect()
    sock:send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
    check_408(check_ends(sock, began, 0.3 * pace, (0.3 + SLACK) * pace))
end)

httpd.test_at_a_pace("--header-timeout: it limits the whole head, even if bytes keep coming",
                     function(pace)
    local server <close> = httpd.start("--header-timeout", httpd.seconds(0.5 * pace))
    local before = wire.time()
    local sock <close> = server:connect()
    sock:send("GET /")
    check(trickle(sock, "x", 200 * pace, 0.02) < 200 * pace, "it goes on")
    local took = wire.time() - before
    check(took > 0.4 * pace and took < (0.5 + SLACK) * pace, took)
    check_408(sock:recv_all())
end)

httpd.test_at_a_pace("--header-timeout: it starts again with each request", function(pace)
    local server <close> = httpd.start("--header-timeout", httpd.seconds(0.5 * pace))
    local sock <close> = server:connect()
    for _ = 1, 3 do
        wire.sleep(0.2 * pace)
        sock:send_slowly(httpd.GET, 7, 0.05 * pace)
        equal(sock:read_reply().status, 200)
    end
end)

httpd.test_at_a_pace("--body-timeout: a body that stops gets 408", function(pace)
    local server <close> = httpd.start("--body-timeout", httpd.seconds(0.3 * pace))
    local sock <close> = server:connect()
    local began = wire.time()
    sock:send(HEAD_OF_POST .. "some")
    check_408(check_ends(sock, began, 0.3 * pace, (2 * 0.3 + SLACK) * pace))
end)

test("--body-timeout, --body-rate: a body that is too slow gets 408", function()
    local server <close> = httpd.start("--body-timeout", "0.3", "--body-rate", "1k")
    local sock <close> = server:connect()
    sock:send(HEAD_OF_POST)
    check(trickle(sock, "x", 300, 0.02) < 300, "it goes on")
    check_408(sock:recv_all())
end)

httpd.test_at_a_pace("--body-timeout, --body-rate: a body that is fast enough may take longer",
                     function(pace)
    local server <close> = httpd.start("--body-timeout", httpd.seconds(0.3 * pace),
                                       "--body-rate", "1k")
    local sock <close> = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\nConnection: close\r\n\r\n")
    for _ = 1, 30 do
        sock:send(("x"):rep(1000))
        wire.sleep(0.05 * pace)
    end
    equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
end)

httpd.test_at_a_pace("--idle-timeout: between requests, closed without a reply", function(pace)
    local server <close> = httpd.start("--idle-timeout", httpd.seconds(0.3 * pace))
    local sock <close> = server:connect()
    for _ = 1, 3 do
        sock:send(httpd.GET)
        sock:read_reply()
        wire.sleep(0.15 * pace)
    end
    local began = wire.time()
    sock:send(httpd.GET)
    sock:read_reply()
    equal(check_ends(sock, began, 0.3 * pace, (0.3 + SLACK) * pace), "")
end)

httpd.test_at_a_pace("--stall-timeout: a client that does not read its reply is reset", function(pace)
    local server <close> = site.start("--stall-timeout", httpd.seconds(0.5 * pace))
    server:write("large.bin", ("x"):rep(20000000))
    server:check_descriptors(wire.fds(server.pid))
    local descriptors = wire.fds(server.pid)
    local sock <close> = server:connect(4096)
    sock:send(http.request("GET /large.bin"))
    sock:recv_until("\r\n\r\n") -- from here there are two more: the connection's and the file's
    server:check_descriptors(descriptors + 1) -- the file's may stay open in the cache
    -- A reset, not an orderly close: after a close the kernel would keep the unsent bytes in memory for minutes.
    local ended, said = pcall(sock.recv_all, sock)
    check(not ended and said:find("reset"), "not a reset")
end)

-- The client's kernel accepts more bytes only when a third of its buffer, of up to 1.4 MB, is free again. Reading that
-- third must take less time than --stall-timeout.
httpd.test_at_a_pace("--stall-timeout: a client that reads slowly gets the whole reply", function(pace)
    local server <close> = site.start("--stall-timeout", httpd.seconds(pace))
    local content = ("0123456789abcdef"):rep(500000)
    server:write("large.bin", content)
    local sock <close> = server:connect(4096)
    sock:send(http.request("GET /large.bin", "Connection: close"))
    sock:recv_until("\r\n\r\n")
    local pieces = {}
    for i = 1, 40 do
        pieces[i] = sock:recv(200000)
        wire.sleep(0.05)
    end
    check(table.concat(pieces) .. sock:recv_all() == content, "not the whole file")
end)

-- ---- Limits ----

test("--requests: the last reply of a connection has Connection: close", function()
    local server <close> = httpd.start("--requests", "3")
    local sock <close> = server:connect()
    sock:send(httpd.GET:rep(5))
    equal(httpd.undated(sock:recv_all()), httpd.hello():rep(2) .. httpd.hello("close"))
end)

local function status_of(request, ...)
    local server <close> = httpd.start(...)
    return http.ask(server, request).status
end

local function line_of(length)
    return "GET /" .. ("x"):rep(length - #"GET / HTTP/1.1\r\n") .. " HTTP/1.1\r\nHost: a\r\n\r\n"
end

local limits = {
    {"--max-line", "100", line_of(100), line_of(101), 414},
    {"--max-line", "16k", line_of(16000), line_of(16385), 414},
    {"--max-header", "1k", line_of(1000), line_of(1025), 414},
    {"--max-header", "1k", http.request("GET /", "X: " .. ("x"):rep(900)),
     http.request("GET /", "X: " .. ("x"):rep(1000)), 431},
    {"--max-header", "60k", http.request("GET /", "X: " .. ("x"):rep(60000)),
     http.request("GET /", "X: " .. ("x"):rep(61000), "Y: " .. ("y"):rep(1000)), 431},
    {"--max-fields", "3", http.request("GET /", "X: 1", "X: 2"),
     http.request("GET /", "X: 1", "X: 2", "X: 3"), 431},
    {"--max-body", "10", http.sized(10, ("x"):rep(10)), http.sized(11, ("x"):rep(11)), 413},
    {"--max-body", "10", http.chunked("a\r\n0123456789\r\n0\r\n\r\n"),
     http.chunked("b\r\n0123456789a\r\n0\r\n\r\n"), 413},
    {"--max-body", "2m", http.sized(2097152, ("x"):rep(2097152)), http.sized(2097153, ""), 413},
}
for _, case in ipairs(limits) do
    local option, value, good, bad, status = table.unpack(case)
    test(("%s %s: %d bytes are taken, %d refused with %d"):format(option, value, #good, #bad, status),
         function()
        equal(status_of(good, option, value), 200)
        equal(status_of(bad, option, value), status)
    end)
end

local function proxied(server, client)
    local sock = server:connect()
    sock:send(("PROXY TCP4 %s 127.0.0.1 1234 80\r\n"):format(client) .. httpd.GET)
    return sock, sock:read_reply().status
end

test("--connections-per-address: each client address has this many", function()
    local server <close> = httpd.start("--connections-per-address", "2", "--proxy-from", "127.0.0.1")
    local first <close>, first_status = proxied(server, "192.0.2.1")
    local second <close>, second_status = proxied(server, "192.0.2.1")
    local third <close>, third_status = proxied(server, "192.0.2.1")
    local other <close>, other_status = proxied(server, "192.0.2.2")
    equal(first_status, 200)
    equal(second_status, 200)
    equal(third_status, 503)
    check(third:eof(), "not closed")
    equal(other_status, 200)
    first:close()
    httpd.wait_until(function()
        local sock <close>, status = proxied(server, "192.0.2.1")
        return status == 200
    end, "a place for the client whose connection is closed")
    check(not second:eof(0), "closed")
    check(not other:eof(0), "closed")
end)

test("--connections-per-address: loopback connections are not counted", function()
    local server <close> = httpd.start("--connections-per-address", "1")
    local first <close> = server:connect()
    first:send(httpd.GET)
    equal(first:read_reply().status, 200)
    server:check_answers()
end)

-- ---- Attacks: all connections except one are slow ----

local PLACES = 30

local function slow_reader(sock)
    sock:send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
end

local attacks = {
    {"say nothing", function() end},
    {"send half a head", function(sock) sock:send("GET / HTTP/1.1\r\nHost: a\r\nX: ") end},
    {"trickle a head", function(sock) sock:send("GET / HT") end, "x"},
    {"stop in a body", function(sock) sock:send(HEAD_OF_POST .. "some") end},
    {"trickle a body", function(sock) sock:send(HEAD_OF_POST) end, "x"},
    {"stop in a chunk", function(sock)
        sock:send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
    end},
    {"do not read their replies", slow_reader},
    {"are idle", function(sock)
        sock:send(http.request("GET /hello.txt"))
        sock:read_reply()
    end},
}

-- The longest time that a good client had to wait, of `rounds` clients, one after the other.
local function slowest_of(server, rounds, meanwhile)
    local slowest = 0
    for _ = 1, rounds do
        meanwhile()
        slowest = math.max(slowest, server:seconds_of(function()
            equal(server:get("/hello.txt", "Connection: close").body, site.HELLO)
        end))
    end
    return slowest
end

for _, attack in ipairs(attacks) do
    local what, begin, byte = table.unpack(attack)
    httpd.test_soon(("%d of %d connections %s: the next client is answered at once"):format(
                        PLACES - 1, PLACES, what), function()
        local server <close> = site.start("-c", tostring(PLACES), "--stop-timeout", "0.1")
        server:write("large.bin", ("x"):rep(5000000))
        local slow = {}
        for i = 1, PLACES - 1 do
            slow[i] = server:connect(4096)
            begin(slow[i])
        end
        local slowest = slowest_of(server, 20, function()
            for _, sock in ipairs(byte and slow or {}) do
                pcall(sock.send, sock, byte)
            end
        end)
        check(slowest < SOON, ("answered after %.3f s"):format(slowest))
    end)
end

httpd.test_at_a_pace("1,000 slow heads: others are answered at once, and all slow clients are cut "
                     .. "in time", function(pace)
    local server <close> = site.start("--header-timeout", httpd.seconds(pace))
    server:get("/hello.txt")
    local descriptors, slow = wire.fds(server.pid), {}
    local begun = wire.time()
    for i = 1, 1000 do
        slow[i] = server:connect()
        slow[i]:send("GET / HT")
    end
    local slowest = slowest_of(server, 20, function() end)
    check(slowest < SOON, ("answered after %.3f s"):format(slowest))
    local connecting = wire.time() - begun
    for _, sock in ipairs(slow) do
        check_408(sock:recv_all())
    end
    local took = wire.time() - begun
    check(took < connecting + (1 + SLACK * httpd.slack) * pace, ("all cut after %.2f s"):format(took))
    for _, sock in ipairs(slow) do
        sock:close()
    end
    server:check_descriptors(descriptors)
end)

httpd.test_soon("99 of 100 clients do not read their reply: the last client gets its reply at once",
                function()
    local server <close> = site.start("--connections", "100")
    local content = ("0123456789abcdef"):rep(1250000)
    server:write("large.bin", content)
    local slow = {}
    for i = 1, 99 do
        slow[i] = server:connect(4096)
        slow[i]:send(http.request("GET /large.bin") .. "GET")
    end
    for _, sock in ipairs(slow) do
        sock:recv_until("\r\n\r\n") -- none of the clients is refused
    end
    local seconds = server:seconds_of(function()
        check(server:get("/hello.txt").body == site.HELLO, "not the small file")
    end)
    check(seconds < SOON, ("answered after %.3f s"):format(seconds))
    check(server:get("/large.bin").body == content, "not the large file")
    for _, sock in ipairs(slow) do
        sock:close()
    end
end)
