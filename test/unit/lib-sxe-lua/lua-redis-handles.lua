-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: pipelines, transactions, subscriptions and blocking commands, with servers in the same process
-- that a script plays. At the end `done` is true, or an error.
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"

done = false

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

-- Let other tasks run until is_so() is true.
local function await(is_so)
  repeat task.sleep(0.001) until is_so()
end

-- ---- A server that the test plays ----

local peer = dofile "test/unit/lib-sxe-lua/lua-redis-peer.lua"
local read_command = peer.read_command

local server, connections, gone, log, gate = nil, 0, 0, {}, task.event()
local execs = {} -- the replies to EXEC, in order; after them, an empty list

local function list_of(...)
  local parts = { "*" .. select("#", ...) .. "\r\n" }

  for _, value in ipairs{ ... } do parts[#parts + 1] = peer.text(value) end
  return table.concat(parts)
end

local answers = {
  HELLO = function() return "%1\r\n+proto\r\n:3\r\n" end,
  GET = function(command) return ("$%d\r\n%s\r\n"):format(#command[2], command[2]) end,
  GATE = function(command) gate:wait() return "+" .. command[2] .. "\r\n" end,
  WRONG = function() return "-WRONGTYPE not that\r\n" end,
  NO = function() return "#f\r\n" end,
  WATCH = function(command) return command[2] == "bad" and "-NOPERM no\r\n" or "+OK\r\n" end,
  MULTI = function() return "+OK\r\n" end,
  NOMULTI = function() return "+OK\r\n" end,
  SET = function(command) return command[2] == "bad" and "-ERR syntax\r\n" or "+QUEUED\r\n" end,
  EXEC = function() return table.remove(execs, 1) or "*0\r\n" end,
  BLPOP = function(command) gate:wait() return list_of(command[2], "x") end,
  XREAD = function() return "+read\r\n" end,
  WAIT = function() return ":1\r\n" end,
  SCRIPT = function(command) return command[3] == "bad" and "-ERR compiling\r\n" or "+5ca1e\r\n" end,
  EVALSHA = function(command)
    if command[4] == "lost" then return "-NOSCRIPT not there\r\n" end
    return command[4] == "wrong" and "-WRONGTYPE not that\r\n" or "+ran\r\n"
  end,
  EVAL = function() return "+text\r\n" end,
  BLMPOP = function() return "" end,
}
function answers.SUBSCRIBE(command)
  if command[2] == "bad" then return "-NOPERM no\r\n" end
  if command[2] == "rubbish" then return "rubbish\r\n" end
  if command[2] == "end" then return nil end
  if command[2] == "never" then return "" end
  local early = ">3\r\n+message\r\n+a\r\n+early\r\n"
  local bytes = ""
  for i = 2, #command do bytes = bytes .. ">3\r\n+subscribe\r\n+" .. command[i] .. "\r\n:1\r\n" .. (i == 2 and early or "") end
  return bytes
end
function answers.PSUBSCRIBE(command)
  return list_of("psubscribe", command[2], "1") .. list_of("pmessage", "n*", "news", "hot")
end

local budget -- bytes that the server sends before it closes; nil: no limit
local last -- the connection that sent the last command
server = tcp.serve("127.0.0.1", 0, { connections = 20, handler = function(conn)
  connections = connections + 1
  for command in read_command, conn do
    log[#log + 1] = table.concat(command, " ")
    last = conn
    local said = answers[command[1]](command)
    if not said then break end
    local is_cut = budget and #said > budget
    if budget then said, budget = said:sub(1, budget), budget - math.min(budget, #said) end
    conn:write(said)
    if is_cut then break end
  end
  gone = gone + 1
end })

local function open(options)
  local all = { port = server.port, timeout = 60 }

  for name, value in pairs(options or {}) do all[name] = value end
  return redis.new(all)
end

-- Wait until the server has logged this command after the given position of its log.
local function await_command(text, mark)
  await(function()
    for i = mark + 1, #log do
      if log[i] == text then return true end
    end
  end)
end

-- ---- Cases ----

local cases = {
  function() -- a pipeline
    local db <close> = open{ size = 1 }
    local p <close> = db:pipeline()
    equal(#assert(p:exec()), 0)
    local list = assert(p:get("a"):wrong():no():call("GET", "b"):exec())
    equal(#list, 4)
    equal(list[1] .. list[4], "ab")
    equal(list[2].code .. list[2].error, "WRONGTYPEWRONGTYPE not that")
    equal(list[3], false)
    equal(#p, 0)
    p:get "c"
    equal(#p, 1)
    p:close()
    equal(#p, 0)
    fails("BLPOP may wait", pcall(p.blpop, p, "x", 0))
    fails("MULTI would change", pcall(p.multi, p))
    fails("a command is a string", pcall(p.call, p, 1))
    fails("a pipeline expected", pcall(p.get, {}, "x"))
    fails("argument 2 is a table", pcall(p.get, p, "x", {}))
    equal(p[2], nil)
    db:close()
    fails("closed", p:get("d"):exec())
  end,
  function() -- a pipeline that is cancelled between its replies: a late reply reaches no other task
    local db <close> = open{ size = 1 }
    local mark, before = #log, connections
    local cut = task.start(function() return db:pipeline():get("1"):gate("2"):get("3"):exec() end)
    await_command("GATE 2", mark)
    local other = task.start(function() return db:get "other" end)
    await(function() return other.status == "waiting" end)
    cut:cancel()
    fails("cancelled", cut:join())
    local later = task.start(function() return db:get "later" end)
    await(function() return later.status == "waiting" end)
    gate:set()
    equal(other:join(), "other")
    equal(later:join(), "later")
    equal(connections - before, 2)
    gate:clear()
  end,
  function() -- transactions, one after another in one connection
    local db <close> = open()
    local before, mark = connections, #log
    execs[1], execs[2] = list_of("1", "2"), "_\r\n"
    local list = assert(db:transaction(function(t)
      equal(t:get "a", "a")
      t:multi()
      equal(t:set("a", 1), "QUEUED")
      t:multi()
      equal(t:call("SET", "b", 2), "QUEUED")
    end, { watch = { "a", "b" } }))
    equal(list[1] .. list[2], "12")
    equal(table.concat(log, ",", mark + 1), "HELLO 3,WATCH a b,GET a,MULTI,SET a 1,SET b 2,EXEC")
    local times = 0
    equal(#assert(db:transaction(function(t) times = times + 1 t:multi() t:set("a", 1) end, { watch = { "a" } })), 0)
    equal(times, 2) -- a watched key had changed the first time
    execs[1], execs[2] = "_\r\n", "_\r\n"
    fails("a watched key changed, 2 times", db:transaction(function(t) t:multi() t:set("a", 1) end, { retries = 1 }))
    equal(connections - before, 1)
  end,
  function() -- transactions that fail, or that their task abandons
    local db <close> = open()
    local kept
    execs[1] = "-EXECABORT because of errors\r\n"
    local _, why, code = db:transaction(function(t) t:multi() t:set("a", 1) t:set("bad") end)
    equal(why .. "|" .. code, "ERR syntax|ERR")
    equal(#assert(db:transaction(function(t) kept = t end)), 0)
    equal(#assert(db:transaction(function(t) t:multi() end)), 0)
    fails("of this handle is over", pcall(kept.get, kept, "a"))
    equal(kept[1], nil)
    fails("NOPERM", db:transaction(print, { watch = { "bad" } }))
    fails("gave the transaction up", db:transaction(function() return false end))
    fails("oh", pcall(db.transaction, db, function() error("oh", 0) end))
    answers.MULTI, answers.NOMULTI = function() return "-NOPERM multi\r\n" end, answers.MULTI
    fails("NOPERM multi", db:transaction(function(t) t:multi() t:set("a", 1) end))
    answers.MULTI = answers.NOMULTI
    answers.EXEC, answers.KEPT = function() return nil end, answers.EXEC
    fails("ended before the reply", db:transaction(function(t) t:multi() t:set("a", 1) end))
    answers.EXEC = answers.KEPT
    local mark, before = #log, gone
    local cut = task.start(function() return db:transaction(function(t)
      fails("cancelled", t:gate "x")
      fails("closed", t:get "y")
    end, { watch = { "a" } }) end)
    await_command("GATE x", mark)
    cut:cancel()
    fails("closed", cut:join())
    gate:set()
    await(function() return gone > before end)
    gate:clear()
    db:close()
    fails("closed", db:transaction(print))
  end,
  function() -- when the time of a transaction is over, nothing is executed
    local db <close> = open{ timeout = 0.02 }
    for _, options in ipairs{ {}, { watch = { "a" } } } do
      local mark = #log
      fails("timeout", db:transaction(function(t) t:multi() t:set("a", 1) task.sleep(0.03) end, options))
      equal(table.concat(log, ",", mark + 1):find("MULTI", 1, true), nil)
    end
  end,
  function() -- subscriptions that were forgotten give their connections back
    local db <close> = open{ handles = 2 }
    for _ = 1, 5 do assert(task.start(function() assert(db:subscribe{ "a" }) end):join() == nil) end
    equal(#assert(db:transaction(function(t) t:get "a" end)), 0)
  end,
  function() -- transactions of coroutines that were dropped give their connections back
    local db <close> = open{ handles = 2 }
    local kept = {}
    local before = gone
    for i = 1, 5 do
      coroutine.wrap(function()
        return db:transaction(function(t) t:get "a" kept[i] = t coroutine.yield() end, { watch = { "a" } })
      end)()
    end
    equal(#assert(db:transaction(function(t) t:get "a" end)), 0)
    collectgarbage()
    await(function() return gone - before >= 5 end)
    fails("closed", kept[5]:get "a")
  end,
  function() -- a blocking command has its own connection, which the next one uses again
    local db <close> = open{ handles = 1 }
    local impatient <close> = open{ handles = 1, timeout = 0.02 }
    local before, mark = connections, #log
    local pop = task.start(function() return db:blpop("a", 0) end)
    await_command("BLPOP a 0", mark)
    equal(db:get "not held up", "not held up")
    local second = task.start(function() return db:call("XREAD", "BLOCK", 5, "STREAMS", "s", 0) end)
    await(function() return second.status == "waiting" end)
    equal(db:xread("COUNT", 1, "STREAMS", "block", 0), "read") -- this one does not block
    equal(db:xread("STREAM"), "read")
    gate:set()
    equal(pop:join()[2], "x")
    equal(second:join(), "read")
    equal(db:wait(), 1)
    equal(connections - before, 2)
    gate:clear()
    local held = task.start(function() return db:blpop("b", 5) end)
    await_command("BLPOP b 5", mark)
    local vain = task.start(function() return db:wait(0, 0) end) -- no connection is free
    await(function() return vain.status == "waiting" end)
    vain:cancel()
    fails("cancelled", vain:join())
    held:cancel()
    fails("cancelled", held:join())
    fails("timeout", impatient:blmpop(0.001, 1, "a", "LEFT")) -- after the server's time and its own timeout
    local ended = redis.new{ port = 1, handles = 1 }
    local tasks = {}
    for i = 1, 3 do tasks[i] = task.start(function() return ended:wait(0, 0) end) end
    for i = 1, 3 do fails("Connection refused", tasks[i]:join()) end
  end,
  function() -- connections that the server closed are not used
    local db <close> = open()
    for _, send in ipairs{ function() return db:wait(0, 0) == 1 end, function() return db:get "x" == "x" end } do
      equal(send(), true)
      local before, number = gone, connections
      last:close()
      await(function() return gone > before end)
      for _ = 1, 30 do task.sleep(0.001) end -- by now the client has noticed; if not, the first command fails
      await(function() return send() and connections > number end)
    end
  end,
  function() -- messages
    local db <close> = open()
    local sub <close> = assert(db:subscribe{ "a", "b" })
    local early = assert(sub:read(60))
    equal(early.channel .. early.text .. tostring(early.pattern), "aearlynil")
    fails("timeout", sub:read(0.001))
    for _, seconds in ipairs{ "1", -1, 0 / 0, false } do fails("a timeout in seconds", pcall(sub.read, sub, seconds)) end
    local cut = task.start(function() return sub:read() end)
    await(function() return cut.status == "waiting" end)
    cut:cancel()
    fails("cancelled", cut:join())
    last:write(">2\r\n+pong\r\n+x\r\n+OK\r\n>3\r\n+message\r\n+b\r\n$3\r\n1\0003\r\n")
    last:write(">3\r\n+message\r\n+b\r\n+close\r\n")
    local texts = {}
    local reader = task.start(function()
      for message in sub:messages() do
        texts[#texts + 1] = message.text
        if message.text == "close" then return sub:close() end
      end
    end)
    reader:join()
    equal(table.concat(texts, ","), "1\0003,close")
    fails("closed", sub:read())
    equal(sub:messages()(), nil)
    equal(sub.nothing, nil)
  end,
  function() -- messages of a pattern, in RESP2
    local db <close> = open()
    local sub <close> = assert(db:psubscribe{ "n*" })
    local message = assert(sub:read())
    equal(message.channel .. message.text .. message.pattern, "newshotn*")
    local waiting = task.start(function() return sub:read() end)
    await(function() return waiting.status == "waiting" end)
    db:close()
    fails("closed", waiting:join())
    fails("closed", db:subscribe{ "a" })
  end,
  function() -- subscriptions that fail
    local db <close> = open()
    local brief <close> = open{ timeout = 0.02 }
    fails("NOPERM", db:subscribe{ "bad" })
    fails("does not speak its protocol", db:subscribe{ "rubbish" })
    fails("the connection ended", db:subscribe{ "end" })
    fails("timeout", brief:subscribe{ "never" })
    local mark, before = #log, gone
    local cut = task.start(function() return db:subscribe{ "never" } end)
    await_command("SUBSCRIBE never", mark)
    cut:cancel()
    fails("cancelled", cut:join())
    await(function() return gone > before end)
    local sub <close> = assert(db:subscribe{ "a" })
    equal(sub:read().text, "early")
    last:close()
    fails("the connection ended", sub:read())
    fails("the connection ended", pcall(sub:messages()))
  end,
  function() -- a script is sent as its hash, and as text if the server does not know the hash
    local db <close> = open()
    local run = db:prepare "return 1"
    equal(run({ "k" }, "a", 2), "ran")
    equal(run({}), "ran")
    equal(run({ "lost" }), "text")
    fails("WRONGTYPE", run({ "wrong" }))
    equal(log[#log], "EVALSHA 5ca1e 1 wrong")
    equal(log[#log - 1], "EVAL return 1 1 lost")
    fails("ERR compiling", db:prepare "bad"({}))
    fails("a script is a string", pcall(db.prepare, db, 1))
    fails("a list of keys, not a string", pcall(run, "ab", 1))
    fails("a list of keys, not a nil", pcall(run))
    fails("a transaction is a function, not a nil", pcall(db.transaction, db))
    equal(db:wait(1, -60000), 1)
  end,
  function() -- replies of the server are cut at each byte: each kind of command fails, or is right
    local kinds = {
      function(db)
        local list = db:pipeline():get("a"):get("b"):exec()
        return list and list[1] .. list[2] == "ab"
      end,
      function(db)
        execs[1] = list_of("1", "2")
        local list = db:transaction(function(t) t:get "a" t:multi() t:set("a", 1) t:set("b", 2) end, { watch = { "a" } })
        return list and list[1] .. list[2] == "12"
      end,
      function(db)
        local list = db:blpop("a", 0)
        return list and list[2] == "x"
      end,
      function(db)
        local sub <close> = db:subscribe{ "a" }
        local message = sub and sub:read()
        return message and message.text == "early"
      end,
      function(db)
        local value = db:prepare "return 1"{}
        return value and value == "ran"
      end,
    }
    gate:set()
    for _, kind in ipairs(kinds) do
      local is_right
      local cut_at = 0
      repeat
        local db <close> = open()
        budget, execs = cut_at, {}
        is_right = kind(db)
        if is_right == false or cut_at > 500 then error "a reply that was cut is a value" end
        db:close()
        await(function() return gone == connections end)
        cut_at = cut_at + 1
      until is_right
      equal(cut_at > 30, true)
    end
    budget = nil
    gate:clear()
  end,
  function() -- a command that its server does not read
    local reading
    local deaf <close> = tcp.serve("127.0.0.1", 0, function(conn)
      read_command(conn)
      conn:write("%0\r\n")
      conn:read(1) -- returns when the next command is being written
      reading = conn
      task.event():wait()
    end)
    task.sleep(0)
    local db <close> = redis.new{ port = deaf.port, timeout = 60 }
    local writing = task.start(function() return db:subscribe{ ("x"):rep(16000000) } end)
    await(function() return reading and writing.status == "waiting" end)
    writing:cancel()
    fails("cancelled", writing:join())
    reading:close()
  end,
}

task.start(function()
  task.sleep(0)
  local at = 0
  local ok, why = xpcall(function() for i, case in ipairs(cases) do at = i case() end end, debug.traceback)
  collectgarbage()
  server:close()
  done = ok or ("case " .. at .. ": " .. tostring(why))
end)
