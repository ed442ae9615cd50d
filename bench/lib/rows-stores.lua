-- SPDX-License-Identifier: MIT
--
-- Rows about clients and stores of scripts, each beside a C program that does the same with the C library: pipelined
-- GETs beside hiredis, and the local store beside LMDB. bench/redis-get.c and bench/store-lmdb.c are the C programs,
-- bench/lua/redis-get.lua and bench/lua/store.lua are ours.

local others = require "others"
local peers = require "peers"

local PATIENCE = 300 -- seconds

-- Run a program that prints a line before the measured work and a line after it, which has the seconds of its CPU.
-- Returns the wall-clock seconds and the CPU seconds of `count` operations. writes: whether it writes to the disk.
local function run(bench, words, writes)
    local proc <close> = bench.spawn(words, {cpu = bench.server_cpu})
    local first = proc:line(PATIENCE)
    local start, who_else = wire.time(), others.watch(writes)
    local last = first and proc:line(PATIENCE)
    local wall = wire.time() - start
    local sample = {}
    sample.lost, sample.lost_to, sample.stolen = who_else()
    local cpu = last and tonumber(last:match "^end ([%d.]+)$")
    if not cpu or proc:wait(PATIENCE) ~= 0 then
        error(words[1] .. ": " .. proc:errors(), 0)
    end
    return sample, wall, cpu
end

-- ---- Redis ----

local GETS = 2000000

local function run_gets(bench, peer)
    local count = bench.smoke and 10000 or GETS
    local redis <close> = peers.start_redis(bench)
    local words = {wire.program "bench/redis-get", redis.socket, count}
    if peer.name == "sxe.redis" then
        words = {wire.program "sxe-lua", "bench/lua/redis-get.lua", redis.socket, count}
    end
    local sample, wall, cpu = run(bench, words)
    sample.value, sample.more = count / cpu, {rate = count / wall}
    return sample
end

local function lacks(header, package)
    return function()
        local file <close> = io.open("/usr/include/" .. header)
        return not file and ("%s is not installed (package %s); make bench-deps installs it"):format(header, package)
               or nil
    end
end

local hiredis = {name = "hiredis", missing = lacks("hiredis/hiredis.h", "libhiredis-dev")}

-- ---- The store ----

local OPERATIONS = {get = 1000000, ["get-alone"] = 1000000, put = 100000, ["put-none"] = 100000}

local function run_store(bench, peer, what)
    local count = bench.smoke and 10000 or OPERATIONS[what]
    local path = bench.scratch .. "/store"
    local words = {wire.program "bench/store-lmdb", what, count, path}
    if peer.name ~= "LMDB" then
        words = {wire.program "sxe-lua", "bench/lua/store.lua", what, count, path,
                 peer.name == "sxe.dict" and "dict" or nil}
    end
    local good, sample, wall, cpu = pcall(run, bench, words, what:find "^put" ~= nil)
    os.remove(path)
    os.remove(path .. "-lock")
    if not good then
        error(sample, 0)
    end
    return sample, wall / count * 1e9, cpu / count * 1e9
end

-- One sample has both modes of an operation: the first one is its value.
local function run_modes(first, second)
    return function(bench, peer)
        local sample, wall, cpu = run_store(bench, peer, first)
        local _, wall_second = run_store(bench, peer, second)
        sample.value, sample.more = wall, {cpu = cpu, second = wall_second}
        return sample
    end
end

local lmdb = {name = "LMDB", missing = lacks("lmdb.h", "liblmdb-dev")}

local function store_row(name, given)
    local row = {
        name = name, group = "store", variants = true, reference = "LMDB", ours = "sxe.store", unit = "ns",
        better = "less", digits = 0,
        notes = {"a dict in memory has no transactions, and nothing on the disk"},
        peers = {lmdb, {name = "sxe.store"}, {name = "sxe.dict"}}, checks = "the length of each value",
        void = "a missing value; 0.08 of a CPU taken by others",
        target = {peer = "LMDB", ratio = 1.1, of = "issue 21"}}
    for field, value in pairs(given) do
        row[field] = value
    end
    return row
end

return {
    {
        name = "redis-pipeline", variants = true, reference = "hiredis", ours = "sxe.redis", unit = "GETs/CPU s",
        peers = {hiredis, {name = "sxe.redis"}}, needs = {"redis-server"}, budget = 40,
        title = "Pipelined GETs from Redis, 100 at a time, values of 100 bytes",
        work = "a client sends 100 GETs in one write over a unix socket, and takes their replies; Redis has the other "
               .. "CPU, so what a client does in a second of its CPU time is compared",
        command = "redis-get SOCKET 2000000; sxe-lua bench/lua/redis-get.lua SOCKET 2000000",
        checks = "type and length of each reply", void = "a wrong reply; 0.08 of a CPU taken by others",
        run = run_gets, columns = {{"rate", "GETs/s", 0}},
        target = {peer = "hiredis", ratio = 1, of = "issue 21"}},
    store_row("store-get", {
        title = "Gets from a store of 100,000 entries of 16 and 100 bytes, in one snapshot", budget = 40,
        work = "a million gets by keys in random order, each a string of its own in memory, in one transaction that "
               .. "reads; each value is copied out of the store; the last column has a transaction for each get",
        command = "store-lmdb get 1000000 FILE; sxe-lua bench/lua/store.lua get 1000000 FILE",
        run = run_modes("get", "get-alone"),
        columns = {{"cpu", "CPU ns", 0}, {"second", "ns, a transaction each", 0}}}),
    store_row("store-put", {
        title = "Puts into a store of 100,000 entries of 16 and 100 bytes, 1,000 in a transaction", budget = 60,
        work = "100,000 puts of random keys, 1,000 in each transaction, which waits for the disk (sync full); the last "
               .. "column is without that wait (sync none)",
        command = "store-lmdb put 100000 FILE; sxe-lua bench/lua/store.lua put 100000 FILE",
        void = "0.08 of a CPU taken by others; the kernel's threads that write to the disk are none",
        run = run_modes("put", "put-none"),
        columns = {{"cpu", "CPU ns", 0}, {"second", "ns, without sync", 0}}}),
}
