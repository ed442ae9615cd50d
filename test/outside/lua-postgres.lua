-- SPDX-License-Identifier: MIT
--
-- sxe.postgres by docs/postgres.md, with a real server, and pgbouncer, if they are installed.

local cli = require "cli"

if not os.execute(wire.program "sxe-lua" .. " -e 'require \"sxe.postgres\"' >/dev/null 2>&1") then
    print("skipped: queries of PostgreSQL, because sxe-lua was built without libpq")
    return
end

-- ---- The example, with a server that a script plays ----

local httpd = require "httpd"
local build = os.getenv("SXE_BUILD") or "build/release"
local counts = build:find("coverage", 1, true) and os.execute("mkdir -p " .. build .. "/lua")

local SERVER = [[
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local has_table = false
local server = P.serving(setmetatable({}, { __index = function(_, sql)
  if sql:find "^CREATE" then
    has_table = true
    return { tag = "CREATE TABLE" }
  end
  if not has_table then return { error = { C = "42P01", M = 'relation "visits" does not exist' } } end
  return function(values)
    return { columns = { { "page", 25 }, { "number", 20 } }, rows = { { values[1], "7" } }, tag = "INSERT 0 1" }
  end
end }))
require "sxe.task".start(function()
  require "sxe.task".sleep(0)
  io.stdout:write(server.tcp.port, "\n")
  io.stdout:flush()
end)
]]

-- Ask the example, whose server is at a port.
local function ask_example(at, name)
    local site <close> = httpd.spawn{wire.program "sxe-httpd", "-p", "0", "-w", "1", "--lua", "examples/lua/visits.lua",
        counts and "--lua-coverage=" .. build .. "/lua/" .. name .. ".info" or nil,
        env = {PGHOST = "127.0.0.1", PGPORT = tostring(at), PGUSER = "tester", SXE_LOG_LEVEL = "error"}}
    local client <close> = site:connect()
    client:send("GET /it's HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    return client:read_reply()
end

-- promise: docs/postgres.md: [visits.lua](../examples/lua/visits.lua) is a handler.
test("the example counts visits, and replies with an error if there is no PostgreSQL", function()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", SERVER}
    local body = ask_example(tonumber(proc:line()), "visits").body
    check(body:find('"number":7', 1, true) and body:find("it's", 1, true), body)
    equal(ask_example(wire.free_port(), "visits-none").status, 503)
end)

-- ---- The real server ----

local function installed(name)
    local list = io.popen("ls /usr/lib/postgresql/*/bin/" .. name .. " 2>/dev/null | tail -1")
    local path = list:read "l"
    list:close()
    return path or wire.has(name)
end

local initdb, postgres = installed "initdb", installed "postgres"
if not initdb or not postgres then
    print("skipped: queries of the real PostgreSQL, because postgresql is not installed")
    return
end
-- The server refuses to run as root.
local function is_root()
    local id = io.popen "id -u"
    local uid = id:read "l"
    id:close()
    return uid == "0"
end
local become = {}
if is_root() then
    if not wire.has "setpriv" or not os.execute "id nobody >/dev/null 2>&1" then
        print("skipped: queries of the real PostgreSQL, because it refuses root, and there is no setpriv or no user nobody")
        return
    end
    become = {"setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"}
end

local function command(...)
    local list = {table.unpack(become)}
    for _, word in ipairs{...} do list[#list + 1] = word end
    return list
end

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir -m 777 " .. directory))

local function write(name, text, mode)
    local file <close> = assert(io.open(directory .. "/" .. name, "w"))
    file:write(text)
    file:close()
    assert(os.execute(("chmod %s %s/%s"):format(mode or "644", directory, name)))
end

local port = wire.free_port()
local data = directory .. "/data"
do
    local proc <close> = wire.spawn(command(initdb, "-D", data, "-U", "tester", "--auth=trust", "-N", "-E", "UTF8",
                                            "--locale=C"))
    proc:output(120)
    equal(proc:wait(120), 0)
end

local function socket_path() return ("%s/.s.PGSQL.%d"):format(directory, port) end

local function is_up()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
local db = require "sxe.postgres".new{ host = "%s", port = %d, user = "tester", database = "postgres" }
local rows = db:query "SELECT 1"
os.exit(rows and 0 or 1)]]):format(directory, port)}
    return proc:wait(60) == 0
end

local in_front = {} -- a command that runs the server

local function spawn_server(...)
    local words = command(postgres, "-D", data, "-k", directory, "-p", tostring(port), "-c", "fsync=off",
        "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=30", ...)
    return wire.spawn(table.move(words, 1, #words, #in_front + 1, {table.unpack(in_front)}))
end

-- Start the server. After kill -9 the processes of the old one keep its memory for a moment, and the new one ends.
local function start(...)
    local proc, has_ended
    repeat
        os.remove(data .. "/postmaster.pid")
        proc = spawn_server(...)
        httpd.wait_until(function()
            has_ended = pcall(proc.wait, proc, 0)
            return has_ended or is_up()
        end, "PostgreSQL listens")
    until not has_ended
    return proc
end

local function stop(proc)
    proc:signal "INT"
    proc:wait(60)
end

-- Run a script whose `db` is a pool; open{...} makes others.
local function run(text, env)
    return cli.output_of(120, {wire.program "sxe-lua", "--sockets", "100", "-e", ([[
local postgres, task, json = require "sxe.postgres", require "sxe.task", require "sxe.json"
local SOCKETS, PORT = "%s", %d
local function open(options)
  options = options or {}
  options.host, options.port = options.host or SOCKETS, options.port or PORT
  options.user, options.database, options.timeout = options.user or "tester", "postgres", options.timeout or 60
  return postgres.new(options)
end
local db = open()
]]):format(directory, port) .. text, env = env})
end

-- The text with tabs in place of " | ".
local function tabbed(text) return (text:gsub(" | ", "\t")) end

local server = start()

-- The first block of the page.
test("the page begins with a script that runs", function()
    local page <close> = assert(io.open "docs/postgres.md")
    local block = page:read "a":match "```lua\n(.-)```"
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", (block:gsub('user = "postgres"',
        'user = "tester", port = ' .. port))}
    equal(proc:output(60), "/it's\t1\n1\tINSERT 0 1\tpage number\n")
    equal(proc:errors(), "")
