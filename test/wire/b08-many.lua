-- SPDX-License-Identifier: MIT
-- A thousand connections and requests leave no descriptor and no memory in use.

local httpd = require "httpd"
local server <close> = httpd.start()

test("1,000 connections, each opened, answered and closed", function()
    server:check_answers()
    local descriptors, memory = wire.fds(server.pid), nil
    for i = 1, 1000 do
        local sock <close> = server:connect()
        sock:send(i % 2 == 0 and httpd.GET or httpd.LAST)
        equal(sock:read_reply().status, 200)
        memory = i == 100 and wire.rss(server.pid) or memory
    end
    server:check_descriptors(descriptors)
    local grown = wire.rss(server.pid) - memory
    check(grown < 512 * 1024 * httpd.slack, ("grown by %d bytes"):format(grown))
end)

test("500 connections open at the same time, each asking ten times", function()
    local descriptors, socks = wire.fds(server.pid), {}
    for i = 1, 500 do
        socks[i] = server:connect()
    end
    for _ = 1, 10 do
        for _, sock in ipairs(socks) do
            sock:send(httpd.GET)
        end
        for i, sock in ipairs(socks) do
            equal(httpd.undated(sock:read_reply().raw), httpd.hello(), "connection " .. i)
        end
    end
    for _, sock in ipairs(socks) do
        sock:close()
    end
    server:check_descriptors(descriptors)
end)
