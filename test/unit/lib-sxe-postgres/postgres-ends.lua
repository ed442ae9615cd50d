-- SPDX-License-Identifier: MIT
-- For test-postgres-module.c: tasks that share a pool while one of them ends at its first, second, third ... instruction. The
-- others must get their rows, and the pool must have as many connections as before.
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local postgres, task = require "sxe.postgres", require "sxe.task"
local equal = P.equal

local server

-- Each query's rows are its own.
local function query(db, id)
  local rows, why = db:query("echo", id)

  if not rows then error(why, 0) end
  equal(rows[1].a, tostring(id))
  return id
end

local function transact(db, id)
  return select(2, assert(db:transaction(function(tx) return tonumber(assert(tx:query("echo", id))[1].a) end)))
end

local function walk(db, id)
  for row in db:rows("echo", id) do return tonumber(row.a) end
end

local function pipe(db, id)
  local list, why = db:pipeline():query("echo", -id):sync():query("echo", id):exec()

  if not list then error(why, 0) end
  equal(list[1][1].a, tostring(-id))
  return tonumber(list[2][1].a)
end

-- A task that ends before its nth instruction. Returns whether it had so many.
local function end_at(n, db, call)
  local has_ended = false
  local function die()
    debug.sethook()
    has_ended = true
    error("dies", 0)
  end
  local dying = task.start(pcall, function()
    debug.sethook(die, "", n)
    local id = call(db, n)
    debug.sethook()
    return id
  end)
  local others = {}

  for i = 1, 2 do others[i] = task.start(pcall, query, db, n * 10 + i) end
  local ok, id = dying:join()
  equal(ok and n or id, ok and id or "dies")
  for i = 1, 2 do
    local good, other = others[i]:join()
    equal(other, good and n * 10 + i)
  end
  equal(query(db, -n), -n)
  return has_ended
end

-- Try every step-th instruction.
local function sweep(step, size, call)
  local db <close> = postgres.new{ host = "127.0.0.1", port = server.tcp.port, user = "u", max = size, timeout = 60, tls = false }
  local n, misses = 0, 0

  repeat -- on a busy machine the hook of the limit of CPU time may replace that of the test
    n = n + step
    misses = end_at(n, db, call) and 0 or misses + 1
  until misses == 3
  equal(n > 100, true)
end

P.run{
  function() server = P.serving{ echo = function(values) return P.one(values[1]) end } end,
  function() sweep(1, 1, query) end,
  function() sweep(3, 2, query) end,
  function() sweep(3, 1, transact) end,
  function() sweep(3, 1, walk) end,
  function() sweep(3, 1, pipe) end,
}
