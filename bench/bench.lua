-- SPDX-License-Identifier: MIT
--
-- What: our programs measured beside the physical limit and beside others' programs.
--
--     make bench                               all rows, in half an hour
--     make bench ROW="S1 files"                some: by name, by group, by a name's beginning
--     build/release/test/wire bench/bench.lua [rows] [options]
--
--     --list            what rows there are, and whom they compare
--     --rounds 7        of each row; --seconds: of a sample, else what the row's budget leaves
--     --smoke           one short round, to see that all this works; its speeds mean nothing
--     --json FILE       the result; that of all rows is in bench/results/ too
--     --markdown FILE   a table, put between the marks <!-- bench --> and <!-- /bench -->
--     --from FILE       do not measure: page and Markdown of that result
--     --into FILE       measure the rows that a result lacks, or those named, and put them into it
--     --profile         of each row's first peer of ours: a flame graph, and system calls
--
-- The last result is build/bench/result.json, its page build/bench/index.html; both are written
-- again after each row, so that an interrupted run keeps the rows before. A row is an experiment of
-- its own: nothing is compared across rows, and each says when and of which commit it was measured.
-- So rows of several runs may stand in one result, but only of one machine (--into).
--
-- How: lib/method.lua says it, docs/benchmarks.md has the reasons. Shape of the files in lib:
--
--     rows.lua (what)      -> method.lua (rounds)  -> result.lua (medians) -> report.lua (tables)
--     peers.lua (of whom)  -> load.lua (a sample)                          -> page.lua (plots)
--                             clients.lua, servers.lua, clocks.lua, machine.lua

local check = require "check"
local clocks = require "clocks"
local machine = require "machine"
local method = require "method"
local page = require "page"
local peers = require "peers"
local profile = require "profile"
local report = require "report"
local result = require "result"
local rows = require "rows"
local servers = require "servers"
local warden = require "warden"

local SERVER_CPU, CLIENT_CPU = 0, 1
local OUTPUT, RESULTS = "build/bench", "bench/results"
local SMOKE_SECONDS, SMOKE_OTHERS = 0.15, 1
local SECONDS_LEAST = 0.05 -- of a sample
local LONGEST = 30 * 60 -- seconds of a run; after them void rows are not measured again

local scratch -- a directory

-- Remove the directory at the end, however the run ends.
local _ <close> = setmetatable({}, {__close = function()
    if scratch then
        os.execute("rm -rf " .. scratch)
    end
end})

local function leave(status)
    os.exit(status, true)
end

local function fail(...)
    io.stderr:write("bench: ", string.format(...), "\n")
    leave(2)
end

-- ---- What was asked for ----

local values = {["--rounds"] = true, ["--seconds"] = true, ["--json"] = true, ["--markdown"] = true,
                ["--from"] = true, ["--into"] = true}
local flags = {["--smoke"] = true, ["--list"] = true, ["--profile"] = true}

