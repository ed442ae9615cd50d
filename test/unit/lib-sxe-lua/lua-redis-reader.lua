-- SPDX-License-Identifier: MIT
-- For test-lua-redis.c: replies of Redis as Lua values, complete and cut at each byte; `c` has the C functions.
local NULL = require "sxe.json".null
local MAX <const> = 70000

-- A value as text; keys are sorted.
local function shown(value)
  if value == NULL then return "null" end
  if type(value) ~= "table" then return math.type(value) == "float" and ("%.17g"):format(value) or ("%q"):format(value) end
  local parts, keys = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return shown(a) < shown(b) end)
  for _, key in ipairs(keys) do
    parts[#parts + 1] = (math.type(key) == "integer" and "" or shown(key) .. "=") .. shown(value[key])
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function equal(got, wanted, about)
  if got ~= wanted then error(("%s: %s, not %s"):format(about, got, wanted), 2) end
end

-- Read a reply that comes in these parts: "value 1", for example, or nil if it is incomplete.
local function read(parts, max)
  local reader, all = c.new_reader(max or MAX), {}
  for _, part in ipairs(parts) do
    c.feed(reader, part)
    while true do
      local kind, value, code = c.next(reader)
      if not kind then break end
      all[#all + 1] = kind .. " " .. (kind == "value" and shown(value) or kind == "push" and shown(value) or value) ..
        (code and " " .. code or "")
      if kind == "bad" then break end
    end
  end
  return #all > 0 and table.concat(all, "; ") or nil
end

-- Read a reply as a whole, in two parts cut at each byte, and in single bytes; a part of it must give nil.
local function try(bytes, wanted)
  local singles = {}
  equal(read{ bytes }, wanted, bytes)
  for i = 1, #bytes - 1 do
    equal(read{ bytes:sub(1, i), bytes:sub(i + 1) }, wanted, bytes .. " cut at " .. i)
    singles[i] = bytes:sub(i, i)
  end
  singles[#bytes] = bytes:sub(-1)
  equal(read(singles), wanted, bytes .. " in bytes")
  equal(read{ bytes:sub(1, -2) }, nil, bytes .. " but a byte")
end

try("+OK\r\n", 'value "OK"')
try("+a\rb\0c\r\r\n", 'value "a\\13b\\0c\\13"')
try("+\r\n", 'value ""')
try(":-12\r\n", "value -12")
try(":+7\r\n", "value 7")
try(":9223372036854775807\r\n", "value 9223372036854775807")
try(":-9223372036854775808\r\n", "value " .. ("%q"):format(math.mininteger))
try("$5\r\na\r\nbc\r\n", 'value "a\\13\\\nbc"')
try("$0\r\n\r\n", 'value ""')
try("$-1\r\n", "value null")
try("*-1\r\n", "value null")
try("_\r\n", "value null")
try("*0\r\n", "value {}")
try("*3\r\n:1\r\n$-1\r\n*2\r\n+x\r\n*0\r\n", 'value {1,null,{"x",{}}}')
try("#t\r\n", "value true")
try("*2\r\n#f\r\n#t\r\n", "value {false,true}")
try(",2.5\r\n", "value 2.5")
try(",-inf\r\n", "value -inf")
try("(123456789012345678901234567890\r\n", 'value "123456789012345678901234567890"')
try("(-1\r\n", 'value "-1"')
try("=7\r\ntxt:abc\r\n", 'value "abc"')
try("~2\r\n+a\r\n+b\r\n", 'value {"a","b"}')
try("%2\r\n+a\r\n:1\r\n:2\r\n*1\r\n+x\r\n", 'value {"a"=1,{"x"}}')
try("%1\r\n,nan\r\n:1\r\n", 'value {"nan"=1}')
try("%1\r\n,2.5\r\n:1\r\n", "value {2.5=1}")
try("%1\r\n_\r\n:1\r\n", "value {null=1}")
try("%0\r\n", "value {}")
try("|1\r\n+ttl\r\n:3\r\n+a\r\n", 'value "a"')
try("|0\r\n+a\r\n", 'value "a"')
try("*2\r\n|1\r\n+k\r\n*1\r\n:0\r\n+a\r\n|1\r\n+k\r\n+v\r\n|1\r\n+k\r\n+v\r\n+b\r\n", 'value {"a","b"}')
try("|1\r\n+k\r\n+v\r\n-ERR x\r\n", "error ERR x ERR")
try("|1\r\n+k\r\n+v\r\n|1\r\n+k\r\n*1\r\n|0\r\n:1\r\n-ERR x\r\n", "error ERR x ERR")
try("-ERR no such thing\r\n", "error ERR no such thing ERR")
try("-OOPS\r\n", "error OOPS OOPS")
try("!8\r\nERR a\r\nb\r\n", "error ERR a\r\nb ERR")
try("*1\r\n-ERR x\r\n", 'value {{"code"="ERR","error"="ERR x"}}')
try(">2\r\n+message\r\n+x\r\n", 'push {"message","x"}')
equal(read{ "+a\r\n:1\r\n+b", "c\r\n" }, 'value "a"; value 1; value "bc"', "several")
equal(read{ "$3\r\na", "b", "c\r\n$2\r\nd", "e\r\n" }, 'value "abc"; value "de"', "the copy is used again")
equal(read{ "*1\r\n" .. ("$9\r\n123456789\r\n"):rep(1) .. "+" .. ("x"):rep(60), ("y"):rep(20), "z\r\n" },
  'value {"123456789"}; value "' .. ("x"):rep(60) .. ("y"):rep(20) .. 'z"', "what was read is not kept")

-- The elements of a list are decoded before the last element has come.
do
  local reader = c.new_reader(1 << 30)
  c.feed(reader, "*100000\r\n" .. ("*0\r\n"):rep(50000))
  collectgarbage()
  local before = collectgarbage "count"
  equal(c.next(reader), nil, "half a list")
  equal(collectgarbage "count" - before > 1000, true, "its tables")
  c.feed(reader, ("*0\r\n"):rep(50000))
  equal(#select(2, c.next(reader)), 100000, "a list")
end

-- Drop a reply after each byte of it: the next reply must be read correctly.
local function try_dropped(bytes, kind)
  for i = 0, #bytes - 1 do
    local reader = c.new_reader(MAX)
    c.feed(reader, bytes:sub(1, i))
    equal(c.next(reader), nil, "in part")
    c.feed(reader, bytes:sub(i + 1) .. "*1\r\n:5\r\n")
    equal(table.concat({ c.next(reader, true) }, " "), kind, bytes .. " dropped at " .. i)
    equal(c.number(reader), 1, "one was read")
    equal(select(2, c.next(reader))[1], 5, "the one after it")
  end
end
for _, bytes in ipairs{ "+OK\r\n", "-ERR x\r\n", "$2\r\nab\r\n", "*2\r\n%1\r\n+k\r\n*0\r\n:3\r\n", "|1\r\n+k\r\n*1\r\n_\r\n*1\r\n:1\r\n",
    "%1\r\n,nan\r\n|0\r\n:1\r\n" } do
  try_dropped(bytes, "value")
end
try_dropped(">1\r\n+a\r\n", "push")

-- The limit of nesting is 32 lists.
equal(read{ ("*1\r\n"):rep(32) .. ":1\r\n" }, "value " .. ("{"):rep(32) .. "1" .. ("}"):rep(32), "deep")
local LONG <const> = "the reply is longer than reply_max, 70000 bytes"
local function bad(bytes, why, max)
  equal(read({ bytes }, max), "bad redis: " .. (why == LONG and LONG or "the server does not speak its protocol: " .. why),
    bytes:sub(1, 40))
end
local DEEP, LINE, NUMBER = "lists in lists in lists, 32 times", "a line without an end", "a number that is not written in digits"
local TYPE, TEXT = "an element of no type that there is", "text of such a length"
bad(("*1\r\n"):rep(33) .. ":1\r\n", DEEP)
bad(("|0\r\n"):rep(33) .. ":1\r\n", DEEP)
bad("\r\n", "an empty line")
bad("+" .. ("x"):rep(65536), LINE)
bad("+" .. ("x"):rep(65536) .. "\r\n", LINE)
for _, text in ipairs{ "", "-", "+", "1x", "9223372036854775808", "-9223372036854775809", "99999999999999999999", " 1", "?" } do
  for type_ in (":$*"):gmatch "." do bad(type_ .. text .. "\r\n", NUMBER) end
end
for _, text in ipairs{ "x", "HTTP/1.1 400 Bad", "\n", "_x", "#", "#tt", "#x", ",", ", 1", ",1x", ",\0", "(", "(-", "(1x" } do
  bad(text .. "\r\n", TYPE)
end
for _, text in ipairs{ "$-2", "!-1", "=-1" } do bad(text .. "\r\n", TEXT) end
for _, text in ipairs{ "$70000", "$69999", "$9223372036854775807", "*70001", "*9223372036854775807" } do bad(text .. "\r\n", LONG) end
bad("*-2\r\n", "a list with such a number of elements")
bad("%-1\r\n", "a list with such a number of elements")
bad("$1\r\nabc", "text that is longer than it says")
bad("$1\r\na\rc", "text that is longer than it says")
bad("=3\r\nabc\r\n", "verbatim text without a format")
bad("=4\r\nabcd\r\n", "verbatim text without a format")
bad("*60000\r\n" .. (":1\r\n"):rep(59999), LONG)
bad("*2\r\n$60000\r\n" .. ("x"):rep(60000) .. "\r\n$60000\r\n", LONG)
equal(read({ "*300\r\n" .. (":1\r\n"):rep(100) }, 1024), nil, "as long as it may be good")

-- ---- Commands ----

local function fails(why, ...)
  local ok, got = pcall(...)
  if ok or not got:find(why, 1, true) then error(("%s, not %s"):format(got, why), 2) end
end

equal(c.encode("GET", "a\0\r\n"), "*2\r\n$3\r\nGET\r\n$4\r\na\0\r\n\r\n", "encode")
equal(c.encode("X", 1, 0.1, 1 / 3, "", 3.0), "*6\r\n$1\r\nX\r\n$1\r\n1\r\n$3\r\n0.1\r\n$19\r\n0.33333333333333331\r\n" ..
  "$0\r\n\r\n$1\r\n3\r\n", "numbers")
fails("argument 1 is a nil, not a string or a number", c.encode, "GET", nil)
fails("argument 2 is a boolean", c.encode, "SET", "a", true)
equal(#c.encode(table.unpack({}, 1, 0)), 4, "none")
equal(c.encode("X", ("y"):rep(100000)):sub(-10), "yyyyyyyy\r\n", "long")

-- ---- Slots, as CLUSTER KEYSLOT computes them ----

for key, slot in pairs{ ["123456789"] = 12739, [""] = 0, a = 15495, foo = 12182, bar = 5061, ["{bar}x"] = 5061,
    ["x{bar}{foo}"] = 5061, ["foo{}{bar}"] = 8363, ["foo{{bar}}zap"] = 4015, ["foo{bar"] = 15278, ["}{"] = 12793,
    ["\0\255"] = 7920 } do
  equal(c.slot(key), slot, key)
end
equal(c.slot(12), 8373, "a number")
equal(c.slot(1.5), c.slot "1.5", "a float")
