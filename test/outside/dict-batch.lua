-- SPDX-License-Identifier: MIT
--
-- Batches of sxe.dict, as docs/lua-handlers.md has them, in sxe-lua.

local cli = require "cli"

-- Run a script in sxe-lua; it must exit with 0. Returns what it prints.
local function run(text)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write('local d = require "sxe.dict".open{ name = "d", cells = 20 }\n', text)
    file:close()
    local ran = cli.run("sxe-lua", path)
    os.remove(path)
    equal(ran.errors, "", "errors")
    equal(ran.status, 0, "exit status")
    return ran.output
end

-- promise: docs/lua-handlers.md: A batch ends with its function: a later call on the batch raises an error. If the
-- function closes its batch, or the dict, before it returns, d:batch raises an error and nothing was changed.
test("a batch that closes itself, or is used after its function, raises", function()
    equal(run [[
        local kept
        print(d:batch(function(b) kept = b b:put("a", "1") end))
        print((pcall(kept.put, kept, "a", "2")))
        print((pcall(kept.remove, kept, "a")))
        print((pcall(d.batch, d, function(b) b:put("a", "3") local early <close> = b end)))
        print((pcall(d.batch, d, function(b) do local early <close> = b end b:put("a", "4") end)))
        print(d:get "a", #d, d:check())
    ]], "true\nfalse\nfalse\nfalse\nfalse\n1\t1\ttrue\n")
end)

-- promise: docs/lua-handlers.md: d:batch returns true, or nil, message, code if nothing was changed. After an error
-- in the function nothing was changed either.
test("batches that fail leave the dict as it was, and those after them work", function()
    equal(run [[
        local many = {}
        for i = 1, 15 do many["k" .. i] = "old" end
        print(d:batch(many))
        for round = 1, 50 do
            for i = 1, 15 do many["k" .. i] = nil many["n" .. i] = "new" end
            local done, why, code = d:batch(many)
            assert(done == nil and code == 28, why)
            assert(not pcall(d.batch, d, function(b) b:put("k1", "x") b:remove "k2" error "oh" end))
            assert(d:batch{ k1 = tostring(round), k3 = false, ["k" .. 3] = "again" })
        end
        print(#d, d:get "k1", d:get "k2", d:get "n1", d:check())
    ]], "true\n15\t50\told\tnil\ttrue\n")
end)
