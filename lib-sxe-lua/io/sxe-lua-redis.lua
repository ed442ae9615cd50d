-- SPDX-License-Identifier: MIT
--
-- require "sxe.redis": commands of Redis as calls that return. It gets from sxe-lua-redis.c what reads and writes the
-- protocol, and returns the module.
--
-- A link is a connection; calls are the commands that wait for a reply in it, in the order in which they were sent.
-- No task reads for all: the task whose command is alone reads, gives the replies of others to them, and when it has its own
-- the next task reads on.
--
--   db:call -> take_link: the link with the fewest calls, or a new one -> send -> lead: read, deliver -> its reply
--                                                                             or follow: another task reads
--   db:blpop, handles -> take_own: a link that nobody shares -> the same -> a spare link, or closed
--
-- A call that ends without its reply leaves its place in the order. Its link takes no more commands, and is closed as
-- soon as no other call waits in it: a reply never reaches another call than its own.
local c = ...
local json, task, tcp = require "sxe.json", require "sxe.task", require "sxe.tcp"
local concat, remove, unpack = table.concat, table.remove, table.unpack
local find, format, match, upper = string.find, string.format, string.match, string.upper
local error, ipairs, max, min, pairs, tointeger = error, ipairs, math.max, math.min, pairs, math.tointeger
local rawget, select, setmetatable, tonumber, tostring, type = rawget, select, setmetatable, tonumber, tostring, type

local A_TURN <const> = 1e-6 -- seconds: a wait of one turn of the loop
local SHARE <const> = 32    -- calls that wait in each link before another is opened
local NEVER <const> = 1e9   -- seconds

local OPTIONS <const> = {
  host = "string", port = "number", unix = "string", user = "string", password = "string", db = "number",
  size = "number", handles = "number", timeout = "number", reply_max = "number", protocol = "number",
  tls = "boolean or table",
}
local DEFAULTS <const> = {
  host = "127.0.0.1", port = 6379, db = 0, size = 4, handles = 16, timeout = 5, reply_max = 64 << 20, protocol = 3,
}

-- Commands after which a connection is not what it was, or whose replies are not one for each.
local NOT_SHARED <const> = {}
for name in ([[AUTH HELLO SELECT QUIT RESET MULTI EXEC DISCARD WATCH UNWATCH SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE
    PUNSUBSCRIBE SUNSUBSCRIBE MONITOR SYNC PSYNC REPLCONF ASKING READONLY READWRITE]]):gmatch("%u+") do
  NOT_SHARED[name] = true
end
local NOT_SHARED_CLIENT <const> = { REPLY = true, TRACKING = true, CACHING = true }
-- Commands that may wait in the server, and where their seconds are: an argument from the first or from the last, or
-- after BLOCK.
local BLOCKING <const> = {
  BLPOP = -1, BRPOP = -1, BLMOVE = -1, BRPOPLPUSH = -1, BZPOPMIN = -1, BZPOPMAX = -1, WAIT = -1, WAITAOF = -1,
  BLMPOP = 1, BZMPOP = 1, XREAD = "BLOCK", XREADGROUP = "BLOCK",
}
local MILLISECONDS <const> = { WAIT = true, WAITAOF = true, XREAD = true, XREADGROUP = true }

local function left_of(deadline)
  return max(deadline - c.now(), A_TURN)
end

-- ---- Links ----

local function forget(link)
  for i, one in ipairs(link.list) do
    if one == link then remove(link.list, i) end
  end
end

-- Tasks that wait for a link look again.
local function tell_waiting(pool)
  local changed = pool.changed

  pool.changed = task.event()
  changed:set()
end

-- The link ends, and with it all calls that wait in it.
local function end_link(link, why, code)
  local first, last = link.first, link.last

  if link.is_over then return end
  link.is_over, link.leader, link.live, link.why, link.code = true, nil, 0, why, code
  forget(link)
  if link.conn then link.conn:close() end
  for i = first, last do
    local call = link.calls[i]

    if not call.is_done then call.is_done, call.why, call.code = true, why, code end
    if call.event then call.event:set() end
  end
  tell_waiting(link.pool)
end

