-- SPDX-License-Identifier: MIT
-- The tool sxe-pool, by docs/pool.1.

local cli = require "cli"
local json = require "json-text"

local function make(path)
    local ran = cli.run("sxe-lua", "-e", ([[
        local p = require "sxe.pool".open{ file = %q, name = "jobs", count = 8, states = { "free", "busy" },
                                           fields = "u32 n" }
        p:take("free", "busy").n = 7]]):format(path))
    equal(ran.status, 0, ran.errors)
end

-- promise: docs/pool.1: Beyond that, only repair changes the elements, their states or their order.
test("check, show and dump leave elements and states as they are", function()
    local path = os.tmpname()
    os.remove(path)
    make(path)
    local before = cli.run("sxe-pool", "dump", path).output
    for _, command in ipairs{"check", "show", "dump", "check"} do
        equal(cli.run("sxe-pool", command, path).status, 0, command)
    end
    equal(cli.run("sxe-pool", "dump", path).output:gsub("%d+%.?%d* m?s", ""), before:gsub("%d+%.?%d* m?s", ""))
    os.remove(path)
end)

-- promise: docs/pool.1: To look at a file without a change to any byte of it, copy it first, while no process uses
-- it.
test("a copy of the file shows the same content", function()
    local path = os.tmpname()
    os.remove(path)
    make(path)
    assert(os.execute(("cp %s %s.copy"):format(path, path)))
    equal(cli.run("sxe-pool", "check", path .. ".copy").status, 0)
    assert(os.execute(("cmp -s %s %s.copy; test $? -le 1"):format(path, path)))
    os.remove(path)
    os.remove(path .. ".copy")
end)

-- promise: docs/pool.1: SIGHUP that is ignored at the start, as under
test("SIGHUP ends sxe-pool watch, but not under nohup", function()
    local path = os.tmpname()
    os.remove(path)
    make(path)
    for _, ignored in ipairs{false, true} do
        local proc <close> = wire.spawn{"sh", "-c", (ignored and "trap '' HUP; " or "") .. 'exec "$@"', "sh",
                                        wire.program "sxe-pool", "watch", path}
        check(proc:line(60))
        proc:signal("HUP")
        if ignored then
            check(proc:line(60) and proc:line(60), "it goes on")
            proc:signal("TERM")
        end
        equal(proc:wait(60), ignored and 128 + 15 or 128 + 1)
    end
    os.remove(path)
end)

-- promise: docs/pool.1: Such a signal also ends a command whose output is not read: the rest of the output is lost.
test("a signal ends sxe-pool dump while its reader does not read", function()
    local path = os.tmpname()
    os.remove(path)
    local ran = cli.run("sxe-lua", "-e", ([[
        local p = require "sxe.pool".open{ file = %q, name = "jobs", count = 200, states = { "free", "busy" },
                                           fields = "char[2000] a" }
        for i = 1, 200 do p:take("free", "busy").a = ("x"):rep(2000) end]]):format(path))
    equal(ran.status, 0, ran.errors)
    for name, number in pairs{TERM = 15, INT = 2, HUP = 1} do
        local proc <close> = wire.spawn{wire.program "sxe-pool", "dump", path}
        check(proc:line(60))
        proc:signal(name)
        equal(proc:wait(60), 128 + number, name)
        equal(cli.run("sxe-pool", "repair", path).status, 0, "it is in use no more")
    end
    os.remove(path)
end)

-- promise: docs/pool.1: and how the pool was found: in use; closed; its users killed, and their changes completed; or damaged, and rebuilt.
test("show has the same content as JSON and as text", function()
    local path = os.tmpname()
    os.remove(path)
    make(path)
    local shown = json.decode(cli.run("sxe-pool", "show", "--json", path).output)

    equal(shown.found, "closed")
    for _, state in ipairs(shown.states) do
        check(state.oldest_s >= state.youngest_s and state.youngest_s > 0, state.state)
    end
    os.remove(path)
end)

test("a command refuses options that belong to others", function()
    for _, case in ipairs{
        { "-j", "check", "POOL" }, { "-s", "LIVE", "show", "POOL" }, { "-i", "1s", "list" }, { "-n", "1", "dump", "POOL" },
        { "-j", "watch", "POOL" }, { "-j", "repair", "POOL" }, { "-j", "backup", "POOL", "FILE" },
    } do
        cli.check_refused(("does not take the option %s. Try --help."):format(case[1]), "sxe-pool", table.unpack(case))
    end
end)
