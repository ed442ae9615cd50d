-- SPDX-License-Identifier: MIT
-- A client that has said all it will say still wants its replies.

local httpd = require "httpd"
local server <close> = httpd.start()

test("F19: a request, then the end: the reply comes, then the end", function()
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    sock:shutdown()
    equal(httpd.undated(sock:recv_all()), httpd.hello())
end)

test("F19: the end after the reply closes an idle connection", function()
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    sock:read_reply()
    sock:shutdown()
    check(sock:eof(), "not closed")
end)

test("5,000 requests, then the end: all replies come", function()
    local sock <close> = server:connect()
    sock:pump(httpd.GET:rep(5000))
    sock:shutdown()
    equal(httpd.undated(sock:recv_all()), httpd.hello():rep(5000))
end)

test("F19: the end in the middle of a request is no request", function()
    for at = 1, #httpd.GET - 1 do
        local sock <close> = server:connect()
        sock:send(httpd.GET:sub(1, at))
        sock:shutdown()
        local said = sock:recv_all()
        check(said == "" or said:find("^HTTP/1%.1 400 "), said)
    end
end)

test("F19: the end in the middle of a body ends the connection", function()
    local sock <close> = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
    sock:shutdown()
    local said = sock:recv_all()
    -- A server may answer as soon as it has the head, or wait for the body in vain.
    check(said == "" or said:find("^HTTP/1%.1 400 ") or httpd.undated(said) == httpd.hello(), said)
end)

test("F19: a connection without a word is closed when its client closes", function()
    local sock <close> = server:connect()
    sock:shutdown()
    equal(sock:recv_all(), "")
end)
