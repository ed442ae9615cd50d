-- SPDX-License-Identifier: MIT
--
-- The handles of require "sxe.redis" that <close>: pipelines, transactions and subscriptions. This file adds methods to a
-- client; sxe-lua-redis.lua gives it the functions that open links and send commands.
--
--   pipeline       commands in one write to a shared link; their replies are one call's
--   transaction    a link of its own: WATCH, reads, MULTI, commands, EXEC; a task that ends in
--                  between closes the link
--   subscription   a link of its own, which is closed at the end; the task that wants a message reads it
local Db, core = ...
local json = require "sxe.json"
local c, POOL, end_link = core.c, core.POOL, core.end_link
local new_guard, new_holder = core.new_guard, core.new_holder
local encode, methods_of, wait_of = core.commands.encode, core.commands.methods_of, core.commands.wait_of
local is_special = core.commands.is_special
local exchange, exchange_shared, left_of = core.exchange, core.exchange_shared, core.left_of
local choose_own, take = core.choose_own, core.take
local concat, remove, unpack = table.concat, table.remove, table.unpack
local error, format, pairs, rawget, select = error, string.format, pairs, rawget, select
local kind_of, setmetatable, tointeger = math.type, setmetatable, math.tointeger
local tostring, type, upper = tostring, type, string.upper

local RETRIES <const> = 10
local EVENTS <const> = { message = 0, pmessage = 1 } -- names before the channel: a pmessage has its pattern there

-- The bytes of a command that never waits in the server, so that others may share its link.
local function encode_prompt(name, ...)
  if type(name) ~= "string" then error("redis: a command is a string, not a " .. type(name), 0) end
  if wait_of(upper(name), ...) then error("redis: " .. name .. " may wait: call it on the client itself", 0) end
  return encode(name, ...)
end

-- ---- Scripts ----

