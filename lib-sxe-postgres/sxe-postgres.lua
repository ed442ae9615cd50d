-- SPDX-License-Identifier: MIT
--
-- require "sxe.postgres": pools of connections to PostgreSQL, queries and transactions. The functions of c, in
-- sxe-postgres.c, connect, send and receive; this file says which task has which connection, and returns the module and
-- json.decode.
--
-- A link is a connection, and belongs to one holder, which its task closes. A holder that finds no link waits in the
-- pool's line; the first one in the line gets the link of the next holder that closes:
--
--   guard_of -> take: a link that rests, or a new one, or wait in line -> send, receive -> holder closes:
--     is the connection clean (no reply missing, no transaction)? the first in line has it, or it rests
--     otherwise it is closed, and the first in line opens another
--
-- A task may end at any place: cancelled, by its limit of CPU time, or without memory. An atomic function is one step
-- for other tasks. One that insists may be cut off once, and then runs again: so each of its steps can be repeated. The
-- field link.holder alone says whose a link is.
local c = ...
local encoding, json, stats, task = require "sxe.encoding", require "sxe.json", require "sxe.stats", require "sxe.task"
local atomic, insist = c.atomic, c.insist
local concat, pack, unpack = table.concat, table.pack, table.unpack
local find, format, gmatch, gsub, lower, match = string.find, string.format, string.gmatch, string.gsub, string.lower,
  string.match
local error, ipairs, max, min, pairs, pcall = error, ipairs, math.max, math.min, pairs, pcall
local getmetatable, rawget, select, setmetatable = getmetatable, rawget, select, setmetatable
local tointeger, tonumber, tostring, type = math.tointeger, tonumber, tostring, type

local A_TURN <const> = 1e-6 -- seconds: a wait of one turn of the loop
local NEVER <const> = 1e8
local PATIENCE <const> = 1 -- seconds in line after which garbage is collected
local CONNECT_TIMEOUT <const> = 5 -- seconds
local PORTION <const> = 100 -- rows that a loop gets at a time
local FIRST_PORTION <const> = 10 -- rows that a loop in a transaction gets first
local PORTION_BYTES <const> = 64 << 10 -- the aim for the size of the later portions
local NILS <const> = 10000 -- the most nils in an array
local SPARE_MAX <const> = 64 -- the most guards of calls, and events, that are kept to be used again
local NO_END <const> = math.maxinteger
local FULL <const> = "postgres: too many tasks wait for a connection: see waiters"
local ENDED <const> = "postgres: a query of the function ended the transaction"
local SOCKETS <const> = "/var/run/postgresql"
local AUTHORITIES <const> = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt" }

local OPTIONS <const> = {
  conninfo = "string", host = "string", port = "number", user = "string", password = "string", database = "string",
  application_name = "string", tls = "boolean or table", max = "number", waiters = "number", timeout = "number",
  connect_timeout = "number", cancel_timeout = "number", idle_timeout = "number", prepare = "boolean",
  statements = "number", rows_max = "number", bytes_max = "number", arrays = "boolean",
}
local DEFAULTS <const> = {
  max = 10, waiters = 1000, timeout = 30, cancel_timeout = 5, idle_timeout = 60, prepare = true, statements = 100,
  rows_max = 100000, bytes_max = 64 << 20, arrays = false,
}
-- The options that one query may have.
local OF_QUERY <const> = {
  timeout = "number", prepare = "boolean", rows_max = "number", bytes_max = "number", arrays = "boolean",
}
local RANGES <const> = {
  max = 1000, waiters = 1 << 20, statements = 10000, rows_max = 1 << 40, bytes_max = 1 << 40, port = 65535,
}

local counters

local function count(name)
  counters[name] = counters[name] + 1
end

local function left_of(deadline)
  return max(deadline - c.now(), A_TURN)
end

-- ---- Links and holders ----

local function is_waiting(holder)
  return not holder.is_over and not (holder.link and holder.link.holder == holder)
end

-- The holder that has waited longest for a link.
local function first_in_line(pool)
  local line = pool.line

  while line.first <= line.last do
    local holder = line[line.first]

    if holder and is_waiting(holder) then return holder end
    line[line.first] = nil
    line.first = line.first + 1
  end
end

local function new_link(pool, holder)
  return { pool = pool, holder = holder, conn = c.new(), is_new = true, statements = {}, number = 0, clock = 0 }
end

-- Find the link that was made for a holder, which does not know of the link yet.
local function link_made_for(pool, holder)
  for _, link in ipairs(pool.links) do
    if link.holder == holder then return link end
  end
end

