-- SPDX-License-Identifier: MIT
--
-- redis.sharded, by docs/redis-sharding.md, with real servers that are killed and stopped; and
-- examples/lua/sharded-hits.lua with a server that this test plays.

local cli = require "cli"
local httpd = require "httpd"
local servers = require "redis-server"
local build = os.getenv("SXE_BUILD") or "build/release"
local counts = build:find("coverage", 1, true) and os.execute("mkdir -p " .. build .. "/lua")

-- promise: docs/redis-sharding.md: [sharded-hits.lua](../examples/lua/sharded-hits.lua) is a handler.
test("the example counts hits and shows the groups, and replies with an error if no server is up", function()
    local listener = wire.listen("127.0.0.1", 0)
    local address = "127.0.0.1:" .. listener:port()
    local server = httpd.spawn{wire.program "sxe-httpd", "-p", "0", "-w", "1", "--lua", "examples/lua/sharded-hits.lua",
        counts and "--lua-coverage=" .. build .. "/lua/sharded-hits.info" or nil,
        env = {REDIS_GROUPS = "red=" .. address .. ",127.0.0.1:1 ", SXE_LOG_LEVEL = "error"}}
    local function send(path)
        local sock = server:connect()
        sock:send("GET " .. path .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sock
    end
    local client <close> = send "/a"
    local conns = {}
    for i = 1, 2 do -- one for the command, and one for the checks
        conns[i] = listener:accept()
        conns[i]:recv_until("HELLO\r\n$1\r\n3\r\n")
        conns[i]:send("%1\r\n+proto\r\n:3\r\n")
    end
    for i = 1, 2 do
        local head = conns[i]:recv_until("\r\n")
        if head == "*1\r\n" then
            equal(conns[i]:recv_until("ROLE\r\n"), "$4\r\nPING\r\n*1\r\n$4\r\nROLE\r\n")
            conns[i]:send("+PONG\r\n-ERR unknown command\r\n")
        else
            equal(conns[i]:recv_until("hits:/a\r\n"), "$4\r\nINCR\r\n$7\r\nhits:/a\r\n")
            conns[i]:send(":7\r\n")
        end
    end
    local body = client:read_reply().body
    check(body:find('"hits":7', 1, true) and body:find('"group":"red"', 1, true), body)
    local state <close> = send "/groups"
    body = state:read_reply().body
    check(body:find('"state":"ok"', 1, true) and body:find('"writer":"' .. address, 1, true), body)
    listener:close()
    for i = 1, 2 do conns[i]:close() end
    local second <close> = send "/a"
    equal(second:read_reply().status, 503)
    server:stop()
    check(not counts or io.open(build .. "/lua/sharded-hits.info"), server.proc:errors())
end)

-- promise: docs/redis-sharding.md: Other programs can compute it.
test("the table of the page has the groups of its keys", function()
    local lines, wanted = {}, {}
    for line in io.lines("docs/redis-sharding.md") do
        local key, ring, modulo = line:match "^| `?([^|`]+)`? | %x+ | (%l+) | %x+ | (%l+) |$"
        if key == "the empty key" then key = "" end
        lines[#lines + 1] = key and ("print(ring:group_of(%q), modulo:group_of(%q))"):format(key, key)
        wanted[#wanted + 1] = key and ring .. "\t" .. modulo .. "\n"
    end
    equal(#lines, 6)
    local ran = require "cli".run("sxe-lua", "-e", [[
local function open(hash)
  local groups = {}
  for i, name in ipairs{ "red", "green", "blue" } do groups[i] = { name = name, masters = { "127.0.0.1:" .. i } } end
  return require "sxe.redis".sharded{ groups = groups, hash = hash }
end
local ring, modulo = open "ring", open "modulo"
]] .. table.concat(lines, "\n"))
    equal(ran.errors, "")
    equal(ran.output, table.concat(wanted))
end)

-- promise: docs/redis-sharding.md: Addresses are `"host:port"` or `"[IPv6]:port"`. An address without a port, such as
-- `"localhost"`, has the port 6379.
test("addresses with and without a port", function()
    local ran = cli.run("sxe-lua", "-e", [[
local redis = require "sxe.redis"
local function try(...)
  local good, db = pcall(redis.sharded, { groups = { { name = "a", masters = { ... } } } })
  if not good then print(db) return end
  for _, server in ipairs(db:state()[1].servers) do print(server.address) end
end
try("localhost", "[::1]", "[::1]:7001", "a.example:1")
try("localhost", "localhost:6379")
for _, wrong in ipairs{ "localhost:", "::1", "[::1", "", ":1", "a b", "a:0", "a:65536", "a:1x" } do try(wrong) end]])
    local wrong <const> = "redis.sharded: the group 'a': a server is \"host:port\" or \"[IPv6]:port\", not '%s'\n"
    local lines = "localhost:6379\n[::1]:6379\n[::1]:7001\na.example:1\n" ..
        "redis.sharded: the group 'a': localhost:6379 is there twice\n"
    for _, text in ipairs{"localhost:", "::1", "[::1", "", ":1", "a b", "a:0", "a:65536", "a:1x"} do
        lines = lines .. wrong:format(text)
    end
    equal(ran.errors, "")
    equal(ran.output, lines)
end)

-- ---- The real servers ----

if not servers.are_installed "groups of real servers" then return end

-- A server that keeps each command in a file before it replies.
local function start(name, ...)
    local more = {...}
    return servers.start(name, function(path, port)
        return {"--port", tostring(port), "--save", "", "--appendonly", "yes", "--appendfsync", "always",
            "--requirepass", "secret", "--masterauth", "secret", "--repl-diskless-sync-delay", "0",
            "--pidfile", path .. "/pid", table.unpack(more)}
    end)
end

-- Two groups: red has a master and its replica, blue two masters. Closing them kills all servers, also those that a script
-- started again.
local groups = {__close = function(all)
    for _, server in pairs(all) do
        os.execute("kill -9 " .. server.proc:pid() .. " $(cat " .. server.path .. "/pid 2>/dev/null) 2>/dev/null")
    end
    servers.remove_files()
end}

local function start_groups()
    local all = setmetatable({}, groups)
    all.master = start("master")
    all.replica = start("replica", "--replicaof", "127.0.0.1", tostring(all.master.port))
    all.first, all.second = start("first"), start("second")
    servers.await_replica(all.master.port)
    return all
end

-- Run a script with a client of the groups, `db`; returns what it prints.
local function run(all, text)
    return cli.output_of(300, {wire.program "sxe-lua", "--sockets", "400", "-e", ([[
local redis, task = require "sxe.redis", require "sxe.task"
local MASTER, REPLICA, FIRST, SECOND = %d, %d, %d, %d
local PIDS = { master = %d, first = %d }
local FIRST_COMMAND = %q
local function at(port) return "127.0.0.1:" .. port end
local function open(options)
  options.groups = {
    { name = "red", masters = { at(MASTER) }, replicas = { at(REPLICA) } },
    { name = "blue", masters = { at(FIRST), at(SECOND) } },
  }
  options.password, options.timeout = "secret", 60
  options.check_interval, options.check_timeout, options.hand_back = 0.02, options.check_timeout or 60, 0.1
  return redis.sharded(options)
end
local function one(port) return redis.new{ port = port, password = "secret", timeout = 60 } end
local function signal(name, pid) assert(os.execute("kill -" .. name .. " " .. pid)) end
local function group(db, n) return db:state()[n] end
]]):format(all.master.port, all.replica.port, all.first.port, all.second.port, all.master.proc:pid(),
           all.first.proc:pid(), all.first.command .. " >/dev/null 2>&1 &") .. text,
        env = {SXE_LOG_LEVEL = "error", PATH = os.getenv "PATH"}})
end

-- promise: docs/redis-sharding.md: A command goes to the group of its keys.
test("keys are in the servers of their groups", function()
    local all <close> = start_groups()
    equal(run(all, [[
local db = open{}
local counts, wrong = { red = 0, blue = 0 }, 0
for i = 1, 300 do
  counts[db:group_of("k" .. i)] = counts[db:group_of("k" .. i)] + 1
  assert(db:set("k" .. i, i))
end
for i = 1, 300 do
  local port = db:group_of("k" .. i) == "red" and MASTER or FIRST
  if i % 30 == 0 and one(port):get("k" .. i) ~= tostring(i) then wrong = wrong + 1 end
end
print(wrong, db:group "red":dbsize() == counts.red, db:group "blue":dbsize() == counts.blue)
db:close()]]), "0\ttrue\ttrue\n")
end)

-- promise: docs/redis-sharding.md: A connection that the server ended or refused counts as a failure, too; several within
-- half of `backoff` count as one.
test("a connection that this client ends, because a large command was cancelled, is no failure of its server", function()
    local all <close> = start_groups()
    equal(run(all, [[
local db = open{ failures = 1, backoff = 0.001 }
local key, big = "a", ("x"):rep(8000000)
for i = 1, 100 do key = db:group_of(key) == "blue" and key or "a" .. i end
local down = 0
for i = 1, 20 do
  local reading = task.start(function() return db:get(key) end)
  local writing = task.start(function() return db:set(key, big) end)
  while writing.status ~= "waiting" do task.sleep(0.001) end
  writing:cancel()
  reading:join()
  task.sleep(0.002)
  for _, server in ipairs(group(db, 2).servers) do down = down + (server.state == "up" and 0 or 1) end
end
print(down, db:set(key, "v"))
db:close()]]), "0\tOK\n")
end)

-- Kill the master of red, which has a key of this group.
local KILLED <const> = [[
local db = open{}
local key = "a"
for i = 1, 100 do key = db:group_of(key) == "red" and key or "a" .. i end
db:set(key, 7)
while one(REPLICA):get(key) ~= "7" do task.sleep(0.001) end
signal("KILL", PIDS.master)
local code
repeat code = select(3, db:set(key, 8)) until code == "GROUPDOWN"
print(db:get(key), group(db, 1).state)
]]

-- promise: docs/redis-sharding.md: If no master is up, commands that only read go to a replica that is up. Other commands
-- fail at once with the code `"GROUPDOWN"`, and nothing was sent.
test("a master is killed: its replica is read", function()
    local all <close> = start_groups()
    equal(run(all, KILLED .. "db:close()"), "7\tread-only\n")
end)

-- promise: docs/redis-sharding.md: When somebody does (`REPLICAOF NO ONE`), `ROLE` says so, and the replica gets the
-- writes.
test("a replica is promoted after its master was killed", function()
    local all <close> = start_groups()
    equal(run(all, KILLED .. [[
one(REPLICA):replicaof("NO", "ONE")
while db:set(key, 9) ~= "OK" do task.sleep(0.001) end
print(db:get(key), group(db, 1).state, group(db, 1).writer == at(REPLICA), one(REPLICA):get(key))
db:close()]]), "7\tread-only\n9\tfailed over\ttrue\t9\n")
end)

-- promise: docs/redis-sharding.md: So no command that writes is sent twice, and no `INCR` counts double.
test("kill -9, a restart, a stall and hand-backs under ten thousand numbered commands", function()
    local all <close> = start_groups()
    equal(run(all, [[
local db = open{ check_timeout = 0.5 }
]] .. servers.KINDS .. [[
local is_over, workers = false, {}
for i = 1, 20 do
  workers[i] = task.start(function()
    while number < 10000 or not is_over do
      number = number + 1
      local id = tostring(number)
      local t = task.start(kinds[number % 4 + 1], id)
      if number % 10 == 0 then
        for _ = 1, number // 10 % 5 do task.sleep(0) end
        t:cancel()
      end
      local value, why = t:join()
      if value == id then good = good + 1
      elseif value ~= nil then wrong = wrong + 1 print(id, value)
      elseif why == "cancelled" then cut = cut + 1
      else
        failed = failed + 1
        task.sleep(0.001) -- a group that is down refuses at once
      end
    end
  end)
end
local function await(is_so) while not is_so() do task.sleep(0.002) end end
await(function() return number >= 1000 end)
signal("KILL", PIDS.first)
await(function() return group(db, 2).writer == at(SECOND) end)
local seen = number
await(function() return number >= seen + 1000 end)
os.execute(FIRST_COMMAND)
await(function() return group(db, 2).state == "ok" end)
print "handed back"
signal("STOP", PIDS.master)
await(function() return group(db, 1).state == "read-only" end)
seen = number
await(function() return number >= seen + 100 end)
signal("CONT", PIDS.master)
await(function() return group(db, 1).state == "ok" end)
is_over = true
for i = 1, 20 do workers[i]:join() end
db:close()
local executed, twice, counted = {}, 0, 0
for _, port in ipairs{ MASTER, FIRST, SECOND } do
  local server = one(port)
  for _, key in ipairs(server:keys "once*") do
    executed[key] = (executed[key] or 0) + server:get(key)
    counted = counted + 1
    if executed[key] ~= 1 then twice = twice + 1 print(key, executed[key]) end
  end
end
print(wrong, twice, good > number // 4, counted > 0)]]), "handed back\n0\t0\ttrue\ttrue\n")
end)
