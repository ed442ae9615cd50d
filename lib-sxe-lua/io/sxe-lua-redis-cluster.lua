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
-- A way is what a command knows of its own way through the cluster: its slot, the node that it goes to, and how often it
-- was sent elsewhere. A command that the server refused with MOVED, ASK and the like, or that was certainly not sent, goes
-- again; any other is sent once.
--
--   route: try -> choose: refresh the map, owner -> exchange ... -> judge: again at another node, or after a pause, or failed
--
-- One task reads the map for all that want it (refresh). It has a version, so that a thousand commands that were sent by
-- the same map, and moved, read one new map.
local redis, Db, core = ...
local json, stats, task = require "sxe.json", require "sxe.stats", require "sxe.task"
local c, POOL, commands, is_host, is_port = core.c, core.POOL, core.commands, core.is_host, core.is_port
local choose_link, choose_own, exchange, left_of, take = core.choose_link, core.choose_own, core.exchange, core.left_of,
  core.take
local encode, slot_of = commands.encode, commands.slot_of
local concat, unpack = table.concat, table.unpack
local find, format, match, sub, upper = string.find, string.format, string.match, string.sub, string.upper
local error, ipairs, max, min, pairs, pcall = error, ipairs, math.max, math.min, pairs, pcall
local math_type, rawget, setmetatable, tointeger = math.type, rawget, setmetatable, math.tointeger
local tonumber, type = tonumber, type

local SLOTS <const> = 16384
local PORT <const> = 6379                         -- the port of a seed that names none
local MESSAGE_MAX <const> = 255                   -- the most bytes of a server's message in an error text
local REDIRECTS <const> = 16                      -- the most redirects of a command
local PAUSES <const> = 100                        -- the most pauses of a command
local PAUSE <const>, PAUSE_MAX <const> = 0.01, 0.5 -- seconds: the first one, and the longest
local A_PART <const> = 4                          -- a node has one fourth of the timeout to tell the map
local READ_MAP <const>, ASKING <const> = c.encode("CLUSTER", "SLOTS"), c.encode "ASKING"
local BAD_MAP <const> = "redis: the server sent no map of slots: "

-- Refusals that do not last; the value says whether the map may be old.
local PASSING <const> = { TRYAGAIN = false, CLUSTERDOWN = true, LOADING = true, MASTERDOWN = true }

local OPTIONS <const> = { seeds = "table", read_from = "string", nodes = "number" }
local DEFAULTS <const> = { nodes = 100, read_from = "master", port = PORT }
local NOT_HERE <const> = { host = true, port = true, unix = true, db = true, sentinels = true, master = true,
  sentinel_user = true, sentinel_password = true }

for name, kind in pairs(core.OPTIONS) do
  if not NOT_HERE[name] then OPTIONS[name] = kind end
end
for name, value in pairs(core.DEFAULTS) do DEFAULTS[name] = value end

local counters -- of all clusters of this state, made with the first one

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

      if not link.is_opening and (list == node.links or link.is_spare) then core.retire(link) end
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

-- ---- Ways ----

local function new_way(cluster, slot)
  return { slot = slot or nil, deadline = c.now() + cluster.options.timeout, redirects = 0, pauses = 0 }
end