-- Make new links for the holders that wait, as long as the pool may have more.
local function serve_line(pool)
  local links, holder = pool.links, first_in_line(pool)

  while holder and not pool.is_closed do
    local link = link_made_for(pool, holder)

    if not link and #links >= pool.options.max then return end
    if not link then links[#links + 1] = new_link(pool, holder) end
    holder.event:set()
    holder.link = link or links[#links]
    holder = first_in_line(pool)
  end
end

local end_link = insist(function(link)
  local links = link.pool.links

  c.abandon(link.conn)
  for i, one in ipairs(links) do
    if one == link then table.remove(links, i) end
  end
  serve_line(link.pool)
end)

-- Pass a link on to the first holder in line; without one, the link rests.
local function pass_on(link)
  local pool = link.pool
  local holder = first_in_line(pool)

  if holder then
    holder.link = link
    holder.event:set()
    link.holder = holder
  else
    c.rest(link.conn, pool.options.idle_timeout)
    link.holder = nil
  end
end

-- End a holder: its task has its rows, or failed, or ended.
local function end_now(holder)
  local link = holder.link

  holder.is_over = true
  if not link or link.holder ~= holder then return end
  if c.status(link.conn) ~= "idle" or link.pool.is_closed then return end_link(link) end
  pass_on(link)
end

local end_holder = insist(function(guard) end_now(guard.holder) end)

-- The guard of a call is used again for another call, because it costs the collector much to finalize one for each
-- call. No script has such a guard.
local end_call = insist(function(guard)
  local holder = guard.holder

  if holder.is_done then return end
  end_now(holder)
  holder.is_done = true
  local spare = holder.pool.spare_guards
  if #spare < SPARE_MAX then spare[#spare + 1] = guard end
end)

-- The metatables of guards. The pool refers to a holder, but only the holder's coroutine refers to its guard: if the
-- coroutine is dropped, the collector finds the guard.
local guards = { __close = end_holder, __gc = end_holder }
local guards_of_calls = { __close = end_call, __gc = end_holder }

local function guard_of(holder)
  return setmetatable({ holder = holder }, guards)
end

-- The guard of a call, with a new holder.
local function guard_of_call(pool)
  local holder, spare = { pool = pool }, pool.spare_guards
  local guard = spare[#spare]

  if not guard then return setmetatable({ holder = holder }, guards_of_calls) end
  spare[#spare] = nil
  guard.holder = holder
  return guard
end

-- The number of tasks that wait; those that gave up are removed from the line.
local function count_line(pool)
  local line, number = pool.line, 0
  local rest = { first = 1 }

  for i = line.first, line.last do
    local holder = line[i]

    if is_waiting(holder) then
      number = number + 1
      rest[number] = holder
    end
  end
  rest.last = number
  pool.line = rest
  return number
end

-- An event for a holder that may have to wait: one that was used before, or a new one.
local function event_of(pool)
  local spare = pool.spare_events
  local event = spare[#spare]

  if not event then return task.event() end
  spare[#spare] = nil
  return event
end

-- Choose a link for a holder: one that rests, or a new one. Otherwise the holder joins the line; or nil, why.
local choose = atomic(function(pool, holder)
  local links = pool.links

  -- Make the event before looking at the links: this takes memory, so the collector may end a holder, whose link rests
  -- then.
  if #links >= pool.options.max then holder.event = event_of(pool) end
  for i = first_in_line(pool) and 0 or #links, 1, -1 do -- while a holder waits, no link rests
    local link = links[i]

    if not link.holder then
      if c.take(link.conn) then
        holder.link = link
        link.holder = holder
        return true
      end
      end_link(link) -- the server ended it, or it has rested for too long
    end
  end
  if #links < pool.options.max then
    holder.link = new_link(pool, holder)
    links[#links + 1] = holder.link
    return true
  end
  if pool.line.last - pool.line.first + 1 >= pool.options.waiters and count_line(pool) >= pool.options.waiters then
    return nil, FULL
  end
  holder.event = holder.event or event_of(pool)
  pool.line[pool.line.last + 1] = holder
  pool.line.last = pool.line.last + 1
  return true
end)

-- ---- Opening ----

local function split_list(text)
  local list = {}

  for item in gmatch((text or "") .. ",", "([^,]*),") do list[#list + 1] = item end
  return list
end

-- The list of the server's addresses: { host =, address =, port = }; or nil, why, code.
local function targets_of(pool, deadline)
  local params, targets = pool.params, {}
  local hosts, ports, addresses = split_list(params.host), split_list(params.port), split_list(params.hostaddr)
  local why

  for i, host in ipairs(hosts) do
    local port = ports[i] or ports[1]
    local address = addresses[i] or ""

    if host == "" and address == "" then host = SOCKETS end
    if find(host, "^[/@]") then
      targets[#targets + 1] = { host = host, port = port }
    else
      if address == "" then address, why = c.lookup(host, left_of(deadline)) end
      if why == "timeout" or why == "cancelled" then return nil, why end
      for ip in gmatch(address or "", "[^ ]+") do
        targets[#targets + 1] = { host = host ~= "" and host or nil, address = ip, port = port }
      end
    end
  end
  if targets[1] then return targets end
  return nil, "postgres: " .. params.host .. ": " .. why, "08001"
end

-- The parameters of a target for libpq, each name before its value.
local function list_of(pool, target)
  local list = {}

  for name, value in pairs(pool.params) do
    if name ~= "host" and name ~= "hostaddr" and name ~= "port" then
      list[#list + 1] = name
      list[#list + 1] = value
    end
  end
  local host = target.address and pool.tls_name or target.host

  for name, value in pairs{ host = host, hostaddr = target.address, port = target.port } do
    list[#list + 1] = name
    list[#list + 1] = value
  end
  return list
end

-- Open a link. Returns true; or nil, why, code. Each address gets its part of the time.
local function open_link(link, deadline)
  local pool = link.pool
  local ok, why, code, targets

  while not c.has_loop() do task.sleep(A_TURN) end
  targets, why, code = targets_of(pool, deadline)
  if not targets then return nil, why, code end
  for i, target in ipairs(targets) do
    count "connects"
    ok, why, code = c.connect(link.conn, list_of(pool, target), left_of(deadline) / (#targets - i + 1),
      pool.options.cancel_timeout)
    if ok or why == "cancelled" or pool.is_closed then break end
  end
  if not ok then
    count "failures"
    return nil, why, code
  end
  -- Other clients of a pooler share the server's connections, so no two clients may give two texts the same name.
  link.prefix = "sxe_" .. gsub(encoding.uuid4(), "-", "") .. "_"
  link.is_new = nil
  return true
end

local collect_after = 0

-- Collect garbage, which ends the holders of coroutines that were dropped. At most a tenth of the time is spent on this.
local function collect_holders()
  local began = c.now()

  if began < collect_after then return end
  collectgarbage()
  collect_after = began + 10 * (c.now() - began)
end

-- Wait until the holder, which is in line, has a link. A long wait may be for links of coroutines that were dropped.
local function wait_in_line(holder, deadline)
  local collect_at = c.now() + PATIENCE

  count "waits"
  while not holder.link do
    local due = min(deadline, collect_at)
    local ok, why = holder.event:wait(left_of(due))

    if not ok and (why ~= "timeout" or due == deadline) then return nil, why end
    if holder.pool.is_closed then return nil, "closed" end
    if ok then
      holder.event:clear()
    else
      collect_at = deadline
      collect_holders()
    end
  end
  return true
end

-- Get a link for the holder. Returns the link; or nil, why, code.
local function take(holder, deadline)
  local pool = holder.pool
  local ok, why, code

  if pool.is_closed then return nil, "closed" end
  ok, why = choose(pool, holder)
  if not ok then return nil, why, "53300" end
  if not holder.link then
    ok, why = wait_in_line(holder, deadline)
    if not ok then return nil, why end
  end
  if holder.event and #pool.spare_events < SPARE_MAX then
    local event = holder.event
    holder.event = nil
    pool.spare_events[#pool.spare_events + 1] = event
  end
  if holder.link.is_new then
    ok, why, code = open_link(holder.link, min(deadline, c.now() + pool.options.connect_timeout))
    if not ok then return nil, why, code end
  end
  return holder.link
end

-- ---- Queries ----

-- Send a query, and wait for its rows. Returns them; or nil, why, code, fields.
local function exchange(link, of, kind, name, sql, ...)
  local ok, why, code = c.send(link.conn, kind, name, sql, ...)

  if not ok then return nil, why, code end
  return c.receive(link.conn, left_of(of.deadline), of.arrays, of.rows_max, of.bytes_max, of.portion)
end

local function forget(link, sql)
  link.statements[sql] = nil
  link.number = link.number - 1
end

-- Let the server forget the statement of a text, unless it has done so itself. Returns true; or nil, why, code, fields.
local function deallocate(link, of, sql)
  local ok, why, code, fields = exchange(link, of, "script", "", "DEALLOCATE " .. link.statements[sql].name)

  if not ok and code ~= "26000" then return nil, why, code, fields end
  forget(link, sql)
  if not ok and c.status(link.conn) ~= "idle" then return nil, why, code, fields end
  return true
end

-- The text of the statement that was used longest ago.
local function oldest_of(link)
  local oldest, sql

  for text, statement in pairs(link.statements) do
    if not oldest or statement.used < oldest.used then oldest, sql = statement, text end
  end
  return sql
end

-- The prepared statement of a text in this connection, which is prepared if need be; or nil, why, code, fields.
local function statement_of(link, of, sql)
  local statement = link.statements[sql]
  local ok, why, code, fields = true, nil, nil, nil

  link.clock = link.clock + 1
  if statement and not statement.is_stale then
    statement.used = link.clock
    return statement
  end
  if statement then
    ok, why, code, fields = deallocate(link, of, sql)
  elseif link.number >= link.pool.options.statements then
    ok, why, code, fields = deallocate(link, of, oldest_of(link))
  end
  if not ok then return nil, why, code, fields end
  statement = { name = link.prefix .. link.clock, used = link.clock }
  ok, why, code, fields = exchange(link, of, "prepare", statement.name, sql)
  if not ok then return nil, why, code, fields end
  link.number = link.number + 1
  link.statements[sql] = statement
  return statement
end

-- Whether a statement that failed did not run, and may be prepared and sent once more: the server had forgotten it, or
-- a table in it has other columns now. The code alone does not say so, because a procedure may raise the same code
-- after a commit; but then the error has a context. A statement that may be of no more use is not used again.
local function has_not_run(link, sql, statement, code, fields)
  local is_own = fields and not fields.context

  if code == "26000" and is_own then
    forget(link, sql)
    return fields.routine == "FetchPreparedStatement" and find(fields.message, statement.name, 1, true) ~= nil
  end
  if code ~= "0A000" or not fields or fields.routine ~= "RevalidateCachedQuery" then return false end
  statement.is_stale = true
  return is_own
end

local function query_prepared(link, of, sql, ...)
  local rows, why, code, fields, statement

  for _ = 1, 2 do
    statement, why, code, fields = statement_of(link, of, sql)
    if not statement then return nil, why, code, fields end
    rows, why, code, fields = exchange(link, of, "name", statement.name, "", ...)
    if rows then return rows end
    if not has_not_run(link, sql, statement, code, fields) or c.status(link.conn) ~= "idle" then break end
    count "prepared_again"
  end
  return nil, why, code, fields
end

local function query_in(link, of, sql, ...)
  count "queries"
  if of.prepare then return query_prepared(link, of, sql, ...) end
  return exchange(link, of, "text", "", sql, ...)
end

local function check_range(who, options, name)
  local value = tointeger(options[name])

  if not value or value < 1 or value > RANGES[name] then
    error(format("%s: %s must be a whole number from 1 to %d, not %s", who, name, RANGES[name], options[name]), 0)
  end
  options[name] = value
end

local function check_seconds(who, options, name)
  if not (options[name] > 0) then error(who .. ": " .. name .. " must be more than 0 seconds", 0) end
  options[name] = min(options[name], NEVER)
end

-- Check the type and range of each option that is given.
local function check_values(who, options, types)
  for name, value in pairs(options) do
    local wanted = types[name]

    if not wanted then error(who .. ": there is no option '" .. tostring(name) .. "'", 0) end
    if not find(wanted, type(value), 1, true) then
      error(format("%s: %s must be a %s, not a %s", who, name, wanted, type(value)), 0)
    end
    if RANGES[name] then check_range(who, options, name) end
    if find(name, "timeout", 1, true) then check_seconds(who, options, name) end
  end
end

local function check_sql(sql)
  if type(sql) ~= "string" then error("postgres: a query is a string, not a " .. type(sql), 0) end
  if find(sql, "\0", 1, true) then error("postgres: the query has a zero byte", 0) end
end

-- The options of a query: those that are given, and those of the pool.
local function merge_options(options, given)
  local of = {}

  for name, value in pairs(given) do
    if name ~= 1 then of[name] = value end
  end
  check_values("postgres: a query", of, OF_QUERY)
  for name in pairs(OF_QUERY) do
    if of[name] == nil then of[name] = options[name] end
  end
  return of
end

-- The text of a query, and its options.
local function options_of(options, query)
  local deadline = c.now() + options.timeout

  if type(query) ~= "table" then
    check_sql(query)
    return { timeout = options.timeout, prepare = options.prepare, rows_max = options.rows_max,
      bytes_max = options.bytes_max, arrays = options.arrays, deadline = deadline }, query
  end
  local of, sql = merge_options(options, query), query[1]
  check_sql(sql)
  of.deadline = deadline - options.timeout + of.timeout
  return of, sql
end

-- Call a function with a link of the pool.
local function with_link(pool, deadline, fn, ...)
  local guard <close> = guard_of_call(pool)
  local link, why, code = take(guard.holder, deadline)

  if not link then return nil, why, code end
  return fn(link, ...)
end

-- ---- Pipelines ----

-- A batch is the list of a pipeline's entries: { sql =, values = }, or SYNC, which ends a group of them. Nothing waits
-- while a batch is sent, so no other query comes between.
local SYNC <const> = {}
local STATE <const> = {} -- the field of a pipeline that scripts must not change: { of =, run =, batch = }

-- Close the connection of a pipeline that ended early, before another query is sent.
local pipes = { __close = function(pipe)
  if not pipe.is_done then c.abandon(pipe.link.conn) end
end }

-- Make room for the statements of a batch that this connection does not have: forget others, but none that the batch
-- uses. Returns true; or nil, why, code, fields.
local function make_room(link, of, batch)
  local lacking, known = 0, {}
  local before = link.clock
  local ok, why, code, fields = true, nil, nil, nil

  for _, entry in ipairs(batch) do
    local statement = link.statements[entry.sql]

    if statement and statement.is_stale and ok then ok, why, code, fields = deallocate(link, of, entry.sql) end
    if not ok then return nil, why, code, fields end
    statement = link.statements[entry.sql]
    if statement then
      link.clock = link.clock + 1
      statement.used = link.clock
    elseif entry ~= SYNC and not known[entry.sql] then
      known[entry.sql], lacking = true, lacking + 1
    end
  end
  while lacking > link.pool.options.statements - link.number do
    local oldest = oldest_of(link)

    if not oldest or link.statements[oldest].used > before then break end
    ok, why, code, fields = deallocate(link, of, oldest)
    if not ok then return nil, why, code, fields end
  end
  return true
end

-- Add the message that prepares a text to the pipeline, if there is room. A later group may not use that statement,
-- because it does not exist if this group fails before; the statement is kept when the server has made it. Returns the
-- statement, or nil.
local function prepare_in(link, pipe, sql, at)
  local made = pipe.made[sql]

  if made then return made.group == pipe.group and made or nil, true end
  if link.number + pipe.number >= link.pool.options.statements then return nil, true end
  link.clock = link.clock + 1
  made = { name = link.prefix .. link.clock, used = link.clock, group = pipe.group }
  pipe.made[sql], pipe.number = made, pipe.number + 1
  pipe.replies[#pipe.replies + 1] = { at = at, sql = sql, made = made }
  return made, c.send(link.conn, "prepare", made.name, sql)
end

-- Add a query to the pipeline. Returns true; or nil, why, code.
local function add_query(link, of, pipe, entry, at)
  local ok, why, code, statement = true, nil, nil, nil
  local sql, values = entry.sql, entry.values

  if of.prepare then
    statement = link.statements[sql]
    if not statement then statement, ok, why, code = prepare_in(link, pipe, sql, at) end
    if not ok then return nil, why, code end
  end
  pipe.replies[#pipe.replies + 1] = { at = at, sql = sql, statement = statement }
  if statement then return c.send(link.conn, "name", statement.name, "", unpack(values, 1, values.n)) end
  return c.send(link.conn, "text", "", sql, unpack(values, 1, values.n))
end

-- Send a batch. Returns true; or nil, why, code.
local function send_batch(link, of, pipe, batch)
  local ok, why, code = c.begin_pipeline(link.conn)
  local at = 0

  for i = 1, #batch do
    if not ok then break end
    if batch[i] == SYNC then
      pipe.replies[#pipe.replies + 1] = SYNC
      pipe.group = pipe.group + 1
      ok, why, code = c.sync(link.conn, i == #batch)
    else
      at = at + 1
      count "queries"
      ok, why, code = add_query(link, of, pipe, batch[i], at)
    end
  end
  return ok, why, code
end

-- Take the reply to a message of the pipeline into its list.
local function take_reply(link, pipe, reply, rows, why, code, fields)
  local list, at, made = pipe.list, reply.at, reply.made

  if made and rows then
    link.statements[reply.sql] = made
    link.number = link.number + 1
  elseif not made then
    list[at] = list[at] or rows or { error = why, code = code, fields = fields }
  elseif not list[at] then
    list[at] = { error = why, code = code, fields = fields }
  end
  if not rows and reply.statement and link.statements[reply.sql] == reply.statement then
    has_not_run(link, reply.sql, reply.statement, code, fields)
  end
  if not rows and not pipe.why then pipe.why, pipe.code, pipe.fields = why, code, fields end
end

-- Receive the reply to a sync: an error, if the server could not commit the group, and then that the group has ended.
local function receive_sync(link, of, pipe)
  local ended, why, code, fields

  for _ = 1, 2 do
    ended, why, code, fields = c.receive(link.conn, left_of(of.deadline), of.arrays, of.rows_max, of.bytes_max)
    if not ended and not pipe.why then pipe.why, pipe.code, pipe.fields = why, code, fields end
    if ended or not c.status(link.conn) then break end
  end
  if not ended then c.abandon(link.conn) end
  return ended, why, code
end

-- Receive the replies to a batch, until the connection ends. Returns whether all have come.
local function receive_batch(link, of, pipe)
  for _, reply in ipairs(pipe.replies) do
    local rows, why, code, fields

    if reply == SYNC then
      rows, why, code = receive_sync(link, of, pipe)
    else
      rows, why, code, fields = c.receive(link.conn, left_of(of.deadline), of.arrays, of.rows_max, of.bytes_max)
    end
    -- A server that sends other replies than there are messages: none of them can be believed.
    if rows and (reply == SYNC) ~= (rows == true) then
      rows, why, code = nil, "postgres: the server sent no result", "08P01"
      c.abandon(link.conn)
    end
    if reply ~= SYNC then take_reply(link, pipe, reply, rows, why, code, fields) end
    if not c.status(link.conn) then return false, why, code end
  end
  return true
end

-- Send a batch, and receive its results. Returns their list; or nil, and why, code, fields of the first error, and the
-- list, in which errors are tables.
local function run_batch(link, of, batch)
  local pipe <close> = setmetatable({ link = link, replies = {}, list = {}, made = {}, number = 0, group = 1 }, pipes)
  local list = pipe.list
  local ok, why, code, fields = make_room(link, of, batch)

  if ok then ok, why, code = send_batch(link, of, pipe, batch) end
  if not ok then return nil, why, code, fields end
  ok, why, code = receive_batch(link, of, pipe)
  pipe.is_done = ok
  if not ok and not pipe.why then pipe.why, pipe.code = why, code end
  if not pipe.why then return list end
  for i = #list + 1, batch.number do list[i] = { error = why, code = code } end
  return nil, pipe.why, pipe.code, pipe.fields, list
end

local Pipeline = {}
local pipelines = { __index = Pipeline, __name = "sxe.postgres.pipeline", __metatable = false }

local function new_batch()
  return { number = 0 }
end

-- A pipeline, whose exec calls run(of, batch).
local function new_pipeline(options, given, run)
  if given ~= nil and type(given) ~= "table" then
    error("postgres: the options of a pipeline are a table, not a " .. type(given), 0)
  end
  local state = { of = merge_options(options, given or {}), run = run, batch = new_batch() }
  return setmetatable({ [STATE] = state }, pipelines)
end

function Pipeline.query(pipeline, sql, ...)
  local batch = rawget(pipeline, STATE).batch

  check_sql(sql)
  c.check_values(...)
  batch[#batch + 1] = { sql = sql, values = pack(...) }
  batch.number = batch.number + 1
  return pipeline
end

function Pipeline.sync(pipeline)
  local batch = rawget(pipeline, STATE).batch

  if #batch > 0 and batch[#batch] ~= SYNC then batch[#batch + 1] = SYNC end
  return pipeline
end

function Pipeline.exec(pipeline)
  local state = rawget(Pipeline.sync(pipeline), STATE)
  local of, batch = {}, state.batch
  local list, why, code, fields, all

  state.batch = new_batch()
  if batch.number == 0 then return {} end
  for name, value in pairs(state.of) do of[name] = value end -- each exec has a deadline of its own
  of.deadline = c.now() + of.timeout
  count "pipelines"
  list, why, code, fields, all = state.run(of, batch)
  if list then return list end
  return nil, why, code, fields, all
end

-- ---- Transactions ----

local Transaction = {}
local transactions = { __index = Transaction, __name = "sxe.postgres.transaction", __metatable = false }
local states = setmetatable({}, { __mode = "k" }) -- by transaction: its state, which scripts must not change
local ISOLATION <const> = {
  ["read committed"] = true, ["repeatable read"] = true, serializable = true, ["read uncommitted"] = true,
}

local function state_of(transaction)
  local state = states[transaction]

  if not state or state.is_over then error("postgres: the transaction is over", 0) end
  return state
end

-- Note the first error of a transaction: it is the reason why the transaction cannot be committed.
local function note_error(state, why, code, fields)
  if not state.why then state.why, state.code, state.fields = why, code, fields end
end

-- Whether a query of the function ended the transaction. The connection may be in another transaction, which keeps
-- nothing of this one: after "ROLLBACK; BEGIN", and after "COMMIT AND CHAIN".
local function has_ended(link)
  return link.has_crossed or c.status(link.conn) == "idle"
end

-- Note a query that ended the transaction. A ROLLBACK that leaves the connection in a transaction was one to a
-- savepoint, unless it began a chained transaction.
local function note_crossing(link, sql)
  local how = c.take_crossing(link.conn)

  if how == "crossed" or how and find(lower(sql), "chain", 1, true) then link.has_crossed = true end
end

-- Send a command of this file; it has the pool's timeout, as it has none of its own.
local function command(state, sql)
  local of = options_of(state.link.pool.options, sql)

  return exchange(state.link, of, "script", "", sql)
end

-- Note a cursor whose loop has ended.
local function note_cursor(state, name)
  state.ended_cursors = state.ended_cursors or {}
  state.ended_cursors[#state.ended_cursors + 1] = name
end

-- Close the cursors whose loops have ended. A failed transaction can close none, and ends them itself. Returns true; or
-- nil, why, code, fields.
local function close_cursors(state)
  local names = state.ended_cursors
  local rows, why, code, fields

  state.ended_cursors = nil
  if not names or c.status(state.link.conn) ~= "transaction" then return true end
  rows, why, code, fields = command(state, "CLOSE " .. concat(names, "; CLOSE "))
  if rows then return true end
  return nil, why, code, fields
end

-- Call a function in a transaction. If a query has ended the transaction this fails: the function would run outside of
-- it.
local function act(state, sql, fn, ...)
  local link = state.link
  local result, why, code, fields, list = nil, ENDED, "25P01", nil, nil

  if not has_ended(link) then
    result, why, code, fields = close_cursors(state)
    c.take_crossing(link.conn) -- forget the crossings by commands of this file
    if result then result, why, code, fields, list = fn(link, ...) end
    note_crossing(link, sql)
  end
  if result then return result end
  note_error(state, why, code, fields)
  if list then return nil, why, code, fields, list end
  return nil, why, code, fields
end

function Transaction.query(transaction, query, ...)
  local state = state_of(transaction)
  local of, sql = options_of(state.link.pool.options, query)

  return act(state, sql, query_in, of, sql, ...)
end

function Transaction.exec(transaction, query)
  local state = state_of(transaction)
  local of, sql = options_of(state.link.pool.options, query)
  local rows, why, code, fields = act(state, sql, exchange, of, "script", "", sql)

  if rows then return true end
  return nil, why, code, fields
end

-- A pipeline in the transaction.
function Transaction.pipeline(transaction, options)
  local function run(of, batch)
    local texts = {}

    for i, entry in ipairs(batch) do texts[i] = entry.sql or "" end
    return act(state_of(transaction), concat(texts, " "), run_batch, of, batch)
  end
  return new_pipeline(state_of(transaction).link.pool.options, options, run)
end

-- ---- Rows of a cursor of the server, in a transaction ----

-- A loop passes its iterator the state that rows and copy_out return. A script called the iterator without it.
local function refuse_by_hand()
  error("postgres: call the iterator of rows or copy_out in `for`, or with the second value that came with it", 0)
end

-- The state of such a loop. Its cursor is closed with the transaction's next query, or ends with the transaction.
local loops = { __close = function(loop)
  if loop.name then note_cursor(loop.state, loop.name) end
  loop.name, loop.is_last = nil, true
end }

local function declare(loop)
  local link = loop.state.link

  count "queries"
  link.cursors = (link.cursors or 0) + 1
  local name = "sxe_rows" .. link.cursors
  local ok, why = act(loop.state, loop.sql, exchange, loop.of, "text", "",
    format("DECLARE %s NO SCROLL CURSOR FOR %s", name, loop.sql), unpack(loop.values, 1, loop.values.n))
  if not ok then error(why, 0) end
  loop.name = name
end

-- The number of rows that are fetched next, by the size of those before.
local function portion_after(portion, bytes)
  return max(1, min(PORTION, 4 * portion, portion * PORTION_BYTES // max(bytes, 1)))
end

local function fetch(loop)
  local of, conn = loop.of, loop.state.link.conn
  local rows, why

  of.deadline = c.now() + of.timeout
  if not loop.name then declare(loop) end
  rows, why = act(loop.state, "", exchange, of, "script", "", format("FETCH %d FROM %s", loop.portion, loop.name))
  if not rows then error(why, 0) end
  loop.rows, loop.at, loop.is_last = rows, 1, #rows < loop.portion
  loop.portion = portion_after(loop.portion, c.size(conn))
end

local function next_fetched(loop)
  if getmetatable(loop) ~= loops then refuse_by_hand() end
  state_of(loop.transaction)
  loop.at = loop.at + 1
  if loop.at > #loop.rows and not loop.is_last then fetch(loop) end
  return loop.rows[loop.at]
end

-- The iterator of a loop. Other queries of the transaction may be sent while it runs.
function Transaction.rows(transaction, query, ...)
  local state = state_of(transaction)
  local of, sql = options_of(state.link.pool.options, query)
  local loop = setmetatable({ transaction = transaction, state = state, of = of, sql = sql, values = pack(...),
    rows = {}, at = 0, portion = FIRST_PORTION }, loops)

  c.check_values(...)
  of.rows_max = NO_END
  return next_fetched, loop, nil, loop
end

-- ---- The end of a transaction ----

-- The metatable that ends a state at the end of a scope.
local enders = { __close = function(state) state.is_over = true end }

local function new_state(link, outer)
  return setmetatable({ link = link, outer = outer, depth = outer and outer.depth + 1 or 0 }, enders)
end

-- Undo the changes of a state. Returns true; or nil, why, code: then the link cannot be used again.
local function undo(state)
  if state.depth == 0 then return command(state, "ROLLBACK") end
  return command(state, format("ROLLBACK TO sxe%d; RELEASE sxe%d", state.depth, state.depth))
end

-- Cursors of a savepoint that is kept belong to the outer transaction.
local function inherit_cursors(state)
  for _, name in ipairs(state.ended_cursors or {}) do note_cursor(state.outer, name) end
end

-- Keep the changes of a state, if none of its queries failed.
local function keep(state)
  local status = c.status(state.link.conn)
  local is_ended = has_ended(state.link)
  local ok, why, code, fields

  if is_ended then note_error(state, ENDED, "25P01") end
  if status == "failed" or status == "transaction" and is_ended then undo(state) end
  if status == "failed" or is_ended or not status then
    return nil, state.why or "closed", state.code, state.fields
  end
  ok, why, code, fields = command(state, state.depth == 0 and "COMMIT" or "RELEASE sxe" .. state.depth)
  if ok and state.depth > 0 then inherit_cursors(state) end
  if ok then return true end
  if state.depth == 0 and not c.status(state.link.conn) then
    return nil, why .. ": whether the transaction was committed is not known", "08007", fields
  end
  return nil, why, code, fields
end

-- Whether the server refused a transaction because of what others did at the same time: then it may be tried again.
local function is_conflict(code)
  return code == "40001" or code == "40P01"
end

local function settle(state, is_good, first, ...)
  if not is_good then
    undo(state)
    if is_conflict(state.code) then return nil, state.why, state.code, state.fields end
    error(first, 0)
  end
  if first == false then
    undo(state)
    return nil, "postgres: the function gave the transaction up"
  end
  local ok, why, code, fields = keep(state)
  if not ok then return nil, why, code, fields end
  return true, first, ...
end

local function run_in(state, fn)
  local transaction = setmetatable({}, transactions)

  states[transaction] = state
  return settle(state, pcall(fn, transaction))
end

local function check_function(fn)
  if type(fn) ~= "function" then error("postgres: a transaction is a function, not a " .. type(fn), 0) end
end

-- Note a conflict in the outer transaction, too: all of it has to be tried again.
local function note_conflict(outer, ok, why, code, fields, ...)
  if not ok and is_conflict(code) then note_error(outer, why, code, fields) end
  return ok, why, code, fields, ...
end

function Transaction.transaction(transaction, fn)
  local outer = state_of(transaction)
  local ok, why, code, fields

  check_function(fn)
  local state <close> = new_state(outer.link, outer)
  ok, why, code, fields = command(state, "SAVEPOINT sxe" .. state.depth)
  if not ok then
    note_error(outer, why, code, fields)
    return nil, why, code, fields
  end
  return note_conflict(outer, run_in(state, fn))
end

-- Try the transaction once, in its own link.
local function attempt(link, begin, fn)
  local state <close> = new_state(link)
  local ok, why, code, fields

  link.has_crossed = nil
  ok, why, code, fields = command(state, begin)

  if not ok then return nil, why, code, fields end
  return run_in(state, fn)
end

-- The command that begins a transaction with these options, and the number of times that it is tried again.
local function check_transaction(options)
  local parts = { "BEGIN" }

  for name in pairs(options) do
    if not find(" isolation read_only deferrable retries ", " " .. tostring(name) .. " ", 1, true) then
      error("postgres: a transaction has no option '" .. tostring(name) .. "'", 0)
    end
  end
  if options.isolation ~= nil then
    if not ISOLATION[options.isolation] then
      error("postgres: isolation must be 'read committed', 'repeatable read' or 'serializable'", 0)
    end
    parts[#parts + 1] = "ISOLATION LEVEL " .. options.isolation
  end
  if options.read_only then parts[#parts + 1] = "READ ONLY" end
  if options.deferrable then parts[#parts + 1] = "DEFERRABLE" end
  local retries = tointeger(options.retries or 0)
  if not retries or retries < 0 then error("postgres: retries must be a whole number", 0) end
  return concat(parts, " "), retries
end

local function transact(pool, begin, fn)
  return with_link(pool, c.now() + pool.options.timeout, attempt, begin, fn)
end

-- ---- The module ----

local POOL <const> = {} -- the field of a db that holds its pool
local Db = {}

-- No tail calls: the db is not collected, and so closed, as long as one of its calls waits.
function Db.query(db, query, ...)
  local pool = rawget(db, POOL)
  local of, sql = options_of(pool.options, query)
  local rows, why, code, fields = with_link(pool, of.deadline, query_in, of, sql, ...)

  if rows then return rows end
  return nil, why, code, fields
end

-- A pipeline: queries that are sent together.
function Db.pipeline(db, options)
  local pool = rawget(db, POOL)

  local function run(of, batch)
    local list, why, code, fields, all = with_link(rawget(db, POOL), of.deadline, run_batch, of, batch)

    return list, why, code, fields, all
  end
  return new_pipeline(pool.options, options, run)
end

function Db.exec(db, query)
  local pool = rawget(db, POOL)
  local of, sql = options_of(pool.options, query)
  local rows, why, code, fields = with_link(pool, of.deadline, exchange, of, "script", "", sql)

  if rows then return true end
  return nil, why, code, fields
end

-- ---- Rows, a portion at a time ----

-- A cursor is a holder; the loop has its guard, and closes it, or the collector does.

-- Send the query of a cursor. Returns its first rows; or nil, why.
local function begin_cursor(cursor)
  local link, why = take(cursor, cursor.of.deadline)

  if not link then return nil, why end
  return query_in(link, cursor.of, cursor.sql, unpack(cursor.values, 1, cursor.values.n))
end

local function next_rows(cursor)
  local of = cursor.of

  of.deadline = c.now() + of.timeout
  if not cursor.rows then return begin_cursor(cursor) end
  return c.receive(cursor.link.conn, of.timeout, of.arrays, of.rows_max, of.bytes_max, of.portion)
end

-- The next row of a cursor.
local function next_row(guard)
  if getmetatable(guard) ~= guards then refuse_by_hand() end
  local cursor = guard.holder

  cursor.at = cursor.at + 1
  if not cursor.rows or cursor.at > #cursor.rows and not cursor.is_last then
    local rows, why = next_rows(cursor)

    if not rows then error(why, 0) end
    cursor.rows, cursor.at, cursor.is_last = rows, 1, c.status(cursor.link.conn) ~= "busy"
  end
  return cursor.rows[cursor.at]
end

-- The iterator of a loop. It takes a connection when the loop begins, where it raises errors; if the loop ends early,
-- the query is cancelled.
function Db.rows(db, query, ...)
  local pool = rawget(db, POOL)
  local of, sql = options_of(pool.options, query)
  local guard = guard_of{ pool = pool, db = db, of = of, sql = sql, values = pack(...), at = 0 }

  of.portion, of.rows_max = PORTION, NO_END
  return next_row, guard, nil, guard
end

-- ---- COPY ----

-- At the end of COPY its result follows. Another COPY, which begins then, is refused: its connection is closed, so that
-- the server undoes both. Returns the result; or nil, why, code, fields.
local function end_of_copy(conn, of)
  local rows, why, code, fields = c.receive(conn, of.timeout, of.arrays, of.rows_max, of.bytes_max)

  if type(rows) == "string" then return nil, "postgres: one COPY is expected, not several", "0A000" end
  return rows, why, code, fields
end

-- Begin to copy. Returns true; or nil, why, code, fields.
local function begin_copy(link, of, sql, wanted)
  local way, why, code, fields = exchange(link, of, "copy", "", sql)

  if not way then return nil, why, code, fields end
  if way == wanted then return true end
  return nil, "postgres: COPY " .. (wanted == "in" and "FROM STDIN" or "TO STDOUT") .. " is expected", "0A000"
end

-- Send the server the data of the source. Returns why this ended early, and a code; or nil, nil, why the source failed.
local function feed(link, of, source)
  local chunk, failure = source()

  while chunk ~= nil do
    if type(chunk) ~= "string" then error("postgres: a source gives strings, not a " .. type(chunk), 0) end
    local ok, why, code = c.put(link.conn, of.timeout, chunk)
    if not ok then return why, code end
    chunk, failure = source()
  end
  return nil, nil, failure
end

local function copy_into(link, of, sql, source)
  local ok, why, code, fields = begin_copy(link, of, sql, "in")
  local rows

  if not ok then return nil, why, code, fields end
  local is_good, problem, cause, failure = pcall(feed, link, of, source)
  if is_good and problem then return nil, problem, cause end
  c.end_copy(link.conn, (not is_good or failure) and "the source failed" or nil)
  of.deadline = c.now() + of.timeout
  rows, why, code, fields = end_of_copy(link.conn, of)
  if not is_good then error(problem, 0) end
  if failure then return nil, failure end
  if not rows then return nil, why, code, fields end
  return rows.n
end

-- The source as a function: for a string, one that returns it once.
local function source_of(source)
  if type(source) == "function" then return source end
  if type(source) ~= "string" then error("postgres: a source is a function or a string, not a " .. type(source), 0) end
  return function()
    local chunk = source
    source = nil
    return chunk
  end
end

function Db.copy_in(db, query, source)
  local pool = rawget(db, POOL)
  local of, sql = options_of(pool.options, query)
  local number, why, code, fields = with_link(pool, of.deadline, copy_into, of, sql, source_of(source))

  if number then return number end
  return nil, why, code, fields
end

function Transaction.copy_in(transaction, query, source)
  local state = state_of(transaction)
  local of, sql = options_of(state.link.pool.options, query)

  return act(state, sql, copy_into, of, sql, source_of(source))
end

local function begin_copy_out(cursor)
  local link, why = take(cursor, cursor.of.deadline)

  if not link then return nil, why end
  return begin_copy(link, cursor.of, cursor.sql, "out")
end

-- The next row of text; nil: all rows have come.
local function next_copied(guard)
  if getmetatable(guard) ~= guards then refuse_by_hand() end
  local cursor = guard.holder
  local of = cursor.of
  local ok, why, chunk = true, nil, nil

  if cursor.is_last then return nil end
  if not cursor.link then
    of.deadline = c.now() + of.timeout
    ok, why = begin_copy_out(cursor)
  end
  if ok then chunk, why = c.get(cursor.link.conn, of.timeout) end
  if chunk then return chunk end
  cursor.is_last = true
  if chunk == false then ok, why = end_of_copy(cursor.link.conn, of) end
  if not ok or why then error(why, 0) end
end

-- The iterator of a loop, like that of Db.rows.
function Db.copy_out(db, query)
  local pool = rawget(db, POOL)
  local of, sql = options_of(pool.options, query)
  local guard = guard_of{ pool = pool, db = db, of = of, sql = sql }

  return next_copied, guard, nil, guard
end

-- ---- Notifications ----

local Subscription = {}
local listeners = setmetatable({}, { __mode = "k" }) -- by subscription: its own link

function Subscription.read(sub, timeout)
  local listener = listeners[sub]
  local message, why, code

  if listener.why then return nil, listener.why, listener.code end
  message, why, code = c.notified(listener.link.conn, timeout)
  if message then return message end
  if code then listener.why, listener.code = why, code end
  return nil, why, code
end

function Subscription.messages(sub)
  return function()
    local message, why = Subscription.read(sub)

    if not message and why ~= "closed" then error(why, 0) end
    return message
  end
end

-- The connection is closed, because otherwise it would go on to get notifications that no other task wants.
function Subscription.close(sub)
  end_link(listeners[sub].link)
end

local subscriptions = {
  __index = Subscription, __close = Subscription.close, __gc = Subscription.close, __name = "sxe.postgres.subscription",
  __metatable = false,
}

local function quote_name(name)
  if type(name) ~= "string" or name == "" or find(name, "\0", 1, true) then
    error("postgres: a channel is a string, not empty and without a zero byte", 0)
  end
  return '"' .. gsub(name, '"', '""') .. '"'
end

local function listen_in(link, of, sql, db)
  local rows, why, code, fields = exchange(link, of, "script", "", sql)

  if not rows then return nil, why, code, fields end
  local sub = setmetatable({}, subscriptions)
  listeners[sub] = { link = link, db = db }
  link.holder = listeners[sub]
  return sub
end

function Db.listen(db, channels)
  local pool = rawget(db, POOL)
  local parts = {}

  if type(channels) ~= "table" or #channels == 0 then error("postgres: a list of channels is expected", 0) end
  for i, name in ipairs(channels) do parts[i] = "LISTEN " .. quote_name(name) end
  local of, sql = options_of(pool.options, concat(parts, "; "))
  local sub, why, code, fields = with_link(pool, of.deadline, listen_in, of, sql, db)
  if sub then return sub end
  return nil, why, code, fields
end

function Db.transaction(db, fn, options)
  check_function(fn)
  local begin, retries = check_transaction(options or {})
  local results

  for _ = 0, retries do
    results = pack(transact(rawget(db, POOL), begin, fn))
    if results[1] or not is_conflict(results[3]) then break end
    count "conflicts"
  end
  return unpack(results, 1, results.n)
end

-- Close the pool: calls that wait fail with "closed".
function Db.close(db)
  local pool = rawget(db, POOL)
  local line = pool.line

  pool.is_closed = true
  while pool.links[1] do end_link(pool.links[1]) end
  for i = line.first, line.last do
    if line[i].event then line[i].event:set() end
  end
end

local metatable = { __index = Db, __close = Db.close, __gc = Db.close, __name = "sxe.postgres", __metatable = false }

-- ---- Options ----

-- Check the options, and fill in the defaults.
local function check_options(options)
  local all = {}
  local is_good, why

  if type(options) ~= "table" then
    error("postgres.new: a table of options or a connection string is expected, not a " .. type(options), 0)
  end
  for name, value in pairs(options) do all[name] = value end
  check_values("postgres.new", all, OPTIONS)
  for name, value in pairs(all) do
    if type(value) == "string" and find(value, "\0", 1, true) then
      error("postgres.new: " .. name .. " has a zero byte", 0)
    end
  end
  is_good, why = pcall(c.check_tls, all)
  if not is_good then error("postgres.new: " .. why, 0) end
  for name, value in pairs(DEFAULTS) do
    if all[name] == nil then all[name] = value end
  end
  return all
end

-- The file of the system's authorities. Libpq can find them itself since 16.
local function find_authorities()
  local found = c.version() >= 160000 and "system"

  for _, path in ipairs(AUTHORITIES) do
    local file <close> = io.open(path)

    found = found or file and path
  end
  return found or AUTHORITIES[1]
end

local function add_tls(params, tls)
  if tls == nil then return end
  if tls == false then
    params.sslmode = "disable"
    return
  end
  if tls == true then tls = {} end
  if tls.alpn then error("postgres.new: tls: there is no option 'alpn'", 0) end
  params.sslmode = tls.insecure and "require" or "verify-full"
  params.sslrootcert = not tls.insecure and (tls.ca or find_authorities()) or nil
  params.sslcert, params.sslkey = tls.cert, tls.key
end

-- Use the timeout of a connection string if the options have none. Libpq's 0 means no end.
local function add_connect_timeout(options, text)
  local seconds = tonumber(text or CONNECT_TIMEOUT)

  if not seconds then error("postgres.new: conninfo: connect_timeout is not a number: " .. text, 0) end
  options.connect_timeout = options.connect_timeout or seconds > 0 and min(seconds, NEVER) or NEVER
end

-- The parameters for libpq: from the environment, the connection string, and the options.
local function params_of(options)
  local params = c.defaults()
  local from, why = {}, nil

  if options.conninfo then from, why = c.parse(options.conninfo) end
  if not from then error("postgres.new: conninfo: " .. why, 0) end
  add_connect_timeout(options, from.connect_timeout)
  for name, value in pairs(from) do params[name] = value end
  for name, option in pairs{ host = "host", user = "user", password = "password", dbname = "database",
    application_name = "application_name" } do
    if options[option] then params[name] = options[option] end
  end
  if options.host then params.hostaddr = nil end
  if options.port then params.port = tostring(options.port) end
  add_tls(params, options.tls)
  -- Kerberos would ask the network while the loop stands still.
  params.gssencmode, params.client_encoding = "disable", "UTF8"
  params.fallback_application_name = params.fallback_application_name or "sxe"
  params.connect_timeout = nil -- libpq does not look at it here
  return params
end

local postgres = { null = json.null, json = json.encode }

function postgres.new(options)
  if type(options) == "string" then options = { conninfo = options } end
  local all = check_options(options)
  local params = params_of(all)

  counters = counters or stats{ "queries", "pipelines", "connects", "failures", "waits", "prepared_again", "conflicts",
    name = "postgres" }
  local pool = { options = all, params = params, links = {}, spare_guards = {}, spare_events = {}, line = { first = 1, last = 0 },
    tls_name = type(all.tls) == "table" and all.tls.name }
  return setmetatable({ [POOL] = pool }, metatable)
end

-- ---- Values ----

function postgres.bytea(bytes)
  if type(bytes) ~= "string" then error("postgres.bytea: a string is expected, not a " .. type(bytes), 0) end
  return "\\x" .. encoding.encode_hex(bytes)
end

local function quote(text)
  return '"' .. gsub(text, '["\\]', "\\%0") .. '"'
end

-- The number of items in a list: its field n, because nil is null, or its length.
local function items_of(list)
  if list.n == nil then return #list end
  return tointeger(list.n) or error("postgres.array: n must be a whole number, not " .. tostring(list.n), 0)
end

-- The text form of a list in PostgreSQL. Nils cost the writer of a list nothing, so they are counted, in inner lists,
-- too.
local function text_of_list(list, depth, nils)
  local texts = {}

  if depth > 6 then error("postgres.array: lists are nested deeper than 6", 0) end
  for i = 1, items_of(list) do
    local value = list[i]
    local kind = type(value)

    if value == nil then nils.number = nils.number + 1 end
    if nils.number > NILS then error("postgres.array: more than " .. NILS .. " items are nil, by the field n", 0) end
    if value == nil or value == json.null then
      texts[i] = "NULL"
    elseif kind == "table" then
      texts[i] = text_of_list(value, depth + 1, nils)
    elseif kind == "number" or kind == "boolean" then
      texts[i] = kind == "number" and c.text_of(value) or tostring(value)
    elseif kind == "string" then
      texts[i] = quote(value)
    else
      error("postgres.array: item " .. i .. " is a " .. kind, 0)
    end
  end
  return "{" .. concat(texts, ",") .. "}"
end

function postgres.array(list)
  if type(list) ~= "table" then error("postgres.array: a list is expected, not a " .. type(list), 0) end
  return text_of_list(list, 1, { number = 0 })
end

return postgres, json.decode
