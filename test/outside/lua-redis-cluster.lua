-- SPDX-License-Identifier: MIT
--
-- redis.cluster, by docs/redis.md, with a cluster of six real servers; and examples/lua/cluster-hits.lua with a server
-- that this test plays.

local cli = require "cli"
local servers = require "redis-server"

local build = os.getenv("SXE_BUILD") or "build/release"
local counts = build:find("coverage", 1, true) and os.execute("mkdir -p " .. build .. "/lua")

local function bulk(text) return ("$%d\r\n%s\r\n"):format(#text, text) end

-- promise: docs/redis.md: [cluster-hits.lua](../examples/lua/cluster-hits.lua) is a handler.
test("the example counts hits, and replies with an error if there is no cluster", function()
    local listener = wire.listen("127.0.0.1", 0)
    local port = listener:port()
    local httpd = require "httpd"
    local server = httpd.spawn{wire.program "sxe-httpd", "-p", "0", "-w", "1", "--lua", "examples/lua/cluster-hits.lua",
        counts and "--lua-coverage=" .. build .. "/lua/cluster-hits.info" or nil,
        env = {REDIS_SEEDS = "127.0.0.1:" .. port, SXE_LOG_LEVEL = "error"}}
    local function send()
        local sock = server:connect()
        sock:send("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sock
    end
    local client <close> = send()
    local conn = listener:accept()
    conn:recv_until("HELLO\r\n$1\r\n3\r\n")
    conn:send("%1\r\n+proto\r\n:3\r\n")
    conn:recv_until("SLOTS\r\n")
    conn:send("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" .. bulk("127.0.0.1") .. ":" .. port .. "\r\n")
    local sent = conn:recv_until("$1\r\n9\r\n")
    check(sent:find("^%*2\r\n%$4\r\nINCR\r\n%$8\r\n{/a}hits\r\n%*3\r\n%$5\r\nLPUSH\r\n%$8\r\n{/a}last\r\n"), sent)
    conn:send(":7\r\n:1\r\n+OK\r\n")
    check(client:read_reply().body:find('"hits":7', 1, true))
    listener:close()
    conn:close()
    local second <close> = send()
    equal(second:read_reply().status, 503)
    server:stop()
    check(not counts or io.open(build .. "/lua/cluster-hits.info"), server.proc:errors())
end)

-- ---- The real servers ----

if not servers.are_installed "a cluster of real servers" then return end

local function start_node(n)
    return servers.start(n, function(_, port, bus)
        return {"--port", tostring(port), "--cluster-enabled", "yes", "--cluster-port", tostring(bus),
            "--cluster-node-timeout", "2000", "--save", "", "--requirepass", "secret", "--masterauth", "secret",
            "--repl-diskless-sync-delay", "0"}
    end)
end

local function ask(...) return servers.cli("secret", ...) end

-- Six servers, three of which are masters; closing the cluster kills them.
local clusters = {__close = function(cluster)
    for _, node in ipairs(cluster) do node.proc:signal("KILL") end
    servers.remove_files()
end}

local function start_cluster()
    local cluster, addresses = setmetatable({}, clusters), {}
    for n = 1, 6 do
        cluster[n] = start_node(n)
        addresses[n] = "127.0.0.1:" .. cluster[n].port
    end
    ask("--cluster", "create", addresses[1], addresses[2], addresses[3], addresses[4], addresses[5], addresses[6],
        "--cluster-replicas", "1", "--cluster-yes")
    for n = 1, 6 do
        require "httpd".wait_until(function()
            local nodes = ask("-p", tostring(cluster[n].port), "cluster", "nodes")
            return select(2, nodes:gsub("slave %x", "")) == 3 and
                ask("-p", tostring(cluster[n].port), "cluster", "info"):find("cluster_state:ok", 1, true)
        end, "node " .. n .. " knows three replicas")
    end
    return cluster
end

-- Run a script with a client of the cluster, `db`; returns what it prints.
local function run(cluster, text)
    return cli.output_of(300, {wire.program "sxe-lua", "--sockets", "400", "-e", ([[
local redis, task, spawn = require "sxe.redis", require "sxe.task", require "sxe.spawn"
local function open(options)
  options.seeds, options.password = {"127.0.0.1:%d", "127.0.0.1:%d"}, "secret"
  options.timeout = options.timeout or 60
  return redis.cluster(options)
end
local db, PORT, VICTIM = open{}, %d, %d
local function cli(...) return spawn{"redis-cli", "-a", "secret", "--no-auth-warning", "-p", tostring(PORT), ...} end
]]):format(cluster[1].port, cluster[2].port, cluster[1].port, cluster[3].proc:pid()) .. text,
        env = {SXE_LOG_LEVEL = "error", PATH = os.getenv "PATH"}})
end

local cluster <close> = start_cluster()

-- promise: docs/redis.md: A command has the slot of its keys.
test("the real cluster has the same slots", function()
    equal(run(cluster, [[
local wrong, bytes = 0, {}
for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
bytes = table.concat(bytes)
for i = 1, 300 do
  local key = bytes:sub(i % 256, i % 256 + i % 7) .. i
  if i % 3 == 0 then key = "{" .. key .. "}" .. i end
  if not db:set(key, i) or db:get(key) ~= tostring(i) then wrong = wrong + 1 end
end
local keys = 0
for _, master in ipairs(db:masters()) do keys = keys + master:dbsize() end
print(wrong, keys, require "sxe.stats".moved)]]):match "^0\t%d+", "0\t300")
end)

-- promise: docs/redis.md: A command whose keys are in different slots is not sent: it fails with the code
-- `"CROSSSLOT"`, and the message names two of the keys.
test("keys in different slots are refused", function()
    equal(run(cluster, [[print(select(2, db:mget("a", "b")))]]),
          "CROSSSLOT the keys 'a' and 'b' are in different slots; name them with the same {hash tag}\tCROSSSLOT\n")
end)

-- promise: docs/redis.md: A pipeline is split by node, and its replies come in the order of the commands.
test("a pipeline of a hundred keys", function()
    equal(run(cluster, [[
local p = db:pipeline()
for i = 1, 100 do p:set("p" .. i, i):get("p" .. i):lpush("p" .. i, 1) end
local list, wrong = assert(p:exec()), 0
for i = 1, 100 do
  if list[3 * i - 2] ~= "OK" or list[3 * i - 1] ~= tostring(i) or list[3 * i].code ~= "WRONGTYPE" then wrong = wrong + 1 end
end
print(#list, wrong)]]), "300\t0\n")
end)

-- promise: docs/redis.md: A blocking command is on the node of its keys, a subscription on the node of its first
-- name.
test("blocking commands and subscriptions go to the right node", function()
    equal(run(cluster, [[
local waiting = task.start(function() return db:blpop("list", 0) end)
task.sleep(0)
db:rpush("list", "one")
print(waiting:join()[2])
local sub <close> = db:subscribe{"a", "b"}
for i = 1, 6 do db:publish("b", i) end -- published at each master in turn
local sum = 0
for i = 1, 6 do sum = sum + 10 ^ sub:read().text // 1 end
print(math.tointeger(sum // 10))
db:set("n", 1)
print(db:transaction(function(t)
  local n = t:get("n")
  t:multi()
  t:set("n", n + 1)
  t:get("n")
end, {watch = {"n"}})[2])
local add = db:prepare("return redis.call('INCRBY', KEYS[1], ARGV[1])")
for _, key in ipairs{"x", "y", "z"} do io.write(add({key}, 2), add({key}, 3), " ") end
print()]]), "one\n111111\n2\n25 25 25 \n")
end)

-- promise: docs/redis.md: With read_from = "replica", commands that only read go to the replicas of their slot in
-- turn;
test("replicas of the real cluster are read", function()
    equal(run(cluster, [[
local reader = open{read_from = "replica"}
local function reads()
  local number = 0
  for _, master in ipairs(db:masters()) do number = number + (master:info("commandstats"):match("cmdstat_get:calls=(%d+)") or 0) end
  return number
end
for i = 1, 100 do reader:set("r" .. i, i) end
reader:close()
local good, on_masters = 0, 0
for round = 1, 300 do -- a replica that is still loading is not in the cluster's map yet
  reader = open{read_from = "replica"}
  for _, master in ipairs(reader:masters()) do master:wait(1, 0) end
  local before = reads()
  good = 0
  for i = 1, 100 do
    for try = 1, 1000 do
      if reader:get("r" .. i) == tostring(i) then good = good + 1 break end
    end
  end
  on_masters = reads() - before
  reader:close()
  if good == 100 and on_masters == 0 then break end
  task.sleep(0.1)
end
print(good, on_masters)]]), "100\t0\n")
end)

-- Numbered commands of each kind until `is_over`, a tenth of them cancelled. Each task must get the reply to its own
-- command, and no INCR may be carried out twice.
local LOAD <const> = servers.KINDS .. [[
local function load(least, is_over)
  local workers = {}
  for i = 1, 20 do
    workers[i] = task.start(function()
      while number < least or not is_over() do
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
        else failed = failed + 1 end
      end
    end)
  end
  for _, one in ipairs(workers) do one:join() end
  local twice, counted = 0, 0
  for _, master in ipairs(assert(db:masters())) do
    for _, key in ipairs(master:keys "once*") do
      counted = counted + 1
      if master:get(key) ~= "1" then twice = twice + 1 print(key, master:get(key)) end
    end
  end
  print(wrong, twice, number >= least, good > number // 2, counted > 0)
end
]]

-- promise: docs/redis.md: While a slot moves, they follow `ASK`, with `ASKING` before them in the same connection.
test("slots move under ten thousand numbered commands", function()
    equal(run(cluster, LOAD .. [[
local is_over = false
task.start(function()
  local id = cli("cluster", "myid"):read "l"
  local other
  for line in cli("cluster", "nodes"):lines() do
    if line:find("master", 1, true) and not line:find("myself", 1, true) then other = line:match "^%x+" end
  end
  local moving = cli("--cluster", "reshard", "127.0.0.1:" .. PORT, "--cluster-from", id, "--cluster-to", other,
    "--cluster-slots", "200", "--cluster-yes")
  moving:read "a"
  is_over = true
end)
load(10000, function() return is_over end)]]), "0\t0\ttrue\ttrue\ttrue\n")
end)

-- promise: docs/redis.md: If a node fails, the map is read from another one. A command that was certainly not sent is sent
-- again, within its `timeout`. A command that may have been sent fails, as in `redis.new`.
test("a master is killed under ten thousand numbered commands", function()
    equal(run(cluster, LOAD .. [[
for _, master in ipairs(db:masters()) do master:flushall() end
for _, master in ipairs(db:masters()) do master:wait(1, 0) end
local is_over = false
task.start(function()
  while number < 3000 do task.sleep(0.001) end
  os.execute("kill -9 " .. VICTIM)
  for i = 1, 300 do -- until all slots answer again
    while not db:get("alive" .. i) do task.sleep(0.01) end
  end
  is_over = true
end)
load(10000, function() return is_over end)]]), "0\t0\ttrue\ttrue\ttrue\n")
end)
