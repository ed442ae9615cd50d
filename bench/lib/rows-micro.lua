-- SPDX-License-Identifier: MIT
-- Rows about single operations, of programs that measure themselves (bench/micro-*.c): a variant is
-- a line of what they print.

local programs = require "programs"

local BOTH = {0, 1} -- CPUs of a program with two processes

-- The value in a line of the output that begins with the variant's name. variant.below: a text that
-- must come before that line; variant.column: which of several columns, by default the first. "-"
-- means no value; a "~" after a value means that the measurement was disturbed.
local function value_of(output, variant)
    local part = output
    if variant.below then
        local start = output:find(variant.below, 1, true)
        part = start and output:sub(start) or ""
    end
    local name = variant.line:gsub("%p", "%%%0")
    local columns = ("\n" .. part):match("\n%s*" .. name .. "%s+([%d.~%- ]+)") or ""
    local number = 0
    for value in columns:gmatch("[^%s~]+") do
        number = number + 1
        if number == (variant.column or 1) then
            return tonumber(value)
        end
    end
end

-- more: fields of this row only; also = {key = column}: other columns of a variant's line.
local function row(name, title, program, variants, more)
    local result = {
        name = name, title = title, unit = "ns", better = "less", digits = 1, peers = variants,
        variants = true, reference = variants[1].name, ours = variants[1].name, budget = 15,
        command = "build/release/bench/" .. program, checks = "by the program itself",
        void = "0.08 of a CPU taken by others"}
    result.run = function(bench, variant)
        local words = {wire.program("bench/" .. program), table.unpack(result.arguments or {})}
        local output, ran = programs.output(bench, words, name .. variant.name, result.cpu)
        local sample = {value = value_of(output, variant), more = {}, lost = ran.lost,
                        lost_to = ran.lost_to, stolen = ran.stolen}
        for key, number in pairs(result.also or {}) do
            sample.more[key] = value_of(output, {line = variant.line, below = variant.below,
                                                 column = number})
        end
        return sample.value and sample or {skipped = "its program does not know it here"}
    end
    for field, value in pairs(more or {}) do
        result[field] = value
    end
    return result
end

-- Variants that have the same names as their lines.
local function lines(...)
    local list = {}
    for i, line in ipairs{...} do
        list[i] = {name = line, line = line}
    end
    return list
end

