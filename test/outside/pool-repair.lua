-- SPDX-License-Identifier: MIT
-- sxe-pool repair, by docs/pool.1, on files in which bits changed, also in the head.

local cli = require "cli"

local ROUNDS = 60
local SEED = 18
local HEAD = 4096 -- bytes

local path = os.tmpname()
os.remove(path)
path = path .. ".dict"

local function read(from)
    local file <close> = assert(io.open(from, "rb"))
    return file:read "a"
end

local function write(bytes)
    local file <close> = assert(io.open(path, "wb"))
    assert(file:write(bytes))
end

local function pool(command, ...)
    return cli.run("sxe-pool", command, path, ...)
end

-- Make a dict of 40 entries and close it; returns the file's bytes.
local function make()
    local ran = cli.run("sxe-lua", "-e", ([[
        local d = require "sxe.dict".open{file = %q, name = "d", cells = 60, cell_size = 128}
        for i = 1, 40 do d:put("key " .. i, ("value"):rep(i)) end]]):format(path))
    equal(ran.status, 0, ran.errors)
    assert(os.execute("chmod 600 " .. path))
    return read(path)
end

local function flip(bytes, at, bit)
    return bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ 1 << bit) .. bytes:sub(at + 1)
end

-- Repair the file. If repair exits with 0, a check must find nothing, and a second repair must change nothing. Returns
-- whether repair exited with 0.
local function check_repair(case)
    local repaired = pool "repair"
    if repaired.status ~= 0 then return false end
    local first = pool("dump").output:gsub("%d+%.?%d* *m?s", "")
    local checked = pool "check"
    equal(checked.status, 0, case .. checked.errors .. repaired.output)
    local again = pool "repair"
    equal(again.status, 0, case .. again.errors)
    check(again.output:find("nothing to repair", 1, true), case .. again.output)
    equal((pool("dump").output:gsub("%d+%.?%d* *m?s", "")), first, case)
    return true, repaired.output
end

-- promise: docs/pool.1: After a repair that exits 0, check finds nothing, and another repair changes nothing.
test("one repair mends all that can be mended, whatever bits changed", function()
    local original = make()
    local well = 0
    math.randomseed(SEED)
    for round = 1, ROUNDS do
        local bytes, case = original, ("round %d, bits at"):format(round)
        for i = 1, ({1, 3, 20})[round % 3 + 1] do
            -- In every second round the first bit is in the head, of which the file has a copy.
            local at = math.random(1, i == 1 and round % 2 == 0 and HEAD or #bytes)
            bytes, case = flip(bytes, at, math.random(0, 7)), case .. " " .. at
        end
        write(bytes)
        if check_repair(case .. ": ") then well = well + 1 end
    end
    check(well > ROUNDS / 2, well .. " of " .. ROUNDS)
    os.remove(path)
end)

-- promise: docs/pool.1: A dict gets a new table of its intact entries, and damaged entries are dropped.
test("a head and an entry that are damaged are repaired together", function()
    local bytes = make()
    local at = assert(bytes:find(("value"):rep(8), 1, true))
    write(flip(flip(bytes, at, 0), 20, 3))
    local is_well, said = check_repair ""
    check(is_well)
    check(said:find("1 damaged entry was dropped", 1, true), said)
    os.remove(path)
end)
