-- SPDX-License-Identifier: MIT
--
-- Masters that Sentinels watch, for redis.new{ sentinels = ..., master = ... } of require "sxe.redis". This file adds
-- new_sentinel to the functions that sxe-lua-redis.lua gives it.
--
-- Sentinels choose another master when one fails. So a new connection is opened in three steps: find asks the Sentinels in
-- turn, beginning with the one that answered last; the link connects to the address; verify asks the server itself, which
-- may not know yet that it is a replica. After an attempt that failed, the next one of all tasks waits for a pause, which
-- doubles, and begins with the next Sentinel: one that a partition cuts off names an old master for as long as it lasts.
local core = ...
local json, stats, task = require "sxe.json", require "sxe.stats", require "sxe.task"
local c, exchange, is_host, is_port = core.c, core.exchange, core.checks.is_host, core.checks.is_port
local format = string.format
local ipairs, min, setmetatable = ipairs, math.min, setmetatable
local tointeger, tonumber, type = math.tointeger, tonumber, type

local PORT <const> = 26379
local A_PART <const> = 4                           -- a Sentinel has one fourth of the timeout to answer
local PAUSE <const>, PAUSE_MAX <const> = 0.01, 0.5 -- seconds: the first one, and the longest
local PAUSES <const> = 10                          -- number of pauses, each twice as long as the last
local ROLE <const> = c.encode "ROLE"

-- Refusals that no later attempt changes.
local FINAL <const> = { WRONGPASS = true, NOAUTH = true, NOPERM = true }

local counters -- of all clients of Sentinels in this state, made with the first one

local Sentinel = {}
Sentinel.__index = Sentinel

-- The metatable of a pool that is closed after one question, because Sentinels are asked rarely.
local askers = { __close = core.close_pool }

-- Ask a Sentinel for the master. Returns host, port; or nil, why, code.
local function ask(sentinel, options, deadline)
  local pool <close> = setmetatable(core.new_pool(options), askers)
  local list, why, code = core.exchange_shared(pool, sentinel.question, min(deadline, c.now() + options.timeout / A_PART))
  local port

  counters:inc "lookups"
  if list == nil then return nil, why, code end
  if list == json.null then return nil, "it does not know this master" end
  port = type(list) == "table" and tointeger(tonumber(list[2])) or nil
  if not port or not is_host(list[1]) or not is_port(port) then return nil, "it sent no address" end
  return list[1], port
end

-- Find the address of the master, for a link. Returns host, port; or nil, why, code.
function Sentinel.find(sentinel, link, deadline)
  local all = sentinel.all
  local first = sentinel.first
  local seconds = sentinel.retry_at - c.now()
  local ok, host, port, why, code

  if seconds > 0 then
    ok, why = task.sleep(seconds)
    if not ok then return nil, why end
  end
  for i = 0, #all - 1 do
    local at = (first + i - 1) % #all + 1

    host, port, code = ask(sentinel, all[at], deadline)
    if host then
      sentinel.first, link.asked = at, at
      return host, port
    end
    if port == "cancelled" or FINAL[code] then return nil, port, code end
    why = format("redis: no Sentinel says where the master '%s' is: %s:%d: %s", sentinel.master, all[at].host, all[at].port,
      port)
  end
  return nil, why
end

-- Check that the server of a link, found at this address, is a master. Returns true; or nil, why, code.
function Sentinel.verify(sentinel, link, host, port, deadline)
  local role, why, code = exchange(link, ROLE, deadline)
  local name = host .. ":" .. port

  if role == nil then return nil, why, code end
  if type(role) ~= "table" or role[1] ~= "master" then
    return nil, format("redis: %s is not a master, although the Sentinels name it as '%s'", name, sentinel.master)
  end
  if sentinel.name and sentinel.name ~= name then counters:inc "switches" end
  sentinel.name, sentinel.pauses, sentinel.retry_at = name, 0, 0
  return true
end

-- When to give an attempt up with the address that was found, so that another Sentinel can be asked before the deadline.
function Sentinel.end_of_attempt(sentinel, deadline)
  return min(deadline, c.now() + sentinel.all[1].timeout / 2)
end

-- Count an attempt to open a link that failed.
function Sentinel.fail(sentinel, link)
  -- Of several attempts that believed the same Sentinel, the first one that fails moves on.
  if link.asked == sentinel.first then sentinel.first = sentinel.first % #sentinel.all + 1 end
  sentinel.retry_at = c.now() + min(PAUSE * 2 ^ sentinel.pauses, PAUSE_MAX)
  sentinel.pauses = min(sentinel.pauses + 1, PAUSES)
end

-- After an attempt that failed: whether another one may follow before the deadline.
function Sentinel.may_go_on(sentinel, why, code, deadline)
  return why ~= "cancelled" and not FINAL[code] and sentinel.retry_at < deadline
end

-- Make the Sentinels that the checked options of redis.new name.
function core.new_sentinel(options)
  local all = {}

  for i, address in ipairs(core.checks.read_addresses("redis.new", "sentinels", "a Sentinel", options.sentinels, PORT)) do
    all[i] = { host = address[1], port = address[2], user = options.sentinel_user, password = options.sentinel_password,
      tls = options.tls, db = 0, size = 1, handles = 1, timeout = options.timeout, reply_max = options.reply_max,
      protocol = options.protocol }
  end
  counters = counters or stats{ "lookups", "switches", name = "redis.sentinel" }
  return setmetatable({ all = all, master = options.master, first = 1, pauses = 0, retry_at = 0, name = false,
    question = c.encode("SENTINEL", "GET-MASTER-ADDR-BY-NAME", options.master) }, Sentinel)
end
