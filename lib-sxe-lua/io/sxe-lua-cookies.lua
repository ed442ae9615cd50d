-- SPDX-License-Identifier: MIT
--
-- Cookies of sxe.client (RFC 6265): jars that keep what servers set, until it expires or a jar is full. The functions of C
-- and the parser of URLs come from sxe-lua-client.lua, which gets the class of jars.
--
--   Jar.all = { cookie, ... }, the oldest first; no two have the same name, domain and path
--   cookie  = { name, value, domain, path, is_host_only, is_secure, expires }
local c, parse_url = ...
local concat, insert, remove, sort = table.concat, table.insert, table.remove, table.sort
local find, gmatch, lower, match, sub = string.find, string.gmatch, string.lower, string.match, string.sub
local floor, huge, ipairs, min, setmetatable, tonumber = math.floor, math.huge, ipairs, math.min, setmetatable, tonumber

local COOKIES_MAX <const>, HOST_MAX <const> = 1000, 50 -- the most cookies of a jar, and of one domain in it
local SIZE_MAX <const> = 4096                          -- bytes of a cookie with its attributes
local HEADER_MAX <const> = 32768                       -- bytes of a request's cookies

local Jar = {}

Jar.__index = Jar
Jar.__name = "sxe.client jar"

-- ---- Dates (RFC 6265, 5.1.1) ----

local MONTHS <const> = { jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10,
  nov = 11, dec = 12 }

-- Seconds since 1970. Here a year begins in March, so that February 29, which not all years have, is its last day.
local function seconds_of(year, month, day, hour, minute, second)
  local days

  if month <= 2 then year, month = year - 1, month + 12 end
  days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 1 - 719468
  return ((days * 24 + hour) * 60 + minute) * 60 + second
end

local function parse_date(text)
  local hour, minute, second, day, month, year

  for token in gmatch(text, "[^\t -/;-@[-`{-~]+") do
    local h, m, s = match(token, "^(%d%d?):(%d%d?):(%d%d?)%f[%D]")
    local number = tonumber(match(token, "^(%d%d?%d?%d?)%f[%D]"))

    if not hour and h then
      hour, minute, second = tonumber(h), tonumber(m), tonumber(s)
    elseif not day and number and number < 100 then
      day = number
    elseif not month and MONTHS[lower(sub(token, 1, 3))] then
      month = MONTHS[lower(sub(token, 1, 3))]
    elseif not year and number then
      year = number < 70 and number + 2000 or number < 100 and number + 1900 or number
    end
  end
  if not (hour and day and month and year) or year < 1601 or day < 1 or day > 31 or hour > 23 or minute > 59 or
    second > 59 then return nil end
  return seconds_of(year, month, day, hour, minute, second)
end

-- ---- Hosts and paths ----

local function is_address(host)
  return find(host, "^%[") or find(host, "^[%d.]+$")
end

