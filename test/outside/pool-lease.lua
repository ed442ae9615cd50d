-- SPDX-License-Identifier: MIT
--
-- Leases and elements of sxe.pool used by the wrong owner, by docs/lua-handlers.md: in pools of the script, and in
-- shared pools with one shard and with several.

local cli = require "cli"

local function run(text)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write([[
        local pool, task = require "sxe.pool", require "sxe.task"
        for number, o in ipairs{ {}, { shared = true }, { shared = true, shards = 4 } } do
            local p = assert(pool.open{ name = "p" .. number, count = 16, states = { "free", "busy", "done" },
                fields = "u32 n, char[8] s, u64 h", shared = o.shared, shards = o.shards })
    ]], text, "end")
    file:close()
    local ran = cli.run("sxe-lua", path)
    os.remove(path)
    equal(ran.errors, "", "errors")
    equal(ran.status, 0, "exit status")
    return ran.output
end

-- promise: docs/lua-handlers.md: Pass a lease to `p:move`, `p:touch` or `p:write`: if it is not the element's last
-- lease, nothing is changed and the result is `nil, "lost"`.
test("a lease of another element, an outdated lease and an impossible one change nothing", function()
    equal(run [[
        local a, mine = p:take("free", "busy")
        local b, other = p:take("free", "busy")
        p:write(a, { n = 1, s = "mine" }, mine)
        local function lost(lease)
            for _, done in ipairs{ table.pack(p:move(a, "done", "busy", lease)), table.pack(p:touch(a, lease)),
                                   table.pack(p:write(a, { n = 2 }, lease)) } do
                assert(done[1] == nil and done[2] == "lost")
            end
            assert(a.n == 1 and a.s == "mine" and a.state == "busy")
        end
        lost(other) lost(0) lost(-1) lost(math.maxinteger) lost(math.mininteger) lost(mine - 1) lost(mine + 1)
        local same, renewed = p:touch(a, mine)
        assert(same == a and renewed ~= mine)
        lost(mine)
        assert(p:write(a, { n = 3 }, renewed) and p:move(a, "done", "busy", renewed) and a.n == 3)
        assert(b.state == "busy" and p:move(b, "done", "busy", other))
        print(p:count "free", p:count "busy", p:count "done")
    ]], ("14\t0\t2\n"):rep(3))
end)

-- promise: docs/lua-handlers.md: A value that does not fit raises an error, and changes nothing.
test("a value that does not fit leaves the element as it was, also the fields beside it", function()
    equal(run [[
        local a = p:take("free", "busy")
        p:write(a, { n = 7, s = "12345678", h = 9 })
        for _, wrong in ipairs{ { n = -1 }, { n = 1 << 32 }, { n = 1.5 }, { n = "x" }, { s = "123456789" },
                                { h = -1 }, { none = 1 } } do
            local name, value = next(wrong)
            assert(not pcall(function() a[name] = value end))
            wrong.n = wrong.n or 8
            assert(not pcall(p.write, p, a, wrong))
            assert(a.n == 7 and a.s == "12345678" and a.h == 9)
        end
        print(a.n)
    ]], ("7\n"):rep(3))
end)

-- promise: docs/lua-handlers.md: After an element has returned to the first state, the script's `element` is gone:
-- its fields are nil, and assigning a field raises an error. It never names another use of the same index.
test("an element that was freed reads as nil, although its slot is used again", function()
    equal(run [[
        local a, lease = p:take("free", "busy")
        a.n = 5
        p:move(a, "free")
        for _ = 1, 16 do assert(p:take("free", "busy")).n = 6 end
        assert(a.n == nil and not pcall(function() a.n = 7 end))
        for _, done in ipairs{ table.pack(p:move(a, "done")), table.pack(p:move(a, "done", nil, lease)),
                               table.pack(p:touch(a)), table.pack(p:read(a)), table.pack(p:write(a, { n = 7 })),
                               table.pack(p:add(a, "h")) } do
            assert(done[1] == nil and done[2] == "gone")
        end
        for e in p:each "busy" do assert(e.n == 6 and e.h == 0) end
        print(p:count "busy")
    ]], ("16\n"):rep(3))
end)

-- promise: docs/lua-handlers.md: p:each(state) is an iterator over the elements of a state, oldest first; the loop
-- may move them.
test("a loop meets each element once, although elements leave the state and come back", function()
    equal(run [[
        for _ = 1, 16 do p:take("free", "busy") end
        local met, n = {}, 0
        for e in p:each "busy" do
            assert(not met[e.index])
            met[e.index], n = true, n + 1
            p:move(e, "done") p:move(e, "busy")
            for _ = 1, 3 do p:touch(e) end
        end
        local first = 0
        for e in p:each "busy" do
            first = first + 1
            for other in p:each "busy" do if other ~= e then p:move(other, "done") end end
        end
        print(n, first, p:count "busy", p:count "done")
    ]], ("16\t1\t1\t15\n"):rep(3))
end)
