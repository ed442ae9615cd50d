-- SPDX-License-Identifier: MIT
-- sxe-http against a server that replies correctly.

local load = require "load"

test("every server understands the request", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1")
    local sock <close> = listener:accept(20)
    local request = sock:recv_until("\r\n\r\n")
    equal(request:match("^[^\r]*\r\n"), "GET / HTTP/1.1\r\n")
    check(request:find("\r\nHost: 127.0.0.1:" .. listener:port() .. "\r\n", 1, true), request)
    check(request:find("\r\nUser-Agent: sxe-http/", 1, true), request)
    sock:send(load.reply("hello"))
    client:finish():check_report{status = 0, ok = 1}
end)

test("the first line of output says what the run will do, the last lines report what it did", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "3", "-n", "2")
    equal(client.proc:line(20), "closed loop: 3 connections * 2 requests each = 6 requests  "
                                .. "GET http://127.0.0.1:" .. listener:port() .. "/  1 worker")
    local socks = load.accept(listener, 3)
    for _ = 1, 2 do
        for _, sock in ipairs(socks) do
            sock:recv_until("\r\n\r\n")
            sock:send(load.reply("hello"))
        end
    end
    client:finish():check_report{status = 0, opened = 3, queries = 6, ok = 6, failed = 0}
    equal(client.wanted, 3)
    for _, what in ipairs{"connections:", "queries    :", "           :"} do
        check(client.output:find("\ntime for all " .. what:gsub("%p", "%%%0")
                                 .. " %d+%.%d+ seconds or %d+%.%d+ per second\n"),
              what .. " is not in " .. client.output)
    end
end)

local kinds = {
    {"with a length", "HTTP/1.1 200 OK\r\nA: b\r\ncontent-length:  6\r\n\r\na\r\n\r\nb"},
    {"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" ..
                  "5\r\n0\r\n\r\n\r\n00B; a=\"b\"\r\nhello world\r\n0\r\nDigest: x\r\n\r\n"},
    {"after interim ones", "HTTP/1.1 100 Continue\r\n\r\n" ..
                            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" ..
                            "HTTP/1.1 204 No Content\r\n\r\n"},
}
for _, case in ipairs(kinds) do
    local name, reply = table.unpack(case)
    test("a reply " .. name .. " in two pieces, cut at every point", function()
        load.check_one(#reply - 1, function(sock, at)
            sock:send(reply:sub(1, at))
            wire.sleep(0.0005)
            sock:send(reply:sub(at + 1))
        end, {status = 0, ok = #reply - 1, failed = 0})
    end)
end

test("a reply byte by byte", function()
    load.check_one(3, function(sock)
        sock:send_slowly(load.reply("hello"), 1)
    end, {status = 0, ok = 3, failed = 0})
end)

test("a connection has one request at a time: the next follows the reply's last byte", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-n", "3")
    local sock <close> = listener:accept(20)
    for _ = 1, 3 do
        sock:recv_until("\r\n\r\n")
        check(not sock:ready(0.02), "a second request")
        sock:send(load.reply("hello"):sub(1, -2))
        check(not sock:ready(0.02), "a request before the reply was whole")
        sock:send("o")
    end
    client:finish():check_report{status = 0, ok = 3}
end)

local bodies = {
    {"empty", ""},
    {"a blank line", "\r\n\r\n"},
    {"blank lines", "a\r\n\r\nb\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"},
    {"all bytes", (function()
        local bytes = {}
        for i = 0, 255 do
            bytes[i + 1] = string.char(i)
        end
        return table.concat(bytes)
    end)()},
    {"a megabyte", ("x"):rep(1024 * 1024)},
}
for _, case in ipairs(bodies) do
    local name, body = table.unpack(case)
    test("a reply ends after Content-Length bytes, with a body of " .. name, function()
        load.check_one(5, function(sock)
            sock:send(load.reply(body))
        end, {status = 0, ok = 5, failed = 0})
    end)
end

test("a blank line in a body that comes in pieces does not end the reply", function()
    load.check_one(3, function(sock)
        local reply = load.reply("a\r\n\r\nb\r\n\r\nc")
        sock:send_slowly(reply, #reply - 8, 0.005)
    end, {status = 0, ok = 3, failed = 0})
end)

test("a reply without Content-Length ends when the connection closes", function()
    for _, body in ipairs{"", "hello", ("x"):rep(100000)} do
        load.check_one(1, function(sock)
            sock:send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" .. body)
            wire.sleep(0.01)
            sock:close()
        end, {status = 0, ok = 1, failed = 0})
    end
end)

test("the last reply may close its connection", function()
    load.check_one(3, function(sock, i)
        sock:send(i < 3 and load.reply("hello") or
                  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        if i == 3 then
            sock:close()
        end
    end, {status = 0, ok = 3, failed = 0})
end)

test("20 sockets are open at the same time", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "20", "-n", "3")
    local socks = load.accept(listener, 20)
    for _ = 1, 3 do
        for i = 20, 1, -1 do
            socks[i]:recv_until("\r\n\r\n")
            socks[i]:send(load.reply("hello"))
        end
    end
    client:finish():check_report{status = 0, opened = 20, queries = 60, ok = 60, failed = 0}
end)
