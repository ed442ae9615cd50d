-- SPDX-License-Identifier: MIT
-- sxe-pool backup, restore and resize, and the states of a dict's entries, by docs/pool.1.

local cli = require "cli"

local ENTRIES = 500

local function lua(code, ...)
    local ran = cli.run("sxe-lua", "-e", code:format(...))
    equal(ran.status, 0, ran.errors)
    return ran.output
end

-- Make a dict of 500 counters in a file, the first ten of which are pinned.
local function make(path)
    lua([[
        local d = require "sxe.dict".open{ file = %q, name = "copied", cells = 1000, shards = 2 }
        for i = 1, %d do
            assert(d:add("key " .. i, i) == i)
            if i <= 10 then assert(d:mark("key " .. i, "pinned")) end
        end
        d:close()]], path, ENTRIES)
end

local function expect_all(path)
    local ran = cli.run("sxe-pool", "--json", "dump", path)
    local seen = 0

    equal(ran.status, 0, ran.errors)
    for line in ran.output:gmatch("[^\n]+") do
        local i, state, value = line:match('"key": "key (%d+)", "state": "(%u+)".*"value_i64": (%d+)}')
        equal(i, value, line)
        equal(state, tonumber(i) <= 10 and "PINNED" or "LIVE", line)
        seen = seen + 1
    end
    equal(seen, ENTRIES, path)
    ran = cli.run("sxe-pool", "check", path)
    equal(ran.status, 0, ran.errors)
end

-- A path without a file.
local function fresh()
    local path = os.tmpname()

    os.remove(path)
    return path
end

local function files_like(path)
    local listed <close> = io.popen("ls " .. path .. "* 2>&1")
    local _, number = listed:read("a"):gsub("\n", "")
    return number
end

-- promise: docs/pool.1: Writes all entries that a dict has at one moment to file while other processes continue.
test("a dict in use is backed up, and restored when it is not", function()
    local path, backup = fresh(), fresh()
    make(path)
    lua([[
        local d = require "sxe.dict".open{ file = %q }
        local function run(...)
            local words = { ... }
            for i, word in ipairs(words) do words[i] = "'" .. word .. "'" end
            local _, _, status = os.execute(table.concat(words, " ") .. " >/dev/null 2>&1")
            return status
        end
        assert(run(%q, "backup", %q, %q) == 0)
        assert(d:remove("key 1"))
        assert(run(%q, "restore", %q, %q) == 1)
        d:close()]], path, wire.program("sxe-pool"), path, backup, wire.program("sxe-pool"), backup, path)
    expect_all(backup)
    local ran = cli.run("sxe-pool", "restore", backup, path)
    equal(ran.status, 0, ran.errors)
    expect_all(path)
    equal(files_like(path) + files_like(backup), 2)
    os.remove(path)
    os.remove(backup)
end)

-- promise: docs/pool.1: An existing dict is replaced, even a damaged one, but not if a process has it open. Any other
-- kind of file is not replaced.
test("restore replaces a damaged dict, but no other kind of file", function()
    local path, backup = fresh(), fresh()
    make(path)
    equal(cli.run("sxe-pool", "backup", path, backup).status, 0)
    local file = assert(io.open(path, "r+b"))
    file:seek("set", 70000)
    file:write(("damaged "):rep(1000))
    file:close()
    check(cli.run("sxe-pool", "check", path).status ~= 0, "the damage is not noticed")
    equal(cli.run("sxe-pool", "restore", backup, path).status, 0)
    expect_all(path)
    file = assert(io.open(path, "wb"))
    file:write("Remember the milk")
    file:close()
    local ran = cli.run("sxe-pool", "restore", backup, path)
    equal(ran.status, 1)
    check(#ran.errors > 0, "no word of it")
    file = assert(io.open(path, "rb"))
    equal(file:read("a"), "Remember the milk")
    file:close()
    os.remove(path)
    os.remove(backup)
end)

-- promise: docs/pool.1: With too few cells for its entries, nothing is changed.
test("a dict grows and shrinks, but not below the number of its entries", function()
    local path = fresh()
    make(path)
    for _, cells in ipairs{"20k", "5000", "700"} do
        local ran = cli.run("sxe-pool", "resize", path, cells)
        equal(ran.status, 0, ran.errors)
        expect_all(path)
    end
    for _, cells in ipairs{"499", "2", "1"} do
        local ran = cli.run("sxe-pool", "resize", path, cells)
        equal(ran.status, 1, cells)
        check(ran.errors:find("cells", 1, true), ran.errors)
        expect_all(path)
    end
    check(cli.run("sxe-pool", "show", path).output:find("702 elements", 1, true), "the last good size is another")
    equal(files_like(path), 1)
    os.remove(path)
end)

-- promise: docs/pool.1: a kill or a power cut leaves the old file or the new one, and perhaps a file.XXXXXX to be
--   removed.
test("a kill -9 at any time leaves an intact dict", function()
    local path = fresh()
    make(path)
    for round = 1, 20 do
        do
            local proc <close> = wire.spawn{wire.program("sxe-pool"), "resize", path, tostring(1000 + round)}
            local waste = 0
            for i = 1, round * 20000 do waste = waste + i end
            proc:signal("KILL")
            proc:wait(120)
        end
        expect_all(path)
    end
    equal(cli.run("sxe-pool", "resize", path, "2000").status, 0)
    expect_all(path)
    os.execute(("rm -f %s %s.??????"):format(path, path))
end)

-- promise: docs/pool.1: They are for dicts; of any other pool, copy the file while no process uses it.
test("for a pool that is not a dict, the message says how to copy it", function()
    local path, backup = fresh(), fresh()
    lua([[
        assert(require "sxe.pool".open{ file = %q, name = "jobs", count = 8, states = { "free", "busy" },
                                       fields = "u32 n" })]], path)
    for _, words in ipairs{{"backup", path, backup}, {"restore", path, backup}, {"resize", path, "10"}} do
        local ran = cli.run("sxe-pool", table.unpack(words))
        equal(ran.status, 1, words[1])
        check(ran.errors:find("is no dict", 1, true), ran.errors)
    end
    equal(io.open(backup), nil)
    os.remove(path)
end)

-- promise: docs/pool.1: --state accepts LIVE, PINNED or DIRTY, the states that an entry can be in, and refuses any other.
test("--state refuses a state that an entry cannot have", function()
    local path = fresh()
    make(path)
    local _, pinned = cli.run("sxe-pool", "--state", "PINNED", "dump", path).output:gsub("\n", "")
    equal(pinned, 10)
    equal(cli.run("sxe-pool", "--state", "DIRTY", "dump", path).status, 0)
    for _, state in ipairs{"nix", "OLD", "pinned", ""} do
        local ran = cli.run("sxe-pool", "--state", state, "dump", path)
        equal(ran.status, 1, state)
        equal(ran.output, "")
        check(ran.errors:find("LIVE, PINNED or DIRTY", 1, true), ran.errors)
    end
    os.remove(path)
end)
