-- SPDX-License-Identifier: MIT
-- More clients than places: those outside wait, the server does not spin, and a place that gets
-- free is used at once.

local httpd = require "httpd"

local function connect_and_ask(server, count)
    local socks = {}
    for i = 1, count do
        socks[i] = server:connect()
        socks[i]:send(httpd.GET)
    end
    return socks
end

-- The number of clients, from the first on, that have been answered.
local function count_answered(socks)
    for i, sock in ipairs(socks) do
        if not sock:ready(0.3) then
            return i - 1
        end
        equal(httpd.undated(sock:read_reply().raw), httpd.hello(), "client " .. i)
    end
    return #socks
end

local function check_idle(server)
    local _, _, before = wire.cpu(server.pid)
    wire.sleep(1)
    local _, _, after = wire.cpu(server.pid)
    check(after - before < 0.05, ("%.3f s of CPU in one second"):format(after - before))
end

-- Each client that leaves makes room for the first of those that wait.
local function check_waiting_are_served(socks, answered)
    for i = answered + 1, #socks do
        socks[i - answered]:close()
        equal(httpd.undated(socks[i]:read_reply().raw), httpd.hello(), "client " .. i)
    end
end

test("-c 10 and 30 clients: 10 are served, the others as those leave", function()
    local server <close> = httpd.start("-c", "10")
    local socks = connect_and_ask(server, 30)
    equal(count_answered(socks), 10)
    check_idle(server)
    check_waiting_are_served(socks, 10)
end)

test("-c 1 serves one after the other", function()
    local server <close> = httpd.start("-c", "1")
    local socks = connect_and_ask(server, 5)
    equal(count_answered(socks), 1)
    check_waiting_are_served(socks, 1)
end)

test("no descriptors left and 200 clients: some are served, the others as those leave", function()
    local server <close> = httpd.spawn{"sh", "-c", 'ulimit -n 40; exec "$0" "$@"',
                                       wire.program("sxe-httpd"), "-p", "0"}
    local socks = connect_and_ask(server, 200)
    local answered = count_answered(socks)
    check(answered >= 20 and answered < 40, answered .. " answered")
    check_idle(server)
    check_waiting_are_served(socks, answered)
end)

test("a client that waits outside may leave", function()
    local server <close> = httpd.start("-c", "2")
    local socks = connect_and_ask(server, 10)
    equal(count_answered(socks), 2)
    for i = 3, 9 do
        socks[i]:reset()
    end
    socks[1]:close()
    equal(httpd.undated(socks[10]:read_reply().raw), httpd.hello())
end)
