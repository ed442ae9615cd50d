-- SPDX-License-Identifier: MIT
--
-- require "sxe.client": requests over HTTP/1.1 as calls that return. It gets from sxe-lua-client.c what reads and writes
-- the protocol, and returns the module. A target is a scheme, a host, a port and options of TLS; each has its idle
-- connections. A call that goes through a proxy has the proxy as a part of its target.
--
--   request -> follow, for each redirect: exchange -> an idle connection, or a new one -> send -> receive -> Response
--                                                                      '-> through a proxy, for https: tunnel
local c = ...
local json, task, tcp = require "sxe.json", require "sxe.task", require "sxe.tcp"
local concat, remove = table.concat, table.remove
local byte, char, find, format, gsub = string.byte, string.char, string.find, string.format, string.gsub
local lower, match, sub, upper = string.lower, string.match, string.sub, string.upper
local error, getmetatable, ipairs, max, min = error, getmetatable, ipairs, math.max, math.min
local next, pairs = next, pairs
local rawget, setmetatable, sort, tostring, type = rawget, setmetatable, table.sort, tostring, type
local number_type <const> = math.type

local REDIRECTS <const> = 5
local TIMEOUT <const>, CONNECT_TIMEOUT <const> = 30, 10 -- seconds
local BODY_MAX <const> = 8 << 20                        -- bytes
local IDLE_MAX <const>, IDLE_S <const> = 8, 15          -- idle connections of a target, and how long each may stay
local IDLE_ALL <const> = 32                             -- idle connections
local ENFILE <const> = 23                               -- all sockets of the script are in use
local EBADMSG <const> = 74                              -- a compressed body is damaged, or not whole
local CLOSE_S <const> = 1                               -- seconds that the close of idle connections may take
local A_TURN <const> = 1e-6                             -- seconds: a wait of one turn of the loop
local INTERIM_MAX <const> = 100                         -- responses with a status of 1xx before the one that counts

local OPTIONS <const> = {
  url = "string", method = "string", headers = "table", query = "table", body = "string or function", json = "any",
  form = "table", auth = "table", timeout = "number", connect_timeout = "number", first_byte_timeout = "number",
  redirects = "number", on_redirect = "function", allow_downgrade = "boolean", body_max = "number", stream = "boolean",
  public_only = "boolean", tls = "table", decode = "boolean", cookies = "table",
  multipart = "table", trace = "boolean", proxy = "string or boolean",
}
local IDEMPOTENT <const> = { GET = true, HEAD = true, OPTIONS = true, TRACE = true, PUT = true, DELETE = true }
local SECRETS <const> = { authorization = true, cookie = true, ["proxy-authorization"] = true }

-- ---- URLs ----

local function escape(text)
  return (gsub(text, "[^%w%-._~]", function(ch) return format("%%%02X", byte(ch)) end))
end

local function unescape(text)
  return (gsub(text, "%%(%x%x)", function(hex) return char(tonumber(hex, 16)) end))
end

