-- SPDX-License-Identifier: MIT
--
-- Transactions that write, and the bounds of walks, for sxe.store. A transaction collects its changes and what it read, so
-- that a thread can make them without Lua; see docs/store.md.

local native, Store, Snapshot = ...
local task = require "sxe.task"
local KEY_MAX, TRIES, TURN_S = 511, 100, 0.1
local less = native.less
local Transaction = {}
Transaction.__index = Transaction
Transaction.__name = "sxe.store.transaction"
Transaction.__metatable = false
local State = { __close = function(state) state.is_over = true end }

-- ---- Walks ----

local OPTIONS = { prefix = "string", from = "string", to = "string", reverse = "boolean" }

-- The smallest string that is larger than all that begin with the prefix; nil: there is none.
local function end_of(prefix)
  local part = prefix:gsub("\xff+$", "")

  if part ~= "" then return part:sub(1, -2) .. string.char(part:byte(-1) + 1) end
end

local function larger(a, b) return less(a, b) and b or a end

local function smaller(a, b)
  if not a or not b then return a or b end
  return less(a, b) and a or b
end

-- The bounds of a walk: a key that it may begin with, a key that it stays below or nil, and whether it goes backwards.
local function bounds_of(options, level)
  for name, value in pairs(options or {}) do
    if not OPTIONS[name] then error("each has no option '" .. tostring(name) .. "'", level) end
    if type(value) ~= OPTIONS[name] then
      error("each: " .. name .. ": a " .. OPTIONS[name] .. " expected, got " .. type(value), level)
    end
  end
  options = options or {}
  local prefix = options.prefix or ""

  return larger(prefix, options.from or ""), smaller(end_of(prefix), options.to), options.reverse or false
end

function Snapshot:each(options)
  return native.walk(self, bounds_of(options, 3))
end

function Store:each(options)
  local low, high, is_reverse = bounds_of(options, 3)
  local snapshot, why = self:snapshot()

  if not snapshot then error("each: " .. why, 2) end
  return native.walk(snapshot, low, high, is_reverse), nil, nil, snapshot
end

-- ---- Transactions ----

-- The state of each transaction, which scripts must not change: its changes, the values that it read (false: no value)
-- by key, and its snapshot.
local states = setmetatable({}, { __mode = "k" })

local function state_of(txn, level)
  local state = states[txn]

  if not state or state.is_over then error("the transaction is over", level) end
  return state
end

local function check_call(txn, key, level)
  local state = state_of(txn, level + 1)

  if type(key) ~= "string" or #key == 0 or #key > KEY_MAX then
    error("a key of 1 to 511 bytes expected", level)
  end
  return state
end

function Transaction:get(key)
  local state = check_call(self, key, 3)
  local value = state.changes[key]

  if value == nil then value = state.reads[key] end
  if value == nil then
    local read, why = state.snapshot:get(key)

    if why then error(why, 2) end
    value = read or false
    state.reads[key] = value
  end
  return value or nil
end

function Transaction:put(key, value)
  local state = check_call(self, key, 3)

  if type(value) ~= "string" then error("a string expected as the value, got " .. type(value), 2) end
  state.changes[key] = value
end

function Transaction:del(key)
  check_call(self, key, 3).changes[key] = false
end

-- The keys that this transaction changed between two bounds, in order.
local function changed_keys(changes, low, high, is_reverse)
  local keys = {}

  for key in pairs(changes) do
    if not less(key, low) and (not high or less(key, high)) then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b)
    if is_reverse then a, b = b, a end
    return less(a, b)
  end)
  return keys
end

-- Walk through the snapshot and the changes at once: take the first of two different keys, and the change of two equal
-- ones.
function Transaction:each(options)
  local state = state_of(self, 3)
  local low, high, is_reverse = bounds_of(options, 3)
  local keys, number = changed_keys(state.changes, low, high, is_reverse), 1
  local step = native.walk(state.snapshot, low, high, is_reverse)
  local key, value = step()
  local changes = state.changes

  local function is_next(own)
    if not key or own == key then return true end
    if is_reverse then return less(key, own) end
    return less(own, key)
  end
  state.is_exact = true
  return function()
    while key or keys[number] do
      local own, found, found_value = keys[number], key, value

      if own and is_next(own) then
        found, found_value = own, changes[own]
        number = number + 1
      end
      if found == key then key, value = step(nil, key) end
      if found_value then return found, found_value end
    end
  end
end

-- Call the function with a new transaction. Returns the transaction's state, and the results of the function.
local function attempt(store, make)
  local snapshot <close>, why, code = store:snapshot()

  if not snapshot then return nil, why, code end
  local state <close> = setmetatable({ changes = {}, reads = {}, snapshot = snapshot }, State)
  local txn = setmetatable({}, Transaction)

  states[txn] = state
  local results = table.pack(make(txn))

  state.based_on = native.based_on(snapshot)
  return state, results
end

-- ---- Turns ----
--
-- Tasks that change one key again and again would go in step: one commits, all others conflict. So transactions that
-- conflicted take turns, and others of this process begin before or after a turn. No task waits for longer than TURN_S:
-- the function whose turn it is may itself wait for a task that waits for the turn.

local turns = {} -- by file: { semaphore =, wanted = how many have a turn or want it, over = an event at the turn's end }

local Turn = { __close = function(turn)
  local queue = turn.queue

  if not queue then return end
  queue.wanted = queue.wanted - 1
  if queue.wanted == 0 then turns[turn.file] = nil end
  if queue.over then queue.over:set() end
  queue.over = nil
  if turn.is_taken then queue.semaphore:release() end
end }

local function await_end(queue)
  queue.over = queue.over or task.event()
  queue.over:wait(TURN_S)
end

local function take_turn(turn)
  if turn.is_taken then return end
  if not turn.queue then
    turn.queue = turns[turn.file] or { semaphore = task.semaphore(1), wanted = 0 }
    turn.queue.wanted = turn.queue.wanted + 1
    turns[turn.file] = turn.queue
  end
  turn.is_taken = turn.queue.semaphore:acquire(TURN_S) ~= nil
end

function Store:write(make, options)
  if type(make) ~= "function" then error("write: a function expected, got " .. type(make), 2) end
  for name in pairs(options or {}) do
    if name ~= "timeout" then error("write has no option '" .. tostring(name) .. "'", 2) end
  end
  local deadline = native.deadline(options)
  local turn <close> = setmetatable({ file = native.file(self) }, Turn)

  if turns[turn.file] then await_end(turns[turn.file]) end
  for _ = 1, TRIES do
    local state, results, code = attempt(self, make)

    if not state then return nil, results, code end
    if not next(state.changes) then return true, table.unpack(results, 1, results.n) end
    local done, why
    done, why, code = native.commit(self, state.based_on or 0, state.is_exact, state.changes, state.reads, deadline)
    if done then return true, table.unpack(results, 1, results.n) end
    if done == nil then return nil, why, code end
    take_turn(turn)
  end
  return nil, "conflict: others changed, " .. TRIES .. " times, what the function had read", 11
end
