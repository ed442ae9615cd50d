-- SPDX-License-Identifier: MIT
--
-- Groups of servers without a cluster, for redis.sharded of require "sxe.redis": which group has a key, which servers of
-- it are up, and which one writes. This file adds new_shards to the functions that sxe-lua-redis.lua gives it.
--
--   shards.points or .turns -> group: masters, replicas -> server: pool of links, and a probe for its checks
--                              group.writer -----------------^
--
-- A server is up until some checks or connections in a row failed, and down until some checks in a row succeeded. Only
-- functions that are atomic change a server or a group, because a command of any task may find that a server is gone.
--
-- A task for each server checks it at intervals (run_checks). It ends when no command came for some time, so that a
-- script can end; the next command starts it. Until its first check is over, what is known of the server may be old
-- (is_stale).
local core = ...
local stats, task = require "sxe.stats", require "sxe.task"
local c, checks, end_link = core.c, core.checks, core.end_link
local find, format = string.find, string.format
local error, ipairs, max, min, next, pairs = error, ipairs, math.max, math.min, next, pairs
local setmetatable, type = setmetatable, type

local POINTS <const> = 512     -- of a group of weight 1, on the ring
local RANK_BITS <const> = 16  -- of the packed points
local RANK_MASK <const> = (1 << RANK_BITS) - 1
local WEIGHT_MAX <const>, WEIGHTS_MAX <const> = 100, 256 -- of a group, and of all groups together
local NAME_MAX <const> = 64
local IDLE <const> = 1 -- seconds without a command after which checks end
local PORT <const> = 6379
local CHECK <const> = c.encode "PING" .. c.encode "ROLE"

local GROUP_FIELDS <const> = { name = "string", masters = "table", replicas = "table", weight = "number" }

local counters -- of all clients of this state, made with the first one

-- ---- Places ----

