-- SPDX-License-Identifier: MIT
--
-- redis.cluster of require "sxe.redis": the commands and handles of a client, for a cluster. This file adds it to the
-- module; sxe-lua-redis.lua gives it the functions that open links and send commands.
--
-- A node is a pool of links to one server, as each client of redis.new has one. The map says which shard has a slot: its
-- master, and its replicas.
--
--   cluster.slots[0 ... 16383] -> shard: master, replicas -> node: links
--   cluster.by_name["host:port"] ---------------------------^
--
-- It is a router (sxe-lua-redis-route.lua), whose places are slots. A command that the server refused with MOVED, ASK
-- and the like, or that was certainly not sent, goes again; any other is sent once.
--
--   choose: refresh the map, owner       judge: follow the redirect, or wait, or fail
--
-- One task reads the map for all that want it (refresh). It has a version, so that a thousand commands that were sent by
-- the same map, and moved, read one new map.
local redis, Db, core = ...
local json, stats, task = require "sxe.json", require "sxe.stats", require "sxe.task"
local c, POOL, checks, commands = core.c, core.POOL, core.checks, core.commands
local is_host, is_port = checks.is_host, checks.is_port
local left_of, methods = core.left_of, core.clients.methods
local format, match, sub = string.format, string.match, string.sub
local error, ipairs, max, min, pairs, pcall = error, ipairs, math.max, math.min, pairs, pcall
local math_type, rawget, setmetatable, tointeger = math.type, rawget, setmetatable, math.tointeger
local tonumber, type = tonumber, type

local SLOTS <const> = 16384
local PORT <const> = 6379       -- the port of a seed that names none
local MESSAGE_MAX <const> = 255 -- the most bytes of a server's message in an error text
local REDIRECTS <const> = 16    -- the most redirects of a command
local A_PART <const> = 4        -- a node has one fourth of the timeout to tell the map
local READ_MAP <const>, ASKING <const> = c.encode("CLUSTER", "SLOTS"), c.encode "ASKING"
local BAD_MAP <const> = "redis: the server sent no map of slots: "

-- Refusals that do not last; the value says whether the map may be old.
local PASSING <const> = { TRYAGAIN = false, CLUSTERDOWN = true, LOADING = true, MASTERDOWN = true }

local OPTIONS <const> = { seeds = "table", read_from = "string", nodes = "number" }
local DEFAULTS <const> = { nodes = 100, read_from = "master", port = PORT, backoff = 0.01 }
local NOT_HERE <const> = { host = true, port = true, unix = true, db = true, sentinels = true, master = true,
  sentinel_user = true, sentinel_password = true }

for name, kind in pairs(core.OPTIONS) do
  if not NOT_HERE[name] then OPTIONS[name] = kind end
end
for name, value in pairs(core.DEFAULTS) do DEFAULTS[name] = value end

local counters -- of all clusters of this state, made with the first one

local Router = {} -- the methods of a cluster that sxe-lua-redis-route.lua calls
Router.__index = Router

-- ---- Nodes ----

local function name_of(host, port)
  return host .. ":" .. port
end

local function new_node(cluster, host, port)
  local options = {}

  for name, value in pairs(cluster.options) do options[name] = value end
  options.host, options.port = host, port
  return core.new_pool(options)
end

-- The node at an address. If there is none and the cluster has fewer than `most` nodes, it is made; otherwise nil, why.
local node_at = c.atomic(function(cluster, host, port, most)
  local name = name_of(host, port)
  local node = cluster.by_name[name]

  if node then return node end
  if cluster.count >= most then return nil, format("redis: the server names more than %d nodes", most) end
  node = new_node(cluster, host, port)
  cluster.by_name[name], cluster.count = node, cluster.count + 1
  return node
end)

-- Send no more commands to the node; those that wait in it still get their replies.
local function drop(node)
  node.is_closed = true
  for _, list in ipairs{ node.links, node.owned } do
    for i = #list, 1, -1 do
      local link = list[i]

      if link and not link.is_opening and (list == node.links or link.is_spare) then core.retire(link) end
    end
  end
  core.tell_waiting(node)
end

-- ---- The map ----

