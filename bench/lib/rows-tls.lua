-- SPDX-License-Identifier: MIT
--
-- Rows about TLS: the greeting on kept connections, handshakes, a long file, memory of idle
-- connections, load generators. All peers have the same library, OpenSSL 3, the same certificate,
-- and what the client offers: TLS 1.3, AES-128-GCM, X25519.
--
-- The client computes as much as the server, and more in full handshakes, so it may be the limit.
-- The rows therefore count what the server does in a second of its CPU.

local clients = require "clients"
local peers = require "peers"

local GREETING = peers.services.tls.body
local OPEN, FEW = 10000, 100 -- connections in the row about memory, and in a smoke run

local ALL = {"limit-tls", "sxe-httpd-tls", "nginx-tls", "h2o-tls", "haproxy-tls", "node-tls"}
local VOID = "a wrong reply; a connection refused, reset or closed; another version or cipher; "
             .. "0.08 of a CPU taken by others"
local OF = "issue 20"

-- Ours must reach `limit` times the limit program, and `others` times other servers.
local function targets(limit, others)
    local list = {limit and {peer = "limit-tls", ratio = limit, of = OF}}
    for _, other in ipairs(others) do
        list[#list + 1] = {peer = other[1], ratio = other[2], of = OF}
    end
    return list
end

local function row(name, more)
    local result = {
        name = "tls-" .. name, service = "tls", group = "tls", peers = ALL,
        reference = "limit-tls", ours = "sxe-httpd-tls", void = VOID, missing = peers.lacks_tls,
        columns = {{"rate", "per second", 0}, {"server_us", "server µs", 1}, {"p50", "p50 µs", 0},
                   {"p99", "p99 µs", 0}}}
    for field, value in pairs(more) do
        result[field] = value
    end
    return result
end

-- ---- Handshakes ----

local NOT_BEHIND = targets(0.95, {{"nginx-tls", 1}, {"h2o-tls", 1}, {"haproxy-tls", 1}})

local function handshakes(name, title, key, resumes)
    return row(name, {
        title = title .. ", 64 at a time", unit = "handshakes/CPU s", budget = 35,
        work = "connect, handshake, one request with Connection: close, its reply, reset by the "
               .. "client",
        command = ("limit-tls-client %s -c 64 -d 1 -p PORT"):format(resumes and "-r" or "-f"),
        checks = "every byte of each reply but the head's fields; version, cipher; "
                 .. (resumes and "all" or "none") .. " of the handshakes are resumed",
        context = {key = key}, target = NOT_BEHIND,
        void = VOID .. "; a handshake that is " .. (resumes and "full" or "resumed"),
        load = {connections = 64, target = "/", body = GREETING, fresh = true, look = false,
                second = false, tls = {resumes = resumes}}})
end

-- ---- Memory: connections that have each asked once are open and idle ----

-- Seconds until a server that frees OpenSSL's buffers after a while has done so: ours takes one.
local QUIET = 3

local function run_memory(bench, peer)
    local open = bench.smoke and FEW or OPEN
    local server <close> = bench.start(peer, {connections = open + 64, is_idle = true})
    local before = server:pss()
    local client <close> = bench.spawn{
        wire.program("bench/limit-tls-client"), "-p", server.port, "-c", open, "-q", 60}
    local line = client:line(120)
    if not line or not line:find('"errors":0', 1, true)
       or not line:find(('"requests":%d,'):format(open), 1, true) then
        return {errors = (line or "") .. client:errors()}
    end
    wire.sleep(bench.smoke and 0 or QUIET)
    local after = server:pss()
    return {value = (after - before) / open, more = {before = before / 2^20, after = after / 2^20}}
end

-- ---- Load generators ----

local function generators()
    local list = {}
    for _, name in ipairs{"limit-tls-client", "sxe-http", "wrk", "h2load"} do
        local client = clients.find(name)
        list[#list + 1] = {name = name, client = name, needs = {client.program},
                           package = client.package or client.program,
                           start = function(context)
                               return peers.find("limit-tls").start(context)
                           end}
    end
    return list
end

-- ---- A file ----

-- All lines differ, so that bytes from a wrong place of the file are noticed.
local function numbered(length)
    local lines = {}
    for i = 1, length // 10 do
        lines[i] = ("%09d\n"):format(i)
    end
    return table.concat(lines)
end

local FILE = numbered(100000)

return {
    row("hello-64", {
        title = "Hello, World! over TLS, 64 keep-alive connections", unit = "replies/CPU s",
        work = "each connection asks again as soon as it has been answered; one core serves",
        command = "limit-tls-client -c 64 -b 64 -d 1 -p PORT", budget = 40,
        checks = "status and length of each head, every byte of each body; version and cipher",
        target = targets(0.95, {{"nginx-tls", 1.2}}),
        load = {connections = 64, target = "/", body = GREETING, look = false, second = false,
                tls = {}}}),
    handshakes("p256", "Full handshakes with P-256", "ec", false),
    handshakes("rsa", "Full handshakes with RSA-2048", "rsa", false),
    handshakes("resumed", "Resumed handshakes", "ec", true),
    row("file-100k", {
        title = "A file of 100,000 bytes over TLS, 64 keep-alive connections",
        service = "tls-file", peers = {"sxe-httpd-tls", "nginx-tls", "h2o-tls"},
        reference = "nginx-tls", unit = "replies/CPU s", budget = 30,
        work = "the same file again and again, from the page cache; no access log",
        command = "limit-tls-client -c 64 -b 64 -d 1 -u /100k -p PORT",
        checks = "status and length of each head, every byte of each body; version and cipher",
        target = targets(nil, {{"nginx-tls", 1}}), files = {["100k"] = FILE},
        load = {connections = 64, target = "/100k", body = FILE, look = false, second = false,
                tls = {}}}),
    row("memory", {
        title = "Memory of the server for an idle connection of TLS", unit = "bytes/connection",
        better = "less", rounds = 1, digits = 0, is_exact = true, budget = 60,
        reference = "nginx-tls",
        work = ("%d connections have each asked once, and are idle for %d seconds; what the "
                .. "server's PSS has grown by"):format(OPEN, QUIET),
        command = "grep Pss /proc/PID/smaps_rollup",
        checks = "each connection has had a reply, and none was closed",
        void = "fewer connections", run = run_memory,
        columns = {{"before", "MiB before", 1}, {"after", "MiB after", 1}},
        target = {{value = 16000, of = OF}, {peer = "nginx-tls", ratio = 0.95, of = OF}}}),
    row("clients-64", {
        title = "Load generators over TLS, 64 connections, against the limit program",
        peers = generators(), unit = "requests/CPU s", budget = 60, rounds = 21, seconds = 0.4,
        reference = "limit-tls-client", ours = "sxe-http",
        work = "closed loop, keep-alive, one core; what a generator does in a second of its CPU",
        command = "sxe-http -c 64 -d 1 --insecure https://127.0.0.1:PORT/",
        checks = "each what it checks: limit-tls-client and sxe-http all bytes, wrk statuses",
        void = "an error that any of them counts; 0.08 of a CPU taken by others",
        columns = {{"rate", "per second", 0}, {"p50", "p50 µs", 0}, {"p99", "p99 µs", 0}},
        load = {connections = 64, target = "/", body = GREETING, look = false, second = false,
                batch = 1, tls = {}},
        target = {{peer = "h2load", ratio = 1, of = OF}, {peer = "wrk", ratio = 1, of = OF}}}),
}
