-- SPDX-License-Identifier: MIT
--
-- Rows about reverse proxies: sxe-httpd beside HAProxy and nginx, before the limit program. The
-- proxy has one CPU; the load generator and the upstream share the other one.

local peers = require "peers"

local GREETING = peers.services.hello.body
local CONNECTIONS = 64
local RATE = 10000 -- requests a second, a fifth of what the slowest of the three can do
local SENT_LEAST = 0.97 -- of the requests at a rate: the others found no connection
local OF = "issue 22"
local PEERS = {"sxe-httpd-proxy", "haproxy-proxy", "nginx-proxy"}

local VOID = "a reply with another status or body; a connection refused, reset or closed; 0.08 of a "
             .. "CPU taken by others"
local CHECKS = "status 200 and the 14 bytes of each body"
local LOAD = {connections = CONNECTIONS, target = "/", body = GREETING, second = false}

-- Start the limit program as upstream, and the proxy before it, and put a load on the proxy.
local function run_before_limit(bench, peer, what)
    local port = bench.port()
    local upstream <close> = bench.spawn{wire.program("bench/limit-server"), "-p", port}
    assert(upstream:line(20), "the upstream did not start")
    local proxy <close> = bench.start(peer, {backend = port, connections = 2 * CONNECTIONS})
    return bench.load(proxy, what)
end

local function run_rate(bench, peer)
    return run_before_limit(bench, peer, LOAD)
end

local function run_open_loop(bench, peer)
    local sample = run_before_limit(bench, peer, setmetatable({rate = RATE}, {__index = LOAD}))
    if sample.errors then
        return sample
    elseif sample.rate < SENT_LEAST * RATE and not bench.smoke then
        return {errors = ("%.0f of %d requests a second were answered"):format(sample.rate, RATE)}
    end
    sample.value = sample.p99 or sample.slowest
    sample.more = {p50 = sample.p50, p999 = sample.p999}
    return sample
end

return {
    {
        name = "proxy-64", service = "proxy", peers = PEERS, reference = "haproxy-proxy",
        ours = "sxe-httpd-proxy", unit = "replies/CPU s",
        title = "A reverse proxy before the limit program, 64 connections",
        work = "each connection asks again as soon as it has been answered; the CPU time is that of "
               .. "the proxy",
        command = "limit-server -p UPSTREAM; sxe-httpd --proxy /=http://127.0.0.1:UPSTREAM -p PORT; "
                  .. "sxe-http -c 64 -d 1 http://127.0.0.1:PORT/",
        checks = CHECKS, void = VOID, load = LOAD, run = run_rate, budget = 30,
        columns = {{"rate", "per second", 0}, {"server_us", "server µs", 2}, {"p50", "p50 µs", 0},
                   {"p99", "p99 µs", 0}},
        target = {{peer = "haproxy-proxy", ratio = 1, of = OF},
                  {peer = "nginx-proxy", ratio = 1.1, of = OF}}},
    {
        name = "proxy-latency", service = "proxy", peers = PEERS, reference = "nginx-proxy",
        ours = "sxe-httpd-proxy", unit = "p99 µs", better = "less", digits = 0,
        title = "Latency through a reverse proxy at 10,000 requests a second",
        work = "64 connections, requests at random times (Poisson); their time counts from when they "
               .. "were due",
        command = "limit-server -p UPSTREAM; sxe-httpd --proxy /=http://127.0.0.1:UPSTREAM -p PORT; "
                  .. "sxe-http -c 64 -R 10000 -d 1 http://127.0.0.1:PORT/",
        checks = CHECKS, void = VOID .. "; less than 0.97 of the requests are answered", load = LOAD,
        run = run_open_loop, budget = 30,
        columns = {{"p50", "p50 µs", 0}, {"p99", "p99 µs", 0}, {"p999", "p99.9 µs", 0}},
        target = {{peer = "nginx-proxy", ratio = 1, of = OF}}},
}
