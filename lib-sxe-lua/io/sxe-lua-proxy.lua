-- SPDX-License-Identifier: MIT
--
-- Which forward proxy a call of sxe.client goes through, if any: that of its option, or of the environment, as curl
-- reads it. sxe-lua-client.lua, which gets these functions, passes what reads a URL.
local c, parse_authority, basic_of = ...
local find, format, gmatch, gsub = string.find, string.format, string.gmatch, string.gsub
local ipairs, lower, match, sub, tonumber = ipairs, string.lower, string.match, string.sub, tonumber

local PORT <const> = 1080 -- the port of a proxy that names none, as in curl

-- HTTP_PROXY in capitals is not read: a CGI server sets it from the field Proxy, which any client may send.
local VARIABLES <const> = {
  http = { "http_proxy", "all_proxy", "ALL_PROXY" },
  https = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" },
}

local function first_of(names)
  for _, name in ipairs(names) do
    local value = c.environment(name)

    if value then return value, name end
  end
end

-- Parse the URL of a proxy. Errors only name the place it comes from, because the URL may have a password.
local function parse(text, where)
  local scheme, rest = match(text, "^(%a[%w+.-]*)://(.*)$")
  local user, host, port = parse_authority(match(rest or text, "^[^/?#]*"), PORT)

  if scheme and lower(scheme) ~= "http" then
    return nil, format("client: %s: proxies that speak %s are not supported, only those that speak http", where, scheme)
  end
  if not host then return nil, format("client: %s is not the URL of a proxy, as http://host:port is", where) end
  return { host = gsub(host, "[%[%]]", ""), port = port, name = host .. ":" .. format("%d", port),
    authorization = user and basic_of(user) }
end

-- Whether an item of no_proxy stands for the host. A name also stands for all names below it.
local function is_named(host, item)
  local network, bits = match(item, "^%[?([^%]/]*)%]?/?(%d?%d?%d?)$")
  local name = gsub(gsub(lower(item), "^%.", ""), "%.$", "")

  if c.is_in(host, host) then return network ~= nil and c.is_in(host, network, tonumber(bits)) end
  return host == name or sub(host, -#name - 1) == "." .. name
end

local function is_direct(host)
  local list = first_of{ "no_proxy", "NO_PROXY" }

  host = gsub(gsub(host, "[%[%]]", ""), "%.$", "")
  for item in gmatch(list or "", "[^%s,]+") do
    if item == "*" or is_named(host, item) then return true end
  end
  return false
end

local proxies = {}

-- The proxy for a URL: a table; false: none; or nil, why.
function proxies.find(url, option)
  local text, where = option, "the option proxy"

  if option == nil then text, where = first_of(VARIABLES[url.scheme]) end
  if not text or option == nil and is_direct(url.host) then return false end
  return parse(text, where)
end

-- A text that says why the proxy replied to a request or to CONNECT, and did not pass it on.
function proxies.refusal(proxy, has_login, authority, head)
  if head.status == 407 then
    return format("client: the proxy %s %s (407)", proxy.name,
      has_login and "refuses the user or the password" or "wants a user and a password")
  end
  return format("client: the proxy %s does not connect to %s: %d %s", proxy.name, authority, head.status, head.reason)
end

return proxies
