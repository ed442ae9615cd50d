-- SPDX-License-Identifier: MIT
-- For test-lua-docs.c: a handler that compares three sets of names: those that scripts can use, those that
-- lib-sxe-lua/types/ describes, and those that the page explains. The reply has a line for each name that one set
-- lacks.
--
-- A name is "sxe.task.start", "sxe.Task.join" or "_G.sxe_register". The members of an object are found by asking the
-- object for every name that is between quotes in the sources of lib-sxe-lua.

local PAGE = "docs/lua-handlers.md, docs/crypto.md, docs/postgres.md, docs/realms.md, docs/regex.md, docs/sessions.md, docs/store.md, docs/templates.md, docs/workers.md and docs/zlib.md"
local task, tcp, udp, http = require "sxe.task", require "sxe.tcp", require "sxe.udp", require "sxe.http"
local spawn, pool, stats, timer = require "sxe.spawn", require "sxe.pool", require "sxe.stats", require "sxe.timer"
local modules = {
  "task", "timer", "tcp", "udp", "http", "file", "pool", "dict", "spawn", "json", "log", "stats", "tap",
  "client", "redis", "sketch", "encoding", "crypto", "store", "postgres", "regex", "zlib", "session", "template",
  "worker", "multipart", "realm" }

-- The variable names of objects in the page, by the module of the section; "" has those of all sections.
local receivers = {
  task = { t = "Task", lock = "Lock", event = "Event", queue = "Queue" },
  timer = { alarm = "Timer" },
  tcp = { conn = "Connection", server = "TcpServer" },
  udp = { socket = "UdpSocket" },
  http = {
    req = "Request", res = "Response", events = "Events", http_server = "HttpServer", router = "Router",
    files = "Files", proxy = "Proxy",
  },
  file = { f = "File" },
  multipart = { form = "Form" },
  pool = { p = "Pool", element = "Element" },
  dict = { d = "Dict", snapshot = "DictSnapshot", batch = "DictBatch" },
  sketch = { hll = "Hll", bloom = "Bloom", topk = "TopK" },
  crypto = { hash = "Hash", key = "Key" },
  session = { sessions = "Sessions", s = "Session" },
  template = { views = "Views" },
  store = { db = "Store", snapshot = "StoreSnapshot", txn = "StoreTransaction" },
  regex = { re = "Regex" },
  zlib = { stream = "ZlibStream" },
  postgres = { db = "Postgres", tx = "PostgresTransaction", sub = "PostgresSubscription",
    pipeline = "PostgresPipeline" },
  spawn = { child = "Child" },
  worker = { w = "Worker", parent = "WorkerParent" },
  realm = { r = "Realm" },
  stats = { counters = "Counters" },
  client = { response = "ClientResponse", jar = "ClientJar" },
  redis = { db = "Redis", pipeline = "Pipeline", transaction = "Transaction", sub = "Subscription",
    cluster = "RedisCluster", sharded = "RedisSharded" },
  [""] = { s = "Socket", buf = "Buffer", sxe = "" },
}

local function read(path)
  local f <close> = assert(io.open(path))

  return f:read("a")
end

-- ---- What is exported ----

local function names_in_sources()
  local names = {}

  for path in io.popen("ls lib-sxe-lua/*/*.c lib-sxe-crypto/*.c lib-sxe-store/*.c lib-sxe-postgres/*.c lib-sxe-regex/*.c lib-sxe-zlib/*.c"):lines() do
    for name in read(path):gmatch('"([%a_][%w_]*)"') do names[name] = true end
  end
  -- Functions that are written in Lua have names without quotes.
  for path in io.popen("ls lib-sxe-lua/*/*.lua lib-sxe-store/*.lua lib-sxe-postgres/*.lua lib-sxe-regex/*.lua lib-sxe-zlib/*.lua"):lines() do
    for name in read(path):gmatch("[%a_][%w_]*") do names[name] = true end
  end
  return names
end

local function ask(object, name)
  return pcall(function() return object[name] end)
end

-- A handle raises for an unknown name; a userdata returns nil, or a method of its metatable.
local function add_object(exported, candidates, class, object)
  local is_strict = not ask(object, "no name of ours")

  for name in pairs(candidates) do
    local ok, value = ask(object, name)

    if ok and (is_strict or value ~= nil) and not name:find("^__") then
      exported["sxe." .. class .. "." .. name] = true
    end
  end
