-- SPDX-License-Identifier: MIT
-- The tables that were published about libsxe of 2010 and its successors, S1 to S10, measured again
-- beside their peers.

local cjson = require "cjson"

local clocks = require "clocks"
local method = require "method"
local others = require "others"
local peers = require "peers"
local programs = require "programs"
local sort = require "sort-load"
local warden = require "warden"

local GREETING = peers.services.hello.body
local VOID = "a reply with another status, length or body; a connection refused, reset or closed; "
             .. "0.08 of a CPU taken by others"

-- The CPUs of this machine: {0, 1, ...}.
local function all_cpus()
    local list = {}
    for line in io.lines("/proc/cpuinfo") do
        if line:find("^processor") then
            list[#list + 1] = #list
        end
    end
    return list
end

local CPUS = all_cpus()

-- Make a page of some 4,000 bytes, in which all lines differ.
local function make_page()
    local lines = {"<!DOCTYPE html>", "<title>A page</title>"}
    for i = 1, 100 do
        lines[#lines + 1] = ("<p>This is paragraph %03d.</p>"):format(i)
    end
    return table.concat(lines, "\n") .. "\n"
end

local PAGE = make_page()

-- ---- S4 ----

local WORKERS = 6 -- because one process may have only 20,000 descriptors

local COUNTS_MAX = 8 -- how often a step is counted until a count is undisturbed

-- Measure how much of a CPU the server, the client and other programs used while a step was
-- counted. If other programs disturb the count, the step is counted again under the same load. Some
-- programs disturb in bursts: one that watches a machine with 100,000 sockets has much to look at.
local function count_step(client, server)
    local counted
    for n = 1, COUNTS_MAX do
        local stop, who_else = clocks.start(server, client:pid()), others.watch()
        if not client:line(120) then
            return counted or {}
        end
        counted = stop()
        counted.lost, counted.lost_to, counted.stolen = who_else()
        if n == COUNTS_MAX or (counted.lost or 0) < method.LOST_MAX then
            client:signal("USR2")
            return counted
        end
        client:signal("USR1")
        client:line(20) -- the client prints that it starts
    end
end

-- All steps are one run: the client opens more and more connections, and prints a line when it
-- pauses. Nothing is measured while connections are opened, so `lost` is that of the most disturbed
-- step. The CPU of both sides is that of the last step.
local function run_crowd(bench, peer)
    local steps = bench.smoke and {60, 120} or {10000, 30000, 100000}
    local most = steps[#steps]
    local server <close> = bench.start(peer, {connections = most, workers = WORKERS})
    local wrong = select(2, bench.look(server, {target = "/", body = GREETING}))
    if wrong then
        return {errors = wrong}
    end
    local client <close> = bench.spawn{
        wire.program("bench/crowd-client"), "-p", server.port, "-s", table.concat(steps, ","), "-t",
        WORKERS, "-d", bench.smoke and 0.1 or 0.5, "-q", 0.2, "-a"}
    local points, worst, most_stolen, last = {}, {}, 0, {}
    while client:line(120) do -- the client prints that a step starts
        last = count_step(client, server)
        if (last.lost or 0) >= (worst.lost or 0) then
            worst = last
        end
        most_stolen = math.max(most_stolen, last.stolen or 0)
        local line = client:line(120)
        local step = line and cjson.decode(line)
        points[#points + 1] = step and {x = step.connections, value = step.requests / step.seconds,
                                        memory = server:pss()}
    end
    local status = client:wait(60)
    if status ~= 0 or #points ~= #steps then
        return {errors = client:errors()}
    end
    return {value = points[#points].value, points = points, cpu_server = last.cpu_server,
            cpu_client = last.cpu_client, lost = worst.lost, lost_to = worst.lost_to,
            stolen = most_stolen, more = {memory = points[#points].memory}}
end

-- given: fields of this row only
local function crowd(given)
    local row = {
        service = "hello", reference = "nginx", ours = "sxe-httpd-workers", unit = "replies/s",
        title = "Hello, World!, up to 100,000 open connections, six processes on one port",
        work = "each connection asks again as soon as it has been answered; six servers share one "
               .. "core, six workers of the client the other",
        command = "sxe-httpd -w 6 -c 19800 --header-timeout 3600 -p PORT; crowd-client -p PORT "
                  .. "-s 10000,30000,100000",
        checks = "status 200 once a worker, the length of each reply; all connections are open",
        void = VOID, x_title = "open connections", plot = "lines", run = run_crowd,
        columns = {{"memory", "bytes of memory", 0}}}
    for name, value in pairs(given) do
        row[name] = value
    end
    return row
end

-- ---- S5, S6: as many workers as CPUs, on all of them; the client has what it needs of one ----

local function is_like(name)
    local service = peers.services[name]
    return function(reply)
        local good = reply.body:find(service.pattern) and #reply.body == service.length
        return good or nil, good or ("%d bytes, %q..."):format(#reply.body, reply.body:sub(1, 40))
    end
end

local function cluster_load(name)
    return {connections = 50, target = "/", body = is_like(name), second = false,
            body_length = peers.services[name].length}
end

-- Start a server and the Redis that it asks. The CPU of Redis counts as the server's.
local function start_with_redis(bench, peer)
    local redis = peers.start_redis(bench)
    local good, server = pcall(bench.start, peer, {redis_port = redis.port, workers = #CPUS,
                                                   cpu = CPUS})
    if not good then
        redis.stop()
        error(server, 0)
    end
    local own = server.pids
    function server.pids()
        local pids, more = own(), redis.pids()
        return table.move(more, 1, #more, #pids + 1, pids)
    end
    return setmetatable({server = server}, {__close = function()
        server.stop()
        redis.stop()
    end})
end

local function run_redis(bench, peer)
    return bench.with(peer, function() return start_with_redis(bench, peer) end, function(both)
        return bench.load(both.server, cluster_load("redis"))
    end)
end

-- ---- S8 ----

local SORTERS = {"sxe-httpd-lua-workers", "node-callbacks", "node-sync", "node-cluster"}

local function run_sort(bench, peer)
    return sort.run(bench, peer, {servers = 2, clients = 4, cpu = CPUS})
end

local function run_sort_sweep(bench, peer)
    local most = bench.smoke and {servers = 1, clients = 2} or {servers = 4, clients = 8}
    return sort.sweep(bench, peer, most, CPUS)
end

-- ---- S9 ----

local LOOKUPS = 30000000

-- One program measures all ways to look up a record: it makes the records once and waits for each
-- round.
local function run_lookup(bench, variant)
    local ask = programs.start(bench, {wire.program("bench/lookup"), "-r",
                                       bench.smoke and 100000 or LOOKUPS, "-"})
    local who_else = others.watch()
    local ns = tonumber(ask(variant.name):match("round ([%d.]+) ns"))
    local sample = {value = ns * LOOKUPS / 1e9, more = {ns = ns}}
    sample.lost, sample.lost_to, sample.stolen = who_else()
    return sample
end

-- ---- S10 ----

-- Copy the sources without built files, and make the copy a repository of its own, because some
-- tests ask git for the list of files.
local function copy_sources(directory)
    local command = ("mkdir -p %s && git ls-files -z --cached --others --exclude-standard | "
        .. "tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C %s && git init -q %s "
        .. "&& git -C %s add -A"):gsub("%%s", directory)
    assert(os.execute(command), "the sources cannot be copied")
end

local function run_from_scratch(bench, peer)
    local directory = bench.scratch .. "/sources"
    copy_sources(directory)
    local start = wire.time()
    local proc <close> = wire.spawn{"sh", "-c", ("cd %s && unset MAKEFLAGS MAKELEVEL MFLAGS && "
        .. "make -j%d %s"):format(directory, #CPUS, peer.name)}
    warden.has_begun(proc) -- processes that make starts end with the driver, too
    local output = proc:output(1800)
    local status = proc:wait(60)
    warden.has_ended(proc)
    local seconds = wire.time() - start
    os.execute("rm -rf " .. directory)
    if status ~= 0 then
        return {errors = output:sub(-400) .. proc:errors():sub(-400)}
    end
    local passed = output:match("(%d+) passed, 0 failed%s*$")
    return {value = seconds, more = {tests = tonumber(passed)}}
end

-- ---- The rows ----

return {
    {
        name = "S1", service = "hello", reference = "limit", unit = "replies/s", budget = 75,
        peers = {"limit", "sxe-httpd", "nginx", "h2o", "go", "node", "node-net"},
        title = "Hello, World!, 10,000 keep-alive connections",
        work = "10,000 sockets are opened, 16 connects under way at a time; then each asks again "
               .. "as soon as it has been answered",
        checks = "status 200 and the 14 bytes of each body",
        command = "sxe-http -p PORT -c 10000 -n 50", void = VOID, plot = "bars",
        target = {peer = "limit", ratio = 0.93, of = "issue 3"},
        columns = {{"connects", "connects/s", 0}, {"server_us", "server µs/request", 2},
                   {"p50", "p50 µs", 0}, {"p99", "p99 µs", 0}},
        load = {connections = 10000, target = "/", body = GREETING}},
    {
        name = "S2", service = "2010", reference = "sxe-c", ours = "sxe-lua", unit = "replies/s",
        peers = {"sxe-c", "sxe-lua"}, title = "The same through Lua: five lines of 2010",
        work = "10,000 keep-alive connections to a server in C, and to one in Lua with the same "
               .. "callbacks", checks = "status 200 and the 14 bytes of each body",
        command = "lua-twins PORT 2010; lua-twins PORT bench/lua/2010.lua", void = VOID,
        budget = 25,
        target = {peer = "sxe-c", ratio = 0.95, of = "issue 5"},
        load = {connections = 10000, target = "/", body = peers.services["2010"].body}},
    {
        name = "S3", service = "random", reference = "limit", ours = "sxe-httpd-lua", unit = "s",
        peers = {"limit", "sxe-httpd-lua", "nginx-lua", "go", "node"}, better = "less", digits = 3,
        title = "A random number after a second: 10,000 requests, 5,000 at a time",
        work = "5,000 connections ask twice each; a second passes before each reply, so 2.0 s is "
               .. "the floor",
        command = "limit-client -c 5000 -b 64 -n 2 -u '/random?number=8' -p PORT",
        checks = "the length of each reply, status once a sample, a digit once a server",
        void = VOID, takes = 3.4,
        target = {peer = "limit", ratio = 1.03, of = "issue 5"},
        columns = {{"p50", "p50 µs", 0}, {"p99", "p99 µs", 0}},
        load = {connections = 5000, queries = 2, target = "/random?number=8",
                client = "limit-client", second = false, look = "once",
                body = function(reply) return reply.body:find("^%d$") ~= nil, reply.body end}},
    crowd{name = "S4", peers = {"sxe-httpd-workers", "nginx", "go"}, budget = 300,
          target = {{peer = "go", ratio = 1, of = "seed-api"},
                    {peer = "nginx", key = "memory", ratio = 1, better = "less",
                     of = "seed-api"}},
          notes = {"Node's cluster is in S4-node, when it is asked for: its master deals "
                   .. "out connections for half a minute a round"}},
    crowd{name = "S4-node", group = "S4", peers = {"sxe-httpd-workers", "nginx", "node-cluster"},
          budget = 400, asked_only = true},
    {
        name = "S5", service = "generate", reference = "node-cluster",
        ours = "sxe-httpd-lua-workers",
        peers = {"sxe-httpd-lua-workers", "sxe-httpd-random-text", "node-cluster"},
        unit = "replies/s",
        title = "108,000 random characters, written to a new file, read back, sent; 50 at a time",
        work = "each character is one random number of the language's, except where the handler "
               .. "calls crypto.random_text once; the file's name is fresh, and the file removed; "
               .. "as many workers as CPUs, on all of them",
        command = "sxe-httpd -w 2 -p PORT --lua bench/lua/generate.lua -- /tmp; sxe-http -c 50 "
                  .. "--requests 2000",
        checks = "status and 108,000 bytes of each reply, letters and digits once a sample",
        void = VOID, budget = 25, context = {cpu = CPUS, workers = #CPUS},
        load = cluster_load("generate"),
        target = {{peer = "node-cluster", ratio = 1, of = "issue 7, a loop in Lua"},
                  {peer = "node-cluster", ratio = 1, of = "issue 22, crypto.random_text",
                   ours = "sxe-httpd-random-text"}},
        notes = {"crypto.random_text is a call of C, with the system's random numbers; Node's "
                 .. "handler is a loop of JavaScript with Math.random"}},
    {
        name = "S6", service = "redis", reference = "node-cluster", ours = "sxe-httpd-lua-workers",
        peers = {"sxe-httpd-lua-workers", "node-cluster"}, unit = "replies/s",
        title = "Redis: del, hmset of 100 texts of 1,000 characters, hgetall; 50 at a time",
        work = "a hash is set, read back, its texts are sent; at most ten connections to Redis from "
               .. "each of as many workers as CPUs; the server's CPU is theirs and that of Redis",
        command = "sxe-httpd -w 2 -p PORT --lua bench/lua/redis.lua -- REDIS_PORT; sxe-http -c 50 "
                  .. "--requests 2000",
        checks = "status and 100,000 bytes of each reply, letters once a sample",
        void = VOID, budget = 20, run = run_redis, context = {cpu = CPUS},
        needs = {"redis-server"}, target = {peer = "node-cluster", ratio = 1.5, of = "issue 21"}},
    {
        name = "S7", service = "file", reference = "nginx", unit = "replies/s", budget = 45,
        peers = {"sxe-httpd", "nginx", "h2o", "lighttpd", "go", "node"},
        title = ("A static page of %d bytes, 50 keep-alive connections"):format(#PAGE),
        work = "the page again and again, from the page cache",
        command = "sxe-http -c 50 --requests 100k --expect-body @page.html "
                  .. "http://127.0.0.1:PORT/page.html",
        checks = "status 200 and every byte of every body", void = VOID,
        files = {["page.html"] = PAGE}, target = {peer = "nginx", ratio = 1, of = "issue 7"},
        load = {connections = 50, target = "/page.html", body = PAGE}},
    {
        name = "S8", service = "sort", reference = "node-cluster", ours = "sxe-httpd-lua-workers",
        peers = SORTERS, unit = "requests/s", plot = "candles", budget = 25,
        title = "Ten reads a write of 30 files, sorted: 2 servers, 4 clients",
        work = "GET reads a file, splits it, sorts and joins the parts; POST appends; each server "
               .. "is a process, and each client one connection to one of them",
        command = "sxe-http --scenario examples/read-write.lua --candles - http://127.0.0.1:PORT/",
        checks = "status of each reply, and that its parts are sorted", void = VOID,
        run = run_sort, target = {peer = "node-cluster", ratio = 1, of = "issue 7"},
        context = {cpu = CPUS}, client_cpus = #CPUS},
    {
        name = "S8-sweep", group = "S8", service = "sort", reference = "node-cluster",
        ours = "sxe-httpd-lua-workers", peers = SORTERS, unit = "requests/s", plot = "candles",
        title = "The same with 1 to 4 servers and 1 to 8 clients", rounds = 1, budget = 70,
        work = "as S8, every combination once; min, mean, 101 % of mean and max go into a CSV",
        command = "make bench ROW=S8-sweep", checks = "as S8", void = VOID, run = run_sort_sweep,
        seconds = 0.25, context = {cpu = CPUS}, client_cpus = #CPUS},
    {
        name = "S9", variants = true, reference = "bsearch", ours = "hash", unit = "s",
        peers = {{name = "bsearch"}, {name = "hash"},
                 {name = "hash-16", title = "hash, 16 at a time"}},
        better = "less", digits = 2, title = "30 million look-ups in 30 million records, 1 GB",
        work = "records of 32 bytes in a pool are looked up by 64-bit keys in random order; the "
               .. "seconds are those of all 30 million, from as many rounds",
        command = "build/release/bench/lookup hash", checks = "the record found is the key's",
        void = "a record not found; swapping; 0.08 of a CPU taken by others", budget = 25,
        run = run_lookup,
        columns = {{"ns", "ns a look-up", 1}}, target = {value = 5, of = "seed-api"}},
    {
        name = "S10", variants = true, reference = "test", ours = "test", unit = "s",
        peers = {{name = "release"}, {name = "test"}}, better = "less",
        title = "Build and test from scratch: release, coverage", rounds = 1,
        work = "make release, and make test, which builds and tests both, of a fresh copy of "
               .. "the sources", command = "make test", checks = "no test fails",
        void = "0.08 of a CPU taken by others", budget = 600, run = run_from_scratch,
        columns = {{"tests", "tests", 0}}, target = {value = 180, of = "seed-api"},
        asked_only = true, notes = {"only when it is asked for: it takes minutes"}},
}
