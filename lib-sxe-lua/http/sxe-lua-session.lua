-- SPDX-License-Identifier: MIT
--
-- Sessions: what a server knows of a client from one request to the next (docs/sessions.md).
--
--   without a store   cookie = base64url(seal(record))
--   with a store      cookie = id "." base64url(hmac(id)), and in the store: digest of the id = record
--
--   record, as JSON   { id =, made = (seconds since 1970), seen = (the same), values = { name = value } }
--                     in a store: its digest                without a store
--
-- With a store, its own times to live end sessions that nobody uses. A store has digests of ids
-- only, so one who reads it cannot take over the sessions in it, not even with the secret.
local error, ipairs, match, max, min, pairs, pcall = error, ipairs, string.match, math.max, math.min, pairs, pcall
local require, setmetatable, sub, time, tostring, type = require, setmetatable, string.sub, os.time, tostring, type
local crypto, encoding, json, task

local COOKIE_MAX <const> = 4096
local SECRETS_MAX <const> = 16
local SECRET_MIN <const> = 32
local SALT, TOKEN <const> = 12, 44 -- bytes of a form's token: of the salt, and of the whole token
local URL <const> = { url = true }
local SAFE <const> = { GET = true, HEAD = true, OPTIONS = true, TRACE = true }

local Sessions = { __name = "sxe.sessions", __metatable = false }
Sessions.__index = Sessions
local Session = { __name = "sxe.session", __metatable = false }
Session.__index = Session

-- The configuration of each object: scripts must not change it.
local configs = setmetatable({}, { __mode = "k" })
local states = setmetatable({}, { __mode = "k" })

-- ---- Options ----

local TYPES <const> = { name = "string", path = "string", domain = "string", same_site = "string", secure = "boolean",
  persistent = "boolean", idle = "number", lifetime = "number", dict = "userdata", redis = "table", store = "table" }

local function check_options(options)
  if type(options) ~= "table" then error("session.new: a table of options expected, got " .. type(options), 3) end
  for name, value in pairs(options) do
    local wanted = TYPES[name]

    if name ~= "secret" and not wanted then error("session.new has no option '" .. tostring(name) .. "'", 3) end
    if wanted and type(value) ~= wanted then
      error("session.new: " .. name .. ": a " .. wanted .. " expected, got " .. type(value), 3)
    end
  end
  for _, name in ipairs{ "idle", "lifetime" } do
    local seconds = math.tointeger(options[name] or 1)

    if not seconds or seconds < 1 or seconds > 1000000000 then
      error("session.new: " .. name .. ": a whole number of seconds expected, 1 to 1,000,000,000", 3)
    end
  end
end

-- Refuse options that res:cookie would refuse at the first login.
local function check_cookie(options)
  local path, domain, same_site = options.path or "/", options.domain or "-", options.same_site or "Lax"

  if match(path, "^/[^;%c]*$") == nil then error("session.new: path: it begins with a slash and has no semicolon", 3) end
  if match(domain, "^[^;%c]+$") == nil then error("session.new: domain: a name of a host expected", 3) end
  if same_site ~= "Lax" and same_site ~= "Strict" and (same_site ~= "None" or not options.secure) then
    error("session.new: same_site: Lax, Strict, or None with secure = true expected", 3)
  end
end

-- The secrets as a list; the first one signs.
local function take_secrets(secret)
  local secrets = type(secret) == "table" and secret or { secret }
  local are_good = #secrets > 0 and #secrets <= SECRETS_MAX

  for i = 1, #secrets do are_good = are_good and type(secrets[i]) == "string" and #secrets[i] >= SECRET_MIN end
  if not are_good then
    error("session.new: secret: a random string of at least " .. SECRET_MIN .. " bytes expected, or a list of up to " ..
      SECRETS_MAX .. " of them, the same in all processes: openssl rand -hex 32 prints one", 3)
  end
  return secrets
end

-- The keys for one purpose: one from each secret.
local function derive_keys(secrets, purpose)
  local keys = {}

  for i = 1, #secrets do keys[i] = crypto.hkdf("sha256", secrets[i], { info = "sxe.session " .. purpose }) end
  return keys
end

-- ---- Stores ----

