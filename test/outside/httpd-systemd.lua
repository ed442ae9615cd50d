-- SPDX-License-Identifier: MIT
-- systemd, by docs/operations.md: sockets that it passes, and messages about the server's state.

local httpd = require "httpd"
local workers = require "workers"

local function temporary()
    local path = os.tmpname()
    os.remove(path)
    return path
end

-- The body of the reply at this address.
local function ask(ip, port)
    local sock <close> = wire.connect(ip, port)
    sock:send(httpd.LAST)
    return sock:read_reply().body
end

-- promise: docs/operations.md: Without -i, -p and --unix it opens no other socket.
test("HTTP is served at all sockets that are passed, and at no other", function()
    for _, processes in ipairs{"0", "2"} do
        local path = temporary()
        local first <close> = wire.listen("127.0.0.1", 0)
        local second <close> = wire.listen(path, 0)
        local command = {wire.program("sxe-httpd"), pass = {first, second}}
        if processes ~= "0" then
            command[2], command[3] = "-w", processes
        end
        local server <close> = httpd.spawn(command)
        equal(server.port, first:port())
        equal(server.proc:line(20), "listening on unix:" .. path)
        equal(ask("127.0.0.1", first:port()), httpd.BODY)
        equal(ask(path), httpd.BODY)
        server.proc:signal("TERM")
        check(not server.proc:output(20):find "listening on")
        os.remove(path)
    end
end)

-- promise: docs/operations.md: If a socket of systemd has exactly the address of one of these options, it is used for
-- that option.
test("a passed socket is the one of -p or --unix", function()
    for _, more in ipairs{{}, {"-w", "2"}} do
        local path = temporary()
        local first <close> = wire.listen("127.0.0.1", 0)
        local second <close> = wire.listen(path, 0)
        local server <close> = httpd.spawn{wire.program("sxe-httpd"), "-i", "127.0.0.1", "-p", tostring(first:port()),
                                           "--unix", path, pass = {first, second},
                                           table.unpack(more)}
        equal(server.port, first:port())
        for _ = 1, 2 do -- also after a reload
            equal(ask("127.0.0.1", first:port()), httpd.BODY)
            equal(ask(path), httpd.BODY)
            if #more == 0 then break end
            local before = workers.of(server)
            server.proc:signal("HUP")
            workers.await(server, 2, before)
        end
        server.proc:signal("TERM")
        server.proc:wait(20)
        os.remove(path)
    end
end)

-- promise: docs/operations.md: A socket with the port of `--http-redirect` redirects.
test("a passed socket is the one of --http-redirect", function()
    if require "cli".run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then return end
    for _, processes in ipairs{"0", "2"} do
        local https <close> = wire.listen("127.0.0.1", 0)
        local plain <close> = wire.listen("0.0.0.0", 0)
        local more = processes ~= "0" and {"-w", processes} or {}
        local proc = wire.spawn{wire.program("sxe-httpd"), "--tls-dev", "--http-redirect", tostring(plain:port()),
                                pass = {plain, https}, table.unpack(more)}
        local server <close> = setmetatable({proc = proc, pid = proc:pid()}, httpd)
        equal(proc:line(60), ("listening on https://127.0.0.1:%d/"):format(https:port()))
        for _ = 1, 2 do -- also after a reload
            local sock <close> = wire.connect("127.0.0.1", plain:port())
            sock:send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            equal(sock:read_reply().headers.location, ("https://localhost:%d/x"):format(https:port()))
            if processes == "0" then break end
            local before = workers.of(server)
            server.proc:signal("HUP")
            workers.await(server, 2, before)
        end
    end
end)

-- promise: docs/operations.md: If `-p` names the port of a socket with another address, such as `0.0.0.0`, the server does
--   not start, and says to leave `-p` out.
test("a passed socket of the port of -p at another address is named", function()
    local other <close> = wire.listen("0.0.0.0", 0)
    local server = wire.spawn{wire.program("sxe-httpd"), "-i", "127.0.0.1", "-p", tostring(other:port()), pass = {other}}
    equal(server:wait(20), 1)
    check(server:errors():find("a socket of LISTEN_FDS has that port, at another address; leave out -i and -p", 1, true),
          server:errors())
end)

-- promise: docs/operations.md: It serves HTTP at each of them, except at an address at which a script itself listens.
test("a script that listens at the address of a passed socket gets that socket", function()
    local own <close> = wire.listen("127.0.0.1", 0)
    local other <close> = wire.listen("127.0.0.1", 0)
    local path = temporary()
    local file = assert(io.open(path, "w"))
    file:write(([[
        require "sxe.http".serve{ip = "127.0.0.1", port = %d, handler = function() return "own" end}
        return function() return "other" end]]):format(own:port()))
    file:close()
    local server <close> = httpd.spawn{wire.program("sxe-httpd"), "--lua", path, pass = {own, other}}
    equal(server.port, other:port())
    for _ = 1, 2 do -- also after a reload
        equal(ask("127.0.0.1", own:port()), "own")
        equal(ask("127.0.0.1", other:port()), "other")
        local before = workers.of(server)
        server.proc:signal("HUP")
        workers.await(server, 1, before)
    end
    os.remove(path)
end)

-- promise: docs/operations.md: A socket that does not listen, or a malformed variable, ends the program before it
-- serves, with exit status 1:
test("a passed socket that does not listen is refused", function()
    local server = wire.spawn{wire.program("sxe-httpd"), pass = {wire.mailbox(temporary())}}
    equal(server:wait(20), 1)
    check(server:errors():find("sxe-httpd: cannot listen at descriptor 3 of LISTEN_FDS: it is no stream socket that "
        .. "listens; pass TCP or unix sockets that listen (ListenStream=, with Accept=no)\n", 1, true), server:errors())
    equal(server:output(20), "")
end)

-- The next message other than WATCHDOG=1.
local function news(mailbox)
    local text
    repeat text = mailbox:message() until text ~= "WATCHDOG=1"
    return text
end

-- promise: docs/operations.md: `sxe-httpd` tells systemd when it is ready, when it reloads, and when it ends.
test("the server reports ready, reloading, ready and stopping", function()
    local path = temporary()
    local mailbox <close> = wire.mailbox(path)
    local server <close> = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "-w", "2", env = {NOTIFY_SOCKET = path}}
    equal(news(mailbox), "READY=1\nSTATUS=Serving with 2 processes")
    server.proc:signal("HUP")
    check(news(mailbox):find("^RELOADING=1\nMONOTONIC_USEC=%d+\n"))
    equal(news(mailbox), "READY=1\nSTATUS=Serving with 2 processes")
    server.proc:signal("TERM")
    check(news(mailbox):find("^STOPPING=1\n"))
    equal(server.proc:wait(20), 0)
    os.remove(path)
end)

-- promise: docs/operations.md: the supervisor sends a keep-alive message twice in that time, so systemd
test("WATCHDOG=1 comes, with a supervisor and without", function()
    for _, processes in ipairs{{}, {"-w", "1"}} do
        local path = temporary()
        local mailbox <close> = wire.mailbox(path)
        local server <close> = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", processes[1], processes[2],
                                           env = {NOTIFY_SOCKET = path, WATCHDOG_USEC = "100000"}}
        for _ = 1, 5 do
            repeat until mailbox:message() == "WATCHDOG=1"
        end
        os.remove(path)
    end
end)