local function parsers(below)
    local list = {}
    for _, line in ipairs{"sxe-http", "sxe-http, SSE4.2", "sxe-http, plain C", "http-parser",
                          "http-parser, silent", "llhttp", "llhttp, silent"} do
        list[#list + 1] = {name = line, line = line, below = below}
    end
    return list
end

-- The variants of micro-pool: the name in the row, and the line of the output.
local function pool_variants()
    local list = {}
    for _, each in ipairs{{"change, in order", "change"}, {"change, at random", "change_random"},
                          {"touch, in order", "touch"}, {"touch, at random", "touch_random"},
                          {"take and free", "take"}, {"change, with the clock", "clock"}} do
        list[#list + 1] = {name = each[1], line = each[2]}
    end
    return list
end

-- A variant for each of these lines, with the value in that column.
local function column(number, ...)
    local list = lines(...)
    for _, variant in ipairs(list) do
        variant.column = number
    end
    return list
end

local function kinds_of_pools()
    local list = {}
    for i, name in ipairs{"one thread", "threads", "processes"} do
        list[i] = {name = name, line = "1000000  change state, in order", column = i}
    end
    return list
end

local function shards()
    local list = {}
    for _, number in ipairs{"1", "8", "64"} do
        list[#list + 1] = {name = number .. (number == "1" and " shard" or " shards"),
                           line = number, column = 2, below = "shards"}
    end
    return list
end

return {
    row("parse", "Parsing a request of curl's, 88 bytes", "micro-http-parse",
        parsers("short (curl's)"),
        {work = "the head of a request is parsed, its fields found; silent: without callbacks",
         budget = 13}),
    row("parse-browser", "Parsing a request of a browser's, 699 bytes", "micro-http-parse",
        parsers("browser, 699"),
        {work = "the head of a request is parsed, its fields found; silent: without callbacks",
         budget = 12}),
    row("pool", "Operations of a pool of 100,000 elements", "micro-pool", pool_variants(),
        {work = "one element goes to another state, is made the youngest, or is taken and freed",
         arguments = {"100000"}, budget = 6}),
    row("log", "A line of the log", "micro-log",
        lines("text, three values, to a function", "text, constant, to a function",
              "text, 66 bytes to escape, to a function", "json, three values, to a function",
              "text, three values, to /dev/null", "hidden line (with the loop's call)"),
        {work = "a line is formatted and handed over; hidden: its level is not shown",
         budget = 24}),
    row("lua-call", "A call over the border of C and Lua", "micro-lua",
        lines("C calls Lua, sxe_lua_call", "C calls Lua, lua_pcall",
              "Lua calls C, a module's function", "Lua calls C, plain Lua 5.4",
              "Lua reads a variable of C, tied", "Lua calls Lua"),
        {work = "a function of one or two numbers, each way; the calling loop is taken off",
         reference = "Lua calls C, plain Lua 5.4", budget = 10}),
    row("buffer", "Operations of a buffer", "micro-buffer",
        lines("take and give a chunk", "add 100 bytes", "print a 17-byte line"),
        {work = "what each of them does, once", budget = 4}),
    row("pool-shared", "A pool's change of state, by who shares the pool", "micro-pool-shared",
        kinds_of_pools(),
        {work = "an element of a million goes to another state; one process, the best of many runs",
         arguments = {"alone"}, ours = "processes", rounds = 3, budget = 11,
         target = {{peer = "one thread", ratio = 3, of = "issue 6"},
                   {value = 60, of = "issue 6"}}}),
    row("pool-together", "Two processes that do nothing but change one pool", "micro-pool-shared",
        shards(),
        {work = "each takes an element and frees it, all the time; both together",
         arguments = {"together"}, ours = "64 shards", rounds = 3, budget = 7,
         cpu = BOTH, unit = "million changes/s", better = "more",
         target = {value = 5, of = "issue 6"}}),
    row("pool-lists", "Allocate, use, free, by two processes", "micro-pool-peers",
        column(2, "free list, pthread mutex", "free list, robust pthread mutex",
               "ck_ring, many to many", "pool, 1 shard", "pool, 8 shards", "pool, 64 shards",
               "pool, 8 shards, 32 at a time"),
        {work = "an element of 64 bytes is had, written to, and given back; both together",
         arguments = {"lists"}, ours = "pool, 64 shards", rounds = 2, budget = 13,
         cpu = BOTH, unit = "million/s", better = "more",
         target = {{peer = "free list, pthread mutex", ratio = 1, of = "issue 6"},
                   {peer = "ck_ring, many to many", ratio = 1, of = "issue 6"}}}),
    row("pool-queues", "64-byte messages from one process to another", "micro-pool-peers",
        column(2, "POSIX mqueue", "Redis list, 64 commands at once", "two ck_rings, many to many",
               "pool, 1 shard", "pool, 8 shards", "pool, 8 shards, asleep when empty",
               "pool, 8 shards, 32 at a time"),
        {work = "a message is copied into an element, and out of it by another process",
         arguments = {"queues"}, ours = "pool, 8 shards, 32 at a time", rounds = 2, budget = 12,
         cpu = BOTH, unit = "million/s", better = "more", digits = 3,
         target = {{peer = "POSIX mqueue", ratio = 1, of = "issue 6"},
                   {peer = "two ck_rings, many to many", ratio = 1, of = "issue 6"},
                   {peer = "Redis list, 64 commands at once", ratio = 1, of = "issue 6"}}}),
    row("dict", "A dict's entries of 16 and 100 bytes, a million of them, one client", "micro-dict",
        column(1, "dict, in memory", "dict, in a file", "LMDB, no sync", "LMDB, sync",
               "Redis, unix socket"),
        {work = "a value is had, or put, by keys in random order; LMDB has a transaction for each "
                .. "put, Redis is asked over a unix socket, a command at a time",
         arguments = {"peers"}, cpu = BOTH, rounds = 2, budget = 50, digits = 0,
         also = {put = 2}, columns = {{"put", "put ns", 0}}}),
}
