-- SPDX-License-Identifier: MIT
-- A script is reloaded under load, and no request fails: neither on connections that are kept open nor on new ones.

local httpd = require "httpd"
local load = require "load"
local script = require "script"

local function version(n)
    return ("return function(req) return '%d' end"):format(n)
end

-- Write the next version of the script and reload, `times` times, each time waiting until the new version answers.
local function reload(server, times)
    for n = 1, times do
        server:write(version(n))
        server:reload()
        server:await(tostring(n))
    end
end

for _, case in ipairs{{"kept connections"}, {"new connections", "--header", "Connection: close"}} do
    local name = table.remove(case, 1)
    test(name .. " under load", function()
        local server <close> = script.start(version(0))
        local client = load.start(server.port, "-c", "20", "-d", "2", "--timeout", "60",
                                  table.unpack(case))
        client.proc:line(20)
        reload(server, 10)
        client:finish(60):check_report{status = 0, failed = 0, skipped = 0}
        check(client.ok > 0, client.output)
    end)
end

-- Send a request that the old process (version 0) must answer; return the Connection field of the reply.
local function ask_on(sock)
    sock:send(httpd.GET)
    local reply = sock:read_reply()
    equal(reply.body, "0")
    return reply.headers.connection
end

-- The connections are open when their process drains, and their next reply says so ("Connection: close"). The old
-- process learns of the new one a moment after it began to serve, so the first connection asks until the drain has
-- begun.
test("idle connections get one more reply each", function()
    local server <close> = script.start(version(0), "--stop-timeout", "1h")
    local socks = {}
    for i = 1, 20 do
        socks[i] = server:connect()
        equal(ask_on(socks[i]), nil)
    end
    reload(server, 1)
    local first <close> = table.remove(socks, 1)
    httpd.wait_until(function() return ask_on(first) == "close" end, "a reply that says close")
    for _, sock in ipairs(socks) do
        equal(ask_on(sock), "close")
        check(sock:eof(20))
        sock:close()
    end
end)

test("a request in progress is finished by the process that received it", function()
    local server <close> = script.start("return function(req) return req:body() .. 0 end",
                                        "--stop-timeout", "1h")
    local sock <close> = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
    server:ask()
    reload(server, 1)
    sock:send("b")
    equal(sock:read_reply().body, "ab0")
end)

-- The versions of the script listen at a port of their own; the listener is handed over from version to version.
test("a server that the script opens is reloaded under load", function()
    local port = wire.free_port()
    local function own(n)
        return ("require 'sxe.http'.serve{ip = '127.0.0.1', port = %d, handler = function() " ..
                "return '%d' end} return function() return '%d' end"):format(port, n, n)
    end
    local server <close> = script.start(own(0))
    local client = load.start(port, "-c", "20", "-d", "1", "--timeout", "60")
    client.proc:line(20)
    for n = 1, 5 do
        server:write(own(n))
        server:reload()
        server:await(tostring(n))
    end
    client:finish(60):check_report{status = 0, failed = 0, skipped = 0}
end)
