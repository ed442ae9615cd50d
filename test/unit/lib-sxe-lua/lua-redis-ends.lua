-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: tasks that share a connection while one of them ends or yields at its first, second, third ...
-- instruction. make_way_after(n) makes the running task yield before its nth instruction; made_way() returns whether it
-- did. At the end `done` is true, or an error.
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"

done = false

local server
server = tcp.serve("127.0.0.1", 0, { connections = 60, handler = function(conn)
  for head in conn:lines() do
    local list = {}

    for i = 1, tonumber(head:sub(2)) do
      list[i] = conn:read(tonumber(conn:read("l"):sub(2)))
      conn:read(2)
    end
    if list[1] == "PING" or list[1] == "ROLE" then
      conn:write "+PONG\r\n"
    elseif list[1] == "CLUSTER" then
      conn:write("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:", server.port, "\r\n")
    else
      conn:write(list[1] == "HELLO" and "%0\r\n" or ("*2\r\n$%d\r\n%s\r\n:7\r\n"):format(#list[2], list[2]))
    end
  end
end })

local function open()
  return redis.new{ port = server.port, size = 1, timeout = 60 }
end

local function open_cluster()
  return redis.cluster{ seeds = { "127.0.0.1:" .. server.port }, size = 1, timeout = 60 }
end

local function open_sharded()
  return redis.sharded{ groups = { { name = "one", masters = { "127.0.0.1:" .. server.port } } }, size = 1, timeout = 60,
    check_timeout = 60 }
end

local function check(got, wanted)
  if got ~= wanted then error(("%s, not %s"):format(got, wanted), 2) end
end

-- Get a key. The reply must be this key's, or the command fails: returns the key, or "failed".
local function get(db, key)
  local list, why = db:get(key)

  if not list then return "failed", why end
  check(#list, 2)
  return list[1]
end

-- Like get, but by two commands of a pipeline.
local function get_in_pipeline(db, key)
  local lists = db:pipeline():get(key):get(key .. "2"):exec()

  if not lists then return "failed" end
  check(lists[1][1] .. lists[2][1], key .. key .. "2")
  return key
end

-- Three tasks, one of which sends by get or another function and ends at its nth instruction: the others must get their
-- replies, or an error at once. Returns whether the task had so many instructions.
local function end_at(n, db, send)
  local has_ended = false
  local function die()
    debug.sethook()
    has_ended = true
    error("dies", 0)
  end
  local dying = task.start(pcall, function()
    debug.sethook(die, "", n)
    local key = (send or get)(db, "a")
    debug.sethook()
    return key
  end)
  local others = {}

  for i = 1, 2 do others[i] = task.start(get, db, "b" .. i) end
  local ok, key = dying:join()
  check(ok and "dies" or key, "dies")
  check(not ok or key == "a" or has_ended, true)
  for i = 1, 2 do
    local other, why = others[i]:join()
    if other ~= "b" .. i then check(other == "failed" and why, "redis: the task that read for others ended") end
  end
  check(get(db, "later"), "later")
  return has_ended
end

-- Three tasks that yield at their nth instruction: all must get their replies.
local function make_way_at(n, db)
  local tasks = {}
  local made = false

  for i = 1, 3 do
    tasks[i] = task.start(function()
      make_way_after(n + i % 2)
      local key = get(db, "a" .. i)
      made = made_way() or made
      return key
    end)
  end
  for i = 1, 3 do check(tasks[i]:join(), "a" .. i) end
  return made
end

local n -- the instruction

-- Try every step-th instruction with one client. Only one client is open at a time: the test has few sockets.
local function sweep(open_new, step, try, send)
  local db <close> = open_new()

  n = 0
  repeat n = n + step until not try(n, db, send)
  check(n > 100, true)
end

-- Like sweep, but with a new client for each instruction, and up to a last instruction.
local function sweep_new(open_new, step, try, most)
  n = 0
  repeat
    local db <close> = open_new()
    n = n + step
  until not try(n, db) or n == most
  check(n > 100, true)
end

task.start(function()
  task.sleep(0)
  local ok, why = xpcall(function()
    sweep(open, 1, end_at)
    sweep(open, 1, make_way_at)
    sweep_new(open, 17, make_way_at)
    sweep_new(open, 17, end_at)
    sweep(open_cluster, 31, end_at)
    sweep(open_cluster, 29, end_at, get_in_pipeline)
    sweep_new(open_cluster, 1, end_at, 300) -- up to where the turn to read the map begins
    sweep_new(open_cluster, 61, end_at)
    sweep_new(open_cluster, 61, make_way_at)
    sweep(open_sharded, 23, end_at)
    sweep_new(open_sharded, 1, end_at, 150) -- up to where the checks begin
    sweep_new(open_sharded, 61, end_at)
    sweep_new(open_sharded, 61, make_way_at)
  end, debug.traceback)
  server:close()
  done = ok or ("instruction " .. n .. ": " .. tostring(why))
end)