-- { a = 1, b = { "x", "y" } } as a=1&b=x&b=y, its names in order.
local function encode(fields)
  local names, parts = {}, {}

  for name in pairs(fields) do names[#names + 1] = tostring(name) end
  sort(names)
  for _, name in ipairs(names) do
    local value = fields[name]

    for _, one in ipairs(type(value) == "table" and value or { value }) do
      parts[#parts + 1] = escape(name) .. "=" .. escape(tostring(one))
    end
  end
  return concat(parts, "&")
end

-- "user:password", host and port of an authority. The first is nil if there is no "@", the host if it is not valid.
local function parse_authority(authority, default)
  local user, host, port = match(authority, "^(.*)@"), nil, nil

  authority = match(authority, "([^@]*)$")
  host, port = match(authority, "^(%[[%x:.]+%]):?(%d*)$")
  if not host then host, port = match(authority, "^([%w%-._~]+):?(%d*)$") end
  port = port == "" and default or tonumber(port)
  if not host or port < 1 or port > 65535 then return user, nil end
  return user, lower(host), port
end

local function parse_url(text)
  local scheme, authority, rest = match(text, "^(%a[%w+.-]*)://([^/?#]*)([^#]*)")
  local user, host, port, default

  scheme = scheme and lower(scheme)
  default = scheme == "http" and 80 or scheme == "https" and 443
  if not default then return nil, "client: not a URL of http or https: " .. text end
  user, host, port = parse_authority(authority, default)
  if not host then return nil, "client: not a host in a URL: " .. text end
  if sub(rest, 1, 1) ~= "/" then rest = "/" .. rest end
  -- Bytes that a URL cannot have are escaped; those that are escaped stay.
  rest = gsub(rest, "[^%w%-._~:/?%[%]@!$&'()*+,;=%%]", function(ch) return format("%%%02X", byte(ch)) end)
  return { scheme = scheme, host = host, port = port, target = rest, user = user,
    authority = port == default and host or host .. ":" .. format("%d", port) }
end

-- RFC 3986, 5.2.4.
local function without_dots(path)
  local segments = {}

  for segment in path:gmatch("/([^/]*)") do
    if segment == ".." then remove(segments) elseif segment ~= "." then segments[#segments + 1] = segment end
  end
  if find(path, "/%.%.?$") then segments[#segments + 1] = "" end
  return "/" .. concat(segments, "/")
end

local function url_text(url)
  return url.scheme .. "://" .. url.authority .. url.target
end

-- The URL that Location names, seen from there (RFC 3986, 5.2.2).
local function resolve(base, location)
  local path, query

  if find(location, "^%a[%w+.-]*:") then return parse_url(location) end
  if sub(location, 1, 2) == "//" then return parse_url(base.scheme .. ":" .. location) end
  path, query = match(location, "^([^?#]*)([^#]*)")
  if path == "" then
    path = match(base.target, "^[^?]*")
    if query == "" then query = match(base.target, "%?.*") or "" end
  elseif sub(path, 1, 1) ~= "/" then
    path = match(base.target, "^([^?]*/)") .. path
  end
  return parse_url(base.scheme .. "://" .. base.authority .. without_dots(path) .. query)
end

local function is_same_origin(a, b)
  return a.scheme == b.scheme and a.host == b.host and a.port == b.port
end

local cookies <const> = c.cookies(c, parse_url)
local make_multipart <const> = c.multipart(c)

-- ---- Requests ----

local BASE64 <const> = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function base64(text)
  return (gsub(text, "..?.?", function(part)
    local a, b, d = byte(part, 1, 3)
    local bits = a << 16 | (b or 0) << 8 | (d or 0)
    local digits = {}

    for i = 0, 3 do
      local at = bits >> (18 - 6 * i) & 63

      digits[i + 1] = i <= #part and sub(BASE64, at + 1, at + 1) or "="
    end
    return concat(digits)
  end))
end

local function basic(user, password)
  return "Basic " .. base64(user .. ":" .. password)
end

-- The credentials "user:password" of a URL, in which bytes may be escaped.
local function basic_of(text)
  return basic(unescape(match(text, "^[^:]*")), unescape(match(text, ":(.*)$") or ""))
end

local proxies <const> = c.proxy(c, parse_authority, basic_of)

-- One of body, json and form as text or function, and its type.
local function body_of(options)
  if options.json ~= nil then return json.encode(options.json), "application/json" end
  if options.form then return encode(options.form), "application/x-www-form-urlencoded" end
  return options.body, nil
end

local function check_options(options)
  local bodies = 0

  for name, value in pairs(options) do
    local wanted = OPTIONS[name]

    if not wanted then error("client: there is no option '" .. tostring(name) .. "'", 0) end
    if wanted ~= "any" and not find(wanted, type(value), 1, true) then
      error("client: " .. name .. " must be a " .. wanted .. ", not a " .. type(value), 0)
    end
    if wanted == "number" and not (value >= 0) then
      error("client: " .. name .. " must be 0 or more, not " .. value, 0)
    end
    if name == "redirects" and number_type(value) ~= "integer" then
      error("client: redirects must be a whole number, not " .. value, 0)
    end
    if name == "proxy" and value == true then error("client: proxy must be a URL or false, not true", 0) end
    if name == "body" or name == "json" or name == "form" or name == "multipart" then bodies = bodies + 1 end
  end
  if not options.url then error("client: a request needs its url", 0) end
  if options.cookies and getmetatable(options.cookies) ~= cookies.class then error("client: cookies must come from client.jar()", 0) end
  if bodies > 1 then error("client: a request has one of body, json, form and multipart", 0) end
end

-- Whether a value of the field Connection asks for its end.
local function has_close(value)
  return find("," .. gsub(lower(value), "[ \t]", "") .. ",", ",close,", 1, true) ~= nil
end

-- Whether the request is sent to a proxy as it is, which reads it and sends another one to the host. For https the proxy
-- makes a tunnel instead, and does not see the request.
local function is_forwarded(r)
  return r.proxy and r.url.scheme == "http"
end

local function is_for_proxy(name)
  return lower(name) == "proxy-authorization"
end

-- The credentials for the proxy: those that the script's fields have, or the proxy's URL.
local function proxy_login(r)
  for name, value in pairs(r.headers) do
    if is_for_proxy(name) then return tostring(value) end
  end
  return r.proxy.authorization
end

-- Fields as {name, value, name, value ...}, and a set of their names. Sets r.is_last: the script's fields ask for the
-- connection's end, so no other request is sent on it (RFC 9112, 9.6). Credentials for a proxy are not for the host.
local function fields_of(r)
  local fields, has = {}, {}

  for name, value in pairs(r.headers) do
    has[lower(name)] = not is_for_proxy(name)
    for _, one in ipairs(is_for_proxy(name) and {} or type(value) == "table" and value or { value }) do
      fields[#fields + 1], fields[#fields + 2] = tostring(name), tostring(one)
      if lower(name) == "connection" and has_close(tostring(one)) then r.is_last = true end
    end
  end
  local function add(name, value)
    if value and not has[lower(name)] then fields[#fields + 1], fields[#fields + 2] = name, value end
  end
  add("Accept", "*/*")
  add("User-Agent", "sxe")
  add("Accept-Encoding", r.is_decoded and "gzip, deflate")
  add("Authorization", r.authorization)
  add("Cookie", r.options.cookies and cookies.header_of(r.options.cookies, r.url))
  add("Content-Type", r.body and r.content_type)
  add("Proxy-Authorization", is_forwarded(r) and proxy_login(r))
  if not has.traceparent then
    add("traceparent", r.traceparent)
    add("tracestate", r.tracestate)
  end
  return fields
end

local function tls_of(options)
  local tls = { alpn = "http/1.1" }

  for name, value in pairs(options.tls or {}) do tls[name] = value end
  return tls
end

-- A script that names codings or a range itself gets the body as it comes: it decodes, and a part cannot be decoded.
local function asks_for_all(r)
  for name in pairs(r.headers) do
    if lower(name) == "accept-encoding" or lower(name) == "range" then return false end
  end
  return r.method ~= "HEAD"
end

local function request_of(options)
  local r = { method = upper(options.method or "GET"), options = options, headers = {}, began = c.now() }
  local url, why = parse_url(options.url)
  local auth = options.auth

  if not url then return nil, why end
  if options.query and next(options.query) ~= nil then
    url.target = url.target .. (find(url.target, "?", 1, true) and "&" or "?") .. encode(options.query)
  end
  for name, value in pairs(options.headers or {}) do
    if is_for_proxy(name) and type(value) == "table" then
      error("client: the header " .. name .. " must be one value, not a table", 0)
    end
    r.headers[name] = value
  end
  r.authorization = auth and basic(auth[1] or auth.user, auth[2] or auth.password or "") or
    url.user and basic_of(url.user)
  if options.trace ~= false then r.traceparent, r.tracestate = c.trace() end
  r.url = url
  r.tls = tls_of(options)
  r.body, r.content_type = body_of(options)
  if options.multipart then
    r.content_type, r.length, r.restart = make_multipart(options.multipart)
    if not r.content_type then return nil, r.length, r.restart end
    r.body = r.restart()
  end
  r.is_decoded = c.new_inflate ~= nil and options.decode ~= false and asks_for_all(r)
  r.deadline = r.began + (options.timeout or TIMEOUT)
  return r
end

-- ---- Connections ----

local idle = {} -- target -> a list of {conn =, at =}, the youngest last

-- Connections with other authorities, certificates or names are not of the same target: what was verified differs. A
-- connection to a proxy that forwards requests is for all hosts.
local function key_of(r)
  local url, tls = r.url, r.tls
  local key = url.scheme .. "://" .. url.host .. ":" .. format("%d", url.port)
  local proxy = r.proxy and "\0" .. r.proxy.name .. "\0" .. tostring(proxy_login(r)) or ""

  if url.scheme == "http" then return r.proxy and proxy or key end
  return concat({ key, tostring(tls.ca), tostring(tls.cert), tostring(tls.key), tostring(tls.name),
    tostring(tls.insecure), proxy }, "\0")
end

-- An idle connection, of which nothing is known but that its server did not close it; nil: there is none.
local function take_idle(key)
  local list = idle[key]

  while list and #list > 0 do
    local one = remove(list)
    local _, why

    if #list == 0 then idle[key] = nil end
    if c.now() - one.at < IDLE_S then _, why = one.conn:read(nil, A_TURN) end
    if why == "timeout" then return one.conn end
    one.conn:close()
    list = idle[key] -- others may have changed it meanwhile
    if why == "cancelled" then return nil, why end
  end
end

local function close_idle(is_old)
  for key, list in pairs(idle) do
    while list[1] and is_old(list[1]) do remove(list, 1).conn:close() end
    if not list[1] then idle[key] = nil end
  end
end

-- If there are too many of all targets.
local function drop_oldest()
  local oldest, number = nil, 0

  for key, list in pairs(idle) do
    number = number + #list
    if not oldest or list[1].at < idle[oldest][1].at then oldest = key end
  end
  if number <= IDLE_ALL then return end
  remove(idle[oldest], 1).conn:close()
  if not idle[oldest][1] then idle[oldest] = nil end
end

local function put_idle(key, conn)
  local now = c.now()

  close_idle(function(one) return now - one.at >= IDLE_S end)
  idle[key] = idle[key] or {}
  idle[key][#idle[key] + 1] = { conn = conn, at = now }
  if #idle[key] > IDLE_MAX then remove(idle[key], 1).conn:close() end
  drop_oldest()
end

local function left_of(r)
  return max(r.deadline - c.now(), A_TURN)
end

-- A read of bytes that are there already never times out: a server that goes on sending must not outlast the deadline.
local function read_some(r, conn, timeout)
  if c.now() >= r.deadline then return nil, "timeout" end
  return conn:read(nil, timeout)
end

local function dial(host, port, options)
  local conn, why, code = tcp.connect(host, port, options)
  local last = c.now() + min(options.timeout, CLOSE_S)

  if code ~= ENFILE or next(idle) == nil then return conn, why, code end
  close_idle(function() return true end) -- their sockets are what is missing, and closing takes turns of the loop
  repeat
    task.sleep(A_TURN)
    conn, why, code = tcp.connect(host, port, options)
  until code ~= ENFILE or c.now() > last
  return conn, why, code
end

local function is_allowed(r, conn)
  return not r.options.public_only or c.is_public(conn.peer_addr or "")
end

-- ---- Sending ----

-- The length of what a function of the script returns is not known, that of multipart is. Writes that fit into the output
-- never wait, so the deadline is looked at for each part.
local function send_parts(r, conn)
  while true do
    local part, why, code = r.body()
    local ok = true

    if not part and why then return nil, why, code end
    if part and type(part) ~= "string" then
      error("client: the body's function must return a string or nil, not a " .. type(part), 0)
    end
    if c.now() >= r.deadline then return nil, "timeout" end
    conn.timeout = left_of(r)
    if not part then return r.length or conn:write("0\r\n\r\n") end
    if r.length then
      ok, why, code = conn:write(part)
    elseif #part > 0 then
      ok, why, code = conn:write(format("%x\r\n", #part), part, "\r\n")
    end
    if not ok then return nil, why, code end
  end
end

local function send(r, conn)
  local is_text = type(r.body) ~= "function"
  local length = is_text and #(r.body or "") or r.length or -1
  local code
  local target = is_forwarded(r) and url_text(r.url) or r.url.target
  local head, why = c.write_head(r.method, target, r.url.authority, fields_of(r), length)

  if not head then return nil, why end
  conn.timeout = left_of(r)
  if is_text then return conn:write(head, r.body or "") end
  head, why, code = conn:write(head)
  if not head then return nil, why, code end
  return send_parts(r, conn)
end

-- ---- The response ----

local Headers = {}

function Headers.__index(headers, name)
  return type(name) == "string" and rawget(headers, lower(name)) or nil
end

local Response = {}

-- The next bytes of the body, from what is there already or from the connection; "" at its end.
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
      if text == "" then return nil, "client: the compressed body ended before its data did", EBADMSG end
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

-- Have the response decoded if it is compressed in a way that was asked for: true, or nil, why.
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

-- A body that is not whole ends with a reset, which gives the socket back at once: a close would wait for the server.
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
    conn:close()
  end
end

-- Some bytes of the body; nil at its end; or nil, why.
function Response:read()
  local state = self.state
  local data, why, code

  if not state.conn then return nil, state.why, state.code end
  data, why, code = state.read(state)
  if not data then
    state.why, state.code = why, code
    if why == "closed" then state.why = "client: the connection ended before the body did" end
    finish(state, false)
    return nil, state.why, state.code
  end
  if data ~= "" then return data end
  finish(state, true)
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
  finish(self.state, false)
end

local function read_whole(response, body_max)
  local parts, length = {}, 0
  local data, why, code

  repeat
    data, why, code = response:read()
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

-- The head of the response, after interim ones, and the bytes after it; or nil, why, code, whether not a byte came.
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

-- ---- Connecting ----

local guards = { __close = function(guard) if guard.conn then c.reset(guard.conn) end end }

-- A timeout and a cancellation are not the proxy's fault.
local function fail_at_proxy(r, why, code)
  if why == "timeout" or why == "cancelled" then return nil, why, code end
  return nil, "client: the proxy " .. r.proxy.name .. ": " .. (match(why, "^client: (.*)") or why), code
end

-- Have the proxy connect to the host, and begin TLS with that host. Bytes that a proxy sends of its own accord after its
-- reply must not be taken for the host's.
local function tunnel(r, conn)
  local authority = r.url.host .. ":" .. format("%d", r.url.port)
  local login = proxy_login(r)
  local head, why = c.write_head("CONNECT", authority, authority,
    { "User-Agent", "sxe", login and "Proxy-Authorization", login }, 0)
  local ok, rest, code

  if not head then return nil, why end
  conn.timeout = left_of(r)
  ok, why, code = conn:write(head)
  if not ok then return fail_at_proxy(r, why, code) end
  head, rest, code = receive_head(r, conn)
  if not head then return fail_at_proxy(r, rest, code) end
  if head.status // 100 ~= 2 then return nil, proxies.refusal(r.proxy, login, authority, head) end
  if rest ~= "" then return nil, "client: the proxy " .. r.proxy.name .. " sent bytes before the handshake of TLS" end
  return c.start_tls(conn, gsub(r.url.host, "[%[%]]", ""), { tls = r.tls, timeout = left_of(r) })
end

local function open_by_proxy(r, timeout)
  local until_then = { method = "CONNECT", url = r.url, proxy = r.proxy, tls = r.tls, headers = r.headers, options = {},
    deadline = c.now() + timeout }
  local guard <close> = setmetatable({}, guards)
  local conn, ok, why, code

  conn, why, code = dial(r.proxy.host, r.proxy.port, { timeout = timeout })
  if not conn then return fail_at_proxy(r, why, code) end
  if is_forwarded(r) then return conn end
  guard.conn = conn
  ok, why, code = tunnel(until_then, conn)
  if not ok then return nil, why, code end
  guard.conn = nil
  return conn
end

local function open(r)
  local timeout = min(left_of(r), r.options.connect_timeout or CONNECT_TIMEOUT)

  if r.proxy then return open_by_proxy(r, timeout) end
  return dial(gsub(r.url.host, "[%[%]]", ""), r.url.port,
    { timeout = timeout, tls = r.url.scheme == "https" and r.tls, public_only = r.options.public_only })
end

-- ---- One request ----

-- Try the request once on this connection. The last result: whether it may be tried again on another connection.
local function try(r, conn, is_reused)
  local guard <close> = setmetatable({ conn = conn }, guards)
  local ok, why, code, response, is_silent

  if not is_allowed(r, conn) then return nil, "client: the address is not public: " .. tostring(conn.peer_addr) end
  ok, why, code = send(r, conn)
  if not ok then return nil, why, code, is_reused and why ~= "timeout" and why ~= "cancelled" end
  response, why, code, is_silent = receive(r, conn)
  if response then guard.conn = nil end
  return response, why, code, is_silent and is_reused and why ~= "timeout" and why ~= "cancelled"
end

local function send_and_receive(r)
  local conn, why = take_idle(key_of(r))
  local response, code, again

  if why then return nil, why end
  if conn then
    response, why, code, again = try(r, conn, true)
    if not again or not IDEMPOTENT[r.method] or type(r.body) == "function" then return response, why, code end
  end
  conn, why, code = open(r)
  if not conn then return nil, why, code end
  response, why, code = try(r, conn, false)
  return response, why, code
end

-- Each redirect has its own host, so it may have another proxy, or none.
local function exchange(r)
  local response, why, code

  r.proxy, why = proxies.find(r.url, r.options.proxy)
  if r.proxy == nil then return nil, why end
  if r.proxy and r.options.public_only then
    return nil, "client: public_only does not go with a proxy, which looks the host up itself: give proxy = false, or " ..
      "have the proxy refuse private addresses"
  end
  response, why, code = send_and_receive(r)
  if response and response.status == 407 and is_forwarded(r) then
    response:close()
    return nil, proxies.refusal(r.proxy, proxy_login(r), nil, response)
  end
  return response, why, code
end

-- ---- Redirects ----

-- The request that a redirect asks for; nil: it asks for none, or nil, why.
local function next_request(r, response)
  local status, location = response.status, response.headers.location
  local url, why

  if not location or not (status >= 301 and status <= 303 or status == 307 or status == 308) then return nil end
  url, why = resolve(r.url, location)
  if not url then return nil, why end
  if r.url.scheme == "https" and url.scheme == "http" and not r.options.allow_downgrade then
    return nil, "client: a redirect leads from https to http, which allow_downgrade would permit: " .. url_text(url)
  end
  if status >= 307 and type(r.body) == "function" and not r.restart then
    return nil, "client: a redirect wants a body again that is gone"
  end
  if r.options.on_redirect and r.options.on_redirect(url_text(url), response) == false then return nil end
  if not is_same_origin(url, r.url) then
    r.authorization = nil
    r.tls.name, r.tls.cert, r.tls.key = nil, nil, nil -- they are for the first host
    for name in pairs(r.headers) do
      if SECRETS[lower(name)] then r.headers[name] = nil end
    end
  end
  if status == 303 and r.method ~= "HEAD" or status < 303 and r.method == "POST" then
    r.method, r.body, r.content_type = "GET", nil, nil
    for name in pairs(r.headers) do
      if find(lower(name), "^content%-") then r.headers[name] = nil end
    end
  end
  if r.body and r.restart then r.body = r.restart() end
  r.url = url
  return r
end

local function follow(r)
  local redirects = r.options.redirects or REDIRECTS

  while true do
    local response, why, code = exchange(r)
    local again

    if not response then return nil, why, code end
    if r.options.cookies then cookies.take_all(r.options.cookies, r.url, response.fields) end
    again, why, code = decode(response)
    if not again then
      response:close()
      return nil, why, code
    end
    again, why = next_request(r, response)
    if not again or redirects == 0 and r.options.redirects == 0 then
      if why then
        response:close()
        return nil, why
      end
      if r.options.stream then return response end
      return read_whole(response, r.options.body_max or BODY_MAX)
    end
    if redirects == 0 then
      response:close()
      return nil, "client: too many redirects"
    end
    redirects = redirects - 1
    read_whole(response, 65536) -- the connection may be used again, unless there is much
  end
end

local client = {}

function client.jar()
  return setmetatable({ all = {} }, cookies.class)
end

function client.request(options)
  local r, why, code

  if type(options) ~= "table" then error("client.request: a table of options is expected, not a " .. type(options), 0) end
  check_options(options)
  r, why, code = request_of(options)
  if not r then return nil, why, code end
  return follow(r)
end

for _, method in ipairs{ "get", "head", "post", "put", "patch", "delete" } do
  client[method] = function(url, options)
    local all = {}

    for name, value in pairs(options or {}) do all[name] = value end
    if all.url ~= nil or all.method ~= nil then
      error("client." .. method .. " has its URL and method already: use client.request to name others", 0)
    end
    all.url, all.method = url, method
    return client.request(all)
  end
end

return client
