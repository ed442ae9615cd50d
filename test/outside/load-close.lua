-- SPDX-License-Identifier: MIT
--
-- How sxe-http closes its connections, as the server sees it: by FIN or by RST.

local load = require "load"

-- How the peer ended a connection: "FIN" or "RST".
local function how_it_ended(sock)
    local _, problem = pcall(sock.recv, sock, 1)
    return problem:find("reset", 1, true) and "RST" or problem:find("closed", 1, true) and "FIN"
        or problem
end

local function serve(sock, replies)
    for _ = 1, replies do
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello"))
    end
end

-- promise: docs/load-generator.md: A connection without a request in flight at the end of a run is closed in order:
-- all of its replies were read, and the server sees FIN, and no reset.
test("an idle connection is closed with FIN", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "2", "--requests", "20")
    for _, sock in ipairs(load.accept(listener, 2)) do
        serve(sock, 0)
        client[#client + 1] = sock
    end
    local served = 0
    while served < 20 do
        for i = 1, 2 do
            if served < 20 and client[i]:ready(0.01) then
                serve(client[i], 1)
                served = served + 1
            end
        end
    end
    equal(how_it_ended(client[1]), "FIN")
    equal(how_it_ended(client[2]), "FIN")
    client:finish():check_report{queries = 20, ok = 20, failed = 0}
end)

-- promise: docs/load-generator.md: A connection with a request in flight is waited for first, as long as `--drain`
-- says.
test("a connection with a request in flight is drained, and then closed with FIN", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-d", "0.1")
    local sock <close> = listener:accept(20)
    sock:recv_until("\r\n\r\n")
    wire.sleep(0.3)
    sock:send(load.reply("hello"))
    equal(how_it_ended(sock), "FIN")
    client:finish():check_report{ok = 1, failed = 0}
end)

-- promise: docs/load-generator.md: A request that is not answered by then, or times out, or gets bytes that are no
-- reply, ends its connection with a reset.
test("a request without a reply within the drain is reset", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-d", "0.1", "--drain", "0.1")
    local sock <close> = listener:accept(20)
    sock:recv_until("\r\n\r\n")
    equal(how_it_ended(sock), "RST")
    client:finish()
    equal(client:count("unanswered"), 1, client.output)
end)

-- promise: docs/load-generator.md: After a reply with `Connection: close` the connection is closed in order, too, and
-- the next request uses a new one.
test("a connection whose server wants no more requests is closed with FIN", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-n", "2")
    for _ = 1, 2 do
        local sock <close> = listener:accept(20)
        sock:recv_until("\r\n\r\n")
        sock:send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        equal(how_it_ended(sock), "FIN")
    end
    client:finish():check_report{queries = 2, ok = 2, failed = 0}
end)

local function check_one_a_connection(...)
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "--requests", "3", ...)
    for _ = 1, 3 do
        local sock <close> = listener:accept(20)
        sock:recv_until("\r\n\r\n")
        sock:send(load.reply("hello")) -- without Connection: close, and the server keeps the connection
        equal(how_it_ended(sock), "FIN")
    end
    client:finish():check_report{queries = 3, ok = 3, failed = 0}
end

-- promise: docs/load-generator.md: A request that itself asks for the close, with `Connection: close` or as HTTP/1.0
-- without `keep-alive`, is the last one on its connection, whatever the reply says and however many requests
-- `--pipeline` allows.
test("a request that asks for the close is its connection's last", function()
    check_one_a_connection("-H", "Connection: close")
    check_one_a_connection("-H", "connection: te, Close", "--pipeline", "3")
    check_one_a_connection("-H", "Connection:", "--http1.0")
    check_one_a_connection("-H", "Connection: close", "--rate", "1000", "--arrivals", "fixed")
    local scripts = {'wrk.headers = {Connection = "close"}',
        'function request() return "GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n" end',
        'return {steps = {{path = "/", headers = {Connection = "close"}}}}',
        'return {kinds = {{path = "/", headers = {Connection = "close"}}}}'}
    for i, text in ipairs(scripts) do
        local path = os.tmpname()
        local file = io.open(path, "w")
        file:write(text)
        file:close()
        check_one_a_connection(i < 3 and "--script" or "--scenario", path)
        os.remove(path)
    end
end)

-- promise: docs/load-generator.md: `--abort` ends all connections with a reset, which keeps no port.
test("with --abort all connections are reset", function()
    local listener <close> = wire.listen("127.0.0.1", 0)
    local client = load.start(listener, "-c", "1", "-n", "2", "--abort")
    local first <close> = listener:accept(20)
    first:recv_until("\r\n\r\n")
    first:send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
    equal(how_it_ended(first), "RST")
    local second <close> = listener:accept(20)
    serve(second, 1)
    equal(how_it_ended(second), "RST")
    client:finish():check_report{queries = 2, ok = 2, failed = 0}
end)
