-- SPDX-License-Identifier: MIT
-- The admin listener, by docs/observability.md: what it answers, to which clients, and when.

local admin = require "admin"
local httpd = require "httpd"
local prometheus = require "prometheus"

local function page()
    local file <close> = assert(io.open("docs/observability.md"))
    return file:read("a")
end

local function script_of(text)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
    return path
end

-- Send one request on a new connection; the reply must have this status.
local function request(server, line, status)
    local sock <close> = server:connect()
    sock:send(line .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    local reply = sock:recv_all()
    equal(tonumber(reply:match("^HTTP/1.1 (%d+)")), status, line)
end

local function admin_of(parent)
    local children <close> = assert(io.open(("/proc/%d/task/%d/children"):format(parent, parent)))
    for pid in children:read("a"):gmatch("%d+") do
        local name <close> = io.open("/proc/" .. pid .. "/comm")
        if name and name:read() == "sxe-httpd-admin" then
            return tonumber(pid)
        end
    end
end

-- promise: docs/observability.md: `--admin [IP:]PORT` listens on 127.0.0.1 unless you give an address; `--admin
-- PATH`, with a slash in it, listens on a unix socket.
test("--admin listens at the given address, and nowhere else", function()
    do
        local server <close> = admin.start()
        equal(server.admin_ip, "127.0.0.1")
        equal(server:get("/livez"), "ok\n")
        check(not pcall(wire.connect, "127.0.0.2", server.admin_port), "an address that was not given")
    end
    do
        local server <close> = admin.start_at("127.0.0.2:0")
        equal(server.admin_ip, "127.0.0.2")
        equal(server:get("/livez"), "ok\n")
        check(not pcall(wire.connect, "127.0.0.1", server.admin_port), "the address by default")
    end
    local name = os.tmpname()
    os.remove(name)
    do
        local server <close> = admin.start_at(name)
        equal(server.admin_path, name)
        equal(server:get("/readyz"), "ready\n")
        equal((server:act("/log-level", "level=debug")), 202)
    end
    check(not io.open(name), "the socket's file is still there")
end)

-- promise: docs/observability.md: If the admin process dies, another one replaces it at the same address, and the log
-- says so.
test("the process that answers is replaced when it dies", function()
    local server <close> = admin.start("-w", "2")
    request(server, "GET /", 200)
    for _ = 1, 2 do
        local pid = admin_of(server.pid)
        check(pid, "a process of that name")
        os.execute("kill -KILL " .. pid)
        httpd.wait_until(function()
            local is_there, text = pcall(server.get, server, "/status.json")
            return is_there and text:find(("process %d, which showed the status, ended with signal 9"):format(pid), 1, true)
        end, "another process, and a line in the log")
    end
    request(server, "GET /", 200)
    equal(admin.sum(server:get("/metrics"), "sxe_http_replies_total"), 2)
end)

-- promise: docs/observability.md: An upgrade by SIGUSR2 is refused with `--admin` at a fixed address
test("an upgrade is refused if --admin has a fixed address, and the old program goes on", function()
    local name = os.tmpname()
    os.remove(name)
    local server <close> = admin.start_at(name)
    os.execute("kill -USR2 " .. server.pid)
    httpd.wait_until(function()
        return server.proc:errors():find("This one goes on serving", 1, true)
    end, "that the old program says so")
    check(server.proc:errors():find("cannot show its status at " .. name, 1, true), "the reason")
    request(server, "GET /", 200)
    equal(server:get("/readyz"), "ready\n")
    equal(admin.sum(server:get("/metrics"), "sxe_http_replies_total"), 1)
end)

-- promise: docs/observability.md: So it answers while every worker is busy or hangs, and while the server drains.
test("the admin listener answers while the only worker computes", function()
    local path = script_of("return function() local t = os.time() while os.time() < t + 3 do end end")
    local server <close> = admin.start("--lua", path, "--lua-cpu", "60")
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    for _ = 1, 20 do
        equal((server:ask("GET", "/livez")), 200)
        equal((server:ask("GET", "/metrics")), 200)
    end
    os.remove(path)
end)

-- promise: docs/observability.md: 200 when a worker is ready; 404 before, and from the moment when the server begins
-- to stop
test("readyz is 404 before the script is loaded, and while the server drains", function()
    local gate = os.tmpname()
    os.remove(gate)
    local path = script_of(([[local task = require "sxe.task"
        return function()
            while not io.open("%s") do task.sleep(0.01) end
            return "slow\n"
        end]]):format(gate))
    local server <close> = admin.start("--lua", path)
    equal(server:get("/readyz"), "ready\n")
    local sock <close> = server:connect()
    sock:send(httpd.GET)
    httpd.wait_until(function()
        return admin.sum(server:get("/metrics"), "http_server_active_requests") == 1
    end, "a request in progress")
    equal((server:act("/drain")), 202)
    httpd.wait_until(function() return server:ask("GET", "/readyz") == 404 end, "404")
    io.open(gate, "w"):close()
    check(sock:recv_all():find("slow", 1, true), "the request in progress")
    equal(server.proc:wait(20), 0)
    os.remove(gate)
    os.remove(path)
end)

-- promise: docs/observability.md: Counters continue when a worker is replaced: no sum becomes less while the server
-- runs.
test("counters go on over reloads and a crash", function()
    local path = script_of("return function(req) return tonumber(req.path:sub(2)) or 'x' end")
    local server <close> = admin.start("--lua", path)
    local requests, last = 0, 0
    for round = 1, 3 do
        request(server, "GET /", 200)
        request(server, "GET /404", 404)
        requests = requests + 2
        if round == 3 then
            local pid = server:get("/status.json"):match('"pid":(%d+)')
            os.execute("kill -KILL " .. pid)
        else
            equal((server:act("/reload")), 202)
        end
        httpd.wait_until(function()
            local text = server:get("/metrics")
            local now = admin.sum(text, "sxe_http_replies_total")
            check(now >= last, "a sum became less")
            last = now
            return admin.sum(text, "sxe_worker_starts_total") == round + 1
                   and admin.sum(text, "sxe_workers") == 1 and server:ask("GET", "/readyz") == 200
        end, "another worker, alone")
    end
    request(server, "GET /", 200)
    local text = server:get("/metrics")
    equal(admin.sum(text, "sxe_http_replies_total"), requests + 1)
    equal(admin.sum(text, "sxe_http_replies_total", 'class="4xx"'), 3)
    equal(admin.sum(text, "http_server_request_duration_seconds_count"), requests + 1)
    check(server:get("/status.json"):find("ended with signal 9", 1, true), "the crash in the log")
    os.remove(path)
end)

-- promise: docs/observability.md: A worker that a reload ends in good order has written its last values before.
test("errors of Lua in the last second of a worker are counted", function()
    local path = script_of("return function() error 'wrong' end")
    local server <close> = admin.start("--lua", path)
    for round = 1, 3 do
        for _ = 1, 5 do request(server, "GET /", 500) end
        equal((server:act("/reload")), 202)
        httpd.wait_until(function()
            local text = server:get("/metrics")
            return admin.sum(text, "sxe_worker_starts_total") == round + 1 and admin.sum(text, "sxe_workers") == 1
        end, "another worker, alone")
        equal(admin.sum(server:get("/metrics"), "sxe_lua_errors_total"), 5 * round)
    end
    os.remove(path)
end)

-- promise: docs/observability.md: `http_route` is the pattern of the route, such as `/users/{id}`, never the path; requests without a route have no such label.
test("labels of routes are patterns", function()
    local path = script_of([[local r = require "sxe.http".router()
        r:get("/users/{id}", function(req) return req.params.id end) return r]])
    local server <close> = admin.start("--lua", path)
    for id = 1, 5 do
        request(server, "GET /users/" .. id, 200)
    end
    request(server, "GET /nobody", 404)
    local text = server:get("/metrics")
    local name = "http_server_request_duration_seconds_count"
    equal(admin.sum(text, name, 'http_route="/users/{id}"'), 5)
    equal(admin.sum(text, name, "code=\"404\"}"), 1)
    check(not text:find("/users/3", 1, true), "a path")
    os.remove(path)
end)

-- promise: docs/observability.md: A worker counts 62 routes separately, and 122 combinations of route, method and
-- status. It counts further ones as `_OTHER`.
test("many routes of several workers have a limited number of labels, and no request is lost", function()
    local path = script_of([[local r = require "sxe.http".router()
        for i = 1, 100 do r:get("/r" .. i .. "/{id}", function() return "x" end) end return r]])
    local server <close> = admin.start("--lua", path)
    for i = 1, 100 do
        request(server, ("GET /r%d/7"):format(i), 200)
    end
    local text = server:get("/metrics")
    local name = "http_server_request_duration_seconds_count"
    local routes = 0
    for _ in text:gmatch("_count{[^}]*http_route=\"/r%d+/{id}\"") do
        routes = routes + 1
    end
    equal(routes, 62)
    equal(admin.sum(text, name, 'http_route="_OTHER"'), 38)
    equal(admin.sum(text, name), 100)
    os.remove(path)
end)

-- promise: docs/observability.md: A request whose client left has `error_type="client_gone"` in place of a status.
test("a client that leaves before the reply is counted as gone", function()
    local path = script_of("return function() require 'sxe.task'.sleep(600) end")
    local server <close> = admin.start("--lua", path)
    do
        local sock <close> = server:connect()
        sock:send(httpd.GET)
        httpd.wait_until(function()
            return admin.sum(server:get("/metrics"), "http_server_active_requests") == 1
        end, "a request in progress")
    end
    local text
    httpd.wait_until(function()
        text = server:get("/metrics")
        return admin.sum(text, "http_server_request_duration_seconds_count", 'error_type="client_gone"') == 1
    end, "the client is gone")
    equal(admin.sum(text, "sxe_http_replies_total", 'class="none"'), 1)
    equal(admin.sum(text, "sxe_http_replies_broken_total"), 1)
    check(not text:find("http_response_status_code", 1, true), "a status")
    os.remove(path)
end)

-- promise: docs/observability.md: reloads configuration and script, as SIGHUP does
test("reload serves the new script, and one that is wrong leaves the old one", function()
    local path = script_of("return function() return 'first' end")
    local server <close> = admin.start("--lua", path, "-w", "2")
    local function says(word)
        local sock <close> = server:connect()
        sock:send(httpd.LAST)
        return sock:recv_all():find(word, 1, true) ~= nil
    end
    local function write(text)
        local file <close> = assert(io.open(path, "w"))
        file:write(text)
    end
    check(says("first"))
    write("return function() return 'second' end")
    equal((server:act("/reload")), 202)
    httpd.wait_until(function() return says("second") end, "the new script")
    httpd.wait_until(function()
        return admin.sum(server:get("/metrics"), "sxe_workers") == 2
    end, "that the old workers are gone")
    write("return 1 +")
    equal((server:act("/reload")), 202)
    httpd.wait_until(function()
        return server:get("/status.json"):find("the version loaded before goes on serving", 1, true)
    end, "a line of the log")
    check(says("second"))
    os.remove(path)
end)

-- promise: docs/observability.md: An action needs the token in the field `X-Sxe-Token`; the token is new at each
-- start
test("an action without the token of this start is refused", function()
    local token
    do
        local server <close> = admin.start()
        token = server:token()
    end
    local server <close> = admin.start()
    for _, path in ipairs{"/drain", "/reload", "/log-level"} do
        equal((server:ask("POST", path)), 403)
        equal((server:ask("POST", path, {"X-Sxe-Token: " .. token})), 403)
        equal((server:ask("GET", path)), 405)
    end
    equal(server:get("/readyz"), "ready\n")
end)

-- promise: docs/observability.md: The server gives the token only to clients that name the host by its address or as
-- `localhost`. An action that a web page of another site sends is refused with 403.
test("pages of other sites get no token and can do nothing", function()
    local server <close> = admin.start()
    equal((server:ask("GET", "/token", {"Host: rebound.example:" .. server.admin_port})), 403)
    equal((server:ask("GET", "/token", {"Origin: http://other.example"})), 403)
    local mine = "X-Sxe-Token: " .. server:token()
    equal((server:ask("POST", "/drain", {mine, "Origin: http://other.example"})), 403)
    equal((server:ask("POST", "/drain", {mine, "Sec-Fetch-Site: cross-site"})), 403)
    equal((server:ask("POST", "/drain", {mine, "Sec-Fetch-Site: same-site"})), 403)
    equal((server:ask("POST", "/drain", {mine, "Host: rebound.example"})), 403)
    equal((server:ask("GET", "/token", {"Host: localhost:1"})), 200)
    equal(server:get("/readyz"), "ready\n")
end)

-- promise: docs/observability.md: `level=debug` in the body: all workers show lines of the log up to that level, within a second
test("the log level is changed while the server runs", function()
    local path = script_of("local log = require 'sxe.log' return function() log.debug('seen') return 'x' end")
    local server <close> = admin.start("--lua", path)
    request(server, "GET /", 200)
    equal((server:act("/log-level", "level=debug")), 202)
    httpd.wait_until(function()
        request(server, "GET /", 200)
        return server.proc:errors():find("seen", 1, true)
    end, "a line of debugging")
    os.remove(path)
end)

-- promise: docs/observability.md: the text format of Prometheus, for all processes in one reply
test("a strict reader accepts all metrics, and each family is documented", function()
    local server <close> = admin.start()
    request(server, "GET /", 200)
    request(server, "BREW /a%22b", 200)
    request(server, "GET /gone", 200)
    local documented = page()
    local families = prometheus.read(server:get("/metrics"))
    for name, family in pairs(families) do
        check(documented:find(("| `%s` | %s |"):format(name, family.type), 1, true), "not documented: " .. name)
        check(family.help, "no help: " .. name)
    end
    for name in documented:gmatch("\n| `([%l_]+)` | %l+ |") do
        check(families[name], "not there: " .. name)
    end
end)

-- Whether a program of another project accepts the metrics.
local function accepts(server, program, command)
    local name = os.tmpname()
    local file <close> = assert(io.open(name, "w"))
    file:write(server:get("/metrics"))
    file:flush()
    local proc <close> = wire.spawn{"sh", "-c", command, "sh", name}
    local output = proc:output(60)
    equal(proc:wait(60), 0, program .. ": " .. output .. proc:errors())
    os.remove(name)
end

-- promise: docs/observability.md: the text format of Prometheus, for all processes in one reply
test("promtool and the parser of the Python client accept the metrics", function()
    local server <close> = admin.start()
    request(server, "GET /", 200)
    if wire.has("promtool") then
        accepts(server, "promtool", 'promtool check metrics <"$1"')
    else
        print("skipped: promtool reads the metrics, because promtool is not installed")
    end
    if os.execute("python3 -c 'import prometheus_client' 2>/dev/null") then
        accepts(server, "python3-prometheus-client", [[python3 -c '
import sys
from prometheus_client.parser import text_string_to_metric_families as parse
assert any(f.name == "sxe_http_replies" for f in parse(open(sys.argv[1]).read()))' "$1"]])
    else
        print("skipped: the Python client's parser reads the metrics, because it is not installed")
    end
end)

-- promise: docs/observability.md: Without JavaScript the page has tables of the moment when it was loaded; rates and
-- latencies are those since the start.
test("the status page has the figures in tables", function()
    local path = script_of([[local r = require "sxe.http".router()
        r:get("/users/{id}", function(req) return req.params.id end) return r]])
    local server <close> = admin.start("--lua", path, "-w", "2")
    for id = 1, 5 do
        request(server, "GET /users/" .. id, 200)
    end
    httpd.wait_until(function()
        return server:get("/"):find('<th scope="row">/users/{id}</th><td class="n">5</td>', 1, true)
    end, "the route, and its requests")
    local page_of = server:get("/")
    check(page_of:find('<dd id="total">5</dd>', 1, true), "requests in all")
    for place = 0, 1 do
        check(page_of:find(('<th scope="row">%d</th><td class="n">'):format(place), 1, true), "worker " .. place)
    end
    os.remove(path)
end)

-- promise: docs/observability.md: A client that gets no token sees no buttons.
test("the status page has buttons only for a client that may use them", function()
    local server <close> = admin.start()
    local token = server:token()
    check(server:get("/"):find(token, 1, true), "the token in the forms")
    local _, page_of = server:ask("GET", "/", {"Host: rebound.example"})
    check(not page_of:find(token, 1, true), "the token, for another name")
    check(page_of:find('class="actions" hidden', 1, true), "no buttons")
    local status, _, reply = server:ask("POST", "/log-level", {}, "level=debug&token=" .. token)
    equal(status, 303)
    check(reply:find("\r\nLocation: /\r\n", 1, true), "the page again")
end)

-- promise: docs/observability.md: A connection is closed if the head of its request is not complete after 2 seconds, or
-- the body after 2 more.
test("unfinished requests do not block a balancer's readyz, and are closed", function()
    local server <close> = admin.start()
    for _, text in ipairs{"GET /met", "POST /log-level HTTP/1.1\r\nHost: localhost\r\nX-Sxe-Token: wrong\r\n" ..
                          "Content-Length: 1000\r\n\r\nlev"} do
        local silent = {}
        for i = 1, 200 do
            silent[i] = server:dial()
            silent[i]:send(text)
        end
        equal(server:get("/readyz"), "ready\n")
        for _, sock in ipairs(silent) do
            check(sock:recv_all():find("^HTTP/1.1 408 "), "the listener closes what stays silent")
            sock:close()
        end
        equal(server:get("/readyz"), "ready\n")
    end
end)

-- promise: docs/observability.md: If all are taken, a new one takes the place of the one that has waited longest for a
-- request or the rest of one. So programs that connect and send nothing, or half a request, keep nobody else from an
-- answer.
test("more unfinished requests than there are connections do not block a balancer's readyz", function()
    local server <close> = admin.start()
    local post = "POST /log-level HTTP/1.1\r\nHost: localhost\r\n"
    for _, text in ipairs{"", "GET /met", post .. "X-Sxe-Token: wrong\r\nContent-Length: 1000\r\n\r\nlev",
                          post .. "Transfer-Encoding: chunked\r\n\r\n",
                          post .. "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n"} do
        local silent = {}
        for i = 1, 300 do
            silent[i] = server:dial()
            silent[i]:send(text)
            if i % 20 == 0 then equal(server:get("/readyz"), "ready\n", text) end
        end
        for _, sock in ipairs(silent) do sock:close() end
    end
end)
