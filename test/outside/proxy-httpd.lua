-- SPDX-License-Identifier: MIT
--
-- The reverse proxy of sxe-httpd, by docs/proxy.md: upstreams that fail, cut replies, read slowly, close connections.

local cli = require "cli"
local http = require "http"
local httpd = require "httpd"
local script = require "script"
local workers = require "workers"

local request = http.request

local function start(upstream, ...)
    return httpd.start("--proxy", "/=http://127.0.0.1:" .. upstream:port(), ...)
end

local function with_config(text, ...)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    file:flush()
    return httpd.start("--config", path, ...)
end

-- The head of the next request on a connection of the proxy.
local function head_of(sock)
    return sock:recv_until("\r\n\r\n")
end

local function ok(body)
    return ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body)
end

-- promise: docs/proxy.md: A route of a server can send its requests on to other servers, its *upstream*, and pass
-- their replies back.
test("requests below the path are sent on, others are not", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = httpd.start("--proxy", "/api=http://127.0.0.1:" .. upstream:port())
    local client <close> = server:connect()
    client:send(request "GET /api/users?id=1")
    local sock <close> = upstream:accept()
    check(head_of(sock):find("^GET /api/users%?id=1 HTTP/1.1\r\nHost: a\r\n"))
    sock:send(ok "ann")
    equal(client:read_reply().body, "ann")
    client:send(request "GET /apis")
    equal(client:read_reply().body, httpd.BODY)
end)

-- promise: docs/proxy.md: If a reply is cut by a close, a reset or a timeout, the proxy resets the client's
-- connection. The reply never looks complete.
test("a reply that is cut never looks whole", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for _, reply in ipairs{
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    } do
        for _, way in ipairs{"close", "reset"} do
            local client <close> = server:connect()
            client:send(request("GET /a", "Connection: close"))
            local sock <close> = upstream:accept()
            head_of(sock)
            sock:send(reply)
            client:recv_until "hello"
            sock[way](sock)
            check(not pcall(client.recv_all, client), "the client's connection is reset")
        end
    end
end)

-- promise: docs/proxy.md: If a client leaves, the request to the upstream ends, too.
test("a client that leaves ends the request", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for _, way in ipairs{"close", "shutdown", "reset"} do
        local client <close> = server:connect()
        client:send(request "GET /a")
        local sock <close> = upstream:accept()
        head_of(sock)
        client[way](client)
        check(sock:eof(), "the upstream's connection ends")
    end
end)