-- Replace the text that a key has. False: the key has none.
local function replace_in_dict(dict, key, text, seconds)
  local old

  repeat
    old = dict:get(key)
    if not old then return false end
    local is_done, why = dict:cas(key, old, text, seconds)

    if is_done == nil then return nil, why end
  until is_done
  return true
end

local function store_in_dict(dict)
  return {
    get = function(_, key, seconds)
      local text = dict:get(key)

      if text then dict:expire(key, seconds) end
      return text
    end,
    put = function(_, key, text, seconds, replaces)
      if replaces then return replace_in_dict(dict, key, text, seconds) end
      return dict:put(key, text, seconds)
    end,
    delete = function(_, key) return dict:remove(key) end,
  }
end

local function store_in_redis(redis)
  local null = require "sxe.redis".null

  return {
    get = function(_, key, seconds)
      local text, why = redis:call("GETEX", key, "EX", seconds)

      if text == null then return nil end
      return text, why
    end,
    put = function(_, key, text, seconds, replaces)
      if not replaces then return redis:set(key, text, "EX", seconds) end
      local answer, why = redis:set(key, text, "EX", seconds, "XX")

      if answer == null then return false end
      return answer, why
    end,
    delete = function(_, key)
      local number, why = redis:del(key)

      if number == 0 then return false end
      return number, why
    end,
  }
end

-- The store that the options name; nil: the cookie holds all of a session.
local function take_store(options)
  local number = 0

  for _, name in ipairs{ "dict", "redis", "store" } do number = number + (options[name] and 1 or 0) end
  if number > 1 then error("session.new: one of dict, redis and store expected", 3) end
  if options.dict then return store_in_dict(options.dict) end
  if options.redis then return store_in_redis(options.redis) end
  for _, name in ipairs(options.store and { "get", "put", "delete" } or {}) do
    if type(options.store[name]) ~= "function" then error("session.new: store: it has no function '" .. name .. "'", 3) end
  end
  return options.store
end

-- Call a function of the store. If that fails, the reply is 503, because the request is not at fault. The store's text
-- goes to the log only, as it may name hosts and keys.
local function ask_store(config, name, ...)
  local value, why = config.store[name](config.store, ...)

  if value == nil and why ~= nil then
    error({ status = 503, message = "the store of sessions failed", detail = name .. ": " .. tostring(why) }, 0)
  end
  return value
end

local function key_of(config, id)
  return config.name .. ":" .. encoding.encode_base64(crypto.digest("sha256", id), URL)
end

-- ---- Records ----

local function is_alive(config, record, now)
  return now - record.made < config.lifetime and (not record.seen or now - record.seen < config.idle)
end

local function decode_record(config, text)
  local record = json.decode(text)

  if type(record) == "table" and type(record.id) == "string" and type(record.made) == "number" and
    type(record.seen or 0) == "number" and type(record.values) == "table" and is_alive(config, record, time()) then
    return record
  end
end

local function read_sealed(config, cookie)
  local sealed = encoding.decode_base64(cookie, URL)

  for _, key in ipairs(sealed and config.seals or {}) do
    local text = crypto.open(key, sealed, { aad = config.name })

    if text then return decode_record(config, text) end
  end
end

local function sign_id(key, id) return id .. "." .. encoding.encode_base64(crypto.hmac("sha256", key, id), URL) end

local function read_stored(config, cookie)
  local id = match(cookie, "^([%w_-]+)%.[%w_-]+$")

  for _, key in ipairs(id and config.codes or {}) do
    if crypto.equal(sign_id(key, id), cookie) then
      local place = key_of(config, id)
      local text = ask_store(config, "get", place, config.idle)
      local record = text and decode_record(config, text)

      if not record or record.id ~= place then return nil end
      record.id = id
      return record
    end
  end
end

-- The record that the cookie of a request stands for; nil: there is none, or it is not valid any more.
local function read_record(config, cookie)
  if not cookie or #cookie > COOKIE_MAX then return nil end
  return (config.store and read_stored or read_sealed)(config, cookie)
end

-- ---- Writing ----

local function set_cookie(config, res, value, seconds)
  res:cookie(config.name, value, { path = config.path, domain = config.domain, same_site = config.same_site,
    secure = config.secure, max_age = config.persistent and seconds or nil })
end

