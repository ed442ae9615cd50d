-- SPDX-License-Identifier: MIT
-- SIGTERM and SIGINT stop the server gracefully, in whatever state its connections are.

local httpd = require "httpd"
local site = require "site"

for _, signal in ipairs{"TERM", "INT"} do
    test(("SIG%s ends an idle server with status 0"):format(signal), function()
        local server = httpd.start()
        server.proc:signal(signal)
        equal(server.proc:wait(20), 0)
    end)

    test(("SIG%s ends a server with clients in every state, after --stop-timeout"):format(signal),
         function()
        local server = httpd.start("--stop-timeout", "0.2")
        local socks = {}
        for i = 1, 20 do
            socks[i] = server:connect()
        end
        for i = 1, 5 do
            socks[i]:send(httpd.GET)
            socks[i]:read_reply()
            socks[i + 5]:send("GET / HT")
            socks[i + 10]:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1")
        end
        server:check_answers()
        server.proc:signal(signal)
        equal(server.proc:wait(20), 0, server.proc:errors())
        for i, sock in ipairs(socks) do
            pcall(sock.recv_all, sock)
            check(sock:eof(), ("client %d is not closed"):format(i))
        end
    end)
end

-- Wait until the server has closed its listener.
local function wait_until_stopping(server)
    httpd.wait_until(function()
        local connected, sock = pcall(server.connect, server)
        if connected then
            sock:close()
        end
        return not connected
    end, "a server that does not listen")
end

test("connections that are idle, or have sent half a head, are closed at once", function()
    local server = httpd.start("--stop-timeout", "1h")
    local idle <close> = server:connect()
    local half <close> = server:connect()
    local silent <close> = server:connect()
    idle:send(httpd.GET)
    equal(idle:read_reply().status, 200)
    half:send("GET / HT")
    server:check_answers()
    server.proc:signal("TERM")
    equal(server.proc:wait(5), 0, server.proc:errors())
    check(idle:eof(), "idle")
    check(half:eof(), "half a head")
    check(silent:eof(), "silent")
end)

test("a request in progress is finished, then its connection is closed", function()
    local server = httpd.start("--stop-timeout", "1h")
    local sock = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
    server:check_answers()
    server.proc:signal("TERM")
    wait_until_stopping(server)
    server:rest()
    sock:send("67890")
    equal(httpd.undated(sock:recv_all()), httpd.hello("close"))
    sock:close()
    equal(server.proc:wait(5), 0, server.proc:errors())
end)

test("a file that is being sent is sent to its end", function()
    local server = site.start("--stop-timeout", "1h")
    local content = ("0123456789abcdef"):rep(500000)
    server:write("large.bin", content)
    local sock = server:connect(4096)
    sock:send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
    sock:recv_until("\r\n\r\n")
    server.proc:signal("TERM")
    wait_until_stopping(server)
    check(sock:recv_all() == content, "not the whole file")
    sock:close()
    equal(server.proc:wait(20), 0, server.proc:errors())
    server:__close("it has ended")
end)

test("a second signal ends it at once", function()
    local server = httpd.start("--stop-timeout", "1h")
    local sock <close> = server:connect()
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
    server:check_answers()
    server.proc:signal("TERM")
    wait_until_stopping(server)
    check(not sock:eof(0.1), "closed before its time")
    server.proc:signal("INT")
    equal(server.proc:wait(5), 0, server.proc:errors())
end)

test("SIGPIPE does not end the server", function()
    local server <close> = httpd.start()
    for _ = 1, 50 do
        local sock = server:connect()
        sock:send(httpd.GET:rep(100))
        sock:reset()
    end
    server:check_answers()
end)

test("the next server can use the port at once", function()
    local first = httpd.start()
    local port = first.port
    first:check_answers()
    first:stop()
    local second <close> = httpd.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    equal(second.port, port)
    second:check_answers()
end)