local function is_within(host, domain)
  return host == domain or sub(host, -#domain - 1) == "." .. domain and not is_address(host)
end

-- The middle labels of public suffixes with two labels, as in co.uk. Below a public suffix anybody may own a name; this
-- list does not have all of them. A dot at the end of a name changes nothing.
local SECOND <const> = { ac = true, co = true, com = true, edu = true, go = true, gob = true, gov = true, gv = true,
  mil = true, ne = true, net = true, nom = true, ["or"] = true, org = true, sch = true }

local function is_public_suffix(domain)
  local second = match(domain, "^([^.]+)%.%a%a%.?$")

  return not find(domain, "%.[^.]") or second and SECOND[second]
end

local function path_of(url)
  return match(url.target, "^[^?]*")
end

local function is_path_within(path, base)
  return path == base or sub(path, 1, #base) == base and (sub(base, -1) == "/" or sub(path, #base + 1, #base + 1) == "/")
end

-- ---- Set-Cookie ----

-- Functions by attribute: each changes the cookie as its attribute says.
local attributes = {}

function attributes.expires(cookie, value) cookie.expires_at = parse_date(value) end

function attributes.domain(cookie, value)
  value = lower(match(value, "^%.?(.*)$"))
  cookie.wanted = value ~= "" and value or nil
end

function attributes.path(cookie, value) cookie.wanted_path = sub(value, 1, 1) == "/" and value or nil end

function attributes.secure(cookie) cookie.is_secure = true end

attributes["max-age"] = function(cookie, value)
  if find(value, "^%-?%d+$") then cookie.max_age = tonumber(value) end
end

-- The cookie that a text describes, before the rules about its URL are applied; nil, why.
local function parse(text)
  local pair, rest = match(text, "^([^;]*)(.*)$")
  local name, value = match(pair, "^%s*([^=]-)%s*=%s*(.-)%s*$")
  local cookie = { name = name, value = value, is_secure = false }

  if #text > SIZE_MAX then return nil, "client: the cookie has more than 4096 bytes" end
  if not name or name == "" then return nil, "client: the cookie has no name" end
  if find(text, "[\0-\8\10-\31\127]") then return nil, "client: the cookie has a control character" end
  for key, content in gmatch(rest, ";%s*([^;=]*)=?([^;]*)") do
    local attribute = attributes[lower(match(key, "^(.-)%s*$"))]

    if attribute then attribute(cookie, match(content, "^%s*(.-)%s*$")) end
  end
  return cookie
end

-- Set domain, path and expires as the URL allows it: true, or nil, why.
local function place(cookie, url, now)
  local host, wanted = url.host, cookie.wanted

  if wanted and wanted ~= host and (is_public_suffix(wanted) or not is_within(host, wanted)) then
    return nil, "client: the cookie is for another domain: " .. wanted
  end
  cookie.is_host_only = (not wanted or is_public_suffix(wanted) or is_address(host)) and true or false
  cookie.domain = wanted or host
  cookie.path = cookie.wanted_path or match(path_of(url), "^(/.*)/[^/]*$") or "/"
  if cookie.is_secure and url.scheme ~= "https" then return nil, "client: the cookie is secure, and did not come by https" end
  if find(lower(cookie.name), "^__secure%-") and not cookie.is_secure or
    find(lower(cookie.name), "^__host%-") and not (cookie.is_secure and not wanted and cookie.wanted_path == "/") then
    return nil, "client: the cookie is not as its prefix promises: " .. cookie.name
  end
  cookie.expires = cookie.max_age and now + cookie.max_age or cookie.expires_at or huge
  cookie.wanted, cookie.wanted_path, cookie.max_age, cookie.expires_at = nil, nil, nil, nil
  return true
end

-- Whether a cookie that came by http would replace or hide a secure cookie, which it must not.
local function hides_secure(jar, cookie)
  for _, other in ipairs(jar.all) do
    if other.is_secure and other.name == cookie.name and is_path_within(cookie.path, other.path) and
      (is_within(cookie.domain, other.domain) or is_within(other.domain, cookie.domain)) then return true end
  end
  return false
end

local function is_same(a, b)
  return a.name == b.name and a.domain == b.domain and a.path == b.path and a.is_host_only == b.is_host_only
end

-- Remove the oldest cookie of a domain (nil: of all domains) that is not secure. If there is none and the new cookie
-- came by https, remove the oldest one. Returns whether a cookie was removed.
local function drop_one(all, domain, is_https)
  local oldest

  for at, cookie in ipairs(all) do
    if not domain or cookie.domain == domain then
      if not cookie.is_secure then return remove(all, at) end
      oldest = oldest or at
    end
  end
  return is_https and remove(all, oldest)
end

-- Make room for one more cookie of the domain (RFC 6265bis, 5.7): remove expired ones first, then the oldest that are
-- not secure. Returns whether there is room; a cookie that came by http takes no room from secure ones.
local function make_room(jar, domain, now, is_https)
  local all, number = jar.all, 0

  for at = #all, 1, -1 do
    if all[at].expires <= now then
      remove(all, at)
    elseif all[at].domain == domain then
      number = number + 1
    end
  end
  if number >= HOST_MAX then return drop_one(all, domain, is_https) end
  return #all < COOKIES_MAX or drop_one(all, nil, is_https)
end

-- Set a cookie as a reply from that URL would: true, or nil, why.
local function set_cookie(jar, url, text)
  local now = c.wall()
  local cookie, why = parse(text)
  local ok

  if not cookie then return nil, why end
  ok, why = place(cookie, url, now)
  if not ok then return nil, why end
  if url.scheme ~= "https" and hides_secure(jar, cookie) then return nil, "client: there is a secure cookie of this name" end
  for at, other in ipairs(jar.all) do
    if is_same(cookie, other) then
      if cookie.expires <= now then remove(jar.all, at) else jar.all[at] = cookie end
      return true
    end
  end
  if cookie.expires <= now then return true end
  if not make_room(jar, cookie.domain, now, url.scheme == "https") then
    return nil, "client: the jar is full of secure cookies"
  end
  insert(jar.all, cookie)
  return true
end

-- The field Cookie of a request to that URL; nil: there is none.
local function header_of(jar, url)
  local now, path = c.wall(), path_of(url)
  local matching, parts, size = {}, {}, 0

  for at, cookie in ipairs(jar.all) do
    if cookie.expires > now and (cookie.domain == url.host or not cookie.is_host_only and is_within(url.host, cookie.domain))
      and is_path_within(path, cookie.path) and (url.scheme == "https" or not cookie.is_secure) then
      matching[#matching + 1] = { cookie = cookie, at = at }
    end
  end
  sort(matching, function(a, b)
    local i, j = #a.cookie.path, #b.cookie.path

    return i > j or i == j and a.at < b.at
  end)
  for _, one in ipairs(matching) do
    local text = one.cookie.name .. "=" .. one.cookie.value

    size = size + #text + 2
    if size <= HEADER_MAX then parts[#parts + 1] = text end
  end
  return parts[1] and concat(parts, "; ")
end

-- Set the cookies of a reply from that URL; those that are refused are ignored, as browsers do.
local function take_all(jar, url, fields)
  for i = 1, #fields, 2 do
    if lower(fields[i]) == "set-cookie" then set_cookie(jar, url, fields[i + 1]) end
  end
end

-- ---- For scripts ----

function Jar:set(url, text)
  local parsed, why = parse_url(url)

  if not parsed then return nil, why end
  return set_cookie(self, parsed, text)
end

function Jar:header(url)
  local parsed, why = parse_url(url)

  if not parsed then return nil, why end
  return header_of(self, parsed)
end

function Jar:list()
  local list, now = {}, c.wall()

  for _, cookie in ipairs(self.all) do
    if cookie.expires > now then
      list[#list + 1] = { name = cookie.name, value = cookie.value, domain = cookie.domain, path = cookie.path,
        host_only = cookie.is_host_only, secure = cookie.is_secure,
        expires = cookie.expires < huge and floor(min(cookie.expires, 1 << 53)) or nil }
    end
  end
  return list
end

function Jar:clear()
  self.all = {}
end

return { class = Jar, header_of = header_of, take_all = take_all }
