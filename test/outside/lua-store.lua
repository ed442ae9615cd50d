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

-- Run a script to its end, with a directory on a disk of 1 MiB as its path; returns what it prints. Root may have such a disk.
local function run_on_small_disk(text)
    local file, directory = os.tmpname(), os.tmpname()
    local removed <close> = setmetatable({}, {__close = function()
        os.remove(file)
        os.remove(directory)
    end})
    local out = assert(io.open(file, "w"))
    out:write('local store, path = require "sxe.store", arg[1]\n', text)
    out:close()
    os.remove(directory)
    os.execute("mkdir " .. directory)
    local program = wire.program "sxe-lua"
    local proc <close> = wire.spawn{"unshare", "--mount", "sh", "-c",
        'mount -t tmpfs -o size=1m none "$1" && exec "$2" "$3" "$1" "$2"', "sh", directory, program, file}
    local output = proc:output(120)
    equal(proc:wait(120), 0)
    return output
end

local function is_root() return os.execute "unshare --mount true 2>/dev/null" end

-- promise: docs/store.md: sxe-lua and sxe-httpd have it unless they were built without LMDB. The sandbox does not
-- have it, because it opens files.
test("the sandbox has no sxe.store", function()
    local script, http = require "script", require "http"
    for _, option in ipairs{"--dev", "--lua-sandbox"} do
        local server <close> = script.start('return function(req) return tostring((pcall(require, "sxe.store"))) end', option)
        equal(http.ask(server, http.request "GET /").body, tostring(option == "--dev"))
    end
end)

-- promise: docs/store.md: If another write has meanwhile changed a value that the function had read, nothing is
-- changed, and the function is called again with the newest values, up to 100 times; then the call returns `nil,
-- "conflict: ...", 11`.
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

-- promise: docs/store.md: Tasks of one process take turns after a conflict, so any number of them may count in one key.
test("a hundred tasks count in one key, also when their functions wait, and two that count all the time", function()
    local path, removed <close> = new_path()
    equal(run([[
local db, again = assert(store.open(path, { sync = "none" })), assert(store.open(path, { sync = "none" }))
local function count(i, wait)
  assert((i % 2 == 0 and db or again):write(function(txn)
    local n = tonumber(txn:get "n" or 0)
    if wait then task.sleep(0.001) end
    txn:put("n", tostring(n + 1))
  end))
end
local all = {}
for i = 1, 200 do all[i] = task.start(count, i, i > 100) end
for i = 1, 200 do all[i]:join() end
for i = 1, 2 do all[i] = task.start(function() for _ = 1, 200 do count(i) end end) end
for i = 1, 2 do all[i]:join() end
print(db:get "n")]], path), "600\n")
end)

-- promise: docs/store.md: An error in the function leaves the store as it was. As the function may be called again, it must
-- have no other effects. It may wait, but the longer it takes, the more often it conflicts.
test("a function that waits for a transaction of another task, which waits for its turn, does not wait for ever", function()
    local path, removed <close> = new_path()
    equal(run([[
local db, runs = assert(store.open(path, { sync = "none" })), 0
local function add(sum)
  assert(db:write(function(txn) txn:put("n", tostring(sum + tonumber(txn:get "n" or 0))) end))
end
print(db:write(function(txn)
  runs = runs + 1
  local n = tonumber(txn:get "n" or 0)
  if runs <= 2 then
    local all = {}
    for i = 1, 3 do all[i] = task.start(add, 1) end
    for i = 1, 3 do all[i]:join() end
    add(10)
  end
  txn:put("n", tostring(n + 100))
end))
add(1000)
print(db:get "n")
pcall(db.write, db, function() error "oh" end)
add(1000)
print(db:get "n")]], path), "true\n1126\n2126\n")
end)

-- promise: docs/store.md: If a process is killed at any instruction, no commit is undone, with any `sync`, because
-- the kernel has the data.
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

-- promise: docs/store.md: If a process that holds the lock is killed, the lock is released.
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

-- promise: docs/store.md: `db:copy(path [, options])` writes a copy of one moment while others write, and replaces
-- the file at the path when the copy is complete and on the disk.
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

