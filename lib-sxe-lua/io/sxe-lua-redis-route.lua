-- SPDX-License-Identifier: MIT
--
-- The part that clients of several servers share: the commands and handles of redis.cluster and redis.sharded, on
-- their ways to the servers. This file adds `clients` to the functions that sxe-lua-redis.lua gives it.
--
-- A router decides where commands go. It has options, and these methods:
--
--   place_of(name, ...)    the place of a command's keys, and the first key; nil: it has none; or false, why, code
--   place_of_key(key)
--   say_crossed(one, other)
--                          why keys of two places are refused, and the code
--   choose(way)            the node, a pool of links, to which a way goes next; or nil, why, code
--   judge(way, why, code, is_unsent)
--                          about a way that failed: "again" at once; "wait", again after a pause; or nil, why, code
--   needs_key              true: a command without a key raises an error
--   is_moved(code)         whether a transaction begins again, because its server refused a command with this code
--
-- A way is what a command knows of its own way to a server: its place, the node that it goes to, and how often it was
-- sent elsewhere.
--
--   route: try -> choose -> exchange ... -> judge: again at another node, or after a pause, or failed
local Db, core = ...
local c, POOL, commands = core.c, core.POOL, core.commands
local choose_link, choose_own, exchange, take = core.choose_link, core.choose_own, core.exchange, core.take
local encode = commands.encode
local task = require "sxe.task"
local concat, unpack = table.concat, table.unpack
local error, find, format, ipairs, min, pcall = error, string.find, string.format, ipairs, math.min, pcall
local rawget, setmetatable, type, upper = rawget, setmetatable, type, string.upper

local PAUSES <const> = 100     -- the most pauses of a command
local PAUSE_MAX <const> = 0.5 -- seconds

-- Whether an error is a reply of the server.
function core.is_of_server(why, code)
  return code and find(why, code, 1, true) == 1
end

-- ---- Ways ----

local function new_way(router, place)
  return { place = place or nil, deadline = c.now() + router.options.timeout, backoff = router.options.backoff,
    redirects = 0, pauses = 0, repeats = 0 }
end

-- Pause before the next try. Returns true; or nil, and perhaps "cancelled", if no time is left.
local function pause(way)
  local seconds = min(way.backoff * 2 ^ way.pauses, PAUSE_MAX)

  way.pauses = way.pauses + 1
  if way.pauses > PAUSES or c.now() + seconds >= way.deadline then return nil end
  return task.sleep(seconds)
end

-- Call try(router, way) until it succeeds. It returns a value; nothing; or nil, why, code, is_unsent: it was certainly
-- not sent.
local function route(router, way, try)
  while true do
    local value, why, code, is_unsent = try(router, way)
    local verdict, reason, its_code, cut

    if value ~= nil or not why then return value end
    verdict, reason, its_code = router:judge(way, why, code, is_unsent)
    if verdict == "wait" then
      verdict, cut = pause(way)
      if cut then return nil, cut end
      reason, its_code = why, code
    end
    if not verdict then return nil, reason, its_code end
  end
end

-- ---- Commands ----

local Client = {}

local function send_single(router, way)
  local node, why, code = router:choose(way)
  local bytes, count = way.bytes, nil

  if not node then return nil, why, code, true end
  if way.asking then bytes, count = way.asking .. bytes, 2 end
  if way.wait then return core.exchange_own(node, bytes, way.wait, way.deadline, count, true) end
  return core.exchange_shared(node, bytes, way.deadline, count, true)
end

-- The way of a command; or nil, why, code.
local function way_of(router, name, ...)
  local bytes = encode(name, ...)
  local place, key, code = router:place_of(upper(name), ...)
  local way

  if place == false then return nil, key, code end
  if place == nil and router.needs_key then error("redis: " .. name .. " has no key: call it on db:group(name)", 0) end
  way = new_way(router, place)
  way.bytes = bytes
  way.is_read = commands.READS[upper(name)]
  way.may_repeat = way.is_read
  return way
end

-- No tail call: the db is not collected, and so closed, as long as one of its calls waits.
local function call(db, name, ...)
  local router = rawget(db, POOL)
  local way, why, code = way_of(router, name, ...)
  local value

  if not way then return nil, why, code end
  way.wait = commands.wait_of(upper(name), ...)
  value, why, code = route(router, way, send_single)
  if value == nil then return nil, why, code end
  return value
end

function Client.call(db, name, ...)
  if type(name) ~= "string" then error("redis: a command is a string, not a " .. type(name), 0) end
  return call(db, name, ...)
end

Client.prepare = Db.prepare

-- ---- Pipelines ----

-- The commands of a round for one node. At its end their calls and links end, too.
local rounds = { __close = c.insist(function(round)
  for _, part in ipairs(round) do
    if part.call then core.calls.__close(part.call) end
    core.holders.__close(part.holder)
  end
end) }

