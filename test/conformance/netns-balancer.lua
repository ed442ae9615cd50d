-- SPDX-License-Identifier: MIT
--
-- Networks that fail: clients, HAProxy and two servers in network namespaces of their own, joined by veth pairs. A link
-- is cut and mended under load, links lose packets, links have 10 Mbit/s.
--
--     this process 10.78.0.2 --- 10.78.0.1 HAProxy 10.78.1.1 --- 10.78.1.2 one
--                                                  10.78.2.1 --- 10.78.2.2 two
--
-- The namespaces have no names: each lasts as long as the process in it, so that none is left when the test fails.

local json = require "json-text"

local CONNECTIONS <const> = 16
local NAMES <const> = {"one", "two"}
local BIG_BYTES <const> = 2000000
local BITS_A_SECOND <const> = 10e6
local PATIENCE_SECONDS <const> = 120
-- HAProxy gives up a request later than a server whose health checks fail, so that a connection of a client meets a cut
-- path once.
local TIMEOUTS <const> = "timeout connect 5s\n    timeout check 3s"
local SERVER_SECONDS <const> = 20

local function succeeds(format, ...)
    return (os.execute(format:format(...) .. " >/dev/null 2>&1"))
end

local function sh(format, ...)
    local command = format:format(...)
    check(os.execute(command), command)
end

local function wait_until(condition, what)
    local deadline = wire.time() + PATIENCE_SECONDS
    while not condition() do
        if wire.time() > deadline then error("expected: " .. what, 2) end
        wire.sleep(0.05)
    end
end

local function why_not()
    for _, program in ipairs{"haproxy", "ip", "nsenter", "unshare"} do
        if not wire.has(program) then return program .. " is not installed" end
    end
    if not succeeds "unshare -n true" then return "no network namespace can be made" end
    local is_made, why = wire.own_network "cubic"
    return not is_made and "no network namespace can be made: " .. why or nil
end

local missing <const> = why_not()
if missing then
    print("skipped: networks that fail, because " .. missing)
    return
end

local directory <const> = os.tmpname()
os.remove(directory)
sh("mkdir -p %s/files", directory)

local function write(name, text)
    local file <close> = assert(io.open(directory .. "/" .. name, "wb"))
    file:write(text)
end

-- ---- Hosts ----

local host = {}
host.__index = host

function host.new()
    local proc = wire.spawn{"unshare", "-n", "sleep", "3600"}
    local self = setmetatable({proc = proc, pid = proc:pid()}, host)
    wait_until(function()
        return succeeds('[ "$(readlink /proc/%d/ns/net)" != "$(readlink /proc/self/ns/net)" ]', self.pid)
    end, "a network namespace")
    self:sh "ip link set lo up"
    return self
end

-- The words of a command that runs on the host.
function host:command(...)
    return {"nsenter", "-t", tostring(self.pid), "-n", ...}
end

function host:sh(format, ...)
    sh("nsenter -t %d -n sh -c '%s'", self.pid, format:format(...))
end

function host:succeeds(format, ...)
    return succeeds("nsenter -t %d -n sh -c '%s'", self.pid, format:format(...))
end

-- Join two hosts by a cable; `first` nil: this process. Their interfaces and addresses are NAME and 10.78.NET.1 or .2.
local function join(net, first, first_name, first_last, second, second_name, second_last)
    local peer = ("ip link add %s type veth peer name %s netns %d"):format(first_name, second_name, second.pid)
    local up = "ip addr add 10.78.%d.%d/24 dev %s && ip link set %s up"
    if first then
        first:sh("%s", peer)
        first:sh(up, net, first_last, first_name, first_name)
    else
        sh("%s", peer)
        sh(up, net, first_last, first_name, first_name)
    end
    second:sh(up, net, second_last, second_name, second_name)
end

-- ---- Programs ----

local HAPROXY_STATS <const> = [[

listen stats
    bind 10.78.0.1:8081
    stats enable
    stats uri /
]]

