-- SPDX-License-Identifier: MIT
-- Limits of size and time, and the statuses for each: RFC 9110 section 15, RFC 6585.

local http = require "http"
local httpd = require "httpd"
local request = http.request
local server <close> = http.echo()

local function line_of(length)
    return http.bare("GET /" .. ("x"):rep(length - #"GET / HTTP/1.1\r\n") .. " HTTP/1.1", "Host: a")
end

-- A request whose head has `length` bytes, in fields of some hundred bytes each.
local function head_of(length)
    local lines = {"GET / HTTP/1.1\r\nHost: a\r\n"}
    local left = length - #lines[1] - 2
    while left > 0 do
        local size = left < 600 and left or 300
        lines[#lines + 1] = "X: " .. ("y"):rep(size - 5) .. "\r\n"
        left = left - size
    end
    return table.concat(lines) .. "\r\n"
end

-- A request with `count` fields, one of which is Host.
local function fields_of(count)
    return request("GET /", ("X: y\r\n"):rep(count - 2) .. "X: y")
end

http.test_answered(server, {
    {"RFC 9110 15.5.15: a first line of 8,192 bytes is taken", line_of(8192)},
    {"RFC 6585 5: a head of 16,000 bytes is taken", head_of(16000)},
    {"RFC 6585 5: 100 fields are taken", fields_of(100)},
    {"RFC 9112 3: a method of 8,000 bytes is taken", request(("M"):rep(8000) .. " /")},
})

http.test_refused(server, {
    {"RFC 9110 15.5.15: a first line of 8,193 bytes is refused", 414, line_of(8193)},
    {"RFC 9110 15.5.15: a first line of 15,000 bytes is refused", 414, line_of(15000)},
    {"RFC 9110 15.5.15: a first line of 1 MiB is refused", 414, line_of(1024 * 1024)},
    {"RFC 9110 15.5.15: a target without an end is refused", 414, "GET /" .. ("x"):rep(20000)},
    {"RFC 9112 3: a method without an end is refused", 501, ("M"):rep(20000)},
    {"RFC 6585 5: a head of 16,500 bytes is refused", 431, head_of(16500)},
    {"RFC 6585 5: a head of 1 MiB is refused", 431,
     http.bare("GET / HTTP/1.1", "Host: a", "X: " .. ("y"):rep(1024 * 1024))},
    {"RFC 6585 5: a value without an end is refused", 431,
     "GET / HTTP/1.1\r\nHost: a\r\nX: " .. ("y"):rep(20000)},
    {"RFC 6585 5: a name without an end is refused", 431,
     "GET / HTTP/1.1\r\nHost: a\r\n" .. ("X"):rep(20000)},
    {"RFC 6585 5: 101 fields are refused", 431, fields_of(101)},
    {"RFC 6585 5: 1,000 fields are refused", 431, fields_of(1000)},
})

test("RFC 9110 15.5.15: a request line over the limit that comes byte by byte is refused, too", function()
    local sock <close> = server:connect()
    local bytes = line_of(8200)
    sock:send(bytes:sub(1, 8150))
    for at = 8151, 8191 do
        sock:send(bytes:sub(at, at))
    end
    check(not sock:ready(0.02), "refused before the limit")
    sock:pump(bytes:sub(8192))
    http.check_refusal(sock, 414)
end)

-- ---- Timeouts ----

-- A test at several paces, because a busy machine may send too late what must arrive before a timeout.
local function hasty_test(name, f)
    httpd.test_at_a_pace(name, function(pace)
        local time = httpd.seconds(0.5 * pace)
        local hasty <close> = http.echo("--header-timeout", time, "--body-timeout", time,
                                        "--idle-timeout", time)
        f(hasty)
    end)
end

for _, sent in ipairs{"G", "GET /", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"} do
    hasty_test(("RFC 9110 15.5.9: %d bytes of a head, then silence"):format(#sent), function(hasty)
        local sock <close> = hasty:connect()
        sock:send(sent)
        http.check_refusal(sock, 408)
    end)
end

hasty_test("RFC 9110 15.5.9: a head that comes byte by byte, and never ends", function(hasty)
    local sock <close> = hasty:connect()
    local began = wire.time()
    sock:send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
    while not sock:ready(0.05) and wire.time() < began + 20 do
        pcall(sock.send, sock, "y")
    end
    http.check_refusal(sock, 408)
end)

for _, case in ipairs{
    {"a stated length", http.sized("10", "hello")},
    {"no byte of it", http.sized("10", "")},
    {"chunks", http.chunked("5\r\nhello\r\n")},
    {"half a chunk", http.chunked("5\r\nhel")},
    {"half a trailer", http.chunked("0\r\nX: y\r\n")},
} do
    local name, bytes = table.unpack(case)
    hasty_test(("RFC 9110 15.5.9: half a body with %s, then silence"):format(name), function(hasty)
        local sock <close> = hasty:connect()
        sock:send(bytes)
        http.check_refusal(sock, 408)
    end)
end

hasty_test("RFC 9112 9.5: half a head after a whole request, then silence", function(hasty)
    local sock <close> = hasty:connect()
    sock:send(request("GET /1") .. "GET /2 HTTP/1.1\r\n")
    http.check_echoed(sock:read_reply(), {target = "/1"})
    http.check_refusal(sock, 408)
end)

hasty_test("RFC 9112 9.5: an idle connection is closed without a word", function(hasty)
    local sock <close> = hasty:connect()
    sock:send(request("GET /1"))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    equal(sock:recv_all(), "", "said to an idle client")
end)

hasty_test("RFC 9112 9.5: a connection without a word is closed", function(hasty)
    local sock <close> = hasty:connect()
    local said = sock:recv_all()
    check(said == "" or said:find("^HTTP/1%.1 408 "), said)
end)

httpd.test_at_a_pace("RFC 9112 9.5: a client that sends its next request in time is not idle", function(pace)
    local patient <close> = http.echo("--idle-timeout", httpd.seconds(2 * pace))
    local sock <close> = patient:connect()
    for i = 1, 6 do
        sock:send(request("GET /" .. i))
        http.check_echoed(sock:read_reply(), {target = "/" .. i})
        check(not sock:ready(0.5), "closed too early")
    end
end)

httpd.test_soon("RFC 9110 15.5.9: 100 slow clients do not keep others waiting", function()
    local slow = {}
    for i = 1, 100 do
        slow[i] = server:connect()
        slow[i]:send("GET / HTTP/1.1\r\nX: ")
    end
    local took = server:seconds_of(function()
        http.check_answered(server, request("GET /"), {target = "/"})
    end)
    check(took < 0.5 * httpd.slack, ("answered after %.3f s"):format(took))
    for _, sock in ipairs(slow) do
        sock:close()
    end
end)
