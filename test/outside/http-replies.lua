-- SPDX-License-Identifier: MIT
-- Handlers with mistakes: a client never gets a head, or a part of a body, that the handler did not mean to send.

local http = require "http"
local script = require "script"

local TEXT = [[
local waits, last = 0, "nothing"
local kept, cases = nil, {
  function(_, res) res.headers.X = "a\r\nB: c" end,
  function(_, res) res.headers.X = "a\0b" end,
  function(_, res) res.headers["a b"] = "x" end,
  function(_, res) res.headers["a:"] = "x" end,
  function(_, res) res.headers.X = { "a", "b\nC: d" } end,
  function(_, res) res:redirect("/a\r\nB: c") end,
  function(_, res) res.headers.Date = "x" end,
  function(_, res) res.headers["content-length"] = "5" end,
  function(_, res) res.headers.Connection = "close" end,
  function(_, res) res:file "/etc/passwd" end,
  function(_, res) res.status = 42 end,
  function(_, res) res:json(0 / 0) end,
  function(_, res) res.headers.X = { "a", nil, "c" } end,
  function(_, res) res.headers.X = { "a", path = "/" } end,
}
return function(req, res)
  local n = tonumber(req.path:match "%d+")
  if n then return (cases[n] or function() return 404 end)(req, res) end
  if req.path == "/half" then res:write "half" error "no" end
  if req.path == "/early" then res:write "a" return "b" end
  if req.path == "/waits" then
    require "sxe.task".start(function()
      require "sxe.task".sleep(0)
      if req.query.file then res:file "nothing" else res:send "sent" end
    end)
    waits = waits + 1
    local body, why = req:body()
    waits = waits - 1
    last = tostring(body) .. " " .. tostring(why)
    return
  end
  if req.path == "/waiting" then return waits .. " " .. last end
  if req.path == "/abort" then res:write "half" res:abort() return end
  if req.path == "/up" then return res:file(req.query.name) end
  if req.path == "/keep" then kept = { req, res } return "kept" end
  if req.path == "/use" then
    for _, name in ipairs{ "path", "query", "headers", "params", "method" } do
      if pcall(function() return kept[1][name] end) then return name end
    end
    return "none"
  end
  if req.path == "/lines" then res:sse():send "a\nb\r\nc\rd" return end
  if req.path == "/event" then res:sse():send{ event = "a\nb", data = 1 } return end
  if req.path == "/same" then return tostring(req:body() == req:body()) end
  if req.path == "/after" then
    local n = #req:body()
    for _ in req:chunks() do n = n + 1000 end
    return tostring(n)
  end
  if req.path == "/parts" then
    for _ in req:chunks() do break end
    return table.concat({ tostring(pcall(req.body, req)), tostring(pcall(req.json, req)), tostring(pcall(req.form, req)) }, " ")
  end
end]]
local server <close> = script.start(TEXT)

local function get(target)
    return http.ask(server, http.request("GET " .. target))
end

