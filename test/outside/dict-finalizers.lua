-- SPDX-License-Identifier: MIT
--
-- Dicts, snapshots and batches of Lua that are closed, used or garbage-collected at the wrong moment, as
-- docs/lua-handlers.md describes it, in sxe-lua.

local cli = require "cli"

-- Run a script in sxe-lua; it must exit with 0. Returns what it prints.
local function run(text)
    local path = os.tmpname()
    local file <close> = assert(io.open(path, "w"))
    file:write('local dict, task = require "sxe.dict", require "sxe.task"\n',
        'local function new() return dict.open{ name = "d", cells = 60, shards = 2 } end\n', text)
    file:close()
    local ran = cli.run("sxe-lua", path)
    os.remove(path)
    equal(ran.errors, "", "errors")
    equal(ran.status, 0, "exit status")
    return ran.output
end

-- promise: docs/lua-handlers.md: closes a dict: each later call raises the error "the dict is closed".
test("a dict that is closed inside a loop, a finalizer or a batch raises, and nothing else breaks", function()
    equal(run [[
        local function filled()
            local d = new()
            for i = 1, 20 do d:put("k" .. i, ("v"):rep(i * 10)) end
            return d
        end
        local function raised(what, ...)
            local done, why = pcall(what, ...)
            print(done, why and why:find("the dict is closed", 1, true) ~= nil)
        end
        raised(function() local d = filled() for _ in d:each() do d:close() end end)
        raised(function() local d = filled() local s = d:snapshot() for _ in s:each() do d:close() end end)
        raised(function() local d = filled() local s = d:snapshot() d:close() d:close() return s:get "k1" end)
        raised(function()
            local d = filled()
            setmetatable({}, { __gc = function() d:close() end })
            for _ in d:each() do collectgarbage() end
        end)
        raised(function()
            local d = filled()
            d:batch(function(b) b:put("k1", "new") d:close() b:put("k2", "new") end)
        end)
        do local d <close> = filled() local s <close> = d:snapshot() d:close() s:close() d:close() end
        local f, s, c
        do local d = filled() f, s, c = d:snapshot():each() end
        collectgarbage() collectgarbage()
        print(#f(s, c) > 1)
    ]], ("false\ttrue\n"):rep(5) .. "true\n")
end)

-- promise: docs/lua-handlers.md: A batch ends with its function: a later call on the batch raises an error. If the
-- function closes its batch, or the dict, before it returns, d:batch raises an error and nothing was changed.
test("a batch inside a batch, a batch that waits, one that is abandoned, and one in a finalizer", function()
    equal(run [[
        local d = new()
        print(d:batch(function(b)
            b:put("a", "outer")
            d:batch(function(c) c:put("a", "inner") c:put("b", "inner") end)
        end), d:get "a", d:get "b")
        task.start(function()
            d:batch(function(b) b:put("a", "late") task.sleep(0) d:put("c", "between") b:put("b", "late") end)
        end)
        while d:get "b" ~= "late" do task.sleep(0.001) end
        print(d:get "a", d:get "c")
        do
            local abandoned = coroutine.wrap(function() d:batch(function(b) b:put("a", "x") coroutine.yield() end) end)
            abandoned()
        end
        collectgarbage() collectgarbage()
        print(d:get "a")
        print(d:batch(function(b)
            b:put("a", "mine")
            setmetatable({}, { __gc = function() d:batch{ a = "finalizer", z = "finalizer" } end })
            collectgarbage()
        end), d:get "a", d:get "z")
        print(d:batch(function(b) b:expect("n", nil) b:put("n", "1") d:put("n", "2") end), d:get "n", d:check())
    ]], "true\touter\tinner\nlate\tbetween\nlate\ntrue\tmine\tfinalizer\nfalse\t2\ttrue\n")
end)

-- promise: docs/lua-handlers.md: 16 snapshots may be open.
test("16 snapshots can be open; garbage-collected ones are closed, and their memory is free again", function()
    equal(run [[
        local d = new()
        local open = {}
        for i = 1, 16 do open[i] = assert(d:snapshot()) end
        print((d:snapshot()))
        for i = 1, 16 do open[i]:close() open[i]:close() end
        for _ = 1, 100 do assert(d:snapshot()) collectgarbage() end
        local n = 0
        for i = 1, 10000 do if d:put("k" .. i, "v") then n = n + 1 end end
        print(n, #d, d:check())
    ]], "nil\n60\t60\ttrue\n")
end)

-- promise: docs/lua-handlers.md: A dict is a hash table of strings, in memory that is reserved at the start.
test("any string can be a key or a value: empty, zero bytes, the prefix of another", function()
    equal(run [[
        local d = new()
        local keys = { "", "\0", "\0\0", "a", "a\0", "a\0b", "\255\254", "\r\n" }
        for i, key in ipairs(keys) do d:put(key, ("\0"):rep(i)) end
        for i, key in ipairs(keys) do assert(d:get(key) == ("\0"):rep(i)) end
        local n = 0
        for key, value in d:each() do assert(keys[#value] == key) n = n + 1 end
        print(n, d:remove "", d:get "", d:get "\0" ~= nil, d:remove "", #d)
        print(d:put("e", ""), d:get "e" == "", d:cas("e", nil, "x"), d:cas("e", "", "y"), d:get "e")
    ]], "8\ttrue\tnil\ttrue\tfalse\t7\ntrue\ttrue\tfalse\ttrue\ty\n")
end)