-- The points of all groups in order: each is a place on the ring, and the rank of its group.
local function new_ring(sorted)
  local points = {}

  for rank, group in ipairs(sorted) do
    for i = 0, POINTS * group.weight - 1 do
      points[#points + 1] = c.place(group.name .. "/" .. i) << RANK_BITS | rank
    end
  end
  table.sort(points)
  return points
end

-- Each group as often as its weight says.
local function new_turns(sorted)
  local turns = {}

  for _, group in ipairs(sorted) do
    for _ = 1, group.weight do turns[#turns + 1] = group end
  end
  return turns
end

-- The group of the first point that is not before the key's place.
local function group_on_ring(shards, key)
  local points = shards.points
  local wanted = c.place(key) << RANK_BITS
  local low, high = 1, #points + 1

  while low < high do
    local middle = (low + high) // 2

    if points[middle] < wanted then low = middle + 1 else high = middle end
  end
  return shards.sorted[points[low <= #points and low or 1] & RANK_MASK]
end

local Shards = {}
Shards.__index = Shards

function Shards.group_of(shards, key)
  if shards.points then return group_on_ring(shards, key) end
  return shards.turns[c.crc16(key) % #shards.turns + 1]
end

-- ---- The server that writes ----

local function may_write(server)
  return server.is_up and (server.seen == "master" or server.seen ~= "replica" and server.role == "master")
end

-- The first server of a group that may write: a master, or else a replica that somebody made a master.
local function first_writer(group)
  for _, server in ipairs(group.servers) do
    if may_write(server) then return server end
  end
end

-- Whether the group may go back from a good writer to one before it. A replica that was made a master has writes that
-- the old master lacks, so only a call hands back from it.
local function may_hand_back(group, from, to)
  local seconds = group.shards.options.hand_back

  return seconds ~= "manual" and from.role == "master" and c.now() - to.since >= seconds
end

-- After a hand-back: a subscriber would hear nothing any more at the server that wrote, nor would a command that waits
-- there get an element.
local function end_waits(group, server)
  local owned = server.pool.owned

  for i = #owned, 1, -1 do
    if owned[i].is_subscribed or owned[i].is_blocking then
      end_link(owned[i], format("redis: the group '%s' went back to %s", group.name, group.writer.address))
    end
  end
end

-- Choose the server that writes: the one that did, as long as it may; else the first one that may.
local function elect(group, is_forced)
  local old, best = group.writer, first_writer(group)
  local is_good = old and may_write(old)

  if best == old or is_good and not is_forced and not may_hand_back(group, old, best) then return end
  group.writer = best
  if best and best ~= group.last_writer then
    counters:inc(is_good and "hand_backs" or "failovers")
    group.last_writer = best
    if is_good then end_waits(group, old) end
  end
end

-- ---- Health ----

-- Have the servers of a group checked now, because what is known of them is old.
local function check_soon(group)
  for _, server in ipairs(group.servers) do
    server.is_stale = true
    server.due:set()
  end
end

local function take_down(server)
  local why = format("redis: %s is down: %s", server.address, server.why)

  server.is_up, server.since, server.successes = false, c.now(), 0
  counters:inc "downs"
  counters:inc "down"
  for _, list in ipairs{ server.pool.links, server.pool.owned } do
    while list[1] do end_link(list[1], why) end
  end
  elect(server.group)
  if not server.group.writer then check_soon(server.group) end
end

-- Count a failure of a server. Failures that come nearly at once, as when several connections end, count as one.
local function add_failure(server, why)
  local options, now = server.group.shards.options, c.now()

  if now - server.failed_at < options.backoff / 2 then return end
  server.failures, server.successes, server.failed_at, server.why = server.failures + 1, 0, now, why
  if server.is_up and server.failures >= options.failures then take_down(server) end
end

-- Count a connection that ended or could not be opened since this was last called, and why a command failed.
local note_failure = c.atomic(function(server, why)
  local seen = server.pool.failures + server.pool.losses

  if seen == server.seen_failures then return end
  server.seen_failures = seen
  add_failure(server, why)
end)

local fail_check = c.atomic(function(server, why)
  counters:inc "check_failures"
  add_failure(server, why)
  elect(server.group)
end)

-- Note whether a server is a master or a replica now; nil: it does not say.
local function see_role(server, role)
  if server.seen and role ~= server.seen then server.since = c.now() end
  server.seen = role
end

local pass_check = c.atomic(function(server, role)
  server.failures, server.successes = 0, server.successes + 1
  if not server.is_up and server.successes >= server.group.shards.options.successes then
    server.is_up, server.since, server.why = true, c.now(), nil
    counters:inc "ups"
    counters:dec "down"
  end
  see_role(server, role)
  elect(server.group)
end)

-- A server refused a write because it is a replica.
local note_replica = c.atomic(function(server)
  see_role(server, "replica")
  elect(server.group)
  check_soon(server.group)
end)

local function role_of(reply)
  local word = type(reply) == "table" and reply[1]

  return word == "master" and "master" or word == "slave" and "replica" or nil
end

-- Returns false if the task was cancelled, or the client closed.
local function check(server)
  local list, why = core.exchange_shared(server.probe, CHECK, c.now() + server.probe.options.timeout, 2)

  if why == "cancelled" or server.group.shards.is_closed then return false end
  counters:inc "checks"
  if not list then
    fail_check(server, why)
  elseif type(list[1]) == "table" and list[1].error then
    fail_check(server, list[1].error)
  else
    pass_check(server, role_of(list[2]))
  end
  return true
end

-- Whether a command or a reader of a subscription waits for a server.
local function is_awaited(pool)
  for _, link in ipairs(pool.links) do
    if link.live > 0 then return true end
  end
  for _, link in ipairs(pool.owned) do
    if link.live > 0 or link.is_read then return true end
  end
  return false
end

local checkers = { __close = c.insist(function(checker)
  checker.server.is_stale, checker.server.is_checked = true, false
end) }

-- Wait until the next check of a server is due. Returns false if none is: no command came for a second, or for the
-- interval if that is shorter, and none waits.
local function await_check(server)
  local shards = server.group.shards
  local due_at = c.now() + shards.options.check_interval
  local uses

  repeat
    uses = shards.uses
    if server.due:wait(min(core.left_of(due_at), IDLE)) then return true end
    if uses == shards.uses and not is_awaited(server.pool) then return false end
  until c.now() >= due_at
  return true
end

local function run_checks(server)
  local checker <close> = setmetatable({ server = server }, checkers)

  repeat
    server.due:clear()
    if not check(server) then return end
    server.is_stale, server.checked_at = server.due:is_set(), c.now()
  until not await_check(server)
end

-- Without a free task the next command tries again.
local start_checks = c.atomic(function(server)
  server.is_checked = task.start(run_checks, server) ~= nil
end)

-- Note that a command was sent: the servers are checked.
function Shards.use(shards)
  shards.uses = shards.uses + 1
  for _, server in ipairs(shards.servers) do
    if not server.is_checked then start_checks(server) end
  end
end

-- ---- Servers of a way ----

-- The next replica in turn that is up; nil: there is none.
local function next_replica(group)
  local servers = group.servers

  for _ = 1, #servers do
    group.turn = group.turn % #servers + 1
    local server = servers[group.turn]

    if server.is_up and server ~= group.writer and (server.role == "replica" or server.seen == "replica") then
      return server
    end
  end
end

-- The server to which a command of a group goes; nil: there is none. may_be_old: the command only reads, so a replica
-- may answer if there is no writer.
function Shards.server_of(shards, group, is_read, may_be_old)
  local server

  shards:use()
  if is_read and shards.options.read_from == "replica" then server = next_replica(group) end
  return server or group.writer or may_be_old and next_replica(group) or nil
end

-- Whether a way that no server of its group takes may find one yet: until each server was checked after the first
-- refusal. If the checks are up to date, the refusal holds at once.
function Shards.may_wait(_, way)
  local is_stale = false

  for _, server in ipairs(way.place.servers) do
    if way.refused_at and server.checked_at < way.refused_at or not way.refused_at and server.is_stale then
      is_stale = true
    end
  end
  way.refused_at = way.refused_at or c.now()
  return is_stale
end

-- Why a group takes no command, or no write.
function Shards.say_down(_, group)
  local first = group.servers[1]

  return format("GROUPDOWN no master of the group '%s' is up: %s: %s", group.name, first.address,
    first.why or "it is a replica now")
end

-- ---- States ----

local hand_back = c.atomic(function(group) elect(group, true) end)

function Shards.hand_back(_, group)
  hand_back(group)
  return group.writer and group.writer.address
end

local function state_of_group(group)
  if group.writer == group.servers[1] then return "ok" end
  if group.writer then return "failed over" end
  return next_replica(group) and "read-only" or "down"
end

function Shards.state(shards)
  local all, now = {}, c.now()

  for i, group in ipairs(shards.groups) do
    local servers = {}

    for n, server in ipairs(group.servers) do
      servers[n] = { address = server.address, role = server.seen or server.role,
        state = server.is_up and "up" or "down", seconds = max(now - server.since, 0), failures = server.failures, why = server.why,
        connections = #server.pool.links + #server.pool.owned }
    end
    all[i] = { name = group.name, weight = group.weight, state = state_of_group(group),
      writer = group.writer and group.writer.address, servers = servers }
  end
  return all
end

function Shards.close(shards)
  if shards.is_closed then return end
  shards.is_closed = true
  for _, server in ipairs(shards.servers) do
    core.close_pool(server.pool)
    core.close_pool(server.probe)
    if not server.is_up then counters:dec "down" end
    server.due:set()
  end
end

-- ---- Options ----

local function new_pool(options, address, changes)
  local all = {}

  for name, value in pairs(options) do all[name] = value end
  for name, value in pairs(changes) do all[name] = value end
  all.host, all.port = address[1], address[2]
  return core.new_pool(all)
end

local function new_server(group, role, address)
  local options = group.shards.options
  local host = find(address[1], ":", 1, true) and "[" .. address[1] .. "]" or address[1]
  local server = { group = group, role = role, address = host .. ":" .. address[2], is_up = true, is_stale = true,
    is_checked = false, since = c.now(), checked_at = 0, failures = 0, successes = 0, failed_at = 0, seen_failures = 0,
    due = task.event(),
    pool = new_pool(options, address, { connect_timeout = options.check_timeout }),
    probe = new_pool(options, address, { size = 1, timeout = options.check_timeout }) }

  server.pool.server = server
  return server
end

local function check_group(who, group)
  checks.check_fields(who, group, GROUP_FIELDS)
  if not group.name or #group.name > NAME_MAX or not find(group.name, "^[%w._-]+$") then
    error(format("%s: a group has a name of 1 to %d letters, digits, '.', '_' and '-'", who, NAME_MAX), 0)
  end
  group = { name = group.name, masters = group.masters, replicas = group.replicas or {}, weight = group.weight or 1 }
  checks.check_range(who, group, "weight", 1, WEIGHT_MAX)
  return group
end

local function add_servers(who, group, name, role, addresses)
  local shards = group.shards

  for _, address in ipairs(checks.read_addresses(who, name, "a server", addresses, PORT)) do
    local server = new_server(group, role, address)

    if shards.by_address[server.address] then error(format("%s: %s is there twice", who, server.address), 0) end
    shards.by_address[server.address] = server
    shards.servers[#shards.servers + 1], group.servers[#group.servers + 1] = server, server
  end
end

local function add_group(who, shards, given)
  local group = check_group(who, given)
  local who_of_group = format("%s: the group '%s'", who, group.name)

  if shards.by_name[group.name] then error(format("%s: two groups have the name '%s'", who, group.name), 0) end
  group.shards, group.servers, group.turn = shards, {}, 0
  add_servers(who_of_group, group, "masters", "master", group.masters)
  if next(group.replicas) ~= nil then add_servers(who_of_group, group, "replicas", "replica", group.replicas) end
  group.writer, group.last_writer = group.servers[1], group.servers[1]
  shards.by_name[group.name], shards.groups[#shards.groups + 1] = group, group
  shards.weight = shards.weight + group.weight
end

-- Make the groups that checked options name.
function core.new_shards(who, options)
  local shards = setmetatable({ options = options, groups = {}, servers = {}, by_name = {}, by_address = {}, uses = 0,
    weight = 0, is_closed = false }, Shards)

  counters = counters or stats{ "checks", "check_failures", "downs", "ups", "failovers", "hand_backs", "failures",
    "waits", "repeats", "refused", "down", name = "redis.sharded" }
  checks.check_list(who, "groups", options.groups, "groups")
  for _, group in ipairs(options.groups) do add_group(who, shards, group) end
  if shards.weight > WEIGHTS_MAX then
    error(format("%s: all weights together must be at most %d, not %d", who, WEIGHTS_MAX, shards.weight), 0)
  end
  shards.sorted = table.move(shards.groups, 1, #shards.groups, 1, {})
  table.sort(shards.sorted, function(one, other) return one.name < other.name end)
  if options.hash == "ring" then
    shards.points = new_ring(shards.sorted)
  else
    shards.turns = new_turns(shards.sorted)
  end
  shards.counters = counters
  return shards
end

core.note_failure, core.note_replica = note_failure, note_replica
