-- SPDX-License-Identifier: MIT
-- sxe-http against sxe-httpd.

local httpd = require "httpd"
local load = require "load"

local function run(server, sockets, queries)
    return load.start(server.port, "-c", tostring(sockets), "-n", tostring(queries)):finish(60)
end

for _, case in ipairs{{1, 1}, {1, 1000}, {64, 10}, {1000, 5}} do
    local sockets, queries = table.unpack(case)
    test(("%d sockets of %d queries: every one is answered"):format(sockets, queries), function()
        local server <close> = httpd.start("-c", "1100")
        server:check_answers()
        local descriptors = wire.fds(server.pid)
        local total = sockets * queries
        run(server, sockets, queries):check_report{status = 0, opened = sockets, queries = total,
                                                   ok = total, failed = 0}
        server:check_descriptors(descriptors)
    end)
end

test("the server dies under load: the client reports the errors and ends", function()
    local server = httpd.start("-c", "100")
    local client = load.start(server.port, "-c", "50", "-n", "1000000", "--timeout", "2")
    client.proc:line(20)
    wire.sleep(0.2)
    server.proc:signal("KILL")
    client:finish():check_report{status = 1, queries = 50000000}
    check(client.ok < client.queries)
    equal(client.ok + client.failed + client.skipped, client.queries)
end)

test("the client dies under load: the server serves the next one", function()
    local server <close> = httpd.start("-c", "100")
    server:check_answers()
    local descriptors = wire.fds(server.pid)
    local client = load.start(server.port, "-c", "50", "-n", "1000000")
    client.proc:line(20)
    wire.sleep(0.2)
    client.proc:signal("KILL")
    equal(client.proc:wait(20), "signal KILL")
    server:check_descriptors(descriptors)
    run(server, 50, 5):check_report{status = 0, ok = 250}
end)

test("ten clients at the same time", function()
    local server <close> = httpd.start("-c", "300")
    local clients = {}
    for i = 1, 10 do
        clients[i] = load.start(server.port, "-c", "20", "-n", "20")
    end
    for _, client in ipairs(clients) do
        client:finish(60):check_report{status = 0, ok = 400, failed = 0}
    end
end)
