-- SPDX-License-Identifier: MIT
-- For test-lua-session.c: each step is a request whose handler is a function here; pass(seconds) moves the clocks. At the
-- end `done` is true, or an error.
local client, http, task, session = require "sxe.client", require "sxe.http", require "sxe.task", require "sxe.session"
local dict, redis, tcp, json = require "sxe.dict", require "sxe.redis", require "sxe.tcp", require "sxe.json"
local encoding = require "sxe.encoding"
done = false

local SECRET, OTHER = ("s"):rep(32), ("t"):rep(32)
local action
local server = http.serve{ ip = "127.0.0.1", port = 0, handler = function(req, res) return action(req, res) end }

local function equal(got, wanted)
  if got ~= wanted then error(("got %s, wanted %s"):format(tostring(got), tostring(wanted)), 2) end
end

local function find(text, part)
  if not tostring(text):find(part, 1, true) then error(tostring(text) .. ": wanted " .. part, 2) end
end

-- A request with a cookie, or nil, that the function answers. Returns the response, and the cookie that the client has then.
local function ask(cookie, handler, options)
  options = options or {}
  options.url, options.headers = "http://127.0.0.1:" .. server.port .. "/" .. (options.at or ""), options.headers or {}
  options.at = nil
  options.headers.Cookie = cookie
  action = handler
  local response = assert(client.request(options))
  local line = response.headers["Set-Cookie"]

  return response, line and (line:find "Max%-Age=0" and "removed" or line:match "^[^;]*") or cookie, line
end

-- A request in whose session the function runs.
local function visit(sessions, cookie, fn)
  local why
  local response, got, line = ask(cookie, function(req, res)
    local is_right, result = xpcall(function()
      local s = sessions:open(req, res)

      equal(sessions:open(req, res), s)
      return fn(s, req, res)
    end, function(wrong) return type(wrong) == "table" and wrong or debug.traceback(wrong) end)
    if is_right then return tostring(result) end
    if type(result) == "table" then error(result) end
    why = result
  end)

  if why then error(why, 0) end
  return response, got, line
end

local function user_of(sessions, cookie)
  local response = visit(sessions, cookie, function(s) return s:get "user" end)
  return response.body
end

local function set_user(name) return function(s) s:set("user", name) end end

