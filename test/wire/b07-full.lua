-- SPDX-License-Identifier: MIT
-- More clients than -c allows: idle and silent connections are closed to make room. If all connections have requests in
-- progress, the next client gets 503 or waits. The server does not spin, and uses a slot as soon as one becomes free.

local httpd = require "httpd"

local HALF = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345"
local REST = "67890"

local function connect_and_send(server, count, bytes)
    local socks = {}
    for i = 1, count do
        socks[i] = server:connect()
        socks[i]:send(bytes)
    end
    return socks
end

local function check_answered(sock, who)
    equal(httpd.undated(sock:read_reply().raw), httpd.hello(), who)
end

-- How many clients, counted from the first, have got their reply.
local function count_answered(server, socks)
    server:rest()
    for i, sock in ipairs(socks) do
        if not sock:ready(0) then
            return i - 1
        end
        check_answered(sock, "client " .. i)
    end
    return #socks
end

for _, places in ipairs{1, 2, 10} do
    test(("-c %d and 30 clients: each is answered, idle connections are closed in order to make room"):format(places),
         function()
        local server <close> = httpd.start("-c", tostring(places))
        local socks = {}
        for i = 1, 30 do
            socks[i] = server:connect()
            socks[i]:send(httpd.GET)
            check_answered(socks[i], "client " .. i)
        end
        for i = 1, 30 - places do
            check(socks[i]:eof(), ("client %d is not closed"):format(i))
        end
        for i = 30 - places + 1, 30 do
            socks[i]:send(httpd.GET)
            check_answered(socks[i], "client " .. i .. ", again")
        end
    end)
end

local function check_no_place(sock)
    local reply = sock:read_reply()
    equal(reply.status, 503)
    equal(reply.body, "503 Service Unavailable\n")
    check(sock:eof(), "not closed")
    sock:close()
end

test("-c 10 and 30 clients in the middle of a request: 10 are served, the others do not disturb them", function()
    local server <close> = httpd.start("-c", "10")
    local busy = connect_and_send(server, 10, HALF)
    server:rest()
    local others = connect_and_send(server, 20, HALF)
    server:check_idle()
    for _, sock in ipairs(others) do
        check_no_place(sock)
    end
    for i, sock in ipairs(busy) do
        sock:send(REST)
        check_answered(sock, "client " .. i)
    end
    server:check_answers()
end)

-- Ask until the reply is 200: a client that gets 503 tries again.
local function ask_until_answered(server)
    httpd.wait_until(function()
        local sock <close> = server:connect()
        sock:send(httpd.LAST)
        return sock:ready(0.1) and sock:read_reply().status == 200
    end, "a place")
end

for what, free in pairs{["is done"] = function(sock) sock:send(REST) end,
                        ["leaves"] = function(sock) sock:reset() end} do
    httpd.test_soon("a slot is free as soon as a client " .. what, function()
        local server <close> = httpd.start("-c", "2", "--stop-timeout", "0.1")
        local busy = connect_and_send(server, 2, HALF)
        server:rest()
        check_no_place((connect_and_send(server, 1, httpd.GET))[1])
        free(busy[1])
        local took = server:seconds_of(function() ask_until_answered(server) end)
        check(took < 0.5 * httpd.slack, ("after %.3f s"):format(took))
    end)
end

test("clients that get no slot may reset their connections", function()
    local server <close> = httpd.start("-c", "2", "--stop-timeout", "0.1")
    local busy = connect_and_send(server, 2, HALF)
    server:rest()
    for _ = 1, 50 do
        local sock = server:connect()
        sock:send(httpd.GET)
        sock:reset()
    end
    busy[1]:close()
    ask_until_answered(server)
end)

test("clients that send nothing do not keep others out", function()
    local server <close> = httpd.start("-c", "10")
    local silent = {}
    for i = 1, 30 do
        silent[i] = server:connect()
    end
    server:check_answers()
end)

test("no descriptors left and 200 clients: some are served, the others when those leave", function()
    local server <close> = httpd.spawn{"sh", "-c", 'ulimit -n 40; exec "$0" "$@"',
                                       wire.program("sxe-httpd"), "-p", "0"}
    local socks = connect_and_send(server, 200, httpd.GET)
    local answered = count_answered(server, socks)
    check(answered >= 20 and answered < 40, answered .. " answered")
    server:check_idle()
    for i = answered + 1, #socks do
        socks[i - answered]:close()
        check_answered(socks[i], "client " .. i)
    end
end)