end

local function add_modules(exported)
  for _, name in ipairs(modules) do
    local module = require("sxe." .. name)

    for key in pairs(type(module) == "table" and module or {}) do exported["sxe." .. name .. "." .. key] = true end
  end
  exported["sxe.worker.parent"] = true -- nil but in a worker
  exported["sxe.log.level"] = require "sxe.log".level ~= nil
end

local function add_globals(exported)
  local sxe = require "sxe"

  for name, value in pairs(sxe) do
    if rawget(_G, name) == value then exported["_G." .. name] = true else exported["sxe." .. name] = true end
  end
  for name in pairs(getmetatable(sxe)) do assert(name:find("^__")) end
  exported["sxe.log_level"], exported["sxe.read_arg"] = sxe.log_level ~= nil, sxe.read_arg ~= nil
end

-- ---- One object of each class ----

local router, files = http.router(), http.static("examples")
local reverse = http.proxy{ servers = "127.0.0.1:1" }
local planned = http.serve{ ip = "127.0.0.1", port = 0, handler = router }
local p = pool.open{ name = "names", count = 1, states = { "free", "used" } }
local counters = stats{ "counter" }
local d = require "sxe.dict".open{ name = "names", cells = 1 }
local batch
local child, conn, server, socket, event_stream, old, response, jar

local function nothing() end

local function make()
  server = tcp.serve("127.0.0.1", 0, function(c) c:read() end)
  conn = assert(tcp.connect("127.0.0.1", server.port))
  socket = assert(udp.open("127.0.0.1", 0))
  socket:sendto("x", "127.0.0.1", socket.local_port)
  socket:recvfrom()
  child = assert(spawn{ "true", stderr = "pipe" })
  d:batch(function(b) batch = b end)
  old = assert(sxe_new_tcp("127.0.0.1", 0, nothing, nothing, nothing))
  sxe_connect(old, "127.0.0.1", server.port)
  local web <close> = tcp.serve("127.0.0.1", 0, function(c)
    c:read()
    c:write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  end)
  response = assert(require "sxe.client".get("http://127.0.0.1:" .. web.port))
  response.state = nil -- not for scripts
  response.decoded = "gzip" -- as in a compressed reply
  jar = require "sxe.client".jar()
  jar.all = nil
  task.sleep(0.1)
end

-- Objects of Redis have a method for each name in small letters; those that are no commands are compared.
local function redis_methods(object, ...)
  local methods = {}

  for _, name in ipairs{ ... } do methods[name] = object[name] end
  return setmetatable(methods, { __name = debug.getmetatable(object).__name })
end

local function redis_objects()
  local web <close> = tcp.serve("127.0.0.1", 0, function(c)
    for line in c:lines() do
      if line == "HELLO" then c:write("%0\r\n") end
      if line == "SUBSCRIBE" then c:write(">3\r\n+subscribe\r\n+a\r\n:1\r\n") end
    end
  end)
  local db <close> = require "sxe.redis".new{ port = web.port }
  local cluster <close> = require "sxe.redis".cluster{ seeds = { "127.0.0.1:" .. web.port } }
  local sharded <close> = require "sxe.redis".sharded{ groups = { { name = "a", masters = { "127.0.0.1" } } } }
  local transaction

  assert(db:transaction(function(t) transaction = t end))
  return {
    Redis = redis_methods(db, "call", "close", "pipeline", "prepare", "psubscribe", "subscribe", "transaction"),
    RedisCluster = redis_methods(cluster, "masters"),
    RedisSharded = redis_methods(sharded, "group", "group_of", "hand_back", "state"),
    Pipeline = redis_methods(db:pipeline(), "call", "exec", "close"),
    Transaction = redis_methods(transaction, "call", "multi"),
    Subscription = redis_methods(assert(db:subscribe{ "a" }), "read", "messages", "close"),
  }
end

local function store_objects()
  local path = os.tmpname()

  os.remove(path)
  local db = assert(require "sxe.store".open(path))
  local transaction
  db:write(function(txn) transaction = txn end)
  os.remove(path)
  os.remove(path .. "-lock")
  return db, db:snapshot(), transaction
end

local function postgres_objects()
  local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
  local web = P.serving{ ['LISTEN "a"'] = { tag = "LISTEN" } }
  local db = require "sxe.postgres".new{ host = "127.0.0.1", port = web.tcp.port, user = "names", tls = false }
  local transaction

  assert(db:transaction(function(tx) transaction = tx end))
  local sub = assert(db:listen{ "a" })
  db:close()
  web.tcp:close()
  return db, transaction, sub
