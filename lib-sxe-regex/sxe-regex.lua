-- SPDX-License-Identifier: MIT
--
-- The module sxe.regex (docs/regex.md), on the functions of sxe-regex.c. A loop over matches is here, and not in C, so
-- that functions of scripts may wait and raise in it, and so that the watchdog may end it.
local native, methods, generations = ...
local compile, groups_of, size_of, step = native.compile, native.groups, native.size, native.step
local find_method, match_method = methods.find, methods.match
local concat, error, find, format, gsub = table.concat, error, string.find, string.format, string.gsub
local match, sub = string.match, string.sub
local math_type, next, tointeger, tonumber, type = math.type, next, math.tointeger, tonumber, type

-- of a generation of the cache, which has two
local CACHE_MAX <const> = 128 -- patterns
local CACHE_BYTES_MAX <const> = native.is_realm and 32768 or 262144 -- bytes of compiled patterns and their texts

-- ---- Arguments ----

local function check_text(value, call)
  if type(value) ~= "string" then error(format("regex: %s: a text expected, got %s", call, type(value)), 3) end
end

-- Check the arguments of regex.find and regex.match, which count them otherwise than the methods.
local function check_search(subject, init, call)
  if type(subject) ~= "string" and type(subject) ~= "number" then
    error(format("regex: %s: a text expected, got %s", call, type(subject)), 3)
  end
  if init ~= nil and not tointeger(init) then error(format("regex: %s: init: an integer expected", call), 3) end
end

-- Returns the most matches: all, if the caller names no number.
local function check_most(value, call)
  if value == nil then return math.maxinteger end
  if math_type(value) ~= "integer" or value < 0 then
    error(format("regex: %s: max: an integer from 0 expected", call), 3)
  end
  return value
end

-- ---- Loops over matches ----

-- Each call of the result returns from, past and the match of the next match; nil; or nil, why, byte. An empty match is
-- followed by the first match that is not empty, or is elsewhere, as in Perl.
local function walk(re, subject)
  local at, is_empty, is_checked = 0, false, false

  return function()
    local from, past, found = step(re, subject, at, is_empty, is_checked)

    if from then at, is_empty, is_checked = past, from == past, true end
    return from, past, found
  end
end

function methods.gmatch(re, subject)
  check_text(subject, "gmatch")
  groups_of(re)
  local next_match = walk(re, subject)

  return function()
    local from, past, found = next_match()

    if not from and past then error(past, 2) end
    return found
  end
end

