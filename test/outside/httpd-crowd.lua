-- SPDX-License-Identifier: MIT
-- A server with few connections, all but one of which are held by attackers; a server that is reloaded under load; and
-- error pages that contain text of clients.

local http = require "http"
local httpd = require "httpd"
local script = require "script"

local APP = [[
local http, task = require "sxe.http", require "sxe.task"
local r, began, closed = http.router(), 0, 0
local function guard()
  began = began + 1
  return setmetatable({}, { __close = function() closed = closed + 1 end })
end
r:get("/good", function() return "good" end)
r:post("/body", function(req) local _g <close> = guard() return tostring(req:body()) end)
r:post("/parts", function(req) local _g <close> = guard() for _ in req:chunks() do task.sleep(0) end return "x" end)
r:post("/slow", function() local _g <close> = guard() task.sleep(100000) end)
r:post("/write", function(_, res) local _g <close> = guard() while res:write(("x"):rep(10000)) do end end)
r:post("/events", function(_, res)
  local _g <close> = guard()
  local events = res:sse()
  while events:send(("x"):rep(1000)) do task.sleep(0) end
end)
r:post("/all", function()
  local _g <close> = guard()
  task.parallel({ 1, 2, 3 }, function() local _h <close> = guard() task.sleep(100000) end)
end)
r:post("/limit", function()
  local _g <close> = guard()
  task.deadline(100000, function() local _h <close> = guard() task.sleep(100000) end)
end)
r:get("/count", function() return (began == closed and "equal " or "more ") .. #task.all() end)
return r
]]

local function part(path)
    return "POST " .. path .. " HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\n\r\npart of it"
end

local function whole(path)
    return "POST " .. path .. " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
end

-- The bytes that an attacker sends on each of its connections.
local HELD = {
    ["nothing"] = "", ["half a head"] = "POST /bo", ["half a body"] = part "/body", ["a body in parts"] = part "/parts",
    ["a handler that waits"] = whole "/slow", ["a reply that nobody reads"] = whole "/write",
    ["events that nobody reads"] = whole "/events", ["one request after the other"] = http.request("GET /good"):rep(100),
}

local function good(server)
    return http.ask(server, http.request("GET /good", "Connection: close")).status
end

-- promise: docs/http.md: the connection that has waited longest is closed, see below; if all are busy: 503
test("a good client is served while others hold all connections but one", function()
    for what, bytes in pairs(HELD) do
        local server <close> = script.start(APP, "--connections", "8", "--stop-timeout", "100ms")
        local held = {}
        for i = 1, 7 do
            held[i] = server:connect(4096)
            held[i]:send(bytes)
        end
        for _ = 1, 5 do equal(good(server), 200, what) end
        for i = 1, 7 do held[i]:close() end
        for _ = 1, 3 do equal(good(server), 200, what) end
    end
end)

-- The bytes that hold a place without a request under way, and whether the server answers them.
local WAITS = {
    ["the first byte"] = {"", false}, ["the rest of a head"] = {"POST /bo", false},
    ["the next request"] = {http.request("GET /good"), true}, ["a close after a request"] = {"rubbish\r\n\r\n", true},
    ["a close after an upload"] = {"POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\nx", true},
}

-- promise: docs/http.md: The order is the same for all these kinds, so a new connection is the last to be closed.
test("a client that comes before as many others as there are places but one is served", function()
    for what, how in pairs(WAITS) do
        for after, way in pairs(WAITS) do
            local server <close> = script.start(APP, "--connections", "8", "--stop-timeout", "100ms")
            local socks = {}
            local function wait(one)
                local sock = server:connect(4096)
                socks[#socks + 1] = sock
                sock:send(one[1])
                if one[2] then sock:read_reply() end
            end
            for _ = 1, 7 do wait(how) end
            good(server) -- so that the server has read what the others sent
            local sock <close> = server:connect()
            for _ = 1, 7 do wait(way) end
            sock:send(http.request("GET /good"))
            equal(sock:read_reply().status, 200, what .. ", then " .. after)
            for _, held in ipairs(socks) do held:close() end
        end
    end
end)

-- promise: docs/lua-handlers.md: When its client is gone, a handler is cancelled: the call in which it waits returns
-- `nil, "cancelled"`.
test("whenever and however a client leaves, no task and no <close> variable is left", function()
    local server <close> = script.start(APP)
    equal(server:ask "/count", "equal 1")
    local ways = {function(sock) sock:close() end, function(sock) sock:shutdown() end, function(sock) sock:reset() end}
    for _, path in ipairs{"/body", "/parts", "/slow", "/write", "/events", "/all", "/limit"} do
        for _, bytes in ipairs{part(path), whole(path), part(path):sub(1, 20)} do
            for _, leave in ipairs(ways) do
                for pause = 0, 2 do
                    local sock <close> = server:connect(4096)
                    sock:send(bytes)
                    for _ = 1, pause do good(server) end
                    leave(sock)
                end
            end
        end
    end
    httpd.wait_until(function() return server:ask "/count" == "equal 1" end, "nothing that began stays")
end)

-- promise: docs/lua-httpd.md: `kill -HUP`: no request fails, see below
test("no request fails while the script is reloaded", function()
    local server <close> = script.start 'return function() return "0" end'
    local sock, last = server:connect(), "0"
    for i = 1, 6 do
        server:write(i % 3 == 0 and "no script (" or ('return function() return "%d" end'):format(i))
        server:reload()
        if i % 3 ~= 0 then last = tostring(i) end
        local asked = 0
        repeat
            sock:send(http.request("GET /"))
            local reply = sock:read_reply()
            equal(reply.status, 200)
            asked = asked + 1
            if reply.headers.connection == "close" then
                sock:close()
                sock = server:connect()
            end
        until reply.body == last and (i % 3 ~= 0 or asked >= 100)
    end
    sock:close()
end)

local GATED = [[
local task = require "sxe.task"
return function(req)
  if req.path == "/version" then return "VERSION" end
  while not io.open("GATE") do task.sleep(0.01) end
  return "VERSION"
end]]

-- Connect to the process of this version. A process that was replaced may still accept for a moment, so each new
-- connection asks for the version.
local function connect_to(server, version)
    local sock
    httpd.wait_until(function()
        sock = server:connect()
        sock:send(http.request "GET /version")
        local reply = sock:read_reply()
        if reply.body == version then return true end
        sock:close()
    end, "a connection to version " .. version)
    return sock
end

-- promise: docs/lua-httpd.md: The next reload waits until one of them has ended, and the log says so; several signals in
--   that time are one reload.
test("however often a script is reloaded, requests in progress are answered", function()
    local gate = os.tmpname()
    os.remove(gate)
    local function text(version) return (GATED:gsub("VERSION", version):gsub("GATE", gate)) end
    local server <close> = script.start(text "1", "--stop-timeout", "1h")
    local socks = {}
    for i = 1, 8 do
        socks[i] = connect_to(server, tostring(i))
        socks[i]:send(http.request("GET /", "Connection: close"))
        server:write(text(tostring(i + 1)))
        server:reload()
        if i < 8 then
            httpd.wait_until(function() return server:ask "/version" == tostring(i + 1) end, "version " .. i + 1)
        end
    end
    httpd.wait_until(function() return server.proc:errors():find("loaded again later", 1, true) end, "a line in the log")
    for _ = 1, 3 do server:reload() end
    connect_to(server, "8"):close()
    io.open(gate, "w"):close()
    for i, sock in ipairs(socks) do
        local reply = sock:read_reply()
        equal(reply.status, 200)
        equal(reply.body, tostring(i))
        sock:close()
    end
    httpd.wait_until(function() return server:ask "/version" == "9" end, "version 9")
    check(not server.proc:errors():find("signal 9", 1, true), server.proc:errors())
    os.remove(gate)
end)

local EVIL = "<script>alert(1)<b>\"'&"
local ESCAPED = EVIL:gsub("[^%w]", function(c) return ("%%%02X"):format(c:byte()) end)

-- promise: docs/lua-httpd.md: A browser gets this text as an HTML page, with the request and the local variables of
-- the function that failed.
test("text of a client is escaped in an error page", function()
    local server <close> = script.start([[
return function(req)
  local value, table_of = req.query.v, { [req.query.v] = req.query.v }
  if req.path == "/name" then load("local a; a.b()", req.query.v)() end
  if req.path == "/file" then load("local a; a.b()", "@" .. req.query.v)() end
  if req.path == "/text" then assert(load("x = = " .. req.query.v)) end
  if req.path == "/type" then error(setmetatable({}, { __tostring = function() return value end })) end
  if req.path == "/key" then return { [value] = print } end
  if req.path == "/header" then error(req.headers.evil) end
  error(value)
end]], "--dev")
    for _, path in ipairs{"/", "/name", "/file", "/text", "/type", "/key", "/header"} do
        local reply = http.ask(server, http.request("GET " .. path .. "?v=" .. ESCAPED, "Accept: text/html", "Evil: " .. EVIL,
                                                    "Cookie: " .. EVIL, "User-Agent: " .. EVIL))
        equal(reply.status, 500, path)
        check(reply.headers["content-type"]:find("text/html", 1, true), path)
        check(not reply.body:find("<script>alert", 1, true) and not reply.body:find("alert(1)<b>", 1, true), reply.body)
    end
    local reply = http.ask(server, http.request("GET /?v=" .. ESCAPED))
    check(not reply.headers["content-type"]:find("html", 1, true), reply.raw)
end)

-- promise: docs/lua.md: It cannot delay other requests by more than 100 ms of CPU time, or take more memory than its
-- limit.
test("a script that takes all memory it can get in the sandbox stays within its cap", function()
    local server <close> = script.start([[
local task = require "sxe.task"
local acts = {
  function() local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end end,
  function() local t = {} while true do t[#t + 1] = coroutine.create(print) end end,
  function() local s = "x" while true do s = s .. s end end,
  function() return #("x"):rep(1 << 40) end,
  function() return #table.concat(setmetatable({}, { __len = function() return 1 << 40 end })) end,
  function() return (("a"):rep(1e6):gsub("a", ("b"):rep(1e4))) end,
  function() local q = task.queue() while true do q:put(("x"):rep(1e5) .. #q) end end,
  function() return select("#", ("x"):rep(1e6):byte(1, -1)) end,
  function() return table.unpack({}, 1, 1e7) end,
  function(_, res) for i = 1, 1e7 do res.headers["x" .. i] = "y" end end,
  function() local function f() return coroutine.wrap(f)() end f() end,
}
return function(req, res)
  local act = acts[tonumber(req.path:match "%d+")]
  return act and act(req, res) or "good"
end]], "--lua-sandbox", "--stats", "/stats")
    for i = 1, 11 do
        local status = http.ask(server, http.request("GET /" .. i)).status
        check(status == 500 or status == 503, ("%d: %d"):format(i, status))
        httpd.wait_until(function() return server:ask "/good" == "good" end, "the next request is served")
    end
    local stats = server:ask "/stats"
    check(tonumber(stats:match '"memory_most":(%d+)') <= tonumber(stats:match '"memory_max":(%d+)'), stats)
    check(stats:find('"load":0', 1, true), stats)
end)

-- promise: docs/http.md: It counts for no address. The next connection gets its place, so it takes no place from
-- another connection.
test("an address at its limit, which opens further connections, shuts nobody out", function()
    local server <close> = httpd.start("-c", "5", "--connections-per-address", "2", "--proxy-from", "127.0.0.1")
    local function connect(number)
        local sock = server:connect()
        sock:send(("PROXY TCP4 192.0.2.%d 192.0.2.200 1 2\r\n"):format(number))
        return sock
    end
    local function check_served(sock)
        sock:send(httpd.GET)
        equal(sock:read_reply().status, 200)
    end
    local function check_refused(sock)
        equal(sock:read_reply().status, 503)
        return sock
    end
    local attacker = {connect(1), connect(1)}
    for _, sock in ipairs(attacker) do check_served(sock) end
    local honest = {connect(2), connect(3)}
    for _, sock in ipairs(honest) do check_served(sock) end
    local held = {}
    for i = 1, 20 do held[i] = check_refused(connect(1)) end
    honest[3] = connect(4)
    for _ = 1, 2 do
        for _, sock in ipairs(honest) do check_served(sock) end
        for _, sock in ipairs(attacker) do check_served(sock) end
    end
    attacker[1]:close()
    httpd.wait_until(function()
        local sock <close> = connect(1)
        sock:send(httpd.GET)
        return sock:read_reply().status == 200
    end, "the attacker is served again, though it still holds the connections that were refused")
    for _, list in ipairs{attacker, honest, held} do
        for _, sock in ipairs(list) do sock:close() end
    end
end)
