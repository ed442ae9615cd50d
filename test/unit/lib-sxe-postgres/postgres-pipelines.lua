-- SPDX-License-Identifier: MIT
-- For test-postgres-module.c: pipelines, and the rows of cursors in a transaction, with a server that
-- postgres-server.lua plays.
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local json, postgres, task = require "sxe.json", require "sxe.postgres", require "sxe.task"
local equal, fails, one = P.equal, P.fails, P.one

local function open(server, options)
  options = options or {}
  options.host, options.port, options.user = "127.0.0.1", server.tcp.port, "tester"
  options.max, options.tls = options.max or 1, false
  return postgres.new(options)
end

local function with(answers, options, fn)
  local server = P.serving(answers)
  local db <close> = open(server, options)

  fn(db, server)
  server.tcp:close()
end

local function wait_for(fn)
  while not fn() do task.sleep(0.001) end
end

-- The results of a pipeline in one text: the first values, or the codes of errors.
local function brief(list)
  local texts = {}

  for i, result in ipairs(list) do
    texts[i] = result.error and (result.code or result.error) or result[1] and result[1].a or result.command
  end
  return table.concat(texts, " ")
end

local function echo(values) return one(values[1] or "null") end

local ANSWERS <const> = { a = one "1", b = one "2", echo = echo, bad = { error = { C = "42601", M = "bad", D = "detail" } } }

-- ---- Results ----

