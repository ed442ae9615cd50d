-- SPDX-License-Identifier: MIT
--
-- What a call of sxe.client asks for: its URL, its options, and the fields that are sent. sxe-lua-client.lua calls this
-- file with the functions of sxe-lua-client.c, and gets a table of functions.
local c = ...
local json = require "sxe.json"
local concat, remove = table.concat, table.remove
local byte, char, find, format, gsub = string.byte, string.char, string.find, string.format, string.gsub
local lower, match, sub, upper = string.lower, string.match, string.sub, string.upper
local error, getmetatable, ipairs, max, next, pairs = error, getmetatable, ipairs, math.max, next, pairs
local sort, tonumber, tostring, type = table.sort, tonumber, tostring, type
local number_type <const> = math.type

local TIMEOUT <const> = 30 -- seconds

local OPTIONS <const> = {
  url = "string", method = "string", headers = "table", query = "table", body = "string or function", json = "any",
  form = "table", auth = "table", timeout = "number", connect_timeout = "number", first_byte_timeout = "number",
  redirects = "number", on_redirect = "function", allow_downgrade = "boolean", body_max = "number", stream = "boolean",
  public_only = "boolean", tls = "table", decode = "boolean", cookies = "table",
  multipart = "table", trace = "boolean", proxy = "string or boolean",
}

-- ---- URLs ----

local function escape(text)
  return (gsub(text, "[^%w%-._~]", function(ch) return format("%%%02X", byte(ch)) end))
end

local function unescape(text)
  return (gsub(text, "%%(%x%x)", function(hex) return char(tonumber(hex, 16)) end))
end

-- Return the table, which must be a list without holes: values after a hole would not be sent.
local function check_list(list, what)
  local number, last = 0, 0

  for key in pairs(list) do
    if number_type(key) ~= "integer" or key < 1 then
      error("client: " .. what .. " must be a list, and has the key '" .. tostring(key) .. "'", 0)
    end
    number, last = number + 1, max(last, key)
  end
  if number ~= last then error("client: " .. what .. " is a list with holes", 0) end
  return list
end

local function check_name(name, what)
  if type(name) ~= "string" then
    error("client: a name of " .. what .. " must be a string, not '" .. tostring(name) .. "'", 0)
  end
  return name
end

-- Encode { a = 1, b = { "x", "y" } } as a=1&b=x&b=y, with the names in order.
local function encode(fields, what)
  local names, parts = {}, {}

  for name in pairs(fields) do names[#names + 1] = check_name(name, what) end
  sort(names)
  for _, name in ipairs(names) do
    local value = fields[name]

    for _, one in ipairs(type(value) == "table" and check_list(value, name) or { value }) do
      parts[#parts + 1] = escape(name) .. "=" .. escape(tostring(one))
    end
  end
  return concat(parts, "&")
end

-- Split an authority into "user:password", host and port. The first is nil if there is no "@", the host if it is not
-- valid.
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
  -- Escape the bytes that a URL cannot have; bytes that are escaped stay as they are.
  rest = gsub(rest, "[^%w%-._~:/?%[%]@!$&'()*+,;=%%]", function(ch) return format("%%%02X", byte(ch)) end)
  return { scheme = scheme, host = host, port = port, target = rest, user = user,
    authority = port == default and host or host .. ":" .. format("%d", port) }
end

-- Remove the dot segments of a path (RFC 3986, 5.2.4).
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

-- The URL that a Location field names, relative to the URL `base` (RFC 3986, 5.2.2).
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
local make_multipart <const> = c.multipart(c, check_list)

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

-- The body of one of the options body, json and form, as a text or a function, and the body's type.
local function body_of(options)
  if options.json ~= nil then return json.encode(options.json), "application/json" end
  if options.form then return encode(options.form, "form"), "application/x-www-form-urlencoded" end
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

-- Whether a value of the field Connection asks to close the connection.
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

-- The credentials for the proxy: those in the script's fields, or else those in the proxy's URL.
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

-- Whether the response comes whole and may be decoded. A script that names codings or a range itself gets the body as
-- it comes, because it decodes the body, and a part of a body cannot be decoded.
local function asks_for_all(r)
  for name in pairs(r.headers) do
    if lower(name) == "accept-encoding" or lower(name) == "range" then return false end
  end
  return r.method ~= "HEAD"
end

-- A user has no colon: the server would take what comes after it for the password (RFC 7617, 2).
local function auth_of(user, password)
  if type(user) ~= "string" then error("client: auth needs a user, which is a string", 0) end
  if type(password) ~= "string" then error("client: the password of auth must be a string", 0) end
  if find(user, ":", 1, true) then error("client: the user of auth has a colon: " .. user, 0) end
  return basic(user, password)
end

local function request_of(options)
  local r = { method = upper(options.method or "GET"), options = options, headers = {}, began = c.now() }
  local url, why = parse_url(options.url)
  local auth = options.auth

  if not url then return nil, why end
  if options.query and next(options.query) ~= nil then
    url.target = url.target .. (find(url.target, "?", 1, true) and "&" or "?") .. encode(options.query, "query")
  end
  for name, value in pairs(options.headers or {}) do
    if is_for_proxy(check_name(name, "headers")) and type(value) == "table" then
      error("client: the header " .. name .. " must be one value, not a table", 0)
    end
    if type(value) == "table" then check_list(value, "the header " .. name) end
    r.headers[name] = value
  end
  if auth then
    r.authorization = auth_of(auth[1] or auth.user, auth[2] or auth.password or "")
  elseif url.user then
    if find(unescape(match(url.user, "^[^:]*")), ":", 1, true) then
      return nil, "client: a colon in the user's name of a URL: " .. options.url
    end
    r.authorization = basic_of(url.user)
  end
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

-- The target of a request, as a text. Connections with other authorities, certificates or names are not of the same
-- target: what was verified differs. A connection to a proxy that forwards requests is for all hosts.
local function key_of(r)
  local url, tls = r.url, r.tls
  local key = url.scheme .. "://" .. url.host .. ":" .. format("%d", url.port)
  local proxy = r.proxy and "\0" .. r.proxy.name .. "\0" .. tostring(proxy_login(r)) or ""

  if url.scheme == "http" then return r.proxy and proxy or key end
  return concat({ key, tostring(tls.ca), tostring(tls.cert), tostring(tls.key), tostring(tls.name),
    tostring(tls.insecure), proxy }, "\0")
end

return {
  check_options = check_options, cookies = cookies, fields_of = fields_of, is_forwarded = is_forwarded,
  is_same_origin = is_same_origin, key_of = key_of, proxies = proxies, proxy_login = proxy_login,
  request_of = request_of, resolve = resolve, url_text = url_text,
}
