-- SPDX-License-Identifier: MIT
-- Slow clients do not delay others.

local httpd = require "httpd"
local server <close> = httpd.start()

test("200 clients send a byte at a time while others are answered", function()
    local slow, request = {}, httpd.LAST
    for i = 1, 200 do
        slow[i] = server:connect()
    end
    for at = 1, #request do
        for _, sock in ipairs(slow) do
            sock:send(request:sub(at, at))
        end
        server:check_answers()
    end
    for _, sock in ipairs(slow) do
        equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
        sock:close()
    end
end)

test("200 clients stop in the middle of a body while others are answered", function()
    local slow = {}
    for i = 1, 200 do
        slow[i] = server:connect()
        slow[i]:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1234")
    end
    for _ = 1, 50 do
        server:check_answers()
    end
    for _, sock in ipairs(slow) do
        sock:send("567890" .. httpd.GET)
        equal(httpd.undated(sock:read_reply().raw), httpd.hello())
        equal(httpd.undated(sock:read_reply().raw), httpd.hello())
        sock:close()
    end
end)

test("a client that reads ten bytes at a time gets every byte", function()
    local sock <close> = server:connect(4096)
    local pieces = {}
    sock:send(httpd.GET:rep(100) .. httpd.LAST)
    local expected = httpd.hello():rep(100) .. httpd.hello("close")
    local dates = 101 * (#"Tue, 15 Nov 1994 08:12:31 GMT" - #"-")
    for i = 1, (#expected + dates) // 10 do
        pieces[i] = sock:recv(10)
    end
    equal(httpd.undated(table.concat(pieces) .. sock:recv_all()), expected)
end)
