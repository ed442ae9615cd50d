-- SPDX-License-Identifier: MIT
-- Rows about requests and connections: the greeting at several numbers of connections, pipelined,
-- with a connection for each; memory, system calls, start-up, size; load generators.

local clients = require "clients"
local machine = require "machine"
local peers = require "peers"

local GREETING = peers.services.hello.body
local OPEN = 10000 -- connections in the row about memory

local ALL = {"limit", "sxe-httpd", "sxe-httpd-lua", "nginx", "nginx-lua", "h2o", "lighttpd",
             "haproxy", "go", "node", "node-net"}
local SOME = {"limit", "sxe-httpd", "nginx", "h2o", "lighttpd", "haproxy", "go", "node"}

local CHECKS = "status 200, length and the 14 bytes of each body"
local VOID = "a reply with another status or body; a connection refused, reset or closed; "
             .. "0.08 of a CPU taken by others"

-- ---- Memory: connections that have each asked something are open and idle ----

-- Wait until is_so() is true; return false if it was not within `seconds`. pause: seconds between
-- two calls.
local function wait_for(seconds, is_so, pause)
    local give_up = wire.time() + seconds
    while not is_so() do
        if wire.time() > give_up then
            return false
        end
        wire.sleep(pause or 0.02)
    end
    return true
end

-- crowd-client prints its line when each connection has had its last reply and none has sent a
-- further request.
local function run_memory(bench, peer)
    local server <close> = bench.start(peer, {connections = OPEN + 64})
    bench.look(server, {target = "/", body = GREETING})
    wire.sleep(0.1)
    local before = server:pss()
    local client <close> = bench.spawn{
        wire.program("bench/crowd-client"), "-p", server.port, "-s", OPEN, "-t", 1, "-d", 0.1, "-q",
        60}
    client:line(60) -- the load begins
    local line = client:line(60)
    if not line or not line:find('"errors":0', 1, true) then
        return {errors = (line or "") .. client:errors()}
    end
    local after = server:pss()
    return {value = after / 2^20, more = {before = before / 2^20}}
end

-- ---- System calls a request ----

