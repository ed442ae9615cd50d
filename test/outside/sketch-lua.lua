-- SPDX-License-Identifier: MIT
--
-- sxe.sketch as docs/lua-handlers.md and docs/sketch.md promise it, by processes of sxe-lua.

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

-- promise: docs/lua-handlers.md: Many processes add to one at once.
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

-- promise: docs/lua-handlers.md: With a file and no name, the file says the precision.
test("the file says the precision", function()
    equal(run[[
local sketch = require "sxe.sketch"
sketch.hll{name = "h", file = path, precision = 9}:close()
print(sketch.hll{file = path}.precision)]], "9\n")
    os.remove(file)
end)

-- promise: docs/lua-handlers.md: **`hll:close()`**, which a `<close>` variable does itself, ends a sketch: each later call
-- raises.
test("a closed sketch raises in each call", function()
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
