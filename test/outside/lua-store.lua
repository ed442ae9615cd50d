-- SPDX-License-Identifier: MIT
--
-- sxe.store as docs/store.md promises it, by processes of sxe-lua that share a file.

local has_store = wire.spawn{wire.program "sxe-lua", "-e", "require 'sxe.store'"}:wait(120) == 0
if not has_store then
    print("skipped: sxe.store, because sxe-lua was built without LMDB")
    test("a program without LMDB says so", function() check(not has_store) end)
    return
end

local HEAD = [[
local store, task = require "sxe.store", require "sxe.task"
local path, key = %q, %q
]]

local function new_path()
    local path = os.tmpname()
    os.remove(path)
    return path, setmetatable({}, {__close = function()
        for _, suffix in ipairs{"", "-lock", ".copy", ".copy-lock"} do os.remove(path .. suffix) end
    end})
end

-- Start a script that finds the file's path, and perhaps a key, in variables.
local function start(text, path, key)
    return wire.spawn{wire.program "sxe-lua", "-e", HEAD:format(path, key or "") .. text}
end

-- Run a script to its end; returns what it prints.
local function run(text, path)
    local proc <close> = start(text, path)
    local output = proc:output(120)
    equal(proc:errors(), "")
    equal(proc:wait(120), 0)
    return output
end

-- promise: docs/store.md: It is there in `sxe-lua` and `sxe-httpd` unless they were built without LMDB, but not in the sandbox,
--   because it opens files.
test("the sandbox has no sxe.store", function()
    local script, http = require "script", require "http"
    for _, option in ipairs{"--dev", "--lua-sandbox"} do
        local server <close> = script.start('return function(req) return tostring((pcall(require, "sxe.store"))) end', option)
        equal(http.ask(server, http.request "GET /").body, tostring(option == "--dev"))
    end
end)

-- promise: docs/store.md: If others have changed a value meanwhile that the function had read, nothing is done, and the function
--   is called again with the newest values, up to 10 times; then the call gives `nil, "conflict: ...", 11`.
test("four processes count together, and no count is lost", function()
    local path, removed <close> = new_path()
    local text = [[
local db = assert(store.open(path, { sync = "none" }))
local counted = 0
while counted < 100 do
  local done, why, code = db:write(function(txn)
    txn:put("n", tostring(1 + tonumber(txn:get "n" or 0)))
    txn:put(key, tostring(1 + tonumber(txn:get(key) or 0)))
  end)
  if done then counted = counted + 1 else assert(code == 11, why) end
end
print "done"
]]
    local procs = {}
    for i = 1, 4 do procs[i] = start(text, path, "own" .. i) end
    for i = 1, 4 do
        equal(procs[i]:output(120), "done\n")
        equal(procs[i]:wait(120), 0)
    end
    equal(run([[
local db = assert(store.open(path))
for key, value in db:each() do print(key, value) end]], path), "n\t400\nown1\t100\nown2\t100\nown3\t100\nown4\t100\n")
end)

