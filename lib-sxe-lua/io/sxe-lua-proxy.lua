-- SPDX-License-Identifier: MIT
--
-- Which forward proxy a call of sxe.client goes through, if any: that of its option, or of the environment, as curl
-- reads it. sxe-lua-client.lua, which gets these functions, passes what reads a URL.
local c, parse_authority, basic_of = ...
local format, gsub, lower, match = string.format, string.gsub, string.lower, string.match

local PORT <const> = 1080 -- the port of a proxy that names none, as in curl

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

local proxies = {}

-- The proxy for a URL: a table; false: none; or nil, why.
function proxies.find(url, option)
  local text, where = option, "the option proxy"

  if option == nil then text, where = c.find_proxy(url.scheme, url.host) end
  if not text then return false end
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
