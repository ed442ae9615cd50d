-- SPDX-License-Identifier: MIT
--
-- sxe.sketch, by docs/lua-handlers.md and docs/sketch.md, in processes of sxe-lua.

local file = os.tmpname()
os.remove(file)

local function start(text)
    return wire.spawn{wire.program "sxe-lua", "-e", ("local path = %q\n"):format(file) .. text}
end

local function run(text)
    local proc <close> = start(text)
    local output = proc:output(120)
    equal(proc:errors(), "")
    equal(proc:wait(120), 0)
    return output
end

-- promise: docs/lua-handlers.md: Many processes may add to one sketch at once.
test("processes that add at once count together", function()
    local procs = {}
    for i = 1, 3 do
        procs[i] = start(([[
local h = require "sxe.sketch".hll{name = "h", file = path}
for i = %d, %d do h:add(i) end]]):format(i * 1000, i * 1000 + 1999))
    end
    for i = 1, 3 do
        equal(procs[i]:wait(120), 0)
    end
    equal(run[[
local sketch = require "sxe.sketch"
local h, all = sketch.hll{file = path}, sketch.hll{name = "all"}
for i = 1000, 4999 do all:add(i) end
print(h:count() == all:count(), h:export() == all:export(), math.abs(h:count() - 4000) < 200)]], "true\ttrue\ttrue\n")
    os.remove(file)
end)

-- promise: docs/lua-handlers.md: 4 to 18, by default 14; its standard error is then 0.8 %.
test("each other precision is refused by a message that says which there are", function()
    equal(run[[
local sketch = require "sxe.sketch"
for _, bits in ipairs{-1, 0, 3, 19, 14.5, 0/0, 2^33} do
  local done, why = pcall(sketch.hll, {name = "h", precision = bits})
  assert(not done and why:find("4 to 18", 1, true), why)
end
assert(not pcall(sketch.bloom, {name = "b", capacity = 1.5}))
local done, why = pcall(sketch.topk, {name = "t", number = 3, key_size = 2^35 + 8})
assert(not done and why:find("multiple of 8", 1, true), why)
print(sketch.hll{name = "h"}.precision)]], "14\n")
end)

-- promise: docs/lua-handlers.md: With a file and no name, the precision comes from the file.
test("an existing file sets the precision", function()
    equal(run[[
local sketch = require "sxe.sketch"
sketch.hll{name = "h", file = path, precision = 9}:close()
print(sketch.hll{file = path}.precision)]], "9\n")
    os.remove(file)
end)

-- promise: docs/lua-handlers.md: hll:close(), or the end of a <close> variable, closes a sketch: each later call
-- raises an error.
test("each call of a closed sketch raises", function()
    equal(run[[
local sketch = require "sxe.sketch"
local kept
do local h <close> = sketch.hll{name = "h"} kept = h end
for _, name in ipairs{"add", "count", "merge", "clear", "export", "import", "sync"} do
  local method = sketch.hll{name = "o"}[name]
  local done, why = pcall(method, kept, name == "merge" and kept or "x")
  assert(not done and why:find("closed", 1, true), name)
end
kept:close()
print(pcall(function() return kept.name end))]], "false\t(command line):11: bad argument #1 to 'index' (the sketch is closed)\n")
end)

-- ---- Bloom filters ----

-- promise: docs/sketch.md: adds a thing; true: it was not in the filter
test("an add returns whether the thing was new", function()
    equal(run[[
local b = require "sxe.sketch".bloom{name = "b", capacity = 100}
print(b:add "a", b:add "a", b:has "a", b:has "b", b:add "", b:has "", b:add "a\0b", b:has "a\0c", b:add(7), b:has "7")]],
        "true\tfalse\ttrue\tfalse\ttrue\ttrue\ttrue\tfalse\ttrue\ttrue\n")
end)