-- Put a way into the part of its node; the ways after ASKING have a part of their own.
local function add_to_round(round, way)
  local of_node = way.asking and round.asking or round.plain
  local part = of_node[way.node]

  if not part then
    part = { node = way.node, ways = {}, bytes = {}, step = way.asking and 2 or 1, holder = core.new_holder() }
    round[#round + 1], of_node[way.node] = part, part
  end
  part.ways[#part.ways + 1] = way
  part.bytes[#part.bytes + 1] = (way.asking or "") .. way.bytes
end

local function send_part(part, deadline)
  local link

  link, part.why, part.code = take(part.node, choose_link, deadline, part.holder)
  part.is_unsent = not link
  if not link then return end
  part.call = core.new_call(link, deadline, #part.ways * part.step)
  core.begin(part.call, concat(part.bytes))
end

-- Give the replies of a part, or the reason that there are none, to its ways.
local function finish_part(part)
  local values, errors

  if part.call then
    values, errors, part.code, part.is_unsent = core.finish(part.call)
    part.why = errors
  end
  for i, way in ipairs(part.ways) do
    local failure = values and errors and errors[i * part.step]

    if failure then
      way.why, way.code, way.is_answered = failure.error, failure.code, true
    elseif values then
      way.value = values[i * part.step]
    else
      way.why, way.code, way.is_unsent = part.why, part.code, part.is_unsent
    end
  end
end

-- Send the commands that are left to their nodes, all before the first reply is read. The task reads one connection
-- after another; while it does not read one, others there read its replies for it.
local function run_round(router, left, deadline)
  local round <close> = setmetatable({ plain = {}, asking = {} }, rounds)

  for _, way in ipairs(left) do
    local node, why, code = router:choose(way)

    way.why, way.code, way.is_unsent, way.is_answered = why, code, not node, nil
    if node then add_to_round(round, way) end
  end
  for _, part in ipairs(round) do send_part(part, deadline) end
  for _, part in ipairs(round) do finish_part(part) end
end

-- Returns the commands to send again after a round, whether to pause before, and whether the task was cancelled.
local function judge_round(router, left, replies)
  local again, is_to_wait = {}, false

  for _, way in ipairs(left) do
    local verdict, why, code

    if way.value ~= nil then
      replies[way.index], replies.is_answered = way.value, true
    else
      verdict, why, code = router:judge(way, way.why, way.code, way.is_unsent)
      if verdict then again[#again + 1] = way end
      if verdict == "wait" then is_to_wait = true end
      if why == "cancelled" then return nil end
      if not verdict then
        replies[way.index] = { error = why, code = code }
        replies.is_answered = replies.is_answered or way.is_answered
      end
    end
  end
  return again, is_to_wait
end

local function run_pipeline(router, list)
  local pace = new_way(router)
  local replies, left = {}, {}

  for i, way in ipairs(list) do
    way.index, way.deadline = i, pace.deadline
    if way.bytes then left[#left + 1] = way else replies[i] = { error = way.why, code = way.code } end
  end
  while left[1] do
    local is_to_wait, ok, cut

    run_round(router, left, pace.deadline)
    left, is_to_wait = judge_round(router, left, replies)
    if not left then return nil, "cancelled" end
    if is_to_wait then
      ok, cut = pause(pace)
      if cut then return nil, cut end
      if not ok then
        for _, way in ipairs(left) do replies[way.index] = { error = way.why, code = way.code } end
        left = {}
      end
    end
  end
  if not replies.is_answered then return nil, replies[1].error, replies[1].code end
  replies.is_answered = nil
  return replies
end

local function add(pipeline, name, ...)
  local router = rawget(pipeline.db, POOL)
  local way, why, code

  core.encode_prompt(name, ...)
  way, why, code = way_of(router, name, ...)
  pipeline.list[#pipeline.list + 1] = way or { why = why, code = code }
  return pipeline
end

local function exec(pipeline)
  local list = pipeline.list
  local replies, why, code

  pipeline.list = {}
  if #list == 0 then return {} end
  replies, why, code = run_pipeline(rawget(pipeline.db, POOL), list)
  if not replies then return nil, why, code end
  return replies
end

local pipelines = core.pipelines_of(add, exec)

function Client.pipeline(db)
  return setmetatable({ db = db, list = {} }, pipelines)
end

-- ---- Transactions ----

-- Open a link for this transaction only, to the node of its key. Returns true, or nil, why, code.
local function open_in(transaction)
  local way, router = transaction.way, transaction.router
  local node, link, why, code

  if not way.place and router.needs_key then error("redis: the transaction has no key", 0) end
  node, why, code = router:choose(way)

  if node then link, why, code = take(node, choose_own, way.deadline, transaction.holder) end
  if not link then
    transaction.why, transaction.code, transaction.is_unsent = why, code or false, true
    return nil, why, code
  end
  transaction.link, transaction.holder.is_dirty = link, true
  return true
end

-- Send a command at once. If its keys have moved, route() calls the transaction's function again.
local function exchange_in(transaction, bytes)
  local asking = transaction.way.asking
  local ok, why, code, value

  if not transaction.link then
    ok, why, code = open_in(transaction)
    if not ok then return nil, why, code end
    asking = transaction.way.asking
  end
  value, why, code = exchange(transaction.link, (asking or "") .. bytes, transaction.way.deadline, asking and 2, true)
  if value ~= nil then return value end
  if transaction.router:is_moved(code) then transaction.why, transaction.code = why, code end
  return nil, why, code
end

-- Bind the transaction to the node of its first key.
local function bind(transaction, place, key)
  local way = transaction.way

  if way.place ~= place then way.place, way.node, way.asking = place, nil, nil end
  transaction.key = key
end

-- The first key of a command, if it is in the transaction's place; nil: it has none; or false, why, code.
local function key_in(transaction, name, ...)
  local router = transaction.router
  local place, key, code = router:place_of(upper(name), ...)

  if place and transaction.key and place ~= transaction.way.place then
    place = false
    key, code = router:say_crossed(transaction.key, key)
  end
  if place == false then return false, key, code end
  if place and not transaction.key then bind(transaction, place, key) end
  return key
end

local function call_in(transaction, name, ...)
  local bytes = core.encode_prompt(name, ...)
  local key, why, code

  if transaction.is_over then error("redis: the transaction of this handle is over", 0) end
  key, why, code = key_in(transaction, name, ...)
  if key == false then
    if transaction.list then transaction.refused, transaction.refusal = why, code or false end
    return nil, why, code
  end
  if transaction.list then
    transaction.list[#transaction.list + 1] = bytes
    return "QUEUED"
  end
  if not transaction.key then
    error("redis: the transaction has no key yet: watch one, or begin with a command that has one", 0)
  end
  return exchange_in(transaction, bytes)
end

local transactions = core.transactions_of(call_in)

-- Try the transaction once, as route() calls it. Returns nothing if a watched key changed. A field of the transaction
-- that is nil would be read as a command of that name (transactions_of): fields without a value are false.
local function attempt(router, way)
  local guard <close> = core.new_guard()
  local holder = guard.holder
  local transaction <close> = setmetatable({ router = router, way = way, holder = holder, link = false, list = false,
    key = way.key, is_over = false, why = false, code = false, is_unsent = false, refused = false, refusal = false },
    transactions)
  local ok, said, why, code

  if way.watching then
    ok, why, code = exchange_in(transaction, way.watching)
    if not ok then return nil, why, code, transaction.is_unsent end
  end
  ok, said = pcall(way.fn, transaction)
  transaction.is_over = true
  if transaction.why then return nil, transaction.why, transaction.code or nil, transaction.is_unsent end
  if not ok then error(said, 0) end
  if said == false then
    way.is_final = true
    return nil, "redis: the function gave the transaction up"
  end
  if transaction.refused then return nil, transaction.refused, transaction.refusal or nil end
  if transaction.link and transaction.link.is_over then return nil, transaction.link.why, transaction.link.code end
  if not transaction.list or not transaction.list[1] then return {} end
  if not transaction.link then
    ok, why, code = open_in(transaction)
    if not ok then return nil, why, code, true end
  end
  ok, why, code = core.commit(transaction.link, transaction.list, way.deadline, way.asking)
  holder.is_dirty = why ~= nil
  return ok, why, code
end

function Client.transaction(db, fn, options)
  local watch, retries = core.check_watch(options or {})
  local router = rawget(db, POOL)
  local place, key, code = router:place_of("WATCH", unpack(watch))

  if place == false then return nil, key, code end
  for _ = 0, retries do
    local way, replies, why = new_way(router, place), nil, nil

    way.fn, way.key = fn, key or false
    if watch[1] then way.watching = c.encode("WATCH", unpack(watch)) end
    replies, why, code = route(router, way, attempt)
    if replies or why then return replies, why, code end
  end
  return nil, format("redis: a watched key changed, %d times", retries + 1)
end

-- ---- Subscriptions ----

local function subscribe_at(router, way)
  local node, why, code = router:choose(way)

  if not node then return nil, why, code, true end
  return core.subscribe_in(way.db, node, way.name, way.names, way.deadline)
end

local function subscribe(db, name, names)
  local router = rawget(db, POOL)
  local place, way, sub, why, code

  core.check_names(names)
  place, why, code = router:place_of(name, unpack(names))
  if place == false then return nil, why, code end
  way = new_way(router, place)
  way.db, way.name, way.names = db, name, names
  sub, why, code = route(router, way, subscribe_at)
  return sub, why, code
end

function Client.subscribe(db, names)
  return subscribe(db, "SUBSCRIBE", names)
end

function Client.psubscribe(db, names)
  return subscribe(db, "PSUBSCRIBE", names)
end

core.clients = { methods = Client, commands = commands.methods_of(call) }
