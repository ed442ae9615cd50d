-- SPDX-License-Identifier: MIT
-- Expectations: RFC 9110 section 10.1.1.

local http = require "http"
local site = require "site"
local request = http.request
local server <close> = http.echo()
local files <close> = site.start()

local function expecting(...)
    return request("POST /", "Expect: 100-continue", ...)
end

-- Expect an interim reply (100), send the body, and expect the final reply.
local function check_continued(sock, body)
    local interim = sock:read_reply()
    equal(interim.status, 100)
    equal(interim.headers["content-length"], nil, "RFC 9110 8.6: Content-Length of a 1xx")
    equal(interim.headers["transfer-encoding"], nil, "RFC 9112 6.1: Transfer-Encoding of a 1xx")
    check(not sock:ready(0.02), "a final reply before the body")
    sock:send(body)
    http.check_echoed(sock:read_reply(), {body = "hello"})
end

-- The final reply, after an interim one or without.
local function final_reply(sock)
    local reply = sock:read_reply()
    return reply.status == 100 and sock:read_reply() or reply
end

for _, value in ipairs{"100-continue", "100-Continue", "100-CONTINUE", "\t 100-continue \t"} do
    test(("RFC 9110 10.1.1: %q gets 100 before the body comes"):format(value), function()
        local sock <close> = server:connect()
        sock:send(request("POST /", "Expect:" .. value, "Content-Length: 5"))
        check_continued(sock, "hello")
    end)
end

test("RFC 9110 10.1.1: a chunked body gets 100, too", function()
    local sock <close> = server:connect()
    sock:send(expecting("Transfer-Encoding: chunked"))
    check_continued(sock, "5\r\nhello\r\n0\r\n\r\n")
end)

test("RFC 9110 10.1.1: on a persistent connection each body gets 100", function()
    local sock <close> = server:connect()
    for _ = 1, 3 do
        sock:send(expecting("Content-Length: 5"))
        check_continued(sock, "hello")
        sock:send(request("GET /"))
        http.check_echoed(sock:read_reply(), {body = ""})
    end
end)

test("RFC 9110 10.1.1: a body sent without waiting gets one reply", function()
    local sock <close> = server:connect()
    sock:send(expecting("Content-Length: 5") .. "hello" .. http.LAST)
    http.check_echoed(final_reply(sock), {body = "hello"})
    http.check_last(sock)
end)

test("RFC 9110 10.1.1: replies to earlier requests come before the 100", function()
    local sock <close> = server:connect()
    sock:send(request("GET /1") .. request("GET /2") .. expecting("Content-Length: 5"))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    http.check_echoed(sock:read_reply(), {target = "/2"})
    check_continued(sock, "hello")
end)

test("RFC 9110 10.1.1: a request without a body gets no 100", function()
    local sock <close> = server:connect()
    sock:send(request("GET /", "Expect: 100-continue"):rep(2) .. http.LAST)
    http.check_echoed(sock:read_reply(), {body = ""})
    http.check_echoed(sock:read_reply(), {body = ""})
    http.check_last(sock)
end)

-- A server may leave the 100 out (RFC 9110, 10.1.1), but a client that waits for it would be delayed.
test("RFC 9110 10.1.1: a request with Content-Length 0 gets 100 and the reply at once", function()
    local sock <close> = server:connect()
    sock:send(expecting("Content-Length: 0"):rep(2) .. http.LAST)
    for _ = 1, 2 do
        equal(sock:read_reply().status, 100)
        http.check_echoed(sock:read_reply(), {body = ""})
    end
    http.check_last(sock)
end)

test("RFC 9110 10.1.1: the expectation of HTTP/1.0 is ignored", function()
    local sock <close> = server:connect()
    sock:send(request("POST / HTTP/1.0", "Expect: 100-continue", "Content-Length: 5"))
    check(not sock:ready(0.05), "an interim reply to HTTP/1.0")
    sock:send("hello")
    http.check_echoed(sock:read_reply(), {body = "hello"})
end)

for _, value in ipairs{"200-ok", "100-continue2", "x-other", "100-continue, x-other",
                       "x-other, 100-continue", "100-continue=yes", "\"100-continue\"",
                       "100 continue"} do
    test(("RFC 9110 15.5.18: the expectation %s gets 417"):format(value), function()
        local sock <close> = server:connect()
        sock:send(request("POST /", "Expect: " .. value, "Content-Length: 5"))
        http.check_refusal(sock, 417)
    end)
end

http.test_refused(server, {
    {"RFC 9110 15.5.18: an expectation of a request without a body is not met either", 417,
     request("GET /", "Expect: x-other")},
    {"RFC 9110 15.5.18: an expectation in a second line is not met either", 417,
     request("POST /", "Expect: 100-continue", "Expect: x-other", "Content-Length: 5") .. "hello"},
})

for _, case in ipairs{
    {"RFC 9110 10.1.1: too large a body is refused, not continued", 413,
     expecting("Content-Length: 9999999")},
    {"RFC 9110 10.1.1: a bad length is refused, not continued", 400,
     expecting("Content-Length: -5")},
    {"RFC 9110 10.1.1: a length and a coding are refused, not continued", 400,
     expecting("Content-Length: 5", "Transfer-Encoding: chunked")},
    {"RFC 9110 10.1.1: an unknown coding is refused, not continued", 501,
     expecting("Transfer-Encoding: gzip, chunked")},
} do
    local name, status, bytes = table.unpack(case)
    test(name, function()
        local sock <close> = server:connect()
        sock:send(bytes)
        http.check_refusal(sock, status)
    end)
end

test("RFC 9110 10.1.1: a bad chunk after the 100 is refused", function()
    local sock <close> = server:connect()
    sock:send(expecting("Transfer-Encoding: chunked"))
    equal(sock:read_reply().status, 100)
    sock:send("hello\r\n" .. http.LAST)
    http.check_refusal(sock, 400)
end)

test("RFC 9110 10.1.1: a client that gets 100 and sends no body gets 400 or no reply", function()
    local sock <close> = server:connect()
    sock:send(expecting("Content-Length: 5"))
    equal(sock:read_reply().status, 100)
    sock:shutdown()
    local said = sock:recv_all()
    check(said == "" or said:find("^HTTP/1%.1 400 "), said)
end)

test("RFC 9110 10.1.1: a method that is not allowed need not get 100", function()
    local sock <close> = files:connect()
    sock:send(request("POST /hello.txt", "Expect: 100-continue", "Content-Length: 5"))
    local reply = sock:read_reply()
    if reply.status == 100 then
        sock:send("hello")
        reply = sock:read_reply()
    end
    equal(reply.status, 405)
end)

test("RFC 9110 10.1.1: a GET for a file with an expectation is answered", function()
    local sock <close> = files:connect()
    sock:send(request("GET /hello.txt", "Expect: 100-continue"))
    equal(final_reply(sock).body, site.HELLO)
end)
