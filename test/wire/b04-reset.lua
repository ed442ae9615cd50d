-- SPDX-License-Identifier: MIT
-- A client may reset its connection at any moment.

local httpd = require "httpd"
local server <close> = httpd.start()

server:check_answers()
local descriptors = wire.fds(server.pid)

local function check_unharmed()
    server:check_answers()
    server:check_descriptors(descriptors)
end

test("reset before the first byte", function()
    for _ = 1, 100 do
        server:connect():reset()
    end
    check_unharmed()
end)

test("reset in the middle of a request", function()
    for at = 1, #httpd.GET - 1 do
        local sock = server:connect()
        sock:send(httpd.GET:sub(1, at))
        sock:reset()
    end
    check_unharmed()
end)

test("reset in the middle of a body", function()
    for i = 1, 50 do
        local sock = server:connect()
        sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        sock:send(("x"):rep(i * 100))
        sock:reset()
    end
    check_unharmed()
end)

test("reset before the reply is read", function()
    for _ = 1, 100 do
        local sock = server:connect()
        sock:send(httpd.GET)
        sock:reset()
    end
    check_unharmed()
end)

test("reset in the middle of many replies", function()
    for i = 1, 20 do
        local sock = server:connect(4096)
        sock:send_some(httpd.GET:rep(5000), 0.01)
        if i % 2 == 0 then
            sock:recv(i * 10)
        end
        sock:reset()
    end
    check_unharmed()
end)

test("closing with unread replies, which sends a reset", function()
    for _ = 1, 20 do
        local sock = server:connect()
        sock:send_some(httpd.GET:rep(1000), 0.01)
        sock:close()
    end
    check_unharmed()
end)

test("reset while a request is being refused", function()
    for _ = 1, 50 do
        local sock = server:connect()
        sock:send_some("rubbish\r\n\r\n" .. ("x"):rep(10000), 0.01)
        sock:reset()
    end
    check_unharmed()
end)
