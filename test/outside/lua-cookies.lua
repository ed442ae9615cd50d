-- SPDX-License-Identifier: MIT
--
-- Cookies and sessions, by docs/lua-handlers.md, docs/http.md and docs/sessions.md: what browsers and attackers send.

local http = require "http"
local script = require "script"

local SECRET <const> = ("s3cret"):rep(6)

local function ask(server, line, ...)
    return http.ask(server, http.request(line, ...))
end

local function post(server, path, form, ...)
    return http.ask(server, http.request("POST " .. path, "Content-Length: " .. #form, ...) .. form)
end

-- The pair that the client sends back, or nil.
local function cookie_of(reply)
    local line = reply.headers["set-cookie"]
    return line and not line:find("Max-Age=0", 1, true) and "Cookie: " .. line:match "^[^;]*" or nil
end

local ECHO <const> = [[
return function(req, res)
  if req.query.set then res:cookie("name", req.query.set) end
  return tostring(req.cookies.name) .. "|" .. tostring(req.cookies.other)
end
]]

-- promise: docs/lua-handlers.md: Bytes that cannot be in a cookie are escaped, and `req.cookies` decodes them.
test("any bytes come back", function()
    local server <close> = script.start(ECHO)
    for _, escaped in ipairs{"a%20b", "%3B%2C%22%5C", "%00%01%7F%FF", "100%25", "%0D%0ASet-Cookie:%20x=1", "", "%2541"} do
        local text = escaped:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end)
        local reply = ask(server, "GET /?set=" .. escaped)
        check(not reply.raw or not reply.raw:find "\nSet%-Cookie: x=1", "a header was added")
        equal(ask(server, "GET /", cookie_of(reply)).body, text .. "|nil")
    end
end)

-- promise: docs/http.md: If several cookies have the same name, the first one counts
test("of cookies with the same name the first counts, and malformed lines do no harm", function()
    local server <close> = script.start(ECHO)
    for line, wanted in pairs{
        ["name=1; name=2"] = "1|nil", ["other=2;name=1"] = "1|2", ["name"] = "nil|nil", ["=name; other=="] = "nil|=",
        [";;; ;name=\"q\""] = "q|nil", ["NAME=1"] = "nil|nil", ["name=%zz%"] = "%zz%|nil", [("x=y;"):rep(1500)] = "nil|nil"} do
        equal(ask(server, "GET /", "Cookie: " .. line).body, wanted)
    end
    equal(ask(server, "GET /", "Cookie: a=1", "Cookie: other=2; name=3").body, "3|2")
end)

local APP <const> = [[
local http, session = require "sxe.http", require "sxe.session"
local sessions = session.new{ secret = "]] .. SECRET .. [[" }
local r = http.router()
r:use(sessions:filter())
r:post("/login", function(req)
  req.ctx.session:renew()
  req.ctx.session:set("user", req:form().user)
  return 204
end)
r:get("/", function(req) return tostring(req.ctx.session:get "user") end)
r:post("/wrong", function(req, res)
  local s = req.ctx.session
  res.headers.X = "dropped"
  s:set("tries", 1 + (s:get "tries" or 0))
  error{ status = 401, message = "try " .. s:get "tries" }
end)
r:get("/big", function(req) req.ctx.session:set("x", ("x"):rep(2800)) return "ok" end)
r:post("/logout", function(req) req.ctx.session:destroy() return 204 end)
return r
]]

-- promise: docs/sessions.md: A cookie that is missing, forged, damaged or expired gives an empty session, never an
-- error.
test("a cookie that was changed is not accepted", function()
    local server <close> = script.start(APP)
    local cookie = cookie_of(post(server, "/login", "user=Ann"))
    equal(ask(server, "GET /", cookie).body, "Ann")
    for at = #"Cookie: session=" + 1, #cookie do
        local digit = cookie:sub(at, at) == "A" and "B" or "A"
        local reply = ask(server, "GET /", cookie:sub(1, at - 1) .. digit .. cookie:sub(at + 1))
        equal(reply.status .. reply.body, "200nil")
    end
    for _, bad in ipairs{"", "=", ("A"):rep(5000), "%00", "a.b", cookie:sub(17, -2), cookie:sub(17) .. "AAAA"} do
        local reply = ask(server, "GET /", "Cookie: session=" .. bad)
        equal(reply.status .. reply.body, "200nil")
    end
end)

-- promise: docs/lua-handlers.md: Header fields that the handler had set are not in the reply to an error; cookies
-- are.
test("an error keeps what the session was set to", function()
    local server <close> = script.start(APP)
    local first = post(server, "/wrong", "")
    equal(first.status .. tostring(first.headers.x), "401nil")
    check(post(server, "/wrong", "", cookie_of(first)).body:find("try 2", 1, true), first.body)
end)

-- promise: docs/sessions.md: needs no memory and works with one server or several
test("a sealed cookie counts in each worker, and after a restart", function()
    local cookie
    do
        local server <close> = script.start(APP, "-w", "2")
        cookie = cookie_of(post(server, "/login", "user=Ann"))
        for _ = 1, 10 do equal(ask(server, "GET /", cookie).body, "Ann") end
    end
    local server <close> = script.start(APP)
    equal(ask(server, "GET /", cookie).body, "Ann")
end)

-- promise: docs/sessions.md: In a cookie all values together have some 2,900 bytes as JSON; a value that makes them
-- longer raises an error.
test("2,800 bytes fit into a cookie", function()
    local server <close> = script.start(APP)
    local reply = ask(server, "GET /big")
    equal(reply.body, "ok")
    check(#reply.headers["set-cookie"] <= 4096, #reply.headers["set-cookie"])
end)

local STORED <const> = [[
local http, session, dict = require "sxe.http", require "sxe.session", require "sxe.dict"
local names = dict.open{ name = "names", cells = 1000, shared = true }
local sessions = session.new{ secret = "]] .. SECRET .. [[", dict = names }
local r = http.router()
r:post("/login", function(req, res)
  local s = sessions:open(req, res)
  s:renew()
  s:set("user", req:form().user)
  return 204
end)
r:get("/", function(req, res) return tostring(sessions:open(req, res):get "user") end)
r:post("/logout", function(req, res) sessions:open(req, res):destroy() return 204 end)
r:get("/count", function() return tostring(#names) end)
r:post("/slow", function(req, res)
  local s = sessions:open(req, res)
  req:body()
  s:set("seen", "1")
  return 204
end)
r:get("/dump", function()
  local text = ""
  for key, value in names:each() do text = text .. key .. "=" .. value .. "\n" end
  return text
end)
return r
]]

-- promise: docs/sessions.md: `destroy` and `renew` end the old id at once.
test("an old id is no longer valid, and a session without values is not stored", function()
    local server <close> = script.start(STORED)
    equal(ask(server, "GET /").headers["set-cookie"], nil)
    equal(ask(server, "GET /count").body, "0")
    local first = cookie_of(post(server, "/login", "user=Ann"))
    local second = cookie_of(post(server, "/login", "user=Bob", first))
    equal(ask(server, "GET /", first).body, "nil")
    equal(ask(server, "GET /", second).body, "Bob")
    equal(post(server, "/logout", "", second).headers["set-cookie"]:match "Max%-Age=0", "Max-Age=0")
    equal(ask(server, "GET /", second).body, "nil")
    equal(ask(server, "GET /count").body, "0")
end)

-- promise: docs/sessions.md: a `set` of a request in progress then raises an error whose status is 409.
test("a request that was in progress does not bring a deleted session back", function()
    local server <close> = script.start(STORED)
    local cookie = cookie_of(post(server, "/login", "user=Ann"))
    local sock <close> = server:connect()
    sock:send(http.request("POST /slow", "Content-Length: 2", "Expect: 100-continue", cookie))
    equal(sock:read_reply().status, 100) -- the handler has opened the session, and waits for the body
    equal(post(server, "/logout", "", cookie).status, 204)
    sock:send("xy")
    equal(sock:read_reply().status, 409)
    equal(ask(server, "GET /", cookie).body, "nil")
    equal(ask(server, "GET /count").body, "0")
end)

-- promise: docs/sessions.md: so an attacker who reads the store, and even the secret, cannot take over its sessions.
test("the store has no id", function()
    local server <close> = script.start(STORED)
    local cookie = cookie_of(post(server, "/login", "user=Ann"))
    local text = ask(server, "GET /dump").body
    check(text:find("Ann", 1, true), text)
    check(not text:find(cookie:match "session=([^.]+)", 1, true), text)
end)

local GUARDED <const> = [[
local http, session = require "sxe.http", require "sxe.session"
local sessions = session.new{ secret = "]] .. SECRET .. [[" }
local r, admin = http.router(), http.router()
admin:post("/pay", function() return "paid" end)
r:use(sessions:guard())
r:get("/form", function(req, res) return sessions:open(req, res):token() end)
r:use("/admin", admin)
return r
]]

-- promise: docs/sessions.md: It answers 403 to each request that is not GET, HEAD, OPTIONS or TRACE, unless a token
-- of the session
test("a form of another site is refused", function()
    local server <close> = script.start(GUARDED)
    local page, other = ask(server, "GET /form"), ask(server, "GET /form")
    local mine, theirs = cookie_of(page), cookie_of(other)
    local kind = "Content-Type: application/x-www-form-urlencoded"
    local form = "csrf_token=" .. page.body
    equal(post(server, "/admin/pay", form, mine, kind).body, "paid")
    equal(post(server, "/admin/pay", "", mine, "X-CSRF-Token: " .. page.body).body, "paid")
    equal(post(server, "/admin/pay", form, theirs, kind).status, 403)
    equal(post(server, "/admin/pay", form, kind).status, 403)
    equal(post(server, "/admin/pay", "x=1", mine, kind).status, 403)
    equal(post(server, "/admin/pay", form, mine, "Content-Type: text/plain").status, 403)
    equal(ask(server, "BREW /admin/pay", mine).status, 403)
    equal(ask(server, "GET /form", mine).status, 200)
end)
