-- SPDX-License-Identifier: MIT
--
-- Responses of sxe.client: their heads, and their bodies, whole or in parts. sxe-lua-client.lua calls this file with the
-- functions of sxe-lua-client.c, the requests and the connections, and gets a table of functions.
local c, request, connections = ...
local json, task = require "sxe.json", require "sxe.task"
local concat, error, format, lower = table.concat, error, string.format, string.lower
local match, min, rawget, setmetatable = string.match, math.min, rawget, setmetatable
local sub, type = string.sub, type
local key_of <const>, url_text <const> = request.key_of, request.url_text
local left_of <const>, put_idle <const> = connections.left_of, connections.put_idle
local read_some <const> = connections.read_some

local EBADMSG <const> = 74      -- a compressed body is damaged, or not whole
local INTERIM_MAX <const> = 100 -- responses with a status of 1xx before the final one

local Headers = {}

function Headers.__index(headers, name)
  return type(name) == "string" and rawget(headers, lower(name)) or nil
end

local Response = {}

-- Functions that return the next bytes of the body, those that have come already or more of them; "" at the body's end.
local readers = {}

local function more(self)
  local text = self.buffer

  if text ~= "" then
    self.buffer = ""
    return text
  end
  return read_some(self.request, self.conn, left_of(self.request))
end

function readers.none(_)
  return ""
end

function readers.length(self)
  local text, why, code

  if self.left == 0 then return "" end
  text, why, code = more(self)
  if not text then return nil, why, code end
  if #text > self.left then text, self.buffer = sub(text, 1, self.left), sub(text, self.left + 1) end
  self.left = self.left - #text
  return text
end

function readers.chunked(self)
  local text, data, rest, why, code

  while not self.is_over do
    text, why, code = more(self)
    if not text then return nil, why, code end
    data, rest, self.is_over = c.read_chunks(self.chunks, self.rest .. text)
    if not data then return nil, "client: " .. rest end
    if self.is_over then self.buffer, self.rest = rest, "" else self.rest = rest end
    if data ~= "" then return data end
  end
  return ""
end

function readers.close(self)
  local text, why, code = more(self)

  if not text and why == "closed" then return "" end
  return text, why, code
end

-- The data of a compressed body, in parts that are bounded however well it was compressed.
local function read_decoded(self)
  local why, code

  while true do
    local text, data

    if self.packed == "" and not self.has_more then
      text, why, code = self.raw(self)
      if not text then return nil, why, code end
      if text == "" and c.is_whole(self.inflate) then return "" end
      if text == "" then return nil, "client: the compressed body is incomplete, or bytes follow it", EBADMSG end
      self.packed = text
    end
    data, why, code = c.inflate(self.inflate, self.packed)
    if not data then return nil, code == EBADMSG and "client: the compressed body is damaged" or why, code end
    self.packed, self.has_more = why, code
    if data ~= "" then return data end
  end
end

local CODINGS <const> = { gzip = "gzip", ["x-gzip"] = "gzip", deflate = "deflate" }

-- Servers may put empty elements into a list (RFC 9110, 5.6.1.2). Several codings are left to the caller.
local function coding_of(response)
  local name, rest = match(lower(response.headers["content-encoding"] or ""), "^[%s,]*([^%s,]+)[%s,]*(.*)$")

  return rest == "" and CODINGS[name]
end

-- Prepare to decode the response, if it is compressed in a way that the request asked for. Returns true; or nil, why.
local function decode(response)
  local state = response.state
  local coding = coding_of(response)
  local why, code

  if not coding or not state.request.is_decoded or response.status == 206 or state.read == readers.none then return true end
  state.inflate, why, code = c.new_inflate(coding)
  if not state.inflate then return nil, why, code end
  state.raw, state.read, state.packed = state.read, read_decoded, ""
  response.decoded = coding
  return true
end

