-- SPDX-License-Identifier: MIT
--
-- Upstreams that fail, clients that read slowly, and a proxy between them: which requests fail, which are executed twice,
-- and how much memory the proxy takes.

local httpd = require "httpd"
local json = require "json-text"

local soak = {}

-- After most replies a connection may be idle for a random time of up to 2 ms, so that requests meet its end. One of 50
-- POSTs is executed, and its connection ends without a reply.
local UPSTREAM <const> = [[
local tcp = require "sxe.tcp"
math.randomseed(tonumber(arg[1]))
local executed, sums = {}, { posts = 0, twice = 0, idle = 0, silent = 0, connections = 0 }

local function read_request(conn, idle)
  local method, path = (conn:read("l", idle) or ""):match "^(%u+) (%S+) HTTP/1.1$"
  local length = 0
  if not method then return end
  for line in conn:lines() do
    if line == "" then return method, path, conn:read(length) end
    length = tonumber(line:match "^[Cc]ontent%-[Ll]ength: (%d+)$") or length
  end
end

local function execute(path)
  sums.posts = sums.posts + 1
  if executed[path] then sums.twice = sums.twice + 1 end
  executed[path] = true
end

local server = tcp.serve("127.0.0.1", 0, { connections = 400, handler = function(conn)
  sums.connections = sums.connections + 1
  local idle
  while true do
    local method, path = read_request(conn, idle)
    if not method then
      sums.idle = sums.idle + 1
      return
    end
    if method == "POST" then
      execute(path)
      if math.random(50) == 1 then
        sums.silent = sums.silent + 1
        return
      end
    end
    local body = path == "/sums" and require "sxe.json".encode(sums) or path
    if not conn:write("HTTP/1.1 200 OK\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body) then return end
    idle = math.random(4) > 1 and math.random() * 0.002 or nil
  end
end })
require "sxe.timer".after(0, function() print(server.port) io.stdout:flush() end)
]]

-- One of five requests is a POST. Some clients pause, so that connections are idle for a while.
local LOAD <const> = [[
local client, task, json = require "sxe.client", require "sxe.task", require "sxe.json"
local base, count = arg[1], tonumber(arg[2])
math.randomseed(tonumber(arg[3]))
local sums = { gets = 0, failed = 0, posts = 0, answered = 0, refused = 0, other = 0 }
local number, half = 0, count // 2

local function get(path)
  local reply, why = client.get(base .. path, { timeout = 60 })
  sums.gets = sums.gets + 1
  if not reply or reply.status ~= 200 or reply.body ~= path then
    sums.failed = sums.failed + 1
    sums.why = why or reply.status
  end
end

local function post(path)
  local reply, why = client.post(base .. path, { body = "abc", timeout = 60 })
  sums.posts = sums.posts + 1
  local kind = reply and (reply.status == 200 and reply.body == path and "answered" or reply.status == 502 and "refused") or "other"
  sums[kind] = sums[kind] + 1
  if kind == "other" then sums.why = why or reply.status end
end

local function run()
  while sums.gets < count do
    number = number + 1
    if number == half then print "half" io.stdout:flush() end
    local path = "/" .. number
    if number % 5 == 0 then post(path) else get(path) end
    if math.random(10) == 1 then task.sleep(math.random() * 0.004) end
  end
end

local tasks = {}
for i = 1, 16 do tasks[i] = task.start(run) end
for _, one in ipairs(tasks) do one:join() end
local reply = assert(client.get(base .. "/sums", { timeout = 60 }))
sums.upstream = json.decode(reply.body)
print(json.encode(sums))
]]

-- An upstream that is ended by kill -9. Its requests take some milliseconds, so that some are in flight then.
local MORTAL <const> = [[
local http, task = require "sxe.http", require "sxe.task"
local server = http.serve{ ip = "127.0.0.1", port = 0, handler = function(req)
  if req.path == "/sums" then return {} end
  task.sleep(math.random() * 0.005)
  return req.path
end }
require "sxe.timer".after(0, function() print(server.port) io.stdout:flush() end)
]]

-- A new directory with these files.
local function make_directory(files)
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    for name, text in pairs(files) do
        local file <close> = assert(io.open(directory .. "/" .. name, "w"))
        file:write(text)
    end
    return directory
end

-- Start a script that prints its port. Returns its process and this port.
local function start_upstream(path, seed)
    local proc = wire.spawn{wire.program("sxe-lua"), path, tostring(seed)}
    return proc, assert(tonumber(proc:line(60) or ""), "the upstream does not listen")
end

-- Run the load through the proxy; `at_half` is called when half of it is sent. Returns what was counted.
local function run_load(directory, proxy, count, seed, at_half)
    local load <close> = wire.spawn{wire.program("sxe-lua"), directory .. "/load.lua", "http://127.0.0.1:" .. proxy.port,
        tostring(count), tostring(seed)}
    equal(load:line(600), "half")
    at_half()
    local line = load:line(600)
    return json.decode(line or error(load:errors()))
end

-- Send `count` GETs, and a quarter as many POSTs, to an upstream that closes idle connections.
function soak.close_at_random(count, seed)
    local directory = make_directory{["upstream.lua"] = UPSTREAM, ["load.lua"] = LOAD}
    local upstream <close>, port = start_upstream(directory .. "/upstream.lua", seed)
    local proxy <close> = httpd.start("--proxy", "/=http://127.0.0.1:" .. port)
    local sums = run_load(directory, proxy, count, seed, function() end)
    upstream:signal "TERM"
    os.execute("rm -r " .. directory)
    return sums
end

-- The same with three upstreams, one of which is ended by kill -9 in the middle.
function soak.kill_one(count, seed)
    local directory = make_directory{["upstream.lua"] = MORTAL, ["load.lua"] = LOAD}
    local procs, servers = {}, {}
    for i = 1, 3 do
        local port
        procs[i], port = start_upstream(directory .. "/upstream.lua", seed)
        servers[i] = ("%q"):format("127.0.0.1:" .. port)
    end
    local site <close> = assert(io.open(directory .. "/site.lua", "w"))
    site:write(([[return { upstreams = { app = { servers = { %s } } }, routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(
               table.concat(servers, ", ")))
    site:close()
    local proxy <close> = httpd.start("--config", directory .. "/site.lua")
    local sums = run_load(directory, proxy, count, seed, function() procs[2]:signal "KILL" end)
    for _, i in ipairs{1, 3} do
        procs[i]:signal "TERM"
    end
    for _, proc in ipairs(procs) do
        proc:wait(60)
    end
    os.execute("rm -r " .. directory)
    return sums
end

-- The process that serves: the child of the one that was started.
local function serving_pid(server)
    local file <close> = assert(io.open(("/proc/%d/task/%d/children"):format(server.pid, server.pid)))
    return assert(tonumber(file:read("a"):match "^(%d+) ?$"), "one process serves")
end

-- So many clients ask for a file of 10 MB, and do not read it. Returns by how many bytes the proxy grew for each of them,
-- when nothing moves any more. Then one of them reads the whole file.
function soak.slow_readers(number)
    local size = 10 * 1000 * 1000
    local patience <const> = 3600 -- seconds: on a busy machine it takes long until nothing moves
    local directory = make_directory{file = ("0123456789"):rep(size // 10)}
    local limit = tostring(number + 100)
    local site <close> = assert(io.open(directory .. "/site.lua", "w"))
    local app <close> = httpd.start("-r", directory, "--connections", limit, "--connections-per-address", limit,
                                    "--stall-timeout", tostring(patience))
    site:write(([[return {
        upstreams = { app = { servers = "127.0.0.1:%d", connections = %s, stall_timeout = %d } },
        routes = { ["/{rest...}"] = { proxy = "app" } } }]]):format(app.port, limit, patience))
    site:close()
    local proxy <close> = httpd.start("--config", directory .. "/site.lua", "--connections", limit,
                                      "--connections-per-address", limit, "--stall-timeout", tostring(patience))
    do
        local first <close> = proxy:connect()
        first:send "HEAD /file HTTP/1.1\r\nHost: a\r\n\r\n"
        first:recv_until "\r\n\r\n"
    end
    local pid = serving_pid(proxy)
    local before = wire.rss(pid)
    local clients = {}
    for i = 1, number do
        clients[i] = proxy:connect(65536)
        clients[i]:send "GET /file HTTP/1.1\r\nHost: a\r\n\r\n"
        check(clients[i]:recv_until("\r\n\r\n"):find "^HTTP/1.1 200 OK\r\n")
    end
    setmetatable({pid = pid}, httpd):rest()
    local grown = wire.rss(pid) - before
    check(grown > 0, grown)
    equal(#clients[1]:recv(size), size)
    for _, one in ipairs(clients) do
        one:close()
    end
    os.execute("rm -r " .. directory)
    return grown / number
end

return soak
