-- SPDX-License-Identifier: MIT
-- TCP keeps no message boundaries: a request may arrive in pieces of any length.

local httpd = require "httpd"
local server <close> = httpd.start()

local full = "POST /path?query HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\nhello"

local function in_two(sock, bytes, at)
    sock:send(bytes:sub(1, at))
    wire.sleep(0.0005)
    sock:send(bytes:sub(at + 1))
end

test("a request in two pieces, cut at every point", function()
    for at = 1, #full - 1 do
        local sock <close> = server:connect()
        in_two(sock, full, at)
        equal(httpd.undated(sock:read_reply().raw), httpd.hello(), "in two at " .. at)
    end
end)

test("two requests in two pieces, cut at every point, on one connection", function()
    local sock <close> = server:connect()
    local two = full .. httpd.HEAD
    for at = 1, #two - 1 do
        in_two(sock, two, at)
        equal(httpd.undated(sock:read_reply().raw), httpd.hello(), "first, in two at " .. at)
        equal(httpd.undated(sock:read_reply("HEAD").raw), httpd.hello(nil, "HEAD"),
              "second, in two at " .. at)
    end
end)

for _, piece in ipairs{1, 2, 3, 7} do
    test(("requests in pieces of %d"):format(piece), function()
        local sock <close> = server:connect()
        sock:send_slowly(full .. httpd.LAST, piece)
        equal(httpd.undated(sock:recv_all()), httpd.hello() .. httpd.hello("close"))
    end)
end

test("a malformed request in two pieces, cut at every point, is refused", function()
    local rubbish = "GET / HTTP/1.1\r\nHost : a\r\n\r\n"
    for at = 1, #rubbish - 1 do
        local sock <close> = server:connect()
        sock:send(rubbish:sub(1, at))
        wire.sleep(0.0005)
        sock:send_some(rubbish:sub(at + 1))
        equal(sock:read_reply().status, 400, "in two at " .. at)
        check(sock:eof(), "not closed, in two at " .. at)
    end
end)
