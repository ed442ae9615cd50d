-- SPDX-License-Identifier: MIT
--
-- URLs of several hosts in one run, checked by the logs of the servers.

local cli = require "cli"

-- Start a server with an access log. Returns its port, and a function that ends it and counts the requests of each
-- path.
local function serve(...)
    local port, log = wire.free_port(), os.tmpname()
    local server = wire.spawn{wire.program("sxe-httpd"), "-p", tostring(port), "--access-log", log,
                              ...}
    server:line(20)
    return port, function()
        local counts, all = {}, 0
        server:signal("TERM")
        server:wait(120)
        for line in io.lines(log) do
            local path = line:match '"GET (%S+) '
            counts[path], all = (counts[path] or 0) + 1, all + 1
        end
        os.remove(log)
        return counts, all
    end
end

local function run(...)
    return cli.run("sxe-http", "-q", "--timeout", "60", "--json", "-", ...)
end

-- A number of the nth host in the JSON's "total".
local function host(ran, nth, name)
    local hosts = ran.output:match('\n  "total": (%b{})'):match('"hosts": (%b[])')
    local i = 0
    for one in hosts:sub(2, -2):gmatch("%b{}") do
        i = i + 1
        if i == nth then
            return tonumber(one:match('"' .. name .. '": ([%d.e+-]+)'))
        end
    end
end

-- promise: docs/load-generator.md: | URL... | GET requests of the URLs in turn, also in each worker; `-m`, `-H`, `-b`
-- (`@FILE`) change them |
test("a slow URL is asked for as often as a fast one, whatever the number of workers (-t)", function()
    local script = os.tmpname()
    local file <close> = assert(io.open(script, "w"))
    file:write [[
local http, task = require "sxe.http", require "sxe.task"
local r = http.router()
r:get("/slow", function() task.sleep(0.02) return "slow" end)
r:get("/fast", function() return "fast" end)
return r
]]
    file:flush()
    local port, finish = serve("--lua", script)
    run("-c", "4", "-t", "2", "-n", "20", ("http://127.0.0.1:%d/slow"):format(port),
        ("http://127.0.0.1:%d/fast"):format(port))
    local counts = finish()
    os.remove(script)
    equal(counts["/slow"], 40)
    equal(counts["/fast"], 40)
end)

-- promise: docs/load-generator.md: With a rate or `--requests` each host gets an equal share, and its URLs take
-- turns.
test("hosts get equal shares of the requests, and URLs equal shares of their host's", function()
    local a, end_a = serve()
    local b, end_b = serve()
    local ran = run("-c", "8", "--requests", "80", ("http://127.0.0.1:%d/one"):format(a),
                    ("http://127.0.0.1:%d/two"):format(b), ("http://127.0.0.1:%d/three"):format(b))
    check(ran.status == 0 or ran.status == 4, ran.errors)
    local counts, all = end_a()
    equal(all, 40)
    equal(counts["/one"], 40)
    counts, all = end_b()
    equal(all, 40)
    equal(counts["/two"], 20)
    equal(counts["/three"], 20)
    for nth = 1, 2 do
        equal(host(ran, nth, "ok"), 40)
        equal(host(ran, nth, "offered"), 40)
        equal(host(ran, nth, "sockets_wanted"), 4)
        equal(host(ran, nth, "opened"), 4)
    end
end)

-- promise: docs/load-generator.md: Connections, workers and shards are divided evenly between hosts.
test("workers and shards of a rate share the hosts", function()
    local a, end_a = serve()
    local b, end_b = serve()
    for shard = 1, 2 do
        local ran = run("-c", "16", "-t", "4", "-R", "400", "--arrivals", "fixed", "--requests", "120",
                        "--shard", shard .. "/2", ("http://127.0.0.1:%d/one"):format(a),
                        ("http://127.0.0.1:%d/two"):format(a), ("http://127.0.0.1:%d/"):format(b))
        check(ran.status == 0 or ran.status == 4, ran.errors)
        equal(host(ran, 1, "sockets_wanted"), 4)
    end
    local counts, all = end_a()
    equal(all, 60)
    equal(counts["/one"], 30)
    equal(counts["/two"], 30)
    counts, all = end_b()
    equal(all, 60)
    equal(counts["/"], 60)
end)

-- promise: docs/load-generator.md: A host may be a name, an IPv4 or IPv6 address, or a unix socket; each host gets
-- its own Host field.
test("a unix socket and an address share a run", function()
    local path = os.tmpname()
    os.remove(path)
    local a, end_a = serve("--unix", path)
    local b, end_b = serve()
    local ran = run("-c", "4", "--requests", "20", "unix:" .. path .. ":/unix",
                    ("http://localhost:%d/name"):format(b))
    os.remove(path)
    local counts = end_a()
    equal(counts["/unix"], 10, ran.errors)
    counts = end_b()
    equal(counts["/name"], 10, ran.errors)
    check(a)
end)

-- promise: docs/load-generator.md: If no connection to a host opens, nothing is sent to that host, the other hosts
-- keep their shares, and the exit status is 1.
test("one host that is down does not hold up the other", function()
    local a, end_a = serve()
    local ran = run("-c", "8", "--requests", "80", ("http://127.0.0.1:%d/"):format(wire.free_port()),
                    ("http://127.0.0.1:%d/"):format(a))
    equal(ran.status, 1, ran.errors)
    check(ran.errors:find "no connection to 127.0.0.1:%d+ could be opened", ran.errors)
    local _, all = end_a()
    equal(all, 40)
    equal(host(ran, 1, "opened"), 0)
    equal(host(ran, 1, "sent"), 0)
    equal(host(ran, 2, "ok"), 40)
end)

-- promise: docs/load-generator.md: Names are looked up once, before the start. If a name is not found, `sxe-http`
-- refuses its URL.
test("the message names a host that is not found", function()
    cli.check_refused("the URL is 'http://no-such-host.invalid/'", "sxe-http",
                      "http://127.0.0.1:1/", "http://no-such-host.invalid/")
end)

-- promise: docs/load-generator.md: Several hosts cannot be combined with `-p`, `--server-cmd` or `--probe`, and `-t`
-- must be a multiple of the count of hosts.
test("options for a single host are refused", function()
    local a, b = "http://127.0.0.1:1/", "http://127.0.0.1:2/"
    cli.check_refused("they cannot be combined with -p", "sxe-http", "-p", "5", a, b)
    cli.check_refused("they cannot be combined with --server-cmd", "sxe-http", "--server-cmd", "true", a, b)
    cli.check_refused("they cannot be combined with --probe", "sxe-http", "--probe", "5", a, b)
    cli.check_refused("give a multiple of 2", "sxe-http", "-t", "3", a, b)
end)

-- promise: docs/load-generator.md: With `-i` or `--unix` all URLs go to that one address, each with
--   its own Host field.
test("with -i all URLs go to that address", function()
    local a, end_a = serve()
    local ran = run("-c", "4", "--requests", "20", "-i", "127.0.0.1", "-p", tostring(a),
                    "http://one.example/1", "http://two.example/2")
    local counts = end_a()
    equal(counts["/1"], 10, ran.errors)
    equal(counts["/2"], 10, ran.errors)
end)
