-- SPDX-License-Identifier: MIT
--
-- redis.new with Sentinels, by docs/redis.md, with a real master, its replica and a real Sentinel.

local httpd = require "httpd"
local servers = require "redis-server"

if not servers.are_installed "a master that a real Sentinel watches" then return end

-- Start a server with lines of a file of settings, and further options. Its log says `ready`.
local function start(name, ready, lines, ...)
    local more = {...}
    return servers.start(name, function(path, port)
        local file <close> = assert(io.open(path .. "/conf", "w"))
        file:write(lines)
        return {path .. "/conf", "--port", tostring(port), table.unpack(more)}
    end, ready)
end

local function ask(port, ...) return servers.cli("secret", "-p", tostring(port), ...) end

local groups = {__close = function(group)
    for _, server in pairs(group) do server.proc:signal("KILL") end
    servers.remove_files()
end}

local function start_group()
    local group = setmetatable({}, groups)
    local settings = 'requirepass secret\nmasterauth secret\nsave ""\nrepl-diskless-sync-delay 0\n'

    group.master = start("master", "Ready to accept", settings)
    group.replica = start("replica", "Ready to accept", settings .. "replicaof 127.0.0.1 " .. group.master.port .. "\n")
    group.sentinel = start("sentinel", "Sentinel ID is", ([[
requirepass word
sentinel monitor mine 127.0.0.1 %d 1
sentinel auth-pass mine secret
sentinel down-after-milliseconds mine 1000
sentinel failover-timeout mine 5000
]]):format(group.master.port), "--sentinel")
    servers.await_replica(group.master.port)
    httpd.wait_until(function()
        return ask(group.replica.port, "info", "replication"):find("master_link_status:up", 1, true)
    end, "the replica is linked to its master")
    httpd.wait_until(function()
        local proc <close> = wire.spawn{wire.has "redis-cli", "-a", "word", "--no-auth-warning", "-p",
            tostring(group.sentinel.port), "sentinel", "replicas", "mine"}
        return proc:output(120):find("127.0.0.1:" .. group.replica.port, 1, true)
    end, "the Sentinel knows the replica")
    return group
end

-- promise: docs/redis.md: When a master fails, commands whose replies had not come fail; the master may have executed
-- them or not. Later commands wait for the new master.
test("commands go to the master, and after its death to the replica that the Sentinel chose", function()
    local group <close> = start_group()
    local pid = group.master.proc:pid()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
local redis, spawn, task = require "sxe.redis", require "sxe.spawn", require "sxe.task"
local db = redis.new{ sentinels = { "127.0.0.1:1", "127.0.0.1:%d" }, master = "mine", password = "secret",
  sentinel_password = "word", timeout = 100 }
print(db:set("a", 1), db:wait(1, 50000))
-- When the process is a zombie, its connections are closed: no command gets a reply from it any more.
spawn{"sh", "-c", "kill -9 %d; while grep -qs '^State:.[^Z]' /proc/%d/status; do sleep 0.01; done"}:wait()
-- Commands that went into the connection before its end was seen fail.
local list, right = {}, 0
for i = 1, 100 do list[i] = task.start(db.incr, db, "a") end
for i = 1, 100 do right = right + (list[i]:join() and 1 or 0) end
for i = 1, 100 do assert(db:incr "a") end
print(db:get "a" == tostring(101 + right), db:role()[1])
]]):format(group.sentinel.port, pid, pid), env = {SXE_LOG_LEVEL = "error", PATH = os.getenv "PATH"}}
    equal(proc:output(300), "OK\t1\ntrue\tmaster\n", proc:errors())
    equal(proc:wait(300), 0, proc:errors())
end)

-- promise: docs/redis.md: So a Sentinel that still names the old master, because a network partition separates it,
-- does not block the client.
test("a Sentinel that names a server which is gone, in front of a good one", function()
    local group <close> = start_group()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
local redis, task, tcp = require "sxe.redis", require "sxe.task", require "sxe.tcp"
local asked = 0
local stale = tcp.serve("127.0.0.1", 0, { handler = function(conn)
  for line in function() return conn:read "l" end do
    line = line:upper():gsub("\r", "")
    if line == "HELLO" then conn:write "%%1\r\n+proto\r\n:3\r\n" end
    if line:find "^GET%%-MASTER" then
      asked = asked + 1
      conn:write "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n"
    end
  end
end })
task.sleep(0)
local db = redis.new{ sentinels = { "127.0.0.1:" .. stale.port, "127.0.0.1:%d" }, master = "mine", password = "secret",
  sentinel_password = "word", timeout = 100 }
for i = 1, 3 do print(db:set("a", i)) end
print(asked)
stale:close()
]]):format(group.sentinel.port), env = {SXE_LOG_LEVEL = "error"}}
    equal(proc:output(300), "OK\nOK\nOK\n1\n", proc:errors())
    equal(proc:wait(300), 0, proc:errors())
end)

-- promise: docs/redis.md: then the command fails with the last reason. With a wrong password, or a user that may not
-- use a command, the command fails at once.
test("a name that the Sentinel does not know, and a wrong password", function()
    local group <close> = start_group()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
local redis = require "sxe.redis"
local at = "127.0.0.1:%d"
local options = { sentinels = { at }, master = "yours", password = "secret", sentinel_password = "word", timeout = 2 }
local why = select(2, redis.new(options):get "a")
print(why == "redis: no Sentinel says where the master 'yours' is: " .. at .. ": it does not know this master" or why)
options.master, options.timeout, options.sentinel_password = "mine", 1e9, "wrong"
print(select(3, redis.new(options):get "a"))
options.sentinel_password, options.password = "word", "wrong"
print(select(3, redis.new(options):get "a"))
]]):format(group.sentinel.port), env = {SXE_LOG_LEVEL = "error"}}
    equal(proc:output(300), "true\nWRONGPASS\nWRONGPASS\n")
    equal(proc:wait(300), 0, proc:errors())
end)
