-- SPDX-License-Identifier: MIT
-- For test-postgres-module.c: calls of libpq that fail. pq_fault(name) makes the next call of that name fail.
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local postgres, task = require "sxe.postgres", require "sxe.task"
local equal, fails = P.equal, P.fails

local server, db

local function open()
  server = P.serving{ a = P.one "1", b = P.one("\\x61", 17), slow = function() return P.MUTE end }
  db = postgres.new{ host = "127.0.0.1", port = server.tcp.port, user = "u", max = 1 }
end

local function works()
  equal(assert(db:query "a")[1].a, "1")
end

local function connecting_fails()
  pq_fault "PQconnectStartParams"
  fails("not enough memory", db:query "a")
  works()
  db:close()
  open()
  pq_fault "PQsetnonblocking"
  equal(select(3, db:query "a"), "08001")
  works()
end

local function queries_fail()
  pq_fault "PQsendQueryParams"
  equal(select(3, db:query{ "a", prepare = false }), "08006")
  works()
  pq_fault "PQunescapeBytea"
  fails("not enough memory", pcall(db.query, db, "b"))
  equal(assert(db:query "b")[1].a, "a")
end

-- A query that cannot be cancelled ends with its connection.
local function cancelling_fails()
  pq_fault "PQgetCancel"
  fails("timeout", db:query{ "slow", timeout = 0.01, prepare = false })
  works()
  for _, name in ipairs{ "calloc", "pthread_create", "getpeername" } do
    pq_fault(name)
    fails("timeout", db:query{ "slow", timeout = 0.01, prepare = false })
    works()
  end
  fails("timeout", db:query{ "slow", timeout = 0.01, prepare = false })
  while server.count "cancel" == 0 do task.sleep(0.001) end
  works()
end

-- A server that does not answer its cancel requests leaves room for those of others.
local function silent_servers_hold_up_nobody()
  local gate = task.event()
  local silent = P.serving{ slow = function() return P.MUTE end }
  local many = postgres.new{ host = "127.0.0.1", port = silent.tcp.port, user = "u", max = 66, prepare = false }
  local tasks = {}

  silent.on_cancel = function() gate:wait() end
  for i = 1, 66 do tasks[i] = task.start(many.query, many, "slow") end
  while silent.count "slow" < 66 do task.sleep(0.001) end
  for i = 1, 66 do tasks[i]:cancel() end
  while silent.count "cancel" < 64 do task.sleep(0.001) end
  server.log = {}
  works()
  fails("timeout", db:query{ "slow", timeout = 0.01, prepare = false })
  while server.count "cancel" == 0 do task.sleep(0.001) end
  equal(silent.count "cancel", 64)
  gate:set()
  many:close()
end

-- A cancel request that a server does not answer ends after cancel_timeout, and leaves its place to the next.
local function cancel_requests_end()
  local gate = task.event()
  local silent = P.serving{ slow = function() return P.MUTE end }
  local few <close> = postgres.new{ host = "127.0.0.1", port = silent.tcp.port, user = "u", max = 70, prepare = false,
    cancel_timeout = 0.1 }
  local tasks = {}

  silent.on_cancel = function() gate:wait() end
  for i = 1, 70 do tasks[i] = task.start(few.query, few, "slow") end
  while silent.count "slow" < 70 do task.sleep(0.001) end
  for i = 1, 64 do tasks[i]:cancel() end
  while silent.count "cancel" < 65 do
    fails("timeout", few:query{ "slow", timeout = 0.1 })
    task.sleep(0.001)
  end
  for i = 65, 70 do tasks[i]:cancel() end
  gate:set()
end

local function pipelines_fail()
  server.log = {}
  for _, name in ipairs{ "PQenterPipelineMode", "PQpipelineSync", "PQsendPrepare", "PQsendQueryParams" } do
    pq_fault(name)
    local list, _, code = db:pipeline{ prepare = name ~= "PQsendQueryParams" }:query "a":query "other":exec()
    equal(list, nil)
    equal(code, "08006")
    works()
  end
  -- An error while the replies are read: the connection ends.
  pq_fault "PQunescapeBytea"
  fails("not enough memory", pcall(function() db:pipeline():query "b":query "a":exec() end))
  works()
  fails("closed", db:transaction(function(tx)
    pq_fault "PQunescapeBytea"
    fails("not enough memory", pcall(function() tx:pipeline():query "b":query "a":exec() end))
    fails("closed", tx:query "a")
  end))
  works()
end

local function options_fail()
  pq_fault "PQconndefaults"
  fails("not enough memory", pcall(postgres.new, {}))
  pq_fault "PQconninfoParse"
  fails("not enough memory", pcall(postgres.new, "host=a"))
end

-- Calls where no task can wait raise.
local function waits_need_tasks()
  fails("cannot wait", pcall(table.sort, { 1, 2 }, function() return db:query "a" end))
  local numbered <close> = postgres.new "hostaddr=127.0.0.1 port=1 user=u"
  fails("cannot wait", pcall(table.sort, { 1, 2 }, function() return numbered:query "a" end))
  local named <close> = postgres.new{ host = "localhost", user = "u" }
  fails("cannot wait", pcall(table.sort, { 1, 2 }, function() return named:query "a" end))
  works()
  fails("cannot wait", pcall(table.sort, { 1, 2 }, function() return db:query "a" end))
  works()
  fails("cannot wait", pcall(table.sort, { 1, 2 }, function() return db:pipeline():query "a":exec() end))
  works()
end

local function cancelled_tasks_send_nothing()
  local result

  server.log = {}
  task.start(function()
    task.self():cancel()
    result = { db:query "a" }
  end):join()
  fails("cancelled", table.unpack(result))
  task.start(function()
    task.self():cancel()
    result = { db:pipeline():query "a":exec() }
  end):join()
  fails("cancelled", table.unpack(result))
  equal(#server.log, 0)
  fails("closed", db:transaction(function(tx)
    db:close()
    fails("closed", tx:query "a")
    fails("closed", tx:pipeline():query "a":exec())
  end))
end

P.run{ open, connecting_fails, queries_fail, cancelling_fails, silent_servers_hold_up_nobody, cancel_requests_end,
  pipelines_fail, options_fail, waits_need_tasks,
  cancelled_tasks_send_nothing }
