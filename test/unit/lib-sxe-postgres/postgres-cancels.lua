-- SPDX-License-Identifier: MIT
-- For test-postgres-module.c: queries that are cancelled. The connection is closed when the query has ended: after the first
-- request to cancel it that the server heeds.
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local postgres, task = require "sxe.postgres", require "sxe.task"
local fails, equal = P.fails, P.equal

local function mute() return P.MUTE end

local function wait_for(fn)
  while not fn() do task.sleep(0.001) end
end

local function open(server, options)
  options.host, options.port, options.user, options.max = "127.0.0.1", server.tcp.port, "u", 1
  options.cancel_timeout = options.cancel_timeout or 1000
  return postgres.new(options)
end

-- The first session of a server, when a call on its pool is under way.
local function session_of(server, db, text, call)
  local t = task.start(call, db)

  wait_for(function() return server.count(text) > 0 end)
  return server.sessions[1], t
end

local function query(db) return db:query{ "slow", prepare = false } end

-- A real server is deaf before its process has begun the query.
local function is_asked_until_it_heeds()
  for deaf = 0, 3 do
    local server = P.serving{ slow = mute }
    local db <close> = open(server, {})
    server.deaf = deaf
    local session, t = session_of(server, db, "slow", query)
    t:cancel()
    wait_for(function() return session.is_over end)
    equal(server.count "cancel" > deaf, true) -- perhaps more, on a busy machine
  end
end

-- The first time the thread cannot start the one that asks.
local function is_asked_once_more_if_it_cannot_be_asked()
  local server = P.serving{ slow = mute }
  local db <close> = open(server, {})
  local session, t = session_of(server, db, "slow", query)
  pq_fault "second pthread_create"
  t:cancel()
  wait_for(function() return session.is_over end)
  equal(server.count "cancel" > 0, true)
end

local function gives_up_in_time()
  local server = P.serving{ slow = mute }
  local db <close> = open(server, { cancel_timeout = 0.05 })
  server.deaf = 1000
  local session, t = session_of(server, db, "slow", query)
  t:cancel()
  wait_for(function() return session.is_over end)
  equal(server.count "cancel" > 0, true)
end

local function pipe(db) return db:pipeline():query "a":sync():query "slow":query "a":sync():query "a":exec() end

local function pipelines_end()
  local server = P.serving{ slow = mute, a = P.one "1" }
  local db <close> = open(server, {})
  server.deaf = 2
  local session, t = session_of(server, db, "prepare a", pipe)
  wait_for(function() return session.owed == 2 end)
  t:cancel()
  wait_for(function() return session.is_over end)
  equal(server.count "cancel" > 2, true)
end

-- A server that ends no group of queries, but each query.
local function pipelines_without_syncs_end()
  local server
  server = P.serving{ slow = function(_, session)
    session.conn:write((P.message("1", "") .. P.message("2", "") .. P.message("n", "") .. P.message("C", "SET\0")):rep(9))
    return P.MUTE
  end }
  local db <close> = open(server, { cancel_timeout = 0.05 })
  server.deaf = 1000
  local session, t = session_of(server, db, "slow", function() return db:pipeline{ bytes_max = 1 }:query "slow":exec() end)
  t:cancel()
  wait_for(function() return session.is_over end)
end

-- The client's end of a COPY is missing, so the server would never say that the query has ended.
local function a_copy_is_asked_for_once()
  local server = P.serving{ out = function(_, session)
    session.conn:write(P.message("H", "\0\0\0") .. P.message("d", "1\n") .. P.message("d", "2\n"))
    return P.MUTE
  end }
  local db <close> = open(server, {})
  server.deaf = 1000
  for _ in db:copy_out "out" do break end
  wait_for(function() return server.sessions[1].is_over end)
  equal(server.count "cancel", 1)
end

-- The server does not read all of the query.
local function a_part_of_a_query_is_asked_for_once()
  local server, gate
  server, gate = P.serving{ first = function() gate:wait() end }, task.event()
  local db <close> = open(server, {})
  server.deaf = 1000
  local session, t = session_of(server, db, "first", function()
    return db:pipeline{ prepare = false }:query "first":query("second", ("x"):rep(32 << 20)):exec()
  end)
  t:cancel()
  wait_for(function() return server.count "cancel" == 1 end)
  gate:set()
  wait_for(function() return session.is_over end)
  equal(server.count "cancel", 1)
end

-- The rows of a query that does not end are not read for ever.
local function rows_without_end_are_not_read()
  local server = P.serving{ rows = function(_, session)
    local bytes = (P.message("D", "\0\0")):rep(4096)
    session.conn:write(P.message("T", "\0\0"))
    repeat local is_open = session.conn:write(bytes) until not is_open
    session.has_failed = true
  end }
  local db <close> = open(server, {})
  server.deaf = 1000
  fails("more than 1 rows", db:query{ "rows", prepare = false, rows_max = 1 })
  wait_for(function() return server.sessions[1].has_failed end)
end

-- The server need not be asked when the reply has come.
local function a_complete_reply_is_enough()
  local server = P.serving{ three = { columns = { { "a", 25 } }, rows = { { "x" }, { "y" }, { "z" } } } }
  local db <close> = open(server, {})
  fails("more than 1 rows", db:query{ "three", rows_max = 1 })
  wait_for(function() return server.sessions[1].is_over end)
  equal(server.count "cancel", 0)
end

P.run{ is_asked_until_it_heeds, is_asked_once_more_if_it_cannot_be_asked, gives_up_in_time, pipelines_end,
  pipelines_without_syncs_end, a_copy_is_asked_for_once, a_part_of_a_query_is_asked_for_once, rows_without_end_are_not_read, a_complete_reply_is_enough }
