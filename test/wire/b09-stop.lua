-- SPDX-License-Identifier: MIT
-- SIGTERM and SIGINT end the server in good order, whatever its clients are doing.

local httpd = require "httpd"

for _, signal in ipairs{"TERM", "INT"} do
    test(("SIG%s ends an idle server with status 0"):format(signal), function()
        local server = httpd.start()
        server.proc:signal(signal)
        equal(server.proc:wait(20), 0)
    end)

    test(("SIG%s ends a server with clients in every state"):format(signal), function()
        local server = httpd.start()
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

test("a client's SIGPIPE is no end", function()
    local server <close> = httpd.start()
    for _ = 1, 50 do
        local sock = server:connect()
        sock:send(httpd.GET:rep(100))
        sock:reset()
    end
    server:check_answers()
end)

test("the port is free at once for the next server", function()
    local first = httpd.start()
    local port = first.port
    first:check_answers()
    first:stop()
    local second <close> = httpd.spawn{wire.program("sxe-httpd"), "-p", tostring(port)}
    equal(second.port, port)
    second:check_answers()
end)
