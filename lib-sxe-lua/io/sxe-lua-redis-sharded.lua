-- SPDX-License-Identifier: MIT
--
-- redis.sharded of require "sxe.redis": the commands and handles of a client, for groups of servers that know nothing
-- of each other. This file adds it to the module. sxe-lua-redis-shards.lua knows the groups and their servers; this file
-- is the router (sxe-lua-redis-route.lua), whose places are groups.
--
--   db              a command goes to the group of its keys
--   db:group(name)  any command goes to this group
local redis, core = ...
local POOL, checks, commands, clients = core.POOL, core.checks, core.commands, core.clients
local error, format, ipairs, pairs, rawget, setmetatable = error, string.format, ipairs, pairs, rawget, setmetatable
local tostring, type = tostring, type

local WHO <const> = "redis.sharded"

-- Refusals that do not last.
local PASSING <const> = { LOADING = true, MASTERDOWN = true, READONLY = true }

local OPTIONS <const> = { groups = "table", hash = "string", read_from = "string", check_interval = "number",
  check_timeout = "number", failures = "number", successes = "number", retries = "number", backoff = "number",
  hand_back = "number or string" }
local DEFAULTS <const> = { groups = {}, hash = "ring", read_from = "master", check_interval = 1, check_timeout = 1,
  failures = 3, successes = 2, retries = 3, backoff = 0.01, hand_back = 10 }

for _, name in ipairs{ "user", "password", "db", "size", "handles", "timeout", "reply_max", "protocol", "tls" } do
  OPTIONS[name], DEFAULTS[name] = core.OPTIONS[name], core.DEFAULTS[name]
end

-- ---- The router ----

local Router = { needs_key = true }
Router.__index = Router

function Router.choose(router, way)
  local shards, group = router.shards, way.place
  local server

  if shards.is_closed then return nil, "closed" end
  server = shards:server_of(group, way.is_read, way.may_repeat)
  if not server then return nil, shards:say_down(group), "GROUPDOWN" end
  way.node, way.refused_at = server.pool, nil
  return way.node
end

-- A command that no server of its group takes waits only until all of them have been checked.
local function judge_refusal(shards, way, why)
  if shards:may_wait(way) then return "wait" end
  shards.counters:inc "refused"
  return nil, why, "GROUPDOWN"
end

-- A command that was sent may be repeated if it only reads.
local function judge_loss(shards, way, why, code, is_unsent)
  shards.counters:inc "failures"
  if is_unsent then return "wait" end
  if why == "timeout" or not way.may_repeat or way.repeats >= shards.options.retries then return nil, why, code end
  way.repeats = way.repeats + 1
  shards.counters:inc "repeats"
  return "wait"
end

function Router.judge(router, way, why, code, is_unsent)
  local shards, node = router.shards, way.node

  way.node, way.is_read = nil, nil
  if why == "cancelled" or shards.is_closed then return nil, why, code end
  if node then core.note_failure(node.server, why) end
  if not node and code == "GROUPDOWN" then return judge_refusal(shards, way, why) end
  if node and PASSING[code] then
    if code == "READONLY" then core.note_replica(node.server) end
    shards.counters:inc "waits"
    return "wait"
  end
  if way.is_final or core.is_of_server(why, code) then return nil, why, code end
  return judge_loss(shards, way, why, code, is_unsent)
end

function Router.is_moved(_, code)
  return PASSING[code] ~= nil
end

function Router.place_of_key(router, key)
  return router.shards:group_of(key)
end

function Router.say_crossed(_, one, other)
  return commands.say_crossed("GROUP", one, other)
end

-- The group of a command's keys, as commands.place_of returns it. Raises for a command about one server.
function Router.place_of(router, name, ...)
  if commands.OF_NODES[name] then error("redis: " .. name .. " is for one server: call it on db:group(name)", 0) end
  if name == "PSUBSCRIBE" then error("redis: a pattern has no group: call PSUBSCRIBE on db:group(name)", 0) end
  if name == "SUBSCRIBE" then name = "EXISTS" end -- the names are the keys
  if name == "PUBLISH" then name = "GET" end      -- its first argument is the key
  return commands.place_of(router, name, ...)
