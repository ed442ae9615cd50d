-- SPDX-License-Identifier: MIT
--
-- What: how many instructions of ours a request or an operation takes, counted by callgrind. Unlike
-- seconds they are the same on a busy machine and on an idle one. The kernel's are not counted.
--
--     make instructions      counts, and writes bench/instructions.tsv
--     make lint              counts, and fails where one takes over 3 % more than the table says
--     build/release/test/wire bench/instructions.lua check | write | show
--
-- How: a server answers requests that come one after the other on one connection, FEW in one run
-- and MANY in another; one takes the difference of the counts divided by that of the requests, so
-- that start and end are not in it. Operations are bench/count.c's. The counts hold for one
-- compiler, one C library and one set of the CPU's instructions: the table names its own. With
-- others nothing is compared, and a message says so.

local machine = require "machine"
local servers = require "servers"

local TABLE = "bench/instructions.tsv"
local FEW, MANY = 512, 4608 -- multiples of the depth
local GROWTH_MAX = 1.03
local TIMES_LUA = 3 -- each state of Lua hashes in its own way, which makes half a per cent
local VALGRIND = {"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"}

local scratch = os.tmpname()

-- ---- What is counted ----

local HTTPD, TWINS = "sxe-httpd", "bench/lua-twins"

-- name; what; then either an operation of count's, or a program, its words and the target.
local rows = {
    {name = "hello", what = "sxe-httpd: GET / answered with 14 bytes", program = HTTPD},
    {name = "pipelined", what = "the same, 16 requests in one read", program = HTTPD, depth = 16},
    {name = "file", what = "sxe-httpd -r: a file of 13 bytes", program = HTTPD,
     words = {"-r", "ROOT"}, target = "/hello"},
    {name = "lua-hello", what = 'a handler in Lua that returns "Hello, World!\\n"',
     program = TWINS, words = {"bench/lua/hello.lua"}},
    {name = "lua-hello-c", what = "the same in C", program = TWINS, words = {"hello"}},
    {name = "lua-json", what = "in Lua: a route with a parameter, three header fields, JSON",
     program = TWINS, words = {"bench/lua/router.lua"}, target = "/users/42"},
    {name = "lua-json-c", what = "the same in C", program = TWINS, words = {"router"},
     target = "/users/42"},
    {name = "lua-2010", what = "in Lua: the five lines of 2010", program = TWINS,
     words = {"test/2010/hello.lua"}},
    {name = "parse-curl", what = "a request's head parsed, as curl sends it"},
    {name = "parse-browser", what = "a request's head parsed, as a browser sends it"},
    {name = "route", what = "a route found, of five, with two parameters"},
    {name = "pool-change", what = "an element of a pool changes its state"},
    {name = "pool-change-shared", what = "the same in a pool for processes"},
    {name = "pool-allocate", what = "an element of a pool is taken and given back"},
    {name = "dict-put", what = "a value of 64 bytes is put in place of another"},
    {name = "dict-get", what = "it is copied out"},
    {name = "log-line", what = "a line of the log with three values, to a function"},
}

-- ---- Counting ----

local function collected(errors)
    local count = errors:match("Collected : (%d+)")
    return count and tonumber(count) or error("callgrind counted nothing: " .. errors:sub(-400), 0)
end

