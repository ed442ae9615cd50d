-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: redis.sharded, with servers in the same process, played by a script. At the end `done` is true,
-- or an error.
local stats = require "sxe.stats"
local counters -- those of all clients of redis.sharded
package.loaded["sxe.stats"] = function(options)
  local made = stats(options)
  if options.name == "redis.sharded" then counters = made end
  return made
end
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"

done = false

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails
local peer = dofile "test/unit/lib-sxe-lua/lua-redis-peer.lua"
local read_command, text = peer.read_command, peer.text

local function await(is_so)
  repeat task.sleep(0.001) until is_so()
end

-- ---- Servers ----

local nodes, log, budget, was_cut = {}, {}, nil, false
local gate = task.event()

local function list_of(items)
  return "*" .. #items .. "\r\n" .. table.concat(items)
end

local answers = {
  HELLO = function() return "%1\r\n+proto\r\n:3\r\n" end,
  PING = function() return "+PONG\r\n" end,
  ROLE = function(_, node) return list_of{ text(node.role), ":0\r\n", "*0\r\n" } end,
  WATCH = function() return "+OK\r\n" end, MULTI = function() return "+OK\r\n" end,
  SET = function() return "+QUEUED\r\n" end, EXEC = function() return "*1\r\n+done\r\n" end,
  GATE = function(command) gate:wait() return text(command[2]) end,
  BLPOP = function() gate:wait() return list_of{ text "key", text "x" } end,
  SUBSCRIBE = function(command)
    return list_of{ text "subscribe", text(command[2]), ":1\r\n" } ..
      list_of{ text "message", text(command[2]), text "early" }
  end,
  PSUBSCRIBE = function(command) return list_of{ text "psubscribe", text(command[2]), ":1\r\n" } end,
  SCRIPT = function() return text "5ca1e" end, EVALSHA = function() return "-NOSCRIPT none\r\n" end,
  END = function() return nil end, WRONG = function() return "-WRONGTYPE not that\r\n" end,
  DBSIZE = function(_, node) return ":" .. node.n .. "\r\n" end,
}