-- promise: docs/store.md: A process that is killed, at any instruction, undoes nothing that was committed, whatever `sync` is: the
--   kernel has it.
test("a writer that is killed leaves whole transactions, and all that it was told", function()
    -- Each transaction writes one number under ten keys, and the process prints it once it is committed.
    local path, removed <close> = new_path()
    local text = [[
local db = assert(store.open(path, { sync = "none" }))
io.stdout:setvbuf "line"
local first = tonumber(db:get "k1" or 0)
for n = first + 1, first + 1000000 do
  assert(db:write(function(txn) for i = 1, 10 do txn:put("k" .. i, tostring(n)) end end))
  print(n)
end
]]
    local last = 0
    for round = 1, 25 do
        local proc <close> = start(text, path)
        for _ = 1, round % 7 + 1 do last = tonumber(proc:line(120)) end
        proc:signal "KILL"
        proc:wait(120)
        for line in proc:output(120):gmatch "(%d+)\n" do last = tonumber(line) end
        local told = run([[
local db = assert(store.open(path, { sync = "none" }))
local values = {}
for _, value in db:each() do values[#values + 1] = value end
for _, value in ipairs(values) do assert(value == values[1]) end
assert(#values == 10 and db:put("other", "x") and db:del "other")
print(values[1])]], path)
        check(tonumber(told) >= last, told .. " is committed, and " .. last .. " was told")
    end
end)

-- promise: docs/store.md: a process that holds the lock and is killed gives it up.
test("a process that is stopped holds up nobody for ever, once it is killed", function()
    local path, removed <close> = new_path()
    local holder <close> = start([[
local db = assert(store.open(path))
print "open"
for i = 1, 1000000 do assert(db:put("k", tostring(i))) end
]], path)
    equal(holder:line(120), "open")
    for _ = 1, 20 do
        holder:signal "STOP"
        holder:signal "CONT"
    end
    holder:signal "KILL"
    holder:wait(120)
    equal(run([[
local db = assert(store.open(path))
print(db:put("k", "mine"), db:get "k")]], path), "true\tmine\n")
end)

-- promise: docs/store.md: **`db:copy(path [, options])`** writes a copy of one moment while others write, and replaces the file at
--   the path when the copy is whole and on the disk.
test("a copy is of one moment while another process writes", function()
    local path, removed <close> = new_path()
    local writer <close> = start([[
local db = assert(store.open(path, { sync = "none" }))
for n = 1, 1000000 do
  assert(db:write(function(txn) for i = 1, 50 do txn:put("k" .. i, tostring(n)) end end))
  if n == 1 then print "begun" io.stdout:flush() end
end
]], path)
    equal(writer:line(120), "begun")
    equal(run([[
local db = assert(store.open(path, { sync = "none" }))
for i = 1, 10 do
  assert(db:copy(path .. ".copy", { compact = i % 2 == 0 }))
  local copy <close> = assert(store.open(path .. ".copy", { read_only = true }))
  local first, number = copy:get "k1", 0
  for _, value in copy:each() do
    assert(value == first)
    number = number + 1
  end
  assert(number == 50)
end
print "whole"]], path), "whole\n")
end)

-- promise: docs/store.md: **`db:resize(map_size [, timeout])`** changes the most that the file may have. It fails with code 16
--   while this process has snapshots or copies. Other processes notice that a file has outgrown their map, and map more.
test("a process reads and writes what outgrew its map", function()
    local path, removed <close> = new_path()
    local proc <close> = start([[
local db = assert(store.open(path, { map_size = 1 << 20, sync = "none" }))
assert(db:put("k", "v"))
print((select(3, db:put("large", ("x"):rep(1 << 20)))))
print "open" io.stdout:flush()
while not db:get "large" do task.sleep(0.001) end
print(#db:get "large", db:put("k", "w"), db:get "k")
local one <close> = db:snapshot()
print((select(3, db:resize(1 << 24))))
]], path)
    equal(proc:line(120), "28")
    equal(proc:line(120), "open")
    run([[
local db = assert(store.open(path, { map_size = 1 << 24, sync = "none" }))
assert(db:put("large", ("x"):rep(4 << 20)))]], path)
    equal(proc:line(120), "4194304\ttrue\tw")
    equal(proc:line(120), "16")
    equal(proc:wait(120), 0)
end)

-- promise: docs/store.md: A full map is code 28, and a full disk is 28 or 5.
test("a full disk refuses a write, and the store goes on", function()
    if not os.execute "unshare --mount true 2>/dev/null" then return end
    local file = os.tmpname()
    local script <close> = setmetatable({}, {__close = function() os.remove(file) end})
    local out <close> = assert(io.open(file, "w"))
    out:write([[
local path = arg[1]
local store = require "sxe.store"
local db = assert(store.open(path .. "/a"))
assert(db:put("small", "v"))
local done, why, code = db:put("large", ("x"):rep(2 << 20))
print(done, code == 28 or code == 5, db:get "small", db:get "large")
if not db:put("small", "w") then
  db:close()
  db = assert(store.open(path .. "/a"))
  assert(db:put("small", "w"))
end
print(db:get "small")
]])
    out:close()
    local directory = os.tmpname()
    os.remove(directory)
    os.execute("mkdir " .. directory)
    local proc <close> = wire.spawn{"unshare", "--mount", "sh", "-c",
        'mount -t tmpfs -o size=1m none "$1" && exec "$2" "$3" "$1"', "sh", directory, wire.program "sxe-lua", file}
    equal(proc:output(120), "nil\ttrue\tv\tnil\nw\n")
    equal(proc:wait(120), 0)
    os.execute("rmdir " .. directory)
end)

-- promise: docs/store.md: Pages that an open snapshot sees cannot be used again, in any process, so the file grows while it is
--   open: after `snapshot_max` seconds it is closed, `get` gives `nil, message, 116`, and a walk raises.
test("a forgotten snapshot ends", function()
    local path, removed <close> = new_path()
    equal(run([[
local db = assert(store.open(path, { snapshot_max = 1, sync = "none" }))
assert(db:put("k", "v"))
task.sleep(0)
local one = db:snapshot()
local step = one:each()
while db:stats().snapshots > 0 do task.sleep(0.01) end
print((select(3, one:get "k")), (pcall(step)))]], path), "116\tfalse\n")
end)

-- promise: docs/store.md: Writes that wait at the same time share one commit, up to 64 of them, so a hundred tasks that put wait
--   for the disk some two times, not a hundred.
test("a hundred tasks share commits", function()
    local path, removed <close> = new_path()
    local output = run([[
local db = assert(store.open(path))
task.sleep(0)
local before, all = db:stats().transaction, {}
for i = 1, 100 do all[i] = task.start(function() assert(db:put("k" .. i, "v")) end) end
for i = 1, 100 do all[i]:join() end
print(db:stats().entries, db:stats().transaction - before)]], path)
    local entries, commits = output:match "(%d+)\t(%d+)"
    equal(entries, "100")
    check(tonumber(commits) <= 5, commits .. " commits")
end)
