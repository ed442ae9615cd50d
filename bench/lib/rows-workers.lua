-- SPDX-License-Identifier: MIT
--
-- Rows about sxe-httpd with worker processes: two workers beside two of others, the cost of metrics
-- and of the access log, latency below the highest rate, and one worker beside none.
--
-- In the rows with two workers the load generator shares both CPUs with the server, so they count
-- what the server does in a second of its CPU, and so do the rows that compare ours with ours.

local peers = require "peers"

local GREETING = peers.services.hello.body
local CPUS = {0, 1}
local CONNECTIONS = 64
local SENT_LEAST = 0.97 -- of the requests at a rate: the others found no connection

local VOID = "a reply with another length; a connection refused, reset or closed; 0.08 of a CPU "
             .. "taken by others"
local CHECKS = "status and body of the first reply, the length of all"
local OF = "issue 19"

local function load_of(connections, more)
    local what = {connections = connections, target = "/", body = GREETING, client = "limit-client",
                  second = false}
    for field, value in pairs(more or {}) do
        what[field] = value
    end
    return what
end

local function row(name, more)
    local result = {
        name = "workers-" .. name, group = "workers", service = "hello", unit = "replies/CPU s",
        checks = CHECKS, void = VOID, load = load_of(CONNECTIONS),
        columns = {{"rate", "per second", 0}, {"server_us", "server µs", 2}, {"p50", "p50 µs", 0},
                   {"p99", "p99 µs", 0}}}
    for field, value in pairs(more) do
        result[field] = value
    end
    return result
end

-- ---- Two workers ----

local function two(connections)
    return row(tostring(connections), {
        title = ("Hello, World!, two workers on two CPUs, %d connections"):format(connections),
        work = "each connection asks again as soon as it has been answered; the client runs on the "
               .. "same two CPUs, so what a server does in a second of its CPU time is compared",
        peers = {"sxe-httpd-workers", "nginx", "go", "node-cluster"}, reference = "nginx",
        ours = "sxe-httpd-workers", budget = 35, client_cpus = #CPUS,
        command = ("sxe-httpd -w 2 -p PORT; limit-client -c %d -b 64 -d 1 -p PORT"):format(
            connections),
        context = {cpu = CPUS, workers = #CPUS}, load = load_of(connections, {client_cpu = CPUS}),
        target = {{peer = "nginx", ratio = 1.3, of = OF}, {peer = "go", ratio = 3, of = OF},
                  {peer = "node-cluster", ratio = 5, of = OF}}})
end

-- ---- One worker of ours beside another one of ours ----

local function pair(name, reference, ours, least, more)
    more.peers, more.reference, more.ours = {reference, ours}, reference, ours
    more.rounds, more.seconds = 21, 0.4 -- the ratio of one round scatters by an eighth
    more.target = {peer = reference, ratio = least, of = OF}
    return row(name, more)
end

-- ---- Latency ----

-- Load a server as much as it can take, then with half of that rate in an open loop.
local function run_latency(bench, peer)
    local server <close> = bench.start(peer)
    local most = bench.load(server, load_of(CONNECTIONS))
    if most.errors then
        return most
    end
    local half = most.rate / 2
    local sample = bench.load(server, load_of(CONNECTIONS, {client = "sxe-http", rate = half}))
    if sample.errors then
        return sample
    elseif sample.rate < SENT_LEAST * half and not bench.smoke then
        return {errors = ("%.0f of %.0f requests a second were answered"):format(sample.rate, half)}
    end
    sample.value = sample.p99 or sample.slowest
    sample.more = {most = most.rate, half = half, p50 = sample.p50, p999 = sample.p999}
    return sample
end

local LATENCY = {{peer = "nginx", ratio = 1, of = OF}, {peer = "h2o", ratio = 1, of = OF},
                 {peer = "nginx", key = "p999", ratio = 1, of = OF},
                 {peer = "h2o", key = "p999", ratio = 1, of = OF}}

return {
    two(64),
    two(1024),
    pair("metrics", "sxe-httpd-worker", "sxe-httpd-metrics", 0.95, {
        title = "Hello, World!, one worker, with metrics and without",
        work = "with --admin the worker counts each request; nothing asks for the metrics",
        command = "sxe-httpd -w 1 --admin PATH -p PORT; limit-client -c 64 -b 64 -d 0.4 -p PORT"}),
    pair("log", "sxe-httpd-worker", "sxe-httpd-log", 0.95, {
        title = "Hello, World!, one worker, with an access log and without",
        work = "each request is a line of a file, in the format combined",
        command = "sxe-httpd -w 1 --access-log FILE -p PORT; limit-client -c 64 -b 64 -d 0.4 "
                  .. "-p PORT"}),
    row("latency", {
        title = "Latency at half of each server's highest rate, one worker", unit = "p99 µs",
        better = "less", digits = 0, peers = {"sxe-httpd-worker", "nginx", "h2o"},
        reference = "nginx", ours = "sxe-httpd-worker", budget = 60, seconds = 1.2,
        work = "64 connections: first each asks again as soon as it has been answered, which gives "
               .. "the highest rate; then requests come at half of it (Poisson), and their time "
               .. "counts from when they were due",
        command = "limit-client -c 64 -b 64 -d 1.2 -p PORT; sxe-http -c 64 -R HALF -d 1.2 "
                  .. "http://127.0.0.1:PORT/",
        checks = "status 200 and the 14 bytes of each body", run = run_latency,
        void = VOID .. "; less than 0.97 of the requests are answered", target = LATENCY,
        columns = {{"most", "highest rate", 0}, {"half", "half of it", 0}, {"p50", "p50 µs", 0},
                   {"p99", "p99 µs", 0}, {"p999", "p99.9 µs", 0}}}),
    pair("one", "sxe-httpd", "sxe-httpd-worker", 0.97, {
        title = "Hello, World!, a supervisor with one worker, and a single process",
        work = "the same load; the median of 21 rounds is known to 3 %, so 0.97 is within noise",
        command = "sxe-httpd -w 1 -p PORT; limit-client -c 64 -b 64 -d 0.4 -p PORT"}),
}
