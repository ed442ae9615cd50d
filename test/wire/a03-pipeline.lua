-- SPDX-License-Identifier: MIT
-- Pipelining: a client sends many requests before it reads the first reply.

local httpd = require "httpd"
local server <close> = httpd.start()

for _, count in ipairs{1, 2, 3, 100, 5000} do
    test(("%d pipelined requests get as many replies"):format(count), function()
        local sock <close> = server:connect()
        sock:pump(httpd.GET:rep(count - 1) .. httpd.LAST)
        equal(httpd.undated(sock:recv_all()), httpd.hello():rep(count - 1) .. httpd.hello("close"))
    end)
end

test("replies come in the order of the requests", function()
    local sock <close> = server:connect()
    local kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    local post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 27\r\n\r\n" .. httpd.GET
    local round = httpd.HEAD .. httpd.GET .. kept .. httpd.HEAD .. post
    local replies = httpd.hello(nil, "HEAD") .. httpd.hello() .. httpd.hello("keep-alive")
        .. httpd.hello(nil, "HEAD") .. httpd.hello()
    sock:pump(round:rep(200) .. httpd.LAST)
    equal(httpd.undated(sock:recv_all()), replies:rep(200) .. httpd.hello("close"))
end)

test("half a request after a whole one waits for its rest", function()
    local sock <close> = server:connect()
    sock:send(httpd.GET .. httpd.GET:sub(1, 9))
    equal(httpd.undated(sock:read_reply().raw), httpd.hello())
    check(not sock:ready(0.05), "something came")
    sock:send(httpd.GET:sub(10))
    equal(httpd.undated(sock:read_reply().raw), httpd.hello())
end)

test("50 connections pipeline at the same time", function()
    local socks = {}
    for i = 1, 50 do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET:rep(40) .. httpd.LAST)
    end
    for _, sock in ipairs(socks) do
        equal(httpd.undated(sock:recv_all()), httpd.hello():rep(40) .. httpd.hello("close"))
        sock:close()
    end
end)
