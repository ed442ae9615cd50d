-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: the group of a key in redis.sharded, computed once more by the rule of docs/redis-sharding.md.
-- At the end `done` is true, or an error.
local redis, task = require "sxe.redis", require "sxe.task"

done = false

local checks = dofile "test/unit/lib-sxe-lua/lua-checks.lua"
local equal = checks.equal

local KEYS <const> = 100000

local function open(names, hash, weights)
  local groups = {}

  for i, name in ipairs(names) do
    groups[i] = { name = name, masters = { "127.0.0.1:" .. i }, weight = weights and weights[i] }
  end
  return redis.sharded{ groups = groups, hash = hash }
end

-- ---- The rule of the docs ----

local function place_of(text)
  local hash = 0xcbf29ce484222325

  for i = 1, #text do hash = (hash ~ text:byte(i)) * 0x100000001b3 end
  hash = (hash ~ hash >> 30) * 0xbf58476d1ce4e5b9
  hash = (hash ~ hash >> 27) * 0x94d049bb133111eb
  return (hash ~ hash >> 31) >> 32
end

local function crc16_of(text)
  local crc = 0

  for i = 1, #text do
    crc = crc ~ text:byte(i) << 8
    for _ = 1, 8 do crc = (crc << 1 ~ (crc & 0x8000 ~= 0 and 0x1021 or 0)) & 0xffff end
  end
  return crc
end

local function points_of(names, weights)
  local points = {}

  for g, name in ipairs(names) do
    for i = 0, 512 * (weights and weights[g] or 1) - 1 do points[#points + 1] = { place_of(name .. "/" .. i), name } end
    task.sleep(0)
  end
  table.sort(points, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
  return points
end

local function group_at(points, place)
  for _, point in ipairs(points) do
    if point[1] >= place then return point[2] end
  end
  return points[1][2]
end

-- The part of the ring that each group has.
local function shares_of(points)
  local shares, before = {}, points[#points][1] - (1 << 32)

  for _, point in ipairs(points) do
    shares[point[2]] = (shares[point[2]] or 0) + (point[1] - before) / (1 << 32)
    before = point[1]
  end
  return shares
end

-- ---- Cases ----

local function each_key(fn)
  for i = 1, KEYS do
    fn("key:" .. i)
    if i % 500 == 0 then task.sleep(0) end
  end
end

local function count_keys(db)
  local counts = {}

  each_key(function(key)
    local name = db:group_of(key)

    counts[name] = (counts[name] or 0) + 1
  end)
  return counts
end

local TEN <const> = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" }

local cases = {
  function() -- places and names that the docs list
    local ring, modulo = open{ "red", "green", "blue" }, open({ "red", "green", "blue" }, "modulo")
    equal(place_of "cart:7", 0x8c9d3166)
    equal(place_of "user:5", 0x78eb9457)
    equal(crc16_of "cart:7", 0x254a)
    for key, names in pairs{ ["cart:7"] = "red blue", ["user:1"] = "blue blue", ["user:2"] = "blue green",
        ["user:5"] = "green red", ["{user:5}:cart"] = "green red", ["{}x"] = "blue green", [""] = "green blue",
        ["\0\255"] = "red blue" } do
      equal(ring:group_of(key) .. " " .. modulo:group_of(key), names)
    end
  end,
  function() -- every key is where the rule says; the order of the groups and their addresses do not count
    local names, weights = { "two", "one", "x-1.a_B" }, { 1, 3, 2 }
    local points = points_of(names, weights)
    local db, other = open(names, "ring", weights), open({ "x-1.a_B", "one", "two" }, nil, { 2, 3, 1 })
    for i = 1, 500 do
      local key = ("%d{tag%d}"):format(i, i)
      local wanted = group_at(points, place_of("tag" .. i))
      equal(db:group_of(key), wanted)
      equal(other:group_of("tag" .. i), wanted)
      equal(db:group_of(i), group_at(points, place_of(tostring(i))))
      if i % 10 == 0 then task.sleep(0) end
    end
    local modulo = open(names, "modulo", weights)
    local turns = { "one", "one", "one", "two", "x-1.a_B", "x-1.a_B" }
    for i = 1, 2000 do
      equal(modulo:group_of("{k" .. i .. "}x"), turns[crc16_of("k" .. i) % 6 + 1])
      if i % 100 == 0 then task.sleep(0) end
    end
  end,
  function() -- places past the last point belong to the first one
    local points = points_of{ "a" , "b" }
    local db, found = open{ "a", "b" }, 0
    for i = 1, 20000 do
      if place_of("k" .. i) > points[#points][1] then
        equal(db:group_of("k" .. i), points[1][2])
        found = found + 1
      end
      if i % 1000 == 0 then task.sleep(0) end
    end
    equal(found > 0, true)
  end,
  function() -- 100,000 keys are distributed as the parts of the ring say: chi-square with 9 degrees of freedom
    local shares, chi, sum = shares_of(points_of(TEN)), 0, 0
    for name, number in pairs(count_keys(open(TEN))) do
      local expected = KEYS * shares[name]
      chi = chi + (number - expected) ^ 2 / expected
      sum = sum + number
      equal(math.abs(shares[name] * 10 - 1) < 0.2, true)
    end
    equal(sum, KEYS)
    equal(chi < 27.9, true) -- exceeded by one of a thousand
  end,
  function() -- a group that joins takes its part from the others, and no other key moves
    local before, after = open(TEN), open{ "k", table.unpack(TEN) }
    local moved, wrong = 0, 0
    each_key(function(key)
      local one, other = before:group_of(key), after:group_of(key)
      if one ~= other then
        moved = moved + 1
        if other ~= "k" then wrong = wrong + 1 end
      end
    end)
    equal(wrong, 0)
    equal(moved / KEYS < 1.2 / 11 and moved / KEYS > 0.8 / 11, true)
  end,
  function() -- weights
    local counts = count_keys(open({ "a", "b" }, "ring", { 1, 3 }))
    equal(math.abs(counts.b / KEYS - 0.75) < 0.05, true)
    counts = count_keys(open({ "a", "b" }, "modulo", { 1, 3 }))
    equal(math.abs(counts.b / KEYS - 0.75) < 0.01, true)
  end,
}

task.start(function()
  local at = 0
  local ok, why = xpcall(function()
    for i, case in ipairs(cases) do
      at = i
      case()
      task.sleep(0)
    end
  end, debug.traceback)
  done = ok or ("case " .. at .. ": " .. tostring(why))
end)
