-- SPDX-License-Identifier: MIT
--
-- Sessions, by docs/sessions.md, in cookies, dicts, Redis and a store of a script's own: when they end, and what is left
-- after a failure.

local http = require "http"
local httpd = require "httpd"
local script = require "script"

-- A client with the cookies of its server.
local function client_of(server)
    local cookies = {}
    return function(path)
        local pairs_of = {}
        for name, value in pairs(cookies) do pairs_of[#pairs_of + 1] = name .. "=" .. value end
        local reply = http.ask(server, http.request("GET " .. path, "Cookie: " .. table.concat(pairs_of, "; ")))
        for name, value in reply.raw:gmatch "\nSet%-Cookie: ([%w-]+)=([^;\r]*)" do cookies[name] = value end
        return reply.body, reply.status, cookies
    end
end

-- A redis-server at a socket, or nil if there is none on this machine.
local function start_redis()
    local program = wire.has "redis-server"
    if not program then return nil end
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local path = directory .. "/redis"
    local proc = wire.spawn{program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", directory}
    httpd.wait_until(function() return (pcall(wire.connect, path, 0)) end, "redis-server listens")
    return setmetatable({path = path}, {__close = function()
        proc:signal "KILL"
        proc:wait(60)
        os.execute("rm -r " .. directory)
    end})
end

local FIRST <const> = [[
local http, session, task = require "sxe.http", require "sxe.session", require "sxe.task"
local SECRET = ("s3cret"):rep(6)
]]

local redis <close> = start_redis()
local kinds = {
    cookie = "", dict = "dict = require 'sxe.dict'.open{name = 'ends', cells = 100}",
    redis = redis and ("redis = require 'sxe.redis'.new{unix = '%s'}"):format(redis.path),
}

-- Two sessions of each kind: idle-KIND, and life-KIND, which requests do not keep.
local ENDS <const> = FIRST .. [[
local all = {}
local function add(kind, place)
  for name, times in pairs{["idle-" .. kind] = {5, 1000}, ["life-" .. kind] = {1000, 5}} do
    local options = {secret = SECRET, name = name, idle = times[1], lifetime = times[2]}
    for key, value in pairs(place) do options[key] = value end
    all[name] = session.new(options)
  end
end
KINDS
return function(req, res)
  local s = all[req.query.s]:open(req, res)
  if req.path == "/login" then s:set("user", "Ann") end
  return tostring(s:get "user")
end]]

-- promise: docs/sessions.md: | `idle` | 3600 | seconds without a request, after which a session ends | | `lifetime` |
-- 86400 | seconds from its beginning, or the last `renew`, after which a session ends |
test("sessions of each kind end by idle and by lifetime", function()
    local lines = {}
    for kind, place in pairs(kinds) do lines[#lines + 1] = ("add('%s', {%s})"):format(kind, place) end
    local server <close> = script.start((ENDS:gsub("KINDS", function() return table.concat(lines, "\n") end)))
    local ask = client_of(server)

    -- A machine that was busy for two seconds between two requests shows nothing: false.
    local function use_all()
        local began, used = wire.time(), {}
        for kind in pairs(kinds) do
            ask("/login?s=life-" .. kind)
            used[kind] = wire.time()
            ask("/login?s=idle-" .. kind)
        end
        local logged_in = wire.time()
        repeat
            wire.sleep(0.2)
            for kind in pairs(kinds) do
                local life, now = ask("/?s=life-" .. kind), wire.time()
                if now - began < 3.9 then equal(life, "Ann", kind) end
                local idle = ask("/?s=idle-" .. kind)
                if wire.time() - used[kind] < 1.9 then equal(idle, "Ann", kind) elseif idle ~= "Ann" then return false end
                used[kind] = now
            end
        until wire.time() - logged_in > 6.1
        return true
    end

    httpd.wait_until(use_all, "a machine that is not too busy")
    for kind in pairs(kinds) do equal(ask("/?s=life-" .. kind), "nil", kind) end
    wire.sleep(6.1)
    for kind in pairs(kinds) do equal(ask("/?s=idle-" .. kind), "nil", kind) end
end)

local FAILS <const> = FIRST .. [[
local texts, failing = {}, nil
local function fail(name) if failing == name then failing = nil return true end end
local sessions = session.new{secret = SECRET, name = "life", store = {
  get = function(_, key) if fail "get" then return nil, "cannot reach 10.0.0.7" end return texts[key] end,
  put = function(_, key, text, _, replaces)
    if fail "put" then return nil, "cannot reach 10.0.0.7" end
    if replaces and not texts[key] then return false end
    texts[key] = text
    return true
  end,
  delete = function(_, key)
    if fail "delete" then return nil, "cannot reach 10.0.0.7" end
    local was = texts[key] ~= nil
    texts[key] = nil
    return was
  end}}
return function(req, res)
  local s = sessions:open(req, res)
  if req.path == "/login" then s:set("user", "Ann") end
  if req.path == "/fail" then failing = req.query.name end
  if req.path == "/call" then
    failing = req.query.name
    s[req.query.call](s, "user", "Eve")
  end
  local number = 0
  for _ in pairs(texts) do number = number + 1 end
  return tostring(s:get "user") .. number
end]]

-- promise: docs/sessions.md: If a call raises an error, the session is as it was.
test("a store that fails once loses nothing", function()
    local server <close> = script.start(FAILS)
    local ask = client_of(server)
    equal(ask "/login", "Ann1")
    for _, path in ipairs{"/call?call=set&name=put", "/call?call=renew&name=put", "/call?call=renew&name=delete",
                          "/call?call=destroy&name=delete"} do
        local body, status = ask(path)
        equal(status, 503, path)
        check(body:find('{"error":"the store of sessions failed","id":"', 1, true), body)
        equal(ask "/", "Ann1", path)
    end
end)

-- promise: docs/sessions.md: The store's own message is in the log, and in the error's `detail`, and no client sees it.
test("the text of a store stays on the server", function()
    local server <close> = script.start(FAILS)
    local ask = client_of(server)
    ask "/login"
    for _, path in ipairs{"/call?call=set&name=put", "/call?call=destroy&name=delete"} do
        local body, status = ask(path)
        check(status == 503 and not body:find("10.0.0.7", 1, true), body)
    end
    ask "/fail?name=get"
    local body, status = ask "/"
    check(status == 503 and not body:find("10.0.0.7", 1, true), body)
    equal(ask "/", "Ann1")
    check(server.proc:errors():find("the store of sessions failed: delete: cannot reach 10.0.0.7", 1, true),
          server.proc:errors())
end)

-- promise: docs/lua-handlers.md: A table's status of 500 or more is logged, with the table's `detail`, which no
-- client sees.
test("the detail of an error is for the log", function()
    local server <close> = script.start [[
return function(req)
  error{status = tonumber(req.query.status), message = "no answer", detail = "from " .. req.query.from}
end]]
    check(server:ask "/?status=502&from=10.0.0.7":find '^{"error":"no answer","id":"%w+"}\n$', "the reply of 502")
    equal(server:ask "/?status=404&from=10.0.0.8", '{"error":"no answer"}\n')
    check(server:ask "/?status=500&from=10.0.0.9":find '^{"error":"internal","id":"%w+"}\n$', "the reply of 500")
    local log = server.proc:errors()
    check(log:find("status 502: no answer: from 10.0.0.7", 1, true), log)
    check(log:find("status 500: no answer: from 10.0.0.9", 1, true), log)
    check(not log:find("10.0.0.8", 1, true), log)
end)

local TURNS <const> = FIRST .. [[
local sessions = session.new{secret = SECRET, name = "life", WHERE}
return function(req, res)
  local s = sessions:open(req, res)
  if req.path == "/login" then s:set("user", "Ann") end
  if req.path == "/both" then
    task.parallel({1, 2, 3, 4}, function(i) if i == 2 then s:renew() else s:set("n" .. i, i) end end)
  end
  return tostring(s:get "user") .. tostring(s:get "n1") .. tostring(s:get "n3") .. tostring(s:get "n4")
end]]

if redis then
    -- promise: docs/sessions.md: Tasks of one request that change its session take turns.
    test("set and renew of one request lose no value, with a real Redis", function()
        local server <close> = script.start((TURNS:gsub("WHERE", function() return kinds.redis end)))
        local ask = client_of(server)
        for _ = 1, 20 do
            equal(ask "/login":sub(1, 3), "Ann")
            local _, _, cookies = ask "/login"
            local old = cookies.life
            equal(ask "/both", "Ann134")
            equal(ask "/", "Ann134")
            check(cookies.life ~= old, "the id is the old one")
            equal(http.ask(server, http.request("GET /", "Cookie: life=" .. old)).body, "nilnilnilnil")
        end
    end)
end

-- promise: docs/sessions.md: Its token is in the header or, in a page without JavaScript, in the query of the form's
-- address:
test("a form with files brings its token in the header or in the query, and no other form in the query", function()
    local server <close> = script.start(FIRST .. [[
local http, multipart = require "sxe.http", require "sxe.multipart"
local sessions = session.new{ secret = SECRET }
local r = http.router()
r:use(sessions:guard())
r:get("/", function(req, res) return sessions:open(req, res):token() end)
r:post("/", function(req)
  if req.headers["content-type"]:find "^application" then return req:form().t end
  local form <close> = multipart.read(req)
  return form.texts.t
end)
return r]])
    local page = http.ask(server, http.request "GET /")
    local cookie = "Cookie: " .. page.headers["set-cookie"]:match "^[^;]+"
    local function post(query, kind, body, ...)
        local head = http.request("POST /" .. query, cookie, "Content-Type: " .. kind, "Content-Length: " .. #body, ...)
        return http.ask(server, head .. body)
    end
    local token = page.body
    local query, header = "?csrf_token=" .. token, "X-CSRF-Token: " .. token
    local KIND <const>, FORM <const> = "Multipart/Form-Data; boundary=B", "application/x-www-form-urlencoded"
    local function form(more)
        return (more or "") .. '--B\r\nContent-Disposition: form-data; name="t"\r\n\r\ntext\r\n--B--\r\n'
    end
    equal(post(query, KIND, form()).body, "text")
    equal(post("", KIND, form(), header).body, "text")
    local field = '--B\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n' .. token .. "\r\n"
    equal(post("", KIND, form(field)).status, 403)
    equal(post("?csrf_token=x", KIND, form()).status, 403)
    equal(post(query, FORM, "t=text").status, 403)
    equal(post("", FORM, "t=text&csrf_token=" .. token).body, "text")
    equal(post(query, "multipart/form-dataX; boundary=B", form()).status, 403)
    equal(post("", FORM .. "X", "t=text&csrf_token=" .. token).status, 403)
end)

-- promise: docs/sessions.md: A request has one session for each name of a cookie: `open` raises an error if another
-- object of `session.new` with the same `name` was opened for the request.
test("two objects of one cookie's name are refused in one request", function()
    local server <close> = script.start(FIRST .. [[
local one, two = session.new{secret = SECRET}, session.new{secret = SECRET}
local other = session.new{secret = SECRET, name = "other"}
return function(req, res)
  one:open(req, res):set("a", 1)
  other:open(req, res):set("a", 2)
  if req.query.twice then two:open(req, res) end
  return tostring(one:open(req, res):get "a" + other:open(req, res):get "a")
end]])
    equal(server:ask "/", "3")
    check(server:ask "/?twice=1":find "internal", "the second object was opened")
    check(server.proc:errors():find("the request has another session in the cookie 'session'", 1, true),
          server.proc:errors())
end)

if not redis then print("skipped: sessions in Redis, because redis-server is not installed") end
