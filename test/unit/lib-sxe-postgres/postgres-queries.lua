-- SPDX-License-Identifier: MIT
-- For test-postgres-module.c: queries of sxe.postgres to a server that postgres-server.lua plays, their values, options,
-- statements and transactions.
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local json, postgres, task = require "sxe.json", require "sxe.postgres", require "sxe.task"
local equal, fails, one = P.equal, P.fails, P.one

local function open(server, options)
  options = options or {}
  options.host, options.port = options.host or "127.0.0.1", server.tcp.port
  options.user = options.user or "tester"
  return postgres.new(options)
end

local function with(answers, options, fn)
  local server = P.serving(answers)
  local db <close> = open(server, options)

  fn(db, server)
  server.tcp:close()
end

-- A query that is sent at once, if a connection rests, and then times out.
local function slow(db)
  return db:query{ "slow", timeout = 0.01, prepare = false }
end

local function wait_for(fn)
  while not fn() do task.sleep(0.001) end
end

-- ---- Values ----

local TYPES <const> = {
  -- type, text, JSON of the value
  { 16, "t", "true" }, { 16, "f", "false" }, { 20, "9007199254740993", "9007199254740993" }, { 23, "-5", "-5" },
  { 21, "", '""' }, { 23, "5x", '"5x"' }, { 26, "7", "7" }, { 25, "text", '"text"' }, { 1700, "1.50", '"1.50"' },
  { 700, "0.5", "0.5" }, { 701, "x", '"x"' }, { 17, "\\x6162", '"ab"' }, { 17, "a\\\\b", '"a\\\\b"' },
  { 114, '{"a": [1, null]}', '{"a":[1,null]}' }, { 3802, "nul", '"nul"' }, { 1007, "{}", "[]" },
  { 1007, "{1,NULL,3}", "[1,null,3]" }, { 1007, "[0:1]={1,2}", "[1,2]" }, { 1007, "{{1},{2}}", "[[1],[2]]" },
  { 1009, [[{"a \"b\\",NULL,"NULL",null,c}]], [=[["a \"b\\",null,"NULL",null,"c"]]=] }, { 1000, "{t,f}", "[true,false]" },
  { 1001, [[{"\\x00"}]], [=[["\u0000"]]=] }, { 3807, '{"[1]"}', "[[1]]" }, { 1231, "{1.5}", '["1.5"]' },
  { 1007, "{1", '"{1"' }, { 1007, "1", '"1"' }, { 1007, "[1", '"[1"' }, { 1007, "{1}x", '"{1}x"' }, { 1007, "{1,}", '"{1,}"' },
  { 1007, "{1,", '"{1,"' }, { 1009, '{"a', [["{\"a"]] }, { 1009, '{"a\\', [["{\"a\\"]] }, { 1007, "{1{2}}", '"{1{2}}"' },
  { 1007, "{,1}", '"{,1}"' }, { 1007, "{{{{{{{1}}}}}}}", '"{{{{{{{1}}}}}}}"' }, { 1007, "", '""' }, { 1007, "{", '"{"' },
}

local function values_have_types()
  local row = {}
  local columns = {}

  for i, case in ipairs(TYPES) do columns[i], row[i] = { "c" .. i, case[1] }, case[2] end
  with({ types = { columns = columns, rows = { row } } }, { arrays = true }, function(db)
    local rows = assert(db:query "types")

    for i, case in ipairs(TYPES) do
      local text = assert(json.encode(rows[1][i]))
      if text ~= case[3] then error(("type %d, %s: %s, not %s"):format(case[1], case[2], text, case[3])) end
    end
  end)
  with({ floats = { columns = { { "a", 701 }, { "b", 701 }, { "c", 701 }, { "d", 700 } },
    rows = { { "NaN", "Infinity", "-Infinity", "1" }, { "-0", "-0.5", "-1e-400", "0" } } } }, {}, function(db)
    local row_ = assert(db:query "floats")[1]

    equal(row_.a ~= row_.a and row_.b == math.huge and row_.c == -math.huge, true)
    equal(math.type(row_.d), "float")
    row_ = assert(db:query "floats")[2]
    equal(("%a %a %a %a"):format(row_.a, row_.b, row_.c, row_.d), "-0x0p+0 -0x1p-1 -0x0p+0 0x0p+0")
  end)
end

