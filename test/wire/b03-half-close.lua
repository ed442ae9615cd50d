-- SPDX-License-Identifier: MIT
-- A client that closes its sending side (shutdown) after its last request still gets all replies.

local httpd = require "httpd"
local server <close> = httpd.start()

test("after a request and the client's end of input, the reply comes and the connection closes", function()
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    sock:shutdown()
    equal(httpd.undated(sock:recv_all()), httpd.hello())
end)

test("an idle connection closes when the client ends its input", function()
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    sock:read_reply()
    sock:shutdown()
    check(sock:eof(), "not closed")
end)

test("5,000 requests and the client's end of input: all replies come", function()
    local sock <close> = server:connect()
    sock:pump(httpd.GET:rep(5000))
    sock:shutdown()
    equal(httpd.undated(sock:recv_all()), httpd.hello():rep(5000))
end)

test("a request that is cut short gets no 200", function()
    for at = 1, #httpd.GET - 1 do
        local sock <close> = server:connect()
        sock:send(httpd.GET:sub(1, at))
        sock:shutdown()
        local said = sock:recv_all()
        check(said == "" or said:find("^HTTP/1%.1 400 "), said)
    end
end)

test("a body that is cut short ends the connection", function()
    local sock <close> = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
    sock:shutdown()
    local said = sock:recv_all()
    -- A server may reply as soon as it has the head, or wait for a body that never comes.
    check(said == "" or said:find("^HTTP/1%.1 400 ") or httpd.undated(said) == httpd.hello(), said)
end)

test("a connection that has sent nothing is closed when its client closes", function()
    local sock <close> = server:connect()
    sock:shutdown()
    equal(sock:recv_all(), "")
end)