-- Set the cookie. Returns nil; or why it cannot be set.
local function try_cookie(state, value, seconds)
  local is_set, why = pcall(set_cookie, state.config, state.res, value, seconds)

  return not is_set and (match(tostring(why), "res:cookie: .*") or tostring(why)) or nil
end

local function refuse_ended(is_there)
  if is_there == false then error({ status = 409, message = "the session was ended by another request" }, 0) end
end

local function seconds_left(config, record) return max(1, record.made + config.lifetime - time()) end

-- Write a record to the store. A session that another request has ended stays so: a record is replaced, but none is
-- added.
local function write_stored(state, record, place, text, left, call)
  local config = state.config
  local is_new = not state.record or state.record.id ~= record.id

  if is_new and state.res.is_begun then error(call .. ": the reply has begun, so the cookie cannot be set", 4) end
  refuse_ended(ask_store(config, "put", place, text, min(config.idle, left), not is_new))
  local why = is_new and try_cookie(state, sign_id(config.codes[1], record.id), left)

  if not why then return end
  pcall(ask_store, config, "delete", place)
  error(call .. ": " .. why, 4)
end

local function write_sealed(state, text, left, call)
  local config = state.config
  local why = try_cookie(state,
    encoding.encode_base64(crypto.seal(config.seals[1], text, { aad = config.name }), URL), left)

  if why then error(call .. ": " .. why, 4) end
end

-- Write a record, and then use it as the session's. An error leaves both unchanged.
local function write_record(state, record, call)
  local config = state.config
  local left, place = seconds_left(config, record), config.store and key_of(config, record.id)

  record.seen = not place and time() or nil
  local is_json, text = pcall(json.encode,
    { id = place or record.id, made = record.made, seen = record.seen, values = record.values })

  if not is_json then error(call .. ": " .. tostring(text), 3) end
  if not utf8.len(text) then error(call .. ": a string is not UTF-8; sxe.encoding makes text of bytes", 3) end
  if place then write_stored(state, record, place, text, left, call) else write_sealed(state, text, left, call) end
  state.record = record
end

local function new_record(values)
  return { id = crypto.random_token(), made = time(), values = values }
end

-- A copy of the record with other values or another id.
local function copy_record(state, values)
  local record = state.record

  if not record then return new_record(values) end
  return { id = record.id, made = record.made, values = values }
end

-- ---- A session ----

-- Let tasks of one request that write its session take turns, because a store may wait.
local function take_turn(state, call)
  local turn, why = nil, nil

  if state.turn then turn, why = state.turn:acquire() end
  if why then error(call .. ": " .. why, 3) end
  return turn
end

function Session:get(name)
  local record = states[self].record

  return record and record.values[name]
end

function Session:set(name, value)
  local state, values = states[self], {}
  local _ <close> = take_turn(state, "session:set")

  for key, old in pairs(state.record and state.record.values or {}) do values[key] = old end
  if type(name) == "string" then
    values[name] = value
  elseif type(name) == "table" then
    for key, new in pairs(name) do
      if type(key) ~= "string" then error("session:set: names are strings, not a " .. type(key), 2) end
      values[key] = new
    end
  else
    error("session:set: a name, or a table of values expected, got " .. type(name), 2)
  end
  write_record(state, copy_record(state, values), "session:set")
end

function Session:is_new() return not states[self].record end

-- Delete the session from the store, if there is one. False: the session was not there any more.
local function delete_stored(state, record)
  return state.config.store and record and ask_store(state.config, "delete", key_of(state.config, record.id))
end

-- Set the cookie again that the client had.
local function restore_cookie(state)
  local config, record = state.config, state.record

  if config.store and record then
    try_cookie(state, sign_id(config.codes[1], record.id), seconds_left(config, record))
  end
end

-- Renew a session. The new record is stored before the old one is deleted, so that no failure loses the values.
function Session:renew()
  local state = states[self]
  local _ <close> = take_turn(state, "session:renew")
  local old = state.record
  local record = new_record(old and old.values or {})

  if state.res.is_begun then error("session:renew: the reply has begun, so the cookie cannot be set", 2) end
  write_record(state, record, "session:renew")
  local is_asked, was_there = pcall(delete_stored, state, old)

  if is_asked and was_there ~= false then return end
  state.record = old
  pcall(delete_stored, state, record)
  restore_cookie(state)
  if not is_asked then error(was_there, 0) end
  refuse_ended(was_there)
end