-- A word names a row, a group of them, or those whose names begin with it: file means file-13 too.
local function is_named(row, word)
    return row.name == word or row.group == word or row.name:sub(1, #word + 1) == word .. "-"
end

local function is_known(word)
    for _, row in ipairs(rows.list) do
        if is_named(row, word) then
            return true
        end
    end
    return false
end

-- Load a result, or end the run if the file holds none.
local function load_result(path)
    local good, got = pcall(result.load, path)
    if not good then
        fail("%s cannot be read as a result of make bench: %s", path,
             (got:gsub("^%S+%.lua:%d+: ", "")))
    end
    return got
end

-- Find out whether a file can be written before anything is measured.
local function check_place(path)
    local file, why = io.open(path .. ".part", "w")
    if not file then
        fail("%s cannot be written: %s; name another file", path, why)
    end
    file:close()
    os.remove(path .. ".part")
end

-- Make an option a number, which must be at least `least`, and an integer if `least` is one.
local function number_of(options, name, least)
    local text = options[name]
    local value = tonumber(text)
    if text and not (value and value >= least and value < math.huge
                     and (math.type(least) == "float" or math.tointeger(value))) then
        fail("--%s is %s: it must be a %snumber from %s", name, text,
             math.type(least) == "integer" and "whole " or "", least)
    end
    options[name] = value
end

local function parse_arguments()
    local options, i = {names = {}}, 1
    while arg[i] do
        local word, value = arg[i], arg[i + 1]
        if values[word] then
            options[word:sub(3)] = value or fail("%s needs a value", word)
            i = i + 1
        elseif flags[word] then
            options[word:sub(3)] = true
        elseif is_known(word) then
            options.names[word] = true
        else
            fail("no such row or option: %s; --list says what rows there are, docs/benchmarks.md "
                 .. "what options", word)
        end
        i = i + 1
    end
    number_of(options, "rounds", 1)
    number_of(options, "seconds", SECONDS_LEAST)
    for _, name in ipairs{"json", "markdown", "into"} do
        if options[name] then
            check_place(options[name])
        end
    end
    if options.from and next(options.names) then
        fail("--from makes page and tables of all rows of a result: name none")
    end
    options.old = (options.from or options.into) and load_result(options.from or options.into)
    if options.into then
        options.lacking = result.lacking(options.old)
    end
    if options.smoke then
        options.rounds, options.seconds = 1, options.seconds or SMOKE_SECONDS
    end
    return options
end

-- Whether a row is measured if none is named: it is lacking in the result of --into, or is one of a
-- usual run.
local function is_usual(row, options)
    if options.lacking then
        return options.lacking[row.name]
    end
    return not row.asked_only and not (options.smoke and row.smoke == false)
end

local function asked_for(options)
    local list = {}
    for _, row in ipairs(rows.list) do
        local is_asked_for = not next(options.names) and is_usual(row, options)
        for word in pairs(options.names) do
            if is_named(row, word) and (row.name == word or not row.asked_only) then
                is_asked_for = true
            end
        end
        if is_asked_for then
            list[#list + 1] = row
        end
    end
    return list
end

-- ---- Peers ----

local versions = {} -- by name, found once

local function version_of(peer)
    if peer.version and not versions[peer.name] then
        versions[peer.name] = machine.first_line(peer.version)
    end
    return versions[peer.name]
end

-- Why a peer, or a row, cannot be measured here; or nil.
local function missing(peer)
    if peer.missing then
        return peer.missing()
    end
    for _, program in ipairs(peer.needs or {}) do
        if not wire.has(program) then
            return ("%s is not installed (package %s); make bench-deps installs it"):format(
                program, peer.package or program)
        end
    end
    return nil
end

-- All peers of a row.
local function all_of(row)
    local list = {}
    for i, name in ipairs(row.peers) do
        list[i] = type(name) == "table" and name or peers.find(name)
    end
    return list
end

-- The peers of a row that are installed; and {name, why} of the others.
local function present(row)
    local list, absent = {}, {}
    for _, peer in ipairs(all_of(row)) do
        local why = missing(peer)
        if not why and row.service and peer.serves and not peer.serves[row.service] then
            why = "does not serve " .. row.service
        end
        if why then
            absent[#absent + 1] = {name = peer.title or peer.name, why = why}
        else
            peer.version_found = version_of(peer)
            list[#list + 1] = peer
        end
    end
    return list, absent
end

-- ---- The rows ----

local function make_house(options)
    return {options = options, smoke = options.smoke or false, scratch = scratch,
            files = scratch .. "/", root = scratch .. "/root", server_cpu = SERVER_CPU,
            client_cpu = CLIENT_CPU, seconds = options.seconds or 1, port = servers.free_port,
            clocks = clocks.start}
end

-- For a smoke run: the reference, ours, and the first of the others.
local function only_some(row, list)
    local some, others = {}, 0
    for _, peer in ipairs(list) do
        if row.variants or peer.name == row.reference or peer.name == (row.ours or "sxe-httpd") then
            some[#some + 1] = peer
        elseif others < SMOKE_OTHERS then
            some[#some + 1], others = peer, others + 1
        end
    end
    return some
end

local function measure(house, row)
    local found, absent = present(row)
    if house.smoke then
        found = only_some(row, found)
    end
    local start = wire.time()
    local state = method.run(house, row, found)
    local got = result.summarize(row, state, house.seconds, absent)
    got.date, got.commit = result.now(), machine.commit()
    got.took_s = wire.time() - start
    report.print(got)
    return got
end

-- Seconds that the rows of a list should take; who(row) returns the peers that count.
local function planned(list, options, who)
    local sum = 0
    for _, row in ipairs(list) do
        sum = sum + method.planned(row, who(row), options)
    end
    return sum
end

-- Where result and page go; a smoke run leaves those of a real one alone.
local function output_of(options)
    local directory = options.smoke and OUTPUT .. "/smoke" or OUTPUT
    os.execute("mkdir -p " .. directory)
    return directory
end

local has_lost = false

-- Call a function that writes a file. If it fails, only that file is lost: no measured row, and no
-- later one.
local function try_to(write, ...)
    local good, why = pcall(write, ...)
    if not good then
        io.stderr:write("bench: ", why, "\n")
        has_lost = true
    end
end

-- Write the result so far and its page, after each row.
local function write(got, options)
    local directory = output_of(options)
    if not options.from then
        try_to(result.save, got, directory .. "/result.json")
    end
    if options.into then
        try_to(result.save, got, options.into)
    end
    try_to(page.write, got, "bench/page.html", directory .. "/index.html")
end

local function measure_into(got, house, row)
    result.put(got, measure(house, row), rows.list)
    write(got, house.options)
end

-- Rows that are void are measured once more at the end: what disturbed them may be gone by then.
local function measure_void(got, house, list, start)
    for _, row in ipairs(result.void_of(got, list)) do
        local seconds = method.planned(row, present(row), house.options)
        if wire.time() - start + seconds <= LONGEST then
            print(("\n%s was void, so once more"):format(row.name))
            measure_into(got, house, row)
        else
            print(("\n%s was void; make bench ROW=%s BENCH=\"--into FILE\" measures it again")
                  :format(row.name, row.name))
        end
    end
end

local function write_all(got, options)
    local directory = output_of(options)
    write(got, options)
    for _, row in ipairs(got.rows) do
        local csv = report.csv(row)
        if csv then
            try_to(result.write_file, ("%s/%s.csv"):format(directory, row.name), csv)
        end
    end
    if options.json then
        try_to(result.save, got, options.json)
    elseif not (next(options.names) or options.smoke or options.from or options.into) then
        os.execute("mkdir -p " .. RESULTS)
        try_to(result.save, got, ("%s/%s.json"):format(RESULTS, got.date:sub(1, 10)))
    end
    if options.markdown then
        try_to(report.write_markdown, got, options.markdown)
    end
    print(("%s/index.html shows it"):format(directory))
end

-- Check that all peers answer alike. Returns the number of failures.
local function check_peers(house)
    local checked = check.run(house)
    for title, why in pairs(checked.skipped) do
        print(("skipped: %s: %s"):format(title, why))
    end
    for _, failure in ipairs(checked.failures) do
        print("FAILED: " .. failure)
    end
    print(("%d services of peers answer alike, %d do not"):format(
        checked.checks - #checked.failures, #checked.failures))
    return #checked.failures
end

-- Enter a network of its own: all ports are free, and packets of other programs cost a sample
-- nothing. Its congestion control does not pace: bbr, if the machine uses it, arms a timer for each
-- segment, and rows of long replies would show what timers cost.
local function leave_network()
    local is_own, why = wire.own_network("reno")
    if not is_own then
        print(("in the machine's own network (%s): root can have one without pacing"):format(why))
    end
end

-- A new result, or that of --into, which must be of this machine and of the programs as they are
-- now.
local function begin(options, list)
    local here = machine.fingerprint()
    if not options.into then
        return result.new(here, options, list)
    end
    local got = options.old
    if got.machine.text ~= here.text then
        fail("%s is of another machine, or of other programs: %s; this is %s: what is measured "
             .. "here can go into a file of its own (--json)", options.into, got.machine.text,
             here.text)
    end
    return got
end

local function measure_all(options)
    leave_network()
    servers.allow_descriptors()
    local list = asked_for(options)
    local house = make_house(options)
    if peers.prepare then
        peers.prepare(scratch)
    end
    local got = begin(options, list)
    local start = wire.time()
    print(got.machine.text)
    if got.machine.cpus < 2 then
        print("there is one CPU, which server and client share: ratios say little, rates nothing")
    end
    local seconds = planned(list, options, present)
    got.planned_s = not options.into and seconds or got.planned_s -- of the whole
    print(("%d rows, %.1f minutes planned"):format(#list, seconds / 60))
    if options.smoke and not next(options.names) then
        got.failed_checks = check_peers(house)
    end
    for _, row in ipairs(list) do
        local why = missing(row)
        if why then
            print(("\n%s  %s\n  skipped: %s"):format(row.name, row.title, why))
        else
            measure_into(got, house, row)
        end
    end
    if not house.smoke then
        measure_void(got, house, list, start)
    end
    return got
end

local function print_list(options)
    for _, row in ipairs(rows.list) do
        local names = {}
        for i, peer in ipairs(all_of(row)) do
            names[i] = peer.name
        end
        print(("%-18s %-8s %3.0f s  %s (%s)%s"):format(
            row.name, row.group or "", planned({row}, options, all_of), row.title,
            table.concat(names, ", "), row.asked_only and "; only when asked for" or ""))
    end
    print(("%.0f minutes are planned for all but those"):format(
        planned(asked_for(options), options, all_of) / 60))
end

-- Void rows and peers that failed, or that do other work than the rest, make a run a bad one.
local function is_good(got)
    if (got.failed_checks or 0) > 0 then
        return false
    end
    for _, row in ipairs(got.rows) do
        if row.is_void or row.has_failed then
            return false
        end
    end
    return true
end

local options = parse_arguments()
if options.list then
    print_list(options)
    leave(true)
end
scratch = os.tmpname()
os.remove(scratch)
assert(os.execute(("mkdir %s %s/root"):format(scratch, scratch)))
warden.start(scratch)
if options.profile then
    leave(profile.run(make_house(options), asked_for(options), present))
end
local got = options.from and options.old or measure_all(options)
if options.from then
    for _, row in ipairs(got.rows) do
        report.print(row)
    end
end
report.print_end(got)
write_all(got, options)
leave(is_good(got) and not has_lost)
