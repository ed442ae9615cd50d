-- SPDX-License-Identifier: MIT
--
-- TLS of sxe.redis, by docs/redis.md, with the real server and certificates made by the openssl command.

local cli = require "cli"

local function is_good(command)
    local proc <close> = wire.spawn{"sh", "-c", command .. " >/dev/null 2>&1"}
    return proc:wait(60) == 0
end

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: TLS of sxe.redis, because sxe-lua was built without OpenSSL 3")
    return
end
if not is_good 'openssl version && ldd "$(command -v redis-server)" | grep libssl' then
    print("skipped: TLS of sxe.redis, because the openssl command or a redis-server with TLS is not installed")
    return
end

local function read(path)
    local file <close> = io.open(path)
    return file and file:read("a") or ""
end

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))
assert(is_good("cd " .. directory .. " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key " ..
               "-out cert -subj /CN=a.example -days 9 -addext subjectAltName=IP:127.0.0.1"))

local TLS <const> = {"--tls-cert-file", directory .. "/cert", "--tls-key-file", directory .. "/key", "--tls-auth-clients",
    "no", "--tls-ca-cert-file", directory .. "/cert", "--tls-replication", "yes"}

-- Start a server that speaks only TLS. `before` are its first arguments, ready is a text of its log. Redis cannot choose a
-- free port itself, so the test tries one that was free a moment ago.
local function start_redis(name, ready, before, ...)
    local said = ""
    for _ = 1, 20 do
        local listener = wire.listen("127.0.0.1", 0)
        local port = listener:port()
        local path = directory .. "/" .. name .. "-" .. port .. ".log"
        local command = {wire.has "redis-server", table.unpack(before)}
        listener:close()
        for _, word in ipairs{"--port", "0", "--bind", "127.0.0.1", "--tls-port", tostring(port), "--dir", directory,
                "--logfile", path, ...} do
            command[#command + 1] = word
        end
        local proc = wire.spawn(table.move(TLS, 1, #TLS, #command + 1, command))
        require "httpd".wait_until(function()
            said = read(path)
            return said:find(ready, 1, true) or said:find("Failed listening", 1, true)
        end, name .. " listens, or cannot")
        if said:find(ready, 1, true) then return proc, port end
        proc:signal("KILL")
    end
    error("no port is free: " .. said)
end

local function start_server(name, ...)
    return start_redis(name, "Ready to accept", {}, "--save", "", "--repl-diskless-sync-delay", "0", ...)
end

-- promise: docs/redis.md: With `tls` the server's certificate is verified as that of an [HTTPS
-- server](http-client.md#https).
test("commands over TLS", function()
    local server <close>, port = start_server("alone")
    local ran = cli.run("sxe-lua", "-e", ([[
local redis, task = require "sxe.redis", require "sxe.task"
local long = ("x"):rep(1000000)
local function open(tls) return redis.new{port = %d, tls = tls, timeout = 60} end
local db = open{ca = "%s/cert"}
print(db:set("a", long), db:get("a") == long, db:pipeline():echo("p"):exec()[1])
local waiting = task.start(function() return db:blpop("list", 0) end)
while not db:client("LIST"):find("cmd=blpop", 1, true) do task.sleep(0.001) end
db:rpush("list", "one")
print(waiting:join()[2])
print(select(2, open(true):get("a")))
print(select(2, open{ca = "%s/cert", name = "b.example"}:get("a")))]]):format(port, directory, directory))
    equal(ran.errors, "")
    check(ran.output:find("^OK\ttrue\tp\none\n[^\n]*self%-signed[^\n]*\n[^\n]*is not for b.example"), ran.output)
end)

-- A Sentinel that speaks only TLS, of a master and its replica.
local function start_sentinel(port)
    local path = directory .. "/sentinel.conf"
    local file <close> = assert(io.open(path, "w"))
    file:write(("sentinel monitor mine 127.0.0.1 %d 1\nsentinel down-after-milliseconds mine 1000\n" ..
                "sentinel failover-timeout mine 5000\n"):format(port))
    file:close()
    return start_redis("sentinel", "Sentinel ID is", {path}, "--sentinel")
end

-- promise: docs/redis.md: With `tls` the client speaks TLS to the Sentinels, too.
test("a master that a Sentinel watches, over TLS, and after its death the replica", function()
    local master <close>, port = start_server("master")
    local replica <close>, other = start_server("replica", "--replicaof", "127.0.0.1", tostring(port))
    local sentinel <close>, at = start_sentinel(port)
    local ran = cli.run("sxe-lua", "-e", ([[
local redis, task = require "sxe.redis", require "sxe.task"
local tls = { ca = "%s/cert" }
local watcher = redis.new{ port = %d, tls = tls, timeout = 60 }
local function replicas() return assert(watcher:sentinel("REPLICAS", "mine")) end
while not replicas()[1] or replicas()[1]["master-link-status"] ~= "ok" do task.sleep(0.01) end
local options = { sentinels = { "127.0.0.1:%d" }, master = "mine", tls = tls, timeout = 100 }
local db = redis.new(options)
print(db:set("a", 1), db:wait(1, 50000))
os.execute "kill -9 %d"
local done
repeat done = db:set("a", 2) until done
print(db:get "a", db:role()[1], watcher:sentinel("GET-MASTER-ADDR-BY-NAME", "mine")[2] == "%d")
options.tls, options.timeout = true, 0.5
local why
repeat -- on a busy machine the time can be too short for the certificate
  options.timeout = 2 * options.timeout
  why = select(2, redis.new(options):get "a")
until not why:find "timeout"
print(why:find "self%%-signed" ~= nil or why)]]):format(directory, at, at, master:pid(), other))
    equal(ran.errors, "")
    equal(ran.output, "OK\t1\n2\tmaster\ttrue\ntrue\n")
end)

-- promise: docs/redis-sharding.md: With `tls` the client speaks TLS to every server; the certificate of each must be for
-- its host in the group, or for the `name` of `tls`.
test("groups of servers over TLS", function()
    local first <close>, one = start_server("first")
    local second <close>, two = start_server("second")
    local ran = cli.run("sxe-lua", "-e", ([[
local redis = require "sxe.redis"
local function open(tls)
  return redis.sharded{ tls = tls, timeout = 60, check_timeout = 60, groups = {
    { name = "red", masters = { "127.0.0.1:%d" } }, { name = "blue", masters = { "127.0.0.1:%d" } } } }
end
local db, wrong = open{ ca = "%s/cert" }, 0
for i = 1, 20 do
  if db:set("k" .. i, i) ~= "OK" or db:get("k" .. i) ~= tostring(i) then wrong = wrong + 1 end
end
print(wrong, db:group "red":dbsize() + db:group "blue":dbsize())
print(select(3, open{ ca = "%s/cert", name = "b.example" }:get "a"))
db:close()]]):format(one, two, directory, directory))
    equal(ran.errors, "")
    equal(ran.output, "0\t20\nGROUPDOWN\n")
end)
os.execute("rm -r " .. directory)