function methods.split(re, subject, max)
  check_text(subject, "split")
  local most = check_most(max, "split")
  local next_match, parts, count, at = walk(re, subject), {}, 0, 0

  while count + 1 < most do
    local from, past, found = next_match()

    if not from and past then return nil, past, found end
    if not from then break end
    -- An empty match is between two characters, or it is no place to split.
    if past > from or (from > at and from < #subject) then
      count = count + 1
      parts[count] = sub(subject, at + 1, from)
      at = past
    end
  end
  parts[count + 1] = sub(subject, at + 1)
  return parts
end

-- ---- Replacing ----

-- The key of the group that a replacement names after the dollar at `at`, and the index after it.
local function read_key(replacement, at)
  local digits = match(replacement, "^%d+", at + 1)
  if digits then return tonumber(digits), at + 1 + #digits end
  local name = match(replacement, "^{([%w_]+)}", at + 1)
  if name then return match(name, "^%d+$") and tonumber(name) or name, at + 3 + #name end
  error("regex: gsub: after $ in the replacement, a number, {number}, {name} or $ must follow", 4)
end

-- A function that returns what a text with $1 and ${name} stands for.
local function expand_text(re, replacement)
  local count, names = groups_of(re)
  local parts, keys, at = {}, {}, 1

  while true do
    local dollar = find(replacement, "$", at, true)

    parts[#parts + 1] = sub(replacement, at, (dollar or 0) - 1)
    if not dollar then break end
    if sub(replacement, dollar + 1, dollar + 1) == "$" then
      parts[#parts + 1], at = "$", dollar + 2
    else
      local key
      key, at = read_key(replacement, dollar)
      if not (names[key] or (math_type(key) and key <= count)) then
        error(format("regex: gsub: the pattern has no group '%s'", key), 3)
      end
      keys[#parts + 1], parts[#parts + 1] = key, ""
    end
  end
  return function(found)
    for i, key in next, keys do parts[i] = found[key] or "" end
    return concat(parts)
  end
end

-- Like the third argument of string.gsub, but a function gets the match.
local function expand_any(re, replacement)
  local kind = type(replacement)

  if kind == "string" then
    if find(replacement, "$", 1, true) then return expand_text(re, replacement) end
    return function() return replacement end
  end
  if kind == "function" then return replacement end
  if kind == "table" then
    local key = groups_of(re) > 0 and 1 or 0
    return function(found) return replacement[found[key]] end
  end
  error("regex: gsub: the replacement must be a text, a table or a function, not a " .. kind, 3)
end

function methods.gsub(re, subject, replacement, max)
  check_text(subject, "gsub")
  local expand, most = expand_any(re, replacement), check_most(max, "gsub")
  local next_match, parts, count, size, at = walk(re, subject), {}, 0, 0, 0

  while count < most do
    local from, past, found = next_match()

    if not from and past then return nil, past, found end
    if not from then break end
    local text = expand(found) or found[0]

    if type(text) ~= "string" and type(text) ~= "number" then
      error(format("regex: gsub: a text expected from the replacement, got a %s", type(text)), 2)
    end
    count, size = count + 1, size + 2
    parts[size - 1], parts[size] = sub(subject, at + 1, from), text
    at = past
  end
  if count == 0 then return subject, 0 end
  parts[size + 1] = sub(subject, at + 1)
  return concat(parts), count
end

-- ---- The module ----

-- The first generation has young patterns, by their flags and texts. If these are many, or large, they become the
-- second generation, and the old ones, which were not used meanwhile, are forgotten. `compile` takes both generations
-- away when memory is missing.
local count, bytes = 0, 0

local function keep(re, pattern, flags)
  local size = size_of(re, pattern)

  if count == CACHE_MAX or bytes + size > CACHE_BYTES_MAX then
    generations[2], generations[1] = generations[1], nil
  end
  local young = generations[1]

  if not young then
    young, count, bytes = {}, 0, 0
    generations[1] = young
  end
  local same = young[flags] or {}
  young[flags], same[pattern], count, bytes = same, re, count + 1, bytes + size
  return re
end

local function look_up(generation, pattern, flags)
  local same = generation and generation[flags]
  return same and same[pattern]
end

-- A compiled pattern of a text or of itself; nil, why, byte.
local function get(pattern, flags)
  if type(pattern) == "userdata" then
    if flags ~= nil then error("regex: a compiled pattern has its flags already", 3) end
    return pattern
  end
  flags = flags or ""
  local re = look_up(generations[1], pattern, flags)

  if re then return re end
  re = look_up(generations[2], pattern, flags)
  if re then return keep(re, pattern, flags) end
  local why, at
  re, why, at = compile(pattern, flags)
  if not re then return nil, why, at end
  return keep(re, pattern, flags)
end

local regex = { compile = compile }

function regex.match(subject, pattern, flags, init)
  check_search(subject, init, "match")
  local re, why, at = get(pattern, flags)
  if not re then return nil, why, at end
  return match_method(re, subject, init)
end

function regex.find(subject, pattern, flags, init)
  check_search(subject, init, "find")
  local re, why, at = get(pattern, flags)
  if not re then return nil, why, at end
  return find_method(re, subject, init)
end

function regex.gmatch(subject, pattern, flags)
  local re, why = get(pattern, flags)
  if not re then error(why, 2) end
  return methods.gmatch(re, subject)
end

function regex.split(subject, pattern, flags, max)
  local re, why, at = get(pattern, flags)
  if not re then return nil, why, at end
  return methods.split(re, subject, max)
end

function regex.gsub(subject, pattern, replacement, flags, max)
  local re, why, at = get(pattern, flags)
  if not re then return nil, why, at end
  return methods.gsub(re, subject, replacement, max)
end

-- A pattern that matches the text itself, whatever the flags are.
function regex.escape(text)
  check_text(text, "escape")
  return "\\Q" .. gsub(text, "\\E", "\\E\\\\E\\Q") .. "\\E"
end

return regex
