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

-- Redis cannot choose a free port itself, so the test tries one that was free a moment ago.
local function start_redis()
    local path, said = directory .. "/log", ""
    for _ = 1, 20 do
        local listener = wire.listen("127.0.0.1", 0)
        local port = listener:port()
        listener:close()
        local proc = wire.spawn{wire.has "redis-server", "--port", "0", "--bind", "127.0.0.1", "--tls-port", tostring(port),
            "--tls-cert-file", directory .. "/cert", "--tls-key-file", directory .. "/key", "--tls-auth-clients", "no",
            "--tls-ca-cert-file", directory .. "/cert", "--save", "", "--dir", directory, "--logfile", path}
        require "httpd".wait_until(function()
            said = read(path)
            return said:find("Ready to accept", 1, true) or said:find("Failed listening", 1, true)
        end, "redis-server listens, or cannot")
        if said:find("Ready to accept", 1, true) then return proc, port end
        os.remove(path)
    end
    error("no port is free: " .. said)
end

-- promise: docs/redis.md: With `tls` the server's certificate is verified as that of an [HTTPS
-- server](http-client.md#https).
test("commands over TLS", function()
    local server <close>, port = start_redis()
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
    os.execute("rm -r " .. directory)
end)
