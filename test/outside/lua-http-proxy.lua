-- SPDX-License-Identifier: MIT
--
-- Requests that a script sends on to other servers (http.proxy), by docs/proxy.md.

local cli = require "cli"
local http = require "http"
local httpd = require "httpd"
local script = require "script"
local workers = require "workers"

local request = http.request
local build = os.getenv("SXE_BUILD") or "build/release"

local function head_of(sock)
    return sock:recv_until("\r\n\r\n")
end

local function ok(body)
    return ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body)
end

-- A server whose script has `app`, a proxy for this upstream, and `http`.
local function start(upstream, text, ...)
    return script.start(([[local http, task = require "sxe.http", require "sxe.task"
        local app = http.proxy{ servers = "127.0.0.1:%d", name = "app" } %s]]):format(upstream:port(), text), ...)
end

-- A route without filters, one with a filter, and a handler that waits before it sends the request on.
local WAYS <const> = {
    "return app",
    "return http.router():use('/', app)",
    "return http.router():use(function() end):use('/', app)",
    "return function(req, res) task.sleep(0.01) return app(req, res) end",
}

-- promise: docs/proxy.md: Bodies pass in parts as everywhere on this page, and never through Lua.
test("a body of 64 MiB passes in both directions, with 4 MiB of memory for Lua and without its time", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local part, parts = ("0123456789abcdef"):rep(65536), 64
    for _, way in ipairs(WAYS) do
        local server <close> = start(upstream, way, "--lua-memory", "4m", "--lua-cpu", "0.1")
        local client <close> = server:connect()
        client:send(("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"):format(#part * parts))
        local sock <close> = upstream:accept()
        check(head_of(sock):find "^POST /a HTTP/1.1\r\n", way)
        server:rest()
        local before = wire.rss(server.pid)
        for _ = 1, parts do
            client:send(part)
            equal(sock:recv(#part) == part, true, way)
        end
        sock:send(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"):format(#part * parts))
        head_of(client)
        for _ = 1, parts do
            sock:send(part)
            equal(client:recv(#part) == part, true, way)
        end
        check(wire.rss(server.pid) - before < 4 * 1024 * 1024 * httpd.slack, "memory")
        client:send(request "GET /b")
        check(head_of(sock):find "^GET /b HTTP/1.1\r\n")
        sock:send(ok "b")
        equal(client:read_reply().body, "b")
    end
end)

-- promise: docs/proxy.md: `proxy(req, res)` replies with the upstream's reply, and with the headers that the handler has
--   set.
test("a handler checks the request, changes its path and adds headers to the reply", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream, [[local admin = http.proxy{ upstream = app, path = "/internal/" }
        return http.router():any("/admin/{rest...}", function(req, res)
            if not req.headers.authorization then return 401 end
            res.headers["Cache-Control"] = "no-store"
            return admin(req, res)
        end)]])
    equal(http.ask(server, request "GET /admin/users").status, 401)
    local client <close> = server:connect()
    client:send(request("GET /admin/users", "Authorization: a"))
    local sock <close> = upstream:accept()
    local head = head_of(sock)
    check(head:find "^GET /internal/users HTTP/1.1\r\n" and head:find("\r\nX-Forwarded-For: 127.0.0.1\r\n", 1, true), head)
    sock:send("HTTP/1.1 201 Created\r\nX-App: 1\r\nContent-Length: 3\r\n\r\nann")
    local reply = client:read_reply()
    equal(reply.status, 201)
    equal(reply.headers["x-app"], "1")
    equal(reply.headers["cache-control"], "no-store")
    equal(reply.body, "ann")
end)

-- promise: docs/proxy.md: `request_header` of a route sets fields in the requests that it sends on: one text
-- `"Name: value"`, or up to 8.
test("a proxy of a script sets fields", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream, [[
        local one = http.proxy{ upstream = app, request_header = "X-App: shop" }
        local two = http.proxy{ upstream = app, request_header = { "X-Id: {request_id}", "X-Client: {client}" } }
        return http.router():use("/one", one):any("/two", function(req, res) return two(req, res) end)]])
    local client <close> = server:connect()
    client:send(request "GET /one")
    local sock <close> = upstream:accept()
    check(head_of(sock):find("\r\nX-App: shop\r\n", 1, true))
    sock:send(ok "1")
    equal(client:read_reply().body, "1")
    client:send(request("GET /two", "X-Client: 1.2.3.4"))
    local head = head_of(sock)
    check(head:find "\r\nX%-Id: %x+\r\nX%-Client: 127.0.0.1\r\n" and not head:find "1.2.3.4", head)
end)

-- How often the head of a reply has a field, in lower case.
local function count_fields(head, name)
    return select(2, head:lower():gsub("\r\n" .. name:gsub("%-", "%%-") .. ": ", ""))
end

local SETS_HEADERS <const> = [[return function(req, res)
    res.headers["Content-Type"] = "text/x"
    res.headers.ETag = '"mine"'
    res.headers["Content-Encoding"] = "x-mine"
    res.headers["Cache-Control"] = "no-store"
    res.headers["Set-Cookie"] = { "a=1", "b=2" }
    res.headers.Vary = "Cookie"
    return app(req, res)
end]]

-- promise: docs/proxy.md: A header that the handler has set replaces the upstream's headers of that name, but `Set-Cookie` and
-- `Vary` of both are sent.
test("headers of a handler replace those of the upstream", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream, SETS_HEADERS)
    local client <close> = server:connect()
    client:send(request "GET /a")
    local sock <close> = upstream:accept()
    head_of(sock)
    sock:send("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nETag: \"a\"\r\nCache-Control: public\r\nX-App: 1\r\n"
        .. "Set-Cookie: c=3\r\nVary: Accept\r\nContent-Length: 1\r\n\r\na")
    local head = head_of(client)
    equal(client:recv(1), "a")
    for _, line in ipairs{"Content-Type: text/x", 'ETag: "mine"', "Cache-Control: no-store", "Content-Encoding: x-mine",
                          "X-App: 1"} do
        check(head:find("\r\n" .. line .. "\r\n", 1, true), head)
        equal(count_fields(head, line:match("^[^:]+"):lower()), 1, head)
    end
    equal(count_fields(head, "set-cookie"), 3, head)
    equal(count_fields(head, "vary"), 2, head)
end)

-- promise: docs/proxy.md: An error of the proxy is sent without the handler's headers that describe a body, such as
-- `Content-Type`, `Content-Encoding` and `ETag`.
test("an error of the proxy has no headers for another body", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream, SETS_HEADERS)
    local client <close> = server:connect()
    client:send(request "GET /a")
    local sock <close> = upstream:accept()
    head_of(sock)
    sock:send "nonsense\r\n\r\n"
    local head = head_of(client)
    check(head:find("^HTTP/1.1 502 ") and head:find("\r\nContent-Type: text/plain; charset=utf-8\r\n", 1, true), head)
    client:send(request "GET /a%2Fb")
    equal(client:recv(16), "502 Bad Gateway\n")
    local refused = head_of(client)
    check(refused:find "^HTTP/1.1 400 ", refused)
    for name, count in pairs{["content-type"] = 1, ["content-encoding"] = 0, etag = 0, ["cache-control"] = 1} do
        equal(count_fields(head, name), count, head)
        equal(count_fields(refused, name), count, refused)
    end
end)

test("a reply that is cut, a client that leaves, a server that is not there", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    for _, way in ipairs(WAYS) do
        local server <close> = start(upstream, way)
        do
            local client <close> = server:connect()
            client:send(request "GET /a")
            local sock <close> = upstream:accept()
            head_of(sock)
            sock:send "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"
            client:recv_until "hello"
            sock:close()
            check(not pcall(client.recv_all, client), "the client's connection is reset")
        end
        local client <close> = server:connect()
        client:send(request "GET /a")
        local sock <close> = upstream:accept()
        head_of(sock)
        client:close()
        check(sock:eof(), "the upstream's connection ends")
    end
    local free = wire.free_port()
    local server <close> = script.start(([[return require "sxe.http".proxy{ servers = "127.0.0.1:%d", name = "app" }]]):format(free))
    equal(http.ask(server, request "GET /a").status, 502)
    httpd.wait_until(function()
        return server.proc:errors():find("app: 127.0.0.1:" .. free .. ": Connection refused: GET /a is answered 502", 1, true)
    end, "the line")
end)

test("a WebSocket passes through a script's route, also after a reload", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    for _, way in ipairs(WAYS) do
        local server <close> = start(upstream, way, "-w", "1", "--stop-timeout", "10m")
        local client <close> = server:connect()
        client:send(request("GET /chat", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: k",
                            "Sec-WebSocket-Version: 13"))
        local sock <close> = upstream:accept()
        head_of(sock)
        sock:send "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\n"
        check(client:recv_until("\r\n\r\n"):find "^HTTP/1.1 101 ")
        workers.await(server, 1)
        server.proc:signal "HUP"
        workers.await(server, 2)
        client:send "ping"
        equal(sock:recv(4), "ping")
        sock:send "pong"
        equal(client:recv(4), "pong")
        sock:close()
        check(client:eof(), "the other end is closed, too")
    end
end)

-- promise: docs/proxy.md: Servers with `https://` speak TLS.
test("a script's upstream with TLS is verified", function()
    if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 or not wire.has "openssl" then
        print "skipped: a script's upstreams with TLS, because OpenSSL 3 or the openssl command is not there"
        return
    end
    local base = os.tmpname()
    local cert, key = base .. ".pem", base .. ".key"
    check(os.execute(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s -out %s "
        .. "-days 2 -subj /CN=a -addext subjectAltName=IP:127.0.0.1 >/dev/null 2>&1"):format(key, cert)))
    local app <close> = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--tls-cert", cert, "--tls-key", key}
    local port = assert((app:line(60) or ""):match ":(%d+)/$", "sxe-httpd does not listen")
    for options, status in pairs{[("{ ca = %q }"):format(cert)] = 200, ["{ insecure = true }"] = 200, ["true"] = 502} do
        local server <close> = script.start(([[return require "sxe.http".proxy{ servers = "https://127.0.0.1:%s",
            tls = %s }]]):format(port, options))
        equal(http.ask(server, request "GET /").status, status, options)
    end
    for _, path in ipairs{base, cert, key} do
        os.remove(path)
    end
end)

-- promise: docs/proxy.md: is a script that takes the servers from its command line.
test("examples/lua/reverse-proxy.lua", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local port = wire.free_port()
    local command = {wire.program("sxe-lua"), "examples/lua/reverse-proxy.lua", tostring(port),
        "127.0.0.1:" .. upstream:port()}
    if build:find("coverage", 1, true) then
        os.execute("mkdir -p " .. build .. "/lua")
        table.insert(command, 2, "--coverage=" .. build .. "/lua/reverse-proxy.info")
    end
    local proc <close> = wire.spawn(command)
    local client
    httpd.wait_until(function()
        local is_open, sock = pcall(wire.connect, "127.0.0.1", port)
        client = is_open and sock
        return client
    end, "it listens")
    client:send(request "GET /files/a")
    local sock <close> = upstream:accept()
    check(head_of(sock):find "^GET /files/a HTTP/1.1\r\n")
    sock:send(ok "a")
    equal(client:read_reply().body, "a")
    client:send(request "GET /admin/users")
    equal(client:read_reply().status, 403)
    client:send(request "GET /admin/users?key=secret")
    check(head_of(sock):find "^GET /internal/users%?key=secret HTTP/1.1\r\n")
    sock:send(ok "users")
    local reply = client:read_reply()
    equal(reply.body, "users")
    equal(reply.headers["cache-control"], "no-store")
    client:send(request "GET /servers")
    check(client:read_reply().body:find('"requests":2', 1, true))
    client:close()
    proc:signal "TERM"
    proc:wait(60)
end)