-- Return a function that runs a script in the server. It sends the script's hash; if the server does not know it, the
-- text.
function Db.prepare(db, text)
  local hash

  if type(text) ~= "string" then error("redis: a script is a string, not a " .. type(text), 0) end
  return function(keys, ...)
    if type(keys) ~= "table" then error("redis: a script has a list of keys, not a " .. type(keys), 0) end
    local arguments = { #keys, unpack(keys) }
    local why, code, value

    for i = 1, select("#", ...) do arguments[#keys + 1 + i] = (select(i, ...)) end
    if not hash then
      hash, why, code = db:call("SCRIPT", "LOAD", text)
      if not hash then return nil, why, code end
    end
    value, why, code = db:call("EVALSHA", hash, unpack(arguments))
    if code == "NOSCRIPT" then return db:call("EVAL", text, unpack(arguments)) end
    return value, why, code
  end
end

-- ---- Pipelines ----

local Pipeline = {} -- a pipeline has its batch at [1], where the functions that c.adder makes find it

-- Add a command whose arguments have to be looked at.
local function add(pipeline, name, ...)
  encode_prompt(name, ...)
  return c.adder(name)(pipeline, ...)
end

-- Send all collected commands, and forget them. Returns the list of their replies.
function Pipeline.exec(pipeline)
  local pool = rawget(pipeline.db, POOL)
  local bytes, number = c.take_batch(pipeline[1])
  local values, why, code

  if number == 0 then return {} end
  values, why, code = exchange_shared(pool, bytes, c.now() + pool.options.timeout, number)
  if not values then return nil, why, code end
  return values
end

function Pipeline.close(pipeline)
  c.take_batch(pipeline[1])
end

local own = { call = add, exec = Pipeline.exec, close = Pipeline.close }
local pipelines = {
  __index = methods_of(add, own, function(name) return not is_special(name) and c.adder(name) end),
  __close = Pipeline.close, __len = function(pipeline) return c.batch_number(pipeline[1]) end,
  __name = "sxe.redis pipeline",
}

function Db.pipeline(db)
  return setmetatable({ c.new_batch(), db = db }, pipelines)
end

-- The metatable of pipelines that collect commands in a list with one function, and send them with the other.
local function pipelines_of(adding, exec)
  local function close(pipeline) pipeline.list = {} end
  local methods = methods_of(adding, { call = adding, exec = exec, close = close })

  return {
    __index = methods, __close = close, __len = function(pipeline) return #pipeline.list end,
    __name = "sxe.redis pipeline",
  }
end

-- ---- Transactions ----

local Transaction = {}

-- Run a command of a transaction: before multi it is sent at once, after multi it is collected. All fields of the
-- transaction are set from the start, because a name that is missing is taken for a command.
local function call_in(transaction, name, ...)
  local bytes = encode_prompt(name, ...)

  if transaction.is_over then error("redis: the transaction of this handle is over", 0) end
  if not transaction.list then
    local value, why, code = exchange(transaction.link, bytes, transaction.deadline)

    if value == nil then return nil, why, code end
    return value
  end
  transaction.list[#transaction.list + 1] = bytes
  return "QUEUED"
end

function Transaction.multi(transaction)
  transaction.list = transaction.list or {}
end

-- The metatable of transactions whose commands the function sends.
local function transactions_of(sending)
  return {
    __index = methods_of(sending, { call = sending, multi = Transaction.multi }),
    __close = function(transaction) transaction.is_over = true end, __name = "sxe.redis transaction",
  }
end

local transactions = transactions_of(call_in)

-- Send the collected commands. Returns the replies of EXEC; nil if a watched key changed; or nil, why, code. MULTI goes
-- first: if the server refused it after others, it would carry out the commands one by one. ASKING may stand before it,
-- because MULTI keeps it until EXEC. After the deadline neither is sent: a caller may repeat what failed with "timeout"
-- while the function ran.
local function commit(link, list, deadline, asking)
  local ok, why, code, replies, last
  local first = 1

  if c.now() >= deadline then return nil, "timeout" end
  ok, why, code = exchange(link, (asking or "") .. c.encode("MULTI"), deadline, asking and 2, true)
  if not ok then return nil, why, code end
  if c.now() >= deadline then return nil, "timeout" end
  list[#list + 1] = c.encode("EXEC")
  replies, why, code = exchange(link, concat(list), deadline, #list)
  if not replies then return nil, why, code end
  last = replies[#replies]
  if last == json.null then return nil end
  if not last.error then return last end
  while type(replies[first]) ~= "table" do first = first + 1 end
  return nil, replies[first].error, replies[first].code
end

-- Try the transaction once. Returns nil alone if a watched key changed.
local function attempt(pool, fn, watch)
  local deadline = c.now() + pool.options.timeout
  local guard <close> = new_guard()
  local holder = guard.holder
  local link, why, code = take(pool, choose_own, deadline, holder)
  local ok

  if not link then return nil, why, code end
  holder.is_dirty = true
  if watch[1] then
    ok, why, code = exchange(link, c.encode("WATCH", unpack(watch)), deadline)
    if not ok then return nil, why, code end
  end
  local transaction <close> = setmetatable({ link = link, deadline = deadline, list = false, is_over = false },
    transactions)
  if fn(transaction) == false then return nil, "redis: the function gave the transaction up" end
  transaction.is_over = true
  if link.is_over then return nil, link.why, link.code end -- the function may have ignored a timeout, for instance
  if not transaction.list or not transaction.list[1] then return {} end
  ok, why, code = commit(link, transaction.list, deadline)
  holder.is_dirty = why ~= nil
  return ok, why, code
end

local function check_watch(options)
  local watch, retries = options.watch or {}, tointeger(options.retries or RETRIES)

  for name in pairs(options) do
    if name ~= "watch" and name ~= "retries" then error("redis: a transaction has no option '" .. tostring(name) .. "'", 0) end
  end
  if type(watch) ~= "table" then error("redis: watch must be a list of keys, not a " .. type(watch), 0) end
  if not retries or retries < 0 then error("redis: retries must be a whole number", 0) end
  return watch, retries
end

function Db.transaction(db, fn, options)
  if type(fn) ~= "function" then error("redis: a transaction is a function, not a " .. type(fn), 0) end
  local watch, retries = check_watch(options or {})

  for _ = 0, retries do
    local replies, why, code = attempt(rawget(db, POOL), fn, watch)

    if replies or why then return replies, why, code end
  end
  return nil, format("redis: a watched key changed, %d times", retries + 1)
end

-- ---- Subscriptions ----

local Subscription = {}

-- A function that feeds the reader, with the arguments of c.fill. The server may send other lists without end, so the
-- bytes that come after the deadline are read only once.
local function fill_by(sub, deadline)
  local link = sub.link
  local ok, why, code

  if sub.is_late then return nil, "timeout" end
  sub.is_late = deadline ~= nil and c.now() >= deadline
  link.is_read = true
  ok, why, code = c.fill(link.reader, link.conn, deadline and left_of(deadline))
  link.is_read = nil
  return ok, why, code
end

-- The next list that the server sends; or nil, why, code.
local function read_list(sub, deadline)
  local link = sub.link

  while not link.is_over do
    local kind, value, code = c.next(link.reader)
    local ok, why

    if kind == "bad" then
      sub.why = value
      end_link(link, value)
    elseif kind == "error" then
      return nil, value, code
    elseif kind then
      return value
    else
      ok, why, code = fill_by(sub, deadline)
      if why == "timeout" or why == "cancelled" then return nil, why end
      if not ok and not link.is_over then
        sub.why, sub.code = why == "closed" and "redis: the connection ended" or why, code
        end_link(link, sub.why)
      end
    end
  end
  return nil, sub.why or link.why, sub.code
end

-- The message that a list holds; nil: the list is no message.
local function message_of(list)
  local first = type(list) == "table" and EVENTS[list[1]]

  if not first then return nil end
  return { channel = list[first + 2], text = list[first + 3], pattern = first == 1 and list[2] or nil }
end

function Subscription.read(sub, timeout)
  if timeout ~= nil and not (kind_of(timeout) and timeout >= 0) then
    error("bad argument #1 to 'read' (a timeout in seconds expected)", 2)
  end
  local deadline = timeout and c.now() + timeout
  if sub.early[1] then return remove(sub.early, 1) end
  sub.is_late = false
  while true do
    local list, why, code = read_list(sub, deadline)
    local message = message_of(list)

    if not list then return nil, why, code end
    if message then return message end
  end
end

function Subscription.messages(sub)
  return function()
    local message, why = Subscription.read(sub)

    if not message and why ~= "closed" then error(why, 0) end
    return message
  end
end

function Subscription.close(sub)
  end_link(sub.link, "closed")
end

local subscriptions = {
  __index = Subscription, __close = Subscription.close, __gc = Subscription.close, __name = "sxe.redis subscription",
}

-- Wait until each name is confirmed; messages may come before the last one is.
local function confirm(sub, number, deadline)
  while number > 0 do
    local list, why, code = read_list(sub, deadline)
    local message = message_of(list)

    if not list then return nil, why, code end
    if message then sub.early[#sub.early + 1] = message else number = number - 1 end
  end
  return true
end

-- Subscribe. A fourth result of true says that nothing was sent.
local function subscribe_in(db, pool, name, names, deadline)
  local bytes = c.encode(name, unpack(names))
  local holder <close> = new_holder()
  local link, why, code = take(pool, choose_own, deadline, holder)
  local ok

  if not link then return nil, why, code, true end
  holder.is_dirty, link.is_subscribed = true, true
  link.conn.timeout = left_of(deadline)
  ok, why, code = link.conn:write(bytes)
  if not ok then return nil, why, code end
  local sub = { db = db, link = link, early = {} }
  ok, why, code = confirm(sub, #names, deadline)
  if not ok then return nil, why, code end
  holder.link = nil
  return setmetatable(sub, subscriptions)
end

local function check_names(names)
  if type(names) ~= "table" or not names[1] then error("redis: a list of names is expected", 0) end
end

local function subscribe(db, name, names)
  local pool = rawget(db, POOL)
  local sub, why, code

  check_names(names)
  sub, why, code = subscribe_in(db, pool, name, names, c.now() + pool.options.timeout)
  if not sub then return nil, why, code end
  return sub
end

function Db.subscribe(db, names)
  return subscribe(db, "SUBSCRIBE", names)
end

function Db.psubscribe(db, names)
  return subscribe(db, "PSUBSCRIBE", names)
end

core.check_names, core.check_watch, core.commit = check_names, check_watch, commit
core.encode_prompt, core.subscribe_in = encode_prompt, subscribe_in
core.pipelines_of, core.transactions_of = pipelines_of, transactions_of