-- What holds with each kind of store.
local function check_kind(make)
  local sessions = make{ secret = SECRET }
  local response, ann, line = visit(sessions, nil, function(s)
    equal(s:is_new(), true)
    equal(s:get "user", nil)
    s:set("user", "Ann")
    equal(s:is_new(), false)
    s:set{ list = { 1, 2 }, n = 7 }
    return s:get "user"
  end)

  equal(response.body, "Ann")
  find(line, "; Path=/; HttpOnly; SameSite=Lax")
  equal(visit(sessions, ann, function(s) return s:get "list"[2] + s:get "n" end).body, "9")
  local _, same = visit(sessions, ann, function(s) s:set("n", nil) return s:get "n" end)
  equal(visit(sessions, same, function(s) return s:get "n" end).body, "nil")
  equal(user_of(sessions, "x=1; " .. same .. "; y=2"), "Ann")

  -- A cookie that was changed, is another program's, or none at all.
  for _, bad in ipairs{ "session=", "session=x", "session=a.b", "session=%", same:sub(1, -6) .. "AAAAA", same .. "A",
    "session=" .. ("x"):rep(5000), "other=1" } do
    equal(user_of(sessions, bad), "nil")
  end
  equal(user_of(make{ secret = OTHER }, same), "nil")
  equal(user_of(make{ secret = SECRET, name = "other" }, same:gsub("^session", "other")), "nil")
  equal(user_of(make{ secret = { OTHER, SECRET } }, same), "Ann")

  -- Another id, nothing left, a beginning.
  local _, renewed = visit(sessions, same, function(s) s:renew() end)
  equal(user_of(sessions, renewed), "Ann")
  equal(renewed == same, false)
  local _, removed = visit(sessions, renewed, function(s) s:destroy() return s:get "user" end)
  equal(removed, "removed")
  local _, fresh = visit(sessions, nil, function(s) s:renew() s:destroy() s:destroy() s:set("user", "Bob") end)
  equal(user_of(sessions, fresh), "Bob")

  -- What a session cannot have leaves it as it was.
  for wrong, why in pairs{ [1] = "a name, or a table of values expected", [{ 7 }] = "names are strings, not a number",
    [{ f = print }] = "Cannot serialise function", [{ b = "\xff" }] = "a string is not UTF-8" } do
    local answer = visit(sessions, fresh, function(s) return select(2, pcall(s.set, s, wrong)) end)
    find(answer.body, "session:set: ")
    find(answer.body, why)
  end
  equal(user_of(sessions, fresh), "Bob")

  -- The end of the time.
  local short = make{ secret = SECRET, idle = 100, lifetime = 250, persistent = true, path = "/", same_site = "Strict" }
  local _, cookie, whole = visit(short, nil, set_user "Eve")
  find(whole, "; Max-Age=250; HttpOnly; SameSite=Strict")
  for _ = 1, 2 do
    pass(80)
    local answer, next_cookie = visit(short, cookie, function(s) return s:get "user" end)
    equal(answer.body, "Eve")
    cookie = next_cookie
  end
  task.sleep(5)
  equal(user_of(short, cookie), "Eve")
  pass(90)
  equal(user_of(short, cookie), "nil")
  _, cookie = visit(short, nil, set_user "Eve")
  pass(110)
  equal(user_of(short, cookie), "nil")

  -- The tokens of forms.
  local token
  _, cookie = visit(sessions, nil, function(s)
    equal(s:check "x", false)
    token = s:token()
    equal(s:check(token), true)
    equal(token == s:token(), false)
  end)
  visit(sessions, cookie, function(s)
    equal(s:check(token), true)
    for _, bad in ipairs{ "", "x", token:sub(1, -5), token:sub(1, -6) .. "AAAAA", false } do equal(s:check(bad), false) end
    equal(s:check(nil), false)
  end)
  visit(make{ secret = { OTHER, SECRET } }, cookie, function(s) equal(s:check(token), true) end)
  visit(sessions, fresh, function(s) equal(s:check(token), false) end)

  -- The guard.
  local filter, guard = sessions:filter(), sessions:guard()
  local function handler(req, res)
    filter(req, res)
    equal(req.ctx.session, sessions:open(req, res))
    local status, why = guard(req, res)
    if status then return status, why end
    return req.method .. ((req:form() or {}).a or "")
  end
  equal(ask(cookie, handler).body, "GET")
  for options, status in pairs{ [{ method = "POST" }] = 403, [{ method = "DELETE" }] = 403,
    [{ method = "POST", form = { a = 1 } }] = 403, [{ method = "POST", form = { csrf_token = "x", a = 1 } }] = 403,
    [{ method = "POST", form = { csrf_token = token, a = 1 } }] = 200,
    [{ method = "PUT", headers = { ["X-CSRF-Token"] = token } }] = 200,
    [{ method = "POST", at = "?csrf_token=" .. token, form = { a = 1 } }] = 403,
    [{ method = "POST", at = "?csrf_token=" .. token, multipart = { { name = "a", value = 1 } } }] = 415,
    [{ method = "POST", at = "?csrf_token=x", multipart = { { name = "a", value = 1 } } }] = 403,
    [{ method = "POST", multipart = { { name = "csrf_token", value = token } } }] = 403,
    [{ method = "POST", json = { csrf_token = token } }] = 403 } do
    equal(ask(cookie, handler, options).status, status) -- 415: the guard lets a form pass that req:form() refuses
  end
  return sessions, cookie
end

-- A session that another request ends while a handler works with it, in a store of each kind.
local function check_ended(make)
  local sessions = make{ secret = SECRET }
  for _, last in ipairs{ "set", "renew" } do
    local _, cookie = visit(sessions, nil, set_user "Ann")
    local response = visit(sessions, cookie, function(s)
      local first = action
      visit(sessions, cookie, function(other) other:destroy() end)
      action = first
      if last == "set" then s:set("user", "Eve") else s:renew() end
    end)
    equal(response.status, 409)
    equal(user_of(sessions, cookie), "nil")
  end
end

-- ---- In cookies ----

