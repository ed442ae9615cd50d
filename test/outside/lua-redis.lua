-- SPDX-License-Identifier: MIT
--
-- Commands of sxe.redis, by docs/redis.md, to a server in the same process; and to a real server, if it is installed.

local cli = require "cli"

-- GET /try/NAME calls the function NAME and replies with its result as text. The test's Redis server replies to GET
-- with the key, delays the reply to LATE until the gate opens, never replies to NEVER, stops reading at DEAF, and
-- closes the connection at GONE.
local APP = [==[
local redis, http, task = require "sxe.redis", require "sxe.http", require "sxe.task"
local tcp = require "sxe.tcp"
local gate, seen, connections, floods, ended = task.event(), {}, 0, 0, 0
local function read_command(conn)
  local head = conn:read("l")
  local list = {}
  for i = 1, head and tonumber(head:sub(2)) or 0 do
    list[i] = conn:read(tonumber(conn:read("l"):sub(2)))
    conn:read(2)
    if list[1] == "DEAF" then gate:wait() end
  end
  return head and list
end
local function flood(_, conn)
  floods = floods + 1
  while conn:write((">1\r\n+news\r\n"):rep(2000)) do end
  ended = ended + 1
end
local answers = {
  PUSHES = flood, BLPOP = flood, EXEC = flood, MULTI = function() return "+OK\r\n" end,
  SET = function() return "+QUEUED\r\n" end,
  SUBSCRIBE = function(c, conn) conn:write(">3\r\n+subscribe\r\n+" .. c[2] .. "\r\n:1\r\n") flood(c, conn) end,
  HELLO = function() return "%1\r\n+proto\r\n:3\r\n" end,
  GET = function(c) return "$" .. #c[2] .. "\r\n" .. c[2] .. "\r\n" end,
  LATE = function(c) gate:wait() return "+" .. c[2] .. "\r\n" end,
  NEVER = function() return "" end, GONE = function() end,
  RUBBISH = function() return "<html>\r\n" end,
  PROMISE = function() return "*1000000\r\n:1\r\n" end,
  LONG = function() return "$1000000\r\n" end,
  LIST = function() return "*200000\r\n" .. (":1\r\n"):rep(200000) end,
  NULL = function() return "_\r\n" end,
  LPUSH = function() return "-WRONGTYPE no list\r\n" end,
}
local server = tcp.serve("127.0.0.1", 0, {connections = 20, handler = function(conn)
  connections = connections + 1
  for command in read_command, conn do
    seen[#seen + 1] = command[1]
    local said = answers[command[1]](command, conn)
    if not said then return end
    conn:write(said)
  end
end})
local function open(options)
  options.port = server.port
  return redis.new(options)
end
local function count(name)
  local n = 0
  for _, one in ipairs(seen) do n = n + (one == name and 1 or 0) end
  return n
end
local function await(name, n) while count(name) < n do task.sleep(0.001) end end
local tries = {}

function tries.null() return open{}:null() == redis.null end
function tries.err() return table.concat({select(2, open{}:lpush("a", 1))}, "|") end
function tries.raises()
  local db = open{}
  return tostring(pcall(db.get, db, {})) .. tostring(pcall(db.multi, db)) .. #seen
end
function tries.typo() return pcall(redis.new, {prot = 1}) end
function tries.share()
  local db, list = open{}, {}
  list[1] = task.start(function() return db:late("1") end)
  await("LATE", 1)
  for i = 2, 32 do list[i] = task.start(function() return db:get(tostring(i)) end) end
  task.sleep(0)
  local before = connections
  list[33] = task.start(function() return db:get("33") end)
  await("GET", 1) -- sent in another connection
  gate:set()
  for i = 1, 33 do assert(list[i]:join() == tostring(i)) end
  return before .. "," .. connections
end
function tries.first()
  local db, list = open{}, {}
  for i = 1, 4 do list[i] = task.start(function() return db:get(tostring(i)) end) end
  for i = 1, 4 do assert(list[i]:join() == tostring(i)) end
  return connections
end
function tries.list()
  local db, turns, is_done = open{size = 1}, 0, false
  local counter = task.start(function() while not is_done do turns = turns + 1 task.sleep(0) end end)
  local list, after = db:list(), db:get("after")
  is_done = true
  return #list .. " " .. after .. " " .. tostring(turns >= 10)
end
function tries.ends()
  local db = open{size = 1}
  local good, failed, wrong = 0, 0, 0
  for n = 1, 600, 7 do
    local dying = task.start(pcall, function()
      debug.sethook(function() debug.sethook() error("dies", 0) end, "", n)
      db:get("a")
      debug.sethook()
    end)
    local other = task.start(function() return db:get("b" .. n) end)
    dying:join()
    local value, why = other:join()
    if value == "b" .. n then good = good + 1 elseif why:find("ended") then failed = failed + 1 else wrong = wrong + 1 end
  end
  return tostring(good > 0) .. " " .. wrong .. " " .. db:get("after")
end
function tries.unsent()
  local db = open{size = 1, timeout = 60}
  db:get("1")
  local before = connections
  local writing = task.start(function() return db:deaf(("x"):rep(16000000)) end)
  while writing.status ~= "waiting" do task.sleep(0.001) end
  local after = task.start(function() return db:get("after") end)
  while after.status ~= "waiting" do task.sleep(0.001) end
  writing:cancel()
  local why = select(2, writing:join())
  return why .. " " .. after:join() .. " " .. connections - before
end
function tries.following()
  local db, big = open{size = 1, timeout = 60}, ("x"):rep(8000000)
  db:get("1")
  local writing = task.start(function() return db:late("1", big) end)
  while writing.status ~= "waiting" do task.sleep(0.001) end
  for i = 1, 3 do task.start(function() db:get(tostring(i)) end) end
  local more = ("x"):rep(16000000) -- more than the kernel takes for a server that does not read
  local second = task.start(function() return db:late("2", more) end)
  while second.status ~= "waiting" do task.sleep(0.001) end -- until its command has its place
  local after = task.start(function() return db:get("after") end)
  await("LATE", 1)
  for _ = 1, 10 do task.sleep(0.001) end -- its task now writes what follows
  writing:cancel()
  local why = select(2, writing:join())
  gate:set() -- if all went to another connection, the second one answers
  local value = after:join()
  second:cancel()
  return why .. " " .. tostring(value or select(2, after:join()))
end
function tries.late()
  local db, slow = open{size = 1}, open{size = 1, timeout = 0.02}
  local list = {}
  for i = 1, 3 do list[i] = task.start(function() return db:late(tostring(i)) end) end
  await("LATE", 1)
  list[2]:cancel()
  local cut = select(2, list[2]:join())
  local after = task.start(function() return db:get("after") end)
  local timed = select(2, slow:late("4"))
  gate:set()
  return table.concat({cut, timed, list[1]:join(), list[3]:join(), after:join()}, " ")
end
function tries.twice()
  local db = open{}
  local _, why = db:gone()
  return why .. " " .. count("GONE") .. " " .. db:get("next")
end
function tries.rubbish()
  local db = open{reply_max = 4096}
  local a, b = select(2, db:rubbish()), select(2, db:long())
  return (a:match("speak")) .. " " .. b:match("longer than reply_max, 4096 bytes") .. " " .. db:get("next")
end
function tries.memory()
  local db = open{timeout = 0.05}
  collectgarbage()
  local before = collectgarbage("count")
  local _, why = db:promise()
  return why .. " " .. tostring(collectgarbage("count") - before < 1000)
end
function tries.dropped()
  local db = open{handles = 2, timeout = 60}
  for _ = 1, 5 do
    coroutine.wrap(function() db:transaction(function(t) t:get("a") coroutine.yield() end) end)()
  end
  return #assert(db:transaction(function(t) t:get("a") end))
end
function tries.flood()
  local hasty, db, list = open{timeout = 0.05}, open{timeout = 60}, {}
  local function await_end() while ended < floods do task.sleep(0.001) end end
  local function try(fn) -- until it was in time to be sent
    local before, why = floods, nil
    repeat why = select(2, fn()) until floods > before or why ~= "timeout"
    list[#list + 1] = why
    await_end()
  end
  try(function() return hasty:pushes() end)
  try(function() return hasty:blpop("k", 0.01) end)
  try(function() return hasty:transaction(function(t) t:multi() t:set("a", 1) end) end)
  local sub = db:subscribe{"a"}
  list[4], list[5] = select(2, sub:read(0.05)), select(2, sub:read(0))
  sub:close()
  await_end()
  local before = floods
  local other = task.start(function() return db:pushes() end)
  while floods == before do task.sleep(0.001) end
  other:cancel()
  list[6] = select(2, other:join())
  await_end()
  db:subscribe{"a"}
  db:close()
  await_end()
  return table.concat(list, " ")
end
return function(req)
  local a, b = tries[req.path:match("%w+$")]()
  return tostring(a) .. (b == nil and "" or " " .. tostring(b))
end
]==]

local function try(name)
    local server <close> = require "script".start(APP, "--stop-timeout", "0.01") -- connections of Redis stay
    return server:ask("/try/" .. name)
end

-- promise: docs/redis.md: The value of a missing key is `redis.null`; nil is an error.
test("a missing key is redis.null", function() equal(try "null", "true") end)

-- promise: docs/redis.md: | error | `nil, message, code`; the code is its first word, `"WRONGTYPE"` |
test("an error of the server has a code", function() equal(try "err", "WRONGTYPE no list|WRONGTYPE") end)

-- promise: docs/redis.md: Any other value raises an error, before a byte is sent.
test("wrong arguments and unknown commands raise", function() equal(try "raises", "falsefalse0") end)

-- promise: docs/redis.md: An unknown option, or an option of another type, raises an error.
test("a misspelt option raises", function() check(try("typo"):find("false redis.new: there is no option", 1, true)) end)

-- promise: docs/redis.md: Another connection is opened when 32 commands wait in each, up to `size`.
test("32 commands share a connection", function() equal(try "share", "1,2") end)

-- promise: docs/redis.md: Another connection is opened when 32 commands wait in each, up to `size`.
test("four commands wait for one connection that is being opened", function() equal(try "first", "1") end)

-- promise: docs/redis.md: A long reply is decoded while its bytes arrive, so it delays no other task.
test("a counter goes on while a long list comes", function() equal(try "list", "200000 after true") end)

-- promise: docs/redis.md: A task may read or write for other tasks. If it ends meanwhile, for instance by its limit
-- of CPU time, the others still get their replies, or an error at once.
test("a task that ends in a command delays no other", function() equal(try "ends", "true 0 after") end)

-- promise: docs/redis.md: Commands that were not written yet go to another connection.
test("a command that was not sent goes to another connection", function() equal(try "unsent", "cancelled after 1") end)

-- promise: docs/redis.md: Commands that were not written yet go to another connection.
test("a command after a large one is executed, although the task that writes both is cancelled", function()
    equal(try "following", "cancelled after")
end)

-- promise: docs/redis.md: A reply never reaches another task than its own.
test("a late reply reaches no other task", function() equal(try "late", "cancelled timeout 1 3 after") end)

-- promise: docs/redis.md: A command is never sent twice.
test("a command whose connection ends is not repeated", function()
    equal(try "twice", "redis: the connection ended before the reply 1 next")
end)

-- promise: docs/redis.md: A reply that is no RESP, is longer than `reply_max`, or has lists 33 deep, closes the
-- connection, and all its commands fail.
test("rubbish ends a connection, and not the client", function() equal(try "rubbish", "speak longer than reply_max, 4096 bytes next") end)

-- promise: docs/redis.md: The wait ends at the timeout, whatever arrives: a server that sends without end cannot
-- delay it.
test("pushes without end outlast no timeout, and their connections are dropped", function()
    equal(try "flood", "timeout timeout timeout timeout timeout cancelled")
end)

-- promise: docs/redis.md: A coroutine that yields in the function of a transaction and is dropped executes nothing either,
-- and the collector closes its connection.
test("a transaction of a coroutine that is dropped keeps no connection", function()
    equal(try "dropped", "0")
end)

-- promise: docs/redis.md: Memory grows with the bytes that arrived, not with the lengths that the server announces.
test("a length that the server announces takes no memory", function() equal(try "memory", "timeout true") end)

-- ---- The example, with a server of this script ----

local build = os.getenv("SXE_BUILD") or "build/release"
local counts = build:find("coverage", 1, true) and os.execute("mkdir -p " .. build .. "/lua")

local function with_example(port, examine)
    local httpd = require "httpd"
    local server <close> = httpd.spawn{wire.program "sxe-httpd", "-p", "0", "-w", "1", "--lua", "examples/lua/hits.lua",
        counts and "--lua-coverage=" .. build .. "/lua/hits.info" or nil, env = {REDIS_PORT = tostring(port)}}
    local function send()
        local sock = server:connect()
        sock:send("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sock
    end
    examine(send)
end

-- promise: docs/redis.md: [hits.lua](../examples/lua/hits.lua) is a handler.
test("the example counts hits, and replies with an error if there is no Redis", function()
    local listener = wire.listen("127.0.0.1", 0)
    with_example(listener:port(), function(send)
        local client <close> = send()
        local conn = listener:accept()
        equal(conn:recv_until("$1\r\n3\r\n"), "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n")
        conn:send("%1\r\n+proto\r\n:3\r\n")
        equal(conn:recv_until("$1\r\n1\r\n"),
              "*4\r\n$7\r\nHINCRBY\r\n$4\r\nhits\r\n$2\r\n/a\r\n$1\r\n1\r\n")
        conn:send(":7\r\n")
        check(client:read_reply().body:find('"hits":7', 1, true))
        listener:close()
        conn:close()
        local second <close> = send()
        equal(second:read_reply().status, 503)
    end)
end)

-- ---- The real server ----

local as_root = require "as-root"
local program = wire.has "redis-server"
if not program then
    print("skipped: commands to the real Redis, because redis-server is not installed")
    return
end

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))
local path = directory .. "/redis"

-- Start a server with a password at a socket in the directory, and wait until it listens.
local function start_redis()
    local proc = wire.spawn{program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", directory,
                            "--requirepass", "secret", "--logfile", directory .. "/log"}
    require "httpd".wait_until(function() return (pcall(wire.connect, path, 0)) end, "redis-server listens")
    return proc
end

local function run(text, env)
    return cli.output_of(120, {wire.program "sxe-lua", "-e", [[
local redis, task = require "sxe.redis", require "sxe.task"
local function open(options)
  options.unix, options.timeout = "]] .. path .. [[", options.timeout or 60
  return redis.new(options)
end
]] .. text, env = env})
end

-- promise: docs/redis.md: | `unix` | the path of the server's socket, in place of host and port | |
test("the real server stores any bytes, and returns all types", function()
    local server <close> = start_redis()
    equal(run[[
for _, protocol in ipairs{2, 3} do
  local db = open{protocol = protocol, password = "secret", db = 1}
  local bytes = {}
  for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
  bytes = table.concat(bytes):rep(1000)
  print(db:set("a", bytes), db:get("a") == bytes, db:get("none") == redis.null, db:strlen("a"))
  print(select(3, db:lpush("a", 1)))
  db:del("h", "z")
  db:hset("h", "x", 1, "y", 0.1)
  local all = db:hgetall("h")
  print(protocol == 3 and all.y or all[4], table.concat(db:call("lrange", "none", 0, -1), ","))
  db:zadd("z", 2.5, "m")
  print(db:zscore("z", "m"), db:eval("return {1, redis.error_reply('MY x'), false}", 0)[2].code)
end
print(select(3, open{}:get("a")))
print(select(3, open{password = "wrong"}:get("a")))]],
("OK\ttrue\ttrue\t256000\nWRONGTYPE\n0.1\t\n2.5\tMY\n"):rep(2) .. "NOAUTH\nWRONGPASS\n")
end)

-- promise: docs/redis.md: A server whose disk is full refuses writes with the code `"MISCONF"`; reads go on.
as_root.test("a server whose disk is full refuses writes", function()
    if not os.execute "unshare --mount true 2>/dev/null" then
        print("skipped: a full disk of Redis, because this system mounts no small one")
        return
    end
    local small = directory .. "/small"
    assert(os.execute("mkdir " .. small))
    local server <close> = wire.spawn{"unshare", "--mount", "sh", "-c",
        'mount -t tmpfs -o size=1m none "$0" && exec "$@"', small, program, "--port", "0", "--unixsocket", path,
        "--save", "", "--dir", small, "--appendonly", "yes", "--requirepass", "secret", "--logfile", directory .. "/log"}
    require "httpd".wait_until(function() return (pcall(wire.connect, path, 0)) end, "redis-server listens")
    equal(run[[
local db, text = open{ password = "secret" }, ("x"):rep(10000)
local n, value, why, code = 0, nil, nil, nil
repeat
  n = n + 1
  value, why, code = db:set("k" .. n, text)
until not value or n == 10000
print(code, why:match "No space left on device", db:get "k1" == text)
local list = db:pipeline():get "k1":set("a", 1):exec()
print(list[1] == text, list[2].code)]], "MISCONF\tNo space left on device\ttrue\ntrue\tMISCONF\n")
end)

-- Run a script with RESP2 and with RESP3; both must print these lines.
local function run_both(text, lines)
    local server <close> = start_redis()
    equal(run("for _, protocol in ipairs{2, 3} do\nlocal db = open{protocol = protocol, password = 'secret', size = 1}\n" ..
              text .. "\nend"), lines:rep(2))
end

-- promise: docs/redis.md: The replies of a pipeline are a list, in which an error is `{error = message, code = code}`.
test("a pipeline of the real server", function()
    run_both([[
local list = db:pipeline():set("a", 1):lpush("a", 1):get("a"):exec()
print(list[1], list[2].code, list[3])]], "OK\tWRONGTYPE\t1\n")
end)

-- promise: docs/redis.md: The server executes every command of a transaction, or none.
test("the real server refuses a command of a transaction", function()
    run_both([[
print(select(3, db:transaction(function(t) t:multi() t:set("b", 1) t:set("b") end)), db:get("b") == redis.null)
print(pcall(db.transaction, db, function(t) t:multi() t:set("b", 1) error("oh", 0) end))
print(db:get("b") == redis.null)]], "ERR\ttrue\nfalse\toh\ntrue\n")
end)

-- promise: docs/redis.md: If a watched key changed meanwhile, the function is called again, at most `retries` times
-- (default 10);
test("a transaction is repeated if a watched key changes", function()
    run_both([[
local other, times = open{password = "secret"}, 0
db:set("a", 1)
local function add(t)
  local n = t:get("a")
  times = times + 1
  if times == 1 then other:set("a", 10) end
  t:multi()
  t:set("a", n + 1)
  t:get("a")
end
print(db:transaction(add, {watch = {"a"}})[2], times)
times = 0
print(db:transaction(add, {watch = {"a"}, retries = 0}))]], "11\t2\nnil\tredis: a watched key changed, 1 times\n")
end)

-- promise: docs/redis.md: A blocking command has its own connection while it waits, so it delays no other command.
test("a blocking command delays no other", function()
    run_both([[
local waiting = task.start(function() return db:blpop("list", 0) end)
while not db:client("LIST"):find("cmd=blpop", 1, true) do task.sleep(0.001) end
db:rpush("list", "one")
print(waiting:join()[2], db:blpop("list", 0.001) == redis.null, db:xread("BLOCK", 1, "STREAMS", "s", "$") == redis.null)]],
        "one\ttrue\ttrue\n")
end)

-- promise: docs/redis.md: `db:subscribe{...}` and `db:psubscribe{...}` return a subscription when all names are confirmed.
test("a subscription gets the messages of the real server", function()
    run_both([[
local sub <close> = db:subscribe{"a", "b"}
local all <close> = db:psubscribe{"*"}
db:publish("b", "x\0y")
db:publish("c", "z")
local one, two, three = sub:read(), all:read(), all:read()
print(one.channel, #one.text, two.pattern, two.channel, three.channel, three.text)
print((select(2, sub:read(0.001))))]], "b\t3\t*\tb\tc\tz\ntimeout\n")
end)

-- promise: docs/redis.md: If the server does not know the script, for instance after a restart, the text is sent,
-- once.
test("a script that the server forgot is sent again", function()
    run_both([[
local add = db:prepare("return redis.call('INCRBY', KEYS[1], ARGV[1])")
db:del("n")
print(add({"n"}, 2), add({"n"}, 3), db:script("FLUSH"), add({"n"}, 5), add({"n"}, 7), db:get("n"))
print(select(3, db:prepare("return ("){}))]], "2\t5\tOK\t10\t17\t17\nERR\n")
end)

-- promise: docs/redis.md: Each call of `fn` has the client's `timeout`, including its commands and all its other waits;
-- then the transaction fails with `"timeout"`, and nothing is executed.
test("a transaction whose function took too long is not executed", function()
    run_both([[
local brief = open{password = "secret", timeout = 0.1}
local executed, late = 0, 0
for i = 1, 8 do
  db:set("a", 5)
  local options = i % 2 == 0 and {watch = {"a"}} or nil
  local _, why = brief:transaction(function(t) t:multi() t:incr("a") task.sleep(0.102) end, options)
  if why == "timeout" then late = late + 1 end
  task.sleep(0.01)
  if db:get("a") ~= "5" then executed = executed + 1 end
end
print(executed, late)]], "0\t8\n")
end)

-- promise: docs/redis.md: or when it is collected; if `handles` of them are in use, garbage is collected.
test("forgotten subscriptions give their connections back", function()
    run_both([[
local few = open{password = "secret", handles = 4}
for i = 1, 9 do task.start(function() assert(few:subscribe{"n"}) end):join() end
print(#assert(few:transaction(function(t) t:get("a") end)))]], "0\n")
end)

-- promise: docs/redis.md: If the task of a transaction or of a blocking command ends before it, its connection is closed.
test("the real server dies under every kind of handle", function()
    local server <close> = start_redis()
    equal(run([[
local db = open{password = "secret"}
local sub, all = db:subscribe{"a"}, {}
all[1] = task.start(function() return sub:read() end)
all[2] = task.start(function() return db:blpop("list", 0) end)
all[3] = task.start(function()
  return db:transaction(function(t) task.sleep(0) while t:get("x") do task.sleep(0.001) end end, {watch = {"x"}})
end)
all[4] = task.start(function()
  repeat local list, why = db:pipeline():get("a"):get("b"):exec() until not list
  return nil, "ended"
end)
while not db:client("LIST"):find("cmd=blpop", 1, true) do task.sleep(0.001) end
os.execute("kill -9 ]] .. server:pid() .. [[")
for i = 1, 4 do
  local value, why = all[i]:join()
  print(value, why ~= nil)
end]], {SXE_LOG_LEVEL = "error"}), ("nil\ttrue\n"):rep(4)) -- the warnings about failed connections are left out
end)

-- promise: docs/redis.md: A reply never reaches another task than its own.
test("numbered commands with cancellations have their own replies", function()
    local server <close> = start_redis()
    equal(run[[
local db, wrong, good, cut = open{password = "secret", size = 3}, 0, 0, 0
local workers, seed = {}, 1
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n
end
for i = 1, 50 do
  workers[i] = task.start(function()
    for j = 1, 100 do
      local id = i .. ":" .. j
      local t = task.start(function() return db:echo(id) end)
      if random(10) == 0 then
        for _ = 1, random(4) do task.sleep(0) end
        t:cancel()
      end
      local value, why = t:join()
      if value == id then good = good + 1 elseif why == "cancelled" then cut = cut + 1 else wrong = wrong + 1 end
    end
  end)
end
for _, one in ipairs(workers) do one:join() end
print(wrong, good + cut)]], "0\t5000\n")
end)

-- promise: docs/redis.md: A reply never reaches another task than its own.
test("numbered pipelines, transactions and blocking commands with cancellations have their own replies", function()
    local server <close> = start_redis()
    equal(run[[
local db, wrong, good, cut = open{password = "secret", size = 2, handles = 6}, 0, 0, 0
local workers, seed = {}, 1
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n
end
local kinds = {
  function(id) return db:echo(id) end,
  function(id)
    local list, why = db:pipeline():echo("1" .. id):echo(id):exec()
    return list and list[1] == "1" .. id and list[2], why
  end,
  function(id)
    local list, why = db:transaction(function(t)
      local echo, why = t:echo("2" .. id)
      if echo and echo ~= "2" .. id then error("wrong " .. echo) end
      t:multi()
      t:echo(id)
    end, {watch = {"k"}})
    return list and list[1], why
  end,
  function(id)
    local n, why = db:lpush(id, id)
    if not n then return nil, why end
    local list, why = db:blpop(id, 60)
    return list and list[2], why
  end,
}
for i = 1, 20 do
  workers[i] = task.start(function()
    for j = 1, 50 do
      local id = i .. ":" .. j
      local t = task.start(kinds[random(#kinds) + 1], id)
      if random(5) == 0 then
        for _ = 1, random(8) do task.sleep(0) end
        t:cancel()
      end
      local value, why = t:join()
      if value == id then good = good + 1
      elseif why == "cancelled" or why == "closed" then cut = cut + 1
      else wrong = wrong + 1 print(value, why) end
    end
  end)
end
for _, one in ipairs(workers) do one:join() end
print(wrong, good + cut)]], "0\t1000\n")
    os.execute("rm -r " .. directory)
end)
