-- SPDX-License-Identifier: MIT
--
-- sxe.store, as docs/store.md has it, without a loop: each call is made at once. arg[1] is a directory.

local function refuses(message, call, ...)
  local done, why = pcall(call, ...)

  assert(not done and why:find(message, 1, true), why)
end

-- ---- One value ----

local db = open("a", { map_size = 1 << 22, sync = "none" })

assert(db:get "k" == nil and db:put("k", "v") == true and db:get "k" == "v")
assert(db:put("k", "") and db:get "k" == "" and db:put("k", "\0" .. ("x"):rep(100000)) and #db:get "k" == 100001)
assert(db:del "k" == true and db:del "k" == false and db:get "k" == nil)
assert(db:cas("c", nil, "1") == true and db:cas("c", nil, "2") == false and db:cas("c", "2", "3") == false)
assert(db:cas("c", "1", "2") == true and db:get "c" == "2" and db:cas("d", "1", "2") == false)
assert(db:cas("c", "2", nil) == true and db:get "c" == nil)
assert(db:put(("k"):rep(511), "long", 5) and db:del(("k"):rep(511)))
refuses("a key of 1 to 511 bytes expected", db.put, db, ("k"):rep(512), "v")
refuses("a key of 1 to 511 bytes expected", db.get, db, "")
refuses("string expected, got number", db.get, db, 1)
refuses("string expected, got number", db.put, db, "k", 1)
refuses("string expected, got nil", db.put, db, "k", nil)
refuses("string expected, got boolean", db.cas, db, "k", nil, true)
refuses("a timeout in seconds expected", db.put, db, "k", "v", -1)
local timed = { put = { "k", "v" }, del = { "k" }, cas = { "k", "v", "w" }, sync = {}, resize = { 1 << 30 } }
for call, arguments in pairs(timed) do
  arguments[#arguments + 1] = "1"
  refuses("a timeout in seconds expected", db[call], db, table.unpack(arguments))
end
fails(28, db:put("big", ("x"):rep(1 << 22)))
assert(db:get "big" == nil)

-- ---- Walks ----

for _, key in ipairs{ "a", "b1", "b2", "b\xff", "b\xff\xff", "c" } do assert(db:put(key, "=" .. key)) end
assert(keys(db) == "a b1 b2 b\xff b\xff\xff c" and keys(db, { reverse = true }) == "c b\xff\xff b\xff b2 b1 a")
assert(keys(db, { prefix = "b" }) == "b1 b2 b\xff b\xff\xff")
assert(keys(db, { prefix = "b\xff", reverse = true }) == "b\xff\xff b\xff" and keys(db, { prefix = "x" }) == "")
assert(keys(db, { from = "b1", to = "c" }) == "b1 b2 b\xff b\xff\xff" and keys(db, { from = "d" }) == "")
assert(keys(db, { from = "b", to = "b2", reverse = true }) == "b1" and keys(db, { to = "a", reverse = true }) == "")
assert(keys(db, { to = "zz", reverse = true, from = "b3" }) == "c b\xff\xff b\xff")
assert(keys(db, { prefix = "b", from = "b2", to = "b9" }) == "b2" and keys(db, { prefix = "b", to = "z" }):sub(1, 2) == "b1")
assert(keys(db, { prefix = "\xff" }) == "" and keys(db, { to = "", reverse = true }) == "")
for key, value in db:each() do assert(value == "=" .. key) end
refuses("each has no option 'prefx'", db.each, db, { prefx = "x" })
refuses("each: prefix: a string expected, got number", db.each, db, { prefix = 1 })
refuses("each: reverse: a boolean expected", db.each, db, { reverse = 1 })

-- ---- Snapshots ----

local snapshot = db:snapshot()

assert(db:put("a", "new") and db:del "c" and snapshot:get "a" == "=a" and snapshot:get "c" == "=c" and not snapshot:get "x")
assert(keys(snapshot, { from = "b2" }) == "b2 b\xff b\xff\xff c" and db:stats().snapshots == 1)
-- Two walks through one snapshot take turns.
local one, other, seen = snapshot:each(), snapshot:each{ reverse = true }, {}
local key, last = one(), other()
while key do
  seen[#seen + 1] = key .. last
  key, last = one(nil, key), other(nil, last)
end
assert(table.concat(seen, " ") == "ac b1b\xff\xff b2b\xff b\xffb2 b\xff\xffb1 ca")
-- A key that is not there: the walk goes on from its place.
assert(one(nil, "b3") == "b\xff" and other(nil, "b3") == "b2" and other(nil, "z") == "c")
fails(16, db:resize(1 << 23))
for _, wrong in ipairs{ db, "text", {}, setmetatable({}, { __index = snapshot }), io.stdout } do
  refuses("sxe.store.snapshot expected", snapshot.get, wrong, "a")
end
refuses("string expected, got no value", snapshot.get, snapshot)
snapshot:close()
snapshot:close()
refuses("the snapshot is closed", snapshot.get, snapshot, "a")
refuses("the snapshot of this walk is closed", one)
refuses("a key of 1 to 511 bytes", function() local s <close> = db:snapshot() s:get "" end)
assert(db:stats().snapshots == 0)
do
  local all = {}
  for i = 1, 256 do all[i] = assert(db:snapshot()) end
  fails(24, db:snapshot())
  refuses("each: too many snapshots", db.each, db)
  fails(24, db:write(function() end))
  for i = 1, 256 do all[i]:close() end
  assert(db:stats().readers > 256 and db:snapshot():get "a" == "new")
  collectgarbage()
end
-- Snapshots that are forgotten are collected when their places are used up.
collectgarbage "stop"
for _ = 1, 256 do assert(db:snapshot()) end
assert(db:stats().snapshots == 256)
assert(db:snapshot()):close()
assert(db:stats().snapshots == 0)
collectgarbage "restart"
-- A loop that is left closes its snapshot.
for _ in db:each() do break end
pcall(function() for _ in db:each() do error "oh" end end)
assert(db:stats().snapshots == 0)

-- ---- Transactions ----

local kept
local done, first, second = db:write(function(txn)
  kept = txn
  txn:put("b15", "new")
  txn:put("b2", "other")
  txn:put("d", "more")
  txn:del "b1"
  assert(txn:get "b2" == "other" and txn:get "b1" == nil and txn:get "a" == "new" and txn:get "a" == "new")
  assert(txn:get "none" == nil and keys(txn) == "a b15 b2 b\xff b\xff\xff d")
  assert(keys(txn, { reverse = true }) == "d b\xff\xff b\xff b2 b15 a" and keys(txn, { prefix = "b1" }) == "b15")
  for k, v in txn:each{ from = "b2", to = "b3" } do assert(k == "b2" and v == "other") end
  return 1, nil
end)
assert(done and first == 1 and second == nil and keys(db) == "a b15 b2 b\xff b\xff\xff d" and db:get "b2" == "other")
for _, call in ipairs{ "get", "put", "del", "each" } do refuses("the transaction is over", kept[call], kept, "k", "v") end
assert(select("#", db:write(function() return nil, nil end)) == 3 and db:write(function() end) == true)
refuses("write: a function expected, got nil", db.write, db)
refuses("write has no option 'timout'", db.write, db, function() end, { timout = 1 })
refuses("oh", db.write, db, function(txn) txn:put("a", "lost") error "oh" end)
refuses("a key of 1 to 511 bytes", db.write, db, function(txn) txn:put("", "v") end)
refuses("a key of 1 to 511 bytes", db.write, db, function(txn) txn:get(1) end)
refuses("a string expected as the value, got number", db.write, db, function(txn) txn:put("a", 1) end)
assert(db:get "a" == "new")
fails(28, db:write(function(txn) txn:put("a", "lost") txn:put("big", ("x"):rep(1 << 22)) end))
fails(12, db:write(function(txn)
  local large = ("x"):rep(5 << 20)
  for i = 1, 3 do txn:put("big" .. i, large) end
end))
assert(db:get "a" == "new")

-- What was read is compared when the changes are made.
local runs = 0
local function add(read, others)
  runs = 0
  return db:write(function(txn)
    runs = runs + 1
    read(txn)
    if runs <= others then db:put("a", tostring(runs)) db:put("far", "x") end
    txn:put("sum", tostring(runs))
  end)
end
assert(add(function(txn) txn:get "a" end, 3) and runs == 4 and db:get "sum" == "4")
assert(add(function(txn) txn:get "b2" end, 3) and runs == 1)
assert(add(function(txn) keys(txn, { prefix = "b" }) end, 3) and runs == 4)
fails(11, add(function(txn) txn:get "a" end, 100))
assert(runs == 100)
assert(add(function(txn) txn:get "none" db:put("none", "now") end, 0) and runs == 2 and db:del "none")
assert(add(function(txn) if txn:get "far" then db:del "far" end end, 0) and runs == 2)
assert(db:write(function(txn) txn:put("a", "v") end, { timeout = 5 }))

-- ---- The file ----

local stats = db:stats()
assert(stats.entries == 7 and stats.map_size == 1 << 22 and stats.page_size == 4096 and stats.transaction > 20)
assert(db:sync() == true and db:resize(1 << 23) == true and db:stats().map_size == 1 << 23)
refuses("a number of bytes expected", db.resize, db, 0)
assert(db:put("big", ("x"):rep(1 << 22)) and db:del "big")
assert(db:copy(at "copy") and db:copy(at "copy2", { compact = true }) and db:copy(at "copy2"))
for _, name in ipairs{ "copy", "copy2" } do
  local copy <close> = open(name, { read_only = true })
  assert(keys(copy) == keys(db))
  fails(13, copy:put("a", "v"))
end
fails(2, db:copy(at "none/copy"))
os.execute("mkdir " .. at "directory")
fails(21, db:copy(at "directory"))
-- A copy replaces a store that nobody has open, or an empty file.
os.execute("mkfifo " .. at "fifo")
for _, name in ipairs{ "fifo", "text", "a-lock", "copy-lock" } do
  io.open(at "text", "w"):write(name == "text" and "no store" or ("x"):rep(100)):close()
  assert(select(3, db:copy(at(name))) == (name == "a-lock" and 16 or 124), name)
end
assert(fails(16, db:copy(at "a")):find("the store at the path is open", 1, true))
io.open(at "text", "w"):close()
assert(db:copy(at "text"))
refuses("store:copy has no option 'compakt'", db.copy, db, at "copy", { compakt = true })
refuses("the path is too long", db.copy, db, ("x"):rep(4096))
refuses("the path is too long", store.open, ("x"):rep(4096))
refuses("store.open has no option 'mapsize'", store.open, at "b", { mapsize = 1 })
refuses("map_size: 1 to 70368744177664 expected, got 0", store.open, at "b", { map_size = 0 })
refuses("readers: 1 to 65536 expected, got 5.5", store.open, at "b", { readers = 5.5 })
refuses('sync: "full", "meta" or "none" expected', store.open, at "b", { sync = "never" })
refuses('sync: "full", "meta" or "none" expected', store.open, at "b", { sync = true })
assert(fails(2, store.open(at "none/b")) == at "none/b" .. ": No such file or directory")
fails(2, store.open(at "none", { read_only = true }))
assert(not io.open(at "none-lock"))
io.open(at "text", "w"):write(("no store "):rep(1000)):close()
fails(117, store.open(at "text"))
for _, sync in ipairs{ "meta", "none", "full" } do
  local policy <close> = open("policy", { sync = sync, mode = tonumber("640", 8) })
  assert(policy:put("k", sync) and policy:get "k" == sync)
end
-- A file is open once, whatever its names are.
os.execute("ln -s a " .. at "link")
local again = open("link", { sync = "none" })
assert(again:put("again", "x") and db:get "again" == "x")
again:close()
again:close()
refuses("the store is closed", again.get, again, "a")
assert(fails(16, store.open(at "a")):find("in use", 1, true))
assert(db:get "again" == "x")
do local closed <close> = open "b" end
db:close()
refuses("the store is closed", db.get, db, "a")