-- promise: docs/sketch.md: The answer "no" is certain. The answer "yes" is wrong for at most the chosen share of the
-- things that were not added, while no more than `capacity` things were added.
test("a full filter has at most the chosen error, whatever the number of hashes", function()
    -- The things are the same in each run. The check allows 3 standard deviations.
    equal(run[[
local sketch = require "sxe.sketch"
for _, error in ipairs{0.5, 0.36, 0.1, 0.01, 0.001} do
    local b = sketch.bloom{name = "b", capacity = 5000, error = error}
    local missing, wrong = 0, 0
    for i = 1, 5000 do b:add("thing " .. i) end
    for i = 1, 5000 do if not b:has("thing " .. i) then missing = missing + 1 end end
    for i = 1, 50000 do if b:has("other " .. i) then wrong = wrong + 1 end end
    assert(missing == 0 and wrong <= 50000 * error + 3 * (50000 * error) ^ 0.5, error .. ": " .. wrong)
    assert(math.abs(b:error_rate() - wrong / 50000) < 0.05 * error + 3 * (error / 50000) ^ 0.5, error)
end
print "ok"]], "ok\n")
end)

-- promise: docs/sketch.md: return about how many different things were added; the present error
test("a filter counts what was added, and a full one still answers", function()
    equal(run[[
local b = require "sxe.sketch".bloom{name = "b", capacity = 1000}
assert(b:count() == 0 and b:error_rate() == 0)
for i = 1, 1000 do b:add(i) b:add(i) end
assert(math.abs(b:count() - 1000) < 50, b:count())
for i = 1, 100000 do b:add(i) end
assert(b:error_rate() > 0.99 and b:count() < math.huge and b:count() > 1000)
print(b:has "never")]], "true\n")
end)

-- promise: docs/sketch.md: With twice as many things as `capacity`, 1 % becomes 16 %.
test("the error of a filter with twice as many things", function()
    equal(run[[
local b = require "sxe.sketch".bloom{name = "b", capacity = 10000}
for i = 1, 20000 do b:add(i) end
local wrong = 0
for i = 1, 20000 do if b:has("other " .. i) then wrong = wrong + 1 end end
print(math.abs(wrong / 20000 - 0.16) < 0.02, math.abs(b:error_rate() - 0.16) < 0.01)]], "true\ttrue\n")
end)

-- promise: docs/sketch.md: adds everything in `from` to `into`; `-EDOM`: another count of bits or hashes
test("filters of the same size are merged; others are refused and stay unchanged", function()
    equal(run[[
local sketch = require "sxe.sketch"
local function filter(capacity, error) return sketch.bloom{name = "b", capacity = capacity, error = error} end
local into, from = filter(500), filter(500)
into:add "a" from:add "b"
assert(into:merge(from) and into:merge(from) and into:merge(into))
print(into:has "a", into:has "b", from:has "a", math.floor(into:count() + 0.5))
for _, other in ipairs{filter(1000), filter(500, 0.02), filter(500, 0.001)} do
    other:add "c"
    local done, why, code = into:merge(other)
    print(done, code, into:has "c", math.floor(into:count() + 0.5))
end
print(pcall(into.merge, into, sketch.hll{name = "h"}))]],
        "true\ttrue\tfalse\t2\n" .. ("nil\t33\tfalse\t2\n"):rep(3) ..
        "false\tbad argument #2 to '?' (sxe.sketch.bloom expected, got sxe.sketch.hll)\n")
end)

-- promise: docs/sketch.md: If two processes add one thing at the same time, both calls may say that the thing is new
test("if several processes add the same things, at least one is told that a thing is new", function()
    local procs, told = {}, {}
    for i = 1, 3 do
        procs[i] = start[[
local b = require "sxe.sketch".bloom{name = "b", capacity = 20000, error = 1e-9, file = path}
for i = 1, 2000 do if b:add("thing " .. i) then io.write(i, "\n") end end]]
    end
    for i = 1, 3 do
        for number in procs[i]:output(120):gmatch "%d+" do told[number] = true end
        equal(procs[i]:wait(120), 0)
    end
    for i = 1, 2000 do check(told[tostring(i)], "thing " .. i) end
    equal(run[[
local b = require "sxe.sketch".bloom{file = path}
for i = 1, 2000 do assert(b:has("thing " .. i)) end
print(math.abs(b:count() - 2000) < 40, b.hashes)]], "true\t30\n")
    os.remove(file)
end)

-- ---- The most frequent keys ----