local function in_cookies()
  local sessions = check_kind(session.new)
  local answer = visit(sessions, nil, function(s, _, res)
    local _, why = pcall(s.set, s, "user", ("x"):rep(4000))
    find(why, "session:set: res:cookie: 'session' has more than 4096 bytes")
    res:send "begun"
    find(select(2, pcall(s.set, s, "user", "Ann")), "the reply has begun")
    find(select(2, pcall(s.destroy, s)), "session:destroy: the reply has begun, so the cookie cannot be removed")
    equal(s:get "user", nil)
  end)
  equal(answer.body, "begun")
  find(select(2, pcall(sessions.open, sessions, {})), "sessions:open: req and res expected")

  -- Once half of the time has passed, the cookie is replaced, unless the reply has begun.
  local _, cookie = visit(sessions, nil, set_user "Ann")
  local _, same = visit(sessions, cookie, function() end)
  equal(same, cookie)
  pass(1700)
  _, same = visit(sessions, cookie, function() end)
  equal(same, cookie)
  pass(200)
  ask(cookie, function(req, res)
    res:send "begun"
    equal(sessions:open(req, res):get "user", "Ann")
  end)
  _, same = visit(sessions, cookie, function() end)
  equal(same == cookie, false)
  equal(user_of(sessions, same), "Ann")

  -- A sealed text that is no record.
  local crypto = require "sxe.crypto"
  local key = crypto.hkdf("sha256", SECRET, { info = "sxe.session cookie" })
  for _, text in ipairs{ "x", "1", "{}", '{"id":1}', '{"id":"a","made":"x"}', '{"id":"a","made":1e12,"seen":"x"}',
    '{"id":"a","made":1e12,"values":1}' } do
    local sealed = crypto.seal(key, text, { aad = "session" })
    equal(user_of(sessions, "session=" .. encoding.encode_base64(sealed, { url = true })), "nil")
  end
end

-- ---- In stores ----

local function in_dict()
  local names = dict.open{ name = "sessions", cells = 100, evicts = true }
  local function make(options)
    options.dict = names
    return session.new(options)
  end
  local sessions = check_kind(make)
  check_ended(make)
  local _, cookie = visit(sessions, nil, set_user "Ann")

  -- A reply that has begun may change values, but not the cookie. What was destroyed or renewed is over at once.
  visit(sessions, cookie, function(s, _, res)
    res:send "begun"
    s:set("user", "Bob")
    find(select(2, pcall(s.renew, s)), "session:renew: the reply has begun, so the cookie cannot be set")
  end)
  equal(user_of(sessions, cookie), "Bob")
  visit(sessions, nil, function(s, _, res)
    res:send "begun"
    find(select(2, pcall(s.set, s, "user", "Ann")), "session:set: the reply has begun")
    find(select(2, pcall(s.token, s)), "session:token: the reply has begun")
  end)
  local _, renewed = visit(sessions, cookie, function(s) s:renew() end)
  equal(user_of(sessions, cookie), "nil")
  visit(sessions, renewed, function(s) s:destroy() end)
  equal(user_of(sessions, renewed), "nil")

  -- Another record in the place of the right one, as by one who can write into the store.
  _, cookie = visit(sessions, nil, set_user "Ann")
  local _, other = visit(sessions, nil, set_user "Eve")
  local stolen
  for key, value in names:each() do
    if value:find "Eve" then stolen = value end
    assert(not (key .. value):find(other:match "=(.*)%.", 1, true))
  end
  for key, value in names:each() do
    if value:find "Ann" then names:put(key, stolen) end
  end
  equal(user_of(sessions, cookie), "nil")
  local full = dict.open{ name = "full", cells = 1 }
  full:put("x", "y")
  local answer = visit(session.new{ secret = SECRET, dict = full }, nil, set_user "Ann")
  equal(answer.status, 503)
  equal(json.decode(answer.body).error, "the store of sessions failed")
end

