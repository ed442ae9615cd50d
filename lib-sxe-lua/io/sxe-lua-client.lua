-- SPDX-License-Identifier: MIT
--
-- require "sxe.client": requests over HTTP/1.1 as calls that return. It gets from sxe-lua-client.c what reads and writes
-- the protocol, and returns the module. sxe-lua-client-request.lua has URLs and requests, -connections.lua the idle
-- connections of each target, -response.lua the responses. A call that goes through a proxy has the proxy as a part of
-- its target.
--
--   request -> follow, for each redirect: exchange -> an idle connection, or a new one -> send -> receive -> Response
--                                                                      '-> through a proxy, for https: tunnel
local c = ...
local error, find, format, gsub = error, string.find, string.format, string.gsub
local ipairs, lower, match, min, pairs = ipairs, string.lower, string.match, math.min, pairs
local setmetatable, tostring, type = setmetatable, tostring, type

local request <const> = c.open_request(c)
local cookies <const>, proxies <const> = request.cookies, request.proxies
local fields_of <const>, is_forwarded <const>, key_of <const> = request.fields_of, request.is_forwarded, request.key_of
local proxy_login <const>, url_text <const> = request.proxy_login, request.url_text
local connections <const> = c.open_connections(c)
local dial <const>, left_of <const> = connections.dial, connections.left_of
local responses <const> = c.open_response(c, request, connections)
local read_whole <const>, receive_head <const> = responses.read_whole, responses.receive_head

local REDIRECTS <const> = 5
local CONNECT_TIMEOUT <const> = 10 -- seconds
local BODY_MAX <const> = 8 << 20   -- bytes

local IDEMPOTENT <const> = { GET = true, HEAD = true, OPTIONS = true, TRACE = true, PUT = true, DELETE = true }
local SECRETS <const> = { authorization = true, cookie = true, ["proxy-authorization"] = true }

-- ---- Sending ----

-- Send the parts of the body. The length of a function's parts is not known, that of multipart is. Writes that fit into
-- the output never wait, so the deadline is checked at each part.
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

-- ---- Connecting ----

local guards = { __close = function(guard) if guard.conn then c.reset(guard.conn) end end }

-- Return a failure to reach the proxy. A timeout or a cancellation is not the proxy's fault.
local function fail_at_proxy(r, why, code)
  if why == "timeout" or why == "cancelled" then return nil, why, code end
  return nil, "client: the proxy " .. r.proxy.name .. ": " .. (match(why, "^client: (.*)") or why), code
end

-- Ask the proxy for a tunnel to the host, and begin TLS with that host. Bytes that a proxy sends after its reply must
-- not be taken for the host's.
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

local function is_allowed(r, conn)
  return not r.options.public_only or c.is_public(conn.peer_addr or "")
end

-- Try the request once on this connection. The last result says whether another connection may try again.
local function try(r, conn, is_reused)
  local guard <close> = setmetatable({ conn = conn }, guards)
  local ok, why, code, response, is_silent

  if not is_allowed(r, conn) then return nil, "client: the address is not public: " .. tostring(conn.peer_addr) end
  ok, why, code = send(r, conn)
  if not ok then return nil, why, code, is_reused and why ~= "timeout" and why ~= "cancelled" end
  response, why, code, is_silent = responses.receive(r, conn)
  if response then guard.conn = nil end
  return response, why, code, is_silent and is_reused and why ~= "timeout" and why ~= "cancelled"
end

local function send_and_receive(r)
  local conn, why = connections.take_idle(key_of(r))
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

-- Send the request to its host, through a proxy if there is one. Each redirect looks for a proxy again, because its
-- host may have another one, or none.
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

-- The request that a redirect asks for; nil: the response is no redirect, or, with a reason, cannot be followed.
local function next_request(r, response)
  local status, location = response.status, response.headers.location
  local url, why

  if not location or not (status >= 301 and status <= 303 or status == 307 or status == 308) then return nil end
  url, why = request.resolve(r.url, location)
  if not url then return nil, why end
  if r.url.scheme == "https" and url.scheme == "http" and not r.options.allow_downgrade then
    return nil, "client: a redirect leads from https to http, which allow_downgrade would permit: " .. url_text(url)
  end
  if status >= 307 and type(r.body) == "function" and not r.restart then
    return nil, "client: a redirect wants a body again that is gone"
  end
  if r.options.on_redirect and r.options.on_redirect(url_text(url), response) == false then return nil end
  if not request.is_same_origin(url, r.url) then
    r.authorization = nil
    r.tls.name, r.tls.cert, r.tls.key = nil, nil, nil -- these options are for the first host only
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
    again, why, code = responses.decode(response)
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
    read_whole(response, 65536) -- then the connection may be used again, unless the body is long
  end
end

local client = {}

function client.jar()
  return setmetatable({ all = {} }, cookies.class)
end

function client.request(options)
  local r, why, code

  if type(options) ~= "table" then error("client.request: a table of options is expected, not a " .. type(options), 0) end
  request.check_options(options)
  r, why, code = request.request_of(options)
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