end

-- ---- One group ----

-- The router of db:group(name).
local View = { choose = Router.choose, judge = Router.judge, is_moved = Router.is_moved }
View.__index = View

function View.place_of(view)
  return view.group, view.group.name
end

local DB <const> = {} -- the client of a group keeps the other one: collecting that would close the servers

local view_metatable = {
  __index = function(_, name) return clients.methods[name] or clients.commands[name] end, __name = "sxe.redis group",
}

-- ---- The client ----

local Sharded = {}

for name, method in pairs(clients.methods) do Sharded[name] = method end

local function find_group(shards, name)
  local group = shards.by_name[name]

  if not group then error(format("redis: there is no group '%s'", tostring(name)), 0) end
  return group
end

local function new_view(db, shards, group)
  local view = setmetatable({ shards = shards, group = group, options = shards.options }, View)

  return setmetatable({ [POOL] = view, [DB] = db }, view_metatable)
end

-- A client of one group, for commands without a key and patterns.
function Sharded.group(db, name)
  local shards = rawget(db, POOL).shards

  return new_view(db, shards, find_group(shards, name))
end

-- The name of the group that has a key.
function Sharded.group_of(db, key)
  return rawget(db, POOL).shards:group_of(key).name
end

function Sharded.state(db)
  return rawget(db, POOL).shards:state()
end

-- Give a group back to the first of its servers that may write. Returns the server's address, or nil, why, code.
function Sharded.hand_back(db, name)
  local shards = rawget(db, POOL).shards
  local group = find_group(shards, name)
  local address = shards:hand_back(group)

  if not address then return nil, shards:say_down(group), "GROUPDOWN" end
  return address
end

-- A function that runs a script in the group of its keys, by its hash.
function Sharded.prepare(db, text)
  local runs = {}

  if type(text) ~= "string" then error("redis: a script is a string, not a " .. type(text), 0) end
  return function(keys, ...)
    local router = rawget(db, POOL)

    if type(keys) ~= "table" then error("redis: a script has a list of keys, not a " .. type(keys), 0) end
    local group, why, code = router:place_of("EXISTS", table.unpack(keys))
    if group == nil then error("redis: the script has no key: prepare it on db:group(name)", 0) end
    if not group then return nil, why, code end
    runs[group] = runs[group] or new_view(db, router.shards, group):prepare(text)
    return runs[group](keys, ...)
  end
end

function Sharded.close(db)
  rawget(db, POOL).shards:close()
end

local metatable = {
  __index = function(_, name) return Sharded[name] or clients.commands[name] end,
  __close = Sharded.close, __gc = Sharded.close, __name = "sxe.redis sharded",
}

local function check_hand_back(all)
  if type(all.hand_back) == "string" and all.hand_back ~= "manual" then
    error(format('%s: hand_back is a number of seconds, or "manual", not \'%s\'', WHO, all.hand_back), 0)
  end
  if type(all.hand_back) == "number" and not (all.hand_back >= 0) then
    error(WHO .. ": hand_back must be at least 0 seconds", 0)
  end
end

function redis.sharded(options)
  local all = checks.check_options(WHO, options, OPTIONS, DEFAULTS)

  checks.check_ranges(WHO, all)
  checks.check_range(WHO, all, "db", 0, checks.DB_MAX)
  checks.check_range(WHO, all, "failures", 1, 1000)
  checks.check_range(WHO, all, "successes", 1, 1000)
  checks.check_range(WHO, all, "retries", 0, 1000)
  for _, name in ipairs{ "check_interval", "check_timeout", "backoff" } do checks.check_seconds(WHO, all, name) end
  checks.check_word(WHO, all, "hash", "ring", "modulo")
  checks.check_word(WHO, all, "read_from", "master", "replica")
  check_hand_back(all)
  local router = setmetatable({ shards = core.new_shards(WHO, all), options = all }, Router)
  return setmetatable({ [POOL] = router }, metatable)
end
