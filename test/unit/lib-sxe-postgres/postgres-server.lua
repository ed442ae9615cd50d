-- SPDX-License-Identifier: MIT
-- A server of PostgreSQL's protocol (manual, chapter 55) that a test plays, in the same process.
--
--   local server = serving{ ["select 1"] = { columns = { { "a", INT4 } }, rows = { { "1" } } } }
--
-- A query is answered by the entry of its text: columns and rows, a tag, an error, or a function that gets the values and
-- the session, and returns such an entry, or MUTE for no reply before a request to cancel the query, or nil to close. The
-- server logs what it gets. It ignores the first requests to cancel queries, if `deaf` is their number.
local task, tcp = require "sxe.task", require "sxe.tcp"
local MUTE <const> = "no reply"
local P = { MUTE = MUTE }

local function message(kind, body)
  return kind .. string.pack(">I4", #body + 4) .. body
end

local function ready(session)
  return message("Z", session.status)
end

local function error_message(fields)
  local body = {}

  for name, value in pairs(fields) do body[#body + 1] = name .. value .. "\0" end
  if not fields.S then body[#body + 1] = "SERROR\0VERROR\0" end
  return message("E", table.concat(body) .. "\0")
end

local function description(columns)
  local body = { string.pack(">I2", #columns) }

  for _, column in ipairs(columns) do
    body[#body + 1] = string.pack(">zI4I2I4i2i4I2", column[1], 0, 0, column[2], -1, -1, 0)
  end
  return message("T", table.concat(body))
end

local function data_row(row, number)
  local body = { string.pack(">I2", number) }

  for i = 1, number do
    body[#body + 1] = row[i] and string.pack(">s4", row[i]) or string.pack(">i4", -1)
  end
  return message("D", table.concat(body))
end

-- What a transaction's commands do to the session.
local function built_in(sql, session)
  if sql:find "^BEGIN" then session.status = "T" return { tag = "BEGIN" } end
  if sql == "COMMIT" or sql == "ROLLBACK" then session.status = "I" return { tag = sql } end
  if sql:find "^SAVEPOINT" then return { tag = "SAVEPOINT" } end
  if sql:find "^RELEASE" then return { tag = "RELEASE" } end
  if sql:find "^ROLLBACK TO" then session.status = "T" return { tag = "ROLLBACK" } end
  local name = sql:match "^DEALLOCATE (.*)"
  if name and not session.statements[name] then return { error = { C = "26000", M = "no such statement" } } end
  if name then
    session.statements[name] = nil
    return { tag = "DEALLOCATE" }
  end
  return { error = { C = "42601", M = "no such query: " .. sql } }
end

local function answer_of(server, sql, session, values)
  local answer = server.answers[sql]

  if type(answer) == "function" then answer = answer(values, session) elseif not answer then answer = built_in(sql, session) end
  if type(answer) == "table" and answer.error and session.status == "T" then session.status = "E" end
  return answer
end

-- A server that gets the bytes of COPY, up to the client's end; the answer is what follows.
local function read_copy(conn, answer)
  local bytes = {}

  conn:write(message("G", "\0\0\0"))
  while true do
    local kind = conn:read(1)
    if not kind then return nil end
    local body = conn:read(string.unpack(">I4", conn:read(4)) - 4) or ""
    if kind == "d" then bytes[#bytes + 1] = body end
    if kind == "c" then return answer(table.concat(bytes)) end
    if kind == "f" then return { error = { C = "57014", M = "COPY failed: " .. body:sub(1, -2) } } end
  end
end

-- Rows and the tag; or an error.
local function results(answer)
  local list = {}

  if answer.raw then return answer.raw end
  if answer.error then return error_message(answer.error) end
  for _, row in ipairs(answer.rows or {}) do list[#list + 1] = data_row(row, #answer.columns) end
  list[#list + 1] = message("C", (answer.tag or "SELECT " .. #(answer.rows or {})) .. "\0")
  return table.concat(list)
end

local function read_values(body, at)
  local values, formats, number = {}, nil, nil

  formats, at = string.unpack(">I2", body, at)
  at = at + 2 * formats
  number, at = string.unpack(">I2", body, at)
  for i = 1, number do
    local length
    length, at = string.unpack(">i4", body, at)
    if length >= 0 then
      values[i] = body:sub(at, at + length - 1)
      at = at + length
    end
  end
  return values
end

local steps = {}

function steps.P(server, session, body)
  local name, sql = string.unpack(">zz", body)
  local refused = server.refused and server.refused(sql, session)

  server.log[#server.log + 1] = "prepare " .. sql
  if refused then
    session.is_skipping = true
    return error_message(refused)
  end
  session.statements[name] = sql
  return message("1", "")
end

function steps.B(server, session, body)
  local _, name, at = string.unpack(">zz", body)
  local sql = session.statements[name]

  if sql then
    session.values = read_values(body, at)
    server.log[#server.log + 1] = sql
    session.answer = answer_of(server, sql, session, session.values)
    return message("2", "")
  end
  session.is_skipping = true
  return error_message(server.forgets or
    { C = "26000", M = ('prepared statement "%s" does not exist'):format(name), R = "FetchPreparedStatement" })
end

function steps.D(_, session)
  local answer = session.answer

  if type(answer) == "table" and answer.columns then return description(answer.columns) end
  return message("n", "")
end

function steps.E(_, session)
  local answer = session.answer

  if type(answer) ~= "table" then return answer end
  session.is_skipping = answer.error ~= nil
  return results(answer)
end

-- A server that cannot commit has an error before the end.
function steps.S(server, session)
  local refused = not session.is_skipping and server.commit and server.commit(session) or ""

  session.is_skipping = false
  return refused .. ready(session)
end

function steps.Q(server, session, body)
  local sql = string.unpack("z", body)
  local list = {}
  local answer = answer_of(server, sql, session, {})

  server.log[#server.log + 1] = sql
  if type(answer) ~= "table" then return answer end
  if answer.copy_in then answer = read_copy(session.conn, answer.copy_in) end
  if not answer then return nil end
  if answer.error and session.status == "T" then session.status = "E" end
  for _, one in ipairs(answer[1] and answer or { answer }) do
    if one.columns then list[#list + 1] = description(one.columns) end
    list[#list + 1] = results(one)
  end
  return table.concat(list) .. ready(session)
end

-- Nothing is sent before the end of a batch, as real servers do, unless the script writes itself.
local function serve_messages(server, conn, session)
  local out = {}

  while true do
    local kind = conn:read(1)
    if not kind or kind == "X" then return end
    local body = conn:read(string.unpack(">I4", conn:read(4)) - 4) or ""
    local said = ""

    -- Bytes of a COPY that failed meanwhile are passed over.
    if session.is_mute then
      session.owed = session.owed + (kind == "S" and 1 or 0)
    elseif steps[kind] and (kind == "S" or not session.is_skipping) then
      said = steps[kind](server, session, body)
    end
    if said == nil then return end
    if said == MUTE then session.is_mute, session.owed, said = true, kind == "Q" and 1 or 0, "" end
    out[#out + 1] = said
    if (kind == "S" or kind == "Q") and not session.is_mute then
      server.write(conn, table.concat(out))
      out = {}
    end
  end
end

-- Answer all that a session has got of a query that had no reply.
local function cancel(server, session)
  server.log[#server.log + 1] = "cancel"
  if server.on_cancel then server.on_cancel() end
  server.deaf = server.deaf - 1
  if server.deaf >= 0 or not session.is_mute or session.is_over then return end
  session.is_mute, session.is_skipping = false, session.owed == 0
  server.write(session.conn, error_message{ C = "57014", M = "canceling statement" } .. ready(session):rep(session.owed))
end

local function greet(server, conn, session)
  local head = conn:read(4)
  if not head then return false end
  local length = string.unpack(">I4", head)
  local code = string.unpack(">I4", conn:read(4))
  local body = length > 8 and conn:read(length - 8) or ""

  if code == 80877103 then -- TLS
    conn:write "N"
    return greet(server, conn, session)
  end
  if code == 80877102 then
    cancel(server, server.sessions[string.unpack(">I4", body)])
    return false
  end
  for name, value in body:gmatch "([^\0]+)\0([^\0]*)\0" do session.startup[name] = value end
  if server.refuses then
    conn:write(error_message(server.refuses))
    return false
  end
  if server.is_silent then
    conn:read()
    return false
  end
  server.write(conn, message("R", string.pack(">I4", 0)) .. message("S", "server_version\00015.0\0")
    .. message("N", "SNOTICE\0C00000\0Mhello\0\0") .. message("K", string.pack(">I4I4", session.id, 7)) .. ready(session))
  return true
end

-- A server with answers by the text of queries.
function P.serving(answers)
  local server = { answers = answers, log = {}, connections = 0, sessions = {}, deaf = 0 }

  function server.write(conn, bytes) conn:write(bytes) end
  function server.count(text)
    local number = 0
    for _, line in ipairs(server.log) do number = number + (line:find(text, 1, true) and 1 or 0) end
    return number
  end
  server.tcp = tcp.serve("127.0.0.1", 0, { connections = 140, handler = function(conn)
    local session = { id = server.connections + 1, status = "I", statements = {}, startup = {}, conn = conn }

    server.connections = server.connections + 1
    server.sessions[session.id] = session
    if greet(server, conn, session) then serve_messages(server, conn, session) end
    session.is_over = true
  end })
  return server
end

P.message, P.ready, P.error_message = message, ready, error_message
P.INT4, P.TEXT = 23, 25

-- One row with one value.
function P.one(value, oid)
  return { columns = { { "a", oid or P.TEXT } }, rows = { { value } } }
end

-- Run functions one after the other in a task. At the end `done` is true, or an error.
function P.run(functions)
  done = false
  task.start(function()
    task.sleep(0)
    local ok, why = xpcall(function()
      for _, fn in ipairs(functions) do fn() end
    end, debug.traceback)
    done = ok or why
  end)
end

function P.equal(got, wanted)
  if got ~= wanted then error(("%s, not %s"):format(got, wanted), 2) end
end

function P.fails(wanted, ...)
  local ok, why = ...
  if ok or not tostring(why):find(wanted, 1, true) then error(("%s, not %s"):format(why or ok, wanted), 2) end
end

return P