-- promise: docs/store.md: It replaces only an empty file, or a store that no process has open. If the file is a store
-- that is open, such as the one that is copied, the call fails with code 16; any other file is code 124.
test("a copy replaces nothing that is in use, and no other file", function()
    local path, removed <close> = new_path()
    local other_path, other_removed <close> = new_path()
    local other <close> = start([[
local db = assert(store.open(path))
assert(db:put("k", "other"))
print "open" io.stdout:flush()
task.sleep(1000)
]], other_path)
    equal(other:line(120), "open")
    local link = os.tmpname()
    os.remove(link)
    os.execute("ln -s " .. path .. " " .. link)
    equal(run(([[
local other, link = %q, %q
local db = assert(store.open(path))
assert(db:put("k", "v"))
for _, target in ipairs{ path, link, path .. "-lock", other } do print((select(3, db:copy(target)))) end
for _, target in ipairs{ "/dev/null", other .. "-lock" } do print((select(3, db:copy(target)))) end
print(db:put("l", "w"))
assert(io.open(path .. ".copy", "w")):close()
assert(db:copy(path .. ".copy") and db:copy(path .. ".copy"))
do local copy <close> = assert(store.open(path .. ".copy")) end
assert(db:copy(path .. ".copy"))
]]):format(other_path, link), path), ("16\n"):rep(4) .. ("124\n"):rep(2) .. "true\n")
    for _, name in ipairs{path, link} do
        equal(run([[
local db = assert(store.open(path))
print(db:get "k", db:get "l")]], name), "v\tw\n")
    end
    equal(run([[
local db = assert(store.open(path))
print(db:get "k")]], other_path), "other\n")
    os.remove(link)
    os.remove(link .. "-lock")
end)

-- promise: docs/store.md: A process that is killed while it copies leaves a file, whose name is the path, a dot and 16
-- hexadecimal digits; remove it.
test("a copy that was killed leaves one file, and a later copy does not need it", function()
    local path, removed <close> = new_path()
    local left, copies = nil, 0
    local function look()
        local list = io.popen("ls " .. path .. ".copy." .. ("[0-9a-f]"):rep(16) .. " 2>/dev/null")
        left = list:read "l"
        list:close()
        return left
    end
    equal(run([[
local db = assert(store.open(path, { sync = "none" }))
for i = 1, 20 do assert(db:put("k" .. i, ("x"):rep(1000000))) end
print "written"]], path), "written\n")
    repeat -- the copy may be complete just when its process is killed
        local copying <close> = start([[
local db = assert(store.open(path, { sync = "none" }))
while true do assert(db:copy(path .. ".copy")) end]], path)
        require "httpd".wait_until(look, "a copy is under way")
        copying:signal "KILL"
        copying:wait(120)
        copies = copies + 1
    until look() or copies == 100
    check(os.remove(left))
    equal(run([[print(assert(store.open(path)):copy(path .. ".copy"))]], path), "true\n")
    equal(look(), nil)
end)

-- promise: docs/store.md: A call that fails at run time returns `nil, message, code`, and changed nothing. A wrong argument raises an error; keys and values are strings, never numbers.
test("one value, another handle, and a transaction that has ended", function()
    local path <const>, removed <close> = new_path()
    equal(run([[
local db = assert(store.open(path))
local again, old = assert(store.open((path:gsub("[^/]+$", "./%0")))), nil
print(db:put("k", "v"), again:get "k", db:cas("k", "w", "x"), again:cas("k", "v", "x"), db:get "k", db:del "k", db:del "k")
print(db:cas("k", nil, "1"), db:cas("k", nil, "2"), db:cas("k", "1", nil), db:get "k")
for _, call in ipairs{ function() db:put(1, "v") end, function() db:put("k", 1) end, function() db:get "" end,
    function() db:get(("k"):rep(512)) end, function() old:get "k" end, function() old:put("k", "v") end } do
  db:write(function(txn) old = txn end)
  print((pcall(call)))
end
print(select(3, store.open(path .. "/none")) ~= nil, db:get "k")
]], path), "true\tv\tfalse\ttrue\tx\ttrue\tfalse\ntrue\tfalse\ttrue\tnil\n" .. ("false\n"):rep(6) .. "true\tnil\n")
end)

-- promise: docs/store.md: An empty file becomes a store.
test("an empty file becomes a store", function()
    local path, removed <close> = new_path()
    assert(io.open(path, "w")):close()
    equal(run([[
do local db <close> = assert(store.open(path)) assert(db:put("k", "v")) end
print(assert(store.open(path)):get "k")]], path), "v\n")
end)

