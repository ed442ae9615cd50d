-- SPDX-License-Identifier: MIT
-- Connections: RFC 9112 section 9, RFC 9110 section 7.

local http = require "http"
local request = http.request
local server <close> = http.echo()

local kept = {
    {"RFC 9112 9.3", "HTTP/1.1 without a word", "GET /", {}},
    {"RFC 9112 9.3", "HTTP/1.1 with keep-alive", "GET /", {"Connection: keep-alive"}},
    {"RFC 9110 7.6.1", "HTTP/1.1 with an option nobody knows", "GET /", {"Connection: x-other"}},
    {"RFC 9110 7.6.1", "an option that begins like close", "GET /", {"Connection: closed"}},
    {"RFC 9110 7.6.1", "an option that ends like close", "GET /", {"Connection: not-close"}},
    {"RFC 9110 7.6.1", "an empty Connection", "GET /", {"Connection:"}},
    {"RFC 9112 9.3", "HTTP/1.0 with keep-alive", "GET / HTTP/1.0", {"Connection: keep-alive"}},
    {"RFC 9110 7.6.1", "HTTP/1.0 with Keep-Alive in capitals", "GET / HTTP/1.0",
     {"Connection: KEEP-ALIVE"}},
    {"RFC 9110 7.6.1", "HTTP/1.0 with keep-alive in a list", "GET / HTTP/1.0",
     {"Connection: x-other , Keep-Alive"}},
    {"RFC 9110 5.3", "HTTP/1.0 with keep-alive in the second line", "GET / HTTP/1.0",
     {"Connection: x-other", "Connection: keep-alive"}},
    {"RFC 9112 C.2.2", "HTTP/1.0 with a Keep-Alive field", "GET / HTTP/1.0",
     {"Connection: keep-alive", "Keep-Alive: timeout=5, max=1"}},
    {"RFC 9110 7.8", "an Upgrade that nobody takes", "GET /",
     {"Connection: Upgrade", "Upgrade: x-unknown"}},
    {"RFC 9110 7.8", "an Upgrade to HTTP/2", "GET /",
     {"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"}},
    {"RFC 9110 7.8", "an Upgrade that Connection does not name", "GET /", {"Upgrade: websocket"}},
    {"RFC 9112 C.2.2", "Proxy-Connection, which means nothing", "GET /",
     {"Proxy-Connection: close"}},
}
for _, case in ipairs(kept) do
    local section, name, line, fields = table.unpack(case)
    test(("%s: kept: %s"):format(section, name), function()
        local sock <close> = server:connect()
        for i = 1, 3 do
            sock:send(request(line, table.unpack(fields)))
            local reply = sock:read_reply()
            http.check_echoed(reply, {target = "/"})
            local says = (reply.headers.connection or ""):lower()
            check(not says:find("close"), "Connection: close in reply " .. i)
            if line:find("1.0", 1, true) then
                check(says:find("keep-alive", 1, true), "no Connection: keep-alive for HTTP/1.0")
            end
        end
        equal(sock:eof(0), false, "closed")
    end)
end

local closed = {
    {"RFC 9112 9.6", "HTTP/1.1 with close", "GET /", {"Connection: close"}},
    {"RFC 9110 7.6.1", "close in capitals", "GET /", {"Connection: CLOSE"}},
    {"RFC 9110 7.6.1", "close at the end of a list", "GET /", {"Connection: x-other, close"}},
    {"RFC 9110 7.6.1", "close at the front of a list", "GET /", {"Connection: close,x-other"}},
    {"RFC 9110 5.6.1", "close among empty elements", "GET /", {"Connection: , ,close,"}},
    {"RFC 9110 5.3", "close in the second line", "GET /",
     {"Connection: x-other", "Connection: close"}},
    {"RFC 9112 9.3", "close and keep-alive", "GET /", {"Connection: close, keep-alive"}},
    {"RFC 9112 9.3", "keep-alive and close", "GET /",
     {"Connection: keep-alive", "Connection: close"}},
    {"RFC 9112 9.3", "HTTP/1.0 without a word", "GET / HTTP/1.0", {}},
    {"RFC 9112 9.3", "HTTP/1.0 with close", "GET / HTTP/1.0", {"Connection: close"}},
    {"RFC 9112 9.3", "HTTP/1.0 with keep-alive and close", "GET / HTTP/1.0",
     {"Connection: keep-alive, close"}},
    {"RFC 9112 9.3", "HTTP/1.0 with an option nobody knows", "GET / HTTP/1.0",
     {"Connection: x-other"}},
    {"RFC 9112 9.3", "HTTP/1.0 with Keep-Alive as a field alone", "GET / HTTP/1.0",
     {"Keep-Alive: timeout=5"}},
}
for _, case in ipairs(closed) do
    local section, name, line, fields = table.unpack(case)
    test(("%s: closed: %s"):format(section, name), function()
        local sock <close> = server:connect()
        sock:send(request(line, table.unpack(fields)))
        local reply = sock:read_reply()
        http.check_echoed(reply, {target = "/"})
        equal(reply.headers.connection, "close", "Connection")
        equal(sock:recv_all(), "", "said after the reply")
    end)
end

test("RFC 9112 9.6: requests after one with Connection: close get no reply", function()
    local sock <close> = server:connect()
    sock:send(request("GET /1") .. http.LAST .. request("GET /2") .. request("GET /3"))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    http.check_last(sock)
end)

