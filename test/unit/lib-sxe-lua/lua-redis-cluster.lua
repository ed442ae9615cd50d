-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: redis.cluster, with nodes that are servers in the same process, played by a script. At the end
-- `done` is true, or an error.
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"

done = false

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

local TOO_SLOW = {} -- an error: a call took longer than the short timeout of its client

-- For a block of with_short_timeout: the call whose results are given must fail for this reason.
local function fails_in_time(why, value, got)
  if got == "timeout" then error(TOO_SLOW, 0) end
  fails(why, value, got)
end

local function await(is_so)
  repeat task.sleep(0.001) until is_so()
end

-- ---- Nodes ----

local peer = dofile "test/unit/lib-sxe-lua/lua-redis-peer.lua"
local read_command, text = peer.read_command, peer.text

local nodes, log, map, budget, was_cut = {}, {}, nil, nil, false
local gate = task.event()

local function list_of(items)
  return "*" .. #items .. "\r\n" .. table.concat(items)
end

-- The reply {first, last, node, ...} of CLUSTER SLOTS as bytes. A node is an index of nodes, or a list of bytes.
local function range(first, last, ...)
  local items = { ":" .. first .. "\r\n", ":" .. last .. "\r\n" }

  for _, one in ipairs{ ... } do
    items[#items + 1] = type(one) == "table" and list_of(one) or
      list_of{ text "127.0.0.1", ":" .. nodes[one].port .. "\r\n", text "id" }
  end
  return list_of(items)
end

local function whole_map()
  return list_of{ range(0, 5460, 1, 4), range(5461, 10922, 2), range(10923, 16383, 3) }
end

local function moved(slot, n, word)
  return ("-%s %d 127.0.0.1:%d\r\n"):format(word or "MOVED", slot, nodes[n].port)
end

local answers = {
  HELLO = function() return "%1\r\n+proto\r\n:3\r\n" end,
  CLUSTER = function(_, node) return node.map or map or whole_map() end,
  ASKING = function() return "+OK\r\n" end, READONLY = function() return "+OK\r\n" end,
  WATCH = function() return "+OK\r\n" end, MULTI = function() return "+OK\r\n" end,
  SET = function() return "+QUEUED\r\n" end, EXEC = function() return "*1\r\n+done\r\n" end,
  GATE = function(command) gate:wait() return text(command[2]) end,
  BLPOP = function(command) return list_of{ text(command[2]), text "x" } end,
  SUBSCRIBE = function(command)
    return list_of{ text "subscribe", text(command[2]), ":1\r\n" } ..
      list_of{ text "message", text(command[2]), text "early" }
  end,
  PSUBSCRIBE = function(command) return list_of{ text "psubscribe", text(command[2]), ":1\r\n" } end,
  SCRIPT = function() return text "5ca1e" end, EVALSHA = function() return "-NOSCRIPT none\r\n" end,
  END = function() return nil end, WRONG = function() return "-WRONGTYPE not that\r\n" end,
  DBSIZE = function(_, node) return ":" .. node.n .. "\r\n" end,
  MAP = function() return "%2\r\n+error\r\n+MOVED 3300 127.0.0.1:1\r\n+code\r\n+MOVED\r\n" end,
}

-- Add a node. Its rules are tried before the replies that all nodes have; a rule returns bytes, or nil to close.
local function add_node(n)
  local node = { n = n, rules = {}, connections = 0, gone = 0 }

  node.server = tcp.serve("127.0.0.1", 0, { connections = 20, handler = function(conn)
    node.connections, node.last = node.connections + 1, conn
    for command in read_command, conn do
      local answer = node.rules[command[1]] or answers[command[1]]

      log[#log + 1] = n .. " " .. table.concat(command, " ")
      local said = text(command[2] or command[1])
      if answer then said = answer(command, node) end
      if not said then break end
      if budget and #said > budget then
        conn:write(said:sub(1, budget))
        budget, was_cut = nil, true
        break
      end
      budget = budget and budget - #said
      conn:write(said)
    end
    node.gone = node.gone + 1
  end })
  task.sleep(0)
  node.port = node.server.port
  nodes[n] = node
end

local function address(n)
  return "127.0.0.1:" .. nodes[n].port
end

local function open(options)
  local all = { seeds = { address(1) }, timeout = 60 }

  for name, value in pairs(options or {}) do all[name] = value end
  return redis.cluster(all)
end

-- Call a block with a client whose calls wait for a short time only. On a busy machine that can be too short for any
-- reply: then the block is called again with a client that waits twice as long.
local function with_short_timeout(options, block)
  local is_done, why

  options.timeout = 0.05
  repeat
    local db <close> = open(options)
    is_done, why = pcall(block, db)
    if not is_done and why ~= TOO_SLOW then error(why, 0) end
    options.timeout = 2 * options.timeout
  until is_done
end

local function is_in_log(what, mark)
  for i = (mark or 0) + 1, #log do
    if log[i] == what then return true end
  end
end

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

local function free_port()
  local server = tcp.serve("127.0.0.1", 0, function() end)
  task.sleep(0)
  local port = server.port
  server:close()
  return port
end

local function reset()
  map, budget = nil, nil
  for _, node in ipairs(nodes) do node.rules, node.map = {}, nil end
  gate:clear()
end

-- ---- Cases. Node 1 has the key b, node 2 has c, node 3 has a and foo ----

local cases = {
  function() -- options
    fails("a table of options", pcall(redis.cluster))
    fails("at least one", pcall(redis.cluster, {}))
    fails("at least one", pcall(redis.cluster, { seeds = {} }))
    fails("a seed is \"host:port\", not a number", pcall(redis.cluster, { seeds = { 1 } }))
    for _, seed in ipairs{ "a b", "a:0", "a:65536", "a:x", ":1", "a:1:1", "::1", "[a]:1", "[::1]x", ("x"):rep(256) } do
      fails("a seed is \"host:port\" or \"[IPv6]:port\", not '" .. seed, pcall(redis.cluster, { seeds = { seed } }))
    end
    for _, seed in ipairs{ "a-b.example", "a:1", "[::1]:65535", "[::1]" } do assert(redis.cluster{ seeds = { seed } }) end
    fails("seeds is a list, but nothing is at its place 2", pcall(redis.cluster, { seeds = { "a", nil, "b" } }))
    fails("seeds is a list, but nothing is at its place 2", pcall(redis.cluster, { seeds = { "a", x = "b" } }))
    fails("there is no option 'db'", pcall(redis.cluster, { db = 1 }))
    fails("read_from must be a string", pcall(redis.cluster, { read_from = 1 }))
    fails("read_from is \"master\"", pcall(redis.cluster, { seeds = { "a" }, read_from = "x" }))
    fails("nodes must be a whole number from 1", pcall(redis.cluster, { seeds = { "a" }, nodes = 0 }))
    fails("size must be a whole number", pcall(redis.cluster, { seeds = { "a" }, size = 0 }))
    fails("timeout must be more", pcall(redis.cluster, { seeds = { "a" }, timeout = 0 }))
    fails("a user needs a password", pcall(redis.cluster, { seeds = { "a" }, user = "u" }))
  end,
  function() -- each command goes to the node of its key
    local db <close> = open()
    local mark = #log
    equal(db:get "b" .. db:get "c" .. db:get "a" .. db:call("GET", "foo"), "bcafoo")
    equal(table.concat(log, ",", mark + 1),
      "1 HELLO 3,1 CLUSTER SLOTS,1 GET b,2 HELLO 3,2 GET c,3 HELLO 3,3 GET a,3 GET foo")
    local places = {
      "MGET {b}1 {b}2", "MSET b 1 {b} c", "RENAME b {b}", "BLPOP b {b} 0", "BITOP AND {b}1 {b}2", "OBJECT ENCODING b",
      "EVAL text 2 b {b} a", "SINTERCARD 2 b {b} LIMIT 1", "ZUNIONSTORE b 1 {b}1", "XREAD COUNT 1 STREAMS b {b} 0 1",
      "SORT b GET a STORE {b}", "NEW b", "GET {b}a", "XADD b * a c",
    }
    for _, line in ipairs(places) do
      local words = {}
      for word in line:gmatch "%S+" do words[#words + 1] = word end
      db:call(table.unpack(words))
      equal(log[#log], "1 " .. line)
    end
    for _, line in ipairs{ "MGET a b", "MSET a 1 b c", "BITOP AND a b", "XREAD STREAMS a b 0 0", "EVAL t 2 a b", "SORT a STORE b",
        "ZUNIONSTORE a 1 b", "DEL a b" } do
      local words = {}
      for word in line:gmatch "%S+" do words[#words + 1] = word end
      local value, why, code = db:call(table.unpack(words))
      equal(value, nil)
      equal(why .. "|" .. code,
        "CROSSSLOT the keys 'a' and 'b' are in different slots; name them with the same {hash tag}|CROSSSLOT")
    end
    fails("'" .. ("x"):rep(57) .. "?..'", db:mget(("x"):rep(57) .. "\255..more", "a"))
    local three = {}
    for _ = 1, 3 do
      db:ping()
      three[log[#log]] = true
    end
    equal(three["1 PING"] and three["2 PING"] and three["3 PING"], true)
    db:eval("text", 0)
    db:xread()
    db:eval()
    db:object()
    db:get(12, 1.5)
    equal(log[#log], "2 GET 12 1.5")
    fails("call it on each of db:masters()", pcall(db.dbsize, db))
    fails("would change a connection", pcall(db.multi, db))
    fails("a command is a string", pcall(db.call, db, 1))
    fails("WRONGTYPE not that", db:wrong "a")
    equal(db.Upper, nil)
    equal(db[1], nil)
    equal(db:map("b").error, "MOVED 3300 127.0.0.1:1") -- a value that looks like a redirect, and is none
    equal(db:pipeline():map("b"):exec()[1].error, "MOVED 3300 127.0.0.1:1")
    equal(db:blpop("b", 0)[2], "x")
    equal(db:prepare "text"({ "c" }), "text")
    equal(log[#log], "2 EVAL text 1 c")
    for n, master in ipairs(assert(db:masters())) do
      equal(master:dbsize(), n)
      equal(master:call "DBSIZE", n)
      equal(master.close ~= db.close, true)
    end
    db:close()
    fails("closed", db:get "a")
    fails("closed", db:masters())
    local fresh <close> = open()
    equal(#fresh:masters(), 3)
  end,
  function() -- a thousand redirects lead to one new map
    local db <close> = open{ size = 1 }
    equal(db:get "b", "b")
    local mark, list = #log, {}
    nodes[1].rules.GET = function() return moved(3300, 2) end
    map = list_of{ range(0, 10922, 2), range(10923, 16383, 3) }
    for i = 1, 20 do list[i] = task.start(function() return db:get("b", i) end) end
    for i = 1, 20 do equal(list[i]:join(), "b") end
    equal(count("CLUSTER SLOTS", mark), 1)
    equal(count("1 GET b", mark), 20)
    equal(count("2 GET b", mark), 20)
    await(function() return nodes[1].gone == nodes[1].connections end) -- the node is no longer in the map
    equal(db:get "b", "b")
    equal(log[#log], "2 GET b")
  end,
  function() -- a slot that moved to a node of the same host, or one that is not in the map
    local db <close> = open()
    db:get "b"
    rule(1, "GET", 1, function() return ("-MOVED 3300 :%d\r\n"):format(nodes[5].port) end)
    nodes[1].rules.CLUSTER = function() return "-ERR no map\r\n" end
    nodes[2].rules.CLUSTER, nodes[3].rules.CLUSTER = nodes[1].rules.CLUSTER, nodes[1].rules.CLUSTER
    nodes[4].rules.CLUSTER, nodes[5].rules.CLUSTER = nodes[1].rules.CLUSTER, nodes[1].rules.CLUSTER
    equal(db:get "b", "b")
    equal(log[#log], "5 GET b")
    equal(db:get "b", "b") -- although no node has sent a new map
    equal(log[#log], "5 GET b")
  end,
  function() -- ASK: ASKING goes before the command
    local db <close> = open()
    db:get "b"
    local mark = #log
    rule(1, "GET", 1, function() return moved(3300, 2, "ASK") end)
    equal(db:get "b", "b")
    equal(table.concat(log, ",", mark + 1, #log):gsub("2 HELLO 3,", ""), "1 GET b,2 ASKING,2 GET b")
    equal(db:get "b", "b")
    equal(log[#log], "1 GET b")
    rule(1, "GET", 1, function() return moved(3300, 2, "ASK") end)
    rule(2, "ASKING", 1, function() return "-ERR unknown\r\n" end)
    equal(db:get "b", "b") -- only the command's own reply counts
    rule(1, "BLPOP", 1, function() return moved(3300, 2, "ASK") end)
    mark = #log
    equal(db:blpop("b", 0)[2], "x")
    equal(count("2 ASKING", mark) + count("2 BLPOP", mark), 2)
    rule(1, "GET", 2, function() return moved(3300, 2, "ASK") end)
    mark = #log
    local list = assert(db:pipeline():get("b", 1):get("c"):get("b", 2):get("{b}"):exec())
    equal(table.concat(list, ","), "b,c,b,{b}")
    equal(table.concat(log, ",", #log - 3), "2 ASKING,2 GET b 1,2 ASKING,2 GET b 2")
    rule(1, "GET", 1, function() return moved(3300, 2, "ASK") end)
    rule(2, "GET", 1, function() return "-TRYAGAIN later\r\n" end)
    equal(db:get "b", "b")
    equal(log[#log], "1 GET b")
  end,
  function() -- endless redirects, and redirects to nowhere
    local db <close> = open{ nodes = 4 }
    for _, name in ipairs{ "MOVED", "ASK" } do
      nodes[1].rules.GET = function() return moved(3300, 2, name) end
      nodes[2].rules.GET = function() return moved(3300, 1, name) end
      local mark = #log
      fails("redirected 16 times, at last to " .. address(2), db:get "b")
      equal(count(" GET b", mark), 17)
      equal(count("CLUSTER", mark) <= 2, true)
    end
    nodes[2].rules = {}
    for _, where in ipairs{ "", "3300", "3300 nowhere", "3301 127.0.0.1:1", "3300 a b:1", "3300 127.0.0.1:0", "x 127.0.0.1:1",
        "3300 127.0.0.1:99999", "3300 " .. ("x"):rep(300) .. ":1", "3300 127.0.0.1:12345678901234567890" } do
      rule(1, "GET", 1, function() return "-MOVED " .. where .. "\r\n" end)
      local _, why, code = db:get "b"
      fails("redirects to no address: MOVED", nil, why)
      equal(code, "MOVED")
      equal(#why < 320, true)
    end
    nodes[1].rules.PING = function() return moved(0, 2) end
    for _ = 1, 3 do fails("", db:ping() == "PING" and nil, db:ping()) end
    nodes[1].rules = {}
    rule(1, "GET", 1, function() return moved(3300, 5) end)
    fails("names more than 4 nodes", db:get "b")
  end,
  function() -- temporary errors, and one that stays
    local db <close> = open()
    for _, word in ipairs{ "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN" } do
      rule(1, "GET", 2, function() return "-" .. word .. " for now\r\n" end)
      equal(db:get "b", "b")
    end
    nodes[1].rules.GET = function() return "-CLUSTERDOWN for ever\r\n" end
    local mark = #log
    with_short_timeout({}, function(brief)
      fails_in_time("CLUSTERDOWN for ever", brief:get "b")
      equal(count("1 GET b", mark) > 0, true)
      fails_in_time("CLUSTERDOWN for ever", brief:pipeline():get("b"):exec())
      local list = brief:pipeline():get("b"):get("c"):exec()
      if not list or list[2] ~= "c" then error(TOO_SLOW, 0) end
      equal(list[1].code or "timeout", list[1].error == "timeout" and "timeout" or "CLUSTERDOWN")
    end)
    for _, send in ipairs{ function() return db:get "b" end, function() return db:pipeline():get("b"):exec() end } do
      mark = #log
      local waiting = task.start(send)
      await(function() return count("1 GET b", mark) > 5 end)
      for _ = 1, 20 do task.sleep(0.001) end -- now the call waits before its next attempt
      waiting:cancel()
      fails("cancelled", waiting:join())
    end
  end,
  function() -- malformed maps: the client asks another node
    local null = "_\r\n"
    local function one(host, port, last)
      return list_of{ list_of{ ":0\r\n", last or ":16383\r\n", list_of{ host, port } } }
    end
    local port = ":" .. nodes[2].port .. "\r\n"
    local many = {}
    for i = 1, 16385 do many[i] = "*0\r\n" end
    local bad = {
      "+OK\r\n", "*0\r\n", "*1\r\n:1\r\n", list_of{ list_of{} }, list_of{ list_of{ ":0\r\n", ":1\r\n" } },
      list_of{ list_of{ text "0", ":1\r\n", list_of{ text "a", port } } },
      list_of{ list_of{ ":0\r\n", text "1", list_of{ text "a", port } } },
      list_of{ list_of{ ":-1\r\n", ":1\r\n", list_of{ text "a", port } } },
      list_of{ list_of{ ":2\r\n", ":1\r\n", list_of{ text "a", port } } },
      one(text "a", port, ":16384\r\n"), one(text "a", ":0\r\n"), one(text "a", ":65536\r\n"), one(text "a", text "1"),
      one(text "a b", port), one(text "a\r\nb", port), one(text(("x"):rep(256)), port), one(":1\r\n", port),
      list_of{ list_of{ ":0\r\n", ":1\r\n", text "a" } }, list_of(many), "-ERR This instance has cluster support disabled\r\n",
    }
    for _, said in ipairs(bad) do
      local db <close> = open{ seeds = { address(1), address(2) } }
      nodes[1].map = said
      equal(db:get "b", "b")
      local why = said:find "disabled" and "support disabled" or "sent no map of slots"
      with_short_timeout({}, function(alone)
        fails_in_time(why, alone:get "b")
        fails_in_time(why, alone:masters())
      end)
    end
    nodes[1].map = nil
    with_short_timeout({ nodes = 3 }, function(few)
      fails_in_time("the cluster has 4 nodes, more than 3, the option nodes", few:get "b")
    end)
    for _, host in ipairs{ null, text "" } do -- no host means: the host that was asked
      local db <close> = open()
      map = one(host, port)
      equal(db:get "b", "b")
      equal(log[#log], "2 GET b")
    end
    map = list_of{ range(0, 16383, { text "?", port }, 2) }
    with_short_timeout({}, function(brief)
      fails_in_time("CLUSTERDOWN no node has slot 3300", brief:get "b")
      fails_in_time("CLUSTERDOWN no node has a slot", brief:ping())
      fails_in_time("no node has slot 3300", brief:pipeline():get("b"):exec())
      fails_in_time("no node has slot 3300", brief:transaction(print, { watch = { "b" } }))
      fails_in_time("no node has slot 3300", brief:subscribe{ "b" })
      fails_in_time("no node has a slot", brief:transaction(function(t) t:multi() t:ping() end))
    end)
    map = list_of{ range(0, 5460, 1), range(5461, 16383, 2, { text "?", port }, 3) }
    local db <close> = open{ read_from = "replica" }
    equal(db:get "a" .. log[#log], "a3 GET a")
  end,
  function() -- a node is gone: the map is read again, and a command that was sent is not repeated
    local db <close> = open()
    local gone = free_port()
    map = list_of{ list_of{ ":0\r\n", ":5460\r\n", list_of{ text "127.0.0.1", ":" .. gone .. "\r\n" } },
      range(5461, 16383, 2) }
    local number = 0
    nodes[1].rules.CLUSTER = function() -- the second map is complete
      number = number + 1
      return number == 1 and map or whole_map()
    end
    nodes[2].rules.CLUSTER = nodes[1].rules.CLUSTER
    equal(db:get "b", "b")
    equal(log[#log], "1 GET b")
    local mark = #log
    local _, why = db["end"](db, "b")
    equal(why, "redis: the connection ended before the reply")
    equal(count("END b", mark), 1)
    mark = #log
    equal(db:get "c", "c")
    equal(count("CLUSTER", mark), 1) -- read by the next command
    local later <close> = open{ seeds = { "127.0.0.1:" .. gone, address(2) } }
    equal(later:get "b", "b")
    with_short_timeout({ seeds = { "127.0.0.1:" .. gone } }, function(never)
      fails_in_time("Connection refused", never:get "b")
      fails_in_time("Connection refused", never:pipeline():get("b"):get("c"):exec())
      fails_in_time("Connection refused", never:transaction(print, { watch = { "a" } }))
      fails_in_time("Connection refused", never:subscribe{ "b" })
      local all = {}
      for i = 1, 5 do all[i] = task.start(never.get, never, "b") end
      for i = 1, 5 do fails_in_time("Connection refused", all[i]:join()) end
    end)
    nodes[2].rules.HELLO = function() return "-WRONGPASS no\r\n" end
    local closed <close> = open()
    fails("WRONGPASS", closed:get "c")
    fails("WRONGPASS", closed:blpop("c", 0))
    equal(closed:pipeline():get("c"):get("b"):exec()[1].code, "WRONGPASS")
  end,
  function() -- a command that takes too long, or has no connection
    with_short_timeout({ handles = 1, size = 1 }, function(db)
      fails("timeout", db:gate "b")
      fails("timeout", db:pipeline():gate("b"):exec())
      local list = db:pipeline():get("b"):gate("c"):exec()
      if not list or list[1] ~= "b" then error(TOO_SLOW, 0) end
      equal(list[2].error, "timeout")
    end)
    gate:set()
    nodes[1].rules.CLUSTER = function() gate:wait() return whole_map() end
    gate:clear()
    with_short_timeout({ seeds = { address(1), address(2) } }, function(slow)
      local value = slow:get "b" -- the second seed replies within its share of the timeout
      if not value then error(TOO_SLOW, 0) end
      equal(value, "b")
    end)
    gate:set()
  end,
  function() -- one task reads the map for all; if it is cancelled, another one does
    nodes[1].rules.CLUSTER = function() gate:wait() return whole_map() end
    local db <close> = open()
    local list, mark = {}, #log
    for i = 1, 4 do list[i] = task.start(function() return db:get("b" .. "", i) end) end
    await(function() return is_in_log("1 CLUSTER SLOTS", mark) end)
    await(function() return list[4].status == "waiting" end)
    list[1]:cancel()
    list[3]:cancel()
    fails("cancelled", list[1]:join())
    fails("cancelled", list[3]:join())
    await(function() return count("1 CLUSTER SLOTS", mark) == 2 end)
    gate:set()
    equal(list[2]:join() .. list[4]:join(), "bb")
    equal(count("1 CLUSTER SLOTS", mark), 2)
    gate:clear()
    local closing = open()
    local waiting = {}
    for i = 1, 2 do waiting[i] = task.start(function() return closing:get "b" end) end
    await(function() return waiting[2].status == "waiting" and count("1 CLUSTER SLOTS", mark) == 3 end)
    closing:close()
    for i = 1, 2 do fails("closed", waiting[i]:join()) end
    gate:set()
  end,
  function() -- replicas
    local db <close> = open{ read_from = "replica" }
    local mark = #log
    equal(db:get "b", "b")
    equal(table.concat(log, ",", #log - 2), "4 HELLO 3,4 READONLY,4 GET b")
    db:incr "b"
    equal(log[#log], "1 INCR b")
    equal(db:get "c", "c")
    equal(log[#log], "2 GET c") -- node 2 has no replica
    rule(4, "GET", 1, function() return "-LOADING\r\n" end)
    equal(db:get "b", "b")
    equal(log[#log], "1 GET b")
    rule(4, "GET", 1, function() return moved(3300, 1) end)
    equal(db:get "b", "b")
    equal(log[#log], "1 GET b")
    equal(count("READONLY", mark) >= 3, true)
    nodes[2].rules.READONLY = function() return "-ERR no\r\n" end
    local refused <close> = open{ read_from = "replica" }
    fails("ERR no", refused:get "c")
  end,
  function() -- pipelines are split by node, and the replies are in order
    local db <close> = open()
    local p <close> = db:pipeline()
    equal(#assert(p:exec()), 0)
    local list = assert(p:get("a"):get("b"):wrong("c"):call("GET", "foo"):mget("a", "b"):get("c"):ping():exec())
    equal(#list, 7)
    equal(list[1] .. list[2] .. list[4] .. list[6] .. list[7], "abfoocPING")
    equal(list[3].code .. list[5].code, "WRONGTYPECROSSSLOT")
    equal(#p, 0)
    fails("BLPOP may wait", pcall(p.blpop, p, "b", 0))
    fails("MULTI would change", pcall(p.multi, p))
    fails("CROSSSLOT", db:pipeline():mget("a", "b"):exec())
    equal(db:pipeline():wrong("a"):exec()[1].code, "WRONGTYPE")
    local mark = #log
    map = list_of{ range(0, 10922, 2), range(10923, 16383, 3) }
    nodes[1].rules.GET = function() return moved(3300, 2) end
    list = assert(p:get("b", 1):get("a"):get("b", 2):get("c"):exec())
    equal(table.concat(list), "babc")
    equal(table.concat(log, ",", #log - 1), "2 GET b 1,2 GET b 2")
    equal(count("CLUSTER", mark), 1)
    list = assert(p["end"](p, "c"):get("c"):get("a"):exec()) -- one node closes without a reply
    equal(list[3], "a")
    equal(list[1].error .. list[2].error, ("redis: the connection ended before the reply"):rep(2))
    equal(count("END", mark), 1)
    fails("ended before the reply", p["end"](p, "c"):exec())
    local cut = task.start(function() return db:pipeline():gate("c"):gate("a"):exec() end)
    await(function() return is_in_log("2 GATE c", mark) and is_in_log("3 GATE a", mark) end)
    local other = task.start(function() return db:get("c", "other") end)
    await(function() return other.status == "waiting" end)
    cut:cancel()
    fails("cancelled", cut:join())
    gate:set()
    equal(other:join(), "c")
    equal(db:get "a", "a")
    gate:clear()
  end,
  function() -- a part of a pipeline is not sent, because the command before it in its connection was cut off
    local deaf <close> = tcp.serve("127.0.0.1", 0, { connections = 9, handler = function(conn)
      for command in read_command, conn do
        if command[1] == "HELLO" then conn:write "%0\r\n" else conn:write(text(command[2])) end
        if command[2] == "stop" then gate:wait() end
      end
    end })
    task.sleep(0)
    local port = ":" .. deaf.port .. "\r\n"
    map = list_of{ list_of{ ":0\r\n", ":16383\r\n", list_of{ text "127.0.0.1", port } } }
    local db <close> = open{ size = 1 }
    equal(db:get "stop", "stop")
    local writing = task.start(function() return db:set("b", ("x"):rep(16000000)) end)
    await(function() return writing.status == "waiting" end)
    local after = task.start(function() return db:pipeline():get("b"):get("c"):exec() end)
    await(function() return after.status == "waiting" end)
    writing:cancel()
    fails("cancelled", writing:join())
    equal(table.concat(assert(after:join())), "bc")
    gate:set()
  end,
  function() -- transactions
    local db <close> = open()
    local mark = #log
    local function double(t)
      equal(t:get "b", "b")
      t:multi()
      equal(t:set("b", 1), "QUEUED")
      equal(t:call("SET", "{b}2", 1), "QUEUED")
      equal(t:time(), "QUEUED")
    end
    nodes[1].rules.EXEC = function() return "*2\r\n+1\r\n+2\r\n" end
    equal(table.concat(assert(db:transaction(double, { watch = { "b", "{b}2" } }))), "12")
    equal(table.concat(log, ",", mark + 4), "1 WATCH b {b}2,1 GET b,1 MULTI,1 SET b 1,1 SET {b}2 1,1 TIME,1 EXEC")
    equal(#assert(db:transaction(double)), 2)
    equal(#assert(db:transaction(function() end)), 0)
    equal(#assert(db:transaction(function(t) t:multi() end)), 0)
    equal(#assert(db:transaction(function(t) t:multi() t:set("a", 1) end)), 1)
    equal(log[#log], "3 EXEC")
    equal(#assert(db:transaction(function(t) t:multi() t:ping() end)) > 0, true)
    fails("CROSSSLOT the keys 'a' and 'b'", db:transaction(print, { watch = { "a", "b" } }))
    fails("CROSSSLOT the keys 'b' and 'a'", db:transaction(function(t) t:multi() t:set("b", 1) t:set("a", 1) end))
    equal(#assert(db:transaction(function(t) t:get "b" fails("CROSSSLOT", t:mget("a", "b")) fails("CROSSSLOT", t:get "a") end)), 0)
    fails("has no key yet", pcall(db.transaction, db, function(t) t:time() end))
    fails("gave the transaction up", db:transaction(function() return false end))
    fails("oh", pcall(db.transaction, db, function() error("oh", 0) end))
    local kept
    db:transaction(function(t) kept = t end)
    fails("is over", pcall(kept.get, kept, "a"))
    equal(kept[1], nil)
    nodes[1].rules.EXEC = function() return "_\r\n" end
    fails("a watched key changed, 3 times", db:transaction(double, { retries = 2 }))
    nodes[1].rules.EXEC = function() return nil end
    fails("ended before the reply", db:transaction(double))
    nodes[1].rules.EXEC = nil
    fails("ended before the reply", db:transaction(function(t) t["end"](t, "b") end))
    equal(#assert(db:transaction(function(t) fails("WRONGTYPE", t:wrong "b") end)), 0)
  end,
  function() -- transactions of a slot that moves
    local db <close> = open()
    local function double(t)
      local value = assert(t:get "b")
      t:multi()
      t:set("b", value)
    end
    db:get "b"
    for _, name in ipairs{ "WATCH", "GET", "MULTI", "SET", "EXEC" } do
      for _, word in ipairs{ "ASK", "TRYAGAIN", "MOVED" } do
        local mark = #log
        rule(1, name, 1, function() return moved(3300, 2, word) end)
        if name == "SET" then rule(1, "EXEC", 1, function() return "-EXECABORT because of errors\r\n" end) end
        equal(assert(db:transaction(double, { watch = { "b" } }))[1], "done")
        equal(log[#log], word == "TRYAGAIN" and "1 EXEC" or "2 EXEC")
        equal(count("ASKING", mark), word == "ASK" and 3 or 0)
        db:get "b" -- now the map was read again, and has the slot at its old place
      end
    end
    local calls = 0
    rule(1, "GET", 1, function() return moved(3300, 2) end)
    assert(db:transaction(function(t) -- the second attempt uses another key
      calls = calls + 1
      if calls == 1 then t:get "b" else t:get "a" end
    end))
    equal(log[#log], "3 GET a")
    map = list_of{ list_of{ ":0\r\n", ":16383\r\n", list_of{ text "127.0.0.1", ":" .. free_port() .. "\r\n" } } }
    with_short_timeout({}, function(dead)
      fails_in_time("Connection refused", dead:transaction(function(t) t:get "b" end))
      fails_in_time("Connection refused", dead:transaction(function(t) t:multi() t:get "b" end))
    end)
  end,
  function() -- transactions of coroutines that were dropped give their connections back
    local db <close> = open{ handles = 2 }
    local kept = {}
    for i = 1, 5 do
      coroutine.wrap(function()
        assert(db:transaction(function(t) t:get("b") kept[i] = t coroutine.yield() end, { watch = { "b" } }))
      end)()
    end
    equal(#assert(db:transaction(function(t) t:get("b") end)), 0)
  end,
  function() -- a transaction that gets no connection in time
    with_short_timeout({ handles = 1 }, function(db)
      local results
      db:transaction(function(t)
        if t:get "b" then results = { db:transaction(function(other) other:get "b" end) } end
      end)
      if not results then error(TOO_SLOW, 0) end
      fails("timeout", results[1], results[2])
      equal(results[3], nil)
    end)
  end,
  function() -- subscriptions
    local db <close> = open()
    local sub <close> = assert(db:subscribe{ "c" })
    equal(sub:read().text, "early")
    equal(log[#log], "2 SUBSCRIBE c")
    local all <close> = assert(db:psubscribe{ "a*" })
    equal(all.db, db)
    fails("a list of names", pcall(db.subscribe, db, {}))
  end,
  function() -- a node leaves the map: commands that wait there get their replies
    local db <close> = open()
    local mark = #log
    local held = task.start(function() return db:gate "b" end)
    await(function() return is_in_log("1 GATE b", mark) end)
    local popping = task.start(function() return db:blpop("b", 0) end)
    nodes[1].rules.BLPOP = function() gate:wait() return list_of{ text "b", text "x" } end
    await(function() return is_in_log("1 BLPOP b 0", mark) end)
    equal(#assert(db:transaction(function(t) t:get "b" t:multi() t:set("b", 1) end)), 1) -- leaves a spare connection
    local opening = task.start(function() return db:transaction(function(t) t:get "b" end) end)
    map = list_of{ range(0, 10922, 2), range(10923, 16383, 3) }
    rule(3, "GET", 1, function() return moved(15495, 2) end)
    equal(db:get "a", "a")
    opening:join()
    gate:set()
    equal(held:join(), "b")
    equal(popping:join()[2], "x")
    await(function() return nodes[1].gone == nodes[1].connections end)
    equal(db:get "b", "b")
    equal(log[#log], "2 GET b")
  end,
  function() -- replies of the nodes are cut at each byte: each kind of command fails, or is right
    local kinds = {
      function(db)
        local value = db:get "b"
        return value and value == "b"
      end,
      function(db)
        local list = db:pipeline():get("b"):get("a"):exec()
        if not list or type(list[1]) == "table" or type(list[2]) == "table" then return nil end
        return list[1] .. list[2] == "ba"
      end,
      function(db)
        local list = db:transaction(function(t) t:get "b" t:multi() t:set("b", 1) end, { watch = { "b" } })
        return list and list[1] == "done"
      end,
      function(db)
        local sub <close> = db:subscribe{ "c" }
        local message = sub and sub:read()
        return message and message.text == "early"
      end,
    }
    for i, kind in ipairs(kinds) do
      local cut_at, is_right = 0, nil
      repeat
        local db <close> = open()
        budget, was_cut = cut_at, false
        is_right = kind(db)
        if is_right == false or cut_at > 1000 then error "a reply that was cut is a value" end
        cut_at = cut_at + 4 * i - 3
      until not was_cut
      equal(is_right, true)
      equal(cut_at > 100, true)
      budget = nil
    end
  end,
}

task.start(function()
  for n = 1, 5 do add_node(n) end
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