-- End a body, and give the connection or its socket back at once: conn:close() would wait for the server. The connection
-- of a body that is not whole is reset.
local function finish(state, is_whole)
  local conn = state.conn

  if not conn then return end
  state.conn = nil
  if state.inflate then c.end_inflate(state.inflate) end
  if not is_whole then
    c.reset(conn)
  elseif state.keep and state.buffer == "" then
    put_idle(state.key, conn)
  else
    c.end_conn(conn)
  end
end

-- Return some bytes of the body; nil at its end; or nil, why. One task at a time: another one would wait at the connection
-- when it serves the next request.
local function read_part(self)
  local state = self.state
  local data, why, code

  if not state.conn then return nil, state.why, state.code end
  data, why, code = state.read(state)
  if not state.conn then return nil, state.why end -- another task called response:close()
  if not data then
    state.why, state.code = why, code
    if why == "closed" then state.why = "client: the connection ended before the body did" end
    finish(state, false)
    return nil, state.why, state.code
  end
  if data ~= "" then return data end
  finish(state, true)
end

function Response:read()
  local state = self.state
  state.turn = state.turn or task.lock()
  local turn <close>, why = state.turn:acquire(left_of(state.request))

  if not turn then return nil, why end
  return read_part(self)
end

function Response:chunks()
  return function()
    local data, why = Response.read(self)

    if not data and why then error(why, 0) end
    return data
  end
end

function Response:json()
  if not self.body then error("client: the body of a stream comes by response:read(), in parts", 0) end
  return json.decode(self.body)
end

function Response:close()
  local state = self.state

  if state.conn then state.why = "closed" end
  finish(state, false)
end

local function read_whole(response, body_max)
  local parts, length = {}, 0
  local data, why, code

  repeat
    data, why, code = read_part(response)
    length = length + #(data or "")
    if length > body_max then
      response:close()
      return nil, "client: the body has more than " .. format("%d", body_max) .. " bytes", 90
    end
    parts[#parts + 1] = data
  until not data
  if why then return nil, why, code end
  response.body = concat(parts)
  return response
end

local metatable = { __index = Response, __close = Response.close, __gc = Response.close, __name = "sxe.client response" }

local function make_response(r, conn, bytes, head)
  local headers, fields, ending = setmetatable({}, Headers), head.fields, head.ending
  local state = { request = r, conn = conn, key = key_of(r), read = readers[ending], buffer = bytes, left = head.length,
    keep = head.keep and not r.is_last and ending ~= "close", rest = "",
    chunks = ending == "chunked" and c.new_chunks() or nil }

  for i = 1, #fields, 2 do
    local name = lower(fields[i])
    local before = rawget(headers, name)

    headers[name] = before and before .. ", " .. fields[i + 1] or fields[i + 1]
  end
  return setmetatable({ status = head.status, reason = head.reason, headers = headers, fields = fields,
    url = url_text(r.url), state = state }, metatable)
end

-- Receive the head of the final response. Returns it and the bytes after it; or nil, why, code, and whether no byte
-- came.
local function receive_head(r, conn)
  local bytes, interim = "", -1
  local first = r.options.first_byte_timeout
  local n, status, reason, fields, ending, length, keep

  repeat
    local data, why, code = read_some(r, conn, bytes == "" and first and min(first, left_of(r)) or left_of(r))

    if not data then
      return nil, why == "closed" and "client: the connection ended before a response" or why, code, bytes == ""
    end
    bytes = bytes .. data
    repeat
      n, status, reason, fields, ending, length, keep = c.parse_head(bytes, r.method)
      if n == false then return nil, "client: the response is not HTTP: " .. status end
      if n then bytes, interim = sub(bytes, n + 1), interim + 1 end
      if interim > INTERIM_MAX then return nil, "client: more than 100 interim responses" end
    until not n or status >= 200
  until n
  return { status = status, reason = reason, fields = fields, ending = ending, length = length, keep = keep }, bytes
end

local function receive(r, conn)
  local head, rest, code, is_silent = receive_head(r, conn)

  if not head then return nil, rest, code, is_silent end
  return make_response(r, conn, rest, head)
end

return { decode = decode, read_whole = read_whole, receive = receive, receive_head = receive_head }