local function values_are_sent()
  local got
  with({ echo = function(values) got = values return one "x" end }, {}, function(db)
    local text = "it's \\ $1"
    assert(db:query("echo", 1, -2.5, 0.1, 1 / 3, text, true, false, nil, postgres.null, 0 / 0, nil))
    equal(got[1] .. got[2] .. got[3], "1-2.50.1")
    equal(tonumber(got[4]), 1 / 3)
    equal(got[5] .. got[6] .. got[7], text .. "truefalse")
    equal(got[8] == nil and got[9] == nil and got[11] == nil, true)
    equal(got[10], "NaN")
    assert(db:query("echo", postgres.bytea "\0a", postgres.json{ a = 1 }, postgres.array{ 1, 0.5, "a\"b", true, postgres.null, { } }))
    equal(got[1], "\\x0061")
    equal(got[2], '{"a":1}')
    equal(got[3], [[{1,0.5,"a\"b",true,NULL,{}}]])
    assert(db:query("echo", postgres.array{ nil, 2, n = 2 }))
    equal(got[1], "{NULL,2}")
    fails("value 1 has a zero byte", pcall(db.query, db, "echo", "a\0"))
    fails("value 2 is a table", pcall(db.query, db, "echo", 1, {}))
    fails("value 1 is of a type", pcall(db.query, db, "echo", print))
    fails("at most 65535", pcall(db.query, db, "echo", table.unpack({}, 1, 65536)))
    fails("zero byte", pcall(db.query, db, "ec\0ho"))
    for _, query in ipairs{ table.pack("ec\0ho"), table.pack("echo", table.unpack({}, 1, 65536)) } do
      local _, why = pcall(db.query, db, table.unpack(query, 1, query.n))
      equal(why:find "^postgres: ", 1) -- and no line of the library
    end
    -- A client that may send a list decides the field n.
    local holes = { n = 6000 }
    equal(#postgres.array(holes), 6000 * 5 + 1)
    for _, list in ipairs{ { n = 1000000000 }, { n = math.maxinteger }, { holes, holes } } do
      fails("more than 10000 items are nil", pcall(postgres.array, list))
    end
    fails("n must be a whole number, not x", pcall(postgres.array, { n = "x" }))
    fails("n must be a whole number, not 0.5", pcall(postgres.array, { n = 0.5 }))
    fails("a string is expected", pcall(postgres.bytea, 1))
    fails("Cannot serialise", pcall(postgres.json, print))
    fails("a list is expected", pcall(postgres.array, 1))
    fails("item 1 is a function", pcall(postgres.array, { print }))
    fails("deeper than 6", pcall(postgres.array, { { { { { { { } } } } } } }))
    fails("a query is a string", pcall(db.query, db))
  end)
end

local function results_have_names()
  with({
    two = { columns = { { "id", 23 }, { "name", 25 } }, rows = { { "1", "Ann" }, { "2", nil } } },
    none = { columns = { { "id", 23 } }, rows = {} }, insert = { tag = "INSERT 0 3" }, create = { tag = "CREATE TABLE" },
    [""] = { raw = P.message("I", "") }, lists = { { tag = "SET" }, one "1", one "2" },
  }, {}, function(db)
    local rows = assert(db:query "two")

    equal(json.encode(rows.columns), '["id","name"]')
    equal(rows.n .. rows.command .. #rows, "2SELECT 22")
    equal(rows[1].name .. rows[1].id, "Ann1")
    equal(rows[2].name, postgres.null)
    equal(json.encode(assert(db:query{ "two", arrays = true })), '[[1,"Ann"],[2,null]]')
    equal(json.encode(assert(db:query "none")), "[]")
    equal(assert(db:query "insert").n, 3)
    equal(assert(db:query "create").n, 0)
    equal(assert(db:query "").n, 0)
    equal(db:exec "lists", true)
  end)
end

-- ---- Errors ----

local function errors_are_told()
  with({
    bad = { error = { C = "23505", M = "duplicate key", D = "Key (id)=(1)", n = "t_pkey", t = "t" } },
    copy = { raw = P.message("G", "\0\0\0") },
    gone = function() end, nothing = { raw = "" }, ended = function(_, session)
      session.conn:write(P.error_message{ C = "57P01", M = "terminating", S = "FATAL", V = "FATAL" })
      session.conn:close()
      return P.MUTE
    end, rubbish = { raw = "\255\255\255\255\255" },
  }, {}, function(db, server)
    local ok, why, code, fields = db:query "bad"

    equal(ok, nil)
    equal(why .. code, "duplicate key23505")
    equal(fields.detail .. fields.constraint .. fields.table .. fields.severity, "Key (id)=(1)t_pkeytERROR")
    fails("duplicate key", db:exec "bad")
    equal(server.connections, 1)
    ok, why, code = db:query "copy"
    equal(ok, nil)
    equal(code, "0A000")
    fails("COPY", nil, why)
    ok, why, code = db:query "gone"
    fails("server closed the connection unexpectedly", ok, why)
    equal(code, "08006")
    fails("the server sent no result", db:query "nothing")
    ok, why, code, fields = db:query "ended"
    equal(ok, nil)
    equal(why .. code .. fields.severity, "terminating57P01FATAL")
    fails("server", db:query "rubbish")
  end)
end

local function limits_are_kept()
  with({ three = { columns = { { "a", 25 } }, rows = { { "aa" }, { "bb" }, { "cc" } } }, slow = function() return P.MUTE end },
    { rows_max = 3, bytes_max = 6 }, function(db, server)
    equal(#assert(db:query "three"), 3)
    fails("more than 2 rows: see rows_max", db:query{ "three", rows_max = 2 })
    equal(select(3, db:query{ "three", bytes_max = 5 }), "54000")
    equal(#assert(db:query "three"), 3)
    fails("timeout", slow(db))
    while server.count "cancel" == 0 do task.sleep(0.001) end
    equal(#assert(db:query "three"), 3)
  end)
end

-- ---- Options ----

local function options_are_checked()
  for why, options in pairs{
    ["there is no option 'hsot'"] = { hsot = "a" }, ["host must be a string, not a number"] = { host = 1 },
    ["max must be a whole number from 1 to 1000, not 0"] = { max = 0 },
    ["port must be a whole number from 1 to 65535, not 1.5"] = { port = 1.5 },
    ["timeout must be more than 0 seconds"] = { timeout = 0 }, ["user has a zero byte"] = { user = "a\0" },
    ["tls has no option 'x'"] = { tls = { x = 1 } }, ["tls: there is no option 'alpn'"] = { tls = { alpn = "a" } },
    ["tls: cert and key go together"] = { tls = { cert = "a" } }, ["conninfo: invalid"] = { conninfo = "nothing=1" },
    ["conninfo: connect_timeout is not a number: soon"] = { conninfo = "connect_timeout=soon" },
  } do
    fails(why, pcall(postgres.new, options))
  end
  fails("a connection string is expected", pcall(postgres.new))
  fails("conninfo", pcall(postgres.new, "postgres://[::1/"))
  with({ a = one "1" }, {}, function(db)
    fails("there is no option 'size'", pcall(db.query, db, { "a", size = 1 }))
    fails("arrays must be a boolean", pcall(db.query, db, { "a", arrays = 1 }))
    fails("rows_max must be a whole number", pcall(db.query, db, { "a", rows_max = 0.5 }))
    fails("a transaction is a function", pcall(db.transaction, db))
    fails("no option 'x'", pcall(db.transaction, db, print, { x = 1 }))
    fails("isolation must be", pcall(db.transaction, db, print, { isolation = "x" }))
    fails("retries must be", pcall(db.transaction, db, print, { retries = -1 }))
  end)
end

local function servers_are_found()
  with({ a = one "1" }, {}, function(_, server)
    local port = server.tcp.port

    for _, options in ipairs{
      "host=127.0.0.1 user=tester port=" .. port, ("postgres://tester@localhost:%d/base"):format(port),
      { conninfo = ("host=127.0.0.1 port=%d"):format(port), user = "tester", application_name = "app" },
      { conninfo = "hostaddr=127.0.0.1", port = port, user = "tester" },
      { conninfo = ("host=127.0.0.1,localhost port=1,%d user=tester"):format(port), tls = false },
      { host = "127.0.0.1", port = port, user = "tester", tls = false, password = "p", database = "base" },
    } do
      local db <close> = postgres.new(options)
      equal(assert(db:query "a")[1].a, "1")
      equal(server.sessions[server.connections].startup.user, "tester")
    end
    for _, tls in ipairs{ true, { insecure = true }, { ca = "/none", name = "other" } } do
      local db <close> = postgres.new{ host = "127.0.0.1", port = port, user = "tester", tls = tls }
      local ok, _, code = db:query "a"
      equal(ok, nil)
      equal(code, "08001")
    end
    local db <close> = postgres.new{ host = "127.0.0.1", port = 1, user = "a" }
    fails("refused", db:query "a")
    local nowhere <close> = postgres.new{ host = "no.such.name.invalid", user = "a" }
    fails("no.such.name.invalid", nowhere:query "a")
    local path <close> = postgres.new{ host = "/tmp/none", user = "a" }
    fails("/tmp/none", path:query "a")
    server.refuses = { C = "28P01", M = "wrong password" }
    local refused <close> = postgres.new{ host = "127.0.0.1", port = port, user = "a" }
    fails("wrong password", refused:query "a")
  end)
end

local function connecting_has_an_end()
  with({ a = one "1" }, { connect_timeout = 0.01 }, function(db, server)
    server.is_silent = true
    fails("timeout", db:query "a")
    local text = "host=127.0.0.1 user=u sslmode=disable port=" .. server.tcp.port .. " connect_timeout="
    local short <close> = postgres.new(text .. "0.01")
    fails("timeout", short:query "a")
    local shorter <close> = postgres.new{ conninfo = text .. "0", connect_timeout = 0.01 }
    fails("timeout", shorter:query "a")
    local other <close> = postgres.new(text .. "0") -- no end
    local t = task.start(other.query, other, { "a" })
    wait_for(function() return server.connections == 4 end)
    other:close()
    fails("closed", t:join())
    fails("closed", other:query "a")
  end)
end

-- ---- Statements ----

local function statements_are_kept()
  with({ a = one "1", b = one "2", c = one "3" }, { statements = 2 }, function(db, server)
    for _, sql in ipairs{ "a", "b", "a", "a", "c", "a", "b" } do assert(db:query(sql)) end
    equal(server.count "prepare a", 1)
    equal(server.count "prepare b", 2)
    equal(server.count "DEALLOCATE", 2)
    assert(db:query{ "c", prepare = false })
    equal(server.count "DEALLOCATE", 2)
    for name in pairs(server.sessions[1].statements) do
      server.answers["DEALLOCATE " .. name] = { error = { C = "25P02", M = "no" } }
    end
    fails("no", db:query "c")
    for name in pairs(server.sessions[1].statements) do server.answers["DEALLOCATE " .. name] = nil end
    -- After DISCARD ALL there is nothing to make room for. In a transaction it is an error.
    server.sessions[1].statements = {}
    equal(assert(db:query "c")[1].a, "3")
    server.sessions[1].statements = {}
    fails("no such statement", db:transaction(function(tx) fails("no such statement", tx:query "a") end))
    equal(assert(db:query "a")[1].a, "1")
    assert(db:query "c")
  end)
  -- Connections that share one of the server do not give one name to two texts.
  with({ a = one "1" }, { max = 2 }, function(db, server)
    assert(db:transaction(function(tx)
      math.randomseed(1)
      assert(tx:query "a")
      math.randomseed(1)
      assert(db:query "a")
    end))
    local first, second = next(server.sessions[1].statements), next(server.sessions[2].statements)
    equal(first ~= second and #first == #second and #first > 32, true)
  end)
  with({ a = one "1" }, { prepare = false }, function(db, server)
    for _ = 1, 3 do assert(db:query "a") end
    equal(server.count "prepare a", 3)
    equal(server.sessions[1].statements[""], "a")
  end)
end

local function stale_statements_are_prepared_again()
  local is_stale
  local stale = { error = { C = "0A000", M = "cached plan must not change result type", R = "RevalidateCachedQuery" } }
  with({
    a = function() if is_stale then is_stale = false return stale end return one "1" end,
    b = function() return stale end, no = { error = { C = "0A000", M = "not supported" } },
  }, {}, function(db, server)
    assert(db:query "a")
    server.sessions[1].statements = {} -- DISCARD ALL
    equal(assert(db:query "a")[1].a, "1")
    equal(server.count "prepare a", 2)
    is_stale = true
    equal(assert(db:query "a")[1].a, "1")
    equal(server.count "prepare a", 3)
    equal(server.count "DEALLOCATE", 1)
    fails("cached plan", db:query "b")
    equal(server.count "prepare b", 2)
    fails("not supported", db:query "no")
    equal(server.count "prepare no", 1)
    -- Parameters that the server is told to log are a context, too.
    stale.error.W = "unnamed portal with parameters: $1 = '1'"
    is_stale = true
    fails("cached plan", db:query "a")
    equal(assert(db:query "a")[1].a, "1")
    equal(server.count "prepare a", 4)
    stale.error.W = nil
    is_stale = true
    fails("cached plan", db:transaction(function(tx) tx:query "a" end))
    equal(assert(db:query "a")[1].a, "1")
    server.refused = function(sql) return sql == "c" and { C = "42601", M = "syntax" } end
    fails("syntax", db:query "c")
  end)
end

-- A function or procedure may fail with the codes of a forgotten statement, perhaps after it has committed.
local function statements_that_ran_are_not_sent_again()
  local runs, error_ = 0, nil
  local function run()
    runs = runs + 1
    return { error = error_ }
  end
  with({ pay = run }, {}, function(db, server)
    local function fails_once(fields)
      error_, runs, server.log = fields, 0, {}
      fails("boom", db:query "pay")
      equal(runs, 1)
      return server.count "prepare pay"
    end
    equal(fails_once{ C = "26000", M = "boom", R = "exec_stmt_raise", W = "PL/pgSQL function" }, 1)
    equal(fails_once{ C = "26000", M = "boom", R = "FetchPreparedStatement", W = "SQL statement" }, 0)
    equal(fails_once{ C = "0A000", M = "boom", R = "RevalidateCachedQuery", W = "SQL statement" }, 0)
    equal(fails_once{ C = "26000", M = "boom", R = "FetchPreparedStatement" }, 1)
    equal(fails_once{ C = "26000", M = "boom" }, 1)
    equal(fails_once{ C = "42601", M = "boom" }, 1)
    -- A server or pooler that says it in words of its own: an error, and the next time it is prepared.
    server.forgets = { C = "26000", M = "unknown" }
    server.sessions[1].statements = {}
    fails("unknown", db:query "pay")
    equal(fails_once{ C = "42601", M = "boom" }, 1)
  end)
end

-- ---- Transactions ----

-- What follows COMMIT or ROLLBACK would be in no transaction.
local function queries_may_end_the_transaction()
  with({ a = one "1", bad = { error = { C = "42601", M = "bad" } } }, {}, function(db, server)
    for _, command in ipairs{ "COMMIT", "ROLLBACK" } do
      local ok, why, code = db:transaction(function(tx)
        assert(tx:exec(command))
        server.log = {}
        fails("ended the transaction", tx:query "a")
        fails("ended the transaction", tx:exec "a")
        fails("ended the transaction", tx:copy_in("a", "x"))
        equal(#server.log, 0)
        return 1
      end)
      fails("postgres: a query of the function ended the transaction", ok, why)
      equal(code, "25P01")
      equal(select(3, db:transaction(function(tx) tx:query(command) end)), "25P01")
      equal(select(3, db:transaction(function(tx) fails("bad", tx:query "bad") tx:exec(command) end)), "42601")
    end
    equal(server.connections, 1)
  end)
end

-- The connection is in a transaction, but not in the one that db:transaction began.
local function queries_may_begin_another_transaction()
  local answers = { a = one "1", ["COMMIT AND CHAIN"] = { tag = "COMMIT" }, ["rollback and chain"] = { tag = "ROLLBACK" },
    ["rollback to s"] = { tag = "ROLLBACK" }, ["START TRANSACTION"] = { tag = "START TRANSACTION" } }

  with(answers, {}, function(db, server)
    for _, command in ipairs{ "COMMIT AND CHAIN", "rollback and chain", "BEGIN", "START TRANSACTION" } do
      local ok, why, code = db:transaction(function(tx)
        assert(tx:query(command))
        fails("ended the transaction", tx:query "a")
        return 1
      end)
      fails("postgres: a query of the function ended the transaction", ok, why)
      equal(code, "25P01")
      equal(select(3, db:transaction(function(tx)
        tx:transaction(function(inner) assert(inner:exec(command)) end)
        fails("ended the transaction", tx:query "a")
      end)), "25P01")
      equal(select(2, pcall(db.transaction, db, function(tx) tx:exec(command) error("own", 0) end)), "own")
      equal(db:query("a")[1].a, "1")
    end
    equal(select(2, assert(db:transaction(function(tx)
      assert(tx:exec "rollback to s")
      return tx:query("a")[1].a
    end))), "1")
    equal(server.connections, 1)
  end)
end

-- A coroutine that is dropped gives its connection back.
local function coroutines_may_be_dropped()
  local data = P.message("H", "\0\0\0") .. P.message("d", "1\n") .. P.message("d", "2\n")
  with({
    a = one "1", ["COPY in"] = { copy_in = function() return { tag = "COPY 1" } end },
    ["COPY out"] = { raw = data .. P.message("c", "") .. P.message("C", "COPY 2\0") },
  }, { max = 1 }, function(db)
    for _, fn in ipairs{
      function() db:transaction(function(tx) tx:query "a" coroutine.yield "here" end) end,
      function() db:transaction(function(tx) tx:transaction(function() coroutine.yield "here" end) end) end,
      function() db:copy_in("COPY in", function() coroutine.yield "here" end) end,
      function() for _ in db:rows "a" do coroutine.yield "here" end end,
      function() for _ in db:copy_out "COPY out" do coroutine.yield "here" end end,
    } do
      local step = coroutine.wrap(fn)
      equal(step(), "here")
      local t = task.start(db.query, db, "a") -- waits in line
      step = nil
      collectgarbage()
      collectgarbage()
      equal(t:join()[1].a, "1")
    end
  end)
end

-- A task that waits for the connection of such a coroutine has garbage collected.
local function waiting_for_a_dropped_coroutine_collects_it()
  with({ a = one "1" }, { max = 1, timeout = 20 }, function(db)
    local step = coroutine.wrap(function() db:transaction(function(tx) tx:query "a" coroutine.yield "here" end) end)

    equal(step(), "here")
    step = nil
    collectgarbage "stop"
    equal(db:query("a")[1].a, "1")
    collectgarbage "restart"
    db:transaction(function() equal(select(2, db:query{ "a", timeout = 1.5 }), "timeout") end)
  end)
end

local function transactions_end()
  local log
  with({ a = one "1", bad = { error = { C = "42601", M = "bad" } } }, {}, function(db, server)
    local function did(wanted)
      equal(table.concat(server.log, " "):gsub("prepare %w+ ", ""), wanted)
      server.log = {}
    end
    log = { db:transaction(function(tx) return tx:query("a")[1].a, nil, 3 end) }
    equal(log[1] == true and log[2] .. log[4], "13")
    did "BEGIN a COMMIT"
    fails("wrong", pcall(db.transaction, db, function(tx) tx:query "a" error("wrong", 0) end))
    did "BEGIN a ROLLBACK"
    fails("gave the transaction up", db:transaction(function() return false end,
      { isolation = "serializable", read_only = true, deferrable = true }))
    did "BEGIN ISOLATION LEVEL serializable READ ONLY DEFERRABLE ROLLBACK"
    local ok, why, code, fields = db:transaction(function(tx) tx:query "bad" tx:exec "bad" end)
    equal(ok, nil)
    equal(why .. code .. fields.sqlstate, "bad4260142601")
    server.log = {}
    local kept
    assert(db:transaction(function(tx)
      kept = tx
      equal(tx:exec "a", true)
      assert(tx:transaction(function(inner) assert(inner:query "a") end))
      fails("bad", tx:transaction(function(inner) inner:query "bad" end))
      fails("no", pcall(tx.transaction, tx, function() error "no" end))
      fails("is a function", pcall(tx.transaction, tx))
    end))
    did("BEGIN a SAVEPOINT sxe1 a RELEASE sxe1 SAVEPOINT sxe1 bad ROLLBACK TO sxe1; RELEASE sxe1 SAVEPOINT sxe1 " ..
      "ROLLBACK TO sxe1; RELEASE sxe1 COMMIT")
    fails("the transaction is over", pcall(kept.query, kept, "a"))
    equal(server.connections, 1)
  end)
end

local function transactions_fail()
  local tries = 0
  with({
    a = one "1", gone = function() end, slow = function() return P.MUTE end,
    conflict = function() tries = tries + 1 return tries < 3 and { error = { C = "40001", M = "conflict" } } or one "2" end,
    always = { error = { C = "40P01", M = "deadlock" } },
  }, {}, function(db, server)
    equal(select(2, db:transaction(function(tx) return assert(tx:query "conflict")[1].a end, { retries = 5 })), "2")
    equal(tries, 3)
    fails("deadlock", db:transaction(function(tx) assert(tx:transaction(function(t) assert(t:query "always") end)) end,
      { retries = 1 }))
    equal(server.count "BEGIN", 5)
    fails("server closed", db:transaction(function(tx) assert(not tx:query "gone") end))
    fails("no connection", pcall(db.transaction, db, function(tx) tx:query "gone" assert(tx:query "a") end))
    fails("timeout", db:transaction(function(tx) fails("timeout", tx:query{ "slow", timeout = 0.01 }) end))
    db:transaction(function(tx)
      local t = task.start(tx.query, tx, "slow")
      task.sleep(0.01)
      fails("another task waits", tx:query "a")
      t:cancel()
      t:join()
    end)
    server.answers.COMMIT = function() end
    local ok, why, code = db:transaction(function(tx) tx:query "a" end)
    fails("whether the transaction was committed is not known", ok, why)
    equal(code, "08007")
    server.answers.COMMIT = { error = { C = "23503", M = "deferred" } }
    fails("deferred", db:transaction(function() end))
    server.answers.BEGIN = { error = { C = "57P03", M = "not now" } }
    fails("not now", db:transaction(print))
    server.answers.BEGIN = nil
    server.answers["SAVEPOINT sxe1"] = { error = { C = "XX000", M = "no savepoint" } }
    fails("no savepoint", db:transaction(function(tx) fails("no savepoint", tx:transaction(print)) end))
  end)
end

-- ---- Pools ----

local function tasks_share_connections()
  local gate
  with({ a = one "1", wait = function() gate:wait() return one "w" end }, { max = 2, waiters = 2 }, function(db, server)
    local tasks = {}

    gate = task.event()
    for i = 1, 4 do tasks[i] = task.start(db.query, db, "wait") end
    task.sleep(0.01)
    local ok, why, code = db:query "a"
    fails("too many tasks wait", ok, why)
    equal(code, "53300")
    tasks[3]:cancel()
    tasks[3]:join()
    fails("timeout", db:query{ "a", timeout = 0.001 })
    gate:set()
    equal(tasks[1]:join()[1].a, "w")
    equal(tasks[2]:join()[1].a, "w")
    equal(tasks[4]:join()[1].a, "w")
    equal(server.connections, 2)
    -- The first in line opens a connection in place of one that ended.
    gate:clear()
    server.answers.gone = function() gate:wait() end
    for i = 1, 2 do tasks[i] = task.start(db.query, db, "gone") end
    tasks[3] = task.start(db.query, db, "a")
    task.sleep(0.01)
    gate:set()
    equal(tasks[3]:join()[1].a, "1")
    fails("server closed", tasks[1]:join())
    -- Tasks that wait are told of the end.
    gate:clear()
    for i = 1, 3 do tasks[i] = task.start(db.query, db, "wait") end
    task.sleep(0.01)
    db:close()
    for i = 1, 3 do fails("closed", tasks[i]:join()) end
    gate:set()
  end)
end

local function resting_connections_end()
  with({ a = one "1" }, {}, function(db, server)
    assert(db:query "a")
    server.sessions[1].conn:write(P.message("S", "TimeZone\0UTC\0") .. P.message("A", "\0\0\0\1ch\0text\0"))
    task.sleep(0.001)
    assert(db:query "a")
    equal(server.connections, 1)
    server.sessions[1].conn:close() -- the loop sees it, or the query does
    task.sleep(0.001)
    assert(db:query "a")
    equal(server.connections, 2)
    -- More than a resting connection is looked at for.
    server.sessions[2].conn:write(P.message("S", "TimeZone\0" .. ("x"):rep(9000) .. "\0"):rep(40))
    task.sleep(0.001)
    assert(db:query "a")
    server.sessions[server.connections].conn:close()
    assert(db:query "a")
  end)
  with({ a = one "1" }, { idle_timeout = 0.001 }, function(db, server)
    assert(db:query "a")
    wait_for(function() return server.sessions[1].is_over end)
    assert(db:query "a")
    equal(server.connections, 2)
  end)
end

local function cancelled_tasks_leave_nothing()
  with({ a = one "1", slow = function() return P.MUTE end }, { max = 1 }, function(db, server)
    local t = task.start(db.query, db, "slow")
    wait_for(function() return server.log[2] == "slow" end)
    t:cancel()
    equal(assert(db:query "a")[1].a, "1")
    wait_for(function() return server.count "cancel" == 1 end)
    local is_in
    t = task.start(function() db:transaction(function(tx) tx:query "a" is_in = true task.sleep(1000) end) end)
    wait_for(function() return is_in end)
    t:cancel()
    equal(assert(db:query "a")[1].a, "1")
    equal(server.count "COMMIT", 0)
  end)
end

-- ---- Rows and notifications ----

local function rows_come_in_portions()
  local many = { columns = { { "a", 23 } }, rows = {} }
  for i = 1, 250 do many.rows[i] = { tostring(i) } end
  local large = { columns = { { "a", 25 } }, rows = { { ("x"):rep(70000) }, { "y" } } }
  with({
    many = many, large = large, none = { columns = many.columns }, bad = { error = { C = "42601", M = "bad" } },
    late = { raw = P.message("T", "\0\1a\0\0\0\0\0\0\0\0\0\0\23\0\4\0\0\0\0\0\0")
      .. P.message("D", "\0\1\0\0\0\0011"):rep(150) .. P.error_message{ C = "22012", M = "division" } },
  }, { max = 1 }, function(db)
    local sum, number = 0, 0

    for row in db:rows "many" do sum = sum + row.a end
    equal(sum, 250 * 251 // 2)
    for row in db:rows{ "many", arrays = true, prepare = false } do
      number = number + row[1]
      if row[1] == 3 then break end
    end
    equal(number, 6)
    for row in db:rows "large" do number = number + #row.a end
    equal(number, 6 + 70001)
    for _ in db:rows "none" do number = 0 end
    fails("bad", pcall(function() for _ in db:rows "bad" do number = 1 end end))
    number = 0
    fails("division", pcall(function()
      for _ in db:rows{ "late", prepare = false } do number = number + 1 end
    end))
    equal(number, 100)
    fails("closed", pcall(function()
      for _ in db:rows "many" do db:close() end
    end))
    fails("closed", pcall(db:rows "many", select(2, db:rows "many")))
    for _, state in ipairs{ 1, "text", {}, setmetatable({}, {}) } do
      fails("call the iterator of rows or copy_out in `for`", pcall((db:rows "many"), state))
      fails("call the iterator of rows or copy_out in `for`", pcall((db:copy_out "COPY out"), state))
    end
    fails("call the iterator of rows or copy_out in `for`", pcall((db:rows "many")))
  end)
end

local copied = P.message("d", "1\n") .. P.message("d", "2\n")
local copy_out = P.message("H", "\0\0\0") .. copied .. P.message("c", "") .. P.message("C", "COPY 2\0")

local function data_is_copied_in()
  local copies = 0
  with({
    ["COPY counted"] = { copy_in = function()
      copies = copies + 1
      return { tag = "COPY " .. copies }
    end },
    ["COPY in"] = { copy_in = function(bytes) return { tag = "COPY " .. #bytes } end },
    ["COPY bad"] = { copy_in = function() return { error = { C = "22P02", M = "bad line" } } end },
    ["COPY early"] = { raw = P.message("G", "\0\0\0") .. P.error_message{ C = "22P02", M = "early" } },
    ["COPY cut"] = function(_, session)
      session.conn:write(P.message("G", "\0\0\0"))
      session.conn:close()
      return P.MUTE
    end,
    ["COPY out"] = { raw = copy_out },
    a = one "1",
  }, { max = 1 }, function(db, server)
    local function source(chunks)
      local i = 0
      return function() i = i + 1 return chunks[i] end
    end
    equal(db:copy_in("COPY in", source{ "abc", "", "d" }), 4)
    equal(db:copy_in("COPY in", "ab"), 2)
    equal(db:copy_in("COPY in", source{ ("x"):rep(16 << 20) }), 16 << 20) -- more than sockets hold
    equal(select(2, db:transaction(function(tx) return tx:copy_in("COPY in", "abc") end)), 3)
    fails("bad line", db:transaction(function(tx) fails("bad line", tx:copy_in("COPY bad", "abc")) end))
    fails("bad line", db:copy_in("COPY bad", "abc"))
    fails("no such query", db:copy_in("COPY none", "abc"))
    fails("early", db:copy_in("COPY early", source{ "a", "b" }))
    fails("oops", pcall(db.copy_in, db, "COPY in", function() error("oops", 0) end))
    fails("gives strings", pcall(db.copy_in, db, "COPY in", source{ 1 }))
    fails("a source is a function", pcall(db.copy_in, db, "COPY in"))
    fails("FROM STDIN is expected", db:copy_in("a", "x"))
    equal(server.connections, 1)
    fails("oops", db:copy_in("COPY counted", function() return nil, "oops" end))
    fails("cancelled", task.start(function()
      return db:copy_in("COPY counted", function() task.self():cancel() end)
    end):join())
    equal(db:copy_in("COPY counted", function() end), 1)
    local other <close> = open(server)
    fails("closed", other:copy_in("COPY in", function() other:close() return "x" end))
    fails("FROM STDIN is expected", db:copy_in("COPY out", "x"))
    fails("server closed", db:copy_in("COPY cut", function() task.sleep(0.001) return "x" end))
    assert(db:query "a")
  end)
end

local function a_server_that_does_not_read_copies_nothing_in()
  local stuck = 0
  with({ ["COPY stuck"] = function(_, session)
    session.conn:write(P.message("G", "\0\0\0"))
    stuck = stuck + 1
    task.sleep(1000)
  end }, {}, function(db)
    local function endless() return ("x"):rep(1 << 20) end
    fails("timeout", db:copy_in({ "COPY stuck", timeout = 0.1 }, endless))
    local t = task.start(db.copy_in, db, "COPY stuck", endless)
    wait_for(function() return stuck == 2 end)
    db:close()
    fails("closed", t:join())
  end)
end

local function data_is_copied_out()
  with({
    ["COPY out"] = { raw = copy_out },
    ["COPY twice"] = { raw = copy_out .. P.message("H", "\0\0\0") },
    ["COPY late"] = { raw = P.message("H", "\0\0\0") .. copied .. P.error_message{ C = "22P02", M = "late" } },
    ["COPY half"] = function(_, session)
      session.conn:write(P.message("H", "\0\0\0") .. copied)
      if session.is_cut then session.conn:close() end
      return P.MUTE
    end,
    a = one "1",
  }, { max = 1 }, function(db, server)
    local rows = {}
    for row in db:copy_out "COPY out" do rows[#rows + 1] = row end
    equal(table.concat(rows), "1\n2\n")
    fails("TO STDOUT is expected", pcall(function() for _ in db:copy_out "a" do rows = {} end end))
    fails("late", pcall(function() for row in db:copy_out "COPY late" do rows[#rows + 1] = row end end))
    equal(#rows, 4)
    fails("one COPY is expected", pcall(function() for row in db:copy_out "COPY twice" do rows[#rows + 1] = row end end))
    equal(#rows, 6)
    for _ in db:copy_out "COPY half" do break end
    local timeout, came = 0.01, false
    repeat -- on a busy machine a short timeout is over before the first row comes
      fails("timeout", pcall(function() for _ in db:copy_out{ "COPY half", timeout = timeout } do came = true end end))
      timeout = 2 * timeout
    until came
    assert(db:query "a")
    for _, session in pairs(server.sessions) do session.is_cut = true end -- the query, and cancels
    fails("server closed", pcall(function() for _ in db:copy_out "COPY half" do rows = {} end end))
    fails("closed", pcall(function() for _ in db:copy_out "COPY half" do db:close() end end))
    fails("closed", pcall(db:copy_out "COPY half", select(2, db:copy_out "COPY half")))
  end)
end

local function notifications_are_read()
  local function note(channel, text)
    return P.message("A", "\0\0\0\7" .. channel .. "\0" .. text .. "\0")
  end
  with({ ['LISTEN "a"; LISTEN "b""c"'] = { { tag = "LISTEN" }, { tag = "LISTEN" } } }, { max = 1 }, function(db, server)
    fails("list of channels", pcall(db.listen, db))
    fails("a channel is a string", pcall(db.listen, db, { "" }))
    fails("no such query", db:listen{ "x" })
    local sub = assert(db:listen{ "a", 'b"c' })
    local session = server.sessions[1]
    session.conn:write(note("a", "one") .. note('b"c', ""))
    local message = assert(sub:read())
    equal(message.channel .. message.payload .. message.pid, "aone7")
    equal(assert(sub:read(60)).channel, 'b"c')
    fails("timeout", sub:read(0.001))
    local t = task.start(sub.read, sub)
    task.sleep(0)
    fails("another task reads", sub:read())
    session.conn:write(note("a", "two"))
    equal(t:join().payload, "two")
    session.conn:write(note("a", "three"))
    for got in sub:messages() do
      equal(got.payload, "three")
      session.conn:close()
      break
    end
    fails("server closed the connection", pcall(sub:messages()))
    fails("server closed the connection", sub:read())
    sub:close()
    sub = assert(db:listen{ "a", 'b"c' })
    t = task.start(sub.read, sub)
    task.sleep(0)
    sub:close()
    fails("closed", t:join())
    fails("closed", sub:read())
    equal(sub:messages()(), nil)
    equal(server.connections, 2)
  end)
end

-- Bytes of the server come one by one; a large query leaves in parts.
local function bytes_may_be_cut()
  local got
  with({ a = one("12", 23), long = function(values) got = values[1] return one(values[1]) end }, {}, function(db, server)
    function server.write(conn, bytes)
      if #bytes > 2000 then return conn:write(bytes) end
      for i = 1, #bytes do
        conn:write(bytes:sub(i, i))
        task.sleep(0)
      end
    end
    equal(assert(db:query "a")[1].a, 12)
    local text = ("0123456789"):rep(400000)
    equal(#assert(db:query("long", text))[1].a, #text)
    equal(got, text)
  end)
end

P.run{ values_have_types, values_are_sent, results_have_names, errors_are_told, limits_are_kept, options_are_checked,
  servers_are_found, connecting_has_an_end, statements_are_kept, stale_statements_are_prepared_again,
  statements_that_ran_are_not_sent_again, queries_may_end_the_transaction, queries_may_begin_another_transaction,
  coroutines_may_be_dropped, waiting_for_a_dropped_coroutine_collects_it, transactions_end,
  transactions_fail, tasks_share_connections, resting_connections_end, cancelled_tasks_leave_nothing,
  rows_come_in_portions, data_is_copied_in, a_server_that_does_not_read_copies_nothing_in, data_is_copied_out,
  notifications_are_read, bytes_may_be_cut }