test("RFC 9112 9.6: a body is read before the connection closes", function()
    local sock <close> = server:connect()
    sock:send(request("POST /", "Connection: close", "Content-Length: 5") .. "hello")
    http.check_echoed(sock:read_reply(), {body = "hello"})
    equal(sock:recv_all(), "")
end)

for _, count in ipairs{2, 10, 1000} do
    test(("RFC 9112 9.3.2: %d pipelined requests are answered in order"):format(count), function()
        local sock <close> = server:connect()
        local requests = {}
        for i = 1, count do
            requests[i] = request("GET /" .. i)
        end
        sock:pump(table.concat(requests) .. http.LAST)
        for i = 1, count do
            http.check_echoed(sock:read_reply(), {target = "/" .. i})
        end
        http.check_last(sock)
    end)
end

test("RFC 9112 9.3.2: pipelined requests of all kinds are answered in order", function()
    local sock <close> = server:connect()
    local kinds = {
        {request("GET /1"), {method = "GET", target = "/1", body = ""}},
        {request("HEAD /2"), {method = "HEAD", target = "/2"}},
        {request("POST /3", "Content-Length: 5") .. "hello", {target = "/3", body = "hello"}},
        {http.chunked("5\r\nhello\r\n0\r\n\r\n"), {target = "/chunked", body = "hello"}},
        {request("OPTIONS *"), {method = "OPTIONS", target = "*"}},
        {"\r\n" .. request("DELETE /6"), {method = "DELETE", target = "/6"}},
        {request("GET /7 HTTP/1.0", "Connection: keep-alive"), {target = "/7"}},
        {request("PUT /8", "Content-Length: 70000") .. ("x"):rep(70000),
         {target = "/8", body = ("x"):rep(70000)}},
        {request("HEAD /9", "Content-Length: 2") .. "xx", {method = "HEAD", target = "/9"}},
    }
    local round = ""
    for _, kind in ipairs(kinds) do
        round = round .. kind[1]
    end
    sock:pump(round:rep(20) .. http.LAST)
    for _ = 1, 20 do
        for _, kind in ipairs(kinds) do
            http.check_echoed(sock:read_reply(kind[2].method), kind[2])
        end
    end
    http.check_last(sock)
end)

test("RFC 9112 9.3.2: requests before a malformed one are answered before the refusal", function()
    local sock <close> = server:connect()
    sock:send(request("GET /1") .. request("POST /2", "Content-Length: 5") .. "hello"
              .. request("GET /3", "X : y") .. request("GET /4"))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    http.check_echoed(sock:read_reply(), {target = "/2", body = "hello"})
    http.check_refusal(sock, 400)
end)

test("RFC 9112 9.3.2: a bad chunk after good requests is refused once", function()
    local sock <close> = server:connect()
    sock:send(request("GET /1") .. http.chunked("5\r\nhello\r\nX\r\n") .. request("GET /3"))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    http.check_refusal(sock, 400)
end)

test("RFC 9112 9.3: half a request after a whole one waits for its rest", function()
    local sock <close> = server:connect()
    local second = request("GET /2")
    sock:send(request("GET /1") .. second:sub(1, 9))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    check(not sock:ready(0.02), "answered before it was whole")
    sock:send(second:sub(10))
    http.check_echoed(sock:read_reply(), {target = "/2"})
end)

test("RFC 9112 9.5: a client that closes its sending side still gets its reply", function()
    local sock <close> = server:connect()
    sock:send(request("GET /1"))
    sock:shutdown()
    http.check_echoed(sock:read_reply(), {target = "/1"})
    equal(sock:recv_all(), "")
end)

test("RFC 9112 9.5: a client that closes its sending side still gets all 500 replies", function()
    local sock <close> = server:connect()
    sock:pump(request("GET /1"):rep(500))
    sock:shutdown()
    for _ = 1, 500 do
        http.check_echoed(sock:read_reply(), {target = "/1"})
    end
    equal(sock:recv_all(), "")
end)

test("RFC 9112 9.5: an idle connection is closed when its client closes", function()
    local sock <close> = server:connect()
    sock:send(request("GET /1"))
    http.check_echoed(sock:read_reply(), {target = "/1"})
    sock:shutdown()
    equal(sock:recv_all(), "")
end)

test("RFC 9112 9.5: a client that closes before it sends anything gets no reply", function()
    local sock <close> = server:connect()
    sock:shutdown()
    equal(sock:recv_all(), "")
end)

test("RFC 9112 8: a head that is cut short gets 400 or no reply", function()
    local bytes = request("GET /", "X: y")
    for at = 1, #bytes - 1 do
        local sock <close> = server:connect()
        sock:send(bytes:sub(1, at))
        sock:shutdown()
        local said = sock:recv_all()
        check(said == "" or said:find("^HTTP/1%.1 400 "), said)
    end
end)

test("RFC 9112 9.3: 1,000 requests, one after the other, on one connection", function()
    local sock <close> = server:connect()
    for i = 1, 1000 do
        sock:send(request("GET /" .. i))
        http.check_echoed(sock:read_reply(), {target = "/" .. i})
    end
end)

test("RFC 9112 9.4: many connections at the same time", function()
    local socks = {}
    for i = 1, 100 do
        socks[i] = server:connect()
        socks[i]:send(request("GET /" .. i))
    end
    for i = 100, 1, -1 do
        http.check_echoed(socks[i]:read_reply(), {target = "/" .. i})
        socks[i]:close()
    end
end)