local function serve(node)
  return function(conn)
    node.connections, node.open[conn] = node.connections + 1, true
    for command in read_command, conn do
      local answer = node.rules[command[1]] or answers[command[1]]

      if command[1] ~= "PING" and command[1] ~= "ROLE" and command[1] ~= "HELLO" then
        log[#log + 1] = node.n .. " " .. table.concat(command, " ")
      end
      local said = text(command[2] or command[1])
      if answer then said = answer(command, node) end
      if not said then break end
      if budget and command[1] ~= "PING" and command[1] ~= "ROLE" then
        if #said > budget then
          conn:write(said:sub(1, budget))
          budget, was_cut = nil, true
          break
        end
        budget = budget - #said
      end
      conn:write(said)
    end
    node.open[conn] = nil
    conn:close()
  end
end

-- Start the server n, at its old port if it had one. Its rules are tried before the replies that all servers have; a
-- rule returns bytes, or nil to close.
local function start(n)
  local node = nodes[n] or { n = n, rules = {}, connections = 0, open = {}, role = "master" }

  node.server = assert(tcp.serve("127.0.0.1", node.port or 0, { connections = 30, handler = serve(node) }))
  task.sleep(0)
  node.port = node.port or node.server.port
  nodes[n] = node
end

-- Kill a server: its connections end, and no more are taken.
local function kill(n)
  local node = nodes[n]

  node.server:close()
  for conn in pairs(node.open) do conn:close() end
  node.open = {}
end

local function address(n)
  return "127.0.0.1:" .. nodes[n].port
end

-- The servers 1 and 2 are the group one, the servers 3 and 4 the group two.
local function groups_of(kind)
  return {
    { name = "one", masters = { address(1), kind == "masters" and address(2) or nil },
      replicas = kind ~= "masters" and { address(2) } or nil },
    { name = "two", masters = { address(3), address(4) } },
  }
end

local function open(options)
  local all = { groups = groups_of(options and options.kind), timeout = 60, check_interval = 0.002, check_timeout = 60,
    hand_back = 0, backoff = 0.001 }

  for name, value in pairs(options or {}) do all[name] = value end
  all.kind = nil
  return redis.sharded(all)
end

local A, B -- keys of the groups one and two

local function count(what, mark)
  local number = 0

  for i = (mark or 0) + 1, #log do number = number + (log[i]:find(what, 1, true) and 1 or 0) end
  return number
end

-- Add a rule that answers `times` commands with this name, and then is removed.
local function rule(n, name, times, answer)
  nodes[n].rules[name] = function(...)
    times = times - 1
    if times == 0 then nodes[n].rules[name] = nil end
    return answer(...)
  end
end

local function state_of(db, n)
  for _, group in ipairs(db:state()) do
    for _, server in ipairs(group.servers) do
      if server.address == address(n) then return server, group end
    end
  end
end

-- Send reads until a condition holds: the checks go on as long as commands come.
local function await_using(db, is_so)
  await(function()
    db:get(A)
    return is_so()
  end)
end

-- Wait until no check is made any more, because no command comes.
local function await_no_checks()
  await(function()
    for _, one in ipairs(task.all()) do
      if one.trace:find("redis-shards.lua", 1, true) then return false end
    end
    return true
  end)
end

local function reset()
  budget = nil
  for _, node in ipairs(nodes) do node.rules, node.role = {}, "master" end
  gate:clear()
end

local cases = {
  function() -- options
    local function refuses(why, options)
      options.groups = options.groups or { { name = "a", masters = { "h" } } }
      fails(why, pcall(redis.sharded, options))
    end
    fails("a table of options", pcall(redis.sharded))
    fails("groups is a list of groups, at least one", pcall(redis.sharded, {}))
    refuses("at least one", { groups = {} })
    refuses("groups is a list, but nothing is at its place 1", { groups = { a = { name = "a", masters = { "h" } } } })
    refuses("replicas is a list, but nothing is at its place 1",
      { groups = { { name = "a", masters = { "h" }, replicas = { nil, "i" } } } })
    refuses("[::1]:6379 is there twice", { groups = { { name = "a", masters = { "[::1]", "[::1]:6379" } } } })
    refuses("a table of options is expected, not a number", { groups = { 1 } })
    refuses("there is no option 'master'; did you mean 'masters'?", { groups = { { name = "a", master = "h" } } })
    refuses("there is no option 'retires'; did you mean 'retries'?", { retires = 1 })
    refuses("there is no option 'nothing_like_it'", { nothing_like_it = 1 })
    refuses("there is no option 'sentinels'", { sentinels = {} })
    refuses("there is no option '" .. ("x"):rep(65) .. "'", { [("x"):rep(65)] = 1 })
    refuses("there is no option '1'", { [1] = 1 })
    for _, name in ipairs{ false, "", "a b", "a/b", ("x"):rep(65) } do
      refuses("a group has a name of 1 to 64 letters", { groups = { { name = name or nil, masters = { "h" } } } })
    end
    refuses("masters is a list of \"host:port\", at least one", { groups = { { name = "a" } } })
    refuses("a server is \"host:port\"", { groups = { { name = "a", masters = { "h:x" } } } })
    refuses("two groups have the name 'a'",
      { groups = { { name = "a", masters = { "h" } }, { name = "a", masters = { "i" } } } })
    refuses("the group 'b': h:6379 is there twice",
      { groups = { { name = "a", masters = { "h" } }, { name = "b", masters = { "i" }, replicas = { "h:6379" } } } })
    refuses("weight must be a whole number from 1 to 100",
      { groups = { { name = "a", masters = { "h" }, weight = 101 } } })
    local many = {}
    for i = 1, 3 do many[i] = { name = "g" .. i, masters = { "h:" .. i }, weight = 100 } end
    refuses("all weights together must be at most 256, not 300", { groups = many })
    refuses("hash is \"ring\" or \"modulo\", not 'x'", { hash = "x" })
    refuses("read_from is", { read_from = "x" })
    refuses("hand_back is a number of seconds, or \"manual\", not 'x'", { hand_back = "x" })
    refuses("hand_back must be at least 0", { hand_back = -1 })
    refuses("hand_back must be a number or string, not a boolean", { hand_back = true })
    refuses("check_interval must be more than 0", { check_interval = 0 })
    refuses("check_timeout must be more than 0", { check_timeout = 0 })
    refuses("backoff must be more than 0", { backoff = 0 })
    refuses("failures must be a whole number", { failures = 0 })
    refuses("successes must be a whole number", { successes = 1.5 })
    refuses("retries must be a whole number", { retries = -1 })
    refuses("db must be a whole number", { db = -1 })
    refuses("timeout must be more", { timeout = 0 })
    refuses("a user needs a password", { user = "u" })
    fails("there is no option 'prot'; did you mean 'port'?", pcall(redis.new, { prot = 1 }))
    fails("there is no option 'pasword'; did you mean 'password'?", pcall(redis.cluster, { pasword = "x" }))
  end,
  function() -- each command goes to the group of its keys
    local db <close> = open()
    local mark = #log
    equal(db:get(A) .. db:call("GET", B), A .. B)
    equal(table.concat(log, ",", mark + 1), "1 GET " .. A .. ",3 GET " .. B)
    equal(db:mget(A, "{" .. A .. "}x"), A)
    local value, why, code = db:mget(A, B)
    equal(value, nil)
    equal(why, "CROSSGROUP the keys '" .. A .. "' and '" .. B ..
      "' are in different groups; name them with the same {hash tag}")
    equal(code, "CROSSGROUP")
    fails("PING has no key: call it on db:group(name)", pcall(db.ping, db))
    fails("EVAL has no key", pcall(db.eval, db, "text", 0))
    fails("DBSIZE is for one server: call it on db:group(name)", pcall(db.dbsize, db))
    fails("TIME has no key", pcall(function() db:pipeline():time() end))
    fails("a command is a string", pcall(db.call, db, 1))
    fails("would change a connection", pcall(db.multi, db))
    fails("there is no group 'x'", pcall(db.group, db, "x"))
    fails("there is no group 'nil'", pcall(db.hand_back, db))
    fails("WRONGTYPE not that", db:wrong(A))
    local two = db:group "two"
    equal(two:dbsize(), 3)
    equal(two:ping(), "PONG")
    equal(two:get(A), A)
    equal(log[#log], "3 GET " .. A)
    equal(two:pipeline():dbsize():echo("x"):exec()[1], 3)
    db:publish(B, "text")
    equal(log[#log], "3 PUBLISH " .. B .. " text")
    equal(db:prepare "text"({ B }), "text")
    equal(log[#log], "3 EVAL text 1 " .. B)
    local run = db:prepare "text"
    equal(run({ A }) .. run({ A }), "texttext")
    fails("CROSSGROUP", run({ A, B }))
    fails("the script has no key: prepare it on db:group(name)", pcall(run, {}))
    fails("a script is a string", pcall(db.prepare, db, 1))
    fails("a script has a list of keys", pcall(run, 1))
    equal(two:prepare "text"({}), "text")
    equal(db.Upper, nil)
    db:close()
    db:close()
    fails("closed", db:get(A))
    fails("closed", two:ping())
    fails("closed", db:pipeline():get(A):get(B):exec())
  end,
  function() -- pipelines are split by group, and the replies are in order
    local db <close> = open()
    local p <close> = db:pipeline()
    equal(#assert(p:exec()), 0)
    local list = assert(p:get(A):get(B):wrong(A):mget(A, B):get("{" .. B .. "}"):get(A):exec())
    equal(list[1] .. list[2] .. list[5] .. list[6], A .. B .. "{" .. B .. "}" .. A)
    equal(list[3].code .. list[4].code, "WRONGTYPECROSSGROUP")
    fails("CROSSGROUP", p:mget(A, B):exec())
    list = assert(p["end"](p, A):incr(B):exec()) -- one group ends the connection
    equal(list[1].error, "redis: the connection ended before the reply")
    equal(list[2], B)
  end,
  function() -- transactions of coroutines that were dropped give their connections back
    local db <close> = open{ handles = 2 }
    local kept = {}
    for i = 1, 5 do
      coroutine.wrap(function()
        assert(db:transaction(function(t) t:get(A) kept[i] = t coroutine.yield() end, { watch = { A } }))
      end)()
    end
    equal(#assert(db:transaction(function(t) t:get(A) end)), 0)
  end,
  function() -- transactions, subscriptions, blocking commands
    local db <close> = open()
    local mark = #log
    local function double(t)
      equal(t:get(A), A)
      t:multi()
      t:set(A, 1)
      t:time()
    end
    equal(assert(db:transaction(double, { watch = { A } }))[1], "done")
    equal(table.concat(log, ",", mark + 1), ("1 WATCH %s,1 GET %s,1 MULTI,1 SET %s 1,1 TIME,1 EXEC"):format(A, A, A))
    fails("CROSSGROUP", db:transaction(print, { watch = { A, B } }))
    fails("CROSSGROUP", db:transaction(function(t) t:multi() t:set(A, 1) t:set(B, 1) end))
    fails("the transaction has no key yet", pcall(db.transaction, db, function(t) t:time() end))
    fails("the transaction has no key", pcall(db.transaction, db, function(t) t:multi() t:time() end))
    fails("gave the transaction up", db:transaction(function() return false end))
    assert(db:group "two":transaction(function(t) t:dbsize() t:multi() t:set(A, 1) end))
    equal(log[#log], "3 EXEC")
    rule(1, "SET", 1, function() return "-LOADING\r\n" end)
    rule(1, "EXEC", 1, function() return "-EXECABORT because of errors\r\n" end)
    equal(assert(db:transaction(double))[1], "done") -- refused, and called again
    rule(1, "GET", 1, function() return "-MASTERDOWN\r\n" end)
    equal(assert(db:transaction(function(t) t:get(A) t:multi() t:set(A, 1) end))[1], "done")
    local sub <close> = assert(db:subscribe{ B })
    equal(sub:read().text, "early")
    fails("CROSSGROUP", db:subscribe{ A, B })
    fails("a pattern has no group", pcall(db.psubscribe, db, { "a*" }))
    fails("a list of names", pcall(db.subscribe, db, {}))
    local all <close> = assert(db:group "one":psubscribe{ "a*" })
    equal(log[#log], "1 PSUBSCRIBE a*")
    local waiting = task.start(function() return db:blpop(A, 0) end)
    gate:set()
    equal(waiting:join()[2], "x")
  end,
  function() -- the first master is gone: what was not sent goes to the second one, and what was sent fails
    local db <close> = open{ kind = "masters", failures = 2, hand_back = "manual" }
    local before = counters()
    equal(db:incr(A), A)
    local mark, waiting = #log, {}
    for i = 1, 3 do waiting[i] = task.start(function() return db:gate(A, i) end) end
    await(function() return count("1 GATE", mark) == 1 and waiting[3].status == "waiting" end)
    kill(1)
    for i = 1, 3 do fails("", waiting[i]:join()) end
    equal(db:incr(A), A)
    equal(log[#log], "2 INCR " .. A)
    equal(count("2 GATE", mark), 0)
    local server, group = state_of(db, 1)
    equal(server.state .. group.state .. group.writer, "downfailed over" .. address(2))
    equal(server.why ~= nil and server.failures >= 2, true)
    equal(counters.downs - before.downs + counters.failovers - before.failovers, 2)
    equal(counters.down, 1)
    start(1)
    await_using(db, function() return state_of(db, 1).state == "up" end)
    equal(counters.down, 0)
    equal(db:incr(A), A)
    equal(log[#log], "2 INCR " .. A) -- not without the call
    equal(db:hand_back "one", address(1))
    equal(counters.hand_backs - before.hand_backs, 1)
    db:incr(A)
    equal(log[#log], "1 INCR " .. A)
    equal(db:hand_back "one", address(1))
    equal(select(2, state_of(db, 1)).state, "ok")
  end,
  function() -- checks: an error instead of PONG takes a server down, and after good replies it writes again
    local db <close> = open{ kind = "masters" }
    db:get(A)
    nodes[1].rules.PING = function() return "-LOADING the data\r\n" end
    await_using(db, function() return state_of(db, 1).state == "down" end)
    equal(state_of(db, 1).why, "LOADING the data")
    local mark = #log
    equal(db:incr(A), A)
    equal(log[#log], "2 INCR " .. A)
    local sub = assert(db:subscribe{ A })
    local popping = task.start(function() return db:blpop(A, 0) end)
    equal(sub:read().text, "early")
    await(function() return count("2 BLPOP", mark) == 1 end)
    nodes[1].rules.PING = nil
    await_using(db, function() return select(2, state_of(db, 1)).state == "ok" end)
    fails("the group 'one' went back to " .. address(1), sub:read())
    fails("the group 'one' went back to " .. address(1), popping:join())
    db:incr(A)
    equal(log[#log], "1 INCR " .. A)
    fails("GROUPDOWN", nil, (function() -- a server that ended while nobody waited is found by its check
      kill(1)
      kill(2)
      await_using(db, function() return select(2, state_of(db, 1)).state == "down" end)
      local _, why, code = db:incr(A)
      equal(code, "GROUPDOWN")
      return why
    end)())
    start(1)
    start(2)
  end,
  function() -- without a master a group is only read; a replica that somebody made a master writes
    local db <close> = open()
    nodes[2].role = "slave"
    db:get(A)
    kill(1)
    local _, why, code
    await(function()
      _, why, code = db:incr(A)
      return code == "GROUPDOWN"
    end)
    fails("GROUPDOWN no master of the group 'one' is up: " .. address(1) .. ": ", nil, why)
    fails("GROUPDOWN", db:transaction(function(t) t:get(A) end))
    fails("GROUPDOWN", db:subscribe{ A })
    fails("GROUPDOWN", db:pipeline():incr(A):exec())
    equal(select(4, db:hand_back "one"), nil)
    fails("GROUPDOWN", db:hand_back "one")
    equal(db:get(A), A)
    equal(log[#log], "2 GET " .. A)
    local list = assert(db:pipeline():get(A):incr(A):get(B):exec())
    equal(list[1] .. list[3] .. list[2].code, A .. B .. "GROUPDOWN")
    equal(select(2, state_of(db, 1)).state, "read-only")
    equal(select(2, state_of(db, 1)).writer, nil)
    nodes[2].role = "master"
    await_using(db, function() return select(2, state_of(db, 1)).writer == address(2) end)
    equal(db:incr(A), A)
    equal(log[#log], "2 INCR " .. A)
    start(1)
    await_using(db, function() return state_of(db, 1).state == "up" end)
    for _ = 1, 10 do await_using(db, function() return true end) end
    db:incr(A)
    equal(log[#log], "2 INCR " .. A) -- the old master lacks writes: only a call goes back to it
    nodes[1].role = "slave"
    await_using(db, function() return state_of(db, 1).role == "replica" end)
    equal(db:hand_back "one", address(2))
    nodes[1].role, nodes[2].role = "master", "slave" -- exchanged once more
    rule(2, "INCR", 1, function() return "-READONLY You can't write against a read only replica.\r\n" end)
    equal(db:incr(A), A)
    equal(log[#log], "1 INCR " .. A)
  end,
  function() -- a master that became a replica, and no other master
    local db <close> = open()
    nodes[1].role, nodes[2].role = "slave", "slave"
    await(function()
      local _, why, code = db:incr(A)
      if code ~= "GROUPDOWN" then return false end
      fails(address(1) .. ": it is a replica now", nil, why)
      return true
    end)
  end,
  function() -- all servers of a group are down, the other group works; later they are back
    local db <close> = open{ successes = 3 }
    nodes[2].role = "slave"
    db:get(A)
    kill(1)
    kill(2)
    local before = counters.refused
    await(function() return select(3, db:get(A)) == "GROUPDOWN" end)
    equal(counters.refused > before, true)
    equal(db:get(B), B)
    equal(select(2, state_of(db, 1)).state, "down")
    fails("GROUPDOWN", db:pipeline():get(A):exec())
    equal(assert(db:pipeline():get(A):get(B):exec())[2], B)
    start(1)
    start(2)
    await(function() return db:get(A) == A end)
    await_using(db, function() return select(2, state_of(db, 1)).state == "ok" end)
  end,
  function() -- reads are repeated, at most `retries` times, and writes are not
    local db <close> = open{ failures = 1000, retries = 2 }
    local before, mark = counters(), #log
    rule(1, "GET", 2, function() return nil end)
    equal(db:get(A), A)
    equal(count("1 GET", mark), 3)
    equal(counters.repeats - before.repeats, 2)
    nodes[1].rules.GET = function() return nil end
    mark = #log
    fails("the connection ended before the reply", db:get(A))
    equal(count("1 GET", mark), 3)
    rule(1, "INCR", 1, function() return nil end)
    mark = #log
    fails("the connection ended before the reply", db:incr(A))
    equal(count("INCR", mark), 1)
    local never <close> = open{ failures = 1000, retries = 0 }
    mark = #log
    fails("the connection ended before the reply", never:get(A))
    equal(count("1 GET", mark), 1)
    rule(1, "INCR", 3, function() return "-LOADING the data\r\n" end) -- refused, so never executed
    equal(db:incr(A), A)
    equal(counters.waits - before.waits, 3)
    nodes[1].rules.GET = function() return "hello\r\n" end -- no reply of the protocol
    fails("redis: ", db:get(A))
  end,
  function() -- reads from replicas
    local db <close> = open{ read_from = "replica", failures = 1000 }
    nodes[2].role = "slave"
    equal(db:get(A) .. log[#log], A .. "2 GET " .. A)
    db:incr(A)
    equal(log[#log], "1 INCR " .. A)
    equal(db:get(B) .. log[#log], B .. "3 GET " .. B) -- other masters are no replicas
    rule(2, "GET", 1, function() return "-LOADING\r\n" end)
    equal(db:get(A) .. log[#log], A .. "1 GET " .. A)
    local p = db:pipeline()
    equal(table.concat(assert(p:get(A):get(B):exec())), A .. B)
  end,
  function() -- a stalled server: its checks time out, its commands fail, and reads go to the replica
    local seconds = 0.05
    nodes[2].role = "slave"
    while true do -- on a busy machine the time can be too short for the good servers, too
      local db <close> = open{ check_timeout = seconds, failures = 2, timeout = 600 }
      local mark = #log
      gate:clear()
      db:get(A)
      for _, name in ipairs{ "PING", "ROLE", "INCR", "GET", "HELLO" } do
        local answer = answers[name] or function(command) return text(command[2]) end
        nodes[1].rules[name] = function(...) gate:wait() return answer(...) end
      end
      local writing = task.start(function() return db:incr(A) end)
      local reading = task.start(function() return db:get(A) end)
      fails("", writing:join())
      local is_good = reading:join() == A and count("2 GET", mark) == 1
      equal(count("2 INCR", mark), 0)
      gate:set() -- the late replies reach nobody
      await_using(db, function() return select(2, state_of(db, 1)).state == "ok" end)
      if is_good and db:incr(A, 7) == A and log[#log] == "1 INCR " .. A .. " 7" then break end
      seconds = 2 * seconds
    end
  end,
  function() -- a subscription that is read, or a command that waits, keeps the checks going
    local db <close> = open{ failures = 1 }
    local sub = assert(db:subscribe{ A })
    equal(sub:read().text, "early")
    local waiting = task.start(function() return db:gate(B) end)
    local reading = task.start(function() return sub:read() end)
    for _ = 1, 20 do task.sleep(0.002) end
    for _, n in ipairs{ 1, 3 } do
      nodes[n].rules.PING = function() return "-ERR no\r\n" end
    end
    fails(address(1) .. " is down: ERR no", reading:join())
    fails(address(3) .. " is down: ERR no", waiting:join())
    gate:set()
  end,
  function() -- the checks end without commands, and begin again; a group that was down is then checked again
    local db <close> = open()
    db:get(A)
    kill(1)
    kill(2)
    await(function() return select(3, db:get(A)) == "GROUPDOWN" end)
    await_no_checks()
    start(1)
    start(2)
    local rare <close> = open{ check_interval = 1000 } -- longer than the time after which checks end
    rare:get(B)
    await_no_checks()
    await(function() return db:get(A) == A end)
  end,
  function() -- a task that is cancelled in the midst, and a client that is closed while commands wait
    local db <close> = open()
    local mark = #log
    local cut = task.start(function() return db:gate(A) end)
    local pipe = task.start(function() return db:pipeline():gate(A):gate(B):exec() end)
    local other = task.start(function() return db:get(A) end)
    await(function() return count("GATE", mark) == 2 and other.status == "waiting" end)
    cut:cancel()
    pipe:cancel()
    fails("cancelled", cut:join())
    fails("cancelled", pipe:join())
    gate:set()
    equal(other:join(), A)
    gate:clear()
    local waiting = {}
    waiting[1] = task.start(function() return db:gate(A) end)
    waiting[2] = task.start(function() return db:pipeline():gate(A):gate(B):exec() end)
    waiting[3] = task.start(function() return db:blpop(A, 0) end)
    await(function() return count("BLPOP", mark) == 1 end)
    db:close()
    for i = 1, 3 do fails("closed", waiting[i]:join()) end
    gate:set()
    local checking = open{ failures = 1 }
    nodes[1].rules.PING = function() gate:wait() return "+PONG\r\n" end
    gate:clear()
    checking:get(A)
    checking:close() -- the check that it ends is no failure
    for _ = 1, 5 do task.sleep(0) end
    equal(counters.down, 0)
    gate:set()
    nodes[1].rules.PING = nil
    local pausing = open()
    nodes[1].rules.INCR = function() return "-LOADING the data\r\n" end
    local paused = task.start(function() return pausing:incr(A) end)
    await(function() return counters.waits > 0 and count("1 INCR", mark) > 2 end)
    paused:cancel()
    fails("cancelled", paused:join())
    pausing:close()
  end,
  function() -- a client that was down, and that nobody uses any more, is collected
    local db = open()
    db:get(A)
    kill(1)
    await(function() return counters.down == 1 or not db:incr(A) and counters.down == 1 end)
    db = nil
    await(function()
      collectgarbage()
      return counters.down == 0
    end)
    start(1)
  end,
  function() -- no task is free for the checks, and then there is one
    local db <close> = open()
    db:get(A)
    await_no_checks()
    local held, one, before = {}, nil, counters.checks
    repeat
      one = task.start(gate.wait, gate)
      held[#held + 1] = one
    until not one
    equal(db:get(A), A)
    equal(counters.checks, before)
    gate:set()
    await_using(db, function() return counters.checks > before end)
  end,
  function() -- the checks' tasks are cancelled: the next command starts others
    local db <close> = open()
    local mine = task.self()
    for _ = 1, 3 do
      local before = counters.checks
      await_using(db, function() return counters.checks > before end)
      nodes[1].rules.PING = function() gate:wait() return "+PONG\r\n" end
      task.sleep(0.005)
      for _, one in ipairs(task.all()) do
        if one ~= mine and one.trace:find("redis-shards.lua", 1, true) then one:cancel() end
      end
      task.sleep(0)
      nodes[1].rules.PING = nil
      gate:set()
    end
    equal(db:get(A), A)
  end,
  function() -- replies are cut at each byte: each kind of command fails, or is right
    local kinds = {
      function(db)
        local value = db:incr(A)
        return value and value == A
      end,
      function(db)
        local list = db:pipeline():incr(A):incr(B):exec()
        if not list or type(list[1]) == "table" or type(list[2]) == "table" then return nil end
        return list[1] .. list[2] == A .. B
      end,
      function(db)
        local list = db:transaction(function(t) t:get(A) t:multi() t:set(A, 1) end, { watch = { A } })
        return list and list[1] == "done"
      end,
      function(db)
        local sub <close> = db:subscribe{ A }
        local message = sub and sub:read()
        return message and message.text == "early"
      end,
    }
    for i, kind in ipairs(kinds) do
      local cut_at, is_right = 0, nil
      repeat
        local db <close> = open{ failures = 1000, check_interval = 1000 }
        local mark = #log
        db:group "one":ping()
        budget, was_cut = cut_at, false
        is_right = kind(db)
        if is_right == false or cut_at > 1000 then error "a reply that was cut is a value" end
        equal(count("INCR " .. A, mark) <= 1, true)
        cut_at = cut_at + 1
      until not was_cut
      equal(is_right, true)
      equal(cut_at > 2 * i, true)
      budget = nil
    end
  end,
}

task.start(function()
  for n = 1, 4 do start(n) end
  local db = open()
  for i = 1, 100 do
    if db:group_of("k" .. i) == "one" then A = "k" .. i else B = "k" .. i end
  end
  db:close()
  local at = 0
  local ok, why = xpcall(function()
    for i, case in ipairs(cases) do
      at = i
      case()
      gate:set()
      task.sleep(0)
      reset()
    end
  end, debug.traceback)
  collectgarbage()
  for _, node in ipairs(nodes) do node.server:close() end
  done = ok or ("case " .. at .. ": " .. tostring(why))
end)