-- Count the system calls with strace: {[name] = count}; or nil, and why the requests failed.
local function count_calls(bench, server, requests)
    local trace = bench.scratch .. "/strace"
    local words = {"strace", "-c", "-f", "-o", trace}
    for _, pid in ipairs(server.pids()) do
        words[#words + 1] = "-p"
        words[#words + 1] = tostring(pid)
    end
    local strace <close> = wire.spawn(words)
    wait_for(3, function() return strace:errors():find("attached") end)
    local client <close> = bench.spawn{wire.program("bench/limit-client"), "-p", server.port, "-c",
                                       64, "-n", requests // 64}
    local output = client:output(60)
    local status = client:wait(20)
    strace:signal("INT")
    strace:wait(20)
    if status ~= 0 then
        return nil, client:errors() .. output
    end
    local calls = {}
    for line in io.lines(trace) do
        local count, rest = line:match("^%s*[%d.]+%s+[%d.]+%s+%d+%s+(%d+)%s+(.*)$")
        if count and not rest:find("total$") then
            calls[rest:match("(%S+)$")] = tonumber(count)
        end
    end
    os.remove(trace)
    return calls
end

local function run_syscalls(bench, peer)
    local requests = 64 * 100
    local server <close> = bench.start(peer, {connections = 128})
    local calls, wrong = count_calls(bench, server, requests)
    if not calls then
        return {errors = wrong}
    end
    local names, total, shown = {}, 0, {}
    for name, count in pairs(calls) do
        names[#names + 1], total = name, total + count
    end
    table.sort(names, function(a, b) return calls[a] > calls[b] end)
    for _, name in ipairs(names) do
        if calls[name] / requests >= 0.005 then
            shown[#shown + 1] = ("%s %.2f"):format(name, calls[name] / requests)
        end
    end
    if total == 0 then
        return {errors = "strace counted nothing"}
    end
    return {value = total / requests, note = table.concat(shown, ", ")}
end

-- ---- Start-up: from exec to the first reply ----

local function has_answered(port)
    local good, sock = pcall(wire.connect, "127.0.0.1", port)
    if not good then
        return false
    end
    local _ <close> = sock
    sock:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    local reply = sock:read_reply()
    return reply.status == 200 and reply.body == GREETING
end

-- Ask the peer again and again as soon as it is spawned, even before it listens: bench.start looks
-- too rarely.
local function run_start_up(bench, peer)
    local begun, answered
    local eager = {start = function(context)
        local spawn = context.spawn
        function context.spawn(...)
            local proc = spawn(...)
            begun = begun or wire.time()
            if not wait_for(20, function() return has_answered(context.port) end, 0.0002) then
                error("no good reply in 20 s: " .. proc:errors(), 0)
            end
            answered = answered or wire.time()
            return proc
        end
        return peer.start(context)
    end}
    local server <close> = bench.start(eager, {connections = 1000})
    return {value = (answered - begun) * 1000, port = server.port}
end

-- ---- Size of the program ----

local function size_of(path)
    local file <close> = assert(io.open(path, "rb"))
    return file:seek("end")
end

-- The size of a program without symbols, as packages contain it.
local function run_size(bench, peer)
    local copy = bench.scratch .. "/stripped"
    local proc <close> = wire.spawn{"strip", "-o", copy, peer.path}
    if proc:wait(30) ~= 0 then
        return {skipped = "strip cannot read it: " .. proc:errors()}
    end
    local bytes = size_of(copy)
    os.remove(copy)
    return {value = bytes / 2^20}
end

local function program(name, title, package)
    return {name = name, title = title or name, needs = {name}, package = package or name,
            path = wire.has(name)}
end

local function our_program(name)
    return {name = name, path = wire.program(name)}
end

-- ---- Load generators in place of each other, against the limit program ----

local function generators(connections)
    local list = {}
    for _, name in ipairs{"limit-client", "sxe-http", "weighttp", "ab", "h2load", "wrk"} do
        local client = clients.find(name)
        list[#list + 1] = {
            name = name, client = name, needs = {client.program},
            package = client.package or client.program,
            start = function(context)
                context.keep_alive = true -- ab sends HTTP/1.0
                return peers.find("limit").start(context)
            end}
    end
    return {
        name = "clients-" .. connections, service = "hello", peers = list, unit = "requests/s",
        title = ("Load generators, %d connections, against the limit program"):format(connections),
        work = "closed loop, keep-alive, one core; each counts good replies by its own means",
        command = ("sxe-http -c %d -d 1 http://127.0.0.1:PORT/"):format(connections),
        reference = "limit-client", ours = "sxe-http", group = "clients", budget = 80,
        checks = "each what it checks: limit-client lengths, sxe-http and ab more, wrk statuses",
        void = "an error that any of them counts; 0.08 of a CPU taken by others", seconds = 0.4,
        rounds = 21,
        load = {connections = connections, second = false, batch = 1},
        target = {peer = "limit-client", ratio = 0.95, of = "issue 4"}}
end

-- ---- The generator with many sockets ----

local function run_sockets(sockets, queries, workers)
    return function(bench, peer)
        local server <close> = bench.start(peer, {connections = sockets, workers = workers})
        local client <close> = bench.spawn{
            wire.program("sxe-http"), "-q", "-p", server.port, "-c", sockets, "-n", queries, "-t",
            workers, "--abort", "--source", "127.0.0.1-127.0.0.8"}
        local line
        repeat
            line = client:line(300)
        until not line or line:find("^opened")
        local pss = 0 -- of sxe-http's workers, while all sockets are open; their parent has none
        for _, pid in ipairs(machine.tree(client:pid())) do
            pss = pss + (pid ~= client:pid() and wire.pss(pid) or 0)
        end
        local output = client:output(300)
        local status = client:wait(60)
        if (status ~= 0 and status ~= 4) or not line then
            return {errors = client:errors() .. (line or "") .. output}
        end
        local open = tonumber(line:match("(%d+)/%d+ connections"))
        if open ~= sockets then
            return {errors = line}
        end
        return {value = pss / sockets, more = {
            open = open,
            rate = tonumber(output:match("all queries%s*: [%d.]+ seconds or ([%d.]+)")),
            connects = tonumber(output:match("all connections: [%d.]+ seconds or ([%d.]+)"))}}
    end
end

local function sockets_row(sockets, queries, workers)
    return {
        name = "sockets-" .. sockets, group = "clients", service = "hello",
        peers = {{name = "sxe-http",
                  start = function(context) return peers.find("limit").start(context) end}},
        title = ("sxe-http with %d sockets and %d worker%s"):format(sockets, workers,
                                                                    workers > 1 and "s" or ""),
        work = ("all sockets are opened, then each asks %d times"):format(queries),
        command = ("sxe-http -c %d -n %d -t %d --abort --source 127.0.0.1-127.0.0.8")
            :format(sockets, queries, workers),
        reference = "sxe-http", ours = "sxe-http", unit = "bytes a socket", better = "less",
        rounds = 3,
        checks = "each reply is good; all sockets are open at once",
        void = "a socket that does not open; 0.08 of a CPU taken by others",
        budget = sockets > 10000 and 40 or 15,
        target = {value = 1024, of = "issue 4"},
        columns = {{"open", "open", 0}, {"connects", "connects/s", 0}, {"rate", "requests/s", 0}},
        run = run_sockets(sockets, queries, workers)}
end

-- ---- The rows ----

local function hello(name, connections, who, budget, target)
    return {
        name = name, service = "hello", peers = who, reference = "limit", unit = "replies/s",
        title = ("Hello, World!, %d keep-alive connection%s"):format(connections,
                                                                 connections > 1 and "s" or ""),
        work = "each connection asks again as soon as it has been answered; one core serves",
        command = ("sxe-http -c %d -d 1 http://127.0.0.1:PORT/"):format(connections),
        checks = CHECKS, void = VOID, budget = budget, target = target, plot = "bars",
        load = {connections = connections, target = "/", body = GREETING}}
end

return {
    hello("hello-64", 64, ALL, 60, {peer = "limit", ratio = 0.93, of = "issue 3"}),
    hello("hello-1024", 1024, SOME, 45, {peer = "limit", ratio = 0.93, of = "issue 3"}),
    hello("single", 1, SOME, 40),
    {
        name = "pipeline", service = "hello", reference = "limit", unit = "replies/s",
        peers = {"limit", "sxe-httpd", "nginx", "h2o", "haproxy", "go", "node"},
        title = "Hello, World!, 64 connections, 16 requests at a time on each",
        work = "16 requests come in one write; the next 16 follow the last reply",
        command = "limit-client -c 64 -P 16 -b 64 -d 1 -p PORT",
        checks = "the length of all 16 replies",
        void = VOID, budget = 35, load = {connections = 64, depth = 16, body = GREETING,
                                          second = false},
        target = {peer = "limit", ratio = 0.85, of = "issue 3"}},
    {
        name = "connects", service = "hello", reference = "limit", unit = "connects/s",
        peers = {"limit", "sxe-httpd", "sxe-httpd-lua", "nginx", "h2o", "lighttpd", "haproxy", "go",
                 "node"},
        title = "A connection for each request, 64 at a time",
        work = "connect, one request with Connection: close, its reply, closed by the client",
        command = "connect-client -c 64 -d 1 -p PORT",
        checks = "status 200 and length of each reply",
        void = VOID .. "; the client is what is measured where its CPU is full: compare the "
               .. "server's µs", budget = 40,
        load = {connections = 64, fresh = true, body = GREETING, second = false}},
    {
        name = "memory", service = "hello", reference = "nginx", unit = "MiB", digits = 1,
        peers = {"limit", "sxe-httpd", "sxe-httpd-lua", "nginx", "h2o", "haproxy", "go", "node"},
        title = "Memory of the server with 10,000 idle connections", better = "less", rounds = 1,
        work = "each connection has asked once or more, and is idle; the server's PSS",
        command = "grep Pss /proc/PID/smaps_rollup", budget = 15,
        checks = "each connection has had a reply, and none was closed",
        void = "fewer connections", run = run_memory, is_exact = true,
        columns = {{"before", "MiB before", 1}},
        target = {value = 8, of = "issue 3"}},
    {
        name = "syscalls", service = "hello", reference = "limit", unit = "calls/request",
        peers = {"limit", "sxe-httpd", "sxe-httpd-lua", "nginx", "h2o", "lighttpd", "haproxy", "go",
                 "node"},
        title = "System calls a request, 64 connections", better = "less", digits = 2, rounds = 1,
        work = "6,400 requests, counted by strace; 64 times more accept a connection",
        command = "strace -c -f -p PID", checks = "the length of each reply; strace saw calls",
        void = "fewer replies, or of another length",
        run = run_syscalls, budget = 10, is_exact = true, needs = {"strace"}},
    {
        name = "start-up", service = "hello", reference = "nginx", unit = "ms", better = "less",
        peers = {"limit", "sxe-httpd", "sxe-httpd-lua", "nginx", "h2o", "lighttpd", "haproxy", "go",
                 "node"},
        title = "From exec to the first reply", digits = 1,
        work = "it is asked again and again from the start, until it answers",
        command = "sxe-httpd -p PORT & time sh -c 'until curl -s 127.0.0.1:PORT; do :; done'",
        checks = "status 200 and body of the reply",
        void = "another reply; it is too short to say who else had the CPUs",
        budget = 5, run = run_start_up},
    {
        name = "size", unit = "MiB", better = "less", digits = 2, reference = "sxe-httpd",
        peers = {our_program("sxe-httpd"), our_program("sxe-http"), our_program("sxe-lua"),
                 program("nginx", "nginx", "nginx-light"), program("h2o"), program("lighttpd"),
                 program("haproxy"), program("node", "Node", "nodejs")},
        title = "Size of the program", work = "the file without symbols; shared libraries are not "
                                              .. "counted, nor lighttpd's and nginx's modules",
        command = "strip -o COPY PROGRAM; ls -l COPY", checks = "strip knows it as a program",
        void = "a script in the program's place", rounds = 1,
        run = run_size, needs = {"strip"}, package = "binutils", budget = 2, is_exact = true,
        ours = "sxe-httpd"},
    generators(64),
    generators(1024),
    sockets_row(10000, 50, 1),
    sockets_row(100000, 10, 6),
}
