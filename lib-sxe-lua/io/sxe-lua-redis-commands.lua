-- SPDX-License-Identifier: MIT
--
-- What differs between the commands of Redis: which change their connection, which wait in the server, where their keys
-- are, and which only read. sxe-lua-redis.lua calls this file with what is written in C.
local c = ...
local find, format, gmatch, gsub, match = string.find, string.format, string.gmatch, string.gsub, string.match
local sub, upper = string.sub, string.upper
local error, select, setmetatable, tointeger, tonumber = error, select, setmetatable, math.tointeger, tonumber
local max, min, tostring, type = math.max, math.min, tostring, type

local NEVER <const> = 1e9   -- seconds
local KEY_SHOWN <const> = 60 -- the most bytes of a key in a message

local function set_of(names)
  local set = {}

  for name in gmatch(names, "%S+") do set[name] = true end
  return set
end

-- ---- Commands that change a connection, or wait ----

-- Commands after which a connection is not what it was, or whose replies are not one for each.
local NOT_SHARED <const> = set_of [[AUTH HELLO SELECT QUIT RESET MULTI EXEC DISCARD WATCH UNWATCH SUBSCRIBE PSUBSCRIBE
  SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR SYNC PSYNC REPLCONF ASKING READONLY READWRITE]]
local NOT_SHARED_SECOND <const> = {
  CLIENT = { REPLY = true, TRACKING = true, CACHING = true }, SCRIPT = { DEBUG = true },
}
-- Commands that may wait in the server, and the place of their seconds: an argument, counted from the first or from the
-- last, or the one after BLOCK.
local BLOCKING <const> = {
  BLPOP = -1, BRPOP = -1, BLMOVE = -1, BRPOPLPUSH = -1, BZPOPMIN = -1, BZPOPMAX = -1, WAIT = -1, WAITAOF = -1,
  BLMPOP = 1, BZMPOP = 1, XREAD = "BLOCK", XREADGROUP = "BLOCK",
}
local MILLISECONDS <const> = { WAIT = true, WAITAOF = true, XREAD = true, XREADGROUP = true }

local commands = { NEVER = NEVER }

-- The place of a word among the arguments before STREAMS; nil: it is not there.
local function place_of(word, ...)
  for i = 1, select("#", ...) do
    local argument = upper(tostring((select(i, ...))))

    if argument == word then return i end
    if argument == "STREAMS" then return nil end
  end
end

-- The seconds that a command may wait in the server; nil: it does not wait.
function commands.wait_of(name, ...)
  local where = BLOCKING[name]
  local wait

  if not where then return nil end
  if where == "BLOCK" then
    where = place_of("BLOCK", ...)
    if not where then return nil end
    where = where + 1
  end
  if select("#", ...) > 0 then wait = tonumber((select(where, ...))) end
  if wait == 0 then return NEVER end -- 0 stands for a wait without end
  return max(wait or 0, 0) / (MILLISECONDS[name] and 1000 or 1) -- the server refuses a negative wait
end

-- The bytes of a command for a link that is shared, or will be. Raises for a command that cannot share a link.
function commands.encode(name, ...)
  local bytes = c.encode(name, ...)
  local seconds = NOT_SHARED_SECOND[upper(name)]

  if NOT_SHARED[upper(name)] or seconds and seconds[upper(tostring((...)))] then
    error("redis: " .. upper(name) .. " would change a connection that others share", 0)
  end
  return bytes
end

-- Whether commands of this name may be refused, depending on their arguments or not.
function commands.is_special(name)
  return NOT_SHARED[name] or NOT_SHARED_SECOND[name] ~= nil or BLOCKING[name] ~= nil
end

-- Add to a table of methods a method for each name in small letters: object:hget(...) is send(object, "HGET", ...), or
-- what make("HGET") returns, if there is a make.
function commands.methods_of(send, own, make)
  return setmetatable(own or {}, { __index = function(methods, name)
    local method

    if type(name) ~= "string" or not match(name, "^%l[%l%d_]*$") then return nil end
    name = upper(name)
    method = make and make(name) or function(object, ...) return send(object, name, ...) end
    methods[name:lower()] = method
    return method
  end })
end

-- ---- Keys ----

-- The places of a command's keys: {first, last, step}, where a last of 0 is the last argument, and one of -1 that
-- before it; or a function that returns the keys. A command without a rule has one key, its first argument.
local RULES <const> = {}

local function add_rule(names, rule)
  for name in gmatch(names, "%S+") do RULES[name] = rule end
end