local function in_table()
  local texts, ends, failure = {}, {}, nil
  local store, on_delete = {}, function() end
  function store.get(_, key, seconds)
    assert(math.type(seconds) == "integer")
    if ends[key] and ends[key] <= os.time() then texts[key] = nil end
    ends[key] = os.time() + seconds
    return texts[key], failure
  end
  function store.put(_, key, text, seconds, replaces)
    assert(math.type(seconds) == "integer" and json.decode(text))
    if failure then return nil, failure end
    if replaces and not texts[key] then return false end
    texts[key], ends[key] = text, os.time() + seconds
    return true
  end
  function store.delete(_, key)
    local is_there = texts[key] ~= nil
    local is_done, why = on_delete(key)

    if is_done == false then return nil, why end
    texts[key] = nil
    return is_there
  end
  local function make(options)
    options.store = store
    return session.new(options)
  end
  local sessions, cookie = check_kind(make)
  check_ended(make)

  local function count()
    local number = 0
    for _ in pairs(texts) do number = number + 1 end
    return number
  end

  -- A call that fails leaves the session and its cookie as they were, and nothing else in the store.
  local _, ann = visit(sessions, nil, set_user "Ann")
  local before = count()
  local function fails(call, text)
    local response, after = visit(sessions, ann, function(s)
      local is_done, why = pcall(s[call], s, "user", "Eve")
      failure, on_delete = nil, function() end
      equal(is_done, false)
      equal(s:get "user", "Ann")
      return why.detail
    end)
    equal(response.body, text)
    equal(after, ann)
    equal(user_of(sessions, ann), "Ann")
    equal(count(), before)
  end

  for call, name in pairs{ set = "put", renew = "put" } do
    local get = store.get
    store.get = function(...)
      local text = get(...)
      failure, store.get = "the disk is full", get
      return text
    end
    fails(call, name .. ": the disk is full")
  end
  for _, call in ipairs{ "renew", "destroy" } do
    local calls = 0
    on_delete = function()
      calls = calls + 1
      if calls == 1 then return false, "no server" end
    end
    fails(call, "delete: no server")
  end
  local answer = visit(sessions, nil, function(s) failure = "the disk is full" s:set("user", "Ann") end)
  failure = nil
  equal(json.decode(answer.body).error, "the store of sessions failed")

  -- The reply begins while the store is asked.
  local function begins(call, sent, text)
    local put, response = store.put, nil
    visit(sessions, sent, function(s, _, res)
      store.put = function(...) res:send "begun" return put(...) end
      on_delete = function() if not res.is_begun then res:send "begun" end end
      response = select(2, pcall(s[call], s, "user", "Eve"))
      store.put, on_delete = put, function() end
    end)
    if text then find(response, text) else equal(response, nil) end
  end
  before = count()
  begins("set", nil, "session:set: res:cookie: the reply has begun")
  begins("renew", ann, "session:renew: res:cookie: the reply has begun")
  equal(count(), before)
  equal(user_of(sessions, ann), "Ann")
  begins("destroy", ann)
  equal(count(), before - 1)

  -- Tasks of one request take turns, also with a store that waits.
  _, ann = visit(sessions, nil, set_user "Ann")
  before = count()
  on_delete = function() task.sleep(0) end
  local _, renewed = visit(sessions, ann, function(s)
    local renewer = task.start(s.renew, s)
    local setter = task.start(s.set, s, "n", 7)
    local late = task.start(function() return pcall(s.set, s, "n", 8) end)
    late:cancel()
    local is_done, why = late:join()
    equal(is_done or false, false)
    find(why, "cancelled")
    renewer:join()
    setter:join()
  end)
  on_delete = function() end
  equal(visit(sessions, renewed, function(s) return s:get "user" .. s:get "n" end).body, "Ann7")
  equal(user_of(sessions, ann), "nil")
  equal(count(), before)

  -- Tasks of one request that open its session together get the same one.
  local get = store.get
  store.get = function(...) task.sleep(0) return get(...) end
  ask(renewed, function(req, res)
    local found = {}
    task.parallel({ 1, 2, 3 }, function(i) found[i] = sessions:open(req, res) end)
    assert(found[1] == found[2] and found[2] == found[3])
    equal(found[1]:get "user", "Ann")
  end)
  store.get = get

  -- Two objects of one name.
  local twin, other = make{ secret = SECRET }, make{ secret = SECRET, name = "other" }
  visit(sessions, renewed, function(_, req, res)
    find(select(2, pcall(twin.open, twin, req, res)), "sessions:open: the request has another session in the cookie 'session'")
    equal(other:open(req, res):is_new(), true)
  end)
  failure = "no server"
  texts = {}
  equal(visit(sessions, cookie, function() end).status, 503)