-- promise: docs/store.md: `store.open` refuses a file whose end is missing, such as an incomplete copy, with code
-- 117.
test("a file whose end is missing is no store, and one whose last pages were never written is", function()
    local path, removed <close> = new_path()
    equal(run([[
local function write(db, first, last)
  assert(db:write(function(txn)
    for i = first, last do txn:put(("key%06d"):format(i), ("v"):rep(i % 50 == 0 and 9000 or 100)) end
  end))
end
do
  local db <close> = assert(store.open(path, { sync = "none" }))
  write(db, 1, 2000)
  -- Free pages, among them some at the end.
  assert(db:write(function(txn) for i = 500, 1000 do txn:del(("key%06d"):format(i)) end end))
  write(db, 2001, 2100)
  assert(db:write(function(txn) for i = 2001, 2100 do txn:del(("key%06d"):format(i)) end end))
end
local whole <close> = io.open(path)
local text, refused, read = whole:read "a", 0, 0
for length = 0, #text - 1, 512 do
  local file = io.open(path .. ".copy", "w")
  file:write(text:sub(1, length)):close()
  local db, why, code = store.open(path .. ".copy", { sync = "none" })
  if length == 0 then
    db:close()
  elseif db then
    local number = 0
    for _ in db:each() do number = number + 1 end
    assert(number == 1499)
    read = read + 1
    db:close()
  else
    assert(code == 117, why)
    refused = refused + 1
  end
end
print(refused > 100, read * 512 < 100 * 4096)]], path), "true\ttrue\n")
end)

-- promise: docs/store.md: `db:resize(map_size [, timeout])` changes the largest size of the file. It fails with code
-- 16 while this process has snapshots or copies. Other processes notice that a file has outgrown their map, and map
-- more.
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

-- promise: docs/store.md: A full map is code 28, and a full disk is 28 or 5, also of `store.open`.
test("a full disk refuses a write, and the store goes on", function()
    if not is_root() then return end
    equal(run_on_small_disk([[
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
]]), "nil\ttrue\tv\tnil\nw\n")
end)

-- promise: docs/store.md: Reads still work on a full disk.
test("a disk that is full stops neither the opening of a store nor its readers", function()
    if not is_root() then return end
    equal(run_on_small_disk([[
if arg[3] then
  local db, all = assert(store.open(path .. "/a")), {}
  for i = 1, 90 do all[i] = assert(db:snapshot()) end
  print(all[90]:get "k")
  return
end
local db, all = assert(store.open(path .. "/a")), {}
db:put("k", "v")
local full = assert(io.open(path .. "/full", "w"))
full:setvbuf "no"
for size = 4096, 1, -4095 do
  while full:write(("x"):rep(size)) do end
end
-- Each page of the file of locks has places for some sixty of them.
for i = 1, 90 do all[i] = assert(db:snapshot()) end
assert(os.execute(("%s %s %s %s reader"):format(arg[2], arg[0], path, arg[2])))
print(all[90]:get "k", (select(3, store.open(path .. "/b"))))
]]), "v\nv\t28\n")
end)

-- promise: docs/store.md: Pages of the file that an open snapshot uses cannot be used again, in any process, so the
-- file grows while the snapshot is open. After `snapshot_max` seconds a snapshot is closed: then `get` returns `nil,
-- message, 116`, and a walk raises an error.
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

-- promise: docs/store.md: Up to 64 writes that wait at the same time share one commit, so a hundred tasks that write
-- at once wait for the disk twice, not a hundred times.
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

-- promise: docs/store.md: `store.open` refuses a file whose end is missing, such as an incomplete copy, with code
-- 117.
test("a file that was cut inside its list of free pages is refused, too", function()
    local path, removed <close> = new_path()
    equal(run([[
do
  local db <close> = assert(store.open(path, { sync = "none" }))
  for i = 1, 3 do
    assert(db:write(function(txn) for k = 1, 300 do txn:put(i .. "-" .. k, ("v"):rep(900)) end end))
  end
  assert(db:write(function(txn) for i = 2, 3 do for k = 1, 300 do txn:del(i .. "-" .. k) end end end))
  for i = 1, 3 do assert(db:put("x", tostring(i))) end
end
local whole <close> = io.open(path)
local text, refused = whole:read "a", 0
for length = #text - 4096, 3 * 4096, -5 * 4096 do
  local file = io.open(path .. ".copy", "w")
  file:write(text:sub(1, length)):close()
  local db, why, code = store.open(path .. ".copy", { sync = "none" })
  if db then
    for i = 1, 40 do assert(db:put("y" .. i, ("z"):rep(3000))) end
    db:close()
  else
    assert(code == 117, why)
    refused = refused + 1
  end
end
print(refused > 10)]], path), "true\n")
end)