-- The node that has the slot of a way, or any node if the way has no slot; or nil, why, code.
local function owner(cluster, way)
  local shard

  if way.slot then
    shard = cluster.slots[way.slot]
    if not shard then return nil, format("CLUSTERDOWN no node has slot %d", way.slot), "CLUSTERDOWN" end
  else
    cluster.turn = cluster.turn % max(#cluster.shards, 1) + 1
    shard = cluster.shards[cluster.turn]
    if not shard then return nil, "CLUSTERDOWN no node has a slot", "CLUSTERDOWN" end
  end
  if not way.is_read or not shard.replicas[1] then return shard.master end
  shard.turn = shard.turn % #shard.replicas + 1
  return shard.replicas[shard.turn]
end

-- The node to which a way goes next; or nil, why, code.
local function choose(cluster, way)
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
  if not slot or tonumber(slot) ~= way.slot or not is_host(host) or not is_port(port) then
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
    own(cluster, way.slot, node)
    if not way.has_refreshed then refresh(cluster, way.version, way.deadline, from) end
    way.has_refreshed = true
  end
  return "again"
end

local function is_of_server(why, code)
  return code and find(why, code, 1, true) == 1
end

-- Decide about a way that failed: "again" at once; "wait", again after a pause; or nil, why, code.
local function judge(cluster, way, why, code, is_unsent)
  local from = way.node

  way.node, way.asking, way.is_read = nil, nil, nil
  if why == "cancelled" or cluster.is_closed then return nil, why, code end
  if from and (code == "MOVED" or code == "ASK") then return follow_redirect(cluster, way, from, why, code) end
  if PASSING[code] ~= nil then
    if PASSING[code] then cluster.is_stale = true end
    counters:inc "waits"
    return "wait"
  end
  if way.is_final or is_of_server(why, code) or why == "closed" and not is_unsent then return nil, why, code end
  cluster.is_stale = true
  counters:inc "failures"
  if is_unsent and why ~= "timeout" then return "wait" end
  return nil, why, code
end

-- Pause before the next try. Returns true; or nil, and perhaps "cancelled", if no time is left.
local function pause(way)
  local seconds = min(PAUSE * 2 ^ way.pauses, PAUSE_MAX)

  way.pauses = way.pauses + 1
  if way.pauses > PAUSES or c.now() + seconds >= way.deadline then return nil end
  return task.sleep(seconds)
end

-- Call try(cluster, way) until it succeeds. It returns a value; nothing; or nil, why, code, is_unsent: it was certainly
-- not sent.
local function route(cluster, way, try)
  while true do
    local value, why, code, is_unsent = try(cluster, way)
    local verdict, reason, its_code, cut

    if value ~= nil or not why then return value end
    verdict, reason, its_code = judge(cluster, way, why, code, is_unsent)
    if verdict == "wait" then
      verdict, cut = pause(way)
      if cut then return nil, cut end
      reason, its_code = why, code
    end
    if not verdict then return nil, reason, its_code end
  end
end

-- ---- Commands ----

local Cluster = {}

local function send_single(cluster, way)
  local node, why, code = choose(cluster, way)
  local bytes, count = way.bytes, nil

  if not node then return nil, why, code, true end
  if way.asking then bytes, count = way.asking .. bytes, 2 end
  if way.wait then return core.exchange_own(node, bytes, way.wait, way.deadline, count, true) end
  return core.exchange_shared(node, bytes, way.deadline, count, true)
end

-- The way of a command; or nil, why, code.
local function way_of(cluster, name, ...)
  local bytes = encode(name, ...)
  local slot, key, code = slot_of(upper(name), ...)
  local way

  if slot == false then return nil, key, code end
  way = new_way(cluster, slot)
  way.bytes = bytes
  way.is_read = cluster.options.is_readonly and commands.READS[upper(name)]
  return way
end

-- No tail call: the db is not collected, and so closed, as long as one of its calls waits.
local function call(db, name, ...)
  local cluster = rawget(db, POOL)
  local way, why, code = way_of(cluster, name, ...)
  local value

  if not way then return nil, why, code end
  way.wait = commands.wait_of(upper(name), ...)
  value, why, code = route(cluster, way, send_single)
  if value == nil then return nil, why, code end
  return value
end

function Cluster.call(db, name, ...)
  if type(name) ~= "string" then error("redis: a command is a string, not a " .. type(name), 0) end
  return call(db, name, ...)
end

function Cluster.close(db)
  local cluster = rawget(db, POOL)

  cluster.is_closed = true
  for _, node in pairs(cluster.by_name) do core.close_pool(node) end
  cluster.fresh:set()
end

Cluster.prepare = Db.prepare

-- ---- Pipelines ----

-- The commands of a round for one node. At its end their calls and links end, too.
local rounds = { __close = c.insist(function(round)
  for _, group in ipairs(round) do
    if group.call then core.calls.__close(group.call) end
    core.holders.__close(group.holder)
  end
end) }

-- Put a way into the group of its node; the ways after ASKING have a group of their own.
local function add_to_round(round, way)
  local of_node = way.asking and round.asking or round.plain
  local group = of_node[way.node]

  if not group then
    group = { node = way.node, ways = {}, bytes = {}, step = way.asking and 2 or 1, holder = core.new_holder() }
    round[#round + 1], of_node[way.node] = group, group
  end
  group.ways[#group.ways + 1] = way
  group.bytes[#group.bytes + 1] = (way.asking or "") .. way.bytes
end

local function send_group(group, deadline)
  local link

  link, group.why, group.code = take(group.node, choose_link, deadline, group.holder)
  group.is_unsent = not link
  if not link then return end
  group.call = core.new_call(link, deadline, #group.ways * group.step)
  core.begin(group.call, concat(group.bytes))
end

-- Give the replies of a group, or the reason that there are none, to its ways.
local function finish_group(group)
  local values, errors

  if group.call then
    values, errors, group.code, group.is_unsent = core.finish(group.call)
    group.why = errors
  end
  for i, way in ipairs(group.ways) do
    local failure = values and errors and errors[i * group.step]

    if failure then
      way.why, way.code, way.is_answered = failure.error, failure.code, true
    elseif values then
      way.value = values[i * group.step]
    else
      way.why, way.code, way.is_unsent = group.why, group.code, group.is_unsent
    end
  end
end

-- Send the commands that are left to their nodes, all before the first reply is read. The task reads one connection after
-- another; while it does not read one, others there read its replies for it.
local function run_round(cluster, left, deadline)
  local round <close> = setmetatable({ plain = {}, asking = {} }, rounds)

  for _, way in ipairs(left) do
    local node, why, code = choose(cluster, way)

    way.why, way.code, way.is_unsent, way.is_answered = why, code, not node, nil
    if node then add_to_round(round, way) end
  end
  for _, group in ipairs(round) do send_group(group, deadline) end
  for _, group in ipairs(round) do finish_group(group) end
end

-- Returns the commands to send again after a round, whether to pause before, and whether the task was cancelled.
local function judge_round(cluster, left, replies)
  local again, is_to_wait = {}, false

  for _, way in ipairs(left) do
    local verdict, why, code

    if way.value ~= nil then
      replies[way.index], replies.is_answered = way.value, true
    else
      verdict, why, code = judge(cluster, way, way.why, way.code, way.is_unsent)
      if verdict then again[#again + 1] = way end
      if verdict == "wait" then is_to_wait = true end
      if why == "cancelled" then return nil end
      if not verdict then
        replies[way.index] = { error = why, code = code }
        replies.is_answered = replies.is_answered or way.is_answered
      end
    end
  end
  return again, is_to_wait
end

local function run_pipeline(cluster, list)
  local pace = new_way(cluster)
  local replies, left = {}, {}

  for i, way in ipairs(list) do
    way.index, way.deadline = i, pace.deadline
    if way.bytes then left[#left + 1] = way else replies[i] = { error = way.why, code = way.code } end
  end
  while left[1] do
    local is_to_wait, ok, cut

    run_round(cluster, left, pace.deadline)
    left, is_to_wait = judge_round(cluster, left, replies)
    if not left then return nil, "cancelled" end
    if is_to_wait then
      ok, cut = pause(pace)
      if cut then return nil, cut end
      if not ok then
        for _, way in ipairs(left) do replies[way.index] = { error = way.why, code = way.code } end
        left = {}
      end
    end
  end
  if not replies.is_answered then return nil, replies[1].error, replies[1].code end
  replies.is_answered = nil
  return replies
end

local function add(pipeline, name, ...)
  local cluster = rawget(pipeline.db, POOL)
  local way, why, code

  core.encode_prompt(name, ...)
  way, why, code = way_of(cluster, name, ...)
  pipeline.list[#pipeline.list + 1] = way or { why = why, code = code }
  return pipeline
end

local function exec(pipeline)
  local list = pipeline.list
  local replies, why, code

  pipeline.list = {}
  if #list == 0 then return {} end
  replies, why, code = run_pipeline(rawget(pipeline.db, POOL), list)
  if not replies then return nil, why, code end
  return replies
end

local pipelines = core.pipelines_of(add, exec)

function Cluster.pipeline(db)
  return setmetatable({ db = db, list = {} }, pipelines)
end

-- ---- Transactions ----

-- Open a link for this transaction only, to the node of its key. Returns true, or nil, why, code.
local function open_in(transaction)
  local way = transaction.way
  local node, why, code = choose(transaction.cluster, way)
  local link

  if node then link, why, code = take(node, choose_own, way.deadline, transaction.holder) end
  if not link then
    transaction.why, transaction.code, transaction.is_unsent = why, code or false, true
    return nil, why, code
  end
  transaction.link, transaction.holder.is_dirty = link, true
  return true
end

-- Send a command at once. If the slot has moved, route() calls the transaction's function again.
local function exchange_in(transaction, bytes)
  local asking = transaction.way.asking
  local ok, why, code, value

  if not transaction.link then
    ok, why, code = open_in(transaction)
    if not ok then return nil, why, code end
    asking = transaction.way.asking
  end
  value, why, code = exchange(transaction.link, (asking or "") .. bytes, transaction.way.deadline, asking and 2, true)
  if value ~= nil then return value end
  if code == "MOVED" or code == "ASK" or PASSING[code] ~= nil then transaction.why, transaction.code = why, code end
  return nil, why, code
end

-- Bind the transaction to the node of its first key.
local function bind(transaction, slot, key)
  local way = transaction.way

  if way.slot ~= slot then way.slot, way.node, way.asking = slot, nil, nil end
  transaction.key = key
end

-- The first key of a command, if it is in the transaction's slot; nil: it has none; or false, why, code.
local function key_in(transaction, name, ...)
  local slot, key, code = slot_of(upper(name), ...)

  if slot and transaction.key and slot ~= transaction.way.slot then
    slot, key, code = false, commands.say_crossed(transaction.key, key), "CROSSSLOT"
  end
  if slot == false then return false, key, code end
  if slot and not transaction.key then bind(transaction, slot, key) end
  return key
end

local function call_in(transaction, name, ...)
  local bytes = core.encode_prompt(name, ...)
  local key, why, code

  if transaction.is_over then error("redis: the transaction of this handle is over", 0) end
  key, why, code = key_in(transaction, name, ...)
  if key == false then
    if transaction.list then transaction.refused, transaction.refusal = why, code or false end
    return nil, why, code
  end
  if transaction.list then
    transaction.list[#transaction.list + 1] = bytes
    return "QUEUED"
  end
  if not transaction.key then
    error("redis: the transaction has no key yet: watch one, or begin with a command that has one", 0)
  end
  return exchange_in(transaction, bytes)
end

local transactions = core.transactions_of(call_in)

-- Try the transaction once, as route() calls it. Returns nothing if a watched key changed. A field of the transaction that
-- is nil would be read as a command of that name (transactions_of): fields without a value are false.
local function attempt(cluster, way)
  local holder <close> = core.new_holder()
  local transaction <close> = setmetatable({ cluster = cluster, way = way, holder = holder, link = false, list = false,
    key = way.key, is_over = false, why = false, code = false, is_unsent = false, refused = false, refusal = false },
    transactions)
  local ok, said, why, code

  if way.key then
    ok, why, code = exchange_in(transaction, way.watching)
    if not ok then return nil, why, code, transaction.is_unsent end
  end
  ok, said = pcall(way.fn, transaction)
  transaction.is_over = true
  if transaction.why then return nil, transaction.why, transaction.code or nil, transaction.is_unsent end
  if not ok then error(said, 0) end
  if said == false then
    way.is_final = true
    return nil, "redis: the function gave the transaction up"
  end
  if transaction.refused then return nil, transaction.refused, transaction.refusal or nil end
  if transaction.link and transaction.link.is_over then return nil, transaction.link.why, transaction.link.code end
  if not transaction.list or not transaction.list[1] then return {} end
  if not transaction.link then
    ok, why, code = open_in(transaction)
    if not ok then return nil, why, code, true end
  end
  ok, why, code = core.commit(transaction.link, transaction.list, way.deadline, way.asking)
  holder.is_dirty = why ~= nil
  return ok, why, code
end

function Cluster.transaction(db, fn, options)
  local watch, retries = core.check_watch(options or {})
  local cluster = rawget(db, POOL)
  local slot, key, code = slot_of("WATCH", unpack(watch))

  if slot == false then return nil, key, code end
  for _ = 0, retries do
    local way, replies, why = new_way(cluster, slot), nil, nil

    way.fn, way.key = fn, key or false
    if key then way.watching = c.encode("WATCH", unpack(watch)) end
    replies, why, code = route(cluster, way, attempt)
    if replies or why then return replies, why, code end
  end
  return nil, format("redis: a watched key changed, %d times", retries + 1)
end

-- ---- Subscriptions ----

local function subscribe_at(cluster, way)
  local node, why, code = choose(cluster, way)

  if not node then return nil, why, code, true end
  return core.subscribe_in(way.db, node, way.name, way.names, way.deadline)
end

local function subscribe(db, name, names)
  local cluster = rawget(db, POOL)
  local way, sub_, why, code

  core.check_names(names)
  way = new_way(cluster, c.slot(names[1]))
  way.db, way.name, way.names = db, name, names
  sub_, why, code = route(cluster, way, subscribe_at)
  return sub_, why, code
end

function Cluster.subscribe(db, names)
  return subscribe(db, "SUBSCRIBE", names)
end

function Cluster.psubscribe(db, names)
  return subscribe(db, "PSUBSCRIBE", names)
end

-- ---- Each master ----

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

local command_methods = commands.methods_of(call)

local metatable = {
  __index = function(_, name) return Cluster[name] or command_methods[name] end,
  __close = Cluster.close, __gc = Cluster.close, __name = "sxe.redis cluster",
}

function redis.cluster(options)
  local all = core.check_options("redis.cluster", options, OPTIONS, DEFAULTS)

  core.check_ranges("redis.cluster", all)
  core.check_range("redis.cluster", all, "nodes", 1, 1000)
  if all.read_from ~= "master" and all.read_from ~= "replica" then
    error("redis.cluster: read_from is \"master\" or \"replica\", not '" .. all.read_from .. "'", 0)
  end
  local seeds = core.read_addresses("redis.cluster", "seeds", "a seed", all.seeds, PORT)

  all.is_readonly = all.read_from == "replica"
  counters = counters or stats{ "maps", "moved", "ask", "waits", "failures", name = "redis.cluster" }
  return setmetatable({ [POOL] = { options = all, seeds = seeds, by_name = {}, count = 0, slots = {}, shards = {},
    version = 0, failures = 0, source = 0, turn = 0, fresh = task.event() } }, metatable)
end
