-- SPDX-License-Identifier: MIT
--
-- The connections of sxe.client: idle ones that wait for another request, new ones, and reading in time. A target is a
-- scheme, a host, a port and options of TLS; each has its idle connections. sxe-lua-client.lua calls this file with the
-- functions of sxe-lua-client.c, and gets a table of functions.
local c = ...
local task, tcp = require "sxe.task", require "sxe.tcp"
local max, min, next, pairs, remove = math.max, math.min, next, pairs, table.remove

local IDLE_MAX <const>, IDLE_S <const> = 8, 15 -- the most idle connections of a target, and how long each may stay
local IDLE_ALL <const> = 32                    -- the most idle connections of all targets
local ENFILE <const> = 23                      -- all sockets of the script are in use
local CLOSE_S <const> = 1                      -- seconds that the close of idle connections may take
local A_TURN <const> = 1e-6                    -- seconds: a wait of one turn of the loop

local idle = {} -- target -> a list of {conn =, at =}, the youngest last

-- An idle connection to this target, or nil. Its server had not closed it when it was put here; nothing else is known.
local function take_idle(key)
  local list = idle[key]

  while list and #list > 0 do
    local one = remove(list)
    local _, why

    if #list == 0 then idle[key] = nil end
    if c.now() - one.at < IDLE_S then _, why = one.conn:read(nil, A_TURN) end
    if why == "timeout" then return one.conn end
    c.end_conn(one.conn)
    list = idle[key] -- other tasks may have changed the list meanwhile
    if why == "cancelled" then return nil, why end
  end
end

local function close_idle(is_old)
  for key, list in pairs(idle) do
    while list[1] and is_old(list[1]) do c.end_conn(remove(list, 1).conn) end
    if not list[1] then idle[key] = nil end
  end
end

-- Close the oldest idle connection if there are too many of all targets.
local function drop_oldest()
  local oldest, number = nil, 0

  for key, list in pairs(idle) do
    number = number + #list
    if not oldest or list[1].at < idle[oldest][1].at then oldest = key end
  end
  if number <= IDLE_ALL then return end
  c.end_conn(remove(idle[oldest], 1).conn)
  if not idle[oldest][1] then idle[oldest] = nil end
end

local function put_idle(key, conn)
  local now = c.now()

  close_idle(function(one) return now - one.at >= IDLE_S end)
  idle[key] = idle[key] or {}
  idle[key][#idle[key] + 1] = { conn = conn, at = now }
  if #idle[key] > IDLE_MAX then c.end_conn(remove(idle[key], 1).conn) end
  drop_oldest()
end

local function left_of(r)
  return max(r.deadline - c.now(), A_TURN)
end

-- A read of bytes that are there already never times out: a server that goes on sending must not outlast the deadline.
local function read_some(r, conn, timeout)
  if c.now() >= r.deadline then return nil, "timeout" end
  return conn:read(nil, timeout)
end

local function dial(host, port, options)
  local conn, why, code = tcp.connect(host, port, options)
  local last = c.now() + min(options.timeout, CLOSE_S)

  if code ~= ENFILE or next(idle) == nil then return conn, why, code end
  close_idle(function() return true end) -- their sockets are needed, and closing takes turns of the loop
  repeat
    task.sleep(A_TURN)
    conn, why, code = tcp.connect(host, port, options)
  until code ~= ENFILE or c.now() > last
  return conn, why, code
end

return { dial = dial, left_of = left_of, put_idle = put_idle, read_some = read_some, take_idle = take_idle }