local function start_server(place, on)
    local name = NAMES[place]
    write(name .. ".lua", ([[
        local task = require "sxe.task"
        return function(req) if req.path == "/slow" then task.sleep(0.5) end return "%s" end]]):format(name))
    write(name .. ".conf", ([[return {
        ip = "10.78.%d.2", port = 8000, admin = "10.78.%d.2:9000", proxy_from = "10.78.%d.1", unix = "%s/%s.sock",
        workers = 2, stats = "/stats", user = "root", lua = "%s/%s.lua", idle_timeout = 5, stall_timeout = 5, stop_timeout = 1,
        routes = {["/{path...}"] = {script = true}, ["/files/{path...}"] = {root = "%s/files"}}}]]):format(place, place,
        place, directory, name, directory, name, directory))
    local proc = wire.spawn(on:command(wire.program "sxe-httpd", "--config", directory .. "/" .. name .. ".conf"))
    local line
    repeat
        line = proc:line()
        check(line, proc:errors())
    until line:find "^status at"
    return {proc = proc, path = ("%s/%s.sock"):format(directory, name), on = on}
end

local function start_haproxy(on)
    local from <close> = assert(io.open "examples/deploy/haproxy.cfg")
    local text = from:read "a"
    for pattern, replacement in pairs{
        ["bind :8080"] = "bind 10.78.0.1:8080",
        ["timeout connect 5s"] = TIMEOUTS,
        ["timeout server 60s"] = ("timeout server %ds"):format(SERVER_SECONDS),
        ["127%.0%.0%.1:8001 port 9001"] = "10.78.1.2:8000 port 9000",
        ["127%.0%.0%.1:8002 port 9002"] = "10.78.2.2:8000 port 9000"} do
        local count
        text, count = text:gsub(pattern, replacement)
        equal(count, 1, pattern)
    end
    write("haproxy.cfg", text .. HAPROXY_STATS)
    return wire.spawn(on:command(wire.has "haproxy", "-db", "-f", directory .. "/haproxy.cfg"))
end