local function under_callgrind(words)
    return wire.spawn(table.move(words, 1, #words, #VALGRIND + 1, {table.unpack(VALGRIND)}))
end

local function count_operation(row, number)
    local proc <close> = under_callgrind{wire.program("bench/count"), row.name, tostring(number)}
    if proc:wait(60) ~= 0 then
        error(proc:errors(), 0)
    end
    return collected(proc:errors())
end

local function server_words(row, port)
    local words = {wire.program(row.program)}
    if row.program == HTTPD then
        table.move({"-p", tostring(port), "-c", "16"}, 1, 4, 2, words)
    else
        words[2] = tostring(port)
    end
    for _, word in ipairs(row.words or {}) do
        words[#words + 1] = word == "ROOT" and scratch .. ".d" or word
    end
    return words
end

-- Wait until the server prints where it listens, or accepts: a script with a socket of its own
-- prints nothing.
local function wait_for(proc, port)
    for _ = 1, 1000 do
        if proc:ready(0.02) then
            return
        end
        local good, sock = pcall(wire.connect, "127.0.0.1", port)
        if good then
            sock:close()
            return
        end
    end
    error("the server does not start: " .. proc:errors(), 0)
end

local function count_requests(row, number)
    local port = servers.free_port()
    local server <close> = under_callgrind(server_words(row, port))
    wait_for(server, port)
    local client <close> = wire.spawn{
        wire.program("bench/limit-client"), "-p", tostring(port), "-c", "1", "-n", tostring(number),
        "-u", row.target or "/", "-P", tostring(row.depth or 1)}
    local output = client:output(60)
    if client:wait(60) ~= 0 then
        error(client:errors() .. output, 0)
    end
    server:signal("TERM")
    server:wait(60)
    return collected(server:errors())
end

-- The median of some counts, for one request or operation.
local function count(row)
    local counter, counts = row.program and count_requests or count_operation, {}
    for i = 1, row.name:find("^lua") and TIMES_LUA or 1 do
        counts[i] = (counter(row, MANY) - counter(row, FEW)) / (MANY - FEW)
    end
    table.sort(counts)
    return math.floor(counts[(#counts + 1) // 2] + 0.5)
end

local function count_all()
    local got = {}
    for _, row in ipairs(rows) do
        got[row.name] = count(row)
    end
    return got
end

-- ---- The table ----

-- What the counts depend on.
local function conditions()
    local flags = machine.first_line("grep -m 1 ^flags /proc/cpuinfo")
    return {compiler = machine.first_line((os.getenv("CC") or "gcc") .. " --version"),
            library = machine.first_line("ldd --version"),
            lua = machine.first_line("pkg-config --modversion lua5.4"),
            cpu = flags:find(" avx2 ", 1, true) and "avx2" or "no avx2"}
end

local CONDITIONS = {"compiler", "library", "lua", "cpu"}

local function read_table()
    local known, found = {}, {}
    local file = io.open(TABLE)
    for line in file and file:lines() or function() end do
        local name, value = line:match("^# (%w+)\t(.*)$")
        if name then
            found[name] = value
        else
            name, value = line:match("^([%w-]+)\t(%d+)\t")
            known[name or ""] = tonumber(value)
        end
    end
    if file then
        file:close()
    end
    return known, found
end

local function write_table(got)
    local here = conditions()
    local file <close> = assert(io.open(TABLE, "w"))
    file:write("# Instructions of ours, without the kernel's; written by make instructions.\n")
    for _, name in ipairs(CONDITIONS) do
        file:write("# ", name, "\t", here[name], "\n")
    end
    file:write("name\tinstructions\twhat\n")
    for _, row in ipairs(rows) do
        file:write(("%s\t%d\t%s\n"):format(row.name, got[row.name], row.what))
    end
end

-- Why the table is not one for this machine, or nil.
local function difference()
    local _, there = read_table()
    local here = conditions()
    for _, name in ipairs(CONDITIONS) do
        if there[name] ~= here[name] then
            return ("the table is for %s %q, not %q"):format(name, there[name] or "?", here[name])
        end
    end
    return nil
end

-- Compare one row: true if it takes no more than it did.
local function compare(row, was, is)
    if not was then
        print(("%s is not in the table: make instructions"):format(row.name))
    elseif is > was * GROWTH_MAX then
        print(("%s: %d instructions, were %d: %.1f %% more; if on purpose: make instructions")
              :format(row.name, is, was, 100 * (is / was - 1)))
    elseif is * GROWTH_MAX < was then
        io.stderr:write(("%s: %d instructions, were %d: make instructions keeps that\n"):format(
            row.name, is, was))
    end
    return was ~= nil and is <= was * GROWTH_MAX
end

local function check()
    local why = difference()
    if why then
        print("skipped: instructions, because " .. why)
        return true
    end
    local known, good = read_table(), true
    local got = count_all()
    for _, row in ipairs(rows) do
        good = compare(row, known[row.name], got[row.name]) and good
    end
    return good
end

local function main()
    os.execute(("mkdir %s.d && printf 'Hello, World!' > %s.d/hello"):format(scratch, scratch))
    if not wire.has("valgrind") then
        print("skipped: instructions, because valgrind is not installed")
        return true
    end
    if arg[1] == "check" then
        return check()
    elseif arg[1] == "write" then
        write_table(count_all())
    elseif arg[1] == "show" then
        local got = count_all()
        for _, row in ipairs(rows) do
            print(("%8d  %-18s %s"):format(got[row.name], row.name, row.what))
        end
    else
        print("usage: wire bench/instructions.lua check | write | show")
        return false
    end
    return true
end

local good, result = pcall(main)
os.execute(("rm -rf %s %s.d"):format(scratch, scratch))
if not good then
    io.stderr:write(result, "\n")
end
os.exit(good and result, true)