end

-- A worker, and an object with the names that its `parent` has.
local function worker_objects(candidates)
  local w = require "sxe.worker".new{ code = function()
    return function(names)
      local parent, found = require "sxe.worker".parent, {}
      for name in pairs(names) do found[name] = parent[name] and true end
      return found
    end
  end }

  return w, setmetatable(assert(w:call(candidates)), { __name = "sxe.worker parent" })
end

local function objects(req, res, candidates)
  local of_redis = redis_objects()
  local pg, tx, pg_sub = postgres_objects()
  local w, parent = worker_objects(candidates)
  local db, db_snapshot, txn = store_objects()
  local sessions = require "sxe.session".new{ secret = ("s"):rep(32) }

  return {
    Form = require "sxe.multipart".read{
      headers = { ["content-type"] = "multipart/form-data; boundary=B" },
      chunks = function() return string.gmatch("--B--", ".+") end },
    Views = require "sxe.template".new{ root = "examples" },
    Sessions = sessions, Session = sessions:open(req, res),
    Task = task.self(), Lock = task.lock(), Event = task.event(), Queue = task.queue(),
    Timer = timer.after(0, nothing), Connection = conn, TcpServer = server, UdpSocket = socket,
    Request = req, Response = res, Events = event_stream, HttpServer = planned, Router = router, Files = files,
    Proxy = reverse,
    File = require "sxe.file".open("/dev/null"),
    Pool = p, Element = p:at(0), Dict = d, DictSnapshot = d:snapshot(), DictBatch = batch,
    Hll = require "sxe.sketch".hll{ name = "names" },
    Bloom = require "sxe.sketch".bloom{ name = "names", capacity = 1 },
    Hash = require "sxe.crypto".new_digest "sha256",
    Key = require "sxe.crypto".private_key(dofile "test/unit/lib-sxe-crypto/crypto-pems.lua".p256),
    Regex = require "sxe.regex".compile "a", ZlibStream = require "sxe.zlib".compressor(),
    Postgres = pg, PostgresTransaction = tx, PostgresSubscription = pg_sub, PostgresPipeline = pg:pipeline(),
    Store = db, StoreSnapshot = db_snapshot, StoreTransaction = txn,
    TopK = require "sxe.sketch".topk{ name = "names", number = 1 }, Worker = w, WorkerParent = parent,
    Realm = require "sxe.realm".new(),
    ClientResponse = response, ClientJar = jar, Redis = of_redis.Redis,
    RedisCluster = of_redis.RedisCluster, RedisSharded = of_redis.RedisSharded, Pipeline = of_redis.Pipeline,
    Transaction = of_redis.Transaction, Subscription = of_redis.Subscription, Child = child, Counters = counters, Socket = old, Buffer = old.buf,
  }
end

