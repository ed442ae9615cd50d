-- SPDX-License-Identifier: MIT
-- For test-postgres-module.c: replies that are cut off, that stop, that come late, or that are wrong. Each call has its own
-- result or an error, and the pool works afterwards.
local P = dofile "test/unit/lib-sxe-postgres/postgres-server.lua"
local postgres, task = require "sxe.postgres", require "sxe.task"
local equal, one = P.equal, P.one

local COPIED <const> = P.message("H", "\0\0\0") .. P.message("d", "1\n") .. P.message("d", "2\n") .. P.message("c", "")
  .. P.message("C", "COPY 2\0")
local ANSWERS <const> = {
  echo = function(values) return one(values[1]) end, ["COPY out"] = { raw = COPIED },
  ["COPY in"] = { copy_in = function(bytes) return { tag = "COPY " .. #bytes } end },
}

local function open(server, options)
  options.host, options.port, options.user, options.max, options.tls = "127.0.0.1", server.tcp.port, "u", 1, false
  return postgres.new(options)
end

-- The result of a loop, whose errors are raised.
local function caught(fn)
  local ok, got = pcall(fn)

  return { ok and got, got, raised = not ok }
end

-- Each kind of call: returns { the id as a text }; or { nil, why, code }.
local CALLS <const> = {
  query = function(db, id)
    local rows, why, code = db:query("echo", id)
    return { rows and rows[1].a, why, code }
  end,
  text = function(db, id)
    local rows, why, code = db:query({ "echo", prepare = false }, id)
    return { rows and rows[1].a, why, code }
  end,
  pipeline = function(db, id)
    local list, why, code = db:pipeline():query("echo", 0):sync():query("echo", id):exec()
    return { list and list[2][1].a, why, code }
  end,
  transaction = function(db, id)
    local got
    local ok, why, code = db:transaction(function(tx)
      local rows = tx:query("echo", id)
      got = rows and rows[1].a
    end)
    return { ok and got, why, code }
  end,
  rows = function(db, id)
    return caught(function()
      local got
      for row in db:rows("echo", id) do got = row.a end
      return got
    end)
  end,
  copy_out = function(db, id)
    return caught(function()
      local number = 0
      for _ in db:copy_out "COPY out" do number = number + 1 end
      return number == 2 and tostring(id)
    end)
  end,
  copy_in = function(db, id)
    local number, why, code = db:copy_in("COPY in", "abc")
    return { number == 3 and tostring(id), why, code }
  end,
}

-- Make each call with a server that damages its bytes after the first, the second ... of a connection, or after every
-- step-th: damage(conn, rest) writes what is left of a message. check(got, why, code, id) looks at the result of the call;
-- the next query of the pool must be right.
local function sweep(step, timeout, damage, check)
  task.parallel({ "query", "text", "pipeline", "transaction", "rows", "copy_out", "copy_in" }, function(name)
    local server, left, has_damaged = P.serving(ANSWERS), nil, nil
    local id = 0

    function server.write(conn, bytes)
      if has_damaged == conn then return end
      if left and left < #bytes then
        conn:write(bytes:sub(1, left))
        has_damaged = damage(conn, bytes:sub(left + 1)) or true
        left = nil
      else
        conn:write(bytes)
        left = left and left - #bytes
      end
    end
    repeat
      local db <close> = open(server, { timeout = timeout })
      left, has_damaged = id, nil
      local result = CALLS[name](db, id)
      check(result, id, has_damaged)
      left = nil
      equal(assert(db:query({ "echo", timeout = 60 }, -1))[1].a, "-1")
      id = id + step
    until not has_damaged and result[1] -- without a result the machine was too busy for the timeout
    equal(id > 90, true)
    server.tcp:close()
  end)
end

local STEP <const> = os.getenv "SXE_SWEEP" == "thin" and 7 or 1
local CODES <const> = { ["08001"] = true, ["08006"] = true, ["08007"] = true }

local function replies_may_be_cut()
  sweep(STEP, 60, function(conn) conn:close() end, function(result, id, has_damaged)
    if result[1] then return equal(result[1], tostring(id)) end
    equal(has_damaged, true)
    equal(type(result[2]), "string")
    if not result.raised then equal(CODES[result[3]], true) end
  end)
end

-- The server sends no more; a busy machine may be late, too.
local function replies_may_stop()
  sweep(3 * STEP, 0.02, function(conn) return conn end, function(result, id)
    if result[1] then return equal(result[1], tostring(id)) end
    equal(result[3] == "08007" or result[2] == "timeout", true)
  end)
end

-- One byte is another one. A wrong value cannot be seen, but each call ends, and the next query is right.
local function replies_may_be_wrong()
  sweep(3 * STEP, 0.02, function(conn, rest)
    conn:write(string.char(rest:byte() ~ 128) .. rest:sub(2))
  end, function() end)
end

-- ---- Late ----

-- A reply that comes after the timeout, or after the task was cancelled, is no reply to the next query.
local function replies_may_be_late()
  local gate, number = task.event(), 0
  local server = P.serving{ echo = ANSWERS.echo, late = function(values)
    number = number + 1
    gate:wait()
    return one(values[1])
  end }
  local db <close> = open(server, {})

  for id = 1, 20 do
    local before = number
    gate:clear()
    assert(db:query("echo", 0))
    local t = task.start(function()
      if id % 2 == 0 then return db:pipeline{ prepare = false }:query("late", id):query("late", id):exec() end
      return db:query({ "late", prepare = false, timeout = id % 4 == 1 and 0.01 or 60 }, id)
    end)
    while number == before do task.sleep(0.001) end
    if id % 4 ~= 1 then t:cancel() end
    gate:set()
    equal(assert(db:query("echo", -id))[1].a, tostring(-id))
    t:join()
  end
end

P.run{ replies_may_be_cut, replies_may_stop, replies_may_be_wrong, replies_may_be_late }
