-- SPDX-License-Identifier: MIT
-- sxe-http against faulty servers: it counts each error by its kind, and always ends.

local httpd = require "httpd"
local load = require "load"

test("connections to a port without a listener count as refused", function()
    local port = wire.free_port()
    load.start(port, "-c", "10", "-n", "2"):finish()
        :check_report{status = 1, opened = 0, ok = 0, kind = "refused"}
end)

for _, status in ipairs{"404 Not Found", "500 Internal Server Error", "301 Moved Permanently"} do
    test("a status of " .. status .. " is bad, and the next query still comes", function()
        load.check_one(3, function(sock, i)
            sock:send(load.reply("hello", i == 2 and status or nil))
        end, {status = 1, ok = 2, failed = 1, kind = "status"})
    end)
end

-- The act of a server instead of an answer to the second of three queries, and the kind of error that sxe-http must report.
local reply = load.reply("hello")
local faults = {
    {"reset before the reply", "reset", function(sock) sock:reset() end},
    {"reset in the head", "reset", function(sock)
        sock:send(reply:sub(1, 20))
        wire.sleep(0.02)
        sock:reset()
    end},
    {"reset in the body", "reset", function(sock)
        sock:send(reply:sub(1, -2))
        wire.sleep(0.02)
        sock:reset()
    end},
    {"closed before the reply", "closed early", function(sock) sock:close() end},
    {"closed in the head", "closed early", function(sock)
        sock:send(reply:sub(1, 20))
        sock:close()
    end},
    {"closed in the body", "short body", function(sock)
        sock:send(reply:sub(1, -2))
        sock:close()
    end},
    {"silent", "timed out", function() end},
    {"silent in the head", "timed out", function(sock) sock:send(reply:sub(1, 20)) end},
    {"silent in the body", "timed out", function(sock) sock:send(reply:sub(1, -2)) end},
    {"rubbish", "bad reply", function(sock) sock:send("I do not speak HTTP, sorry.\r\n\r\n") end},
    {"rubbish without an end", "bad reply", function(sock) sock:send(("\0\1\2\3"):rep(5000)) end},
    {"a head without an end", "bad reply", function(sock)
        sock:send("HTTP/1.1 200 OK\r\n" .. ("X: y\r\n"):rep(20000))
    end},
    {"a status that is no number", "bad reply", function(sock)
        sock:send("HTTP/1.1 two OK\r\nContent-Length: 0\r\n\r\n")
    end},
    {"a length that is no number", "bad reply", function(sock)
        sock:send("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello")
    end},
    {"two lengths", "bad reply", function(sock)
        sock:send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
    end},
    {"a length and chunks", "bad reply", function(sock)
        sock:send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello")
    end},
    {"a chunk longer than announced", "bad reply", function(sock)
        sock:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n")
    end},
    {"a chunk that has no end", "timed out", function(sock)
        sock:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    end},
    {"a line that ends in LF alone", "bad reply", function(sock)
        sock:send("HTTP/1.1 200 OK\nContent-Length: 0\n\n")
    end},
    {"more bytes than announced", "bad reply", function(sock) sock:send(reply .. "more") end},
    {"more replies than requests", "bad reply", function(sock) sock:send(reply .. reply) end},
}
for _, case in ipairs(faults) do
    local name, kind, misbehave = table.unpack(case)
    httpd.test_at_a_pace("the second reply of three: " .. name, function(pace)
        local listener <close> = wire.listen("127.0.0.1", 0)
        local client = load.start(listener, "-c", "1", "-n", "3",
                                  "--timeout", httpd.seconds(0.3 * pace))
        local sock = listener:accept(20)
        sock:recv_until("\r\n\r\n")
        sock:send(reply)
        sock:recv_until("\r\n\r\n")
        pcall(misbehave, sock)
        client:finish():check_report{status = 1, opened = 1, queries = 3, ok = 1, failed = 2}
        -- sxe-http sends the third query on a new connection, which the test never accepts.
        equal(client:count("timed out"), kind == "timed out" and 2 or 1, client.output)
        equal(client:count(kind), kind == "timed out" and 2 or 1, client.output)
        equal(client.output:find("bad reply 1 (first: ", 1, true) ~= nil, kind == "bad reply",
              client.output)
    end)
end

test("a server that accepts connections and sends nothing: queries time out, and the run ends", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "5", "-n", "4", "--timeout", "0.3")
    client:finish():check_report{status = 1, opened = 5, queries = 20, ok = 0, kind = "timed out"}
    equal(client.failed + client.skipped, 20, client.output)
end)

httpd.test_at_a_pace("a reply that comes slowly, but steadily, does not time out", function(pace)
    load.check_one(1, function(sock)
        sock:send_slowly(load.reply(("x"):rep(10)), 10, 0.1)
    end, {status = 0, ok = 1}, "--timeout", httpd.seconds(2 * pace))
end)

httpd.test_at_a_pace("a fault of one connection does not touch another", function(pace)
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "10", "-n", "2", "--timeout", httpd.seconds(2 * pace))
    local socks = load.accept(listener, 10)
    for _, sock in ipairs(socks) do
        sock:recv_until("\r\n\r\n")
    end
    table.remove(socks):reset()
    table.remove(socks):send("rubbish\r\n\r\n")
    table.remove(socks):close()
    for _, sock in ipairs(socks) do
        sock:send(reply)
        sock:recv_until("\r\n\r\n")
        sock:send(reply)
    end
    client:finish():check_report{status = 1, opened = 10, queries = 20, ok = 14, failed = 6}
end)

test("the server closes idle connections before the first query", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "3", "-n", "1", "--timeout", "2")
    for _, sock in ipairs(load.accept(listener, 3)) do
        sock:close()
    end
    client:finish():check_report{status = 1, queries = 3, ok = 0, failed = 3}
end)

test("Ctrl-C ends the run with a report so far, and status 130", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "2", "-n", "3", "--drain", "0.1")
    local socks = load.accept(listener, 2)
    for _, sock in ipairs(socks) do
        sock:recv_until("\r\n\r\n")
        sock:send(reply)
    end
    for _, sock in ipairs(socks) do
        sock:recv_until("\r\n\r\n")
    end
    client.proc:signal("INT")
    client:finish():check_report{status = 130, opened = 2, ok = 2}
    check(client.output:find("\ntime for all "), client.output)
end)
