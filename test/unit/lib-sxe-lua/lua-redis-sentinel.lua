-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: redis.new with Sentinels and servers in the same process, played by a script. At the end `done` is
-- true, or an error.
local stats = require "sxe.stats"
local groups = {} -- the groups of counters that sxe.redis makes, by name
package.loaded["sxe.stats"] = function(options)
  groups[options.name] = stats(options)
  return groups[options.name]
end
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"

done = false

local function equal(got, wanted)
  if got ~= wanted then error(("%s, not %s"):format(got, wanted), 2) end
end

local function fails(why, ...)
  local ok, got = ...
  if ok or not tostring(got):find(why, 1, true) then error(("%s, not %s"):format(got, why), 2) end
end

local function await(is_so)
  repeat task.sleep(0.001) until is_so()
end

-- ---- Servers and Sentinels that the test plays ----

local function read_command(conn)
  local head = conn:read "l"
  local list = {}

  for i = 1, head and tonumber(head:sub(2)) or 0 do
    list[i] = conn:read(tonumber(conn:read("l"):sub(2)))
    conn:read(2)
  end
  return head and list
end

local function text(value)
  return ("$%d\r\n%s\r\n"):format(#value, value)
end

local function list_of(values)
  return ("*%d\r\n"):format(#values) .. table.concat(values)
end

local HELLO <const> = "%1\r\n+proto\r\n:3\r\n"
local MASTER <const>, REPLICA <const> = list_of{ text "master", ":0\r\n" }, list_of{ text "slave" }
local NULL <const> = "_\r\n"

local players = {}

-- A server whose `rules` say how it replies to a command: bytes, or a function that returns bytes, or nil to end the
-- connection, or bytes and true to end it after them. It logs the commands.
local function play(rules)
  local one = { rules = rules, log = {}, conns = {} }

  one.rules.HELLO = one.rules.HELLO or HELLO
  one.server = tcp.serve("127.0.0.1", 0, { connections = 8, handler = function(conn)
    one.conns[#one.conns + 1] = conn
    for command in read_command, conn do
      local said, ends = one.rules[command[1]] or text(command[2] or command[1]), false

      one.log[#one.log + 1] = table.concat(command, " ")
      if type(said) == "function" then said, ends = said(command) end
      if not said then return end
      conn:write(said)
      if ends then return end
    end
  end })
  players[#players + 1] = one
  return one
end

local function address_of(server)
  return list_of{ text "127.0.0.1", text(tostring(server.port)) }
end

local one, two = play{}, play{}
local sentinels = { play{}, play{}, play{} }
local counts = { lookups = 0, switches = 0 }

-- Everything as at the start: all Sentinels name the first server, and both servers are masters.
local function reset()
  for _, player in ipairs(players) do player.log = {} end
  one.rules, two.rules = { HELLO = HELLO, ROLE = MASTER }, { HELLO = HELLO, ROLE = MASTER }
  for _, sentinel in ipairs(sentinels) do sentinel.rules = { HELLO = HELLO, SENTINEL = address_of(one) } end
end

local function name_master(server)
  for _, sentinel in ipairs(sentinels) do sentinel.rules.SENTINEL = address_of(server) end
end

-- Have both servers end their connections.
local function cut_all()
  for _, server in ipairs{ one, two } do
    for _, conn in ipairs(server.conns) do conn:close() end
    server.conns = {}
  end
end

local function open(options)
  local all = { sentinels = { sentinels[1].at, sentinels[2].at, sentinels[3].at }, master = "mine", timeout = 60 }

  for name, value in pairs(options or {}) do all[name] = value end
  return redis.new(all)
end

-- A call with clients whose timeouts double until it fails for this reason: a short one may be too short for the attempt
-- that has the reason.
local function fails_with(why, options, call)
  local value, got

  options.timeout = 0.05
  repeat
    local db <close> = open(options)
    value, got = call(db)
    options.timeout = 2 * options.timeout
  until got ~= "timeout" and not tostring(got):find("timeout$")
  fails(why, value, got)
end

local function get(db)
  return db:get "a"
end

-- What the counters of all clients gained since the last call.
local function gained(name)
  local before = counts[name]

  counts[name] = groups["redis.sentinel"][name]
  return counts[name] - before
end

-- ---- Cases ----

local cases = {
  function() -- the master is asked for once a connection, and what it says is checked
    local db <close> = open{ user = "ann", password = "secret", db = 3, sentinel_user = "bob", sentinel_password = "word" }
    equal(db:get "a", "a")
    equal(db:get "b", "b")
    equal(table.concat(sentinels[1].log, "; "), "HELLO 3 AUTH bob word; SENTINEL GET-MASTER-ADDR-BY-NAME mine")
    equal(table.concat(one.log, "; "), "HELLO 3 AUTH ann secret; SELECT 3; ROLE; GET a; GET b")
    equal(gained "lookups", 1)
    equal(gained "switches", 0)
  end,
  function() -- Sentinels that do not answer: the next one is asked, and is the first one later
    local gone = tcp.serve("127.0.0.1", 0, { handler = print })
    task.sleep(0)
    local port = gone.port
    gone:close()
    sentinels[2].rules.SENTINEL = NULL
    local db <close> = open{ sentinels = { "127.0.0.1:" .. port, sentinels[2].at, sentinels[3].at } }
    equal(db:get "a", "a")
    equal(#sentinels[2].log, 2)
    one.rules.EXEC = list_of{ text "b" }
    equal(db:transaction(function(t) t:multi() t:get "b" end)[1], "b") -- another connection
    equal(#sentinels[2].log, 2)
    equal(#sentinels[3].log, 4)
    gained "lookups"
  end,
  function() -- a Sentinel's replies are cut at each byte: the next one is asked
    for name, reply in pairs{ HELLO = HELLO, SENTINEL = address_of(one) } do
      for cut_at = 0, #reply - 1 do
        sentinels[1].rules[name] = function() return reply:sub(1, cut_at), true end
        local asked = #sentinels[2].log
        local db <close> = open()
        equal(db:get "a", "a")
        equal(#sentinels[2].log, asked + 2)
      end
      sentinels[1].rules[name] = reply
    end
    gained "lookups"
  end,
  function() -- no Sentinel says where the master is
    for said, why in pairs{
      [NULL] = "it does not know this master", [text "x"] = "it sent no address", [list_of{}] = "it sent no address",
      [list_of{ text "a b", text "1" }] = "it sent no address", [list_of{ text "a", text "0" }] = "it sent no address",
      [list_of{ text "a", "*0\r\n" }] = "it sent no address", ["-ERR no\r\n"] = "ERR no",
    } do
      sentinels[1].rules.SENTINEL = said
      fails_with("redis: no Sentinel says where the master 'mine' is: " .. sentinels[1].at .. ": " .. why,
        { sentinels = { sentinels[1].at } }, get)
    end
  end,
  function() -- a server that became a replica takes no more commands
    local db <close> = open()
    equal(db:get "a", "a")
    one.rules.SET, one.rules.ROLE = "-READONLY You can't write against a read only replica.\r\n", REPLICA
    name_master(two)
    gained "switches"
    local _, why, code = db:set("a", 1)
    equal(why .. code, "READONLY You can't write against a read only replica.READONLY")
    equal(db:set("a", 1), "a")
    equal(two.log[#two.log], "SET a 1")
    equal(gained "switches", 1)
  end,
  function() -- Sentinels that still name a replica, or a server that is gone: the command waits for the new master
    for _, role in ipairs{ REPLICA, text "odd" } do
      local db <close> = open()
      local times = 0
      one.rules.ROLE = function()
        times = times + 1
        if times == 4 then name_master(two) end
        return role
      end
      equal(db:get "a", "a")
      equal(times, 4)
      equal(two.log[#two.log], "GET a")
      name_master(one)
      fails_with(one.at .. " is not a master, although the Sentinels name it as 'mine'", {}, get)
    end
  end,
  function() -- a Sentinel always names a replica or a dead server: the next attempt asks the next Sentinel
    local gone = tcp.serve("127.0.0.1", 0, { handler = print })
    task.sleep(0)
    local dead = { port = gone.port }
    gone:close()
    one.rules.ROLE = REPLICA
    for _, named in ipairs{ one, dead } do
      name_master(two)
      sentinels[1].rules.SENTINEL = address_of(named)
      local asked = #sentinels[1].log
      local db <close> = open()
      equal(db:get "a", "a")
      equal(two.log[#two.log], "GET a")
      equal(#sentinels[1].log, asked + 2)
    end
  end,
  function() -- a silent server uses half of the time; the other half is for the server that the next Sentinel names
    one.rules.HELLO = function() task.sleep(60) end
    name_master(two)
    sentinels[1].rules.SENTINEL = address_of(one)
    local timeout, value = 0.5, nil
    repeat -- half of a short timeout may be too short on a busy machine
      local db <close> = open{ timeout = timeout }
      value, timeout = db:get "a", 2 * timeout
    until value or timeout > 100
    equal(value, "a")
    cut_all()
  end,
  function() -- a failover: connections end, and each later command goes to the new master
    local db <close> = open()
    equal(db:get "a", "a")
    cut_all()
    name_master(two)
    local list = {}
    for i = 1, 10 do list[i] = task.start(db.get, db, "b" .. i) end
    for i = 1, 10 do equal(list[i]:join(), "b" .. i) end
    equal(db:get "c", "c")
    equal(two.log[#two.log], "GET c")
  end,
  function() -- many tasks wait for a master, and all get their replies, or the reason
    local times = 0
    one.rules.ROLE = function()
      times = times + 1
      return times < 4 and REPLICA or MASTER
    end
    local db <close> = open{ size = 1 }
    local list = {}
    for i = 1, 10 do list[i] = task.start(db.get, db, "b" .. i) end
    for i = 1, 10 do equal(list[i]:join(), "b" .. i) end
    one.rules.ROLE = REPLICA
    fails_with("is not a master", { size = 1 }, function(brief)
      local tasks = { task.start(get, brief), task.start(get, brief) }
      local value, why = tasks[1]:join()
      local _, other = tasks[2]:join()

      if other == "timeout" then return nil, other end
      fails("is not a master", nil, other)
      return value, why
    end)
  end,
  function() -- refusals that no waiting changes
    one.rules.ROLE = "-NOPERM this user has no permissions to run the 'role' command\r\n"
    local db <close> = open()
    local _, why, code = db:get "a"
    equal(code, "NOPERM")
    equal(why:match "^%u+", "NOPERM")
    one.rules.HELLO = "-WRONGPASS no\r\n"
    fails("WRONGPASS no", db:get "a")
    for _, sentinel in ipairs(sentinels) do sentinel.rules.HELLO = "-WRONGPASS no, said the Sentinel\r\n" end
    fails("WRONGPASS no, said the Sentinel", db:get "a")
  end,
  function() -- a task that is cancelled, a client that is closed: while the Sentinel is asked, and in the pause
    local gate = task.event()
    local asked = 0
    sentinels[1].rules.SENTINEL = function()
      asked = asked + 1
      gate:wait()
      return address_of(one)
    end
    local db = open()
    local waiting = task.start(get, db)
    await(function() return asked == 1 end)
    waiting:cancel()
    fails("cancelled", waiting:join())
    gate:set()
    one.rules.ROLE = REPLICA
    sentinels[1].rules.SENTINEL = address_of(one)
    local function in_pause()
      local mark = #one.log
      local one_more = task.start(get, db)

      await(function() return #one.log > mark + 3 end) -- two attempts, with a pause between them
      return one_more
    end
    waiting = in_pause()
    for _ = 1, 3 do
      waiting:cancel()
      fails("cancelled", waiting:join())
      waiting = in_pause()
    end
    db:close()
    fails("", waiting:join())
    fails("closed", db:get "a")
  end,
  function() -- options
    local function refused(why, options) fails("redis.new: " .. why, pcall(redis.new, options)) end
    refused("sentinels and master, the name that they know it by, go together", { sentinels = { "a" } })
    refused("sentinels and master", { master = "a" })
    refused("sentinels and master", { sentinels = { "a" }, master = "" })
    refused("sentinels say where the server is", { sentinels = { "a" }, master = "a", host = "b" })
    refused("sentinels say where the server is", { sentinels = { "a" }, master = "a", unix = "/b" })
    refused("sentinel_user and sentinel_password need sentinels", { sentinel_password = "a" })
    refused("sentinel_user needs sentinel_password", { sentinels = { "a" }, master = "a", sentinel_user = "b" })
    refused("sentinels is a list of \"host:port\", at least one", { sentinels = {}, master = "a" })
    refused("a Sentinel is \"host:port\", not a number", { sentinels = { 1 }, master = "a" })
    refused("a Sentinel is \"host:port\" or \"[IPv6]:port\", not 'a:b'", { sentinels = { "a:b" }, master = "a" })
    refused("a Sentinel is \"host:port\" or \"[IPv6]:port\", not 'a b'", { sentinels = { "a b" }, master = "a" })
    fails("there is no option 'sentinels'", pcall(redis.cluster, { seeds = { "a" }, sentinels = { "a" } }))
    local db <close> = open{ sentinels = { "127.0.0.1" }, timeout = 0.05 } -- its port is 26379
    local _, why = db:get "a"
    equal(why == "timeout" or why:find("127.0.0.1:26379: ", 1, true) ~= nil, true)
  end,
}

task.start(function()
  local at = 0

  task.sleep(0)
  for _, player in ipairs(players) do -- they listen now
    player.port = player.server.port
    player.at = "127.0.0.1:" .. player.port
  end
  local ok, why = xpcall(function()
    for i, case in ipairs(cases) do
      at = i
      reset()
      case()
    end
  end, debug.traceback)
  collectgarbage()
  for _, player in ipairs(players) do player.server:close() end
  done = ok or ("case " .. at .. ": " .. tostring(why))
end)