-- The keys after their number, which is at the place `at`; and the first argument if with_first.
local function counted(at, with_first)
  return function(...)
    local number = tointeger(tonumber((select(at, ...)))) or 0
    local most = select("#", ...) - at
    local list = { with_first and (...) or nil }

    for i = 1, max(0, min(number, most)) do list[#list + 1] = (select(at + i, ...)) end
    return list
  end
end

-- The keys after STREAMS: the first half of the arguments there.
local function streamed(...)
  local at = place_of("STREAMS", ...)
  local list = {}

  if not at then return list end
  for i = at + 1, at + (select("#", ...) - at) // 2 do list[#list + 1] = (select(i, ...)) end
  return list
end

-- The first argument, and the arguments after STORE and STOREDIST.
local function stored(...)
  local list = { (...) }

  for i = 2, select("#", ...) - 1 do
    if find(upper(tostring((select(i, ...)))), "^STORE") then list[#list + 1] = (select(i + 1, ...)) end
  end
  return list
end

add_rule([[ACL CLIENT COMMAND ECHO FUNCTION INFO LOLWUT PING PUBLISH PUBSUB SCRIPT TIME]], { 1, -NEVER, 1 })
add_rule([[DEL UNLINK EXISTS TOUCH MGET SINTER SUNION SDIFF SINTERSTORE SUNIONSTORE SDIFFSTORE PFCOUNT PFMERGE WATCH]],
  { 1, 0, 1 })
add_rule("MSET MSETNX", { 1, 0, 2 })
add_rule("RENAME RENAMENX SMOVE RPOPLPUSH LMOVE BRPOPLPUSH BLMOVE COPY LCS ZRANGESTORE GEOSEARCHSTORE", { 1, 2, 1 })
add_rule("BLPOP BRPOP BZPOPMIN BZPOPMAX", { 1, -1, 1 })
add_rule("BITOP", { 2, 0, 1 })
add_rule("OBJECT XGROUP XINFO MEMORY", { 2, 2, 1 })
add_rule("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO BLMPOP BZMPOP", counted(2))
add_rule("SINTERCARD ZUNION ZINTER ZDIFF ZINTERCARD LMPOP ZMPOP", counted(1))
add_rule("ZUNIONSTORE ZINTERSTORE ZDIFFSTORE", counted(2, true))
add_rule("XREAD XREADGROUP", streamed)
add_rule("SORT GEORADIUS GEORADIUSBYMEMBER", stored)

-- Commands about a node of a cluster, not about its keys: any node would answer them, and only for itself.
local OF_NODES <const> = set_of [[BGREWRITEAOF BGSAVE CLUSTER CONFIG DBSIZE DEBUG FAILOVER FLUSHALL FLUSHDB KEYS LASTSAVE
  LATENCY MIGRATE MODULE RANDOMKEY REPLICAOF ROLE SAVE SCAN SHUTDOWN SLAVEOF SLOWLOG SWAPDB WAIT WAITAOF]]

-- Commands that a replica may answer.
local READS <const> = set_of [[BITCOUNT BITFIELD_RO BITPOS DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST
  GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET
  HRANDFIELD HSCAN HSTRLEN HVALS LCS LINDEX LLEN LPOS LRANGE MGET PEXPIRETIME PFCOUNT PTTL SCARD SDIFF SINTER SINTERCARD
  SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TTL TYPE XLEN XPENDING XRANGE XREVRANGE
  ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
  ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION]]

commands.OF_NODES, commands.READS = OF_NODES, READS

-- A key as part of a message.
local function shown(key)
  return "'" .. gsub(sub(tostring(key), 1, KEY_SHOWN), "[%c\127-\255]", "?") .. "'"
end

-- Why keys of two places are refused, and the code: CROSSSLOT, or CROSSGROUP.
function commands.say_crossed(kind, one, other)
  return format("CROSS%s the keys %s and %s are in different %ss; name them with the same {hash tag}", kind, shown(one),
    shown(other), kind:lower()), "CROSS" .. kind
end

local function keys_by(rule, ...)
  local last = rule[2]
  local list = {}

  if last <= 0 then last = select("#", ...) + last end
  for i = rule[1], min(last, select("#", ...)), rule[3] do list[#list + 1] = (select(i, ...)) end
  return list
end

-- The place of a command's keys in a router (sxe-lua-redis-route.lua), and the first of them. Returns nil if the
-- command has no key; or false, why, code if the keys are in different places.
function commands.place_of(router, name, ...)
  local rule = RULES[name]
  local keys, place

  if not rule then
    if select("#", ...) == 0 then return nil end
    return router:place_of_key((...)), (...)
  end
  keys = type(rule) == "table" and keys_by(rule, ...) or rule(...)
  if not keys[1] then return nil end
  place = router:place_of_key(keys[1])
  for i = 2, #keys do
    if router:place_of_key(keys[i]) ~= place then return false, router:say_crossed(keys[1], keys[i]) end
  end
  return place, keys[1]
end

return commands