local function post(target, body)
    return http.ask(server, http.request("POST " .. target, "Content-Length: " .. #body) .. body)
end

-- promise: docs/lua-handlers.md: A name or value that HTTP does not allow raises an error.
test("no value of a handler adds a line to the head", function()
    for i = 1, 12 do
        local reply = get("/" .. i)
        equal(reply.status, 500, i)
        check(reply.body:find '^{"error":"internal","id":"%x+"}', reply.body)
        equal(reply.headers.b or reply.headers.c, nil)
    end
end)

-- promise: docs/lua-handlers.md: A list with holes, or with other keys, raises an error.
test("a header whose value is a list with holes raises", function()
    equal(get("/13").status, 500)
    equal(get("/14").status, 500)
end)

-- promise: docs/lua-handlers.md: If the reply has begun, the server resets the connection, so that no client takes
-- half a reply for a whole one.
test("half a reply ends with a reset", function()
    for _, path in ipairs{"/half", "/abort"} do
        local sock <close> = server:connect()
        sock:send(http.request("GET " .. path))
        check(not pcall(sock.read_reply, sock), path)
    end
    equal(get("/keep").body, "kept")
end)

-- promise: docs/lua-handlers.md: A name that leads outside by .. makes the reply 400, and a name that begins with /
-- raises an error.
test("no file outside the directory is sent", function()
    equal(get("/up?name=../x").status, 400)
    equal(get("/up?name=test/../../x").status, 400)
    equal(get("/up?name=nothing").status, 404)
    equal(get("/up?name=/etc/passwd").status, 500)
end)

-- promise: docs/lua-handlers.md: The request ends with its reply: after that, reading a property raises an error.
test("a request object that was kept does not see the next request", function()
    equal(get("/keep").body, "kept")
    equal(get("/use?secret=1").body, "none")
end)

-- promise: docs/lua-handlers.md: `events:send(data)` or `events:send{data =, event =, id =, retry =}` sends an event
test("data of several lines is one event; a name with line ends raises", function()
    local body = http.ask(server, http.request("GET /lines", "Connection: close")).body
    check(body:find("\r\ndata: a\ndata: b\ndata: c\ndata: d\n\n\r\n", 1, true), body)
    local sock <close> = server:connect()
    sock:send(http.request("GET /event"))
    check(not pcall(sock.read_reply, sock))
end)

-- promise: docs/lua-handlers.md: After `req:body()`, `req:chunks()` returns no part. After `req:chunks()`, the calls
-- `req:body()`, `req:json()` and `req:form()` raise an error.
test("a body can be read in one way only", function()
    equal(post("/same", "hello").body, "true")
    equal(post("/after", "hello").body, "5")
    equal(post("/parts", "hello").body, "false false false")
end)

-- promise: docs/lua-handlers.md: The client gets `500` with an id
test("an error whose metamethods fail is 500 with the id that the log has", function()
    local failing <close> = script.start([[
        local r = require "sxe.http".router()
        local function fails() error "in a metamethod" end
        r:get("/index", function() error(setmetatable({}, { __index = fails })) end)
        r:get("/text", function() error(setmetatable({}, { __tostring = fails, __name = 5, __pairs = fails })) end)
        r:get("/twice", function() local _ <close> = setmetatable({}, { __close = fails }) error "first" end)
        r:get("/good", function() return "good" end)
        local on = require "sxe.http".router()
        on:on_error(fails)
        on:get("/on", fails)
        local half = require "sxe.http".router()
        half:on_error(function(_, res) res:write "half" error "again" end)
        half:get("/", fails)
        r:use("/half", half)
        r:use("/on_error", on)
        return r]])
    for _, path in ipairs{"/index", "/text", "/twice", "/on_error/on"} do
        local reply = http.ask(failing, http.request("GET " .. path))
        equal(reply.status, 500, path)
        local id = reply.body:match '^{"error":"internal","id":"(%x+)"}\n$'
        check(id and #id == 16, path .. ": " .. reply.body)
        check(failing.proc:errors():find(id, 1, true), path)
        equal(http.ask(failing, http.request "GET /good").body, "good")
    end
    local sock <close> = failing:connect()
    sock:send(http.request "GET /half/")
    check(not pcall(sock.read_reply, sock))
end)

-- promise: docs/http.md: If the rest is longer, the reply says `Connection: close`.
test("a reply in parts that comes before a large body says that the connection closes", function()
    for length, close in pairs{["200000"] = "close", ["65537"] = "close", ["65536"] = false, ["3"] = false} do
        local sock <close> = server:connect()
        sock:send(http.request("POST /early", "Content-Length: " .. length))
        local reply = sock:read_reply()
        equal(reply.body, "1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
        equal(reply.headers.connection or false, close, length)
    end
end)

local function chunks(path, body)
    return http.request("POST " .. path, "Transfer-Encoding: chunked") .. body
end

-- promise: docs/http.md: A reply to a chunked body says so if it begins before the last chunk has arrived.
test("a reply that comes before the end of a chunked body says that the connection closes", function()
    for _, path in ipairs{"/early", "/waiting"} do
        for _, body in ipairs{"", "3\r\nabc\r\n", "3\r\nabc\r\n0\r\n"} do
            local sock <close> = server:connect()
            sock:send(chunks(path, body))
            equal(sock:read_reply().headers.connection, "close", path .. ": " .. body)
            check(sock:eof())
        end
    end
    local sock <close> = server:connect()
    for _ = 1, 3 do
        sock:send(chunks("/waiting", "3\r\nabc\r\n0\r\n\r\n"))
        local reply = sock:read_reply()
        equal(reply.body, "0 nothing")
        equal(reply.headers.connection, nil)
    end
end)

-- promise: docs/lua-handlers.md: return `nil, "closed"` or `nil, "cancelled"` when the client is gone.
test("a handler that waits for a body ends when another task sends a file", function()
    for _, query in ipairs{"send=1", "file=1"} do
        local sock <close> = server:connect()
        sock:send(http.request("POST /waits?" .. query, "Content-Length: 10") .. "x")
        check(sock:read_reply().status)
        sock:close()
        local said
        for _ = 1, 1000 do
            said = get("/waiting").body
            if said:find "^0" then break end
            wire.sleep(0.01)
        end
        check(said:find "^0 nil c", query .. ": " .. said)
    end
end)