-- Each class of C, and each metatable, must have an object above; except classes without members of their own.
local function add_missing_classes(lines, all)
  local seen = { ["req.headers"] = true, ["req.query"] = true, ["req.cookies"] = true, ["req.params"] = true,
    ["req.escaped_params"] = true, ["res.headers"] = true }

  for _, object in pairs(all) do
    seen[debug.getmetatable(object).__name or tostring(object):match("^(.*) %d+$") or "?"] = true
  end
  for _, name in ipairs{ "sxe pool", "sxe timer", "sxe postgres connection", "sxe postgres options", "sxe.redis batch" } do
    seen[name] = true
  end
  for _, name in ipairs(require "names".classes()) do
    if not seen[name] then lines[#lines + 1] = "lua-docs.lua has no object of the class " .. name end
  end
end

-- ---- Names in lib-sxe-lua/types/ ----

-- Classes with small letters that are no modules are tables of options.
local function is_described(class)
  if class:find("^sxe%.%u") or class == "sxe" then return true end
  for _, name in ipairs(modules) do
    if class == "sxe." .. name then return true end
  end
  return false
end

-- Each parameter of a function must have its line above the function, in order.
local function check_parameters(lines, where, described, line)
  local arguments = line:match("^l?o?c?a?l? ?function [%w_.:]+%((.-)%)")

  if arguments and arguments ~= table.concat(described, ", ") then
    lines[#lines + 1] = where .. " describes (" .. table.concat(described, ", ") .. ") of " .. line
  end
end

local function add_described(lines, described, path)
  local variables, class, parameters = {}, nil, {}

  for line in (read(path) .. "\n"):gmatch("(.-)\n") do
    class = line:match("^%-%-%-@class ([%w_.]+)") or class
    local field, variable = line:match("^%-%-%-@field ([%a_][%w_]*)"), line:match("^local (%w+) = {}")
    local of, name = line:match("^function (%w+)[.:]([%w_]+)%(")
    local global = line:match("^function ([%w_]+)%(")

    if field and is_described(class) then described[class .. "." .. field] = true end
    if variable then variables[variable] = class end
    if of then described[variables[of] .. "." .. name] = true end
    if global then described["_G." .. global] = true end
    parameters[#parameters + 1] = line:match("^%-%-%-@param ([%w_.]+)")
    check_parameters(lines, path, parameters, line)
    if not line:find("^%-%-") then parameters = {} end
  end
end

-- ---- Names in the page ----

local function explained_name(module, text)
  local of, name = text:match("^([%w_]+)[.:]([%w_]+)")
  local class = of and (receivers[module] or {})[of]

  if not of then
    name = text:match("^(sxe_[%w_]+)") or text:match("^(SXEL%d)")
    return name and "_G." .. name
  end
  if of == module then return "sxe." .. of .. "." .. name end
  if not class then return "?." .. text end
  return ("sxe." .. class .. "." .. name):gsub("%.%.", ".")
end

local function explained_names()
  local names, module = {}, ""

  local text = ""

  for _, page in ipairs{ "lua-handlers", "crypto", "postgres", "realms", "regex", "sessions", "store", "templates", "workers", "zlib" } do text = text .. read("docs/" .. page .. ".md") .. "\n" end
  for line in (text:gsub("\n```.-\n```\n", "\n") .. "\n"):gmatch("(.-)\n") do
    if line:find("^## ") then module = line:match('require "sxe%.(%w+)"') or "" end
    for text in line:gmatch("%*%*`([^`]*)") do -- its end may be on the next line
      local name = explained_name(module, text)

      if name then names[name] = true end
    end
  end
  return names
end

-- ---- Comparing ----

local function compare(lines, a, what_a, b, what_b)
  for name in pairs(a) do
    if not b[name] then lines[#lines + 1] = what_b .. " lacks " .. name .. ", which is in " .. what_a end
  end
end

local function check_luacheck(lines, exported)
  local config = { stds = {} }
  local known = {}

  assert(loadfile("lib-sxe-lua/types/luacheckrc", "t", config))()
  for _, name in ipairs(config.stds.sxe.read_globals) do known["_G." .. name] = true end
  for name in pairs(config.stds.sxe.read_globals.sxe.fields) do known["sxe." .. name] = true end
  for name in pairs(known) do
    if not exported[name] then lines[#lines + 1] = "lib-sxe-lua/types/luacheckrc has " .. name end
  end
  for name in pairs(exported) do
    if (name:find("^_G%.") or name:find("^sxe%.[%l_]+$")) and not known[name] then
      lines[#lines + 1] = "lib-sxe-lua/types/luacheckrc lacks " .. name
    end
  end
end

local function check(req, res)
  local exported, described, lines = {}, {}, {}
  local candidates = names_in_sources()
  local all = objects(req, res, candidates)

  for class, object in pairs(all) do add_object(exported, candidates, class, object) end
  exported["sxe.Counters.counter"] = nil
  add_modules(exported)
  add_globals(exported)
  for path in io.popen("ls lib-sxe-lua/types/sxe.lua lib-sxe-lua/types/sxe/*.lua"):lines() do
    add_described(lines, described, path)
  end
  add_missing_classes(lines, all)
  compare(lines, exported, "lib-sxe-lua", described, "lib-sxe-lua/types/")
  compare(lines, described, "lib-sxe-lua/types/", exported, "lib-sxe-lua")
  local explained = explained_names()
  compare(lines, exported, "lib-sxe-lua", explained, PAGE)
  compare(lines, explained, PAGE, exported, "lib-sxe-lua")
  check_luacheck(lines, exported)
  table.sort(lines)
  return table.concat(lines, "\n")
end

return function(req, res)
  if req.path == "/events" then
    event_stream = res:sse()
    task.sleep(100)
    return
  end
  make()
  return check(req, res)
end