end

-- Commands as Redis answers them, with times to live.
local values, ends = {}, {}
local function serve_redis(conn)
  while true do
    local number = conn:read "l"
    if not number then return end
    local words = {}
    for i = 1, tonumber(number:match "%d+") do
      local length = tonumber(conn:read "l":match "%d+")
      words[i] = conn:read(length)
      conn:read "l"
    end
    local name, key = words[1]:upper(), words[2]
    if ends[key] and ends[key] <= os.time() then values[key] = nil end
    if name == "GETEX" and values[key] then
      ends[key] = os.time() + words[4]
      conn:write("$" .. #values[key] .. "\r\n" .. values[key] .. "\r\n")
    elseif name == "GETEX" then conn:write "$-1\r\n"
    elseif name == "SET" and words[6] == "XX" and not values[key] then conn:write "$-1\r\n"
    elseif name == "SET" then
      values[key], ends[key] = words[3], os.time() + words[5]
      conn:write "+OK\r\n"
    elseif name == "DEL" then
      conn:write(values[key] and ":1\r\n" or ":0\r\n")
      values[key] = nil
    else conn:write "-ERR unknown command\r\n" end
  end
end

local function in_redis()
  local peer = tcp.serve("127.0.0.1", 0, serve_redis)
  task.sleep(0)
  local db = redis.new{ port = peer.port, protocol = 2 }
  local function make(options)
    options.redis = db
    return session.new(options)
  end
  local sessions, cookie = check_kind(make)
  check_ended(make)
  db:close()
  peer:close()
  equal(visit(sessions, cookie, function() end).status, 503)
end

-- ---- Options ----

local function refusals()
  local names = dict.open{ name = "unused", cells = 1 }
  for wrong, why in pairs{ [1] = "a table of options expected, got number",
    [{}] = "secret: a random string of at least 32 bytes", [{ secret = "short" }] = "at least 32 bytes expected, or a list",
    [{ secret = {} }] = "a list of up to 16 of them", [{ secret = { SECRET, 7 } }] = "at least 32 bytes expected, or a list",
    [{ secret = SECRET, nmae = 1 }] = "session.new has no option 'nmae'",
    [{ secret = SECRET, name = 1 }] = "name: a string expected, got number",
    [{ secret = SECRET, name = "a b" }] = "name: 'a b' is no token", [{ secret = SECRET, name = "" }] = "name: '' is no token",
    [{ secret = SECRET, name = ("n"):rep(101) }] = "is no token of at most 100 bytes",
    [{ secret = SECRET, path = "x" }] = "path: it begins with a slash", [{ secret = SECRET, path = "/;" }] = "no semicolon",
    [{ secret = SECRET, domain = "a;b" }] = "domain: a name of a host expected",
    [{ secret = SECRET, same_site = "None" }] = "same_site: Lax, Strict, or None with secure = true",
    [{ secret = SECRET, same_site = "x" }] = "same_site: Lax, Strict, or None with secure = true",
    [{ secret = SECRET, idle = 0 }] = "idle: a whole number of seconds expected, 1 to 1,000,000,000",
    [{ secret = SECRET, lifetime = 1.5 }] = "lifetime: a whole number of seconds",
    [{ secret = SECRET, lifetime = 1 << 40 }] = "lifetime: a whole number of seconds",
    [{ secret = SECRET, store = {} }] = "store: it has no function 'get'",
    [{ secret = SECRET, dict = names, store = { get = 1 } }] = "one of dict, redis and store expected" } do
    local is_made, message = pcall(session.new, wrong)
    equal(is_made, false)
    find(message, why)
  end
  local list = {}
  for i = 1, 17 do list[i] = SECRET end
  find(select(2, pcall(session.new, { secret = list })), "a list of up to 16 of them")
  session.new{ secret = SECRET, idle = 60.0 }
end

task.start(function()
  local is_right, why = xpcall(function()
    task.sleep(0)
    in_cookies()
    in_dict()
    in_table()
    in_redis()
    refusals()
    server:stop()
  end, debug.traceback)

  done = is_right or why
end)
