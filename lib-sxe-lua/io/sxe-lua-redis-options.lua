-- SPDX-License-Identifier: MIT
--
-- The options of require "sxe.redis": names, types, ranges and addresses. sxe-lua-redis.lua calls this file with what
-- is written in C.
local c = ...
local byte, find, format, match = string.byte, string.find, string.format, string.match
local error, ipairs, math_type, min, pairs, pcall = error, ipairs, math.type, math.min, pairs, pcall
local tointeger, tonumber, tostring, type = math.tointeger, tonumber, tostring, type

local HOST_MAX <const> = 255
local SECONDS_MAX <const> = 1e9
local NAME_MAX <const> = 64 -- the longest name for which a similar one is looked for

local checks = { DB_MAX = 1 << 31 }

-- How many letters to insert, leave out or exchange until one text is the other.
local function distance_of(one, other)
  local row = {}

  for j = 0, #other do row[j] = j end
  for i = 1, #one do
    local before = row[0]

    row[0] = i
    for j = 1, #other do
      local changed = before + (byte(one, i) == byte(other, j) and 0 or 1)

      before, row[j] = row[j], min(changed, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#other]
end

-- "; did you mean 'x'?" with the name in a set that is nearest to a wrong one; "" if none is near.
local function guess(wrong, names)
  local best, least = nil, #wrong // 2 + 1

  if #wrong > NAME_MAX then return "" end
  for name in pairs(names) do
    local distance = distance_of(wrong, name)

    if distance < least or distance == least and best and name < best then best, least = name, distance end
  end
  return best and format("; did you mean '%s'?", best) or ""
end

-- Check the names and types of the fields of a table.
function checks.check_fields(who, options, types)
  if type(options) ~= "table" then error(who .. ": a table of options is expected, not a " .. type(options), 0) end
  for name, value in pairs(options) do
    local wanted = types[name]

    if not wanted then
      error(who .. ": there is no option '" .. tostring(name) .. "'" .. guess(tostring(name), types), 0)
    end
    if not find(wanted, type(value), 1, true) then
      error(who .. ": " .. name .. " must be a " .. wanted .. ", not a " .. type(value), 0)
    end
  end
end

-- Check the options of a function, and fill in the defaults.
function checks.check_options(who, options, types, defaults)
  local all = {}
  local is_good, why

  checks.check_fields(who, options, types)
  if options.user and not options.password then error(who .. ": a user needs a password", 0) end
  is_good, why = pcall(c.check_tls, options)
  if not is_good then error(who .. ": " .. why, 0) end
  for name, value in pairs(defaults) do all[name] = value end
  for name, value in pairs(options) do all[name] = value end
  return all
end

function checks.check_range(who, options, name, least, most)
  local value = tointeger(options[name])

  if not value or value < least or value > most then
    error(format("%s: %s must be a whole number from %d to %d, not %s", who, name, least, most, options[name]), 0)
  end
  options[name] = value
end

function checks.check_seconds(who, options, name)
  if not (options[name] > 0) then error(who .. ": " .. name .. " must be more than 0 seconds", 0) end
  options[name] = min(options[name], SECONDS_MAX)
end

-- Check the options that all clients have.
function checks.check_ranges(who, options)
  checks.check_range(who, options, "size", 1, 1000)
  checks.check_range(who, options, "handles", 1, 1000)
  checks.check_range(who, options, "reply_max", 1024, 1 << 40)
  checks.check_range(who, options, "protocol", 2, 3)
  checks.check_seconds(who, options, "timeout")
end

-- Check an option that is one of two words.
function checks.check_word(who, options, name, one, other)
  local word = options[name]

  if word ~= one and word ~= other then
    error(format("%s: %s is \"%s\" or \"%s\", not '%s'", who, name, one, other, word), 0)
  end
end

function checks.is_host(host)
  return type(host) == "string" and #host <= HOST_MAX and find(host, "^[%w._:-]+$") ~= nil
end

function checks.is_port(port)
  return math_type(port) == "integer" and port > 0 and port < 65536
end

-- Read an address { host, port } from a text; `default` is its port if it names none.
local function read_address(who, name, text, default)
  if type(text) ~= "string" then error(format('%s: %s is "host:port", not a %s', who, name, type(text)), 0) end
  local host, rest = match(text, "^%[([^%]]*:[^%]]*)%](.*)$") -- an IPv6 address
  if not host then
    host, rest = match(text, "^([^:]*)(.*)$")
  end
  local port = rest == "" and default or tointeger(tonumber(match(rest, "^:(%d+)$")))
  if not checks.is_host(host) or not checks.is_port(port) then
    error(format('%s: %s is "host:port" or "[IPv6]:port", not \'%s\'', who, name, text), 0)
  end
  return { host, port }
end

-- Check that the option `name` is a list without holes that is not empty.
function checks.check_list(who, name, list, of)
  local count = 0

  for _ in pairs(list or {}) do count = count + 1 end
  if count == 0 then error(format("%s: %s is a list of %s, at least one", who, name, of), 0) end
  for i = 1, count do
    if list[i] == nil then error(format("%s: %s is a list, but nothing is at its place %d", who, name, i), 0) end
  end
end

-- Read the option `name`, a list of addresses, of which each is `one`. Returns a list of { host, port }.
function checks.read_addresses(who, name, one, list, default)
  local all = {}

  checks.check_list(who, name, list, '"host:port"')
  for i, text in ipairs(list) do all[i] = read_address(who, one, text, default) end
  return all
end

return checks