-- promise: docs/sketch.md: the keys with the highest counts, the highest first
test("a list has the highest counts first, and no more entries than were asked for", function()
    equal(run[[
local t = require "sxe.sketch".topk{name = "t", number = 3}
local function show(list)
    for _, entry in ipairs(list) do io.write(("%q=%d "):format(entry.key, entry.count)) end
    print(#list)
end
show(t:list())
t:add "a" t:add("b", 5) t:add("", 2) t:add("c\0d", 9) t:add("a", 6)
show(t:list()) show(t:list(1)) show(t:list(math.maxinteger))
t:clear() show(t:list()) print(t:total(), t:count "a")
t:add "a" show(t:list())]],
        '0\n"c\\0d"=9 "a"=7 "b"=5 3\n"c\\0d"=9 1\n"c\\0d"=9 "a"=7 "b"=5 3\n0\n0\t0\n"a"=1 1\n')
end)

-- promise: docs/sketch.md: counts a key; `-EINVAL`: the key is longer than `key_size`
test("a key that is too long is not counted", function()
    equal(run[[
local t = require "sxe.sketch".topk{name = "t", number = 2, key_size = 16}
print(pcall(t.add, t, ("k"):rep(17)))
print(t:total(), t:count(("k"):rep(17)), #t:list())
t:add(("k"):rep(16), 2)
print(t:total(), t:list()[1].key)]],
        "false\tbad argument #2 to '?' (the key has more than 16 bytes)\n0\t0\t0\n2\t" .. ("k"):rep(16) .. "\n")
end)

-- promise: docs/sketch.md: returns how often a key was added, also if it is not listed
test("a key that is not listed has its count", function()
    equal(run[[
local t = require "sxe.sketch".topk{name = "t", number = 1}
for i = 1, 100 do t:add(i, i) end
print(t:count(100), t:count(3), t:count "none", t:total(), t:list()[1].key, #t:list())]], "100\t3\t0\t5050\t100\t1\n")
end)

-- promise: docs/sketch.md: A count is never too low. For 98 % of the keys it is at most `error` times the total too high
test("counts are never too low, and rarely too high by more than the error", function()
    equal(run[[
local t = require "sxe.sketch".topk{name = "t", number = 5, error = 0.01}
local exact, total, far = {}, 0, 0
math.randomseed(21)
for i = 1, 30000 do
    local key = math.floor(2000 ^ math.random())
    exact[key] = (exact[key] or 0) + 1
    t:add(key)
end
local keys = 0
for key, count in pairs(exact) do
    assert(t:count(key) >= count, key)
    keys = keys + 1
    if t:count(key) > count + 0.01 * t:total() then far = far + 1 end
end
print(t:total(), far <= 0.02 * keys)]], "30000\ttrue\n")
end)

-- promise: docs/sketch.md: No key that is missing in the list was added more often than the smallest count in the
-- list.
test("no frequent key is missing, however large the error of the sketch", function()
    equal(run[[
local sketch = require "sxe.sketch"
math.randomseed(22)
for _, number in ipairs{1, 2, 10, 100} do
    for set = 1, 20 do
        local t <close> = sketch.topk{name = "t", number = number, error = 0.1}
        local exact, listed = {}, {}
        for i = 1, 3000 do
            local key = tostring(math.floor(500 ^ math.random()))
            exact[key] = (exact[key] or 0) + 1
            t:add(key)
        end
        local list = t:list()
        assert(#list == number)
        for _, entry in ipairs(list) do
            listed[entry.key] = true
            assert(entry.count >= exact[entry.key])
        end
        for key, count in pairs(exact) do assert(listed[key] or count <= list[#list].count, key) end
    end
end
print "ok"]], "ok\n")
end)

-- promise: docs/sketch.md: adds counts and keys; `-EDOM`: another error or key_size
test("sketches of the same error and key_size are merged; others are refused and stay unchanged", function()
    equal(run[[
local sketch = require "sxe.sketch"
local into, from = sketch.topk{name = "i", number = 2}, sketch.topk{name = "f", number = 3}
into:add("a", 5) into:add("b", 4) from:add("b", 3) from:add("c", 6)
assert(into:merge(from))
local list = into:list()
print(list[1].key, list[1].count, list[2].key, list[2].count, into:total(), from:total())
for _, other in ipairs{sketch.topk{name = "o", number = 2, error = 0.01}, sketch.topk{name = "o", number = 2, key_size = 72}} do
    other:add("z", 99)
    local done, why, code = into:merge(other)
    print(done, code, into:count "z", into:total())
end]], "b\t7\tc\t6\t18\t9\n" .. ("nil\t33\t0\t18\n"):rep(2))
end)

-- promise: docs/sketch.md: Merging twice counts twice. A key that neither sketch lists is not listed after a merge, even if
-- its sum is high.
test("each merge adds the counts again, also a merge of a sketch into itself", function()
    equal(run[[
local sketch = require "sxe.sketch"
local into, from = sketch.topk{name = "i", number = 2}, sketch.topk{name = "f", number = 2}
from:add("a", 3)
assert(into:merge(from) and into:merge(from))
print(into:count "a", into:total(), into:list()[1].count)
assert(into:merge(into))
print(into:count "a", into:total(), #into:list())
for i = 1, 4 do into:add("into " .. i, 100) from:add("from " .. i, 100) end
into:add("sum", 90) from:add("sum", 90)
assert(into:merge(from))
for _, entry in ipairs(into:list()) do io.write(entry.key == "sum" and "listed" or "other", " ") end
print(into:count "sum")]], "6\t6\t6\n12\t12\t1\nother other 180\n")
end)

-- promise: docs/sketch.md: The total must stay below 2^64: counts begin at 0 again after that. In Lua, counts from
-- 2^63 on are negative.
test("counts have 64 bits", function()
    equal(run[[
local t = require "sxe.sketch".topk{name = "t", number = 2}
t:add("a", math.maxinteger)
print(t:count "a" == math.maxinteger, t:list()[1].count == math.maxinteger)
t:add "a"
print(t:total() == math.mininteger, t:count "a" == math.mininteger)
t:add("a", math.maxinteger) t:add("a", 5)
print(t:count "a", #t:list())
t:clear() t:add "b" print(t:list()[1].key)]], "true\ttrue\ntrue\ttrue\n4\t1\nb\n")
end)

-- ---- Files, kills, damage ----

-- promise: docs/sketch.md: A file of one kind is refused by the other kinds with `EMEDIUMTYPE`.
test("each kind refuses the files of the others", function()
    equal(run[[
local sketch = require "sxe.sketch"
local makers = {
    hll = function() return sketch.hll{name = "s", file = path} end,
    bloom = function() return sketch.bloom{name = "s", capacity = 9, file = path} end,
    topk = function() return sketch.topk{name = "s", number = 9, file = path} end,
}
for kind, make in pairs(makers) do
    make():close()
    for other in pairs(makers) do
        local s, why, code = sketch[other]{file = path}
        assert((s ~= nil) == (other == kind) and (s or code == 124), kind .. other)
        if s then s:close() end
        s, why, code = makers[other]()
        assert((s ~= nil) == (other == kind) and (s or code == 124), kind .. other)
        if s then s:close() end
    end
    os.remove(path)
end
print "ok"]], "ok\n")
end)

test("the error for a sketch with other parameters names them", function()
    equal(run[[
local sketch = require "sxe.sketch"
sketch.hll{name = "s", precision = 12, file = path}:close()
local s, why, code = sketch.hll{name = "s", precision = 14, file = path}
assert(not s and code == 17)
os.remove(path)
print(why:match "the file has a sketch (HLL_12 of 4096 bytes, the program says HLL_14 of 16384 bytes)")]],
    "HLL_12 of 4096 bytes, the program says HLL_14 of 16384 bytes\n")
end)

-- promise: docs/sketch.md: A process may be killed at any instruction of any call: the sketch stays intact
test("sketches are right after kills in adds, merges and clears", function()
    for round = 1, 6 do
        local proc <close> = start[[
local sketch = require "sxe.sketch"
local b = sketch.bloom{name = "b", capacity = 1000, file = path .. ".b"}
local t = sketch.topk{name = "t", number = 3, error = 0.1, file = path .. ".t"}
local o, p = sketch.bloom{name = "o", capacity = 1000}, sketch.topk{name = "o", number = 3, error = 0.1}
print "begins" io.flush()
for i = 1, math.huge do
    b:add(i) t:add(i % 50) o:add(i) p:add(i % 7)
    if i % 10 == 0 then b:merge(o) t:merge(p) end
    if i % 100 == 0 then b:clear() t:clear() end
end]]
        equal(proc:line(120), "begins")
        proc:signal "KILL"
        equal(proc:wait(120), "signal KILL")
        equal(run[[
local sketch = require "sxe.sketch"
local b, t = sketch.bloom{file = path .. ".b"}, sketch.topk{file = path .. ".t"}
b:add "after" assert(b:has "after")
assert(#t:list() <= 3 and t:total() >= 0)
t:clear() b:clear()
assert(#t:list() == 0 and t:total() == 0 and t:count "after" == 0 and not b:has "after")
for i = 1, 9 do t:add(i, i) b:add(i) end
for i = 1, 9 do assert(b:has(i)) end
for i, entry in ipairs(t:list()) do io.write(entry.key, "=", entry.count, " ") end
t:clear() b:clear()]], "9=9 8=8 7=7 ")
    end
    os.remove(file .. ".b")
    os.remove(file .. ".t")
end)

-- promise: docs/sketch.md: If a bit of a closed file changed, the file is refused with `EUCLEAN`, unless the bit has no
-- effect.
test("a changed bit in a closed file is refused, or changes nothing", function()
    equal(run[[
local sketch = require "sxe.sketch"
local function write(bytes)
    local f <close> = assert(io.open(path, "wb"))
    assert(f:write(bytes))
end
local function check(open, make, show)
    local s = make() local right = show(s) s:close()
    assert(os.execute("chmod 600 " .. path))
    local f = assert(io.open(path, "rb")) local bytes = f:read "a" f:close()
    local refused = 0
    for round = 1, 80 do
        local at = math.random(round % 2 == 0 and #bytes or 4096)
        write(bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ 1 << math.random(0, 7)) .. bytes:sub(at + 1))
        local s, why, code = open{file = path}
        if s then
            assert(show(s) == right, at) s:close()
        else
            refused = refused + 1
            assert(code == 117 or code == 124, ("%d: %s"):format(at, why))
        end
    end
    assert(refused > 10) os.remove(path)
end
math.randomseed(23)
check(sketch.bloom, function()
    local b = sketch.bloom{name = "b", capacity = 1000, file = path}
    for i = 1, 500 do b:add(i) end
    return b
end, function(b) return ("%d %d %.9f"):format(b.bits, b.hashes, b:count()) end)
check(sketch.topk, function()
    local t = sketch.topk{name = "t", number = 50, error = 0.1, file = path}
    for i = 1, 100 do t:add(i, i) end
    return t
end, function(t)
    local all = {t:total()}
    for _, entry in ipairs(t:list()) do all[#all + 1] = entry.key .. "=" .. entry.count end
    return table.concat(all, " ")
end)
print "ok"]], "ok\n")
end)

-- promise: docs/sketch.md: Damage by another process crashes no call: a HyperLogLog returns `-EUCLEAN`, the other
-- kinds give wrong answers.
test("sketches whose memory another process overwrites still answer, and can be cleared", function()
    equal(run[[
local sketch = require "sxe.sketch"
local b = sketch.bloom{name = "b", capacity = 1000, file = path .. ".b"}
local t = sketch.topk{name = "t", number = 10, error = 0.1, file = path .. ".t"}
local u = sketch.topk{name = "u", number = 10, error = 0.1}
local function fill(name, string, last)
    local f <close> = assert(io.open(name, "r+b"))
    assert(f:seek("set", 4096) and f:write((string:rep(last // #string + 1):sub(1, last))))
end
fill(path .. ".b", "\255", b.bits // 8) assert(b:has "never")
fill(path .. ".t", "\1", 64) assert(t:total() == 0x0101010101010101)
math.randomseed(24)
for round = 1, 60 do
    local bytes = {}
    for i = 1, round % 3 == 0 and 1 or 4096 do
        bytes[i] = string.char(math.random(0, round % 3 == 1 and 2 or 255))
    end
    fill(path .. ".b", table.concat(bytes), b.bits // 8)
    fill(path .. ".t", table.concat(bytes), 64 + 32 * 32 + 20 * 80)
    b:add "a" assert(b:has "a") b:count() b:error_rate()
    t:add("a", 1) t:count "a" t:total() assert(#t:list() <= 10) u:merge(t) t:merge(u) assert(#u:list() <= 10)
    b:clear() t:clear() u:clear() b:add "x" t:add "x"
    assert(b:has "x" and not b:has "y" and #t:list() == 1 and t:list()[1].key == "x" and t:count "x" == 1)
end
print "ok"]], "ok\n")
    os.remove(file .. ".b")
    os.remove(file .. ".t")
end)