-- End a session. The cookie is removed first, because the reply may begin while the store is asked.
function Session:destroy()
  local state = states[self]
  local _ <close> = take_turn(state, "session:destroy")

  if state.res.is_begun then error("session:destroy: the reply has begun, so the cookie cannot be removed", 2) end
  set_cookie(state.config, state.res, nil)
  local is_asked, why = pcall(delete_stored, state, state.record)

  if is_asked then
    state.record = nil
    return
  end
  restore_cookie(state)
  error(why, 0)
end

-- ---- Tokens of forms ----

local function code_of(state, key, salt) return salt .. crypto.hmac("sha256", key, salt .. state.record.id) end

function Session:token()
  local state = states[self]
  local _ <close> = take_turn(state, "session:token")

  if not state.record then write_record(state, new_record{}, "session:token") end
  return encoding.encode_base64(code_of(state, state.config.forms[1], crypto.random_bytes(SALT)), URL)
end

function Session:check(token)
  local state = states[self]
  local bytes = state.record and type(token) == "string" and encoding.decode_base64(token, URL)

  for _, key in ipairs(bytes and #bytes == TOKEN and state.config.forms or {}) do
    if crypto.equal(code_of(state, key, sub(bytes, 1, SALT)), bytes) then return true end
  end
  return false
end

-- ---- Sessions ----

-- Refresh the cookie. Without a store it says when the session was last used. A late reply would bring back older
-- values, so this is done seldom.
local function refresh(state)
  local record = state.record

  if record and record.seen and time() - record.seen > state.config.idle / 2 and not state.res.is_begun then
    write_record(state, copy_record(state, record.values), "sessions:open")
  end
end

function Sessions:open(req, res)
  if not req or not res then error("sessions:open: req and res expected", 2) end
  local config, ctx = configs[self], req.ctx
  local session = ctx[self]

  if session then return session end
  if (ctx[config.mark] or self) ~= self then
    error("sessions:open: the request has another session in the cookie '" .. config.name ..
      "': give one of the two another name in session.new", 2)
  end
  ctx[config.mark] = self
  local record = read_record(config, req.cookies[config.name])

  if ctx[self] then return ctx[self] end -- another task of the request was faster
  session = setmetatable({}, Session)
  states[session] = { config = config, res = res, record = record, turn = config.store and task.semaphore(1) }
  refresh(states[session])
  ctx[self] = session
  return session
end

function Sessions:filter()
  return function(req, res) req.ctx.session = self:open(req, res) end
end

-- The token that a request brings, in a header or in a form. The handler reads a form of multipart/form-data as it
-- arrives, after the filter, so its token is in the query.
local function token_of(req)
  local token, kind = req.headers["X-CSRF-Token"], (req.headers["Content-Type"] or ""):lower()

  if token then return token end
  if match(kind, "^multipart/form%-data%f[;%s\0]") then return req.query.csrf_token end
  if not match(kind, "^application/x%-www%-form%-urlencoded%f[;%s\0]") then return nil end
  local fields = req:form()

  return fields and fields.csrf_token
end

function Sessions:guard()
  return function(req, res)
    if not SAFE[req.method] and not self:open(req, res):check(token_of(req)) then
      return 403, "the form is too old, or from another site: load the page again\n"
    end
  end
end

-- ---- The module ----

local session = {}

function session.new(options)
  check_options(options)
  check_cookie(options)
  crypto, encoding, json, task = require "sxe.crypto", require "sxe.encoding", require "sxe.json", require "sxe.task"
  local secrets = take_secrets(options.secret)
  local name = options.name or "session"
  local sessions = setmetatable({}, Sessions)

  if #name == 0 or #name > 100 or match(name, "[^%w!#$%%&'*+.^_`|~-]") then error("session.new: name: '" .. name .. "' is no token of at most 100 bytes", 2) end
  configs[sessions] = { name = name, mark = "sxe.session " .. name, path = options.path, domain = options.domain, same_site = options.same_site,
    secure = options.secure, persistent = options.persistent, idle = math.tointeger(options.idle or 3600),
    lifetime = math.tointeger(options.lifetime or 86400), store = take_store(options), seals = derive_keys(secrets, "cookie"),
    codes = derive_keys(secrets, "id"), forms = derive_keys(secrets, "form") }
  return sessions
end

return session
