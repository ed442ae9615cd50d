-- SPDX-License-Identifier: MIT
-- The files of examples/deploy, each used with the program that reads it.

local admin = require "admin"
local httpd = require "httpd"
local script = require "script"

local function is_missing(program)
    local path = wire.has(program)
    if not path then
        print(("skipped: examples/deploy with %s, because it is not installed"):format(program))
    end
    return not path
end

-- A copy of examples/deploy/NAME in which each pattern, which must occur, is replaced.
local function adapt(name, changes)
    local from <close> = assert(io.open("examples/deploy/" .. name))
    local text, path = from:read("a"), os.tmpname()
    for pattern, replacement in pairs(changes) do
        local count
        text, count = text:gsub(pattern, replacement)
        equal(count, 1, pattern .. " in " .. name)
    end
    local to <close> = assert(io.open(path, "w"))
    to:write(text)
    return path
end

-- Send one request to the proxy on a new connection.
local function ask(port, fields)
    local sock <close> = wire.connect("127.0.0.1", port)
    sock:send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" .. (fields or "") .. "\r\n")
    return sock:read_reply()
end

-- promise: docs/operations.md: You can restart the servers one after the other: no GET fails.
test("haproxy.cfg: servers are ended and started again, and each request is answered", function()
    if is_missing "haproxy" then return end
    local front <close> = wire.listen("127.0.0.1", 0)
    local options = {"--proxy-from", "127.0.0.1"}
    local one = admin.start(table.unpack(options))
    local two = admin.start(table.unpack(options))
    local path = adapt("haproxy.cfg", {
        ["bind :8080"] = "bind fd@3",
        ["timeout connect 5s"] = "timeout connect 60s\n    timeout check 60s", -- longer, for a busy machine
        ["127%.0%.0%.1:8001 port 9001"] = ("127.0.0.1:%d port %d"):format(one.port, one.admin_port),
        ["127%.0%.0%.1:8002 port 9002"] = ("127.0.0.1:%d port %d"):format(two.port, two.admin_port)})
    local proxy <close> = wire.spawn{wire.has "haproxy", "-db", "-f", path, pass = {front}}

    local function check_answers(number)
        for i = 1, number do
            local reply = ask(front:port())
            equal(reply.status, 200, ("request %d: %s"):format(i, proxy:errors()))
            equal(reply.body, httpd.BODY)
        end
    end
    check_answers(20)
    for _, old in ipairs{one, two} do
        local port, admin_port = tostring(old.port), tostring(old.admin_port)
        old.proc:signal("TERM")
        check_answers(20)
        equal(old.proc:wait(60), 0)
        check_answers(20)
        local new = admin.start_at(admin_port, "-p", port, table.unpack(options))
        if old == one then one = new else two = new end
        -- HAProxy must find the restarted server before the other one is ended.
        httpd.wait_until(function()
            check_answers(1)
            return new:get("/metrics"):find('http_response_status_code="200"', 1, true)
        end, "HAProxy uses the server again")
    end
    proxy:signal("TERM")
    proxy:wait(60)
    one:stop()
    two:stop()
    os.remove(path)
end)

-- promise: docs/operations.md: It tells the server the client's address, scheme and host in fields that nginx sets
-- itself, whatever a client sends in them.
test("nginx.conf: kept connections, bodies, the client's address", function()
    if is_missing "nginx" then return end
    local front <close> = wire.listen("127.0.0.1", 0)
    local server <close> = script.start([[
        return function(req) return req.peer .. " " .. req.scheme .. " " .. req.host .. " " .. #req:body() end]],
        "--trust-from", "127.0.0.1", "--forwarded", "x-forwarded")
    local path = adapt("nginx.conf", {
        ["listen 8080;"] = ("listen 127.0.0.1:%d;"):format(front:port()),
        ["127%.0%.0%.1:8001;"] = ("127.0.0.1:%d;"):format(server.port),
        ["pid nginx%.pid;"] = ("pid %s/nginx.pid;"):format(server.directory)})
    local proxy <close> = wire.spawn{wire.has "nginx", "-c", path, "-g", "daemon off;", pass = {front}, env = {NGINX = "3;"}}
    equal(ask(front:port(), "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n").body,
          "127.0.0.1 http a 0")
    for _ = 1, 30 do
        equal(ask(front:port(), "Content-Length: 0\r\n").body, "127.0.0.1 http a 0")
    end
    local sock <close> = wire.connect("127.0.0.1", front:port())
    sock:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" .. ("x"):rep(100000))
    equal(sock:read_reply().body, "127.0.0.1 http a 100000")
    proxy:signal("TERM")
    proxy:wait(60)
    os.remove(path)
end)

-- promise: docs/operations.md: Its exposure is below 2.0, says `systemd-analyze security --offline=true examples/deploy/sxe-httpd.service`.
test("sxe-httpd.service: the exposure that systemd computes", function()
    if is_missing "systemd-analyze" then return end
    local proc <close> = wire.spawn{wire.has "systemd-analyze", "security", "--offline=true", "--threshold=20",
                                    "examples/deploy/sxe-httpd.service"}
    local output = proc:output()
    equal(proc:wait(60), 0, output .. proc:errors())
end)

test("sxe-httpd.service: what --confine calls is allowed", function()
    for _, unit in ipairs{ "examples/deploy/sxe-httpd.service", "packaging/debian/sxe-httpd.service" } do
        local file <close> = assert(io.open(unit))
        local allowed = file:read "a"
        for _, call in ipairs{ "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self" } do
            check(allowed:find("\nSystemCallFilter=[^\n]*%f[%w_]" .. call .. "%f[^%w_]"), call)
        end
    end
end)
