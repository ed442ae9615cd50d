-- SPDX-License-Identifier: MIT
-- Which end closes a connection, and when: RFC 9112 section 9.3.

local httpd = require "httpd"
local server <close> = httpd.start()

local function request(version, connection)
    return "GET / HTTP/" .. version .. "\r\nHost: a\r\n"
        .. (connection and "Connection: " .. connection .. "\r\n" or "") .. "\r\n"
end

test("a connection is kept for 100 requests, one after the other", function()
    local sock <close> = server:connect()
    for i = 1, 100 do
        sock:send(httpd.GET)
        equal(httpd.undated(sock:read_reply().raw), httpd.hello(), "reply " .. i)
    end
    equal(sock:eof(0), false, "closed")
end)

local kept = {
    {"1.1", nil, nil},
    {"1.1", "keep-alive", nil},
    {"1.1", "x-other", nil},
    {"1.0", "keep-alive", "keep-alive"},
    {"1.0", "Keep-Alive", "keep-alive"},
}
for _, case in ipairs(kept) do
    local version, connection, says = table.unpack(case, 1, 3)
    test(("kept: HTTP/%s with %s"):format(version, connection or "nothing"), function()
        local sock <close> = server:connect()
        for _ = 1, 3 do
            sock:send(request(version, connection))
            equal(httpd.undated(sock:read_reply().raw), httpd.hello(says))
        end
        equal(sock:eof(0), false, "closed")
    end)
end

local closed = {
    {"1.1", "close"},
    {"1.1", "Close"},
    {"1.1", "CLOSE"},
    {"1.1", "x-other, close"},
    {"1.1", "close,x-other"},
    {"1.0", nil},
    {"1.0", "close"},
    {"1.0", "x-other"},
}
for _, case in ipairs(closed) do
    local version, connection = table.unpack(case, 1, 2)
    test(("closed: HTTP/%s with %s"):format(version, connection or "nothing"), function()
        local sock <close> = server:connect()
        sock:send(request(version, connection))
        equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
    end)
end

test("HTTP/1.0 needs no Host", function()
    local sock <close> = server:connect()
    sock:send("GET / HTTP/1.0\r\n\r\n")
    equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
end)

test("requests after one with Connection: close get no reply", function()
    local sock <close> = server:connect()
    sock:send(httpd.GET .. httpd.LAST .. httpd.GET)
    equal(httpd.undated(sock:recv_all()), httpd.hello() .. httpd.hello("close"))
end)