-- One more reply of a call; true: it has all.
local function add_reply(call, kind, value, code)
  local values = call.values

  if values then
    if kind == "error" then value = { error = value, code = code } end
    values[#values + 1] = value
    call.is_done = #values == call.count
  else
    if kind == "value" then call.value = value else call.why, call.code = value, code end
    call.is_done = true
  end
  return call.is_done
end

-- The bytes that came, as replies of the calls.
local function deliver(link, bytes)
  c.feed(link.reader, bytes)
  repeat
    local kind, value, code = c.next(link.reader)
    local call = link.calls[link.first]

    if kind == "bad" then return end_link(link, "redis: the server does not speak its protocol: " .. value) end
    if kind and kind ~= "push" then
      if not call then return end_link(link, "redis: the server sent a reply that no command asked for") end
      if add_reply(call, kind, value, code) then
        link.calls[link.first] = nil
        link.first = link.first + 1
        if not call.is_gone then link.live = link.live - 1 end
        if call.event then call.event:set() end
      end
    end
  until not kind
  if link.is_retired and link.live == 0 then end_link(link, "closed") end
end

-- The next call whose task waits reads on.
local function hand_over(link)
  link.leader = nil
  for i = link.first, link.last do
    local call = link.calls[i]

    if call.event and not call.is_gone then
      link.leader = call
      return call.event:set()
    end
  end
end

-- A call ends without its reply.
local function abandon(call)
  local link = call.link

  call.is_gone, link.is_retired, link.live = true, true, link.live - 1
  if link.live == 0 then return end_link(link, "closed") end
  if link.leader == call then hand_over(link) end
end

local calls = {}

function calls.__close(call)
  if not call.is_done and not call.is_gone then abandon(call) end
end

-- ---- One command ----

-- The bytes of one call come after those of the call before it: while a task writes, others leave theirs to it.
local function send(link, call, bytes)
  local ok, why, code

  if link.is_writing then
    link.output[#link.output + 1] = bytes
    return
  end
  link.is_writing = true
  repeat
    link.conn.timeout = left_of(call.deadline)
    ok, why, code = link.conn:write(bytes)
    bytes = concat(link.output)
    link.output = {}
  until not ok or bytes == ""
  link.is_writing = false
  if ok then return end
  if why == "timeout" or why == "cancelled" then
    if not call.is_done then call.is_done, call.why, call.code = true, why, code end
    why, code = "redis: the command before it in its connection was cut off", nil
  end
  end_link(link, why, code)
end

local function lead(link, call)
  link.leader = call
  while not call.is_done do
    local bytes, why, code = link.conn:read(nil, left_of(call.deadline))

    if bytes then
      deliver(link, bytes)
    elseif why == "timeout" or why == "cancelled" then
      return why, code
    else
      end_link(link, why == "closed" and "redis: the connection ended before the reply" or why, code)
    end
  end
  if link.leader == call then hand_over(link) end
end

-- Another task reads, and perhaps this one later.
local function follow(link, call)
  call.event = task.event()
  while not call.is_done do
    local ok, why = call.event:wait(left_of(call.deadline))

    if not ok then return why end
    call.event:clear()
    if link.leader == call then return lead(link, call) end
  end
end

-- Send bytes, and wait for one reply; or, with a count, for so many, as a list in which an error is a table.
local function exchange(link, bytes, deadline, count)
  if link.is_over then return nil, link.why, link.code end
  local call <close> = setmetatable({ link = link, deadline = deadline, count = count, values = count and {} }, calls)
  local why, code

  link.last, link.live = link.last + 1, link.live + 1
  link.calls[link.last] = call
  send(link, call, bytes)
  if not call.is_done then
    if link.leader then why, code = follow(link, call) else why, code = lead(link, call) end
    if why then return nil, why, code end
  end
  if call.why then return nil, call.why, call.code end
  return call.values or call.value
end

-- ---- Opening ----

local openings = { __close = function(opening) if not opening.is_done then end_link(opening.link, "closed") end end }

local function is_unknown(why)
  return why ~= nil and find(why, "unknown command", 1, true) ~= nil
end

-- Say who we are. A server that does not know HELLO speaks RESP2.
local function greet(link, deadline)
  local options = link.pool.options
  local user, password = options.user, options.password
  local is_old = options.protocol == 2
  local _, why, code

  if not is_old then
    local auth = password and { "AUTH", user or "default", password } or {}

    _, why, code = exchange(link, c.encode("HELLO", 3, unpack(auth)), deadline)
    is_old = is_unknown(why)
    if why and not is_old then return nil, why, code end
  end
  if is_old and password then
    _, why, code = exchange(link, user and c.encode("AUTH", user, password) or c.encode("AUTH", password), deadline)
    if why then return nil, why, code end
  end
  if options.db == 0 then return true end
  return exchange(link, c.encode("SELECT", options.db), deadline)
end

local function connect(link, deadline)
  local options = link.pool.options
  local opening <close> = setmetatable({ link = link }, openings)
  local ok, why, code

  if options.unix then
    link.conn, why, code = tcp.connect("unix:" .. options.unix, { timeout = left_of(deadline) })
  else
    link.conn, why, code = tcp.connect(options.host, options.port, { timeout = left_of(deadline), tls = options.tls })
  end
  if not link.conn then return nil, why, code end
  ok, why, code = greet(link, deadline)
  if not ok then return nil, why, code end
  if link.is_over then return nil, "closed" end
  opening.is_done = true
  return link
end

local function open_link(pool, list, deadline)
  local link = { pool = pool, list = list, calls = {}, first = 1, last = 0, live = 0, output = {}, is_opening = true,
    reader = c.new_reader(pool.options.reply_max) }
  local ok, why, code

  list[#list + 1] = link
  ok, why, code = connect(link, deadline)
  if not ok then
    if why ~= "cancelled" then pool.failures, pool.why, pool.code = pool.failures + 1, why, code end
    tell_waiting(pool)
    return nil, why, code
  end
  link.is_opening = nil
  tell_waiting(pool)
  return link
end

-- The link with the fewest calls; nil: none takes commands.
local function best_link(pool)
  local best

  for i = #pool.links, 1, -1 do
    local link = pool.links[i]

    if not link.is_opening and link.live == 0 and not link.is_retired and not c.is_idle(link.conn) then
      end_link(link, "closed") -- by the server
    elseif not link.is_opening and not link.is_retired and (not best or link.live < best.live) then
      best = link
    end
  end
  return best
end

-- A link that takes a command.
local function take_link(pool, deadline)
  local failures = pool.failures

  while not pool.is_closed do
    local best = best_link(pool)
    local ok, why

    if best and (best.live < SHARE or #pool.links >= pool.options.size) then return best end
    if #pool.links < pool.options.size then return open_link(pool, pool.links, deadline) end
    ok, why = pool.changed:wait(left_of(deadline))
    if not ok then return nil, why end
    if pool.failures ~= failures then return nil, pool.why, pool.code end
  end
  return nil, "closed"
end

-- ---- Links that are not shared ----

-- A link of which its task has the only use.
local function take_own(pool, deadline)
  local failures, owned = pool.failures, pool.owned

  while not pool.is_closed do
    local ok, why

    for i = #owned, 1, -1 do
      local link = owned[i]

      if link.is_spare then
        link.is_spare = nil
        if c.is_idle(link.conn) then return link end
        end_link(link, "closed") -- by the server
      end
    end
    if #owned < pool.options.handles then return open_link(pool, owned, deadline) end
    ok, why = pool.changed:wait(left_of(deadline))
    if not ok then return nil, why end
    if pool.failures ~= failures then return nil, pool.why, pool.code end
  end
  return nil, "closed"
end

-- Its use ends: others may have it, unless a reply is missing or its server knows something of it.
local borrows = { __close = function(borrowed)
  local link = borrowed.link

  if not link or link.is_over then return end
  if borrowed.is_dirty then return end_link(link, "closed") end
  link.is_spare = true
  tell_waiting(link.pool)
end }

local function borrow(link)
  return setmetatable({ link = link }, borrows)
end

-- The seconds that a command may wait in the server; nil: it does not wait.
local function wait_of(name, ...)
  local where = BLOCKING[name]
  local wait

  if not where then return nil end
  if where == "BLOCK" then
    for i = 1, select("#", ...) do
      local word = upper(tostring((select(i, ...))))

      if word == "STREAMS" then return nil end
      if word == "BLOCK" then where = i + 1 break end
    end
    if where == "BLOCK" then return nil end
  end
  if select("#", ...) > 0 then wait = tonumber((select(where, ...))) end
  if wait == 0 then return NEVER end -- an end of the wait
  return (wait or 0) / (MILLISECONDS[name] and 1000 or 1)
end

local function call_blocking(pool, bytes, wait)
  local timeout = pool.options.timeout
  local link, why, code = take_own(pool, c.now() + timeout)
  local borrowed <close> = borrow(link)

  if not link then return nil, why, code end
  return exchange(link, bytes, c.now() + min(timeout + wait, NEVER))
end

-- ---- The module ----

local POOL <const> = {} -- the field of a db that holds its pool: no command has that name
local Db = {}

local function check_shared(name, second)
  if NOT_SHARED[name] or name == "CLIENT" and NOT_SHARED_CLIENT[upper(tostring(second))] then
    error("redis: " .. name .. " would change a connection that others share", 0)
  end
end

-- Bytes for a shared link, or one that is to be shared.
local function encode(name, ...)
  local bytes = c.encode(name, ...)

  check_shared(upper(name), (...))
  return bytes
end

local function call(db, name, ...)
  local pool = rawget(db, POOL)
  local bytes = encode(name, ...)
  local wait = wait_of(upper(name), ...)
  local deadline = c.now() + pool.options.timeout
  local link, why, code

  if wait then return call_blocking(pool, bytes, wait) end
  link, why, code = take_link(pool, deadline)
  if not link then return nil, why, code end
  return exchange(link, bytes, deadline)
end

function Db.call(db, name, ...)
  if type(name) ~= "string" then error("redis: a command is a string, not a " .. type(name), 0) end
  return call(db, name, ...)
end

function Db.close(db)
  local pool = rawget(db, POOL)

  pool.is_closed = true
  for _, list in ipairs{ pool.links, pool.owned } do
    while list[1] do end_link(list[1], "closed") end
  end
  tell_waiting(pool)
end

-- A method for each name in small letters: object:hget(...) is send(object, "HGET", ...).
local function methods_of(send)
  return setmetatable({}, { __index = function(methods, name)
    local method

    if type(name) ~= "string" or not match(name, "^%l[%l%d_]*$") then return nil end
    name = upper(name)
    method = function(object, ...) return send(object, name, ...) end
    methods[name:lower()] = method
    return method
  end })
end

local commands = methods_of(call)

local metatable = {
  __index = function(_, name) return Db[name] or commands[name] end,
  __close = Db.close, __gc = Db.close, __name = "sxe.redis",
}

local function check_options(options)
  for name, value in pairs(options) do
    local wanted = OPTIONS[name]

    if not wanted then error("redis.new: there is no option '" .. tostring(name) .. "'", 0) end
    if not find(wanted, type(value), 1, true) then
      error("redis.new: " .. name .. " must be a " .. wanted .. ", not a " .. type(value), 0)
    end
  end
  if options.unix and (options.host or options.port) then error("redis.new: a server has unix, or host and port", 0) end
  if options.unix and options.tls then error("redis.new: unix has no tls", 0) end
  if options.user and not options.password then error("redis.new: a user needs a password", 0) end
end

local function check_range(options, name, least, most)
  local value = tointeger(options[name])

  if not value or value < least or value > most then
    error(format("redis.new: %s must be a whole number from %d to %d, not %s", name, least, most, options[name]), 0)
  end
  options[name] = value
end

c.add_handles(Db, { c = c, POOL = POOL, borrow = borrow, methods_of = methods_of, encode = encode,
  end_link = end_link, exchange = exchange, left_of = left_of, take_link = take_link, take_own = take_own,
  wait_of = wait_of })

local redis = { null = json.null }

function redis.new(options)
  local all = {}

  if type(options) ~= "table" then error("redis.new: a table of options is expected, not a " .. type(options), 0) end
  check_options(options)
  for name, value in pairs(DEFAULTS) do all[name] = value end
  for name, value in pairs(options) do all[name] = value end
  check_range(all, "port", 1, 65535)
  check_range(all, "db", 0, 1 << 31)
  check_range(all, "size", 1, 1000)
  check_range(all, "handles", 1, 1000)
  check_range(all, "reply_max", 1024, 1 << 40)
  check_range(all, "protocol", 2, 3)
  if not (all.timeout > 0) then error("redis.new: timeout must be more than 0 seconds", 0) end
  all.timeout = min(all.timeout, 1e9)
  return setmetatable({ [POOL] = { options = all, links = {}, owned = {}, changed = task.event(), failures = 0 } },
    metatable)
end

return redis