local function results_come_in_order()
  with(ANSWERS, {}, function(db, server)
    local pipeline = db:pipeline()

    equal(#assert(pipeline:exec()) .. server.connections, "00")
    equal(#assert(pipeline:sync():exec()) .. server.connections, "00")
    equal(brief(assert(pipeline:query "a":query("echo", 5, nil):query "b":exec())), "1 5 2")
    equal(server.log[1] .. server.log[2] .. server.log[3], "prepare aaprepare echo")
    server.log = {}
    equal(brief(assert(pipeline:query "b":query("echo", nil):sync():sync():query("echo", 0.5):exec())), "2 null 0.5")
    equal(table.concat(server.log, " "), "b echo echo")
    equal(json.encode(assert(db:pipeline{ arrays = true, prepare = false }:query "a":exec())), '[[["1"]]]')
    equal(db:query "a"[1].a .. server.connections, "11")
    pipeline = db:pipeline()
    for i = 1, 3000 do pipeline:query("echo", i) end
    local list = assert(pipeline:exec())
    for i = 1, 3000 do equal(list[i][1].a, tostring(i)) end
    local first = task.start(function() return pipeline:query("echo", 1):exec() end)
    equal(brief(assert(pipeline:query("echo", 2):exec())) .. brief(assert(first:join())), "21")
  end)
end

local function mistakes_are_raised_before_anything_is_sent()
  with(ANSWERS, {}, function(db, server)
    local pipeline = db:pipeline()

    fails("value 2 is a table", pcall(pipeline.query, pipeline, "a", 1, {}))
    fails("value 1 has a zero byte", pcall(pipeline.query, pipeline, "a", "\0"))
    fails("at most 65535", pcall(pipeline.query, pipeline, "a", table.unpack({}, 1, 65536)))
    fails("a query is a string, not a table", pcall(pipeline.query, pipeline, { "a" }))
    fails("zero byte", pcall(pipeline.query, pipeline, "a\0"))
    fails("there is no option 'x'", pcall(db.pipeline, db, { x = 1 }))
    fails("a table, not a string", pcall(db.pipeline, db, "a"))
    equal(#assert(pipeline:exec()) .. server.connections, "00")
  end)
end

-- ---- Errors ----

local function an_error_aborts_its_group()
  with(ANSWERS, {}, function(db, server)
    for _, prepare in ipairs{ false, true } do
      local ok, why, code, fields, list = db:pipeline{ prepare = prepare }:query "a":query "bad":query "b":query "bad":sync()
        :query "b":exec()

      equal(ok, nil)
      equal(why .. code .. fields.detail, "bad42601detail")
      equal(brief(list), "1 42601 25P02 25P02 2")
      equal(list[2].error .. list[2].fields.detail, "baddetail")
      fails("not executed, because an earlier query", nil, list[3].error)
      equal(list[3].fields, nil)
      equal(db:query "a"[1].a .. server.connections, "11")
    end
    -- A text that cannot be prepared; one that can be is kept, although its group failed.
    server.refused = function(sql) return sql == "no" and { C = "42601", M = "syntax" } end
    server.log = {}
    local list = select(5, db:pipeline():query("echo", 1):query "no":query "b":sync():query "no":query "a":exec())
    equal(brief(list), "1 42601 25P02 42601 25P02")
    equal(brief(assert(db:pipeline():query("echo", 2):query "b":exec())), "2 2")
    equal(server.count "prepare echo", 1)
    -- A group that cannot be committed.
    server.commit = function() server.commit = nil return P.error_message{ C = "23503", M = "deferred" } end
    local _, why, code, _, all = db:pipeline():query "a":sync():query "b":exec()
    equal(why .. code .. brief(all), "deferred235031 2")
    equal(db:query "a"[1].a .. server.connections, "11")
  end)
end

local function statements_are_used_again()
  with(ANSWERS, { statements = 2 }, function(db, server)
    equal(brief(assert(db:pipeline():query "a":query "b":query("echo", 3):query("echo", 4):exec())), "1 2 3 4")
    equal(server.count "prepare", 4) -- two by name, and echo twice without
    server.log = {}
    -- The oldest one that the pipeline does not use makes room.
    equal(brief(assert(db:pipeline():query "a":query("echo", 3):query("echo", 4):sync():query("echo", 5):exec())), "1 3 4 5")
    equal(server.count "prepare" .. server.count "DEALLOCATE", "21") -- in the second group without a name
    server.log = {}
    equal(brief(assert(db:pipeline():query("echo", 3):query "a":query "b":exec())), "3 1 2")
    equal(server.count "prepare" .. server.count "DEALLOCATE", "10")
    -- A new text of two groups has a name in the first one only: the server may not have prepared it.
    server.log = {}
    equal(brief(assert(db:pipeline():query "b":query "b":sync():query "b":exec())), "2 2 2")
    equal(server.count "prepare b" .. server.count "DEALLOCATE", "21")
    -- The server forgot it: an error, and the next time it is prepared.
    server.sessions[1].statements = {}
    equal((select(3, db:pipeline():query "b":exec())), "26000")
    equal(brief(assert(db:pipeline():query "b":exec())), "2")
    for name in pairs(server.sessions[1].statements) do
      server.answers["DEALLOCATE " .. name] = { error = { C = "25P02", M = "no" } }
    end
    fails("no", db:pipeline():query "x":query "y":exec())
  end)
end

local function stale_statements_are_prepared_again()
  local is_stale = true
  with({ a = function()
    return is_stale and { error = { C = "0A000", M = "cached plan", R = "RevalidateCachedQuery" } } or one "1"
  end }, {}, function(db, server)
    equal((select(3, db:pipeline():query "a":exec())), "0A000")
    is_stale = false
    equal(brief(assert(db:pipeline():query "a":exec())), "1")
    equal(server.count "prepare a" .. server.count "DEALLOCATE", "21")
    is_stale = true
    equal((select(3, db:pipeline():query "a":exec())), "0A000")
    for name in pairs(server.sessions[1].statements) do
      server.answers["DEALLOCATE " .. name] = { error = { C = "25P02", M = "no" } }
    end
    fails("no", db:pipeline():query "a":exec())
  end)
end

-- ---- Ends ----

local function limits_are_kept()
  with({ a = one "123456", many = { columns = { { "a", 25 } }, rows = { { "x" }, { "y" }, { "z" } } }, b = one "2" }, {},
    function(db)
    local _, why, code, _, list = db:pipeline{ bytes_max = 12 }:query "a":query "a":query "a":query "b":exec()

    fails("more than 12 bytes", nil, why)
    equal(code .. brief(list), "54000123456 123456 54000 54000")
    fails("more than 2 rows", db:pipeline{ rows_max = 2 }:query "many":exec())
    equal(brief(assert(db:pipeline{ bytes_max = 12 }:query "a":query "a":exec())), "123456 123456")
  end)
end

local function pipelines_end_with_their_task()
  with({ a = one "1", slow = function() return P.MUTE end }, {}, function(db, server)
    assert(db:query "a") -- so that the time is not over before there is a connection
    local ok, why, code, _, list = db:pipeline{ timeout = 0.01 }:query "a":sync():query "slow":query "a":exec()

    equal(ok, nil)
    equal(why, "timeout")
    equal(code, nil)
    equal(#list, 3)
    equal(list[3].error, "timeout")
    server.log = {}
    local t = task.start(function() return db:pipeline():query "a":query "slow":exec() end)
    wait_for(function() return server.count "slow" == 2 end)
    t:cancel()
    equal(brief(assert(db:pipeline():query "a":exec())), "1")
    wait_for(function() return server.count "cancel" > 0 end)
    t = task.start(function() return db:pipeline():query "slow":exec() end)
    wait_for(function() return server.count "slow" == 4 end)
    fails("timeout", db:pipeline{ timeout = 0.001 }:query "a":exec()) -- no connection is free
    db:close()
    fails("closed", t:join())
    fails("closed", db:pipeline():query "a":exec())
  end)
end

-- The replies of a server that ends, or that sends too many or too few, are not believed.
local function wrong_replies_end_the_connection()
  local early = P.message("C", "SELECT 0\0") .. P.message("Z", "I")
  with({
    a = one "1", gone = function() end, early = { raw = early }, none = { raw = "" }, copy = { raw = P.message("G", "\0\0\0") },
    twice = { raw = P.message("C", "SET\0") .. P.message("C", "SET\0") }, rubbish = { raw = "\255\255\255\255\255" },
  }, {}, function(db, server)
    for query, wanted in pairs{ gone = "08006", early = "08P01", copy = "0A000", rubbish = "08006" } do
      local ok, _, code, _, list = db:pipeline():query "a":query(query):query "a":sync():query "a":exec()

      equal(ok, nil)
      equal(code, wanted)
      equal(#list, 4)
      equal(list[4].code, wanted)
      equal(brief(assert(db:pipeline():query "a":exec())), "1")
    end
    for _, query in ipairs{ "none", "twice" } do
      db:pipeline():query "a":query(query):exec()
      equal(brief(assert(db:pipeline():query "a":query "a":exec())), "1 1")
    end
    -- Two errors in place of the end of a group.
    local two = P.error_message{ C = "XX000", M = "one" }
    server.commit = function() server.commit = nil return two .. two end
    equal((select(3, db:pipeline():query "a":exec())), "XX000")
    equal(brief(assert(db:pipeline():query "a":exec())), "1")
  end)
end

-- The server's bytes end after the first, the second ...: no result is another's, and the next pipeline works.
local function replies_may_be_cut()
  local left
  with({ echo = echo }, { prepare = false }, function(db, server)
    function server.write(conn, bytes)
      if not left then return conn:write(bytes) end
      if #bytes <= left then
        left = left - #bytes
        return conn:write(bytes)
      end
      conn:write(bytes:sub(1, left))
      conn:close()
    end
    local at, list = 0, nil
    repeat
      assert(db:query("echo", 0))
      left = at
      local ok, why, code, _, all = db:pipeline():query("echo", 1):query("echo", 2):sync():query("echo", 3):exec()
      left, list = nil, ok
      equal(ok and "08006" or code, "08006")
      for i, result in ipairs(list or all) do equal(result.error and why or result[1].a, result.error or tostring(i)) end
      at = at + 1
    until list
    equal(at > 150, true)
  end)
end

-- The server's bytes come one by one, and long values leave in parts.
local function bytes_may_come_one_by_one()
  with({ a = one "1", long = function(values) return one(tostring(#values[1])) end }, {}, function(db, server)
    function server.write(conn, bytes)
      for i = 1, #bytes do
        conn:write(bytes:sub(i, i))
        task.sleep(0)
      end
    end
    local text = ("0123456789"):rep(100000)
    local pipeline = db:pipeline():query "a":query("long", text):query("long", text .. text):sync():query "a"
    equal(brief(assert(pipeline:exec())), "1 1000000 2000000 1")
  end)
end

-- ---- Transactions ----

local function pipelines_are_in_transactions()
  with({ a = one "1", bad = ANSWERS.bad, slow = function() return P.MUTE end }, {}, function(db, server)
    local kept
    equal(select(2, assert(db:transaction(function(tx)
      kept = tx:pipeline():query "a"
      return brief(assert(tx:pipeline():query "a":query "a":exec()))
    end))), "1 1")
    fails("the transaction is over", pcall(kept.exec, kept))
    local ok, why, code, fields = db:transaction(function(tx)
      local list = select(5, tx:pipeline():query "a":query "bad":query "a":exec())
      equal(brief(list), "1 42601 25P02")
      return 1
    end)
    equal(ok, nil)
    equal(why .. code .. fields.detail, "bad42601detail")
    assert(db:transaction(function(tx)
      fails("bad", tx:transaction(function(inner) inner:pipeline():query "bad":exec() end))
      assert(tx:pipeline():query "a":exec())
    end))
    -- After a pipeline that ended the transaction nothing is sent.
    server.log = {}
    equal((select(3, db:transaction(function(tx)
      tx:pipeline():query "COMMIT":query "a":exec()
      fails("ended the transaction", tx:pipeline():query "a":exec())
    end))), "25P01")
    equal(server.count "COMMIT", 2) -- prepared and executed
    db:transaction(function(tx)
      local t = task.start(function() return tx:pipeline():query "a":query "slow":exec() end)
      wait_for(function() return server.count "slow" > 1 end)
      fails("another task waits", tx:query "a")
      fails("another task waits", tx:pipeline():query "a":exec())
      t:cancel()
      t:join()
    end)
    equal(brief(assert(db:pipeline():query "a":exec())), "1")
  end)
end

-- ---- Rows of cursors ----

-- A server with cursors: each has the numbers from 1 to a value, as text of a size.
local function cursors(size)
  local answers, open_ones = { a = one "1", bad = ANSWERS.bad }, {}

  local function fetch(name, number)
    local rows, at = {}, open_ones[name]
    if not at then return { error = { C = "34000", M = "no cursor" } } end
    while #rows < number and at.at < at.last do
      at.at = at.at + 1
      rows[#rows + 1] = { ("0"):rep(size - #tostring(at.at)) .. at.at }
    end
    return { columns = { { "a", 25 } }, rows = rows, tag = "FETCH " .. #rows }
  end
  return setmetatable(answers, { __index = function(_, sql)
    local name, number = sql:match "^DECLARE (%w+_%w+) NO SCROLL CURSOR FOR numbers$", nil
    if name then
      return function(values)
        open_ones[name] = { at = 0, last = tonumber(values[1]) }
        return { tag = "DECLARE CURSOR" }
      end
    end
    number, name = sql:match "^FETCH (%d+) FROM (.*)$"
    if name then return function() return fetch(name, tonumber(number)) end end
    if sql:find "^CLOSE" then
      for one_ in sql:gmatch "CLOSE ([^;]+)" do open_ones[one_] = nil end
      return { tag = "CLOSE CURSOR" }
    end
    if sql:find "^DECLARE" then return { error = { C = "42601", M = "no query" } } end
  end }), open_ones
end

local function rows_come_from_cursors()
  local answers, open_ones = cursors(4)
  with(answers, {}, function(db, server)
    assert(db:transaction(function(tx)
      local sum = 0
      for row in tx:rows("numbers", 250) do
        sum = sum + row.a
        if row.a % 100 == 0 then equal(assert(tx:query "a")[1].a, "1") end -- queries may come between
      end
      equal(sum, 250 * 251 // 2)
      equal(server.count "FETCH 10 " .. server.count "FETCH 40 " .. server.count "FETCH 100 ", "113")
      equal(next(open_ones), "sxe_rows1")
      for row in tx:rows({ "numbers", arrays = true }, 30) do
        if row[1] == "0003" then break end
      end
      for _ in tx:rows("numbers", 0) do sum = 0 end
      equal(sum, 250 * 251 // 2)
      assert(tx:query "a")
      equal(next(open_ones), nil)
      -- Statements of a savepoint that is kept belong to the transaction; after an undone savepoint its own are gone.
      assert(tx:transaction(function(inner) for _ in inner:rows("numbers", 3) do break end end))
      fails("gave", tx:transaction(function(inner)
        for _ in inner:rows("numbers", 3) do break end
        return false
      end))
      server.log = {}
      assert(tx:query "a")
      equal(server.log[1], "CLOSE sxe_rows4")
      fails("value 1 is a table", pcall(tx.rows, tx, "a", {}))
    end))
    equal(server.connections, 1)
  end)
end

-- Few rows are fetched if they are large.
local function large_rows_come_in_small_portions()
  with(cursors(20000), {}, function(db, server)
    assert(db:transaction(function(tx)
      local number = 0
      for row in tx:rows("numbers", 20) do number = number + #row.a end
      equal(number, 20 * 20000)
    end))
    equal(server.count "FETCH 3 ", 4)
  end)
  with(cursors(200000), {}, function(db, server)
    assert(db:transaction(function(tx) for _ in tx:rows("numbers", 12) do end end))
    equal(server.count "FETCH 1 ", 3)
  end)
end

local function cursors_fail()
  local answers = cursors(4)
  with(answers, {}, function(db, server)
    local ok, why, code = db:transaction(function(tx)
      fails("no query", pcall(function() for _ in tx:rows "x" do end end))
      return 1
    end)
    equal(ok, nil)
    equal(why .. code, "no query42601")
    -- An error raised in the loop undoes the transaction; the connection is used again.
    fails("own", pcall(db.transaction, db, function(tx) for _ in tx:rows("numbers", 30) do error("own", 0) end end))
    fails("bad", db:transaction(function(tx)
      for _ in tx:rows("numbers", 30) do fails("bad", tx:query "bad") break end
      fails("bad", tx:query "bad")
    end))
    fails("no cursor", pcall(db.transaction, db, function(tx)
      for _ in tx:rows("numbers", 30) do tx:exec "CLOSE sxe_rows4" end
    end))
    local kept, loop
    db:transaction(function(tx) kept, loop = tx:rows("numbers", 3) end)
    fails("the transaction is over", pcall(kept, loop))
    fails("call the iterator of rows or copy_out in `for`", pcall(kept))
    -- The cursors cannot be closed.
    fails("cannot", db:transaction(function(tx)
      for _ in tx:rows("numbers", 3) do break end
      answers["CLOSE sxe_rows5"] = { error = { C = "34000", M = "cannot" } }
      fails("cannot", tx:query "a")
    end))
    equal(server.connections, 1)
    equal(db:query "a"[1].a, "1")
    local t = task.start(db.transaction, db, function(tx) for _ in tx:rows("numbers", 3) do task.sleep(1000) end end)
    wait_for(function() return server.count "FETCH 10 FROM sxe_rows6" > 0 end)
    t:cancel()
    t:join()
    equal(db:query "a"[1].a, "1")
    equal(server.count "COMMIT", 1)
  end)
end

P.run{ results_come_in_order, mistakes_are_raised_before_anything_is_sent, an_error_aborts_its_group,
  statements_are_used_again, stale_statements_are_prepared_again, limits_are_kept, pipelines_end_with_their_task,
  wrong_replies_end_the_connection, replies_may_be_cut, bytes_may_come_one_by_one, pipelines_are_in_transactions,
  rows_come_from_cursors, large_rows_come_in_small_portions, cursors_fail }