local function ask(place, port, path)
    local sock <close> = wire.connect(place, port)
    sock:send(("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):format(path))
    return sock:read_reply()
end

-- What HAProxy says of a server: its state, such as UP, how many requests it got, and how many of them it answers now.
local function state_of(name)
    for line in ask("10.78.0.1", 8081, "/;csv").body:gmatch "[^\n]+" do
        local fields = {}
        for field in (line .. ","):gmatch "([^,]*)," do fields[#fields + 1] = field end
        if fields[1] == "servers" and fields[2] == name then
            return fields[18], tonumber(fields[8]), tonumber(fields[5])
        end
    end
end

local function await_state(name, state)
    wait_until(function() return state_of(name) == state end, name .. " is " .. state)
end

-- The open connections of a server, without that of this question.
local function connections_of(server)
    return tonumber(ask(server.path, 0, "/stats").body:match '"connections":(%d+)') - 1
end

local function start_load(path, ...)
    return wire.spawn{wire.program "sxe-http", "-q", "--timeout", "100", "-c", tostring(CONNECTIONS), "--json",
                      directory .. "/json", ("http://10.78.0.1:8080%s"):format(path), ...}
end

local function finish_load(proc)
    proc:output(300)
    proc:wait(120)
    local file <close> = io.open(directory .. "/json")
    check(file, proc:errors())
    return json.decode(file:read "a").total.accounts
end

local function failures(accounts)
    local words, sum = {}, 0
    for kind, number in pairs(accounts.ends) do
        if kind ~= "ok" and number > 0 then
            sum = sum + number
            words[#words + 1] = kind .. " " .. number
        end
    end
    return sum, table.concat(words, ", ")
end

-- ---- The network ----

local balancer = host.new()
local hosts = {host.new(), host.new()}
join(0, nil, "c0", 2, balancer, "b0", 1)
for i, server in ipairs(hosts) do join(i, balancer, "b" .. i, 1, server, "eth0", 2) end
local servers = {start_server(1, hosts[1]), start_server(2, hosts[2])}
local haproxy = start_haproxy(balancer)
wait_until(function() return pcall(state_of, "one") end, "HAProxy")
for _, name in ipairs(NAMES) do await_state(name, "UP") end

test("a link is cut and mended under load: only requests on the cut path fail", function()
    local load = start_load("/slow", "-R", "24", "-d", "300")
    wait_until(function()
        local _, one, now = state_of "one"
        local _, two = state_of "two"
        return one > 20 and two > 20 and now > 0
    end, "both servers answer")
    hosts[1]:sh "ip link set eth0 down"
    await_state("one", "DOWN")
    for _ = 1, 20 do equal(ask("10.78.0.1", 8080, "/").body, "two") end
    -- The server's own timeouts end the connections, although it hears nothing of the other end.
    wait_until(function() return connections_of(servers[1]) == 0 end, "no connection of the cut server is left")
    wait_until(function() return select(3, state_of "one") == 0 end, "HAProxy has given up the cut server's requests")
    hosts[1]:sh "ip link set eth0 up"
    await_state("one", "UP")
    local _, before = state_of "one"
    wait_until(function() return select(2, state_of "one") > before + 20 end, "one answers again")
    load:signal "INT"
    local accounts = finish_load(load)
    local failed, kinds = failures(accounts)
    check(failed <= CONNECTIONS, kinds)
    equal(accounts.ends.timed_out + accounts.ends.bad_reply + accounts.ends.bad_body, 0, kinds)
end)

test("a server that drains while its link is cut ends", function()
    hosts[1]:sh "ip link set eth0 down"
    servers[1].proc:signal "TERM"
    equal(servers[1].proc:wait(60), 0, servers[1].proc:errors())
    equal(ask("10.78.0.1", 8080, "/").body, "two")
    hosts[1]:sh "ip link set eth0 up"
    servers[1] = start_server(1, hosts[1])
    await_state("one", "UP")
end)

if wire.has "nft" and balancer:succeeds "nft add table inet loss" then
    test("links that lose 2 % of all packets: no request fails", function()
        balancer:sh("nft add chain inet loss input { type filter hook input priority 0 \\; }")
        balancer:sh("nft add rule inet loss input iif != lo numgen random mod 100 \\< 2 counter drop")
        local accounts = finish_load(start_load("/slow", "-n", "20"))
        local failed, kinds = failures(accounts)
        equal(failed, 0, kinds)
        equal(accounts.ends.ok, 20 * CONNECTIONS)
        local proc <close> = wire.spawn(balancer:command("nft", "list", "table", "inet", "loss"))
        check(tonumber(proc:output():match "counter packets (%d+)") > 0, "no packet was lost")
        balancer:sh "nft delete table inet loss"
    end)
else
    print "skipped: links that lose packets, because nft is not installed, or the kernel has no nftables"
end

local LIMIT <const> = "tc qdisc add dev eth0 root tbf rate 10mbit burst 64k latency 400ms"
if hosts[1]:succeeds(LIMIT) and hosts[2]:succeeds(LIMIT) then
    test("links of 10 Mbit/s: large files come whole, as fast as the link is, beside small replies", function()
        local big = {}
        for i = 1, BIG_BYTES // 8 do big[i] = ("%08d"):format(i) end
        local text = table.concat(big)
        write("files/big", text)
        local socks = {}
        local began = wire.time()
        for i = 1, 4 do
            socks[i] = wire.connect("10.78.0.1", 8080)
            socks[i]:send "GET /files/big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        end
        for _ = 1, 10 do equal(ask("10.78.0.1", 8080, "/").status, 200) end
        for _, sock in ipairs(socks) do check(sock:read_reply().body == text, "a file that is not whole") end
        local least = 4 * BIG_BYTES * 8 / (#hosts * BITS_A_SECOND)
        check(wire.time() - began > 0.9 * least, ("faster than the links: %.2f s"):format(wire.time() - began))
    end)
else
    print "skipped: links of 10 Mbit/s, because tc is not installed, or the kernel has no tbf"
end

test("all connections end with the load, and the servers end when they are told to", function()
    for _, server in ipairs(servers) do
        wait_until(function() return connections_of(server) == 0 end, "no connection is left")
        server.proc:signal "TERM"
        equal(server.proc:wait(60), 0, server.proc:errors())
        check(not server.proc:errors():find "Sanitizer", server.proc:errors())
    end
    haproxy:signal "TERM"
    haproxy:wait(60)
end)

sh("rm -r %s", directory)