end)

-- The other blocks go on with the `db` and the tables of the ones before; the loop of the last one waits for messages.
test("the other scripts of the page run", function()
    local page <close> = assert(io.open "docs/postgres.md")
    local blocks = {}
    for block in page:read "a":gmatch "```lua\n(.-)```" do blocks[#blocks + 1] = "do\n" .. block .. "end\n" end
    equal(#blocks, 7)
    equal(run([[
db:exec "UPDATE visits SET number = 11"
db:exec "CREATE TABLE accounts (id int, cents int); INSERT INTO accounts VALUES (1, 600), (2, 0)"
]] .. blocks[2] .. blocks[3]:gsub("end\n$", "print(ok, why, db:query 'SELECT cents FROM accounts WHERE id = 2'[1].cents) end\n") ..
        blocks[4] .. blocks[5] .. blocks[6] .. [[
task.start(function()
  while db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"[1].n == 0 do task.sleep(0.01) end
  db:query "SELECT pg_notify('users', 'ann')"
end)
]] .. blocks[7]:gsub("print%(.-%)", 'print(message.channel, message.payload, message.pid > 0) break')),
        "/it's\t11\ntrue\tnil\t500\n1\n/it's,11\n/new,1\n/a,1\n/b,2\nusers\tann\ttrue\n")
end)

-- promise: docs/postgres.md: Values are always sent separately from the text, so nothing needs quoting.
test("values of all types go to the server and come back", function()
    equal(run[[
local rows = assert(db:query("SELECT $1::bigint a, $2::float8 b, $3::boolean c, $4::text d, $5::text e, $6::bytea f, $7::jsonb g, " ..
  "$8::text[] h, $9::numeric i, $10::int[] j", math.maxinteger, 0.1, false, "'; DROP TABLE x; --\\", nil,
  postgres.bytea "\0\\x\xff", postgres.json{ a = { 1, postgres.null } }, postgres.array{ 'a"b\\', postgres.null, "{}" }, "1.50",
  postgres.array{ { 1, 2 }, { 3, 4 } }))
local row = rows[1]
print(row.a == math.maxinteger, row.b, row.c, row.d, row.e == postgres.null, row.f == "\0\\x\xff")
print(json.encode(row.g), json.encode(row.h), row.i, json.encode(row.j))
local bytes = {}
for i = 0, 255 do bytes[i + 1] = string.char(i) end
bytes = table.concat(bytes):rep(1000)
print(db:query("SELECT $1::bytea b", postgres.bytea(bytes))[1].b == bytes)
for i = 1, 200 do
  local text = {}
  for j = 1, 20 do text[j] = string.char(math.random(1, 127)) end
  text = table.concat(text)
  assert(db:query("SELECT $1::text t, $2::text[] a", text, postgres.array{ text })[1].a[1] == text)
  local number = string.unpack("d", string.pack("j", math.random(0)))
  local back = db:query("SELECT $1::float8 n", number)[1].n
  assert(back == number or number ~= number, number)
end
]], tabbed[==[
true | 0.1 | false | '; DROP TABLE x; --\ | true | true
{"a":[1,null]} | ["a\"b\\",null,"{}"] | 1.50 | [[1,2],[3,4]]
true
]==])
end)

-- promise: docs/postgres.md: `code` is the SQLSTATE, `"23505"`.
test("errors say what the server said", function()
    equal(run[[
assert(db:exec "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)")
local rows, why, code, fields = db:query("INSERT INTO u VALUES ($1)", 1)
print(rows, why, code, fields.detail, fields.constraint)
print((select(3, db:query "SELECT 1/0")))
print((select(3, db:query "SELEC")))
print((select(3, db:query("SELECT 1; SELECT 2"))))
]], tabbed[[
nil | duplicate key value violates unique constraint "u_pkey" | 23505 | Key (id)=(1) already exists. | u_pkey
22012
42601
42601
]])
end)

-- promise: docs/postgres.md: did not run, and is prepared and sent once more, except in a transaction.
test("a statement whose table changes, or that was forgotten, is prepared again", function()
    equal(run[[
local one <close> = open{ max = 1 }
assert(one:exec "CREATE TABLE c (a int); INSERT INTO c VALUES (1)")
print(#one:query "SELECT * FROM c".columns)
assert(one:exec "ALTER TABLE c ADD b int")
print(#one:query "SELECT * FROM c".columns)
assert(one:exec "DISCARD ALL")
print(#one:query "SELECT * FROM c".columns)
local few <close> = open{ max = 1, statements = 3 }
for round = 1, 3 do
  for i = 1, 10 do assert(few:query("SELECT " .. i .. " AS n")[1].n == i) end
end
print(few:query "SELECT count(*) n FROM pg_prepared_statements"[1].n <= 3)
local none <close> = open{ max = 1, prepare = false }
assert(none:query("SELECT $1::int n", 1))
print(none:query "SELECT count(*) n FROM pg_prepared_statements"[1].n)
]], "1\n2\n2\ntrue\n0\n")
end)

-- promise: docs/postgres.md: The same code from a function or procedure, which
test("a procedure that commits and fails with a code of forgotten statements runs once", function()
    equal(run[==[
local one <close> = open{ max = 1 }
assert(one:exec [[CREATE TABLE paid (n int);
CREATE PROCEDURE pay(k int, s text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO paid VALUES (k); COMMIT;
  RAISE EXCEPTION 'boom' USING errcode = s; END $$;
CREATE PROCEDURE run(k int, s text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO paid VALUES (k); COMMIT; EXECUTE s; END $$;
CREATE TABLE wide (a int); PREPARE of_wide AS SELECT * FROM wide; ALTER TABLE wide ADD b int]])
for i, call in ipairs{ { "CALL pay($1, $2)", "26000" }, { "CALL pay($1, $2)", "0A000" }, { "CALL run($1, $2)", "DEALLOCATE nosuch" },
  { "CALL run($1, $2)", "EXECUTE of_wide" } } do
  print((select(3, one:query(call[1], i, call[2]))))
end
print(one:query "SELECT array_agg(n ORDER BY n) a FROM paid"[1].a[4], one:query "SELECT count(*) c FROM paid"[1].c)
-- All statements are forgotten while there is no room for another.
local few <close> = open{ max = 1, statements = 2 }
for i = 1, 4 do
  if i > 2 then assert(few:exec "DISCARD ALL") end
  io.write(few:query("SELECT $1::int + " .. i .. " n", i)[1].n, " ")
end
print(string.format("%a", few:query "SELECT '-0'::float8 f"[1].f))
]==], tabbed[[
26000
0A000
26000
0A000
4 | 4
2 4 6 8 -0x0p+0
]])
end)

-- promise: docs/postgres.md: later queries are not sent, and the transaction fails with the code
test("a transaction that its function ends fails", function()
    equal(run[[
local one <close> = open{ max = 1 }
assert(one:exec "CREATE TABLE ended (id int)")
print((select(3, one:transaction(function(tx)
  tx:query "INSERT INTO ended VALUES (1)"
  tx:exec "ROLLBACK"
  print(tx:query "INSERT INTO ended VALUES (2)")
  return 1
end))))
for _, command in ipairs{ "ROLLBACK; BEGIN", "COMMIT; BEGIN", "ROLLBACK AND CHAIN", "COMMIT AND CHAIN" } do
  print((select(3, one:transaction(function(tx)
    tx:query "INSERT INTO ended VALUES (3)"
    assert(tx:exec(command))
    tx:query "INSERT INTO ended VALUES (4)"
    return 1
  end))))
end
print(one:query "SELECT count(*) n FROM ended"[1].n, one:query "SELECT max(id) m FROM ended"[1].m)
print(one:transaction(function(tx)
  tx:exec "SAVEPOINT s"
  tx:query "INSERT INTO ended VALUES (5)"
  tx:exec "ROLLBACK TO s"
  return 1
end))
]], tabbed[[
nil | postgres: a query of the function ended the transaction | 25P01 | nil
25P01
25P01
25P01
25P01
25P01
2 | 3
true | 1
]])
end)

-- promise: docs/postgres.md: the function and is dropped commits nothing, either, and the collector closes its connection.
test("a transaction of a coroutine that is dropped is undone", function()
    equal(run[[
local one <close> = open{ max = 1 }
assert(one:exec "CREATE TABLE dropped (id int)")
local step = coroutine.wrap(function()
  one:transaction(function(tx) tx:query "INSERT INTO dropped VALUES (1)" coroutine.yield() end)
end)
step()
step = nil
collectgarbage()
collectgarbage()
print(one:query "SELECT count(*) n FROM dropped"[1].n)
]], "0\n")
end)

-- promise: docs/postgres.md: A task that has waited for a connection for a second has garbage collected.
test("a task that waits for the connection of a dropped coroutine gets it", function()
    equal(run[[
local one <close> = open{ max = 1, timeout = 20 }
local step = coroutine.wrap(function() one:transaction(function(tx) tx:query "SELECT 1" coroutine.yield() end) end)
step()
step = nil
collectgarbage "stop"
print(one:query "SELECT 2 n"[1].n)
]], "2\n")
end)

-- promise: docs/postgres.md: More than 10,000 of these nils raise
test("the nils of a list are counted", function()
    equal(run[[
print(db:query("SELECT $1::int[] a", postgres.array{ n = 10000 })[1].a[10000] == postgres.null)
print(pcall(postgres.array, json.decode '{"n": 1000000000}'))
]], "true\nfalse\tpostgres.array: more than 10000 items are nil, by the field n\n")
end)

-- promise: docs/postgres.md: After an error in the function the transaction is rolled back, and the error is raised.
test("transactions commit, roll back, and have savepoints", function()
    equal(run[[
assert(db:exec "CREATE TABLE t (id int PRIMARY KEY)")
print(db:transaction(function(tx) assert(tx:query "INSERT INTO t VALUES (1)") return "one" end))
print(pcall(db.transaction, db, function(tx) assert(tx:query "INSERT INTO t VALUES (2)") error("no", 0) end))
print(db:transaction(function(tx) assert(tx:query "INSERT INTO t VALUES (3)") return false end))
print((select(3, db:transaction(function(tx) tx:query "INSERT INTO t VALUES (4)" tx:query "INSERT INTO t VALUES (1)" end))))
print(db:transaction(function(tx)
  assert(tx:query "INSERT INTO t VALUES (5)")
  tx:transaction(function(inner) inner:query "INSERT INTO t VALUES (6)" inner:query "bad" end)
  assert(tx:transaction(function(inner) assert(inner:query "INSERT INTO t VALUES (7)") end))
end))
local ids = {}
for _, row in ipairs(db:query "SELECT id FROM t ORDER BY id") do ids[#ids + 1] = row.id end
print(table.concat(ids, " "))
assert(db:exec "CREATE TABLE n (v int); INSERT INTO n VALUES (0)")
task.parallel({ 1, 2, 3, 4, 5, 6, 7, 8 }, function()
  assert(db:transaction(function(tx)
    local v = assert(tx:query "SELECT v FROM n")[1].v
    assert(tx:query("UPDATE n SET v = $1", v + 1))
  end, { isolation = "serializable", retries = 1000 }))
end)
print(db:query "SELECT v FROM n"[1].v)
]], tabbed[[
true | one
false | no
nil | postgres: the function gave the transaction up
23505
true | nil
1 5 7
8
]])
end)

-- promise: docs/postgres.md: If the loop is left early, the query is cancelled.
test("rows of a large result come in portions", function()
    equal(run[[
local one <close> = open{ max = 1, bytes_max = 1 << 20 }
local sum, number = 0, 0
for row in one:rows("SELECT g, repeat('x', 100) t FROM generate_series(1, $1::int) g", 200000) do
  sum, number = sum + row.g, number + 1
  if number % 50000 == 0 then collectgarbage() end
end
print(sum == 200000 * 200001 // 2, number, collectgarbage "count" < 20000)
for row in one:rows "SELECT generate_series(1, 1000000000) n" do
  if row.n == 3 then break end
end
print(one:query "SELECT 5 n"[1].n)
print(pcall(function() for row in one:rows "SELECT 10 / (5 - g) n FROM generate_series(1, 9) g" do print(row.n) end end))
]], "true\t200000\ttrue\n5\nfalse\tdivision by zero\n")
end)

-- promise: docs/postgres.md: A script that calls the iterator itself passes it the second value of `db:rows`, or the
-- call raises an error; that value is a `<close>` variable, because it has the connection until it is closed.
test("an iterator that a script calls itself", function()
    equal(run[[
local one <close> = open{ max = 1 }
do
  local next_row, state <close> = one:rows "SELECT generate_series(1, 2) n"
  print(pcall(next_row))
  print(select(2, pcall(next_row, {})) == select(2, pcall(next_row)))
  print(next_row(state).n, next_row(state).n, next_row(state))
end
print(one:query "SELECT 5 n"[1].n)
]], "false\tpostgres: call the iterator of rows or copy_out in `for`, or with the second value that came with it\n" ..
    "true\n1\t2\tnil\n5\n")
end)

-- promise: docs/postgres.md: over a cursor in the server, so that the loop may send other queries
test("a transaction may send queries while it walks over a large result", function()
    equal(run[[
local one <close> = open{ max = 1 }
assert(one:exec "CREATE TABLE walked (id int)")
print(one:transaction(function(tx)
  local sum, number = 0, 0
  for row in tx:rows("SELECT generate_series(1, $1::int) g, repeat('x', 100) t", 100000) do
    sum, number = sum + row.g, number + 1
    if row.g % 20000 == 0 then
      collectgarbage()
      assert(collectgarbage "count" < 20000)
      assert(tx:query("INSERT INTO walked VALUES ($1)", row.g))
    end
  end
  for row in tx:rows "SELECT generate_series(1, 1000000000) n" do
    if row.n == 15 then break end
  end
  assert(tx:query "SELECT 1")
  for _, cursor in ipairs(tx:query "SELECT name FROM pg_cursors") do assert(not cursor.name:find "sxe", cursor.name) end
  print(pcall(function() for row in tx:rows "VALUES (1), (2)" do error("own", 0) end end))
  local large = 0
  for row in tx:rows "SELECT repeat('x', 1000000) t FROM generate_series(1, 150)" do large = large + #row.t end
  return sum, number, large
end))
print(one:query "SELECT count(*) n FROM walked"[1].n)
print(pcall(one.transaction, one, function(tx) for _ in tx:rows "DELETE FROM walked RETURNING id" do error "reached" end end))
print(one:query "SELECT count(*) n FROM walked"[1].n)
]], tabbed[[
false | own
true | 5000050000 | 100000 | 150000000
5
false | syntax error at or near "DELETE"
5
]])
end)

-- promise: docs/postgres.md: The server commits the queries of a pipeline together, or none of them.
test("the queries of a pipeline are committed together, or none", function()
    equal(run[[
local one <close> = open{ max = 1 }
assert(one:exec [=[CREATE TABLE piped (id int PRIMARY KEY);
CREATE TABLE later (id int REFERENCES piped DEFERRABLE INITIALLY DEFERRED)]=])
local list = assert(one:pipeline()
  :query("INSERT INTO piped VALUES ($1)", 1)
  :query("INSERT INTO piped VALUES ($1)", 2)
  :query("SELECT array_agg(id ORDER BY id) a, $1::text t FROM piped", nil)
  :exec())
print(#list, list[1].command, json.encode(list[3][1].a), list[3][1].t == postgres.null)
local function show(rows, why, code, fields, all)
  print(rows, why, code)
  for i, result in ipairs(all) do print(i, result.command, result.code) end
  print(one:query "SELECT array_to_string(array_agg(id ORDER BY id), ' ') a FROM piped"[1].a)
end
show(one:pipeline():query("INSERT INTO piped VALUES ($1)", 3):query("INSERT INTO piped VALUES ($1)", 1)
  :query("INSERT INTO piped VALUES ($1)", 4):sync():query("INSERT INTO piped VALUES ($1)", 5):exec())
show(one:pipeline():query "INSERT INTO piped VALUES (6)":query "INSERT INTO later VALUES (99)":sync():query "SELECT 1":exec())
print(one:transaction(function(tx)
  assert(tx:pipeline():query("INSERT INTO piped VALUES ($1)", 7):query "SELECT 1":exec())
  print((select(3, tx:transaction(function(inner)
    inner:pipeline():query("INSERT INTO piped VALUES ($1)", 8):query("INSERT INTO piped VALUES ($1)", 1):exec()
  end))))
end))
print((select(3, one:transaction(function(tx) tx:pipeline():query("INSERT INTO piped VALUES ($1)", 9):query "bad":exec() end))))
print(one:query "SELECT array_to_string(array_agg(id ORDER BY id), ' ') a FROM piped"[1].a)
print(one:query "SELECT count(*) n FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO piped VALUES ($1)'"[1].n)
]], tabbed[[
3 | INSERT 0 1 | [1,2] | true
nil | duplicate key value violates unique constraint "piped_pkey" | 23505
1 | INSERT 0 1 | nil
2 | nil | 23505
3 | nil | 25P02
4 | INSERT 0 1 | nil
1 2 5
nil | insert or update on table "later" violates foreign key constraint "later_id_fkey" | 23503
1 | INSERT 0 1 | nil
2 | INSERT 0 1 | nil
3 | SELECT 1 | nil
1 2 5
23505
true | nil
42601
1 2 5 7
1
]])
end)

-- promise: docs/postgres.md: A pipeline that times out, or whose task is cancelled, is cancelled in the server, and its
--   connection is closed.
test("large pipelines, pipelines that are cut off, and those of many tasks have their own results", function()
    equal(run[[
local few <close> = open{ max = 4 }
local large = few:pipeline()
for i = 1, 20000 do large:query("SELECT $1::int i, repeat('x', 1000) t", i) end
for i, rows in ipairs(assert(large:exec())) do assert(rows[1].i == i) end
print((select(2, few:pipeline{ timeout = 0.1 }:query "SELECT 1":query "SELECT pg_sleep(600)":exec())))
while db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"[1].n > 0 do
  task.sleep(0.01)
end
print((select(3, few:pipeline{ bytes_max = 100000 }:query "SELECT repeat('x', 60000)":query "SELECT repeat('x', 60000)":exec())))
local good, tasks = 0, {}
for i = 1, 40 do
  tasks[i] = task.start(function()
    for j = 1, 20 do
      local id, text = i * 1000 + j, "SELECT $1::int AS id, " .. j % 7
      local list, why = few:pipeline{ timeout = math.random(3) == 1 and math.random() / 100 or 60 }
        :query(text, id):sync():query(text, -id):query("SELECT $1::int AS id", id + 1):exec()
      if list then
        assert(list[1][1].id == id and list[2][1].id == -id and list[3][1].id == id + 1)
        good = good + 1
      else
        assert(why == "timeout", why)
      end
    end
  end)
end
for i = 1, 10 do
  task.sleep(0.01)
  tasks[i * 4]:cancel()
end
for _, t in ipairs(tasks) do t:join() end
print(good > 100, few:query "SELECT 7 AS n"[1].n)
]], "timeout\n54000\ntrue\t7\n")
end)

-- promise: docs/postgres.md: If the source returns `nil, why`, as reads of connections do, nothing is copied, and the
-- call returns `nil, why`. Nothing is copied either if the task is cancelled before the source has ended
test("nothing is copied of a source that breaks off", function()
    equal(run[[
local one <close> = open()
assert(one:exec "CREATE TABLE parts (id int PRIMARY KEY)")
local function copy(last)
  local i = 0
  return one:copy_in("COPY parts FROM STDIN", function()
    i = i + 1
    if i <= 3 then return i .. "\n" end
    return last()
  end)
end
print((select(2, copy(function() return nil, "closed" end))))
for _ = 1, 5 do
  print((select(2, task.start(copy, function() task.self():cancel() end):join())))
  print(task.start(copy, function() task.self():cancel() task.sleep(1) end):join() ~= 3)
end
print(copy(function() end), one:query "SELECT count(*) n FROM parts"[1].n)
]], "closed\n" .. ("cancelled\ntrue\n"):rep(5) .. "3\t3\n")
end)

-- promise: docs/postgres.md: If the source raises an error, nothing is copied, and the error is raised.
test("rows are copied in and out", function()
    equal(run[[
local one <close> = open{ max = 1 }
assert(one:exec "CREATE TABLE copies (id int PRIMARY KEY, t text)")
local i = 0
print(one:copy_in("COPY copies FROM STDIN", function()
  i = i + 1
  return i <= 50000 and ("%d\ttext %d\n"):format(i, i) or nil
end))
local number, bytes = 0, 0
for line in one:copy_out "COPY copies TO STDOUT (FORMAT csv)" do
  number, bytes = number + 1, bytes + #line
end
print(number, bytes == one:query "SELECT sum(length(id || ',' || t) + 1) n FROM copies"[1].n)
print((select(3, one:copy_in("COPY copies FROM STDIN", "60000\tx\n1\tagain\n"))), nil)
print(pcall(one.copy_in, one, "COPY copies FROM STDIN", function() error("oops", 0) end))
print(one:transaction(function(tx) return tx:copy_in("COPY copies FROM STDIN", "60000\tx\n"), false end))
for line in one:copy_out "COPY (SELECT generate_series(1, 1000000000)) TO STDOUT" do
  if line == "3\n" then break end
end
print(one:query "SELECT count(*) n FROM copies"[1].n)
]], "50000\n50000\ttrue\n23505\tnil\nfalse\toops\ntrue\t1\tfalse\n50001\n")
end)

-- promise: docs/postgres.md: returns a subscription when the server listens to all channels of the list.
test("notifications arrive in order", function()
    equal(run[[
local sub = assert(db:listen{ "a", 'odd "name"' })
for i = 1, 3 do assert(db:query("SELECT pg_notify($1, $2)", i == 2 and 'odd "name"' or "a", "text " .. i)) end
for i = 1, 3 do
  local message = assert(sub:read())
  print(message.channel, message.payload, math.type(message.pid))
end
print((select(2, sub:read(0.01))))
task.start(function()
  task.sleep(0.01)
  assert(db:query "NOTIFY a, 'last'")
end)
for message in sub:messages() do
  print(message.payload)
  sub:close()
end
local two = assert(db:listen{ "a" })
assert(db:query "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
print((select(3, two:read())))
]], 'a\ttext 1\tinteger\nodd "name"\ttext 2\tinteger\na\ttext 3\tinteger\ntimeout\nlast\n08006\n')
end)

-- promise: docs/postgres.md: a second one is refused, and the server undoes both. Another statement is an error, although the
--   server has executed it.
test("one COPY at a time", function()
    equal(run[[
db:exec "CREATE TABLE copied (a int, b text)"
print(select(2, db:copy_in("COPY copied FROM STDIN; COPY copied FROM STDIN", "8\teight\n")))
print(db:query "SELECT count(*) n FROM copied"[1].n)
print(select(2, db:copy_in("INSERT INTO copied VALUES (99, 'z')", "x")))
print(db:query "SELECT count(*) n FROM copied"[1].n)
print(pcall(function()
  for line in db:copy_out "COPY (SELECT 1) TO STDOUT; COPY (SELECT 2) TO STDOUT" do io.write(line) end
end))
print(db:query "SELECT 5 AS n"[1].n)
]], tabbed[[
postgres: one COPY is expected, not several | 0A000 | nil
0
postgres: COPY FROM STDIN is expected | 0A000 | nil
1
1
false | postgres: one COPY is expected, not several
5
]])
end)

-- promise: docs/postgres.md: A query whose task is cancelled or timed out, or whose result is too large, is cancelled in the server, too.
test("a query that times out, or whose task is cancelled, ends in the server", function()
    equal(run[[
local function running()
  return db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"[1].n
end
local few <close> = open{ max = 2 }
print((select(2, few:query{ "SELECT pg_sleep(600)", timeout = 0.1 })))
local t = task.start(few.query, few, "SELECT pg_sleep(600)")
while running() == 0 do task.sleep(0.01) end
t:cancel()
while running() > 0 do task.sleep(0.01) end
print(few:query "SELECT 1 AS n"[1].n)
print((select(2, few:query{ "SELECT generate_series(1, 100000000)", rows_max = 10 })))
print((select(2, few:query{ "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)", bytes_max = 10000000 })))
t = task.start(few.transaction, few, function(tx) tx:query "CREATE TABLE never (a int)" task.sleep(600) end)
task.sleep(0.1)
t:cancel()
t:join()
while db:query "SELECT count(*) n FROM pg_stat_activity WHERE state LIKE 'idle in%'"[1].n > 0 do task.sleep(0.01) end
print(db:query "SELECT to_regclass('never') c"[1].c == postgres.null)
]], [[
timeout
1
postgres: the result has more than 10 rows: see rows_max
postgres: the result has more than 10000000 bytes: see bytes_max
true
]])
end)

-- promise: docs/postgres.md: A server ignores a request that comes before its process has begun the query, so the thread asks again
test("a query that is cancelled while its connection begins ends in the server", function()
    equal(run[[
for _ = 1, 100 do
  local fresh <close> = open{ max = 1, prepare = false }
  local t = task.start(fresh.query, fresh, "SELECT pg_sleep(600)")
  task.sleep(math.random() * 0.03)
  t:cancel()
  t:join()
end
repeat
  task.sleep(0.01)
until db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"[1].n == 0
print "none"
]], "none\n")
end)

-- promise: docs/postgres.md: A reply never reaches another task than its own.
test("tasks that are cancelled at random never get the rows of others", function()
    equal(run[[
local few <close> = open{ max = 4 }
local good, ended, tasks = 0, 0, {}
for i = 1, 40 do
  tasks[i] = task.start(function()
    for j = 1, 50 do
      local id = i * 1000 + j
      local rows, why = few:query({ "SELECT $1::int AS id", timeout = math.random(3) == 1 and math.random() / 200 or 60 }, id)
      if rows then
        assert(rows[1].id == id and #rows == 1)
        good = good + 1
      else
        assert(why == "timeout", why)
      end
    end
    ended = ended + 1
  end)
end
for i = 1, 10 do
  task.sleep(0.01)
  tasks[i * 4]:cancel()
end
for _, t in ipairs(tasks) do t:join() end
print(good > 500, ended >= 30, few:query "SELECT 7 AS n"[1].n)
]], "true\ttrue\t7\n")
end)

-- promise: docs/postgres.md: A connection that the server closed while it was idle is replaced before anything is sent.
test("kill -9 of the server ends its queries, and after a restart the pool connects again", function()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
local postgres, task = require "sxe.postgres", require "sxe.task"
local db = postgres.new{ host = "127.0.0.1", port = %d, user = "tester", database = "postgres" }
assert(db:query "SELECT 1")
task.start(function()
  print("slow", select(3, db:query "SELECT pg_sleep(600)"))
  while not db:query "SELECT 1" do task.sleep(0.05) end
  print "again"
  os.exit(0)
end)
task.sleep(0.2)
print "ready"
io.stdout:flush()
]]):format(port)}
    httpd.wait_until(function() return is_up() end, "the server is up")
    require "httpd".wait_until(function()
        local active = run[[print(db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"[1].n)]]
        return active == "1\n"
    end, "the query is under way")
    assert(os.execute("kill -9 $(head -1 " .. data .. "/postmaster.pid)"))
    do local _dead <close> = server end
    server = start()
    local output = proc:output(120)
    check(output:find "slow\t08006" or output:find "slow\t57P0", output)
    check(output:find "again", output)
end)

-- promise: docs/postgres.md: A connection that the server closed while it was idle is replaced before anything is sent.
test("after a restart of the server the first query works", function()
    local proc <close> = wire.spawn{wire.program "sxe-lua", "-e", ([[
local postgres, task = require "sxe.postgres", require "sxe.task"
local db = postgres.new{ host = "127.0.0.1", port = %d, user = "tester", database = "postgres", timeout = 60 }
task.parallel({ 1, 2 }, function() assert(db:query "SELECT pg_sleep(0.1)") end) -- two connections
local slow = task.start(function() print("slow", (select(3, db:query "SELECT pg_sleep(600)"))) end)
task.start(function()
  while not io.open "%s/is_again" do task.sleep(0.01) end
  slow:join()
  print("first", assert(db:query "SELECT 2 n")[1].n)
  os.exit(0)
end)
]]):format(port, directory)}
    httpd.wait_until(function()
        return run[[print(db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"[1].n)]] == "1\n"
    end, "the query is under way")
    stop(server)
    server = start()
    write("is_again", "")
    equal(proc:output(120), "slow\t57P01\nfirst\t2\n")
    equal(proc:errors(), "")
end)

test("a process of the server that stands still delays its own query only", function()
    equal(run[[
local one <close> = open{ max = 1 }
local function stop() os.execute("kill -STOP " .. one:query "SELECT pg_backend_pid() p"[1].p) end
local stopped = {}
for _, call in ipairs{
  function() return one:query{ "SELECT 1", timeout = 0.1 } end,
  function() return one:pipeline{ timeout = 0.1 }:query "SELECT 1":exec() end,
  function() return one:copy_in({ "COPY (SELECT 1) TO STDOUT", timeout = 0.1 }, "x") end,
  function() return nil, select(2, pcall(function() for _ in one:rows{ "SELECT 1", timeout = 0.1 } do print "row" end end)) end,
} do
  stopped[#stopped + 1] = one:query "SELECT pg_backend_pid() p"[1].p
  os.execute("kill -STOP " .. stopped[#stopped])
  print((select(2, call())), one:query "SELECT 2 n"[1].n)
end
for _, pid in ipairs(stopped) do os.execute("kill -CONT " .. pid) end
]], ("timeout\t2\n"):rep(4))
end)

stop(server)

-- ---- A full disk ----

-- promise: docs/postgres.md: A full disk of the server is an error like others, with the code `"53100"`
test("a full disk of the server is an error, and the connection is used again", function()
    if not is_root() or not os.execute "unshare --mount true 2>/dev/null" then
        print("skipped: a full disk of PostgreSQL, because only root can mount a small one")
        return
    end
    local small = directory .. "/small"
    assert(os.execute("mkdir " .. small))
    in_front = {"unshare", "--mount", "sh", "-c",
        'mount -t tmpfs -o size=4m,mode=700,uid=$(id -u nobody) none "$0" && exec "$@"', small}
    server = start()
    in_front = {}
    equal(run(([[
local one <close> = open{ max = 1 }
assert(one:exec "CREATE TABLESPACE small LOCATION '%s'")
assert(one:exec "CREATE TABLE filled (id int, t text) TABLESPACE small")
local FILL = "INSERT INTO filled SELECT g, repeat('x', 1000) FROM generate_series(1, $1::int) g"
local pid = one:query "SELECT pg_backend_pid() p"[1].p
assert(one:query(FILL, 100))
local rows, why, code = one:query(FILL, 100000)
print(rows, why:match "No space left on device", code)
print((select(3, one:copy_in("COPY filled FROM STDIN", ("1\t" .. ("x"):rep(1000) .. "\n"):rep(20000)))))
print((select(3, one:pipeline():query "SELECT 1":query(FILL, 100000):query "SELECT 1":exec())))
print((select(3, one:transaction(function(tx) tx:query(FILL, 100000) end))))
print(one:query "SELECT count(*) n FROM filled"[1].n)
assert(one:exec "DROP TABLE filled")
assert(one:exec "CREATE TABLE filled (id int, t text) TABLESPACE small")
print(assert(one:query(FILL, 100)).n, one:query "SELECT pg_backend_pid() p"[1].p == pid)
assert(one:exec "DROP TABLE filled")
assert(one:exec "DROP TABLESPACE small")
]]):format(small)), tabbed[==[
nil | No space left on device | 53100
53100
53100
53100
100
100 | true
]==])
    stop(server)
end)

-- ---- TLS ----

local function owned(name)
    if is_root() then assert(os.execute(("chown nobody %s/%s"):format(directory, name))) end
end

-- promise: docs/postgres.md: With `tls = true` the server's certificate must be signed by an authority of the system, and be for the host.
test("TLS verifies the server", function()
    local made = wire.has "openssl" and os.execute("cd " .. directory .. " && openssl req -x509 -newkey ec -pkeyopt " ..
        "ec_paramgen_curve:P-256 -nodes -keyout key -out cert -subj /CN=a.example -days 9 -addext " ..
        "subjectAltName=IP:127.0.0.1 >/dev/null 2>&1 && chmod 644 cert && chmod 600 key")
    if not made then
        print("skipped: TLS to PostgreSQL, because the openssl command is not installed")
        return
    end
    owned "key"
    server = start("-c", "ssl=on", "-c", "ssl_cert_file=" .. directory .. "/cert", "-c", "ssl_key_file=" .. directory .. "/key")
    equal(run(([[
local CERT = "%s/cert"
local function try(options)
  local one <close> = open(options)
  local rows, why, code = one:query "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
  print(rows and rows[1].ssl, code, why and (why:match "certificate verify failed" or why:match "does not match"))
end
try{ host = "127.0.0.1", tls = { ca = CERT } }
try{ host = "127.0.0.1", tls = true }
try{ host = "127.0.0.1", tls = { insecure = true } }
try{ host = "127.0.0.1", tls = false }
try{ host = "localhost", tls = { ca = CERT } }
local long <close> = open{ host = "127.0.0.1", tls = { ca = CERT }, max = 2 }
local text = ("x"):rep(3000000)
print(long:query("SELECT $1::text t", text)[1].t == text)
for _, rows in ipairs(assert(long:pipeline():query("SELECT $1::text t", text):query("SELECT $1::text t", text):exec())) do
  assert(rows[1].t == text)
end
assert(long:transaction(function(tx) for row in tx:rows("SELECT repeat('x', 1000) t FROM generate_series(1, 5000)") do
  assert(#row.t == 1000)
end end))
print((select(2, long:query{ "SELECT pg_sleep(600)", timeout = 0.1 })))
print(long:query "SELECT 1 n"[1].n)
]]):format(directory)), "true\tnil\tnil\nnil\t08001\tcertificate verify failed\ntrue\tnil\tnil\nfalse\tnil\tnil\n" ..
    "nil\t08001\tdoes not match\ntrue\ntimeout\n1\n")
    stop(server)
end)

-- ---- pgbouncer ----

-- Run a script that has PostgreSQL, and pgbouncer at the port FRONT.
local function run_in_front(text)
    server = start()
    local front = wire.free_port()
    write("users", '"tester" ""\n')
    write("bouncer.ini", ([[
[databases]
postgres = host=127.0.0.1 port=%d dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s/users
pool_mode = transaction
default_pool_size = 2
]]):format(port, front, directory))
    local bouncer <close> = wire.spawn(command(wire.has "pgbouncer", directory .. "/bouncer.ini"))
    httpd.wait_until(function() return (pcall(wire.connect, "127.0.0.1", front)) end, "pgbouncer listens")
    local output = run(("local FRONT = %d\n"):format(front) .. text)
    stop(server)
    return output
end

-- promise: docs/postgres.md: In transaction mode each statement may go to another connection of the server, so set
-- `prepare = false`
test("with pgbouncer in transaction mode, without prepared statements", function()
    if not wire.has "pgbouncer" then
        print("skipped: pgbouncer, because it is not installed")
        return
    end
    equal(run_in_front[[
local front <close> = open{ host = "127.0.0.1", port = FRONT, prepare = false, max = 8 }
assert(front:exec "CREATE TABLE b (id int)")
local list = {}
for i = 1, 50 do list[i] = i end
task.parallel(list, function(i)
  assert(front:query("SELECT $1::int AS i", i)[1].i == i)
  assert(front:transaction(function(tx)
    assert(tx:query("INSERT INTO b VALUES ($1)", i))
    assert(tx:query "SELECT pg_backend_pid() p"[1].p == tx:query "SELECT pg_backend_pid() p"[1].p)
  end))
end)
print(front:query "SELECT count(*) n FROM b"[1].n)
print((select(2, front:query{ "SELECT pg_sleep(600)", timeout = 0.1 })))
while db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"[1].n > 0 do
  task.sleep(0.01)
end
print(front:query "SELECT 1 n"[1].n)
]], "50\ntimeout\n1\n")
end)

-- promise: docs/postgres.md: Transactions and pipelines need no change
test("with pgbouncer in transaction mode, pipelines", function()
    if not wire.has "pgbouncer" then
        print("skipped: pipelines and pgbouncer, because it is not installed")
        return
    end
    equal(run_in_front[[
local front <close> = open{ host = "127.0.0.1", port = FRONT, prepare = false, max = 8 }
assert(front:exec "CREATE TABLE piped_in_front (id int PRIMARY KEY)")
local list = {}
for i = 1, 100 do list[i] = i end
task.parallel(list, function(i)
  local all = assert(front:pipeline()
    :query("INSERT INTO piped_in_front VALUES ($1) RETURNING id", i):query("SELECT $1::int AS i, pg_backend_pid() p", i)
    :query "SELECT pg_backend_pid() p":sync()
    :query("SELECT $1::int AS i", -i):sync():query("SELECT id FROM piped_in_front WHERE id = $1", i):exec())
  assert(all[1][1].id == i and all[2][1].i == i and all[2][1].p == all[3][1].p and all[4][1].i == -i and all[5][1].id == i)
  local code = select(3, front:pipeline():query("INSERT INTO piped_in_front VALUES ($1)", -i)
    :query("INSERT INTO piped_in_front VALUES ($1)", i):exec())
  assert(code == "23505", code)
  assert(front:transaction(function(tx)
    for row in tx:rows("SELECT generate_series(1, $1::int) g", 30) do
      if row.g == 20 then assert(tx:pipeline():query "SELECT 1":query "SELECT 2":exec()) end
    end
  end))
end)
print(front:query "SELECT count(*) n FROM piped_in_front"[1].n)
print((select(2, front:pipeline{ timeout = 0.1 }:query "SELECT 1":query "SELECT pg_sleep(600)":exec())))
while db:query "SELECT count(*) n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' AND pid <> pg_backend_pid()"[1].n > 0 do
  task.sleep(0.01)
end
print(front:query "SELECT 1 n"[1].n)
]], "100\ntimeout\n1\n")
end)

-- promise: docs/postgres.md: queries sometimes fail with the code 26000, but no query runs the text of another
test("with pgbouncer in transaction mode, prepared statements may fail, and none is another", function()
    if not wire.has "pgbouncer" then
        print("skipped: prepared statements and pgbouncer, because it is not installed")
        return
    end
    equal(run_in_front[[
local front <close> = open{ host = "127.0.0.1", port = FRONT, max = 8 }
task.parallel({ 1, 2, 3, 4, 5, 6, 7, 8 }, function(i)
  for n = 1, 40 do
    local rows, why, code = front:query("SELECT " .. n % 5 .. " + $1::int AS n", i * 1000 + n)
    if rows then assert(rows[1].n == i * 1000 + n + n % 5) else assert(code == "26000", why) end
  end
end)
print "done"
]], "done\n")
end)

os.execute("rm -rf " .. directory)