-- promise: docs/proxy.md: a slow reader makes the sender wait, and memory does not grow with the body.
test("a slow reader makes the upstream wait", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    local client <close> = server:connect(65536)
    client:send(request "GET /a")
    local sock <close> = upstream:accept()
    head_of(sock)
    server:rest()
    local before = wire.rss(server.pid)
    local size = 64 * 1024 * 1024
    local sent = sock:send_some(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"):format(size) .. ("x"):rep(size), 1)
    check(sent < size / 2, sent)
    check(wire.rss(server.pid) - before < 4 * 1024 * 1024 * httpd.slack, "memory")
end)

-- promise: docs/proxy.md: A client that waits for `100 (Continue)` gets it when a connection to the upstream is open.
test("100 comes when the upstream is connected", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    local client <close> = server:connect()
    client:send(request("POST /a", "Content-Length: 5", "Expect: 100-continue"))
    local sock <close> = upstream:accept()
    check(not head_of(sock):find "Expect")
    equal(client:recv_until "\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n")
    client:send "hello"
    equal(sock:recv(5), "hello")
    sock:send(ok "")
    equal(client:read_reply().status, 200)
end)

-- promise: docs/proxy.md: If the upstream replies before it has read the whole request, the proxy passes the reply
-- on, and stops sending.
test("an early reply is passed on", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    local client <close> = server:connect()
    client:send(request("POST /a", "Content-Length: 500000000") .. ("x"):rep(10000))
    local sock <close> = upstream:accept()
    head_of(sock)
    sock:send "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    equal(client:read_reply().status, 413)
end)

-- promise: docs/proxy.md: A reply that begins while more than 64 KiB of the request's body are unread, or while the end of
-- a chunked body is unread, says `Connection: close`.
test("a connection that closes after an early reply says so, and others are kept", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for framing, is_kept in pairs{["Content-Length: 200000"] = false, ["Transfer-Encoding: chunked"] = false,
                                  ["Content-Length: 60000"] = true} do
        local client <close> = server:connect()
        client:send(request("POST /a", framing) .. "3\r\nabc\r\n")
        local sock <close> = upstream:accept()
        head_of(sock)
        sock:send(ok "no")
        local reply = client:read_reply()
        equal(reply.body, "no")
        equal(reply.headers.connection, not is_kept and "close" or nil, framing)
        if is_kept then
            client:send(("x"):rep(60000 - 8) .. request "GET /b")
            local other <close> = upstream:accept()
            check(head_of(other):find "^GET /b ")
            other:send(ok "b")
            equal(client:read_reply().body, "b")
        end
    end
end)

-- promise: docs/proxy.md: The same happens if the upstream closes its connection after the reply, with the rest of
-- the request unread.
test("an early reply of an upstream that closes is passed on", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for _ = 1, 20 do
        local client <close> = server:connect()
        client:send(request("POST /a", "Content-Length: 500000000"))
        client:send_some(("x"):rep(4000000), 0.05)
        local sock <close> = upstream:accept()
        sock:send "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
        sock:close()
        equal(client:read_reply().status, 413)
    end
end)

-- promise: docs/proxy.md: The proxy never sends a POST twice, and never a request with a body that passes in parts.
test("an upstream that closes its connections: no GET fails, and no POST arrives twice", function()
    local app <close> = script.start([[
        local seen = {}
        return function(req)
          local id = req.query.id
          if req.path == "/seen" then return tostring(seen[id] or 0) end
          if req.method == "POST" then seen[id] = (seen[id] or 0) + 1 end
          return "ok"
        end
    ]], "--idle-timeout", "1ms")
    local server <close> = httpd.start("--proxy", "/=http://127.0.0.1:" .. app.port)
    local client <close> = server:connect()
    for i = 1, 300 do
        wire.sleep(i % 4 * 0.0005)
        client:send(request("GET /" .. i))
        equal(client:read_reply().status, 200)
        client:send(request("POST /?id=" .. i, "Content-Length: 2") .. "ab")
        client:read_reply()
    end
    for i = 1, 300 do
        client:send(request("GET /seen?id=" .. i))
        check(tonumber(client:read_reply().body) <= 1, i)
    end
end)

-- promise: docs/proxy.md: An address that fails `max_fails` times within `fail_timeout_ms` is left out for `fail_timeout_ms`.
test("one of three servers is killed: no request after it fails", function()
    local apps = {http.echo(), http.echo(), http.echo()}
    local server <close> = with_config(([[return { upstreams = { app = {
        servers = { "127.0.0.1:%d", "127.0.0.1:%d", "127.0.0.1:%d" }, fail_timeout = "1h" } },
        routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(apps[1].port, apps[2].port, apps[3].port))
    local client <close> = server:connect()
    local function ask(number, method)
        for _ = 1, number do
            client:send(request(method .. " /", method == "POST" and "Content-Length: 0" or nil))
            equal(client:read_reply().status, 200)
        end
    end
    ask(30, "GET")
    apps[2].proc:signal "KILL"
    apps[2].proc:wait(20)
    ask(30, "GET")
    ask(30, "POST")
    httpd.wait_until(function()
        return server.proc:errors():find(("127.0.0.1:%d failed 3 times, and is left out"):format(apps[2].port), 1, true)
    end, "the line in the log")
    for _, i in ipairs{1, 3} do
        apps[i].proc:signal "TERM"
        apps[i].proc:wait(20)
    end
end)

-- promise: docs/proxy.md: Each failure is a line in the log, with the address and the reason
test("a failure is answered, and logged with its address and reason", function()
    local upstream = wire.listen("127.0.0.1", 0)
    local port = upstream:port()
    local server <close> = start(upstream)
    upstream:close()
    local reply = http.ask(server, request "GET /a")
    equal(reply.status, 502)
    httpd.wait_until(function()
        return server.proc:errors():find(("127.0.0.1:%d: Connection refused: GET /a is answered 502"):format(port), 1, true)
    end, "the line in the log")
end)

-- promise: docs/proxy.md: Each failure is a line in the log, with the address and the reason, and the [id of the
-- request](observability.md#ids-of-requests), if requests have ids. The line begins with the name of the upstream,
-- unless the name is the address itself, as with `--proxy` and URLs:
test("a failure's line has the request's id, and the address once", function()
    local upstream = wire.listen("127.0.0.1", 0)
    local port = upstream:port()
    local route <close> = with_config(([[return { routes = { ["/{rest...}"] = {
        proxy = "http://127.0.0.1:%d/v1" } } }]]):format(port), "--request-id", "X-Id")
    local option <close> = start(upstream, "--request-id", "X-Id")
    upstream:close()
    for _, server in ipairs{route, option} do
        local reply = http.ask(server, request "GET /a")
        local line = (" %s 127.0.0.1:%d: Connection refused: GET /a is answered 502\n"):format(reply.headers["x-id"], port)
        httpd.wait_until(function() return server.proc:errors():find(line, 1, true) end, "the line in the log")
    end
end)

-- promise: docs/proxy.md: Other paths, and an empty host, are refused when the program starts, and by --check.
test("a path that is none, and an empty host, are refused", function()
    local bad = {"/v1?a", "/v1#a", "/v 1", "/v\t1", "/v\n1", "/v1//a", "/v1/../a", "/v%31", "/\195\164", "v1"}
    local function refused(says, route)
        local path = os.tmpname()
        local file <close> = assert(io.open(path, "w"))
        file:write(('return { routes = { ["/a/{r...}"] = %s } }'):format(route))
        file:close()
        cli.check_refused(says, "sxe-httpd", "-p", "0", "--config", path)
        cli.check_refused(says, "sxe-httpd", "-p", "0", "--config", path, "--check")
        os.remove(path)
    end
    for _, path in ipairs(bad) do
        refused("it must be a path such as", ('{ proxy = "http://127.0.0.1:1", path = %q }'):format(path))
    end
    refused("it must be a URL with a path", '{ proxy = "http://127.0.0.1:1/v1?a" }')
    refused("host: it is ; it must be a host", '{ proxy = "http://127.0.0.1:1", host = "" }')
end)

-- promise: docs/httpd.1: Send requests for this path, and for all paths below it, on to the server at
test("a path of --proxy that cannot be is refused, by --check too", function()
    for _, check in ipairs{false, true} do
        local args = {"sxe-httpd", "-p", "0", check and "--check" or "--plan"}
        local function refused(says, ...)
            local all = table.move({...}, 1, select("#", ...), #args + 1, table.move(args, 1, #args, 1, {}))
            cli.check_refused(says, table.unpack(all))
        end
        for _, path in ipairs{"/a?b", "/a#b", "/a b", "/a\nb", "/<a>", "/{a}", "/a*", "/a//b", "a"} do
            refused("it must be PATH=URL", "--proxy", path .. "=http://127.0.0.1:1")
        end
        refused("it must be a URL with a path", "--proxy", "/a=http://127.0.0.1:1/b?c")
        refused("cannot be routed: * /a", "--proxy", "/a=http://127.0.0.1:1", "--proxy", "/a/=http://127.0.0.1:2")
    end
end)

-- A certificate for 127.0.0.1 and app.internal, and its key; nil: there is no openssl.
local function make_certificate()
    local base = os.tmpname()
    local cert, key = base .. ".pem", base .. ".key"
    local is_made = os.execute(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s -out %s "
        .. "-days 2 -subj /CN=a -addext subjectAltName=DNS:app.internal,IP:127.0.0.1 >/dev/null 2>&1"):format(key, cert))
    os.remove(base)
    return is_made and cert, key
end

-- promise: docs/proxy.md: The proxy verifies a server's certificate: it must lead to an authority of the system, be
-- valid at this time, and have the server's host as a name or an address. A refused server gets no byte of the
-- request, and the line in the log says why
test("TLS to an upstream: its certificate is verified, by its authority and its name", function()
    local cert, key = make_certificate()
    if not cert or wire.spawn{wire.program("sxe-httpd"), "--tls-dev", "--check"}:wait(20) ~= 0 then
        print "skipped: upstreams with TLS, because openssl is not installed, or not built in"
        return
    end
    local app <close> = wire.spawn{wire.program("sxe-httpd"), "-p", "0", "--tls-cert", cert, "--tls-key", key, "--header", "X-App: 1"}
    local port = assert((app:line(60) or ""):match ":(%d+)/$", "sxe-httpd does not listen")
    local function ask(status, says, ...)
        local server <close> = httpd.start("--proxy", "/a=https://127.0.0.1:" .. port, ...)
        local reply = http.ask(server, request "GET /a")
        equal(reply.status, status)
        equal(reply.headers["x-app"], status == 200 and "1" or nil)
        if says then
            httpd.wait_until(function() return server.proc:errors():find(says, 1, true) end, says)
        end
    end
    ask(200, nil, "--proxy-tls-ca", cert)
    ask(200, nil, "--proxy-tls-ca", cert, "--proxy-tls-name", "app.internal")
    ask(200, nil, "--proxy-tls-insecure")
    ask(502, ": self-signed: ", "--proxy-tls-name", "app.internal")
    ask(502, ": the certificate is not for b.internal, but for app.internal", "--proxy-tls-ca", cert, "--proxy-tls-name", "b.internal")
    local server <close> = with_config(([[return { upstreams = { app = { servers = "https://127.0.0.1:%s",
        tls_ca = %q, tls_name = "app.internal" } }, routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(port, cert))
    local client <close> = server:connect()
    for _ = 1, 20 do
        client:send(request("POST /a", "Content-Length: 3") .. "abc")
        equal(client:read_reply().headers["x-app"], "1")
    end
    os.remove(cert)
    os.remove(key)
end)

-- promise: docs/proxy.md: Files are read when a worker starts, as the user and in the directory of `--user` and `--chroot`;
--   `--check` reads them, too.
test("a file of authorities that is missing is found by --check", function()
    cli.check_refused("cannot speak TLS with an upstream", "sxe-httpd", "--proxy", "/a=https://127.0.0.1:1", "--proxy-tls-ca",
                      "/none", "--check")
end)

-- promise: docs/proxy.md: no reply for `first_byte_timeout_ms`
test("a server that does not reply is a 504", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = with_config(([[return { upstreams = { app = { servers = "127.0.0.1:%d",
        reply_timeout = "50ms" } }, routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(upstream:port()))
    equal(http.ask(server, request "GET /a").status, 504)
end)

-- promise: docs/proxy.md: Forwarded, X-Real-IP, and every name that starts with `X-Forwarded-` | the client's fields
-- are dropped; the proxy adds its own
test("the fields that name the client are the proxy's own", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    local client <close> = server:connect()
    client:send(request("GET /a", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4", "X_Forwarded_For: 1.2.3.4",
                        "Connection: X-Forwarded-For"))
    local sock <close> = upstream:accept()
    local head = head_of(sock)
    check(not head:find("1.2.3.4", 1, true), head)
    check(head:find("\r\nX-Forwarded-For: 127.0.0.1\r\n", 1, true), head)
end)

-- promise: docs/proxy.md: If the host has a comma, the proxy answers 400, because readers of that field would take
-- the host for a list.
test("no host is a list of two", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for _, host in ipairs{"site.example,h", "a,b:80", ","} do
        local client <close> = server:connect()
        client:send(("GET /a HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"):format(host))
        equal(client:read_reply().status, 400, host)
    end
end)

-- promise: docs/proxy.md: The proxy also drops fields whose names differ from these only by other signs than `-`
-- (`X_Forwarded_For`, `X.Forwarded.User`, `X!Real!IP`)
test("no field by which an application may know its user is the client's", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    local client <close> = server:connect()
    local fields = {}
    for _, name in ipairs{"User", "Email", "Groups", "Client-Cert", "By", "Path", "Uri", "Port", "Server", "Zork"} do
        for _, start_of_name in ipairs{"X-Forwarded-", "x-forwarded-", "X-FORWARDED-", "X_Forwarded_", "X.Forwarded.", "X!Forwarded~"} do
            fields[#fields + 1] = start_of_name .. name .. ": evil"
        end
    end
    for _, name in ipairs{"Forwarded", "FORWARDED", "X-Real-IP", "x_real_ip", "X-Real_Ip", "X.Real.IP", "X*Real!IP"} do
        fields[#fields + 1] = name .. ": evil"
    end
    client:send(request("GET /a", table.unpack(fields)))
    local sock <close> = upstream:accept()
    local head = head_of(sock)
    check(not head:find("evil", 1, true), head)
    sock:send(ok "ann")
    equal(client:read_reply().body, "ann")
end)

-- promise: docs/configuration.md: replaces the route's path up to its `{name...}`: `/api/users` becomes `/v1/users`
test("the start of a path is replaced", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = with_config(([[return { upstreams = { app = { servers = "127.0.0.1:%d" } },
        routes = { ["/api/{rest...}"] = { proxy = "app", path = "/v1" } } }]]):format(upstream:port()))
    local client <close> = server:connect()
    client:send(request "GET /api/users")
    local sock <close> = upstream:accept()
    check(head_of(sock):find "^GET /v1/users HTTP/1.1\r\n")
end)

-- promise: docs/proxy.md: A path with `%2F`, `%5C` or `%00` is answered 400, as with [files](http.md#paths).
test("an escaped slash leads past no route that guards", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = with_config(([[return { upstreams = { app = { servers = "127.0.0.1:%d" } }, routes = {
        ["/{rest...}"] = { proxy = "app" }, ["/admin/{rest...}"] = { status = 403 },
        ["/public/{rest...}"] = { proxy = "app", path = "/v1/" } } }]]):format(upstream:port()))
    for _, path in ipairs{
        "/admin%2Fx", "/admin%2fx", "/%2fadmin/x", "/a%2f..%2fadmin/x", "/x%2F..%2Fadmin%2Fx", "/..%2fadmin/x",
        "/a%5c..%5cadmin/x", "/admin%00/x", "/public/..%2fadmin%2fx", "/public/%2e%2e%2fadmin/x",
    } do
        equal(http.ask(server, request("GET " .. path)).status, 400, path)
    end
    for _, path in ipairs{"/admin/x", "//admin/x", "/%61dmin/x", "/public/../admin/x"} do
        equal(http.ask(server, request("GET " .. path)).status, 403, path)
    end
end)

-- promise: docs/proxy.md: A segment that begins with `.;` or `..;`, escaped or not, is answered 400, too
test("dots that an upstream finds when it takes parameters off a segment lead nowhere", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = with_config(([[return { upstreams = { app = { servers = "127.0.0.1:%d" } }, routes = {
        ["/api/{rest...}"] = { proxy = "app", path = "/v1/" } } }]]):format(upstream:port()))
    for _, path in ipairs{"/api/..;/admin", "/api/..;a=b/admin", "/api/.;/x", "/api/a;/%2e%2e;/x", "/api/..%3b/x", "/api/..;"} do
        equal(http.ask(server, request("GET " .. path)).status, 400, path)
    end
    local client <close> = server:connect()
    client:send(request "GET /api/a;b/...;/c.;d")
    local sock <close> = upstream:accept()
    check(head_of(sock):find("GET /v1/a;b/...;/c.;d HTTP/1.1\r\n", 1, true))
end)

-- promise: docs/proxy.md: Some upstreams need such paths, for example for names with a slash. `encoded_slash = true`
test("a route may send escaped slashes on", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = with_config(([[return { routes = { ["/names/{rest...}"] = {
        proxy = "http://127.0.0.1:%d", encoded_slash = true } } }]]):format(upstream:port()))
    local client <close> = server:connect()
    client:send(request "GET /names/a%2fb?c=%2F")
    local sock <close> = upstream:accept()
    check(head_of(sock):find("GET /names/a%2Fb?c=%2F HTTP/1.1\r\n", 1, true))
end)

-- promise: docs/proxy.md: Such a field replaces all fields of its name, those of the client and of the proxy: a client
-- cannot send X-User itself, nor `X_User`, `X.User` or `X!User`.
test("a route tells the upstream who asks, and a client cannot", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local users = os.tmpname()
    local file <close> = assert(io.open(users, "w"))
    file:write "bob:$6$r8Jx2aTq$w89xnjxeW6pq3gEcwM1Dh74lLJ8ZVPPWZHNIUHXRmMln8l75amFDKxIgIJqRB5uVtYPahO5WfC86Di1S.4rVD0\n"
    file:flush()
    local server <close> = with_config(([[return { routes = {
        ["/in/{rest...}"] = { proxy = "http://127.0.0.1:%d", passwords = %q, request_header = { "X-User: {user}",
            "X-Id: <{request_id}>", "X-Client: {client}", "X-App: shop", "Authorization:" } },
        ["/out/{rest...}"] = { proxy = "http://127.0.0.1:%d", request_header = "X-User: {user}" } } }]]):format(
        upstream:port(), users, upstream:port()))
    local forged = "X-User: root\r\nX_User: root\r\nX!User: root\r\nx.user: root\r\nX-Client: 1.2.3.4"
    local client <close> = server:connect()
    client:send(request("GET /in/a", "Authorization: Basic Ym9iOmh1bnRlcjI=", forged)) -- bob:hunter2
    local sock <close> = upstream:accept()
    local head = head_of(sock)
    for _, line in ipairs{"X-User: bob", "X-Client: 127.0.0.1", "X-App: shop"} do
        check(head:find("\r\n" .. line .. "\r\n", 1, true), head)
    end
    check(head:find "\r\nX%-Id: <%x+>\r\n", head)
    check(not head:find "root" and not head:find "1.2.3.4" and not head:find "Authorization", head)
    sock:send(ok "ann")
    equal(client:read_reply().body, "ann")
    client:send(request("GET /out/a", forged))
    head = head_of(sock)
    check(head:find("^GET /out/a ") and not head:lower():find "x.user", head)
    os.remove(users)
end)

-- promise: docs/configuration.md: A name that cannot be looked up does not prevent a worker from starting
test("a name that is not found leaves the rest of the site as it is", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = with_config(([[return { upstreams = { app = { servers = { "a..b:1", "127.0.0.1:%d" } } },
        routes = { ["/app"] = { proxy = "app" }, ["/gone"] = { proxy = "http://a..b:1" },
        ["/here"] = { status = 204 } } }]]):format(upstream:port()))
    equal(http.ask(server, request "GET /here").status, 204)
    equal(http.ask(server, request "GET /gone").status, 502)
    local client <close> = server:connect()
    client:send(request "GET /app")
    local sock <close> = upstream:accept()
    head_of(sock)
    sock:send(ok "ann")
    equal(client:read_reply().body, "ann")
end)

-- promise: docs/proxy.md: `--proxy` cannot be combined with the routes of a configuration file, because it would add
-- its path to each site, without the passwords of the site.
test("--proxy beside routes is refused", function()
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write('return { routes = { ["/api/{r...}"] = { status = 403 } } }')
    file:close()
    cli.check_refused("--proxy does not go with routes", "sxe-httpd", "-p", "0", "--config", path, "--proxy",
                      "/api=http://127.0.0.1:1")
    os.remove(path)
end)

-- What the process of --admin at a place shows, sooner or later.
local function admin_of(place)
    local admin = {}

    local function shown(path)
        local sock <close> = wire.connect(place)
        sock:send("GET " .. path .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sock:recv_all()
    end

    function admin.has(path, line)
        httpd.wait_until(function() return shown(path):find(line, 1, true) end, line)
    end

    function admin.has_metric(name, port, value)
        admin.has("/metrics", ('sxe_upstream_%s{upstream="app",address="127.0.0.1:%d"} %d\n'):format(name, port, value))
    end
    return admin
end

-- promise: docs/observability.md: | `sxe_upstream_requests_total` | counter | requests that were sent to an `address`
-- of an `upstream`, including those sent again |
test("/metrics and /status.json show the requests, failures and retries of each address", function()
    local good <close> = wire.listen("127.0.0.1", 0)
    local bad = wire.listen("127.0.0.1", 0)
    local ports = {good:port(), bad:port()}
    bad:close()
    local place = os.tmpname() .. ".sock"
    local server <close> = with_config(([[return { upstreams = { app = { servers = { "127.0.0.1:%d", "127.0.0.1:%d" } } },
        routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(ports[2], ports[1]), "--admin", place)
    local admin = admin_of(place)
    local client <close> = server:connect()
    client:send(request "GET /a")
    local sock <close> = good:accept()
    head_of(sock)
    sock:send(ok "ann")
    equal(client:read_reply().body, "ann")
    local metric = admin.has_metric
    metric("requests_total", ports[1], 1)
    metric("failures_total", ports[1], 0)
    metric("requests_total", ports[2], 1)
    metric("failures_total", ports[2], 1)
    metric("retries_total", ports[2], 1)
    metric("connections", ports[1], 1)
    metric("connections", ports[2], 0)
    metric("active_requests", ports[1], 0)
    metric("down", ports[2], 0)
    admin.has("/status.json", ('"upstreams":[{"upstream":"app","address":"127.0.0.1:%d","requests":1,"failures":1,"retries":1,'
        .. '"active":0,"connections":0,"down_workers":0}'):format(ports[2]))
end)

-- promise: docs/observability.md: requests that were sent to an `address` of an `upstream`, including those sent again
test("a request that is sent again to the same address is one more", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local place = os.tmpname() .. ".sock"
    local server <close> = with_config(([[return { upstreams = { app = { servers = { "127.0.0.1:%d" } } },
        routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(upstream:port()), "--admin", place)
    local client <close> = server:connect()
    client:send(request "GET /a")
    local sock = upstream:accept()
    head_of(sock)
    sock:send(ok "first")
    equal(client:read_reply().body, "first")
    client:send(request "GET /b")
    head_of(sock)
    sock:close()
    local other <close> = upstream:accept()
    head_of(other)
    other:send(ok "again")
    equal(client:read_reply().body, "again")
    admin_of(place).has_metric("retries_total", upstream:port(), 1)
    admin_of(place).has_metric("requests_total", upstream:port(), 3)
end)

-- promise: docs/proxy.md: If the upstream answers 101, the client gets 101, and then bytes pass in both directions
-- until one end closes. The other end gets the bytes that are in transit, and its connection closes, too.
test("a WebSocket passes, in both directions, and ends with either end", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for _, way in ipairs{"client", "server"} do
        local client <close> = server:connect()
        client:send(request("GET /chat", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: k",
                            "Sec-WebSocket-Version: 13"))
        local sock <close> = upstream:accept()
        local head = head_of(sock):lower()
        check(head:find("\r\nupgrade: websocket\r\n", 1, true) and head:find("\r\nconnection: upgrade\r\n", 1, true), head)
        sock:send "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nfirst"
        local answer = client:recv_until "\r\n\r\n"
        check(answer:find("^HTTP/1.1 101 .*\r\nSec%-WebSocket%-Accept: a\r\n"), answer)
        equal(client:recv(5), "first")
        local data = ("0123456789"):rep(20000)
        client:send(data)
        equal(sock:recv(#data), data)
        sock:send(data)
        equal(client:recv(#data), data)
        local ends = way == "client" and {client, sock} or {sock, client}
        ends[1]:send "bye"
        ends[1]:close()
        equal(ends[2]:recv_all(), "bye")
    end
end)

local function open_websocket(server, upstream)
    local client = server:connect()
    client:send(request("GET /chat", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: k",
                        "Sec-WebSocket-Version: 13"))
    local sock = upstream:accept()
    head_of(sock)
    sock:send "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\n"
    check(client:recv_until("\r\n\r\n"):find "^HTTP/1.1 101 ")
    return client, sock
end

local function check_passes(client, sock)
    client:send "ping"
    equal(sock:recv(4), "ping")
    sock:send "pong"
    equal(client:recv(4), "pong")
end

-- promise: docs/proxy.md: After a reload, an upgrade or SIGTERM, open WebSockets, and the old worker, continue for
-- `--stop-timeout`; then they end.
test("WebSockets go on after a reload and SIGTERM, until their end or --stop-timeout", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    for _, signal in ipairs{"HUP", "USR2", "TERM"} do
        local server = start(upstream, "-w", "1", "--stop-timeout", "10m")
        local client, sock = open_websocket(server, upstream)
        local old = workers.await(server, 1)
        server.proc:signal(signal)
        local pid
        if signal == "HUP" then
            workers.await(server, 2)
        elseif signal == "USR2" then
            httpd.wait_until(function()
                pid = server.proc:errors():match "process (%d+) serves in place of this one"
                return pid
            end, "the new program serves")
        else
            httpd.wait_until(function() return not pcall(wire.connect, "127.0.0.1", server.port) end, "no place is open")
        end
        for _ = 1, 20 do check_passes(client, sock) end
        client:close()
        equal(sock:recv_all(), "")
        sock:close()
        if signal == "HUP" then
            workers.await(server, 1, old)
            server:stop()
        else
            equal(server.proc:wait(300), 0, server.proc:errors())
        end
        if pid then
            workers.kill(tonumber(pid), "TERM")
            httpd.wait_until(function() return not pcall(wire.connect, "127.0.0.1", server.port) end, "its end")
        end
    end
    local server = start(upstream, "-w", "1", "--stop-timeout", "1")
    local client, sock = open_websocket(server, upstream)
    check_passes(client, sock)
    server.proc:signal "TERM"
    equal(client:recv_all(), "")
    equal(server.proc:wait(300), 0)
    client:close()
    sock:close()
end)

local UPGRADE <const> = {"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: k", "Sec-WebSocket-Version: 13"}

-- The ways in which a test can be a client of another address: its options, and the PROXY header and fields of a client.
local WAYS <const> = {
    {options = {"--proxy-from", "127.0.0.1"}, header = "PROXY TCP4 192.0.2.%d 192.0.2.200 1 2\r\n", fields = {}},
    {options = {"--trust-from", "127.0.0.1", "--forwarded", "x-forwarded"}, header = "",
     fields = {"X-Forwarded-For: 192.0.2.%d"}},
}

-- Connect as the client of that number, and send a request.
local function ask_as(server, way, number, line, ...)
    local sock = server:connect()
    local fields = {...}
    for i, field in ipairs(way.fields) do table.insert(fields, i, (field:format(number))) end
    sock:send(way.header:format(number) .. request(line, table.unpack(fields)))
    return sock
end

-- promise: docs/operations.md: `--connections-per-address` counts the connections of a client at all workers, and its
-- [WebSockets](proxy.md#websockets) as long as they are open.
test("a WebSocket counts for its client's address until it ends, in all workers", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local config = ([[return { upstreams = { app = { servers = "127.0.0.1:%d", websockets = 20 } },
        routes = { ["/chat"] = { proxy = "app" }, ["/"] = { status = 200, body = "here" } } }]]):format(upstream:port())
    for _, way in ipairs(WAYS) do
        local server <close> = with_config(config, "-w", "2", "--connections-per-address", "3", table.unpack(way.options))
        local function open(number)
            local client = ask_as(server, way, number, "GET /chat", table.unpack(UPGRADE))
            local sock = upstream:accept()
            head_of(sock)
            sock:send "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
            check(client:recv_until("\r\n\r\n"):find "^HTTP/1.1 101 ")
            return client, sock
        end
        local function is_refused(number, line, ...)
            local sock <close> = ask_as(server, way, number, line, ...)
            return sock:read_reply().status == 503
        end
        local ends = {}
        for i = 1, 3 do ends[i] = {open(1)} end
        for _ = 1, 4 do
            check(is_refused(1, "GET /chat", table.unpack(UPGRADE)))
            check(is_refused(1, "GET /"))
        end
        check(not is_refused(2, "GET /"))
        ends[4] = {open(2)}
        for i = 1, 2 do -- the client ends the first, the upstream the second
            ends[i][i]:close()
            equal(ends[i][3 - i]:recv_all(), "")
            ends[i][3 - i]:close()
        end
        httpd.wait_until(function() return not is_refused(1, "GET /") end, "WebSockets that ended count no longer")
        for i = 3, 4 do
            for _, sock in ipairs(ends[i]) do sock:close() end
        end
    end
end)

-- promise: docs/proxy.md: Until it ends, a WebSocket is one of the server's `--connections`, and counts for its client's
-- `--connections-per-address`.
test("a WebSocket has the place of a connection, and gives it to nobody", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream, "-w", "1", "-c", "2")
    local clients, socks = {}, {}
    for i = 1, 2 do clients[i], socks[i] = open_websocket(server, upstream) end
    for _ = 1, 5 do
        local refused <close> = server:connect()
        equal(refused:read_reply().status, 503)
    end
    for i = 1, 2 do check_passes(clients[i], socks[i]) end
    clients[1]:close()
    equal(socks[1]:recv_all(), "")
    socks[1]:close()
    local client, sock = open_websocket(server, upstream)
    for _, last in ipairs{client, sock, clients[2], socks[2]} do last:close() end
end)

-- Start a server whose "/chat" is that of the upstream; returns what admin_of does, too.
local function start_counting(upstream)
    local place = os.tmpname() .. ".sock"
    local server = with_config(([[return { upstreams = { app = { servers = "127.0.0.1:%d" } },
        routes = { ["/chat"] = { proxy = "app" } } }]]):format(upstream:port()), "-w", "1", "--stats", "/stats", "--admin", place,
        "--idle-timeout", "10m")
    return server, admin_of(place)
end

-- promise: docs/observability.md: | `sxe_connections` | gauge | open connections of clients, WebSockets included |
test("sxe_connections counts WebSockets", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close>, admin = start_counting(upstream)
    local idle <close> = server:connect()
    idle:send(request "GET /stats")
    equal(idle:read_reply().status, 200)
    local clients, socks = {}, {}
    for i = 1, 3 do clients[i], socks[i] = open_websocket(server, upstream) end
    admin.has("/metrics", "\nsxe_connections 4\n")
    for i = 1, 3 do
        clients[i]:close()
        socks[i]:close()
    end
    admin.has("/metrics", "\nsxe_connections 1\n")
end)

-- promise: docs/lua-httpd.md: `connections` counts the open connections of HTTP clients, WebSockets included, and none of
-- those to other servers.
test("the connections of --stats are those of clients, WebSockets included", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start_counting(upstream)
    local idle <close> = server:connect()
    local function check_connections(number)
        idle:send(request "GET /stats")
        local body = idle:read_reply().body
        check(body:find(('"connections":%d,'):format(number), 1, true), body)
    end
    check_connections(1)
    local clients, socks = {}, {}
    for i = 1, 3 do clients[i], socks[i] = open_websocket(server, upstream) end
    check_connections(4)
    for i = 1, 3 do
        clients[i]:close()
        equal(socks[i]:recv_all(), "")
        socks[i]:close()
    end
    check_connections(1)
end)

-- promise: docs/proxy.md: Requests for other protocols (`h2c`), or for several, and those with a body, are sent on without Upgrade.
test("no other protocol gets through", function()
    local upstream <close> = wire.listen("127.0.0.1", 0)
    local server <close> = start(upstream)
    for _, protocol in ipairs{"h2c", "websocket, h2c", "h2c, websocket", "TLS/1.0"} do
        local client <close> = server:connect()
        client:send(request("GET /a", "Upgrade: " .. protocol, "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AA"))
        local sock <close> = upstream:accept()
        local head = head_of(sock)
        check(not head:find "Upgrade" and not head:find "HTTP2", head)
        sock:send "HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
        equal(client:read_reply().status, 502)
    end
end)

-- promise: docs/proxy.md: After `check_falls` failures in a row the address is left out, until `check_rises` checks
-- in a row pass; both events are lines in the log.
test("a server that fails its checks is left out, until it passes some", function()
    local app <close> = script.start([[
        local status = 200
        return function(req)
          if req.path == "/health" then return status end
          if req.path == "/set" then status = tonumber(req.query.s) end
          return "app"
        end
    ]])
    local other <close> = script.start [[return function() return "other" end]]
    local server <close> = with_config(([[return { upstreams = { app = { servers = { "127.0.0.1:%d", "127.0.0.1:%d" },
        check = "/health", check_interval = "500ms", check_falls = 2, check_rises = 1 } },
        routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(app.port, other.port))
    local function bodies()
        local seen = {}
        for _ = 1, 10 do seen[http.ask(server, request "GET /a").body] = true end
        return seen
    end
    -- On a busy machine a good check may take too long, too.
    local function wait_for_both()
        httpd.wait_until(function()
            local seen = bodies()
            return seen.app and seen.other
        end, "replies of both servers")
    end
    wait_for_both()
    http.ask(app, request "GET /set?s=503")
    httpd.wait_until(function() return not bodies().app end, "replies of the other server only")
    check(server.proc:errors():find(": it failed 2 checks, and is left out until it passes 1", 1, true))
    http.ask(app, request "GET /set?s=204")
    wait_for_both()
    check(server.proc:errors():find("passed 1 checks, and is used again", 1, true))
end)
