-- SPDX-License-Identifier: MIT
--
-- Passwords of routes, by docs/configuration.md, with hashes that libcrypt computes.

local admin = require "admin"
local as_root = require "as-root"
local http = require "http"
local httpd = require "httpd"
local workers = require "workers"

-- LeakSanitizer cannot look into a process that has changed its user.
local ENV = {ASAN_OPTIONS = "detect_leaks=0"}

local ANN <const> = "ann:$2y$05$lnm.bmXc05EGTAvym94RlO54ODRsK16Aepx536W.6YPv73mlF4AUm\n"
local BOB <const> = "bob:$6$r8Jx2aTq$w89xnjxeW6pq3gEcwM1Dh74lLJ8ZVPPWZHNIUHXRmMln8l75amFDKxIgIJqRB5uVtYPahO5WfC86Di1S.4rVD0\n"

local directory <const> = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir -m 755 " .. directory))

local function write(name, text)
    local path = directory .. "/" .. name
    local file <close> = assert(io.open(path .. ".new", "w"))
    file:write(text)
    file:close()
    assert(os.rename(path .. ".new", path))
    return path
end

local users <const> = directory .. "/users"
write("users", ANN .. BOB)
local script <const> = write("app.lua", [[return function(req) return (req.user or "nobody") .. #req:body() end]])
local site <const> = write("site.lua", ([[return { lua = %q, access_log = %q, routes = {
    ["/script"] = { script = true, passwords = %q },
    ["/text"] = { status = 200, body = "text", passwords = %q, realm = "The house" } } }]]):format(script,
    directory .. "/log", users, users))
-- A configuration without a script, because the user of --user may not be able to read one.
local plain <const> = write("plain.lua", ([[return { routes = {
    ["/text"] = { status = 200, body = "text", passwords = %q } } }]]):format(users))

local function base64(text)
    local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return (text:gsub("..?.?", function(group)
        local a, b, c = group:byte(1, 3)
        local bits = a << 16 | (b or 0) << 8 | (c or 0)
        local out = ""
        for i = 0, #group do
            local digit = bits >> (18 - 6 * i) & 63
            out = out .. digits:sub(digit + 1, digit + 1)
        end
        return out .. ("="):rep(3 - #group)
    end))
end

local function request(method, path, who, ...)
    local lines = {("%s %s HTTP/1.1"):format(method, path), "Host: a"}
    if who then lines[#lines + 1] = "Authorization: Basic " .. base64(who) end
    for _, line in ipairs{...} do lines[#lines + 1] = line end
    return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

local function status(server, path, who)
    return http.ask(server, request("GET", path, who, "Connection: close")).status
end

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read("a")
end

-- promise: docs/configuration.md: A route with `passwords` answers only requests that have a user and a password of
-- that file (`Authorization: Basic`, RFC 7617); other requests get 401.
test("users with bcrypt and SHA-crypt hashes pass, others do not", function()
    local server <close> = httpd.start("--config", site)
    equal(status(server, "/text", "ann:secret"), 200)
    equal(status(server, "/text", "bob:hunter2"), 200)
    for _, who in ipairs{"ann:hunter2", "ann:", ":secret", "ann:secre", "ann:secrets", "Ann:secret", "zed:secret", "an:secret"} do
        equal(status(server, "/text", who), 401)
    end
    local reply = http.ask(server, request("GET", "/text", nil, "Connection: close"))
    equal(reply.status, 401)
    equal(reply.headers["www-authenticate"], 'Basic realm="The house", charset="UTF-8"')
end)

-- promise: docs/configuration.md: A script finds the user's name in [`req.user`](lua-handlers.md#the-request); the
-- access log has it as well.
test("the script and the log know the user", function()
    do
        local server <close> = httpd.start("--config", site)
        equal(http.ask(server, request("GET", "/script", "ann:secret", "Connection: close")).body, "ann0")
        equal(status(server, "/script", "ann:wrong"), 401)
    end
    local log = read(directory .. "/log")
    check(log:find('127.0.0.1 - ann [', 1, true) and log:find('"GET /script HTTP/1.1" 401', 1, true), log)
    check(not log:find('- ann %[[^\n]*401'), log)
end)

-- promise: docs/configuration.md: The server reads the body of a refused request, or closes the connection, so that
-- the body cannot be taken for another request.
test("the body of a refused request is not read as a request", function()
    local server <close> = httpd.start("--config", site)
    local inner = request("GET", "/text", "ann:secret")
    for _, path in ipairs{"/script", "/text"} do
        local sock <close> = server:connect()
        sock:send(request("POST", path, "ann:wrong", "Content-Length: " .. #inner) .. inner
                  .. request("GET", "/text", "bob:hunter2", "Connection: close"))
        local all = sock:recv_all()
        equal(select(2, all:gsub("HTTP/1.1 401", "")), 1)
        equal(select(2, all:gsub("HTTP/1.1 200", "")), 1)
    end
end)

-- promise: docs/configuration.md: When the file changes, new processes read it within about a second, with the
-- configuration [that was loaded last](#a-new-configuration-without-an-interruption). If the file is bad, the earlier
-- users stay, and the log says why.
test("a changed file is read again, and a bad one is not used", function()
    local server <close> = httpd.start("--config", site)
    equal(status(server, "/text", "ann:secret"), 200)
    write("users", BOB)
    httpd.wait_until(function() return status(server, "/text", "ann:secret") == 401 end, "ann to be forgotten")
    write("users", ANN .. "cas:plain\n")
    httpd.wait_until(function() return server.proc:errors():find(
        ":2: the password of 'cas' is a DES hash or a plain password", 1, true) end, "a message")
    equal(status(server, "/text", "bob:hunter2"), 200)
    equal(status(server, "/text", "ann:secret"), 401)
    write("users", ANN .. BOB)
    httpd.wait_until(function() return status(server, "/text", "ann:secret") == 200 end, "ann to be back")
end)

-- promise: docs/configuration.md: They answer one more request on each open connection, for two seconds at most. Then
-- they close connections that wait for a request; `--stop-timeout` is for requests in progress only.
test("open connections do not keep the earlier users", function()
    for _, config in ipairs{site, plain} do
        local server <close> = httpd.start("--config", config, "--stop-timeout", "3600", "--idle-timeout", "3600")
        local fresh <close> = server:connect()
        local busy <close> = server:connect()
        local kept <close> = server:connect() -- its reply shows that the others are accepted, too
        kept:send(request("GET", "/text", "ann:secret"))
        check(kept:recv_until("\r\n\r\ntext"):find("^HTTP/1.1 200"))
        busy:send(request("POST", "/text", "ann:secret", "Content-Length: 2") .. "a")
        write("users", BOB)
        httpd.wait_until(function() return status(server, "/text", "ann:secret") == 401 end, "ann to be forgotten")
        equal(kept:recv_all(), "")
        equal(fresh:recv_all(), "")
        busy:send("b")
        check(busy:recv_all():find("^HTTP/1.1 200"))
        write("users", ANN .. BOB)
    end
end)

-- promise: docs/configuration.md: A process that starts for another reason uses the text that was loaded last, for
-- example after another process has ended or a password file or a certificate has changed. So an edited file waits
-- for the signal.
test("an edited configuration waits for SIGHUP", function()
    local function edit(body, rest)
        return write("edit.lua", ([[return { routes = { ["/text"] = { status = 200, body = %q },
            ["/mine"] = { status = 200, passwords = %q } } %s]]):format(body, users, rest or "}"))
    end
    local server <close> = httpd.start("--config", edit "one", "-w", "2")
    local function body() return http.ask(server, request("GET", "/text", nil, "Connection: close")).body end
    local function await(who, code)
        httpd.wait_until(function() return status(server, "/mine", who) == code end, who .. " " .. code)
    end
    edit("two", ",")
    write("users", BOB)
    await("ann:secret", 401)
    equal(body(), "one")
    edit "two"
    write("users", ANN .. BOB)
    await("ann:secret", 200)
    local before = workers.await(server, 2)
    for i = 1, 2 do workers.kill(before[i], 9) end
    workers.await(server, 2, before)
    equal(body(), "one")
    server.proc:signal("HUP")
    httpd.wait_until(function() return body() == "two" end, "the new configuration")
    edit("three", ",")
    server.proc:signal("HUP")
    httpd.wait_until(function() return server.proc:errors():find("edit.lua:2:", 1, true) end, "its mistake")
    write("users", BOB)
    await("ann:secret", 401)
    equal(body(), "two")
    os.remove(directory .. "/edit.lua")
    write("users", ANN .. BOB)
    await("ann:secret", 200)
    equal(body(), "two")
    server.proc:signal("HUP")
    httpd.wait_until(function() return server.proc:errors():find("cannot read the configuration", 1, true) end, "a message")
    equal(body(), "two")
end)

-- promise: docs/configuration.md: If a line is bad, a message names it, and the server does not start. A user who
-- could never log in, with a control character or more than 509 bytes in the name, is a bad line, too.
test("a user who could never log in is refused", function()
    local hash = ANN:sub(5)
    local config = write("names.lua", ([[return { routes = { ["/"] = { status = 200, passwords = %q } } }]]):format(directory
        .. "/names"))
    for name, says in pairs{["a\tnn"] = "has a control character", [("a"):rep(510)] = "has more than 509 bytes"} do
        write("names", name .. ":" .. hash)
        local proc = wire.spawn{wire.program("sxe-httpd"), "--config", config, "--check"}
        equal(proc:wait(60), 2)
        check(proc:errors():find("names:1: the user's name " .. says, 1, true), proc:errors())
    end
    write("names", ("a"):rep(509) .. ":" .. hash)
    local server <close> = httpd.start("--config", config)
    equal(status(server, "/", ("a"):rep(509) .. ":"), 401)
end)

-- promise: docs/configuration.md: A changed password file may have to wait for another file, such as a certificate
-- that does not fit its key yet. The change is tried again after 1, 2, 4 seconds and so on, at most 60 apart, until
-- it is in service. The log has each reason once.
test("users can log in once the file that kept them out is corrected", function()
    local page, other = write("404.html", "none"), write("405.html", "none")
    local server <close> = httpd.start("--config", write("pages.lua", ([[return { error_page = { "404 %s", "405 %s" },
        routes = { ["/text"] = { status = 200, passwords = %q } } }]]):format(page, other, users)))
    os.remove(page)
    write("users", BOB)
    local function await(text)
        httpd.wait_until(function() return server.proc:errors():find(text, 1, true) end, text)
    end
    await(page)
    equal(status(server, "/text", "ann:secret"), 200)
    os.remove(other)
    write("404.html", "none")
    await(other) -- another attempt tells another reason
    os.remove(users) -- the file is gone for a while, and made again
    await("cannot read the file of passwords")
    write("405.html", "none")
    write("users", BOB)
    httpd.wait_until(function() return status(server, "/text", "ann:secret") == 401 end, "ann to be forgotten")
    equal(status(server, "/text", "bob:hunter2"), 200)
    equal(select(2, server.proc:errors():gsub("cannot read the error page", "")), 2) -- each once
    write("users", ANN .. BOB)
end)

-- promise: docs/configuration.md: The change is tried again after 1, 2, 4 seconds and so on, at most 60 apart, until
-- it is in service.
test("a change that waits outlives an upgrade that fails", function()
    local page = write("404.html", "none")
    local server <close> = httpd.start("--config", write("pages.lua", ([[return { error_page = "404 %s",
        routes = { ["/text"] = { status = 200, passwords = %q } } }]]):format(page, users)))
    os.remove(page)
    write("users", BOB)
    local function await(text)
        httpd.wait_until(function() return server.proc:errors():find(text, 1, true) end, text)
    end
    await(page)
    server.proc:signal("USR2")
    await("before it was ready")
    equal(status(server, "/text", "ann:secret"), 200)
    write("404.html", "none")
    httpd.wait_until(function() return status(server, "/text", "ann:secret") == 401 end, "ann to be forgotten")
    write("users", ANN .. BOB)
end)

-- promise: docs/configuration.md: Equal requests share one computation.
test("many clients at once pass", function()
    local server <close> = httpd.start("--config", site)
    local socks = {}
    for i = 1, 50 do
        socks[i] = server:connect()
        socks[i]:send(request("GET", "/text", "ann:secret", "Connection: close"))
    end
    for i = 1, 50 do
        check(socks[i]:recv_all():find("^HTTP/1.1 200"), i)
        socks[i]:close()
    end
end)

-- promise: docs/configuration.md: The file is read when a process starts, as root if root started the server. So the
-- user of `--user` need not be able to read it, and `--chroot` and `--confine` do not hide it.
as_root.test("another user, another directory and confinement do not hide the file", function()
    assert(os.execute("chmod 600 " .. users))
    for _, more in ipairs{{}, {"--chroot", directory}, {"--confine"}} do
        local server <close> = httpd.spawn{wire.program("sxe-httpd"), "-p", "0", "--config", plain, "-w", "2", "--user",
                                           "65534:65534", env = ENV, table.unpack(more)}
        local before = workers.await(server, 2)
        equal(status(server, "/text", "ann:secret"), 200)
        equal(status(server, "/text", "ann:wrong"), 401)
        server.proc:signal("HUP")
        workers.await(server, 2, before)
        equal(status(server, "/text", "ann:secret"), 200)
    end
end)

-- promise: docs/configuration.md: passwords and realm of a site apply to all its routes; passwords = false makes a
-- route public.
test("routes with passwords of their own have the realm of their site", function()
    local server <close> = httpd.start("--config", write("realm.lua", ([[return { sites = { { names = "a", realm = "Here", routes = {
        ["/mine"] = { status = 200, passwords = %q }, ["/free"] = { status = 200 } } } } }]]):format(users)))
    equal(http.ask(server, request("GET", "/mine", nil, "Connection: close")).headers["www-authenticate"],
          'Basic realm="Here", charset="UTF-8"')
    equal(status(server, "/free"), 200)
end)

-- promise: docs/configuration.md: A malformed `Authorization: Basic`, or one that occurs twice, is answered 400.
-- `Basic` without a text counts as no authorization: 401.
test("malformed credentials are refused, and the connection goes on", function()
    local server <close> = httpd.start("--config", site)
    local sock <close> = server:connect()
    sock:send(request("GET", "/text", nil, "Authorization: Basic ***")
              .. request("GET", "/text", "ann:secret", "Authorization: Basic YTpi")
              .. request("GET", "/text", "ann:se\0cret")
              .. request("GET", "/text", ("a"):rep(510) .. ":")
              .. request("GET", "/text", "ann:secret", "Connection: close"))
    local all = sock:recv_all()
    equal(select(2, all:gsub("HTTP/1.1 400", "")), 4)
    equal(select(2, all:gsub("HTTP/1.1 200", "")), 1)
    for _, line in ipairs{"Authorization: Basic", "Authorization: Basic "} do
        equal(http.ask(server, request("GET", "/text", nil, line, "Connection: close")).status, 401)
    end
end)

-- promise: docs/configuration.md: `/livez` and `/readyz` of `--admin` and the counters of `--stats` are no routes:
-- they need no password.
test("health checks and counters need no password", function()
    local server <close> = admin.start("--config", site, "--stats", "/stats")
    equal(status(server, "/stats"), 200)
    equal(status(server, "/text"), 401)
    for _, path in ipairs{"/livez", "/readyz"} do equal(server:ask("GET", path), 200) end
end)
