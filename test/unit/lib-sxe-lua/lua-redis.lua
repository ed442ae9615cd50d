-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: commands of sxe.redis to servers in the same process, played by a script. At the end `done` is
-- true, or an error.
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"

done = false

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal, fails = checks.equal, checks.fails

-- ---- A server that a test plays ----

local peer = dofile "test/unit/lib-sxe-lua/lua-redis-peer.lua"
local read_command, text = peer.read_command, peer.text

local servers = {}

-- A server. For each command, answer(command, connection, data of the connection) returns bytes, "" for no reply, or
-- nil to close; HELLO gets the usual reply if answer returns true. The server counts its connections, and logs all
-- commands.
local function serving(answer)
  local one = { connections = 0, log = {} }

  one.server = tcp.serve("127.0.0.1", 0, { connections = 20, handler = function(conn)
    local state = { number = 0 }

    one.connections = one.connections + 1
    state.id = one.connections
    for command in read_command, conn do
      one.log[#one.log + 1] = table.concat(command, " ")
      local said = answer(command, conn, state)
      if said == true then said = "%1\r\n+proto\r\n:3\r\n" end
      if not said then return end
      conn:write(said)
    end
  end })
  servers[#servers + 1] = one.server
  return one
end

-- Reply to GET x with x; wait at the gate if there is one.
local gate
local function echo(command)
  if command[1] == "HELLO" then return true end
  if command[1] == "GATE" then gate:wait() end
  if command[1] == "NEVER" then return "" end
  if command[1] == "END" then return nil end
  if command[1] == "BAD" then return "rubbish\r\n" end
  if command[1] == "TWICE" then return "+1\r\n+2\r\n" end
  if command[1] == "PUSHED" then return ">1\r\n+news\r\n+after\r\n" end
  if command[1] == "WRONG" then return "-WRONGTYPE not that\r\n" end
  return text(command[2] or command[1])
end

local shared = serving(echo)
local plain = serving(echo)
local old = serving(function(command, _, state)
  if command[1] == "HELLO" then return "-ERR unknown command `HELLO`\r\n" end
  if command[1] == "AUTH" then
    state.user = #command == 3 and command[2] or "default"
    return command[#command] == "secret" and "+OK\r\n" or "-ERR unknown command or invalid password\r\n"
  end
  if command[1] == "SELECT" then
    state.db = command[2]
    return command[2] == "9" and "-ERR DB index is out of range\r\n" or "+OK\r\n"
  end
  return text((state.user or "-") .. (state.db or "-"))
end)
local modern = serving(function(command)
  if command[1] ~= "HELLO" then return text(command[1]) end
  if command[5] and command[5] ~= "secret" then return "-WRONGPASS invalid username-password pair\r\n" end
  return true
end)
local first_ends = serving(function(command, _, state) if state.id > 1 or command[1] == "HELLO" then return echo(command) end end)
local silent = serving(function() return "" end)
local reading = {} -- connections of a server that reads nothing
local deaf = { server = tcp.serve("127.0.0.1", 0, { connections = 5, handler = function(conn)
  read_command(conn)
  conn:write("%0\r\n")
  conn:read(1) -- returns when the next command is being written
  reading[#reading + 1] = conn
  task.event():wait()
end }) }
local ending = { server = tcp.serve("127.0.0.1", 0, { connections = 1, handler = function() end }) }
servers[#servers + 1], servers[#servers + 2] = deaf.server, ending.server

local function open(server, options)
  local all = { port = server.server.port, timeout = 60 }

  for name, value in pairs(options or {}) do all[name] = value end
  return redis.new(all)
end

-- Let other tasks run until is_so() is true.
local function await(is_so)
  repeat task.sleep(0.001) until is_so()
end

-- Wait until the server `plain` has logged this command after the given position of its log.
local function await_plain(text, mark)
  await(function()
    for i = mark + 1, #plain.log do
      if plain.log[i] == text then return true end
    end
  end)
end

-- ---- Cases ----

local cases = {
  function() -- replies, errors, and malformed replies
    local db <close> = open(shared)
    equal(db:get "a\0\r\nb", "a\0\r\nb")
    equal(db:set("k", 12), "k")
    equal(db:call("echo", 7), "7")
    equal(db:pushed(), "after")
    local value, why, code = db:wrong()
    equal(value, nil)
    equal(why .. "|" .. code, "WRONGTYPE not that|WRONGTYPE")
    fails("does not speak its protocol: an element of no type", db:bad())
    equal(db:get "again", "again")
    equal(db:twice(), "1")
    await(function() return db:get "x" == "x" end)
    fails("ended before the reply", db["end"](db))
    equal(db:get "new", "new")
    equal(rawequal(redis.null, require "sxe.json".null), true)
    equal(db.Upper, nil)
    equal(db[1], nil)
    equal(db.get, db.get)
  end,
  function() -- a reply without a command fails the commands that wait
    local db <close> = open(plain, { size = 1 })
    gate = task.event()
    local mark = #plain.log
    local first = task.start(function() return db:call("GATE", 1) end)
    await_plain("GATE 1", mark)
    local others = {}
    for i = 1, 3 do others[i] = task.start(function() return db:twice() end) end
    gate:set()
    equal(first:join(), "1")
    equal(others[1]:join(), "1")
    equal(others[2]:join(), "2")
    equal(others[3]:join() ~= nil, true)
  end,
  function() -- tasks share connections, and each has its own reply
    local db <close> = open(plain, { size = 2 })
    local before, tasks = plain.connections, {}
    for i = 1, 40 do
      tasks[i] = task.start(function()
        for j = 1, 5 do equal(db:get(i .. "." .. j), i .. "." .. j) end
      end)
    end
    for _, one in ipairs(tasks) do one:join() end
    equal(plain.connections - before, 2)
  end,
  function() -- while a connection is being opened, 32 commands wait for it before another one is opened
    for _, number in ipairs{ 32, 33 } do
      local db <close> = open(plain)
      local before, tasks = plain.connections, {}
      for i = 1, number do tasks[i] = task.start(function() return db:get(i .. "") end) end
      for i = 1, number do equal(tasks[i]:join(), i .. "") end
      equal(plain.connections - before, number == 32 and 1 or 2)
    end
  end,
  function() -- a command is cancelled: its late reply reaches no other task
    local db <close> = open(plain, { size = 1 })
    gate = task.event()
    local before, mark = plain.connections, #plain.log
    local tasks = {}
    for i = 1, 3 do
      tasks[i] = task.start(function() return db:call("GATE", i) end)
      if i == 1 then await_plain("GATE 1", mark) end
      await(function() return tasks[i].status == "waiting" end)
    end
    tasks[1]:cancel() -- this task reads for all
    fails("cancelled", tasks[1]:join())
    tasks[3]:cancel()
    fails("cancelled", tasks[3]:join())
    local later = task.start(function() return db:get "later" end)
    await(function() return later.status == "waiting" end)
    gate:set()
    equal(tasks[2]:join(), "2")
    equal(later:join(), "later")
    equal(plain.connections - before, 2)
  end,
  function() -- a timeout: the connection is closed before the late reply comes
    local db <close> = open(plain, { size = 1, timeout = 0.02 })
    local ok, why = db:never()
    equal(ok, nil)
    equal(why, "timeout")
    local other <close> = open(plain, { size = 1 })
    gate = task.event()
    local slow = task.start(function() return db:call("GATE", "late") end)
    fails("timeout", slow:join())
    gate:set()
    equal(other:get "on time", "on time")
  end,
  function() -- a command that waits for a connection times out; then the client is closed
    local db <close> = open(plain, { size = 1 })
    local impatient <close> = open(plain, { size = 1, timeout = 0.02 })
    gate = task.event()
    local mark = #plain.log
    local first = task.start(function() return db:call("GATE", 1) end)
    await_plain("GATE 1", mark)
    local second = task.start(function() return db:get "2" end)
    await(function() return second.status == "waiting" end)
    second:cancel()
    fails("cancelled", second:join())
    local third = task.start(function() return db:get "3" end) -- no connection takes it
    await(function() return third.status == "waiting" end)
    third:cancel()
    fails("cancelled", third:join())
    local fourth = task.start(function() return db:get "4" end)
    await(function() return fourth.status == "waiting" end)
    db:close()
    fails("closed", first:join())
    fails("closed", fourth:join())
    fails("closed", db:get "5")
    db:close()
    gate:set()
    fails("timeout", impatient:never())
  end,
  function() -- many that fail to connect
    local db <close> = redis.new{ port = 1, size = 1 }
    local tasks = {}
    for i = 1, 3 do tasks[i] = task.start(function() return db:ping() end) end
    for i = 1, 3 do fails("Connection refused", tasks[i]:join()) end
    fails("No such file", redis.new{ unix = "/nonexistent/redis" }:ping())
    local closing <close> = open(silent)
    local waiting = task.start(function() return closing:ping() end)
    await(function() return silent.log[#silent.log] == "HELLO 3" end)
    closing:close()
    fails("closed", waiting:join())
    waiting = task.start(function() return open(silent):ping() end)
    await(function() return silent.connections == 2 end)
    waiting:cancel()
    fails("cancelled", waiting:join())
    fails("timeout", open(silent, { timeout = 0.02 }):ping())
    fails("ended before the reply", open(ending):ping())
  end,
  function() -- user, password and database
    equal(open(old):get(), "--")
    equal(open(old, { password = "secret" }):get(), "default-")
    equal(open(old, { password = "secret", user = "ann", db = 3 }):get(), "ann3")
    equal(open(old, { protocol = 2, db = 4 }):get(), "-4")
    equal(open(old, { protocol = 2, password = "secret" }):get(), "default-")
    fails("invalid password", open(old, { password = "x" }):get())
    fails("out of range", open(old, { db = 9 }):get())
    equal(open(modern, { password = "secret", user = "ann" }):ping(), "PING")
    equal(modern.log[1], "HELLO 3 AUTH ann secret")
    equal(open(modern, { password = "secret" }):ping(), "PING")
    fails("WRONGPASS", open(modern, { password = "x" }):ping())
  end,
  function() -- the server closes a connection: its command fails, and the next command uses another connection
    local db <close> = open(first_ends)
    fails("ended before the reply", db:get "a")
    equal(db:get "b", "b")
    equal(first_ends.connections, 2)
    local again <close> = open(first_ends, { size = 1 })
    equal(again:get "c", "c")
    equal(#first_ends.log, 6)
  end,
  function() -- while a long command is written, other tasks leave their commands to the writer
    local db <close> = open(plain, { size = 1 })
    local long = ("x"):rep(3000000)
    equal(db:get "1", "1")
    local tasks = { task.start(function() return #db:get(long) end) }
    for i = 2, 4 do tasks[i] = task.start(function() return db:get(("y"):rep(i * 20000)) end) end
    equal(tasks[1]:join(), #long)
    for i = 2, 4 do equal(#tasks[i]:join(), i * 20000) end
  end,
  -- A command that the server does not read fails; those after it, which were not sent, use another connection
  function()
    local db <close> = open(deaf, { size = 1 })
    local writing = task.start(function() return db:get(("x"):rep(16000000)) end)
    await(function() return #reading == 1 and writing.status == "waiting" end)
    local after = task.start(function() return db:get "after" end)
    await(function() return after.status == "waiting" end)
    writing:cancel()
    fails("cancelled", writing:join())
    await(function() return #reading == 2 end)
    reading[2]:close()
    equal(after:join(), nil)
    reading[1]:close()
    local second = task.start(function() return db:get(("x"):rep(16000000)) end)
    await(function() return #reading == 3 and second.status == "waiting" end)
    reading[3]:close()
    equal(second:join(), nil)
  end,
  function() -- what is refused before a byte is sent
    local db <close> = open(plain)
    fails("MULTI would change", pcall(db.multi, db))
    fails("SUBSCRIBE would change", pcall(db.call, db, "subscribe", "x"))
    fails("CLIENT would change", pcall(db.client, db, "reply", "off"))
    equal(db:client "LIST", "LIST")
    fails("SCRIPT would change", pcall(db.script, db, "debug", "yes"))
    equal(db:script "LOAD", "LOAD")
    fails("a command is a string", pcall(db.call, db, 1))
    fails("argument 1 is a nil", pcall(db.get, db, nil))
    fails("a table of options", pcall(redis.new, "x"))
    fails("no option 'hsot'", pcall(redis.new, { hsot = "x" }))
    fails("port must be a number", pcall(redis.new, { port = "1" }))
    fails("port must be a whole number from 1 to 65535, not 0", pcall(redis.new, { port = 0 }))
    fails("size must be a whole number", pcall(redis.new, { size = 1.5 }))
    fails("unix, or host", pcall(redis.new, { unix = "/x", host = "y" }))
    fails("tls must be a boolean or table", pcall(redis.new, { tls = "yes" }))
    fails("unix has no tls", pcall(redis.new, { unix = "/x", tls = true }))
    fails("redis.new: tls: cert and key go together", pcall(redis.new, { tls = { cert = "c.pem" } }))
    fails("redis.new: tls has no option 'x'", pcall(redis.new, { tls = { x = 1 } }))
    fails("a user needs", pcall(redis.new, { user = "x" }))
    fails("timeout must be", pcall(redis.new, { timeout = 0 }))
    fails("a transaction has no option 'wach'", pcall(db.transaction, db, print, { wach = {} }))
    fails("watch must be a list", pcall(db.transaction, db, print, { watch = "x" }))
    fails("retries must be", pcall(db.transaction, db, print, { retries = -1 }))
    fails("a list of names", pcall(db.subscribe, db, "news"))
    fails("a list of names", pcall(db.psubscribe, db, {}))
  end,
}

task.start(function()
  task.sleep(0)
  local at = 0
  local ok, why = xpcall(function() for i, case in ipairs(cases) do at = i case() end end, debug.traceback)
  collectgarbage()
  for _, one in pairs(servers) do one:close() end
  done = ok or ("case " .. at .. ": " .. tostring(why))
end)
