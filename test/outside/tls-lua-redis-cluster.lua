-- SPDX-License-Identifier: MIT
--
-- redis.cluster over TLS, by docs/redis.md: three real servers that speak nothing but TLS, also to each other, with a
-- certificate by a CA that the openssl command makes.

local cli = require "cli"

local function is_good(command)
    local proc <close> = wire.spawn{"sh", "-c", command .. " >/dev/null 2>&1"}
    return proc:wait(60) == 0
end

if cli.run("sxe-httpd", "--tls-dev", "--check").status ~= 0 then
    print("skipped: clusters over TLS, because sxe-lua was built without OpenSSL 3")
    return
end
if not wire.has "redis-cli" or not is_good 'openssl version && ldd "$(command -v redis-server)" | grep libssl' then
    print("skipped: clusters over TLS, because the openssl command, redis-cli or a redis-server with TLS is not installed")
    return
end

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))
assert(is_good("cd " .. directory .. [[ && new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes" &&
    openssl req -x509 $new -keyout ca.key -out ca -subj "/CN=Test CA" -days 9 &&
    openssl req -x509 $new -keyout other.key -out other -subj "/CN=Other CA" -days 9 &&
    openssl req $new -keyout key -out request -subj /CN=a.example &&
    echo subjectAltName=IP:127.0.0.1 >names &&
    openssl x509 -req -in request -CA ca -CAkey ca.key -CAcreateserial -out cert -days 9 -extfile names]]))

local function read(path)
    local file <close> = io.open(path)
    return file and file:read("a") or ""
end

-- Redis cannot choose free ports itself, so the test tries two that were free a moment ago.
local function start_node()
    for _ = 1, 20 do
        local one, two = wire.listen("127.0.0.1", 0), wire.listen("127.0.0.1", 0)
        local port, bus = one:port(), two:port()
        local path = directory .. "/" .. port
        local said = ""
        one:close()
        two:close()
        assert(os.execute("mkdir " .. path))
        local proc = wire.spawn{wire.has "redis-server", "--port", "0", "--tls-port", tostring(port), "--bind", "127.0.0.1",
            "--tls-cert-file", directory .. "/cert", "--tls-key-file", directory .. "/key", "--tls-auth-clients", "no",
            "--tls-ca-cert-file", directory .. "/ca", "--tls-cluster", "yes", "--cluster-enabled", "yes", "--cluster-port",
            tostring(bus), "--save", "", "--dir", path, "--logfile", path .. "/log"}
        require "httpd".wait_until(function()
            said = read(path .. "/log")
            return said:find("Ready to accept", 1, true) or said:find("Failed listening", 1, true) or
                said:find("Could not create", 1, true)
        end, "redis-server listens, or cannot")
        if said:find("Ready to accept", 1, true) then return {proc = proc, port = port} end
        proc:signal("KILL")
    end
    error("no ports are free")
end

local function ask(...)
    local proc <close> = wire.spawn{wire.has "redis-cli", "--tls", "--cacert", directory .. "/ca", ...}
    local output = proc:output(120)
    equal(proc:wait(120), 0, "redis-cli: " .. output)
    return output
end

-- Three masters; closing the cluster kills them.
local clusters = {__close = function(cluster)
    for _, node in ipairs(cluster) do node.proc:signal("KILL") end
    os.execute("rm -r " .. directory)
end}

local function start_cluster()
    local cluster, addresses = setmetatable({}, clusters), {}
    for n = 1, 3 do
        cluster[n] = start_node()
        addresses[n] = "127.0.0.1:" .. cluster[n].port
    end
    ask("--cluster", "create", addresses[1], addresses[2], addresses[3], "--cluster-yes")
    for n = 1, 3 do
        require "httpd".wait_until(function()
            return ask("-p", tostring(cluster[n].port), "cluster", "info"):find("cluster_state:ok", 1, true)
        end, "node " .. n .. " has a cluster")
    end
    return cluster
end

local cluster <close> = start_cluster()

-- Run a script with the function `open`, which makes a client of the cluster; returns what it prints.
local function run(text)
    return cli.output_of(300, {wire.program "sxe-lua", "--sockets", "100", "-e", ([[
local redis, task, spawn = require "sxe.redis", require "sxe.task", require "sxe.spawn"
local PORT, CA = %d, "%s"
local function open(tls) return redis.cluster{seeds = {"127.0.0.1:" .. PORT}, tls = tls, timeout = 60} end
]]):format(cluster[1].port, directory .. "/ca") .. text, env = {SXE_LOG_LEVEL = "error", PATH = os.getenv "PATH"}})
end

-- promise: docs/redis.md: With `tls` the client speaks TLS to all nodes: if a client asks a server over TLS, the
-- server names the TLS ports of the others.
test("commands, pipelines, transactions and subscriptions of a cluster over TLS", function()
    equal(run[[
local db = open{ca = CA}
local good, long = 0, ("x"):rep(1000000)
for i = 1, 300 do
  if db:set("k" .. i, i) == "OK" and db:get("k" .. i) == tostring(i) then good = good + 1 end
end
print(good, #db:masters(), db:set("long", long), db:get("long") == long)
local p = db:pipeline()
for i = 1, 100 do p:get("k" .. i) end
local list = assert(p:exec())
for i = 1, 100 do good = good - (list[i] == tostring(i) and 1 or 0) end
print(good, db:transaction(function(t) t:multi() t:incr("k1") end, {watch = {"k1"}})[1])
local sub <close> = db:subscribe{"news"}
db:publish("news", "one")
print(sub:read().text)]], "300\t3\tOK\ttrue\n200\t2\none\n")
end)

test("slots move between nodes that speak TLS", function()
    equal(run[[
local db = open{ca = CA}
local function ask(...) return spawn{"redis-cli", "--tls", "--cacert", CA, "-p", tostring(PORT), ...} end
local id, other = ask("cluster", "myid"):read "l", nil
for line in ask("cluster", "nodes"):lines() do
  if not line:find("myself", 1, true) then other = line:match "^%x+" end
end
local is_over = false
task.start(function()
  ask("--cluster", "reshard", "127.0.0.1:" .. PORT, "--cluster-from", id, "--cluster-to", other, "--cluster-slots", "100",
    "--cluster-yes"):read "a"
  is_over = true
end)
local wrong, n = 0, 0
repeat
  n = n + 1
  if db:incr("n" .. n % 1000) ~= (n - 1) // 1000 + 1 then wrong = wrong + 1 end
until is_over and n > 1000
print(wrong)]], "0\n")
end)

-- promise: docs/redis.md: The certificate of each node must be for its host in the map, or for the `name` of `tls`.
test("certificates of other CAs and for other names are refused", function()
    local output = run(([[
print(select(2, open{ca = "%s/other"}:masters())) -- it reads the map once, and a command tries again for 60 seconds
print(select(2, open{ca = CA, name = "b.example"}:masters()))]]):format(directory))
    check(output:find "^[^\n]*certificate[^\n]*\n[^\n]*is not for b.example[^\n]*\n$", output)
end)