-- Returns host, port; false if the server does not know the address; or nil if the entry holds no address.
local function read_address(entry, from)
  local host, port

  if type(entry) ~= "table" then return nil end
  host, port = entry[1], entry[2]
  if host == json.null or host == "" then host = from.options.host end
  if host == "?" then return false end
  if not is_host(host) or not is_port(port) then return nil end
  return host, port
end

-- Returns the first and the last slot, and the nodes' names, the master's first, or false without one; or nil, why.
local function read_range(range, from, addresses)
  local names = {}

  if type(range) ~= "table" or math_type(range[1]) ~= "integer" or math_type(range[2]) ~= "integer" or
      range[1] < 0 or range[1] > range[2] or range[2] >= SLOTS or not range[3] then
    return nil, BAD_MAP .. "a range of slots is wrong"
  end
  for i = 3, #range do
    local host, port = read_address(range[i], from)

    if host == nil then return nil, BAD_MAP .. "the address of a node is wrong" end
    if host then
      names[#names + 1] = name_of(host, port)
      addresses[name_of(host, port)] = { host, port }
    elseif i == 3 then
      names[1] = false
    end
  end
  return range[1], range[2], names
end

-- Returns the addresses of all nodes, by name, and the ranges of slots; or nil, why.
local function read_map(cluster, list, from)
  local addresses, ranges, number = {}, {}, 0

  if type(list) ~= "table" or not list[1] then return nil, BAD_MAP .. "it has no slots" end
  if #list > SLOTS then return nil, BAD_MAP .. "it has more ranges than slots" end
  for i, range in ipairs(list) do
    local first, last, names = read_range(range, from, addresses)

    if not first then return nil, last end
    ranges[i] = { first, last, names }
  end
  for _ in pairs(addresses) do number = number + 1 end
  if number > cluster.options.nodes then
    return nil, format("redis: the cluster has %d nodes, more than %d, the option nodes", number, cluster.options.nodes)
  end
  return addresses, ranges
end

-- The shard of a master, by the master's name; the replicas are added to the shard.
local function shard_of(shards, nodes, names)
  local master = names[1]
  local shard = shards[master]

  if not shard then
    shard = { master = nodes[master], replicas = {}, turn = 0 }
    shards[#shards + 1], shards[master] = shard, shard
    for i = 2, #names do shard.replicas[i - 1] = nodes[names[i]] end
  end
  return shard
end

-- Use the new map, and drop the nodes that it does not have.
local install = c.atomic(function(cluster, addresses, ranges)
  local nodes, shards, slots, count = {}, {}, {}, 0
  local old = cluster.by_name

  for name, address in pairs(addresses) do
    nodes[name] = old[name] or new_node(cluster, address[1], address[2])
    count = count + 1
  end
  for _, range in ipairs(ranges) do
    local shard = range[3][1] and shard_of(shards, nodes, range[3])

    for slot = range[1], range[2] do slots[slot] = shard end
  end
  cluster.slots, cluster.shards, cluster.by_name, cluster.count = slots, shards, nodes, count
  cluster.version = cluster.version + 1
  counters:inc "maps"
  for name, node in pairs(old) do
    if not nodes[name] then drop(node) end
  end
end)

-- Note that a slot moved to a node.
local own = c.atomic(function(cluster, slot, node)
  for _, shard in ipairs(cluster.shards) do
    if shard.master == node then
      cluster.slots[slot] = shard
      return
    end
  end
  cluster.slots[slot] = { master = node, replicas = {}, turn = 0 }
end)

-- The nodes that can tell the map: first the node `first`, then those of the map, another one first each time, then the
-- seeds.
local function sources_of(cluster, first)
  local list, all = { first }, {}

  for _, node in pairs(cluster.by_name) do
    if node ~= first then all[#all + 1] = node end
  end
  cluster.source = cluster.source + 1
  for i = 1, #all do list[#list + 1] = all[(cluster.source + i) % #all + 1] end
  for _, seed in ipairs(cluster.seeds) do
    if not cluster.by_name[name_of(seed[1], seed[2])] then list[#list + 1] = seed end
  end
  return list
end

local function ask_for_map(cluster, deadline, first)
  local why, code

  for _, source in ipairs(sources_of(cluster, first)) do
    local node = source.options and source or node_at(cluster, source[1], source[2], math.huge)
    local until_then = min(deadline, c.now() + cluster.options.timeout / A_PART)
    local list, addresses, ranges

    list, why, code = core.exchange_shared(node, READ_MAP, until_then)
    if list then
      addresses, ranges = read_map(cluster, list, node)
      if addresses then
        install(cluster, addresses, ranges)
        return true
      end
      why, code = ranges, nil
    end
    if why == "cancelled" or cluster.is_closed then break end
  end
  return nil, why, code
end

-- When a task's turn to read the map ends, the tasks that wait for it look again. A turn that was cut off leaves the
-- map old.
local refreshers = { __close = c.insist(function(turn)
  local cluster = turn.cluster
  local ok, fresh

  if cluster.refresher ~= turn then return end
  if turn.is_reading then cluster.is_stale = true end
  ok, fresh = pcall(task.event)
  cluster.fresh:set()
  if ok then cluster.fresh = fresh else cluster.fresh:clear() end
  cluster.refresher = nil
end) }

-- Begin a turn; or return the event of the end of another task's turn, which cannot end before the event is read. The turn
-- is already closed with its task: no cut leaves the cluster with a turn that never ends.
local begin_refresh = c.atomic(function(cluster, turn)
  if cluster.refresher then return cluster.fresh end
  cluster.refresher = turn
end)

local function read_in_turn(cluster, turn, deadline, first)
  local ok, why, code

  turn.is_reading = true
  cluster.is_stale = false
  ok, why, code = ask_for_map(cluster, deadline, first)
  if ok then
    turn.is_reading = false
  elseif why ~= "cancelled" then
    cluster.failures, cluster.why, cluster.code = cluster.failures + 1, why, code
  end
  return ok, why, code
end

-- Get a map of another version: one task reads it, first from the node `first`. Returns true, or nil, why, code.
local function refresh(cluster, version, deadline, first)
  local failures = cluster.failures

  while cluster.version == version and not cluster.is_closed do
    local turn <close> = setmetatable({ cluster = cluster }, refreshers)
    local fresh, ok, why, code

    if cluster.failures ~= failures then return nil, cluster.why, cluster.code end
    fresh = begin_refresh(cluster, turn)
    if not fresh then
      ok, why, code = read_in_turn(cluster, turn, deadline, first)
      return ok, why, code
    end
    ok, why = fresh:wait(left_of(deadline))
    if not ok then return nil, why end
  end
  if cluster.is_closed then return nil, "closed" end
  return true
end

-- The node that has the slot of a way, or any node if the way has no slot; or nil, why, code.
local function owner(cluster, way)
  local shard

  if way.place then
    shard = cluster.slots[way.place]
    if not shard then return nil, format("CLUSTERDOWN no node has slot %d", way.place), "CLUSTERDOWN" end
  else
    cluster.turn = cluster.turn % max(#cluster.shards, 1) + 1
    shard = cluster.shards[cluster.turn]
    if not shard then return nil, "CLUSTERDOWN no node has a slot", "CLUSTERDOWN" end
  end
  if not way.is_read or not cluster.options.is_readonly or not shard.replicas[1] then return shard.master end
  shard.turn = shard.turn % #shard.replicas + 1
  return shard.replicas[shard.turn]
end

function Router.choose(cluster, way)
  local ok, why, code

  if cluster.version == 0 or cluster.is_stale and not cluster.refresher then
    ok, why, code = refresh(cluster, cluster.version, way.deadline)
    if not ok and (cluster.version == 0 or why == "cancelled") then return nil, why, code end
  end
  if way.node and way.node.is_closed then way.node, way.asking = nil, nil end
  way.version = cluster.version
  if not way.node then way.node, why, code = owner(cluster, way) end
  return way.node, why, code
end

-- A node refused a command with MOVED or ASK: let the way go to the node that it named.
local function follow_redirect(cluster, way, from, why, code)
  local slot, host, port = match(why, "^%u+ (%d+) (.*):(%d+)$")
  local node, problem

  if host == "" then host = from.options.host end
  port = tointeger(tonumber(port))
  if not slot or tonumber(slot) ~= way.place or not is_host(host) or not is_port(port) then
    return nil, "redis: the server redirects to no address: " .. sub(why, 1, MESSAGE_MAX), code
  end
  way.redirects = way.redirects + 1
  if way.redirects > REDIRECTS then
    return nil, format("redis: the command was redirected %d times, at last to %s", REDIRECTS, name_of(host, port)), code
  end
  node, problem = node_at(cluster, host, port, cluster.options.nodes)
  if not node then return nil, problem, code end
  way.node, way.asking = node, code == "ASK" and ASKING or nil
  counters:inc(code == "ASK" and "ask" or "moved")
  if code == "MOVED" then
    own(cluster, way.place, node)
    if not way.has_refreshed then refresh(cluster, way.version, way.deadline, from) end
    way.has_refreshed = true
  end
  return "again"
end

function Router.judge(cluster, way, why, code, is_unsent)
  local from = way.node

  way.node, way.asking, way.is_read = nil, nil, nil
  if why == "cancelled" or cluster.is_closed then return nil, why, code end
  if from and (code == "MOVED" or code == "ASK") then return follow_redirect(cluster, way, from, why, code) end
  if PASSING[code] ~= nil then
    if PASSING[code] then cluster.is_stale = true end
    counters:inc "waits"
    return "wait"
  end
  if way.is_final or core.is_of_server(why, code) or why == "closed" and not is_unsent then return nil, why, code end
  cluster.is_stale = true
  counters:inc "failures"
  if is_unsent and why ~= "timeout" then return "wait" end
  return nil, why, code
end

function Router.is_moved(_, code)
  return code == "MOVED" or code == "ASK" or PASSING[code] ~= nil
end

function Router.place_of_key(_, key)
  return c.slot(key)
end

function Router.say_crossed(_, one, other)
  return commands.say_crossed("SLOT", one, other)
end

-- The slot of a command's keys, as commands.place_of returns it. Raises for a command about a node.
function Router.place_of(cluster, name, ...)
  if commands.OF_NODES[name] then
    error("redis: " .. name .. " is for one node: call it on each of db:masters()", 0)
  end
  return commands.place_of(cluster, name, ...)
end

-- ---- The client ----

local Cluster = {}

for name, method in pairs(methods) do Cluster[name] = method end

function Cluster.close(db)
  local cluster = rawget(db, POOL)

  cluster.is_closed = true
  for _, node in pairs(cluster.by_name) do core.close_pool(node) end
  cluster.fresh:set()
end

local CLUSTER <const> = {} -- a node's client keeps its cluster: collecting that would close the node

local node_metatable = {
  __index = function(_, name) return name ~= "close" and Db[name] or core.command_methods[name] end,
  __name = "sxe.redis",
}

-- A client of each master, for the commands of one node.
function Cluster.masters(db)
  local cluster = rawget(db, POOL)
  local list = {}

  if cluster.version == 0 or cluster.is_stale or cluster.is_closed then
    local ok, why, code = refresh(cluster, cluster.version, c.now() + cluster.options.timeout)

    if not ok then return nil, why, code end
  end
  for i, shard in ipairs(cluster.shards) do
    list[i] = setmetatable({ [POOL] = shard.master, [CLUSTER] = db }, node_metatable)
  end
  return list
end

-- ---- The function of the module ----

local command_methods = core.clients.commands

local metatable = {
  __index = function(_, name) return Cluster[name] or command_methods[name] end,
  __close = Cluster.close, __gc = Cluster.close, __name = "sxe.redis cluster",
}

function redis.cluster(options)
  local all = checks.check_options("redis.cluster", options, OPTIONS, DEFAULTS)

  checks.check_ranges("redis.cluster", all)
  checks.check_range("redis.cluster", all, "nodes", 1, 1000)
  checks.check_word("redis.cluster", all, "read_from", "master", "replica")
  local seeds = checks.read_addresses("redis.cluster", "seeds", "a seed", all.seeds, PORT)

  all.is_readonly = all.read_from == "replica"
  counters = counters or stats{ "maps", "moved", "ask", "waits", "failures", name = "redis.cluster" }
  local cluster = setmetatable({ options = all, seeds = seeds, by_name = {}, count = 0, slots = {}, shards = {},
    version = 0, failures = 0, source = 0, turn = 0, fresh = task.event() }, Router)
  return setmetatable({ [POOL] = cluster }, metatable)
end
