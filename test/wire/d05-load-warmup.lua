-- SPDX-License-Identifier: MIT
-- --warmup auto, which decides itself when the warm-up is over, against servers that are slow or fail at first.

local httpd = require "httpd"
local load = require "load"

local reply = load.reply("hello")
local not_yet = load.reply("", "503 Service Unavailable")

-- A run with one connection; serve(i) returns the reply to query i.
local function run(pace, serve)
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-q", "-c", "1", "-d", tostring(pace),
                              "--warmup", "auto", "--json", "/dev/stderr")
    local sock <close> = listener:accept(20)
    local answered = 0
    while pcall(sock.recv_until, sock, "\r\n\r\n")
          and pcall(sock.send, sock, serve(answered + 1)) do
        answered = answered + 1
    end
    client:finish()
    client.left_out = client.output:match("\nwarm%-up   left out: [%d.]+ m?s and (%d+) requests\n")
    client.left_out = tonumber(client.left_out)
    check(client.left_out, client.output .. client.errors)
    client.answered = answered
    return client
end

httpd.test_at_a_pace("queries that a server answers slowly at first are left out", function(pace)
    local slow = 20
    local client = run(pace, function(i)
        if i <= slow then
            wire.sleep(0.005)
        end
        return reply
    end)
    check(client.left_out > slow, client.output)
    check(client.ok > 0 and client.failed == 0, client.output)
    check(client.left_out + client.ok >= client.answered - 1, client.output)
    check(client.errors:find('"left_out": ?{"seconds": ?[%d.]+, ?"queries": ?' .. client.left_out),
          client.errors:sub(1, 4000))
end)

httpd.test_at_a_pace("the warm-up lasts while a server replies with errors", function(pace)
    local bad = 200
    local client = run(pace, function(i)
        return i <= bad and not_yet or reply
    end)
    check(client.left_out > bad, client.output)
    equal(client.failed, 0, client.output)
end)

test("a server with too few replies makes the result suspect", function()
    local client = run(1, function()
        wire.sleep(0.05)
        return reply
    end)
    equal(client.status, 4, client.output)
    -- A busy machine gives other reasons as well, and the report names the first ones only.
    check(client.errors:find("warm-up auto: not stationary after 2 s: too few good", 1, true), client.output)
end)
